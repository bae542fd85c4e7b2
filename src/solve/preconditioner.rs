//! The preconditioner of the conjugate gradients: a local level, and perhaps a coarse one.
//!
//! Local is [`BlockJacobi`](super::BlockJacobi) or, stronger, symmetric Gauss-Seidel within
//! patches. Both know only what is near, and need iterations in proportion to the vertices along a
//! side. With rigid motions of groups of vertices added, G, and of aggregates of those, P, the
//! number grows much less:
//!
//! ```text
//! u = M r + G D⁻¹ Gᵀ r + P (Pᵀ A P)⁺ Pᵀ r
//! ```
//!
//! All of them are symmetric and positive where A is, and depend on mesh, positions and constraints
//! alone: the same bits on any number of ranks. Their answer must be projected onto the free
//! directions.
//!
//! The conjugate gradients ask for w·M w of a product w, and, with r −= α w, for M r. Inverted
//! blocks are applied to what is at hand, which costs no bytes but theirs. Sweeps and the coarse
//! solve, which are expensive, are done once an iteration, for w, and its part of M r follows as r
//! does.

use std::ops::Range;
use std::time::Duration;

use glam::DVec3;
use weft_partition::aggregates::{FEW_ITERATIONS, MANY_ITERATIONS};
use weft_partition::{AggregateOptions, Aggregates, Graph, HaloPlan, Ownership, PatchTree};
use weft_runtime::comm::{Comm, CommError};

use super::coarse::CoarseSpace;
use super::patch_ssor::Sweeps;
use super::reduction::{Carried, dot};
use super::single_blocks::SingleBlocks;
use super::vector_kernels::axpy;
use super::{BlockMatrix, Filter, Halo, Pattern, System};
use crate::heap_bytes::{HeapBytes, counts_heap};
use crate::team::{Shares, parts};

/// The local level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Smoother {
    /// Inverted diagonal blocks: a pass over the vectors.
    #[default]
    BlockJacobi,
    /// Symmetric Gauss-Seidel within each patch: about one more product with the matrix.
    PatchSsor,
}

/// The levels above: rigid motions of groups, each for itself, and a direct solve for those of
/// aggregates.
#[derive(Clone, Copy, Debug)]
pub struct Multilevel<'a> {
    /// The patches, cut further, and these into groups.
    pub aggregates: &'a Aggregates,
    /// The graph of aggregates ([`Aggregates::quotient`]).
    pub coarse: &'a Graph,
}

/// How patches are cut into aggregates for solves to this relative tolerance. Tight ones take many
/// iterations, for which the larger factor of smaller aggregates pays.
#[must_use]
pub fn aggregate_options(tolerance: f64) -> AggregateOptions {
    /// A large sheet takes some fifty iterations to it.
    const TIGHT: f64 = 1e-4;
    AggregateOptions {
        share_of_root: if tolerance > TIGHT {
            FEW_ITERATIONS
        } else {
            MANY_ITERATIONS
        },
        ..AggregateOptions::default()
    }
}

/// A preconditioner of one rank.
#[derive(Clone, Debug, Default)]
pub struct Preconditioner {
    local: Local,
    coarse: Option<CoarseSpace>,
    /// Blocks and scalars of the pattern that it was made for; it may be any if nothing depends on
    /// it.
    entries: Option<(usize, usize)>,
}

counts_heap!(Preconditioner: local, coarse, entries);

#[derive(Clone, Debug)]
enum Local {
    Blocks(SingleBlocks),
    Sweeps(Box<Sweeps>),
}

impl HeapBytes for Local {
    fn heap_bytes(&self) -> usize {
        match self {
            Self::Blocks(blocks) => blocks.heap_bytes(),
            Self::Sweeps(sweeps) => sweeps.heap_bytes(),
        }
    }
}

impl Default for Local {
    fn default() -> Self {
        Self::Blocks(SingleBlocks::default())
    }
}

impl Preconditioner {
    /// The bytes on the heap within patches, and those of the coarse level.
    pub(super) fn bytes_of_levels(&self) -> [usize; 2] {
        [self.local.heap_bytes(), self.coarse.heap_bytes()]
    }

    /// Inverted diagonal blocks, for a matrix of any pattern.
    #[must_use]
    pub fn block_jacobi() -> Self {
        Self::default()
    }

    /// A preconditioner for matrices of this pattern.
    ///
    /// # Panics
    /// If the arguments are not of one partition.
    #[must_use]
    pub fn new(
        smoother: Smoother,
        multilevel: Option<Multilevel<'_>>,
        pattern: &Pattern,
        (plan, tree, ownership): (&HaloPlan, &PatchTree, &Ownership),
    ) -> Self {
        let first = plan.owned().start;
        let patches = || -> Vec<Range<usize>> {
            let vertices = ownership
                .patches(plan.rank())
                .map(|p| tree.patch_vertices(p));
            vertices.map(|v| v.start - first..v.end - first).collect()
        };
        Self {
            local: match smoother {
                Smoother::BlockJacobi => Local::default(),
                Smoother::PatchSsor => Local::Sweeps(Box::new(Sweeps::new(pattern, &patches()))),
            },
            coarse: multilevel.map(|Multilevel { aggregates, coarse }| {
                CoarseSpace::new(pattern, plan, ownership, aggregates, coarse)
            }),
            entries: Some(pattern.entry_counts()),
        }
    }

    /// How many numbers this rank has of the factor of the coarse level; 0 without one.
    #[must_use]
    pub fn coarse_factor_len(&self) -> usize {
        self.coarse
            .as_ref()
            .map_or(0, |coarse| 36 * coarse.factor_blocks())
    }

    /// Blocks and scalars that the matrix must have; any number of them if `None`.
    pub(super) fn entries(&self) -> Option<(usize, usize)> {
        self.entries
    }

    /// Readies the part within patches; answers as [`Self::begin_factor`] does.
    pub(super) fn factor_within_patches(
        &mut self,
        matrix: &BlockMatrix,
        filter: &Filter,
        (patches, shares): (&[Range<usize>], &Shares),
    ) -> Option<usize> {
        match &mut self.local {
            Local::Blocks(blocks) => blocks.factor(matrix, filter, (patches, shares)),
            Local::Sweeps(sweeps) => sweeps.factor(matrix, filter, shares),
        }
    }

    /// Readies the preconditioner for a system, but for what [`Preconditioner::finish_factor`]
    /// does. Collective.
    ///
    /// Answers the first row (local index) whose diagonal block is not positive definite in its
    /// free directions.
    pub(super) fn begin_factor(
        &mut self,
        comm: &mut dyn Comm,
        halo: &mut Halo,
        system: &System<'_>,
        (patches, shares): (&[Range<usize>], &Shares),
    ) -> Result<Option<usize>, CommError> {
        let of = (patches, shares);
        let bad = self.factor_within_patches(system.matrix, system.filter, of);
        if let Some(coarse) = &mut self.coarse {
            let System {
                matrix,
                filter,
                positions,
                ..
            } = *system;
            coarse.begin_factor(comm, halo, (matrix, filter, positions), shares)?;
        }
        Ok(bad)
    }

    /// Readies what had to come from other ranks first. Collective; to be called before anything is
    /// restricted.
    pub(super) fn finish_factor(&mut self, comm: &mut dyn Comm) -> Result<(), CommError> {
        self.coarse
            .as_mut()
            .map_or(Ok(()), |coarse| coarse.finish_factor(comm))
    }

    /// Leaves modes out of the coarse levels that multiply errors of rounding. Answers whether
    /// there are such levels. The residual is to be measured anew. Collective.
    pub(super) fn drop_weak_modes(
        &mut self,
        comm: &mut dyn Comm,
        shares: &Shares,
    ) -> Result<bool, CommError> {
        if let Some(coarse) = &mut self.coarse {
            coarse.drop_weak_modes(comm, shares)?;
        }
        Ok(self.coarse.is_some())
    }

    /// Measures the coarse level, if there is one and the rank is alone: the number of blocks of
    /// its matrix, and the times that its work takes, see [`CoarseSpace::time`].
    pub(super) fn time_coarse(
        &mut self,
        clock: &dyn Fn() -> Duration,
    ) -> Option<(usize, [Duration; 2])> {
        let coarse = self.coarse.as_mut().filter(|coarse| coarse.is_alone())?;
        Some((coarse.matrix_blocks(), coarse.time(clock)))
    }

    /// The work of factoring the coarse matrix and of solving with it on this rank, as shares of
    /// that on one rank; 1 without a coarse level.
    pub(super) fn coarse_shares(&self) -> [f64; 2] {
        self.coarse.as_ref().map_or([1.0; 2], CoarseSpace::shares)
    }

    /// Begins anew, with a residual that was computed and not updated; r is projected. The other
    /// part of M r is [restricted](Self::restrict) and [solved for](Self::solve_residual).
    pub(super) fn restart(
        &mut self,
        system: &System<'_>,
        of: (&[Range<usize>], &Shares),
        r: &[DVec3],
    ) {
        if let Local::Sweeps(sweeps) = &mut self.local {
            sweeps.restart(system.matrix, of, r);
        }
    }

    /// The local part of r·M r of a patch, which r is of, once begun anew.
    pub(super) fn residual_energy(&self, patch: Range<usize>, r: &[DVec3]) -> f64 {
        match &self.local {
            Local::Blocks(blocks) => blocks.energies(patch, r, r)[1],
            Local::Sweeps(sweeps) => dot(r, sweeps.applied(patch)),
        }
    }

    /// The part of r·M r that is not local, the same on all ranks, once the restricted residual has
    /// travelled.
    pub(super) fn solve_residual(&mut self) -> f64 {
        self.coarse
            .as_mut()
            .map_or(0.0, CoarseSpace::solve_residual)
    }

    /// Computes u = M r of all rows, once begun anew and solved for; u is projected.
    pub(super) fn apply_all(
        &self,
        system: &System<'_>,
        (patches, shares): (&[Range<usize>], &Shares),
        r: &[DVec3],
        u: &mut [DVec3],
    ) {
        let work = parts(u, &shares.elements).zip(&shares.ranges);
        shares.run(work, |(u, share)| {
            let patches = &patches[share.clone()];
            for (patch, u) in patches.iter().zip(parts(u, patches)) {
                self.apply(patch.clone(), &r[patch.clone()], u);
            }
        });
        system.filter.project(u);
    }

    /// Restricts a projected product w or residual to the values that travel with the scalar
    /// products, rounded to f32 if `short`. `told` hears for every patch the groups' part of the
    /// vector's product with M of itself.
    pub(super) fn restrict<T>(
        &mut self,
        vector: &[DVec3],
        (shares, short): (&Shares, bool),
        of_patches: &mut [T],
        told: impl Fn(&mut T, f64),
    ) -> Option<Carried<'_>> {
        self.coarse
            .as_mut()
            .map(|coarse| coarse.restrict(vector, (shares, short), of_patches, told))
    }

    /// The product w·p of a patch, which the vectors are of, and the local part of w·M w, if it is
    /// best computed while w is in the cache.
    pub(super) fn energies(&self, patch: Range<usize>, w: &[DVec3], p: &[DVec3]) -> [f64; 2] {
        match &self.local {
            Local::Blocks(blocks) => blocks.energies(patch, w, p),
            Local::Sweeps(_) => [dot(w, p), 0.0],
        }
    }

    /// Adds the local part of w·M w of every patch where [`Preconditioner::energies`] does not tell
    /// it, by `told`.
    pub(super) fn sweep_product<T: Send>(
        &mut self,
        system: &System<'_>,
        (patches, shares): (&[Range<usize>], &Shares),
        w: &[DVec3],
        of_patches: &mut [T],
        told: impl Fn(&mut T, f64) + Sync,
    ) {
        if let Local::Sweeps(sweeps) = &mut self.local {
            sweeps.sweep_product(system.matrix, (patches, shares), w, of_patches, told);
        }
    }

    /// The part of w·M w that is not local, the same on all ranks, once the restricted product has
    /// travelled.
    pub(super) fn solve_product(&mut self) -> f64 {
        self.coarse.as_mut().map_or(0.0, CoarseSpace::solve_product)
    }

    /// Follows r −= α w with what is not applied to r itself. Then [`Preconditioner::follow`] does
    /// the rest for all rows.
    pub(super) fn step(&mut self, alpha: f64, shares: &Shares) {
        if let Some(coarse) = &mut self.coarse {
            coarse.step(alpha);
        }
        if let Local::Sweeps(sweeps) = &mut self.local {
            sweeps.step(alpha, shares);
        }
    }

    /// Whether M r costs hardly more than to read it, and does not depend on steps.
    pub(super) fn is_cheap(&self) -> bool {
        matches!(self.local, Local::Blocks(_)) && self.coarse.is_none()
    }

    /// Computes u = M r of some rows, which the vectors are of; it must be projected then. Rows are
    /// of one patch, and the first of them is some fourth row of it.
    pub(super) fn apply(&self, rows: Range<usize>, r: &[DVec3], u: &mut [DVec3]) {
        match &self.local {
            Local::Blocks(blocks) => blocks.multiply(rows.clone(), r, u),
            Local::Sweeps(sweeps) => u.copy_from_slice(sweeps.applied(rows.clone())),
        }
        if let Some(coarse) = &self.coarse {
            coarse.add_correction(rows, u);
        }
    }

    /// Computes r −= α w and u = M r of such rows.
    pub(super) fn follow(
        &self,
        rows: Range<usize>,
        (r, alpha, w): (&mut [DVec3], f64, &[DVec3]),
        u: &mut [DVec3],
    ) {
        match &self.local {
            Local::Blocks(blocks) => blocks.follow(rows.clone(), (r, alpha, w), u),
            Local::Sweeps(sweeps) => {
                axpy(r, -alpha, w);
                u.copy_from_slice(sweeps.applied(rows.clone()));
            }
        }
        if let Some(coarse) = &self.coarse {
            coarse.add_correction(rows, u);
        }
    }
}
