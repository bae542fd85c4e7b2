//! Queries: the geometry of one step, its top-level tests, and runs of these.

pub(super) mod brute_force;
pub mod candidates;
pub(super) mod culling;
pub(super) mod findings;
pub(super) mod prepare;
pub(super) mod snapshot;
pub(super) mod targets;
pub(super) mod test_run;
pub(super) mod volumes;
