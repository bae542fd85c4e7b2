//! The solves of a substep, in turns with the constraints by bodies: a solve tells what bodies
//! would have to do, and where they cannot do it, other constraints are solved with.
//!
//! There is another turn only if that matters. Work that bodies cannot do may be as much as what a
//! solve may leave; impulses that merely come a step late may be several times that. The residual
//! that a solve may leave goes to nothing as cloth comes to rest, and so do the impulses that are
//! not put right. Friction that holds cloth more strongly than it can takes energy, and is compared
//! with all friction that bodies could exert ([`EXCESS`]).
//!
//! Constraints are local to a vertex, but whether there is another turn is not: all ranks solve or
//! none. They agree on that only in substeps in which some vertex is near a body.

use weft_runtime::comm::Comm;

use super::contact::contacts::Contacts;
use super::context::Context;
use super::error::StepError;
use super::integrate::time_integrator::TimeIntegrator;
use super::report::StepReport;
use super::response::body_response::{BodyResponse, SolvedTurn, TURNS};
use super::response::responding::{Response, step_context};
use super::stages::{assemble_second, begin_integration, hold_pins_at_ends};
use super::state::{LocalState, StateView};
use super::system::linear_system::LinearSystem;
use super::system::newton::Newton;
use super::system::solver::{Solver, tolerance};
use crate::scene::Integrator;
use crate::solve::Reduction;

/// How much of what bodies do may come a step late, as a multiple of what a solve may leave.
/// Impacts and folds change the contact of some vertices in nearly every step, and solving them all
/// again for that would double its price.
const LATE: f64 = 30.0;

/// How much all friction on vertices that stick may exceed Coulomb's law, as a share of the largest
/// friction that the law allows all vertices that touch. Where fine cloth slides over a body, a few
/// vertices in a hundred stick at the start of a step, for friction has just turned their way. A
/// taut sheet pulls each with hundreds of times what friction can hold, and would go with the body.
const EXCESS: f64 = 1.0;

/// The values that the solves of a substep work on.
#[derive(Debug)]
pub(super) struct Turns<'a> {
    pub(super) at: Context<'a>,
    pub(super) contacts: &'a Contacts,
    /// The state of owned vertices at the start of the substep.
    pub(super) begin: StateView<'a>,
    pub(super) local: &'a mut LocalState,
    pub(super) system: &'a mut LinearSystem,
    pub(super) solver: &'a mut Solver,
    pub(super) integrator: &'a mut TimeIntegrator,
    pub(super) response: &'a mut Response,
    /// Whether vertices of any rank are near bodies.
    pub(super) near_bodies: bool,
}

impl Turns<'_> {
    /// Solves the system that was assembled, until bodies can do what they would have to. Returns
    /// the residual in √J that may be left. Collective.
    pub(super) fn first(
        &mut self,
        comm: &mut dyn Comm,
        report: &mut StepReport,
    ) -> Result<f64, StepError> {
        for turn in 1.. {
            let is_new = turn == 1 || self.is_assembled_again();
            (self.response.bodies).exert(self.system, is_new);
            let allowed = self.solve(comm, turn == 1, report)?;
            if turn == TURNS || !self.is_to_turn(comm, allowed, turn + 1 == TURNS)? {
                return Ok(allowed);
            }
            self.response.bodies.turn();
            (self.response).hold(self.at, self.begin, self.system, report);
            if self.is_assembled_again() {
                let Self { at, local, .. } = self;
                let constraints = self.response.bodies.constraints();
                begin_integration(comm, *at, local, self.begin, constraints, self.integrator)?;
                at.domain.charge_assembly(comm);
                let collapsed = (self.system).assemble_first(*at, self.integrator, self.local);
                self.at.agree_on_collapse(comm, collapsed)?;
            }
        }
        unreachable!("turns end")
    }

    /// Whether the system depends on constraints by more than friction, or has become another one.
    fn is_assembled_again(&self) -> bool {
        self.integrator.integrator == Integrator::Bdf2
            || self.integrator.integrator.is_implicit() && self.at.world.scene().solver.newton > 1
    }

    /// Whether the first changes of velocity follow from forces and masses alone.
    fn is_explicit(&self) -> bool {
        self.integrator.integrator == Integrator::Central
    }

    /// Solves once, with Newton's method if the scene wants that.
    fn solve(
        &mut self,
        comm: &mut dyn Comm,
        first: bool,
        report: &mut StepReport,
    ) -> Result<f64, StepError> {
        let is_explicit = self.is_explicit();
        let (at, solver) = (self.at, &mut *self.solver);
        if is_explicit {
            let constraints = self.response.bodies.constraints();
            solver.step_explicitly(at.masses(), self.system, constraints);
            return Ok(0.0);
        }
        let outcome = if first {
            solver.solve(comm, at, self.system, self.local, self.integrator.tau)?
        } else {
            solver.solve_again(comm, at, self.system, self.local, self.integrator.tau)?
        };
        report.note(&outcome);
        solver.force.copy_from_slice(solver.cg.constraint_force());
        if at.world.scene().solver.newton == 1 {
            return Ok(outcome.allowed);
        }
        let mut newton = Newton {
            at,
            local: self.local,
            velocities: self.begin.v,
            constraints: self.response.bodies.constraints(),
            system: self.system,
            solver,
            integrator: self.integrator,
        };
        newton.iterate(comm, report)
    }

    /// Revises the constraints, and says whether solving with the new ones is worth its price.
    /// Collective.
    fn is_to_turn(
        &mut self,
        comm: &mut dyn Comm,
        allowed: f64,
        last: bool,
    ) -> Result<bool, StepError> {
        if !self.near_bodies {
            return Ok(false);
        }
        let solved = SolvedTurn {
            residual: &self.solver.force,
            allowed,
            velocities: self.begin.v,
            change: &self.solver.change,
            matrix: (!self.is_explicit()).then_some(&self.system.matrix),
            all_mass: self.at.world.mass(),
        };
        let (dt, x, integrator) = (self.at.substep.dt, &self.local.x, &*self.integrator);
        let moves =
            |i: usize| integrator.motion(dt, x[i], i, solved.velocities[i] + solved.change[i]);
        let context = step_context(self.at, integrator.tau);
        let contacts = self.contacts.vertex_body();
        (self.response.bodies).revise(contacts, &solved, moves, &context, last);
        let (bodies, reduction) = (&self.response.bodies, &self.solver.reduction);
        is_worth_a_turn(comm, reduction, bodies, &solved, self.at.masses())
    }

    /// Finds the velocities at the end of the substep by a second solve, after the local velocities
    /// were found to be those with which vertices move. Collective.
    pub(super) fn second(
        &mut self,
        comm: &mut dyn Comm,
        report: &mut StepReport,
    ) -> Result<(), StepError> {
        let (at, velocities) = (self.at, self.begin.v);
        let (local, system) = (&mut *self.local, &mut *self.system);
        assemble_second(comm, at, velocities, local, self.integrator, system)?;
        let times = self.integrator.extrapolation();
        let context = step_context(at, self.integrator.tau);
        let bodies = &mut self.response.bodies;
        bodies.end(&self.integrator.v, &local.v, times, &context);
        for turn in 1.. {
            hold_pins_at_ends(at, local, self.integrator, system);
            for c in bodies.constraints() {
                system.filter.constrain(c.local as usize, c.free, c.change);
            }
            bodies.exert(system, turn == 1);
            let tolerance = tolerance(at.world, self.integrator.tau);
            let outcome = self
                .solver
                .solve_further(comm, at, system, local, &tolerance)?;
            report.note(&outcome);
            for change in &mut self.solver.further {
                *change *= times;
            }
            self.integrator.finish(&self.solver.further);
            self.solver
                .force
                .copy_from_slice(self.solver.cg.constraint_force());
            let solved = SolvedTurn {
                residual: &self.solver.force,
                allowed: outcome.allowed,
                velocities: &self.integrator.v,
                change: &self.solver.further,
                matrix: Some(&system.matrix),
                all_mass: at.world.mass(),
            };
            let turns = turn < TURNS && self.near_bodies && {
                bodies.revise_ends(&solved, &context, turn + 1 == TURNS);
                is_worth_a_turn(comm, &self.solver.reduction, bodies, &solved, at.masses())?
            };
            if !turns {
                bodies.settle_ends(&solved, &context, &mut self.integrator.ends);
                break;
            }
            bodies.turn();
        }
        Ok(())
    }
}

/// Whether a solve is so wrong about what bodies do that another one is worth its price: whether
/// more is late than [`LATE`] allows, friction exceeds Coulomb's law by more than [`EXCESS`], or
/// bodies give the cloth more energy than the residual that the solve may leave can. Such a
/// residual r does the work rᵀv, at most its size times the root of twice the kinetic energy.
/// Collective.
fn is_worth_a_turn(
    comm: &mut dyn Comm,
    reduction: &Reduction,
    bodies: &BodyResponse,
    solved: &SolvedTurn<'_>,
    masses: &[f64],
) -> Result<bool, StepError> {
    let (wrong, allowed) = (bodies.wrong(), solved.allowed);
    let [late, gains, moves, excess, limit] = reduction.sum(comm, |patch| {
        let mut sums = [0.0; 5];
        for i in patch {
            let wrong = wrong[i];
            let velocity = solved.velocities[i] + solved.change[i];
            let moves = masses[i] * velocity.length_squared();
            let terms = [wrong.late, wrong.gains, moves, wrong.excess, wrong.limit];
            for (sum, term) in sums.iter_mut().zip(terms) {
                *sum += term;
            }
        }
        sums
    })?;
    Ok(excess > EXCESS * limit
        || late.sqrt() > LATE * allowed
        || gains > allowed * (allowed + moves.sqrt()))
}
