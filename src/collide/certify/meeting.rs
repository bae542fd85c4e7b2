//! The pairs that may cross: pairs of features, and cloth beside bodies that have no triangles.

use super::plane::Kind;

/// A pair of features that share no vertex.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pair {
    /// A vertex and a face, or two edges.
    pub kind: Kind,
    /// The vertices of the first feature, then of the second.
    pub vertices: [u32; 4],
}

impl Pair {
    /// A vertex and a face.
    pub(super) fn vertex_face(vertex: u32, [a, b, c]: [u32; 3]) -> Self {
        Self {
            kind: Kind::VertexFace,
            vertices: [vertex, a, b, c],
        }
    }

    /// Two edges, in one order whichever way they are given: a pair that two searches come by is
    /// one pair.
    pub(super) fn edges(one: [u32; 2], other: [u32; 2]) -> Self {
        let ascending = |[a, b]: [u32; 2]| [a.min(b), a.max(b)];
        let [one, other] = [ascending(one), ascending(other)];
        let ([a, b], [c, d]) = (one.min(other), one.max(other));
        Self {
            kind: Kind::EdgeEdge,
            vertices: [a, b, c, d],
        }
    }
}

/// A pair that may cross: two features, or a face or a vertex of cloth and a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Meeting {
    /// Two features of triangles.
    Features(Pair),
    /// A face of cloth and a ball or a capsule.
    Round {
        /// The corners of the face.
        face: [u32; 3],
        /// The number of the body.
        body: u32,
    },
    /// A vertex of cloth and a half space, or a body by its sampled distance.
    Vertex {
        /// The vertex.
        vertex: u32,
        /// The number of the body.
        body: u32,
    },
}

impl Meeting {
    /// The vertices of its features.
    pub(super) fn vertices(&self) -> &[u32] {
        match self {
            Self::Features(pair) => &pair.vertices,
            Self::Round { face, .. } => face,
            Self::Vertex { vertex, .. } => std::slice::from_ref(vertex),
        }
    }
}

/// A vertex that a body left no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Squeezed {
    /// The vertex.
    pub vertex: u32,
    /// The body that it lets through.
    pub body: u32,
    /// The body that leaves no room on the other side; `None` if cloth does that cannot give way.
    pub against: Option<u32>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_edges_are_one_pair_whichever_way_they_are_given() {
        let pair = Pair::edges([3, 7], [2, 9]);
        assert_eq!(pair.vertices, [2, 9, 3, 7]);
        for (one, other) in [([7, 3], [2, 9]), ([9, 2], [7, 3]), ([2, 9], [3, 7])] {
            assert_eq!(Pair::edges(one, other), pair);
        }
    }
}
