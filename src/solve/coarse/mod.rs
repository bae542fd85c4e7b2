//! The levels of the preconditioner above vertices: rigid motions of [`groups`] of a few, and a
//! direct solve for those of aggregates.
//!
//! With P the [`modes`] of all aggregates, what the coarse level adds to a local preconditioner is
//! P (Pᵀ A P)⁺ Pᵀ r: additive Schwarz with a coarse space [SBG96, ch. 2], plain aggregation with
//! rigid-body modes \[TJM15\] used once and not as a cycle. Local preconditioners need iterations
//! in proportion to the vertices along a side, for news travels one ring an iteration; this level
//! takes it across the mesh at once.
//!
//! The coarse matrix ([`galerkin`]) is computed by the owners of its rows, and factored along the
//! patch tree ([`dissection`], [`nested`]): each rank eliminates what is inside its own subtrees of
//! patches, and every rank eliminates the few aggregates that are left between them. Their matrix
//! travels while the solve does what asks for no preconditioner. An iteration then needs no
//! message of its own: what the own subtrees leave of Pᵀ w, for the product w of an iteration,
//! travels with the scalar products, so that all ranks hold it, to the bit. One solve with it,
//! A_c⁺ Pᵀ w, gives this level's part of w·M w. The correction A_c⁺ Pᵀ r follows it as r
//! follows w: r −= α w. For a residual that was computed and not updated, Pᵀ r is solved for
//! in the same way, with the sums over it.
//!
//! Not here: what is local to a vertex or patch ([`super::preconditioner`]).
//!
//! * \[SBG96\] Smith, Bjørstad, Gropp: Domain decomposition.
//! * \[TJM15\] Tamstorf, Jones, McCormick: Smoothed aggregation multigrid for cloth simulation.

mod cholesky;
mod dissection;
mod elimination;
mod galerkin;
mod groups;
mod modes;
mod nested;
mod padded;
mod six;
mod subdomains;
mod substitution;

use std::ops::Range;

use std::time::Duration;

use glam::DVec3;
use weft_partition::{Aggregates, Graph, HaloPlan, Ownership, PatchTree};
use weft_runtime::comm::{Collectives, Comm, CommError};

use self::cholesky::{Dropped, LowerRows};
use self::dissection::Dissection;
use self::galerkin::Galerkin;
use self::groups::Groups;
use self::modes::Modes;
use self::nested::Nested;
use self::six::{Block, Six};
use super::reduction::Carried;
use super::{BlockMatrix, Filter, Halo, Pattern};
use crate::heap_bytes::counts_heap;
use crate::team::Shares;

/// The coarse system of one rank, and the coarse vectors of the conjugate gradients.
#[derive(Clone, Debug)]
pub(super) struct CoarseSpace {
    rank: usize,
    modes: Modes,
    groups: Groups,
    /// D, the lower half.
    of_groups: Vec<Block>,
    galerkin: Galerkin,
    /// The owned rows of the lower half of A_c, and how many blocks there are of all ranks.
    matrix: Vec<Block>,
    matrix_blocks: usize,
    /// The size that entries on the diagonal of A_c would have without constraints, for each owned
    /// aggregate.
    scales: Vec<f64>,
    nested: Nested,
    /// The numbers that travel while the matrix is factored, and how many bytes of each rank.
    factoring: Vec<f64>,
    factor_lengths: Vec<usize>,
    /// The bytes that travel in a solve: of this rank, of all, and how many of each; and whether
    /// numbers were rounded.
    own_bytes: Vec<u8>,
    all_bytes: Vec<u8>,
    lengths: Vec<usize>,
    short: bool,
    /// Pᵀ of a vector, of the owned aggregates.
    restricted: Vec<Six>,
    /// A_c⁺ Pᵀ w of the owned aggregates.
    change: Vec<Six>,
    /// A_c⁺ Pᵀ r of them.
    correction: Vec<Six>,
}

counts_heap!(CoarseSpace:
    modes, groups, of_groups, galerkin, matrix, scales, nested, factoring, factor_lengths,
    own_bytes, all_bytes, lengths, restricted, change, correction;
    without rank, matrix_blocks, short
);

impl CoarseSpace {
    /// The coarse system of the matrix with this pattern.
    ///
    /// # Panics
    /// If plan, ownership, aggregates and their graph are not of one partition.
    pub(super) fn new(
        pattern: &Pattern,
        plan: &HaloPlan,
        ownership: &Ownership,
        aggregates: &Aggregates,
        coarse: &Graph,
    ) -> Self {
        let lower = LowerRows::new(coarse);
        let owned = aggregates.owned(ownership, plan.rank());
        let blocks = lower.starts[owned.start]..lower.starts[owned.end];
        let groups = Groups::new(pattern, plan, ownership, aggregates);
        let dissection = Dissection::new(coarse, aggregates, ownership.depth());
        let nested = Nested::new(&dissection, &lower, (aggregates, ownership, plan.rank()));
        let zeros = || vec![[0.0; 6]; owned.len()];
        Self {
            of_groups: vec![[[0.0; 6]; 6]; groups.lower().columns.len()],
            modes: Modes::new(plan, ownership, aggregates),
            galerkin: Galerkin::new(pattern, plan, (aggregates, &groups), &lower, &blocks),
            groups,
            matrix: vec![[[0.0; 6]; 6]; blocks.len()],
            matrix_blocks: lower.columns.len(),
            scales: vec![0.0; owned.len()],
            factoring: Vec::new(),
            factor_lengths: (nested.factor_counts())
                .map(|count| size_of::<f64>() * count)
                .collect(),
            nested,
            own_bytes: Vec::new(),
            all_bytes: Vec::new(),
            lengths: Vec::new(),
            short: false,
            rank: plan.rank(),
            restricted: zeros(),
            change: zeros(),
            correction: zeros(),
        }
    }

    /// Places the modes, computes the owned rows of the coarse matrix and factors what is inside
    /// the own subtrees. Its Schur complement is then on its way to all ranks. Collective.
    pub(super) fn begin_factor(
        &mut self,
        comm: &mut dyn Comm,
        halo: &mut Halo,
        (matrix, filter, positions): (&BlockMatrix, &Filter, &[DVec3]),
        shares: &Shares,
    ) -> Result<(), CommError> {
        self.modes.place(comm, halo, positions, filter)?;
        self.modes.sum_diagonals(matrix, &mut self.scales, shares);
        let of = (&self.modes, &self.groups);
        let into = (&mut self.matrix[..], &mut self.of_groups[..]);
        (self.galerkin).assemble(matrix, of, into, shares);
        self.groups
            .factor(&self.of_groups, Dropped::Nothing, shares);
        self.begin(comm, Dropped::Nothing)
    }

    /// Factors what is inside the own subtrees, and sends what is left. Collective.
    fn begin(&mut self, comm: &mut dyn Comm, dropped: Dropped) -> Result<(), CommError> {
        self.factoring = (self.nested).factor_own(&self.matrix, &self.scales, dropped);
        if comm.size() > 1 {
            comm.begin_allgather(bytemuck::cast_slice(&self.factoring))?;
        }
        Ok(())
    }

    /// Takes in what is left of all ranks and factors that. Collective.
    pub(super) fn finish_factor(&mut self, comm: &mut dyn Comm) -> Result<(), CommError> {
        let mut all = std::mem::take(&mut self.factoring);
        if comm.size() > 1 {
            let own = all;
            let of = |lengths: &[usize]| lengths.iter().sum::<usize>() / size_of::<f64>();
            all = vec![0.0; of(&self.factor_lengths)];
            let before = of(&self.factor_lengths[..self.rank]);
            all[before..before + own.len()].copy_from_slice(&own);
            let room = bytemuck::cast_slice_mut(&mut all);
            comm.finish_allgather_into(&self.factor_lengths, room)?;
        }
        self.nested.factor_top(&all);
        Ok(())
    }

    /// Factors the matrices of both levels once more, without modes that constraints have nearly
    /// removed: they multiply what rounding leaves in a residual. Collective.
    pub(super) fn drop_weak_modes(
        &mut self,
        comm: &mut dyn Comm,
        shares: &Shares,
    ) -> Result<(), CommError> {
        self.groups.factor(&self.of_groups, Dropped::Weak, shares);
        self.begin(comm, Dropped::Weak)?;
        self.finish_factor(comm)
    }

    /// Restricts a projected vector, a product with the matrix or a residual; what is to travel
    /// with the scalar products, rounded if `short`. `told` gets the groups' part of its product
    /// with M of itself, of each patch.
    pub(super) fn restrict<T>(
        &mut self,
        vector: &[DVec3],
        (shares, short): (&Shares, bool),
        of_patches: &mut [T],
        told: impl Fn(&mut T, f64),
    ) -> Carried<'_> {
        (self.groups).restrict(vector, &self.modes, &mut self.restricted, shares);
        for (patch, &energy) in of_patches.iter_mut().zip(self.groups.energies()) {
            told(patch, energy);
        }
        let own = &mut self.own_bytes;
        self.nested.forward_own(&self.restricted, short, own);
        self.short = short;
        self.lengths.clear();
        self.lengths.extend(self.nested.solve_bytes(short));
        self.all_bytes.clear();
        Carried {
            own: &self.own_bytes,
            lengths: &self.lengths,
            all: &mut self.all_bytes,
        }
    }

    /// Solves for the restricted residual, which was computed and not updated, and has travelled.
    /// Answers this level's part of r·M r.
    pub(super) fn solve_residual(&mut self) -> f64 {
        let of = (&self.all_bytes[..], self.short);
        let energy = self.nested.finish(of, &mut self.correction);
        self.groups.restart(&self.correction);
        energy
    }

    /// Solves for the restricted product, which has travelled. Answers this level's part of w·M w.
    pub(super) fn solve_product(&mut self) -> f64 {
        let of = (&self.all_bytes[..], self.short);
        self.nested.finish(of, &mut self.change)
    }

    /// Follows r −= α w.
    pub(super) fn step(&mut self, alpha: f64) {
        let change = self.change.as_flattened();
        let correction = self.correction.as_flattened_mut();
        for (correction, change) in correction.iter_mut().zip(change) {
            *correction -= alpha * change;
        }
        self.groups.step(alpha, &self.correction);
    }

    /// Adds the motion of the aggregates to vertices, which `u` is of. Constrained directions are
    /// to be projected out afterwards.
    pub(super) fn add_correction(&self, rows: Range<usize>, u: &mut [DVec3]) {
        let offsets = &self.modes.offsets()[rows.clone()];
        self.groups.add_motion(rows, offsets, u);
    }

    /// How many blocks of 6x6 numbers the coarse matrix has, its lower half.
    pub(super) fn matrix_blocks(&self) -> usize {
        self.matrix_blocks
    }

    /// Whether there is no other rank.
    pub(super) fn is_alone(&self) -> bool {
        self.factor_lengths.len() == 1
    }

    /// Measures the work of a rank that is alone: how long the last matrix takes to be factored,
    /// and a system to be solved, by this clock.
    pub(super) fn time(&mut self, clock: &dyn Fn() -> Duration) -> [Duration; 2] {
        let began = clock();
        let left = (self.nested).factor_own(&self.matrix, &self.scales, Dropped::Nothing);
        self.nested.factor_top(&left);
        let factored = clock();
        (self.nested).forward_own(&self.restricted, false, &mut self.own_bytes);
        let of = (&self.own_bytes[..], false);
        self.nested.finish(of, &mut self.correction);
        [factored - began, clock() - factored]
    }

    /// The work of factoring the matrix and of a solve on this rank, as shares of that on one rank.
    pub(super) fn shares(&self) -> [f64; 2] {
        self.nested.shares()
    }

    /// How many blocks of 6x6 numbers the parts of the factor have that this rank holds.
    pub(super) fn factor_blocks(&self) -> usize {
        self.nested.block_count()
    }
}

/// The columns of the factor of the coarse matrix, in the order of elimination: for each the
/// aggregate that is eliminated, and the later columns that it changes.
///
/// # Panics
/// If aggregates, graph and tree are not of one mesh.
#[must_use]
pub fn coarse_columns(
    aggregates: &Aggregates,
    graph: &Graph,
    tree: &PatchTree,
) -> Vec<(u32, Vec<u32>)> {
    let coarse = aggregates
        .quotient(graph)
        .expect("aggregates and graph are of one mesh");
    Dissection::new(&coarse, aggregates, tree.depth()).columns()
}

#[cfg(test)]
mod tests;
