//! What a thread works on in rounds of impulses: some of the vertices, and all constraints that touch them.
//!
//! Constraints are relaxed once for each thread that has vertices of theirs, from the same velocities to the same bits, as
//! they are once for each rank. That is less work than handing results from thread to thread: vertices are shared in
//! the order in which constraints name them, so few constraints have vertices of two threads. A thread adds up all that the constraints do
//! to its vertices, in the order of the constraints.
//!
//! Most constraints rest: they neither push nor have to, and looking at them again is nearly all the work. A constraint that is at
//! rest has some rate to spare, and cannot lack any before its vertices have changed their velocities by so much.
//! So each vertex adds up how far its velocity has gone, and a constraint at rest is looked at again only when one of
//! its vertices has gone further than the constraint allows. That leaves out no constraint that would do
//! anything: results have the same bits as those of looking at every constraint in every round.

use std::ops::Range;

use glam::DVec3;

use super::constraint::{Constraint, Movers, Outcome, Push, ROUNDING, VertexMotion};
use crate::team::parts;

/// No constraint is due: it does not rest, or the threshold has no end.
const NEVER: f64 = f64::INFINITY;

/// Constraints, and which vertices they touch.
#[derive(Debug, Default)]
pub(crate) struct ConstraintGraph {
    pub(crate) constraints: Vec<Constraint>,
    /// For each constraint, the slots of its vertices.
    pub(crate) slots: Vec<[u32; 4]>,
    /// The constraints of each vertex, and where those of each start; one more than there are vertices.
    incident: Vec<u32>,
    starts: Vec<u32>,
    /// For each constraint, where it is among those of each of its vertices.
    places: Vec<[u32; 4]>,
}

impl ConstraintGraph {
    /// The slots of a constraint's vertices.
    pub(crate) fn slots(&self, constraint: usize) -> &[u32] {
        &self.slots[constraint][..usize::from(self.constraints[constraint].count)]
    }

    /// The constraints that touch a vertex, ascending.
    pub(crate) fn constraints_of(&self, slot: usize) -> &[u32] {
        &self.incident[self.listed(slot..slot + 1)]
    }

    /// Where the constraints of some vertices are in the list of the constraints of all.
    pub(crate) fn listed(&self, slots: Range<usize>) -> Range<usize> {
        self.starts[slots.start] as usize..self.starts[slots.end] as usize
    }

    /// Lists the constraints of each of so many vertices.
    pub(crate) fn list_incident(&mut self, vertices: usize) {
        let mut starts = std::mem::take(&mut self.starts);
        let mut incident = std::mem::take(&mut self.incident);
        // Counted one place further on, summed, and moved back by listing.
        starts.clear();
        starts.resize(vertices + 2, 0);
        for constraint in 0..self.constraints.len() {
            for &slot in self.slots(constraint) {
                starts[slot as usize + 2] += 1;
            }
        }
        for vertex in 0..vertices {
            starts[vertex + 2] += starts[vertex + 1];
        }
        incident.clear();
        incident.resize(starts[vertices + 1] as usize, 0);
        let mut places = std::mem::take(&mut self.places);
        places.clear();
        places.resize(self.constraints.len(), [0; 4]);
        for (constraint, places) in places.iter_mut().enumerate() {
            for (&slot, place) in self.slots(constraint).iter().zip(places) {
                let next = &mut starts[slot as usize + 1];
                incident[*next as usize] = constraint as u32;
                *place = *next;
                *next += 1;
            }
        }
        (self.starts, self.incident, self.places) = (starts, incident, places);
    }
}

/// How far the velocity of a vertex has gone, in m/s, and how far it may go before one of its constraints at rest is due.
#[derive(Clone, Copy, Debug)]
struct WakeUpThreshold {
    path: f64,
    threshold: f64,
}

impl WakeUpThreshold {
    /// Of a vertex that is in no constraint at rest.
    const NONE: Self = Self {
        path: 0.0,
        threshold: NEVER,
    };

    /// Follows the velocity by so much. Appends the constraints at rest that are to be looked at again, of `constraints` and when they are due.
    fn follow(
        &mut self,
        change: DVec3,
        constraints: &[u32],
        dues: &mut [f64],
        woken: &mut Vec<u32>,
    ) {
        self.path += change.length();
        if self.path <= self.threshold {
            return;
        }
        self.threshold = NEVER;
        for (&constraint, due) in constraints.iter().zip(dues) {
            if self.path <= *due {
                self.threshold = self.threshold.min(*due);
            } else {
                *due = NEVER;
                woken.push(constraint);
            }
        }
    }

    /// Holds a vertex of a constraint that may lack something once its vertices have gone further by so much: when it is due.
    fn lower(&mut self, spare: f64) -> f64 {
        let due = self.path * (1.0 - ROUNDING) + spare;
        self.threshold = self.threshold.min(due);
        due
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

impl Marks {
    /// Of a vertex that nothing has happened to.
    fn new(owned: bool) -> Self {
        Self {
            owned,
            touched: false,
            changed: false,
        }
    }
}

/// What is kept of all vertices and only parts look at, beside their motion.
#[derive(Debug, Default)]
pub(crate) struct Bookkeeping {
    thresholds: Vec<WakeUpThreshold>,
    /// When the constraints of each vertex are due, as they are listed.
    dues: Vec<f64>,
    sums: Vec<Sum>,
    marks: Vec<Marks>,
}

/// The same of the vertices of a part.
#[derive(Debug)]
pub(crate) struct BookkeepingShare<'a> {
    thresholds: &'a mut [WakeUpThreshold],
    dues: &'a mut [f64],
    sums: &'a mut [Sum],
    marks: &'a mut [Marks],
}

/// The vertices that threads share, and where the constraints of each share are listed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GraphShares<'a> {
    pub(crate) vertices: &'a [Range<usize>],
    pub(crate) listed: &'a [Range<usize>],
}

impl Bookkeeping {
    /// Begins with vertices that nothing has happened to, of which the rank owns those.
    pub(crate) fn begin(&mut self, graph: &ConstraintGraph, owned: impl Iterator<Item = bool>) {
        self.marks.clear();
        self.marks.extend(owned.map(Marks::new));
        let count = self.marks.len();
        refill(&mut self.thresholds, count, WakeUpThreshold::NONE);
        refill(&mut self.dues, graph.incident.len(), NEVER);
        refill(&mut self.sums, count, Sum::default());
    }

    /// Cuts it into shares of the vertices, whose constraints are listed there.
    pub(crate) fn cut<'a>(
        &'a mut self,
        shares: GraphShares<'a>,
    ) -> impl Iterator<Item = BookkeepingShare<'a>> {
        let GraphShares { vertices, listed } = shares;
        let kept = parts(&mut self.thresholds, vertices).zip(parts(&mut self.dues, listed));
        let sums = parts(&mut self.sums, vertices);
        let kept = kept.zip(sums.zip(parts(&mut self.marks, vertices)));
        kept.map(|((thresholds, dues), (sums, marks))| BookkeepingShare {
            thresholds,
            dues,
            sums,
            marks,
        })
    }

    /// Follows the velocity of a vertex by so much. Appends the constraints at rest for which it went too far to `woken`.
    pub(crate) fn follow(
        &mut self,
        graph: &ConstraintGraph,
        slot: usize,
        change: DVec3,
        woken: &mut Vec<u32>,
    ) {
        let dues = &mut self.dues[graph.listed(slot..slot + 1)];
        self.thresholds[slot].follow(change, graph.constraints_of(slot), dues, woken);
    }

    /// Whether the velocity or load of a vertex changed since changes were last forgotten.
    pub(crate) fn has_changed(&self, slot: usize) -> bool {
        self.marks[slot].changed
    }

    /// Begins to note changes anew.
    pub(crate) fn forget_changes(&mut self) {
        let marks = self.marks.iter_mut();
        marks.for_each(|marks| marks.changed = false);
    }
}

/// A thread's share of the vertices, with their constraints.
#[derive(Debug, Default)]
pub(crate) struct GraphPart {
    /// Slots.
    vertices: Range<usize>,
    /// A bit for each constraint that touches them.
    own: Vec<u64>,
    /// A bit for each of these that the next round looks at.
    active: Vec<u64>,
    /// The impulses of these, by the numbers of all constraints.
    pushes: Vec<Push>,
    /// Vertices that a round adds to, counted from the first of the share.
    touched: Vec<u32>,
    /// How many constraints the last round looked at, and the largest change of its rate in m/s that one asked for.
    looked_at: usize,
    asked: f64,
}

impl GraphPart {
    /// Begins with some of the vertices. Nothing has pushed, and all constraints are to be looked at.
    pub(crate) fn begin(&mut self, graph: &ConstraintGraph, vertices: Range<usize>) {
        let words = graph.constraints.len().div_ceil(64);
        for bits in [&mut self.own, &mut self.active] {
            bits.clear();
            bits.resize(words, 0);
        }
        self.pushes.clear();
        self.pushes.resize(graph.constraints.len(), Push::default());
        for slot in vertices.clone() {
            for &constraint in graph.constraints_of(slot) {
                set(&mut self.own, constraint as usize);
            }
        }
        self.active.copy_from_slice(&self.own);
        self.vertices = vertices;
    }

    /// How many constraints the last round looked at.
    pub(crate) fn looked_at(&self) -> usize {
        self.looked_at
    }

    /// The largest change of its rate in m/s that a constraint asked for in the last round.
    pub(crate) fn asked(&self) -> f64 {
        self.asked
    }

    /// The impulse of a constraint, if it touches a vertex of this part.
    pub(crate) fn push(&self, constraint: usize) -> Option<Push> {
        has(&self.own, constraint).then(|| self.pushes[constraint])
    }

    /// Constraints that the next round looks at, ascending.
    pub(crate) fn active(&self) -> impl Iterator<Item = usize> + '_ {
        let words = self.active.iter().enumerate();
        words.flat_map(|(word, &bits)| ones(bits).map(move |bit| 64 * word + bit))
    }

    /// Has those of some constraints looked at that are of this part.
    pub(crate) fn wake(&mut self, constraints: &[u32]) {
        for &constraint in constraints {
            if has(&self.own, constraint as usize) {
                set(&mut self.active, constraint as usize);
            }
        }
    }

    /// Looks at all constraints that are active, adds up what they do to the vertices of the part that the rank owns, and
    /// thresholds those of constraints that rest. `look` looks at a constraint. What is kept is that of the vertices of the part.
    pub(crate) fn look(
        &mut self,
        graph: &ConstraintGraph,
        movers: Movers<'_>,
        keeping: BookkeepingShare<'_>,
        look: impl Fn(&Constraint, Movers<'_>, &[u32], &mut Push) -> Outcome,
    ) {
        let BookkeepingShare {
            thresholds,
            dues,
            sums,
            marks,
        } = keeping;
        self.touched.clear();
        (self.looked_at, self.asked) = (0, 0.0);
        let start = self.vertices.start;
        let first = graph.listed(self.vertices.clone()).start;
        for (word, active) in self.active.iter_mut().enumerate() {
            for bit in ones(*active) {
                let constraint = 64 * word + bit;
                let slots = graph.slots(constraint);
                let outcome = look(
                    &graph.constraints[constraint],
                    movers,
                    slots,
                    &mut self.pushes[constraint],
                );
                self.looked_at += 1;
                self.asked = self.asked.max(outcome.asked);
                let own = |slot: u32| (slot as usize).wrapping_sub(start);
                if let Some(spare) = outcome.spare {
                    *active &= !(1 << bit);
                    for (&slot, &place) in slots.iter().zip(&graph.places[constraint]) {
                        if let Some(threshold) = thresholds.get_mut(own(slot)) {
                            dues[place as usize - first] = threshold.lower(spare);
                        }
                    }
                    continue;
                }
                for (&slot, &w) in slots.iter().zip(&graph.constraints[constraint].weights) {
                    let at = own(slot);
                    if !marks.get(at).is_some_and(|marks| marks.owned) {
                        continue;
                    }
                    let sum = &mut sums[at];
                    if !marks[at].touched {
                        marks[at].touched = true;
                        self.touched.push(at as u32);
                        *sum = Sum::default();
                    }
                    if outcome.counted {
                        sum.load += w.abs();
                    }
                    sum.change += movers.mobilities[slot as usize] * (outcome.impulse * w);
                }
            }
        }
    }

    /// Moves the vertices by what constraints have done to them. Appends the constraints at rest for which they went too far to
    /// `woken`: all parts have to wake those.
    pub(crate) fn settle(
        &self,
        graph: &ConstraintGraph,
        motions: &mut [VertexMotion],
        keeping: BookkeepingShare<'_>,
        woken: &mut Vec<u32>,
    ) {
        let BookkeepingShare {
            thresholds,
            dues,
            sums,
            marks,
        } = keeping;
        let first = graph.listed(self.vertices.clone()).start;
        for &at in &self.touched {
            let at = at as usize;
            let (motion, sum) = (&mut motions[at], sums[at]);
            marks[at].touched = false;
            marks[at].changed |= sum.load.to_bits() != motion.load.to_bits();
            motion.load = sum.load;
            // Which vertices constraints without impulses touch depends on ranks: nothing may change for it.
            if sum.change != DVec3::ZERO {
                marks[at].changed = true;
                let before = motion.velocity;
                motion.velocity += sum.change;
                let slot = self.vertices.start + at;
                let listed = graph.listed(slot..slot + 1);
                let dues = &mut dues[listed.start - first..listed.end - first];
                thresholds[at].follow(
                    motion.velocity - before,
                    graph.constraints_of(slot),
                    dues,
                    woken,
                );
            }
        }
    }
}

/// Gives parts other vertices: each takes what it lacks to know of their constraints from those that know.
pub(crate) fn share_anew(
    parts: &mut [GraphPart],
    graph: &ConstraintGraph,
    shares: &[Range<usize>],
) {
    let mut owns = Vec::with_capacity(parts.len());
    for (part, vertices) in parts.iter().zip(shares) {
        let mut own = part.own.clone();
        for slot in vertices.clone() {
            if !part.vertices.contains(&slot) {
                graph
                    .constraints_of(slot)
                    .iter()
                    .for_each(|&constraint| set(&mut own, constraint as usize));
            }
        }
        for slot in part.vertices.clone() {
            if !vertices.contains(&slot) {
                for &constraint in graph.constraints_of(slot) {
                    let slots = graph.slots(constraint as usize);
                    if !slots
                        .iter()
                        .any(|&slot| vertices.contains(&(slot as usize)))
                    {
                        clear(&mut own, constraint as usize);
                    }
                }
            }
        }
        owns.push(own);
    }
    let mut learnt = Vec::new();
    for (to, own) in owns.iter().enumerate() {
        for (word, &bits) in own.iter().enumerate() {
            for bit in ones(bits & !parts[to].own[word]) {
                let constraint = 64 * word + bit;
                if let Some(from) = parts.iter().find(|part| has(&part.own, constraint)) {
                    learnt.push((
                        to,
                        constraint,
                        from.pushes[constraint],
                        has(&from.active, constraint),
                    ));
                }
            }
        }
    }
    for ((part, own), vertices) in parts.iter_mut().zip(owns).zip(shares) {
        part.own = own;
        part.vertices = vertices.clone();
        let active = part.active.iter_mut().zip(&part.own);
        active.for_each(|(active, own)| *active &= own);
    }
    for (to, constraint, push, active) in learnt {
        parts[to].pushes[constraint] = push;
        if active {
            set(&mut parts[to].active, constraint);
        }
    }
}

/// Fills a vector anew with so many values.
pub(crate) fn refill<T: Clone>(values: &mut Vec<T>, count: usize, value: T) {
    values.clear();
    values.resize(count, value);
}

/// The places of the bits that are set, ascending.
fn ones(mut bits: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let at = bits.trailing_zeros() as usize;
        (bits != 0).then(|| {
            bits &= bits - 1;
            at
        })
    })
}

fn has(bits: &[u64], at: usize) -> bool {
    bits[at / 64] >> (at % 64) & 1 == 1
}

fn set(bits: &mut [u64], at: usize) {
    bits[at / 64] |= 1 << (at % 64);
}

fn clear(bits: &mut [u64], at: usize) {
    bits[at / 64] &= !(1 << (at % 64));
}
