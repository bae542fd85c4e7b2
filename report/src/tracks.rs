//! A rank's timeline as spans: tasks, phases, waits, requests. Everything else here is counted from
//! them.
//!
//! Events pair up as they were recorded: what had not ended when a trace was full ends with its
//! last event, and ends that never began count for nothing.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};

use weft_runtime::trace::{Detail, Timeline, Trace, What};

/// The first number of a body in traces; numbers below are patches.
pub const FIRST_BODY: u32 = 1_000_000;

/// A task on a worker, from being taken up to being set down; times in ns of rank 0's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskSpan {
    /// The time at which it was taken up.
    pub begin: u64,
    /// The time at which it was set down.
    pub end: u64,
    /// The task's subject, see [`Detail::of`].
    pub of: [u32; 2],
    /// How often what it was a part of was split.
    pub depth: u16,
    /// Tests made meanwhile.
    pub tests: u32,
}

impl TaskSpan {
    /// Its patches: none, one, or two.
    pub fn patches(&self) -> impl Iterator<Item = u32> + use<> {
        let [p, q] = self.of;
        let known = self.of != Detail::NOTHING;
        let first = (known && p < FIRST_BODY).then_some(p);
        first
            .into_iter()
            .chain((known && q < FIRST_BODY && q != p).then_some(q))
    }
}

/// A phase of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhaseSpan {
    /// The time at which it began, in ns.
    pub begin: u64,
    /// The time at which it ended.
    pub end: u64,
    /// The phase: an index into [`Tracks::phases`].
    pub phase: u8,
    /// The step.
    pub step: u32,
}

/// A wait of the main thread for a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitSpan {
    /// The time at which it began, in ns.
    pub begin: u64,
    /// The time at which it ended.
    pub end: u64,
    /// The kind of wait: an index into [`Tracks::waits`].
    pub kind: u8,
    /// The rank that was waited for.
    pub from: u32,
}

/// A request for tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The time at which it was sent, in ns.
    pub asked: u64,
    /// The time at which its answer came.
    pub answered: u64,
    /// The rank asked.
    pub victim: u32,
    /// Tasks that came; none is a refusal.
    pub tasks: u32,
}

/// A scope of tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ScopeSpan {
    pub(crate) step: u32,
    pub(crate) begin: u64,
    pub(crate) end: u64,
}

/// Something in a scope that changes what a rank's workers do, or what they wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Change {
    Enter,
    /// A worker runs a task from now on, or does not.
    Busy(u16, bool),
    /// The number of tasks in the pool has become this.
    Pool(u32),
    /// Data is under way, or has come.
    Fetch(bool),
    /// A request that will bring tasks is under way, or has come.
    Answer(bool),
    /// The body is at work, outside of joins, or is not.
    Body(bool),
    Leave,
}

/// The track of one rank.
#[derive(Clone, Debug, Default)]
pub struct RankTracks {
    /// Tasks of each worker, in the order in which they were taken up.
    pub tasks: Vec<Vec<TaskSpan>>,
    /// Phases, in the order of time.
    pub phases: Vec<PhaseSpan>,
    /// Steps: number, begin and end in ns.
    pub steps: Vec<(u32, u64, u64)>,
    /// Outputs between steps: begin and end in ns.
    pub outputs: Vec<(u64, u64)>,
    /// Waits, in the order of time.
    pub waits: Vec<WaitSpan>,
    /// Requests that were answered, in the order of answers.
    pub requests: Vec<Request>,
    /// Tasks that came without having been asked for again: when, from whom, how many.
    pub gifts: Vec<(u64, u32, u32)>,
    /// Bytes of data that came for tasks.
    pub fetched: u64,
    pub(crate) scopes: Vec<ScopeSpan>,
    /// The changes of each scope, in the order of [`Self::scopes`].
    pub(crate) changes: Vec<Vec<(u64, Change)>>,
}

/// The tracks of all ranks.
#[derive(Clone, Debug, Default)]
pub struct Tracks {
    /// Names of the phases.
    pub phases: Vec<String>,
    /// Names of what is waited for.
    pub waits: Vec<String>,
    /// Every rank.
    pub ranks: Vec<RankTracks>,
}

/// The kinds of spans.
#[derive(Clone, Copy)]
enum Kind {
    Step,
    Outputs,
    Phase(u8),
    Wait(u8),
}

impl Tracks {
    /// The spans of all ranks' timelines, which are aligned.
    #[must_use]
    pub fn of(timelines: &[Timeline], workers: usize) -> Self {
        let mut tracks = Self::default();
        for timeline in timelines {
            let rank = tracks.rank(timeline, workers);
            tracks.ranks.push(rank);
        }
        tracks
    }

    fn rank(&mut self, timeline: &Timeline, workers: usize) -> RankTracks {
        let kinds: Vec<Kind> = (timeline.kinds.iter())
            .map(
                |kind| match (kind.name.as_str(), kind.name.strip_prefix("wait: ")) {
                    ("step", _) => Kind::Step,
                    ("outputs", _) => Kind::Outputs,
                    (_, Some(wait)) => Kind::Wait(number(&mut self.waits, wait)),
                    (phase, None) => Kind::Phase(number(&mut self.phases, phase)),
                },
            )
            .collect();
        let mut rank = RankTracks::default();
        for span in &timeline.spans {
            let (begin, end) = (span.begin, span.end.max(span.begin));
            match kinds.get(usize::from(span.kind)) {
                Some(Kind::Step) => rank.steps.push((span.detail, begin, end)),
                Some(Kind::Outputs) => rank.outputs.push((begin, end)),
                Some(&Kind::Phase(phase)) => rank.phases.push(PhaseSpan {
                    begin,
                    end,
                    phase,
                    step: 0,
                }),
                Some(&Kind::Wait(kind)) => rank.waits.push(WaitSpan {
                    begin,
                    end,
                    kind,
                    from: span.detail,
                }),
                None => {}
            }
        }
        rank.steps.sort_unstable_by_key(|&(_, begin, _)| begin);
        rank.phases.sort_by_key(|phase| phase.begin);
        rank.waits.sort_by_key(|wait| wait.begin);
        // A phase is of the step that it lies in.
        let mut at = 0;
        for phase in &mut rank.phases {
            while rank
                .steps
                .get(at + 1)
                .is_some_and(|&(_, begin, _)| begin <= phase.begin)
            {
                at += 1;
            }
            phase.step = rank.steps.get(at).map_or(0, |&(step, ..)| step);
        }
        rank.tasks.resize_with(workers.max(1), Vec::new);
        for (step, trace) in &timeline.scopes {
            rank.scope(u32::try_from(*step).unwrap_or(u32::MAX), trace);
        }
        for tasks in &mut rank.tasks {
            tasks.sort_by_key(|task| task.begin);
        }
        rank
    }
}

/// The number of a name, which it gets if it has none.
fn number(names: &mut Vec<String>, name: &str) -> u8 {
    let known = names.iter().position(|known| known == name);
    let at = known.unwrap_or_else(|| {
        names.push(name.to_owned());
        names.len() - 1
    });
    u8::try_from(at).unwrap_or(u8::MAX)
}

/// An interval that is open on a worker: a task, or a wait of the task below it.
enum Open {
    Task(TaskSpan),
    Wait,
}

impl RankTracks {
    fn scope(&mut self, step: u32, trace: &Trace) {
        // Files may hold anything.
        let mut events = Cow::Borrowed(&trace.events[..]);
        if !events.is_sorted_by_key(|event| event.at) {
            events.to_mut().sort_by_key(|event| event.at);
        }
        let (Some(first), Some(last)) = (events.first(), events.last()) else {
            return;
        };
        let mut span = ScopeSpan {
            step,
            begin: first.at,
            end: last.at,
        };
        let mut changes = Vec::new();
        let mut open: Vec<Vec<Open>> = Vec::new();
        let mut asked: HashMap<u32, VecDeque<u64>> = HashMap::new();
        let mut fetches = 0_u32;
        let set_busy = |changes: &mut Vec<_>, at, worker: u16, stack: &[Open]| {
            let busy = matches!(stack.last(), Some(Open::Task(_)));
            changes.push((at, Change::Busy(worker, busy)));
        };
        for event in events.iter() {
            let at = event.at;
            match event.what {
                What::TaskBegin {
                    worker, of, depth, ..
                } => {
                    let index = usize::from(worker);
                    if open.len() <= index {
                        open.resize_with(index + 1, Vec::new);
                    }
                    open[index].push(Open::Task(TaskSpan {
                        begin: at,
                        end: at,
                        of,
                        depth,
                        tests: 0,
                    }));
                    set_busy(&mut changes, at, worker, &open[index]);
                }
                What::TaskEnd { worker, units } => {
                    if let Some(stack) = open.get_mut(usize::from(worker)) {
                        self.end_task(worker, stack, at, units);
                        set_busy(&mut changes, at, worker, stack);
                    }
                }
                What::WaitBegin { worker } => {
                    if let Some(stack) = open.get_mut(usize::from(worker))
                        && matches!(stack.last(), Some(Open::Task(_)))
                    {
                        stack.push(Open::Wait);
                        set_busy(&mut changes, at, worker, stack);
                    }
                }
                What::WaitEnd { worker } => {
                    if let Some(stack) = open.get_mut(usize::from(worker)) {
                        stack.pop_if(|top| matches!(top, Open::Wait));
                        set_busy(&mut changes, at, worker, stack);
                    }
                }
                What::Asked { victim } => asked.entry(victim).or_default().push_back(at),
                What::Answered { victim, tasks } => {
                    let since = asked.get_mut(&victim).and_then(VecDeque::pop_front);
                    let since = since.unwrap_or(at);
                    self.requests.push(Request {
                        asked: since,
                        answered: at,
                        victim,
                        tasks,
                    });
                    if tasks > 0 {
                        changes.push((since, Change::Answer(true)));
                        changes.push((at, Change::Answer(false)));
                    }
                }
                What::Got { victim, tasks } => self.gifts.push((at, victim, tasks)),
                What::Pool { tasks } => changes.push((at, Change::Pool(tasks))),
                What::Fetch { .. } => {
                    fetches += 1;
                    changes.push((at, Change::Fetch(true)));
                }
                What::Fetched { bytes } => {
                    self.fetched += u64::from(bytes);
                    if fetches > 0 {
                        fetches -= 1;
                        changes.push((at, Change::Fetch(false)));
                    }
                }
                What::ScopeBegin => {
                    span.begin = at.min(span.end);
                    changes.push((at, Change::Body(true)));
                }
                What::ScopeEnd => span.end = at.max(span.begin),
                What::JoinBegin => changes.push((at, Change::Body(false))),
                What::JoinEnd => changes.push((at, Change::Body(true))),
                _ => {}
            }
        }
        for (worker, stack) in (0..=u16::MAX).zip(&mut open) {
            while !stack.is_empty() {
                self.end_task(worker, stack, span.end, 0);
            }
        }
        changes.push((span.begin, Change::Enter));
        changes.push((span.end, Change::Leave));
        // In order of time; what is at one time stays in the order of the events, but for the
        // frame.
        changes.sort_by_key(|&(at, change)| {
            let frame = match change {
                Change::Enter => 0,
                Change::Leave => 2,
                _ => 1,
            };
            (at, frame)
        });
        self.scopes.push(span);
        self.changes.push(changes);
    }

    /// The task on top of a worker's stack ends; with it what waits above it.
    fn end_task(&mut self, worker: u16, stack: &mut Vec<Open>, at: u64, tests: u32) {
        while let Some(top) = stack.pop() {
            let Open::Task(task) = top else { continue };
            let index = usize::from(worker);
            if self.tasks.len() <= index {
                self.tasks.resize_with(index + 1, Vec::new);
            }
            self.tasks[index].push(TaskSpan {
                end: at.max(task.begin),
                tests,
                ..task
            });
            return;
        }
    }
}
