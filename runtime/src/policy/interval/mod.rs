//! How often a rank's tasks are split: the least time between two splits.
//!
//! Too often makes tasks too small to be worth a steal; too seldom starves thieves.

mod adaptive;
mod fixed;

use std::fmt;
use std::time::Duration;

/// Least time between two splits on a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interval {
    /// Always this. The 2006 paper has 10 ms, say [TB06 §4.2.3]; a steal takes microseconds.
    Fixed(Duration),
    /// An interval that adapts. It starts at 10 µs, and grows while nobody takes what is split off,
    /// and shrinks while thieves do. It is never shorter than a quarter of the time that a steal
    /// takes, and never longer than 10 ms.
    Adaptive,
}

impl Interval {
    /// The pace of one rank at the start of a scope.
    #[must_use]
    pub fn start(self) -> Box<dyn Pace> {
        match self {
            Self::Fixed(interval) => Box::new(fixed::Fixed(interval)),
            Self::Adaptive => Box::<adaptive::Adaptive>::default(),
        }
    }
}

/// The default is 50 µs, always.
impl Default for Interval {
    fn default() -> Self {
        Self::Fixed(Duration::from_micros(50))
    }
}

/// The pace at which one rank splits in a scope; it hears what comes of it.
pub trait Pace: ClonePace + Send + fmt::Debug {
    /// Returns the least time from a split to the next.
    fn interval(&self) -> Duration;

    /// Learns how long it took until a steal request of this rank was answered.
    fn round_trip(&mut self, took: Duration) {
        let _ = took;
    }

    /// Learns that a thief took a piece that was split off here.
    fn piece_stolen(&mut self) {}

    /// Learns that a piece that was split off here was run here: nobody wanted it.
    fn piece_came_back(&mut self) {}
}

/// A [`Pace`] that can be copied in its box: all that derive `Clone` can.
pub trait ClonePace {
    /// Makes a copy that goes on as this one would.
    fn boxed_clone(&self) -> Box<dyn Pace>;
}

impl<P: Pace + Clone + 'static> ClonePace for P {
    fn boxed_clone(&self) -> Box<dyn Pace> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn Pace> {
    fn clone(&self) -> Self {
        (**self).boxed_clone()
    }
}
