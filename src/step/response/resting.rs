//! The contacts that rest and have no constraint: layers that cannot meet before velocities have
//! changed by a good deal.
//!
//! Where cloth is piled up there are dozens of contacts for each vertex, of which one in twenty
//! pushes. A constraint, and what threads keep of it, takes five times as much memory as a contact,
//! and takes part in whatever is done for all constraints. So contacts are looked at once, when the
//! corrections of a substep begin: each has some rate to spare, and cannot lack any before a vertex
//! has changed its velocity by so much ([`super::wake_up`]). Only those with little to spare get
//! constraints. Once a vertex has gone nearly so far, more of them do. That leaves out no
//! constraint that would do anything: results have the same bits as with constraints for all.

use crate::heap_bytes::counts_heap;
use crate::step::contact::contacts::{Contacts, Kept};
use crate::team::Team;

/// Contacts with less than this share of the least distance to spare, within a substep, get
/// constraints at first.
const FIRST: f64 = 0.02;
/// The multiple of the way of a vertex below which the spare of a contact leads to a constraint.
const AHEAD: f64 = 4.0;
/// The share of what the others have to spare that vertices may go: it has been rounded.
const NEARLY: f64 = 0.999;

/// The spare changes of velocity of contacts.
#[derive(Debug, Default)]
pub(crate) struct Resting {
    /// The change of velocity, in m/s each, that the vertices of each contact may have before it
    /// may push, rounded down; in the order in which contacts were found.
    spares: Vec<f32>,
    /// The contacts with less to spare have constraints, in m/s.
    reach: f64,
}

counts_heap!(Resting: spares; without reach);

impl Resting {
    /// Begins with contacts, of which `spare` tells what they have to spare in m/s. `rate` is that
    /// at which a gap of the least distance closes within the substep; `gone` is how far a vertex
    /// went in the substep before: it may well go so far again.
    pub(crate) fn measure(
        &mut self,
        contacts: &Contacts,
        team: &Team,
        [rate, gone]: [f64; 2],
        spare: impl Fn(Kept<'_>) -> f64 + Sync,
    ) {
        self.spares.clear();
        self.spares.resize(contacts.len(), 0.0);
        contacts.map_found(team, &mut self.spares, |kept| rounded_down(spare(kept)));
        self.reach = (FIRST * rate).max(gone / NEARLY);
    }

    /// Whether contacts without constraints may lack something, now that a vertex has gone so far
    /// since they were looked at, in m/s. Then those that have less than that, and some more, to
    /// spare are to get constraints.
    pub(crate) fn is_reached(&mut self, gone: f64) -> bool {
        let reached = gone >= NEARLY * self.reach;
        if reached {
            self.reach = AHEAD * gone;
        }
        reached
    }

    /// The numbers of the contacts that are to have constraints, of those that were found there.
    pub(crate) fn numbers(&self, found: impl Iterator<Item = usize>) -> impl Iterator<Item = u32> {
        let rests = move |&(_, at): &(u32, usize)| f64::from(self.spares[at]) >= self.reach;
        // A spare that is no number gets a constraint.
        let others = (0..).zip(found).filter(move |contact| !rests(contact));
        others.map(|(number, _)| number)
    }
}

#[cfg(test)]
impl Resting {
    /// Contacts that have so much to spare, of which those with less than `reach` are to have
    /// constraints.
    pub(crate) fn with(spares: impl IntoIterator<Item = f64>, reach: f64) -> Self {
        let spares = spares.into_iter().map(rounded_down).collect();
        Self { spares, reach }
    }
}

fn rounded_down(value: f64) -> f32 {
    let near = value as f32;
    if f64::from(near) > value {
        near.next_down()
    } else {
        near
    }
}
