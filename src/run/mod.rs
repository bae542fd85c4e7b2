//! A whole run: ranks take steps together, rank 0 writes what comes of it.
//!
//! This is the driver: it chooses how ranks talk, reads clocks, and gathers what the outputs need. All that
//! decides the trajectory is below it, in [`crate::step`].

mod alike;
mod cuts;
mod modelled;
mod pace;
mod pictures;
mod profile;
mod recording;
mod reports;
mod resume;
mod start_notes;
mod stop;
mod summary;
mod timers;
mod tracing;
mod waits;
mod writer;

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use weft_io::{Printable, Show as _};
use weft_runtime::comm::solo::Solo;
use weft_runtime::comm::threads::{LaunchError, launch};
use weft_runtime::comm::virtual_time::{self, Computation, Network, VirtualOptions};
use weft_runtime::comm::{Collectives, Comm, CommError, Rank};
use weft_runtime::{ScopeError, ScopeOptions, ScopeReport, thread_time, wire};
use weft_study::record::RecordError;
use weft_study::shape::ShapeError;

pub use self::alike::{Differences, Given, compare};
pub use self::cuts::Cuts;
pub use self::modelled::{ModelledStep, by_pass, run_modelled};
use self::pace::{Decision, End, Pace};
use self::pictures::Pictures;
use self::recording::Recorder;
pub use self::recording::{RECORD_FILE, last_restart};
use self::reports::{RankStep, Reports};
pub use self::resume::{Resume, read_state};
pub use self::start_notes::uneven;
pub use self::stop::{Cause, Stop};
pub use self::summary::FEATURES;
use self::summary::{STRAIN_SLACK, UNCROSS_BODIES, complete, partition_record, record, summarise};
use self::timers::{OUTPUTS, OutputKind, Timers};
pub use self::tracing::{NoSteps, TraceSteps, TraceSummary};
use self::tracing::{Tracer, Traces};
use self::writer::Writer;
use crate::diagnostics::{Balance, PhaseTable};
use crate::output::{
    Checkpoint, FrameAudit, HistoryMark, OutputError, RankRecord, RunDirectory, RunRecord,
    StateHash,
};
use crate::scene::Scene;
use crate::step::{PHASES, SavedState, Simulation, StepError, Stops, World, WorldError};

/// Stack of a rank in virtual time in bytes; only what is used takes memory.
const VIRTUAL_STACK: usize = 4 << 20;

/// How ranks talk to each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Driver {
    /// One rank alone.
    Solo,
    /// Every rank a thread of this process.
    Threads,
    /// Ranks in virtual time, on a modelled network; computation costs what it takes here.
    Virtual(Network),
    /// Every rank a process that calls [`run_rank`].
    Mpi,
}

impl Driver {
    /// Its name in records and on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Solo => "solo",
            Self::Threads => "threads",
            Self::Virtual(_) => "virtual",
            Self::Mpi => "mpi",
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
    /// Whether a thread of each rank beside its workers does nothing but messages.
    pub progress_thread: bool,
    /// How ranks talk.
    pub driver: Driver,
    /// Steps to take, counted from time 0, if not as many as the scene says.
    pub steps: Option<u64>,
    /// Directory that receives the outputs.
    pub out: PathBuf,
    /// What to go on from, if not from the start.
    pub resume: Option<Resume>,
    /// Whether a run that is in the directory is replaced, if it is not gone on with: else it is
    /// refused.
    pub overwrite: bool,
    /// Asks to stop early.
    pub stop: Stop,
    /// Steps to trace.
    pub trace: Option<TraceSteps>,
    /// Whether to record shape and cost of tests, and of which steps if not of the last.
    pub record: Option<Option<TraceSteps>>,
    /// Whether frames are looked at for cloth that crosses itself or bodies.
    pub audit: Option<Audit>,
    /// How to show progress: a bar, lines, or nothing.
    pub progress: Show,
    /// The command line, for the record.
    pub command: Vec<String>,
    /// The host of each rank; if there are none, all are here.
    pub hosts: Vec<String>,
    /// What the MPI library says about itself, if there is one.
    pub mpi: Option<String>,
    /// What has been begun, for [`note_failure`].
    pub begun: Begun,
}

/// The outputs that a process has begun, of a run whose ranks were started by somebody else. Clones
/// know the same.
#[derive(Clone, Debug, Default)]
pub struct Begun(Arc<Mutex<Option<(RunDirectory, RunRecord)>>>);

impl Begun {
    fn set(&self, begun: Option<(RunDirectory, RunRecord)>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = begun;
    }
}

/// What is done about cloth that crosses itself or a body in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audit {
    /// It is told.
    Count,
    /// The run counts as failed.
    Strict,
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
    /// What each rank did, by rank.
    pub ranks: Vec<RankRecord>,
    /// Frames written.
    pub frames: usize,
    /// Deepest vertex inside a body in any frame, in m; negative if none was ever inside. `None` without
    /// bodies.
    pub deepest: Option<f64>,
    /// Largest principal strain of any step.
    pub strain: f64,
    /// Pairs of an edge and a triangle of the cloth that cross in the last state.
    pub crossings: usize,
    /// Those of cloth and bodies.
    pub pierced: usize,
    /// How steps were cut.
    pub cuts: Cuts,
    /// Why linear solves went no further.
    pub stops: Stops,
    /// Limits that the result breaks, each a sentence.
    pub warnings: Vec<String>,
    /// The step that the run went on from.
    pub resumed_from: Option<u64>,
    /// Why it stopped before its end, if it did; the last state is then in a checkpoint.
    pub stopped: Option<Cause>,
    /// What was found in frames, if they were looked at.
    pub audit: Option<FrameAudit>,
    /// What came of tracing, if it was asked for.
    pub trace: Option<TraceSummary>,
    /// Why not all of that could be written at the end, as to a full disk; all else is told all the same.
    pub unwritten: Option<String>,
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
    /// A checkpoint of another scene.
    #[error("cannot go on from {}, a state of another scene: {}", path.shown(), what.shown())]
    OtherScene {
        /// The checkpoint.
        path: PathBuf,
        /// What differs.
        what: String,
    },
    /// Ranks could not be run.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// Messages failed.
    #[error(transparent)]
    Comm(#[from] CommError),
    /// A record could not be written.
    #[error(transparent)]
    RecordFile(#[from] RecordError),
    /// A step does not fit into a record.
    #[error("the step cannot be recorded: {0}")]
    Record(ShapeError),
    /// Several ranks are to be recorded.
    #[error(
        "a run is recorded on one rank, and studied on any number: use --ranks 1 with --record, and then \
         `weft study` with --ranks"
    )]
    RecordRanks,
    /// One rank cannot be several.
    #[error("one rank alone cannot be {0} ranks; leave out `--comm solo` or `--ranks`")]
    SoloRanks(usize),
    /// Steps to trace that the run does not take.
    #[error("there is no step {from} to trace or record: the run ends with step {steps}")]
    NothingToTrace {
        /// The first step to trace.
        from: u64,
        /// The last step of the run.
        steps: u64,
    },
    /// Ranks were given different options, scenes or meshes.
    #[error(transparent)]
    Differ(#[from] Differences),
    /// This function starts all ranks, but those of MPI are started by its launcher.
    #[error("ranks that are MPI processes are started by mpirun or srun")]
    NotHere,
}

impl RunSummary {
    /// What is wrong with a run that went well but for its audit, if it was to be strict.
    #[must_use]
    pub fn audit_failure(&self, options: &RunOptions) -> Option<String> {
        let audit = (self.audit.as_ref()).filter(|_| options.audit == Some(Audit::Strict))?;
        let advice = if audit.has_crossed_bodies() {
            UNCROSS_BODIES
        } else {
            "take a shorter time.step or a larger contact.thickness"
        };
        (!audit.crossing.is_empty()).then(|| format!("{audit}; {advice}"))
    }
}

impl RunError {
    /// The exit code of the command.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::SoloRanks(_)
            | Self::NothingToTrace { .. }
            | Self::RecordRanks
            | Self::NotHere => 2,
            Self::Differ(differences) if differences.of_options() => 2,
            Self::Differ(_)
            | Self::World(_)
            | Self::OtherScene { .. }
            | Self::Step(StepError::Partition(_)) => 3,
            // A task that panicked is an error in the program.
            Self::Step(StepError::Detect {
                source: ScopeError::Task(_),
                ..
            }) => 101,
            Self::Step(_) => 4,
            Self::Record(_) | Self::Comm(CommError::Unsendable { .. }) => 4,
            Self::Output(_) | Self::RecordFile(_) => 5,
            Self::Launch(
                LaunchError::NoRanks | LaunchError::Options(_) | LaunchError::TooMany { .. },
            ) => 2,
            Self::Launch(LaunchError::Panicked { .. }) | Self::Comm(_) => 101,
        }
    }

    /// Whether this only says that another rank failed.
    #[must_use]
    pub fn is_echo(&self) -> bool {
        match self {
            Self::Step(error) => error.is_echo(),
            Self::Comm(CommError::Aborted { .. } | CommError::Left { .. }) => true,
            _ => false,
        }
    }
}

/// What a rank reports of the whole run.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct RankTotals {
    times: [Duration; PHASES.len()],
    /// The times of outputs between steps.
    outputs: [Duration; OUTPUTS.len()],
    scope: ScopeReport,
    /// In which patches were made ready outside of tasks.
    early: Duration,
    /// For messages in steps, outside of scopes.
    waited: Duration,
    loop_time: Duration,
    cuts: Cuts,
    stops: Stops,
    stopped: Option<Cause>,
    last: Option<Last>,
    trace: Option<TraceSummary>,
    /// What a record lacks, on rank 0.
    unrecorded: Option<String>,
}

/// What rank 0 keeps of the end.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Last {
    history: HistoryMark,
    hash: StateHash,
    steps: u64,
    crossings: usize,
    /// Of cloth and bodies.
    pierced: usize,
    audit: Option<FrameAudit>,
    frames: usize,
    deepest: f64,
    strain: f64,
    beyond_limit: f64,
    /// How strain came to be beyond a limit.
    breach: Option<String>,
}

/// Simulates a scene from start to end.
///
/// # Errors
/// The first thing that went wrong on any rank. The record in the output directory then says so too.
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
    let world = World::build(scene)?;
    let (start, mut record) = begin(&world, options)?;
    match run_ranks(&world, options, &start) {
        Ok(ended) => Ok(conclude(&world, options, &start, record, ended)),
        Err(error) => {
            record.fail(error.exit_code(), error.to_string());
            record.history = None;
            // What failed first is told.
            drop(record.write(&start.directory));
            Err(error)
        }
    }
}

/// Writes what came of a run: what was measured first, so that it is not lost if there is no room for traces.
fn conclude(
    world: &World,
    options: &RunOptions,
    start: &Start,
    mut record: RunRecord,
    ended: Ended,
) -> RunSummary {
    let mut summary = summarise(world, options, start, &ended.ranks);
    complete(&mut record, &summary, options);
    let last = ended.ranks.iter().find_map(|rank| rank.last.as_ref());
    record.history = last.map(|last| last.history.clone());
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

/// Takes this rank's part in a run whose ranks were started by somebody else; rank 0 gets the summary.
///
/// Collective: every rank calls it, with a world built from the same scene and with the same options, which they
/// compare first. Rank 0 writes the outputs.
///
/// # Errors
/// What went wrong on this rank, or that another failed ([`RunError::is_echo`]). The record in the output
/// directory does not say so yet; see [`note_failure`].
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
        Ok(Self { world, options })
    }

    /// Takes this rank's part in it; see [`run_rank`].
    ///
    /// # Errors
    /// As [`run_rank`].
    pub fn take_part(self, comm: &mut dyn Comm) -> Result<Option<RunSummary>, RunError> {
        let Self { world, options } = self;
        check_trace(world.scene(), options)?;
        let started = match comm.rank() {
            Rank(0) => Some(begin(world, options)?),
            _ => None,
        };
        let begun = started
            .as_ref()
            .map(|(start, record)| (start.directory.clone(), record.clone()));
        options.begun.set(begun);
        let start = started.as_ref().map(|(start, _)| start);
        let ended = rank_loop(world, options, start, comm)?;
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

/// Writes into the record of the run that [`run_rank`] has begun here with these options that it
/// has failed. If none was begun, as where the directory of another run was refused, nothing is
/// written.
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

/// What rank 0 begins with.
struct Start {
    directory: RunDirectory,
    /// The state to go on from.
    checkpoint: Option<Checkpoint>,
    /// Whether the outputs of an earlier run in the directory are continued.
    in_place: bool,
    /// What is to be known of the scene, and of what the run goes on from, before there is a
    /// result.
    warnings: Vec<String>,
}

/// Opens the outputs: what is written before the first step.
fn begin(world: &World, options: &RunOptions) -> Result<(Start, RunRecord), RunError> {
    let quality = partition_record(world, options.ranks)?;
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
    let header = start.checkpoint.as_ref().map(|c| &c.header);
    record.resumed_from = header.map(|header| header.step);
    let header = header.filter(|_| start.in_place);
    record.history = header.and_then(|header| header.history.clone());
    record.warnings.clone_from(&start.warnings);
    record.write(&start.directory)?;
    if options.progress != Show::Nothing {
        for warning in &start.warnings {
            // There is nobody else to tell.
            drop(writeln!(io::stderr(), "warning: {}", Printable(warning)));
        }
        let overshoot = match options.steps {
            None => world.scene().time.overshoot(),
            Some(_) => None,
        };
        for sizes in world.sizes() {
            drop(writeln!(io::stderr(), "note: {sizes}"));
        }
        for note in uneven.into_iter().chain(overshoot) {
            drop(writeln!(io::stderr(), "note: {}", Printable(&note)));
        }
    }
    Ok((start, record))
}

/// What rank 0 has in the end; others have nothing.
#[derive(Debug, Default)]
struct Ended {
    /// The totals of all ranks.
    ranks: Vec<RankTotals>,
    /// What they recorded, if they were to.
    traces: Option<Traces>,
}

/// Runs all ranks; what the first has in the end, or the error that is not an echo of another.
fn run_ranks(world: &World, options: &RunOptions, start: &Start) -> Result<Ended, RunError> {
    let body = |comm: &mut dyn Comm| {
        let outcome = rank_loop(world, options, Some(start), comm);
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

/// The life of one rank. Rank 0, which writes, gets the totals of all ranks, and what they recorded.
fn rank_loop(
    world: &World,
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
    if options.resume.is_some() {
        resume(&mut simulation, start, comm)?;
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
    let begin = comm.now();
    let mut totals = RankTotals {
        times: [Duration::ZERO; PHASES.len()],
        outputs: [Duration::ZERO; OUTPUTS.len()],
        scope: ScopeReport::default(),
        early: Duration::ZERO,
        waited: Duration::ZERO,
        loop_time: Duration::ZERO,
        cuts: Cuts::default(),
        stops: Stops::default(),
        stopped: None,
        last: None,
        trace: None,
        unrecorded: None,
    };
    let pictures = scene.output.pictures.then(|| Pictures::new(world));
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
        if let Some(writer) = writer {
            writer.frame(simulation)?;
        }
        // Others wait for the one that writes here, and not in the next step, where it would look like a rank that is slow.
        comm.barrier()?;
        timers.lap(OutputKind::Frames, comm);
        Ok::<(), RunError>(())
    };
    let first = (writer.as_ref()).map(|writer| writer.is_frame_due(simulation.step(), steps == 0));
    if broadcast(comm, first.as_ref())? {
        let mut timers = Timers::start(&mut totals.outputs, comm);
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
        let outcome = match &mut tracer {
            Some(tracer) => tracer.advance(&mut simulation, comm, &mut totals.waited),
            None => waits::advance(
                &mut simulation,
                comm,
                &mut totals.waited,
                &mut |_, _, _, _| {},
            ),
        };
        let report = match outcome {
            Ok(report) => report,
            Err(error) => {
                // All ranks have failed alike, then.
                if error.is_of_length() {
                    let whole = simulation.is_between_steps() && scene.output.checkpoints;
                    let kept = reports.write(comm, writer.as_mut()).and_then(|()| {
                        keep_after_failure(&simulation, whole, writer.as_ref(), comm)
                    });
                    match kept {
                        // What failed first is told, unless what was before cannot be kept.
                        Err(failed) if !failed.is_echo() => return Err(failed),
                        _ => {}
                    }
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
        totals.stops.add(&report.stops);
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
        if decision.frame {
            frame(&mut writer, &simulation, &mut timers, comm)?;
        }
        if decision.checkpoint {
            let state = simulation.gather_state(comm)?;
            if let (Some(writer), Some(state)) = (&mut writer, state) {
                writer.checkpoint(state)?;
            }
            timers.lap(OutputKind::Checkpoints, comm);
        }
    }
    totals.loop_time = comm.now().saturating_sub(begin);
    let (summary, traces) = match tracer {
        Some(tracer) => tracer.finish(comm)?.unzip(),
        None => (None, None),
    };
    totals.trace = summary;
    if let Some(recorder) = recorder {
        totals.unrecorded = recorder.finish()?;
    }
    totals.last = writer.map(|writer| writer.end(&simulation));
    Ok(Ended {
        ranks: gather(comm, &totals)?.unwrap_or_default(),
        traces,
    })
}

/// What all ranks do after a step in which they have said this to each other.
fn decided(heard: &[Vec<u8>], is_last: bool) -> Result<Decision, CommError> {
    let said = (0..).map(Rank).zip(heard);
    let said = said.map(|(from, bytes)| wire::decode(bytes).map_err(malformed(from)));
    Ok(Decision::of_all(
        &said.collect::<Result<Vec<_>, _>>()?,
        is_last,
    ))
}

/// Keeps the state before a step that all ranks have failed to take, if it is `whole`, to go on from with other settings. Collective.
fn keep_after_failure(
    simulation: &Simulation<'_>,
    whole: bool,
    writer: Option<&Writer<'_>>,
    comm: &mut dyn Comm,
) -> Result<(), RunError> {
    let state = if whole {
        simulation.gather_state(comm)?
    } else {
        None
    };
    if let (Some(writer), Some(state)) = (writer, state) {
        writer.checkpoint(state)?;
    }
    // Who returns ends the job: not before that is written.
    Ok(comm.barrier()?)
}

/// Gives every rank the state that rank 0 has read. Collective.
fn resume(
    simulation: &mut Simulation<'_>,
    start: Option<&Start>,
    comm: &mut dyn Comm,
) -> Result<(), RunError> {
    let state = start.and_then(|start| start.checkpoint.as_ref());
    let state = SavedState::broadcast(state.map(|checkpoint| &checkpoint.state), comm)?;
    state.map_or(Ok(()), |state| Ok(simulation.restore(&state)?))
}

/// One value of each rank, on rank 0. Collective.
fn gather<T: Serialize + DeserializeOwned>(
    comm: &mut dyn Comm,
    own: &T,
) -> Result<Option<Vec<T>>, CommError> {
    let own = wire::encode(own);
    let own = own.map_err(CommError::unsendable(comm.rank(), "what it did in the run"))?;
    let Some(gathered) = comm.gather(Rank(0), own)? else {
        return Ok(None);
    };
    let decode = |(from, bytes): (Rank, &Vec<u8>)| wire::decode(bytes).map_err(malformed(from));
    let all: Result<Vec<T>, _> = (0..).map(Rank).zip(&gathered).map(decode).collect();
    all.map(Some)
}

/// Rank 0's value, on all. Collective; only rank 0 has one.
fn broadcast<T: DeserializeOwned>(
    comm: &mut dyn Comm,
    own: Option<impl Serialize>,
) -> Result<T, CommError> {
    let own = own.map_or_else(|| Ok(Vec::new()), |own| wire::encode(&own));
    let own = own.map_err(CommError::unsendable(
        comm.rank(),
        "what all ranks are to know",
    ))?;
    let bytes = comm.broadcast(Rank(0), own)?;
    wire::decode(&bytes).map_err(malformed(Rank(0)))
}

#[expect(
    clippy::disallowed_methods,
    reason = "queues and people count wall time, also of virtual ranks"
)]
fn wall_clock() -> Instant {
    Instant::now()
}

fn malformed(from: Rank) -> impl Fn(String) -> CommError {
    move |what| CommError::Malformed { from, what }
}
