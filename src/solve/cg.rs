//! Modified conjugate gradients: the solve with constrained directions, one reduction an iteration.
//!
//! [`ModifiedCg::solve`] finds Δv = z + S y with S (A Δv − b) = 0, where the [`Filter`] gives the
//! projection S and the prescribed z [BW98 §5]. It is the method of conjugate gradients on S A S,
//! preconditioned ([`Preconditioner`]), in the form that \[AB03\] shows to converge: S is applied
//! as a projection, and progress is measured against S (b − A z), which no warm start (`start`)
//! changes. Faults are found out in `faults`.
//!
//! An iteration has one round of messages: with the product w = S A p travel p·w, r·M r and w·M w,
//! and what a coarse level of the preconditioner M needs to know of w. From these the step is known
//! and the direction after it, the latter by predicting what r·M r will be (`scalars`). The
//! residual comes from a recurrence, which is not taken at its word. When that prediction says that
//! a step has led to the end, no further direction is multiplied: the residual is computed from Δv,
//! and only that one counts. If it is too large still, the iteration starts again from there. So
//! directions may be multiplied with a matrix that is nearly A (`symmetric_copy`), and what the
//! coarse level knows of their products may be rounded: A itself gives the residual at the start
//! and at the end, and all products after a residual that was found too large. The product for it
//! is not lost, it is the force that the constraints exert ([`ModifiedCg::constraint_force`]).
//!
//! Large systems are limited by the bytes of vectors as much as by those of the matrix. There are
//! four, x, r, p and w: of M r and M w only sums are wanted, and they are made where r and w are in
//! the cache anyway (`step`).
//!
//! Interior rows are multiplied while the halo is under way. No sum depends on ownership
//! ([`Reduction`]), no row on where it is ([`super::block_matrix`]): the same bits come out on any
//! number of ranks, errors too. Every decision is made from numbers that all ranks share, so all
//! ranks leave together.

mod faults;
mod scalars;
mod start;
mod step;

use std::ops::Range;
use std::time::Duration;

use glam::DVec3;
use weft_partition::{HaloPlan, Ownership, PatchTree};
use weft_runtime::comm::{Comm, CommError, Tag};

use self::scalars::{Step, Sums};
use super::outcome::{Criterion, End, Outcome, SolveError, System, Tolerance};
use super::pages::Paged;
use super::reduction::dot;
use super::symmetric_copy::{self, SymmetricCopy};
use super::{BlockMatrix, Filter, Halo, Preconditioner, Reduction, Rows};
use crate::heap_bytes::{HeapBytes as _, counts_heap};
use crate::team::{Shares, Team, parts};

/// The solver of one rank: exchange, sums and vectors, used again from step to step.
#[derive(Clone, Debug)]
pub struct ModifiedCg {
    halo: Halo,
    reduction: Reduction,
    /// The first vertex of each patch of the whole tree, to name the patch of a vertex.
    patch_starts: Vec<u32>,
    first_row: u32,
    preconditioner: Preconditioner,
    /// The symmetric single-precision copy of the matrix, if the matrix is large.
    copy: Option<SymmetricCopy>,
    /// The charge of a solve and a product to the clock of a modelled machine, in its units.
    solve_cost: u64,
    product_cost: u64,
    /// The search direction, with halo.
    p: Paged<DVec3>,
    /// The product w = S A p.
    w: Paged<DVec3>,
    /// The residual r = S (b − A x).
    r: Paged<DVec3>,
    /// S of the vectors along which x starts, with halo.
    along: [Paged<DVec3>; 2],
    /// A x − b, not projected.
    force: Paged<DVec3>,
    /// The numbers r·M r, p·w and the local part of w·M w, for each owned patch.
    leaves: Vec<[f64; 3]>,
    /// The constrained rows, ascending.
    constrained: Vec<u32>,
    /// The last step, if x was not yet taken along it.
    due: Option<Step>,
}

counts_heap!(ModifiedCg:
    halo, reduction, patch_starts, preconditioner, copy, p, w, r, along, force, leaves,
    constrained;
    without first_row, solve_cost, product_cost, due
);

/// The counts and bounds of one solve.
#[derive(Clone, Copy, Debug)]
struct Progress {
    /// Whether products with directions are taken with the single-precision copy of the matrix.
    rounded: bool,
    iterations: u32,
    products: u32,
    /// The number r·M r of a cold start, and allowed: squared, in J.
    initial: f64,
    allowed: f64,
    criterion: Criterion,
    best: f64,
    /// The number r·M r, as far as it is known before the next product; infinite where it is not.
    expected: f64,
    /// Whether that is a prediction, and whether one may still be wrong.
    predicted: bool,
    pardon: bool,
    /// The number r·M r when the residual was last computed from x.
    computed: f64,
    /// Whether the preconditioner has modes still that it can do without.
    keeps_weak_modes: bool,
}

impl Progress {
    /// Whether the residual is to be computed from x: it is small enough by all that is known, or
    /// nothing more is allowed.
    fn is_enough(&self, tolerance: &Tolerance) -> bool {
        self.expected <= AIM * self.allowed || self.iterations == tolerance.max_iterations
    }
}

/// Whether a residual computed from x is small enough.
#[derive(Debug)]
enum Check {
    Converged(Outcome),
    GoOn,
}

impl ModifiedCg {
    /// Makes the rooms that the first solve would make: those of the copy of the matrix and of the
    /// preconditioner within patches.
    pub(crate) fn make_room(&mut self, matrix: &BlockMatrix, filter: &Filter) {
        let shares = self.reduction.shares();
        let patches = self.reduction.patches();
        // The matrix may be empty: then its blocks cannot be inverted, and nobody asks for them.
        let _ = self
            .preconditioner
            .factor_within_patches(matrix, filter, (patches, shares));
        if let Some(copy) = &mut self.copy {
            copy.fill(matrix, patches, shares);
        }
    }

    /// The bytes on the heap of the preconditioner within patches, of its coarse level, and of the
    /// copy of the matrix.
    pub(crate) fn bytes_of_parts(&self) -> [usize; 3] {
        let [local, coarse] = self.preconditioner.bytes_of_levels();
        [local, coarse, self.copy.heap_bytes()]
    }

    /// The solver of the rank whose plan this is.
    ///
    /// `preconditioner` is of the same kind on every rank. `tag` must be used for nothing else
    /// while a solve runs.
    ///
    /// # Panics
    /// If plan, tree and ownership are not of one partition.
    #[must_use]
    pub fn new(
        (plan, tree, ownership): (&HaloPlan, &PatchTree, &Ownership),
        preconditioner: Preconditioner,
        tag: Tag,
    ) -> Self {
        let owned = plan.owned().len();
        assert_eq!(
            plan.owned(),
            ownership.vertices(plan.rank()),
            "plan and ownership differ"
        );
        let start = |patch| tree.patch_vertices(patch).start as u32;
        let zeros = || Paged::zeros(owned);
        let reduction = Reduction::new(tree, ownership, plan.rank());
        let leaves = vec![[0.0; 3]; reduction.patches().len()];
        Self {
            halo: Halo::new(plan, tag),
            reduction,
            patch_starts: (0..tree.patch_count()).map(start).collect(),
            first_row: plan.owned().start as u32,
            preconditioner,
            copy: symmetric_copy::is_rounded(tree).then(SymmetricCopy::default),
            solve_cost: 0,
            product_cost: 0,
            p: Paged::zeros(plan.local_len()),
            w: zeros(),
            r: zeros(),
            along: [(); 2].map(|()| Paged::zeros(plan.local_len())),
            force: zeros(),
            leaves,
            constrained: Vec::new(),
            due: None,
        }
    }

    /// The solver with the rows of the rank shared by a team: the same bits.
    #[must_use]
    pub(crate) fn with_team(mut self, team: &Team) -> Self {
        self.reduction = self.reduction.with_team(team);
        self
    }

    /// From now on adds in no particular order, as [`Reduction::forget_order`].
    pub(crate) fn forget_order(&mut self) {
        self.reduction.forget_order();
    }

    /// Chooses whether directions are multiplied with a symmetric single-precision copy of the
    /// matrix or with the matrix itself; otherwise the size of the mesh decides. Both keep to the
    /// tolerance, but stop at other solutions within it.
    ///
    /// # Panics
    /// A solve with the copy does, if a patch has more than 65,536 vertices.
    #[must_use]
    pub fn with_symmetric_copy(mut self, copied: bool) -> Self {
        self.copy = copied.then(SymmetricCopy::default);
        self
    }

    /// How many bytes of matrix the product of an iteration reads, values and columns and row
    /// starts, once this matrix was solved with.
    #[must_use]
    pub fn product_bytes(&self, matrix: &BlockMatrix) -> usize {
        self.copy
            .as_ref()
            .map_or_else(|| matrix.bytes(), SymmetricCopy::bytes)
    }

    /// The rows that each thread of the rank works on.
    #[must_use]
    pub fn shares(&self) -> &Shares {
        self.reduction.shares()
    }

    /// Charges, from now on, this many units for each solve and for each product: for virtual ranks
    /// whose computation is modelled.
    pub fn charge(&mut self, solve: u64, product: u64) {
        self.solve_cost = solve;
        self.product_cost = product;
    }

    /// The work of factoring the coarse matrix and of solving with it on this rank, as shares of
    /// that on one rank.
    #[must_use]
    pub fn coarse_shares(&self) -> [f64; 2] {
        self.preconditioner.coarse_shares()
    }

    /// Measures the coarse level of the preconditioner between solves, if it has one and the rank
    /// is alone. Returns the blocks of its matrix, and how long factoring it and solving with it
    /// take, by this clock.
    pub fn time_coarse(&mut self, clock: &dyn Fn() -> Duration) -> Option<(usize, [Duration; 2])> {
        self.preconditioner.time_coarse(clock)
    }

    /// Solves for the velocity change of the owned vertices, in m/s. Collective.
    ///
    /// `x` says along what to start, and becomes the result; zeros are a cold start. In prescribed
    /// directions its content does not matter, and comes out as [`Filter`] promises.
    ///
    /// # Errors
    /// See [`SolveError`]; all but [`SolveError::Length`] and [`SolveError::Comm`] occur on every
    /// rank alike. After [`SolveError::NotConverged`] `x` holds the last iterate, after other
    /// errors nothing of use.
    pub fn solve(
        &mut self,
        comm: &mut dyn Comm,
        system: &System<'_>,
        tolerance: &Tolerance,
        x: &mut [DVec3],
    ) -> Result<Outcome, SolveError> {
        self.solve_after(comm, system, tolerance, None, x)
    }

    /// Solves a system that follows others, as [`ModifiedCg::solve`] does. The start is a
    /// combination of `x` and of `earlier`, if there is such a vector. Collective.
    ///
    /// # Errors
    /// As [`ModifiedCg::solve`].
    pub(crate) fn solve_after(
        &mut self,
        comm: &mut dyn Comm,
        system: &System<'_>,
        tolerance: &Tolerance,
        earlier: Option<&[DVec3]>,
        x: &mut [DVec3],
    ) -> Result<Outcome, SolveError> {
        self.check_lengths(system, x)?;
        if let Some(earlier) = earlier {
            self.check_lengths(system, earlier)?;
        }
        let team = self.reduction.shares().team().clone();
        team.awake(|| self.iterate(comm, system, tolerance, earlier, x))
    }

    fn iterate(
        &mut self,
        comm: &mut dyn Comm,
        system: &System<'_>,
        tolerance: &Tolerance,
        earlier: Option<&[DVec3]>,
        x: &mut [DVec3],
    ) -> Result<Outcome, SolveError> {
        let shares = self.reduction.shares();
        let bad_block = (self.preconditioner).begin_factor(
            comm,
            &mut self.halo,
            system,
            (self.reduction.patches(), shares),
        )?;
        if let Some(copy) = &mut self.copy {
            copy.fill(system.matrix, self.reduction.patches(), shares);
        }
        let mut progress = self.start(comm, system, tolerance, bad_block, earlier, x)?;
        loop {
            if progress.is_enough(tolerance) {
                if let Check::Converged(outcome) =
                    self.check_residual(comm, system, x, &mut progress)?
                {
                    return Ok(outcome);
                }
                self.check_iterations(comm, tolerance, &progress)?;
            }
            let sums = self.multiply_direction(comm, system, &mut progress)?;
            let [gamma, curvature, energy] = sums;
            if !sums.iter().all(|sum| sum.is_finite()) {
                if !progress.rounded {
                    self.catch_up(system, x);
                    return Err(self.find_non_finite(comm, system, x, progress.iterations)?);
                }
                // Perhaps a number of the matrix is too large for single precision.
                if let Check::Converged(outcome) =
                    self.check_residual(comm, system, x, &mut progress)?
                {
                    return Ok(outcome);
                }
                continue;
            }
            progress.best = progress.best.min(gamma.sqrt());
            if gamma <= AIM * progress.allowed {
                // More than was expected of the step.
                progress.expected = gamma;
                progress.predicted = false;
                continue;
            }
            let sums = Sums {
                gamma,
                curvature,
                energy: energy + self.preconditioner.solve_product(),
            };
            let Some(step) = sums.step() else {
                self.check_curvature(comm, system, &mut progress)?;
                // The matrix is innocent, the recurrence has lost its way.
                if let Check::Converged(outcome) =
                    self.check_residual(comm, system, x, &mut progress)?
                {
                    return Ok(outcome);
                }
                continue;
            };
            self.advance(system, step, x);
            progress.iterations += 1;
            progress.expected = if step.beta > 0.0 {
                step.beta * gamma
            } else {
                f64::INFINITY
            };
            progress.predicted = true;
        }
    }

    /// Gives up after as many iterations as are allowed, the residual of which was just computed.
    /// Collective.
    fn check_iterations(
        &self,
        comm: &mut dyn Comm,
        tolerance: &Tolerance,
        progress: &Progress,
    ) -> Result<(), SolveError> {
        if progress.iterations < tolerance.max_iterations {
            return Ok(());
        }
        let end = if progress.computed > progress.initial {
            End::Grew
        } else {
            End::TooFew
        };
        Err(self.not_converged(comm, progress, end)?)
    }

    /// A Δv − b of the owned vertices in kg m/s, for the Δv that the last solve converged to.
    ///
    /// In free directions what the tolerance left; in prescribed ones the impulse with which the
    /// constraint acts on the vertex, by which contacts are held or released [BW98 §5].
    #[must_use]
    pub fn constraint_force(&self) -> &[DVec3] {
        &self.force
    }

    fn check_lengths(&self, system: &System<'_>, x: &[DVec3]) -> Result<(), SolveError> {
        let expected = self.halo.owned_len();
        for (what, found) in [
            ("matrix rows", system.matrix.pattern().row_count()),
            ("right-hand side", system.rhs.len()),
            ("filter", system.filter.len()),
            ("velocity changes", x.len()),
            ("positions", system.positions.len()),
        ] {
            if found != expected {
                return Err(SolveError::Length {
                    what,
                    expected,
                    found,
                });
            }
        }
        let (expected, found) = (self.halo.local_len(), system.matrix.pattern().local_len());
        if found != expected {
            return Err(SolveError::Length {
                what: "matrix columns",
                expected,
                found,
            });
        }
        let found = system.matrix.pattern().entry_counts();
        let expected = self.preconditioner.entries().unwrap_or(found);
        if found != expected {
            return Err(SolveError::Length {
                what: "matrix entries",
                expected: expected.0 + expected.1,
                found: found.0 + found.1,
            });
        }
        Ok(())
    }

    /// Computes the residual from x, with everything that an iteration starts from.
    ///
    /// If it is hardly smaller than when it was last computed, the recurrences only promise what
    /// rounding does not let them keep. The preconditioner then has to do without the modes that
    /// multiply rounding: those that constraints nearly remove, where these hold with great forces.
    /// If that does not help either, the answer is [`SolveError::NotConverged`].
    fn check_residual(
        &mut self,
        comm: &mut dyn Comm,
        system: &System<'_>,
        x: &mut [DVec3],
        progress: &mut Progress,
    ) -> Result<Check, SolveError> {
        self.catch_up(system, x);
        system.filter.enforce(x);
        let (shares, x_now) = (self.reduction.shares(), &*x);
        let of = &shares.elements;
        let directions = parts(&mut self.p[..x_now.len()], of).zip(of);
        shares.run(directions, |(p, share)| {
            p.copy_from_slice(&x_now[share.clone()]);
        });
        self.multiply(comm, system, false, false)?;
        progress.products += 1;
        let shares = self.reduction.shares();
        let of = &shares.elements;
        let vectors = parts(&mut self.force, of).zip(parts(&mut self.r, of));
        let w = &self.w;
        shares.run(vectors.zip(of), |((force, r), share)| {
            let products = w[share.clone()].iter().zip(&system.rhs[share.clone()]);
            for ((force, r), (ax, b)) in force.iter_mut().zip(r).zip(products) {
                *force = *ax - *b;
                *r = *b - *ax;
            }
        });
        system.filter.project(&mut self.r);
        let [mut gamma] = self.measure_residual(comm, system, |_, _| [0.0])?;
        if !gamma.is_finite() {
            return Err(self.find_non_finite(comm, system, x, progress.iterations)?);
        }
        let predicted = std::mem::take(&mut progress.predicted);
        // A prediction that was a little too low is no stagnation.
        let mut stagnates = gamma > progress.allowed.max(WORTHWHILE * progress.computed)
            && !(predicted && std::mem::take(&mut progress.pardon));
        if stagnates
            && std::mem::take(&mut progress.keeps_weak_modes)
            && (self.preconditioner).drop_weak_modes(comm, self.reduction.shares())?
        {
            [gamma] = self.measure_residual(comm, system, |_, _| [0.0])?;
            stagnates = false;
        }
        progress.best = progress.best.min(gamma.sqrt());
        progress.expected = gamma;
        progress.computed = gamma;
        if gamma <= progress.allowed {
            return Ok(Check::Converged(Outcome {
                iterations: progress.iterations,
                products: progress.products,
                residual: gamma.sqrt(),
                allowed: progress.allowed.sqrt(),
                criterion: progress.criterion,
            }));
        }
        self.point_along_residual(system);
        if stagnates {
            return Err(self.not_converged(comm, progress, End::Stagnated)?);
        }
        // Rounding may be what the recurrence did not see.
        progress.rounded = false;
        Ok(Check::GoOn)
    }

    /// Measures r·M r for a residual that no recurrence led to, and sums over all patches what else
    /// `others` finds of a patch, in the places behind the first. The coarse level's part of r
    /// travels with these. Collective.
    fn measure_residual<const K: usize>(
        &mut self,
        comm: &mut dyn Comm,
        system: &System<'_>,
        others: impl Fn(&Self, Range<usize>) -> [f64; K] + Sync,
    ) -> Result<[f64; K], CommError> {
        let of = (self.reduction.patches(), self.reduction.shares());
        self.preconditioner.restart(system, of, &self.r);
        let mut leaves = self.reduction.leaves(|patch| {
            let mut leaf = others(self, patch.clone());
            leaf[0] = (self.preconditioner).residual_energy(patch.clone(), &self.r[patch]);
            leaf
        });
        let carried = self.preconditioner.restrict(
            &self.r,
            (self.reduction.shares(), false),
            &mut leaves,
            |leaf, part| leaf[0] += part,
        );
        let mut sums = self.reduction.sum_leaves(comm, carried, &leaves)?;
        sums[0] += self.preconditioner.solve_residual();
        Ok(sums)
    }

    /// Sets p = M r for a residual that was measured, and finds r·p of patches.
    fn point_along_residual(&mut self, system: &System<'_>) {
        let p = &mut self.p[..self.halo.owned_len()];
        let of = (self.reduction.patches(), self.reduction.shares());
        self.preconditioner.apply_all(system, of, &self.r, p);
        let (patches, shares) = (self.reduction.patches(), self.reduction.shares());
        let (p, r) = (&self.p, &self.r);
        let leaves = parts(&mut self.leaves, &shares.ranges).zip(&shares.ranges);
        shares.run(leaves, |(leaves, share)| {
            for ([gamma, ..], patch) in leaves.iter_mut().zip(&patches[share.clone()]) {
                *gamma = dot(&r[patch.clone()], &p[patch.clone()]);
            }
        });
    }

    /// Computes w = S A p, r·M r, p·w and the local part of w·M w; what the coarse level knows of w
    /// travels with these. Collective.
    fn multiply_direction(
        &mut self,
        comm: &mut dyn Comm,
        system: &System<'_>,
        progress: &mut Progress,
    ) -> Result<[f64; 3], CommError> {
        self.multiply(comm, system, true, progress.rounded)?;
        progress.products += 1;
        let (patches, shares) = (self.reduction.patches(), self.reduction.shares());
        let told = |[.., energy]: &mut [f64; 3], part: f64| *energy = part;
        let of = (patches, shares);
        (self.preconditioner).sweep_product(system, of, &self.w, &mut self.leaves, told);
        let told = |[.., energy]: &mut [f64; 3], part: f64| *energy += part;
        let of = (shares, progress.rounded);
        let carried = (self.preconditioner).restrict(&self.w, of, &mut self.leaves, told);
        self.reduction.sum_leaves(comm, carried, &self.leaves)
    }

    /// Computes w = A p, or nearly, if `rounded`; interior rows while the halo of p is under way.
    /// For a direction w = S A p, and of patches p·w and what can be had of w·M w too. Collective.
    fn multiply(
        &mut self,
        comm: &mut dyn Comm,
        system: &System<'_>,
        direction: bool,
        rounded: bool,
    ) -> Result<(), CommError> {
        let filter = direction.then_some(system.filter);
        self.halo.start(comm, &self.p)?;
        self.multiply_rows(system.matrix, Rows::Interior, filter, rounded);
        if self.product_cost > 0 {
            comm.compute(self.product_cost, Duration::ZERO);
        }
        self.halo.finish(comm, &mut self.p)?;
        if comm.size() > 1 {
            self.multiply_rows(system.matrix, Rows::Border, filter, rounded);
        }
        Ok(())
    }

    fn multiply_rows(
        &mut self,
        matrix: &BlockMatrix,
        rows: Rows,
        filter: Option<&Filter>,
        rounded: bool,
    ) {
        let (p, shares, patches) = (&self.p, self.reduction.shares(), self.reduction.patches());
        let (w, leaves) = (&mut self.w, &mut self.leaves);
        let (constrained, preconditioner) = (&self.constrained, &self.preconditioner);
        // While a patch is in the cache.
        let done = |patch: Range<usize>, w: &mut [DVec3], leaf: &mut [f64; 3]| {
            if let Some(filter) = filter {
                project(filter, constrained, &patch, w);
                [leaf[1], leaf[2]] = preconditioner.energies(patch.clone(), w, &p[patch]);
            }
        };
        if let Some(copy) = self.copy.as_mut().filter(|_| rounded) {
            match rows {
                Rows::Interior => copy.multiply_interior(p, (w, leaves), shares, done),
                Rows::Border => copy.multiply_border(p, (w, leaves), shares, done),
                Rows::All => unreachable!("the halo comes in between"),
            }
            return;
        }
        let pattern = matrix.pattern();
        let border = matches!(rows, Rows::Border);
        let work =
            (parts(w, &shares.elements).zip(parts(leaves, &shares.ranges))).zip(&shares.ranges);
        shares.run(work, |((w, leaves), share)| {
            let patches = &patches[share.clone()];
            for ((patch, w), leaf) in patches.iter().zip(parts(w, patches)).zip(leaves) {
                matrix.multiply_share([p], [w], patch.start, rows);
                if pattern.reads_halo(patch) == border {
                    done(patch.clone(), w, leaf);
                }
            }
        });
    }
}

/// Projects the part of a vector that is of some rows; the constrained rows are given in ascending
/// order.
fn project(filter: &Filter, constrained: &[u32], rows: &Range<usize>, of_rows: &mut [DVec3]) {
    let before = constrained.partition_point(|&row| (row as usize) < rows.start);
    for row in constrained[before..].iter().map(|&row| row as usize) {
        let Some(v) = of_rows.get_mut(row - rows.start) else {
            break;
        };
        *v = filter.projected(row, *v);
    }
}

/// The share of the allowed r·M r that the recurrence aims at, so that the computed one is seldom
/// above.
const AIM: f64 = 0.98;

/// Starting again is given up when r·M r did not fall at least to this share since it was last
/// computed.
const WORTHWHILE: f64 = 0.25;

#[cfg(test)]
mod tests;
