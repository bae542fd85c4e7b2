//! Hits of all ranks: each searches its own, and tells the others of them.

use std::ops::Range;

use bytemuck::{Pod, Zeroable};
use weft_runtime::comm::{Collectives, Comm, CommError, Rank};

use crate::collide::Candidate;
use crate::collide::certify::{Hits, Kind, Meeting, Pair, Scenery, Truncate};
use crate::team::Team;

/// A meeting as it travels between ranks of one run.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
struct Record {
    /// The kind: 0 for a vertex and a face, 1 for two edges, 2 for a face and a round body, 3 for a
    /// vertex and a half space or a body by its sampled distance.
    kind: u32,
    /// The vertices, followed by the body if there is one, then by zeros.
    numbers: [u32; 4],
}

impl Record {
    fn of(meeting: &Meeting) -> Self {
        let (kind, numbers) = match *meeting {
            Meeting::Features(pair) => (u32::from(pair.kind == Kind::EdgeEdge), pair.vertices),
            Meeting::Round {
                face: [a, b, c],
                body,
            } => (2, [a, b, c, body]),
            Meeting::Vertex { vertex, body } => (3, [vertex, body, 0, 0]),
        };
        Self { kind, numbers }
    }

    fn meeting(self) -> Option<Meeting> {
        let [a, b, c, d] = self.numbers;
        let features = |kind| {
            let vertices = self.numbers;
            Meeting::Features(Pair { kind, vertices })
        };
        Some(match self.kind {
            0 => features(Kind::VertexFace),
            1 => features(Kind::EdgeEdge),
            2 => Meeting::Round {
                face: [a, b, c],
                body: d,
            },
            3 => Meeting::Vertex { vertex: a, body: b },
            _ => return None,
        })
    }
}

/// A search for hits.
pub(super) struct Search<'a> {
    pub(super) step: &'a Truncate<'a>,
    pub(super) scenery: &'a Scenery,
    /// The rounding of heights of all points of the step, in m.
    pub(super) margin: f64,
}

impl Search<'_> {
    /// Searches candidates and what exceeders may cross for hits; each thread takes some
    /// candidates.
    pub(super) fn run(
        &self,
        candidates: &[Vec<Candidate>],
        exceeders: &[u32],
        team: &Team,
    ) -> Hits {
        let Self {
            step,
            scenery,
            margin,
        } = *self;
        let shares: Vec<Range<usize>> = team.cut_even(candidates.len()).elements;
        let mut found = vec![Hits::default(); shares.len()];
        team.run(found.iter_mut().zip(shares), |(hits, share)| {
            hits.add_candidates(step, scenery, (&candidates[share], margin));
        });
        let mut all = Hits::default();
        for hits in found {
            all.meetings.extend(hits.meetings);
            all.tests += hits.tests;
        }
        if !exceeders.is_empty() {
            let mut exceeds = vec![false; step.start.len()];
            exceeders.iter().for_each(|&v| exceeds[v as usize] = true);
            all.add_exceeders(step, &exceeds);
        }
        all
    }
}

/// Gives every rank the hits of all, ascending, each once. `of` tells how many vertices and bodies
/// there are. Collective.
pub(super) fn share(
    comm: &mut dyn Comm,
    own: Vec<Meeting>,
    of: (usize, usize),
) -> Result<Vec<Meeting>, CommError> {
    let mut all = if comm.size() == 1 {
        own
    } else {
        let records: Vec<Record> = own.iter().map(Record::of).collect();
        let bytes = comm.allgather(bytemuck::cast_slice(&records).to_vec())?;
        let mut all = Vec::new();
        for (rank, bytes) in (0..).zip(bytes) {
            let theirs = read(&bytes, of).ok_or_else(|| CommError::Malformed {
                from: Rank(rank),
                what: "a pair of features that does not exist".to_owned(),
            })?;
            all.extend(theirs);
        }
        all
    };
    all.sort_unstable();
    all.dedup();
    Ok(all)
}

/// The meetings in a message, for this number of vertices and bodies; `None` if it has others.
fn read(bytes: &[u8], (vertices, bodies): (usize, usize)) -> Option<Vec<Meeting>> {
    let exists = |v: &u32| (*v as usize) < vertices;
    let is_known = |meeting: &Meeting| match meeting {
        Meeting::Features(pair) => pair.vertices.iter().all(exists),
        Meeting::Round { face, body } => face.iter().all(exists) && (*body as usize) < bodies,
        Meeting::Vertex { vertex, body } => exists(vertex) && (*body as usize) < bodies,
    };
    let record = |bytes| bytemuck::try_pod_read_unaligned::<Record>(bytes).ok();
    let meetings = bytes.chunks(size_of::<Record>());
    let meetings = meetings.map(|bytes| record(bytes)?.meeting().filter(is_known));
    meetings.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_what_does_not_exist_are_refused() {
        let record = |kind, last| Record {
            kind,
            numbers: [0, 1, 2, last],
        };
        let good = [record(0, 3), record(1, 3), record(2, 1)];
        let meetings = read(bytemuck::cast_slice(&good), (4, 2)).unwrap();
        let again: Vec<Record> = meetings.iter().map(Record::of).collect();
        for (one, two) in good.iter().zip(&again) {
            assert_eq!(bytemuck::bytes_of(one), bytemuck::bytes_of(two));
        }
        for bad in [record(4, 3), record(0, 4), record(2, 2)] {
            assert_eq!(read(bytemuck::bytes_of(&bad), (4, 2)), None);
        }
        assert_eq!(read(&bytemuck::bytes_of(&good[0])[1..], (4, 2)), None);
    }
}
