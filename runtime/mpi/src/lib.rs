//! Ranks that are MPI processes: the driver of [`weft_runtime::comm::Comm`] for clusters.
//!
//! [`Mpi::start`] starts MPI, [`Mpi::job`] runs a body on every rank. It differs from
//! [`threads::launch`](weft_runtime::comm::threads::launch) only in that every process calls it:
//!
//! ```no_run
//! use weft_mpi::{Failure, Mpi, Options};
//! use weft_runtime::comm::{Collectives, all_reduce};
//!
//! let mut mpi = Mpi::start(Options::from_env()?)?;
//! let fail = |error: weft_runtime::comm::CommError| Failure {
//!     code: 1,
//!     message: error.to_string(),
//!     echo: matches!(error, weft_runtime::comm::CommError::Aborted { .. }),
//! };
//! let sum = mpi.job(
//!     |comm| all_reduce(comm, f64::from(comm.rank().0), |a, b| a + b).map_err(fail),
//!     |failure| eprintln!("rank 0 could note here that the job failed with {}", failure.code),
//! );
//! println!("{sum} on rank {}", mpi.rank().0);
//! # Ok::<(), weft_mpi::StartError>(())
//! ```
//!
//! The thread level is `funneled`: the thread that starts MPI makes all calls, and workers, which
//! are threads, reach it through the channels of the runtime. Everything that MPI does with memory
//! of ours is in one file, `raw.rs`, with all `unsafe` code of the workspace but for the line that
//! maps files.

mod comm;
mod cores;
mod end;
mod hello;
mod idle;
mod map;
mod raw;
mod spare;
mod start;

pub use cores::{Cores, roomy};
pub use end::{Failure, INTERNAL};
pub use idle::{Idle, UnknownIdle};
pub use map::map_file;
pub use start::{Mpi, Options, StartError, WEFT_MPI_IDLE, library};
