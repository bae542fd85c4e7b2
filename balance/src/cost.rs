//! The cost of top-level tests, as ranks report it to each other.
//!
//! Costs are whole numbers in the unit of [`work`](crate::work::work), so that all ranks compute
//! the same from the same reports.

use serde::{Deserialize, Serialize};

use crate::array_bytes;
use crate::part::Part;

/// The partner against which a patch is tested.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub enum Against {
    /// The patch itself.
    #[default]
    Itself,
    /// Another patch, which has the higher number.
    Patch(u32),
    /// A body, by its number.
    Body(u32),
}

/// The cost of a top-level test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TestCost {
    /// The patch; if there are two, the one with the lower number.
    pub patch: u32,
    /// The partner against which the patch is tested.
    pub against: Against,
    /// The cost in the unit of [`work`](crate::work::work).
    pub work: u32,
}

impl TestCost {
    /// The other patch, if the test is of two.
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

/// The cost of one rank's part of a top-level test, which may be all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartCost {
    /// The test, with what the rank spent on it.
    pub test: TestCost,
    /// The part that the rank was assigned, or from which a thief took a piece; `None` if the test
    /// was not divided.
    pub part: Option<Part>,
}

impl From<TestCost> for PartCost {
    fn from(test: TestCost) -> Self {
        Self { test, part: None }
    }
}

/// The report of a rank about its tests since ranks last made a forecast.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CostReport {
    /// The top-level tests of the last step.
    pub tests: Vec<PartCost>,
    /// The time that all threads of the rank spent on tests, in ns, over all steps.
    pub(crate) busy: u64,
    /// The time that they spent on putting contacts in order, in ns, over all steps.
    pub(crate) sorting: u64,
    /// The cost of the tests of all steps.
    pub(crate) work: u64,
    /// The number of steps.
    pub(crate) steps: u32,
}

impl CostReport {
    /// The bytes on the heap that it holds, by the capacities of its arrays.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        let Self {
            tests,
            busy: _,
            sorting: _,
            work: _,
            steps: _,
        } = self;
        array_bytes(tests)
    }

    /// Adds a step: its tests, the time in ns that all threads spent on them, and the time in ns
    /// that they spent on putting contacts in order.
    pub fn add(&mut self, tests: Vec<PartCost>, busy: u64, sorting: u64) {
        self.tests = tests;
        self.busy = self.busy.saturating_add(busy);
        self.sorting = self.sorting.saturating_add(sorting);
        self.work = self.work.saturating_add(self.last());
        self.steps = self.steps.saturating_add(1);
    }

    /// The cost of the tests of the last step.
    pub(crate) fn last(&self) -> u64 {
        let works = self
            .tests
            .iter()
            .map(|reported| u64::from(reported.test.work));
        works.sum()
    }

    /// Forgets all times, but not the tests of the last step.
    pub fn restart(&mut self) {
        self.busy = 0;
        self.sorting = 0;
        self.work = 0;
        self.steps = 0;
    }
}

/// The work that was done of the tests that an assignment gives to one rank, by that rank or by a
/// thief. The rank itself counts what it prepared for them, and finding them, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RankWork {
    /// The rank to which the tests were assigned.
    pub rank: u32,
    /// The work in the unit of [`work`](crate::work::work).
    pub work: u64,
}
