//! Timers of the outputs between steps: the phase `other`, taken apart.
//!
//! Rank 0 writes. The others wait for it, but for the history, so each of them has all of the time.

use std::time::Duration;

use weft_runtime::comm::Comm;

/// The names of the outputs, in the order of [`OutputKind`].
pub(super) const OUTPUTS: [&str; 4] = ["pictures", "frames", "checkpoints", "history"];

/// A kind of output that is made between steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(super) enum OutputKind {
    /// Pictures are drawn, by all ranks, and written.
    Pictures,
    /// Frames are written, and audited if that was asked for.
    Frames,
    /// The state is gathered and written.
    Checkpoints,
    /// Ranks report to rank 0, which writes a line of the history for the step before.
    History,
}

/// A rank's timers of the [`OUTPUTS`].
#[derive(Debug)]
pub(super) struct Timers<'a> {
    times: &'a mut [Duration; OUTPUTS.len()],
    since: Duration,
}

impl<'a> Timers<'a> {
    /// Begins to measure. Laps are added to `times`.
    pub(super) fn start(times: &'a mut [Duration; OUTPUTS.len()], comm: &dyn Comm) -> Self {
        Self {
            times,
            since: comm.now(),
        }
    }

    /// Adds the time since the start, or since the last lap, to that of an output.
    pub(super) fn lap(&mut self, output: OutputKind, comm: &dyn Comm) {
        let now = comm.now();
        self.times[output as usize] += now.saturating_sub(self.since);
        self.since = now;
    }
}
