//! Takes over the numbers of a matrix as [`Half`] of it, rounded.

use std::ops::Range;

use super::{Half, Head, MOST_IN_PATCH, Outer, Patch};
use crate::simd::{Lanes, Loop, widest};
use crate::solve::block_matrix::{BlockMatrix, PADDING};
use crate::solve::pages::Paged;
use crate::team::{Shares, parts};

/// Where the entries of a row stand that are in its patch behind the diagonal, and those that lead out of it.
struct Row {
    behind: Range<usize>,
    outside: [Range<usize>; 2],
}

impl Row {
    /// Of the entries at some places with columns given as global numbers.
    fn new((at, columns): (Range<usize>, &[u32]), patch: &Range<usize>, row: usize) -> Self {
        // Few enough to be looked through.
        let before = |vertex: usize| {
            let before = columns
                .iter()
                .map(|&column| usize::from((column as usize) < vertex));
            at.start + before.sum::<usize>()
        };
        let [start, behind, end] = [patch.start, row + 1, patch.end].map(before);
        Self {
            behind: behind..end,
            outside: [at.start..start, end..at.end],
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
    /// By rows of a patch, what rounding takes away from the entries of each: the columns of a block, and a fourth number of no use.
    lost: Vec<[[f64; 4]; 3]>,
}

impl Half {
    /// Takes over the numbers of a matrix whose owned rows are cut into `patches`.
    pub(in crate::solve) fn fill(
        &mut self,
        matrix: &BlockMatrix,
        patches: &[Range<usize>],
        shares: &Shares,
    ) {
        if !self.copy(matrix, patches, shares) {
            self.plan(matrix, patches);
            let largest = patches.iter().map(Range::len).max().unwrap_or(0);
            self.cells = vec![vec![Default::default(); largest]; shares.ranges.len()];
            let fits = self.copy(matrix, patches, shares);
            assert!(fits, "planned for this matrix");
        }
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
            let mut to_halo = Vec::new();
            for row in rows.clone() {
                let blocks = Row::new(pattern.block_columns(row), &vertices, first + row);
                let scalars = Row::new(pattern.scalar_columns(row), &vertices, first + row);
                // What a patch has fits in 16 bits, and so does what a row has of it.
                let head = Head {
                    row: (row - rows.start) as u16,
                    near: blocks.behind.len() as u16,
                    far: scalars.behind.len() as u16,
                };
                of_patch.push((head, blocks.behind, scalars.behind));
                let [a, b] = blocks.outside;
                let blocks = [&of.block_columns[a], &of.block_columns[b]].concat();
                let [a, b] = scalars.outside;
                let scalars = [&of.scalar_columns[a], &of.scalar_columns[b]].concat();
                if blocks.iter().chain(&scalars).any(|&c| c as usize >= owned) {
                    to_halo.push((row, blocks, scalars));
                } else if !(blocks.is_empty() && scalars.is_empty()) {
                    outer.push(row, &blocks, &scalars);
                }
            }
            of_patch.sort_by_key(|(head, ..)| (head.near, head.far));
            for (head, blocks, scalars) in of_patch {
                heads.push(head);
                let place = |&column: &u32| (column as usize - rows.start) as u16;
                near.extend(of.block_columns[blocks].iter().map(place));
                far.extend(of.scalar_columns[scalars].iter().map(place));
            }
            patch.outer_to_halo = outer.rows.len();
            for (row, blocks, scalars) in to_halo {
                outer.push(row, &blocks, &scalars);
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
        self.entries = pattern.entry_counts();
        self.heads = heads.as_slice().into();
        self.diagonals = Paged::zeros(9 * owned + PADDING);
        self.blocks = Paged::zeros(9 * near.len() + PADDING);
        self.block_columns = near.as_slice().into();
        self.scalars = Paged::zeros(far.len());
        self.scalar_columns = far.as_slice().into();
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
        let Self {
            patches,
            outer,
            heads,
            block_columns,
            scalar_columns,
            ..
        } = self;
        let planned = Planned {
            heads,
            near: block_columns,
            far: scalar_columns,
            outer_rows: &outer.rows,
            outer_near: &outer.block_columns,
            outer_far: &outer.scalar_columns,
        };
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
            .zip(parts(&mut self.scalars, of(|p| &p.far, 1)))
            .zip(parts(&mut self.diagonals, of(|p| &p.rows, 9)));
        let leading_out = (parts(&mut outer.blocks, of(|p| &p.outer_near, 9)))
            .zip(parts(&mut outer.scalars, of(|p| &p.outer_far, 1)));
        let work = (inner.zip(leading_out)).zip(shares.ranges.iter().zip(&mut fits));
        shares.run(work, |((inner, outer), (share, fits))| {
            let ((blocks, scalars), diagonals) = inner;
            let (outer_blocks, outer_scalars) = outer;
            let mut room = Room {
                diagonals,
                blocks,
                scalars,
                outer_blocks,
                outer_scalars,
                lost: Vec::new(),
            };
            let patches = &patches[share.clone()];
            let copied: Option<()> = (patches.iter())
                .map(|patch| {
                    let room = &mut room;
                    widest(Rounding {
                        planned,
                        matrix,
                        patch,
                        room,
                    })
                })
                .collect();
            *fits = copied.is_some();
        });
        fits.into_iter().all(|fits| fits)
    }
}

/// What was planned to stand where.
#[derive(Clone, Copy)]
struct Planned<'a> {
    heads: &'a [Head],
    near: &'a [u16],
    far: &'a [u16],
    outer_rows: &'a [u32],
    outer_near: &'a [u32],
    outer_far: &'a [u32],
}

/// Copies what the rows of a patch have; `None` if that is something else than planned.
struct Rounding<'a, 'r> {
    planned: Planned<'a>,
    matrix: &'a BlockMatrix,
    patch: &'a Patch,
    room: &'a mut Room<'r>,
}

impl Loop for Rounding<'_, '_> {
    type Output = Option<()>;

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> Option<()> {
        let Self {
            planned,
            matrix,
            patch,
            room,
        } = self;
        let (pattern, entries) = (matrix.pattern(), matrix.entries());
        let first = pattern.first_row() as usize;
        let vertices = first + patch.rows.start..first + patch.rows.end;
        room.lost.clear();
        room.lost.resize(patch.rows.len(), [[0.0; 4]; 3]);
        let lost = &mut room.lost[..];

        let heads = &planned.heads[patch.rows.clone()];
        let mut near = &planned.near[patch.near.clone()];
        let mut far = &planned.far[patch.far.clone()];
        for head in heads {
            let place = usize::from(head.row);
            let row = patch.rows.start + place;
            let of = Row::new(pattern.block_columns(row), &vertices, first + row);
            let columns = near.split_off(..usize::from(head.near))?;
            if !same(columns, &entries.block_columns[of.behind.clone()], patch) {
                return None;
            }
            let mut from = &entries.blocks[9 * of.behind.start..9 * of.behind.end + PADDING];
            for &column in columns {
                let block = from.first_chunk::<10>()?;
                from = &from[9..];
                let to = room.blocks.split_off_mut(..9)?.first_chunk_mut::<9>()?;
                let block = columns_of(lanes, block);
                // What is lost of a column here is lost of a row of the transposed block, and the other way round.
                let [a, b, c, _] =
                    lanes.transposed([block[0], block[1], block[2], lanes.splat(0.0)]);
                let rest = round(lanes, [a, b, c], to);
                add(lanes, &mut lost[usize::from(column)], rest);
                let rest = round(lanes, block, &mut [0.0; 9]);
                add(lanes, &mut lost[place], rest);
            }

            let of = Row::new(pattern.scalar_columns(row), &vertices, first + row);
            let columns = far.split_off(..usize::from(head.far))?;
            if !same(columns, &entries.scalar_columns[of.behind.clone()], patch) {
                return None;
            }
            let to = room.scalars.split_off_mut(..columns.len())?;
            let from = &entries.scalars[of.behind];
            for ((to, &from), &column) in to.iter_mut().zip(from).zip(columns) {
                *to = from as f32;
                let rest = from - f64::from(*to);
                add_scalar(&mut lost[place], rest);
                add_scalar(&mut lost[usize::from(column)], rest);
            }
        }

        let mut near = &planned.outer_near[patch.outer_near.clone()];
        let mut far = &planned.outer_far[patch.outer_far.clone()];
        for &row in &planned.outer_rows[patch.outer.clone()] {
            let row = row as usize;
            let lost = &mut lost[row - patch.rows.start];
            let of = Row::new(pattern.block_columns(row), &vertices, first + row);
            for run in of.outside {
                let mut from = &entries.blocks[9 * run.start..9 * run.end + PADDING];
                for _ in run.clone() {
                    let block = from.first_chunk::<10>()?;
                    from = &from[9..];
                    let to = room
                        .outer_blocks
                        .split_off_mut(..9)?
                        .first_chunk_mut::<9>()?;
                    let rest = round(lanes, columns_of(lanes, block), to);
                    add(lanes, lost, rest);
                }
                near = near.strip_prefix(&entries.block_columns[run])?;
            }
            let of = Row::new(pattern.scalar_columns(row), &vertices, first + row);
            for run in of.outside {
                let from = &entries.scalars[run.clone()];
                let to = room.outer_scalars.split_off_mut(..from.len())?;
                for (to, &from) in to.iter_mut().zip(from) {
                    *to = from as f32;
                    add_scalar(lost, from - f64::from(*to));
                }
                far = far.strip_prefix(&entries.scalar_columns[run])?;
            }
        }
        if !(near.is_empty() && far.is_empty()) {
            return None;
        }

        let to = room.diagonals.split_off_mut(..9 * heads.len())?;
        for (to, head) in to.as_chunks_mut::<9>().0.iter_mut().zip(heads) {
            let place = usize::from(head.row);
            let block = matrix.diagonal_block(patch.rows.start + place);
            let [x, y, z] = [block.x_axis, block.y_axis, block.z_axis];
            let [p, q, r] = lost[place];
            // The upper triangle, as of all the matrix.
            *to = [
                x.x + p[0],
                y.x + p[1],
                z.x + p[2],
                y.x + q[0],
                y.y + q[1],
                z.y + q[2],
                z.x + r[0],
                z.y + r[1],
                z.z + r[2],
            ];
        }
        Some(())
    }
}

/// Whether columns in a patch are those of the matrix, as local indices.
#[inline(always)]
fn same(columns: &[u16], of_matrix: &[u32], patch: &Patch) -> bool {
    columns.len() == of_matrix.len()
        && (columns.iter().zip(of_matrix)).all(|(&column, &of_matrix)| {
            patch.rows.start + usize::from(column) == of_matrix as usize
        })
}

/// The columns of a block, and in each a fourth number of no use.
#[inline(always)]
fn columns_of<L: Lanes>(lanes: L, block: &[f64; 10]) -> [L::Four; 3] {
    let [p @ .., _, _, _, _, _, _] = block;
    let [_, _, _, q @ .., _, _, _] = block;
    let [_, _, _, _, _, _, r @ ..] = block;
    [lanes.load(p), lanes.load(q), lanes.load(r)]
}

/// Writes short numbers, and answers what that takes away.
#[inline(always)]
fn round<L: Lanes>(lanes: L, [p, q, r]: [L::Four; 3], to: &mut [f32; 9]) -> [L::Four; 3] {
    let (a, b, c) = (lanes.shortened(p), lanes.shortened(q), lanes.shortened(r));
    *to = [a[0], a[1], a[2], b[0], b[1], b[2], c[0], c[1], c[2]];
    [
        lanes.subtract(p, lanes.load_short(&a)),
        lanes.subtract(q, lanes.load_short(&b)),
        lanes.subtract(r, lanes.load_short(&c)),
    ]
}

#[inline(always)]
fn add<L: Lanes>(lanes: L, sum: &mut [[f64; 4]; 3], [p, q, r]: [L::Four; 3]) {
    let [a, b, c] = sum;
    *a = lanes.store(lanes.add(lanes.load(a), p));
    *b = lanes.store(lanes.add(lanes.load(b), q));
    *c = lanes.store(lanes.add(lanes.load(c), r));
}

/// Adds a scalar times identity.
#[inline(always)]
fn add_scalar(sum: &mut [[f64; 4]; 3], value: f64) {
    let [[x, ..], [_, y, ..], [_, _, z, _]] = sum;
    for diagonal in [x, y, z] {
        *diagonal += value;
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
}
