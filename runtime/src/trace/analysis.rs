//! Why a scope did not scale: every idle moment of every worker gets one cause.
//!
//! The span that is divided up is the same for all ranks, from the first event anywhere to the last, so
//! that parts add up: on each rank, busy and idle time are together workers × makespan.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Trace, What};
use crate::comm::Rank;

/// Efficiency from which on there is nothing to explain.
const GOOD: f64 = 0.9;
/// Share of the time below which a cause is no reason for advice.
const MINOR: f64 = 0.05;

/// Idle time of workers by its cause; the sum over workers, so that 8 workers lose 8 s in a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Idle {
    /// Before a worker's first task.
    pub waiting_first: Duration,
    /// Worker 0 was held by the body, which did its own work outside of joins.
    pub body: Duration,
    /// Between two tasks, before anybody was asked for more: the runtime's own time.
    pub switching: Duration,
    /// Between two tasks, while nobody asked had anything to give; all the time of a worker that never had
    /// a task, up to the last task anywhere.
    pub starving: Duration,
    /// Between two tasks, while a request that was to bring some was under way.
    pub answer: Duration,
    /// After a worker's last task.
    pub end: Duration,
    /// The part of [`Self::end`] after all tasks and bodies were done, wherever they were: the time it
    /// took to find that out, and to leave.
    pub detection: Duration,
}

impl Idle {
    /// All of it.
    #[must_use]
    pub fn total(&self) -> Duration {
        self.waiting_first + self.body + self.switching + self.starving + self.answer + self.end
    }

    fn add(&mut self, other: &Self) {
        self.waiting_first += other.waiting_first;
        self.body += other.body;
        self.switching += other.switching;
        self.starving += other.starving;
        self.answer += other.answer;
        self.end += other.end;
        self.detection += other.detection;
    }
}

/// Counts of stealing, of one rank or all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Steals {
    /// Requests sent.
    pub asked: u64,
    /// Answers that brought tasks.
    pub served: u64,
    /// Answers that brought none.
    pub refused: u64,
    /// Tasks that came from other ranks.
    pub tasks_in: u64,
    /// Tasks that went to other ranks.
    pub tasks_out: u64,
    /// Pieces that running tasks gave away.
    pub splits: u64,
    /// Time from requests to the answers that brought tasks, added up.
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

    /// Mean time from a request to the answer that brought tasks; zero if none did.
    #[must_use]
    pub fn mean_latency(&self) -> Duration {
        mean(self.latency, self.served)
    }
}

/// A task on a worker, from being taken up to being set down.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stretch {
    /// Where it ran.
    pub rank: Rank,
    /// On which of that rank's workers.
    pub worker: usize,
    /// The name of its kind.
    pub kind: String,
    /// When it was taken up, since the beginning of the scope.
    pub begin: Duration,
    /// When it was set down, since the beginning of the scope.
    pub end: Duration,
    /// Its own time: without tasks that the worker ran within it.
    pub own: Duration,
    /// Pieces it gave away meanwhile.
    pub splits: u32,
}

/// What one rank's time went into.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RankAnalysis {
    /// The rank.
    pub rank: Rank,
    /// How many workers it has.
    pub workers: usize,
    /// Time its workers spent in tasks, added up.
    pub busy: Duration,
    /// Time they did not.
    pub idle: Idle,
    /// Its requests, and what came of them.
    pub steals: Steals,
    /// How often a task was taken up.
    pub intervals: u64,
    /// Data it got from other ranks, in bytes.
    pub fetched: u64,
}

/// Where the time of a scope went, on all ranks.
///
/// Clocks of ranks are assumed to agree, as in virtual time or within one process. Its text form tells the
/// story in sentences.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Analysis {
    /// From the first event on any rank to the last.
    pub makespan: Duration,
    /// Every rank, in the order its trace was given.
    pub ranks: Vec<RankAnalysis>,
    /// Workers of all ranks.
    pub workers: usize,
    /// Time all workers spent in tasks: what one worker would need, if it needed nothing else.
    pub busy: Duration,
    /// Time they did not.
    pub idle: Idle,
    /// Requests of all ranks.
    pub steals: Steals,
    /// How often a task was taken up.
    pub intervals: u64,
    /// The interval with the most time of its own.
    pub longest: Option<Stretch>,
    /// The interval that ended last; of several, the one that began first.
    pub last: Option<Stretch>,
    /// The rank whose body was the last to work outside of joins, and how long after the last task it
    /// did, if that was what the others waited for.
    pub last_body: Option<(Rank, Duration)>,
    /// Ranks that died, as others noticed.
    pub died: Vec<Rank>,
    /// Events that found no room in a trace; if there are any, idle time is overstated.
    pub dropped: u64,
}

/// What to try when one cause outweighs the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Hint {
    /// One task takes more than half the makespan, and gave nothing away.
    LongTask,
    /// The same, but it was split.
    LongTaskThoughSplit,
    /// Ranks were refused although one was busy throughout.
    GivesTooLittle,
    /// No rank asked another for tasks.
    NobodyAsks,
    /// Nobody had anything to give.
    TooLittleWork,
    /// Ranks had their first task late.
    SlowStart,
    /// Bodies did work of their own.
    BodyWorks,
    /// Much time goes by between tasks.
    SmallTasks,
    /// Answers took long.
    SlowAnswers,
    /// Ranks waited for the last tasks.
    LateTask,
    /// To find the end took long.
    SlowEnd,
}

impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::LongTask => {
                "the longest task takes more than half of the whole time: make it splittable: implement \
                 Task::split or hyperfork"
            }
            Self::LongTaskThoughSplit => {
                "the longest task takes more than half of the whole time although it was split: let \
                 Task::split give more away, or return from Task::run more often"
            }
            Self::GivesTooLittle => {
                "requests were refused while a rank was busy throughout: the policy gives too little away \
                 at a time; try split=every-other"
            }
            Self::NobodyAsks => {
                "no rank asked another for tasks: let ranks steal, or fork tasks on every rank"
            }
            Self::TooLittleWork => {
                "there were too few tasks for so many workers: take fewer, a larger problem, or make more \
                 and smaller tasks"
            }
            Self::SlowStart => {
                "ranks had to wait for their first task: fork tasks on every rank, and the first ones \
                 before anything else"
            }
            Self::BodyWorks => {
                "bodies work outside of joins, where they run no tasks: put that work into tasks"
            }
            Self::SmallTasks => {
                "much time goes by between tasks of the same rank: do more in each task"
            }
            Self::SlowAnswers => {
                "answers to requests take long: let tasks return from Task::run more often, so that \
                 their rank can answer, and give more away at a time"
            }
            Self::LateTask => {
                "ranks waited for the last tasks: fork the longest tasks first, or make them splittable: \
                 implement Task::split or hyperfork"
            }
            Self::SlowEnd => {
                "it takes long to find out that all is done: there is too little work in a scope for so \
                 many ranks; put more into one scope, or take fewer"
            }
        })
    }
}

impl Analysis {
    /// What the traces of all ranks say about one scope.
    ///
    /// Takes n log n for n events. What had not ended ends with its rank's trace; ends that never began
    /// count for nothing.
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
        // A body that only took the last results was not at work: they were on their way.
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
            last_task,
            quiet,
            end,
        };

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
            }
        };
        known.died.sort_unstable();
        known.died.dedup();
        let mut analysis = Self {
            makespan: ns(end - begin),
            longest: known.longest.map(name),
            last: known.last.map(name),
            last_body: last_body.map(|(end, rank, _)| (rank, ns(end - last_task))),
            died: known.died.into_iter().map(Rank).collect(),
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

    /// Busy time over the time there was, 0 to 1; 1 for a scope that took none.
    #[must_use]
    pub fn efficiency(&self) -> f64 {
        self.share(self.busy).unwrap_or(1.0)
    }

    /// Mean time of an interval; zero if there was none.
    #[must_use]
    pub fn mean_interval(&self) -> Duration {
        mean(self.busy, self.intervals)
    }

    /// Time that the tasks would take if they were spread evenly: work / workers.
    #[must_use]
    pub fn work_bound(&self) -> Duration {
        mean(self.busy, self.workers as u64)
    }

    /// Time that the longest interval takes by itself: no schedule of the same tasks is shorter.
    #[must_use]
    pub fn longest_bound(&self) -> Duration {
        self.longest
            .as_ref()
            .map_or(Duration::ZERO, |longest| longest.own)
    }

    /// What to try, if efficiency is below 90 % and one cause stands out.
    #[must_use]
    pub fn hint(&self) -> Option<Hint> {
        if self.efficiency() >= GOOD || self.workers < 2 {
            return None;
        }
        if let Some(longest) = &self.longest
            && longest.own > self.makespan / 2
        {
            return Some(match longest.splits {
                0 => Hint::LongTask,
                _ => Hint::LongTaskThoughSplit,
            });
        }
        let idle = &self.idle;
        let starving = || {
            let throughout = |rank: &RankAnalysis| {
                let time = self.makespan.as_secs_f64() * rank.workers as f64;
                rank.busy.as_secs_f64() >= GOOD * time
            };
            if self.steals.asked == 0 && self.ranks.len() > 1 {
                Hint::NobodyAsks
            } else if self.steals.refused * 2 > self.steals.asked
                && self.ranks.iter().any(throughout)
            {
                Hint::GivesTooLittle
            } else {
                Hint::TooLittleWork
            }
        };
        let last = self.last.as_ref();
        let last_task = last.map_or(Duration::ZERO, |last| last.end.saturating_sub(last.begin));
        let late = match self.last_body {
            Some((_, time)) if time > last_task => Hint::BodyWorks,
            _ => Hint::LateTask,
        };
        let causes = [
            (idle.starving, starving()),
            (idle.end.saturating_sub(idle.detection), late),
            (idle.waiting_first, Hint::SlowStart),
            (idle.answer, Hint::SlowAnswers),
            (idle.body, Hint::BodyWorks),
            (idle.switching, Hint::SmallTasks),
            (idle.detection, Hint::SlowEnd),
        ];
        let (time, hint) = causes.into_iter().max_by_key(|&(time, _)| time)?;
        // Among many small causes none is worth advice.
        let stands_out = self.share(time)? >= MINOR && time * 3 >= idle.total();
        stands_out.then_some(hint)
    }

    /// A part of all workers' time; `None` if there was none.
    fn share(&self, part: Duration) -> Option<f64> {
        let all = self.makespan.as_secs_f64() * self.workers as f64;
        (all > 0.0).then(|| part.as_secs_f64() / all)
    }

    /// The sentence on where the time went, cause by cause; what is less than half a percent is left out.
    fn causes(&self) -> Vec<String> {
        let percent = |part: Duration| {
            let percent = (self.share(part).unwrap_or(0.0) * 100.0).round();
            (percent >= 1.0).then_some(percent)
        };
        let mut parts = Vec::new();
        let mut say = |part: Duration, text: &dyn Fn() -> String| {
            if let Some(percent) = percent(part) {
                parts.push(format!("{percent} % {}", text()));
            }
        };
        let (idle, steals) = (&self.idle, &self.steals);
        say(idle.waiting_first, &|| {
            "of the time went before ranks had their first task".to_owned()
        });
        say(idle.body, &|| "in bodies outside of joins".to_owned());
        say(idle.switching, &|| {
            "between tasks, before anybody was asked for more".to_owned()
        });
        say(idle.starving, &|| match steals.asked {
            0 => "idle while nobody was asked for anything".to_owned(),
            asked => format!(
                "idle while nobody had anything to give ({} of {} requests refused)",
                Count(steals.refused),
                Count(asked)
            ),
        });
        say(idle.answer, &|| {
            format!(
                "waiting for answers that brought tasks ({} on average)",
                Time(steals.mean_latency())
            )
        });
        say(idle.end.saturating_sub(idle.detection), &|| {
            let task = self.last.as_ref().map(|last| {
                let split = match last.splits {
                    0 => "never split".to_owned(),
                    1 => "split once".to_owned(),
                    n => format!("split {n} times"),
                };
                let time = Time(last.end.saturating_sub(last.begin));
                format!(
                    " while rank {} finished one task of {time} that was {split}",
                    last.rank.0
                )
            });
            let body = self.last_body.map(|(rank, time)| {
                format!(
                    " while the body of rank {} was at work for {}",
                    rank.0,
                    Time(time)
                )
            });
            let until: Vec<String> = task.into_iter().chain(body).collect();
            let until = until.join(", and then");
            format!("at the end{until}")
        });
        if let Some(percent) = percent(idle.detection) {
            let detection = format!("detection {percent} %");
            match parts.last_mut() {
                Some(last) => {
                    last.push_str("; ");
                    last.push_str(&detection);
                }
                None => parts.push(detection),
            }
        }
        parts
    }
}

impl fmt::Display for Analysis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.dropped > 0 {
            writeln!(
                f,
                "{} events found no room and are missing: idle time is overstated; record with more room.",
                Count(self.dropped)
            )?;
        }
        for rank in &self.died {
            writeln!(f, "Rank {} died.", rank.0)?;
        }
        if self.makespan.is_zero() {
            return f.write_str("Nothing happened.");
        }
        write!(
            f,
            "Efficiency {:.0} % on {}",
            self.efficiency() * 100.0,
            Many(self.ranks.len() as u64, "rank")
        )?;
        if self.workers != self.ranks.len() {
            write!(f, " with {}", Many(self.workers as u64, "worker"))?;
        }
        write!(f, " in {}", Time(self.makespan))?;
        let causes = self.causes();
        if !causes.is_empty() {
            write!(f, ": {}", causes.join(", "))?;
        }
        f.write_str(".")?;
        let Some(longest) = &self.longest else {
            return f.write_str("\nNo task ran.");
        };
        write!(
            f,
            "\nTasks ran in {} of {} on average; the longest, `{}` on rank {} worker {}, took {}.",
            Many(self.intervals, "interval"),
            Time(self.mean_interval()),
            longest.kind,
            longest.rank.0,
            longest.worker,
            Time(longest.own),
        )?;
        let steals = &self.steals;
        if steals.asked > 0 || steals.splits > 0 {
            write!(
                f,
                " {} brought {}; tasks were split {}.",
                Many(steals.asked, "request"),
                Many(steals.tasks_in, "task"),
                Many(steals.splits, "time"),
            )?;
        }
        write!(
            f,
            "\nNo schedule of these tasks takes less than {}: all work on {} is {}, the longest task {}.",
            Time(self.work_bound().max(self.longest_bound())),
            Many(self.workers as u64, "worker"),
            Time(self.work_bound()),
            Time(self.longest_bound()),
        )?;
        if let Some(hint) = self.hint() {
            write!(f, "\nHint: {hint}.")?;
        }
        Ok(())
    }
}

/// An interval as it is found, in ns of the clock.
#[derive(Clone, Copy)]
struct Found {
    /// Index of the trace.
    trace: usize,
    worker: usize,
    kind: u16,
    begin: u64,
    end: u64,
    own: u64,
    splits: u32,
}

/// What is known of all ranks together so far.
#[derive(Default)]
struct Known {
    traces: usize,
    longest: Option<Found>,
    last: Option<Found>,
    died: Vec<u32>,
}

impl Known {
    fn interval(&mut self, found: Found) {
        if self.longest.is_none_or(|longest| found.own > longest.own) {
            self.longest = Some(found);
        }
        let later = |last: Found| (found.end, last.begin) > (last.end, found.begin);
        if self.last.is_none_or(later) {
            self.last = Some(found);
        }
    }
}

/// Moments of the whole scope, in ns of the clock.
struct Moments {
    begin: u64,
    /// The end of the last task anywhere.
    last_task: u64,
    /// The end of tasks and of bodies' own work, everywhere.
    quiet: u64,
    end: u64,
}

/// A task that a worker has taken up and not set down.
struct Frame {
    kind: u16,
    begin: u64,
    /// Time of tasks within it.
    inner: u64,
    splits: u32,
}

/// Disjoint spans of time in order, in ns, with what they measure.
#[derive(Default)]
struct Spans {
    spans: Vec<(u64, u64)>,
    /// Total length of the spans before each.
    before: Vec<u64>,
}

impl Spans {
    /// The union of spans in any order.
    fn union(mut parts: Vec<(u64, u64)>) -> Self {
        parts.sort_unstable();
        let mut spans: Vec<(u64, u64)> = Vec::new();
        for (begin, end) in parts {
            match spans.last_mut() {
                Some(last) if begin <= last.1 => last.1 = last.1.max(end),
                _ => spans.push((begin, end)),
            }
        }
        let before = spans
            .iter()
            .scan(0, |sum, (begin, end)| {
                let before = *sum;
                *sum += end - begin;
                Some(before)
            })
            .collect();
        Self { spans, before }
    }

    fn end(&self) -> Option<u64> {
        self.spans.last().map(|&(_, end)| end)
    }

    /// How much of the time before `at` they cover.
    fn until(&self, at: u64) -> u64 {
        let begun = self.spans.partition_point(|&(begin, _)| begin < at);
        let Some(index) = begun.checked_sub(1) else {
            return 0;
        };
        let (begin, end) = self.spans[index];
        self.before[index] + end.min(at) - begin
    }

    /// How much of a piece of time they cover.
    fn within(&self, begin: u64, end: u64) -> u64 {
        self.until(end) - self.until(begin)
    }

    /// The first moment from `at` on that they cover.
    fn next(&self, at: u64) -> Option<u64> {
        let index = self.spans.partition_point(|&(_, end)| end <= at);
        self.spans.get(index).map(|&(begin, _)| begin.max(at))
    }

    /// What they leave of a piece of time.
    fn gaps(&self, begin: u64, end: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        let index = self.spans.partition_point(|&(_, e)| e <= begin);
        let holes = self.spans[index..].iter();
        let holes = holes.take_while(move |&&(b, _)| b < end).copied();
        let mut from = begin;
        holes.chain([(end, end)]).filter_map(move |(b, e)| {
            let gap = (from, b.max(from));
            from = e;
            (gap.0 < gap.1).then_some(gap)
        })
    }
}

/// What one trace says by itself.
struct Raw {
    /// The times of the first and last events.
    span: Option<(u64, u64)>,
    /// When each worker ran tasks.
    busy: Vec<Spans>,
    /// When the body worked outside of joins.
    body: Spans,
    /// When requests were under way.
    requests: Spans,
    /// The same of requests that brought tasks.
    served: Spans,
    steals: Steals,
    intervals: u64,
    fetched: u64,
}

impl Raw {
    fn of(trace: &Trace, known: &mut Known) -> Self {
        let number = known.traces;
        known.traces += 1;
        let events = trace.in_order();
        let span = events.first().zip(events.last()).map(|(a, b)| (a.at, b.at));
        let end = span.map_or(0, |(_, end)| end);
        let workers = trace.all_workers();
        let mut stacks: Vec<Vec<Frame>> = Vec::new();
        stacks.resize_with(workers, Vec::new);
        let mut busy = vec![Vec::new(); workers];
        let mut intervals = 0;
        let mut set_down = |stack: &mut Vec<Frame>, worker: usize, at: u64| {
            let Some(frame) = stack.pop() else {
                return;
            };
            let length = at - frame.begin;
            match stack.last_mut() {
                Some(outer) => outer.inner += length,
                None => busy[worker].push((frame.begin, at)),
            }
            intervals += 1;
            known.interval(Found {
                trace: number,
                worker,
                kind: frame.kind,
                begin: frame.begin,
                end: at,
                own: length - frame.inner,
                splits: frame.splits,
            });
        };
        let mut steals = Steals::default();
        let (mut requests, mut served) = (Vec::new(), Vec::new());
        let mut under_way: HashMap<u32, VecDeque<u64>> = HashMap::new();
        let mut fetched = 0;
        let mut died = Vec::new();
        let mut body = Vec::new();
        // When the body was last known to go on by itself. After its last join it may have returned.
        let mut body_since = span.map(|(begin, _)| begin);
        for event in events.iter() {
            let at = event.at;
            match event.what {
                What::TaskBegin { worker, kind } => stacks[usize::from(worker)].push(Frame {
                    kind,
                    begin: at,
                    inner: 0,
                    splits: 0,
                }),
                What::TaskEnd { worker, .. } => {
                    // An end that never began may name a worker that is not there.
                    let worker = usize::from(worker);
                    if let Some(stack) = stacks.get_mut(worker) {
                        set_down(stack, worker, at);
                    }
                }
                What::Split { worker } => {
                    steals.splits += 1;
                    let stack = stacks.get_mut(usize::from(worker));
                    if let Some(frame) = stack.and_then(|stack| stack.last_mut()) {
                        frame.splits = frame.splits.saturating_add(1);
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
                What::Gave { tasks, .. } => steals.tasks_out += u64::from(tasks),
                What::Fetched { bytes } => fetched += u64::from(bytes),
                What::ScopeBegin => body_since = Some(at),
                What::JoinBegin => {
                    let worked = body_since.take().filter(|&since| since < at);
                    body.extend(worked.map(|since| (since, at)));
                }
                What::JoinEnd => body_since = Some(at),
                What::Died { rank } => died.push(rank),
                What::Results { .. }
                | What::Fetch { .. }
                | What::Cancelled
                | What::ScopeEnd
                | What::Dry => {}
            }
        }
        for (worker, stack) in stacks.iter_mut().enumerate() {
            while !stack.is_empty() {
                set_down(stack, worker, end);
            }
        }
        known.died.extend(died);
        // Never answered: it was under way to the end.
        requests.extend(under_way.into_values().flatten().map(|at| (at, end)));
        Self {
            span,
            busy: busy.into_iter().map(Spans::union).collect(),
            body: Spans::union(body),
            requests: Spans::union(requests),
            served: Spans::union(served),
            steals,
            intervals,
            fetched,
        }
    }

    /// Divides the whole span among causes.
    fn divide(&self, rank: Rank, moments: &Moments) -> RankAnalysis {
        let mut busy = Duration::ZERO;
        let mut idle = Idle::default();
        for (worker, spans) in self.busy.iter().enumerate() {
            busy += ns(spans.until(moments.end));
            let whole = (moments.begin, moments.end);
            for (begin, end) in spans.gaps(whole.0, whole.1) {
                let cause = match spans.spans.last() {
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
            Cause::First => idle.waiting_first += ns(length),
            Cause::End => {
                idle.end += ns(length);
                idle.detection += ns(end - moments.quiet.clamp(begin, end));
            }
            Cause::NoTask => {
                let ended = moments.last_task.clamp(begin, end);
                idle.starving += ns(ended - begin);
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
    End,
    /// The worker never had a task.
    NoTask,
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

/// A time for people: two digits or more, in a unit that fits.
struct Time(Duration);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.0.as_nanos() as f64;
        let units = [(1e9, "s"), (1e6, "ms"), (1e3, "µs")];
        let unit = units.into_iter().find(|&(unit, _)| ns >= unit);
        let Some((unit, name)) = unit else {
            return write!(f, "{ns} ns");
        };
        let number = ns / unit;
        let digits = usize::from(number < 99.95);
        write!(f, "{number:.digits$} {name}")
    }
}

/// A number for people: 12,345.
struct Count(u64);

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        for (index, digit) in digits.chars().enumerate() {
            if index > 0 && (digits.len() - index).is_multiple_of(3) {
                f.write_str(",")?;
            }
            write!(f, "{digit}")?;
        }
        Ok(())
    }
}

/// So many of something.
struct Many(u64, &'static str);

impl fmt::Display for Many {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.0 == 1 { "" } else { "s" };
        write!(f, "{} {}{plural}", Count(self.0), self.1)
    }
}
