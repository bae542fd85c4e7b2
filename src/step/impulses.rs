//! Impulses that enforce inequalities between velocities: a projected Jacobi.
//!
//! A row wants a combination of its vertices' velocities to be at least some rate: features of a contact
//! may close to the thickness within the step, and open slowly when too close [BFA02, §7.2], with friction
//! against sliding up to Coulomb's cone; triangles may stretch no further than their limit
//! (`strain_limit`). All rows are relaxed at once from the same velocities, so there is no order
//! among them. A row's step is divided by what all rows that push on its vertices can do to it together, the
//! absolute sum of its row of the Delassus matrix; so the rounds converge, much as when the mass of a vertex
//! is split among its contacts [Tonge 2012]. Momentum is kept exactly: a row's impulses on its vertices sum
//! to zero.
//!
//! Rows come in the order of their features, and a vertex's owner holds all its rows: its sums have
//! one order on any number of ranks. Velocities of vertices owned elsewhere are refreshed between rounds
//! by `row_exchange`.
//!
//! * \[BFA02\] Bridson, Fedkiw, Anderson: Robust treatment of collisions, contact and friction.
//! * [Tonge 2012] Tonge, Benevolenski, Voroshilov: Mass splitting for jitter-free parallel rigid bodies.

use bytemuck::{Pod, Zeroable};
use glam::{DMat3, DVec3};

use crate::collide::contact::Contact;
use crate::team::{Shares, Team, parts};

/// Time in s in which a contact that is too close opens: fast enough to be seen nowhere, too slow for
/// piled layers to be blown apart.
const OPENING_TIME: f64 = 0.02;
/// Mobility along a normal that is less than this share of the whole counts as none.
const HELD: f64 = 1e-9;

/// `Σ weights (v − body_velocity)·normal ≥ least_rate` for up to four vertices.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// How many of `vertices` and `weights` are used.
    pub count: u8,
    /// Global numbers.
    pub vertices: [u32; 4],
    /// Their weights.
    pub weights: [f64; 4],
    /// Unit vector.
    pub normal: DVec3,
    /// In m/s.
    pub body_velocity: DVec3,
    /// In m/s.
    pub least_rate: f64,
    /// Coulomb's coefficient for motion across the normal.
    pub friction: f64,
}

impl Row {
    /// The row of a contact for a step of `dt` (s).
    #[must_use]
    pub fn of_contact(contact: &Contact, friction: f64, dt: f64) -> Self {
        Self {
            count: contact.count,
            vertices: contact.vertices,
            weights: contact.weights,
            normal: contact.normal,
            body_velocity: contact.body_velocity,
            least_rate: opening_rate(contact, dt),
            friction,
        }
    }

    /// The vertices that take part.
    #[must_use]
    pub fn vertices(&self) -> &[u32] {
        &self.vertices[..usize::from(self.count)]
    }
}

/// Rate of separation in m/s that a contact wants.
///
/// One still open may close to its target within the step of `dt` (s); one too close opens slowly
/// [BFA02, §7.2].
#[must_use]
pub fn opening_rate(contact: &Contact, dt: f64) -> f64 {
    let lack = contact.target - contact.gap;
    if lack < 0.0 {
        lack / dt
    } else {
        lack / OPENING_TIME.max(dt)
    }
}

/// A vertex that takes part in rows; the part of it that travels between ranks.
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct Participant {
    /// Velocity in m/s.
    pub velocity: DVec3,
    /// Inverse mass times the projection onto free directions, in 1/kg.
    pub mobility: DMat3,
    /// Sum of its absolute weights in the rows that push.
    pub load: f64,
}

/// Rows that touch a rank's vertices, with what their impulses have summed to.
#[derive(Debug, Default)]
pub struct Impulses {
    rows: Vec<Row>,
    /// For each row, its vertices as indices into `vertices`.
    slots: Vec<[u32; 4]>,
    /// Vertices that take part, global numbers, ascending.
    vertices: Vec<u32>,
    /// Their state, in the same order.
    participants: Vec<Participant>,
    /// Accumulated impulses of each row, along the normal and tangential, in kg m/s.
    normal: Vec<f64>,
    tangential: Vec<DVec3>,
    /// Whether a row counts in the loads of its vertices.
    counted: Vec<bool>,
    /// What each row adds to its impulse in a round.
    impulses: Vec<DVec3>,
    /// The largest rate that a row of each thread lacked.
    worst: Vec<f64>,
    /// The rows of each vertex, ascending, with its weight in them.
    incident: Vec<(u32, f64)>,
    /// Where those of each vertex start; one more than there are vertices.
    starts: Vec<u32>,
    team: Team,
    row_shares: Shares,
    vertex_shares: Shares,
}

impl Impulses {
    /// Impulses that a team works on.
    #[must_use]
    pub fn with_team(team: &Team) -> Self {
        Self {
            team: team.clone(),
            ..Self::default()
        }
    }

    /// Takes other rows; those that share a vertex must come in the same order on every rank.
    pub fn load(&mut self, rows: impl IntoIterator<Item = Row>) {
        self.rows.clear();
        self.rows.extend(rows);
        self.vertices.clear();
        for row in &self.rows {
            self.vertices.extend_from_slice(row.vertices());
        }
        self.vertices.sort_unstable();
        self.vertices.dedup();
        let idle = Participant {
            velocity: DVec3::ZERO,
            mobility: DMat3::ZERO,
            load: 0.0,
        };
        self.participants.clear();
        self.participants.resize(self.vertices.len(), idle);
        self.slots.clear();
        for row in &self.rows {
            let mut slots = [0; 4];
            for (slot, vertex) in slots.iter_mut().zip(row.vertices()) {
                let at = self.vertices.partition_point(|v| v < vertex);
                *slot = at as u32;
            }
            self.slots.push(slots);
        }
        self.normal.clear();
        self.normal.resize(self.rows.len(), 0.0);
        self.tangential.clear();
        self.tangential.resize(self.rows.len(), DVec3::ZERO);
        self.counted.clear();
        self.counted.resize(self.rows.len(), false);
        self.impulses.clear();
        self.impulses.resize(self.rows.len(), DVec3::ZERO);
        self.list_incident();
        self.row_shares = self.team.cut_even(self.rows.len());
        self.vertex_shares = self.team.cut_even(self.vertices.len());
    }

    /// Lists the rows of each vertex.
    fn list_incident(&mut self) {
        let slots = |row: usize| &self.slots[row][..usize::from(self.rows[row].count)];
        self.starts.clear();
        self.starts.resize(self.vertices.len() + 1, 0);
        for row in 0..self.rows.len() {
            for &slot in slots(row) {
                self.starts[slot as usize + 1] += 1;
            }
        }
        for vertex in 0..self.vertices.len() {
            self.starts[vertex + 1] += self.starts[vertex];
        }
        self.incident.clear();
        self.incident
            .resize(self.starts[self.vertices.len()] as usize, (0, 0.0));
        let mut next = self.starts.clone();
        for row in 0..self.rows.len() {
            for (&slot, &weight) in slots(row).iter().zip(&self.rows[row].weights) {
                self.incident[next[slot as usize] as usize] = (row as u32, weight);
                next[slot as usize] += 1;
            }
        }
    }

    /// The rows.
    #[must_use]
    pub fn rows(&self) -> &[Row] {
        &self.rows
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

    /// Finds the rows that will push first. Loads are right afterwards where the vertex is owned.
    pub fn survey(&mut self) {
        let (rows, slots, participants) = (&self.rows, &self.slots, &self.participants);
        let of = &self.row_shares.elements;
        let work = parts(&mut self.counted, of).zip(of);
        self.row_shares.run(work, |(counted, share)| {
            let rows = rows[share.clone()].iter().zip(&slots[share.clone()]);
            for ((row, slots), counted) in rows.zip(counted) {
                let slots = &slots[..usize::from(row.count)];
                let relative = relative(participants, row, slots);
                *counted = relative.dot(row.normal) < row.least_rate;
            }
        });
        self.sum_up();
    }

    /// One round: all rows at once. Velocities and loads are right afterwards where the vertex is owned.
    ///
    /// Returns the largest rate in m/s that a row lacked before.
    pub fn round(&mut self) -> f64 {
        let (rows, slots, participants) = (&self.rows, &self.slots, &self.participants);
        let of = &self.row_shares.elements;
        self.worst.clear();
        self.worst.resize(of.len(), 0.0);
        let work = (parts(&mut self.normal, of).zip(parts(&mut self.tangential, of)))
            .zip(parts(&mut self.counted, of).zip(parts(&mut self.impulses, of)))
            .zip(of.iter().zip(&mut self.worst));
        self.row_shares
            .run(work, |((sums, states), (share, worst))| {
                let ((normal, tangential), (counted, impulses)) = (sums, states);
                for (at, index) in share.clone().enumerate() {
                    let row = &rows[index];
                    let slots = &slots[index][..usize::from(row.count)];
                    impulses[at] = DVec3::ZERO;
                    let relative = relative(participants, row, slots);
                    let rate = relative.dot(row.normal);
                    if normal[at] <= 0.0 && rate >= row.least_rate {
                        counted[at] = false;
                        continue;
                    }
                    let mut give = DMat3::ZERO;
                    for (&slot, w) in slots.iter().zip(&row.weights) {
                        let p = &participants[slot as usize];
                        let own = if counted[at] { 0.0 } else { w.abs() };
                        give += p.mobility * (w.abs() * (p.load + own));
                    }
                    let along = (give * row.normal).dot(row.normal);
                    let trace = give.x_axis.x + give.y_axis.y + give.z_axis.z;
                    // What bodies hold along the normal cannot give way, but for rounding.
                    if along <= HELD * trace {
                        continue;
                    }
                    *worst = worst.max(row.least_rate - rate);
                    let push = (normal[at] + (row.least_rate - rate) / along).max(0.0);
                    let sliding = relative - row.normal * rate;
                    // The direction that gives way most bounds the step, so that friction never overshoots.
                    let mut drag = tangential[at] - sliding / trace;
                    let limit = row.friction * push;
                    let size = drag.length();
                    if size > limit {
                        drag *= limit / size;
                    }
                    impulses[at] = row.normal * (push - normal[at]) + (drag - tangential[at]);
                    normal[at] = push;
                    tangential[at] = drag;
                    counted[at] = push > 0.0;
                }
            });
        self.sum_up();
        self.worst.iter().copied().fold(0.0, f64::max)
    }

    /// Adds the impulses of its rows to each vertex, in the order of the rows, and sums its load anew.
    fn sum_up(&mut self) {
        let (incident, starts) = (&self.incident, &self.starts);
        let (counted, impulses) = (&self.counted, &self.impulses);
        let of = &self.vertex_shares.elements;
        let work = parts(&mut self.participants, of).zip(of);
        self.vertex_shares.run(work, |(participants, share)| {
            for (p, vertex) in participants.iter_mut().zip(share.clone()) {
                let (mut change, mut load) = (DVec3::ZERO, 0.0);
                for &(row, w) in &incident[starts[vertex] as usize..starts[vertex + 1] as usize] {
                    let (counts, impulse) = (counted[row as usize], impulses[row as usize]);
                    // Most rows rest, and to add nothing changes no bit.
                    if !counts && impulse == DVec3::ZERO {
                        continue;
                    }
                    change += p.mobility * (impulse * w);
                    if counts {
                        load += w.abs();
                    }
                }
                p.velocity += change;
                p.load = load;
            }
        });
    }

    /// Which rows pushed.
    pub fn pushing(&self) -> impl Iterator<Item = bool> + '_ {
        self.normal.iter().map(|push| *push > 0.0)
    }
}

/// The combination of velocities that a row constrains.
fn relative(participants: &[Participant], row: &Row, slots: &[u32]) -> DVec3 {
    let pairs = slots.iter().zip(&row.weights);
    pairs.fold(-row.body_velocity, |sum, (&slot, &w)| {
        sum + participants[slot as usize].velocity * w
    })
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
        impulses.load(contacts.iter().map(|c| Row::of_contact(c, 0.3, 0.005)));
        let vertices = impulses.vertices().to_vec();
        for (p, v) in impulses.participants_mut().iter_mut().zip(vertices) {
            p.velocity = velocities[v as usize];
            p.mobility = DMat3::from_diagonal(DVec3::splat(1.0 / mass));
        }
        impulses.survey();
        for _ in 0..rounds {
            impulses.round();
        }
        impulses
    }

    fn rate(solved: &Impulses, row: &Row) -> f64 {
        let at = |v: u32| solved.vertices().binary_search(&v).unwrap();
        let pairs = row.vertices().iter().zip(row.weights);
        let sum = pairs.fold(-row.body_velocity, |sum, (&v, w)| {
            sum + solved.participants()[at(v)].velocity * w
        });
        sum.dot(row.normal)
    }

    #[test]
    fn a_single_contact_stops_approaching_in_one_round() {
        let third = -1.0 / 3.0;
        let contact = vertex_face(0, [0, 1, 2, 3], [1.0, third, third, third], 0.004);
        let mut velocities = vec![DVec3::ZERO; 4];
        velocities[0] = DVec3::new(0.0, 0.0, -1.0);
        let solved = solve(&[contact], &velocities, 2e-5, 1);
        let rate = rate(&solved, &solved.rows()[0]);
        assert!(rate.abs() < 1e-12, "{rate}");
    }

    proptest! {
        #[test]
        fn momentum_is_kept_and_contacts_open(
            seeds in prop::collection::vec((0u32..12, 0u32..12, 0u32..12, 0u32..12, 0.0..0.006f64), 1..12),
            velocities in prop::collection::vec((-1.0..1.0f64, -1.0..1.0f64, -1.0..1.0f64), 12),
        ) {
            // The lifted vertex has the greatest number: some motion satisfies all contacts.
            let contacts: Vec<Contact> = seeds
                .iter()
                .enumerate()
                .filter_map(|(i, &(a, b, c, d, gap))| {
                    let mut all = [a, b, c, d];
                    all.sort_unstable_by(|a, b| b.cmp(a));
                    let distinct = all.windows(2).all(|w| w[0] != w[1]);
                    distinct.then(|| vertex_face(i as u32, all, [1.0, -0.2, -0.3, -0.5], gap))
                })
                .collect();
            prop_assume!(!contacts.is_empty());
            let velocities: Vec<DVec3> =
                velocities.into_iter().map(|(x, y, z)| DVec3::new(x, y, z)).collect();
            let solved = solve(&contacts, &velocities, 1.0, 2000);
            let before: DVec3 = solved.vertices().iter().map(|&v| velocities[v as usize]).sum();
            let after: DVec3 = solved.participants().iter().map(|p| p.velocity).sum();
            prop_assert!((before - after).length() < 1e-10, "{before} {after}");
            for row in solved.rows() {
                let lack = row.least_rate - rate(&solved, row);
                prop_assert!(lack < 1e-6, "{lack} m/s too slow");
            }
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
        impulses.load([pair(1, 0), pair(2, 1)].map(|c| Row::of_contact(&c, 0.3, 0.005)));
        for (i, p) in impulses.participants_mut().iter_mut().enumerate() {
            p.velocity = if i == 0 {
                DVec3::ZERO
            } else {
                DVec3::new(0.0, 0.0, -1.0)
            };
            p.mobility = DMat3::IDENTITY * if i == 0 { 0.0 } else { 1.0 };
        }
        impulses.survey();
        for _ in 0..200 {
            impulses.round();
        }
        for p in impulses.participants() {
            assert!(p.velocity.length() < 1e-6, "{}", p.velocity);
        }
        assert!(impulses.pushing().all(|pushing| pushing));
    }
}
