//! Collision detection: what comes close to what, within one time step.
//!
//! In: positions and velocities of all cloth vertices ([`Snapshot`]). Out: [`Contact`]s. Between
//! them, [`TestRun`]s: tests of patch against patch and patch against body, which can be stopped,
//! split and sent elsewhere. This module does not know ranks; the caller gives and takes test runs.
//!
//! The folders follow the data:
//!
//! | folder | what |
//! |---|---|
//! | `surface`, `cloth` | triangles with their features, and a cloth prepared for collisions |
//! | `bodies` | bodies: their triangles or distances, their motion, what they enclose |
//! | `bvh` | trees, k-DOPs, quantised volumes, refit, traversal |
//! | `cull` | charts, separation bounds and rest-adjacent pairs: which tests are left out |
//! | `narrow` | closest points, features, contacts |
//! | `query` | one step's geometry, its top-level tests, and test runs |
//! | `certify` | truncation: displacements that are cut so that nothing crosses |
//! | `tangles` | cloth that starts through cloth, and what may pass until it is free |
//! | `audit` | crossings of a frame, apart from what finds contacts |

pub mod audit;
pub mod bodies;
mod bvh;
pub mod certify;
mod cloth;
mod cull;
mod distances;
mod narrow;
mod query;
mod surface;
pub mod tangles;

pub use bodies::body_motion::BodyMotion;
pub use bodies::collider::Collider;
pub use bodies::enclosed::Enclosed;
pub use bodies::solid::Solid;
pub(crate) use bvh::extent::Extent;
pub use bvh::kdop::{Kdop, Kdop18};
pub use bvh::tree::{Bvh, Node};
pub use cloth::ClothSurface;
pub(crate) use cull::charts::TileWork;
pub use distances::Distances;
pub use narrow::ccd;
pub(crate) use narrow::closest::{on_segments, on_triangle};
pub use narrow::contact::{self, Contact};
pub use query::brute_force::brute_force;
pub use query::candidates;
pub(crate) use query::findings::{Candidate, Findings};
pub(crate) use query::prepare::subtrees;
pub use query::snapshot::{Geometry, Snapshot};
pub use query::targets::Target;
pub use query::test_run::TestRun;
pub(crate) use query::test_run::{Begun, Made, Single};
pub use query::volumes::Volumes;
pub use surface::Surface;

#[cfg(test)]
pub(crate) mod tests;
