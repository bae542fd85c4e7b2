//! Traces as pictures: the JSON trace-event format, which <https://ui.perfetto.dev> opens.
//!
//! Every rank is a process with a track for its body, one for each worker and one for messages. The bytes
//! depend on the traces only, so that pictures of virtual time can be compared.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write};

use super::{Trace, What};

/// The track of the body. Numbers start at 1: viewers take thread 0 of process 0 for the idle loop.
const BODY: usize = 1;
/// The track of worker 0.
const WORKERS: usize = 2;

/// Writes the traces of a scope's ranks for a viewer of traces.
///
/// Tasks are slices named after their kind; where one waited in a join is a slice in it, and what its
/// worker ran meanwhile a slice in that. Waits of the body are slices too. Arrows lead from a victim that gave tasks to the thief that got them; splits,
/// refusals, results, fetches and ends are marks; a counter shows how many workers are busy. Times are in
/// µs, to the ns. What has not ended ends with the trace. Give it a buffered writer.
///
/// # Errors
/// Those of writing.
pub fn write_perfetto(traces: &[Trace], out: &mut impl Write) -> io::Result<()> {
    let arrows = Arrows::of(traces);
    out.write_all(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
    let mut lines = Lines { out, any: false };
    for trace in traces {
        write_rank(trace, &arrows, &mut lines)?;
    }
    out.write_all(b"\n]}\n")
}

/// One JSON object a line.
struct Lines<'a, W> {
    out: &'a mut W,
    any: bool,
}

impl<W: Write> Lines<'_, W> {
    fn put(&mut self, fields: fmt::Arguments<'_>) -> io::Result<()> {
        self.out
            .write_all(if self.any { b",\n{" } else { b"\n{" })?;
        self.any = true;
        self.out.write_fmt(fields)?;
        self.out.write_all(b"}")
    }
}

/// A time in ns, written in µs.
#[derive(Clone, Copy)]
struct Micros(u64);

impl fmt::Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}

/// Which gift is which haul: between two ranks messages keep their order, so the n-th is the n-th.
struct Arrows {
    /// By victim and thief: number of the first arrow, and how many have both ends.
    pairs: BTreeMap<(u32, u32), (u64, u64)>,
}

impl Arrows {
    fn of(traces: &[Trace]) -> Self {
        let mut ends: BTreeMap<(u32, u32), (u64, u64)> = BTreeMap::new();
        for trace in traces {
            let me = trace.rank.0;
            for event in trace.events.iter() {
                match event.what {
                    What::Gave { thief, tasks } if tasks > 0 => {
                        ends.entry((me, thief)).or_default().0 += 1;
                    }
                    What::Answered { victim, tasks } if tasks > 0 => {
                        ends.entry((victim, me)).or_default().1 += 1;
                    }
                    _ => {}
                }
            }
        }
        let mut next = 1;
        for pair in ends.values_mut() {
            let both = pair.0.min(pair.1);
            *pair = (next, both);
            next += both;
        }
        Self { pairs: ends }
    }

    /// The number of an arrow between two ranks; `None` if it has one end only.
    fn id(&self, victim: u32, thief: u32, number: u64) -> Option<u64> {
        let &(first, both) = self.pairs.get(&(victim, thief))?;
        (number < both).then_some(first + number)
    }
}

/// A slice of a track that has not ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Open {
    Scope,
    Task,
    Join,
}

/// One rank's events on their way out.
struct RankWriter<'a, 'b, W> {
    lines: &'a mut Lines<'b, W>,
    pid: u64,
    /// The track of messages.
    messages: usize,
}

impl<W: Write> RankWriter<'_, '_, W> {
    fn name(&mut self, track: usize, name: &str) -> io::Result<()> {
        let pid = self.pid;
        self.lines.put(format_args!(
            r#""ph":"M","name":"thread_name","pid":{pid},"tid":{track},"args":{{"name":"{name}"}}"#
        ))?;
        self.lines.put(format_args!(
            r#""ph":"M","name":"thread_sort_index","pid":{pid},"tid":{track},"args":{{"sort_index":{track}}}"#
        ))
    }

    /// `name` is a JSON string.
    fn begin(&mut self, track: usize, at: u64, name: &str) -> io::Result<()> {
        let (pid, ts) = (self.pid, Micros(at));
        self.lines.put(format_args!(
            r#""ph":"B","name":{name},"pid":{pid},"tid":{track},"ts":{ts}"#
        ))
    }

    fn end(&mut self, track: usize, at: u64) -> io::Result<()> {
        let (pid, ts) = (self.pid, Micros(at));
        self.lines.put(format_args!(
            r#""ph":"E","pid":{pid},"tid":{track},"ts":{ts}"#
        ))
    }

    fn mark(&mut self, track: usize, at: u64, name: fmt::Arguments<'_>) -> io::Result<()> {
        let (pid, ts) = (self.pid, Micros(at));
        self.lines.put(format_args!(
            r#""ph":"i","s":"t","name":"{name}","pid":{pid},"tid":{track},"ts":{ts}"#
        ))
    }

    fn busy(&mut self, at: u64, workers: usize) -> io::Result<()> {
        let (pid, ts) = (self.pid, Micros(at));
        self.lines.put(format_args!(
            r#""ph":"C","name":"busy workers","pid":{pid},"ts":{ts},"args":{{"busy":{workers}}}"#
        ))
    }

    /// An end of an arrow, `s` or `f`, with a slice of 1 ns to hold on to: arrows need slices.
    fn arrow(
        &mut self,
        end: &str,
        at: u64,
        id: Option<u64>,
        name: fmt::Arguments<'_>,
    ) -> io::Result<()> {
        let (pid, tid, ts) = (self.pid, self.messages, Micros(at));
        self.lines.put(format_args!(
            r#""ph":"X","name":"{name}","pid":{pid},"tid":{tid},"ts":{ts},"dur":0.001"#
        ))?;
        let Some(id) = id else {
            return Ok(());
        };
        self.lines.put(format_args!(
            r#""ph":"{end}","bp":"e","cat":"steal","name":"steal","id":{id},"pid":{pid},"tid":{tid},"ts":{ts}"#
        ))
    }
}

fn write_rank<W: Write>(
    trace: &Trace,
    arrows: &Arrows,
    lines: &mut Lines<'_, W>,
) -> io::Result<()> {
    let me = trace.rank.0;
    let workers = trace.all_workers();
    let pid = u64::from(me) + 1;
    lines.put(format_args!(
        r#""ph":"M","name":"process_name","pid":{pid},"args":{{"name":"rank {me}"}}"#
    ))?;
    lines.put(format_args!(
        r#""ph":"M","name":"process_sort_index","pid":{pid},"args":{{"sort_index":{me}}}"#
    ))?;
    let messages = WORKERS + workers;
    let mut rank = RankWriter {
        lines,
        pid,
        messages,
    };
    rank.name(BODY, "body")?;
    for worker in 0..workers {
        rank.name(WORKERS + worker, &format!("worker {worker}"))?;
    }
    rank.name(messages, "messages")?;

    // Names come from users: they may hold quotes.
    let kinds: Vec<String> = trace
        .kinds
        .iter()
        .map(serde_json::to_string)
        .collect::<Result<_, _>>()?;
    // Slices open on each track; arrows so far to and from each rank.
    let mut open = vec![Vec::new(); messages];
    let (mut gifts, mut hauls) = (BTreeMap::new(), BTreeMap::new());
    // How many are busy is written when time goes on: tasks that follow each other leave no dent.
    let (mut busy, mut busy_written) = (0, None);
    let events = trace.in_order();
    let mut now = events.first().map_or(0, |event| event.at);
    for event in events.iter() {
        let at = event.at;
        if at > now {
            if busy_written != Some(busy) {
                rank.busy(now, busy)?;
                busy_written = Some(busy);
            }
            now = at;
        }
        match event.what {
            What::TaskBegin { worker, kind } => {
                let track = WORKERS + usize::from(worker);
                match kinds.get(usize::from(kind)) {
                    Some(name) => rank.begin(track, at, name)?,
                    None => rank.begin(track, at, &format!("\"kind {kind}\""))?,
                }
                busy += usize::from(open[track].last() != Some(&Open::Task));
                open[track].push(Open::Task);
            }
            What::TaskEnd { worker, units } => {
                let tid = WORKERS + usize::from(worker);
                // An end that never began may name a worker that is not there.
                let Some(slices) = open.get_mut(tid).filter(|s| s.contains(&Open::Task)) else {
                    continue;
                };
                busy -= usize::from(slices.last() == Some(&Open::Task));
                while slices.pop_if(|slice| *slice == Open::Join).is_some() {
                    rank.end(tid, at)?;
                }
                slices.pop();
                busy += usize::from(slices.last() == Some(&Open::Task));
                let ts = Micros(at);
                rank.lines.put(format_args!(
                    r#""ph":"E","pid":{pid},"tid":{tid},"ts":{ts},"args":{{"units":{units}}}"#
                ))?;
            }
            What::WaitBegin { worker } => {
                let track = WORKERS + usize::from(worker);
                if let Some(slices) = open.get_mut(track)
                    && slices.last() == Some(&Open::Task)
                {
                    slices.push(Open::Join);
                    busy -= 1;
                    rank.begin(track, at, "\"join\"")?;
                }
            }
            What::WaitEnd { worker } => {
                let track = WORKERS + usize::from(worker);
                if let Some(slices) = open.get_mut(track)
                    && slices.pop_if(|slice| *slice == Open::Join).is_some()
                {
                    busy += 1;
                    rank.end(track, at)?;
                }
            }
            What::ScopeBegin | What::JoinBegin => {
                let (slice, name) = match event.what {
                    What::ScopeBegin => (Open::Scope, "\"scope\""),
                    _ => (Open::Join, "\"join\""),
                };
                rank.begin(BODY, at, name)?;
                open[BODY].push(slice);
            }
            What::ScopeEnd | What::JoinEnd => {
                if open[BODY].pop().is_some() {
                    rank.end(BODY, at)?;
                }
            }
            What::Split { worker } => {
                let track = (WORKERS + usize::from(worker)).min(messages);
                rank.mark(track, at, format_args!("split"))?;
            }
            What::Gave { thief, tasks: 0 } => {
                rank.mark(messages, at, format_args!("refused rank {thief}"))?;
            }
            What::Gave { thief, tasks } => {
                let number = count(&mut gifts, thief);
                let id = arrows.id(me, thief, number);
                rank.arrow("s", at, id, format_args!("gave rank {thief} {tasks}"))?;
            }
            What::Answered { victim, tasks: 0 } => {
                rank.mark(messages, at, format_args!("refused by rank {victim}"))?;
            }
            What::Answered { victim, tasks } => {
                let number = count(&mut hauls, victim);
                let id = arrows.id(victim, me, number);
                rank.arrow("f", at, id, format_args!("got {tasks} from rank {victim}"))?;
            }
            What::Asked { victim } => {
                rank.mark(messages, at, format_args!("asked rank {victim}"))?;
            }
            What::Results { to, count } => {
                rank.mark(messages, at, format_args!("{count} results to rank {to}"))?;
            }
            What::Fetch { from } => {
                rank.mark(messages, at, format_args!("fetch from rank {from}"))?;
            }
            What::Fetched { bytes } => {
                rank.mark(messages, at, format_args!("fetched {bytes} bytes"))?;
            }
            What::Cancelled => rank.mark(BODY, at, format_args!("cancelled"))?,
            What::Dry => rank.mark(BODY, at, format_args!("dry"))?,
            What::Died { rank: dead } => {
                rank.mark(BODY, at, format_args!("rank {dead} died"))?;
            }
        }
    }
    for (track, slices) in open.into_iter().enumerate() {
        for _ in slices {
            rank.end(track, now)?;
            busy = 0;
        }
    }
    if busy_written.is_some_and(|written| written != busy) {
        rank.busy(now, busy)?;
    }
    Ok(())
}

/// How often it was called for this rank before.
fn count(counts: &mut BTreeMap<u32, u64>, rank: u32) -> u64 {
    let count = counts.entry(rank).or_default();
    let before = *count;
    *count += 1;
    before
}
