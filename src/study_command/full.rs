//! Points of a study that are whole runs on virtual ranks, with the prices of a record: `--full`.

use weft_balance::prices::Prices;
use weft_study::plan::{Plan, Point};
use weft_study::sweep::{Label, Measured, Replayed, Source, SweepError};
use weftwork::output::Checkpoint;
use weftwork::run::{by_pass, run_modelled};
use weftwork::step::World;

/// A scene that is simulated whole, on virtual ranks of a modelled machine.
pub(super) struct Full {
    pub(super) label: Label,
    pub(super) digest: String,
    pub(super) prices: Prices,
    /// Passes of corrections of the record's steps.
    pub(super) passes: Vec<u32>,
    /// The record, for what bounds its times.
    pub(super) replayed: Replayed,
    pub(super) world: World,
    pub(super) start: Option<Checkpoint>,
    /// First and last that count.
    pub(super) steps: (u64, u64),
}

impl Source for Full {
    fn label(&self) -> &Label {
        &self.label
    }

    fn digest(&self) -> String {
        format!("full, responding by passes {}", self.digest)
    }

    fn measure(&self, point: &Point, plan: &Plan) -> Result<Measured, SweepError> {
        let prices = by_pass(&plan.priced(&self.prices), &self.passes);
        let machine = plan.machine(point)?;
        let (first, last) = self.steps;
        let start = self.start.as_ref().map(|checkpoint| &checkpoint.state);
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
        // The record knows its lower bounds; the computing time of its ranks is not counted.
        let mut all = Measured {
            least: self.replayed.measure(point, plan)?.least,
            ..Measured::default()
        };
        let mut counts = [0; 3];
        for step in steps {
            all.add_step(step.phases, step.whole);
            for (sum, count) in counts.iter_mut().zip(step.tasks) {
                *sum += count;
            }
        }
        let [tasks, splits, moved] = counts.map(Some);
        all.balance = [tasks, splits, None, None, moved];
        Ok(all)
    }
}
