//! Sums over all patches with the same bits on any number of ranks.
//!
//! A sum over vertices runs within a patch in vertex order and then up the patch tree, left child
//! plus right child. A rank reduces the complete subtrees that its patches make up; the ranks
//! exchange those few partial sums, in rank order, and each finishes the tree alike. The additions
//! are the same, and in the same places, whichever ranks owned the patches.
//!
//! Several sums travel together as `[f64; K]`. Other values are combined in the same places by any
//! function of two, such as hashes by one of both. Not here: how partial sums travel.

use std::ops::Range;

use crate::array_bytes;
use crate::graph::check_length;
use crate::{Ownership, PartitionError};

/// A node of the patch tree with everything below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Subtree {
    /// How far below the root, which is level 0.
    pub level: u32,
    /// The number of the node in that level, from the left.
    pub index: usize,
}

impl Subtree {
    /// The patches below this node in a tree of this many levels.
    #[must_use]
    pub fn patches(self, depth: u32) -> Range<usize> {
        let height = depth - self.level;
        self.index << height..(self.index + 1) << height
    }

    /// The node that holds this one and its sibling.
    fn parent(self) -> Self {
        Self {
            level: self.level - 1,
            index: self.index / 2,
        }
    }

    /// Whether this is a left child and `other` the right child of the same node.
    fn is_left_of(self, other: Self) -> bool {
        self.level == other.level && self.index.is_multiple_of(2) && self.index + 1 == other.index
    }
}

/// How sums are formed for one ownership.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeSum {
    depth: u32,
    first_patch: Vec<usize>,
    /// The complete subtrees of all ranks, from left to right.
    subtrees: Vec<Subtree>,
    /// The starts of those of each rank; one entry more than there are ranks.
    offsets: Vec<usize>,
}

impl TreeSum {
    /// The bytes on the heap that it holds, by the capacities of its arrays.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        let Self {
            first_patch,
            subtrees,
            offsets,
            depth: _,
        } = self;
        array_bytes(first_patch) + array_bytes(subtrees) + array_bytes(offsets)
    }

    /// Finds the complete subtrees that the patches of each rank make up.
    #[must_use]
    pub fn new(ownership: &Ownership) -> Self {
        let depth = ownership.depth();
        let mut subtrees = Vec::new();
        let mut offsets = vec![0];
        let mut first_patch = vec![0];
        for rank in 0..ownership.ranks() {
            subtrees.extend(complete_subtrees(depth, ownership.patches(rank)));
            offsets.push(subtrees.len());
            first_patch.push(ownership.patches(rank).end);
        }
        Self {
            depth,
            first_patch,
            subtrees,
            offsets,
        }
    }

    /// The complete subtrees that a rank's patches make up, from left to right; at most two of a
    /// level.
    ///
    /// # Panics
    /// If there is no such rank.
    #[must_use]
    pub fn subtrees(&self, rank: usize) -> &[Subtree] {
        &self.subtrees[self.offsets[rank]..self.offsets[rank + 1]]
    }

    /// Reduces what a rank owns: `patches` are the sums of its patches, in order; `partials`
    /// becomes the sums of its [`TreeSum::subtrees`].
    ///
    /// # Errors
    /// [`PartitionError::Length`] if there is not one sum for each owned patch,
    /// [`PartitionError::NoSuchRank`].
    pub fn reduce_local<const K: usize>(
        &self,
        rank: usize,
        patches: &[[f64; K]],
        partials: &mut Vec<[f64; K]>,
    ) -> Result<(), PartitionError> {
        let ranks = self.offsets.len() - 1;
        if rank >= ranks {
            return Err(PartitionError::NoSuchRank { rank, ranks });
        }
        let first = self.first_patch[rank];
        check_length(
            "sums of patches",
            self.first_patch[rank + 1] - first,
            patches.len(),
        )?;
        partials.clear();
        for subtree in self.subtrees(rank) {
            let below = subtree.patches(self.depth);
            partials.push(pairwise(&patches[below.start - first..below.end - first]));
        }
        Ok(())
    }

    /// Combines values of a rank's patches, one for each in order, into those of its
    /// [`TreeSum::subtrees`]: left child with right child, as [`Self::reduce_local`] adds.
    ///
    /// # Errors
    /// As [`Self::reduce_local`].
    pub fn combine_local<T: Copy>(
        &self,
        rank: usize,
        patches: &[T],
        combine: &impl Fn(T, T) -> T,
    ) -> Result<Vec<T>, PartitionError> {
        let ranks = self.offsets.len() - 1;
        if rank >= ranks {
            return Err(PartitionError::NoSuchRank { rank, ranks });
        }
        let first = self.first_patch[rank];
        let owned = self.first_patch[rank + 1] - first;
        check_length("values of patches", owned, patches.len())?;
        let subtrees = self.subtrees(rank).iter();
        let values = subtrees.map(|subtree| {
            let below = subtree.patches(self.depth);
            combined(&patches[below.start - first..below.end - first], combine)
        });
        Ok(values.collect())
    }

    /// The value of the whole tree from those of all subtrees, in rank order.
    ///
    /// # Errors
    /// As [`Self::finish`].
    pub fn combine<T: Copy>(
        &self,
        partials: &[T],
        combine: &impl Fn(T, T) -> T,
    ) -> Result<T, PartitionError> {
        let (expected, found) = (self.subtrees.len(), partials.len());
        let wrong = || PartitionError::Length {
            what: "partial values",
            expected,
            found,
        };
        if expected != found {
            return Err(wrong());
        }
        let mut waiting: Vec<(Subtree, T)> = Vec::new();
        for (&subtree, &partial) in self.subtrees.iter().zip(partials) {
            let (mut node, mut value) = (subtree, partial);
            while let Some((_, left)) = waiting.pop_if(|(left, _)| left.is_left_of(node)) {
                value = combine(left, value);
                node = node.parent();
            }
            waiting.push((node, value));
        }
        waiting.first().map(|(_, value)| *value).ok_or_else(wrong)
    }

    /// The sum over all patches from the partial sums of all ranks, in rank order.
    ///
    /// # Errors
    /// [`PartitionError::Length`] if there is not one partial sum for each subtree.
    pub fn finish<const K: usize>(
        &self,
        partials: &[[f64; K]],
    ) -> Result<[f64; K], PartitionError> {
        check_length("partial sums", self.subtrees.len(), partials.len())?;
        // Sums that still wait for their right sibling; their levels increase, so the depth bounds
        // them.
        let mut waiting = [(ROOT, [0.0; K]); MAX_DEPTH + 1];
        let mut top = 0;
        for (&subtree, &partial) in self.subtrees.iter().zip(partials) {
            let (mut node, mut sum) = (subtree, partial);
            while top > 0 && waiting[top - 1].0.is_left_of(node) {
                top -= 1;
                sum = add(waiting[top].1, sum);
                node = node.parent();
            }
            waiting[top] = (node, sum);
            top += 1;
        }
        Ok(waiting[0].1)
    }
}

/// The sum of a complete tree, given its leaves: left half plus right half, all the way down.
///
/// This is the reference: [`TreeSum::finish`] has its bits for every ownership.
///
/// # Panics
/// If the number of leaves is not a power of two.
#[must_use]
pub(crate) fn pairwise<const K: usize>(leaves: &[[f64; K]]) -> [f64; K] {
    assert!(
        leaves.len().is_power_of_two(),
        "a complete tree has 2^m leaves, not {}",
        leaves.len()
    );
    match leaves {
        [leaf] => *leaf,
        _ => {
            let (left, right) = leaves.split_at(leaves.len() / 2);
            add(pairwise(left), pairwise(right))
        }
    }
}

/// The value of a complete tree, given those of its leaves.
fn combined<T: Copy>(leaves: &[T], combine: &impl Fn(T, T) -> T) -> T {
    match leaves {
        [leaf] => *leaf,
        _ => {
            let (left, right) = leaves.split_at(leaves.len() / 2);
            combine(combined(left, combine), combined(right, combine))
        }
    }
}

fn add<const K: usize>(left: [f64; K], right: [f64; K]) -> [f64; K] {
    std::array::from_fn(|k| left[k] + right[k])
}

/// Covers a range of patches with the fewest nodes, from left to right.
fn complete_subtrees(depth: u32, patches: Range<usize>) -> Vec<Subtree> {
    let mut subtrees = Vec::new();
    let mut next = patches.start;
    while next < patches.end {
        // The largest node that starts here and does not reach beyond the range.
        let aligned = if next == 0 {
            depth
        } else {
            next.trailing_zeros().min(depth)
        };
        let height = aligned.min((patches.end - next).ilog2());
        subtrees.push(Subtree {
            level: depth - height,
            index: next >> height,
        });
        next += 1 << height;
    }
    subtrees
}

const ROOT: Subtree = Subtree { level: 0, index: 0 };

/// The depth that no tree exceeds: it would need 2^32 vertices.
const MAX_DEPTH: usize = 32;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ownership::tests::tree_of;

    fn summed_by_ranks<const K: usize>(ownership: &Ownership, leaves: &[[f64; K]]) -> [f64; K] {
        let sum = TreeSum::new(ownership);
        let mut all = Vec::new();
        for rank in 0..ownership.ranks() {
            let mut partials = Vec::new();
            sum.reduce_local(rank, &leaves[ownership.patches(rank)], &mut partials)
                .unwrap();
            assert_eq!(partials.len(), sum.subtrees(rank).len());
            all.extend(partials);
        }
        sum.finish(&all).unwrap()
    }

    #[test]
    fn a_range_is_covered_by_the_fewest_complete_subtrees() {
        let node = |level, index| Subtree { level, index };
        assert_eq!(complete_subtrees(3, 0..8), [node(0, 0)]);
        assert_eq!(
            complete_subtrees(3, 1..7),
            [node(3, 1), node(2, 1), node(2, 2), node(3, 6)]
        );
        assert_eq!(complete_subtrees(3, 4..8), [node(1, 1)]);
        assert_eq!(complete_subtrees(0, 0..1), [node(0, 0)]);
    }

    #[test]
    fn order_of_addition_is_the_trees() {
        // Left to right these would add up to 1: the tree adds 1 to -1e17 first, where it is lost.
        let leaves = [[1e17], [0.0], [1.0], [-1e17]];
        assert_eq!(pairwise(&leaves), [0.0]);
        let tree = tree_of(&[1; 4]);
        for cuts in [
            vec![0, 4],
            vec![0, 1, 4],
            vec![0, 3, 4],
            vec![0, 1, 2, 3, 4],
        ] {
            let ownership = Ownership::from_first_patches(&tree, cuts).unwrap();
            assert_eq!(summed_by_ranks(&ownership, &leaves), [0.0]);
        }
    }

    #[test]
    fn missing_sums_are_refused() {
        let tree = tree_of(&[1; 4]);
        let sum = TreeSum::new(&Ownership::new(&tree, 3).unwrap());
        assert!(sum.reduce_local(0, &[[1.0]; 4], &mut Vec::new()).is_err());
        assert!(sum.reduce_local(3, &[[1.0]; 1], &mut Vec::new()).is_err());
        assert!(sum.finish(&[[1.0]; 1]).is_err());
        let add = |left: u32, right: u32| left + right;
        assert!(sum.combine_local(0, &[1; 4], &add).is_err());
        assert!(sum.combine_local(3, &[1; 1], &add).is_err());
        assert!(sum.combine(&[1; 1], &add).is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        /// The heart of the promise: who owns a patch does not show in a sum, to the last bit.
        #[test]
        fn any_contiguous_ownership_gives_the_bits_of_the_serial_tree(
            depth in 0_u32..8,
            values in prop::collection::vec((-1.0_f64..1.0, -40_i32..40, any::<f64>()), 128),
            cuts in prop::collection::btree_set(1_usize..128, 0..20),
        ) {
            let leaves: Vec<[f64; 2]> = values[..1 << depth]
                .iter()
                .map(|&(mantissa, exponent, wild)| [mantissa * 2.0_f64.powi(exponent), wild])
                .collect();
            let tree = tree_of(&vec![1; leaves.len()]);
            let mut first_patch = vec![0];
            first_patch.extend(cuts.into_iter().filter(|&cut| cut < leaves.len()));
            first_patch.push(leaves.len());
            let ownership = Ownership::from_first_patches(&tree, first_patch).unwrap();
            let serial = pairwise(&leaves);
            prop_assert_eq!(summed_by_ranks(&ownership, &leaves).map(f64::to_bits), serial.map(f64::to_bits));
            // Any function of two values, as of hashes, is used in the same places.
            let numbers: Vec<u64> = leaves.iter().map(|[_, wild]| wild.to_bits()).collect();
            let mix = |left: u64, right: u64| left.rotate_left(5).wrapping_mul(31) ^ right;
            let tree = TreeSum::new(&ownership);
            let mut partials = Vec::new();
            for rank in 0..ownership.ranks() {
                let own = &numbers[ownership.patches(rank)];
                partials.extend(tree.combine_local(rank, own, &mix).unwrap());
            }
            prop_assert_eq!(tree.combine(&partials, &mix).unwrap(), combined(&numbers, &mix));
        }

        #[test]
        fn every_rank_count_gives_the_bits_of_the_serial_tree(
            weights in prop::collection::vec(1_u32..9, 32),
            values in prop::collection::vec(-1e3_f64..1e3, 32),
        ) {
            let tree = tree_of(&weights);
            let leaves: Vec<[f64; 1]> = values.into_iter().map(|value| [value]).collect();
            let serial = pairwise(&leaves)[0].to_bits();
            for ranks in 1..=32 {
                let ownership = Ownership::new(&tree, ranks).unwrap();
                prop_assert_eq!(summed_by_ranks(&ownership, &leaves)[0].to_bits(), serial);
            }
        }
    }
}
