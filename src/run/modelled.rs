//! Whole steps on virtual ranks of a modelled machine: what a replay is held against.
//!
//! Everything is computed, every message is sent; only the clocks of the ranks are made by prices instead of the time that things take
//! here. Same scene, same prices, same seed: same times, to the ns.

use std::ops::RangeInclusive;
use std::time::Duration;

use weft_runtime::ScopeOptions;
use weft_runtime::comm::Comm;
use weft_runtime::comm::virtual_time::{Computation, VirtualOptions, launch};
use weft_study::prices::Prices;
use weft_study::replay::Machine;

use super::{RunError, VIRTUAL_STACK};
use crate::output::Checkpoint;
use crate::step::{PHASES, Simulation, World};

/// What a step took on a modelled machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelledStep {
    /// Its number, from 1.
    pub number: u64,
    /// Of each phase, the slowest rank's time in ns.
    pub phases: [u64; PHASES.len()],
    /// The whole step: the slowest rank's time in ns.
    pub whole: u64,
    /// ns that collision tasks charged.
    pub charged: u64,
    /// Tasks run, splits, tasks that moved.
    pub tasks: [u64; 3],
}

/// Takes steps on so many virtual ranks and returns what those in `steps` took, in order.
///
/// # Errors
/// What goes wrong in a step; more ranks than patches.
pub fn run_modelled(
    world: &World,
    start: Option<&Checkpoint>,
    steps: RangeInclusive<u64>,
    ranks: usize,
    machine: &Machine,
    prices: &Prices,
) -> Result<Vec<ModelledStep>, RunError> {
    let options = VirtualOptions {
        network: machine.network,
        computation: Computation::Modelled { unit: Duration::from_nanos(1) },
        seed: machine.seed,
        stack: VIRTUAL_STACK,
        ..VirtualOptions::default()
    };
    let scope = ScopeOptions {
        policy: machine.policy,
        seed: machine.seed,
        watch: None,
        ..ScopeOptions::default()
    };
    let body = |comm: &mut dyn Comm| -> Result<Vec<ModelledStep>, RunError> {
        let mut simulation = Simulation::new(world, &*comm, &scope)?;
        if let Some(checkpoint) = start {
            simulation.restore(&checkpoint.state)?;
        }
        let mut taken = Vec::new();
        while simulation.step() < *steps.end() {
            let counts = steps.contains(&(simulation.step() + 1));
            simulation.price(counts.then_some(*prices));
            let report = simulation.advance(comm)?;
            if counts {
                let phases = report.times.map(|time| time.as_nanos() as u64);
                taken.push(ModelledStep {
                    number: simulation.step(),
                    phases,
                    whole: phases.iter().sum(),
                    charged: report.scope.work,
                    tasks: [report.scope.tasks, report.scope.splits, report.scope.tasks_in],
                });
            }
        }
        Ok(taken)
    };
    let mut all: Vec<ModelledStep> = Vec::new();
    let mut failure: Option<RunError> = None;
    for outcome in launch(ranks, &options, body)?.results {
        match outcome {
            Ok(steps) if all.is_empty() => all = steps,
            Ok(steps) => {
                for (all, step) in all.iter_mut().zip(steps) {
                    all.add(&step);
                }
            }
            Err(error) if failure.as_ref().is_none_or(RunError::is_echo) => failure = Some(error),
            Err(_) => {}
        }
    }
    failure.map_or(Ok(all), Err)
}

impl ModelledStep {
    /// Takes in what another rank saw of the same step.
    fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.phases.iter_mut().zip(other.phases) {
            *mine = theirs.max(*mine);
        }
        self.whole = self.whole.max(other.whole);
        self.charged += other.charged;
        for (mine, theirs) in self.tasks.iter_mut().zip(other.tasks) {
            *mine += theirs;
        }
    }
}
