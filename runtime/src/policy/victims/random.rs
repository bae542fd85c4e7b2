//! Victims at random, one at a time [TB06 §4.2.3].

use super::draw::{Crowd, Generator};
use super::{Place, VictimRule, VictimState};
use crate::comm::Rank;

pub(super) struct Random;

impl VictimRule for Random {
    fn name(&self) -> &'static str {
        "random"
    }

    fn about(&self) -> &'static str {
        "any other rank, each as likely, one at a time"
    }

    fn start(&self, place: &Place<'_>) -> Box<dyn VictimState> {
        Box::new(Sequence::new(place))
    }
}

/// A rank's sequence of victims; other rules fall back on it.
#[derive(Clone, Debug)]
pub(super) struct Sequence {
    generator: Generator,
    others: Crowd,
}

impl Sequence {
    pub(super) fn new(place: &Place<'_>) -> Self {
        Self {
            generator: Generator::new(place.seed, place.me),
            others: Crowd::all_but(place.me, place.ranks),
        }
    }
}

impl VictimState for Sequence {
    fn next(&mut self, open: &[Rank]) -> Option<Rank> {
        if open.is_empty() {
            self.others.draw(&mut self.generator)
        } else {
            None
        }
    }
}
