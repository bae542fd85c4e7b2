//! How fast the stiffest motion of cloth is: what bounds the steps of integrators whose elasticity
//! is explicit.
//!
//! The largest eigenvalue ω² of `M⁻¹ K`, with K the stiffness of membranes, hinges, plates, folds,
//! shells and springs as they start, each with the largest factor that it has in time, by power
//! iterations on all cloths at once, which do not touch each other. Their result is below the
//! eigenvalue, by some percent. Pins are left out, and tension, which makes cloth stiffer.

use glam::DVec3;

use super::ClothModel;

/// The stiffest motion of a cloth.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Stiffest {
    /// The angular frequency ω in rad/s.
    pub frequency: f64,
    /// Its stiffness-proportional damping in s.
    pub damping: f64,
}

impl ClothModel {
    /// Finds the stiffest motion of each cloth about the shape that it starts with.
    ///
    /// # Panics
    /// Rest shapes and bending elements were [released](crate::step::World::release).
    #[must_use]
    pub fn stiffest(&self) -> Vec<Stiffest> {
        let cloths = self.laws().count();
        // Neighbours move against each other, in directions of no pattern.
        let mut motion: Vec<DVec3> = (0..self.start().len() as u64).map(scattered).collect();
        let mut squared = vec![0.0; cloths];
        for _ in 0..ITERATIONS {
            let before = self.doubled_energies(&motion, cloths);
            let mut next = self.pull_at_start(&motion, |_| 1.0);
            for (pull, mass) in next.iter_mut().zip(self.masses()) {
                *pull /= *mass;
            }
            let after = self.doubled_energies(&next, cloths);
            for ((squared, before), after) in squared.iter_mut().zip(before).zip(&after) {
                *squared = if before > 0.0 {
                    (after / before).sqrt()
                } else {
                    0.0
                };
            }
            for (next, cloth) in next.iter_mut().zip(self.cloth_of_vertex()) {
                let size = after[*cloth as usize].sqrt();
                *next = if size > 0.0 {
                    *next / size
                } else {
                    DVec3::ZERO
                };
            }
            motion = next;
        }
        let work = |pull: Vec<DVec3>| {
            let mut of_cloths = vec![0.0; cloths];
            let vertices = pull.iter().zip(&motion).zip(self.cloth_of_vertex());
            for ((pull, motion), cloth) in vertices {
                of_cloths[*cloth as usize] += pull.dot(*motion);
            }
            of_cloths
        };
        let elastic = work(self.pull_at_start(&motion, |_| 1.0));
        let damped = work(self.pull_at_start(&motion, |damping| damping));
        (squared.iter().zip(elastic).zip(damped))
            .map(|((squared, elastic), damped)| Stiffest {
                frequency: squared.sqrt(),
                damping: if elastic > 0.0 { damped / elastic } else { 0.0 },
            })
            .collect()
    }

    /// `Σ m v²` of each cloth.
    fn doubled_energies(&self, v: &[DVec3], cloths: usize) -> Vec<f64> {
        let mut sums = vec![0.0; cloths];
        let vertices = v.iter().zip(self.masses()).zip(self.cloth_of_vertex());
        for ((v, mass), cloth) in vertices {
            sums[*cloth as usize] += v.length_squared() * mass;
        }
        sums
    }

    /// The product `K w` at the start, with each element times the factor that `weight` gives for
    /// its damping in s.
    fn pull_at_start(&self, w: &[DVec3], weight: impl Fn(f64) -> f64) -> Vec<DVec3> {
        let (start, factors) = (self.start(), self.largest_factors());
        let factors = |vertex: usize| factors[self.cloth_of_vertex()[vertex] as usize];
        let mut pull = vec![DVec3::ZERO; w.len()];
        let elements = self.triangles().iter().zip(self.membranes()).enumerate();
        for (index, (t, element)) in elements.filter(|(index, _)| self.is_element(*index)) {
            let t = t.map(|v| v as usize);
            let Some(deformation) = element.deform(t.map(|v| start[v])) else {
                continue;
            };
            let stiffness = element.stiffness(&deformation);
            let [stretch, shear] = self.triangle_damping(index);
            let weight = weight(stretch.min(shear)) * factors(t[0])[0];
            for (i, row) in t.into_iter().enumerate() {
                for (j, column) in t.into_iter().enumerate() {
                    pull[row] += stiffness.elastic(i, j) * w[column] * weight;
                }
            }
        }
        let quadratic = self.quadratic();
        for hinge in &*quadratic.hinges {
            let vertices = hinge.vertices.map(|v| v as usize);
            let bent = hinge.curvature(vertices.map(|v| w[v]));
            let weight = weight(self.bending_damping(vertices[0])) * factors(vertices[0])[1];
            for (row, of_row) in vertices.into_iter().zip(hinge.weights) {
                pull[row] += bent * (of_row * weight);
            }
        }
        for plate in &*quadratic.plates {
            let vertices = plate.vertices.map(|v| v as usize);
            let weight = weight(self.bending_damping(vertices[0])) * factors(vertices[0])[1];
            let curvatures = plate.curvatures(vertices.map(|v| w[v] * weight));
            for (corner, row) in vertices.into_iter().enumerate() {
                pull[row] += plate.pull(&curvatures, corner);
            }
        }
        for fold in self.folds() {
            let vertices = fold.vertices.map(|v| v as usize);
            let state = fold.state(vertices.map(|v| start[v]));
            let turned: f64 = (vertices.iter().zip(state.mode))
                .map(|(&v, mode)| mode.dot(w[v]))
                .sum();
            let moment = state.stiffness * turned * weight(fold.damping) * factors(vertices[0])[1];
            for (row, mode) in vertices.into_iter().zip(state.mode) {
                pull[row] += mode * moment;
            }
        }
        for shell in self.shells() {
            let vertices = shell.vertices.map(|v| v as usize);
            let state = shell.state(vertices.map(|v| start[v]));
            let turned = state.rates(vertices.map(|v| w[v]));
            let weight = weight(shell.damping) * factors(vertices[0])[1];
            let moments = shell.moments_of(turned.map(|angle| angle * weight));
            for (corner, row) in vertices.into_iter().enumerate() {
                pull[row] += state.pull(moments, corner);
            }
        }
        for spring in self.springs() {
            let [a, b] = spring.vertices.map(|v| v as usize);
            let state = spring.state([start[a], start[b]]);
            let weight = weight(spring.damping) * factors(a)[usize::from(spring.bends())];
            let force = state.elastic * (w[a] - w[b]) * weight;
            pull[a] += force;
            pull[b] -= force;
        }
        pull
    }
}

/// A vector without pattern from a number, the same everywhere: bits of splitmix64.
fn scattered(number: u64) -> DVec3 {
    let coordinate = |axis: u64| {
        let mut bits = (3 * number + axis + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits ^ (bits >> 31)) >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
    };
    DVec3::new(coordinate(0), coordinate(1), coordinate(2))
}

/// The largest eigenvalue is then found to a few percent.
const ITERATIONS: u32 = 40;

#[cfg(test)]
mod tests {
    use super::super::tests::{grid, model_of};

    /// No motion is faster, and a wave along the sheet that the mesh just carries is nearly as
    /// fast.
    #[test]
    fn the_stiffest_motion_crosses_a_cell_in_about_a_step() {
        let model = model_of(&grid(12, 0.5));
        let [stiffest] = model.stiffest()[..] else {
            panic!("one cloth")
        };
        // ω = 2 c / Δx of a bar of such cells, of waves with c² = E/(1 − ν²)ρ.
        let bar = 2.0 * (1000.0_f64 / 0.91 / 0.15).sqrt() / (0.5 / 11.0);
        let ratio = stiffest.frequency / bar;
        assert!((0.9..3.0).contains(&ratio), "{ratio}");
        assert_eq!(stiffest.damping, 0.0);
        // Twice as fine, twice as fast.
        let finer = model_of(&grid(23, 0.5)).stiffest()[0].frequency;
        let ratio = finer / stiffest.frequency;
        assert!((1.9..2.1).contains(&ratio), "{ratio}");
    }
}
