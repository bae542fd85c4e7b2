//! Cancelled groups: what waits is dropped, what runs hears of it, on every rank; others go on.

use std::collections::BTreeSet;

use crate::common::{Ended, on_threads, on_virtual, rough, seeded, threaded, total, values};
use serde::{Deserialize, Serialize};
use weft_runtime::comm::Rank;
use weft_runtime::{Context, Registry, Scope, ScopeError, Step, Task};

/// Looks for a number; the tasks that look for more of them than are left wait.
#[derive(Clone, Serialize, Deserialize)]
struct Search {
    first: u64,
    end: u64,
    wanted: u64,
    /// Whether who finds it cancels the search.
    cancels: bool,
}

const LEAF: u64 = 1000;

impl Task<()> for Search {
    const NAME: &'static str = "search";
    type Output = Option<u64>;

    fn run(&mut self, _env: &(), cx: &mut Context<'_, (), Option<u64>>) -> Step<Option<u64>> {
        while self.end - self.first > LEAF {
            let middle = self.first.midpoint(self.end);
            cx.hyperfork(Self {
                first: middle,
                ..self.clone()
            });
            self.end = middle;
        }
        let end = self.end.min(self.first + u64::from(cx.budget()));
        cx.charge(end - self.first);
        let found = (self.first..end).contains(&self.wanted);
        if found && self.cancels {
            cx.cancel_own_group();
        }
        self.first = end;
        if found {
            return Step::Done(Some(self.wanted));
        }
        if self.first == self.end || cx.is_cancelled() {
            return Step::Done(None);
        }
        Step::More
    }
}

const SPACE: u64 = 500_000;

fn search(wanted: u64, cancels: bool) -> Search {
    Search {
        first: 0,
        end: SPACE,
        wanted,
        cancels,
    }
}

/// Rank 0's group, collective or rooted, ends with the first that is found.
fn first_found(s: &mut Scope<'_, ()>, rooted: bool, cancels: bool) -> Result<u64, ScopeError> {
    let group = if rooted { s.rooted_group() } else { s.group() };
    let mut found = 0;
    if s.rank() == Rank(0) {
        s.fork(&group, search(SPACE / 3, cancels))?;
    }
    while let Some(result) = s.join(&group)? {
        if let Some(number) = result? {
            found += number;
            if !cancels {
                s.cancel(&group)?;
                s.cancel(&group)?;
            }
        }
    }
    Ok(found)
}

fn check(ended: Vec<Ended<u64>>, case: &str) {
    let (dropped, work) = (total(&ended, |r| r.dropped), total(&ended, |r| r.work));
    let found: u64 = values(ended).iter().sum();
    assert_eq!(found, SPACE / 3);
    // As many as there are leaves, and not all of them were looked at.
    assert!(
        dropped > 0 && work < SPACE,
        "{case}: {dropped} dropped, {work} done"
    );
}

#[test]
fn the_first_that_is_found_ends_the_search_everywhere() {
    let registry = Registry::new().with::<Search>();
    for (rooted, cancels) in [(false, false), (false, true), (true, false), (true, true)] {
        let body = |s: &mut Scope<'_, ()>| first_found(s, rooted, cancels);
        for (ranks, options) in threaded([
            (1, 1, false),
            (2, 1, false),
            (4, 1, false),
            (2, 3, false),
            (1, 1, true),
            (3, 1, true),
            (2, 2, true),
        ]) {
            let found = values(on_threads(ranks, &options, &registry, || (), body));
            assert_eq!(found.iter().sum::<u64>(), SPACE / 3);
        }
        for seed in 0..12 {
            let options = seeded(seed);
            let ranks = [1, 2, 3, 8, 23, 64][(seed / 2) as usize];
            let ended = on_virtual(ranks, &rough(seed), &options, &registry, || (), body).results;
            check(
                ended,
                &format!("{ranks} ranks, rooted {rooted}, by task {cancels}"),
            );
        }
    }
}

/// The point at which a task was stopped.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Heard {
    Stop(Rank),
    Go,
}

/// Runs until it is asked to stop, or says so.
#[derive(Serialize, Deserialize)]
enum Endless {
    Runs,
    /// The task waits in a group of its own.
    Nests,
    /// The task waits for a while; then it may cancel its own group.
    Waits {
        slices: u32,
        cancels: bool,
    },
    /// Makes a group that it cancels.
    Changes,
}

impl Task<()> for Endless {
    const NAME: &'static str = "endless";
    type Output = Heard;

    fn run(&mut self, _env: &(), cx: &mut Context<'_, (), Heard>) -> Step<Heard> {
        cx.charge(u64::from(cx.budget()));
        match self {
            Self::Waits { slices: 0, cancels } => {
                if *cancels {
                    cx.cancel_own_group();
                    // Nobody runs this.
                    cx.hyperfork(Self::Runs);
                }
                return Step::Done(Heard::Go);
            }
            Self::Waits { slices, .. } => {
                *slices -= 1;
                return Step::More;
            }
            Self::Runs if !cx.is_cancelled() => return Step::More,
            Self::Runs => {}
            Self::Nests => {
                let group = cx.group();
                cx.fork(&group, Self::Runs);
                assert!(matches!(cx.join(&group), Some(Ok(Heard::Stop(_))) | None));
                assert!(cx.join(&group).is_none());
            }
            Self::Changes => {
                let (group, other) = (cx.group(), cx.group::<Heard>());
                (0..3).for_each(|_| cx.fork(&group, Self::Runs));
                cx.cancel(&group);
                cx.cancel(&other);
                cx.cancel(&group);
                while cx.join(&group).is_some() {}
                cx.fork(&group, Self::Runs);
                assert!(cx.join(&group).is_none() && cx.join(&other).is_none());
                // That was another group.
                assert!(!cx.is_cancelled());
                return Step::Done(Heard::Go);
            }
        }
        assert!(cx.is_cancelled());
        Step::Done(Heard::Stop(cx.rank()))
    }
}

/// Rank 0 starts what does not end by itself; a task, or that rank, ends it all.
fn endless(s: &mut Scope<'_, ()>, rooted: bool, cancels: bool) -> Result<Vec<Rank>, ScopeError> {
    let group = if rooted { s.rooted_group() } else { s.group() };
    let other = s.group();
    let mut stopped = Vec::new();
    if s.rank() == Rank(0) {
        let slices = 100;
        s.fork(&group, Endless::Waits { slices, cancels })?;
        for _ in 0..2 {
            s.fork(&group, Endless::Runs)?;
            // Only a task can stop this one where it runs on the body's thread.
            let task = if cancels {
                Endless::Nests
            } else {
                Endless::Runs
            };
            s.fork(&group, task)?;
        }
        s.fork(&other, search(u64::MAX, true))?;
        s.fork(&other, search(SPACE / 3, false))?;
    }
    if rooted && s.rank() != Rank(0) {
        // A rank that joins a collective group helps with no rooted one.
        return Ok(stopped);
    }
    while let Some(heard) = s.join(&group)? {
        match heard? {
            Heard::Stop(rank) => stopped.push(rank),
            Heard::Go if cancels => {}
            Heard::Go => s.cancel(&group)?,
        }
    }
    let (mut found, mut leaves) = (0, 0);
    while let Some(result) = s.join(&other)? {
        leaves += 1;
        found += result?.unwrap_or(0);
    }
    if s.rank() == Rank(0) {
        assert_eq!((found, leaves), (SPACE / 3, 2 * 512));
    }
    Ok(stopped)
}

#[test]
fn running_tasks_are_told_on_every_rank_and_other_groups_go_on() {
    let registry = Registry::new().with::<Endless>().with::<Search>();
    for (rooted, cancels) in [(false, false), (false, true), (true, false), (true, true)] {
        let body = |s: &mut Scope<'_, ()>| endless(s, rooted, cancels);
        for (ranks, options) in threaded([
            (6, 1, false),
            (1, 7, false),
            (3, 3, false),
            (6, 1, true),
            (1, 7, true),
            (3, 3, true),
        ]) {
            values(on_threads(ranks, &options, &registry, || (), body));
        }
        let mut told = BTreeSet::new();
        for seed in 0..10 {
            let options = seeded(seed);
            let ranks = 8 + 3 * seed as usize;
            let ended = on_virtual(ranks, &rough(seed), &options, &registry, || (), body).results;
            told.extend(values(ended).concat());
        }
        // Which ranks have taken some by then is chance.
        assert!(told.len() > 3, "{rooted} {cancels}: {told:?}");
    }
}

#[test]
fn a_cancelled_group_takes_nothing_more() {
    let registry = Registry::new().with::<Endless>().with::<Search>();
    let body = |s: &mut Scope<'_, ()>| {
        let (all, own, empty) = (s.group(), s.rooted_group(), s.group::<()>());
        s.cancel(&empty)?;
        for group in [&all, &own] {
            // It may wait in the pool as it is cancelled, or come later.
            s.fork(group, Endless::Runs)?;
            s.cancel(group)?;
            s.fork(group, Endless::Runs)?;
            assert_eq!(s.join(group)?, None);
            s.cancel(group)?;
            s.fork(group, Endless::Runs)?;
        }
        assert_eq!(s.join(&empty)?, None);
        let last = s.group();
        s.fork(&last, Endless::Changes)?;
        s.fork(&last, Endless::Changes)?;
        for _ in 0..2 {
            assert_eq!(s.join(&last)?, Some(Ok(Heard::Go)));
        }
        assert_eq!(s.join(&last)?, None);
        Ok(())
    };
    for (ranks, options) in threaded([
        (1, 1, false),
        (4, 1, false),
        (2, 2, false),
        (1, 1, true),
        (3, 1, true),
        (2, 2, true),
    ]) {
        let ended = on_threads(ranks, &options, &registry, || (), body);
        assert!(total(&ended, |r| r.dropped) >= 6 * ranks as u64);
        values(ended);
    }
    for seed in 0..20 {
        let options = seeded(seed);
        let ranks = 1 + 2 * seed as usize;
        values(on_virtual(ranks, &rough(seed), &options, &registry, || (), body).results);
    }
}
