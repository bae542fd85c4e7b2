//! Blocks on a simulated network: ordered links, any order among them.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use proptest::prelude::*;

use super::*;

type Bytes = Arc<[u8]>;
type Machine = Blocks<Bytes>;
type Message = BlockMessage<Bytes>;

const BOUND: usize = 40;
const IDS: u64 = 3;

fn name(home: u32, id: u64, version: u32) -> BlockName {
    BlockName {
        home: Rank(home),
        id,
        version,
    }
}

/// The only right bytes of a block; some are larger than the bound.
fn bytes(name: BlockName) -> Bytes {
    let key = name.home.0 * 100 + name.id as u32 * 10 + name.version;
    let size = 4 + (key as usize * 7) % (BOUND + 8);
    let mut bytes = key.to_le_bytes().to_vec();
    bytes.resize(size, name.version as u8);
    bytes.into()
}

fn size_of(bytes: &Bytes) -> usize {
    bytes.len()
}

#[derive(Debug)]
struct Network {
    ranks: Vec<Machine>,
    links: Vec<VecDeque<Message>>,
    random: u64,
    /// Wants that are coming.
    waiting: Vec<BTreeSet<(BlockName, Base)>>,
    published: BTreeSet<BlockName>,
    /// Held blocks that were here: they must stay.
    kept: Vec<BTreeSet<BlockName>>,
    /// The last group in whose join each body has waited.
    joined: Vec<Option<Base>>,
    arrived: usize,
    refused: usize,
}

impl Network {
    fn new(ranks: u32, seed: u64) -> Self {
        let n = ranks as usize;
        Self {
            ranks: (0..ranks)
                .map(|r| Machine::new(Rank(r), ranks, BOUND))
                .collect(),
            links: vec![VecDeque::new(); n * n],
            random: seed | 1,
            waiting: vec![BTreeSet::new(); n],
            published: BTreeSet::new(),
            kept: vec![BTreeSet::new(); n],
            joined: vec![None; n],
            arrived: 0,
            refused: 0,
        }
    }

    fn draw(&mut self, below: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 20) as usize % below
    }

    fn post(&mut self, from: usize, out: Vec<(Rank, Message)>) {
        for (to, message) in out {
            assert_ne!(to.index(), from, "a message to itself: {message:?}");
            let n = self.ranks.len();
            self.links[from * n + to.index()].push_back(message);
        }
    }

    fn publish(&mut self, rank: usize, id: u64, version: u32) -> Result<BlockName, BlockError> {
        let block = name(rank as u32, id, version);
        let data = bytes(block);
        let mut out = Vec::new();
        let size = data.len();
        let (named, events) = self.ranks[rank].publish(id, version, data, size, &mut out)?;
        assert_eq!(named, block);
        self.published.insert(block);
        self.happened(rank, events);
        self.post(rank, out);
        Ok(named)
    }

    fn want(&mut self, rank: usize, block: BlockName, group: Base, hint: Option<Rank>) -> Want {
        let mut out = Vec::new();
        let want = self.ranks[rank].want(block, group, hint, &mut out);
        assert!(out.len() <= 1);
        match want {
            Want::Here => self.is_here(rank, block),
            Want::Coming => {
                self.waiting[rank].insert((block, group));
            }
            Want::Refused(why) => self.check_refusal(block, group, why),
        }
        self.post(rank, out);
        self.check(rank);
        want
    }

    fn publisher_is(&mut self, rank: usize, body: Publisher) {
        let mut out = Vec::new();
        self.joined[rank] = match body {
            Publisher::Active => self.joined[rank],
            Publisher::Waits(group) => Some(group),
            Publisher::Ended => Some(Base::MAX),
        };
        let events = self.ranks[rank].publisher_is(body, &mut out);
        self.happened(rank, events);
        self.post(rank, out);
    }

    /// The next message of one link; false if there is none.
    fn deliver(&mut self, from: usize, to: usize) -> bool {
        let n = self.ranks.len();
        let Some(message) = self.links[from * n + to].pop_front() else {
            return false;
        };
        let mut out = Vec::new();
        let events = self.ranks[to]
            .receive(Rank(from as u32), message, size_of, &mut out)
            .unwrap();
        self.happened(to, events);
        self.post(to, out);
        true
    }

    /// Each event must be about something that was waited for, and be right.
    fn happened(&mut self, rank: usize, events: Vec<Event>) {
        for event in events {
            match event {
                Event::Arrived(block) => {
                    let before = self.waiting[rank].len();
                    self.waiting[rank].retain(|&(waited, _)| waited != block);
                    assert!(self.waiting[rank].len() < before, "{block} arrived twice");
                    assert!(self.published.contains(&block));
                    self.is_here(rank, block);
                    self.arrived += 1;
                }
                Event::Refused(block, group, why) => {
                    assert!(
                        self.waiting[rank].remove(&(block, group)),
                        "nobody waits for {block}"
                    );
                    self.check_refusal(block, group, why);
                    self.refused += 1;
                }
            }
        }
        self.check(rank);
    }

    fn is_here(&mut self, rank: usize, block: BlockName) {
        assert_eq!(self.ranks[rank].get(&block), Some(bytes(block)));
        if self.ranks[rank].holds.contains_key(&block) {
            self.kept[rank].insert(block);
        }
    }

    fn check_refusal(&self, block: BlockName, group: Base, why: BlockError) {
        assert_eq!(why.name(), block);
        let home = self.ranks.get(block.home.index());
        let has = |version| {
            self.published
                .contains(&name(block.home.0, block.id, version))
        };
        let waits = || self.joined[block.home.index()] >= Some(group);
        match why {
            BlockError::Unpublished { .. } => assert!(waits()),
            BlockError::Early { current, .. } => {
                assert!(current < block.version && has(current) && waits());
            }
            BlockError::Stale { current, .. } => assert!(current > block.version && has(current)),
            BlockError::Nowhere { .. } => assert!(home.is_none()),
            BlockError::Republished { .. } | BlockError::TooLong { .. } => {
                panic!("nobody published")
            }
        }
    }

    /// Checks the conditions that hold at all times.
    fn check(&self, rank: usize) {
        let machine = &self.ranks[rank];
        let sizes = machine.copies.values().map(|copy| copy.size);
        assert_eq!(machine.copied, sizes.sum::<usize>());
        let mut idle = 0;
        for (block, copy) in &machine.copies {
            assert_eq!(copy.bytes.len(), copy.size);
            let is_idle = machine.idle.get(&copy.used) == Some(block);
            assert_eq!(is_idle, !machine.holds.contains_key(block));
            if is_idle && machine.fresh != Some(*block) {
                idle += 1;
                assert!(copy.size <= BOUND);
            }
        }
        let fresh = machine.fresh.and_then(|name| machine.oversized(&name));
        // Over the bound there is nothing but what is held, and what has just come.
        assert!(machine.copied - fresh.unwrap_or(0) <= BOUND || idle == 0);
    }

    fn step(&mut self, holds: &mut [Vec<BlockName>]) {
        let n = self.ranks.len();
        let rank = self.draw(n);
        match self.draw(10) {
            0 if self.ranks[rank].body == Publisher::Active => {
                let (id, version) = (self.draw(IDS as usize) as u64, self.draw(4) as u32);
                let block = name(rank as u32, id, version);
                let newest =
                    (version..4).all(|v| !self.published.contains(&name(rank as u32, id, v)));
                let published = self.publish(rank, id, version);
                assert_eq!(published.is_ok(), newest, "{block}");
            }
            1 | 2 => {
                let home = self.draw(n);
                let id = self.draw(IDS as usize) as u64;
                let block = name(home as u32, id, self.draw(4) as u32);
                let hint = self.draw(n + 1);
                let hint = (hint < n).then_some(Rank(hint as u32));
                let group = self.draw(3) as Base;
                if self.draw(2) == 0 && holds[rank].len() < 4 {
                    self.ranks[rank].hold(&[block]);
                    holds[rank].push(block);
                }
                self.want(rank, block, group, hint);
            }
            3 => {
                let held = std::mem::take(&mut holds[rank]);
                // A task lets its blocks go when all are answered.
                let waits = |block| {
                    self.waiting[rank]
                        .iter()
                        .any(|&(waited, _)| waited == block)
                };
                if held.iter().any(|&block| waits(block)) {
                    holds[rank] = held;
                } else {
                    for block in std::mem::take(&mut self.kept[rank]) {
                        self.is_here(rank, block);
                    }
                    self.kept[rank].clear();
                    self.ranks[rank].release(&held);
                    self.check(rank);
                }
            }
            4 if self.draw(4) == 0 => {
                let body = self.ranks[rank].body;
                let goes_on = self.draw(2) == 0;
                let body = match body {
                    Publisher::Active => Publisher::Waits(0),
                    // Any of these may be the next thing it hears, or not.
                    Publisher::Waits(0) if goes_on => Publisher::Active,
                    Publisher::Waits(group) if group < 2 => Publisher::Waits(group + 1),
                    _ => Publisher::Ended,
                };
                self.publisher_is(rank, body);
            }
            _ => {
                let from = self.draw(n);
                self.deliver(from, rank);
            }
        }
    }

    /// All bodies end and all messages arrive.
    fn settle(&mut self) {
        let n = self.ranks.len();
        for rank in 0..n {
            self.publisher_is(rank, Publisher::Ended);
        }
        while self.links.iter().any(|link| !link.is_empty()) {
            let (from, to) = (self.draw(n), self.draw(n));
            self.deliver(from, to);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_want_ends_in_the_right_bytes_or_the_right_refusal(
        ranks in 1u32..6,
        seed: u64,
        steps in 50usize..1500,
    ) {
        let mut net = Network::new(ranks, seed);
        let mut holds = vec![Vec::new(); ranks as usize];
        for _ in 0..steps {
            net.step(&mut holds);
        }
        net.settle();
        for (rank, held) in holds.iter().enumerate() {
            prop_assert!(net.waiting[rank].is_empty(), "{:?}", net.waiting[rank]);
            let machine = &mut net.ranks[rank];
            prop_assert!(machine.is_quiet());
            prop_assert!(machine.superseded.is_empty());
            machine.release(held);
            machine.trim();
            prop_assert!(machine.copied <= BOUND && machine.holds.is_empty());
        }
    }
}

/// A network in which rank 1 has a copy of a block of rank 0.
fn with_a_copy(ranks: u32) -> (Network, BlockName) {
    let mut net = Network::new(ranks, 1);
    let block = net.publish(0, 2, 1).unwrap();
    assert_eq!(net.want(1, block, 0, None), Want::Coming);
    net.settle();
    assert_eq!(net.want(1, block, 0, None), Want::Here);
    (net, block)
}

fn counts(net: &Network, rank: usize) -> BlockCounts {
    net.ranks[rank].counts()
}

#[test]
fn the_rank_a_task_was_stolen_from_serves_without_the_home() {
    let (mut net, block) = with_a_copy(3);
    assert_eq!(net.want(2, block, 0, Some(Rank(1))), Want::Coming);
    net.settle();
    assert_eq!(net.arrived, 2);
    assert_eq!(counts(&net, 0).served, 1);
    assert_eq!(counts(&net, 1).served, 1);
    assert_eq!(counts(&net, 1).hits, 1);
    assert_eq!(counts(&net, 2).bytes_in, bytes(block).len() as u64);
}

#[test]
fn a_fetch_at_a_rank_without_a_copy_is_passed_on() {
    let mut net = Network::new(3, 1);
    let block = net.publish(0, 2, 1).unwrap();
    net.want(2, block, 0, Some(Rank(1)));
    net.settle();
    assert_eq!(counts(&net, 1).forwarded, 1);
    assert_eq!((net.arrived, counts(&net, 0).served), (1, 1));
}

#[test]
fn many_tasks_share_one_fetch() {
    let mut net = Network::new(2, 1);
    let block = net.publish(0, 0, 0).unwrap();
    for _ in 0..5 {
        assert_eq!(net.want(1, block, 0, None), Want::Coming);
    }
    net.settle();
    assert_eq!(counts(&net, 1).fetches, 1);
    assert_eq!(counts(&net, 0).served, 1);
}

#[test]
fn a_stale_version_is_refused_at_home_and_everywhere_it_is_not_cached() {
    let (mut net, old) = with_a_copy(3);
    let new = net.publish(0, old.id, 4).unwrap();
    let stale = BlockError::Stale {
        name: old,
        current: 4,
    };
    assert_eq!(net.want(0, old, 0, None), Want::Refused(stale));
    net.want(2, old, 0, None);
    net.settle();
    assert_eq!(net.refused, 1);
    assert_eq!(net.want(1, old, 0, None), Want::Here);
    assert_eq!(net.want(0, new, 0, None), Want::Here);
    assert_eq!(
        stale.to_string(),
        "block 2 of rank 0, version 1, is stale, rank 0 has replaced it by version 4; name that version, \
         or publish the new one under another id while tasks read the old one"
    );
}

#[test]
fn a_version_is_published_once() {
    let mut net = Network::new(1, 1);
    net.publish(0, 0, 3).unwrap();
    for version in [2, 3] {
        let refused = BlockError::Republished {
            name: name(0, 0, version),
            current: 3,
        };
        assert_eq!(net.publish(0, 0, version), Err(refused));
    }
}

#[test]
fn a_block_not_yet_published_is_waited_for_until_the_body_joins() {
    let mut net = Network::new(2, 1);
    let (soon, never, early) = (name(0, 0, 0), name(0, 1, 0), name(0, 0, 1));
    for block in [soon, never, early] {
        for rank in [0, 1] {
            assert_eq!(net.want(rank, block, 0, None), Want::Coming);
        }
    }
    while net.deliver(1, 0) {}
    assert!(!net.ranks[0].is_quiet());
    net.publish(0, 0, 0).unwrap();
    while net.deliver(0, 1) {}
    assert_eq!((net.arrived, net.refused), (2, 0));
    net.publisher_is(0, Publisher::Waits(0));
    while net.deliver(0, 1) {}
    assert_eq!((net.arrived, net.refused), (2, 4));
    assert!(net.ranks.iter().all(Blocks::is_quiet));
    // And from now on at once.
    let why = BlockError::Unpublished { name: never };
    assert_eq!(net.want(0, never, 0, None), Want::Refused(why));
    let why = BlockError::Early {
        name: early,
        current: 0,
    };
    assert_eq!(net.want(0, early, 0, None), Want::Refused(why));
}

/// The reader's rank has heard that the first group is exhausted, the home has not.
#[test]
fn a_home_that_is_behind_does_not_refuse_what_it_will_publish() {
    let mut net = Network::new(2, 1);
    let next = name(0, 0, 1);
    net.publish(0, 0, 0).unwrap();
    net.publisher_is(0, Publisher::Waits(0));
    net.want(1, next, 1, None);
    while net.deliver(1, 0) {}
    assert_eq!(net.refused, 0);
    net.publish(0, 0, 1).unwrap();
    while net.deliver(0, 1) {}
    assert_eq!((net.arrived, net.refused), (1, 0));
}

/// A block that is refused to a task of one group may still come for a task of a later one.
#[test]
fn groups_are_refused_apart() {
    let mut net = Network::new(2, 1);
    let block = name(0, 0, 0);
    net.want(1, block, 0, None);
    net.want(1, block, 1, None);
    while net.deliver(1, 0) {}
    net.publisher_is(0, Publisher::Waits(0));
    while net.deliver(0, 1) {}
    assert_eq!((net.arrived, net.refused), (0, 1));
    assert_eq!(net.waiting[1], BTreeSet::from([(block, 1)]));
    net.publish(0, 0, 0).unwrap();
    while net.deliver(0, 1) {}
    assert_eq!((net.arrived, net.refused), (1, 1));
}

#[test]
fn the_least_recently_used_copy_goes_first_and_held_ones_stay() {
    let mut machine: Blocks<u8> = Blocks::new(Rank(1), 2, 30);
    let mut out = Vec::new();
    let mut fetch = |machine: &mut Blocks<u8>, id, size: usize| {
        let block = name(0, id, 0);
        let number = machine.next_number;
        assert_eq!(machine.want(block, 0, None, &mut out), Want::Coming);
        let delivery = BlockMessage::Delivery {
            name: block,
            number,
            bytes: id as u8,
        };
        let events = machine.receive(Rank(0), delivery, |_| size, &mut out);
        assert_eq!(events, Ok(vec![Event::Arrived(block)]));
        block
    };
    let here = |machine: &Blocks<u8>| -> Vec<u64> {
        machine.copies.keys().map(|block| block.id).collect()
    };
    let first = fetch(&mut machine, 1, 10);
    let second = fetch(&mut machine, 2, 10);
    fetch(&mut machine, 3, 10);
    assert_eq!(machine.get(&first), Some(1));
    fetch(&mut machine, 4, 10);
    assert_eq!(here(&machine), [1, 3, 4]);
    assert_eq!(machine.get(&second), None);

    machine.hold(&[first, second]);
    let second = fetch(&mut machine, 2, 25);
    assert_eq!(here(&machine), [1, 2]);
    fetch(&mut machine, 5, 10);
    assert_eq!(here(&machine), [1, 2, 5]);
    machine.trim();
    assert_eq!(here(&machine), [1, 2]);
    machine.release(&[first, second]);
    assert_eq!(here(&machine), [2]);

    // One that never fits is handed over, and drops nothing else.
    let huge = fetch(&mut machine, 6, 31);
    assert_eq!(machine.get(&huge), Some(6));
    machine.trim();
    assert_eq!(here(&machine), [2]);
    assert_eq!(machine.counts().dropped, 6);
    assert_eq!(machine.counts().bytes_held_peak, 56);
}

#[test]
fn a_replaced_block_stays_with_the_tasks_that_hold_it() {
    let mut net = Network::new(1, 1);
    let old = net.publish(0, 0, 0).unwrap();
    net.ranks[0].hold(&[old]);
    net.publish(0, 0, 1).unwrap();
    assert_eq!(net.ranks[0].get(&old), Some(bytes(old)));
    net.ranks[0].release(&[old]);
    assert_eq!(net.ranks[0].get(&old), None);
}

#[test]
fn block_messages_that_no_rank_would_send_are_refused() {
    let (mut net, block) = with_a_copy(3);
    let mut receive = |rank: usize, from: u32, message| {
        let mut out = Vec::new();
        let outcome = net.ranks[rank].receive(Rank(from), message, size_of, &mut out);
        assert_eq!(out, []);
        outcome.unwrap_err()
    };
    let delivery = |number| BlockMessage::Delivery {
        name: block,
        number,
        bytes: bytes(block),
    };
    let asked = "an answer about block 2 of rank 0, version 1, nobody asked for";
    assert_eq!(receive(1, 0, delivery(0)), asked);
    assert_eq!(receive(2, 0, delivery(7)), asked);
    let why = BlockError::Unpublished {
        name: name(0, 0, 0),
    };
    let refusal = BlockMessage::Refusal {
        name: block,
        number: 0,
        why,
    };
    receive(1, 0, refusal);
    let fetch = |name, reader| BlockMessage::Fetch {
        name,
        group: 0,
        reader: Rank(reader),
        number: 0,
    };
    receive(1, 2, fetch(block, 1));
    receive(1, 2, fetch(block, 3));
    receive(1, 2, fetch(block, 0));
    receive(1, 2, fetch(name(9, 0, 0), 2));
    let nowhere = BlockError::Nowhere {
        name: name(9, 0, 0),
        ranks: 3,
    };
    assert_eq!(net.want(1, name(9, 0, 0), 0, None), Want::Refused(nowhere));
    let next = name(0, 0, 0);
    net.want(1, next, 0, None);
    let answer = BlockMessage::Delivery {
        name: next,
        number: 1,
        bytes: bytes(next),
    };
    let mut out = Vec::new();
    let outcome = net.ranks[1].receive(Rank(2), answer, size_of, &mut out);
    assert!(outcome.unwrap_err().contains("not asked"));
}
