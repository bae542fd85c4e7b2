//! A scope: the stretch of a program in which ranks fork, join and steal together.
//!
//! This is the driver of a rank's [scheduler](crate::scheduler) over any [`Comm`]: it feeds it messages
//! and what tasks leave behind, and carries out what it decides. The rank's main thread is the only one that
//! sends and receives. It is also worker 0, and looks after messages between batches of its own tasks, so a
//! task that returns in time delays nobody; or, as a [progress thread](ScopeOptions::progress_thread), it runs
//! none, and no task delays anybody.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write as _};
use std::panic;
use std::sync::{Arc, atomic};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::block::{BlockError, BlockName, Bytes};
use crate::comm::{Comm, CommError, Rank, Tag};
use crate::group::Group;
use crate::parcel::{self, Badge, Cargo, Job, Outcome, Parcel, Receipt};
use crate::policy::{ScopeOptions, Split};
use crate::scheduler::message::Message;
use crate::scheduler::{Counts, GroupId, Line, Scheduler, Ticket, Work as _};
use crate::sync::{self, AtomicBool, Ordering, Receiver, Sender, unbounded};
use crate::task::{Erased, Host, Registry, Site, Stopped, Task, TaskError};
use crate::trace::{Recorder, Trace, What};
use crate::wire;
use crate::worker::{Numbers, Order, Ran, Report, Slice, Worker, run_slice, split};

/// Messages of scopes: each has a tag of its own, so that a late one cannot meet the next scope.
const FIRST_TAG: u16 = 0x8000;
const TAGS: u16 = 0x4000;
/// What rank 0 says before them.
const PROGRAM: Tag = Tag(FIRST_TAG + TAGS);
/// Longest time an idle rank sleeps before it looks around again.
const NAP: Duration = Duration::from_micros(200);
/// And the shortest.
const SHORTEST_NAP: Duration = Duration::from_nanos(500);
/// The same while its own workers are busy: their reports do not wake it.
const SHORT_NAP: Duration = Duration::from_micros(10);
/// Most tasks that are run between two looks at messages, and how long that may take: with less than half
/// of it the next batch is twice as large, with more than all of it half as large.
const LARGEST_BATCH: u32 = 64;
const BATCH_TIME: Duration = Duration::from_micros(8);
/// A rank that reads no messages for so long because of a task is worth a note in its trace.
const DEAF: Duration = Duration::from_millis(10);
/// Least time between two notes of how many tasks are in the pool.
const POOL_NOTES: Duration = Duration::from_micros(50);

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
    #[error(
        "task `{task}`, forked on rank {} by {}, is not registered; add `.with::<…>()` to the registry",
        rank.0, forker(*by)
    )]
    Unregistered {
        /// Its name.
        task: &'static str,
        /// The rank that forked it.
        rank: Rank,
        /// The task that forked it, if it was not the body.
        by: Option<&'static str>,
    },
    /// A block could not be published.
    #[error(transparent)]
    Block(#[from] BlockError),
    /// A scope without workers can do nothing.
    #[error("a rank needs at least one worker")]
    NoWorkers,
    /// The system gives no more threads.
    #[error("a worker could not be started: {0}; take fewer")]
    Workers(String),
    /// A task was forked into a collective group of which every rank knows that nothing will come any more.
    #[error(
        "task `{0}` was forked into a group that was joined to its end; make another group for it"
    )]
    Exhausted(&'static str),
    /// A group of another scope, or one that a task made.
    #[error("{0} was not made by this scope's body: make a group in the scope it is used in")]
    Foreign(String),
    /// Ranks were told different things of how to take part.
    #[error(
        "`recover` is {ours} on rank {} and {} on rank {}; give every rank the same options",
        rank.0, !ours, other.0
    )]
    Options {
        /// The rank that noticed.
        rank: Rank,
        /// The rank that differs.
        other: Rank,
        /// Whether this rank was to survive deaths.
        ours: bool,
    },
    /// A rank returned while this one is in a scope: it took no part, or this one takes part in one more.
    #[error(
        "rank {} returned without taking part in this scope; every rank must call scope equally often",
        rank.0
    )]
    Absent {
        /// The rank that is gone.
        rank: Rank,
    },
    /// Every rank's body waits in a join, or has ended, and nothing is left that could end a wait.
    #[error(
        "no rank can go on: {0}; make and join collective groups in the same order on every rank"
    )]
    Stuck(String),
    /// Ranks in virtual time have no threads.
    #[error(
        "a rank in virtual time has one worker and no thread for messages; take more ranks instead"
    )]
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
    /// Tasks dropped here because their group was cancelled.
    pub dropped: u64,
    /// Tasks run again because a rank died that had them.
    pub reruns: u64,
    /// Blocks fetched from other ranks.
    pub fetches: u64,
    /// Blocks served to other ranks.
    pub blocks_served: u64,
    /// Bytes this rank sent for the protocol.
    pub bytes: u64,
    /// Time each worker spent in tasks.
    pub busy: Vec<Duration>,
    /// Time from start to end of the scope.
    pub elapsed: Duration,
    /// What happened when, if [`ScopeOptions::trace`] asked for it.
    pub trace: Option<Trace>,
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
        self.dropped += other.dropped;
        self.reruns += other.reruns;
        self.fetches += other.fetches;
        self.blocks_served += other.blocks_served;
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
        self.dropped = counts.dropped;
        self.reruns = counts.reruns;
        self.fetches = counts.fetches;
        self.blocks_served = counts.blocks_served;
    }
}

/// A rank's side of a scope.
pub struct Scope<'a, E: ?Sized> {
    comm: &'a mut dyn Comm,
    /// Tells its groups from those of other scopes.
    number: u64,
    tag: Tag,
    registry: &'a Registry<E>,
    env: &'a E,
    scheduler: Scheduler<Cargo<E>, Outcome>,
    /// Whether this thread is worker 0.
    works: bool,
    /// The task of this thread between two slices.
    current: Option<Job<E>>,
    sites: Vec<Site<E>>,
    split_wanted: Arc<AtomicBool>,
    how: Split,
    slice: u32,
    batch: u32,
    /// Time this thread has spent in joins of tasks.
    away: Duration,
    hands: Vec<Hand<E>>,
    /// Turns through the hands that wait.
    turn: usize,
    reports: Receiver<Report<E>>,
    numbers: Numbers,
    /// What was lent, by lease, if it may have to be run again.
    kept: Option<BTreeMap<u64, (Rank, Vec<Parcel>)>>,
    /// Why tasks were [stopped](Stopped).
    failure: Option<ScopeError>,
    recorder: Recorder,
    heard: Heard,
    watch: Watch,
    report: ScopeReport,
}

/// What a rank that records knows of its own attention.
#[derive(Default)]
struct Heard {
    /// When it last looked for messages.
    at: Duration,
    /// The kind of the task that its main thread has run since.
    ran: Option<u16>,
    /// When it last noted the size of its pool, and which.
    pool_at: Duration,
    pool: usize,
}

/// A worker that is another thread, as the main thread sees it.
struct Hand<E: ?Sized> {
    orders: Sender<Order<E>>,
    split_wanted: Arc<AtomicBool>,
    /// Its tasks, the innermost last.
    frames: Vec<Frame>,
}

/// Stops workers when dropped: whether the body returns or panics, nobody waits for a task that goes on.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

enum Frame {
    Runs,
    WaitsIn(Arc<Line>),
}

/// What a slice charged.
#[derive(Clone, Copy, Debug)]
struct Charged {
    units: u64,
    /// By all slices of the task on this rank.
    in_all: u64,
    done: bool,
}

/// Notices that nothing moves.
struct Watch {
    after: Option<Duration>,
    moved: Duration,
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
    let refused = match options.workers {
        0 => Some(ScopeError::NoWorkers),
        1 if !options.progress_thread => None,
        _ => (!comm.has_threads()).then_some(ScopeError::NoThreads),
    };
    if let Some(error) = refused {
        comm.abort(&error.to_string());
        return Err(error);
    }
    let begin = comm.now();
    let tag = open_tag(comm);
    comm.tolerate_deaths(options.recover);
    compare_programs(comm, registry, options.recover)?;
    let rank = comm.rank();
    let stop = AtomicBool::new(false);
    let (report_to, reports) = unbounded();
    let numbers = Numbers::default();
    sync::scope(|threads| {
        let _over = Over(&stop);
        let mut hands = Vec::new();
        for index in usize::from(!options.progress_thread)..options.workers {
            let split_wanted = Arc::new(AtomicBool::new(false));
            let (orders, inbox) = unbounded();
            let worker = Worker {
                rank,
                index,
                budget: options.slice.max(1),
                how: options.policy.split,
                env,
                orders: inbox,
                reports: report_to.clone(),
                split_wanted: Arc::clone(&split_wanted),
                stop: &stop,
                numbers: numbers.clone(),
                away: Duration::ZERO,
            };
            let name = format!("worker {index} of rank {}", rank.0);
            sync::spawn(threads, name, move || worker.work()).map_err(|error| {
                comm.abort("it could not start its workers");
                ScopeError::Workers(error.to_string())
            })?;
            hands.push(Hand {
                orders,
                split_wanted,
                frames: Vec::new(),
            });
        }
        let ranks = comm.size() as u32;
        let scheduler = Scheduler::new(rank, ranks, options, &|rank| comm.node_of(rank));
        let recorder = options
            .trace
            .map_or_else(Recorder::off, Recorder::with_capacity);
        let mut scope = Scope {
            number: SCOPES.fetch_add(1, Ordering::Relaxed),
            tag,
            registry,
            env,
            scheduler,
            works: !options.progress_thread,
            current: None,
            sites: Vec::new(),
            split_wanted: Arc::new(AtomicBool::new(false)),
            how: options.policy.split,
            slice: options.slice.max(1),
            batch: 1,
            away: Duration::ZERO,
            hands,
            turn: 0,
            reports,
            numbers,
            kept: options.recover.then(BTreeMap::new),
            failure: None,
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
        let outcome = body(&mut scope).and_then(|value| scope.finish().map(|()| value));
        match outcome {
            Ok(value) => {
                scope.note(What::ScopeEnd);
                scope.comm.tolerate_deaths(false);
                scope.comm.close(tag);
                let mut report = scope.report;
                report.count(scope.scheduler.counts());
                report.elapsed = scope.comm.now().saturating_sub(begin);
                let kinds = registry.names().map(str::to_owned).collect();
                report.trace = options.trace.is_some().then(|| {
                    let trace = scope.recorder.into_trace(rank, options.workers, kinds);
                    trace.under(&options.policy)
                });
                Ok((value, report))
            }
            Err(error) => {
                scope.comm.abort(&error.to_string());
                Err(error)
            }
        }
    })
}

/// Who forked a task, for people.
fn forker(by: Option<&'static str>) -> String {
    by.map_or_else(|| "the body".to_owned(), |name| format!("task `{name}`"))
}

/// The tag of the next scope.
fn open_tag(comm: &mut dyn Comm) -> Tag {
    let place = (comm.next_epoch() % u32::from(TAGS)) as u16;
    // Half a round ahead: nobody sends with it yet, and nothing of its last use is left.
    comm.reopen(Tag(FIRST_TAG + (place + TAGS / 2) % TAGS));
    Tag(FIRST_TAG + place)
}

impl<E: ?Sized + Sync> Scope<'_, E> {
    /// Makes a collective group; every rank makes its groups in the same order.
    pub fn group<O>(&mut self) -> Group<O> {
        Group::new(self.scheduler.group(), Some(self.number))
    }

    /// Makes a group of this rank alone: only it forks into the group and joins it.
    pub fn rooted_group<O>(&mut self) -> Group<O> {
        let line = self.numbers.group(self.comm.rank(), None);
        Group::new(line, Some(self.number))
    }

    /// Puts a task into a group; its results, and those of all its descendants, come to this rank. A group
    /// that was cancelled takes tasks and drops them.
    ///
    /// # Errors
    /// The kind of task is not registered, or a join of this collective group has answered `None`.
    pub fn fork<T: Task<E>>(
        &mut self,
        group: &Group<T::Output>,
        task: T,
    ) -> Result<(), ScopeError> {
        self.must_own(group)?;
        let line = &group.line;
        if let GroupId::Collective(_) = line.group()
            && !line.is_cancelled()
            && self.scheduler.is_exhausted(line)
        {
            return Err(ScopeError::Exhausted(T::NAME));
        }
        let cargo = self.cargo(Box::new(task), None)?;
        let ticket = self.scheduler.ticket(line, None);
        self.scheduler.fork(ticket, cargo);
        Ok(())
    }

    /// The next result of the group's tasks that were forked here, from whichever comes first.
    ///
    /// While it waits, the rank runs and steals tasks of this group and its descendants; a result is handed
    /// out as soon as the one that runs on this thread ends its slice and waits in no join. `None` means that
    /// every task of the group has finished on every rank and all results were taken. A task that failed is
    /// an inner `Err`.
    ///
    /// # Errors
    /// The scope cannot go on; see [`ScopeError`].
    pub fn join<O: Send + 'static>(
        &mut self,
        group: &Group<O>,
    ) -> Result<Option<Result<O, TaskError>>, ScopeError> {
        self.must_own(group)?;
        let line = &group.line;
        if let Some(outcome) = self.scheduler.next_result(line) {
            return Ok(Some(outcome.typed()));
        }
        self.note(What::JoinBegin);
        let within = line.group();
        if let Some(job) = self
            .current
            .take_if(|job| !job.badge.ticket.line().is_within(within))
        {
            self.put_back(job);
        }
        let joined = loop {
            self.scheduler.waits_in(within);
            if self.scheduler.is_exhausted(line) {
                break None;
            }
            self.turn(Some(within), false)?;
            if let Some(outcome) = self.scheduler.next_result(line) {
                break Some(outcome.typed());
            }
        };
        self.scheduler.goes_on();
        self.note(What::JoinEnd);
        Ok(joined)
    }

    /// Cancels a group, with all groups that its tasks made: tasks that wait in a pool are dropped on every
    /// rank, running ones are told when they [ask](crate::Context::is_cancelled). Its join goes on to hand
    /// out what was found, then ends.
    ///
    /// # Errors
    /// The scope cannot go on.
    pub fn cancel<O>(&mut self, group: &Group<O>) -> Result<(), ScopeError> {
        self.must_own(group)?;
        self.note(What::Cancelled);
        self.scheduler.cancel(&group.line);
        self.flush()
    }

    /// Publishes a block of bytes, to be [needed](Task::needs) by tasks on any rank, until the scope ends.
    /// A newer version replaces an older one. To be called before this rank's next join: whoever asks while
    /// it waits there, or later, for something it has not published is refused.
    ///
    /// # Errors
    /// This version, or a newer one, was published before.
    pub fn publish(
        &mut self,
        id: u64,
        version: u32,
        bytes: impl Into<Bytes>,
    ) -> Result<BlockName, ScopeError> {
        let name = self.scheduler.publish(id, version, bytes.into())?;
        self.flush()?;
        Ok(name)
    }

    fn must_own<O>(&self, group: &Group<O>) -> Result<(), ScopeError> {
        if group.scope == Some(self.number) {
            return Ok(());
        }
        Err(ScopeError::Foreign(group.line.group().to_string()))
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
            self.turn(None, false)?;
        }
        self.flush()
    }

    /// One round: messages, what other workers left, decisions, and a batch of tasks or a nap. This thread
    /// runs only tasks within that group; `nested`: for a task that waits.
    fn turn(&mut self, within: Option<GroupId>, nested: bool) -> Result<(), ScopeError> {
        let mut progress = self.receive()?;
        if !self.hands.is_empty() {
            while let Ok(report) = self.reports.try_recv() {
                self.hear(report)?;
                progress = true;
            }
        }
        let now = self.comm.now();
        if self.recorder.is_on() {
            self.note_pool(now);
        }
        self.scheduler.tick(now);
        let anybody_busy = self.current.is_some() || self.hands.iter().any(Hand::is_busy);
        if anybody_busy && self.scheduler.wants_split(now) {
            self.ask_for_splits();
        }
        progress |= self.give_orders();
        self.flush()?;
        if self.works && self.work(within, nested)? {
            self.watch.moved = now;
            return Ok(());
        }
        self.look_for_work(now, within);
        // In the tree of waves none leaves before those above it know the end, and tell it.
        if self.kept.is_none() && !self.scheduler.may_leave() {
            let mut near = self.scheduler.near();
            if let Some(rank) = near.find(|&rank| self.comm.has_left(rank)) {
                return Err(ScopeError::Absent { rank });
            }
        }
        if let Some(who) = self.scheduler.stuck() {
            return Err(ScopeError::Stuck(who.to_owned()));
        }
        self.flush()?;
        if progress {
            self.watch.moved = now;
        } else if !self.scheduler.may_leave() {
            self.complain(now);
            let nap = if self.hands.iter().any(Hand::is_busy) {
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

    /// Somebody here has nothing to do: asks for something that he may run.
    fn look_for_work(&mut self, now: Duration, within: Option<GroupId>) {
        let restless = self.hands.iter().any(|hand| hand.frames.is_empty());
        if restless {
            self.scheduler.idle(now, None);
        } else if self.works {
            self.scheduler.idle(now, within);
        } else {
            // Those that wait in a join of a task's group may need what others have of it.
            let waits = |hand: &Hand<E>| match hand.frames.last() {
                Some(Frame::WaitsIn(line)) => Some(line.group()),
                _ => None,
            };
            self.turn = self.turn.wrapping_add(1);
            let from = self.turn % self.hands.len().max(1);
            let (before, after) = self.hands.split_at(from);
            match after.iter().chain(before).find_map(waits) {
                Some(group) => self.scheduler.idle(now, Some(group)),
                None => self.scheduler.settle(),
            }
        }
    }

    /// Runs tasks on this thread for a while; false if there was none.
    #[expect(clippy::disallowed_methods, reason = "a driver reads the clock")]
    fn work(&mut self, within: Option<GroupId>, nested: bool) -> Result<bool, ScopeError> {
        let (begin, away) = (Instant::now(), self.away);
        let most = if nested || self.recorder.is_on() {
            1
        } else {
            self.batch
        };
        let (mut units, mut tasks) = (0, 0);
        let mut last_done = None;
        while tasks < most && units < u64::from(self.slice) {
            let job = match self.current.take() {
                Some(job) => job,
                None => match self.scheduler.next_task(within) {
                    Some((ticket, cargo)) => {
                        let job = self.job(ticket, cargo);
                        self.note_begin(0, &job);
                        job
                    }
                    None => break,
                },
            };
            tasks += 1;
            let charged = self.slice(job)?;
            units += charged.units;
            last_done = charged.done.then_some(charged.in_all);
            if !charged.done {
                break;
            }
        }
        if tasks == 0 {
            return Ok(false);
        }
        let took = begin.elapsed().saturating_sub(self.away - away);
        let busy = self.comm.compute(units, took);
        if let Some(units) = last_done {
            self.note_end(0, units);
        }
        self.report.busy[0] += busy;
        if busy > BATCH_TIME {
            self.batch = (self.batch / 2).max(1);
        } else if 2 * busy < BATCH_TIME && tasks == self.batch {
            self.batch = (self.batch * 2).min(LARGEST_BATCH);
        }
        Ok(true)
    }

    /// Runs a task for a slice.
    fn slice(&mut self, mut job: Job<E>) -> Result<Charged, ScopeError> {
        let mut site = self.sites.pop().unwrap_or_else(|| {
            let wanted = Arc::clone(&self.split_wanted);
            Site::new(self.comm.rank(), 0, self.slice, wanted)
        });
        let env = self.env;
        let ran = run_slice(&mut job, env, &mut site, self);
        if ran == Ran::Stopped {
            let failure = self.failure.take();
            return Err(failure.unwrap_or_else(|| ScopeError::Body("its tasks stopped".to_owned())));
        }
        let units = site.charged;
        self.heard.ran = Some(job.badge.kind);
        job.badge.charged += units;
        let charged = Charged {
            units,
            in_all: job.badge.charged,
            done: ran == Ran::Done,
        };
        self.pick_up(&mut site, &job.badge)?;
        self.sites.push(site);
        if charged.done {
            self.report.tasks += 1;
            self.scheduler.finished(&job.badge.ticket);
            return Ok(charged);
        }
        if self.split_wanted.load(Ordering::Relaxed) {
            self.split_wanted.store(false, Ordering::Relaxed);
            self.split_job(&mut job);
        }
        self.current = Some(job);
        Ok(charged)
    }

    /// Splits a task that is between two slices.
    fn split_job(&mut self, job: &mut Job<E>) {
        if let Some(piece) = split(job, self.how, self.comm.rank()) {
            self.note(What::Split { worker: 0 });
            self.scheduler.split_off(&job.badge.ticket, piece);
        }
    }

    fn put_back(&mut self, job: Job<E>) {
        self.note_end(0, job.badge.charged);
        let (kind, rank) = (job.badge.kind, self.comm.rank());
        let cargo = match job.badge.failed {
            Some(why) => Cargo::failed(kind, job.body.name(), rank, why),
            None => Cargo::new(kind, job.body, rank),
        };
        self.scheduler.put_back(job.badge.ticket, cargo);
    }

    /// Makes a task ready to run.
    fn job(&mut self, ticket: Ticket, cargo: Cargo<E>) -> Job<E> {
        let mut blocks = Vec::new();
        for name in cargo.needs() {
            // The scheduler has seen that it is here.
            blocks.extend(self.scheduler.block(name).map(|bytes| (*name, bytes)));
        }
        Job {
            badge: Badge {
                ticket,
                kind: cargo.kind,
                blocks,
                charged: 0,
                failed: None,
            },
            body: cargo.body,
        }
    }

    /// Hands what a task of this thread has left to the scheduler.
    fn pick_up(&mut self, site: &mut Site<E>, badge: &Badge) -> Result<(), ScopeError> {
        self.report.work += site.charged;
        site.charged = 0;
        for (line, task) in site.forked.drain(..) {
            self.put(&badge.ticket, badge.kind, line, task)?;
        }
        for value in site.results.drain(..) {
            let kind = badge.kind;
            self.scheduler
                .produced(&badge.ticket, Outcome { kind, value });
        }
        Ok(())
    }

    /// Puts a task that another, of that kind, has forked into that one's group, or one that it made.
    fn put(
        &mut self,
        parent: &Ticket,
        kind: u16,
        line: Option<Arc<Line>>,
        body: Box<dyn Erased<E>>,
    ) -> Result<(), ScopeError> {
        let cargo = self.cargo(body, Some(kind))?;
        match line {
            None => {
                self.report.hyperforks += 1;
                self.scheduler.fork(parent.clone(), cargo);
            }
            Some(line) => {
                let ticket = self.scheduler.ticket(&line, Some(parent));
                self.scheduler.fork(ticket, cargo);
            }
        }
        Ok(())
    }

    /// A task that the body has forked, or a task of that kind.
    fn cargo(&self, body: Box<dyn Erased<E>>, by: Option<u16>) -> Result<Cargo<E>, ScopeError> {
        let kind = self.registry.kind_of(&*body);
        let kind = kind.ok_or_else(|| ScopeError::Unregistered {
            task: body.name(),
            rank: self.comm.rank(),
            by: by.and_then(|kind| self.registry.kind(kind).ok().map(|kind| kind.name)),
        })?;
        Ok(Cargo::new(kind, body, self.comm.rank()))
    }

    /// A task of this thread waits for a result of a group that it made.
    #[expect(clippy::disallowed_methods, reason = "a driver reads the clock")]
    fn wait_for(
        &mut self,
        site: &mut Site<E>,
        badge: &Badge,
        group: &Arc<Line>,
    ) -> Result<Option<Outcome>, ScopeError> {
        let begin = Instant::now();
        let charged = site.charged;
        self.pick_up(site, badge)?;
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
        if let Some(job) = self.current.take() {
            self.put_back(job);
        }
        self.note(What::WaitEnd { worker: 0 });
        self.away += begin.elapsed();
        Ok(joined)
    }

    /// The number of the first worker that is another thread.
    fn first_hand(&self) -> usize {
        usize::from(self.works)
    }

    /// Gives workers that are threads something to do; true if there was anything.
    fn give_orders(&mut self) -> bool {
        let mut any = false;
        for index in 0..self.hands.len() {
            let order = match self.hands[index].frames.last() {
                Some(Frame::Runs) => None,
                None => {
                    let task = self.scheduler.next_task(None);
                    task.map(|(ticket, cargo)| Order::Run(self.job(ticket, cargo)))
                }
                Some(Frame::WaitsIn(line)) => {
                    let line = Arc::clone(line);
                    if let Some(outcome) = self.scheduler.next_result(&line) {
                        Some(Order::Joined(Some(outcome)))
                    } else if self.scheduler.is_exhausted(&line) {
                        Some(Order::Joined(None))
                    } else {
                        let task = self.scheduler.next_task(Some(line.group()));
                        task.map(|(ticket, cargo)| Order::Run(self.job(ticket, cargo)))
                    }
                }
            };
            let hand = &mut self.hands[index];
            match &order {
                None => continue,
                Some(Order::Run(job)) => {
                    hand.frames.push(Frame::Runs);
                    self.note_begin(index + self.first_hand(), job);
                }
                Some(Order::Joined(_)) => {
                    if let Some(Frame::WaitsIn(_)) = hand.frames.pop() {
                        self.scheduler.ends_waiting();
                    }
                    let worker = (index + self.first_hand()) as u16;
                    self.note(What::WaitEnd { worker });
                }
            }
            any = true;
            // A worker ends only when this channel does.
            order.map(|order| self.hands[index].orders.send(order).is_ok());
        }
        any
    }

    /// What a worker that is a thread says.
    fn hear(&mut self, report: Report<E>) -> Result<(), ScopeError> {
        match report {
            Report::Slice(worker, slice) => self.take(worker, slice),
            Report::Waits(worker, line) => {
                self.scheduler.begins_to_wait();
                self.note(What::WaitBegin {
                    worker: worker as u16,
                });
                let hand = worker - self.first_hand();
                self.hands[hand].frames.push(Frame::WaitsIn(line));
                Ok(())
            }
            Report::Cancel(line) => {
                self.note(What::Cancelled);
                self.scheduler.cancel(&line);
                Ok(())
            }
        }
    }

    /// Hands what a slice of another thread left to the scheduler.
    fn take(&mut self, worker: usize, slice: Slice<E>) -> Result<(), ScopeError> {
        self.report.busy[worker] += slice.busy;
        self.report.work += slice.charged;
        for (line, task) in slice.forked {
            self.put(&slice.ticket, slice.kind, line, task)?;
        }
        if let Some(piece) = slice.piece {
            self.note(What::Split {
                worker: worker as u16,
            });
            self.scheduler.split_off(&slice.ticket, piece);
        }
        for value in slice.results {
            let kind = slice.kind;
            self.scheduler
                .produced(&slice.ticket, Outcome { kind, value });
        }
        if slice.done {
            self.report.tasks += 1;
            self.note_end(worker, slice.charged);
            let hand = worker - self.first_hand();
            self.hands[hand].frames.pop();
            self.scheduler.finished(&slice.ticket);
        }
        Ok(())
    }

    /// Asks every busy worker of this rank to give something away.
    fn ask_for_splits(&self) {
        self.split_wanted
            .store(self.current.is_some(), Ordering::Relaxed);
        for hand in self.hands.iter().filter(|hand| hand.is_busy()) {
            hand.split_wanted.store(true, Ordering::Relaxed);
        }
    }

    /// Reads messages; true if there were any that move something.
    fn receive(&mut self) -> Result<bool, ScopeError> {
        let mut progress = false;
        let silent_until = self.recorder.is_on().then(|| self.comm.now());
        let mut requests = 0;
        while let Some(message) = self.comm.try_recv(self.tag)? {
            let from = message.from;
            let malformed = |what: String| CommError::Malformed { from, what };
            let message: Message<Parcel, Receipt> =
                wire::decode(&message.bytes).map_err(malformed)?;
            let rank = self.comm.rank();
            let message = parcel::unpack(message, self.registry, rank).map_err(malformed)?;
            requests += u32::from(matches!(message, Message::StealRequest(_)));
            progress |= self.sees(from, &message);
            let now = self.comm.now();
            self.scheduler
                .receive(from, message, now)
                .map_err(|v| CommError::Malformed {
                    from: v.from,
                    what: v.what,
                })?;
        }
        if let Some(now) = silent_until {
            self.note_deafness(now, requests);
        }
        if self.kept.is_some() {
            for rank in self.comm.deaths() {
                // What it was just lent is kept as it is sent.
                self.flush()?;
                self.note(What::Died { rank: rank.0 });
                self.scheduler.lose(rank);
                self.run_again()?;
            }
        }
        Ok(progress)
    }

    /// Looks at a message before the scheduler gets it; true if it is more than idle talk.
    fn sees(&mut self, from: Rank, message: &Message<Cargo<E>, Outcome>) -> bool {
        match message {
            Message::StealRequest(within) => {
                // Split now what runs here, or the thief gets nothing.
                if self.scheduler.wants_split_on_request()
                    && let Some(mut job) = self.current.take()
                {
                    if within.is_none_or(|group| job.badge.ticket.line().is_within(group)) {
                        self.split_job(&mut job);
                    }
                    self.current = Some(job);
                }
                false
            }
            Message::StealAnswer(bundles) => {
                let tasks = bundles.iter().map(|b| b.tasks.len() as u32).sum();
                self.note(What::Answered {
                    victim: from.0,
                    tasks,
                });
                tasks > 0
            }
            Message::Gift(bundles) => {
                let tasks = bundles.iter().map(|b| b.tasks.len() as u32).sum();
                self.note(What::Got {
                    victim: from.0,
                    tasks,
                });
                true
            }
            Message::Returned { lease, .. } => {
                if let Some(kept) = &mut self.kept {
                    kept.remove(lease);
                }
                true
            }
            Message::Report(_, _, results) => !results.is_empty(),
            Message::Wave(_) | Message::Lifeline(_) => false,
            _ => true,
        }
    }

    /// Takes back what dead ranks had.
    fn run_again(&mut self) -> Result<(), ScopeError> {
        while let Some(lease) = self.scheduler.rerun() {
            let kept = self.kept.as_mut().and_then(|kept| kept.remove(&lease));
            let Some((home, parcels)) = kept else {
                continue;
            };
            let rank = self.comm.rank();
            let tasks = parcels
                .into_iter()
                .map(|parcel| parcel::open(parcel, self.registry, rank))
                .collect::<Result<_, _>>()
                .map_err(|what| CommError::Malformed { from: rank, what })?;
            self.scheduler.restore(lease, home, tasks);
        }
        Ok(())
    }

    /// Sends what the scheduler wants sent.
    fn flush(&mut self) -> Result<(), ScopeError> {
        while let Some((to, message)) = self.scheduler.outgoing() {
            let message = parcel::pack(message, self.registry, self.comm.rank());
            match &message {
                Message::StealRequest(_) => self.note(What::Asked { victim: to.0 }),
                Message::StealAnswer(bundles) | Message::Gift(bundles) => {
                    let tasks = bundles.iter().map(|b| b.tasks.len() as u32).sum();
                    let thief = to.0;
                    self.note(match &message {
                        Message::Gift(_) => What::Gifted { thief, tasks },
                        _ => What::Gave { thief, tasks },
                    });
                    if let Some(kept) = &mut self.kept {
                        kept.extend(bundles.iter().map(|b| (b.lease, (b.home, b.tasks.clone()))));
                    }
                }
                Message::Results(results) => {
                    let count = results.len() as u32;
                    self.note(What::Results { to: to.0, count });
                }
                Message::Revoked(lease) => {
                    if let Some(kept) = &mut self.kept {
                        kept.remove(lease);
                    }
                }
                _ => {}
            }
            let bytes = wire::encode(&message)
                .map_err(|what| ScopeError::Body(format!("a message cannot be encoded: {what}")))?;
            self.report.bytes += bytes.len() as u64;
            self.comm.send(to, self.tag, bytes)?;
        }
        Ok(())
    }

    /// Writes down what happened, if somebody wants to know.
    fn note(&mut self, what: What) {
        if self.recorder.is_on() {
            self.recorder.record(self.comm.now(), what);
        }
    }

    /// A task was taken up.
    fn note_begin(&mut self, worker: usize, job: &Job<E>) {
        if self.recorder.is_on() {
            // What it says of itself is no reason to fail.
            let detail = wire::guarded(|| job.body.detail()).unwrap_or_default();
            let at = self.comm.now();
            self.recorder.record(
                at,
                What::TaskBegin {
                    worker: worker as u16,
                    kind: job.badge.kind,
                    depth: detail.depth,
                    of: detail.of,
                },
            );
        }
    }

    /// Messages were read from `now` on, so many requests for tasks among them: tells how long none were, if
    /// a task was the reason.
    fn note_deafness(&mut self, now: Duration, requests: u32) {
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
    fn note_pool(&mut self, now: Duration) {
        let tasks = self.scheduler.pool_len();
        let heard = &mut self.heard;
        if tasks != heard.pool && now >= heard.pool_at.saturating_add(POOL_NOTES) {
            (heard.pool, heard.pool_at) = (tasks, now);
            let tasks = u32::try_from(tasks).unwrap_or(u32::MAX);
            self.recorder.record(now, What::Pool { tasks });
        }
    }

    /// A task was set down.
    fn note_end(&mut self, worker: usize, units: u64) {
        self.note(What::TaskEnd {
            worker: worker as u16,
            units: u32::try_from(units).unwrap_or(u32::MAX),
        });
    }

    /// Says on the terminal what is live here if nothing has moved for long.
    fn complain(&mut self, now: Duration) {
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

impl<E: ?Sized + Sync> Host<E> for Scope<'_, E> {
    fn group(&mut self, parent: &Ticket) -> Arc<Line> {
        self.numbers.group(self.comm.rank(), Some(parent.line()))
    }

    fn next(&mut self, site: &mut Site<E>, badge: &Badge, group: &Arc<Line>) -> Option<Outcome> {
        self.wait_for(site, badge, group).unwrap_or_else(|error| {
            self.failure = Some(error);
            panic::resume_unwind(Box::new(Stopped))
        })
    }

    fn cancel(&mut self, group: &Arc<Line>) {
        self.note(What::Cancelled);
        self.scheduler.cancel(group);
    }
}

impl<E: ?Sized> Hand<E> {
    /// Whether it runs a task, rather than wait for one.
    fn is_busy(&self) -> bool {
        matches!(self.frames.last(), Some(Frame::Runs))
    }
}

/// Numbers the scopes of this process.
static SCOPES: atomic::AtomicU64 = atomic::AtomicU64::new(0);

/// Makes sure that all ranks run the same program as rank 0, whose word is passed on along a binomial tree.
/// Where deaths are survived, who hears nothing because the one before died passes on its own.
fn compare_programs<E: ?Sized>(
    comm: &mut dyn Comm,
    registry: &Registry<E>,
    recover: bool,
) -> Result<(), ScopeError> {
    let ours = registry.names().collect::<Vec<_>>().join(", ");
    let (me, size) = (comm.rank(), comm.size() as u32);
    let mut word = vec![u8::from(recover)];
    word.extend(ours.as_bytes());
    let mut bit = 1;
    while bit < size && me.0 & bit == 0 {
        bit *= 2;
    }
    let mut theirs = word;
    if me.0 > 0 {
        let before = Rank(me.0 - bit);
        match comm.recv_from(before, PROGRAM) {
            Ok(bytes) => theirs = bytes,
            Err(CommError::Died { rank }) if recover && rank == before => {}
            Err(error) => return Err(error.into()),
        }
    }
    while bit > 1 {
        bit /= 2;
        if me.0 + bit < size {
            comm.send(Rank(me.0 + bit), PROGRAM, theirs.clone())?;
        }
    }
    let (rank, other) = (me, Rank(0));
    let error = match theirs.split_first() {
        Some((&flag, names)) if names == ours.as_bytes() => {
            if flag == u8::from(recover) {
                return Ok(());
            }
            let ours = recover;
            ScopeError::Options { rank, other, ours }
        }
        names => ScopeError::Registries {
            rank,
            other,
            ours,
            theirs: names.map_or_else(String::new, |(_, names)| {
                String::from_utf8_lossy(names).into_owned()
            }),
        },
    };
    comm.abort(&error.to_string());
    Err(error)
}
