//! Cancellation of groups: tasks in pools are dropped, and other ranks hear of it.

use std::collections::VecDeque;
use std::sync::Arc;

use super::ancestry::{Ancestry, GroupId};
use super::message::SchedulerMessage;
use super::{Membership, Scheduler, Work};
use crate::comm::Rank;

impl<T: Work<R>, R> Scheduler<T, R> {
    /// Cancels a group and all that descend from it: tasks in pools are dropped, and running ones
    /// hear of it.
    pub(crate) fn cancel(&mut self, ancestry: &Arc<Ancestry>) {
        let group = ancestry.group();
        self.ancestries.adopt(ancestry);
        if !self.ancestries.cancel(group) {
            return;
        }
        match group {
            GroupId::Collective(_) => self.spread_cancel(group, self.me),
            // A task cancels its own group: home tells all others who have tasks of it.
            GroupId::Rooted { home, .. } if home != self.me => {
                let message = SchedulerMessage::Cancel(group, self.me);
                self.outgoing.push_back((home, message));
            }
            GroupId::Rooted { .. } => {}
        }
        self.drop_cancelled();
    }

    /// Passes a cancellation on, along a binomial tree of ranks.
    pub(super) fn spread_cancel(&mut self, group: GroupId, root: Rank) {
        for child in self.below(root) {
            let message = SchedulerMessage::Cancel(group, root);
            self.outgoing.push_back((child, message));
        }
    }

    /// The ranks to which this one passes on what `root` tells all, in a binomial tree; those with
    /// most ranks below them first.
    pub(super) fn below(&self, root: Rank) -> impl Iterator<Item = Rank> + use<T, R> {
        let (n, me) = (self.ranks, self.me.0);
        let place = (me + n - root.0) % n;
        let mut bit = 1;
        while bit < n && place & bit == 0 {
            bit *= 2;
        }
        let halved = std::iter::successors(Some(bit / 2), |bit| Some(bit / 2));
        let bits = halved.take_while(|&bit| bit > 0);
        bits.filter(move |bit| place + bit < n)
            .map(move |bit| Rank((me + bit) % n))
    }

    /// Drops what belongs to cancelled groups, and tells thieves of their leases.
    pub(super) fn drop_cancelled(&mut self) {
        self.cancelled = true;
        for (thief, lease) in self.leases.newly_cancelled() {
            self.outgoing
                .push_back((thief, SchedulerMessage::CancelLease(lease)));
        }
        let (cancelled, kept) = std::mem::take(&mut self.pool)
            .into_iter()
            .partition::<VecDeque<_>, _>(|entry| entry.membership.ancestry.is_cancelled());
        self.pool = kept;
        let mut dropped = Vec::from(cancelled);
        let (cancelled, kept) = std::mem::take(&mut self.blocked)
            .into_iter()
            .partition::<Vec<_>, _>(|entry| entry.membership.ancestry.is_cancelled());
        self.blocked = kept;
        dropped.extend(cancelled);
        self.counts.dropped += dropped.len() as u64;
        for entry in dropped {
            if entry.holds {
                self.blocks.release(entry.task.needs());
            }
            self.gone(&entry.membership);
        }
    }

    /// Whether tasks have no place in the pool, for their group is cancelled.
    pub(super) fn is_unwanted(&self, membership: &Membership) -> bool {
        self.cancelled && membership.ancestry.is_cancelled()
    }
}
