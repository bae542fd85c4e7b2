//! How bodies act on cloth: constraints that are set, held and released, friction, and a last
//! clamp.
//!
//! A vertex that would come closer to a body than the contact thickness is constrained along the
//! contact's normal, inside the conjugate gradients [TB06 §3.2]. The constraint is held while the
//! body pushes; when it would have to pull, the vertex is released [BW98, §5.3]. Coulomb friction
//! either holds the tangential directions too (sticking), as long as the force for that stays
//! within the cone, or acts after the solve as an impulse against sliding. What the solve did not
//! foresee, a vertex pulled into a body by its neighbours, is clamped last: no vertex ends a step
//! closer than it may.
//!
//! In: the vertex-body contacts of owned vertices, sorted. Everything here is local to a vertex, so
//! it does not depend on who owns it.
//!
//! * \[BW98\] Baraff, Witkin: Large steps in cloth simulation.

use glam::{DMat3, DVec3};
use serde::{Deserialize, Serialize};

use super::constraint::opening_rate;
use crate::collide::contact::Contact;
use crate::step::integrate::time_integrator::Jolt;
use crate::step::world::Friction;

/// A held contact stays one until it is this much beyond its target, as a share of it.
const SLACK: f64 = 0.1;
/// Normals closer than this (cosine) are one surface: neighbouring facets of a smooth body.
const SAME_SURFACE: f64 = 0.9;
/// By which share a vertex that friction holds gives way along the body. As freely as others, and
/// layers creep on slopes and never come to rest; not at all, and a sheet that walls push together
/// on a floor is torn, for it cannot rise where it has to be drawn in.
const STICKING_YIELDS: f64 = 0.2;

/// What the contact of one owned vertex with bodies was at the end of the last step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VertexState {
    /// A constraint acted and the body pushed.
    pub held: bool,
    /// The constraint would have had to pull and was let go.
    pub released: bool,
    /// Friction held the vertex in place.
    pub sticking: bool,
}

/// Directions in which a vertex may not choose its velocity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct BodyConstraint {
    /// The vertex's index among those owned.
    pub(crate) local: u32,
    /// Projection onto the free directions.
    pub(crate) free: DMat3,
    /// Prescribed velocity change in m/s, within the constrained directions.
    pub(crate) change: DVec3,
    /// Normal of the deepest contact, out of the body.
    normal: DVec3,
    body_velocity: DVec3,
    friction: f64,
    sticking: bool,
}

/// Contact of the owned vertices with bodies, over the steps.
#[derive(Debug, Default)]
pub(crate) struct BodyResponse {
    states: Vec<VertexState>,
    constraints: Vec<BodyConstraint>,
    /// What friction took of velocities at impacts, in m/s.
    jolts: Vec<Jolt>,
    /// What friction took of velocities, and what was put right last, in m/s.
    pushes: Vec<Jolt>,
}

/// What a step's response needs to know beside the contacts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StepContext<'a> {
    /// Length of the step in s.
    pub(crate) dt: f64,
    /// Acceleration in m/s².
    pub(crate) gravity: DVec3,
    /// The first owned vertex: local indices count from here.
    pub(crate) first: u32,
    /// The friction of each pair.
    pub(crate) friction: &'a Friction,
}

impl BodyResponse {
    /// Response for `owned` vertices, none of them in contact.
    #[must_use]
    pub(crate) fn new(owned: usize) -> Self {
        Self {
            states: vec![VertexState::default(); owned],
            constraints: Vec::new(),
            jolts: Vec::new(),
            pushes: Vec::new(),
        }
    }

    /// Chooses the constraints of this step.
    ///
    /// `contacts` are those of owned vertices with bodies, sorted; vertices for which `pinned`
    /// holds are left alone. `velocities` are those of owned vertices at the start of the step, in
    /// m/s.
    pub(crate) fn constrain<'c>(
        &mut self,
        contacts: impl Iterator<Item = &'c Contact>,
        velocities: &[DVec3],
        pinned: &[bool],
        step: &StepContext<'_>,
    ) {
        self.constraints.clear();
        by_vertex(contacts, |vertex, group| {
            let local = (vertex - step.first) as usize;
            if !pinned[local] {
                let constraint = self.choose(group, local, velocities[local], step);
                self.constraints.extend(constraint);
            }
        });
    }

    /// The constraints of this step, one per constrained vertex, ascending.
    #[must_use]
    pub(crate) fn constraints(&self) -> &[BodyConstraint] {
        &self.constraints
    }

    /// Holds, releases and rubs, from the impulse that each constraint turned out to need.
    ///
    /// `residual` is `A Δv − b` on owned vertices in kg m/s; `velocities` are the new ones.
    pub(crate) fn settle(&mut self, residual: &[DVec3], masses: &[f64], velocities: &mut [DVec3]) {
        self.states.fill(VertexState::default());
        self.jolts.clear();
        self.pushes.clear();
        for c in &self.constraints {
            let i = c.local as usize;
            let before = velocities[i];
            self.states[i] = c.settle(residual[i], masses[i], &mut velocities[i]);
            let rubbed = velocities[i] - before;
            if rubbed != DVec3::ZERO {
                self.pushes.push(Jolt {
                    local: c.local,
                    change: rubbed,
                });
                // Of what the body pushes, the part that changes the speed of approach.
                let push = residual[i].dot(c.normal);
                let impact = (masses[i] * c.change.dot(c.normal) / push).clamp(0.0, 1.0);
                self.jolts.push(Jolt {
                    local: c.local,
                    change: rubbed * impact,
                });
            }
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

    /// Settles the velocities at the end of a step, where others moved the vertices: those
    /// that were held then may be released, and rub.
    ///
    /// `residual` is of the whole step.
    pub(crate) fn settle_ends(
        &mut self,
        residual: &[DVec3],
        masses: &[f64],
        velocities: &mut [DVec3],
    ) {
        for c in &self.constraints {
            let i = c.local as usize;
            if self.states[i].held {
                let before = velocities[i];
                self.states[i] = c.settle(residual[i], masses[i], &mut velocities[i]);
                self.pushes.push(Jolt {
                    local: c.local,
                    change: velocities[i] - before,
                });
            }
        }
    }

    /// Keeps every owned vertex out of the bodies it is close to; returns how many had to be moved.
    pub(crate) fn clamp<'c>(
        &mut self,
        contacts: impl Iterator<Item = &'c Contact>,
        velocities: &mut [DVec3],
        pinned: &[bool],
        step: &StepContext<'_>,
    ) -> usize {
        let mut clamped = 0;
        by_vertex(contacts, |vertex, group| {
            let local = (vertex - step.first) as usize;
            if pinned[local] {
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
                        rub(
                            velocity,
                            contact.body_velocity,
                            contact.normal,
                            friction * lack,
                        );
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

    /// The constraint of one vertex, from all its contacts.
    fn choose(
        &self,
        group: &[&Contact],
        local: usize,
        velocity: DVec3,
        step: &StepContext<'_>,
    ) -> Option<BodyConstraint> {
        let state = self.states[local];
        let foreseen = velocity + step.gravity * step.dt;
        let acts = |c: &Contact| {
            let rate = (velocity - c.body_velocity).dot(c.normal);
            let approach = (foreseen - c.body_velocity).dot(c.normal);
            let comes_close = c.gap + step.dt * approach < c.target;
            if state.released {
                rate < 0.0 && c.gap + step.dt * rate < c.target
            } else {
                comes_close || (state.held && c.gap < c.target * (1.0 + SLACK))
            }
        };
        let mut directions: [DVec3; 3] = [DVec3::ZERO; 3];
        let mut rates = [0.0; 3];
        let mut normals: [DVec3; 3] = [DVec3::ZERO; 3];
        let mut count = 0;
        let mut deepest: Option<&Contact> = None;
        // Deepest first; ties in the order of features.
        let mut order: Vec<&Contact> = group.iter().copied().filter(|c| acts(c)).collect();
        order.sort_by(|a, b| (a.gap - a.target).total_cmp(&(b.gap - b.target)));
        for contact in order {
            if count == 3
                || normals[..count]
                    .iter()
                    .any(|n| n.dot(contact.normal) > SAME_SURFACE)
            {
                continue;
            }
            deepest = deepest.or(Some(contact));
            let wanted = contact.body_velocity.dot(contact.normal) + opening_rate(contact, step.dt)
                - velocity.dot(contact.normal);
            // Gram-Schmidt, the prescribed rate carried along.
            let mut direction = contact.normal;
            let mut rate = wanted;
            for k in 0..count {
                let along = contact.normal.dot(directions[k]);
                direction -= directions[k] * along;
                rate -= rates[k] * along;
            }
            let length = direction.length();
            if length < 1e-3 {
                continue;
            }
            normals[count] = contact.normal;
            directions[count] = direction / length;
            rates[count] = rate / length;
            count += 1;
        }
        let contact = deepest?;
        let mut free = DMat3::IDENTITY;
        let mut change = DVec3::ZERO;
        for k in 0..count {
            let d = directions[k];
            free -= DMat3::from_cols(d * d.x, d * d.y, d * d.z);
            change += d * rates[k];
        }
        let sticking = state.sticking && step.friction.of(contact) > 0.0;
        if sticking || count == 3 {
            // Move with the body in the free directions too.
            change += free * (contact.body_velocity - velocity);
            free = DMat3::ZERO;
        }
        Some(BodyConstraint {
            local: local as u32,
            free,
            change,
            normal: contact.normal,
            body_velocity: contact.body_velocity,
            friction: step.friction.of(contact),
            sticking,
        })
    }
}

impl BodyConstraint {
    /// How much a vertex that friction holds gives way to what the solve did not foresee, per
    /// direction: as freely as any off the body, but less along it.
    pub(crate) fn yields(&self) -> DMat3 {
        let n = self.normal;
        let off = DMat3::from_cols(n * n.x, n * n.y, n * n.z);
        off + (DMat3::IDENTITY - off) * STICKING_YIELDS
    }

    /// What becomes of the contact that needed the impulse `residual` (kg m/s).
    fn settle(&self, residual: DVec3, mass: f64, velocity: &mut DVec3) -> VertexState {
        let push = residual.dot(self.normal);
        if push < 0.0 {
            return VertexState {
                released: true,
                ..VertexState::default()
            };
        }
        let limit = self.friction * push;
        let sticking = if self.sticking {
            (residual - self.normal * push).length() <= limit
        } else {
            rub(velocity, self.body_velocity, self.normal, limit / mass)
        };
        VertexState {
            held: true,
            released: false,
            sticking,
        }
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

/// Takes up to `limit` (m/s) off the sliding velocity; true if that stopped it.
fn rub(velocity: &mut DVec3, body_velocity: DVec3, normal: DVec3, limit: f64) -> bool {
    let relative = *velocity - body_velocity;
    let sliding = relative - normal * relative.dot(normal);
    let speed = sliding.length();
    if speed <= limit {
        *velocity -= sliding;
        return limit > 0.0;
    }
    *velocity -= sliding * (limit / speed);
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collide::contact::{PairId, PairKind, Separation};

    const TARGET: f64 = 0.004;

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
            gravity: DVec3::new(0.0, 0.0, -9.81),
            first: 0,
            friction,
        }
    }

    #[test]
    fn an_open_contact_closes_to_the_thickness_and_no_further() {
        let mut response = BodyResponse::new(1);
        let velocity = [DVec3::new(0.3, 0.0, -2.0)];
        let friction = Friction::of_bodies(&[0.5]);
        let step = step(&friction);
        response.constrain(
            [contact(0, DVec3::Z, 0.009)].iter(),
            &velocity,
            &[false],
            &step,
        );
        let c = response.constraints()[0];
        let after = velocity[0] + c.change;
        assert!((0.009 + 0.005 * after.z - TARGET).abs() < 1e-15);
        assert_eq!(c.free * DVec3::Z, DVec3::ZERO);
        assert_eq!(c.free * DVec3::X, DVec3::X);
    }

    #[test]
    fn a_contact_that_would_have_to_pull_is_released() {
        let mut response = BodyResponse::new(1);
        let contacts = [contact(0, DVec3::Z, TARGET)];
        let friction = Friction::of_bodies(&[0.5]);
        let step = step(&friction);
        let mut velocity = [DVec3::ZERO];
        response.constrain(contacts.iter(), &velocity, &[false], &step);
        assert_eq!(response.constraints().len(), 1);
        response.settle(&[DVec3::new(0.0, 0.0, -1e-6)], &[1e-5], &mut velocity);
        assert!(response.states()[0].released);
        response.constrain(contacts.iter(), &velocity, &[false], &step);
        assert!(response.constraints().is_empty());
    }

    #[test]
    fn neighbouring_facets_give_one_constraint_and_corners_two() {
        let mut response = BodyResponse::new(1);
        let friction = Friction::of_bodies(&[0.5]);
        let step = step(&friction);
        let tilted = DVec3::new(0.05, 0.0, 1.0).normalize();
        let velocity = [DVec3::new(-1.0, 0.0, -1.0)];
        let smooth = [contact(0, DVec3::Z, 0.003), contact(1, tilted, 0.0031)];
        response.constrain(smooth.iter(), &velocity, &[false], &step);
        assert!((response.constraints()[0].free * DVec3::X - DVec3::X).length() < 1e-15);
        let corner = [contact(0, DVec3::Z, 0.003), contact(1, DVec3::X, 0.003)];
        response.constrain(corner.iter(), &velocity, &[false], &step);
        let c = response.constraints()[0];
        assert!((c.free * DVec3::X).length() < 1e-15 && (c.free * DVec3::Z).length() < 1e-15);
        assert!((c.free * DVec3::Y - DVec3::Y).length() < 1e-15);
    }

    /// Selle et al. 2009: a particle on an incline keeps v₀ + (sin φ − μ cos φ) g t.
    #[test]
    fn sliding_on_an_incline_follows_coulombs_law() {
        let angle = std::f64::consts::PI / 5.0;
        for (friction, start) in [(0.6, 0.0), (0.9, 1.0)] {
            let normal = DVec3::new(angle.sin(), 0.0, angle.cos());
            let down = DVec3::new(angle.cos(), 0.0, -angle.sin());
            let (mass, coefficients) = (2e-5, Friction::of_bodies(&[friction]));
            let step = step(&coefficients);
            let mut response = BodyResponse::new(1);
            let mut velocity = [down * start];
            let acceleration = 9.81 * (angle.sin() - friction * angle.cos());
            for n in 1..=400 {
                let contacts = [contact(0, normal, TARGET)];
                response.constrain(contacts.iter(), &velocity, &[false], &step);
                // One free particle: A = m, b = m g dt.
                let c = response.constraints()[0];
                let b = step.gravity * (mass * step.dt);
                let change = c.change + c.free * (b / mass - c.change);
                let residual = [change * mass - b];
                velocity[0] += change;
                response.settle(&residual, &[mass], &mut velocity);
                let expected = (start + acceleration * step.dt * f64::from(n)).max(0.0);
                assert!(
                    (velocity[0].dot(down) - expected).abs() < 1e-9,
                    "{friction} {n}"
                );
                assert!(velocity[0].dot(normal).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn the_clamp_lets_nothing_through_and_pins_alone() {
        let mut response = BodyResponse::new(1);
        let friction = Friction::of_bodies(&[0.5]);
        let step = step(&friction);
        let mut velocity = [DVec3::new(0.0, 0.0, -50.0)];
        let contacts = [contact(0, DVec3::Z, 0.01)];
        assert_eq!(
            response.clamp(contacts.iter(), &mut velocity, &[true], &step),
            0
        );
        assert_eq!(
            response.clamp(contacts.iter(), &mut velocity, &[false], &step),
            1
        );
        assert!(0.01 + step.dt * velocity[0].z >= TARGET - 1e-15);
    }
}
