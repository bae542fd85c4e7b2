//! The response of a substep: constraints by bodies before the solve, and corrections after it.

use glam::DVec3;
use weft_runtime::comm::Comm;

use super::body_response::{BodyResponse, SolvedTurn, StepContext};
use super::corrections::{Correcting, Corrections, LimitedEdges, Pushed};
use super::edges::Edges;
use super::strain_limit::most_overstretched;
use crate::heap_bytes::counts_heap;
use crate::scene::Integrator;
use crate::solve::fault;
use crate::step::contact::contacts::Contacts;
use crate::step::context::Context;
use crate::step::diagnose::ledger::Impulses;
use crate::step::domain::Domain;
use crate::step::error::StepError;
use crate::step::integrate::time_integrator::TimeIntegrator;
use crate::step::neighbourhood::Neighbourhood;
use crate::step::pipeline::history::Near;
use crate::step::pipeline::repulsions::Repulsions;
use crate::step::report::StepReport;
use crate::step::state::{LocalState, StateView};
use crate::step::system::assembly::Assembly;
use crate::step::system::linear_system::LinearSystem;
use crate::team::Team;

/// A rank's response to contacts and strain.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) bodies: BodyResponse,
    /// Whether owned vertices are near bodies.
    near_bodies: bool,
    corrections: Corrections,
    /// The edges whose change of length matters, if it does.
    edges: Option<Edges>,
}

counts_heap!(Response: bodies, corrections, edges; without near_bodies);

impl Response {
    /// The response of a rank; `watched` says that changes of length matter.
    pub(crate) fn new(
        domain: &Domain,
        team: &Team,
        watched: bool,
        neighbourhood: &impl Neighbourhood,
    ) -> Self {
        Self {
            bodies: BodyResponse::new(domain.owned().len()),
            near_bodies: false,
            corrections: Corrections::new(&domain.plan, team),
            edges: watched.then(|| Edges::new(domain, neighbourhood)),
        }
    }

    /// Fills the filter of a system: pins, then contacts with bodies. `begin` is the state of owned
    /// vertices at the start of the substep.
    pub(crate) fn constrain(
        &mut self,
        at: Context<'_>,
        contacts: &Contacts,
        begin: StateView<'_>,
        integrator: &TimeIntegrator,
        system: &mut LinearSystem,
        report: &mut StepReport,
    ) {
        self.near_bodies = contacts.vertex_body().next().is_some();
        let context = step_context(at, integrator.tau_of(at.substep.dt));
        (self.bodies).constrain(contacts.vertex_body(), begin.v, &context);
        self.hold(at, begin, system, report);
    }

    /// Whether owned vertices were near bodies when constraints were chosen.
    pub(crate) fn is_near_bodies(&self) -> bool {
        self.near_bodies
    }

    /// Fills the filter of a system with pins and the present constraints by bodies.
    pub(crate) fn hold(
        &self,
        at: Context<'_>,
        begin: StateView<'_>,
        system: &mut LinearSystem,
        report: &mut StepReport,
    ) {
        system.hold_pins(at, begin);
        for c in self.bodies.constraints() {
            system.filter.constrain(c.local as usize, c.free, c.change);
        }
        report.constraints = self.bodies.constraints().len() as u64;
    }

    /// Finds the velocities with which owned vertices move, in `moving`, from the velocity change
    /// that was solved for and the force that constraints exert. Collective.
    pub(crate) fn respond(
        &mut self,
        comm: &mut dyn Comm,
        at: Context<'_>,
        contacts: &Contacts,
        solved: Solved<'_>,
        moving: Moving<'_>,
        report: &mut StepReport,
    ) -> Result<(), StepError> {
        let Moving {
            local,
            integrator,
            impulses,
            mut repelling,
        } = moving;
        let count = at.domain.owned().len();
        let velocities = &mut local.v[..count];
        for (velocity, change) in velocities.iter_mut().zip(solved.turn.change) {
            *velocity += *change;
        }
        let context = step_context(at, integrator.tau);
        let ends = !integrator.integrator.is_implicit();
        (self.bodies).settle(&solved.turn, &context, ends, velocities);
        if integrator.integrator == Integrator::Newmark {
            // The second solve begins anew, but for what corrections change.
            self.bodies.take_pushes();
        }
        integrator.average(at.substep.dt, &local.x, velocities, self.bodies.jolts());
        let limit = at.world.scene().contact.strain_change;
        let edges = self.edges.as_ref().zip(limit);
        let with = Correcting {
            at,
            assembly: solved.assembly,
            bodies: &self.bodies,
            edges: edges.map(|(edges, limit)| LimitedEdges { edges, limit }),
            x: &local.x,
        };
        impulses.before_corrections(&local.v[..count]);
        let pushed = (self.corrections).apply(comm, &with, contacts, &mut local.v)?;
        note(&pushed, report);
        let velocities = &mut local.v[..count];
        impulses.note_contacts(self.corrections.exerted());
        // The second solve of Newmark's method begins anew, and then layers are stopped again.
        let forgets = integrator.integrator == Integrator::Newmark;
        if forgets {
            impulses.after_corrections(velocities);
        }
        if let Some(Repelling { repulsions, near }) = &mut repelling {
            let began = comm.now();
            let (near, bodies) = (std::mem::take(near), &self.bodies);
            let touching = contacts.vertex_body();
            repulsions.begin(comm, at, near, touching, (bodies, &*velocities))?;
            integrator.lift.copy_from_slice(velocities);
            report.impulses += repulsions.stop(comm, at, (bodies, &mut *velocities), !forgets)?;
            if !forgets {
                impulses.add_layers([&integrator.lift, &*velocities], at.masses(), false);
            }
            for (lift, v) in integrator.lift.iter_mut().zip(&*velocities) {
                *lift = if forgets { *v - *lift } else { DVec3::ZERO };
            }
            report.sweeps.add(repulsions.take_effort());
            report.repel_time += comm.now().saturating_sub(began);
        }
        if !forgets {
            impulses.after_corrections(velocities);
        }
        let by_vertex = contacts.vertex_body();
        let clamped = (self.bodies).clamp(by_vertex, velocities, &context);
        report.clamped = clamped as u64;
        integrator.pushed(velocities);
        if let Some(Repelling { repulsions, .. }) = &mut repelling {
            let began = comm.now();
            let before = velocities.to_vec();
            repulsions.push_apart(comm, at, (&self.bodies, &mut *velocities))?;
            (self.bodies).clamp_moves(contacts.vertex_body(), velocities, &context);
            let changes = velocities.iter().zip(before).map(|(v, before)| *v - before);
            for (lift, change) in integrator.lift.iter_mut().zip(changes) {
                *lift += change;
            }
            report.sweeps.add(repulsions.take_effort());
            report.repel_time += comm.now().saturating_sub(began);
        }
        Ok(())
    }

    /// Fails where steps may be cut if a triangle ends collapsed, or while a shorter substep could
    /// be tried if an edge changes its length by too much or a triangle gains too much strain
    /// beyond its limit. Collective.
    pub(crate) fn check_changes(
        &self,
        comm: &mut dyn Comm,
        at: Context<'_>,
        assembly: &Assembly,
        local: &mut LocalState,
        integrator: &mut TimeIntegrator,
        report: &mut StepReport,
    ) -> Result<(), StepError> {
        let Context { world, substep, .. } = at;
        let Some(edges) = self.edges.as_ref().filter(|_| substep.controller.cuts()) else {
            return Ok(());
        };
        integrator.share_velocities(comm, &mut local.v)?;
        let (state, dt) = (local.view(), substep.dt);
        let changed = edges.most_changed(world.scene().time.strain_change, state, dt);
        let overstretched = most_overstretched(world.model(), assembly, state, dt);
        let collapsed = assembly.first_collapsed(world.model(), state, dt);
        at.agree_on_collapse(comm, collapsed)?;
        let step = substep.number();
        let error = if let Some(fault) = fault::agree(comm, changed)? {
            StepError::StrainChange {
                step,
                at: world.name(fault.vertex as usize),
                change: -fault.key,
            }
        } else if let Some(fault) = fault::agree(comm, overstretched)? {
            StepError::Overstretched {
                step,
                at: world.name_of_triangle(fault.vertex),
                gain: -fault.key,
            }
        } else {
            return Ok(());
        };
        if !substep.controller.can_halve() {
            report.rough = 1;
            return Ok(());
        }
        Err(error)
    }
}

/// The solution of a solve at owned vertices.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Solved<'a> {
    pub(crate) assembly: &'a Assembly,
    pub(crate) turn: SolvedTurn<'a>,
}

/// The values that move the vertices of a rank.
#[derive(Debug)]
pub(crate) struct Moving<'a> {
    pub(crate) local: &'a mut LocalState,
    pub(crate) integrator: &'a mut TimeIntegrator,
    /// The impulses that are noted for the ledger.
    pub(crate) impulses: &'a mut Impulses,
    /// The pushes by pairs of features that were found for many substeps, if they are.
    pub(crate) repelling: Option<Repelling<'a>>,
}

/// Pushes by the pairs of a substep.
#[derive(Debug)]
pub(crate) struct Repelling<'a> {
    pub(crate) repulsions: &'a mut Repulsions,
    pub(crate) near: Near,
}

/// Takes note of what corrections did.
fn note(pushed: &Pushed, report: &mut StepReport) {
    report.impulses = pushed.contacts;
    report.strain_limited = pushed.triangles;
    report.rate_limited = pushed.edges;
    report.rounds += pushed.rounds;
    report.looks += pushed.looks;
    report.unsettled += pushed.unsettled;
    report.lacking = report.lacking.max(pushed.lacking);
    report.passes += pushed.passes;
    report.rounds_time += pushed.rounds_time;
    report.sweeps.add(pushed.effort);
}

/// The facts that the response to bodies needs, where forces act for `tau` (s).
pub(crate) fn step_context(at: Context<'_>, tau: f64) -> StepContext<'_> {
    StepContext {
        dt: at.substep.dt,
        tau,
        gravity: at.gravity(),
        first: at.domain.owned().start as u32,
        friction: at.friction(),
        masses: at.masses(),
        pinned: at.pinned(),
    }
}
