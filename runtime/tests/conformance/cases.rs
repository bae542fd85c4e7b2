//! Cases that every driver must pass, as programs that every rank runs.
//!
//! `main.rs` runs them on the drivers of this crate, `weft-mpi` runs them under `mpirun`. A case
//! ends on every rank, or panics.

use std::time::Duration;

use weft_runtime::comm::{Collectives, Comm, CommError, Rank, Tag, all_reduce};

/// A program that every rank runs.
pub(crate) type Case = fn(&mut dyn Comm);

/// All of them, by name.
pub(crate) const CASES: [(&str, Case); 15] = [
    (
        "messages_of_a_tag_between_two_ranks_keep_their_order",
        order,
    ),
    ("large_messages_arrive_whole", large),
    ("short_messages_do_not_overtake_long_ones", long_and_short),
    ("thousands_of_messages_may_wait", thousands),
    ("a_poll_takes_from_anyone_and_waiting_ends_by_itself", poll),
    ("collectives_agree_with_what_every_rank_gave", collectives),
    ("a_sparse_exchange_delivers_to_whom_it_was_sent", exchange),
    ("earlier_messages_are_taken_by_sender", take_sent),
    ("ranks_that_do_not_exist_are_refused", no_such_rank),
    ("an_abort_reaches_ranks_that_wait", abort),
    ("waiting_for_a_rank_that_has_left_is_an_error", left),
    ("epochs_count_up_alike_on_every_rank", epochs),
    (
        "messages_of_a_closed_tag_are_dropped_and_end_no_wait_for_ever",
        closed,
    ),
    ("an_opened_tag_keeps_what_comes_from_then_on", opened),
    ("every_rank_knows_the_same_nodes", nodes),
];

fn others(comm: &dyn Comm) -> impl Iterator<Item = Rank> + use<> {
    let me = comm.rank();
    (0..comm.size() as u32).map(Rank).filter(move |&r| r != me)
}

fn order(comm: &mut dyn Comm) {
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
}

fn large(comm: &mut dyn Comm) {
    let me = comm.rank().0 as u8;
    let peers: Vec<Rank> = others(comm).collect();
    for &to in &peers {
        comm.send(to, Tag(1), vec![me; 3 << 20]).unwrap();
    }
    for &from in &peers {
        let bytes = comm.recv_from(from, Tag(1)).unwrap();
        assert!(bytes.len() == 3 << 20 && bytes.iter().all(|&b| b == from.0 as u8));
    }
}

fn long_and_short(comm: &mut dyn Comm) {
    // Around what drivers may send in one piece, and far beyond.
    const LENGTHS: [usize; 12] = [
        100_000, 0, 3999, 1, 4000, 200_000, 4001, 8, 5000, 300_000, 65_536, 3,
    ];
    let peers: Vec<Rank> = others(comm).collect();
    let message = |from: Rank, i: usize| {
        let first = (from.0 as usize + 7 * i) as u8;
        let fill = |k: usize| first.wrapping_add((k % 251) as u8);
        (0..LENGTHS[i]).map(fill).collect::<Vec<u8>>()
    };
    for round in 0..2 {
        for i in 0..LENGTHS.len() {
            for &to in &peers {
                let tag = Tag(20 + ((i + round) % 2) as u16);
                comm.send(to, tag, message(comm.rank(), i)).unwrap();
            }
        }
        for parity in 0..2 {
            for &from in &peers {
                for i in (0..LENGTHS.len()).filter(|i| (i + round) % 2 == parity) {
                    let tag = Tag(20 + parity as u16);
                    let bytes = comm.recv_from(from, tag).unwrap();
                    assert!(
                        bytes == message(from, i),
                        "{i} from {from:?}: {}",
                        bytes.len()
                    );
                }
            }
        }
    }
}

fn thousands(comm: &mut dyn Comm) {
    let count = 6000 / comm.size() as u32;
    let peers: Vec<Rank> = others(comm).collect();
    for i in 0..count {
        for &to in &peers {
            let tag = Tag((i % 5) as u16);
            comm.send(to, tag, i.to_le_bytes().to_vec()).unwrap();
        }
    }
    for tag in (0..5).rev() {
        for &from in &peers {
            for i in (0..count).filter(|i| i % 5 == tag) {
                let bytes = comm.recv_from(from, Tag(tag as u16)).unwrap();
                assert_eq!(bytes, i.to_le_bytes());
            }
        }
    }
}

fn poll(comm: &mut dyn Comm) {
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
}

fn collectives(comm: &mut dyn Comm) {
    let (me, n) = (comm.rank().0, comm.size() as u32);
    let block = |r: u32| vec![r as u8; (r as usize * 37) % 11];
    for round in 0..20 {
        let all: Vec<Vec<u8>> = (0..n).map(block).collect();
        assert_eq!(comm.allgather(block(me)).unwrap(), all);
        let lengths: Vec<usize> = all.iter().map(Vec::len).collect();
        let mut own = all.clone();
        (0..n)
            .filter(|&r| r != me)
            .for_each(|r| own[r as usize].fill(0xff));
        let mut known = own.concat();
        comm.allgather_into(&lengths, &mut known).unwrap();
        assert_eq!(known, all.concat());
        // Begun, and ended after another one.
        comm.begin_allgather(&block(me)).unwrap();
        assert_eq!(comm.allgather(vec![me as u8]).unwrap().len(), n as usize);
        let mut known = own.concat();
        comm.finish_allgather_into(&lengths, &mut known).unwrap();
        assert_eq!(known, all.concat());
        // Where nobody knows how long the others' are.
        comm.begin_allgather(&block(me)).unwrap();
        assert_eq!(comm.finish_allgather(block(me)).unwrap(), all);
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
}

fn exchange(comm: &mut dyn Comm) {
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
}

/// Takes the messages that were sent before, by sender and in order, whichever rank has sent how
/// often.
fn take_sent(comm: &mut dyn Comm) {
    let (me, size) = (comm.rank().0, comm.size() as u32);
    // Rank r sends r messages to the next, and one to itself.
    let next = Rank((me + 1) % size);
    let mut to = vec![Rank(me)];
    to.extend((0..me).map(|_| next));
    for (number, &to) in (0..).zip(&to) {
        comm.send(to, Tag(77), vec![me as u8, number]).unwrap();
    }
    let before = (me + size - 1) % size;
    let mut expected = vec![(Rank(me), vec![me as u8, 0])];
    expected.extend((1..=before).map(|number| (Rank(before), vec![before as u8, number as u8])));
    expected.sort();
    assert_eq!(comm.take_sent(&to, Tag(77)).unwrap(), expected);
}

fn no_such_rank(comm: &mut dyn Comm) {
    let size = comm.size();
    let to = Rank(size as u32);
    let error = CommError::NoSuchRank { to, size };
    assert_eq!(comm.send(to, Tag(0), vec![]), Err(error.clone()));
    assert_eq!(comm.recv_from(to, Tag(0)), Err(error));
}

fn abort(comm: &mut dyn Comm) {
    if comm.size() < 2 {
        return;
    }
    let outcome = if comm.rank() == Rank(1) {
        comm.abort("no more wool");
        comm.barrier()
    } else {
        comm.recv_from(Rank(1), Tag(9)).map(drop)
    };
    let expected = CommError::Aborted {
        rank: Rank(1),
        reason: "no more wool".to_owned(),
    };
    assert_eq!(outcome, Err(expected));
}

fn left(comm: &mut dyn Comm) {
    match comm.rank() {
        Rank(0) if comm.size() > 1 => comm.send(Rank(1), Tag(3), vec![1]).unwrap(),
        Rank(1) => {
            // Messages that were sent before leaving still arrive.
            assert_eq!(comm.recv_from(Rank(0), Tag(3)).unwrap(), [1]);
            let left = CommError::Left {
                rank: Rank(0),
                waiting: Rank(1),
            };
            assert_eq!(comm.recv_from(Rank(0), Tag(3)), Err(left.clone()));
            assert_eq!(comm.recv_from(Rank(0), Tag(4)), Err(left));
        }
        _ => {}
    }
}

fn epochs(comm: &mut dyn Comm) {
    for epoch in 0..5 {
        assert_eq!(comm.next_epoch(), epoch);
        comm.barrier().unwrap();
    }
}

fn closed(comm: &mut dyn Comm) {
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
    // Ranks that wait for one hear that it cannot come.
    let me = comm.rank();
    let left = CommError::Left {
        rank: me,
        waiting: me,
    };
    assert_eq!(comm.recv_from(me, closed), Err(left));
    comm.barrier().unwrap();
}

fn opened(comm: &mut dyn Comm) {
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
}

fn nodes(comm: &mut dyn Comm) {
    let all = (0..comm.size() as u32).map(Rank);
    let nodes: Vec<u32> = all.map(|rank| comm.node_of(rank)).collect();
    let mut largest = None;
    for &node in &nodes {
        // Numbered in the order of their first ranks.
        assert!(node <= largest.map_or(0, |l| l + 1), "{nodes:?}");
        largest = largest.max(Some(node));
    }
    let bytes: Vec<u8> = nodes.iter().flat_map(|n| n.to_le_bytes()).collect();
    let told = comm.allgather(bytes.clone()).unwrap();
    assert!(told.iter().all(|nodes| *nodes == bytes));
}
