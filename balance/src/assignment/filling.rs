//! Filling the stretches of the line up to a bound on their load.
//!
//! This is the probe of the parametric search in [`assignment`](super): it tells whether the line
//! fits into stretches whose load is at most the bound, and by how much it does not.

use super::{DEAL, LEAST};
use crate::work::{PreparationCosts, Prepared};

/// A test on the line.
pub(super) struct Item {
    pub(super) work: u64,
    pub(super) patches: [u32; 2],
    /// The cost of looking whether its roots meet. The first test of a patch has that of all
    /// unknown tests of the patch as well.
    pub(super) looks: u64,
}

impl Item {
    /// Whether it reads the whole of one patch.
    fn is_whole(&self) -> bool {
        self.patches[0] == self.patches[1]
    }
}

/// The state of filling stretches, one after the other.
pub(super) struct Filling<'a> {
    pub(super) items: &'a [Item],
    /// The costs of preparing each patch.
    pub(super) ready: Vec<PreparationCosts>,
    /// The work of each rank before and after its tests.
    pub(super) beside: &'a [u64],
    /// The last stretch that prepares something of each patch, and how much: the stamp of the
    /// stretch plus a [`Prepared`].
    pub(super) had: Vec<u64>,
    pub(super) stamp: u64,
}

/// How well the last stretch was filled.
pub(super) enum Last {
    /// Its load exceeds the bound by this much.
    Over(u64),
    /// Its load may grow by this much.
    Room(u64),
}

/// The place at which a stretch begins, and its load.
#[derive(Clone, Copy)]
pub(super) struct Boundary {
    pub(super) at: u64,
    pub(super) load: u64,
}

/// The step between the stamps of stretches: one more than the greatest [`Prepared`].
const STATES: u64 = 4;

impl Filling<'_> {
    /// Fills stretches up to the bound `most`, except the last one, and notes where they begin.
    pub(super) fn fill(&mut self, most: u64, boundaries: &mut Vec<Boundary>) -> Last {
        boundaries.clear();
        self.stamp += STATES;
        let (mut at, mut begin, mut load) = (0, 0, self.beside[0]);
        for item in self.items {
            let mut rest = item.work;
            loop {
                let is_whole = rest == item.work;
                let [(has, ready), (other_has, other_ready)] = self.unready(item);
                let around = ready + other_ready + if is_whole { item.looks } else { DEAL };
                if load + around + rest <= most || boundaries.len() + 1 == self.beside.len() {
                    load += around + rest;
                    let [patch, other] = item.patches;
                    self.had[patch as usize] = self.stamp + has;
                    self.had[other as usize] = self.stamp + other_has;
                    break;
                }
                let room = most.saturating_sub(load + around + if is_whole { DEAL } else { 0 });
                let piece = room.min(rest.saturating_sub(LEAST));
                if piece >= LEAST {
                    rest -= piece;
                    load += around + piece;
                }
                boundaries.push(Boundary { at: begin, load });
                begin = at + item.work - rest;
                self.stamp += STATES;
                load = self.beside[boundaries.len()];
            }
            at += item.work;
        }
        self.end(most, Boundary { at: begin, load }, boundaries)
    }

    /// Does as [`Self::fill`], with boundaries only where the tests of a patch begin.
    pub(super) fn fill_with_patches(&mut self, most: u64, boundaries: &mut Vec<Boundary>) -> Last {
        boundaries.clear();
        self.stamp += STATES;
        let (mut at, mut begin, mut load) = (0, 0, self.beside[0]);
        for of_patch in self.items.chunk_by(|a, b| a.patches[0] == b.patches[0]) {
            let work: u64 = of_patch.iter().map(|item| item.work).sum();
            let mut wanted = work + self.prepare(of_patch);
            if load + wanted > most && begin < at && boundaries.len() + 1 < self.beside.len() {
                boundaries.push(Boundary { at: begin, load });
                begin = at;
                self.stamp += STATES;
                load = self.beside[boundaries.len()];
                wanted = work + self.prepare(of_patch);
            }
            load += wanted;
            at += work;
        }
        self.end(most, Boundary { at: begin, load }, boundaries)
    }

    /// Has the current stretch prepare all that some tests read; the cost of that, and of looking.
    fn prepare(&mut self, items: &[Item]) -> u64 {
        let mut cost = 0;
        for item in items {
            let [(has, ready), (other_has, other_ready)] = self.unready(item);
            let [patch, other] = item.patches;
            self.had[patch as usize] = self.stamp + has;
            self.had[other as usize] = self.stamp + other_has;
            cost += item.looks + ready + other_ready;
        }
        cost
    }

    /// Notes the last stretch, and tells how well it was filled.
    fn end(&self, most: u64, last: Boundary, boundaries: &mut Vec<Boundary>) -> Last {
        let load = last.load;
        boundaries.push(last);
        // Work beside tests cannot be moved; ranks without a stretch have room.
        let may = most.max(self.beside[boundaries.len() - 1]);
        let idle = &self.beside[boundaries.len()..];
        match load.checked_sub(may) {
            None | Some(0) => {
                let idle = idle.iter().map(|beside| most.saturating_sub(*beside));
                Last::Room(may - load + idle.sum::<u64>())
            }
            Some(over) => Last::Over(over),
        }
    }

    /// The cost of preparing once what all tests read.
    pub(super) fn ready_once(&self) -> u64 {
        let mut has = vec![Prepared::Nothing; self.ready.len()];
        for item in self.items {
            let [patch, other] = item.patches.map(|patch| patch as usize);
            match item.is_whole() {
                true => has[patch] = Prepared::Whole,
                false => {
                    for patch in [patch, other] {
                        if has[patch] == Prepared::Nothing {
                            has[patch] = Prepared::Some;
                        }
                    }
                }
            }
        }
        let nothing = Prepared::Nothing as usize;
        let costs = has.iter().zip(&self.ready).map(|(has, ready)| match has {
            Prepared::Nothing => 0,
            Prepared::Some => ready[nothing][0],
            Prepared::Whole => ready[nothing][1],
        });
        costs.sum()
    }

    /// The pieces that the current stretch has prepared of both patches of a test after that test,
    /// and the cost of preparing the missing ones.
    #[inline]
    fn unready(&self, item: &Item) -> [(u64, u64); 2] {
        let [patch, other] = item.patches;
        let whole = item.is_whole();
        let one = self.more(patch, whole);
        let second = if whole {
            (one.0, 0)
        } else {
            self.more(other, false)
        };
        [one, second]
    }

    #[inline]
    fn more(&self, patch: u32, whole: bool) -> (u64, u64) {
        let had = self.had[patch as usize];
        let had = had.saturating_sub(self.stamp).min(Prepared::Whole as u64);
        let has = had.max(if whole {
            Prepared::Whole as u64
        } else {
            Prepared::Some as u64
        });
        (
            has,
            self.ready[patch as usize][had as usize][usize::from(whole)],
        )
    }
}
