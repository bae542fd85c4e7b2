//! Policies as values: what a split gives away, whom a thief asks, how often, how patiently.
//!
//! A [`Policy`] is made of parts, each one idea: a [`Split`] rule, a [`Victims`] rule, an
//! [`Interval`]. Values with a name stand in [`POLICIES`], [`SPLITS`] and [`VICTIMS`]. Rules
//! are traits, so that a user's own crate can add some without touching this one. Whatever the
//! policy, the results are the same.

pub mod interval;
mod paper;
mod rule;
pub mod split;
pub mod victims;

use std::time::Duration;

use crate::wire;

pub use self::interval::{Interval, Pace};
pub use self::split::{SPLITS, Split, SplitRule};
pub use self::victims::{VICTIMS, VictimRule, VictimState, Victims};

/// How ranks share work; the same on every rank.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Policy {
    /// Whether idle ranks ask others for tasks.
    pub steal: bool,
    /// The part of its work that a task gives away when it is split.
    pub split: Split,
    /// The rule that chooses the rank that an idle rank asks.
    pub victims: Victims,
    /// Least time between two splits on a rank.
    pub interval: Interval,
    /// Running tasks are asked to split while the pool holds fewer tasks than this, or than workers
    /// that have nothing to do; and, where workers are threads, after a thief was sent away.
    pub low_water: usize,
    /// Whether a running task is split at once for a thief that would otherwise get nothing, if it
    /// runs on the thread that answers. The 2006 paper does not do this.
    pub split_on_request: bool,
    /// Time after which an unanswered request is followed by one to another victim.
    pub steal_timeout: Duration,
    /// Whether tasks are forked where a forecast of their costs puts them, and not by who owns what
    /// they are of. A wish to those who fork, who may have no forecast: the runtime itself does not
    /// ask.
    pub forecast: bool,
    /// Whether tasks are forked by a forecast patch by patch: all tasks of a patch on one rank, as
    /// if the patch moved there. A wish as `forecast` is.
    pub moves_patches: bool,
}

impl Policy {
    /// Every task stays on the rank that forked it, whole.
    pub const STATIC: Self = Self {
        steal: false,
        split: Split::NEVER,
        split_on_request: false,
        ..Self::EVERY_OTHER
    };
    /// The policy of the 2006 paper [TB06 §4.2.2-4.2.3].
    pub const PAPER: Self = paper::PAPER;
    /// Every other entry, victims at random, at most a split in 50 µs.
    pub const EVERY_OTHER: Self = Self {
        steal: true,
        split: Split::EVERY_OTHER,
        victims: Victims::RANDOM,
        interval: Interval::Fixed(Duration::from_micros(50)),
        low_water: 0,
        split_on_request: true,
        steal_timeout: Duration::from_millis(1),
        forecast: false,
        moves_patches: false,
    };
    /// Every other entry, of tasks that are forked by forecast: what is stolen is only what it was
    /// wrong by.
    pub const FORECAST: Self = Self {
        forecast: true,
        ..Self::EVERY_OTHER
    };
    /// Every task stays where a forecast has put it.
    pub const FORECAST_STATIC: Self = Self {
        forecast: true,
        ..Self::STATIC
    };
    /// Every task stays where its patch has moved by a forecast: objects that migrate, as those of
    /// distBVH do.
    pub const MIGRATION: Self = Self {
        moves_patches: true,
        ..Self::FORECAST_STATIC
    };
    /// The older half of the entries.
    pub const HALF: Self = Self {
        split: Split::HALF,
        ..Self::EVERY_OTHER
    };
    /// Half of the estimated work.
    pub const WEIGHT: Self = Self {
        split: Split::WEIGHT,
        ..Self::EVERY_OTHER
    };
    /// Every other entry, as often as thieves take what is split off.
    pub const ADAPTIVE: Self = Self {
        interval: Interval::Adaptive,
        // Without a low water mark, only thieves would ask for splits, and the interval would not
        // matter.
        low_water: 1,
        ..Self::EVERY_OTHER
    };
    /// Every other entry, from the last victim that had some.
    pub const LAST_VICTIM: Self = Self {
        victims: Victims::LAST,
        ..Self::EVERY_OTHER
    };
    /// Every other entry, from victims on the same node and on others at a time.
    pub const HIERARCHICAL: Self = Self {
        victims: Victims::HIERARCHICAL,
        ..Self::EVERY_OTHER
    };
    /// Every other entry, and thieves that nobody can serve wait to be called.
    pub const LIFELINES: Self = Self {
        victims: Victims::LIFELINES,
        ..Self::EVERY_OTHER
    };

    /// The policy of this name in [`POLICIES`].
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        let found = POLICIES.iter().find(|(known, _, _)| *known == name);
        found.map(|&(_, policy, _)| policy)
    }
}

/// [`Policy::EVERY_OTHER`]: good on deep narrow trees as well as on shallow wide ones.
impl Default for Policy {
    fn default() -> Self {
        Self::EVERY_OTHER
    }
}

/// Policies with names, and a line about each.
pub const POLICIES: &[(&str, Policy, &str)] = &[
    (
        "static",
        Policy::STATIC,
        "no stealing, no splitting: tasks stay where they are forked",
    ),
    (
        "paper",
        Policy::PAPER,
        "the 2006 paper: the oldest entry, at most every 10 ms, victims at random",
    ),
    (
        "every-other",
        Policy::EVERY_OTHER,
        "every other entry, victims at random",
    ),
    (
        "forecast",
        Policy::FORECAST,
        "every-other, tasks forked where their last costs put them",
    ),
    (
        "forecast-static",
        Policy::FORECAST_STATIC,
        "no stealing, tasks forked where their last costs put them",
    ),
    (
        "migration",
        Policy::MIGRATION,
        "no stealing, patches move whole to where their last costs put them",
    ),
    (
        "half",
        Policy::HALF,
        "the older half of the entries, victims at random",
    ),
    (
        "weight",
        Policy::WEIGHT,
        "half of the estimated work, victims at random",
    ),
    (
        "adaptive",
        Policy::ADAPTIVE,
        "every other entry, as often as thieves take what is split off",
    ),
    (
        "last-victim",
        Policy::LAST_VICTIM,
        "every other entry, from the last victim that had some",
    ),
    (
        "hierarchical",
        Policy::HIERARCHICAL,
        "every other entry, from the same node and from another at a time",
    ),
    (
        "lifelines",
        Policy::LIFELINES,
        "every other entry; after a few refusals thieves wait to be called",
    ),
];

/// How a rank takes part in a scope; but for `workers` and `progress_thread`, the same on every
/// rank.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScopeOptions {
    /// Threads of this rank that run tasks, the one that talks to other ranks included unless it is
    /// a [progress thread](Self::progress_thread); at least 1.
    pub workers: usize,
    /// Whether the thread that talks to other ranks does only that: then all workers are threads
    /// beside it, and a task that runs long delays no message. Costs a thread that looks for
    /// messages all along, and a moment for each task, which must be handed over.
    pub progress_thread: bool,
    /// How ranks share work.
    pub policy: Policy,
    /// Seed of the choice of victims; each rank draws its own sequence from it.
    pub seed: u64,
    /// Units of work (see [`Context::charge`](crate::Context::charge)) after which a task is to
    /// return [`Step::More`](crate::Step::More), so that its rank can look after messages: some
    /// microseconds, if a unit is some tens of nanoseconds. 0 is as 1.
    pub slice: u32,
    /// Most bytes of copies of other ranks' blocks that are kept beyond those that tasks wait for
    /// or use.
    pub cache_bytes: usize,
    /// Events to keep of what happens when, for [`ScopeReport::trace`](crate::ScopeReport::trace);
    /// `None` for no trace, 0 for one that only counts what it drops.
    pub trace: Option<usize>,
    /// The time without any progress after which the rank lists what is live on standard error.
    pub watch: Option<Duration>,
    /// Longest message that this rank sends, in bytes; at most [`wire::LIMIT`], which is what
    /// others read. Tasks, results and blocks that do not fit into one are refused where they would
    /// be sent.
    pub longest: usize,
}

impl ScopeOptions {
    /// The longest message.
    pub(crate) fn longest_message(&self) -> usize {
        self.longest.min(wire::LIMIT)
    }

    /// The longest task, result or block: there must be room in a message for what stands around
    /// it.
    pub(crate) fn longest_part(&self) -> usize {
        let longest = self.longest_message();
        longest - longest / 64
    }
}

impl Default for ScopeOptions {
    fn default() -> Self {
        Self {
            workers: 1,
            progress_thread: false,
            policy: Policy::default(),
            seed: 0,
            slice: 128,
            cache_bytes: 256 << 20,
            trace: None,
            watch: Some(Duration::from_secs(30)),
            longest: wire::LIMIT,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_policy_is_found_by_its_own_name() {
        for (at, &(name, policy, about)) in POLICIES.iter().enumerate() {
            assert_eq!(Policy::by_name(name), Some(policy));
            assert!(!about.is_empty());
            // No two names for one policy, either.
            assert!(POLICIES[..at].iter().all(|&(_, other, _)| other != policy));
        }
        assert_eq!(Policy::by_name("knit"), None);
        assert_eq!(Policy::by_name("every-other"), Some(Policy::default()));
    }
}
