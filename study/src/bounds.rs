//! Lower bounds on the time of any schedule: the work shared evenly, the longest piece, the
//! messages that follow each other.

use weft_balance::cost::Against;
use weft_balance::part::Part;
use weft_balance::preparation::begin_cost;
use weft_balance::prices::{Counts, Prices, TestPrices};
use weft_balance::separation::{SEPARATION_SHARED_UP_TO, SeparationWork, prices_on};
use weft_runtime::Policy;
use weft_runtime::comm::virtual_time::Network;
use weft_runtime::comm::{GATHER_FACTOR, POSTED_UP_TO};
use weft_runtime::messages_to_end;

use crate::layout::Layout;
use crate::record::{Header, Step, Task};
use crate::replay::{Left, assignment};
use crate::shape::Kind;

/// Least times of the collision phase of a step, in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bounds {
    /// The work that one rank would compute, divided by the ranks.
    pub work: f64,
    /// The longest piece that the policy cannot share: what a rank forks if it shares nothing, a
    /// task if tasks are not split, else making ready the patches of the slice that costs most.
    pub longest: f64,
    /// The collectives of the phase, one after the other.
    pub latency: f64,
}

impl Bounds {
    /// The largest of them.
    #[must_use]
    pub fn time(&self) -> f64 {
        self.work.max(self.longest).max(self.latency)
    }
}

/// The cost of a task, in ns, on a rank that has nothing ready yet: its tests, and the preparation
/// before them.
fn cost(header: &Header, step: &Step, prices: &Prices, number: usize) -> (f64, f64) {
    let task = &step.tasks[number];
    let mut counts = Counts::default();
    for visit in task.tree.visits() {
        visit.add_to(&mut counts);
    }
    let of = |(patch, pieces): (usize, u64)| header.patches[patch].sizes.least(pieces, prices);
    let tests = prices_of(task, prices).of(&counts);
    (tests, task.reads(header).map(of).sum())
}

/// The cost, in ns, of a part of a task's tests for the rank that makes it, with that of the first
/// ones that all who have a part make. It is not the part's share of the task, for the first tests
/// lead to unlike numbers of others.
fn cost_of_part(task: &Task, part: Part, prices: &Prices) -> f64 {
    let mut counts = Counts::default();
    let mut stack = task.tree.roots();
    part.deal(&mut stack, |at, out| {
        let leads_on = !matches!(task.tree.visit(at).kind, Kind::Leaf | Kind::Near);
        if leads_on {
            task.tree
                .expand(at, &mut |child| out.push(child))
                .add_to(&mut counts);
        }
        leads_on
    });
    while let Some(at) = stack.pop() {
        task.tree
            .expand(at, &mut |child| stack.push(child))
            .add_to(&mut counts);
    }
    prices_of(task, prices).of(&counts)
}

fn prices_of<'a>(task: &Task, prices: &'a Prices) -> &'a TestPrices {
    match task.against {
        Against::Itself | Against::Patch(_) => &prices.cloth,
        Against::Body(_) => &prices.body,
    }
}

/// The bounds of a step's collision phase, after what the step before has left.
#[must_use]
pub fn bounds(
    header: &Header,
    layout: &Layout,
    step: &Step,
    prices: &Prices,
    (policy, network): (&Policy, &Network),
    left: &Left,
) -> Bounds {
    let ranks = layout.ranks.len();
    let prices = &prices_on(&header.tiles, header.around(), prices, ranks);
    let costs: Vec<(f64, f64)> = (0..step.tasks.len())
        .map(|number| cost(header, step, prices, number))
        .collect();
    let tests: f64 = costs.iter().map(|(tests, _)| tests).sum();
    // At least one rank makes each patch ready that anything is tested with.
    let mut used = vec![None; header.patches.len()];
    for (patch, pieces) in step.tasks.iter().flat_map(|task| task.reads(header)) {
        used[patch] = Some(used[patch].unwrap_or(0) | pieces);
    }
    let ready = header.patches.iter().zip(used);
    let ready: f64 = ready
        .filter_map(|(patch, used)| Some(patch.sizes.least(used?, prices)))
        .sum();
    let targets: u64 = layout.ranks.iter().map(|share| share.targets).sum();
    let missed = step.missed.iter().map(|&(p, q)| (p as usize, q as usize));
    let pairs = step.tasks.iter().filter_map(Task::pair).chain(missed);
    let pairs = begin_cost(pairs, |patch| &header.patches[patch].sizes, prices) as f64;
    let begin = prices.vertex * header.around() as f64 + prices.target * targets as f64 + pairs;
    // Where it is not shared, it is in what makes patches ready.
    let firmness = if ranks > SEPARATION_SHARED_UP_TO {
        0.0
    } else {
        SeparationWork::of_all(&header.tiles).cost(prices)
    };
    let work = (tests + ready + begin + firmness) / ranks as f64;
    let forks = match assignment(header, layout, step, (policy, left)) {
        Some((assignment, _)) => layout.assigned(step, &assignment),
        None => layout.forks(step),
    };
    let longest = if !policy.steal {
        let forked = |forks: Vec<(u32, Part)>| {
            let tests = forks.iter().map(|&(number, part)| match part.is_whole() {
                true => costs[number as usize].0,
                false => cost_of_part(&step.tasks[number as usize], part, prices),
            });
            tests.sum::<f64>()
        };
        forks.into_iter().map(forked).fold(0.0, f64::max)
    } else if policy.split.gives_nothing() {
        costs
            .iter()
            .map(|(tests, ready)| tests + ready)
            .fold(0.0, f64::max)
    } else {
        costs.iter().map(|&(_, ready)| ready).fold(0.0, f64::max)
    };
    let hop = network.far.latency + 2 * network.far.overhead;
    let rounds = (0..).find(|&round| GATHER_FACTOR.pow(round) >= ranks);
    let rounds = rounds.unwrap_or_default();
    let volumes = if ranks > POSTED_UP_TO {
        rounds
    } else {
        rounds.min(1)
    };
    // Volumes of patches, and the end of the scope, with which the last contacts come.
    let hops = f64::from(volumes + messages_to_end(policy, ranks));
    let latency = hops * hop.as_nanos() as f64;
    Bounds {
        work,
        longest,
        latency,
    }
}
