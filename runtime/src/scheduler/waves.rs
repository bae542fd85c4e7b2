//! Termination of collective groups: four-counter waves over a tree of ranks [Mattern 1987].
//!
//! A rank counts each event that makes work as *given* (a fork, a result on its way), and each
//! event that ends work as *used* (a task has finished, a result was taken). Rank 0 sends a wave
//! down a tree of ranks. Each rank answers when it is passive, with the sums of its subtree.
//!
//! A group is exhausted if the second of two waves found *given* what the first found *used*, and
//! every rank waited in the join of the group, or had ended its body, when the second came by. Then
//! nothing was under way between the two waves, and no rank gave anything before it waited. Only
//! work makes work, so there will be none again. No time-out is involved.
//!
//! One wave is enough if its reports say that no task has ever gone from one rank to another, and
//! that no rank had a task when it reported, of whatever group. Then no rank that waits can get
//! work from another one.
//!
//! The scope is exhausted if all groups are, and each body had ended when the second wave came by,
//! or waited in a join and had said that it forks no more. A rank leaves the scope when it hears
//! this. A verdict on a group is followed at once by the next wave, because most bodies have little
//! left to do then.
//!
//! Rooted groups are counted together here, only for the end of the scope. The lease table finds
//! the end of each of them.
//!
//! * [Mattern 1987] Algorithms for distributed termination detection, Distributed Computing 2.

use super::ancestry::Ancestry;
use super::message::{Census, GroupCount, PostedCounts};
use crate::comm::Rank;

/// The number of children of a rank in the tree. A level of the tree takes the latency of a message
/// and the overheads of as many messages as a rank has children. Where the latency is a few
/// overheads, this is faster than a binary tree.
const ARITY: u32 = 4;

/// A message of the detector.
#[derive(Clone, Debug)]
pub(super) enum Signal {
    Wave(u32),
    Report(u32, Census),
    Exhausted(Vec<u32>, bool, PostedCounts),
}

/// The state of the detector on a rank.
#[derive(Debug)]
#[cfg_attr(test, derive(Clone))]
pub(super) struct Waves {
    me: Rank,
    ranks: u32,
    /// The counters of this rank by group; `waiting` is filled in when a report is made. A group
    /// may be known here before this rank has made it.
    groups: Vec<GroupCount>,
    rooted: GroupCount,
    /// Whether a task has gone from here to another rank.
    moved: bool,
    /// How many items were posted here, by the rank that they are for.
    posted: PostedCounts,
    /// How many items were posted to this rank; known once the scope is exhausted.
    expected: u64,
    /// How many groups this rank has made.
    made: u32,
    exhausted: Vec<bool>,
    /// The group whose join the body waits in.
    waits_in: Option<u32>,
    body_ended: bool,
    /// Whether the body has said that it forks no more.
    closed: bool,
    all_exhausted: bool,
    /// The reason why no rank can go on; only rank 0 finds it.
    stuck: Option<String>,
    /// The wave that is under way, with the sums of the reports that children have made.
    wave: Option<(u32, Census)>,
    /// How many children have not reported yet.
    reports_missing: u32,
    /// The number of the last wave, on rank 0.
    number: u32,
    /// The sums that the last wave found, on rank 0.
    previous: Option<Census>,
    /// The signals that are sent as soon as the scheduler asks.
    pending: Vec<(Rank, Signal)>,
}

impl Waves {
    pub(super) fn new(me: Rank, ranks: u32) -> Self {
        Self {
            me,
            ranks,
            groups: Vec::new(),
            rooted: GroupCount::default(),
            moved: false,
            posted: Vec::new(),
            expected: 0,
            made: 0,
            exhausted: Vec::new(),
            waits_in: None,
            body_ended: false,
            closed: false,
            all_exhausted: false,
            stuck: None,
            wave: None,
            reports_missing: 0,
            number: 0,
            previous: None,
            pending: Vec::new(),
        }
    }

    /// Makes the next group, and returns its number.
    pub(super) fn group(&mut self) -> u32 {
        self.made += 1;
        self.know(self.made - 1);
        self.made - 1
    }

    /// Returns how many groups were made here.
    pub(super) fn made(&self) -> u32 {
        self.made
    }

    /// Makes room for a group, which may be made here later.
    pub(super) fn know(&mut self, group: u32) {
        let count = (group as usize + 1).max(self.groups.len());
        self.groups.resize(count, GroupCount::default());
        self.exhausted.resize(count, false);
    }

    pub(super) fn given(&mut self, ancestry: &Ancestry) {
        self.count(ancestry).given += 1;
    }

    pub(super) fn used(&mut self, ancestry: &Ancestry, count: u64) {
        self.count(ancestry).used += count;
    }

    /// Notes that tasks go to another rank.
    pub(super) fn moved(&mut self) {
        self.moved = true;
    }

    /// Takes down how many items were posted here to others; to be called before an answer.
    pub(super) fn posted(&mut self, posted: PostedCounts) {
        self.posted = posted;
    }

    /// Returns how many items others have posted to this rank, once the scope is exhausted.
    pub(super) fn expected(&self) -> u64 {
        self.expected
    }

    fn count(&mut self, ancestry: &Ancestry) -> &mut GroupCount {
        match ancestry.group() {
            super::GroupId::Collective(group) => &mut self.groups[group as usize],
            super::GroupId::Rooted { .. } => &mut self.rooted,
        }
    }

    /// Counts results of rooted groups that are dropped because no join took them.
    pub(super) fn rooted_used(&mut self, count: usize) {
        self.rooted.used += count as u64;
    }

    /// Whether no task or result of a rooted group is here.
    pub(super) fn has_used_all_rooted(&self) -> bool {
        self.rooted.given == self.rooted.used
    }

    pub(super) fn waits_in(&mut self, group: Option<u32>) {
        self.waits_in = group;
    }

    /// Notes that the body forks no more.
    pub(super) fn closed(&mut self) {
        self.closed = true;
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    pub(super) fn body_ended(&mut self) {
        self.body_ended = true;
        self.waits_in = None;
    }

    pub(super) fn is_group_exhausted(&self, group: u32) -> bool {
        // Nothing can be forked into a group that is made after the end.
        self.all_exhausted || self.exhausted.get(group as usize).copied().unwrap_or(false)
    }

    pub(super) fn is_exhausted(&self) -> bool {
        self.all_exhausted
    }

    /// Whether a wave waits for this rank's own answer.
    pub(super) fn is_asked(&self) -> bool {
        self.wave.is_some() && self.reports_missing == 0
    }

    /// Takes a wave from the parent.
    pub(super) fn wave(&mut self, from: Rank, number: u32) -> Result<(), &'static str> {
        if Some(from) != self.parent() || self.wave.is_some() {
            return Err("a wave out of turn");
        }
        self.begin(number);
        Ok(())
    }

    /// Takes the report of a child on its subtree.
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

    /// Takes the verdict of the parent on what is exhausted.
    pub(super) fn exhausted(
        &mut self,
        from: Rank,
        groups: &[u32],
        all: bool,
        posted: PostedCounts,
    ) -> Result<(), &'static str> {
        if Some(from) != self.parent() {
            return Err("a verdict from a rank that has none to give");
        }
        self.learn(groups, all, posted)
    }

    /// Goes on as far as it can. `passive` is given if the group that the body waits for has no
    /// task and no result here; it says how many results of other groups lie here, and how many
    /// tasks.
    pub(super) fn advance(
        &mut self,
        passive: Option<[u64; 2]>,
        send: &mut impl FnMut(Rank, Signal),
    ) {
        if let Some(here) = passive {
            // The answer to a wave may call for the next one; more follow when something happens.
            for _ in 0..2 {
                self.start_wave();
                self.answer_wave(here);
            }
        }
        self.flush(send);
    }

    /// Lets rank 0 send the first wave, if it has not. Where no task moves between ranks, a rank
    /// has nothing to add to the report that it makes when it is first passive, so the wave need
    /// not wait until rank 0 is passive.
    pub(super) fn ask_early(&mut self) {
        if self.number == 0 {
            self.start_wave();
        }
    }

    /// Returns the reason why no rank can go on, if rank 0 has found one. It is a sentence.
    pub(super) fn stuck(&self) -> Option<&str> {
        self.stuck.as_deref()
    }

    /// Sends the signals that wait to be sent.
    pub(super) fn flush(&mut self, send: &mut impl FnMut(Rank, Signal)) {
        for (to, signal) in self.pending.drain(..) {
            send(to, signal);
        }
    }

    /// Describes the groups that are not exhausted, for people.
    pub(super) fn describe(&self) -> Vec<String> {
        let live = self.groups.iter().zip(&self.exhausted).enumerate();
        live.filter(|(_, (_, done))| !**done)
            .map(|(g, (count, _))| {
                let waits = if self.waits_in == Some(g as u32) {
                    ", the body waits in its join"
                } else {
                    ""
                };
                format!(
                    "group {g}: {} given, {} used here{waits}",
                    count.given, count.used
                )
            })
            .collect()
    }

    /// Returns everything that decides how it goes on; the number of the wave does not.
    #[cfg(test)]
    pub(super) fn essence(&self) -> impl std::fmt::Debug {
        (
            (&self.groups, &self.rooted, self.moved, &self.exhausted),
            (
                self.waits_in,
                self.closed,
                self.body_ended,
                self.all_exhausted,
            ),
            self.wave.as_ref().map(|(_, census)| census),
            (self.reports_missing, &self.previous, &self.stuck),
            (&self.posted, self.expected),
        )
    }

    /// Lets rank 0 ask everyone, unless it is asking already.
    fn start_wave(&mut self) {
        if self.me.0 == 0 && self.wave.is_none() && !self.all_exhausted {
            self.number += 1;
            self.begin(self.number);
        }
    }

    /// Answers a wave that all children have answered.
    fn answer_wave(&mut self, here: [u64; 2]) {
        if self.reports_missing > 0 {
            return;
        }
        if let Some((number, mut census)) = self.wave.take() {
            census.add(&self.census(here));
            match self.parent() {
                Some(parent) => self.pending.push((parent, Signal::Report(number, census))),
                None => self.judge(census),
            }
        }
    }

    /// Passes a wave on to the children, and waits for their reports.
    fn begin(&mut self, number: u32) {
        self.wave = Some((number, Census::default()));
        self.reports_missing = self.children().count() as u32;
        self.tell_children(&Signal::Wave(number));
    }

    /// Makes the report of this rank alone.
    fn census(&self, [lying, tasks]: [u64; 2]) -> Census {
        let groups = (0..).zip(&self.groups).map(|(group, count)| {
            let waits = self.body_ended || self.waits_in == Some(group);
            GroupCount {
                waiting: u32::from(waits),
                ..*count
            }
        });
        // A body that was told that its group is exhausted is about to go on.
        let waits = self
            .waits_in
            .is_some_and(|group| !self.is_group_exhausted(group));
        Census {
            groups: groups.collect(),
            rooted: self.rooted,
            ended: u32::from(self.body_ended),
            done: u32::from(self.body_ended || (self.closed && self.waits_in.is_some())),
            stuck: u32::from(self.body_ended || waits),
            lying,
            moved: u32::from(self.moved || tasks > 0),
            posted: self.posted.clone(),
        }
    }

    /// Decides on rank 0 what is exhausted, by two waves, or by one that found that there is no
    /// task anywhere and none has gone from rank to rank.
    fn judge(&mut self, census: Census) {
        let before = self.previous.replace(census.clone());
        let twice = before.as_ref() == Some(&census);
        let previous = match before {
            _ if census.moved == 0 => census,
            Some(previous) => previous,
            None => return,
        };
        let Some(census) = &self.previous else { return };
        let done = |group: usize| {
            let before = previous.groups.get(group).copied().unwrap_or_default();
            let after = census.groups[group];
            after.waiting == self.ranks && before.used == after.given
        };
        let groups: Vec<u32> = (0..census.groups.len())
            .filter(|&g| done(g) && !self.exhausted.get(g).copied().unwrap_or(false))
            .map(|g| g as u32)
            .collect();
        let all = census.done == self.ranks
            && previous.rooted.used == census.rooted.given
            && (0..census.groups.len()).all(done);
        if all || !groups.is_empty() {
            // All of these groups exist here: rank 0 waits in one of them or has ended its body.
            let posted = if all {
                census.posted.clone()
            } else {
                Vec::new()
            };
            let known = self.learn(&groups, all, posted);
            debug_assert!(known.is_ok());
            self.start_wave();
        } else if twice && self.is_stuck(census) {
            self.stuck = Some(self.who_waits(census));
        }
    }

    /// Whether no body will ever go on, after two waves that have found the same.
    ///
    /// No rank gave or used anything between its two reports. So exactly what was given and not
    /// used existed in between. If that is as much as lies on ranks as results for joins in which
    /// nobody waits, no task is left, and nothing is under way.
    fn is_stuck(&self, census: &Census) -> bool {
        let exist = |count: &GroupCount| count.given.saturating_sub(count.used);
        census.stuck == self.ranks
            && census.ended < self.ranks
            && exist(&census.rooted) == 0
            && census.groups.iter().map(exist).sum::<u64>() == census.lying
    }

    fn who_waits(&self, census: &Census) -> String {
        let waiting = self.ranks - census.ended;
        let groups = (0..).zip(&census.groups);
        // A rank that has ended its body counts as one that waits in each group that it has made.
        let beside = groups.map(|(g, count)| (g, count.waiting.saturating_sub(census.ended)));
        let waits: Vec<(u32, u32)> = beside.filter(|&(_, ranks)| ranks > 0).collect();
        let ended = match census.ended {
            0 => String::new(),
            bodies => format!(", and the bodies of {bodies} have ended"),
        };
        if waits.iter().map(|&(_, ranks)| ranks).sum::<u32>() == waiting {
            let waits = waits.iter();
            let waits = waits.map(|(g, ranks)| format!("{ranks} in that of group {g}"));
            let waits: Vec<String> = waits.collect();
            return format!(
                "of {waiting} ranks that wait in joins, {}{ended}",
                waits.join(", ")
            );
        }
        // Some bodies have ended before they made groups in which others wait. It is not known here
        // how many have made which.
        let open = (0..)
            .zip(&census.groups)
            .filter(|&(g, count)| count.waiting > 0 && !self.is_group_exhausted(g));
        let open: Vec<String> = open.map(|(g, _)| g.to_string()).collect();
        format!(
            "{waiting} of {} ranks wait in joins, of groups among {}{ended}, some of which had not made these groups",
            self.ranks,
            open.join(", ")
        )
    }

    /// Takes a verdict down and passes it on to the children. `posted` says how many items were
    /// posted to the ranks of this subtree, if the scope is exhausted.
    fn learn(
        &mut self,
        groups: &[u32],
        all: bool,
        mut posted: PostedCounts,
    ) -> Result<(), &'static str> {
        if groups.iter().any(|&group| group >= self.made) {
            return Err("the end of a group that does not exist here");
        }
        for &group in groups {
            self.exhausted[group as usize] = true;
        }
        self.all_exhausted |= all;
        let own = posted.iter().find(|(rank, _)| *rank == self.me.0);
        self.expected += own.map_or(0, |(_, count)| *count);
        for child in self.children() {
            let (theirs, rest) = (posted.into_iter()).partition(|(rank, _)| is_below(*rank, child));
            posted = rest;
            let verdict = Signal::Exhausted(groups.to_vec(), all, theirs);
            self.pending.push((child, verdict));
        }
        Ok(())
    }

    fn tell_children(&mut self, signal: &Signal) {
        let children: Vec<Rank> = self.children().collect();
        self.pending
            .extend(children.into_iter().map(|child| (child, signal.clone())));
    }

    /// Returns the parent and the children of this rank.
    pub(super) fn near(&self) -> impl Iterator<Item = Rank> + use<> {
        self.parent().into_iter().chain(self.children())
    }

    fn parent(&self) -> Option<Rank> {
        (self.me.0 > 0).then(|| Rank((self.me.0 - 1) / ARITY))
    }

    fn children(&self) -> impl Iterator<Item = Rank> + use<> {
        let (me, ranks) = (u64::from(self.me.0), u64::from(self.ranks));
        let arity = u64::from(ARITY);
        (arity * me + 1..=arity * me + arity)
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

/// Returns how many ranks lie above the lowest one in the tree.
pub(super) fn depth(ranks: usize) -> u32 {
    let (mut depth, mut rank) = (0, ranks.saturating_sub(1));
    while rank > 0 {
        rank = (rank - 1) / ARITY as usize;
        depth += 1;
    }
    depth
}

/// Whether a rank is in the subtree of another.
fn is_below(mut rank: u32, top: Rank) -> bool {
    while rank > top.0 {
        rank = (rank - 1) / ARITY;
    }
    rank == top.0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A task that another rank still has, or has given away, may come to a rank that has nothing.
    #[test]
    fn one_wave_is_enough_only_where_no_task_is_or_has_gone_anywhere() {
        for (here, moved) in [(0, 0), (1, 0), (0, 1)] {
            let mut root = Waves::new(Rank(0), 2);
            let group = root.group();
            root.waits_in(Some(group));
            let mut asked = Vec::new();
            root.advance(Some([0, here]), &mut |to, signal| asked.push((to, signal)));
            assert!(matches!(asked[..], [(Rank(1), Signal::Wave(1))]));
            let report = Census {
                groups: vec![GroupCount {
                    given: 3,
                    used: 3,
                    waiting: 1,
                }],
                moved,
                ..Census::default()
            };
            let alone = here == 0 && moved == 0;
            for number in 1..=2 {
                root.report(Rank(1), number, &report).unwrap();
                root.advance(Some([0, here]), &mut |_, _| {});
                assert_eq!(root.is_group_exhausted(group), alone || number == 2);
                if alone {
                    break;
                }
            }
        }
    }

    #[test]
    fn a_tree_is_as_deep_as_its_last_rank() {
        let deepest = |ranks: u32| {
            let above = |rank| Waves::new(Rank(rank), ranks).parent();
            let mut at = Some(Rank(ranks - 1));
            std::iter::from_fn(|| {
                at = above(at?.0);
                at
            })
            .count() as u32
        };
        for ranks in 1..400 {
            assert_eq!(depth(ranks as usize), deepest(ranks), "{ranks} ranks");
            for rank in 1..ranks {
                let below = Waves::new(Rank(0), ranks);
                let tops = below.children().filter(|&top| is_below(rank, top));
                assert_eq!(tops.count(), 1);
            }
        }
    }

    /// Makes a report of a rank that waits in this group, and of others whose bodies have ended
    /// after they had made this many groups.
    fn census_of(waits_in: Option<usize>, ended: &[usize]) -> Census {
        let mut census = Census::default();
        let ended = ended.iter().map(|&made| (None, made));
        let waiting = waits_in.map(|group| (Some(group), group + 1));
        for (waits, made) in waiting.into_iter().chain(ended) {
            let counts = |g| waits.is_none_or(|waits| waits == g);
            let groups = (0..made).map(|g| GroupCount {
                waiting: u32::from(counts(g)),
                ..GroupCount::default()
            });
            census.add(&Census {
                groups: groups.collect(),
                ended: u32::from(waits.is_none()),
                stuck: 1,
                ..Census::default()
            });
        }
        census
    }

    /// Bodies that end before they make groups in which others wait do not count as ones that wait
    /// in them.
    #[test]
    fn waiting_ranks_are_named_also_if_others_have_made_fewer_groups() {
        for (waits_in, ended, told) in [
            (
                0,
                &[1][..],
                "of 1 ranks that wait in joins, 1 in that of group 0, and the bodies of 1 have ended",
            ),
            (
                0,
                &[0],
                "1 of 2 ranks wait in joins, of groups among 0, and the bodies of 1 have ended, some of which had not made \
                 these groups",
            ),
            (
                1,
                &[2, 1, 0],
                "1 of 4 ranks wait in joins, of groups among 0, 1, and the bodies of 3 have ended, some of which had not made \
                 these groups",
            ),
        ] {
            let census = census_of(Some(waits_in), ended);
            let mut root = Waves::new(Rank(0), 1 + ended.len() as u32);
            for _ in &census.groups {
                root.group();
            }
            assert!(root.is_stuck(&census));
            assert_eq!(root.who_waits(&census), told);
        }
    }

    /// A report that came before rank 0 was passive is enough where no task moves.
    #[test]
    fn a_wave_that_was_sent_early_ends_when_rank_0_is_passive() {
        let mut root = Waves::new(Rank(0), 2);
        let group = root.group();
        root.waits_in(Some(group));
        let mut sent = Vec::new();
        for _ in 0..2 {
            root.ask_early();
            root.flush(&mut |to, signal| sent.push((to, signal)));
        }
        assert!(matches!(sent[..], [(Rank(1), Signal::Wave(1))]));
        let report = Census {
            groups: vec![GroupCount {
                given: 1,
                used: 1,
                waiting: 1,
            }],
            ..Census::default()
        };
        root.report(Rank(1), 1, &report).unwrap();
        root.advance(None, &mut |_, _| {});
        assert!(!root.is_group_exhausted(group));
        root.advance(Some([0, 0]), &mut |_, _| {});
        assert!(root.is_group_exhausted(group));
    }
}
