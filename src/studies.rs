//! `weft study`: records scenes where that is still to be done, sweeps, and writes tables and plots.

use std::fs;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use weft_study::layout::LayoutError;
use weft_study::mixture::Mixture;
use weft_study::plan::{Plan, Point, network, parse_ranks, policy};
use weft_study::record::Record;
use weft_study::replay::Machine;
use weft_study::sweep::{Measured, Progress, Replayed, Source, SweepError, sweep};
use weft_study::tables;
use weftwork::output::{Checkpoint, RunRecord, write_whole};
use weftwork::run::{
    Driver, RECORD_FILE, Resume, RunOptions, Show, Stop, read_state, run, run_modelled,
};
use weftwork::scene::Scene;
use weftwork::scene::load::policy_key;
use weftwork::step::World;

use crate::cli::StudyArguments;
use crate::commands::{load, patch_count};
use crate::plots::Plots;
use crate::{Failure, say};

/// Keys of runs that are only measured.
const NO_OUTPUT: [(&str, &str); 3] = [
    ("output.frames", "false"),
    ("output.pictures", "false"),
    ("output.checkpoints", "false"),
];

/// What is studied unless said.
const RANKS: &str = "1..16";
const NETWORK: &str = "myrinet-2000";

pub(crate) fn study(arguments: &StudyArguments) -> Result<(), Failure> {
    let failed = |error: SweepError| Failure {
        code: error.exit_code(),
        message: error.to_string(),
    };
    let ranks = arguments.ranks.as_deref().unwrap_or(RANKS);
    let mut plan = Plan {
        ranks: parse_ranks(ranks).map_err(|error| failed(error.into()))?,
        policies: arguments.policy.clone(),
        networks: if arguments.real {
            vec!["this-machine".to_owned()]
        } else if arguments.network.is_empty() {
            vec![NETWORK.to_owned()]
        } else {
            arguments.network.clone()
        },
        repeat: arguments.repeat,
        collide_only: arguments.collide,
        slower: arguments.slower,
        ready_free: arguments.ready_free,
        real: arguments.real,
    };
    // Before anything is recorded.
    plan.check().map_err(|error| failed(error.into()))?;
    let mut keys = arguments.overrides.iter().map(|(key, _)| key);
    if let Some(key) = keys.find(|key| policy_key(key).is_some()) {
        let message = format!(
            "--set {key}: a study compares policies by their names; change a part of one with its name, as in --policy \
             every-other+steal=false"
        );
        return Err(Failure { code: 2, message });
    }
    if !arguments.copies.is_power_of_two() {
        let message = format!("--copies {}: wants a power of two", arguments.copies);
        return Err(Failure { code: 2, message });
    }
    let launch = arguments.launch.as_deref();
    if let Some(command) = launch.filter(|command| !command.contains("{}")) {
        let message = format!(
            "--launch {command:?} does not say where the number of ranks goes: {{}}, as in \"mpirun -n {{}}\""
        );
        return Err(Failure { code: 2, message });
    }
    let sources = sources(arguments, &plan)?;
    let sources: Vec<&dyn Source> = sources.iter().map(|source| &**source).collect();
    if arguments.ranks.is_none() {
        let fewest = sources.iter().map(|source| source.patches()).min();
        plan.ranks
            .retain(|&ranks| fewest.is_none_or(|patches| ranks <= patches));
    }
    let threads = match std::thread::available_parallelism() {
        // Runs on this machine would disturb each other.
        Ok(cores) if !arguments.real => cores.get(),
        _ => 1,
    };
    let bar = io::stderr().is_terminal();
    let show = |progress: &Progress<'_>| {
        let Progress {
            last,
            done,
            total,
            left,
        } = progress;
        if !arguments.quiet && (bar || total.div_ceil(20) == 1 || done % total.div_ceil(20) == 0) {
            let end = if bar { "\x1b[K\r" } else { "\n" };
            let left = left.as_secs();
            let line = format!(
                "done {done} of {total}, left_s {left}, last {}{end}",
                last.name()
            );
            // There is nobody else to tell.
            drop(io::stderr().write_all(line.as_bytes()));
        }
    };
    let results = sweep(&plan, &sources, &arguments.out, threads, &show).map_err(failed)?;
    if !arguments.quiet && (results.found > 0 || results.stale > 0) {
        let text = format!(
            "{} points had been done before; {} were of another record or plan and were done again",
            results.found, results.stale
        );
        drop(writeln!(io::stderr(), "{text}"));
    }
    let rows = tables::rows(&plan, &results);
    let file = |name: &str, bytes: &[u8]| {
        write_whole(&arguments.out.join(name), |out| out.write_all(bytes)).map_err(|error| {
            Failure {
                code: 5,
                message: error.to_string(),
            }
        })
    };
    let earlier = Plots::of(&arguments.out);
    let plots = Plots::write(&arguments.out, &rows)?;
    file("study.csv", tables::csv(&rows).as_bytes())?;
    let json = serde_json::json!({
        "schema": 1,
        "program": format!("weft {}", env!("CARGO_PKG_VERSION")),
        "plan": plan,
        "sources": results.sources,
        "alone": results.alone,
        "points": results.points,
        "rows": rows,
        "plots": plots,
    });
    let json = serde_json::to_vec_pretty(&json).map_err(|error| Failure {
        code: 101,
        message: error.to_string(),
    })?;
    file("study.json", &json)?;
    let gone = plots.remove_others(&arguments.out, &earlier);
    if !arguments.quiet && gone > 0 {
        let text = format!("{gone} files of plots of an earlier plan were removed");
        drop(writeln!(io::stderr(), "{text}"));
    }
    let mut text = tables::text(&rows, "collide");
    if !plan.collide_only {
        text += &tables::text(&rows, "step");
    }
    say(format_args!(
        "{text}Wrote study.csv, study.json and {} plots (SVG and PNG) to {}\n",
        plots.count(),
        arguments.out.display()
    ))
}

/// What is studied: each input, with each number of patches.
fn sources(arguments: &StudyArguments, plan: &Plan) -> Result<Vec<Box<dyn Source>>, Failure> {
    let mut sources: Vec<Box<dyn Source>> = Vec::new();
    let taken = |sources: &[Box<dyn Source>], name: &str| sources.iter().any(|s| s.name() == name);
    for input in &arguments.inputs {
        let recorded = match input {
            _ if input.is_dir() => Some(input.join(RECORD_FILE)),
            _ if input.extension().is_some_and(|ending| ending == "weftrec") => Some(input.clone()),
            _ => None,
        };
        if let Some(path) = recorded {
            let of_scenes = arguments.full
                || arguments.real
                || !arguments.patches.is_empty()
                || !arguments.overrides.is_empty()
                || arguments.steps.is_some()
                || arguments.record.is_some()
                || arguments.resume.is_some();
            if of_scenes {
                let message = format!(
                    "{}: --full, --real, --patches, --set, --steps, --record and --resume want a scene: a record knows neither \
                     physics nor mesh",
                    input.display()
                );
                return Err(Failure { code: 2, message });
            }
            let source = Replayed::open(&path).map_err(|error| Failure {
                code: 5,
                message: error.to_string(),
            })?;
            let mut source = source.copied(arguments.copies);
            // Two records of one scene: tables and plots tell them apart.
            let name = source.name().to_owned();
            let mut nth = 1;
            while taken(&sources, source.name()) {
                nth += 1;
                source = source.named(&format!("{name}-{nth}"));
            }
            sources.push(Box::new(source));
            continue;
        }
        let counts: Vec<Option<usize>> = match &arguments.patches[..] {
            [] => vec![None],
            counts => counts.iter().copied().map(Some).collect(),
        };
        for patches in counts {
            let source = of_scene(arguments, plan, input, patches, &|name| {
                taken(&sources, name)
            })?;
            sources.push(source);
        }
    }
    Ok(sources)
}

/// A scene as a source, recorded if it has to be.
fn of_scene(
    arguments: &StudyArguments,
    plan: &Plan,
    path: &Path,
    patches: Option<usize>,
    is_taken: &dyn Fn(&str) -> bool,
) -> Result<Box<dyn Source>, Failure> {
    let mut overrides = arguments.overrides.clone();
    overrides.extend(NO_OUTPUT.map(|(key, value)| (key.to_owned(), value.to_owned())));
    if let Some(patches) = patches {
        overrides.push(("partition.patches".to_owned(), patches.to_string()));
    }
    let scene = load(path, &overrides)?;
    let name = match patches {
        Some(patches) => format!("{}-{patches}", scene.name),
        None => scene.name.clone(),
    };
    if is_taken(&name) {
        let message = format!(
            "{}: there is another `{name}` in this study; call the file something else, or study them one after the other",
            path.display()
        );
        return Err(Failure { code: 2, message });
    }
    let patches = patch_count(&scene)?;
    if arguments.ranks.is_some() {
        // Before anything is recorded.
        for &ranks in &plan.ranks {
            LayoutError::check(patches, ranks).map_err(|error| Failure {
                code: 2,
                message: error.to_string(),
            })?;
        }
    }
    if arguments.real {
        return Ok(Box::new(Real {
            patches,
            scene: path.to_owned(),
            name,
            family: scene.name.clone(),
            title: scene.title.clone(),
            overrides,
            steps: arguments.steps,
            resume: arguments.resume.clone(),
            launch: arguments.launch.clone(),
            folder: arguments.out.join("runs"),
        }));
    }
    let record = record(arguments, &scene, &name)?;
    let broken = |message: String| Failure { code: 5, message };
    if !arguments.full {
        let source = Replayed::open(&record).map_err(|error| broken(error.to_string()))?;
        return Ok(Box::new(source.named(&name).copied(arguments.copies)));
    }
    let world = World::build(&scene).map_err(|error| Failure {
        code: 3,
        message: error.to_string(),
    })?;
    let start = arguments
        .resume
        .as_deref()
        .map(|path| read_state(path, &world))
        .transpose();
    let start = start.map_err(|error| Failure {
        code: error.exit_code(),
        message: error.to_string(),
    })?;
    let mut record = Record::open(&record).map_err(|error| broken(error.to_string()))?;
    let last = record.steps().saturating_sub(1);
    let mut number = |index: usize| {
        let step = record
            .step(index)
            .map_err(|error| broken(error.to_string()));
        step.map(|step| step.number)
    };
    let steps = (number(0)?, number(last)?);
    Ok(Box::new(Full {
        name,
        family: scene.name.clone(),
        title: scene.title.clone(),
        digest: record.digest().to_owned(),
        prices: record.end().prices,
        world,
        start,
        steps,
    }))
}

/// The record of a scene in the study's directory; made, unless it is there and of the same run.
fn record(arguments: &StudyArguments, scene: &Scene, name: &str) -> Result<PathBuf, Failure> {
    let folder = arguments.out.join("records").join(name);
    let path = folder.join(RECORD_FILE);
    // What the record is of, beside it.
    let of = format!(
        "{}steps {:?} record {:?} resume {:?}\n",
        scene.echo_of_trajectory(),
        arguments.steps,
        arguments.record,
        arguments.resume
    );
    let note = folder.join("record.of");
    if path.is_file() && fs::read_to_string(&note).is_ok_and(|text| text == of) {
        return Ok(path);
    }
    if !arguments.quiet {
        drop(writeln!(io::stderr(), "recording {name}"));
    }
    let points = arguments.out.join("points");
    let io = |path: &Path| {
        let path = path.to_owned();
        move |source: io::Error| Failure {
            code: 5,
            message: format!("{}: {source}", path.display()),
        }
    };
    fs::create_dir_all(&points).map_err(io(&points))?;
    let options = RunOptions {
        ranks: 1,
        threads: 1,
        progress_thread: false,
        driver: Driver::Solo,
        steps: arguments.steps,
        out: folder,
        resume: arguments.resume.clone().map(Resume::From),
        stop: Stop::before(None),
        trace: None,
        record: Some(arguments.record),
        audit: None,
        progress: if arguments.quiet {
            Show::Nothing
        } else {
            Show::Lines
        },
        command: std::env::args().collect(),
        hosts: Vec::new(),
        mpi: None,
    };
    run(scene, &options).map_err(|error| Failure {
        code: error.exit_code(),
        message: error.to_string(),
    })?;
    fs::write(&note, of).map_err(io(&note))?;
    Ok(path)
}

/// A scene that is simulated whole, on virtual ranks of a modelled machine.
struct Full {
    name: String,
    family: String,
    title: String,
    digest: String,
    prices: weft_study::prices::Prices,
    world: World,
    start: Option<Checkpoint>,
    /// First and last that count.
    steps: (u64, u64),
}

impl Source for Full {
    fn name(&self) -> &str {
        &self.name
    }

    fn family(&self) -> &str {
        &self.family
    }

    fn title(&self) -> &str {
        &self.title
    }

    fn digest(&self) -> String {
        format!("full {}", self.digest)
    }

    fn patches(&self) -> usize {
        self.world.tree().patch_count()
    }

    fn measure(&self, point: &Point, plan: &Plan) -> Result<Measured, SweepError> {
        let prices = plan.priced(&self.prices);
        let machine = Machine {
            network: network(&point.network)?,
            policy: policy(&point.policy)?,
            seed: u64::from(point.repeat),
            collide_only: false,
            trace: None,
        };
        let (first, last) = self.steps;
        let start = self.start.as_ref();
        let steps = run_modelled(
            &self.world,
            start,
            first..=last,
            point.ranks,
            &machine,
            &prices,
        );
        let steps = steps.map_err(|error| SweepError::Run {
            what: error.to_string(),
            code: error.exit_code(),
        })?;
        let mut all = Measured::default();
        for step in steps {
            all.steps += 1;
            all.whole += step.whole as f64;
            for (sum, time) in all.phases.iter_mut().zip(step.phases) {
                *sum += time as f64;
            }
            let [tasks, splits, moved] = step.tasks;
            for (sum, count) in all.balance.iter_mut().zip([tasks, splits, 0, 0, moved]) {
                *sum += count;
            }
        }
        Ok(all)
    }
}

/// A scene that is run on this machine, each point a process or a job of several.
struct Real {
    patches: usize,
    scene: PathBuf,
    name: String,
    family: String,
    title: String,
    overrides: Vec<(String, String)>,
    steps: Option<u64>,
    resume: Option<PathBuf>,
    launch: Option<String>,
    folder: PathBuf,
}

impl Source for Real {
    fn name(&self) -> &str {
        &self.name
    }

    fn family(&self) -> &str {
        &self.family
    }

    fn title(&self) -> &str {
        &self.title
    }

    fn digest(&self) -> String {
        format!(
            "real {} {:?} {:?} {:?}",
            self.name, self.steps, self.resume, self.launch
        )
    }

    fn patches(&self) -> usize {
        self.patches
    }

    fn measure(&self, point: &Point, _: &Plan) -> Result<Measured, SweepError> {
        let failed = |what: String| SweepError::Run { what, code: 5 };
        let out = self.folder.join(point.name());
        let weft = std::env::current_exe().map_err(|error| failed(error.to_string()))?;
        let mut words: Vec<String> = (self.launch.iter())
            .flat_map(|launch| launch.split_whitespace())
            .map(|word| word.replace("{}", &point.ranks.to_string()))
            .collect();
        words.push(weft.display().to_string());
        let mut command = Command::new(&words[0]);
        command
            .args(&words[1..])
            .arg("run")
            .arg(&self.scene)
            .arg("--quiet");
        let mixture = Mixture::parse(&point.policy)?;
        command.arg("--out").arg(&out);
        command.args(["--policy", mixture.name]);
        for (key, value) in mixture.changes {
            command.args(["--set", &format!("balance.{key}={value}")]);
        }
        command.args(["--seed", &point.repeat.to_string()]);
        if self.launch.is_none() {
            command.args(["--ranks", &point.ranks.to_string()]);
        }
        for (key, value) in &self.overrides {
            command.args(["--set", &format!("{key}={value}")]);
        }
        if let Some(steps) = self.steps {
            command.args(["--steps", &steps.to_string()]);
        }
        if let Some(checkpoint) = &self.resume {
            command.arg(format!("--resume={}", checkpoint.display()));
        }
        let ended = command
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .output();
        let ended = ended.map_err(|error| failed(format!("{}: {error}", words[0])))?;
        if !ended.status.success() {
            let code = ended.status.code().and_then(|code| u8::try_from(code).ok());
            return Err(SweepError::Run {
                what: format!(
                    "a run on {} ranks failed, {}: {}",
                    point.ranks,
                    ended.status,
                    String::from_utf8_lossy(&ended.stderr).trim()
                ),
                code: code.unwrap_or(101),
            });
        }
        let record = RunRecord::read(&out).map_err(|error| failed(error.to_string()))?;
        if record.machine.ranks as usize != point.ranks {
            return Err(SweepError::Run {
                what: format!(
                    "a run was to have {} ranks and had {}: does --launch start as many as {{}} says, and was this program built with MPI?",
                    point.ranks, record.machine.ranks
                ),
                code: 2,
            });
        }
        measured(&record).ok_or_else(|| failed(format!("{} has no times", out.display())))
    }
}

/// The times of a run, per step taken.
fn measured(record: &RunRecord) -> Option<Measured> {
    let mut all = Measured::default();
    for (time, phase) in all.phases.iter_mut().zip(&record.phases) {
        *time = 1e9 * phase.max_s;
    }
    all.whole = 1e9 * record.loop_s?;
    let last = record.result.as_ref()?.steps;
    let taken = last.saturating_sub(record.resumed_from.unwrap_or(0));
    all.steps = u32::try_from(taken).ok()?;
    Some(all)
}
