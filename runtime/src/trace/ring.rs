//! The ring of events that `--trace` keeps, and the place where a scope tells what happens.
//!
//! [`Recorder::record`] is called once for each event, wherever in the scope that is. The event
//! goes to the `tracing` subscriber of the process, if there is one that listens, and into the
//! ring, if one was asked for. If there is neither, it costs a branch.
//!
//! A ring that is full keeps the oldest events, because a beginning can be understood by itself and
//! an end without its beginning cannot. Pairs stay pairs: when a begin is kept, room is set aside
//! for its end, and the end of a begin that was dropped is dropped too.

use std::time::Duration;

use super::emit::ScopeEvents;
use super::{Event, Trace, What, nanos};
use crate::comm::Rank;

/// Takes down what happens on a rank, or on one of its workers. The default is off.
#[derive(Clone, Debug, Default)]
pub struct Recorder {
    /// Whether anybody hears its events.
    on: bool,
    /// Whether it keeps events.
    keeps: bool,
    /// Most events that are kept.
    capacity: usize,
    events: Vec<Event>,
    /// Ends still to come of begins that were kept.
    owed: usize,
    /// Whether something was dropped: from then on only ends are kept.
    full: bool,
    dropped: u64,
    /// The open begins by track: the scope, joins, then each worker.
    open: Vec<Open>,
    /// The subscriber's share, if one listens.
    subscriber: Option<Box<ScopeEvents>>,
}

/// Begins without an end so far; on one track the last one begun ends first.
#[derive(Clone, Copy, Debug, Default)]
struct Open {
    kept: u32,
    dropped: u32,
}

/// How an event pairs with others, and on which track.
enum Pairing {
    Begin(usize),
    End(usize),
    Single,
}

impl Pairing {
    fn of(what: What) -> Self {
        let task = |worker: u16| usize::from(worker) + 2;
        match what {
            What::ScopeBegin => Self::Begin(0),
            What::ScopeEnd => Self::End(0),
            What::JoinBegin => Self::Begin(1),
            What::JoinEnd => Self::End(1),
            What::TaskBegin { worker, .. } => Self::Begin(task(worker)),
            What::TaskEnd { worker, .. } => Self::End(task(worker)),
            // Waits and tasks of a worker nest in each other.
            What::WaitBegin { worker } => Self::Begin(task(worker)),
            What::WaitEnd { worker } => Self::End(task(worker)),
            _ => Self::Single,
        }
    }
}

impl Recorder {
    /// Makes a recorder that keeps nothing.
    #[must_use]
    pub fn off() -> Self {
        Self::default()
    }

    /// Makes a recorder that keeps at most this many events, of 24 bytes each; memory is taken as
    /// they come. With room for none it only counts.
    #[must_use]
    pub fn with_capacity(events: usize) -> Self {
        Self {
            on: true,
            keeps: true,
            capacity: events,
            ..Self::default()
        }
    }

    /// Tells the `tracing` subscriber of this thread as well, if it listens now to any event of a
    /// scope; `kinds` are the names of tasks by number.
    #[must_use]
    pub fn heard<'n>(mut self, rank: Rank, kinds: impl Iterator<Item = &'n str>) -> Self {
        self.subscriber = ScopeEvents::new(rank, kinds).map(Box::new);
        self.on |= self.subscriber.is_some();
        self
    }

    /// Whether anybody hears its events; ask before reading a clock only for its sake.
    #[must_use]
    #[inline]
    pub fn is_on(&self) -> bool {
        self.on
    }

    /// Tells what happened, and when on the rank's clock; one branch if nobody hears it.
    ///
    /// Workers may report late: only the events of one worker, and those of the rank itself, must
    /// each come in the order of time.
    #[inline]
    pub fn record(&mut self, at: Duration, what: What) {
        if self.is_on() {
            self.tell(nanos(at), what);
        }
    }

    /// Takes over what another recorder of the same rank keeps, such as a worker's own; the
    /// capacities add up.
    pub fn append(&mut self, other: Self) {
        self.on |= other.keeps;
        self.keeps |= other.keeps;
        self.capacity += other.capacity;
        self.events.extend(other.events);
        self.owed += other.owed;
        self.full |= other.full;
        self.dropped += other.dropped;
        if self.open.len() < other.open.len() {
            self.open.resize(other.open.len(), Open::default());
        }
        for (mine, theirs) in self.open.iter_mut().zip(other.open) {
            mine.kept += theirs.kept;
            mine.dropped += theirs.dropped;
        }
    }

    /// Makes a trace of what was kept on this rank, which has this many workers; `kinds` are the
    /// names of tasks by number.
    #[must_use]
    pub fn into_trace(mut self, rank: Rank, workers: usize, kinds: Vec<String>) -> Trace {
        // Stable: what happened on a worker at one time keeps its order.
        self.events.sort_by_key(|event| event.at);
        Trace {
            rank,
            workers,
            kinds,
            events: self.events,
            dropped: self.dropped,
            sharing: None,
        }
    }

    fn tell(&mut self, at: u64, what: What) {
        if let Some(subscriber) = &mut self.subscriber {
            subscriber.tell(at, what);
        }
        if self.keeps {
            self.keep_or_drop(at, what);
        }
    }

    fn keep_or_drop(&mut self, at: u64, what: What) {
        let keep = match Pairing::of(what) {
            Pairing::Begin(track) => {
                let keep = self.has_room(2);
                let open = self.open(track);
                if keep {
                    open.kept += 1;
                    self.owed += 1;
                } else {
                    open.dropped += 1;
                }
                keep
            }
            Pairing::End(track) => {
                let open = self.open(track);
                if open.dropped > 0 {
                    open.dropped -= 1;
                    false
                } else if open.kept > 0 {
                    open.kept -= 1;
                    self.owed -= 1;
                    true
                } else {
                    false
                }
            }
            Pairing::Single => self.has_room(1),
        };
        if keep {
            self.events.push(Event { at, what });
        } else {
            self.dropped += 1;
        }
    }

    /// Whether this many more events fit beside those that are owed. If they do not, it is full for
    /// good, so that what is kept has no holes.
    fn has_room(&mut self, events: usize) -> bool {
        self.full |= self.events.len() + self.owed + events > self.capacity;
        !self.full
    }

    fn open(&mut self, track: usize) -> &mut Open {
        if self.open.len() <= track {
            self.open.resize(track + 1, Open::default());
        }
        &mut self.open[track]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begin(worker: u16) -> What {
        What::TaskBegin {
            worker,
            kind: 0,
            depth: 0,
            of: [0; 2],
        }
    }

    fn end(worker: u16) -> What {
        What::TaskEnd { worker, units: 0 }
    }

    fn recorded(capacity: usize, whats: &[What]) -> Trace {
        let mut recorder = Recorder::with_capacity(capacity);
        for (at, &what) in (0..).zip(whats) {
            recorder.record(Duration::from_nanos(at), what);
        }
        recorder.into_trace(Rank(0), 2, vec![])
    }

    #[test]
    fn a_trace_event_takes_few_bytes() {
        assert!(size_of::<Event>() <= 24);
    }

    #[test]
    fn a_recorder_that_is_off_records_nothing() {
        let mut recorder = Recorder::off();
        assert!(!recorder.is_on());
        recorder.record(Duration::ZERO, What::Dry);
        let trace = recorder.into_trace(Rank(3), 1, vec![]);
        assert_eq!((trace.events.len(), trace.dropped), (0, 0));
    }

    #[test]
    fn a_full_recorder_keeps_pairs() {
        let whats = [
            What::ScopeBegin,
            begin(0),
            begin(1),
            // No room from here on: three ends are owed.
            begin(0),
            What::Dry,
            end(0),
            end(0),
            end(1),
            What::ScopeEnd,
        ];
        let trace = recorded(7, &whats);
        let kept: Vec<What> = trace.events.iter().map(|event| event.what).collect();
        let expected = [
            What::ScopeBegin,
            begin(0),
            begin(1),
            end(0),
            end(1),
            What::ScopeEnd,
        ];
        assert_eq!(kept, expected);
        assert_eq!(trace.events[3].at, 6, "the outer end, not the inner one");
        assert_eq!(trace.dropped, 3);
    }

    #[test]
    fn a_ring_keeps_no_event_after_the_first_lost_one() {
        let whats = [What::Dry, begin(0), What::Dry, end(0), What::Dry];
        let trace = recorded(2, &whats);
        assert_eq!((trace.events.len(), trace.dropped), (1, 4));
        // An end that never began is no pair.
        let trace = recorded(8, &[end(0), begin(0), end(0)]);
        assert_eq!((trace.events.len(), trace.dropped), (2, 1));
    }

    #[test]
    fn workers_may_report_late() {
        let mut recorder = Recorder::with_capacity(8);
        recorder.record(Duration::from_nanos(5), What::Dry);
        let mut own = Recorder::with_capacity(8);
        own.record(Duration::from_nanos(5), begin(1));
        own.record(Duration::from_nanos(5), end(1));
        own.record(Duration::from_nanos(1), What::Split { worker: 1 });
        recorder.append(own);
        let trace = recorder.into_trace(Rank(0), 2, vec![]);
        let kept: Vec<What> = trace.events.iter().map(|event| event.what).collect();
        let expected = [What::Split { worker: 1 }, What::Dry, begin(1), end(1)];
        assert_eq!(kept, expected);
    }
}
