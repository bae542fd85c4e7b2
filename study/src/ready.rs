//! What tests read of a patch, and what a rank has made ready of it.
//!
//! One rank, the patch's *seer*, looks where its vertices go in the step and makes the volume around all of it for everybody. Whoever tests it
//! makes the volumes of all vertices, and as much of the tree as its tests look at: the tree consists of pieces, whose roots are made of their
//! vertices, and what is inside a piece is made once a test may look there.

use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use weft_partition::Ownership;
use weft_runtime::comm::POSTED_UP_TO;

use crate::forecast::Placement;
use crate::prices::{Prices, ns};

/// A vertex in the volume of a piece's root takes this share of what a node takes. Measured with all of it near; where it is far, one waits
/// for nodes, not for vertices, which have just been measured.
const FOLD: f64 = 0.25;

/// What tests read of a patch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reads {
    /// Vertices of its triangles, some of which are of other patches.
    pub around: u32,
    /// Nodes of its tree.
    pub nodes: u32,
    /// Of each piece of the tree, the nodes below its root; 64 at most.
    pub pieces: Vec<u32>,
    /// Vertices of pieces; one that several have counts in each.
    pub corners: u32,
}

impl Reads {
    /// All pieces, a bit for each.
    #[must_use]
    pub fn whole(&self) -> u64 {
        match self.pieces.len() {
            0 => 0,
            count => u64::MAX >> 64_usize.saturating_sub(count),
        }
    }

    /// Whether pieces are parts of the tree.
    pub(crate) fn is_valid(&self) -> bool {
        let inside = self.pieces.iter().map(|&nodes| u64::from(nodes));
        self.pieces.len() <= 64 && inside.sum::<u64>() <= u64::from(self.nodes)
    }

    /// Nodes below the roots of some pieces.
    fn inside(&self, which: u64) -> f64 {
        let some = (self.pieces.iter().enumerate()).filter(|(at, _)| which >> at & 1 != 0);
        some.map(|(_, &nodes)| f64::from(nodes)).sum()
    }

    /// Nodes above, roots included.
    fn above(&self) -> f64 {
        f64::from(self.nodes) - self.inside(self.whole())
    }

    /// The least that a rank makes whose tests look into these pieces, in ns.
    #[must_use]
    pub fn least(&self, which: u64, prices: &Prices) -> f64 {
        prices.measure * f64::from(self.around) + prices.node * (self.above() + self.inside(which))
    }

    /// What it takes a rank to have some pieces where it had others, or nothing at all, in ns. If it is the patch's seer it has looked where
    /// vertices go before.
    #[must_use]
    pub fn cost(&self, (before, after): (Option<u64>, u64), sees: bool, prices: &Prices) -> f64 {
        let mut cost = prices.node * self.inside(after & !before.unwrap_or(0));
        if before.is_none() {
            let way = if sees { 0.0 } else { prices.way };
            cost += (prices.measure + way) * f64::from(self.around);
            cost += prices.node * self.above();
            if after != self.whole() {
                cost += FOLD * prices.node * f64::from(self.corners);
            }
        }
        cost
    }
}

/// What a rank has made ready of all patches in a step.
#[derive(Debug)]
pub struct Ready(Mutex<Vec<Option<u64>>>);

impl Ready {
    /// Nothing of so many.
    #[must_use]
    pub fn new(patches: usize) -> Self {
        Self(Mutex::new(vec![None; patches]))
    }

    /// It has these pieces of a patch's tree now, and those that it had: before and after.
    ///
    /// # Panics
    /// If there is no such patch.
    pub fn open(&self, patch: usize, pieces: u64) -> (Option<u64>, u64) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = all[patch];
        let after = before.unwrap_or(0) | pieces;
        all[patch] = Some(after);
        (before, after)
    }
}

/// Who looks first where the vertices of each patch go, and makes the volume around it for all: as long as nobody knows better its owner, and
/// with a plan of who makes which tests a rank that looks there anyway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seers {
    /// Of each patch.
    of: Vec<u32>,
    /// All patches, those of the first rank first, ascending; and where those of each rank begin.
    patches: Vec<usize>,
    begins: Vec<usize>,
}

impl Seers {
    /// Under a plan, if there is one.
    #[must_use]
    pub fn new(ownership: &Ownership, plan: Option<&Placement>) -> Self {
        let ranks = ownership.ranks();
        let patches = ownership.patches(ranks - 1).end;
        let planned = |patch: usize| plan?.tests_whole_first(patch as u32);
        let seer =
            |patch: usize| planned(patch).unwrap_or_else(|| ownership.rank_of_patch(patch)) as u32;
        let of: Vec<u32> = (0..patches).map(seer).collect();
        let mut patches: Vec<usize> = (0..patches).collect();
        patches.sort_by_key(|&patch| of[patch]);
        let begin = |rank: usize| patches.partition_point(|&patch| (of[patch] as usize) < rank);
        Self {
            begins: (0..=ranks).map(begin).collect(),
            of,
            patches,
        }
    }

    /// The patches of which a rank is the seer, ascending.
    ///
    /// # Panics
    /// If there is no such rank.
    #[must_use]
    pub fn patches(&self, rank: usize) -> &[usize] {
        &self.patches[self.begins[rank]..self.begins[rank + 1]]
    }

    /// Whether a rank is the seer of a patch.
    ///
    /// # Panics
    /// If there is no such patch.
    #[must_use]
    pub fn sees(&self, rank: usize, patch: usize) -> bool {
        self.of[patch] as usize == rank
    }
}

/// What a rank makes ready before its tests, while messages are under way: patches that these look at whole.
#[derive(Clone, Debug, Default)]
pub struct Early {
    /// The patches.
    pub patches: Vec<usize>,
    /// What each takes, in ns.
    pub costs: Vec<u64>,
}

/// Whether ranks make anything ready early: beyond so many ranks nothing is under way meanwhile, and all would wait for who makes most.
#[must_use]
pub fn makes_early(ranks: usize) -> bool {
    (2..=POSTED_UP_TO).contains(&ranks)
}

impl Early {
    /// That of these patches by a rank.
    ///
    /// # Panics
    /// If there is no such patch.
    #[must_use]
    pub fn new<'a>(
        patches: Vec<usize>,
        (seers, rank): (&Seers, usize),
        reads: impl Fn(usize) -> &'a Reads,
        prices: &Prices,
    ) -> Self {
        let cost = patches.iter().map(|&patch| {
            let of = reads(patch);
            let cost = of.cost((None, of.whole()), seers.sees(rank, patch), prices);
            ns(1.0, cost)
        });
        Self {
            costs: cost.collect(),
            patches,
        }
    }

    /// What all of it takes, in ns.
    #[must_use]
    pub fn cost(&self) -> u64 {
        self.costs.iter().sum()
    }

    /// What is ready then, of so many patches.
    ///
    /// # Panics
    /// If there is no such patch.
    #[must_use]
    pub fn ready<'a>(&self, patches: usize, reads: impl Fn(usize) -> &'a Reads) -> Ready {
        let ready = Ready::new(patches);
        for &patch in &self.patches {
            ready.open(patch, reads(patch).whole());
        }
        ready
    }
}

#[cfg(test)]
mod tests {
    use weft_partition::PatchTree;

    use super::*;
    use crate::forecast::{Forecast, Spent};
    use crate::record::Against;

    #[test]
    fn piece_by_piece_costs_what_it_costs_at_once_but_for_folding() {
        let reads = Reads {
            around: 100,
            nodes: 31,
            pieces: vec![6; 4],
            corners: 130,
        };
        let prices = Prices {
            vertex: 1e9,
            way: 1e6,
            measure: 1e3,
            node: 1.0,
            ..Prices::default()
        };
        let ready = Ready::new(2);
        let open = |pieces, owns| reads.cost(ready.open(1, pieces), owns, &prices);
        assert_eq!(open(0b0101, false), 1e8 + 1e5 + 7.0 + 12.0 + 0.25 * 130.0);
        assert_eq!(open(0b0111, false), 6.0);
        assert_eq!(open(0b0110, false), 0.0);
        assert_eq!(open(reads.whole(), false), 6.0);
        assert_eq!(open(reads.whole(), false), 0.0);
        assert_eq!(reads.cost((None, reads.whole()), true, &prices), 1e5 + 31.0);
        assert_eq!(reads.least(reads.whole(), &prices), 1e5 + 31.0);
        assert!(reads.is_valid());
        assert_eq!(Reads::default().whole(), 0);
        let most = Reads {
            pieces: vec![0; 64],
            ..reads
        };
        assert_eq!(most.whole(), u64::MAX);
    }

    /// Four patches of one vertex each, two of each of two ranks.
    fn four_patches() -> Ownership {
        let tree = PatchTree::from_numbering((0..4).collect(), &[1; 4], vec![1; 4]).unwrap();
        let ownership = Ownership::new(&tree, 2).unwrap();
        assert_eq!(ownership.patches(0), 0..2);
        ownership
    }

    #[test]
    fn a_patch_is_seen_by_one_rank_that_tests_it_whole_or_by_its_owner() {
        let ownership = four_patches();
        let seen = |plan: Option<&Placement>| {
            let seers = Seers::new(&ownership, plan);
            for patch in 0..4 {
                let by = [0, 1].map(|rank| seers.sees(rank, patch));
                assert_eq!(by, [0, 1].map(|rank| seers.patches(rank).contains(&patch)));
                assert!(by[0] != by[1]);
            }
            [0, 1].map(|rank| seers.patches(rank).to_vec())
        };
        assert_eq!(seen(None), [vec![0, 1], vec![2, 3]]);
        let tests = [
            (0, Against::Itself, 100_000),
            (1, Against::Patch(2), 10_000),
            (1, Against::Body(0), 90_000),
        ];
        let tests = tests.map(|(patch, against, work)| Spent {
            patch,
            against,
            work,
        });
        // Of the last two nobody knows what reads all of them.
        let plan = Forecast::of_tests(&tests).placed(&[0; 4], &[0; 2]);
        assert_eq!(plan.tests_whole_first(1), Some(1));
        assert_eq!(plan.tests_whole_first(2), None);
        assert_eq!(seen(Some(&plan)), [vec![0], vec![1, 2, 3]]);
    }

    /// What was made early is not paid for again.
    #[test]
    fn what_was_made_early_is_there() {
        let all = [10, 20, 30].map(|around| Reads {
            around,
            nodes: 31,
            pieces: vec![6; 4],
            corners: 2 * around,
        });
        let prices = Prices {
            way: 100.0,
            measure: 1000.0,
            node: 1.0,
            ..Prices::default()
        };
        let reads = |patch: usize| &all[patch];
        let seers = Seers::new(&four_patches(), None);
        let early = Early::new(vec![0, 2], (&seers, 0), reads, &prices);
        // The second is another rank's: this one has not seen where its vertices go.
        assert_eq!(early.costs, [10_000 + 31, 33_000 + 31]);
        let ready = early.ready(3, reads);
        let cost = |patch: usize| {
            let of = &all[patch];
            of.cost(ready.open(patch, of.whole()), patch < 2, &prices)
        };
        assert_eq!([0, 1, 2].map(cost), [0.0, 20_031.0, 0.0]);
    }
}
