//! The policy of the 2006 paper.

use std::time::Duration;

use super::{Interval, Policy, Split, Victims};

/// The oldest entry [TB06 §4.2.2], whenever the pool is low but at most every 10 ms, victims at
/// random [TB06 §4.2.3]. How low is low, and how long a thief waits, the paper leaves open.
///
/// That starves more than a dozen ranks: a steal takes microseconds.
pub(super) const PAPER: Policy = Policy {
    steal: true,
    split: Split::OLDEST,
    victims: Victims::RANDOM,
    interval: Interval::Fixed(Duration::from_millis(10)),
    low_water: 2,
    split_on_request: false,
    steal_timeout: Duration::from_millis(1),
    forecast: false,
    moves_patches: false,
};
