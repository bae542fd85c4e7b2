//! The loops of a product with a [`SymmetricCopy`](super::SymmetricCopy) of a matrix.

use std::ops::Range;

use glam::DVec3;

use super::Head;
use crate::heap_bytes::owns_no_heap;
use crate::simd::{Kernel, Lanes};
use crate::solve::block_matrix::{AHEAD, Entries};

/// A vertex of the patch at hand. It fills one line of the cache: four numbers on the border of two
/// lines take twice as long.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
pub(super) struct Cell {
    x: [f64; 4],
    /// The sum of its row so far.
    y: [f64; 4],
}

owns_no_heap!(Cell);

/// The product of the rows of a patch with the vector in it.
pub(super) struct Inner<'a> {
    pub(super) heads: &'a [Head],
    pub(super) diagonals: &'a [f64],
    pub(super) blocks: &'a [f32],
    pub(super) block_columns: &'a [u16],
    pub(super) scalars: &'a [f32],
    pub(super) scalar_columns: &'a [u16],
    pub(super) x: &'a [DVec3],
    pub(super) y: &'a mut [DVec3],
    pub(super) cells: &'a mut [Cell],
    /// Room for `scalars` in double precision.
    pub(super) long_scalars: &'a mut [f64],
}

impl Kernel for Inner<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let cells = self.cells;
        for (cell, x) in cells.iter_mut().zip(self.x) {
            lanes.prefetch(x, AHEAD);
            cell.x = [x.x, x.y, x.z, 0.0];
            cell.y = [0.0; 4];
        }
        for (long, &single) in self.long_scalars.iter_mut().zip(self.scalars) {
            *long = f64::from(single);
        }
        // Entries are prefetched late: the cells of a patch fill the nearest cache. Four numbers
        // are read where a row or a column of a block has three. The fourth lane of a row is
        // multiplied with the zero of x, that of y is not used.
        let (mut blocks, mut block_columns) = (self.blocks, self.block_columns);
        let (mut scalars, mut scalar_columns) = (&*self.long_scalars, self.scalar_columns);
        let mut diagonals = self.diagonals;
        for head in self.heads {
            let Some(diagonal) = diagonals.first_chunk::<10>() else {
                break;
            };
            diagonals = &diagonals[9..];
            lanes.prefetch_late(diagonal, AHEAD);
            lanes.prefetch_late(diagonal, AHEAD + 64);
            let (near, far) = (usize::from(head.near), usize::from(head.far));
            let own = &cells[usize::from(head.row)].x;
            let [a, b, c] = [
                lanes.splat(own[0]),
                lanes.splat(own[1]),
                lanes.splat(own[2]),
            ];
            let own = lanes.load(own);
            let [p @ .., _, _, _, _, _, _] = diagonal;
            let [_, _, _, q @ .., _, _, _] = diagonal;
            let [_, _, _, _, _, _, r @ ..] = diagonal;
            let mut y = lanes.multiply(lanes.load(p), a);
            y = lanes.fused(y, lanes.load(q), b);
            y = lanes.fused(y, lanes.load(r), c);

            let mut rows = [lanes.splat(0.0); 3];
            let Some((columns, rest)) = block_columns.split_at_checked(near) else {
                break;
            };
            block_columns = rest;
            for &column in columns {
                let Some(block) = blocks.first_chunk::<10>() else {
                    break;
                };
                blocks = &blocks[9..];
                lanes.prefetch_late(block, AHEAD);
                let [p @ .., _, _, _, _, _, _] = block;
                let [_, _, _, q @ .., _, _, _] = block;
                let [_, _, _, _, _, _, r @ ..] = block;
                let (p, q, r) = (
                    lanes.load_short(p),
                    lanes.load_short(q),
                    lanes.load_short(r),
                );
                let cell = &mut cells[usize::from(column)];
                let x = lanes.load(&cell.x);
                rows[0] = lanes.fused(rows[0], p, x);
                rows[1] = lanes.fused(rows[1], q, x);
                rows[2] = lanes.fused(rows[2], r, x);
                let back = lanes.multiply(p, a);
                let back = lanes.fused(back, q, b);
                let back = lanes.fused(back, r, c);
                cell.y = lanes.store(lanes.add(lanes.load(&cell.y), back));
            }
            let Some((columns, rest)) = scalar_columns.split_at_checked(far) else {
                break;
            };
            scalar_columns = rest;
            let Some((values, rest)) = scalars.split_at_checked(far) else {
                break;
            };
            scalars = rest;
            for (&value, &column) in values.iter().zip(columns) {
                let value = lanes.splat(value);
                let cell = &mut cells[usize::from(column)];
                y = lanes.fused(y, value, lanes.load(&cell.x));
                cell.y = lanes.store(lanes.fused(lanes.load(&cell.y), value, own));
            }
            y = lanes.add(y, lanes.sums(rows));
            let cell = &mut cells[usize::from(head.row)];
            cell.y = lanes.store(lanes.add(lanes.load(&cell.y), y));
        }
        for (y, cell) in self.y.iter_mut().zip(cells) {
            lanes.prefetch(y, AHEAD);
            *y = DVec3::new(cell.y[0], cell.y[1], cell.y[2]);
        }
    }
}

/// Adds the entries that lead out of a patch to some of its rows.
pub(super) struct Across<'a> {
    pub(super) matrix: Entries<'a, f32>,
    /// The rows as local indices, and their places among the rows that lead out.
    pub(super) rows: (&'a [u32], Range<usize>),
    pub(super) x: &'a [DVec3],
    pub(super) y: &'a mut [DVec3],
    /// The row at which `y` begins.
    pub(super) first: usize,
}

impl Kernel for Across<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let Self {
            matrix,
            rows: (rows, at),
            x,
            y,
            first,
        } = self;
        let range = |starts: &[u32], at: usize| starts[at] as usize..starts[at + 1] as usize;
        for (&row, at) in rows.iter().zip(at) {
            let near = range(matrix.block_starts, at);
            let far = range(matrix.scalar_starts, at);
            y[row as usize - first] += matrix.row_part(lanes, near, far, x, 0);
        }
    }
}
