//! The triangles that are judged, with their edges, and the pieces of cloth and bodies that they
//! are of.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A piece: a cloth or a body.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Piece {
    /// The name, for people.
    pub name: String,
    /// Whether it is a body. Bodies are not judged against each other, nor against themselves.
    pub is_body: bool,
    /// Its vertices.
    pub vertices: Range<u32>,
    /// Whether it is cloth that passes through itself: it is not judged against itself.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub passes_itself: bool,
    /// Pairs of a vertex of it and another vertex that a seam sews together. Features with one of
    /// them each are neighbours, as if both were one vertex: they are not judged against each
    /// other.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sewn: Vec<[u32; 2]>,
}

/// Triangles of pieces: cloths first, then bodies, with vertices numbered through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Surface {
    pieces: Vec<Piece>,
    triangles: Vec<[u32; 3]>,
    /// The triangles before this are of cloths.
    cloth: u32,
    /// The vertices and edges that are looked at with each triangle, so that each is looked at
    /// once.
    features: Vec<Features>,
    /// Pairs of vertices that are sewn together, in both orders.
    sewn: HashSet<[u32; 2]>,
}

/// The features that are looked at with a triangle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Features {
    vertices: [bool; 3],
    edges: [bool; 3],
}

/// A reason for which triangles cannot be judged.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum SurfaceError {
    /// The vertices of pieces do not follow each other.
    #[error("the vertices of piece {0} do not begin where those of the one before end")]
    Gap(usize),
    /// A body stands before a cloth.
    #[error("cloth {0} stands behind a body; cloths come first")]
    Order(usize),
    /// A triangle is not of one piece, or stands before those of an earlier one, or names a vertex
    /// twice.
    #[error("triangle {0} is not of one piece, out of order, or has a corner twice")]
    Triangle(usize),
    /// A seam names a vertex that is not there.
    #[error("vertex {0} is sewn to another one, and is not there")]
    Sewn(u32),
}

impl Surface {
    /// Triangles in the order of their pieces.
    ///
    /// # Errors
    /// [`SurfaceError`].
    pub fn new(pieces: Vec<Piece>, triangles: Vec<[u32; 3]>) -> Result<Self, SurfaceError> {
        let mut end = 0;
        for (index, piece) in pieces.iter().enumerate() {
            if piece.vertices.start != end || piece.vertices.end < end {
                return Err(SurfaceError::Gap(index));
            }
            if !piece.is_body && index > 0 && pieces[index - 1].is_body {
                return Err(SurfaceError::Order(index));
            }
            end = piece.vertices.end;
        }
        let mut at = 0;
        let mut cloth = 0;
        for (index, [a, b, c]) in triangles.iter().enumerate() {
            while pieces.get(at).is_some_and(|piece| piece.vertices.end <= *a) {
                at += 1;
            }
            let piece = pieces.get(at);
            let is_of_one = |piece: &&Piece| [a, b, c].iter().all(|v| piece.vertices.contains(v));
            let piece = piece.filter(|p| is_of_one(p) && a != b && b != c && c != a);
            let piece = piece.ok_or(SurfaceError::Triangle(index))?;
            cloth += u32::from(!piece.is_body);
        }
        let sewn = pieces.iter().flat_map(|piece| &piece.sewn);
        if let Some(&vertex) = sewn.clone().flatten().find(|v| **v >= end) {
            return Err(SurfaceError::Sewn(vertex));
        }
        let sewn: HashSet<[u32; 2]> = sewn.flat_map(|&[v, w]| [[v, w], [w, v]]).collect();
        let features = share_out(&triangles, end as usize);
        Ok(Self {
            sewn,
            pieces,
            triangles,
            cloth,
            features,
        })
    }

    /// The pieces.
    #[must_use]
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// The number of vertices.
    #[must_use]
    pub fn vertices(&self) -> usize {
        self.pieces
            .last()
            .map_or(0, |last| last.vertices.end as usize)
    }

    /// The triangles.
    #[must_use]
    pub fn triangles(&self) -> &[[u32; 3]] {
        &self.triangles
    }

    /// The triangles of cloths.
    pub(crate) fn of_cloth(&self) -> Range<u32> {
        0..self.cloth
    }

    /// The triangles of bodies.
    pub(crate) fn of_bodies(&self) -> Range<u32> {
        self.cloth..self.triangles.len() as u32
    }

    /// The piece that a vertex is of.
    #[must_use]
    pub fn piece_of(&self, vertex: u32) -> usize {
        self.pieces
            .partition_point(|piece| piece.vertices.end <= vertex)
    }

    /// Whether two features share a vertex, or have vertices that are sewn together.
    #[inline]
    pub(crate) fn are_neighbours(&self, one: &[u32], other: &[u32]) -> bool {
        let meet = |v: &u32| {
            other.contains(v)
                || !self.sewn.is_empty() && other.iter().any(|w| self.sewn.contains(&[*v, *w]))
        };
        one.iter().any(meet)
    }

    /// The vertices that are looked at with a triangle.
    pub(crate) fn vertices_at(&self, triangle: u32) -> impl Iterator<Item = u32> {
        let corners = self.triangles[triangle as usize];
        let own = self.features[triangle as usize].vertices;
        (0..3).filter(move |&k| own[k]).map(move |k| corners[k])
    }

    /// The edges that are looked at with a triangle.
    pub(crate) fn edges_at(&self, triangle: u32) -> impl Iterator<Item = [u32; 2]> {
        let corners = self.triangles[triangle as usize];
        let own = self.features[triangle as usize].edges;
        let edge = move |k: usize| [corners[k], corners[(k + 1) % 3]];
        (0..3).filter(move |&k| own[k]).map(edge)
    }
}

/// Gives each vertex and each edge to the first triangle that has it.
fn share_out(triangles: &[[u32; 3]], vertices: usize) -> Vec<Features> {
    let mut taken = vec![false; vertices];
    let mut edges = HashMap::new();
    let of_triangle = |corners: &[u32; 3]| {
        let mut features = Features::default();
        for k in 0..3 {
            let (a, b) = (corners[k], corners[(k + 1) % 3]);
            features.vertices[k] = !std::mem::replace(&mut taken[a as usize], true);
            features.edges[k] = edges.insert((a.min(b), a.max(b)), ()).is_none();
        }
        features
    };
    triangles.iter().map(of_triangle).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(name: &str, is_body: bool, vertices: Range<u32>) -> Piece {
        Piece {
            name: name.to_owned(),
            is_body,
            vertices,
            passes_itself: false,
            sewn: Vec::new(),
        }
    }

    #[test]
    fn features_at_vertices_that_are_sewn_together_are_neighbours() {
        let mut pieces = vec![piece("one", false, 0..3), piece("other", false, 3..6)];
        pieces[1].sewn = vec![[4, 1]];
        let triangles = vec![[0, 1, 2], [3, 4, 5]];
        let surface = Surface::new(pieces.clone(), triangles.clone()).unwrap();
        assert!(surface.are_neighbours(&[1], &[3, 4, 5]) && surface.are_neighbours(&[4], &[0, 1]));
        assert!(surface.are_neighbours(&[0, 2], &[2, 5]));
        assert!(
            !surface.are_neighbours(&[0], &[3, 4, 5]) && !surface.are_neighbours(&[1], &[3, 5])
        );
        pieces[0].sewn = vec![[0, 6]];
        let error = Surface::new(pieces, triangles).unwrap_err();
        assert_eq!(error, SurfaceError::Sewn(6));
    }

    #[test]
    fn each_feature_is_of_one_triangle() {
        let pieces = vec![piece("cloth", false, 0..4), piece("body", true, 4..7)];
        let surface = Surface::new(pieces, vec![[0, 1, 2], [0, 2, 3], [4, 5, 6]]).unwrap();
        let vertices: Vec<u32> = (0..3).flat_map(|t| surface.vertices_at(t)).collect();
        assert_eq!(vertices, [0, 1, 2, 3, 4, 5, 6]);
        let edges: Vec<[u32; 2]> = (0..2).flat_map(|t| surface.edges_at(t)).collect();
        assert_eq!(edges, [[0, 1], [1, 2], [2, 0], [2, 3], [3, 0]]);
        assert_eq!((surface.of_cloth(), surface.of_bodies()), (0..2, 2..3));
        assert_eq!((surface.piece_of(3), surface.piece_of(4)), (0, 1));
    }

    #[test]
    fn surfaces_that_are_none_are_refused() {
        let cloth = piece("cloth", false, 0..3);
        let new = |pieces: &[Piece], triangles: &[[u32; 3]]| {
            Surface::new(pieces.to_vec(), triangles.to_vec()).unwrap_err()
        };
        let far = piece("far", false, 4..7);
        assert_eq!(new(&[cloth.clone(), far], &[]), SurfaceError::Gap(1));
        let (body, next) = (piece("body", true, 0..3), piece("cloth", false, 3..6));
        assert_eq!(new(&[body, next.clone()], &[]), SurfaceError::Order(1));
        let both = [cloth.clone(), next];
        assert_eq!(new(&both, &[[0, 1, 3]]), SurfaceError::Triangle(0));
        assert_eq!(
            new(&both, &[[3, 4, 5], [0, 1, 2]]),
            SurfaceError::Triangle(1)
        );
        assert_eq!(
            new(std::slice::from_ref(&cloth), &[[0, 1, 1]]),
            SurfaceError::Triangle(0)
        );
        assert_eq!(new(&[cloth], &[[0, 1, 7]]), SurfaceError::Triangle(0));
    }
}
