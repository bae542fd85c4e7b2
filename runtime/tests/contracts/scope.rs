//! Thread groups on ranks that are threads: results, panics, several groups, several scopes.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;
use std::{io, thread};

use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use weft_runtime::comm::threads::launch;
use weft_runtime::comm::virtual_time::{self, Computation, VirtualOptions};
use weft_runtime::comm::{Comm, Rank, solo::Solo};
use weft_runtime::policy::SPLITS;
use weft_runtime::{
    Context, Interval, Policy, Registry, Scope, ScopeError, ScopeOptions, ScopeReport, Split, Step,
    Task, TaskError, ThreadProvider, WorkerThread, scope, scope_on,
};

/// Counts a range, sometimes by children, sometimes by emitting, splittable in between.
#[derive(Clone, Serialize, Deserialize)]
struct Count {
    first: u32,
    end: u32,
    /// Panics when it comes to this number.
    fails_at: Option<u32>,
}

impl Task<u32> for Count {
    const NAME: &'static str = "count";
    type Output = Vec<u32>;

    fn run(&mut self, env: &u32, cx: &mut Context<'_, u32, Vec<u32>>) -> Step<Vec<u32>> {
        let step = *env;
        for _ in 0..4 {
            if self.first >= self.end {
                break;
            }
            assert_ne!(Some(self.first), self.fails_at, "dropped a stitch");
            let child_end = (self.first + step).min(self.end);
            if self.first % 3 == 1 && child_end > self.first + 1 {
                cx.hyperfork(Self {
                    first: self.first + 1,
                    end: child_end,
                    ..self.clone()
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

fn collect(
    s: &mut Scope<'_, u32>,
    ranges: &[(u32, u32)],
) -> Result<(Vec<u32>, Vec<TaskError>), ScopeError> {
    let group = s.group();
    for &(first, end) in ranges {
        s.fork(
            &group,
            Count {
                first,
                end,
                fails_at: None,
            },
        )?;
    }
    let (mut numbers, mut errors) = (Vec::new(), Vec::new());
    while let Some(result) = s.join(&group)? {
        match result {
            Ok(some) => numbers.extend(some),
            Err(error) => errors.push(error),
        }
    }
    numbers.sort_unstable();
    Ok((numbers, errors))
}

/// Every rank counts its own range of 1000 numbers, rank 0 one ten times as long.
fn count_on(comm: &mut dyn Comm, options: &ScopeOptions, step: u32) -> ScopeReport {
    let registry = Registry::new().with::<Count>();
    let me = comm.rank().0;
    let (first, end) = (
        me * 20_000,
        me * 20_000 + if me == 0 { 10_000 } else { 1000 },
    );
    let ((numbers, errors), report) = scope(comm, &registry, &step, options, |s| {
        collect(s, &[(first, end)])
    })
    .unwrap();
    assert!(
        numbers.into_iter().eq(first..end),
        "lost or doubled on rank {me}"
    );
    assert!(errors.is_empty());
    report
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn no_result_is_lost_or_doubled_and_every_join_ends(
        ranks in 1usize..=8,
        workers in 1usize..=3,
        progress_thread in any::<bool>(),
        seed in any::<u64>(),
        steal in any::<bool>(),
        how in prop::sample::select(SPLITS),
        step in 1u32..50,
    ) {
        let policy = Policy { steal, split: how, ..Policy::default() };
        let options = ScopeOptions { workers, progress_thread, seed, policy, ..ScopeOptions::default() };
        let reports = launch(ranks, |comm| count_on(comm, &options, step)).unwrap();
        let work: u64 = reports.iter().map(|r| r.work).sum();
        prop_assert!(work > 0);
        let (sent, got) = reports
            .iter()
            .fold((0, 0), |(s, g), r| (s + r.tasks_out, g + r.tasks_in));
        prop_assert_eq!(sent, got);
        if !steal {
            prop_assert!(reports.iter().all(|r| r.requests == 0 && r.tasks_in == 0));
        }
    }
}

#[test]
fn one_rank_sends_nothing_and_finds_the_same() {
    let report = count_on(&mut Solo::new(), &ScopeOptions::default(), 7);
    assert_eq!(report.bytes, 0);
    assert_eq!(report.splits, 0);
}

/// Nobody could wake it: what it waits for it has found out itself.
#[test]
fn one_rank_takes_no_longer_than_its_tasks() {
    let unit = Duration::from_micros(1);
    let options = VirtualOptions {
        computation: Computation::Modelled { unit },
        ..VirtualOptions::default()
    };
    let body = |comm: &mut dyn Comm| count_on(comm, &ScopeOptions::default(), 7);
    let reports = virtual_time::launch(1, &options, body).unwrap().results;
    assert!(reports[0].work > 1000);
    assert_eq!(reports[0].elapsed, unit * reports[0].work as u32);
}

#[test]
fn a_panic_is_an_error_of_the_join_and_the_scope_goes_on() {
    for workers in [1, 3] {
        let options = ScopeOptions {
            workers,
            ..ScopeOptions::default()
        };
        let registry = Registry::new().with::<Count>();
        let outcomes = launch(3, |comm| {
            let me = comm.rank();
            scope(comm, &registry, &1000, &options, |s| {
                let group = s.group();
                let fails_at = (me == Rank(1)).then_some(150);
                s.fork(
                    &group,
                    Count {
                        first: 100,
                        end: 200,
                        fails_at,
                    },
                )?;
                let (mut numbers, mut errors) = (0, Vec::new());
                while let Some(result) = s.join(&group)? {
                    match result {
                        Ok(some) => numbers += some.len(),
                        Err(error) => errors.push(error),
                    }
                }
                Ok((numbers, errors))
            })
            .unwrap()
            .0
        })
        .unwrap();
        for (rank, (numbers, errors)) in outcomes.into_iter().enumerate() {
            if rank == 1 {
                assert!(numbers < 100);
                assert_eq!(errors.len(), 1);
                assert_eq!(errors[0].task, "count");
                assert!(
                    errors[0].cause.to_string().contains("dropped a stitch"),
                    "{}",
                    errors[0]
                );
            } else {
                assert_eq!((numbers, errors.len()), (100, 0));
            }
        }
    }
}

#[test]
fn groups_are_told_apart_and_joined_results_can_fork_again() {
    launch(3, |comm| {
        let registry = Registry::new().with::<Count>();
        scope(comm, &registry, &5, &ScopeOptions::default(), |s| {
            let (first, second) = (s.group(), s.group());
            s.fork(
                &first,
                Count {
                    first: 0,
                    end: 40,
                    fails_at: None,
                },
            )?;
            s.fork(
                &second,
                Count {
                    first: 1000,
                    end: 1040,
                    fails_at: None,
                },
            )?;
            let mut seen: BTreeMap<u32, u32> = BTreeMap::new();
            while let Some(result) = s.join(&first)? {
                for n in result? {
                    *seen.entry(n).or_default() += 1;
                    // A fork after a partial join, into the group that is being joined.
                    if n == 10 {
                        s.fork(
                            &first,
                            Count {
                                first: 500,
                                end: 520,
                                fails_at: None,
                            },
                        )?;
                    }
                }
            }
            assert!(seen.keys().copied().eq((0..40).chain(500..520)), "{seen:?}");
            while let Some(result) = s.join(&second)? {
                result?
                    .into_iter()
                    .for_each(|n| *seen.entry(n).or_default() += 1);
            }
            assert_eq!(seen.len(), 100);
            assert!(seen.values().all(|&n| n == 1));
            Ok(())
        })
        .unwrap();
    })
    .unwrap();
}

#[test]
fn scopes_follow_each_other_on_the_same_ranks() {
    launch(4, |comm| {
        for seed in 0..50 {
            let options = ScopeOptions {
                seed,
                ..ScopeOptions::default()
            };
            let registry = Registry::new().with::<Count>();
            let n = if comm.rank().0 == (seed % 4) as u32 {
                300
            } else {
                0
            };
            let ((numbers, _), _) =
                scope(comm, &registry, &9, &options, |s| collect(s, &[(0, n)])).unwrap();
            assert!(numbers.into_iter().eq(0..n));
        }
    })
    .unwrap();
}

#[test]
fn a_body_that_does_not_join_leaves_its_tasks_to_be_finished() {
    let reports = launch(3, |comm| {
        let registry = Registry::new().with::<Count>();
        scope(comm, &registry, &5, &ScopeOptions::default(), |s| {
            let group = s.group();
            s.fork(
                &group,
                Count {
                    first: 0,
                    end: 100,
                    fails_at: None,
                },
            )
        })
        .unwrap()
        .1
    })
    .unwrap();
    assert!(reports.iter().map(|r| r.tasks).sum::<u64>() >= 3);
}

#[test]
fn a_group_that_was_joined_to_its_end_takes_no_tasks() {
    let outcomes = launch(3, |comm| {
        let registry = Registry::new().with::<Count>();
        scope(comm, &registry, &5, &ScopeOptions::default(), |s| {
            let count = || Count {
                first: 0,
                end: 1,
                fails_at: None,
            };
            // A group of this rank alone goes on.
            let own = s.rooted_group();
            for _ in 0..2 {
                s.fork(&own, count())?;
                assert!(s.join(&own)?.is_some());
                while s.join(&own)?.is_some() {}
            }
            let group = s.group();
            s.fork(&group, count())?;
            while s.join(&group)?.is_some() {}
            assert_eq!(
                s.fork(&group, count()),
                Err(ScopeError::Exhausted(Count::NAME))
            );
            Ok(())
        })
    })
    .unwrap();
    assert!(outcomes.iter().all(Result::is_ok));
}

#[test]
fn the_largest_and_smallest_options_are_options() {
    let policy = Policy {
        steal_timeout: Duration::MAX,
        interval: Interval::Fixed(Duration::MAX),
        low_water: usize::MAX,
        ..Policy::default()
    };
    let options = ScopeOptions {
        policy,
        watch: Some(Duration::MAX),
        cache_bytes: 0,
        slice: 0,
        trace: Some(0),
        ..ScopeOptions::default()
    };
    for workers in [1, 3] {
        let options = ScopeOptions { workers, ..options };
        launch(3, |comm| {
            let registry = Registry::new().with::<Count>();
            let ((numbers, _), _) =
                scope(comm, &registry, &9, &options, |s| collect(s, &[(0, 300)])).unwrap();
            assert!(numbers.into_iter().eq(0..300));
        })
        .unwrap();
    }
}

#[test]
fn an_error_of_one_body_ends_the_scope_everywhere() {
    let outcomes = launch(3, |comm| {
        let registry = Registry::new().with::<Count>();
        let me = comm.rank();
        scope(comm, &registry, &5, &ScopeOptions::default(), |s| {
            let group = s.group::<Vec<u32>>();
            if me == Rank(2) {
                return Err(ScopeError::Body("the needle broke".to_owned()));
            }
            while s.join(&group)?.is_some() {}
            Ok(())
        })
        .map(|_| ())
    })
    .unwrap();
    assert_eq!(
        outcomes[2],
        Err(ScopeError::Body("the needle broke".to_owned()))
    );
    for outcome in &outcomes[..2] {
        let text = outcome.clone().unwrap_err().to_string();
        assert_eq!(text, "rank 2 ended the job: the needle broke");
    }
}

#[derive(Serialize, Deserialize)]
struct Other;

impl Task<u32> for Other {
    const NAME: &'static str = "other";
    type Output = Vec<u32>;

    fn run(&mut self, _env: &u32, _cx: &mut Context<'_, u32, Vec<u32>>) -> Step<Vec<u32>> {
        Step::Done(vec![])
    }
}

#[test]
fn ranks_with_different_registries_refuse_to_start() {
    let outcomes = launch(2, |comm| {
        let mut registry = Registry::new().with::<Count>();
        if comm.rank() == Rank(1) {
            registry = registry.with::<Other>();
        }
        scope(comm, &registry, &5, &ScopeOptions::default(), |_| Ok(())).map(|_| ())
    })
    .unwrap();
    for outcome in outcomes {
        let text = outcome.unwrap_err().to_string();
        assert!(
            text.contains("registered the tasks") || text.contains("ended"),
            "{text}"
        );
    }
}

/// Another kind under the name of [`Other`].
#[derive(Serialize, Deserialize)]
struct Twin;

impl Task<u32> for Twin {
    const NAME: &'static str = Other::NAME;
    type Output = ();

    fn run(&mut self, _env: &u32, _cx: &mut Context<'_, u32, ()>) -> Step<()> {
        Step::Done(())
    }
}

#[test]
fn two_kinds_of_task_of_one_name_are_refused() {
    let ambiguous = || {
        Registry::new()
            .with::<Other>()
            .with::<Count>()
            .with::<Twin>()
    };
    let begin = |comm: &mut dyn Comm, registry: &Registry<u32>| {
        scope(comm, registry, &5, &ScopeOptions::default(), |_| Ok(())).map(|_| ())
    };
    let error = begin(&mut Solo::new(), &ambiguous()).unwrap_err();
    assert_eq!(error, ScopeError::SameName("other"));
    assert!(error.to_string().contains("named `other`"), "{error}");
    let twice = Registry::new().with::<Count>().with::<Count>();
    let error = begin(&mut Solo::new(), &twice).unwrap_err();
    assert_eq!(error, ScopeError::SameName("count"));
    // One such rank ends the scope for all.
    let outcomes = launch(3, |comm| {
        let registry = match comm.rank() {
            Rank(2) => ambiguous(),
            _ => Registry::new().with::<Other>().with::<Count>(),
        };
        begin(comm, &registry)
    });
    let outcomes = outcomes.unwrap();
    assert_eq!(outcomes[2], Err(ScopeError::SameName("other")));
    assert!(outcomes.iter().all(Result::is_err), "{outcomes:?}");
}

#[test]
fn a_rank_that_registered_nothing_is_said_to_have_no_tasks() {
    let error = ScopeError::Registries {
        rank: Rank(0),
        other: Rank(1),
        ours: "count".to_owned(),
        theirs: String::new(),
    };
    assert_eq!(
        error.to_string(),
        "rank 1 registered no tasks, rank 0 registered the tasks [count]; run the same program on every rank"
    );
}

#[test]
fn tasks_that_are_not_registered_are_refused() {
    let registry = Registry::new().with::<Count>();
    let outcome = scope(
        &mut Solo::new(),
        &registry,
        &5,
        &ScopeOptions::default(),
        |s| {
            let group = s.group();
            s.fork(&group, Other)
        },
    );
    let error = ScopeError::Unregistered {
        task: "other",
        rank: Rank(0),
        by: None,
    };
    assert_eq!(outcome.map(|_| ()), Err(error));
    let none = ScopeOptions {
        workers: 0,
        ..ScopeOptions::default()
    };
    let outcome = scope(&mut Solo::new(), &registry, &5, &none, |_| Ok(()));
    assert_eq!(outcome.map(|_| ()), Err(ScopeError::NoWorkers));
}

/// Threads that a program has anyway: two, which take turns at what they are given.
struct Pair(Mutex<Vec<String>>);

impl ThreadProvider for Pair {
    fn run<'w>(
        &self,
        workers: Vec<WorkerThread<'w>>,
        main: Box<dyn FnOnce() + 'w>,
    ) -> io::Result<()> {
        if workers.len() > 2 {
            return Err(io::Error::other("there are two"));
        }
        thread::scope(|threads| {
            for worker in workers {
                self.0.lock().unwrap().push(worker.name);
                threads.spawn(worker.run);
            }
            main();
        });
        Ok(())
    }
}

#[test]
fn workers_run_on_threads_of_the_caller() {
    let registry = Registry::new().with::<Count>();
    let provider = Pair(Vec::new().into());
    let count = |workers| {
        let options = ScopeOptions {
            workers,
            slice: 1,
            ..ScopeOptions::default()
        };
        // Far more tasks than anybody has ahead.
        let ranges: Vec<_> = (0..200).map(|k| (10 * k, 10 * k + 10)).collect();
        scope_on(&provider, &mut Solo::new(), &registry, &5, &options, |s| {
            collect(s, &ranges)
        })
    };
    let ((numbers, failed), report) = count(3).unwrap();
    assert_eq!(numbers, (0..2000).collect::<Vec<_>>());
    assert!(failed.is_empty());
    assert_eq!(report.busy.len(), 3);
    let names = ["worker 1 of rank 0", "worker 2 of rank 0"];
    assert_eq!(*provider.0.lock().unwrap(), names);

    let refused = count(4).map(|_| ());
    assert!(
        matches!(&refused, Err(ScopeError::Workers(why)) if why.contains("there are two")),
        "{refused:?}"
    );
}

/// A scope that was closed ends with its group, sooner, and takes no task any more.
#[test]
fn a_body_that_closed_its_scope_leaves_sooner_and_may_not_fork() {
    let run = |close: bool| {
        let options = VirtualOptions::default();
        let outcome = virtual_time::launch(9, &options, |comm| {
            let registry = Registry::new().with::<Count>();
            let me = comm.rank();
            let ((), _) = scope(comm, &registry, &7, &ScopeOptions::default(), |s| {
                let group = s.group();
                let count = Count {
                    first: 0,
                    end: 40 * me.0,
                    fails_at: None,
                };
                s.fork(&group, count.clone())?;
                if close {
                    s.close();
                    let late = s.fork(&group, count.clone());
                    assert!(matches!(late, Err(ScopeError::Closed(Count::NAME))));
                }
                let mut numbers = Vec::new();
                while let Some(found) = s.join(&group)? {
                    numbers.extend(found?);
                }
                numbers.sort_unstable();
                assert!(numbers.into_iter().eq(0..40 * me.0));
                let behind = s.group::<Vec<u32>>();
                assert!(s.join(&behind)?.is_none());
                Ok(())
            })
            .unwrap();
            comm.now()
        });
        outcome.unwrap().results.into_iter().max().unwrap()
    };
    assert!(run(true) < run(false));
}
