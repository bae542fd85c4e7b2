//! The factor of the coarse matrix: sparse Cholesky of 6x6 blocks.
//!
//! The factorisation is right-looking: when a column is finished, its products are subtracted from
//! the columns behind it, in ascending order. The order of sums and the use of fused operations
//! ([`super::padded`]) are fixed: every rank holds the whole factor, and ranks must agree on its
//! bits also where their processors differ. So no library that chooses its kernels at run time will
//! do.
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
//! If only a part of a solution is wanted, the backward substitution leaves out columns on which
//! that part does not depend.
//!
//! Modes may be missing: of an aggregate that is constrained, or whose vertices are on one line or
//! one point. A pivot that is tiny beside the entry it started from, or beside the largest of all,
//! is *dropped*, its row and column with it, and its part of the solution is zero. The system of
//! the other modes is solved then, and the operator stays symmetric and positive semidefinite.

use std::ops::Range;

use weft_partition::Graph;

use super::elimination::Elimination;
use super::padded::{self, Column, Eight, Padded, Short, ZERO, narrowed, padded, widened};
use super::six::{self, Block, Six};
use crate::heap_bytes::{counts_heap, owns_no_heap};
use crate::simd::{Kernel, Lanes, widest};

/// The factor: its pattern, which a mesh has once, and the numbers that solves read.
#[derive(Clone, Debug)]
pub(super) struct Cholesky {
    elimination: Elimination,
    /// The target of each block of the lower half of the matrix, in the order of [`LowerRows`].
    targets: Vec<Target>,
    /// Inverses of the factor's blocks on the diagonal, and the blocks below, both for solves.
    inverses: Vec<Short>,
    blocks: Vec<Short>,
    /// The columns that the wanted part of a solution depends on, the last one first.
    back: Vec<u32>,
    /// Right-hand side and solution in the order of elimination.
    solution: Vec<Eight>,
}

counts_heap!(Cholesky: elimination, targets, inverses, blocks, back, solution);

/// The modes that a factor leaves out, by their entries on the diagonal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dropped {
    /// Modes that are errors of rounding.
    Nothing,
    /// Modes that slanted constraints have nearly removed, too.
    Weak,
}

impl Dropped {
    /// The share of the largest entry up to which an entry is dropped.
    fn share(self) -> f64 {
        match self {
            Self::Nothing => NOTHING,
            Self::Weak => WEAK,
        }
    }
}

/// Room for the numbers of a factor while it is made; it serves one matrix after the other.
#[derive(Clone, Debug, Default)]
pub(super) struct Workspace {
    diagonal: Vec<Padded>,
    /// Inverse pivots; the ones that were dropped are zero.
    pivots: Vec<Six>,
    below: Vec<Padded>,
}

counts_heap!(Workspace: diagonal, pivots, below);

/// The blocks of the lower half of a symmetric block matrix, row by row: columns below the row's
/// own number, ascending, then the diagonal. Without rows nothing starts anywhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LowerRows {
    /// The starts of the blocks of each row; one more than there are rows.
    pub(super) starts: Vec<usize>,
    pub(super) columns: Vec<u32>,
}

counts_heap!(LowerRows: starts, columns);

/// The place in the factor that a block of the matrix starts from.
#[derive(Clone, Copy, Debug)]
enum Target {
    Diagonal(usize),
    Below(usize),
    /// Rows and columns change places: the row is eliminated before the column.
    Transposed(usize),
}

owns_no_heap!(Target);

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

    /// The place of a block of the lower half.
    pub(super) fn find(&self, row: usize, column: u32) -> Option<usize> {
        let own = self.row(row);
        let columns = &self.columns[own.clone()];
        columns.binary_search(&column).ok().map(|at| own.start + at)
    }
}

impl Cholesky {
    /// Makes the pattern of the factor of a matrix with blocks on the diagonal and for each edge.
    /// Only the `wanted` rows of solutions are computed.
    pub(super) fn new(graph: &Graph, lower: &LowerRows, wanted: Range<usize>) -> Self {
        let elimination = Elimination::new(graph);
        let mut targets = Vec::with_capacity(lower.columns.len());
        for (row, starts) in lower.starts.windows(2).enumerate() {
            for &column in &lower.columns[starts[0]..starts[1]] {
                let (i, j) = (
                    elimination.step_of[row],
                    elimination.step_of[column as usize],
                );
                let find = |i, j| {
                    elimination
                        .find(i, j)
                        .expect("the factor has every block of the matrix")
                };
                targets.push(match i.cmp(&j) {
                    std::cmp::Ordering::Equal => Target::Diagonal(i as usize),
                    std::cmp::Ordering::Greater => Target::Below(find(i, j)),
                    std::cmp::Ordering::Less => Target::Transposed(find(j, i)),
                });
            }
        }
        let count = graph.vertex_count();
        let mut needed = vec![false; count];
        for row in wanted {
            needed[elimination.step_of[row] as usize] = true;
        }
        for column in 0..count {
            if needed[column] {
                for &row in elimination.column(column) {
                    needed[row as usize] = true;
                }
            }
        }
        let back = (0..count as u32).rev();
        Self {
            back: back.filter(|&column| needed[column as usize]).collect(),
            targets,
            inverses: vec![[0.0; 40]; count],
            blocks: vec![[0.0; 40]; elimination.rows.len()],
            solution: vec![[0.0; 8]; count],
            elimination,
        }
    }

    /// Factors a matrix, given by the lower half as [`LowerRows`] has it, without the modes that
    /// `dropped` names. Only the lower half of blocks on the diagonal is read.
    pub(super) fn factor(&mut self, lower: &[Block], dropped: Dropped, workspace: &mut Workspace) {
        assert_eq!(lower.len(), self.targets.len(), "a matrix of this pattern");
        let Workspace {
            diagonal,
            pivots,
            below,
        } = workspace;
        diagonal.resize(self.inverses.len(), ZERO);
        below.clear();
        below.resize(self.blocks.len(), ZERO);
        for (target, block) in self.targets.iter().zip(lower) {
            match *target {
                Target::Diagonal(at) => diagonal[at] = padded(block),
                Target::Below(at) => below[at] = padded(block),
                Target::Transposed(at) => below[at] = padded(&six::transposed(block)),
            }
        }
        // Entries on the diagonal before elimination, with which pivots are compared.
        pivots.clear();
        pivots.extend(
            diagonal
                .iter()
                .map(|block| -> Six { std::array::from_fn(|c| block[c][c]) }),
        );
        let largest = pivots.as_flattened().iter().copied();
        let nothing = dropped.share() * largest.fold(0.0, f64::max);
        let factor = self;
        widest(Factoring {
            factor,
            workspace,
            nothing,
        });
    }

    /// Divides a column by its factored diagonal block, and subtracts its products from the columns
    /// behind it.
    #[inline(always)]
    fn finish_column(&mut self, lanes: impl Lanes, column: usize, workspace: &mut Workspace) {
        let Workspace {
            diagonal,
            pivots,
            below,
        } = workspace;
        let Elimination { starts, rows, .. } = &self.elimination;
        let own = starts[column]..starts[column + 1];
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
            let mut at = starts[target];
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

    /// Solves for one right-hand side, and writes the wanted rows of the solution.
    ///
    /// The result is the scalar product of right-hand side and solution over all rows. It is the
    /// squared norm of the forward substitution's result, so its bits do not depend on which rows
    /// are wanted.
    pub(super) fn solve(&mut self, rhs: &[Six], solution: &mut [Six]) -> f64 {
        for (x, &from) in self.solution.iter_mut().zip(&self.elimination.order) {
            *x = widened(rhs[from as usize]);
        }
        let energy = widest(Solving(self));
        for &column in &self.back {
            let row = self.elimination.order[column as usize] as usize;
            solution[row] = narrowed(self.solution[column as usize]);
        }
        energy
    }

    /// The work of a solve for the wanted rows, as a share of the work for all rows.
    pub(super) fn solve_share(&self) -> f64 {
        let column = |column: &u32| 1 + self.elimination.column(*column as usize).len();
        let (forth, back) = (
            self.block_count(),
            self.back.iter().map(column).sum::<usize>(),
        );
        (forth + back) as f64 / (2 * forth).max(1) as f64
    }

    /// The number of blocks of the factor.
    pub(super) fn block_count(&self) -> usize {
        self.inverses.len() + self.blocks.len()
    }
}

/// [`Cholesky::factor`] for blocks at their targets; pivots not above `nothing` are dropped.
struct Factoring<'a> {
    factor: &'a mut Cholesky,
    workspace: &'a mut Workspace,
    nothing: f64,
}

impl Kernel for Factoring<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let Self {
            factor,
            workspace,
            nothing,
        } = self;
        for column in 0..workspace.diagonal.len() {
            factor_block(
                lanes,
                &mut workspace.diagonal[column],
                &mut workspace.pivots[column],
                (TINY, nothing),
            );
            factor.finish_column(lanes, column, workspace);
        }
    }
}

/// [`Cholesky::solve`] in the order of elimination, in place.
struct Solving<'a>(&'a mut Cholesky);

impl Kernel for Solving<'_> {
    type Output = f64;

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> f64 {
        let Cholesky {
            elimination: Elimination { starts, rows, .. },
            inverses,
            blocks,
            back,
            solution: x,
            ..
        } = self.0;
        let mut energy = 0.0;
        for (column, inverse) in inverses.iter().enumerate() {
            let y = Column::product(lanes, inverse, &x[column]).eight();
            let squares = y.map(|y| y * y);
            energy +=
                ((squares[0] + squares[1]) + (squares[2] + squares[3])) + (squares[4] + squares[5]);
            x[column] = y;
            let y = y.map(|y| -y);
            let own = starts[column]..starts[column + 1];
            for (block, &row) in blocks[own.clone()].iter().zip(&rows[own]) {
                let x = &mut x[row as usize];
                *x = Column::of(lanes, x).with(block, &y).eight();
            }
        }
        let zero = [Column::of(lanes, &[0.0; 8]); 6];
        for column in back.iter().map(|&column| column as usize) {
            let mut sums = zero;
            let own = starts[column]..starts[column + 1];
            for (block, &row) in blocks[own.clone()].iter().zip(&rows[own]) {
                sums = Column::with_across(sums, block, Column::of(lanes, &x[row as usize]));
            }
            let rest = Column::of(lanes, &x[column]).minus(Column::across(sums));
            x[column] = Column::across(Column::with_across(zero, &inverses[column], rest)).eight();
        }
        energy
    }
}

/// Factors a block on the diagonal in place. `inverse` holds the entries that its pivots started
/// from, and becomes the inverse pivots. A pivot is dropped if it is at most `tiny` times that
/// entry, or at most `nothing`; below it are zeros then.
#[inline(always)]
fn factor_block(
    lanes: impl Lanes,
    block: &mut Padded,
    inverse: &mut Six,
    (tiny, nothing): (f64, f64),
) {
    for c in 0..6 {
        let pivot = block[c][c];
        // NaN is not greater, and is dropped too.
        inverse[c] = if pivot > nothing.max(tiny * inverse[c].abs()) {
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
/// The share of the largest entry below which an entry on the diagonal is the square of a rounding
/// error: it belongs to a mode that slanted constraints remove but for such an error.
const NOTHING: f64 = 1e-20;
/// The share of the largest entry below which an entry on the diagonal belongs to a mode that
/// multiplies the rounding of a residual by more than a solve can bear where constraints hold with
/// great forces: by 10⁷ and more.
const WEAK: f64 = 1e-14;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::solve::testing::Noise;

    /// Makes a random symmetric matrix on a graph, as its lower half and in full: G Gᵀ of random
    /// blocks, one on each vertex and two on each edge, so that it is positive definite.
    fn matrix(graph: &Graph, seed: u64) -> (LowerRows, Vec<Block>, Vec<Vec<f64>>) {
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

    fn blocks_of(rows: &LowerRows, dense: &[Vec<f64>]) -> Vec<Block> {
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
    fn residual(dense: &[Vec<f64>], x: &[f64], b: &[f64], i: usize) -> (f64, f64) {
        let product: f64 = dense[i].iter().zip(x).map(|(a, x)| a * x).sum();
        let large = |j: usize| (dense[i][i] * dense[j][j]).sqrt() * x[j].abs();
        let bound: f64 = (0..x.len()).map(large).sum();
        (
            (product - b[i]).abs(),
            3.0 * f64::from(f32::EPSILON) * bound,
        )
    }

    fn sixes(values: &[f64]) -> Vec<Six> {
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
            let mut cholesky = Cholesky::new(&graph, &rows, 0..vertices as usize);
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
            // A part of the solution alone has the same bits.
            let part = vertices as usize / 3..vertices as usize / 2 + 1;
            let mut cholesky = Cholesky::new(&graph, &rows, part.clone());
            cholesky.factor(&blocks_of(&rows, &dense), Dropped::Nothing, &mut Workspace::default());
            let mut alone = vec![[f64::NAN; 6]; vertices as usize];
            cholesky.solve(&sixes(&rhs), &mut alone);
            prop_assert_eq!(&alone[part.clone()], &solution[part]);
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
        let mut cholesky = Cholesky::new(&graph, &rows, 0..3);
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
