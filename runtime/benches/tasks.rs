//! What a task costs, against those who do less: rayon's spawn, and a bare channel between two threads.
//!
//! Sample run:
//!   cargo bench -p weft-runtime --bench tasks
//!
//! Tasks here are empty, so that all of it is overhead. On one rank with one worker a task is forked, put into
//! the pool, run and joined; rayon's `in_place_scope` with one thread spawns a closure that adds to an
//! atomic. Across ranks, all tasks are forked on rank 0 and each takes a while: what is lost to moving
//! them is compared with a round trip over a channel, the least that asking and being answered can cost.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use divan::Bencher;
use divan::counter::ItemsCount;
use serde::{Deserialize, Serialize};
use weft_runtime::comm::Comm;
use weft_runtime::comm::solo::Solo;
use weft_runtime::comm::threads::launch;
use weft_runtime::{Context, Registry, ScopeOptions, ScopeReport, Step, Task, scope};

#[path = "../../benches/common/timing.rs"]
mod timing;

use timing::best;

const TASKS: u32 = 20_000;
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
