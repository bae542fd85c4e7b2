//! Posted messages: what tasks post, wherever they run, has come when the scope has ended.

use std::time::Duration;

use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use weft_runtime::comm::threads::launch;
use weft_runtime::comm::virtual_time::{self, Computation, VirtualOptions};
use weft_runtime::comm::{Comm, CommError, POSTED_UP_TO, Rank};
use weft_runtime::{
    Context, POLICIES, Policy, Registry, ScopeError, ScopeOptions, ScopeReport, Split, Step, Task,
    scope,
};

/// Posts each number of a range to the rank whose turn it is; the environment is how many there
/// are, and how long messages are.
#[derive(Serialize, Deserialize)]
struct Post {
    first: u32,
    end: u32,
}

impl Task<(u32, usize)> for Post {
    const NAME: &'static str = "post";
    type Output = ();

    fn run(
        &mut self,
        &(ranks, length): &(u32, usize),
        cx: &mut Context<'_, (u32, usize), ()>,
    ) -> Step<()> {
        for _ in 0..3 {
            if self.first == self.end {
                return Step::Done(());
            }
            let mut message = vec![7; length];
            message[..4].copy_from_slice(&self.first.to_le_bytes());
            cx.post(Rank(self.first % ranks), message);
            cx.charge(40);
            self.first += 1;
        }
        Step::More
    }

    fn split(&mut self, how: Split) -> Option<Self> {
        let left = self.end - self.first;
        if left < 2 || how.gives_nothing() {
            return None;
        }
        let end = self.end;
        self.end = self.first + left / 2;
        Some(Self {
            first: self.end,
            end,
        })
    }
}

/// Every rank forks the posting of this many numbers, rank 0 five times as many. Messages are read
/// while ranks wait and after.
fn post(
    comm: &mut dyn Comm,
    options: &ScopeOptions,
    (count, length): (u32, usize),
    close: bool,
) -> Result<ScopeReport, ScopeError> {
    let ranks = comm.size() as u32;
    let registry = Registry::new().with::<Post>();
    let env = (ranks, length);
    let range = |rank: u32| {
        let first = if rank == 0 { 0 } else { (4 + rank) * count };
        first..(5 + rank) * count
    };
    let (me, all) = (comm.rank().0, range(ranks - 1).end);
    let mut messages = Vec::new();
    let ((), mut report) = scope(comm, &registry, &env, options, |s| {
        s.meanwhile(|_, some| {
            assert!(some.is_sorted_by_key(|(from, _)| *from));
            messages.extend(some);
            Ok(())
        });
        let group = s.group();
        let range = range(me);
        let (first, end) = (range.start, range.end);
        s.fork(&group, Post { first, end })?;
        if close {
            s.close();
        }
        while let Some(done) = s.join(&group)? {
            done?;
        }
        Ok(())
    })?;
    assert!(report.messages.is_sorted_by_key(|(from, _)| *from));
    let mut numbers: Vec<u32> = Vec::new();
    messages.append(&mut report.messages);
    for (from, message) in &messages {
        assert_eq!(message.len(), length);
        let number = u32::from_le_bytes(message[..4].try_into().unwrap());
        if !options.policy.steal {
            assert!(range(from.0).contains(&number));
        }
        numbers.push(number);
    }
    numbers.sort_unstable();
    assert!(numbers.into_iter().eq((me..all).step_by(ranks as usize)));
    Ok(report)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn all_messages_have_come_when_a_scope_ends(
        ranks in 1_usize..=6, workers in 1_usize..=2, policy in 0..POLICIES.len(), seed in any::<u64>(), count in 0_u32..60,
        length in 4_usize..400, close in any::<bool>(), progress_thread in any::<bool>(),
    ) {
        let options = ScopeOptions {
            policy: POLICIES[policy].1,
            seed,
            workers,
            progress_thread,
            ..ScopeOptions::default()
        };
        launch(ranks, |comm| post(comm, &options, (count, length), close).unwrap()).unwrap();
    }
}

/// Whether each rank says so to each other, or a tree finds out.
#[test]
fn letters_find_their_way_among_many_ranks() {
    for ranks in [POSTED_UP_TO, POSTED_UP_TO + 1, 150] {
        for policy in [Policy::EVERY_OTHER, Policy::STATIC] {
            let options = ScopeOptions {
                policy,
                ..ScopeOptions::default()
            };
            let run = |close: bool| {
                let outcome = virtual_time::launch(ranks, &VirtualOptions::default(), |comm| {
                    post(comm, &options, (70, 20), close).unwrap();
                });
                outcome.unwrap().makespan()
            };
            assert!(run(true) <= run(false));
        }
    }
}

/// One of two ranks that post to each other is done long before the other. It reads what has come
/// while it waits, and is not called again for nothing.
#[test]
fn a_rank_that_waits_reads_its_posted_messages() {
    for policy in [Policy::EVERY_OTHER, Policy::STATIC] {
        let options = ScopeOptions {
            policy,
            ..ScopeOptions::default()
        };
        let options_of_ranks = VirtualOptions {
            computation: Computation::Modelled {
                unit: Duration::from_nanos(100),
            },
            ..VirtualOptions::default()
        };
        let run = |comm: &mut dyn Comm| {
            let registry = Registry::new().with::<Post>();
            let me = comm.rank().0;
            let count = if me == 0 { 2 } else { 20_000 };
            let mut passed = Vec::new();
            let ((), report) = scope(comm, &registry, &(2, 4), &options, |s| {
                s.meanwhile(|comm, some| {
                    passed.push((comm.now(), some.len()));
                    Ok(())
                });
                let group = s.group();
                if me == 1 {
                    let (first, end) = (0, count);
                    s.fork(&group, Post { first, end })?;
                }
                s.close();
                while let Some(done) = s.join(&group)? {
                    done?;
                }
                Ok(())
            })
            .unwrap();
            (passed, report, comm.now())
        };
        let outcome = virtual_time::launch(2, &options_of_ranks, run).unwrap();
        let (passed, report, end) = &outcome.results[0];
        let read: usize = passed.iter().map(|(_, messages)| messages).sum();
        assert_eq!(read + report.messages.len(), 10_000);
        if !policy.steal {
            // As they came.
            let half = passed.iter().filter(|(at, _)| *at < *end / 2);
            let by_half: usize = half.map(|(_, messages)| messages).sum();
            assert!((4_000..6_000).contains(&by_half), "{by_half}");
            // Once with nothing: at first.
            assert!(passed.iter().skip(1).all(|(_, messages)| *messages > 0));
        }
    }
}

/// The work of a body between begin and end of a posted scope can fail, and the failure is
/// reported.
#[test]
fn an_error_meanwhile_ends_the_scope() {
    let run = |comm: &mut dyn Comm| {
        let registry = Registry::new().with::<Post>();
        let me = comm.rank().0;
        let options = ScopeOptions::default();
        let ended = scope(comm, &registry, &(2, 4), &options, |s| {
            s.meanwhile(|_, _| Err(ScopeError::Body("enough".to_owned())));
            let group = s.group::<()>();
            if me == 1 {
                let (first, end) = (0, 1_000);
                s.fork(&group, Post { first, end })?;
            }
            while let Some(done) = s.join(&group)? {
                done?;
            }
            Ok(())
        });
        ended.map(|_| ()).map_err(|error| error.to_string())
    };
    let outcome = virtual_time::launch(2, &VirtualOptions::default(), run).unwrap();
    for result in outcome.results {
        let what = result.unwrap_err();
        assert!(what.ends_with("enough"), "{what}");
    }
}

/// Items that are posted one by one travel together: here, at most 64 of 20 bytes.
#[test]
fn small_messages_travel_together() {
    let options = ScopeOptions {
        policy: Policy::STATIC,
        ..ScopeOptions::default()
    };
    let outcome = virtual_time::launch(4, &VirtualOptions::default(), |comm| {
        post(comm, &options, (10_000, 20), true).unwrap();
    });
    let posted = 8 * 10_000_u64;
    let messages = outcome.unwrap().messages;
    assert!(messages < posted / 30, "{messages} messages");
}

#[test]
fn letters_to_nobody_end_the_scope() {
    #[derive(Serialize, Deserialize)]
    struct Wrong(u32);
    impl Task<()> for Wrong {
        const NAME: &'static str = "wrong";
        type Output = ();

        fn run(&mut self, (): &(), cx: &mut Context<'_, (), ()>) -> Step<()> {
            cx.post(Rank(self.0), vec![]);
            Step::Done(())
        }
    }
    let run = |to: u32| {
        let options = ScopeOptions::default();
        let outcome = launch(2, |comm| {
            let registry = Registry::new().with::<Wrong>();
            let run = scope(comm, &registry, &(), &options, |s| {
                let group = s.group();
                s.fork(&group, Wrong(to))?;
                while let Some(done) = s.join(&group)? {
                    done?;
                }
                Ok(())
            });
            run.map(|(_, report)| report.messages.len())
        });
        outcome.unwrap()
    };
    let nobody = ScopeError::Comm(CommError::NoSuchRank {
        to: Rank(2),
        size: 2,
    });
    assert!(run(2).contains(&Err(nobody)));
    assert_eq!(run(1), [Ok(0), Ok(2)]);
}
