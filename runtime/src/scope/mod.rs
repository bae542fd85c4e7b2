//! A scope: the part of a program in which ranks fork, join and steal together.
//!
//! This module drives the [scheduler](crate::scheduler) of a rank over any [`Comm`]. It hands the
//! scheduler messages and what tasks leave behind, and carries out its decisions. Only the main
//! thread of a rank sends and receives. This thread is also worker 0: it looks after messages
//! between batches of its own tasks, so a task that returns in time delays no other rank. As a
//! [progress thread](ScopeOptions::progress_thread) it runs no tasks, so none delays another rank.

mod error;
mod notes;
mod program;
mod report;
mod turn;
mod workers;

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, atomic};
use std::time::Duration;

use crate::block::{BlockError, BlockName, Bytes};
use crate::bound::{Bound, BoundValue, Bounds, MOST};
use crate::comm::{Comm, Rank, Tag};
use crate::context::WorkerContext;
use crate::group::Group;
use crate::payload::{Payload, Running, TaskResult};
use crate::policy::{ScopeOptions, Split};
use crate::registry::Registry;
use crate::scheduler::{GroupId, Scheduler};
use crate::sync::{AtomicBool, Ordering, Receiver, unbounded};
use crate::task::{Erased, Task, TaskError};
use crate::thread_provider::{ScopedThreads, ThreadProvider, WorkerThread};
use crate::trace::{Recorder, What};
use crate::worker::{Ahead, Numbers, Worker, WorkerReport};

pub use error::ScopeError;
pub use report::ScopeReport;

use notes::{Heard, Watch};
use program::{Introductions, open_tag};
use workers::WorkerHandle;

/// A rank's side of a scope.
pub struct Scope<'a, E: ?Sized> {
    comm: &'a mut dyn Comm,
    /// The number that tells its groups from those of other scopes.
    number: u64,
    tag: Tag,
    introductions: Introductions,
    registry: &'a Registry<E>,
    env: &'a E,
    scheduler: Scheduler<Payload<E>, TaskResult>,
    /// Whether the body forks no more.
    closed: bool,
    /// Whether this thread is worker 0.
    works: bool,
    /// The task of this thread between two slices.
    current: Option<Running<E>>,
    /// The contexts of this thread that no task uses at the moment.
    contexts: Vec<WorkerContext<E>>,
    split_wanted: Arc<AtomicBool>,
    /// The shared bounds as this rank knows them.
    bounds: Arc<Bounds>,
    how: Split,
    slice: u32,
    batch: u32,
    /// The most bytes of a message, and of a task, a result or a block in one.
    longest: [usize; 2],
    /// The time that this thread has spent in joins of tasks.
    away: Duration,
    workers: Vec<WorkerHandle<E>>,
    /// The number of the next turn through the workers that wait.
    turn: usize,
    reports: Receiver<WorkerReport<E>>,
    numbers: Numbers,
    /// The error because of which tasks were [stopped](Stopped).
    failure: Option<ScopeError>,
    while_waiting: Option<WhileWaiting<'a>>,
    recorder: Recorder,
    heard: Heard,
    watch: Watch,
    report: ScopeReport,
}

/// The work that a rank does while it waits.
struct WhileWaiting<'a> {
    work: Box<WaitingWork<'a>>,
    /// The numbers of tasks that had run here, and of items that had come, when it was done last.
    seen: Option<[u64; 2]>,
}

type WaitingWork<'a> =
    dyn FnMut(&mut dyn Comm, Vec<(Rank, Vec<u8>)>) -> Result<(), ScopeError> + 'a;

/// Stops the workers when it is dropped. So nobody waits for a task that goes on, whether the body
/// returns or panics.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl<E: ?Sized> fmt::Debug for Scope<'_, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.scheduler.describe())
    }
}

/// Runs `body` on this rank while it works with all others on the tasks that any of them forks.
///
/// It is collective: every rank calls it, with the same registry. It returns when no task is left
/// on any rank. Tasks run in `env`, which they only read. The second value says what this rank did.
///
/// # Errors
/// It fails with the error of the body, with one of messages, or with one of ranks that do not fit
/// together. The job is then ended on every rank, so that none waits.
pub fn scope<'a, E: ?Sized + Sync, R>(
    comm: &'a mut dyn Comm,
    registry: &'a Registry<E>,
    env: &'a E,
    options: &ScopeOptions,
    body: impl FnOnce(&mut Scope<'a, E>) -> Result<R, ScopeError>,
) -> Result<(R, ScopeReport), ScopeError> {
    scope_on(&ScopedThreads, comm, registry, env, options, body)
}

/// Runs a [`scope`] whose workers beside the calling thread are threads of `provider`.
///
/// # Errors
/// It fails as [`scope`] does.
pub fn scope_on<'a, E: ?Sized + Sync, R>(
    provider: &dyn ThreadProvider,
    comm: &'a mut dyn Comm,
    registry: &'a Registry<E>,
    env: &'a E,
    options: &ScopeOptions,
    body: impl FnOnce(&mut Scope<'a, E>) -> Result<R, ScopeError>,
) -> Result<(R, ScopeReport), ScopeError> {
    let mut value = None;
    let body = |scope: &mut Scope<'a, E>| body(scope).map(|of_body| value = Some(of_body));
    let report = run(provider, comm, registry, env, options, Box::new(body))?;
    let Some(value) = value else {
        unreachable!("a scope that ended well has run its body")
    };
    Ok((value, report))
}

type Body<'a, 'b, E> = Box<dyn FnOnce(&mut Scope<'a, E>) -> Result<(), ScopeError> + 'b>;

/// Runs a scope; this part is compiled once for all bodies.
fn run<'a, E: ?Sized + Sync>(
    provider: &dyn ThreadProvider,
    comm: &'a mut dyn Comm,
    registry: &'a Registry<E>,
    env: &'a E,
    options: &ScopeOptions,
    body: Body<'a, '_, E>,
) -> Result<ScopeReport, ScopeError> {
    let refused = match options.workers {
        0 => Some(ScopeError::NoWorkers),
        1 if !options.progress_thread => None,
        _ => (!comm.has_threads()).then_some(ScopeError::NoThreads),
    };
    let ambiguous = || {
        let kind = registry.ambiguous().map(ScopeError::SameName);
        let bound = || registry.ambiguous_bound().map(ScopeError::SameBound);
        let bounds = registry.bounds().len();
        let many = (bounds > MOST).then_some(ScopeError::TooManyBounds(bounds));
        kind.or_else(bound).or(many)
    };
    if let Some(error) = refused.or_else(ambiguous) {
        comm.abort(&error.to_string());
        return Err(error);
    }
    let begin = comm.now();
    let tag = open_tag(comm);
    let rank = comm.rank();
    let introductions = Introductions::new((rank, comm.size()), &registry.contents())
        .inspect_err(|error| comm.abort(&error.to_string()))?;
    let stop = AtomicBool::new(false);
    let (report_to, reports) = unbounded();
    let numbers = Numbers::default();
    let bounds = Arc::new(Bounds::new(registry.bounds()));
    let mut workers = Vec::new();
    let mut threads: Vec<WorkerThread<'_>> = Vec::new();
    for index in usize::from(!options.progress_thread)..options.workers {
        let split_wanted = Arc::new(AtomicBool::new(false));
        let (orders, inbox) = unbounded();
        let ahead = Ahead::default();
        let worker = Worker {
            rank,
            index,
            budget: options.slice.max(1),
            how: options.policy.split,
            env,
            orders: inbox,
            ahead: Arc::clone(&ahead),
            reports: report_to.clone(),
            split_wanted: Arc::clone(&split_wanted),
            bounds: Arc::clone(&bounds),
            stop: &stop,
            numbers: numbers.clone(),
            away: Duration::ZERO,
        };
        let name = format!("worker {index} of rank {}", rank.0);
        threads.push(WorkerThread {
            name,
            run: Box::new(move || worker.work()),
        });
        workers.push(WorkerHandle {
            orders,
            split_wanted,
            frames: Vec::new(),
            ahead,
            begins: VecDeque::new(),
            at: Duration::ZERO,
        });
    }
    let mut outcome = Err(ScopeError::Workers(String::new()));
    let mut comm = Some(comm);
    let main = || {
        let Some(comm) = comm.take() else { return };
        let _over = Over(&stop);
        let ranks = comm.size() as u32;
        let scheduler = Scheduler::new(rank, ranks, options, &|rank| comm.node_of(rank));
        let recorder = options
            .trace
            .map_or_else(Recorder::off, Recorder::with_capacity)
            .heard(rank, registry.names());
        let mut scope = Scope {
            number: SCOPES.fetch_add(1, Ordering::Relaxed),
            tag,
            introductions,
            registry,
            env,
            scheduler,
            closed: false,
            works: !options.progress_thread,
            current: None,
            contexts: Vec::new(),
            split_wanted: Arc::new(AtomicBool::new(false)),
            bounds: Arc::clone(&bounds),
            how: options.policy.split,
            slice: options.slice.max(1),
            batch: 1,
            longest: [options.longest_message(), options.longest_part()],
            away: Duration::ZERO,
            workers,
            turn: 0,
            reports,
            numbers,
            failure: None,
            while_waiting: None,
            recorder,
            heard: Heard {
                at: comm.now(),
                ..Heard::default()
            },
            watch: Watch {
                after: options.watch,
                moved: comm.now(),
            },
            report: ScopeReport {
                busy: vec![Duration::ZERO; options.workers],
                ..ScopeReport::default()
            },
            comm,
        };
        scope.note(What::ScopeBegin);
        let ended = body(&mut scope).and_then(|()| scope.finish());
        outcome = match ended {
            Ok(()) => {
                scope.note(What::ScopeEnd);
                scope.comm.close(tag);
                let mut report = scope.report;
                report.count(scope.scheduler.counts());
                report.messages = scope.scheduler.take_messages();
                report.elapsed = scope.comm.now().saturating_sub(begin);
                let kinds = registry.names().map(str::to_owned).collect();
                report.trace = options.trace.is_some().then(|| {
                    let trace = scope.recorder.into_trace(rank, options.workers, kinds);
                    trace.under(&options.policy)
                });
                Ok(report)
            }
            Err(error) => {
                scope.comm.abort(&error.to_string());
                Err(error)
            }
        };
    };
    let started = if threads.is_empty() {
        main();
        Ok(())
    } else {
        provider.run(threads, Box::new(main))
    };
    match started {
        Ok(()) => outcome,
        Err(error) => {
            if let Some(comm) = comm {
                comm.abort("it could not start its workers");
            }
            Err(ScopeError::Workers(error.to_string()))
        }
    }
}

impl<'a, E: ?Sized + Sync> Scope<'a, E> {
    /// Makes a collective group. Every rank makes its groups in the same order.
    pub fn group<O>(&mut self) -> Group<O> {
        Group::new(self.scheduler.group(), Some(self.number))
    }

    /// Makes a group of this rank alone: only it forks into the group and joins it.
    pub fn rooted_group<O>(&mut self) -> Group<O> {
        let ancestry = self.numbers.group(self.comm.rank(), None);
        Group::new(ancestry, Some(self.number))
    }

    /// Puts a task into a group. Its results, and those of all its descendants, come to this rank.
    /// A group that was cancelled takes tasks and drops them.
    ///
    /// # Errors
    /// It fails if the kind of task is not registered, if a join of this collective group has
    /// answered `None`, or if the scope was [closed](Self::close).
    pub fn fork<T: Task<E>>(
        &mut self,
        group: &Group<T::Output>,
        task: T,
    ) -> Result<(), ScopeError> {
        self.must_own(group)?;
        if self.closed {
            return Err(ScopeError::Closed(T::NAME));
        }
        let ancestry = &group.ancestry;
        if let GroupId::Collective(_) = ancestry.group()
            && !ancestry.is_cancelled()
            && self.scheduler.is_exhausted(ancestry)
        {
            return Err(ScopeError::Exhausted(T::NAME));
        }
        let payload = self.payload(Box::new(task), None)?;
        let membership = self.scheduler.membership(ancestry, None);
        self.scheduler.fork(membership, payload);
        Ok(())
    }

    /// Returns the next result of the tasks of a group that were forked here, whichever comes
    /// first.
    ///
    /// While it waits, the rank runs and steals tasks of this group and its descendants. A result
    /// is handed out as soon as the task that runs on this thread ends its slice and waits in no
    /// join. `None` means that every task of the group has finished on every rank and all results
    /// were taken. A task that failed is an inner `Err`.
    ///
    /// # Errors
    /// It fails if the scope cannot go on; see [`ScopeError`].
    pub fn join<O: Send + 'static>(
        &mut self,
        group: &Group<O>,
    ) -> Result<Option<Result<O, TaskError>>, ScopeError> {
        self.must_own(group)?;
        let ancestry = &group.ancestry;
        if let Some(outcome) = self.scheduler.next_result(ancestry) {
            return Ok(Some(outcome.typed()));
        }
        self.note(What::JoinBegin);
        let within = ancestry.group();
        let is_other = |(membership, _): &mut Running<E>| !membership.ancestry().is_within(within);
        if let Some(running) = self.current.take_if(is_other) {
            self.put_back(running);
        }
        let joined = loop {
            self.scheduler.waits_in(within);
            if self.scheduler.is_exhausted(ancestry) {
                break None;
            }
            self.turn(Some(within), false)?;
            if let Some(outcome) = self.scheduler.next_result(ancestry) {
                break Some(outcome.typed());
            }
        };
        self.scheduler.goes_on();
        self.note(What::JoinEnd);
        Ok(joined)
    }

    /// Cancels a group, with all groups that its tasks made. Tasks that wait in a pool are dropped
    /// on every rank, and running ones hear of it when they [ask](crate::Context::is_cancelled).
    /// Joins of the group go on to hand out the results that there are, and then end.
    ///
    /// # Errors
    /// It fails if the scope cannot go on.
    pub fn cancel<O>(&mut self, group: &Group<O>) -> Result<(), ScopeError> {
        self.must_own(group)?;
        self.note(What::Cancelled);
        self.scheduler.cancel(&group.ancestry);
        self.take_back();
        self.flush()
    }

    /// Says that the body of this rank forks no more. Tasks may still hyperfork, and joins go on as
    /// before. Once all bodies have said so and wait in a join of the last group that has tasks or
    /// results, the end of this group is the end of the scope: ranks then need one agreement less
    /// before they leave.
    pub fn close(&mut self) {
        self.closed = true;
        self.scheduler.closed();
    }

    /// Says what this rank does while its body waits, in joins and for the end, and no worker has
    /// anything to run.
    ///
    /// It is called if tasks have run or messages have come since the last time, and is given these
    /// messages, sorted by sender, and of each in order. The [report](ScopeReport::messages) has
    /// the rest. No message is read meanwhile, so it should take no longer than the slice of a
    /// task. Whether and when it is called depends on how ranks wait, so it must do nothing that is
    /// collective.
    pub fn meanwhile(
        &mut self,
        work: impl FnMut(&mut dyn Comm, Vec<(Rank, Vec<u8>)>) -> Result<(), ScopeError> + 'a,
    ) {
        self.while_waiting = Some(WhileWaiting {
            work: Box::new(work),
            seen: None,
        });
    }

    /// Does the work for waits, if there is anything new to do, and returns whether there was.
    fn work_while_waiting(&mut self) -> Result<bool, ScopeError> {
        let Some(while_waiting) = &mut self.while_waiting else {
            return Ok(false);
        };
        let now = Some([self.report.tasks, self.scheduler.messages_arrived()]);
        if while_waiting.seen == now {
            return Ok(false);
        }
        while_waiting.seen = now;
        let begin = self.comm.now();
        (while_waiting.work)(self.comm, self.scheduler.take_messages())?;
        self.report.meanwhile += self.comm.now().saturating_sub(begin);
        Ok(true)
    }

    /// Tells all ranks a value of a bound; returns whether it is better than what this rank knew.
    /// See [`Context::improve`](crate::Context::improve).
    ///
    /// # Errors
    /// It fails if the bound is not [registered](Registry::with_bound), or if the scope cannot go
    /// on.
    pub fn improve<V: BoundValue>(
        &mut self,
        bound: Bound<V>,
        value: V,
    ) -> Result<bool, ScopeError> {
        let place = self.place_of(bound)?;
        let better = self.bounds.merge(place, bound.code(value));
        if better {
            self.scheduler.improve(place, self.bounds.get(place));
            self.flush()?;
        }
        Ok(better)
    }

    /// Returns the best value of a bound that this rank knows; `None` if it knows none. News of
    /// others are read while the body waits in joins.
    ///
    /// # Errors
    /// It fails if the bound is not [registered](Registry::with_bound).
    pub fn best<V: BoundValue>(&self, bound: Bound<V>) -> Result<Option<V>, ScopeError> {
        let place = self.place_of(bound)?;
        Ok(bound.value(self.bounds.get(place)))
    }

    fn place_of<V: BoundValue>(&self, bound: Bound<V>) -> Result<u16, ScopeError> {
        let place = self.bounds.place(bound.key());
        place.ok_or_else(|| ScopeError::UnknownBound(bound.name()))
    }

    /// Publishes a block of bytes until the scope ends, to be [needed](Task::needs) by tasks on any
    /// rank. A newer version replaces an older one. It is to be called before the next join of this
    /// rank: while the body waits there, and afterwards, a request for a block that was not
    /// published is refused.
    ///
    /// # Errors
    /// It fails if this version or a newer one was published before, or if the block is longer than
    /// a message may be.
    pub fn publish(
        &mut self,
        id: u64,
        version: u32,
        bytes: impl Into<Bytes>,
    ) -> Result<BlockName, ScopeError> {
        let bytes = bytes.into();
        let [_, limit] = self.longest;
        if bytes.len() > limit {
            let home = self.comm.rank();
            let error = BlockError::TooLong {
                name: BlockName { home, id, version },
                bytes: bytes.len() as u64,
                limit: limit as u64,
            };
            return Err(error.into());
        }
        let name = self.scheduler.publish(id, version, bytes)?;
        self.flush()?;
        Ok(name)
    }

    fn must_own<O>(&self, group: &Group<O>) -> Result<(), ScopeError> {
        if group.scope == Some(self.number) {
            return Ok(());
        }
        Err(ScopeError::Foreign(group.ancestry.group().to_string()))
    }

    /// Returns this rank.
    #[must_use]
    pub fn rank(&self) -> Rank {
        self.comm.rank()
    }

    /// Returns how many ranks take part.
    #[must_use]
    pub fn size(&self) -> usize {
        self.comm.size()
    }

    /// Works for others until the scope is exhausted everywhere.
    fn finish(&mut self) -> Result<(), ScopeError> {
        self.scheduler.body_ended();
        while !self.scheduler.may_leave() {
            self.turn(None, false)?;
        }
        self.note(What::Dry);
        self.flush()
    }

    /// Makes the payload of a task that the body has forked, or a task of the kind `by`.
    fn payload(&self, body: Box<dyn Erased<E>>, by: Option<u16>) -> Result<Payload<E>, ScopeError> {
        let kind = self.registry.kind_of(&*body);
        let kind = kind.ok_or_else(|| ScopeError::Unregistered {
            task: body.name(),
            rank: self.comm.rank(),
            by: by.and_then(|kind| self.registry.kind(kind).ok().map(|kind| kind.name)),
        })?;
        Ok(Payload::new(kind, body, self.comm.rank()))
    }
}

/// The number of the next scope of this process.
static SCOPES: atomic::AtomicU64 = atomic::AtomicU64::new(0);
