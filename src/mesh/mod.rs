//! Triangle meshes: reading, generating, refusing bad ones.
//!
//! In: the checked descriptions of [`crate::scene`]. Out: a [`TriMesh`] in m that physics and
//! collision can use without checking again: [`build_cloth`], [`build_body`].
//!
//! | file | what |
//! |---|---|
//! | `grid` | rectangles with herringbone diagonals: cloth, floors |
//! | `shirt` | a garment: front and back, sewn together |
//! | `solids` | closed surfaces: sphere, box, capsule |
//! | `rotation` | angles to matrices and quaternions |
//! | `read`, `obj`, `ply`, `ply_header`, `stl`, `glb`, `usd` | files, which are not trusted |
//! | `polygon` | their faces, cut into triangles |
//! | `weld` | vertices that lie close together become one |
//! | `file_mesh`, `groups` | what files say beside positions and triangles |
//! | `check` | what a cloth and what a body must be |
//! | `mend` | meshes of bodies that are not closed |
//! | `pieces` | what hangs together in a mesh |
//! | `sizes` | how large it is |
//! | `samples` | meshes that deform: sequences of files, point caches |
//! | `rest_shape` | the shape of cloth at rest, where it is another one |
//! | `build` | scene objects to meshes |

mod build;
mod check;
mod error;
mod file_mesh;
mod file_problem;
mod glb;
mod grid;
mod groups;
mod looks;
mod mend;
mod obj;
mod pieces;
mod ply;
mod ply_header;
mod polygon;
mod read;
mod rest_shape;
mod rotation;
mod samples;
mod shirt;
mod sizes;
mod solids;
mod stl;
mod usd;
mod weld;

use glam::DVec3;

pub(crate) use build::disagreement;
pub use build::{BodyMesh, build_body, build_body_of_file, build_cloth, build_cloth_of_file, warp};
pub use check::{check_body, check_cloth, check_spacing, check_thickness};
pub use error::{Fault, FaultKind, FilePlace, MeshError};
pub use file_mesh::{Faces, FileAxes, FileMesh, Group, Texture, Wanted, join_equal};
pub(crate) use glb::files_beside;
#[cfg(test)]
pub(crate) use glb::made;
pub use grid::{grid, plane};
pub use mend::{Mended, mend_body};
pub use obj::{write_obj, write_obj_faces, write_obj_of_file};
pub use pieces::Pieces;
pub use read::{
    READABLE_FORMATS, is_readable_format, is_y_up_format, read_mesh, read_mesh_file, remedy,
};
pub(crate) use read::{is_usd, joins_equal};
pub use rest_shape::{RestShape, build_rest};
pub(crate) use rotation::{orientation, rotation_matrix, turn};
pub use samples::{MOST_SAMPLES, NoSequence, Samples, files_of};
pub use shirt::shirt;
pub use sizes::{Sizes, mass};
pub use solids::{capsule, cuboid, icosphere};

use crate::heap_bytes::counts_heap;
use crate::scene::Axis;

/// Most vertices of a mesh.
pub const MAX_VERTICES: usize = 20_000_000;

/// Most triangles of a mesh.
pub const MAX_TRIANGLES: usize = 2 * MAX_VERTICES;

/// A triangle mesh in three dimensions; indices are into `positions`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TriMesh {
    /// Vertex positions in m.
    pub positions: Vec<DVec3>,
    /// Three vertex indices each, counter-clockwise seen from the front (outside, for bodies).
    pub triangles: Vec<[u32; 3]>,
}

counts_heap!(TriMesh: positions, triangles);

impl TriMesh {
    /// Mirrors every vertex in the plane through the origin across an axis, and turns triangles
    /// over: what was their front stays it.
    pub fn mirror(&mut self, across: Axis) {
        for position in &mut self.positions {
            let coordinate = &mut position[across as usize];
            *coordinate = -*coordinate;
        }
        for triangle in &mut self.triangles {
            triangle.swap(1, 2);
        }
    }

    /// Scales, then rotates about the origin, then moves every vertex.
    ///
    /// `rotation` is about x, y, z in rad, in this order; what is identity leaves the bits alone.
    pub fn transform(&mut self, scale: f64, rotation: DVec3, translation: DVec3) {
        let matrix = rotation_matrix(rotation);
        for position in &mut self.positions {
            if scale != 1.0 {
                *position *= scale;
            }
            if rotation != DVec3::ZERO {
                *position = matrix * *position;
            }
            *position += translation;
        }
    }

    /// The undirected edges, each once with its smaller index first, ascending.
    pub fn edges(&self) -> Vec<[u32; 2]> {
        let mut edges: Vec<[u32; 2]> = self
            .triangles
            .iter()
            .flat_map(|&[a, b, c]| [[a, b], [b, c], [c, a]])
            .map(|[a, b]| if a < b { [a, b] } else { [b, a] })
            .collect();
        edges.sort_unstable();
        edges.dedup();
        edges
    }

    /// The corners of a triangle in m.
    ///
    /// # Panics
    /// If an index is out of range: only for meshes that were checked or generated.
    pub fn corners(&self, triangle: [u32; 3]) -> [DVec3; 3] {
        triangle.map(|vertex| self.positions[vertex as usize])
    }

    /// Area in m².
    ///
    /// # Panics
    /// As [`Self::corners`].
    pub fn area(&self) -> f64 {
        let double = |triangle: &[u32; 3]| {
            let [a, b, c] = self.corners(*triangle);
            (b - a).cross(c - a).length()
        };
        self.triangles.iter().map(double).sum::<f64>() / 2.0
    }

    /// Enclosed volume in m³ of a closed mesh, positive if its triangles face outwards.
    ///
    /// # Panics
    /// As [`Self::corners`].
    pub fn volume(&self) -> f64 {
        // Tetrahedra from a point of the mesh: far from the origin nothing cancels.
        let Some(&origin) = self.positions.first() else {
            return 0.0;
        };
        let six = |triangle: &[u32; 3]| {
            let [a, b, c] = self.corners(*triangle).map(|corner| corner - origin);
            a.dot(b.cross(c))
        };
        self.triangles.iter().map(six).sum::<f64>() / 6.0
    }

    /// The least and the greatest coordinates in m, or nothing for a mesh without vertices.
    pub fn bounds(&self) -> Option<[DVec3; 2]> {
        let first = *self.positions.first()?;
        Some(
            self.positions
                .iter()
                .fold([first; 2], |[low, high], &p| [low.min(p), high.max(p)]),
        )
    }
}

/// `length / edge` rounded up, at least `least`, as a count of edges; refuses absurd ones.
fn subdivisions(what: &str, length: f64, edge: f64, least: u32) -> Result<u32, MeshError> {
    let count = (length / edge).ceil();
    if count.is_nan() || count > MAX_VERTICES as f64 || edge <= 0.0 {
        return Err(MeshError::TooLarge {
            what: what.to_owned(),
            count: count.max(0.0),
            most: MAX_VERTICES,
        });
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "in 0..=MAX"
    )]
    Ok((count as u32).max(least))
}

/// Refuses a mesh with more than [`MAX_VERTICES`] before memory is taken for it.
fn bounded(what: &str, vertices: u64) -> Result<(), MeshError> {
    if vertices > MAX_VERTICES as u64 {
        #[expect(clippy::cast_precision_loss, reason = "for a message")]
        let count = vertices as f64;
        return Err(MeshError::TooLarge {
            what: what.to_owned(),
            count,
            most: MAX_VERTICES,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::f64::consts::FRAC_PI_2;

    use super::*;

    #[test]
    fn rotations_are_about_x_then_y_then_z() {
        let mut mesh = TriMesh {
            positions: vec![DVec3::Y],
            triangles: vec![],
        };
        // y -> z (about x), z -> x (about y), x -> y (about z).
        mesh.transform(2.0, DVec3::splat(FRAC_PI_2), DVec3::Z);
        assert!(mesh.positions[0].abs_diff_eq(DVec3::new(0.0, 2.0, 1.0), 1e-15));
    }

    #[test]
    fn the_identity_keeps_every_bit() {
        let before = grid([1.0, 0.3], [7, 5], DVec3::new(0.1, 0.2, 0.3), DVec3::ZERO).unwrap();
        let mut after = before.clone();
        after.transform(1.0, DVec3::ZERO, DVec3::ZERO);
        assert_eq!(before, after);
    }

    #[test]
    fn a_mirrored_body_still_faces_outwards() {
        let mut mesh = cuboid(DVec3::ONE, DVec3::new(1.0, 2.0, 3.0), 1.0).unwrap();
        mesh.mirror(Axis::Y);
        assert!((mesh.volume() - 6.0).abs() < 1e-12);
        let [low, high] = mesh.bounds().unwrap();
        assert_eq!((low.y, high.y), (-2.0, 0.0));
        check_body(&mesh, true).unwrap();
    }

    #[test]
    fn a_mesh_without_vertices_has_no_bounds() {
        assert_eq!(TriMesh::default().bounds(), None);
        assert_eq!(TriMesh::default().volume(), 0.0);
    }
}
