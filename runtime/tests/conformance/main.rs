//! One behaviour on every driver: the suite that a new driver has to pass. The cases that any
//! driver can run are in `cases.rs`; those about ranks that panic need ranks that are threads of
//! the test.

mod cases;

use std::time::Duration;

use weft_runtime::comm::threads::{self, LaunchError};
use weft_runtime::comm::virtual_time::{self, Computation, Fault, Network, VirtualOptions};
use weft_runtime::comm::{Collectives, Comm, CommError, Rank, Tag, solo::Solo};

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

/// The case of this name.
fn case(name: &str) -> cases::Case {
    let (_, case) = cases::CASES.iter().find(|(n, _)| *n == name).unwrap();
    *case
}

#[test]
fn messages_of_a_tag_between_two_ranks_keep_their_order() {
    on_all(case("messages_of_a_tag_between_two_ranks_keep_their_order"));
}

#[test]
fn large_messages_arrive_whole() {
    on_all(case("large_messages_arrive_whole"));
}

#[test]
fn short_messages_do_not_overtake_long_ones() {
    on_all(case("short_messages_do_not_overtake_long_ones"));
}

#[test]
fn thousands_of_messages_may_wait() {
    on_all(case("thousands_of_messages_may_wait"));
}

#[test]
fn a_poll_takes_from_anyone_and_waiting_ends_by_itself() {
    on_all(case("a_poll_takes_from_anyone_and_waiting_ends_by_itself"));
}

#[test]
fn collectives_agree_with_what_every_rank_gave() {
    on_all(case("collectives_agree_with_what_every_rank_gave"));
}

#[test]
fn a_sparse_exchange_delivers_to_whom_it_was_sent() {
    on_all(case("a_sparse_exchange_delivers_to_whom_it_was_sent"));
}

#[test]
fn earlier_messages_are_taken_by_sender() {
    on_all(case("earlier_messages_are_taken_by_sender"));
}

#[test]
fn ranks_that_do_not_exist_are_refused() {
    on_all(case("ranks_that_do_not_exist_are_refused"));
}

#[test]
fn an_abort_reaches_ranks_that_wait() {
    on_all(case("an_abort_reaches_ranks_that_wait"));
}

#[test]
fn waiting_for_a_rank_that_has_left_is_an_error() {
    on_all(case("waiting_for_a_rank_that_has_left_is_an_error"));
}

#[test]
fn epochs_count_up_alike_on_every_rank() {
    on_all(case("epochs_count_up_alike_on_every_rank"));
}

#[test]
fn messages_of_a_closed_tag_are_dropped_and_end_no_wait_for_ever() {
    on_all(case(
        "messages_of_a_closed_tag_are_dropped_and_end_no_wait_for_ever",
    ));
}

#[test]
fn an_opened_tag_keeps_what_comes_from_then_on() {
    on_all(case("an_opened_tag_keeps_what_comes_from_then_on"));
}

#[test]
fn every_rank_knows_the_same_nodes() {
    on_all(case("every_rank_knows_the_same_nodes"));
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
fn a_rank_that_returned_has_left() {
    let outcomes = on_drivers(2, |comm| {
        if comm.rank() == Rank(0) {
            return Ok(vec![]);
        }
        comm.recv_from(Rank(0), Tag(1))
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
