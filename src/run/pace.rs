//! What rank 0 decides after each step for all ranks: whether to stop, whether to write a checkpoint or a frame.
//!
//! Clocks and signals differ between ranks, and a checkpoint is collective: so one rank decides. What it
//! decides does not touch the trajectory.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::stop::{Cause, Stop};
use crate::scene::Output;

/// What all ranks do after a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Decision {
    /// Stop before the end, and why.
    pub(super) stop: Option<Cause>,
    /// Gather the state and write it.
    pub(super) checkpoint: bool,
    /// Write a frame.
    pub(super) frame: bool,
}

/// Rank 0's clock over the steps.
#[derive(Debug)]
pub(super) struct Pace {
    stop: Stop,
    /// Wall time between checkpoints, if there are any.
    interval: Option<Duration>,
    last_step: Instant,
    last_checkpoint: Instant,
    longest_step: Duration,
}

impl Pace {
    pub(super) fn new(output: &Output, stop: &Stop, now: Instant) -> Self {
        let interval = Duration::try_from_secs_f64(output.checkpoint_interval);
        Self {
            stop: stop.clone(),
            interval: output
                .checkpoints
                .then_some(interval.unwrap_or(Duration::MAX)),
            last_step: now,
            last_checkpoint: now,
            longest_step: Duration::ZERO,
        }
    }

    /// Decides on stopping and checkpoints, after a step that ended `now`; `asked` is what other ranks have been asked.
    pub(super) fn decide(&mut self, now: Instant, asked: Option<Cause>, is_last: bool) -> Decision {
        let step = now.saturating_duration_since(self.last_step);
        self.last_step = now;
        self.longest_step = self.longest_step.max(step);
        let own = self.stop.asked(now, self.longest_step);
        let stop = own.or(asked).filter(|_| !is_last);
        let since = now.saturating_duration_since(self.last_checkpoint);
        // One who asks to stop wants to go on later, whatever the scene says of checkpoints.
        let checkpoint = stop.is_some()
            || self
                .interval
                .is_some_and(|interval| is_last || since >= interval);
        if checkpoint {
            self.last_checkpoint = now;
        }
        Decision {
            stop,
            checkpoint,
            frame: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[expect(clippy::disallowed_methods, reason = "a moment to count from")]
    fn pace(checkpoints: bool, deadline: Option<u32>) -> (Pace, Instant) {
        let now = Instant::now();
        let output = Output {
            checkpoints,
            checkpoint_interval: 10.0,
            ..Output::default()
        };
        let stop = Stop::before(deadline.map(|seconds| now + seconds * SECOND));
        (Pace::new(&output, &stop, now), now)
    }

    #[test]
    fn checkpoints_come_at_intervals_and_at_the_end() {
        let (mut pace, now) = pace(true, None);
        let due: Vec<bool> = (1..=6)
            .map(|k| pace.decide(now + 4 * k * SECOND, None, k == 6).checkpoint)
            .collect();
        assert_eq!(due, [false, false, true, false, false, true]);
    }

    #[test]
    fn who_stops_early_gets_a_checkpoint_and_who_is_done_has_not_stopped() {
        let (mut pace, now) = pace(false, Some(10));
        assert_eq!(
            pace.decide(now + 3 * SECOND, None, false),
            Decision::default()
        );
        let cause = Some(Cause::Signal(15));
        let stopped = pace.decide(now + 4 * SECOND, cause, false);
        assert_eq!((stopped.stop, stopped.checkpoint), (cause, true));
        assert_eq!(
            pace.decide(now + 5 * SECOND, cause, true),
            Decision::default()
        );
        // The longest step took 3 s.
        let late = pace.decide(now + 7 * SECOND, None, false);
        assert_eq!((late.stop, late.checkpoint), (Some(Cause::Time), true));
    }
}
