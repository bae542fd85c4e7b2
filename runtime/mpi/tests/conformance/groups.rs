//! Thread groups over MPI: every task once, steals balanced, errors at home, blocks fetched, groups
//! nested, workers that are threads.

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use weft_runtime::comm::{Collectives, Comm, Rank};
use weft_runtime::{
    BlockName, Bound, Context, Failure, Policy, Registry, ScopeOptions, ScopeReport, Split, Step,
    Task, scope,
};

use crate::cases::Case;

pub(crate) const CASES: [(&str, Case); 9] = [
    ("every_task_runs_once_and_its_result_comes_home", counts),
    ("idle_ranks_steal_and_what_is_given_is_taken", steals),
    ("workers_share_the_tasks_of_their_rank", workers),
    (
        "a_task_that_returns_late_holds_up_nobody_where_a_thread_is_for_messages",
        late,
    ),
    ("a_task_that_panics_is_an_error_at_its_home", panics),
    ("tasks_get_the_blocks_they_need", blocks),
    ("groups_of_tasks_are_joined_inside_tasks", nested),
    ("tasks_hear_a_bound_while_they_run", bounds),
    ("a_scope_that_fails_ends_the_others", fails),
];

/// Counts a range, handing parts of it to children, splittable in between.
#[derive(Clone, Serialize, Deserialize)]
struct Count {
    first: u32,
    end: u32,
    fails_at: Option<u32>,
}

impl Task<()> for Count {
    const NAME: &'static str = "count";
    type Output = Vec<u32>;

    fn run(&mut self, _env: &(), cx: &mut Context<'_, (), Vec<u32>>) -> Step<Vec<u32>> {
        for _ in 0..4 {
            if self.first >= self.end {
                break;
            }
            assert_ne!(Some(self.first), self.fails_at, "dropped a stitch");
            let child_end = (self.first + 7).min(self.end);
            if self.first % 3 == 1 && child_end > self.first + 1 {
                cx.hyperfork(Self {
                    first: self.first + 1,
                    end: child_end,
                    fails_at: self.fails_at,
                });
                cx.emit(vec![self.first]);
                self.first = child_end;
            } else {
                cx.emit(vec![self.first]);
                self.first += 1;
            }
            cx.charge(1);
        }
        if self.first < self.end {
            Step::More
        } else {
            Step::Done(vec![])
        }
    }

    fn split(&mut self, how: Split) -> Option<Self> {
        let left = self.end - self.first;
        if left < 2 || how.gives_nothing() {
            return None;
        }
        let middle = self.first + left / 2;
        let piece = Self {
            first: middle,
            ..self.clone()
        };
        self.end = middle;
        Some(piece)
    }
}

/// Every rank counts a range of its own, rank 0 one ten times as long.
fn count_on(comm: &mut dyn Comm, options: &ScopeOptions) -> ScopeReport {
    let me = comm.rank().0;
    let length = if me == 0 { 10_000 } else { 1000 };
    let (first, end) = (me * 20_000, me * 20_000 + length);
    let registry = Registry::new().with::<Count>();
    let outcome = scope(comm, &registry, &(), options, |s| {
        let group = s.group();
        s.fork(
            &group,
            Count {
                first,
                end,
                fails_at: None,
            },
        )?;
        let mut numbers = Vec::new();
        while let Some(result) = s.join(&group)? {
            numbers.extend(result?);
        }
        Ok(numbers)
    });
    let (mut numbers, report) = outcome.unwrap();
    numbers.sort_unstable();
    assert!(
        numbers.into_iter().eq(first..end),
        "lost or doubled on {me}"
    );
    report
}

/// Sums over all ranks.
fn total(comm: &mut dyn Comm, of_this_rank: u64) -> u64 {
    let all = comm.allgather(of_this_rank.to_le_bytes().to_vec()).unwrap();
    let read = |bytes: &Vec<u8>| u64::from_le_bytes(bytes[..].try_into().unwrap());
    all.iter().map(read).sum()
}

fn counts(comm: &mut dyn Comm) {
    for seed in 0..3 {
        for policy in [Policy::default(), Policy::STATIC] {
            let options = ScopeOptions {
                seed,
                policy,
                ..ScopeOptions::default()
            };
            let report = count_on(comm, &options);
            let sent = total(comm, report.tasks_out);
            let got = total(comm, report.tasks_in);
            assert_eq!(sent, got);
            assert!(policy.steal || sent == 0);
        }
    }
}

/// Sleeps, so that others have time to ask even where ranks share a core.
#[derive(Serialize, Deserialize)]
struct Sleep;

impl Task<()> for Sleep {
    const NAME: &'static str = "sleep";
    type Output = ();

    #[expect(clippy::disallowed_methods, reason = "stands for work")]
    fn run(&mut self, _env: &(), _cx: &mut Context<'_, (), ()>) -> Step<()> {
        thread::sleep(Duration::from_millis(2));
        Step::Done(())
    }
}

fn sleeps_on(comm: &mut dyn Comm, options: &ScopeOptions, count: u32) -> ScopeReport {
    let registry = Registry::new().with::<Sleep>();
    let outcome = scope(comm, &registry, &(), options, |s| {
        let group = s.group();
        for _ in 0..if s.rank() == Rank(0) { count } else { 0 } {
            s.fork(&group, Sleep)?;
        }
        let mut sleeps = 0;
        while let Some(result) = s.join(&group)? {
            result?;
            sleeps += 1;
        }
        Ok(sleeps)
    });
    let (sleeps, report) = outcome.unwrap();
    assert_eq!(sleeps, if comm.rank() == Rank(0) { count } else { 0 });
    report
}

fn steals(comm: &mut dyn Comm) {
    let report = sleeps_on(comm, &ScopeOptions::default(), 60);
    assert_eq!(total(comm, report.tasks), 60);
    let (stolen, served) = (total(comm, report.tasks_in), total(comm, report.served));
    if comm.size() > 1 {
        assert!(stolen > 0 && served > 0);
    }
}

fn workers(comm: &mut dyn Comm) {
    let options = ScopeOptions {
        workers: 3,
        ..ScopeOptions::default()
    };
    for progress_thread in [false, true] {
        let options = ScopeOptions {
            progress_thread,
            ..options
        };
        count_on(comm, &options);
        let report = sleeps_on(comm, &options, 60);
        assert_eq!(report.busy.len(), 3);
        assert_eq!(total(comm, report.tasks), 60);
    }
}

/// The messages that tasks of a rank and its body pass to each other.
#[derive(Default)]
struct Seen {
    results: AtomicU32,
}

/// Sums of a block, or a task that returns when this many of those are known at its rank.
#[derive(Serialize, Deserialize)]
enum Late {
    Sum(BlockName),
    Until(u32),
}

impl Task<Seen> for Late {
    const NAME: &'static str = "late";
    /// The sum; 0 if it was waited for in vain.
    type Output = u64;

    fn needs(&self) -> Vec<BlockName> {
        match self {
            Self::Sum(block) => vec![*block],
            Self::Until(_) => vec![],
        }
    }

    #[expect(clippy::disallowed_methods, reason = "it waits, but not for ever")]
    fn run(&mut self, env: &Seen, cx: &mut Context<'_, Seen, u64>) -> Step<u64> {
        match self {
            Self::Sum(block) => Step::Done(cx.block(block).iter().map(|&b| u64::from(b)).sum()),
            Self::Until(results) => {
                let begin = Instant::now();
                while env.results.load(Ordering::Acquire) < *results {
                    if begin.elapsed() > Duration::from_secs(30) {
                        return Step::Done(0);
                    }
                    thread::sleep(Duration::from_millis(1));
                }
                Step::Done(u64::from(*results))
            }
        }
    }
}

/// Rank 0's only worker is in a task that ends when the results of all others are there: other
/// ranks must be able to steal them, to fetch a long block for them, and to bring them home, all
/// while it runs.
fn late(comm: &mut dyn Comm) {
    const LENGTH: usize = 300_000;
    const SUMS: u32 = 20;
    let registry = Registry::new().with::<Late>();
    let options = ScopeOptions {
        // With nobody to steal them.
        workers: if comm.size() == 1 { 2 } else { 1 },
        progress_thread: true,
        ..ScopeOptions::default()
    };
    let seen = Seen::default();
    let outcome = scope(comm, &registry, &seen, &options, |s| {
        let group = s.group();
        if s.rank() == Rank(0) {
            let block = s.publish(0, 1, vec![1; LENGTH])?;
            for _ in 0..SUMS {
                s.fork(&group, Late::Sum(block))?;
            }
            // The newest is taken first.
            s.fork(&group, Late::Until(SUMS))?;
        }
        let mut found = Vec::new();
        while let Some(result) = s.join(&group)? {
            found.push(result?);
            seen.results.fetch_add(1, Ordering::Release);
        }
        Ok(found)
    });
    let (mut found, report) = outcome.unwrap();
    assert_eq!(report.busy.len(), options.workers);
    if comm.rank() == Rank(0) {
        assert_eq!(found.pop(), Some(u64::from(SUMS)), "it waited in vain");
        assert_eq!(found, [LENGTH as u64; SUMS as usize]);
    }
    let stolen = total(comm, report.tasks_in);
    assert!(stolen >= u64::from(SUMS) || comm.size() == 1);
}

fn panics(comm: &mut dyn Comm) {
    let registry = Registry::new().with::<Count>();
    let options = ScopeOptions {
        workers: 2,
        ..ScopeOptions::default()
    };
    let me = comm.rank().0;
    let outcome = scope(comm, &registry, &(), &options, |s| {
        let group = s.group();
        for first in [me * 1000, me * 1000 + 100, me * 1000 + 200] {
            let task = Count {
                first,
                end: first + 50,
                fails_at: Some(me * 1000 + 110),
            };
            s.fork(&group, task)?;
        }
        let mut errors = Vec::new();
        while let Some(result) = s.join(&group)? {
            errors.extend(result.err());
        }
        Ok(errors)
    });
    let (errors, _) = outcome.unwrap();
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert_eq!(errors[0].task, "count");
    let Failure::Panicked(message) = &errors[0].cause else {
        panic!("{errors:?}")
    };
    assert!(message.contains("dropped a stitch"), "{message}");
}

/// Adds up a block.
#[derive(Serialize, Deserialize)]
struct Sum(BlockName);

impl Task<()> for Sum {
    const NAME: &'static str = "sum";
    type Output = u64;

    fn needs(&self) -> Vec<BlockName> {
        vec![self.0]
    }

    fn run(&mut self, _env: &(), cx: &mut Context<'_, (), u64>) -> Step<u64> {
        Step::Done(cx.block(&self.0).iter().map(|&b| u64::from(b)).sum())
    }
}

fn blocks(comm: &mut dyn Comm) {
    // Long enough to travel in pieces.
    const LENGTH: usize = 300_000;
    let registry = Registry::new().with::<Sum>();
    let ranks = comm.size() as u64;
    let options = ScopeOptions::default();
    let outcome = scope(comm, &registry, &(), &options, |s| {
        let me = u64::from(s.rank().0);
        s.publish(me, 1, vec![me as u8 + 1; LENGTH])?;
        let group = s.group();
        for other in 0..ranks {
            let home = Rank(other as u32);
            s.fork(
                &group,
                Sum(BlockName {
                    home,
                    id: other,
                    version: 1,
                }),
            )?;
        }
        let mut sum = 0;
        while let Some(result) = s.join(&group)? {
            sum += result?;
        }
        Ok(sum)
    });
    let (sum, report) = outcome.unwrap();
    assert_eq!(sum, LENGTH as u64 * ranks * (ranks + 1) / 2);
    let fetches = total(comm, report.fetches);
    assert!(fetches > 0 || ranks == 1);
}

/// A Fibonacci number by groups inside tasks.
#[derive(Serialize, Deserialize)]
struct Fibonacci(u32);

impl Task<()> for Fibonacci {
    const NAME: &'static str = "fibonacci";
    type Output = u64;

    fn run(&mut self, _env: &(), cx: &mut Context<'_, (), u64>) -> Step<u64> {
        if self.0 < 2 {
            return Step::Done(u64::from(self.0));
        }
        let group = cx.group();
        cx.fork(&group, Self(self.0 - 1));
        cx.fork(&group, Self(self.0 - 2));
        let mut sum = 0;
        while let Some(result) = cx.join(&group) {
            sum += result.expect("no task fails");
        }
        Step::Done(sum)
    }
}

fn nested(comm: &mut dyn Comm) {
    let registry = Registry::new().with::<Fibonacci>();
    for (workers, progress_thread) in [(1, false), (2, false), (1, true), (2, true)] {
        let options = ScopeOptions {
            workers,
            progress_thread,
            ..ScopeOptions::default()
        };
        let outcome = scope(comm, &registry, &(), &options, |s| {
            let group = s.rooted_group();
            if s.rank() == Rank(0) {
                s.fork(&group, Fibonacci(12))?;
            }
            let mut sum = 0;
            while let Some(result) = s.join(&group)? {
                sum += result?;
            }
            Ok(sum)
        });
        let (sum, _) = outcome.unwrap();
        assert_eq!(sum, if comm.rank() == Rank(0) { 144 } else { 0 });
    }
}

const FARTHEST: Bound<u32> = Bound::greatest("farthest rank");

/// Tells its rank's number, and runs until it has heard that of the last rank.
#[derive(Serialize, Deserialize)]
struct Listen {
    last: u32,
}

impl Task<()> for Listen {
    const NAME: &'static str = "listen";
    type Output = u32;

    fn run(&mut self, _env: &(), cx: &mut Context<'_, (), u32>) -> Step<u32> {
        cx.improve(FARTHEST, cx.rank().0);
        match cx.best(FARTHEST) {
            Some(rank) if rank == self.last => Step::Done(rank),
            _ => {
                thread::yield_now();
                Step::More
            }
        }
    }
}

fn bounds(comm: &mut dyn Comm) {
    let registry = Registry::new().with::<Listen>().with_bound(FARTHEST);
    let last = comm.size() as u32 - 1;
    for (workers, progress_thread) in [(1, false), (2, false), (1, true)] {
        let options = ScopeOptions {
            workers,
            progress_thread,
            policy: Policy::STATIC,
            ..ScopeOptions::default()
        };
        let outcome = scope(comm, &registry, &(), &options, |s| {
            let group = s.group();
            s.fork(&group, Listen { last })?;
            let mut heard = Vec::new();
            while let Some(result) = s.join(&group)? {
                heard.push(result?);
            }
            Ok(heard)
        });
        assert_eq!(outcome.unwrap().0, [last]);
    }
}

fn fails(comm: &mut dyn Comm) {
    let registry = Registry::new().with::<Sleep>();
    let last = Rank(comm.size() as u32 - 1);
    let outcome = scope(comm, &registry, &(), &ScopeOptions::default(), |s| {
        let group = s.group::<()>();
        if s.rank() == last {
            return Err(weft_runtime::ScopeError::Body("no more wool".to_owned()));
        }
        while s.join(&group)?.is_some() {}
        Ok(())
    });
    let error = outcome.unwrap_err().to_string();
    assert!(error.contains("no more wool"), "{error}");
}
