//! Where the middles of edges go on a smooth surface through all vertices.
//!
//! In: positions of vertices. Out: the displacement of each edge's middle. Vertices stay, so that
//! no feature of the cloth is lost: a wrinkle is as high as it was.
//!
//! The scheme is geometric subdivision \[Yan05\]: the new vertex of an edge e from a to b, whose
//! ends have the normals n and m, is displaced by
//!
//! ```text
//!     d = − ((e · n) n − (e · m) m) / 8,
//! ```
//!
//! the sag of a curve that is perpendicular to both normals. Only its part along the normal of the
//! edge is taken, so that a texture does not move along the cloth, and triangles stay as regular as
//! they are. Normals of vertices have Max's weights \[Max99\], which are exact on spheres: the
//! cross product of a triangle's sides p and q at the vertex counts 1 / (|p|^2 |q|^2) times.
//!
//! Loop's scheme, which \[Bri03, §3.2\] uses, moves vertices inwards and so lowers wrinkles. The
//! modified butterfly scheme keeps them, but takes triangles for regular, and makes folds where
//! they are not.
//!
//! * \[Yan05\] Yang: Surface interpolation of meshes by geometric subdivision.
//! * \[Max99\] Max: Weights for computing vertex normals from facet normals.
//! * \[Bri03\] Bridson: Computational aspects of dynamic surfaces, thesis, Stanford 2003.

use glam::DVec3;

use crate::collide::{NO_FACE, Surface};
use crate::parallel;

/// Displacements of less than this share of an edge's length are left out, because rounding makes
/// them on flat cloth.
const FLAT: f64 = 1e-9;

/// The cosine of half the angle between two faces at an edge below which they are back to back, and
/// the edge has no normal.
const BACK_TO_BACK: f64 = 1e-3;

/// The displacements in m of the middles of the first edges of a surface, whose first triangles are
/// of cloth, for vertices at `x` (m).
pub(super) fn displacements(
    surface: &Surface,
    [triangles, edges]: [usize; 2],
    x: &[DVec3],
) -> Vec<DVec3> {
    let triangles = &surface.triangles()[..triangles];
    let normals = normals(x, triangles);
    let faces = parallel::map(triangles.len(), |t| {
        let [a, b, c] = triangles[t].map(|v| x[v as usize]);
        (b - a).cross(c - a).normalize_or_zero()
    });
    parallel::map(edges, |edge| {
        let ends = surface.edges()[edge].map(|v| v as usize);
        let [one, two] = surface.faces_at(edge as u32);
        let other = if two == NO_FACE { one } else { two };
        let sum = 0.5 * (faces[one as usize] + faces[other as usize]);
        let length = sum.length();
        let along = x[ends[1]] - x[ends[0]];
        let [n, m] = ends.map(|v| normals[v]);
        let sag = (n * along.dot(n) - m * along.dot(m)) * -0.125;
        let normal = sum / length;
        let height = sag.dot(normal);
        // No comparison holds of what is no number.
        if length > BACK_TO_BACK && height.abs() > FLAT * along.length() {
            normal * height
        } else {
            DVec3::ZERO
        }
    })
}

/// The unit normals of vertices at `x` (m); zero where there is none.
pub(super) fn normals(x: &[DVec3], triangles: &[[u32; 3]]) -> Vec<DVec3> {
    let parts = parallel::map(triangles.len(), |t| {
        let [a, b, c] = triangles[t].map(|v| x[v as usize]);
        let sides = [b - a, c - b, a - c];
        let squares = sides.map(DVec3::length_squared);
        let normal = sides[0].cross(sides[1]);
        let at = |k: usize| normal / (squares[k] * squares[(k + 2) % 3]);
        [at(0), at(1), at(2)].map(|part| if part.is_finite() { part } else { DVec3::ZERO })
    });
    // One after the other, because the order of sums is part of the result.
    let mut sums = vec![DVec3::ZERO; x.len()];
    for (corners, parts) in triangles.iter().zip(&parts) {
        for (&v, part) in corners.iter().zip(parts) {
            sums[v as usize] += *part;
        }
    }
    let unit = |sum: &DVec3| sum.normalize_or_zero();
    sums.iter().map(unit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::icosphere;
    use crate::physics::tests::grid;

    fn all(mesh: &crate::mesh::TriMesh) -> (Surface, Vec<DVec3>) {
        let surface = Surface::new(&mesh.triangles, mesh.positions.len());
        let counts = [mesh.triangles.len(), surface.edges().len()];
        let found = displacements(&surface, counts, &mesh.positions);
        (surface, found)
    }

    #[test]
    fn on_a_sphere_normals_are_exact_and_middles_come_closer_to_it_by_the_fourth_order() {
        let mut errors = Vec::new();
        for edge in [0.5, 0.25] {
            let mesh = icosphere(DVec3::ZERO, 1.0, edge).unwrap();
            for (x, normal) in mesh
                .positions
                .iter()
                .zip(normals(&mesh.positions, &mesh.triangles))
            {
                assert!((*x - normal).length() < 1e-12);
            }
            let (surface, found) = all(&mesh);
            let mut worst = [0.0_f64; 2];
            for (ends, by) in surface.edges().iter().zip(&found) {
                let [a, b] = ends.map(|v| mesh.positions[v as usize]);
                let middle = 0.5 * (a + b);
                for (worst, at) in worst.iter_mut().zip([middle, middle + by]) {
                    *worst = worst.max((1.0 - at.length()).abs());
                }
            }
            assert!(worst[1] < 0.1 * worst[0], "{worst:?}");
            errors.push(worst[1]);
        }
        assert!(errors[1] < errors[0] / 12.0, "{errors:?}");
    }

    #[test]
    fn a_plane_stays_as_it_is_to_the_bit() {
        let mut mesh = grid(9, 1.0);
        let turn = glam::DQuat::from_rotation_x(0.7) * glam::DQuat::from_rotation_y(0.4);
        for (k, x) in mesh.positions.iter_mut().enumerate() {
            *x += 0.03 * DVec3::new((k as f64).sin(), (3.0 * k as f64).cos(), 0.0);
            *x = turn * *x;
        }
        let (_, found) = all(&mesh);
        assert!(found.iter().all(|by| *by == DVec3::ZERO));
    }

    #[test]
    fn faces_back_to_back_and_without_area_leave_middles_where_they_are() {
        // The edge from 0 to 1 is folded flat; the last triangle has no area.
        let positions = [DVec3::ZERO, DVec3::X, DVec3::Y, DVec3::Y, DVec3::X * 2.0];
        let mesh = crate::mesh::TriMesh {
            positions: positions.to_vec(),
            triangles: vec![[0, 1, 2], [1, 0, 3], [0, 4, 1]],
        };
        let (_, found) = all(&mesh);
        assert!(found.iter().all(|by| by.is_finite()), "{found:?}");
        assert_eq!(found[0], DVec3::ZERO);
    }
}
