//! Block-Jacobi: each vertex's own 3x3 block, inverted in its free directions.
//!
//! With D the block on the diagonal and S the vertex's projection, the inverse used is
//! P = S (S D S + I − S)⁻¹ S. That is the inverse of D restricted to the free directions, and
//! nothing in the others, so that preconditioned residuals stay where the filter lets them be
//! \[AB03\]. It is local to a vertex, and so the same on any number of ranks.
//!
//! Iterations read them in single precision (`single_blocks`); here they are as they were computed.

use glam::{DMat3, DVec3};

use super::{BlockMatrix, Filter};
use crate::heap_bytes::counts_heap;
use crate::team::{Shares, Team, parts};

/// A symmetric matrix: xx, xy, xz, yz, yy, zz, in the order that products in lanes like.
pub(super) type Symmetric = [f64; 6];

/// Inverted diagonal blocks of the owned rows.
#[derive(Clone, Debug, Default)]
pub struct BlockJacobi {
    inverses: Vec<Symmetric>,
}

counts_heap!(BlockJacobi: inverses);

impl BlockJacobi {
    /// Inverts the diagonal blocks of a matrix in the free directions of a filter.
    ///
    /// Answers the first row (local index) whose block is not positive definite there; the inverse
    /// of such a row is zero, and the preconditioner must not be used.
    ///
    /// # Panics
    /// If matrix and filter are of different size.
    pub fn factor(&mut self, matrix: &BlockMatrix, filter: &Filter) -> Option<usize> {
        assert_eq!(
            matrix.pattern().row_count(),
            filter.len(),
            "a filter for the owned rows"
        );
        self.factor_shared(matrix, filter, &Team::default().cut_even(filter.len()))
    }

    /// [`BlockJacobi::factor`] on all threads of a rank.
    pub(super) fn factor_shared(
        &mut self,
        matrix: &BlockMatrix,
        filter: &Filter,
        shares: &Shares,
    ) -> Option<usize> {
        self.inverses.resize(filter.len(), [0.0; 6]);
        let mut indefinite = vec![None; shares.elements.len()];
        let work = (parts(&mut self.inverses, &shares.elements).zip(&shares.elements))
            .zip(&mut indefinite);
        shares.run(work, |((inverses, rows), indefinite)| {
            for (row, out) in rows.clone().zip(inverses) {
                let inverse = in_free_directions(matrix, filter, row);
                if inverse.is_none() {
                    indefinite.get_or_insert(row);
                }
                *out = inverse.unwrap_or_default();
            }
        });
        indefinite.into_iter().flatten().next()
    }

    /// Preconditions the residual of a row (local index).
    ///
    /// # Panics
    /// If there is no such row.
    #[inline]
    #[must_use]
    pub fn apply(&self, row: usize, residual: DVec3) -> DVec3 {
        multiply(&self.inverses[row], residual)
    }

    /// The inverses of all rows, for loops over rows.
    pub(super) fn inverses(&self) -> &[Symmetric] {
        &self.inverses
    }
}

/// The inverse of a diagonal block in the free directions of its row; `None` if it is not positive
/// definite there.
pub(super) fn in_free_directions(
    matrix: &BlockMatrix,
    filter: &Filter,
    row: usize,
) -> Option<Symmetric> {
    let block = matrix.diagonal_block(row);
    let inverse = if filter.is_constrained(row) {
        let free = filter.free(row);
        let rest = DMat3::IDENTITY - free;
        free * inverse(&(free * block * free + rest))? * free
    } else {
        inverse(&block)?
    };
    let (x, y, z) = (inverse.x_axis, inverse.y_axis, inverse.z_axis);
    Some([x.x, x.y, x.z, y.z, y.y, z.z])
}

/// The product of a symmetric matrix, stored as six numbers, with a vector.
#[inline]
pub(super) fn multiply([xx, xy, xz, yz, yy, zz]: &Symmetric, v: DVec3) -> DVec3 {
    DVec3::new(
        xx * v.x + xy * v.y + xz * v.z,
        xy * v.x + yy * v.y + yz * v.z,
        xz * v.x + yz * v.y + zz * v.z,
    )
}

/// The inverse of a symmetric positive definite matrix; `None` if it is not one, or not finite.
///
/// Reads the upper half only.
pub(super) fn inverse(m: &DMat3) -> Option<DMat3> {
    let (xx, xy, xz) = (m.x_axis.x, m.y_axis.x, m.z_axis.x);
    let (yy, yz, zz) = (m.y_axis.y, m.z_axis.y, m.z_axis.z);
    // m = L D Lᵀ; every pivot of a positive definite matrix is positive. NaN is not.
    let d0 = xx;
    let (l1, l2) = (xy / d0, xz / d0);
    let d1 = yy - l1 * xy;
    let l3 = (yz - l2 * xy) / d1;
    let d2 = zz - l2 * xz - l3 * (yz - l2 * xy);
    if !(d0 > 0.0 && d1 > 0.0 && d2 > 0.0 && (d0 + d1 + d2).is_finite()) {
        return None;
    }
    // L⁻¹ has −l1, −l3 below the diagonal and l1 l3 − l2 in the corner; m⁻¹ = L⁻ᵀ D⁻¹ L⁻¹.
    let corner = l1 * l3 - l2;
    let (e0, e1, e2) = (1.0 / d0, 1.0 / d1, 1.0 / d2);
    let inv_xx = e0 + l1 * l1 * e1 + corner * corner * e2;
    let inv_xy = -l1 * e1 - corner * l3 * e2;
    let inv_xz = corner * e2;
    let inv_yy = e1 + l3 * l3 * e2;
    let inv_yz = -l3 * e2;
    let inverse = DMat3::from_cols(
        DVec3::new(inv_xx, inv_xy, inv_xz),
        DVec3::new(inv_xy, inv_yy, inv_yz),
        DVec3::new(inv_xz, inv_yz, e2),
    );
    inverse.is_finite().then_some(inverse)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::solve::testing::Sheet;

    proptest! {
        #[test]
        fn inverse_times_matrix_is_identity(entries in prop::array::uniform9(-1.0_f64..1.0)) {
            let root = DMat3::from_cols_array(&entries);
            let matrix = root * root.transpose() + 0.1 * DMat3::IDENTITY;
            let product = inverse(&matrix).unwrap() * matrix;
            prop_assert!(product.abs_diff_eq(DMat3::IDENTITY, 1e-12), "{}", product);
        }

        #[test]
        fn an_indefinite_matrix_has_no_inverse_here(entries in prop::array::uniform9(-1.0_f64..1.0)) {
            // A negative direction that no axis need be.
            let root = DMat3::from_cols_array(&entries);
            let n = DVec3::from_array([entries[0], entries[4], entries[8]]);
            prop_assume!(n.length() > 0.1);
            let n = n.normalize();
            let outer = DMat3::from_cols(n * n.x, n * n.y, n * n.z);
            let positive = root * root.transpose();
            let matrix = positive - (n.dot(positive * n) + 0.01) * outer;
            prop_assert_eq!(inverse(&matrix), None);
        }
    }

    #[test]
    fn the_preconditioner_gives_nothing_in_constrained_directions() {
        let sheet = Sheet::new(4, 1);
        let system = sheet.system(1, 0, 3);
        let mut filter = Filter::new(16);
        filter.fix(0, DVec3::ONE);
        assert!(filter.constrain_along(1, DVec3::Y, 0.0));
        let slanted = DVec3::new(1.0, 2.0, 3.0).normalize();
        assert!(filter.constrain_along(2, slanted, 0.0));
        let mut jacobi = BlockJacobi::default();
        assert_eq!(jacobi.factor(&system.matrix, &filter), None);
        let r = DVec3::new(0.3, -0.7, 0.9);
        assert_eq!(jacobi.apply(0, r), DVec3::ZERO);
        assert_eq!(jacobi.apply(1, r).y, 0.0);
        assert!(jacobi.apply(2, r).dot(slanted).abs() < 1e-15);
        // In the free plane it is the inverse: S D u = S r.
        for row in [1, 2, 3] {
            let free = filter.free(row);
            let back = free * (system.matrix.diagonal_block(row) * jacobi.apply(row, r));
            assert!((back - free * r).length() < 1e-13, "row {row}");
        }
    }

    #[test]
    fn a_block_that_is_not_positive_definite_is_found_where_it_is_free() {
        let sheet = Sheet::new(4, 1);
        let mut matrix = sheet.system(1, 0, 3).matrix;
        let slot = matrix.pattern().diagonal_slot(5);
        matrix.add_block(slot, &DMat3::from_diagonal(DVec3::new(0.0, -1e6, 0.0)));
        let mut jacobi = BlockJacobi::default();
        let mut filter = Filter::new(16);
        assert_eq!(jacobi.factor(&matrix, &filter), Some(5));
        // Held in that direction it does no harm.
        assert!(filter.constrain_along(5, DVec3::Y, 0.0));
        assert_eq!(jacobi.factor(&matrix, &filter), None);
    }
}
