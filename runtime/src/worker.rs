//! Running tasks: slice after slice, with what they leave handed to the rank.
//!
//! Worker 0 is the rank's main thread, which also talks to other ranks; it runs one slice at a time. Other
//! workers are threads that run a task to its end and report over a channel; between slices they look at a
//! flag that says whether the rank wants them to split.

use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender};

use crate::comm::Rank;
use crate::comm::threads::panic_message;
use crate::policy::Split;
use crate::scheduler::message::GroupId;
use crate::task::{Erased, Site, TaskError, Value};

/// A task on a rank, with what the protocol needs to know of it.
pub(crate) struct Job<E: ?Sized> {
    pub(crate) home: Rank,
    /// Its kind's number in the registry.
    pub(crate) kind: u16,
    pub(crate) body: Box<dyn Erased<E>>,
}

/// A result on its home rank or on its way there.
pub(crate) struct Outcome {
    pub(crate) kind: u16,
    pub(crate) value: Result<Value, TaskError>,
}

/// What one slice left.
pub(crate) struct Slice<E: ?Sized> {
    pub(crate) worker: usize,
    pub(crate) group: GroupId,
    pub(crate) home: Rank,
    pub(crate) kind: u16,
    pub(crate) results: Vec<Result<Value, TaskError>>,
    pub(crate) forked: Vec<Box<dyn Erased<E>>>,
    pub(crate) pieces: Vec<Box<dyn Erased<E>>>,
    pub(crate) done: bool,
    pub(crate) charged: u64,
    pub(crate) busy: Duration,
}

/// Runs slices on one thread.
pub(crate) struct Worker<E: ?Sized> {
    site: Site<E>,
    how: Split,
    current: Option<(GroupId, Job<E>)>,
    /// What a split panicked with.
    failed: Option<String>,
}

impl<E: ?Sized> Worker<E> {
    pub(crate) fn new(
        rank: Rank,
        worker: usize,
        budget: u32,
        how: Split,
        split_wanted: Arc<AtomicBool>,
    ) -> Self {
        let site = Site {
            rank,
            worker,
            budget,
            charged: 0,
            results: Vec::new(),
            forked: Vec::new(),
            split_wanted,
        };
        Self {
            site,
            how,
            current: None,
            failed: None,
        }
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.current.is_none()
    }

    pub(crate) fn start(&mut self, group: GroupId, job: Job<E>) {
        self.current = Some((group, job));
    }

    /// A piece of the current task, which goes on as what is left of it; `None` if there is no task or it has
    /// too little to share. A panic is kept for the next slice.
    pub(crate) fn split(&mut self) -> Option<(GroupId, Job<E>)> {
        let (group, job) = self.current.as_mut()?;
        if self.how == Split::Never {
            return None;
        }
        let how = self.how;
        match panic::catch_unwind(AssertUnwindSafe(|| job.body.split(how))) {
            Ok(piece) => piece.map(|body| {
                let (home, kind) = (job.home, job.kind);
                (*group, Job { home, kind, body })
            }),
            Err(payload) => {
                self.failed = Some(format!("while splitting: {}", panic_message(&*payload)));
                None
            }
        }
    }

    /// Runs the current task for a slice; `None` if there is none.
    ///
    /// A panic ends the task with an error; what it forked and emitted before stands.
    #[expect(clippy::disallowed_methods, reason = "a driver reads the clock")]
    pub(crate) fn slice(&mut self, env: &E) -> Option<Slice<E>> {
        let (group, mut job) = self.current.take()?;
        let begin = Instant::now();
        let site = &mut self.site;
        let ran = match self.failed.take() {
            None => panic::catch_unwind(AssertUnwindSafe(|| job.body.run(env, site)))
                .map_err(|payload| panic_message(&*payload)),
            Some(message) => Err(message),
        };
        let mut results: Vec<_> = self.site.results.drain(..).map(Ok).collect();
        let done = ran.unwrap_or_else(|message| {
            results.push(Err(self.failure(&job, &message)));
            true
        });
        let mut slice = Slice {
            worker: self.site.worker,
            group,
            home: job.home,
            kind: job.kind,
            results,
            forked: self.site.forked.drain(..).collect(),
            pieces: Vec::new(),
            done,
            charged: std::mem::take(&mut self.site.charged),
            busy: Duration::ZERO,
        };
        if !done {
            self.current = Some((group, job));
            if self.site.split_wanted.swap(false, Ordering::Relaxed) {
                slice
                    .pieces
                    .extend(self.split().map(|(_, piece)| piece.body));
            }
        }
        slice.busy = begin.elapsed();
        Some(slice)
    }

    fn failure(&self, job: &Job<E>, message: &str) -> TaskError {
        TaskError {
            task: job.body.name().to_owned(),
            rank: self.site.rank,
            message: message.to_owned(),
        }
    }
}

/// The life of a worker that is a thread: until no more tasks can come.
pub(crate) fn work<E: ?Sized>(
    mut worker: Worker<E>,
    env: &E,
    tasks: &Receiver<(GroupId, Job<E>)>,
    slices: &Sender<Slice<E>>,
    stop: &AtomicBool,
) {
    while let Ok((group, job)) = tasks.recv() {
        worker.start(group, job);
        // Slices that left nothing are summed up into the next that did.
        let (mut charged, mut busy) = (0, Duration::ZERO);
        while let Some(mut slice) = worker.slice(env) {
            if stop.load(Ordering::Relaxed) {
                return;
            }
            let empty = slice.results.is_empty()
                && slice.forked.is_empty()
                && slice.pieces.is_empty()
                && !slice.done;
            charged += slice.charged;
            busy += slice.busy;
            if empty {
                continue;
            }
            slice.charged = std::mem::take(&mut charged);
            slice.busy = std::mem::take(&mut busy);
            if slices.send(slice).is_err() {
                return;
            }
        }
    }
}
