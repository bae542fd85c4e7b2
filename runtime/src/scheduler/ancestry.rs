//! The ancestry of groups: which group a task belongs to, and in which groups that one was made.
//!
//! A group made by a task is a child of the task's own group. A blocked join helps only with its
//! own group and that group's descendants, and cancelling a group cancels them too. So tasks carry
//! their ancestry, also to other ranks. On one rank a group has one [`Ancestry`], which all of its
//! tasks there share.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Weak};

use serde::{Deserialize, Serialize};

use crate::comm::Rank;
use crate::sync::{AtomicBool, Ordering};

/// The name of a thread group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) enum GroupId {
    /// Made by all ranks together, in this place of their order.
    Collective(u32),
    /// Made by one rank alone, by its body or by a task.
    Rooted {
        /// The rank that made it, and joins it.
        home: Rank,
        /// Counts that rank's groups.
        number: u64,
    },
}

impl fmt::Display for GroupId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Collective(number) => write!(f, "group {number}"),
            Self::Rooted { home, number } => write!(f, "group {number} of rank {}", home.0),
        }
    }
}

/// A group as one rank knows it.
pub(crate) struct Ancestry {
    group: GroupId,
    parent: Option<Arc<Self>>,
    /// The oldest ancestor's place among collective groups, if it is one.
    base: Option<u32>,
    cancelled: AtomicBool,
    /// Nobody will join it any more.
    abandoned: AtomicBool,
}

impl fmt::Debug for Ancestry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = if self.is_cancelled() {
            ", cancelled"
        } else {
            ""
        };
        write!(f, "{}{mark}", self.group)
    }
}

impl Ancestry {
    /// A group that was made in `parent`, or in none.
    #[must_use]
    pub(crate) fn new(group: GroupId, parent: Option<Arc<Self>>) -> Arc<Self> {
        let own = match group {
            GroupId::Collective(number) => Some(number),
            GroupId::Rooted { .. } => None,
        };
        Arc::new(Self {
            group,
            base: parent.as_ref().map_or(own, |parent| parent.base),
            parent,
            cancelled: AtomicBool::new(false),
            abandoned: AtomicBool::new(false),
        })
    }

    /// Its name.
    #[must_use]
    pub(crate) fn group(&self) -> GroupId {
        self.group
    }

    /// The collective group it descends from, if it does.
    #[must_use]
    pub(crate) fn base(&self) -> Option<u32> {
        self.base
    }

    /// The group it was made in, if that was by a task.
    pub(crate) fn parent(&self) -> Option<&Arc<Self>> {
        self.parent.as_ref()
    }

    /// Itself and its ancestors, itself first.
    pub(crate) fn ancestors(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |ancestry| ancestry.parent.as_deref())
    }

    /// Whether it is this group or descends from it.
    #[must_use]
    pub(crate) fn is_within(&self, group: GroupId) -> bool {
        self.ancestors().any(|ancestry| ancestry.group == group)
    }

    /// Whether it or an ancestor was cancelled.
    #[must_use]
    pub(crate) fn is_cancelled(&self) -> bool {
        self.ancestors()
            .any(|ancestry| ancestry.cancelled.load(Ordering::Relaxed))
    }

    pub(super) fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// Says that nobody will join it any more.
    pub(crate) fn abandon(&self) {
        self.abandoned.store(true, Ordering::Relaxed);
    }

    /// Makes a copy of this group, and of its ancestors.
    #[cfg(test)]
    pub(super) fn copy(&self, copies: &mut BTreeMap<GroupId, Arc<Self>>) -> Arc<Self> {
        if let Some(copy) = copies.get(&self.group) {
            return Arc::clone(copy);
        }
        let copy = Arc::new(Self {
            group: self.group,
            parent: self.parent.as_ref().map(|parent| parent.copy(copies)),
            base: self.base,
            cancelled: AtomicBool::new(self.cancelled.load(Ordering::Relaxed)),
            abandoned: AtomicBool::new(self.is_abandoned()),
        });
        copies.insert(self.group, Arc::clone(&copy));
        copy
    }

    pub(super) fn is_abandoned(&self) -> bool {
        self.abandoned.load(Ordering::Relaxed)
    }
}

/// The groups that are alive on a rank, each with its ancestry.
#[derive(Debug, Default)]
#[cfg_attr(test, derive(Clone))]
pub(super) struct Ancestries {
    known: BTreeMap<GroupId, Weak<Ancestry>>,
    /// Groups to be cancelled as soon as they are known here.
    cancelled: BTreeSet<GroupId>,
    /// Entries that are left when there were last this many are thrown out.
    sweep_at: usize,
}

/// Ancestries known at least before those that have died are looked for.
const FEWEST: usize = 64;

impl Ancestries {
    /// Remembers a group that was made here, with its ancestors.
    pub(super) fn adopt(&mut self, ancestry: &Arc<Ancestry>) {
        let mut next = Some(ancestry);
        while let Some(ancestry) = next {
            let old = self.known.insert(ancestry.group, Arc::downgrade(ancestry));
            if self.cancelled.contains(&ancestry.group) {
                ancestry.cancel();
            }
            if old.is_some() {
                break;
            }
            next = ancestry.parent.as_ref();
        }
        self.sweep();
    }

    /// Finds a group by its path, itself first, its oldest ancestor last; `None` if that is empty.
    pub(super) fn resolve(&mut self, path: &[GroupId]) -> Option<Arc<Ancestry>> {
        let mut ancestry = None;
        for &group in path.iter().rev() {
            let known = self.known.get(&group).and_then(Weak::upgrade);
            ancestry = Some(known.unwrap_or_else(|| {
                let made = Ancestry::new(group, ancestry);
                if self.cancelled.contains(&group) {
                    made.cancel();
                }
                self.known.insert(group, Arc::downgrade(&made));
                made
            }));
        }
        self.sweep();
        ancestry
    }

    /// Cancels a group, now and whenever it becomes known here; false if it was already.
    pub(super) fn cancel(&mut self, group: GroupId) -> bool {
        if let Some(ancestry) = self.known.get(&group).and_then(Weak::upgrade) {
            ancestry.cancel();
        }
        self.cancelled.insert(group)
    }

    #[cfg(test)]
    pub(super) fn cancelled(&self) -> &BTreeSet<GroupId> {
        &self.cancelled
    }

    /// Puts other groups in the place of those that are alive.
    #[cfg(test)]
    pub(super) fn relink(&mut self, other: &mut impl FnMut(&mut Arc<Ancestry>)) {
        for known in self.known.values_mut() {
            if let Some(mut ancestry) = known.upgrade() {
                other(&mut ancestry);
                *known = Arc::downgrade(&ancestry);
            }
        }
    }

    fn sweep(&mut self) {
        if self.known.len() >= self.sweep_at.max(FEWEST) {
            self.known.retain(|_, ancestry| ancestry.strong_count() > 0);
            self.sweep_at = 2 * self.known.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rooted(number: u64) -> GroupId {
        let home = Rank(1);
        GroupId::Rooted { home, number }
    }

    #[test]
    fn groups_know_their_ancestors_and_are_cancelled_with_them() {
        let mut ancestries = Ancestries::default();
        let path = [rooted(9), rooted(4), GroupId::Collective(2)];
        let ancestry = ancestries.resolve(&path).unwrap();
        assert!(path.iter().all(|&group| ancestry.is_within(group)));
        assert!(!ancestry.is_within(rooted(5)));
        assert_eq!(ancestry.base(), Some(2));
        let sibling = ancestries
            .resolve(&[rooted(5), rooted(4), GroupId::Collective(2)])
            .unwrap();
        assert!(ancestries.cancel(rooted(4)));
        assert!(!ancestries.cancel(rooted(4)));
        assert!(ancestry.is_cancelled() && sibling.is_cancelled());
        let parent = ancestries.resolve(&path[2..]).unwrap();
        assert!(!parent.is_cancelled());
        // One that becomes known later is cancelled from the start.
        ancestries.cancel(rooted(77));
        assert!(ancestries.resolve(&[rooted(77)]).unwrap().is_cancelled());
    }

    #[test]
    fn dead_groups_are_forgotten() {
        let mut ancestries = Ancestries::default();
        for number in 0..10_000 {
            ancestries.adopt(&Ancestry::new(rooted(number), None));
        }
        assert!(ancestries.known.len() <= 2 * FEWEST);
    }
}
