//! Where top-level tests are forked if not by the owners of their patches: where what they cost last time puts them.
//!
//! Cloth moves little in a step, so a step's tests cost nearly what those of the last one did. Every rank tells what tests cost it
//! ([`Account`]), and from what all have told all make the same plan ([`placement`]). From one plan to the next more changes than from step to step, in few tests:
//! in between all tell only how much they [did](Did), and move the plan's cuts.
//!
//! Costs are counts ([`work`]), which say what tests are to each other on an average machine. What they are on this one, and what
//! else a rank is slow by, is in how long its tasks took: a rank that takes longer for its counts than others do has less to do next time.
//! Nothing of it shows in results.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::assignment::Placement;
use crate::part::Part;
use crate::prices::Counts;
use crate::separation::{FirmnessWork, firmness_shares};

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
pub struct Spent {
    /// The patch, of two the one with the lower number.
    pub patch: u32,
    /// What it was tested against.
    pub against: Against,
    /// As [`work`] has it.
    pub work: u32,
}

impl Spent {
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

/// What tests cost, in tenths of a test of two volumes of cloth. About the means of the prices of seven records of the 2006 paper's first scene; which costs how much
/// beside which differs, but plans made of exact times are no better.
#[must_use]
pub fn work(against: Against, counts: &Counts) -> u64 {
    let [volumes, leaf, near, contact] = match against {
        Against::Itself | Against::Patch(_) => [10, 28, 18, 1],
        Against::Body(_) => [7, 16, 0, 54],
    };
    volumes * counts.volumes + leaf * counts.leaves + near * counts.near + contact * counts.contacts
}

/// What each rank does before tests, for all: the firmness of its share of the tiles, of which `triangles` has those of each. In the unit of [`work`].
#[must_use]
pub fn before(triangles: &[u32], ranks: usize) -> Vec<u64> {
    /// For each triangle its gradients, and for each tile its firmness.
    const TRIANGLE: u64 = 8;
    const TILE: u64 = 900;
    let share = |tiles: Range<usize>| {
        let work = FirmnessWork::of(&triangles[tiles]);
        TRIANGLE * work.triangles + TILE * work.tiles
    };
    let shares = firmness_shares(triangles, ranks);
    shares.into_iter().map(share).collect()
}

/// What a rank has made ready of a patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Had {
    Nothing,
    /// The pieces of its tree that tests with some other patches look at.
    Some,
    /// All that there is.
    Whole,
}

/// What it costs to make a patch ready in the unit of [`work`]: with what one [has](Had), for a test with another patch and for one that reads all of it.
pub(crate) type ReadyCosts = [[u64; 2]; 3];

impl Had {
    /// Tenths for each node: of all; of the boxes around pieces of the tree; of what a test with another patch looks into, and of finding that.
    const TENTHS: [u64; 3] = [59, 6, 13];

    /// What it costs if the patch's tree has so many nodes. Before a test with another patch it had all that those before it looked at.
    pub(crate) fn costs(nodes: u32) -> ReadyCosts {
        let [whole, first, pair] = Self::TENTHS;
        let all = [[first + pair, whole], [pair, whole - first - pair], [0, 0]];
        all.map(|costs| costs.map(|tenths| tenths * u64::from(nodes) / 10))
    }

    /// What it costs all in all to have what so many tests with other patches look at, and all of it if that is read too.
    pub(crate) fn made(nodes: u32, (whole, pairs): (bool, u64)) -> u64 {
        let costs = Self::costs(nodes);
        match (whole, pairs) {
            (true, _) => costs[Self::Nothing as usize][1],
            (false, 0) => 0,
            (false, pairs) => {
                costs[Self::Nothing as usize][0] + (pairs - 1) * costs[Self::Some as usize][0]
            }
        }
    }
}

/// What a rank makes ready for its tests.
pub(crate) struct Readied<'a> {
    /// Nodes of each patch's tree.
    nodes: &'a [u32],
    /// Of each patch whether all of it is read, and how many tests it has with others.
    read: Vec<(bool, u64)>,
    /// The patches of which there is something.
    touched: Vec<u32>,
}

impl<'a> Readied<'a> {
    pub(crate) fn new(nodes: &'a [u32]) -> Self {
        Self {
            nodes,
            read: vec![(false, 0); nodes.len()],
            touched: Vec::new(),
        }
    }

    /// For a test.
    pub(crate) fn add(&mut self, spent: &Spent) {
        for patch in [Some(spent.patch), spent.other()].into_iter().flatten() {
            if let Some((whole, pairs)) = self.read.get_mut(patch as usize) {
                if !*whole && *pairs == 0 {
                    self.touched.push(patch);
                }
                match spent.other() {
                    None => *whole = true,
                    Some(_) => *pairs += 1,
                }
            }
        }
    }

    /// What all of it costs; for the next rank nothing is ready.
    pub(crate) fn take(&mut self) -> u64 {
        let Self {
            nodes,
            read,
            touched,
        } = self;
        let made = |patch: u32| {
            let patch = patch as usize;
            Had::made(nodes[patch], std::mem::take(&mut read[patch]))
        };
        touched.drain(..).map(made).sum()
    }
}

/// What a rank made of a top-level test: all of it, or a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    /// What it cost.
    pub spent: Spent,
    /// The part of it, or of which it is a piece.
    pub part: Option<Part>,
}

impl From<Spent> for Told {
    fn from(spent: Spent) -> Self {
        Self { spent, part: None }
    }
}

/// What a rank tells of the tests that it made since ranks last told each other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// The last step's top-level tests.
    pub tests: Vec<Told>,
    /// For how long it was busy with those of all steps, in ns of all threads together.
    busy: u64,
    /// For how long with putting contacts in order.
    sorting: u64,
    /// What those tests cost.
    work: u64,
    /// How many steps that were.
    steps: u32,
}

impl Account {
    /// Takes in a step: its tests, and for how many ns, of all threads together, the rank was busy with them, and with putting contacts in order.
    pub fn add(&mut self, tests: Vec<Told>, busy: u64, sorting: u64) {
        self.tests = tests;
        self.busy = self.busy.saturating_add(busy);
        self.sorting = self.sorting.saturating_add(sorting);
        self.work = self.work.saturating_add(self.last());
        self.steps = self.steps.saturating_add(1);
    }

    /// What the tests of the last step cost.
    fn last(&self) -> u64 {
        let works = self.tests.iter().map(|told| u64::from(told.spent.work));
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

/// What a rank did of what a plan has given to one: tests, and, of its own, finding them and what it made ready for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Did {
    /// To which rank.
    pub of: u32,
    /// What that cost.
    pub work: u64,
}

/// What all top-level tests of the next step will cost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Forecast {
    /// Sorted by patch and what it is tested against, each once; with what time has shown.
    pub(crate) costs: Vec<Spent>,
    /// How many times its counts each is taken for, in [`USUAL`]ths.
    rates: Vec<u32>,
    /// Of tests that several ranks have made together, what the part of each cost.
    pub(crate) pieces: Vec<Piece>,
    /// What each rank does after tests, in the unit of [`work`].
    pub(crate) after: Vec<u64>,
}

/// A part of a test that was made by itself: from here on, up to where the next one begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// The number of the test.
    pub(crate) test: u32,
    /// In 2³²ths.
    pub(crate) from: u32,
    /// What those before it cost.
    pub(crate) before: u64,
    /// How many times its counts it is taken for, in [`USUAL`]ths.
    pub(crate) rate: u32,
}

/// A test that costs what its counts say.
const USUAL: u64 = 1 << 10;

/// What a test of this rate costs.
pub(crate) fn rated(spent: &Spent, rate: u64) -> u32 {
    u32::try_from(u64::from(spent.work) * rate / USUAL).unwrap_or(u32::MAX)
}

/// The rate of all of these together: not from what they are taken for, which is rounded down, and would be again each time.
fn rate_of(tests: &[(Told, u64)]) -> u32 {
    if let [(one, rate)] = tests
        && one.spent.work > 0
    {
        return *rate as u32;
    }
    let works = tests.iter().map(|(one, _)| u64::from(one.spent.work));
    let counted: u64 = works.sum();
    let taken = (tests.iter()).map(|(one, rate)| u128::from(one.spent.work) * u128::from(*rate));
    taken
        .sum::<u128>()
        .checked_div(u128::from(counted))
        .map_or(USUAL as u32, |rate| rate as u32)
}

impl Forecast {
    /// Of what each rank tells, in the order of ranks, their tests in parts and in any order, and the forecast before. `nodes` has those of each patch's tree.
    ///
    /// A rank that took longer than others for what its tests were taken for has them taken for more from now on, by half of what they were
    /// wrong by: one disturbed step is soon forgotten, and what stays is known test by test once they have been on several ranks. Contacts are
    /// of the same vertices whoever finds them: what it takes to put them in order stays with the rank, and is taken for what it was, by half as well.
    #[must_use]
    pub fn new(accounts: &[Account], before: &Self, nodes: &[u32]) -> Self {
        let mut told = Vec::with_capacity(accounts.iter().map(|a| a.tests.len()).sum());
        let mut paces = Vec::with_capacity(accounts.len());
        let mut readied = Readied::new(nodes);
        for account in accounts {
            let (mut units, mut next) = (0, 0);
            for one in &account.tests {
                let spent = &one.spent;
                let rate;
                (rate, next) = before.rate(one, next);
                let rate = u64::from(rate);
                units += u64::from(rated(spent, rate));
                readied.add(spent);
                told.push((*one, rate));
            }
            let made_ready = readied.take();
            // Of all steps, of which the last one may have cost more than most.
            let all = u128::from(units) * u128::from(account.work)
                / u128::from(account.last().max(1))
                + u128::from(made_ready) * u128::from(account.steps);
            // Who made no tests is neither fast nor slow.
            paces.push(
                (u128::from(account.busy) << 32)
                    .checked_div(all)
                    .unwrap_or(0),
            );
        }
        let mut known: Vec<u128> = paces.iter().copied().filter(|&pace| pace > 0).collect();
        known.sort_unstable();
        let usual = known.get(known.len() / 2).copied().unwrap_or(1);
        // No more than all tests are worth: that is enough to leave a rank without any.
        let all: u64 = told
            .iter()
            .map(|(one, rate)| u64::from(rated(&one.spent, *rate)))
            .sum();
        let after = |(rank, account): (usize, &Account)| {
            let each = account.sorting.checked_div(u64::from(account.steps));
            let units = (u128::from(each.unwrap_or(0)) << 32) / usual;
            let units = u64::try_from(units).unwrap_or(u64::MAX).min(all);
            units.midpoint(before.after.get(rank).copied().unwrap_or(0).min(all))
        };
        let after = match known.is_empty() {
            true => Vec::new(),
            false => accounts.iter().enumerate().map(after).collect(),
        };
        let mut at = 0;
        for (account, pace) in accounts.iter().zip(paces) {
            let own = &mut told[at..at + account.tests.len()];
            at += own.len();
            if pace > 0 {
                let pace = u64::try_from(u128::from(USUAL) * pace / usual).unwrap_or(u64::MAX);
                let half = USUAL.midpoint(pace.min(4 * USUAL));
                for (_, rate) in own {
                    *rate = (*rate * half / USUAL).clamp(USUAL / 8, 8 * USUAL);
                }
            }
        }
        // Ranks' lists are in order, and follow each other nearly so.
        let from = |one: &Told| one.part.map_or(0, |part| part.from);
        told.sort_by_key(|(one, _)| (one.spent.key(), from(one)));
        let mut forecast = Self {
            costs: Vec::with_capacity(told.len()),
            rates: Vec::with_capacity(told.len()),
            pieces: Vec::new(),
            after,
        };
        for same in told.chunk_by(|(a, _), (b, _)| a.spent.key() == b.spent.key()) {
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
                    .map(|(one, rate)| u64::from(rated(&one.spent, *rate)));
                work += works.sum::<u64>();
            }
            forecast.rates.push(rate_of(same));
            let work = u32::try_from(work).unwrap_or(u32::MAX);
            forecast.costs.push(Spent {
                work,
                ..same[0].0.spent
            });
        }
        forecast
    }

    /// Of what one rank knows of all tests.
    #[must_use]
    pub fn of_tests(tests: &[Spent]) -> Self {
        let account = Account {
            tests: tests.iter().copied().map(Told::from).collect(),
            ..Account::default()
        };
        Self::new(&[account], &Self::default(), &[])
    }

    /// That of a part is that of the piece in which its middle lies. Who asks for one after the other says which one is `next`, if it is known,
    /// and hears it.
    pub(crate) fn rate(&self, told: &Told, next: usize) -> (u32, usize) {
        let key = told.spent.key();
        let is_next = (self.costs.get(next)).is_some_and(|spent| spent.key() == key);
        let found = if is_next {
            Ok(next)
        } else {
            self.costs.binary_search_by_key(&key, Spent::key)
        };
        let Ok(at) = found else {
            return (USUAL as u32, next);
        };
        let piece = told.part.and_then(|part| {
            let place = (at as u32, part.from.midpoint(part.last));
            let behind = (self.pieces).partition_point(|piece| (piece.test, piece.from) <= place);
            let piece = self.pieces[..behind].last()?;
            (piece.test == place.0).then_some(piece.rate)
        });
        (piece.unwrap_or(self.rates[at]), at + 1)
    }

    /// Whether nothing is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.costs.is_empty()
    }

    /// The costs, sorted by patch and what it is tested against.
    #[must_use]
    pub fn costs(&self) -> &[Spent] {
        &self.costs
    }

    /// Places all tests on ranks that have so much to do `before` each, in the unit of [`work`], and after them what they told. `nodes` has the nodes of each patch's tree: it costs something to
    /// make them ready, and a rank does that for all patches that its tests touch.
    #[must_use]
    pub fn placed(&self, nodes: &[u32], before: &[u64]) -> Placement {
        Placement::new(self, nodes, before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tests(patches: Range<u32>, work: impl Fn(u32) -> u32) -> Vec<Spent> {
        let spent = |patch| Spent {
            patch,
            against: Against::Itself,
            work: work(patch),
        };
        patches.map(spent).collect()
    }

    /// What ranks tell who have these patches, if each unit takes so many ns.
    fn told(shares: &[Range<u32>], takes: impl Fn(u32) -> u64) -> Vec<Account> {
        let account = |patches: &Range<u32>| {
            let mut account = Account::default();
            let busy = patches.clone().map(|patch| 10_000 * takes(patch)).sum();
            for _ in 0..3 {
                let tests = tests(patches.clone(), |_| 10_000);
                account.add(tests.into_iter().map(Told::from).collect(), busy, 0);
            }
            account
        };
        shares.iter().map(account).collect()
    }

    #[test]
    fn what_is_ready_costs_nothing_again() {
        let costs = Had::costs(1_000);
        let made = |tests: &[bool]| {
            let add = |(had, sum): (usize, u64), &whole: &bool| {
                let has = had.max(if whole {
                    Had::Whole as usize
                } else {
                    Had::Some as usize
                });
                (has, sum + costs[had][usize::from(whole)])
            };
            tests.iter().fold((Had::Nothing as usize, 0), add)
        };
        let (whole, all) = made(&[true]);
        assert_eq!(made(&[true, false, true, false]), (whole, all));
        assert_eq!(made(&[false, true]), (whole, all));
        let (some, one) = made(&[false]);
        assert_eq!(some, Had::Some as usize);
        let (_, two) = made(&[false, false]);
        assert!(one < two && two - one < one && two < all);
        for pairs in 0..3 {
            assert_eq!(Had::made(1_000, (true, pairs as u64)), all);
            let (_, sum) = made(&vec![false; pairs]);
            assert_eq!(Had::made(1_000, (false, pairs as u64)), sum);
        }
    }

    #[test]
    fn who_takes_longer_has_what_costs_more() {
        // The second takes twice as long for the same; the third was stopped for a while.
        let takes = |patch| [1, 2, 1_000][patch as usize / 4];
        let accounts = told(&[0..4, 4..8, 8..12, 12..16, 16..20], |patch| {
            if patch < 12 { takes(patch) } else { 1 }
        });
        let forecast = Forecast::new(&accounts, &Forecast::default(), &[0; 20]);
        let works: Vec<u32> = forecast.costs().iter().map(|spent| spent.work).collect();
        assert_eq!(works[0], 10_000);
        assert_eq!(works[4], 15_000);
        assert_eq!(works[8], 25_000);
        // Nobody was asked for the time.
        let even = Forecast::of_tests(&tests(0..2, |_| 7));
        assert_eq!(even.costs(), &tests(0..2, |_| 7)[..]);
    }

    #[test]
    fn what_a_test_costs_is_found_out_by_having_it_on_several_ranks() {
        // One in eight takes three times as long.
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
            forecast = Forecast::new(&told(&shares, takes), &forecast, &nodes);
            let works = forecast.costs().iter().map(|spent| spent.work);
            let ends = weft_partition::even_shares(&works.collect::<Vec<_>>(), shares.len());
            shares = ends
                .into_iter()
                .map(|share| share.start as u32..share.end as u32)
                .collect();
            shares.retain(|share| !share.is_empty());
        }
        // 40 in all, on eight.
        assert_eq!(longest(&shares), Some(5));
    }

    #[test]
    fn a_rate_stays_as_it_is_however_little_a_test_costs() {
        for work in [1, 3, 10_000, u32::MAX] {
            let told: Vec<_> = tests(0..3, |_| work).into_iter().map(Told::from).collect();
            let same: Vec<_> = told.iter().map(|&one| (one, 1_000)).collect();
            assert_eq!(rate_of(&same), 1_000);
            let unlike = [(told[0], 500), (told[1], 1_000), (told[2], 1_500)];
            assert_eq!(rate_of(&unlike), 1_000);
        }
        assert_eq!(rate_of(&[(tests(0..1, |_| 0)[0].into(), 9)]), USUAL as u32);
    }

    #[test]
    fn who_made_no_tests_says_nothing_of_how_fast_ranks_are() {
        let idle = |busy| {
            let mut account = Account::default();
            account.add(Vec::new(), busy, 0);
            account
        };
        let mut accounts = told(&[0..2, 2..4], |_| 1);
        accounts.extend([idle(7), idle(8), idle(9)]);
        let forecast = Forecast::new(&accounts, &Forecast::default(), &[0; 4]);
        assert!(forecast.costs().iter().all(|spent| spent.work == 10_000));
    }

    #[test]
    fn who_has_more_contacts_has_fewer_tests() {
        let shares: Vec<Range<u32>> = (0..4).map(|rank| 16 * rank..16 * rank + 16).collect();
        let mut accounts = told(&shares, |_| 2);
        // As long as a quarter of the tests of the third, in each step: half of that is believed at first, and then three quarters.
        accounts[2].sorting = 3 * 4 * 20_000;
        let forecast = Forecast::new(&accounts, &Forecast::default(), &[0; 64]);
        assert_eq!(forecast.after, [0, 0, 20_000, 0]);
        let forecast = Forecast::new(&accounts, &forecast, &[0; 64]);
        assert_eq!(forecast.after, [0, 0, 30_000, 0]);
        assert_eq!(forecast.costs()[0].work, 10_000);
        let placement = forecast.placed(&[0; 64], &[0; 4]);
        let share = |rank: usize| -> f64 {
            let part = |spent: &Spent| placement.part(rank, spent.patch, spent.against);
            forecast
                .costs()
                .iter()
                .filter_map(part)
                .map(Part::share)
                .sum()
        };
        // Its three tests' worth of time is everybody's, as far as pieces of tests are worth it.
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
        let spent = |patch, against, work| Spent {
            patch,
            against,
            work,
        };
        let pair = Against::Patch(5);
        let forecast = Forecast::of_tests(&[
            spent(3, pair, 7),
            spent(1, Against::Itself, 2),
            spent(3, pair, u32::MAX),
            spent(3, Against::Itself, 4),
        ]);
        let expected = [
            spent(1, Against::Itself, 2),
            spent(3, Against::Itself, 4),
            spent(3, pair, u32::MAX),
        ];
        assert_eq!(forecast.costs(), expected);
    }
}
