//! Traces of a run: what each rank did when, gathered at the end into one file.
//!
//! Every rank records into its own bounded [`Timeline`]: the step and its phases, waits for messages in them,
//! the collision scope event by event, some counters. The step itself knows nothing of this: its phases are
//! in its report, its waits are seen from outside ([`super::waits`]).
//! Clocks are compared at the start and at the end. Ranks may run on hosts that share no files, so at the end
//! rank 0 gathers all and writes it: to each rank a file, by its own clock, and the merged one.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use weft_report::advice;
use weft_runtime::comm::{
    ClockMap, ClockReading, Collectives as _, Comm, CommError, Rank, Tag, collective_name,
    read_clocks,
};
use weft_runtime::trace::{Analysis, Deafness, Sample, Span, SpanKind, Timeline, Trace};
use weft_runtime::wire;

use super::{RunError, RunOptions, waits};
use crate::output::{
    OutputError, RunDirectory, RunRecord, this_host, write_rank_trace, write_trace,
};
use crate::step::{PHASES, Simulation, StepError, StepReport, exchange_name};

/// Most events of a rank, 24 bytes each.
const ROOM: usize = 1 << 18;
/// Most events of all ranks: rank 0 holds them at the end, and a viewer has to.
const ROOM_IN_ALL: usize = 1 << 22;

/// Which steps are traced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceSteps {
    /// The first, counted from 1.
    from: u64,
    /// The last.
    to: u64,
}

impl TraceSteps {
    /// All steps.
    pub const ALL: Self = Self {
        from: 1,
        to: u64::MAX,
    };

    /// These, both included.
    #[must_use]
    pub fn between(from: u64, to: u64) -> Self {
        Self { from, to }
    }

    /// The first.
    #[must_use]
    pub fn from(&self) -> u64 {
        self.from
    }

    /// The last; `u64::MAX` if it is that of the run.
    #[must_use]
    pub fn to(&self) -> u64 {
        self.to
    }

    /// Whether a step is among them.
    #[must_use]
    pub fn contains(&self, step: u64) -> bool {
        (self.from..=self.to).contains(&step)
    }
}

/// Why some text says nothing about steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("wants steps, counted from 1: FROM..TO (both count), FROM.., ..TO, or one number")]
pub struct NoSteps;

impl FromStr for TraceSteps {
    type Err = NoSteps;

    fn from_str(text: &str) -> Result<Self, NoSteps> {
        let number = |text: &str, default: u64| match text.trim() {
            "" => Ok(default),
            digits => digits.parse().map_err(|_| NoSteps),
        };
        let (from, to) = match text.split_once("..") {
            Some((from, to)) => (number(from, 1)?, number(to, u64::MAX)?),
            None => {
                let step = number(text, 0)?;
                (step, step)
            }
        };
        if from == 0 || to < from {
            return Err(NoSteps);
        }
        Ok(Self { from, to })
    }
}

impl fmt::Display for TraceSteps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self { from, to } if from == to => write!(f, "{from}"),
            Self { from, to: u64::MAX } => write!(f, "{from}.."),
            Self { from, to } => write!(f, "{from}..{to}"),
        }
    }
}

/// What came of tracing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TraceSummary {
    /// The first and last steps that were traced, if any were.
    pub steps: Option<(u64, u64)>,
    /// Of these, the first and the last that are whole on all ranks, if any are.
    pub whole: Option<(u64, u64)>,
    /// Events that were kept.
    pub events: u64,
    /// Events that found no room.
    pub dropped: u64,
    /// How far the aligned clocks of two ranks may be apart.
    pub clock_error: Duration,
    /// Where the time of the longest collision phase went, in words.
    pub story: Option<String>,
}

/// Records one rank of a run.
#[derive(Debug)]
pub(super) struct Tracer {
    timeline: Timeline,
    steps: TraceSteps,
    start: ClockReading,
    /// When the last traced step ended, while what follows it goes on.
    outputs_since: Option<Duration>,
}

/// Kinds of spans, in the order of [`kinds`].
const STEP: u16 = 0;
const OUTPUTS: u16 = 1;
const FIRST_PHASE: u16 = 2;
const FIRST_WAIT: u16 = FIRST_PHASE + PHASES.len() as u16;
/// What can be waited for.
const WAITS: [&str; 11] = [
    "other message",
    "barrier",
    "broadcast",
    "gather",
    "allgather",
    "exchange",
    "cells beside tiles",
    "solve halo",
    "impulse rows",
    "response halo",
    "motion halo",
];
const COUNTERS: [&str; 4] = ["tests", "CG iterations", "contacts", "impulses"];
/// Events that frame a step: itself, its phases, of which one comes twice, counters, and the outputs after it.
const FRAME: usize = 3 + PHASES.len() + COUNTERS.len();

fn kinds() -> Vec<SpanKind> {
    let kind = |name: String, detail: &str| SpanKind {
        name,
        detail: detail.to_owned(),
    };
    let mut kinds = vec![
        kind("step".to_owned(), "number"),
        kind("outputs".to_owned(), ""),
    ];
    kinds.extend(PHASES.map(|name| kind(name.to_owned(), phase_detail(name))));
    kinds.extend(WAITS.map(|name| kind(format!("wait: {name}"), "rank")));
    kinds
}

/// What a phase is described by.
fn phase_detail(name: &str) -> &'static str {
    match name {
        "collide" => "contacts",
        "solve" => "iterations",
        "respond" => "impulses",
        _ => "",
    }
}

fn wait_kind(tag: Tag) -> u16 {
    let name = exchange_name(tag).or_else(|| collective_name(tag));
    let at = WAITS.iter().position(|wait| Some(*wait) == name);
    FIRST_WAIT + at.unwrap_or(0) as u16
}

impl Tracer {
    /// Begins to record, if that was asked for. Collective then: clocks are compared.
    pub(super) fn start(
        options: &RunOptions,
        comm: &mut dyn Comm,
    ) -> Result<Option<Self>, RunError> {
        let Some(steps) = options.trace else {
            return Ok(None);
        };
        let room = ROOM.min(ROOM_IN_ALL / comm.size());
        let counters = COUNTERS.map(str::to_owned).to_vec();
        let mut timeline = Timeline::new(comm.rank(), kinds(), counters, room);
        timeline.host = match options.hosts.get(comm.rank().index()) {
            Some(host) => host.clone(),
            None => this_host(),
        };
        Ok(Some(Self {
            timeline,
            steps,
            start: read_clocks(comm)?,
            outputs_since: None,
        }))
    }

    /// Takes a step, and records it if it is one to be traced; adds to `waited` how long its rank waited in it. Collective.
    pub(super) fn advance(
        &mut self,
        simulation: &mut Simulation<'_>,
        comm: &mut dyn Comm,
        waited: &mut Duration,
    ) -> Result<StepReport, StepError> {
        self.end_outputs(comm);
        let step = simulation.step() + 1;
        if !self.steps.contains(step) {
            return waits::advance(simulation, comm, waited, &mut |_, _, _, _| {});
        }
        self.timeline.owe(FRAME);
        simulation.record(Some(self.timeline.lend()));
        let timeline = &mut self.timeline;
        let mut told = |tag: Tag, from: Rank, begin: Duration, end: Duration| {
            timeline.span(span(wait_kind(tag), begin, end, from.0.into()));
        };
        let outcome = waits::advance(simulation, comm, waited, &mut told);
        simulation.record(None);
        let mut report = outcome?;
        if let Some(trace) = report.scope.trace.take() {
            self.timeline.add_scope(step, trace);
        }
        self.outputs_since = Some(self.frame(step, &report));
        Ok(report)
    }

    /// The step, its phases and its counters; returns when it ended.
    fn frame(&mut self, step: u64, report: &StepReport) -> Duration {
        let iterations = u64::from(report.iterations);
        let mut begin = report.began;
        let [collide, assemble, solve, respond, share] = report.times;
        let spans = [
            (0, collide),
            (1, assemble.saturating_sub(report.ahead)),
            (2, solve),
            (3, respond),
            (1, report.ahead),
            (4, share),
        ];
        for (phase, time) in spans {
            if phase == 1 && time.is_zero() {
                continue;
            }
            let kind = FIRST_PHASE + phase;
            let detail = match phase_detail(PHASES[usize::from(phase)]) {
                "contacts" => report.contacts,
                "iterations" => iterations,
                "impulses" => report.impulses,
                _ => 0,
            };
            self.timeline.frame(span(kind, begin, begin + time, detail));
            begin += time;
        }
        self.timeline.frame(span(STEP, report.began, begin, step));
        let values = [
            report.scope.work,
            iterations,
            report.contacts,
            report.impulses,
        ];
        for (counter, value) in (0..).zip(values) {
            self.timeline.frame_sample(Sample {
                at: nanos(report.began),
                counter,
                value,
            });
        }
        begin
    }

    fn end_outputs(&mut self, comm: &dyn Comm) {
        if let Some(since) = self.outputs_since.take() {
            self.timeline.frame(span(OUTPUTS, since, comm.now(), 0));
        }
    }

    /// Compares clocks again and gathers all traces, on rank 0. Collective.
    pub(super) fn finish(
        mut self,
        comm: &mut dyn Comm,
    ) -> Result<Option<(TraceSummary, Traces)>, RunError> {
        self.end_outputs(comm);
        self.timeline.clock = ClockMap::new(self.start, read_clocks(comm)?);
        let own = wire::encode(&self.timeline);
        let own = own.map_err(CommError::unsendable(comm.rank(), "its trace"))?;
        drop(self);
        let gathered = comm.gather(Rank(0), own)?;
        let Some(encoded) = gathered else {
            return Ok(None);
        };
        let mut timelines: Vec<Timeline> = Vec::with_capacity(encoded.len());
        for (rank, bytes) in (0..).map(Rank).zip(&encoded) {
            timelines.push(wire::decode(bytes).map_err(super::malformed(rank))?);
        }
        timelines.iter_mut().for_each(Timeline::align);
        let summary = summary(&timelines, comm.has_threads());
        Ok(Some((summary, Traces { encoded, timelines })))
    }
}

/// What all ranks recorded, on rank 0, not written yet: what was measured is written before.
#[derive(Debug)]
pub(super) struct Traces {
    /// By rank, as it was sent, by its own clock.
    encoded: Vec<Vec<u8>>,
    /// By the first rank's clock.
    timelines: Vec<Timeline>,
}

impl Traces {
    /// Writes a file for each rank, then all in one.
    pub(super) fn write(
        self,
        directory: &RunDirectory,
        record: &RunRecord,
    ) -> Result<(), OutputError> {
        for (rank, bytes) in (0..).map(Rank).zip(self.encoded) {
            write_rank_trace(directory, &record.run, rank, &bytes)?;
        }
        write_trace(directory, &self.timelines)?;
        Ok(())
    }
}

/// `threads`: whether ranks may have some beside their workers.
fn summary(timelines: &[Timeline], threads: bool) -> TraceSummary {
    let steps = timelines.iter().flat_map(|timeline| &timeline.scopes);
    let steps = steps.map(|(step, _)| *step);
    let mut errors: Vec<Duration> = timelines.iter().map(|t| t.clock.error()).collect();
    errors.sort_unstable();
    TraceSummary {
        steps: steps.clone().min().zip(steps.max()),
        whole: Timeline::whole(timelines),
        events: timelines.iter().map(Timeline::events).sum(),
        dropped: timelines.iter().map(Timeline::dropped_in_all).sum(),
        clock_error: errors.iter().rev().take(2).sum(),
        story: story(timelines, threads),
    }
}

/// The longest collision phase that was traced whole, explained; and the task that kept a rank from
/// answering for longest, if one did for long.
fn story(timelines: &[Timeline], threads: bool) -> Option<String> {
    let scopes = timelines.first()?.scopes.iter().map(|(step, _)| *step);
    let analysed = scopes.filter_map(|step| {
        let of_step = |timeline: &Timeline| {
            // They are in ascending order.
            let at = timeline
                .scopes
                .binary_search_by_key(&step, |(n, _)| *n)
                .ok()?;
            let (_, trace) = &timeline.scopes[at];
            (trace.dropped == 0).then(|| trace.clone())
        };
        let traces: Option<Vec<Trace>> = timelines.iter().map(of_step).collect();
        Some((step, Analysis::of(&traces?)))
    });
    let mut longest: Option<(u64, Analysis)> = None;
    let mut deafest: Option<(u64, Deafness)> = None;
    for (step, analysis) in analysed {
        if let Some(deaf) = analysis.deafness.clone().filter(|deaf| deaf.requests > 0)
            && (deafest.as_ref()).is_none_or(|(_, most)| deaf.time > most.time)
        {
            deafest = Some((step, deaf));
        }
        if (longest.as_ref()).is_none_or(|(_, most)| analysis.makespan > most.makespan) {
            longest = Some((step, analysis));
        }
    }
    let (step, analysis) = longest?;
    let mut text = format!(
        "The longest collision phase, of step {step}: {}",
        analysis.story()
    );
    if let Some(advice) = advice(&analysis, threads) {
        text.push_str(&format!("\nHint: {advice}."));
    }
    if let Some((other, deaf)) = deafest.filter(|(other, _)| *other != step) {
        text.push_str(&format!(
            "\nIn step {other} rank {} read no messages for {:.1} ms while it ran `{}`.",
            deaf.rank.0,
            deaf.time.as_secs_f64() * 1e3,
            deaf.kind,
        ));
    }
    Some(text)
}

fn span(kind: u16, begin: Duration, end: Duration, detail: u64) -> Span {
    Span {
        begin: nanos(begin),
        end: nanos(end),
        kind,
        detail: u32::try_from(detail).unwrap_or(u32::MAX),
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_read_and_nonsense_is_refused() {
        let steps = |text: &str| text.parse::<TraceSteps>();
        assert_eq!(steps("1.."), Ok(TraceSteps::ALL));
        assert_eq!(steps(".."), Ok(TraceSteps::ALL));
        let some = steps("100..110").unwrap();
        assert!(some.contains(100) && some.contains(110));
        assert!(!some.contains(99) && !some.contains(111));
        assert_eq!(steps("7"), steps("7..7"));
        assert_eq!(steps("..3"), steps("1..3"));
        for text in [
            "", "0", "0..3", "5..4", "-1..3", "a..b", "1..2..3", "1...3", "1,2", "0..",
        ] {
            assert_eq!(steps(text), Err(NoSteps), "{text}");
        }
        for text in ["7", "100..110", "3.."] {
            assert_eq!(steps(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn every_wait_has_a_kind_of_its_own() {
        let kinds = kinds();
        assert_eq!(kinds.len(), usize::from(FIRST_WAIT) + WAITS.len());
        for name in &WAITS[1..] {
            let of_name = |tag: &u16| {
                let kind = &kinds[usize::from(wait_kind(Tag(*tag)))];
                kind.name == format!("wait: {name}")
            };
            assert!((0..=u16::MAX).any(|tag| of_name(&tag)), "{name}");
        }
    }
}
