//! A record of what happens on ranks, event by event, so that a user can see why a program did not
//! scale.
//!
//! Counts say how much was stolen. They do not say that 63 ranks waited for the last task of the
//! 64th. There are two ways to hear more, and each event goes to both from one place: to a
//! subscriber of the crate `tracing`, and to the ring that makes a [`Trace`].
//!
//! # With `tracing`
//!
//! With the feature `tracing`, which is on by default, every event goes to the subscriber of the
//! process, or to that of the thread that launches the ranks. A scope asks when it begins whether
//! anybody [listens](is_listened). The example `json_lines` has a layer that writes each event as a
//! line. These are the targets, with names and fields of their spans and events:
//!
//! * `weft::phase`, of level `DEBUG`: spans `phase` {`phase`, `counted`, `count`}, events `counter`
//!   {`counter`, `value`}.
//! * `weft::scope`, of level `DEBUG`: spans `scope` and `join`, events `cancel` and `exhausted`.
//! * `weft::task`, of level `TRACE`: spans `task` {`worker`, `kind`, `depth`, `first`, `second`,
//!   `units`} and `wait` {`worker`}, events `split` {`worker`} and `unresponsive` {`kind`,
//!   `requests`, `us`}.
//! * `weft::steal`, of level `TRACE`: events `request` {`victim`}, `answer` and `receive`
//!   {`victim`, `tasks`}, `give` and `gift` {`thief`, `tasks`}.
//! * `weft::pool`, of level `TRACE`: events `pool` {`tasks`}.
//! * `weft::message`, of level `TRACE`: events `results` {`to`, `count`}, `fetch` {`from`} and
//!   `fetched` {`bytes`}.
//! * `weft::comm`, of level `TRACE`: spans `collective` {`collective`}, events `waited` {`what`,
//!   `from`, `end_ns`}.
//!
//! The meaning of an event in a scope is that of [`What`]. All of them have the fields `rank` and
//! `at_ns`, the time on the clock of that rank; under virtual time that is virtual. A span has
//! `end_ns` when it closes. The moment at which a subscriber is called says nothing: the main
//! thread of a rank tells what other workers did when it hears of it, and ranks in virtual time
//! take turns. So tasks are reported as spans that open and close, but are not entered. A phase is
//! entered where its rank has a thread to itself, which it has not in virtual time: there its
//! scopes do not lie in it.
//!
//! # With a ring
//!
//! Where [`ScopeOptions::trace`](crate::ScopeOptions::trace) asks for it, each rank keeps its
//! events in a [`Recorder`]. The [`Trace`]s of all ranks are read by [`Analysis`], which finds
//! causes of idle time, and by people, in the pictures that [`write_perfetto`] makes.
//!
//! A scope is a part of a program. The activities of its ranks outside, and in all scopes, are on
//! their [`Timeline`]s, which [`write_timelines`] draws.
//!
//! Clocks are assumed to agree: they do in virtual time and between threads of one process. Traces
//! of processes whose clocks differ must be brought to one clock first, or times between ranks mean
//! nothing: [`Timeline::align`] does so, by what [`read_clocks`](crate::comm::read_clocks) found.

mod analysis;
#[cfg_attr(not(feature = "tracing"), path = "silent.rs")]
mod emit;
mod perfetto;
mod ring;
mod sharing;
mod timeline;
mod track;
mod waits;

use std::borrow::Cow;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use analysis::{Analysis, Deafness, Hint, Idle, RankAnalysis, Steals, Stretch};
pub use emit::is_listened;
pub(crate) use emit::{OpenSpan, Subscriber};
pub use perfetto::{write_perfetto, write_timelines};
pub use ring::Recorder;
pub use sharing::Sharing;
pub use timeline::{Sample, Span, SpanKind, Timeline};
pub use track::{MainTrack, Mark};
pub use waits::Watched;

use crate::comm::Rank;
use crate::policy::Policy;

/// A time in ns, as events have it.
fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Something that happened on a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// When, in ns on the rank's clock.
    pub at: u64,
    /// The kind of event.
    pub what: What,
}

/// The things that can happen on a rank in a scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum What {
    /// A worker takes a task up, or up again; its slices are not told apart. If another task of the
    /// same worker waits in a join, this one is within that wait.
    TaskBegin {
        /// The number of the worker on its rank.
        worker: u16,
        /// The task's kind: its number in the registry.
        kind: u16,
        /// The task's [`Detail::depth`].
        depth: u16,
        /// The task's [`Detail::of`].
        of: [u32; 2],
    },
    /// The worker sets down the task it took up last, finished or not.
    TaskEnd {
        /// The number of the worker on its rank.
        worker: u16,
        /// Units of work charged since it was taken up; the largest number stands for more as well.
        units: u32,
    },
    /// The task that a worker runs begins to wait in a join of a group that it made. The tasks that
    /// the worker runs until that ends are within it.
    WaitBegin {
        /// The number of the worker on its rank.
        worker: u16,
    },
    /// The task goes on.
    WaitEnd {
        /// The number of the worker on its rank.
        worker: u16,
    },
    /// The task that a worker runs gave a piece away.
    Split {
        /// The number of the worker on its rank.
        worker: u16,
    },
    /// This rank asked another for tasks.
    Asked {
        /// The rank that was asked.
        victim: u32,
    },
    /// The answer to such a request came.
    Answered {
        /// The rank that answered.
        victim: u32,
        /// How many tasks came with it; none is a refusal.
        tasks: u32,
    },
    /// This rank answered another's request.
    Gave {
        /// The rank that had asked.
        thief: u32,
        /// How many tasks it gets; none is a refusal.
        tasks: u32,
    },
    /// This rank gave tasks to another that waited for them without asking again.
    Gifted {
        /// The rank that waited.
        thief: u32,
        /// How many tasks it gets.
        tasks: u32,
    },
    /// Tasks came for which this rank had waited without asking again.
    Got {
        /// The rank that gave them.
        victim: u32,
        /// How many came.
        tasks: u32,
    },
    /// The rank read no messages for long, because its main thread was in a task.
    Deaf {
        /// The kind of that task.
        kind: u16,
        /// Requests for tasks that came meanwhile, and had to wait.
        requests: u16,
        /// How long that took, in µs; it ended at the time of this event. The messages that were
        /// read then come after it.
        us: u32,
    },
    /// The rank's pool holds this many tasks. It is recorded when it has changed, but not more
    /// often than every 50 µs.
    Pool {
        /// The number of tasks.
        tasks: u32,
    },
    /// Results went home to another rank.
    Results {
        /// The home of the results.
        to: u32,
        /// How many went there.
        count: u32,
    },
    /// This rank asked another for a block that a task here needs.
    Fetch {
        /// The rank that was asked.
        from: u32,
    },
    /// The answer to such a request came.
    Fetched {
        /// The length of the block in bytes; 0 if it was refused.
        bytes: u32,
    },
    /// A group was cancelled here.
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

/// The details of a task that a trace has beside its kind; see
/// [`Task::detail`](crate::Task::detail).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Detail {
    /// How deep it is in the problem: 0 for one that a body forked, more for pieces of it.
    pub depth: u16,
    /// Two numbers of the program's own that name the task's subject; [`Detail::NOTHING`] if it
    /// does not say.
    pub of: [u32; 2],
}

impl Detail {
    /// The value of [`Detail::of`] of a task that does not say what it is about.
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

/// The events that one rank kept in one scope.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trace {
    /// The rank.
    pub rank: Rank,
    /// How many workers it has.
    pub workers: usize,
    /// The names of the kinds of task, by number.
    pub kinds: Vec<String>,
    /// The events in the order of time; those of one time stand in the order in which they were
    /// recorded.
    pub events: Vec<Event>,
    /// The number of events that found no room, which are the last ones.
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
