//! Ranks that die: each is named to all others, and the scope ends there.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::common::{Limited, on_virtual, rough, seeded};
use serde::{Deserialize, Serialize};
use weft_runtime::comm::threads::{self, LaunchError};
use weft_runtime::comm::virtual_time::Fault;
use weft_runtime::comm::{CommError, Rank};
use weft_runtime::{Context, Registry, Scope, ScopeError, ScopeOptions, Split, Step, Task, scope};

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

/// Lets the ranks in `homes` fork into a group of all and one of their own, twice.
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

/// A body that panics on a thread ends the scope on all others, whatever their workers run.
#[test]
fn a_body_that_panics_on_a_thread_ends_the_scope_everywhere() {
    let registry = Registry::new().with::<Say>();
    for (ranks, workers, progress_thread) in
        [(3, 1, false), (4, 2, false), (3, 1, true), (4, 2, true)]
    {
        let options = ScopeOptions {
            workers,
            progress_thread,
            ..seeded(1)
        };
        let outcome = threads::launch_each(ranks, |comm| {
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
            ended.map(|((), _)| ())
        });
        let rank = Rank(1);
        let aborted = ScopeError::Comm(CommError::Aborted {
            rank,
            reason: "it panicked: it slipped".to_owned(),
        });
        for (number, ended) in (0..).zip(outcome.unwrap()) {
            let expected = if Rank(number) == rank {
                let message = "it slipped".to_owned();
                Err(LaunchError::Panicked { rank, message })
            } else {
                Ok(Err(aborted.clone()))
            };
            assert_eq!(ended, expected, "rank {number}");
        }
    }
}
