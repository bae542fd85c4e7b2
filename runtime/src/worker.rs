//! Workers: they run tasks slice after slice, and hand what these leave to their rank.
//!
//! Worker 0 is the rank's main thread, which also talks to other ranks. Other workers are threads.
//! They get orders over a channel, run a task to its end, and report what it leaves over another
//! channel. So that they need not wait for the main thread after each task, some tasks are laid out
//! ahead for them, which the main thread may take back. A task that waits in a join of its own
//! group keeps its thread, which runs tasks of that group meanwhile.

use std::collections::VecDeque;
use std::ops::DerefMut;
use std::panic;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use crate::bound::Bounds;
use crate::comm::Rank;
use crate::comm::threads::panic_message;
use crate::context::{GroupCalls, SliceOutput, Stopped, WorkerContext};
use crate::panics::catch;
use crate::payload::{Payload, Running, TaskResult};
use crate::policy::Split;
use crate::scheduler::{Ancestry, GroupId, Membership};
use crate::sync::{AtomicBool, AtomicU64, Mutex, Ordering, Receiver, Sender, recv_soon};
use crate::task::{Failure, TaskError};

/// A message from a worker that is a thread to its rank.
pub(crate) enum WorkerReport<E: ?Sized> {
    /// The output of a slice.
    Slice(usize, SliceReport<E>),
    /// Its task waits in a join of this group.
    Waits(usize, Arc<Ancestry>),
    /// Its task cancels this group.
    Cancel(Arc<Ancestry>),
}

/// A message from a rank to a worker.
pub(crate) enum Order<E: ?Sized> {
    Run(Running<E>),
    /// The result that the task's join waits for.
    Joined(Option<TaskResult>),
}

/// The tasks that a worker runs next without an order. Its rank lays tasks out behind the last one,
/// and takes them back from there.
pub(crate) type Ahead<E> = Arc<Mutex<VecDeque<Running<E>>>>;

/// Takes the first task that is ahead.
pub(crate) fn take_first<E: ?Sized>(ahead: &Ahead<E>) -> Option<Running<E>> {
    lock(ahead).pop_front()
}

/// The tasks that are ahead: a panic has left them as they were.
pub(crate) fn lock<E: ?Sized>(
    ahead: &Ahead<E>,
) -> impl DerefMut<Target = VecDeque<Running<E>>> + '_ {
    ahead.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The output of a slice.
pub(crate) struct SliceReport<E: ?Sized> {
    pub(crate) membership: Membership,
    pub(crate) kind: u16,
    pub(crate) output: SliceOutput<E>,
    /// A piece that was split off after it.
    pub(crate) piece: Option<Payload<E>>,
    pub(crate) done: bool,
    /// Whether the worker has taken up the next of the tasks that were ahead.
    pub(crate) goes_on: bool,
    /// Units charged by the task since it was taken up.
    pub(crate) charged_in_all: u64,
    pub(crate) busy: Duration,
    pub(crate) ended: Instant,
}

/// How a slice ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ran {
    Done,
    More,
    /// The scope ended under it.
    Stopped,
}

/// Runs a task for a slice.
///
/// A panic ends the task with an error; what it forked and emitted before stands.
pub(crate) fn run_slice<E: ?Sized>(
    (membership, payload): &mut Running<E>,
    env: &E,
    worker: &mut WorkerContext<E>,
    groups: &mut dyn GroupCalls<E>,
) -> Ran {
    match catch(|| payload.run(env, membership, worker, groups)) {
        Ok(true) => Ran::Done,
        Ok(false) => Ran::More,
        Err(panic) if panic.is::<Stopped>() => Ran::Stopped,
        Err(panic) => {
            let error = TaskError {
                task: payload.body.name().to_owned(),
                rank: worker.rank,
                cause: Failure::Panicked(panic_message(&*panic)),
            };
            worker.output.results.push(Err(Box::new(error)));
            payload.charged = worker.charged_in_all;
            Ran::Done
        }
    }
}

/// Takes a piece from a task that is between two slices; `None` if it has too little to share.
/// After a panic the next slice ends the task with an error.
pub(crate) fn split<E: ?Sized>(
    payload: &mut Payload<E>,
    how: Split,
    rank: Rank,
) -> Option<Payload<E>> {
    if how.0.gives_nothing() {
        return None;
    }
    match catch(|| payload.body.split(how)) {
        Ok(piece) => piece.map(|body| Payload::new(payload.kind, body, rank)),
        Err(panic) => {
            let why = format!("while splitting: {}", panic_message(&*panic));
            payload.fail(rank, why);
            None
        }
    }
}

/// Numbers the groups that a rank's tasks and body make.
#[derive(Clone, Debug, Default)]
pub(crate) struct Numbers(Arc<AtomicU64>);

impl Numbers {
    pub(crate) fn group(&self, home: Rank, parent: Option<&Arc<Ancestry>>) -> Arc<Ancestry> {
        let number = self.0.fetch_add(1, Ordering::Relaxed);
        Ancestry::new(GroupId::Rooted { home, number }, parent.cloned())
    }
}

/// A worker that is a thread.
pub(crate) struct Worker<'a, E: ?Sized> {
    pub(crate) rank: Rank,
    pub(crate) index: usize,
    pub(crate) budget: u32,
    pub(crate) how: Split,
    pub(crate) env: &'a E,
    pub(crate) orders: Receiver<Order<E>>,
    pub(crate) ahead: Ahead<E>,
    pub(crate) reports: Sender<WorkerReport<E>>,
    pub(crate) split_wanted: Arc<AtomicBool>,
    pub(crate) bounds: Arc<Bounds>,
    pub(crate) stop: &'a AtomicBool,
    pub(crate) numbers: Numbers,
    /// Time spent waiting in joins.
    pub(crate) away: Duration,
}

impl<E: ?Sized> Worker<'_, E> {
    /// Works until no more orders can come.
    pub(crate) fn work(mut self) {
        while let Ok(order) = recv_soon(&self.orders) {
            if let Order::Run(running) = order
                && !self.run(running, true)
            {
                return;
            }
        }
    }

    /// Runs a task to its end, and then, if the worker `goes_on`, those that are ahead; false if
    /// the scope ended before.
    #[expect(clippy::disallowed_methods, reason = "a driver reads the clock")]
    fn run(&mut self, mut running: Running<E>, goes_on: bool) -> bool {
        let wanted = Arc::clone(&self.split_wanted);
        let bounds = Arc::clone(&self.bounds);
        let mut context = WorkerContext::new(self.rank, self.index, self.budget, wanted, bounds);
        // Slices that left nothing are summed up into the next that did.
        let mut busy = Duration::ZERO;
        loop {
            let (begin, away) = (Instant::now(), self.away);
            let env = self.env;
            let ran = run_slice(&mut running, env, &mut context, self);
            if ran == Ran::Stopped || self.stop.load(Ordering::Relaxed) {
                return false;
            }
            let mut piece = None;
            if ran == Ran::More && self.split_wanted.swap(false, Ordering::Relaxed) {
                piece = split(&mut running.1, self.how, self.rank);
            }
            let ended = Instant::now();
            busy += (ended - begin).saturating_sub(self.away - away);
            let done = ran == Ran::Done;
            if done || piece.is_some() || !context.output.is_empty() {
                let mut slice = SliceReport {
                    piece,
                    done,
                    busy: std::mem::take(&mut busy),
                    ..SliceReport::of(&mut context, &running.0, ended)
                };
                let next = (done && goes_on).then(|| self.next_ahead()).flatten();
                slice.goes_on = next.is_some();
                let report = WorkerReport::Slice(self.index, slice);
                if self.reports.send(report).is_err() {
                    return false;
                }
                match next {
                    Some(next) => running = next,
                    None if done => return true,
                    None => {}
                }
            }
        }
    }

    /// The next task, unless it was cancelled: then the rank is about to take it back.
    fn next_ahead(&self) -> Option<Running<E>> {
        let mut ahead = lock(&self.ahead);
        let wanted = |(membership, _): &Running<E>| !membership.ancestry().is_cancelled();
        ahead
            .front()
            .is_some_and(wanted)
            .then(|| ahead.pop_front())?
    }
}

impl<E: ?Sized> SliceReport<E> {
    /// Reports what a task has left so far, which goes on.
    fn of(context: &mut WorkerContext<E>, membership: &Membership, ended: Instant) -> Self {
        Self {
            membership: membership.clone(),
            kind: context.kind,
            output: std::mem::take(&mut context.output),
            piece: None,
            done: false,
            goes_on: false,
            charged_in_all: context.charged_in_all,
            busy: Duration::ZERO,
            ended,
        }
    }
}

impl<E: ?Sized> GroupCalls<E> for Worker<'_, E> {
    fn group(&mut self, parent: &Membership) -> Arc<Ancestry> {
        self.numbers.group(self.rank, Some(parent.ancestry()))
    }

    #[expect(clippy::disallowed_methods, reason = "a driver reads the clock")]
    fn next(
        &mut self,
        context: &mut WorkerContext<E>,
        membership: &Membership,
        group: &Arc<Ancestry>,
    ) -> Option<TaskResult> {
        let (begin, away) = (Instant::now(), self.away);
        let slice = SliceReport::of(context, membership, begin);
        let slice = WorkerReport::Slice(self.index, slice);
        let waits = WorkerReport::Waits(self.index, Arc::clone(group));
        let mut told = self.reports.send(slice).is_ok() && self.reports.send(waits).is_ok();
        while told {
            match recv_soon(&self.orders) {
                // Not what is ahead: only tasks of the group may run here.
                Ok(Order::Run(running)) => told = self.run(running, false),
                Ok(Order::Joined(outcome)) => {
                    // The waits of tasks that it ran meanwhile are within this time.
                    self.away = away + begin.elapsed();
                    return outcome;
                }
                Err(_) => break,
            }
        }
        panic::resume_unwind(Box::new(Stopped))
    }

    fn cancel(&mut self, group: &Arc<Ancestry>) {
        // If nobody listens any more the scope is over.
        drop(self.reports.send(WorkerReport::Cancel(Arc::clone(group))));
    }
}
