//! Prefactors of hinges, found from the mesh, so that cloth is as stiff as it should be bent in any direction.
//!
//! A hinge feels curvature in directions that its four corners give. Bent to a cylinder with curvature `κ` along
//! the direction `m`, it stores `½ q (κ m·a m)²`, with `a = ½ Σ kᵢ pᵢ pᵢᵀ` from its weights `k` and unfolded
//! corners `p`. One prefactor for all, `D/(A₁ + A₂)`, makes herringbone grids right along their axes and 1.75
//! times too stiff at 45° to them. Here each hinge has its own, a tenth of the rigidity or more, such that the energy per area
//! around each vertex comes as near as it can to `½ D(m) κ²` in all directions `m`, in the sense of least
//! squares of relative errors over eight directions. On herringbone grids the exact solution exists (inside, a
//! fourth for the diagonals), on irregular meshes the errors of directions are evened out; where all diagonals
//! are parallel there is none, as no hinge there sees the other diagonal's curvature alone.
//!
//! `D(m)` is that of a woven sheet in the axes of warp and weft, `D₁ c⁴ + D₂ s⁴ + 2H c² s²`, with `H = √(D₁D₂)`
//! unless the rigidity on the bias is given (Huber's rule, by which equal rigidities give an isotropic sheet).
//!
//! The solution is that of a bounded least-squares problem, by descent along one prefactor after the other
//! from the plain ones: the same on every rank.

use glam::DVec2;

use crate::scene::Material;

/// What the fit needs of a hinge.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// In the model's numbering.
    pub(super) vertices: [u32; 4],
    /// `m·a m` in the sampled directions, for the plain prefactor of rigidity 1; its square is `rigidity⁻¹ · 2E/κ²`.
    felt: [f64; DIRECTIONS],
}

impl Shape {
    /// From the weights of a hinge with rigidity 1 N m and its corners, unfolded, in axes of warp and weft.
    pub(super) fn new(vertices: [u32; 4], weights: [f64; 4], corners: [DVec2; 4]) -> Self {
        let felt = std::array::from_fn(|k| {
            let m = direction(k);
            let moved = |i: usize| weights[i] * corners[i].dot(m).powi(2);
            0.5 * (moved(0) + moved(1) + moved(2) + moved(3))
        });
        Self { vertices, felt }
    }
}

/// Rigidity in N m of a sheet that is bent along the unit vector `m` in axes of warp and weft.
#[must_use]
pub fn along(material: &Material, m: DVec2) -> f64 {
    let ([warp, weft], bias) = (material.bending, material.bending_bias);
    // At 45°, (D₁ + D₂ + 2H)/4.
    let twice = bias.map_or_else(
        || 2.0 * (warp * weft).sqrt(),
        |bias| 4.0 * bias - warp - weft,
    );
    let (c, s) = (m.x * m.x, m.y * m.y);
    warp * c * c + weft * s * s + twice * c * s
}

/// The rigidity of each hinge in N m, in the place of the sheet's own; `areas` of vertices in m².
pub(super) fn fit(shapes: &[Shape], areas: &[f64], material: &Material) -> Vec<f64> {
    let target: [f64; DIRECTIONS] = std::array::from_fn(|k| along(material, direction(k)));
    let most = target.iter().copied().fold(0.0, f64::max);
    if most <= 0.0 {
        return vec![0.0; shapes.len()];
    }
    // Rows: vertex v in direction k, Σ_h q_h felt²/4 = A_v D_k, divided by its right-hand side.
    let share = |shape: &Shape, k: usize, v: u32| {
        0.25 * shape.felt[k] * shape.felt[k] / (areas[v as usize] * target[k].max(LEAST * most))
    };
    let plain = target.iter().sum::<f64>() / DIRECTIONS as f64;
    let floor = FLOOR * target.iter().copied().fold(f64::INFINITY, f64::min);
    let mut rigidity = vec![plain; shapes.len()];
    let mut missing = vec![[1.0; DIRECTIONS]; areas.len()];
    for shape in shapes {
        for v in shape.vertices {
            for (k, missing) in missing[v as usize].iter_mut().enumerate() {
                *missing -= plain * share(shape, k, v);
            }
        }
    }
    for _ in 0..SWEEPS {
        let mut largest = 0.0_f64;
        for (shape, rigidity) in shapes.iter().zip(&mut rigidity) {
            let (mut slope, mut curvature) = (0.0, 0.0);
            for v in shape.vertices {
                for (k, missing) in missing[v as usize].iter().enumerate() {
                    let share = share(shape, k, v);
                    slope += share * missing;
                    curvature += share * share;
                }
            }
            if curvature <= 0.0 {
                continue;
            }
            let next = (*rigidity + slope / curvature).max(floor);
            let change = next - *rigidity;
            *rigidity = next;
            largest = largest.max(change.abs());
            for v in shape.vertices {
                for (k, missing) in missing[v as usize].iter_mut().enumerate() {
                    *missing -= change * share(shape, k, v);
                }
            }
        }
        if largest < SETTLED * most {
            break;
        }
    }
    rigidity
}

/// The `k`-th of the directions, evenly over half a turn.
fn direction(k: usize) -> DVec2 {
    DVec2::from_angle(std::f64::consts::PI * k as f64 / DIRECTIONS as f64)
}

/// Directions sampled: `D(m)` has five coefficients.
const DIRECTIONS: usize = 8;

/// Least rigidity that errors are relative to, as a share of the largest.
const LEAST: f64 = 0.01;

/// Least prefactor as a share of the least rigidity: without any, triangles at borders would flap.
const FLOOR: f64 = 0.1;

/// Most rounds over all hinges.
const SWEEPS: usize = 200;

/// Change in a round, as a share of the largest rigidity, after which there is no other.
const SETTLED: f64 = 1e-4;
