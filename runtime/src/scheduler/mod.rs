//! The scheduler of one rank: a pure state machine. Events go in, actions come out.
//!
//! It holds the rank's task pool, decides whom to ask for work, answers thieves, asks running tasks
//! to split, carries results home, fetches blocks, and finds out when groups are exhausted. It has
//! no clock, no threads and no sockets: time is an argument, messages are values. Every driver, and
//! every test, runs this code.
//!
//! The methods are of three kinds. *In*: [`Scheduler::fork`], [`Scheduler::finished`],
//! [`Scheduler::produced`], [`Scheduler::receive`], [`Scheduler::idle`] and what the body does.
//! *Out*: [`Scheduler::next_task`], [`Scheduler::next_result`], [`Scheduler::outgoing`]; poll them
//! after every event. *Getters*: the rest. The protocol is written up in PROTOCOL.md.

mod all_to_all;
mod ancestry;
pub(crate) mod block_protocol;
mod blocked;
mod bounds;
mod cancel;
mod delivery;
mod end;
mod leases;
pub(crate) mod message;
mod posted;
mod requests;
mod stealing;
mod waves;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use self::all_to_all::AllToAll;
use self::ancestry::Ancestries;
pub(crate) use self::ancestry::{Ancestry, GroupId};
use self::block_protocol::{Base, Blocks, Publisher};
use self::bounds::SharedBounds;
pub use self::end::messages_to_end;
use self::leases::{AccountId, LeaseTable, NONE};
use self::message::SchedulerMessage;
use self::posted::PostedMessages;
use self::requests::Requests;
use self::waves::Waves;
use crate::block::{BlockError, BlockName, Bytes};
use crate::comm::Rank;
use crate::policy::victims::Place;
use crate::policy::{Pace, ScopeOptions};

/// Results for other homes are sent together: after so long for each rank of the job, or when they
/// are this many.
const RESULTS_INTERVAL_PER_RANK: Duration = Duration::from_micros(2);
const MOST_RESULTS: usize = 256;

/// How many groups ahead of this rank another may be: each needs all ranks to have joined the one
/// before.
const FORESIGHT: u32 = 64;

/// The questions that the scheduler asks a task; `R` is a result.
pub(crate) trait Work<R> {
    /// Blocks that must be here before it runs.
    fn needs(&self) -> &[BlockName] {
        &[]
    }

    /// Where it stands in a pool: tasks of higher priority run first.
    fn priority(&self) -> i64 {
        0
    }

    /// The result that its home gets if a block cannot be had on that rank.
    fn refused(&self, rank: Rank, why: BlockError) -> R;
}

/// The facts that a rank knows of a task, beside the task.
#[derive(Clone, Debug)]
pub(crate) struct Membership {
    ancestry: Arc<Ancestry>,
    home: Rank,
    account: AccountId,
}

impl Membership {
    /// The task's group.
    #[must_use]
    pub(crate) fn ancestry(&self) -> &Arc<Ancestry> {
        &self.ancestry
    }
}

#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
struct Entry<T> {
    membership: Membership,
    task: T,
    priority: i64,
    /// It is a piece that a task here gave away.
    shed: bool,
    /// The body forked it.
    of_body: bool,
    /// The rank it was stolen from.
    from: Option<Rank>,
    /// Blocks that it needs are kept in the cache for it.
    holds: bool,
    /// A worker of this rank waits in a join and may not take it.
    passed: bool,
}

/// The activity of the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Body {
    Active,
    WaitsIn(GroupId),
    Ended,
}

/// Counts of what a scheduler did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Steal requests sent.
    pub(crate) requests: u64,
    /// Requests that were answered with tasks.
    pub(crate) served: u64,
    /// Requests that were answered with nothing.
    pub(crate) refused: u64,
    /// Answers that came after the time-out.
    pub(crate) late: u64,
    /// Tasks that came from other ranks.
    pub(crate) tasks_in: u64,
    /// Tasks that went to other ranks.
    pub(crate) tasks_out: u64,
    /// Pieces that running tasks gave away.
    pub(crate) splits: u64,
    /// Tasks that were dropped because their group was cancelled.
    pub(crate) dropped: u64,
    /// Blocks fetched from other ranks, and served to them.
    pub(crate) fetches: u64,
    /// Blocks served to other ranks.
    pub(crate) blocks_served: u64,
}

/// A fault of another rank, found by this one: the scope cannot go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Violation {
    /// The rank that sent it.
    pub(crate) from: Rank,
    /// The fault.
    pub(crate) what: String,
}

/// The state of one rank in a scope; `T` is a task, `R` a result.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub(crate) struct Scheduler<T, R> {
    me: Rank,
    ranks: u32,
    options: ScopeOptions,
    /// By priority, the highest last; of one priority the newest last.
    pool: VecDeque<Entry<T>>,
    /// Tasks whose blocks are on their way.
    blocked: Vec<Entry<T>>,
    /// Tasks taken out of the pool that have not finished, and those of them that wait in a join.
    running: usize,
    waiting: usize,
    /// Tasks on this rank by the collective group they descend from, and all of them.
    here: Vec<u64>,
    here_in_all: u64,
    ancestries: Ancestries,
    collective: Vec<Arc<Ancestry>>,
    /// Results for joins of collective groups.
    results: Vec<VecDeque<R>>,
    leases: LeaseTable<R>,
    waves: Waves,
    /// In place of waves where no task goes from rank to rank.
    all_to_all: Option<AllToAll>,
    messages: PostedMessages,
    requests: Requests,
    /// Ranks that wait for tasks, and of which group.
    waiters: Vec<(Rank, Option<GroupId>)>,
    blocks: Blocks<Bytes>,
    bounds: SharedBounds,
    /// The blocks that the task needs that was taken last. They are kept until the next is taken,
    /// as the driver gets them in between.
    taken: Vec<BlockName>,
    pace: Box<dyn Pace>,
    outgoing: VecDeque<(Rank, SchedulerMessage<T, R>)>,
    /// Results for other homes, and since when the oldest waits.
    unsent: Vec<(Rank, GroupId, R)>,
    unsent_since: Duration,
    /// Results from other ranks for rank 0, that go there with this rank's report.
    carried: Vec<(GroupId, R)>,
    /// The latest time it was told.
    clock: Duration,
    body: Body,
    /// Some group was cancelled.
    cancelled: bool,
    last_split: Option<Duration>,
    /// A thief was sent away since the last split.
    thief_went_empty: bool,
    counts: Counts,
}

impl<T: Work<R>, R> Scheduler<T, R> {
    /// The scheduler of `me` among `ranks` ranks, without groups; `node_of` says which ranks share
    /// a node.
    #[must_use]
    pub(crate) fn new(
        me: Rank,
        ranks: u32,
        options: &ScopeOptions,
        node_of: &dyn Fn(Rank) -> u32,
    ) -> Self {
        let policy = options.policy;
        let place = Place {
            me,
            ranks,
            seed: options.seed,
            node_of,
        };
        let victims = (policy.steal && ranks > 1).then(|| policy.victims.0.start(&place));
        Self {
            me,
            ranks,
            options: *options,
            pool: VecDeque::new(),
            blocked: Vec::new(),
            running: 0,
            waiting: 0,
            here: Vec::new(),
            here_in_all: 0,
            ancestries: Ancestries::default(),
            collective: Vec::new(),
            results: Vec::new(),
            leases: LeaseTable::new(),
            waves: Waves::new(me, ranks),
            all_to_all: end::is_all_to_all(&policy, ranks as usize)
                .then(|| AllToAll::new(me, ranks)),
            messages: PostedMessages::default(),
            requests: Requests::new(victims, policy.steal_timeout),
            waiters: Vec::new(),
            blocks: Blocks::new(me, ranks, options.cache_bytes),
            bounds: SharedBounds::default(),
            taken: Vec::new(),
            pace: policy.interval.start(),
            outgoing: VecDeque::new(),
            unsent: Vec::new(),
            unsent_since: Duration::ZERO,
            carried: Vec::new(),
            clock: Duration::ZERO,
            body: Body::Active,
            cancelled: false,
            last_split: None,
            thief_went_empty: false,
            counts: Counts::default(),
        }
    }

    // ---- groups and tasks of this rank

    /// Makes a collective group; every rank makes its groups in the same order.
    pub(crate) fn group(&mut self) -> Arc<Ancestry> {
        let number = self.waves.group();
        self.know(number);
        Arc::clone(&self.collective[number as usize])
    }

    /// The membership of tasks that are forked here into a group: by the body, or by the task of
    /// `parent`.
    pub(crate) fn membership(
        &mut self,
        ancestry: &Arc<Ancestry>,
        parent: Option<&Membership>,
    ) -> Membership {
        let rooted = matches!(ancestry.group(), GroupId::Rooted { .. });
        let account = if rooted {
            self.ancestries.adopt(ancestry);
            let under = parent.map_or(NONE, |membership| membership.account);
            self.leases.root(ancestry, under)
        } else {
            NONE
        };
        Membership {
            ancestry: Arc::clone(ancestry),
            home: self.me,
            account,
        }
    }

    /// The body forks, a running task forks or hyperforks.
    pub(crate) fn fork(&mut self, membership: Membership, task: T) {
        self.add(membership, task, false);
    }

    /// A running task gave a piece away.
    pub(crate) fn split_off(&mut self, membership: &Membership, piece: T) {
        self.counts.splits += 1;
        self.add(membership.clone(), piece, true);
    }

    fn add(&mut self, membership: Membership, task: T, shed: bool) {
        if self.is_unwanted(&membership) {
            self.counts.dropped += 1;
            return;
        }
        self.waves.given(&membership.ancestry);
        self.leases.hire(membership.account);
        self.enter(&membership.ancestry, 1);
        let of_body = self.body == Body::Active;
        self.enter_pool(Entry {
            shed,
            // While it waits nothing but tasks fork.
            of_body,
            ..Entry::new(membership, task)
        });
    }

    /// Puts a task into the pool behind all that it does not precede.
    fn enter_pool(&mut self, entry: Entry<T>) {
        let precedes = |last: &Entry<T>| last.priority > entry.priority;
        if self.pool.back().is_some_and(precedes) {
            let at = self.pool.partition_point(|other| !precedes(other));
            self.pool.insert(at, entry);
        } else {
            self.pool.push_back(entry);
        }
    }

    /// A running task has finished.
    pub(crate) fn finished(&mut self, membership: &Membership) {
        self.running -= 1;
        self.gone(membership);
    }

    /// A running task is set down before it has finished, to go on later, here or elsewhere.
    pub(crate) fn put_back(&mut self, membership: Membership, task: T) {
        self.running -= 1;
        if self.is_unwanted(&membership) {
            self.counts.dropped += 1;
            self.gone(&membership);
            return;
        }
        self.enter_pool(Entry::new(membership, task));
    }

    /// A running task begins to wait in a join: its worker may run others meanwhile.
    pub(crate) fn begins_to_wait(&mut self) {
        self.waiting += 1;
    }

    /// It has what it waited for.
    pub(crate) fn ends_waiting(&mut self) {
        self.waiting -= 1;
    }

    /// The body waits in a join of this group.
    pub(crate) fn waits_in(&mut self, group: GroupId) {
        if self.body == Body::WaitsIn(group) {
            return;
        }
        self.body = Body::WaitsIn(group);
        let collective = match group {
            GroupId::Collective(number) => Some(number),
            GroupId::Rooted { .. } => None,
        };
        self.waves.waits_in(collective);
        self.ask_early();
        // In the join of a rooted group nothing is published for anybody.
        self.publisher_is(Publisher::Waits(collective.unwrap_or(Base::MAX)));
    }

    /// The body goes on.
    pub(crate) fn goes_on(&mut self) {
        self.body = Body::Active;
        self.waves.waits_in(None);
        self.publisher_is(Publisher::Active);
    }

    /// The body forks no more; it may go on to join.
    pub(crate) fn closed(&mut self) {
        self.waves.closed();
    }

    /// The body has returned: it will neither fork nor join again.
    ///
    /// Results nobody took are dropped.
    pub(crate) fn body_ended(&mut self) {
        self.body = Body::Ended;
        self.waves.body_ended();
        for ancestry in self.collective.clone() {
            ancestry.abandon();
            while self.next_result(&ancestry).is_some() {}
        }
        self.leases.abandon_own();
        self.publisher_is(Publisher::Ended);
        self.settle();
    }

    // ---- other ranks

    /// A message came in.
    ///
    /// # Errors
    /// What no correct rank would have sent.
    pub(crate) fn receive(
        &mut self,
        from: Rank,
        message: SchedulerMessage<T, R>,
        now: Duration,
    ) -> Result<(), Violation> {
        self.handle(from, message, now)
            .map_err(|what| Violation { from, what })
    }

    fn handle(
        &mut self,
        from: Rank,
        message: SchedulerMessage<T, R>,
        now: Duration,
    ) -> Result<(), String> {
        match message {
            SchedulerMessage::StealRequest(within) => {
                let tasks = self.give(from, within);
                self.thief_went_empty |= tasks.is_empty() && self.has_threads();
                self.outgoing
                    .push_back((from, SchedulerMessage::StealAnswer(tasks)));
            }
            SchedulerMessage::StealAnswer(bundles) => {
                let tasks = !bundles.is_empty();
                let answered = self.requests.answered(from, now, tasks);
                let answered = answered.ok_or("an answer nobody asked for")?;
                self.pace.round_trip(answered.round_trip);
                self.counts.late += u64::from(answered.late);
                self.counts.served += u64::from(tasks);
                self.counts.refused += u64::from(!tasks);
                self.accept(from, bundles)?;
            }
            SchedulerMessage::Lifeline(within) => {
                self.waiters.retain(|(waiter, _)| *waiter != from);
                self.waiters.push((from, within));
            }
            SchedulerMessage::Gift(bundles) => {
                self.requests.gift();
                self.accept(from, bundles)?;
            }
            SchedulerMessage::Results(results) => self.deliver_all(results)?,
            SchedulerMessage::Returned { lease, sent } => {
                self.leases.returned(from, lease, sent)?;
                self.report_closed();
            }
            SchedulerMessage::Cancel(group, root) => {
                let known = match group {
                    GroupId::Collective(number) => self.is_near(number),
                    GroupId::Rooted { home, .. } => home == self.me,
                };
                if !known || root.0 >= self.ranks {
                    return Err("the end of a group that does not exist here".to_owned());
                }
                if matches!(group, GroupId::Collective(_)) {
                    self.spread_cancel(group, root);
                }
                self.ancestries.cancel(group);
                self.drop_cancelled();
            }
            SchedulerMessage::CancelLease(lease) => {
                if let Some(group) = self.leases.borrowed(from, lease) {
                    self.ancestries.cancel(group);
                    self.drop_cancelled();
                }
            }
            SchedulerMessage::Wave(number) => self.waves.wave(from, number)?,
            SchedulerMessage::Report(number, census, results) => {
                self.waves.report(from, number, &census)?;
                if self.me == end::ROOT {
                    self.deliver_all(results)?;
                } else {
                    self.carried.extend(results);
                }
            }
            SchedulerMessage::Exhausted(groups, all, posted) => {
                self.waves.exhausted(from, &groups, all, posted)?;
            }
            SchedulerMessage::Done(notice) => {
                if !notice.groups.iter().all(|&group| self.is_near(group)) {
                    return Err("a notice about a group that does not exist here".to_owned());
                }
                let all_to_all = self.all_to_all.as_mut();
                let all_to_all =
                    all_to_all.ok_or("a notice that only ranks send that do not steal")?;
                all_to_all.hear(from, &notice)?;
                self.messages.receive(from, notice.items);
            }
            SchedulerMessage::Posted(items) => self.messages.receive(from, items),
            SchedulerMessage::Improved { bound, code, root } => {
                self.hear_bound(bound, (code, root))?;
            }
            SchedulerMessage::Block(message) => {
                let mut out = Vec::new();
                let size = |bytes: &Bytes| bytes.len();
                let events = self.blocks.receive(from, message, size, &mut out)?;
                self.send_blocks(out);
                self.block_events(&events);
            }
        }
        self.send_signals();
        Ok(())
    }

    // ---- time

    /// Time has passed: results that have waited long enough for company go home, and ranks that
    /// wait for tasks get what there is.
    pub(crate) fn tick(&mut self, now: Duration) {
        self.clock = now;
        self.send_results_if_due();
        self.serve_waiters();
    }

    /// When an idle rank has something to do again even if no message comes; `None` if never.
    #[must_use]
    pub(crate) fn next_deadline(&self, now: Duration) -> Option<Duration> {
        let request = if self.is_over() {
            None
        } else {
            self.requests.deadline()
        };
        let unsent = (!self.unsent.is_empty()).then(|| self.unsent_since + self.results_interval());
        let deadline = request.into_iter().chain(unsent).min()?;
        Some(deadline.max(now))
    }

    // ---- out

    /// The newest task of the pool's highest priority within a group and its descendants, for a
    /// worker that has none.
    pub(crate) fn next_task(&mut self, within: Option<GroupId>) -> Option<(Membership, T)> {
        self.take(within, false)
    }

    /// The oldest task of the pool's highest priority if the body forked it, else the newest, for a
    /// worker beside the one that takes the newest: bodies fork what reads the same one after the
    /// other, and so each worker's caches hold more of what it needs.
    pub(crate) fn far_task(&mut self) -> Option<(Membership, T)> {
        self.take(None, true)
    }

    fn take(&mut self, within: Option<GroupId>, far: bool) -> Option<(Membership, T)> {
        if !self.taken.is_empty() {
            self.blocks.release(&std::mem::take(&mut self.taken));
        }
        loop {
            let at = match within {
                None if far => self.far_place(),
                None => self.pool.len().checked_sub(1),
                Some(_) => self.pool.iter().rposition(|e| e.is_within(within)),
            };
            let Some(at) = at else {
                for entry in &mut self.pool {
                    entry.passed = true;
                }
                return None;
            };
            let mut entry = if at + 1 == self.pool.len() {
                self.pool.pop_back()?
            } else {
                self.pool.remove(at)?
            };
            if !entry.task.needs().is_empty() {
                let Some(ready) = self.prepare(entry) else {
                    continue;
                };
                entry = ready;
            }
            if entry.shed {
                self.pace.piece_came_back();
            }
            self.running += 1;
            return Some((entry.membership, entry.task));
        }
    }

    /// The place in the pool of the [far task](Self::far_task).
    fn far_place(&self) -> Option<usize> {
        let newest = self.pool.back()?;
        let oldest = if self.pool.front()?.priority == newest.priority {
            0
        } else {
            self.pool
                .partition_point(|entry| entry.priority < newest.priority)
        };
        let at = self.pool.get(oldest).filter(|entry| entry.of_body);
        Some(at.map_or(self.pool.len() - 1, |_| oldest))
    }

    /// The next message to send.
    pub(crate) fn outgoing(&mut self) -> Option<(Rank, SchedulerMessage<T, R>)> {
        self.outgoing.pop_front()
    }

    /// How many tasks are in this rank's pool.
    #[must_use]
    pub(crate) fn pool_len(&self) -> usize {
        self.pool.len()
    }

    /// Counts so far.
    #[must_use]
    pub(crate) fn counts(&self) -> Counts {
        let blocks = self.blocks.counts();
        Counts {
            fetches: blocks.fetches,
            blocks_served: blocks.served,
            ..self.counts
        }
    }

    /// A dump for people: what is live here and what this rank waits for.
    #[must_use]
    pub(crate) fn describe(&self) -> String {
        let body = match self.body {
            Body::Active => "active".to_owned(),
            Body::WaitsIn(group) => format!("waits in the join of {group}"),
            Body::Ended => "ended".to_owned(),
        };
        let mut text = format!(
            "rank {}: body {body}; {} tasks in the pool, {} wait for blocks, {} run ({} of them wait in \
             joins), {} requests unanswered",
            self.me.0,
            self.pool.len(),
            self.blocked.len(),
            self.running,
            self.waiting,
            self.requests.unanswered(),
        );
        let groups = self.end_for_people();
        for said in groups.into_iter().chain(self.leases.describe()) {
            text.push_str("\n  ");
            text.push_str(&said);
        }
        text
    }

    // ---- inside

    /// Whether tasks run on other threads than the one that answers.
    fn has_threads(&self) -> bool {
        self.options.workers > 1 || self.options.progress_thread
    }

    /// Makes room for a collective group.
    fn know(&mut self, group: u32) {
        self.waves.know(group);
        for number in self.collective.len() as u32..=group {
            let id = GroupId::Collective(number);
            let ancestry = self.ancestries.resolve(&[id]);
            self.collective
                .push(ancestry.unwrap_or_else(|| Ancestry::new(id, None)));
            self.results.push(VecDeque::new());
            self.here.push(0);
        }
    }

    /// Whether a collective group exists, or may as far as this rank can know.
    fn is_near(&self, group: u32) -> bool {
        group < self.waves.made() + FORESIGHT
    }

    fn enter(&mut self, ancestry: &Ancestry, tasks: u64) {
        self.here_in_all += tasks;
        if let Some(base) = ancestry.base() {
            self.here[base as usize] += tasks;
        }
    }

    fn exit(&mut self, ancestry: &Ancestry, tasks: u64) {
        self.here_in_all -= tasks;
        if let Some(base) = ancestry.base() {
            self.here[base as usize] -= tasks;
        }
    }

    /// A task that was here is no more.
    fn gone(&mut self, membership: &Membership) {
        self.waves.used(&membership.ancestry, 1);
        self.exit(&membership.ancestry, 1);
        if membership.account != NONE {
            self.leases.release(membership.account);
            self.report_closed();
        }
    }
}

impl<T> Entry<T> {
    /// A task as it comes to a pool.
    fn new<R>(membership: Membership, task: T) -> Self
    where
        T: Work<R>,
    {
        Self {
            membership,
            priority: task.priority(),
            task,
            shed: false,
            of_body: false,
            from: None,
            holds: false,
            passed: false,
        }
    }

    fn base(&self) -> Base {
        self.membership.ancestry.base().unwrap_or(0)
    }

    fn is_within(&self, group: Option<GroupId>) -> bool {
        group.is_none_or(|group| self.membership.ancestry.is_within(group))
    }
}

impl Membership {
    fn is_like(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.ancestry, &other.ancestry)
            && self.home == other.home
            && self.account == other.account
    }
}

#[cfg(test)]
mod tests;
