//! Truncation: the last stage of a certified step, which needs no iteration to converge and cannot
//! fail.
//!
//! In: positions where nothing crosses (a *checked state*), the positions that a step would take
//! them to, and the pairs of features whose displacements could not be certified. Out: for each
//! vertex the share of its displacement that it may go, which is 1 nearly everywhere, so that
//! nothing crosses at the end nor on the straight lines there.
//!
//! **Theorem.** Let no two features that share no vertex cross at the start, let the displacements
//! of all pairs except the hits be free of crossings while all vertices go at one common rate, and
//! let [`Truncate::run`] return shares t. Then no pair crosses on the straight displacements from
//! `start[v]` to [`Truncated::end`], except pairs named in [`Truncated::squeezed`], which have
//! vertices that cannot be stopped: pairs whose shares are all 1 while their vertices go at one
//! common rate, and the others whatever each vertex's rate.
//!
//! *Proof.* A pair all of whose shares are 1 goes where it would have gone: it is certified by
//! assumption unless it is a hit. Hits, and pairs with a cut vertex whose volumes around their
//! displacements meet, leave the rounds of [`Truncate::run`] only if one plane has the two
//! features on its sides at the start and at the end, by more than rounding. A half space is
//! convex, so each vertex's straight displacement lies in it, and so do faces and edges, which are
//! hulls of their vertices. Pairs whose volumes do not meet are separated by a face of the
//! volumes. Shares only ever fall, the plane of a pair depends on the start and on the whole
//! displacements alone, and a pair whose plane has cut its vertices is certified by it from then
//! on: so the rounds end.
//!
//! The shares do not depend on the order in which pairs are looked at: each round judges the ends
//! that the round before left, and a share is the minimum of those that planes allow.
//!
//! Features that have come as close as `least` may part and slide, but not approach: dividing the
//! *room* beyond `least` rather than the gap itself keeps cloth from locking at distances of
//! rounding.
//!
//! After the planar truncation of "Divide and Truncate" and offset-geometry contact (Chen et al.
//! 2025), with planes instead of balls, so that motion along a surface is kept.

pub mod bodies;
mod common;
mod impulses;
pub mod plane;
mod respond;
mod search;
mod solids;
mod truncate;
mod zones;

pub use bodies::{Form, Mover, Scenery};
pub use plane::{Kind, Plane};
pub use respond::{Responded, respond};
pub use search::{Hits, exceeders, is_certified, is_crossing};
pub use truncate::{Meeting, Pair, Squeezed, Truncate, Truncated};

#[cfg(test)]
mod tests;
