//! The owned rows of the system matrix: 3x3 blocks near the diagonal, scalars further out.
//!
//! Vertices of a triangle are coupled by a full 3x3 block. Vertices that only bending couples, the
//! second ring, have a scalar times identity in the quadratic model, and are stored so: 600 instead
//! of 980 bytes of matrix a vertex.
//!
//! A [`Pattern`] says which entries there are, once for a mesh; a [`BlockMatrix`] holds their
//! values. Columns are local indices, owned vertices first and then the halo, but in each row they
//! stand in ascending *global* order, blocks and scalars each. So a row is added up in the same
//! order whichever rank owns its columns, by the same kernel whether it is interior or on a border,
//! and has the same bits on any number of ranks.
//!
//! Symmetry is not stored: every row is complete.

use std::ops::Range;
use std::sync::Arc;

use glam::{DMat3, DVec3};
use thiserror::Error;
use weft_partition::{Graph, HaloPlan};

use super::pages::Paged;
use crate::heap_bytes::{counts_heap, owns_no_heap};
use crate::simd::{Kernel, Lanes, widest};
use crate::team::parts;

/// The reason why a pattern could not be made.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum PatternError {
    /// The graph and the plan are of different meshes.
    #[error("the plan owns vertices up to {needed}, the graph has {found}")]
    Vertices {
        /// How many the plan needs.
        needed: usize,
        /// How many the graph has.
        found: usize,
    },
    /// An entry refers to a vertex that is neither owned nor in the halo.
    #[error(
        "row {row} has column {column}, which the halo plan does not read: plan with the graph of the matrix"
    )]
    NotRead {
        /// The row.
        row: u32,
        /// The column that is missing.
        column: u32,
    },
    /// More entries than 32 bits count.
    #[error("{entries} entries in the rows of one rank are too many: use more ranks")]
    TooLarge {
        /// How many there are at least.
        entries: usize,
    },
}

/// The place of a block; found once with [`Pattern::block_slot`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockSlot(u32);

owns_no_heap!(BlockSlot);

impl BlockSlot {
    /// The slot of the block at some place in the order in which they are stored.
    pub(super) fn at(place: u32) -> Self {
        Self(place)
    }
}

/// The place of a scalar, or the block that it is added to; found once with
/// [`Pattern::scalar_slot`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScalarSlot(ScalarPlace);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ScalarPlace {
    Scalar(u32),
    Block(BlockSlot),
}

/// The rows to work on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rows {
    /// Rows that read owned vertices only.
    Interior,
    /// Rows that read the halo.
    Border,
    /// Every owned row.
    All,
}

/// The entries of the owned rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    first_row: u32,
    local_len: usize,
    /// Columns of the blocks of all rows: local index, and the global one to search by.
    blocks: Columns,
    scalars: Columns,
    /// The diagonal block of each row.
    diagonal: Vec<BlockSlot>,
    interior: Vec<Range<usize>>,
    border: Vec<Range<usize>>,
}

counts_heap!(Pattern: blocks, scalars, diagonal, interior, border; without first_row, local_len);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Columns {
    /// The starts of the entries of each row; one more than there are rows.
    starts: Vec<u32>,
    local: Paged<u32>,
    global: Vec<u32>,
    /// The entries of `local` so far, while rows are added.
    added: Vec<u32>,
}

counts_heap!(Columns: starts, local, global, added);

impl Pattern {
    /// The rows that `plan` owns: a block for each edge of `near` and on the diagonal, a scalar for
    /// each edge of `far` that is not in `near` too.
    ///
    /// Both graphs are of all vertices, in the numbering of the patch tree; `plan` is made of a
    /// graph that has the edges of both.
    ///
    /// # Errors
    /// [`PatternError`]; nothing here depends on other ranks.
    pub fn new(plan: &HaloPlan, near: &Graph, far: &Graph) -> Result<Self, PatternError> {
        let owned = plan.owned();
        for graph in [near, far] {
            if graph.vertex_count() < owned.end {
                let (needed, found) = (owned.end, graph.vertex_count());
                return Err(PatternError::Vertices { needed, found });
            }
        }
        let first_row = as_u32(owned.start)?;
        let mut pattern = Self {
            first_row,
            local_len: plan.local_len(),
            blocks: Columns::new(),
            scalars: Columns::new(),
            diagonal: Vec::with_capacity(owned.len()),
            interior: Vec::new(),
            border: Vec::new(),
        };
        for row in first_row..as_u32(owned.end)? {
            let near = near.neighbours(row);
            let before = near.partition_point(|&column| column < row);
            let add = |columns: &mut Columns, column: u32| -> Result<(), PatternError> {
                let missing = PatternError::NotRead { row, column };
                let local = plan.local_index(column).ok_or(missing)?;
                columns.added.push(as_u32(local)?);
                columns.global.push(column);
                Ok(())
            };
            for &column in &near[..before] {
                add(&mut pattern.blocks, column)?;
            }
            pattern
                .diagonal
                .push(BlockSlot(as_u32(pattern.blocks.global.len())?));
            add(&mut pattern.blocks, row)?;
            for &column in &near[before..] {
                add(&mut pattern.blocks, column)?;
            }
            for &column in far.neighbours(row) {
                if near.binary_search(&column).is_err() {
                    add(&mut pattern.scalars, column)?;
                }
            }
            pattern.blocks.end_row()?;
            pattern.scalars.end_row()?;

            let index = (row - first_row) as usize;
            let reads_halo = [&pattern.blocks, &pattern.scalars]
                .into_iter()
                .any(|columns| {
                    columns.added[columns.row(index)]
                        .iter()
                        .any(|&c| c as usize >= owned.len())
                });
            push_run(
                if reads_halo {
                    &mut pattern.border
                } else {
                    &mut pattern.interior
                },
                index,
            );
        }
        pattern.blocks.finish();
        pattern.scalars.finish();
        Ok(pattern)
    }

    /// How many rows are owned.
    #[must_use]
    pub(crate) fn row_count(&self) -> usize {
        self.diagonal.len()
    }

    /// The global number of the first owned row.
    #[must_use]
    pub(crate) fn first_row(&self) -> u32 {
        self.first_row
    }

    /// Length of a vector with halo.
    #[must_use]
    pub fn local_len(&self) -> usize {
        self.local_len
    }

    /// How many blocks and scalars are stored.
    #[must_use]
    pub(crate) fn entry_counts(&self) -> (usize, usize) {
        (self.blocks.global.len(), self.scalars.global.len())
    }

    /// The place of the block of an owned row (local index) and a column (global number); `None` if
    /// there is none.
    #[must_use]
    pub fn block_slot(&self, row: usize, column: u32) -> Option<BlockSlot> {
        self.blocks.find(row, column).map(BlockSlot)
    }

    /// The place of a scalar of an owned row (local index) and a column (global number); `None` if
    /// it has none.
    ///
    /// If there is a block for the two, the scalar times identity is added into it.
    #[must_use]
    pub fn scalar_slot(&self, row: usize, column: u32) -> Option<ScalarSlot> {
        let block = || self.block_slot(row, column).map(ScalarPlace::Block);
        let scalar = || self.scalars.find(row, column).map(ScalarPlace::Scalar);
        block().or_else(scalar).map(ScalarSlot)
    }

    /// The diagonal block of an owned row (local index).
    ///
    /// # Panics
    /// If there is no such row.
    #[must_use]
    pub fn diagonal_slot(&self, row: usize) -> BlockSlot {
        self.diagonal[row]
    }

    /// The places of the blocks of a row (local index), and their columns as global numbers.
    pub(crate) fn block_columns(&self, row: usize) -> (Range<usize>, &[u32]) {
        let at = self.blocks.row(row);
        (at.clone(), &self.blocks.global[at])
    }

    /// The places of the scalars of a row (local index), and their columns as global numbers.
    pub(crate) fn scalar_columns(&self, row: usize) -> (Range<usize>, &[u32]) {
        let at = self.scalars.row(row);
        (at.clone(), &self.scalars.global[at])
    }

    /// Whether one of these owned rows (local indices) reads the halo.
    pub(super) fn reads_halo(&self, rows: &Range<usize>) -> bool {
        let before = self.border.partition_point(|run| run.end <= rows.start);
        (self.border.get(before)).is_some_and(|run| run.start < rows.end)
    }

    /// The rows asked for, as runs of local indices, ascending.
    #[must_use]
    pub fn runs(&self, rows: Rows) -> Vec<Range<usize>> {
        match rows {
            Rows::Interior => self.interior.clone(),
            Rows::Border => self.border.clone(),
            Rows::All => std::iter::once(0..self.row_count()).collect(),
        }
    }
}

impl Columns {
    fn new() -> Self {
        Self {
            starts: vec![0],
            local: Paged::default(),
            global: Vec::new(),
            added: Vec::new(),
        }
    }

    fn end_row(&mut self) -> Result<(), PatternError> {
        self.starts.push(as_u32(self.global.len())?);
        Ok(())
    }

    /// Finishes the pattern when all rows are there.
    fn finish(&mut self) {
        self.local = std::mem::take(&mut self.added).as_slice().into();
        self.global.shrink_to_fit();
    }

    fn row(&self, row: usize) -> Range<usize> {
        self.starts[row] as usize..self.starts[row + 1] as usize
    }

    fn find(&self, row: usize, column: u32) -> Option<u32> {
        if row + 1 >= self.starts.len() {
            return None;
        }
        let at = self.global[self.row(row)].binary_search(&column).ok()?;
        Some(self.starts[row] + u32::try_from(at).ok()?)
    }
}

/// The owned rows of the matrix.
#[derive(Clone, Debug)]
pub struct BlockMatrix {
    pattern: Arc<Pattern>,
    /// Blocks by columns, nine numbers each, and [`PADDING`].
    blocks: Paged<f64>,
    scalars: Paged<f64>,
}

counts_heap!(BlockMatrix: pattern, blocks, scalars);

impl BlockMatrix {
    /// A matrix of zeros.
    #[must_use]
    pub fn new(pattern: Pattern) -> Self {
        let (blocks, scalars) = pattern.entry_counts();
        Self {
            pattern: Arc::new(pattern),
            blocks: Paged::zeros(9 * blocks + PADDING),
            scalars: Paged::zeros(scalars),
        }
    }

    /// Multiplies every entry.
    #[cfg(test)]
    pub(super) fn scale(&mut self, factor: f64) {
        let numbers = self.blocks.iter_mut().chain(self.scalars.iter_mut());
        numbers.for_each(|number| *number *= factor);
    }

    /// Visits the entries of an owned row (local index) as blocks, with their columns as global
    /// numbers.
    pub(super) fn for_each_in_row(&self, row: usize, mut visit: impl FnMut(u32, DMat3)) {
        let (at, columns) = self.pattern.block_columns(row);
        for (slot, &column) in at.zip(columns) {
            visit(column, self.block(BlockSlot(slot as u32)));
        }
        let (at, columns) = self.pattern.scalar_columns(row);
        for (value, &column) in self.scalars[at].iter().zip(columns) {
            visit(column, DMat3::from_diagonal(DVec3::splat(*value)));
        }
    }

    /// Sets every entry to zero.
    pub fn clear(&mut self) {
        self.whole().clear();
    }

    /// Adds to a block.
    ///
    /// # Panics
    /// If the slot is of a larger pattern.
    #[inline]
    pub fn add_block(&mut self, slot: BlockSlot, block: &DMat3) {
        self.whole().add_block(slot, block);
    }

    /// Adds a scalar times identity.
    ///
    /// # Panics
    /// If the slot is of a larger pattern.
    #[inline]
    pub fn add_scalar(&mut self, slot: ScalarSlot, value: f64) {
        self.whole().add_scalar(slot, value);
    }

    fn whole(&mut self) -> MatrixRows<'_> {
        MatrixRows {
            first_block: 0,
            first_scalar: 0,
            blocks: &mut self.blocks,
            scalars: &mut self.scalars,
        }
    }

    /// The entries of runs of rows that follow each other from the first row on, to be filled at
    /// the same time.
    ///
    /// # Panics
    /// If the runs do not, or there are fewer rows.
    pub(crate) fn rows_mut(&mut self, runs: &[Range<usize>]) -> Vec<MatrixRows<'_>> {
        let of = |columns: &Columns, run: &Range<usize>| {
            columns.starts[run.start] as usize..columns.starts[run.end] as usize
        };
        let nine = |blocks: Range<usize>| 9 * blocks.start..9 * blocks.end;
        let pattern = &self.pattern;
        let blocks: Vec<_> = runs
            .iter()
            .map(|run| nine(of(&pattern.blocks, run)))
            .collect();
        let scalars: Vec<_> = runs.iter().map(|run| of(&pattern.scalars, run)).collect();
        let entries = parts(&mut self.blocks, &blocks).zip(parts(&mut self.scalars, &scalars));
        (entries.zip(blocks.iter().zip(&scalars)))
            .map(
                |((own_blocks, own_scalars), (blocks, scalars))| MatrixRows {
                    first_block: blocks.start / 9,
                    first_scalar: scalars.start,
                    blocks: own_blocks,
                    scalars: own_scalars,
                },
            )
            .collect()
    }

    /// Multiplies some rows: `y = A x` in those rows, the others of `y` are left as they are.
    ///
    /// `x` has the halo, `y` the owned rows. Rows are independent: their order shows in no bit.
    ///
    /// # Panics
    /// If `x` or `y` has the wrong length.
    pub fn multiply(&self, x: &[DVec3], y: &mut [DVec3], rows: Rows) {
        assert_eq!(
            x.len(),
            self.pattern.local_len,
            "x is of owned and read vertices"
        );
        assert_eq!(y.len(), self.pattern.row_count(), "y is of owned vertices");
        self.multiply_share([x], [y], 0, rows);
    }

    /// [`BlockMatrix::multiply`] of several vectors at once, for the rows from `first` on that each
    /// of `y` has.
    pub(super) fn multiply_share<const N: usize>(
        &self,
        x: [&[DVec3]; N],
        mut y: [&mut [DVec3]; N],
        first: usize,
        rows: Rows,
    ) {
        let share = first..first + y[0].len();
        let runs = match rows {
            Rows::All => return self.multiply_run(x, y, share),
            Rows::Interior => &self.pattern.interior,
            Rows::Border => &self.pattern.border,
        };
        let before = runs.partition_point(|run| run.end <= share.start);
        for run in &runs[before..] {
            let run = run.start.max(share.start)..run.end.min(share.end);
            if run.is_empty() {
                break;
            }
            let y = y.each_mut();
            let y = y.map(|y| &mut y[run.start - first..run.end - first]);
            self.multiply_run(x, y, run);
        }
    }

    /// The block on the diagonal of an owned row (local index).
    ///
    /// # Panics
    /// If there is no such row.
    #[must_use]
    pub(crate) fn diagonal_block(&self, row: usize) -> DMat3 {
        self.block(self.pattern.diagonal[row])
    }

    /// Replaces the block on the diagonal of an owned row (local index).
    ///
    /// # Panics
    /// If there is no such row.
    pub(crate) fn set_diagonal_block(&mut self, row: usize, block: &DMat3) {
        let start = 9 * self.pattern.diagonal[row].0 as usize;
        self.blocks[start..start + 9].copy_from_slice(&block.to_cols_array());
    }

    /// A block.
    ///
    /// # Panics
    /// If the slot is of a larger pattern.
    #[must_use]
    pub fn block(&self, slot: BlockSlot) -> DMat3 {
        let start = 9 * slot.0 as usize;
        DMat3::from_cols_slice(&self.blocks[start..start + 9])
    }

    /// The columns of a block, and one number more.
    #[inline]
    pub(super) fn numbers(&self, slot: BlockSlot) -> &[f64; 10] {
        let numbers = self.blocks[9 * slot.0 as usize..].first_chunk();
        numbers.expect("padding behind the last block")
    }

    /// The entries that there are.
    #[must_use]
    pub fn pattern(&self) -> &Pattern {
        &self.pattern
    }

    /// The pattern, for those who want to know it again.
    pub(super) fn shared_pattern(&self) -> &Arc<Pattern> {
        &self.pattern
    }

    /// The first owned row (local index) with an entry that is not finite.
    #[must_use]
    pub(crate) fn non_finite_row(&self) -> Option<usize> {
        let Pattern {
            blocks, scalars, ..
        } = self.pattern();
        (0..self.pattern.row_count()).find(|&row| {
            let near = blocks.row(row);
            let near = &self.blocks[9 * near.start..9 * near.end];
            !near
                .iter()
                .chain(&self.scalars[scalars.row(row)])
                .all(|entry| entry.is_finite())
        })
    }

    /// Bytes read for a product, values and columns and row starts, without the vectors.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let (blocks, scalars) = self.pattern.entry_counts();
        76 * blocks + 12 * scalars + 8 * self.pattern.row_count()
    }

    /// The kernel, for all rows alike; `y` is of the rows of the run.
    fn multiply_run<const N: usize>(
        &self,
        x: [&[DVec3]; N],
        y: [&mut [DVec3]; N],
        run: Range<usize>,
    ) {
        let matrix = self.entries();
        widest(Product { matrix, x, y, run });
    }

    /// The entries that loops over rows read.
    pub(super) fn entries(&self) -> Entries<'_> {
        let Pattern {
            blocks, scalars, ..
        } = self.pattern();
        Entries {
            block_starts: &blocks.starts,
            block_columns: &blocks.local,
            blocks: &self.blocks,
            scalar_starts: &scalars.starts,
            scalar_columns: &scalars.local,
            scalars: &self.scalars,
        }
    }
}

/// The type in which entries are stored.
pub(super) trait Stored: Copy + Into<f64> {
    /// Four that follow each other.
    fn four<L: Lanes>(lanes: L, of: &[Self; 4]) -> L::Four;
}

impl Stored for f64 {
    #[inline(always)]
    fn four<L: Lanes>(lanes: L, of: &[Self; 4]) -> L::Four {
        lanes.load(of)
    }
}

impl Stored for f32 {
    #[inline(always)]
    fn four<L: Lanes>(lanes: L, of: &[Self; 4]) -> L::Four {
        lanes.load_short(of)
    }
}

/// The entries of a [`BlockMatrix`] as slices, or of a copy of some.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entries<'m, T = f64> {
    pub(super) block_starts: &'m [u32],
    pub(super) block_columns: &'m [u32],
    /// And [`PADDING`].
    pub(super) blocks: &'m [T],
    pub(super) scalar_starts: &'m [u32],
    pub(super) scalar_columns: &'m [u32],
    pub(super) scalars: &'m [T],
}

impl<T: Stored> Entries<'_, T> {
    /// The product of some blocks and some scalars of a row with `x`, whose first entry is that of
    /// column `first`, in the order of their columns.
    #[inline(always)]
    pub(super) fn row_part(
        &self,
        lanes: impl Lanes,
        near: Range<usize>,
        far: Range<usize>,
        x: &[DVec3],
        first: usize,
    ) -> DVec3 {
        let [product] = self.row_parts(lanes, near, far, [x], first);
        product
    }

    /// The products of such a part of a row with several vectors, each with the bits that it has
    /// alone.
    ///
    /// The columns of the blocks are summed apart and the scalars too, for shorter chains of
    /// additions. Four numbers are read where a column has three: the fourth sum is thrown away,
    /// and the loop fits vector units.
    #[inline(always)]
    fn row_parts<const N: usize>(
        &self,
        lanes: impl Lanes,
        near: Range<usize>,
        far: Range<usize>,
        x: [&[DVec3]; N],
        first: usize,
    ) -> [DVec3; N] {
        let values = &self.blocks[9 * near.start..9 * near.end + PADDING];
        let mut sums = [[lanes.splat(0.0); 3]; N];
        let columns = &self.block_columns[near];
        for (block, &column) in values.array_windows::<10>().step_by(9).zip(columns) {
            lanes.prefetch(block, AHEAD);
            lanes.prefetch(block, AHEAD + 64);
            let [p @ .., _, _, _, _, _, _] = block;
            let [_, _, _, q @ .., _, _, _] = block;
            let [_, _, _, _, _, _, r @ ..] = block;
            let (p, q, r) = (T::four(lanes, p), T::four(lanes, q), T::four(lanes, r));
            for ([a, b, c], x) in sums.iter_mut().zip(x) {
                let x = x[column as usize - first];
                *a = lanes.add_product(*a, p, lanes.splat(x.x));
                *b = lanes.add_product(*b, q, lanes.splat(x.y));
                *c = lanes.add_product(*c, r, lanes.splat(x.z));
            }
        }
        let mut products = [DVec3::ZERO; N];
        let columns = &self.scalar_columns[far.clone()];
        for (&value, &column) in self.scalars[far].iter().zip(columns) {
            for (product, x) in products.iter_mut().zip(x) {
                *product += value.into() * x[column as usize - first];
            }
        }
        for (product, [a, b, c]) in products.iter_mut().zip(sums) {
            let (a, b, c) = (lanes.store(a), lanes.store(b), lanes.store(c));
            let sum = |i: usize| (a[i] + b[i]) + c[i];
            *product = DVec3::new(sum(0), sum(1), sum(2)) + *product;
        }
        products
    }
}

/// The products of a run of rows.
struct Product<'a, const N: usize> {
    matrix: Entries<'a>,
    x: [&'a [DVec3]; N],
    y: [&'a mut [DVec3]; N],
    run: Range<usize>,
}

impl<const N: usize> Kernel for Product<'_, N> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let Self {
            matrix,
            x,
            mut y,
            run,
        } = self;
        let row = |starts: &[u32], row: usize| starts[row] as usize..starts[row + 1] as usize;
        for (at, index) in run.enumerate() {
            let near = row(matrix.block_starts, index);
            let far = row(matrix.scalar_starts, index);
            let products = matrix.row_parts(lanes, near, far, x, 0);
            for (y, product) in y.iter_mut().zip(products) {
                y[at] = product;
            }
        }
    }
}

/// The entries of some rows of a [`BlockMatrix`].
#[derive(Debug)]
pub struct MatrixRows<'m> {
    first_block: usize,
    first_scalar: usize,
    blocks: &'m mut [f64],
    scalars: &'m mut [f64],
}

impl MatrixRows<'_> {
    /// Sets every entry to zero.
    pub fn clear(&mut self) {
        self.blocks.fill(0.0);
        self.scalars.fill(0.0);
    }

    /// Adds to a block.
    ///
    /// # Panics
    /// If the slot is of another row.
    #[inline]
    pub fn add_block(&mut self, slot: BlockSlot, block: &DMat3) {
        let start = 9 * (slot.0 as usize - self.first_block);
        for (entry, value) in self.blocks[start..start + 9]
            .iter_mut()
            .zip(block.to_cols_array())
        {
            *entry += value;
        }
    }

    /// All blocks by columns, and all scalars, in the order of the pattern: for loops that write
    /// every one.
    #[inline]
    pub(crate) fn numbers_mut(&mut self) -> (&mut [[f64; 9]], &mut [f64]) {
        (self.blocks.as_chunks_mut().0, self.scalars)
    }

    /// Adds a scalar times identity.
    ///
    /// # Panics
    /// If the slot is of another row.
    #[inline]
    pub fn add_scalar(&mut self, slot: ScalarSlot, value: f64) {
        match slot.0 {
            ScalarPlace::Scalar(at) => self.scalars[at as usize - self.first_scalar] += value,
            ScalarPlace::Block(block) => {
                let start = 9 * (block.0 as usize - self.first_block);
                for axis in 0..3 {
                    self.blocks[start + 4 * axis] += value;
                }
            }
        }
    }
}

/// Extends the last run by a row, or begins a new one.
fn push_run(runs: &mut Vec<Range<usize>>, row: usize) {
    match runs.last_mut() {
        Some(last) if last.end == row => last.end += 1,
        _ => runs.push(row..row + 1),
    }
}

fn as_u32(count: usize) -> Result<u32, PatternError> {
    u32::try_from(count).map_err(|_| PatternError::TooLarge { entries: count })
}

/// How many bytes ahead blocks are asked for: by themselves processors look ahead less far, and not
/// across pages of 4 KiB.
pub(super) const AHEAD: usize = 4096;

/// Numbers read beyond the last block.
pub(super) const PADDING: usize = 1;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solve::testing::{Noise, Sheet};

    #[test]
    fn the_product_is_that_of_the_dense_matrix() {
        let sheet = Sheet::new(9, 4);
        let system = sheet.system(1, 0, 11);
        let dense = sheet.dense(11);
        let mut noise = Noise::new(4);
        let x: Vec<DVec3> = (0..81).map(|_| noise.vector()).collect();
        let flat: Vec<f64> = x.iter().flat_map(|v| v.to_array()).collect();
        let mut y = vec![DVec3::ZERO; 81];
        system.matrix.multiply(&x, &mut y, Rows::All);
        for (row, y) in y.iter().enumerate() {
            for axis in 0..3 {
                let exact: f64 = dense[3 * row + axis]
                    .iter()
                    .zip(&flat)
                    .map(|(a, x)| a * x)
                    .sum();
                assert!(
                    (y[axis] - exact).abs() < 1e-12 * exact.abs().max(1.0),
                    "row {row}"
                );
            }
        }
    }

    #[test]
    fn every_row_has_the_same_bits_on_any_number_of_ranks() {
        let sheet = Sheet::new(24, 16);
        let mut noise = Noise::new(9);
        let x: Vec<DVec3> = (0..sheet.len()).map(|_| noise.vector()).collect();
        let mut alone = vec![DVec3::ZERO; sheet.len()];
        sheet
            .system(1, 0, 2)
            .matrix
            .multiply(&x, &mut alone, Rows::All);
        for ranks in [2, 3, 7, 16] {
            for rank in 0..ranks {
                let plan = sheet.plan(ranks, rank);
                let matrix = sheet.system(ranks, rank, 2).matrix;
                let read = plan.owned().chain(plan.halo().iter().map(|&v| v as usize));
                let mut local: Vec<DVec3> = read.map(|v| x[v]).collect();
                let mut y = vec![DVec3::NAN; plan.owned().len()];
                matrix.multiply(&local, &mut y, Rows::Border);
                // Interior rows read nothing of the halo.
                local[plan.owned().len()..].fill(DVec3::NAN);
                matrix.multiply(&local, &mut y, Rows::Interior);
                for (y, vertex) in y.iter().zip(plan.owned()) {
                    assert_eq!(
                        y.to_array().map(f64::to_bits),
                        alone[vertex].to_array().map(f64::to_bits)
                    );
                }
            }
        }
    }

    #[test]
    fn a_scalar_beside_a_block_is_added_into_it() {
        let sheet = Sheet::new(3, 1);
        let edges = |pairs: &[(u32, u32)]| Graph::from_edges(9, pairs.iter().copied()).unwrap();
        let (near, far) = (edges(&[(0, 1)]), edges(&[(0, 1), (0, 2)]));
        let plan = HaloPlan::new(&far, &sheet.ownership(1), 0).unwrap();
        let pattern = Pattern::new(&plan, &near, &far).unwrap();
        assert_eq!(pattern.entry_counts(), (9 + 2, 2));
        let mut matrix = BlockMatrix::new(pattern);
        for (column, value) in [(0, 1.0), (1, 2.0), (2, 3.0)] {
            let slot = matrix.pattern().scalar_slot(0, column).unwrap();
            matrix.add_scalar(slot, value);
        }
        assert_eq!(matrix.diagonal_block(0), DMat3::IDENTITY);
        assert_eq!(
            matrix.block(matrix.pattern().block_slot(0, 1).unwrap()),
            2.0 * DMat3::IDENTITY
        );
        assert_eq!(*matrix.scalars, [3.0, 0.0]);
        assert_eq!(matrix.pattern().scalar_slot(0, 5), None);
        assert_eq!(matrix.pattern().scalar_slot(99, 0), None);
        matrix.clear();
        assert_eq!(matrix.diagonal_block(0), DMat3::ZERO);
    }

    #[test]
    fn a_plan_without_the_second_ring_is_refused() {
        let sheet = Sheet::new(8, 4);
        let plan = HaloPlan::new(&sheet.near, &sheet.ownership(2), 0).unwrap();
        assert!(matches!(
            Pattern::new(&plan, &sheet.near, &sheet.far),
            Err(PatternError::NotRead { .. })
        ));
    }

    #[test]
    fn the_row_that_is_not_finite_is_found() {
        let sheet = Sheet::new(5, 1);
        let mut matrix = sheet.system(1, 0, 1).matrix;
        assert_eq!(matrix.non_finite_row(), None);
        let slot = matrix.pattern().diagonal_slot(17);
        matrix.add_block(
            slot,
            &DMat3::from_diagonal(DVec3::new(0.0, f64::INFINITY, 0.0)),
        );
        assert_eq!(matrix.non_finite_row(), Some(17));
    }
}
