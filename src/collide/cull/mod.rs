//! Culling: which tests of cloth against itself are left out, because it cannot touch itself there.

pub(super) mod charts;
pub(super) mod rest_adjacent;
pub(super) mod separation_bound;
