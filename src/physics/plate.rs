//! Bending of a triangle by the curvature that its three neighbours give it, for flat rest shapes.
//!
//! The hinge of an edge ([`super::bending`]) tells one number of how a sheet is curved, `J = Σ kᵢ
//! xᵢ` with cotangent weights `k`; of a sheet of curvature `κ` that is `J = q·κ`, `q` from the
//! unfolded corners. The three hinges of a triangle tell three numbers, as many as `κ` has, and so
//! the triangle stores what a plate of its area `A` would: the least of `½ A κᵀDκ` among curvatures
//! that explain its hinges,
//!
//! `E = ½ A Jᵀ G⁻¹ J`, `G = Q D⁻¹ Qᵀ`, with a row `q` of `Q` for each hinge.
//!
//! Bent to any surface of second degree, a sheet stores on any mesh exactly what a plate does,
//! woven or not, which no prefactors of hinges achieve; a triangle at a border, with two hinges or
//! one, stores less. `J` is linear in positions and `G` does not change, so that each component of
//! the energy is the same constant quadratic form, as in \[BWHZG06, §3\]. It couples a vertex with
//! twice as many others beyond its first ring as hinges do. Rotation-free shell elements also take
//! a triangle's curvature from those beside it (Oñate & Cervera 1993, Derivation of thin plate
//! bending elements with one degree of freedom per node, Engineering Computations 10, 543); the
//! mean of gradients over each edge that they take is exact on regular meshes only.
//!
//! Six corners on one conic bend to a surface that no hinge sees, and nearly so where they are near
//! to one: what such a triangle's hinges say alone, of a curvature that they can hardly tell, is
//! then taken for softer than it is.
//!
//! `D` is that of a woven sheet in the axes of warp and weft, `D₁ κ₁₁² + D₂ κ₂₂² + 2D₁₂ κ₁₁κ₂₂ +
//! 2(H − D₁₂) κ₁₂²` ([`super::rigidity`]). Cylinders say nothing of `D₁₂`, which lets strips curl
//! across where they are bent. Here it is `(2H − D₁ − D₂)/8`, with which there is none of that on
//! average over the directions in which strips are cut, within half of `√(D₁D₂)` and such that
//! twist is resisted.

use bytemuck::{Pod, Zeroable};
use glam::{DMat3, DVec2, DVec3};

use super::bending::cotangent_weights;
use super::rigidity::felt_curvature;
use super::shell::Shell;

use crate::heap_bytes::owns_no_heap;

/// A triangle and the corners beyond its edges, and how it resists being curved.
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct Plate {
    /// The triangle's corners, then those beyond its edges from corner `i` to `i + 1`; where such
    /// an edge is at a border, corner `i` again.
    pub vertices: [u32; 6],
    /// The energy is `½ Σᵣ |Σᵢ weights[r][i] xᵢ|²`, in √(N/m); zero for what is at a border.
    pub weights: [[f64; 6]; 3],
}

owns_no_heap!(Plate);

/// The inverse of what a sheet resists curvature with, of `κ₁₁`, `κ₂₂`, `κ₁₂` in axes of warp and
/// weft, in 1/(N m).
#[derive(Clone, Copy, Debug)]
pub(super) struct Compliance(DMat3);

impl Compliance {
    /// Makes the compliance of a sheet with a law `D₁`, `D₂`, `2H` in N m; what is much softer in
    /// some way than in others counts as a little stiffer.
    pub(super) fn new([warp, weft, twice]: [f64; 3]) -> Self {
        let floor = LEAST * warp.max(weft).max(0.5 * twice);
        let (warp, weft) = (warp.max(floor), weft.max(floor));
        let huber = (warp * weft).sqrt();
        // D₁₂ for which strips on average don't curl across; and the most of it that leaves twist a
        // half of what it has with Huber's.
        let even = 0.125 * (twice - warp - weft);
        let most = 0.5 * twice - 0.25 * (0.5 * twice + huber);
        let cross = even
            .clamp(-0.5 * huber, 0.5 * huber)
            .min(most)
            .max(-(1.0 - LEAST) * huber);
        let twist = (twice - 2.0 * cross).max(2.0 * floor);
        let determinant = warp * weft - cross * cross;
        Self(DMat3::from_cols_array(&[
            weft / determinant,
            -cross / determinant,
            0.0,
            -cross / determinant,
            warp / determinant,
            0.0,
            0.0,
            0.0,
            1.0 / twist,
        ]))
    }
}

/// A triangle laid flat with those beside it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unfolded {
    /// The area in m².
    pub(super) area: f64,
    /// The lengths of its edges in m.
    lengths: [f64; 3],
    /// The weights, for each edge, of its ends, of the corner opposite and of the one beyond; none
    /// at a border.
    weights: [Option<[f64; 4]>; 3],
    /// `q` of each edge, in axes of warp and weft, in m; zero at a border.
    felt: [DVec3; 3],
}

impl Unfolded {
    /// Makes a plate from corners in m, those beyond the edges if any, and the warp along the first
    /// edge and across it, towards the third corner. `None` if a triangle spans no area.
    pub(super) fn new(
        corners: [DVec3; 3],
        beyond: [Option<DVec3>; 3],
        warp: DVec2,
    ) -> Option<Self> {
        let [x0, x1, x2] = corners;
        let edge = x1 - x0;
        let (length, doubled) = (edge.length(), edge.cross(x2 - x0).length());
        let third = DVec2::new(edge.dot(x2 - x0), doubled) / length;
        let flat = [DVec2::ZERO, DVec2::new(length, 0.0), third];
        let flat = flat.map(|p| DVec2::new(p.dot(warp), warp.perp_dot(p)));
        let lengths = [x1 - x0, x2 - x1, x0 - x2].map(DVec3::length);
        let mut weights = [None; 3];
        let mut felt = [DVec3::ZERO; 3];
        for (i, beyond) in beyond.into_iter().enumerate() {
            let Some(beyond) = beyond else { continue };
            let (next, last) = ((i + 1) % 3, (i + 2) % 3);
            let (start, edge) = (corners[i], corners[next] - corners[i]);
            let of_edge = cotangent_weights([start, corners[next], corners[last], beyond])?;
            let along = (flat[next] - flat[i]) / edge.length();
            let reach = edge.dot(beyond - start) / edge.length();
            let height = edge.cross(beyond - start).length() / edge.length();
            // The triangle is to the left of its edges.
            let beside = flat[i] + along * reach - along.perp() * height;
            let points = [flat[i], flat[next], flat[last], beside];
            felt[i] = felt_curvature(of_edge, points);
            weights[i] = Some(of_edge);
        }
        let area = 0.5 * doubled;
        (area > 0.0 && area.is_finite()).then_some(Self {
            area,
            lengths,
            weights,
            felt,
        })
    }

    /// Whether it has triangles beside it all around.
    pub(super) fn is_inside(&self) -> bool {
        self.weights.iter().all(Option::is_some)
    }

    /// The triangle's bending, with `vertices` as [`Plate`] has them, and `q` of its rows in √(N
    /// m).
    pub(super) fn plate(&self, vertices: [u32; 6], compliance: &Compliance) -> (Plate, [DVec3; 3]) {
        let mix = self.unmixed(compliance) * self.area.sqrt();
        let mut weights = [[0.0; 6]; 3];
        for (edge, of_edge) in self.weights.iter().enumerate() {
            for (place, weight) in places(edge).into_iter().zip(of_edge.unwrap_or_default()) {
                for (row, of_row) in weights.iter_mut().enumerate() {
                    of_row[place] += mix.col(edge)[row] * weight;
                }
            }
        }
        let [a, b, c] = self.felt;
        let felt = [0, 1, 2].map(|r| a * mix.x_axis[r] + b * mix.y_axis[r] + c * mix.z_axis[r]);
        (Plate { vertices, weights }, felt)
    }

    /// The shell of the triangle, by angles which are none at rest, and without damping.
    pub(super) fn shell(&self, vertices: [u32; 6], compliance: &Compliance) -> Shell {
        let mix = self.unmixed(compliance);
        let of = |edge: usize| match self.weights[edge] {
            Some(_) => mix.col(edge) * self.lengths[edge],
            None => DVec3::ZERO,
        };
        let columns = [of(0), of(1), of(2)];
        Shell {
            vertices,
            coupling: columns.map(|a| columns.map(|b| a.dot(b) * self.area)),
            rest: [0.0; 3],
            damping: 0.0,
        }
    }

    /// `L⁻¹` of `G = L Lᵀ`, lower triangular.
    fn unmixed(&self, Compliance(compliance): &Compliance) -> DMat3 {
        let entry = |of: &DMat3, i: usize, j: usize| self.felt[i].dot(*of * self.felt[j]);
        // How well hinges tell curvatures apart, which is 1 where none of them sees what another
        // does.
        let plain = DMat3::from_diagonal(DVec3::new(1.0, 1.0, 0.5));
        let sizes: [f64; 3] = std::array::from_fn(|i| entry(&plain, i, i));
        let cosine = |i: usize, j: usize| match sizes[i] * sizes[j] {
            size if size > 0.0 => entry(&plain, i, j) / size.sqrt(),
            _ => 0.0,
        };
        let [a, b, c] = [cosine(0, 1), cosine(0, 2), cosine(1, 2)];
        let apart = 1.0 + 2.0 * a * b * c - a * a - b * b - c * c;
        let more = 1.0 + (APART - apart).max(0.0);
        let mut g = [[0.0; 3]; 3];
        for (i, row) in g.iter_mut().enumerate() {
            for (j, to) in row.iter_mut().enumerate() {
                *to = entry(compliance, i, j) * if i == j { more } else { 1.0 };
            }
            // A curvature that no hinge sees stands alone.
            if row[i] <= 0.0 {
                row[i] = 1.0;
            }
        }
        let l00 = g[0][0].sqrt();
        let (l10, l20) = (g[1][0] / l00, g[2][0] / l00);
        let l11 = positive(g[1][1] - l10 * l10, g[1][1]).sqrt();
        let l21 = (g[2][1] - l20 * l10) / l11;
        let l22 = positive(g[2][2] - l20 * l20 - l21 * l21, g[2][2]).sqrt();
        let m10 = -l10 / (l00 * l11);
        DMat3::from_cols(
            DVec3::new(1.0 / l00, m10, (-l20 / l00 - l21 * m10) / l22),
            DVec3::new(0.0, 1.0 / l11, -l21 / (l11 * l22)),
            DVec3::new(0.0, 0.0, 1.0 / l22),
        )
    }
}

impl Plate {
    /// Bending energy in J at positions in the order of `vertices`.
    #[must_use]
    pub fn energy(&self, x: [DVec3; 6]) -> f64 {
        let rows = self.curvatures(x);
        0.5 * rows.iter().map(|row| row.length_squared()).sum::<f64>()
    }

    /// `Σᵢ weights[r][i] xᵢ`: the force on vertex `i` is `−Σᵣ weights[r][i]` times these, in N.
    #[must_use]
    pub fn curvatures(&self, x: [DVec3; 6]) -> [DVec3; 3] {
        (self.weights).map(|of_row| x.iter().zip(of_row).map(|(x, weight)| *x * weight).sum())
    }

    /// The pull on the `corner`-th vertex against some [`Plate::curvatures`].
    #[must_use]
    pub fn pull(&self, curvatures: &[DVec3; 3], corner: usize) -> DVec3 {
        let [a, b, c] = self.weights.map(|of_row| of_row[corner]);
        curvatures[0] * a + curvatures[1] * b + curvatures[2] * c
    }

    /// `Σᵣ weights[r][i] weights[r][j]`, N/m.
    #[must_use]
    pub fn stiffness(&self, i: usize, j: usize) -> f64 {
        self.weights.iter().map(|row| row[i] * row[j]).sum()
    }
}

/// The places of four corners among six vertices: the ends of an edge of a triangle, the corner
/// opposite, and the one beyond.
pub(super) fn places(edge: usize) -> [usize; 4] {
    [edge, (edge + 1) % 3, (edge + 2) % 3, 3 + edge]
}

/// A number that is positive but for rounding, or zero where nothing is left of it.
fn positive(rest: f64, of: f64) -> f64 {
    rest.max(f64::EPSILON * of)
}

/// The least that some curvature is resisted with, as a share of the most.
pub(super) const LEAST: f64 = 1e-3;

/// How well hinges tell curvatures apart, from 0 to 1, below which they are taken for softer: on
/// grids it is 0.4 to 0.9, and hardly ever less where vertices are moved by a third of a cell.
const APART: f64 = 0.05;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::rigidity;
    use super::*;
    use crate::scene::Material;

    fn woven(warp: f64, weft: f64, bias: Option<f64>) -> Material {
        Material {
            bending: [warp, weft],
            bending_bias: bias,
            ..Material::COTTON
        }
    }

    fn compliance(material: &Material) -> Compliance {
        Compliance::new(rigidity::law(material))
    }

    /// A triangle and three beside it, moved at random.
    fn star(moved: [[f64; 2]; 6]) -> [DVec3; 6] {
        let regular = [
            [0.0, 0.0],
            [1.0, 0.0],
            [0.5, 0.9],
            [0.5, -0.9],
            [1.5, 0.9],
            [-0.5, 0.9],
        ];
        std::array::from_fn(|i| {
            DVec3::new(
                regular[i][0] + moved[i][0],
                regular[i][1] + moved[i][1],
                0.0,
            )
        })
    }

    fn unfolded(x: [DVec3; 6], warp: DVec2) -> Unfolded {
        let [a, b, c, beyond @ ..] = x;
        let along = DVec2::new((b - a).x, (b - a).y).normalize();
        let own = DVec2::new(along.dot(warp), along.perp_dot(warp));
        Unfolded::new([a, b, c], beyond.map(Some), own).unwrap()
    }

    proptest! {
        /// A cylinder along any direction, any weave, any triangle that is not near to a conic; and
        /// of any other surface of second degree the same on all triangles.
        #[test]
        fn a_triangle_stores_what_a_plate_of_its_area_does(
            moved in prop::array::uniform6(prop::array::uniform2(-0.15..0.15_f64)),
            angle in 0.0..6.3_f64,
            rigidities in prop::array::uniform2(0.05..1.0_f64),
            share in 0.0..1.0_f64,
            turn in 0.0..6.3_f64,
        ) {
            let [warp, weft] = rigidities;
            // From a little above the least to more than isotropic cloth has.
            let least = 0.25 * (warp.sqrt() - weft.sqrt()).powi(2);
            let bias = least + 0.5 * (warp + weft) * (0.02 + 1.5 * share);
            let material = woven(warp, weft, Some(bias));
            let compliance = compliance(&material);
            let axis = DVec2::from_angle(angle);
            let density = |x: [DVec3; 6], bend: &dyn Fn(f64, f64) -> f64| {
                let of = unfolded(x, axis);
                let (plate, _) = of.plate([0, 1, 2, 3, 4, 5], &compliance);
                let bent = x.map(|p| {
                    DVec3::Z * bend(axis.dot(p.truncate()), axis.perp_dot(p.truncate()))
                });
                plate.energy(bent) / of.area
            };
            let (x, other) = (star(moved), star([[0.0; 2]; 6]));
            let (sin, cos) = turn.sin_cos();
            let cylinder = |u: f64, v: f64| 0.5 * (cos * u + sin * v).powi(2);
            let (c, s) = (cos * cos, sin * sin);
            let known = 0.5 * (warp * c * c + weft * s * s + (4.0 * bias - warp - weft) * c * s);
            let found = density(x, &cylinder);
            prop_assert!((found - known).abs() < 1e-9 * (warp + weft), "{found} {known}");
            let saddle = |u: f64, v: f64| 0.3 * u * u - 0.4 * v * v + 0.2 * u * v;
            let [one, two] = [x, other].map(|x| density(x, &saddle));
            prop_assert!((one - two).abs() < 1e-9 * (warp + weft), "{one} {two}");
        }

        /// Flat triangles store nothing wherever they are and however they are stretched, and are
        /// not pushed as a whole.
        #[test]
        fn flat_triangles_store_nothing(
            moved in prop::array::uniform6(prop::array::uniform2(-0.15..0.15_f64)),
            at in prop::array::uniform3(prop::array::uniform3(-1.0..1.0_f64)),
        ) {
            let of = unfolded(star(moved), DVec2::X);
            let (plate, _) = of.plate([0, 1, 2, 3, 4, 5], &compliance(&woven(1.0, 0.2, None)));
            let [along, across, origin] = at.map(DVec3::from_array);
            let placed = star(moved).map(|p| origin + along * p.x + across * p.y);
            let size = (0..6).map(|i| plate.stiffness(i, i)).sum::<f64>();
            prop_assert!(plate.energy(placed) < 1e-24 * size);
            let sum: f64 = (0..6).map(|i| plate.stiffness(i, 2)).sum();
            prop_assert!(sum.abs() < 1e-12 * size);
        }
    }

    /// A patch with one hinge stores less than a plate on all surfaces but one, on which its moment
    /// is across the hinge.
    #[test]
    fn at_a_border_the_least_energy_counts() {
        let [a, b, c, below, ..] = star([[0.0; 2]; 6]);
        let of = Unfolded::new([a, b, c], [Some(below), None, None], DVec2::X).unwrap();
        assert!(!of.is_inside());
        let rigidities = [1.0, 0.2];
        // Without moments that cross.
        let material = woven(rigidities[0], rigidities[1], Some(0.6));
        let (plate, _) = of.plate([0, 1, 2, 3, 1, 2], &compliance(&material));
        assert_eq!(plate.stiffness(4, 4), 0.0);
        let share = |[k1, k2]: [f64; 2]| {
            let bent = [a, b, c, below, b, c]
                .map(|p| DVec3::Z * (0.5 * (k1 * p.x * p.x + k2 * p.y * p.y)));
            let known = rigidities[0] * k1 * k1 + rigidities[1] * k2 * k2;
            plate.energy(bent) / (0.5 * of.area * known)
        };
        let mut most = 0.0_f64;
        for k in 0..180 {
            let angle = f64::from(k).to_radians();
            most = most.max(share([angle.cos(), angle.sin()]));
        }
        assert!((0.999..1.0 + 1e-12).contains(&most), "{most}");
    }

    /// Six corners on a circle: no number is not one, and the triangle is some times as stiff as
    /// its hinges, not any.
    #[test]
    fn six_corners_on_a_circle_are_not_rigid() {
        let corner = |degrees: f64| {
            let at = DVec2::from_angle(degrees.to_radians());
            DVec3::new(at.x, at.y, 0.0)
        };
        let x = [0.0, 120.0, 240.0, 60.0, 180.0, 300.0].map(corner);
        let of = unfolded(x, DVec2::X);
        let compliance = compliance(&woven(1.0, 1.0, None));
        let (plate, _) = of.plate([0, 1, 2, 3, 4, 5], &compliance);
        let largest = (0..6).map(|i| plate.stiffness(i, i)).fold(0.0, f64::max);
        let hinges: f64 = (of.weights.iter().flatten())
            .flat_map(|weights| weights.map(|k| k * k))
            .sum();
        assert!(largest < 20.0 * hinges / of.area, "{largest} {hinges}");
    }
}
