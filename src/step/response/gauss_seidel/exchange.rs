//! Velocities between the ranks of a sweep: each before the constraint that reads it.
//!
//! The owner of a vertex computes all of its constraints, so it always has its velocity. Another
//! rank has it from the constraints that it computes, but for the changes that others made in
//! between. So the owner sends a velocity before each constraint of another rank that follows one
//! which that rank does not compute. Which these are is the same in all sweeps; owners tell once.

use std::collections::BTreeMap;

use glam::DVec3;
use weft_runtime::comm::{Comm, CommError, Rank};

use super::colours::{TAG, ToColour};
use super::{Stage, Swept};

use crate::heap_bytes::counts_heap;

/// The slots of velocities that travel between two ranks before a stage.
type Travelling = Vec<(Rank, Vec<u32>)>;

/// The messages of a sweep, by the keys of the stages before which they are sent.
#[derive(Debug, Default)]
pub(crate) struct SweepExchange {
    sent: BTreeMap<u32, Travelling>,
    received: BTreeMap<u32, Travelling>,
    /// The least key that is still to come.
    from: u32,
    /// How many messages the plan took.
    planned: u64,
}

counts_heap!(SweepExchange: sent, received; without from, planned);

impl SweepExchange {
    /// Plans the messages for constraints of these colours. Collective.
    pub(super) fn plan(
        comm: &mut dyn Comm,
        of: &ToColour<'_>,
        colours: &[u32],
    ) -> Result<Self, CommError> {
        let mut plan = Self::default();
        if of.owners.ranks == 1 {
            return Ok(plan);
        }
        let computed_by: Vec<Vec<usize>> = (0..of.graph.constraints.len())
            .map(|number| of.others(number))
            .collect();
        // To each neighbour: keys, each with the slots of velocities.
        let mut letters: BTreeMap<usize, BTreeMap<u32, Vec<u32>>> = BTreeMap::new();
        for rank in computed_by.iter().flatten() {
            letters.entry(*rank).or_default();
        }
        let own = |slot: &usize| of.moves[*slot] && of.owners.of[*slot] as usize == of.owners.me;
        for slot in (0..of.vertices.len()).filter(own) {
            let mut order: Vec<usize> = of
                .graph
                .constraints_of(slot)
                .iter()
                .map(|&number| number as usize)
                .collect();
            order.sort_by_key(|&number| colours[number]);
            // The first one of a sweep follows the last one of the sweep before.
            let before = order.iter().cycle().skip(order.len().saturating_sub(1));
            for (&number, &before) in order.iter().zip(before) {
                for rank in &computed_by[number] {
                    if !computed_by[before].contains(rank) {
                        let keys = letters.entry(*rank).or_default();
                        keys.entry(colours[number]).or_default().push(slot as u32);
                    }
                }
            }
        }
        for (&rank, keys) in &letters {
            let mut words: Vec<u32> = Vec::new();
            let to = Rank(rank as u32);
            for (&key, slots) in keys {
                words.extend([key, slots.len() as u32]);
                words.extend(slots.iter().map(|&slot| of.vertices[slot as usize]));
                plan.sent.entry(key).or_default().push((to, slots.clone()));
            }
            comm.send(to, TAG, bytemuck::cast_slice(&words).to_vec())?;
        }
        plan.planned = letters.len() as u64;
        let slots = of.vertices.iter().zip(0..);
        let slot_of: BTreeMap<u32, u32> = slots.map(|(&vertex, slot)| (vertex, slot)).collect();
        for &rank in letters.keys() {
            let from = Rank(rank as u32);
            let bytes = comm.recv_from(from, TAG)?;
            plan.take_in(from, &bytes, &slot_of)
                .ok_or_else(|| CommError::Malformed {
                    from,
                    what: format!("{} bytes that are no plan of a sweep", bytes.len()),
                })?;
        }
        Ok(plan)
    }

    /// Takes in what a rank will send; none if it is malformed.
    fn take_in(&mut self, from: Rank, bytes: &[u8], slot_of: &BTreeMap<u32, u32>) -> Option<()> {
        let (words, []) = bytes.as_chunks() else {
            return None;
        };
        let mut words = words.iter().copied().map(u32::from_ne_bytes);
        while let Some(key) = words.next() {
            let count = words.next()? as usize;
            let vertices = words.by_ref().take(count);
            let slots: Option<Vec<u32>> = vertices.map(|v| slot_of.get(&v).copied()).collect();
            let slots = slots.filter(|slots| slots.len() == count)?;
            self.received.entry(key).or_default().push((from, slots));
        }
        Some(())
    }

    /// How many messages this rank sent to plan.
    pub(super) fn planned(&self) -> u64 {
        self.planned
    }

    /// The key of the next stage that does something: one of these, from a number on, or one before
    /// which velocities are sent.
    pub(super) fn next(&self, stage: usize, stages: &[Stage]) -> Option<u32> {
        let own = stages.get(stage).map(|stage| stage.key);
        let sent = self.sent.range(self.from..).next().map(|(&key, _)| key);
        own.into_iter().chain(sent).min()
    }

    /// Sends and receives what travels before a stage. Returns how many messages it sent.
    pub(super) fn pass(
        &mut self,
        comm: &mut dyn Comm,
        key: u32,
        swept: &mut Swept<'_>,
    ) -> Result<u64, CommError> {
        self.from = key + 1;
        let sent = self.sent.get(&key).map_or(&[][..], Vec::as_slice);
        for (to, slots) in sent {
            let velocities = slots
                .iter()
                .map(|&slot| swept.motions[slot as usize].velocity);
            let velocities: Vec<DVec3> = velocities.collect();
            comm.send(*to, TAG, bytemuck::cast_slice(&velocities).to_vec())?;
        }
        for (from, slots) in self.received.get(&key).into_iter().flatten() {
            let bytes = comm.recv_from(*from, TAG)?;
            let velocities = bytes.chunks_exact(size_of::<DVec3>());
            if velocities.len() != slots.len() || !velocities.remainder().is_empty() {
                let what = format!("{} bytes for {} velocities", bytes.len(), slots.len());
                return Err(CommError::Malformed { from: *from, what });
            }
            for (&slot, velocity) in slots.iter().zip(velocities) {
                let motion = &mut swept.motions[slot as usize];
                let before = motion.velocity;
                motion.velocity = bytemuck::pod_read_unaligned(velocity);
                swept.paths[slot as usize].path += (motion.velocity - before).length();
            }
        }
        Ok(sent.len() as u64)
    }

    /// Begins with the first stage again.
    pub(super) fn rewind(&mut self) {
        self.from = 0;
    }
}
