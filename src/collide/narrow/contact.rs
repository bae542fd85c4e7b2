//! The result of collision detection: a pair of features that come close within the step.
//!
//! A contact says everything the response needs, so that it can be computed on any rank and applied on
//! another: which cloth vertices take part with which weights, along which normal, how far apart.

use glam::DVec3;
use serde::{Deserialize, Serialize};

/// The kind of a feature pair. The order of the variants is part of the order of contacts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum PairKind {
    /// Cloth vertex against cloth triangle: `a` is the vertex, `b` the triangle.
    VertexFace,
    /// Cloth edge against cloth edge: `a < b` are edges.
    EdgeEdge,
    /// Cloth vertex against a body's triangle (or, for an analytic body, its surface: `b` is 0).
    VertexBody,
    /// Cloth triangle `a` against a body's vertex `b`.
    FaceBody,
    /// Cloth edge `a` against a body's edge `b`.
    EdgeBody,
}

/// Names a feature pair uniquely; contacts are sorted by it before anything uses them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PairId {
    /// What is paired with what.
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
/// The separation is `Σ weights[i] x[vertices[i]] − p`, with `p` a point of the body (or nothing, for
/// cloth against cloth, where the weights sum to 0; against a body they sum to 1).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Contact {
    /// Which features.
    pub id: PairId,
    /// How many of `vertices` and `weights` are used, 1 to 4.
    pub count: u8,
    /// The cloth vertices that take part, global numbers; unused entries are 0.
    pub vertices: [u32; 4],
    /// Their weights; unused entries are 0.
    pub weights: [f64; 4],
    /// Unit vector along which the features separate: a positive rate of `Σ w x · n` moves them apart.
    pub normal: DVec3,
    /// Distance at the start of the step in m; negative inside a body.
    pub gap: f64,
    /// The distance to keep in m: the contact thickness, or less where the rest shape is closer.
    pub target: f64,
    /// Velocity of the body's point in m/s; zero for cloth against cloth.
    pub body_velocity: DVec3,
}
