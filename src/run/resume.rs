//! Going on from a checkpoint: which one, and whether it is one of this scene.
//!
//! The keys that say how exactly equations are solved and in which parts steps may be taken may
//! have changed, for a run that failed for it has to be helped, and so may the forces that act
//! ([`Scene::keys_of_later`]). The trajectory is another one from there on, and the record says so.

use std::path::{Path, PathBuf, absolute};

use sha2::{Digest as _, Sha256};
use weft_io::Show as _;

use super::changes::{differences, earlier, sentences};
use super::{Resume, RunError, RunOptions};
use crate::build_identity::BuildIdentity;
use crate::output::checkpoint::Header;
use crate::output::{
    ChangeRecord, Checkpoint, Collection, Destination, FrameSeries, HistoryWriter, OpenCheckpoint,
    OutputError, RunDirectory, RunRecord,
};
use crate::scene::Scene;
use crate::step::{SavedState, World};

/// The directory of a run's outputs, taken for this run.
pub(super) struct Opened {
    pub(super) directory: RunDirectory,
    /// The state to go on from.
    pub(super) checkpoint: Option<Restart>,
    /// Whether the outputs in the directory are continued.
    pub(super) in_place: bool,
    /// The changes of the scene since the run began, in the order of steps.
    pub(super) changes: Vec<ChangeRecord>,
    /// Notices about it that a reader of the result must know, each a sentence.
    pub(super) notices: Vec<String>,
}

/// A state to go on from, which was found undamaged.
pub(super) struct Restart {
    pub(super) header: Header,
    pub(super) source: Source,
}

/// The source from which ranks take it.
pub(super) enum Source {
    /// The file with this whole path, whose sections are the patches of the scene.
    InSections(PathBuf),
    /// Memory: the file has no sections, or has those of other patches.
    Whole(Box<SavedState>),
}

/// A state to go on from, where it was found.
struct Found {
    checkpoint: Restart,
    /// The changes of the scene since that state, and before it.
    changes: Vec<ChangeRecord>,
    path: PathBuf,
    /// Whether it lies in the output directory.
    in_place: bool,
    /// The reason why it is not a newer one.
    damage: Option<OutputError>,
}

/// Opens the directory of the outputs, and reads the state to go on from if the run is to. Nothing
/// has been changed on the disk if this is refused.
pub(super) fn open(options: &RunOptions, world: &World) -> Result<Opened, RunError> {
    let out = &options.out;
    let destination = Destination::look(out)?;
    let found = match &options.resume {
        None => None,
        Some(Resume::From(path)) => {
            let (checkpoint, changes) = look_at(path, world)?;
            Some(Found {
                checkpoint,
                changes,
                path: path.clone(),
                in_place: is_in(path, out),
                damage: None,
            })
        }
        Some(Resume::Newest) => match newest(out, world)? {
            None => return Err(OutputError::NoCheckpoint { path: out.clone() }.into()),
            found => found,
        },
        Some(Resume::Auto) if destination.holds_run() => newest(out, world)?,
        Some(Resume::Auto) => None,
    };
    let found = match found {
        Some(found) if found.in_place => return go_on(destination, found, options, world),
        found => found,
    };
    let again = options.resume == Some(Resume::Auto) && is_unfinished(out, world);
    let directory = match options.overwrite || again {
        true => destination.overwrite()?,
        false => destination.create()?,
    };
    let mut notices = directory.notices().to_vec();
    notices.extend(found.as_ref().and_then(other_build));
    let (checkpoint, changes) = match found {
        Some(found) => (Some(found.checkpoint), found.changes),
        None => (None, Vec::new()),
    };
    notices.extend(sentences(&changes));
    Ok(Opened {
        directory,
        checkpoint,
        in_place: false,
        changes,
        notices,
    })
}

/// Opens the directory of a run to go on with it.
fn go_on(
    destination: Destination,
    found: Found,
    options: &RunOptions,
    world: &World,
) -> Result<Opened, RunError> {
    let header = &found.checkpoint.header;
    let (out, mark) = (&options.out, header.history.as_ref());
    // A run that cannot be continued is refused before anything is changed.
    let of_history = HistoryWriter::look(out, header.step, mark)?;
    if world.scene().output.frames {
        Collection::read(&out.join(FrameSeries::COLLECTION))?;
    }
    let directory = destination.reopen()?;
    let mut notices = directory.notices().to_vec();
    notices.extend((found.damage.as_ref()).map(|damage| {
        let instead = found.path.shown();
        format!("{damage}; the run goes on from {instead} instead")
    }));
    notices.extend(other_build(&found));
    notices.extend(of_history);
    notices.extend(missing(&directory, header.step));
    notices.extend(sentences(&found.changes));
    Checkpoint::remove_after(&directory, header.step)?;
    Ok(Opened {
        directory,
        checkpoint: Some(found.checkpoint),
        in_place: true,
        changes: found.changes,
        notices,
    })
}

/// The newest state in a directory that is not damaged; `None` if there is no checkpoint.
fn newest(out: &Path, world: &World) -> Result<Option<Found>, RunError> {
    let mut damage = None;
    for (step, path) in Checkpoint::all(out)? {
        let read = look_at(&path, world).and_then(|(checkpoint, changes)| {
            let of = checkpoint.header.step;
            if of == step {
                return Ok((checkpoint, changes));
            }
            let what = format!("it is of step {of}, which is not the one in its name");
            let path = path.clone();
            Err(OutputError::Damaged { path, what }.into())
        });
        match read {
            Ok((checkpoint, changes)) => {
                return Ok(Some(Found {
                    checkpoint,
                    changes,
                    path,
                    in_place: true,
                    damage,
                }));
            }
            Err(RunError::Output(error @ OutputError::Damaged { .. })) => {
                damage.get_or_insert(error);
            }
            Err(error) => return Err(error),
        }
    }
    damage.map_or(Ok(None), |damage| Err(damage.into()))
}

/// Whether the run in a directory is one of this scene that was killed or has failed: one that left
/// no checkpoint has then nothing that the next attempt would not make again.
fn is_unfinished(out: &Path, world: &World) -> bool {
    RunRecord::read(out).is_ok_and(|record| {
        record.exit != Some(0) && record.scene.trajectory == Some(trajectory(world.scene()))
    })
}

/// The checksum of all keys on which a scene's trajectory depends.
pub(super) fn trajectory(scene: &Scene) -> String {
    let digest = Sha256::digest(scene.echo_of_trajectory());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A message that a state was written by another build than this one, if that may be so.
fn other_build(found: &Found) -> Option<String> {
    let (there, here) = (
        found.checkpoint.header.build(),
        BuildIdentity::as_far_as_known(),
    );
    (!here.is(&there)).then(|| {
        format!(
            "{} was written by another build than the one that goes on from it, and equal states are promised for one build \
             only: there {there}; here {here}",
            found.path.shown()
        )
    })
}

/// The files of frames before a step that are gone, in words.
fn missing(directory: &RunDirectory, step: u64) -> Option<String> {
    /// The most files that are named.
    const NAMED: usize = 4;
    let is_due = |name: &String| match step_of_frame(name) {
        Some(of) => of < step,
        None => name == FrameSeries::COLLECTION,
    };
    let listed = directory.listed().into_iter().filter(is_due);
    let gone: Vec<String> = listed
        .filter(|name| !directory.file(name).is_file())
        .collect();
    let named = gone
        .iter()
        .take(NAMED)
        .cloned()
        .collect::<Vec<_>>()
        .join(", ");
    let and_more = match gone.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (!gone.is_empty()).then(|| {
        format!(
            "files that the run wrote before step {step} are gone from {}: {named}{and_more}",
            directory.path().shown()
        )
    })
}

/// The step of a file of a frame.
fn step_of_frame(name: &str) -> Option<u64> {
    let (folder, file) = name.split_once('/')?;
    if ["trace", "exports"].contains(&folder) || file.starts_with("crossings.") {
        return None;
    }
    let stem = file.rsplit_once('.')?.0;
    stem.rsplit('.').next()?.parse().ok()
}

/// Reads a checkpoint of this world.
///
/// # Errors
/// It cannot be read, is damaged, or is of another scene.
pub fn read_state(path: &Path, world: &World) -> Result<Checkpoint, RunError> {
    let checkpoint = Checkpoint::read(path)?;
    check_header(path, &checkpoint.header, world)?;
    Ok(checkpoint)
}

/// Reads the head of a checkpoint of this world, and what the run has changed in its scene until
/// then and there; makes sure that the rest is not damaged, patch by patch.
fn look_at(path: &Path, world: &World) -> Result<(Restart, Vec<ChangeRecord>), RunError> {
    let (restart, changes) = match Checkpoint::open(path)? {
        OpenCheckpoint::Whole(whole) => {
            let changes = check_header(path, &whole.header, world)?;
            let (header, state) = (whole.header, Box::new(whole.state));
            let source = Source::Whole(state);
            (Restart { header, source }, changes)
        }
        OpenCheckpoint::InSections(mut open) => {
            let header = open.header().clone();
            let changes = check_header(path, &header, world)?;
            let tree = world.tree();
            let is_of = |patch: usize, vertices: &[u32]| {
                vertices == &tree.new_to_old()[tree.patch_vertices(patch)]
            };
            // Another build may have cut the scene into others.
            let are_ours = open.patches() == tree.patch_count();
            let source = if open.check(|patch, vertices| are_ours && is_of(patch, vertices))? {
                let whole = absolute(path).map_err(|source| OutputError::Read {
                    path: path.to_owned(),
                    source,
                })?;
                Source::InSections(whole)
            } else {
                Source::Whole(Box::new(open.read_whole()?.state))
            };
            (Restart { header, source }, changes)
        }
    };
    Ok((restart, changes))
}

/// Makes sure that a header is one of this world, and finds what the run has changed in its scene
/// until then and there.
fn check_header(
    path: &Path,
    header: &Header,
    world: &World,
) -> Result<Vec<ChangeRecord>, RunError> {
    let changed = check(header, world).map_err(|what| RunError::OtherScene {
        path: path.to_owned(),
        what,
    })?;
    let folder = path.parent().unwrap_or_else(|| Path::new(""));
    let mut changes = earlier(folder, header.step);
    changes.extend(changed);
    let time = header.step as f64 * world.scene().time.step;
    // As it was computed, but for what a last digit may lose in the text of a header.
    if (header.time_s - time).abs() > 1e-12 * time {
        let what = format!(
            "its step {} and its time {} s do not belong together; that step ends at {time} s",
            header.step, header.time_s
        );
        let path = path.to_owned();
        return Err(OutputError::Damaged { path, what }.into());
    }
    Ok(changes)
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

/// Whether a state is one of this world, and what of the scene has changed since; the error says
/// what differs and must not.
fn check(header: &Header, world: &World) -> Result<Vec<ChangeRecord>, String> {
    let changes = differences(&header.scene, world.scene(), header.step)?;
    if header.world != world.digest() || header.vertices != world.model().masses().len() as u64 {
        return Err("its meshes are others".to_owned());
    }
    Ok(changes)
}
