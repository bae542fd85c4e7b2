//! When constraints at rest are looked at again: wake-up thresholds of vertices.
//!
//! Most constraints rest: they neither push nor have to, and looking at them again is nearly all
//! the work. A constraint that is at rest has some rate to spare, and cannot lack any before its
//! vertices have changed their velocities by so much. So each vertex adds up how far its velocity
//! has gone, and a constraint at rest is looked at again only when one of its vertices has gone
//! further than the constraint allows. That leaves out no constraint that would do anything:
//! results have the same bits as those of looking at every constraint in every round.

use std::ops::Range;

use glam::DVec3;

use super::constraint::ROUNDING;
use super::constraint_graph::ConstraintGraph;
use crate::heap_bytes::{counts_heap, owns_no_heap};
use crate::team::parts;

/// The threshold of a vertex without constraints at rest: no constraint is due.
pub(crate) const NEVER: f64 = f64::INFINITY;

/// How far the velocity of a vertex has gone, in m/s, and how far it may go before one of its
/// constraints at rest is due.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WakeUpThreshold {
    pub(crate) path: f64,
    pub(crate) threshold: f64,
}

owns_no_heap!(WakeUpThreshold);

impl WakeUpThreshold {
    /// The threshold of a vertex that is in no constraint at rest.
    const NONE: Self = Self {
        path: 0.0,
        threshold: NEVER,
    };

    /// Follows the velocity by so much. Appends the constraints at rest that are to be looked at
    /// again, of `constraints` and when they are due.
    #[inline]
    pub(crate) fn follow(
        &mut self,
        change: DVec3,
        constraints: &[u32],
        dues: &mut [f64],
        woken: &mut Vec<u32>,
    ) {
        self.path += change.length();
        if self.path <= self.threshold {
            return;
        }
        self.threshold = NEVER;
        for (&constraint, due) in constraints.iter().zip(dues) {
            if self.path <= *due {
                self.threshold = self.threshold.min(*due);
            } else {
                *due = NEVER;
                woken.push(constraint);
            }
        }
    }

    /// Registers a constraint at rest that stays satisfied until the velocity of this vertex has
    /// gone `spare` further. Lowers the threshold to that point, and returns the point.
    #[inline]
    pub(crate) fn lower(&mut self, spare: f64) -> f64 {
        // Slightly early, so that the rounding of the path never wakes a constraint too late.
        let due = self.path * (1.0 - ROUNDING) + spare;
        self.threshold = self.threshold.min(due);
        due
    }
}

/// The change of a vertex's velocity in a round, and its load afterwards.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sum {
    pub(crate) change: DVec3,
    pub(crate) load: f64,
}

owns_no_heap!(Sum);

/// Marks of a vertex, beside numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Marks {
    pub(crate) owned: bool,
    /// A round is adding to it.
    pub(crate) touched: bool,
    /// Its velocity or load is no longer what other ranks have heard.
    pub(crate) changed: bool,
}

owns_no_heap!(Marks);

impl Marks {
    /// The marks of a vertex that nothing has happened to.
    fn new(owned: bool) -> Self {
        Self {
            owned,
            touched: false,
            changed: false,
        }
    }
}

/// The notes of all vertices that only parts look at, beside their motion.
#[derive(Debug, Default)]
pub(crate) struct Bookkeeping {
    pub(crate) thresholds: Vec<WakeUpThreshold>,
    /// When the constraints of each vertex are due, as they are listed.
    pub(crate) dues: Vec<f64>,
    pub(crate) sums: Vec<Sum>,
    pub(crate) marks: Vec<Marks>,
}

counts_heap!(Bookkeeping: thresholds, dues, sums, marks);

/// The notes of the vertices of a part.
#[derive(Debug)]
pub(crate) struct BookkeepingShare<'a> {
    pub(crate) thresholds: &'a mut [WakeUpThreshold],
    pub(crate) dues: &'a mut [f64],
    pub(crate) sums: &'a mut [Sum],
    pub(crate) marks: &'a mut [Marks],
}

/// The vertices that threads share, and where the constraints of each share are listed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GraphShares<'a> {
    pub(crate) vertices: &'a [Range<usize>],
    pub(crate) listed: &'a [Range<usize>],
}

impl Bookkeeping {
    /// Begins with constraints that are not looked at yet, and vertices of which the rank owns
    /// those. How far their velocities have gone is kept.
    pub(crate) fn begin(&mut self, graph: &ConstraintGraph, owned: impl Iterator<Item = bool>) {
        self.marks.clear();
        self.marks.extend(owned.map(Marks::new));
        let count = self.marks.len();
        let known = self.thresholds.iter_mut();
        known.for_each(|known| known.threshold = NEVER);
        self.thresholds.resize(count, WakeUpThreshold::NONE);
        refill(&mut self.dues, graph.incident.len(), NEVER);
        refill(&mut self.sums, count, Sum::default());
    }

    /// Cuts it into shares of the vertices, whose constraints are listed there.
    pub(crate) fn cut<'a>(
        &'a mut self,
        shares: GraphShares<'a>,
    ) -> impl Iterator<Item = BookkeepingShare<'a>> {
        let GraphShares { vertices, listed } = shares;
        let kept = parts(&mut self.thresholds, vertices).zip(parts(&mut self.dues, listed));
        let sums = parts(&mut self.sums, vertices);
        let kept = kept.zip(sums.zip(parts(&mut self.marks, vertices)));
        kept.map(|((thresholds, dues), (sums, marks))| BookkeepingShare {
            thresholds,
            dues,
            sums,
            marks,
        })
    }

    /// Follows the velocity of a vertex by so much. Appends the constraints at rest for which it
    /// went too far to `woken`.
    pub(crate) fn follow(
        &mut self,
        graph: &ConstraintGraph,
        slot: usize,
        change: DVec3,
        woken: &mut Vec<u32>,
    ) {
        let dues = &mut self.dues[graph.listed(slot..slot + 1)];
        self.thresholds[slot].follow(change, graph.constraints_of(slot), dues, woken);
    }

    /// Has velocities have gone nowhere. Nothing may be due.
    pub(crate) fn forget_paths(&mut self) {
        self.thresholds.clear();
    }

    /// How far the velocity of a vertex has gone, in m/s.
    pub(crate) fn path(&self, slot: usize) -> f64 {
        self.thresholds[slot].path
    }

    /// Has the velocity of a vertex gone so far, in m/s, before anything is due.
    pub(crate) fn lengthen(&mut self, slot: usize, way: f64) {
        self.thresholds[slot].path += way;
    }

    /// Whether the velocity or load of a vertex changed since changes were last forgotten.
    pub(crate) fn has_changed(&self, slot: usize) -> bool {
        self.marks[slot].changed
    }

    /// Begins to note changes anew.
    pub(crate) fn forget_changes(&mut self) {
        let marks = self.marks.iter_mut();
        marks.for_each(|marks| marks.changed = false);
    }
}

/// Fills a vector anew with this number of values.
pub(crate) fn refill<T: Clone>(values: &mut Vec<T>, count: usize, value: T) {
    values.clear();
    values.resize(count, value);
}
