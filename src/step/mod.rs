//! The time step: the only place where physics, solve and collide meet.
//!
//! [`World`] is a scene made ready, the same on every rank; a [`Simulation`] is one rank's share of its
//! state, and [`Simulation::advance`] the step.

mod assembly;
pub mod body_response;
mod corrections;
mod detect;
pub mod impulses;
mod row_exchange;
mod simulation;
mod state;
mod strain_limit;
#[cfg(test)]
mod tests;
mod world;

pub use simulation::{PHASES, Simulation, StepError, StepReport, exchange_name};
pub use state::State;
pub use world::{World, WorldError};
