//! Whole steps on virtual ranks of a modelled machine: what a replay is held against.
//!
//! Everything is computed, every message is sent; only the clocks of the ranks are made by prices
//! instead of the time that things take here. Same scene, same prices, same seed: same times, to
//! the ns.

use std::ops::RangeInclusive;
use std::time::Duration;

use weft_balance::cost_model::CostModel;
use weft_balance::prices::Prices;
use weft_runtime::ScopeOptions;
use weft_runtime::comm::Comm;
use weft_runtime::comm::virtual_time::{Computation, VirtualOptions, launch};
use weft_study::replay::Machine;

use super::RunError;
use super::options::VIRTUAL_STACK;
use crate::step::{PHASES, SavedState, Simulation, World};

/// The cost of a step on a modelled machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelledStep {
    /// Its number, from 1.
    pub number: u64,
    /// The slowest rank's time in each phase in ns.
    pub phases: [u64; PHASES.len()],
    /// The whole step: the slowest rank's time in ns.
    pub whole: u64,
    /// The time in ns that collision tasks charged.
    pub charged: u64,
    /// Tasks run, splits, tasks that moved.
    pub tasks: [u64; 3],
}

/// A record's prices as whole runs charge them: what else responds by the pass of corrections. In a
/// record that is of whole steps, which took this many passes each.
#[must_use]
pub fn by_pass(prices: &Prices, passes: &[u32]) -> Prices {
    let all: u64 = passes.iter().copied().map(u64::from).sum();
    let share = if all > 0 {
        passes.len() as f64 / all as f64
    } else {
        1.0
    };
    Prices {
        respond: prices.respond * share,
        ..*prices
    }
}

/// Takes steps from a state or from time 0 on this many virtual ranks, at such prices
/// ([`by_pass`]), and returns what those in `steps` took, in order.
///
/// # Errors
/// What goes wrong in a step; more ranks than patches.
pub fn run_modelled(
    world: &World,
    start: Option<&SavedState>,
    steps: RangeInclusive<u64>,
    ranks: usize,
    machine: &Machine,
    prices: &Prices,
) -> Result<Vec<ModelledStep>, RunError> {
    let options = VirtualOptions {
        network: machine.network,
        computation: Computation::Modelled {
            unit: Duration::from_nanos(1),
        },
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
        if let Some(state) = start {
            simulation.restore(state)?;
        }
        let mut taken = Vec::new();
        while simulation.step() < *steps.end() {
            let counts = steps.contains(&(simulation.step() + 1));
            // From the beginning: forecasts are made of what tests have cost.
            simulation.run_on(CostModel::modelled(prices));
            let report = simulation.advance(comm)?;
            if counts {
                let phases = report.times.map(|time| time.as_nanos() as u64);
                taken.push(ModelledStep {
                    number: simulation.step(),
                    phases,
                    whole: phases.iter().sum(),
                    charged: report.scope.work,
                    tasks: [
                        report.scope.tasks,
                        report.scope.splits,
                        report.scope.tasks_in,
                    ],
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use weft_balance::prices::TestPrices;
    use weft_runtime::Policy;
    use weft_runtime::comm::solo::Solo;
    use weft_runtime::comm::virtual_time::Network;
    use weft_study::bounds::bounds;
    use weft_study::layout::Layout;
    use weft_study::record::Record;
    use weft_study::replay::{Left, replay};
    use weft_study::warm_up::warmed_up;

    use super::*;
    use crate::memory::Limit;
    use crate::run::{Begun, Driver, RECORD_FILE, RunOptions, Show, Stop, TraceSteps, run};
    use crate::scene::Scene;

    /// A replay's collision phase takes what that of the whole run takes, within this share of it:
    /// whose contacts a part of a top-level test finds is not in a record.
    const COLLIDE: f64 = 0.05;
    /// And its whole steps: what strain limits add to impulses is not in a record.
    const STEP: f64 = 0.06;

    /// The prices of one core of 2026, in ns. Measured ones differ from run to run, and with them
    /// who steals what.
    const PRICES: Prices = Prices {
        cloth: TestPrices {
            volumes: 41.0,
            leaf: 96.0,
            near: 12.0,
            contact: 40.0,
        },
        body: TestPrices {
            volumes: 33.0,
            leaf: 103.0,
            near: 0.0,
            contact: 509.0,
        },
        target: 235.0,
        corner: 5.0,
        begin: 400.0,
        vertex: 18.0,
        way: 12.0,
        measure: 30.0,
        node: 40.0,
        touched: 0.0,
        gradient: 54.0,
        separation: 10_643.0,
        contact: 73.0,
        forecast: 40.0,
        shift: 70.0,
        assemble: 11.3,
        product: 1.4,
        coarse_factor: 3804.0,
        coarse_solve: 1210.0,
        row: 13.0,
        respond: 7.3,
        share: 14.7,
    };

    fn machine(policy: Policy, seed: u64) -> Machine {
        Machine {
            network: Network::MYRINET_2000,
            policy,
            seed,
            collide_only: false,
            trace: None,
        }
    }

    /// Records the steps in which the napkin of the quick scene folds.
    fn recorded(folder: &Path, scene: &Scene, steps: (u64, u64)) -> Record {
        let options = RunOptions {
            ranks: 1,
            threads: 1,
            progress_thread: false,
            driver: Driver::Solo,
            memory: Limit::Left,
            steps: Some(steps.1),
            out: folder.join("run"),
            resume: None,
            overwrite: true,
            stop: Stop::before(None),
            trace: None,
            record: Some(Some(TraceSteps::between(steps.0, steps.1))),
            audit: None,
            progress: Show::Nothing,
            command: Vec::new(),
            hosts: Vec::new(),
            mpi: None,
            begun: Begun::default(),
        };
        run(scene, &options).unwrap();
        Record::open(&folder.join("run").join(RECORD_FILE)).unwrap()
    }

    fn scene(name: &str) -> Scene {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("scenes/{name}.toml"));
        let keys = ["output.frames", "output.pictures", "output.checkpoints"];
        let overrides: Vec<_> = keys
            .iter()
            .map(|key| ((*key).to_owned(), "false".to_owned()))
            .collect();
        Scene::load(&path, &overrides).unwrap()
    }

    /// The state some steps before these, in which ranks make three plans: what they did earlier no
    /// plan knows any more.
    fn some_steps_before(world: &World, steps: (u64, u64)) -> SavedState {
        const PLANNED: u64 = 24;
        let mut comm = Solo::new();
        let mut simulation = Simulation::new(world, &comm, &ScopeOptions::default()).unwrap();
        while simulation.step() < steps.0 - 1 - PLANNED {
            simulation.advance(&mut comm).unwrap();
        }
        simulation.gather_state(&mut comm).unwrap().unwrap()
    }

    /// Replays against whole runs of the same steps; what one rank takes in all.
    fn agrees(scene: &Scene, steps: (u64, u64), many: &[usize], policies: &[Policy]) {
        let folder = tempfile::tempdir().unwrap();
        let mut record = recorded(folder.path(), scene, steps);
        let world = World::build(scene).unwrap();
        let start = some_steps_before(&world, steps);
        assert!(record.end().prices.product > 0.0);
        let prices = PRICES;
        let passes: Vec<u32> = (0..record.steps())
            .map(|index| record.step(index).unwrap().passes)
            .collect();
        let charged = by_pass(&prices, &passes);
        let header = record.header().clone();
        let mut alone = 0;
        for &ranks in many {
            for &policy in policies {
                let (mut collide, mut whole) = ([0, 0], [0, 0]);
                // A tenth of a step's collisions is chance in who steals what, which evens out over
                // seeds. Two ranks have no choice.
                let seeds = if policy.steal && ranks > 2 { 4 } else { 1 };
                for seed in 0..seeds {
                    let machine = machine(policy, seed);
                    let (counted, start) = (steps.0..=steps.1, Some(&start));
                    let full = run_modelled(&world, start, counted, ranks, &machine, &charged);
                    let full = full.unwrap();
                    let layout = Layout::new(&header, ranks).unwrap();
                    let (of, on) = ((&header, &layout), (&prices, &machine));
                    let mut left = warmed_up(&mut record, 1, of, on).unwrap();
                    for (index, full) in full.iter().enumerate() {
                        let step = record.step(index).unwrap();
                        assert_eq!(step.number, full.number);
                        let again = |left: &Left| {
                            replay(&header, &layout, &step, &prices, &machine, left)
                                .unwrap()
                                .0
                        };
                        let times = again(&left);
                        // Same record, same machine, same seed: the same to the ns.
                        assert_eq!(times, again(&left));
                        assert_eq!(times.tests, step.counts().tests());
                        assert_eq!(times.contacts, step.counts().contacts);
                        if policy == Policy::STATIC {
                            // Nothing is left to chance: the same tasks charge the same, but for
                            // rounding.
                            let off = times.charged.abs_diff(full.charged);
                            assert!(
                                off <= full.tasks[0],
                                "{} and {} ns",
                                times.charged,
                                full.charged
                            );
                        }
                        let of = (&machine.policy, &machine.network);
                        let bounds = bounds(&header, &layout, &step, &prices, of, &left);
                        assert!(
                            times.phases[0] as f64 >= 0.999 * bounds.time(),
                            "{bounds:?}"
                        );
                        collide[0] += times.phases[0];
                        collide[1] += full.phases[0];
                        whole[0] += times.whole;
                        whole[1] += full.whole;
                        left = times.left;
                    }
                }
                let off = |[replayed, full]: [u64; 2]| replayed as f64 / full as f64 - 1.0;
                let (collide_off, whole_off) = (off(collide), off(whole));
                let at = format!(
                    "{ranks} ranks, {:?}: {collide_off:+.4} {whole_off:+.4}",
                    policy.split
                );
                assert!(collide_off.abs() <= COLLIDE, "collide, {at}");
                assert!(whole_off.abs() <= STEP, "steps, {at}");
                if ranks == 1 {
                    alone = whole[0];
                }
                // No speed-up beyond the number of ranks.
                assert!(whole[0] * ranks as u64 >= alone * seeds, "{at}");
            }
        }
    }

    #[test]
    fn a_replay_agrees_with_the_run_that_it_stands_for() {
        let policies = [
            Policy::STATIC,
            Policy::EVERY_OTHER,
            Policy::FORECAST_STATIC,
            Policy::FORECAST,
        ];
        agrees(&scene("quick"), (160, 175), &[1, 2, 4, 8], &policies);
    }

    /// Nearly all tests are of four patches, which ranks share by forecasts that are some steps
    /// old: a napkin falls. Plans made of the recorded steps themselves would be better than those
    /// of the run, and collisions 6 % too fast on as many ranks as there are patches.
    #[test]
    fn a_replay_agrees_where_forecasts_are_behind() {
        let policies = [Policy::FORECAST_STATIC];
        agrees(&scene("one-sided"), (105, 120), &[8, 32], &policies);
    }

    #[test]
    fn a_modelled_run_is_the_same_each_time() {
        let scene = scene("quick");
        let world = World::build(&scene).unwrap();
        let prices = Prices {
            vertex: 50.0,
            product: 3.0,
            ..Prices::default()
        };
        let machine = machine(Policy::PAPER, 3);
        let once = || run_modelled(&world, None, 2..=3, 4, &machine, &prices).unwrap();
        let first = once();
        assert_eq!(first.len(), 2);
        assert_eq!(first, once());
    }
}
