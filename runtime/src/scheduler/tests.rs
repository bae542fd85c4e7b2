//! The scheduler on a simulated network: any delivery order, a virtual clock, no threads.
//!
//! Each scenario of the README is a test of its name here.

use proptest::prelude::*;

use super::*;

/// A task is a number of units of work; units above one are children to hyperfork.
type Machine = Scheduler<Work, u32>;
type Letter = Message<Work, u32>;

#[derive(Clone, Copy, Debug, PartialEq)]
struct Work {
    home: Rank,
    /// Numbers of the subtree: `first..first + size`; every number is produced once as a result.
    first: u32,
    size: u32,
}

struct Network {
    ranks: Vec<Machine>,
    /// Ordered links, as messages between two ranks keep their order.
    links: Vec<VecDeque<Letter>>,
    running: Vec<Vec<(GroupId, Work)>>,
    now: Duration,
    random: u64,
    /// How many tasks each rank has finished.
    finished: Vec<u32>,
    taken: Vec<Vec<u32>>,
    joined: Vec<bool>,
}

impl Network {
    fn new(ranks: u32, options: &ScopeOptions, seed: u64) -> Self {
        let n = ranks as usize;
        let make = |r| {
            let mut machine = Machine::new(Rank(r), ranks, options);
            assert_eq!(machine.group(), 0);
            machine
        };
        Self {
            ranks: (0..ranks).map(make).collect(),
            links: vec![VecDeque::new(); n * n],
            running: vec![Vec::new(); n],
            now: Duration::ZERO,
            random: seed | 1,
            finished: vec![0; n],
            taken: vec![Vec::new(); n],
            joined: vec![false; n],
        }
    }

    fn draw(&mut self, below: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 20) as usize % below
    }

    fn post(&mut self, rank: usize) {
        let n = self.ranks.len();
        while let Some((to, letter)) = self.ranks[rank].outgoing() {
            self.links[rank * n + to.index()].push_back(letter);
        }
    }

    /// One event at a random place. False if the rank drawn had none.
    fn step(&mut self) -> bool {
        let n = self.ranks.len();
        let rank = self.draw(n);
        self.now += Duration::from_micros(1);
        let acted = match self.draw(4) {
            0 => {
                let from = self.draw(n);
                let letter = self.links[from * n + rank].pop_front();
                letter.is_some_and(|letter| {
                    self.ranks[rank]
                        .receive(Rank(from as u32), letter, self.now)
                        .unwrap();
                    true
                })
            }
            1 => self.work(rank),
            2 => self.join(rank),
            _ => {
                let task = self.ranks[rank].next_task();
                match task {
                    Some(task) => self.running[rank].push(task),
                    None if self.running[rank].is_empty() => self.ranks[rank].idle(self.now),
                    None => {}
                }
                task.is_some()
            }
        };
        self.post(rank);
        acted
    }

    /// A running task forks one half of what remains, or produces its number and ends.
    fn work(&mut self, rank: usize) -> bool {
        let Some((group, task)) = self.running[rank].pop() else {
            return false;
        };
        let machine = &mut self.ranks[rank];
        machine.produced(group, task.home, task.first);
        let rest = task.size - 1;
        let left = rest / 2;
        for (first, size) in [(task.first + 1, left), (task.first + 1 + left, rest - left)] {
            if size > 0 {
                machine.fork(
                    group,
                    Work {
                        first,
                        size,
                        ..task
                    },
                );
            }
        }
        machine.finished(group);
        self.finished[rank] += 1;
        true
    }

    /// The body takes what is there, then waits; once the group is exhausted it ends.
    fn join(&mut self, rank: usize) -> bool {
        if self.joined[rank] {
            return false;
        }
        let machine = &mut self.ranks[rank];
        if let Some(result) = machine.next_result(0) {
            self.taken[rank].push(result);
            return true;
        }
        machine.waits_in(0);
        if machine.is_exhausted(0) {
            machine.body_ended();
            self.joined[rank] = true;
            return true;
        }
        false
    }

    /// Runs until all ranks may leave. `sizes[r]` is the tree that rank `r` forks.
    fn run(&mut self, sizes: &[u32]) {
        let mut first = 0;
        for (rank, &size) in sizes.iter().enumerate() {
            if size > 0 {
                let home = Rank(rank as u32);
                self.ranks[rank].fork(0, Work { home, first, size });
            }
            first += size;
        }
        for _ in 0..4_000_000 {
            self.step();
            if self.ranks.iter().all(Scheduler::may_leave) {
                break;
            }
            // Never early: whoever has joined has all its results.
            for (rank, &size) in sizes.iter().enumerate() {
                let taken = self.taken[rank].len() as u32;
                assert!(
                    !self.joined[rank] || taken == size,
                    "rank {rank} left early"
                );
            }
        }
        for machine in &self.ranks {
            assert!(machine.may_leave(), "{}", machine.describe());
        }
        assert!(
            self.links.iter().all(VecDeque::is_empty),
            "messages outlived the scope"
        );
        let mut first = 0;
        for (taken, &size) in self.taken.iter_mut().zip(sizes) {
            taken.sort_unstable();
            assert!(
                taken.iter().copied().eq(first..first + size),
                "lost or doubled: {taken:?}"
            );
            first += size;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn nothing_is_lost_or_doubled_and_everybody_leaves(
        sizes in prop::collection::vec(0u32..120, 1..9),
        steal in any::<bool>(),
        timeout in 1u64..2000,
        seed in any::<u64>(),
    ) {
        let options = ScopeOptions {
            steal,
            seed,
            steal_timeout: Duration::from_micros(timeout),
            ..ScopeOptions::default()
        };
        Network::new(sizes.len() as u32, &options, seed).run(&sizes);
    }
}

#[test]
fn work_that_starts_on_one_rank_is_shared() {
    let mut network = Network::new(4, &ScopeOptions::default(), 7);
    network.run(&[2000, 0, 0, 0]);
    assert!(
        network.finished.iter().all(|&n| n > 200),
        "{:?}",
        network.finished
    );
    let counts = network.ranks[1].counts();
    assert!(counts.served > 0 && counts.tasks_in > 0, "{counts:?}");
}

#[test]
fn without_stealing_no_request_is_sent() {
    let options = ScopeOptions {
        steal: false,
        ..ScopeOptions::default()
    };
    let mut network = Network::new(4, &options, 7);
    network.run(&[500, 0, 0, 20]);
    assert_eq!(network.finished, [500, 0, 0, 20]);
    assert!(network.ranks.iter().all(|m| m.counts().requests == 0));
}

/// A thief gave up waiting and asked another; the first answer still brings tasks, and they are run.
#[test]
fn late_work_is_accepted() {
    let mut thief = Machine::new(Rank(1), 3, &ScopeOptions::default());
    thief.group();
    thief.waits_in(0);
    thief.idle(Duration::ZERO);
    assert!(matches!(thief.outgoing(), Some((_, Message::StealRequest))));
    let later = Duration::from_millis(5);
    thief.idle(later);
    assert!(matches!(thief.outgoing(), Some((_, Message::StealRequest))));
    let task = Work {
        home: Rank(0),
        first: 0,
        size: 1,
    };
    thief
        .receive(Rank(0), Message::StealAnswer(vec![]), later)
        .unwrap();
    thief
        .receive(Rank(2), Message::StealAnswer(vec![(0, task)]), later)
        .unwrap();
    assert_eq!(thief.next_task(), Some((0, task)));
    assert_eq!(thief.counts().late, 1);
}

/// The last task ends while its rank's own request is under way: nobody leaves before the answer.
#[test]
fn nobody_leaves_while_a_request_is_under_way() {
    let mut ranks: Vec<Machine> = (0..2)
        .map(|r| Machine::new(Rank(r), 2, &ScopeOptions::default()))
        .collect();
    for machine in &mut ranks {
        machine.group();
        machine.waits_in(0);
    }
    ranks[1].idle(Duration::ZERO);
    let (to, request) = ranks[1].outgoing().unwrap();
    assert_eq!(to, Rank(0));
    // Everything but the request is delivered until nothing moves.
    let deliver = |ranks: &mut Vec<Machine>| {
        loop {
            let mut moved = false;
            for from in 0..2 {
                while let Some((to, letter)) = ranks[from].outgoing() {
                    moved = true;
                    let now = Duration::ZERO;
                    ranks[to.index()]
                        .receive(Rank(from as u32), letter, now)
                        .unwrap();
                }
            }
            for machine in ranks.iter_mut() {
                if machine.is_exhausted(0) {
                    machine.body_ended();
                }
            }
            if !moved {
                return;
            }
        }
    };
    deliver(&mut ranks);
    assert!(ranks.iter().all(|m| m.is_exhausted(0) && !m.may_leave()));
    ranks[0].receive(Rank(1), request, Duration::ZERO).unwrap();
    deliver(&mut ranks);
    assert!(ranks.iter().all(Scheduler::may_leave));
}

#[test]
fn what_no_rank_would_send_is_refused() {
    let mut machine = Machine::new(Rank(1), 3, &ScopeOptions::default());
    machine.group();
    let now = Duration::ZERO;
    for letter in [
        Message::StealAnswer(vec![]),
        Message::Results(vec![(5, 1)]),
        Message::Report(1, message::Census::default()),
        Message::Drained,
        Message::Leave,
    ] {
        let error = machine.receive(Rank(2), letter.clone(), now);
        assert!(error.is_err(), "{letter:?}");
    }
}

#[test]
fn splits_keep_their_distance() {
    let options = ScopeOptions {
        low_water: 2,
        ..ScopeOptions::default()
    };
    let mut machine = Machine::new(Rank(0), 2, &options);
    machine.group();
    let at = Duration::from_micros;
    assert!(machine.wants_split(at(0)));
    assert!(!machine.wants_split(at(49)));
    assert!(machine.wants_split(at(50)));
    let task = Work {
        home: Rank(0),
        first: 0,
        size: 1,
    };
    machine.split_off(0, task);
    machine.split_off(0, task);
    assert!(!machine.wants_split(at(500)));
    let never = ScopeOptions {
        split: Split::Never,
        ..options
    };
    assert!(!Machine::new(Rank(0), 2, &never).wants_split(at(0)));
}
