//! A recorded step on virtual ranks.
//!
//! The collision phase is played: the scheduler of [`weft_runtime`] runs on every rank, with its
//! policy, over a modelled network, and its tasks walk recorded trees. The other phases, in which
//! nothing is decided, are computed ([`clocks`](self)): who computes how long follows from the
//! layout, who sends what to whom too. Same record, same machine, same seed: same times, to the ns.
//!
//! A replay leaves out caches, memory bandwidth, anything that other programs do, and rows of
//! impulses that strain limits add (their cost is in what else responds, evenly). Prices are those
//! of one rank.

mod clocks;
mod tests_task;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use thiserror::Error;
use weft_balance::assignment::Assignment;
use weft_balance::bound_owner::BoundOwners;
use weft_balance::cost::{Against, CostReport, PartCost, RankWork};
use weft_balance::cost_model::Work;
use weft_balance::forecast::Forecast;
use weft_balance::part::Part;
use weft_balance::preparation::{EarlyPreparation, begin_cost, prepares_early};
use weft_balance::prices::{Prices, worth_taking_in};
use weft_balance::separation::prices_on;
use weft_balance::work::separation_work;
use weft_runtime::comm::threads::LaunchError;
use weft_runtime::comm::virtual_time::{Computation, Network, VirtualOptions, launch};
use weft_runtime::comm::{Comm, Rank};
use weft_runtime::trace::Trace;
use weft_runtime::{Policy, Registry, ScopeError, ScopeOptions, ScopeReport, scope};

use self::clocks::Clocks;
use self::tests_task::{Env, Tests};
use crate::PHASES;
use crate::layout::{Layout, ROOT_BYTES};
use crate::record::{Header, Step, Task};

/// Bytes of a vertex in an exchange of the solve.
const VECTOR: u64 = 24;
/// Bytes of a vertex in a round of impulses: a velocity and how it gives way.
const PARTICIPANT: u64 = 96;
/// Bytes of a rank's partial sum of the three scalar products of an iteration.
const PARTIAL: u64 = 24;
/// Bytes of a number that is not rounded, and of a coarse unknown.
const NUMBER: u64 = 8;
const SIX: u64 = 6 * NUMBER;
/// Bytes in which ranks agree that nothing is wrong.
const AGREED: u64 = 2;
/// Residuals that are measured where a solve starts: with its prescribed changes alone, and from
/// where it starts.
const START_GATHERS: u32 = 2;
/// Products that the first solve of a step begins with, and a further one: the prescribed changes,
/// and the vectors along which it starts.
const STARTS: [u32; 2] = [3, 2];
/// Bytes of what a top-level test cost, as ranks tell each other.
const SPENT: u64 = 16;
/// Bytes of what a rank did of its own tests; 12 more for each that it has stolen from are
/// neglected.
const DID: u64 = 25;
/// Plans of where tests are forked that precede the first recorded step.
const PLANS_BEFORE: usize = 6;
/// Stack of a rank in bytes.
const STACK: usize = 64 << 10;

/// The machine on which a record is replayed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machine {
    /// The cost of messages.
    pub network: Network,
    /// How ranks share tests.
    pub policy: Policy,
    /// Seed of the choice of victims.
    pub seed: u64,
    /// Whether only collisions are of interest.
    pub collide_only: bool,
    /// Events to keep of each rank's collision phase.
    pub trace: Option<usize>,
}

/// The cost of a step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepTimes {
    /// The slowest rank's time of each phase, in ns.
    pub phases: [u64; PHASES.len()],
    /// The time that all ranks computed in each phase, in ns; the rest of their time they talked or
    /// waited.
    pub computed: [u64; PHASES.len()],
    /// The whole step: the slowest rank's time in ns.
    pub whole: u64,
    /// The computing time in ns of the collision phase on the rank that did most.
    pub heaviest: u64,
    /// Tests made.
    pub tests: u64,
    /// Contacts found.
    pub contacts: u64,
    /// The time that tasks charged, in ns.
    pub charged: u64,
    /// Tasks run, pieces included.
    pub tasks: u64,
    /// Splits.
    pub splits: u64,
    /// Requests, and those that brought tasks.
    pub requests: [u64; 2],
    /// Tasks that moved.
    pub moved: u64,
    /// Messages and bytes of the collision phase's scope.
    pub traffic: [u64; 2],
    /// The state that the next step finds.
    pub left: Left,
}

/// The state that a step leaves to the next one; nothing before the first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Left {
    /// The ranks' clocks at the end, less the smallest, in ns.
    pub skew: Vec<u64>,
    /// The cost reports of each rank about its tests.
    pub cost_reports: Vec<CostReport>,
    /// The plan that holds, and its inputs, if tests are forked by forecast.
    pub plan: Option<(Assignment, Forecast)>,
}

impl Left {
    /// The state of a run before its first recorded step: where tests are forked by forecast, ranks
    /// have planned before, and have seen how long their work takes.
    ///
    /// # Errors
    /// As [`replay`].
    pub fn before(
        header: &Header,
        layout: &Layout,
        first: &Step,
        prices: &Prices,
        machine: &Machine,
    ) -> Result<Self, ReplayError> {
        let mut left = Self::default();
        if machine.policy.forecast && layout.ranks.len() > 1 {
            let first = Step {
                plans: true,
                ..first.clone()
            };
            for _ in 0..PLANS_BEFORE {
                left = replay(header, layout, &first, prices, machine, &left)?
                    .0
                    .left;
            }
            left.skew.clear();
        }
        Ok(left)
    }
}

/// The reason why a step could not be replayed.
#[derive(Debug, Error)]
pub enum ReplayError {
    /// Virtual ranks could not run.
    #[error("virtual ranks cannot be run: {0}")]
    Launch(#[from] LaunchError),
    /// The runtime failed.
    #[error("the runtime failed in a replay: {0}")]
    Scope(#[from] ScopeError),
}

/// Replays a step after what the one before has left. Second, the traces, if asked for.
///
/// # Errors
/// More ranks than there is memory for, or an error in the runtime.
pub fn replay(
    header: &Header,
    layout: &Layout,
    step: &Step,
    prices: &Prices,
    machine: &Machine,
    left: &Left,
) -> Result<(StepTimes, Vec<Trace>), ReplayError> {
    let ranks = layout.ranks.len();
    let prices = &prices_on(&header.tiles, header.around(), prices, ranks);
    let plan = assignment(header, layout, step, (&machine.policy, left));
    let assignment = plan.as_ref().map(|(assignment, _)| assignment);
    let mut forks = match assignment {
        Some(assignment) => layout.assigned(step, assignment),
        None => layout.forks(step),
    };
    if let Some(assignment) = assignment.filter(|_| !machine.policy.steal) {
        for forks in &mut forks {
            assignment.small_first(forks, |&(number, _)| {
                let task = &step.tasks[number as usize];
                (task.patch, task.against)
            });
        }
    }
    // The bytes in which ranks report the costs of the last step.
    let reported = |rank: usize| match assignment {
        Some(assignment) if step.plans => SPENT * assignment.known_tests(rank).len() as u64,
        Some(_) => DID,
        _ => 0,
    };
    let planned = match assignment {
        Some(_) if step.plans => prices.cost(Work::Assignment {
            tests: step.forecast.len(),
        }),
        Some(_) => prices.cost(Work::BoundaryMove { ranks }),
        None => 0,
    };
    let targets = |rank: usize| match assignment {
        Some(assignment) => {
            layout.targets(assignment.patches(rank).len() as u64)
                + assignment.known_tests(rank).len() as u64
        }
        None => layout.ranks[rank].targets,
    };
    let options = ScopeOptions {
        policy: machine.policy,
        seed: machine.seed,
        trace: machine.trace,
        watch: None,
        ..ScopeOptions::default()
    };
    let virtual_ranks = VirtualOptions {
        network: machine.network,
        computation: Computation::Modelled {
            unit: Duration::from_nanos(1),
        },
        seed: machine.seed,
        stack: STACK,
        ..VirtualOptions::default()
    };
    let start = |rank: usize| left.skew.get(rank).copied().unwrap_or_default();
    let starts: Vec<u64> = (0..ranks).map(start).collect();
    let mut clocks = Clocks::new(starts.clone(), &machine.network);
    let before = (left.plan.as_ref()).filter(|_| assignment.is_some());
    let before = before.map(|(before, _)| before);
    let bound_owners = BoundOwners::new(layout.ownership(), before);
    let making = |rank: usize| making((header, layout), &bound_owners, prices, rank);
    // While messages are under way, each makes ready what it tests whole.
    let mut tests_itself = vec![false; header.patches.len()];
    for task in &step.tasks {
        tests_itself[task.patch as usize] |= task.against == Against::Itself;
    }
    let whole = |rank: usize| match before {
        _ if !prepares_early(ranks) => Vec::new(),
        Some(before) => before.tested_whole(rank),
        None => {
            let own = layout.ownership().patches(rank);
            own.filter(|&patch| tests_itself[patch]).collect()
        }
    };
    let reads = |patch: usize| &header.patches[patch].sizes;
    let early: Vec<EarlyPreparation> = (0..ranks)
        .map(|rank| {
            EarlyPreparation::new(
                whole(rank),
                |patch| bound_owners.owns(rank, patch),
                reads,
                prices,
            )
        })
        .collect();
    clocks.compute(|rank| making(rank)[0]);
    let cells = clocks.send_to_neighbours(&layout.cells, 1);
    clocks.compute(|rank| making(rank)[1]);
    let made = clocks.compute_until(&cells, |rank| &early[rank].costs);
    clocks.take_posted(cells);
    clocks.compute(|rank| making(rank)[2]);
    let blocks = |rank: usize| {
        let roots = ROOT_BYTES * bound_owners.patches(rank).len() as u64;
        roots + layout.ranks[rank].separation_bytes + reported(rank)
    };
    let under_way = clocks.begin_allgather(blocks);
    clocks.compute(|rank| early[rank].cost() - made[rank]);
    clocks.finish_gather(under_way, blocks);
    // The ranks that make the tests, and where these begin.
    let missed = layout.missed(step, assignment);
    let beginning = |rank: usize| {
        let tasks = (forks[rank].iter()).map(|&(number, _)| &step.tasks[number as usize]);
        let pairs = (tasks.filter_map(Task::pair)).chain(missed[rank].iter().copied());
        begin_cost(pairs, reads, prices)
    };
    let beginning: Vec<u64> = (0..ranks).map(beginning).collect();
    let looked = |rank: usize| {
        planned
            + prices.cost(Work::Targets {
                count: targets(rank),
            })
            + beginning[rank]
    };
    clocks.compute(looked);
    let begins = clocks.now;
    let body = |comm: &mut dyn Comm| {
        let rank = comm.rank().index();
        comm.compute(begins[rank], Duration::ZERO);
        let env = Env {
            header,
            step,
            prices,
            bound_owners: &bound_owners,
            alone: ranks == 1,
            ready: early[rank].ready(header.patches.len(), reads),
            layout,
            me: rank,
            tally: [const { AtomicU64::new(0) }; 3],
            own: AtomicU64::new(0),
            costs: Mutex::default(),
        };
        play(comm, &env, &forks[rank], &options)
    };
    let outcome = launch(ranks, &virtual_ranks, body)?;
    let mut times = StepTimes {
        traffic: [outcome.messages, outcome.bytes],
        ..StepTimes::default()
    };
    let held = layout.contacts(step);
    let (mut ends, mut traces) = (Vec::with_capacity(ranks), Vec::new());
    let mut unsorted = Vec::with_capacity(ranks);
    for (rank, played) in outcome.results.into_iter().enumerate() {
        let Played {
            end,
            tally,
            costs,
            sorted,
            sorting,
            mut report,
        } = played?;
        let others = (sorted as u64).min(held[rank]);
        let left_over = [held[rank] - others, others];
        unsorted.push(left_over);
        times.computed[0] += sorting;
        ends.push(end.as_nanos() as u64);
        let made: u64 = making(rank).iter().sum();
        let made = made + early[rank].cost();
        let own = made + looked(rank) + tally[2];
        times.heaviest = times.heaviest.max(own);
        times.computed[0] += own;
        times.tests += tally[0];
        times.contacts += tally[1];
        times.charged += tally[2];
        let mut cost_report = left.cost_reports.get(rank).cloned().unwrap_or_default();
        if step.plans {
            cost_report.restart();
        }
        // As much as when its tests make all of it ready, and find where they begin.
        let busy = tally[2] + early[rank].cost() + beginning[rank];
        cost_report.add(costs, busy, sorting + sorted_after(prices, left_over));
        times.left.cost_reports.push(cost_report);
        times.tasks += report.tasks;
        times.splits += report.splits;
        times.requests[0] += report.requests;
        times.requests[1] += report.served;
        times.moved += report.tasks_in;
        traces.extend(report.trace.take());
    }
    let mut clocks = Clocks::new(ends, &machine.network);
    finish(
        &mut clocks,
        &starts,
        (header, layout, step, prices),
        (machine, &held, &unsorted),
        &mut times,
    );
    times.left.plan = plan;
    Ok((times, traces))
}

/// The assignment by which ranks fork a step's tests, after the one before; `None`: each forks its
/// own.
pub(crate) fn assignment(
    header: &Header,
    layout: &Layout,
    step: &Step,
    (policy, left): (&Policy, &Left),
) -> Option<(Assignment, Forecast)> {
    let ranks = layout.ranks.len();
    if !policy.forecast || ranks < 2 || step.forecast.is_empty() {
        return None;
    }
    if let Some((assignment, forecast)) = left.plan.as_ref().filter(|_| !step.plans) {
        let mut assignment = assignment.clone();
        let done = work_done(forecast, &assignment, &left.cost_reports, policy);
        assignment.move_boundaries(done);
        return Some((assignment, forecast.clone()));
    }
    let nodes: Vec<u32> = header
        .patches
        .iter()
        .map(|patch| patch.sizes.nodes)
        .collect();
    let triangles: Vec<u32> = header.tiles.iter().map(|tile| tile.triangles).collect();
    let before_tests = separation_work(&triangles, ranks);
    let assigned = |forecast: &Forecast| match policy.moves_patches {
        true => forecast.assigned_in_patches(&nodes, &before_tests),
        false => forecast.assigned(&nodes, &before_tests),
    };
    let first = Forecast::from_tests(&step.forecast);
    let Some((_, before)) = &left.plan else {
        // Nobody knows who made which of them, nor how fast.
        return Some((assigned(&first), first));
    };
    let forecast = Forecast::new(&left.cost_reports, before, &nodes);
    Some((assigned(&forecast), forecast))
}

/// The cost reports of all ranks about their work under a plan.
fn work_done(
    forecast: &Forecast,
    assignment: &Assignment,
    cost_reports: &[CostReport],
    policy: &Policy,
) -> Vec<RankWork> {
    let of_rank = |reported| assignment.work_done(forecast, reported, policy.steal);
    cost_reports.iter().enumerate().flat_map(of_rank).collect()
}

/// The time in ns that a rank spends on work for all: gradients of its share of the tiles; volumes
/// around the patches that it sees, while others send the cells that it needs beside these;
/// separation bounds of its share of the tiles.
fn making(
    (header, layout): (&Header, &Layout),
    bound_owners: &BoundOwners,
    prices: &Prices,
    rank: usize,
) -> [u64; 3] {
    let work = &layout.ranks[rank].separation;
    let seen = bound_owners.patches(rank).iter();
    let around: u64 = seen
        .map(|&patch| u64::from(header.patches[patch].sizes.around))
        .sum();
    [
        prices.cost(Work::Gradients {
            triangles: work.triangles,
        }),
        prices.cost(Work::BoundingVolumes { vertices: around }),
        prices.cost(Work::SeparationBounds { tiles: work.tiles }),
    ]
}

/// A rank's collision phase up to where its contacts are sorted.
struct Played {
    end: Duration,
    /// Tests, contacts, and ns that its tasks charged.
    tally: [u64; 3],
    costs: Vec<PartCost>,
    /// Contacts that it has put in order while it waited, and how many ns that took.
    sorted: usize,
    sorting: u64,
    report: ScopeReport,
}

fn play(
    comm: &mut dyn Comm,
    env: &Env<'_>,
    forks: &[(u32, Part)],
    options: &ScopeOptions,
) -> Result<Played, ScopeError> {
    let registry = Registry::new().with::<Tests>();
    let (mut waiting, mut sorted, mut sorting) = (0, 0, 0);
    let mut take_in = |comm: &mut dyn Comm, letters: Vec<(Rank, Vec<u8>)>| {
        let bytes: u64 = letters.iter().map(|(_, letter)| letter.len() as u64).sum();
        let come = bytes / u64::from(env.header.contact_bytes.max(1));
        waiting += (come + env.own.swap(0, Ordering::Relaxed)) as usize;
        if worth_taking_in(waiting, sorted) {
            let time = env.prices.cost(Work::Contacts {
                new: waiting,
                ordered: sorted,
            });
            comm.compute(time, Duration::ZERO);
            sorted += std::mem::take(&mut waiting);
            sorting += time;
        }
        Ok(())
    };
    let ((), report) = scope(comm, &registry, env, options, |s| {
        s.meanwhile(&mut take_in);
        let group = s.group();
        for &(number, part) in forks {
            s.fork(&group, Tests::new(number, part, env.step))?;
        }
        s.close();
        while let Some(found) = s.join(&group)? {
            found?;
        }
        Ok(())
    })?;
    let tally = [0, 1, 2].map(|at: usize| env.tally[at].load(Ordering::Relaxed));
    let costs = env
        .costs
        .lock()
        .map(|mut costs| std::mem::take(&mut *costs));
    Ok(Played {
        end: comm.now(),
        tally,
        costs: costs.unwrap_or_default(),
        sorted,
        sorting,
        report,
    })
}

/// Sorting this many contacts beside this many that are in order, in ns.
fn sorted_after(prices: &Prices, [contacts, others]: [u64; 2]) -> u64 {
    let (new, ordered) = (contacts as usize, others as usize);
    prices.cost(Work::Contacts { new, ordered })
}

/// The rest of the step: contacts are sorted, of which each rank has this many `unsorted` beside
/// this many that are in order, and the data-parallel phases follow.
fn finish(
    clocks: &mut Clocks,
    starts: &[u64],
    (header, layout, step, prices): (&Header, &Layout, &Step, &Prices),
    (machine, held, unsorted): (&Machine, &[u64], &[[u64; 2]]),
    times: &mut StepTimes,
) {
    let ranks = layout.ranks.len();
    let weight = |rank: usize| layout.ranks[rank].weight;
    let mut begin = starts.to_vec();
    let mut lap = |clocks: &Clocks, times: &mut StepTimes, phase: usize| {
        let laps = clocks
            .now
            .iter()
            .zip(&begin)
            .map(|(now, begin)| now - begin);
        times.phases[phase] += laps.max().unwrap_or_default();
        begin.clone_from(&clocks.now);
    };
    // A phase's computing, on all ranks.
    let sum = |time: &dyn Fn(usize) -> u64| (0..ranks).map(time).fold(0, u64::saturating_add);

    let sort = |rank: usize| sorted_after(prices, unsorted[rank]);
    clocks.compute(sort);
    times.computed[0] += sum(&sort);
    lap(clocks, times, 0);
    if !machine.collide_only {
        let assemble = |rank: usize| {
            prices.cost(Work::Assembly {
                weight: weight(rank),
            })
        };
        // Implicit Euler's system was assembled while the last state travelled.
        let ahead = ranks > 1 && u64::from(header.state_bytes) == VECTOR;
        if !ahead {
            clocks.compute(assemble);
        }
        clocks.allgather(|_| AGREED);
        times.computed[1] = sum(&assemble);
        lap(clocks, times, 1);

        let coarse = |rank: usize| layout.ranks[rank].coarse;
        let factor = |rank: usize| {
            let share = coarse(rank).factor;
            prices.cost(Work::CoarseFactor { share })
        };
        // The bytes that travel with sums over all vertices: with each partial sum the product that
        // belongs to it.
        let partial = PARTIAL + if header.aggregates > 0 { NUMBER } else { 0 };
        let summed = |bytes: u64| {
            move |rank: usize| partial * layout.ranks[rank].partials + bytes * coarse(rank).sums
        };
        let rows = |rank: usize| NUMBER * coarse(rank).numbers;
        let product = |rank: usize| {
            let share = coarse(rank).solve;
            prices.cost(Work::Product {
                weight: weight(rank),
            }) + prices.cost(Work::CoarseSolve { share })
        };
        let mut left = step.products;
        for system in 0..step.systems {
            let under_way = (header.aggregates > 0).then(|| {
                // Offsets and projections of the halo; then what each rank's own part leaves.
                clocks.exchange(&layout.halo, 3 * VECTOR, |_| 0);
                clocks.begin_allgather(rows)
            });
            let at_once = left.min(STARTS[usize::from(system > 0)]);
            let products = |rank: usize| u64::from(at_once) * product(rank);
            clocks.exchange(&layout.halo, u64::from(at_once) * VECTOR, products);
            left -= at_once;
            if let Some(under_way) = under_way {
                clocks.finish_allgather(under_way, rows);
                // The part that a rank did before the exchange is counted here too.
                clocks.compute(factor);
            }
            for _ in 0..START_GATHERS {
                clocks.allgather_known(summed(SIX));
            }
        }
        for product_left in (0..left).rev() {
            clocks.exchange(&layout.halo, VECTOR, product);
            // The last one gives the residual at the end.
            let bytes = if product_left == 0 {
                SIX
            } else {
                u64::from(header.aggregate_bytes)
            };
            clocks.allgather_known(summed(bytes));
        }
        times.computed[2] =
            u64::from(step.products) * sum(&product) + u64::from(step.systems) * sum(&factor);
        lap(clocks, times, 2);

        let rows = layout.rows(step);
        let respond = |rank: usize| {
            let whole = prices.cost(Work::Response {
                weight: weight(rank),
            });
            whole / u64::from(step.passes.max(1))
        };
        let row = |rank: usize| {
            prices.cost(Work::ImpulseRound {
                contacts: held[rank],
            })
        };
        for pass in 0..step.passes {
            clocks.exchange(&layout.halo, VECTOR, |_| 0);
            clocks.compute(respond);
            clocks.exchange(&rows, PARTICIPANT, |_| 0);
            let of_pass = |all: u32| all / step.passes + u32::from(pass < all % step.passes);
            let looks = of_pass(step.looks);
            for round in 0..of_pass(step.rounds) {
                clocks.exchange(&rows, PARTICIPANT, |_| 0);
                clocks.compute(row);
                if round < looks {
                    clocks.allgather_known(|_| 8);
                }
            }
        }
        times.computed[3] =
            u64::from(step.passes) * sum(&respond) + u64::from(step.rounds) * sum(&row);
        lap(clocks, times, 3);

        let vertices = header.vertices();
        let take = |_: usize| prices.cost(Work::NewState { vertices });
        let velocities = |rank: usize| layout.ranks[rank].vertices * VECTOR;
        if ahead {
            let arrivals = clocks.send_to_neighbours(&layout.halo, VECTOR);
            let under_way = clocks.begin_allgather(velocities);
            clocks.take_posted(arrivals);
            clocks.compute(assemble);
            lap(clocks, times, 1);
            clocks.finish_allgather(under_way, velocities);
        } else {
            // And those at the end where they are others.
            for _ in 0..(u64::from(header.state_bytes) / VECTOR).min(2) {
                clocks.allgather_known(velocities);
            }
        }
        clocks.compute(take);
        times.computed[4] = sum(&take);
        lap(clocks, times, 4);
    }
    let whole = clocks
        .now
        .iter()
        .zip(starts)
        .map(|(end, start)| end - start);
    times.whole = whole.max().unwrap_or_default();
    let first = clocks.now.iter().copied().min().unwrap_or_default();
    times.left.skew = clocks.now.iter().map(|now| now - first).collect();
}
