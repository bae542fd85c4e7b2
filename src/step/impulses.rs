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
//! Most rows rest: they neither push nor have to, and looking at them again is nearly all the work. A row that is at
//! rest has some rate to spare, and cannot lack any before its vertices have changed their velocities by so much.
//! So each vertex adds up how far its velocity has gone, and rows at rest are looked at again only when one of
//! their vertices has gone further than its most demanding one allows. That leaves out no row that would do
//! anything: results have the same bits as those of looking at every row in every round.
//!
//! * \[BFA02\] Bridson, Fedkiw, Anderson: Robust treatment of collisions, contact and friction.
//! * [Tonge 2012] Tonge, Benevolenski, Voroshilov: Mass splitting for jitter-free parallel rigid bodies.

use std::ops::Range;

use glam::{DMat3, DVec3};

use crate::collide::contact::Contact;
use crate::team::{Shares, Team, parts};

/// Time in s in which a contact that is too close opens: fast enough to be seen nowhere, too slow for
/// piled layers to be blown apart.
const OPENING_TIME: f64 = 0.02;
/// Mobility along a normal that is less than this share of the whole counts as none.
const HELD: f64 = 1e-9;
/// Error of a rate, as a share of the speeds it is summed from: far more than the few roundings that it is.
const ROUNDING: f64 = 1e-12;
/// No vertex of a row.
const NOWHERE: u32 = u32::MAX;
/// Rows that are not worth waking a thread for.
const FEWEST: usize = 128;

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

/// How a vertex that takes part in rows moves: what rows at rest look at.
#[derive(Clone, Copy, Debug, Default)]
struct Motion {
    /// In m/s.
    velocity: DVec3,
    /// Sum of its absolute weights in the rows that push.
    load: f64,
}

/// How far the velocity of a vertex has gone, in m/s, and how far it may go before its rows at rest are looked at again.
#[derive(Clone, Copy, Debug)]
struct Leash {
    path: f64,
    length: f64,
}

impl Leash {
    /// Follows the velocity by so much; true if the rows at rest have to be looked at again.
    fn follow(&mut self, change: DVec3) -> bool {
        self.path += change.length();
        let strays = self.path > self.length || self.path.is_nan();
        if strays {
            self.length = f64::INFINITY;
        }
        strays
    }

    /// Holds a vertex of a row that may lack something once its vertices have gone further by so much.
    fn tie(&mut self, spare: f64) {
        self.length = self.length.min(self.path * (1.0 - ROUNDING) + spare);
    }
}

/// What a round adds to the velocity of a vertex, and its load afterwards.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    change: DVec3,
    load: f64,
}

/// What is to be known of a vertex, beside numbers.
#[derive(Clone, Copy, Debug)]
struct Marks {
    owned: bool,
    /// A round is adding to it.
    touched: bool,
    /// Its velocity or load is no longer what other ranks have heard.
    changed: bool,
}

/// Vertices that take part in rows.
#[derive(Debug, Default)]
struct Participants {
    motions: Vec<Motion>,
    /// Inverse masses times projections onto free directions, in 1/kg.
    mobilities: Vec<DMat3>,
    leashes: Vec<Leash>,
    sums: Vec<Sum>,
    marks: Vec<Marks>,
}

/// What the impulses of a row have summed to, in kg m/s.
#[derive(Clone, Copy, Debug, Default)]
struct Push {
    normal: f64,
    tangential: DVec3,
    /// Whether it counts in the loads of its vertices.
    counted: bool,
}

/// What looking at a row came to.
#[derive(Clone, Copy, Debug, Default)]
struct Outcome {
    /// What it adds to its impulse.
    impulse: DVec3,
    counted: bool,
    /// By how much its vertices may change their velocities, in m/s each, before it may lack anything; none if it
    /// does not rest.
    spare: Option<f64>,
    /// The rate in m/s that it lacked.
    lack: f64,
}

/// What a thread finds out about its share of the vertices in a round.
#[derive(Debug, Default)]
struct Scratch {
    touched: Vec<u32>,
    strayed: Vec<u32>,
}

/// Rows that touch a rank's vertices, with what their impulses have summed to.
#[derive(Debug, Default)]
pub struct Impulses {
    /// Global numbers of the vertices that are this rank's own.
    owned: Range<usize>,
    rows: Vec<Row>,
    /// For each row, its vertices as indices into `vertices`.
    slots: Vec<[u32; 4]>,
    pushes: Vec<Push>,
    /// Vertices that take part, global numbers, as they first appear in rows.
    vertices: Vec<u32>,
    /// Their state, in the same order.
    participants: Participants,
    /// Where a vertex of any number is in `vertices`.
    slot_of: Vec<u32>,
    /// The rows of each vertex, and where those of each start; one more than there are vertices.
    incident: Vec<u32>,
    starts: Vec<u32>,
    /// A bit for each row that the next round looks at.
    active: Vec<u64>,
    /// Rows that this round looks at, ascending, and what that came to.
    looked_at: Vec<u32>,
    outcomes: Vec<Outcome>,
    scratch: Vec<Scratch>,
    team: Team,
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

    /// Forgets all rows. The rank owns vertices of these numbers.
    pub fn clear(&mut self, owned: Range<usize>) {
        self.owned = owned;
        self.rows.clear();
        self.slots.clear();
        for vertex in self.vertices.drain(..) {
            self.slot_of[vertex as usize] = NOWHERE;
        }
    }

    /// Appends rows; those that share a vertex must come in the same order on every rank.
    pub fn extend(&mut self, rows: impl IntoIterator<Item = Row>) {
        for row in rows {
            let mut slots = [0; 4];
            for (slot, &vertex) in slots.iter_mut().zip(row.vertices()) {
                let at = vertex as usize;
                if at >= self.slot_of.len() {
                    self.slot_of.resize(at + 1, NOWHERE);
                }
                if self.slot_of[at] == NOWHERE {
                    self.slot_of[at] = self.vertices.len() as u32;
                    self.vertices.push(vertex);
                }
                *slot = self.slot_of[at];
            }
            self.slots.push(slots);
            self.rows.push(row);
        }
    }

    /// Forgets all rows but the first. Their vertices go on taking part.
    pub fn truncate(&mut self, rows: usize) {
        self.rows.truncate(rows);
        self.slots.truncate(rows);
    }

    /// Begins with the rows that there are: nothing has pushed, and no vertex moves or can be moved.
    pub fn begin(&mut self) {
        refill(&mut self.pushes, self.rows.len(), Push::default());
        let count = self.vertices.len();
        let p = &mut self.participants;
        refill(&mut p.motions, count, Motion::default());
        refill(&mut p.mobilities, count, DMat3::ZERO);
        let loose = Leash {
            path: 0.0,
            length: f64::INFINITY,
        };
        refill(&mut p.leashes, count, loose);
        refill(&mut p.sums, count, Sum::default());
        p.marks.clear();
        let owned = &self.owned;
        p.marks.extend(self.vertices.iter().map(|&vertex| Marks {
            owned: owned.contains(&(vertex as usize)),
            touched: false,
            changed: false,
        }));
        self.list_incident();
        refill(&mut self.active, self.rows.len().div_ceil(64), 0);
        self.vertex_shares = self.team.cut_even(self.vertices.len());
        let threads = self.vertex_shares.elements.len();
        self.scratch.resize_with(threads, Scratch::default);
    }

    /// Lists the rows of each vertex.
    fn list_incident(&mut self) {
        let slots = |row: usize| &self.slots[row][..usize::from(self.rows[row].count)];
        // Counted one place further on, summed, and moved back by listing.
        self.starts.clear();
        self.starts.resize(self.vertices.len() + 2, 0);
        for row in 0..self.rows.len() {
            for &slot in slots(row) {
                self.starts[slot as usize + 2] += 1;
            }
        }
        for vertex in 0..self.vertices.len() {
            self.starts[vertex + 2] += self.starts[vertex + 1];
        }
        self.incident.clear();
        let entries = self.starts[self.vertices.len() + 1] as usize;
        self.incident.resize(entries, 0);
        for row in 0..self.rows.len() {
            for &slot in slots(row) {
                let next = &mut self.starts[slot as usize + 1];
                self.incident[*next as usize] = row as u32;
                *next += 1;
            }
        }
    }

    /// The rows.
    #[must_use]
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// For each row, where its vertices are among those that take part.
    pub fn slots(&self) -> impl Iterator<Item = &[u32]> {
        let rows = self.rows.iter().zip(&self.slots);
        rows.map(|(row, slots)| &slots[..usize::from(row.count)])
    }

    /// Vertices that take part, global numbers, as they first appear in rows.
    #[must_use]
    pub fn vertices(&self) -> &[u32] {
        &self.vertices
    }

    /// Where a vertex is among those that take part.
    #[must_use]
    pub fn slot(&self, vertex: u32) -> Option<usize> {
        let slot = self.slot_of.get(vertex as usize).copied();
        slot.filter(|&slot| slot != NOWHERE).map(|s| s as usize)
    }

    /// Places a vertex at the start: velocity in m/s, and inverse mass times the projection onto free directions in 1/kg.
    pub fn place(&mut self, slot: usize, velocity: DVec3, mobility: DMat3) {
        self.participants.motions[slot].velocity = velocity;
        self.participants.mobilities[slot] = mobility;
    }

    /// Replaces the mobility (1/kg) of a vertex.
    pub fn set_mobility(&mut self, slot: usize, mobility: DMat3) {
        self.participants.mobilities[slot] = mobility;
    }

    /// Velocity of a vertex in m/s.
    #[must_use]
    pub fn velocity(&self, slot: usize) -> DVec3 {
        self.participants.motions[slot].velocity
    }

    /// Mobility of a vertex in 1/kg.
    #[must_use]
    pub fn mobility(&self, slot: usize) -> DMat3 {
        self.participants.mobilities[slot]
    }

    /// Sum of the absolute weights of a vertex in the rows that push. Right where the vertex is owned.
    #[must_use]
    pub fn load_of(&self, slot: usize) -> f64 {
        self.participants.motions[slot].load
    }

    /// Whether the velocity or load of a vertex changed since changes were last forgotten.
    #[must_use]
    pub fn has_changed(&self, slot: usize) -> bool {
        self.participants.marks[slot].changed
    }

    /// Begins to note changes anew: other ranks have heard of them.
    pub fn forget_changes(&mut self) {
        let marks = self.participants.marks.iter_mut();
        marks.for_each(|marks| marks.changed = false);
    }

    /// Takes what the owner of a vertex says of it: velocity in m/s and load.
    pub fn hear(&mut self, slot: usize, velocity: DVec3, load: f64) {
        let motion = &mut self.participants.motions[slot];
        let change = velocity - motion.velocity;
        *motion = Motion { velocity, load };
        if self.participants.leashes[slot].follow(change) {
            self.wake(slot);
        }
    }

    /// Has the rows of a vertex looked at.
    fn wake(&mut self, slot: usize) {
        let rows = self.starts[slot] as usize..self.starts[slot + 1] as usize;
        for &row in &self.incident[rows] {
            self.active[row as usize / 64] |= 1 << (row % 64);
        }
    }

    /// Finds the rows that will push first. Loads are right afterwards where the vertex is owned.
    pub fn survey(&mut self) {
        self.looked_at.clear();
        self.looked_at.extend(0..self.rows.len() as u32);
        self.look(|row, slots, participants, push| {
            let rate = relative(&participants.motions, row, slots).dot(row.normal);
            push.counted = rate < row.least_rate;
            let rests = !push.counted;
            Outcome {
                counted: push.counted,
                spare: rests.then(|| spare(&participants.motions, row, slots, rate)),
                ..Outcome::default()
            }
        });
    }

    /// One round: all rows at once. Velocities and loads are right afterwards where the vertex is owned.
    ///
    /// Returns the largest rate in m/s that a row lacked before.
    pub fn round(&mut self) -> f64 {
        self.looked_at.clear();
        for (word, &bits) in self.active.iter().enumerate() {
            let mut bits = bits;
            while bits != 0 {
                self.looked_at
                    .push(64 * word as u32 + bits.trailing_zeros());
                bits &= bits - 1;
            }
        }
        self.look(relax);
        let outcomes = &self.outcomes[..self.looked_at.len()];
        let lacks = outcomes.iter().map(|outcome| outcome.lack);
        lacks.fold(0.0, f64::max)
    }

    /// Looks at rows, adds up what they do, and finds the rows to look at next.
    fn look(&mut self, outcome: impl Fn(&Row, &[u32], &Participants, &mut Push) -> Outcome + Sync) {
        let (rows, slots, participants) = (&self.rows, &self.slots, &self.participants);
        let listed = &self.looked_at[..];
        if self.outcomes.len() < listed.len() {
            self.outcomes.resize(listed.len(), Outcome::default());
        }
        let threads = self
            .team
            .threads()
            .min(listed.len().div_ceil(FEWEST))
            .max(1);
        let cut = |thread: usize| listed.len() * thread / threads;
        let lists = (0..threads).map(|thread| cut(thread)..cut(thread + 1));
        let first_row = |thread: usize| match thread {
            0 => 0,
            _ if thread == threads => rows.len(),
            _ => listed[cut(thread)] as usize,
        };
        let of_rows = (0..threads).map(|thread| first_row(thread)..first_row(thread + 1));
        let work = lists.clone().zip(of_rows.clone());
        let work = work
            .zip(parts(&mut self.outcomes, lists))
            .zip(parts(&mut self.pushes, of_rows));
        self.team
            .run(work, |(((list, of_rows), outcomes), pushes)| {
                for (&row, result) in listed[list].iter().zip(outcomes) {
                    let row = row as usize;
                    let slots = &slots[row][..usize::from(rows[row].count)];
                    let push = &mut pushes[row - of_rows.start];
                    *result = outcome(&rows[row], slots, participants, push);
                }
            });
        self.sum_up();
        for (&row, outcome) in self.looked_at.iter().zip(&self.outcomes) {
            let (word, bit) = (row as usize / 64, 1 << (row % 64));
            if outcome.spare.is_some() {
                self.active[word] &= !bit;
            } else {
                self.active[word] |= bit;
            }
        }
        for thread in 0..self.scratch.len() {
            let mut strayed = std::mem::take(&mut self.scratch[thread].strayed);
            for &slot in &strayed {
                self.wake(slot as usize);
            }
            strayed.clear();
            self.scratch[thread].strayed = strayed;
        }
    }

    /// Adds the impulses of the rows to each owned vertex, in the order of the rows, and sums its load anew; leashes all
    /// vertices of rows that rest.
    fn sum_up(&mut self) {
        let (rows, slots) = (&self.rows, &self.slots);
        let (listed, outcomes) = (&self.looked_at, &self.outcomes);
        let all = 0..self.vertices.len();
        let of = if listed.len() < FEWEST {
            std::slice::from_ref(&all)
        } else {
            &self.vertex_shares.elements[..]
        };
        let Participants {
            motions,
            mobilities,
            leashes,
            sums,
            marks,
        } = &mut self.participants;
        let mobilities = &*mobilities;
        let work = (parts(motions, of).zip(parts(leashes, of)))
            .zip(parts(sums, of).zip(parts(marks, of)))
            .zip(of.iter().zip(&mut self.scratch));
        self.team.run(work, |(state, (share, scratch))| {
            let ((motions, leashes), (sums, marks)) = state;
            let Scratch { touched, strayed } = scratch;
            touched.clear();
            for (&row, outcome) in listed.iter().zip(outcomes) {
                let row = row as usize;
                let slots = &slots[row][..usize::from(rows[row].count)];
                let own = |slot: u32| (slot as usize).wrapping_sub(share.start);
                if let Some(spare) = outcome.spare {
                    for &slot in slots {
                        if let Some(leash) = leashes.get_mut(own(slot)) {
                            leash.tie(spare);
                        }
                    }
                    continue;
                }
                for (&slot, &w) in slots.iter().zip(&rows[row].weights) {
                    let at = own(slot);
                    if !marks.get(at).is_some_and(|marks| marks.owned) {
                        continue;
                    }
                    let sum = &mut sums[at];
                    if !marks[at].touched {
                        marks[at].touched = true;
                        touched.push(at as u32);
                        *sum = Sum::default();
                    }
                    if outcome.counted {
                        sum.load += w.abs();
                    }
                    sum.change += mobilities[slot as usize] * (outcome.impulse * w);
                }
            }
            for &at in &*touched {
                let at = at as usize;
                let (motion, sum) = (&mut motions[at], sums[at]);
                marks[at].touched = false;
                marks[at].changed |= sum.load.to_bits() != motion.load.to_bits();
                motion.load = sum.load;
                // Which vertices rows without impulses touch depends on ranks: nothing may change for it.
                if sum.change != DVec3::ZERO {
                    marks[at].changed = true;
                    let before = motion.velocity;
                    motion.velocity += sum.change;
                    if leashes[at].follow(motion.velocity - before) {
                        strayed.push((share.start + at) as u32);
                    }
                }
            }
        });
    }

    /// Which rows pushed.
    pub fn pushing(&self) -> impl Iterator<Item = bool> + '_ {
        self.pushes.iter().map(|push| push.normal > 0.0)
    }
}

/// Fills a vector anew with so many values.
fn refill<T: Clone>(values: &mut Vec<T>, count: usize, value: T) {
    values.clear();
    values.resize(count, value);
}

/// Relaxes one row: what it adds to its impulses.
fn relax(row: &Row, slots: &[u32], participants: &Participants, push: &mut Push) -> Outcome {
    let relative = relative(&participants.motions, row, slots);
    let rate = relative.dot(row.normal);
    if push.normal <= 0.0 && rate >= row.least_rate {
        if push.counted {
            // Counted for the last time: the loads change.
            push.counted = false;
            return Outcome::default();
        }
        return Outcome {
            spare: Some(spare(&participants.motions, row, slots, rate)),
            ..Outcome::default()
        };
    }
    let mut give = DMat3::ZERO;
    for (&slot, w) in slots.iter().zip(&row.weights) {
        let load = participants.motions[slot as usize].load;
        let own = if push.counted { 0.0 } else { w.abs() };
        give += participants.mobilities[slot as usize] * (w.abs() * (load + own));
    }
    let along = (give * row.normal).dot(row.normal);
    let trace = give.x_axis.x + give.y_axis.y + give.z_axis.z;
    // What bodies hold along the normal cannot give way, but for rounding.
    if along <= HELD * trace {
        return Outcome {
            counted: push.counted,
            ..Outcome::default()
        };
    }
    let normal = (push.normal + (row.least_rate - rate) / along).max(0.0);
    let sliding = relative - row.normal * rate;
    // The direction that gives way most bounds the step, so that friction never overshoots.
    let mut drag = push.tangential - sliding / trace;
    let limit = row.friction * normal;
    let size = drag.length();
    if size > limit {
        drag *= limit / size;
    }
    let impulse = row.normal * (normal - push.normal) + (drag - push.tangential);
    *push = Push {
        normal,
        tangential: drag,
        counted: normal > 0.0,
    };
    Outcome {
        impulse,
        counted: push.counted,
        spare: None,
        lack: row.least_rate - rate,
    }
}

/// The combination of velocities that a row constrains.
fn relative(motions: &[Motion], row: &Row, slots: &[u32]) -> DVec3 {
    let pairs = slots.iter().zip(&row.weights);
    pairs.fold(-row.body_velocity, |sum, (&slot, &w)| {
        sum + motions[slot as usize].velocity * w
    })
}

/// By how much the vertices of a row with this rate may change their velocities, in m/s each, before it may have less
/// than its least rate.
fn spare(motions: &[Motion], row: &Row, slots: &[u32], rate: f64) -> f64 {
    let bound = |velocity: DVec3| velocity.abs().element_sum();
    let (mut weights, mut speeds) = (0.0, bound(row.body_velocity));
    for (&slot, w) in slots.iter().zip(&row.weights) {
        weights += w.abs();
        speeds += w.abs() * bound(motions[slot as usize].velocity);
    }
    let lead = rate - row.least_rate;
    (lead - ROUNDING * (speeds + row.least_rate.abs() + lead)) / weights
}

#[cfg(test)]
#[path = "impulses_tests.rs"]
mod tests;
