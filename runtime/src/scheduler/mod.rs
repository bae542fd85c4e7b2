//! The scheduler of one rank: a pure state machine. Events go in, actions come out.
//!
//! It holds the rank's task pool, decides whom to ask for work, answers thieves, asks running tasks to
//! split, carries results home, fetches blocks, and finds out when groups are exhausted. It has no clock, no
//! threads and no sockets: time is an argument, messages are values. Every driver, and every test, runs
//! this code.
//!
//! The methods are of three kinds. *In*: [`Scheduler::fork`], [`Scheduler::finished`],
//! [`Scheduler::produced`], [`Scheduler::receive`], [`Scheduler::idle`] and what the body does. *Out*:
//! [`Scheduler::next_task`], [`Scheduler::next_result`], [`Scheduler::outgoing`]; poll them after every
//! event. *Getters*: the rest. The protocol is written up in the crate's README.

pub mod blocks;
mod ledger;
mod line;
pub mod message;
mod requests;
mod roll_call;
mod waves;

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use self::blocks::{Base, Blocks, Body as Publisher, Event, Want};
use self::ledger::{AccountId, Kept, Ledger, NONE};
use self::line::Lines;
pub use self::line::{GroupId, Line};
use self::message::{Bundle, Message};
use self::requests::Requests;
use self::roll_call::{Call, RollCall};
use self::waves::{Signal, Waves};
use crate::block::{BlockError, BlockName, Bytes};
use crate::comm::Rank;
use crate::policy::victims::Place;
use crate::policy::{Pace, ScopeOptions};

/// Results for other homes are sent together: after so long for each rank of the job, or when they are so
/// many.
const MAIL_INTERVAL_PER_RANK: Duration = Duration::from_micros(2);
const MOST_MAIL: usize = 256;

/// The root of the tree of ranks.
const ROOT: Rank = Rank(0);

/// How many groups ahead of this rank another may be: each needs all ranks to have joined the one before.
const FORESIGHT: u32 = 64;

/// What the scheduler asks of a task; `R` is a result.
pub trait Work<R> {
    /// Blocks that must be here before it runs.
    fn needs(&self) -> &[BlockName] {
        &[]
    }

    /// What its home gets if a block cannot be had on that rank.
    fn refused(&self, rank: Rank, why: BlockError) -> R;
}

/// What a rank knows of a task beside the task.
#[derive(Clone, Debug)]
pub struct Ticket {
    line: Arc<Line>,
    home: Rank,
    account: AccountId,
}

impl Ticket {
    /// The task's group.
    #[must_use]
    pub fn line(&self) -> &Arc<Line> {
        &self.line
    }

    /// Where its results go.
    #[must_use]
    pub fn home(&self) -> Rank {
        self.home
    }
}

#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
struct Entry<T> {
    ticket: Ticket,
    task: T,
    /// It is a piece that a task here gave away.
    shed: bool,
    /// The rank it was stolen from.
    from: Option<Rank>,
    /// Blocks that it needs are kept in the cache for it.
    holds: bool,
    /// A worker of this rank waits in a join and may not take it. Those it came by are the oldest.
    passed: bool,
}

/// What the body is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Body {
    Active,
    WaitsIn(GroupId),
    Ended,
}

/// Counts of what a scheduler did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Steal requests sent.
    pub requests: u64,
    /// Requests that were answered with tasks.
    pub served: u64,
    /// Requests that were answered with nothing.
    pub refused: u64,
    /// Answers that came after the time-out.
    pub late: u64,
    /// Tasks that came from other ranks.
    pub tasks_in: u64,
    /// Tasks that went to other ranks.
    pub tasks_out: u64,
    /// Pieces that running tasks gave away.
    pub splits: u64,
    /// Tasks that were dropped because their group was cancelled.
    pub dropped: u64,
    /// Tasks run again because a rank died that had them.
    pub reruns: u64,
    /// Blocks fetched from other ranks, and served to them.
    pub fetches: u64,
    /// Blocks served to other ranks.
    pub blocks_served: u64,
}

/// What a rank forbids another, or finds out about it: the scope cannot go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Who sent it.
    pub from: Rank,
    /// What was wrong.
    pub what: String,
}

/// The state of one rank in a scope; `T` is a task, `R` a result.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub struct Scheduler<T, R> {
    me: Rank,
    ranks: u32,
    options: ScopeOptions,
    pool: VecDeque<Entry<T>>,
    /// Tasks whose blocks are on their way.
    aside: Vec<Entry<T>>,
    /// Tasks taken out of the pool that have not finished, and those of them that wait in a join.
    running: usize,
    waiting: usize,
    /// Tasks on this rank by the collective group they descend from, and all of them.
    here: Vec<u64>,
    here_in_all: u64,
    lines: Lines,
    collective: Vec<Arc<Line>>,
    /// Results for joins of collective groups.
    results: Vec<VecDeque<R>>,
    ledger: Ledger<R>,
    waves: Waves,
    /// In place of waves where dead ranks are survived.
    roll_call: Option<RollCall>,
    requests: Requests,
    /// Ranks that wait for tasks, and of which group.
    waiters: Vec<(Rank, Option<GroupId>)>,
    blocks: Blocks<Bytes>,
    /// Those that the last task needs that was taken: kept until the next is, for the driver gets them now.
    taken: Vec<BlockName>,
    pace: Box<dyn Pace>,
    outgoing: VecDeque<(Rank, Message<T, R>)>,
    /// Results for other homes, and since when the oldest waits.
    mail: Vec<(Rank, GroupId, R)>,
    mail_since: Duration,
    /// Results from other ranks for rank 0, that go there with this rank's report.
    carried: Vec<(GroupId, R)>,
    /// The latest time it was told.
    clock: Duration,
    body: Body,
    /// Some group was cancelled.
    cancelled: bool,
    dead: BTreeSet<Rank>,
    /// Leases whose thieves died.
    reruns: VecDeque<u64>,
    last_split: Option<Duration>,
    /// A thief was sent away since the last split.
    thief_went_empty: bool,
    counts: Counts,
}

impl<T: Work<R>, R> Scheduler<T, R> {
    /// The scheduler of `me` among `ranks` ranks, without groups; `node_of` says which ranks share a node.
    #[must_use]
    pub fn new(
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
            aside: Vec::new(),
            running: 0,
            waiting: 0,
            here: Vec::new(),
            here_in_all: 0,
            lines: Lines::default(),
            collective: Vec::new(),
            results: Vec::new(),
            ledger: Ledger::new(),
            waves: Waves::new(me, ranks),
            roll_call: options.recover.then(|| RollCall::new(me, ranks)),
            requests: Requests::new(victims, policy.steal_timeout),
            waiters: Vec::new(),
            blocks: Blocks::new(me, ranks, options.cache_bytes),
            taken: Vec::new(),
            pace: policy.interval.start(),
            outgoing: VecDeque::new(),
            mail: Vec::new(),
            mail_since: Duration::ZERO,
            carried: Vec::new(),
            clock: Duration::ZERO,
            body: Body::Active,
            cancelled: false,
            dead: BTreeSet::new(),
            reruns: VecDeque::new(),
            last_split: None,
            thief_went_empty: false,
            counts: Counts::default(),
        }
    }

    // ---- groups and tasks of this rank

    /// Makes a collective group; every rank makes its groups in the same order.
    pub fn group(&mut self) -> Arc<Line> {
        let number = self.waves.group();
        self.know(number);
        Arc::clone(&self.collective[number as usize])
    }

    /// The ticket of tasks that are forked here into a group: by the body, or by the task of `parent`.
    pub fn ticket(&mut self, line: &Arc<Line>, parent: Option<&Ticket>) -> Ticket {
        let rooted = matches!(line.group(), GroupId::Rooted { .. });
        let account = if rooted || self.options.recover {
            self.lines.adopt(line);
            let under = parent.map_or(NONE, |ticket| ticket.account);
            self.ledger.root(line, under)
        } else {
            NONE
        };
        Ticket {
            line: Arc::clone(line),
            home: self.me,
            account,
        }
    }

    /// The body forks, a running task forks or hyperforks.
    pub fn fork(&mut self, ticket: Ticket, task: T) {
        self.add(ticket, task, false);
    }

    /// A running task gave a piece away.
    pub fn split_off(&mut self, ticket: &Ticket, piece: T) {
        self.counts.splits += 1;
        self.add(ticket.clone(), piece, true);
    }

    fn add(&mut self, ticket: Ticket, task: T, shed: bool) {
        if self.is_unwanted(&ticket) {
            self.counts.dropped += 1;
            return;
        }
        self.waves.given(&ticket.line);
        self.ledger.hire(ticket.account);
        self.enter(&ticket.line, 1);
        self.pool.push_back(Entry {
            ticket,
            task,
            shed,
            from: None,
            holds: false,
            passed: false,
        });
    }

    /// A running task produced a result for its home.
    pub fn produced(&mut self, ticket: &Ticket, result: R) {
        let group = ticket.line.group();
        if self.options.recover {
            if let Kept::Home(result) = self.ledger.keep(ticket.account, result) {
                self.waves.given(&ticket.line);
                self.deliver(&ticket.line, result);
            }
            return;
        }
        self.waves.given(&ticket.line);
        if ticket.home == self.me {
            self.deliver(&ticket.line, result);
            return;
        }
        self.ledger.sends(ticket.account);
        if self.mail.is_empty() {
            self.mail_since = self.clock;
        }
        self.mail.push((ticket.home, group, result));
        if self.mail.len() >= MOST_MAIL {
            self.post();
        }
    }

    /// A running task has finished.
    pub fn finished(&mut self, ticket: &Ticket) {
        self.running -= 1;
        self.gone(ticket);
    }

    /// A running task is set down before it has finished, to go on later, here or elsewhere.
    pub fn put_back(&mut self, ticket: Ticket, task: T) {
        self.running -= 1;
        if self.is_unwanted(&ticket) {
            self.counts.dropped += 1;
            self.gone(&ticket);
            return;
        }
        self.pool.push_back(Entry {
            ticket,
            task,
            shed: false,
            from: None,
            holds: false,
            passed: false,
        });
    }

    /// A running task begins to wait in a join: its worker may run others meanwhile.
    pub fn begins_to_wait(&mut self) {
        self.waiting += 1;
    }

    /// It has what it waited for.
    pub fn ends_waiting(&mut self) {
        self.waiting -= 1;
    }

    /// The body waits in a join of this group.
    pub fn waits_in(&mut self, group: GroupId) {
        if self.body == Body::WaitsIn(group) {
            return;
        }
        self.body = Body::WaitsIn(group);
        let collective = match group {
            GroupId::Collective(number) => Some(number),
            GroupId::Rooted { .. } => None,
        };
        self.waves.waits_in(collective);
        // In the join of a rooted group nothing is published for anybody.
        self.publisher_is(Publisher::Waits(collective.unwrap_or(Base::MAX)));
    }

    /// The body goes on.
    pub fn goes_on(&mut self) {
        self.body = Body::Active;
        self.waves.waits_in(None);
        self.publisher_is(Publisher::Active);
    }

    /// The body has returned: it will neither fork nor join again.
    ///
    /// Results nobody took are dropped.
    pub fn body_ended(&mut self) {
        self.body = Body::Ended;
        self.waves.body_ended();
        for line in self.collective.clone() {
            line.abandon();
            while self.next_result(&line).is_some() {}
        }
        self.ledger.abandon_own();
        self.publisher_is(Publisher::Ended);
        self.settle();
    }

    /// Cancels a group and all that descend from it: tasks in pools are dropped, running ones are told.
    pub fn cancel(&mut self, line: &Arc<Line>) {
        let group = line.group();
        self.lines.adopt(line);
        if !self.lines.cancel(group) {
            return;
        }
        match group {
            GroupId::Collective(_) => self.spread_cancel(group, self.me),
            // A task cancels its own group: home tells all others who have tasks of it.
            GroupId::Rooted { home, .. } if home != self.me && !self.dead.contains(&home) => {
                let message = Message::Cancel(group, self.me);
                self.outgoing.push_back((home, message));
            }
            GroupId::Rooted { .. } => {}
        }
        self.drop_cancelled();
    }

    /// Publishes a block of so many bytes.
    ///
    /// # Errors
    /// The same or a newer version was published before.
    pub fn publish(
        &mut self,
        id: u64,
        version: u32,
        bytes: Bytes,
    ) -> Result<BlockName, BlockError> {
        let size = bytes.len();
        let mut out = Vec::new();
        let published = self.blocks.publish(id, version, bytes, size, &mut out);
        self.send_blocks(out);
        let (name, events) = published?;
        self.block_events(&events);
        Ok(name)
    }

    /// A block that is here.
    pub fn block(&mut self, name: &BlockName) -> Option<Bytes> {
        self.blocks.get(name)
    }

    // ---- other ranks

    /// A message came in.
    ///
    /// # Errors
    /// What no correct rank would have sent.
    pub fn receive(
        &mut self,
        from: Rank,
        message: Message<T, R>,
        now: Duration,
    ) -> Result<(), Violation> {
        if self.dead.contains(&from) {
            // It came too late: what it is about was settled without that rank.
            return Ok(());
        }
        self.handle(from, message, now)
            .map_err(|what| Violation { from, what })
    }

    fn handle(&mut self, from: Rank, message: Message<T, R>, now: Duration) -> Result<(), String> {
        let is_void = self.dead.contains(&from)
            && !matches!(message, Message::Exhausted(..) | Message::Cancel(..));
        if is_void {
            // It was on its way when its sender died.
            return Ok(());
        }
        match message {
            Message::StealRequest(within) => {
                let tasks = self.give(from, within);
                self.thief_went_empty |= tasks.is_empty() && self.options.workers > 1;
                self.outgoing.push_back((from, Message::StealAnswer(tasks)));
            }
            Message::StealAnswer(bundles) => {
                let tasks = !bundles.is_empty();
                let answered = self.requests.answered(from, now, tasks);
                let answered = answered.ok_or("an answer nobody asked for")?;
                self.pace.round_trip(answered.round_trip);
                self.counts.late += u64::from(answered.late);
                self.counts.served += u64::from(tasks);
                self.counts.refused += u64::from(!tasks);
                self.accept(from, bundles)?;
            }
            Message::Lifeline(within) => {
                self.waiters.retain(|(waiter, _)| *waiter != from);
                self.waiters.push((from, within));
            }
            Message::Gift(bundles) => {
                self.requests.gift();
                self.accept(from, bundles)?;
            }
            Message::Results(results) => self.deliver_all(results)?,
            Message::Returned {
                lease,
                sent,
                results,
            } => {
                let account = self.ledger.returned(from, lease, sent)?;
                if account.is_none() && !self.options.recover {
                    return Err("the return of nothing that was lent".to_owned());
                }
                if let Some(account) = account {
                    for result in results {
                        self.came_back(account, result);
                    }
                    self.ledger.settle_return(account);
                    self.report_closed();
                }
            }
            Message::Revoked(lease) => self.void(from, lease),
            Message::Cancel(group, root) => {
                let known = match group {
                    GroupId::Collective(number) => self.is_near(number),
                    GroupId::Rooted { home, .. } => home == self.me,
                };
                if !known || root.0 >= self.ranks {
                    return Err("the end of a group that does not exist here".to_owned());
                }
                let spreads = matches!(group, GroupId::Collective(_)) && !self.options.recover;
                if spreads {
                    self.spread_cancel(group, root);
                }
                self.lines.cancel(group);
                self.drop_cancelled();
            }
            Message::CancelLease(lease) => {
                if let Some(group) = self.ledger.borrowed(from, lease) {
                    self.lines.cancel(group);
                    self.drop_cancelled();
                }
            }
            Message::Wave(number) => self.waves.wave(from, number)?,
            Message::Report(number, census, results) => {
                self.waves.report(from, number, &census)?;
                if self.me == ROOT {
                    self.deliver_all(results)?;
                } else {
                    self.carried.extend(results);
                }
            }
            Message::Exhausted(groups, all) => match &mut self.roll_call {
                None => self.waves.exhausted(from, &groups, all)?,
                Some(roll_call) => {
                    let outgoing = &mut self.outgoing;
                    roll_call.learn(&groups, all, &mut |to, call| {
                        outgoing.push_back((to, call.into_message()));
                    });
                }
            },
            Message::Quiet(groups, ended) => {
                let outgoing = &mut self.outgoing;
                let roll_call = self.roll_call.as_mut();
                roll_call.ok_or("a roll call that nobody holds")?.hear(
                    from,
                    &groups,
                    ended,
                    &mut |to, call| outgoing.push_back((to, call.into_message())),
                );
            }
            Message::Block(message) => {
                let mut out = Vec::new();
                let size = |bytes: &Bytes| bytes.len();
                let events = self.blocks.receive(from, message, size, &mut out)?;
                self.send_blocks(out);
                self.block_events(&events);
            }
        }
        let (outgoing, carried) = (&mut self.outgoing, &mut self.carried);
        self.waves.flush(&mut |to, signal: Signal| {
            outgoing.push_back((to, signal.into_message(carried)));
        });
        Ok(())
    }

    /// A rank died. Without [`ScopeOptions::recover`] a scope does not go on after that.
    pub fn lose(&mut self, rank: Rank) {
        if !self.dead.insert(rank) {
            return;
        }
        self.counts.refused += self.requests.lose(rank);
        self.waiters.retain(|(waiter, _)| *waiter != rank);
        self.mail.retain(|(home, _, _)| *home != rank);
        self.reruns.extend(self.ledger.lent_to(rank));
        for lease in self.ledger.borrowed_from(rank) {
            self.void(rank, lease);
        }
        let mut out = Vec::new();
        let events = self.blocks.rank_lost(rank, &mut out);
        self.send_blocks(out);
        self.block_events(&events);
        if let Some(roll_call) = &mut self.roll_call {
            let outgoing = &mut self.outgoing;
            roll_call.lose(rank, &mut |to, call| {
                outgoing.push_back((to, call.into_message()));
            });
        }
    }

    /// The number of a lease whose thief died: its tasks are to be given to [`Scheduler::restore`].
    pub fn rerun(&mut self) -> Option<u64> {
        self.reruns.pop_front()
    }

    /// Takes tasks back that a dead rank had.
    pub fn restore(&mut self, lease: u64, home: Rank, tasks: Vec<T>) {
        let count = tasks.len() as u64;
        let Some((account, line)) = self.ledger.take_back(lease, count) else {
            return;
        };
        self.counts.reruns += count;
        self.enter(&line, count);
        for task in tasks {
            let ticket = Ticket {
                line: Arc::clone(&line),
                home,
                account,
            };
            self.pool.push_back(Entry {
                ticket,
                task,
                shed: false,
                from: None,
                holds: false,
                passed: false,
            });
        }
        if self.cancelled {
            self.drop_cancelled();
        }
    }

    // ---- time

    /// Time has passed: results that have waited long enough for company go home, and ranks that wait for
    /// tasks get what there is.
    pub fn tick(&mut self, now: Duration) {
        self.clock = now;
        if !self.mail.is_empty() && now >= self.mail_since + self.mail_interval() {
            self.post();
        }
        let mut waiter = 0;
        while waiter < self.waiters.len() && self.has_spare() {
            let (rank, within) = self.waiters[waiter];
            let tasks = self.give(rank, within);
            if tasks.is_empty() {
                waiter += 1;
            } else {
                self.waiters.remove(waiter);
                self.outgoing.push_back((rank, Message::Gift(tasks)));
            }
        }
    }

    /// A worker has nothing to do, for no task here is within that group: ask somebody, if it is time.
    pub fn idle(&mut self, now: Duration, within: Option<GroupId>) {
        self.settle();
        if self.is_over() || self.pool.iter().any(|e| e.is_within(within)) {
            return;
        }
        let mut thieves = Vec::new();
        if let Some(group @ GroupId::Rooted { .. }) = within {
            // Tasks of this group are where they went from here, or nowhere.
            thieves.extend(self.ledger.thieves(group));
            if thieves.is_empty() {
                return;
            }
        }
        self.requests.want(within);
        // Those who have what a rooted group waits for need not be among the lifelines.
        if thieves.is_empty() {
            for rank in self.requests.lifelines() {
                self.outgoing.push_back((rank, Message::Lifeline(within)));
            }
        }
        while let Some(victim) = self.requests.next(now, &thieves) {
            self.outgoing
                .push_back((victim, Message::StealRequest(within)));
            self.counts.requests += 1;
        }
    }

    /// When an idle rank has something to do again even if no message comes; `None` if never.
    #[must_use]
    pub fn next_deadline(&self, now: Duration) -> Option<Duration> {
        let request = if self.is_over() {
            None
        } else {
            self.requests.deadline()
        };
        let mail = (!self.mail.is_empty()).then(|| self.mail_since + self.mail_interval());
        let deadline = request.into_iter().chain(mail).min()?;
        Some(deadline.max(now))
    }

    // ---- out

    /// The newest task of the pool within a group and its descendants, for a worker that has none.
    pub fn next_task(&mut self, within: Option<GroupId>) -> Option<(Ticket, T)> {
        if !self.taken.is_empty() {
            self.blocks.release(&std::mem::take(&mut self.taken));
        }
        loop {
            let at = match within {
                None => self.pool.len().checked_sub(1),
                Some(_) => self.pool.iter().rposition(|e| e.is_within(within)),
            };
            let Some(at) = at else {
                let new = self.pool.iter_mut().rev();
                for entry in new.take_while(|entry| !entry.passed) {
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
            return Some((entry.ticket, entry.task));
        }
    }

    /// The oldest result for a join of this group.
    pub fn next_result(&mut self, line: &Line) -> Option<R> {
        let result = match line.group() {
            GroupId::Collective(group) => self.results[group as usize].pop_front(),
            group @ GroupId::Rooted { .. } => self.ledger.next_result(group),
        };
        if result.is_some() {
            self.waves.used(line, 1);
        }
        result
    }

    /// The next message to send.
    pub fn outgoing(&mut self) -> Option<(Rank, Message<T, R>)> {
        self.outgoing.pop_front()
    }

    /// Whether the task that runs on the thread that answers should be split for a thief first, which would
    /// get nothing otherwise.
    #[must_use]
    pub fn wants_split_on_request(&self) -> bool {
        self.options.policy.split_on_request && self.pool.len() <= self.reserved()
    }

    /// Whether running tasks should give something away now; if so, the clock of splits starts anew.
    pub fn wants_split(&mut self, now: Duration) -> bool {
        let policy = &self.options.policy;
        let low_water = policy.low_water.max(self.reserved());
        let hungry =
            self.pool.len() < low_water || self.thief_went_empty || !self.waiters.is_empty();
        let wanted = !policy.split.0.gives_nothing()
            && (self.ranks > 1 && policy.steal || self.options.workers > 1)
            && hungry
            && self
                .last_split
                .is_none_or(|last| now >= last.saturating_add(self.pace.interval()));
        if wanted {
            self.last_split = Some(now);
            self.thief_went_empty = false;
        }
        wanted
    }

    /// Whether every task of this group, wherever it ran, has finished and all results were taken.
    pub fn is_exhausted(&mut self, line: &Line) -> bool {
        match line.group() {
            GroupId::Collective(group) => match &self.roll_call {
                None => self.waves.is_group_exhausted(group),
                Some(roll_call) => roll_call.is_group_exhausted(group),
            },
            group @ GroupId::Rooted { .. } => {
                let done = self.ledger.is_exhausted(group);
                self.report_closed();
                done
            }
        }
    }

    /// Whether this rank may leave the scope: no task of it is left anywhere.
    #[must_use]
    pub fn may_leave(&self) -> bool {
        self.is_over() && self.outgoing.is_empty()
    }

    /// Counts so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let blocks = self.blocks.counts();
        Counts {
            fetches: blocks.fetches,
            blocks_served: blocks.served,
            ..self.counts
        }
    }

    /// A dump for people: what is live here and what this rank waits for.
    #[must_use]
    pub fn describe(&self) -> String {
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
            self.aside.len(),
            self.running,
            self.waiting,
            self.requests.unanswered(),
        );
        let groups = if self.roll_call.is_some() {
            Vec::new()
        } else {
            self.waves.describe()
        };
        for line in groups.into_iter().chain(self.ledger.describe()) {
            text.push_str("\n  ");
            text.push_str(&line);
        }
        text
    }

    // ---- inside

    /// Whether the scope is exhausted.
    fn is_over(&self) -> bool {
        match &self.roll_call {
            None => self.waves.is_exhausted(),
            Some(roll_call) => roll_call.is_exhausted(),
        }
    }

    /// Makes room for a collective group.
    fn know(&mut self, group: u32) {
        self.waves.know(group);
        for number in self.collective.len() as u32..=group {
            let id = GroupId::Collective(number);
            let line = self.lines.resolve(&[id]);
            self.collective
                .push(line.unwrap_or_else(|| Line::new(id, None)));
            self.results.push(VecDeque::new());
            self.here.push(0);
        }
    }

    /// Whether a collective group exists, or may as far as this rank can know.
    fn is_near(&self, group: u32) -> bool {
        group < self.waves.made() + FORESIGHT
    }

    fn enter(&mut self, line: &Line, tasks: u64) {
        self.here_in_all += tasks;
        if let Some(base) = line.base() {
            self.here[base as usize] += tasks;
        }
    }

    fn exit(&mut self, line: &Line, tasks: u64) {
        self.here_in_all -= tasks;
        if let Some(base) = line.base() {
            self.here[base as usize] -= tasks;
        }
    }

    /// Whether tasks have no place in the pool, for their group is cancelled or their lease void.
    fn is_unwanted(&self, ticket: &Ticket) -> bool {
        self.cancelled && ticket.line.is_cancelled() || self.ledger.is_revoked(ticket.account)
    }

    /// A task that was here is no more.
    fn gone(&mut self, ticket: &Ticket) {
        self.waves.used(&ticket.line, 1);
        self.exit(&ticket.line, 1);
        if ticket.account != NONE {
            self.ledger.release(ticket.account);
            self.report_closed();
        }
    }

    /// What a thief gets: the oldest half of what the pool has for it, for the oldest tasks are the largest.
    ///
    /// Tasks that own workers are about to take stay: else two idle ranks could pass a task to and fro. But not
    /// those that none may take: two ranks that wait in joins could keep what the other waits for.
    fn give(&mut self, to: Rank, within: Option<GroupId>) -> Vec<Bundle<T>> {
        if self.dead.contains(&to) {
            return Vec::new();
        }
        let fits = match within {
            None => self.pool.len(),
            Some(_) => self.pool.iter().filter(|e| e.is_within(within)).count(),
        };
        let new = self.pool.iter().rev().take_while(|entry| !entry.passed);
        let own = new.filter(|entry| entry.is_within(within));
        let count = (fits - own.take(self.reserved()).count()).div_ceil(2);
        let given: Vec<Entry<T>> = if fits == self.pool.len() {
            self.pool.drain(..count).collect()
        } else {
            let mut given = Vec::with_capacity(count);
            let mut kept = VecDeque::with_capacity(self.pool.len());
            for entry in self.pool.drain(..) {
                if given.len() < count && entry.is_within(within) {
                    given.push(entry);
                } else {
                    kept.push_back(entry);
                }
            }
            self.pool = kept;
            given
        };
        self.counts.tasks_out += given.len() as u64;
        let mut bundles: Vec<(Ticket, Bundle<T>)> = Vec::new();
        for entry in given {
            if entry.shed {
                self.pace.piece_stolen();
            }
            if entry.holds {
                self.blocks.release(entry.task.needs());
            }
            self.exit(&entry.ticket.line, 1);
            match bundles.last_mut() {
                Some((ticket, bundle)) if ticket.is_like(&entry.ticket) => {
                    bundle.tasks.push(entry.task);
                }
                _ => {
                    let path = entry.ticket.line.ancestors().map(Line::group).collect();
                    let bundle = Bundle {
                        path,
                        home: entry.ticket.home,
                        lease: 0,
                        tasks: vec![entry.task],
                    };
                    bundles.push((entry.ticket, bundle));
                }
            }
        }
        let bundles = bundles.into_iter().map(|(ticket, mut bundle)| {
            bundle.lease = self
                .ledger
                .lend(ticket.account, to, bundle.tasks.len() as u64);
            bundle
        });
        bundles.collect()
    }

    /// Takes stolen tasks in.
    fn accept(&mut self, from: Rank, bundles: Vec<Bundle<T>>) -> Result<(), String> {
        for bundle in bundles {
            if bundle.home.0 >= self.ranks {
                return Err(format!("a task whose home is rank {}", bundle.home.0));
            }
            for (at, group) in bundle.path.iter().enumerate() {
                if let GroupId::Collective(number) = *group {
                    if !self.is_near(number) || at + 1 < bundle.path.len() {
                        return Err("a task of a group that does not exist here".to_owned());
                    }
                    self.know(number);
                }
            }
            let line = self.lines.resolve(&bundle.path);
            let line = line.ok_or("a task of no group")?;
            let count = bundle.tasks.len() as u64;
            let account = self.ledger.borrow(&line, from, bundle.lease, count)?;
            let ticket = Ticket {
                line,
                home: bundle.home,
                account,
            };
            self.counts.tasks_in += count;
            self.enter(&ticket.line, count);
            for task in bundle.tasks {
                self.pool.push_back(Entry {
                    ticket: ticket.clone(),
                    task,
                    shed: false,
                    from: Some(from),
                    holds: false,
                    passed: false,
                });
            }
        }
        if self.cancelled {
            self.drop_cancelled();
        }
        Ok(())
    }

    /// How many tasks of the pool own workers are about to take, if they may.
    fn reserved(&self) -> usize {
        (self.options.workers + self.waiting).saturating_sub(self.running)
    }

    /// Whether there is something for thieves.
    fn has_spare(&self) -> bool {
        self.pool.len() > self.reserved() || self.pool.front().is_some_and(|entry| entry.passed)
    }

    /// Sends all results home, those for one rank in one message: a rank to which thousands send would
    /// have nothing else to do.
    fn post(&mut self) {
        // Stable: results for one home keep their order.
        self.mail.sort_by_key(|(home, _, _)| *home);
        let mut letter: Option<(Rank, Vec<(GroupId, R)>)> = None;
        for (home, group, result) in self.mail.drain(..) {
            match &mut letter {
                Some((to, results)) if *to == home => results.push((group, result)),
                _ => {
                    if let Some((to, results)) = letter.replace((home, vec![(group, result)])) {
                        self.outgoing.push_back((to, Message::Results(results)));
                    }
                }
            }
        }
        if let Some((to, results)) = letter {
            self.outgoing.push_back((to, Message::Results(results)));
        }
    }

    /// How long results wait: so that a home that takes one message a microsecond keeps up with all.
    fn mail_interval(&self) -> Duration {
        MAIL_INTERVAL_PER_RANK * self.ranks
    }

    /// A result is home that was produced here; nobody will ask for it once its group is abandoned.
    fn deliver(&mut self, line: &Line, result: R) {
        match line.group() {
            GroupId::Collective(group) => self.deliver_collective(group, result),
            group @ GroupId::Rooted { .. } => {
                // A group that is not known any more is wanted by nobody.
                if !matches!(self.ledger.deliver(group, result, false), Ok(None)) {
                    self.waves.rooted_used(1);
                }
            }
        }
    }

    fn deliver_all(&mut self, results: Vec<(GroupId, R)>) -> Result<(), String> {
        let mut results = results.into_iter();
        results.try_for_each(|(group, result)| self.deliver_to(group, result))
    }

    /// A result came from another rank.
    fn deliver_to(&mut self, group: GroupId, result: R) -> Result<(), String> {
        match group {
            GroupId::Collective(number) if number < self.waves.made() => {
                self.deliver_collective(number, result);
            }
            GroupId::Collective(_) => return Err("a result of no group".to_owned()),
            GroupId::Rooted { .. } => {
                if self.ledger.deliver(group, result, true)?.is_some() {
                    self.waves.rooted_used(1);
                }
            }
        }
        Ok(())
    }

    fn deliver_collective(&mut self, group: u32, result: R) {
        if self.body == Body::Ended {
            let line = &self.collective[group as usize];
            self.waves.used(line, 1);
        } else {
            self.results[group as usize].push_back(result);
        }
    }

    /// A result came back with a lease of this account.
    fn came_back(&mut self, account: AccountId, result: R) {
        if let Kept::Home(result) = self.ledger.keep(account, result)
            && let Some(line) = self.ledger.line(account)
        {
            self.waves.given(&line);
            self.deliver(&line, result);
        }
    }

    /// Tells victims whose leases are done.
    fn report_closed(&mut self) {
        if !self.ledger.has_closed() {
            return;
        }
        for closed in self.ledger.closed() {
            if closed.sent > 0 {
                self.post();
            }
            let message = Message::Returned {
                lease: closed.lease,
                sent: closed.sent,
                results: closed.results,
            };
            self.outgoing.push_back((closed.victim, message));
        }
    }

    /// A lease is void: its tasks here are dropped, and what was lent of them is void too.
    fn void(&mut self, victim: Rank, lease: u64) {
        for (thief, number) in self.ledger.revoke(victim, lease) {
            if !self.dead.contains(&thief) {
                self.outgoing.push_back((thief, Message::Revoked(number)));
            }
        }
        self.drop_entries(|entry, ledger| ledger.is_revoked(entry.ticket.account));
        self.report_closed();
    }

    /// Passes a cancellation on, along a binomial tree of ranks.
    fn spread_cancel(&mut self, group: GroupId, root: Rank) {
        let n = self.ranks;
        let message = || Message::Cancel(group, root);
        if self.options.recover {
            let others = (0..n).map(Rank).filter(|r| *r != self.me);
            let alive = others.filter(|rank| !self.dead.contains(rank));
            self.outgoing.extend(alive.map(|rank| (rank, message())));
            return;
        }
        let place = (self.me.0 + n - root.0) % n;
        let mut bit = 1;
        while bit < n && place & bit == 0 {
            bit *= 2;
        }
        while bit > 1 {
            bit /= 2;
            if place + bit < n {
                let child = Rank((self.me.0 + bit) % n);
                self.outgoing.push_back((child, message()));
            }
        }
    }

    /// Drops what belongs to cancelled groups, and tells thieves of their leases.
    fn drop_cancelled(&mut self) {
        self.cancelled = true;
        for (thief, lease) in self.ledger.newly_cancelled() {
            self.outgoing
                .push_back((thief, Message::CancelLease(lease)));
        }
        self.drop_entries(|entry, _| entry.ticket.line.is_cancelled());
    }

    fn drop_entries(&mut self, is_void: impl Fn(&Entry<T>, &Ledger<R>) -> bool) {
        let mut dropped = Vec::new();
        let ledger = &self.ledger;
        let (void, kept) = std::mem::take(&mut self.pool)
            .into_iter()
            .partition::<VecDeque<_>, _>(|entry| is_void(entry, ledger));
        self.pool = kept;
        dropped.extend(void);
        let (void, kept) = std::mem::take(&mut self.aside)
            .into_iter()
            .partition::<Vec<_>, _>(|entry| is_void(entry, ledger));
        self.aside = kept;
        dropped.extend(void);
        self.counts.dropped += dropped.len() as u64;
        for entry in dropped {
            if entry.holds {
                self.blocks.release(entry.task.needs());
            }
            self.gone(&entry.ticket);
        }
    }

    /// The body goes on, waits, or has ended: that decides which blocks it may still publish.
    fn publisher_is(&mut self, body: Publisher) {
        let mut out = Vec::new();
        let events = self.blocks.body_is(body, &mut out);
        self.send_blocks(out);
        self.block_events(&events);
    }

    fn send_blocks(&mut self, out: Vec<(Rank, message::BlockMessage<Bytes>)>) {
        let messages = out.into_iter().map(|(to, m)| (to, Message::Block(m)));
        self.outgoing.extend(messages);
    }

    /// Lets the detectors of termination go on, now that something may have become passive.
    fn settle(&mut self) {
        self.ledger.sweep();
        self.waves.rooted_used(self.ledger.left_over());
        self.report_closed();
        let outgoing = &mut self.outgoing;
        if let Some(roll_call) = &mut self.roll_call {
            let ledger = &mut self.ledger;
            let groups = match self.body {
                Body::WaitsIn(GroupId::Collective(group)) => group..group + 1,
                Body::Ended => 0..self.waves.made(),
                _ => 0..0,
            };
            let quiet: Vec<u32> = groups
                .filter(|&g| {
                    self.results[g as usize].is_empty() && ledger.is_idle(GroupId::Collective(g))
                })
                .collect();
            let ended = self.body == Body::Ended && ledger.is_at_rest();
            roll_call.rest(quiet.into_iter(), ended, &mut |to, call| {
                outgoing.push_back((to, call.into_message()));
            });
            return;
        }
        let passive = match self.body {
            // A task may wait for a block of a rank that waits for this rank's verdict on another group.
            Body::Ended => self.here_in_all == self.aside.len() as u64,
            Body::WaitsIn(GroupId::Collective(group)) => {
                self.here[group as usize] == 0 && self.results[group as usize].is_empty()
            }
            _ => false,
        };
        if passive && self.waves.is_asked() {
            // The end waits for these. Rank 0, often the home of most, gets them with the report.
            if self.me != ROOT {
                let (root, others): (Vec<_>, _) = std::mem::take(&mut self.mail)
                    .into_iter()
                    .partition(|(home, _, _)| *home == ROOT);
                self.mail = others;
                let results = root.into_iter().map(|(_, group, result)| (group, result));
                self.carried.extend(results);
            }
            self.post();
        }
        let (outgoing, carried) = (&mut self.outgoing, &mut self.carried);
        self.waves.advance(passive, &mut |to, signal: Signal| {
            outgoing.push_back((to, signal.into_message(carried)));
        });
    }
}

impl<T: Work<R>, R> Scheduler<T, R> {
    /// Gives an entry back if all blocks are here that its task needs. If not, it waits aside, or has failed.
    fn prepare(&mut self, mut entry: Entry<T>) -> Option<Entry<T>> {
        let needs = entry.task.needs().to_vec();
        if !entry.holds {
            self.blocks.hold(&needs);
            entry.holds = true;
        }
        let base = entry.base();
        let mut out = Vec::new();
        let mut missing = false;
        let mut refusal = None;
        for &name in &needs {
            match self.blocks.want(name, base, entry.from, &mut out) {
                Want::Here => {}
                Want::Coming => missing = true,
                Want::Refused(why) => refusal = Some(why),
            }
        }
        self.send_blocks(out);
        if let Some(why) = refusal {
            self.fail(entry, why);
            return None;
        }
        if missing {
            self.aside.push(entry);
            return None;
        }
        self.taken = needs;
        Some(entry)
    }

    /// A task cannot run.
    fn fail(&mut self, entry: Entry<T>, why: BlockError) {
        if entry.holds {
            self.blocks.release(entry.task.needs());
        }
        self.produced(&entry.ticket, entry.task.refused(self.me, why));
        self.gone(&entry.ticket);
    }

    /// Blocks came, or will not: tasks that waited for them go on, or fail.
    fn block_events(&mut self, events: &[Event]) {
        for event in events {
            let (name, base, why) = match event {
                Event::Arrived(name) => (name, None, None),
                Event::Refused(name, base, why) => (name, Some(*base), Some(why)),
            };
            let (concerned, others) = std::mem::take(&mut self.aside)
                .into_iter()
                .partition::<Vec<_>, _>(|entry| {
                    base.is_none_or(|base| base == entry.base())
                        && entry.task.needs().contains(name)
                });
            self.aside = others;
            for mut entry in concerned {
                match why {
                    // It is looked at again before it runs.
                    None => {
                        entry.passed = false;
                        self.pool.push_back(entry);
                    }
                    Some(why) => self.fail(entry, *why),
                }
            }
        }
    }
}

impl<T> Entry<T> {
    fn base(&self) -> Base {
        self.ticket.line.base().unwrap_or(0)
    }

    fn is_within(&self, group: Option<GroupId>) -> bool {
        group.is_none_or(|group| self.ticket.line.is_within(group))
    }
}

impl Ticket {
    fn is_like(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.line, &other.line)
            && self.home == other.home
            && self.account == other.account
    }
}

impl Signal {
    /// `carried`: results that go up the tree with a report.
    fn into_message<T, R>(self, carried: &mut Vec<(GroupId, R)>) -> Message<T, R> {
        match self {
            Self::Wave(number) => Message::Wave(number),
            Self::Report(number, census) => {
                Message::Report(number, census, std::mem::take(carried))
            }
            Self::Exhausted(groups, all) => Message::Exhausted(groups, all),
        }
    }
}

impl Call {
    fn into_message<T, R>(self) -> Message<T, R> {
        match self {
            Self::Quiet(groups, ended) => Message::Quiet(groups, ended),
            Self::Exhausted(groups, all) => Message::Exhausted(groups, all),
        }
    }
}

#[cfg(test)]
mod tests;
