//! Errors that end a run, and the exit codes that go with them.

use std::path::PathBuf;

use thiserror::Error;
use weft_io::Show as _;
use weft_runtime::ScopeError;
use weft_runtime::comm::threads::LaunchError;
use weft_runtime::comm::{CommError, Rank};
use weft_study::record::RecordError;
use weft_study::shape::ShapeError;

use super::Differences;
use crate::output::OutputError;
use crate::step::{StepError, WorldError};

/// An error that ends a run early.
#[derive(Debug, Error)]
pub enum RunError {
    /// The scene cannot be simulated.
    #[error(transparent)]
    World(#[from] WorldError),
    /// A step failed.
    #[error(transparent)]
    Step(#[from] StepError),
    /// A file could not be written.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// A checkpoint of another scene.
    #[error("cannot go on from {}, a state of another scene: {}", path.shown(), what.shown())]
    OtherScene {
        /// The checkpoint.
        path: PathBuf,
        /// The difference.
        what: String,
    },
    /// Ranks could not be run.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// Messages failed.
    #[error(transparent)]
    Comm(#[from] CommError),
    /// A record could not be written.
    #[error(transparent)]
    RecordFile(#[from] RecordError),
    /// A step does not fit into a record.
    #[error("the step cannot be recorded: {0}")]
    Record(ShapeError),
    /// Several ranks are to be recorded.
    #[error(
        "a run is recorded on one rank, and studied on any number: use --ranks 1 with --record, and then \
         `weft study` with --ranks"
    )]
    RecordRanks,
    /// One rank cannot be several.
    #[error("one rank alone cannot be {0} ranks; leave out `--comm solo` or `--ranks`")]
    SoloRanks(usize),
    /// Steps to trace that the run does not take.
    #[error("there is no step {from} to trace or record: the run ends with step {steps}")]
    NothingToTrace {
        /// The first step to trace.
        from: u64,
        /// The last step of the run.
        steps: u64,
    },
    /// Ranks were given different options, scenes or meshes.
    #[error(transparent)]
    Differ(#[from] Differences),
    /// This function starts all ranks, but those of MPI are started by its launcher.
    #[error("ranks that are MPI processes are started by mpirun or srun")]
    NotHere,
}

impl RunError {
    /// The exit code of the command.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::SoloRanks(_)
            | Self::NothingToTrace { .. }
            | Self::RecordRanks
            | Self::NotHere => 2,
            Self::Differ(differences) if differences.of_options() => 2,
            Self::World(error) => error.exit_code(),
            Self::Differ(_) | Self::OtherScene { .. } | Self::Step(StepError::Partition(_)) => 3,
            // A task that panicked is an error in the program.
            Self::Step(StepError::Detect {
                source: ScopeError::Task(_),
                ..
            }) => 101,
            Self::Step(_) => 4,
            Self::Record(_) | Self::Comm(CommError::Unsendable { .. }) => 4,
            Self::Output(_) | Self::RecordFile(_) => 5,
            Self::Launch(
                LaunchError::NoRanks | LaunchError::Options(_) | LaunchError::TooMany { .. },
            ) => 2,
            Self::Launch(LaunchError::Panicked { .. }) | Self::Comm(_) => 101,
        }
    }

    /// Whether this only says that another rank failed.
    #[must_use]
    pub fn is_echo(&self) -> bool {
        match self {
            Self::Step(error) => error.is_echo(),
            Self::Comm(CommError::Aborted { .. } | CommError::Left { .. }) => true,
            _ => false,
        }
    }
}

/// Tells of a message of a rank that cannot be read.
pub(super) fn malformed(from: Rank) -> impl Fn(String) -> CommError {
    move |what| CommError::Malformed { from, what }
}
