//! How bodies act on cloth: constraints in the solve, with Coulomb's law, and a last clamp.
//!
//! A vertex that would come closer to a body than the contact thickness is constrained along the
//! contact's normal, inside the conjugate gradients [TB06 §3.2]. After a solve the impulses that
//! constraints needed are compared with what bodies can do, and constraints are revised
//! (`vertex_contact`) until nothing changes, or a few times ([`TURNS`]): bodies push and never pull
//! [BW98, §5.3], and friction is within Coulomb's cone. The next step begins with the contacts at
//! the end of this one. Vertices that no solve foresaw are clamped last: none ends a step closer
//! than it may.
//!
//! In: the vertex-body contacts of owned vertices, sorted. Everything here is local to a vertex, so
//! it does not depend on who owns it; whether there is another turn is agreed on by all ranks.
//!
//! * \[BW98\] Baraff, Witkin: Large steps in cloth simulation.

use glam::{DMat3, DVec3};
use serde::{Deserialize, Serialize};

use super::constraint::opening_rate;
pub(crate) use super::vertex_contact::BodyConstraint;
use super::vertex_contact::{Closing, Found, Revised, Touching, TurnErrors, Wrong, rub};
use crate::collide::contact::Contact;
use crate::heap_bytes::{counts_heap, owns_no_heap};
use crate::solve::BlockMatrix;
use crate::step::integrate::time_integrator::Jolt;
use crate::step::system::linear_system::LinearSystem;
use crate::step::world::Friction;

/// The most solves of a system in a step.
pub(crate) const TURNS: u32 = 3;
/// A held contact stays one until it is this much beyond its target, as a share of it.
const SLACK: f64 = 0.1;
/// A contact that was left out is taken in if it closes by more than this share of its target
/// within the step.
const CLOSES: f64 = 1e-6;
/// The error that a solve may have in the impulse of a constraint, as a multiple of the vertex's
/// share, by mass, of the residual that it may leave.
const ERROR: f64 = 10.0;

/// The contact of one owned vertex with bodies at the end of the last step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct VertexState {
    /// A constraint acted and the body pushed.
    pub held: bool,
    /// The constraint would have had to pull and was let go, and the vertex has not left the body's
    /// reach since.
    pub released: bool,
    /// Friction held the vertex in place.
    pub sticking: bool,
    /// The force of friction against its sliding, in N.
    pub friction: DVec3,
}

owns_no_heap!(VertexState);

impl VertexState {
    /// How it touches, as files have it: 1 for held, 2 for released, 4 for sticking, added up.
    #[must_use]
    pub fn bits(&self) -> u8 {
        u8::from(self.held) | u8::from(self.released) << 1 | u8::from(self.sticking) << 2
    }
}

/// Contact of the owned vertices with bodies, over the steps.
#[derive(Debug, Default)]
pub(crate) struct BodyResponse {
    states: Vec<VertexState>,
    constraints: Vec<BodyConstraint>,
    /// The constraints of the next turn, if there is one.
    revised: Vec<BodyConstraint>,
    /// The vertices without a constraint that a body has let go of.
    released: Vec<u32>,
    /// How often the normals of each owned vertex that has none were exchanged in this step.
    exchanged: Vec<u8>,
    /// How wrong the last solve is at each owned vertex ([`Wrong::errors`]).
    wrong: Vec<TurnErrors>,
    /// The rows of a system to which friction was added, as they were.
    rows: Vec<Row>,
    /// The changes of velocities by friction at impacts, in m/s.
    jolts: Vec<Jolt>,
    /// The changes of velocities by friction, and those that were put right last, in m/s.
    pushes: Vec<Jolt>,
}

counts_heap!(BodyResponse:
    states, constraints, revised, released, exchanged, wrong, rows, jolts, pushes
);

/// A row of a system.
#[derive(Clone, Copy, Debug)]
struct Row {
    local: u32,
    /// Its right-hand side in kg m/s.
    rhs: DVec3,
    /// Its block on the diagonal in kg.
    block: DMat3,
}

owns_no_heap!(Row);

/// The facts that a step's response needs beside the contacts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StepContext<'a> {
    /// Length of the step in s.
    pub(crate) dt: f64,
    /// The time for which forces act in its solve, in s.
    pub(crate) tau: f64,
    /// Acceleration in m/s².
    pub(crate) gravity: DVec3,
    /// The first owned vertex: local indices count from here.
    pub(crate) first: u32,
    /// The friction of each pair.
    pub(crate) friction: &'a Friction,
    /// The masses of the owned vertices in kg.
    pub(crate) masses: &'a [f64],
    /// For which of these pins hold.
    pub(crate) pinned: &'a [bool],
}

impl StepContext<'_> {
    /// The contacts from which a vertex may be constrained.
    fn touching<'a>(
        &'a self,
        contacts: &'a [&'a Contact],
        local: usize,
        velocity: DVec3,
    ) -> Touching<'a> {
        Touching {
            contacts,
            local: local as u32,
            velocity,
            dt: self.dt,
            friction: self.friction,
        }
    }
}

/// The solution of a solve at the owned vertices.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SolvedTurn<'a> {
    /// The residual `A Δv − b` in kg m/s.
    pub(crate) residual: &'a [DVec3],
    /// The residual that the solve may leave in free directions, in √J.
    pub(crate) allowed: f64,
    /// The velocities at the start of the step, in m/s.
    pub(crate) velocities: &'a [DVec3],
    /// The change of velocity in m/s.
    pub(crate) change: &'a [DVec3],
    /// The matrix in kg; without one vertices have their masses alone.
    pub(crate) matrix: Option<&'a BlockMatrix>,
    /// The mass of all cloth in kg.
    pub(crate) all_mass: f64,
}

impl SolvedTurn<'_> {
    fn found(&self, i: usize, mass: f64) -> Found {
        Found {
            residual: self.residual[i],
            velocity: self.velocities[i] + self.change[i],
            mass,
            inertia: self.matrix.map_or(mass, |matrix| {
                let block = matrix.diagonal_block(i);
                (block.x_axis.x + block.y_axis.y + block.z_axis.z) / 3.0
            }),
            error: ERROR * self.allowed * mass / self.all_mass.sqrt(),
        }
    }
}

impl BodyResponse {
    /// Response for `owned` vertices, none of them in contact.
    #[must_use]
    pub(crate) fn new(owned: usize) -> Self {
        Self {
            states: vec![VertexState::default(); owned],
            exchanged: vec![0; owned],
            wrong: vec![TurnErrors::default(); owned],
            ..Self::default()
        }
    }

    /// Chooses the constraints of this step.
    ///
    /// `contacts` are those of owned vertices with bodies, sorted; pinned vertices are left alone.
    /// `velocities` are those of owned vertices at the start of the step, in m/s.
    pub(crate) fn constrain<'c>(
        &mut self,
        contacts: impl Iterator<Item = &'c Contact>,
        velocities: &[DVec3],
        step: &StepContext<'_>,
    ) {
        self.constraints.clear();
        self.exchanged.fill(0);
        self.released.clear();
        self.rows.clear();
        by_vertex(contacts, |vertex, group| {
            let local = (vertex - step.first) as usize;
            if step.pinned[local] {
                return;
            }
            let (state, velocity) = (self.states[local], velocities[local]);
            let acting = acting(group, state, velocity, step);
            let touching = step.touching(&acting, local, velocity);
            let constraint = BodyConstraint::new(&touching, state, step.tau);
            if constraint.is_none() && state.released {
                self.released.push(local as u32);
            }
            self.constraints.extend(constraint);
        });
    }

    /// The constraints of this turn, one per constrained vertex, ascending.
    #[must_use]
    pub(crate) fn constraints(&self) -> &[BodyConstraint] {
        &self.constraints
    }

    /// Adds friction to a system. Friction of an earlier turn is taken off first, unless the system
    /// is another one.
    pub(crate) fn exert(&mut self, system: &mut LinearSystem, is_new: bool) {
        if !is_new {
            for row in &self.rows {
                let i = row.local as usize;
                system.rhs[i] = row.rhs;
                system.matrix.set_diagonal_block(i, &row.block);
            }
        }
        self.rows.clear();
        for c in self
            .constraints
            .iter()
            .filter(|c| c.friction != DVec3::ZERO || c.drag > 0.0)
        {
            let i = c.local as usize;
            let row = Row {
                local: c.local,
                rhs: system.rhs[i],
                block: system.matrix.diagonal_block(i),
            };
            system.rhs[i] += c.friction;
            if c.drag > 0.0 {
                let block = row.block + c.dragged();
                system.matrix.set_diagonal_block(i, &block);
            }
            self.rows.push(row);
        }
    }

    /// Compares what a solve has found with what bodies can do; `moves` is the velocity with which
    /// an owned vertex would move. If another solve would be the `last` one, friction is chosen so
    /// that it surely takes energy. [`wrong`](Self::wrong) then says how wrong the solve is.
    pub(crate) fn revise<'c>(
        &mut self,
        contacts: impl Iterator<Item = &'c Contact>,
        solved: &SolvedTurn<'_>,
        moves: impl Fn(usize) -> DVec3,
        step: &StepContext<'_>,
        last: bool,
    ) {
        self.wrong.fill(TurnErrors::default());
        self.revised.clear();
        let mut constraints = self.constraints.iter().peekable();
        by_vertex(contacts, |vertex, group| {
            let local = (vertex - step.first) as usize;
            if step.pinned[local] {
                return;
            }
            let constraint = constraints.next_if(|c| c.local as usize == local);
            let closing = closing(group, constraint, moves(local), step);
            let (velocity, mass) = (solved.velocities[local], step.masses[local]);
            let found = solved.found(local, mass);
            if let Some(constraint) = constraint {
                let touching = step.touching(group, local, velocity);
                let Revised {
                    constraint: revised,
                    wrong,
                } = constraint.revise(&found, &closing, &touching, last);
                let speed = constraint.speed_past(found.velocity);
                self.wrong[local] = wrong.errors(&found, speed);
                if revised.is_none() {
                    self.exchanged[local] = constraint.exchanges() + 1;
                    self.released.push(local as u32);
                }
                self.revised.extend(revised);
            } else if !closing.contacts.is_empty() {
                let touching = step.touching(&closing.contacts, local, velocity);
                let arrived = BodyConstraint::arriving(&touching, self.exchanged[local]);
                if arrived.is_some() {
                    let wrong = Wrong {
                        late: mass * closing.lack,
                        ..Wrong::default()
                    };
                    let speed = arrived.map_or(0.0, |c| c.speed_past(found.velocity));
                    self.wrong[local] = wrong.errors(&found, speed);
                }
                self.revised.extend(arrived);
            }
        });
    }

    /// How wrong the last solve is, as the last revision has found it. For each owned vertex in J,
    /// like squares of what solves leave: what is only late, and what may give the cloth energy.
    #[must_use]
    pub(crate) fn wrong(&self) -> &[TurnErrors] {
        &self.wrong
    }

    /// Goes on to the constraints that were revised.
    pub(crate) fn turn(&mut self) {
        std::mem::swap(&mut self.constraints, &mut self.revised);
    }

    /// Takes what contacts came to at the end of the last turn, and lets friction act at first
    /// contacts. `velocities` are the new ones; `ends` says that another solve finds those at the
    /// end.
    pub(crate) fn settle(
        &mut self,
        solved: &SolvedTurn<'_>,
        step: &StepContext<'_>,
        ends: bool,
        velocities: &mut [DVec3],
    ) {
        self.states.fill(VertexState::default());
        for &local in &self.released {
            self.states[local as usize].released = true;
        }
        self.jolts.clear();
        self.pushes.clear();
        for c in &self.constraints {
            let i = c.local as usize;
            let before = velocities[i];
            let found = solved.found(i, step.masses[i]);
            self.states[i] = c.settle(&found, step.tau, ends, &mut velocities[i]);
            let rubbed = velocities[i] - before;
            if rubbed != DVec3::ZERO {
                self.pushes.push(Jolt {
                    local: c.local,
                    change: rubbed,
                });
            }
            // The momentum that an impact takes is no force that goes on.
            let change = rubbed + c.friction_in_solve(&found);
            if change != DVec3::ZERO {
                let change = change * c.impact_share(&found);
                self.jolts.push(Jolt {
                    local: c.local,
                    change,
                });
            }
        }
    }

    /// Goes on to the second solve of the step, which leads from velocities `from` to those at the
    /// end, by `times` what it finds. Held vertices end along normals with the velocities `to` with
    /// which they moved (m/s).
    pub(crate) fn end(&mut self, from: &[DVec3], to: &[DVec3], times: f64, step: &StepContext<'_>) {
        self.rows.clear();
        let states = &self.states;
        self.revised.clear();
        let ends = self.constraints.iter().map(|c| {
            let i = c.local as usize;
            c.at_end([from[i], to[i]], times, states[i], step.tau)
        });
        self.revised.extend(ends.flatten());
        self.turn();
    }

    /// Compares what the second solve has found with what bodies can do, as
    /// [`revise`](Self::revise) does.
    pub(crate) fn revise_ends(
        &mut self,
        solved: &SolvedTurn<'_>,
        step: &StepContext<'_>,
        last: bool,
    ) {
        self.wrong.fill(TurnErrors::default());
        self.revised.clear();
        for c in &self.constraints {
            let i = c.local as usize;
            let mass = step.masses[i];
            let found = solved.found(i, mass);
            let Revised { constraint, wrong } = c.revise_end(&found, solved.velocities[i], last);
            self.wrong[i] = wrong.errors(&found, c.speed_past(found.velocity));
            self.revised.extend(constraint);
        }
    }

    /// Takes what contacts came to at the end of the second solve: `velocities` are those with
    /// which vertices end.
    pub(crate) fn settle_ends(
        &mut self,
        solved: &SolvedTurn<'_>,
        step: &StepContext<'_>,
        velocities: &mut [DVec3],
    ) {
        for state in self.states.iter_mut().filter(|state| state.held) {
            *state = VertexState {
                released: true,
                ..VertexState::default()
            };
        }
        for c in &self.constraints {
            let i = c.local as usize;
            let found = solved.found(i, step.masses[i]);
            let before = velocities[i];
            self.states[i] = c.settle(&found, step.tau, false, &mut velocities[i]);
            self.pushes.push(Jolt {
                local: c.local,
                change: velocities[i] - before,
            });
        }
    }

    /// The changes of velocity by friction in the last [`settle`](Self::settle) that were an
    /// impact's, and no steady force's.
    #[must_use]
    pub(crate) fn jolts(&self) -> &[Jolt] {
        &self.jolts
    }

    /// Takes the changes of velocity by friction and by the last clamp that were made since it was
    /// asked last, or since the last [`settle`](Self::settle) began.
    pub(crate) fn take_pushes(&mut self) -> std::vec::Drain<'_, Jolt> {
        self.pushes.drain(..)
    }

    /// Keeps every owned vertex out of bodies, of velocities that only move it.
    pub(crate) fn clamp_moves<'c>(
        &mut self,
        contacts: impl Iterator<Item = &'c Contact>,
        velocities: &mut [DVec3],
        step: &StepContext<'_>,
    ) {
        let noted = self.pushes.len();
        self.clamp(contacts, velocities, step);
        self.pushes.truncate(noted);
    }

    /// Keeps every owned vertex out of the bodies it is close to; returns how many had to be moved.
    pub(crate) fn clamp<'c>(
        &mut self,
        contacts: impl Iterator<Item = &'c Contact>,
        velocities: &mut [DVec3],
        step: &StepContext<'_>,
    ) -> usize {
        let mut clamped = 0;
        by_vertex(contacts, |vertex, group| {
            let local = (vertex - step.first) as usize;
            if step.pinned[local] {
                return;
            }
            let velocity = &mut velocities[local];
            let before = *velocity;
            let mut touched = false;
            // Two sweeps: the second mends what the last normal of a corner did to the first.
            for _ in 0..2 {
                for &contact in group {
                    let rate = (*velocity - contact.body_velocity).dot(contact.normal);
                    let lack = least_rate(contact, step.dt) - rate;
                    if lack > 0.0 {
                        *velocity += contact.normal * lack;
                        let friction = step.friction.of(contact);
                        let relative = *velocity - contact.body_velocity;
                        let sliding = relative - contact.normal * relative.dot(contact.normal);
                        rub(velocity, sliding, friction * lack);
                        touched = true;
                    }
                }
            }
            clamped += usize::from(touched);
            if touched {
                self.pushes.push(Jolt {
                    local: local as u32,
                    change: *velocity - before,
                });
            }
        });
        clamped
    }

    /// The contact state of each owned vertex.
    #[must_use]
    pub(crate) fn states(&self) -> &[VertexState] {
        &self.states
    }

    /// The contact states, to go on from others.
    pub(crate) fn states_mut(&mut self) -> &mut [VertexState] {
        &mut self.states
    }
}

/// The contacts of a vertex that act on it at the start of a step, the deepest first.
fn acting<'c>(
    group: &[&'c Contact],
    state: VertexState,
    velocity: DVec3,
    step: &StepContext<'_>,
) -> Vec<&'c Contact> {
    let foreseen = velocity + step.gravity * step.dt;
    let acts = |c: &&Contact| {
        let rate = (velocity - c.body_velocity).dot(c.normal);
        let approach = (foreseen - c.body_velocity).dot(c.normal);
        let comes_close = c.gap + step.dt * approach < c.target;
        if state.released {
            rate < 0.0 && c.gap + step.dt * rate < c.target
        } else {
            comes_close || (state.held && c.gap < c.target * (1.0 + SLACK))
        }
    };
    let mut acting: Vec<&Contact> = group.iter().copied().filter(acts).collect();
    // Ties in the order of features.
    acting.sort_by(|a, b| (a.gap - a.target).total_cmp(&(b.gap - b.target)));
    acting
}

/// The contacts of a vertex that close more than they may if it moves with this velocity, and that
/// its constraint leaves out.
fn closing<'c>(
    group: &[&'c Contact],
    constraint: Option<&BodyConstraint>,
    velocity: DVec3,
    step: &StepContext<'_>,
) -> Closing<'c> {
    let lack = |c: &Contact| least_rate(c, step.dt) - (velocity - c.body_velocity).dot(c.normal);
    let left_out = |c: &&Contact| !constraint.is_some_and(|by| by.is_by(c.id));
    let closes = |c: &&Contact| lack(c) * step.dt > CLOSES * c.target;
    let mut contacts: Vec<&Contact> = (group.iter().copied())
        .filter(|c| left_out(c) && closes(c))
        .collect();
    contacts.sort_by(|a, b| lack(b).total_cmp(&lack(a)));
    Closing {
        lack: contacts.first().map_or(0.0, |most| lack(most)),
        contacts,
    }
}

/// Goes through contacts that are sorted by vertex, all of a vertex at a time.
fn by_vertex<'c>(
    contacts: impl Iterator<Item = &'c Contact>,
    mut each: impl FnMut(u32, &[&'c Contact]),
) {
    let mut group: Vec<&Contact> = Vec::new();
    for contact in contacts {
        if let Some(first) = group.first().filter(|first| first.id.a != contact.id.a) {
            each(first.id.a, &group);
            group.clear();
        }
        group.push(contact);
    }
    if let Some(first) = group.first() {
        each(first.id.a, &group);
    }
}

/// Lowest rate of separation allowed at the end of a step: down to the target, but no closer than
/// now.
pub(crate) fn least_rate(contact: &Contact, dt: f64) -> f64 {
    opening_rate(contact, dt).min(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collide::contact::{PairId, PairKind, Separation};

    const TARGET: f64 = 0.004;
    const MASS: f64 = 2e-5;

    fn contact(face: u32, normal: DVec3, gap: f64) -> Contact {
        let id = PairId {
            kind: PairKind::VertexBody,
            body: 0,
            a: 0,
            b: face,
        };
        let separation = Separation {
            normal,
            gap,
            target: TARGET,
            body_velocity: DVec3::ZERO,
        };
        Contact::new(id, [0], [1.0], separation)
    }

    fn step(friction: &Friction) -> StepContext<'_> {
        StepContext {
            dt: 0.005,
            tau: 0.005,
            gravity: DVec3::new(0.0, 0.0, -9.81),
            first: 0,
            friction,
            masses: &[MASS],
            pinned: &[false],
        }
    }

    /// The change of velocity that the first constraint prescribes to a vertex at rest, touched by
    /// two bodies that move along their normals at 0.3 m/s. The normals are opposite but for this
    /// angle in radians.
    fn prescribed_between(angle: f64) -> DVec3 {
        let friction = Friction::of_bodies(&[0.0, 0.0]);
        let step = step(&friction);
        let side = |face, normal: DVec3| {
            let mut contact = contact(face, normal, TARGET);
            contact.body_velocity = normal * 0.3;
            contact
        };
        let tilted = DVec3::new(angle.sin(), 0.0, -angle.cos());
        let contacts = [side(0, DVec3::Z), side(1, tilted)];
        let mut response = BodyResponse::new(1);
        response.constrain(contacts.iter(), &[DVec3::ZERO], &step);
        response.constraints()[0].change
    }

    #[test]
    fn a_vertex_leaves_a_wedge_sideways_but_is_not_thrown_out_of_a_pinch() {
        // In a wedge of 60 degrees it moves with both sides.
        let change = prescribed_between(60f64.to_radians());
        assert!((change.z - 0.3).abs() < 1e-12, "{change}");
        assert!(
            (change.x - 0.45 / 60f64.to_radians().sin()).abs() < 1e-12,
            "{change}"
        );
        // Falling into a notch it stops, however narrow that is.
        let notch = [0.3_f64, 0.01].map(|angle| {
            let friction = Friction::of_bodies(&[0.0, 0.0]);
            let side = |face, side: f64| {
                let normal = DVec3::new(side * angle.cos(), 0.0, angle.sin());
                contact(face, normal, TARGET)
            };
            let contacts = [side(0, 1.0), side(1, -1.0)];
            let mut response = BodyResponse::new(1);
            response.constrain(contacts.iter(), &[-DVec3::Z], &step(&friction));
            response.constraints()[0].change
        });
        assert!(
            notch
                .iter()
                .all(|change| (*change - DVec3::Z).length() < 1e-9),
            "{notch:?}"
        );
        // Between sides that are almost parallel both cannot be had.
        for angle in [0.05, 5e-3, 1.1e-3] {
            let change = prescribed_between(angle);
            assert!(
                (change - DVec3::Z * 0.3).length() < 1e-12,
                "{angle}: {change}"
            );
        }
    }

    /// Solves for one free vertex with the present constraint: A = m, b = m g dt and friction.
    /// Returns the residual and the change of velocity.
    fn solved_alone(response: &BodyResponse, step: &StepContext<'_>) -> [DVec3; 2] {
        let mut b = step.gravity * (MASS * step.dt);
        let Some(c) = response.constraints().first() else {
            return [DVec3::ZERO, b / MASS];
        };
        b += c.friction;
        let a = DMat3::from_diagonal(DVec3::splat(MASS)) + c.dragged();
        // Along the body the matrix is a number.
        let change = c.change + c.free * (b - a * c.change) / (MASS + c.drag);
        [a * change - b, change]
    }

    /// One step of a free vertex, with all its turns.
    fn advance_alone(
        response: &mut BodyResponse,
        contacts: &[Contact],
        velocity: &mut [DVec3; 1],
        step: &StepContext<'_>,
    ) {
        response.constrain(contacts.iter(), &velocity[..], step);
        let begin = *velocity;
        for turn in 1.. {
            let [residual, change] = solved_alone(response, step);
            let (residual, change) = ([residual], [change]);
            let solved = solved(&residual, &begin, &change);
            let moves = |i: usize| begin[i] + change[i];
            let last = turn + 1 >= TURNS;
            if turn < TURNS {
                response.revise(contacts.iter(), &solved, moves, step, last);
                if !response.wrong()[0].is_settled() {
                    response.turn();
                    continue;
                }
            }
            velocity[0] = begin[0] + change[0];
            response.settle(&solved, step, false, velocity);
            break;
        }
    }

    fn solved<'a>(
        residual: &'a [DVec3],
        velocities: &'a [DVec3],
        change: &'a [DVec3],
    ) -> SolvedTurn<'a> {
        SolvedTurn {
            residual,
            allowed: 0.0,
            velocities,
            change,
            matrix: None,
            all_mass: MASS,
        }
    }

    #[test]
    fn an_open_contact_closes_to_the_thickness_and_no_further() {
        let mut response = BodyResponse::new(1);
        let velocity = [DVec3::new(0.3, 0.0, -2.0)];
        let friction = Friction::of_bodies(&[0.5]);
        let step = step(&friction);
        response.constrain([contact(0, DVec3::Z, 0.009)].iter(), &velocity, &step);
        let c = response.constraints()[0];
        let after = velocity[0] + c.change;
        assert!((0.009 + 0.005 * after.z - TARGET).abs() < 1e-15);
        assert_eq!(c.free * DVec3::Z, DVec3::ZERO);
        assert_eq!(c.free * DVec3::X, DVec3::X);
    }

    #[test]
    fn a_contact_that_would_have_to_pull_is_released_within_the_step() {
        let mut response = BodyResponse::new(1);
        let contacts = [contact(0, DVec3::Z, TARGET)];
        let friction = Friction::of_bodies(&[0.5]);
        let step = step(&friction);
        let mut velocity = [DVec3::ZERO];
        response.constrain(contacts.iter(), &velocity, &step);
        assert_eq!(response.constraints().len(), 1);
        let (residual, change) = ([DVec3::new(0.0, 0.0, -1e-6)], [DVec3::ZERO]);
        let pulled = solved(&residual, &[DVec3::ZERO], &change);
        let lifts = |_: usize| DVec3::Z;
        response.revise(contacts.iter(), &pulled, lifts, &step, false);
        assert!(!response.wrong()[0].is_settled());
        response.turn();
        assert!(response.constraints().is_empty());
        response.settle(&pulled, &step, false, &mut velocity);
        assert!(response.states()[0].released);
        // Gravity alone does not make it a contact again, but what the solve finds does.
        response.constrain(contacts.iter(), &velocity, &step);
        assert!(response.constraints().is_empty());
        let sinks = |_: usize| -DVec3::Z;
        response.revise(contacts.iter(), &pulled, sinks, &step, false);
        assert!(!response.wrong()[0].is_settled());
        response.turn();
        assert_eq!(response.constraints().len(), 1);
    }

    #[test]
    fn neighbouring_facets_give_one_constraint_and_corners_two() {
        let mut response = BodyResponse::new(1);
        let friction = Friction::of_bodies(&[0.5]);
        let step = step(&friction);
        let tilted = DVec3::new(0.05, 0.0, 1.0).normalize();
        let velocity = [DVec3::new(-1.0, 0.0, -1.0)];
        let smooth = [contact(0, DVec3::Z, 0.003), contact(1, tilted, 0.0031)];
        response.constrain(smooth.iter(), &velocity, &step);
        assert!((response.constraints()[0].free * DVec3::X - DVec3::X).length() < 1e-15);
        let corner = [contact(0, DVec3::Z, 0.003), contact(1, DVec3::X, 0.003)];
        response.constrain(corner.iter(), &velocity, &step);
        let c = response.constraints()[0];
        assert!((c.free * DVec3::X).length() < 1e-15 && (c.free * DVec3::Z).length() < 1e-15);
        assert!((c.free * DVec3::Y - DVec3::Y).length() < 1e-15);
    }

    /// A wall that would have to pull is let go, and the floor below stays.
    #[test]
    fn the_one_of_two_bodies_that_pulls_lets_go() {
        let mut response = BodyResponse::new(1);
        let friction = Friction::of_bodies(&[0.0]);
        let step = step(&friction);
        let corner = [contact(0, DVec3::Z, TARGET), contact(1, DVec3::X, TARGET)];
        let velocity = [DVec3::new(-1e-3, 0.0, 0.0)];
        response.constrain(corner.iter(), &velocity, &step);
        assert!((response.constraints()[0].free * DVec3::X).length() < 1e-15);
        let (residual, change) = ([DVec3::new(-1e-6, 0.0, 1e-6)], [DVec3::ZERO]);
        let pulled = solved(&residual, &velocity, &change);
        let lifts = |_: usize| DVec3::X;
        response.revise(corner.iter(), &pulled, lifts, &step, false);
        assert!(!response.wrong()[0].is_settled());
        response.turn();
        let c = response.constraints()[0];
        assert!((c.free * DVec3::X - DVec3::X).length() < 1e-15);
        assert!((c.free * DVec3::Z).length() < 1e-15);
    }

    /// Selle et al. 2009: a particle on an incline keeps v₀ + (sin φ − μ cos φ) g t.
    #[test]
    fn sliding_on_an_incline_follows_coulombs_law() {
        let angle = std::f64::consts::PI / 5.0;
        for (friction, start) in [(0.6, 0.0), (0.9, 1.0)] {
            let normal = DVec3::new(angle.sin(), 0.0, angle.cos());
            let down = DVec3::new(angle.cos(), 0.0, -angle.sin());
            let coefficients = Friction::of_bodies(&[friction]);
            let step = step(&coefficients);
            let mut response = BodyResponse::new(1);
            let mut velocity = [down * start];
            let acceleration = 9.81 * (angle.sin() - friction * angle.cos());
            for n in 1..=400 {
                let contacts = [contact(0, normal, TARGET)];
                advance_alone(&mut response, &contacts, &mut velocity, &step);
                let expected = (start + acceleration * step.dt * f64::from(n)).max(0.0);
                assert!(
                    (velocity[0].dot(down) - expected).abs() < 1e-12,
                    "{friction} {n}"
                );
                assert!(velocity[0].dot(normal).abs() < 1e-12);
            }
        }
    }

    /// A vertex that arrives sticks in the next step only if friction would stop it with the cloth
    /// that pulls at it.
    #[test]
    fn a_vertex_of_a_taut_sheet_does_not_stick_where_it_arrives() {
        let coefficients = Friction::of_bodies(&[0.5]);
        let step = step(&coefficients);
        let contacts = [contact(0, DVec3::Z, TARGET)];
        let begin = [DVec3::new(0.01, 0.0, -1.0)];
        let mut response = BodyResponse::new(1);
        response.constrain(contacts.iter(), &begin, &step);
        let constraint = response.constraints()[0];
        // It is pushed back by the body, and friction could stop a vertex alone fifty times.
        for (inertia, sticks) in [(MASS, true), (49.0 * MASS, true), (51.0 * MASS, false)] {
            let found = Found {
                residual: DVec3::Z * MASS,
                velocity: DVec3::X * 0.01,
                mass: MASS,
                inertia,
                error: 0.0,
            };
            let mut velocity = found.velocity;
            let state = constraint.settle(&found, step.tau, false, &mut velocity);
            assert!(
                state.held && state.sticking == sticks,
                "{inertia}: {state:?}"
            );
            // Friction acts all the same.
            assert_eq!(velocity, DVec3::ZERO);
            let closing = Closing {
                contacts: Vec::new(),
                lack: 0.0,
            };
            let all: Vec<&Contact> = contacts.iter().collect();
            let touching = step.touching(&all, 0, begin[0]);
            let Revised { constraint, .. } = constraint.revise(&found, &closing, &touching, false);
            let free = constraint.unwrap().free;
            assert_eq!(free == DMat3::ZERO, sticks, "{inertia}");
        }
    }

    /// The force is kept, so that a step of another length takes its share of it.
    #[test]
    fn friction_is_kept_as_a_force() {
        let mut response = BodyResponse::new(1);
        let coefficients = Friction::of_bodies(&[0.5]);
        let whole = step(&coefficients);
        let contacts = [contact(0, DVec3::Z, TARGET)];
        let mut velocity = [DVec3::X];
        advance_alone(&mut response, &contacts, &mut velocity, &whole);
        let expected = -0.5 * 9.81 * MASS;
        assert!((response.states()[0].friction.x / expected - 1.0).abs() < 1e-12);
        let half = StepContext {
            dt: 0.5 * whole.dt,
            tau: 0.5 * whole.tau,
            ..whole
        };
        response.constrain(contacts.iter(), &velocity, &half);
        let impulse = response.constraints()[0].friction.x;
        assert!((impulse / (expected * half.tau) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn the_clamp_lets_nothing_through_and_pins_alone() {
        let mut response = BodyResponse::new(1);
        let friction = Friction::of_bodies(&[0.5]);
        let step = step(&friction);
        let held = StepContext {
            pinned: &[true],
            ..step
        };
        let mut velocity = [DVec3::new(0.0, 0.0, -50.0)];
        let contacts = [contact(0, DVec3::Z, 0.01)];
        assert_eq!(response.clamp(contacts.iter(), &mut velocity, &held), 0);
        assert_eq!(response.clamp(contacts.iter(), &mut velocity, &step), 1);
        assert!(0.01 + step.dt * velocity[0].z >= TARGET - 1e-15);
    }
}
