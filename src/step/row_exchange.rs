//! Velocities of vertices that take part in rows of impulses, between the ranks that own them.
//!
//! A row is known to all owners of its vertices. So each rank can tell by itself whose velocities it
//! needs and who needs its own: the owners of the other vertices. Both sides list them in ascending order.

use std::collections::BTreeMap;

use weft_partition::Ownership;
use weft_runtime::comm::{Comm, CommError, Rank, Tag};

use super::impulses::{Impulses, Participant};

pub(super) const TAG: Tag = Tag(0x20);

/// Who exchanges what with whom in this step.
#[derive(Debug, Default)]
pub(super) struct RowExchange {
    /// Per neighbour: participants to send and to receive, as indices, ascending.
    neighbours: Vec<(Rank, Vec<u32>, Vec<u32>)>,
}

impl RowExchange {
    /// Plans the exchange for the rows that `impulses` holds.
    pub(super) fn new(impulses: &Impulses, ownership: &Ownership, me: usize) -> Self {
        let owner = |vertex: u32| ownership.rank_of_vertex(vertex as usize);
        let mut shared: BTreeMap<usize, (Vec<u32>, Vec<u32>)> = BTreeMap::new();
        for row in impulses.rows() {
            let vertices = row.vertices();
            for &theirs in vertices {
                let rank = owner(theirs);
                if rank != me {
                    let (send, receive) = shared.entry(rank).or_default();
                    receive.push(theirs);
                    send.extend(vertices.iter().filter(|&&v| owner(v) == me));
                }
            }
        }
        let index = |mut vertices: Vec<u32>| {
            vertices.sort_unstable();
            vertices.dedup();
            let at = |v: u32| impulses.vertices().partition_point(|&p| p < v) as u32;
            vertices.into_iter().map(at).collect::<Vec<_>>()
        };
        let neighbours = shared
            .into_iter()
            .map(|(rank, (send, receive))| (Rank(rank as u32), index(send), index(receive)));
        Self {
            neighbours: neighbours.collect(),
        }
    }

    /// Replaces what is owned elsewhere by its owner's version.
    pub(super) fn refresh(
        &self,
        comm: &mut dyn Comm,
        participants: &mut [Participant],
    ) -> Result<(), CommError> {
        for (to, send, _) in &self.neighbours {
            let values: Vec<Participant> = send.iter().map(|&i| participants[i as usize]).collect();
            comm.send(*to, TAG, bytemuck::cast_slice(&values).to_vec())?;
        }
        for (from, _, receive) in &self.neighbours {
            let bytes = comm.recv_from(*from, TAG)?;
            let size = size_of::<Participant>();
            if bytes.len() != receive.len() * size {
                let what = format!("{} bytes for {} vertices", bytes.len(), receive.len());
                return Err(CommError::Malformed { from: *from, what });
            }
            for (&at, value) in receive.iter().zip(bytes.chunks_exact(size)) {
                participants[at as usize] = bytemuck::pod_read_unaligned(value);
            }
        }
        Ok(())
    }
}
