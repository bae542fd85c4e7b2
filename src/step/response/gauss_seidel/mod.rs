//! Impulses one after the other: projected Gauss-Seidel in an order that is one of the set of
//! constraints alone.
//!
//! Constraints that share a vertex which can move are satisfied one after the other, each from the
//! velocities that the ones before have left [SSIF09 §7]. Which is first decides the result, so the
//! order may depend on nothing but the constraints themselves: it goes by their kind, vertices and
//! faces before edges, then by [colour](colours), then by their number. No two constraints of a
//! colour share a vertex that can move, so that a colour has no order within, and threads share it.
//!
//! Every rank that owns a vertex of a constraint computes it, from the same velocities to the same
//! bits. A velocity travels only where its last change was made by a constraint that its reader
//! does not compute ([`exchange`]). Each such impulse keeps momentum; no mass is split.
//!
//! * \[SSIF09\] Selle, Su, Irving, Fedkiw: Robust high-resolution cloth using parallelism,
//!   history-based collisions, and accurate friction.

pub(super) mod colours;
pub(super) mod exchange;
#[cfg(test)]
mod tests;

use std::ops::Range;

use glam::DVec3;
use serde::{Deserialize, Serialize};
use weft_runtime::comm::{Comm, CommError};

use self::colours::{Colours, ToColour};
use self::exchange::SweepExchange;
use super::constraint::{Constraint, Movers, Push, VertexMotion};
use super::constraint_graph::ConstraintGraph;
use super::mobilities::Mobilities;
use super::wake_up::WakeUpThreshold;
use crate::heap_bytes::{counts_heap, owns_no_heap};
use crate::team::Team;

/// Constraints of a colour that are worth sharing.
const FEWEST: usize = 512;

/// The constraints and vertices of a pass, as sweeps see them.
#[derive(Debug)]
pub(crate) struct Swept<'a> {
    pub(crate) graph: &'a ConstraintGraph,
    /// The global numbers of the vertices that take part.
    pub(crate) vertices: &'a [u32],
    pub(crate) motions: &'a mut [VertexMotion],
    pub(crate) mobilities: &'a Mobilities,
    /// How far their velocities have gone.
    pub(crate) paths: &'a mut [WakeUpThreshold],
    /// The threads that share the work.
    pub(crate) team: &'a Team,
}

/// The owner of each vertex that takes part.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owners<'a> {
    pub(crate) me: usize,
    pub(crate) ranks: usize,
    /// The rank that owns each vertex that takes part.
    pub(crate) of: &'a [u32],
}

/// Constraints that are satisfied without regard to each other.
#[derive(Clone, Debug)]
struct Stage {
    /// The kind and the colour.
    key: u32,
    /// The places of its constraints in the order.
    places: Range<usize>,
}

owns_no_heap!(Stage);

/// The sweeps of a pass: constraints in their order.
#[derive(Debug, Default)]
pub(crate) struct Sweeps {
    order: Vec<u32>,
    stages: Vec<Stage>,
    /// The sums of the impulses of the constraints, in their order.
    pushes: Vec<Push>,
    /// The results of a stage: impulses in kg m/s, and the changes of rate that were asked for in
    /// m/s.
    outcomes: Vec<(DVec3, f64)>,
    exchange: SweepExchange,
    effort: Effort,
}

counts_heap!(Sweeps: order, stages, pushes, outcomes, exchange; without effort);

/// The work of sweeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Effort {
    /// The largest number of kinds and colours into which the constraints of the rank fell.
    pub colours: u32,
    /// The rounds of messages by which ranks agreed on colours, the same on all ranks.
    pub colouring_rounds: u32,
    /// The messages that the rank sent: for colours, plans, and velocities between colours.
    pub messages: u64,
}

impl Effort {
    /// Adds the work of other sweeps.
    pub(crate) fn add(&mut self, other: Self) {
        self.colours = self.colours.max(other.colours);
        self.colouring_rounds += other.colouring_rounds;
        self.messages += other.messages;
    }
}

impl Sweeps {
    /// The sums of the impulses of the constraints, each with the number of its constraint.
    pub(crate) fn pushes(&self) -> impl Iterator<Item = (u32, Push)> + '_ {
        self.order.iter().copied().zip(self.pushes.iter().copied())
    }

    /// The work since this was asked last.
    pub(crate) fn take_effort(&mut self) -> Effort {
        std::mem::take(&mut self.effort)
    }

    /// Forgets what has pushed: another pass begins.
    pub(crate) fn forget_pushes(&mut self) {
        self.pushes.fill(Push::default());
    }

    /// Colours the constraints, whose kinds are these runs of numbers, and plans the messages.
    /// `pushed` are constraints that have pushed already. Collective.
    pub(crate) fn begin(
        &mut self,
        comm: &mut dyn Comm,
        swept: &Swept<'_>,
        kinds: &[Range<usize>],
        owners: Owners<'_>,
        pushed: impl IntoIterator<Item = (u32, Push)>,
    ) -> Result<(), CommError> {
        let Swept {
            graph,
            vertices,
            mobilities,
            ..
        } = *swept;
        let moves: Vec<bool> = (0..mobilities.len())
            .map(|slot| mobilities.moves(slot))
            .collect();
        let to_colour = ToColour {
            graph,
            vertices,
            moves: &moves,
            kinds,
            owners,
        };
        let Colours {
            of,
            rounds,
            messages,
        } = colours::find(comm, &to_colour)?;
        self.effort.colouring_rounds += rounds;
        self.effort.messages += messages;
        let key = |constraint: &u32| of[*constraint as usize];
        self.order.clear();
        self.order.extend(0..graph.constraints.len() as u32);
        self.order.sort_by_key(key);
        self.stages.clear();
        let mut start = 0;
        for run in self.order.chunk_by(|a, b| key(a) == key(b)) {
            let places = start..start + run.len();
            start = places.end;
            self.stages.push(Stage {
                key: key(&run[0]),
                places,
            });
        }
        self.effort.colours = self.effort.colours.max(self.stages.len() as u32);
        let mut by_number = vec![Push::default(); graph.constraints.len()];
        for (constraint, push) in pushed {
            by_number[constraint as usize] = push;
        }
        self.pushes.clear();
        let pushes = self.order.iter().map(|&c| by_number[c as usize]);
        self.pushes.extend(pushes);
        self.exchange = SweepExchange::plan(comm, &to_colour, &of)?;
        self.effort.messages += self.exchange.planned();
        Ok(())
    }

    /// Satisfies all constraints once, in their order. Collective.
    ///
    /// Returns the largest change of its rate in m/s that a constraint asked for.
    pub(crate) fn sweep(
        &mut self,
        comm: &mut dyn Comm,
        swept: &mut Swept<'_>,
    ) -> Result<f64, CommError> {
        self.sweep_by(comm, swept, |_, constraint, movers, slots, push| {
            constraint.satisfy(movers, slots, push)
        })
    }

    /// Goes through all constraints once, in their order, with what a constraint of such a number
    /// adds to its impulse (kg m/s), and the change of its rate in m/s that it asks for. Returns
    /// the largest of the latter. Collective.
    pub(crate) fn sweep_by(
        &mut self,
        comm: &mut dyn Comm,
        swept: &mut Swept<'_>,
        satisfy: impl Fn(usize, &Constraint, Movers<'_>, &[u32], &mut Push) -> (DVec3, f64) + Sync,
    ) -> Result<f64, CommError> {
        let mut worst = 0.0_f64;
        let mut next = 0;
        while let Some(key) = self.exchange.next(next, &self.stages) {
            self.effort.messages += self.exchange.pass(comm, key, swept)?;
            if self.stages.get(next).is_some_and(|stage| stage.key == key) {
                worst = worst.max(self.satisfy(next, swept, &satisfy));
                next += 1;
            }
        }
        self.exchange.rewind();
        Ok(worst)
    }

    /// Satisfies the constraints of a stage.
    fn satisfy(
        &mut self,
        stage: usize,
        swept: &mut Swept<'_>,
        satisfy: &(impl Fn(usize, &Constraint, Movers<'_>, &[u32], &mut Push) -> (DVec3, f64) + Sync),
    ) -> f64 {
        let places = self.stages[stage].places.clone();
        let order = &self.order[places.clone()];
        let pushes = &mut self.pushes[places];
        self.outcomes
            .resize(order.len().max(self.outcomes.len()), (DVec3::ZERO, 0.0));
        let outcomes = &mut self.outcomes[..order.len()];
        let (graph, mobilities) = (swept.graph, swept.mobilities);
        let movers = Movers {
            motions: &*swept.motions,
            mobilities,
        };
        let threads = swept.team.threads().min(order.len().div_ceil(FEWEST));
        let chunk = order.len().div_ceil(threads.max(1)).max(1);
        let work = order.chunks(chunk).zip(pushes.chunks_mut(chunk));
        swept.team.run(
            work.zip(outcomes.chunks_mut(chunk)),
            |((order, pushes), outcomes)| {
                for ((&constraint, push), outcome) in order.iter().zip(pushes).zip(outcomes) {
                    let number = constraint as usize;
                    let constraint: &Constraint = &graph.constraints[number];
                    *outcome = satisfy(number, constraint, movers, graph.slots(number), push);
                }
            },
        );
        let mut worst = 0.0_f64;
        for (&constraint, &(impulse, asked)) in order.iter().zip(&*outcomes) {
            if impulse == DVec3::ZERO {
                continue;
            }
            worst = worst.max(asked);
            let number = constraint as usize;
            for (&slot, w) in graph
                .slots(number)
                .iter()
                .zip(&graph.constraints[number].weights)
            {
                let slot = slot as usize;
                let change = mobilities.times(slot, impulse * *w);
                swept.motions[slot].velocity += change;
                swept.paths[slot].path += change.length();
            }
        }
        worst
    }
}
