//! Moving the boundaries of an assignment with what ranks have done, until the next assignment is
//! made.
//!
//! The costs of single tests rise or fall from one step to the next, and stay so. Ranks report how
//! much they did, and boundaries move to where the loads of all stretches are equal again.

use std::ops::RangeInclusive;

use super::{Assignment, DEAL, Division, LEAST, LOOK, length, level, looks_of_patch};
use crate::cost::{CostReport, PartCost, RankWork};
use crate::forecast::{Forecast, rated};
use crate::work::Preparation;

/// The load that a unit of the line can have.
const PACES: RangeInclusive<f64> = 0.05..=1e4;

impl Assignment {
    /// The work that a rank reports of the last step, counted as the forecast that this assignment
    /// was made of expects it. With stealing, some of its tests may have been assigned to others;
    /// what a thief prepares for them counts for nobody.
    #[must_use]
    pub fn work_done(
        &self,
        forecast: &Forecast,
        (rank, tells): (usize, &CostReport),
        steal: bool,
    ) -> Vec<RankWork> {
        let mut readied = Preparation::new(&self.nodes);
        let me = rank as u32;
        let looks = LOOK * self.known_tests(rank).len() as u64
            + looks_of_patch(self.nodes.len()) * self.patches(rank).len() as u64;
        let again = if self.is_inside(self.boundaries[rank]) {
            DEAL
        } else {
            0
        };
        let work = looks + again;
        let mut done = vec![RankWork { rank: me, work }];
        let mut next = 0;
        for reported in &tells.tests {
            let rate;
            (rate, next) = forecast.rate(reported, next);
            let work = u64::from(rated(&reported.test, u64::from(rate)));
            let owner = if steal {
                self.home(reported) as u32
            } else {
                me
            };
            match done.iter_mut().find(|done| done.rank == owner) {
                Some(done) => done.work += work,
                None => done.push(RankWork { rank: owner, work }),
            }
            if owner as usize == rank {
                readied.add(&reported.test);
            }
        }
        done[0].work += readied.take();
        done
    }

    /// Moves the boundaries to where loads would have been equal in the last step, by the work that
    /// all ranks report. This is about as good as a new assignment and much cheaper: only few tests
    /// change from step to step, and where in a stretch they lie matters little for its length.
    /// Preparing patches is counted as if it were spread evenly over the stretch; the next step
    /// shows the error. Some tests come and go every other step, so that only half of a change is
    /// believed.
    ///
    /// Boundaries between patches stay: patches move with a new assignment alone.
    pub fn move_boundaries(&mut self, done: impl IntoIterator<Item = RankWork>) {
        if self.division == Division::BetweenPatches {
            return;
        }
        let (ranks, all) = (self.paces.len(), self.end());
        let mut costs = vec![0.0; ranks];
        for RankWork { rank, work } in done {
            if let Some(cost) = costs.get_mut(rank as usize) {
                *cost += work as f64;
            }
        }
        for (rank, (pace, cost)) in self.paces.iter_mut().zip(&mut costs).enumerate() {
            let length = (self.boundaries[rank + 1].min(all) - self.boundaries[rank]) as f64;
            // A stretch without tests does not show what tests cost.
            if length > 0.0 {
                let now = (*cost / length).clamp(*PACES.start(), *PACES.end());
                *pace = (*pace + now) / 2.0;
            }
            *cost = length * *pace;
        }
        let even = level(&self.beside, costs.iter().sum::<f64>() as u64) as f64;
        // The place that is reached: which of the old stretches, and the load taken of it.
        let (mut within, mut taken) = (0, 0.0);
        let mut boundaries = Vec::with_capacity(ranks + 1);
        let mut last = 0;
        for &beside in &self.beside[..ranks - 1] {
            boundaries.push(last);
            let mut wanted = (even - beside as f64).max(0.0);
            while within < ranks && wanted >= costs[within] - taken {
                wanted -= costs[within] - taken;
                (within, taken) = (within + 1, 0.0);
            }
            taken += wanted;
            let place = match self.paces.get(within) {
                Some(pace) => self.boundaries[within].saturating_add((taken / pace) as u64),
                None => all,
            };
            let place = self.worth_dividing(place.min(all)).max(last);
            // Two boundaries within one test need the least distance as well.
            if place - last >= LEAST || !self.is_inside(last) {
                last = place;
            }
        }
        boundaries.extend([last, u64::MAX]);
        // Observations belong to the stretches as they were.
        let (mut within, mut paces) = (0, Vec::with_capacity(ranks));
        for ends in boundaries.windows(2) {
            let (mut at, end) = (ends[0], ends[1].min(all));
            let (mut cost, length) = (0.0, end - at);
            while at < end {
                while self.boundaries[within + 1] <= at {
                    within += 1;
                }
                let to = end.min(self.boundaries[within + 1]);
                cost += (to - at) as f64 * self.paces[within];
                at = to;
            }
            paces.push(if length > 0 {
                cost / length as f64
            } else {
                1.0
            });
        }
        (self.boundaries, self.paces) = (boundaries, paces);
    }

    /// The rank to which a test, or a part of it, was assigned.
    fn home(&self, reported: &PartCost) -> usize {
        let PartCost { test, part } = reported;
        let ranks = self.ranks(test.patch, test.against);
        let has = |&rank: &usize| {
            let own = self.part(rank, test.patch, test.against);
            own.zip(*part)
                .is_some_and(|(own, part)| own.from == part.from)
        };
        let first = ranks.start;
        part.and_then(|_| ranks.into_iter().find(has))
            .unwrap_or(first)
    }

    /// The end of the line.
    fn end(&self) -> u64 {
        let last = self.costs.last().zip(self.begins.last());
        last.map_or(0, |(test, begin)| begin + length(test))
    }

    /// Whether a place is inside a test.
    fn is_inside(&self, place: u64) -> bool {
        place < self.end() && self.begins.binary_search(&place).is_err()
    }

    /// The nearest place that does not divide a test into parts that are too small.
    fn worth_dividing(&self, place: u64) -> u64 {
        let behind = self.begins.partition_point(|&begin| begin <= place);
        let Some(test) = behind.checked_sub(1) else {
            return place;
        };
        let (begin, length) = (self.begins[test], length(&self.costs[test]));
        let (before, after) = (place - begin, (begin + length).saturating_sub(place));
        if before.min(after) >= LEAST {
            place
        } else if before <= after {
            begin
        } else {
            begin + length
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::loads_of;
    use super::*;
    use crate::cost::{Against, TestCost};

    /// Reports in which each rank did its own tests.
    fn own(done: &[u64]) -> impl Iterator<Item = RankWork> {
        (0..).zip(done).map(|(rank, &work)| RankWork { rank, work })
    }

    /// The tests of one rank, where all tests have these costs.
    fn reported(assignment: &Assignment, costs: &[TestCost], rank: usize) -> Vec<PartCost> {
        let part_of = |test: &TestCost| {
            let part = assignment.part(rank, test.patch, test.against)?;
            let work = (f64::from(test.work) * part.share()) as u32;
            let test = TestCost { work, ..*test };
            Some(PartCost {
                test,
                part: (!part.is_whole()).then_some(part),
            })
        };
        costs.iter().filter_map(part_of).collect()
    }

    #[test]
    fn cuts_follow_what_tests_cost_by_now() {
        let costs = |factor: &dyn Fn(u32) -> u32| -> Vec<TestCost> {
            let test = |patch: u32| TestCost {
                patch,
                against: Against::Itself,
                work: 50_000 * factor(patch),
            };
            (0..64).map(test).collect()
        };
        let before = [200_000, 0, 0, 0, 0, 0, 0, 0];
        let mut assignment = Forecast::from_tests(&costs(&|_| 2)).assigned(&[300; 64], &before);
        let unevenness = |assignment: &Assignment, now: &[TestCost]| {
            let mut loads = loads_of(assignment, now, 8);
            for (load, before) in loads.iter_mut().zip(before) {
                *load += before;
            }
            let most = *loads.iter().max().unwrap() as f64;
            most * 8.0 / loads.iter().sum::<u64>() as f64 - 1.0
        };
        let planned = costs(&|_| 2);
        assert!(unevenness(&assignment, &planned) < 0.01);
        // Nothing has changed, and little moves.
        assignment.move_boundaries(own(&loads_of(&assignment, &planned, 8)));
        assert!(unevenness(&assignment, &planned) < 0.01);
        // A quarter of the tests costs half as much again, an eighth half as much.
        let now = costs(&|patch| match patch {
            0..16 => 3,
            40..48 => 1,
            _ => 2,
        });
        let was = unevenness(&assignment, &now);
        assert!(was > 0.2, "{was}");
        for step in 1..=6 {
            assignment.move_boundaries(own(&loads_of(&assignment, &now, 8)));
            let is = unevenness(&assignment, &now);
            assert!(
                is < was * 0.6_f64.powi(step) + 0.01,
                "{is} after {step} steps"
            );
        }
    }

    #[test]
    fn stolen_tests_count_for_the_rank_they_were_assigned_to() {
        let costs: Vec<TestCost> = (0..8)
            .map(|patch| TestCost {
                patch,
                against: Against::Itself,
                work: if patch == 3 { 900_000 } else { 100_000 },
            })
            .collect();
        let forecast = Forecast::from_tests(&costs);
        let assignment = forecast.assigned(&[10; 8], &[0; 4]);
        // One rank reports all of it, and yet the share of each is known.
        let mut all = CostReport::default();
        for rank in 0..4 {
            let reported = reported(&assignment, &costs, rank);
            assert!(
                reported
                    .iter()
                    .all(|reported| assignment.home(reported) == rank)
            );
            all.tests.extend(reported);
        }
        let reported = assignment.work_done(&forecast, (2, &all), true);
        assert_eq!(reported.len(), 4);
        for RankWork { rank, work } in reported {
            let own = loads_of(&assignment, &costs, 4)[rank as usize];
            // The rank that reports has also found its tests, and has dealt out those that it
            // shares.
            assert!(
                work.abs_diff(own) < DEAL + 1_000,
                "rank {rank}: {work}, not {own}"
            );
        }
    }

    /// Few tests: preparing their patches costs most.
    #[test]
    fn cuts_stay_even_where_making_ready_costs_most() {
        let costs = |step: u32| -> Vec<TestCost> {
            let test = |patch: u32| TestCost {
                patch,
                against: Against::Itself,
                work: if patch < 96 {
                    1_000
                } else {
                    100_000 + 3_000 * step
                },
            };
            (0..128).map(test).collect()
        };
        let forecast = Forecast::from_tests(&costs(0));
        let mut assignment = forecast.assigned(&[3_000; 128], &[0; 8]);
        for step in 0..12 {
            let done = |rank: usize| {
                let mut cost_report = CostReport::default();
                cost_report.add(reported(&assignment, &costs(step), rank), 0, 0);
                assignment.work_done(&forecast, (rank, &cost_report), false)
            };
            let all: Vec<RankWork> = (0..8).flat_map(done).collect();
            let most = all.iter().map(|done| done.work).max().unwrap() as f64;
            let mean = all.iter().map(|done| done.work).sum::<u64>() as f64 / 8.0;
            assert!(most < 1.12 * mean, "{most} of {mean} in step {step}");
            assignment.move_boundaries(all);
        }
    }

    #[test]
    fn no_part_between_two_cuts_is_smaller_than_is_worth_it() {
        let test = TestCost {
            patch: 0,
            against: Against::Itself,
            work: 600_000,
        };
        let forecast = Forecast::from_tests(&[test]);
        // The third rank has nearly an even load beside its tests.
        let mut assignment = forecast.assigned(&[10], &[0, 0, 0, 0, 0, 0]);
        assignment.beside[2] = 117_000;
        for _ in 0..20 {
            assignment.move_boundaries(own(&[120_000, 120_000, 1_000, 120_000, 120_000, 119_000]));
            for ends in assignment.boundaries.windows(2) {
                let part = ends[1].min(600_000) - ends[0];
                assert!(part == 0 || part >= LEAST, "{part}");
            }
        }
    }

    #[test]
    fn moved_cuts_leave_no_part_that_is_not_worth_it() {
        let costs: Vec<TestCost> = (0..40)
            .map(|patch| TestCost {
                patch,
                against: Against::Itself,
                work: 3_000 * (patch % 7),
            })
            .collect();
        let mut assignment = Forecast::from_tests(&costs).assigned(&[10; 40], &[0; 6]);
        for step in 0_u64..50 {
            let done: Vec<u64> = (0..6)
                .map(|rank| 10_000 + (step * 7 + rank * 13) % 40 * 1_000)
                .collect();
            assignment.move_boundaries(own(&done));
            for boundary in &assignment.boundaries[1..6] {
                let test = assignment.begins.partition_point(|begin| begin <= boundary) - 1;
                let before = boundary - assignment.begins[test];
                let after = length(&assignment.costs[test]).saturating_sub(before);
                assert!(
                    before.min(after) == 0 || before.min(after) >= LEAST,
                    "{before} and {after}"
                );
            }
        }
    }
}
