//! What ranks say to each other within a scope. `T` is a task, `R` a result, as they travel.

use serde::{Deserialize, Serialize};

/// A message of the protocol; see the crate's README for who sends what when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Message<T, R> {
    /// A thief asks for tasks.
    StealRequest,
    /// The answer to one request: tasks with the groups they belong to, or none.
    StealAnswer(Vec<(GroupId, T)>),
    /// Results of tasks whose families were forked by the receiver.
    Results(Vec<(GroupId, R)>),
    /// Down the tree: report your counters when you are passive.
    Wave(u32),
    /// Up the tree: the sums of a subtree, its ranks all passive.
    Report(u32, Census),
    /// Down the tree: these groups are exhausted; and whether the whole scope is.
    Exhausted(Vec<GroupId>, bool),
    /// Up the tree: no steal request of this subtree is unanswered any more.
    Drained,
    /// Down the tree: every rank is drained, nobody will ask again.
    Leave,
}

/// A thread group's number: ranks make groups in the same order.
pub type GroupId = u32;

/// Counters of the groups of some ranks, summed; and what their bodies are doing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Census {
    /// Per group, in the order of their numbers.
    pub groups: Vec<GroupCount>,
    /// Ranks whose body has returned.
    pub ended: u32,
}

/// One group's counters. Each event that gives work counts as `given`, each that uses it up as `used`:
/// a fork and the end of its task, a result on its way home and its being taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupCount {
    /// Tasks forked, hyperforked or split off, and results produced.
    pub given: u64,
    /// Tasks finished, and results taken by a join.
    pub used: u64,
    /// Ranks that are waiting in a join of this group, or will never fork into it again.
    pub waiting: u32,
}

impl Census {
    /// Adds the counters of other ranks.
    pub fn add(&mut self, other: &Self) {
        if self.groups.len() < other.groups.len() {
            self.groups
                .resize(other.groups.len(), GroupCount::default());
        }
        for (mine, theirs) in self.groups.iter_mut().zip(&other.groups) {
            mine.given += theirs.given;
            mine.used += theirs.used;
            mine.waiting += theirs.waiting;
        }
        self.ended += other.ended;
    }
}
