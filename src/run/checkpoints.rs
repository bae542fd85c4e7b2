//! Checkpoints of all ranks: each writes the patches that it owns into one file, and reads them
//! again when a run goes on.

use std::ffi::OsString;
use std::ops::Range;
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
/// A rank cannot write its part, or messages failed. All ranks return the same error, and earlier
/// checkpoints stay.
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
/// A rank cannot read its part, or messages failed. All ranks return the same error.
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
    patches: Range<usize>,
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use weft_runtime::ScopeOptions;
    use weft_runtime::comm::Collectives as _;
    use weft_runtime::comm::threads::launch;

    use super::*;
    use crate::output::RunDirectory;
    use crate::output::checkpoint::{Header, NewCheckpoint};
    use crate::scene::Scene;
    use crate::step::{PatchView, World};

    const SCENE: &str = "partition.patches = 8
        time.step = \"2 ms\"
        solver.integrator = \"bdf2\"
        [[cloth]]
        grid = { size = 1, vertices = 9 }
        velocity = [0, 0, -1]
        material = { density = 0.15, stretch = 1000, bending = 1e-5 }
        [[body]]
        shape = \"plane\"
        point = [0, 0, -0.002]
        normal = [0, 0, 1]\n";

    /// The header of a state, which need not be of a run.
    fn header(outline: StateOutline) -> Header {
        Header {
            program: "0.1.0".to_owned(),
            commit: None,
            executable: None,
            history: None,
            step: outline.step,
            time_s: outline.step as f64 * 0.002,
            vertices: outline.vertices,
            scene: String::new(),
            world: String::new(),
            frames: 0,
            next_frame: 0,
            deepest_m: None,
            strain: 0.0,
            beyond_limit: None,
            substep: outline.substep,
            past_s: outline.past,
            squeezed: outline.squeezed,
            kept: outline.kept,
        }
    }

    /// Writes the state into a directory that rank 0 holds; `breaks` says whether this rank fails.
    fn save(
        simulation: &Simulation<'_>,
        world: &World,
        run: Option<&RunDirectory>,
        breaks: bool,
        comm: &mut dyn Comm,
    ) -> Result<Option<PathBuf>, RunError> {
        let begun = run.map(|run| {
            let tree = world.tree();
            let patches = (0..tree.patch_count()).map(|patch| tree.patch_vertices(patch).len());
            NewCheckpoint::begin(run, &header(simulation.outline()), patches)
        });
        let first = simulation.ownership().vertices(comm.rank().index()).start;
        let missing = PatchView {
            vertices: &[0],
            ..PatchView::default()
        };
        write_together(
            comm,
            begun,
            |place| match breaks {
                true => place.write(first, [missing].into_iter()),
                false => place.write(first, simulation.own_patches()),
            },
            |new, sums| new.complete(sums.into_iter().flatten()),
        )
    }

    /// Ranks write the state that one of them would gather, and ranks of any number go on from it
    /// with equal bits.
    #[test]
    fn the_patches_of_all_ranks_are_the_state() {
        let scene = Scene::parse(SCENE, None, &[]).unwrap();
        let world = World::build(&scene).unwrap();
        let root = tempfile::tempdir().unwrap();
        let run = RunDirectory::create(root.path()).unwrap();
        let mut ends = Vec::new();
        for ranks in [1, 3, 4] {
            let outcomes = launch(ranks, |comm| {
                let mut simulation =
                    Simulation::new(&world, comm, &ScopeOptions::default()).unwrap();
                for _ in 0..4 {
                    simulation.advance(comm).unwrap();
                }
                let own = Some(&run).filter(|_| comm.rank() == Rank(0));
                let path = save(&simulation, &world, own, false, comm).unwrap();
                let whole = simulation.gather_state(comm).unwrap();
                if let (Some(path), Some(whole)) = (path, whole) {
                    assert!(whole.past.is_some() && whole.contacts.iter().any(|c| c.held));
                    assert_eq!(Checkpoint::read(&path).unwrap().state, whole);
                }
                comm.barrier().unwrap();
                simulation.advance(comm).unwrap();
                simulation.gather_state(comm).unwrap()
            });
            ends.push(outcomes.unwrap().swap_remove(0).unwrap());
        }
        assert!(ends.iter().all(|end| *end == ends[0]));
        let path = run.file(&Checkpoint::file(4));
        for ranks in [1, 2, 5] {
            let outcomes = launch(ranks, |comm| {
                let mut simulation =
                    Simulation::new(&world, comm, &ScopeOptions::default()).unwrap();
                let patches = simulation.ownership().patches(comm.rank().index());
                let (outline, own) = read_patches(&path, patches).unwrap();
                simulation.restore_patches(&outline, &own, comm).unwrap();
                simulation.advance(comm).unwrap();
                simulation.gather_state(comm).unwrap()
            });
            let end = outcomes.unwrap().swap_remove(0).unwrap();
            assert_eq!(end, ends[0], "{ranks} ranks");
        }
    }

    /// Patches that are not those of the rank are refused, as are vertices beyond the scene's.
    #[test]
    fn patches_of_another_scene_are_refused() {
        let scene = Scene::parse(SCENE, None, &[]).unwrap();
        let world = World::build(&scene).unwrap();
        let mut comm = weft_runtime::comm::solo::Solo::new();
        let mut simulation = Simulation::new(&world, &comm, &ScopeOptions::default()).unwrap();
        let outline = simulation.outline();
        let copies = simulation.own_patches().map(|view| PatchState {
            vertices: view.vertices.to_vec(),
            positions: view.positions.to_vec(),
            velocities: view.velocities.to_vec(),
            changes: view.changes.map(<[_]>::to_vec),
            contacts: view.contacts.to_vec(),
            past: None,
        });
        let own: Vec<PatchState> = copies.collect();
        let mut swapped = own.clone();
        swapped.swap(0, 1);
        let mut refused = |outline: &StateOutline, own: &[PatchState]| {
            simulation.restore_patches(outline, own, &mut comm).is_err()
        };
        assert!(!refused(&outline, &own));
        assert!(refused(&outline, &swapped));
        assert!(refused(&outline, &own[1..]));
        let mut foreign = outline.clone();
        foreign.squeezed = vec![[0, 1]];
        assert!(refused(&foreign, &own));
        foreign = outline;
        foreign.kept = vec![[81, 0]];
        assert!(refused(&foreign, &own));
    }

    /// All ranks come to the same end, and the checkpoint before stays the newest.
    #[test]
    fn a_rank_that_cannot_write_leaves_the_checkpoint_before() {
        let scene = Scene::parse(SCENE, None, &[]).unwrap();
        let world = World::build(&scene).unwrap();
        let root = tempfile::tempdir().unwrap();
        let run = RunDirectory::create(root.path()).unwrap();
        let outcomes = launch(4, |comm| {
            let me = comm.rank();
            let mut simulation = Simulation::new(&world, comm, &ScopeOptions::default()).unwrap();
            let own = Some(&run).filter(|_| me == Rank(0));
            save(&simulation, &world, own, false, comm).unwrap();
            simulation.advance(comm).unwrap();
            let failed = save(&simulation, &world, own, me == Rank(2), comm).unwrap_err();
            assert_eq!(failed.exit_code(), 5);
            failed.to_string()
        });
        for said in outcomes.unwrap() {
            assert!(said.contains("rank 2: "), "{said}");
            assert!(said.contains("state.000001.ckpt"), "{said}");
            assert!(said.contains("file system that all hosts share"), "{said}");
        }
        let all = Checkpoint::all(run.path()).unwrap();
        assert_eq!(all, [(0, run.file(&Checkpoint::file(0)))]);
        assert!(Checkpoint::read(&all[0].1).is_ok());
        let names = fs::read_dir(run.path()).unwrap();
        let mut names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        assert!(!names.any(|name| name.ends_with("partial")));
    }
}
