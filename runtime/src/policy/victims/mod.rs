//! Victim rules: which rank an idle rank asks for tasks.
//!
//! A rule makes a state for each rank of a scope; the scheduler asks it for the next victim and
//! tells it what came of each request. It has no clock: time-outs are the scheduler's.

mod draw;
mod hierarchical;
mod last;
mod lifelines;
mod random;

use std::fmt;

use super::rule::value_of_a_rule;
use crate::comm::Rank;

/// A rule for victims as a value; two are equal if their names are.
#[derive(Clone, Copy)]
pub struct Victims(pub &'static dyn VictimRule);

/// Rules for victims, and what they are called.
pub const VICTIMS: &[Victims] = &[
    Victims::RANDOM,
    Victims::LAST,
    Victims::HIERARCHICAL,
    Victims::LIFELINES,
];

/// A rule that chooses the rank to ask for tasks.
pub trait VictimRule: Sync {
    /// Its name, in options and reports.
    fn name(&self) -> &'static str;

    /// A line about it.
    fn about(&self) -> &'static str;

    /// The state of one rank at the start of a scope of at least two ranks.
    ///
    /// Thousands of ranks may share a process: it should not hold something for each of the others.
    fn start(&self, place: &Place<'_>) -> Box<dyn VictimState>;
}

/// The place of a rank among the others.
pub struct Place<'a> {
    /// The rank that asks.
    pub me: Rank,
    /// How many ranks there are, at least two.
    pub ranks: u32,
    /// Seed of the scope; each rank is to draw its own sequence from it.
    pub seed: u64,
    /// The number of the node that a rank runs on.
    pub node_of: &'a dyn Fn(Rank) -> u32,
}

impl fmt::Debug for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Place")
            .field("me", &self.me)
            .field("ranks", &self.ranks)
            .field("seed", &self.seed)
            .finish_non_exhaustive()
    }
}

/// The choice of victims of one rank in a scope.
///
/// It derives `Clone`: a copy goes on as the original would.
pub trait VictimState: CloneVictims + Send + fmt::Debug {
    /// The rank to ask next, while these have not answered and have not timed out; `None` to wait
    /// for an answer first. It is never this rank.
    fn next(&mut self, open: &[Rank]) -> Option<Rank>;

    /// Learns that a request was answered, in time or late.
    fn answered(&mut self, from: Rank, with_tasks: bool) {
        let _ = (from, with_tasks);
    }

    /// Ranks to register with after [`Self::refusals_before_lifelines`], instead of asking on: they
    /// send tasks once they have some. If there are none, it asks on.
    fn lifelines(&self) -> &[Rank] {
        &[]
    }

    /// Refusals in a row after which it registers with its lifelines.
    fn refusals_before_lifelines(&self) -> u32 {
        u32::MAX
    }
}

/// A [`VictimState`] that can be copied in its box: all that derive `Clone` can.
pub trait CloneVictims {
    /// Makes a copy that goes on as this one would.
    fn boxed_clone(&self) -> Box<dyn VictimState>;
}

impl<V: VictimState + Clone + 'static> CloneVictims for V {
    fn boxed_clone(&self) -> Box<dyn VictimState> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn VictimState> {
    fn clone(&self) -> Self {
        (**self).boxed_clone()
    }
}

impl Victims {
    /// Any other rank, each as likely, one at a time [TB06 §4.2.3].
    pub const RANDOM: Self = Self(&random::Random);
    /// The rank that had tasks the last time, then at random.
    pub const LAST: Self = Self(&last::Last);
    /// A random rank on the same node, and at the same time a random one elsewhere.
    pub const HIERARCHICAL: Self = Self(&hierarchical::Hierarchical);
    /// A random rank, and after a few refusals a neighbour in a hypercube that gets work.
    pub const LIFELINES: Self = Self(&lifelines::Lifelines);

    /// The state of one rank at the start of a scope of at least two ranks.
    #[must_use]
    pub fn start(self, place: &Place<'_>) -> Box<dyn VictimState> {
        self.0.start(place)
    }
}

/// [`Victims::RANDOM`].
impl Default for Victims {
    fn default() -> Self {
        Self::RANDOM
    }
}

value_of_a_rule!(Victims, VICTIMS);

#[cfg(test)]
mod tests;
