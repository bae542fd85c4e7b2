//! Checkpoints of all ranks: each writes the patches that it owns into one file, and reads them
//! again when a run goes on.

use std::ffi::OsString;
use std::path::Path;

use serde::{Deserialize, Serialize};
use weft_runtime::comm::{Comm, Rank};

use super::RunError;
use super::outputs::Start;
use super::resume::Source;
use super::together::{agree, broadcast, write_together};
use super::writer::Writer;
use crate::output::{Checkpoint, OpenCheckpoint, OutputError};
use crate::step::{PatchState, SavedState, Simulation, StateOutline};

/// Writes the state, for a later run to go on from; rank 0 has a writer. Collective.
///
/// # Errors
/// The same on all ranks, if a rank cannot write its part; the checkpoints before stay then.
pub(super) fn write(
    simulation: &Simulation<'_>,
    writer: Option<&mut Writer<'_>>,
    comm: &mut dyn Comm,
) -> Result<(), RunError> {
    let mut writer = writer;
    let begun = (writer.as_deref_mut()).map(|writer| writer.begin_checkpoint(simulation));
    let first = simulation.ownership().vertices(comm.rank().index()).start;
    write_together(
        comm,
        begun,
        |place| place.write(first, simulation.own_patches()),
        |new, sums| new.complete(sums.into_iter().flatten()),
    )?;
    if let Some(writer) = writer {
        writer.tell_checkpoint(simulation);
    }
    Ok(())
}

/// The way by which ranks get the state to go on from, as rank 0 tells it.
#[derive(Serialize, Deserialize)]
enum Way {
    /// There is none.
    None,
    /// Each reads its patches from this file.
    InSections(OsString),
    /// Rank 0 has read it, and tells the others.
    Told,
}

/// Goes on from the state that rank 0 has found, if it has. Collective.
///
/// # Errors
/// The same on all ranks, if a rank cannot read its part; messages failed.
pub(super) fn resume(
    simulation: &mut Simulation<'_>,
    start: Option<&Start>,
    comm: &mut dyn Comm,
) -> Result<(), RunError> {
    let source = start.and_then(|start| start.checkpoint.as_ref());
    let source = source.map(|restart| &restart.source);
    let way = match source {
        None => Way::None,
        Some(Source::InSections(path)) => Way::InSections(path.clone().into_os_string()),
        Some(Source::Whole(_)) => Way::Told,
    };
    match broadcast(comm, Some(&way))? {
        Way::None => {}
        Way::InSections(path) => {
            let patches = simulation.ownership().patches(comm.rank().index());
            let read = read_patches(Path::new(&path), patches);
            let (outline, own) = agree(comm, read)?;
            simulation.restore_patches(&outline, &own, comm)?;
        }
        Way::Told => {
            let whole = match source.filter(|_| comm.rank() == Rank(0)) {
                Some(Source::Whole(state)) => Some(&**state),
                _ => None,
            };
            if let Some(state) = SavedState::broadcast(whole, comm)? {
                simulation.restore(&state)?;
            }
        }
    }
    Ok(())
}

/// Reads some patches of a checkpoint that was in sections when rank 0 looked at it.
fn read_patches(
    path: &Path,
    patches: std::ops::Range<usize>,
) -> Result<(StateOutline, Vec<PatchState>), OutputError> {
    match Checkpoint::open(path)? {
        OpenCheckpoint::InSections(mut open) => {
            let own: Result<_, _> = patches.map(|patch| open.read_patch(patch)).collect();
            Ok((open.outline(), own?))
        }
        OpenCheckpoint::Whole(_) => Err(OutputError::Damaged {
            path: path.to_owned(),
            what: "it has become another file".to_owned(),
        }),
    }
}
