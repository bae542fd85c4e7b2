//! The options of a run: everything that it gets beside its scene.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use weft_runtime::comm::virtual_time::Network;

use super::{Stop, TraceSteps};
use crate::memory::Limit;
use crate::output::{RunDirectory, RunRecord};

/// The way in which ranks talk to each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Driver {
    /// One rank alone.
    Solo,
    /// Every rank a thread of this process.
    Threads,
    /// Ranks in virtual time, on a modelled network; computation costs what it takes here.
    Virtual(Network),
    /// Every rank a process that calls [`run_rank`](super::run_rank).
    Mpi,
}

impl Driver {
    /// Its name in records and on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Solo => "solo",
            Self::Threads => "threads",
            Self::Virtual(_) => "virtual",
            Self::Mpi => "mpi",
        }
    }
}

/// The options of a run.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// Number of ranks.
    pub ranks: usize,
    /// Workers per rank.
    pub threads: usize,
    /// Whether a thread of each rank beside its workers does nothing but messages.
    pub progress_thread: bool,
    /// The way in which ranks talk.
    pub driver: Driver,
    /// The memory that the process may have; a scene that needs more is refused. Ranks that are
    /// processes are given worlds that are there, and nothing is refused.
    pub memory: Limit,
    /// Steps to take, counted from time 0, if not as many as the scene says.
    pub steps: Option<u64>,
    /// Directory that receives the outputs.
    pub out: PathBuf,
    /// The state to go on from, if not from the start.
    pub resume: Option<Resume>,
    /// Whether a run that is in the directory is replaced, if it is not gone on with. Otherwise it
    /// is refused.
    pub overwrite: bool,
    /// Asks to stop early.
    pub stop: Stop,
    /// Steps to trace.
    pub trace: Option<TraceSteps>,
    /// Whether to record shape and cost of tests, and of which steps if not of the last.
    pub record: Option<Option<TraceSteps>>,
    /// Whether frames are looked at for cloth that crosses itself or bodies.
    pub audit: Option<Audit>,
    /// The way to show progress: a bar, lines, or nothing.
    pub progress: Show,
    /// The command line, for the record.
    pub command: Vec<String>,
    /// The host of each rank; if there are none, all are here.
    pub hosts: Vec<String>,
    /// The name that the MPI library gives itself, if there is one.
    pub mpi: Option<String>,
    /// The outputs that have been begun, for [`note_failure`](super::note_failure).
    pub begun: Begun,
}

/// The outputs that a process has begun, of a run whose ranks were started by somebody else. Clones
/// know the same.
#[derive(Clone, Debug, Default)]
pub struct Begun(pub(super) Arc<Mutex<Option<(RunDirectory, RunRecord)>>>);

impl Begun {
    pub(super) fn set(&self, begun: Option<(RunDirectory, RunRecord)>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = begun;
    }
}

/// The consequence of cloth that crosses itself or a body in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audit {
    /// It is reported.
    Count,
    /// The run counts as failed.
    Strict,
}

/// The way in which progress is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Show {
    /// A bar with the time left.
    Bar,
    /// Some plain lines.
    Lines,
    /// A line of JSON for each thing that happens.
    Json,
    /// Nothing.
    Nothing,
}

/// The state that a run goes on from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resume {
    /// The newest checkpoint in the output directory, which must be that of an earlier run.
    Newest,
    /// The newest checkpoint in the output directory, if there is one to go on from; else the run
    /// starts.
    Auto,
    /// This checkpoint. Outputs in its own directory are continued, in another one they begin
    /// there.
    From(PathBuf),
}

/// The stack of a rank in virtual time in bytes; only the used part takes memory.
pub(super) const VIRTUAL_STACK: usize = 4 << 20;
