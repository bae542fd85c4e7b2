//! One behaviour on every driver: the suite that a new driver has to pass.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use weft_runtime::comm::threads::{self, LaunchError};
use weft_runtime::comm::virtual_time::{self, Computation, Fault, Network, VirtualOptions};
use weft_runtime::comm::{Collectives, Comm, CommError, Rank, Tag, all_reduce, solo::Solo};

const RANKS: [usize; 6] = [1, 2, 3, 4, 7, 16];

/// Runs a case on every driver and rank count.
fn on_all(case: impl Fn(&mut dyn Comm) + Sync) {
    case(&mut Solo::new());
    for ranks in RANKS {
        on_drivers(ranks, &case).unwrap();
    }
}

/// Runs a case on every driver of several ranks; what each gave.
fn on_drivers<R: Send>(
    ranks: usize,
    case: impl Fn(&mut dyn Comm) -> R + Sync,
) -> Result<Vec<Vec<R>>, LaunchError> {
    let rough = VirtualOptions {
        network: Network::GIGABIT.with_nodes(3),
        computation: Computation::Measured { factor: 2.0 },
        jitter: 0.5,
        seed: 7,
        faults: vec![Fault::Late {
            probability: 0.2,
            delay: Duration::from_millis(1),
        }],
        ..VirtualOptions::default()
    };
    Ok(vec![
        threads::launch(ranks, &case)?,
        virtual_time::launch(ranks, &VirtualOptions::default(), &case)?.results,
        virtual_time::launch(ranks, &rough, &case)?.results,
    ])
}

fn others(comm: &dyn Comm) -> impl Iterator<Item = Rank> + use<> {
    let me = comm.rank();
    (0..comm.size() as u32).map(Rank).filter(move |&r| r != me)
}

#[test]
fn messages_of_a_tag_between_two_ranks_keep_their_order() {
    on_all(|comm| {
        let all: Vec<Rank> = (0..comm.size() as u32).map(Rank).collect();
        for i in 0..50u8 {
            for &to in &all {
                comm.send(to, Tag(u16::from(i % 3)), vec![i]).unwrap();
            }
        }
        // Asked for in another order of tags than sent.
        for tag in [2u8, 0, 1] {
            for &from in &all {
                let got: Vec<u8> = (0..50u8)
                    .filter(|i| i % 3 == tag)
                    .map(|_| comm.recv_from(from, Tag(u16::from(tag))).unwrap()[0])
                    .collect();
                let sent: Vec<u8> = (0..50u8).filter(|i| i % 3 == tag).collect();
                assert_eq!(got, sent);
            }
        }
        comm.barrier().unwrap();
    });
}

#[test]
fn large_messages_arrive_whole() {
    on_all(|comm| {
        let me = comm.rank().0 as u8;
        let peers: Vec<Rank> = others(comm).collect();
        for &to in &peers {
            comm.send(to, Tag(1), vec![me; 3 << 20]).unwrap();
        }
        for &from in &peers {
            let bytes = comm.recv_from(from, Tag(1)).unwrap();
            assert!(bytes.len() == 3 << 20 && bytes.iter().all(|&b| b == from.0 as u8));
        }
    });
}

#[test]
fn a_poll_takes_from_anyone_and_waiting_ends_by_itself() {
    on_all(|comm| {
        let peers: Vec<Rank> = others(comm).collect();
        for &to in &peers {
            comm.send(to, Tag(4), vec![7]).unwrap();
        }
        let mut seen = Vec::new();
        while seen.len() < peers.len() {
            match comm.try_recv(Tag(4)).unwrap() {
                Some(message) => seen.push(message.from),
                None => comm.wait(Duration::from_millis(1)).unwrap(),
            }
        }
        seen.sort();
        assert_eq!(seen, peers);
        assert_eq!(comm.try_recv(Tag(4)).unwrap(), None);
    });
}

#[test]
fn collectives_agree_with_what_every_rank_gave() {
    on_all(|comm| {
        let (me, n) = (comm.rank().0, comm.size() as u32);
        let block = |r: u32| vec![r as u8; (r as usize * 37) % 11];
        for round in 0..20 {
            let all: Vec<Vec<u8>> = (0..n).map(block).collect();
            assert_eq!(comm.allgather(block(me)).unwrap(), all);
            let root = Rank(round % n);
            let given = if me == root.0 {
                vec![round as u8; 5]
            } else {
                vec![]
            };
            assert_eq!(comm.broadcast(root, given).unwrap(), vec![round as u8; 5]);
            let gathered = comm.gather(root, block(me)).unwrap();
            assert_eq!(gathered, (me == root.0).then_some(all));
            // Not associative in floating point: the order must be that of ranks.
            let term = |r: u32| 0.1 / f64::from(r + 1);
            let expected = (1..n).fold(term(0), |sum, r| sum + term(r));
            let sum = all_reduce(comm, term(me), |a, b| a + b).unwrap();
            assert_eq!(sum.to_bits(), expected.to_bits());
            comm.barrier().unwrap();
        }
    });
}

#[test]
fn a_sparse_exchange_delivers_to_whom_it_was_sent() {
    on_all(|comm| {
        let (me, n) = (comm.rank().0, comm.size() as u32);
        let goes = |from: u32, to: u32| (from * 5 + to * 3).is_multiple_of(4);
        for _ in 0..5 {
            let messages = (0..n)
                .filter(|&to| goes(me, to))
                .map(|to| (Rank(to), vec![me as u8, to as u8]))
                .collect();
            let expected: Vec<(Rank, Vec<u8>)> = (0..n)
                .filter(|&from| goes(from, me))
                .map(|from| (Rank(from), vec![from as u8, me as u8]))
                .collect();
            assert_eq!(comm.exchange(messages).unwrap(), expected);
        }
    });
}

#[test]
fn ranks_that_do_not_exist_are_refused() {
    on_all(|comm| {
        let size = comm.size();
        let to = Rank(size as u32);
        let error = CommError::NoSuchRank { to, size };
        assert_eq!(comm.send(to, Tag(0), vec![]), Err(error.clone()));
        assert_eq!(comm.recv_from(to, Tag(0)), Err(error));
    });
}

#[test]
fn an_abort_reaches_ranks_that_wait() {
    for ranks in [2, 3, 7] {
        let outcomes = on_drivers(ranks, |comm| {
            if comm.rank() == Rank(1) {
                comm.abort("no more wool");
                comm.barrier()
            } else {
                comm.recv_from(Rank(1), Tag(9)).map(drop)
            }
        })
        .unwrap();
        let expected = CommError::Aborted {
            rank: Rank(1),
            reason: "no more wool".to_owned(),
        };
        for outcome in outcomes {
            assert!(
                outcome.iter().all(|r| *r == Err(expected.clone())),
                "{outcome:?}"
            );
        }
    }
}

#[test]
fn a_panic_on_one_rank_ends_the_others_and_is_named() {
    let body = |comm: &mut dyn Comm| {
        assert!(comm.rank() != Rank(2), "lost the thread");
        assert!(comm.barrier().is_err());
    };
    let expected = LaunchError::Panicked {
        rank: Rank(2),
        message: "lost the thread".to_owned(),
    };
    assert_eq!(threads::launch(4, body), Err(expected.clone()));
    let options = VirtualOptions::default();
    let error = virtual_time::launch(4, &options, body).unwrap_err();
    assert_eq!(error, expected);
}

#[test]
fn waiting_for_a_rank_that_has_left_is_an_error() {
    let outcomes = on_drivers(2, |comm| {
        if comm.rank() == Rank(0) {
            comm.send(Rank(1), Tag(3), vec![1]).map(|()| vec![])
        } else {
            // What was sent before leaving still arrives.
            assert_eq!(comm.recv_from(Rank(0), Tag(3)).unwrap(), [1]);
            comm.recv_from(Rank(0), Tag(3))
        }
    })
    .unwrap();
    for outcome in outcomes {
        assert_eq!(
            outcome[1],
            Err(CommError::Left {
                rank: Rank(0),
                waiting: Rank(1)
            })
        );
    }
}

#[test]
fn epochs_count_up_alike_on_every_rank() {
    on_all(|comm| {
        for epoch in 0..5 {
            assert_eq!(comm.next_epoch(), epoch);
            comm.barrier().unwrap();
        }
    });
}

#[test]
fn messages_of_a_closed_tag_are_dropped_and_end_no_wait_for_ever() {
    on_all(|comm| {
        let all: Vec<Rank> = (0..comm.size() as u32).map(Rank).collect();
        let (closed, open) = (Tag(5), Tag(6));
        comm.close(closed);
        comm.barrier().unwrap();
        for &to in &all {
            comm.send(to, closed, vec![1]).unwrap();
            comm.send(to, open, vec![2]).unwrap();
        }
        for &from in &all {
            assert_eq!(comm.recv_from(from, open).unwrap(), [2]);
        }
        for _ in 0..2 * all.len() {
            comm.wait(Duration::from_micros(50)).unwrap();
            assert_eq!(comm.try_recv(closed).unwrap(), None);
        }
        // Those that wait for one are told that it cannot come.
        let me = comm.rank();
        let left = CommError::Left {
            rank: me,
            waiting: me,
        };
        assert_eq!(comm.recv_from(me, closed), Err(left));
        comm.barrier().unwrap();
    });
}

#[test]
fn an_opened_tag_keeps_what_comes_from_then_on() {
    on_all(|comm| {
        let all: Vec<Rank> = (0..comm.size() as u32).map(Rank).collect();
        let tag = Tag(5);
        let me = comm.rank();
        comm.send(me, tag, vec![1]).unwrap();
        comm.close(tag);
        comm.send(me, tag, vec![1]).unwrap();
        comm.reopen(tag);
        assert_eq!(comm.try_recv(tag).unwrap(), None);
        // It need not have been closed.
        comm.reopen(tag);
        comm.barrier().unwrap();
        for &to in &all {
            comm.send(to, tag, vec![2]).unwrap();
        }
        for &from in &all {
            assert_eq!(comm.recv_from(from, tag).unwrap(), [2]);
        }
    });
}

#[test]
fn ranks_know_who_shares_their_node() {
    let case = |comm: &mut dyn Comm| {
        let all = (0..comm.size() as u32).map(Rank);
        all.map(|rank| comm.node_of(rank)).collect::<Vec<_>>()
    };
    assert_eq!(case(&mut Solo::new()), [0]);
    let nodes = on_drivers(5, case).unwrap();
    let expected = [[0; 5], [0, 1, 2, 3, 4], [0, 0, 0, 1, 1]];
    for (nodes, expected) in nodes.iter().zip(&expected) {
        assert!(nodes.iter().all(|n| n == expected), "{nodes:?}");
    }
}

#[test]
fn whoever_tolerates_deaths_goes_on_without_a_rank_that_panicked() {
    let died = |rank| Err(CommError::Died { rank: Rank(rank) });
    let ended = AtomicUsize::new(0);
    let body = |comm: &mut dyn Comm| {
        comm.tolerate_deaths(true);
        assert_eq!(comm.deaths(), []);
        comm.barrier().unwrap();
        if comm.rank() == Rank(2) {
            comm.send(Rank(0), Tag(1), vec![7]).unwrap();
            panic!("lost the thread");
        }
        if comm.rank() == Rank(0) {
            // What it sent before it died still arrives.
            assert_eq!(comm.recv_from(Rank(2), Tag(1)), Ok(vec![7]));
        }
        // Told to who waits for it, and to who waits for anything.
        assert_eq!(comm.recv_from(Rank(2), Tag(1)).map(drop), died(2));
        let mut dead = Vec::new();
        while dead.is_empty() {
            comm.wait(Duration::from_secs(1)).unwrap();
            dead = comm.deaths();
        }
        assert_eq!(dead, [Rank(2)]);
        assert_eq!(comm.deaths(), []);
        comm.send(Rank(2), Tag(1), vec![]).unwrap();
        let next = Rank([1, 3, 2, 0][comm.rank().index()]);
        let last = Rank([3, 0, 2, 1][comm.rank().index()]);
        comm.send(next, Tag(1), vec![8]).unwrap();
        assert_eq!(comm.recv_from(last, Tag(1)), Ok(vec![8]));
        comm.tolerate_deaths(false);
        assert_eq!(comm.send(next, Tag(1), vec![9]), died(2));
        assert_eq!(comm.try_recv(Tag(1)).map(drop), died(2));
        assert_eq!(comm.wait(Duration::from_secs(1)), died(2));
        ended.fetch_add(1, Ordering::Relaxed);
    };
    let expected = LaunchError::Panicked {
        rank: Rank(2),
        message: "lost the thread".to_owned(),
    };
    assert_eq!(threads::launch(4, body), Err(expected.clone()));
    assert_eq!(ended.swap(0, Ordering::Relaxed), 3);
    let options = VirtualOptions::default();
    let error = virtual_time::launch(4, &options, body).unwrap_err();
    assert_eq!((error, ended.into_inner()), (expected, 3));
}

#[test]
fn whoever_does_not_tolerate_deaths_stops_when_a_rank_panicked() {
    let body = |comm: &mut dyn Comm| {
        if comm.rank() == Rank(1) {
            comm.tolerate_deaths(true);
            panic!("lost the thread");
        }
        // Each waits for another.
        let died = CommError::Died { rank: Rank(1) };
        let from = Rank((comm.rank().0 + 1) % 3);
        assert_eq!(comm.recv_from(from, Tag(1)), Err(died.clone()));
        assert_eq!(comm.barrier(), Err(died));
    };
    let expected = LaunchError::Panicked {
        rank: Rank(1),
        message: "lost the thread".to_owned(),
    };
    assert_eq!(threads::launch(3, body), Err(expected.clone()));
    let options = VirtualOptions::default();
    let error = virtual_time::launch(3, &options, body).unwrap_err();
    assert_eq!(error, expected);
}

#[test]
fn a_rank_that_returned_has_left_and_is_not_dead() {
    let outcomes = on_drivers(2, |comm| {
        comm.tolerate_deaths(true);
        if comm.rank() == Rank(0) {
            return Ok(vec![]);
        }
        let outcome = comm.recv_from(Rank(0), Tag(1));
        assert_eq!(comm.deaths(), []);
        outcome
    })
    .unwrap();
    let left = CommError::Left {
        rank: Rank(0),
        waiting: Rank(1),
    };
    for outcome in outcomes {
        assert_eq!(outcome[1], Err(left.clone()));
    }
}

#[test]
fn no_ranks_are_refused() {
    assert_eq!(threads::launch(0, |_| ()), Err(LaunchError::NoRanks));
    let error = virtual_time::launch(0, &VirtualOptions::default(), |_| ()).unwrap_err();
    assert_eq!(error, LaunchError::NoRanks);
}
