//! Groups that tasks make: results, errors, depth, what is dropped, what a blocked join may run.

use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering};

use crate::common::{
    Limited, on_threads, on_virtual, rough, seeded, threaded, total, values, workers,
};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use weft_runtime::comm::virtual_time::{self, VirtualOptions};
use weft_runtime::comm::{Rank, solo::Solo, threads};
use weft_runtime::{
    Context, POLICIES, Policy, Registry, Scope, ScopeError, ScopeOptions, Split, Step, Task, scope,
};

/// Fibonacci's numbers, each of two others that a group brings.
#[derive(Serialize, Deserialize)]
struct Fib(u64);

impl<E: Sync> Task<E> for Fib {
    const NAME: &'static str = "fib";
    type Output = u64;

    fn run(&mut self, _env: &E, cx: &mut Context<'_, E, u64>) -> Step<u64> {
        cx.charge(10);
        if self.0 < 2 {
            return Step::Done(self.0);
        }
        let group = cx.group();
        cx.fork(&group, Self(self.0 - 1));
        cx.fork(&group, Self(self.0 - 2));
        let mut sum = 0;
        while let Some(part) = cx.join(&group) {
            sum += part.unwrap();
        }
        Step::Done(sum)
    }
}

fn fib(n: u64) -> u64 {
    (0..n).fold((0, 1), |(a, b), _| (b, a + b)).0
}

/// Every rank forks one; all get theirs.
fn fibs(s: &mut Scope<'_, ()>) -> Result<(), ScopeError> {
    let n = 8 + u64::from(s.rank().0) % 5;
    let group = s.group();
    s.fork(&group, Fib(n))?;
    assert_eq!(s.join(&group)?, Some(Ok(fib(n))));
    assert_eq!(s.join(&group)?, None);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn fib_by_groups_is_fib_on_threads(
        ranks in 1usize..=8,
        workers in 1usize..=3,
        progress_thread in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let options = ScopeOptions { workers, progress_thread, ..seeded(seed) };
        let registry = Registry::new().with::<Fib>();
        values(on_threads(ranks, &options, &registry, || (), fibs));
    }
}

/// Ranks that wait in joins of their own get, with lifelines, tasks that others wait for.
#[test]
fn fib_by_groups_is_fib_in_virtual_time() {
    let registry = Registry::new().with::<Fib>();
    for (name, policy, _) in POLICIES {
        for seed in 0..24 {
            let options = ScopeOptions {
                policy: *policy,
                ..seeded(seed)
            };
            let ranks = [1, 2, 3, 5, 9, 13, 16, 17, 27, 33, 48, 64][(seed / 2) as usize];
            for ended in on_virtual(ranks, &rough(seed), &options, &registry, || (), fibs).results {
                ended.unwrap_or_else(|error| panic!("{name}, {ranks} ranks, seed {seed}: {error}"));
            }
        }
    }
}

/// Forks the next shallower one, and so on.
#[derive(Serialize, Deserialize)]
struct Chain(u32);

impl Task<()> for Chain {
    const NAME: &'static str = "chain";
    type Output = u32;

    fn run(&mut self, _env: &(), cx: &mut Context<'_, (), u32>) -> Step<u32> {
        cx.charge(1);
        if self.0 == 0 {
            return Step::Done(0);
        }
        let group = cx.group();
        cx.fork(&group, Self(self.0 - 1));
        let below = cx.join(&group).unwrap().unwrap();
        assert!(cx.join(&group).is_none());
        Step::Done(below + 1)
    }
}

fn chain(s: &mut Scope<'_, ()>, depth: u32) -> Result<(), ScopeError> {
    let group = s.group();
    if s.rank() == Rank(0) {
        s.fork(&group, Chain(depth))?;
        assert_eq!(s.join(&group)?, Some(Ok(depth)));
    }
    assert_eq!(s.join(&group)?, None);
    Ok(())
}

/// Joins nest as deep as [`Context::join`] promises, with some room.
#[test]
fn groups_nest_hundreds_deep() {
    let registry = Registry::new().with::<Chain>();
    for ranks in [1, 2] {
        let body = |s: &mut Scope<'_, ()>| chain(s, 600);
        values(on_threads(ranks, &workers(1), &registry, || (), body));
        values(on_threads(ranks, &workers(3), &registry, || (), body));
        let mut options = VirtualOptions::default();
        let shallow = |s: &mut Scope<'_, ()>| chain(s, 300);
        values(on_virtual(ranks, &options, &seeded(0), &registry, || (), shallow).results);
        options.stack = 4 << 20;
        let deep = |s: &mut Scope<'_, ()>| chain(s, 1000);
        values(on_virtual(ranks, &options, &seeded(0), &registry, || (), deep).results);
    }
}

/// A range whose sum is of its halves, and so on.
#[derive(Serialize, Deserialize)]
struct Sum(u64, u64);

impl Task<()> for Sum {
    const NAME: &'static str = "sum";
    type Output = u64;

    fn run(&mut self, _env: &(), cx: &mut Context<'_, (), u64>) -> Step<u64> {
        let end = self.1.min(self.0 + u64::from(cx.budget()));
        cx.charge(end - self.0);
        let sum = (self.0..end).sum();
        self.0 = end;
        if self.0 == self.1 {
            return Step::Done(sum);
        }
        cx.emit(sum);
        Step::More
    }

    fn split(&mut self, _how: Split) -> Option<Self> {
        let middle = self.0.midpoint(self.1);
        (middle > self.0).then(|| Self(middle, std::mem::replace(&mut self.1, middle)))
    }
}

/// The things that can be wrong with a word: what its letters say, whom it asks.
#[derive(Serialize, Deserialize)]
struct Word(String);

impl Task<()> for Word {
    const NAME: &'static str = "word";
    type Output = String;

    fn run(&mut self, _env: &(), cx: &mut Context<'_, (), String>) -> Step<String> {
        let (sums, fibs) = (cx.group::<u64>(), cx.group::<u64>());
        for letter in self.0.bytes() {
            cx.fork(&sums, Sum(0, u64::from(letter) * 100));
            cx.fork(&fibs, Fib(u64::from(letter % 8)));
        }
        // The other way round than forked.
        let mut numbers = [0, 0];
        for (number, group) in numbers.iter_mut().zip([&fibs, &sums]) {
            while let Some(part) = cx.join(group) {
                *number += part.unwrap();
            }
        }
        Step::Done(format!("{} {numbers:?}", self.0))
    }
}

fn words(s: &mut Scope<'_, ()>) -> Result<(), ScopeError> {
    let (words, sums) = (s.group(), s.group());
    let (count, end) = match s.rank() {
        Rank(0) => (9, 600_000),
        _ => (0, 1000),
    };
    for n in 0..count {
        s.fork(&words, Word(format!("weft{n}")))?;
    }
    s.fork(&sums, Sum(0, end))?;
    let mut all = Vec::new();
    while let Some(word) = s.join(&words)? {
        all.push(word?);
    }
    all.sort();
    for (n, text) in all.iter().enumerate() {
        let word = format!("weft{n}");
        let sum = |n: u64| n * (n - 1) / 2;
        let sums: u64 = word.bytes().map(|b| sum(u64::from(b) * 100)).sum();
        let fibs: u64 = word.bytes().map(|b| fib(u64::from(b % 8))).sum();
        assert_eq!(*text, format!("{word} {:?}", [fibs, sums]));
    }
    assert_eq!(all.len(), count);
    let mut sum = 0;
    while let Some(part) = s.join(&sums)? {
        sum += part?;
    }
    assert_eq!(sum, end * (end - 1) / 2);
    Ok(())
}

#[test]
fn tasks_of_many_kinds_are_joined_stolen_and_split() {
    let registry = || {
        let registry = Registry::new().with::<Word>();
        registry.with::<Sum>().with::<Fib>()
    };
    for (ranks, options) in threaded([
        (1, 1, false),
        (1, 3, false),
        (2, 2, false),
        (4, 1, false),
        (8, 3, false),
        (1, 1, true),
        (3, 1, true),
        (2, 2, true),
    ]) {
        values(on_threads(ranks, &options, &registry(), || (), words));
    }
    for seed in 0..10 {
        let options = seeded(seed);
        let ended = on_virtual(7, &rough(seed), &options, &registry(), || (), words).results;
        let stolen = total(&ended, |r| r.tasks_in);
        let splits = total(&ended, |r| r.splits);
        values(ended);
        assert!(stolen > 0 && splits > 0, "{stolen} {splits}");
    }
}

/// A rank registers, with lifelines, for tasks of the group that it waits for: for each of them
/// anew.
#[test]
fn lifelines_bring_tasks_of_every_group() {
    let registry = Registry::new().with::<Sum>();
    let options = ScopeOptions {
        policy: Policy::LIFELINES,
        ..seeded(3)
    };
    let body = |s: &mut Scope<'_, ()>| {
        for _ in 0..4 {
            let group = s.group();
            if s.rank() == Rank(0) {
                s.fork(&group, Sum(0, 400_000))?;
            }
            while s.join(&group)?.is_some() {}
        }
        Ok(())
    };
    let virtually = VirtualOptions::default();
    let ended = on_virtual(4, &virtually, &options, &registry, || (), body).results;
    for one in ended {
        // One group alone is worth a quarter of that.
        assert!(one.unwrap().1.work > 4 * 50_000);
    }
}

/// Panics, or has a group of which one does.
#[derive(Serialize, Deserialize)]
struct Fragile {
    nested: bool,
}

impl Task<()> for Fragile {
    const NAME: &'static str = "fragile";
    type Output = String;

    fn run(&mut self, _env: &(), cx: &mut Context<'_, (), String>) -> Step<String> {
        assert!(self.nested, "the thread broke");
        let group = cx.group();
        cx.fork(&group, Self { nested: false });
        let Some(Err(error)) = cx.join(&group) else {
            panic!("it should have");
        };
        assert!(cx.join(&group).is_none());
        // The group is as good as new, and so is this task.
        cx.fork(&group, Self { nested: false });
        assert!(cx.join(&group).unwrap().is_err());
        Step::Done(error.to_string())
    }
}

#[test]
fn a_panic_in_a_nested_group_is_for_the_task_that_joins_it() {
    let registry = Registry::new().with::<Fragile>();
    for workers in [1, 2] {
        let options = ScopeOptions {
            workers,
            ..ScopeOptions::default()
        };
        let told = scope(&mut Solo::new(), &registry, &(), &options, |s| {
            let group = s.rooted_group();
            s.fork(&group, Fragile { nested: true })?;
            let told = s.join(&group)?.unwrap()?;
            assert_eq!(s.join(&group)?, None);
            Ok(told)
        });
        assert_eq!(
            told.unwrap().0,
            "task `fragile` failed on rank 0: it panicked: the thread broke"
        );
    }
}

/// Makes a group and does not care for it, or only for its first result.
#[derive(Serialize, Deserialize)]
struct Careless {
    takes: usize,
}

impl Task<()> for Careless {
    const NAME: &'static str = "careless";
    type Output = ();

    fn run(&mut self, _env: &(), cx: &mut Context<'_, (), ()>) -> Step<()> {
        let group = cx.group();
        for n in 0..6 {
            cx.fork(&group, Sum(0, 1000 * n));
        }
        for _ in 0..self.takes {
            assert!(cx.join(&group).is_some());
        }
        // One that nobody puts anything into.
        drop(cx.group::<u64>());
        Step::Done(())
    }
}

fn carelessly(s: &mut Scope<'_, ()>) -> Result<(), ScopeError> {
    let (all, own) = (s.group(), s.rooted_group());
    for group in [&all, &own] {
        s.fork(group, Careless { takes: 0 })?;
        s.fork(group, Careless { takes: 1 })?;
        s.fork(group, Careless { takes: 3 })?;
    }
    for group in [&all, &own] {
        for _ in 0..3 {
            assert_eq!(s.join(group)?, Some(Ok(())));
        }
        assert_eq!(s.join(group)?, None);
    }
    Ok(())
}

#[test]
fn groups_that_nobody_joins_to_their_end_keep_nobody() {
    let registry = Registry::new().with::<Careless>().with::<Sum>();
    for (ranks, options) in threaded([
        (1, 1, false),
        (1, 3, false),
        (3, 1, false),
        (4, 2, false),
        (1, 1, true),
        (3, 1, true),
        (2, 2, true),
    ]) {
        let ended = on_threads(ranks, &options, &registry, || (), carelessly);
        // All forked tasks were run.
        let sums = total(&ended, |r| r.work);
        assert_eq!(sums, 6 * 15_000 * ranks as u64);
        values(ended);
    }
    for seed in 0..20 {
        let options = seeded(seed);
        let ranks = 1 + seed as usize;
        values(on_virtual(ranks, &rough(seed), &options, &registry, || (), carelessly).results);
    }
}

/// A group that outlives its body, full of results.
#[test]
fn a_group_that_is_returned_keeps_nobody() {
    let registry = Registry::new().with::<Sum>();
    values(
        on_virtual(
            3,
            &VirtualOptions::default(),
            &seeded(1),
            &registry,
            || (),
            |s| {
                let group = s.rooted_group();
                s.fork(&group, Sum(0, 10_000))?;
                Ok(group)
            },
        )
        .results,
    );
}

/// Locks what others may hold while they wait.
#[derive(Serialize, Deserialize)]
enum Locker {
    Locks,
    LocksAndJoins,
    Works,
}

impl Task<Mutex<u32>> for Locker {
    const NAME: &'static str = "locker";
    type Output = ();

    fn run(&mut self, env: &Mutex<u32>, cx: &mut Context<'_, Mutex<u32>, ()>) -> Step<()> {
        match self {
            Self::Locks => *env.lock().unwrap() += 1,
            Self::LocksAndJoins => {
                let mut count = env.lock().unwrap();
                *count += 1;
                let group = cx.group();
                (0..3).for_each(|_| cx.fork(&group, Self::Works));
                while cx.join(&group).is_some() {}
            }
            Self::Works => cx.charge(500),
        }
        Step::Done(())
    }
}

fn locks(s: &mut Scope<'_, Mutex<u32>>, env: &Mutex<u32>) -> Result<(), ScopeError> {
    let (first, second) = (s.group(), s.group());
    for _ in 0..4 {
        s.fork(&first, Locker::Works)?;
        s.fork(&second, Locker::Locks)?;
        s.fork(&second, Locker::LocksAndJoins)?;
    }
    let guard = env.lock().unwrap();
    while s.join(&first)?.is_some() {}
    drop(guard);
    while s.join(&second)?.is_some() {}
    Ok(())
}

#[test]
fn a_join_runs_nothing_but_its_own_group() {
    let registry = Registry::new().with::<Locker>();
    threads::launch(4, |comm| {
        let (mut comm, env) = (Limited::new(comm), Mutex::new(0));
        scope(&mut comm, &registry, &env, &workers(1), |s| locks(s, &env)).unwrap();
    })
    .unwrap();
    for seed in 0..20 {
        let counts = virtual_time::launch(9, &rough(seed), |comm| {
            let (mut comm, env) = (Limited::short(comm), Mutex::new(0));
            scope(&mut comm, &registry, &env, &seeded(seed), |s| {
                locks(s, &env)
            })
            .unwrap();
            env.into_inner().unwrap()
        });
        assert_eq!(counts.unwrap().results.iter().sum::<u32>(), 9 * 8);
    }
}

/// Each rank's own groups, several at a time; some ranks make none.
fn own_groups(s: &mut Scope<'_, ()>) -> Result<(), ScopeError> {
    let me = u64::from(s.rank().0);
    if me % 3 == 2 {
        return Ok(());
    }
    let groups: Vec<_> = (0..=me % 4).map(|_| s.rooted_group()).collect();
    for (n, group) in (0..).zip(&groups) {
        s.fork(group, Sum(0, 1000 * (n + me)))?;
        s.fork(group, Fib(6))?;
    }
    // The youngest first.
    for (n, group) in (0..=me % 4).rev().zip(groups.iter().rev()) {
        let mut sum = 0;
        while let Some(part) = s.join(group)? {
            sum += part?;
        }
        let end: u64 = 1000 * (n + me);
        assert_eq!(sum, fib(6) + end * end.saturating_sub(1) / 2);
        // It may be used again.
        s.fork(group, Fib(4))?;
        assert_eq!(s.join(group)?, Some(Ok(fib(4))));
        assert_eq!(s.join(group)?, None);
    }
    Ok(())
}

#[test]
fn ranks_fork_into_groups_of_their_own_at_once() {
    let registry = Registry::new().with::<Sum>().with::<Fib>();
    for (ranks, options) in threaded([
        (1, 1, false),
        (3, 2, false),
        (8, 1, false),
        (1, 1, true),
        (3, 1, true),
        (2, 2, true),
    ]) {
        values(on_threads(ranks, &options, &registry, || (), own_groups));
    }
    for seed in 0..30 {
        let options = seeded(seed);
        let ranks = 2 + seed as usize;
        let ended = on_virtual(ranks, &rough(seed), &options, &registry, || (), own_groups).results;
        assert!(ranks < 4 || total(&ended, |r| r.tasks_in) > 0);
        values(ended);
    }
}

#[test]
fn one_rank_forks_and_joins_while_others_only_help() {
    let registry = Registry::new().with::<Sum>();
    let body = |s: &mut Scope<'_, ()>| {
        if s.rank() == Rank(2) {
            let group = s.rooted_group();
            s.fork(&group, Sum(0, 100_000))?;
            while s.join(&group)?.is_some() {}
        }
        Ok(())
    };
    let ended = on_virtual(
        5,
        &VirtualOptions::default(),
        &seeded(2),
        &registry,
        || (),
        body,
    )
    .results;
    for one in &ended {
        assert!(one.as_ref().unwrap().1.work > 10_000);
    }
}

/// A result that counts those of its kind.
#[derive(Debug, Serialize)]
struct Counted(u32);

static ALIVE: AtomicI64 = AtomicI64::new(0);

impl Counted {
    fn new(n: u32) -> Self {
        ALIVE.fetch_add(1, Ordering::Relaxed);
        Self(n)
    }
}

impl<'de> Deserialize<'de> for Counted {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        u32::deserialize(d).map(Self::new)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        ALIVE.fetch_sub(1, Ordering::Relaxed);
    }
}

#[derive(Serialize, Deserialize)]
struct Gives(u32);

impl Task<()> for Gives {
    const NAME: &'static str = "gives";
    type Output = Counted;

    fn run(&mut self, _env: &(), cx: &mut Context<'_, (), Counted>) -> Step<Counted> {
        let nested = cx.group();
        if self.0 > 0 {
            cx.fork(&nested, Self(self.0 - 1));
            cx.fork(&nested, Self(self.0 - 1));
            drop(cx.join(&nested));
        }
        cx.emit(Counted::new(1));
        Step::Done(Counted::new(2))
    }
}

#[test]
fn results_that_nobody_takes_are_dropped() {
    let registry = Registry::new().with::<Gives>();
    values(on_threads(
        3,
        &workers(2),
        &registry,
        || (),
        |s| {
            let (all, own) = (s.group(), s.rooted_group());
            s.fork(&all, Gives(4))?;
            s.fork(&own, Gives(4))?;
            let taken = s.join(&all)?.unwrap()?;
            assert!(taken.0 > 0);
            Ok(())
        },
    ));
    assert_eq!(ALIVE.load(Ordering::Relaxed), 0);
}
