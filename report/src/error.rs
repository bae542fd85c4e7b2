//! The reason why there is no report, and what to do about it.

use std::io;
use std::path::PathBuf;

use thiserror::Error;
use weft_io::Show as _;

/// The reason why there is no report; the command turns it into exit code 5.
#[derive(Debug, Error)]
pub enum ReportError {
    /// A directory without the record of a run.
    #[error("{} is no run's directory: it has no run.json; name the directory that `weft run --out` was given", .0.shown())]
    NotARun(PathBuf),
    /// A directory that `weft study` wrote.
    #[error(
        "{} is the directory of a study, not of a run: what it found is in its study.csv and study.json, and in the plots beside \
         them; `weft report` takes what `weft run --out` wrote",
        .0.shown()
    )]
    Study(PathBuf),
    /// The record is not of this program, or of a later version of it.
    #[error("{} is no record that this version can read: {}; use the version that wrote it", path.shown(), what.shown())]
    Record {
        /// The record.
        path: PathBuf,
        /// A description of the fault.
        what: String,
    },
    /// The history is not one.
    #[error("{} is no history of a run: {}; move it away for a report without it", path.shown(), what.shown())]
    History {
        /// The file.
        path: PathBuf,
        /// A description of the fault.
        what: String,
    },
    /// A trace of another version, or damaged.
    #[error(
        "{} is no trace that this version can read: {}; run again with --trace, or move trace/ away for a \
         report without it",
        path.shown(),
        what.shown()
    )]
    Trace {
        /// The rank's file.
        path: PathBuf,
        /// A description of the fault.
        what: String,
    },
    /// A file that is there could not be read.
    #[error("cannot read {}: {source}", path.shown())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}
