//! Impulses that enforce inequalities between velocities: a projected Jacobi.
//!
//! All constraints (`constraint`) are relaxed at once from the same velocities, so there is no
//! order among them.
//!
//! Constraints come in the order of their features, and a vertex's owner holds all its constraints:
//! its sums have one order on any number of ranks. Velocities of vertices owned elsewhere are
//! refreshed between rounds by `constraint_exchange`. Threads of a rank share the vertices in the
//! same way (`graph_part`).

use std::ops::Range;

use glam::{DMat3, DVec3};

pub(crate) use super::constraint::Constraint;
use super::constraint::{Movers, Outcome, Push, Round, VertexMotion};
use super::constraint_graph::ConstraintGraph;
use super::gauss_seidel::Swept;
use super::graph_part::{GraphPart, share_anew};
use super::mobilities::Mobilities;
use super::wake_up::{Bookkeeping, GraphShares};
use crate::heap_bytes::counts_heap;
use crate::team::{Team, parts};

/// No vertex of a constraint.
const NOWHERE: u32 = u32::MAX;
/// Constraints that are not worth waking a thread for.
const FEWEST: usize = 128;
/// Rounds after which threads share the vertices anew: which constraints push changes, though
/// slowly.
const SHARE_EVERY: u32 = 32;

/// Vertices that take part in constraints.
#[derive(Debug, Default)]
struct Participants {
    motions: Vec<VertexMotion>,
    mobilities: Mobilities,
    kept: Bookkeeping,
}

counts_heap!(Participants: motions, mobilities, kept);

/// Constraints that touch a rank's vertices, with what their impulses have summed to.
#[derive(Debug, Default)]
pub(crate) struct Impulses {
    /// Global numbers of the vertices that are this rank's own.
    owned: Range<usize>,
    graph: ConstraintGraph,
    /// The numbers of the contacts of layers that have the first constraints; there are others, at
    /// rest.
    layers: Vec<u32>,
    /// How far the velocity of a vertex has gone at most, in m/s.
    farthest: f64,
    /// How many vertices have velocities.
    placed: usize,
    /// Vertices that take part, global numbers, as they first appear in constraints.
    vertices: Vec<u32>,
    /// Their state, in the same order.
    participants: Participants,
    /// Where a vertex of any number is in `vertices`.
    slot_of: Vec<u32>,
    team: Team,
    /// The parts that threads work on, and the vertices of each.
    parts: Vec<GraphPart>,
    shares: Vec<Range<usize>>,
    /// Where the constraints of these are listed.
    listed: Vec<Range<usize>>,
    /// Constraints at rest for which a vertex went too far: one that each part moved, and then one
    /// that was heard of.
    woken: Vec<Vec<u32>>,
    round: Round,
}

counts_heap!(Impulses:
    graph, layers, vertices, participants, slot_of, parts, shares, listed, woken;
    without owned, farthest, placed, team, round
);

impl Impulses {
    /// Impulses that a team works on.
    #[must_use]
    pub(crate) fn with_team(team: &Team) -> Self {
        Self {
            team: team.clone(),
            ..Self::default()
        }
    }

    /// The threads that share the work.
    #[must_use]
    pub(crate) fn team(&self) -> &Team {
        &self.team
    }

    /// Forgets all constraints. The rank owns vertices of these numbers.
    pub(crate) fn clear(&mut self, owned: Range<usize>) {
        self.owned = owned;
        self.graph.constraints.clear();
        self.graph.slots.clear();
        self.layers.clear();
        self.participants.kept.forget_paths();
        (self.farthest, self.placed) = (0.0, 0);
        for vertex in self.vertices.drain(..) {
            self.slot_of[vertex as usize] = NOWHERE;
        }
    }

    /// Appends constraints; those that share a vertex must come in the same order on every rank.
    pub(crate) fn extend(&mut self, constraints: impl IntoIterator<Item = Constraint>) {
        let start = self.graph.constraints.len();
        self.graph.constraints.extend(constraints);
        self.enlist_from(start);
    }

    /// Has a vertex take part; its place among those that do.
    pub(crate) fn enlist(&mut self, vertex: u32) -> u32 {
        let at = vertex as usize;
        if at >= self.slot_of.len() {
            self.slot_of.resize(at + 1, NOWHERE);
        }
        if self.slot_of[at] == NOWHERE {
            self.slot_of[at] = self.vertices.len() as u32;
            self.vertices.push(vertex);
        }
        self.slot_of[at]
    }

    /// Has the vertices of the constraints from that on take part.
    fn enlist_from(&mut self, start: usize) {
        for number in start..self.graph.constraints.len() {
            let constraint = self.graph.constraints[number];
            let mut slots = [0; 4];
            for (slot, &vertex) in slots.iter_mut().zip(constraint.vertices()) {
                *slot = self.enlist(vertex);
            }
            self.graph.slots.push(slots);
        }
    }

    /// Gives constraints to contacts of layers: to these numbers, ascending, and among them all
    /// that had some. Their constraints are the first ones. The pushes of constraints and the
    /// motion of vertices are kept; all are looked at in the next round. Vertices that did not take
    /// part are to be [placed](Self::place).
    pub(crate) fn admit(&mut self, layers: impl IntoIterator<Item = (u32, Constraint)>) {
        let (had, graph) = (std::mem::take(&mut self.layers), &mut self.graph);
        let others = graph.constraints.split_off(had.len());
        let other_slots = graph.slots.split_off(had.len());
        graph.constraints.clear();
        graph.slots.clear();
        for (number, constraint) in layers {
            self.layers.push(number);
            self.graph.constraints.push(constraint);
        }
        self.enlist_from(0);
        let new = self.layers.len();
        self.graph.constraints.extend(others);
        self.graph.slots.extend(other_slots);
        // The places of each constraint that has pushed, before and now.
        let mut at = 0;
        let mut kept = Vec::new();
        let before = had.len() + self.graph.constraints.len() - new;
        for old in 0..before {
            let push = self.parts.iter().find_map(|part| part.push(old));
            let Some(push) = push.filter(|push| *push != Push::default()) else {
                continue;
            };
            match had.get(old) {
                Some(number) => {
                    at += self.layers[at..].partition_point(|layer| layer < number);
                    kept.push((at, push));
                }
                None => kept.push((old - had.len() + new, push)),
            }
        }
        self.link();
        for part in &mut self.parts {
            for &(constraint, push) in &kept {
                part.take_over(constraint, push);
            }
        }
    }

    /// The number of contacts of layers that have constraints.
    #[must_use]
    pub(crate) fn admitted(&self) -> usize {
        self.layers.len()
    }

    /// How many of them have numbers less than that.
    #[must_use]
    pub(crate) fn admitted_below(&self, number: usize) -> usize {
        self.layers
            .partition_point(|&layer| (layer as usize) < number)
    }

    /// Constraints and vertices, for sweeps.
    pub(crate) fn swept(&mut self) -> Swept<'_> {
        Swept {
            graph: &self.graph,
            vertices: &self.vertices,
            motions: &mut self.participants.motions,
            mobilities: &self.participants.mobilities,
            paths: &mut self.participants.kept.thresholds,
            team: &self.team,
        }
    }

    /// Takes over what sweeps have pushed.
    pub(crate) fn take_over(&mut self, pushes: impl Iterator<Item = (u32, Push)>) {
        for (constraint, push) in pushes {
            for part in &mut self.parts {
                part.take_over(constraint as usize, push);
            }
        }
        let paths = self
            .participants
            .kept
            .thresholds
            .iter()
            .map(|kept| kept.path);
        self.farthest = paths.fold(self.farthest, f64::max);
    }

    /// The pushes of constraints, with their numbers.
    pub(crate) fn pushes(&self) -> impl Iterator<Item = (u32, Push)> + '_ {
        (0..self.graph.constraints.len()).filter_map(|constraint| {
            let push = self.parts.iter().find_map(|part| part.push(constraint));
            push.map(|push| (constraint as u32, push))
        })
    }

    /// How far the velocity of a vertex of the rank's own has gone since constraints were cleared,
    /// at most, in m/s.
    #[must_use]
    pub(crate) fn own_farthest(&self) -> f64 {
        let own = |&(_, vertex): &(usize, &u32)| self.owned.contains(&(*vertex as usize));
        let own = self.vertices.iter().enumerate().filter(own);
        own.map(|(slot, _)| self.participants.kept.path(slot))
            .fold(0.0, f64::max)
    }

    /// How far the velocity of a vertex has gone since constraints were cleared, at most, in m/s.
    #[must_use]
    pub(crate) fn farthest(&self) -> f64 {
        self.farthest
    }

    /// Forgets all constraints but the first. Their vertices go on taking part.
    pub(crate) fn truncate(&mut self, constraints: usize) {
        self.graph.constraints.truncate(constraints);
        self.graph.slots.truncate(constraints);
    }

    /// Begins with the constraints that there are: nothing has pushed, and no vertex can be moved.
    /// All vertices are to be [placed](Self::place).
    pub(crate) fn begin(&mut self) {
        let count = self.vertices.len();
        let p = &mut self.participants;
        self.placed = p.motions.len().min(self.placed);
        p.motions.truncate(self.placed);
        p.motions.iter_mut().for_each(|motion| motion.load = 0.0);
        p.motions.resize(count, VertexMotion::default());
        p.mobilities.refill(count);
        self.link();
        self.round = Round::default();
    }

    /// Finds which constraints touch which vertices, and shares them out. Nothing has pushed.
    fn link(&mut self) {
        let count = self.vertices.len();
        let p = &mut self.participants;
        p.motions.resize(count, VertexMotion::default());
        p.mobilities.resize(count);
        self.graph.list_incident(count);
        let owned = &self.owned;
        let owns = |vertex: &u32| owned.contains(&(*vertex as usize));
        p.kept.begin(&self.graph, self.vertices.iter().map(owns));
        let constraints_of = (0..count).map(|slot| self.graph.constraints_of(slot).len() as u64);
        let shares = self.team.cut_weighted(constraints_of);
        self.take_shares(shares);
        let threads = self.shares.len();
        self.parts.resize_with(threads, GraphPart::default);
        self.woken.resize_with(threads + 1, Vec::new);
        self.woken.iter_mut().for_each(Vec::clear);
        let work = self.parts.iter_mut().zip(&self.shares);
        let graph = &self.graph;
        self.team
            .run(work, |(part, share)| part.begin(graph, share.clone()));
    }

    fn take_shares(&mut self, shares: Vec<Range<usize>>) {
        self.listed.clear();
        let listed = shares.iter().map(|share| self.graph.listed(share.clone()));
        self.listed.extend(listed);
        self.shares = shares;
    }

    /// The constraints.
    #[must_use]
    pub(crate) fn constraints(&self) -> &[Constraint] {
        &self.graph.constraints
    }

    /// The places of each constraint's vertices among those that take part.
    pub(crate) fn slots(&self) -> impl Iterator<Item = &[u32]> {
        (0..self.graph.constraints.len()).map(|constraint| self.graph.slots(constraint))
    }

    /// Vertices that take part, global numbers, as they first appear in constraints.
    #[must_use]
    pub(crate) fn vertices(&self) -> &[u32] {
        &self.vertices
    }

    /// Where a vertex is among those that take part.
    #[must_use]
    pub(crate) fn slot(&self, vertex: u32) -> Option<usize> {
        let slot = self.slot_of.get(vertex as usize).copied();
        slot.filter(|&slot| slot != NOWHERE).map(|s| s as usize)
    }

    /// Places a vertex at the start: velocity in m/s, and inverse mass times the projection onto
    /// free directions in 1/kg.
    pub(crate) fn place(&mut self, slot: usize, velocity: DVec3, mobility: DMat3) {
        let p = &mut self.participants;
        if slot < self.placed {
            // Its owner may have moved it in a last round, of which nobody else has heard.
            let way = (velocity - p.motions[slot].velocity).length();
            p.kept.lengthen(slot, way);
            self.farthest = self.farthest.max(p.kept.path(slot));
        }
        p.motions[slot].velocity = velocity;
        p.mobilities.set(slot, mobility);
    }

    /// Replaces the mobility (1/kg) of a vertex.
    pub(crate) fn set_mobility(&mut self, slot: usize, mobility: DMat3) {
        self.participants.mobilities.set(slot, mobility);
    }

    /// Velocity of a vertex in m/s.
    #[must_use]
    pub(crate) fn velocity(&self, slot: usize) -> DVec3 {
        self.participants.motions[slot].velocity
    }

    /// Mobility of a vertex in 1/kg.
    #[must_use]
    pub(crate) fn mobility(&self, slot: usize) -> DMat3 {
        self.participants.mobilities.matrix(slot)
    }

    /// Sum of the absolute weights of a vertex in the constraints that push. Right where the vertex
    /// is owned.
    #[must_use]
    pub(crate) fn load_of(&self, slot: usize) -> f64 {
        self.participants.motions[slot].load
    }

    /// Whether the velocity or load of a vertex changed since changes were last forgotten.
    #[must_use]
    pub(crate) fn has_changed(&self, slot: usize) -> bool {
        self.participants.kept.has_changed(slot)
    }

    /// Begins to note changes anew: other ranks have heard of them.
    pub(crate) fn forget_changes(&mut self) {
        self.participants.kept.forget_changes();
    }

    /// Takes what the owner of a vertex says of it: velocity in m/s and load.
    pub(crate) fn hear(&mut self, slot: usize, velocity: DVec3, load: f64) {
        let motion = &mut self.participants.motions[slot];
        let change = velocity - motion.velocity;
        *motion = VertexMotion { velocity, load };
        if let Some(heard) = self.woken.last_mut() {
            self.participants
                .kept
                .follow(&self.graph, slot, change, heard);
            self.farthest = self.farthest.max(self.participants.kept.path(slot));
        }
    }

    /// Notes that all vertices that take part have been placed.
    pub(crate) fn all_placed(&mut self) {
        self.placed = self.vertices.len();
    }

    /// Finds the constraints that will push first. Loads are right afterwards where the vertex is
    /// owned.
    pub(crate) fn survey(&mut self) {
        self.look(Constraint::survey);
    }

    /// One round: all constraints at once. Velocities and loads are right afterwards where the
    /// vertex is owned.
    ///
    /// Returns the largest change of its rate in m/s that a constraint asked for: how far the
    /// velocities before were from what constraints accept.
    pub(crate) fn round(&mut self) -> f64 {
        if self.round.number.is_multiple_of(SHARE_EVERY) {
            self.share_anew();
        }
        self.round.number += 1;
        let round = self.round;
        self.look(|constraint, movers, slots, push| constraint.relax(movers, slots, push, round));
        self.parts.iter().map(GraphPart::asked).fold(0.0, f64::max)
    }

    /// Lets all constraints gather their momentum anew from the next round on.
    pub(crate) fn begin_anew(&mut self) {
        self.round.since = self.round.number + 1;
    }

    /// Gives each thread vertices of about as many of the constraints that are to be looked at.
    fn share_anew(&mut self) {
        if self.parts.len() < 2 {
            return;
        }
        for part in &mut self.parts {
            self.woken
                .iter()
                .for_each(|constraints| part.wake(constraints));
        }
        self.woken.iter_mut().for_each(Vec::clear);
        let mut weights = vec![0; self.vertices.len()];
        for (part, share) in self.parts.iter().zip(&self.shares) {
            for constraint in part.active() {
                for &slot in self.graph.slots(constraint) {
                    weights[slot as usize] += u64::from(share.contains(&(slot as usize)));
                }
            }
        }
        let shares = self.team.cut_weighted(weights);
        self.take_shares(shares);
        share_anew(&mut self.parts, &self.graph, &self.shares);
    }

    /// Looks at the constraints that may do something, and moves the owned vertices by what they
    /// do.
    fn look(
        &mut self,
        look: impl Fn(&Constraint, Movers<'_>, &[u32], &mut Push) -> Outcome + Sync,
    ) {
        let looked_at: usize = self.parts.iter().map(GraphPart::looked_at).sum();
        let alone = Team::default();
        let team = match self.round.number {
            1.. if looked_at < FEWEST => &alone,
            _ => &self.team,
        };
        let (graph, woken, p) = (&self.graph, &self.woken, &mut self.participants);
        let shares = GraphShares {
            vertices: &self.shares,
            listed: &self.listed,
        };
        let movers = Movers {
            motions: &p.motions,
            mobilities: &p.mobilities,
        };
        let work = self.parts.iter_mut().zip(p.kept.cut(shares));
        team.run(work, |(part, keeping)| {
            woken.iter().for_each(|constraints| part.wake(constraints));
            part.look(graph, movers, keeping, &look);
        });
        self.woken.iter_mut().for_each(Vec::clear);
        let work = self.parts.iter_mut().zip(&mut self.woken);
        let work = work.zip(parts(&mut p.motions, &self.shares));
        team.run(work.zip(p.kept.cut(shares)), |(own, keeping)| {
            let ((part, woken), motions) = own;
            part.settle(graph, motions, keeping, woken);
        });
        let gone = self.parts.iter_mut().map(GraphPart::take_farthest);
        self.farthest = gone.fold(self.farthest, f64::max);
    }

    /// Flags of the constraints that pushed.
    pub(crate) fn pushing(&self) -> impl Iterator<Item = bool> + '_ {
        (0..self.graph.constraints.len()).map(|constraint| {
            let push = self.parts.iter().find_map(|part| part.push(constraint));
            push.is_some_and(|push| push.normal > 0.0)
        })
    }
}

#[cfg(test)]
mod tests;
