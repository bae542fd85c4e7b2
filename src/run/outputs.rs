//! The outputs of a run on rank 0: opened before the first step, and completed after the last one.

use std::io::{self, Write as _};
use std::sync::PoisonError;

use weft_io::Printable;

use super::pictures::camera;
use super::result::Ended;
use super::resume::Restart;
use super::summary::{complete, record, start_record, summarise};
use super::{RunError, RunOptions, RunSummary, Show, resume, uneven};
use crate::export::{ExportOptions, Exported, Recorded, Target, export};
use crate::mesh::joins_equal;
use crate::output::{
    ClothRecord, Event, FramesRecord, OutputError, PartitionRecord, RunDirectory, RunRecord,
    ViewRecord, mesh_file,
};
use crate::scene::{ClothSource, Format};
use crate::step::World;

/// The state and the outputs with which rank 0 begins.
pub(super) struct Start {
    pub(super) directory: RunDirectory,
    /// The state to go on from.
    pub(super) checkpoint: Option<Restart>,
    /// Whether the outputs of an earlier run in the directory are continued.
    pub(super) in_place: bool,
    /// Sentences about the scene, and about the state that the run goes on from, that are shown
    /// before there is a result.
    pub(super) warnings: Vec<String>,
}

/// Opens the outputs, and writes the record as it is before the first step.
pub(super) fn begin(
    world: &World,
    options: &RunOptions,
    quality: PartitionRecord,
) -> Result<(Start, RunRecord), RunError> {
    let opened = resume::open(options, world)?;
    let start = Start {
        directory: opened.directory,
        checkpoint: opened.checkpoint,
        in_place: opened.in_place,
        warnings: opened.notices.into_iter().chain(world.warnings()).collect(),
    };
    let vertices = world.model().masses().len();
    let uneven = uneven(
        options.ranks as u64,
        vertices,
        quality.patches,
        quality.imbalance,
    );
    let mut record = record(world.scene(), options, quality);
    note_samplings(&mut record, world);
    record.frames = (world.scene().output.frames).then(|| frames_record(world));
    record.start = start_record(world);
    record.changes = opened.changes;
    let header = start.checkpoint.as_ref().map(|c| &c.header);
    record.resumed_from = header.map(|header| header.step);
    let header = header.filter(|_| start.in_place);
    record.history = header.and_then(|header| header.history.clone());
    record.warnings.clone_from(&start.warnings);
    record.write(&start.directory)?;
    if options.progress != Show::Nothing {
        // If nobody listens, there is nobody else to tell.
        let is_json = options.progress == Show::Json;
        let note = |message: String| {
            if is_json {
                Event::Note { message }.print();
            } else {
                drop(writeln!(io::stderr(), "note: {}", Printable(&message)));
            }
        };
        for warning in &start.warnings {
            if is_json {
                let message = warning.clone();
                Event::Warning { message }.print();
            } else {
                drop(writeln!(io::stderr(), "warning: {}", Printable(warning)));
            }
        }
        let overshoot = match options.steps {
            None => world.scene().time.overshoot(),
            Some(_) => None,
        };
        for sizes in world.sizes() {
            note(sizes.to_string());
        }
        uneven.into_iter().chain(overshoot).for_each(note);
    }
    Ok((start, record))
}

/// The outline of frames.
fn frames_record(world: &World) -> FramesRecord {
    let scene = world.scene();
    let mut vertices = vec![0; scene.cloths.len()];
    for &cloth in world.model().cloth_of_vertex() {
        vertices[cloth as usize] += 1;
    }
    let cloths = scene.cloths.iter().zip(vertices).enumerate();
    let cloths = cloths.map(|(number, (cloth, vertices))| ClothRecord {
        name: cloth.name.clone(),
        vertices,
        mesh: mesh_file(number, &cloth.name),
        joined: match &cloth.source {
            ClothSource::File { path, weld, .. } => weld.is_some() || joins_equal(path),
            ClothSource::Grid { .. } | ClothSource::Shirt { .. } => false,
        },
        passes_itself: !cloth.self_collision,
    });
    FramesRecord {
        interval_s: scene.output.interval,
        step_s: scene.time.step,
        cloths: cloths.collect(),
        view: Some(view_record(world)),
        sewn: world.sewn_in_order(),
    }
}

/// Notes how the distance from bodies is sampled, as far as it is known by now.
fn note_samplings(record: &mut RunRecord, world: &World) {
    let of_bodies = record.bodies.iter_mut().flatten();
    for (body, sampling) in of_bodies.zip(world.samplings()) {
        body.distance = sampling;
    }
}

/// How pictures of a world look.
fn view_record(world: &World) -> ViewRecord {
    let output = &world.scene().output;
    let [eye, target] = camera(world).ends();
    ViewRecord {
        eye,
        target,
        follows: output.camera_follows,
        size: output.picture_size,
        colours: output.colours,
    }
}

/// Exports the frames of a run into its own directory, in the formats that the scene asks for.
fn export_frames(world: &World, start: &Start) -> Result<Exported, OutputError> {
    let output = &world.scene().output;
    let asked = output.formats.iter().any(|format| *format != Format::Vtp);
    if !output.frames || !asked {
        return Ok(Exported::default());
    }
    let recorded = Recorded::open(start.directory.path())?;
    let target = Target::Run(start.directory.clone());
    export(&recorded, &ExportOptions::of(&output.formats), &target)
}

/// Writes the result of a run. The measurements come first, so that they are not lost if there is
/// no room for traces.
pub(super) fn conclude(
    world: &World,
    options: &RunOptions,
    start: &Start,
    mut record: RunRecord,
    ended: Ended,
) -> RunSummary {
    let mut summary = summarise(world, options, start, &ended.ranks);
    match export_frames(world, start) {
        Ok(exported) => summary.exported = exported,
        Err(error) => summary.unwritten = Some(error.to_string()),
    }
    complete(&mut record, &summary, options);
    note_samplings(&mut record, world);
    let last = ended.ranks.iter().find_map(|rank| rank.last.as_ref());
    record.history = last.map(|last| last.history.clone());
    if let (Some(message), Some(0)) = (&summary.unwritten, record.exit) {
        record.fail(UNWRITTEN, message.clone());
    }
    let write = |record: &mut RunRecord| {
        if let Some(traces) = ended.traces {
            let exit = record.exit.take();
            record.write(&start.directory)?;
            record.exit = exit;
            traces.write(&start.directory, record)?;
        }
        record.write(&start.directory)
    };
    if let Err(error) = write(&mut record) {
        let message = error.to_string();
        if record.exit == Some(0) {
            record.fail(RunError::Output(error).exit_code(), message.clone());
        }
        // If that cannot be written either, the message has to do.
        drop(record.write(&start.directory));
        summary.unwritten = Some(message);
    }
    summary
}

/// The exit code of a run whose files cannot all be written.
const UNWRITTEN: u8 = 5;

/// Writes into the record of the run that [`run_rank`](super::run_rank) has begun here with these
/// options that it has failed. If none was begun, as where the directory of another run was
/// refused, nothing is written.
///
/// # Errors
/// It cannot be written.
pub fn note_failure(options: &RunOptions, exit: u8, message: &str) -> Result<(), OutputError> {
    let begun = options.begun.0.lock();
    let begun = begun.unwrap_or_else(PoisonError::into_inner).clone();
    begun.map_or(Ok(()), |(directory, mut record)| {
        record.fail(exit, message);
        record.history = None;
        record.write(&directory)
    })
}
