//! What top-level tests cost, as ranks tell each other.

use serde::{Deserialize, Serialize};

use crate::part::Part;

/// What a patch is tested against.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub enum Against {
    /// Itself.
    #[default]
    Itself,
    /// Another patch, with a higher number.
    Patch(u32),
    /// A body.
    Body(u32),
}

/// What a top-level test cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TestCost {
    /// The patch, of two the one with the lower number.
    pub patch: u32,
    /// What it was tested against.
    pub against: Against,
    /// As [`work`] has it.
    pub work: u32,
}

impl TestCost {
    /// The other patch, if it was tested against one.
    #[must_use]
    pub fn other(&self) -> Option<u32> {
        match self.against {
            Against::Patch(other) => Some(other),
            Against::Itself | Against::Body(_) => None,
        }
    }

    pub(crate) fn key(&self) -> (u32, Against) {
        (self.patch, self.against)
    }
}

/// What a rank made of a top-level test: all of it, or a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartCost {
    /// What it cost.
    pub test: TestCost,
    /// The part of it, or of which it is a piece.
    pub part: Option<Part>,
}

impl From<TestCost> for PartCost {
    fn from(test: TestCost) -> Self {
        Self { test, part: None }
    }
}

/// What a rank tells of the tests that it made since ranks last reported each other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CostReport {
    /// The last step's top-level tests.
    pub tests: Vec<PartCost>,
    /// For how long it was busy with those of all steps, in ns of all threads together.
    pub(crate) busy: u64,
    /// For how long with putting contacts in order.
    pub(crate) sorting: u64,
    /// What those tests cost.
    pub(crate) work: u64,
    /// How many steps that were.
    pub(crate) steps: u32,
}

impl CostReport {
    /// Takes in a step: its tests, and for how many ns, of all threads together, the rank was busy with them, and with putting contacts in order.
    pub fn add(&mut self, tests: Vec<PartCost>, busy: u64, sorting: u64) {
        self.tests = tests;
        self.busy = self.busy.saturating_add(busy);
        self.sorting = self.sorting.saturating_add(sorting);
        self.work = self.work.saturating_add(self.last());
        self.steps = self.steps.saturating_add(1);
    }

    /// What the tests of the last step cost.
    pub(crate) fn last(&self) -> u64 {
        let works = self
            .tests
            .iter()
            .map(|reported| u64::from(reported.test.work));
        works.sum()
    }

    /// Forgets how long steps took, but not what the last one tested.
    pub fn restart(&mut self) {
        self.busy = 0;
        self.sorting = 0;
        self.work = 0;
        self.steps = 0;
    }
}

/// What a rank done of what a plan has given to one: tests, and, of its own, finding them and what it made ready for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RankWork {
    /// To which rank.
    pub rank: u32,
    /// What that cost.
    pub work: u64,
}
