//! The notes of a rank: its trace, and the report that it prints when nothing moves.

use std::io::{self, Write as _};
use std::time::Duration;

use super::Scope;
use crate::payload::Payload;
use crate::trace::{Detail, What};
use crate::wire;

/// A rank that reads no messages for so long because of a task is worth a note in its trace.
const DEAF: Duration = Duration::from_millis(10);
/// Least time between two notes of how many tasks are in the pool.
const POOL_NOTES: Duration = Duration::from_micros(50);

/// The attention of a rank that records: whether it read messages, and what it ran meanwhile.
#[derive(Default)]
pub(super) struct Heard {
    /// When it last looked for messages.
    pub(super) at: Duration,
    /// The kind of the task that its main thread has run since.
    pub(super) ran: Option<u16>,
    /// When it last noted the size of its pool, and which.
    pub(super) pool_at: Duration,
    pub(super) pool: usize,
}

/// Notices that nothing moves.
pub(super) struct Watch {
    pub(super) after: Option<Duration>,
    pub(super) moved: Duration,
}

impl<E: ?Sized + Sync> Scope<'_, E> {
    /// Writes down what happened, if somebody wants to know.
    pub(super) fn note(&mut self, what: What) {
        if self.recorder.is_on() {
            self.recorder.record(self.comm.now(), what);
        }
    }

    /// A task was taken up.
    pub(super) fn note_begin(&mut self, worker: usize, payload: &Payload<E>) {
        let begin = self.begin_of(worker, payload);
        self.note(begin);
    }

    /// The event of the beginning of a task.
    pub(super) fn begin_of(&self, worker: usize, payload: &Payload<E>) -> What {
        // A task's own account of itself is no reason to fail.
        let detail = if self.recorder.is_on() {
            wire::guarded(|| payload.body.detail()).unwrap_or_default()
        } else {
            Detail::default()
        };
        What::TaskBegin {
            worker: worker as u16,
            kind: payload.kind,
            depth: detail.depth,
            of: detail.of,
        }
    }

    /// Messages were read from `now` on, this many requests for tasks among them: tells how long
    /// none were, if a task was the reason.
    pub(super) fn note_deafness(&mut self, now: Duration, requests: u32) {
        let silence = now.saturating_sub(self.heard.at);
        if let Some(kind) = self.heard.ran.take()
            && silence >= DEAF
        {
            let what = What::Deaf {
                kind,
                requests: u16::try_from(requests).unwrap_or(u16::MAX),
                us: u32::try_from(silence.as_micros()).unwrap_or(u32::MAX),
            };
            self.recorder.record(now, what);
        }
        self.heard.at = now;
    }

    /// Tells how many tasks are in the pool, if that has changed and was not told just now.
    pub(super) fn note_pool(&mut self, now: Duration) {
        let tasks = self.scheduler.pool_len();
        let heard = &mut self.heard;
        if tasks != heard.pool && now >= heard.pool_at.saturating_add(POOL_NOTES) {
            (heard.pool, heard.pool_at) = (tasks, now);
            let tasks = u32::try_from(tasks).unwrap_or(u32::MAX);
            self.recorder.record(now, What::Pool { tasks });
        }
    }

    /// A task was set down.
    pub(super) fn note_end(&mut self, worker: usize, units: u64) {
        self.note(end_of(worker, units));
    }

    /// Says on the terminal what is live here if nothing has moved for long.
    pub(super) fn complain(&mut self, now: Duration) {
        if let Some(after) = self.watch.after
            && now >= self.watch.moved.saturating_add(after)
        {
            let text = self.scheduler.describe();
            let waited = now.saturating_sub(self.watch.moved);
            // There is nobody to tell that this could not be told.
            drop(writeln!(
                io::stderr(),
                "nothing has moved for {waited:?}:\n{text}"
            ));
            self.watch.moved = now;
        }
    }
}

/// The event of the end of a task of this many units.
pub(super) fn end_of(worker: usize, units: u64) -> What {
    What::TaskEnd {
        worker: worker as u16,
        units: u32::try_from(units).unwrap_or(u32::MAX),
    }
}
