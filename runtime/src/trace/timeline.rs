//! The record of a rank over a whole program, in scopes and outside of them, in bounded memory.
//!
//! A [`Timeline`] holds spans of the rank's main thread (phases, waits), samples of counters, and
//! the traces of scopes. Like a [`Recorder`](super::Recorder) it keeps the events that come first:
//! once it is full, everything later is dropped and counted, so that the record has no holes.

use serde::{Deserialize, Serialize};

use super::{Event, Trace};
use crate::comm::{ClockMap, Rank};

/// A stretch of time of a rank's main thread. Spans of a rank nest: two of them are apart, or one
/// is within the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// The time at which it began, in ns on the rank's clock.
    pub begin: u64,
    /// The time at which it ended, likewise.
    pub end: u64,
    /// Its kind, an index into [`Timeline::kinds`].
    pub kind: u16,
    /// A number that says more; the kind tells what it is.
    pub detail: u32,
}

/// A kind of span.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpanKind {
    /// Its name.
    pub name: String,
    /// The meaning of [`Span::detail`]; empty if it has none.
    pub detail: String,
}

/// The value of a counter at a moment; it holds until the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// When, in ns on the rank's clock.
    pub at: u64,
    /// The counter, an index into [`Timeline::counters`].
    pub counter: u16,
    /// The value.
    pub value: u64,
}

/// The events that one rank recorded over a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeline {
    /// The rank.
    pub rank: Rank,
    /// The host on which it ran; empty if that is not known.
    pub host: String,
    /// The kinds of spans.
    pub kinds: Vec<SpanKind>,
    /// The names of the counters.
    pub counters: Vec<String>,
    /// The spans of its main thread.
    pub spans: Vec<Span>,
    /// The values of the counters, those of each in the order of time.
    pub samples: Vec<Sample>,
    /// The scopes, each with a number that is the same on all ranks. Arrows lead between traces of
    /// equal number.
    pub scopes: Vec<(u64, Trace)>,
    /// The number of spans and samples that found no room. The traces of scopes have their own
    /// count.
    pub dropped: u64,
    /// The map from the clock by which all this was recorded to that of rank 0.
    pub clock: ClockMap,
    /// Whether all times are by the clock of rank 0 already.
    pub aligned: bool,
    /// The number of events that still find room.
    room: usize,
    /// The number of events for which room is set aside.
    owed: usize,
    /// The number of events for which room is set aside in a scope.
    lent: usize,
    full: bool,
}

impl Timeline {
    /// Makes an empty timeline with room for this many events: spans, samples, and events of
    /// scopes, of 24 bytes each. Memory is taken as they come.
    #[must_use]
    pub fn new(rank: Rank, kinds: Vec<SpanKind>, counters: Vec<String>, room: usize) -> Self {
        Self {
            rank,
            host: String::new(),
            kinds,
            counters,
            spans: Vec::new(),
            samples: Vec::new(),
            scopes: Vec::new(),
            dropped: 0,
            clock: ClockMap::default(),
            aligned: false,
            room,
            owed: 0,
            lent: 0,
            full: false,
        }
    }

    /// Sets room aside, if there is any, for this many spans and samples that will frame what comes
    /// before them: those of [`Self::frame`] and [`Self::frame_sample`].
    pub fn owe(&mut self, events: usize) {
        if self.has_room(events) {
            self.owed += events;
        }
    }

    /// Returns the room for [`ScopeOptions::trace`](crate::ScopeOptions::trace) of the next scope.
    /// It is half of the free room, and is set aside until [`Self::add_scope`]. The other half is
    /// for what happens around the scope.
    pub fn lend(&mut self) -> usize {
        self.lent = if self.full { 0 } else { self.free() / 2 };
        self.lent
    }

    /// Takes over the trace of a scope, which was recorded in the room that was lent.
    pub fn add_scope(&mut self, number: u64, trace: Trace) {
        self.lent = 0;
        self.room = self.room.saturating_sub(trace.events.len());
        self.full |= trace.dropped > 0;
        self.scopes.push((number, trace));
    }

    /// Takes down a span.
    pub fn span(&mut self, span: Span) {
        if self.take() {
            self.spans.push(span);
        }
    }

    /// Takes down a value of a counter.
    pub fn sample(&mut self, sample: Sample) {
        if self.take() {
            self.samples.push(sample);
        }
    }

    /// Takes down a span for which room was set aside.
    pub fn frame(&mut self, span: Span) {
        if self.take_owed() {
            self.spans.push(span);
        }
    }

    /// Takes down a value for which room was set aside.
    pub fn frame_sample(&mut self, sample: Sample) {
        if self.take_owed() {
            self.samples.push(sample);
        }
    }

    /// Returns how many events were kept.
    #[must_use]
    pub fn events(&self) -> u64 {
        let scopes = self.scopes.iter().map(|(_, trace)| trace.events.len());
        (self.spans.len() + self.samples.len() + scopes.sum::<usize>()) as u64
    }

    /// Returns how many events were dropped, in scopes and outside.
    #[must_use]
    pub fn dropped_in_all(&self) -> u64 {
        let scopes = self.scopes.iter().map(|(_, trace)| trace.dropped);
        scopes.fold(self.dropped, u64::saturating_add)
    }

    /// Returns the numbers of the first and the last scope that are whole on all ranks, with what
    /// happened around them; `None` if none is. The numbers must ascend.
    #[must_use]
    pub fn whole(timelines: &[Self]) -> Option<(u64, u64)> {
        let (mut first, mut last) = (0, u64::MAX);
        for timeline in timelines {
            let whole = &timeline.scopes[..timeline.whole_here()];
            first = first.max(whole.first()?.0);
            last = last.min(whole.last()?.0);
        }
        (first <= last && last < u64::MAX).then_some((first, last))
    }

    /// Returns how many scopes are whole, with what happened around them.
    fn whole_here(&self) -> usize {
        match self.scopes.iter().position(|(_, trace)| trace.dropped > 0) {
            // This scope found the memory full, so something was lost after the scope before it, if
            // not earlier.
            Some(lost) if self.scopes[lost].1.events.is_empty() => lost.saturating_sub(1),
            Some(lost) => lost,
            None if self.dropped > 0 => self.scopes.len().saturating_sub(1),
            None => self.scopes.len(),
        }
    }

    /// Brings all times to the clock of rank 0, by [`Self::clock`]. A second call does nothing.
    pub fn align(&mut self) {
        if self.aligned {
            return;
        }
        self.aligned = true;
        let map = self.clock;
        for span in &mut self.spans {
            (span.begin, span.end) = (map.to_first(span.begin), map.to_first(span.end));
        }
        for sample in &mut self.samples {
            sample.at = map.to_first(sample.at);
        }
        let events = self
            .scopes
            .iter_mut()
            .flat_map(|(_, trace)| &mut trace.events);
        for Event { at, .. } in events {
            *at = map.to_first(*at);
        }
    }

    fn free(&self) -> usize {
        self.room.saturating_sub(self.owed + self.lent)
    }

    fn has_room(&mut self, events: usize) -> bool {
        self.full |= self.free() < events;
        !self.full
    }

    fn take(&mut self) -> bool {
        let has = self.has_room(1);
        if has {
            self.room -= 1;
        } else {
            self.dropped += 1;
        }
        has
    }

    fn take_owed(&mut self) -> bool {
        let has = self.owed > 0;
        if has {
            self.owed -= 1;
            self.room -= 1;
        } else {
            self.dropped += 1;
        }
        has
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::trace::{Recorder, What};

    fn span(begin: u64, end: u64) -> Span {
        Span {
            begin,
            end,
            kind: 0,
            detail: 0,
        }
    }

    fn timeline(room: usize) -> Timeline {
        Timeline::new(Rank(1), Vec::new(), Vec::new(), room)
    }

    /// Adds a scope of this many events, in the room that it is lent.
    fn scope(timeline: &mut Timeline, marks: u64) {
        let lent = timeline.lend();
        let mut recorder = Recorder::with_capacity(lent);
        for at in 0..marks {
            recorder.record(Duration::from_nanos(at), What::Dry);
        }
        timeline.add_scope(7, recorder.into_trace(Rank(1), 1, Vec::new()));
    }

    #[test]
    fn a_track_keeps_the_first_events_and_counts_the_rest() {
        let mut all = timeline(100);
        for step in 0..9 {
            all.owe(2);
            all.span(span(step, step));
            scope(&mut all, 10);
            all.frame(span(step, step));
            let sample = Sample {
                at: step,
                counter: 0,
                value: step,
            };
            all.frame_sample(sample);
        }
        assert!(all.events() <= 100, "{}", all.events());
        assert_eq!(all.events() + all.dropped_in_all(), 9 * 13);
        // There are no holes: the first steps are whole.
        let whole = all
            .scopes
            .iter()
            .take_while(|(_, trace)| trace.dropped == 0);
        let whole = whole.count();
        assert!(whole >= 3, "{whole}");
        assert!(
            all.samples
                .iter()
                .map(|s| s.at)
                .eq(0..all.samples.len() as u64)
        );
        assert!(
            all.scopes[whole + 1..]
                .iter()
                .all(|(_, trace)| trace.events.is_empty())
        );
    }

    #[test]
    fn scopes_are_whole_as_long_as_nothing_is_lost_on_any_rank() {
        let take = |room: usize, steps: u64, marks: u64, spans: u64| {
            let mut all = timeline(room);
            for _ in 0..steps {
                scope(&mut all, marks);
                (0..spans).for_each(|at| all.span(span(at, at)));
            }
            for (number, scope) in (1..).zip(&mut all.scopes) {
                scope.0 = number;
            }
            all
        };
        let whole = |timelines: &[Timeline]| Timeline::whole(timelines);
        let ample = take(1000, 9, 10, 2);
        assert_eq!(whole(std::slice::from_ref(&ample)), Some((1, 9)));
        // 100, 88, ... events find room, of which a scope gets half: the eighth gets eight, and
        // needs ten.
        let tight = take(100, 9, 10, 2);
        let lost = tight.scopes.iter().find(|(_, trace)| trace.dropped > 0);
        let lost = lost.unwrap().0;
        assert_eq!(whole(&[ample.clone(), tight]), Some((1, lost - 1)));
        // Room ends in the spans after the third scope.
        let around = take(36, 9, 2, 10);
        assert!(around.scopes[3].1.events.is_empty());
        assert_eq!(whole(&[around, ample]), Some((1, 2)));
        assert_eq!(whole(&[take(10, 1, 10, 2)]), None);
        assert_eq!(whole(&[take(5, 1, 2, 10)]), None);
        assert_eq!(whole(&[]), None);
    }

    #[test]
    fn frames_find_the_room_that_was_set_aside() {
        let mut all = timeline(4);
        all.owe(3);
        all.span(span(0, 1));
        all.span(span(1, 2));
        assert_eq!((all.spans.len(), all.dropped), (1, 1));
        for _ in 0..4 {
            all.frame(span(0, 9));
        }
        assert_eq!((all.spans.len(), all.dropped), (4, 2));
        all.owe(1);
        all.frame(span(9, 10));
        assert_eq!(all.dropped, 3, "full for good");
    }

    #[test]
    fn aligning_moves_everything_once() {
        let mut all = timeline(100);
        all.span(span(10, 20));
        scope(&mut all, 2);
        all.clock.begin.offset = 5;
        all.clock.end.offset = 5;
        all.align();
        all.align();
        assert_eq!(all.spans, [span(15, 25)]);
        let at: Vec<u64> = all.scopes[0].1.events.iter().map(|e| e.at).collect();
        assert_eq!(at, [5, 6]);
    }
}
