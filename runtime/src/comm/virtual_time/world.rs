//! All virtual ranks at once: clocks, messages under way, and who goes on next.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use super::super::mailbox::Mailbox;
use super::super::{CommError, Message, Rank, Tag};
use super::{Computation, Fault, Network, VirtualOptions};

/// What looking for a message costs that is not there: a loop that only looks gets on in time.
const POLL: u64 = 20;

/// Virtual time in ns.
type Time = u64;

/// What a rank is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It can go on at this time.
    Ready(Time),
    /// It goes on at this time, or when a message arrives.
    Waits(Time),
    /// It goes on when this message arrives.
    Needs(Rank, Tag),
    /// It runs.
    Runs,
    /// It has ended.
    Ended,
}

/// A message on its way; ordered by arrival, then by the order in which messages were sent.
#[derive(Debug)]
struct Arrival {
    at: Time,
    sequence: u64,
    tag: Tag,
    message: Message,
}

impl PartialEq for Arrival {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Arrival {}

impl PartialOrd for Arrival {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Arrival {
    /// The earliest is the greatest, as heaps like it.
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (other.at, other.sequence).cmp(&(self.at, self.sequence))
    }
}

#[derive(Debug)]
struct Place {
    clock: Time,
    state: State,
    inbox: BinaryHeap<Arrival>,
    mailbox: Mailbox,
    /// When it may send the next message.
    free: Time,
    /// How many times slower than others it computes.
    slowness: f64,
    dies_at: Time,
    /// Told of the job's end at this time.
    abort_at: Time,
}

/// All ranks of a run.
#[derive(Debug)]
pub(super) struct World {
    network: Network,
    computation: Computation,
    lookahead: Time,
    jitter: f64,
    late: Option<(f64, Duration)>,
    stalls: Vec<(Rank, Time, Time)>,
    random: u64,
    places: Vec<Place>,
    /// When ranks go on; entries that a rank's state contradicts are stale.
    queue: BinaryHeap<Reverse<(Time, u32)>>,
    /// Newest arrival of each stream, where delays differ.
    streams: BTreeMap<(u32, u32, u16), Time>,
    sequence: u64,
    aborted: Option<CommError>,
    resumed: Instant,
    record: bool,
    pub(super) messages: u64,
    pub(super) bytes: u64,
    pub(super) log: Vec<String>,
    pub(super) dump: Option<String>,
}

impl World {
    #[expect(clippy::disallowed_methods, reason = "a driver reads the clock")]
    pub(super) fn new(ranks: usize, options: &VirtualOptions) -> Self {
        let mut world = Self {
            network: options.network,
            computation: options.computation,
            lookahead: nanos(options.network.lookahead()),
            jitter: options.jitter.max(0.0),
            late: None,
            stalls: Vec::new(),
            random: options.seed.wrapping_mul(2).wrapping_add(1),
            places: (0..ranks).map(|_| Place::new()).collect(),
            queue: (0..ranks as u32).map(|rank| Reverse((0, rank))).collect(),
            streams: BTreeMap::new(),
            sequence: 0,
            aborted: None,
            resumed: Instant::now(),
            record: options.record,
            messages: 0,
            bytes: 0,
            log: Vec::new(),
            dump: None,
        };
        for fault in &options.faults {
            world.arrange(*fault);
        }
        world
    }

    fn arrange(&mut self, fault: Fault) {
        match fault {
            Fault::Slow { rank, factor } => {
                if let Some(place) = self.places.get_mut(rank.index()) {
                    place.slowness = factor;
                }
            }
            Fault::Stall { rank, at, length } => {
                self.stalls.push((rank, nanos(at), nanos(length)));
            }
            Fault::Late { probability, delay } => self.late = Some((probability, delay)),
            Fault::Death {
                rank,
                at,
                detection,
            } => {
                let told = nanos(at + detection);
                for (other, place) in (0..).map(Rank).zip(&mut self.places) {
                    if other == rank {
                        place.dies_at = nanos(at);
                    } else if told < place.abort_at {
                        place.abort_at = told;
                    }
                }
                self.aborted.get_or_insert(CommError::Died { rank });
            }
        }
    }

    pub(super) fn size(&self) -> usize {
        self.places.len()
    }

    pub(super) fn clocks(&self) -> Vec<Duration> {
        let clock = |place: &Place| Duration::from_nanos(place.clock);
        self.places.iter().map(clock).collect()
    }

    /// The next rank to go on; `None` when all have ended.
    pub(super) fn next(&mut self) -> Option<Rank> {
        loop {
            while let Some(Reverse((time, rank))) = self.queue.pop() {
                if self.wakes_at(rank) == Some(time) {
                    return Some(Rank(rank));
                }
            }
            if self.places.iter().all(|p| p.state == State::Ended) {
                return None;
            }
            self.stuck();
        }
    }

    /// A rank goes on, at the time it was woken for.
    #[expect(clippy::disallowed_methods, reason = "a driver reads the clock")]
    pub(super) fn resume(&mut self, rank: Rank) {
        let wake = self.wakes_at(rank.0).unwrap_or_default();
        let place = &mut self.places[rank.index()];
        place.clock = place.clock.max(wake);
        place.state = State::Runs;
        self.resumed = Instant::now();
    }

    /// A rank has ended: who still waits for it must look again.
    pub(super) fn end(&mut self, rank: Rank) {
        self.account(rank);
        self.places[rank.index()].state = State::Ended;
        let at = self.places[rank.index()].clock;
        self.note(|| format!("{at} {} ends", rank.0));
        for other in 0..self.places.len() as u32 {
            if matches!(self.places[other as usize].state, State::Needs(from, _) if from == rank) {
                self.enqueue(other);
            }
        }
    }

    /// Adds the time since this rank was resumed, where computation is measured.
    #[expect(clippy::disallowed_methods, reason = "a driver reads the clock")]
    pub(super) fn account(&mut self, rank: Rank) {
        if let Computation::Measured { factor } = self.computation {
            let place = &mut self.places[rank.index()];
            let took = self.resumed.elapsed().as_secs_f64() * factor * place.slowness;
            place.clock += (took * 1e9) as Time;
            self.resumed = Instant::now();
        }
    }

    pub(super) fn now(&self, rank: Rank) -> Duration {
        let place = &self.places[rank.index()];
        let mut clock = Duration::from_nanos(place.clock);
        if let Computation::Measured { factor } = self.computation {
            clock += self.resumed.elapsed().mul_f64(factor * place.slowness);
        }
        clock
    }

    /// Work of so many units was done, which took so long here; returns what it took there.
    pub(super) fn compute(&mut self, rank: Rank, units: u64, took: Duration) -> Duration {
        let place = &mut self.places[rank.index()];
        match self.computation {
            Computation::Modelled { unit } => {
                let time = units as f64 * nanos(unit) as f64 * place.slowness;
                place.clock += time as Time;
                Duration::from_nanos(time as Time)
            }
            // Its clock has seen that already.
            Computation::Measured { factor } => took.mul_f64(factor * place.slowness),
        }
    }

    /// Whether another rank is so far behind that it could still send into this one's past; if so this
    /// one is ready to go on later.
    pub(super) fn is_ahead(&mut self, rank: Rank) -> bool {
        self.stall(rank);
        let clock = self.places[rank.index()].clock;
        while let Some(&Reverse((time, other))) = self.queue.peek() {
            if self.wakes_at(other) != Some(time) {
                self.queue.pop();
                continue;
            }
            if time + self.lookahead > clock {
                return false;
            }
            self.places[rank.index()].state = State::Ready(clock);
            self.enqueue(rank.0);
            return true;
        }
        false
    }

    /// Whether the job goes on for this rank.
    pub(super) fn check(&self, rank: Rank) -> Result<(), CommError> {
        let place = &self.places[rank.index()];
        if place.clock >= place.dies_at {
            return Err(CommError::Died { rank });
        }
        match &self.aborted {
            Some(error) if place.clock >= place.abort_at => Err(error.clone()),
            _ => Ok(()),
        }
    }

    pub(super) fn send(
        &mut self,
        from: Rank,
        to: Rank,
        tag: Tag,
        bytes: Vec<u8>,
    ) -> Result<(), CommError> {
        let size = self.places.len();
        if to.index() >= size {
            return Err(CommError::NoSuchRank { to, size });
        }
        let link = *self.network.link(from.0, to.0);
        let length = bytes.len();
        let place = &mut self.places[from.index()];
        place.clock += nanos(link.overhead);
        let mut at = place.clock;
        if from != to {
            let sent = place.clock.max(place.free);
            place.free = sent + nanos(link.gap);
            at = sent + nanos(link.latency) + (length as f64 * link.ns_per_byte) as Time;
            at += self.disturbance(&link);
            if self.jitter > 0.0 || self.late.is_some() {
                // Messages of one stream do not overtake each other.
                let newest = self.streams.entry((from.0, to.0, tag.0)).or_default();
                *newest = at.max(*newest);
                at = *newest;
            }
        }
        self.messages += 1;
        self.bytes += length as u64;
        let clock = self.places[from.index()].clock;
        self.note(|| {
            format!(
                "{clock} {} to {} tag {} {length} bytes, there at {at}",
                from.0, to.0, tag.0
            )
        });
        self.sequence += 1;
        let place = &mut self.places[to.index()];
        if matches!(place.state, State::Ended) || at >= place.dies_at {
            return Ok(());
        }
        place.inbox.push(Arrival {
            at,
            sequence: self.sequence,
            tag,
            message: Message { from, bytes },
        });
        if matches!(place.state, State::Waits(_) | State::Needs(..)) {
            self.enqueue(to.0);
        }
        Ok(())
    }

    /// The oldest message of this tag that has arrived.
    pub(super) fn take(&mut self, rank: Rank, tag: Tag) -> Option<Message> {
        self.collect(rank);
        let place = &mut self.places[rank.index()];
        let found = place.mailbox.take(tag);
        if found.is_none() {
            place.clock += POLL;
        }
        found
    }

    pub(super) fn take_from(
        &mut self,
        rank: Rank,
        from: Rank,
        tag: Tag,
    ) -> Result<Option<Vec<u8>>, CommError> {
        let size = self.places.len();
        if from.index() >= size {
            return Err(CommError::NoSuchRank { to: from, size });
        }
        self.collect(rank);
        let known = self.end_known_at(from);
        let ended = from == rank || known <= self.places[rank.index()].clock;
        let place = &mut self.places[rank.index()];
        let found = place.mailbox.take_from(from, tag);
        let coming = place
            .inbox
            .iter()
            .any(|a| a.message.from == from && a.tag == tag);
        if found.is_none() && ended && !coming {
            return Err(CommError::Left {
                rank: from,
                waiting: rank,
            });
        }
        Ok(found)
    }

    /// Lets a rank wait for any message, at most so long; false if one is there already.
    pub(super) fn block(&mut self, rank: Rank, at_most: Duration) -> bool {
        self.collect(rank);
        let place = &mut self.places[rank.index()];
        if !place.mailbox.is_empty() {
            return false;
        }
        place.state = State::Waits(place.clock.saturating_add(nanos(at_most).max(1)));
        self.enqueue(rank.0);
        true
    }

    /// Lets a rank wait for a message of this tag from that rank.
    pub(super) fn block_for(&mut self, rank: Rank, from: Rank, tag: Tag) {
        self.places[rank.index()].state = State::Needs(from, tag);
        self.enqueue(rank.0);
    }

    /// When others may know that a rank has ended.
    fn end_known_at(&self, rank: Rank) -> Time {
        let place = &self.places[rank.index()];
        match place.state {
            State::Ended => place.clock + self.lookahead,
            _ => Time::MAX,
        }
    }

    /// Ends the job: every other rank is told as soon as a message could tell it.
    pub(super) fn abort(&mut self, rank: Rank, reason: &str) {
        let at = self.places[rank.index()].clock;
        if at >= self.places[rank.index()].dies_at {
            // The dead tell nobody anything.
            return;
        }
        if self.aborted.is_some() && self.places.iter().any(|p| p.abort_at <= at) {
            return;
        }
        let reason = reason.to_owned();
        self.note(|| format!("{at} {} aborts: {reason}", rank.0));
        self.aborted = Some(CommError::Aborted { rank, reason });
        for (other, place) in (0..).map(Rank).zip(&mut self.places) {
            place.abort_at = if other == rank {
                at
            } else {
                at + self.lookahead
            };
        }
        self.enqueue_all();
    }

    /// All ranks wait and nothing is under way: say so to all of them.
    fn stuck(&mut self) {
        let mut dump = String::new();
        for (rank, place) in self.places.iter().enumerate() {
            if let State::Needs(from, tag) = place.state {
                writeln!(
                    dump,
                    "rank {rank} waits for rank {} with tag {:#x} since {} ns",
                    from.0, tag.0, place.clock
                )
                .expect("strings take all that is written");
            }
        }
        self.dump = Some(dump);
        self.aborted = Some(CommError::Stuck);
        for place in &mut self.places {
            place.abort_at = place.clock;
        }
        self.enqueue_all();
    }

    /// When a rank goes on, if it does.
    fn wakes_at(&self, rank: u32) -> Option<Time> {
        let place = &self.places[rank as usize];
        let arrival = place.inbox.peek().map(|a| a.at.max(place.clock));
        let end = |told: Time| (told < Time::MAX).then_some(told.max(place.clock));
        let end = if self.aborted.is_some() {
            end(place.abort_at.min(place.dies_at))
        } else {
            None
        };
        match place.state {
            State::Ready(at) => Some(at),
            State::Waits(until) => Some(
                until
                    .min(arrival.unwrap_or(Time::MAX))
                    .min(end.unwrap_or(Time::MAX)),
            ),
            State::Needs(from, _) => {
                // That the other has ended matters once nothing is under way any more.
                let known = self.end_known_at(from).max(place.clock);
                let known = (known < Time::MAX && arrival.is_none()).then_some(known);
                arrival.into_iter().chain(end).chain(known).min()
            }
            State::Runs | State::Ended => None,
        }
    }

    fn enqueue(&mut self, rank: u32) {
        if let Some(at) = self.wakes_at(rank) {
            self.queue.push(Reverse((at, rank)));
        }
    }

    fn enqueue_all(&mut self) {
        for rank in 0..self.places.len() as u32 {
            self.enqueue(rank);
        }
    }

    /// Takes in what has arrived.
    fn collect(&mut self, rank: Rank) {
        let network = self.network;
        let place = &mut self.places[rank.index()];
        while place.inbox.peek().is_some_and(|a| a.at <= place.clock) {
            let Some(arrival) = place.inbox.pop() else {
                break;
            };
            let from = arrival.message.from;
            place.clock += nanos(network.link(from.0, rank.0).overhead);
            place.mailbox.put(arrival.tag, arrival.message);
        }
    }

    /// Stands still if this rank's time has come.
    fn stall(&mut self, rank: Rank) {
        let clock = &mut self.places[rank.index()].clock;
        self.stalls.retain(|&(who, at, length)| {
            let now = who == rank && *clock >= at;
            if now {
                *clock += length;
            }
            !now
        });
    }

    /// How much later a message arrives than it should.
    fn disturbance(&mut self, link: &super::Link) -> Time {
        let mut more = 0.0;
        if self.jitter > 0.0 {
            more += self.draw() * self.jitter * nanos(link.latency) as f64;
        }
        if let Some((probability, delay)) = self.late
            && self.draw() < probability
        {
            more += self.draw() * nanos(delay) as f64;
        }
        more as Time
    }

    /// A random number in [0, 1).
    fn draw(&mut self) -> f64 {
        // SplitMix64.
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn note(&mut self, line: impl FnOnce() -> String) {
        if self.record {
            self.log.push(line());
        }
    }
}

impl Place {
    fn new() -> Self {
        Self {
            clock: 0,
            state: State::Ready(0),
            inbox: BinaryHeap::new(),
            mailbox: Mailbox::default(),
            free: 0,
            slowness: 1.0,
            dies_at: Time::MAX,
            abort_at: Time::MAX,
        }
    }
}

fn nanos(time: Duration) -> Time {
    u64::try_from(time.as_nanos()).unwrap_or(Time::MAX)
}
