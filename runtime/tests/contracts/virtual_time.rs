//! Ranks in virtual time: the clock's arithmetic, determinism, faults, and many of them.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use weft_runtime::comm::virtual_time::{
    Computation, Fault, Link, Network, Outcome, VirtualOptions, launch,
};
use weft_runtime::comm::{Collectives, CommError, POSTED_UP_TO, Rank, Tag, threads};
use weft_runtime::{
    Context, Registry, ScopeError, ScopeOptions, ScopeReport, Split, Step, Task, scope,
};

const US: u64 = 1000;

fn nanos(n: u64) -> Duration {
    Duration::from_nanos(n)
}

/// L = 2 µs, o = 0.5 µs, g = 0.5 µs, 1 ns a byte.
fn plain() -> VirtualOptions {
    VirtualOptions {
        network: Network::uniform(Link::new(nanos(2 * US), nanos(500), 1.0)),
        computation: Computation::Modelled { unit: nanos(100) },
        ..VirtualOptions::default()
    }
}

/// The LogGP model: there after o + L + G b, and o to take it; back likewise.
#[test]
fn a_message_costs_what_the_model_says() {
    let outcome = launch(2, &plain(), |comm| {
        if comm.rank() == Rank(0) {
            comm.send(Rank(1), Tag(1), vec![0; 300]).unwrap();
            comm.recv_from(Rank(1), Tag(1)).unwrap();
        } else {
            comm.recv_from(Rank(0), Tag(1)).unwrap();
            comm.compute(40, Duration::ZERO);
            comm.send(Rank(0), Tag(1), vec![]).unwrap();
        }
        comm.now()
    })
    .unwrap();
    let there = 500 + 2 * US + 300 + 500;
    let worked = there + 40 * 100;
    assert_eq!(outcome.results[1], nanos(worked + 500));
    assert_eq!(outcome.results[0], nanos(worked + 500 + 2 * US + 500));
    assert_eq!((outcome.messages, outcome.bytes), (2, 300));
}

#[test]
fn a_sender_keeps_the_gap_and_its_receiver_the_order() {
    let mut options = plain();
    options.network.far.gap = nanos(3 * US);
    let outcome = launch(2, &options, |comm| {
        let peer = Rank(1 - comm.rank().0);
        if comm.rank() == Rank(0) {
            (0..10).for_each(|n| comm.send(peer, Tag(1), vec![n]).unwrap());
        } else {
            (0..10).for_each(|n| assert_eq!(comm.recv_from(peer, Tag(1)).unwrap(), [n]));
        }
        comm.now()
    })
    .unwrap();
    // The sender is free after ten overheads; the last message leaves nine gaps after the first.
    assert_eq!(outcome.results[0], nanos(10 * 500));
    assert_eq!(
        outcome.results[1],
        nanos(500 + 9 * 3 * US + 2 * US + 1 + 500)
    );
}

/// A tree of tasks, each node worth a unit, unevenly deep.
#[derive(Clone, Serialize, Deserialize)]
struct Tree {
    stack: Vec<(u32, u64)>,
}

impl Tree {
    fn new(height: u32) -> Self {
        Self {
            stack: vec![(height, 1)],
        }
    }
}

fn children(salt: u64) -> u64 {
    1 + (salt.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) % 3
}

impl Task<()> for Tree {
    const NAME: &'static str = "tree";
    type Output = u64;

    fn run(&mut self, _env: &(), cx: &mut Context<'_, (), u64>) -> Step<u64> {
        let mut nodes = 0;
        while let Some((height, salt)) = self.stack.pop() {
            nodes += 1;
            for child in 0..children(salt) {
                if height > 0 {
                    self.stack.push((height - 1, salt.wrapping_mul(31) + child));
                }
            }
            if nodes == u64::from(cx.budget()) {
                break;
            }
        }
        cx.charge(nodes);
        if self.stack.is_empty() {
            Step::Done(nodes)
        } else {
            cx.emit(nodes);
            Step::More
        }
    }

    fn split(&mut self, how: Split) -> Option<Self> {
        if self.stack.len() < 2 || how.gives_nothing() {
            return None;
        }
        let mut keep = false;
        let mut given = Vec::new();
        self.stack.retain(|node| {
            keep = !keep;
            if keep {
                given.push(*node);
            }
            !keep
        });
        Some(Self { stack: given })
    }
}

fn sequential(height: u32) -> u64 {
    let mut tree = vec![(height, 1_u64)];
    let mut nodes = 0;
    while let Some((height, salt)) = tree.pop() {
        nodes += 1;
        for child in 0..children(salt) {
            if height > 0 {
                tree.push((height - 1, salt.wrapping_mul(31) + child));
            }
        }
    }
    nodes
}

/// The whole tree from rank 0; each rank's report, and the sum on rank 0.
fn walk(
    ranks: usize,
    height: u32,
    options: &VirtualOptions,
    scope_options: &ScopeOptions,
) -> Outcome<Result<(u64, ScopeReport), ScopeError>> {
    let registry = Registry::new().with::<Tree>();
    launch(ranks, options, |comm| {
        scope(comm, &registry, &(), scope_options, |s| {
            let group = s.group();
            if s.rank() == Rank(0) {
                s.fork(&group, Tree::new(height))?;
            }
            let mut sum = 0;
            while let Some(nodes) = s.join(&group)? {
                sum += nodes?;
            }
            Ok(sum)
        })
    })
    .unwrap()
}

#[test]
fn same_options_same_log_byte_for_byte() {
    let mut options = plain();
    options.record = true;
    options.jitter = 0.3;
    options.faults = vec![Fault::Late {
        probability: 0.1,
        delay: nanos(50 * US),
    }];
    let run = |options: &VirtualOptions| walk(16, 14, options, &ScopeOptions::default());
    let (first, second) = (run(&options), run(&options));
    assert!(first.log.len() > 100);
    assert_eq!(first.log, second.log);
    assert_eq!(first.clocks, second.clocks);
    options.seed = 1;
    let third = run(&options);
    assert_ne!(first.log, third.log);
    // Whatever the network does, the answer is the answer.
    let sum =
        |o: &Outcome<Result<(u64, ScopeReport), ScopeError>>| o.results[0].as_ref().unwrap().0;
    assert_eq!(sum(&first), sequential(14));
    assert_eq!(sum(&third), sequential(14));
}

#[test]
fn work_is_shared_and_a_slow_or_stalled_rank_does_less_of_it() {
    let nodes = sequential(18);
    let alone = nanos(nodes * 100);
    let run = |options: &VirtualOptions| {
        let outcome = walk(8, 18, options, &ScopeOptions::default());
        let work: Vec<u64> = outcome
            .results
            .iter()
            .map(|r| r.as_ref().unwrap().1.work)
            .collect();
        assert_eq!(work.iter().sum::<u64>(), nodes);
        (outcome.makespan(), work)
    };
    let mut options = plain();
    let (fair, work) = run(&options);
    assert!(fair < alone / 6, "{fair:?} of {alone:?}: {work:?}");
    options.faults = vec![Fault::Slow {
        rank: Rank(3),
        factor: 4.0,
    }];
    let (slow, work) = run(&options);
    assert!(
        slow < alone / 5 && work[3] < nodes / 16,
        "{slow:?}: {work:?}"
    );
    options.faults = vec![Fault::Stall {
        rank: Rank(3),
        at: fair / 4,
        length: 2 * fair,
    }];
    let (stalled, work) = run(&options);
    assert!(
        stalled > 2 * fair && stalled < 3 * fair,
        "{stalled:?}: {work:?}"
    );
}

#[test]
fn a_dead_rank_is_named_on_every_other_within_bounded_time() {
    let mut options = plain();
    let (at, detection) = (nanos(300 * US), nanos(100 * US));
    for dead in [0, 5] {
        options.faults = vec![Fault::Death {
            rank: Rank(dead),
            at,
            detection,
        }];
        let outcome = walk(8, 20, &options, &ScopeOptions::default());
        for (rank, result) in outcome.results.iter().enumerate() {
            let Err(ScopeError::Comm(CommError::Died { rank: named })) = result else {
                panic!("rank {rank}: {result:?}");
            };
            assert_eq!(*named, Rank(dead));
        }
        // A slice of 1024 units may be under way when the news comes.
        assert!(outcome.makespan() <= at + detection + nanos(1024 * 100 + 10 * US));
    }
}

/// Rank 1 dies at 10 µs and rank 3 at 30 µs; that is known at 15 µs and 40 µs.
fn two_deaths() -> VirtualOptions {
    let death = |rank, at, detection| Fault::Death {
        rank: Rank(rank),
        at: nanos(at * US),
        detection: nanos(detection * US),
    };
    VirtualOptions {
        faults: vec![death(3, 30, 10), death(1, 10, 5)],
        ..plain()
    }
}

fn died(rank: u32) -> CommError {
    CommError::Died { rank: Rank(rank) }
}

#[test]
fn a_job_stops_at_the_first_death_that_is_told() {
    let outcome = launch(5, &two_deaths(), |comm| {
        let error = loop {
            if let Err(error) = comm.wait(nanos(1000 * US)) {
                break error;
            }
        };
        assert_eq!(comm.send(Rank(0), Tag(1), vec![]), Err(error.clone()));
        assert_eq!(comm.try_recv(Tag(1)), Err(error.clone()));
        assert_eq!(comm.recv_from(Rank(0), Tag(1)), Err(error.clone()));
        error
    })
    .unwrap();
    assert!(outcome.results.iter().all(|e| *e == died(1)));
    let clocks = [15, 10, 15, 15, 15].map(|at| nanos(at * US));
    assert_eq!(outcome.clocks, clocks);
}

#[test]
fn a_rank_that_has_ended_does_not_die_any_more() {
    let outcome = launch(4, &two_deaths(), |comm| {
        if comm.rank().0 % 2 == 1 {
            return Ok(vec![]);
        }
        comm.wait(nanos(100 * US))?;
        assert_eq!(comm.now(), nanos(100 * US));
        comm.recv_from(Rank(1), Tag(1))
    })
    .unwrap();
    let left = |waiting| {
        let (rank, waiting) = (Rank(1), Rank(waiting));
        Err(CommError::Left { rank, waiting })
    };
    let expected = [left(0), Ok(vec![]), left(2), Ok(vec![])];
    assert_eq!(outcome.results, expected);
}

/// The death that is reported first is named, wherever it stands in the list.
#[test]
fn the_first_of_many_deaths_is_named() {
    let (ranks, deaths) = (1024, 100);
    let mut options = plain();
    // The later in the list, the sooner.
    options.faults = (0..deaths)
        .map(|i| Fault::Death {
            rank: Rank(10 * i),
            at: nanos(u64::from(deaths - i) * US),
            detection: nanos(50 * US),
        })
        .collect();
    let outcome = launch(ranks, &options, |comm| {
        loop {
            if let Err(error) = comm.wait(nanos(1000 * US)) {
                return error;
            }
        }
    })
    .unwrap();
    let first = deaths - 1;
    for (rank, error) in (0..).zip(outcome.results) {
        // Until the first death is reported, half of the others have died by themselves.
        let at = deaths.saturating_sub(rank / 10);
        let dead = rank % 10 == 0 && rank / 10 < deaths && at <= 51;
        let named = if dead { rank } else { 10 * first };
        assert_eq!(error, died(named), "rank {rank}");
    }
}

#[test]
fn a_message_that_is_dropped_was_paid_for() {
    let outcome = launch(2, &plain(), |comm| {
        if comm.rank() == Rank(0) {
            comm.send(Rank(1), Tag(1), vec![]).unwrap();
            return;
        }
        comm.close(Tag(1));
        // It may wake, once.
        comm.wait(nanos(10 * US)).unwrap();
        assert_eq!(comm.now(), nanos(500 + 2 * US));
        comm.wait(nanos(10 * US)).unwrap();
        assert_eq!(comm.now(), nanos(500 + 2 * US + 500 + 10 * US));
        assert_eq!(comm.try_recv(Tag(1)).unwrap(), None);
    })
    .unwrap();
    assert_eq!(outcome.messages, 1);
}

#[test]
fn a_message_that_is_left_where_it_is_does_not_keep_its_rank_awake() {
    launch(2, &plain(), |comm| {
        if comm.rank() == Rank(0) {
            comm.send(Rank(1), Tag(1), vec![]).unwrap();
            return;
        }
        // It ends the wait in which it comes, and perhaps one more.
        for _ in 0..2 {
            comm.wait(nanos(10 * US)).unwrap();
            assert_eq!(comm.try_recv(Tag(2)).unwrap(), None);
        }
        let before = comm.now();
        comm.wait(nanos(10 * US)).unwrap();
        assert_eq!(comm.now(), before + nanos(10 * US));
        assert!(comm.try_recv(Tag(1)).unwrap().is_some());
    })
    .unwrap();
}

#[test]
fn ranks_that_wait_for_each_other_are_told() {
    let outcome = launch(3, &plain(), |comm| {
        let next = Rank((comm.rank().0 + 1) % 3);
        comm.recv_from(next, Tag(9)).unwrap_err()
    })
    .unwrap();
    assert!(outcome.results.iter().all(|e| *e == CommError::Stuck));
    let dump = outcome.dump.unwrap();
    assert!(
        dump.contains("rank 2 waits for rank 0 with tag 0x9"),
        "{dump}"
    );
}

#[test]
fn thousands_of_ranks_meet() {
    let ranks = 4096;
    let outcome = launch(ranks, &plain(), |comm| {
        comm.barrier().unwrap();
        comm.now()
    })
    .unwrap();
    // Dissemination: twelve rounds of a message each.
    let round = nanos(500 + 2 * US + 500);
    assert!(outcome.makespan() >= 12 * round && outcome.makespan() < 13 * round);
    let shared = walk(1000, 16, &plain(), &ScopeOptions::default());
    assert_eq!(shared.results[0].as_ref().unwrap().0, sequential(16));
}

/// Groups made one after the other: a task of the next may be stolen before the thief knows that
/// the last is exhausted.
#[test]
fn groups_can_be_made_after_others_were_joined() {
    let registry = Registry::new().with::<Tree>();
    for seed in 0..200 {
        let mut options = plain();
        options.seed = seed;
        options.faults = vec![Fault::Late {
            probability: 0.3,
            delay: nanos(200 * US),
        }];
        let scope_options = ScopeOptions {
            seed,
            ..ScopeOptions::default()
        };
        let outcome = launch(7, &options, |comm| {
            scope(comm, &registry, &(), &scope_options, |s| {
                let mut sum = 0;
                for _ in 0..5 {
                    let group = s.group();
                    if s.rank() == Rank(0) {
                        (0..40).try_for_each(|_| s.fork(&group, Tree::new(5)))?;
                    }
                    while let Some(nodes) = s.join(&group)? {
                        sum += nodes?;
                    }
                }
                Ok(sum)
            })
        })
        .unwrap();
        let sums = outcome.results.into_iter().map(|r| r.unwrap().0);
        assert_eq!(sums.sum::<u64>(), 200 * sequential(5), "seed {seed}");
    }
}

#[test]
fn a_scope_in_virtual_time_has_no_threads() {
    let options = ScopeOptions {
        workers: 2,
        ..ScopeOptions::default()
    };
    let outcome = walk(2, 3, &plain(), &options);
    for result in outcome.results {
        assert_eq!(result.unwrap_err(), ScopeError::NoThreads);
    }
}

/// Where messages cost nothing, time goes on all the same.
#[test]
fn a_network_without_cost_is_a_network() {
    let link = Link {
        latency: Duration::ZERO,
        overhead: Duration::ZERO,
        gap: Duration::ZERO,
        ns_per_byte: 0.0,
    };
    let options = VirtualOptions {
        network: Network::uniform(link),
        ..VirtualOptions::default()
    };
    let outcome = launch(5, &options, |comm| {
        for _ in 0..3 {
            comm.barrier().unwrap();
        }
        comm.allgather(vec![comm.rank().0 as u8]).unwrap().concat()
    })
    .unwrap();
    assert!(outcome.results.iter().all(|all| *all == [0, 1, 2, 3, 4]));
}

#[test]
fn options_that_make_no_sense_are_refused() {
    let usual = VirtualOptions::default();
    let slow = |factor| VirtualOptions {
        faults: vec![Fault::Slow {
            rank: Rank(0),
            factor,
        }],
        ..VirtualOptions::default()
    };
    let late = |delay| VirtualOptions {
        faults: vec![Fault::Late {
            probability: 0.5,
            delay,
        }],
        ..VirtualOptions::default()
    };
    let stack = |stack| VirtualOptions {
        stack,
        ..VirtualOptions::default()
    };
    let jitter = |jitter| VirtualOptions {
        jitter,
        ..VirtualOptions::default()
    };
    let death = VirtualOptions {
        faults: vec![Fault::Death {
            rank: Rank(99),
            at: Duration::ZERO,
            detection: Duration::ZERO,
        }],
        ..usual
    };
    for options in [
        slow(-3.0),
        slow(f64::NAN),
        slow(f64::INFINITY),
        late(Duration::MAX),
        stack(0),
        stack(usize::MAX),
        jitter(-5.0),
        death,
    ] {
        let refused = launch(2, &options, |_| ());
        assert!(
            matches!(refused, Err(threads::LaunchError::Options(_))),
            "{options:?}: {refused:?}"
        );
    }
}

/// Up to this many ranks blocks of a gather that is begun are under way at once; beyond, they are
/// passed on.
#[test]
fn a_gather_that_is_begun_brings_all_blocks_to_any_number_of_ranks() {
    for ranks in [POSTED_UP_TO, POSTED_UP_TO + 1, 100] {
        let outcome = launch(ranks, &VirtualOptions::default(), |comm| {
            let block = |rank: usize| vec![rank as u8; rank % 5];
            let own = block(comm.rank().index());
            comm.begin_allgather(&own).unwrap();
            comm.barrier().unwrap();
            let all = comm.finish_allgather(own).unwrap();
            assert!(all.into_iter().eq((0..ranks).map(block)));
        });
        outcome.unwrap();
    }
}
