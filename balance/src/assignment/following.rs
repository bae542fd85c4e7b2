//! How the cuts of a plan follow what ranks have done, until there is another plan.
//!
//! Single tests become dearer or cheaper from one step to the next, and stay so. Ranks tell each other how much they did, and cuts move to where
//! stretches cost the same again.

use std::ops::RangeInclusive;

use super::{DEAL, LEAST, LOOK, Placement, length, level, looks_of_patch};
use crate::forecast::{Account, Did, Forecast, Readied, Told, rated};

/// What a unit of the line can cost.
const PACES: RangeInclusive<f64> = 0.05..=1e4;

impl Placement {
    /// What a rank `tells` of what it did in the last step, by what the forecast that this plan is made of takes tests for. If tests are stolen,
    /// some of them may be others'; what a thief makes ready for these is nobody's.
    #[must_use]
    pub fn did(
        &self,
        forecast: &Forecast,
        (rank, tells): (usize, &Account),
        steal: bool,
    ) -> Vec<Did> {
        let mut readied = Readied::new(&self.nodes);
        let of = rank as u32;
        let looks = LOOK * self.known(rank).len() as u64
            + looks_of_patch(self.nodes.len()) * self.patches(rank).len() as u64;
        let again = if self.is_inside(self.cuts[rank]) {
            DEAL
        } else {
            0
        };
        let work = looks + again;
        let mut did = vec![Did { of, work }];
        let mut next = 0;
        for told in &tells.tests {
            let rate;
            (rate, next) = forecast.rate(told, next);
            let work = u64::from(rated(&told.spent, u64::from(rate)));
            let of = if steal { self.home(told) as u32 } else { of };
            match did.iter_mut().find(|did| did.of == of) {
                Some(did) => did.work += work,
                None => did.push(Did { of, work }),
            }
            if of as usize == rank {
                readied.add(&told.spent);
            }
        }
        did[0].work += readied.take();
        did
    }

    /// Moves the cuts to where stretches cost the same again, by what tests of each cost in the last step, of which all ranks tell what they `did`. That is
    /// about as good as a new plan, and much cheaper: what changes from step to step are few tests, and where in a stretch these lie matters little to how long
    /// it should be; what it takes to have a patch ready is taken for spread over the line, and is seen in the next step. Some tests come and go every other step; so half of what was seen is believed.
    pub fn shift(&mut self, did: impl IntoIterator<Item = Did>) {
        let (ranks, all) = (self.paces.len(), self.end());
        let mut costs = vec![0.0; ranks];
        for Did { of, work } in did {
            if let Some(cost) = costs.get_mut(of as usize) {
                *cost += work as f64;
            }
        }
        for (rank, (pace, cost)) in self.paces.iter_mut().zip(&mut costs).enumerate() {
            let length = (self.cuts[rank + 1].min(all) - self.cuts[rank]) as f64;
            // Where nothing was to be done, nothing is seen of how long tests take.
            if length > 0.0 {
                let now = (*cost / length).clamp(*PACES.start(), *PACES.end());
                *pace = (*pace + now) / 2.0;
            }
            *cost = length * *pace;
        }
        let even = level(&self.beside, costs.iter().sum::<f64>() as u64) as f64;
        // Each goes on where the one before has left off, in which stretch of before, and after so much of what that costs.
        let (mut within, mut taken) = (0, 0.0);
        let mut cuts = Vec::with_capacity(ranks + 1);
        let mut last = 0;
        for &beside in &self.beside[..ranks - 1] {
            cuts.push(last);
            let mut wanted = (even - beside as f64).max(0.0);
            while within < ranks && wanted >= costs[within] - taken {
                wanted -= costs[within] - taken;
                (within, taken) = (within + 1, 0.0);
            }
            taken += wanted;
            let place = match self.paces.get(within) {
                Some(pace) => self.cuts[within].saturating_add((taken / pace) as u64),
                None => all,
            };
            let place = self.worth_cutting(place.min(all)).max(last);
            // Nor between two cuts of one test.
            if place - last >= LEAST || !self.is_inside(last) {
                last = place;
            }
        }
        cuts.extend([last, u64::MAX]);
        // What was seen was seen of stretches as they were.
        let (mut within, mut paces) = (0, Vec::with_capacity(ranks));
        for ends in cuts.windows(2) {
            let (mut at, end) = (ends[0], ends[1].min(all));
            let (mut cost, length) = (0.0, end - at);
            while at < end {
                while self.cuts[within + 1] <= at {
                    within += 1;
                }
                let to = end.min(self.cuts[within + 1]);
                cost += (to - at) as f64 * self.paces[within];
                at = to;
            }
            paces.push(if length > 0 {
                cost / length as f64
            } else {
                1.0
            });
        }
        (self.cuts, self.paces) = (cuts, paces);
    }

    /// The rank that was given a test, or a part of one.
    fn home(&self, told: &Told) -> usize {
        let Told { spent, part } = told;
        let ranks = self.ranks(spent.patch, spent.against);
        let has = |&rank: &usize| {
            let own = self.part(rank, spent.patch, spent.against);
            own.zip(*part)
                .is_some_and(|(own, part)| own.from == part.from)
        };
        let first = ranks.start;
        part.and_then(|_| ranks.into_iter().find(has))
            .unwrap_or(first)
    }

    /// Where the line ends.
    fn end(&self) -> u64 {
        let last = self.costs.last().zip(self.begins.last());
        last.map_or(0, |(spent, begin)| begin + length(spent))
    }

    /// Whether a place is amid a test.
    fn is_inside(&self, place: u64) -> bool {
        place < self.end() && self.begins.binary_search(&place).is_err()
    }

    /// The nearest place that leaves no part of a test, up to where it begins or ends, that is not worth it.
    fn worth_cutting(&self, place: u64) -> u64 {
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
    use super::super::tests::did;
    use super::*;
    use crate::forecast::{Against, Spent};

    /// Each of its own.
    fn own(did: &[u64]) -> impl Iterator<Item = Did> {
        (0..).zip(did).map(|(of, &work)| Did { of, work })
    }

    /// What a rank tells of tests of these costs.
    fn told(placement: &Placement, costs: &[Spent], rank: usize) -> Vec<Told> {
        let of = |spent: &Spent| {
            let part = placement.part(rank, spent.patch, spent.against)?;
            let work = (f64::from(spent.work) * part.share()) as u32;
            let spent = Spent { work, ..*spent };
            Some(Told {
                spent,
                part: (!part.is_whole()).then_some(part),
            })
        };
        costs.iter().filter_map(of).collect()
    }

    #[test]
    fn cuts_follow_what_tests_cost_by_now() {
        let costs = |factor: &dyn Fn(u32) -> u32| -> Vec<Spent> {
            let spent = |patch: u32| Spent {
                patch,
                against: Against::Itself,
                work: 50_000 * factor(patch),
            };
            (0..64).map(spent).collect()
        };
        let before = [200_000, 0, 0, 0, 0, 0, 0, 0];
        let mut placement = Forecast::of_tests(&costs(&|_| 2)).placed(&[300; 64], &before);
        let unevenness = |placement: &Placement, now: &[Spent]| {
            let mut loads = did(placement, now, 8);
            for (load, before) in loads.iter_mut().zip(before) {
                *load += before;
            }
            let most = *loads.iter().max().unwrap() as f64;
            most * 8.0 / loads.iter().sum::<u64>() as f64 - 1.0
        };
        let planned = costs(&|_| 2);
        assert!(unevenness(&placement, &planned) < 0.01);
        // Nothing has changed, and little moves.
        placement.shift(own(&did(&placement, &planned, 8)));
        assert!(unevenness(&placement, &planned) < 0.01);
        // A quarter of them costs half as much again, an eighth half as much.
        let now = costs(&|patch| match patch {
            0..16 => 3,
            40..48 => 1,
            _ => 2,
        });
        let was = unevenness(&placement, &now);
        assert!(was > 0.2, "{was}");
        for step in 1..=6 {
            placement.shift(own(&did(&placement, &now, 8)));
            let is = unevenness(&placement, &now);
            assert!(
                is < was * 0.6_f64.powi(step) + 0.01,
                "{is} after {step} steps"
            );
        }
    }

    #[test]
    fn what_was_stolen_counts_where_it_was_to_be_done() {
        let costs: Vec<Spent> = (0..8)
            .map(|patch| Spent {
                patch,
                against: Against::Itself,
                work: if patch == 3 { 900_000 } else { 100_000 },
            })
            .collect();
        let forecast = Forecast::of_tests(&costs);
        let placement = forecast.placed(&[10; 8], &[0; 4]);
        // All of it is told by one, and yet each is known to have had its share.
        let mut all = Account::default();
        for rank in 0..4 {
            let told = told(&placement, &costs, rank);
            assert!(told.iter().all(|told| placement.home(told) == rank));
            all.tests.extend(told);
        }
        let told = placement.did(&forecast, (2, &all), true);
        assert_eq!(told.len(), 4);
        for Did { of, work } in told {
            let own = did(&placement, &costs, 4)[of as usize];
            // And who tells has found tests, and has dealt out again what it shares.
            assert!(
                work.abs_diff(own) < DEAL + 1_000,
                "rank {of}: {work}, not {own}"
            );
        }
    }

    /// Where tests are few, patches that somebody makes ready for them cost most.
    #[test]
    fn cuts_stay_even_where_making_ready_costs_most() {
        let costs = |step: u32| -> Vec<Spent> {
            let spent = |patch: u32| Spent {
                patch,
                against: Against::Itself,
                work: if patch < 96 {
                    1_000
                } else {
                    100_000 + 3_000 * step
                },
            };
            (0..128).map(spent).collect()
        };
        let forecast = Forecast::of_tests(&costs(0));
        let mut placement = forecast.placed(&[3_000; 128], &[0; 8]);
        for step in 0..12 {
            let did = |rank: usize| {
                let mut account = Account::default();
                account.add(told(&placement, &costs(step), rank), 0, 0);
                placement.did(&forecast, (rank, &account), false)
            };
            let all: Vec<Did> = (0..8).flat_map(did).collect();
            let most = all.iter().map(|did| did.work).max().unwrap() as f64;
            let mean = all.iter().map(|did| did.work).sum::<u64>() as f64 / 8.0;
            assert!(most < 1.12 * mean, "{most} of {mean} in step {step}");
            placement.shift(all);
        }
    }

    #[test]
    fn no_part_between_two_cuts_is_smaller_than_is_worth_it() {
        let spent = Spent {
            patch: 0,
            against: Against::Itself,
            work: 600_000,
        };
        let forecast = Forecast::of_tests(&[spent]);
        // The third has to do nearly all that is even beside tests.
        let mut placement = forecast.placed(&[10], &[0, 0, 0, 0, 0, 0]);
        placement.beside[2] = 117_000;
        for _ in 0..20 {
            placement.shift(own(&[120_000, 120_000, 1_000, 120_000, 120_000, 119_000]));
            for ends in placement.cuts.windows(2) {
                let part = ends[1].min(600_000) - ends[0];
                assert!(part == 0 || part >= LEAST, "{part}");
            }
        }
    }

    #[test]
    fn moved_cuts_leave_no_part_that_is_not_worth_it() {
        let costs: Vec<Spent> = (0..40)
            .map(|patch| Spent {
                patch,
                against: Against::Itself,
                work: 3_000 * (patch % 7),
            })
            .collect();
        let mut placement = Forecast::of_tests(&costs).placed(&[10; 40], &[0; 6]);
        for step in 0_u64..50 {
            let did: Vec<u64> = (0..6)
                .map(|rank| 10_000 + (step * 7 + rank * 13) % 40 * 1_000)
                .collect();
            placement.shift(own(&did));
            for cut in &placement.cuts[1..6] {
                let test = placement.begins.partition_point(|begin| begin <= cut) - 1;
                let before = cut - placement.begins[test];
                let after = length(&placement.costs[test]).saturating_sub(before);
                assert!(
                    before.min(after) == 0 || before.min(after) >= LEAST,
                    "{before} and {after}"
                );
            }
        }
    }
}
