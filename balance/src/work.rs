//! The unit in which forecasts count, and what takes how much of it.

use std::ops::Range;

use crate::cost::{Against, TestCost};
use crate::prices::Counts;
use crate::separation::{SeparationWork, separation_shares};

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
pub fn separation_work(triangles: &[u32], ranks: usize) -> Vec<u64> {
    /// For each triangle its gradients, and for each tile its firmness.
    const TRIANGLE: u64 = 8;
    const TILE: u64 = 900;
    let share = |tiles: Range<usize>| {
        let work = SeparationWork::of(&triangles[tiles]);
        TRIANGLE * work.triangles + TILE * work.tiles
    };
    let shares = separation_shares(triangles, ranks);
    shares.into_iter().map(share).collect()
}

/// What a rank has made ready of a patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Prepared {
    Nothing,
    /// The pieces of its tree that tests with some other patches look at.
    Some,
    /// All that there is.
    Whole,
}

/// What it costs to make a patch ready in the unit of [`work`]: with what one [has](Prepared), for a test with another patch and for one that reads all of it.
pub(crate) type PreparationCosts = [[u64; 2]; 3];

impl Prepared {
    /// Tenths for each node: of all; of the boxes around pieces of the tree; of what a test with another patch looks into, and of finding that.
    const TENTHS: [u64; 3] = [59, 6, 13];

    /// What it costs if the patch's tree has so many nodes. Before a test with another patch it had all that those before it looked at.
    pub(crate) fn costs(nodes: u32) -> PreparationCosts {
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
pub(crate) struct Preparation<'a> {
    /// Nodes of each patch's tree.
    nodes: &'a [u32],
    /// Of each patch whether all of it is read, and how many tests it has with others.
    read: Vec<(bool, u64)>,
    /// The patches of which there is something.
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

    /// For a test.
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

    /// What all of it costs; for the next rank nothing is ready.
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
    fn what_is_ready_costs_nothing_again() {
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
