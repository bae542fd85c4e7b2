//! The part of the constraint graph that a thread works on: some of the vertices, and all
//! constraints that touch them.
//!
//! Constraints are relaxed once for each thread that has vertices of theirs, from the same
//! velocities to the same bits, as they are once for each rank. That is less work than handing
//! results from thread to thread: vertices are shared in the order in which constraints name them,
//! so few constraints have vertices of two threads. A thread adds up all that the constraints do to
//! its vertices, in the order of the constraints.

use std::ops::Range;

use glam::DVec3;

use super::constraint::{Constraint, Movers, Outcome, Push, VertexMotion};
use super::constraint_graph::ConstraintGraph;
use super::wake_up::{BookkeepingShare, Sum};

use crate::heap_bytes::counts_heap;

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
    /// How many constraints the last round looked at, and the largest change of its rate in m/s
    /// that one asked for.
    looked_at: usize,
    asked: f64,
    /// How far the velocity of one of the vertices has gone, at most, in m/s.
    farthest: f64,
}

counts_heap!(GraphPart: own, active, pushes, touched; without vertices, looked_at, asked, farthest);

impl GraphPart {
    /// Begins with some of the vertices. Nothing has pushed, and all constraints are to be looked
    /// at.
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

    /// Takes over what the impulse of a constraint had summed to, if it touches a vertex of this
    /// part.
    pub(crate) fn take_over(&mut self, constraint: usize, push: Push) {
        if has(&self.own, constraint) {
            self.pushes[constraint] = push;
        }
    }

    /// How far the velocity of a vertex has gone in [`Self::settle`], at most, in m/s. Forgets it.
    pub(crate) fn take_farthest(&mut self) -> f64 {
        std::mem::take(&mut self.farthest)
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

    /// Looks at all constraints that are active, adds up what they do to the vertices of the part
    /// that the rank owns, and thresholds those of constraints that rest. `look` looks at a
    /// constraint. The kept values are those of the vertices of the part.
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
                    sum.change += movers.mobilities.times(slot as usize, outcome.impulse * w);
                }
            }
        }
    }

    /// Moves the vertices by what constraints have done to them. Appends the constraints at rest
    /// for which they went too far to `woken`: all parts have to wake those.
    pub(crate) fn settle(
        &mut self,
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
            // Which vertices constraints without impulses touch depends on ranks: nothing may
            // change for it.
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
                self.farthest = self.farthest.max(thresholds[at].path);
            }
        }
    }
}

/// Gives parts other vertices: each takes what it lacks to know of their constraints from those
/// that know.
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
