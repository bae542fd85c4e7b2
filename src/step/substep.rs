//! A part of a step, which is the whole step unless that was cut; after [TB06 §3 and §4] and [BW98]:
//!
//! 1. detect: tasks find the contacts of the part;
//! 2. constrain: vertices near bodies lose directions;
//! 3. assemble and solve for the velocity change, once or until the equations are met (`newton`);
//! 4. respond: constraints are held or released, friction acts, impulses correct what the solve did not
//!    foresee, nothing enters a body; methods that move vertices with other velocities than they end with find the latter;
//! 5. move, and share the new state; on several ranks the next part's system is assembled meanwhile (`share`).
//!
//! Nothing of the state is replaced before the last, so that a part can be taken back.

use glam::DVec3;
use weft_balance::cost_model::Work;
use weft_runtime::comm::{Comm, CommError};

use super::contact::contacts::Contacts;
use super::contact::detect::{Search, detect};
use super::error::StepError;
use super::report::{Clock, StepReport};
use super::response::body_response::StepContext;
use super::response::corrections::Correcting;
use super::response::strain_limit::most_overstretched;
use super::simulation::Simulation;
use super::system::assembly::{Collapsed, Load};
use super::world::World;
use super::world::prescribed_motion::PrescribedMotion;
use crate::collide::{Contact, Snapshot};
use crate::scene::Integrator;
use crate::solve::fault::{self, Fault};
use crate::solve::{Outcome, SolveError, System, Tolerance};
use crate::team::parts;

/// Residual in √J (see [`Tolerance`]) that is always good enough: about 10⁻⁹ m/s of a gram, or where gravity does little in a part, as in short parts
/// and to small cloth, a share of what it does.
pub(super) fn negligible(world: &World, tau: f64) -> f64 {
    /// In √J.
    const MOST: f64 = 1e-12;
    /// Of gravity's.
    const SHARE: f64 = 1e-7;
    match residual_of_gravity(world, tau) {
        0.0 => MOST,
        gravity => MOST.min(SHARE * gravity),
    }
}

/// The residual of gravity alone for a time in s, on all cloth, in √J.
pub(super) fn residual_of_gravity(world: &World, tau: f64) -> f64 {
    tau * world.scene().gravity.length() * world.mass().sqrt()
}

/// The system that the last assembly made, of fields that a solve leaves alone.
macro_rules! system {
    ($simulation:ident) => {
        System {
            matrix: &$simulation.matrix,
            rhs: &$simulation.rhs,
            filter: &$simulation.filter,
            positions: &$simulation.local_x[..$simulation.plan.owned().len()],
        }
    };
}

impl<'w> Simulation<'w> {
    /// Takes the part of length `dt` and gives every rank the new state. Collective.
    pub(super) fn take_part(
        &mut self,
        comm: &mut dyn Comm,
        report: &mut StepReport,
    ) -> Result<(), StepError> {
        let mut clock = Clock::start(comm);
        report.began = clock.0;
        let team = self.cg.shares().team().clone();
        team.awake(|| self.take_part_awake(comm, report, &mut clock))
    }

    fn take_part_awake(
        &mut self,
        comm: &mut dyn Comm,
        report: &mut StepReport,
        clock: &mut Clock,
    ) -> Result<(), StepError> {
        let mut contacts = self.detect(comm, report)?;
        report.times[0] = clock.lap(comm);

        let ahead = self.take_ahead();
        if ahead.is_none() {
            self.load_local();
        }
        self.constrain(&contacts, report);
        self.begin_motion(comm)?;
        let collapsed = ahead.unwrap_or_else(|| {
            self.charge_assembly(comm);
            self.assemble_motion()
        });
        self.agree_and_hear(comm, collapsed)?;
        report.times[1] = clock.lap(comm);

        if self.motion.integrator == Integrator::Central {
            self.step_explicitly();
        } else {
            let outcome = self.solve(comm)?;
            report.note(&outcome);
            self.force.copy_from_slice(self.cg.constraint_force());
            if self.world.scene().solver.newton > 1 {
                self.iterate(comm, report)?;
            }
        }
        report.times[2] = clock.lap(comm);

        self.respond(comm, &contacts, report)?;
        self.check_changes(comm, report)?;
        self.find_ends(comm, report)?;
        contacts.clear();
        self.contacts = contacts;
        report.times[3] = clock.lap(comm);

        self.share(comm, report, clock)?;
        report.times[4] = clock.lap(comm);
        Ok(())
    }

    /// Finds contacts, in the room of those of the part before.
    fn detect(
        &mut self,
        comm: &mut dyn Comm,
        report: &mut StepReport,
    ) -> Result<Contacts, StepError> {
        self.foresee();
        let geometry = self.world.geometry();
        let (time, dt) = (self.part_time(), self.dt);
        let (x, v) = (&self.x, &self.foreseen);
        let mut snapshot = Snapshot::new(&geometry, &mut self.volumes, x, v, time, dt);
        if comm.size() > 1 {
            snapshot = snapshot.in_pieces();
        }
        if let Some(extent) = self.extent {
            snapshot = snapshot.within(extent);
        }
        let mut contacts = std::mem::take(&mut self.contacts);
        let search = Search {
            snapshot: &snapshot,
            geometry: &geometry,
            ownership: &self.ownership,
            options: &self.options,
            team: self.cg.shares().team(),
            cost_model: &self.cost_model,
        };
        let (scope, early) =
            detect(comm, &search, &mut self.balancer, &mut contacts).map_err(|source| {
                StepError::Detect {
                    step: self.step + 1,
                    source,
                }
            })?;
        report.contacts = if comm.size() == 1 {
            contacts.len() as u64
        } else {
            let owned = self.owned();
            let counted_here = |c: &&Contact| owned.contains(&(c.vertices[0] as usize));
            contacts.all().filter(counted_here).count() as u64
        };
        report.scope = scope;
        report.early = early;
        Ok(contacts)
    }

    /// Finds what pins do in the part.
    pub(super) fn place_pins(&mut self) {
        let end = self.part_time() + self.dt;
        self.world.pins().place(end, &mut self.holds);
    }

    /// The velocity that a pin prescribes for a vertex, in m/s; nothing where that is free.
    fn held_velocity(&self, vertex: u32, hold: &PrescribedMotion) -> DVec3 {
        let (at, starts) = (vertex as usize, self.world.model().rest());
        hold.velocity(starts[at], self.x[at], self.dt)
    }

    /// The velocities by which collisions are looked for.
    pub(super) fn foresee(&mut self) {
        self.place_pins();
        let fall = self.world.scene().gravity * self.dt;
        let (v, shares) = (&self.v, &self.everywhere.elements);
        let foreseen = parts(&mut self.foreseen, shares).zip(shares);
        self.everywhere.run(foreseen, |(foreseen, share)| {
            for (foreseen, v) in foreseen.iter_mut().zip(&v[share.clone()]) {
                *foreseen = *v + fall;
            }
        });
        for &(vertex, pin) in self.world.pins().of(&(0..self.x.len())) {
            let hold = &self.holds[pin as usize];
            let free = hold.free * (self.v[vertex as usize] + fall);
            self.foreseen[vertex as usize] = free + self.held_velocity(vertex, hold);
        }
    }

    /// Charges the assembly of a system, where the machine is modelled.
    pub(super) fn charge_assembly(&self, comm: &mut dyn Comm) {
        let weight = self.own_weight();
        self.cost_model.charge(comm, Work::Assembly { weight });
    }

    /// The work of this rank's vertices in the solve.
    pub(super) fn own_weight(&self) -> u64 {
        let patches = self.ownership.patches(self.plan.rank());
        let weights = patches.map(|patch| self.world.tree().patch_weight(patch));
        weights.sum()
    }

    /// What the response to bodies needs to know.
    fn context(&self) -> StepContext<'w> {
        StepContext {
            dt: self.dt,
            gravity: self.world.scene().gravity,
            first: self.owned().start as u32,
            friction: self.world.friction(),
        }
    }

    /// Fills the filter: pins, then contacts with bodies.
    fn constrain(&mut self, contacts: &Contacts, report: &mut StepReport) {
        let owned = self.owned();
        let pinned = &self.world.pinned()[owned.clone()];
        let velocities = &self.v[owned];
        let context = self.context();
        self.bodies
            .constrain(contacts.vertex_body(), velocities, pinned, &context);
        self.hold_pins();
        for c in self.bodies.constraints() {
            self.filter.constrain(c.local as usize, c.free, c.change);
        }
        report.constraints = self.bodies.constraints().len() as u64;
    }

    /// Empties the filter but for pins.
    pub(super) fn hold_pins(&mut self) {
        let owned = self.owned();
        self.filter.clear();
        for &(vertex, pin) in self.world.pins().of(&owned) {
            let hold = &self.holds[pin as usize];
            let change = self.held_velocity(vertex, hold) - self.v[vertex as usize];
            let row = vertex as usize - owned.start;
            self.filter.constrain(row, hold.free, change);
        }
    }

    /// What the integrator makes of the start of the part. Collective.
    fn begin_motion(&mut self, comm: &mut dyn Comm) -> Result<(), CommError> {
        self.begin_free_motion();
        for c in self.bodies.constraints() {
            let i = c.local as usize;
            let (x, v) = (self.local_x[i], self.local_v[i]);
            self.motion.hold(i, c.free, (x, v, v + c.change), self.dt);
        }
        self.motion.share_ahead(comm)
    }

    /// The same without contacts, and without what comes from other ranks.
    pub(super) fn begin_free_motion(&mut self) {
        self.motion.begin(self.dt, &self.local_x, &self.local_v);
        let owned = self.owned();
        for &(vertex, pin) in self.world.pins().of(&owned) {
            let hold = &self.holds[pin as usize];
            if !hold.is_fixed() {
                let i = vertex as usize - owned.start;
                let (x, v) = (self.local_x[i], self.local_v[i]);
                let state = (x, v, self.held_velocity(vertex, hold));
                self.motion.hold(i, hold.free, state, self.dt);
            }
        }
    }

    /// The first system of the part.
    pub(super) fn assemble_motion(&mut self) -> Result<(), Collapsed> {
        let tau = self.motion.tau;
        match self.motion.integrator {
            // Linearised where the part begins.
            Integrator::Euler => self.assemble_here((tau, tau)),
            Integrator::Newmark | Integrator::Central => self.assemble_here((tau, 0.0)),
            // Where it would end at the velocities it begins with: nearer by one order.
            Integrator::Bdf2 => {
                self.motion.linearise(&self.local_v);
                self.assemble_there((tau, tau))
            }
        }
    }

    /// The system linearised at the start of the part, for τ and the time by which positions follow velocities (s).
    pub(super) fn assemble_here(&mut self, (tau, stiff): (f64, f64)) -> Result<(), Collapsed> {
        let load = Load {
            tau,
            stiff,
            shift: stiff,
            gravity: self.world.scene().gravity,
            air: self.world.scene().air,
            toward: None,
        };
        let state = (&self.local_x[..], &self.local_v[..]);
        let (matrix, rhs) = (&mut self.matrix, &mut self.rhs);
        (self.assembly).assemble(self.world.model(), state, &load, matrix, rhs)
    }

    /// The system linearised where the motion says, likewise.
    pub(super) fn assemble_there(&mut self, (tau, stiff): (f64, f64)) -> Result<(), Collapsed> {
        let load = Load {
            tau,
            stiff,
            shift: 0.0,
            gravity: self.world.scene().gravity,
            air: self.world.scene().air,
            toward: Some(&self.motion.toward),
        };
        let state = (&self.motion.x[..], &self.motion.v[..]);
        let (matrix, rhs) = (&mut self.matrix, &mut self.rhs);
        (self.assembly).assemble(self.world.model(), state, &load, matrix, rhs)
    }

    /// Fails on all ranks if a triangle has collapsed on one. Collective.
    pub(super) fn agree_on_collapse(
        &self,
        comm: &mut dyn Comm,
        own: Result<(), Collapsed>,
    ) -> Result<(), StepError> {
        let named = fault::agree(comm, first_of(own))?;
        named.map_or(Ok(()), |fault| Err(self.collapsed_at(fault.vertex)))
    }

    /// The same, where ranks hear what each of them has to say. Collective.
    fn agree_and_hear(
        &mut self,
        comm: &mut dyn Comm,
        own: Result<(), Collapsed>,
    ) -> Result<(), StepError> {
        let (named, heard) = fault::agree_and_hear(comm, first_of(own), &self.said)?;
        self.heard = heard;
        named.map_or(Ok(()), |fault| Err(self.collapsed_at(fault.vertex)))
    }

    pub(super) fn collapsed_at(&self, triangle: u32) -> StepError {
        let corner = self.world.model().triangles()[triangle as usize][0];
        StepError::Collapsed {
            step: self.step + 1,
            at: self.name(corner as usize),
        }
    }

    /// Solves for the velocity change of the part, from those of the last two: contacts that act in every other part make
    /// the one before the last the nearer one, smooth motion makes a line through both. Collective.
    fn solve(&mut self, comm: &mut dyn Comm) -> Result<Outcome, StepError> {
        let (system, tolerance) = (system!(self), tolerance(self.world, self.motion.tau));
        let found = &mut self.further;
        found.copy_from_slice(&self.change);
        let earlier = Some(&self.change_before[..]);
        let outcome = (self.cg)
            .solve_after(comm, &system, &tolerance, earlier, found)
            .map_err(|source| self.unsolved(source))?;
        std::mem::swap(&mut self.change, &mut self.change_before);
        std::mem::swap(&mut self.change, &mut self.further);
        Ok(outcome)
    }

    /// Solves for the change of a further system, from nothing; a residual of `absolute` in √J is always good enough. Collective.
    pub(super) fn solve_further(
        &mut self,
        comm: &mut dyn Comm,
        absolute: f64,
    ) -> Result<Outcome, StepError> {
        self.further.fill(DVec3::ZERO);
        let system = system!(self);
        let tolerance = Tolerance {
            absolute,
            ..tolerance(self.world, self.motion.tau)
        };
        let outcome = self.cg.solve(comm, &system, &tolerance, &mut self.further);
        outcome.map_err(|source| self.unsolved(source))
    }

    fn unsolved(&self, source: SolveError) -> StepError {
        let mut at = None;
        let source = source.renumbered(|vertex| {
            let named = self.name(vertex as usize);
            let number = named.vertex;
            at = Some(named);
            number
        });
        StepError::Solve {
            step: self.step + 1,
            source,
            at,
        }
    }

    /// The velocity change by the forces at the start alone; nothing is solved.
    pub(super) fn step_explicitly(&mut self) {
        let owned = self.owned();
        let masses = &self.world.model().masses()[owned];
        for ((change, rhs), mass) in self.change.iter_mut().zip(&self.rhs).zip(masses) {
            *change = *rhs / *mass;
        }
        self.filter.enforce(&mut self.change);
        let forces = self.force.iter_mut().zip(&self.change).zip(&self.rhs);
        for (((force, change), rhs), mass) in forces.zip(masses) {
            *force = *change * *mass - *rhs;
        }
    }

    /// Velocities with which owned vertices move, in `local_v`.
    fn respond(
        &mut self,
        comm: &mut dyn Comm,
        contacts: &Contacts,
        report: &mut StepReport,
    ) -> Result<(), StepError> {
        let owned = self.owned();
        let n = owned.len();
        let masses = &self.world.model().masses()[owned.clone()];
        let pinned = &self.world.pinned()[owned];
        let velocities = &mut self.local_v[..n];
        for (velocity, change) in velocities.iter_mut().zip(&self.change) {
            *velocity += *change;
        }
        self.bodies.settle(&self.force, masses, velocities);
        self.motion
            .average(self.dt, &self.local_x, velocities, self.bodies.jolts());
        let limit = self.world.scene().contact.strain_change;
        let with = Correcting {
            world: self.world,
            ownership: &self.ownership,
            plan: &self.plan,
            assembly: &self.assembly,
            bodies: &self.bodies,
            prescribed: &self.holds,
            edges: self.edges.as_ref().zip(limit),
            x: &self.local_x,
            dt: self.dt,
            cost_model: &self.cost_model,
            weight: self.own_weight(),
        };
        let pushed = self
            .corrections
            .apply(comm, &with, contacts, &mut self.local_v)?;
        report.impulses = pushed.contacts;
        report.strain_limited = pushed.triangles;
        report.rate_limited = pushed.edges;
        report.rounds += pushed.rounds;
        report.looks += pushed.looks;
        report.unsettled += pushed.unsettled;
        report.lacking = report.lacking.max(pushed.lacking);
        report.passes += pushed.passes;
        report.rounds_time += pushed.rounds_time;
        let context = self.context();
        let velocities = &mut self.local_v[..n];
        let clamped = self
            .bodies
            .clamp(contacts.vertex_body(), velocities, pinned, &context);
        report.clamped = clamped as u64;
        self.motion.pushed(velocities);
        Ok(())
    }

    /// Where steps may be cut: fails if a triangle ends collapsed, or while a shorter part could be tried if an edge changes its length by too much
    /// or a triangle gains too much strain beyond its limit. Collective.
    fn check_changes(
        &mut self,
        comm: &mut dyn Comm,
        report: &mut StepReport,
    ) -> Result<(), StepError> {
        let Some(edges) = self.edges.as_ref().filter(|_| self.stride.cuts()) else {
            return Ok(());
        };
        self.motion.share_velocities(comm, &mut self.local_v)?;
        let state = (&self.local_x[..], &self.local_v[..]);
        let limit = self.world.scene().time.strain_change;
        let changed = edges.most_changed(limit, state, self.dt);
        let of = (self.world.model(), &self.assembly);
        let overstretched = most_overstretched(of, state, self.dt);
        let collapsed = self
            .assembly
            .first_collapsed(self.world.model(), state, self.dt);
        self.agree_on_collapse(comm, collapsed)?;
        let step = self.step + 1;
        let error = if let Some(fault) = fault::agree(comm, changed)? {
            StepError::StrainChange {
                step,
                at: self.name(fault.vertex as usize),
                change: -fault.key,
            }
        } else if let Some(fault) = fault::agree(comm, overstretched)? {
            let corner = self.world.model().triangles()[fault.vertex as usize][0];
            StepError::Overstretched {
                step,
                at: self.name(corner as usize),
                gain: -fault.key,
            }
        } else {
            return Ok(());
        };
        if !self.stride.can_halve() {
            report.rough = 1;
            return Ok(());
        }
        Err(error)
    }

    /// The system of the second solve, after vertices were found to move with what is in `local_v`, with pins as its only
    /// constraints. Collective.
    pub(super) fn assemble_second(&mut self, comm: &mut dyn Comm) -> Result<(), StepError> {
        let owned = self.owned();
        let begin = &self.v[owned.clone()];
        self.motion
            .second(comm, self.dt, (&self.local_x, begin), &mut self.local_v)?;
        let collapsed = self.assemble_there((self.motion.tau, 0.0));
        self.agree_on_collapse(comm, collapsed)?;
        let times = self.motion.extrapolation();
        let (from, to) = (&self.motion.v, &self.local_v);
        self.filter.clear();
        for &(vertex, pin) in self.world.pins().of(&owned) {
            let i = vertex as usize - owned.start;
            let free = self.holds[pin as usize].free;
            self.filter.constrain(i, free, (to[i] - from[i]) / times);
        }
        Ok(())
    }

    /// The velocities at the end, where a second solve finds them. Collective.
    fn find_ends(&mut self, comm: &mut dyn Comm, report: &mut StepReport) -> Result<(), StepError> {
        if self.motion.integrator.is_implicit() {
            return Ok(());
        }
        self.assemble_second(comm)?;
        let owned = self.owned();
        let times = self.motion.extrapolation();
        let (from, to) = (&self.motion.v, &self.local_v);
        let states = self.bodies.states();
        // What a body holds ends with the velocity with which it moved.
        let held = self.bodies.constraints().iter();
        for c in held.filter(|c| states[c.local as usize].held) {
            let i = c.local as usize;
            self.filter.constrain(i, c.free, (to[i] - from[i]) / times);
        }
        let absolute = negligible(self.world, self.motion.tau);
        let outcome = self.solve_further(comm, absolute)?;
        report.note(&outcome);
        self.motion.finish(&self.further);
        let forces = self.force.iter_mut().zip(self.cg.constraint_force());
        forces.for_each(|(force, half)| *force = *half * times);
        let masses = &self.world.model().masses()[owned];
        self.bodies
            .settle_ends(&self.force, masses, &mut self.motion.ends);
        Ok(())
    }
}

/// The first of all triangles is named.
fn first_of(collapsed: Result<(), Collapsed>) -> Option<Fault> {
    let collapsed = collapsed.err();
    collapsed.map(|found| Fault::at(found.triangle, f64::from(found.triangle)))
}

fn tolerance(world: &World, tau: f64) -> Tolerance {
    let solver = &world.scene().solver;
    Tolerance {
        relative: solver.tolerance,
        absolute: negligible(world, tau),
        max_iterations: solver.max_iterations,
    }
}
