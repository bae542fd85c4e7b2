//! Ranks that die: named to all others, or survived with every result of the living, once.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::common::{Ended, Limited, on_virtual, rough, seeded, total};
use serde::{Deserialize, Serialize};
use weft_runtime::comm::threads::{self, LaunchError};
use weft_runtime::comm::virtual_time::{self, Fault, VirtualOptions};
use weft_runtime::comm::{CommError, Rank};
use weft_runtime::{
    Context, POLICIES, Policy, Registry, Scope, ScopeError, ScopeOptions, Split, Step, Task, scope,
};

/// Says every number of a range: by itself, by pieces, by children, by groups of its own.
#[derive(Clone, Serialize, Deserialize)]
struct Say {
    first: u64,
    end: u64,
}

impl Task<()> for Say {
    const NAME: &'static str = "say";
    type Output = Vec<u64>;

    fn run(&mut self, _env: &(), cx: &mut Context<'_, (), Vec<u64>>) -> Step<Vec<u64>> {
        let end = self.end.min(self.first + 4);
        let mut said: Vec<u64> = (self.first..end).collect();
        cx.charge(32 * said.len() as u64);
        self.first = end;
        let left = self.end - self.first;
        if left == 0 {
            return Step::Done(said);
        }
        let third = Self {
            end: self.first + left / 3,
            ..*self
        };
        match self.first % 7 {
            0 => {
                self.first = third.end;
                cx.hyperfork(third);
            }
            1 | 2 => {
                self.first = third.end;
                let group = cx.group();
                cx.fork(&group, third);
                while let Some(more) = cx.join(&group) {
                    said.extend(more.unwrap());
                }
            }
            _ => {}
        }
        cx.emit(said);
        Step::More
    }

    fn split(&mut self, _how: Split) -> Option<Self> {
        let middle = self.first.midpoint(self.end);
        let piece = Self {
            first: middle,
            ..*self
        };
        (middle > self.first).then(|| {
            self.end = middle;
            piece
        })
    }
}

const EACH: u64 = 600;

/// Those of `homes` fork, into a group of all and one of their own; then there is another group.
fn say(s: &mut Scope<'_, ()>, homes: &[u32]) -> Result<(), ScopeError> {
    let home = homes.contains(&s.rank().0);
    let base = u64::from(s.rank().0) * 10 * EACH;
    for round in 0..2 {
        let (group, own) = (s.group(), s.rooted_group());
        let first = base + 3 * round * EACH;
        if home {
            let end = first + EACH;
            s.fork(&group, Say { first, end })?;
            let (first, end) = (end, end + EACH);
            s.fork(&own, Say { first, end })?;
        }
        let mut said: BTreeMap<u64, u32> = BTreeMap::new();
        for group in [&own, &group] {
            while let Some(some) = s.join(group)? {
                for number in some? {
                    *said.entry(number).or_default() += 1;
                }
            }
        }
        let count = if home { 2 * EACH } else { 0 };
        assert!(said.keys().copied().eq(first..first + count), "lost");
        assert!(said.values().all(|&times| times == 1), "doubled");
    }
    Ok(())
}

fn micros(n: u64) -> Duration {
    Duration::from_micros(n)
}

fn death(rank: u32, at: u64, detection: u64) -> Fault {
    Fault::Death {
        rank: Rank(rank),
        at: micros(at),
        detection: micros(detection),
    }
}

fn surviving(seed: u64, policy: Policy) -> ScopeOptions {
    ScopeOptions {
        recover: true,
        policy,
        ..seeded(seed)
    }
}

/// All that live had what they forked.
fn check(ended: &[Ended<()>], dead: &[u32], case: &str) {
    for (rank, one) in (0..).zip(ended) {
        match one {
            Ok(_) => {}
            Err(ScopeError::Comm(CommError::Died { rank: who })) => {
                assert!(
                    dead.contains(&rank) && who.0 == rank,
                    "{case}: rank {rank}: {who:?}"
                );
            }
            Err(error) => panic!("{case}: rank {rank}: {error}"),
        }
    }
}

#[test]
fn a_death_is_survived_whenever_it_comes() {
    let registry = Registry::new().with::<Say>();
    let mut reruns = 0;
    for at in (0..1600).step_by(13) {
        for (dead, ranks) in [(3, 4), (0, 5), (9, 16)] {
            let mut options = rough(at);
            options.faults.push(death(dead, at, 5 + at % 90));
            let policy = POLICIES[at as usize % POLICIES.len()];
            let homes: &[u32] = if dead == 0 { &[1, 3] } else { &[0, 2] };
            let scoped = surviving(at, policy.1);
            let ended = on_virtual(
                ranks,
                &options,
                &scoped,
                &registry,
                || (),
                |s| say(s, homes),
            );
            let case = format!("{ranks} ranks, {dead} dies at {at}, {}", policy.0);
            check(&ended.results, &[dead], &case);
            reruns += total(&ended.results, |r| r.reruns);
        }
    }
    assert!(reruns > 50, "{reruns}");
}

/// Rank 0 holds the roll call: it may die in the middle of any of its verdicts.
#[test]
fn verdicts_of_a_dead_coordinator_are_told_to_all() {
    let registry = Registry::new().with::<Say>();
    let body = |s: &mut Scope<'_, ()>| {
        for _ in 0..4 {
            let group = s.group();
            if s.rank() == Rank(2) {
                s.fork(&group, Say { first: 0, end: 9 })?;
            }
            while s.join(&group)?.is_some() {}
        }
        Ok(())
    };
    for tenths in 0..700 {
        let mut options = VirtualOptions::default();
        options.faults.push(Fault::Death {
            rank: Rank(0),
            at: Duration::from_nanos(tenths * 100),
            detection: micros(20),
        });
        let scoped = surviving(1, Policy::default());
        let ended = on_virtual(7, &options, &scoped, &registry, || (), body).results;
        check(&ended, &[0], &format!("at {tenths}00 ns"));
    }
}

#[test]
fn several_deaths_are_survived() {
    let registry = Registry::new().with::<Say>();
    let mut reruns = 0;
    for seed in 0..120 {
        let mut options = rough(seed);
        let dead = [0, 3, 5, 6];
        let dead = &dead[..2 + seed as usize % 3];
        for (n, &rank) in (0..).zip(dead) {
            options
                .faults
                .push(death(rank, (seed * 13 + n * n * 37) % 1500, 10 + 20 * n));
        }
        let scoped = surviving(seed, Policy::default());
        let body = |s: &mut Scope<'_, ()>| say(s, &[1, 2, 7]);
        let ended = on_virtual(
            8 + seed as usize % 20,
            &options,
            &scoped,
            &registry,
            || (),
            body,
        );
        check(&ended.results, dead, &format!("seed {seed}"));
        reruns += total(&ended.results, |r| r.reruns);
    }
    assert!(reruns > 50, "{reruns}");
}

/// What the dead had forked dies with them; the others have all of theirs.
#[test]
fn groups_go_on_without_what_the_dead_had_forked() {
    let registry = Registry::new().with::<Say>();
    for seed in 0..120 {
        let mut options = rough(seed);
        let dead = seed as u32 % 6;
        options.faults.push(death(dead, seed * 11, 40));
        let scoped = surviving(seed, POLICIES[seed as usize % POLICIES.len()].1);
        let body = |s: &mut Scope<'_, ()>| say(s, &[0, 1, 2, 3, 4, 5]);
        let ended = on_virtual(6, &options, &scoped, &registry, || (), body).results;
        check(&ended, &[dead], &format!("seed {seed}"));
    }
}

#[test]
fn scopes_follow_each_other_after_a_death() {
    let registry = Registry::new().with::<Say>();
    for dead in [0, 2] {
        let mut options = rough(u64::from(dead));
        options.faults.push(death(dead, 150, 30));
        let outcome = virtual_time::launch(5, &options, |comm| {
            let mut reruns = 0;
            for seed in 0..5 {
                let mut comm = Limited::short(comm);
                let scoped = surviving(seed, Policy::default());
                let ended = scope(&mut comm, &registry, &(), &scoped, |s| say(s, &[1, 3]));
                reruns += ended?.1.reruns;
            }
            Ok::<_, ScopeError>(reruns)
        })
        .unwrap();
        for (rank, result) in (0..).zip(outcome.results) {
            assert_eq!(result.is_err(), rank == dead, "rank {rank}: {result:?}");
        }
    }
}

#[test]
fn a_death_is_named_on_all_others_in_time() {
    let registry = Registry::new().with::<Say>();
    for at in (0..1200).step_by(60) {
        for dead in [0, 4] {
            let mut options = rough(at);
            options.faults.push(death(dead, at, 100));
            let body = |s: &mut Scope<'_, ()>| say(s, &[0, 1, 2, 3, 4, 5]);
            let outcome = on_virtual(6, &options, &seeded(at), &registry, || (), body);
            let mut ends = Vec::new();
            for (rank, ended) in outcome.results.iter().enumerate() {
                let died = ScopeError::Comm(CommError::Died { rank: Rank(dead) });
                assert_eq!(ended.as_ref().err(), Some(&died), "rank {rank} at {at}");
                ends.push(outcome.clocks[rank]);
            }
            assert!(
                outcome.makespan() < micros(at + 100 + 100),
                "{at}: {ends:?}"
            );
        }
    }
}

/// On threads a rank dies if its body panics; its workers do not keep the others.
#[test]
fn a_body_that_panics_on_a_thread_is_a_death() {
    let registry = Registry::new().with::<Say>();
    for (ranks, workers, progress_thread) in
        [(3, 1, false), (4, 2, false), (3, 1, true), (4, 2, true)]
    {
        let options = ScopeOptions {
            workers,
            progress_thread,
            ..surviving(1, Policy::default())
        };
        let living = AtomicU32::new(0);
        let outcome = threads::launch(ranks, |comm| {
            let mut comm = Limited::new(comm);
            let ended = scope(&mut comm, &registry, &(), &options, |s| {
                if s.rank() == Rank(1) {
                    let group = s.group();
                    s.fork(
                        &group,
                        Say {
                            first: 0,
                            end: EACH,
                        },
                    )?;
                    drop(s.join(&group)?);
                    panic!("it slipped");
                }
                say(s, &[0, 2])
            });
            ended.unwrap();
            living.fetch_add(1, Ordering::Relaxed);
        });
        let rank = Rank(1);
        let message = "it slipped".to_owned();
        assert_eq!(outcome, Err(LaunchError::Panicked { rank, message }));
        assert_eq!(living.into_inner(), ranks as u32 - 1);
    }
}
