//! Which top-level tests a rank forks: those of its own patches, or those that a forecast gives it ([`weft_balance::forecast`]).
//!
//! Ranks tell each other every few steps what tests cost them, with what they send anyway before they test. All make the same
//! plan of it, and keep to it until the next, but for its cuts: before the steps between, they tell each other only how much each has done of
//! whose tests, and move these.

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

/// Steps, or parts of steps, for which a plan is good: cloth moves little in them, and making it costs as much as some
/// ten thousand tests of volumes.
const STEPS: u32 = 8;

/// What a rank tells all others before a collision detection.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum News {
    /// What its tests cost it, of which all make another plan.
    Costs(CostReport),
    /// What it done in the last step, of its own tests and of those that it stole, by which all move the cuts of the plan that holds.
    Work(Vec<RankWork>),
}

/// What a rank knows of where tests are to be forked.
#[derive(Debug, Default)]
pub(super) struct Balancer {
    cost_report: CostReport,
    /// What the plan is made of.
    forecast: Forecast,
    plan: Option<Assignment>,
    /// How often it was used.
    age: u32,
}

impl Balancer {
    /// What this rank is to tell before the next collision detection, if anything.
    pub(super) fn news(&self, me: usize, policy: &Policy) -> Option<News> {
        if !policy.forecast {
            return None;
        }
        if self.is_due() {
            return Some(News::Costs(self.cost_report.clone()));
        }
        let plan = self.plan.as_ref()?;
        let done = plan.work_done(&self.forecast, (me, &self.cost_report), policy.steal);
        Some(News::Work(done))
    }

    /// Whether the next plan is made before the next collision detection.
    pub(super) fn is_due(&self) -> bool {
        self.age == 0
    }

    /// Takes what all ranks have reported, which is news of the same kind as that of this one, or nothing: makes a plan of it, or moves the cuts of the one that holds.
    /// Nobody knows anything before the first step, and tests are forked by owners.
    ///
    /// # Errors
    /// Bytes that are something else, or of tests that do not exist.
    pub(super) fn hear(
        &mut self,
        news: Option<&News>,
        reported: &[Vec<u8>],
        geometry: &Geometry<'_>,
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
        match (news, &mut self.plan) {
            (News::Costs(_), _) => self.plan(&cost_reports, geometry),
            (News::Work(_), Some(plan)) => plan.move_boundaries(done),
            (News::Work(_), None) => {}
        }
        Ok(())
    }

    fn plan(&mut self, reported: &[CostReport], geometry: &Geometry<'_>) {
        let patches = geometry.cloth.patches().iter();
        let nodes: Vec<u32> = patches.map(|tree| tree.len() as u32).collect();
        let triangles: Vec<u32> = tiles(geometry).iter().map(|tile| tile.triangles).collect();
        let before = separation_work(&triangles, reported.len());
        self.forecast = Forecast::new(reported, &self.forecast, &nodes);
        let helps = reported.len() > 1 && !self.forecast.is_empty();
        self.plan = helps.then(|| self.forecast.assigned(&nodes, &before));
        self.cost_report.restart();
    }

    /// On one rank, which needs no plan: notes what one could be made of, for records.
    pub(super) fn note(&mut self) {
        if self.is_due() {
            let tests = self.cost_report.tests.iter().map(|reported| reported.test);
            self.forecast = Forecast::from_tests(&tests.collect::<Vec<_>>());
            self.cost_report.restart();
        }
    }

    /// The plan that holds.
    pub(super) fn assignment(&self) -> Option<&Assignment> {
        self.plan.as_ref()
    }

    /// What it is made of.
    pub(super) fn known(&self) -> &[TestCost] {
        self.forecast.costs()
    }

    /// A collision detection has ended in which this rank made these tests, and was busy with them, and with putting contacts in order, for so long.
    pub(super) fn ended(&mut self, tests: Vec<PartCost>, busy: Duration, sorting: Duration) {
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.cost_report.add(tests, ns(busy), ns(sorting));
        // After the first one something is known.
        self.age = if self.forecast.is_empty() {
            0
        } else {
            (self.age + 1) % STEPS
        };
    }
}

/// Whether what costs were reported of exists.
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
