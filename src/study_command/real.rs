//! Points of a study that are runs on this machine, each a process or a job of several: `--real`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use weft_io::{Printable, Show as _};
use weft_study::plan::{Plan, Point};
use weft_study::policy_specification::PolicySpecification;
use weft_study::sweep::{Label, Measured, Source, SweepError};
use weftwork::output::{Destination, OutputError, RunRecord};

/// A scene that is run on this machine, each point a process or a job of several.
pub(super) struct Real {
    pub(super) label: Label,
    pub(super) scene: PathBuf,
    /// The hash of its text.
    pub(super) sha256: String,
    pub(super) overrides: Vec<(String, String)>,
    pub(super) steps: Option<u64>,
    pub(super) resume: Option<PathBuf>,
    pub(super) launch: Option<String>,
    pub(super) folder: PathBuf,
}

impl Source for Real {
    fn label(&self) -> &Label {
        &self.label
    }

    fn digest(&self) -> String {
        format!(
            "real {} {} {:?} {:?} {:?} {:?}",
            self.label.name, self.sha256, self.overrides, self.steps, self.resume, self.launch
        )
    }

    fn measure(&self, point: &Point, _: &Plan) -> Result<Measured, SweepError> {
        let failed = |what: String| SweepError::Run { what, code: 5 };
        let out = self.folder.join(point.name());
        // An earlier run of this point was the study's own, and is of no use to it.
        discard(&out).map_err(|error| failed(error.to_string()))?;
        let weft = std::env::current_exe().map_err(|error| failed(error.to_string()))?;
        let launch: Vec<String> = (self.launch.iter())
            .flat_map(|launch| launch.split_whitespace())
            .map(|word| word.replace("{}", &point.ranks.to_string()))
            .collect();
        let words: Vec<OsString> = (launch.iter().map(OsString::from))
            .chain([weft.into_os_string()])
            .collect();
        let mut command = Command::new(&words[0]);
        command
            .args(&words[1..])
            .arg("run")
            .arg(&self.scene)
            .arg("--quiet");
        let policy_specification = PolicySpecification::parse(&point.policy)?;
        command.arg("--out").arg(&out);
        command.args(["--policy", policy_specification.name]);
        for (key, value) in policy_specification.changes {
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
            let mut word = OsString::from("--resume=");
            word.push(checkpoint);
            command.arg(word);
        }
        let ended = command
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .output();
        let ended = ended.map_err(|error| failed(format!("{}: {error}", words[0].shown())))?;
        if !ended.status.success() {
            let code = ended.status.code().and_then(|code| u8::try_from(code).ok());
            let said = String::from_utf8_lossy(&ended.stderr);
            let said = match said.trim() {
                "" => ", without a word".to_owned(),
                words => format!(": {}", Printable(words)),
            };
            let by = match &launch[..] {
                [] => String::new(),
                launch => format!(" by `{}`", launch.join(" ").shown()),
            };
            return Err(SweepError::Run {
                what: format!(
                    "a run on {} ranks{by} failed, {}{said}",
                    point.ranks, ended.status
                ),
                code: code.unwrap_or(101),
            });
        }
        let record = RunRecord::read(&out).map_err(|error| failed(error.to_string()))?;
        if record.stopped.is_some() {
            // A signal to all of us: it has not gone to its end.
            return Err(SweepError::Stopped);
        }
        if record.machine.ranks as usize != point.ranks {
            return Err(SweepError::Run {
                what: format!(
                    "a run was to have {} ranks and had {}: does --launch start as many as {{}} says, and was this program built with MPI?",
                    point.ranks, record.machine.ranks
                ),
                code: 2,
            });
        }
        measured(&record).ok_or_else(|| failed(format!("{} has no times", out.shown())))
    }
}

/// The times of a run and its counts, over the steps taken.
fn measured(record: &RunRecord) -> Option<Measured> {
    let mut all = Measured::default();
    for (time, phase) in all.phases.iter_mut().zip(&record.phases) {
        *time = 1e9 * phase.max_s;
    }
    all.whole = 1e9 * record.loop_s?;
    let last = record.result.as_ref()?.steps;
    let taken = last.saturating_sub(record.resumed_from.unwrap_or(0));
    all.steps = u32::try_from(taken).ok()?;
    if let Some(of) = &record.balance {
        let moved = record.ranks.iter().map(|rank| rank.tasks_in);
        let moved = moved.fold(0, u64::saturating_add);
        all.tests = Some(of.tests);
        all.balance = [of.tasks, of.splits, of.steal_requests, of.steals, moved].map(Some);
    }
    Some(all)
}

/// Removes the run in a directory, if there is one.
fn discard(out: &Path) -> Result<(), OutputError> {
    let destination = Destination::look(out)?;
    if destination.holds_run() {
        destination.overwrite()?;
    }
    Ok(())
}
