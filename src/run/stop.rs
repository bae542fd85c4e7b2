//! Ending a run early and in order: on a signal, or before the time that a queue allows is over.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use signal_hook::low_level::signal_name;

/// Asks a run to stop after its step, several ranks at the latest after the next one, with a
/// checkpoint. Clones ask the same run.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    /// The number of the signal that asks; 0 while none does.
    signal: Arc<AtomicUsize>,
    deadline: Option<Instant>,
}

impl Stop {
    /// One that also asks before `deadline`: when the longest step so far would no longer end in
    /// time, on several ranks two of them.
    #[must_use]
    pub fn before(deadline: Option<Instant>) -> Self {
        Self {
            signal: Arc::default(),
            deadline,
        }
    }

    /// The number that a signal handler sets to the signal's own, to ask.
    #[must_use]
    pub fn signal(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.signal)
    }

    /// The signal that has asked, if one has.
    #[must_use]
    pub fn cause(&self) -> Option<Cause> {
        match self.signal.load(Ordering::Relaxed) {
            0 => None,
            signal => Some(Cause::Signal(u32::try_from(signal).unwrap_or(u32::MAX))),
        }
    }

    /// The reason to stop, as this process sees it, if the work before it can stop takes up to
    /// `step`.
    pub(super) fn asked(&self, now: Instant, step: Duration) -> Option<Cause> {
        self.cause().or_else(|| {
            let left = self.deadline?.saturating_duration_since(now);
            (left <= step).then_some(Cause::Time)
        })
    }
}

/// The reason why a run stopped before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cause {
    /// The signal of this number was sent to a rank.
    Signal(u32),
    /// The time allowed was over.
    Time,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Signal(number) => match i32::try_from(number).ok().and_then(signal_name) {
                Some(name) => f.write_str(name),
                None => write!(f, "signal {number}"),
            },
            Self::Time => f.write_str("the time limit"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a moment to count from")]
    fn a_run_stops_while_the_next_step_would_still_end_in_time() {
        let start = Instant::now();
        let second = Duration::from_secs(1);
        let stop = Stop::before(Some(start + 10 * second));
        assert_eq!(stop.asked(start + 7 * second, 2 * second), None);
        assert_eq!(
            stop.asked(start + 8 * second, 2 * second),
            Some(Cause::Time)
        );
        assert_eq!(stop.asked(start + 99 * second, second), Some(Cause::Time));
        assert_eq!(Stop::default().asked(start + 99 * second, second), None);
        stop.clone().signal().store(15, Ordering::Relaxed);
        let cause = stop.asked(start, second).unwrap();
        assert_eq!(cause.to_string(), "SIGTERM");
    }
}
