//! A filtered system as one without a filter, for solvers that know nothing of constraints.
//!
//! Constraints become part of the matrix [Tamstorf, Jones and McCormick 2015, prefiltering]: with
//! the projection S onto the free directions and the prescribed changes z,
//!
//! ```text
//! (S A S + (I − S) D) x = S (b − A z) + D z
//! ```
//!
//! has the solution x = z + S y that the modified conjugate gradients look for, and its matrix is
//! symmetric and positive definite in all directions. D is the mean of the diagonal of each
//! vertex's own block, so that prescribed directions are scaled as free ones are.

use glam::{DMat3, DVec3};

use super::System;

/// A symmetric system of scalars, all of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Prefiltered {
    /// Row, column and value of the lower triangle, by row and column; three rows for each vertex.
    pub entries: Vec<(u32, u32, f64)>,
    /// The right-hand side.
    pub rhs: Vec<f64>,
}

impl System<'_> {
    /// The system without its filter, vertex v of this one being vertex `order[v]` of that.
    ///
    /// # Panics
    /// If these are not all rows of the matrix, or `order` is not a permutation of them.
    #[must_use]
    pub fn prefiltered(&self, order: &[u32]) -> Prefiltered {
        let (matrix, filter) = (self.matrix, self.filter);
        let n = matrix.pattern().row_count();
        assert!(
            n == matrix.pattern().local_len() && n == order.len(),
            "all rows, and a number for each"
        );
        let scale = |row: usize| {
            let block = matrix.diagonal_block(row);
            (block.x_axis.x + block.y_axis.y + block.z_axis.z) / 3.0
        };
        let mut entries = Vec::new();
        let mut rhs = vec![0.0; 3 * n];
        for row in 0..n {
            let free = filter.free(row);
            let mut right = self.rhs[row];
            matrix.for_each_in_row(row, |column, block| {
                let column = column as usize;
                right -= block * filter.change(column);
                let mut block = free * block * filter.free(column);
                if column == row {
                    block += (DMat3::IDENTITY - free) * scale(row);
                }
                push_lower(&mut entries, [order[row], order[column]], &block);
            });
            let right = free * right + scale(row) * filter.change(row);
            rhs[3 * order[row] as usize..][..3].copy_from_slice(&right.to_array());
        }
        entries.sort_unstable_by_key(|&(row, column, _)| (row, column));
        Prefiltered { entries, rhs }
    }
}

/// The entries of a block that are on or below the diagonal and not zero.
fn push_lower(entries: &mut Vec<(u32, u32, f64)>, [row, column]: [u32; 2], block: &DMat3) {
    for i in 0..3 {
        let across: DVec3 = block.row(i as usize);
        for j in 0..3 {
            let (at, value) = ((3 * row + i, 3 * column + j), across[j as usize]);
            if at.1 <= at.0 && (value != 0.0 || at.0 == at.1) {
                entries.push((at.0, at.1, value));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solve::Rows;
    use crate::solve::testing::Sheet;

    /// The solution of the plain system, by dense Cholesky, has the prescribed changes and leaves a
    /// residual in prescribed directions only.
    #[test]
    fn both_systems_have_the_same_solution() {
        let sheet = Sheet::new(7, 4);
        let count = sheet.len();
        let part = sheet.system(1, 0, 3);
        let (filter, positions) = (sheet.filter(1, 0, 3), sheet.positions(1, 0));
        let system = System {
            matrix: &part.matrix,
            rhs: &part.rhs,
            filter: &filter,
            positions: &positions,
        };
        let order: Vec<u32> = (0..count as u32).rev().collect();
        let plain = system.prefiltered(&order);

        let n = plain.rhs.len();
        let mut lower = vec![0.0; n * n];
        for &(row, column, value) in &plain.entries {
            lower[row as usize * n + column as usize] = value;
        }
        let solution = solve(&mut lower, &plain.rhs);
        let at = |vertex: usize| DVec3::from_slice(&solution[3 * order[vertex] as usize..][..3]);
        let solution: Vec<DVec3> = (0..count).map(at).collect();

        let mut product = vec![DVec3::ZERO; count];
        part.matrix.multiply(&solution, &mut product, Rows::All);
        let largest = part.rhs.iter().map(|b| b.length()).fold(0.0, f64::max);
        let mut constrained = 0;
        for row in 0..count {
            let residual = filter.free(row) * (product[row] - part.rhs[row]);
            assert!(residual.length() < 1e-10 * largest, "{row}: {residual}");
            if filter.is_constrained(row) {
                let held = DMat3::IDENTITY - filter.free(row);
                let off = held * solution[row] - filter.change(row);
                assert!(off.length() < 1e-12, "{row}: {off}");
                constrained += 1;
            }
        }
        assert!(constrained > 1, "{constrained}");
    }

    /// Dense Cholesky, of the lower triangle in `a`.
    fn solve(a: &mut [f64], b: &[f64]) -> Vec<f64> {
        let n = b.len();
        for j in 0..n {
            for i in j..n {
                let sum: f64 = (0..j).map(|k| a[i * n + k] * a[j * n + k]).sum();
                let left = a[i * n + j] - sum;
                a[i * n + j] = if i == j {
                    assert!(left > 0.0, "positive definite");
                    left.sqrt()
                } else {
                    left / a[j * n + j]
                };
            }
        }
        let mut x = b.to_vec();
        for i in 0..n {
            let sum: f64 = (0..i).map(|k| a[i * n + k] * x[k]).sum();
            x[i] = (x[i] - sum) / a[i * n + i];
        }
        for i in (0..n).rev() {
            let sum: f64 = (i + 1..n).map(|k| a[k * n + i] * x[k]).sum();
            x[i] = (x[i] - sum) / a[i * n + i];
        }
        x
    }
}
