//! Starting MPI, what there is to know about the ranks, and running jobs on them.

use std::time::{Duration, Instant};

use mpi::Threading;
use mpi::environment::Universe;
use mpi::topology::SimpleCommunicator;
use mpi::traits::{Communicator as _, CommunicatorCollectives as _};
use thiserror::Error;
use weft_runtime::comm::{Collectives as _, Comm, CommError, Rank};

use crate::comm::{MpiComm, kind};
use crate::cores::Cores;
use crate::end::{self, Failure, INTERNAL};
use crate::hello;
use crate::idle::{Idle, UnknownIdle};
use crate::raw::Lane;

/// Longest piece of a message that MPI gets at once, in bytes. It counts them with 31 bits.
const LONGEST_PIECE: usize = 1 << 30;

/// Exit code of a rank whose MPI is of no use.
const UNFIT: u8 = 2;

/// The variable of the environment with the name of an [`Idle`].
pub const WEFT_MPI_IDLE: &str = "WEFT_MPI_IDLE";

/// How ranks use MPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The way in which a rank waits.
    pub idle: Idle,
    /// Messages longer than this many bytes travel in several pieces: 1 to 2^30. All ranks may
    /// differ.
    pub piece: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            idle: Idle::default(),
            piece: LONGEST_PIECE,
        }
    }
}

impl Options {
    /// The defaults, with what the environment says: `WEFT_MPI_IDLE` (`spin`, `yield` or `sleep`)
    /// and `WEFT_MPI_PIECE` (bytes).
    ///
    /// # Errors
    /// A variable holds something else.
    pub fn from_env() -> Result<Self, StartError> {
        let mut options = Self::default();
        if let Some(name) = std::env::var_os(WEFT_MPI_IDLE) {
            options.idle = name.to_string_lossy().parse()?;
        }
        if let Some(text) = std::env::var_os("WEFT_MPI_PIECE") {
            let text = text.to_string_lossy();
            options.piece = text
                .parse()
                .ok()
                .filter(|bytes| (1..=LONGEST_PIECE).contains(bytes))
                .ok_or_else(|| StartError::Piece(text.into_owned()))?;
        }
        Ok(options)
    }
}

/// The reason why MPI cannot be used.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum StartError {
    /// It can be started once in a process.
    #[error("MPI was started before in this process, and can be started only once")]
    Started,
    /// Ranks have workers that are threads.
    #[error(
        "this MPI grants the thread level `{0}`, but ranks with workers need `funneled`; use an MPI that was \
         built with threads"
    )]
    ThreadLevel(&'static str),
    /// Messages differ by their tags.
    #[error("this MPI has tags up to {0} only, and {needed} are needed; use another MPI", needed = kind::LARGEST)]
    Tags(i32),
    /// A rank cannot take part, or ranks run different programs; each rank has this error.
    #[error("{message}")]
    Refused {
        /// The exit code for its process: that of the rank that cannot take part, or 3.
        code: u8,
        /// The fault, the rank on which it is, and what to do about it.
        message: String,
        /// Whether this rank is the one that should say so.
        speaks: bool,
        /// How many ranks have found each other.
        ranks: usize,
    },
    /// See [`Options::from_env`].
    #[error("WEFT_MPI_IDLE: {0}")]
    Idle(#[from] UnknownIdle),
    /// See [`Options::from_env`].
    #[error("WEFT_MPI_PIECE: `{0}` is no number of bytes from 1 to {LONGEST_PIECE}")]
    Piece(String),
}

/// MPI, started: to be made once in a process, on its main thread, on every rank.
///
/// When it is dropped MPI is finalised, which waits for all ranks: a rank that cannot go on must
/// end the job through [`Mpi::job`] or [`Mpi::agree`] instead. From the start on, a panic on any
/// thread ends the job.
#[derive(Debug)]
pub struct Mpi {
    world: Lane,
    level: &'static str,
    options: Options,
    hosts: Vec<String>,
    nodes: Vec<u32>,
    start: Instant,
    /// Dropped last.
    _universe: Started,
}

/// Finalises MPI when dropped.
struct Started {
    _universe: Universe,
}

impl std::fmt::Debug for Started {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Started").finish_non_exhaustive()
    }
}

impl Mpi {
    /// Starts MPI. Collective; ranks that were started by no launcher are alone.
    ///
    /// # Errors
    /// It cannot be used; see [`StartError`].
    pub fn start(options: Options) -> Result<Self, StartError> {
        Self::start_together(Ok(("", options)))
    }

    /// Starts MPI where all ranks must run one program. Each says which it is, in at most 247
    /// bytes, or why it cannot take part; they hear that before anything else, and whatever the
    /// builds. Collective.
    ///
    /// # Errors
    /// It cannot be used. Where a rank cannot take part, or they run different programs, that is
    /// [`StartError::Refused`] on all of them.
    #[expect(clippy::disallowed_methods, reason = "a driver reads the clock")]
    pub fn start_together(own: Result<(&str, Options), Failure>) -> Result<Self, StartError> {
        let (universe, level) =
            mpi::initialize_with_threading(Threading::Funneled).ok_or(StartError::Started)?;
        let world = universe.world();
        let universe = Started {
            _universe: universe,
        };
        let name = mpi::environment::processor_name().unwrap_or_default();
        let host = if name.is_empty() {
            "an unknown host".to_owned()
        } else {
            name
        };
        end::install_hook(Rank(world.rank() as u32), &host);
        let world = Lane::of(world);
        let largest = world.largest_tag();
        let unfit = if level < Threading::Funneled {
            Some(StartError::ThreadLevel(name_of(level)))
        } else if largest < kind::LARGEST {
            Some(StartError::Tags(largest))
        } else {
            None
        };
        let own = match unfit {
            None => own,
            Some(error) => own.and_then(|_| {
                Err(Failure {
                    code: UNFIT,
                    message: error.to_string(),
                    echo: false,
                })
            }),
        };
        let rank = Rank(world.comm().rank() as u32);
        let said = own.as_ref().map(|(program, _)| *program);
        let ranks = world.comm().size() as usize;
        hello::greet(world.comm(), &host, said).map_err(|refusal| StartError::Refused {
            code: refusal.code,
            message: refusal.message,
            speaks: refusal.speaker == rank,
            ranks,
        })?;
        // A rank that cannot take part has heard itself say so.
        let (_, options) = own.map_err(|failure| StartError::Refused {
            code: failure.code,
            message: failure.message,
            speaks: true,
            ranks,
        })?;
        let nodes = nodes(world.comm());
        let mut mpi = Self {
            world,
            level: name_of(level),
            options,
            hosts: Vec::new(),
            nodes,
            start: Instant::now(),
            _universe: universe,
        };
        let hosts = mpi.run(|comm| comm.allgather(host.clone().into_bytes()));
        mpi.hosts = hosts.map_or_else(
            |_| vec![host.clone(); mpi.size()],
            |hosts| {
                let text = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).into_owned();
                hosts.iter().map(text).collect()
            },
        );
        mpi.world().barrier();
        mpi.start = Instant::now();
        Ok(mpi)
    }

    /// This rank.
    #[must_use]
    pub fn rank(&self) -> Rank {
        Rank(self.world().rank() as u32)
    }

    /// How many ranks there are.
    #[must_use]
    pub fn size(&self) -> usize {
        self.world().size() as usize
    }

    /// The host of each rank.
    #[must_use]
    pub fn hosts(&self) -> &[String] {
        &self.hosts
    }

    /// The host of this rank.
    #[must_use]
    pub fn host(&self) -> &str {
        let host = self.hosts.get(self.rank().index());
        host.map_or("an unknown host", String::as_str)
    }

    /// The node of each rank, numbered from 0 in the order of their first ranks: ranks of one node
    /// share memory.
    #[must_use]
    pub fn nodes(&self) -> &[u32] {
        &self.nodes
    }

    /// The thread level that MPI granted.
    #[must_use]
    pub fn thread_level(&self) -> &'static str {
        self.level
    }

    /// How MPI is used.
    #[must_use]
    pub fn options(&self) -> Options {
        self.options
    }

    /// The cores that each rank may use. Collective.
    ///
    /// # Errors
    /// A rank has ended the job.
    pub fn cores(&mut self) -> Result<Vec<Cores>, CommError> {
        let cores = self.run(|comm| comm.allgather(Cores::here().to_bytes()))?;
        Ok(cores.iter().map(|bytes| Cores::from_bytes(bytes)).collect())
    }

    /// Changes what this rank does while it waits.
    pub fn set_idle(&mut self, idle: Idle) {
        self.options.idle = idle;
    }

    /// How it waits.
    #[must_use]
    pub fn idle(&self) -> Idle {
        self.options.idle
    }

    /// Time since the ranks started together.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.start.elapsed()
    }

    pub(crate) fn world(&self) -> &SimpleCommunicator {
        self.world.comm()
    }

    /// Runs `body` on every rank, and returns when it has ended on all of them. Collective.
    ///
    /// An error of the body does not end the other ranks; see [`Mpi::job`] for what does.
    pub fn run<R>(&mut self, body: impl FnOnce(&mut dyn Comm) -> R) -> R {
        let mut comm = MpiComm::open(self);
        let result = body(&mut comm);
        comm.leave_together();
        result
    }

    /// Runs `body` on every rank: all come to its end, or the job ends with the failure of one.
    /// Collective.
    ///
    /// It returns only when `body` has succeeded on all ranks. Otherwise one rank says what went
    /// wrong, with its number and host, all ranks are ended, and the launcher returns the code of
    /// that failure. Before that, `record` is called on rank 0 if it can still be reached.
    pub fn job<R>(
        &mut self,
        body: impl FnOnce(&mut dyn Comm) -> Result<R, Failure>,
        record: impl FnOnce(&Failure),
    ) -> R {
        let mut comm = MpiComm::open(self);
        match body(&mut comm) {
            Ok(value) => {
                comm.leave_together();
                value
            }
            Err(failure) => end::end(self, comm, failure, record),
        }
    }

    /// Compares how a step that every rank takes for itself, such as reading a file, has gone.
    /// Collective.
    ///
    /// # Errors
    /// The exit code of the lowest rank that failed, on every rank; that rank has said what it was.
    /// The process should then end with this code.
    pub fn agree<T>(&mut self, outcome: Result<T, Failure>) -> Result<T, u8> {
        let report = match &outcome {
            Ok(_) => Vec::new(),
            Err(failure) => vec![failure.code],
        };
        let codes = self.run(|comm| comm.allgather(report));
        let failed = |codes: Vec<Vec<u8>>| {
            let failed = codes.iter().position(|code| !code.is_empty());
            failed.map(|rank| (rank, codes[rank][0]))
        };
        let (rank, code) = match (codes.map(failed), &outcome) {
            (Ok(None), _) => (self.size(), 0),
            (Ok(Some(first)), _) => first,
            (Err(CommError::Aborted { rank, .. }), _) => (rank.index(), INTERNAL),
            (Err(_), _) => (self.rank().index(), INTERNAL),
        };
        match outcome {
            Ok(value) if code == 0 => Ok(value),
            Err(failure) if rank == self.rank().index() => {
                end::say(self.rank(), self.host(), &failure.message);
                Err(code)
            }
            _ => Err(code),
        }
    }
}

/// The MPI library's own description, in a line. MPI need not have been started.
#[must_use]
pub fn library() -> String {
    let text = mpi::environment::library_version().unwrap_or_default();
    // Some go on with how they were built.
    let line = text.lines().next().unwrap_or_default();
    let line = line.split(", ").next().unwrap_or_default();
    let line = line.trim_end_matches(['\0', ' ']);
    if line.is_empty() {
        "an MPI library that does not say its name".to_owned()
    } else {
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

fn name_of(level: Threading) -> &'static str {
    match level {
        Threading::Single => "single",
        Threading::Funneled => "funneled",
        Threading::Serialized => "serialized",
        Threading::Multiple => "multiple",
    }
}

/// Numbers the nodes: those who share memory with the lowest rank first, and so on.
fn nodes(world: &SimpleCommunicator) -> Vec<u32> {
    let node = world.split_shared(world.rank());
    let mut lowest = world.rank();
    let operation = mpi::collective::SystemOperation::min();
    node.all_reduce_into(&world.rank(), &mut lowest, operation);
    let mut lowest_of = vec![0; world.size() as usize];
    world.all_gather_into(&lowest, &mut lowest_of[..]);
    let mut firsts: Vec<i32> = lowest_of.clone();
    firsts.sort_unstable();
    firsts.dedup();
    let number = |first: &i32| firsts.binary_search(first).unwrap_or_default() as u32;
    lowest_of.iter().map(number).collect()
}
