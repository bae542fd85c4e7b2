//! The reason why a run cannot be refined.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use thiserror::Error;
use weft_io::Show as _;

use super::MOST_LEVELS;
use crate::mesh::{MAX_TRIANGLES, MAX_VERTICES};
use crate::output::OutputError;

/// The reason why a run cannot be refined.
#[derive(Debug, Error)]
pub enum RefineError {
    /// A file cannot be read or written, or the output directory is not free.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// None of the frames that are asked for is there.
    #[error(
        "the run has {count} frames, 0 to {}, and none of {} to {} is there; choose others with --frames",
        count.saturating_sub(1), asked.start(), asked.end()
    )]
    NoFrames {
        /// The frames that are asked for.
        asked: RangeInclusive<usize>,
        /// The number of frames.
        count: usize,
    },
    /// The run has seams.
    #[error(
        "the run has seams, whose sides would part when each of them is smoothed; weld the frame that you need and refine a run of that"
    )]
    Sewn,
    /// The frames would be written into the directory that they come from.
    #[error("{} is the directory of the run itself; choose another --out", .0.shown())]
    SameDirectory(PathBuf),
    /// The refined cloth would be larger than any cloth may be.
    #[error(
        "{levels} of at most {MOST_LEVELS} levels make {vertices} vertices and {triangles} triangles of the cloth, and there may be \
         {MAX_VERTICES} and {MAX_TRIANGLES}; choose fewer --levels"
    )]
    TooLarge {
        /// The levels that are asked for.
        levels: u32,
        /// The vertices that there would be.
        vertices: u64,
        /// The triangles that there would be.
        triangles: u64,
    },
    /// The system does not give the threads.
    #[error("threads cannot be started ({0}); choose fewer --threads")]
    Threads(#[from] rayon::ThreadPoolBuildError),
}

impl RefineError {
    /// The exit code of the command.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Output(_) | Self::Threads(_) => 5,
            Self::NoFrames { .. } | Self::SameDirectory(_) | Self::Sewn | Self::TooLarge { .. } => {
                2
            }
        }
    }
}
