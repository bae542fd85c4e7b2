//! Rectangles of triangles with herringbone diagonals.
//!
//! The cells of a column have the same diagonal and neighbouring columns opposite ones, so that the
//! diagonals form zig-zags along x:
//!
//! ```text
//!  +--+--+--+--+        / is cut for even columns: (0,0)-(1,1)
//!  | /|\ | /|\ |        \ for odd columns:         (1,0)-(0,1)
//!  |/ | \|/ | \|
//!  +--+--+--+--+
//! ```
//!
//! Every inner vertex has six neighbours, and none of the two diagonal directions is favoured: a
//! grid with parallel diagonals is stiffer along them, one with diagonals that alternate like a
//! chess board has vertices of four and eight neighbours.

use glam::DVec3;

use super::{MeshError, TriMesh, bounded, rotation_matrix, subdivisions};

/// A flat rectangle: `vertices` along x and y, at least 2 each, over `size` in m.
///
/// It lies in the plane z = 0 before `rotation` (about x, y, z in rad, in this order) and is then
/// moved to `center` in m. Vertex `j * vertices[0] + i` is the `i`-th along x and `j`-th along y;
/// the front is where z points.
///
/// # Errors
/// [`MeshError::TooLarge`] for more than [`super::MAX_VERTICES`] vertices. Fewer than 2 along an
/// axis count as 2.
pub fn grid(
    size: [f64; 2],
    vertices: [usize; 2],
    center: DVec3,
    rotation: DVec3,
) -> Result<TriMesh, MeshError> {
    let counts = vertices.map(|count| count.max(2) as u64);
    bounded("the grid", counts[0].saturating_mul(counts[1]))?;
    let [nx, ny] = vertices.map(|count| count.max(2));
    let matrix = rotation_matrix(rotation);
    let coordinate = |index: usize, count: usize, size: f64| {
        #[expect(clippy::cast_precision_loss, reason = "at most MAX_VERTICES")]
        let fraction = index as f64 / (count - 1) as f64;
        (fraction - 0.5) * size
    };
    let mut positions = Vec::with_capacity(nx * ny);
    for j in 0..ny {
        for i in 0..nx {
            let flat = DVec3::new(coordinate(i, nx, size[0]), coordinate(j, ny, size[1]), 0.0);
            let turned = if rotation == DVec3::ZERO {
                flat
            } else {
                matrix * flat
            };
            positions.push(center + turned);
        }
    }
    Ok(TriMesh {
        positions,
        triangles: herringbone(nx, ny),
    })
}

/// A square of side `extent` around `point` for the plane with the unit `normal`, its front there.
///
/// Cells are `edge` long or a little shorter; all lengths in m.
///
/// # Errors
/// [`MeshError::TooLarge`] for more than [`super::MAX_VERTICES`] vertices.
pub fn plane(point: DVec3, normal: DVec3, extent: f64, edge: f64) -> Result<TriMesh, MeshError> {
    let cells = subdivisions("the plane", extent, edge, 1)? as usize;
    let mut mesh = grid([extent; 2], [cells + 1; 2], DVec3::ZERO, DVec3::ZERO)?;
    let (tangent, bitangent) = normal.any_orthonormal_pair();
    for position in &mut mesh.positions {
        *position = point + tangent * position.x + bitangent * position.y;
    }
    Ok(mesh)
}

/// Triangles of a grid of `nx` times `ny` vertices.
fn herringbone(nx: usize, ny: usize) -> Vec<[u32; 3]> {
    let mut triangles = Vec::with_capacity(2 * (nx - 1) * (ny - 1));
    for j in 0..ny - 1 {
        for i in 0..nx - 1 {
            #[expect(clippy::cast_possible_truncation, reason = "at most MAX_VERTICES")]
            let a = (j * nx + i) as u32;
            #[expect(clippy::cast_possible_truncation, reason = "at most MAX_VERTICES")]
            let (b, c, d) = (a + 1, a + nx as u32, a + nx as u32 + 1);
            triangles.extend(cell([a, b, c, d], i % 2 == 0));
        }
    }
    triangles
}

/// The two triangles of a cell with corners (0,0), (1,0), (0,1), (1,1).
pub(super) fn cell([a, b, c, d]: [u32; 4], even: bool) -> [[u32; 3]; 2] {
    if even {
        [[a, b, d], [a, d, c]]
    } else {
        [[a, b, c], [b, d, c]]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::check_cloth;
    use super::*;

    #[test]
    fn four_cells_zig_zag() {
        let mesh = grid([2.0, 2.0], [3, 3], DVec3::ZERO, DVec3::ZERO).unwrap();
        let diagonals: Vec<_> = mesh
            .edges()
            .into_iter()
            .filter(|&[a, b]| {
                let along = mesh.positions[b as usize] - mesh.positions[a as usize];
                along.x != 0.0 && along.y != 0.0
            })
            .collect();
        assert_eq!(diagonals, [[0, 4], [2, 4], [3, 7], [5, 7]]);
    }

    #[test]
    fn inner_vertices_have_six_neighbours() {
        let mesh = grid([1.0, 1.0], [7, 6], DVec3::ZERO, DVec3::ZERO).unwrap();
        let mut degree = vec![0; mesh.positions.len()];
        mesh.edges()
            .iter()
            .flatten()
            .for_each(|&v| degree[v as usize] += 1);
        for j in 1..5 {
            for i in 1..6 {
                assert_eq!(degree[j * 7 + i], 6, "vertex ({i}, {j})");
            }
        }
    }

    #[test]
    fn absurd_sizes_are_refused_without_taking_memory() {
        let huge = grid([1.0; 2], [usize::MAX, usize::MAX], DVec3::ZERO, DVec3::ZERO);
        assert!(matches!(huge, Err(MeshError::TooLarge { .. })));
        for edge in [1e-9, 0.0, -1.0, f64::NAN] {
            let plane = plane(DVec3::ZERO, DVec3::Z, 1.0, edge);
            assert!(matches!(plane, Err(MeshError::TooLarge { .. })), "{edge}");
        }
    }

    proptest! {
        #[test]
        fn grids_are_discs_of_the_right_size(
            size in [1e-3f64..10.0, 1e-3..10.0],
            vertices in [2usize..20, 2usize..20],
            center in [-5.0f64..5.0, -5.0..5.0, -5.0..5.0],
            rotation in [-3.0f64..3.0, -3.0..3.0, -3.0..3.0],
        ) {
            let center = DVec3::from_array(center);
            let rotation = DVec3::from_array(rotation);
            let mesh = grid(size, vertices, center, rotation).unwrap();
            prop_assert!(check_cloth(&mesh).is_ok());
            let euler = mesh.positions.len() + mesh.triangles.len() - mesh.edges().len();
            prop_assert_eq!(euler, 1);
            let area = size[0] * size[1];
            prop_assert!((mesh.area() - area).abs() <= 1e-9 * (area + 1.0));
            let mean = mesh.positions.iter().sum::<DVec3>() / mesh.positions.len() as f64;
            prop_assert!(mean.abs_diff_eq(center, 1e-9));
            let up = rotation_matrix(rotation) * DVec3::Z;
            for &triangle in &mesh.triangles {
                let [a, b, c] = mesh.corners(triangle);
                prop_assert!((b - a).cross(c - a).dot(up) > 0.0);
            }
        }

        #[test]
        fn planes_face_along_their_normal(
            normal in [-1.0f64..1.0, -1.0..1.0, -1.0..1.0],
            extent in 0.1f64..10.0,
            edge in 0.05f64..3.0,
        ) {
            let normal = DVec3::from_array(normal);
            prop_assume!(normal.length() > 1e-3);
            let normal = normal.normalize();
            let point = DVec3::new(1.0, 2.0, 3.0);
            let mesh = plane(point, normal, extent, edge).unwrap();
            prop_assert!((mesh.area() - extent * extent).abs() < 1e-9 * (1.0 + extent * extent));
            for &triangle in &mesh.triangles {
                let [a, b, c] = mesh.corners(triangle);
                prop_assert!((b - a).cross(c - a).normalize().dot(normal) > 1.0 - 1e-9);
                prop_assert!((a - point).dot(normal).abs() < 1e-12 * (1.0 + extent));
                prop_assert!((b - a).length() <= edge * 1.415);
            }
        }
    }
}
