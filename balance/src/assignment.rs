//! What a rank does of the top-level tests whose costs are known.
//!
//! Tests are laid end to end, patch by patch in the order of the patch tree, those of two patches with the one that comes first, and the
//! line is boundary into as many stretches as there are ranks: a rank's tests are of patches that follow each other, few of which it shares with
//! others. A stretch costs its tests, finding them, making ready every patch that they touch, and what its rank does before and after. Cuts are
//! put where they make the costliest stretch nearly cheapest: whether stretches that cost at most so much are enough is
//! found out by filling one after the other [Pinar, Aykanat 2004, the parametric search of chains-on-chains partitioning]. What the last one
//! then costs too much, or too little, is shared among all for the next try, of which four or five are enough for most; where they are not, what is
//! between too little and enough is halved. A test that a boundary falls into is
//! shared out in proportion: each of its ranks makes the same first few tests of it, breadth first, and goes on with its share of what
//! these lead to ([`Part`]). In later steps boundaries [follow](Assignment::shift) what stretches have cost. What the forecast is wrong by is left to thieves.
//!
//! * [Pinar, Aykanat 2004] Fast optimal load balancing algorithms for 1D partitioning.

mod filling;
mod following;

use std::iter::repeat;
use std::ops::Range;

use weft_partition::Ownership;

use self::filling::{Filling, Item, Last};
use crate::cost::{Against, TestCost};
use crate::forecast::{Forecast, Piece};
use crate::part::Part;
use crate::work::Prepared;

/// A line that was boundary.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Assignment {
    /// Sorted by patch and what it is tested against.
    costs: Vec<TestCost>,
    /// Of those that were made in parts, what these cost.
    pieces: Vec<Piece>,
    /// Less than that is little.
    small: u64,
    /// Where each of these begins.
    begins: Vec<u64>,
    /// Where the tests that stand with each patch begin, and those of it that nobody knows.
    patches: Vec<u64>,
    /// Where the stretch of each rank begins, and the end.
    boundaries: Vec<u64>,
    /// The nodes of each patch's tree.
    nodes: Vec<u32>,
    /// What each rank does before its tests and after them.
    beside: Vec<u64>,
    /// What the tests in each stretch have cost lately with all that they need, for each unit of the line. The same basic operations on the same
    /// numbers give all ranks the same.
    paces: Vec<f64>,
}

/// What each rank that has a part of a test does again, in the unit of [`work`](crate::work::work).
const DEAL: u64 = 2_000;
/// A test costs little if it costs less than this part of what they cost on average.
const SMALL: u64 = 8;
/// No smaller part of a test is worth that.
const LEAST: u64 = 2 * DEAL;
/// Looking whether two roots meet.
const LOOK: u64 = 11;
/// How many costs of a stretch are tried at most.
const TRIES: u32 = 40;
/// From so many on, what is between too little and enough is halved.
const GUESSES: u32 = 6;
/// What is nearer to the least than this part of it is near enough.
const FINEST: u64 = 1_000;

impl Assignment {
    /// Of tests of patches that there are.
    pub(crate) fn new(forecast: &Forecast, nodes: &[u32], before: &[u64]) -> Self {
        let mut assignment = Self {
            costs: forecast.costs.clone(),
            pieces: forecast.pieces.clone(),
            nodes: nodes.to_vec(),
            ..Self::default()
        };
        let (mut at, mut costs) = (0, assignment.costs.iter().peekable());
        for patch in 0..nodes.len() as u32 {
            assignment.patches.push(at);
            while let Some(test) = costs.next_if(|test| test.patch == patch) {
                assignment.begins.push(at);
                at += length(test);
            }
        }
        let all: u64 = assignment
            .costs
            .iter()
            .map(|test| u64::from(test.work))
            .sum();
        assignment.small = all / (SMALL * assignment.costs.len() as u64).max(1);
        let mut beside = before.to_vec();
        beside.resize(before.len().max(1), 0);
        for (beside, after) in beside.iter_mut().zip(&forecast.after) {
            *beside = beside.saturating_add(*after);
        }
        assignment.divide(&beside);
        assignment.beside = beside;
        assignment
    }

    /// Cuts the line where it makes the costliest stretch nearly cheapest, of ranks that do so much `beside` it.
    fn divide(&mut self, beside: &[u64]) {
        let (ranks, nodes) = (beside.len(), &self.nodes);
        let (looks, mut last) = (looks_of_patch(nodes.len()), None);
        let item = |test: &TestCost| {
            let is_first = last.replace(test.patch) != Some(test.patch);
            Item {
                work: length(test),
                patches: [test.patch, test.other().unwrap_or(test.patch)],
                looks: LOOK + if is_first { looks } else { 0 },
            }
        };
        let items: Vec<Item> = self.costs.iter().map(item).collect();
        let all: u64 = items.iter().map(|item| item.work).sum();
        let mut filling = Filling {
            items: &items,
            ready: nodes.iter().map(|&nodes| Prepared::costs(nodes)).collect(),
            beside,
            had: vec![0; nodes.len()],
            stamp: 0,
        };
        // What is tested of a patch somebody makes ready; and some is by several.
        let least = all + filling.ready_once() + items.iter().map(|item| item.looks).sum::<u64>();
        // Too little for all, or just enough; and enough, with the boundaries, once that is known.
        let (mut too_few, mut enough) = (level(beside, least), None);
        let (mut most, mut boundaries) = (too_few, Vec::new());
        for attempt in 0..TRIES {
            let last = filling.fill(most, &mut boundaries);
            // What the last one has too much is for all, and so is its room.
            let guess = match last {
                Last::Over(over) => {
                    too_few = most;
                    most + over / ranks as u64 + 1
                }
                Last::Room(room) => {
                    enough = Some((most, std::mem::take(&mut boundaries)));
                    most.saturating_sub(room / ranks as u64)
                }
            };
            most = match &enough {
                // Tests that cannot be boundary may be more than that.
                None => guess.max(most + most.saturating_mul(1 << attempt.min(20)) / FINEST),
                Some((enough, _)) => {
                    let near = (enough / FINEST).max(1);
                    if enough - too_few <= near {
                        break;
                    }
                    if attempt < GUESSES {
                        guess.min(enough - near).max(too_few + near)
                    } else {
                        too_few.midpoint(*enough)
                    }
                }
            };
        }
        let boundaries = enough.map_or(boundaries, |(_, boundaries)| boundaries);
        let begins = boundaries.iter().map(|boundary| boundary.at);
        self.boundaries = begins.chain(repeat(all)).take(ranks).collect();
        self.boundaries.push(u64::MAX);
        let mut loads = boundaries.iter().map(|boundary| boundary.load);
        let pace = |rank: usize| {
            let length = self.boundaries[rank + 1].min(all) - self.boundaries[rank];
            let load = loads.next().unwrap_or(0).saturating_sub(beside[rank]);
            if length > 0 {
                load as f64 / length as f64
            } else {
                1.0
            }
        };
        self.paces = (0..ranks).map(pace).collect();
    }

    /// The rank whose stretch has this place.
    fn rank_at(&self, at: u64) -> usize {
        let ranks = self.boundaries.len() - 1;
        self.boundaries[..ranks].partition_point(|&boundary| boundary <= at) - 1
    }

    /// The tests of known cost that are in a rank's stretch, wholly or partly.
    pub fn known_tests(&self, rank: usize) -> impl ExactSizeIterator<Item = &TestCost> {
        let (from, to) = (self.boundaries[rank], self.boundaries[rank + 1]);
        // Where the next one begins, each ends.
        let first = self
            .begins
            .partition_point(|&begin| begin <= from)
            .saturating_sub(1);
        let last = self.begins.partition_point(|&begin| begin < to);
        self.costs[if from < to { first..last } else { 0..0 }].iter()
    }

    /// The patches of which a rank tests something against themselves or bodies, which looks at all of them, ascending.
    #[must_use]
    pub fn tested_whole(&self, rank: usize) -> Vec<usize> {
        let whole = |test: &&TestCost| !matches!(test.against, Against::Patch(_));
        let mut patches: Vec<usize> = (self.known_tests(rank).filter(whole))
            .map(|test| test.patch as usize)
            .collect();
        patches.sort_unstable();
        patches.dedup();
        patches
    }

    /// The first rank that tests something of a patch against itself or a body, if any does.
    #[must_use]
    pub fn tests_whole_first(&self, patch: u32) -> Option<usize> {
        let first = self.costs.partition_point(|test| test.patch < patch);
        let of_patch = self.costs[first..]
            .iter()
            .take_while(|test| test.patch == patch);
        let whole = of_patch
            .zip(first..)
            .find(|(test, _)| test.other().is_none());
        whole.map(|(_, at)| self.rank_at(self.begins[at]))
    }

    /// The patches whose tests are a rank's if nobody knows them, [of two](Ownership::patch_of_pair) with one of them.
    #[must_use]
    pub fn patches(&self, rank: usize) -> Range<usize> {
        let before = |boundary: u64| self.patches.partition_point(|&at| at < boundary);
        before(self.boundaries[rank])..before(self.boundaries[rank + 1])
    }

    /// Whether a top-level test's cost is known.
    #[must_use]
    pub fn knows(&self, patch: u32, against: Against) -> bool {
        self.find(patch, against).is_some()
    }

    /// Puts tests that cost little before all others, each lot in order: for the first that is forked is the last that is done. The last one's contacts
    /// are what ranks wait for, and such a test finds few.
    pub fn small_first<T>(&self, tests: &mut [T], of: impl Fn(&T) -> (u32, Against)) {
        tests.sort_by_cached_key(|test| {
            let (patch, against) = of(test);
            let known = self.find(patch, against);
            known.is_some_and(|at| u64::from(self.costs[at].work) >= self.small)
        });
    }

    /// What a rank does of a top-level test, if anything.
    #[must_use]
    pub fn part(&self, rank: usize, patch: u32, against: Against) -> Option<Part> {
        let place = self.place(patch, against);
        let (from, to) = (
            self.boundaries[rank].max(place.start),
            self.boundaries[rank + 1].min(place.end),
        );
        if from >= to {
            return None;
        }
        let known = self.find(patch, against);
        let share = |at: u64| self.share_before(known, at - place.start, place.end - place.start);
        let among = self.ranks(patch, against).len();
        Part::between(share(from), share(to), among)
    }

    /// How much of a test stands before a place in it, in 2³²ths: where ranks had parts of it, each cost what it cost.
    fn share_before(&self, test: Option<usize>, at: u64, length: u64) -> u64 {
        // All of it, whatever was reported of parts that cost nothing.
        if at == 0 || at >= length {
            return if at == 0 { 0 } else { 1 << 32 };
        }
        let of_test = |piece: &Piece| test.is_some_and(|test| test == piece.test as usize);
        let first = self
            .pieces
            .partition_point(|piece| test.is_some_and(|test| (piece.test as usize) < test));
        let pieces = self.pieces[first..]
            .iter()
            .take_while(|piece| of_test(piece));
        // The one that the place is in, and where the next one begins.
        let (mut low, mut high) = ((0, 0), (1 << 32, length));
        for piece in pieces.skip(1) {
            let here = (u64::from(piece.from), piece.before.min(length));
            if here.1 > at {
                high = here;
                break;
            }
            low = here;
        }
        let (width, cost) = (high.0 - low.0, (high.1 - low.1).max(1));
        let within = u128::from(width) * u128::from((at - low.1).min(cost)) / u128::from(cost);
        low.0 + within as u64
    }

    /// The ranks that do some of a top-level test.
    #[must_use]
    pub fn ranks(&self, patch: u32, against: Against) -> Range<usize> {
        let place = self.place(patch, against);
        self.rank_at(place.start)..self.rank_at(place.end - 1) + 1
    }

    fn find(&self, patch: u32, against: Against) -> Option<usize> {
        let key = (patch, against);
        self.costs.binary_search_by_key(&key, TestCost::key).ok()
    }

    /// Where a top-level test stands in the line.
    fn place(&self, patch: u32, against: Against) -> Range<u64> {
        if let Some(at) = self.find(patch, against) {
            let begin = self.begins[at];
            return begin..begin + length(&self.costs[at]);
        }
        // Of those of two patches every second is looked at with each.
        let with = match against {
            Against::Patch(other) => Ownership::patch_of_pair(patch as usize, other as usize),
            Against::Itself | Against::Body(_) => patch as usize,
        };
        let at = self.patches.get(with).copied().unwrap_or(0);
        at..at + 1
    }
}

/// How much all have to do at least who share this work, so that those who do less before do more of it: as water in a vessel with steps.
fn level(before: &[u64], work: u64) -> u64 {
    let all = before
        .iter()
        .fold(work, |all, &step| all.saturating_add(step));
    let even = all / before.len().max(1) as u64;
    // As a rule all are under it.
    if before.iter().all(|&step| step <= even) {
        return even;
    }
    let mut steps = before.to_vec();
    steps.sort_unstable();
    let (mut filled, mut level) = (work, u64::MAX);
    for (covered, &step) in (1..).zip(&steps) {
        if level <= step {
            break;
        }
        filled = filled.saturating_add(step);
        level = filled / covered;
    }
    level
}

/// Of so many, looking at the pairs with a patch: half of them are looked at with it.
fn looks_of_patch(patches: usize) -> u64 {
    LOOK * patches as u64 / 2
}

/// How much of the line a test takes.
fn length(test: &TestCost) -> u64 {
    u64::from(test.work).max(1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::cost::{CostReport, PartCost, RankWork};

    fn against() -> impl Strategy<Value = Against> {
        prop_oneof![
            Just(Against::Itself),
            (1_u32..16).prop_map(Against::Patch),
            (0_u32..2).prop_map(Against::Body),
        ]
    }

    fn test() -> impl Strategy<Value = TestCost> {
        let work = prop_oneof![0_u32..4, 0_u32..100_000, Just(u32::MAX)];
        (0_u32..16, against(), work).prop_map(|(patch, against, work)| TestCost {
            patch,
            against: match against {
                Against::Patch(other) if patch + other < 16 => Against::Patch(patch + other),
                Against::Patch(_) => Against::Itself,
                other => other,
            },
            work,
        })
    }

    /// Whatever another rank may tell.
    fn time() -> impl Strategy<Value = u64> {
        prop_oneof![Just(0), 0..1_000_000_u64, Just(u64::MAX)]
    }

    /// All, or a part that may overlap others or leave some to nobody.
    fn part() -> impl Strategy<Value = Option<Part>> {
        let bound = || prop_oneof![Just(0), Just(1 << 31), any::<u32>(), Just(u32::MAX)];
        (bound(), bound(), any::<bool>()).prop_map(|(a, b, is_part)| {
            let (from, last) = (a.min(b), a.max(b));
            is_part.then_some(Part {
                from,
                last,
                among: 2,
            })
        })
    }

    proptest! {
        /// Whatever is known and whatever is asked for, and whatever ranks tell of what they done: shares of all ranks are all of it, and none of it
        /// twice; and a rank that has a share finds the test among those that it looks at.
        #[test]
        fn every_test_is_done_once(
            costs in prop::collection::vec((test(), part(), 0_usize..4), 0..60),
            asked in prop::collection::vec(test(), 0..60),
            ranks in 1_usize..20,
            times in prop::array::uniform4(prop::array::uniform2(time())),
            done in prop::collection::vec(prop::collection::vec(time(), 20), 0..3),
        ) {
            let mut cost_reports = vec![CostReport::default(); 4];
            for (cost_report, [busy, sorting]) in cost_reports.iter_mut().zip(times) {
                cost_report.add(Vec::new(), busy, sorting);
            }
            for &(test, part, teller) in &costs {
                cost_reports[teller].tests.push(PartCost { test, part });
            }
            let nodes: Vec<u32> = (0..16).map(|patch| 100 * patch).collect();
            let forecast = Forecast::new(&cost_reports, &Forecast::default(), &nodes);
            let mut assignment = forecast.assigned(&nodes, &vec![0; ranks]);
            for done in done {
                // Also of ranks that there are none of.
                assignment.move_boundaries((0..).zip(done).map(|(rank, work)| RankWork { rank, work }));
            }
            let costs: Vec<TestCost> = costs.iter().map(|(test, ..)| *test).collect();
            let within = |test: &&TestCost| test.patch < 16 && test.other().is_none_or(|other| other < 16);
            for test in costs.iter().chain(&asked).filter(within) {
                let mut next = 0_u64;
                let ranks_of_it = assignment.ranks(test.patch, test.against);
                for rank in 0..ranks {
                    let Some(part) = assignment.part(rank, test.patch, test.against) else {
                        continue;
                    };
                    prop_assert!(ranks_of_it.contains(&rank));
                    prop_assert_eq!(u64::from(part.from), next);
                    prop_assert!(part.last >= part.from);
                    next = u64::from(part.last) + 1;
                    let looked_at = if assignment.knows(test.patch, test.against) {
                        assignment.known_tests(rank).any(|known| known.key() == test.key())
                    } else {
                        let with = test.other().map_or(test.patch as usize, |other| {
                            Ownership::patch_of_pair(test.patch as usize, other as usize)
                        });
                        assignment.patches(rank).contains(&with)
                    };
                    prop_assert!(looked_at);
                }
                prop_assert_eq!(next, 1 << 32, "{:?} on {} ranks", test, ranks);
            }
        }
    }

    #[test]
    fn stretches_cost_about_the_same() {
        // One patch has as much as all others.
        let costs: Vec<TestCost> = (0..64)
            .map(|patch| TestCost {
                patch,
                against: Against::Itself,
                work: if patch == 20 { 6_400_000 } else { 100_000 },
            })
            .collect();
        let assignment = Forecast::from_tests(&costs).assigned(&[300; 64], &[0; 16]);
        let whole: f64 = costs.iter().map(|test| f64::from(test.work)).sum();
        for (rank, work) in loads_of(&assignment, &costs, 16).into_iter().enumerate() {
            assert!(
                (work as f64 * 16.0 / whole - 1.0).abs() < 0.08,
                "rank {rank}: {work} of {whole}"
            );
        }
    }

    /// What each rank does of tests of these costs.
    pub(super) fn loads_of(assignment: &Assignment, costs: &[TestCost], ranks: usize) -> Vec<u64> {
        let of = |rank: usize| {
            let share = |test: &TestCost| {
                let part = assignment.part(rank, test.patch, test.against);
                f64::from(test.work) * part.map_or(0.0, Part::share)
            };
            costs.iter().map(share).sum::<f64>() as u64
        };
        (0..ranks).map(of).collect()
    }

    #[test]
    fn a_level_of_absurd_steps_is_a_number() {
        assert_eq!(level(&[u64::MAX / 2, 0, 0], u64::MAX), u64::MAX / 2);
        assert_eq!(level(&[u64::MAX, 1], 7), 8);
        assert_eq!(level(&[3, 3], 4), 5);
    }

    #[test]
    fn the_costliest_stretch_is_nearly_cheapest() {
        let work = |patch: u32| 50_000 + 7_919 * (patch * patch % 31);
        let costs: Vec<TestCost> = (0..64)
            .map(|patch| TestCost {
                patch,
                against: Against::Itself,
                work: work(patch),
            })
            .collect();
        for ranks in [2, 7, 16] {
            let (nodes, before) = ([300; 64], vec![1_000; ranks]);
            let forecast = Forecast::from_tests(&costs);
            let assignment = forecast.assigned(&nodes, &before);
            let load = |rank: usize| {
                let part = |test: &TestCost| assignment.part(rank, test.patch, test.against);
                let parts = costs.iter().filter_map(|test| Some((test, part(test)?)));
                let cost = |(test, part): (&TestCost, Part)| {
                    let again = if part.is_whole() { 0.0 } else { DEAL as f64 };
                    let ready = Prepared::made(300, (true, 0));
                    f64::from(test.work) * part.share() + again + ready as f64
                };
                1_000.0 + parts.map(cost).sum::<f64>()
            };
            let most = (0..ranks).map(load).fold(0.0, f64::max);
            let least = (0..ranks).map(load).sum::<f64>() / ranks as f64;
            assert!(
                most < 1.01 * least,
                "{ranks} ranks: {most}, {least} on average"
            );
        }
    }

    #[test]
    fn few_tests_are_shared_by_as_many_ranks_as_they_are_worth() {
        let longest = |patches: u32, ranks: usize, work: u32| {
            let costs: Vec<TestCost> = (0..patches)
                .map(|patch| TestCost {
                    patch,
                    against: Against::Itself,
                    work,
                })
                .collect();
            let assignment = Forecast::from_tests(&costs).assigned(&[300; 20], &vec![0; ranks]);
            let load = |rank: usize| {
                let part = |test: &TestCost| assignment.part(rank, test.patch, test.against);
                let of_all = |test: &TestCost| part(test).map_or(0.0, Part::share);
                costs.iter().map(of_all).sum::<f64>()
            };
            (0..ranks).map(load).fold(0.0, f64::max)
        };
        // Too small to be boundary: each is all that a rank has.
        for (ranks, patches) in [(64, 2), (128, 3), (160, 4), (256, 6), (1024, 16)] {
            assert_eq!(longest(patches, ranks, 7_900), 1.0, "{patches} on {ranks}");
        }
        // Most patches have no tests.
        assert_eq!(longest(5, 16, 3_000), 1.0);
        // Costs of which nothing is a thousandth.
        assert_eq!(longest(3, 3, 1), 1.0);
    }

    #[test]
    fn who_does_more_before_has_fewer_tests() {
        let costs: Vec<TestCost> = (0..64)
            .map(|patch| TestCost {
                patch,
                against: Against::Itself,
                work: 100_000,
            })
            .collect();
        let mut before = [20_000_u64; 8];
        before[3] = 420_000;
        // More than all others have to do together.
        before[7] = 9_000_000;
        let assignment = Forecast::from_tests(&costs).assigned(&[0; 64], &before);
        let share = |rank: usize| -> f64 {
            let part = |test: &TestCost| assignment.part(rank, test.patch, test.against);
            costs.iter().filter_map(part).map(Part::share).sum()
        };
        // All of 64 tests, but what two have done before is theirs.
        let even = (6_400_000.0 + 6.0 * 20_000.0 + 420_000.0) / 7.0;
        for (rank, &before) in before.iter().enumerate() {
            let expected = (even - before as f64).max(0.0) / 100_000.0;
            let got = share(rank);
            assert!(
                (got - expected).abs() < 0.6,
                "rank {rank}: {got} of {expected}"
            );
        }
        assert_eq!(share(7), 0.0);
    }

    #[test]
    fn patches_that_are_tested_against_another_alone_are_not_looked_at_whole() {
        let test = |patch, against| TestCost {
            patch,
            against,
            work: 10_000,
        };
        let costs = [
            test(0, Against::Patch(1)),
            test(2, Against::Body(0)),
            test(2, Against::Itself),
            test(3, Against::Patch(5)),
            test(4, Against::Itself),
        ];
        let assignment = Forecast::from_tests(&costs).assigned(&[0; 6], &[0]);
        assert_eq!(assignment.tested_whole(0), [2, 4]);
    }
}
