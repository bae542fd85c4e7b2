//! The victim's side of stealing: what a thief gets, when tasks are split for it, and what becomes
//! of stolen tasks that come in.

use std::time::Duration;

use super::ancestry::{Ancestry, GroupId};
use super::message::{Bundle, SchedulerMessage};
use super::{Entry, Membership, Scheduler, Work};
use crate::comm::Rank;

impl<T: Work<R>, R> Scheduler<T, R> {
    /// Whether the task that runs on the thread that answers should be split for a thief first,
    /// which would get nothing otherwise.
    #[must_use]
    pub(crate) fn wants_split_on_request(&self) -> bool {
        self.options.policy.split_on_request && self.pool.len() <= self.reserved()
    }

    /// Whether running tasks should give something away now; if so, the clock of splits starts
    /// anew.
    pub(crate) fn wants_split(&mut self, now: Duration) -> bool {
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

    /// A worker has nothing to do, for no task here is within that group: ask somebody, if it is
    /// time.
    pub(crate) fn idle(&mut self, now: Duration, within: Option<GroupId>) {
        self.settle();
        if self.is_over() || self.pool.iter().any(|e| e.is_within(within)) {
            return;
        }
        let mut thieves = Vec::new();
        if let Some(group @ GroupId::Rooted { .. }) = within {
            // Tasks of this group are where they went from here, or nowhere.
            thieves.extend(self.leases.thieves(group));
            if thieves.is_empty() {
                return;
            }
        }
        self.requests.want(within);
        // Ranks that have what a rooted group waits for need not be among the lifelines.
        if thieves.is_empty() {
            for rank in self.requests.lifelines() {
                self.outgoing
                    .push_back((rank, SchedulerMessage::Lifeline(within)));
            }
        }
        while let Some(victim) = self.requests.next(now, &thieves) {
            self.outgoing
                .push_back((victim, SchedulerMessage::StealRequest(within)));
            self.counts.requests += 1;
        }
    }

    /// Ranks that wait for tasks get what there is.
    pub(super) fn serve_waiters(&mut self) {
        let mut waiter = 0;
        while waiter < self.waiters.len() && self.has_spare() {
            let (rank, within) = self.waiters[waiter];
            let tasks = self.give(rank, within);
            if tasks.is_empty() {
                waiter += 1;
            } else {
                self.waiters.remove(waiter);
                self.outgoing
                    .push_back((rank, SchedulerMessage::Gift(tasks)));
            }
        }
    }

    /// Takes the tasks of the pool that a thief gets: as many as the policy's split rule gives of
    /// that many entries. The oldest tasks are the largest where tasks fork tasks: neither side
    /// should get them all.
    ///
    /// Tasks that own workers are about to take stay: else two idle ranks could pass a task to and
    /// fro. But not those that none may take: two ranks that wait in joins could keep what the
    /// other waits for.
    pub(super) fn give(&mut self, to: Rank, within: Option<GroupId>) -> Vec<Bundle<T>> {
        let fits = match within {
            None => self.pool.len(),
            Some(_) => self.pool.iter().filter(|e| e.is_within(within)).count(),
        };
        let new = self.pool.iter().rev().filter(|entry| !entry.passed);
        let own = new.filter(|entry| entry.is_within(within));
        let spare = fits - own.take(self.reserved()).count();
        let marks = self.options.policy.split.of_pool(spare);
        let mut given = Vec::with_capacity(marks.iter().filter(|&&goes| goes).count());
        let mut kept = Vec::new();
        for goes in marks {
            while let Some(entry) = self.pool.pop_front() {
                let fits = entry.is_within(within);
                if fits && goes {
                    given.push(entry);
                } else {
                    kept.push(entry);
                }
                if fits {
                    break;
                }
            }
        }
        for entry in kept.into_iter().rev() {
            self.pool.push_front(entry);
        }
        self.counts.tasks_out += given.len() as u64;
        if !given.is_empty() {
            self.waves.moved();
        }
        let mut bundles: Vec<(Membership, Bundle<T>)> = Vec::new();
        for entry in given {
            if entry.shed {
                self.pace.piece_stolen();
            }
            if entry.holds {
                self.blocks.release(entry.task.needs());
            }
            self.exit(&entry.membership.ancestry, 1);
            match bundles.last_mut() {
                Some((membership, bundle)) if membership.is_like(&entry.membership) => {
                    bundle.tasks.push(entry.task);
                }
                _ => {
                    let path = entry
                        .membership
                        .ancestry
                        .ancestors()
                        .map(Ancestry::group)
                        .collect();
                    let bundle = Bundle {
                        path,
                        home: entry.membership.home,
                        lease: 0,
                        tasks: vec![entry.task],
                    };
                    bundles.push((entry.membership, bundle));
                }
            }
        }
        let bundles = bundles.into_iter().map(|(membership, mut bundle)| {
            bundle.lease = self
                .leases
                .lend(membership.account, to, bundle.tasks.len() as u64);
            bundle
        });
        bundles.collect()
    }

    /// Takes stolen tasks in.
    pub(super) fn accept(&mut self, from: Rank, bundles: Vec<Bundle<T>>) -> Result<(), String> {
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
            let ancestry = self.ancestries.resolve(&bundle.path);
            let ancestry = ancestry.ok_or("a task of no group")?;
            let count = bundle.tasks.len() as u64;
            let account = self.leases.borrow(&ancestry, from, bundle.lease, count)?;
            let membership = Membership {
                ancestry,
                home: bundle.home,
                account,
            };
            self.counts.tasks_in += count;
            self.enter(&membership.ancestry, count);
            for task in bundle.tasks {
                self.enter_pool(Entry {
                    from: Some(from),
                    ..Entry::new(membership.clone(), task)
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
        self.pool.len() > self.reserved() || self.pool.iter().any(|entry| entry.passed)
    }
}
