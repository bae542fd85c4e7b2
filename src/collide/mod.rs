//! Collision detection: what comes close to what, within one time step.
//!
//! In: positions and velocities of all cloth vertices ([`Snapshot`]). Out: [`Contact`]s. Between them,
//! [`TestRun`]s: tests of patch against patch and patch against body, which can be stopped, split and sent
//! elsewhere. This module does not know ranks; whoever calls it gives and takes test runs.

pub mod audit;
mod begin;
pub mod body;
pub mod body_motion;
mod bvh;
pub mod candidates;
mod charts;
mod closest;
mod closest_four;
pub mod contact;
mod enclosed;
mod extent;
mod firmness;
mod kdop;
mod narrow;
mod near;
mod packed;
mod ready;
mod refit;
mod sieve;
mod snapshot;
mod solid;
mod surface;
mod test_run;
mod traverse;
mod volumes;
mod width;

pub use body::Body;
pub use body_motion::BodyMotion;
pub use bvh::{Bvh, Node};
pub(crate) use charts::TileWork;
pub use contact::Contact;
pub use enclosed::Enclosed;
pub(crate) use extent::Extent;
pub use kdop::{Aabb, Kdop, Kdop14, Kdop18, Kdop26, Turned};
pub use narrow::ccd;
pub(crate) use ready::pieces;
pub use snapshot::{Geometry, Snapshot};
pub use solid::Solid;
pub use surface::{ClothSurface, Surface};
pub(crate) use test_run::{Begun, Made, Single};
pub use test_run::{Target, TestRun, brute_force};
pub use volumes::Volumes;

#[cfg(test)]
mod culling_tests;
#[cfg(test)]
mod pieces_tests;
#[cfg(test)]
mod tests;
