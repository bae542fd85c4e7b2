//! Continuous collision detection: whether two features stay apart while their vertices move.
//!
//! A query is a vertex and a face, or two edges, whose vertices go straight and evenly from where
//! they are at time 0 to where they are at time 1. The answer says that the features stay farther
//! apart than a separation δ ≥ 0 all the time, or up to which time they certainly do.
//!
//! # What is guaranteed
//!
//! For finite positions, as the numbers that they are:
//!
//! 1. **No miss.** [`Answer::Safe`] means that at every real time in [0, 1] each point of one
//!    feature is farther than δ from each point of the other. [`Answer::Hit`] with a time above 0
//!    means the same for every time up to that one, itself included. There is no tolerance in this,
//!    and no assumption about sizes, places, angles, or whether edges have a length and faces an
//!    area.
//! 2. **Hits are near.** A hit is reported where the distance is at most δ + max(δ/2, 2⁻²⁴ D), D
//!    being the largest difference of a coordinate between vertices of the two features at either
//!    end ([`SLACK`]), or after [`STEPS`] steps, or where rounding hides every direction that keeps
//!    the features apart. [`Hit::distance`] tells how far apart they are. In the last two cases the
//!    features may never come that near; such false hits are rare, and tests bound how rare.
//! 3. **One result.** Answers depend on the query and δ alone: many queries at a time have the bits
//!    of each one alone, on every processor, and lengths in units that differ by a power of two
//!    give the same times, normals and weights. (Beyond 10²⁰⁰ or below 10⁻²⁰⁰ that holds up to
//!    rounding.)
//!
//! Features at rest within the separation are hits at time 0, where nothing is certified.
//!
//! # Why
//!
//! Features are convex. If along some direction all vertices of one are more than δ ahead of all
//! vertices of the other, so are the features; and if that holds at two times, it holds between
//! them, since distances along a fixed direction are linear in time. `certificate` states this with
//! a bound on all rounding, so that *any* direction, however it was found, is a proof once its few
//! products are large enough. The rest of this module looks for directions: `features` takes those
//! between the closest points, `cull` tries them at the start and at the end for four or eight
//! queries at a time, which settles nearly all, and `advance` goes on step by step with those that
//! are left.
//!
//! Certified steps ask it about pairs that one plane does not certify, and take the time, the
//! normal vector and the weights of hits from it.
//!
//! ```
//! use glam::DVec3;
//! use weftwork::collide::ccd::{Answer, Motion, Separation, VertexFace, vertex_face};
//!
//! let still = |x, y| Motion::still(DVec3::new(x, y, 0.0));
//! let falling = |to| VertexFace {
//!     vertex: Motion { start: DVec3::Z, end: DVec3::Z * to },
//!     face: [still(-1.0, -1.0), still(1.0, -1.0), still(0.0, 1.0)],
//! };
//! let separation = Separation::new(0.001)?;
//! assert_eq!(vertex_face(&falling(0.5), separation)?, Answer::Safe);
//! let Answer::Hit(hit) = vertex_face(&falling(-1.0), separation)? else {
//!     panic!("a vertex that ends on the other side has come through")
//! };
//! // The vertex is 1 mm above the face at time 0.4995.
//! assert!(hit.time < 0.4995 && hit.time > 0.499);
//! assert_eq!(hit.normal, DVec3::Z);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod advance;
mod certificate;
mod cull;
mod features;
mod number;
#[cfg(test)]
mod tests;

use glam::DVec3;
use thiserror::Error;

use self::features::{Kind, OfEdgeEdge, OfVertexFace};
use crate::simd::widest;

/// The most steps that a query takes before it counts as a hit.
pub const STEPS: usize = 64;

/// The excess over the separation at which a hit is reported, as a share of the largest difference
/// of a coordinate, if that is more than half of the separation.
pub const SLACK: f64 = 1.0 / (1 << 24) as f64;

/// A vertex on its straight way through the time step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Motion {
    /// Its position at time 0.
    pub start: DVec3,
    /// Its position at time 1.
    pub end: DVec3,
}

impl Motion {
    /// A vertex that does not move.
    #[must_use]
    pub fn still(at: DVec3) -> Self {
        Self { start: at, end: at }
    }
}

/// A vertex and a face. Both may be of any size; the corners of the face may lie in a line, or in
/// one place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VertexFace {
    /// The vertex.
    pub vertex: Motion,
    /// The corners of the face.
    pub face: [Motion; 3],
}

/// Two edges, which may have no length.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EdgeEdge {
    /// The ends of the first edge.
    pub first: [Motion; 2],
    /// The ends of the second edge.
    pub second: [Motion; 2],
}

/// A distance that features must stay farther apart than; finite and not negative.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Separation(f64);

impl Separation {
    /// The separation zero: features must not touch.
    pub const ZERO: Self = Self(0.0);

    /// A separation, in the unit of the positions.
    ///
    /// # Errors
    /// If it is negative, infinite or NaN.
    pub fn new(distance: f64) -> Result<Self, NotASeparation> {
        if distance >= 0.0 && distance.is_finite() {
            Ok(Self(distance))
        } else {
            Err(NotASeparation { distance })
        }
    }

    /// The distance.
    #[must_use]
    pub fn distance(self) -> f64 {
        self.0
    }
}

/// A distance that cannot be a separation.
#[derive(Clone, Copy, Debug, Error, PartialEq)]
#[error("a separation of {distance} was asked for: give a finite one that is not negative")]
pub struct NotASeparation {
    /// The distance.
    pub distance: f64,
}

/// An answer about two features.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Answer {
    /// They stay farther apart than the separation, from time 0 to 1.
    Safe,
    /// They come within the separation, or nothing proves that they do not.
    Hit(Hit),
}

/// Two features that may come within the separation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hit {
    /// The features are certainly farther apart than the separation up to this time and at it. If
    /// it is 0, nothing is certain.
    pub time: f64,
    /// The direction from the closest point of the second feature to that of the first at that
    /// time, a unit vector; the second feature is the face, or the second edge. Where the points
    /// touch, it is normal to the face or to both edges, and points to either side.
    pub normal: DVec3,
    /// Weights of the vertices such that Σ wᵢ xᵢ(time) is the closest point of the first feature
    /// less that of the second: 1 and three that sum to −1 for a vertex and a face, two that sum to
    /// 1 and two that sum to −1 for two edges, up to rounding.
    pub weights: [f64; 4],
    /// The distance of the closest points at that time, up to rounding.
    pub distance: f64,
}

/// One of many queries that is a hit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Found {
    /// The place of the query among all.
    pub query: usize,
    /// The hit.
    pub hit: Hit,
}

/// A query with a position that is infinite or NaN.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("collision query {query} has a position that is not finite: check positions before")]
pub struct NotFinite {
    /// The place of the query among all; 0 if it was asked alone.
    pub query: usize,
}

/// Tests a vertex and a face.
///
/// # Errors
/// If a position is not finite.
pub fn vertex_face(query: &VertexFace, separation: Separation) -> Result<Answer, NotFinite> {
    test(query, separation.0)
}

/// Tests two edges.
///
/// # Errors
/// If a position is not finite.
pub fn edge_edge(query: &EdgeEdge, separation: Separation) -> Result<Answer, NotFinite> {
    test(query, separation.0)
}

/// Tests many vertices with a face each, and returns the hits in the order of the queries; those
/// that are not among them are safe. Each is what [`vertex_face`] answers, bit by bit.
///
/// # Errors
/// If a position is not finite.
pub fn vertex_faces(
    queries: &[VertexFace],
    separation: Separation,
) -> Result<Vec<Found>, NotFinite> {
    test_all(queries, separation.0)
}

/// Tests many pairs of edges, and returns the hits in the order of the queries; those that are not
/// among them are safe. Each is what [`edge_edge`] answers, bit by bit.
///
/// # Errors
/// If a position is not finite.
pub fn edge_edges(queries: &[EdgeEdge], separation: Separation) -> Result<Vec<Found>, NotFinite> {
    test_all(queries, separation.0)
}

/// Queries about one kind of features.
trait Features<const P: usize>: Copy {
    type Kind: Kind<P>;

    /// The vertices of the first feature, then those of the second.
    fn motions(&self) -> [Motion; 4];
}

impl Features<3> for VertexFace {
    type Kind = OfVertexFace;

    #[inline(always)]
    fn motions(&self) -> [Motion; 4] {
        let [a, b, c] = self.face;
        [self.vertex, a, b, c]
    }
}

impl Features<4> for EdgeEdge {
    type Kind = OfEdgeEdge;

    #[inline(always)]
    fn motions(&self) -> [Motion; 4] {
        let ([a, b], [c, d]) = (self.first, self.second);
        [a, b, c, d]
    }
}

fn test<Q: Features<P>, const P: usize>(query: &Q, separation: f64) -> Result<Answer, NotFinite> {
    if cull::is_safe(query, separation) {
        return Ok(Answer::Safe);
    }
    advance::advance::<Q::Kind, P>(&query.motions(), separation)
}

fn test_all<Q: Features<P>, const P: usize>(
    queries: &[Q],
    separation: f64,
) -> Result<Vec<Found>, NotFinite> {
    let mut found = Vec::new();
    for query in widest(cull::Batch {
        queries,
        separation,
    }) {
        match advance::advance::<Q::Kind, P>(&queries[query].motions(), separation) {
            Ok(Answer::Safe) => {}
            Ok(Answer::Hit(hit)) => found.push(Found { query, hit }),
            Err(NotFinite { .. }) => return Err(NotFinite { query }),
        }
    }
    Ok(found)
}
