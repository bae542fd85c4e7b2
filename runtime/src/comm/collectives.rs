//! Operations in which every rank takes part, built on point-to-point messages.
//!
//! Every rank calls the same collectives in the same order. Each uses messages of one tag between
//! fixed pairs of ranks, and such messages keep their order, so consecutive collectives cannot be
//! confused. Latency grows with the logarithm of the number of ranks. Gathers to all are
//! dissemination [Bruck, Ho, Kipnis, Upfal & Weathersbee, Efficient algorithms for all-to-all
//! communications in multiport message-passing systems, 1997].

use super::{Comm, CommError, Rank, Tag};
use crate::trace::OpenSpan;

const BARRIER: Tag = Tag(0xff00);
const BROADCAST: Tag = Tag(0xff01);
const GATHER: Tag = Tag(0xff02);
const ALLGATHER: Tag = Tag(0xff03);
const EXCHANGE: Tag = Tag(0xff04);
const POSTED: Tag = Tag(0xff05);

/// Most ranks of which each sends its block of a gather that is begun to each other rank itself.
/// This many messages take longer to send and to take than the few of a gather by dissemination,
/// but all are under way at once, and nobody has to pass anything on.
pub const POSTED_UP_TO: usize = 64;

/// The factor by which the blocks that a rank holds grow in each round of a gather to all; it hears
/// from one rank less in each.
///
/// Two would be fewest messages, `n` one round. Where a message takes 6 µs to arrive and 0.5 µs to
/// be sent and to be taken, 16 ranks are done after 28 µs with two, 16 µs with four, 14 µs with 16,
/// in which their processors work for 4, 6 and 15 µs.
pub const GATHER_FACTOR: usize = 4;

/// The collective whose messages have this tag.
#[must_use]
pub fn collective_name(tag: Tag) -> Option<&'static str> {
    Some(match tag {
        BARRIER => "barrier",
        BROADCAST => "broadcast",
        GATHER => "gather",
        ALLGATHER | POSTED => "allgather",
        EXCHANGE => "exchange",
        _ => return None,
    })
}

/// Collective operations, on every driver.
///
/// # Errors
/// All of them: the job was ended, a rank left, or one sent what cannot be read.
pub trait Collectives: Comm {
    /// Returns when every rank has called it (dissemination: `⌈log₂ n⌉` rounds).
    fn barrier(&mut self) -> Result<(), CommError> {
        told(self, "barrier", |comm| {
            let (me, n) = (comm.rank().0, ranks(comm));
            let mut distance = 1;
            while distance < n {
                comm.send(ahead(me, distance, n), BARRIER, Vec::new())?;
                comm.recv_from(ahead(me, n - distance, n), BARRIER)?;
                distance *= 2;
            }
            Ok(())
        })
    }

    /// Gives every rank the bytes of `root` (a binomial tree); what others pass is ignored.
    fn broadcast(&mut self, root: Rank, bytes: Vec<u8>) -> Result<Vec<u8>, CommError> {
        told(self, "broadcast", |comm| {
            let (me, n) = (comm.rank().0, ranks(comm));
            if root.0 >= n {
                return Err(CommError::NoSuchRank {
                    to: root,
                    size: comm.size(),
                });
            }
            let place = (me + n - root.0) % n;
            // The lowest set bit of a place says which round it receives in.
            let mut bit = 1;
            let mut bytes = bytes;
            while bit < n && place & bit == 0 {
                bit *= 2;
            }
            if place != 0 {
                bytes = comm.recv_from(ahead(root.0, place - bit, n), BROADCAST)?;
            }
            while bit > 1 {
                bit /= 2;
                if place + bit < n {
                    comm.send(ahead(root.0, place + bit, n), BROADCAST, bytes.clone())?;
                }
            }
            Ok(bytes)
        })
    }

    /// Gives `root` the bytes of every rank, by rank; `None` elsewhere.
    fn gather(&mut self, root: Rank, bytes: Vec<u8>) -> Result<Option<Vec<Vec<u8>>>, CommError> {
        told(self, "gather", |comm| {
            if comm.rank() != root {
                comm.send(root, GATHER, bytes)?;
                return Ok(None);
            }
            let mut own = Some(bytes);
            (0..ranks(comm))
                .map(|r| match own.take_if(|_| Rank(r) == root) {
                    Some(bytes) => Ok(bytes),
                    None => comm.recv_from(Rank(r), GATHER),
                })
                .collect::<Result<_, _>>()
                .map(Some)
        })
    }

    /// Gives every rank the bytes of every rank, by rank (dissemination: `⌈log₄ n⌉` rounds of up to
    /// three messages, see [`GATHER_FACTOR`]).
    fn allgather(&mut self, bytes: Vec<u8>) -> Result<Vec<Vec<u8>>, CommError> {
        told(self, "allgather", |comm| {
            let (me, n) = (comm.rank().0, ranks(comm));
            // The blocks of ranks `me`, `me + 1`, …; packed, because thousands of ranks may hold
            // them while they wait for each other.
            let (mut packed, mut held) = (pack(&[bytes]), 1);
            while held < n {
                for (distance, count) in pieces(held, n) {
                    let sent = if count == held {
                        packed.clone()
                    } else {
                        packed[..prefix(&packed, count).unwrap_or(packed.len())].to_vec()
                    };
                    comm.send(ahead(me, n - distance, n), ALLGATHER, sent)?;
                }
                for (distance, count) in pieces(held, n) {
                    let from = ahead(me, distance, n);
                    let received = comm.recv_from(from, ALLGATHER)?;
                    if prefix(&received, count) != Some(received.len()) {
                        return Err(CommError::Malformed {
                            from,
                            what: format!("not {count} blocks of a gather"),
                        });
                    }
                    packed.reserve_exact(received.len());
                    packed.extend_from_slice(&received);
                }
                held += pieces(held, n).map(|(_, count)| count).sum::<u32>();
            }
            let mut blocks = unpack(&packed).unwrap_or_default();
            blocks.rotate_right(comm.rank().index());
            Ok(blocks)
        })
    }

    /// Fills `all` with the blocks of all ranks, one after the other, where every rank knows how
    /// long each is; its own stands in its place already (dissemination, as
    /// [`allgather`](Collectives::allgather), without lengths and copies).
    ///
    /// # Panics
    /// If `lengths` are not of all ranks, or `all` is of another length.
    fn allgather_into(&mut self, lengths: &[usize], all: &mut [u8]) -> Result<(), CommError> {
        told(self, "allgather", |comm| {
            let (me, n) = (comm.rank().0, ranks(comm));
            assert_eq!(lengths.len(), n as usize, "a length for each rank");
            let mut starts = Vec::with_capacity(lengths.len() + 1);
            starts.push(0);
            for (at, length) in lengths.iter().enumerate() {
                starts.push(starts[at] + length);
            }
            assert_eq!(all.len(), starts[lengths.len()], "room for all blocks");
            // Where this many blocks from a rank's on stand, round the ring.
            let place = |from: Rank, count: u32| {
                let (first, end) = (from.index(), from.index() + count as usize);
                let behind = end.saturating_sub(lengths.len());
                [
                    starts[first]..starts[end - behind],
                    starts[0]..starts[behind],
                ]
            };
            let mut held = 1;
            while held < n {
                for (distance, count) in pieces(held, n) {
                    let sent = place(Rank(me), count).map(|range| &all[range]).concat();
                    comm.send(ahead(me, n - distance, n), ALLGATHER, sent)?;
                }
                for (distance, count) in pieces(held, n) {
                    let from = ahead(me, distance, n);
                    let received = comm.recv_from(from, ALLGATHER)?;
                    let [straight, round] = place(from, count);
                    if received.len() != straight.len() + round.len() {
                        return Err(CommError::Malformed {
                            from,
                            what: format!(
                                "{} bytes, not the {} of {count} blocks of a gather",
                                received.len(),
                                straight.len() + round.len()
                            ),
                        });
                    }
                    let (before, behind) = received.split_at(straight.len());
                    all[straight].copy_from_slice(before);
                    all[round].copy_from_slice(behind);
                }
                held += pieces(held, n).map(|(_, count)| count).sum::<u32>();
            }
            Ok(())
        })
    }

    /// Begins a gather to all that [`finish_allgather`](Collectives::finish_allgather) or
    /// [`finish_allgather_into`](Collectives::finish_allgather_into) ends, the same on all ranks:
    /// what a rank does in between is done while blocks are under way, if there are at most
    /// [`POSTED_UP_TO`] ranks. `own` is the block of this rank.
    ///
    /// Only one can be under way; other collectives may come in between.
    fn begin_allgather(&mut self, own: &[u8]) -> Result<(), CommError> {
        let (me, n) = (self.rank().0, ranks(self));
        if self.size() <= POSTED_UP_TO {
            for distance in 1..n {
                self.send(ahead(me, distance, n), POSTED, own.to_vec())?;
            }
        }
        Ok(())
    }

    /// Gives every rank the blocks that a gather was begun with, by rank; `own` is that of this
    /// rank.
    fn finish_allgather(&mut self, own: Vec<u8>) -> Result<Vec<Vec<u8>>, CommError> {
        if self.size() > POSTED_UP_TO {
            return self.allgather(own);
        }
        told(self, "allgather", |comm| {
            let (me, n) = (comm.rank().0, ranks(comm));
            let mut blocks = vec![Vec::new(); comm.size()];
            blocks[comm.rank().index()] = own;
            // In the order in which they were sent.
            for distance in 1..n {
                let from = ahead(me, n - distance, n);
                blocks[from.index()] = comm.recv_from(from, POSTED)?;
            }
            Ok(blocks)
        })
    }

    /// Fills `all` as [`allgather_into`](Collectives::allgather_into) does, with the blocks that a
    /// gather was begun with.
    ///
    /// # Panics
    /// If `lengths` are not of all ranks, or `all` is of another length.
    fn finish_allgather_into(
        &mut self,
        lengths: &[usize],
        all: &mut [u8],
    ) -> Result<(), CommError> {
        if self.size() > POSTED_UP_TO {
            return self.allgather_into(lengths, all);
        }
        told(self, "allgather", |comm| {
            let (me, n) = (comm.rank().0, ranks(comm));
            assert_eq!(lengths.len(), n as usize, "a length for each rank");
            assert_eq!(
                all.len(),
                lengths.iter().sum::<usize>(),
                "room for all blocks"
            );
            // In the order in which they were sent.
            for distance in 1..n {
                let from = ahead(me, n - distance, n);
                let received = comm.recv_from(from, POSTED)?;
                let start: usize = lengths[..from.index()].iter().sum();
                let room = &mut all[start..start + lengths[from.index()]];
                if received.len() != room.len() {
                    return Err(CommError::Malformed {
                        from,
                        what: format!("{} bytes of a gather, not {}", received.len(), room.len()),
                    });
                }
                room.copy_from_slice(&received);
            }
            Ok(())
        })
    }

    /// Sends bytes to some ranks and receives from those that sent here, sorted by sender.
    ///
    /// Sending twice to one rank is two messages, in order. Ranks agree on who sends to whom while
    /// they travel.
    fn exchange(
        &mut self,
        messages: Vec<(Rank, Vec<u8>)>,
    ) -> Result<Vec<(Rank, Vec<u8>)>, CommError> {
        told(self, "exchange", |comm| {
            let targets: Vec<Rank> = messages.iter().map(|(to, _)| *to).collect();
            for (to, bytes) in messages {
                comm.send(to, EXCHANGE, bytes)?;
            }
            comm.take_sent(&targets, EXCHANGE)
        })
    }

    /// Receives what ranks have sent here under a tag before, sorted by sender, and of each in
    /// order; `to` are those that this rank has sent to, as often as it has.
    ///
    /// Ranks first agree on who has sent to whom.
    fn take_sent(&mut self, to: &[Rank], tag: Tag) -> Result<Vec<(Rank, Vec<u8>)>, CommError> {
        let me = self.rank();
        let targets = to.iter().flat_map(|to| to.0.to_le_bytes()).collect();
        let mut received = Vec::new();
        for (from, targets) in (0..).map(Rank).zip(&self.allgather(targets)?) {
            let count = targets
                .chunks_exact(4)
                .filter(|t| **t == me.0.to_le_bytes())
                .count();
            for _ in 0..count {
                received.push((from, self.recv_from(from, tag)?));
            }
        }
        Ok(received)
    }
}

impl<C: Comm + ?Sized> Collectives for C {}

/// Runs a collective, and tells the `tracing` subscriber of it.
fn told<C: Comm + ?Sized, R>(
    comm: &mut C,
    name: &'static str,
    body: impl FnOnce(&mut C) -> Result<R, CommError>,
) -> Result<R, CommError> {
    let open = OpenSpan::collective(comm, name);
    let outcome = body(comm);
    open.end_at(|| comm.now());
    outcome
}

/// Combines one number of every rank, in rank order: `op(op(v₀, v₁), v₂)…`, the same everywhere.
///
/// # Errors
/// The job was ended, a rank left, or one sent what is no number.
pub fn all_reduce<C: Comm + ?Sized>(
    comm: &mut C,
    value: f64,
    op: impl Fn(f64, f64) -> f64,
) -> Result<f64, CommError> {
    const LENGTH: usize = size_of::<f64>();
    let mut all = vec![0; LENGTH * comm.size()];
    all[LENGTH * comm.rank().index()..][..LENGTH].copy_from_slice(&value.to_le_bytes());
    comm.allgather_into(&vec![LENGTH; comm.size()], &mut all)?;
    let (values, _) = all.as_chunks();
    let values = values.iter().copied().map(f64::from_le_bytes);
    Ok(values.reduce(op).unwrap_or(value))
}

/// The distances ahead of the ranks from which a rank that holds this many of `n` blocks, its own
/// first, gets further ones in a round, each with the number of blocks: as many as it holds from
/// each, as long as there are any.
fn pieces(held: u32, n: u32) -> impl Iterator<Item = (u32, u32)> {
    let distances = (1..GATHER_FACTOR as u32).map(move |step| step.saturating_mul(held));
    distances
        .take_while(move |&distance| distance < n)
        .map(move |distance| (distance, held.min(n - distance)))
}

/// The number of ranks; drivers number them with 32 bits.
fn ranks<C: Comm + ?Sized>(comm: &C) -> u32 {
    comm.size() as u32
}

/// The rank `steps` after `rank`, round the ring.
fn ahead(rank: u32, steps: u32, n: u32) -> Rank {
    Rank(((u64::from(rank) + u64::from(steps)) % u64::from(n)) as u32)
}

/// Blocks one after the other, each behind its length.
fn pack(blocks: &[Vec<u8>]) -> Vec<u8> {
    let mut packed = Vec::with_capacity(blocks.iter().map(|b| b.len() + 8).sum());
    for block in blocks {
        packed.extend_from_slice(&(block.len() as u64).to_le_bytes());
        packed.extend_from_slice(block);
    }
    packed
}

/// Unpacks the bytes of [`pack`]; `None` if they are not from there.
fn unpack(mut packed: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut blocks = Vec::new();
    while !packed.is_empty() {
        let (block, rest) = split_block(packed)?;
        blocks.push(block.to_vec());
        packed = rest;
    }
    Some(blocks)
}

/// The length of the first this many blocks, packed; `None` if there are fewer.
fn prefix(packed: &[u8], count: u32) -> Option<usize> {
    let mut rest = packed;
    for _ in 0..count {
        rest = split_block(rest)?.1;
    }
    Some(packed.len() - rest.len())
}

/// The first block, and what follows it.
fn split_block(packed: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = packed.split_first_chunk::<8>()?;
    let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
    rest.split_at_checked(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packing_round_trips_and_refuses_what_it_did_not_make() {
        let blocks = vec![vec![1, 2, 3], vec![], vec![9; 300]];
        assert_eq!(unpack(&pack(&blocks)), Some(blocks.clone()));
        assert_eq!(unpack(&[1, 2, 3]), None);
        assert_eq!(unpack(&u64::MAX.to_le_bytes()), None);
        let packed = pack(&blocks);
        assert_eq!(prefix(&packed, 0), Some(0));
        assert_eq!(prefix(&packed, 2), Some(8 + 3 + 8));
        assert_eq!(prefix(&packed, 3), Some(packed.len()));
        assert_eq!(prefix(&packed, 4), None);
    }
}
