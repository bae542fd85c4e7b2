//! Which top-level tests a rank forks: those of its own patches, or those that a forecast gives it ([`weft_study::forecast`]).
//!
//! Ranks tell each other every few steps what tests cost them, with what they send anyway before they test. All make the same
//! plan of it, and keep to it until the next, but for its cuts: before the steps between, they tell each other only how much each has done, and
//! move these. Where tests are stolen that says nothing of a plan, and thieves mend it.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use weft_runtime::Policy;
use weft_study::forecast::{Account, Forecast, Placement, Spent, Told};

/// Steps, or parts of steps, for which a plan is good: cloth moves little in them, and making it costs as much as some
/// ten thousand tests of volumes.
const STEPS: u32 = 8;

/// What a rank tells all others before a collision detection.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum News {
    /// What its tests cost it, of which all make another plan.
    Tests(Account),
    /// What it did in the last step, by which all move the cuts of the plan that holds.
    Did(u64),
}

/// What a rank knows of where tests are to be forked.
#[derive(Debug, Default)]
pub(super) struct Placing {
    account: Account,
    /// What the plan is made of.
    forecast: Forecast,
    plan: Option<Placement>,
    /// How often it was used.
    age: u32,
}

impl Placing {
    /// What this rank is to tell before the next collision detection, if anything.
    pub(super) fn news(&self, policy: &Policy) -> Option<News> {
        if !policy.forecast {
            None
        } else if self.is_due() {
            Some(News::Tests(self.account.clone()))
        } else {
            let moves = !policy.steal && self.plan.is_some();
            moves.then(|| News::Did(self.forecast.did(&self.account)))
        }
    }

    /// Whether the next plan is made before the next collision detection.
    pub(super) fn is_due(&self) -> bool {
        self.age == 0
    }

    /// Takes what all ranks have told, and makes a plan of it; `before` is what each does before tests. Nobody knows anything before the first step, and tests are forked by owners.
    pub(super) fn plan(&mut self, told: &[Account], nodes: &[u32], before: &[u64]) {
        self.forecast = Forecast::new(told, &self.forecast, nodes);
        let helps = told.len() > 1 && !self.forecast.is_empty();
        self.plan = helps.then(|| self.forecast.placed(nodes, before));
        self.account.restart();
    }

    /// On one rank, which needs no plan: notes what one could be made of, for records.
    pub(super) fn note(&mut self) {
        if self.is_due() {
            let tests = self.account.tests.iter().map(|told| told.spent);
            self.forecast = Forecast::of_tests(&tests.collect::<Vec<_>>());
            self.account.restart();
        }
    }

    /// Takes what all ranks did in the last step, and moves the cuts of the plan.
    pub(super) fn shift(&mut self, did: &[u64]) {
        if let Some(plan) = &mut self.plan {
            plan.shift(did);
        }
    }

    /// The plan that holds.
    pub(super) fn placement(&self) -> Option<&Placement> {
        self.plan.as_ref()
    }

    /// What it is made of.
    pub(super) fn known(&self) -> &[Spent] {
        self.forecast.costs()
    }

    /// A collision detection has ended in which this rank made these tests, and was busy with them, and with putting contacts in order, for so long.
    pub(super) fn ended(&mut self, tests: Vec<Told>, busy: Duration, sorting: Duration) {
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.account.add(tests, ns(busy), ns(sorting));
        // After the first one something is known.
        self.age = if self.forecast.is_empty() {
            0
        } else {
            (self.age + 1) % STEPS
        };
    }
}
