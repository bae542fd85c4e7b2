//! The decision of all ranks after a step: whether to stop, whether to write a checkpoint or a
//! frame.
//!
//! Clocks and signals differ between ranks, and a checkpoint is collective: so rank 0 decides, and
//! others say if they have been asked to stop. The decision does not touch the trajectory. Several
//! ranks hear of it within the step ([`Simulation::say`]), and so it is decided before that begins:
//! if they told each other afterwards, all would wait for it after every step.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::stop::{Cause, Stop};
use crate::scene::Output;
#[cfg(doc)]
use crate::step::Simulation;

/// The decision of all ranks after a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Decision {
    /// Stop before the end, and why.
    pub(super) stop: Option<Cause>,
    /// Gather the state and write it.
    pub(super) checkpoint: bool,
    /// Write a frame.
    pub(super) frame: bool,
}

impl Decision {
    /// Judges what rank 0 has decided and others have been asked: after the last step nobody stops
    /// early.
    pub(super) fn of_all(said: &[Self], is_last: bool) -> Self {
        let [decided, others @ ..] = said else {
            return Self::default();
        };
        let asked = others.iter().find_map(|other| other.stop);
        match asked.filter(|_| decided.stop.is_none() && !is_last) {
            Some(cause) => Self::stopping(cause),
            None => *decided,
        }
    }

    /// A run that stops early is in a hurry, and the frame is not lost: it is due when the run goes
    /// on. And they want to go on later, whatever the scene says of checkpoints.
    fn stopping(cause: Cause) -> Self {
        Self {
            stop: Some(cause),
            checkpoint: true,
            frame: false,
        }
    }
}

/// The end of a step as it is known before the step begins.
#[derive(Clone, Copy, Debug)]
pub(super) struct End {
    pub(super) is_last: bool,
    /// Whether a frame is due.
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

    /// Decides for the end of a step, `now` being the end of the one `ahead` steps before it.
    pub(super) fn decide(&mut self, now: Instant, ahead: u32, end: End) -> Decision {
        let End { is_last, frame } = end;
        let step = now.saturating_duration_since(self.last_step);
        self.last_step = now;
        self.longest_step = self.longest_step.max(step);
        let asked = self.stop.asked(now, (1 + ahead) * self.longest_step);
        if let Some(cause) = asked.filter(|_| !is_last) {
            return Decision::stopping(cause);
        }
        let since = now.saturating_duration_since(self.last_checkpoint);
        let checkpoint = self
            .interval
            .is_some_and(|interval| is_last || since >= interval);
        if checkpoint {
            self.last_checkpoint = now;
        }
        Decision {
            stop: None,
            checkpoint,
            frame,
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

    fn end(is_last: bool, frame: bool) -> End {
        End { is_last, frame }
    }

    #[test]
    fn checkpoints_come_at_intervals_and_at_the_end() {
        let (mut pace, now) = pace(true, None);
        let due: Vec<bool> = (1..=6)
            .map(|k| {
                let end = end(k == 6, false);
                pace.decide(now + 4 * k * SECOND, 0, end).checkpoint
            })
            .collect();
        assert_eq!(due, [false, false, true, false, false, true]);
    }

    #[test]
    fn a_run_that_stops_early_gets_a_checkpoint_and_a_finished_one_has_not_stopped() {
        let (mut pace, now) = pace(false, Some(10));
        let frame = Decision {
            frame: true,
            ..Decision::default()
        };
        assert_eq!(pace.decide(now + 3 * SECOND, 0, end(false, true)), frame);
        // The longest step took 3 s.
        let late = pace.decide(now + 7 * SECOND, 0, end(false, true));
        assert_eq!(late, Decision::stopping(Cause::Time));
        assert_eq!(pace.decide(now + 8 * SECOND, 0, end(true, true)), frame);
    }

    #[test]
    fn a_decision_before_a_step_leaves_time_for_the_step() {
        let (mut pace, now) = pace(false, Some(10));
        let goes_on = Decision::default();
        assert_eq!(pace.decide(now + 3 * SECOND, 1, end(false, false)), goes_on);
        assert_eq!(
            pace.decide(now + 5 * SECOND, 1, end(false, false)).stop,
            Some(Cause::Time)
        );
    }

    #[test]
    fn any_rank_may_be_asked_but_not_after_the_last_step() {
        let frame = Decision {
            frame: true,
            ..Decision::default()
        };
        let asked = |number| Decision {
            stop: Some(Cause::Signal(number)),
            ..Decision::default()
        };
        let said = [frame, Decision::default(), asked(15), asked(2)];
        let stopping = Decision::stopping(Cause::Signal(15));
        assert_eq!(Decision::of_all(&said, false), stopping);
        assert_eq!(Decision::of_all(&said, true), frame);
        assert_eq!(Decision::of_all(&said[..2], false), frame);
        let decided = Decision::stopping(Cause::Time);
        assert_eq!(Decision::of_all(&[decided, asked(15)], false), decided);
    }
}
