//! The shape that a cloth has at rest, as its elements ask for it: triangles, and triangles laid
//! beside each other.
//!
//! In: a mesh whose vertices have places, or a flat pattern in which each triangle has its own
//! corners, so that a vertex on a seam is at several places. Out: corners in m.

use glam::{DVec2, DVec3};

use super::mesh_edges::Side;
use crate::mesh::TriMesh;

/// The rest shape of a cloth.
#[derive(Clone, Copy, Debug)]
pub(crate) enum AtRest<'a> {
    /// Each vertex has a place, and folds of the mesh are folds at rest.
    Mesh(&'a TriMesh),
    /// Each triangle has corners of its own in a plane, in m. Nothing is folded.
    Pattern {
        /// The mesh that it starts as.
        start: &'a TriMesh,
        /// The places of these corners.
        corners: &'a [[DVec2; 3]],
    },
}

/// Two triangles beside an edge at rest.
pub(super) struct Hinged {
    /// The ends of the edge, then the corner of either triangle opposite to it.
    pub(super) points: [DVec3; 4],
    /// The ends of the edge and the corner opposite, as either triangle has them where its own warp
    /// is known.
    pub(super) own: [[DVec3; 3]; 2],
}

impl<'a> AtRest<'a> {
    /// The corners of all triangles, as vertices.
    pub(super) fn triangles(self) -> &'a [[u32; 3]] {
        match self {
            Self::Mesh(mesh) => &mesh.triangles,
            Self::Pattern { start, .. } => &start.triangles,
        }
    }

    /// The corners of a triangle.
    pub(super) fn corners(self, triangle: usize) -> [DVec3; 3] {
        match self {
            Self::Mesh(mesh) => mesh.corners(mesh.triangles[triangle]),
            Self::Pattern { corners, .. } => corners[triangle].map(|p| p.extend(0.0)),
        }
    }

    /// The corners of a triangle in a mesh in which all hang together.
    pub(super) fn joined_corners(self, triangle: usize) -> [DVec3; 3] {
        let (Self::Mesh(mesh) | Self::Pattern { start: mesh, .. }) = self;
        mesh.corners(mesh.triangles[triangle])
    }

    /// The direction that a direction of the mesh in which all hang together has at rest, in a
    /// triangle: where neighbours lie apart in a pattern, it goes on from one to the other.
    pub(super) fn direction(self, triangle: usize, joined: DVec3) -> DVec3 {
        match self {
            Self::Mesh(_) => joined,
            Self::Pattern { .. } => {
                let [a, b, c] = self.joined_corners(triangle);
                let (p, q) = (b - a, c - a);
                // As a p + b q, in its plane.
                let normal = p.cross(q);
                let share = |of: DVec3| of.dot(normal) / normal.length_squared();
                let (of_p, of_q) = (share(joined.cross(q)), share(p.cross(joined)));
                let [a, b, c] = self.corners(triangle);
                (b - a) * of_p + (c - a) * of_q
            }
        }
    }

    /// The corners of a triangle, those of an edge of it first.
    fn seen_from_edge(self, triangle: usize, edge: [u32; 2]) -> [DVec3; 3] {
        let [a, b, c] = self.triangles()[triangle];
        let [p, q, r] = self.corners(triangle);
        let (turned, [p, q, r]) = match edge {
            e if e == [a, b] || e == [b, a] => (e == [b, a], [p, q, r]),
            e if e == [b, c] || e == [c, b] => (e == [c, b], [q, r, p]),
            e => (e == [a, c], [r, p, q]),
        };
        if turned { [q, p, r] } else { [p, q, r] }
    }

    /// The triangles beside an inner edge: its ends and the corners opposite, and their indices.
    pub(super) fn hinged(self, [a, b, c, d]: [u32; 4], sides: [usize; 2]) -> Hinged {
        match self {
            Self::Mesh(mesh) => {
                let points = [a, b, c, d].map(|v| mesh.positions[v as usize]);
                let [x0, x1, x2, x3] = points;
                Hinged {
                    points,
                    own: [[x0, x1, x2], [x0, x1, x3]],
                }
            }
            Self::Pattern { .. } => {
                let own = sides.map(|triangle| self.seen_from_edge(triangle, [a, b]));
                let [[x0, x1, x2], _] = own;
                Hinged {
                    points: [x0, x1, x2, laid_beside(own)],
                    own,
                }
            }
        }
    }

    /// The place of the corner `vertex` of triangle `other`, laid beside `triangle` over an edge.
    pub(super) fn beyond(
        self,
        triangle: usize,
        edge: [u32; 2],
        (other, vertex): (usize, u32),
    ) -> DVec3 {
        match self {
            Self::Mesh(mesh) => mesh.positions[vertex as usize],
            Self::Pattern { .. } => {
                laid_beside([triangle, other].map(|triangle| self.seen_from_edge(triangle, edge)))
            }
        }
    }

    /// An edge's ends, for its length: on the average of the triangles beside it.
    pub(super) fn ends(self, beside: &[Side]) -> [DVec3; 2] {
        let edge = beside[0].0;
        match self {
            Self::Mesh(mesh) => edge.map(|v| mesh.positions[v as usize]),
            Self::Pattern { .. } => {
                let lengths = beside.iter().map(|side| {
                    let [p, q, _] = self.seen_from_edge(side.2 as usize, edge);
                    p.distance(q)
                });
                let mean = lengths.sum::<f64>() / beside.len() as f64;
                [DVec3::ZERO, DVec3::X * mean]
            }
        }
    }
}

/// The third corner of the second triangle where its first edge is laid along that of the first,
/// middle on middle, and it is on the other side: over a seam the edges may differ in length.
fn laid_beside([[x0, x1, x2], [y0, y1, y3]]: [[DVec3; 3]; 2]) -> DVec3 {
    let (along, other) = ((x1 - x0).normalize_or_zero(), (y1 - y0).normalize_or_zero());
    let away = -(x2 - x0).reject_from(x1 - x0).normalize_or_zero();
    let from_middle = y3 - (y0 + y1) * 0.5;
    let reach = from_middle.dot(other);
    let height = from_middle.reject_from(other).length();
    (x0 + x1) * 0.5 + along * reach + away * height
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two triangles of a square, each somewhere in the pattern and one of them turned over.
    #[test]
    fn triangles_of_a_pattern_are_laid_beside_each_other_where_they_are_sewn() {
        let square = [DVec2::ZERO, DVec2::X, DVec2::ONE, DVec2::Y];
        let start = TriMesh {
            positions: square.map(|p| p.extend(1.0)).to_vec(),
            triangles: vec![[0, 1, 2], [0, 2, 3]],
        };
        let turn = DVec2::from_angle(0.7);
        let elsewhere = |p: DVec2| turn.rotate(DVec2::new(p.x, -p.y)) + DVec2::new(5.0, -2.0);
        let [a, b, c, d] = square;
        for corners in [
            [[a, b, c], [a, c, d]],
            [[a, b, c], [a, c, d].map(elsewhere)],
        ] {
            let rest = AtRest::Pattern {
                start: &start,
                corners: &corners,
            };
            let Hinged { points, own } = rest.hinged([0, 2, 1, 3], [0, 1]);
            for (point, known) in points.iter().zip([a, c, b, d]) {
                assert!(point.distance(known.extend(0.0)) < 1e-15, "{point} {known}");
            }
            assert_eq!(own[1][2], corners[1][2].extend(0.0));
            let along = rest.direction(1, DVec3::new(1.0, 0.0, 7.0));
            let own = corners[1][1] - corners[1][2];
            assert!(along.distance(own.extend(0.0)) < 1e-15, "{along} {own}");
            let beyond = rest.beyond(1, [2, 0], (0, 1));
            let [p, q, r] = rest.seen_from_edge(1, [2, 0]);
            for (from, length) in [(p, 1.0), (q, 1.0), (r, 2.0_f64.sqrt())] {
                assert!((beyond.distance(from) - length).abs() < 1e-15);
            }
        }
    }
}
