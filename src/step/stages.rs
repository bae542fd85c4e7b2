//! The stages of a substep, which is the whole step unless that was cut; after [TB06 §3 and §4] and
//! [BW98]:
//!
//! 1. detect: tasks find the contacts of the substep;
//! 2. constrain: vertices near bodies lose directions;
//! 3. assemble and solve for the velocity change, once or until the equations are met (`newton`);
//! 4. respond: constraints are held or released, friction acts, impulses correct what the solve did
//!    not foresee, nothing enters a body; methods that move vertices with other velocities than
//!    they end with find the latter;
//! 5. move, and share the new state; on several ranks the next substep's system is assembled
//!    meanwhile.
//!
//! Nothing of the state is replaced before the last stage, so that a substep can be taken back.
//!
//! * \[BW98\] Baraff, Witkin: Large steps in cloth simulation.
//! * \[TB06\] Thomaszewski, Blochinger: Parallel simulation of cloth on distributed memory
//!   architectures.

use glam::DVec3;
use weft_runtime::comm::{Comm, CommError};
use weft_runtime::trace::MainTrack;

use super::certify::LetThrough;
use super::context::Context;
use super::error::StepError;
use super::exchange::new_state::{Exchanged, assembles_ahead};
use super::integrate::time_integrator::{Prescribed, TimeIntegrator};
use super::neighbourhood::Replica;
use super::report::{Clock, PHASES, StepReport};
use super::response::body_response::{BodyConstraint, BodyResponse};
use super::response::responding::{Moving, Solved};
use super::simulation::Simulation;
use super::state::{LocalState, StateView};
use super::system::linear_system::LinearSystem;
use super::system::newton::Newton;
use super::system::solver::tolerance;
use crate::scene::Integrator;

impl Simulation<'_> {
    /// Takes the substep and gives every rank the new state. Collective.
    pub(super) fn take_substep(
        &mut self,
        comm: &mut dyn Comm,
        report: &mut StepReport,
        track: &mut MainTrack,
    ) -> Result<(), StepError> {
        let mut clock = Clock::start(comm, track);
        report.began = clock.now;
        let team = self.team().clone();
        team.awake(|| self.take_stages(comm, report, &mut clock))
    }

    fn take_stages(
        &mut self,
        comm: &mut dyn Comm,
        report: &mut StepReport,
        clock: &mut Clock<'_>,
    ) -> Result<(), StepError> {
        let Self {
            world,
            domain,
            state,
            local,
            substep,
            detection,
            system,
            solver,
            integrator,
            response,
            exchange,
            certification,
            impulses,
            ..
        } = self;
        let world = *world;
        substep.place_pins(world);
        let at = Context {
            world,
            domain: &*domain,
            substep: &*substep,
        };
        let shares = solver.cg.shares().clone();
        let through =
            (certification.as_ref()).map_or_else(LetThrough::nothing, |c| c.let_through());
        let contacts = detection.detect(comm, at, state, (shares.team(), through), report)?;
        let count = Some(("contacts", report.contacts));
        report.times[0] = clock.lap(comm, count, Some(PHASES[1]));

        let ahead = exchange.take_ahead(at.substep.dt);
        let begin = state.of(at.domain.owned());
        if ahead.is_none() {
            let neighbourhood = Replica {
                world,
                state: &*state,
            };
            local.load(at.domain, begin, &shares, &neighbourhood);
        }
        response.constrain(at, &contacts, begin, system, report);
        let constraints = response.bodies.constraints();
        begin_integration(comm, at, local, begin, constraints, integrator)?;
        let collapsed = ahead.unwrap_or_else(|| {
            at.domain.charge_assembly(comm);
            system.assemble_first(world, integrator, local)
        });
        exchange.agree_and_hear(comm, at, collapsed)?;
        report.times[1] = clock.lap(comm, None, Some(PHASES[2]));

        if integrator.integrator == Integrator::Central {
            solver.step_explicitly(at.masses(), system);
        } else {
            let outcome = solver.solve(comm, at, system, local, integrator.tau)?;
            report.note(&outcome);
            solver.force.copy_from_slice(solver.cg.constraint_force());
            if world.scene().solver.newton > 1 {
                let mut newton = Newton {
                    at,
                    local,
                    velocities: begin.v,
                    constraints,
                    system,
                    solver,
                    integrator,
                };
                newton.iterate(comm, report)?;
            }
        }
        let count = Some(("iterations", u64::from(report.iterations)));
        report.times[2] = clock.lap(comm, count, Some(PHASES[3]));

        let solved = Solved {
            assembly: &system.assembly,
            change: &solver.change,
            force: &solver.force,
        };
        impulses.clear();
        let is_whole = integrator.integrator != Integrator::Newmark;
        if is_whole {
            impulses.note_solve(at, response.bodies.constraints(), &solver.force);
        }
        let moving = Moving {
            local,
            integrator,
            impulses,
        };
        response.respond(comm, at, &contacts, solved, moving, report)?;
        response.check_changes(comm, at, &system.assembly, local, integrator, report)?;
        if !integrator.integrator.is_implicit() {
            // A second solve finds the velocities at the end.
            assemble_second(comm, at, begin.v, local, integrator, system)?;
            hold_at_ends(integrator, local, &response.bodies, system);
            let tolerance = tolerance(world, integrator.tau);
            let outcome = solver.solve_further(comm, at, system, local, &tolerance)?;
            report.note(&outcome);
            integrator.finish(&solver.further);
            let times = integrator.extrapolation();
            let forces = solver.force.iter_mut().zip(solver.cg.constraint_force());
            forces.for_each(|(force, half)| *force = *half * times);
            (response.bodies).settle_ends(&solver.force, at.masses(), &mut integrator.ends);
            impulses.note_solve(at, response.bodies.constraints(), &solver.force);
        }
        impulses.note_bodies(response.bodies.take_pushes(), at.masses());
        detection.take_back(contacts);
        let count = Some(("impulses", report.impulses));
        let next = PHASES[if assembles_ahead(comm, integrator) {
            1
        } else {
            4
        }];
        report.times[3] = clock.lap(comm, count, Some(next));

        let values = Exchanged {
            state,
            local,
            system,
            integrator,
            shares: &shares,
            jolts: response.bodies.jolts(),
            certification: certification.as_mut().map(|c| (c, &*detection)),
            impulses,
        };
        exchange.share(comm, at, values, report, clock)?;
        report.times[4] = clock.lap(comm, None, None);
        Ok(())
    }
}

/// Has the integrator begin with the local state, and with what pins and bodies prescribe.
/// Collective.
fn begin_integration(
    comm: &mut dyn Comm,
    at: Context<'_>,
    local: &LocalState,
    begin: StateView<'_>,
    constraints: &[BodyConstraint],
    integrator: &mut TimeIntegrator,
) -> Result<(), CommError> {
    begin_free_integration(at, local, begin, integrator);
    for c in constraints {
        let i = c.local as usize;
        let prescribed = Prescribed {
            local: i,
            free: c.free,
            velocity: local.v[i] + c.change,
        };
        integrator.prescribe(prescribed, local.view(), at.substep.dt);
    }
    integrator.share_ahead(comm)
}

/// Has the integrator begin without contacts, and without what comes from other ranks. `begin` is
/// the state of owned vertices.
pub(super) fn begin_free_integration(
    at: Context<'_>,
    local: &LocalState,
    begin: StateView<'_>,
    integrator: &mut TimeIntegrator,
) {
    integrator.begin(at.substep.dt, local.view());
    for pinned in at.own_pinned().filter(|pinned| !pinned.motion.is_fixed()) {
        let prescribed = Prescribed {
            local: pinned.row,
            free: pinned.motion.free,
            velocity: at.prescribed_velocity(&pinned, begin.x[pinned.row]),
        };
        integrator.prescribe(prescribed, local.view(), at.substep.dt);
    }
}

/// Assembles the system of the second solve, after vertices were found to move with the local
/// velocities, with pins as its only constraints. `velocities` are those of owned vertices at the
/// start of the substep. Collective.
pub(super) fn assemble_second(
    comm: &mut dyn Comm,
    at: Context<'_>,
    velocities: &[DVec3],
    local: &mut LocalState,
    integrator: &mut TimeIntegrator,
    system: &mut LinearSystem,
) -> Result<(), StepError> {
    let begin = StateView {
        x: &local.x,
        v: velocities,
    };
    integrator.second(comm, at.substep.dt, begin, &mut local.v)?;
    let collapsed = system.assemble_there(at.world, integrator, 0.0);
    at.agree_on_collapse(comm, collapsed)?;
    let times = integrator.extrapolation();
    let (from, to) = (&integrator.v, &local.v);
    system.filter.clear();
    for pinned in at.own_pinned() {
        let i = pinned.row;
        let change = (to[i] - from[i]) / times;
        system.filter.constrain(i, pinned.motion.free, change);
    }
    Ok(())
}

/// Constrains in the second solve what bodies hold: it ends with the velocity with which it moved.
fn hold_at_ends(
    integrator: &TimeIntegrator,
    local: &LocalState,
    bodies: &BodyResponse,
    system: &mut LinearSystem,
) {
    let times = integrator.extrapolation();
    let (from, to, states) = (&integrator.v, &local.v, bodies.states());
    let held = bodies.constraints().iter();
    for c in held.filter(|c| states[c.local as usize].held) {
        let i = c.local as usize;
        let change = (to[i] - from[i]) / times;
        system.filter.constrain(i, c.free, change);
    }
}
