//! The time step: the only place where physics, solve and collide meet.
//!
//! [`World`] is a scene made ready, the same on every rank. A [`Simulation`] is one rank's share of
//! its state, and [`Simulation::advance`] takes a step. A step is a sequence of stages (`stages`):
//! functions that take values and give them.
//!
//! | module | holds |
//! |---|---|
//! | `world` | what does not change, with its pins; what of it is likely a mistake |
//! | `simulation` | the values of a rank; steps, in as many substeps as they need |
//! | `stages` | the stages of a substep, from contacts to the new state |
//! | `state`, `neighbourhood` | positions and velocities; what a stage may ask of a patch |
//! | `domain`, `substep` | what a rank owns; which substep it takes |
//! | `context` | what all stages may read |
//! | `contact` | contacts, found by tasks of all ranks |
//! | `integrate` | integrators, and the lengths of substeps |
//! | `system` | the linear system, and its solve |
//! | `response` | how bodies act, and what impulses put right |
//! | `pipeline` | pairs that are found once for many substeps, and pushes by them |
//! | `certify` | displacements that are cut so that no cloth crosses cloth |
//! | `exchange` | the new state for every rank, and the state for checkpoints |
//! | `diagnose` | why strain goes beyond its limit, and what profiles read |
//! | `memory` | the bytes that a rank holds, part by part |
//! | `error`, `report` | what is said of a step |

mod certify;
mod contact;
mod context;
mod diagnose;
mod domain;
mod error;
mod exchange;
mod integrate;
mod memory;
mod neighbourhood;
mod pipeline;
mod report;
mod response;
mod simulation;
mod stages;
mod state;
mod substep;
mod system;
#[cfg(test)]
mod tests;
mod turns;
mod world;

pub use certify::Certified;
pub(crate) use contact::detect::patch_sizes;
pub(crate) use contact::geometry::tiles;
pub(crate) use contact::message::CONTACT_BYTES;
pub use diagnose::breach::Breach;
pub use diagnose::crossings::CrossingCounts;
pub use diagnose::ledger::{Entry, Ledger};
pub use error::{GaveUp, Named, StepError};
pub use exchange::patch_state::{PatchState, PatchView};
pub use exchange::saved_state::{Past, SavedState, StateOutline};
pub use memory::{CONTACT_HELD, MemoryPart, RankMemory, SET_UP, total};
pub use report::{COUNTERS, PHASES, STEP, StepReport, Stops, Sufficed};
pub use response::body_response::VertexState;
pub use response::gauss_seidel::Effort;
pub use simulation::{CheckedState, Simulation, exchange_name};
pub use system::assembly::Strains;
pub use world::{
    Graphs, Mapping, MeshCounts, ObjectKind, ObjectSizes, PREPARED_CUT, PREPARED_WORLD, SeamError,
    World, WorldError, is_prepared_world,
};
