//! Velocities of vertices that take part in constraints of impulses, between the ranks that own
//! them.
//!
//! A constraint is known to all owners of its vertices. So each rank can tell by itself whose
//! velocities it needs and who needs its own: the owners of the other vertices. Both sides list
//! them in ascending order. First they exchange all of them; then, between rounds, those that
//! changed.

use std::collections::BTreeMap;

use bytemuck::{Pod, Zeroable};
use glam::{DMat3, DVec3};
use weft_partition::Ownership;
use weft_runtime::comm::{Comm, CommError, Rank, Tag};

use super::impulses::Impulses;

use crate::heap_bytes::counts_heap;

pub(crate) const TAG: Tag = Tag(0x20);

/// A vertex as it enters a pass.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
struct Entry {
    velocity: DVec3,
    mobility: DMat3,
}

/// A vertex after a round.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
struct Change {
    /// Its place in the list that both sides have.
    place: u64,
    velocity: DVec3,
    load: f64,
}

/// The message between two ranks: vertices that take part, by their slots.
#[derive(Debug)]
struct Neighbour {
    rank: Rank,
    send: Vec<u32>,
    receive: Vec<u32>,
}

counts_heap!(Neighbour: send, receive; without rank);

/// The findings so far, by slots: each once.
#[derive(Clone, Debug, Default)]
struct Shared {
    send: Vec<u32>,
    receive: Vec<u32>,
    /// Whether a slot is among those to send.
    listed: Vec<bool>,
}

/// No rank.
const UNKNOWN: usize = usize::MAX;

/// The vertices that ranks exchange for some constraints.
#[derive(Clone, Debug, Default)]
pub(crate) struct ExchangePlan {
    shared: BTreeMap<usize, Shared>,
    /// The owners of foreign vertices, once these were looked up.
    owners: Vec<usize>,
}

impl ExchangePlan {
    /// Plans the exchange of contacts that have no constraints yet, but may get some: `resting` are
    /// their vertices, and how many. Contacts that several ranks share take part from now on.
    pub(crate) fn of_resting(
        impulses: &mut Impulses,
        resting: impl Iterator<Item = ([u32; 4], usize)>,
        ownership: &Ownership,
        me: usize,
    ) -> Self {
        let mut plan = Self::default();
        if ownership.ranks() == 1 {
            return plan;
        }
        let owned = ownership.vertices(me);
        for (vertices, count) in resting {
            let vertices = &vertices[..count];
            if vertices.iter().all(|&v| owned.contains(&(v as usize))) {
                continue;
            }
            let mut slots = [0; 4];
            for (slot, &vertex) in slots.iter_mut().zip(vertices) {
                *slot = impulses.enlist(vertex);
            }
            plan.add(&slots[..count], impulses.vertices(), ownership, me);
        }
        plan
    }

    /// Adds what a constraint needs.
    fn add(&mut self, slots: &[u32], vertices: &[u32], ownership: &Ownership, me: usize) {
        let owned = ownership.vertices(me);
        let own = |slot: &u32| owned.contains(&(vertices[*slot as usize] as usize));
        self.owners.resize(vertices.len(), UNKNOWN);
        for &slot in slots.iter().filter(|&slot| !own(slot)) {
            let owner = &mut self.owners[slot as usize];
            let first = *owner == UNKNOWN;
            if first {
                *owner = ownership.rank_of_vertex(vertices[slot as usize] as usize);
            }
            let shared = self.shared.entry(*owner).or_default();
            if first {
                shared.receive.push(slot);
            }
            shared.listed.resize(vertices.len(), false);
            for &slot in slots.iter().filter(|&slot| own(slot)) {
                if !std::mem::replace(&mut shared.listed[slot as usize], true) {
                    shared.send.push(slot);
                }
            }
        }
    }
}

/// The ranks that exchange vertices in a pass, and which vertices.
#[derive(Debug, Default)]
pub(crate) struct ConstraintExchange {
    neighbours: Vec<Neighbour>,
}

counts_heap!(ConstraintExchange: neighbours);

impl ConstraintExchange {
    /// The exchange that has been planned, with what the constraints need that `impulses` holds.
    pub(crate) fn new(
        mut plan: ExchangePlan,
        impulses: &Impulses,
        ownership: &Ownership,
        me: usize,
    ) -> Self {
        if ownership.ranks() == 1 {
            return Self::default();
        }
        let vertices = impulses.vertices();
        for slots in impulses.slots() {
            plan.add(slots, vertices, ownership, me);
        }
        let in_order = |mut slots: Vec<u32>| {
            slots.sort_unstable_by_key(|&slot| vertices[slot as usize]);
            slots
        };
        let neighbours = plan.shared.into_iter().map(|(rank, shared)| Neighbour {
            rank: Rank(rank as u32),
            send: in_order(shared.send),
            receive: in_order(shared.receive),
        });
        Self {
            neighbours: neighbours.collect(),
        }
    }

    /// How many messages this rank sends each time.
    pub(crate) fn messages(&self) -> u64 {
        self.neighbours.len() as u64
    }

    /// Takes velocities and mobilities of vertices that are owned elsewhere from there.
    pub(crate) fn enter(
        &self,
        comm: &mut dyn Comm,
        impulses: &mut Impulses,
    ) -> Result<(), CommError> {
        for to in &self.neighbours {
            let slots = to.send.iter().map(|&slot| slot as usize);
            let entries = slots.map(|slot| Entry {
                velocity: impulses.velocity(slot),
                mobility: impulses.mobility(slot),
            });
            let entries: Vec<Entry> = entries.collect();
            comm.send(to.rank, TAG, bytemuck::cast_slice(&entries).to_vec())?;
        }
        for from in &self.neighbours {
            let bytes = comm.recv_from(from.rank, TAG)?;
            let entries = read::<Entry>(&bytes, from)?;
            let expected = from.receive.len();
            if entries.len() != expected {
                let what = format!("{} vertices instead of {expected}", entries.len());
                return Err(malformed(from, what));
            }
            for (&slot, entry) in from.receive.iter().zip(entries) {
                impulses.place(slot as usize, entry.velocity, entry.mobility);
            }
        }
        Ok(())
    }

    /// Takes velocities and loads that changed at their owners since they last told.
    pub(crate) fn refresh(
        &self,
        comm: &mut dyn Comm,
        impulses: &mut Impulses,
    ) -> Result<(), CommError> {
        for to in &self.neighbours {
            let places = to.send.iter().enumerate();
            let changed = places.filter(|&(_, &slot)| impulses.has_changed(slot as usize));
            let changes = changed.map(|(place, &slot)| Change {
                place: place as u64,
                velocity: impulses.velocity(slot as usize),
                load: impulses.load_of(slot as usize),
            });
            let changes: Vec<Change> = changes.collect();
            comm.send(to.rank, TAG, bytemuck::cast_slice(&changes).to_vec())?;
        }
        impulses.forget_changes();
        for from in &self.neighbours {
            let bytes = comm.recv_from(from.rank, TAG)?;
            for change in read::<Change>(&bytes, from)? {
                let slot = usize::try_from(change.place)
                    .ok()
                    .and_then(|place| from.receive.get(place));
                let Some(&slot) = slot else {
                    let (place, of) = (change.place, from.receive.len());
                    return Err(malformed(from, format!("vertex {place} of {of}")));
                };
                impulses.hear(slot as usize, change.velocity, change.load);
            }
        }
        Ok(())
    }
}

/// The values that a message consists of.
fn read<'b, T: Pod>(
    bytes: &'b [u8],
    from: &Neighbour,
) -> Result<impl ExactSizeIterator<Item = T> + use<'b, T>, CommError> {
    let values = bytes.chunks_exact(size_of::<T>());
    if !values.remainder().is_empty() {
        let what = format!("{} bytes, no whole number of vertices", bytes.len());
        return Err(malformed(from, what));
    }
    Ok(values.map(bytemuck::pod_read_unaligned))
}

fn malformed(from: &Neighbour, what: String) -> CommError {
    CommError::Malformed {
        from: from.rank,
        what,
    }
}
