//! The narrow phase: from pairs of triangles whose volumes overlap to contacts of their features.

pub mod ccd;
pub(super) mod closest;
pub(super) mod closest_four;
pub mod contact;
pub(super) mod feature_filter;
pub(super) mod features;
mod local_minimum;
mod on_ball;
