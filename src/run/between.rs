//! What ranks do between steps, and for how long: the phase `other`, taken apart.
//!
//! Rank 0 writes, and but for the history the others wait for it, so each has all of the time.

use std::time::Duration;

use weft_runtime::comm::Comm;

/// What is done between steps, in the order of [`Between`].
pub(super) const BETWEEN: [&str; 4] = ["pictures", "frames", "checkpoints", "history"];

/// Something that is done between steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(super) enum Between {
    /// Pictures are drawn, by all ranks, and written.
    Pictures,
    /// Frames are written, and looked at if that was asked for.
    Frames,
    /// The state is gathered and written.
    Checkpoints,
    /// Ranks report to rank 0, which writes a line of the history for the step before.
    History,
}

/// A rank's time for each of [`BETWEEN`].
#[derive(Debug)]
pub(super) struct Watch<'a> {
    times: &'a mut [Duration; BETWEEN.len()],
    since: Duration,
}

impl<'a> Watch<'a> {
    /// Begins to measure, and adds to `times`.
    pub(super) fn start(times: &'a mut [Duration; BETWEEN.len()], comm: &dyn Comm) -> Self {
        Self {
            times,
            since: comm.now(),
        }
    }

    /// The time since it was started, or since the last lap, was for this.
    pub(super) fn lap(&mut self, what: Between, comm: &dyn Comm) {
        let now = comm.now();
        self.times[what as usize] += now.saturating_sub(self.since);
        self.since = now;
    }
}
