//! The time of the Unbalanced Tree Search benchmark on the runtime, beside the plain program.
//!
//! Sample run:
//!   cargo bench -p weft-runtime --bench uts
//!
//! Two published trees: T1, geometric, and T3, binomial, which is deep and thin. The plain program
//! walks a tree with a stack; one worker does the same in a task. Then two workers share a rank's
//! pool, or two ranks of this process steal from each other. Each figure is the best of several
//! runs, taken in turn.

use std::time::Duration;

use clap::Parser;
use weft_runtime::ScopeOptions;
use weft_runtime::comm::Comm;
use weft_runtime::comm::solo::Solo;
use weft_runtime::comm::threads::launch;

#[path = "../examples/uts/search.rs"]
mod search;
#[path = "../../benches/common/timing.rs"]
mod timing;
#[path = "../examples/uts/tree.rs"]
mod tree;

use search::{count, walk};
use timing::{best, measures};
use tree::{Count, Tree};

const ROUNDS: u32 = 7;
const TREES: [(&str, u64, &str); 2] = [
    ("T1", 4_130_071, "uts -t 1 -a 3 -d 10 -b 4 -r 19"),
    ("T3", 4_112_897, "uts -t 0 -b 2000 -q 0.124875 -m 8 -r 42"),
];

#[derive(Parser)]
struct Options {
    #[command(flatten)]
    tree: Tree,
}

fn part(comm: &mut dyn Comm, tree: &Tree, workers: usize) -> Count {
    let options = ScopeOptions {
        workers,
        ..ScopeOptions::default()
    };
    let (count, _) = count(comm, tree, &options).expect("tasks that do not fail");
    count
}

fn ranks(tree: &Tree, ranks: usize) -> Count {
    let counts = launch(ranks, |comm| part(comm, tree, 1)).expect("threads");
    counts[0]
}

#[expect(clippy::print_stdout, reason = "the table is what the bench is for")]
fn compare(name: &str, nodes: u64, tree: &Tree) {
    let ways: [(&str, &dyn Fn() -> Count); 4] = [
        ("the plain program", &|| walk(tree)),
        ("one worker", &|| part(&mut Solo::new(), tree, 1)),
        ("two workers of one rank", &|| {
            part(&mut Solo::new(), tree, 2)
        }),
        ("two ranks", &|| ranks(tree, 2)),
    ];
    let mut times = [Duration::MAX; 4];
    for _ in 0..ROUNDS {
        for ((_, way), time) in ways.iter().zip(&mut times) {
            let took = best(1, || assert_eq!(way().nodes, nodes));
            *time = took.min(*time);
        }
    }
    let speed = |at: usize| nodes as f64 / times[at].as_secs_f64() / 1e6;
    println!(
        "{name}, million nodes a second: {} {:.2}; {} {:.2}, {:.1} % of that; {} {:.2}, {:.2} times one; {} \
         {:.2}, {:.2} times one",
        ways[0].0,
        speed(0),
        ways[1].0,
        speed(1),
        100.0 * speed(1) / speed(0),
        ways[2].0,
        speed(2),
        speed(2) / speed(1),
        ways[3].0,
        speed(3),
        speed(3) / speed(1),
    );
}

fn main() {
    if !measures() {
        return;
    }
    for (name, nodes, options) in TREES {
        let Options { tree } = Options::parse_from(options.split(' '));
        compare(name, nodes, &tree);
    }
}
