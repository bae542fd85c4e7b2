//! `weft study`: records scenes where that is still to be done, sweeps, and writes tables and
//! plots.

mod full;
mod input;
mod real;
mod scene_record;

use std::io::{self, IsTerminal as _, Write as _};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use weft_io::Show as _;
use weft_study::directory::{DirectoryError, claim};
use weft_study::plan::{Plan, parse_ranks};
use weft_study::record::{Record, RecordError};
use weft_study::sweep::{Label, Progress, Replayed, Results, Source, SweepError, sweep};
use weft_study::synthetic::CopiesError;
use weft_study::tables;
use weftwork::memory::{self, Ranks};
use weftwork::output::write_whole;
use weftwork::run::{Cause, Stop, read_state};
use weftwork::scene::load::policy_key;

use self::full::Full;
use self::input::{SceneInput, StudyInput, study_inputs};
use self::real::Real;
use self::scene_record::record;
use crate::cli::StudyArguments;
use crate::commands::memory_limit;
use crate::plots::Plots;
use crate::{Failure, say, signals, tell};

/// The ranks that are studied unless others are named.
const RANKS: &str = "1..16";
const NETWORK: &str = "myrinet-2000";

/// A study under way.
struct Study<'a> {
    arguments: &'a StudyArguments,
    /// Its directory.
    out: PathBuf,
    /// Asks it to stop.
    stop: Stop,
}

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
    let launch = arguments.launch.as_deref();
    if let Some(command) = launch.filter(|command| !command.contains("{}")) {
        let message = format!(
            "--launch {command:?} does not say where the number of ranks goes: {{}}, as in \"mpirun -n {{}}\""
        );
        return Err(Failure { code: 2, message });
    }
    if arguments.steps == Some(0) {
        let message = "--steps 0: of a run without a step there is nothing to study".to_owned();
        return Err(Failure { code: 2, message });
    }
    let inputs = study_inputs(arguments, &plan)?;
    let families = inputs.iter().map(|input| input.family(arguments.copies));
    let families: Vec<String> = families.collect();
    let families: Vec<&str> = families.iter().map(String::as_str).collect();
    let study = Study {
        arguments,
        out: arguments
            .out
            .clone()
            .unwrap_or_else(|| own_directory(&families)),
        stop: Stop::default(),
    };
    // Before anything is recorded, too.
    let _claim =
        claim(&study.out, &families).map_err(|error: DirectoryError| failed(error.into()))?;
    signals::ask(&study.stop).map_err(|error| Failure {
        code: 101,
        message: format!("cannot listen to signals: {error}"),
    })?;
    let sources = inputs.into_iter().map(|input| study.source(input));
    let sources: Vec<Box<dyn Source>> = sources.collect::<Result<_, Failure>>()?;
    let sources: Vec<&dyn Source> = sources.iter().map(|source| &**source).collect();
    if arguments.ranks.is_none() {
        let fewest = sources.iter().map(|source| source.label().patches).min();
        plan.ranks
            .retain(|&ranks| fewest.is_none_or(|patches| ranks <= patches));
    }
    let threads = match std::thread::available_parallelism() {
        // Runs on this machine would disturb each other.
        Ok(cores) if !arguments.real => cores.get(),
        _ => 1,
    };
    let bar = io::stderr().is_terminal();
    let so_far = Mutex::new((0, 0));
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
        if let Ok(mut so_far) = so_far.lock() {
            *so_far = (*done, *total);
        }
        match study.stop.cause() {
            Some(_) => ControlFlow::Break(()),
            None => ControlFlow::Continue(()),
        }
    };
    let results = sweep(&plan, &sources, &study.out, threads, &show);
    let results = match results {
        // A signal to all of us may have ended a run of --real as well.
        Err(SweepError::Stopped | SweepError::Run { .. }) if study.stop.cause().is_some() => {
            let so_far = so_far.lock().map_or((0, 0), |so_far| *so_far);
            let at = match so_far {
                (_, 0) => "before its first point".to_owned(),
                (done, total) => format!("after {done} of {total} points"),
            };
            return Err(study.stopped(&at, "goes on from there"));
        }
        results => results.map_err(failed)?,
    };
    if !arguments.quiet
        && let Some(text) = known_before(&results)
    {
        tell("", text);
    }
    let rows = tables::rows(&plan, &results);
    let file = |name: &str, bytes: &[u8]| {
        write_whole(&study.out.join(name), |out| out.write_all(bytes)).map_err(|error| Failure {
            code: 5,
            message: error.to_string(),
        })
    };
    let earlier = Plots::of(&study.out);
    let plots = Plots::write(&study.out, &rows)?;
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
    let gone = plots.remove_others(&study.out, &earlier);
    if !arguments.quiet && gone > 0 {
        let text = format!("{gone} files of plots of an earlier plan were removed");
        tell("", text);
    }
    let mut text = tables::text(&rows, "collide");
    if !plan.collide_only {
        text += &tables::text(&rows, "step");
    }
    say(format_args!(
        "{text}Wrote study.csv, study.json and {} plots (SVG and PNG) to {}\n",
        plots.count(),
        study.out.shown()
    ))
}

/// The directory of a study that nobody has named one for.
fn own_directory(families: &[&str]) -> PathBuf {
    let mut names: Vec<&str> = Vec::new();
    for name in families {
        if !names.contains(name) {
            names.push(name);
        }
    }
    Path::new("runs").join(format!("{}-study", names.join("-")))
}

/// A sentence on the points that the directory had already.
fn known_before(results: &Results) -> Option<String> {
    let many = |count: usize, what: &str| match count {
        1 => format!("1 was {what}"),
        count => format!("{count} were {what}"),
    };
    let mut again = Vec::new();
    if results.stale > 0 {
        again.push(many(results.stale, "of another record or plan"));
    }
    if results.damaged > 0 {
        again.push(many(results.damaged, "damaged"));
    }
    if results.found == 0 && again.is_empty() {
        return None;
    }
    let mut text = match results.found {
        1 => "1 point had been done before".to_owned(),
        found => format!("{found} points had been done before"),
    };
    if !again.is_empty() {
        text += &format!("; {}, and done again", again.join(", "));
    }
    Some(text)
}

impl Study<'_> {
    /// Makes a source of an input, and records it if that has to be done.
    fn source(&self, input: StudyInput) -> Result<Box<dyn Source>, Failure> {
        let of = match input {
            StudyInput::Record(source) => return Ok(Box::new(source)),
            StudyInput::Scene(of) => *of,
        };
        if self.arguments.real {
            return Ok(Box::new(Real {
                label: Label {
                    name: of.name,
                    family: of.scene.name,
                    title: of.scene.title,
                    patches: of.patches,
                },
                sha256: of.scene.sha256,
                scene: of.path,
                overrides: of.overrides,
                steps: self.arguments.steps,
                resume: self.arguments.resume.clone(),
                launch: self.arguments.launch.clone(),
                folder: self.out.join("runs"),
            }));
        }
        let path = record(self, &of)?;
        if self.arguments.full {
            return self.full(of, &path);
        }
        let source = Replayed::open(&path).map_err(broken)?;
        let copied = source.named(&of.name).copied(self.arguments.copies);
        Ok(Box::new(copied.map_err(too_many)?))
    }

    /// The scene of this record, to be simulated whole.
    fn full(&self, of: SceneInput, record: &Path) -> Result<Box<dyn Source>, Failure> {
        let limit = memory_limit(None)?;
        let world = memory::build(&of.scene, 1, Ranks::none(), limit);
        let world = world.map_err(|error| Failure {
            code: 3,
            message: error.to_string(),
        })?;
        let start = self.arguments.resume.as_deref();
        let start = start.map(|path| read_state(path, &world)).transpose();
        let start = start.map_err(|error| Failure {
            code: error.exit_code(),
            message: error.to_string(),
        })?;
        let replayed = Replayed::open(record).map_err(broken)?;
        let mut record = Record::open(record).map_err(broken)?;
        let (mut numbers, mut passes) = (Vec::new(), Vec::new());
        for index in 0..record.steps() {
            let step = record.step(index).map_err(broken)?;
            numbers.push(step.number);
            passes.push(step.passes);
        }
        let first = numbers.first().copied().unwrap_or_default();
        let steps = (first, numbers.last().copied().unwrap_or_default());
        Ok(Box::new(Full {
            label: Label {
                name: of.name,
                family: of.scene.name,
                title: of.scene.title,
                patches: world.tree().patch_count(),
            },
            digest: record.digest().to_owned(),
            prices: record.end().prices,
            passes,
            replayed,
            world,
            start,
            steps,
        }))
    }

    /// Says where a signal has stopped the study, and that nothing is lost. The exit code is as of
    /// a command that the signal has ended: there are no tables.
    fn stopped(&self, at: &str, goes_on: &str) -> Failure {
        let cause = self.stop.cause();
        let by = cause.map_or_else(String::new, |cause| format!(" by {cause}"));
        tell(
            "stopped",
            format_args!("{by} {at}; the same command {goes_on}"),
        );
        let signal = match cause {
            Some(Cause::Signal(number)) => u8::try_from(number).unwrap_or(0),
            _ => 0,
        };
        Failure {
            code: SIGNALLED.saturating_add(signal),
            message: String::new(),
        }
    }
}

fn too_many(error: CopiesError) -> Failure {
    Failure {
        code: 2,
        message: error.to_string(),
    }
}

fn broken(error: RecordError) -> Failure {
    Failure {
        code: 5,
        message: error.to_string(),
    }
}

/// Added to the number of a signal, the exit code of a command that it has ended, as shells have
/// it.
const SIGNALLED: u8 = 128;
