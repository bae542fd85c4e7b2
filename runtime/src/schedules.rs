//! Scopes with workers in thousands of schedules, chosen by shuttle: run with `--cfg shuttle`.
//!
//! Everything but the messages between ranks is the real thing. Nothing here looks at a clock or
//! draws a number, so each run is the same, and `SHUTTLE_RANDOM_SEED` with a seed that shuttle
//! prints begins with the schedule that failed. `SCHEDULES` says how many.
//!
//! Shuttle takes every atomic for sequentially consistent, so it does not see what relaxed ones may
//! do. But what workers share are flags and a counter that guard nothing else; data go through
//! channels.

use std::cell::Cell;
use std::collections::VecDeque;
use std::iter;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use shuttle::scheduler::{
    PctScheduler, RandomScheduler, UncontrolledNondeterminismCheckScheduler as Twice,
};
use shuttle::thread::yield_now;
use shuttle::{Config, Runner};

use crate::comm::{Comm, CommError, Message, Rank, Tag};
use crate::sync::{self, Receiver, Sender, unbounded};
use crate::{
    Bound, Context, Failure, Interval, Policy, Registry, Scope, ScopeError, ScopeOptions,
    ScopeReport, Split, Step, Task, TaskError, scope,
};

// ---- ranks

/// A rank of a few, on threads of shuttle's; time passes when it is looked at.
struct Net {
    rank: Rank,
    peers: Vec<Sender<(Tag, Message)>>,
    inbox: Receiver<(Tag, Message)>,
    arrived: VecDeque<(Tag, Message)>,
    aborted: Arc<Mutex<Option<CommError>>>,
    now: Cell<Duration>,
    epochs: u32,
}

impl Net {
    fn all(ranks: usize) -> Vec<Self> {
        let (peers, inboxes): (Vec<_>, Vec<_>) = iter::repeat_with(unbounded).take(ranks).unzip();
        let aborted = Arc::default();
        let ranks = (0..).map(Rank).zip(inboxes);
        ranks
            .map(|(rank, inbox)| Self {
                rank,
                peers: peers.clone(),
                inbox,
                arrived: VecDeque::new(),
                aborted: Arc::clone(&aborted),
                now: Cell::default(),
                epochs: 0,
            })
            .collect()
    }

    fn listen(&mut self) -> Result<(), CommError> {
        self.arrived
            .extend(iter::from_fn(|| self.inbox.try_recv().ok()));
        let aborted = self.aborted.lock().unwrap_or_else(PoisonError::into_inner);
        aborted.clone().map_or(Ok(()), Err)
    }

    fn take(&mut self, wanted: impl Fn(&(Tag, Message)) -> bool) -> Option<Message> {
        let at = self.arrived.iter().position(wanted)?;
        self.arrived.remove(at).map(|(_, message)| message)
    }
}

impl Comm for Net {
    fn rank(&self) -> Rank {
        self.rank
    }

    fn size(&self) -> usize {
        self.peers.len()
    }

    fn now(&self) -> Duration {
        self.now.set(self.now.get() + Duration::from_micros(1));
        self.now.get()
    }

    fn send(&mut self, to: Rank, tag: Tag, bytes: Vec<u8>) -> Result<(), CommError> {
        let from = self.rank;
        // One that has left wants nothing any more.
        drop(self.peers[to.index()].send((tag, Message { from, bytes })));
        Ok(())
    }

    fn try_recv(&mut self, tag: Tag) -> Result<Option<Message>, CommError> {
        self.listen()?;
        Ok(self.take(|(of, _)| *of == tag))
    }

    fn recv_from(&mut self, from: Rank, tag: Tag) -> Result<Vec<u8>, CommError> {
        loop {
            self.listen()?;
            if let Some(message) = self.take(|(of, message)| (*of, message.from) == (tag, from)) {
                return Ok(message.bytes);
            }
            yield_now();
        }
    }

    fn wait(&mut self, _at_most: Duration) -> Result<(), CommError> {
        yield_now();
        self.listen()
    }

    // Each of these ranks takes part in one scope only.
    fn close(&mut self, _tag: Tag) {}

    fn reopen(&mut self, _tag: Tag) {}

    fn next_epoch(&mut self) -> u32 {
        self.epochs += 1;
        self.epochs
    }

    fn compute(&mut self, units: u64, _took: Duration) -> Duration {
        Duration::from_micros(units)
    }

    fn abort(&mut self, reason: &str) {
        let (rank, reason) = (self.rank, reason.to_owned());
        let mut aborted = self.aborted.lock().unwrap_or_else(PoisonError::into_inner);
        aborted.get_or_insert(CommError::Aborted { rank, reason });
    }
}

// ---- tasks

/// Counters that the tasks of all ranks share.
#[derive(Debug, Default)]
struct Tally {
    /// Slices under way.
    inside: AtomicUsize,
}

/// A slice under way.
struct Inside<'a>(&'a Tally);

impl Tally {
    fn enter(&self) -> Inside<'_> {
        self.inside.fetch_add(1, Ordering::Relaxed);
        Inside(self)
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.inside.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Tells every number of a range once: hyperforks some, emits some, rests in some slices, can be
/// split.
#[derive(Clone, Default, Serialize, Deserialize)]
struct Count {
    first: u32,
    end: u32,
    rests: bool,
    panics_at: Option<u32>,
    split_panics: bool,
}

impl Task<Tally> for Count {
    const NAME: &'static str = "count";
    type Output = u32;

    fn run(&mut self, env: &Tally, cx: &mut Context<'_, Tally, u32>) -> Step<u32> {
        let _inside = env.enter();
        self.rests = !self.rests;
        if self.rests {
            return Step::More;
        }
        if self.panics_at == Some(self.first) {
            // Without shuttle's hook, which would take it for the end of the test.
            resume_unwind(Box::new("dropped a stitch"));
        }
        let number = self.first;
        self.first += 1;
        if number.is_multiple_of(3) && self.end > self.first + 1 {
            let middle = self.first.midpoint(self.end);
            cx.hyperfork(Self {
                first: middle,
                ..self.clone()
            });
            self.end = middle;
        }
        cx.charge(1);
        if self.first == self.end {
            return Step::Done(number);
        }
        cx.emit(number);
        Step::More
    }

    fn split(&mut self, _how: Split) -> Option<Self> {
        if self.split_panics {
            resume_unwind(Box::new("cut too deep"));
        }
        if self.end < self.first + 2 {
            return None;
        }
        let middle = self.first.midpoint(self.end);
        let piece = Self {
            first: middle,
            ..self.clone()
        };
        self.end = middle;
        Some(piece)
    }
}

/// Counts nodes of a binary tree, each joining what it forks in a group of its own; leaves count
/// ranges.
#[derive(Serialize, Deserialize)]
struct Nest {
    height: u32,
    /// Makes groups that nobody joins, too.
    litters: bool,
}

const LEAF: u32 = 3;

impl Nest {
    fn sum(height: u32) -> u32 {
        match height {
            0 => (0..LEAF).sum(),
            _ => 1 + 2 * Self::sum(height - 1),
        }
    }
}

impl Task<Tally> for Nest {
    const NAME: &'static str = "nest";
    type Output = u32;

    fn run(&mut self, _env: &Tally, cx: &mut Context<'_, Tally, u32>) -> Step<u32> {
        let group = cx.group();
        if self.height == 0 {
            let count = Count {
                end: LEAF,
                ..Count::default()
            };
            if self.litters {
                let nobodys = cx.group();
                cx.fork(&nobodys, count.clone());
            }
            cx.fork(&group, count);
        } else {
            for _ in 0..2 {
                let (height, litters) = (self.height - 1, self.litters);
                cx.fork(&group, Self { height, litters });
            }
        }
        let mut sum = u32::from(self.height > 0);
        while let Some(part) = cx.join(&group) {
            match part {
                Ok(part) => sum += part,
                Err(error) => resume_unwind(Box::new(error.to_string())),
            }
        }
        Step::Done(sum)
    }
}

/// Looks for something until another has found it.
#[derive(Serialize, Deserialize)]
struct Seek {
    finds: bool,
}

impl Task<Tally> for Seek {
    const NAME: &'static str = "seek";
    type Output = bool;

    fn run(&mut self, env: &Tally, cx: &mut Context<'_, Tally, bool>) -> Step<bool> {
        if self.finds {
            cx.cancel_own_group();
            return Step::Done(true);
        }
        let _inside = env.enter();
        if cx.is_cancelled() {
            return Step::Done(false);
        }
        // Schedules are not fair to those that do not ask for it.
        yield_now();
        Step::More
    }
}

/// Cancels a group of its own as soon as somebody in it has found something.
#[derive(Serialize, Deserialize)]
struct Lead;

impl Task<Tally> for Lead {
    const NAME: &'static str = "lead";
    type Output = u32;

    fn run(&mut self, _env: &Tally, cx: &mut Context<'_, Tally, u32>) -> Step<u32> {
        let group = cx.group();
        for number in 0..4 {
            cx.fork(
                &group,
                Count {
                    first: number,
                    end: number + 1,
                    ..Count::default()
                },
            );
        }
        cx.fork(
            &group,
            Count {
                first: 4,
                end: 12,
                ..Count::default()
            },
        );
        let found = cx.join(&group).is_some();
        cx.cancel(&group);
        let more = iter::from_fn(|| cx.join(&group)).count() as u32;
        Step::Done(u32::from(found) + more)
    }
}

/// Goes on for ever.
#[derive(Serialize, Deserialize)]
struct Forever;

impl Task<Tally> for Forever {
    const NAME: &'static str = "forever";
    type Output = u32;

    fn run(&mut self, env: &Tally, _cx: &mut Context<'_, Tally, u32>) -> Step<u32> {
        let _inside = env.enter();
        yield_now();
        Step::More
    }
}

/// Waits for something that goes on for ever.
#[derive(Serialize, Deserialize)]
struct Patience;

impl Task<Tally> for Patience {
    const NAME: &'static str = "patience";
    type Output = u32;

    fn run(&mut self, env: &Tally, cx: &mut Context<'_, Tally, u32>) -> Step<u32> {
        let _inside = env.enter();
        let group = cx.group();
        cx.fork(&group, Forever);
        Step::Done(u32::from(cx.join(&group).is_some()))
    }
}

const LEAST: Bound<u32> = Bound::least("least");

/// Improves a bound with each of its values, and emits those that are better than what was known.
#[derive(Serialize, Deserialize)]
struct Improve(Vec<u32>);

impl Task<Tally> for Improve {
    const NAME: &'static str = "improve";
    type Output = u32;

    fn run(&mut self, _env: &Tally, cx: &mut Context<'_, Tally, u32>) -> Step<u32> {
        let Some(value) = self.0.pop() else {
            return Step::Done(u32::MAX);
        };
        if cx.improve(LEAST, value) {
            cx.emit(value);
        }
        if cx.best(LEAST).is_none_or(|best| best > value) {
            resume_unwind(Box::new("a rank forgets a bound"));
        }
        cx.charge(1);
        Step::More
    }
}

fn registry() -> Registry<Tally> {
    Registry::new()
        .with::<Count>()
        .with::<Nest>()
        .with::<Seek>()
        .with::<Lead>()
        .with::<Forever>()
        .with::<Patience>()
        .with::<Improve>()
        .with_bound(LEAST)
}

// ---- schedules

/// Runs a test in this many schedules of any kind, and in as many that keep to one thread as long
/// as it can go on, but for few places.
fn in_many_schedules(schedules: usize, test: impl Fn() + Send + Sync + Copy + 'static) {
    let asked = std::env::var("SCHEDULES").ok();
    let asked = asked.map(|n| n.parse().expect("SCHEDULES is a number"));
    let schedules = asked.unwrap_or(schedules);
    let mut config = Config::new();
    config.stack_size = 1 << 18;
    config.silence_warnings = true;
    let any = |n| RandomScheduler::new_from_seed(0, n);
    Runner::new(any(schedules), config.clone()).run(test);
    let few = PctScheduler::new_from_seed(0, 3, schedules);
    Runner::new(few, config.clone()).run(test);
    // Nothing but the schedule decides what happens.
    Runner::new(Twice::new(any(schedules / 20)), config).run(test);
}

/// Runs a scope on this many ranks with this many workers each, and looks at what is left.
fn run<R: Send>(
    ranks: usize,
    workers: usize,
    body: impl Fn(&mut Scope<'_, Tally>) -> Result<R, ScopeError> + Sync,
) -> Vec<Result<(R, ScopeReport), ScopeError>> {
    let options = ScopeOptions {
        workers,
        policy: Policy {
            // Whenever somebody has nothing to do.
            interval: Interval::Fixed(Duration::ZERO),
            ..Policy::HALF
        },
        slice: 2,
        watch: None,
        ..ScopeOptions::default()
    };
    let (registry, tally) = (registry(), Tally::default());
    let outcomes = Mutex::new(Vec::new());
    let rank = |mut comm: Net| {
        let outcome = scope(&mut comm, &registry, &tally, &options, &body);
        let mut outcomes = outcomes.lock().unwrap_or_else(PoisonError::into_inner);
        outcomes.push(outcome);
    };
    let mut comms = Net::all(ranks);
    if ranks == 1 {
        // To shuttle a thread that panics is a failure; this one may.
        comms.drain(..).for_each(&rank);
    }
    sync::scope(|threads| {
        for comm in comms {
            let rank = &rank;
            sync::spawn(threads, String::new(), move || rank(comm)).expect("it is shuttle's");
        }
    });
    assert_eq!(tally.inside.load(Ordering::Relaxed), 0, "a task still runs");
    outcomes
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner)
}

/// Everything that the tasks of one group give.
fn collect<T: Task<Tally>>(
    s: &mut Scope<'_, Tally>,
    tasks: Vec<T>,
) -> Result<Vec<Result<T::Output, TaskError>>, ScopeError> {
    let group = s.group();
    if s.rank() == Rank(0) {
        for task in tasks {
            s.fork(&group, task)?;
        }
    }
    let mut results = Vec::new();
    while let Some(result) = s.join(&group)? {
        results.push(result);
    }
    Ok(results)
}

fn ranges(ends: &[u32]) -> Vec<Count> {
    let ranges = ends.windows(2).map(|ends| Count {
        first: ends[0],
        end: ends[1],
        ..Count::default()
    });
    ranges.collect()
}

fn sorted(results: Vec<Result<u32, TaskError>>) -> Vec<u32> {
    let mut numbers: Vec<_> = results.into_iter().map(Result::unwrap).collect();
    numbers.sort_unstable();
    numbers
}

#[test]
fn every_result_comes_once() {
    in_many_schedules(1000, || {
        for outcome in run(1, 3, |s| collect(s, ranges(&[0, 8, 10, 11]))) {
            let (results, report) = outcome.unwrap();
            assert_eq!(sorted(results), Vec::from_iter(0..11));
            assert_eq!(report.tasks, 3 + report.hyperforks + report.splits);
        }
    });
}

#[test]
fn the_best_value_is_known_where_it_was_found_and_comes_home() {
    in_many_schedules(500, || {
        // On two ranks with two workers each, of which one improves what the other has just read.
        let body = |s: &mut Scope<'_, Tally>| {
            let values = [vec![9, 7, 12], vec![8, 5, 6], vec![10, 5, 11], vec![6, 13]];
            let found = collect(s, values.map(Improve).into())?;
            Ok((found, s.best(LEAST)?))
        };
        for outcome in run(2, 2, body) {
            let ((found, best), report) = outcome.unwrap();
            let best = best.unwrap_or(u32::MAX);
            assert!(best >= 5 && (report.tasks < 4 || best == 5));
            if let Some(least) = sorted(found).first() {
                assert_eq!(*least, 5);
            }
        }
    });
}

#[test]
fn workers_join_groups_of_their_tasks() {
    in_many_schedules(500, || {
        let body = |s: &mut Scope<'_, Tally>| {
            let tasks = [false, true].map(|litters| Nest { height: 2, litters });
            collect(s, tasks.into())
        };
        for outcome in run(1, 3, body) {
            let (results, _) = outcome.unwrap();
            assert_eq!(sorted(results), vec![Nest::sum(2); 2]);
        }
    });
}

#[test]
fn a_task_cancels_its_group_while_others_run() {
    in_many_schedules(1000, || {
        let body = |s: &mut Scope<'_, Tally>| {
            // The newest is the first to run, on a thread that is not the main one.
            let finds = [false, false, false, false, false, true];
            collect(s, finds.map(|finds| Seek { finds }).into())
        };
        for outcome in run(1, 3, body) {
            let (results, report) = outcome.unwrap();
            let found = results.iter().filter(|r| **r == Ok(true)).count();
            assert_eq!(found, 1);
            // One on each thread at most, beside the one that has found something.
            assert!(results.len() <= 4, "{results:?}");
            let ended = results.len() as u64;
            assert_eq!((report.tasks, report.dropped), (ended, 6 - ended));
        }
    });
}

#[test]
fn another_rank_cancels_a_group_while_tasks_of_it_run_and_wait() {
    in_many_schedules(1000, || {
        let body = |s: &mut Scope<'_, Tally>| {
            let group = s.group();
            if s.rank() == Rank(0) {
                for _ in 0..6 {
                    s.fork(&group, Seek { finds: false })?;
                }
            } else {
                s.cancel(&group)?;
            }
            while s.join(&group)?.is_some() {}
            Ok(())
        };
        let mut dropped = 0;
        for outcome in run(2, 2, body) {
            let ((), report) = outcome.unwrap();
            // None ends before it is cancelled, and none begins afterwards: one on each thread.
            assert!(report.tasks <= 2, "{report:?}");
            dropped += report.dropped;
        }
        assert!(dropped >= 4, "{dropped} dropped");
    });
}

#[test]
fn a_task_cancels_a_group_that_it_joins() {
    in_many_schedules(1000, || {
        for outcome in run(1, 3, |s| collect(s, vec![Lead, Lead])) {
            let (results, _) = outcome.unwrap();
            let numbers = sorted(results);
            assert_eq!(numbers.len(), 2);
            assert!(numbers.iter().all(|n| (1..=12).contains(n)), "{numbers:?}");
        }
    });
}

#[test]
fn a_panic_is_the_error_of_one_task() {
    in_many_schedules(1000, || {
        let body = |s: &mut Scope<'_, Tally>| {
            let mut tasks = ranges(&[0, 6, 8, 10]);
            tasks[1].panics_at = Some(7);
            collect(s, tasks)
        };
        for outcome in run(1, 3, body) {
            let (results, report) = outcome.unwrap();
            let (good, bad): (Vec<_>, Vec<_>) = results.into_iter().partition(Result::is_ok);
            assert_eq!(sorted(good), [0, 1, 2, 3, 4, 5, 6, 8, 9]);
            let cause = Failure::Panicked("dropped a stitch".to_owned());
            assert_eq!(
                Vec::from_iter(bad.iter().map(|b| &b.as_ref().unwrap_err().cause)),
                [&cause]
            );
            assert_eq!(report.tasks, 3 + report.hyperforks + report.splits);
        }
    });
}

#[test]
fn a_panic_in_a_split_is_the_error_of_its_task() {
    in_many_schedules(500, || {
        let body = |s: &mut Scope<'_, Tally>| {
            let mut tasks = ranges(&[0, 8, 16]);
            tasks[0].split_panics = true;
            collect(s, tasks)
        };
        for outcome in run(1, 3, body) {
            let (results, report) = outcome.unwrap();
            let (good, bad): (Vec<_>, Vec<_>) = results.into_iter().partition(Result::is_ok);
            let good = sorted(good);
            assert!(
                good.is_sorted_by(|a, b| a < b) && good.ends_with(&[8, 9, 10, 11, 12, 13, 14, 15])
            );
            assert!(!bad.is_empty() || good.len() == 16);
            assert_eq!(report.tasks, 2 + report.hyperforks + report.splits);
        }
    });
}

/// Leaves the other workers with tasks that have no end.
fn forever(s: &mut Scope<'_, Tally>) -> Result<(), ScopeError> {
    let endless = s.rooted_group();
    s.fork(&endless, Patience)?;
    s.fork(&endless, Forever)?;
    // This thread runs only tasks of the group that it joins.
    let group = s.rooted_group();
    let litters = true;
    s.fork(&group, Nest { height: 1, litters })?;
    let first = s.join(&group)?;
    assert_eq!(first, Some(Ok(Nest::sum(1))));
    Ok(())
}

#[test]
fn an_error_of_the_body_stops_tasks_that_run_and_wait() {
    in_many_schedules(1000, || {
        let body = |s: &mut Scope<'_, Tally>| {
            forever(s)?;
            Err::<(), _>(ScopeError::Body("enough".to_owned()))
        };
        let outcomes = run(1, 4, body);
        assert_eq!(outcomes.len(), 1);
        for outcome in outcomes {
            assert_eq!(outcome.err(), Some(ScopeError::Body("enough".to_owned())));
        }
    });
}

#[test]
fn a_panic_of_the_body_stops_tasks_that_run_and_wait() {
    in_many_schedules(1000, || {
        let body = |s: &mut Scope<'_, Tally>| -> Result<(), _> {
            forever(s)?;
            resume_unwind(Box::new("slipped"))
        };
        let caught = catch_unwind(AssertUnwindSafe(|| run(1, 4, body)));
        assert_eq!(caught.unwrap_err().downcast_ref(), Some(&"slipped"));
    });
}

#[test]
fn ranks_steal_from_each_others_workers() {
    in_many_schedules(300, || {
        let body = |s: &mut Scope<'_, Tally>| {
            let numbers = collect(s, ranges(&[0, 8, 9]))?;
            let sums = collect(
                s,
                vec![Nest {
                    height: 1,
                    litters: false,
                }],
            )?;
            Ok((numbers, sums))
        };
        let outcomes = run(2, 2, body);
        let (mut numbers, mut sums, mut tasks, mut made) = (Vec::new(), Vec::new(), 0, 0);
        for outcome in outcomes {
            let ((n, s), report) = outcome.unwrap();
            numbers.extend(n);
            sums.extend(s);
            tasks += report.tasks;
            made += report.hyperforks + report.splits;
        }
        assert_eq!(sorted(numbers), Vec::from_iter(0..9));
        assert_eq!(sorted(sums), [Nest::sum(1)]);
        assert_eq!(tasks, 2 + 5 + made);
    });
}
