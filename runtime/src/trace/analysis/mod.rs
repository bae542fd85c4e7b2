//! An analysis of why a scope did not scale: every idle moment of every worker gets one cause.
//!
//! One span is divided up for all ranks, from the first event anywhere to the last. So the
//! parts add up: on each rank, busy and idle time are together workers × makespan.

mod hints;
mod raw;
mod spans;
mod text;

use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use self::hints::Hint;
use self::raw::{Found, Known, Moments, Raw};
use super::{Sharing, Trace};
use crate::comm::Rank;

/// The idle time of workers by its cause. It is a sum over workers, so that 8 workers lose 8 s in a
/// second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Idle {
    /// The time before a worker's first task; for a worker that never had one, before the first
    /// task anywhere.
    pub waiting_first: Duration,
    /// The part of [`Self::waiting_first`] before any task ran, wherever it was: nobody had forked
    /// one.
    pub unforked: Duration,
    /// Worker 0 was held by the body, which did its own work outside of joins.
    pub body: Duration,
    /// The time between two tasks before anybody was asked for more: the runtime's own time.
    pub switching: Duration,
    /// The time between two tasks while no rank that was asked had anything to give; all the time
    /// of a worker that never had a task, from the first task anywhere to the last.
    pub starving: Duration,
    /// A task of the worker waited in a join, and of the tasks it waited for none was there to be
    /// run.
    pub joins: Duration,
    /// The time between two tasks, or in a join, while a request that was to bring some was under
    /// way.
    pub answer: Duration,
    /// The time after a worker's last task.
    pub end: Duration,
    /// The part of [`Self::end`] after all tasks and bodies were done, wherever they were: the time
    /// it took to find that out, and to leave.
    pub detection: Duration,
}

impl Idle {
    /// Returns the idle time of all causes together.
    #[must_use]
    pub fn total(&self) -> Duration {
        self.waiting_first
            + self.body
            + self.switching
            + self.starving
            + self.joins
            + self.answer
            + self.end
    }

    fn add(&mut self, other: &Self) {
        self.waiting_first += other.waiting_first;
        self.unforked += other.unforked;
        self.body += other.body;
        self.switching += other.switching;
        self.starving += other.starving;
        self.joins += other.joins;
        self.answer += other.answer;
        self.end += other.end;
        self.detection += other.detection;
    }
}

/// Counts of stealing, of one rank or all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Steals {
    /// The number of requests sent.
    pub asked: u64,
    /// The number of answers that brought tasks.
    pub served: u64,
    /// The number of answers that brought none.
    pub refused: u64,
    /// The number of tasks that came from other ranks.
    pub tasks_in: u64,
    /// The number of tasks that went to other ranks.
    pub tasks_out: u64,
    /// The number of pieces that running tasks gave away.
    pub splits: u64,
    /// The time from requests to the answers that brought tasks, added up.
    pub latency: Duration,
}

impl Steals {
    fn add(&mut self, other: &Self) {
        self.asked += other.asked;
        self.served += other.served;
        self.refused += other.refused;
        self.tasks_in += other.tasks_in;
        self.tasks_out += other.tasks_out;
        self.splits += other.splits;
        self.latency += other.latency;
    }

    /// Returns the mean time from a request to the answer that brought tasks; zero if none did.
    #[must_use]
    pub fn mean_latency(&self) -> Duration {
        mean(self.latency, self.served)
    }
}

/// A stretch of time in which a worker has one task, from taking it up to setting it down.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stretch {
    /// The rank on which the task ran.
    pub rank: Rank,
    /// The worker of that rank which ran it.
    pub worker: usize,
    /// The name of its kind.
    pub kind: String,
    /// The time at which it was taken up, since the beginning of the scope.
    pub begin: Duration,
    /// The time at which it was set down, since the beginning of the scope.
    pub end: Duration,
    /// Its own time, without the time for which it waited in joins, whatever the worker did then.
    pub own: Duration,
    /// The number of pieces that it gave away meanwhile.
    pub splits: u32,
    /// Whether any task of its kind gave a piece away, on any rank: then tasks like it can be
    /// split.
    pub splittable: bool,
}

impl Stretch {
    /// How long it waited in joins, while its worker may have run other tasks.
    #[must_use]
    pub fn waited(&self) -> Duration {
        self.end.saturating_sub(self.begin + self.own)
    }
}

/// A time in which a task kept its rank from reading messages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deafness {
    /// The rank.
    pub rank: Rank,
    /// The name of the task's kind.
    pub kind: String,
    /// The time at which the rank read messages again, since the beginning of the scope.
    pub end: Duration,
    /// The time for which it had read none.
    pub time: Duration,
    /// The number of requests for tasks that waited for it.
    pub requests: u64,
    /// How often any rank read none for more than 10 ms.
    pub times: u64,
    /// The number of requests that waited in all of these times.
    pub requests_in_all: u64,
}

/// The uses and causes of one rank's time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RankAnalysis {
    /// The rank.
    pub rank: Rank,
    /// How many workers it has.
    pub workers: usize,
    /// The time that its workers spent in tasks that did not wait, added up.
    pub busy: Duration,
    /// The rest of their time.
    pub idle: Idle,
    /// Its requests, and what came of them.
    pub steals: Steals,
    /// How often a task was taken up.
    pub intervals: u64,
    /// The length in bytes of the blocks that it got from other ranks.
    pub fetched: u64,
}

/// The uses and causes of the time of a scope, on all ranks.
///
/// Clocks of ranks are assumed to agree, as in virtual time or within one process. Its text form
/// tells the story in sentences.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Analysis {
    /// The time from the first event on any rank to the last.
    pub makespan: Duration,
    /// Every rank, in the order its trace was given.
    pub ranks: Vec<RankAnalysis>,
    /// The number of workers of all ranks.
    pub workers: usize,
    /// The time that all workers spent in tasks that did not wait, which is what one worker would
    /// need if it needed nothing else.
    pub busy: Duration,
    /// The rest of their time.
    pub idle: Idle,
    /// Requests of all ranks.
    pub steals: Steals,
    /// How often a task was taken up.
    pub intervals: u64,
    /// The interval with the most time of its own.
    pub longest: Option<Stretch>,
    /// The interval that ended last; if there are several, the one that began first.
    pub last: Option<Stretch>,
    /// The rank whose body was the last to work outside of joins, and how long after the last task
    /// it did, if that was what the others waited for.
    pub last_body: Option<(Rank, Duration)>,
    /// The longest time for which a task kept its rank from answering others, if one did for long.
    /// If there are times in which somebody waited, it is the longest of these.
    pub deafness: Option<Deafness>,
    /// How ranks shared work, if the traces say so.
    pub sharing: Option<Sharing>,
    /// The number of events that found no room in a trace; if there are any, idle time is
    /// overstated.
    pub dropped: u64,
}

impl Analysis {
    /// Analyses the traces of all ranks of one scope.
    ///
    /// It takes n log n for n events. A begin without an end ends with its rank's trace, and an end
    /// without a begin counts for nothing.
    #[must_use]
    pub fn of(traces: &[Trace]) -> Self {
        let mut known = Known::default();
        let raw: Vec<Raw> = traces
            .iter()
            .map(|trace| Raw::of(trace, &mut known))
            .collect();
        let span = raw.iter().filter_map(|raw| raw.span);
        let begin = span.clone().map(|(begin, _)| begin).min().unwrap_or(0);
        let end = span.map(|(_, end)| end).max().unwrap_or(0);
        let last_task = known.last.as_ref().map_or(begin, |found| found.end);
        // A body that only took the last results, which were on their way, was not at work.
        let bodies = traces.iter().zip(&raw);
        let last_body = bodies
            .filter_map(|(trace, raw)| Some((raw.body.end()?, trace.rank, raw)))
            .max_by_key(|&(end, rank, _)| (end, rank))
            .filter(|&(end, _, raw)| {
                end > last_task && raw.body.within(last_task, end) * 2 >= end - last_task
            });
        let quiet = last_body.map_or(last_task, |(end, ..)| end);
        let moments = Moments {
            begin,
            first_task: known.first.unwrap_or(end),
            last_task,
            quiet,
            end,
        };

        let split = known.split;
        let name = |found: Found| {
            let trace = &traces[found.trace];
            let kind = trace.kinds.get(usize::from(found.kind));
            Stretch {
                rank: trace.rank,
                worker: found.worker,
                kind: kind
                    .cloned()
                    .unwrap_or_else(|| format!("kind {}", found.kind)),
                begin: ns(found.begin - begin),
                end: ns(found.end - begin),
                own: ns(found.own),
                splits: found.splits,
                splittable: split.contains(&found.kind),
            }
        };
        let mut analysis = Self {
            makespan: ns(end - begin),
            longest: known.longest.map(name),
            last: known.last.map(name),
            deafness: known.deafest.map(|found| {
                let trace = &traces[found.trace];
                let kind = trace.kinds.get(usize::from(found.kind));
                Deafness {
                    rank: trace.rank,
                    kind: kind
                        .cloned()
                        .unwrap_or_else(|| format!("kind {}", found.kind)),
                    end: ns(found.at - begin),
                    time: Duration::from_micros(u64::from(found.us)),
                    requests: u64::from(found.requests),
                    times: known.deaf_times,
                    requests_in_all: known.kept_waiting,
                }
            }),
            last_body: last_body.map(|(end, rank, _)| (rank, ns(end - last_task))),
            sharing: traces.iter().find_map(|trace| trace.sharing.clone()),
            dropped: traces
                .iter()
                .fold(0, |sum, trace| trace.dropped.saturating_add(sum)),
            ..Self::default()
        };
        for (trace, raw) in traces.iter().zip(&raw) {
            let rank = raw.divide(trace.rank, &moments);
            analysis.workers += rank.workers;
            analysis.busy += rank.busy;
            analysis.idle.add(&rank.idle);
            analysis.steals.add(&rank.steals);
            analysis.intervals += rank.intervals;
            analysis.ranks.push(rank);
        }
        analysis
    }

    /// Returns busy time over the time that there was, from 0 to 1; 1 for a scope that took none.
    #[must_use]
    pub fn efficiency(&self) -> f64 {
        self.share(self.busy).unwrap_or(1.0)
    }

    /// Returns the mean time of an interval; zero if there was none.
    #[must_use]
    pub fn mean_interval(&self) -> Duration {
        mean(self.busy, self.intervals)
    }

    /// Returns the time that the tasks would take if they were spread evenly: work / workers.
    #[must_use]
    pub fn work_bound(&self) -> Duration {
        mean(self.busy, self.workers as u64)
    }

    /// Returns the time that the longest interval takes by itself. Unless that task is split, no
    /// schedule is shorter.
    #[must_use]
    pub fn longest_bound(&self) -> Duration {
        self.longest
            .as_ref()
            .map_or(Duration::ZERO, |longest| longest.own)
    }

    /// Returns the share that a part has of all workers' time; `None` if there was no time.
    fn share(&self, part: Duration) -> Option<f64> {
        let all = self.makespan.as_secs_f64() * self.workers as f64;
        (all > 0.0).then(|| part.as_secs_f64() / all)
    }
}

fn ns(ns: u64) -> Duration {
    Duration::from_nanos(ns)
}

fn mean(sum: Duration, count: u64) -> Duration {
    if count == 0 {
        return Duration::ZERO;
    }
    sum.div_f64(count as f64)
}
