//! The stages of a substep, which is the whole step unless that was cut; after [TB06 §3 and §4] and
//! [BW98]:
//!
//! 1. detect: tasks find the contacts of the substep;
//! 2. constrain: vertices near bodies lose directions;
//! 3. assemble and solve for the velocity change, once or until the equations are met (`newton`),
//!    in turns with the constraints, until bodies push and rub by Coulomb's law (`turns`);
//! 4. respond: friction acts at first contacts, impulses correct what the solve did not foresee,
//!    nothing enters a body; methods that move vertices with other velocities than they end with
//!    find the latter;
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
use super::diagnose::ledger::SolvedImpulses;
use super::error::StepError;
use super::exchange::new_state::{Exchanged, Part, assembles_ahead};
use super::integrate::time_integrator::{Prescribed, TimeIntegrator};
use super::neighbourhood::Replica;
use super::pipeline::Within;
use super::pipeline::history::Look;
use super::report::{Clock, PHASES, StepReport};
use super::response::body_response::{BodyConstraint, SolvedTurn};
use super::response::responding::{Moving, Repelling, Solved};
use super::simulation::Simulation;
use super::state::{LocalState, StateView};
use super::system::linear_system::LinearSystem;
use super::turns::Turns;
use crate::scene::Integrator;

impl Simulation<'_> {
    /// Takes the substep, which may be one of many that share their pairs, and gives every rank the
    /// new state. Collective.
    pub(super) fn take_substep(
        &mut self,
        comm: &mut dyn Comm,
        report: &mut StepReport,
        track: &mut MainTrack,
        within: Option<Within<'_>>,
    ) -> Result<(), StepError> {
        let mut clock = Clock::start(comm, track);
        report.began = clock.now;
        let team = self.team().clone();
        team.awake(|| self.take_stages(comm, report, &mut clock, within))
    }

    fn take_stages(
        &mut self,
        comm: &mut dyn Comm,
        report: &mut StepReport,
        clock: &mut Clock<'_>,
        within: Option<Within<'_>>,
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
        let (mut many, ends) = within.map_or((None, None), |w| (Some(w.many), w.ends));
        let mut near = None;
        let searching = match &mut many {
            Some(many) => &mut many.bodies,
            None => &mut *detection,
        };
        let contacts = searching.detect(comm, at, &mut *state, (shares.team(), through), report)?;
        if let Some(many) = &mut many {
            let began = comm.now();
            let look = Look {
                at,
                start: &many.start,
                state: &*state,
                foreseen: &many.bodies.foreseen,
            };
            let found = many.history.near(&look, shares.team());
            report.looked = found.counts.looked;
            report.inverted = found.counts.inverted;
            near = Some(found);
            report.repel_time += comm.now().saturating_sub(began);
        }
        let count = Some(("contacts", report.contacts));
        report.times[0] = clock.lap(comm, count, Some(PHASES[1]));

        let ahead = exchange.take_ahead(at.substep.dt, at.substep.load_time(world));
        let begin = state.of(at.domain.owned());
        if ahead.is_none() {
            let neighbourhood = Replica {
                world,
                state: &*state,
            };
            local.load(at.domain, begin, &shares, &neighbourhood);
        }
        response.constrain(at, &contacts, begin, integrator, system, report);
        let constraints = response.bodies.constraints();
        begin_integration(comm, at, local, begin, constraints, integrator)?;
        let collapsed = ahead.unwrap_or_else(|| {
            at.domain.charge_assembly(comm);
            system.assemble_first(at, integrator, local)
        });
        let near_bodies = response.is_near_bodies();
        let near_bodies = exchange.agree_and_hear(comm, at, collapsed, near_bodies)?;
        report.times[1] = clock.lap(comm, None, Some(PHASES[2]));

        let mut turns = Turns {
            at,
            contacts: &contacts,
            begin,
            local: &mut *local,
            system: &mut *system,
            solver: &mut *solver,
            integrator: &mut *integrator,
            response: &mut *response,
            near_bodies,
        };
        let allowed = turns.first(comm, report)?;
        let count = Some(("iterations", u64::from(report.iterations)));
        report.times[2] = clock.lap(comm, count, Some(PHASES[3]));

        let is_explicit = integrator.integrator == Integrator::Central;
        let solved = Solved {
            assembly: &system.assembly,
            turn: SolvedTurn {
                residual: &solver.force,
                allowed,
                velocities: begin.v,
                change: &solver.change,
                matrix: (!is_explicit).then_some(&system.matrix),
                all_mass: at.world.mass(),
            },
        };
        impulses.clear();
        let is_whole = integrator.integrator != Integrator::Newmark;
        if is_whole {
            let solved = SolvedImpulses {
                residual: &solver.force,
                change: &solver.change,
                times: 1.0,
            };
            impulses.note_solve(at, response.bodies.constraints(), solved);
        }
        let repelling = (many.as_mut().zip(near)).map(|(many, near)| Repelling {
            repulsions: &mut many.repulsions,
            near,
        });
        let moving = Moving {
            local,
            integrator,
            impulses,
            repelling,
        };
        response.respond(comm, at, &contacts, solved, moving, report)?;
        response.check_changes(comm, at, &system.assembly, local, integrator, report)?;
        if !integrator.integrator.is_implicit() {
            let mut turns = Turns {
                at,
                contacts: &contacts,
                begin,
                local: &mut *local,
                system: &mut *system,
                solver: &mut *solver,
                integrator: &mut *integrator,
                response: &mut *response,
                near_bodies,
            };
            turns.second(comm, report)?;
            let solved = SolvedImpulses {
                residual: &solver.force,
                change: &solver.further,
                times: integrator.extrapolation(),
            };
            impulses.note_solve(at, response.bodies.constraints(), solved);
            if let Some(many) = &mut many {
                let began = comm.now();
                integrator.put_lift_back(&mut local.v);
                let before = integrator.ends.clone();
                let bodies = (&response.bodies, &mut integrator.ends[..]);
                (many.repulsions).stop(comm, at, bodies, true)?;
                impulses.add_layers([&before, &integrator.ends], at.masses(), true);
                report.repel_time += comm.now().saturating_sub(began);
            }
        }
        impulses.note_bodies(response.bodies.take_pushes(), at.masses());
        match &mut many {
            Some(many) => many.bodies.take_back(contacts),
            None => detection.take_back(contacts),
        }
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
            certification: (certification.as_mut())
                .filter(|_| many.is_none() || ends.is_some())
                .map(|c| (c, &*detection)),
            part: many.as_ref().zip(ends).map(|(many, substep)| Part {
                at: Context { substep, ..at },
                start: &many.start,
            }),
            impulses,
        };
        exchange.share(comm, at, values, report, clock)?;
        report.times[4] = clock.lap(comm, None, None);
        Ok(())
    }
}

/// Has the integrator begin with the local state, and with what pins and bodies prescribe.
/// Collective.
pub(super) fn begin_integration(
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
    let collapsed = system.assemble_there(at, integrator, 0.0);
    at.agree_on_collapse(comm, collapsed)?;
    hold_pins_at_ends(at, local, integrator, system);
    Ok(())
}

/// Constrains in the second solve what pins hold, and nothing else: it ends with the velocity with
/// which it moved.
pub(super) fn hold_pins_at_ends(
    at: Context<'_>,
    local: &LocalState,
    integrator: &TimeIntegrator,
    system: &mut LinearSystem,
) {
    let times = integrator.extrapolation();
    let (from, to) = (&integrator.v, &local.v);
    system.filter.clear();
    for pinned in at.own_pinned() {
        let i = pinned.row;
        let change = (to[i] - from[i]) / times;
        system.filter.constrain(i, pinned.motion.free, change);
    }
}
