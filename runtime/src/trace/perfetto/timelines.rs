//! Pictures of whole programs: every rank a process, phases and waits of its main thread nested as
//! they were, and in them the scopes.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::{Arrows, BODY, Body, Lines, Micros, RankWriter};
use crate::trace::{Span, Timeline, Trace, What};

/// Writes what ranks did over a whole program for a viewer of traces.
///
/// Scopes look as [`write_perfetto`](super::write_perfetto) draws them. Around them are the spans
/// of each rank's main thread as slices, and its counters. On every track events come in the order
/// of time. A process has the name of its rank and host. `otherData` has what is known of the
/// clocks and what is missing. Timelines are to be [aligned](Timeline::align). The writer should be
/// buffered.
///
/// # Errors
/// Fails if `out` cannot be written to.
pub fn write_timelines(timelines: &[Timeline], out: &mut impl Write) -> io::Result<()> {
    let mut next = 1;
    let arrows: BTreeMap<u64, Arrows> = by_scope(timelines)
        .into_iter()
        .map(|(number, traces)| (number, Arrows::of(traces, &mut next)))
        .collect();
    out.write_all(b"{\"displayTimeUnit\":\"ns\",\"otherData\":{\"ranks\":")?;
    write_clocks(timelines, out)?;
    out.write_all(b"},\"traceEvents\":[")?;
    let mut lines = Lines { out, any: false };
    for timeline in timelines {
        let traces = timeline.scopes.iter().map(|(_, trace)| trace.all_workers());
        let workers = traces.max().unwrap_or(0);
        let mut rank = RankWriter::new(&mut lines, timeline.rank.0, workers);
        rank.names(&match timeline.host.as_str() {
            "" => format!("rank {}", timeline.rank.0),
            host => format!("rank {} on {host}", timeline.rank.0),
        })?;
        rank.main_thread(timeline)?;
        for sample in &timeline.samples {
            if let Some(name) = timeline.counters.get(usize::from(sample.counter)) {
                rank.counter(sample.at, name, "value", sample.value)?;
            }
        }
        for (number, trace) in &timeline.scopes {
            if let Some(arrows) = arrows.get(number) {
                rank.scope(trace, arrows, Body::Elsewhere)?;
            }
        }
    }
    out.write_all(b"\n]}\n")
}

/// The traces of each scope, by its number.
fn by_scope(timelines: &[Timeline]) -> BTreeMap<u64, Vec<&Trace>> {
    let mut scopes: BTreeMap<u64, Vec<&Trace>> = BTreeMap::new();
    for (number, trace) in timelines.iter().flat_map(|timeline| &timeline.scopes) {
        scopes.entry(*number).or_default().push(trace);
    }
    scopes
}

fn write_clocks(timelines: &[Timeline], out: &mut impl Write) -> io::Result<()> {
    let ranks: Vec<serde_json::Value> = timelines
        .iter()
        .map(|timeline| {
            let clock = timeline.clock;
            serde_json::json!({
                "rank": timeline.rank.0,
                "host": timeline.host,
                "clock_offset_ns": [clock.begin.offset, clock.end.offset],
                "clock_drift_ppm": clock.drift() * 1e6,
                "clock_error_ns": clock.error().as_nanos() as u64,
                "events": timeline.events(),
                "dropped": timeline.dropped_in_all(),
            })
        })
        .collect();
    serde_json::to_writer(out, &ranks)?;
    Ok(())
}

/// A slice of the main thread.
struct Slice {
    begin: u64,
    end: u64,
    /// A JSON string.
    name: String,
    /// The meaning of its number as a JSON string, and the number.
    detail: Option<(String, u32)>,
}

impl<W: Write> RankWriter<'_, '_, W> {
    /// Writes spans, scopes and the joins of bodies, each within the one that it was a part of.
    fn main_thread(&mut self, timeline: &Timeline) -> io::Result<()> {
        let mut slices = spans(timeline)?;
        for (_, trace) in &timeline.scopes {
            slices.extend(body(trace));
        }
        // If two begin together, the longer one is the outer one.
        slices.sort_by_key(|slice| (slice.begin, u64::MAX - slice.end));
        let mut open: Vec<u64> = Vec::new();
        for slice in slices {
            while let Some(end) = open.pop_if(|end| *end <= slice.begin) {
                self.end(BODY, end)?;
            }
            // A slice must lie in its parent, so one that outlasts it is cut.
            let end = slice.end.min(open.last().copied().unwrap_or(u64::MAX));
            match &slice.detail {
                None => self.begin(BODY, slice.begin, &slice.name)?,
                Some((what, number)) => {
                    let (pid, ts, name) = (self.pid, Micros(slice.begin), &slice.name);
                    self.lines.put(format_args!(
                        r#""ph":"B","name":{name},"pid":{pid},"tid":{BODY},"ts":{ts},"args":{{{what}:{number}}}"#
                    ))?;
                }
            }
            open.push(end);
        }
        while let Some(end) = open.pop() {
            self.end(BODY, end)?;
        }
        Ok(())
    }
}

fn spans(timeline: &Timeline) -> io::Result<Vec<Slice>> {
    let kinds: Vec<(String, Option<String>)> = timeline
        .kinds
        .iter()
        .map(|kind| {
            let detail = (!kind.detail.is_empty()).then(|| serde_json::to_string(&kind.detail));
            Ok((serde_json::to_string(&kind.name)?, detail.transpose()?))
        })
        .collect::<Result<_, serde_json::Error>>()?;
    let slice = |span: &Span| {
        let (name, detail) = kinds.get(usize::from(span.kind))?;
        Some(Slice {
            begin: span.begin,
            end: span.end.max(span.begin),
            name: name.clone(),
            detail: detail.clone().map(|detail| (detail, span.detail)),
        })
    };
    Ok(timeline.spans.iter().filter_map(slice).collect())
}

/// Finds the scope and the joins of its body. A slice that has not ended ends with the trace.
fn body(trace: &Trace) -> Vec<Slice> {
    let events = trace.in_order();
    let last = events.last().map_or(0, |event| event.at);
    let (mut slices, mut open): (Vec<Slice>, Vec<usize>) = (Vec::new(), Vec::new());
    for event in events.iter() {
        match event.what {
            What::ScopeBegin | What::JoinBegin => {
                let name = match event.what {
                    What::ScopeBegin => "\"scope\"",
                    _ => "\"join\"",
                };
                open.push(slices.len());
                slices.push(Slice {
                    begin: event.at,
                    end: last,
                    name: name.to_owned(),
                    detail: None,
                });
            }
            What::ScopeEnd | What::JoinEnd => {
                if let Some(at) = open.pop() {
                    slices[at].end = event.at;
                }
            }
            _ => {}
        }
    }
    slices
}
