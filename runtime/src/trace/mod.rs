//! What happened in a scope, event by event, so that a user can see why a program did not scale.
//!
//! Counts say how much was stolen; they do not say that 63 ranks waited for the last task of the
//! 64th. Each rank fills a [`Recorder`]; the [`Trace`]s of all ranks are read by [`Analysis`],
//! which puts causes to idle time, and by people, in the pictures that [`write_perfetto`] makes.
//!
//! A scope is a part of a program. What its ranks did outside, and in all scopes, is on their
//! [`Timeline`]s, which [`write_timelines`] draws.
//!
//! Clocks are assumed to agree: they do in virtual time and between threads of one process. Traces
//! of processes whose clocks differ must be brought to one clock first, or times between ranks mean
//! nothing: [`Timeline::align`] does so, by what [`read_clocks`](crate::comm::read_clocks) found.

mod analysis;
mod perfetto;
mod ring;
mod sharing;
mod timeline;
mod waits;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

pub use analysis::{Analysis, Deafness, Hint, Idle, RankAnalysis, Steals, Stretch};
pub use perfetto::{write_perfetto, write_timelines};
pub use ring::Recorder;
pub use sharing::Sharing;
pub use timeline::{Sample, Span, SpanKind, Timeline};
pub use waits::Watched;

use crate::comm::Rank;
use crate::policy::Policy;

/// One thing that happened on a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// When, in ns on the rank's clock.
    pub at: u64,
    /// What.
    pub what: What,
}

/// What can happen on a rank in a scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum What {
    /// A worker takes a task up, or up again; its slices are not told apart. Within another task of
    /// the same worker if that one waits in a join.
    TaskBegin {
        /// Which of the rank's workers.
        worker: u16,
        /// The task's kind: its number in the registry.
        kind: u16,
        /// See [`Detail::depth`].
        depth: u16,
        /// See [`Detail::of`].
        of: [u32; 2],
    },
    /// The worker sets down the task it took up last, finished or not.
    TaskEnd {
        /// Which of the rank's workers.
        worker: u16,
        /// Units of work charged since it was taken up; the largest number stands for more as well.
        units: u32,
    },
    /// The task that a worker runs begins to wait in a join of a group that it made. What the
    /// worker runs until that ends is within it.
    WaitBegin {
        /// Which of the rank's workers.
        worker: u16,
    },
    /// The task goes on.
    WaitEnd {
        /// Which of the rank's workers.
        worker: u16,
    },
    /// The task that a worker runs gave a piece away.
    Split {
        /// Which of the rank's workers.
        worker: u16,
    },
    /// This rank asked another for tasks.
    Asked {
        /// Whom.
        victim: u32,
    },
    /// The answer to such a request came.
    Answered {
        /// From whom.
        victim: u32,
        /// How many tasks came with it; none is a refusal.
        tasks: u32,
    },
    /// This rank answered another's request.
    Gave {
        /// Who had asked.
        thief: u32,
        /// How many tasks it gets; none is a refusal.
        tasks: u32,
    },
    /// This rank gave tasks to another that waited for them without asking again.
    Gifted {
        /// Who waited.
        thief: u32,
        /// How many tasks it gets.
        tasks: u32,
    },
    /// Such tasks came.
    Got {
        /// From whom.
        victim: u32,
        /// How many.
        tasks: u32,
    },
    /// The rank read no messages for long, because its main thread was in a task.
    Deaf {
        /// That task's kind.
        kind: u16,
        /// Requests for tasks that came meanwhile, and had to wait.
        requests: u16,
        /// How long, in µs; until the time of this event. What was read then comes after it.
        us: u32,
    },
    /// The rank's pool holds this many tasks: noted now and then, when that has changed.
    Pool {
        /// How many.
        tasks: u32,
    },
    /// Results went home to another rank.
    Results {
        /// Their home.
        to: u32,
        /// How many.
        count: u32,
    },
    /// This rank asked another for data that a task here needs.
    Fetch {
        /// Whom.
        from: u32,
    },
    /// Such data came.
    Fetched {
        /// How much, in bytes.
        bytes: u32,
    },
    /// The tasks of a group were called off.
    Cancelled,
    /// The body begins to wait in a join.
    JoinBegin,
    /// The body goes on.
    JoinEnd,
    /// The rank enters the scope.
    ScopeBegin,
    /// The rank leaves the scope.
    ScopeEnd,
    /// The rank learns that the whole scope is exhausted.
    Dry,
}

/// What a trace tells of a task beside its kind; see [`Task::detail`](crate::Task::detail).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Detail {
    /// How deep it is in the problem: 0 for one that a body forked, more for pieces of it.
    pub depth: u16,
    /// What it is about, as two numbers of the program's own; [`Detail::NOTHING`] if it does not
    /// say.
    pub of: [u32; 2],
}

impl Detail {
    /// About nothing in particular.
    pub const NOTHING: [u32; 2] = [u32::MAX; 2];
}

impl Default for Detail {
    fn default() -> Self {
        Self {
            depth: 0,
            of: Self::NOTHING,
        }
    }
}

/// What one rank recorded in one scope.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trace {
    /// The rank.
    pub rank: Rank,
    /// How many workers it has.
    pub workers: usize,
    /// Names of the kinds of task, by number.
    pub kinds: Vec<String>,
    /// What happened, in the order of time; what happened at the same time, in the order it was
    /// recorded.
    pub events: Vec<Event>,
    /// Events that found no room: the last ones.
    pub dropped: u64,
    /// How ranks shared work, if that is known; advice is better with it.
    #[serde(default)]
    pub sharing: Option<Sharing>,
}

impl Trace {
    /// Adds the policy under which the trace was recorded.
    #[must_use]
    pub fn under(mut self, policy: &Policy) -> Self {
        self.sharing = Some(policy.into());
        self
    }

    /// The events in the order of time: traces may come from files.
    fn in_order(&self) -> Cow<'_, [Event]> {
        if self.events.is_sorted_by_key(|event| event.at) {
            return Cow::Borrowed(&self.events);
        }
        let mut events = self.events.clone();
        events.sort_by_key(|event| event.at);
        Cow::Owned(events)
    }

    /// How many workers it has, those included that only occur in events.
    fn all_workers(&self) -> usize {
        let seen = self.events.iter().filter_map(|event| match event.what {
            What::TaskBegin { worker, .. } => Some(usize::from(worker) + 1),
            _ => None,
        });
        // Events number them with 16 bits.
        let most = usize::from(u16::MAX) + 1;
        seen.max().unwrap_or(0).max(self.workers.min(most))
    }
}

#[cfg(test)]
mod tests;
