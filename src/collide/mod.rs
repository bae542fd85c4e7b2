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
//!
//! A strip that is folded into three layers has the contacts that brute force finds:
//!
//! ```
//! use glam::DVec3;
//! use weftwork::collide::{
//!     ClothSurface, Distances, Geometry, Snapshot, TestRun, Volumes, brute_force,
//! };
//!
//! // Two rows of 60 vertices, 1 cm apart; layers of 20 columns lie 3 mm apart.
//! let at = |i: u32, j: u32| j * 60 + i;
//! let squares = (0..59).map(|i| [at(i, 0), at(i + 1, 0), at(i, 1), at(i + 1, 1)]);
//! let triangles: Vec<_> = squares.flat_map(|[a, b, c, d]| [[a, b, d], [a, d, c]]).collect();
//! let vertices = |place: fn(u32, u32) -> DVec3| -> Vec<DVec3> {
//!     (0..120).map(|v| 0.01 * place(v % 60, v / 60)).collect()
//! };
//! let rest = vertices(|i, j| DVec3::new(f64::from(i), f64::from(j), 0.0));
//! let folded = vertices(|i, j| {
//!     let (layer, along) = (i / 20, i % 20);
//!     let x = if layer % 2 == 0 { along } else { 19 - along };
//!     DVec3::new(f64::from(x) + 0.01 * f64::from(i), f64::from(j), 0.3 * f64::from(layer))
//! });
//! let velocities = vec![DVec3::ZERO; 120];
//!
//! let cloth = ClothSurface::new(&triangles, &rest, 2, |vertex| (vertex % 60 / 30) as usize);
//! let thickness = 0.004;
//! let distances = Distances::alike(thickness, 0.001, 0);
//! let geometry = Geometry {
//!     cloth: &cloth,
//!     bodies: &[],
//!     body_motions: &[],
//!     thickness,
//!     distances: &distances,
//!     self_collision: true,
//!     all_pairs: true,
//! };
//! let mut volumes = Volumes::default();
//! let step = Snapshot::new(&geometry, &mut volumes, &folded, &velocities, 0.0, 0.001);
//! let mut contacts = Vec::new();
//! for target in step.targets() {
//!     if let Some(mut run) = TestRun::new(target, &step) {
//!         // A little at a time, as tasks do that answer messages in between.
//!         while !run.advance(&step, 100, &mut contacts).1 {}
//!     }
//! }
//! contacts.sort_unstable_by_key(|contact| contact.id);
//! assert!(contacts.len() > 100);
//! assert_eq!(contacts, brute_force(&step));
//! ```

pub mod audit;
pub mod bodies;
mod bvh;
pub mod certify;
mod cloth;
mod cull;
mod distances;
mod narrow;
mod passing;
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
pub use passing::Passing;
pub use query::brute_force::brute_force;
pub use query::candidates;
pub(crate) use query::findings::{Candidate, Findings};
pub(crate) use query::prepare::subtrees;
pub use query::snapshot::{Geometry, Snapshot};
pub use query::targets::Target;
pub use query::test_run::TestRun;
pub(crate) use query::test_run::{Begun, Made, Single};
pub use query::volumes::Volumes;
pub(crate) use surface::NO_FACE;
pub use surface::Surface;

#[cfg(test)]
pub(crate) mod tests;
