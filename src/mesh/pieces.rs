//! The connected pieces of a mesh, and its doubled vertices: seams that hold nothing together.

use glam::DVec3;

use crate::disjoint_sets::DisjointSets;

/// The pieces of a cloth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pieces {
    /// Pieces that share no vertex.
    pub count: usize,
    /// Vertices that are where another one is, to the bit.
    pub coincident: usize,
    /// The vertices of it that are where a vertex of another piece is.
    pub apart: usize,
}

impl Pieces {
    /// Finds the pieces of this many cloths, from the triangles of all of them between `positions`,
    /// and the cloth of each vertex.
    #[must_use]
    pub(crate) fn of_cloths(
        cloths: usize,
        positions: &[DVec3],
        triangles: &[[u32; 3]],
        cloth_of_vertex: &[u32],
    ) -> Vec<Self> {
        let mut sets = DisjointSets::of_triangles(triangles, positions.len());
        let vertices = (0..).zip(positions).zip(cloth_of_vertex);
        let mut sorted: Vec<(u32, [u64; 3], u32)> = vertices
            .map(|((v, position), cloth)| {
                // Zero has two signs, and is one place.
                let place = (*position + DVec3::ZERO).to_array().map(f64::to_bits);
                (*cloth, place, sets.least(v))
            })
            .collect();
        sorted.sort_unstable();
        let mut pieces = vec![Self::default(); cloths];
        for there in sorted.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
            let of_cloth = &mut pieces[there[0].0 as usize];
            if there.len() > 1 {
                of_cloth.coincident += there.len();
            }
            if there[0].2 != there[there.len() - 1].2 {
                of_cloth.apart += there.len();
            }
        }
        for (v, cloth) in (0..).zip(cloth_of_vertex) {
            pieces[*cloth as usize].count += usize::from(sets.least(v) == v);
        }
        pieces
    }
}

#[cfg(test)]
mod tests {
    use super::super::{TriMesh, grid};
    use super::*;

    #[test]
    fn pieces_are_counted_and_their_doubled_seams() {
        let mut mesh = grid([1.0, 1.0], [3, 4], DVec3::ZERO, DVec3::ZERO).unwrap();
        let pieces = |mesh: &TriMesh| {
            let cloth = vec![0; mesh.positions.len()];
            Pieces::of_cloths(1, &mesh.positions, &mesh.triangles, &cloth)[0]
        };
        let whole = Pieces {
            count: 1,
            ..Pieces::default()
        };
        assert_eq!(pieces(&mesh), whole);
        // A copy of it stands beside it: its left edge is where the right one was.
        let n = mesh.positions.len() as u32;
        let beside: Vec<DVec3> = mesh.positions.iter().map(|p| *p + DVec3::X).collect();
        let triangles: Vec<[u32; 3]> = mesh.triangles.iter().map(|t| t.map(|v| v + n)).collect();
        mesh.positions.extend(beside);
        mesh.triangles.extend(triangles);
        let cut = Pieces {
            count: 2,
            coincident: 8,
            apart: 8,
        };
        assert_eq!(pieces(&mesh), cut);
        // One triangle across joins them; the seam stays open.
        mesh.triangles.push([0, 1, n]);
        let joined = Pieces {
            count: 1,
            apart: 0,
            ..cut
        };
        assert_eq!(pieces(&mesh), joined);
    }
}
