//! The events of the crate `tracing`, made in this file alone.
//!
//! [`Recorder`](super::Recorder) and [`MainTrack`](super::MainTrack) pass on here what they
//! receive. They keep it for `--trace` at the same moment, so a subscriber hears what a trace has.
//!
//! Spans are opened and closed, but not entered: the main thread of a rank tells what other workers
//! have done when it hears of it, and ranks in virtual time share one thread. Explicit parents say
//! which span is within which. Only the main thread's own spans may be entered, see
//! [`OpenSpan::phase`].
//!
//! A subscriber hears times as fields, in ns on the clock of the rank. The time at which it is
//! called says nothing.
//!
//! `silent.rs` takes the place of this file in builds without the feature `tracing`.

use std::fmt;
use std::time::Duration;

use tracing::field::Empty;
use tracing::level_filters::LevelFilter;
use tracing::span::EnteredSpan;
use tracing::subscriber::NoSubscriber;
use tracing::{
    Dispatch, Id, Level, Span, dispatcher, event, event_enabled, record_all, span, span_enabled,
};

use super::{Detail, What};
use crate::comm::{Comm, Rank};

/// Phases and counters of a rank's main thread.
const PHASE: &str = "weft::phase";
/// Scopes, joins of their bodies, and cancelled groups.
const SCOPE: &str = "weft::scope";
/// Tasks, their waits in joins, and their splits.
const TASK: &str = "weft::task";
/// Requests for tasks and what comes of them.
const STEAL: &str = "weft::steal";
/// The number of tasks in a rank's pool.
const POOL: &str = "weft::pool";
/// Results and blocks that travel.
const MESSAGE: &str = "weft::message";
/// Collective operations, and waits for single messages.
const COMM: &str = "weft::comm";

/// Tells whether a `tracing` subscriber wants any event of a scope: then a scope that begins now
/// reports to it.
///
/// It costs one load of a number where no subscriber of the process wants `DEBUG` or `TRACE`.
#[must_use]
pub fn is_listened() -> bool {
    LevelFilter::current() >= Level::DEBUG
        && (span_enabled!(target: SCOPE, Level::DEBUG)
            || span_enabled!(target: TASK, Level::TRACE)
            || event_enabled!(target: TASK, Level::TRACE)
            || event_enabled!(target: STEAL, Level::TRACE)
            || event_enabled!(target: POOL, Level::TRACE)
            || event_enabled!(target: MESSAGE, Level::TRACE))
}

/// The `tracing` subscriber of a thread, to be handed to threads that it starts.
pub(crate) struct Subscriber(Option<Dispatch>);

impl Subscriber {
    /// Returns the subscriber of this thread.
    pub(crate) fn of_this_thread() -> Self {
        let here = dispatcher::get_default(Dispatch::clone);
        Self((!here.is::<NoSubscriber>()).then_some(here))
    }

    /// Runs `body` with this subscriber as that of the thread.
    pub(crate) fn hears<R>(&self, body: impl FnOnce() -> R) -> R {
        match &self.0 {
            Some(dispatch) => dispatcher::with_default(dispatch, body),
            None => body(),
        }
    }
}

/// The spans of a scope that a rank reports to the subscriber.
#[derive(Clone)]
pub(super) struct ScopeEvents {
    rank: u32,
    /// Names of the kinds of task.
    kinds: Vec<String>,
    /// The scope, and in it the join in which the body waits.
    body: Vec<Span>,
    /// The open tasks and their waits of each worker, the innermost last.
    workers: Vec<Vec<Span>>,
}

impl fmt::Debug for ScopeEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {}, heard", self.rank)
    }
}

impl ScopeEvents {
    /// Begins to tell, if anybody listens.
    pub(super) fn new<'n>(rank: Rank, kinds: impl Iterator<Item = &'n str>) -> Option<Self> {
        is_listened().then(|| Self {
            rank: rank.0,
            kinds: kinds.map(str::to_owned).collect(),
            body: Vec::new(),
            workers: Vec::new(),
        })
    }

    /// Tells what happened.
    pub(super) fn tell(&mut self, at: u64, what: What) {
        let rank = self.rank;
        match what {
            What::ScopeBegin => {
                let scope =
                    span!(target: SCOPE, Level::DEBUG, "scope", rank, at_ns = at, end_ns = Empty);
                self.body.push(scope);
            }
            What::JoinBegin => {
                let parent = self.scope();
                let join = span!(target: SCOPE, parent: parent, Level::DEBUG, "join", rank, at_ns = at, end_ns = Empty);
                self.body.push(join);
            }
            What::JoinEnd | What::ScopeEnd => close(self.body.pop(), at),
            What::TaskBegin {
                worker,
                kind,
                depth,
                of,
            } => self.task_begins(at, worker, kind, Detail { depth, of }),
            What::TaskEnd { worker, units } => {
                if let Some(task) = self.worker(worker).pop() {
                    record_all!(task, end_ns = at, units = units);
                }
            }
            What::WaitBegin { worker } => {
                let parent = self.innermost(worker);
                let wait = span!(target: TASK, parent: parent, Level::TRACE, "wait", rank, worker, at_ns = at, end_ns = Empty);
                self.worker(worker).push(wait);
            }
            What::WaitEnd { worker } => close(self.worker(worker).pop(), at),
            What::Split { worker } => {
                let parent = self.innermost(worker);
                event!(name: "split", target: TASK, parent: parent, Level::TRACE, rank, worker, at_ns = at, "split");
            }
            What::Deaf { kind, requests, us } => {
                let (parent, kind) = (self.scope(), self.kind(kind));
                event!(name: "unresponsive", target: TASK, parent: parent, Level::TRACE, rank, kind, requests, us, at_ns = at, "unresponsive");
            }
            What::Asked { victim } => {
                let parent = self.scope();
                event!(name: "request", target: STEAL, parent: parent, Level::TRACE, rank, victim, at_ns = at, "request");
            }
            What::Answered { victim, tasks } => {
                let parent = self.scope();
                event!(name: "answer", target: STEAL, parent: parent, Level::TRACE, rank, victim, tasks, at_ns = at, "answer");
            }
            What::Gave { thief, tasks } => {
                let parent = self.scope();
                event!(name: "give", target: STEAL, parent: parent, Level::TRACE, rank, thief, tasks, at_ns = at, "give");
            }
            What::Gifted { thief, tasks } => {
                let parent = self.scope();
                event!(name: "gift", target: STEAL, parent: parent, Level::TRACE, rank, thief, tasks, at_ns = at, "gift");
            }
            What::Got { victim, tasks } => {
                let parent = self.scope();
                event!(name: "receive", target: STEAL, parent: parent, Level::TRACE, rank, victim, tasks, at_ns = at, "receive");
            }
            What::Pool { tasks } => {
                let parent = self.scope();
                event!(name: "pool", target: POOL, parent: parent, Level::TRACE, rank, tasks, at_ns = at, "pool");
            }
            What::Results { to, count } => {
                let parent = self.scope();
                event!(name: "results", target: MESSAGE, parent: parent, Level::TRACE, rank, to, count, at_ns = at, "results");
            }
            What::Fetch { from } => {
                let parent = self.scope();
                event!(name: "fetch", target: MESSAGE, parent: parent, Level::TRACE, rank, from, at_ns = at, "fetch");
            }
            What::Fetched { bytes } => {
                let parent = self.scope();
                event!(name: "fetched", target: MESSAGE, parent: parent, Level::TRACE, rank, bytes, at_ns = at, "fetched");
            }
            What::Cancelled => {
                let parent = self.scope();
                event!(name: "cancel", target: SCOPE, parent: parent, Level::DEBUG, rank, at_ns = at, "cancel");
            }
            What::Dry => {
                let parent = self.scope();
                event!(name: "exhausted", target: SCOPE, parent: parent, Level::DEBUG, rank, at_ns = at, "exhausted");
            }
        }
    }

    fn task_begins(&mut self, at: u64, worker: u16, kind: u16, detail: Detail) {
        let (rank, parent) = (self.rank, self.innermost(worker));
        let about = (detail.of != Detail::NOTHING).then_some(detail.of);
        let task = span!(
            target: TASK,
            parent: parent,
            Level::TRACE,
            "task",
            rank,
            worker,
            kind = self.kind(kind),
            depth = detail.depth,
            first = about.map(|[first, _]| first),
            second = about.map(|[_, second]| second),
            at_ns = at,
            end_ns = Empty,
            units = Empty,
        );
        self.worker(worker).push(task);
    }

    fn kind(&self, kind: u16) -> &str {
        self.kinds.get(usize::from(kind)).map_or("", String::as_str)
    }

    /// The scope.
    fn scope(&self) -> Option<Id> {
        self.body.first().and_then(Span::id)
    }

    /// The innermost span of a worker, or else that of the scope.
    fn innermost(&self, worker: u16) -> Option<Id> {
        let open = self.workers.get(usize::from(worker));
        let innermost = open.and_then(|open| open.last()).and_then(Span::id);
        innermost.or_else(|| self.scope())
    }

    fn worker(&mut self, worker: u16) -> &mut Vec<Span> {
        let worker = usize::from(worker);
        if self.workers.len() <= worker {
            self.workers.resize(worker + 1, Vec::new());
        }
        &mut self.workers[worker]
    }
}

fn close(span: Option<Span>, at: u64) {
    if let Some(span) = span {
        span.record("end_ns", at);
    }
}

/// A span of a rank's main thread. If it is dropped before [`OpenSpan::end`], the subscriber hears
/// that it closes, without a time.
#[derive(Debug)]
pub(crate) enum OpenSpan {
    Open(Span),
    Entered(EnteredSpan),
}

impl OpenSpan {
    /// Opens a phase within another one, or within the span that the thread has entered.
    ///
    /// `enters`: it is entered, so that whatever the thread tells by itself is within it. The rank
    /// must then have the thread to itself.
    pub(super) fn phase(
        rank: Rank,
        name: &str,
        parent: Option<&Self>,
        at: u64,
        enters: bool,
    ) -> Self {
        let rank = rank.0;
        let span = match parent {
            None => {
                span!(target: PHASE, Level::DEBUG, "phase", phase = name, rank, at_ns = at, end_ns = Empty, counted = Empty, count = Empty)
            }
            Some(parent) => {
                span!(target: PHASE, parent: parent.span().id(), Level::DEBUG, "phase", phase = name, rank, at_ns = at, end_ns = Empty, counted = Empty, count = Empty)
            }
        };
        match enters {
            true => Self::Entered(span.entered()),
            false => Self::Open(span),
        }
    }

    /// Opens a collective operation.
    pub(crate) fn collective<C: Comm + ?Sized>(comm: &C, name: &str) -> Self {
        let span = span!(
            target: COMM,
            Level::TRACE,
            "collective",
            collective = name,
            rank = comm.rank().0,
            at_ns = nanos(comm.now()),
            end_ns = Empty,
        );
        Self::Open(span)
    }

    /// Closes the span at the time that `at` tells, which is asked if anybody listens.
    pub(crate) fn end_at(self, at: impl FnOnce() -> Duration) {
        if !self.span().is_disabled() {
            self.span().record("end_ns", nanos(at()));
        }
    }

    /// Closes the span, and tells how many of what it had to do with.
    pub(super) fn end(self, at: u64, count: Option<(&str, u64)>) {
        let span = self.span();
        match count {
            Some((counted, count)) => {
                record_all!(span, end_ns = at, counted = counted, count = count);
            }
            None => _ = span.record("end_ns", at),
        }
    }

    fn span(&self) -> &Span {
        match self {
            Self::Open(span) => span,
            Self::Entered(span) => span,
        }
    }
}

/// Tells the value of a counter within a phase.
pub(super) fn counter(
    rank: Rank,
    within: Option<&OpenSpan>,
    (counter, value): (&str, u64),
    at: u64,
) {
    let (rank, parent) = (rank.0, within.and_then(|open| open.span().id()));
    event!(name: "counter", target: PHASE, parent: parent, Level::DEBUG, counter, value, rank, at_ns = at, "counter");
}

/// Tells that a rank waited for a message of another.
pub(super) fn waited(rank: Rank, what: &str, from: Rank, (begin, end): (u64, u64)) {
    let (rank, from) = (rank.0, from.0);
    event!(name: "waited", target: COMM, Level::TRACE, what, rank, from, at_ns = begin, end_ns = end, "waited");
}

fn nanos(time: Duration) -> u64 {
    super::nanos(time)
}
