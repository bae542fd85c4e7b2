//! Always the same interval [TB06 §4.2.3].

use std::time::Duration;

use super::Pace;

#[derive(Clone, Debug)]
pub(super) struct Fixed(pub(super) Duration);

impl Pace for Fixed {
    fn interval(&self) -> Duration {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::super::Interval;
    use super::*;

    #[test]
    fn a_fixed_interval_never_changes() {
        let interval = Duration::from_millis(10);
        let mut pace = Interval::Fixed(interval).start();
        pace.round_trip(Duration::from_secs(1));
        pace.piece_stolen();
        pace.piece_came_back();
        assert_eq!(pace.interval(), interval);
        assert_eq!(pace.clone().interval(), interval);
    }
}
