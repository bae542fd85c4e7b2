//! Finding out that a group is exhausted: four-counter waves over a tree of ranks [Mattern 1987].
//!
//! Every event that makes work somewhere is counted as *given* (a fork, a result on its way), every event
//! that ends it as *used* (a task's end, a result's being taken). Rank 0 sends a wave down a binary tree;
//! each rank answers, when it is passive, with the sums of its subtree. A group is exhausted when in
//! two waves, one after the other, every rank was waiting in its join (or past its body) and what the
//! second wave found given is what the first had found used: then nothing was under way between them,
//! and since only work makes work, nothing will be. There are no time-outs in it.
//!
//! When all groups are exhausted and all bodies have returned, ranks wait until their own steal requests
//! are answered and say so up the tree; then rank 0 lets everyone leave. So no message of a scope can meet
//! the next one.
//!
//! * [Mattern 1987] Algorithms for distributed termination detection, Distributed Computing 2.

use super::message::{Census, GroupCount, GroupId, Message};
use crate::comm::Rank;

/// A message of the detector.
#[derive(Clone, Debug)]
pub(super) enum Signal {
    Wave(u32),
    Report(u32, Census),
    Exhausted(Vec<GroupId>, bool),
    Drained,
    Leave,
}

impl Signal {
    pub(super) fn into_message<T, R>(self) -> Message<T, R> {
        match self {
            Self::Wave(number) => Message::Wave(number),
            Self::Report(number, census) => Message::Report(number, census),
            Self::Exhausted(groups, all) => Message::Exhausted(groups, all),
            Self::Drained => Message::Drained,
            Self::Leave => Message::Leave,
        }
    }
}

/// What a rank knows of the end.
#[derive(Debug)]
pub(super) struct Termination {
    me: Rank,
    ranks: u32,
    /// Own counters; `waiting` is filled in when a report is made.
    groups: Vec<GroupCount>,
    exhausted: Vec<bool>,
    /// The group whose join the body waits in.
    waits_in: Option<GroupId>,
    body_ended: bool,
    all_exhausted: bool,
    /// The wave that is under way, with what the children have reported.
    wave: Option<(u32, Census)>,
    reports_missing: u32,
    /// Rank 0: the number of the last wave and what it found.
    waves: u32,
    previous: Option<Census>,
    children_drained: u32,
    said_drained: bool,
    may_leave: bool,
    /// Signals to send as soon as the scheduler asks.
    pending: Vec<(Rank, Signal)>,
}

impl Termination {
    pub(super) fn new(me: Rank, ranks: u32) -> Self {
        Self {
            me,
            ranks,
            groups: Vec::new(),
            exhausted: Vec::new(),
            waits_in: None,
            body_ended: false,
            all_exhausted: false,
            wave: None,
            reports_missing: 0,
            waves: 0,
            previous: None,
            children_drained: 0,
            said_drained: false,
            may_leave: false,
            pending: Vec::new(),
        }
    }

    pub(super) fn group(&mut self) -> GroupId {
        self.groups.push(GroupCount::default());
        self.exhausted.push(false);
        (self.groups.len() - 1) as GroupId
    }

    pub(super) fn given(&mut self, group: GroupId) {
        self.groups[group as usize].given += 1;
    }

    pub(super) fn used(&mut self, group: GroupId) {
        self.groups[group as usize].used += 1;
    }

    pub(super) fn waits_in(&mut self, group: Option<GroupId>) {
        self.waits_in = group;
    }

    pub(super) fn body_ended(&mut self) {
        self.body_ended = true;
        self.waits_in = None;
    }

    pub(super) fn has_body_ended(&self) -> bool {
        self.body_ended
    }

    pub(super) fn is_group_exhausted(&self, group: GroupId) -> bool {
        self.exhausted[group as usize]
    }

    pub(super) fn is_exhausted(&self) -> bool {
        self.all_exhausted
    }

    /// Whether a wave waits for this rank's own answer.
    pub(super) fn is_asked(&self) -> bool {
        self.wave.is_some() && self.reports_missing == 0
    }

    pub(super) fn may_leave(&self) -> bool {
        self.may_leave
    }

    /// A wave came from the parent.
    pub(super) fn wave(&mut self, from: Rank, number: u32) -> Result<(), &'static str> {
        if Some(from) != self.parent() || self.wave.is_some() {
            return Err("a wave out of turn");
        }
        self.begin(number);
        Ok(())
    }

    /// A child reports its subtree.
    pub(super) fn report(
        &mut self,
        from: Rank,
        number: u32,
        census: &Census,
    ) -> Result<(), &'static str> {
        match &mut self.wave {
            Some((current, sums)) if *current == number && self.reports_missing > 0 => {
                sums.add(census);
                self.reports_missing -= 1;
            }
            _ => return Err("a report out of turn"),
        }
        self.is_child(from)
    }

    /// The parent says what is exhausted.
    pub(super) fn exhausted(
        &mut self,
        from: Rank,
        groups: &[GroupId],
        all: bool,
    ) -> Result<(), &'static str> {
        if Some(from) != self.parent() {
            return Err("a verdict from a rank that has none to give");
        }
        self.learn(groups, all)
    }

    pub(super) fn child_drained(&mut self, from: Rank) -> Result<(), &'static str> {
        self.children_drained += 1;
        self.is_child(from)
    }

    pub(super) fn leave(&mut self, from: Rank) -> Result<(), &'static str> {
        if Some(from) != self.parent() || !self.said_drained {
            return Err("a leave out of turn");
        }
        self.let_go();
        Ok(())
    }

    /// Goes on as far as it can. `passive`: no task is here; `drained`: no request is unanswered;
    /// `waiting(group)`: its join has no result to take.
    pub(super) fn advance(
        &mut self,
        passive: bool,
        drained: bool,
        waiting: impl Fn(GroupId) -> bool,
        send: &mut impl FnMut(Rank, Signal),
    ) {
        let resting = self.body_ended || self.waits_in.is_some_and(&waiting);
        if passive && resting {
            // One wave's answer may call for the next; more follow when something happens.
            for _ in 0..2 {
                self.start_wave();
                self.answer_wave();
            }
        }
        let children = self.children().count() as u32;
        if self.all_exhausted && drained && !self.said_drained && self.children_drained == children
        {
            self.said_drained = true;
            match self.parent() {
                Some(parent) => self.pending.push((parent, Signal::Drained)),
                None => self.let_go(),
            }
        }
        for (to, signal) in self.pending.drain(..) {
            send(to, signal);
        }
    }

    pub(super) fn describe(&self) -> String {
        let live: Vec<String> = self
            .groups
            .iter()
            .enumerate()
            .filter(|&(g, _)| !self.exhausted[g])
            .map(|(g, count)| format!("group {g}: {} given, {} used here", count.given, count.used))
            .collect();
        format!(
            "body {}; {}",
            if self.body_ended { "ended" } else { "active" },
            live.join(", ")
        )
    }

    /// Rank 0 asks everyone, unless it is asking already.
    fn start_wave(&mut self) {
        if self.me.0 == 0 && self.wave.is_none() && !self.all_exhausted {
            self.waves += 1;
            self.begin(self.waves);
        }
    }

    /// Answers a wave that all children have answered.
    fn answer_wave(&mut self) {
        if self.reports_missing > 0 {
            return;
        }
        if let Some((number, mut census)) = self.wave.take() {
            census.add(&self.census());
            match self.parent() {
                Some(parent) => self.pending.push((parent, Signal::Report(number, census))),
                None => self.judge(census),
            }
        }
    }

    /// Passes a wave on and waits for the children.
    fn begin(&mut self, number: u32) {
        self.wave = Some((number, Census::default()));
        self.reports_missing = self.children().count() as u32;
        self.tell_children(&Signal::Wave(number));
    }

    /// Own counters as reported.
    fn census(&self) -> Census {
        let groups = (0..).zip(&self.groups).map(|(group, count)| {
            let waits = self.body_ended || self.waits_in == Some(group);
            GroupCount {
                waiting: u32::from(waits),
                ..*count
            }
        });
        Census {
            groups: groups.collect(),
            ended: u32::from(self.body_ended),
        }
    }

    /// Rank 0: what two waves say together.
    fn judge(&mut self, census: Census) {
        let Some(previous) = self.previous.replace(census) else {
            return;
        };
        let Some(census) = &self.previous else { return };
        let done = |group: usize| {
            let before = previous.groups.get(group).copied().unwrap_or_default();
            let after = census.groups[group];
            before.waiting == self.ranks
                && after.waiting == self.ranks
                && before.used == after.given
        };
        let groups: Vec<GroupId> = (0..census.groups.len())
            .filter(|&g| done(g) && !self.exhausted.get(g).copied().unwrap_or(false))
            .map(|g| g as GroupId)
            .collect();
        let all = previous.ended == self.ranks
            && census.ended == self.ranks
            && (0..census.groups.len()).all(done);
        if all || !groups.is_empty() {
            // Groups a rank has joined exist on it; rank 0 waits in one or has ended its body.
            let known = self.learn(&groups, all);
            debug_assert!(known.is_ok());
        }
    }

    fn learn(&mut self, groups: &[GroupId], all: bool) -> Result<(), &'static str> {
        for &group in groups {
            let known = self.exhausted.get_mut(group as usize);
            *known.ok_or("the end of a group that does not exist here")? = true;
        }
        self.all_exhausted |= all;
        self.tell_children(&Signal::Exhausted(groups.to_vec(), all));
        Ok(())
    }

    fn let_go(&mut self) {
        self.may_leave = true;
        self.tell_children(&Signal::Leave);
    }

    fn tell_children(&mut self, signal: &Signal) {
        let children: Vec<Rank> = self.children().collect();
        self.pending
            .extend(children.into_iter().map(|child| (child, signal.clone())));
    }

    fn parent(&self) -> Option<Rank> {
        (self.me.0 > 0).then(|| Rank((self.me.0 - 1) / 2))
    }

    fn children(&self) -> impl Iterator<Item = Rank> + use<> {
        let (me, ranks) = (u64::from(self.me.0), u64::from(self.ranks));
        (2 * me + 1..=2 * me + 2)
            .filter(move |&c| c < ranks)
            .map(|c| Rank(c as u32))
    }

    fn is_child(&self, from: Rank) -> Result<(), &'static str> {
        if self.children().any(|c| c == from) {
            Ok(())
        } else {
            Err("a report from no child")
        }
    }
}
