//! Cloth on distributed memory.

pub mod build_identity;
pub mod certify;
pub mod collide;
pub mod diagnostics;
mod disjoint_sets;
pub mod export;
pub mod mesh;
pub mod output;
pub mod physics;
pub mod run;
pub mod scene;
mod simd;
pub mod solve;
pub mod step;
pub mod team;
