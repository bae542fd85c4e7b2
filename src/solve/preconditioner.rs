//! What the conjugate gradients are preconditioned with: a local level, and perhaps a coarse one.
//!
//! Local is [`BlockJacobi`] or, stronger, symmetric Gauss-Seidel within patches. Both know only what
//! is near, and need iterations in proportion to the vertices along a side. With the coarse level
//! added, rigid motions of aggregates, the number hardly grows:
//!
//! ```text
//! u = M r + P (Pᵀ A P)⁺ Pᵀ r
//! ```
//!
//! All of them are symmetric and positive where A is, map into the free directions, and depend on
//! mesh, positions and constraints alone: the same bits on any number of ranks.

use std::ops::Range;
use std::time::Duration;

use glam::DVec3;
use weft_partition::{Aggregates, Graph, HaloPlan, Ownership, PatchTree};
use weft_runtime::comm::{Comm, CommError};

use super::coarse::CoarseSpace;
use super::passes::Blocks;
use super::patch_ssor::PatchSsor;
use super::reduction::Carried;
use super::{BlockJacobi, BlockMatrix, Halo, Pattern, System};
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

/// The second level: a direct solve for the rigid motions of aggregates.
#[derive(Clone, Copy, Debug)]
pub struct TwoLevel<'a> {
    /// The patches, cut further.
    pub aggregates: &'a Aggregates,
    /// The graph of the whole matrix, in the numbering of the tree.
    pub graph: &'a Graph,
}

/// A preconditioner of one rank.
#[derive(Clone, Debug, Default)]
pub struct Preconditioner {
    jacobi: BlockJacobi,
    ssor: Option<PatchSsor>,
    coarse: Option<CoarseSpace>,
    /// Blocks and scalars of the pattern that it was made for; it may be any if nothing depends on
    /// it.
    entries: Option<(usize, usize)>,
}

impl Preconditioner {
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
        two_level: Option<TwoLevel<'_>>,
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
            jacobi: BlockJacobi::default(),
            ssor: match smoother {
                Smoother::BlockJacobi => None,
                Smoother::PatchSsor => Some(PatchSsor::new(pattern, &patches())),
            },
            coarse: two_level.map(|TwoLevel { aggregates, graph }| {
                CoarseSpace::new(pattern, plan, ownership, aggregates, graph)
            }),
            entries: Some(pattern.entry_counts()),
        }
    }

    /// How many numbers the factor of the coarse level has; 0 without one.
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

    /// Readies the preconditioner for a system. Collective.
    ///
    /// Answers the first row (local index) whose diagonal block is not positive definite in its free
    /// directions.
    pub(super) fn factor(
        &mut self,
        comm: &mut dyn Comm,
        halo: &mut Halo,
        system: &System<'_>,
        shares: &Shares,
    ) -> Result<Option<usize>, CommError> {
        let bad = (self.jacobi).factor_shared(system.matrix, system.filter, shares);
        if let Some(coarse) = &mut self.coarse {
            let System {
                matrix,
                filter,
                positions,
                ..
            } = *system;
            coarse.factor(comm, halo, (matrix, filter, positions), shares)?;
        }
        Ok(bad)
    }

    /// Of the coarse level, if there is one: blocks of its matrix, and how long what every rank does for itself takes, see
    /// [`CoarseSpace::time`].
    pub(super) fn time_coarse(
        &mut self,
        clock: &dyn Fn() -> Duration,
    ) -> Option<(usize, [Duration; 2])> {
        let coarse = self.coarse.as_mut()?;
        Some((coarse.matrix_blocks(), coarse.time(clock)))
    }

    /// The share of a solve with the coarse matrix that is this rank's; 1 without a coarse level.
    pub(super) fn coarse_share(&self) -> f64 {
        self.coarse.as_ref().map_or(1.0, CoarseSpace::solve_share)
    }

    /// u = M r for a residual that was computed and not updated; r is projected. Collective.
    pub(super) fn restart(
        &mut self,
        comm: &mut dyn Comm,
        system: &System<'_>,
        (patches, shares): (&[Range<usize>], &Shares),
        r: &[DVec3],
        u: &mut [DVec3],
    ) -> Result<(), CommError> {
        if let Some(coarse) = &mut self.coarse {
            coarse.restart(comm, r, shares)?;
        }
        let work = parts(u, &shares.elements).zip(&shares.ranges);
        shares.run(work, |(u, share)| {
            let patches = &patches[share.clone()];
            for (patch, u) in patches.iter().zip(parts(u, patches)) {
                self.apply(system.matrix, patch.clone(), &r[patch.clone()], u);
            }
        });
        if self.leaves_constraints() {
            system.filter.project(u);
        }
        Ok(())
    }

    /// What is to travel with the scalar products of an iteration, for the projected product w.
    pub(super) fn restrict_product(&mut self, w: &[DVec3], shares: &Shares) -> Option<Carried<'_>> {
        self.coarse
            .as_mut()
            .map(|coarse| coarse.restrict_product(w, shares))
    }

    /// Follows s = w + β s, r −= α s on the coarse level.
    pub(super) fn advance(&mut self, alpha: f64, beta: f64) {
        if let Some(coarse) = &mut self.coarse {
            coarse.advance(alpha, beta);
        }
    }

    /// Whether [`Preconditioner::apply`] leaves something in constrained directions.
    pub(super) fn leaves_constraints(&self) -> bool {
        self.coarse.is_some()
    }

    /// u = M r of one patch, which the vectors are of; it must be projected if [`Preconditioner::leaves_constraints`] says so.
    pub(super) fn apply(
        &self,
        matrix: &BlockMatrix,
        patch: Range<usize>,
        r: &[DVec3],
        u: &mut [DVec3],
    ) {
        match &self.ssor {
            Some(ssor) => ssor.apply(matrix, &self.jacobi, patch.clone(), r, u),
            None => {
                let blocks = &self.jacobi.inverses()[patch.clone()];
                Blocks { blocks, r, u }.run();
            }
        }
        if let Some(coarse) = &self.coarse {
            coarse.add_correction(patch, u);
        }
    }
}
