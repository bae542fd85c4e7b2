//! Hits of all ranks: each searches its own, and tells the others of them.

use std::ops::Range;

use bytemuck::{Pod, Zeroable};
use weft_runtime::comm::{Collectives, Comm, CommError, Rank};

use crate::collide::certify::{
    Hits, Kind, Meeting, Pair, Region, Scenery, Truncate, around_displacements, tree_near,
};
use crate::collide::{Candidate, ClothSurface, Kdop18};
use crate::step::domain::Domain;
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
    pub(super) cloth: &'a ClothSurface,
    /// The region in which displacements are known, if not all are.
    pub(super) region: Option<&'a Region<'a>>,
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
            ..
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
            let tree = match self.region {
                Some(region) => Some(region.tree(step)),
                None => tree_near(self.cloth, step, &exceeds),
            };
            match tree {
                Some(tree) => all.add_exceeders(
                    &Truncate {
                        tree: &tree,
                        ..*step
                    },
                    &exceeds,
                ),
                None => all.add_exceeders(step, &exceeds),
            }
        }
        all
    }
}

/// The search for the region around vertices that end far from where they were foreseen, where
/// ranks do not know the displacements of all.
pub(super) struct Exceeding<'a> {
    pub(super) domain: &'a Domain,
    /// Whether a vertex that a triangle of the rank's patches has is one of these.
    pub(super) exceeds: &'a dyn Fn(u32) -> bool,
    /// How much wider volumes are than half of the gap to be kept, in m.
    pub(super) wider: f64,
}

impl Exceeding<'_> {
    /// The region near such vertices of all ranks, by volumes around displacements; `None` if it is
    /// most of the cloth. Collective.
    pub(super) fn region<'a>(
        &self,
        comm: &mut dyn Comm,
        cloth: &'a ClothSurface,
        step: &Truncate<'_>,
    ) -> Result<Option<Region<'a>>, CommError> {
        const VOLUME: usize = size_of::<[f32; Kdop18::NUMBERS]>();
        let ownership = &self.domain.ownership;
        let own = self.domain.patches();
        let volumes = around_displacements(cloth, own.clone(), step, self.wider);
        let mut bytes = Vec::new();
        for volume in &volumes {
            bytes.extend_from_slice(bytemuck::cast_slice(volume.numbers()));
        }
        let vertices = cloth.patch_vertices();
        let with = own.filter(|&patch| vertices[patch].iter().any(|&v| (self.exceeds)(v)));
        let with: Vec<u32> = with.map(|patch| patch as u32).collect();
        bytes.extend_from_slice(bytemuck::cast_slice(&with));
        let mut roots = Vec::with_capacity(ownership.patch_count());
        let mut hit = vec![false; ownership.patch_count()];
        for (rank, bytes) in comm.allgather(bytes)?.iter().enumerate() {
            let malformed = || CommError::Malformed {
                from: Rank(rank as u32),
                what: format!("{} bytes about its volumes and patches", bytes.len()),
            };
            let theirs = ownership.patches(rank).len();
            let (volumes, patches) = bytes
                .split_at_checked(theirs * VOLUME)
                .ok_or_else(malformed)?;
            let volumes = volumes.chunks_exact(VOLUME);
            roots
                .extend(volumes.map(|one| Kdop18::from_numbers(bytemuck::pod_read_unaligned(one))));
            for patch in patches.chunks(size_of::<u32>()) {
                let patch: u32 =
                    bytemuck::try_pod_read_unaligned(patch).map_err(|_| malformed())?;
                *hit.get_mut(patch as usize).ok_or_else(malformed)? = true;
            }
        }
        Ok(Region::near(cloth, roots, &hit))
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
