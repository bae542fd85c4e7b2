//! The parts of a patch that tests read, and what preparing them costs.
//!
//! The tree of bounding volumes over a patch consists of pieces. A test of two patches begins with
//! boxes around the pieces, and needs the volumes of vertices and nodes of those pieces that it may
//! look into. A test of a patch against itself or a body needs the whole tree. A rank prepares each
//! piece once a step, when the first of its tests needs it.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use weft_runtime::comm::{Comm, POSTED_UP_TO};

use crate::prices::{Prices, ns};

/// The sizes of what tests read of a patch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PatchSizes {
    /// The number of vertices of its triangles, some of which belong to other patches.
    pub around: u32,
    /// The number of nodes of its tree.
    pub nodes: u32,
    /// The number of nodes of each piece of the tree; there are at most 64 pieces.
    pub pieces: Vec<u32>,
    /// The numbers of vertices that belong to the same pieces; a bit for each piece.
    pub vertices: Vec<(u64, u32)>,
}

impl PatchSizes {
    /// All pieces, a bit for each.
    #[must_use]
    pub fn whole(&self) -> u64 {
        match self.pieces.len() {
            0 => 0,
            count => u64::MAX >> 64_usize.saturating_sub(count),
        }
    }

    /// Whether pieces are parts of the tree, and vertices belong to pieces that exist.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        let inside = self.pieces.iter().map(|&nodes| u64::from(nodes));
        let are_parts = self.pieces.len() <= 64 && inside.sum::<u64>() <= u64::from(self.nodes);
        let whole = self.whole();
        let counted = self.vertices.iter().map(|&(_, count)| u64::from(count));
        are_parts
            && counted.sum::<u64>() <= u64::from(self.around)
            && self
                .vertices
                .iter()
                .all(|&(pieces, _)| pieces & !whole == 0)
    }

    /// The number of nodes of some pieces.
    fn inside(&self, which: u64) -> f64 {
        let some = (self.pieces.iter().enumerate()).filter(|(at, _)| which >> at & 1 != 0);
        some.map(|(_, &nodes)| f64::from(nodes)).sum()
    }

    /// The number of nodes above all pieces.
    fn above(&self) -> f64 {
        f64::from(self.nodes) - self.inside(self.whole())
    }

    /// The number of vertices of all pieces, each counted once for every piece that has it.
    #[must_use]
    pub fn corners(&self) -> u64 {
        let kinds = self.vertices.iter();
        let counts =
            kinds.map(|&(pieces, count)| u64::from(pieces.count_ones()) * u64::from(count));
        counts.sum()
    }

    /// The number of vertices that belong to some of the pieces `which` and to none of `but`.
    fn measured(&self, which: u64, but: u64) -> f64 {
        let kinds = self.vertices.iter();
        let some = kinds.filter(|(pieces, _)| pieces & which != 0 && pieces & but == 0);
        some.map(|&(_, count)| f64::from(count)).sum()
    }

    /// The least time in ns that a rank needs if its tests look into these pieces.
    #[must_use]
    pub fn least(&self, which: u64, prices: &Prices) -> f64 {
        let vertices = prices.measure * self.measured(which, 0);
        vertices + prices.touched * f64::from(self.around) + prices.node * self.inside(which)
    }

    /// The time in ns that a rank needs to have some pieces prepared, where it had others before,
    /// or nothing at all. The owner of the patch's bounding volume, which `sees`, is spared the
    /// price of looking where vertices go.
    #[must_use]
    pub fn cost(&self, (before, after): (Option<u64>, u64), sees: bool, prices: &Prices) -> f64 {
        let mut cost = match before {
            None => prices.touched * f64::from(self.around),
            Some(_) => 0.0,
        };
        let (before, whole) = (before.unwrap_or(0), self.whole());
        if before == after {
            return cost;
        }
        cost += prices.node * self.inside(after & !before);
        if after == whole {
            let way = if sees { 0.0 } else { prices.way };
            cost += (prices.measure + way) * f64::from(self.around) + prices.node * self.above();
        } else {
            cost += (prices.measure + prices.way) * self.measured(after, before);
        }
        cost
    }
}

/// The time in ns that a rank needs to find what tests of pairs of patches begin with: the boxes
/// around the pieces of each patch, once, and a comparison of them for each pair.
pub fn begin_cost<'a>(
    pairs: impl Iterator<Item = (usize, usize)>,
    reads: impl Fn(usize) -> &'a PatchSizes,
    prices: &Prices,
) -> u64 {
    let (mut patches, mut count) = (BTreeSet::new(), 0);
    for (p, q) in pairs {
        patches.extend([p, q]);
        count += 1;
    }
    let corners: u64 = patches
        .into_iter()
        .map(|patch| reads(patch).corners())
        .sum();
    ns(prices.corner, corners as f64) + ns(prices.begin, f64::from(count))
}

/// The pieces of all patches that a rank has prepared in a step.
#[derive(Debug)]
pub struct PreparedPieces(Mutex<Vec<Option<u64>>>);

impl PreparedPieces {
    /// The state before anything is prepared of this many patches.
    #[must_use]
    pub fn new(patches: usize) -> Self {
        Self(Mutex::new(vec![None; patches]))
    }

    /// Adds pieces of a patch's tree. Returns the pieces that were prepared before, if the patch
    /// was read at all, and those that are now.
    ///
    /// # Panics
    /// There is no such patch.
    pub fn open(&self, patch: usize, pieces: u64) -> (Option<u64>, u64) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = all[patch];
        let after = before.unwrap_or(0) | pieces;
        all[patch] = Some(after);
        (before, after)
    }
}

/// The patches that a rank prepares while messages are under way, before its tests: those that it
/// will read as a whole.
#[derive(Clone, Debug, Default)]
pub struct EarlyPreparation {
    /// The patches.
    pub patches: Vec<usize>,
    /// The time that each takes, in ns; empty unless the machine is modelled.
    pub costs: Vec<u64>,
}

/// Whether ranks prepare anything early. With more ranks nothing is under way in the meantime, and
/// all ranks would wait for the one that prepares most.
#[must_use]
pub fn prepares_early(ranks: usize) -> bool {
    (2..=POSTED_UP_TO).contains(&ranks)
}

impl EarlyPreparation {
    /// Prices the preparation of these patches by a rank; `owns` tells whether it makes a patch's
    /// bounding volume.
    ///
    /// # Panics
    /// There is no such patch.
    #[must_use]
    pub fn new<'a>(
        patches: Vec<usize>,
        owns: impl Fn(usize) -> bool,
        reads: impl Fn(usize) -> &'a PatchSizes,
        prices: &Prices,
    ) -> Self {
        let cost = patches.iter().map(|&patch| {
            let of = reads(patch);
            let cost = of.cost((None, of.whole()), owns(patch), prices);
            ns(1.0, cost)
        });
        Self {
            costs: cost.collect(),
            patches,
        }
    }

    /// Charges the preparation of some of the patches, by their places in the list, to the clock of
    /// the rank. On a machine that is not modelled nothing is charged.
    pub fn charge(&self, comm: &mut dyn Comm, which: Range<usize>) {
        let cost: u64 = self.costs.get(which).unwrap_or_default().iter().sum();
        if cost > 0 {
            comm.compute(cost, Duration::ZERO);
        }
    }

    /// The time of all of it, in ns.
    #[must_use]
    pub fn cost(&self) -> u64 {
        self.costs.iter().sum()
    }

    /// The pieces that are prepared afterwards, of this many patches.
    ///
    /// # Panics
    /// There is no such patch.
    #[must_use]
    pub fn ready<'a>(
        &self,
        patches: usize,
        reads: impl Fn(usize) -> &'a PatchSizes,
    ) -> PreparedPieces {
        let ready = PreparedPieces::new(patches);
        for &patch in &self.patches {
            ready.open(patch, reads(patch).whole());
        }
        ready
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bound_owner::BoundOwners;
    use crate::bound_owner::tests::four_patches;

    /// A patch with four pieces of seven nodes. Sixty of 100 vertices belong to one piece each and
    /// 40 to two.
    fn four_pieces(around: u32) -> PatchSizes {
        let of = |pieces, share: u32| (pieces, around * share / 100);
        PatchSizes {
            around,
            nodes: 31,
            pieces: vec![7; 4],
            vertices: vec![
                of(0b0001, 15),
                of(0b0010, 15),
                of(0b0011, 20),
                of(0b0100, 15),
                of(0b1000, 15),
                of(0b1100, 20),
            ],
        }
    }

    #[test]
    fn piece_by_piece_every_vertex_and_node_costs_once() {
        let reads = four_pieces(100);
        let prices = Prices {
            vertex: 1e9,
            way: 1e6,
            measure: 1e3,
            node: 1.0,
            ..Prices::default()
        };
        let ready = PreparedPieces::new(2);
        let open = |pieces, sees| reads.cost(ready.open(1, pieces), sees, &prices);
        assert_eq!(open(0b0101, false), 70.0 * 1.001e6 + 14.0);
        assert_eq!(open(0b0100, true), 0.0);
        // The vertices between this piece and the first have been prepared.
        assert_eq!(open(0b0111, false), 15.0 * 1.001e6 + 7.0);
        // A rank that has not looked at all vertices at once does so for the whole tree.
        assert_eq!(open(reads.whole(), true), 1e5 + 7.0 + 3.0);
        assert_eq!(open(reads.whole(), false), 0.0);
        let at_once = |sees| reads.cost((None, reads.whole()), sees, &prices);
        assert_eq!([true, false].map(at_once), [1e5 + 31.0, 1e8 + 1e5 + 31.0]);
        assert_eq!(reads.least(reads.whole(), &prices), 1e5 + 28.0);
        assert_eq!(reads.least(0b0001, &prices), 35e3 + 7.0);
    }

    #[test]
    fn a_touched_patch_costs_its_price_once() {
        let reads = four_pieces(100);
        let prices = Prices {
            touched: 1.0,
            ..Prices::default()
        };
        let ready = PreparedPieces::new(1);
        let costs = [0b0001, 0b0011, 0b1111]
            .map(|pieces| reads.cost(ready.open(0, pieces), false, &prices));
        assert_eq!(costs, [100.0, 0.0, 0.0]);
        assert_eq!(reads.least(0b0001, &prices), 100.0);
    }

    #[test]
    fn pieces_and_their_vertices_are_parts_of_a_patch() {
        let reads = four_pieces(100);
        assert!(reads.is_valid());
        assert_eq!(PatchSizes::default().whole(), 0);
        let most = PatchSizes {
            pieces: vec![0; 64],
            ..reads.clone()
        };
        assert_eq!(most.whole(), u64::MAX);
        let bad: [fn(&mut PatchSizes); 4] = [
            |reads| reads.pieces[2] = 20,
            |reads| reads.pieces = vec![0; 65],
            |reads| reads.vertices.push((0b1_0001, 0)),
            |reads| reads.around = 99,
        ];
        for spoil in bad {
            let mut reads = reads.clone();
            spoil(&mut reads);
            assert!(!reads.is_valid());
        }
    }

    #[test]
    fn boxes_are_made_once_for_all_tests_that_begin_with_them() {
        let all = [10, 20, 100].map(four_pieces);
        let prices = Prices {
            corner: 1.0,
            begin: 1000.0,
            ..Prices::default()
        };
        let cost = |pairs: &[(usize, usize)]| {
            begin_cost(pairs.iter().copied(), |patch| &all[patch], &prices)
        };
        assert_eq!(all[2].corners(), 140);
        assert_eq!(cost(&[]), 0);
        assert_eq!(cost(&[(1, 2)]), 1000 + 28 + 140);
        assert_eq!(cost(&[(0, 2), (1, 2)]), 2000 + 12 + 28 + 140);
    }

    /// A piece that was prepared early costs nothing again.
    #[test]
    fn pieces_made_early_need_not_be_made_again() {
        let all = [10, 20, 30].map(four_pieces);
        let prices = Prices {
            way: 100.0,
            measure: 1000.0,
            node: 1.0,
            ..Prices::default()
        };
        let reads = |patch: usize| &all[patch];
        let bound_owners = BoundOwners::new(&four_patches(), None);
        let early = EarlyPreparation::new(
            vec![0, 2],
            |patch| bound_owners.owns(0, patch),
            reads,
            &prices,
        );
        // Another rank owns the bounding volume of the second patch: this one has not looked where
        // its vertices go.
        assert_eq!(early.costs, [10_000 + 31, 33_000 + 31]);
        let ready = early.ready(3, reads);
        let cost = |patch: usize| {
            let of = &all[patch];
            of.cost(ready.open(patch, of.whole()), patch < 2, &prices)
        };
        assert_eq!([0, 1, 2].map(cost), [0.0, 20_031.0, 0.0]);
    }
}
