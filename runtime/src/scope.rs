//! A scope: the stretch of a program in which ranks fork, join and steal together.
//!
//! This is the driver of a rank's [scheduler](crate::scheduler) over any [`Comm`]: it feeds it messages
//! and what tasks leave behind, and carries out what it decides. The rank's main thread is worker 0 and
//! the only one that sends and receives. It does so between slices of its own task, so a task that
//! returns in time delays nobody.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, unbounded};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::comm::{Collectives, Comm, CommError, Rank, Tag};
use crate::policy::ScopeOptions;
use crate::scheduler::message::{GroupId, Message};
use crate::scheduler::{Counts, Scheduler};
use crate::task::{Erased, Registry, Task, TaskError};
use crate::wire;
use crate::worker::{Job, Outcome, Slice, Worker, work};

/// All messages of scopes.
const TAG: Tag = Tag(0xff10);
/// Longest time an idle rank sleeps before it looks around again.
const NAP: Duration = Duration::from_micros(200);
/// And the shortest.
const SHORTEST_NAP: Duration = Duration::from_nanos(500);
/// The same while its own workers are busy: their reports do not wake it.
const SHORT_NAP: Duration = Duration::from_micros(10);

/// A thread group: tasks whose results are joined together. Collective: every rank makes its groups
/// in the same order, and joins them in that order.
pub struct Group<O> {
    id: GroupId,
    output: PhantomData<fn() -> O>,
}

impl<O> fmt::Debug for Group<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Group({})", self.id)
    }
}

/// Why a scope could not go on.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ScopeError {
    /// A message could not be sent or received.
    #[error(transparent)]
    Comm(#[from] CommError),
    /// A task failed, and the body passed the error on.
    #[error(transparent)]
    Task(#[from] TaskError),
    /// Ranks know different kinds of tasks: they run different programs.
    #[error(
        "rank {} registered the tasks [{theirs}], rank {} registered [{ours}]; run the same program on \
         every rank",
        other.0, rank.0
    )]
    Registries {
        /// The rank that noticed.
        rank: Rank,
        /// The rank that differs.
        other: Rank,
        /// What this rank registered.
        ours: String,
        /// What that rank registered.
        theirs: String,
    },
    /// A task of a kind that was not registered.
    #[error("task `{0}` is not registered; add `.with::<…>()` to the registry")]
    Unregistered(&'static str),
    /// A task or result could not be made into bytes.
    #[error("task `{task}` cannot be sent: {what}")]
    Unsendable {
        /// The task's registered name.
        task: &'static str,
        /// What went wrong.
        what: String,
    },
    /// A scope without workers can do nothing.
    #[error("a rank needs at least one worker")]
    NoWorkers,
    /// The system gives no more threads.
    #[error("a worker could not be started: {0}; take fewer")]
    Workers(String),
    /// Ranks in virtual time have no threads.
    #[error("a rank in virtual time has one worker; take more ranks instead")]
    NoThreads,
    /// What the body had to say.
    #[error("{0}")]
    Body(String),
}

/// What a rank did in a scope.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ScopeReport {
    /// Tasks that finished here, pieces included.
    pub tasks: u64,
    /// Children hyperforked here.
    pub hyperforks: u64,
    /// Pieces that tasks running here gave away.
    pub splits: u64,
    /// Units of work that tasks charged here.
    pub work: u64,
    /// Steal requests this rank sent.
    pub requests: u64,
    /// Requests of its own that brought tasks.
    pub served: u64,
    /// Requests of its own that brought nothing.
    pub refused: u64,
    /// Answers that came after the time-out.
    pub late: u64,
    /// Tasks stolen by this rank.
    pub tasks_in: u64,
    /// Tasks stolen from this rank.
    pub tasks_out: u64,
    /// Bytes this rank sent for the protocol.
    pub bytes: u64,
    /// Time each worker spent in tasks.
    pub busy: Vec<Duration>,
    /// Time from start to end of the scope.
    pub elapsed: Duration,
}

impl ScopeReport {
    /// Adds what the same rank did in another scope.
    pub fn add(&mut self, other: &Self) {
        self.tasks += other.tasks;
        self.hyperforks += other.hyperforks;
        self.splits += other.splits;
        self.work += other.work;
        self.requests += other.requests;
        self.served += other.served;
        self.refused += other.refused;
        self.late += other.late;
        self.tasks_in += other.tasks_in;
        self.tasks_out += other.tasks_out;
        self.bytes += other.bytes;
        if self.busy.len() < other.busy.len() {
            self.busy.resize(other.busy.len(), Duration::ZERO);
        }
        for (mine, theirs) in self.busy.iter_mut().zip(&other.busy) {
            *mine += *theirs;
        }
        self.elapsed += other.elapsed;
    }

    fn count(&mut self, counts: Counts) {
        self.requests = counts.requests;
        self.served = counts.served;
        self.refused = counts.refused;
        self.late = counts.late;
        self.tasks_in = counts.tasks_in;
        self.tasks_out = counts.tasks_out;
        self.splits = counts.splits;
    }
}

/// A task as it travels.
#[derive(Serialize, Deserialize)]
struct Parcel {
    home: Rank,
    kind: u16,
    bytes: Vec<u8>,
}

/// A result as it travels.
#[derive(Serialize, Deserialize)]
struct Receipt {
    kind: u16,
    value: Result<Vec<u8>, TaskError>,
}

/// A rank's side of a scope.
pub struct Scope<'a, E: ?Sized> {
    comm: &'a mut dyn Comm,
    registry: &'a Registry<E>,
    env: &'a E,
    scheduler: Scheduler<Job<E>, Outcome>,
    /// Worker 0, on this thread.
    worker: Worker<E>,
    crew: Vec<Hand<E>>,
    slices: Receiver<Slice<E>>,
    own_split: Arc<AtomicBool>,
    report: ScopeReport,
}

/// A worker that is another thread, as the main thread sees it.
struct Hand<E: ?Sized> {
    tasks: Sender<(GroupId, Job<E>)>,
    split_wanted: Arc<AtomicBool>,
    busy: bool,
}

impl<E: ?Sized> fmt::Debug for Scope<'_, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.scheduler.describe())
    }
}

/// Runs `body` on this rank while it works with all others on the tasks that any of them forks.
///
/// Collective: every rank calls it, with the same registry. It returns when no task is left on any rank.
/// Tasks run in `env`, which they only read. The second value says what this rank did.
///
/// # Errors
/// Those of the body, of messages, and of ranks that do not fit together. The job is then ended on every
/// rank, so that nobody waits.
pub fn scope<'a, E: ?Sized + Sync, R>(
    comm: &'a mut dyn Comm,
    registry: &'a Registry<E>,
    env: &'a E,
    options: &ScopeOptions,
    body: impl FnOnce(&mut Scope<'a, E>) -> Result<R, ScopeError>,
) -> Result<(R, ScopeReport), ScopeError> {
    if options.workers == 0 {
        return Err(ScopeError::NoWorkers);
    }
    if options.workers > 1 && !comm.has_threads() {
        return Err(ScopeError::NoThreads);
    }
    let begin = comm.now();
    compare_registries(comm, registry)?;
    let rank = comm.rank();
    let stop = AtomicBool::new(false);
    let make = |index: usize| {
        let split_wanted = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&split_wanted);
        (
            Worker::new(rank, index, options.slice, options.split, flag),
            split_wanted,
        )
    };
    let (worker, own_split) = make(0);
    let (report_to, slices) = unbounded();
    thread::scope(|threads| {
        let mut crew = Vec::new();
        for index in 1..options.workers {
            let (worker, split_wanted) = make(index);
            let (tasks, inbox) = unbounded();
            let (report_to, stop) = (report_to.clone(), &stop);
            thread::Builder::new()
                .name(format!("worker {index} of rank {}", rank.0))
                .spawn_scoped(threads, move || work(worker, env, &inbox, &report_to, stop))
                .map_err(|error| {
                    comm.abort("it could not start its workers");
                    ScopeError::Workers(error.to_string())
                })?;
            crew.push(Hand {
                tasks,
                split_wanted,
                busy: false,
            });
        }
        let ranks = comm.size() as u32;
        let mut scope = Scope {
            comm,
            registry,
            env,
            scheduler: Scheduler::new(rank, ranks, options),
            worker,
            crew,
            slices,
            own_split,
            report: ScopeReport {
                busy: vec![Duration::ZERO; options.workers],
                ..ScopeReport::default()
            },
        };
        let outcome = body(&mut scope).and_then(|value| scope.finish().map(|()| value));
        match outcome {
            Ok(value) => {
                let mut report = scope.report;
                report.count(scope.scheduler.counts());
                report.elapsed = scope.comm.now().saturating_sub(begin);
                Ok((value, report))
            }
            Err(error) => {
                stop.store(true, Ordering::Relaxed);
                scope.comm.abort(&error.to_string());
                Err(error)
            }
        }
    })
}

impl<E: ?Sized + Sync> Scope<'_, E> {
    /// Makes a group; collective, in the same order on every rank.
    pub fn group<O>(&mut self) -> Group<O> {
        Group {
            id: self.scheduler.group(),
            output: PhantomData,
        }
    }

    /// Puts a task into a group; its results, and those of all its descendants, come to this rank.
    ///
    /// # Errors
    /// The kind of task is not registered.
    pub fn fork<T: Task<E>>(
        &mut self,
        group: &Group<T::Output>,
        task: T,
    ) -> Result<(), ScopeError> {
        let home = self.comm.rank();
        self.put(group.id, home, Box::new(task))
    }

    /// The next result of the group's tasks that were forked here, from whichever comes first.
    ///
    /// While it waits, the rank runs tasks and steals. `None` means that every task of the group has
    /// finished on every rank and all results were taken. A task that panicked is an inner `Err`.
    ///
    /// # Errors
    /// The scope cannot go on; see [`ScopeError`].
    pub fn join<O: Send + 'static>(
        &mut self,
        group: &Group<O>,
    ) -> Result<Option<Result<O, TaskError>>, ScopeError> {
        loop {
            if let Some(outcome) = self.scheduler.next_result(group.id) {
                return outcome.value.map_or_else(
                    |error| Ok(Some(Err(error))),
                    |value| match value.downcast() {
                        Ok(value) => Ok(Some(Ok(*value))),
                        Err(_) => Err(self.foreign_result(outcome.kind)),
                    },
                );
            }
            self.scheduler.waits_in(group.id);
            if self.scheduler.is_exhausted(group.id) {
                return Ok(None);
            }
            self.turn()?;
        }
    }

    /// This rank.
    #[must_use]
    pub fn rank(&self) -> Rank {
        self.comm.rank()
    }

    /// How many ranks take part.
    #[must_use]
    pub fn size(&self) -> usize {
        self.comm.size()
    }

    /// Works for others until the scope is done everywhere.
    fn finish(&mut self) -> Result<(), ScopeError> {
        self.scheduler.body_ended();
        while !self.scheduler.may_leave() {
            self.turn()?;
        }
        self.flush()
    }

    /// One round: messages, what tasks left, decisions, and a slice of work or a nap.
    fn turn(&mut self) -> Result<(), ScopeError> {
        let mut progress = self.receive()?;
        while let Ok(slice) = self.slices.try_recv() {
            self.take(slice)?;
            progress = true;
        }
        let now = self.comm.now();
        self.scheduler.tick(now);
        let anybody_busy = !self.worker.is_idle() || self.crew.iter().any(|hand| hand.busy);
        if anybody_busy && self.scheduler.wants_split(now) {
            self.ask_for_splits();
        }
        for hand in self.crew.iter_mut().filter(|hand| !hand.busy) {
            let Some((group, job)) = self.scheduler.next_task() else {
                break;
            };
            // A worker ends only when this channel does.
            hand.busy = hand.tasks.send((group, job)).is_ok();
        }
        if self.worker.is_idle()
            && let Some((group, job)) = self.scheduler.next_task()
        {
            self.worker.start(group, job);
        }
        self.flush()?;
        if let Some(mut slice) = self.worker.slice(self.env) {
            slice.busy = self.comm.compute(slice.charged, slice.busy);
            return self.take(slice);
        }
        self.scheduler.idle(now);
        self.flush()?;
        if !progress && !self.scheduler.may_leave() {
            let nap = if self.crew.iter().any(|hand| hand.busy) {
                SHORT_NAP
            } else {
                self.scheduler
                    .next_deadline(now)
                    .map_or(NAP, |at| at.saturating_sub(now).clamp(SHORTEST_NAP, NAP))
            };
            self.comm.wait(nap)?;
        }
        Ok(())
    }

    /// Splits the task of this thread, which is between two slices, for a thief that has just asked.
    fn split_own(&mut self) {
        if let Some((group, piece)) = self.worker.split() {
            self.scheduler.split_off(group, piece);
        }
    }

    /// Asks every busy worker of this rank to give something away.
    fn ask_for_splits(&self) {
        self.own_split
            .store(!self.worker.is_idle(), Ordering::Relaxed);
        for hand in self.crew.iter().filter(|hand| hand.busy) {
            hand.split_wanted.store(true, Ordering::Relaxed);
        }
    }

    /// Hands what a slice left to the scheduler.
    fn take(&mut self, slice: Slice<E>) -> Result<(), ScopeError> {
        self.report.busy[slice.worker] += slice.busy;
        self.report.work += slice.charged;
        self.report.hyperforks += slice.forked.len() as u64;
        for task in slice.forked {
            self.put(slice.group, slice.home, task)?;
        }
        for body in slice.pieces {
            let job = Job {
                home: slice.home,
                kind: slice.kind,
                body,
            };
            self.scheduler.split_off(slice.group, job);
        }
        for value in slice.results {
            self.scheduler.produced(
                slice.group,
                slice.home,
                Outcome {
                    kind: slice.kind,
                    value,
                },
            );
        }
        if slice.done {
            self.report.tasks += 1;
            if let Some(hand) = slice
                .worker
                .checked_sub(1)
                .and_then(|i| self.crew.get_mut(i))
            {
                hand.busy = false;
            }
            self.scheduler.finished(slice.group);
        }
        Ok(())
    }

    fn put(
        &mut self,
        group: GroupId,
        home: Rank,
        body: Box<dyn Erased<E>>,
    ) -> Result<(), ScopeError> {
        let kind = self.registry.kind_of(&*body);
        let kind = kind.ok_or_else(|| ScopeError::Unregistered(body.name()))?;
        self.scheduler.fork(group, Job { home, kind, body });
        Ok(())
    }

    /// Reads messages; true if there were any.
    fn receive(&mut self) -> Result<bool, ScopeError> {
        let mut any = false;
        while let Some(message) = self.comm.try_recv(TAG)? {
            any = true;
            let from = message.from;
            let malformed = |what: String| CommError::Malformed { from, what };
            let message: Message<Parcel, Receipt> =
                wire::decode(&message.bytes).map_err(malformed)?;
            let message = self.unpack(message).map_err(malformed)?;
            if matches!(message, Message::StealRequest) && self.scheduler.wants_split_on_request() {
                self.split_own();
            }
            let now = self.comm.now();
            self.scheduler
                .receive(from, message, now)
                .map_err(|v| CommError::Malformed {
                    from: v.from,
                    what: v.what,
                })?;
        }
        Ok(any)
    }

    /// Sends what the scheduler wants sent.
    fn flush(&mut self) -> Result<(), ScopeError> {
        while let Some((to, message)) = self.scheduler.outgoing() {
            let message = self.pack(message)?;
            let bytes = wire::encode(&message).map_err(|what| ScopeError::Unsendable {
                task: "message",
                what,
            })?;
            self.report.bytes += bytes.len() as u64;
            self.comm.send(to, TAG, bytes)?;
        }
        Ok(())
    }

    /// Makes tasks and results into bytes.
    fn pack(
        &self,
        message: Message<Job<E>, Outcome>,
    ) -> Result<Message<Parcel, Receipt>, ScopeError> {
        Ok(match message {
            Message::StealAnswer(jobs) => {
                let parcels = jobs.into_iter().map(|(group, job)| {
                    let bytes = job.body.encode();
                    let bytes = bytes.map_err(|what| ScopeError::Unsendable {
                        task: job.body.name(),
                        what,
                    })?;
                    Ok((
                        group,
                        Parcel {
                            home: job.home,
                            kind: job.kind,
                            bytes,
                        },
                    ))
                });
                Message::StealAnswer(parcels.collect::<Result<_, ScopeError>>()?)
            }
            Message::Results(results) => {
                let receipts = results
                    .into_iter()
                    .map(|(group, outcome)| Ok((group, self.pack_result(outcome)?)));
                Message::Results(receipts.collect::<Result<_, ScopeError>>()?)
            }
            Message::StealRequest => Message::StealRequest,
            Message::Wave(number) => Message::Wave(number),
            Message::Report(number, census) => Message::Report(number, census),
            Message::Exhausted(groups, all) => Message::Exhausted(groups, all),
            Message::Drained => Message::Drained,
            Message::Leave => Message::Leave,
        })
    }

    fn pack_result(&self, outcome: Outcome) -> Result<Receipt, ScopeError> {
        let kind = self.registry.kind(outcome.kind);
        let kind = kind.ok_or(ScopeError::Unregistered("unknown"))?;
        let encode = |value| {
            (kind.encode_output)(&value).map_err(|what| ScopeError::Unsendable {
                task: kind.name,
                what,
            })
        };
        let value = match outcome.value {
            Ok(value) => Ok(encode(value)?),
            Err(error) => Err(error),
        };
        let kind = outcome.kind;
        Ok(Receipt { kind, value })
    }

    /// Makes bytes into tasks and results; the error is a sentence.
    fn unpack(
        &self,
        message: Message<Parcel, Receipt>,
    ) -> Result<Message<Job<E>, Outcome>, String> {
        let kind = |number: u16| {
            self.registry
                .kind(number)
                .ok_or_else(|| format!("no kind of task has number {number}"))
        };
        Ok(match message {
            Message::StealAnswer(parcels) => {
                let jobs = parcels.into_iter().map(|(group, parcel)| {
                    if parcel.home.index() >= self.comm.size() {
                        return Err(format!("a task whose home is rank {}", parcel.home.0));
                    }
                    let body = (kind(parcel.kind)?.decode)(&parcel.bytes)?;
                    Ok((
                        group,
                        Job {
                            home: parcel.home,
                            kind: parcel.kind,
                            body,
                        },
                    ))
                });
                Message::StealAnswer(jobs.collect::<Result<_, String>>()?)
            }
            Message::Results(receipts) => {
                let results = receipts.into_iter().map(|(group, receipt)| {
                    let decode = kind(receipt.kind)?.decode_output;
                    let value = match receipt.value {
                        Ok(bytes) => Ok(decode(&bytes)?),
                        Err(error) => Err(error),
                    };
                    let kind = receipt.kind;
                    Ok((group, Outcome { kind, value }))
                });
                Message::Results(results.collect::<Result<_, String>>()?)
            }
            Message::StealRequest => Message::StealRequest,
            Message::Wave(number) => Message::Wave(number),
            Message::Report(number, census) => Message::Report(number, census),
            Message::Exhausted(groups, all) => Message::Exhausted(groups, all),
            Message::Drained => Message::Drained,
            Message::Leave => Message::Leave,
        })
    }

    /// A result of another type than the group's.
    fn foreign_result(&self, kind: u16) -> ScopeError {
        let task = self.registry.kind(kind).map_or("unknown", |k| k.name);
        let what = "its result is not of the type of this group".to_owned();
        ScopeError::Unsendable { task, what }
    }
}

/// Makes sure that all ranks run the same program.
fn compare_registries<E: ?Sized>(
    comm: &mut dyn Comm,
    registry: &Registry<E>,
) -> Result<(), ScopeError> {
    if comm.size() == 1 {
        return Ok(());
    }
    let ours = registry.names().collect::<Vec<_>>().join(", ");
    let all = comm.allgather(ours.clone().into_bytes())?;
    let different = (0..)
        .map(Rank)
        .zip(&all)
        .find(|(_, names)| **names != ours.as_bytes());
    different.map_or(Ok(()), |(other, names)| {
        let theirs = String::from_utf8_lossy(names).into_owned();
        Err(ScopeError::Registries {
            rank: comm.rank(),
            other,
            ours,
            theirs,
        })
    })
}
