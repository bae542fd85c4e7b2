//! The solve of a substep's systems: its start, its tolerance, what is remembered of it.

use glam::{DMat3, DVec3};
use weft_runtime::comm::{Comm, Tag};

use super::linear_system::LinearSystem;
use crate::heap_bytes::counts_heap;
use crate::scene;
use crate::solve::{
    BlockMatrix, ModifiedCg, Multilevel, Outcome, Preconditioner, Reduction, Smoother, SolveError,
    Tolerance,
};
use crate::step::context::Context;
use crate::step::domain::Domain;
use crate::step::error::StepError;
use crate::step::response::body_response::BodyConstraint;
use crate::step::state::LocalState;
use crate::step::world::World;
use crate::team::Team;

/// The tag of the messages of the conjugate gradients.
pub(crate) const TAG: Tag = Tag(0x10);

/// The solver of a rank, with what it has found, of owned vertices.
#[derive(Debug)]
pub(crate) struct Solver {
    pub(crate) cg: ModifiedCg,
    pub(crate) reduction: Reduction,
    /// The velocity change that the substep's solve has found, in m/s.
    pub(crate) change: Vec<DVec3>,
    /// The velocity change of the substep before: the next solve starts from both.
    pub(crate) change_before: Vec<DVec3>,
    /// The changes of further solves, which start from nothing.
    pub(crate) further: Vec<DVec3>,
    /// The residual `A Δv − b` of the last solve, in kg m/s: what constraints exert.
    pub(crate) force: Vec<DVec3>,
}

counts_heap!(Solver: cg, reduction, change, change_before, further, force);

impl Solver {
    /// The solver that the scene wants for a matrix, on all threads of a team.
    pub(crate) fn new(world: &World, domain: &Domain, matrix: &BlockMatrix, team: &Team) -> Self {
        let partition = (&domain.plan, world.tree(), &domain.ownership);
        let smoother = match world.scene().solver.preconditioner {
            // With more levels, SSOR saves a third of the iterations and doubles the work of each.
            scene::Preconditioner::BlockJacobi | scene::Preconditioner::Multilevel => {
                Smoother::BlockJacobi
            }
            scene::Preconditioner::PatchSsor => Smoother::PatchSsor,
        };
        let graphs = world.graphs();
        let levels = graphs.aggregates.as_ref().zip(graphs.coarse.as_ref());
        let multilevel = levels.map(|(aggregates, coarse)| Multilevel { aggregates, coarse });
        let preconditioner = Preconditioner::new(smoother, multilevel, matrix.pattern(), partition);
        let reduction = Reduction::new(world.tree(), &domain.ownership, domain.plan.rank());
        let owned = domain.owned().len();
        Self {
            cg: ModifiedCg::new(partition, preconditioner, TAG).with_team(team),
            reduction: reduction.with_team(team),
            change: vec![DVec3::ZERO; owned],
            change_before: vec![DVec3::ZERO; owned],
            further: vec![DVec3::ZERO; owned],
            force: vec![DVec3::ZERO; owned],
        }
    }

    /// Solves for the velocity change of the substep, with forces that act for `tau` (s). It starts
    /// from the changes of the last two: where contacts act in every other substep the one before
    /// the last is the nearer one, and smooth motion is on a straight line through both.
    /// Collective.
    pub(crate) fn solve(
        &mut self,
        comm: &mut dyn Comm,
        at: Context<'_>,
        system: &LinearSystem,
        local: &LocalState,
        tau: f64,
    ) -> Result<Outcome, StepError> {
        let found = &mut self.further;
        found.copy_from_slice(&self.change);
        let (system, tolerance) = (system.view(local), tolerance(at.world, tau));
        let earlier = Some(&self.change_before[..]);
        let outcome = (self.cg)
            .solve_after(comm, &system, &tolerance, earlier, found)
            .map_err(|source| unsolved(at, source))?;
        std::mem::swap(&mut self.change, &mut self.change_before);
        std::mem::swap(&mut self.change, &mut self.further);
        Ok(outcome)
    }

    /// Solves for the velocity change of the substep once more, with other constraints. It starts
    /// from the change that was found last. Collective.
    pub(crate) fn solve_again(
        &mut self,
        comm: &mut dyn Comm,
        at: Context<'_>,
        system: &LinearSystem,
        local: &LocalState,
        tau: f64,
    ) -> Result<Outcome, StepError> {
        let (system, tolerance) = (system.view(local), tolerance(at.world, tau));
        let outcome = (self.cg).solve(comm, &system, &tolerance, &mut self.change);
        outcome.map_err(|source| unsolved(at, source))
    }

    /// Solves for the change of a further system, from nothing. A residual of `tolerance.absolute`
    /// is always good enough. Collective.
    pub(crate) fn solve_further(
        &mut self,
        comm: &mut dyn Comm,
        at: Context<'_>,
        system: &LinearSystem,
        local: &LocalState,
        tolerance: &Tolerance,
    ) -> Result<Outcome, StepError> {
        self.further.fill(DVec3::ZERO);
        let system = system.view(local);
        let outcome = (self.cg).solve(comm, &system, tolerance, &mut self.further);
        outcome.map_err(|source| unsolved(at, source))
    }

    /// Finds the velocity change by the forces at the start, and by the drag of bodies on each
    /// vertex alone. Nothing is solved.
    pub(crate) fn step_explicitly(
        &mut self,
        masses: &[f64],
        system: &LinearSystem,
        constraints: &[BodyConstraint],
    ) {
        let rhs = &system.rhs;
        for ((change, rhs), mass) in self.change.iter_mut().zip(rhs).zip(masses) {
            *change = *rhs / *mass;
        }
        let dragged = || constraints.iter().filter(|c| c.drag > 0.0);
        for c in dragged() {
            let i = c.local as usize;
            let inertia = DMat3::from_diagonal(DVec3::splat(masses[i])) + c.dragged();
            self.change[i] = inertia.inverse() * rhs[i];
        }
        system.filter.enforce(&mut self.change);
        let forces = self.force.iter_mut().zip(&self.change).zip(rhs);
        for (((force, change), rhs), mass) in forces.zip(masses) {
            *force = *change * *mass - *rhs;
        }
        for c in dragged() {
            let i = c.local as usize;
            self.force[i] += c.dragged() * self.change[i];
        }
    }
}

/// The residual in √J (see [`Tolerance`]) that is always good enough: about 10⁻⁹ m/s of a gram, or
/// a share of what gravity does, where that is little, as in short substeps and to small cloth.
pub(crate) fn negligible(world: &World, tau: f64) -> f64 {
    /// The most, in √J.
    const MOST: f64 = 1e-12;
    /// The share of gravity's residual.
    const SHARE: f64 = 1e-7;
    match residual_of_gravity(world, tau) {
        0.0 => MOST,
        gravity => MOST.min(SHARE * gravity),
    }
}

/// The residual of gravity alone for a time in s, on all cloth, in √J.
pub(crate) fn residual_of_gravity(world: &World, tau: f64) -> f64 {
    let sizes = world.scene().gravity.values().map(DVec3::length);
    tau * sizes.fold(0.0, f64::max) * world.mass().sqrt()
}

/// The tolerance of a scene's solves, with forces that act for `tau` (s).
pub(crate) fn tolerance(world: &World, tau: f64) -> Tolerance {
    let solver = &world.scene().solver;
    let allowed = solver.velocity_tolerance.unwrap_or(0.0) * world.mass().sqrt();
    Tolerance {
        relative: solver.tolerance,
        absolute: negligible(world, tau).max(allowed),
        max_iterations: solver.max_iterations,
    }
}

/// An error of the solver, with its vertex in the order of the scene's vertices.
fn unsolved(at: Context<'_>, source: SolveError) -> StepError {
    let mut named = None;
    let source = source.renumbered(|vertex| {
        let vertex = at.world.name(vertex as usize);
        let number = vertex.vertex;
        named = Some(vertex);
        number
    });
    StepError::Solve {
        step: at.substep.number(),
        source,
        at: named,
    }
}
