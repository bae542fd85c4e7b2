//! All virtual ranks at once: clocks, messages under way, and who goes on next.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::fmt::Write as _;
use std::time::Duration;

use super::super::mailbox::Mailbox;
use super::super::{CommError, Message, Rank, Tag};
use super::{Computation, Fault, Network, VirtualOptions};
use crate::cpu_time::Stopwatch;

/// The cost of looking for a message that is not there, if nothing else happened since the last
/// look. With it, a loop that only looks gets on in time.
const POLL: u64 = 20;

/// No message arrives before this, in ns, or ranks that talk would stand still in time.
const LEAST_FLIGHT: u64 = 1;

/// Virtual time in ns.
type Time = u64;

/// The activity of a rank.
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
struct VirtualRank {
    clock: Time,
    state: State,
    /// An entry of the queue says this time; the end of time if none is known to.
    queued: Time,
    inbox: BinaryHeap<Arrival>,
    mailbox: Mailbox,
    /// The time at which it looked for a message in vain.
    looked: Time,
    /// The time at which it may send the next message.
    free: Time,
    /// How many times slower than others it computes.
    slowness: f64,
    dies_at: Time,
    /// The time at which the others hear that it died; they share `deaths` of the world, by this
    /// time.
    death_told: Time,
}

/// A rank dies, or has died, and its peers learn of it.
#[derive(Clone, Copy, Debug)]
struct Death {
    rank: Rank,
    told: Time,
}

/// The reason why all ranks have to stop.
#[derive(Debug)]
struct End {
    error: CommError,
    /// The rank that said so, and when it did.
    by: Option<Rank>,
    at: Time,
    /// The time at which the others hear of it.
    told: Time,
}

impl End {
    fn told_to(&self, rank: Rank) -> Time {
        if self.by == Some(rank) {
            self.at
        } else {
            self.told
        }
    }
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
    places: Vec<VirtualRank>,
    /// The times at which ranks go on; entries that a rank's state contradicts are stale.
    queue: BinaryHeap<Reverse<(Time, u32)>>,
    /// The time at which the rank whose turn it is goes on.
    turn: Time,
    /// Newest arrival of each stream, where delays differ.
    streams: BTreeMap<(u32, u32, u16), Time>,
    sequence: u64,
    /// The ranks that wait for a message: the rank that is to send it, then the one that waits.
    needs: BTreeSet<(Rank, Rank)>,
    /// The deaths, in the order in which others hear of them.
    deaths: Vec<Death>,
    aborted: Option<End>,
    /// Time of the one thread that runs all ranks, since the rank whose turn it is was last
    /// charged.
    watch: Stopwatch,
    record: bool,
    pub(super) messages: u64,
    pub(super) bytes: u64,
    pub(super) log: Vec<String>,
    pub(super) dump: Option<String>,
}

impl World {
    pub(super) fn new(ranks: usize, options: &VirtualOptions) -> Self {
        let mut world = Self {
            network: options.network,
            computation: options.computation,
            lookahead: nanos(options.network.lookahead()).max(LEAST_FLIGHT),
            jitter: options.jitter.max(0.0),
            late: None,
            stalls: Vec::new(),
            random: options.seed.wrapping_mul(2).wrapping_add(1),
            places: (0..ranks).map(|_| VirtualRank::new()).collect(),
            queue: (0..ranks as u32).map(|rank| Reverse((0, rank))).collect(),
            turn: 0,
            streams: BTreeMap::new(),
            sequence: 0,
            needs: BTreeSet::new(),
            deaths: Vec::new(),
            aborted: None,
            watch: Stopwatch::start(),
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
                let place = self.places.get(rank.index());
                if place.is_some_and(|place| nanos(at) < place.dies_at) {
                    let told = nanos(at.saturating_add(detection));
                    self.plan_death(rank, nanos(at), told);
                }
            }
        }
    }

    pub(super) fn size(&self) -> usize {
        self.places.len()
    }

    pub(super) fn clocks(&self) -> Vec<Duration> {
        let clock = |place: &VirtualRank| Duration::from_nanos(place.clock);
        self.places.iter().map(clock).collect()
    }

    /// The next rank to go on; `None` when all have ended.
    pub(super) fn next(&mut self) -> Option<Rank> {
        loop {
            if let Some((time, rank)) = self.first() {
                self.dequeue();
                self.turn = time;
                return Some(Rank(rank));
            }
            if self.places.iter().all(|p| p.state == State::Ended) {
                return None;
            }
            self.stuck();
        }
    }

    /// The rank whose turn it is goes on.
    pub(super) fn resume(&mut self, rank: Rank) {
        if let State::Needs(from, _) = self.places[rank.index()].state {
            self.needs.remove(&(from, rank));
        }
        let place = &mut self.places[rank.index()];
        place.clock = place.clock.max(self.turn);
        place.state = State::Runs;
        self.restart();
    }

    /// Restarts the measuring of computation from now on: the cost of sending and receiving here is
    /// the network's to say.
    pub(super) fn restart(&mut self) {
        if matches!(self.computation, Computation::Measured { .. }) {
            self.watch.restart();
        }
    }

    /// A rank has ended: who still waits for it must look again.
    pub(super) fn end(&mut self, rank: Rank) {
        self.account(rank);
        let place = &mut self.places[rank.index()];
        place.state = State::Ended;
        place.inbox = BinaryHeap::new();
        place.mailbox = Mailbox::default();
        let at = place.clock;
        self.note(|| format!("{at} {} ends", rank.0));
        if !self.is_dead(rank) {
            self.forget_death(rank);
        }
        let waiting: Vec<Rank> = self
            .needs
            .range((rank, Rank(0))..=(rank, Rank(u32::MAX)))
            .map(|&(_, waiting)| waiting)
            .collect();
        for other in waiting {
            self.enqueue(other.0);
        }
    }

    /// A rank is to die at that time, whatever was planned before.
    fn plan_death(&mut self, rank: Rank, at: Time, told: Time) {
        self.forget_death(rank);
        let place = &mut self.places[rank.index()];
        place.dies_at = at;
        place.death_told = told;
        let after = self.deaths.partition_point(|death| death.told <= told);
        self.deaths.insert(after, Death { rank, told });
    }

    /// A rank does not die, or not as planned.
    fn forget_death(&mut self, rank: Rank) {
        let place = &mut self.places[rank.index()];
        if place.dies_at == Time::MAX {
            return;
        }
        place.dies_at = Time::MAX;
        place.death_told = Time::MAX;
        let Some(which) = self.deaths.iter().position(|death| death.rank == rank) else {
            return;
        };
        self.deaths.remove(which);
        // Some would have been woken for it.
        self.enqueue_all();
    }

    fn is_dead(&self, rank: Rank) -> bool {
        let place = &self.places[rank.index()];
        place.clock >= place.dies_at
    }

    pub(super) fn node_of(&self, rank: Rank) -> u32 {
        self.network.node(rank.0)
    }

    /// Adds the time since this rank was resumed, where computation is measured.
    pub(super) fn account(&mut self, rank: Rank) {
        if let Computation::Measured { factor } = self.computation {
            let place = &mut self.places[rank.index()];
            let took = self.watch.lap().mul_f64(factor * place.slowness);
            place.clock += nanos(took);
        }
    }

    pub(super) fn now(&mut self, rank: Rank) -> Duration {
        let place = &self.places[rank.index()];
        let mut clock = Duration::from_nanos(place.clock);
        if let Computation::Measured { factor } = self.computation {
            clock += self.watch.read().mul_f64(factor * place.slowness);
        }
        clock
    }

    /// Work of this many units was done, which took this long on the rank's clock as far as that
    /// runs by itself; returns what it took.
    pub(super) fn compute(&mut self, rank: Rank, units: u64, took: Duration) -> Duration {
        let place = &mut self.places[rank.index()];
        match self.computation {
            Computation::Modelled { unit } => {
                let time = units as f64 * nanos(unit) as f64 * place.slowness;
                place.clock += time as Time;
                Duration::from_nanos(time as Time)
            }
            // Its clock has seen that already.
            Computation::Measured { .. } => took,
        }
    }

    /// Whether another rank is so far behind that it could still send into this one's past; if so
    /// this one is ready to go on later.
    pub(super) fn is_ahead(&mut self, rank: Rank) -> bool {
        self.stall(rank);
        let clock = self.places[rank.index()].clock;
        let lookahead = self.lookahead;
        let behind = |(time, _): (Time, u32)| time.saturating_add(lookahead) <= clock;
        if !self.first().is_some_and(behind) {
            return false;
        }
        self.places[rank.index()].state = State::Ready(clock);
        self.enqueue(rank.0);
        true
    }

    /// Returns the rank that goes on next, and when it does.
    fn first(&mut self) -> Option<(Time, u32)> {
        while let Some(&Reverse((time, rank))) = self.queue.peek() {
            if self.wakes_at(rank) == Some(time) {
                return Some((time, rank));
            }
            self.dequeue();
        }
        None
    }

    fn dequeue(&mut self) {
        if let Some(Reverse((time, rank))) = self.queue.pop() {
            let queued = &mut self.places[rank as usize].queued;
            if *queued == time {
                *queued = Time::MAX;
            }
        }
    }

    /// Whether the job goes on for this rank.
    pub(super) fn check(&self, rank: Rank) -> Result<(), CommError> {
        let place = &self.places[rank.index()];
        if self.is_dead(rank) {
            return Err(CommError::Died { rank });
        }
        let end = self.aborted.as_ref();
        let end = end.filter(|end| end.told_to(rank) <= place.clock);
        let death = self.deaths.first();
        let death = death.filter(|death| death.told <= place.clock);
        // The error that reached this rank first is its answer from then on.
        match (end, death) {
            (Some(end), Some(death)) if end.told_to(rank) < death.told => Err(end.error.clone()),
            (_, Some(death)) => Err(CommError::Died { rank: death.rank }),
            (Some(end), None) => Err(end.error.clone()),
            (None, None) => Ok(()),
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
            let transfer = (length as f64 * link.ns_per_byte) as Time;
            // Its bytes leave one after the other; the processor may do something else meanwhile.
            let leaving = (length.saturating_sub(1) as f64 * link.ns_per_byte) as Time;
            place.free = sent + leaving + nanos(link.gap);
            at = (sent + nanos(link.latency) + transfer).max(sent + LEAST_FLIGHT);
            at += self.disturbance(&link);
            // Messages of one stream do not overtake each other. Undisturbed, none can overtake one
            // that has left before the next may be sent, unless the gap is shorter than a byte:
            // these need not be remembered.
            let stream = (from.0, to.0, tag.0);
            let overtakes = (nanos(link.gap) as f64) < link.ns_per_byte;
            if self.jitter > 0.0 || self.late.is_some() || overtakes {
                let newest = self.streams.entry(stream).or_default();
                *newest = at.max(*newest);
                at = *newest;
            } else if let Some(&newest) = self.streams.get(&stream) {
                at = at.max(newest);
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
            if place.looked == place.clock {
                place.clock += POLL;
            }
            place.looked = place.clock;
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
        let dead = from != rank && self.places[from.index()].dies_at < Time::MAX;
        let place = &mut self.places[rank.index()];
        let found = place.mailbox.take_from(from, tag);
        if found.is_some() || !ended {
            return Ok(found);
        }
        let mut coming = place.inbox.iter();
        if coming.any(|a| a.message.from == from && a.tag == tag) {
            return Ok(None);
        }
        Err(if dead {
            CommError::Died { rank: from }
        } else {
            CommError::Left {
                rank: from,
                waiting: rank,
            }
        })
    }

    /// Whether a rank knows that another has ended, and has all that it sent.
    pub(super) fn has_left(&self, rank: Rank, other: Rank) -> bool {
        let Some(place) = self.places.get(other.index()) else {
            return false;
        };
        let ended = place.state == State::Ended && place.dies_at == Time::MAX;
        let me = &self.places[rank.index()];
        ended
            && self.end_known_at(other) <= me.clock
            && me.inbox.iter().all(|arrival| arrival.message.from != other)
    }

    pub(super) fn close(&mut self, rank: Rank, tag: Tag) {
        self.places[rank.index()].mailbox.close(tag);
    }

    /// Keeps messages of this tag again, but for those that have arrived.
    pub(super) fn reopen(&mut self, rank: Rank, tag: Tag) {
        self.collect(rank);
        self.places[rank.index()].mailbox.reopen(tag);
    }

    /// Lets a rank wait for any message, at most so long; false if there is one already.
    pub(super) fn block(&mut self, rank: Rank, at_most: Duration) -> bool {
        self.collect(rank);
        let place = &mut self.places[rank.index()];
        if place.mailbox.has_news() {
            return false;
        }
        place.state = State::Waits(place.clock.saturating_add(nanos(at_most).max(1)));
        self.enqueue(rank.0);
        true
    }

    /// Lets a rank wait for a message of this tag from that rank.
    pub(super) fn block_for(&mut self, rank: Rank, from: Rank, tag: Tag) {
        self.places[rank.index()].state = State::Needs(from, tag);
        self.needs.insert((from, rank));
        self.enqueue(rank.0);
    }

    /// The time at which others may know that a rank has ended or died.
    fn end_known_at(&self, rank: Rank) -> Time {
        let place = &self.places[rank.index()];
        match place.state {
            State::Ended if place.dies_at == Time::MAX => place.clock + self.lookahead,
            _ => place.death_told,
        }
    }

    /// Ends the job: every other rank hears of it as soon as a message could tell it.
    pub(super) fn abort(&mut self, rank: Rank, reason: &str) {
        let at = self.places[rank.index()].clock;
        // The dead tell nobody anything, and who was told of a death is not the only one.
        if self.check(rank).is_err() || self.aborted.as_ref().is_some_and(|end| end.at <= at) {
            return;
        }
        let reason = reason.to_owned();
        self.note(|| format!("{at} {} aborts: {reason}", rank.0));
        self.aborted = Some(End {
            error: CommError::Aborted { rank, reason },
            by: Some(rank),
            at,
            told: at + self.lookahead,
        });
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
        self.aborted = Some(End {
            error: CommError::Stuck,
            by: None,
            at: 0,
            told: 0,
        });
        self.enqueue_all();
    }

    /// The time at which a rank goes on, if it does.
    fn wakes_at(&self, rank: u32) -> Option<Time> {
        let place = &self.places[rank as usize];
        let arrival = place.inbox.peek().map(|a| a.at.max(place.clock));
        let arrival = arrival.unwrap_or(Time::MAX);
        match place.state {
            State::Ready(at) => Some(at),
            State::Waits(until) => Some(until.min(arrival).min(self.stops_at(rank))),
            State::Needs(from, _) => {
                // That the other has ended matters once nothing is under way any more.
                let known = if arrival < Time::MAX {
                    Time::MAX
                } else {
                    self.end_known_at(from).max(place.clock)
                };
                let wake = arrival.min(known).min(self.stops_at(rank));
                (wake < Time::MAX).then_some(wake)
            }
            State::Runs | State::Ended => None,
        }
    }

    /// The time at which [`World::check`] will fail for a rank; the end of time if it will not.
    fn stops_at(&self, rank: u32) -> Time {
        let place = &self.places[rank as usize];
        let mut at = place.dies_at;
        if let Some(end) = &self.aborted {
            at = at.min(end.told_to(Rank(rank)));
        }
        if let Some(death) = self.deaths.first() {
            at = at.min(death.told);
        }
        at.max(place.clock)
    }

    fn enqueue(&mut self, rank: u32) {
        let Some(at) = self.wakes_at(rank) else {
            return;
        };
        let queued = &mut self.places[rank as usize].queued;
        // Most messages for a rank that waits come after one that wakes it already.
        if *queued != at || at == Time::MAX {
            *queued = at;
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

impl VirtualRank {
    fn new() -> Self {
        Self {
            clock: 0,
            state: State::Ready(0),
            queued: 0,
            inbox: BinaryHeap::new(),
            mailbox: Mailbox::default(),
            looked: Time::MAX,
            free: 0,
            slowness: 1.0,
            dies_at: Time::MAX,
            death_told: Time::MAX,
        }
    }
}

fn nanos(time: Duration) -> Time {
    u64::try_from(time.as_nanos()).unwrap_or(Time::MAX)
}
