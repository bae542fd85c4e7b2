//! A recorded step on virtual ranks.
//!
//! The collision phase is played: the scheduler of [`weft_runtime`] runs on every rank, with its policy, over a modelled network, and
//! its tasks walk recorded trees. The other phases, in which nothing is decided, are computed ([`clocks`](self)): who
//! computes how long follows from the layout, who sends what to whom too. Same record, same machine, same seed: same
//! times, to the ns.
//!
//! What a replay leaves out: caches, memory bandwidth, anything that other programs do, and rows of impulses that strain
//! limits add (their cost is in what else responds, evenly). Prices are those of one rank.

mod clocks;
mod tests_task;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use thiserror::Error;
use weft_runtime::comm::Comm;
use weft_runtime::comm::threads::LaunchError;
use weft_runtime::comm::virtual_time::{Computation, Network, VirtualOptions, launch};
use weft_runtime::trace::Trace;
use weft_runtime::{Policy, Registry, ScopeError, ScopeOptions, ScopeReport, scope};

use self::clocks::Clocks;
use self::tests_task::{Env, Tests};
use crate::PHASES;
use crate::layout::{Layout, prices_on};
use crate::prices::{Prices, ns};
use crate::record::{Header, Step};

/// Bytes of a vertex in an exchange of the solve.
const VECTOR: u64 = 24;
/// Bytes of a vertex in a round of impulses: a velocity and how it gives way.
const PARTICIPANT: u64 = 96;
/// Bytes of a rank's partial sum of both scalar products of an iteration.
const PARTIAL: u64 = 16;
/// Bytes of a coarse unknown, and of its row in the lower half of the coarse matrix: four blocks in a sheet.
const SIX: u64 = 48;
const COARSE_ROW: u64 = 4 * 6 * SIX;
/// Bytes in which ranks agree that nothing is wrong.
const AGREED: u64 = 2;
/// Small gathers of a solve beside its iterations.
const SOLVE_GATHERS: u32 = 4;
/// Products that the first solve of a step begins with, and a further one: the prescribed changes, and the vectors along which it starts.
const STARTS: [u32; 2] = [3, 2];
/// Stack of a rank in bytes.
const STACK: usize = 64 << 10;

/// What a record is replayed on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machine {
    /// What messages cost.
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

/// What a step took.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepTimes {
    /// Of each phase, the slowest rank's time in ns.
    pub phases: [u64; PHASES.len()],
    /// Of each phase, what all ranks computed, in ns; the rest of their time they talked or waited.
    pub computed: [u64; PHASES.len()],
    /// The whole step: the slowest rank's time in ns.
    pub whole: u64,
    /// What the collision phase computed on the rank that did most, in ns.
    pub heaviest: u64,
    /// Tests made.
    pub tests: u64,
    /// Contacts found.
    pub contacts: u64,
    /// ns that tasks charged.
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
    /// The ranks' clocks at the end, less the smallest.
    pub skew: Vec<u64>,
}

/// Why a step could not be replayed.
#[derive(Debug, Error)]
pub enum ReplayError {
    /// Virtual ranks could not run.
    #[error("virtual ranks cannot be run: {0}")]
    Launch(#[from] LaunchError),
    /// The runtime failed.
    #[error("the runtime failed in a replay: {0}")]
    Scope(#[from] ScopeError),
}

/// Replays a step; ranks begin with that skew (ns; none if empty). Second, the traces, if asked for.
///
/// # Errors
/// More ranks than there is memory for, or an error in the runtime.
pub fn replay(
    header: &Header,
    layout: &Layout,
    step: &Step,
    prices: &Prices,
    machine: &Machine,
    skew: &[u64],
) -> Result<(StepTimes, Vec<Trace>), ReplayError> {
    let ranks = layout.ranks.len();
    let prices = &prices_on(&header.tiles, header.nodes(), prices, ranks);
    let forks = layout.forks(step);
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
    let start = |rank: usize| skew.get(rank).copied().unwrap_or_default();
    let starts: Vec<u64> = (0..ranks).map(start).collect();
    let mut clocks = Clocks::new(starts.clone(), &machine.network);
    let making = |rank: usize| making(layout, prices, rank);
    clocks.compute(|rank| making(rank)[0]);
    clocks.exchange(&layout.cells, 1, |rank| making(rank)[1]);
    clocks.compute(|rank| making(rank)[2]);
    clocks.allgather(|rank| layout.ranks[rank].roots);
    clocks.compute(|rank| ns(prices.target, layout.ranks[rank].targets as f64));
    let begins = clocks.now;
    let body = |comm: &mut dyn Comm| {
        let rank = comm.rank().index();
        comm.compute(begins[rank], Duration::ZERO);
        let env = Env {
            header,
            step,
            prices,
            ready: header
                .patches
                .iter()
                .map(|_| AtomicBool::new(false))
                .collect(),
            tally: [const { AtomicU64::new(0) }; 3],
        };
        play(comm, &env, &forks[rank], &options)
    };
    let outcome = launch(ranks, &virtual_ranks, body)?;
    let mut times = StepTimes {
        traffic: [outcome.messages, outcome.bytes],
        ..StepTimes::default()
    };
    let (mut ends, mut traces) = (Vec::with_capacity(ranks), Vec::new());
    for (rank, played) in outcome.results.into_iter().enumerate() {
        let (end, tally, mut report) = played?;
        ends.push(end.as_nanos() as u64);
        let own = before_tests(layout, prices, rank) + tally[2];
        times.heaviest = times.heaviest.max(own);
        times.computed[0] += own;
        times.tests += tally[0];
        times.contacts += tally[1];
        times.charged += tally[2];
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
        machine,
        &mut times,
    );
    Ok((times, traces))
}

/// What a rank does before its first test, in ns.
fn before_tests(layout: &Layout, prices: &Prices, rank: usize) -> u64 {
    let share = &layout.ranks[rank];
    let made: u64 = making(layout, prices, rank).iter().sum();
    made + ns(prices.target, share.targets as f64)
}

/// What it makes for all, in ns: gradients of its share of the tiles; volumes around its patches, while others send the cells that it
/// needs beside these; firmness of its share of the tiles.
fn making(layout: &Layout, prices: &Prices, rank: usize) -> [u64; 3] {
    let share = &layout.ranks[rank];
    let [gradients, firmness] = share.firmness.parts(prices).map(|time| ns(1.0, time));
    [gradients, ns(prices.vertex, share.around as f64), firmness]
}

/// A rank's collision phase up to the end of its scope: when that is, what its tasks did, and what the runtime did.
fn play(
    comm: &mut dyn Comm,
    env: &Env<'_>,
    forks: &[u32],
    options: &ScopeOptions,
) -> Result<(Duration, [u64; 3], ScopeReport), ScopeError> {
    let registry = Registry::new().with::<Tests>();
    let ((), report) = scope(comm, &registry, env, options, |s| {
        let group = s.group();
        for &number in forks {
            s.fork(&group, Tests::new(number, env.step))?;
        }
        while let Some(found) = s.join(&group)? {
            found?;
        }
        Ok(())
    })?;
    let tally = [0, 1, 2].map(|at: usize| env.tally[at].load(Ordering::Relaxed));
    Ok((comm.now(), tally, report))
}

/// The rest of the step: contacts go where they belong, and the data-parallel phases follow.
fn finish(
    clocks: &mut Clocks,
    starts: &[u64],
    (header, layout, step, prices): (&Header, &Layout, &Step, &Prices),
    machine: &Machine,
    times: &mut StepTimes,
) {
    let ranks = layout.ranks.len();
    let weight = |rank: usize| layout.ranks[rank].weight as f64;
    let mut begin = starts.to_vec();
    let mut lap = |clocks: &Clocks, times: &mut StepTimes, phase: usize| {
        let laps = clocks
            .now
            .iter()
            .zip(&begin)
            .map(|(now, begin)| now - begin);
        times.phases[phase] = laps.max().unwrap_or_default();
        begin.clone_from(&clocks.now);
    };
    // A phase's computing, on all ranks.
    let sum = |time: &dyn Fn(usize) -> u64| (0..ranks).map(time).sum::<u64>();

    let (sent, held) = layout.contacts(step);
    let mut letters = vec![0_u64; ranks];
    for &(from, _, _) in &sent {
        letters[from as usize] += 4;
    }
    clocks.allgather(|rank| letters[rank]);
    let sort = |rank: usize| ns(prices.contact, held[rank] as f64);
    clocks.exchange(&sent, u64::from(header.contact_bytes), |_| 0);
    clocks.compute(sort);
    times.computed[0] += sum(&sort);
    lap(clocks, times, 0);
    if !machine.collide_only {
        let assemble = |rank: usize| ns(prices.assemble, weight(rank));
        clocks.compute(assemble);
        clocks.allgather(|_| AGREED);
        times.computed[1] = sum(&assemble);
        lap(clocks, times, 1);

        for _ in 0..SOLVE_GATHERS {
            clocks.allgather(|_| AGREED);
        }
        let coarse = |rank: usize| layout.ranks[rank].aggregates;
        let factor = |_: usize| ns(prices.coarse_factor, 1.0);
        if header.aggregates > 0 {
            for _ in 0..step.systems {
                // Offsets and projections of the halo; what each rank has of the matrix; then all factor it alike.
                clocks.exchange(&layout.halo, 3 * VECTOR, |_| 0);
                clocks.allgather_known(|rank| COARSE_ROW * coarse(rank));
                clocks.compute(factor);
            }
        }
        let product = |rank: usize| {
            ns(prices.product, weight(rank)) + ns(prices.coarse_solve, layout.ranks[rank].coarse)
        };
        let mut left = step.products;
        for system in 0..step.systems {
            let at_once = left.min(STARTS[usize::from(system > 0)]);
            let products = |rank: usize| u64::from(at_once) * product(rank);
            clocks.exchange(&layout.halo, u64::from(at_once) * VECTOR, products);
            left -= at_once;
        }
        for _ in 0..left {
            clocks.exchange(&layout.halo, VECTOR, product);
            clocks
                .allgather_known(|rank| PARTIAL * layout.ranks[rank].partials + SIX * coarse(rank));
        }
        times.computed[2] =
            u64::from(step.products) * sum(&product) + u64::from(step.systems) * sum(&factor);
        lap(clocks, times, 2);

        let rows = layout.rows(step);
        let respond =
            |rank: usize| ns(prices.respond, weight(rank)) / u64::from(step.passes.max(1));
        let row = |rank: usize| ns(prices.row, held[rank] as f64);
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

        let vertices = header.vertices() as f64;
        let take = |_: usize| ns(prices.share, vertices);
        // Velocities, and those at the end where they are others.
        for _ in 0..(u64::from(header.state_bytes) / VECTOR).min(2) {
            clocks.allgather_known(|rank| layout.ranks[rank].vertices * VECTOR);
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
    times.skew = clocks.now.iter().map(|now| now - first).collect();
}
