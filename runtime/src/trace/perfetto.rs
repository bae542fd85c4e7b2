//! Traces as pictures: the JSON trace-event format, which <https://ui.perfetto.dev> opens.
//!
//! Every rank is a process with a track for its main thread, one for each worker and one for
//! messages. The bytes depend on the traces only, so that pictures of virtual time can be compared.

mod timelines;

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write};

pub use self::timelines::write_timelines;
use super::{Detail, Event, Trace, What};

/// The track of the main thread, where the body runs. Numbers start at 1: viewers take thread 0 of
/// process 0 for the idle loop.
const BODY: usize = 1;
/// The track of worker 0.
const WORKERS: usize = 2;

/// Writes the traces of a scope's ranks for a viewer of traces.
///
/// Tasks are slices named after their kind. A wait of a task in a join is a slice in it, and a task
/// that its worker ran meanwhile is a slice in that. Waits of the body are slices too. Arrows lead
/// from a thief that asked to the rank that it asked, and from a victim that gave tasks to the
/// thief that got them. Splits, refusals, results, fetches and ends are marks. Counters show how
/// many workers are busy and how many tasks are in the pool. A slice among the messages shows where
/// a task kept its rank from reading any. Times are in µs, to the ns. A slice that has not ended
/// ends with the trace. The writer should be buffered.
///
/// # Errors
/// Fails if `out` cannot be written to.
pub fn write_perfetto(traces: &[Trace], out: &mut impl Write) -> io::Result<()> {
    let arrows = Arrows::of(traces, &mut 1);
    out.write_all(b"{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
    let mut lines = Lines { out, any: false };
    for trace in traces {
        let mut rank = RankWriter::new(&mut lines, trace.rank.0, trace.all_workers());
        rank.names(&format!("rank {}", trace.rank.0))?;
        rank.scope(trace, &arrows, Body::Here)?;
    }
    out.write_all(b"\n]}\n")
}

/// Writes one JSON object a line.
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

/// A stream of messages from one rank to another, one of which is drawn as an arrow.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stream {
    /// Requests for tasks.
    Requests,
    /// Answers that bring tasks.
    Answers,
    /// Tasks that come without having been asked for again.
    Gifts,
}

/// Whether an event is the begin of an arrow or its end, of which stream, and the other rank.
#[derive(Clone, Copy)]
enum End {
    Leaves(Stream, u32),
    Arrives(Stream, u32),
}

impl End {
    /// Finds the ends of arrows that an event is. An answer is the end of a request, and may be the
    /// begin of the tasks that it brings.
    fn of(what: What) -> [Option<Self>; 2] {
        let arrives = |stream, from| [Some(Self::Arrives(stream, from)), None];
        match what {
            What::Asked { victim } => [Some(Self::Leaves(Stream::Requests, victim)), None],
            What::Gave { thief, tasks } => [
                Some(Self::Arrives(Stream::Requests, thief)),
                (tasks > 0).then_some(Self::Leaves(Stream::Answers, thief)),
            ],
            What::Answered { victim, tasks } if tasks > 0 => arrives(Stream::Answers, victim),
            What::Gifted { thief, .. } => [Some(Self::Leaves(Stream::Gifts, thief)), None],
            What::Got { victim, .. } => arrives(Stream::Gifts, victim),
            _ => [None; 2],
        }
    }

    /// Returns the stream, the sender and the receiver.
    fn pair(self, me: u32) -> (Stream, u32, u32) {
        match self {
            Self::Leaves(stream, to) => (stream, me, to),
            Self::Arrives(stream, from) => (stream, from, me),
        }
    }
}

/// The arrows of a scope. Between two ranks messages of a stream keep their order, so the n-th
/// begin of an arrow belongs to the n-th end.
struct Arrows {
    /// The number of the first arrow, and how many have both ends, by stream, sender and receiver.
    pairs: BTreeMap<(Stream, u32, u32), (u64, u64)>,
}

impl Arrows {
    /// Finds the arrows of a scope, numbered from `next` on.
    fn of<'a>(traces: impl IntoIterator<Item = &'a Trace>, next: &mut u64) -> Self {
        let mut pairs: BTreeMap<_, (u64, u64)> = BTreeMap::new();
        for trace in traces {
            for end in trace.events.iter().flat_map(|event| End::of(event.what)) {
                let Some(end) = end else { continue };
                let counts = pairs.entry(end.pair(trace.rank.0)).or_default();
                match end {
                    End::Leaves(..) => counts.0 += 1,
                    End::Arrives(..) => counts.1 += 1,
                }
            }
        }
        for pair in pairs.values_mut() {
            let both = pair.0.min(pair.1);
            *pair = (*next, both);
            *next += both;
        }
        Self { pairs }
    }

    /// Returns the number of an arrow; `None` if it has one end only.
    fn id(&self, pair: (Stream, u32, u32), number: u64) -> Option<u64> {
        let &(first, both) = self.pairs.get(&pair)?;
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

/// The place where the body's slices are written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Body {
    Here,
    /// Another function writes them, so they are left out.
    Elsewhere,
}

/// Writes the events of one rank.
struct RankWriter<'a, 'b, W> {
    lines: &'a mut Lines<'b, W>,
    rank: u32,
    pid: u64,
    workers: usize,
    /// The track of messages.
    messages: usize,
}

impl<'a, 'b, W: Write> RankWriter<'a, 'b, W> {
    fn new(lines: &'a mut Lines<'b, W>, rank: u32, workers: usize) -> Self {
        Self {
            lines,
            rank,
            pid: u64::from(rank) + 1,
            workers,
            messages: WORKERS + workers,
        }
    }

    /// Names the process and its tracks.
    fn names(&mut self, process: &str) -> io::Result<()> {
        let (pid, rank) = (self.pid, self.rank);
        let process = serde_json::to_string(process)?;
        self.lines.put(format_args!(
            r#""ph":"M","name":"process_name","pid":{pid},"args":{{"name":{process}}}"#
        ))?;
        self.lines.put(format_args!(
            r#""ph":"M","name":"process_sort_index","pid":{pid},"args":{{"sort_index":{rank}}}"#
        ))?;
        self.name(BODY, "main")?;
        for worker in 0..self.workers {
            self.name(WORKERS + worker, &format!("worker {worker}"))?;
        }
        self.name(self.messages, "messages")
    }

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

    fn counter(&mut self, at: u64, name: &str, unit: &str, value: u64) -> io::Result<()> {
        let (pid, ts) = (self.pid, Micros(at));
        self.lines.put(format_args!(
            r#""ph":"C","name":"{name}","pid":{pid},"ts":{ts},"args":{{"{unit}":{value}}}"#
        ))
    }

    /// Writes a slice on the track of messages, of at least 1 ns, because arrows start and end at
    /// slices.
    fn slice(&mut self, at: u64, ns: u64, name: fmt::Arguments<'_>) -> io::Result<()> {
        let (pid, tid, ts, dur) = (self.pid, self.messages, Micros(at), Micros(ns));
        self.lines.put(format_args!(
            r#""ph":"X","name":"{name}","pid":{pid},"tid":{tid},"ts":{ts},"dur":{dur}"#
        ))
    }

    /// Writes the ends of arrows that an event is.
    fn arrows(&mut self, event: Event, arrows: &Arrows, counts: &mut Counts) -> io::Result<()> {
        let (pid, tid, ts) = (self.pid, self.messages, Micros(event.at));
        for end in End::of(event.what).into_iter().flatten() {
            let pair = end.pair(self.rank);
            let number = counts.next(end, pair);
            let Some(id) = arrows.id(pair, number) else {
                continue;
            };
            let ph = match end {
                End::Leaves(..) => "s",
                End::Arrives(..) => "f",
            };
            let name = match pair.0 {
                Stream::Requests => "request",
                Stream::Answers => "steal",
                Stream::Gifts => "gift",
            };
            self.lines.put(format_args!(
                r#""ph":"{ph}","bp":"e","cat":"{name}","name":"{name}","id":{id},"pid":{pid},"tid":{tid},"ts":{ts}"#
            ))?;
        }
        Ok(())
    }

    /// Writes what happened in a scope.
    fn scope(&mut self, trace: &Trace, arrows: &Arrows, body: Body) -> io::Result<()> {
        let (pid, messages) = (self.pid, self.messages);
        // Names come from users: they may hold quotes.
        let kinds: Vec<String> = trace
            .kinds
            .iter()
            .map(serde_json::to_string)
            .collect::<Result<_, _>>()?;
        // Slices open on each track; arrows so far to and from each rank.
        let mut open = vec![Vec::new(); messages];
        let mut counts = Counts::default();
        // How many are busy is written when time goes on: tasks that follow each other leave no
        // dent.
        let (mut busy, mut busy_written) = (0, None);
        let mut pool = 0;
        let events = trace.in_order();
        let mut now = events.first().map_or(0, |event| event.at);
        // Time on the track of messages.
        let mut messages_at = now;
        for &event in events.iter() {
            let at = event.at;
            if at > now {
                if busy_written != Some(busy) {
                    self.counter(now, "busy workers", "busy", busy)?;
                    busy_written = Some(busy);
                }
                now = at;
            }
            match event.what {
                What::TaskBegin {
                    worker,
                    kind,
                    depth,
                    of,
                } => {
                    let track = WORKERS + usize::from(worker);
                    let unknown;
                    let name = match kinds.get(usize::from(kind)) {
                        Some(name) => name,
                        None => {
                            unknown = format!("\"kind {kind}\"");
                            &unknown
                        }
                    };
                    if of == Detail::NOTHING && depth == 0 {
                        self.begin(track, at, name)?;
                    } else {
                        let ([a, b], ts) = (of, Micros(at));
                        self.lines.put(format_args!(
                            r#""ph":"B","name":{name},"pid":{pid},"tid":{track},"ts":{ts},"args":{{"depth":{depth},"of":[{a},{b}]}}"#
                        ))?;
                    }
                    busy += u64::from(open[track].last() != Some(&Open::Task));
                    open[track].push(Open::Task);
                }
                What::TaskEnd { worker, units } => {
                    let tid = WORKERS + usize::from(worker);
                    // An end that never began may name a worker that is not there.
                    let Some(slices) = open.get_mut(tid).filter(|s| s.contains(&Open::Task)) else {
                        continue;
                    };
                    busy -= u64::from(slices.last() == Some(&Open::Task));
                    while slices.pop_if(|slice| *slice == Open::Join).is_some() {
                        self.end(tid, at)?;
                    }
                    slices.pop();
                    busy += u64::from(slices.last() == Some(&Open::Task));
                    let ts = Micros(at);
                    self.lines.put(format_args!(
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
                        self.begin(track, at, "\"join\"")?;
                    }
                }
                What::WaitEnd { worker } => {
                    let track = WORKERS + usize::from(worker);
                    if let Some(slices) = open.get_mut(track)
                        && slices.pop_if(|slice| *slice == Open::Join).is_some()
                    {
                        busy += 1;
                        self.end(track, at)?;
                    }
                }
                What::ScopeBegin | What::ScopeEnd | What::JoinBegin | What::JoinEnd
                    if body == Body::Elsewhere => {}
                What::ScopeBegin | What::JoinBegin => {
                    let (slice, name) = match event.what {
                        What::ScopeBegin => (Open::Scope, "\"scope\""),
                        _ => (Open::Join, "\"join\""),
                    };
                    self.begin(BODY, at, name)?;
                    open[BODY].push(slice);
                }
                What::ScopeEnd | What::JoinEnd => {
                    if open[BODY].pop().is_some() {
                        self.end(BODY, at)?;
                    }
                }
                What::Split { worker } => {
                    let track = (WORKERS + usize::from(worker)).min(messages);
                    self.mark(track, at, format_args!("split"))?;
                }
                What::Gave { thief, tasks: 0 } => {
                    self.slice(at, 1, format_args!("refused rank {thief}"))?;
                }
                What::Gave { thief, tasks } | What::Gifted { thief, tasks } => {
                    self.slice(at, 1, format_args!("gave rank {thief} {tasks}"))?;
                }
                What::Answered { victim, tasks: 0 } => {
                    self.mark(messages, at, format_args!("refused by rank {victim}"))?;
                }
                What::Answered { victim, tasks } | What::Got { victim, tasks } => {
                    self.slice(at, 1, format_args!("got {tasks} from rank {victim}"))?;
                }
                What::Asked { victim } => {
                    self.slice(at, 1, format_args!("asked rank {victim}"))?;
                }
                What::Deaf { kind, requests, us } => {
                    // Until now, but not over what was seen on this track before.
                    let since = at.saturating_sub(u64::from(us) * 1000).max(messages_at);
                    let name = kinds.get(usize::from(kind)).map_or("\"\"", String::as_str);
                    let (ts, dur) = (Micros(since), Micros(at - since));
                    self.lines.put(format_args!(
                        r#""ph":"X","name":"reads no messages","pid":{pid},"tid":{messages},"ts":{ts},"dur":{dur},"args":{{"because of":{name},"requests that waited":{requests}}}"#
                    ))?;
                }
                What::Pool { tasks } => {
                    pool = tasks;
                    self.counter(at, "tasks in the pool", "tasks", tasks.into())?;
                }
                What::Results { to, count } => {
                    self.mark(messages, at, format_args!("{count} results to rank {to}"))?;
                }
                What::Fetch { from } => {
                    self.mark(messages, at, format_args!("fetch from rank {from}"))?;
                }
                What::Fetched { bytes } => {
                    self.mark(messages, at, format_args!("fetched {bytes} bytes"))?;
                }
                What::Cancelled => self.mark(messages, at, format_args!("cancelled"))?,
                What::Dry => self.mark(messages, at, format_args!("dry"))?,
            }
            if event.what.is_of_messages(self.workers) {
                messages_at = at;
            }
            self.arrows(event, arrows, &mut counts)?;
        }
        for (track, slices) in open.into_iter().enumerate() {
            for _ in slices {
                self.end(track, now)?;
                busy = 0;
            }
        }
        if busy_written.is_some_and(|written| written != busy) {
            self.counter(now, "busy workers", "busy", busy)?;
        }
        if pool > 0 {
            self.counter(now, "tasks in the pool", "tasks", 0)?;
        }
        Ok(())
    }
}

impl What {
    /// Whether it is drawn on the track of messages of a rank with this many workers.
    fn is_of_messages(self, workers: usize) -> bool {
        match self {
            Self::TaskBegin { .. }
            | Self::TaskEnd { .. }
            | Self::WaitBegin { .. }
            | Self::WaitEnd { .. }
            | Self::ScopeBegin
            | Self::ScopeEnd
            | Self::JoinBegin
            | Self::JoinEnd
            | Self::Pool { .. } => false,
            Self::Split { worker } => usize::from(worker) >= workers,
            _ => true,
        }
    }
}

/// The ends of arrows of one rank so far.
#[derive(Default)]
struct Counts {
    left: BTreeMap<(Stream, u32, u32), u64>,
    arrived: BTreeMap<(Stream, u32, u32), u64>,
}

impl Counts {
    /// Counts an end of an arrow, and returns how many of the same kind there were before it.
    fn next(&mut self, end: End, pair: (Stream, u32, u32)) -> u64 {
        let counts = match end {
            End::Leaves(..) => &mut self.left,
            End::Arrives(..) => &mut self.arrived,
        };
        let count = counts.entry(pair).or_default();
        *count += 1;
        *count - 1
    }
}
