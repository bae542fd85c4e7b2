//! The product with half of a large matrix: what two vertices of a patch couple by is read once.
//!
//! The product is limited by the bytes of the matrix, and the matrix is symmetric. Of an entry and the transposed one in the
//! same patch only the one behind the diagonal is kept here, and used for both rows. What leads out of the patch, a few
//! entries in a hundred, is kept on both sides. So patches write only what is theirs, and threads and ranks need not agree
//! about sums.
//!
//! A row is added up in this order, which patches alone define, and so has the same bits on any number of ranks and threads:
//! the diagonal, blocks in the patch by ascending columns, scalars in the patch by ascending columns, and at last the
//! sum of what leads out of it.
//!
//! It is another order than that of [`BlockMatrix::multiply`], and what stands before the diagonal is never read: which of the
//! two products a solve uses must not depend on ranks ([`pays`]).
//!
//! Entries of a patch are gone through one after the other, whatever row they are of: rows have one to six entries behind
//! the diagonal, and a loop over those would end where the processor does not expect it, which costs more than adding to memory.
//!
//! They are copied from the whole matrix, which assembly and preconditioners want, once a solve.

use std::ops::Range;

use glam::DVec3;

use super::block_jacobi::multiply;
use super::block_matrix::{AHEAD, BlockMatrix, Entries, PADDING};
use super::pages::Paged;
use crate::simd::{Lanes, Loop, widest};
use crate::team::{Shares, parts};

/// Whether a product with half of the matrix is the faster: for so many vertices, in patches of at most so many.
pub(super) fn pays(vertices: usize, largest_patch: usize) -> bool {
    vertices >= FEWEST_VERTICES && largest_patch <= MOST_IN_PATCH
}

/// Where reading the matrix begins to take longer than computing with it. Measured on one machine; a part of what defines results.
const FEWEST_VERTICES: usize = 30_000;

/// Rows and columns within a patch have 16 bits.
const MOST_IN_PATCH: usize = 1 << 16;

/// Half of the owned rows of a matrix.
#[derive(Clone, Debug, Default)]
pub(super) struct Half {
    patches: Vec<Patch>,
    /// How many blocks and scalars the matrix has that there is room for.
    entries: (usize, usize),
    /// Diagonal blocks of all rows, the upper triangle: xx, xy, xz, yy, yz, zz.
    diagonals: Paged<[f64; 6]>,
    /// Blocks of patches by columns, nine numbers each, and [`PADDING`].
    blocks: Paged<f64>,
    /// Row and column of each in its patch.
    block_places: Paged<[u16; 2]>,
    scalars: Paged<f64>,
    scalar_places: Paged<[u16; 2]>,
    outer: Outer,
    /// Of each thread, what is read and written of the patch at hand.
    cells: Vec<Vec<Cell>>,
}

/// A vertex of the patch at hand. One line of the cache: four numbers on the border of two take twice as long.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct Cell {
    x: [f64; 4],
    /// What was added up of its row.
    y: [f64; 4],
}

/// Where the entries of a patch stand.
#[derive(Clone, Debug, Default)]
struct Patch {
    rows: Range<usize>,
    near: Range<usize>,
    far: Range<usize>,
    /// Of rows with entries that lead out of the patch; those that read the halo follow those that do not.
    outer: Range<usize>,
    outer_to_halo: usize,
    outer_near: Range<usize>,
    outer_far: Range<usize>,
}

impl Patch {
    /// Whether a row of it does.
    fn reads_halo(&self) -> bool {
        self.outer_to_halo < self.outer.end
    }

    /// Its part of a vector of so many elements.
    fn part<'y>(&self, y: &'y mut [DVec3], elements: &Range<usize>) -> &'y mut [DVec3] {
        &mut y[self.rows.start - elements.start..self.rows.end - elements.start]
    }
}

/// What leads out of patches.
#[derive(Clone, Debug, Default)]
struct Outer {
    rows: Vec<u32>,
    block_starts: Vec<u32>,
    block_columns: Vec<u32>,
    blocks: Paged<f64>,
    scalar_starts: Vec<u32>,
    scalar_columns: Vec<u32>,
    scalars: Paged<f64>,
}

/// Where the entries of a row stand that are in its patch behind the diagonal, and those that lead out of it.
struct Row {
    behind: Range<usize>,
    outside: [Range<usize>; 2],
}

impl Row {
    /// Of the entries at some places with columns given as global numbers.
    fn new((at, columns): (Range<usize>, &[u32]), patch: &Range<usize>, row: usize) -> Self {
        let before = |vertex: usize| {
            at.start + columns.partition_point(|&column| (column as usize) < vertex)
        };
        let [start, behind, end] = [patch.start, row + 1, patch.end].map(before);
        Self {
            behind: behind..end,
            outside: [at.start..start, end..at.end],
        }
    }
}

impl Half {
    /// Takes over the numbers of a matrix whose owned rows are cut into `patches`.
    pub(super) fn fill(&mut self, matrix: &BlockMatrix, patches: &[Range<usize>], shares: &Shares) {
        if !self.copy(matrix, patches, shares) {
            self.plan(matrix, patches);
            let largest = patches.iter().map(Range::len).max().unwrap_or(0);
            self.cells = vec![vec![Cell::default(); largest]; shares.ranges.len()];
            let fits = self.copy(matrix, patches, shares);
            assert!(fits, "planned for this matrix");
        }
    }

    /// Makes room for a matrix of this pattern.
    fn plan(&mut self, matrix: &BlockMatrix, patches: &[Range<usize>]) {
        let pattern = matrix.pattern();
        let (owned, first) = (pattern.row_count(), pattern.first_row() as usize);
        let Entries {
            block_columns,
            scalar_columns,
            ..
        } = matrix.entries();
        let mut outer = Outer {
            block_starts: vec![0],
            scalar_starts: vec![0],
            ..Outer::default()
        };
        let (mut near, mut far) = (0, 0);
        self.patches.clear();
        for rows in patches {
            assert!(rows.len() <= MOST_IN_PATCH, "16 bits for a row of a patch");
            let mut patch = Patch {
                rows: rows.clone(),
                near: near..near,
                far: far..far,
                outer: outer.rows.len()..0,
                outer_near: outer.block_columns.len()..0,
                outer_far: outer.scalar_columns.len()..0,
                ..Patch::default()
            };
            let vertices = first + rows.start..first + rows.end;
            let mut to_halo = Vec::new();
            for row in rows.clone() {
                let blocks = Row::new(pattern.block_columns(row), &vertices, first + row);
                let scalars = Row::new(pattern.scalar_columns(row), &vertices, first + row);
                near += blocks.behind.len();
                far += scalars.behind.len();
                let [a, b] = blocks.outside;
                let blocks = [&block_columns[a], &block_columns[b]].concat();
                let [a, b] = scalars.outside;
                let scalars = [&scalar_columns[a], &scalar_columns[b]].concat();
                if blocks.iter().chain(&scalars).any(|&c| c as usize >= owned) {
                    to_halo.push((row, blocks, scalars));
                } else if !(blocks.is_empty() && scalars.is_empty()) {
                    outer.push(row, &blocks, &scalars);
                }
            }
            patch.outer_to_halo = outer.rows.len();
            for (row, blocks, scalars) in to_halo {
                outer.push(row, &blocks, &scalars);
            }
            patch.near.end = near;
            patch.far.end = far;
            patch.outer.end = outer.rows.len();
            patch.outer_near.end = outer.block_columns.len();
            patch.outer_far.end = outer.scalar_columns.len();
            self.patches.push(patch);
        }
        outer.blocks = Paged::zeros(9 * outer.block_columns.len() + PADDING);
        outer.scalars = Paged::zeros(outer.scalar_columns.len());
        self.outer = outer;
        self.entries = pattern.entry_counts();
        self.diagonals = Paged::zeros(owned);
        self.blocks = Paged::zeros(9 * near + PADDING);
        self.block_places = Paged::zeros(near);
        self.scalars = Paged::zeros(far);
        self.scalar_places = Paged::zeros(far);
    }

    /// Copies the numbers; `false` if the matrix is not of the pattern that there is room for, or other threads share it.
    fn copy(&mut self, matrix: &BlockMatrix, patches: &[Range<usize>], shares: &Shares) -> bool {
        let known = self.patches.iter().map(|patch| &patch.rows);
        if !known.eq(patches)
            || self.entries != matrix.pattern().entry_counts()
            || self.cells.len() != shares.ranges.len()
        {
            return false;
        }
        let Self { patches, outer, .. } = self;
        let patches = &*patches;
        let of = |range: fn(&Patch) -> &Range<usize>, times: usize| {
            let whole = move |share: &Range<usize>| {
                let (from, to) = (&patches[share.start], &patches[share.end - 1]);
                times * range(from).start..times * range(to).end
            };
            shares.ranges.iter().map(whole)
        };
        let mut fits = vec![false; shares.ranges.len()];
        let inner = (parts(&mut self.blocks, of(|p| &p.near, 9)))
            .zip(parts(&mut self.block_places, of(|p| &p.near, 1)))
            .zip(parts(&mut self.scalars, of(|p| &p.far, 1)))
            .zip(parts(&mut self.scalar_places, of(|p| &p.far, 1)))
            .zip(parts(&mut self.diagonals, of(|p| &p.rows, 1)));
        let leading_out = (parts(&mut outer.blocks, of(|p| &p.outer_near, 9)))
            .zip(parts(&mut outer.scalars, of(|p| &p.outer_far, 1)));
        let work = (inner.zip(leading_out)).zip(shares.ranges.iter().zip(&mut fits));
        let (outer_rows, near, far) = (&outer.rows, &outer.block_columns, &outer.scalar_columns);
        shares.run(work, |((inner, outer), (share, fits))| {
            let patches = &patches[share.clone()];
            *fits = copy_inner(matrix, patches, inner).is_some()
                && copy_outer(matrix, patches, (outer_rows, near, far), outer).is_some();
        });
        fits.into_iter().all(|fits| fits)
    }

    /// `y = A x`, but in rows that read the halo only what is in their patch. `y` is of the owned rows.
    ///
    /// Of each patch none of whose rows does, `done` is given the vertices, its part of `y`, and its element of `of_patches`.
    pub(super) fn multiply_interior<T: Send>(
        &mut self,
        x: &[DVec3],
        (y, of_patches): (&mut [DVec3], &mut [T]),
        shares: &Shares,
        done: impl Fn(Range<usize>, &mut [DVec3], &mut T) + Sync,
    ) {
        let work = (parts(y, &shares.elements).zip(parts(of_patches, &shares.ranges)))
            .zip(&mut self.cells)
            .zip(shares.elements.iter().zip(&shares.ranges));
        shares.run(work, |(((y, of_patches), cells), (elements, share))| {
            for (patch, of_patch) in self.patches[share.clone()].iter().zip(of_patches) {
                let (near, far) = (patch.near.clone(), patch.far.clone());
                widest(Inner {
                    diagonals: &self.diagonals[patch.rows.clone()],
                    blocks: &self.blocks[9 * near.start..9 * near.end + PADDING],
                    block_places: &self.block_places[near],
                    scalars: &self.scalars[far.clone()],
                    scalar_places: &self.scalar_places[far],
                    x: &x[patch.rows.clone()],
                    y: patch.part(y, elements),
                    cells: &mut cells[..patch.rows.len()],
                });
                let at = patch.outer.start..patch.outer_to_halo;
                self.outer.multiply(at, x, (y, elements.start));
                if !patch.reads_halo() {
                    done(patch.rows.clone(), patch.part(y, elements), of_patch);
                }
            }
        });
    }

    /// Adds what leads out of their patch in rows that read the halo; `done` as before, of the patches that have such rows.
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

    /// Bytes read for a product, without the vectors.
    pub(super) fn bytes(&self) -> usize {
        let outer = &self.outer;
        48 * self.diagonals.len()
            + 76 * self.block_places.len()
            + 12 * self.scalar_places.len()
            + 12 * outer.rows.len()
            + 76 * outer.block_columns.len()
            + 12 * outer.scalar_columns.len()
    }
}

impl Outer {
    fn push(&mut self, row: usize, near: &[u32], far: &[u32]) {
        // Not more than the matrix has, which counts with 32 bits.
        self.rows.push(row as u32);
        self.block_columns.extend(near);
        self.block_starts.push(self.block_columns.len() as u32);
        self.scalar_columns.extend(far);
        self.scalar_starts.push(self.scalar_columns.len() as u32);
    }

    /// Adds the rows at some places to `y`, whose first is of the given row.
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

    fn entries(&self) -> Entries<'_> {
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

/// Room for what patches couple within: blocks and scalars with their places, and diagonal blocks.
type InnerRoom<'a> = (
    (
        ((&'a mut [f64], &'a mut [[u16; 2]]), &'a mut [f64]),
        &'a mut [[u16; 2]],
    ),
    &'a mut [[f64; 6]],
);

/// Copies what rows couple within their patch; `None` if there is another number of it.
fn copy_inner(matrix: &BlockMatrix, patches: &[Patch], room: InnerRoom<'_>) -> Option<()> {
    let ((((mut blocks, mut block_places), mut scalars), mut scalar_places), diagonals) = room;
    let (pattern, entries) = (matrix.pattern(), matrix.entries());
    let first = pattern.first_row() as usize;
    let diagonals = &mut diagonals.iter_mut();
    let behind_patches = patches.last().map(|last| (last.near.end, last.far.end));
    let (near_end, far_end) = behind_patches?;
    for (patch, row, last) in patches.iter().flat_map(|patch| {
        let end = patch.rows.end;
        (patch.rows.clone()).map(move |row| (patch, row, row + 1 == end))
    }) {
        let vertices = first + patch.rows.start..first + patch.rows.end;
        // Fit in 16 bits, as patches do.
        let place = |column: u32| {
            [row - patch.rows.start, column as usize - vertices.start].map(|i| i as u16)
        };

        let block = matrix.diagonal_block(row);
        let [x, y, z] = [block.x_axis, block.y_axis, block.z_axis];
        // The upper triangle, as of all the matrix.
        *diagonals.next()? = [x.x, y.x, z.x, y.y, z.y, z.z];

        let (at, columns) = pattern.block_columns(row);
        let Row { behind, .. } = Row::new((at.clone(), columns), &vertices, first + row);
        let from = &entries.blocks[9 * behind.start..9 * behind.end];
        blocks.split_off_mut(..from.len())?.copy_from_slice(from);
        for &column in &columns[behind.start - at.start..behind.end - at.start] {
            *block_places.split_off_first_mut()? = place(column);
        }

        let (at, columns) = pattern.scalar_columns(row);
        let Row { behind, .. } = Row::new((at.clone(), columns), &vertices, first + row);
        let from = &entries.scalars[behind.clone()];
        scalars.split_off_mut(..from.len())?.copy_from_slice(from);
        for &column in &columns[behind.start - at.start..behind.end - at.start] {
            *scalar_places.split_off_first_mut()? = place(column);
        }
        let left = (near_end - patch.near.end, far_end - patch.far.end);
        if last && (block_places.len(), scalar_places.len()) != left {
            return None;
        }
    }
    Some(())
}

/// Copies what leads out of patches; `None` if it leads elsewhere than planned.
fn copy_outer(
    matrix: &BlockMatrix,
    patches: &[Patch],
    (rows, near, far): (&[u32], &[u32], &[u32]),
    (mut blocks, mut scalars): (&mut [f64], &mut [f64]),
) -> Option<()> {
    let (pattern, entries) = (matrix.pattern(), matrix.entries());
    let first = pattern.first_row() as usize;
    for patch in patches {
        let vertices = first + patch.rows.start..first + patch.rows.end;
        let (mut near, mut far) = (
            &near[patch.outer_near.clone()],
            &far[patch.outer_far.clone()],
        );
        for &row in &rows[patch.outer.clone()] {
            let row = row as usize;
            let of = Row::new(pattern.block_columns(row), &vertices, first + row);
            for run in of.outside {
                let from = &entries.blocks[9 * run.start..9 * run.end];
                blocks.split_off_mut(..from.len())?.copy_from_slice(from);
                near = near.strip_prefix(&entries.block_columns[run])?;
            }
            let of = Row::new(pattern.scalar_columns(row), &vertices, first + row);
            for run in of.outside {
                let from = &entries.scalars[run.clone()];
                scalars.split_off_mut(..from.len())?.copy_from_slice(from);
                far = far.strip_prefix(&entries.scalar_columns[run])?;
            }
        }
        if !(near.is_empty() && far.is_empty()) {
            return None;
        }
    }
    Some(())
}

/// The product of the rows of a patch with the vector in it.
struct Inner<'a> {
    diagonals: &'a [[f64; 6]],
    blocks: &'a [f64],
    block_places: &'a [[u16; 2]],
    scalars: &'a [f64],
    scalar_places: &'a [[u16; 2]],
    x: &'a [DVec3],
    y: &'a mut [DVec3],
    cells: &'a mut [Cell],
}

impl Loop for Inner<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let cells = self.cells;
        for ((cell, x), diagonal) in cells.iter_mut().zip(self.x).zip(self.diagonals) {
            let y = multiply(diagonal, *x);
            cell.x = [x.x, x.y, x.z, 0.0];
            cell.y = [y.x, y.y, y.z, 0.0];
        }
        let blocks = self.blocks.array_windows::<10>().step_by(9);
        for (block, &[row, column]) in blocks.zip(self.block_places) {
            lanes.prefetch(block, AHEAD);
            lanes.prefetch(block, AHEAD + 64);
            let [p @ .., _, _, _, _, _, _] = block;
            let [_, _, _, q @ .., _, _, _] = block;
            let [_, _, _, _, _, _, r @ ..] = block;
            let [p, q, r] = [p, q, r].map(|column| lanes.load(column));

            let [a, b, c, _] = cells[column as usize].x;
            let forward = lanes.multiply(p, lanes.splat(a));
            let forward = lanes.add_product(forward, q, lanes.splat(b));
            let forward = lanes.add_product(forward, r, lanes.splat(c));
            let cell = &mut cells[row as usize];
            let x = lanes.load(&cell.x);
            cell.y = lanes.store(lanes.add(lanes.load(&cell.y), forward));

            // What is in the fourth lane of a column is times zero.
            let back = lanes.sums([p, q, r].map(|column| lanes.multiply(column, x)));
            let cell = &mut cells[column as usize];
            cell.y = lanes.store(lanes.add(lanes.load(&cell.y), back));
        }
        for (&value, &[row, column]) in self.scalars.iter().zip(self.scalar_places) {
            let value = lanes.splat(value);
            let x = lanes.load(&cells[column as usize].x);
            let cell = &mut cells[row as usize];
            let own = lanes.load(&cell.x);
            cell.y = lanes.store(lanes.add_product(lanes.load(&cell.y), value, x));
            let cell = &mut cells[column as usize];
            cell.y = lanes.store(lanes.add_product(lanes.load(&cell.y), value, own));
        }
        for (y, cell) in self.y.iter_mut().zip(cells) {
            *y = DVec3::new(cell.y[0], cell.y[1], cell.y[2]);
        }
    }
}

/// Adds what leads out of a patch to some of its rows.
struct Across<'a> {
    matrix: Entries<'a>,
    /// The rows as local indices, and where they stand among those that the entries are of.
    rows: (&'a [u32], Range<usize>),
    x: &'a [DVec3],
    y: &'a mut [DVec3],
    /// The row that `y` begins with.
    first: usize,
}

impl Loop for Across<'_> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solve::testing::{Noise, Sheet};
    use crate::solve::{Reduction, Rows};
    use crate::team::Team;

    /// The product on so many ranks with so many threads each; `x` is of all vertices.
    fn product(sheet: &Sheet, ranks: usize, threads: usize, x: &[DVec3]) -> Vec<DVec3> {
        let team = Team::new(threads).unwrap();
        let of_rank = |rank| {
            let plan = sheet.plan(ranks, rank);
            let matrix = sheet.system(ranks, rank, 2).matrix;
            let reduction = Reduction::new(&sheet.tree, &sheet.ownership(ranks), rank);
            let reduction = reduction.with_team(&team);
            let mut half = Half::default();
            half.fill(&matrix, reduction.patches(), reduction.shares());
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
            half.multiply_interior(&early, (&mut y, &mut done), shares, count);
            half.multiply_border(&local, (&mut y, &mut done), shares, count);
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
    fn the_product_is_that_of_the_whole_matrix() {
        for patches in [1, 16] {
            let sheet = Sheet::new(24, patches);
            let x = noise(&sheet);
            let mut whole = vec![DVec3::ZERO; sheet.len()];
            (sheet.system(1, 0, 2).matrix).multiply(&x, &mut whole, Rows::All);
            for (y, whole) in product(&sheet, 1, 1, &x).iter().zip(&whole) {
                assert!((*y - *whole).length() < 1e-13 * whole.length().max(1.0));
            }
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
        let mut half = Half::default();
        for sheet in [Sheet::new(12, 4), Sheet::torn(12, 4, 5), Sheet::new(9, 4)] {
            let x = noise(&sheet);
            let matrix = sheet.system(1, 0, 2).matrix;
            let reduction = Reduction::new(&sheet.tree, &sheet.ownership(1), 0);
            half.fill(&matrix, reduction.patches(), reduction.shares());
            let mut y = vec![DVec3::NAN; sheet.len()];
            let mut none = vec![(); reduction.patches().len()];
            half.multiply_interior(&x, (&mut y, &mut none), reduction.shares(), |_, _, ()| ());
            let mut whole = vec![DVec3::NAN; sheet.len()];
            matrix.multiply(&x, &mut whole, Rows::All);
            for (y, whole) in y.iter().zip(&whole) {
                assert!((*y - *whole).length() < 1e-13 * whole.length().max(1.0));
            }
        }
    }
}
