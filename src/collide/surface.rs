//! Surfaces: triangles, their edges, and which triangle owns which vertex and edge.
//!
//! Traversal finds pairs of triangles, and vertices are tested against faces and edges against
//! edges. Each vertex and each edge is owned by one of its triangles, the one with the lowest
//! number, and is tested only where its owner meets another triangle: every pair of features once.

use crate::collide::passing::Passing;

/// Triangles with their features.
#[derive(Clone, Debug, Default)]
pub struct Surface {
    triangles: Vec<[u32; 3]>,
    edges: Vec<[u32; 2]>,
    triangle_edges: Vec<[u32; 3]>,
    faces: Vec<Face>,
    /// The two faces at each edge, the second [`NO_FACE`] where the surface ends.
    edge_faces: Vec<[u32; 2]>,
    passing: Passing,
}

/// Stands for the face that is missing where a surface ends.
pub(in crate::collide) const NO_FACE: u32 = u32::MAX;

/// A triangle, and the features of it that it owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::collide) struct Face {
    /// Its vertices.
    pub(in crate::collide) corners: [u32; 3],
    /// Bits 0 to 2 are set for the corners that it owns, bits 3 to 5 for the edges from these to
    /// the next corner.
    owned: u32,
}

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
        let side = |t: &[u32; 3], k: usize| {
            let (a, b) = (t[k], t[(k + 1) % 3]);
            if a < b { [a, b] } else { [b, a] }
        };
        let mut edges: Vec<[u32; 2]> = triangles
            .iter()
            .flat_map(|t| [side(t, 0), side(t, 1), side(t, 2)])
            .collect();
        edges.sort_unstable();
        edges.dedup();
        let mut vertex_taken = vec![false; vertices];
        let mut edge_taken = vec![false; edges.len()];
        let mut faces = Vec::with_capacity(triangles.len());
        let mut triangle_edges = Vec::with_capacity(triangles.len());
        let mut edge_faces = vec![[NO_FACE; 2]; edges.len()];
        for (face, t) in (0..).zip(triangles) {
            let mut bits = 0;
            let mut sides = [0; 3];
            for k in 0..3 {
                if !std::mem::replace(&mut vertex_taken[t[k] as usize], true) {
                    bits |= 1 << k;
                }
                let edge = edges.partition_point(|e| *e < side(t, k));
                sides[k] = edge as u32;
                let first = !std::mem::replace(&mut edge_taken[edge], true);
                if first {
                    bits |= 8 << k;
                }
                edge_faces[edge][usize::from(!first)] = face;
            }
            faces.push(Face {
                corners: *t,
                owned: bits,
            });
            triangle_edges.push(sides);
        }
        Self {
            triangles: triangles.to_vec(),
            edges,
            triangle_edges,
            faces,
            edge_faces,
            passing: Passing::default(),
        }
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
        self.faces[triangle as usize]
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
    pub(in crate::collide) fn edges_of(&self, triangle: u32) -> [u32; 3] {
        self.triangle_edges[triangle as usize]
    }

    /// The faces at an edge; the second is [`NO_FACE`] where the surface ends.
    #[must_use]
    pub(in crate::collide) fn faces_at(&self, edge: u32) -> [u32; 2] {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::physics::tests::grid;

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
