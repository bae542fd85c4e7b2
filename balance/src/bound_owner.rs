//! The owner of each patch's bounding volume in a step.
//!
//! One rank looks where the vertices of a patch go in the step, and makes the volume around them
//! for all ranks.

use weft_partition::Ownership;

use crate::assignment::Assignment;

/// The ranks that make the bounding volumes of patches. Before the first assignment that is the
/// owner of the patch; with an assignment it is a rank that reads the whole patch for its tests
/// anyway, if there is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoundOwners {
    /// The rank of each patch.
    of: Vec<u32>,
    /// The patches by rank, ascending for each, and where those of each rank begin.
    patches: Vec<usize>,
    begins: Vec<usize>,
}

impl BoundOwners {
    /// Finds the bound owners under an assignment, if there is one.
    #[must_use]
    pub fn new(ownership: &Ownership, assignment: Option<&Assignment>) -> Self {
        let ranks = ownership.ranks();
        let patches = ownership.patches(ranks - 1).end;
        let assigned = |patch: usize| assignment?.tests_whole_first(patch as u32);
        let owner =
            |patch: usize| assigned(patch).unwrap_or_else(|| ownership.rank_of_patch(patch)) as u32;
        let of: Vec<u32> = (0..patches).map(owner).collect();
        let mut patches: Vec<usize> = (0..patches).collect();
        patches.sort_by_key(|&patch| of[patch]);
        let begin = |rank: usize| patches.partition_point(|&patch| (of[patch] as usize) < rank);
        Self {
            begins: (0..=ranks).map(begin).collect(),
            of,
            patches,
        }
    }

    /// The patches whose bounding volumes a rank makes, ascending.
    ///
    /// # Panics
    /// There is no such rank.
    #[must_use]
    pub fn patches(&self, rank: usize) -> &[usize] {
        &self.patches[self.begins[rank]..self.begins[rank + 1]]
    }

    /// Whether a rank makes the bounding volume of a patch.
    ///
    /// # Panics
    /// There is no such patch.
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

    /// The ownership of four patches of one vertex each, by two ranks.
    pub(crate) fn four_patches() -> Ownership {
        let tree = PatchTree::from_numbering((0..4).collect(), &[1; 4], vec![1; 4]).unwrap();
        let ownership = Ownership::new(&tree, 2).unwrap();
        assert_eq!(ownership.patches(0), 0..2);
        ownership
    }

    #[test]
    fn a_patch_is_seen_by_one_rank_that_tests_it_whole_or_by_its_owner() {
        let ownership = four_patches();
        let seen = |assignment: Option<&Assignment>| {
            let bound_owners = BoundOwners::new(&ownership, assignment);
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
        // No test is known that reads all of the last two patches.
        let assignment = Forecast::from_tests(&tests).assigned(&[0; 4], &[0; 2]);
        assert_eq!(assignment.tests_whole_first(1), Some(1));
        assert_eq!(assignment.tests_whole_first(2), None);
        assert_eq!(seen(Some(&assignment)), [vec![0], vec![1, 2, 3]]);
    }
}
