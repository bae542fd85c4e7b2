//! Recording a run: the shape and cost of some of its steps, for `weft study` to replay.

use std::time::Duration;

use weft_study::record::{RecordError, RecordWriter};

use super::RunError;
use super::tracing::TraceSteps;
use crate::output::RunDirectory;
use crate::step::{Simulation, StepReport, Tested, World, header};

/// Steps that are recorded if nobody says which: the last, where most collisions are.
const LAST: u64 = 8;
/// The record in the output directory.
pub const RECORD_FILE: &str = "record.weftrec";

/// A record under way.
#[derive(Debug)]
pub(super) struct Recorder {
    steps: TraceSteps,
    writer: RecordWriter,
    tested: Option<Tested>,
}

impl Recorder {
    /// Begins a record of these steps; of the last of so many, if none are named.
    pub(super) fn start(
        world: &World,
        wanted: Option<TraceSteps>,
        directory: &RunDirectory,
        last: u64,
    ) -> Result<Self, RecordError> {
        let from = last.saturating_sub(LAST - 1).max(1);
        Ok(Self {
            steps: wanted.unwrap_or_else(|| TraceSteps::between(from, last)),
            writer: RecordWriter::create(&directory.file(RECORD_FILE), &header(world))?,
            tested: None,
        })
    }

    /// Before a step: makes its tests if it is to be recorded.
    pub(super) fn before(
        &mut self,
        simulation: &mut Simulation<'_>,
        clock: &dyn Fn() -> Duration,
    ) -> Result<(), RunError> {
        if self.steps.contains(simulation.step() + 1) {
            self.tested = Some(simulation.make_tests(clock).map_err(RunError::Record)?);
        }
        Ok(())
    }

    /// After it.
    pub(super) fn after(
        &mut self,
        report: &StepReport,
        simulation: &mut Simulation<'_>,
        clock: &dyn Fn() -> Duration,
    ) -> Result<(), RecordError> {
        let Some(tested) = self.tested.take() else {
            return Ok(());
        };
        self.writer
            .step(&tested.complete(report, simulation, clock))
    }

    /// Completes the file; how many steps it holds.
    pub(super) fn finish(self) -> Result<usize, RecordError> {
        let steps = self.writer.steps();
        self.writer.finish()?;
        Ok(steps)
    }
}
