//! The command line: what may be said on it, and what each word means.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::{Parser, Subcommand, ValueEnum};
use weft_runtime::POLICIES;
use weft_runtime::policy::{SPLITS, VICTIMS};
use weftwork::memory::Limit;
use weftwork::refine::MOST_LEVELS;
use weftwork::run::TraceSteps;
use weftwork::scene::{Format, Units, Up, parse_time};

/// Cloth on distributed memory: collision tests that ranks steal from each other.
#[derive(Parser)]
#[command(
    version,
    bin_name = "weft",
    arg_required_else_help = true,
    after_help = "\
Examples:
  weft run quick
  weft new my-scene.toml --cloth coat.obj --scale 0.01
  weft run scenes/drape-floor.toml --ranks 4 --out runs/floor
  weft run scenes/drape-free.toml --set cloth.material.bending=1e-3 --no-steal
  mpirun -n 4 weft run scenes/drape-floor.toml --threads 2     (built with --features mpi)
  weft run scenes/drape-floor.toml --out runs/floor --resume    (goes on where that run stopped)
  weft run scenes/drape-floor.toml --out runs/floor --overwrite (replaces that run)
  weft check my-scene.toml
  weft compare runs/floor runs/floor-on-16-ranks
  weft export runs/floor --format usd,pc2 --out film
  weft refine runs/floor --levels 2 --out runs/floor-fine
  weft audit runs/floor
  weft certify scenes/certified/clash.toml
  weft study scenes/drape-floor.toml --ranks 1..64 --set partition.patches=64 --out runs/floor-study
  weft view runs/floor
  weft report runs/floor runs/floor-on-16-ranks --out both.html

Exit codes: 0 done, 2 wrong usage, 3 scene or mesh invalid, 4 simulation failed, 5 files,
6 compare found a difference, 7 certify refused a run, 101 internal, 134 out of memory or stack, 128 + n signal n ended it, or stopped a study."
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Simulates a scene.
    Run(Box<RunArguments>),
    /// Reads and checks a scene and its meshes, and prints all options in force.
    Check {
        /// The scene file, or the name of a scene that is part of the program (`weft scenes`).
        scene: PathBuf,
        /// Overrides a key of the scene, as in `time.step=2ms`.
        #[arg(long = "set", value_name = "KEY=VALUE", value_parser = parse_override)]
        overrides: Vec<(String, String)>,
        /// Tells the memory that each rank of a run on this many ranks will hold.
        #[arg(long, value_parser = parse_count)]
        ranks: Option<usize>,
        /// The memory that a process may have, such as 500MB, or `any`: a scene that needs more is
        /// refused [default: WEFT_MEMORY, else what the system has left].
        #[arg(long, value_name = "SIZE")]
        memory: Option<Limit>,
        /// Prints the outcome as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Writes a scene to start from, which runs as it is. An existing file is left alone.
    New(NewArguments),
    /// Says whether two runs are the same, and where they part if not.
    Compare {
        /// Directory of a run.
        a: PathBuf,
        /// Directory of another.
        b: PathBuf,
        /// Takes the runs as the same if no position in their frames differs by more, in m
        /// [default: to the bit].
        #[arg(long, value_name = "METRES", value_parser = parse_tolerance)]
        tolerance: Option<f64>,
    },
    /// Writes the frames of a run in formats of other programs, such as USD and point caches.
    Export(ExportArguments),
    /// Makes finer and smoother frames of a run's, for rendering, in which cloth crosses nothing
    /// that it did not cross before.
    Refine(RefineArguments),
    /// Looks in the frames of a run for cloth that crosses itself or bodies, and writes what does
    /// beside them.
    Audit {
        /// Directory of the run.
        run: PathBuf,
        /// Fails if there is any (exit code 4).
        #[arg(long)]
        strict: bool,
        /// Prints the outcome as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Runs a scene and has all its states, and the ways between them, judged exactly: whether
    /// cloth crosses itself or bodies made of triangles.
    Certify(CertifyArguments),
    /// Says what runs cost, and which phase, patch and policy to look at; writes a page with
    /// pictures of it.
    Report(ReportArguments),
    /// Shows a run in a browser: plays its frames, turns them, and colours them by what they hold.
    View(ViewArguments),
    /// Shows how a scene is cut into parts for ranks, and how else it could be.
    Partition(PartitionArguments),
    /// Sets a scene up once, into a file that runs take it from.
    Prepare {
        /// The scene file, or the name of a scene that is part of the program (`weft scenes`).
        scene: PathBuf,
        /// The file to write [default: the scene's `partition.file`, or its name with `.world`, or
        /// with `.cut`].
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
        /// Keeps the cut into patches alone, which holds for other materials, bodies and contacts
        /// too.
        #[arg(long)]
        cut: bool,
        /// Overrides a key of the scene, as in `partition.patches=64`.
        #[arg(long = "set", value_name = "KEY=VALUE", value_parser = parse_override)]
        overrides: Vec<(String, String)>,
    },
    /// Writes the linear system that a scene's next step solves first, for other solvers: A.mtx and
    /// b.mtx (MatrixMarket).
    System {
        /// The scene file, or the name of a scene that is part of the program (`weft scenes`).
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
    /// Studies how a scene scales: sweeps of ranks, policies, networks and patches, replayed on
    /// virtual ranks.
    Study(Box<StudyArguments>),
    /// Lists the scenes that are part of the program, or those in a folder.
    Scenes {
        /// The folder.
        folder: Option<PathBuf>,
        /// Prints the list as JSON.
        #[arg(long)]
        json: bool,
        /// Prints the JSON schema of scenes instead, for editors of TOML.
        #[arg(long, conflicts_with_all = ["folder", "json"])]
        schema: bool,
    },
    /// Says which version this is and what it was built with.
    Info {
        /// Prints it as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Prints completions for a shell, or writes man pages.
    Completions {
        /// The shell.
        #[arg(required_unless_present = "man")]
        shell: Option<clap_complete::Shell>,
        /// Writes a man page of each command into this directory.
        #[arg(long, value_name = "DIR", conflicts_with = "shell")]
        man: Option<PathBuf>,
    },
}

impl Command {
    /// Whether errors are to be told as JSON, as all else is.
    pub(crate) fn speaks_json(&self) -> bool {
        match self {
            Self::Check { json, .. }
            | Self::Audit { json, .. }
            | Self::Scenes { json, .. }
            | Self::Info { json } => *json,
            Self::Partition(arguments) => arguments.json,
            Self::Run(arguments) => arguments.json,
            Self::Certify(arguments) => arguments.json,
            _ => false,
        }
    }
}

#[derive(clap::Args)]
pub(crate) struct NewArguments {
    /// The scene file to write, such as my-scene.toml.
    pub(crate) scene: PathBuf,
    /// A mesh of cloth (OBJ, PLY, STL, glTF, USD) instead of a square.
    #[arg(long, value_name = "MESH")]
    pub(crate) cloth: Option<PathBuf>,
    /// A mesh of a body (OBJ, PLY, STL, glTF, USD) instead of a ball.
    #[arg(long, value_name = "MESH")]
    pub(crate) body: Option<PathBuf>,
    /// Factor that brings the coordinates of both meshes to metres: 0.01 for files in cm.
    #[arg(long, default_value_t = 1.0, value_parser = parse_scale)]
    pub(crate) scale: f64,
    /// The axis that points upwards in the files of both meshes [default: that of the format; z in
    /// OBJ, PLY and STL].
    #[arg(long, value_parser = names(Up::ALL.iter().map(|up| up.name())))]
    pub(crate) up: Option<String>,
}

#[derive(clap::Args)]
pub(crate) struct StudyArguments {
    /// Scenes (they are recorded first), records (*.weftrec), or directories of recorded runs.
    #[arg(required = true)]
    pub(crate) inputs: Vec<PathBuf>,
    /// Numbers of ranks, as in 1,2,4, or 1..64 for 1, twice and so on up to 64, and 64 [default:
    /// 1..16, as far as there are patches].
    #[arg(long, value_name = "LIST")]
    pub(crate) ranks: Option<String>,
    /// Policies, with commas between; parts are changed as in every-other+steal=false. None at all,
    /// the 2006 paper's and the best unless said.
    #[arg(
        long,
        default_value = "static,paper,every-other,forecast",
        value_name = "NAMES",
        value_delimiter = ','
    )]
    pub(crate) policy: Vec<String>,
    /// Networks, with commas between [default: myrinet-2000].
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        conflicts_with = "real"
    )]
    pub(crate) network: Vec<String>,
    /// Numbers of patches, powers of two with commas between; each is a scene of its own [default:
    /// the scene's].
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) patches: Vec<usize>,
    /// How often each point is repeated, with other seeds.
    #[arg(long, default_value_t = 3)]
    pub(crate) repeat: u32,
    /// The last step of the runs that are recorded [default: the scene's].
    #[arg(long)]
    pub(crate) steps: Option<u64>,
    /// The steps that are recorded [default: the last 8].
    #[arg(long, value_name = "FROM..TO")]
    pub(crate) record: Option<TraceSteps>,
    /// Runs that are recorded begin with this state of the scene.
    #[arg(long, value_name = "CHECKPOINT")]
    pub(crate) resume: Option<PathBuf>,
    /// Simulates every point whole, on virtual ranks with the record's prices, instead of replaying
    /// the record.
    #[arg(long, conflicts_with_all = ["real", "copies", "collide"])]
    pub(crate) full: bool,
    /// Runs every point on this machine, for the time it takes.
    #[arg(long, conflicts_with_all = ["copies", "collide"])]
    pub(crate) real: bool,
    /// With --real: starts ranks with this instead of as threads; {} stands for their number, as in
    /// "mpirun -n {}".
    #[arg(long, requires = "real", value_name = "COMMAND")]
    pub(crate) launch: Option<String>,
    /// Replays this many copies of the record side by side, a power of two: a larger cloth than was
    /// simulated.
    #[arg(long, default_value_t = 1)]
    pub(crate) copies: u32,
    /// How many times slower the modelled machine computes than this one: a core of 2006 is some
    /// ten times slower than one of today.
    #[arg(
        long,
        default_value_t = 1.0,
        value_name = "TIMES",
        conflicts_with = "real"
    )]
    pub(crate) slower: f64,
    /// Pretends that it costs nothing to make a patch ready for its tests, which every rank does
    /// that tests it: shows what doing that again costs.
    #[arg(long, conflicts_with = "real")]
    pub(crate) ready_free: bool,
    /// Replays the collision phase alone.
    #[arg(long)]
    pub(crate) collide: bool,
    /// Directory of the results; what was done there before is not done again [default:
    /// runs/NAME-study].
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Overrides a key of the scene, as in `contact.culling="none"`.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = parse_override)]
    pub(crate) overrides: Vec<(String, String)>,
    /// Prints the result only.
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(clap::Args)]
pub(crate) struct CertifyArguments {
    /// The scene file, the name of a scene that is part of the program (`weft scenes`), or a
    /// directory into which states were recorded (--keep).
    pub(crate) scene: PathBuf,
    /// Number of ranks, each a thread.
    #[arg(long, default_value_t = 1, value_parser = parse_count)]
    pub(crate) ranks: usize,
    /// Workers per rank.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) threads: u16,
    /// Takes this many steps instead of running to the scene's end.
    #[arg(long, conflicts_with = "until")]
    pub(crate) steps: Option<u64>,
    /// Runs to this time instead of the scene's end, in seconds or with a unit, as in "1/480 s".
    #[arg(long, value_name = "TIME", value_parser = parse_until)]
    pub(crate) until: Option<f64>,
    /// Overrides a key of the scene, as in `time.step=2ms`. Unless it is `contact.certify`, steps
    /// are certified, whatever the scene says.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = parse_override)]
    pub(crate) overrides: Vec<(String, String)>,
    /// Leaves out the second run, without certification, which must end with the same state if
    /// nothing was cut.
    #[arg(long)]
    pub(crate) once: bool,
    /// The memory that a process may have, such as 500MB, or `any`: a scene that needs more is
    /// refused [default: WEFT_MEMORY, else what the system has left].
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<Limit>,
    /// Records the states into this directory too, to be judged again.
    #[arg(long, value_name = "DIR")]
    pub(crate) keep: Option<PathBuf>,
    /// Prints the outcome as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(clap::Args)]
pub(crate) struct ExportArguments {
    /// Directory of the run, which may still go on.
    pub(crate) run: PathBuf,
    /// The formats, with commas between.
    #[arg(
        long,
        required = true,
        value_name = "NAMES",
        value_delimiter = ',',
        value_parser = names(Format::ALL[1..].iter().map(|format| format.name()))
    )]
    pub(crate) format: Vec<String>,
    /// The folder for the files.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) out: PathBuf,
    /// The unit of lengths in the files; glTF is in m.
    #[arg(long, default_value = "m", value_parser = names(Units::ALL.iter().map(|units| units.name())))]
    pub(crate) units: String,
    /// The axis that points upwards in the files; in glTF it is y.
    #[arg(long, default_value = "z", value_parser = names(Up::ALL.iter().map(|up| up.name())))]
    pub(crate) up: String,
    /// The step of the frame that glb holds [default: the last].
    #[arg(long, value_name = "STEP")]
    pub(crate) step: Option<u64>,
    /// Replaces files of the same names in the folder.
    #[arg(long)]
    pub(crate) overwrite: bool,
}

#[derive(clap::Args)]
pub(crate) struct RefineArguments {
    /// Directory of the run, which may still go on.
    pub(crate) run: PathBuf,
    /// Directory for the refined frames, which has the layout of a run's: it can be viewed, audited
    /// and exported.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// How many times each triangle is split into four.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_LEVELS)))]
    pub(crate) levels: u32,
    /// The frames, counted from 0, both included, as in 10..20 or 10.. or 10 [default: all].
    #[arg(long, value_name = "FROM..TO", value_parser = parse_frames)]
    pub(crate) frames: Option<RangeInclusive<usize>>,
    /// Takes the first of these and every N-th after it.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = parse_count)]
    pub(crate) every: usize,
    /// Threads that share the work on a frame [default: one per core].
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) threads: Option<u16>,
    /// Also exports the refined frames in these formats, with commas between, into the folder
    /// exports of the directory.
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        value_parser = names(Format::ALL[1..].iter().map(|format| format.name()))
    )]
    pub(crate) format: Vec<String>,
    /// The unit of lengths in exported files; glTF is in m.
    #[arg(long, default_value = "m", value_parser = names(Units::ALL.iter().map(|units| units.name())))]
    pub(crate) units: String,
    /// The axis that points upwards in exported files; in glTF it is y.
    #[arg(long, default_value = "z", value_parser = names(Up::ALL.iter().map(|up| up.name())))]
    pub(crate) up: String,
    /// Replaces the run that is in the directory: removes the files that it lists as its own, and
    /// no others. Without this, a directory with a run is refused.
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// Prints the result only.
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(clap::Args)]
pub(crate) struct ReportArguments {
    /// Directories of runs; several are reported side by side.
    #[arg(required = true, value_name = "DIR")]
    pub(crate) runs: Vec<PathBuf>,
    /// The page [default: report.html in the run's directory; of several runs, in this one].
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Prints the text, and writes no page.
    #[arg(long, conflicts_with = "out")]
    pub(crate) text: bool,
}

#[derive(clap::Args)]
pub(crate) struct ViewArguments {
    /// Directory of the run, which may go on.
    #[arg(value_name = "DIR")]
    pub(crate) run: PathBuf,
    /// The port of 127.0.0.1 to serve the page on [default: any that is free].
    #[arg(long, default_value_t = 0, hide_default_value = true)]
    pub(crate) port: u16,
    /// Writes the page with all frames into one file, and serves nothing.
    #[arg(long, value_name = "FILE", conflicts_with = "port")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(clap::Args)]
pub(crate) struct PartitionArguments {
    /// The scene file, or the name of a scene that is part of the program (`weft scenes`).
    pub(crate) scene: PathBuf,
    /// Number of parts, one for each rank [default: 12, or as many as there are patches].
    #[arg(long, value_parser = parse_count)]
    pub(crate) parts: Option<usize>,
    /// Also cuts by the coordinates of this state of the scene, and draws it.
    #[arg(long, value_name = "CHECKPOINT")]
    pub(crate) state: Option<PathBuf>,
    /// Draws the parts.
    #[arg(
        long,
        value_name = "FILE",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "partition.png"
    )]
    pub(crate) picture: Option<PathBuf>,
    /// Prints the table as JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Overrides a key of the scene, as in `partition.patches=64`.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = parse_override)]
    pub(crate) overrides: Vec<(String, String)>,
}

#[derive(clap::Args)]
pub(crate) struct RunArguments {
    /// The scene file, or the name of a scene that is part of the program (`weft scenes`).
    pub(crate) scene: PathBuf,
    /// Number of ranks [default: the scene's balance.ranks, else one per core, at least 2, at most
    /// 16, and no more than patches].
    #[arg(long, value_parser = parse_count)]
    pub(crate) ranks: Option<usize>,
    /// Workers per rank.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) threads: u16,
    /// Gives each rank one more thread, for messages alone: a task that runs long delays no other
    /// rank.
    #[arg(long)]
    pub(crate) progress_thread: bool,
    /// How ranks talk to each other.
    #[arg(long, value_enum, default_value_t = CommChoice::Auto)]
    pub(crate) comm: CommChoice,
    /// The network between ranks in virtual time [default: gigabit].
    #[arg(long, value_enum)]
    pub(crate) network: Option<NetworkChoice>,
    /// Takes this many steps, counted from time 0, instead of running to the scene's end.
    #[arg(long, conflicts_with = "until")]
    pub(crate) steps: Option<u64>,
    /// Runs to this time instead of the scene's end, in seconds or with a unit, as in "1/480 s".
    #[arg(long, value_name = "TIME", value_parser = parse_until)]
    pub(crate) until: Option<f64>,
    /// The memory that a process may have, such as 500MB, or `any`: a scene that needs more is
    /// refused [default: WEFT_MEMORY, else what the system has left].
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<Limit>,
    /// Directory for the outputs [default: runs/NAME].
    #[arg(long)]
    pub(crate) out: Option<PathBuf>,
    /// Goes on from the newest checkpoint in the output directory, or from this one; with =auto it
    /// starts if there is none to go on from. A file of that name is ./auto.
    #[arg(long, value_name = "CHECKPOINT", num_args = 0..=1, require_equals = true)]
    pub(crate) resume: Option<Option<PathBuf>>,
    /// Replaces the run that is in the output directory: removes the files that it lists as its
    /// own, and no others. Without this, a directory with a run is refused.
    #[arg(long, conflicts_with = "resume")]
    pub(crate) overwrite: bool,
    /// Stops before this many hours are over, or a time with a unit such as "90 min", with a
    /// checkpoint; as SIGTERM, SIGHUP, SIGUSR1 and Ctrl-C do soon.
    #[arg(long, value_name = "HOURS", value_parser = parse_hours)]
    pub(crate) max_hours: Option<Duration>,
    /// Writes trace.json for ui.perfetto.dev, of all steps or of steps FROM to TO, both included.
    #[arg(long, value_name = "FROM..TO", num_args = 0..=1, require_equals = true, default_missing_value = "1..")]
    pub(crate) trace: Option<TraceSteps>,
    /// Records shape and cost of the collision tests of some steps [default: the last 8] into
    /// record.weftrec, for `weft study`. Wants one rank.
    #[arg(long, value_name = "FROM..TO", num_args = 0..=1, require_equals = true)]
    pub(crate) record: Option<Option<TraceSteps>>,
    /// Looks in every frame for cloth that crosses itself or bodies, and writes what does beside
    /// it; with =strict a crossing is a failure (exit code 4).
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "count")]
    pub(crate) audit: Option<AuditChoice>,
    /// Overrides a key of the scene, as in `time.step=2ms`.
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = parse_override)]
    pub(crate) overrides: Vec<(String, String)>,
    /// Idle ranks ask nobody for work.
    #[arg(long)]
    pub(crate) no_steal: bool,
    /// How ranks share the collision tests [default: the scene's].
    #[arg(long, value_parser = names(POLICIES.iter().map(|(name, _, _)| *name)))]
    pub(crate) policy: Option<String>,
    /// The part of its work that a running task gives away when it is split.
    #[arg(long, value_parser = names(SPLITS.iter().map(|split| split.name())))]
    pub(crate) split: Option<String>,
    /// The rule by which an idle rank chooses whom it asks for tasks.
    #[arg(long, value_parser = names(VICTIMS.iter().map(|rule| rule.name())))]
    pub(crate) victims: Option<String>,
    /// Seed of the choice of victims; does not change the result.
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// The way in which ranks that are MPI processes wait [default: yield; sleep, where there are
    /// fewer cores than workers].
    #[cfg(feature = "mpi")]
    #[arg(long, value_parser = names(weft_mpi::Idle::NAMED.iter().map(|(name, _)| *name)))]
    pub(crate) idle: Option<String>,
    /// Prints the result only.
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// Prints a line of JSON for each thing that happens: steps, frames, checkpoints, warnings, the
    /// result. An error is JSON, too, on standard error.
    #[arg(long, conflicts_with = "quiet")]
    pub(crate) json: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CommChoice {
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
pub(crate) enum AuditChoice {
    /// Crossings are counted and reported.
    Count,
    /// A crossing is a failure.
    Strict,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum NetworkChoice {
    /// A cluster of 2006: 7 us, 250 MB/s.
    #[value(name = "myrinet-2000")]
    Myrinet2000,
    /// Gigabit Ethernet: 35 us, 125 MB/s.
    Gigabit,
    /// InfiniBand HDR: 1 us, 25 GB/s.
    HdrInfiniband,
}

/// Reads a number of ranks or parts, of which there has to be one.
fn parse_count(text: &str) -> Result<usize, String> {
    let count = text.parse().ok().filter(|&count| count > 0);
    count.ok_or_else(|| "it has to be a whole number from 1 on".to_owned())
}

/// The names of a table, as values that an option takes.
pub(crate) fn names(table: impl Iterator<Item = &'static str>) -> PossibleValuesParser {
    PossibleValuesParser::new(table)
}

/// Reads numbers of frames: one, or a first and a last, which may be left out.
fn parse_frames(text: &str) -> Result<RangeInclusive<usize>, String> {
    let number = |text: &str| text.trim().parse::<usize>().ok();
    let frames = match text.split_once("..") {
        None => number(text).map(|only| only..=only),
        Some((first, "")) => number(first).map(|first| first..=usize::MAX),
        Some((first, last)) => number(first)
            .zip(number(last))
            .map(|(first, last)| first..=last),
    };
    frames
        .filter(|frames| !frames.is_empty())
        .ok_or_else(|| "wants numbers of frames such as 10..20, 10.. or 10".to_owned())
}

fn parse_hours(text: &str) -> Result<Duration, String> {
    let wants = "wants a number of hours above zero, such as 0.5, or a time such as \"30 min\"";
    let time = parse_time(text, 3600.0).map_err(|error| format!("{error}; it {wants}"))?;
    let time = Some(time).filter(|&time| time > 0.0);
    let time = time.and_then(|time| Duration::try_from_secs_f64(time).ok());
    time.ok_or_else(|| wants.to_owned())
}

/// A time in s. Whether a run can end there is looked at once its scene is known.
fn parse_until(text: &str) -> Result<f64, String> {
    // Numbers that end no run are refused later, with those that are too large.
    (text.parse().ok()).map_or_else(|| parse_time(text, 1.0), Ok)
}

fn parse_tolerance(text: &str) -> Result<f64, String> {
    let tolerance = text.parse().ok();
    tolerance
        .filter(|t: &f64| t.is_finite() && *t >= 0.0)
        .ok_or_else(|| "wants a distance in metres, as in 1e-9".to_owned())
}

fn parse_scale(text: &str) -> Result<f64, String> {
    let scale = text.parse().ok();
    scale
        .filter(|scale: &f64| scale.is_finite() && *scale > 0.0)
        .ok_or_else(|| "wants a number above zero, as in 0.01".to_owned())
}

fn parse_override(text: &str) -> Result<(String, String), String> {
    text.split_once('=')
        .filter(|(key, _)| !key.trim().is_empty())
        .map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned()))
        .ok_or_else(|| "wants KEY=VALUE, as in time.step=2ms".to_owned())
}
