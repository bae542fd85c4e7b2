//! Work that is not to be done any more, or once more: cancelled groups, and ranks that died.

use std::collections::VecDeque;
use std::sync::Arc;

use super::ledger::Ledger;
use super::line::{GroupId, Line};
use super::message::Message;
use super::{Entry, Scheduler, Ticket, Work};
use crate::comm::Rank;

impl<T: Work<R>, R> Scheduler<T, R> {
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

    /// A rank died. Without [`recover`](crate::ScopeOptions::recover) a scope does not go on after that.
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
            self.pool.push_back(Entry::new(ticket, task));
        }
        if self.cancelled {
            self.drop_cancelled();
        }
    }

    /// A lease is void: its tasks here are dropped, and what was lent of them is void too.
    pub(super) fn void(&mut self, victim: Rank, lease: u64) {
        for (thief, number) in self.ledger.revoke(victim, lease) {
            if !self.dead.contains(&thief) {
                self.outgoing.push_back((thief, Message::Revoked(number)));
            }
        }
        self.drop_entries(|entry, ledger| ledger.is_revoked(entry.ticket.account));
        self.report_closed();
    }

    /// Passes a cancellation on, along a binomial tree of ranks.
    pub(super) fn spread_cancel(&mut self, group: GroupId, root: Rank) {
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
    pub(super) fn drop_cancelled(&mut self) {
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

    /// Whether tasks have no place in the pool, for their group is cancelled or their lease void.
    pub(super) fn is_unwanted(&self, ticket: &Ticket) -> bool {
        self.cancelled && ticket.line.is_cancelled() || self.ledger.is_revoked(ticket.account)
    }
}
