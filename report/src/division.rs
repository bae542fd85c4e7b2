//! The division of the time of every rank, moment by moment: each has one use or one cause of
//! idleness, so that all parts add up to what there was.
//!
//! Outside of scopes a rank computes or waits for a message. In a scope each of its workers runs a
//! task or is idle, and what it lacks shows by what *all* ranks do at that moment: tasks may wait
//! in the pool of another rank, or work may be left only inside tasks that run, or nowhere.

use crate::tracks::{Change, RankTracks, Tracks};

/// The purpose for which a worker spent a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(usize)]
pub enum Use {
    /// It ran a task.
    Tasks,
    /// Its rank computed outside of tasks.
    Phase,
    /// Tasks waited in the pool of another rank, and did not come.
    Held,
    /// No task waited anywhere: what work there was, was inside tasks that others ran.
    Running,
    /// Nobody ran a task: no work anywhere.
    NoWork,
    /// A request was under way that was to bring tasks.
    Answer,
    /// Data for tasks was under way.
    Blocks,
    /// Its rank waited in a reduction.
    Reduction,
    /// Its rank waited for messages of other ranks, such as the border of the solve.
    Messages,
    /// Its rank waited for any message while a rank, the first as a rule, was busy with outputs.
    Outputs,
    /// The runtime's own time: tasks were there but not yet taken up, or were being made.
    Runtime,
}

impl Use {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Tasks,
        Self::Phase,
        Self::Held,
        Self::Running,
        Self::NoWork,
        Self::Answer,
        Self::Blocks,
        Self::Reduction,
        Self::Messages,
        Self::Outputs,
        Self::Runtime,
    ];

    /// Its name, for people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Tasks => "in tasks",
            Self::Phase => "computing",
            Self::Held => "work waited at another rank",
            Self::Running => "work only inside running tasks",
            Self::NoWork => "no work anywhere",
            Self::Answer => "waiting for an answer",
            Self::Blocks => "waiting for blocks",
            Self::Reduction => "in a reduction",
            Self::Messages => "waiting for messages",
            Self::Outputs => "waiting for outputs to be written",
            Self::Runtime => "the runtime itself",
        }
    }

    /// Whether it is work.
    #[must_use]
    pub(crate) fn is_useful(self) -> bool {
        matches!(self, Self::Tasks | Self::Phase)
    }
}

/// Time of each use in ns, summed over workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts(pub [u64; Use::ALL.len()]);

impl Parts {
    /// The time of one use.
    #[must_use]
    pub fn of(&self, what: Use) -> u64 {
        self.0[what as usize]
    }

    /// The time of all uses.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().copied().fold(0, u64::saturating_add)
    }

    /// The time of the uses that are work.
    #[must_use]
    pub fn useful(&self) -> u64 {
        self.of(Use::Tasks).saturating_add(self.of(Use::Phase))
    }

    /// The time of the uses that are not work.
    #[must_use]
    pub fn idle(&self) -> u64 {
        self.total() - self.useful()
    }

    /// Adds others.
    pub fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            *mine = mine.saturating_add(*theirs);
        }
    }

    fn charge(&mut self, what: Use, ns: u64) {
        let part = &mut self.0[what as usize];
        *part = part.saturating_add(ns);
    }
}

/// The time of all ranks in traced steps, divided up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Division {
    /// The parts by rank, then phase.
    pub parts: Vec<Vec<Parts>>,
}

impl Division {
    /// Divides the steps that were traced on all ranks.
    #[must_use]
    pub fn of(tracks: &Tracks, workers: usize) -> Self {
        let none = vec![Parts::default(); tracks.phases.len().max(1)];
        let mut division = Self {
            parts: vec![none; tracks.ranks.len()],
        };
        let outputs = outputs(tracks);
        for (parts, rank) in division.parts.iter_mut().zip(&tracks.ranks) {
            outside(parts, rank, &tracks.waits, &outputs, workers as u64);
        }
        // Scopes of one step belong together.
        let mut steps: Vec<(u32, usize, usize)> = Vec::new();
        for (rank, of_rank) in tracks.ranks.iter().enumerate() {
            let scopes = of_rank.scopes.iter().enumerate();
            steps.extend(scopes.map(|(at, scope)| (scope.step, rank, at)));
        }
        steps.sort_unstable();
        for scopes in steps.chunk_by(|a, b| a.0 == b.0) {
            Sweep::new(tracks, scopes, workers).run(&mut division.parts);
        }
        division
    }

    /// All of a rank.
    #[must_use]
    pub fn rank(&self, rank: usize) -> Parts {
        sum(self.parts.get(rank).into_iter().flatten())
    }

    /// All of a phase.
    #[must_use]
    pub fn phase(&self, phase: usize) -> Parts {
        sum(self.parts.iter().filter_map(|rank| rank.get(phase)))
    }

    /// The sum of all parts.
    #[must_use]
    pub fn all(&self) -> Parts {
        sum(self.parts.iter().flatten())
    }
}

fn sum<'a>(parts: impl Iterator<Item = &'a Parts>) -> Parts {
    let mut all = Parts::default();
    parts.for_each(|part| all.add(part));
    all
}

/// Whether what a wait is called is one that all ranks take part in.
pub(crate) fn is_collective(wait: &str) -> bool {
    matches!(wait, "allgather" | "barrier" | "broadcast" | "gather")
}

/// The times in which any rank was busy with outputs: spans in the order of time that do not
/// overlap.
fn outputs(tracks: &Tracks) -> Vec<(u64, u64)> {
    let mut parts: Vec<(u64, u64)> = tracks
        .ranks
        .iter()
        .flat_map(|r| r.outputs.clone())
        .collect();
    parts.sort_unstable();
    let mut spans: Vec<(u64, u64)> = Vec::new();
    for (begin, end) in parts {
        match spans.last_mut() {
            Some(last) if begin <= last.1 => last.1 = last.1.max(end),
            _ => spans.push((begin, end)),
        }
    }
    spans
}

/// How much of a piece of time spans cover that are in order.
fn covered(spans: &[(u64, u64)], begin: u64, end: u64) -> u64 {
    let first = spans.partition_point(|&(_, e)| e <= begin);
    let within = spans[first..].iter().take_while(|&&(b, _)| b < end);
    within.map(|&(b, e)| e.min(end) - b.max(begin)).sum()
}

/// Charges the phases of a rank but for the time in scopes: all workers share what the main thread
/// does.
fn outside(
    parts: &mut [Parts],
    rank: &RankTracks,
    waits: &[String],
    outputs: &[(u64, u64)],
    workers: u64,
) {
    let (mut scope, mut wait) = (0, 0);
    for phase in &rank.phases {
        let Some(parts) = parts.get_mut(usize::from(phase.phase)) else {
            continue;
        };
        // The parts of the phase that are in no scope.
        let mut at = phase.begin;
        while at < phase.end {
            while rank.scopes.get(scope).is_some_and(|scope| scope.end <= at) {
                scope += 1;
            }
            let (begin, end) =
                (rank.scopes.get(scope)).map_or((u64::MAX, u64::MAX), |s| (s.begin, s.end));
            if begin > at {
                let until = begin.min(phase.end);
                let spans = (&rank.waits[..], waits, outputs);
                let waited = piece(parts, spans, &mut wait, (at, until), workers);
                parts.charge(Use::Phase, (until - at - waited).saturating_mul(workers));
                at = until;
            } else {
                at = end.min(phase.end);
            }
        }
    }
}

/// Charges the waits within a piece of time; returns how long they were.
fn piece(
    parts: &mut Parts,
    (spans, waits, outputs): (&[crate::WaitSpan], &[String], &[(u64, u64)]),
    next: &mut usize,
    (begin, end): (u64, u64),
    workers: u64,
) -> u64 {
    let mut waited = 0;
    let mut from = begin;
    while let Some(span) = spans.get(*next) {
        if span.begin >= end {
            break;
        }
        // Never twice, should spans overlap.
        let (b, e) = (span.begin.max(from), span.end.min(end));
        if b < e {
            let name = waits.get(usize::from(span.kind)).map_or("", String::as_str);
            let what = if is_collective(name) {
                Use::Reduction
            } else {
                Use::Messages
            };
            let of_outputs = covered(outputs, b, e);
            parts.charge(Use::Outputs, of_outputs.saturating_mul(workers));
            parts.charge(what, (e - b - of_outputs).saturating_mul(workers));
            waited += e - b;
            from = e;
        }
        if span.end > end {
            break;
        }
        *next += 1;
    }
    waited
}

/// The state of a rank at a moment of a scope.
#[derive(Clone, Default)]
struct Now {
    inside: bool,
    since: u64,
    busy: Vec<bool>,
    pool: u32,
    fetches: u32,
    answers: u32,
    body: bool,
    /// The phase that the scope is in.
    phase: usize,
    /// The time of the scope that lies in a step, and so counts.
    within: (u64, u64),
}

/// All ranks' scopes of a step, in the order of time.
struct Sweep {
    events: Vec<(u64, usize, Change)>,
    ranks: Vec<Now>,
    /// Ranks that run tasks, and ranks with tasks in their pools.
    busy: usize,
    pools: usize,
}

impl Sweep {
    fn new(tracks: &Tracks, scopes: &[(u32, usize, usize)], workers: usize) -> Self {
        let mut ranks = vec![Now::default(); tracks.ranks.len()];
        let mut events = Vec::new();
        for &(step, rank, at) in scopes {
            let of_rank = &tracks.ranks[rank];
            let scope = of_rank.scopes[at];
            let now = &mut ranks[rank];
            now.busy = vec![false; workers.max(1)];
            let begun = of_rank.phases.partition_point(|p| p.begin <= scope.begin);
            let phase = begun.checked_sub(1).map(|last| of_rank.phases[last]);
            now.phase = phase.map_or(0, |phase| usize::from(phase.phase));
            let steps = of_rank.steps.iter().filter(|s| s.0 == step);
            now.within = steps
                .map(|&(_, begin, end)| (begin, end))
                .next()
                .unwrap_or((scope.begin, scope.end));
            let changes = of_rank.changes[at].iter();
            events.extend(changes.map(|&(at, change)| (at, rank, change)));
        }
        // Stable: what happens on a rank at one time keeps its order.
        events.sort_by_key(|&(at, ..)| at);
        Self {
            events,
            ranks,
            busy: 0,
            pools: 0,
        }
    }

    fn run(mut self, parts: &mut [Vec<Parts>]) {
        for (at, rank, change) in std::mem::take(&mut self.events) {
            self.flush(rank, at, parts);
            let (was_busy, was_pool) = self.counts(rank);
            let now = &mut self.ranks[rank];
            match change {
                Change::Enter => now.inside = true,
                Change::Leave => {
                    now.inside = false;
                    now.busy.fill(false);
                    now.pool = 0;
                }
                Change::Busy(worker, busy) => {
                    if now.busy.len() <= usize::from(worker) {
                        now.busy.resize(usize::from(worker) + 1, false);
                    }
                    now.busy[usize::from(worker)] = busy;
                }
                Change::Pool(tasks) => now.pool = tasks,
                Change::Fetch(begins) => count(&mut now.fetches, begins),
                Change::Answer(begins) => count(&mut now.answers, begins),
                Change::Body(works) => now.body = works,
            }
            let (is_busy, is_pool) = self.counts(rank);
            let busy = self.busy + usize::from(is_busy) - usize::from(was_busy);
            let pools = self.pools + usize::from(is_pool) - usize::from(was_pool);
            // Others' causes depend on whether there are any.
            if (busy > 0) != (self.busy > 0) || (pools > 0) != (self.pools > 0) {
                (0..self.ranks.len()).for_each(|other| self.flush(other, at, parts));
            }
            (self.busy, self.pools) = (busy, pools);
        }
    }

    /// Whether a rank runs tasks, and whether it has some in its pool.
    fn counts(&self, rank: usize) -> (bool, bool) {
        let now = &self.ranks[rank];
        (now.busy.contains(&true), now.inside && now.pool > 0)
    }

    /// Charges a rank's time since it was charged last.
    fn flush(&mut self, rank: usize, at: u64, parts: &mut [Vec<Parts>]) {
        let now = &mut self.ranks[rank];
        let since = std::mem::replace(&mut now.since, at);
        if !now.inside {
            return;
        }
        let (begin, end) = (since.max(now.within.0), at.min(now.within.1));
        let length = end.saturating_sub(begin);
        let Some(parts) = parts[rank].get_mut(now.phase).filter(|_| length > 0) else {
            return;
        };
        let lacks = if now.fetches > 0 {
            Use::Blocks
        } else if now.answers > 0 {
            Use::Answer
        } else if now.pool > 0 {
            Use::Runtime
        } else if self.pools > 0 {
            Use::Held
        } else if self.busy > 0 {
            Use::Running
        } else {
            Use::NoWork
        };
        for (worker, &busy) in now.busy.iter().enumerate() {
            let what = match busy {
                true => Use::Tasks,
                // Only the first worker runs the body.
                false if worker == 0 && now.body => Use::Runtime,
                false => lacks,
            };
            parts.charge(what, length);
        }
    }
}

fn count(number: &mut u32, begins: bool) {
    *number = if begins {
        *number + 1
    } else {
        number.saturating_sub(1)
    };
}
