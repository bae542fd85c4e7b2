//! A mesh as its file has it: faces of any number of corners, texture coordinates, groups, and the
//! vertices before those that coincide are joined.
//!
//! The simulator computes with the triangles that are made of it. Exports for an artist have the
//! file's own vertices and faces: a point cache is played on that mesh.

use std::collections::HashMap;

use glam::DVec3;

use super::TriMesh;
use crate::heap_bytes::counts_heap;
use crate::scene::Up;

/// A mesh, and what its file says beside positions and triangles.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FileMesh {
    /// The triangles, and the vertices that they have.
    pub mesh: TriMesh,
    /// The faces, in the order in which `mesh` has their triangles.
    pub faces: Faces,
    /// Texture coordinates, if the file has any.
    pub texture: Option<Texture>,
    /// The vertex of `mesh` that each vertex of the file became, if coincident ones were joined.
    pub joined: Option<Vec<u32>>,
    /// How many vertices became one with others because they were close to them, if that was asked
    /// for.
    pub welded: Option<usize>,
    /// The velocities of the vertices of `mesh`, in m/s once it is placed, if they were asked for.
    pub velocities: Option<Vec<DVec3>>,
    /// Whether the file has velocities of vertices, also where nobody asked for them.
    pub has_velocities: bool,
    /// The groups that were asked for and are there.
    pub groups: Vec<Group>,
    /// The names of all groups of the file, each once.
    pub group_names: Vec<String>,
    /// The units and axes that the file names.
    pub axes: FileAxes,
}

counts_heap!(FileMesh:
    mesh, faces, texture, joined, velocities, groups, group_names;
    without has_velocities, axes, welded
);

/// The parts of a file beside its mesh that are read only for those who ask.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wanted<'a> {
    /// The names of groups.
    pub groups: &'a [&'a str],
    /// Whether velocities of vertices are wanted. A file without them is then refused.
    pub velocities: bool,
}

impl<'a> Wanted<'a> {
    /// Asks for the groups of these names and nothing else.
    #[must_use]
    pub fn groups(groups: &'a [&'a str]) -> Self {
        Self {
            groups,
            ..Self::default()
        }
    }
}

/// The units and axes that a file names.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FileAxes {
    /// The length of a unit in m.
    pub metres: Option<f64>,
    /// The axis that points upwards.
    pub up: Option<Up>,
}

/// Faces of any number of corners, which are vertices of the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Faces {
    /// The corners of all faces, one face after the other.
    pub corners: Vec<u32>,
    /// The number of corners of each face.
    pub counts: Vec<u32>,
}

counts_heap!(Faces: corners, counts);

/// Texture coordinates of the corners of faces.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Texture {
    /// The coordinates, from the lower left corner of a picture to its upper right one in 0 to 1.
    pub coordinates: Vec<[f64; 2]>,
    /// The index of the coordinates at each corner of [`Faces::corners`].
    pub corners: Vec<u32>,
}

counts_heap!(Texture: coordinates, corners);

/// Vertices that a file names together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    /// The name.
    pub name: String,
    /// The vertices of the mesh, ascending.
    pub vertices: Vec<u32>,
}

counts_heap!(Group: name, vertices);

impl Faces {
    /// Makes faces of triangles.
    #[must_use]
    pub fn of_triangles(triangles: &[[u32; 3]]) -> Self {
        Self {
            corners: triangles.as_flattened().to_vec(),
            counts: vec![3; triangles.len()],
        }
    }

    /// Adds a face.
    pub fn push(&mut self, face: &[u32]) {
        self.corners.extend_from_slice(face);
        self.counts
            .push(u32::try_from(face.len()).unwrap_or(u32::MAX));
    }

    /// The faces, each as its corners.
    pub fn iter(&self) -> impl Iterator<Item = &[u32]> {
        let mut rest = &self.corners[..];
        self.counts.iter().map(move |&count| {
            let (face, after) = rest.split_at((count as usize).min(rest.len()));
            rest = after;
            face
        })
    }

    /// How many faces have four corners, and how many have more.
    #[must_use]
    pub fn polygons(&self) -> [usize; 2] {
        let quads = self.counts.iter().filter(|&&count| count == 4).count();
        let more = self.counts.iter().filter(|&&count| count > 4).count();
        [quads, more]
    }
}

impl FileMesh {
    /// Makes the mesh of a file that has triangles and nothing else.
    #[must_use]
    pub fn of_triangles(mesh: TriMesh) -> Self {
        Self {
            faces: Faces::of_triangles(&mesh.triangles),
            mesh,
            ..Self::default()
        }
    }

    /// The vertex of the mesh that a vertex of the file became, by its number there; `None` if the
    /// file has none of that number.
    #[must_use]
    pub fn vertex(&self, number: u64) -> Option<u32> {
        let number = usize::try_from(number).ok()?;
        match &self.joined {
            Some(joined) => joined.get(number).copied(),
            None => (number < self.vertices()).then_some(number as u32),
        }
    }

    /// The number of vertices that the file has.
    #[must_use]
    pub fn vertices(&self) -> usize {
        (self.joined.as_ref()).map_or(self.mesh.positions.len(), Vec::len)
    }

    /// Values of the file's vertices, from those of the mesh's.
    #[must_use]
    pub fn of_file<T: Copy>(&self, values: &[T]) -> Vec<T> {
        match &self.joined {
            Some(joined) => joined.iter().map(|&v| values[v as usize]).collect(),
            None => values.to_vec(),
        }
    }

    /// Turns all faces over.
    pub(super) fn turn_over(&mut self) {
        let mut start = 0;
        for &count in &self.faces.counts {
            // The first corner stays, as it does in triangles.
            let end = start + count as usize;
            self.faces.corners[start + 1..end].reverse();
            if let Some(texture) = &mut self.texture {
                texture.corners[start + 1..end].reverse();
            }
            start = end;
        }
    }
}

/// Joins positions that are equal: those that are left, in the order in which they came first, and
/// which of them each became. Zeros of either sign are equal.
#[must_use]
pub fn join_equal(positions: &[DVec3]) -> (Vec<DVec3>, Vec<u32>) {
    let mut places: HashMap<[u64; 3], u32> = HashMap::with_capacity(positions.len());
    let mut left = Vec::new();
    let joined = positions.iter().map(|&position| {
        let key = position.to_array().map(|x| (x + 0.0).to_bits());
        *places.entry(key).or_insert_with(|| {
            left.push(position);
            u32::try_from(left.len() - 1).unwrap_or(u32::MAX)
        })
    });
    let joined = joined.collect();
    (left, joined)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faces_are_counted_by_their_corners_and_turned_over_with_their_texture() {
        let mut faces = Faces::of_triangles(&[[0, 1, 2]]);
        faces.push(&[0, 2, 3, 4]);
        faces.push(&[5, 6, 7, 8, 9]);
        assert_eq!(faces.polygons(), [1, 1]);
        let lengths: Vec<usize> = faces.iter().map(<[u32]>::len).collect();
        assert_eq!(lengths, [3, 4, 5]);
        let corners = (0..12).collect();
        let mut mesh = FileMesh {
            faces,
            texture: Some(Texture {
                coordinates: vec![[0.0; 2]; 12],
                corners,
            }),
            ..FileMesh::default()
        };
        mesh.turn_over();
        let turned: Vec<&[u32]> = mesh.faces.iter().collect();
        let known: [&[u32]; 3] = [&[0, 2, 1], &[0, 4, 3, 2], &[5, 9, 8, 7, 6]];
        assert_eq!(turned, known);
        let texture = mesh.texture.unwrap();
        assert_eq!(texture.corners, [0, 2, 1, 3, 6, 5, 4, 7, 11, 10, 9, 8]);
    }

    #[test]
    fn equal_positions_become_one_and_all_others_stay() {
        let positions = [DVec3::X, -0.0 * DVec3::X, DVec3::ZERO, DVec3::X, DVec3::Y];
        let (left, joined) = join_equal(&positions);
        assert_eq!(left, [DVec3::X, DVec3::ZERO, DVec3::Y]);
        assert_eq!(joined, [0, 1, 1, 0, 2]);
    }
}
