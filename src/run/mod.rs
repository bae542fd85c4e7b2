//! A whole run: ranks take steps together, rank 0 writes what comes of it.
//!
//! The parts stand in files of their own; `driver` has the loop in which a rank takes its steps.
//! Everything that decides the trajectory is below it, in [`crate::step`].

mod alike;
mod certified;
mod changes;
mod checkpoints;
mod cuts;
mod driver;
mod error;
mod frame_pieces;
mod hashing;
mod modelled;
mod options;
mod outputs;
mod pace;
mod pictures;
mod profile;
mod recording;
mod reports;
mod result;
mod resume;
mod start_notes;
mod stop;
mod summary;
mod timers;
mod together;
mod trace_steps;
mod tracing;
mod waits;
mod writer;

pub use self::alike::{Differences, Given, compare};
pub use self::certified::CertifiedTotals;
pub use self::changes::remembered;
pub use self::cuts::Cuts;
pub use self::driver::{AgreedRun, run, run_rank};
pub use self::error::RunError;
pub use self::hashing::hash_of;
pub(crate) use self::hashing::hash_of_replica;
pub use self::modelled::{ModelledStep, by_pass, run_modelled};
pub use self::options::{Audit, Begun, Driver, Resume, RunOptions, Show};
pub use self::outputs::note_failure;
pub use self::recording::{RECORD_FILE, last_restart};
pub use self::result::RunSummary;
pub use self::resume::read_state;
pub use self::start_notes::uneven;
pub use self::stop::{Cause, Stop};
pub use self::summary::FEATURES;
pub use self::trace_steps::{NoSteps, TraceSteps};
pub use self::tracing::TraceSummary;
pub(crate) use self::writer::normals;
