//! Running tasks: slice after slice, with what they leave handed to the rank.
//!
//! Worker 0 is the rank's main thread, which also talks to other ranks. Other workers are threads: they get
//! orders over a channel, run a task to its end, and report over another channel what it leaves. So that they need not wait for
//! the main thread after each task, some are laid out for them ahead, which the main thread may take back.
//! A task that waits in a join of its own group keeps its thread, which runs tasks of that group meanwhile.

use std::collections::VecDeque;
use std::ops::DerefMut;
use std::panic;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use crate::comm::Rank;
use crate::comm::threads::panic_message;
use crate::context::{Desk, Forked, GroupCalls, Stopped, WorkerContext};
use crate::panics::catch;
use crate::payload::{Badge, Job, Payload, TaskResult};
use crate::policy::Split;
use crate::scheduler::{Ancestry, GroupId, Membership};
use crate::sync::{AtomicBool, AtomicU64, Mutex, Ordering, Receiver, Sender, recv_soon};
use crate::task::{Failure, Found, TaskError};

/// What a worker that is a thread tells its rank.
pub(crate) enum WorkerReport<E: ?Sized> {
    /// What a slice left.
    Slice(usize, SliceReport<E>),
    /// Its task waits in a join of this group.
    Waits(usize, Arc<Ancestry>),
    /// Its task cancels this group.
    Cancel(Arc<Ancestry>),
}

/// What a rank tells a worker.
pub(crate) enum Order<E: ?Sized> {
    Run(Job<E>),
    /// What the task's join waits for.
    Joined(Option<TaskResult>),
}

/// What a worker runs next, without being told. Its rank lays tasks out behind the last one, and takes them back from there.
pub(crate) type Ahead<E> = Arc<Mutex<VecDeque<Job<E>>>>;

/// Takes the first task that is ahead.
pub(crate) fn take_first<E: ?Sized>(ahead: &Ahead<E>) -> Option<Job<E>> {
    lock(ahead).pop_front()
}

/// The tasks that are ahead: a panic has left them as they were.
pub(crate) fn lock<E: ?Sized>(ahead: &Ahead<E>) -> impl DerefMut<Target = VecDeque<Job<E>>> + '_ {
    ahead.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a slice left.
pub(crate) struct SliceReport<E: ?Sized> {
    pub(crate) membership: Membership,
    pub(crate) kind: u16,
    pub(crate) results: Vec<Found>,
    pub(crate) forked: Vec<Forked<E>>,
    pub(crate) messages: Vec<(Rank, Vec<u8>)>,
    pub(crate) piece: Option<Payload<E>>,
    pub(crate) done: bool,
    /// Whether the worker has taken up the next of the tasks that were ahead.
    pub(crate) goes_on: bool,
    /// Units charged in it, and by the task since it was taken up.
    pub(crate) charged: u64,
    pub(crate) in_all: u64,
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
    job: &mut Job<E>,
    env: &E,
    site: &mut WorkerContext<E>,
    host: &mut dyn GroupCalls<E>,
) -> Ran {
    let Job { badge, body } = job;
    let ran = match badge.failed.take() {
        Some(message) => Err(message),
        None => {
            let desk = Desk {
                site: &mut *site,
                host,
                badge,
            };
            match catch(|| body.run(env, desk)) {
                Ok(done) => Ok(done),
                Err(payload) if payload.is::<Stopped>() => return Ran::Stopped,
                Err(payload) => Err(panic_message(&*payload)),
            }
        }
    };
    match ran {
        Ok(true) => Ran::Done,
        Ok(false) => Ran::More,
        Err(message) => {
            site.results.push(Err(Box::new(TaskError {
                task: body.name().to_owned(),
                rank: site.rank,
                cause: Failure::Panicked(message),
            })));
            Ran::Done
        }
    }
}

/// A piece of a task that is between two slices; `None` if it has too little to share. A panic is kept for
/// the next slice.
pub(crate) fn split<E: ?Sized>(job: &mut Job<E>, how: Split, rank: Rank) -> Option<Payload<E>> {
    if how.0.gives_nothing() {
        return None;
    }
    let kind = job.badge.kind;
    match catch(|| job.body.split(how)) {
        Ok(piece) => piece.map(|body| Payload::new(kind, body, rank)),
        Err(payload) => {
            let message = format!("while splitting: {}", panic_message(&*payload));
            job.badge.failed = Some(message);
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
    pub(crate) stop: &'a AtomicBool,
    pub(crate) numbers: Numbers,
    /// Time spent waiting in joins.
    pub(crate) away: Duration,
}

impl<E: ?Sized> Worker<'_, E> {
    /// Until no more orders can come.
    pub(crate) fn work(mut self) {
        while let Ok(order) = recv_soon(&self.orders) {
            if let Order::Run(job) = order
                && !self.run(job, true)
            {
                return;
            }
        }
    }

    /// Runs a task to its end, and then, if the worker `goes_on`, those that are ahead; false if the scope ended before.
    #[expect(clippy::disallowed_methods, reason = "a driver reads the clock")]
    fn run(&mut self, mut job: Job<E>, goes_on: bool) -> bool {
        let wanted = Arc::clone(&self.split_wanted);
        let mut site = WorkerContext::new(self.rank, self.index, self.budget, wanted);
        // Slices that left nothing are summed up into the next that did.
        let mut busy = Duration::ZERO;
        loop {
            let (begin, away) = (Instant::now(), self.away);
            let env = self.env;
            let ran = run_slice(&mut job, env, &mut site, self);
            if ran == Ran::Stopped || self.stop.load(Ordering::Relaxed) {
                return false;
            }
            let mut piece = None;
            if ran == Ran::More && self.split_wanted.swap(false, Ordering::Relaxed) {
                piece = split(&mut job, self.how, self.rank);
            }
            let ended = Instant::now();
            busy += (ended - begin).saturating_sub(self.away - away);
            let done = ran == Ran::Done;
            let left =
                !(site.results.is_empty() && site.forked.is_empty() && site.messages.is_empty());
            if done || piece.is_some() || left {
                let mut slice = leave(&mut site, &job.badge, ended);
                slice.piece = piece;
                slice.done = done;
                let next = (done && goes_on).then(|| self.next_ahead()).flatten();
                slice.goes_on = next.is_some();
                slice.busy = std::mem::take(&mut busy);
                if self
                    .reports
                    .send(WorkerReport::Slice(self.index, slice))
                    .is_err()
                {
                    return false;
                }
                match next {
                    Some(next) => job = next,
                    None if done => return true,
                    None => {}
                }
            }
        }
    }

    /// The next task, unless it was cancelled: then the rank is about to take it back.
    fn next_ahead(&self) -> Option<Job<E>> {
        let mut ahead = lock(&self.ahead);
        let wanted = |job: &Job<E>| !job.badge.membership.ancestry().is_cancelled();
        ahead
            .front()
            .is_some_and(wanted)
            .then(|| ahead.pop_front())?
    }
}

/// What a task has left so far.
fn leave<E: ?Sized>(site: &mut WorkerContext<E>, badge: &Badge, ended: Instant) -> SliceReport<E> {
    SliceReport {
        membership: badge.membership.clone(),
        kind: badge.kind,
        results: std::mem::take(&mut site.results),
        forked: std::mem::take(&mut site.forked),
        messages: std::mem::take(&mut site.messages),
        piece: None,
        done: false,
        goes_on: false,
        charged: std::mem::take(&mut site.charged),
        in_all: badge.charged.get(),
        busy: Duration::ZERO,
        ended,
    }
}

impl<E: ?Sized> GroupCalls<E> for Worker<'_, E> {
    fn group(&mut self, parent: &Membership) -> Arc<Ancestry> {
        self.numbers.group(self.rank, Some(parent.ancestry()))
    }

    #[expect(clippy::disallowed_methods, reason = "a driver reads the clock")]
    fn next(
        &mut self,
        site: &mut WorkerContext<E>,
        badge: &Badge,
        group: &Arc<Ancestry>,
    ) -> Option<TaskResult> {
        let (begin, away) = (Instant::now(), self.away);
        let slice = WorkerReport::Slice(self.index, leave(site, badge, begin));
        let waits = WorkerReport::Waits(self.index, Arc::clone(group));
        let mut told = self.reports.send(slice).is_ok() && self.reports.send(waits).is_ok();
        while told {
            match recv_soon(&self.orders) {
                // Not what is ahead: only tasks of the group may run here.
                Ok(Order::Run(job)) => told = self.run(job, false),
                Ok(Order::Joined(outcome)) => {
                    // What tasks that it ran meanwhile waited is within this.
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
