//! Fills a [`SymmetricCopy`] with the numbers of its matrix, rounded.
//!
//! A block behind the diagonal is stored by rows. The transposed block, on the other side of the
//! diagonal, has these rows as its columns, which is how the matrix stores blocks. So that one is
//! copied.

use std::ops::Range;
use std::sync::Arc;

use super::{Head, MOST_IN_PATCH, Outer, Patch, SymmetricCopy};
use crate::heap_bytes::{counts_heap, owns_no_heap};
use crate::simd::{Kernel, Lanes, widest};
use crate::solve::block_matrix::{BlockMatrix, BlockSlot, PADDING, Pattern};
use crate::solve::pages::Paged;
use crate::team::{Shares, parts};

/// The number of blocks ahead at which blocks are prefetched: transposed ones stand in no order
/// that a processor foresees.
const SOON: usize = 12;

/// The places in a matrix of the numbers that are copied.
#[derive(Clone, Debug, Default)]
pub(super) struct Sources {
    /// The pattern of the matrix that this was planned for.
    pattern: Option<Arc<Pattern>>,
    /// The place of the transposed block, for each block within patches.
    blocks: Vec<BlockSlot>,
    /// The place of the first scalar of each row, in the order of the heads.
    scalars: Vec<u32>,
    outer_blocks: Vec<BlockSlot>,
    outer_scalars: Vec<u32>,
}

counts_heap!(Sources: blocks, scalars, outer_blocks, outer_scalars; without pattern);

/// The sum that rounding takes away from the entries of a row.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Lost {
    /// The columns of a block, each with a fourth number that is not used.
    block: [[f64; 4]; 3],
    /// A multiple of the identity.
    scalar: f64,
}

owns_no_heap!(Lost);

/// The places of a row's entries that are in its patch behind the diagonal, and of those that lead
/// out of the patch.
struct Row {
    behind: Range<usize>,
    outside: Vec<u32>,
}

impl Row {
    /// Divides the entries at some places, whose columns are given as global numbers.
    fn new((at, columns): (Range<usize>, &[u32]), patch: &Range<usize>, row: usize) -> Self {
        let before =
            |vertex| at.start + columns.partition_point(|&column| (column as usize) < vertex);
        let [start, behind, end] = [patch.start, row + 1, patch.end].map(before);
        Self {
            behind: behind..end,
            // Entries are counted with 32 bits.
            outside: (at.start..start)
                .chain(end..at.end)
                .map(|at| at as u32)
                .collect(),
        }
    }
}

/// Room for the numbers of some patches.
struct Room<'a> {
    diagonals: &'a mut [f64],
    blocks: &'a mut [f32],
    scalars: &'a mut [f32],
    outer_blocks: &'a mut [f32],
    outer_scalars: &'a mut [f32],
}

impl SymmetricCopy {
    /// Copies the numbers of a matrix whose owned rows are cut into `patches`.
    pub(in crate::solve) fn fill(
        &mut self,
        matrix: &BlockMatrix,
        patches: &[Range<usize>],
        shares: &Shares,
    ) {
        let same = |planned: &Arc<Pattern>| {
            Arc::ptr_eq(planned, matrix.shared_pattern()) || **planned == *matrix.pattern()
        };
        let known = self.patches.iter().map(|patch| &patch.rows);
        let planned = self.sources.pattern.as_ref().is_some_and(same) && known.eq(patches);
        if !planned {
            self.plan(matrix, patches);
        }
        if !planned || self.at_hand.len() != shares.ranges.len() {
            self.make_room_for_threads(shares.ranges.len());
        }
        self.copy(matrix, shares);
    }

    /// Makes room for a matrix of this pattern.
    fn plan(&mut self, matrix: &BlockMatrix, patches: &[Range<usize>]) {
        let pattern = matrix.pattern();
        let (owned, first) = (pattern.row_count(), pattern.first_row() as usize);
        let of = matrix.entries();
        let mut outer = Outer {
            block_starts: vec![0],
            scalar_starts: vec![0],
            ..Outer::default()
        };
        let mut sources = Sources {
            pattern: Some(matrix.shared_pattern().clone()),
            ..Sources::default()
        };
        let (mut heads, mut near, mut far) = (Vec::new(), Vec::new(), Vec::new());
        self.patches.clear();
        for rows in patches {
            assert!(rows.len() <= MOST_IN_PATCH, "16 bits for a row of a patch");
            let mut patch = Patch {
                rows: rows.clone(),
                near: near.len()..0,
                far: far.len()..0,
                outer: outer.rows.len()..0,
                outer_near: outer.block_columns.len()..0,
                outer_far: outer.scalar_columns.len()..0,
                ..Patch::default()
            };
            let vertices = first + rows.start..first + rows.end;
            let mut of_patch = Vec::with_capacity(rows.len());
            let (mut inside, mut to_halo) = (Vec::new(), Vec::new());
            for row in rows.clone() {
                let blocks = Row::new(pattern.block_columns(row), &vertices, first + row);
                let scalars = Row::new(pattern.scalar_columns(row), &vertices, first + row);
                // The entries of a patch are counted with 16 bits, and so are those of a row in it.
                let head = Head {
                    row: (row - rows.start) as u16,
                    near: blocks.behind.len() as u16,
                    far: scalars.behind.len() as u16,
                };
                of_patch.push((head, blocks.behind, scalars.behind));
                let outside = (blocks.outside, scalars.outside);
                let columns = (outside.0.iter().map(|&at| of.block_columns[at as usize]))
                    .chain(outside.1.iter().map(|&at| of.scalar_columns[at as usize]));
                let last = columns.max();
                if last.is_some_and(|column| column as usize >= owned) {
                    to_halo.push((row, outside));
                } else if last.is_some() {
                    inside.push((row, outside));
                }
            }
            of_patch.sort_by_key(|(head, ..)| (head.near, head.far));
            for (head, blocks, scalars) in of_patch {
                heads.push(head);
                let row = first as u32 + (rows.start as u32 + u32::from(head.row));
                sources.scalars.push(scalars.start as u32);
                let place = |&column: &u32| (column as usize - rows.start) as u16;
                far.extend(of.scalar_columns[scalars].iter().map(place));
                for column in &of.block_columns[blocks] {
                    near.push(place(column));
                    let transposed = pattern.block_slot(*column as usize, row);
                    (sources.blocks).push(transposed.expect("graphs are symmetric"));
                }
            }
            patch.outer_to_halo = outer.rows.len() + inside.len();
            for (row, (blocks, scalars)) in inside.into_iter().chain(to_halo) {
                // The matrix has no fewer, and counts with 32 bits.
                outer.rows.push(row as u32);
                let columns = blocks.iter().map(|&at| of.block_columns[at as usize]);
                outer.block_columns.extend(columns);
                outer.block_starts.push(outer.block_columns.len() as u32);
                let columns = scalars.iter().map(|&at| of.scalar_columns[at as usize]);
                outer.scalar_columns.extend(columns);
                outer.scalar_starts.push(outer.scalar_columns.len() as u32);
                sources
                    .outer_blocks
                    .extend(blocks.into_iter().map(BlockSlot::at));
                sources.outer_scalars.extend(scalars);
            }
            patch.near.end = near.len();
            patch.far.end = far.len();
            patch.outer.end = outer.rows.len();
            patch.outer_near.end = outer.block_columns.len();
            patch.outer_far.end = outer.scalar_columns.len();
            self.patches.push(patch);
        }
        outer.blocks = Paged::zeros(9 * outer.block_columns.len() + PADDING);
        outer.scalars = Paged::zeros(outer.scalar_columns.len());
        self.outer = outer;
        self.sources = sources;
        self.heads = heads.as_slice().into();
        self.diagonals = Paged::zeros(9 * owned + PADDING);
        self.blocks = Paged::zeros(9 * near.len() + PADDING);
        self.block_columns = near.as_slice().into();
        self.scalars = Paged::zeros(far.len());
        self.scalar_columns = far.as_slice().into();
    }

    /// Copies the numbers of a matrix of the pattern that there is room for.
    fn copy(&mut self, matrix: &BlockMatrix, shares: &Shares) {
        let Self {
            patches,
            outer,
            heads,
            block_columns,
            scalar_columns,
            sources,
            at_hand,
            ..
        } = self;
        let (patches, sources) = (&*patches, &*sources);
        let (heads, near, far) = (&heads[..], &block_columns[..], &scalar_columns[..]);
        let (outer_rows, outer_near) = (&outer.rows[..], &outer.block_starts[..]);
        let outer_far = &outer.scalar_starts[..];
        let of = |range: fn(&Patch) -> &Range<usize>, times: usize| {
            let whole = move |share: &Range<usize>| {
                let (from, to) = (&patches[share.start], &patches[share.end - 1]);
                times * range(from).start..times * range(to).end
            };
            shares.ranges.iter().map(whole)
        };
        let inner = (parts(&mut self.blocks, of(|p| &p.near, 9)))
            .zip(parts(&mut self.scalars, of(|p| &p.far, 1)))
            .zip(parts(&mut self.diagonals, of(|p| &p.rows, 9)));
        let leading_out = (parts(&mut outer.blocks, of(|p| &p.outer_near, 9)))
            .zip(parts(&mut outer.scalars, of(|p| &p.outer_far, 1)));
        let work = (inner.zip(leading_out)).zip(shares.ranges.iter().zip(at_hand));
        shares.run(work, |((inner, leading_out), (share, at_hand))| {
            let ((blocks, scalars), diagonals) = inner;
            let (outer_blocks, outer_scalars) = leading_out;
            let mut room = Room {
                diagonals,
                blocks,
                scalars,
                outer_blocks,
                outer_scalars,
            };
            for patch in &patches[share.clone()] {
                let (near_at, far_at) = (patch.near.clone(), patch.far.clone());
                widest(Rounding {
                    matrix,
                    first_row: patch.rows.start,
                    heads: &heads[patch.rows.clone()],
                    near: (&near[near_at.clone()], &sources.blocks[near_at]),
                    far: (&far[far_at], &sources.scalars[patch.rows.clone()]),
                    outer_rows: &outer_rows[patch.outer.clone()],
                    outer_near: (
                        &outer_near[patch.outer.start..=patch.outer.end],
                        &sources.outer_blocks[patch.outer_near.clone()],
                    ),
                    outer_far: (
                        &outer_far[patch.outer.start..=patch.outer.end],
                        &sources.outer_scalars[patch.outer_far.clone()],
                    ),
                    room: &mut room,
                    lost: &mut at_hand.lost[..patch.rows.len()],
                });
            }
        });
    }
}

/// Copies the entries of the rows of a patch. Rows stand in the order of the heads.
struct Rounding<'a, 'r> {
    matrix: &'a BlockMatrix,
    /// The local index of the first one.
    first_row: usize,
    heads: &'a [Head],
    /// The columns and the places of all blocks, the columns of all scalars, and the place of each
    /// row's first scalar.
    near: (&'a [u16], &'a [BlockSlot]),
    far: (&'a [u16], &'a [u32]),
    /// Rows with entries that lead out of the patch, the starts of these entries, and the places of
    /// their numbers.
    outer_rows: &'a [u32],
    outer_near: (&'a [u32], &'a [BlockSlot]),
    outer_far: (&'a [u32], &'a [u32]),
    room: &'a mut Room<'r>,
    /// The losses of each row.
    lost: &'a mut [Lost],
}

impl Kernel for Rounding<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let (matrix, lost) = (self.matrix, self.lost);
        let numbers = matrix.entries().scalars;
        lost.fill(Lost::default());
        let mut near = self.near.0.iter().zip(self.near.1);
        let mut soon = self.near.1.iter().skip(SOON);
        let mut far = self.far.0.iter();
        for (head, &first) in self.heads.iter().zip(self.far.1) {
            let mut own = [lanes.splat(0.0); 3];
            for (&column, &source) in near.by_ref().take(usize::from(head.near)) {
                if let Some(&soon) = soon.next() {
                    let block = matrix.numbers(soon);
                    lanes.prefetch(block, 0);
                    lanes.prefetch(block, 64);
                }
                let rest = round(lanes, matrix.numbers(source), &mut self.room.blocks);
                for (own, rest) in own.iter_mut().zip(rest) {
                    *own = lanes.add(*own, rest);
                }
                // These are columns of the transposed block.
                lost[usize::from(column)].add(lanes, rest);
            }
            let mut scalar = 0.0;
            let from = &numbers[first as usize..][..usize::from(head.far)];
            for (&from, &column) in from.iter().zip(far.by_ref()) {
                let rest = round_scalar(from, &mut self.room.scalars);
                scalar += rest;
                lost[usize::from(column)].scalar += rest;
            }
            let lost = &mut lost[usize::from(head.row)];
            let [a, b, c] = own;
            let [a, b, c, _] = lanes.transposed([a, b, c, lanes.splat(0.0)]);
            lost.add(lanes, [a, b, c]);
            lost.scalar += scalar;
        }

        let (starts, sources) = self.outer_near;
        let mut sources = sources.iter();
        for (row, starts) in self.outer_rows.iter().zip(starts.array_windows()) {
            let [start, end] = starts.map(|start| start as usize);
            let lost = &mut lost[*row as usize - self.first_row];
            for &source in sources.by_ref().take(end - start) {
                let rest = round(lanes, matrix.numbers(source), &mut self.room.outer_blocks);
                lost.add(lanes, rest);
            }
        }
        let (starts, sources) = self.outer_far;
        let mut sources = sources.iter();
        for (row, starts) in self.outer_rows.iter().zip(starts.array_windows()) {
            let [start, end] = starts.map(|start| start as usize);
            let lost = &mut lost[*row as usize - self.first_row];
            for &source in sources.by_ref().take(end - start) {
                lost.scalar += round_scalar(numbers[source as usize], &mut self.room.outer_scalars);
            }
        }

        let to = first_of(&mut self.room.diagonals, 9 * self.heads.len());
        for (to, head) in to.as_chunks_mut::<9>().0.iter_mut().zip(self.heads) {
            let place = usize::from(head.row);
            let block = matrix.diagonal_block(self.first_row + place);
            let [x, y, z] = [block.x_axis, block.y_axis, block.z_axis];
            let Lost {
                block: [p, q, r],
                scalar,
            } = lost[place];
            // Only the upper triangle is read, as of the whole matrix.
            *to = [
                x.x + (p[0] + scalar),
                y.x + p[1],
                z.x + p[2],
                y.x + q[0],
                y.y + (q[1] + scalar),
                z.y + q[2],
                z.x + r[0],
                z.y + r[1],
                z.z + (r[2] + scalar),
            ];
        }
    }
}

/// Takes some elements away from the front of a slice.
#[inline(always)]
fn first_of<'a, T>(room: &mut &'a mut [T], count: usize) -> &'a mut [T] {
    let (first, rest) = std::mem::take(room).split_at_mut(count);
    *room = rest;
    first
}

/// Writes the columns of a block into the next room in single precision. The result is the part of
/// each column that is lost.
#[inline(always)]
fn round<L: Lanes>(lanes: L, block: &[f64; 10], room: &mut &mut [f32]) -> [L::Four; 3] {
    let [p @ .., _, _, _, _, _, _] = block;
    let [_, _, _, q @ .., _, _, _] = block;
    let [_, _, _, _, _, _, r @ ..] = block;
    let [p, q, r] = [lanes.load(p), lanes.load(q), lanes.load(r)];
    let [a, b, c] = [lanes.shortened(p), lanes.shortened(q), lanes.shortened(r)];
    let to = [a[0], a[1], a[2], b[0], b[1], b[2], c[0], c[1], c[2]];
    first_of(room, 9).copy_from_slice(&to);
    [
        lanes.subtract(p, lanes.load_short(&a)),
        lanes.subtract(q, lanes.load_short(&b)),
        lanes.subtract(r, lanes.load_short(&c)),
    ]
}

/// Writes a number into the next room in single precision. The result is the part of it that is
/// lost.
#[inline(always)]
fn round_scalar(from: f64, room: &mut &mut [f32]) -> f64 {
    let single = from as f32;
    first_of(room, 1)[0] = single;
    from - f64::from(single)
}

impl Lost {
    /// Adds columns of a block.
    #[inline(always)]
    fn add<L: Lanes>(&mut self, lanes: L, columns: [L::Four; 3]) {
        let [a, b, c] = &mut self.block;
        let [p, q, r] = columns;
        *a = lanes.store(lanes.add(lanes.load(a), p));
        *b = lanes.store(lanes.add(lanes.load(b), q));
        *c = lanes.store(lanes.add(lanes.load(c), r));
    }
}
