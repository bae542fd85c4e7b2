//! Cluster-aware random stealing [van Nieuwpoort, Kielmann, Bal 2001]: while a request to another
//! node is under way, the rank goes on asking on its own, where answers come sooner.
//!
//! At most one request to this node and one to another is open. Ranks that have no neighbours on
//! their node, or only such, draw the same victims as at random.
//!
//! * [van Nieuwpoort et al. 2001] Efficient load balancing for wide-area divide-and-conquer
//!   applications.

use super::draw::{Crowd, Generator};
use super::{Place, VictimRule, VictimState};
use crate::comm::Rank;

pub(super) struct Hierarchical;

impl VictimRule for Hierarchical {
    fn name(&self) -> &'static str {
        "hierarchical"
    }

    fn about(&self) -> &'static str {
        "at random on the same node, and at the same time at random on another"
    }

    fn start(&self, place: &Place<'_>) -> Box<dyn VictimState> {
        let node = (place.node_of)(place.me);
        let (mut near, mut far) = (Crowd::default(), Crowd::default());
        for rank in (0..place.ranks).map(Rank).filter(|&r| r != place.me) {
            if (place.node_of)(rank) == node {
                near.push(rank);
            } else {
                far.push(rank);
            }
        }
        Box::new(Levels {
            generator: Generator::new(place.seed, place.me),
            near,
            far,
            far_is_next: false,
        })
    }
}

#[derive(Clone, Debug)]
struct Levels {
    generator: Generator,
    /// Ranks of this node, and all others.
    near: Crowd,
    far: Crowd,
    /// Whether the farther ranks are next: near and far take turns where both could be asked.
    far_is_next: bool,
}

impl VictimState for Levels {
    fn next(&mut self, open: &[Rank]) -> Option<Rank> {
        let is_open = |far: bool| open.iter().any(|&rank| self.near.contains(rank) != far);
        for far in [self.far_is_next, !self.far_is_next] {
            if is_open(far) {
                continue;
            }
            let crowd = if far { &self.far } else { &self.near };
            if let Some(victim) = crowd.draw(&mut self.generator) {
                self.far_is_next = !far;
                return Some(victim);
            }
        }
        None
    }
}
