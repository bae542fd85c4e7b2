//! Going on from a checkpoint: which one, and whether it is one of this scene.

use std::path::{Path, PathBuf};

use super::RunError;
use crate::output::checkpoint::Header;
use crate::output::{Checkpoint, RunDirectory};
use crate::step::World;

/// What a run goes on from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resume {
    /// The newest checkpoint in the output directory, which must be that of an earlier run.
    Newest,
    /// This checkpoint. Outputs in its own directory are continued, in another one they begin there.
    From(PathBuf),
}

/// Reads the checkpoint to go on from and opens the directory of the outputs. Nothing there has been changed
/// if this fails.
pub(super) fn open(
    resume: &Resume,
    out: &Path,
    world: &World,
) -> Result<(RunDirectory, Checkpoint), RunError> {
    let (path, in_place) = match resume {
        Resume::Newest => (Checkpoint::newest(out)?, true),
        Resume::From(path) => (path.clone(), is_in(path, out)),
    };
    let checkpoint = read_state(&path, world)?;
    let directory = if in_place {
        RunDirectory::reopen(out)?
    } else {
        RunDirectory::create(out)?
    };
    Ok((directory, checkpoint))
}

/// Reads a checkpoint of this world.
///
/// # Errors
/// It cannot be read, is damaged, or is of another scene.
pub fn read_state(path: &Path, world: &World) -> Result<Checkpoint, RunError> {
    let checkpoint = Checkpoint::read(path)?;
    check(&checkpoint.header, world).map_err(|what| RunError::OtherScene {
        path: path.to_owned(),
        what,
    })?;
    Ok(checkpoint)
}

fn is_in(path: &Path, directory: &Path) -> bool {
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    match (folder.canonicalize(), directory.canonicalize()) {
        (Ok(folder), Ok(directory)) => folder == directory,
        _ => false,
    }
}

/// Whether a state is one of this world; the error says what differs.
fn check(header: &Header, world: &World) -> Result<(), String> {
    let (here, there) = (world.scene().echo_of_trajectory(), &header.scene);
    if here != *there {
        let mut lines = there.lines().zip(here.lines());
        return Err(match lines.find(|(there, here)| there != here) {
            Some((there, here)) => {
                format!("it has `{there}` where the scene now has `{here}`")
            }
            None => "one of the two has more in it than the other".to_owned(),
        });
    }
    if header.world != world.digest() || header.vertices != world.model().masses().len() as u64 {
        return Err("its meshes are others".to_owned());
    }
    Ok(())
}
