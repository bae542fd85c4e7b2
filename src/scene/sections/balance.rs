//! The keys of `[balance]`: some of their own, and the parts of a policy.

use std::time::Duration;

use weft_runtime::policy::{SPLITS, VICTIMS};
use weft_runtime::{Interval, POLICIES, Policy, Split, Victims};

use crate::scene::Balance;
use crate::scene::form::{Amount, Count, Flag, OneOf, Word};
use crate::scene::key::{Changes, Key, Section, Value};
use crate::scene::quantity::Dimension;
use crate::scene::reader::{Range, Table};

type Of<F> = Value<Balance, F>;

/// A policy that has a name, by its place in [`POLICIES`].
#[derive(Clone, Copy)]
struct Named(usize);

impl Word for Named {
    fn all() -> Vec<Self> {
        (0..POLICIES.len()).map(Self).collect()
    }

    fn name(self) -> &'static str {
        POLICIES[self.0].0
    }
}

impl Word for Split {
    fn all() -> Vec<Self> {
        SPLITS.to_vec()
    }

    fn name(self) -> &'static str {
        self.name()
    }
}

impl Word for Victims {
    fn all() -> Vec<Self> {
        VICTIMS.to_vec()
    }

    fn name(self) -> &'static str {
        self.name()
    }
}

impl Section for Balance {
    const NAME: &'static str = "balance";

    const KEYS: &'static [Key<Self>] = &[
        Key::new(
            "ranks",
            &Of {
                form: Count(1, MOST_RANKS),
                get: |balance| balance.ranks.map(|ranks| ranks as u64),
                set: |balance, ranks| balance.ranks = usize::try_from(ranks).ok(),
            },
            "The ranks of a run whose command line does not say how many.",
        )
        .unset("from the command line")
        .changes(Changes::Output),
        Key::new(
            "seed",
            &Of {
                // TOML's whole numbers end at i64::MAX.
                form: Count(0, i64::MAX.unsigned_abs()),
                get: |balance| Some(balance.seed),
                set: |balance, seed| balance.seed = seed,
            },
            "The seed of the choice of victims.",
        )
        .changes(Changes::Output),
        // It comes before its parts, which change what it has set.
        Key::new(
            "policy",
            &Of {
                form: OneOf::<Named>::NEW,
                // Only this part of a policy has no key of its own.
                get: |balance| match balance.policy.interval {
                    Interval::Fixed(_) => None,
                    Interval::Adaptive => named(|policy| *policy == Policy::ADAPTIVE),
                },
                set: |balance, Named(index)| balance.policy = POLICIES[index].1,
            },
            "A [policy](policies.md) by its name. In a scene the keys below change parts of it; named \
             on the command line it [replaces them too](#overrides).",
        )
        .unset("`\"forecast\"`")
        .changes(Changes::Policy),
        Key::new(
            "split_interval",
            &Of {
                form: Amount(Dimension::TIME, Range::NonNegative),
                get: |balance| match balance.policy.interval {
                    Interval::Fixed(time) => Some(time.as_secs_f64()),
                    Interval::Adaptive => None,
                },
                set: |balance, seconds| {
                    if let Ok(time) = Duration::try_from_secs_f64(seconds) {
                        balance.policy.interval = Interval::Fixed(time);
                    }
                },
            },
            "The least time between two splits on a rank.",
        )
        .changes(Changes::Policy),
        Key::new(
            "steal",
            &Of {
                form: Flag,
                get: |balance| Some(balance.policy.steal),
                set: |balance, steal| balance.policy.steal = steal,
            },
            "Whether idle ranks ask others for tasks.",
        )
        .changes(Changes::Policy),
        Key::new(
            "split",
            &Of {
                form: OneOf::<Split>::NEW,
                get: |balance| Some(balance.policy.split),
                set: |balance, split| balance.policy.split = split,
            },
            "The part of its work that a task gives away when it is split.",
        )
        .changes(Changes::Policy),
        Key::new(
            "victims",
            &Of {
                form: OneOf::<Victims>::NEW,
                get: |balance| Some(balance.policy.victims),
                set: |balance, victims| balance.policy.victims = victims,
            },
            "Whom an idle rank asks.",
        )
        .changes(Changes::Policy),
        Key::new(
            "low_water",
            &Of {
                form: Count(0, 1_000_000),
                get: |balance| Some(balance.policy.low_water as u64),
                set: |balance, low_water| {
                    balance.policy.low_water = usize::try_from(low_water).unwrap_or(usize::MAX);
                },
            },
            "Running tasks are asked to split while the pool holds fewer tasks than this.",
        )
        .changes(Changes::Policy),
        Key::new(
            "split_on_request",
            &Of {
                form: Flag,
                get: |balance| Some(balance.policy.split_on_request),
                set: |balance, splits| balance.policy.split_on_request = splits,
            },
            "Whether a running task is split at once for a thief that would otherwise get nothing.",
        )
        .changes(Changes::Policy),
        Key::new(
            "steal_timeout",
            &Of {
                form: Amount(Dimension::TIME, Range::Positive),
                get: |balance| Some(balance.policy.steal_timeout.as_secs_f64()),
                set: |balance, seconds| {
                    if let Ok(time) = Duration::try_from_secs_f64(seconds) {
                        balance.policy.steal_timeout = time;
                    }
                },
            },
            "The time after which an unanswered request is followed by one to another victim.",
        )
        .changes(Changes::Policy),
        Key::new(
            "forecast",
            &Of {
                form: Flag,
                get: |balance| Some(balance.policy.forecast),
                set: |balance, forecast| balance.policy.forecast = forecast,
            },
            "Whether tasks are forked where a forecast of their costs puts them.",
        )
        .changes(Changes::Policy),
        Key::new(
            "moves_patches",
            &Of {
                form: Flag,
                get: |balance| Some(balance.policy.moves_patches),
                set: |balance, moves| balance.policy.moves_patches = moves,
            },
            "Whether a forecast puts all tasks of a patch on one rank, as if the patch moved there.",
        )
        .changes(Changes::Policy),
    ];

    fn check(&self, _: &Table<'_>) {}
}

/// The first named policy of which this holds.
fn named(holds: impl Fn(&Policy) -> bool) -> Option<Named> {
    let index = POLICIES.iter().position(|(_, policy, _)| holds(policy));
    index.map(Named)
}

/// Ranks of a run.
const MOST_RANKS: u64 = 65_536;
