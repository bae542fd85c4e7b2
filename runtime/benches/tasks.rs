//! The cost of a task, beside two simpler mechanisms: rayon's spawn, and a bare channel between two
//! threads.
//!
//! Sample run:
//!   cargo bench -p weft-runtime --bench tasks
//!
//! Tasks here are empty, so that all of it is overhead. On one rank with one worker a task is
//! forked, put into the pool, run and joined; rayon's `in_place_scope` with one thread spawns a
//! closure that adds to an atomic. Across ranks, all tasks are forked on rank 0 and each takes a
//! while: what is lost to moving them is compared with a round trip over a channel, the least that
//! asking and being answered can cost.
//!
//! A steal is measured between a rank whose only task is split for every request and a rank whose
//! only work is what it gets, against two threads that pass the same bytes to and fro over
//! channels, polling. A latent test is an entry of a task's own stack: what it costs in a task,
//! which is run in slices and asked whether to split, beyond what the same loop costs alone.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use divan::Bencher;
use divan::counter::ItemsCount;
use serde::{Deserialize, Serialize};
use weft_runtime::comm::Comm;
use weft_runtime::comm::solo::Solo;
use weft_runtime::comm::threads::launch;
use weft_runtime::trace::What;
use weft_runtime::{Context, Registry, ScopeOptions, ScopeReport, Step, Task, scope};

#[path = "common/feeder.rs"]
mod feeder;
#[path = "../../benches/common/timing.rs"]
mod timing;

use feeder::Feeder;
use timing::best;

const TASKS: u32 = 20_000;
/// Room for the events of a rank's trace.
const EVENTS: usize = 200_000;
/// Turns of a task that works: some tens of microseconds.
const TURNS: u32 = 20_000;

/// Adds up numbers nobody needs.
#[derive(Serialize, Deserialize)]
struct Turns(u32);

fn turn(turns: u32) -> u64 {
    (0..turns).fold(1, |sum: u64, n| {
        black_box(
            sum.wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(u64::from(n)),
        )
    })
}

impl Task<()> for Turns {
    const NAME: &'static str = "turns";
    type Output = u64;

    fn run(&mut self, _env: &(), _cx: &mut Context<'_, (), u64>) -> Step<u64> {
        Step::Done(turn(self.0))
    }
}

/// Forks tasks on rank 0 and joins them there; every rank may run them.
fn run(comm: &mut dyn Comm, tasks: u32, turns: u32) -> ScopeReport {
    let registry = Registry::new().with::<Turns>();
    let options = ScopeOptions::default();
    let (_, report) = scope(comm, &registry, &(), &options, |s| {
        let group = s.group();
        if s.rank().index() == 0 {
            for _ in 0..tasks {
                s.fork(&group, Turns(turns))?;
            }
        }
        while let Some(sum) = s.join(&group)? {
            black_box(sum?);
        }
        Ok(())
    })
    .expect("tasks that do not fail");
    report
}

/// The cost of a steal.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Steal {
    /// The time from the request's being sent to the answer's being read.
    round_trip: Duration,
    /// The time of the whole steal: the task is run, its result sent home, and the next request
    /// made.
    in_all: Duration,
    /// Bytes of all messages.
    bytes: u64,
}

/// Measures a number of steals, one after the other.
fn steal(steals: u64) -> Steal {
    let options = ScopeOptions {
        trace: Some(EVENTS),
        ..ScopeOptions::default()
    };
    let mut reports = launch(2, |comm| {
        let registry = Registry::new().with::<Feeder>();
        let (_, report) = scope(comm, &registry, &(), &options, |s| {
            let group = s.group();
            if s.rank().index() == 0 {
                s.fork(&group, Feeder(steals))?;
            }
            while s.join(&group)?.is_some() {}
            Ok(())
        })
        .expect("tasks that do not fail");
        report
    })
    .expect("two threads");
    let served = reports.iter().map(|r| r.served).sum::<u64>().max(1);
    let bytes: u64 = reports.iter().map(|r| r.bytes).sum();
    let mut asked = 0;
    let (mut waited, mut answers) = (0, 0);
    for event in reports[1].trace.take().expect("a trace").events {
        match event.what {
            What::Asked { .. } => asked = event.at,
            What::Answered { tasks, .. } if tasks > 0 => {
                waited += event.at - asked;
                answers += 1;
            }
            _ => {}
        }
    }
    Steal {
        round_trip: Duration::from_nanos(waited / u64::max(answers, 1)),
        in_all: reports[1].elapsed / served as u32,
        bytes: bytes / served,
    }
}

/// Messages of this many bytes there and back between two threads that poll.
fn polled_ping_pong(rounds: u32, bytes: u64) -> Duration {
    let (there, ping) = crossbeam_channel::unbounded::<Vec<u8>>();
    let (back, pong) = crossbeam_channel::unbounded::<Vec<u8>>();
    let payload = vec![7; bytes as usize / 2];
    let poll = |channel: &crossbeam_channel::Receiver<Vec<u8>>| {
        loop {
            match channel.try_recv() {
                Ok(message) => return message,
                Err(_) => std::thread::yield_now(),
            }
        }
    };
    std::thread::scope(|s| {
        let echo = payload.clone();
        s.spawn(move || {
            for _ in 0..rounds {
                black_box(poll(&ping));
                back.send(echo.clone()).expect("the other side listens");
            }
        });
        best(1, || {
            for _ in 0..rounds {
                there.send(payload.clone()).expect("the other side listens");
                black_box(poll(&pong));
            }
        })
    })
}

/// A tree walked on a stack: a latent test is an entry.
#[derive(Serialize, Deserialize)]
struct Walk {
    stack: Vec<(u32, u32)>,
    asks: bool,
}

/// One test: a little arithmetic and two children.
fn test(stack: &mut Vec<(u32, u32)>, (a, height): (u32, u32)) {
    let a = black_box(a.wrapping_mul(0x9e37_79b9).rotate_left(7));
    if height > 0 {
        stack.push((a, height - 1));
        stack.push((a ^ 1, height - 1));
    }
}

impl Task<()> for Walk {
    const NAME: &'static str = "walk";
    type Output = ();

    fn run(&mut self, _env: &(), cx: &mut Context<'_, (), ()>) -> Step<()> {
        for done in 0..cx.budget() {
            let Some(entry) = self.stack.pop() else {
                cx.charge(u64::from(done));
                return Step::Done(());
            };
            test(&mut self.stack, entry);
            if self.asks && cx.split_wanted() {
                break;
            }
        }
        cx.charge(u64::from(cx.budget()));
        Step::More
    }
}

/// Walks a tree of this height as one task.
fn walk(height: u32, asks: bool) {
    let registry = Registry::new().with::<Walk>();
    let options = ScopeOptions::default();
    let walked = scope(&mut Solo::new(), &registry, &(), &options, |s| {
        let group = s.group();
        let stack = vec![(1, height)];
        s.fork(&group, Walk { stack, asks })?;
        while s.join(&group)?.is_some() {}
        Ok(())
    });
    walked.expect("tasks that do not fail");
}

fn plain_walk(height: u32) {
    let mut stack = vec![(1, height)];
    while let Some(entry) = stack.pop() {
        test(&mut stack, entry);
    }
}

fn rayon_run(pool: &rayon::ThreadPool, tasks: u32, turns: u32) -> u64 {
    let sum = AtomicU64::new(0);
    pool.install(|| {
        rayon::in_place_scope(|s| {
            for _ in 0..tasks {
                s.spawn(|_| {
                    sum.fetch_add(turn(turns), Ordering::Relaxed);
                });
            }
        });
    });
    sum.into_inner()
}

fn pool(threads: usize) -> rayon::ThreadPool {
    let builder = rayon::ThreadPoolBuilder::new().num_threads(threads);
    builder.build().expect("threads")
}

/// Messages there and back between two threads.
fn ping_pong(rounds: u32) -> Duration {
    let (there, ping) = crossbeam_channel::unbounded::<u32>();
    let (back, pong) = crossbeam_channel::unbounded::<u32>();
    std::thread::scope(|s| {
        s.spawn(move || {
            for n in ping {
                back.send(n).expect("the other side listens");
            }
        });
        let time = best(1, || {
            for n in 0..rounds {
                there.send(n).expect("the other side listens");
                black_box(pong.recv().expect("an answer"));
            }
        });
        drop(there);
        time
    })
}

#[divan::bench(sample_count = 20, sample_size = 1)]
fn empty_tasks_on_one_rank(bencher: Bencher<'_, '_>) {
    bencher
        .counter(ItemsCount::new(TASKS))
        .bench_local(|| run(&mut Solo::new(), TASKS, 0));
}

#[divan::bench(sample_count = 20, sample_size = 1)]
fn empty_tasks_of_rayon(bencher: Bencher<'_, '_>) {
    let pool = pool(1);
    bencher
        .counter(ItemsCount::new(TASKS))
        .bench_local(|| rayon_run(&pool, TASKS, 0));
}

#[expect(clippy::print_stdout, reason = "the table is what the bench is for")]
fn table() {
    let micros = |time: Duration, n: u32| time.as_secs_f64() * 1e6 / f64::from(n);
    let ours = best(20, || run(&mut Solo::new(), TASKS, 0));
    let one = pool(1);
    let theirs = best(20, || rayon_run(&one, TASKS, 0));
    println!(
        "fork, run and join an empty task, one worker: {:.3} us; rayon {:.3} us; ratio {:.1}",
        micros(ours, TASKS),
        micros(theirs, TASKS),
        ours.as_secs_f64() / theirs.as_secs_f64(),
    );

    let tasks = 2000;
    let alone = best(5, || run(&mut Solo::new(), tasks, TURNS));
    let both = pool(2);
    let rayon = best(5, || rayon_run(&both, tasks, TURNS));
    let mut moved = 0;
    let stolen = best(5, || {
        let reports = launch(2, |comm| run(comm, tasks, TURNS)).expect("two threads");
        moved = reports.iter().map(|r| r.tasks_in).sum();
    });
    println!(
        "{tasks} tasks of {:.0} us, all on rank 0 of 2: {:.2} times as fast as on one ({moved} moved); \
         rayon on two threads {:.2}",
        micros(alone, tasks),
        alone.as_secs_f64() / stolen.as_secs_f64(),
        alone.as_secs_f64() / rayon.as_secs_f64(),
    );

    let height = 20;
    let nanos = |time: Duration| time.as_secs_f64() * 1e9 / f64::from(2 << height);
    let plain = best(9, || plain_walk(height));
    let (silent, asking) = (
        best(9, || walk(height, false)),
        best(9, || walk(height, true)),
    );
    println!(
        "a latent test on a task's own stack: {:.2} ns beyond the {:.2} ns of a bare loop; asking whether to \
         split: {:.2} ns",
        nanos(silent) - nanos(plain),
        nanos(plain),
        nanos(asking) - nanos(silent),
    );

    let steal = (0..5).map(|_| steal(20_000)).min().expect("five");
    let bare = (0..5).map(|_| polled_ping_pong(20_000, steal.bytes)).min();
    let bare = bare.unwrap_or_default() / 20_000;
    println!(
        "a steal between two ranks, {} bytes: {:.2} us from request to answer, {:.2} us with all that follows; \
         the same bytes over channels, polled, there and back: {:.2} us; ratios {:.1} and {:.1}",
        steal.bytes,
        micros(steal.round_trip, 1),
        micros(steal.in_all, 1),
        micros(bare, 1),
        steal.round_trip.as_secs_f64() / bare.as_secs_f64(),
        steal.in_all.as_secs_f64() / bare.as_secs_f64(),
    );

    let rounds = 20_000;
    let channel = (0..5).map(|_| ping_pong(rounds)).min().unwrap_or_default();
    let each = 2.0 * stolen.as_secs_f64() - alone.as_secs_f64();
    println!(
        "processor time lost for each task moved: {:.1} us; a round trip over a channel: {:.1} us",
        1e6 * each.max(0.0) / moved.max(1) as f64,
        micros(channel, rounds),
    );
}

fn main() {
    if timing::measures() {
        table();
    }
    divan::main();
}
