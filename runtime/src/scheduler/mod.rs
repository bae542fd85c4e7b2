//! The scheduler of one rank: a pure state machine. Events go in, actions come out.
//!
//! It holds the rank's task pool, decides whom to ask for work, answers thieves, asks running tasks to
//! split, carries results home and finds out when groups are exhausted. It has no clock, no threads and no
//! sockets: time is an argument, messages are values. Every driver, and every test, runs this code.
//!
//! The methods are of three kinds. *In*: [`Scheduler::fork`], [`Scheduler::finished`],
//! [`Scheduler::produced`], [`Scheduler::receive`], [`Scheduler::idle`] and what the body does. *Out*:
//! [`Scheduler::next_task`], [`Scheduler::next_result`], [`Scheduler::outgoing`]; poll them after every
//! event. *Getters*: the rest. The protocol is written up in the crate's README.

pub mod message;
mod termination;

use std::collections::VecDeque;
use std::time::Duration;

use self::message::{GroupId, Message};
use self::termination::Termination;
use crate::comm::Rank;
use crate::policy::{ScopeOptions, Split, Victims};

/// Refusals in a row after which a rank pauses between requests.
const PATIENCE: u32 = 8;
/// The first such pause, and the longest; each is twice the last.
const FIRST_PAUSE: Duration = Duration::from_micros(2);
const LONGEST_PAUSE: Duration = Duration::from_micros(32);

/// Results for other homes are sent together: after so long for each rank of the job, or when they are so
/// many.
const MAIL_INTERVAL_PER_RANK: Duration = Duration::from_micros(2);
const MOST_MAIL: usize = 256;

/// How many groups ahead of this rank a victim may be: each needs all ranks to have joined the one before.
const FORESIGHT: usize = 64;

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
pub struct Scheduler<T, R> {
    me: Rank,
    ranks: u32,
    options: ScopeOptions,
    pool: VecDeque<(GroupId, T)>,
    /// Stolen tasks of groups that are still to be made here.
    early: Vec<(GroupId, T)>,
    /// Tasks taken out of the pool that have not finished.
    running: usize,
    /// Results for this rank's joins.
    results: Vec<VecDeque<R>>,
    outgoing: VecDeque<(Rank, Message<T, R>)>,
    /// Results for other homes, and since when the oldest waits.
    mail: Vec<(Rank, GroupId, R)>,
    mail_since: Duration,
    /// The latest time it was told.
    clock: Duration,
    termination: Termination,
    victims: Victims,
    /// Requests without an answer so far, and when the newest was sent.
    unanswered: u32,
    asked_at: Duration,
    /// Requests that have timed out and were not answered yet.
    overdue: u32,
    refused_in_a_row: u32,
    pause: Duration,
    resume_at: Duration,
    last_split: Option<Duration>,
    /// A thief was sent away since the last split.
    thief_went_empty: bool,
    counts: Counts,
}

impl<T, R> Scheduler<T, R> {
    /// The scheduler of `me` among `ranks` ranks, without groups.
    #[must_use]
    pub fn new(me: Rank, ranks: u32, options: &ScopeOptions) -> Self {
        Self {
            me,
            ranks,
            options: *options,
            pool: VecDeque::new(),
            early: Vec::new(),
            running: 0,
            results: Vec::new(),
            outgoing: VecDeque::new(),
            mail: Vec::new(),
            mail_since: Duration::ZERO,
            clock: Duration::ZERO,
            termination: Termination::new(me, ranks),
            victims: Victims::new(options.seed, me.0, ranks),
            unanswered: 0,
            asked_at: Duration::ZERO,
            overdue: 0,
            refused_in_a_row: 0,
            pause: FIRST_PAUSE,
            resume_at: Duration::ZERO,
            last_split: None,
            thief_went_empty: false,
            counts: Counts::default(),
        }
    }

    /// Makes a group; every rank makes its groups in the same order.
    pub fn group(&mut self) -> GroupId {
        self.results.push(VecDeque::new());
        let group = self.termination.group();
        let (now, later) = self.early.drain(..).partition(|&(g, _)| g == group);
        self.early = later;
        let now: Vec<(GroupId, T)> = now;
        self.pool.extend(now);
        group
    }

    /// The body forks, a running task hyperforks, or a piece is split off.
    pub fn fork(&mut self, group: GroupId, task: T) {
        self.termination.given(group);
        self.pool.push_back((group, task));
    }

    /// A running task gave a piece away.
    pub fn split_off(&mut self, group: GroupId, piece: T) {
        self.counts.splits += 1;
        self.fork(group, piece);
    }

    /// A running task produced a result for its home.
    pub fn produced(&mut self, group: GroupId, home: Rank, result: R) {
        self.termination.given(group);
        if home == self.me {
            self.deliver(group as usize, result);
        } else {
            if self.mail.is_empty() {
                self.mail_since = self.clock;
            }
            self.mail.push((home, group, result));
            if self.mail.len() >= MOST_MAIL {
                self.post();
            }
        }
    }

    /// A running task has finished.
    pub fn finished(&mut self, group: GroupId) {
        self.termination.used(group);
        self.running -= 1;
        self.settle();
    }

    /// The body waits in a join of this group.
    pub fn waits_in(&mut self, group: GroupId) {
        self.termination.waits_in(Some(group));
        self.settle();
    }

    /// The body has returned: it will neither fork nor join again.
    ///
    /// Results nobody took are dropped.
    pub fn body_ended(&mut self) {
        self.termination.body_ended();
        for group in 0..self.results.len() {
            self.drop_results(group);
        }
        self.settle();
    }

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
        let violation = |what: &str| Violation {
            from,
            what: what.to_owned(),
        };
        let outcome = match message {
            Message::StealRequest => {
                let tasks = self.give();
                self.thief_went_empty |= tasks.is_empty() && self.options.workers > 1;
                self.counts.tasks_out += tasks.len() as u64;
                self.outgoing.push_back((from, Message::StealAnswer(tasks)));
                Ok(())
            }
            Message::StealAnswer(tasks) => {
                self.answered(now)
                    .ok_or_else(|| violation("an answer nobody asked for"))?;
                let known = self.results.len() + FORESIGHT;
                if tasks.iter().any(|(group, _)| *group as usize >= known) {
                    return Err(violation("a task of a group that does not exist here"));
                }
                if tasks.is_empty() {
                    self.counts.refused += 1;
                    self.refused_in_a_row += 1;
                    if self.refused_in_a_row > PATIENCE {
                        self.resume_at = now + self.pause;
                        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
                    }
                } else {
                    self.counts.served += 1;
                    self.refused_in_a_row = 0;
                    self.pause = FIRST_PAUSE;
                }
                self.counts.tasks_in += tasks.len() as u64;
                for (group, task) in tasks {
                    if (group as usize) < self.results.len() {
                        self.pool.push_back((group, task));
                    } else {
                        // The verdict on an earlier group is still on its way here.
                        self.early.push((group, task));
                    }
                }
                Ok(())
            }
            Message::Results(results) => {
                let known = self.results.len();
                if results.iter().any(|(group, _)| *group as usize >= known) {
                    return Err(violation("a result of no group"));
                }
                for (group, result) in results {
                    self.deliver(group as usize, result);
                }
                Ok(())
            }
            Message::Wave(number) => self.termination.wave(from, number),
            Message::Report(number, census) => self.termination.report(from, number, &census),
            Message::Exhausted(groups, all) => self.termination.exhausted(from, &groups, all),
            Message::Drained => self.termination.child_drained(from),
            Message::Leave => self.termination.leave(from),
        };
        outcome.map_err(violation)?;
        self.settle();
        Ok(())
    }

    /// Time has passed: results that have waited long enough for company go home.
    pub fn tick(&mut self, now: Duration) {
        self.clock = now;
        if !self.mail.is_empty() && now >= self.mail_since + self.mail_interval() {
            self.post();
        }
    }

    /// Some worker has nothing to do: ask somebody, if it is time.
    pub fn idle(&mut self, now: Duration) {
        self.settle();
        let may_ask = self.options.steal
            && self.ranks > 1
            && self.pool.is_empty()
            && !self.termination.is_exhausted();
        if !may_ask || now < self.resume_at {
            return;
        }
        if self.unanswered > self.overdue {
            if now < self.asked_at + self.options.steal_timeout {
                return;
            }
            // It may still bring work: it stays counted until its answer is here.
            self.overdue = self.unanswered;
        }
        let victim = Rank(self.victims.draw());
        self.outgoing.push_back((victim, Message::StealRequest));
        self.unanswered += 1;
        self.asked_at = now;
        self.counts.requests += 1;
    }

    /// The newest task of the pool, for a worker that has none.
    pub fn next_task(&mut self) -> Option<(GroupId, T)> {
        let task = self.pool.pop_back()?;
        self.running += 1;
        Some(task)
    }

    /// The oldest result for a join of this group.
    pub fn next_result(&mut self, group: GroupId) -> Option<R> {
        let result = self.results[group as usize].pop_front()?;
        self.termination.used(group);
        self.termination.waits_in(None);
        Some(result)
    }

    /// The next message to send.
    pub fn outgoing(&mut self) -> Option<(Rank, Message<T, R>)> {
        self.outgoing.pop_front()
    }

    /// Whether the task that runs on the thread that answers should be split for a thief first, which would
    /// get nothing otherwise.
    #[must_use]
    pub fn wants_split_on_request(&self) -> bool {
        self.options.split_on_request && self.pool.len() <= self.reserved()
    }

    /// When an idle rank has something to do again even if no message comes; `None` if never.
    #[must_use]
    pub fn next_deadline(&self, now: Duration) -> Option<Duration> {
        let asks = self.options.steal && self.ranks > 1 && !self.termination.is_exhausted();
        let request = asks.then(|| {
            if self.unanswered > self.overdue {
                self.asked_at + self.options.steal_timeout
            } else {
                self.resume_at
            }
        });
        let mail = (!self.mail.is_empty()).then(|| self.mail_since + self.mail_interval());
        let deadline = request.into_iter().chain(mail).min()?;
        Some(deadline.max(now))
    }

    /// Whether running tasks should give something away now; if so, the clock of splits starts anew.
    pub fn wants_split(&mut self, now: Duration) -> bool {
        let low_water = self.options.low_water.max(self.reserved());
        let hungry = self.pool.len() < low_water || self.thief_went_empty;
        let wanted = self.options.split != Split::Never
            && (self.ranks > 1 && self.options.steal || self.options.workers > 1)
            && hungry
            && self
                .last_split
                .is_none_or(|last| now >= last + self.options.split_interval);
        if wanted {
            self.last_split = Some(now);
            self.thief_went_empty = false;
        }
        wanted
    }

    /// Whether every task of this group, wherever it ran, has finished and all results were taken.
    #[must_use]
    pub fn is_exhausted(&self, group: GroupId) -> bool {
        self.termination.is_group_exhausted(group)
    }

    /// Whether this rank may leave the scope: no task and no message of it is left anywhere.
    #[must_use]
    pub fn may_leave(&self) -> bool {
        self.termination.may_leave() && self.outgoing.is_empty() && self.mail.is_empty()
    }

    /// Counts so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// A dump for people: what this rank still waits for.
    #[must_use]
    pub fn describe(&self) -> String {
        format!(
            "rank {}: {} tasks in the pool, {} running, {} requests unanswered; {}",
            self.me.0,
            self.pool.len(),
            self.running,
            self.unanswered,
            self.termination.describe()
        )
    }

    /// What a thief gets: the oldest half of the pool, for the oldest tasks are the largest.
    ///
    /// Tasks that own workers are about to take stay: else two idle ranks could pass a task to and fro.
    fn give(&mut self) -> Vec<(GroupId, T)> {
        let count = self.pool.len().saturating_sub(self.reserved()).div_ceil(2);
        self.pool.drain(..count).collect()
    }

    /// How many tasks of the pool own workers are about to take.
    fn reserved(&self) -> usize {
        self.options.workers.saturating_sub(self.running)
    }

    /// One request was answered; `None` if there was none.
    fn answered(&mut self, now: Duration) -> Option<()> {
        self.unanswered = self.unanswered.checked_sub(1)?;
        if self.overdue > 0 {
            self.overdue -= 1;
            self.counts.late += 1;
        } else if now >= self.asked_at + self.options.steal_timeout {
            self.counts.late += 1;
        }
        Some(())
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

    /// A result is home; nobody will ask for it once the body has ended.
    fn deliver(&mut self, group: usize, result: R) {
        self.results[group].push_back(result);
        if self.termination.has_body_ended() {
            self.drop_results(group);
        }
    }

    fn drop_results(&mut self, group: usize) {
        while self.results[group].pop_front().is_some() {
            self.termination.used(group as GroupId);
        }
    }

    /// Lets the detector of termination go on, now that something may have become passive.
    fn settle(&mut self) {
        let passive = self.pool.is_empty() && self.early.is_empty() && self.running == 0;
        if passive && self.termination.is_asked() {
            // The end waits for these.
            self.post();
        }
        let waiting = |group: GroupId| self.results[group as usize].is_empty();
        self.termination.advance(
            passive,
            self.unanswered == 0,
            waiting,
            &mut |to, message| {
                self.outgoing.push_back((to, message.into_message()));
            },
        );
    }
}

#[cfg(test)]
mod tests;
