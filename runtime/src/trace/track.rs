//! A track of a rank's main thread outside of scopes: phases, counters and waits for messages.
//!
//! A [`MainTrack`] hears of them as they happen. It passes them on to the `tracing` subscriber of
//! the process, and keeps them as [`Mark`]s for a [`Timeline`](super::Timeline) if it is asked to.

use std::time::Duration;

use super::emit::{self, OpenSpan};
use super::nanos;
use crate::comm::{Comm, Rank};

/// Something that a main thread did, as it is kept for a timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// A phase has ended.
    Phase {
        /// Its name.
        name: &'static str,
        /// The time at which it began, in ns on the rank's clock.
        begin: u64,
        /// The time at which it ended, likewise.
        end: u64,
        /// How many there were of what it counts; 0 if it counts nothing.
        count: u64,
    },
    /// A counter has a value.
    Counter {
        /// Its name.
        name: &'static str,
        /// When, in ns on the rank's clock.
        at: u64,
        /// The value.
        value: u64,
    },
    /// The rank has waited for a message of another.
    Wait {
        /// The name of the message that it waited for.
        what: &'static str,
        /// The rank from which the message came.
        from: Rank,
        /// The time at which the wait began, in ns on the rank's clock.
        begin: u64,
        /// The time at which it ended, likewise.
        end: u64,
    },
}

/// Tells what a rank's main thread does outside of scopes, as it happens.
///
/// Phases nest: the one that began last ends first. If a track is dropped, its open phases are
/// closed without a time.
#[derive(Debug)]
pub struct MainTrack {
    rank: Rank,
    /// Whether the rank has its thread to itself, so that phases can be entered there.
    enters: bool,
    /// Whether marks are kept.
    keeps: bool,
    open: Vec<Begun>,
    marks: Vec<Mark>,
    last_end: Duration,
}

/// A phase that has begun.
#[derive(Debug)]
struct Begun {
    name: &'static str,
    at: Duration,
    span: OpenSpan,
}

impl MainTrack {
    /// Makes the track of the rank that `comm` is; it keeps marks if `keeps` says so.
    #[must_use]
    pub fn new(comm: &dyn Comm, keeps: bool) -> Self {
        Self {
            rank: comm.rank(),
            enters: comm.has_threads(),
            keeps,
            open: Vec::new(),
            marks: Vec::new(),
            last_end: Duration::ZERO,
        }
    }

    /// Begins a phase.
    pub fn begin(&mut self, name: &'static str, at: Duration) {
        let parent = self.open.last().map(|begun| &begun.span);
        let span = OpenSpan::phase(self.rank, name, parent, nanos(at), self.enters);
        self.open.push(Begun { name, at, span });
    }

    /// Ends the phase that began last, and tells how many there were of what it counts.
    pub fn end(&mut self, at: Duration, count: Option<(&'static str, u64)>) {
        let Some(begun) = self.open.pop() else { return };
        self.last_end = at;
        begun.span.end(nanos(at), count);
        self.keep(Mark::Phase {
            name: begun.name,
            begin: nanos(begun.at),
            end: nanos(at),
            count: count.map_or(0, |(_, count)| count),
        });
    }

    /// Ends phases until this many are open.
    pub fn end_down_to(&mut self, open: usize, at: Duration) {
        while self.open.len() > open {
            self.end(at, None);
        }
    }

    /// Returns how many phases are open.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.open.len()
    }

    /// Returns when a phase ended last.
    #[must_use]
    pub fn last_end(&self) -> Duration {
        self.last_end
    }

    /// Tells the value of a counter.
    pub fn count(&mut self, name: &'static str, at: Duration, value: u64) {
        let within = self.open.last().map(|begun| &begun.span);
        emit::counter(self.rank, within, (name, value), nanos(at));
        self.keep(Mark::Counter {
            name,
            at: nanos(at),
            value,
        });
    }

    /// Tells that the rank waited for a message of another, and since when.
    pub fn wait(&mut self, what: &'static str, from: Rank, begin: Duration, end: Duration) {
        let (begin, end) = (nanos(begin), nanos(end));
        emit::waited(self.rank, what, from, (begin, end));
        self.keep(Mark::Wait {
            what,
            from,
            begin,
            end,
        });
    }

    /// Takes the marks that were kept since the last time.
    pub fn take_marks(&mut self) -> Vec<Mark> {
        std::mem::take(&mut self.marks)
    }

    fn keep(&mut self, mark: Mark) {
        if self.keeps {
            self.marks.push(mark);
        }
    }
}

impl Drop for MainTrack {
    fn drop(&mut self) {
        // Inner phases first: a subscriber keeps those that a thread has entered on a stack.
        while self.open.pop().is_some() {}
    }
}
