//! Rank 0's outputs while ranks take steps: history, progress, frames, pictures.

use std::cell::OnceCell;
use std::time::Duration;

use glam::DVec3;

use super::outputs::Start;
use super::reports::RankStep;
use super::result::Last;
use super::{RunOptions, Show};
use crate::build_identity::BuildIdentity;
use crate::collide::Passing;
use crate::collide::audit::Skin;
use crate::mesh::{TriMesh, build_cloth_of_file};
use crate::output::checkpoint::{Header, NewCheckpoint, Place};
use crate::output::{
    AuditedFrame, DataArray, Event, Frame, FrameAudit, FrameSeries, HistoryRow, HistoryWriter,
    OutputError, Picture, PieceArrays, PiecesPlace, PolyData, Progress, RunDirectory, StateHash,
    Values, cloth_file, mesh_file, pieces_file,
};
use crate::scene::Pieces;
use crate::step::{Breach, CrossingCounts, Ledger, Simulation, StepReport, World};

/// A frame is due at a step that is no more than this before its time, in s.
const SAME_TIME: f64 = 1e-9;

/// The facts about a finished step that rank 0 sees.
pub(super) struct Seen {
    step: u64,
    time_s: f64,
    /// The time since the first step began.
    elapsed: Duration,
}

/// The values of a frame that ranks have, in the numbering of the patch tree.
pub(super) struct Gathered {
    /// The states, as [`Simulation::gather_contacts`] tells them.
    pub(super) states: Vec<u32>,
    /// The forces, as [`Simulation::gather_contact_forces`] tells them, in N.
    pub(super) forces: Vec<DVec3>,
    /// The strains, as [`Simulation::gather_strains`] tells them.
    pub(super) strains: Vec<f64>,
    /// How deep the deepest vertex is inside a body, in m; negative if none is.
    pub(super) deepest: f64,
}

/// Rank 0's outputs.
pub(super) struct Writer<'w> {
    world: &'w World,
    directory: RunDirectory,
    history: HistoryWriter,
    series: Option<FrameSeries>,
    progress: Progress,
    /// [`World::digest`], once it was needed.
    digest: OnceCell<String>,
    /// Time of the next frame, as a multiple of the interval.
    next_frame: u64,
    /// In the scene's own numbering; none if there are neither frames nor audits.
    triangles: Vec<[u32; 3]>,
    /// The cloth of theirs that passes through itself.
    passing: Passing,
    frames: usize,
    deepest: f64,
    strain: f64,
    beyond_limit: f64,
    /// The first breach of a limit of strain since the run began or went on.
    breach: Option<Breach>,
    audit: Option<FrameAudit>,
}

impl<'w> Writer<'w> {
    pub(super) fn new(
        world: &'w World,
        options: &RunOptions,
        start: &Start,
        steps: u64,
    ) -> Result<Self, OutputError> {
        let scene = world.scene();
        let directory = &start.directory;
        let header = start.checkpoint.as_ref().map(|c| &c.header);
        let new_to_old = world.tree().new_to_old();
        let in_pieces = scene.output.pieces == Pieces::Rank;
        let triangles = if scene.output.frames && !in_pieces || options.audit.is_some() {
            let triangles = world.model().triangles().iter();
            let triangles = triangles.map(|t| t.map(|v| new_to_old[v as usize]));
            triangles.collect()
        } else {
            Vec::new()
        };
        let still: Vec<(&str, &TriMesh)> = scene
            .bodies
            .iter()
            .zip(world.body_meshes())
            .filter(|(body, _)| body.is_still())
            .map(|(body, mesh)| (body.name.as_str(), mesh))
            .collect();
        // Files of an earlier run in this directory are continued.
        let earlier = header.filter(|_| start.in_place);
        let series = scene.output.frames.then(|| {
            earlier.map_or_else(
                || FrameSeries::create(directory, &still),
                |header| {
                    let due = header.next_frame as f64 * scene.output.interval;
                    let kept = header.time_s.min(due - SAME_TIME);
                    FrameSeries::resume(directory, &still, kept)
                },
            )
        });
        if scene.output.frames {
            write_meshes(world, directory)?;
        }
        let step = header.map_or(0, |header| header.step);
        let history = earlier.map_or_else(
            || HistoryWriter::create(directory, step),
            |header| HistoryWriter::resume(directory, step, header.history.as_ref()),
        );
        Ok(Self {
            world,
            directory: directory.clone(),
            history: history?,
            series: series.transpose()?,
            progress: match options.progress {
                Show::Bar => Progress::new(steps, true),
                Show::Lines => Progress::new(steps, false),
                Show::Json => Progress::json(steps),
                Show::Nothing => Progress::quiet(),
            }
            .after(step),
            digest: OnceCell::new(),
            next_frame: header.map_or(0, |header| header.next_frame),
            triangles,
            passing: match options.audit {
                Some(_) => world.passing_in_order(),
                None => Passing::default(),
            },
            frames: header.map_or(0, |header| header.frames as usize),
            deepest: header
                .and_then(|h| h.deepest_m)
                .unwrap_or(f64::NEG_INFINITY),
            strain: header.map_or(0.0, |header| header.strain),
            beyond_limit: header.map_or(0.0, |header| beyond_limit(world, header)),
            breach: None,
            audit: options.audit.map(|_| FrameAudit::default()),
        })
    }

    /// The facts about the state at the end of a step, for the history.
    pub(super) fn see(&self, simulation: &Simulation<'_>, elapsed: Duration) -> Seen {
        Seen {
            step: simulation.step(),
            time_s: simulation.time(),
            elapsed,
        }
    }

    /// One step has been taken, of which this was seen and ranks have reported that.
    pub(super) fn step(&mut self, seen: &Seen, ranks: &[RankStep]) -> Result<(), OutputError> {
        if self.breach.is_none() {
            let told = ranks.iter().filter_map(|rank| rank.breach.clone());
            self.breach = told.reduce(Breach::worse);
            if let Some(breach) = &self.breach {
                let told = &breach.told;
                self.progress
                    .warn(&format!("strain goes beyond its limit, {told}"));
            }
        }
        let row = row(self.world, seen, ranks);
        self.strain = self.strain.max(row.max_strain);
        let beyond = ranks.iter().map(|rank| rank.strains.beyond);
        self.beyond_limit = beyond.fold(self.beyond_limit, f64::max);
        self.history.write(&row)?;
        // Nobody need watch for the run to go on.
        drop(self.progress.step(&row, seen.elapsed));
        Ok(())
    }

    /// Begins the checkpoint of a state, into which all ranks write.
    pub(super) fn begin_checkpoint(
        &mut self,
        simulation: &Simulation<'_>,
    ) -> Result<(NewCheckpoint, Place), OutputError> {
        let scene = self.world.scene();
        let build = BuildIdentity::as_far_as_known();
        // The history that the checkpoint describes must be on the disk before.
        self.history.sync()?;
        let outline = simulation.outline();
        let header = Header {
            program: build.version.clone(),
            commit: build.commit.clone(),
            executable: build.executable.clone(),
            history: Some(self.history.mark()),
            step: outline.step,
            time_s: outline.step as f64 * scene.time.step,
            vertices: outline.vertices,
            scene: scene.echo_of_trajectory(),
            world: self.digest.get_or_init(|| self.world.digest()).clone(),
            frames: self.frames as u64,
            next_frame: self.next_frame,
            deepest_m: self.deepest.is_finite().then_some(self.deepest),
            strain: self.strain,
            beyond_limit: Some(self.beyond_limit),
            substep: outline.substep,
            past_s: outline.past,
            squeezed: outline.squeezed,
            kept: outline.kept,
        };
        let tree = self.world.tree();
        let patches = (0..tree.patch_count()).map(|patch| tree.patch_vertices(patch).len());
        NewCheckpoint::begin(&self.directory, &header, patches)
    }

    /// Tells of the checkpoint that all ranks have written of a state.
    pub(super) fn tell_checkpoint(&mut self, simulation: &Simulation<'_>) {
        (self.progress).happened(&Event::Checkpoint {
            step: simulation.step(),
            time_s: simulation.time(),
        });
    }

    /// Whether it is time for a frame after this step; there is one of the last.
    pub(super) fn is_frame_due(&self, step: u64, last: bool) -> bool {
        let scene = self.world.scene();
        let due = self.next_frame as f64 * scene.output.interval;
        step as f64 * scene.time.step >= due - SAME_TIME || last
    }

    /// Writes the picture of a frame.
    pub(super) fn picture(
        &self,
        simulation: &Simulation<'_>,
        picture: &Picture,
    ) -> Result<(), OutputError> {
        let file = format!("pictures/{:06}.png", simulation.step());
        picture.write(&self.directory, &file)?;
        Ok(())
    }

    /// Writes a frame.
    pub(super) fn frame(
        &mut self,
        simulation: &Simulation<'_>,
        gathered: &Gathered,
    ) -> Result<(), OutputError> {
        if self.needs_all() {
            let x = self.world.original_order(simulation.positions());
            self.write_frame(simulation, &x, gathered)?;
        }
        self.note_frame(simulation, gathered.deepest, cloth_file(simulation.step()))
    }

    /// Whether a frame is written or audited here of the state of all vertices.
    fn needs_all(&self) -> bool {
        self.series.is_some() || self.audit.is_some()
    }

    /// Lists the pieces of a frame, into which ranks write theirs.
    pub(super) fn begin_pieces(
        &self,
        simulation: &Simulation<'_>,
        ranks: u32,
    ) -> Result<PiecesPlace, OutputError> {
        PiecesPlace::begin(&self.directory, simulation.step(), ranks)
    }

    /// Completes a frame of which ranks have written their pieces.
    pub(super) fn complete_pieces(
        &mut self,
        simulation: &Simulation<'_>,
        pieces: &[PieceArrays],
        deepest: f64,
    ) -> Result<(), OutputError> {
        let (step, time) = (simulation.step(), simulation.time());
        if let Some(series) = &mut self.series {
            let moving = self.world.moved_bodies(time);
            let moving = named(self.world, &moving);
            series.complete_pieces(step, time, pieces, &moving)?;
        }
        self.note_frame(simulation, deepest, pieces_file(step))
    }

    /// Notes what is to be known of a frame that was written, and audits it if that was asked for;
    /// `deepest` is how deep the deepest vertex is in a body, in m.
    fn note_frame(
        &mut self,
        simulation: &Simulation<'_>,
        deepest: f64,
        file: String,
    ) -> Result<(), OutputError> {
        let time = simulation.time();
        let interval = self.world.scene().output.interval;
        self.next_frame = (time / interval + 1e-9).floor() as u64 + 1;
        self.deepest = self.deepest.max(deepest);
        if let Some(audit) = &mut self.audit {
            let x = self.world.original_order(simulation.positions());
            let frame = AuditedFrame {
                step: simulation.step(),
                cloth: Skin::new(&x, &self.triangles).letting(self.passing.clone()),
                bodies: Some(self.world.audited_bodies(time)),
            };
            audit.look(&self.directory, &frame)?;
        }
        if self.series.is_some() {
            self.frames += 1;
            self.progress.happened(&Event::Frame {
                step: simulation.step(),
                time_s: time,
                file,
            });
        }
        Ok(())
    }

    fn write_frame(
        &mut self,
        simulation: &Simulation<'_>,
        x: &[DVec3],
        gathered: &Gathered,
    ) -> Result<(), OutputError> {
        let Some(series) = &mut self.series else {
            return Ok(());
        };
        let v = self.world.original_order(simulation.velocities());
        let patch_of = |t: &[u32; 3]| {
            let lowest = t.iter().copied().min().unwrap_or_default();
            self.world.tree().patch_of(lowest) as u32
        };
        let patches: Vec<u32> = self
            .world
            .model()
            .triangles()
            .iter()
            .map(patch_of)
            .collect();
        let owner = |&p: &u32| simulation.ownership().rank_of_patch(p as usize) as u32;
        let owners: Vec<u32> = patches.iter().map(owner).collect();
        let model = self.world.model();
        let triangles = model.triangles().iter();
        let cloth_of = |t: &[u32; 3]| model.cloth_of_vertex()[t[0] as usize];
        let cloths: Vec<u32> = triangles.map(cloth_of).collect();
        let normals = normals(x, &self.triangles);
        let contacts = self.world.original_order(&gathered.states);
        let forces = self.world.original_order(&gathered.forces);
        let mut squeezed = vec![0; x.len()];
        for [vertex, body] in simulation.squeezed() {
            squeezed[vertex as usize] = body + 1;
        }
        let cuts = simulation.cuts();
        let moving = self.world.moved_bodies(simulation.time());
        let moving = named(self.world, &moving);
        let array = |name, values| DataArray { name, values };
        series.write(Frame {
            step: simulation.step(),
            time: simulation.time(),
            cloth: PolyData {
                points: x,
                triangles: &self.triangles,
                point_arrays: vec![
                    array("velocity", Values::Vectors(&v)),
                    array("normal", Values::Vectors(&normals)),
                    array("contact", Values::Integers(&contacts)),
                    array("contact_force", Values::Vectors(&forces)),
                    array("squeezed", Values::Integers(&squeezed)),
                    array("cut", Values::Scalars(&cuts)),
                ],
                cell_arrays: vec![
                    array("cloth", Values::Integers(&cloths)),
                    array("strain", Values::Scalars(&gathered.strains)),
                    array("owner", Values::Integers(&owners)),
                    array("patch", Values::Integers(&patches)),
                ],
                time: None,
            },
            moving: &moving,
        })
    }

    /// Ends the output of a run, whose last state has this hash.
    pub(super) fn end(
        mut self,
        simulation: &Simulation<'_>,
        hash: StateHash,
        crossings: CrossingCounts,
    ) -> Last {
        self.progress.finish();
        Last {
            history: self.history.mark(),
            hash,
            steps: simulation.step(),
            crossings: crossings.layers as usize,
            pierced: crossings.bodies as usize,
            audit: self.audit,
            frames: self.frames,
            deepest: self.deepest,
            strain: self.strain,
            beyond_limit: self.beyond_limit,
            breach: self.breach.map(|breach| breach.told),
        }
    }
}

/// Bodies that move, with their names.
fn named<'a>(world: &'a World, moving: &'a [(usize, TriMesh)]) -> Vec<(&'a str, &'a TriMesh)> {
    let bodies = &world.scene().bodies;
    let named = moving.iter();
    let named = named.map(|(index, mesh)| (bodies[*index].name.as_str(), mesh));
    named.collect()
}

/// The unit normals of vertices: of the triangles around each, weighted by their areas.
pub(crate) fn normals(x: &[DVec3], triangles: &[[u32; 3]]) -> Vec<DVec3> {
    let mut sums = vec![DVec3::ZERO; x.len()];
    for triangle in triangles {
        let [a, b, c] = triangle.map(|v| x[v as usize]);
        let across = (b - a).cross(c - a);
        for &vertex in triangle {
            sums[vertex as usize] += across;
        }
    }
    sums.iter_mut()
        .for_each(|sum| *sum = sum.normalize_or_zero());
    sums
}

/// Writes the meshes of cloths as their files have them, which is not kept while the run goes on.
fn write_meshes(world: &World, directory: &RunDirectory) -> Result<(), OutputError> {
    for (number, cloth) in world.scene().cloths.iter().enumerate() {
        let path = directory.file(&mesh_file(number, &cloth.name));
        let inconsistent = |what: String| OutputError::Inconsistent {
            path: path.clone(),
            what,
        };
        let file = build_cloth_of_file(cloth).map_err(|error| inconsistent(error.to_string()))?;
        if file.mesh.positions != world.cloth_mesh(number).positions {
            let what = format!("the file of cloth `{}` has changed meanwhile", cloth.name);
            return Err(inconsistent(what));
        }
        FrameSeries::write_mesh(directory, number, &cloth.name, &file)?;
    }
    Ok(())
}

/// The strain beyond limits before a checkpoint, or the least that it was if the file does not say.
fn beyond_limit(world: &World, header: &Header) -> f64 {
    let limits = world.scene().cloths.iter().map(|c| c.material.strain_limit);
    let least = header.strain - limits.fold(0.0, f64::max);
    header.beyond_limit.unwrap_or_else(|| least.max(0.0))
}

fn row(world: &World, seen: &Seen, ranks: &[RankStep]) -> HistoryRow {
    let total = |f: &dyn Fn(&StepReport) -> u64| ranks.iter().map(|r| f(&r.report)).sum::<u64>();
    let slowest = |phase: usize| {
        ranks
            .iter()
            .map(|r| r.report.times[phase].as_secs_f64())
            .fold(0.0, f64::max)
    };
    let first = &ranks[0].report;
    // In the order of patches, whichever rank has them.
    let mut ledger = Ledger::default();
    let of_patches = ranks.iter().flat_map(|rank| &rank.report.ledger);
    of_patches.for_each(|sums| ledger.add_vertices(sums));
    let rest = ledger.rest();
    HistoryRow {
        step: seen.step,
        time_s: seen.time_s,
        cg_iterations: first.iterations,
        cg_residual: first.residual * world.scene().solver.tolerance,
        contacts: total(&|r| r.contacts),
        constraints: total(&|r| r.constraints),
        impulses: total(&|r| r.impulses),
        tasks: total(&|r| r.scope.tasks),
        splits: total(&|r| r.scope.splits),
        steals: total(&|r| r.scope.tasks_in),
        tests: total(&|r| r.scope.work),
        collide_s: slowest(0),
        physics_s: slowest(1),
        solve_s: slowest(2),
        response_s: slowest(3),
        max_speed: ledger.fastest,
        max_strain: ranks.iter().map(|r| r.strains.largest).fold(0.0, f64::max),
        kinetic_J: ledger.kinetic,
        systems: first.systems,
        parts: first.substeps,
        halvings: first.halvings,
        stop: first.sufficed,
        share_s: slowest(4),
        passes: first.passes,
        rounds: first.rounds,
        unsettled: first.unsettled,
        unsettled_rate: first.lacking,
        clamped: total(&|r| r.clamped),
        rough: first.rough,
        hits: first.certified.hits,
        cut: first.certified.cut,
        zones: first.certified.zones,
        squeezed: first.certified.squeezed,
        kept: first.certified.kept,
        lagging: first.certified.lagging,
        momentum_x_Ns: ledger.momentum.x,
        momentum_y_Ns: ledger.momentum.y,
        momentum_z_Ns: ledger.momentum.z,
        gravity_x_Ns: ledger.gravity.momentum.x,
        gravity_y_Ns: ledger.gravity.momentum.y,
        gravity_z_Ns: ledger.gravity.momentum.z,
        pins_x_Ns: ledger.pins.momentum.x,
        pins_y_Ns: ledger.pins.momentum.y,
        pins_z_Ns: ledger.pins.momentum.z,
        bodies_x_Ns: ledger.bodies.momentum.x,
        bodies_y_Ns: ledger.bodies.momentum.y,
        bodies_z_Ns: ledger.bodies.momentum.z,
        contact_x_Ns: ledger.contact.momentum.x,
        contact_y_Ns: ledger.contact.momentum.y,
        contact_z_Ns: ledger.contact.momentum.z,
        cut_x_Ns: ledger.cut.momentum.x,
        cut_y_Ns: ledger.cut.momentum.y,
        cut_z_Ns: ledger.cut.momentum.z,
        rest_x_Ns: rest.momentum.x,
        rest_y_Ns: rest.momentum.y,
        rest_z_Ns: rest.momentum.z,
        gravity_J: ledger.gravity.energy,
        pins_J: ledger.pins.energy,
        bodies_J: ledger.bodies.energy,
        contact_J: ledger.contact.energy,
        cut_J: ledger.cut.energy,
        rest_J: rest.energy,
        cut_share: ledger.cut_share(),
        substeps: first.inner,
        pairs: total(&|r| r.pairs),
        looked: total(&|r| r.looked),
        inverted: total(&|r| r.inverted),
        repel_s: (ranks.iter().map(|r| r.report.repel_time.as_secs_f64())).fold(0.0, f64::max),
    }
}
