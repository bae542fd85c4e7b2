//! The `weft` command: reads the command line, runs, says how it went.

mod launcher;
mod signals;
#[cfg(feature = "mpi")]
mod under_mpi;

use std::fmt::{self, Write as _};
use std::io::{self, IsTerminal, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::builder::{PossibleValuesParser, RangedU64ValueParser};
use clap::{Parser, Subcommand, ValueEnum};
use weft_partition::PartitionError;
use weft_runtime::comm::solo::Solo;
use weft_runtime::comm::virtual_time::Network;
use weft_runtime::policy::{SPLITS, VICTIMS};
use weft_runtime::{POLICIES, ScopeOptions};
use weftwork::mesh::{build_body, build_cloth, check_spacing};
use weftwork::output::write_system;
use weftwork::report::{PartitionComparison, compare, partition_picture};
use weftwork::run::{
    Driver, FEATURES, Resume, RunError, RunOptions, RunSummary, Show, Stop, TraceSteps,
    TraceSummary, read_state, run,
};
use weftwork::scene::Scene;
use weftwork::step::{Simulation, State, StepError, World};

use self::launcher::Launcher;

/// Cloth on distributed memory: collision tests that ranks steal from each other.
#[derive(Parser)]
#[command(
    version,
    arg_required_else_help = true,
    after_help = "\
Examples:
  weft run scenes/quick.toml
  weft run scenes/drape-floor.toml --ranks 4 --out runs/floor
  weft run scenes/drape-free.toml --set cloth.material.bending=1e-3 --no-steal
  mpirun -n 4 weft run scenes/drape-floor.toml --threads 2     (built with --features mpi)
  weft run scenes/drape-floor.toml --out runs/floor --resume    (goes on where that run stopped)
  weft check my-scene.toml
  weft compare runs/floor runs/floor-on-16-ranks

Exit codes: 0 done, 2 wrong usage, 3 scene or mesh invalid, 4 simulation failed, 5 files,
6 compare found a difference, 101 internal."
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Simulates a scene.
    Run(Box<RunArguments>),
    /// Reads and checks a scene and its meshes, and prints all options in force.
    Check {
        /// The scene file.
        scene: PathBuf,
        /// Overrides a key of the scene, as in `time.step=2ms`.
        #[arg(long = "set", value_name = "KEY=VALUE", value_parser = parse_override)]
        overrides: Vec<(String, String)>,
    },
    /// Says whether two runs are the same, and where they part if not.
    Compare {
        /// Directory of a run.
        a: PathBuf,
        /// Directory of another.
        b: PathBuf,
        /// Takes the runs as the same if no position in their frames differs by more, in m [default: to the bit].
        #[arg(long, value_name = "METRES", value_parser = parse_tolerance)]
        tolerance: Option<f64>,
    },
    /// Shows how a scene is cut into parts for ranks, and how else it could be.
    Partition(PartitionArguments),
    /// Writes the linear system of a scene's next step, for other solvers: A.mtx and b.mtx (MatrixMarket).
    System {
        /// The scene file.
        scene: PathBuf,
        /// The step after this state instead of the first one.
        #[arg(long, value_name = "CHECKPOINT")]
        state: Option<PathBuf>,
        /// The directory to write into.
        #[arg(long, default_value = ".")]
        out: PathBuf,
        /// Overrides a key of the scene, as in `time.step=2ms`.
        #[arg(long = "set", value_name = "KEY=VALUE", value_parser = parse_override)]
        overrides: Vec<(String, String)>,
    },
    /// Lists the scenes in a folder.
    Scenes {
        /// The folder.
        #[arg(default_value = "scenes")]
        folder: PathBuf,
    },
    /// Says which version this is and what it was built with.
    Info,
}

#[derive(clap::Args)]
struct PartitionArguments {
    /// The scene file.
    scene: PathBuf,
    /// Number of parts, one for each rank.
    #[arg(long, default_value_t = 12, value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    parts: usize,
    /// Also cuts by the coordinates of this state of the scene, and draws it.
    #[arg(long, value_name = "CHECKPOINT")]
    state: Option<PathBuf>,
    /// Draws the parts.
    #[arg(
        long,
        value_name = "FILE",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "partition.png"
    )]
    picture: Option<PathBuf>,
    /// Overrides a key of the scene, as in `partition.patches=64`.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = parse_override)]
    overrides: Vec<(String, String)>,
}

#[derive(clap::Args)]
struct RunArguments {
    /// The scene file.
    scene: PathBuf,
    /// Number of ranks [default: the scene's balance.ranks, else one per core, at least 2].
    #[arg(long, value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    ranks: Option<usize>,
    /// Workers per rank.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: u16,
    /// Gives each rank one more thread, for messages alone: a task that runs long delays no other rank.
    #[arg(long)]
    progress_thread: bool,
    /// How ranks talk to each other.
    #[arg(long, value_enum, default_value_t = CommChoice::Auto)]
    comm: CommChoice,
    /// The network between ranks in virtual time.
    #[arg(long, value_enum, default_value = "gigabit")]
    network: NetworkChoice,
    /// Takes so many steps, counted from time 0, instead of running to the scene's end.
    #[arg(long, conflicts_with = "until")]
    steps: Option<u64>,
    /// Runs to this time in seconds instead of the scene's end.
    #[arg(long)]
    until: Option<f64>,
    /// Directory for the outputs [default: runs/NAME].
    #[arg(long)]
    out: Option<PathBuf>,
    /// Goes on from the newest checkpoint in the output directory, or from this one.
    #[arg(long, value_name = "CHECKPOINT", num_args = 0..=1, require_equals = true)]
    resume: Option<Option<PathBuf>>,
    /// Stops before so many hours are over, with a checkpoint; as SIGTERM, SIGUSR1 and Ctrl-C do at once.
    #[arg(long, value_name = "HOURS", value_parser = parse_hours)]
    max_hours: Option<Duration>,
    /// Writes trace.json for ui.perfetto.dev, of all steps or of steps FROM to TO, both included.
    #[arg(long, value_name = "FROM..TO", num_args = 0..=1, require_equals = true, default_missing_value = "1..")]
    trace: Option<TraceSteps>,
    /// Overrides a key of the scene, as in `time.step=2ms`.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = parse_override)]
    overrides: Vec<(String, String)>,
    /// Idle ranks ask nobody for work.
    #[arg(long)]
    no_steal: bool,
    /// How ranks share the collision tests [default: the scene's].
    #[arg(long, value_parser = names(POLICIES.iter().map(|(name, _, _)| *name)))]
    policy: Option<String>,
    /// What a running task gives away when it is split.
    #[arg(long, value_parser = names(SPLITS.iter().map(|split| split.name())))]
    split: Option<String>,
    /// Whom an idle rank asks for tasks.
    #[arg(long, value_parser = names(VICTIMS.iter().map(|rule| rule.name())))]
    victims: Option<String>,
    /// Seed of the choice of victims; does not change the result.
    #[arg(long)]
    seed: Option<u64>,
    /// What ranks that are MPI processes do while they wait [default: sleep, after a while].
    #[cfg(feature = "mpi")]
    #[arg(long, value_parser = names(weft_mpi::Idle::NAMED.iter().map(|(name, _)| *name)))]
    idle: Option<String>,
    /// Prints the result only.
    #[arg(long, short)]
    quiet: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum CommChoice {
    /// MPI under mpirun or srun, else threads, or solo for one rank.
    Auto,
    /// One rank.
    Solo,
    /// Every rank a thread of this process.
    Threads,
    /// Ranks in virtual time, in one thread: as many as there are patches.
    Virtual,
    /// Every rank an MPI process, started by mpirun or srun.
    Mpi,
}

#[derive(Clone, Copy, ValueEnum)]
enum NetworkChoice {
    /// 7 us, 250 MB/s: a cluster of 2006.
    #[value(name = "myrinet-2000")]
    Myrinet2000,
    /// 35 us, 125 MB/s.
    Gigabit,
    /// 1 us, 25 GB/s.
    HdrInfiniband,
}

/// The names of a table, as values that an option takes.
fn names(table: impl Iterator<Item = &'static str>) -> PossibleValuesParser {
    PossibleValuesParser::new(table)
}

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
    // Of several processes, one speaks.
    let speaks = launcher.as_ref().is_none_or(Launcher::is_first);
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            if speaks {
                drop(error.print());
            } else {
                let_another_speak();
            }
            return u8::try_from(error.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from);
        }
    };
    let outcome = match arguments.command {
        Command::Run(arguments) => run_scene(&arguments, launcher.as_ref(), began),
        Command::Info => {
            let text = info();
            if speaks { say(text) } else { Ok(()) }
        }
        _ if !speaks => Ok(()),
        Command::Check { scene, overrides } => check_scene(&scene, &overrides),
        Command::Partition(arguments) => show_partition(&arguments),
        Command::System {
            scene,
            state,
            out,
            overrides,
        } => write_linear_system(&scene, state.as_deref(), &out, &overrides),
        Command::Scenes { folder } => list_scenes(&folder),
        Command::Compare { a, b, tolerance } => compare_runs(&a, &b, tolerance),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if speaks && !failure.message.is_empty() {
                // There is nobody else to tell.
                drop(writeln!(io::stderr(), "error: {}", failure.message));
            } else if launcher.is_some() {
                let_another_speak();
            }
            ExitCode::from(failure.code)
        }
    }
}

/// Launchers end a job as soon as one of its processes has failed: the one that says why is to come first.
#[expect(clippy::disallowed_methods, reason = "the end of a process")]
fn let_another_speak() {
    std::thread::sleep(Duration::from_millis(300));
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
                "started by an MPI launcher ({} is set), where this --comm would make every process run the \
                 whole scene; leave out --comm, or the launcher",
                launcher.variable
            );
            return Err(Failure { code: 2, message });
        }
        _ => {}
    }
    let scene = prepare(arguments)?;
    let ranks = arguments
        .ranks
        .or(scene.balance.ranks)
        .unwrap_or_else(|| match arguments.comm {
            CommChoice::Solo => 1,
            _ => std::thread::available_parallelism().map_or(2, |n| n.get().clamp(2, 16)),
        });
    let driver = match arguments.comm {
        CommChoice::Solo => Driver::Solo,
        CommChoice::Auto if ranks == 1 => Driver::Solo,
        CommChoice::Auto | CommChoice::Threads => Driver::Threads,
        CommChoice::Mpi => Driver::Mpi,
        CommChoice::Virtual => Driver::Virtual(match arguments.network {
            NetworkChoice::Myrinet2000 => Network::MYRINET_2000,
            NetworkChoice::Gigabit => Network::GIGABIT,
            NetworkChoice::HdrInfiniband => Network::HDR_INFINIBAND,
        }),
    };
    let stop = stopping(arguments, began)?;
    let options = run_options(arguments, &scene, ranks, driver, stop);
    if !arguments.quiet {
        // If nobody reads, the run is still worth its files; the end tells.
        drop(say(announcement(&scene, &options)));
    }
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

/// A build without MPI must not start as so many runs of one rank each.
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

/// The scene, with what the command line changes in it.
fn prepare(arguments: &RunArguments) -> Result<Scene, Failure> {
    let mut overrides = arguments.overrides.clone();
    if let Some(end) = arguments.until {
        if !end.is_finite() {
            let message = format!("--until {end}: wants a time in seconds");
            return Err(Failure { code: 2, message });
        }
        // Checked as the scene's own end is.
        overrides.push(("time.end".to_owned(), format!("{end:?}")));
    }
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
    let mut scene = load(&arguments.scene, &overrides)?;
    if arguments.no_steal {
        scene.balance.policy.steal = false;
    }
    if let Some(seed) = arguments.seed {
        scene.balance.seed = seed;
    }
    Ok(scene)
}

fn run_options(
    arguments: &RunArguments,
    scene: &Scene,
    ranks: usize,
    driver: Driver,
    stop: Stop,
) -> RunOptions {
    RunOptions {
        ranks,
        threads: usize::from(arguments.threads),
        progress_thread: arguments.progress_thread,
        driver,
        steps: arguments.steps,
        out: arguments
            .out
            .clone()
            .unwrap_or_else(|| Path::new("runs").join(&scene.name)),
        resume: (arguments.resume.clone())
            .map(|checkpoint| checkpoint.map_or(Resume::Newest, Resume::From)),
        stop,
        trace: arguments.trace,
        progress: if arguments.quiet {
            Show::Nothing
        } else if io::stderr().is_terminal() {
            Show::Bar
        } else {
            Show::Lines
        },
        command: std::env::args().collect(),
        hosts: Vec::new(),
        mpi: None,
    }
}

/// What ends a run early: time, and signals from now on.
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
    for warning in &summary.warnings {
        // There is nobody else to tell.
        drop(writeln!(io::stderr(), "warning: {warning}"));
    }
    if let Some(cause) = summary.stopped {
        let step = summary.steps;
        drop(writeln!(
            io::stderr(),
            "stopped by {cause} after step {step}; the same command with --resume goes on from there"
        ));
    }
    let report = if options.progress == Show::Nothing {
        String::new()
    } else {
        report(summary, options)
    };
    say(format_args!("{report}state hash {}\n", summary.hash))
}

/// Writes to standard output. A reader that has gone, as `head` goes, is not an error.
fn say(text: impl fmt::Display) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match write!(out, "{text}").and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure {
            code: 5,
            message: format!("cannot write to standard output: {error}"),
        }),
        _ => Ok(()),
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
        out = options.out.display(),
    )
}

fn report(summary: &RunSummary, options: &RunOptions) -> String {
    let depth = summary.deepest.map_or_else(
        || "no bodies".to_owned(),
        |d| format!("deepest vertex {:.2} mm inside a body", 1000.0 * d.max(0.0)),
    );
    format!(
        "\n{phases}\n{balance}\n\
         State: {depth} in any frame, strain at most {strain:.2} %, {crossings} crossing pairs in the \
         last state\n\
         Wrote {out}: run.json history.csv and {frames} frames\n\
         {steps} steps of {vertices} vertices in {seconds:.1} s{resumed}\n{trace}",
        phases = summary.phases,
        balance = summary.balance,
        strain = 100.0 * summary.strain,
        crossings = summary.crossings,
        out = options.out.display(),
        frames = summary.frames,
        steps = summary.steps,
        vertices = summary.vertices,
        seconds = summary.loop_time.as_secs_f64(),
        resumed = (summary.resumed_from)
            .map(|step| format!(", the first {step} in an earlier run"))
            .unwrap_or_default(),
        trace = summary.trace.as_ref().map(traced).unwrap_or_default(),
    )
}

/// What a trace tells.
fn traced(trace: &TraceSummary) -> String {
    let Some((first, last)) = trace.steps else {
        return String::new();
    };
    format!(
        "\nTrace of steps {first} to {last}: {events} events, clocks agree within {error:.1} us; open \
         trace.json at ui.perfetto.dev\n{story}\n",
        events = trace.events,
        error = trace.clock_error.as_secs_f64() * 1e6,
        story = trace
            .story
            .as_deref()
            .unwrap_or("No collision phase was traced whole."),
    )
}

fn check_scene(path: &Path, overrides: &[(String, String)]) -> Result<(), Failure> {
    let scene = load(path, overrides)?;
    build(&scene)?;
    say(scene.echo())
}

fn show_partition(arguments: &PartitionArguments) -> Result<(), Failure> {
    let world = build(&load(&arguments.scene, &arguments.overrides)?)?;
    let state = state_of(&world, arguments.state.as_deref())?;
    let state = state.map(|state| state.positions);
    let uncut = |error: PartitionError| Failure {
        code: 3,
        message: error.to_string(),
    };
    let comparison = PartitionComparison::new(&world, arguments.parts, state.as_deref());
    let text = comparison.map_err(uncut)?.to_string();
    if let Some(file) = &arguments.picture {
        let positions = state.unwrap_or_else(|| world.original_order(world.model().rest()));
        let size = world.scene().output.picture_size;
        let picture = partition_picture(&world, arguments.parts, &positions, size);
        picture
            .map_err(uncut)?
            .write_to(file)
            .map_err(|error| Failure {
                code: 5,
                message: error.to_string(),
            })?;
    }
    say(text)
}

fn write_linear_system(
    scene: &Path,
    state: Option<&Path>,
    out: &Path,
    overrides: &[(String, String)],
) -> Result<(), Failure> {
    let world = build(&load(scene, overrides)?)?;
    let state = state_of(&world, state)?;
    let failed = |error: StepError| {
        let error = RunError::from(error);
        Failure {
            code: error.exit_code(),
            message: error.to_string(),
        }
    };
    let mut simulation =
        Simulation::new(&world, &Solo::new(), &ScopeOptions::default()).map_err(failed)?;
    if let Some(state) = &state {
        simulation.restore(state).map_err(failed)?;
    }
    let system = simulation.free_system().map_err(failed)?;
    let plain = system.prefiltered(world.tree().new_to_old());
    let [matrix, rhs] = write_system(out, &plain).map_err(|error| Failure {
        code: 5,
        message: error.to_string(),
    })?;
    say(format_args!(
        "Wrote {} ({} rows, {} entries of the lower triangle) and {}\n",
        matrix.display(),
        plain.rhs.len(),
        plain.entries.len(),
        rhs.display(),
    ))
}

/// The world of a scene.
fn build(scene: &Scene) -> Result<World, Failure> {
    World::build(scene).map_err(|error| Failure {
        code: 3,
        message: error.to_string(),
    })
}

/// The state in a checkpoint, if one is named.
fn state_of(world: &World, checkpoint: Option<&Path>) -> Result<Option<State>, Failure> {
    let Some(path) = checkpoint else {
        return Ok(None);
    };
    match read_state(path, world) {
        Ok(checkpoint) => Ok(Some(checkpoint.state)),
        Err(error) => Err(Failure {
            code: error.exit_code(),
            message: error.to_string(),
        }),
    }
}

/// Loads a scene and checks what its files hold.
fn load(path: &Path, overrides: &[(String, String)]) -> Result<Scene, Failure> {
    let invalid = |message: String| Failure { code: 3, message };
    let scene = Scene::load(path, overrides).map_err(|e| invalid(e.to_string()))?;
    for cloth in &scene.cloths {
        let mesh = build_cloth(cloth).map_err(|e| invalid(e.to_string()))?;
        if scene.contact.self_collision {
            check_spacing(&mesh, scene.contact.thickness)
                .map_err(|e| invalid(format!("cloth `{}`: {e}", cloth.name)))?;
        }
    }
    for body in &scene.bodies {
        build_body(body).map_err(|e| invalid(e.to_string()))?;
    }
    Ok(scene)
}

fn compare_runs(a: &Path, b: &Path, tolerance: Option<f64>) -> Result<(), Failure> {
    let comparison = compare(a, b).map_err(|error| Failure {
        code: 5,
        message: error.to_string(),
    })?;
    say(&comparison)?;
    let (same, verdict) = match (tolerance, comparison.farthest) {
        (None, _) => (comparison.differs.is_empty(), String::new()),
        (Some(most), Some(farthest)) => (
            farthest <= most,
            format!(": positions by up to {farthest:e} m, more than {most:e}"),
        ),
        (Some(_), None) => (
            false,
            ": no frame that both have, to hold against --tolerance".to_owned(),
        ),
    };
    if same {
        return Ok(());
    }
    Err(Failure {
        code: 6,
        message: format!("{} and {} differ{verdict}", a.display(), b.display()),
    })
}

fn list_scenes(folder: &Path) -> Result<(), Failure> {
    let failure = |e: io::Error| Failure {
        code: 5,
        message: format!(
            "cannot list {}: {e}; name a folder with scenes",
            folder.display()
        ),
    };
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failure)? {
        let path = entry.map_err(failure)?.path();
        if path.extension().is_some_and(|e| e == "toml") {
            files.push(path);
        }
    }
    files.sort();
    let mut list = String::new();
    for path in files {
        let scene = Scene::load(&path, &[]);
        let title = scene.map_or_else(|_| "(not valid; see `weft check`)".to_owned(), |s| s.title);
        writeln!(list, "{:<28} {title}", path.display()).expect("strings take all that is written");
    }
    say(list)
}

fn info() -> String {
    let list = |names: &[&str]| match names {
        [] => "none".to_owned(),
        names => names.join(", "),
    };
    format!(
        "weft {version}\ncommit   {commit}\nprofile  {profile}\nfeatures {features}\n\
         ranks    solo, threads, virtual{and_mpi}\nmpi      {mpi}\n",
        version = env!("CARGO_PKG_VERSION"),
        commit = option_env!("WEFT_COMMIT").unwrap_or("not recorded"),
        profile = if cfg!(debug_assertions) {
            "debug"
        } else {
            "release"
        },
        features = list(FEATURES),
        and_mpi = if cfg!(feature = "mpi") { ", mpi" } else { "" },
        mpi = mpi_info(),
    )
}

#[cfg(feature = "mpi")]
fn mpi_info() -> String {
    under_mpi::info()
}

#[cfg(not(feature = "mpi"))]
fn mpi_info() -> String {
    "not built in; for it, build with `--features mpi`".to_owned()
}

fn parse_hours(text: &str) -> Result<Duration, String> {
    let hours: Option<f64> = text.parse().ok().filter(|&hours| hours > 0.0);
    let time = hours.and_then(|hours| Duration::try_from_secs_f64(3600.0 * hours).ok());
    time.ok_or_else(|| "wants a number of hours above zero, such as 0.5".to_owned())
}

fn parse_tolerance(text: &str) -> Result<f64, String> {
    let tolerance = text.parse().ok();
    tolerance
        .filter(|t: &f64| t.is_finite() && *t >= 0.0)
        .ok_or_else(|| "wants a distance in metres, as in 1e-9".to_owned())
}

fn parse_override(text: &str) -> Result<(String, String), String> {
    text.split_once('=')
        .filter(|(key, _)| !key.trim().is_empty())
        .map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned()))
        .ok_or_else(|| "wants KEY=VALUE, as in time.step=2ms".to_owned())
}
