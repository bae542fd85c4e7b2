//! The factor of a matrix of 6x6 blocks, or of the part of it that is eliminated: sparse Cholesky.
//!
//! The factorisation is right-looking: when a column is finished, its products are subtracted from
//! the columns behind it, in ascending order. The order of sums and the use of fused operations
//! ([`super::padded`]) are fixed: several ranks hold the same factor, and ranks must agree on its
//! bits also where their processors differ. So no library that chooses its kernels at run time will
//! do.
//!
//! Unknowns may be kept ([`Elimination`]). Elimination leaves the Schur complement in their
//! columns, which [`super::nested`] takes to the next matrix.
//!
//! Solves read the factor rounded to f32 and compute in f64. An iteration of the conjugate
//! gradients reads the whole factor in the forward and again in the backward substitution, and its
//! time is that of reading bytes. Blocks on the diagonal are inverted as they are factored, since a
//! product is faster than a substitution with six numbers that depend on each other. The backward
//! substitution reads the same blocks: it multiplies their columns, in lanes, with the part of the
//! solution below, and sums lanes once for a column. So the operator stays symmetric and positive
//! semidefinite. It is the inverse of a matrix whose entries are off by about 10⁻⁷ of themselves,
//! which a preconditioner may be.
//!
//! Modes may be missing: of an aggregate that is constrained, or whose vertices are on one line or
//! one point. A pivot that is tiny beside the entry it started from, or beside what the entry would
//! be without constraints, is *dropped*, its row and column with it, and its part of the solution
//! is zero. The system of the other modes is solved then, and the operator stays symmetric and
//! positive semidefinite.

use std::ops::Range;

use weft_partition::Graph;

use super::elimination::{Elimination, Target};
use super::padded::{self, Column, Eight, Padded, Short, ZERO, narrowed, padded, widened};
use super::six::{self, Block, Six};
use crate::heap_bytes::counts_heap;
use crate::simd::{Kernel, Lanes, widest};

/// The factor of a matrix of which nothing is kept: its pattern, which a mesh has once, and the
/// numbers that solves read.
#[derive(Clone, Debug)]
pub(super) struct Cholesky {
    elimination: Elimination,
    /// The target of each block of the matrix.
    targets: Vec<Target>,
    /// Inverses of the factor's blocks on the diagonal, and the blocks below, both for solves.
    inverses: Vec<Short>,
    blocks: Vec<Short>,
    /// Right-hand side and solution in the order of elimination.
    solution: Vec<Eight>,
}

counts_heap!(Cholesky: elimination, targets, inverses, blocks, solution);

/// The modes that a factor leaves out, by their entries on the diagonal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dropped {
    /// Modes that are errors of rounding.
    Nothing,
    /// Modes that slanted constraints have nearly removed, too.
    Weak,
}

impl Dropped {
    /// The values up to which pivots are dropped that start from a block on the diagonal, where
    /// entries may be as large as `scale`.
    pub(super) fn limits(self, diagonal: &Six, scale: f64) -> Six {
        let share = match self {
            Self::Nothing => NOTHING,
            Self::Weak => WEAK,
        };
        diagonal.map(|entry| (share * scale).max(TINY * entry.abs()))
    }
}

/// Room for the numbers of a matrix while it is factored; it serves one after the other.
#[derive(Clone, Debug, Default)]
pub(super) struct Workspace {
    pub(super) diagonal: Vec<Padded>,
    pub(super) below: Vec<Padded>,
    /// The values up to which pivots are dropped.
    pub(super) limits: Vec<Six>,
    /// Inverse pivots; the ones that were dropped are zero.
    pivots: Vec<Six>,
}

counts_heap!(Workspace: diagonal, below, limits, pivots);

impl Workspace {
    /// Begins with a matrix of this pattern, all zeros.
    pub(super) fn clear(&mut self, of: &Elimination) {
        self.diagonal.clear();
        self.diagonal.resize(of.order.len(), ZERO);
        self.below.clear();
        self.below.resize(of.rows.len(), ZERO);
        self.limits.clear();
        self.limits.resize(of.order.len(), [0.0; 6]);
        self.pivots.resize(of.order.len(), [0.0; 6]);
    }
}

/// The blocks of the lower half of a symmetric block matrix, row by row: columns below the row's
/// own number, ascending, then the diagonal. Without rows nothing starts anywhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LowerRows {
    /// The starts of the blocks of each row; one more than there are rows.
    pub(super) starts: Vec<usize>,
    pub(super) columns: Vec<u32>,
}

counts_heap!(LowerRows: starts, columns);

impl LowerRows {
    pub(super) fn new(graph: &Graph) -> Self {
        let mut starts = vec![0];
        let mut columns = Vec::new();
        for row in graph.vertices() {
            columns.extend(graph.neighbours(row).iter().filter(|&&column| column < row));
            columns.push(row);
            starts.push(columns.len());
        }
        Self { starts, columns }
    }

    /// Adds the rows of a matrix that stands beside this one on the diagonal.
    pub(super) fn append(&mut self, other: &Self) {
        let (rows, blocks) = (self.starts.len().saturating_sub(1), self.columns.len());
        self.starts.truncate(rows);
        self.starts
            .extend(other.starts.iter().map(|start| blocks + start));
        self.columns
            .extend(other.columns.iter().map(|column| rows as u32 + column));
    }

    /// The blocks of a row.
    pub(super) fn row(&self, row: usize) -> Range<usize> {
        self.starts[row]..self.starts[row + 1]
    }

    /// The row and the column of each block of some rows.
    pub(super) fn pairs(&self, rows: Range<usize>) -> impl Iterator<Item = (u32, u32)> {
        rows.flat_map(|row| {
            let columns = self.columns[self.row(row)].iter();
            columns.map(move |&column| (row as u32, column))
        })
    }

    /// The place of a block of the lower half.
    pub(super) fn find(&self, row: usize, column: u32) -> Option<usize> {
        let own = self.row(row);
        let columns = &self.columns[own.clone()];
        columns.binary_search(&column).ok().map(|at| own.start + at)
    }
}

impl Cholesky {
    /// Makes room for the factor of a matrix under this elimination, with these blocks, each given
    /// by its row and its column.
    pub(super) fn new(
        elimination: Elimination,
        blocks: impl IntoIterator<Item = (u32, u32)>,
    ) -> Self {
        Self {
            targets: elimination.targets(blocks),
            inverses: vec![[0.0; 40]; elimination.eliminated],
            blocks: vec![[0.0; 40]; elimination.blocks_eliminated()],
            solution: vec![[0.0; 8]; elimination.order.len()],
            elimination,
        }
    }

    /// Factors a matrix, given by its blocks, without the modes that `dropped` names.
    pub(super) fn factor(&mut self, blocks: &[Block], dropped: Dropped, workspace: &mut Workspace) {
        place(&self.elimination, &self.targets, blocks, workspace);
        let Workspace {
            diagonal, limits, ..
        } = workspace;
        let entries = |block: &Padded| -> Six { std::array::from_fn(|c| block[c][c]) };
        let largest = diagonal.iter().flat_map(entries).fold(0.0, f64::max);
        for (limits, block) in limits.iter_mut().zip(diagonal.iter()) {
            *limits = dropped.limits(&entries(block), largest);
        }
        let into = (&mut self.inverses[..], &mut self.blocks[..]);
        eliminate(&self.elimination, into, workspace);
    }

    /// Solves for one right-hand side. The result is the scalar product of right-hand side and
    /// solution.
    pub(super) fn solve(&mut self, rhs: &[Six], solution: &mut [Six]) -> f64 {
        for (x, &from) in self.solution.iter_mut().zip(&self.elimination.order) {
            *x = widened(rhs[from as usize]);
        }
        let columns = Columns {
            starts: &self.elimination.starts,
            rows: &self.elimination.rows,
            inverses: &self.inverses,
            blocks: &self.blocks,
        };
        let energy = widest(Solving(columns, &mut self.solution));
        for (x, &to) in self.solution.iter().zip(&self.elimination.order) {
            solution[to as usize] = narrowed(*x);
        }
        energy
    }
}

/// Puts the blocks of a matrix in their places. Only the lower half of blocks on the diagonal is
/// read.
pub(super) fn place(
    elimination: &Elimination,
    targets: &[Target],
    blocks: &[Block],
    workspace: &mut Workspace,
) {
    assert_eq!(blocks.len(), targets.len(), "a matrix of this pattern");
    workspace.clear(elimination);
    let Workspace {
        diagonal, below, ..
    } = workspace;
    for (target, block) in targets.iter().zip(blocks) {
        match *target {
            Target::Diagonal(at) => diagonal[at as usize] = padded(block),
            Target::Below(at) => below[at as usize] = padded(block),
            Target::Transposed(at) => below[at as usize] = padded(&six::transposed(block)),
        }
    }
}

/// Factors the columns that are eliminated, and leaves the Schur complement in the others. The
/// inverses of blocks on the diagonal and the blocks below, of these columns, are what solves read.
pub(super) fn eliminate(
    elimination: &Elimination,
    (inverses, blocks): (&mut [Short], &mut [Short]),
    workspace: &mut Workspace,
) {
    widest(Factoring {
        elimination,
        inverses,
        blocks,
        workspace,
    });
}

/// [`eliminate`].
struct Factoring<'a> {
    elimination: &'a Elimination,
    inverses: &'a mut [Short],
    blocks: &'a mut [Short],
    workspace: &'a mut Workspace,
}

impl Kernel for Factoring<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(mut self, lanes: L) {
        for column in 0..self.elimination.eliminated {
            let Workspace {
                diagonal,
                limits,
                pivots,
                ..
            } = &mut *self.workspace;
            factor_block(
                lanes,
                &mut diagonal[column],
                &limits[column],
                &mut pivots[column],
            );
            self.finish_column(lanes, column);
        }
    }
}

impl Factoring<'_> {
    /// Divides a column by its factored diagonal block, and subtracts its products from the columns
    /// behind it.
    #[inline(always)]
    fn finish_column(&mut self, lanes: impl Lanes, column: usize) {
        let Workspace {
            diagonal,
            pivots,
            below,
            ..
        } = &mut *self.workspace;
        let Elimination { starts, rows, .. } = self.elimination;
        let own = starts[column] as usize..starts[column + 1] as usize;
        let (done, behind) = below.split_at_mut(own.end);
        let blocks = &mut done[own.start..];
        let rows_here = &rows[own.clone()];
        let inverse = inverted(&diagonal[column], &pivots[column]);
        padded::shorten(lanes, &inverse, &mut self.inverses[column]);
        for (block, short) in blocks.iter_mut().zip(&mut self.blocks[own.clone()]) {
            padded::divide(lanes, block, &diagonal[column], &pivots[column]);
            padded::shorten(lanes, block, short);
        }
        for (first, &target) in rows_here.iter().enumerate() {
            let target = target as usize;
            let by = &blocks[first];
            padded::subtract_products(lanes, [&mut diagonal[target]], [by], by);
            // The rows of both columns ascend, and the target has all rows of the source.
            let mut at = starts[target] as usize;
            let mut place = |row: u32| {
                while rows[at] < row {
                    at += 1;
                }
                at - own.end
            };
            // Two targets at once read the block that multiplies both only once.
            let (pairs, last) = blocks[first + 1..].as_chunks::<2>();
            let (row_pairs, last_row) = rows_here[first + 1..].as_chunks::<2>();
            for ([a, b], both) in pairs.iter().zip(row_pairs) {
                let [one, other] = both.map(&mut place);
                let (before, from_other) = behind.split_at_mut(other);
                let targets = [&mut before[one], &mut from_other[0]];
                padded::subtract_products(lanes, targets, [a, b], by);
            }
            if let ([a], [row]) = (last, last_row) {
                let target = &mut behind[place(*row)];
                padded::subtract_products(lanes, [target], [a], by);
            }
        }
    }
}

/// Columns of a factor, as substitutions read them: `starts` counts from its first number on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Columns<'a> {
    pub(super) starts: &'a [u32],
    pub(super) rows: &'a [u32],
    pub(super) inverses: &'a [Short],
    pub(super) blocks: &'a [Short],
}

impl Columns<'_> {
    /// The place of a column's rows and blocks.
    #[inline(always)]
    fn own(&self, column: usize) -> Range<usize> {
        let first = self.starts[0];
        (self.starts[column] - first) as usize..(self.starts[column + 1] - first) as usize
    }

    /// The forward substitution with the right-hand side in place. The numbers of what is kept,
    /// behind the columns, are the right side of the Schur complement then. The result is the
    /// squared norm of the other part: the product of right-hand side and solution, as far as it is
    /// of what was eliminated.
    #[inline(always)]
    pub(super) fn forward(self, lanes: impl Lanes, x: &mut [Eight]) -> f64 {
        let mut energy = 0.0;
        for (column, inverse) in self.inverses.iter().enumerate() {
            let y = Column::product(lanes, inverse, &x[column]).eight();
            let squares = y.map(|y| y * y);
            energy +=
                ((squares[0] + squares[1]) + (squares[2] + squares[3])) + (squares[4] + squares[5]);
            x[column] = y;
            let y = y.map(|y| -y);
            let own = self.own(column);
            for (block, &row) in self.blocks[own.clone()].iter().zip(&self.rows[own]) {
                let x = &mut x[row as usize];
                *x = Column::of(lanes, x).with(block, &y).eight();
            }
        }
        energy
    }

    /// The backward substitution, once the solution of what is kept is in its place.
    #[inline(always)]
    pub(super) fn backward(self, lanes: impl Lanes, x: &mut [Eight]) {
        let zero = [Column::of(lanes, &[0.0; 8]); 6];
        for (column, inverse) in self.inverses.iter().enumerate().rev() {
            let mut sums = zero;
            let own = self.own(column);
            for (block, &row) in self.blocks[own.clone()].iter().zip(&self.rows[own]) {
                sums = Column::with_across(sums, block, Column::of(lanes, &x[row as usize]));
            }
            let rest = Column::of(lanes, &x[column]).minus(Column::across(sums));
            x[column] = Column::across(Column::with_across(zero, inverse, rest)).eight();
        }
    }
}

/// [`Cholesky::solve`] in the order of elimination, in place.
struct Solving<'a>(Columns<'a>, &'a mut [Eight]);

impl Kernel for Solving<'_> {
    type Output = f64;

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> f64 {
        let Self(columns, x) = self;
        let energy = columns.forward(lanes, x);
        columns.backward(lanes, x);
        energy
    }
}

/// Factors a block on the diagonal in place, and finds the inverse pivots. A pivot is dropped that
/// is not above its limit; below it are zeros then.
#[inline(always)]
fn factor_block(lanes: impl Lanes, block: &mut Padded, limits: &Six, inverse: &mut Six) {
    for c in 0..6 {
        let pivot = block[c][c];
        // NaN is not greater, and is dropped too.
        inverse[c] = if pivot > limits[c] {
            1.0 / pivot.sqrt()
        } else {
            0.0
        };
        let (done, behind) = block.split_at_mut(c + 1);
        let own = Column::of(lanes, &done[c]).times(inverse[c]);
        done[c] = own.eight();
        for (d, column) in (c + 1..6).zip(behind) {
            *column = Column::of(lanes, column)
                .plus_product(own, -done[c][d])
                .eight();
        }
    }
}

/// Computes the inverse of a factored block on the diagonal, by columns; it is zero where pivots
/// were dropped.
#[inline(always)]
fn inverted(block: &Padded, inverse: &Six) -> Padded {
    let mut columns = ZERO;
    for (of, column) in columns.iter_mut().enumerate() {
        column[of] = inverse[of];
        for c in of..6 {
            let y = if c == of {
                column[c]
            } else {
                column[c] * inverse[c]
            };
            column[c] = y;
            for r in c + 1..6 {
                column[r] -= block[c][r] * y;
            }
        }
    }
    columns
}

/// The share of its first value below which a pivot is an error of rounding, and its mode is
/// missing.
const TINY: f64 = 1e-12;
/// The share of a scale of entries below which one on the diagonal is the square of a rounding
/// error: it belongs to a mode that slanted constraints remove but for such an error.
const NOTHING: f64 = 1e-20;
/// The share of that scale below which an entry on the diagonal belongs to a mode that multiplies
/// the rounding of a residual by more than a solve can bear where constraints hold with great
/// forces: by 10⁷ and more.
const WEAK: f64 = 1e-14;

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::solve::testing::Noise;

    /// Makes a random symmetric matrix on a graph, as its lower half and in full: G Gᵀ of random
    /// blocks, one on each vertex and two on each edge, so that it is positive definite.
    pub(in crate::solve::coarse) fn matrix(
        graph: &Graph,
        seed: u64,
    ) -> (LowerRows, Vec<Block>, Vec<Vec<f64>>) {
        let mut noise = Noise::new(seed);
        let size = 6 * graph.vertex_count();
        let mut dense = vec![vec![0.0; size]; size];
        let mut add = |ends: &[usize]| {
            let columns: Vec<Vec<f64>> = (0..6)
                .map(|_| (0..6 * ends.len()).map(|_| noise.number()).collect())
                .collect();
            let at = |i: usize| 6 * ends[i / 6] + i % 6;
            for column in columns {
                for i in 0..column.len() {
                    for j in 0..column.len() {
                        dense[at(i)][at(j)] += column[i] * column[j];
                    }
                }
            }
        };
        for v in graph.vertices() {
            add(&[v as usize]);
            for &w in graph.neighbours(v) {
                add(&[v as usize, w as usize]);
            }
        }
        for (i, line) in dense.iter_mut().enumerate() {
            line[i] += 0.5;
        }
        let rows = LowerRows::new(graph);
        (rows.clone(), blocks_of(&rows, &dense), dense)
    }

    pub(in crate::solve::coarse) fn blocks_of(rows: &LowerRows, dense: &[Vec<f64>]) -> Vec<Block> {
        let mut blocks = Vec::new();
        for row in 0..rows.starts.len() - 1 {
            for &column in &rows.columns[rows.starts[row]..rows.starts[row + 1]] {
                let column = 6 * column as usize;
                blocks.push(std::array::from_fn(|c| {
                    std::array::from_fn(|r| dense[6 * row + r][column + c])
                }));
            }
        }
        blocks
    }

    /// The distance of `A x` from `b`, divided by the bound of errors that rounding the factor
    /// causes:
    /// |L| |Lᵀ| |x| times the precision of f32, where an entry of |L| |Lᵀ| is at most √(a_ii a_jj).
    pub(in crate::solve::coarse) fn residual(
        dense: &[Vec<f64>],
        x: &[f64],
        b: &[f64],
        i: usize,
    ) -> (f64, f64) {
        let product: f64 = dense[i].iter().zip(x).map(|(a, x)| a * x).sum();
        let large = |j: usize| (dense[i][i] * dense[j][j]).sqrt() * x[j].abs();
        let bound: f64 = (0..x.len()).map(large).sum();
        (
            (product - b[i]).abs(),
            3.0 * f64::from(f32::EPSILON) * bound,
        )
    }

    fn whole(graph: &Graph, rows: &LowerRows) -> Cholesky {
        let elimination = Elimination::new(graph, |_| false);
        Cholesky::new(elimination, rows.pairs(0..graph.vertex_count()))
    }

    pub(in crate::solve::coarse) fn sixes(values: &[f64]) -> Vec<Six> {
        values.as_chunks::<6>().0.to_vec()
    }

    fn graph(vertices: u32, edges: &[(u32, u32)]) -> Graph {
        let edges = edges
            .iter()
            .map(|&(a, b)| (a % vertices, b % vertices))
            .filter(|(a, b)| a != b);
        Graph::from_edges(vertices as usize, edges).unwrap()
    }

    proptest! {
        #[test]
        fn solutions_solve_the_system(
            vertices in 1_u32..9,
            edges in prop::collection::vec((0_u32..9, 0_u32..9), 0..14),
            seed in any::<u64>(),
            missing in prop::collection::vec(0_usize..54, 0..6),
        ) {
            let graph = graph(vertices, &edges);
            let (rows, _, mut dense) = matrix(&graph, seed);
            // Missing modes have zeros in their rows and columns.
            let missing: Vec<usize> =
                missing.into_iter().filter(|&mode| mode < dense.len()).collect();
            for &mode in &missing {
                dense[mode].fill(0.0);
                dense.iter_mut().for_each(|line| line[mode] = 0.0);
            }
            let mut noise = Noise::new(seed ^ 1);
            let rhs: Vec<f64> = (0..dense.len()).map(|_| noise.number()).collect();
            let mut cholesky = whole(&graph, &rows);
            cholesky.factor(&blocks_of(&rows, &dense), Dropped::Nothing, &mut Workspace::default());
            let mut solution = vec![[f64::NAN; 6]; vertices as usize];
            cholesky.solve(&sixes(&rhs), &mut solution);
            let flat = solution.as_flattened();
            for (i, x) in flat.iter().enumerate() {
                if missing.contains(&i) {
                    prop_assert_eq!(*x, 0.0);
                    continue;
                }
                let (off, bound) = residual(&dense, flat, &rhs, i);
                prop_assert!(off < bound + 1e-12, "row {i}: {off}, more than {bound}");
            }
        }
    }

    /// A mode that is a combination of others is dropped, and the system of the others is solved
    /// exactly.
    #[test]
    fn a_mode_that_others_make_up_is_dropped() {
        let graph = graph(3, &[(0, 1), (1, 2)]);
        let (rows, _, mut dense) = matrix(&graph, 4);
        // Mode 9 becomes the sum of modes 6 and 7 of the same vertex.
        for line in &mut dense {
            line[9] = line[6] + line[7];
        }
        dense[9] = (0..18).map(|j| dense[6][j] + dense[7][j]).collect();
        let rhs: Vec<f64> = dense.iter().map(|line| line[6] - line[1]).collect();
        let mut cholesky = whole(&graph, &rows);
        let mut workspace = Workspace::default();
        cholesky.factor(&blocks_of(&rows, &dense), Dropped::Nothing, &mut workspace);
        let mut solution = vec![[0.0; 6]; 3];
        cholesky.solve(&sixes(&rhs), &mut solution);
        let flat = solution.as_flattened();
        assert_eq!(
            workspace
                .pivots
                .as_flattened()
                .iter()
                .filter(|&&p| p == 0.0)
                .count(),
            1
        );
        for i in 0..dense.len() {
            let (off, bound) = residual(&dense, flat, &rhs, i);
            assert!(off < bound, "row {i}: {off}, more than {bound}");
        }
    }
}
