//! Who makes the volume around each patch for all ranks.

use weft_partition::Ownership;

use crate::assignment::Assignment;

/// Who looks first where the vertices of each patch go, and makes the volume around it for all: as long as nobody knows better its owner, and
/// with a plan of who makes which tests a rank that looks there anyway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoundOwners {
    /// Of each patch.
    of: Vec<u32>,
    /// All patches, those of the first rank first, ascending; and where those of each rank begin.
    patches: Vec<usize>,
    begins: Vec<usize>,
}

impl BoundOwners {
    /// Under a plan, if there is one.
    #[must_use]
    pub fn new(ownership: &Ownership, plan: Option<&Assignment>) -> Self {
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
    pub fn owns(&self, rank: usize, patch: usize) -> bool {
        self.of[patch] as usize == rank
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use weft_partition::PatchTree;

    use super::*;
    use crate::cost::{Against, TestCost};
    use crate::forecast::Forecast;

    /// Four patches of one vertex each, two of each of two ranks.
    pub(crate) fn four_patches() -> Ownership {
        let tree = PatchTree::from_numbering((0..4).collect(), &[1; 4], vec![1; 4]).unwrap();
        let ownership = Ownership::new(&tree, 2).unwrap();
        assert_eq!(ownership.patches(0), 0..2);
        ownership
    }

    #[test]
    fn a_patch_is_seen_by_one_rank_that_tests_it_whole_or_by_its_owner() {
        let ownership = four_patches();
        let seen = |plan: Option<&Assignment>| {
            let bound_owners = BoundOwners::new(&ownership, plan);
            for patch in 0..4 {
                let by = [0, 1].map(|rank| bound_owners.owns(rank, patch));
                assert_eq!(
                    by,
                    [0, 1].map(|rank| bound_owners.patches(rank).contains(&patch))
                );
                assert!(by[0] != by[1]);
            }
            [0, 1].map(|rank| bound_owners.patches(rank).to_vec())
        };
        assert_eq!(seen(None), [vec![0, 1], vec![2, 3]]);
        let tests = [
            (0, Against::Itself, 100_000),
            (1, Against::Patch(2), 10_000),
            (1, Against::Body(0), 90_000),
        ];
        let tests = tests.map(|(patch, against, work)| TestCost {
            patch,
            against,
            work,
        });
        // Of the last two nobody knows what reads all of them.
        let plan = Forecast::from_tests(&tests).assigned(&[0; 4], &[0; 2]);
        assert_eq!(plan.tests_whole_first(1), Some(1));
        assert_eq!(plan.tests_whole_first(2), None);
        assert_eq!(seen(Some(&plan)), [vec![0], vec![1, 2, 3]]);
    }
}
