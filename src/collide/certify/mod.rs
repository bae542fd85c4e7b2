//! Certified steps: which displacements cross nothing, and what becomes of those that would.
//!
//! In: positions where nothing crosses (a *checked state*), the positions that a step would take
//! them to, and bodies with their motion. Three parts follow each other:
//!
//! | file | does |
//! |---|---|
//! | `search` | tests pairs, and finds the *hits*, which could not be certified |
//! | `respond`, `impulses`, `zones` | resolves hits by changes that keep momentum |
//! | `truncate`, with `slide` and `half_spaces`, `plane`, `solids` and `common` | cuts the rest |
//!
//! The response looks at the `region` around hits if that is enough.
//! `bodies` has the triangles of bodies beside those of cloth, and their poses; `joined` numbers
//! both as one. `halving` is for subdivision: it cuts displacements so that each pair keeps half of
//! its distance.
//!
//! # Truncation
//!
//! For each vertex it finds a *base*, a displacement that it goes in any case, and the share of
//! what is left that it may go, which is 1 nearly everywhere. The base is what a component has in
//! common, zero near bodies, or the displacement of the body that carries the vertex.
//!
//! Before that, vertices *slide*: in a bounded number of rounds, pairs that are not certified give
//! their vertices half spaces, and each vertex gets another goal, the nearest to its own that all
//! of its half spaces allow. A share of nothing would leave a vertex nothing, whichever way it
//! goes, and one that is drawn into its neighbour in every step would never move again. From then
//! on `goal[v]` below is where a vertex has slid, and pairs with such a vertex are judged first,
//! wherever volumes around their displacements meet. The hull of a component has room for where its
//! vertices may slide, so that components still do not meet.
//!
//! **Theorem.** Let no two features that share no vertex cross at the start, let the displacements
//! of all pairs except the hits be free of crossings while all vertices go at one common rate, and
//! let [`Truncate::run`] return shares t. Then no pair crosses on the straight displacements from
//! `start[v]` to [`Truncated::end`], except pairs of a body with a vertex that is suspended from it
//! or named with it in [`Truncated::squeezed`], and except pairs that [`Truncate::kept`] lets pass:
//! pairs whose shares are all 1 while their vertices
//! go at one common rate, and the others whatever each vertex's rate, unless one body carries them.
//!
//! *Proof.* Pairs that may pass are left out throughout, so that what follows is of all others. A
//! pair all of whose shares are 1 goes where it would have gone: it is certified by
//! assumption unless it is a hit. Hits, and pairs with a changed vertex whose volumes around their
//! displacements meet, leave the rounds of [`Truncate::run`] in one of three ways. Either one plane
//! has the two features on its sides at the start and at the end, by more than rounding. A half
//! space is convex, so each vertex's straight displacement lies in it, and so do faces and edges,
//! which are hulls of their vertices; the plane may move evenly with what the pair has in common.
//! Or all shares are 0 and one body carries all vertices, or belongs to the pair: then all move by
//! one affine map x + s (M x − x), with a determinant above 0 for turns of less than half a turn,
//! and do not cross; a body that deforms has no such map, so the pair is certified by itself, at
//! one common rate. Or the pair is one of a body and a vertex that is suspended from it. Pairs
//! whose volumes do not meet are separated by a face of the volumes.
//!
//! The rounds end. A body that carries a vertex is replaced only by one of a lower number, or given
//! up when the vertex is suspended from it, and suspensions last. Between such changes shares only
//! fall, the plane of a pair depends on the start, the bases and the whole displacements alone, and
//! a pair whose plane has cut its vertices is certified by it from then on.
//!
//! The result does not depend on the order in which pairs are looked at: each round judges the ends
//! that the round before left, a share is the minimum of those that planes allow, and remedies are
//! taken in order.
//!
//! Features that have come as close as `least` may part and slide, but not approach: dividing the
//! *room* beyond `least` rather than the gap itself keeps cloth from locking at distances of
//! rounding.
//!
//! After the planar truncation of "Divide and Truncate" and offset-geometry contact (Chen et al.
//! 2025), with planes instead of balls, so that motion along a surface is kept.

pub mod bodies;
mod common;
mod half_spaces;
mod halving;
mod impulses;
mod joined;
mod meeting;
mod near_pairs;
pub mod plane;
mod region;
mod respond;
mod search;
mod slide;
mod solids;
mod truncate;
mod zones;

pub use bodies::{Form, Mover, Scenery};
pub use halving::{Halved, Halving, along};
pub(crate) use impulses::mixed;
pub use joined::{Positions, Triangles};
pub use meeting::{Meeting, Pair, Squeezed};
pub use plane::{Kind, Plane};
pub(crate) use region::{Region, around_displacements, patches_of, tree_near};
pub(crate) use respond::respond_within;
pub use respond::{Responded, respond};
pub use search::{Hits, exceeders, is_certified, is_crossing, touching};
pub(crate) use search::{farthest_of, margin_within};
pub use truncate::{Truncate, Truncated};

#[cfg(test)]
mod tests;
