//! How much softer cloth is than its elements on a given surface, since its vertices move to where
//! they like.
//!
//! Energies of cylinders tell how stiff cloth is where they are in equilibrium, as they are on
//! meshes with six triangles at every vertex, all alike. On other meshes what pulls at a vertex
//! from both sides is not the same: moved a little out of the cylinder, vertices store less, and by
//! that much cloth bends more easily than elements alone say. Elements here are functionals `J = Σ
//! wᵢ xᵢ + q·κ`, with energies `½ J²`, of heights `x` over a surface of curvature `κ` all over. For
//! the three curvatures heights of least energy are sought by some conjugate gradients; borders,
//! and what is next to them, stay where they are.

use glam::{DMat3, DVec3};

use super::rigidity::{DIRECTIONS, on_cylinders, square};

/// Elements that bend.
pub(super) trait Functionals {
    /// Visits all of them, in an order that is always the same: vertices, weights `w`, and `q` of
    /// `κ₁₁`, `κ₂₂`, `κ₁₂`.
    fn each(&self, visit: impl FnMut(&[u32], &[f64], DVec3));
}

/// The share by which energies of cylinders along all directions fall when vertices that are
/// `movable` move.
pub(super) fn softening(elements: &impl Functionals, movable: &[bool]) -> [f64; DIRECTIONS] {
    // The pulls of the three curvatures, one in each component, and the energies of movable
    // vertices.
    let mut pull = vec![DVec3::ZERO; movable.len()];
    let mut diagonal = vec![0.0; movable.len()];
    let mut energy = DMat3::ZERO;
    elements.each(|vertices, weights, q| {
        let mut moves = 0.0;
        for (&v, weight) in vertices.iter().zip(weights) {
            if movable[v as usize] {
                pull[v as usize] -= q * *weight;
                diagonal[v as usize] += weight * weight;
                moves += 1.0;
            }
        }
        energy += square(q) * (moves / vertices.len() as f64);
    });
    let precondition = |r: &[DVec3]| -> Vec<DVec3> {
        let scaled = |(r, d): (&DVec3, &f64)| if *d > 0.0 { *r / *d } else { DVec3::ZERO };
        r.iter().zip(&diagonal).map(scaled).collect()
    };
    let dot = |a: &[DVec3], b: &[DVec3]| -> DVec3 { a.iter().zip(b).map(|(a, b)| *a * *b).sum() };

    let mut moved = vec![DVec3::ZERO; movable.len()];
    let mut rest = pull.clone();
    let mut z = precondition(&rest);
    let mut along = z.clone();
    let mut size = dot(&rest, &z);
    let first = size;
    if first.cmple(energy.diagonal() * NOTHING).all() {
        return [0.0; DIRECTIONS];
    }
    for _ in 0..ITERATIONS {
        let mut product = vec![DVec3::ZERO; movable.len()];
        elements.each(|vertices, weights, _| {
            let of = || vertices.iter().zip(weights);
            let bent: DVec3 = of().map(|(&v, weight)| along[v as usize] * *weight).sum();
            for (&v, weight) in of().filter(|(v, _)| movable[**v as usize]) {
                product[v as usize] += bent * *weight;
            }
        });
        let step = ratio(size, dot(&along, &product));
        for (((x, r), p), product) in (moved.iter_mut().zip(&mut rest)).zip(&along).zip(&product) {
            *x += *p * step;
            *r -= *product * step;
        }
        z = precondition(&rest);
        let next = dot(&rest, &z);
        let more = ratio(next, size);
        size = next;
        if size.cmple(first * SMALL).all() {
            break;
        }
        for (p, z) in along.iter_mut().zip(&z) {
            *p = *z + *p * more;
        }
    }
    // 2 uᵀf − uᵀKu of all combinations u of the three, with Ku = f − r.
    let columns = |k: usize| {
        let column = |(u, (f, r)): (&DVec3, (&DVec3, &DVec3))| *u * (f[k] + r[k]);
        moved.iter().zip(pull.iter().zip(&rest)).map(column).sum()
    };
    let fallen = DMat3::from_cols(columns(0), columns(1), columns(2));
    let (fallen, energy) = (on_cylinders(&fallen), on_cylinders(&energy));
    std::array::from_fn(|k| {
        if energy[k] > 0.0 {
            (fallen[k] / energy[k]).clamp(0.0, MOST)
        } else {
            0.0
        }
    })
}

/// The ratio by components; zero where there is nothing to divide by.
fn ratio(a: DVec3, b: DVec3) -> DVec3 {
    DVec3::select(b.cmpgt(DVec3::ZERO), a / b, DVec3::ZERO)
}

/// The number of iterations. After eight, nine tenths of the fall are found.
const ITERATIONS: u32 = 8;

/// The share of the energy that is not worth looking for: on many meshes rounding is all there is.
const NOTHING: f64 = 1e-6;

/// The share of the first residual's square at which no more is to be found.
const SMALL: f64 = 1e-6;

/// Cloth that is softer than this has other faults.
const MOST: f64 = 0.9;
