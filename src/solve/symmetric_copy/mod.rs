//! A symmetric single-precision copy of a matrix, whose product takes a quarter of the bytes.
//!
//! The product is limited by the bytes of the matrix, and two things make them fewer.
//!
//! The matrix is symmetric: of an entry and the transposed one in the same patch only the one
//! behind the diagonal is kept here, and used for both rows. Entries that lead out of the patch, a
//! few in a hundred, are kept on both sides. So a patch writes only its own rows, and threads and
//! ranks need not agree about sums.
//!
//! Conjugate gradients also converge with a matrix that is nearly the one asked for, as long as the
//! residual is computed with the right one from time to time \[VY00\]. So entries beside the
//! diagonal are rounded to f32 here. All sums are in f64, and the sum that rounding took away from
//! the entries of a row is added to the block on its diagonal, which stays in f64. So a cloth that
//! moves as a whole is multiplied with the exact sums of the rows, and the whole matrix decides
//! when a solve is done ([`super::cg`]).
//!
//! A row is added up in an order which patches alone define, and so has the same bits on any number
//! of ranks and threads: the products of entries that stand in other rows of the patch, in the
//! order of these rows; the diagonal, the blocks and the scalars of the row; and at last the sum of
//! the entries that lead out of the patch. Whether the copy is used must not depend on ranks
//! ([`is_rounded`]).
//!
//! Rows of a patch stand in the order of their numbers of entries: the processor predicts the end
//! of a loop over one to six entries only if the loop before had as many.
//!
//! The copy is made of the whole matrix, which assembly and preconditioners need, once a solve.
//! That takes as long as two or three iterations.
//!
//! * \[VY00\] van der Vorst, Ye: Residual replacement strategies for Krylov subspace iterative
//!   methods for the convergence of true residuals. SIAM Journal on Scientific Computing 22, 2000.

mod fill;
mod product;

use std::ops::Range;

use glam::DVec3;
use weft_partition::PatchTree;

use self::fill::{Lost, Sources};
use self::product::{Across, Cell, Inner};
use super::block_matrix::{Entries, PADDING};
use super::pages::Paged;
use crate::heap_bytes::{counts_heap, owns_no_heap};
use crate::simd::widest;
use crate::team::{Shares, parts};

/// Whether products of directions are taken with the copy, because that is faster.
#[must_use]
pub fn is_rounded(tree: &PatchTree) -> bool {
    let patches = 0..tree.patch_count();
    let largest = patches.map(|patch| tree.patch_vertices(patch).len()).max();
    tree.vertex_count() >= FEWEST_VERTICES && largest.unwrap_or(0) <= MOST_IN_PATCH
}

/// The number of vertices from which on the whole matrix does not stay in the cache of a core. It
/// was measured on one machine, and results depend on it.
const FEWEST_VERTICES: usize = 5_000;

/// The most vertices of a patch, whose rows and columns have 16 bits.
const MOST_IN_PATCH: usize = 1 << 16;

/// A symmetric single-precision copy of the owned rows of a matrix.
#[derive(Clone, Debug, Default)]
pub(super) struct SymmetricCopy {
    sources: Sources,
    patches: Vec<Patch>,
    /// The rows of each patch, in the order in which they are gone through.
    heads: Paged<Head>,
    /// The diagonal blocks in that order, by columns, nine numbers each, and [`PADDING`].
    diagonals: Paged<f64>,
    /// Blocks within patches by rows, nine numbers each, and [`PADDING`].
    blocks: Paged<f32>,
    /// The column of each block in its patch.
    block_columns: Paged<u16>,
    scalars: Paged<f32>,
    scalar_columns: Paged<u16>,
    outer: Outer,
    /// The room of each thread.
    at_hand: Vec<AtHand>,
}

counts_heap!(SymmetricCopy:
    sources, patches, heads, diagonals, blocks, block_columns, scalars, scalar_columns, outer,
    at_hand
);

/// The room of a thread for the patch at hand, as large as the largest patch needs.
#[derive(Clone, Debug, Default)]
struct AtHand {
    cells: Vec<Cell>,
    lost: Vec<Lost>,
    /// The scalars in double precision.
    scalars: Vec<f64>,
}

counts_heap!(AtHand: cells, lost, scalars);

/// A row of a patch, by its place there, with the numbers of its blocks and scalars behind the
/// diagonal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct Head {
    row: u16,
    near: u16,
    far: u16,
}

/// The places of the entries of a patch.
#[derive(Clone, Debug, Default)]
struct Patch {
    rows: Range<usize>,
    near: Range<usize>,
    far: Range<usize>,
    /// The rows with entries that lead out of the patch; those that read the halo follow those that
    /// do not.
    outer: Range<usize>,
    outer_to_halo: usize,
    outer_near: Range<usize>,
    outer_far: Range<usize>,
}

owns_no_heap!(Patch);

impl Patch {
    /// Whether one of its rows reads the halo.
    fn reads_halo(&self) -> bool {
        self.outer_to_halo < self.outer.end
    }

    /// The part of a vector that belongs to it; `elements` are those of the vector.
    fn part<'y>(&self, y: &'y mut [DVec3], elements: &Range<usize>) -> &'y mut [DVec3] {
        &mut y[self.rows.start - elements.start..self.rows.end - elements.start]
    }
}

/// The entries that lead out of patches.
#[derive(Clone, Debug, Default)]
struct Outer {
    rows: Vec<u32>,
    block_starts: Vec<u32>,
    block_columns: Vec<u32>,
    /// The blocks by columns, nine numbers each, and [`PADDING`].
    blocks: Paged<f32>,
    scalar_starts: Vec<u32>,
    scalar_columns: Vec<u32>,
    scalars: Paged<f32>,
}

counts_heap!(Outer:
    rows, block_starts, block_columns, blocks, scalar_starts, scalar_columns, scalars
);

impl SymmetricCopy {
    fn make_room_for_threads(&mut self, threads: usize) {
        let largest = |range: fn(&Patch) -> &Range<usize>| {
            let lengths = self.patches.iter().map(|patch| range(patch).len());
            lengths.max().unwrap_or(0)
        };
        let (rows, scalars) = (largest(|p| &p.rows), largest(|p| &p.far));
        let room = AtHand {
            cells: vec![Cell::default(); rows],
            lost: vec![Lost::default(); rows],
            scalars: vec![0.0; scalars],
        };
        self.at_hand = vec![room; threads];
    }

    /// Computes `y = A x` for the owned rows, but in rows that read the halo only with entries in
    /// their patch.
    ///
    /// For each patch whose rows do not read the halo, `done` is called with the vertices, its part
    /// of `y`, and its element of `of_patches`.
    pub(super) fn multiply_interior<T: Send>(
        &mut self,
        x: &[DVec3],
        (y, of_patches): (&mut [DVec3], &mut [T]),
        shares: &Shares,
        done: impl Fn(Range<usize>, &mut [DVec3], &mut T) + Sync,
    ) {
        let work = (parts(y, &shares.elements).zip(parts(of_patches, &shares.ranges)))
            .zip(&mut self.at_hand)
            .zip(shares.elements.iter().zip(&shares.ranges));
        shares.run(work, |(((y, of_patches), at_hand), (elements, share))| {
            for (patch, of_patch) in self.patches[share.clone()].iter().zip(of_patches) {
                let (near, far) = (patch.near.clone(), patch.far.clone());
                widest(Inner {
                    heads: &self.heads[patch.rows.clone()],
                    diagonals: &self.diagonals[9 * patch.rows.start..9 * patch.rows.end + PADDING],
                    blocks: &self.blocks[9 * near.start..9 * near.end + PADDING],
                    block_columns: &self.block_columns[near],
                    scalars: &self.scalars[far.clone()],
                    scalar_columns: &self.scalar_columns[far],
                    x: &x[patch.rows.clone()],
                    y: patch.part(y, elements),
                    cells: &mut at_hand.cells[..patch.rows.len()],
                    long_scalars: &mut at_hand.scalars[..patch.far.len()],
                });
                let at = patch.outer.start..patch.outer_to_halo;
                self.outer.multiply(at, x, (y, elements.start));
                if !patch.reads_halo() {
                    done(patch.rows.clone(), patch.part(y, elements), of_patch);
                }
            }
        });
    }

    /// Adds the entries that lead out of their patch in rows that read the halo. `done` is called
    /// as before, for the patches that have such rows.
    pub(super) fn multiply_border<T: Send>(
        &self,
        x: &[DVec3],
        (y, of_patches): (&mut [DVec3], &mut [T]),
        shares: &Shares,
        done: impl Fn(Range<usize>, &mut [DVec3], &mut T) + Sync,
    ) {
        let work = (parts(y, &shares.elements).zip(parts(of_patches, &shares.ranges)))
            .zip(shares.elements.iter().zip(&shares.ranges));
        shares.run(work, |((y, of_patches), (elements, share))| {
            let patches = self.patches[share.clone()].iter().zip(of_patches);
            for (patch, of_patch) in patches.filter(|(patch, _)| patch.reads_halo()) {
                let at = patch.outer_to_halo..patch.outer.end;
                self.outer.multiply(at, x, (y, elements.start));
                done(patch.rows.clone(), patch.part(y, elements), of_patch);
            }
        });
    }

    /// The number of bytes that a product reads, without the vectors.
    pub(super) fn bytes(&self) -> usize {
        let outer = &self.outer;
        (size_of::<Head>() + 72) * self.heads.len()
            + 38 * self.block_columns.len()
            + 6 * self.scalar_columns.len()
            + 12 * outer.rows.len()
            + 40 * outer.block_columns.len()
            + 8 * outer.scalar_columns.len()
    }
}

impl Outer {
    /// Adds the rows at some places to `y`, which begins at the given row.
    #[inline]
    fn multiply(&self, at: Range<usize>, x: &[DVec3], (y, first): (&mut [DVec3], usize)) {
        widest(Across {
            matrix: self.entries(),
            rows: (&self.rows[at.clone()], at),
            x,
            y,
            first,
        });
    }

    fn entries(&self) -> Entries<'_, f32> {
        Entries {
            block_starts: &self.block_starts,
            block_columns: &self.block_columns,
            blocks: &self.blocks,
            scalar_starts: &self.scalar_starts,
            scalar_columns: &self.scalar_columns,
            scalars: &self.scalars,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solve::testing::{Noise, Sheet};
    use crate::solve::{Reduction, Rows};
    use crate::team::Team;

    /// The error that rounding to f32 may cause in a row with entries and products of about 1.
    const NEAR: f64 = 1e-6;

    /// Computes the product on some ranks with some threads each; `x` has all vertices.
    fn product(sheet: &Sheet, ranks: usize, threads: usize, x: &[DVec3]) -> Vec<DVec3> {
        let team = Team::new(threads).unwrap();
        let of_rank = |rank| {
            let plan = sheet.plan(ranks, rank);
            let matrix = sheet.system(ranks, rank, 2).matrix;
            let reduction = Reduction::new(&sheet.tree, &sheet.ownership(ranks), rank);
            let reduction = reduction.with_team(&team);
            let mut copy = SymmetricCopy::default();
            copy.fill(&matrix, reduction.patches(), reduction.shares());
            let owned = plan.owned().len();
            let read = plan.owned().chain(plan.halo().iter().map(|&v| v as usize));
            let local: Vec<DVec3> = read.map(|v| x[v]).collect();
            let mut early = local.clone();
            // The halo is not there yet.
            early[owned..].fill(DVec3::NAN);
            let mut y = vec![DVec3::NAN; owned];
            let mut done = vec![0; reduction.patches().len()];
            let (shares, count) = (reduction.shares(), |_, _: &mut [_], done: &mut u32| {
                *done += 1
            });
            copy.multiply_interior(&early, (&mut y, &mut done), shares, count);
            copy.multiply_border(&local, (&mut y, &mut done), shares, count);
            assert!(done.iter().all(|&done| done == 1), "each patch once");
            y
        };
        (0..ranks).flat_map(of_rank).collect()
    }

    fn noise(sheet: &Sheet) -> Vec<DVec3> {
        let mut noise = Noise::new(9);
        (0..sheet.len()).map(|_| noise.vector()).collect()
    }

    #[test]
    fn the_product_is_nearly_that_of_the_whole_matrix() {
        for patches in [1, 16] {
            let sheet = Sheet::new(24, patches);
            let x = noise(&sheet);
            let mut whole = vec![DVec3::ZERO; sheet.len()];
            (sheet.system(1, 0, 2).matrix).multiply(&x, &mut whole, Rows::All);
            for (y, whole) in product(&sheet, 1, 1, &x).iter().zip(&whole) {
                assert!((*y - *whole).length() < NEAR * whole.length().max(1.0));
            }
        }
    }

    #[test]
    fn a_sheet_that_moves_as_a_whole_is_not_rounded() {
        for patches in [1, 16] {
            let sheet = Sheet::new(24, patches);
            let matrix = sheet.system(1, 0, 2).matrix;
            let mut rounded = 0;
            for direction in DVec3::AXES {
                let x = vec![direction; sheet.len()];
                let mut whole = vec![DVec3::ZERO; sheet.len()];
                matrix.multiply(&x, &mut whole, Rows::All);
                for (row, (y, whole)) in product(&sheet, 1, 1, &x).iter().zip(&whole).enumerate() {
                    assert!((*y - *whole).length() < 1e-14 * whole.length().max(1.0));
                    matrix.for_each_in_row(row, |_, block| {
                        let single = block.to_cols_array().map(|value| f64::from(value as f32));
                        rounded += u32::from(single != block.to_cols_array());
                    });
                }
            }
            assert!(rounded > 1000, "{rounded} blocks have numbers to round");
        }
    }

    #[test]
    fn every_row_has_the_same_bits_on_any_number_of_ranks_and_threads() {
        let sheet = Sheet::new(24, 16);
        let x = noise(&sheet);
        let bits = |y: Vec<DVec3>| -> Vec<[u64; 3]> {
            y.iter().map(|y| y.to_array().map(f64::to_bits)).collect()
        };
        let alone = bits(product(&sheet, 1, 1, &x));
        for (ranks, threads) in [(1, 3), (2, 1), (2, 2), (3, 1), (7, 2), (16, 1)] {
            let same = bits(product(&sheet, ranks, threads, &x)) == alone;
            assert!(same, "{ranks} ranks of {threads} threads");
        }
    }

    #[test]
    fn a_matrix_of_another_pattern_is_taken_over_too() {
        let mut copy = SymmetricCopy::default();
        for sheet in [Sheet::new(12, 4), Sheet::torn(12, 4, 5), Sheet::new(9, 4)] {
            let x = noise(&sheet);
            let matrix = sheet.system(1, 0, 2).matrix;
            let reduction = Reduction::new(&sheet.tree, &sheet.ownership(1), 0);
            copy.fill(&matrix, reduction.patches(), reduction.shares());
            let mut y = vec![DVec3::NAN; sheet.len()];
            let mut none = vec![(); reduction.patches().len()];
            copy.multiply_interior(&x, (&mut y, &mut none), reduction.shares(), |_, _, ()| ());
            let mut whole = vec![DVec3::NAN; sheet.len()];
            matrix.multiply(&x, &mut whole, Rows::All);
            for (y, whole) in y.iter().zip(&whole) {
                assert!((*y - *whole).length() < NEAR * whole.length().max(1.0));
            }
        }
    }
}
