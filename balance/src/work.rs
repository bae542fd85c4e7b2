//! The unit in which costs are forecast, and the amount of it that each kind of work takes.

use std::ops::Range;

use crate::cost::{Against, TestCost};
use crate::prices::Counts;
use crate::separation::{SeparationWork, separation_shares};

/// The cost of tests, by how many of each kind were made: in tenths of a test of two volumes of
/// cloth. The factors are about the means of the prices in seven records of the first scene of the
/// 2006 paper. Machines differ in which kind costs how much more than another; forecasts made of
/// exact times are no better.
#[must_use]
pub fn work(against: Against, counts: &Counts) -> u64 {
    let [volumes, leaf, near, contact] = match against {
        Against::Itself | Against::Patch(_) => [10, 28, 18, 1],
        Against::Body(_) => [7, 16, 0, 54],
    };
    volumes * counts.volumes + leaf * counts.leaves + near * counts.near + contact * counts.contacts
}

/// The work of each rank before its tests, in the unit of [`work`]: the separation bounds of its
/// share of the tiles. `triangles` has the number of triangles of each tile.
#[must_use]
pub fn separation_work(triangles: &[u32], ranks: usize) -> Vec<u64> {
    /// Each triangle takes the gradients of its motion, and each tile its separation bound.
    const TRIANGLE: u64 = 8;
    const TILE: u64 = 900;
    let share = |tiles: Range<usize>| {
        let work = SeparationWork::of(&triangles[tiles]);
        TRIANGLE * work.triangles + TILE * work.tiles
    };
    let shares = separation_shares(triangles, ranks);
    shares.into_iter().map(share).collect()
}

/// How much of a patch a rank has prepared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Prepared {
    Nothing,
    /// The pieces of its tree that some tests with other patches look into.
    Some,
    /// All of its tree.
    Whole,
}

/// The cost of preparing a patch, in the unit of [`work`]: by what the rank has [`Prepared`]
/// before, and by whether the test is with another patch (0) or reads all of the patch (1).
pub(crate) type PreparationCosts = [[u64; 2]; 3];

impl Prepared {
    /// Tenths of the unit for each node of the tree: for preparing all of it, for the boxes around
    /// its pieces, and for what one test with another patch looks into.
    const TENTHS: [u64; 3] = [59, 6, 13];

    /// The costs for a tree with this many nodes. It is assumed that tests with other patches look
    /// into different pieces, so that each of them prepares more.
    pub(crate) fn costs(nodes: u32) -> PreparationCosts {
        let [whole, first, pair] = Self::TENTHS;
        let all = [[first + pair, whole], [pair, whole - first - pair], [0, 0]];
        all.map(|costs| costs.map(|tenths| tenths * u64::from(nodes) / 10))
    }

    /// The cost of preparing a patch for this many tests with other patches, and all of it if some
    /// test reads that.
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

/// The patches that a rank prepares for its tests, one test after the other.
pub(crate) struct Preparation<'a> {
    /// The number of nodes of each patch's tree.
    nodes: &'a [u32],
    /// A flag for each patch that says whether a test reads all of it, and the number of tests with
    /// other patches.
    read: Vec<(bool, u64)>,
    /// The patches that some test reads.
    touched: Vec<u32>,
}

impl<'a> Preparation<'a> {
    pub(crate) fn new(nodes: &'a [u32]) -> Self {
        Self {
            nodes,
            read: vec![(false, 0); nodes.len()],
            touched: Vec::new(),
        }
    }

    /// Adds the patches that a test reads.
    pub(crate) fn add(&mut self, test: &TestCost) {
        for patch in [Some(test.patch), test.other()].into_iter().flatten() {
            if let Some((whole, pairs)) = self.read.get_mut(patch as usize) {
                if !*whole && *pairs == 0 {
                    self.touched.push(patch);
                }
                match test.other() {
                    None => *whole = true,
                    Some(_) => *pairs += 1,
                }
            }
        }
    }

    /// Returns the cost of all that was added, and begins anew for the next rank.
    pub(crate) fn take(&mut self) -> u64 {
        let Self {
            nodes,
            read,
            touched,
        } = self;
        let made = |patch: u32| {
            let patch = patch as usize;
            Prepared::made(nodes[patch], std::mem::take(&mut read[patch]))
        };
        touched.drain(..).map(made).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_that_are_ready_cost_nothing_again() {
        let costs = Prepared::costs(1_000);
        let made = |tests: &[bool]| {
            let add = |(had, sum): (usize, u64), &whole: &bool| {
                let has = had.max(if whole {
                    Prepared::Whole as usize
                } else {
                    Prepared::Some as usize
                });
                (has, sum + costs[had][usize::from(whole)])
            };
            tests.iter().fold((Prepared::Nothing as usize, 0), add)
        };
        let (whole, all) = made(&[true]);
        assert_eq!(made(&[true, false, true, false]), (whole, all));
        assert_eq!(made(&[false, true]), (whole, all));
        let (some, one) = made(&[false]);
        assert_eq!(some, Prepared::Some as usize);
        let (_, two) = made(&[false, false]);
        assert!(one < two && two - one < one && two < all);
        for pairs in 0..3 {
            assert_eq!(Prepared::made(1_000, (true, pairs as u64)), all);
            let (_, sum) = made(&vec![false; pairs]);
            assert_eq!(Prepared::made(1_000, (false, pairs as u64)), sum);
        }
    }
}
