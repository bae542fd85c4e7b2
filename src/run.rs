//! A whole run: ranks take steps together, rank 0 writes what comes of it.
//!
//! This is the driver: it chooses how ranks talk, reads clocks, and gathers what the outputs need. All that
//! decides the trajectory is below it, in [`crate::step`].

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use glam::DVec3;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use weft_partition::Quality;
use weft_runtime::comm::solo::Solo;
use weft_runtime::comm::threads::{LaunchError, launch};
use weft_runtime::comm::virtual_time::{self, Computation, Network, VirtualOptions};
use weft_runtime::comm::{Collectives, Comm, CommError, Rank};
use weft_runtime::{ScopeOptions, ScopeReport, wire};

use crate::collide::audit::crossings;
use crate::mesh::TriMesh;
use crate::output::{
    Camera, DataArray, Frame, FrameSeries, HistoryRow, HistoryWriter, Item, MachineRecord,
    OutputError, PartitionRecord, Picture, PolyData, ProgramRecord, Progress, ResultRecord,
    RunDirectory, RunRecord, SceneRecord, StateHash, Values, state_hash,
};
use crate::report::{Balance, Phase, PhaseTable};
use crate::scene::Scene;
use crate::step::{PHASES, Simulation, StepError, StepReport, World, WorldError};

/// Stack of a rank in virtual time in bytes; only what is used takes memory.
const VIRTUAL_STACK: usize = 4 << 20;

/// Strain beyond the limit that is warned of.
const STRAIN_SLACK: f64 = 0.02;

/// How ranks talk to each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Driver {
    /// One rank alone.
    Solo,
    /// Every rank a thread of this process.
    Threads,
    /// Ranks in virtual time, on a modelled network; computation costs what it takes here.
    Virtual(Network),
}

impl Driver {
    /// Its name in records and on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Solo => "solo",
            Self::Threads => "threads",
            Self::Virtual(_) => "virtual",
        }
    }
}

/// What a run is told beside its scene.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// Number of ranks.
    pub ranks: usize,
    /// Workers per rank.
    pub threads: usize,
    /// How ranks talk.
    pub driver: Driver,
    /// Steps to take, if not as many as the scene says.
    pub steps: Option<u64>,
    /// Directory that receives the outputs.
    pub out: PathBuf,
    /// How to show progress: a bar, lines, or nothing.
    pub progress: Show,
    /// The command line, for the record.
    pub command: Vec<String>,
}

/// How progress is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Show {
    /// A bar with the time left.
    Bar,
    /// Some plain lines.
    Lines,
    /// Nothing.
    Nothing,
}

/// What came of a run.
#[derive(Clone, Debug)]
pub struct RunSummary {
    /// Hash of the last state; does not depend on ranks, workers or schedule.
    pub hash: StateHash,
    /// Steps taken.
    pub steps: u64,
    /// Cloth vertices.
    pub vertices: usize,
    /// Time of the ranks' loop, slowest rank.
    pub loop_time: Duration,
    /// Where the time went.
    pub phases: PhaseTable,
    /// How tests were shared.
    pub balance: Balance,
    /// Frames written.
    pub frames: usize,
    /// Deepest vertex inside a body in any frame, in m; negative if none was ever inside. `None` without
    /// bodies.
    pub deepest: Option<f64>,
    /// Largest principal strain of any step.
    pub strain: f64,
    /// Pairs of an edge and a triangle of the cloth that cross in the last state.
    pub crossings: usize,
    /// Limits that the result breaks, each a sentence.
    pub warnings: Vec<String>,
}

/// Why a run ended early.
#[derive(Debug, Error)]
pub enum RunError {
    /// The scene cannot be simulated.
    #[error(transparent)]
    World(#[from] WorldError),
    /// A step failed.
    #[error(transparent)]
    Step(#[from] StepError),
    /// A file could not be written.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// Ranks could not be run.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// Messages failed.
    #[error(transparent)]
    Comm(#[from] CommError),
    /// One rank cannot be several.
    #[error("one rank alone cannot be {0} ranks; leave out `--comm solo` or `--ranks`")]
    SoloRanks(usize),
}

impl RunError {
    /// The exit code of the command.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::SoloRanks(_) => 2,
            Self::World(_) | Self::Step(StepError::Partition(_)) => 3,
            Self::Step(_) => 4,
            Self::Output(_) => 5,
            Self::Launch(LaunchError::NoRanks | LaunchError::TooMany { .. }) => 2,
            Self::Launch(LaunchError::Panicked { .. }) | Self::Comm(_) => 101,
        }
    }

    /// Whether this only says that another rank failed.
    fn is_echo(&self) -> bool {
        match self {
            Self::Step(error) => error.is_echo(),
            Self::Comm(CommError::Aborted { .. } | CommError::Left { .. }) => true,
            _ => false,
        }
    }
}

/// What a rank reports of a step.
#[derive(Serialize, Deserialize)]
struct RankStep {
    report: StepReport,
    strain: f64,
}

/// What a rank reports of the whole run.
#[derive(Clone, Debug)]
struct RankTotals {
    times: [Duration; PHASES.len()],
    scope: ScopeReport,
    loop_time: Duration,
    last: Option<Last>,
}

/// What rank 0 keeps of the end.
#[derive(Clone, Debug)]
struct Last {
    hash: StateHash,
    steps: u64,
    crossings: usize,
    frames: usize,
    deepest: f64,
    strain: f64,
}

/// Simulates a scene from start to end.
///
/// # Errors
/// The first thing that went wrong on any rank. The record in the output directory then says so too.
pub fn run(scene: &Scene, options: &RunOptions) -> Result<RunSummary, RunError> {
    if options.driver == Driver::Solo && options.ranks != 1 {
        return Err(RunError::SoloRanks(options.ranks));
    }
    if options.ranks == 0 {
        return Err(LaunchError::NoRanks.into());
    }
    let world = World::build(scene)?;
    let quality = partition_record(&world, options.ranks)?;
    let directory = RunDirectory::create(&options.out)?;
    let mut record = record(scene, options, quality);
    record.write(&directory)?;
    let outcome =
        run_ranks(&world, options, &directory).map(|ranks| summarise(&world, options, &ranks));
    match &outcome {
        Ok(summary) => complete(&mut record, summary),
        Err(error) => record.fail(error.exit_code(), error.to_string()),
    }
    let written = record.write(&directory);
    let summary = outcome?;
    written?;
    Ok(summary)
}

/// Runs all ranks; their totals by rank, or the error that is not an echo of another.
fn run_ranks(
    world: &World,
    options: &RunOptions,
    directory: &RunDirectory,
) -> Result<Vec<RankTotals>, RunError> {
    let body = |comm: &mut dyn Comm| {
        let outcome = rank_loop(world, options, directory, comm);
        if let Err(error) = &outcome {
            comm.abort(&error.to_string());
        }
        outcome
    };
    let outcomes = match options.driver {
        Driver::Solo => vec![body(&mut Solo::new())],
        Driver::Threads => launch(options.ranks, body)?,
        Driver::Virtual(network) => {
            let machine = VirtualOptions {
                network,
                computation: Computation::Measured { factor: 1.0 },
                stack: VIRTUAL_STACK,
                ..VirtualOptions::default()
            };
            virtual_time::launch(options.ranks, &machine, body)?.results
        }
    };
    let mut totals = Vec::new();
    let mut failure: Option<RunError> = None;
    for outcome in outcomes {
        match outcome {
            Ok(rank) => totals.push(rank),
            Err(error) => {
                if failure.as_ref().is_none_or(RunError::is_echo) {
                    failure = Some(error);
                }
            }
        }
    }
    failure.map_or(Ok(totals), Err)
}

/// The life of one rank.
fn rank_loop(
    world: &World,
    options: &RunOptions,
    directory: &RunDirectory,
    comm: &mut dyn Comm,
) -> Result<RankTotals, RunError> {
    let scene = world.scene();
    let mut scope = ScopeOptions::from(&scene.balance);
    scope.workers = options.threads;
    let mut simulation = Simulation::new(world, &*comm, &scope)?;
    let steps = options.steps.unwrap_or_else(|| scene_steps(scene));
    let mut writer = match comm.rank() {
        Rank(0) => Some(Writer::new(world, options, directory, steps)?),
        _ => None,
    };
    let begin = comm.now();
    let mut totals = RankTotals {
        times: [Duration::ZERO; PHASES.len()],
        scope: ScopeReport::default(),
        loop_time: Duration::ZERO,
        last: None,
    };
    if let Some(writer) = &mut writer {
        writer.frame(&simulation, steps == 0)?;
    }
    for _ in 0..steps {
        let report = simulation.advance(comm)?;
        for (sum, time) in totals.times.iter_mut().zip(report.times) {
            *sum += time;
        }
        totals.scope.add(&report.scope);
        let strain = simulation.largest_strain();
        let own = wire::encode(&RankStep { report, strain }).map_err(malformed(comm.rank()))?;
        let gathered = comm.gather(Rank(0), own)?;
        if let (Some(writer), Some(gathered)) = (&mut writer, gathered) {
            let mut ranks: Vec<RankStep> = Vec::with_capacity(gathered.len());
            for (from, bytes) in (0..).map(Rank).zip(&gathered) {
                ranks.push(wire::decode(bytes).map_err(malformed(from))?);
            }
            writer.step(&simulation, &ranks, comm.now().saturating_sub(begin))?;
        }
    }
    totals.loop_time = comm.now().saturating_sub(begin);
    totals.last = writer.map(|writer| writer.end(&simulation));
    Ok(totals)
}

fn malformed(from: Rank) -> impl Fn(String) -> CommError {
    move |what| CommError::Malformed { from, what }
}

/// Rank 0's outputs.
struct Writer<'w> {
    world: &'w World,
    directory: RunDirectory,
    history: HistoryWriter,
    series: Option<FrameSeries>,
    progress: Progress,
    /// Steps the run will take.
    steps: u64,
    /// Time of the next frame, as a multiple of the interval.
    next_frame: u64,
    triangles: Vec<[u32; 3]>,
    camera: Camera,
    frames: usize,
    deepest: f64,
    strain: f64,
}

impl<'w> Writer<'w> {
    fn new(
        world: &'w World,
        options: &RunOptions,
        directory: &RunDirectory,
        steps: u64,
    ) -> Result<Self, OutputError> {
        let scene = world.scene();
        let new_to_old = world.tree().new_to_old();
        let triangles = world.model().triangles();
        let triangles = triangles
            .iter()
            .map(|t| t.map(|v| new_to_old[v as usize]))
            .collect();
        let still: Vec<(&str, &TriMesh)> = scene
            .bodies
            .iter()
            .zip(world.body_meshes())
            .filter(|(body, _)| body.velocity == DVec3::ZERO)
            .map(|(body, mesh)| (body.name.as_str(), mesh))
            .collect();
        let series = scene
            .output
            .frames
            .then(|| FrameSeries::create(directory, &still));
        Ok(Self {
            world,
            directory: directory.clone(),
            history: HistoryWriter::create(directory)?,
            series: series.transpose()?,
            progress: match options.progress {
                Show::Bar => Progress::new(steps, true),
                Show::Lines => Progress::new(steps, false),
                Show::Nothing => Progress::quiet(),
            },
            steps,
            next_frame: 0,
            triangles,
            camera: camera(world),
            frames: 0,
            deepest: f64::NEG_INFINITY,
            strain: 0.0,
        })
    }

    /// One step has been taken.
    fn step(
        &mut self,
        simulation: &Simulation<'_>,
        ranks: &[RankStep],
        elapsed: Duration,
    ) -> Result<(), OutputError> {
        let row = row(self.world, simulation, ranks);
        self.strain = self.strain.max(row.max_strain);
        self.history.write(&row)?;
        // Nobody need watch for the run to go on.
        drop(self.progress.step(&row, elapsed));
        self.frame(simulation, simulation.step() == self.steps)
    }

    /// Writes a frame if it is time for one, or if it is the last.
    fn frame(&mut self, simulation: &Simulation<'_>, last: bool) -> Result<(), OutputError> {
        let output = &self.world.scene().output;
        let due = self.next_frame as f64 * output.interval;
        if simulation.time() < due - 1e-9 && !last {
            return Ok(());
        }
        self.next_frame = (simulation.time() / output.interval + 1e-9).floor() as u64 + 1;
        let time = simulation.time();
        let depths = simulation
            .positions()
            .iter()
            .map(|&x| self.world.depth(x, time));
        self.deepest = depths.fold(self.deepest, f64::max);
        let x = self.world.original_order(simulation.positions());
        let moving: Vec<(usize, TriMesh)> = self
            .world
            .scene()
            .bodies
            .iter()
            .enumerate()
            .filter(|(_, body)| body.velocity != DVec3::ZERO)
            .map(|(index, body)| {
                let mut mesh = self.world.body_meshes()[index].clone();
                mesh.positions
                    .iter_mut()
                    .for_each(|p| *p += body.velocity * time);
                (index, mesh)
            })
            .collect();
        self.write_frame(simulation, &x, &moving)?;
        if output.pictures {
            let picture = self.picture(&x, &moving);
            picture.write(
                &self.directory,
                &format!("pictures/{:06}.png", simulation.step()),
            )?;
        }
        self.frames += 1;
        Ok(())
    }

    fn write_frame(
        &mut self,
        simulation: &Simulation<'_>,
        x: &[DVec3],
        moving: &[(usize, TriMesh)],
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
        let bodies = &self.world.scene().bodies;
        let moving: Vec<(&str, &TriMesh)> = moving
            .iter()
            .map(|(index, mesh)| (bodies[*index].name.as_str(), mesh))
            .collect();
        series.write(Frame {
            step: simulation.step(),
            time: simulation.time(),
            cloth: PolyData {
                points: x,
                triangles: &self.triangles,
                point_arrays: vec![DataArray {
                    name: "velocity",
                    values: Values::Vectors(&v),
                }],
                cell_arrays: vec![
                    DataArray {
                        name: "owner",
                        values: Values::Integers(&owners),
                    },
                    DataArray {
                        name: "patch",
                        values: Values::Integers(&patches),
                    },
                ],
                time: None,
            },
            moving: &moving,
        })
    }

    fn picture(&self, x: &[DVec3], moving: &[(usize, TriMesh)]) -> Picture {
        const CLOTHS: [[f32; 3]; 2] = [[0.50, 0.05, 0.05], [0.60, 0.28, 0.12]];
        let scene = self.world.scene();
        let mut items = vec![Item {
            positions: x,
            triangles: &self.triangles,
            front: CLOTHS[0],
            back: CLOTHS[1],
            smooth: true,
        }];
        for (index, (body, mesh)) in scene
            .bodies
            .iter()
            .zip(self.world.body_meshes())
            .enumerate()
        {
            let mesh = moving
                .iter()
                .find(|(i, _)| *i == index)
                .map_or(mesh, |(_, mesh)| mesh);
            let flat = matches!(
                body.shape,
                crate::scene::Shape::Plane { .. } | crate::scene::Shape::Box { .. }
            );
            let color = if flat {
                [0.66, 0.66, 0.63]
            } else {
                [0.22, 0.36, 0.50]
            };
            items.push(Item {
                positions: &mesh.positions,
                triangles: &mesh.triangles,
                front: color,
                back: color,
                smooth: !flat,
            });
        }
        Picture::render(&items, &self.camera, scene.output.picture_size)
    }

    fn end(mut self, simulation: &Simulation<'_>) -> Last {
        self.progress.finish();
        let x = self.world.original_order(simulation.positions());
        let v = self.world.original_order(simulation.velocities());
        Last {
            hash: state_hash(simulation.step(), &x, &v),
            steps: simulation.step(),
            crossings: crossings(&x, &self.triangles).len(),
            frames: self.frames,
            deepest: self.deepest,
            strain: self.strain,
        }
    }
}

/// The number of steps a scene asks for.
fn scene_steps(scene: &Scene) -> u64 {
    // The end is reached, if not exactly, then in the step after it; rounding is none.
    (scene.time.end / scene.time.step - 1e-6).ceil() as u64
}

/// Where pictures are taken from: as the scene says, or so that cloth and bodies are seen.
fn camera(world: &World) -> Camera {
    let scene = world.scene();
    let (mut low, mut high) = (DVec3::INFINITY, DVec3::NEG_INFINITY);
    let mut include = |p: DVec3| {
        low = low.min(p);
        high = high.max(p);
    };
    world.model().rest().iter().for_each(|&p| include(p));
    for (body, mesh) in scene.bodies.iter().zip(world.body_meshes()) {
        if let crate::scene::Shape::Plane { point, .. } = body.shape {
            // As much of a plane as lies under the rest.
            include(DVec3::new(0.0, 0.0, point.z));
        } else {
            mesh.positions.iter().for_each(|&p| include(p));
        }
    }
    let framing = Camera::framing(low, high);
    match (scene.output.camera, scene.output.look_at) {
        (Some(eye), target) => Camera::new(eye, target.unwrap_or(0.5 * (low + high))),
        (None, Some(target)) => {
            let shift = target - 0.5 * (low + high);
            Camera::framing(low + shift, high + shift)
        }
        (None, None) => framing,
    }
}

fn row(world: &World, simulation: &Simulation<'_>, ranks: &[RankStep]) -> HistoryRow {
    let total = |f: &dyn Fn(&StepReport) -> u64| ranks.iter().map(|r| f(&r.report)).sum::<u64>();
    let slowest = |phase: usize| {
        ranks
            .iter()
            .map(|r| r.report.times[phase].as_secs_f64())
            .fold(0.0, f64::max)
    };
    let speeds = simulation.velocities().iter().map(|v| v.length());
    let kinetic = world.model().masses().iter().zip(simulation.velocities());
    let first = &ranks[0].report;
    HistoryRow {
        step: simulation.step(),
        time_s: simulation.time(),
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
        max_speed: speeds.fold(0.0, f64::max),
        max_strain: ranks.iter().map(|r| r.strain).fold(0.0, f64::max),
        kinetic_J: kinetic.map(|(m, v)| 0.5 * m * v.length_squared()).sum(),
    }
}

fn partition_record(world: &World, ranks: usize) -> Result<PartitionRecord, RunError> {
    let ownership = weft_partition::Ownership::new(world.tree(), ranks).map_err(StepError::from)?;
    let quality = Quality::of_ranks(world.graph(), &ownership).map_err(StepError::from)?;
    Ok(PartitionRecord {
        patches: world.tree().patch_count() as u64,
        cut: quality.edge_cut as u64,
        edges: world.graph().edge_count() as u64,
        imbalance: quality.imbalance,
        halo: quality.halo_total() as u64,
    })
}

fn record(scene: &Scene, options: &RunOptions, quality: PartitionRecord) -> RunRecord {
    let ranks = options.ranks as u32;
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname");
    let host = host.map_or_else(|_| "localhost".to_owned(), |name| name.trim().to_owned());
    let machine = MachineRecord {
        ranks,
        threads: options.threads as u32,
        comm: options.driver.name().to_owned(),
        hosts: BTreeMap::from([(host, (0..ranks).collect())]),
        mpi: None,
    };
    let scene_record = SceneRecord {
        name: scene.name.clone(),
        path: scene.path.as_ref().map(|p| p.display().to_string()),
        sha256: scene.sha256.clone(),
    };
    let command = options.command.clone();
    let seed = scene.balance.seed;
    let mut record = RunRecord::new(
        ProgramRecord::this(&[]),
        machine,
        command,
        scene_record,
        seed,
    );
    record.partition = Some(quality);
    record
}

fn summarise(world: &World, options: &RunOptions, ranks: &[RankTotals]) -> RunSummary {
    let seconds = |phase: usize| ranks.iter().map(|r| r.times[phase].as_secs_f64()).collect();
    let phases = PHASES
        .iter()
        .enumerate()
        .map(|(k, name)| Phase {
            name,
            seconds: seconds(k),
        })
        .collect();
    // Waiting is inside the phases that exchange: useful are tasks, assembly and the solve.
    let useful = ranks.iter().map(|r| {
        let tasks: Duration = r.scope.busy.iter().sum();
        (tasks / options.threads.max(1) as u32 + r.times[1] + r.times[2]).as_secs_f64()
    });
    let loop_time = ranks.iter().map(|r| r.loop_time).max().unwrap_or_default();
    let scopes: Vec<ScopeReport> = ranks.iter().map(|r| r.scope.clone()).collect();
    let last = ranks.iter().find_map(|r| r.last.clone());
    let last = last.expect("rank 0 came to its end, for no rank failed");
    RunSummary {
        hash: last.hash,
        steps: last.steps,
        vertices: world.model().masses().len(),
        loop_time,
        phases: PhaseTable::new(phases, useful.collect(), loop_time.as_secs_f64()),
        balance: Balance::new(&scopes, options.threads),
        frames: last.frames,
        warnings: warnings(world, &last),
        deepest: (!world.scene().bodies.is_empty()).then_some(last.deepest),
        strain: last.strain,
        crossings: last.crossings,
    }
}

/// What a reader of the result must know.
fn warnings(world: &World, last: &Last) -> Vec<String> {
    let scene = world.scene();
    let mut warnings = Vec::new();
    let thickness = scene.contact.thickness;
    if last.deepest > thickness {
        warnings.push(format!(
            "a vertex was {:.2} mm inside a body, deeper than the contact thickness of {:.2} mm: take a \
             shorter time.step or a larger contact.thickness",
            1e3 * last.deepest,
            1e3 * thickness
        ));
    }
    let limit = scene.cloths.iter().map(|c| c.material.strain_limit);
    let limit = limit.fold(0.0, f64::max);
    if last.strain > limit + STRAIN_SLACK {
        warnings.push(format!(
            "strain reached {:.1} %, beyond its limit of {:.1} %: take a shorter time.step or a larger \
             contact.iterations",
            100.0 * last.strain,
            100.0 * limit
        ));
    }
    if last.crossings > 0 {
        warnings.push(format!(
            "{} pairs of an edge and a triangle of the cloth cross in the last state: take a shorter \
             time.step or a larger contact.thickness",
            last.crossings
        ));
    }
    warnings
}

fn complete(record: &mut RunRecord, summary: &RunSummary) {
    record.loop_s = Some(summary.loop_time.as_secs_f64());
    record.phases = summary.phases.records();
    record.efficiency = summary.phases.efficiency();
    record.balance = Some(summary.balance.record());
    record.result = Some(ResultRecord {
        hash: summary.hash,
        vertices: summary.vertices as u64,
        steps: summary.steps,
        max_penetration_m: summary.deepest.map(|d| d.max(0.0)),
        max_strain: Some(summary.strain),
    });
    record.warnings.clone_from(&summary.warnings);
    record.exit = Some(0);
}
