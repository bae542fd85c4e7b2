//! Warnings of what a scene may say, and which is yet likely to be a mistake: told where a run
//! starts, at its end, and by `weft check`.

use super::World;
use crate::mesh::Pieces;
use crate::physics::{Stiffest, UNEVEN, is_uneven};
use crate::scene::Integrator;

impl World {
    /// A sentence for each thing that a reader of the result must know before there is one.
    ///
    /// # Panics
    /// The world was [released](Self::release).
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = self.unstable_cloths();
        warnings.extend(self.odd_sizes());
        warnings.extend(self.odd_bodies());
        warnings.extend(self.coarsely_sampled());
        warnings.extend_from_slice(self.lying());
        warnings.extend(self.disagreements.iter().cloned());
        warnings.extend(self.defects.iter().cloned());
        warnings.extend_from_slice(self.far_from_rest());
        warnings.extend_from_slice(self.far_pins());
        warnings.extend(self.doubled_vertices());
        warnings.extend(self.uneven_bending());
        warnings.extend(self.stretch_of_bending());
        warnings
    }

    /// Cloth whose springs against bending keep it from being stretched.
    fn stretch_of_bending(&self) -> impl Iterator<Item = String> {
        let cloths = self.scene().cloths.iter().enumerate();
        cloths.filter_map(|(index, cloth)| {
            let added = self.model().added_stretch(index);
            (added > UNEVEN).then(|| {
                format!(
                    "cloth `{}` resists being stretched {:.1} times as much as its material says: springs against bending are \
                     stiff along cloth of so short edges; take material.bending_model = \"quadratic\" or \"dihedral\", a smaller \
                     material.bending_radius, or longer edges",
                    cloth.name,
                    1.0 + added
                )
            })
        })
    }

    /// See [`Self::far_from_rest`].
    pub(super) fn find_far_from_rest(&self) -> impl Iterator<Item = String> {
        let cloths = self.scene().cloths.iter().enumerate();
        cloths.filter_map(|(index, cloth)| {
            cloth.rest.as_ref()?;
            let [most, least] = self.model().stretch_at_start(index)?;
            let limit = 1.0 + cloth.material.strain_limit;
            let how = if most > limit {
                format!(
                    "up to {most:.3} times as long as at rest, beyond its strain_limit, and is drawn together at once"
                )
            } else if least < SHORTEST {
                format!("down to {least:.3} times as short as at rest")
            } else {
                return None;
            };
            Some(format!(
                "cloth `{}` starts {how}: look at the units and scale of its files and at `rest` or `rest_texture`, if this is not meant",
                cloth.name
            ))
        })
    }

    /// Cloth whose mesh cannot bend as its material says.
    fn uneven_bending(&self) -> impl Iterator<Item = String> {
        let cloths = self.scene().cloths.iter().enumerate();
        cloths.filter_map(|(index, cloth)| {
            let bending = self.model().bending(index);
            let [low, high] = bending.range.filter(|range| is_uneven(*range))?;
            let mend = match bending.elements {
                "plates" | "shells" => {
                    "its mesh yields by direction; take one of rounder triangles, best with six at every vertex, as a grid's"
                }
                "springs" => {
                    "no prefactors of springs are right on its mesh; take material.bending_model = \"quadratic\" or \"dihedral\", or a mesh \
                     whose diagonals alternate from column to column, as a grid's"
                }
                _ => {
                    "no prefactors are right on its mesh; take one whose diagonals alternate from column to column, as a grid's"
                }
            };
            Some(format!(
                "cloth `{}` is {low:.2} to {high:.2} times as stiff against bending as its material says, depending on the \
                 direction: {mend}",
                cloth.name
            ))
        })
    }

    /// How many pieces each cloth falls into, and how many of its vertices coincide.
    #[must_use]
    pub fn pieces(&self) -> Vec<Pieces> {
        let model = self.model();
        Pieces::of_cloths(
            self.scene().cloths.len(),
            model.start(),
            model.triangles(),
            model.cloth_of_vertex(),
        )
    }

    /// Cloth of pieces that lie edge to edge, and are not sewn.
    fn doubled_vertices(&self) -> Vec<String> {
        let cloths = self.scene().cloths.iter().zip(self.pieces_of_cloths());
        cloths
            .filter(|(_, pieces)| pieces.apart > 0)
            .map(|(cloth, Pieces { count, apart, .. })| {
                format!(
                    "cloth `{}` has {count} pieces, and {apart} vertices that are where a vertex of another piece is: nothing holds these \
                     together, and they fall apart; join them with `weld = \"0.1 mm\"`, merge doubled vertices where the mesh was made, or move the pieces apart",
                    cloth.name
                )
            })
            .collect()
    }

    /// Cloth whose stiffest motion is too fast for the steps of an integrator with explicit
    /// elasticity.
    fn unstable_cloths(&self) -> Vec<String> {
        let (integrator, step) = (self.scene().solver.integrator, self.scene().substep());
        let what = if step < self.scene().time.step {
            "a substep"
        } else {
            "time.step"
        };
        if integrator.is_implicit() {
            return Vec::new();
        }
        let bounds = self.model().stiffest().into_iter();
        let bounds = bounds.map(|stiffest| longest_step(integrator, stiffest));
        (self.scene().cloths.iter().zip(bounds))
            .filter(|(_, bound)| step > *bound)
            .map(|(cloth, bound)| {
                format!(
                    "{what} is {:.3} ms, but \"{}\" takes cloth `{}` stably in steps of some {:.3} ms at most: beyond that it \
                     gains energy, also where strain limits hide it; take a shorter time.step, or solver.integrator = \
                     \"euler\" or \"bdf2\"",
                    1e3 * step,
                    integrator.name(),
                    cloth.name,
                    1e3 * bound
                )
            })
            .collect()
    }
}

/// The stretch below which cloth that starts so short is likely a mistake.
const SHORTEST: f64 = 0.5;

/// The longest stable step in s of a motion of frequency ω and stiffness-proportional damping β.
/// For `"central"` it is 2/ω, whatever the damping; the damping of `"newmark"` is implicit where
/// positions are moved: `h²ω² < 4 + 2 h β ω²`.
fn longest_step(integrator: Integrator, stiffest: Stiffest) -> f64 {
    let undamped = 2.0 / stiffest.frequency;
    match integrator {
        Integrator::Euler | Integrator::Bdf2 => f64::INFINITY,
        Integrator::Central => undamped,
        Integrator::Newmark => {
            let damping = stiffest.damping;
            damping + (damping * damping + undamped * undamped).sqrt()
        }
    }
}

#[cfg(test)]
mod tests {
    use weft_runtime::ScopeOptions;
    use weft_runtime::comm::solo::Solo;

    use super::*;
    use crate::scene::Scene;
    use crate::step::Simulation;

    /// A flat sheet without weight, and what is added to it.
    fn sheet(more: &str, damping: &str) -> World {
        let text = format!(
            "gravity = [0, 0, 0]\n{more}\n[[cloth]]\ngrid = {{ size = \"0.5 m\", vertices = 12 }}\n\
             material = {{ density = 0.15, stretch = 1000, bending = 1e-5, damping_stiffness = \"{damping}\", strain_limit = 1 }}\n\
             [contact]\nself_collision = false\n"
        );
        World::build(&Scene::parse(&text, None, &[]).unwrap()).unwrap()
    }

    fn with(integrator: &str, step: f64, damping: &str) -> World {
        let head = format!("time.step = {step}\nsolver.integrator = \"{integrator}\"");
        sheet(&head, damping)
    }

    /// How fast the sheet moves in its plane after 300 steps, if it began with 10⁻⁶ m/s.
    fn speed(world: &World) -> f64 {
        let mut comm = Solo::new();
        let mut s = Simulation::new(world, &comm, &ScopeOptions::default()).unwrap();
        for (i, v) in s.state_mut().1.iter_mut().enumerate() {
            v.x = if i % 3 == 0 { 1e-6 } else { -1e-6 };
            v.y = if i % 2 == 0 { 1e-6 } else { -1e-6 };
        }
        for _ in 0..300 {
            if s.advance(&mut comm).is_err() {
                return f64::INFINITY;
            }
        }
        s.velocities()
            .iter()
            .map(|v| v.length())
            .fold(0.0, f64::max)
    }

    /// The stiffness is 8 D r²/a⁴ for each spring of a grid of squares, to 2 % of its borders:
    /// against what finite elements bear, it is small at 20 mm and all at 5 mm.
    #[test]
    fn springs_that_keep_fine_cloth_from_stretching_are_told() {
        let of = |cells: usize, bending: &str| {
            let text = format!(
                "[[cloth]]\ngrid = {{ size = \"0.4 m\", vertices = {} }}\n[cloth.material]\ndensity = 0.15\nstretch = 1000\n\
                 bending = 1e-5\nbending_model = \"{bending}\"\n",
                cells + 1
            );
            World::build(&Scene::parse(&text, None, &[]).unwrap()).unwrap()
        };
        for (cells, told) in [(20, false), (80, true)] {
            let world = of(cells, "springs");
            let stretched = |world: &World| {
                let x: Vec<_> = world.model().start().iter().map(|x| *x * 1.0001).collect();
                world.model().elastic_energy(&x).unwrap()
            };
            let more = stretched(&world) / stretched(&of(cells, "quadratic")) - 1.0;
            let added = world.model().added_stretch(0);
            assert!((added / more - 1.0).abs() < 1e-3, "{added} {more}");
            assert_eq!(added > UNEVEN, told, "{added}");
            let warnings = world.warnings().concat();
            assert_eq!(warnings.contains("`cloth0` resists"), told, "{warnings}");
        }
        assert_eq!(of(20, "quadratic").model().added_stretch(0), 0.0);
    }

    /// Cloth that is ever four times as stiff wants steps half as long, also before it is.
    #[test]
    fn steps_are_bound_by_the_largest_stiffness_of_all_times() {
        let of = |material: &str| {
            let text = format!(
                "time.step = 1e-4\nsolver.integrator = \"newmark\"\n[[cloth]]\ngrid = {{ size = 0.5, vertices = 12 }}\n\
                 material = {{ density = 0.15, stretch = 1000, bending = 1e-5, {material} }}"
            );
            let world = World::build(&Scene::parse(&text, None, &[]).unwrap()).unwrap();
            world.model().stiffest()[0].frequency
        };
        let later = "{ keyframes = [{ time = 1, value = 1 }, { time = 2, value = 4 }] }";
        let ratio = of(&format!(
            "stretch_factor = {later}, bending_factor = {later}"
        )) / of("");
        assert!((ratio - 2.0).abs() < 1e-9, "{ratio}");
    }

    #[test]
    fn steps_above_the_bound_blow_up_and_are_told_and_others_do_neither() {
        for (integrator, damping) in [
            ("newmark", "0 s"),
            ("newmark", "0.5 ms"),
            ("central", "0.1 ms"),
        ] {
            let any = with(integrator, 1e-4, damping);
            let of = any.scene().solver.integrator;
            let bound = longest_step(of, any.model().stiffest()[0]);
            let below = with(integrator, 0.93 * bound, damping);
            assert_eq!(below.warnings(), Vec::<String>::new());
            assert!(
                speed(&below) < 1e-4,
                "{integrator} {damping}: {}",
                speed(&below)
            );
            let above = with(integrator, 1.1 * bound, damping);
            let told = above.warnings().concat();
            assert!(
                told.contains(integrator) && told.contains("`cloth0`"),
                "{told}"
            );
            assert!(
                speed(&above) > 1e-2,
                "{integrator} {damping}: {}",
                speed(&above)
            );
        }
        // Implicit integrators may take any step.
        assert_eq!(with("bdf2", 0.1, "0 s").warnings(), Vec::<String>::new());
    }
}
