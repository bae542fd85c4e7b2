//! One behaviour on every driver: the suite that a new driver has to pass.

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
fn no_ranks_are_refused() {
    assert_eq!(threads::launch(0, |_| ()), Err(LaunchError::NoRanks));
    let error = virtual_time::launch(0, &VirtualOptions::default(), |_| ()).unwrap_err();
    assert_eq!(error, LaunchError::NoRanks);
}
