//! Bodies: triangles with a tree over them, or a signed distance by a formula or by samples, how
//! they move, and what they enclose.

pub mod body_motion;
pub mod collider;
pub mod deforming;
pub mod distance_field;
pub mod distance_in_time;
mod drift;
pub(super) mod enclosed;
pub(super) mod solid;
mod when_asked;

pub use body_motion::{BodyMotion, Pose};
pub use collider::{
    Analytic, AnalyticBody, BodySurface, Coarseness, Collider, DistanceBody, SampledDistance,
};
pub use deforming::{Attached, DeformedShape, Deforming, SampleError, SampleSource};
pub use distance_field::{DistanceField, Sampling};
pub use distance_in_time::DeformingDistance;
