//! The response to hits, before truncation: impulses, sliding zones, rigid zones.
//!
//! Three stages, each with a bounded number of rounds, and after each round the vertices that it
//! moved are tested again [SSIF09 §4]:
//!
//! 1. impulses: each hit is resolved by itself, with its normal vector at the time of its hit;
//! 2. sliding zones: all rows that were found so far, until none is violated any more; this is the
//!    inelastic projection [HVTG08], which leaves motion along surfaces;
//! 3. rigid zones: components of hits move as one body, unless that leaves no fewer hits.
//!
//! The rest is cut by truncation. All stages are functions of the state and the set of hits.
//!
//! * \[HVTG08\] Harmon, Vouga, Tamstorf, Grinspun: Robust treatment of simultaneous collisions.
//! * \[SSIF09\] Selle, Su, Irving, Fedkiw: Robust high-resolution cloth using parallelism,
//!   history-based collisions, and accurate friction.

use std::collections::{BTreeMap, BTreeSet};

use glam::DVec3;

use super::impulses::{self, Row};
use super::meeting::Meeting;
use super::near_pairs::Round;
use super::region::Region;
use super::search::{Hits, farthest_of, margin_within};
use super::truncate::Truncate;
use super::zones;
use crate::disjoint_sets::DisjointSets;

/// The most rounds of impulses.
const IMPULSES: u32 = 3;
/// The most rounds of sliding zones, and of sweeps over all rows in one.
const SLIDING: u32 = 8;
const SWEEPS: u32 = 50;
/// The most rounds of rigid zones.
const RIGID: u32 = 8;
/// The share of the gap to be kept by which rows may be violated when sweeps end.
const TOLERANCE: f64 = 1e-3;

/// The outcome of the response.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Responded {
    /// The position to which each vertex would go now, in m.
    pub goal: Vec<DVec3>,
    /// The meetings that are still not certified.
    pub left: Vec<Meeting>,
    /// The rounds of all stages.
    pub rounds: u32,
    /// The number of rigid zones in the last of their rounds.
    pub zones: u32,
    /// The number of tests.
    pub tests: u64,
}

/// The state of the response between rounds.
struct Progress<'a> {
    responded: Responded,
    /// The rows that were found, each under what it keeps apart.
    rows: BTreeMap<Meeting, Row>,
    round: Round,
    /// The region to which it keeps, if it does not look at all cloth.
    region: Option<&'a Region<'a>>,
    /// The largest magnitude of a coordinate of any point, in m.
    farthest: f64,
}

/// The response has left its region.
struct Left;

/// Responds to hits.
#[must_use]
pub fn respond(step: &Truncate<'_>, hits: &[Meeting]) -> Responded {
    let mut progress = Progress::new(step, hits, farthest_of(step));
    // There is no region that it could leave.
    let (Ok(()) | Err(Left)) = progress.run(step);
    progress.responded
}

/// Responds to hits as [`respond`] does, and reads no cloth outside of a region. `farthest` is the
/// largest magnitude of a coordinate of any point of the step, in m. Returns `None` if what is
/// outside may have a part in it.
#[must_use]
pub(crate) fn respond_within(
    step: &Truncate<'_>,
    hits: &[Meeting],
    (region, farthest): (&Region<'_>, f64),
) -> Option<Responded> {
    let tree = region.tree(step);
    let step = Truncate {
        tree: &tree,
        ..*step
    };
    let mut progress = Progress {
        region: Some(region),
        ..Progress::new(&step, hits, farthest)
    };
    let outcome = progress.run(&step);
    outcome.is_ok().then_some(progress.responded)
}

/// Resolves each hit by itself.
fn impulse_round(step: &Truncate<'_>, progress: &mut Progress<'_>, moved: &mut [bool]) {
    impulses::order(&mut progress.responded.left);
    let Progress {
        responded, rows, ..
    } = progress;
    for meeting in &responded.left {
        if let Some(row) = impulses::row(step, &responded.goal, meeting) {
            row.satisfy(step, &mut responded.goal, |v| moved[v as usize] = true);
            rows.insert(*meeting, row);
        }
    }
}

/// Satisfies all rows at once.
fn sliding_round(step: &Truncate<'_>, progress: &mut Progress<'_>, moved: &mut [bool]) {
    let Progress {
        responded, rows, ..
    } = progress;
    for meeting in &responded.left {
        if let Some(row) = impulses::row(step, &responded.goal, meeting) {
            rows.insert(*meeting, row);
        }
    }
    let mut order: Vec<Meeting> = rows.keys().copied().collect();
    impulses::order(&mut order);
    let order: Vec<Row> = order.iter().map(|meeting| rows[meeting]).collect();
    for _ in 0..SWEEPS {
        let mut worst = 0.0f64;
        for row in &order {
            let excess = row.satisfy(step, &mut responded.goal, |v| moved[v as usize] = true);
            worst = worst.max(excess);
        }
        if worst <= TOLERANCE * step.least {
            break;
        }
    }
}

/// Moves components of hits as one body, and merges them while they hit others.
fn rigid_rounds(step: &Truncate<'_>, progress: &mut Progress<'_>) -> Result<(), Left> {
    let mut sets = DisjointSets::new(step.start.len());
    let mut joined: BTreeSet<u32> = BTreeSet::new();
    let before = progress.responded.goal.clone();
    let left = progress.responded.left.clone();
    for _ in 0..RIGID {
        if progress.responded.left.is_empty() {
            return Ok(());
        }
        let mut merged = false;
        for meeting in &progress.responded.left {
            // A body without triangles has no vertices that could join a zone.
            let Meeting::Features(pair) = meeting else {
                continue;
            };
            joined.extend(pair.vertices);
            let [first, others @ ..] = pair.vertices;
            for other in others {
                if sets.least(first) != sets.least(other) {
                    sets.unite(first, other);
                    merged = true;
                }
            }
        }
        if !merged {
            break;
        }
        let mut zones: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for &v in &joined {
            zones.entry(sets.least(v)).or_default().push(v);
        }
        progress.responded.zones = zones.len() as u32;
        let mut moved = vec![false; step.start.len()];
        for zone in zones.values() {
            // A zone that has not one motion goes back to where it would have gone: that is a move,
            // too, if it was part of smaller zones before.
            for &v in zone {
                progress.responded.goal[v as usize] = before[v as usize];
                moved[v as usize] = true;
            }
            zones::move_as_one(step, zone, &mut progress.responded.goal);
        }
        progress.test_again(step, &moved)?;
    }
    if progress.responded.left.len() >= left.len() {
        // Zones have resolved nothing: their motion is taken back.
        let responded = &mut progress.responded;
        (responded.goal, responded.left, responded.zones) = (before, left, 0);
    }
    Ok(())
}

impl Progress<'_> {
    fn new(step: &Truncate<'_>, hits: &[Meeting], farthest: f64) -> Self {
        Self {
            responded: Responded {
                goal: step.goal.to_vec(),
                left: hits.to_vec(),
                ..Responded::default()
            },
            rows: BTreeMap::new(),
            round: Round::default(),
            region: None,
            farthest,
        }
    }

    /// Goes through all stages, until nothing is left.
    fn run(&mut self, step: &Truncate<'_>) -> Result<(), Left> {
        for round in 0..IMPULSES + SLIDING {
            if self.responded.left.is_empty() {
                return Ok(());
            }
            let mut moved = vec![false; step.start.len()];
            if round < IMPULSES {
                impulse_round(step, self, &mut moved);
            } else {
                sliding_round(step, self, &mut moved);
            }
            self.test_again(step, &moved)?;
        }
        rigid_rounds(step, self)
    }

    /// Tests what was left, and all pairs with a vertex that moved.
    fn test_again(&mut self, step: &Truncate<'_>, moved: &[bool]) -> Result<(), Left> {
        self.responded.rounds += 1;
        let step = Truncate {
            goal: (&self.responded.goal).into(),
            ..*step
        };
        let mut hits = Hits::default();
        match self.region {
            None => {
                let moved = step.goal.iter().zip(moved).filter(|(_, moved)| **moved);
                let far = moved.map(|(x, _)| x.abs().max_element());
                self.farthest = far.fold(self.farthest, f64::max);
            }
            Some(region) if region.holds(&step, step.goal, moved) => {
                let far = region.farthest(&self.responded.goal, moved);
                self.farthest = self.farthest.max(far);
            }
            Some(_) => return Err(Left),
        }
        let margin = margin_within(self.farthest);
        for meeting in &self.responded.left {
            hits.test(&step, *meeting, margin);
        }
        step.refit(step.goal, moved, &mut self.round);
        hits.add_of(&step, moved, (&mut self.round, margin));
        hits.meetings.sort_unstable();
        hits.meetings.dedup();
        self.responded.tests += hits.tests;
        self.responded.left = hits.meetings;
        Ok(())
    }
}
