//! The time step: the only place where physics, solve and collide meet.
//!
//! [`World`] is a scene made ready, the same on every rank; a [`Simulation`] is one rank's share of its
//! state, and [`Simulation::advance`] the step.
//!
//! | module | holds |
//! |---|---|
//! | `world` | what does not change |
//! | `simulation` | a rank's share of the state; steps |
//! | `stride` | in how many parts a step is taken |
//! | `part` | the part of a step, from contacts to the new state |
//! | `motion` | integrators |
//! | `assembly` | the linear system |
//! | `elements`, `triangles`, `bending`, `around`, `touching` | what elements make of a run of its rows |
//! | `newton` | systems one after the other, until the equations are met |
//! | `geometry` | what tests of all ranks read, made in parts and shared |
//! | `detect` | contacts, found by tasks |
//! | [`body_response`] | how bodies act |
//! | `corrections`, [`impulses`], `row`, `strand`, `row_exchange` | what impulses put right |
//! | `strain_limit`, `edges` | cloth that stretches too far or too fast |
//! | `share` | the new state for every rank, and the next system meanwhile |
//! | `state` | the state for checkpoints |
//! | `caution`, `sizes` | what is allowed and likely a mistake, how large things are |
//! | `breach` | why strain goes beyond its limit |
//! | `probe` | what a profile of the next step reads |
//! | `error`, `fault`, `report` | what is said of a step |

mod around;
mod assembly;
mod balancer;
mod bending;
pub mod body_response;
mod breach;
mod caution;
mod contact_message;
mod contact_post;
mod contacts;
mod corrections;
#[cfg(test)]
mod corrections_tests;
mod detect;
mod edges;
mod elements;
mod error;
mod geometry;
pub mod impulses;
mod motion;
#[cfg(test)]
mod moving_tests;
mod newton;
mod part;
mod pins;
#[cfg(test)]
mod pins_tests;
mod probe;
mod report;
mod row;
mod row_exchange;
mod share;
mod simulation;
mod sizes;
mod state;
mod strain_limit;
mod strand;
mod stride;
#[cfg(test)]
mod tests;
mod touching;
mod triangles;
mod world;

pub use assembly::Strains;
pub use breach::Breach;
pub(crate) use contact_message::CONTACT_BYTES;
pub(crate) use detect::patch_sizes;
pub use error::{GaveUp, Named, StepError};
pub(crate) use geometry::tiles;
pub use report::{COUNTERS, PHASES, STEP, StepReport, Stops, Sufficed};
pub use simulation::{Simulation, exchange_name};
pub use state::{Past, State};
pub use world::{World, WorldError};
