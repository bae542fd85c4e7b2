//! A run's directory, read for a report: the record, the history, and the traces of its ranks if
//! there are any.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use weft_io::{Show as _, read_regular, read_text};
use weft_runtime::trace::{Span, Timeline};

use crate::format::total;
use crate::memory::memory;
use crate::record::{self, Record, Row};
use crate::trace_file::read_trace_file;
use crate::{Cloth, ReportError};

/// A run as its directory tells it.
#[derive(Clone, Debug)]
pub struct Run {
    /// The directory, as it was named.
    pub path: PathBuf,
    /// The record.
    pub record: Record,
    /// Its steps.
    pub history: Vec<Row>,
    /// The record of each rank, by rank, brought to rank 0's clock; none without a trace.
    pub timelines: Vec<Timeline>,
    /// The cloth at its last frame, if the caller has it.
    pub cloth: Option<Cloth>,
    /// Whether the trace has gaps, so that what is counted from it is too little.
    pub incomplete: bool,
    /// Notes for the reader: what is missing, and how to get it.
    pub notes: Vec<String>,
}

impl Run {
    /// Reads a run's directory. One that was killed, or has no trace, is read as far as it goes,
    /// and
    /// [`Run::notes`] says what is missing.
    ///
    /// # Errors
    /// [`ReportError`]: no run's directory, or a file in it that cannot be read or understood.
    pub fn read(directory: &Path) -> Result<Self, ReportError> {
        let path = directory.join("run.json");
        let bytes = match read_regular(&path, LARGEST_RECORD) {
            Ok(bytes) => bytes,
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ) =>
            {
                let of_study = ["study.json", "study.csv"];
                return Err(
                    match of_study.iter().any(|file| directory.join(file).is_file()) {
                        true => ReportError::Study(directory.to_owned()),
                        false => ReportError::NotARun(directory.to_owned()),
                    },
                );
            }
            Err(source) => return Err(ReportError::Read { path, source }),
        };
        let mut record = read_record(&bytes).map_err(|what| ReportError::Record { path, what })?;
        record.make_safe();
        let history = read_history(&directory.join("history.csv"))?;
        let mut run = Self {
            path: directory.to_owned(),
            record,
            history,
            timelines: Vec::new(),
            cloth: None,
            incomplete: false,
            notes: Vec::new(),
        };
        run.leave_out_twice_told();
        run.note_end();
        run.note_history();
        run.note_shared_cores();
        run.read_traces()?;
        Ok(run)
    }

    /// Records of earlier versions warn of what a trace lacks, which [`Run::notes`] tell by the
    /// files.
    fn leave_out_twice_told(&mut self) {
        let of_trace = |warning: &String| warning.contains(" events of the trace found no room");
        self.record.warnings.retain(|warning| !of_trace(warning));
    }

    fn note_no_trace(&mut self) {
        let of_another = self.path.join("trace").is_dir();
        let note = if self.was_to_be_traced() && self.record.trace.is_none() {
            "There is no trace: it is written when a run ends."
        } else if of_another && self.record.trace.is_none() {
            "There is no trace of this run, but one of an earlier run in the same directory, which is left out: run again \
             with `--trace` to see who waited for whom."
        } else {
            "There is no trace: run again with `--trace`, or `--trace=FROM..TO` for some steps, to see who \
             waited for whom, which patches the tests are of, and where idle time went."
        };
        self.notes.push(note.to_owned());
    }

    /// Number of ranks.
    #[must_use]
    pub fn ranks(&self) -> usize {
        (self.record.machine.ranks as usize).max(self.timelines.len())
    }

    /// Workers of each rank.
    #[must_use]
    pub fn workers(&self) -> usize {
        (self.record.machine.threads as usize).clamp(1, MOST_WORKERS)
    }

    /// The owner of each patch, if the run says so.
    #[must_use]
    pub fn owners(&self) -> Vec<u32> {
        let mut owners = Vec::new();
        for (rank, of_rank) in (0..).zip(&self.record.ranks) {
            // Bounded: a record may be anything.
            if of_rank.end_patch as usize > MOST_PATCHES {
                return Vec::new();
            }
            owners.resize(owners.len().max(of_rank.end_patch as usize), 0);
            let (first, end) = (of_rank.first_patch as usize, of_rank.end_patch as usize);
            if let Some(own) = owners.get_mut(first..end) {
                own.fill(rank);
            }
        }
        if owners.is_empty()
            && let Some(cloth) = &self.cloth
        {
            let most = cloth.patches.iter().copied().max().unwrap_or(0) as usize;
            owners.resize(most.min(MOST_PATCHES) + 1, 0);
            for (&patch, &owner) in cloth.patches.iter().zip(&cloth.owners) {
                if let Some(slot) = owners.get_mut(patch as usize) {
                    *slot = owner;
                }
            }
        }
        owners
    }

    fn note_end(&mut self) {
        let steps = self.history.len();
        match (&self.record.error, self.record.exit) {
            (Some(error), _) => self.notes.push(format!("The run failed: {error}")),
            (None, None) if self.record.result.is_some() => self.notes.push(
                "The run was killed, or still goes on, while it writes its trace: run.json has no exit code. All else is known."
                    .to_owned(),
            ),
            (None, None) => {
                let resume = if self.has_checkpoint() {
                    "`weft run … --resume` goes on from the newest checkpoint"
                } else {
                    "it has left no checkpoint to go on from"
                };
                self.notes.push(format!(
                    "The run was killed or still goes on: run.json has no exit code. Only its history of {steps} steps is known; {resume}."
                ));
            }
            _ => {}
        }
    }

    /// A run that came to its end has a line for each of its steps.
    fn note_history(&mut self) {
        let Some(result) = &self.record.result else {
            return;
        };
        let last = self.history.last().map_or(0, |row| u64::from(row.step));
        let follows = |pair: &[Row]| pair[0].step.checked_add(1) == Some(pair[1].step);
        let gaps = self
            .history
            .windows(2)
            .filter(|pair| !follows(pair))
            .count();
        let lacks = if self.history.is_empty() && result.steps > 0 {
            format!("has none of {} steps", result.steps)
        } else if last != result.steps {
            format!("ends with step {last} of {}", result.steps)
        } else if gaps > 0 {
            format!("lacks steps in {gaps} places")
        } else {
            return;
        };
        self.notes.push(format!(
            "history.csv {lacks}: it was cut off or damaged. Results step by step leave the missing steps out."
        ));
    }

    /// Threads of one process that are more than its cores take turns, and each waits for others
    /// that do not run.
    fn note_shared_cores(&mut self) {
        let machine = &self.record.machine;
        let busy = u64::from(machine.ranks) * u64::from(machine.threads.max(1));
        if let Some(cores) = machine.cores
            && machine.comm == "threads"
            && busy > u64::from(cores)
        {
            self.notes.push(format!(
                "{busy} workers shared {cores} cores, so ranks waited for cores too. `--comm virtual` shows how these ranks would do with a core each."
            ));
        }
    }

    /// A sentence on the memory that its processes have had at most, if they tell.
    pub(crate) fn memory(&self) -> Option<String> {
        memory(&self.record.ranks, self.record.machine.comm == "mpi")
    }

    fn has_checkpoint(&self) -> bool {
        let files = fs::read_dir(&self.path).into_iter().flatten().flatten();
        let mut endings = files.map(|file| file.path().extension().map(|e| e.to_owned()));
        endings.any(|ending| ending.is_some_and(|ending| ending == "ckpt"))
    }

    /// Whether the run was to be traced.
    fn was_to_be_traced(&self) -> bool {
        let words = &self.record.command;
        (words.iter()).any(|word| word == "--trace" || word.starts_with("--trace="))
    }

    fn read_traces(&mut self) -> Result<(), ReportError> {
        let ranks = self.record.machine.ranks as usize;
        if self.record.trace.is_none() {
            self.note_no_trace();
            return Ok(());
        }
        let mut missing = 0;
        for rank in 0..ranks {
            let path = self.path.join(format!("trace/rank-{rank:05}.bin"));
            match read_regular(&path, u64::MAX) {
                Ok(bytes) => {
                    let timeline = read_timeline(&bytes, rank, &self.record.run)
                        .map_err(|what| ReportError::Trace { path, what })?;
                    self.timelines.push(timeline);
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => missing += 1,
                Err(source) => return Err(ReportError::Read { path, source }),
            }
        }
        if missing > 0 && !self.timelines.is_empty() {
            self.notes.push(format!(
                "The trace is left out, for {missing} of {ranks} ranks have none: the run was killed, or the disk was full, while \
                 it was written, or a file was lost on the way."
            ));
            self.timelines.clear();
        } else if self.timelines.is_empty() {
            self.note_no_trace();
        }
        self.leave_out_gaps();
        Ok(())
    }

    /// Keeps of a trace that ran out of room what all ranks have whole, so that nothing is counted
    /// that only some of them tell.
    fn leave_out_gaps(&mut self) {
        let dropped = self.timelines.iter().map(Timeline::dropped_in_all);
        let dropped = total(dropped);
        if dropped == 0 {
            return;
        }
        let kept: u64 = self.timelines.iter().map(Timeline::events).sum();
        let lost = format!("{dropped} events found no room in the trace beside {kept} that did");
        let whole = Timeline::whole(&self.timelines);
        let ends = whole.and_then(|(_, last)| {
            let end = |timeline: &Timeline| end_of_step(timeline, last);
            self.timelines.iter().map(end).collect::<Option<Vec<u64>>>()
        });
        let (Some((first, last)), Some(ends)) = (whole, ends) else {
            let scopes = self.timelines.iter().flat_map(|timeline| &timeline.scopes);
            let first = scopes.map(|(step, _)| *step).min().unwrap_or(1);
            self.incomplete = true;
            self.notes.push(format!(
                "{lost}: no step is whole on all ranks, and figures from the trace are marked as incomplete. Trace one \
                 step, as in `--trace={first}`; if that is too much, fewer ranks, each of which has more room then."
            ));
            return;
        };
        for (timeline, end) in self.timelines.iter_mut().zip(ends) {
            timeline.scopes.retain(|(step, _)| *step <= last);
            timeline.spans.retain(|span| span.begin < end);
            timeline.samples.retain(|sample| sample.at < end);
        }
        // No two runs have as many events.
        let fits = (9 * (last - first + 1) / 10).max(1);
        self.notes.push(format!(
            "{lost}. Steps {first} to {last} are whole on all ranks: figures from the trace cover these steps, and later ones are left out. `--trace={first}..{}` traces only as much as finds room.",
            first + fits - 1
        ));
    }
}

/// No clock of a run shows more: 36 years in ns.
const LATEST: u64 = 1 << 60;
/// The most ranks that a run can have.
const MOST_RANKS: u32 = 1 << 20;
/// The most workers that a rank can have: traces number them with 16 bits.
const MOST_WORKERS: usize = 1 << 16;
/// The most patches that a scene can have.
const MOST_PATCHES: usize = 1 << 20;
/// Largest record in bytes: a rank takes some 600.
const LARGEST_RECORD: u64 = 256 << 20;

fn read_record(bytes: &[u8]) -> Result<Record, String> {
    // All else may mean something else elsewhere.
    #[derive(Deserialize)]
    struct Program {
        name: String,
    }
    #[derive(Deserialize)]
    struct Head {
        program: Option<Program>,
        schema: Option<u64>,
    }
    let foreign = || "it does not say that weftwork wrote it".to_owned();
    let head: Head = serde_json::from_slice(bytes).map_err(|error| match error.is_data() {
        true => foreign(),
        false => error.to_string(),
    })?;
    if head
        .program
        .is_none_or(|program| program.name != "weftwork")
    {
        return Err(foreign());
    }
    match head.schema {
        Some(1) => {}
        Some(schema) => return Err(format!("schema {schema}, this version knows 1")),
        None => return Err("it has no \"schema\"".to_owned()),
    }
    let record: Record = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    match record.machine.ranks {
        1..=MOST_RANKS => Ok(record),
        ranks => Err(format!("a run on {ranks} ranks")),
    }
}

fn read_history(path: &Path) -> Result<Vec<Row>, ReportError> {
    match read_text(path, u64::MAX) {
        Ok(text) => Row::read_all(&text).map_err(|what| ReportError::History {
            path: path.to_owned(),
            what,
        }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(source) => Err(ReportError::Read {
            path: path.to_owned(),
            source,
        }),
    }
}

/// The time at which a step ended on a rank.
fn end_of_step(timeline: &Timeline, step: u64) -> Option<u64> {
    let is_step = |span: &&Span| {
        let kind = timeline.kinds.get(usize::from(span.kind));
        kind.is_some_and(|kind| kind.name == "step") && u64::from(span.detail) == step
    };
    timeline.spans.iter().find(is_step).map(|span| span.end)
}

/// Makes all of its names such that they can be shown.
fn make_safe(timeline: &mut Timeline) {
    let of_kinds = timeline.kinds.iter_mut();
    let of_kinds = of_kinds.flat_map(|kind| [&mut kind.name, &mut kind.detail]);
    let names = of_kinds.chain(&mut timeline.counters);
    for name in names.chain([&mut timeline.host]) {
        *name = name.shown().to_string();
    }
    for (_, trace) in &mut timeline.scopes {
        for kind in &mut trace.kinds {
            *kind = kind.shown().to_string();
        }
        trace.sharing.iter_mut().for_each(record::make_safe);
    }
}

fn read_timeline(bytes: &[u8], rank: usize, run: &str) -> Result<Timeline, String> {
    let (of, mut timeline) = read_trace_file(bytes)?;
    if of != run {
        return Err("it is of another run than run.json".to_owned());
    }
    if timeline.rank.index() != rank {
        return Err(format!("it is of rank {}", timeline.rank.0));
    }
    let workers = timeline.scopes.iter().map(|(_, trace)| trace.workers);
    if workers.max() > Some(MOST_WORKERS) {
        return Err("it tells of more workers than a rank can have".to_owned());
    }
    make_safe(&mut timeline);
    timeline.align();
    let spans = timeline.spans.iter().map(|span| span.begin.max(span.end));
    let scopes = timeline.scopes.iter().flat_map(|(_, trace)| &trace.events);
    if spans
        .chain(scopes.map(|event| event.at))
        .any(|at| at > LATEST)
    {
        return Err("it tells of times that no clock shows".to_owned());
    }
    Ok(timeline)
}
