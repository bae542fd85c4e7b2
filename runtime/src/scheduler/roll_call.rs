//! Finding out that collective groups are exhausted where dead ranks are survived.
//!
//! Counters of a dead rank are lost, so waves are of no use. But all tasks are leased there (see the
//! ledger): each rank knows by itself when nothing is left of what it forked into a group. When it also
//! waits in the group's join with nothing to take, or its body has ended, that is so for good, and it says
//! *quiet* to the coordinator, the lowest rank alive. When all living ranks are quiet in a group it is
//! exhausted. If the coordinator dies, everyone tells the next one anew; and the next one tells everyone what
//! it has heard to be exhausted, for the dead one may have told some and not others.
//!
//! The last verdict, that all is exhausted, lets ranks go; so that a coordinator which dies in the middle of
//! telling it leaves nobody behind, everyone passes it on to the next two ranks alive.

use std::collections::{BTreeMap, BTreeSet};

use crate::comm::Rank;

#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub(super) struct RollCall {
    me: Rank,
    ranks: u32,
    dead: BTreeSet<Rank>,
    /// Groups in which this rank is quiet, and whether its body has ended and left nothing.
    quiet: BTreeSet<u32>,
    ended: bool,
    exhausted: BTreeSet<u32>,
    all: bool,
    /// Coordinator: what it heard.
    heard: BTreeMap<u32, BTreeSet<Rank>>,
    heard_ended: BTreeSet<Rank>,
}

/// What to send to whom.
#[derive(Debug)]
pub(super) enum Call {
    Quiet(Vec<u32>, bool),
    Exhausted(Vec<u32>, bool),
}

impl RollCall {
    pub(super) fn new(me: Rank, ranks: u32) -> Self {
        Self {
            me,
            ranks,
            dead: BTreeSet::new(),
            quiet: BTreeSet::new(),
            ended: false,
            exhausted: BTreeSet::new(),
            all: false,
            heard: BTreeMap::new(),
            heard_ended: BTreeSet::new(),
        }
    }

    pub(super) fn is_group_exhausted(&self, group: u32) -> bool {
        self.exhausted.contains(&group)
    }

    pub(super) fn is_exhausted(&self) -> bool {
        self.all
    }

    /// This rank is quiet in these groups, and in all of them for good if `ended`.
    pub(super) fn rest(
        &mut self,
        groups: impl Iterator<Item = u32>,
        ended: bool,
        send: &mut impl FnMut(Rank, Call),
    ) {
        let new: Vec<u32> = groups.filter(|&g| self.quiet.insert(g)).collect();
        let ends = ended && !self.ended;
        self.ended |= ended;
        if !new.is_empty() || ends {
            self.tell(new, ended, send);
        }
    }

    /// Another rank is quiet.
    pub(super) fn hear(
        &mut self,
        from: Rank,
        groups: &[u32],
        ended: bool,
        send: &mut impl FnMut(Rank, Call),
    ) {
        for &group in groups {
            self.heard.entry(group).or_default().insert(from);
        }
        if ended {
            self.heard_ended.insert(from);
        }
        self.judge(send);
    }

    /// The coordinator's verdict, or one passed on.
    pub(super) fn learn(&mut self, groups: &[u32], all: bool, send: &mut impl FnMut(Rank, Call)) {
        self.exhausted.extend(groups);
        if all && !self.all {
            self.all = true;
            let next = (1..self.ranks).map(|step| Rank((self.me.0 + step) % self.ranks));
            let alive = next.filter(|rank| !self.dead.contains(rank)).take(2);
            alive.for_each(|rank| send(rank, Call::Exhausted(Vec::new(), true)));
        }
    }

    /// A rank died.
    pub(super) fn lose(&mut self, rank: Rank, send: &mut impl FnMut(Rank, Call)) {
        let before = self.coordinator();
        self.dead.insert(rank);
        if self.coordinator() != before {
            if self.coordinator() == self.me && !self.exhausted.is_empty() {
                let groups: Vec<u32> = self.exhausted.iter().copied().collect();
                for other in self.others() {
                    send(other, Call::Exhausted(groups.clone(), false));
                }
            }
            let quiet: Vec<u32> = self.quiet.iter().copied().collect();
            let ended = self.ended;
            if !quiet.is_empty() || ended {
                self.tell(quiet, ended, send);
            }
        }
        if self.coordinator() == self.me {
            self.judge(send);
        }
    }

    fn coordinator(&self) -> Rank {
        let alive = (0..self.ranks).map(Rank).find(|r| !self.dead.contains(r));
        alive.unwrap_or(self.me)
    }

    /// The others that are alive.
    fn others(&self) -> Vec<Rank> {
        let all = (0..self.ranks).map(Rank);
        all.filter(|r| !self.dead.contains(r) && *r != self.me)
            .collect()
    }

    fn tell(&mut self, groups: Vec<u32>, ended: bool, send: &mut impl FnMut(Rank, Call)) {
        let coordinator = self.coordinator();
        if coordinator == self.me {
            self.hear(self.me, &groups, ended, send);
        } else {
            send(coordinator, Call::Quiet(groups, ended));
        }
    }

    /// Coordinator: tells everyone what is exhausted now.
    fn judge(&mut self, send: &mut impl FnMut(Rank, Call)) {
        if self.coordinator() != self.me || self.all {
            return;
        }
        let others = self.others();
        let everyone = |heard: &BTreeSet<Rank>| {
            heard.contains(&self.me) && others.iter().all(|r| heard.contains(r))
        };
        let groups: Vec<u32> = self
            .heard
            .iter()
            .filter(|(group, heard)| !self.exhausted.contains(group) && everyone(heard))
            .map(|(&group, _)| group)
            .collect();
        let all = everyone(&self.heard_ended);
        if groups.is_empty() && !all {
            return;
        }
        for &rank in &others {
            send(rank, Call::Exhausted(groups.clone(), all));
        }
        self.learn(&groups, all, send);
    }
}
