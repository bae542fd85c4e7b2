//! Lifelines [Saraswat et al. 2011]: after a few random victims that had nothing, a rank registers
//! with its neighbours in a hypercube and goes quiet; a neighbour that gets work sends it some.
//!
//! The neighbours of rank r are r xor 2^k, as far as they exist. A chain of neighbours leads from
//! every rank to every other, as clearing the highest bit leads to rank 0.
//!
//! * [Saraswat et al. 2011] Lifeline-based global load balancing.

use super::random::Sequence;
use super::{Place, VictimRule, VictimState};
use crate::comm::Rank;

/// Random victims that are tried first.
const TRIES: u32 = 2;

pub(super) struct Lifelines;

impl VictimRule for Lifelines {
    fn name(&self) -> &'static str {
        "lifelines"
    }

    fn about(&self) -> &'static str {
        "at random; after two refusals a neighbour in a hypercube sends some when it gets work"
    }

    fn start(&self, place: &Place<'_>) -> Box<dyn VictimState> {
        let neighbours = (0..u32::BITS).map(|bit| place.me.0 ^ (1 << bit));
        Box::new(Quiet {
            others: Sequence::new(place),
            neighbours: neighbours.filter(|&r| r < place.ranks).map(Rank).collect(),
        })
    }
}

#[derive(Clone, Debug)]
struct Quiet {
    others: Sequence,
    neighbours: Vec<Rank>,
}

impl VictimState for Quiet {
    fn next(&mut self, open: &[Rank]) -> Option<Rank> {
        self.others.next(open)
    }

    fn answered(&mut self, from: Rank, with_tasks: bool) {
        self.others.answered(from, with_tasks);
    }

    fn lifelines(&self) -> &[Rank] {
        &self.neighbours
    }

    fn refusals_before_lifelines(&self) -> u32 {
        TRIES
    }
}
