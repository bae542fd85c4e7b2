//! The time step: the only place where physics, solve and collide meet.

pub mod body_response;
pub mod impulses;
