//! The Unbalanced Tree Search benchmark: counts the nodes of a tree that nobody can foresee.
//!
//! A node is a SHA-1 state; its children are hashes of it and their numbers, and it says itself how
//! many it has. The options of trees are those of the reference programs: `-t` type (0 binomial, 1
//! geometric, 2 hybrid), `-a` shape of geometric trees (0 linear, 1 exponential, 2 cyclic, 3
//! fixed), `-d` depth, `-b` branching at the root, `-q` and `-m` probability and number of children
//! of a binomial node, `-f` where a hybrid tree changes (share of the depth), `-r` seed.
//!
//! Sample runs: of the published trees, T1 to T5; T1 and T3 also on two ranks of two workers, and
//! on 64 ranks in virtual time.
//! ```text
//! $ uts -t 1 -a 3 -d 10 -b 4 -r 19
//! nodes 4130071, leaves 3305118, depth 10
//! $ uts -t 1 -a 2 -d 16 -b 6 -r 502
//! nodes 4117769, leaves 2342762, depth 81
//! $ uts -t 0 -b 2000 -q 0.124875 -m 8 -r 42
//! nodes 4112897, leaves 3599034, depth 1572
//! $ uts -t 2 -a 0 -d 16 -b 6 -r 1 -q 0.234375 -m 4
//! nodes 4132453, leaves 3108986, depth 134
//! $ uts -t 1 -a 0 -d 20 -b 4 -r 34
//! nodes 4147582, leaves 2181318, depth 20
//! $ uts -t 1 -a 3 -d 10 -b 4 -r 19 -n 2 --workers 2
//! nodes 4130071, leaves 3305118, depth 10
//! $ uts -t 0 -b 2000 -q 0.124875 -m 8 -r 42 -n 2 --workers 2
//! nodes 4112897, leaves 3599034, depth 1572
//! $ uts -t 1 -a 3 -d 10 -b 4 -r 19 -n 64 --virtual
//! nodes 4130071, leaves 3305118, depth 10
//! $ uts -t 0 -b 2000 -q 0.124875 -m 8 -r 42 -n 64 --virtual
//! nodes 4112897, leaves 3599034, depth 1572
//! ```
//!
//! Long runs, T1L and T3L, that tests leave out: a minute each on one core.
//! ```text
//! $ uts -t 1 -a 3 -d 13 -b 4 -r 29
//! nodes 102181082, leaves 81746377, depth 13
//! $ uts -t 0 -b 2000 -q 0.200014 -m 5 -r 7
//! nodes 111345631, leaves 89076904, depth 17844
//! ```
//!
//! * Olivier, Huan, Liu, Prins, Dinan, Sadayappan, Tseng: UTS, an unbalanced tree search benchmark
//!   (2006).

#![allow(clippy::print_stdout, reason = "an example prints")]

mod search;
mod tree;

use std::error::Error;
use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use weft_runtime::comm::threads;
use weft_runtime::comm::virtual_time::{self, Computation, Network, VirtualOptions};
use weft_runtime::trace::{Analysis, Trace, write_perfetto};
use weft_runtime::{POLICIES, Policy, ScopeOptions, ScopeReport};

use self::search::{UNITS, count, walk};
use self::tree::{Count, Tree};

/// Most events of a rank's trace.
const EVENTS: usize = 100_000;

/// Counts the nodes of an unbalanced tree on ranks that steal from each other.
#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    tree: Tree,
    /// Ranks.
    #[arg(short = 'n', long, default_value_t = 1)]
    ranks: usize,
    /// Workers of a rank.
    #[arg(long, default_value_t = 1)]
    workers: usize,
    /// Runs the ranks in virtual time: latency 2 us, overhead 0.5 us.
    #[arg(long = "virtual")]
    in_virtual_time: bool,
    /// The cost of a node in virtual time, in ns; a multiple of 5.
    #[arg(long, default_value_t = 130)]
    node_ns: u64,
    /// Walks the tree without the runtime.
    #[arg(long)]
    sequential: bool,
    /// How ranks share work: static, paper, every-other, half, weight, adaptive, last-victim,
    /// hierarchical or lifelines.
    #[arg(long, default_value = "every-other", value_parser = policy)]
    policy: Policy,
    /// Ranks of a node, in virtual time.
    #[arg(long, default_value_t = 1)]
    per_node: u32,
    /// Writes a trace for ui.perfetto.dev, and says why the run did not scale.
    #[arg(long)]
    trace: Option<PathBuf>,
    /// Seed of the choice of victims.
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

fn policy(name: &str) -> Result<Policy, String> {
    Policy::by_name(name).ok_or_else(|| {
        let names: Vec<&str> = POLICIES.iter().map(|(name, _, _)| *name).collect();
        format!("policies are {}", names.join(", "))
    })
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    let tree = &arguments.tree;
    if arguments.sequential {
        print(&walk(tree));
        return Ok(());
    }
    let options = ScopeOptions {
        workers: arguments.workers,
        policy: arguments.policy,
        seed: arguments.seed,
        trace: arguments.trace.as_ref().map(|_| EVENTS),
        ..ScopeOptions::default()
    };
    let (results, makespan) = if arguments.in_virtual_time {
        let unit = Duration::from_nanos(arguments.node_ns).mul_f64(1.0 / UNITS as f64);
        let mut network = Network::default();
        if arguments.per_node > 1 {
            network = network.with_nodes(arguments.per_node);
        }
        let machine = VirtualOptions {
            computation: Computation::Modelled { unit },
            stack: 64 << 10,
            network,
            ..VirtualOptions::default()
        };
        let outcome = virtual_time::launch(arguments.ranks, &machine, |comm| {
            count(comm, tree, &options)
        })?;
        let makespan = outcome.makespan();
        (outcome.results, Some(makespan))
    } else {
        let results = threads::launch(arguments.ranks, |comm| count(comm, tree, &options))?;
        (results, None)
    };
    let ranks: Vec<(Count, ScopeReport)> = results.into_iter().collect::<Result<_, _>>()?;
    print(&ranks[0].0);
    let sum = |what: fn(&ScopeReport) -> u64| ranks.iter().map(|(_, r)| what(r)).sum::<u64>();
    println!(
        "ranks {}, steal requests {}, served {}, tasks moved {}, splits {}",
        ranks.len(),
        sum(|r| r.requests),
        sum(|r| r.served),
        sum(|r| r.tasks_in),
        sum(|r| r.splits),
    );
    let elapsed = ranks
        .iter()
        .map(|(_, r)| r.elapsed)
        .max()
        .unwrap_or_default();
    let busy: Duration = ranks.iter().flat_map(|(_, r)| &r.busy).sum();
    let workers = arguments.workers * ranks.len();
    println!(
        "time {:.3} ms, efficiency {:.1} %",
        makespan.unwrap_or(elapsed).as_secs_f64() * 1e3,
        100.0 * busy.as_secs_f64() / (elapsed.as_secs_f64() * workers as f64),
    );
    if let Some(path) = &arguments.trace {
        let traces: Vec<Trace> = ranks.into_iter().filter_map(|(_, r)| r.trace).collect();
        println!("{}", Analysis::of(&traces));
        write_perfetto(&traces, &mut BufWriter::new(File::create(path)?))?;
    }
    Ok(())
}

fn print(count: &Count) {
    println!(
        "nodes {}, leaves {}, depth {}",
        count.nodes, count.leaves, count.depth
    );
    let digest = weft_runtime::wire::hex(&count.digest);
    println!("xor of all states {digest}");
}
