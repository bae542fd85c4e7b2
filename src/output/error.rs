//! Why an output could not be written.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;
use weft_io::Show as _;

/// Why an output could not be written; the command turns it into exit code 5.
///
/// Every variant names the path, because "no space left on device" alone helps nobody.
#[derive(Debug, Error)]
pub enum OutputError {
    /// The output directory holds files of somebody else.
    #[error(
        "{} is not empty and is not the directory of an earlier run (it has no run.json of ours); \
         choose another --out or empty it",
        path.shown()
    )]
    NotARun {
        /// The directory asked for.
        path: PathBuf,
    },
    /// The output directory exists and is something else.
    #[error("{} exists and is not a directory; choose another --out", path.shown())]
    NotADirectory {
        /// The path asked for.
        path: PathBuf,
    },
    /// There is no earlier run to continue.
    #[error("{} holds no earlier run to continue (no run.json of ours)", path.shown())]
    NothingToResume {
        /// The directory asked for.
        path: PathBuf,
    },
    /// There is no checkpoint to go on from.
    #[error(
        "{} holds no checkpoint to go on from (state.*.ckpt); start again without --resume",
        path.shown()
    )]
    NoCheckpoint {
        /// The directory of the run.
        path: PathBuf,
    },
    /// A file or directory could not be written: permission, a full disk, a lost directory.
    #[error("cannot write {}: {source}", path.shown())]
    Write {
        /// The file or directory, under its final name.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file of an earlier run could not be read.
    #[error("cannot read {}: {source}", path.shown())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file of an earlier run is not what its name says.
    #[error("{} cannot be understood: {}", path.shown(), what.shown())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// The data handed over do not fit together; nothing was written.
    #[error("{} was not written: {what}", path.shown())]
    Inconsistent {
        /// The file that would have been written.
        path: PathBuf,
        /// What does not fit.
        what: String,
    },
}

impl OutputError {
    /// For `map_err`: names the file that could not be written.
    pub(crate) fn write(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        move |source| Self::Write {
            path: path.to_owned(),
            source,
        }
    }

    /// For `map_err`: names the file that could not be read.
    pub(crate) fn read(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        move |source| Self::Read {
            path: path.to_owned(),
            source,
        }
    }
}
