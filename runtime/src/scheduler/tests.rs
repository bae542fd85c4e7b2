//! The scheduler on a simulated network: any delivery order, a virtual clock, no threads.
//!
//! Each scenario of PROTOCOL.md is a test of its name here.

mod exhaustive;
mod random;
mod world;

use std::collections::BTreeSet;
use std::panic;

use proptest::prelude::*;

use super::message::Bundle;
use super::*;
use crate::policy::{POLICIES, Policy, Split};

/// A task is a number of units of work; units above one are children to hyperfork.
type Machine = Scheduler<Range, u32>;
type Message = SchedulerMessage<Range, u32>;

#[derive(Clone, Copy, Debug, PartialEq)]
struct Range {
    /// Numbers of the subtree: `first..first + size`; every number is produced once as a result.
    first: u32,
    size: u32,
}

impl Work<u32> for Range {
    fn refused(&self, _rank: Rank, _why: BlockError) -> u32 {
        unreachable!("these tasks need no blocks")
    }
}

fn fresh(me: u32, ranks: u32, options: &ScopeOptions) -> Machine {
    Machine::new(Rank(me), ranks, options, &|rank| rank.0 / 2)
}

/// Tasks as the collective group 0 sends them.
fn bundle(tasks: Vec<Range>) -> Vec<Bundle<Range>> {
    vec![Bundle {
        path: vec![GroupId::Collective(0)],
        home: Rank(0),
        lease: 0,
        tasks,
    }]
}

const GROUP: GroupId = GroupId::Collective(0);

struct Network {
    ranks: Vec<Machine>,
    groups: Vec<Arc<Ancestry>>,
    /// Ordered links, as messages between two ranks keep their order.
    links: Vec<VecDeque<Message>>,
    running: Vec<Vec<(Membership, Range)>>,
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
        let mut machines: Vec<Machine> = (0..ranks).map(|r| fresh(r, ranks, options)).collect();
        Self {
            groups: machines.iter_mut().map(Machine::group).collect(),
            ranks: machines,
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
        while let Some((to, message)) = self.ranks[rank].outgoing() {
            self.links[rank * n + to.index()].push_back(message);
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
                let message = self.links[from * n + rank].pop_front();
                message.is_some_and(|message| {
                    self.ranks[rank]
                        .receive(Rank(from as u32), message, self.now)
                        .unwrap();
                    true
                })
            }
            1 => self.work(rank),
            2 => self.join(rank),
            _ => {
                let task = self.ranks[rank].next_task(None);
                let any = task.is_some();
                match task {
                    Some(task) => self.running[rank].push(task),
                    None if self.running[rank].is_empty() => {
                        self.ranks[rank].tick(self.now);
                        self.ranks[rank].idle(self.now, None);
                    }
                    None => {}
                }
                any
            }
        };
        self.post(rank);
        acted
    }

    /// A running task forks one half of what remains, or produces its number and ends.
    fn work(&mut self, rank: usize) -> bool {
        let Some((membership, task)) = self.running[rank].pop() else {
            return false;
        };
        let machine = &mut self.ranks[rank];
        machine.produced(&membership, task.first);
        let rest = task.size - 1;
        let left = rest / 2;
        for (first, size) in [(task.first + 1, left), (task.first + 1 + left, rest - left)] {
            if size > 0 {
                machine.fork(membership.clone(), Range { first, size });
            }
        }
        machine.finished(&membership);
        self.finished[rank] += 1;
        true
    }

    /// The body takes what is there, then waits; once the group is exhausted it ends.
    fn join(&mut self, rank: usize) -> bool {
        if self.joined[rank] {
            return false;
        }
        let machine = &mut self.ranks[rank];
        let group = &self.groups[rank];
        if let Some(result) = machine.next_result(group) {
            self.taken[rank].push(result);
            machine.goes_on();
            return true;
        }
        machine.waits_in(group.group());
        if machine.is_exhausted(group) {
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
                let membership = self.ranks[rank].membership(&self.groups[rank], None);
                self.ranks[rank].fork(membership, Range { first, size });
            }
            first += size;
        }
        for _ in 0..4_000_000 {
            self.step();
            if self.ranks.iter().all(Scheduler::may_leave) {
                break;
            }
            // Never early: a rank that has joined has all its results.
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
        // Messages that are still under way carry nothing: the next scope need not see it.
        for message in self.links.iter().flatten() {
            let idle = match message {
                Message::StealRequest(_) | Message::Lifeline(_) | Message::Exhausted(..) => true,
                Message::StealAnswer(bundles) => bundles.is_empty(),
                _ => false,
            };
            assert!(idle, "{message:?} outlived the scope");
        }
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
    fn no_task_is_lost_or_doubled_and_every_rank_leaves(
        sizes in prop::collection::vec(0u32..120, 1..9),
        policy in prop::sample::select(POLICIES),
        timeout in 1u64..2000,
        seed in any::<u64>(),
    ) {
        let options = ScopeOptions {
            policy: Policy { steal_timeout: Duration::from_micros(timeout), ..policy.1 },
            seed,
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
        policy: Policy::STATIC,
        ..ScopeOptions::default()
    };
    let mut network = Network::new(4, &options, 7);
    network.run(&[500, 0, 0, 20]);
    assert_eq!(network.finished, [500, 0, 0, 20]);
    assert!(network.ranks.iter().all(|m| m.counts().requests == 0));
}

/// A thief gave up waiting and asked another; the first answer still brings tasks, and they are
/// run.
#[test]
fn late_work_is_accepted() {
    let mut thief = fresh(1, 3, &ScopeOptions::default());
    thief.group();
    thief.waits_in(GROUP);
    let mut asked = Vec::new();
    let mut later = Duration::ZERO;
    while asked.len() < 2 || asked[0] == asked[1] {
        asked.clear();
        for _ in 0..2 {
            thief.idle(later, None);
            let Some((victim, Message::StealRequest(None))) = thief.outgoing() else {
                panic!("a thief asks");
            };
            asked.push(victim);
            later += Duration::from_millis(5);
        }
        if asked[0] == asked[1] {
            for _ in 0..2 {
                thief
                    .receive(asked[0], Message::StealAnswer(vec![]), later)
                    .unwrap();
            }
        }
    }
    let task = Range { first: 0, size: 1 };
    let late = thief.counts().late;
    thief
        .receive(asked[1], Message::StealAnswer(vec![]), later)
        .unwrap();
    thief
        .receive(asked[0], Message::StealAnswer(bundle(vec![task])), later)
        .unwrap();
    assert_eq!(thief.next_task(None).map(|(_, task)| task), Some(task));
    assert_eq!(thief.counts().late, late + 2);
}

/// A request is under way when the scope ends: nobody waits for its answer, and the answer brings
/// nothing.
#[test]
fn a_request_under_way_keeps_nobody() {
    let mut ranks: Vec<Machine> = (0..2)
        .map(|r| fresh(r, 2, &ScopeOptions::default()))
        .collect();
    let groups: Vec<Arc<Ancestry>> = ranks.iter_mut().map(Machine::group).collect();
    let now = Duration::ZERO;
    for machine in &mut ranks {
        machine.waits_in(GROUP);
    }
    ranks[1].idle(now, None);
    let (to, request) = ranks[1].outgoing().unwrap();
    assert_eq!(to, Rank(0));
    // Everything but requests is delivered until nothing moves.
    loop {
        let mut moved = false;
        for from in 0..2 {
            ranks[from].idle(now, None);
            while let Some((to, message)) = ranks[from].outgoing() {
                if matches!(message, Message::StealRequest(_)) {
                    continue;
                }
                moved = true;
                ranks[to.index()]
                    .receive(Rank(from as u32), message, now)
                    .unwrap();
            }
        }
        for (machine, group) in ranks.iter_mut().zip(&groups) {
            if machine.is_exhausted(group) {
                machine.body_ended();
            }
        }
        if !moved {
            break;
        }
    }
    assert!(ranks.iter().all(Scheduler::may_leave));
    ranks[0].receive(Rank(1), request, now).unwrap();
    assert_eq!(
        ranks[0].outgoing(),
        Some((Rank(1), Message::StealAnswer(vec![])))
    );
}

#[test]
fn messages_that_no_rank_would_send_are_refused() {
    let mut machine = fresh(1, 3, &ScopeOptions::default());
    machine.group();
    let now = Duration::ZERO;
    let far = GroupId::Collective(5000);
    let own = rooted(1, 3, None).group();
    let lease = Bundle {
        path: vec![own],
        home: Rank(2),
        lease: 7,
        tasks: vec![],
    };
    let messages = [
        Message::StealAnswer(vec![]),
        Message::Gift(bundle(vec![])).with_path(&[far]),
        Message::Gift(bundle(vec![])).with_path(&[GROUP, own]),
        Message::Gift(bundle(vec![])).with_path(&[]),
        Message::Gift(vec![lease]),
        Message::Results(vec![(far, 1)]),
        Message::Results(vec![(own, 1)]),
        Message::Returned { lease: 4, sent: 0 },
        Message::Cancel(far, Rank(0)),
        Message::Cancel(GROUP, Rank(99)),
        Message::Cancel(rooted(2, 3, None).group(), Rank(2)),
        Message::Wave(1),
        Message::Exhausted(vec![77], false, vec![]),
        Message::Done(message::DoneNotice::default()),
        Message::Report(1, message::Census::default(), vec![]),
    ];
    for message in messages {
        let error = machine.receive(Rank(2), message.clone(), now);
        assert!(error.is_err(), "{message:?}");
    }
}

/// Neither a group far ahead, wherever it stands in a notice, nor anything behind the last notice.
#[test]
fn notices_that_no_rank_would_send_are_refused() {
    let still = ScopeOptions {
        policy: Policy::STATIC,
        ..ScopeOptions::default()
    };
    let mut machine = fresh(0, 3, &still);
    machine.group();
    let notice = |groups: &[u32], over| {
        Message::Done(message::DoneNotice {
            groups: groups.to_vec(),
            over,
            ..message::DoneNotice::default()
        })
    };
    let mut hear = |message| machine.receive(Rank(1), message, Duration::ZERO);
    assert!(hear(notice(&[u32::MAX, 0], false)).is_err());
    assert!(hear(notice(&[0], true)).is_ok());
    assert!(hear(notice(&[0], false)).is_err());
}

impl Message {
    /// Moves the tasks to another group.
    fn with_path(mut self, path: &[GroupId]) -> Self {
        if let Self::Gift(bundles) = &mut self {
            bundles[0].path = path.to_vec();
        }
        self
    }
}

#[test]
fn splits_keep_their_distance() {
    let mut options = ScopeOptions::default();
    options.policy.low_water = 2;
    let mut machine = fresh(0, 2, &options);
    let group = machine.group();
    let at = Duration::from_micros;
    assert!(machine.wants_split(at(0)));
    assert!(!machine.wants_split(at(49)));
    assert!(machine.wants_split(at(50)));
    let task = Range { first: 0, size: 1 };
    let membership = machine.membership(&group, None);
    machine.split_off(&membership, task);
    machine.split_off(&membership, task);
    assert!(!machine.wants_split(at(500)));
    options.policy.split = Split::NEVER;
    assert!(!fresh(0, 2, &options).wants_split(at(0)));
}

/// A rooted group as a driver makes one: of a body, or of a task of `parent`.
fn rooted(home: u32, number: u64, parent: Option<&Arc<Ancestry>>) -> Arc<Ancestry> {
    let home = Rank(home);
    Ancestry::new(GroupId::Rooted { home, number }, parent.cloned())
}

/// A worker beside another begins at the other end of what the body forked, and takes the newest of
/// what tasks did.
#[test]
fn a_worker_beside_begins_at_the_other_end() {
    let mut machine = fresh(0, 1, &ScopeOptions::default());
    let group = rooted(0, 0, None);
    let membership = machine.membership(&group, None);
    let task = |first| Range { first, size: 1 };
    for first in 0..3 {
        machine.fork(membership.clone(), task(first));
    }
    machine.waits_in(group.group());
    for first in 3..5 {
        machine.fork(membership.clone(), task(first));
    }
    let mut far = || machine.far_task().map(|(_, task)| task.first);
    assert_eq!([far(), far(), far()], [Some(0), Some(1), Some(2)]);
    assert_eq!([far(), far(), far()], [Some(4), Some(3), None]);
}

/// However many groups are dropped with results in them, the scope ends.
#[test]
fn a_group_nobody_joins_still_ends() {
    let mut machine = fresh(0, 1, &ScopeOptions::default());
    for number in 0..300 {
        let group = rooted(0, number, None);
        let membership = machine.membership(&group, None);
        machine.fork(membership.clone(), Range { first: 0, size: 1 });
        let (membership, task) = machine.next_task(None).unwrap();
        machine.produced(&membership, task.first);
        machine.finished(&membership);
        group.abandon();
    }
    machine.body_ended();
    machine.idle(Duration::ZERO, None);
    assert!(machine.may_leave(), "{}", machine.describe());
}

/// It is dropped if it is set down after its group was cancelled, and if its thief has it.
#[test]
fn a_cancelled_task_does_not_come_back() {
    let task = Range { first: 0, size: 1 };
    let mut machine = fresh(0, 2, &ScopeOptions::default());
    let group = rooted(0, 0, None);
    let membership = machine.membership(&group, None);
    for _ in 0..3 {
        machine.fork(membership.clone(), task);
    }
    let (running, _) = machine.next_task(None).unwrap();
    let request = Message::StealRequest(None);
    machine.receive(Rank(1), request, Duration::ZERO).unwrap();
    let Some((_, Message::StealAnswer(lent))) = machine.outgoing() else {
        panic!("a request is answered");
    };
    machine.cancel(&group);
    machine.put_back(running, task);
    assert!(machine.next_task(None).is_none());
    let lease = lent[0].lease;
    let told = std::iter::from_fn(|| machine.outgoing()).collect::<Vec<_>>();
    assert_eq!(told, [(Rank(1), Message::CancelLease(lease))]);
    assert!(!machine.is_exhausted(&group), "{}", machine.describe());
    let returned = Message::Returned { lease, sent: 0 };
    machine.receive(Rank(1), returned, Duration::ZERO).unwrap();
    assert!(machine.next_task(None).is_none());
    assert!(machine.is_exhausted(&group), "{}", machine.describe());
}

/// The body may return a group that it holds, with results in it.
#[test]
fn a_group_that_outlives_its_body_keeps_nobody() {
    let mut machine = fresh(0, 1, &ScopeOptions::default());
    let group = rooted(0, 0, None);
    let membership = machine.membership(&group, None);
    machine.fork(membership.clone(), Range { first: 0, size: 1 });
    let (membership, task) = machine.next_task(None).unwrap();
    machine.produced(&membership, task.first);
    machine.finished(&membership);
    machine.body_ended();
    machine.idle(Duration::ZERO, None);
    assert!(machine.may_leave(), "{}", machine.describe());
    drop(group);
}

/// Three ranks, and tasks of a rooted group of rank 0 that rank 1 has stolen, and rank 2 from rank
/// 1.
fn thiefs_thief(options: &ScopeOptions) -> (Vec<Machine>, Arc<Ancestry>) {
    let now = Duration::ZERO;
    let mut ranks: Vec<Machine> = (0..3).map(|r| fresh(r, 3, options)).collect();
    let group = rooted(0, 0, None);
    let membership = ranks[0].membership(&group, None);
    for first in 0..7 {
        ranks[0].fork(membership.clone(), Range { first, size: 1 });
    }
    for machine in &mut ranks[1..] {
        machine.body_ended();
    }
    for (thief, victim) in [(1, 0), (2, 1)] {
        let request = Message::StealRequest(None);
        let sender = Rank(thief as u32);
        ranks[victim].receive(sender, request, now).unwrap();
        let (_, answer) = ranks[victim].outgoing().unwrap();
        let Message::StealAnswer(tasks) = answer else {
            panic!("a request is answered");
        };
        let gift = Message::Gift(tasks);
        ranks[thief]
            .receive(Rank(victim as u32), gift, now)
            .unwrap();
    }
    (ranks, group)
}

/// Delivers what the ranks have to say until they fall silent.
fn converse(ranks: &mut [Machine]) {
    let mut silent = false;
    while !silent {
        silent = true;
        for from in 0..ranks.len() {
            while let Some((to, message)) = ranks[from].outgoing() {
                silent = false;
                let sender = Rank(from as u32);
                let machine = &mut ranks[to.index()];
                machine.receive(sender, message, Duration::ZERO).unwrap();
            }
        }
    }
}

#[test]
fn a_cancelled_lease_is_told_to_the_thiefs_thief() {
    let (mut ranks, group) = thiefs_thief(&ScopeOptions::default());
    assert_eq!(ranks[2].counts().tasks_in, 1);
    ranks[0].cancel(&group);
    converse(&mut ranks);
    assert!(ranks[2].next_task(None).is_none());
    assert!(ranks[0].is_exhausted(&group), "{}", ranks[0].describe());
}

#[test]
fn a_thief_may_cancel_the_group_of_its_task() {
    let (mut ranks, group) = thiefs_thief(&ScopeOptions::default());
    let (membership, _) = ranks[2].next_task(None).unwrap();
    ranks[2].cancel(&Arc::clone(membership.ancestry()));
    ranks[2].finished(&membership);
    converse(&mut ranks);
    assert!(ranks.iter_mut().all(|m| m.next_task(None).is_none()));
    assert!(ranks[0].is_exhausted(&group), "{}", ranks[0].describe());
}

/// Each of two ranks waits in a join and has what the other waits for: it may not run that, and so
/// gives it away, though its worker has nothing else to do.
#[test]
fn a_blocked_join_helps_only_its_own_descendants() {
    let now = Duration::ZERO;
    let mut ranks: Vec<Machine> = (0..2)
        .map(|r| fresh(r, 2, &ScopeOptions::default()))
        .collect();
    let mut groups = Vec::new();
    for machine in &mut ranks {
        let ancestry = machine.group();
        let membership = machine.membership(&ancestry, None);
        machine.fork(membership.clone(), Range { first: 0, size: 1 });
        machine.body_ended();
        let (outer, _) = machine.next_task(None).unwrap();
        let group = rooted(machine.me.0, 0, Some(&ancestry));
        let membership = machine.membership(&group, Some(&outer));
        for first in 1..3 {
            machine.fork(membership.clone(), Range { first, size: 1 });
        }
        machine.begins_to_wait();
        groups.push((group, outer));
    }
    // One child of each is on its way to the other, late answers both; the other child ends.
    let mut lent = Vec::new();
    for (machine, (group, _)) in ranks.iter_mut().zip(&groups) {
        while machine.outgoing().is_some() {}
        let thief = Rank(1 - machine.me.0);
        let request = Message::StealRequest(None);
        machine.receive(thief, request, now).unwrap();
        let Some((_, Message::StealAnswer(tasks))) = machine.outgoing() else {
            panic!("a request is answered");
        };
        lent.push(tasks);
        let (membership, _) = machine.next_task(Some(group.group())).unwrap();
        machine.finished(&membership);
    }
    for (from, bundles) in lent.into_iter().enumerate() {
        let sender = Rank(from as u32);
        let gift = Message::Gift(bundles);
        ranks[1 - from].receive(sender, gift, now).unwrap();
    }
    for (machine, (group, _)) in ranks.iter_mut().zip(&groups) {
        let within = Some(group.group());
        assert!(machine.next_task(within).is_none());
        machine.idle(now, within);
    }
    converse(&mut ranks);
    for (machine, (group, outer)) in ranks.iter_mut().zip(&groups) {
        let (membership, _) = machine
            .next_task(Some(group.group()))
            .expect("its own task");
        machine.finished(&membership);
        machine.ends_waiting();
        machine.finished(outer);
    }
    converse(&mut ranks);
    for (machine, (group, _)) in ranks.iter_mut().zip(&groups) {
        assert!(machine.is_exhausted(group), "{}", machine.describe());
    }
}

/// A rank that waited for tasks of one group to be sent, and now wants those of another, says so.
#[test]
fn lifelines_are_told_what_is_wanted_now() {
    let options = ScopeOptions {
        policy: Policy::LIFELINES,
        ..ScopeOptions::default()
    };
    let mut machine = fresh(1, 2, &options);
    machine.group();
    let mut told = Vec::new();
    for within in [Some(GROUP), None] {
        for turn in 0..20 {
            let now = Duration::from_millis(turn);
            machine.idle(now, within);
            while let Some((to, message)) = machine.outgoing() {
                match message {
                    Message::StealRequest(_) => {
                        let answer = Message::StealAnswer(vec![]);
                        machine.receive(to, answer, now).unwrap();
                    }
                    other => told.push(other),
                }
            }
        }
    }
    let wanted = [Some(GROUP), None].map(Message::Lifeline);
    assert_eq!(told, wanted);
}

/// A rank that waits for a child finds it with its thief's thief, though the thief has nothing.
#[test]
fn a_blocked_join_asks_others_than_its_thieves() {
    let (mut ranks, group) = thiefs_thief(&ScopeOptions::default());
    let mut asked = BTreeSet::new();
    for turn in 0..100 {
        let now = Duration::from_millis(turn);
        while ranks[0].next_task(None).is_some() {}
        ranks[0].idle(now, Some(group.group()));
        while let Some((to, _)) = ranks[0].outgoing() {
            asked.insert(to);
            let refusal = Message::StealAnswer(vec![]);
            ranks[0].receive(to, refusal, now).unwrap();
        }
    }
    assert_eq!(asked, [Rank(1), Rank(2)].into());
}

/// And the other way round.
#[test]
fn every_scenario_of_the_protocol_is_a_test() {
    let protocol = include_str!("../../PROTOCOL.md");
    let (_, rest) = protocol.split_once("## Scenarios\n").unwrap();
    let scenarios = rest.split("\n## ").next().unwrap();
    let bullets = scenarios.lines().filter(|text| text.starts_with("* "));
    let heads = bullets.filter_map(|text| text.split_once(':'));
    let words = |head: &'static str| head.split('`').skip(1).step_by(2);
    let named: BTreeSet<&str> = heads
        .flat_map(|(head, _)| words(head))
        .filter(|name| !name.contains('/'))
        .collect();
    let sources = [
        include_str!("tests.rs"),
        include_str!("tests/exhaustive.rs"),
        include_str!("tests/random.rs"),
    ];
    let mut tests = BTreeSet::new();
    for source in sources {
        for (_, test) in source.split("#[test]\n").enumerate().skip(1) {
            let name = test.split_once("fn ").unwrap().1;
            tests.insert(name.split_once('(').unwrap().0);
        }
    }
    tests.remove("every_scenario_of_the_protocol_is_a_test");
    assert_eq!(named, tests);
}
