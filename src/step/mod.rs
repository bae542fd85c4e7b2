//! The time step: the only place where physics, solve and collide meet.
//!
//! [`World`] is a scene made ready, the same on every rank; a [`Simulation`] is one rank's share of its
//! state, and [`Simulation::advance`] the step.
//!
//! | module | holds |
//! |---|---|
//! | `world` | what does not change, with its pins; what of it is likely a mistake |
//! | `simulation` | a rank's share of the state; steps |
//! | `substep` | the sequence of stages of a substep, from contacts to the new state |
//! | `contact` | contacts, found by tasks of all ranks |
//! | `integrate` | integrators, and the lengths of substeps |
//! | `system` | the linear system |
//! | `response` | how bodies act, and what impulses put right |
//! | `exchange` | the new state for every rank, and the state for checkpoints |
//! | `diagnose` | why strain goes beyond its limit, and what profiles read |
//! | `error`, `report` | what is said of a step |

mod contact;
mod diagnose;
mod error;
mod exchange;
mod integrate;
mod report;
mod response;
mod simulation;
mod substep;
mod system;
#[cfg(test)]
mod tests;
mod world;

pub(crate) use contact::detect::patch_sizes;
pub(crate) use contact::geometry::tiles;
pub(crate) use contact::letter::BYTES as CONTACT_BYTES;
pub use diagnose::breach::Breach;
pub use error::{GaveUp, Named, StepError};
pub use exchange::saved_state::{Past, SavedState};
pub use report::{PHASES, StepReport, Stops, Sufficed};
pub use response::body_response::VertexState;
pub use simulation::{Simulation, exchange_name};
pub use system::assembly::Strains;
pub use world::{World, WorldError};
