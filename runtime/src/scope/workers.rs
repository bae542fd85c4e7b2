//! Running tasks on the workers of a rank: on the main thread between messages, and on other
//! threads.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use std::{iter, panic};

use super::notes::end_of;
use super::{Scope, ScopeError};
use crate::context::{GroupCalls, SliceOutput, Stopped, WorkerContext};
use crate::payload::{Running, TaskResult};
use crate::scheduler::{Ancestry, GroupId, Membership};
use crate::sync::{AtomicBool, Ordering, Sender};
use crate::task::Erased;
use crate::trace::What;
use crate::worker::{
    Ahead, Order, Ran, SliceReport, WorkerReport, lock, run_slice, split, take_first,
};

/// Most tasks that are run between two looks at messages, and how long that may take: with less
/// than half of it the next batch is twice as large, with more than all of it half as large.
const LARGEST_BATCH: u32 = 64;
const BATCH_TIME: Duration = Duration::from_micros(8);
/// Most tasks that a worker has ahead, and how many must be left in the pool for each when it gets
/// one.
const MOST_AHEAD: usize = 2;
const LEFT_FOR_EACH: usize = 2;

/// A worker that is another thread, as the main thread sees it.
pub(super) struct WorkerHandle<E: ?Sized> {
    pub(super) orders: Sender<Order<E>>,
    pub(super) split_wanted: Arc<AtomicBool>,
    /// Its tasks, the innermost last.
    pub(super) frames: Vec<Frame>,
    /// The tasks that it runs next, and what its trace will have of them and of the one that it may
    /// have taken from there last.
    pub(super) ahead: Ahead<E>,
    pub(super) begins: VecDeque<What>,
    /// When something last happened there, as its trace has it.
    pub(super) at: Duration,
}

impl<E: ?Sized> WorkerHandle<E> {
    /// Whether it runs a task, rather than wait for one.
    pub(super) fn is_busy(&self) -> bool {
        matches!(self.frames.last(), Some(Frame::Runs))
    }
}

pub(super) enum Frame {
    Runs,
    WaitsIn(Arc<Ancestry>),
}

/// The moment from which this thread's time is counted, and how long it had waited in joins until
/// then.
struct Lap {
    begin: Duration,
    away: Duration,
}

/// The units that a slice charged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Charged {
    units: u64,
    /// The units that all slices of the task charged on this rank.
    in_all: u64,
    done: bool,
}

impl<E: ?Sized + Sync> GroupCalls<E> for Scope<'_, E> {
    fn group(&mut self, parent: &Membership) -> Arc<Ancestry> {
        self.numbers
            .group(self.comm.rank(), Some(parent.ancestry()))
    }

    fn next(
        &mut self,
        worker: &mut WorkerContext<E>,
        membership: &Membership,
        group: &Arc<Ancestry>,
    ) -> Option<TaskResult> {
        self.wait_for(worker, membership, group)
            .unwrap_or_else(|error| {
                self.failure = Some(error);
                panic::resume_unwind(Box::new(Stopped))
            })
    }

    fn cancel(&mut self, group: &Arc<Ancestry>) {
        self.note(What::Cancelled);
        self.scheduler.cancel(group);
        self.take_back();
    }
}

impl<E: ?Sized + Sync> Scope<'_, E> {
    /// Runs tasks on this thread for a while; false if there was none.
    pub(super) fn work(
        &mut self,
        within: Option<GroupId>,
        nested: bool,
    ) -> Result<bool, ScopeError> {
        let recording = self.recorder.is_on();
        let most = if nested { 1 } else { self.batch };
        let mut lap = Lap {
            begin: self.comm.now(),
            away: self.away,
        };
        let (mut units, mut tasks) = (0, 0);
        let mut busy = Duration::ZERO;
        while tasks < most && units < u64::from(self.slice) {
            let running = match self.current.take() {
                Some(running) => running,
                None => match self.scheduler.next_task(within) {
                    Some(task) => {
                        let running = self.take_up(task);
                        if recording {
                            let begin = self.begin_of(0, &running.1);
                            self.recorder.record(lap.begin, begin);
                        }
                        running
                    }
                    None => break,
                },
            };
            tasks += 1;
            let charged = self.slice(running)?;
            units += charged.units;
            if recording {
                // Each by itself, though in one turn: the clock is read once a task.
                busy += self.ends_lap(&mut lap, charged.units);
                if charged.done {
                    self.recorder.record(lap.begin, end_of(0, charged.in_all));
                }
            }
            if !charged.done {
                break;
            }
        }
        if tasks == 0 {
            return Ok(false);
        }
        if !recording {
            busy = self.ends_lap(&mut lap, units);
        }
        self.report.busy[0] += busy;
        if busy > BATCH_TIME {
            self.batch = (self.batch / 2).max(1);
        } else if 2 * busy < BATCH_TIME && tasks == self.batch {
            self.batch = (self.batch * 2).min(LARGEST_BATCH);
        }
        Ok(true)
    }

    /// How long this thread has worked since the lap began, which did this many units; the next
    /// begins.
    fn ends_lap(&mut self, lap: &mut Lap, units: u64) -> Duration {
        let waited = self.away.saturating_sub(lap.away);
        let took = self.comm.now().saturating_sub(lap.begin + waited);
        let busy = self.comm.compute(units, took);
        *lap = Lap {
            begin: lap.begin + waited + busy,
            away: self.away,
        };
        busy
    }

    /// Runs a task for a slice.
    pub(super) fn slice(&mut self, mut running: Running<E>) -> Result<Charged, ScopeError> {
        let mut context = self.contexts.pop().unwrap_or_else(|| {
            let wanted = Arc::clone(&self.split_wanted);
            let bounds = Arc::clone(&self.bounds);
            WorkerContext::new(self.comm.rank(), 0, self.slice, wanted, bounds)
        });
        let env = self.env;
        let ran = run_slice(&mut running, env, &mut context, self);
        if ran == Ran::Stopped {
            let failure = self.failure.take();
            return Err(failure.unwrap_or_else(|| ScopeError::Body("its tasks stopped".to_owned())));
        }
        let (membership, payload) = &mut running;
        self.heard.ran = Some(payload.kind);
        let charged = Charged {
            units: context.output.charged,
            in_all: payload.charged,
            done: ran == Ran::Done,
        };
        self.pick_up(membership, payload.kind, &mut context.output)?;
        self.contexts.push(context);
        if charged.done {
            self.report.tasks += 1;
            self.scheduler.finished(membership);
            return Ok(charged);
        }
        if self.split_wanted.load(Ordering::Relaxed) {
            self.split_wanted.store(false, Ordering::Relaxed);
            self.split_off(&mut running);
        }
        self.current = Some(running);
        Ok(charged)
    }

    /// Splits a task that is between two slices.
    pub(super) fn split_off(&mut self, (membership, payload): &mut Running<E>) {
        if let Some(piece) = split(payload, self.how, self.comm.rank()) {
            self.note(What::Split { worker: 0 });
            self.scheduler.split_off(membership, piece);
        }
    }

    /// Puts the task of this thread, which has begun, back into the pool.
    pub(super) fn put_back(&mut self, running: Running<E>) {
        self.note_end(0, running.1.charged);
        self.set_down(running);
    }

    /// Puts a task that does not run into the pool.
    fn set_down(&mut self, (membership, payload): Running<E>) {
        let payload = payload.set_down(self.comm.rank());
        self.scheduler.put_back(membership, payload);
    }

    /// Makes a task of the pool ready to run.
    pub(super) fn take_up(&mut self, (membership, mut payload): Running<E>) -> Running<E> {
        // The scheduler has seen that all its blocks are here.
        payload.fetch(|name| self.scheduler.block(name));
        (membership, payload)
    }

    /// Hands what a task of that kind has left to the scheduler.
    fn pick_up(
        &mut self,
        membership: &Membership,
        kind: u16,
        output: &mut SliceOutput<E>,
    ) -> Result<(), ScopeError> {
        self.report.work += std::mem::take(&mut output.charged);
        for (group, task) in output.forked.drain(..) {
            self.put(membership, kind, group, task)?;
        }
        for value in output.results.drain(..) {
            let result = TaskResult { kind, value };
            self.scheduler.produced(membership, result);
        }
        for (to, message) in output.posted.drain(..) {
            self.scheduler.post_message(to, message)?;
        }
        let mut improved = std::mem::take(&mut output.improved);
        while improved != 0 {
            let bound = improved.trailing_zeros() as u16;
            improved &= improved - 1;
            self.scheduler.improve(bound, self.bounds.get(bound));
        }
        Ok(())
    }

    /// Puts a task that another, of that kind, has forked into that one's group, or one that it
    /// made.
    fn put(
        &mut self,
        parent: &Membership,
        kind: u16,
        ancestry: Option<Arc<Ancestry>>,
        body: Box<dyn Erased<E>>,
    ) -> Result<(), ScopeError> {
        let payload = self.payload(body, Some(kind))?;
        match ancestry {
            None => {
                self.report.hyperforks += 1;
                self.scheduler.fork(parent.clone(), payload);
            }
            Some(ancestry) => {
                let membership = self.scheduler.membership(&ancestry, Some(parent));
                self.scheduler.fork(membership, payload);
            }
        }
        Ok(())
    }

    /// A task of this thread waits for a result of a group that it made.
    fn wait_for(
        &mut self,
        worker: &mut WorkerContext<E>,
        membership: &Membership,
        group: &Arc<Ancestry>,
    ) -> Result<Option<TaskResult>, ScopeError> {
        let (begin, away) = (self.comm.now(), self.away);
        let charged = worker.output.charged;
        self.pick_up(membership, worker.kind, &mut worker.output)?;
        if charged > 0 {
            self.report.busy[0] += self.comm.compute(charged, Duration::ZERO);
        }
        if let Some(outcome) = self.scheduler.next_result(group) {
            return Ok(Some(outcome));
        }
        self.note(What::WaitBegin { worker: 0 });
        self.scheduler.begins_to_wait();
        let joined = loop {
            if self.scheduler.is_exhausted(group) {
                break None;
            }
            self.turn(Some(group.group()), true)?;
            if let Some(outcome) = self.scheduler.next_result(group) {
                break Some(outcome);
            }
        };
        self.scheduler.ends_waiting();
        if let Some(running) = self.current.take() {
            self.put_back(running);
        }
        self.note(What::WaitEnd { worker: 0 });
        // This includes the waiting of tasks that it ran meanwhile.
        self.away = away + self.comm.now().saturating_sub(begin);
        Ok(joined)
    }

    /// The number of the first worker that is another thread.
    pub(super) fn first_thread(&self) -> usize {
        usize::from(self.works)
    }

    /// Gives workers that are threads something to do; true if there was anything.
    pub(super) fn give_orders(&mut self) -> bool {
        let (mut any, mut idle) = (false, false);
        for index in 0..self.workers.len() {
            let order = match self.workers[index].frames.last() {
                Some(Frame::Runs) => {
                    self.give_ahead(index);
                    None
                }
                None => {
                    // It may have ended just before something was laid out for it.
                    let handle = &mut self.workers[index];
                    let ahead = take_first(&handle.ahead);
                    if ahead.is_some() {
                        handle.begins.pop_front();
                    }
                    let running = ahead.or_else(|| {
                        let task = self.task_for(index)?;
                        Some(self.take_up(task))
                    });
                    running.map(Order::Run)
                }
                Some(Frame::WaitsIn(ancestry)) => {
                    let ancestry = Arc::clone(ancestry);
                    if let Some(outcome) = self.scheduler.next_result(&ancestry) {
                        Some(Order::Joined(Some(outcome)))
                    } else if self.scheduler.is_exhausted(&ancestry) {
                        Some(Order::Joined(None))
                    } else {
                        let task = self.scheduler.next_task(Some(ancestry.group()));
                        task.map(|task| Order::Run(self.take_up(task)))
                    }
                }
            };
            let now = self.comm.now();
            let handle = &mut self.workers[index];
            match &order {
                None => {
                    idle |= !handle.is_busy();
                    continue;
                }
                Some(Order::Run((_, payload))) => {
                    handle.at = now;
                    handle.frames.push(Frame::Runs);
                    self.note_begin(index + self.first_thread(), payload);
                }
                Some(Order::Joined(_)) => {
                    handle.at = now;
                    if let Some(Frame::WaitsIn(_)) = handle.frames.pop() {
                        self.scheduler.ends_waiting();
                    }
                    let worker = (index + self.first_thread()) as u16;
                    self.note(What::WaitEnd { worker });
                }
            }
            any = true;
            // A worker ends only when this channel does.
            order.map(|order| self.workers[index].orders.send(order).is_ok());
        }
        if idle || self.scheduler.pool_len() == 0 {
            self.take_back();
        }
        any
    }

    /// Lays out what a worker that runs a task may run next, if there is plenty.
    fn give_ahead(&mut self, index: usize) {
        let plenty = if cfg!(all(test, shuttle)) {
            // Tests of schedules have few tasks.
            1
        } else {
            LEFT_FOR_EACH * (self.workers.len() + 1)
        };
        // Not within a join: only tasks of its group may run there. Nor while one waits, which may
        // be for these.
        let waits =
            |handle: &WorkerHandle<E>| matches!(handle.frames.last(), Some(Frame::WaitsIn(_)));
        let none_waits = !self.workers.iter().any(waits);
        while none_waits
            && self.workers[index].frames.len() == 1
            && lock(&self.workers[index].ahead).len() < MOST_AHEAD
            && self.scheduler.pool_len() > plenty
            && let Some(task) = self.task_for(index)
        {
            let running = self.take_up(task);
            let begin = self.begin_of(index + self.first_thread(), &running.1);
            let handle = &mut self.workers[index];
            handle.begins.push_back(begin);
            lock(&handle.ahead).push_back(running);
        }
    }

    /// A task for a worker that is a thread: the first worker of a rank, be it a thread or the
    /// body's, takes the newest.
    fn task_for(&mut self, index: usize) -> Option<Running<E>> {
        if index + self.first_thread() == 0 {
            self.scheduler.next_task(None)
        } else {
            self.scheduler.far_task()
        }
    }

    /// Puts what is ahead of workers back into the pool, for workers that have nothing to run.
    pub(super) fn take_back(&mut self) {
        for index in 0..self.workers.len() {
            self.take_back_from(index);
        }
    }

    fn take_back_from(&mut self, index: usize) {
        let handle = &mut self.workers[index];
        let last = || lock(&handle.ahead).pop_back();
        let tasks: Vec<Running<E>> = iter::from_fn(last).collect();
        // The first may be of one that it has taken up.
        handle.begins.truncate(handle.begins.len() - tasks.len());
        for running in tasks.into_iter().rev() {
            self.set_down(running);
        }
    }

    /// Hears the report of a worker that is a thread.
    pub(super) fn hear(&mut self, report: WorkerReport<E>) -> Result<(), ScopeError> {
        match report {
            WorkerReport::Slice(worker, slice) => self.take(worker, slice),
            WorkerReport::Waits(worker, ancestry) => {
                self.scheduler.begins_to_wait();
                self.note(What::WaitBegin {
                    worker: worker as u16,
                });
                let now = self.comm.now();
                let handle = worker - self.first_thread();
                self.workers[handle].at = now;
                self.workers[handle].frames.push(Frame::WaitsIn(ancestry));
                // Perhaps it is what the join waits for.
                self.take_back_from(handle);
                Ok(())
            }
            WorkerReport::Cancel(ancestry) => {
                self.note(What::Cancelled);
                self.scheduler.cancel(&ancestry);
                // Tasks of the group that have not begun are dropped.
                self.take_back();
                Ok(())
            }
        }
    }

    /// Hands what a slice of another thread left to the scheduler.
    fn take(&mut self, worker: usize, mut slice: SliceReport<E>) -> Result<(), ScopeError> {
        self.report.busy[worker] += slice.busy;
        self.pick_up(&slice.membership, slice.kind, &mut slice.output)?;
        // When it ended, not when this thread came to hear of it.
        let ended = self.comm.now().saturating_sub(slice.ended.elapsed());
        let handle = worker - self.first_thread();
        let at = ended.max(self.workers[handle].at);
        self.workers[handle].at = at;
        let worker = worker as u16;
        if let Some(piece) = slice.piece {
            self.recorder.record(at, What::Split { worker });
            self.scheduler.split_off(&slice.membership, piece);
        }
        if slice.done {
            self.report.tasks += 1;
            let handle = &mut self.workers[handle];
            handle.frames.pop();
            let next = slice.goes_on.then(|| handle.begins.pop_front()).flatten();
            if slice.goes_on {
                handle.frames.push(Frame::Runs);
            }
            let end = end_of(usize::from(worker), slice.charged_in_all);
            self.recorder.record(at, end);
            if let Some(begin) = next {
                self.recorder.record(at, begin);
            }
            self.scheduler.finished(&slice.membership);
        }
        Ok(())
    }

    /// Asks every busy worker of this rank to give something away.
    pub(super) fn ask_for_splits(&self) {
        self.split_wanted
            .store(self.current.is_some(), Ordering::Relaxed);
        for handle in self.workers.iter().filter(|handle| handle.is_busy()) {
            handle.split_wanted.store(true, Ordering::Relaxed);
        }
    }
}
