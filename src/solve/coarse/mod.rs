//! The levels of the preconditioner above vertices: rigid motions of [`groups`] of a few, and a
//! direct solve for those of aggregates.
//!
//! With P the [`modes`] of all aggregates, what the coarse level adds to a local preconditioner is
//! P (Pᵀ A P)⁺ Pᵀ r: additive Schwarz with a coarse space [SBG96, ch. 2], plain aggregation with
//! rigid-body modes \[TJM15\] used once and not as a cycle. Local preconditioners need iterations
//! in proportion to the vertices along a side, for news travels one ring an iteration; this level
//! takes it across the mesh at once.
//!
//! The coarse matrix ([`galerkin`]) is computed by the owners of its rows, shared, and factored by
//! every rank ([`cholesky`]), which solves for the motions of its own aggregates. While rows
//! travel, the solve does what asks for no preconditioner. An iteration then needs no message of
//! its own: Pᵀ w of each rank, for the product w of an iteration, travels with the scalar products,
//! so that all ranks hold it, to the bit. One solve with it, A_c⁺ Pᵀ w, gives this level's part of
//! w·M w, and the correction A_c⁺ Pᵀ r follows it as r follows w: r −= α w. For a residual that was
//! computed and not updated Pᵀ r travels with the sums over it, and is solved for in the same way.
//!
//! Not here: what is local to a vertex or patch ([`super::preconditioner`]).
//!
//! * \[SBG96\] Smith, Bjørstad, Gropp: Domain decomposition.
//! * \[TJM15\] Tamstorf, Jones, McCormick: Smoothed aggregation multigrid for cloth simulation.

mod cholesky;
mod elimination;
mod galerkin;
mod groups;
mod modes;
mod padded;
mod six;
mod subdomains;

use std::ops::Range;

use std::time::Duration;

use glam::DVec3;
use weft_partition::{Aggregates, Graph, HaloPlan, Ownership};
use weft_runtime::comm::{Collectives, Comm, CommError};

use self::cholesky::{Cholesky, Dropped, LowerRows, Workspace};
use self::elimination::Elimination;
use self::galerkin::Galerkin;
use self::groups::Groups;
use self::modes::Modes;
use self::six::{Block, Six};
use super::reduction::Carried;
use super::{BlockMatrix, Filter, Halo, Pattern};
use crate::heap_bytes::counts_heap;
use crate::team::Shares;

/// How many numbers of one travel: of one on the diagonal the lower half.
const PACKED: usize = 36;
const LOWER: usize = 21;

/// The coarse system of one rank, and the coarse vectors of the conjugate gradients.
#[derive(Clone, Debug)]
pub(super) struct CoarseSpace {
    rank: usize,
    owned: Range<usize>,
    /// How many coarse numbers of a vector, and how many of the matrix, each rank has.
    vector_counts: Vec<usize>,
    matrix_counts: Vec<usize>,
    /// The blocks of `matrix` that are computed here, and where those of each aggregate's row
    /// begin, of which the last is on the diagonal.
    owned_blocks: Range<usize>,
    starts: Vec<usize>,
    modes: Modes,
    groups: Groups,
    /// D, the lower half.
    of_groups: Vec<Block>,
    galerkin: Galerkin,
    cholesky: Cholesky,
    workspace: Workspace,
    /// The lower half of A_c, and the numbers of it that travel.
    matrix: Vec<Block>,
    packed: Vec<f64>,
    /// Pᵀ of a vector, of the owned aggregates.
    restricted: Vec<Six>,
    /// Pᵀ w of all aggregates, or Pᵀ r when an iteration begins anew.
    coarse: Vec<Six>,
    /// A_c⁺ Pᵀ w of all aggregates, of which only the owned ones are computed.
    change: Vec<Six>,
    /// A_c⁺ Pᵀ r, of which the same holds.
    correction: Vec<Six>,
}

counts_heap!(CoarseSpace:
    vector_counts, matrix_counts, starts, modes, groups, of_groups, galerkin, cholesky, workspace,
    matrix, packed, restricted, coarse, change, correction;
    without rank, owned, owned_blocks
);

impl CoarseSpace {
    /// The coarse system of the matrix with this pattern.
    ///
    /// # Panics
    /// If plan, ownership, aggregates and graph are not of one partition.
    pub(super) fn new(
        pattern: &Pattern,
        plan: &HaloPlan,
        ownership: &Ownership,
        aggregates: &Aggregates,
        graph: &Graph,
    ) -> Self {
        let coarse = aggregates
            .quotient(graph)
            .expect("aggregates and graph are of one mesh");
        let lower = LowerRows::new(&coarse);
        let ranks = || (0..ownership.ranks()).map(|rank| aggregates.owned(ownership, rank));
        let blocks = |of: Range<usize>| lower.starts[of.start]..lower.starts[of.end];
        let owned = aggregates.owned(ownership, plan.rank());
        let owned_blocks = blocks(owned.clone());
        let all = || vec![[0.0; 6]; aggregates.count()];
        let groups = Groups::new(pattern, plan, ownership, aggregates);
        Self {
            of_groups: vec![[[0.0; 6]; 6]; groups.lower().columns.len()],
            vector_counts: ranks().map(|of| 6 * of.len()).collect(),
            matrix_counts: ranks()
                .map(|of| PACKED * (blocks(of.clone()).len() - of.len()) + LOWER * of.len())
                .collect(),
            starts: lower.starts.clone(),
            modes: Modes::new(plan, ownership, aggregates),
            galerkin: Galerkin::new(pattern, plan, (aggregates, &groups), &lower, &owned_blocks),
            groups,
            cholesky: Cholesky::new(&coarse, &lower, owned.clone()),
            workspace: Workspace::default(),
            matrix: vec![[[0.0; 6]; 6]; lower.columns.len()],
            packed: Vec::new(),
            rank: plan.rank(),
            restricted: vec![[0.0; 6]; owned.len()],
            coarse: all(),
            change: all(),
            correction: all(),
            owned,
            owned_blocks,
        }
    }

    /// Places the modes and computes the owned rows of the coarse matrix, which are then on their
    /// way to all ranks. Collective.
    pub(super) fn begin_factor(
        &mut self,
        comm: &mut dyn Comm,
        halo: &mut Halo,
        (matrix, filter, positions): (&BlockMatrix, &Filter, &[DVec3]),
        shares: &Shares,
    ) -> Result<(), CommError> {
        self.modes.place(comm, halo, positions, filter)?;
        let own = &mut self.matrix[self.owned_blocks.clone()];
        let of = (&self.modes, &self.groups);
        (self.galerkin).assemble(matrix, of, (own, &mut self.of_groups), shares);
        self.groups
            .factor(&self.of_groups, Dropped::Nothing, shares);
        if comm.size() > 1 {
            self.pack();
            let own = &self.packed[self.packed_before()..];
            let count = self.matrix_counts[comm.rank().index()];
            comm.begin_allgather(bytemuck::cast_slice(&own[..count]))?;
        }
        Ok(())
    }

    /// Puts the owned rows in their place among those that travel: of blocks on the diagonal the
    /// lower half.
    fn pack(&mut self) {
        self.packed.resize(self.matrix_counts.iter().sum(), 0.0);
        let mut at = self.packed_before();
        for row in self.owned.clone() {
            let Some((diagonal, others)) =
                self.matrix[self.starts[row]..self.starts[row + 1]].split_last()
            else {
                continue;
            };
            for block in others {
                self.packed[at..at + PACKED].copy_from_slice(block.as_flattened());
                at += PACKED;
            }
            for (c, column) in diagonal.iter().enumerate() {
                self.packed[at..at + 6 - c].copy_from_slice(&column[c..]);
                at += 6 - c;
            }
        }
    }

    /// Takes the rows of all others from there.
    fn unpack(&mut self) {
        let mut at = 0;
        for starts in self.starts.windows(2) {
            let Some((diagonal, others)) = self.matrix[starts[0]..starts[1]].split_last_mut()
            else {
                continue;
            };
            for block in others {
                (block.as_flattened_mut()).copy_from_slice(&self.packed[at..at + PACKED]);
                at += PACKED;
            }
            for (c, column) in diagonal.iter_mut().enumerate() {
                column[c..].copy_from_slice(&self.packed[at..at + 6 - c]);
                at += 6 - c;
            }
        }
    }

    /// How many numbers travel that lower ranks have.
    fn packed_before(&self) -> usize {
        self.matrix_counts[..self.rank].iter().sum()
    }

    /// Takes in the rows of all ranks and factors the matrix. Collective.
    pub(super) fn finish_factor(&mut self, comm: &mut dyn Comm) -> Result<(), CommError> {
        if comm.size() > 1 {
            let lengths: Vec<usize> = (self.matrix_counts.iter())
                .map(|count| size_of::<f64>() * count)
                .collect();
            comm.finish_allgather_into(&lengths, bytemuck::cast_slice_mut(&mut self.packed))?;
            self.unpack();
        }
        self.factor(Dropped::Nothing);
        Ok(())
    }

    fn factor(&mut self, dropped: Dropped) {
        (self.cholesky).factor(&self.matrix, dropped, &mut self.workspace);
    }

    /// Factors the matrices of both levels once more, without modes that constraints have nearly
    /// removed: they multiply what rounding leaves in a residual.
    pub(super) fn drop_weak_modes(&mut self, shares: &Shares) {
        self.groups.factor(&self.of_groups, Dropped::Weak, shares);
        self.factor(Dropped::Weak);
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
        Carried {
            own: self.restricted.as_flattened(),
            counts: &self.vector_counts,
            all: self.coarse.as_flattened_mut(),
            short,
        }
    }

    /// Solves for the restricted residual, which was computed and not updated, and has travelled.
    /// Answers this level's part of r·M r.
    pub(super) fn solve_residual(&mut self) -> f64 {
        let energy = self.cholesky.solve(&self.coarse, &mut self.correction);
        self.groups.restart(&self.correction[self.owned.clone()]);
        energy
    }

    /// Solves for the restricted product, which has travelled. Answers this level's part of w·M w.
    pub(super) fn solve_product(&mut self) -> f64 {
        self.cholesky.solve(&self.coarse, &mut self.change)
    }

    /// Follows r −= α w.
    pub(super) fn step(&mut self, alpha: f64) {
        let own = self.owned.clone();
        let change = self.change[own.clone()].as_flattened();
        let correction = self.correction[own.clone()].as_flattened_mut();
        for (correction, change) in correction.iter_mut().zip(change) {
            *correction -= alpha * change;
        }
        self.groups.step(alpha, &self.correction[own]);
    }

    /// Adds the motion of the aggregates to vertices, which `u` is of. Constrained directions are
    /// to be projected out afterwards.
    pub(super) fn add_correction(&self, rows: Range<usize>, u: &mut [DVec3]) {
        let offsets = &self.modes.offsets()[rows.clone()];
        self.groups.add_motion(rows, offsets, u);
    }

    /// How many blocks of 6x6 numbers the coarse matrix has, its lower half.
    pub(super) fn matrix_blocks(&self) -> usize {
        self.matrix.len()
    }

    /// Measures the work that every rank does for itself: how long the last matrix takes to be
    /// factored, and a system to be solved, by this clock.
    pub(super) fn time(&mut self, clock: &dyn Fn() -> Duration) -> [Duration; 2] {
        let began = clock();
        self.factor(Dropped::Nothing);
        let factored = clock();
        self.cholesky.solve(&self.coarse, &mut self.correction);
        [factored - began, clock() - factored]
    }

    /// The share of a solve that is this rank's: all of the way forth, and of the way back what
    /// leads to its own aggregates.
    pub(super) fn solve_share(&self) -> f64 {
        self.cholesky.solve_share()
    }

    /// How many blocks of 6x6 numbers the factor has.
    pub(super) fn factor_blocks(&self) -> usize {
        self.cholesky.block_count()
    }
}

/// The columns of the factor of the coarse matrix, in the order of elimination: for each the
/// aggregate that is eliminated, and the later columns that it changes.
///
/// # Panics
/// If aggregates and graph are not of one mesh.
#[must_use]
pub fn coarse_columns(aggregates: &Aggregates, graph: &Graph) -> Vec<(u32, Vec<u32>)> {
    let coarse = aggregates
        .quotient(graph)
        .expect("aggregates and graph are of one mesh");
    let elimination = Elimination::new(&coarse);
    let column = |(at, &aggregate)| (aggregate, elimination.column(at).to_vec());
    elimination.order.iter().enumerate().map(column).collect()
}

#[cfg(test)]
mod tests;
