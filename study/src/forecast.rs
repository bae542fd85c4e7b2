//! Where top-level tests are forked if not by the owners of their patches: where what they cost last time puts them.
//!
//! Cloth moves little in a step, so a step's tests cost nearly what those of the last one did. Their costs are laid end to end in
//! the order of patches, those of two with the one that comes first (then a rank makes those patches of others ready that come
//! after its own, and not those before them too), and the line is cut into as many equal stretches as there are ranks: a rank's tests are of patches that
//! follow each other, few of which it shares with others. A test that a cut falls into is shared out in proportion: each of
//! its ranks makes the same first few tests of it, breadth first, and goes on with its share of what these lead to ([`Part`]).
//! What the forecast is wrong by is left to thieves.
//!
//! Costs are counts ([`work`]), not times: all ranks know the same ones, and cut alike. What else a rank will do after its tests is
//! known too, and its stretch is shorter by that. Nothing of it shows in results.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::prices::Counts;
use crate::record::Against;

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

/// What tests cost, in tenths of a test of two volumes of cloth. Measured on both scenes of the 2006 paper; only balance depends on it.
#[must_use]
pub fn work(against: Against, counts: &Counts) -> u64 {
    let [volumes, leaf, near, contact] = match against {
        Against::Itself | Against::Patch(_) => [10, 26, 22, 0],
        Against::Body(_) => [7, 19, 0, 37],
    };
    volumes * counts.volumes + leaf * counts.leaves + near * counts.near + contact * counts.contacts
}

/// What taking in a contact costs its owner, in the same unit.
pub const CONTACT: u64 = 21;
/// What making a node of a tree ready costs.
const NODE: u64 = 5;

/// A share of what the first tests of a top-level test lead to: from one 2³²th up to and with another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    from: u32,
    last: u32,
}

impl Part {
    /// All.
    pub const WHOLE: Self = Self {
        from: 0,
        last: u32::MAX,
    };

    /// Whether it is all.
    #[must_use]
    pub fn is_whole(self) -> bool {
        self == Self::WHOLE
    }

    /// Whether it is the first: what all who have a part do counts as this one's.
    #[must_use]
    pub fn is_first(self) -> bool {
        self.from == 0
    }

    /// How much of the whole it is.
    #[must_use]
    pub fn share(self) -> f64 {
        (f64::from(self.last) - f64::from(self.from) + 1.0) / 2.0_f64.powi(32)
    }

    /// Whether the one of this number belongs to it. Of those that follow each other, which are alike, each share has its part: multiples of the
    /// golden ratio fill a circle evenly.
    #[must_use]
    pub fn has(self, number: usize) -> bool {
        /// 2³² over the golden ratio.
        const TURN: u32 = 0x9E37_79B9;
        let at = (number as u32).wrapping_mul(TURN);
        (self.from..=self.last).contains(&at)
    }

    /// Of a stack of untried tests, those that belong to it, once `expand` has replaced each by what it leads to often enough
    /// for a part to be about what it should be. `expand` puts that on the stack it is given; what it answers `false` to stays as it is.
    pub fn deal<T: Copy>(self, stack: &mut Vec<T>, mut expand: impl FnMut(T, &mut Vec<T>) -> bool) {
        if self.is_whole() {
            return;
        }
        let mut next = Vec::new();
        for _ in 0..GENERATIONS {
            if stack.len() >= ENOUGH {
                break;
            }
            next.clear();
            let mut grown = false;
            for &test in &*stack {
                if expand(test, &mut next) {
                    grown = true;
                } else {
                    next.push(test);
                }
            }
            std::mem::swap(stack, &mut next);
            if !grown {
                break;
            }
        }
        let mut number = 0;
        stack.retain(|_| {
            number += 1;
            self.has(number)
        });
    }
}

/// Tests among which shares are dealt out.
const ENOUGH: usize = 256;
/// And how often they are sought at most.
const GENERATIONS: usize = 24;

/// What all top-level tests of the last step cost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Forecast {
    /// By place in the line.
    costs: Vec<Spent>,
}

impl Forecast {
    /// Of costs that may come in parts and in any order.
    #[must_use]
    pub fn new(mut costs: Vec<Spent>) -> Self {
        // Ranks' lists are in order, and follow each other nearly so.
        costs.sort_by_key(|spent| (spent.patch, spent.against));
        costs.dedup_by(|next, first| {
            let same = (next.patch, next.against) == (first.patch, first.against);
            if same {
                first.work = first.work.saturating_add(next.work);
            }
            same
        });
        Self { costs }
    }

    /// Whether nothing is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.costs.is_empty()
    }

    /// The costs, by place in the line.
    #[must_use]
    pub fn costs(&self) -> &[Spent] {
        &self.costs
    }

    /// Cuts the line for ranks that will have so much to do after their tests, in the unit of [`work`]. `nodes` has the nodes of each patch's tree: it
    /// costs something to make them ready, and a rank does that for its own patches and for those that its tests touch beside.
    #[must_use]
    pub fn cut(self, nodes: &[u32], after: &[u64]) -> Placement {
        let mut at = 0;
        let (mut patches, mut ends) = (Vec::new(), Vec::with_capacity(self.costs.len()));
        let mut costs = self.costs.iter().peekable();
        for (patch, &nodes) in (0..).zip(nodes) {
            patches.push(at);
            at += ready(nodes);
            while let Some(spent) = costs.next_if(|spent| spent.patch <= patch) {
                at += u64::from(spent.work);
                ends.push(at);
            }
        }
        // No others than those of patches that there are.
        let mut costs = self.costs;
        costs.truncate(ends.len());
        let mut placement = Placement {
            costs,
            patches,
            ends,
            cuts: Vec::new(),
        };
        placement.cut(at, after.iter().copied());
        for _ in 0..ROUNDS {
            let beside: Vec<u64> = (0..after.len())
                .map(|rank| placement.ready_beside(rank, nodes))
                .collect();
            let all = after
                .iter()
                .zip(beside)
                .map(|(after, beside)| after + beside);
            placement.cut(at, all);
        }
        placement
    }
}

/// What making a patch of so many nodes ready costs.
fn ready(nodes: u32) -> u64 {
    (NODE * u64::from(nodes)).max(1)
}

/// How often a line is cut again, with what the cuts before cost.
const ROUNDS: usize = 2;
/// A cut is moved to where a patch or a test begins if that is nearer than a stretch over this.
const NEAR_A_PATCH: u64 = 24;
const NEAR_A_TEST: u64 = 32;

/// The nearest of these places, if it is near enough.
fn snapped(cut: u64, places: &[u64], near: u64) -> u64 {
    let next = places.partition_point(|&place| place < cut);
    let beside = [next.checked_sub(1), Some(next)].into_iter().flatten();
    let nearest = (beside.filter_map(|at| places.get(at))).min_by_key(|place| place.abs_diff(cut));
    nearest.map_or(cut, |&place| {
        if place.abs_diff(cut) <= near {
            place
        } else {
            cut
        }
    })
}

/// A line that was cut.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    costs: Vec<Spent>,
    /// Where each patch begins.
    patches: Vec<u64>,
    /// Where each of the costs ends.
    ends: Vec<u64>,
    /// Where the stretch of each rank begins, and the end.
    cuts: Vec<u64>,
}

impl Placement {
    /// Cuts a line of this length for ranks with so much to do beside.
    fn cut(&mut self, length: u64, beside: impl Iterator<Item = u64> + Clone) {
        let ranks = beside.clone().count().max(1);
        let share = (length + beside.clone().sum::<u64>()) / ranks as u64;
        // Where somebody has more to do beside than is his, others have less than theirs.
        let stretches = beside.map(|beside| share.saturating_sub(beside));
        let whole = stretches.clone().sum::<u64>().max(1);
        let mut sum = 0;
        self.cuts.clear();
        self.cuts.push(0);
        for stretch in stretches.take(ranks - 1) {
            sum += stretch;
            let cut = (u128::from(sum) * u128::from(length) / u128::from(whole)) as u64;
            let cut = snapped(cut, &self.patches, share / NEAR_A_PATCH);
            let cut = snapped(cut, &self.ends, share / NEAR_A_TEST);
            let before = self.cuts.last().copied().unwrap_or_default();
            self.cuts.push(cut.max(before));
        }
        self.cuts.push(u64::MAX);
    }

    /// What it costs a rank to make those patches ready that its tests touch and that do not begin in its stretch.
    fn ready_beside(&self, rank: usize, nodes: &[u32]) -> u64 {
        let own = self.cuts[rank]..self.cuts[rank + 1];
        let mut beside = Vec::new();
        for spent in &self.costs[self.known(rank)] {
            let other = match spent.against {
                Against::Patch(other) => other,
                Against::Itself | Against::Body(_) => spent.patch,
            };
            let is_beside = |patch: &u32| {
                let begin = self.patches.get(*patch as usize);
                begin.is_some_and(|begin| !own.contains(begin))
            };
            beside.extend([spent.patch, other].into_iter().filter(is_beside));
        }
        beside.sort_unstable();
        beside.dedup();
        beside
            .iter()
            .map(|&patch| ready(nodes[patch as usize]))
            .sum()
    }

    /// The tests of known cost that are in a rank's stretch, wholly or partly.
    fn known(&self, rank: usize) -> Range<usize> {
        let begin = self.ends.partition_point(|&end| end <= self.cuts[rank]);
        let end = self.ends.partition_point(|&end| end < self.cuts[rank + 1]);
        begin..(end + 1).min(self.ends.len()).max(begin)
    }

    /// The patches with tests in a rank's stretch, perhaps none.
    #[must_use]
    pub fn patches(&self, rank: usize) -> Range<usize> {
        let [begin, end] = [self.cuts[rank], self.cuts[rank + 1]];
        if begin >= end {
            return 0..0;
        }
        let first = self.patches.partition_point(|&at| at <= begin);
        first.saturating_sub(1)..self.patches.partition_point(|&at| at < end)
    }

    /// How many tests of known cost are in a rank's stretch, wholly or partly.
    #[must_use]
    pub fn pieces(&self, rank: usize) -> usize {
        self.known(rank).len()
    }

    /// What a rank does of a top-level test, if anything. One that nobody knows is done where its patch begins.
    #[must_use]
    pub fn part(&self, rank: usize, patch: u32, against: Against) -> Option<Part> {
        let (begin, end) = (self.cuts[rank], self.cuts[rank + 1]);
        let place = self.place(patch, against);
        let (from, to) = (begin.max(place.start), end.min(place.end));
        if from >= to {
            return None;
        }
        // Both are less than 2³² times the work.
        let share = |at: u64| ((at - place.start) << 32) / (place.end - place.start);
        Some(Part {
            from: share(from) as u32,
            last: (share(to) - 1) as u32,
        })
    }

    /// The ranks that do some of a top-level test.
    #[must_use]
    pub fn ranks(&self, patch: u32, against: Against) -> Range<usize> {
        let place = self.place(patch, against);
        let ranks = self.cuts.len() - 1;
        let first = self.cuts[..ranks].partition_point(|&cut| cut <= place.start);
        let end = self.cuts[..ranks].partition_point(|&cut| cut < place.end);
        first.saturating_sub(1)..end
    }

    /// Where a top-level test stands in the line.
    fn place(&self, patch: u32, against: Against) -> Range<u64> {
        let key = (patch, against);
        let known = (self.costs).binary_search_by_key(&key, |spent| (spent.patch, spent.against));
        match known {
            Ok(at) if self.costs[at].work > 0 => {
                let end = self.ends[at];
                end - u64::from(self.costs[at].work)..end
            }
            _ => {
                let at = self.patches.get(patch as usize).copied().unwrap_or(0);
                at..at + 1
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn against() -> impl Strategy<Value = Against> {
        prop_oneof![
            Just(Against::Itself),
            (1_u32..16).prop_map(Against::Patch),
            (0_u32..2).prop_map(Against::Body),
        ]
    }

    fn spent() -> impl Strategy<Value = Spent> {
        let work = prop_oneof![0_u32..4, 0_u32..10_000, Just(u32::MAX)];
        (0_u32..16, against(), work).prop_map(|(patch, against, work)| Spent {
            patch,
            against: match against {
                Against::Patch(other) => Against::Patch(patch + other),
                other => other,
            },
            work,
        })
    }

    proptest! {
        /// Whatever is known and whatever is asked for: shares of all ranks are all of it, and none of it twice.
        #[test]
        fn every_test_is_done_once(
            costs in prop::collection::vec(spent(), 0..60),
            asked in prop::collection::vec(spent(), 0..60),
            after in prop::collection::vec(prop_oneof![Just(0), 0_u64..10_000_000], 1..20),
        ) {
            let forecast = Forecast::new(costs.clone());
            let (placement, ranks) = (forecast.cut(&std::array::from_fn::<u32, 16, _>(|patch| 100 * patch as u32), &after), after.len());
            let within = |spent: &&Spent| spent.patch < 16;
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
                    prop_assert!(placement.patches(rank).contains(&(spent.patch as usize)));
                }
                prop_assert_eq!(next, 1 << 32, "{:?} on {} ranks", spent, ranks);
            }
        }

        /// Dealt out among parts that are all of it, every test that a tree leads to is reached by exactly one.
        #[test]
        fn what_is_dealt_out_is_dealt_once(
            cuts in prop::collection::btree_set(1_u32..u32::MAX, 0..5),
            fan in 2_u64..5,
            leaves in 1_u64..5_000,
        ) {
            let from: Vec<u32> = std::iter::once(0).chain(cuts).collect();
            let last = from[1..].iter().map(|next| next - 1).chain([u32::MAX]);
            let mut reached = vec![0; leaves as usize];
            // A test is a range of leaves.
            let split = |(begin, end): (u64, u64), stack: &mut Vec<(u64, u64)>| {
                let cut = |k: u64| begin + (end - begin) * k / fan;
                let wide = end - begin > 1;
                if wide {
                    stack.extend((0..fan).map(|k| (cut(k), cut(k + 1))).filter(|(a, b)| a < b));
                }
                wide
            };
            for (&from, last) in from.iter().zip(last) {
                let mut stack = vec![(0, leaves)];
                Part { from, last }.deal(&mut stack, split);
                for (begin, end) in stack {
                    (begin..end).for_each(|leaf| reached[leaf as usize] += 1);
                }
            }
            prop_assert!(reached.iter().all(|&times| times == 1));
        }
    }

    #[test]
    fn stretches_cost_the_same_with_what_comes_after() {
        let costs: Vec<Spent> = (0..64)
            .map(|patch| Spent {
                patch,
                against: Against::Itself,
                // One patch has as much as all others.
                work: if patch == 20 { 6_400_000 } else { 100_000 },
            })
            .collect();
        let forecast = Forecast::new(costs.clone());
        // One rank has half of its share to do afterwards.
        let after: Vec<u64> = (0..16)
            .map(|rank| if rank == 5 { 400_000 } else { 0 })
            .collect();
        let placement = forecast.cut(&[300; 64], &after);
        let whole: f64 = costs.iter().map(|spent| f64::from(spent.work)).sum::<f64>() + 400_000.0;
        for (rank, &after) in after.iter().enumerate() {
            let share = |spent: &Spent| {
                let part = placement.part(rank, spent.patch, spent.against);
                let width = part.map_or(0.0, |part| {
                    f64::from(part.last) - f64::from(part.from) + 1.0
                });
                f64::from(spent.work) * width / 2.0_f64.powi(32)
            };
            let work: f64 = costs.iter().map(share).sum::<f64>() + after as f64;
            assert!(
                (work * 16.0 / whole - 1.0).abs() < 0.1,
                "rank {rank}: {work} of {whole}"
            );
        }
    }

    #[test]
    fn a_part_has_about_its_share_of_anything_in_order() {
        for (from, last) in [(0, u32::MAX / 3), (u32::MAX / 3 + 1, u32::MAX)] {
            let part = Part { from, last };
            let share = f64::from(last - from) / 2.0_f64.powi(32);
            for stretch in [0..96, 40..90, 1000..1050] {
                let all = stretch.len() as f64;
                let has = stretch.filter(|&number| part.has(number)).count() as f64;
                assert!((has - share * all).abs() <= 2.0, "{has} of {all}");
            }
        }
    }
}
