//! The ownership of patches: which rank owns which.
//!
//! In: the weights of the patches and a number of ranks. Out: a contiguous range of patches for
//! each rank, of about equal weight; whole subtrees when the number of ranks is a power of two.
//!
//! Ownership decides where something is computed, never what: see [`crate::tree_sum`].

use std::ops::Range;

use crate::array_bytes;
use crate::{PartitionError, PatchTree};

/// Contiguous ranges of patches, one for each rank, none of them empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ownership {
    depth: u32,
    /// The starts of the patches of each rank; one entry more than there are ranks.
    first_patch: Vec<usize>,
    /// The starts of the vertices of each rank, in the numbering of the tree.
    first_vertex: Vec<usize>,
}

impl Ownership {
    /// The bytes on the heap that it holds, by the capacities of its arrays.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        let Self {
            first_patch,
            first_vertex,
            depth: _,
        } = self;
        array_bytes(first_patch) + array_bytes(first_vertex)
    }

    /// Shares the patches of a tree among ranks.
    ///
    /// # Errors
    /// [`PartitionError::TooFewPatches`] if a rank would own nothing, [`PartitionError::NoRanks`]
    /// for none.
    pub fn new(tree: &PatchTree, ranks: usize) -> Result<Self, PartitionError> {
        let patches = tree.patch_count();
        if ranks > patches {
            return Err(PartitionError::TooFewPatches { ranks, patches });
        }
        let first_patch = if ranks == 0 {
            return Err(PartitionError::NoRanks);
        } else if ranks.is_power_of_two() {
            (0..=ranks).map(|rank| rank * (patches / ranks)).collect()
        } else {
            balanced(tree, ranks)
        };
        Self::from_first_patches(tree, first_patch)
    }

    /// Shares the patches as the caller decides: rank r owns `first_patch[r]..first_patch[r + 1]`.
    ///
    /// # Errors
    /// [`PartitionError::NoRanks`] for fewer than two entries, [`PartitionError::TooFewPatches`] if
    /// a range is empty or runs backwards, [`PartitionError::Length`] if they do not cover the
    /// patches from 0 to the last.
    pub(crate) fn from_first_patches(
        tree: &PatchTree,
        first_patch: Vec<usize>,
    ) -> Result<Self, PartitionError> {
        let patches = tree.patch_count();
        let (Some(&first), Some(&last)) = (first_patch.first(), first_patch.last()) else {
            return Err(PartitionError::NoRanks);
        };
        let ranks = first_patch.len() - 1;
        if ranks == 0 {
            return Err(PartitionError::NoRanks);
        }
        if first != 0 || last != patches {
            let found = last.saturating_sub(first);
            return Err(PartitionError::Length {
                what: "owned patches",
                expected: patches,
                found,
            });
        }
        if first_patch.windows(2).any(|w| w[0] >= w[1]) {
            return Err(PartitionError::TooFewPatches { ranks, patches });
        }
        let first_vertex = first_patch
            .iter()
            .map(|&patch| {
                if patch < patches {
                    tree.patch_vertices(patch).start
                } else {
                    tree.vertex_count()
                }
            })
            .collect();
        Ok(Self {
            depth: tree.depth(),
            first_patch,
            first_vertex,
        })
    }

    /// How many ranks there are, at least one.
    #[must_use]
    pub fn ranks(&self) -> usize {
        self.first_patch.len() - 1
    }

    /// How many patches they own together.
    #[must_use]
    pub fn patch_count(&self) -> usize {
        1 << self.depth
    }

    /// Levels of the patch tree below its root.
    #[must_use]
    pub fn depth(&self) -> u32 {
        self.depth
    }

    /// The patches of a rank, at least one.
    ///
    /// # Panics
    /// If there is no such rank.
    #[must_use]
    pub fn patches(&self, rank: usize) -> Range<usize> {
        self.first_patch[rank]..self.first_patch[rank + 1]
    }

    /// The vertices of a rank, in the numbering of the tree.
    ///
    /// # Panics
    /// If there is no such rank.
    #[must_use]
    pub fn vertices(&self, rank: usize) -> Range<usize> {
        self.first_vertex[rank]..self.first_vertex[rank + 1]
    }

    /// The rank that owns a patch. Patches beyond the last count as the last rank's.
    #[must_use]
    pub fn rank_of_patch(&self, patch: usize) -> usize {
        owner(&self.first_patch, patch)
    }

    /// The one of two patches whose owner does what concerns both: either in turn.
    #[must_use]
    pub fn patch_of_pair(low: usize, high: usize) -> usize {
        if (low + high).is_multiple_of(2) {
            low
        } else {
            high
        }
    }

    /// The number of patches whose pair with a patch has that one as its
    /// [home](Self::patch_of_pair), among this many pairs.
    ///
    /// # Panics
    /// There is no such patch.
    #[must_use]
    pub fn pairs_at(patch: usize, patches: usize) -> usize {
        assert!(patch < patches, "patch {patch} of {patches}");
        // Every second one of those with higher numbers, and of those with lower ones.
        (patches - 1 - patch) / 2 + patch.div_ceil(2)
    }

    /// The rank at which what concerns two patches is done.
    #[must_use]
    pub fn rank_of_pair(&self, low: usize, high: usize) -> usize {
        self.rank_of_patch(Self::patch_of_pair(low, high))
    }

    /// The rank that owns a vertex, given in the numbering of the tree. Vertices beyond the last
    /// count as the last rank's.
    #[must_use]
    pub fn rank_of_vertex(&self, vertex: usize) -> usize {
        owner(&self.first_vertex, vertex)
    }
}

/// Cuts where the weight before the cut is nearest to the rank's fair share, with a patch left for
/// each rank.
fn balanced(tree: &PatchTree, ranks: usize) -> Vec<usize> {
    let patches = tree.patch_count();
    let mut before = vec![0_u128];
    for patch in 0..patches {
        before.push(before[patch] + u128::from(tree.patch_weight(patch)));
    }
    let total = before[patches];
    let mut first_patch = vec![0];
    for rank in 1..ranks {
        // off = |before - total rank / ranks|, times ranks
        let off = |cut: &usize| (before[*cut] * ranks as u128).abs_diff(total * rank as u128);
        let lowest = first_patch[rank - 1] + 1;
        let highest = patches - (ranks - rank);
        first_patch.push((lowest..=highest).min_by_key(off).unwrap_or(lowest));
    }
    first_patch.push(patches);
    first_patch
}

fn owner(starts: &[usize], at: usize) -> usize {
    let inner = &starts[1..starts.len() - 1];
    inner.partition_point(|&start| start <= at)
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A tree with one vertex for each unit of weight.
    pub(crate) fn tree_of(weights: &[u32]) -> PatchTree {
        let vertices: u32 = weights.iter().sum();
        let weights64 = weights.iter().map(|&weight| u64::from(weight)).collect();
        PatchTree::from_numbering((0..vertices).collect(), weights, weights64).unwrap()
    }

    #[test]
    fn every_pair_of_patches_is_counted_at_its_home() {
        for patches in 1..20 {
            for patch in 0..patches {
                let pairs = (0..patches).filter(|&other| other != patch);
                let home =
                    |other: usize| Ownership::patch_of_pair(patch.min(other), patch.max(other));
                let counted = pairs.filter(|&other| home(other) == patch).count();
                assert_eq!(Ownership::pairs_at(patch, patches), counted);
            }
        }
    }

    #[test]
    fn powers_of_two_own_whole_subtrees() {
        let tree = tree_of(&[1, 1, 1, 1, 9, 9, 9, 9]);
        let ownership = Ownership::new(&tree, 4).unwrap();
        let owned: Vec<_> = (0..4).map(|rank| ownership.patches(rank)).collect();
        assert_eq!(owned, [0..2, 2..4, 4..6, 6..8]);
    }

    #[test]
    fn pairs_of_patches_go_to_either_owner_in_turn() {
        let ownership = Ownership::new(&tree_of(&[1; 4]), 4).unwrap();
        let homes: Vec<_> = (1..4)
            .map(|other| ownership.rank_of_pair(0, other))
            .collect();
        assert_eq!(homes, [1, 0, 3]);
    }

    #[test]
    fn other_counts_are_balanced_by_weight() {
        let tree = tree_of(&[4, 4, 4, 4, 1, 1, 1, 5]);
        let ownership = Ownership::new(&tree, 3).unwrap();
        let owned: Vec<_> = (0..3).map(|rank| ownership.patches(rank)).collect();
        assert_eq!(owned, [0..2, 2..4, 4..8]);
    }

    #[test]
    fn more_ranks_than_patches_are_refused() {
        let tree = tree_of(&[1, 1]);
        assert_eq!(
            Ownership::new(&tree, 3),
            Err(PartitionError::TooFewPatches {
                ranks: 3,
                patches: 2
            })
        );
        assert_eq!(Ownership::new(&tree, 0), Err(PartitionError::NoRanks));
        for cuts in [
            vec![],
            vec![0],
            vec![0, 0, 2],
            vec![0, 3, 2],
            vec![1, 2],
            vec![0, 1],
        ] {
            assert!(
                Ownership::from_first_patches(&tree, cuts.clone()).is_err(),
                "{cuts:?}"
            );
        }
    }

    proptest! {
        #[test]
        fn every_patch_and_vertex_has_one_owner(
            depth in 0_u32..7,
            weights in prop::collection::vec(1_u32..30, 64),
            ranks in 1_usize..65,
        ) {
            let tree = tree_of(&weights[..1 << depth]);
            let ranks = ranks.min(tree.patch_count());
            let ownership = Ownership::new(&tree, ranks).unwrap();
            let (mut patch, mut vertex) = (0, 0);
            for rank in 0..ranks {
                prop_assert!(!ownership.patches(rank).is_empty());
                prop_assert_eq!(ownership.patches(rank).start, patch);
                prop_assert_eq!(ownership.vertices(rank).start, vertex);
                for owned in ownership.patches(rank) {
                    prop_assert_eq!(ownership.rank_of_patch(owned), rank);
                    for inside in tree.patch_vertices(owned) {
                        prop_assert_eq!(ownership.rank_of_vertex(inside), rank);
                    }
                }
                patch = ownership.patches(rank).end;
                vertex = ownership.vertices(rank).end;
            }
            prop_assert_eq!(patch, tree.patch_count());
            prop_assert_eq!(vertex, tree.vertex_count());
        }

        #[test]
        fn no_rank_is_further_from_its_share_than_a_heaviest_patch(
            weights in prop::collection::vec(1_u32..30, 64),
            ranks in 1_usize..20,
        ) {
            prop_assume!(!ranks.is_power_of_two());
            let tree = tree_of(&weights);
            let ownership = Ownership::new(&tree, ranks).unwrap();
            let share = tree.vertex_count() as f64 / ranks as f64;
            let heaviest = f64::from(*weights.iter().max().unwrap());
            for rank in 0..ranks {
                let weight = ownership.vertices(rank).len() as f64;
                prop_assert!((weight - share).abs() <= heaviest, "rank {} has {}", rank, weight);
            }
        }
    }
}
