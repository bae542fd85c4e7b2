//! The forecast of what the top-level tests of the next step will cost.
//!
//! Cloth moves little in a step, so tests cost nearly what they did in the step before. Every rank
//! reports what its tests cost ([`CostReport`]), and from the reports all ranks make the same
//! forecast, and of that the same [assignment](crate::assignment). They do so every few steps. In
//! between they only report how much [work](crate::cost::RankWork) was done of what each was
//! assigned, and move the boundaries of the assignment.
//!
//! Costs are counted, not timed: [`work`](crate::work::work) weighs tests as an average machine
//! does. The time of a rank's tests shows their cost on the machine at hand, and anything else that
//! makes the rank slow. A rank that takes longer for the same work than others gets less of it the
//! next time. None of this changes the results of a run.

use crate::array_bytes;
use crate::assignment::{Assignment, Division};
use crate::cost::{CostReport, PartCost, TestCost};
use crate::work::Preparation;

/// The cost that each top-level test of the next step is expected to have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Forecast {
    /// The tests, each once, sorted by patch and what it is tested against; costs are corrected by
    /// the times that ranks took.
    pub(crate) costs: Vec<TestCost>,
    /// The factor, for each test, between the cost that is expected and the one that was counted,
    /// in units of 1 / [`USUAL`].
    rates: Vec<u32>,
    /// The costs of the parts, in order, of tests that several ranks made together.
    pub(crate) pieces: Vec<Piece>,
    /// The work of each rank after its tests, in the unit of [`work`](crate::work::work).
    pub(crate) after: Vec<u64>,
}

/// A part of a test for which a cost was reported. It reaches to where the next part of the test
/// begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// The place of the test in [`Forecast::costs`].
    pub(crate) test: u32,
    /// The beginning of the part, as a multiple of 2⁻³² of the test.
    pub(crate) from: u32,
    /// The cost of all parts of the test before it.
    pub(crate) before: u64,
    /// The correction of its cost, in units of 1 / [`USUAL`].
    pub(crate) rate: u32,
}

/// The factor of a test that costs what was counted.
const USUAL: u64 = 1 << 10;

/// The expected cost of a test, corrected by this factor.
pub(crate) fn rated(test: &TestCost, rate: u64) -> u32 {
    u32::try_from(u64::from(test.work) * rate / USUAL).unwrap_or(u32::MAX)
}

/// The factor of several parts together. It is the mean of their factors by cost, and not computed
/// from corrected costs: those are rounded down, and would be each time again.
fn rate_of(tests: &[(PartCost, u64)]) -> u32 {
    if let [(one, rate)] = tests
        && one.test.work > 0
    {
        return *rate as u32;
    }
    let works = tests.iter().map(|(one, _)| u64::from(one.test.work));
    let counted: u64 = works.sum();
    let taken = (tests.iter()).map(|(one, rate)| u128::from(one.test.work) * u128::from(*rate));
    taken
        .sum::<u128>()
        .checked_div(u128::from(counted))
        .map_or(USUAL as u32, |rate| rate as u32)
}

impl Forecast {
    /// The bytes on the heap that it holds, by the capacities of its arrays.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        let Self {
            costs,
            rates,
            pieces,
            after,
        } = self;
        array_bytes(costs) + array_bytes(rates) + array_bytes(pieces) + array_bytes(after)
    }

    /// Makes the forecast of the reports of all ranks, by rank, and of the forecast before. `nodes`
    /// has the number of nodes of each patch's tree. The reports may list parts of tests in any
    /// order.
    ///
    /// If a rank took longer than others for the same expected cost, its tests are expected to cost
    /// more from now on, by half of the difference. So a single disturbed step is soon forgotten,
    /// and a lasting difference between tests is found once they have been on several ranks.
    /// Contacts belong to the same vertices whichever rank finds them: putting them in order stays
    /// with the rank, and its cost is the mean of the last forecast and the time that was reported.
    #[must_use]
    pub fn new(cost_reports: &[CostReport], before: &Self, nodes: &[u32]) -> Self {
        let mut reported = Vec::with_capacity(cost_reports.iter().map(|a| a.tests.len()).sum());
        let mut paces = Vec::with_capacity(cost_reports.len());
        let mut readied = Preparation::new(nodes);
        for cost_report in cost_reports {
            let (mut units, mut next) = (0, 0);
            for one in &cost_report.tests {
                let test = &one.test;
                let rate;
                (rate, next) = before.rate(one, next);
                let rate = u64::from(rate);
                units += u64::from(rated(test, rate));
                readied.add(test);
                reported.push((*one, rate));
            }
            let made_ready = readied.take();
            // The sum over all steps; the last one may have cost more than most.
            let all = u128::from(units) * u128::from(cost_report.work)
                / u128::from(cost_report.last().max(1))
                + u128::from(made_ready) * u128::from(cost_report.steps);
            // A rank that made no tests says nothing about how fast ranks are.
            paces.push(
                (u128::from(cost_report.busy) << 32)
                    .checked_div(all)
                    .unwrap_or(0),
            );
        }
        let mut known: Vec<u128> = paces.iter().copied().filter(|&pace| pace > 0).collect();
        known.sort_unstable();
        let usual = known.get(known.len() / 2).copied().unwrap_or(1);
        // As much as all tests together is enough to leave a rank without any.
        let all: u64 = reported
            .iter()
            .map(|(one, rate)| u64::from(rated(&one.test, *rate)))
            .sum();
        let after = |(rank, cost_report): (usize, &CostReport)| {
            let each = cost_report
                .sorting
                .checked_div(u64::from(cost_report.steps));
            let units = (u128::from(each.unwrap_or(0)) << 32) / usual;
            let units = u64::try_from(units).unwrap_or(u64::MAX).min(all);
            units.midpoint(before.after.get(rank).copied().unwrap_or(0).min(all))
        };
        let after = match known.is_empty() {
            true => Vec::new(),
            false => cost_reports.iter().enumerate().map(after).collect(),
        };
        let mut at = 0;
        for (cost_report, pace) in cost_reports.iter().zip(paces) {
            let own = &mut reported[at..at + cost_report.tests.len()];
            at += own.len();
            if pace > 0 {
                let pace = u64::try_from(u128::from(USUAL) * pace / usual).unwrap_or(u64::MAX);
                let half = USUAL.midpoint(pace.min(4 * USUAL));
                for (_, rate) in own {
                    *rate = (*rate * half / USUAL).clamp(USUAL / 8, 8 * USUAL);
                }
            }
        }
        // The lists of ranks are sorted, and nearly follow each other.
        let from = |one: &PartCost| one.part.map_or(0, |part| part.from);
        reported.sort_by_key(|(one, _)| (one.test.key(), from(one)));
        let mut forecast = Self {
            costs: Vec::with_capacity(reported.len()),
            rates: Vec::with_capacity(reported.len()),
            pieces: Vec::new(),
            after,
        };
        for same in reported.chunk_by(|(a, _), (b, _)| a.test.key() == b.test.key()) {
            let test = forecast.costs.len() as u32;
            let mut work = 0;
            for parts in same.chunk_by(|(a, _), (b, _)| from(a) == from(b)) {
                if parts.len() < same.len() {
                    forecast.pieces.push(Piece {
                        test,
                        from: from(&parts[0].0),
                        before: work,
                        rate: rate_of(parts),
                    });
                }
                let works = parts
                    .iter()
                    .map(|(one, rate)| u64::from(rated(&one.test, *rate)));
                work += works.sum::<u64>();
            }
            forecast.rates.push(rate_of(same));
            let work = u32::try_from(work).unwrap_or(u32::MAX);
            forecast.costs.push(TestCost {
                work,
                ..same[0].0.test
            });
        }
        forecast
    }

    /// Makes a forecast of the costs of all tests, without any times.
    #[must_use]
    pub fn from_tests(tests: &[TestCost]) -> Self {
        let cost_report = CostReport {
            tests: tests.iter().copied().map(PartCost::from).collect(),
            ..CostReport::default()
        };
        Self::new(&[cost_report], &Self::default(), &[])
    }

    /// The correction of a part that was reported: that of the known part in which its middle lies.
    /// `next` is where the test probably stands in [`Self::costs`]; the second result is the
    /// probable place of the test that is asked for next.
    pub(crate) fn rate(&self, reported: &PartCost, next: usize) -> (u32, usize) {
        let key = reported.test.key();
        let is_next = (self.costs.get(next)).is_some_and(|test| test.key() == key);
        let found = if is_next {
            Ok(next)
        } else {
            self.costs.binary_search_by_key(&key, TestCost::key)
        };
        let Ok(at) = found else {
            return (USUAL as u32, next);
        };
        let piece = reported.part.and_then(|part| {
            let place = (at as u32, part.from.midpoint(part.last));
            let behind = (self.pieces).partition_point(|piece| (piece.test, piece.from) <= place);
            let piece = self.pieces[..behind].last()?;
            (piece.test == place.0).then_some(piece.rate)
        });
        (piece.unwrap_or(self.rates[at]), at + 1)
    }

    /// Whether no cost is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.costs.is_empty()
    }

    /// The tests with their costs, sorted by patch and what it is tested against.
    #[must_use]
    pub fn costs(&self) -> &[TestCost] {
        &self.costs
    }

    /// Assigns all tests to ranks, each of which has this much work `before` them, in the unit of
    /// [`work`](crate::work::work), and after them what it reported. `nodes` has the number of
    /// nodes of each patch's tree: a rank has to prepare all patches that its tests read.
    #[must_use]
    pub fn assigned(&self, nodes: &[u32], before: &[u64]) -> Assignment {
        Assignment::new(self, (nodes, before), Division::Anywhere)
    }

    /// Assigns all tests as [`assigned`](Self::assigned) does, and those of each patch to one rank:
    /// patches move whole.
    #[must_use]
    pub fn assigned_in_patches(&self, nodes: &[u32], before: &[u64]) -> Assignment {
        Assignment::new(self, (nodes, before), Division::BetweenPatches)
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::*;
    use crate::cost::Against;
    use crate::part::Part;

    fn tests(patches: Range<u32>, work: impl Fn(u32) -> u32) -> Vec<TestCost> {
        let test = |patch| TestCost {
            patch,
            against: Against::Itself,
            work: work(patch),
        };
        patches.map(test).collect()
    }

    /// The reports of ranks that have these patches, where a unit of work takes `takes` ns.
    fn reported(shares: &[Range<u32>], takes: impl Fn(u32) -> u64) -> Vec<CostReport> {
        let cost_report = |patches: &Range<u32>| {
            let mut cost_report = CostReport::default();
            let busy = patches.clone().map(|patch| 10_000 * takes(patch)).sum();
            for _ in 0..3 {
                let tests = tests(patches.clone(), |_| 10_000);
                cost_report.add(tests.into_iter().map(PartCost::from).collect(), busy, 0);
            }
            cost_report
        };
        shares.iter().map(cost_report).collect()
    }

    #[test]
    fn a_rank_that_takes_longer_is_taken_to_have_costlier_tests() {
        // The second rank takes twice as long for the same work; the third was stopped for a while.
        let takes = |patch| [1, 2, 1_000][patch as usize / 4];
        let cost_reports = reported(&[0..4, 4..8, 8..12, 12..16, 16..20], |patch| {
            if patch < 12 { takes(patch) } else { 1 }
        });
        let forecast = Forecast::new(&cost_reports, &Forecast::default(), &[0; 20]);
        let works: Vec<u32> = forecast.costs().iter().map(|test| test.work).collect();
        assert_eq!(works[0], 10_000);
        assert_eq!(works[4], 15_000);
        assert_eq!(works[8], 25_000);
        // Without times nothing is corrected.
        let even = Forecast::from_tests(&tests(0..2, |_| 7));
        assert_eq!(even.costs(), &tests(0..2, |_| 7)[..]);
    }

    #[test]
    fn the_cost_of_a_test_is_found_by_moving_it_between_ranks() {
        // One test in eight takes three times as long.
        let takes = |patch: u32| if patch.is_multiple_of(8) { 3 } else { 1 };
        let nodes = [0; 32];
        let mut forecast = Forecast::default();
        let mut shares: Vec<Range<u32>> = (0..8).map(|rank| 4 * rank..4 * rank + 4).collect();
        let longest = |shares: &[Range<u32>]| {
            let long = |share: &Range<u32>| share.clone().map(takes).sum::<u64>();
            shares.iter().map(long).max()
        };
        assert_eq!(longest(&shares), Some(6));
        for _ in 0..8 {
            forecast = Forecast::new(&reported(&shares, takes), &forecast, &nodes);
            let works = forecast.costs().iter().map(|test| test.work);
            let ends = weft_partition::even_shares(&works.collect::<Vec<_>>(), shares.len());
            shares = ends
                .into_iter()
                .map(|share| share.start as u32..share.end as u32)
                .collect();
            shares.retain(|share| !share.is_empty());
        }
        // The tests take 40 units in all, on eight ranks.
        assert_eq!(longest(&shares), Some(5));
    }

    #[test]
    fn a_rate_stays_as_it_is_however_little_a_test_costs() {
        for work in [1, 3, 10_000, u32::MAX] {
            let reported: Vec<_> = tests(0..3, |_| work)
                .into_iter()
                .map(PartCost::from)
                .collect();
            let same: Vec<_> = reported.iter().map(|&one| (one, 1_000)).collect();
            assert_eq!(rate_of(&same), 1_000);
            let unlike = [
                (reported[0], 500),
                (reported[1], 1_000),
                (reported[2], 1_500),
            ];
            assert_eq!(rate_of(&unlike), 1_000);
        }
        assert_eq!(rate_of(&[(tests(0..1, |_| 0)[0].into(), 9)]), USUAL as u32);
    }

    #[test]
    fn a_rank_without_tests_does_not_change_the_estimates_of_speed() {
        let idle = |busy| {
            let mut cost_report = CostReport::default();
            cost_report.add(Vec::new(), busy, 0);
            cost_report
        };
        let mut cost_reports = reported(&[0..2, 2..4], |_| 1);
        cost_reports.extend([idle(7), idle(8), idle(9)]);
        let forecast = Forecast::new(&cost_reports, &Forecast::default(), &[0; 4]);
        assert!(forecast.costs().iter().all(|test| test.work == 10_000));
    }

    #[test]
    fn a_rank_with_more_contacts_gets_fewer_tests() {
        let shares: Vec<Range<u32>> = (0..4).map(|rank| 16 * rank..16 * rank + 16).collect();
        let mut cost_reports = reported(&shares, |_| 2);
        // Sorting takes as long as a quarter of the third rank's tests, in each step: half of that
        // is believed at first, and three quarters the next time.
        cost_reports[2].sorting = 3 * 4 * 20_000;
        let forecast = Forecast::new(&cost_reports, &Forecast::default(), &[0; 64]);
        assert_eq!(forecast.after, [0, 0, 20_000, 0]);
        let forecast = Forecast::new(&cost_reports, &forecast, &[0; 64]);
        assert_eq!(forecast.after, [0, 0, 30_000, 0]);
        assert_eq!(forecast.costs()[0].work, 10_000);
        let assignment = forecast.assigned(&[0; 64], &[0; 4]);
        let share = |rank: usize| -> f64 {
            let part = |test: &TestCost| assignment.part(rank, test.patch, test.against);
            forecast
                .costs()
                .iter()
                .filter_map(part)
                .map(Part::share)
                .sum()
        };
        // The time of three of its tests is shared by all ranks, as far as parts of tests are worth
        // it.
        for rank in 0..4 {
            let expected = if rank == 2 { 13.75 } else { 16.75 };
            assert!(
                (share(rank) - expected).abs() < 1.0,
                "rank {rank}: {}",
                share(rank)
            );
        }
    }

    #[test]
    fn parts_of_a_test_are_added_up_in_any_order() {
        let test = |patch, against, work| TestCost {
            patch,
            against,
            work,
        };
        let pair = Against::Patch(5);
        let forecast = Forecast::from_tests(&[
            test(3, pair, 7),
            test(1, Against::Itself, 2),
            test(3, pair, u32::MAX),
            test(3, Against::Itself, 4),
        ]);
        let expected = [
            test(1, Against::Itself, 2),
            test(3, Against::Itself, 4),
            test(3, pair, u32::MAX),
        ];
        assert_eq!(forecast.costs(), expected);
    }
}
