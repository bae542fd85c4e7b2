//! The balance of tests among ranks: which top-level tests a rank forks in a step.
//!
//! Before the first assignment a rank forks the tests of its own patches. Every few steps ranks
//! report to each other what their tests cost, in a message that they exchange before tests anyway;
//! all make the same [forecast](weft_balance::forecast) and the same
//! [assignment](weft_balance::assignment). In the steps in between they report only how much
//! work the tests of each rank took, and move the boundaries between the ranks' shares.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use weft_balance::assignment::Assignment;
use weft_balance::cost::{Against, CostReport, PartCost, RankWork, TestCost};
use weft_balance::forecast::Forecast;
use weft_balance::work::separation_work;
use weft_runtime::comm::{CommError, Rank};
use weft_runtime::{Policy, wire};

use super::geometry::tiles;
use crate::collide::Geometry;
use crate::heap_bytes::counts_heap;

/// The number of substeps for which an assignment is kept. Cloth moves little in them, and making
/// an assignment costs as much as some ten thousand tests of volumes.
const STEPS: u32 = 8;

/// The news that a rank has for all others before collisions are detected.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum News {
    /// The costs of its tests, from which all make another assignment.
    Costs(CostReport),
    /// The work that it did in the last step, of its own tests and of tests that it stole, by which
    /// all move the boundaries of the assignment that holds.
    Work(Vec<RankWork>),
}

/// The knowledge of a rank about costs, and the assignment that follows from it.
#[derive(Debug, Default)]
pub(crate) struct Balancer {
    cost_report: CostReport,
    /// The forecast from which the assignment was made.
    forecast: Forecast,
    assignment: Option<Assignment>,
    /// The number of substeps since the last assignment.
    age: u32,
}

counts_heap!(Balancer: cost_report, forecast, assignment; without age);

impl Balancer {
    /// The news of this rank before collisions are detected the next time, if any.
    pub(crate) fn news(&self, me: usize, policy: &Policy) -> Option<News> {
        if !policy.forecast {
            return None;
        }
        if self.is_due() {
            return Some(News::Costs(self.cost_report.clone()));
        }
        let assignment = self.assignment.as_ref()?;
        let done = assignment.work_done(&self.forecast, (me, &self.cost_report), policy.steal);
        Some(News::Work(done))
    }

    /// Whether a new assignment is made before collisions are detected the next time.
    pub(crate) fn is_due(&self) -> bool {
        self.age == 0
    }

    /// Takes the news of all ranks, which are of the same kind as those of this rank, or absent:
    /// makes a new assignment, or moves the boundaries of the one that holds. Before the first step
    /// nothing is known, and owners fork their tests.
    ///
    /// # Errors
    /// The bytes are something else, or are about tests that do not exist.
    pub(crate) fn hear(
        &mut self,
        news: Option<&News>,
        reported: &[Vec<u8>],
        (geometry, policy): (&Geometry<'_>, &Policy),
    ) -> Result<(), CommError> {
        let malformed = |rank: usize, what: String| CommError::Malformed {
            from: Rank(rank as u32),
            what,
        };
        let other = |rank| malformed(rank, "other news of tests than is due".to_owned());
        let Some(news) = news else {
            let from = reported.iter().position(|bytes| !bytes.is_empty());
            return from.map_or(Ok(()), |rank| Err(other(rank)));
        };
        let (mut cost_reports, mut done) = (Vec::new(), Vec::new());
        for (rank, bytes) in reported.iter().enumerate() {
            let theirs = wire::decode(bytes).map_err(|what| malformed(rank, what))?;
            match (news, theirs) {
                (News::Costs(_), News::Costs(cost_report)) => {
                    if !(cost_report.tests.iter()).all(|reported| exists(&reported.test, geometry))
                    {
                        let what = "costs of tests that do not exist".to_owned();
                        return Err(malformed(rank, what));
                    }
                    cost_reports.push(cost_report);
                }
                (News::Work(_), News::Work(theirs)) => done.extend(theirs),
                _ => return Err(other(rank)),
            }
        }
        match (news, &mut self.assignment) {
            (News::Costs(_), _) => self.assign(&cost_reports, geometry, policy),
            (News::Work(_), Some(assignment)) => assignment.move_boundaries(done),
            (News::Work(_), None) => {}
        }
        Ok(())
    }

    fn assign(&mut self, reported: &[CostReport], geometry: &Geometry<'_>, policy: &Policy) {
        let patches = geometry.cloth.patches().iter();
        let nodes: Vec<u32> = patches.map(|tree| tree.len() as u32).collect();
        let triangles: Vec<u32> = tiles(geometry).iter().map(|tile| tile.triangles).collect();
        let before = separation_work(&triangles, reported.len());
        self.forecast = Forecast::new(reported, &self.forecast, &nodes);
        let helps = reported.len() > 1 && !self.forecast.is_empty();
        self.assignment = helps.then(|| match policy.moves_patches {
            true => self.forecast.assigned_in_patches(&nodes, &before),
            false => self.forecast.assigned(&nodes, &before),
        });
        self.cost_report.restart();
    }

    /// Makes the forecast on a single rank, where no assignment is needed, because records hold
    /// it.
    pub(crate) fn note(&mut self) {
        if self.is_due() {
            let tests = self.cost_report.tests.iter().map(|reported| reported.test);
            self.forecast = Forecast::from_tests(&tests.collect::<Vec<_>>());
            self.cost_report.restart();
        }
    }

    /// The assignment that holds, if there is one.
    pub(crate) fn assignment(&self) -> Option<&Assignment> {
        self.assignment.as_ref()
    }

    /// The costs in the last forecast.
    pub(crate) fn known(&self) -> &[TestCost] {
        self.forecast.costs()
    }

    /// Takes the costs of this rank's tests when collisions have been detected, with the time that
    /// it spent on them and the time that it put contacts in order.
    pub(crate) fn ended(&mut self, tests: Vec<PartCost>, busy: Duration, sorting: Duration) {
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.cost_report.add(tests, ns(busy), ns(sorting));
        // Something is known after the first step.
        self.age = if self.forecast.is_empty() {
            0
        } else {
            (self.age + 1) % STEPS
        };
    }
}

/// Whether the test that a cost was reported for exists.
fn exists(test: &TestCost, geometry: &Geometry<'_>) -> bool {
    let patches = geometry.cloth.patches().len();
    let is_patch = |patch: u32| (patch as usize) < patches;
    is_patch(test.patch)
        && match test.against {
            Against::Itself => true,
            Against::Patch(other) => is_patch(other) && other > test.patch,
            Against::Body(body) => (body as usize) < geometry.bodies.len(),
        }
}
