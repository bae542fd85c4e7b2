//! Impulses between layers of cloth (and between cloth faces or edges and bodies): a projected Jacobi.
//!
//! Each contact wants its features to separate at least at a given rate: an open contact may close to
//! the thickness within the step, one too close opens slowly [BFA02, §7.2], and friction opposes sliding
//! up to Coulomb's cone. All contacts are relaxed at once from the same velocities, so there is no order
//! among them; the mass of a vertex is split among its contacts [Tonge 2012], which makes the rounds
//! converge and keeps momentum exactly, for a contact's impulses on its vertices sum to zero.
//!
//! Contacts are sorted by their features, and a vertex's owner holds all its contacts: its sums have
//! one order on any number of ranks. Velocities of vertices owned elsewhere are refreshed between rounds
//! by `contact_exchange`.
//!
//! * \[BFA02\] Bridson, Fedkiw, Anderson: Robust treatment of collisions, contact and friction.
//! * [Tonge 2012] Tonge, Benevolenski, Voroshilov: Mass splitting for jitter-free parallel rigid bodies.

use bytemuck::{Pod, Zeroable};
use glam::{DMat3, DVec3};

use crate::collide::contact::Contact;

/// Overlap removed per step while a contact is too close, as a share of the thickness.
const PUSH_PER_STEP: f64 = 0.1;

/// A vertex that takes part in contacts; the part of it that travels between ranks.
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct Participant {
    /// Velocity in m/s.
    pub velocity: DVec3,
    /// Inverse mass times the projection onto free directions, in 1/kg.
    pub mobility: DMat3,
    /// How many contacts it takes part in.
    pub contacts: f64,
}

/// The contacts of a step that touch a rank's vertices, with what their impulses have summed to.
#[derive(Debug, Default)]
pub struct Impulses {
    contacts: Vec<Contact>,
    /// For each contact, its vertices as indices into `vertices`.
    slots: Vec<[u32; 4]>,
    /// Vertices that take part, global numbers, ascending.
    vertices: Vec<u32>,
    /// Their state, in the same order.
    participants: Vec<Participant>,
    /// Accumulated impulses of each contact, along the normal and tangential, in kg m/s.
    normal: Vec<f64>,
    tangential: Vec<DVec3>,
    change: Vec<DVec3>,
}

impl Impulses {
    /// Takes the contacts of a step, sorted and unique.
    pub fn load(&mut self, contacts: impl IntoIterator<Item = Contact>) {
        self.contacts.clear();
        self.contacts.extend(contacts);
        self.vertices.clear();
        for c in &self.contacts {
            self.vertices
                .extend_from_slice(&c.vertices[..usize::from(c.count)]);
        }
        self.vertices.sort_unstable();
        self.vertices.dedup();
        let idle = Participant {
            velocity: DVec3::ZERO,
            mobility: DMat3::ZERO,
            contacts: 0.0,
        };
        self.participants.clear();
        self.participants.resize(self.vertices.len(), idle);
        self.slots.clear();
        for c in &self.contacts {
            let mut slots = [0; 4];
            for (slot, vertex) in slots.iter_mut().zip(&c.vertices[..usize::from(c.count)]) {
                let at = self.vertices.partition_point(|v| v < vertex);
                *slot = at as u32;
                self.participants[at].contacts += 1.0;
            }
            self.slots.push(slots);
        }
        self.normal.clear();
        self.normal.resize(self.contacts.len(), 0.0);
        self.tangential.clear();
        self.tangential.resize(self.contacts.len(), DVec3::ZERO);
        self.change.clear();
        self.change.resize(self.vertices.len(), DVec3::ZERO);
    }

    /// The contacts, sorted.
    #[must_use]
    pub fn contacts(&self) -> &[Contact] {
        &self.contacts
    }

    /// Vertices that take part, global numbers, ascending.
    #[must_use]
    pub fn vertices(&self) -> &[u32] {
        &self.vertices
    }

    /// State of the vertices that take part. The count is right where the vertex is owned.
    pub fn participants_mut(&mut self) -> &mut [Participant] {
        &mut self.participants
    }

    /// State of the vertices that take part.
    #[must_use]
    pub fn participants(&self) -> &[Participant] {
        &self.participants
    }

    /// One round: all contacts at once. Velocities are right afterwards where the vertex is owned.
    ///
    /// `friction` is that of a contact; `dt` in s.
    pub fn round(&mut self, dt: f64, friction: impl Fn(&Contact) -> f64) {
        self.change.fill(DVec3::ZERO);
        for (index, c) in self.contacts.iter().enumerate() {
            let count = usize::from(c.count);
            let slots = &self.slots[index][..count];
            let mut relative = -c.body_velocity;
            // Σ w² n W: how easily the split masses give way.
            let mut give = DMat3::ZERO;
            for (&slot, &w) in slots.iter().zip(&c.weights) {
                let p = &self.participants[slot as usize];
                relative += p.velocity * w;
                give += p.mobility * (w * w * p.contacts);
            }
            let along = (give * c.normal).dot(c.normal);
            if along <= 0.0 {
                continue;
            }
            let rate = relative.dot(c.normal);
            let push = (self.normal[index] + (wanted_rate(c, dt) - rate) / along).max(0.0);
            let sliding = relative - c.normal * rate;
            // The stiffest direction bounds the step, so that friction never overshoots.
            let trace = give.x_axis.x + give.y_axis.y + give.z_axis.z;
            let mut drag = self.tangential[index] - sliding / trace.max(along);
            let limit = friction(c) * push;
            let size = drag.length();
            if size > limit {
                drag *= limit / size;
            }
            let impulse = c.normal * (push - self.normal[index]) + (drag - self.tangential[index]);
            self.normal[index] = push;
            self.tangential[index] = drag;
            for (&slot, &w) in slots.iter().zip(&c.weights) {
                self.change[slot as usize] +=
                    self.participants[slot as usize].mobility * (impulse * w);
            }
        }
        for (p, change) in self.participants.iter_mut().zip(&self.change) {
            p.velocity += *change;
        }
    }

    /// How many contacts pushed, of those for whose first vertex `counted` holds.
    #[must_use]
    pub fn pushing(&self, counted: impl Fn(u32) -> bool) -> usize {
        let pairs = self.contacts.iter().zip(&self.normal);
        pairs
            .filter(|(c, push)| **push > 0.0 && counted(c.vertices[0]))
            .count()
    }
}

/// Least rate of separation a contact accepts, in m/s.
fn wanted_rate(contact: &Contact, dt: f64) -> f64 {
    let lack = contact.target - contact.gap;
    lack.min(PUSH_PER_STEP * contact.target) / dt
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::collide::contact::{PairId, PairKind};

    fn vertex_face(b: u32, vertices: [u32; 4], weights: [f64; 4], gap: f64) -> Contact {
        Contact {
            id: PairId {
                kind: PairKind::VertexFace,
                body: 0,
                a: vertices[0],
                b,
            },
            count: 4,
            vertices,
            weights,
            normal: DVec3::Z,
            gap,
            target: 0.004,
            body_velocity: DVec3::ZERO,
        }
    }

    fn solve(contacts: &[Contact], velocities: &[DVec3], mass: f64, rounds: u32) -> Impulses {
        let mut impulses = Impulses::default();
        impulses.load(contacts.iter().copied());
        let vertices = impulses.vertices().to_vec();
        for (p, v) in impulses.participants_mut().iter_mut().zip(vertices) {
            p.velocity = velocities[v as usize];
            p.mobility = DMat3::from_diagonal(DVec3::splat(1.0 / mass));
        }
        for _ in 0..rounds {
            impulses.round(0.005, |_| 0.3);
        }
        impulses
    }

    #[test]
    fn a_single_contact_stops_approaching_in_one_round() {
        let third = -1.0 / 3.0;
        let contact = vertex_face(0, [0, 1, 2, 3], [1.0, third, third, third], 0.004);
        let mut velocities = vec![DVec3::ZERO; 4];
        velocities[0] = DVec3::new(0.0, 0.0, -1.0);
        let solved = solve(&[contact], &velocities, 2e-5, 1);
        let rate: f64 = solved
            .participants()
            .iter()
            .zip(contact.weights)
            .map(|(p, w)| p.velocity.z * w)
            .sum();
        assert!(rate.abs() < 1e-12, "{rate}");
    }

    proptest! {
        #[test]
        fn momentum_is_kept_and_contacts_open(
            seeds in prop::collection::vec((0u32..12, 0u32..12, 0u32..12, 0u32..12, 0.0..0.006f64), 1..12),
            velocities in prop::collection::vec((-1.0..1.0f64, -1.0..1.0f64, -1.0..1.0f64), 12),
        ) {
            let contacts: Vec<Contact> = seeds
                .iter()
                .enumerate()
                .filter(|(_, (a, b, c, d, _))| {
                    let mut all = [a, b, c, d];
                    all.sort();
                    all.windows(2).all(|w| w[0] != w[1])
                })
                .map(|(i, &(a, b, c, d, gap))| {
                    vertex_face(i as u32, [a, b, c, d], [1.0, -0.2, -0.3, -0.5], gap)
                })
                .collect();
            prop_assume!(!contacts.is_empty());
            let velocities: Vec<DVec3> =
                velocities.into_iter().map(|(x, y, z)| DVec3::new(x, y, z)).collect();
            let solved = solve(&contacts, &velocities, 1.0, 2000);
            let before: DVec3 = solved.vertices().iter().map(|&v| velocities[v as usize]).sum();
            let after: DVec3 = solved.participants().iter().map(|p| p.velocity).sum();
            prop_assert!((before - after).length() < 1e-10, "{before} {after}");
        }
    }

    #[test]
    fn a_stack_of_layers_comes_to_rest() {
        // Vertices 0, 1, 2 above each other, each pressing on the next; the lowest is fixed.
        let pair = |upper: u32, lower: u32| {
            let mut c = vertex_face(lower, [upper, lower, 0, 0], [1.0, -1.0, 0.0, 0.0], 0.004);
            c.count = 2;
            c
        };
        let mut impulses = Impulses::default();
        impulses.load([pair(1, 0), pair(2, 1)]);
        for (i, p) in impulses.participants_mut().iter_mut().enumerate() {
            p.velocity = if i == 0 {
                DVec3::ZERO
            } else {
                DVec3::new(0.0, 0.0, -1.0)
            };
            p.mobility = DMat3::IDENTITY * if i == 0 { 0.0 } else { 1.0 };
        }
        for _ in 0..200 {
            impulses.round(0.005, |_| 0.3);
        }
        for p in impulses.participants() {
            assert!(p.velocity.length() < 1e-6, "{}", p.velocity);
        }
        assert_eq!(impulses.pushing(|_| true), 2);
    }
}
