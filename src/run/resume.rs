//! Going on from a checkpoint: which one, and whether it is one of this scene.
//!
//! What a scene says of how exactly equations are solved and in which parts steps may be taken ([`EXACTNESS`]) may have changed: a run that failed for it
//! has to be helped. The trajectory is another one from there on, and the record says so.

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

/// Keys, with their tables, that may be others than a checkpoint's.
const EXACTNESS: [(&str, &str); 6] = [
    ("[time]", "shortest"),
    ("[time]", "strain_change"),
    ("[solver]", "tolerance"),
    ("[solver]", "max_iterations"),
    ("[solver]", "newton"),
    ("[solver]", "newton_tolerance"),
];

/// The lines of a scene, each with whether it is about [`EXACTNESS`].
fn lines(scene: &str) -> impl Iterator<Item = (&str, bool)> {
    let mut table = "";
    scene.lines().map(move |line| {
        if line.starts_with('[') {
            table = line;
        }
        let key = line.split_once('=').map_or("", |(key, _)| key.trim());
        (line, EXACTNESS.contains(&(table, key)))
    })
}

/// The lines of a scene that are about [`EXACTNESS`], or those that are not.
fn part(scene: &str, exactness: bool) -> Vec<&str> {
    let of_part = lines(scene).filter(|(_, of)| *of == exactness);
    of_part.map(|(line, _)| line).collect()
}

/// What a scene says of [`EXACTNESS`] that a checkpoint does not, and the other way round, for people; nothing if they are the same.
pub(super) fn changed(header: &Header, world: &World) -> Option<String> {
    let here = world.scene().echo_of_trajectory();
    let (now, before) = (part(&here, true), part(&header.scene, true));
    let but = |of: &[&str], other: &[&str]| {
        let of: Vec<&str> = of
            .iter()
            .copied()
            .filter(|line| !other.contains(line))
            .collect();
        if of.is_empty() {
            "nothing".to_owned()
        } else {
            of.join(", ")
        }
    };
    (now != before).then(|| {
        format!(
            "from step {} on the run had {} where it had {} before: no run of this scene alone ends so",
            header.step,
            but(&now, &before),
            but(&before, &now)
        )
    })
}

/// Whether a state is one of this world; the error says what differs.
fn check(header: &Header, world: &World) -> Result<(), String> {
    let here = world.scene().echo_of_trajectory();
    let (here, there) = (part(&here, false), part(&header.scene, false));
    if here != there {
        let mut lines = there.into_iter().zip(here);
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
