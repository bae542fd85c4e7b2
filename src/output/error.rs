//! The reason why an output could not be written.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use thiserror::Error;
use weft_io::Show as _;

/// The reason why an output could not be written; the command turns it into exit code 5.
///
/// Every variant names the path, because "no space left on device" alone helps nobody.
#[derive(Debug, Error)]
pub enum OutputError {
    /// The output directory holds files of somebody else.
    #[error(
        "{} is not empty and is not the directory of an earlier run (it has neither a run.json nor a checkpoint of \
         ours); choose another --out or empty it",
        path.shown()
    )]
    NotARun {
        /// The directory asked for.
        path: PathBuf,
    },
    /// The output directory holds a run, which nobody has asked to replace.
    #[error(
        "{} holds a run of {scene}, {steps} step{} of it: {}",
        path.shown(),
        if *steps == 1 { "" } else { "s" },
        if *listed {
            "go on with --resume, choose another --out, or replace it with --overwrite"
        } else {
            "go on with --resume, or choose another --out; there is no list of its files (run.files), for an earlier \
             weft wrote it, so --overwrite cannot distinguish them from yours: to replace it, remove the directory first"
        }
    )]
    Occupied {
        /// The directory asked for.
        path: PathBuf,
        /// Its scene, in words.
        scene: String,
        /// The steps that it holds.
        steps: u64,
        /// Whether its files are listed.
        listed: bool,
    },
    /// The run in the output directory is to be replaced, and keeps no list of its files.
    #[error(
        "{} holds a run without a list of its files (run.files), for an earlier weft wrote it: --overwrite cannot distinguish them from yours; remove the directory, or choose another --out",
        path.shown()
    )]
    NoList {
        /// The directory asked for.
        path: PathBuf,
    },
    /// Another run is at work in the output directory.
    #[error(
        "another run is at work in {}: {holder}; wait for its end, or choose another --out",
        path.shown()
    )]
    Busy {
        /// The directory asked for.
        path: PathBuf,
        /// The process and the host that hold it.
        holder: String,
    },
    /// The run would have to write at a place where there is a link, or a directory instead of a
    /// file.
    #[error(
        "{}: {what}; runs follow no links in their directory, so nothing was written or removed there: move it away, or \
         choose another --out",
        path.shown()
    )]
    NotPlain {
        /// The file or folder.
        path: PathBuf,
        /// The kind of thing that is there.
        what: &'static str,
    },
    /// A file that the run has to write is there already, and is not its own.
    #[error(
        "{} is in the way: it is not a file of this run (run.files lists them); move it away, or choose another --out",
        path.shown()
    )]
    InTheWay {
        /// The file.
        path: PathBuf,
    },
    /// A file that is to be exported is there already.
    #[error(
        "{} is there already; choose another --out, or replace the files of these names with --overwrite",
        path.shown()
    )]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// A file of an earlier run was damaged.
    #[error("{} is damaged: {what}", path.shown())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The fault in it.
        what: String,
    },
    /// The output directory exists and is something else.
    #[error("{} exists and is not a directory; choose another --out", path.shown())]
    NotADirectory {
        /// The path asked for.
        path: PathBuf,
    },
    /// There is no earlier run to continue.
    #[error(
        "{} holds no run (neither a run.json nor a checkpoint of ours); name the directory that `weft run --out` was given",
        path.shown()
    )]
    NothingToResume {
        /// The directory asked for.
        path: PathBuf,
    },
    /// There is no checkpoint to go on from.
    #[error(
        "{} holds no checkpoint to go on from (state.*.ckpt): start again with --overwrite in place of --resume, or choose \
         another --out",
        path.shown()
    )]
    NoCheckpoint {
        /// The directory of the run.
        path: PathBuf,
    },
    /// A file or directory could not be written: permission, a full disk, a lost directory.
    #[error("cannot write {}: {source}{}", path.shown(), remedy(source))]
    Write {
        /// The file or directory, under its final name.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A rank could not write or read its part of a file that all ranks have in common.
    #[error(
        "rank {rank}: {what}; each rank writes and reads its part of the run's files, so its host must see their directory: \
         name one on a file system that all hosts share"
    )]
    OnRank {
        /// The rank.
        rank: u32,
        /// Its error.
        what: String,
    },
    /// A file of an earlier run could not be read.
    #[error("cannot read {}: {source}", path.shown())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A directory that should be that of a run is none.
    #[error(
        "{} is no run's directory: it has no run.json; name the directory that `weft run --out` was given",
        path.shown()
    )]
    NoRun {
        /// The directory asked for.
        path: PathBuf,
    },
    /// A file of an earlier run is not what its name says.
    #[error("{} cannot be understood: {}", path.shown(), what.shown())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The fault in it.
        what: String,
    },
    /// The data handed over do not fit together; nothing was written.
    #[error("{} was not written: {what}", path.shown())]
    Inconsistent {
        /// The file that would have been written.
        path: PathBuf,
        /// The arrays that do not fit.
        what: String,
    },
}

impl OutputError {
    /// For `map_err`: names the file that could not be written.
    pub(crate) fn write(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        // Reading the data to be written may have failed, and that error names its own file.
        move |error| match error.downcast::<Self>() {
            Ok(error) => error,
            Err(source) => Self::Write {
                path: path.to_owned(),
                source,
            },
        }
    }

    /// For `map_err`: names the file that could not be read.
    pub(crate) fn read(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        move |source| {
            let is_missing = matches!(
                source.kind(),
                ErrorKind::NotFound | ErrorKind::NotADirectory
            );
            match path.parent() {
                Some(folder) if is_missing && path.ends_with("run.json") => Self::NoRun {
                    path: folder.to_owned(),
                },
                _ => Self::Read {
                    path: path.to_owned(),
                    source,
                },
            }
        }
    }
}

/// The advice behind an error of the system in a message, if there is any to give.
pub(crate) fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
            "; make room there, or name another place"
        }
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            "; name a place where you may write"
        }
        ErrorKind::IsADirectory | ErrorKind::NotADirectory | ErrorKind::NotFound => {
            "; name another place"
        }
        _ => "",
    }
}
