//! Recording a run: the shape and cost of some of its steps, for `weft study` to replay.
//!
//! A record holds all of its steps, or a study does not take it. A recording that was stopped goes
//! on from a state before the first of them; the run keeps a state that is early enough for
//! forecasts to become the same again.

use std::time::Duration;

use weft_study::record::{RecordError, RecordWriter};
use weft_study::warm_up::WARM_UP_STEPS;

use super::RunError;
use super::pace::Decision;
use super::profile::{Profile, header};
use super::trace_steps::TraceSteps;
use crate::output::RunDirectory;
use crate::scene::Scene;
use crate::step::{Simulation, StepReport, World};

/// The number of steps that are recorded if no others are asked for: the last ones, in which most
/// collisions are.
const LAST: u64 = 8;
/// The name of the record in the output directory.
pub const RECORD_FILE: &str = "record.weftrec";

/// The number of steps before the first one in the record that a restart has to take: forecasts are
/// made anew every eight steps, from the last costs.
const SETTLING_STEPS: u64 = 16;

/// The last step from whose state a recording can still go on: so long before the first recorded
/// step that forecasts are as good as in a run from the start. `steps` and `wanted` are those of
/// [`RunOptions`](super::RunOptions).
///
/// # Errors
/// [`RunError::NothingToTrace`]: the run has none of these steps.
pub fn last_restart(
    scene: &Scene,
    steps: Option<u64>,
    wanted: Option<TraceSteps>,
) -> Result<u64, RunError> {
    let steps = steps.unwrap_or_else(|| scene.time.steps());
    let from = recorded(wanted, steps).from();
    if from > steps {
        return Err(RunError::NothingToTrace { from, steps });
    }
    Ok(restart(from))
}

/// The last step from which a record can be made whose steps count from this one on.
fn restart(from: u64) -> u64 {
    from.saturating_sub(1 + WARM_UP_STEPS + SETTLING_STEPS)
}

/// The steps that are recorded of a run that ends with step `last`.
fn recorded(wanted: Option<TraceSteps>, last: u64) -> TraceSteps {
    let from = last.saturating_sub(LAST - 1).max(1);
    wanted.unwrap_or_else(|| TraceSteps::between(from, last))
}

/// A record that is being made.
#[derive(Debug)]
pub(super) struct Recorder {
    steps: TraceSteps,
    writer: RecordWriter,
    profile: Option<Profile>,
    /// The last step before the run began, the last that it was to take, and the last that it took.
    began: u64,
    last: u64,
    at: u64,
}

impl Recorder {
    /// Begins a record of the steps that are wanted, of a run from the end of step `began` to the
    /// end of step `last`; if none are wanted, of the last steps.
    pub(super) fn start(
        world: &World,
        wanted: Option<TraceSteps>,
        directory: &RunDirectory,
        (began, last): (u64, u64),
    ) -> Result<Self, RunError> {
        let (temporary, path) = directory.temporary(RECORD_FILE)?;
        Ok(Self {
            steps: recorded(wanted, last),
            writer: RecordWriter::begin(temporary, &path, &header(world))?,
            profile: None,
            began,
            last,
            at: began,
        })
    }

    /// Profiles the next step if it is to be recorded.
    pub(super) fn before(
        &mut self,
        simulation: &mut Simulation<'_>,
        clock: &dyn Fn() -> Duration,
    ) -> Result<(), RunError> {
        let next = simulation.step() + 1;
        if self.steps.contains(next) || self.leads(next) {
            let profile = Profile::of_next(simulation, clock).map_err(RunError::Record)?;
            self.profile = Some(profile);
        }
        Ok(())
    }

    /// Whether a step belongs to the warm-up.
    fn leads(&self, step: u64) -> bool {
        let from = self.steps.from();
        (from.saturating_sub(WARM_UP_STEPS)..from).contains(&step)
    }

    /// Writes the step that was taken, if it is to be recorded.
    pub(super) fn after(
        &mut self,
        report: &StepReport,
        simulation: &mut Simulation<'_>,
        clock: &dyn Fn() -> Duration,
    ) -> Result<(), RecordError> {
        self.at = simulation.step();
        let Some(profile) = self.profile.take() else {
            return Ok(());
        };
        let step = profile.complete(report, simulation, clock);
        match self.leads(simulation.step()) {
            true => self.writer.warm_up_step(&step),
            false => self.writer.step(&step),
        }
    }

    /// Makes a run with checkpoints keep the state from which the record can be made once more, in
    /// place of later ones.
    pub(super) fn keep_restart(&self, step: u64, checkpoints: bool, decision: &mut Decision) {
        let restart = restart(self.steps.from());
        if step == restart && checkpoints {
            decision.checkpoint = true;
        } else if step > restart && step < self.steps.from() + LAST && decision.stop.is_none() {
            decision.checkpoint = false;
        }
    }

    /// Completes the file. If the run was stopped before the first step that counts there is none.
    /// Returns what a reader must know that it lacks.
    pub(super) fn finish(self) -> Result<Option<String>, RecordError> {
        let lacking = self.lacking();
        match self.writer.steps() {
            0 => self.writer.abandon()?,
            _ => drop(self.writer.finish()?),
        }
        Ok(lacking)
    }

    /// A sentence on the missing steps, and on how they come into a record.
    fn lacking(&self) -> Option<String> {
        let from = self.steps.from();
        let to = self.last.min(self.steps.to());
        let (first, last) = (from.max(self.began + 1), to.min(self.at));
        let cure = match restart(from) {
            0 => "start it anew".to_owned(),
            step => format!("start it anew, or go on from a checkpoint of step {step} or before"),
        };
        if last < first {
            return Some(format!(
                "there is no record: the run has taken none of the steps {from} to {to}; {cure}"
            ));
        }
        if (first, last) != (from, to) {
            return Some(format!(
                "the record has only steps {first} to {last} of {from} to {to}; to record all of them, {cure}"
            ));
        }
        let lead = from.saturating_sub(WARM_UP_STEPS).max(1);
        (self.began >= lead).then(|| {
            format!(
                "the record lacks steps {lead} to {} of the warm-up, so that replays would make forecasts from the very steps that they forecast: {cure}",
                self.began
            )
        })
    }
}
