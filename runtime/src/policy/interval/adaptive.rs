//! An interval that follows demand: halved when a piece is stolen, doubled when one comes back
//! unwanted.
//!
//! It has no parameter to choose: what is too short depends on what a steal costs, and that is
//! measured.

use std::time::Duration;

use super::Pace;

/// The interval before anything is known.
const FIRST: Duration = Duration::from_micros(10);
/// Shorter, splits would cost more than the work they move, even within a node.
const SHORTEST: Duration = Duration::from_micros(1);
/// Longer, a thief that comes late to a phase would wait for most of it.
const LONGEST: Duration = Duration::from_millis(10);
/// The number of splits that may come while a steal is under way: several thieves can be on theirs.
const SPLITS_PER_ROUND_TRIP: u32 = 4;
/// A new round trip counts for one part in this many of the mean.
const MEMORY: u32 = 8;
/// Longer round trips are taken for this: they say nothing about the network.
const LONGEST_ROUND_TRIP: Duration = Duration::from_secs(1);

#[derive(Clone, Debug)]
pub(super) struct Adaptive {
    interval: Duration,
    /// Mean of the latest round trips, once there was one.
    round_trip: Option<Duration>,
}

impl Default for Adaptive {
    fn default() -> Self {
        Self {
            interval: FIRST,
            round_trip: None,
        }
    }
}

impl Pace for Adaptive {
    fn interval(&self) -> Duration {
        let round_trip = self.round_trip.unwrap_or_default();
        let shortest = (round_trip / SPLITS_PER_ROUND_TRIP).clamp(SHORTEST, LONGEST);
        self.interval.clamp(shortest, LONGEST)
    }

    fn round_trip(&mut self, took: Duration) {
        let took = took.min(LONGEST_ROUND_TRIP);
        let mean = self.round_trip.unwrap_or(took);
        self.round_trip = Some((mean * (MEMORY - 1) + took) / MEMORY);
    }

    fn piece_stolen(&mut self) {
        self.interval = self.interval() / 2;
    }

    fn piece_came_back(&mut self) {
        self.interval = self.interval() * 2;
    }
}

#[cfg(test)]
mod tests {
    use super::super::Interval;
    use super::*;

    fn us(n: u64) -> Duration {
        Duration::from_micros(n)
    }

    #[test]
    fn an_adaptive_interval_follows_demand_within_bounds() {
        let mut pace = Interval::Adaptive.start();
        assert_eq!(pace.interval(), us(10));
        pace.piece_came_back();
        assert_eq!(pace.interval(), us(20));
        (0..50).for_each(|_| pace.piece_came_back());
        assert_eq!(pace.interval(), LONGEST);
        pace.piece_stolen();
        assert_eq!(pace.interval(), LONGEST / 2);
        (0..50).for_each(|_| pace.piece_stolen());
        assert_eq!(pace.interval(), SHORTEST);
        // It is not stuck at a bound.
        pace.piece_came_back();
        assert_eq!(pace.interval(), us(2));
    }

    #[test]
    fn an_adaptive_interval_is_at_least_a_quarter_of_a_round_trip() {
        let mut pace = Interval::Adaptive.start();
        pace.round_trip(us(400));
        assert_eq!(pace.interval(), us(100));
        pace.piece_stolen();
        assert_eq!(pace.interval(), us(100));
        pace.piece_came_back();
        assert_eq!(pace.interval(), us(200));
        // One that is late moves the mean by an eighth: to 450 µs.
        (0..50).for_each(|_| pace.piece_stolen());
        pace.round_trip(us(800));
        assert_eq!(pace.interval(), us(450) / 4);
        // The mean forgets, and no round trip is too long.
        (0..100).for_each(|_| pace.round_trip(us(8)));
        assert_eq!(pace.interval(), us(50));
        pace.round_trip(Duration::MAX);
        assert_eq!(pace.interval(), LONGEST);
    }

    #[test]
    fn a_copy_goes_on_alone() {
        let mut pace = Interval::Adaptive.start();
        let copy = pace.clone();
        pace.piece_came_back();
        assert_eq!((pace.interval(), copy.interval()), (us(20), us(10)));
    }
}
