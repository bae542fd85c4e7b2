//! Surfaces: triangles, their edges, and which triangle owns which vertex and edge.
//!
//! Traversal finds pairs of triangles, and vertices are tested against faces and edges against
//! edges. Each vertex and each edge is owned by one of its triangles, the one with the lowest
//! number, and is tested only where its owner meets another triangle: every pair of features once.

use std::io;
use std::sync::Arc;

use crate::archive::{Archive, ArchiveFault, Array, Loader, Saver};
use crate::collide::passing::Passing;
use crate::heap_bytes::{HeapBytes as _, counts_heap, owns_no_heap};
use crate::parallel;

/// Triangles with their features.
#[derive(Clone, Debug, Default)]
pub struct Surface {
    /// Corners of each triangle, which others may share.
    triangles: Arc<Array<[u32; 3]>>,
    edges: Array<[u32; 2]>,
    triangle_edges: Array<[u32; 3]>,
    /// The features that each triangle owns, see [`Face::owned`].
    owned: Array<u8>,
    /// The two faces at each edge, the second [`NO_FACE`] where the surface ends.
    edge_faces: Array<[u32; 2]>,
    passing: Passing,
}

counts_heap!(Surface: triangles, edges, triangle_edges, owned, edge_faces, passing);

/// Stands for the face that is missing where a surface ends.
pub(crate) const NO_FACE: u32 = u32::MAX;

/// A triangle, and the features of it that it owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::collide) struct Face {
    /// Its vertices.
    pub(in crate::collide) corners: [u32; 3],
    /// Bits 0 to 2 are set for the corners that it owns, bits 3 to 5 for the edges from these to
    /// the next corner.
    owned: u32,
}

owns_no_heap!(Face);

impl Face {
    /// The features that it owns: bits 0 to 2 for its corners, bits 3 to 5 for the edges from these
    /// to the next.
    #[inline(always)]
    pub(in crate::collide) fn owned(self) -> u32 {
        self.owned
    }

    /// The corners it owns.
    #[inline]
    pub(in crate::collide) fn owned_corners(self) -> impl Iterator<Item = u32> {
        self.owned_corners_at().map(|(_, vertex)| vertex)
    }

    /// The corners it owns, each after its number, 0 to 2.
    #[inline]
    pub(in crate::collide) fn owned_corners_at(self) -> impl Iterator<Item = (usize, u32)> {
        let owned = move |&k: &usize| self.owned & (1 << k) != 0;
        (0..3).filter(owned).map(move |k| (k, self.corners[k]))
    }

    /// The edges it owns: the number of the corner where each begins, and its ends.
    #[inline]
    pub(in crate::collide) fn owned_edges(self) -> impl Iterator<Item = (usize, [u32; 2])> + Clone {
        let owned = move |&k: &usize| self.owned & (8 << k) != 0;
        let ends = move |k| (k, [self.corners[k], self.corners[(k + 1) % 3]]);
        (0..3).filter(owned).map(ends)
    }
}

impl Surface {
    /// Finds the features of triangles over `vertices` vertices.
    #[must_use]
    pub fn new(triangles: &[[u32; 3]], vertices: usize) -> Self {
        Self::sharing(Arc::new(triangles.to_vec().into()), vertices)
    }

    /// Does as [`Self::new`] for triangles that are not copied.
    #[must_use]
    pub(crate) fn sharing(triangles: Arc<Array<[u32; 3]>>, vertices: usize) -> Self {
        let edges = Edges::new(&triangles, vertices);
        let triangle_edges = parallel::map(triangles.len(), |t| {
            [0, 1, 2].map(|k| edges.number(side(&triangles[t], k)))
        });
        let edges = edges.ends;
        let mut vertex_taken = vec![false; vertices];
        let mut all_owned = Vec::with_capacity(triangles.len());
        let mut edge_faces = vec![[NO_FACE; 2]; edges.len()];
        for (face, (t, sides)) in (0..).zip(triangles.iter().zip(&triangle_edges)) {
            let mut owned = 0_u8;
            for k in 0..3 {
                if !std::mem::replace(&mut vertex_taken[t[k] as usize], true) {
                    owned |= 1 << k;
                }
                let at = &mut edge_faces[sides[k] as usize];
                let first = at[0] == NO_FACE;
                if first {
                    owned |= 8 << k;
                }
                at[usize::from(!first)] = face;
            }
            all_owned.push(owned);
        }
        Self {
            triangles,
            edges: edges.into(),
            triangle_edges: triangle_edges.into(),
            owned: all_owned.into(),
            edge_faces: edge_faces.into(),
            passing: Passing::default(),
        }
    }

    /// Keeps it in an archive, but for the triangles.
    pub(crate) fn save_features(&self, to: &mut Saver<'_>) -> io::Result<()> {
        let Self {
            triangles: _,
            edges,
            triangle_edges,
            owned,
            edge_faces,
            passing,
        } = self;
        edges.save(to)?;
        triangle_edges.save(to)?;
        owned.save(to)?;
        edge_faces.save(to)?;
        passing.save(to)
    }

    /// Reads what [`save_features`](Self::save_features) has written, for these triangles.
    pub(crate) fn load_features(
        triangles: Arc<Array<[u32; 3]>>,
        from: &mut Loader<'_>,
    ) -> Result<Self, ArchiveFault> {
        Ok(Self {
            triangles,
            edges: Array::load(from)?,
            triangle_edges: Array::load(from)?,
            owned: Array::load(from)?,
            edge_faces: Array::load(from)?,
            passing: Passing::load(from)?,
        })
    }

    /// The bytes on the heap of the corners, which others may share and count.
    pub(crate) fn bytes_of_triangles(&self) -> usize {
        self.triangles.heap_bytes()
    }

    /// Lets features of some cloth pass through each other.
    #[must_use]
    pub fn letting(mut self, passing: Passing) -> Self {
        self.passing = passing;
        self
    }

    /// The cloth that passes through itself.
    #[inline]
    #[must_use]
    pub fn passing(&self) -> &Passing {
        &self.passing
    }

    /// Corners of each triangle.
    #[must_use]
    pub fn triangles(&self) -> &[[u32; 3]] {
        &self.triangles
    }

    /// Ends of each edge, the lower vertex first.
    #[must_use]
    pub fn edges(&self) -> &[[u32; 2]] {
        &self.edges
    }

    /// A triangle with the features that it owns.
    #[inline]
    pub(in crate::collide) fn face(&self, triangle: u32) -> Face {
        Face {
            corners: self.triangles[triangle as usize],
            owned: u32::from(self.owned[triangle as usize]),
        }
    }

    /// The vertices that a triangle owns.
    pub(in crate::collide) fn owned_vertices(
        &self,
        triangle: u32,
    ) -> impl Iterator<Item = u32> + '_ {
        self.face(triangle).owned_corners()
    }

    /// The edges that a triangle owns.
    pub(in crate::collide) fn owned_edges(&self, triangle: u32) -> impl Iterator<Item = u32> + '_ {
        let edges = self.face(triangle).owned_edges();
        edges.map(move |(k, _)| self.triangle_edges[triangle as usize][k])
    }

    /// The edges of a triangle.
    #[must_use]
    pub(crate) fn edges_of(&self, triangle: u32) -> [u32; 3] {
        self.triangle_edges[triangle as usize]
    }

    /// The faces at an edge; the second is [`NO_FACE`] where the surface ends.
    #[must_use]
    pub(crate) fn faces_at(&self, edge: u32) -> [u32; 2] {
        self.edge_faces[edge as usize]
    }

    /// The face on the other side of an edge of a face, or [`NO_FACE`].
    #[must_use]
    pub(in crate::collide) fn beyond(&self, edge: u32, face: u32) -> u32 {
        let [one, two] = self.faces_at(edge);
        if one == face { two } else { one }
    }

    /// The corner of a face that is not an end of this edge of it.
    #[must_use]
    pub(in crate::collide) fn apex(&self, face: u32, edge: u32) -> u32 {
        let corners = self.triangles[face as usize];
        let edges = self.triangle_edges[face as usize];
        // Edge k goes from corner k to the next one.
        match edges.map(|e| e == edge) {
            [true, ..] => corners[2],
            [_, true, _] => corners[0],
            _ => corners[1],
        }
    }
}

/// The ends of the side of a triangle that begins at a corner, the lower first.
fn side(t: &[u32; 3], k: usize) -> [u32; 2] {
    let (a, b) = (t[k], t[(k + 1) % 3]);
    if a < b { [a, b] } else { [b, a] }
}

/// The edges of triangles, ascending, and where those with each lower end begin.
struct Edges {
    ends: Vec<[u32; 2]>,
    starts: Vec<u32>,
}

impl Edges {
    /// Sorts all sides into one row for each lower end: rows are short, and sorting each takes a
    /// fraction of what sorting all takes.
    fn new(triangles: &[[u32; 3]], vertices: usize) -> Self {
        let mut starts = vec![0_u32; vertices + 1];
        let sides = || triangles.iter().flat_map(|t| [0, 1, 2].map(|k| side(t, k)));
        sides().for_each(|[low, _]| starts[low as usize + 1] += 1);
        for v in 0..vertices {
            starts[v + 1] += starts[v];
        }
        let mut next = starts.clone();
        let mut high_ends = vec![0; 3 * triangles.len()];
        for [low, high] in sides() {
            let at = &mut next[low as usize];
            high_ends[*at as usize] = high;
            *at += 1;
        }
        drop(next);
        // Each row in place, without repetitions, behind what is left of those before.
        let (mut from, mut left) = (0, 0);
        for low in 0..vertices {
            let to = starts[low + 1] as usize;
            high_ends[from..to].sort_unstable();
            starts[low] = left as u32;
            let first = left;
            for at in from..to {
                if left == first || high_ends[at] != high_ends[left - 1] {
                    high_ends[left] = high_ends[at];
                    left += 1;
                }
            }
            from = to;
        }
        starts[vertices] = left as u32;
        let mut ends = Vec::with_capacity(left);
        for (low, row) in (0..).zip(starts.windows(2)) {
            let row = &high_ends[row[0] as usize..row[1] as usize];
            ends.extend(row.iter().map(|&high| [low, high]));
        }
        Self { ends, starts }
    }

    /// The number of an edge that there is.
    fn number(&self, ends: [u32; 2]) -> u32 {
        let [from, to] = [0, 1].map(|k| self.starts[ends[0] as usize + k]);
        let row = &self.ends[from as usize..to as usize];
        from + row.partition_point(|edge| *edge < ends) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::physics::tests::grid;

    #[test]
    fn edges_are_all_sides_sorted_and_once() {
        // Also sides of a triangle that is there twice, and of one with a corner twice.
        let triangles = [[5, 1, 3], [1, 5, 0], [3, 1, 5], [2, 0, 0], [4, 5, 2]];
        let surface = Surface::new(&triangles, 7);
        let mut expected: Vec<[u32; 2]> = triangles
            .iter()
            .flat_map(|t| [0, 1, 2].map(|k| side(t, k)))
            .collect();
        expected.sort_unstable();
        expected.dedup();
        assert_eq!(surface.edges(), expected);
        for (t, corners) in (0..).zip(&triangles) {
            let edges = surface.edges_of(t).map(|e| surface.edges()[e as usize]);
            assert_eq!(edges, [0, 1, 2].map(|k| side(corners, k)));
        }
    }

    #[test]
    fn every_feature_has_one_owner() {
        let mesh = grid(9, 1.0);
        let surface = Surface::new(&mesh.triangles, mesh.positions.len());
        let all = 0..mesh.triangles.len() as u32;
        let mut vertices: Vec<u32> = all
            .clone()
            .flat_map(|t| surface.owned_vertices(t).collect::<Vec<_>>())
            .collect();
        let mut edges: Vec<u32> = all
            .flat_map(|t| surface.owned_edges(t).collect::<Vec<_>>())
            .collect();
        vertices.sort_unstable();
        edges.sort_unstable();
        assert!(vertices.into_iter().eq(0..81));
        assert!(edges.into_iter().eq(0..surface.edges().len() as u32));
        // Euler: V − E + F = 1 for a disc.
        assert_eq!(81 + mesh.triangles.len(), surface.edges().len() + 1);
    }
}
