//! The facts that one trace has by itself: when its workers ran, waited and asked, and what their
//! idle time was for.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::time::Duration;

use super::spans::Spans;
use super::{Idle, RankAnalysis, Steals, ns};
use crate::comm::Rank;
use crate::trace::{Trace, What};

/// An interval as it is found, in ns of the clock.
#[derive(Clone, Copy)]
pub(super) struct Found {
    /// The index of the trace.
    pub(super) trace: usize,
    pub(super) worker: usize,
    pub(super) kind: u16,
    pub(super) begin: u64,
    pub(super) end: u64,
    pub(super) own: u64,
    pub(super) splits: u32,
}

/// The facts that are known of all ranks together so far.
#[derive(Default)]
pub(super) struct Known {
    traces: usize,
    /// The time at which the first task began.
    pub(super) first: Option<u64>,
    pub(super) longest: Option<Found>,
    pub(super) last: Option<Found>,
    /// The kinds of which a task was split.
    pub(super) split: BTreeSet<u16>,
    /// The longest time that a rank read no messages.
    pub(super) deafest: Option<DeafFound>,
    pub(super) deaf_times: u64,
    pub(super) kept_waiting: u64,
}

/// A time in which a rank read no messages, and which rank that was.
#[derive(Clone, Copy)]
pub(super) struct DeafFound {
    pub(super) trace: usize,
    pub(super) at: u64,
    pub(super) kind: u16,
    pub(super) requests: u16,
    pub(super) us: u32,
}

impl Known {
    fn deaf(&mut self, found: DeafFound) {
        self.deaf_times += 1;
        self.kept_waiting += u64::from(found.requests);
        // A time in which somebody waited matters more than one in which nobody did.
        let weight = |found: DeafFound| (found.requests > 0, found.us);
        if self.deafest.is_none_or(|most| weight(found) > weight(most)) {
            self.deafest = Some(found);
        }
    }

    fn interval(&mut self, found: Found) {
        self.first = Some(self.first.unwrap_or(u64::MAX).min(found.begin));
        if found.splits > 0 {
            self.split.insert(found.kind);
        }
        if self.longest.is_none_or(|longest| found.own > longest.own) {
            self.longest = Some(found);
        }
        let later = |last: Found| (found.end, last.begin) > (last.end, found.begin);
        if self.last.is_none_or(later) {
            self.last = Some(found);
        }
    }
}

/// The moments of the whole scope, in ns of the clock.
pub(super) struct Moments {
    pub(super) begin: u64,
    /// The begin of the first task anywhere.
    pub(super) first_task: u64,
    /// The end of the last one.
    pub(super) last_task: u64,
    /// The end of tasks and of bodies' own work, everywhere.
    pub(super) quiet: u64,
    pub(super) end: u64,
}

/// Something that a worker has begun and not ended.
enum Frame {
    Task {
        kind: u16,
        begin: u64,
        /// The time so far, without tasks within it and without waiting.
        own: u64,
        splits: u32,
    },
    /// The task before it waits in a join.
    Wait,
}

/// The time of one worker, event by event.
#[derive(Default)]
struct Track {
    /// The open tasks and waits, the innermost last. A wait always lies in a task.
    frames: Vec<Frame>,
    /// The time up to which everything is accounted for.
    since: u64,
    busy: Vec<(u64, u64)>,
    waits: Vec<(u64, u64)>,
}

impl Track {
    /// Accounts for the time up to now, in which nothing changed.
    fn advance(&mut self, at: u64) {
        let span = (self.since, at);
        self.since = at;
        match self.frames.last_mut() {
            Some(Frame::Task { own, .. }) => {
                *own += at - span.0;
                self.busy.push(span);
            }
            Some(Frame::Wait) => self.waits.push(span),
            None => {}
        }
    }

    fn take_up(&mut self, kind: u16, at: u64) {
        self.advance(at);
        self.frames.push(Frame::Task {
            kind,
            begin: at,
            own: 0,
            splits: 0,
        });
    }

    /// Takes the task that ends on that worker; `None` if there is none.
    fn set_down(&mut self, trace: usize, worker: usize, at: u64) -> Option<Found> {
        self.advance(at);
        loop {
            match self.frames.pop()? {
                // Its end is missing.
                Frame::Wait => {}
                Frame::Task {
                    kind,
                    begin,
                    own,
                    splits,
                } => {
                    return Some(Found {
                        trace,
                        worker,
                        kind,
                        begin,
                        end: at,
                        own,
                        splits,
                    });
                }
            }
        }
    }

    fn wait(&mut self, at: u64) {
        if let Some(Frame::Task { .. }) = self.frames.last() {
            self.advance(at);
            self.frames.push(Frame::Wait);
        }
    }

    fn go_on(&mut self, at: u64) {
        if let Some(Frame::Wait) = self.frames.last() {
            self.advance(at);
            self.frames.pop();
        }
    }

    /// Counts a piece that the running task gave away.
    fn split(&mut self) {
        let mut frames = self.frames.iter_mut().rev();
        if let Some(Frame::Task { splits, .. }) =
            frames.find(|frame| matches!(frame, Frame::Task { .. }))
        {
            *splits = splits.saturating_add(1);
        }
    }
}

/// The facts that one trace has by itself.
pub(super) struct Raw {
    /// The times of the first and last events.
    pub(super) span: Option<(u64, u64)>,
    /// The times in which each worker ran tasks.
    busy: Vec<Spans>,
    /// The times in which each worker had a task that waited in a join, and ran no other.
    waits: Vec<Spans>,
    /// The times in which the body worked outside of joins.
    pub(super) body: Spans,
    /// The times in which requests were under way.
    requests: Spans,
    /// The times in which requests were under way that brought tasks.
    served: Spans,
    steals: Steals,
    intervals: u64,
    fetched: u64,
}

impl Raw {
    pub(super) fn of(trace: &Trace, known: &mut Known) -> Self {
        let number = known.traces;
        known.traces += 1;
        let events = trace.in_order();
        let span = events.first().zip(events.last()).map(|(a, b)| (a.at, b.at));
        let end = span.map_or(0, |(_, end)| end);
        let mut tracks: Vec<Track> = Vec::new();
        tracks.resize_with(trace.all_workers(), Track::default);
        let mut intervals = 0;
        let mut set_down = |track: &mut Track, worker: usize, at: u64| {
            let found = track.set_down(number, worker, at);
            if let Some(found) = found {
                intervals += 1;
                known.interval(found);
            }
            found.is_some()
        };
        let mut steals = Steals::default();
        let (mut requests, mut served) = (Vec::new(), Vec::new());
        let mut under_way: HashMap<u32, VecDeque<u64>> = HashMap::new();
        let mut fetched = 0;
        let mut deaf = Vec::new();
        let mut body = Vec::new();
        // The time at which the body was last known to go on by itself. It may have returned after
        // its last join.
        let mut body_since = span.map(|(begin, _)| begin);
        for event in events.iter() {
            let at = event.at;
            match event.what {
                // Events that never began may name a worker that is not there.
                What::TaskBegin { worker, kind, .. } => {
                    if let Some(track) = tracks.get_mut(usize::from(worker)) {
                        track.take_up(kind, at);
                    }
                }
                What::TaskEnd { worker, .. } => {
                    let worker = usize::from(worker);
                    if let Some(track) = tracks.get_mut(worker) {
                        set_down(track, worker, at);
                    }
                }
                What::WaitBegin { worker } => {
                    if let Some(track) = tracks.get_mut(usize::from(worker)) {
                        track.wait(at);
                    }
                }
                What::WaitEnd { worker } => {
                    if let Some(track) = tracks.get_mut(usize::from(worker)) {
                        track.go_on(at);
                    }
                }
                What::Split { worker } => {
                    steals.splits += 1;
                    if let Some(track) = tracks.get_mut(usize::from(worker)) {
                        track.split();
                    }
                }
                What::Asked { victim } => {
                    steals.asked += 1;
                    under_way.entry(victim).or_default().push_back(at);
                }
                What::Answered { victim, tasks } => {
                    let queue = under_way.get_mut(&victim);
                    let since = queue.and_then(VecDeque::pop_front).unwrap_or(at);
                    requests.push((since, at));
                    if tasks == 0 {
                        steals.refused += 1;
                    } else {
                        steals.served += 1;
                        steals.tasks_in += u64::from(tasks);
                        steals.latency += ns(at - since);
                        served.push((since, at));
                    }
                }
                What::Got { tasks, .. } => {
                    steals.served += 1;
                    steals.tasks_in += u64::from(tasks);
                }
                What::Gave { tasks, .. } | What::Gifted { tasks, .. } => {
                    steals.tasks_out += u64::from(tasks);
                }
                What::Deaf { kind, requests, us } => deaf.push(DeafFound {
                    trace: number,
                    at,
                    kind,
                    requests,
                    us,
                }),
                What::Fetched { bytes } => fetched += u64::from(bytes),
                What::ScopeBegin => body_since = Some(at),
                What::JoinBegin => {
                    let worked = body_since.take().filter(|&since| since < at);
                    body.extend(worked.map(|since| (since, at)));
                }
                What::JoinEnd => body_since = Some(at),
                What::Results { .. }
                | What::Fetch { .. }
                | What::Cancelled
                | What::Pool { .. }
                | What::ScopeEnd
                | What::Dry => {}
            }
        }
        for (worker, track) in tracks.iter_mut().enumerate() {
            while set_down(track, worker, end) {}
        }
        let (busy, waits) = tracks
            .into_iter()
            .map(|track| (Spans::union(track.busy), Spans::union(track.waits)))
            .unzip();
        deaf.into_iter().for_each(|found| known.deaf(found));
        // A request that was never answered was under way until the end.
        requests.extend(under_way.into_values().flatten().map(|at| (at, end)));
        Self {
            span,
            busy,
            waits,
            body: Spans::union(body),
            requests: Spans::union(requests),
            served: Spans::union(served),
            steals,
            intervals,
            fetched,
        }
    }

    /// Divides the whole span among causes.
    pub(super) fn divide(&self, rank: Rank, moments: &Moments) -> RankAnalysis {
        let mut busy = Duration::ZERO;
        let mut idle = Idle::default();
        for (worker, (spans, waits)) in self.busy.iter().zip(&self.waits).enumerate() {
            busy += ns(spans.until(moments.end));
            let whole = (moments.begin, moments.end);
            for (begin, end) in spans.gaps(whole.0, whole.1) {
                let cause = match spans.spans.last() {
                    // A worker that waits does nothing else.
                    _ if waits.within(begin, end) > 0 => Cause::Join,
                    None => Cause::NoTask,
                    Some(&(_, last)) if begin >= last => Cause::End,
                    Some(_) if end <= spans.spans[0].0 => Cause::First,
                    Some(_) => Cause::Between,
                };
                // Only worker 0 runs the body.
                let before = idle.body;
                if worker == 0 {
                    idle.body += ns(self.body.within(begin, end));
                }
                if worker == 0 && idle.body > before {
                    for piece in self.body.gaps(begin, end) {
                        self.charge(&mut idle, cause, piece, begin, moments);
                    }
                } else {
                    self.charge(&mut idle, cause, (begin, end), begin, moments);
                }
            }
        }
        RankAnalysis {
            rank,
            workers: self.busy.len(),
            busy,
            idle,
            steals: self.steals,
            intervals: self.intervals,
            fetched: self.fetched,
        }
    }

    /// Charges a piece of the idle time that began at `idle_since`.
    fn charge(
        &self,
        idle: &mut Idle,
        cause: Cause,
        (begin, end): (u64, u64),
        idle_since: u64,
        moments: &Moments,
    ) {
        let length = end - begin;
        match cause {
            Cause::First => {
                idle.waiting_first += ns(length);
                idle.unforked += ns(moments.first_task.clamp(begin, end) - begin);
            }
            Cause::Join => {
                let answer = self.served.within(begin, end);
                idle.answer += ns(answer);
                idle.joins += ns(length - answer);
            }
            Cause::End => {
                idle.end += ns(length);
                idle.detection += ns(end - moments.quiet.clamp(begin, end));
            }
            Cause::NoTask => {
                let forked = moments.first_task.clamp(begin, end);
                let ended = moments.last_task.clamp(forked, end);
                idle.waiting_first += ns(forked - begin);
                idle.unforked += ns(forked - begin);
                idle.starving += ns(ended - forked);
                if ended < end {
                    self.charge(idle, Cause::End, (ended, end), idle_since, moments);
                }
            }
            Cause::Between => {
                let asked = self.requests.next(idle_since).unwrap_or(end);
                let switching = asked.clamp(begin, end) - begin;
                let answer = self.served.within(begin, end);
                idle.switching += ns(switching);
                idle.answer += ns(answer);
                idle.starving += ns(length - switching - answer);
            }
        }
    }
}

#[derive(Clone, Copy)]
enum Cause {
    First,
    Between,
    /// A task of the worker waits in a join.
    Join,
    End,
    /// The worker never had a task.
    NoTask,
}
