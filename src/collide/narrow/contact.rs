//! The result of collision detection: a pair of features that come close within the step.
//!
//! A contact says everything that the response needs, so that it can be computed on any rank and
//! applied on another: the cloth vertices that take part with their weights, the normal, and the
//! distance.

use glam::DVec3;
use serde::{Deserialize, Serialize};

use crate::heap_bytes::owns_no_heap;

/// The kind of a feature pair. The order of the variants is part of the order of contacts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum PairKind {
    /// Cloth vertex against cloth triangle: `a` is the vertex, `b` the triangle.
    VertexFace,
    /// Cloth edge against cloth edge: `a < b` are edges.
    EdgeEdge,
    /// Cloth vertex against a body's triangle (or, for an analytic body, its surface: `b` is 0).
    VertexBody,
    /// Cloth triangle `a` against a body's vertex `b`; of an analytic ball, `b` numbers points of
    /// the triangle.
    FaceBody,
    /// Cloth edge `a` against a body's edge `b`; of an analytic ball, `b` numbers points of the
    /// cloth's edge.
    EdgeBody,
}

/// Names a feature pair uniquely; contacts are sorted by it before anything uses them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PairId {
    /// The kinds of the two features.
    pub kind: PairKind,
    /// The body's index in the scene; 0 for cloth against cloth.
    pub body: u32,
    /// The first feature: a global vertex, edge or triangle number.
    pub a: u32,
    /// The second feature.
    pub b: u32,
}

/// Two features that come close within the step.
///
/// The separation is `Σ weights[i] x[vertices[i]] − p`, with `p` a point of the body (or nothing,
/// for cloth against cloth, where the weights sum to 0; against a body they sum to 1).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Contact {
    /// The features.
    pub id: PairId,
    /// The number of `vertices` and `weights` that are used, 1 to 4.
    pub count: u8,
    /// The cloth vertices that take part, global numbers; unused entries are 0.
    pub vertices: [u32; 4],
    /// The weights of the vertices; unused entries are 0.
    pub weights: [f64; 4],
    /// The unit vector along which the features separate: a positive rate of `Σ w x · n` moves them
    /// apart.
    pub normal: DVec3,
    /// Distance at the start of the step in m; negative inside a body.
    pub gap: f64,
    /// The distance to keep in m: the contact thickness, or less where the rest shape is closer.
    pub target: f64,
    /// Velocity of the body's point in m/s; zero for cloth against cloth.
    pub body_velocity: DVec3,
}

owns_no_heap!(Contact);

/// The distance of two features, its direction and the distance to keep: all of a [`Contact`] but
/// the features themselves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Separation {
    /// The unit vector along which they separate.
    pub(crate) normal: DVec3,
    /// The distance of the features at the start of the step in m.
    pub(crate) gap: f64,
    /// The distance to keep in m.
    pub(crate) target: f64,
    /// The velocity of the body's point in m/s; zero for cloth against cloth.
    pub(crate) body_velocity: DVec3,
}

impl Contact {
    /// The contact of features of which these cloth vertices take part, 1 to 4, with these weights.
    pub(crate) fn new<const N: usize>(
        id: PairId,
        vertices: [u32; N],
        weights: [f64; N],
        separation: Separation,
    ) -> Self {
        const { assert!(N >= 1 && N <= 4, "1 to 4 vertices") };
        let mut all = ([0; 4], [0.0; 4]);
        all.0[..N].copy_from_slice(&vertices);
        all.1[..N].copy_from_slice(&weights);
        let Separation {
            normal,
            gap,
            target,
            body_velocity,
        } = separation;
        Self {
            id,
            count: N as u8,
            vertices: all.0,
            weights: all.1,
            normal,
            gap,
            target,
            body_velocity,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_that_are_not_used_are_zero() {
        let id = PairId {
            kind: PairKind::EdgeBody,
            body: 1,
            a: 2,
            b: 3,
        };
        let separation = Separation {
            normal: DVec3::Y,
            gap: 0.25,
            target: 0.5,
            body_velocity: DVec3::X,
        };
        let contact = Contact::new(id, [7, 9], [0.75, 0.25], separation);
        assert_eq!((contact.id, contact.count), (id, 2));
        assert_eq!(contact.vertices, [7, 9, 0, 0]);
        assert_eq!(contact.weights, [0.75, 0.25, 0.0, 0.0]);
        assert_eq!((contact.gap, contact.target), (0.25, 0.5));
        assert_eq!(
            (contact.normal, contact.body_velocity),
            (DVec3::Y, DVec3::X)
        );
    }
}
