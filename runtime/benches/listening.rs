//! The cost of being listened to: a scope of small tasks that nobody hears, that a ring keeps, and
//! that `tracing` subscribers hear.
//!
//! Sample runs:
//!   cargo bench -p weft-runtime --bench listening
//!   cargo bench -p weft-runtime --bench listening --no-default-features
//!
//! On one rank 20,000 tasks are forked, run and joined. Each takes some microseconds, which is
//! little: tests of collisions take about as long between two looks at messages. Rounds go through
//! all ways of listening by turns. The table has the median time of a task, and the median, over
//! all rounds, of the ratio to the round's time without listeners, with the standard error of that
//! median, estimated from quartiles. `silent` comes twice: the ratio of the second shows what the
//! measurement is good for.
//!
//! The first line of times is from before there was any subscriber in the process. Two costs are
//! too small for a round and are measured alone: an event that nobody wants, and the question of
//! whether anybody listens, which a scope asks once.
//!
//! Without the feature `tracing`, by the second command, there are no subscribers. Its first line
//! is to be compared with that of the first command.

#![allow(clippy::print_stdout, reason = "the table is what the bench is for")]
#![expect(clippy::disallowed_methods, reason = "a bench reads the clock")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use weft_runtime::comm::Comm;
use weft_runtime::comm::solo::Solo;
use weft_runtime::trace::{MainTrack, is_listened};
use weft_runtime::{Context, Registry, ScopeOptions, Step, Task, scope};

#[cfg(feature = "tracing")]
#[path = "listening/subscribers.rs"]
mod subscribers;
#[cfg(not(feature = "tracing"))]
#[path = "listening/nobody.rs"]
mod subscribers;

use subscribers::{Listener, WAYS};

const TASKS: u32 = 20_000;
/// Turns of a task: some microseconds.
const TURNS: u32 = 2_000;
const ROUNDS: usize = 41;
/// Room for the events of a round.
const ROOM: usize = 1 << 18;

/// How a round is listened to.
enum Way {
    Silent,
    Ring,
    Heard(Listener),
}

#[derive(Serialize, Deserialize)]
struct Turns(u32);

impl Task<()> for Turns {
    const NAME: &'static str = "turns";
    type Output = u64;

    fn run(&mut self, _env: &(), cx: &mut Context<'_, (), u64>) -> Step<u64> {
        cx.charge(100);
        let sum = (0..self.0).fold(1, |sum: u64, n| {
            black_box(
                sum.wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(u64::from(n)),
            )
        });
        Step::Done(sum)
    }
}

/// Runs a round; the number of events that were kept.
fn round(trace: Option<usize>) -> usize {
    let registry = Registry::new().with::<Turns>();
    let options = ScopeOptions {
        trace,
        ..ScopeOptions::default()
    };
    let (_, report) = scope(&mut Solo::new(), &registry, &(), &options, |s| {
        let group = s.group();
        for _ in 0..TASKS {
            s.fork(&group, Turns(TURNS))?;
        }
        while let Some(sum) = s.join(&group)? {
            black_box(sum?);
        }
        Ok(())
    })
    .expect("tasks that do not fail");
    report.trace.map_or(0, |trace| trace.events.len())
}

fn timed(way: &Way) -> (Duration, usize) {
    let begin = Instant::now();
    let events = match way {
        Way::Silent => round(None),
        Way::Ring => round(Some(ROOM)),
        Way::Heard(listener) => listener.hears(|| round(None)).1,
    };
    (begin.elapsed(), events)
}

/// The median and its standard error.
fn median(mut values: Vec<f64>) -> [f64; 2] {
    values.sort_unstable_by(f64::total_cmp);
    let count = values.len();
    // Quartiles of a normal distribution are 1.35 deviations apart, and a median is off by 1.25
    // deviations over the root of the count.
    let apart = values[count * 3 / 4] - values[count / 4];
    [
        values[count / 2],
        apart / 1.35 * 1.25 / (count as f64).sqrt(),
    ]
}

/// The time of a call in ns.
fn each(calls: u32, mut call: impl FnMut()) -> f64 {
    let times = (0..21).map(|_| {
        let begin = Instant::now();
        (0..calls).for_each(|_| call());
        begin.elapsed().as_secs_f64() * 1e9 / f64::from(calls)
    });
    median(times.collect())[0]
}

fn main() {
    // Whether it is started to measure, and not by `cargo test --benches` or to list what it has.
    if std::env::args().any(|argument| argument == "--test" || argument == "--list") {
        return;
    }
    let comm = Solo::new();
    let mut track = MainTrack::new(&comm, false);
    let now = comm.now();
    let event = each(1_000_000, || track.count("tests", black_box(now), 1));
    let asked = each(1_000_000, || _ = black_box(is_listened()));
    println!("an event that nobody wants: {event:.2} ns; whether anybody listens: {asked:.2} ns");
    let of_task = |times: Vec<f64>| median(times)[0] * 1e9 / f64::from(TASKS);
    let never: Vec<f64> = (0..ROUNDS)
        .map(|_| timed(&Way::Silent).0.as_secs_f64())
        .collect();
    println!(
        "before there was a subscriber: {:.1} ns a task",
        of_task(never)
    );
    let mut ways = vec![
        ("silent", Way::Silent),
        ("silent again", Way::Silent),
        ("ring", Way::Ring),
    ];
    let heard = WAYS.iter();
    ways.extend(heard.map(|&(name, subscriber)| (name, Way::Heard(Listener::new(subscriber)))));
    let mut times = vec![Vec::new(); ways.len()];
    let mut events = vec![0; ways.len()];
    for round in 0..ROUNDS {
        // Back and forth, so that no way always follows the same one.
        for at in 0..ways.len() {
            let at = if round % 2 == 0 {
                at
            } else {
                ways.len() - 1 - at
            };
            let (time, kept) = timed(&ways[at].1);
            times[at].push(time.as_secs_f64());
            events[at] = kept;
        }
    }
    println!("{:<22} ns/task  ratio            events/task", "way");
    for (at, (name, _)) in ways.iter().enumerate() {
        let time = of_task(times[at].clone());
        let ratios = times[at]
            .iter()
            .zip(&times[0])
            .map(|(with, without)| with / without);
        let [ratio, error] = median(ratios.collect());
        println!(
            "{name:<22} {time:<8.1} {ratio:.4} +- {error:.4} {:.2}",
            events[at] as f64 / f64::from(TASKS),
        );
    }
}
