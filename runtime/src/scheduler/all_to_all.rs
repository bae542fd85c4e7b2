//! Termination of collective groups by all-to-all: each rank tells all others what it is done with.
//!
//! It serves policies under which no task goes from rank to rank. A rank that waits in a group's
//! join with nothing to take, and has no task of the group, is done with it, for no other rank can
//! send it any. It is done with all groups if its body has ended or forks no more, and no task or
//! result is left. All ranks know that a group is exhausted one message's time after the last of
//! them is done with it, where the tree of [waves](super::waves) takes four; and the last notice
//! carries what tasks have posted last. Beyond [`MOST`] ranks the messages take longer than a
//! tree's.
//!
//! No rank can go on if each is done with all, or waits in a group that not all are done with. None
//! concludes that too early, although notices may be under way: take the first rank to go on after
//! its last notice that is known here. It was let go on by notices sent before, which are known
//! here too.

use serde::{Deserialize, Serialize};

use crate::comm::{POSTED_UP_TO, Rank};

/// Most ranks, of which sets have one bit for each.
pub(super) const MOST: usize = POSTED_UP_TO;
const _: () = assert!(MOST <= u64::BITS as usize);

/// A notice that a rank is done with groups, for one other rank.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DoneNotice {
    /// Groups that it is done with.
    pub(crate) groups: Vec<u32>,
    /// Whether its body waits in the last of these.
    pub(crate) waits: bool,
    /// Whether it is done with all groups.
    pub(crate) over: bool,
    /// How many items its tasks have posted to the other, if it is over.
    pub(crate) posted: u64,
    /// Posted messages that were not sent before.
    pub(crate) items: Vec<Vec<u8>>,
}

#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub(super) struct AllToAll {
    me: Rank,
    ranks: u32,
    /// The ranks that have done with each group, and those that have done with all.
    done: Vec<u64>,
    over: u64,
    /// In which group each rank waits, as it said last.
    waits_in: Vec<Option<u32>>,
    /// How many items others have posted here, those that are over.
    expected: u64,
}

impl AllToAll {
    pub(super) fn new(me: Rank, ranks: u32) -> Self {
        Self {
            me,
            ranks,
            done: Vec::new(),
            over: 0,
            waits_in: vec![None; ranks as usize],
            expected: 0,
        }
    }

    pub(super) fn is_group_exhausted(&self, group: u32) -> bool {
        let done = self.done.get(group as usize).copied().unwrap_or_default();
        (done | self.over) == self.all()
    }

    pub(super) fn is_exhausted(&self) -> bool {
        self.over == self.all()
    }

    /// How many items others have posted here, once all is exhausted.
    pub(super) fn expected(&self) -> u64 {
        self.expected
    }

    /// Makes the notice that this rank has to send now, if there is one: it is done with these
    /// groups, in the last of which its body `waits`, and with all if `over`.
    pub(super) fn new_notice(
        &mut self,
        groups: impl Iterator<Item = u32>,
        waits: bool,
        over: bool,
    ) -> Option<DoneNotice> {
        let bit = 1 << self.me.0;
        if self.over & bit != 0 {
            return None;
        }
        let known = |group: u32| self.done.get(group as usize).is_some_and(|d| d & bit != 0);
        let groups: Vec<u32> = groups.filter(|&group| !known(group)).collect();
        if groups.is_empty() && !over {
            return None;
        }
        let notice = DoneNotice {
            waits: waits && !groups.is_empty(),
            groups,
            over,
            ..DoneNotice::default()
        };
        self.note(self.me, &notice);
        Some(notice)
    }

    /// Takes in the notice of another rank.
    pub(super) fn hear(&mut self, from: Rank, notice: &DoneNotice) -> Result<(), &'static str> {
        if self.over & 1 << from.0 != 0 {
            return Err("a notice after the last");
        }
        self.note(from, notice);
        if notice.over {
            self.expected += notice.posted;
        }
        Ok(())
    }

    fn note(&mut self, from: Rank, notice: &DoneNotice) {
        for &group in &notice.groups {
            let known = self.done.len().max(group as usize + 1);
            self.done.resize(known, 0);
            self.done[group as usize] |= 1 << from.0;
        }
        let waits_in = notice.groups.last().filter(|_| notice.waits);
        if let Some(&group) = waits_in {
            self.waits_in[from.index()] = Some(group);
        }
        if notice.over {
            self.over |= 1 << from.0;
        }
    }

    /// Ranks that are not done with all groups.
    pub(super) fn unfinished(&self) -> impl Iterator<Item = Rank> + use<> {
        let (over, me) = (self.over, self.me);
        let all = (0..self.ranks).map(Rank);
        all.filter(move |&rank| rank != me && over & 1 << rank.0 == 0)
    }

    /// The reason why no rank can go on, if so. It is a sentence.
    pub(super) fn stuck(&self) -> Option<String> {
        let mut waiting = Vec::new();
        for rank in 0..self.ranks {
            if self.over & 1 << rank == 0 {
                waiting.push(self.waits_in[rank as usize]?);
            }
        }
        if waiting.is_empty() || waiting.iter().any(|&group| self.is_group_exhausted(group)) {
            return None;
        }
        waiting.sort_unstable();
        let groups = waiting.chunk_by(|a, b| a == b);
        let groups: Vec<String> = groups
            .map(|same| format!("{} in that of group {}", same.len(), same[0]))
            .collect();
        let ended = match self.over.count_ones() {
            0 => String::new(),
            bodies => format!(", and the bodies of {bodies} have ended"),
        };
        let (count, groups) = (waiting.len(), groups.join(", "));
        Some(format!(
            "of {count} ranks that wait in joins, {groups}{ended}"
        ))
    }

    /// Describes for people which ranks are not done.
    pub(super) fn describe(&self) -> Vec<String> {
        let silent: Vec<String> = self.unfinished().map(|rank| rank.0.to_string()).collect();
        let silent =
            (!silent.is_empty()).then(|| format!("ranks that are not done: {}", silent.join(", ")));
        silent.into_iter().collect()
    }

    fn all(&self) -> u64 {
        u64::MAX >> (u64::BITS - self.ranks)
    }
}
