//! The `weft` command: reads the command line, runs, says how it went.

mod certify_command;
mod cli;
mod commands;
mod completions;
mod export_command;
mod json_reports;
mod launcher;
mod memory_report;
mod new_command;
mod plots;
mod prepare_command;
mod refine_command;
mod signals;
mod study_command;
#[cfg(feature = "mpi")]
mod under_mpi;
mod view;

use std::fmt;
use std::io::{self, IsTerminal, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser as _;
use clap::error::ContextValue;
use weft_io::{Printable, Show as _};
use weft_runtime::comm::virtual_time::Network;
use weftwork::memory::{Limit, Ranks};
use weftwork::output::{EVENTS_SCHEMA, Event};
use weftwork::run::{
    Audit, Begun, Driver, Resume, RunOptions, RunSummary, Show, Stop, TraceSummary, remembered, run,
};
use weftwork::scene::Scene;
use weftwork::scene::load::MOST_STEPS;
use weftwork::scene::schema::scene_schema;

use self::cli::{Arguments, AuditChoice, CommChoice, Command, NetworkChoice, RunArguments};
use self::commands::{
    CheckArguments, Room, audit_run, check_scene, compare_runs, info, list_scenes, load,
    memory_limit, patch_count, report_runs, show_partition, write_linear_system,
};
use self::launcher::Launcher;

/// An error with the exit code that goes with it.
struct Failure {
    code: u8,
    message: String,
}

impl Failure {
    /// One that somebody has spoken of.
    #[cfg(feature = "mpi")]
    fn said(code: u8) -> Self {
        Self {
            code,
            message: String::new(),
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the hours allowed are counted from here"
)]
fn main() -> ExitCode {
    let began = Instant::now();
    let launcher = Launcher::detect();
    // One of several processes speaks.
    let speaks = launcher.as_ref().is_none_or(Launcher::is_first);
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            let code = u8::try_from(error.exit_code()).unwrap_or(1);
            if speaks {
                tell_usage(error);
            } else if code != 0 {
                let text = error.to_string();
                let message = text.strip_prefix("error: ").unwrap_or(&text).trim_end();
                let message = message.to_owned();
                drop(refuse(Failure { code, message }, launcher.as_ref()));
                let_another_speak();
            }
            return ExitCode::from(code);
        }
    };
    let speaks_json = arguments.command.speaks_json();
    let outcome = match arguments.command {
        Command::Run(arguments) => run_scene(&arguments, launcher.as_ref(), began),
        Command::Info { json } => {
            let text = if json { json_reports::info() } else { info() };
            if speaks { say(text) } else { Ok(()) }
        }
        _ if !speaks => Ok(()),
        Command::Check {
            scene,
            overrides,
            ranks,
            memory,
            json,
        } => check_scene(&CheckArguments {
            scene,
            overrides,
            ranks,
            memory,
            json,
        }),
        Command::New(arguments) => new_command::write_new(&arguments),
        Command::Report(arguments) => report_runs(&arguments),
        Command::View(arguments) => view::view(&arguments),
        Command::Partition(arguments) => show_partition(&arguments),
        Command::Prepare {
            scene,
            out,
            cut,
            overrides,
        } => prepare_command::prepare(&scene, out, cut, &overrides),
        Command::System {
            scene,
            state,
            out,
            overrides,
        } => write_linear_system(&scene, state.as_deref(), &out, &overrides),
        Command::Study(arguments) => study_command::study(&arguments),
        Command::Scenes { schema: true, .. } => say(scene_schema()),
        Command::Scenes { folder, json, .. } => list_scenes(folder.as_deref(), json),
        Command::Completions { shell, man } => completions::write(shell, man.as_deref()),
        Command::Certify(arguments) => certify_command::certify_scene(&arguments),
        Command::Audit { run, strict, json } => audit_run(&run, strict, json),
        Command::Export(arguments) => export_command::export_run(&arguments),
        Command::Refine(arguments) => refine_command::refine_run(&arguments),
        Command::Compare { a, b, tolerance } => compare_runs(&a, &b, tolerance),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if speaks && speaks_json && !failure.message.is_empty() {
                tell("", json_reports::error(&failure));
            } else if speaks && !failure.message.is_empty() {
                tell("error: ", &failure.message);
            } else if launcher.is_some() {
                let_another_speak();
            }
            ExitCode::from(failure.code)
        }
    }
}

/// Launchers end a job as soon as one of its processes has failed: the one that says why is to come
/// first.
#[expect(clippy::disallowed_methods, reason = "the end of a process")]
fn let_another_speak() {
    std::thread::sleep(Duration::from_millis(300));
}

/// Ranks of a run that nobody gave a number for, at most.
const DEFAULT_RANKS: usize = 16;

/// Options that are of no use, alone or together.
fn check_options(arguments: &RunArguments) -> Result<(), Failure> {
    let is_virtual = arguments.comm == CommChoice::Virtual;
    let message = if arguments.steps.is_some_and(|steps| steps > MOST_STEPS) {
        "--steps: a run has at most 10⁹ steps"
    } else if is_virtual && (arguments.threads > 1 || arguments.progress_thread) {
        "--comm virtual: a rank in virtual time has one worker and no thread for messages; leave out --threads and \
         --progress-thread, and take more ranks"
    } else if !is_virtual && arguments.network.is_some() {
        "--network applies only to ranks in virtual time; add --comm virtual, or leave it out"
    } else {
        return Ok(());
    };
    Err(Failure {
        code: 2,
        message: message.to_owned(),
    })
}

fn run_scene(
    arguments: &RunArguments,
    launcher: Option<&Launcher>,
    began: Instant,
) -> Result<(), Failure> {
    match (arguments.comm, launcher) {
        (CommChoice::Mpi, _) | (CommChoice::Auto, Some(_)) => {
            return run_under_mpi(arguments, launcher, began);
        }
        (_, Some(launcher)) if launcher.size != Some(1) => {
            let message = format!(
                "started by an MPI launcher ({} is set): with this --comm every process would run the whole scene; leave out --comm, or the launcher",
                launcher.variable
            );
            return Err(refuse(Failure { code: 2, message }, Some(launcher)));
        }
        _ => {}
    }
    let scene = prepare(arguments, Ranks::threads(arguments.ranks.unwrap_or(1)))?;
    let ranks = match (arguments.ranks.or(scene.balance.ranks), arguments.comm) {
        (Some(ranks), _) => ranks,
        (None, CommChoice::Solo) => 1,
        // Records are of one rank.
        _ if arguments.record.is_some() => 1,
        _ => {
            let cores = std::thread::available_parallelism();
            let ranks = cores.map_or(2, |cores| cores.get().clamp(2, DEFAULT_RANKS));
            ranks.min(patch_count(&scene)?)
        }
    };
    check_options(arguments)?;
    let driver = match arguments.comm {
        CommChoice::Solo => Driver::Solo,
        CommChoice::Auto if ranks == 1 => Driver::Solo,
        CommChoice::Auto | CommChoice::Threads => Driver::Threads,
        CommChoice::Mpi => Driver::Mpi,
        CommChoice::Virtual => {
            Driver::Virtual(match arguments.network.unwrap_or(NetworkChoice::Gigabit) {
                NetworkChoice::Myrinet2000 => Network::MYRINET_2000,
                NetworkChoice::Gigabit => Network::GIGABIT,
                NetworkChoice::HdrInfiniband => Network::HDR_INFINIBAND,
            })
        }
    };
    let limits = (memory_limit(arguments.memory)?, stopping(arguments, began)?);
    let options = run_options(arguments, &scene, ranks, driver, limits);
    announce(&scene, &options);
    let summary = run(&scene, &options).map_err(|error| Failure {
        code: error.exit_code(),
        message: error.to_string(),
    })?;
    conclude(&summary, &options)
}

#[cfg(feature = "mpi")]
fn run_under_mpi(
    arguments: &RunArguments,
    launcher: Option<&Launcher>,
    began: Instant,
) -> Result<(), Failure> {
    under_mpi::run_scene(arguments, launcher, began)
}

/// Reports a failure before MPI was started: under a launcher, others may wait there for this
/// process.
#[cfg(feature = "mpi")]
fn refuse(failure: Failure, launcher: Option<&Launcher>) -> Failure {
    under_mpi::refuse(failure, launcher)
}

/// Builds without MPI fail under a launcher on all ranks, and the first says so.
#[cfg(not(feature = "mpi"))]
fn refuse(failure: Failure, _launcher: Option<&Launcher>) -> Failure {
    failure
}

/// A build without MPI must not start as this many runs of one rank each.
#[cfg(not(feature = "mpi"))]
fn run_under_mpi(
    _arguments: &RunArguments,
    launcher: Option<&Launcher>,
    _began: Instant,
) -> Result<(), Failure> {
    let why = launcher.map_or_else(
        || "--comm mpi was asked for".to_owned(),
        |launcher| format!("started by an MPI launcher ({} is set)", launcher.variable),
    );
    let message = format!(
        "{why}, but this weft was built without MPI. Build it with `cargo build --release --features mpi` on \
         this machine (needs mpicc and libclang), or start it without the launcher and use --ranks"
    );
    Err(Failure { code: 2, message })
}

/// The scene, with what the command line changes in it. It must fit a process with these ranks.
fn prepare(arguments: &RunArguments, ranks: Ranks) -> Result<Scene, Failure> {
    let mut overrides = arguments.overrides.clone();
    for (key, name) in [
        ("balance.policy", &arguments.policy),
        ("balance.split", &arguments.split),
        ("balance.victims", &arguments.victims),
    ] {
        overrides.extend(
            name.iter()
                .map(|name| (key.to_owned(), format!("\"{name}\""))),
        );
    }
    let room = Room {
        ranks,
        limit: memory_limit(arguments.memory)?,
    };
    let mut scene = load(&arguments.scene, &overrides, room)?;
    // Changes that the run has had before, unless the keys are changed again.
    let out = out_of(arguments, &scene);
    let mut all = remembered(&scene, &out, resume_of(arguments).as_ref());
    if !all.is_empty() {
        all.extend(overrides);
        scene = load(&arguments.scene, &all, room)?;
    }
    if let Some(end) = arguments.until {
        scene.time.end = ending(end, scene.time.step)?;
    }
    if arguments.no_steal {
        scene.balance.policy.steal = false;
    }
    if let Some(seed) = arguments.seed {
        scene.balance.seed = seed;
    }
    Ok(scene)
}

/// The time in s that a run is to end at, as the option says it, with steps of this many s.
fn ending(end: f64, step: f64) -> Result<f64, Failure> {
    let message = if !(end.is_finite() && end > 0.0) {
        format!("--until {end}: wants a time in seconds, above zero")
    } else if end < step {
        format!("--until {end}: that is shorter than a step, {step} s")
    } else if end / step > MOST_STEPS as f64 {
        format!(
            "--until {end}: in steps of {step} s that is more than the 10⁹ steps that a run may have"
        )
    } else {
        return Ok(end);
    };
    Err(Failure { code: 2, message })
}

/// The directory of the outputs.
fn out_of(arguments: &RunArguments, scene: &Scene) -> PathBuf {
    let out = arguments.out.clone();
    out.unwrap_or_else(|| Path::new("runs").join(&scene.name))
}

/// The state to go on from, if the run is to.
fn resume_of(arguments: &RunArguments) -> Option<Resume> {
    (arguments.resume.clone()).map(|checkpoint| match checkpoint {
        None => Resume::Newest,
        Some(word) if word == Path::new("auto") => Resume::Auto,
        Some(checkpoint) => Resume::From(checkpoint),
    })
}

fn run_options(
    arguments: &RunArguments,
    scene: &Scene,
    ranks: usize,
    driver: Driver,
    (memory, stop): (Limit, Stop),
) -> RunOptions {
    RunOptions {
        ranks,
        threads: usize::from(arguments.threads),
        progress_thread: arguments.progress_thread,
        driver,
        memory,
        steps: arguments.steps,
        out: out_of(arguments, scene),
        resume: resume_of(arguments),
        overwrite: arguments.overwrite,
        stop,
        trace: arguments.trace,
        record: arguments.record,
        audit: arguments.audit.map(|choice| match choice {
            AuditChoice::Count => Audit::Count,
            AuditChoice::Strict => Audit::Strict,
        }),
        progress: if arguments.quiet {
            Show::Nothing
        } else if arguments.json {
            Show::Json
        } else if io::stderr().is_terminal() {
            Show::Bar
        } else {
            Show::Lines
        },
        command: command_line(),
        hosts: Vec::new(),
        mpi: None,
        begun: Begun::default(),
    }
}

/// The reasons to end a run early: time, and signals from now on.
fn stopping(arguments: &RunArguments, began: Instant) -> Result<Stop, Failure> {
    let deadline = arguments.max_hours.and_then(|time| began.checked_add(time));
    let stop = Stop::before(deadline);
    signals::ask(&stop).map_err(|error| Failure {
        code: 101,
        message: format!("cannot listen to signals: {error}"),
    })?;
    Ok(stop)
}

/// Says what came of a run.
fn conclude(summary: &RunSummary, options: &RunOptions) -> Result<(), Failure> {
    if options.progress == Show::Json {
        result_events(summary).iter().for_each(Event::print);
        return judge(summary, options);
    }
    for warning in &summary.warnings {
        tell("warning: ", warning);
    }
    for note in &summary.exported.notes {
        tell("note: ", note);
    }
    if let Some(cause) = summary.stopped {
        let step = summary.steps;
        let how = match (&options.resume, options.overwrite) {
            (Some(Resume::Newest | Resume::Auto), _) => "the same command",
            (Some(Resume::From(_)), _) => "the same command with a plain --resume",
            (None, true) => "the same command with --resume in place of --overwrite",
            (None, false) => "the same command with --resume",
        };
        tell(
            "stopped by ",
            format_args!("{cause} after step {step}; {how} goes on from there"),
        );
    }
    let report = if options.progress == Show::Nothing {
        String::new()
    } else {
        report(summary, options)
    };
    say(format_args!("{report}state hash {}\n", summary.hash))?;
    judge(summary, options)
}

/// The result of a run, for scripts.
fn result_events(summary: &RunSummary) -> Vec<Event> {
    let warnings = summary.warnings.iter().cloned();
    let warnings = warnings.map(|message| Event::Warning { message });
    let notes = summary.exported.notes.iter().cloned();
    let notes = notes.map(|message| Event::Note { message });
    let mut events: Vec<Event> = warnings.chain(notes).collect();
    events.push(Event::Summary {
        hash: summary.hash.to_string(),
        steps: summary.steps,
        vertices: summary.vertices,
        loop_s: summary.loop_time.as_secs_f64(),
        frames: summary.frames,
        exports: summary.exported.files.clone(),
        resumed_from: summary.resumed_from,
        stopped: summary.stopped.map(|cause| cause.to_string()),
        max_strain: summary.strain,
        deepest_m: summary.deepest.map(|depth| depth.max(0.0)),
        crossings: summary.crossings,
        pierced: summary.pierced,
    });
    events
}

/// Whether a run that came to its end is a failure all the same.
fn judge(summary: &RunSummary, options: &RunOptions) -> Result<(), Failure> {
    let failed = |code: u8| move |message: String| Failure { code, message };
    let crosses = summary.audit_failure(options).map(failed(4));
    let unwritten = summary.unwritten.clone().map(failed(5));
    if let (Some(_), Some(unwritten)) = (&crosses, &unwritten) {
        tell("error: ", &unwritten.message);
    }
    crosses.or(unwritten).map_or(Ok(()), Err)
}

/// Writes a line to standard error: what kind of line it is, and its text, in which nothing acts on
/// a terminal.
fn tell(kind: &str, text: impl fmt::Display) {
    // There is nobody else to tell.
    drop(writeln!(io::stderr(), "{kind}{}", Printable(text)));
}

/// Says what is wrong with the command line, or what was asked of it: help, or the version.
fn tell_usage(mut error: clap::Error) {
    if !error.use_stderr() {
        drop(error.print());
        return;
    }
    // Words of the command line stand in it as they are.
    let texts = error.context().filter_map(|(kind, value)| match value {
        ContextValue::String(text) => Some((kind, text.shown().to_string())),
        _ => None,
    });
    for (kind, text) in texts.collect::<Vec<_>>() {
        error.insert(kind, ContextValue::String(text));
    }
    let text = error.render().to_string();
    tell("", text.trim_end());
}

/// The words of the command line, program first, for the record of a run. Bytes that are no UTF-8
/// are lost: JSON is text.
fn command_line() -> Vec<String> {
    let words = std::env::args_os();
    words
        .map(|word| word.to_string_lossy().into_owned())
        .collect()
}

/// Writes to standard output what acts on no terminal. A reader that has gone, as `head` goes, is
/// not an error.
fn say(text: impl fmt::Display) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match write!(out, "{}", Printable(text)).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure {
            code: 5,
            message: format!("cannot write to standard output: {error}"),
        }),
        _ => Ok(()),
    }
}

/// Says that a run begins. If nobody reads, the run is still worth its files; the end tells.
fn announce(scene: &Scene, options: &RunOptions) {
    match options.progress {
        Show::Nothing => {}
        Show::Json => Event::Start {
            schema: EVENTS_SCHEMA,
            version: env!("CARGO_PKG_VERSION"),
            scene: scene.name.clone(),
            out: options.out.shown().to_string(),
            steps: options.steps.unwrap_or_else(|| scene.time.steps()),
            step_s: scene.time.step,
            ranks: options.ranks,
            threads: options.threads,
            comm: options.driver.name(),
        }
        .print(),
        Show::Bar | Show::Lines => drop(say(announcement(scene, options))),
    }
}

fn announcement(scene: &Scene, options: &RunOptions) -> String {
    format!(
        "weft {version}   {ranks} ranks x {threads} workers{progress} ({driver})\n\
         scene {name}: {title}\n\
         step {step} s, end {end} s, stealing {steal}, output in {out}\n",
        version = env!("CARGO_PKG_VERSION"),
        ranks = options.ranks,
        threads = options.threads,
        progress = if options.progress_thread {
            " and a thread for messages"
        } else {
            ""
        },
        driver = options.driver.name(),
        name = scene.name,
        title = scene.title,
        step = scene.time.step,
        end = scene.time.end,
        steal = if scene.balance.policy.steal {
            "on"
        } else {
            "off"
        },
        out = options.out.shown(),
    )
}

fn report(summary: &RunSummary, options: &RunOptions) -> String {
    let depth = summary.deepest.map_or_else(
        || "no bodies".to_owned(),
        |d| format!("deepest vertex {:.2} mm inside a body", 1000.0 * d.max(0.0)),
    );
    format!(
        "\n{phases}\n{balance}\n\
         State: {depth} in any frame, strain at most {strain:.2} %, crossing pairs in the last state: \
         {crossings} of cloth and cloth, {pierced} of cloth and bodies\n{certified}{audit}\
         {memory}Wrote {out}: run.json history.csv{frames}{exports}\n\
         {steps} steps of {vertices} vertices in {seconds:.1} s{resumed}\n{trace}",
        phases = summary.phases,
        balance = summary.balance,
        strain = 100.0 * summary.strain,
        crossings = summary.crossings,
        pierced = summary.pierced,
        out = options.out.shown(),
        frames = match summary.frames {
            0 => String::new(),
            frames => format!(" and {frames} frames"),
        },
        exports = match summary.exported.files.len() {
            0 => String::new(),
            files => format!(", and {files} files of other formats in exports"),
        },
        steps = summary.steps,
        vertices = summary.vertices,
        seconds = summary.loop_time.as_secs_f64(),
        resumed = (summary.resumed_from)
            .map(|step| format!(", the first {step} in an earlier run"))
            .unwrap_or_default(),
        certified = (summary.certified.lines().iter())
            .map(|line| format!("{line}\n"))
            .collect::<String>(),
        memory = (summary.peak_memory()).map_or_else(String::new, |bytes| {
            format!(
                "Memory: at most {:.1} MB in a process\n",
                bytes as f64 / 1e6
            )
        }),
        audit = (summary.audit.as_ref()).map_or_else(String::new, |audit| format!("{audit}\n")),
        trace = (summary.trace.as_ref())
            .map(|trace| traced(trace, summary.unwritten.is_none()))
            .unwrap_or_default(),
    )
}

/// A sentence on a trace, and on whether it can be opened.
fn traced(trace: &TraceSummary, written: bool) -> String {
    let Some((first, last)) = trace.steps else {
        return String::new();
    };
    format!(
        "\nTrace of steps {first} to {last}: {events} events, clocks agree within {error:.1} us; {open}\n{story}\n",
        open = if written {
            "open trace.json at ui.perfetto.dev"
        } else {
            "not all of it could be written"
        },
        events = trace.events,
        error = trace.clock_error.as_secs_f64() * 1e6,
        story = trace
            .story
            .as_deref()
            .unwrap_or("No collision phase was traced whole."),
    )
}
