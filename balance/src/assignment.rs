//! The assignment of top-level tests to ranks, by what they are expected to cost.
//!
//! The tests are laid end to end on a line: patch by patch in the order of the patch tree, and a
//! test of two patches with the first of them. The line is divided into one stretch for each rank,
//! so that the tests of a rank are of neighbouring patches, few of which it shares with other
//! ranks. The load of a stretch is the cost of its tests, of finding them, of preparing every patch
//! that they read, and of what its rank does before and after tests.
//!
//! Boundaries are put where they nearly minimise the largest load: stretches are filled one after
//! the other up to a bound, and the smallest bound for which the line fits is searched for [Pinar,
//! Aykanat 2004, the parametric search of chains-on-chains partitioning]. The next bound to try is
//! found by sharing among all ranks what the last stretch has too much, or the room that it has
//! left. Four or five tries are enough as a rule; after that the interval between too little and
//! enough is halved.
//!
//! If a boundary falls into a test, the ranks on both sides make the first few tests below it
//! alike, breadth first, and each goes on with its [`Part`] of what these lead to. In the steps
//! that follow, boundaries [move](Assignment::move_boundaries) with what stretches have cost.
//! Errors of the forecast are left to work stealing.
//!
//! Boundaries may also be kept between patches: then patches move whole, as objects do that
//! migrate. Studies compare with that.
//!
//! * [Pinar, Aykanat 2004] Fast optimal load balancing algorithms for 1D partitioning.

mod filling;
mod following;

use std::iter::repeat;
use std::ops::Range;

use weft_partition::Ownership;

use self::filling::{Filling, Item, Last};
use crate::array_bytes;
use crate::cost::{Against, TestCost};
use crate::forecast::{Forecast, Piece};
use crate::part::Part;
use crate::work::Prepared;

/// The line of all tests, divided into a stretch for each rank.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Assignment {
    /// The tests, sorted by patch and what it is tested against.
    costs: Vec<TestCost>,
    /// The costs of parts, for tests that were made in parts.
    pieces: Vec<Piece>,
    /// A test that costs less than this is small.
    small: u64,
    /// The place on the line at which each test begins.
    begins: Vec<u64>,
    /// The place at which the tests of each patch begin; tests of unknown cost are put there too.
    patches: Vec<u64>,
    /// The place at which the stretch of each rank begins, and the end.
    boundaries: Vec<u64>,
    /// The number of nodes of each patch's tree.
    nodes: Vec<u32>,
    /// The work of each rank before and after its tests.
    beside: Vec<u64>,
    /// The load that a unit of the line has had lately, for each stretch. All ranks compute it by
    /// the same basic operations on the same numbers, so that they agree to the bit.
    paces: Vec<f64>,
    division: Division,
}

/// The places at which the line may be divided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Division {
    /// Anywhere, also within tests.
    #[default]
    Anywhere,
    /// Where the tests of a patch begin.
    BetweenPatches,
}

/// The cost of the first tests below a divided test, which each of its ranks makes, in the unit of
/// [`work`](crate::work::work).
const DEAL: u64 = 2_000;
/// A test is small if it costs less than the average divided by this.
const SMALL: u64 = 8;
/// The smallest part into which a test is divided.
const LEAST: u64 = 2 * DEAL;
/// The cost of looking whether the volumes around two patches meet.
const LOOK: u64 = 11;
/// The most bounds on the load that are tried.
const TRIES: u32 = 40;
/// The number of tries from which on the interval between too little and enough is halved.
const GUESSES: u32 = 6;
/// The search ends when the bound is this close to the least one, as a fraction 1 / `FINEST` of it.
const FINEST: u64 = 1_000;

impl Assignment {
    /// The bytes on the heap that it holds, by the capacities of its arrays.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        let Self {
            costs,
            pieces,
            begins,
            patches,
            boundaries,
            nodes,
            beside,
            paces,
            small: _,
            division: _,
        } = self;
        array_bytes(costs)
            + array_bytes(pieces)
            + array_bytes(begins)
            + array_bytes(patches)
            + array_bytes(boundaries)
            + array_bytes(nodes)
            + array_bytes(beside)
            + array_bytes(paces)
    }

    /// Assigns the tests of a forecast.
    pub(crate) fn new(
        forecast: &Forecast,
        (nodes, before): (&[u32], &[u64]),
        division: Division,
    ) -> Self {
        let mut assignment = Self {
            division,
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

    /// Divides the line where that nearly minimises the largest load. `beside` is the work of each
    /// rank before and after its tests.
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
        // At least one rank prepares each patch that is tested; some patches are prepared by
        // several.
        let least = all + filling.ready_once() + items.iter().map(|item| item.looks).sum::<u64>();
        // `too_few` is a bound that is too small, or just enough; `enough` is one that is known to
        // be enough, with its boundaries.
        let (mut too_few, mut enough) = (level(beside, least), None);
        let (mut most, mut boundaries) = (too_few, Vec::new());
        for attempt in 0..TRIES {
            let last = match self.division {
                Division::Anywhere => filling.fill(most, &mut boundaries),
                Division::BetweenPatches => filling.fill_with_patches(most, &mut boundaries),
            };
            // All ranks share what the last one has too much, or its room.
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
                // A test that cannot be divided may exceed the guess.
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

    /// The tests of known cost that are at least partly in a rank's stretch.
    pub fn known_tests(&self, rank: usize) -> impl ExactSizeIterator<Item = &TestCost> {
        let (from, to) = (self.boundaries[rank], self.boundaries[rank + 1]);
        // A test ends where the next one begins.
        let first = self
            .begins
            .partition_point(|&begin| begin <= from)
            .saturating_sub(1);
        let last = self.begins.partition_point(|&begin| begin < to);
        self.costs[if from < to { first..last } else { 0..0 }].iter()
    }

    /// The patches that a rank tests against themselves or bodies, ascending. Such tests read the
    /// whole patch.
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

    /// The first rank that tests a patch against itself or a body, if any does.
    #[must_use]
    pub(crate) fn tests_whole_first(&self, patch: u32) -> Option<usize> {
        let first = self.costs.partition_point(|test| test.patch < patch);
        let of_patch = self.costs[first..]
            .iter()
            .take_while(|test| test.patch == patch);
        let whole = of_patch
            .zip(first..)
            .find(|(test, _)| test.other().is_none());
        whole.map(|(_, at)| self.rank_at(self.begins[at]))
    }

    /// The patches whose tests of unknown cost are the rank's. A test of two patches goes with [one
    /// of them](Ownership::patch_of_pair).
    #[must_use]
    pub fn patches(&self, rank: usize) -> Range<usize> {
        let before = |boundary: u64| self.patches.partition_point(|&at| at < boundary);
        before(self.boundaries[rank])..before(self.boundaries[rank + 1])
    }

    /// Whether the cost of a top-level test is known.
    #[must_use]
    pub fn knows(&self, patch: u32, against: Against) -> bool {
        self.find(patch, against).is_some()
    }

    /// Puts small tests before all others and keeps the order otherwise. The test that is forked
    /// first is made last, and ranks wait for the contacts of the last one: a small test finds few.
    pub fn small_first<T>(&self, tests: &mut [T], of: impl Fn(&T) -> (u32, Against)) {
        tests.sort_by_cached_key(|test| {
            let (patch, against) = of(test);
            let known = self.find(patch, against);
            known.is_some_and(|at| u64::from(self.costs[at].work) >= self.small)
        });
    }

    /// The part of a top-level test that a rank makes, if any.
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

    /// How much of a test lies before a place within it, as a multiple of 2⁻³² of the test. Parts
    /// whose cost was reported are weighed by it.
    fn share_before(&self, test: Option<usize>, at: u64, length: u64) -> u64 {
        // The ends are exact, whatever was reported of parts that cost nothing.
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
        // The part that has the place, and where the next one begins.
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

    /// The ranks that make some of a top-level test.
    #[must_use]
    pub fn ranks(&self, patch: u32, against: Against) -> Range<usize> {
        let place = self.place(patch, against);
        self.rank_at(place.start)..self.rank_at(place.end - 1) + 1
    }

    fn find(&self, patch: u32, against: Against) -> Option<usize> {
        let key = (patch, against);
        self.costs.binary_search_by_key(&key, TestCost::key).ok()
    }

    /// The stretch of the line that a top-level test takes.
    fn place(&self, patch: u32, against: Against) -> Range<u64> {
        if let Some(at) = self.find(patch, against) {
            let begin = self.begins[at];
            return begin..begin + length(&self.costs[at]);
        }
        // Each pair of patches is looked at with one of the two.
        let with = match against {
            Against::Patch(other) => Ownership::patch_of_pair(patch as usize, other as usize),
            Against::Itself | Against::Body(_) => patch as usize,
        };
        let at = self.patches.get(with).copied().unwrap_or(0);
        at..at + 1
    }
}

/// The smallest load that all ranks can have after sharing this work, if those with less work
/// `before` get more of it: as water fills a vessel with steps.
fn level(before: &[u64], work: u64) -> u64 {
    let all = before
        .iter()
        .fold(work, |all, &step| all.saturating_add(step));
    let even = all / before.len().max(1) as u64;
    // As a rule no step is above the level.
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

/// The cost of looking at the pairs of a patch with this many patches: half of the pairs are looked
/// at with it.
fn looks_of_patch(patches: usize) -> u64 {
    LOOK * patches as u64 / 2
}

/// The length of a test on the line.
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

    /// Any time that another rank may report.
    fn time() -> impl Strategy<Value = u64> {
        prop_oneof![Just(0), 0..1_000_000_u64, Just(u64::MAX)]
    }

    /// The whole test, or a part that may overlap others or leave some of the test to nobody.
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
        /// The assignment is sound for any known costs, any reports and any test: the parts of all
        /// ranks are the whole test and do not overlap, and a rank that has a part finds the test
        /// among those that it looks at.
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
                // The reports may be about ranks that do not exist.
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

    proptest! {
        /// Patches that move whole have all their tests on one rank, and no division does better
        /// that is as simple: the load of the costliest rank is at most the mean and the costliest
        /// patch.
        #[test]
        fn patches_that_move_are_whole(
            works in prop::collection::vec(prop::collection::vec(0_u32..200_000, 1..4), 1..24),
            ranks in 1_usize..20,
            done in prop::collection::vec(time(), 20),
        ) {
            let mut costs = Vec::new();
            for (patch, works) in (0..).zip(&works) {
                let against = [Against::Itself, Against::Body(0), Against::Body(1)];
                costs.extend(works.iter().zip(against).map(|(&work, against)| TestCost {
                    patch,
                    against,
                    work,
                }));
            }
            costs.sort_unstable_by_key(TestCost::key);
            let nodes = vec![1; works.len()];
            let forecast = Forecast::from_tests(&costs);
            let mut assignment = forecast.assigned_in_patches(&nodes, &vec![0; ranks]);
            assignment.move_boundaries((0..).zip(done).map(|(rank, work)| RankWork { rank, work }));
            let mut home = vec![None; works.len()];
            let mut loads = vec![0_u64; ranks];
            for test in &costs {
                let of = assignment.ranks(test.patch, test.against);
                prop_assert_eq!(of.len(), 1);
                let part = assignment.part(of.start, test.patch, test.against);
                prop_assert!(part.is_some_and(Part::is_whole));
                let home = home[test.patch as usize].get_or_insert(of.start);
                prop_assert_eq!(*home, of.start);
                loads[of.start] += u64::from(test.work);
            }
            prop_assert!(home.is_sorted());
            let of_patch = works.iter().map(|works| works.iter().map(|&w| u64::from(w)).sum::<u64>());
            let costliest = of_patch.clone().max().unwrap_or(0);
            let mean = of_patch.sum::<u64>() / ranks as u64;
            // Preparing patches and looking for tests cost something too.
            let beside = 10_000 * works.len() as u64 / ranks as u64 + 20_000;
            prop_assert!(loads.iter().all(|&load| load <= mean + costliest + beside));
        }
    }

    #[test]
    fn stretches_cost_about_the_same() {
        // One patch has as much work as all others.
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

    /// The load of each rank from tests of these costs.
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
        // The tests are too small to be divided, and each is all that its rank has.
        for (ranks, patches) in [(64, 2), (128, 3), (160, 4), (256, 6), (1024, 16)] {
            assert_eq!(longest(patches, ranks, 7_900), 1.0, "{patches} on {ranks}");
        }
        // Most patches have no tests.
        assert_eq!(longest(5, 16, 3_000), 1.0);
        // A thousandth of these costs rounds to nothing.
        assert_eq!(longest(3, 3, 1), 1.0);
    }

    #[test]
    fn a_rank_with_more_work_before_gets_fewer_tests() {
        let costs: Vec<TestCost> = (0..64)
            .map(|patch| TestCost {
                patch,
                against: Against::Itself,
                work: 100_000,
            })
            .collect();
        let mut before = [20_000_u64; 8];
        before[3] = 420_000;
        // One rank has more work before its tests than all others have together.
        before[7] = 9_000_000;
        let assignment = Forecast::from_tests(&costs).assigned(&[0; 64], &before);
        let share = |rank: usize| -> f64 {
            let part = |test: &TestCost| assignment.part(rank, test.patch, test.against);
            costs.iter().filter_map(part).map(Part::share).sum()
        };
        // The other seven ranks share 64 tests, less what two of them have done before.
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
