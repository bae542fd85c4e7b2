//! Collision detection: what comes close to what, within one time step.

pub mod contact;
