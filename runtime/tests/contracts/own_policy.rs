//! Rules of a user's own crate, as the book's page "A policy" shows them.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use weft_runtime::comm::Rank;
use weft_runtime::comm::virtual_time::{Computation, VirtualOptions, launch};
use weft_runtime::policy::split::{Choice, Entries};
use weft_runtime::policy::victims::Place;
use weft_runtime::policy::{POLICIES, SplitRule, VictimRule, VictimState};
use weft_runtime::{
    Context, Policy, Registry, ScopeError, ScopeOptions, ScopeReport, Split, Step, Task, Victims,
    scope,
};

/// The older third of the entries, one at least.
struct Third;

static THIRD: Third = Third;

impl SplitRule for Third {
    fn name(&self) -> &'static str {
        "third"
    }

    fn about(&self) -> &'static str {
        "the older third of the entries"
    }

    fn choose(&self, entries: &Entries<'_>) -> Choice {
        Choice::Oldest(entries.count().div_ceil(3))
    }
}

/// All others in turn, beginning with the rank after this one.
struct Ring;

static RING: Ring = Ring;

impl VictimRule for Ring {
    fn name(&self) -> &'static str {
        "ring"
    }

    fn about(&self) -> &'static str {
        "all others in turn, one at a time"
    }

    fn start(&self, place: &Place<'_>) -> Box<dyn VictimState> {
        Box::new(Turn {
            me: place.me,
            ranks: place.ranks,
            distance: 0,
        })
    }
}

#[derive(Clone, Debug)]
struct Turn {
    me: Rank,
    ranks: u32,
    /// The distance from this rank to the last victim; the next is one further.
    distance: u32,
}

impl VictimState for Turn {
    fn next(&mut self, open: &[Rank]) -> Option<Rank> {
        if !open.is_empty() {
            return None;
        }
        self.distance = self.distance % (self.ranks - 1) + 1;
        Some(Rank((self.me.0 + self.distance) % self.ranks))
    }

    fn answered(&mut self, from: Rank, with_tasks: bool) {
        if with_tasks {
            // It may have more: it is the next.
            self.distance = (from.0 + self.ranks - self.me.0) % self.ranks - 1;
        }
    }
}

/// Counts the nodes of a tree; a node of height h has h children, of all heights below.
#[derive(Serialize, Deserialize)]
struct Search {
    stack: Vec<u32>,
}

impl Task<()> for Search {
    const NAME: &'static str = "search";
    type Output = u64;

    fn run(&mut self, _env: &(), cx: &mut Context<'_, (), u64>) -> Step<u64> {
        let mut nodes = 0;
        while nodes < u64::from(cx.budget()) {
            let Some(height) = self.stack.pop() else {
                break;
            };
            nodes += 1;
            self.stack.extend(0..height);
        }
        cx.charge(nodes);
        if self.stack.is_empty() {
            return Step::Done(nodes);
        }
        cx.emit(nodes);
        Step::More
    }

    fn split(&mut self, how: Split) -> Option<Self> {
        // A node of height h stands for 2^h.
        let stack = how.take_from_weighted(&mut self.stack, |&height| f64::from(height).exp2())?;
        Some(Self { stack })
    }
}

/// Counts a tree of 2^16 nodes on 8 ranks in virtual time: what each did.
fn count(policy: Policy) -> Vec<ScopeReport> {
    let registry = Registry::new().with::<Search>();
    let options = ScopeOptions {
        policy,
        ..ScopeOptions::default()
    };
    let machine = VirtualOptions {
        computation: Computation::Modelled {
            unit: Duration::from_nanos(100),
        },
        ..VirtualOptions::default()
    };
    let outcome = launch(8, &machine, |comm| {
        scope(comm, &registry, &(), &options, |s| {
            let group = s.group();
            if s.rank() == Rank(0) {
                s.fork(&group, Search { stack: vec![16] })?;
            }
            let mut sum = 0;
            while let Some(nodes) = s.join(&group)? {
                sum += nodes?;
            }
            Ok(sum)
        })
    })
    .unwrap();
    let results: Result<Vec<(u64, ScopeReport)>, ScopeError> =
        outcome.results.into_iter().collect();
    let (sums, reports): (Vec<u64>, Vec<ScopeReport>) = results.unwrap().into_iter().unzip();
    assert_eq!(sums.iter().sum::<u64>(), 1 << 16);
    reports
}

#[test]
fn rules_of_ones_own_share_the_work() {
    let policy = Policy {
        split: Split(&THIRD),
        victims: Victims(&RING),
        ..Policy::default()
    };
    assert_eq!(
        (policy.split.name(), policy.victims.name()),
        ("third", "ring")
    );
    let reports = count(policy);
    assert!(reports.iter().all(|r| r.work > 1 << 10), "{reports:?}");
    assert!(reports[0].splits > 0 && reports[1].tasks_in > 0);
}

/// The policy decides who does the work, not what comes of it.
#[test]
fn every_named_policy_counts_the_same_tree() {
    for &(name, policy, _) in POLICIES {
        let reports = count(policy);
        let moved: u64 = reports.iter().map(|r| r.tasks_in).sum();
        assert_eq!(moved > 0, policy.steal, "{name}");
    }
}
