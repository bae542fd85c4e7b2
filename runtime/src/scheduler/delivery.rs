//! Delivery of results to their homes, those for one rank together.

use std::time::Duration;

use super::ancestry::{Ancestry, GroupId};
use super::message::SchedulerMessage;
use super::{Body, MOST_RESULTS, Membership, RESULTS_INTERVAL_PER_RANK, Scheduler, Work};
use crate::comm::Rank;

impl<T: Work<R>, R> Scheduler<T, R> {
    /// A running task produced a result for its home.
    pub(crate) fn produced(&mut self, membership: &Membership, result: R) {
        let group = membership.ancestry.group();
        self.waves.given(&membership.ancestry);
        if membership.home == self.me {
            self.deliver(&membership.ancestry, result);
            return;
        }
        self.leases.sends(membership.account);
        if self.unsent.is_empty() {
            self.unsent_since = self.clock;
        }
        self.unsent.push((membership.home, group, result));
        if self.unsent.len() >= MOST_RESULTS {
            self.send_results();
        }
    }

    /// The oldest result for a join of this group.
    pub(crate) fn next_result(&mut self, ancestry: &Ancestry) -> Option<R> {
        let result = match ancestry.group() {
            GroupId::Collective(group) => self.results[group as usize].pop_front(),
            group @ GroupId::Rooted { .. } => self.leases.next_result(group),
        };
        if result.is_some() {
            self.waves.used(ancestry, 1);
        }
        result
    }

    /// Results that have waited long enough for company go home.
    pub(super) fn send_results_if_due(&mut self) {
        if !self.unsent.is_empty() && self.clock >= self.unsent_since + self.results_interval() {
            self.send_results();
        }
    }

    /// Sends all results home, those for one rank in one message: a rank to which thousands send
    /// would have nothing else to do.
    pub(super) fn send_results(&mut self) {
        // Stable: results for one home keep their order.
        self.unsent.sort_by_key(|(home, _, _)| *home);
        let mut message: Option<(Rank, Vec<(GroupId, R)>)> = None;
        for (home, group, result) in self.unsent.drain(..) {
            match &mut message {
                Some((to, results)) if *to == home => results.push((group, result)),
                _ => {
                    if let Some((to, results)) = message.replace((home, vec![(group, result)])) {
                        self.outgoing
                            .push_back((to, SchedulerMessage::Results(results)));
                    }
                }
            }
        }
        if let Some((to, results)) = message {
            self.outgoing
                .push_back((to, SchedulerMessage::Results(results)));
        }
    }

    /// How long results wait: so that a home that takes one message a microsecond keeps up with
    /// all.
    pub(super) fn results_interval(&self) -> Duration {
        RESULTS_INTERVAL_PER_RANK * self.ranks
    }

    /// Delivers a result that was produced on its home rank. If its group is gone, the result is
    /// dropped and counts as used.
    fn deliver(&mut self, ancestry: &Ancestry, result: R) {
        match ancestry.group() {
            GroupId::Collective(group) => self.deliver_collective(group, result),
            group @ GroupId::Rooted { .. } => {
                // A group that is not known any more is wanted by nobody.
                if !matches!(self.leases.deliver(group, result, false), Ok(None)) {
                    self.waves.rooted_used(1);
                }
            }
        }
    }

    pub(super) fn deliver_all(&mut self, results: Vec<(GroupId, R)>) -> Result<(), String> {
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
                if self.leases.deliver(group, result, true)?.is_some() {
                    self.waves.rooted_used(1);
                }
            }
        }
        Ok(())
    }

    fn deliver_collective(&mut self, group: u32, result: R) {
        if self.body == Body::Ended {
            let ancestry = &self.collective[group as usize];
            self.waves.used(ancestry, 1);
        } else {
            self.results[group as usize].push_back(result);
        }
    }

    /// Tells each rank that tasks were stolen from which of its leases have ended.
    pub(super) fn report_closed(&mut self) {
        if !self.leases.has_closed() {
            return;
        }
        for closed in self.leases.closed() {
            if closed.sent > 0 {
                self.send_results();
            }
            let message = SchedulerMessage::Returned {
                lease: closed.lease,
                sent: closed.sent,
            };
            self.outgoing.push_back((closed.victim, message));
        }
    }
}
