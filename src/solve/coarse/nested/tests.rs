use weft_partition::Graph;

use super::*;
use crate::solve::coarse::cholesky::tests::{blocks_of, matrix, residual, sixes};
use crate::solve::testing::{Noise, Sheet};

/// A random matrix on the aggregates of a sheet, in the order of its rows and in full.
struct Problem {
    sheet: Sheet,
    graph: Graph,
    lower: LowerRows,
    dense: Vec<Vec<f64>>,
    rhs: Vec<f64>,
}

impl Problem {
    fn new(sheet: Sheet) -> Self {
        let graph = sheet.aggregates.quotient(&sheet.all).unwrap();
        let (lower, _, dense) = matrix(&graph, 7);
        let mut noise = Noise::new(9);
        let rhs = (0..dense.len()).map(|_| noise.number()).collect();
        Self {
            sheet,
            graph,
            lower,
            dense,
            rhs,
        }
    }

    fn dissection(&self) -> Dissection {
        Dissection::new(&self.graph, &self.sheet.aggregates, self.sheet.tree.depth())
    }

    /// The aggregates that patches eliminate, and those that the root does.
    fn inside_and_between(&self) -> [Vec<u32>; 2] {
        let dissection = self.dissection();
        let depth = self.sheet.tree.depth();
        let eliminated = |node: Subtree| -> Vec<u32> {
            let front = dissection.front(node);
            let Elimination {
                order, eliminated, ..
            } = &front.elimination;
            let order = order[..*eliminated].iter();
            order.map(|&at| front.aggregates[at as usize]).collect()
        };
        let patches = 0..self.sheet.tree.patch_count();
        let inside = patches.flat_map(|index| {
            eliminated(Subtree {
                level: depth,
                index,
            })
        });
        [inside.collect(), eliminated(Subtree { level: 0, index: 0 })]
    }

    /// Removes a mode.
    fn remove(&mut self, mode: usize) {
        self.dense[mode].fill(0.0);
        self.dense.iter_mut().for_each(|line| line[mode] = 0.0);
    }

    /// Makes a mode the sum of two others, in the right side too, so that there are solutions.
    fn make_up(&mut self, mode: usize, others: [usize; 2]) {
        for line in &mut self.dense {
            line[mode] = others.iter().map(|&other| line[other]).sum();
        }
        self.dense[mode] = (0..self.dense.len())
            .map(|j| others.iter().map(|&other| self.dense[other][j]).sum())
            .collect();
        self.rhs[mode] = others.iter().map(|&other| self.rhs[other]).sum();
    }

    /// Solves on this many ranks: the solution, and its product with the right side.
    fn solve(&self, ranks: usize, short: bool) -> (Vec<Six>, f64) {
        let (aggregates, ownership) = (&self.sheet.aggregates, self.sheet.ownership(ranks));
        let dissection = self.dissection();
        let of_rank = |rank| Nested::new(&dissection, &self.lower, (aggregates, &ownership, rank));
        let mut all: Vec<Nested> = (0..ranks).map(of_rank).collect();
        let blocks = blocks_of(&self.lower, &self.dense);
        let scales: Vec<f64> = (0..aggregates.count())
            .map(|a| (0..6).map(|k| self.dense[6 * a + k][6 * a + k]).sum())
            .collect();
        let owned = |rank| aggregates.owned(&ownership, rank);
        let mut left = Vec::new();
        for (rank, nested) in all.iter_mut().enumerate() {
            let own = owned(rank);
            let rows = self.lower.starts[own.start]..self.lower.starts[own.end];
            let numbers = nested.factor_own(&blocks[rows], &scales[own], Dropped::Nothing);
            assert_eq!(Some(numbers.len()), nested.factor_counts().nth(rank));
            left.extend(numbers);
        }
        all.iter_mut().for_each(|nested| nested.factor_top(&left));
        let rhs = sixes(&self.rhs);
        let mut bytes = Vec::new();
        for (rank, nested) in all.iter_mut().enumerate() {
            let mut own = Vec::new();
            nested.forward_own(&rhs[owned(rank)], short, &mut own);
            assert_eq!(Some(own.len()), nested.solve_bytes(short).nth(rank));
            bytes.extend(own);
        }
        let mut solution = Vec::new();
        let mut energies = Vec::new();
        for (rank, nested) in all.iter_mut().enumerate() {
            let mut own = vec![[f64::NAN; 6]; owned(rank).len()];
            energies.push(nested.finish((&bytes, short), &mut own));
            solution.extend(own);
        }
        assert!(energies.iter().all(|energy| *energy == energies[0]));
        (solution, energies[0])
    }

    /// Checks the solution of some numbers of ranks, which solves all rows; where modes are
    /// missing it is zero.
    fn check(&self, missing: &[usize]) {
        let (solution, energy) = self.solve(1, false);
        let flat = solution.as_flattened();
        for (i, x) in flat.iter().enumerate() {
            if missing.contains(&i) {
                assert_eq!(*x, 0.0, "mode {i}");
                continue;
            }
            let (off, bound) = residual(&self.dense, flat, &self.rhs, i);
            assert!(off < bound + 1e-12, "row {i}: {off}, more than {bound}");
        }
        let product: f64 = flat.iter().zip(&self.rhs).map(|(x, b)| x * b).sum();
        assert!((energy / product - 1.0).abs() < 1e-5, "{energy} {product}");
        for ranks in [2, 3, 5, 8, 16] {
            assert!(
                self.solve(ranks, false) == (solution.clone(), energy),
                "{ranks} ranks"
            );
        }
        let rounded = self.solve(1, true);
        for ranks in [2, 3, 7, 16] {
            assert!(self.solve(ranks, true) == rounded, "{ranks} ranks");
        }
    }
}

#[test]
fn solutions_are_those_of_the_whole_matrix_on_any_number_of_ranks() {
    for sheet in [Sheet::new(30, 16), Sheet::new(18, 32)] {
        let problem = Problem::new(sheet);
        let [inside, between] = problem.inside_and_between();
        assert!(!between.is_empty());
        assert!(3 * between.len() < problem.graph.vertex_count());
        assert!(!inside.is_empty());
        problem.check(&[]);
    }
}

/// Where cloth is in several pieces, nodes may have nothing to eliminate.
#[test]
fn pieces_that_are_not_joined_are_solved_for() {
    for (width, joined) in [(8, false), (16, true)] {
        let problem = Problem::new(Sheet::torn(32, 16, width));
        let [_, between] = problem.inside_and_between();
        assert!(between.is_empty());
        let half = problem
            .dissection()
            .front(Subtree { level: 1, index: 1 })
            .clone();
        assert_eq!(!half.aggregates.is_empty(), joined);
        problem.check(&[]);
    }
}

/// Modes may be missing of aggregates that a patch eliminates, and of those that the root does.
#[test]
fn missing_modes_are_dropped_wherever_they_are_eliminated() {
    let mut problem = Problem::new(Sheet::new(30, 16));
    let [inside, between] = problem.inside_and_between();
    let mut missing = Vec::new();
    for of in [inside[0], inside[3], between[0], between[1]] {
        let of = 6 * of as usize;
        problem.remove(of + 2);
        problem.rhs[of + 2] = 0.5;
        missing.push(of + 2);
    }
    // An aggregate that is held.
    for mode in 0..6 {
        problem.remove(6 * inside[1] as usize + mode);
        missing.push(6 * inside[1] as usize + mode);
    }
    problem.check(&missing);
    let mut problem = Problem::new(Sheet::new(30, 16));
    for of in [inside[2], between[0]].map(|of| 6 * of as usize) {
        problem.make_up(of + 5, [of, of + 3]);
    }
    problem.check(&[]);
}

/// Every aggregate is eliminated once, and changes later ones alone.
#[test]
fn columns_of_the_factor_are_in_the_order_of_elimination() {
    let problem = Problem::new(Sheet::new(30, 16));
    let columns = problem.dissection().columns();
    let mut seen: Vec<u32> = columns.iter().map(|(aggregate, _)| *aggregate).collect();
    seen.sort_unstable();
    assert_eq!(seen, problem.graph.vertices().collect::<Vec<_>>());
    for (step, (_, rows)) in (0..).zip(&columns) {
        assert!(rows.is_sorted() && rows.first().is_none_or(|&row| row > step));
    }
    // Not much more than where any order may be taken.
    let all: usize = columns.iter().map(|(_, rows)| rows.len()).sum();
    let least = Elimination::new(&problem.graph, |_| false).rows.len();
    assert!(10 * all < 14 * least, "{all} blocks for {least}");
}
