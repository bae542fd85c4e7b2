//! The driver of a run: it chooses how ranks talk, reads clocks, and gathers what the outputs need.
//!
//! Ranks take steps in a loop. Rank 0 decides when it ends and what is written meanwhile.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use weft_runtime::comm::solo::Solo;
use weft_runtime::comm::threads::{LaunchError, launch};
use weft_runtime::comm::virtual_time::{self, Computation, VirtualOptions};
use weft_runtime::comm::{Collectives, Comm, CommError, Rank, all_reduce};
use weft_runtime::{ScopeOptions, thread_time, wire};

use super::alike::{self, compare};
use super::checkpoints;
use super::error::{RunError, malformed};
use super::frame_pieces::OwnPiece;
use super::hashing::hash_of;
use super::options::{Driver, RunOptions, VIRTUAL_STACK};
use super::outputs::{Start, begin, conclude};
use super::pace::{Decision, End, Pace};
use super::pictures::Pictures;
use super::recording::Recorder;
use super::reports::{RankStep, Reports};
use super::result::{Ended, RankTotals, RunSummary};
use super::summary::STRAIN_SLACK;
use super::summary::{partition_record, shared_partition_record};
use super::timers::{OutputKind, Timers};
use super::together::{broadcast, gather, write_together};
use super::tracing::Tracer;
use super::writer::{Gathered, Writer};
use crate::memory;
use crate::output::SharedDirectory;
use crate::scene::{Pieces, Scene};
use crate::step::{Simulation, StepError, World};

/// Simulates a scene from start to end.
///
/// # Errors
/// The first thing that went wrong on any rank. The record in the output directory then says so
/// too.
pub fn run(scene: &Scene, options: &RunOptions) -> Result<RunSummary, RunError> {
    if options.driver == Driver::Solo && options.ranks != 1 {
        return Err(RunError::SoloRanks(options.ranks));
    }
    if options.driver == Driver::Mpi {
        return Err(RunError::NotHere);
    }
    if options.ranks == 0 {
        return Err(LaunchError::NoRanks.into());
    }
    check_trace(scene, options)?;
    let mut ranks = memory::Ranks::threads(options.ranks);
    if matches!(options.driver, Driver::Virtual(_)) {
        // One rank computes at a time.
        ranks.drawing = 1;
    }
    let threads = options.ranks.saturating_mul(options.threads);
    let world = memory::build(scene, threads, ranks, options.memory)?;
    let quality = partition_record(&world, options.ranks)?;
    let (start, mut record) = begin(&world, options, quality)?;
    let unready = Unready::new(&world, options.ranks);
    match run_ranks(&unready, options, &start) {
        Ok(ended) => Ok(conclude(&world, options, &start, record, ended)),
        Err(error) => {
            record.fail(error.exit_code(), error.to_string());
            record.history = None;
            // The first failure is reported.
            drop(record.write(&start.directory));
            Err(error)
        }
    }
}

/// Takes this rank's part in a run whose ranks were started by somebody else; rank 0 gets the
/// summary.
///
/// Collective: every rank calls it, with a world built from the same scene and with the same
/// options, which they compare first. Rank 0 writes the outputs.
///
/// # Errors
/// What went wrong on this rank, or that another failed ([`RunError::is_echo`]). The record in the
/// output directory does not say so yet; see [`note_failure`](super::note_failure).
pub fn run_rank(
    world: &World,
    options: &RunOptions,
    comm: &mut dyn Comm,
) -> Result<Option<RunSummary>, RunError> {
    AgreedRun::of(world, options, comm)?.take_part(comm)
}

/// A run that all ranks were given alike.
#[derive(Debug)]
pub struct AgreedRun<'a> {
    world: &'a World,
    options: &'a RunOptions,
    /// Whether the world serves no other run.
    releases: bool,
}

/// The ranks of a process that are not set up yet, of a run whose world serves no other.
#[derive(Debug)]
struct Unready<'a> {
    world: &'a World,
    ranks: AtomicUsize,
}

impl<'a> Unready<'a> {
    fn new(world: &'a World, ranks: usize) -> Self {
        let ranks = AtomicUsize::new(ranks);
        Self { world, ranks }
    }

    /// Counts a rank as set up. With the last one goes the data of the set-up.
    fn is_ready(&self) {
        if self.ranks.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.world.release();
        }
    }
}

impl<'a> AgreedRun<'a> {
    /// Makes sure that all ranks were given the same. Collective: the outcome is the same on all of
    /// them, and nothing was written.
    ///
    /// # Errors
    /// [`RunError::Differ`], or messages failed.
    pub fn of(
        world: &'a World,
        options: &'a RunOptions,
        comm: &mut dyn Comm,
    ) -> Result<Self, RunError> {
        if comm.size() > 1 {
            // The directory of the outputs, unless it was given, follows from the scene.
            let mut given = alike::of_world(world);
            given.extend(alike::of_options(options));
            compare(&given, comm)?;
        }
        Ok(Self {
            world,
            options,
            releases: false,
        })
    }

    /// Has the world give back what only the set-up of ranks reads, as soon as this rank, which is
    /// the only one of its process, is set up ([`World::release`]).
    #[must_use]
    pub fn releasing(mut self) -> Self {
        self.releases = true;
        self
    }

    /// Takes this rank's part in it; see [`run_rank`].
    ///
    /// # Errors
    /// As [`run_rank`].
    pub fn take_part(self, comm: &mut dyn Comm) -> Result<Option<RunSummary>, RunError> {
        let Self {
            world,
            options,
            releases,
        } = self;
        check_trace(world.scene(), options)?;
        let quality = shared_partition_record(world, comm)?;
        let started = match comm.rank() {
            Rank(0) => Some(begin(world, options, quality)?),
            _ => None,
        };
        let begun = started
            .as_ref()
            .map(|(start, record)| (start.directory.clone(), record.clone()));
        options.begun.set(begun);
        let start = started.as_ref().map(|(start, _)| start);
        let ready = || {
            if releases {
                world.release();
            }
        };
        let ended = rank_loop((world, &ready), options, start, comm)?;
        options.begun.set(None);
        Ok(started.map(|(start, record)| conclude(world, options, &start, record, ended)))
    }
}

/// Makes sure that the steps to be traced are steps of the run.
fn check_trace(scene: &Scene, options: &RunOptions) -> Result<(), RunError> {
    let steps = options.steps.unwrap_or_else(|| scene.time.steps());
    if options.record.is_some() && options.ranks != 1 {
        return Err(RunError::RecordRanks);
    }
    let recorded = options.record.flatten();
    match options.trace.or(recorded).map(|trace| trace.from()) {
        Some(from) if from > steps => Err(RunError::NothingToTrace { from, steps }),
        _ => Ok(()),
    }
}

/// Runs all ranks; what the first has in the end, or the error that is not an echo of another.
fn run_ranks(
    unready: &Unready<'_>,
    options: &RunOptions,
    start: &Start,
) -> Result<Ended, RunError> {
    let body = |comm: &mut dyn Comm| {
        let ready = || unready.is_ready();
        let outcome = rank_loop((unready.world, &ready), options, Some(start), comm);
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
        Driver::Mpi => return Err(RunError::NotHere),
    };
    let mut ended = Ended::default();
    let mut failure: Option<RunError> = None;
    for outcome in outcomes {
        match outcome {
            Ok(of_first) if !of_first.ranks.is_empty() => ended = of_first,
            Ok(_) => {}
            Err(error) => {
                if failure.as_ref().is_none_or(RunError::is_echo) {
                    failure = Some(error);
                }
            }
        }
    }
    failure.map_or(Ok(ended), Err)
}

/// The life of one rank. Rank 0, which writes, gets the totals of all ranks, and what they
/// recorded. `ready` is called as soon as the rank is set up.
fn rank_loop(
    (world, ready): (&World, &dyn Fn()),
    options: &RunOptions,
    start: Option<&Start>,
    comm: &mut dyn Comm,
) -> Result<Ended, RunError> {
    let scene = world.scene();
    let mut scope = ScopeOptions::from(&scene.balance);
    scope.workers = options.threads;
    scope.progress_thread = options.progress_thread;
    let mut simulation = Simulation::new(world, &*comm, &scope)?;
    let steps = options.steps.unwrap_or_else(|| scene.time.steps());
    let start = start.filter(|_| comm.rank() == Rank(0));
    let in_pieces = scene.output.frames && scene.output.pieces == Pieces::Rank;
    if in_pieces || scene.output.checkpoints {
        see_directory(start, comm)?;
    }
    if options.resume.is_some() {
        checkpoints::resume(&mut simulation, start, comm)?;
    }
    let mut writer = start
        .map(|start| Writer::new(world, options, start, steps))
        .transpose()?;
    let mut pace = Pace::new(&scene.output, &options.stop, wall_clock());
    let mut tracer = Tracer::start(options, comm)?;
    let recorder = options.record.zip(start);
    let mut recorder = recorder
        .map(|(wanted, start)| {
            let taken = (simulation.step(), steps);
            Recorder::start(world, wanted, &start.directory, taken)
        })
        .transpose()?;
    ready();
    let begin = comm.now();
    let mut totals = RankTotals::default();
    let pictures = scene.output.pictures.then(|| Pictures::new(world));
    let pieces = in_pieces.then(|| OwnPiece::new(world, &simulation, &*comm));
    // Frames in pieces, histories and checkpoints need no rank that knows the state of all cloth.
    let shows_all =
        scene.output.pictures || scene.output.frames && !in_pieces || options.audit.is_some();
    let frame = |writer: &mut Option<Writer<'_>>,
                 simulation: &Simulation<'_>,
                 timers: &mut Timers<'_>,
                 comm: &mut dyn Comm| {
        if let Some(pictures) = &pictures {
            let picture = pictures.draw(simulation, comm)?;
            if let (Some(writer), Some(picture)) = (&*writer, picture) {
                writer.picture(simulation, &picture)?;
            }
            comm.barrier()?;
            timers.lap(OutputKind::Pictures, comm);
        }
        let deepest = deepest(world, simulation, comm)?;
        if let Some(pieces) = &pieces {
            // All ranks have written when the last has.
            pieces.write(simulation, (writer.as_mut(), deepest), comm)?;
            timers.lap(OutputKind::Frames, comm);
            return Ok(());
        }
        let (mut states, mut forces, mut strains) = (None, None, None);
        if scene.output.frames {
            states = simulation.gather_contacts(comm)?;
            forces = simulation.gather_contact_forces(comm)?;
            strains = simulation.gather_strains(comm)?;
        }
        if let Some(writer) = writer {
            let gathered = Gathered {
                states: states.unwrap_or_default(),
                forces: forces.unwrap_or_default(),
                strains: strains.unwrap_or_default(),
                deepest,
            };
            writer.frame(simulation, &gathered)?;
        }
        // Others wait for the one that writes here, and not in the next step, where it would look
        // like a rank that is slow.
        comm.barrier()?;
        timers.lap(OutputKind::Frames, comm);
        Ok::<(), RunError>(())
    };
    let first = (writer.as_ref()).map(|writer| writer.is_frame_due(simulation.step(), steps == 0));
    if broadcast(comm, first.as_ref())? {
        let mut timers = Timers::start(&mut totals.outputs, comm);
        if shows_all {
            simulation.complete(comm)?;
        }
        frame(&mut writer, &simulation, &mut timers, comm)?;
    }
    let mut reports = Reports::default();
    let mut has_told = false;
    let alone = comm.size() == 1;
    while simulation.step() < steps && totals.stopped.is_none() {
        let step = simulation.step() + 1;
        let is_last = step == steps;
        let mut decide = |writer: &Option<Writer<'_>>, ahead: u32| match writer {
            Some(writer) => {
                let frame = writer.is_frame_due(step, is_last);
                let end = End { is_last, frame };
                pace.decide(wall_clock(), ahead, end)
            }
            None => Decision {
                stop: options.stop.asked(wall_clock(), Duration::ZERO),
                ..Decision::default()
            },
        };
        if !alone {
            let own = wire::encode(&decide(&writer, 1));
            let unsendable = CommError::unsendable(comm.rank(), "what is to follow a step");
            simulation.say(own.map_err(unsendable)?);
        }
        if let Some(recorder) = &mut recorder {
            recorder.before(&mut simulation, &thread_time)?;
        }
        let outcome = tracer.advance(&mut simulation, comm, &mut totals.waited);
        let report = match outcome {
            Ok(report) => report,
            Err(error) => {
                // All ranks have failed alike, then.
                if error.leaves_state() {
                    let whole = simulation.is_between_steps() && scene.output.checkpoints;
                    let kept = reports.write(comm, writer.as_mut()).and_then(|()| {
                        keep_after_failure(&simulation, whole, writer.as_mut(), comm)
                    });
                    return Err(first_failure(error, kept));
                }
                return Err(error.into());
            }
        };
        if let Some(recorder) = &mut recorder {
            recorder.after(&report, &mut simulation, &thread_time)?;
        }
        for (sum, time) in totals.times.iter_mut().zip(report.times) {
            *sum += time;
        }
        let mut timers = Timers::start(&mut totals.outputs, comm);
        totals.scope.add(&report.scope);
        totals.early += report.early;
        totals.cuts.add(&report);
        (totals.certified).add(&report.certified, &simulation, world);
        totals.stops.add(&report.stops);
        totals.states.add(&report);
        let strains = simulation.strains();
        reports.write(comm, writer.as_mut())?;
        let elapsed = comm.now().saturating_sub(begin);
        let seen = (writer.as_ref()).map(|writer| writer.see(&simulation, elapsed));
        let breach = if strains.beyond > STRAIN_SLACK && !std::mem::replace(&mut has_told, true) {
            simulation.breach(&strains)
        } else {
            None
        };
        let own = RankStep {
            report,
            strains,
            breach,
        };
        reports.send(comm, own, seen)?;
        let mut decision = if alone {
            decide(&writer, 0)
        } else {
            decided(simulation.heard(), is_last)?
        };
        if let Some(recorder) = recorder.as_ref().filter(|_| !is_last) {
            let checkpoints = scene.output.checkpoints;
            recorder.keep_restart(step, checkpoints, &mut decision);
        }
        totals.stopped = decision.stop;
        if alone || is_last || decision != Decision::default() {
            reports.write(comm, writer.as_mut())?;
        }
        timers.lap(OutputKind::History, comm);
        if decision.frame && shows_all {
            simulation.complete(comm)?;
        }
        if decision.frame {
            frame(&mut writer, &simulation, &mut timers, comm)?;
        }
        if decision.checkpoint {
            checkpoints::write(&simulation, writer.as_mut(), comm)?;
            timers.lap(OutputKind::Checkpoints, comm);
        }
    }
    if let Err(error) = simulation.check_seams() {
        let checkpoints = scene.output.checkpoints;
        let kept = keep_after_failure(&simulation, checkpoints, writer.as_mut(), comm);
        return Err(first_failure(error, kept));
    }
    totals.loop_time = comm.now().saturating_sub(begin);
    totals.peak_memory = memory::peak();
    totals.memory = simulation.memory();
    let (summary, traces) = tracer.finish(comm)?.unzip();
    totals.trace = summary;
    if let Some(recorder) = recorder {
        totals.unrecorded = recorder.finish()?;
    }
    let crossings = simulation.count_crossings(comm)?;
    let hash = hash_of(&simulation, comm)?;
    totals.last = writer.map(|writer| writer.end(&simulation, hash, crossings));
    Ok(Ended {
        ranks: gather(comm, &totals)?.unwrap_or_default(),
        traces,
    })
}

/// How deep the deepest vertex of all cloth is inside a body, in m; negative if none is.
/// Collective.
fn deepest(
    world: &World,
    simulation: &Simulation<'_>,
    comm: &mut dyn Comm,
) -> Result<f64, CommError> {
    let owned = simulation.ownership().vertices(comm.rank().index());
    let own = world.deepest(&simulation.positions()[owned], simulation.time());
    all_reduce(comm, own, f64::max)
}

/// Makes sure, before anything is computed, that all ranks see the directory into which each will
/// write. Collective.
fn see_directory(start: Option<&Start>, comm: &mut dyn Comm) -> Result<(), RunError> {
    if comm.size() == 1 {
        return Ok(());
    }
    let begun = start.map(|start| Ok(((), SharedDirectory::of(&start.directory)?)));
    write_together(comm, begun, SharedDirectory::check, |(), _| Ok(()))?;
    Ok(())
}

/// The decision of all ranks after a step in which they have said this to each other.
fn decided(heard: &[Vec<u8>], is_last: bool) -> Result<Decision, CommError> {
    let said = (0..).map(Rank).zip(heard);
    let said = said.map(|(from, bytes)| wire::decode(bytes).map_err(malformed(from)));
    Ok(Decision::of_all(
        &said.collect::<Result<Vec<_>, _>>()?,
        is_last,
    ))
}

/// The error of a step, unless the state before it cannot be kept.
fn first_failure(error: StepError, kept: Result<(), RunError>) -> RunError {
    match kept {
        Err(failed) if !failed.is_echo() => failed,
        _ => error.into(),
    }
}

/// Keeps the state before a step that all ranks have failed to take, if it is `whole`, to go on
/// from with other settings. Collective.
fn keep_after_failure(
    simulation: &Simulation<'_>,
    whole: bool,
    writer: Option<&mut Writer<'_>>,
    comm: &mut dyn Comm,
) -> Result<(), RunError> {
    if whole {
        checkpoints::write(simulation, writer, comm)?;
    }
    // A rank that returns may end the job, so all wait until everything is written.
    Ok(comm.barrier()?)
}

#[expect(
    clippy::disallowed_methods,
    reason = "queues and people count wall time, also of virtual ranks"
)]
fn wall_clock() -> Instant {
    Instant::now()
}
