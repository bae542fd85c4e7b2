//! Which top-level tests a rank forks: those of its own patches, or those that a forecast gives it ([`weft_study::forecast`]).
//!
//! Ranks tell each other every few steps what tests cost them, with what they send anyway before they test. All make the same
//! plan of it, and keep to it until the next.

use serde::{Deserialize, Serialize};
use weft_study::forecast::{CONTACT, Forecast, Placement, Spent};

/// Steps, or parts of steps, for which a plan is good: cloth moves little in them, and making it costs as much as some
/// ten thousand tests of volumes.
const STEPS: u32 = 8;

/// What the last collision detection cost a rank.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Costs {
    /// Tests that it made.
    pub(super) tests: Vec<Spent>,
    /// Contacts that it took in.
    pub(super) contacts: u64,
}

/// What a rank knows of where tests are to be forked.
#[derive(Debug, Default)]
pub(super) struct Placing {
    costs: Costs,
    /// What the plan is made of.
    known: Vec<Spent>,
    plan: Option<Placement>,
    /// How often it was used.
    age: u32,
}

impl Placing {
    /// What this rank is to tell before the next collision detection, if it is time for another plan.
    pub(super) fn told(&self) -> Option<&Costs> {
        (self.age == 0).then_some(&self.costs)
    }

    /// Whether the next plan is made before the next collision detection.
    pub(super) fn is_due(&self) -> bool {
        self.age == 0
    }

    /// Takes what all ranks have told, and makes a plan of it. Nobody knows anything before the first step, and tests are forked by owners.
    pub(super) fn plan(&mut self, told: Vec<Costs>, nodes: &[u32]) {
        let after: Vec<u64> = told.iter().map(|costs| CONTACT * costs.contacts).collect();
        let forecast = Forecast::new(told.into_iter().flat_map(|costs| costs.tests).collect());
        self.known = forecast.costs().to_vec();
        self.plan = (after.len() > 1 && !forecast.is_empty()).then(|| forecast.cut(nodes, &after));
    }

    /// On one rank, which needs no plan: notes what one could be made of, for records.
    pub(super) fn note(&mut self) {
        if self.is_due() {
            self.known = Forecast::new(self.costs.tests.clone()).costs().to_vec();
        }
    }

    /// The plan that holds.
    pub(super) fn placement(&self) -> Option<&Placement> {
        self.plan.as_ref()
    }

    /// What it is made of.
    pub(super) fn known(&self) -> &[Spent] {
        &self.known
    }

    /// A collision detection has ended that cost this.
    pub(super) fn ended(&mut self, costs: Costs) {
        self.costs = costs;
        // After the first one something is known.
        self.age = if self.known.is_empty() {
            0
        } else {
            (self.age + 1) % STEPS
        };
    }
}
