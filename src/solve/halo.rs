//! Exchange of the border values of a vector, in two steps so that work fits between them.
//!
//! A vector is laid out as the owned vertices followed by the halo. [`Halo::start`] sends what
//! others read, [`Halo::finish`] fills the halo from what they sent. On the wire is the plain
//! memory of the values, three f64 for each vertex; all ranks run the same program on the same kind
//! of machine.
//!
//! Received buffers are sent again, so that a warm exchange allocates nothing here.

use std::ops::Range;

use glam::DVec3;
use weft_partition::HaloPlan;
use weft_runtime::comm::{Comm, CommError, Rank, Tag};

use crate::heap_bytes::counts_heap;

/// One rank's end of the exchange.
#[derive(Clone, Debug)]
pub struct Halo {
    local_len: usize,
    owned_len: usize,
    peers: Vec<Peer>,
    tag: Tag,
    spare: Vec<Vec<u8>>,
}

counts_heap!(Halo: peers, spare; without local_len, owned_len, tag);

#[derive(Clone, Debug)]
struct Peer {
    rank: Rank,
    /// Part of the vector that it fills.
    receive: Range<usize>,
    /// Owned vertices that it reads.
    send: Vec<u32>,
}

counts_heap!(Peer: send; without rank, receive);

impl Halo {
    /// The exchange that a plan describes. `tag` must be used for nothing else.
    ///
    /// # Panics
    /// If the plan knows 2^32 ranks or more.
    #[must_use]
    pub fn new(plan: &HaloPlan, tag: Tag) -> Self {
        let owned_len = plan.owned().len();
        let peers = plan
            .neighbours()
            .iter()
            .map(|neighbour| Peer {
                rank: Rank(u32::try_from(neighbour.rank).expect("ranks are numbered with 32 bits")),
                receive: owned_len + neighbour.receive.start..owned_len + neighbour.receive.end,
                send: neighbour.send.clone(),
            })
            .collect();
        Self {
            local_len: plan.local_len(),
            owned_len,
            peers,
            tag,
            spare: Vec::new(),
        }
    }

    /// Sends the owned values that other ranks read. Every rank that takes part must do so, and
    /// then [`Halo::finish`], before it starts again.
    ///
    /// # Errors
    /// The job was ended.
    ///
    /// # Panics
    /// If `vector` is not of [`Halo::local_len`].
    pub fn start(&mut self, comm: &mut dyn Comm, vector: &[DVec3]) -> Result<(), CommError> {
        self.start_all(comm, [vector])
    }

    /// Sends the owned values of several vectors, in one message to each rank.
    pub(super) fn start_all<const N: usize>(
        &mut self,
        comm: &mut dyn Comm,
        vectors: [&[DVec3]; N],
    ) -> Result<(), CommError> {
        for vector in vectors {
            self.check(vector);
        }
        for peer in &self.peers {
            let mut bytes = self.spare.pop().unwrap_or_default();
            bytes.clear();
            bytes.reserve(N * peer.send.len() * size_of::<DVec3>());
            for vector in vectors {
                for &vertex in &peer.send {
                    bytes.extend_from_slice(bytemuck::bytes_of(&vector[vertex as usize]));
                }
            }
            comm.send(peer.rank, self.tag, bytes)?;
        }
        Ok(())
    }

    /// Waits for what other ranks sent and puts it into the halo of `vector`.
    ///
    /// # Errors
    /// The job was ended, or a neighbour sent another number of values than this rank reads
    /// ([`CommError::Malformed`], naming it).
    ///
    /// # Panics
    /// If `vector` is not of [`Halo::local_len`].
    pub fn finish(&mut self, comm: &mut dyn Comm, vector: &mut [DVec3]) -> Result<(), CommError> {
        self.finish_all(comm, [vector])
    }

    /// Waits for the values of vectors that were sent together.
    pub(super) fn finish_all<const N: usize>(
        &mut self,
        comm: &mut dyn Comm,
        mut vectors: [&mut [DVec3]; N],
    ) -> Result<(), CommError> {
        for vector in &vectors {
            self.check(vector);
        }
        for peer in &self.peers {
            let bytes = comm.recv_from(peer.rank, self.tag)?;
            let each = peer.receive.len() * size_of::<DVec3>();
            if bytes.len() != N * each {
                let what = format!("{} bytes of halo values, not {}", bytes.len(), N * each);
                return Err(CommError::Malformed {
                    from: peer.rank,
                    what,
                });
            }
            for (k, vector) in vectors.iter_mut().enumerate() {
                let into: &mut [u8] = bytemuck::cast_slice_mut(&mut vector[peer.receive.clone()]);
                into.copy_from_slice(&bytes[k * each..(k + 1) * each]);
            }
            self.spare.push(bytes);
        }
        Ok(())
    }

    fn check(&self, vector: &[DVec3]) {
        assert_eq!(
            vector.len(),
            self.local_len,
            "a vector with halo is owned and read vertices"
        );
    }

    /// Length of a vector with halo.
    #[must_use]
    pub fn local_len(&self) -> usize {
        self.local_len
    }

    /// Length of a vector of owned vertices.
    #[must_use]
    pub(crate) fn owned_len(&self) -> usize {
        self.owned_len
    }
}

#[cfg(test)]
mod tests {
    use weft_runtime::comm::threads;

    use super::*;
    use crate::solve::testing::Sheet;

    const TAG: Tag = Tag(7);

    /// A value that tells which vertex it belongs to, and in which round it was sent.
    fn value(vertex: u32, round: u32) -> DVec3 {
        DVec3::new(f64::from(vertex), -0.0, f64::from(round))
    }

    #[test]
    fn halo_holds_what_the_owners_have() {
        let sheet = Sheet::new(20, 8);
        for ranks in [1, 2, 3, 4, 7] {
            threads::launch(ranks, |comm| {
                let plan = sheet.plan(ranks, comm.rank().index());
                let mut halo = Halo::new(&plan, TAG);
                let mut vector = vec![DVec3::NAN; plan.local_len()];
                for round in 0..3 {
                    for (slot, vertex) in vector.iter_mut().zip(plan.owned()) {
                        *slot = value(vertex as u32, round);
                    }
                    halo.start(comm, &vector).unwrap();
                    halo.finish(comm, &mut vector).unwrap();
                    for (at, &vertex) in plan.halo().iter().enumerate() {
                        assert_eq!(vector[halo.owned_len() + at], value(vertex, round));
                    }
                }
                // One buffer for each neighbour, however many rounds there were.
                assert_eq!(halo.spare.len(), plan.neighbours().len());
            })
            .unwrap();
        }
    }

    #[test]
    fn a_message_of_the_wrong_length_names_its_sender() {
        let sheet = Sheet::new(12, 4);
        let errors = threads::launch(2, |comm| {
            let plan = sheet.plan(2, comm.rank().index());
            let mut halo = Halo::new(&plan, TAG);
            let mut vector = vec![DVec3::ZERO; plan.local_len()];
            if comm.rank() == Rank(1) {
                comm.send(Rank(0), TAG, vec![0; 25]).unwrap();
                return None;
            }
            halo.finish(comm, &mut vector).err()
        })
        .unwrap();
        assert!(
            matches!(errors[0], Some(CommError::Malformed { from: Rank(1), .. })),
            "{errors:?}"
        );
    }
}
