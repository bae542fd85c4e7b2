//! The end of groups and of the scope: which of two detectors finds it, and what that one hears.
//!
//! Most scopes have [waves](super::waves) down and up a tree of ranks. Scopes of few ranks in which
//! no task goes from rank to rank end by [all-to-all](super::all_to_all).

use super::all_to_all::{self, DoneNotice};
use super::message::SchedulerMessage;
use super::waves::{self, Signal};
use super::{Ancestry, Body, GroupId, Scheduler, Work};
use crate::comm::{CommError, Rank};
use crate::policy::Policy;

/// The root of the tree of ranks.
pub(super) const ROOT: Rank = Rank(0);

/// Whether each rank says to each other what it has done with.
pub(super) fn is_all_to_all(policy: &Policy, ranks: usize) -> bool {
    !policy.steal && (2..=all_to_all::MOST).contains(&ranks)
}

/// How many messages must follow one another at the end of a scope, at least, from the last task's
/// end on until all ranks know: one, or a wave's answers up the tree and its verdict down, from and
/// to a rank at the bottom.
#[must_use]
pub fn messages_to_end(policy: &Policy, ranks: usize) -> u32 {
    if is_all_to_all(policy, ranks) {
        1
    } else {
        2 * waves::depth(ranks)
    }
}

impl<T: Work<R>, R> Scheduler<T, R> {
    /// A task that runs here posts an item to a rank.
    ///
    /// # Errors
    /// There is no such rank.
    pub(crate) fn post_message(&mut self, to: Rank, item: Vec<u8>) -> Result<(), CommError> {
        if to.0 >= self.ranks {
            let size = self.ranks as usize;
            return Err(CommError::NoSuchRank { to, size });
        }
        if to == self.me {
            self.messages.keep(to, item);
        } else if let Some(items) = self.messages.post(to, item) {
            self.outgoing
                .push_back((to, SchedulerMessage::Posted(items)));
        }
        Ok(())
    }

    /// Takes the messages that tasks have posted to this rank since the last call, sorted by
    /// sender, and of each sender in order; all of them once the rank may leave.
    pub(crate) fn take_messages(&mut self) -> Vec<(Rank, Vec<u8>)> {
        self.messages.take()
    }

    /// How many items have come from other ranks.
    pub(crate) fn messages_arrived(&self) -> u64 {
        self.messages.arrived()
    }

    /// Whether every task of this group, wherever it ran, has finished and all results were taken.
    pub(crate) fn is_exhausted(&mut self, ancestry: &Ancestry) -> bool {
        self.is_group_exhausted(ancestry.group())
    }

    /// Whether the group of this name is exhausted.
    pub(crate) fn is_group_exhausted(&mut self, group: GroupId) -> bool {
        match group {
            GroupId::Collective(group) => match &self.all_to_all {
                Some(all_to_all) => all_to_all.is_group_exhausted(group),
                None => self.waves.is_group_exhausted(group),
            },
            group @ GroupId::Rooted { .. } => {
                let done = self.leases.is_exhausted(group);
                self.report_closed();
                done
            }
        }
    }

    /// The reason why no rank can go on, if this one has found that out, or rank 0 by waves: bodies
    /// wait in joins for each other.
    #[must_use]
    pub(crate) fn stuck(&self) -> Option<String> {
        match &self.all_to_all {
            Some(all_to_all) => all_to_all.stuck(),
            None => self.waves.stuck().map(str::to_owned),
        }
    }

    /// Returns the ranks without which this one cannot find the end. In the tree of waves these are
    /// the ones below it, which leave only after it knows, and the one above it, which leaves only
    /// after it has told; else the ranks that are not done with all groups.
    pub(crate) fn near(&self) -> Vec<Rank> {
        match &self.all_to_all {
            Some(all_to_all) => all_to_all.unfinished().collect(),
            None => self.waves.near().collect(),
        }
    }

    /// Whether this rank may leave the scope: no task of it is left anywhere, and all messages have
    /// come.
    #[must_use]
    pub(crate) fn may_leave(&self) -> bool {
        let expected = match &self.all_to_all {
            Some(all_to_all) => all_to_all.expected(),
            None => self.waves.expected(),
        };
        self.is_over() && self.outgoing.is_empty() && self.messages.arrived() == expected
    }

    /// Whether the scope is exhausted.
    pub(super) fn is_over(&self) -> bool {
        match &self.all_to_all {
            Some(all_to_all) => all_to_all.is_exhausted(),
            None => self.waves.is_exhausted(),
        }
    }

    /// Where no task moves between ranks, the first wave is sent before rank 0 is passive.
    pub(super) fn ask_early(&mut self) {
        if !self.options.policy.steal && self.all_to_all.is_none() {
            self.waves.ask_early();
            self.send_signals();
        }
    }

    /// Sends what the detector of the end has to say.
    pub(super) fn send_signals(&mut self) {
        let (outgoing, carried) = (&mut self.outgoing, &mut self.carried);
        self.waves.flush(&mut |to, signal: Signal| {
            outgoing.push_back((to, signal.into_message(carried)));
        });
    }

    /// Groups that are not exhausted, or ranks that have not done with all.
    pub(super) fn end_for_people(&self) -> Vec<String> {
        match &self.all_to_all {
            Some(all_to_all) => all_to_all.describe(),
            None => self.waves.describe(),
        }
    }

    /// Lets the detectors of the end go on, now that something may have become passive.
    pub(crate) fn settle(&mut self) {
        self.leases.sweep();
        self.waves.rooted_used(self.leases.left_over());
        self.report_closed();
        if self.all_to_all.is_some() {
            self.tell_done();
        }
        // A rank that has nothing to do has time for them.
        let messages = self.messages.rest();
        let messages = messages.map(|(to, items)| (to, SchedulerMessage::Posted(items)));
        self.outgoing.extend(messages);
        if self.all_to_all.is_none() {
            self.answer_wave();
        }
    }

    fn tell_done(&mut self) {
        let Some(all_to_all) = &mut self.all_to_all else {
            return;
        };
        let (here, results) = (&self.here, &self.results);
        let has_done = |group: &u32| {
            let group = *group as usize;
            here[group] == 0 && results[group].is_empty()
        };
        let (groups, waits) = match self.body {
            Body::WaitsIn(GroupId::Collective(group)) => (group..group + 1, true),
            Body::Ended => (0..self.waves.made(), false),
            _ => return,
        };
        let nothing = self.here_in_all == 0
            && results.iter().all(|results| results.is_empty())
            && self.waves.has_used_all_rooted();
        let over = nothing && (!waits || self.waves.is_closed());
        let Some(notice) = all_to_all.new_notice(groups.filter(has_done), waits, over) else {
            return;
        };
        for to in (0..self.ranks).map(Rank).filter(|&to| to != self.me) {
            let posted = if over { self.messages.posted_to(to) } else { 0 };
            let items = self.messages.enclosed(to);
            let notice = DoneNotice {
                posted,
                items,
                ..notice.clone()
            };
            self.outgoing
                .push_back((to, SchedulerMessage::Done(notice)));
        }
    }

    fn answer_wave(&mut self) {
        let passive = match self.body {
            // A task may wait for a block of a rank that waits for this rank's verdict on another
            // group.
            Body::Ended => self.here_in_all == self.blocked.len() as u64,
            Body::WaitsIn(GroupId::Collective(group)) => {
                self.here[group as usize] == 0 && self.results[group as usize].is_empty()
            }
            _ => false,
        };
        if passive && self.waves.is_asked() {
            // The end waits for these. Rank 0, often the home of most, gets them with the report.
            if self.me != ROOT {
                let (root, others): (Vec<_>, _) = std::mem::take(&mut self.unsent)
                    .into_iter()
                    .partition(|(home, _, _)| *home == ROOT);
                self.unsent = others;
                let results = root.into_iter().map(|(_, group, result)| (group, result));
                self.carried.extend(results);
            }
            self.send_results();
            self.waves.posted(self.messages.posted());
        }
        let lying: u64 = self.results.iter().map(|lying| lying.len() as u64).sum();
        let passive = passive.then_some([lying, self.here_in_all]);
        let (outgoing, carried) = (&mut self.outgoing, &mut self.carried);
        self.waves.advance(passive, &mut |to, signal: Signal| {
            outgoing.push_back((to, signal.into_message(carried)));
        });
    }
}

impl Signal {
    /// `carried`: results that go up the tree with a report.
    fn into_message<T, R>(self, carried: &mut Vec<(GroupId, R)>) -> SchedulerMessage<T, R> {
        match self {
            Self::Wave(number) => SchedulerMessage::Wave(number),
            Self::Report(number, census) => {
                SchedulerMessage::Report(number, census, std::mem::take(carried))
            }
            Self::Exhausted(groups, all, posted) => {
                SchedulerMessage::Exhausted(groups, all, posted)
            }
        }
    }
}
