//! What a rank does of the top-level tests whose costs are known.
//!
//! Tests are laid end to end, patch by patch in the order of the patch tree, those of two patches with the one that comes first, and the
//! line is cut into as many stretches as there are ranks: a rank's tests are of patches that follow each other, few of which it shares with
//! others. A stretch costs its tests, finding them, making ready every patch that they touch, and what its rank does before and after. Cuts are
//! put where they make the costliest stretch nearly cheapest: whether stretches that cost at most so much are enough is
//! found out by filling one after the other [Pinar, Aykanat 2004, the parametric search of chains-on-chains partitioning]. What the last one
//! then costs too much, or too little, is shared among all for the next try, of which four or five are enough for most; where they are not, what is
//! between too little and enough is halved. A test that a cut falls into is
//! shared out in proportion: each of its ranks makes the same first few tests of it, breadth first, and goes on with its share of what
//! these lead to ([`Part`]). In later steps cuts [follow](Placement::shift) what stretches have cost. What the forecast is wrong by is left to thieves.
//!
//! * [Pinar, Aykanat 2004] Fast optimal load balancing algorithms for 1D partitioning.

mod following;

use std::iter::repeat;
use std::ops::Range;

use weft_partition::Ownership;

use crate::forecast::{Against, Forecast, Had, Piece, ReadyCosts, Spent};
use crate::part::Part;

/// A line that was cut.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Placement {
    /// Sorted by patch and what it is tested against.
    costs: Vec<Spent>,
    /// Of those that were made in parts, what these cost.
    pieces: Vec<Piece>,
    /// Less than that is little.
    small: u64,
    /// Where each of these begins.
    begins: Vec<u64>,
    /// Where the tests that stand with each patch begin, and those of it that nobody knows.
    patches: Vec<u64>,
    /// Where the stretch of each rank begins, and the end.
    cuts: Vec<u64>,
    /// The nodes of each patch's tree.
    nodes: Vec<u32>,
    /// What each rank does before its tests and after them.
    beside: Vec<u64>,
    /// What the tests in each stretch have cost lately with all that they need, for each unit of the line. The same basic operations on the same
    /// numbers give all ranks the same.
    paces: Vec<f64>,
}

/// What each rank that has a part of a test does again, in the unit of [`work`](crate::forecast::work).
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

/// A test in the line.
struct Item {
    work: u64,
    patches: [u32; 2],
    /// Looking whether its roots meet, and, where its patch begins, those of all tests with this that nobody knows.
    looks: u64,
}

impl Item {
    /// Whether it reads all of one patch.
    fn is_whole(&self) -> bool {
        self.patches[0] == self.patches[1]
    }
}

impl Placement {
    /// Of tests of patches that there are.
    pub(crate) fn new(forecast: &Forecast, nodes: &[u32], before: &[u64]) -> Self {
        let mut placement = Self {
            costs: forecast.costs.clone(),
            pieces: forecast.pieces.clone(),
            nodes: nodes.to_vec(),
            ..Self::default()
        };
        let (mut at, mut costs) = (0, placement.costs.iter().peekable());
        for patch in 0..nodes.len() as u32 {
            placement.patches.push(at);
            while let Some(spent) = costs.next_if(|spent| spent.patch == patch) {
                placement.begins.push(at);
                at += length(spent);
            }
        }
        let all: u64 = placement
            .costs
            .iter()
            .map(|spent| u64::from(spent.work))
            .sum();
        placement.small = all / (SMALL * placement.costs.len() as u64).max(1);
        let mut beside = before.to_vec();
        beside.resize(before.len().max(1), 0);
        for (beside, after) in beside.iter_mut().zip(&forecast.after) {
            *beside = beside.saturating_add(*after);
        }
        placement.cut(&beside);
        placement.beside = beside;
        placement
    }

    /// Cuts the line where it makes the costliest stretch nearly cheapest, of ranks that do so much `beside` it.
    fn cut(&mut self, beside: &[u64]) {
        let (ranks, nodes) = (beside.len(), &self.nodes);
        let (looks, mut last) = (looks_of_patch(nodes.len()), None);
        let item = |spent: &Spent| {
            let is_first = last.replace(spent.patch) != Some(spent.patch);
            Item {
                work: length(spent),
                patches: [spent.patch, spent.other().unwrap_or(spent.patch)],
                looks: LOOK + if is_first { looks } else { 0 },
            }
        };
        let items: Vec<Item> = self.costs.iter().map(item).collect();
        let all: u64 = items.iter().map(|item| item.work).sum();
        let mut filling = Filling {
            items: &items,
            ready: nodes.iter().map(|&nodes| Had::costs(nodes)).collect(),
            beside,
            had: vec![0; nodes.len()],
            stamp: 0,
        };
        // What is tested of a patch somebody makes ready; and some is by several.
        let least = all + filling.ready_once() + items.iter().map(|item| item.looks).sum::<u64>();
        // Too little for all, or just enough; and enough, with the cuts, once that is known.
        let (mut too_few, mut enough) = (level(beside, least), None);
        let (mut most, mut cuts) = (too_few, Vec::new());
        for attempt in 0..TRIES {
            let last = filling.fill(most, &mut cuts);
            // What the last one has too much is for all, and so is its room.
            let guess = match last {
                Last::Over(over) => {
                    too_few = most;
                    most + over / ranks as u64 + 1
                }
                Last::Room(room) => {
                    enough = Some((most, std::mem::take(&mut cuts)));
                    most.saturating_sub(room / ranks as u64)
                }
            };
            most = match &enough {
                // Tests that cannot be cut may be more than that.
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
        let cuts = enough.map_or(cuts, |(_, cuts)| cuts);
        let begins = cuts.iter().map(|cut| cut.at);
        self.cuts = begins.chain(repeat(all)).take(ranks).collect();
        self.cuts.push(u64::MAX);
        let mut loads = cuts.iter().map(|cut| cut.load);
        let pace = |rank: usize| {
            let length = self.cuts[rank + 1].min(all) - self.cuts[rank];
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
        let ranks = self.cuts.len() - 1;
        self.cuts[..ranks].partition_point(|&cut| cut <= at) - 1
    }

    /// The tests of known cost that are in a rank's stretch, wholly or partly.
    pub fn known(&self, rank: usize) -> impl ExactSizeIterator<Item = &Spent> {
        let (from, to) = (self.cuts[rank], self.cuts[rank + 1]);
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
        let whole = |spent: &&Spent| !matches!(spent.against, Against::Patch(_));
        let mut patches: Vec<usize> = (self.known(rank).filter(whole))
            .map(|spent| spent.patch as usize)
            .collect();
        patches.sort_unstable();
        patches.dedup();
        patches
    }

    /// The first rank that tests something of a patch against itself or a body, if any does.
    #[must_use]
    pub fn tests_whole_first(&self, patch: u32) -> Option<usize> {
        let first = self.costs.partition_point(|spent| spent.patch < patch);
        let of_patch = self.costs[first..]
            .iter()
            .take_while(|spent| spent.patch == patch);
        let whole = of_patch
            .zip(first..)
            .find(|(spent, _)| spent.other().is_none());
        whole.map(|(_, at)| self.rank_at(self.begins[at]))
    }

    /// The patches whose tests are a rank's if nobody knows them, [of two](Ownership::patch_of_pair) with one of them.
    #[must_use]
    pub fn patches(&self, rank: usize) -> Range<usize> {
        let before = |cut: u64| self.patches.partition_point(|&at| at < cut);
        before(self.cuts[rank])..before(self.cuts[rank + 1])
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
            self.cuts[rank].max(place.start),
            self.cuts[rank + 1].min(place.end),
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
        // All of it, whatever was told of parts that cost nothing.
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
        self.costs.binary_search_by_key(&key, Spent::key).ok()
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
fn length(spent: &Spent) -> u64 {
    u64::from(spent.work).max(1)
}

/// Fills stretches one after the other.
struct Filling<'a> {
    items: &'a [Item],
    /// For each patch, what it costs to make it ready.
    ready: Vec<ReadyCosts>,
    /// What the rank of each stretch does before and after.
    beside: &'a [u64],
    /// For each patch, in which stretch something was made ready of it last, and what.
    had: Vec<u64>,
    stamp: u64,
}

/// How the last stretch was filled.
enum Last {
    /// It costs so much more than it may.
    Over(u64),
    /// It might cost so much more.
    Room(u64),
}

/// Where a stretch begins, and what it costs all in all.
#[derive(Clone, Copy)]
struct Cut {
    at: u64,
    load: u64,
}

/// Stamps are made of so many, for what a stretch has.
const STATES: u64 = 4;

impl Filling<'_> {
    /// Fills stretches that cost no more than this, but for the last one; `cuts` is where they begin.
    fn fill(&mut self, most: u64, cuts: &mut Vec<Cut>) -> Last {
        cuts.clear();
        self.stamp += STATES;
        let (mut at, mut begin, mut load) = (0, 0, self.beside[0]);
        for item in self.items {
            let mut rest = item.work;
            loop {
                let is_whole = rest == item.work;
                let [(has, ready), (other_has, other_ready)] = self.unready(item);
                let around = ready + other_ready + if is_whole { item.looks } else { DEAL };
                if load + around + rest <= most || cuts.len() + 1 == self.beside.len() {
                    load += around + rest;
                    let [patch, other] = item.patches;
                    self.had[patch as usize] = self.stamp + has;
                    self.had[other as usize] = self.stamp + other_has;
                    break;
                }
                let room = most.saturating_sub(load + around + if is_whole { DEAL } else { 0 });
                let piece = room.min(rest.saturating_sub(LEAST));
                if piece >= LEAST {
                    rest -= piece;
                    load += around + piece;
                }
                cuts.push(Cut { at: begin, load });
                begin = at + item.work - rest;
                self.stamp += STATES;
                load = self.beside[cuts.len()];
            }
            at += item.work;
        }
        cuts.push(Cut { at: begin, load });
        // What is done beside, is done; and ranks that have nothing have room.
        let may = most.max(self.beside[cuts.len() - 1]);
        let idle = &self.beside[cuts.len()..];
        match load.checked_sub(may) {
            None | Some(0) => {
                let idle = idle.iter().map(|beside| most.saturating_sub(*beside));
                Last::Room(may - load + idle.sum::<u64>())
            }
            Some(over) => Last::Over(over),
        }
    }

    /// What it costs to make ready once what all tests read.
    fn ready_once(&self) -> u64 {
        let mut has = vec![Had::Nothing; self.ready.len()];
        for item in self.items {
            let [patch, other] = item.patches.map(|patch| patch as usize);
            match item.is_whole() {
                true => has[patch] = Had::Whole,
                false => {
                    for patch in [patch, other] {
                        if has[patch] == Had::Nothing {
                            has[patch] = Had::Some;
                        }
                    }
                }
            }
        }
        let nothing = Had::Nothing as usize;
        let costs = has.iter().zip(&self.ready).map(|(has, ready)| match has {
            Had::Nothing => 0,
            Had::Some => ready[nothing][0],
            Had::Whole => ready[nothing][1],
        });
        costs.sum()
    }

    /// What this stretch has of each patch of a test once it has what the test reads of it, and what it costs to make that ready.
    #[inline]
    fn unready(&self, item: &Item) -> [(u64, u64); 2] {
        let [patch, other] = item.patches;
        let whole = item.is_whole();
        let one = self.more(patch, whole);
        let second = if whole {
            (one.0, 0)
        } else {
            self.more(other, false)
        };
        [one, second]
    }

    #[inline]
    fn more(&self, patch: u32, whole: bool) -> (u64, u64) {
        let had = self.had[patch as usize];
        let had = had.saturating_sub(self.stamp).min(Had::Whole as u64);
        let has = had.max(if whole {
            Had::Whole as u64
        } else {
            Had::Some as u64
        });
        (
            has,
            self.ready[patch as usize][had as usize][usize::from(whole)],
        )
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::forecast::{Account, Did, Told};

    fn against() -> impl Strategy<Value = Against> {
        prop_oneof![
            Just(Against::Itself),
            (1_u32..16).prop_map(Against::Patch),
            (0_u32..2).prop_map(Against::Body),
        ]
    }

    fn spent() -> impl Strategy<Value = Spent> {
        let work = prop_oneof![0_u32..4, 0_u32..100_000, Just(u32::MAX)];
        (0_u32..16, against(), work).prop_map(|(patch, against, work)| Spent {
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
        /// Whatever is known and whatever is asked for, and whatever ranks tell of what they did: shares of all ranks are all of it, and none of it
        /// twice; and a rank that has a share finds the test among those that it looks at.
        #[test]
        fn every_test_is_done_once(
            costs in prop::collection::vec((spent(), part(), 0_usize..4), 0..60),
            asked in prop::collection::vec(spent(), 0..60),
            ranks in 1_usize..20,
            times in prop::array::uniform4(prop::array::uniform2(time())),
            did in prop::collection::vec(prop::collection::vec(time(), 20), 0..3),
        ) {
            let mut accounts = vec![Account::default(); 4];
            for (account, [busy, sorting]) in accounts.iter_mut().zip(times) {
                account.add(Vec::new(), busy, sorting);
            }
            for &(spent, part, teller) in &costs {
                accounts[teller].tests.push(Told { spent, part });
            }
            let nodes: Vec<u32> = (0..16).map(|patch| 100 * patch).collect();
            let forecast = Forecast::new(&accounts, &Forecast::default(), &nodes);
            let mut placement = forecast.placed(&nodes, &vec![0; ranks]);
            for did in did {
                // Also of ranks that there are none of.
                placement.shift((0..).zip(did).map(|(of, work)| Did { of, work }));
            }
            let costs: Vec<Spent> = costs.iter().map(|(spent, ..)| *spent).collect();
            let within = |spent: &&Spent| spent.patch < 16 && spent.other().is_none_or(|other| other < 16);
            for spent in costs.iter().chain(&asked).filter(within) {
                let mut next = 0_u64;
                let ranks_of_it = placement.ranks(spent.patch, spent.against);
                for rank in 0..ranks {
                    let Some(part) = placement.part(rank, spent.patch, spent.against) else {
                        continue;
                    };
                    prop_assert!(ranks_of_it.contains(&rank));
                    prop_assert_eq!(u64::from(part.from), next);
                    prop_assert!(part.last >= part.from);
                    next = u64::from(part.last) + 1;
                    let looked_at = if placement.knows(spent.patch, spent.against) {
                        placement.known(rank).any(|known| known.key() == spent.key())
                    } else {
                        let with = spent.other().map_or(spent.patch as usize, |other| {
                            Ownership::patch_of_pair(spent.patch as usize, other as usize)
                        });
                        placement.patches(rank).contains(&with)
                    };
                    prop_assert!(looked_at);
                }
                prop_assert_eq!(next, 1 << 32, "{:?} on {} ranks", spent, ranks);
            }
        }
    }

    #[test]
    fn stretches_cost_about_the_same() {
        // One patch has as much as all others.
        let costs: Vec<Spent> = (0..64)
            .map(|patch| Spent {
                patch,
                against: Against::Itself,
                work: if patch == 20 { 6_400_000 } else { 100_000 },
            })
            .collect();
        let placement = Forecast::of_tests(&costs).placed(&[300; 64], &[0; 16]);
        let whole: f64 = costs.iter().map(|spent| f64::from(spent.work)).sum();
        for (rank, work) in did(&placement, &costs, 16).into_iter().enumerate() {
            assert!(
                (work as f64 * 16.0 / whole - 1.0).abs() < 0.08,
                "rank {rank}: {work} of {whole}"
            );
        }
    }

    /// What each rank does of tests of these costs.
    pub(super) fn did(placement: &Placement, costs: &[Spent], ranks: usize) -> Vec<u64> {
        let of = |rank: usize| {
            let share = |spent: &Spent| {
                let part = placement.part(rank, spent.patch, spent.against);
                f64::from(spent.work) * part.map_or(0.0, Part::share)
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
        let costs: Vec<Spent> = (0..64)
            .map(|patch| Spent {
                patch,
                against: Against::Itself,
                work: work(patch),
            })
            .collect();
        for ranks in [2, 7, 16] {
            let (nodes, before) = ([300; 64], vec![1_000; ranks]);
            let forecast = Forecast::of_tests(&costs);
            let placement = forecast.placed(&nodes, &before);
            let load = |rank: usize| {
                let part = |spent: &Spent| placement.part(rank, spent.patch, spent.against);
                let parts = costs.iter().filter_map(|spent| Some((spent, part(spent)?)));
                let cost = |(spent, part): (&Spent, Part)| {
                    let again = if part.is_whole() { 0.0 } else { DEAL as f64 };
                    let ready = Had::made(300, (true, 0));
                    f64::from(spent.work) * part.share() + again + ready as f64
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
            let costs: Vec<Spent> = (0..patches)
                .map(|patch| Spent {
                    patch,
                    against: Against::Itself,
                    work,
                })
                .collect();
            let placement = Forecast::of_tests(&costs).placed(&[300; 20], &vec![0; ranks]);
            let load = |rank: usize| {
                let part = |spent: &Spent| placement.part(rank, spent.patch, spent.against);
                let of_all = |spent: &Spent| part(spent).map_or(0.0, Part::share);
                costs.iter().map(of_all).sum::<f64>()
            };
            (0..ranks).map(load).fold(0.0, f64::max)
        };
        // Too small to be cut: each is all that a rank has.
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
        let costs: Vec<Spent> = (0..64)
            .map(|patch| Spent {
                patch,
                against: Against::Itself,
                work: 100_000,
            })
            .collect();
        let mut before = [20_000_u64; 8];
        before[3] = 420_000;
        // More than all others have to do together.
        before[7] = 9_000_000;
        let placement = Forecast::of_tests(&costs).placed(&[0; 64], &before);
        let share = |rank: usize| -> f64 {
            let part = |spent: &Spent| placement.part(rank, spent.patch, spent.against);
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
        let spent = |patch, against| Spent {
            patch,
            against,
            work: 10_000,
        };
        let costs = [
            spent(0, Against::Patch(1)),
            spent(2, Against::Body(0)),
            spent(2, Against::Itself),
            spent(3, Against::Patch(5)),
            spent(4, Against::Itself),
        ];
        let placement = Forecast::of_tests(&costs).placed(&[0; 6], &[0]);
        assert_eq!(placement.tested_whole(0), [2, 4]);
    }
}
