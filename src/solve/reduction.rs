//! Sums over all vertices, added in an order that neither ranks nor time change.
//!
//! Within a patch [`dot`] adds in vertex order, in a fixed number of lanes; patches are added up
//! the patch tree ([`TreeSum`]). Each rank reduces the subtrees it owns, one allgather carries the
//! few partial sums to everybody, and every rank finishes the tree, so that all of them hold the
//! same bits. Several sums share one round, and other numbers that all ranks need may travel with
//! them.

use std::ops::Range;

use glam::DVec3;
use weft_partition::{Ownership, PatchTree, TreeSum};
use weft_runtime::comm::{Collectives, Comm, CommError};

use crate::heap_bytes::counts_heap;
use crate::simd::{Kernel, Lanes, widest};
use crate::team::{Shares, Team, parts};

/// One rank's end of the sums.
#[derive(Clone, Debug)]
pub struct Reduction {
    rank: usize,
    sum: TreeSum,
    /// Owned vertices of each owned patch, counted from the first owned vertex.
    patches: Vec<Range<usize>>,
    /// The patches that each thread of the rank adds up.
    shares: Shares,
    subtree_counts: Vec<usize>,
    /// Whether sums go up the tree; otherwise each rank adds up its own, and then those of all
    /// ranks.
    is_ordered: bool,
}

counts_heap!(Reduction: sum, patches, shares, subtree_counts; without rank, is_ordered);

impl Reduction {
    /// The sums of `rank`.
    ///
    /// # Panics
    /// If `ownership` has no such rank, or is of another tree.
    #[must_use]
    pub fn new(tree: &PatchTree, ownership: &Ownership, rank: usize) -> Self {
        let sum = TreeSum::new(ownership);
        let first = ownership.vertices(rank).start;
        let local = |vertices: Range<usize>| vertices.start - first..vertices.end - first;
        let patches: Vec<_> = (ownership.patches(rank))
            .map(|p| local(tree.patch_vertices(p)))
            .collect();
        Self {
            rank,
            shares: Team::default().cut(&patches),
            patches,
            subtree_counts: (0..ownership.ranks())
                .map(|r| sum.subtrees(r).len())
                .collect(),
            sum,
            is_ordered: true,
        }
    }

    /// From now on adds as it is cheapest: each rank adds up what it owns, and then come the ranks.
    /// The bits depend on the number of ranks. To measure what the order costs.
    pub(crate) fn forget_order(&mut self) {
        self.is_ordered = false;
        self.subtree_counts.fill(1);
    }

    /// The sums with the patches of the rank shared by a team.
    #[must_use]
    pub(crate) fn with_team(mut self, team: &Team) -> Self {
        self.shares = team.cut(&self.patches);
        self
    }

    /// The share of each thread of the rank in a sum: patches by their place among those owned, and
    /// their vertices.
    #[must_use]
    pub fn shares(&self) -> &Shares {
        &self.shares
    }

    /// The vertices of each owned patch, as ranges of a vector of owned vertices.
    #[must_use]
    pub fn patches(&self) -> &[Range<usize>] {
        &self.patches
    }

    /// Adds up K numbers of every patch over all patches. Collective; every rank gets the same
    /// bits.
    ///
    /// `of_patch` is called once for each owned patch, with its vertices.
    ///
    /// # Errors
    /// The job was ended, or a rank sent another number of partial sums than its patches make
    /// ([`CommError::Malformed`], naming it).
    pub fn sum<const K: usize>(
        &self,
        comm: &mut dyn Comm,
        of_patch: impl Fn(Range<usize>) -> [f64; K] + Sync,
    ) -> Result<[f64; K], CommError> {
        self.sum_leaves(comm, None, &self.leaves(of_patch))
    }

    /// K numbers of every owned patch, from its vertices.
    pub(super) fn leaves<const K: usize>(
        &self,
        of_patch: impl Fn(Range<usize>) -> [f64; K] + Sync,
    ) -> Vec<[f64; K]> {
        let mut leaves = vec![[0.0; K]; self.patches.len()];
        let work = parts(&mut leaves, &self.shares.ranges).zip(&self.shares.ranges);
        self.shares.run(work, |(leaves, share)| {
            for (leaf, patch) in leaves.iter_mut().zip(&self.patches[share.clone()]) {
                *leaf = of_patch(patch.clone());
            }
        });
        leaves
    }

    /// [`Reduction::sum`] of numbers that are known for each owned patch, with other numbers in the
    /// same round.
    pub(super) fn sum_leaves<const K: usize>(
        &self,
        comm: &mut dyn Comm,
        mut carried: Option<Carried<'_>>,
        leaves: &[[f64; K]],
    ) -> Result<[f64; K], CommError> {
        let mut own = Vec::new();
        if self.is_ordered {
            self.sum
                .reduce_local(self.rank, leaves, &mut own)
                .expect("there is one sum for each owned patch");
        } else {
            own.push(added(leaves));
        }
        if comm.size() > 1 {
            let others = carried.as_ref().map(|carried| carried.lengths);
            let others = |rank: usize| others.map_or(0, |lengths| lengths[rank]);
            let sums = |count: usize| count * size_of::<[f64; K]>();
            let lengths: Vec<usize> = (self.subtree_counts.iter().enumerate())
                .map(|(rank, &count)| sums(count) + others(rank))
                .collect();
            let mut all = vec![0; lengths.iter().sum()];
            let before: usize = lengths[..self.rank].iter().sum();
            let (room, behind) = all[before..].split_at_mut(sums(own.len()));
            room.copy_from_slice(bytemuck::cast_slice(own.as_flattened()));
            if let Some(carried) = &carried {
                behind[..carried.own.len()].copy_from_slice(carried.own);
            }
            comm.allgather_into(&lengths, &mut all)?;
            own.clear();
            let mut rest = &all[..];
            for (rank, &count) in self.subtree_counts.iter().enumerate() {
                let (theirs, behind) = rest.split_at(sums(count));
                let theirs = theirs.chunks_exact(sums(1));
                own.extend(theirs.map(|sums| {
                    let (numbers, _) = sums.as_chunks();
                    std::array::from_fn::<_, K, _>(|k| f64::from_ne_bytes(numbers[k]))
                }));
                let (theirs, behind) = behind.split_at(others(rank));
                if let Some(carried) = &mut carried {
                    carried.all.extend_from_slice(theirs);
                }
                rest = behind;
            }
        } else if let Some(carried) = carried {
            carried.all.extend_from_slice(carried.own);
        }
        if !self.is_ordered {
            return Ok(added(&own));
        }
        Ok(self
            .sum
            .finish(&own)
            .expect("the partial sums of every rank were counted"))
    }
}

/// The sums of all, one after the other.
fn added<const K: usize>(all: &[[f64; K]]) -> [f64; K] {
    let add = |sums: [f64; K], next: &[f64; K]| std::array::from_fn(|k| sums[k] + next[k]);
    all.iter().fold([0.0; K], add)
}

/// Bytes that travel with a sum, from every rank to every rank.
#[derive(Debug)]
pub(super) struct Carried<'a> {
    /// The bytes of this rank.
    pub(super) own: &'a [u8],
    /// How many each rank has.
    pub(super) lengths: &'a [usize],
    /// Gets those of all ranks, in rank order.
    pub(super) all: &'a mut Vec<u8>,
}

/// The scalar product of two vectors of one patch, added in twelve lanes.
///
/// Component i of the vectors, read as plain numbers, goes to lane i mod 12: an order that
/// vector units can follow.
///
/// # Panics
/// If the vectors differ in length.
#[must_use]
pub fn dot(a: &[DVec3], b: &[DVec3]) -> f64 {
    assert_eq!(a.len(), b.len(), "vectors of the same patch");
    widest(Dot(bytemuck::cast_slice(a), bytemuck::cast_slice(b)))
}

/// The scalar product of vectors of numbers.
struct Dot<'a>(&'a [f64], &'a [f64]);

impl Kernel for Dot<'_> {
    type Output = f64;

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> f64 {
        let (a_full, a_rest) = self.0.as_chunks::<LANES>();
        let (b_full, b_rest) = self.1.as_chunks::<LANES>();
        let mut sums = DotSum::new(lanes);
        for (a, b) in a_full.iter().zip(b_full) {
            sums.add(a, b);
        }
        sums.finish(a_rest, b_rest)
    }
}

/// The sum of [`dot`], for loops that do something else besides.
pub(super) struct DotSum<L: Lanes>(L, [L::Four; LANES / 4]);

impl<L: Lanes> DotSum<L> {
    #[inline(always)]
    pub(super) fn new(lanes: L) -> Self {
        Self(lanes, [lanes.splat(0.0); LANES / 4])
    }

    #[inline(always)]
    pub(super) fn add(&mut self, a: &[f64; LANES], b: &[f64; LANES]) {
        let Self(lanes, sums) = self;
        let (a, b) = (a.as_chunks().0, b.as_chunks().0);
        for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
            *sum = lanes.add_product(*sum, lanes.load(a), lanes.load(b));
        }
    }

    /// The sum, with what is left over of vectors that are no multiple of twelve numbers long.
    #[inline(always)]
    pub(super) fn finish(self, a_rest: &[f64], b_rest: &[f64]) -> f64 {
        let Self(lanes, sums) = self;
        let mut sums = sums.map(|sum| lanes.store(sum));
        for ((sum, a), b) in sums.as_flattened_mut().iter_mut().zip(a_rest).zip(b_rest) {
            *sum += a * b;
        }
        let [first, second, third] = sums;
        let quarter: [f64; 4] = std::array::from_fn(|i| first[i] + second[i] + third[i]);
        (quarter[0] + quarter[1]) + (quarter[2] + quarter[3])
    }
}

/// Sums that run side by side in [`dot`]; part of what defines its result.
pub(super) const LANES: usize = 12;

#[cfg(test)]
mod tests {
    use weft_runtime::comm::{Rank, threads};

    use super::*;
    use crate::solve::testing::{Noise, Sheet};

    #[test]
    fn dot_is_the_scalar_product_whatever_the_length() {
        let mut noise = Noise::new(3);
        for len in 0..20 {
            let a: Vec<DVec3> = (0..len).map(|_| noise.vector()).collect();
            let b: Vec<DVec3> = (0..len).map(|_| noise.vector()).collect();
            let plain: f64 = a.iter().zip(&b).map(|(a, b)| a.dot(*b)).sum();
            assert!((dot(&a, &b) - plain).abs() < 1e-14, "{len} vertices");
        }
    }

    #[test]
    fn sums_have_the_same_bits_on_every_rank_of_any_number() {
        let sheet = Sheet::new(30, 16);
        let mut noise = Noise::new(5);
        let vector: Vec<DVec3> = (0..900).map(|_| noise.vector()).collect();
        let sums = |ranks: usize| {
            threads::launch(ranks, |comm| {
                let rank = comm.rank().index();
                let ownership = sheet.ownership(ranks);
                let mine = &vector[ownership.vertices(rank)];
                let reduction = Reduction::new(&sheet.tree, &ownership, rank);
                let ones = vec![DVec3::X; mine.len()];
                reduction
                    .sum(comm, |patch| {
                        let mine = &mine[patch.clone()];
                        [dot(mine, mine), dot(mine, &ones[patch])]
                    })
                    .unwrap()
                    .map(f64::to_bits)
            })
            .unwrap()
        };
        let alone = sums(1)[0];
        let plain: f64 = vector.iter().map(|v| v.length_squared()).sum();
        assert!((f64::from_bits(alone[0]) / plain - 1.0).abs() < 1e-14);
        for ranks in [2, 3, 4, 7, 16] {
            assert!(
                sums(ranks).iter().all(|&bits| bits == alone),
                "{ranks} ranks"
            );
        }
    }

    #[test]
    fn without_their_order_sums_are_the_same_on_all_ranks_but_not_for_any_number() {
        let sheet = Sheet::new(30, 16);
        let mut noise = Noise::new(5);
        let vector: Vec<DVec3> = (0..900).map(|_| noise.vector()).collect();
        let sums = |ranks: usize| {
            threads::launch(ranks, |comm| {
                let rank = comm.rank().index();
                let ownership = sheet.ownership(ranks);
                let mine = &vector[ownership.vertices(rank)];
                let mut reduction = Reduction::new(&sheet.tree, &ownership, rank);
                reduction.forget_order();
                let of_patch = |patch: Range<usize>| [dot(&mine[patch.clone()], &mine[patch])];
                reduction.sum(comm, of_patch).unwrap()[0]
            })
            .unwrap()
        };
        let plain: f64 = vector.iter().map(|v| v.length_squared()).sum();
        let found = [1, 2, 3, 5, 7].map(|ranks| {
            let sums = sums(ranks);
            assert!(sums.iter().all(|sum| sum.to_bits() == sums[0].to_bits()));
            assert!((sums[0] / plain - 1.0).abs() < 1e-14);
            sums[0].to_bits()
        });
        assert!(found.iter().any(|&bits| bits != found[0]), "{found:?}");
    }

    #[test]
    fn data_sent_with_sums_are_the_same_on_any_number_of_ranks() {
        let sheet = Sheet::new(30, 16);
        let bytes: Vec<u8> = (1..=16).collect();
        for ranks in [1, 2, 7] {
            let lengths: Vec<usize> = (0..ranks)
                .map(|rank| sheet.ownership(ranks).patches(rank).len())
                .collect();
            let found = threads::launch(ranks, |comm| {
                let rank = comm.rank().index();
                let ownership = sheet.ownership(ranks);
                let reduction = Reduction::new(&sheet.tree, &ownership, rank);
                let leaves = reduction.leaves(|_| [1.0]);
                let mut all = Vec::new();
                let carried = Carried {
                    own: &bytes[ownership.patches(rank)],
                    lengths: &lengths,
                    all: &mut all,
                };
                let sum = reduction.sum_leaves(comm, Some(carried), &leaves).unwrap();
                assert_eq!(sum, [16.0]);
                all
            });
            assert!(found.unwrap().iter().all(|all| *all == bytes));
        }
    }

    #[test]
    fn partial_sums_of_the_wrong_number_name_their_sender() {
        let sheet = Sheet::new(12, 4);
        let results = threads::launch(2, |comm| {
            let rank = comm.rank().index();
            if rank == 1 {
                // Here too it fails.
                comm.allgather(vec![0; 9]).unwrap_err();
                return None;
            }
            let reduction = Reduction::new(&sheet.tree, &sheet.ownership(2), rank);
            reduction.sum(comm, |_| [1.0]).err()
        })
        .unwrap();
        assert!(
            matches!(results[0], Some(CommError::Malformed { from: Rank(1), .. })),
            "{results:?}"
        );
    }
}
