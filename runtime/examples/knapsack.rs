//! Packs the most valuable knapsack: branch and bound, and a search that is called off.
//!
//! The knowledge of one task helps others: a branch that cannot become better than the best packing
//! known is not followed. Tasks keep that bound in their rank's environment, which they share and
//! only read but for an atomic number; they carry it along when they are stolen; and they emit what
//! improves it, so that the first rank knows as well. That is late news for some, which costs them
//! time but changes no answer. Near the root, branches are tasks of their own; further down a task
//! has a stack of them.
//!
//! With `--target`, any packing that good will do: the first rank cancels the group when it hears
//! of one. How many tasks are dropped then depends on who was how fast.
//!
//! Sample runs:
//! ```text
//! $ knapsack 40 --check
//! best value 13558
//! by dynamic programming 13558
//! $ knapsack 40 4 --check
//! best value 13558
//! by dynamic programming 13558
//! $ knapsack 40 4 --target 13500
//! at least 13500 found: …
//! tasks run …
//! $ knapsack 40 4 --target 14000
//! nothing of at least 14000, best value 13558
//! ```

#![allow(clippy::print_stdout, reason = "an example prints")]

use std::error::Error;
use std::sync::atomic::{AtomicU64, Ordering};

use clap::Parser;
use serde::{Deserialize, Serialize};
use weft_runtime::comm::Comm;
use weft_runtime::comm::threads::launch;
use weft_runtime::{
    Context, Registry, ScopeError, ScopeOptions, ScopeReport, Split, Step, Task, scope,
};

/// Branches are tasks of their own above this depth.
const FORKED: usize = 10;
/// The seed of the items.
const SEED: u64 = 3;
/// Units that a node charges.
const UNITS: u64 = 2;

/// Packs the most valuable of 2^ITEMS knapsacks on ranks that steal from each other.
#[derive(Parser)]
struct Arguments {
    /// How many items there are.
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1000))]
    items: u32,
    /// Ranks.
    #[arg(default_value_t = 1)]
    ranks: usize,
    /// Any packing of this value will do.
    #[arg(long)]
    target: Option<u64>,
    /// Compares with dynamic programming.
    #[arg(long)]
    check: bool,
}

struct Item {
    value: u64,
    weight: u64,
}

/// A rank's copy of the problem, and the best value it knows.
struct Problem {
    items: Vec<Item>,
    capacity: u64,
    best: AtomicU64,
}

/// A packing of the first items.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Node {
    next: usize,
    value: u64,
    room: u64,
}

impl Problem {
    /// Items worth a hundred more than their weight: that makes it hard to say which to take.
    fn new(count: u32) -> Self {
        let mut state = SEED;
        let items = (0..count).map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let weight = 100 + (state >> 33) % 900;
            let value = weight + 100;
            Item { value, weight }
        });
        let mut items: Vec<Item> = items.collect();
        // For the bound, the most valuable for their weight come first.
        items.sort_by_key(|item| item.weight);
        Self {
            capacity: items.iter().map(|item| item.weight).sum::<u64>() / 2,
            items,
            best: AtomicU64::new(0),
        }
    }

    /// No packing that goes on from this one is worth more: it would have to cut an item in two.
    fn bound(&self, node: &Node) -> u64 {
        let (mut value, mut room) = (node.value, node.room);
        for item in &self.items[node.next..] {
            if item.weight > room {
                return value + item.value * room / item.weight;
            }
            value += item.value;
            room -= item.weight;
        }
        value
    }

    /// The best value, item by item for every capacity.
    fn by_dynamic_programming(&self) -> u64 {
        let mut best = vec![0; self.capacity as usize + 1];
        for item in &self.items {
            for room in (item.weight as usize..best.len()).rev() {
                best[room] = best[room].max(best[room - item.weight as usize] + item.value);
            }
        }
        best[best.len() - 1]
    }
}

/// Packings still to be completed, the oldest first, and the best value known when it last ran.
#[derive(Serialize, Deserialize)]
struct Search {
    stack: Vec<Node>,
    best: u64,
}

impl Task<Problem> for Search {
    const NAME: &'static str = "search";
    type Output = u64;

    fn run(&mut self, problem: &Problem, cx: &mut Context<'_, Problem, u64>) -> Step<u64> {
        problem.best.fetch_max(self.best, Ordering::Relaxed);
        for _ in 0..u64::from(cx.budget()).div_ceil(UNITS) {
            self.best = problem.best.load(Ordering::Relaxed);
            if cx.is_cancelled() {
                return Step::Done(self.best);
            }
            let Some(node) = self.stack.pop() else {
                return Step::Done(self.best);
            };
            cx.charge(UNITS);
            if problem.bound(&node) <= self.best {
                continue;
            }
            let Some(item) = problem.items.get(node.next) else {
                // Complete, and better.
                if problem.best.fetch_max(node.value, Ordering::Relaxed) < node.value {
                    cx.emit(node.value);
                }
                continue;
            };
            let next = node.next + 1;
            let without = Node { next, ..node };
            if next < FORKED {
                let stack = vec![without];
                cx.hyperfork(Self { stack, ..*self });
            } else {
                self.stack.push(without);
            }
            if item.weight <= node.room {
                self.stack.push(Node {
                    next,
                    value: node.value + item.value,
                    room: node.room - item.weight,
                });
            }
        }
        Step::More
    }

    fn split(&mut self, how: Split) -> Option<Self> {
        let stack = how.take_from(&mut self.stack)?;
        let best = self.best;
        Some(Self { stack, best })
    }
}

/// One rank's part; the best value on rank 0.
fn pack(comm: &mut dyn Comm, arguments: &Arguments) -> Result<(u64, ScopeReport), ScopeError> {
    let registry = Registry::new().with::<Search>();
    let problem = Problem::new(arguments.items);
    scope(comm, &registry, &problem, &ScopeOptions::default(), |s| {
        let group = s.group();
        if s.rank().index() == 0 {
            let root = Node {
                next: 0,
                value: 0,
                room: problem.capacity,
            };
            let stack = vec![root];
            s.fork(&group, Search { stack, best: 0 })?;
        }
        let mut best = 0;
        while let Some(value) = s.join(&group)? {
            best = best.max(value?);
            problem.best.fetch_max(best, Ordering::Relaxed);
            if arguments.target.is_some_and(|target| best >= target) {
                s.cancel(&group)?;
            }
        }
        Ok(best)
    })
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    let results = launch(arguments.ranks, |comm| pack(comm, &arguments))?;
    let ranks: Vec<(u64, ScopeReport)> = results.into_iter().collect::<Result<_, _>>()?;
    let best = ranks[0].0;
    match arguments.target {
        None => println!("best value {best}"),
        Some(target) if best >= target => println!("at least {target} found: {best}"),
        Some(target) => println!("nothing of at least {target}, best value {best}"),
    }
    if arguments.check {
        let other = Problem::new(arguments.items).by_dynamic_programming();
        println!("by dynamic programming {other}");
        if arguments.target.is_none() && best != other {
            return Err("the two disagree".into());
        }
    }
    let sum = |what: fn(&ScopeReport) -> u64| ranks.iter().map(|(_, r)| what(r)).sum::<u64>();
    println!(
        "tasks run {}, dropped {}",
        sum(|r| r.tasks),
        sum(|r| r.dropped)
    );
    println!("nodes {}", sum(|r| r.work) / UNITS);
    Ok(())
}
