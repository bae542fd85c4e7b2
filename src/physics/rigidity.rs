//! Prefactors of hinges, found from the mesh, so that cloth is as stiff as it should be bent in any
//! direction.
//!
//! A hinge feels curvature in directions that its four corners give. Bent to a cylinder with
//! curvature `κ` along the direction `m`, it stores `½ q (κ m·a m)²`, with `a = ½ Σ kᵢ pᵢ pᵢᵀ` from
//! its weights `k` and unfolded corners `p`. One prefactor for all, `D/(A₁ + A₂)`, makes
//! herringbone grids right along their axes and 1.75 times too stiff at 45° to them.
//!
//! Here the rigidity of a hinge follows a law, one for the whole cloth: a polynomial of second
//! degree in `cos 2θ` and `sin 2θ`, with `θ` the angle between its edge and the warp, and linear in
//! the slenderness of its triangles. Its ten coefficients are such that all hinges together come as
//! near as they can to `½ D(m) κ²` per area in all directions `m`, in the sense of least squares of
//! relative errors over sixteen directions, and among laws that come as near the one closest to a
//! constant is taken. Hinges alike in angle and shape are thus alike in rigidity: were each its
//! own, soft ones in series with stiff ones would make the same energy on cylinders, and let a
//! strip bend at the soft ones. On herringbone grids the exact solution exists (a fourth for the
//! diagonals), on irregular meshes the errors of directions are evened out; where all diagonals are
//! parallel there is none, as no hinge there sees the other diagonal's curvature alone. There least
//! squares buy stiffness along the diagonals with hinges along the axes that are too soft, and
//! cloth hangs lower than with plain prefactors, of which each hinge has the rigidity across its
//! edge. So both are compared by how far a load would bend cloth in all directions, and the plain
//! ones are kept where they are nearer to the known. How stiff cloth comes out is handed back, for
//! other elements to take the place of hinges (`bending_of_mesh`), or users to be warned.
//!
//! Only what is around vertices inside counts: a border has no hinges, and needs none, for it is
//! free of moments.
//!
//! `D(m)` is that of a woven sheet in the axes of warp and weft, `D₁ c⁴ + D₂ s⁴ + 2H c² s²`, with
//! `H = √(D₁D₂)` unless the rigidity on the bias is given (Huber's rule, by which equal rigidities
//! give an isotropic sheet).

use glam::{DMat3, DVec2, DVec3};

use crate::scene::Material;

/// The facts about a hinge that the fit needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// The vertices in the model's numbering.
    pub(super) vertices: [u32; 4],
    /// The weights for the plain prefactor of rigidity 1, in m.
    pub(super) weights: [f64; 4],
    pub(super) curved: DVec3,
    /// `(m·a m)²` in the sampled directions, for the plain prefactor of rigidity 1: `2E/κ²` in m².
    felt: [f64; DIRECTIONS],
    /// The terms in which its rigidity is linear.
    terms: [f64; TERMS],
    /// The unit vector across its edge, in axes of warp and weft.
    across: DVec2,
}

/// The result of a fit.
#[derive(Clone, Debug)]
pub(super) struct Fit {
    /// The rigidity of each hinge in N m, in the place of the sheet's own.
    pub(super) rigidities: Vec<f64>,
    /// Energies of cylinders along all directions over that of a plate; `None` where there is
    /// nothing to compare.
    pub(super) stiffness: Option<[f64; DIRECTIONS]>,
}

impl Shape {
    /// Makes a shape from the weights of a hinge with rigidity 1 N m and its corners, unfolded, in
    /// axes of warp and weft: the edge's ends, then those opposite.
    pub(super) fn new(vertices: [u32; 4], weights: [f64; 4], corners: [DVec2; 4]) -> Self {
        let felt = std::array::from_fn(|k| {
            let m = direction(k);
            let moved = |i: usize| weights[i] * corners[i].dot(m).powi(2);
            (0.5 * (moved(0) + moved(1) + moved(2) + moved(3))).powi(2)
        });
        let curved = felt_curvature(weights, corners);
        let [a, b, c, d] = corners;
        let edge = b - a;
        let areas = 0.5 * (edge.perp_dot(c - a).abs() + edge.perp_dot(d - a).abs());
        let slender = (0.5 * edge.length_squared() / areas).min(MOST_SLENDER) - 0.5;
        let along = edge.normalize_or_zero();
        let (cos, sin) = (
            along.x * along.x - along.y * along.y,
            2.0 * along.x * along.y,
        );
        let of_angle = [1.0, cos, sin, cos * cos - sin * sin, 2.0 * cos * sin];
        let terms = std::array::from_fn(|k| match of_angle.get(k) {
            Some(term) => *term,
            None => slender * of_angle[k - of_angle.len()],
        });
        Self {
            vertices,
            weights,
            curved,
            felt,
            terms,
            across: along.perp(),
        }
    }
}

/// `q` of a curvature `κ₁₁`, `κ₂₂`, `κ₁₂` in `Σ kᵢ wᵢ = q·κ`, of the heights `w` that points have
/// on a surface with that curvature.
pub(super) fn felt_curvature(weights: [f64; 4], points: [DVec2; 4]) -> DVec3 {
    let of = |(p, weight): (DVec2, f64)| {
        DVec3::new(0.5 * p.x * p.x, 0.5 * p.y * p.y, p.x * p.y) * weight
    };
    points.into_iter().zip(weights).map(of).sum()
}

/// The values of a quadratic form of curvatures on cylinders of curvature 1/m along all
/// [`direction`]s.
pub(super) fn on_cylinders(form: &DMat3) -> [f64; DIRECTIONS] {
    std::array::from_fn(|k| {
        let m = direction(k);
        let curvature = DVec3::new(m.x * m.x, m.y * m.y, m.x * m.y);
        curvature.dot(*form * curvature)
    })
}

/// Rigidity in N m of a sheet that is bent along the unit vector `m` in axes of warp and weft.
#[must_use]
pub fn along(material: &Material, m: DVec2) -> f64 {
    let [warp, weft] = material.bending;
    let (c, s) = (m.x * m.x, m.y * m.y);
    warp * c * c + weft * s * s + crossed(material) * c * s
}

/// `D₁`, `D₂` and `2H` in N m.
pub(super) fn law(material: &Material) -> [f64; 3] {
    let [warp, weft] = material.bending;
    [warp, weft, crossed(material)]
}

/// A direction, and the rigidity in N m that counts as known there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    pub(super) direction: DVec2,
    pub(super) rigidity: f64,
}

/// The law whose rigidities come nearest to such shares of those `known`, in the sense of least
/// squares of shares.
pub(super) fn nearest_law(known: &[Known; DIRECTIONS], shares: &[f64; DIRECTIONS]) -> [f64; 3] {
    let (mut matrix, mut side) = (DMat3::ZERO, DVec3::ZERO);
    for (
        Known {
            direction,
            rigidity,
        },
        share,
    ) in known.iter().zip(shares)
    {
        let (c, s) = (direction.x * direction.x, direction.y * direction.y);
        let row = DVec3::new(c * c, s * s, c * s) / *rigidity;
        matrix += square(row);
        side += row * *share;
    }
    (matrix.inverse() * side).to_array()
}

/// `2H` in N m, from the rigidity at 45°, which is `(D₁ + D₂ + 2H)/4`, or by Huber's rule.
fn crossed(material: &Material) -> f64 {
    let [warp, weft] = material.bending;
    material.bending_bias.map_or_else(
        || 2.0 * (warp * weft).sqrt(),
        |bias| 4.0 * bias - warp - weft,
    )
}

/// Directions all around, and the rigidity in N m that counts as known there, which is `least` of
/// the most at least. `None` if cloth resists no bending.
pub(super) fn targets(material: &Material, least: f64) -> Option<[Known; DIRECTIONS]> {
    let known: [f64; DIRECTIONS] = std::array::from_fn(|k| along(material, direction(k)));
    let most = known.iter().copied().fold(0.0, f64::max);
    let counted = |k: usize| Known {
        direction: direction(k),
        rigidity: known[k].max(least * most),
    };
    (most > 0.0).then(|| std::array::from_fn(counted))
}

/// The law that is nearest to the material, or plain prefactors where these are nearer; `areas` of
/// vertices in m², none of those at the border.
pub(super) fn fit(shapes: &[Shape], areas: &[Option<f64>], material: &Material) -> Fit {
    let target: [f64; DIRECTIONS] = std::array::from_fn(|k| along(material, direction(k)));
    let most = target.iter().copied().fold(0.0, f64::max);
    if most <= 0.0 {
        return Fit {
            rigidities: vec![0.0; shapes.len()],
            stiffness: None,
        };
    }
    let area: f64 = areas.iter().flatten().sum();
    let floor = FLOOR * target.iter().copied().fold(f64::INFINITY, f64::min);
    let plain = target.iter().sum::<f64>() / DIRECTIONS as f64;
    let inside = |shape: &Shape| {
        let corners = shape.vertices.map(|v| areas[v as usize].is_some());
        0.25 * corners.iter().filter(|inside| **inside).count() as f64
    };
    let mut law = [0.0; TERMS];
    law[0] = plain;
    let value = |law: &[f64; TERMS], shape: &Shape| -> f64 {
        law.iter().zip(&shape.terms).map(|(c, term)| c * term).sum()
    };
    if area > 0.0 {
        // Where the law is below the least rigidity, that counts; which these hinges are settles
        // soon.
        let mut least = vec![false; shapes.len()];
        for _ in 0..ROUNDS {
            let mut rows = [[0.0; TERMS]; DIRECTIONS];
            let mut missing = [1.0; DIRECTIONS];
            for (shape, least) in shapes.iter().zip(&least) {
                let inside = inside(shape);
                for (k, felt) in shape.felt.iter().enumerate() {
                    let share = inside * felt / (area * target[k].max(LEAST * most));
                    // Sought are changes of the plain law, as shares of it.
                    missing[k] -= share * if *least { floor } else { plain };
                    if !*least {
                        for (entry, term) in rows[k].iter_mut().zip(&shape.terms) {
                            *entry += share * plain * term;
                        }
                    }
                }
            }
            let change = least_squares(&rows, &missing);
            law = change.map(|share| plain * share);
            law[0] += plain;
            let now: Vec<bool> = shapes.iter().map(|s| value(&law, s) < floor).collect();
            if now == least {
                break;
            }
            least = now;
        }
    }
    let fitted: Vec<f64> = shapes
        .iter()
        .map(|shape| value(&law, shape).max(floor))
        .collect();
    if area <= 0.0 {
        return Fit {
            rigidities: fitted,
            stiffness: None,
        };
    }
    let across: Vec<f64> = shapes
        .iter()
        .map(|shape| match material.bending {
            // To the bit what there is without a fit.
            [rigidity, _] if material.bends_alike() => rigidity,
            _ => along(material, shape.across).max(floor),
        })
        .collect();
    let stiffness = |rigidities: &[f64]| -> [f64; DIRECTIONS] {
        let mut energy = [0.0; DIRECTIONS];
        for (shape, rigidity) in shapes.iter().zip(rigidities) {
            let inside = inside(shape);
            for (k, felt) in shape.felt.iter().enumerate() {
                energy[k] += inside * felt * rigidity / (area * target[k].max(LEAST * most));
            }
        }
        energy
    };
    // How far a load bends cloth, off by which share of what is known.
    let error = |stiffness: &[f64; DIRECTIONS]| -> f64 {
        stiffness.iter().map(|s| (1.0 / s - 1.0).powi(2)).sum()
    };
    let (of_fit, of_plain) = (stiffness(&fitted), stiffness(&across));
    let (rigidities, stiffness) = if error(&of_plain) < error(&of_fit) {
        (across, of_plain)
    } else {
        (fitted, of_fit)
    };
    Fit {
        rigidities,
        stiffness: Some(stiffness),
    }
}

/// The smallest `x` among those with hardly more than the least `|rows x − wanted|²`.
fn least_squares(rows: &[[f64; TERMS]; DIRECTIONS], wanted: &[f64; DIRECTIONS]) -> [f64; TERMS] {
    let mut matrix = [[0.0; TERMS]; TERMS];
    let mut x = [0.0; TERMS];
    for (row, wanted) in rows.iter().zip(wanted) {
        for (i, a) in row.iter().enumerate() {
            x[i] += a * wanted;
            for (entry, b) in matrix[i].iter_mut().zip(row) {
                *entry += a * b;
            }
        }
    }
    // Cholesky; what is added makes the matrix positive definite.
    for i in 0..TERMS {
        matrix[i][i] += SMALLNESS;
        for j in 0..=i {
            let known: f64 = (0..j).map(|k| matrix[i][k] * matrix[j][k]).sum();
            let rest = matrix[i][j] - known;
            matrix[i][j] = if i == j {
                rest.max(SMALLNESS).sqrt()
            } else {
                rest / matrix[j][j]
            };
        }
        let known: f64 = (0..i).map(|k| matrix[i][k] * x[k]).sum();
        x[i] = (x[i] - known) / matrix[i][i];
    }
    for i in (0..TERMS).rev() {
        let known: f64 = (i + 1..TERMS).map(|k| matrix[k][i] * x[k]).sum();
        x[i] = (x[i] - known) / matrix[i][i];
    }
    x
}

/// `v vᵀ`.
pub(super) fn square(v: DVec3) -> DMat3 {
    DMat3::from_cols(v * v.x, v * v.y, v * v.z)
}

/// The `k`-th of the directions, evenly over half a turn.
fn direction(k: usize) -> DVec2 {
    DVec2::from_angle(std::f64::consts::PI * k as f64 / DIRECTIONS as f64)
}

/// Directions sampled: `D(m)` has five coefficients, its square nine.
pub(super) const DIRECTIONS: usize = 16;

/// Coefficients of the law: five of the angle, as they are and times slenderness.
const TERMS: usize = 10;

/// Most that slenderness, half the squared length of the edge over the areas, counts for.
const MOST_SLENDER: f64 = 2.0;

/// Least rigidity that errors are relative to, as a share of the largest.
const LEAST: f64 = 0.01;

/// Least prefactor as a share of the least rigidity: without any, triangles at borders would flap.
const FLOOR: f64 = 0.1;

/// Most rounds of finding out which hinges have the least prefactor.
const ROUNDS: usize = 20;

/// Weight of the law's distance from a constant, beside that of relative errors.
const SMALLNESS: f64 = 1e-8;
