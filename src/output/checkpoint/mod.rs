//! `state.NNNNNN.ckpt`: the state after a number of steps, for the run to go on from, on any number
//! of ranks.
//!
//! | bytes | what |
//! |---|---|
//! | 8 | `WEFTCKPT` |
//! | 4 | version of this layout: 7 |
//! | 4 | length h of the header |
//! | h | the header, JSON: [`Header`] |
//! | 4 | number p of patches |
//! | 48 p | of each patch: the place of its section, how many vertices it has, its SHA-256 |
//! | 32 | SHA-256 of all before |
//! | … | the sections of the patches |
//!
//! The section of a patch of m vertices:
//!
//! | bytes | what |
//! |---|---|
//! | 4 m | the numbers of its vertices, in the order of the scene's own |
//! | 24 m | positions in m, three numbers of 64 bits per vertex |
//! | 24 m | velocities in m/s, likewise |
//! | 24 m | velocity changes of the last solve in m/s, likewise |
//! | 24 m | velocity changes of the one before, likewise |
//! | m | contact with bodies: 1 held, 2 released, 4 sticking, added up |
//! | 24 m | friction of bodies against sliding in N, three numbers of 64 bits per vertex |
//! | 24 m | with a past: positions before the last part of a step, in m |
//! | 24 m | with a past: velocities then, as the integrator takes them, in m/s |
//!
//! Numbers of the table have 64 bits, and all are little-endian. A file is complete or absent, and
//! damage that comes later is noticed by its sums. Sections lie where the numbers of vertices say,
//! so that each rank writes its own (`new`), and reads those that it needs (`sections`). Facts that
//! belong to no vertex stand in the header, as do the few vertices that bodies let through or that
//! are in tangles. Files of layouts 5 and 6 are read too (`earlier`).

mod earlier;
mod head;
mod new;
mod numbers;
mod sections;
#[cfg(test)]
mod tests;

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use weft_io::open_regular;

pub(crate) use self::new::{NewCheckpoint, Place};
pub use self::sections::SectionedCheckpoint;
use super::names::step_of;
use super::plain::open_plain;
use super::{HistoryMark, OutputError, RunDirectory};
use crate::build_identity::BuildIdentity;
use crate::step::SavedState;

const MAGIC: [u8; 8] = *b"WEFTCKPT";
/// Bytes before the header.
const PREFIX: usize = 16;
/// Bytes of a sum.
const SUM: usize = 32;
/// Longest header that is read; it holds the text of a scene.
const LONGEST_HEADER: u32 = 16 << 20;

/// A state with what is needed to go on from it.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    /// The run that the state belongs to.
    pub header: Header,
    /// The state.
    pub state: SavedState,
}

/// The facts that a checkpoint has about its run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// Version of the program that wrote it.
    pub program: String,
    /// The commit that this program was built from, if it knew; earlier programs do not say.
    #[serde(default)]
    pub commit: Option<String>,
    /// SHA-256 of its executable file; earlier programs do not say.
    #[serde(default)]
    pub executable: Option<String>,
    /// The mark of the history when this was written; earlier programs do not say.
    #[serde(default)]
    pub history: Option<HistoryMark>,
    /// Steps taken.
    pub step: u64,
    /// Simulated time in s.
    pub time_s: f64,
    /// Cloth vertices.
    pub vertices: u64,
    /// [`Scene::echo_of_trajectory`](crate::scene::Scene::echo_of_trajectory) of the scene.
    pub scene: String,
    /// [`World::digest`](crate::step::World::digest) of its meshes.
    pub world: String,
    /// Frames written.
    pub frames: u64,
    /// The next frame to write, as a multiple of the time between frames.
    pub next_frame: u64,
    /// Deepest vertex inside a body in any frame so far, in m, if there are bodies.
    pub deepest_m: Option<f64>,
    /// Largest principal strain of any step so far.
    pub strain: f64,
    /// The most by which one was larger than what its cloth bears, of any step so far; earlier
    /// programs do not say.
    #[serde(default)]
    pub beyond_limit: Option<f64>,
    /// [`SavedState::substep`].
    #[serde(default, rename = "stride")]
    pub substep: [u32; 2],
    /// The length of the substep before it in s, if the integrator looks back at it.
    #[serde(default)]
    pub past_s: Option<f64>,
    /// [`SavedState::squeezed`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub squeezed: Vec<[u32; 2]>,
    /// [`SavedState::kept`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<[u32; 2]>,
}

impl Header {
    /// The build of the program that wrote it.
    #[must_use]
    pub fn build(&self) -> BuildIdentity {
        BuildIdentity {
            version: self.program.clone(),
            commit: self.commit.clone(),
            executable: self.executable.clone(),
        }
    }

    /// Whether the length of the last part is one, if there is one.
    fn has_possible_past(&self) -> bool {
        (self.past_s).is_none_or(|length| length.is_finite() && length > 0.0)
    }
}

/// A checkpoint of which the head was read.
#[derive(Debug)]
pub enum OpenCheckpoint {
    /// One in sections, which are still to be read.
    InSections(Box<SectionedCheckpoint>),
    /// One of an earlier layout, which has none.
    Whole(Box<Checkpoint>),
}

impl Checkpoint {
    /// The file of the checkpoint after this number of steps, in the run's directory.
    #[must_use]
    pub fn file(step: u64) -> String {
        format!("state.{step:06}.ckpt")
    }

    /// The number of steps that the name of a checkpoint says; `None` if it has another name.
    #[must_use]
    pub fn step_in_name(path: &Path) -> Option<u64> {
        step_of(path.file_name()?.to_str()?)
    }

    /// Removes the checkpoints of a run that are of a later step: it goes on from an earlier one.
    ///
    /// # Errors
    /// [`OutputError::Read`], [`OutputError::Write`].
    pub(crate) fn remove_after(run: &RunDirectory, step: u64) -> Result<(), OutputError> {
        for (of, _) in all(run.path())?.into_iter().filter(|(of, _)| *of > step) {
            run.remove(&Self::file(of))?;
        }
        Ok(())
    }

    /// Removes the checkpoints of a run but the one of this step and the newest before it.
    fn keep_newest(run: &RunDirectory, step: u64) -> Result<(), OutputError> {
        let listed = run.listed();
        let others = all(run.path())?.into_iter().map(|(of, _)| of);
        let others: Vec<u64> = others
            .filter(|&of| of != step && listed.contains(&Self::file(of)))
            .collect();
        let before = others.iter().copied().filter(|&of| of < step).max();
        for of in others.into_iter().filter(|&of| Some(of) != before) {
            run.remove(&Self::file(of))?;
        }
        Ok(())
    }

    /// Opens a checkpoint and reads its head, or all of it if it is of an earlier layout.
    ///
    /// # Errors
    /// [`OutputError::Read`]; [`OutputError::Malformed`] for one that was made by another version
    /// of the layout; [`OutputError::Damaged`] for a file that is no checkpoint or not any more.
    pub fn open(path: &Path) -> Result<OpenCheckpoint, OutputError> {
        let read = |source| OutputError::Read {
            path: path.to_owned(),
            source,
        };
        let damaged = |what: String| OutputError::Damaged {
            path: path.to_owned(),
            what,
        };
        let mut file = open_regular(path).map_err(read)?;
        let there = file.metadata().map_err(read)?.len();
        let mut prefix = [0; PREFIX];
        if there < PREFIX as u64 {
            return Err(damaged("it is not a checkpoint".to_owned()));
        }
        file.read_exact(&mut prefix).map_err(read)?;
        if prefix[..8] != MAGIC {
            return Err(damaged("it is not a checkpoint".to_owned()));
        }
        let version = u32::from_le_bytes([prefix[8], prefix[9], prefix[10], prefix[11]]);
        if earlier::VERSIONS.contains(&version) {
            let whole = earlier::read(path, prefix, file, there)?;
            return Ok(OpenCheckpoint::Whole(Box::new(whole)));
        }
        // Layouts to come have this head too, so that they can be distinguished from damage.
        let head = head::Head::read(&prefix, &mut file, there).map_err(read)?;
        match head {
            Some(head) if version == head::VERSION => {
                let open = SectionedCheckpoint::of(path, file, head, there)?;
                return Ok(OpenCheckpoint::InSections(Box::new(open)));
            }
            None if version == head::VERSION => {
                return Err(damaged(
                    "its head is cut off, or its sum is wrong".to_owned(),
                ));
            }
            Some(_) => {}
            None => {
                file.seek(SeekFrom::Start(PREFIX as u64)).map_err(read)?;
                if !earlier::is_summed(&prefix, file, there).map_err(read)? {
                    return Err(damaged(format!("it names a layout {version}")));
                }
            }
        }
        let [plain, with_past] = earlier::VERSIONS;
        Err(OutputError::Malformed {
            path: path.to_owned(),
            what: format!(
                "it is a checkpoint of layout {version}, and this program reads {plain}, {with_past} and {}; go on from it with the weft that wrote it",
                head::VERSION
            ),
        })
    }

    /// Reads a checkpoint.
    ///
    /// # Errors
    /// As [`Self::open`] and [`SectionedCheckpoint::read_whole`].
    pub fn read(path: &Path) -> Result<Self, OutputError> {
        match Self::open(path)? {
            OpenCheckpoint::InSections(open) => open.read_whole(),
            OpenCheckpoint::Whole(whole) => Ok(*whole),
        }
    }

    /// The newest checkpoint in a directory that is of this step or an earlier one, if there is
    /// any.
    ///
    /// # Errors
    /// [`OutputError::Read`].
    pub fn newest_until(directory: &Path, step: u64) -> Result<Option<PathBuf>, OutputError> {
        let mut all = all(directory)?;
        all.retain(|(of, _)| *of <= step);
        Ok(all.pop().map(|(_, path)| path))
    }

    /// The files in a directory that are checkpoints by their names, newest first, with the steps
    /// in these.
    ///
    /// # Errors
    /// [`OutputError::Read`].
    pub fn all(directory: &Path) -> Result<Vec<(u64, PathBuf)>, OutputError> {
        let mut all = all(directory)?;
        all.reverse();
        Ok(all)
    }

    /// Whether a directory has a file that is a checkpoint by its name and its first bytes.
    pub(super) fn any(directory: &Path) -> Result<bool, OutputError> {
        let begins = |path: &Path| {
            let mut magic = [0; MAGIC.len()];
            let mut file = open_plain(File::options().read(true), path)?;
            file.read_exact(&mut magic)?;
            Ok::<_, io::Error>(magic == MAGIC)
        };
        // A file that cannot be read is not known to be a checkpoint.
        let mut all = all(directory)?.into_iter();
        Ok(all.any(|(_, path)| begins(&path).unwrap_or(false)))
    }

    /// Removes all checkpoints of the run in a directory.
    ///
    /// # Errors
    /// As [`RunDirectory::reopen`]; [`OutputError::Read`], [`OutputError::Write`].
    pub fn remove_all(directory: &Path) -> Result<(), OutputError> {
        let run = RunDirectory::reopen(directory)?;
        for (of, _) in all(directory)? {
            run.remove(&Self::file(of))?;
        }
        Ok(())
    }
}

/// The checkpoints of a directory, oldest first.
fn all(directory: &Path) -> Result<Vec<(u64, PathBuf)>, OutputError> {
    let mut found = Vec::new();
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(found),
        entries => entries.map_err(OutputError::read(directory))?,
    };
    for entry in entries {
        let entry = entry.map_err(OutputError::read(directory))?;
        let step = entry.file_name().to_str().and_then(step_of);
        found.extend(step.map(|step| (step, entry.path())));
    }
    found.sort_unstable();
    Ok(found)
}
