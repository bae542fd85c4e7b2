//! Symmetric Gauss-Seidel within each patch, the stronger of the local preconditioners.
//!
//! Only the columns of a patch are taken in its rows, as if patches did not touch. One sweep goes
//! forward over the rows and one backward, with the filtered inverse blocks P of [`BlockJacobi`]:
//!
//! ```text
//! yᵢ = Pᵢ (rᵢ − Σ_{j<i} Aᵢⱼ yⱼ)
//! uᵢ = yᵢ − Pᵢ Σ_{j>i} Aᵢⱼ uⱼ
//! ```
//!
//! That is u = (D + U)⁻¹ D (D + L)⁻¹ r on the free directions, symmetric and positive where A is:
//! SSOR with ω = 1. Vertices of a patch are a contiguous range, and columns stand in ascending
//! order, so that both sums are over ranges of a row. Patches depend on the mesh alone, and so do
//! the bits of u.
//!
//! Sweeps are as expensive as a product with the matrix. The conjugate gradients ask for them once
//! an iteration, for a product w, and M r then follows as r does ([`Sweeps`]).

use std::ops::Range;

use glam::DVec3;

use super::Filter;
use super::block_jacobi::{BlockJacobi, Symmetric, multiply};
use super::block_matrix::{BlockMatrix, Entries, Pattern};
use super::pages::Paged;
use super::reduction::dot;
use super::vector_kernels::axpy;
use crate::heap_bytes::{counts_heap, owns_no_heap};
use crate::simd::{Kernel, Lanes, widest};
use crate::team::{Shares, parts};

/// The entries of each owned row that lie in its patch.
#[derive(Clone, Debug)]
pub(super) struct PatchSsor {
    rows: Vec<InPatch>,
}

counts_heap!(PatchSsor: rows);

/// The part of a row in its own patch: where the entries before the diagonal start, those behind it
/// start, and those end.
#[derive(Clone, Copy, Debug)]
struct InPatch {
    /// The diagonal block stands at the second place itself.
    near: [u32; 3],
    far: [u32; 3],
}

owns_no_heap!(InPatch);

impl PatchSsor {
    /// Finds the entries; `patches` are the owned patches as ranges of local indices.
    pub(super) fn new(pattern: &Pattern, patches: &[Range<usize>]) -> Self {
        let first = pattern.first_row() as usize;
        let mut rows = Vec::with_capacity(pattern.row_count());
        for patch in patches {
            for row in patch.clone() {
                let cut = |(at, columns): (Range<usize>, &[u32])| {
                    let before = |vertex: usize| {
                        at.start + columns.partition_point(|&c| (c as usize) < first + vertex)
                    };
                    // Entries are counted with 32 bits, see `Pattern::new`.
                    [patch.start, row, patch.end].map(|vertex| before(vertex) as u32)
                };
                rows.push(InPatch {
                    near: cut(pattern.block_columns(row)),
                    far: cut(pattern.scalar_columns(row)),
                });
            }
        }
        Self { rows }
    }

    /// Preconditions the residual of one patch: u = M r. Vectors are of the vertices of the patch.
    pub(super) fn apply(
        &self,
        matrix: &BlockMatrix,
        jacobi: &BlockJacobi,
        patch: Range<usize>,
        r: &[DVec3],
        u: &mut [DVec3],
    ) {
        widest(BothSweeps {
            rows: &self.rows,
            inverses: jacobi.inverses(),
            matrix: matrix.entries(),
            patch,
            r,
            u,
        });
    }
}

/// The preconditioner with what the conjugate gradients ask it for.
#[derive(Clone, Debug)]
pub(super) struct Sweeps {
    jacobi: BlockJacobi,
    ssor: PatchSsor,
    /// M r and M w.
    applied: Paged<DVec3>,
    product: Paged<DVec3>,
}

counts_heap!(Sweeps: jacobi, ssor, applied, product);

impl Sweeps {
    pub(super) fn new(pattern: &Pattern, patches: &[Range<usize>]) -> Self {
        let zeros = || Paged::zeros(pattern.row_count());
        Self {
            jacobi: BlockJacobi::default(),
            ssor: PatchSsor::new(pattern, patches),
            applied: zeros(),
            product: zeros(),
        }
    }

    /// See [`BlockJacobi::factor`].
    pub(super) fn factor(
        &mut self,
        matrix: &BlockMatrix,
        filter: &Filter,
        shares: &Shares,
    ) -> Option<usize> {
        self.jacobi.factor_shared(matrix, filter, shares)
    }

    /// M r for a residual that was computed.
    pub(super) fn restart(
        &mut self,
        matrix: &BlockMatrix,
        (patches, shares): (&[Range<usize>], &Shares),
        r: &[DVec3],
    ) {
        let (ssor, jacobi) = (&self.ssor, &self.jacobi);
        let work = parts(&mut self.applied, &shares.elements).zip(&shares.ranges);
        shares.run(work, |(u, share)| {
            let patches = &patches[share.clone()];
            for (patch, u) in patches.iter().zip(parts(u, patches)) {
                ssor.apply(matrix, jacobi, patch.clone(), &r[patch.clone()], u);
            }
        });
    }

    /// M w, and of each patch w·M w, by `told`.
    pub(super) fn sweep_product<T: Send>(
        &mut self,
        matrix: &BlockMatrix,
        (patches, shares): (&[Range<usize>], &Shares),
        w: &[DVec3],
        of_patches: &mut [T],
        told: impl Fn(&mut T, f64) + Sync,
    ) {
        let (ssor, jacobi) = (&self.ssor, &self.jacobi);
        let of_shares = parts(of_patches, &shares.ranges).zip(&shares.ranges);
        let work = parts(&mut self.product, &shares.elements).zip(of_shares);
        shares.run(work, |(z, (of_patches, share))| {
            let patches = &patches[share.clone()];
            for ((patch, z), of_patch) in patches.iter().zip(parts(z, patches)).zip(of_patches) {
                let w = &w[patch.clone()];
                ssor.apply(matrix, jacobi, patch.clone(), w, z);
                told(of_patch, dot(w, z));
            }
        });
    }

    /// Follows r −= α w.
    pub(super) fn step(&mut self, alpha: f64, shares: &Shares) {
        let product = &self.product;
        let work = parts(&mut self.applied, &shares.elements).zip(&shares.elements);
        shares.run(work, |(applied, rows)| {
            axpy(applied, -alpha, &product[rows.clone()]);
        });
    }

    /// M r of some rows.
    pub(super) fn applied(&self, rows: Range<usize>) -> &[DVec3] {
        &self.applied[rows]
    }
}

/// Both sweeps over a patch.
struct BothSweeps<'a> {
    rows: &'a [InPatch],
    inverses: &'a [Symmetric],
    matrix: Entries<'a>,
    patch: Range<usize>,
    r: &'a [DVec3],
    u: &'a mut [DVec3],
}

impl Kernel for BothSweeps<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let Self {
            rows,
            inverses,
            matrix,
            patch,
            r,
            u,
        } = self;
        let range = |from: u32, to: u32| from as usize..to as usize;
        let first = patch.start;
        for row in patch.clone() {
            let InPatch { near, far } = rows[row];
            let (near, far) = (range(near[0], near[1]), range(far[0], far[1]));
            let before = matrix.row_part(lanes, near, far, u, first);
            u[row - first] = multiply(&inverses[row], r[row - first] - before);
        }
        for row in patch.rev() {
            let InPatch { near, far } = rows[row];
            let (near, far) = (range(near[1] + 1, near[2]), range(far[1], far[2]));
            let behind = matrix.row_part(lanes, near, far, u, first);
            u[row - first] -= multiply(&inverses[row], behind);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solve::testing::{Noise, Sheet};

    /// Sweeps solve (D + L) D⁻¹ (D + U) u = r, by blocks of the patch.
    #[test]
    fn both_sweeps_together_invert_the_factored_matrix() {
        let sheet = Sheet::new(8, 2);
        let matrix = sheet.system(1, 0, 6).matrix;
        let filter = Filter::new(64);
        let mut jacobi = BlockJacobi::default();
        assert_eq!(jacobi.factor(&matrix, &filter), None);
        let patches = [sheet.tree.patch_vertices(0), sheet.tree.patch_vertices(1)];
        let ssor = PatchSsor::new(matrix.pattern(), &patches);
        let mut noise = Noise::new(9);
        let r: Vec<DVec3> = (0..64).map(|_| noise.vector()).collect();
        let mut u = vec![DVec3::NAN; 64];
        for patch in &patches {
            // Rows outside the patch must not be read.
            let (r, u) = (&r[patch.clone()], &mut u[patch.clone()]);
            ssor.apply(&matrix, &jacobi, patch.clone(), r, u);
        }
        let dense = sheet.dense(6);
        let product = |i: usize, columns: &mut dyn Iterator<Item = usize>, x: &[DVec3]| {
            columns.fold(DVec3::ZERO, |sum, j| {
                let row = |k: usize| DVec3::from_slice(&dense[3 * i + k][3 * j..3 * j + 3]);
                sum + DVec3::new(row(0).dot(x[j]), row(1).dot(x[j]), row(2).dot(x[j]))
            })
        };
        for patch in patches {
            let mut y = u.clone();
            for i in patch.clone() {
                let upper = product(i, &mut (i..patch.end), &u);
                y[i] = jacobi.apply(i, upper);
            }
            for i in patch.clone() {
                let back = product(i, &mut (patch.start..i + 1), &y);
                assert!((back - r[i]).length() < 1e-12, "row {i}: {back} {}", r[i]);
            }
        }
    }
}
