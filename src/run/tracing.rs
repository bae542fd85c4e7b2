//! Traces of a run: what each rank did when, gathered at the end into one file.
//!
//! Every rank records into its own bounded [`Timeline`]: the step and its phases, waits for
//! messages in them, the collision scope event by event, some counters. A step tells its phases,
//! counters and scope to the `tracing` subscriber of the process and leaves what is to be recorded
//! of them in its report. Its waits are seen from outside ([`super::waits`]), and told here. Clocks
//! are compared at the start and at the end. Ranks may run on hosts that share no files, so at the
//! end rank 0 gathers all and writes it: to each rank a file, by its own clock, and the merged one.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use weft_report::advice;
use weft_runtime::comm::{
    ClockMap, ClockReading, Collectives as _, Comm, CommError, Rank, Tag, collective_name,
    read_clocks,
};
use weft_runtime::trace::{
    Analysis, Deafness, MainTrack, Mark, Sample, Span, SpanKind, Timeline, Trace,
};
use weft_runtime::wire;

use super::{RunError, RunOptions, TraceSteps, waits};
use crate::output::{
    OutputError, RunDirectory, RunRecord, this_host, write_rank_trace, write_trace,
};
use crate::step::{COUNTERS, PHASES, STEP, Simulation, StepError, StepReport, exchange_name};

/// The most events of a rank, of 24 bytes each.
const ROOM: usize = 1 << 18;
/// The most events of all ranks: rank 0 holds them at the end, and a viewer has to.
const ROOM_IN_ALL: usize = 1 << 22;

/// The outcome of tracing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TraceSummary {
    /// The first and last steps that were traced, if any were.
    pub steps: Option<(u64, u64)>,
    /// The first and the last of these steps that are whole on all ranks, if any are.
    pub whole: Option<(u64, u64)>,
    /// The number of events that were kept.
    pub events: u64,
    /// The number of events that found no room.
    pub dropped: u64,
    /// How far the aligned clocks of two ranks may be apart.
    pub clock_error: Duration,
    /// A text on where the time of the longest collision phase went.
    pub story: Option<String>,
}

/// Tells what one rank of a run does, and records it if that was asked for.
#[derive(Debug)]
pub(super) struct Tracer {
    recorded: Option<Recorded>,
    /// Waits for messages, and the outputs that follow a step: a phase that is open until the next
    /// one begins.
    track: MainTrack,
}

/// The record of one rank.
#[derive(Debug)]
struct Recorded {
    timeline: Timeline,
    steps: TraceSteps,
    start: ClockReading,
    /// Whether the last step was recorded: then what follows it is.
    goes_on: bool,
}

/// The phase between two steps.
const OUTPUTS: &str = "outputs";
/// The number of the first phase of a step among [`kinds`], behind the step and the outputs.
const FIRST_PHASE: usize = 2;
/// The kinds of messages for which a rank can wait.
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
/// The most phases of a step that is not cut: one comes twice.
const MOST_PHASES: usize = PHASES.len() + 1;
/// Events that frame a step: itself, its phases, counters, and the outputs after it.
const FRAME: usize = 2 + MOST_PHASES + COUNTERS.len();

/// The kinds of spans: the step, outputs, phases, waits.
fn kinds() -> Vec<SpanKind> {
    let kind = |name: String, detail: &str| SpanKind {
        name,
        detail: detail.to_owned(),
    };
    let mut kinds = vec![
        kind(STEP.to_owned(), "number"),
        kind(OUTPUTS.to_owned(), ""),
    ];
    kinds.extend(PHASES.map(|name| kind(name.to_owned(), phase_detail(name))));
    kinds.extend(WAITS.map(|name| kind(format!("wait: {name}"), "rank")));
    kinds
}

/// Names the number that describes a phase.
fn phase_detail(name: &str) -> &'static str {
    match name {
        "collide" => "contacts",
        "solve" => "iterations",
        "respond" => "impulses",
        _ => "",
    }
}

/// The number of a phase among [`kinds`].
fn phase_kind(name: &str) -> u16 {
    let phase = || PHASES.iter().position(|phase| *phase == name);
    let at = match name {
        STEP => 0,
        OUTPUTS => 1,
        _ => FIRST_PHASE + phase().unwrap_or(0),
    };
    at as u16
}

/// The number of a wait among [`kinds`].
fn wait_kind(what: &str) -> u16 {
    let at = WAITS.iter().position(|wait| *wait == what);
    (FIRST_PHASE + PHASES.len() + at.unwrap_or(0)) as u16
}

/// Names what a rank waits for with a message of this tag.
fn awaited(tag: Tag) -> &'static str {
    let name = exchange_name(tag).or_else(|| collective_name(tag));
    name.unwrap_or(WAITS[0])
}

impl Tracer {
    /// Begins to tell, and to record if that was asked for. Collective then: clocks are compared.
    pub(super) fn start(options: &RunOptions, comm: &mut dyn Comm) -> Result<Self, RunError> {
        let track = MainTrack::new(&*comm, options.trace.is_some());
        let Some(steps) = options.trace else {
            return Ok(Self {
                recorded: None,
                track,
            });
        };
        let room = ROOM.min(ROOM_IN_ALL / comm.size());
        let counters = COUNTERS.map(str::to_owned).to_vec();
        let mut timeline = Timeline::new(comm.rank(), kinds(), counters, room);
        timeline.host = match options.hosts.get(comm.rank().index()) {
            Some(host) => host.clone(),
            None => this_host(),
        };
        let recorded = Some(Recorded {
            timeline,
            steps,
            start: read_clocks(comm)?,
            goes_on: false,
        });
        Ok(Self { recorded, track })
    }

    /// Takes a step, and records it if it is one to be traced; adds to `waited` how long its rank
    /// waited in it. Collective.
    pub(super) fn advance(
        &mut self,
        simulation: &mut Simulation<'_>,
        comm: &mut dyn Comm,
        waited: &mut Duration,
    ) -> Result<StepReport, StepError> {
        self.end_outputs(comm);
        let step = simulation.step() + 1;
        let track = &mut self.track;
        let mut told = |tag: Tag, from: Rank, begin: Duration, end: Duration| {
            track.wait(awaited(tag), from, begin, end);
        };
        if let Some(recorded) = &mut self.recorded {
            recorded.goes_on = recorded.steps.contains(step);
        }
        let recorded = self.recorded.as_mut().filter(|recorded| recorded.goes_on);
        let report = match recorded {
            None => {
                let outcome = waits::advance(simulation, comm, waited, &mut told);
                // Nobody keeps its waits.
                drop(track.take_marks());
                outcome?
            }
            Some(Recorded { timeline, .. }) => {
                timeline.owe(FRAME);
                simulation.record(Some(timeline.lend()));
                let outcome = waits::advance(simulation, comm, waited, &mut told);
                simulation.record(None);
                let mut report = outcome?;
                track
                    .take_marks()
                    .iter()
                    .for_each(|mark| add(timeline, mark));
                if let Some(trace) = report.scope.trace.take() {
                    timeline.add_scope(step, trace);
                }
                frame(timeline, &report.marks);
                report.marks.clear();
                report
            }
        };
        self.track.begin(OUTPUTS, comm.now());
        Ok(report)
    }

    fn end_outputs(&mut self, comm: &dyn Comm) {
        self.track.end_down_to(0, comm.now());
        let marks = self.track.take_marks();
        if let Some(recorded) = &mut self.recorded
            && recorded.goes_on
        {
            frame(&mut recorded.timeline, &marks);
        }
    }

    /// Compares clocks again and gathers all traces, on rank 0. Collective.
    pub(super) fn finish(
        mut self,
        comm: &mut dyn Comm,
    ) -> Result<Option<(TraceSummary, Traces)>, RunError> {
        self.end_outputs(comm);
        let Some(Recorded {
            mut timeline,
            start,
            ..
        }) = self.recorded
        else {
            return Ok(None);
        };
        timeline.clock = ClockMap::new(start, read_clocks(comm)?);
        let own = wire::encode(&timeline);
        let own = own.map_err(CommError::unsendable(comm.rank(), "its trace"))?;
        drop(timeline);
        let gathered = comm.gather(Rank(0), own)?;
        let Some(encoded) = gathered else {
            return Ok(None);
        };
        let mut timelines: Vec<Timeline> = Vec::with_capacity(encoded.len());
        for (rank, bytes) in (0..).map(Rank).zip(&encoded) {
            timelines.push(wire::decode(bytes).map_err(super::error::malformed(rank))?);
        }
        timelines.iter_mut().for_each(Timeline::align);
        let summary = summary(&timelines, comm.has_threads());
        Ok(Some((summary, Traces { encoded, timelines })))
    }
}

/// Keeps a mark for which no room was set aside.
fn add(timeline: &mut Timeline, mark: &Mark) {
    match kept(mark) {
        Kept::Span(span) => timeline.span(span),
        Kept::Sample(sample) => timeline.sample(sample),
    }
}

/// Keeps the marks that frame a step, for which room was set aside; a step that is cut has more
/// phases than that.
fn frame(timeline: &mut Timeline, marks: &[Mark]) {
    let mut phases = 0;
    for mark in marks {
        if let Mark::Phase { name, .. } = mark
            && *name != STEP
        {
            phases += 1;
        }
        match kept(mark) {
            Kept::Span(span) if phases <= MOST_PHASES => timeline.frame(span),
            Kept::Sample(sample) => timeline.frame_sample(sample),
            Kept::Span(_) => add(timeline, mark),
        }
    }
}

/// A mark as a timeline has it.
enum Kept {
    Span(Span),
    Sample(Sample),
}

fn kept(mark: &Mark) -> Kept {
    match *mark {
        Mark::Phase {
            name,
            begin,
            end,
            count,
        } => Kept::Span(span(phase_kind(name), (begin, end), count)),
        Mark::Wait {
            what,
            from,
            begin,
            end,
        } => Kept::Span(span(wait_kind(what), (begin, end), from.0.into())),
        Mark::Counter { name, at, value } => {
            let counter = COUNTERS.iter().position(|counter| *counter == name);
            Kept::Sample(Sample {
                at,
                counter: counter.unwrap_or(0) as u16,
                value,
            })
        }
    }
}

/// The records of all ranks on rank 0, before they are written, which is the last thing to be done.
#[derive(Debug)]
pub(super) struct Traces {
    /// The records by rank, as they were sent, with times by the rank's own clock.
    encoded: Vec<Vec<u8>>,
    /// The records with times by the clock of rank 0.
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

/// Sums traces up. `threads` says whether ranks may have threads beside their workers.
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

/// Explains the longest collision phase that was traced whole, and names the task that kept a rank
/// from answering for longest, if one did for long.
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

fn span(kind: u16, (begin, end): (u64, u64), detail: u64) -> Span {
    Span {
        begin,
        end,
        kind,
        detail: u32::try_from(detail).unwrap_or(u32::MAX),
    }
}

#[cfg(all(test, feature = "tracing"))]
mod listening;
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_phase_and_wait_has_a_kind_of_its_own() {
        let kinds = kinds();
        for name in PHASES.into_iter().chain([STEP, OUTPUTS]) {
            assert_eq!(kinds[usize::from(phase_kind(name))].name, name);
        }
        for name in &WAITS[1..] {
            let of_name = |tag: &u16| {
                let kind = &kinds[usize::from(wait_kind(awaited(Tag(*tag))))];
                kind.name == format!("wait: {name}")
            };
            assert!((0..=u16::MAX).any(|tag| of_name(&tag)), "{name}");
        }
    }
}
