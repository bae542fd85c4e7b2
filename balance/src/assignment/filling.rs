//! Filling stretches of the line.

use super::{DEAL, LEAST};
use crate::work::{PreparationCosts, Prepared};

/// A test in the line.
pub(super) struct Item {
    pub(super) work: u64,
    pub(super) patches: [u32; 2],
    /// Looking whether its roots meet, and, where its patch begins, those of all tests with this that nobody knows.
    pub(super) looks: u64,
}

impl Item {
    /// Whether it reads all of one patch.
    fn is_whole(&self) -> bool {
        self.patches[0] == self.patches[1]
    }
}

/// Fills stretches one after the other.
pub(super) struct Filling<'a> {
    pub(super) items: &'a [Item],
    /// For each patch, what it costs to make it ready.
    pub(super) ready: Vec<PreparationCosts>,
    /// What the rank of each stretch does before and after.
    pub(super) beside: &'a [u64],
    /// For each patch, in which stretch something was made ready of it last, and what.
    pub(super) had: Vec<u64>,
    pub(super) stamp: u64,
}

/// How the last stretch was filled.
pub(super) enum Last {
    /// It costs so much more than it may.
    Over(u64),
    /// It might cost so much more.
    Room(u64),
}

/// Where a stretch begins, and what it costs all in all.
#[derive(Clone, Copy)]
pub(super) struct Boundary {
    pub(super) at: u64,
    pub(super) load: u64,
}

/// Stamps are made of so many, for what a stretch has.
const STATES: u64 = 4;

impl Filling<'_> {
    /// Fills stretches that cost no more than this, but for the last one; `boundaries` is where they begin.
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
        boundaries.push(Boundary { at: begin, load });
        // What is done beside, is done; and ranks that have nothing have room.
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

    /// What it costs to make ready once what all tests read.
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

    /// What this stretch has of each patch of a test once it has what the test reads of it, and what it costs to make that ready.
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
