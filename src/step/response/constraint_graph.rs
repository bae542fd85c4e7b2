//! The graph of constraints: which constraints touch which vertices.
//!
//! Vertices that take part in constraints have slots, in the order in which constraints name them.

use std::ops::Range;

use super::constraint::Constraint;

use crate::heap_bytes::counts_heap;

/// Constraints, and which vertices they touch.
#[derive(Debug, Default)]
pub(crate) struct ConstraintGraph {
    pub(crate) constraints: Vec<Constraint>,
    /// The slots of each constraint's vertices.
    pub(crate) slots: Vec<[u32; 4]>,
    /// The constraints of each vertex, vertex by vertex.
    pub(crate) incident: Vec<u32>,
    /// The place at which the constraints of each vertex start; one more than there are vertices.
    starts: Vec<u32>,
    /// The places of each constraint among those of each of its vertices.
    pub(crate) places: Vec<[u32; 4]>,
}

counts_heap!(ConstraintGraph: constraints, slots, incident, starts, places);

impl ConstraintGraph {
    /// The slots of a constraint's vertices.
    pub(crate) fn slots(&self, constraint: usize) -> &[u32] {
        &self.slots[constraint][..usize::from(self.constraints[constraint].count)]
    }

    /// The constraints that touch a vertex, ascending.
    pub(crate) fn constraints_of(&self, slot: usize) -> &[u32] {
        &self.incident[self.listed(slot..slot + 1)]
    }

    /// Where the constraints of some vertices are in the list of the constraints of all.
    pub(crate) fn listed(&self, slots: Range<usize>) -> Range<usize> {
        self.starts[slots.start] as usize..self.starts[slots.end] as usize
    }

    /// Lists the constraints of each of this number of vertices.
    pub(crate) fn list_incident(&mut self, vertices: usize) {
        let mut starts = std::mem::take(&mut self.starts);
        let mut incident = std::mem::take(&mut self.incident);
        // Counted one place further on, summed, and moved back by listing.
        starts.clear();
        starts.resize(vertices + 2, 0);
        for constraint in 0..self.constraints.len() {
            for &slot in self.slots(constraint) {
                starts[slot as usize + 2] += 1;
            }
        }
        for vertex in 0..vertices {
            starts[vertex + 2] += starts[vertex + 1];
        }
        incident.clear();
        incident.resize(starts[vertices + 1] as usize, 0);
        let mut places = std::mem::take(&mut self.places);
        places.clear();
        places.resize(self.constraints.len(), [0; 4]);
        for (constraint, places) in places.iter_mut().enumerate() {
            for (&slot, place) in self.slots(constraint).iter().zip(places) {
                let next = &mut starts[slot as usize + 1];
                incident[*next as usize] = constraint as u32;
                *place = *next;
                *next += 1;
            }
        }
        (self.starts, self.incident, self.places) = (starts, incident, places);
    }
}
