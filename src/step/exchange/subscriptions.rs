//! Subscriptions: the state that a rank is sent of vertices that it does not own.
//!
//! A rank tests its patches against those whose volumes meet theirs, and reads for that the
//! vertices of both. So each patch has readers: its owner, and the owners of patches that it meets
//! in the substep or that are close to it at rest. Meeting is symmetric, and all ranks know the
//! volumes around all patches. So both ends of a transfer derive the same lists, and nobody asks.
//!
//! A transfer starts with positions and velocities. From then on its reader is sent the velocities
//! with which vertices move, once in each substep, and moves them as their owner does, with the
//! same bits. Vertices that a rank is not sent hold old values: nothing may read them. In builds
//! with debug assertions they are no numbers.
//!
//! There are stages that need all vertices, such as truncation, and outputs of one file. Ranks then
//! send each other everything, and the state is *whole* until the substep's end.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use glam::DVec3;
use weft_partition::Ownership;
use weft_runtime::comm::{Comm, CommError, Rank, Tag};

use crate::collide::Snapshot;
use crate::heap_bytes::{counts_heap, owns_no_heap};
use crate::sparse::Sparse;
use crate::step::domain::Domain;
use crate::step::world::World;

pub(crate) const TAG: Tag = Tag(0x3a);

/// A rank's end of all transfers.
#[derive(Debug)]
pub(crate) struct Subscriptions {
    me: usize,
    owned: Range<usize>,
    /// The patches that are read together with a vertex that the rank owns, ascending: its own, and
    /// those around them.
    around: Vec<u32>,
    /// The patches that are close at rest to each of these, beside those that they meet.
    near: BTreeMap<u32, Vec<u32>>,
    /// The vertices that tests of a patch read, ascending, for patches that were looked at.
    reads: BTreeMap<u32, Vec<u32>>,
    /// The transfers by the other rank, ascending.
    links: Vec<Link>,
    /// Whether each vertex is the rank's own or of subscriptions.
    known: Vec<bool>,
    /// Runs of vertices of subscriptions and of the rank's own, ascending.
    runs: Vec<Span>,
    /// Whether all vertices are known in the present substep.
    whole: bool,
    /// The bytes of states that came from other ranks since they were taken last.
    received: u64,
    room: Vec<u8>,
}

counts_heap!(Subscriptions:
    around, near, reads, links, known, runs, room;
    without me, owned, whole, received
);

/// Vertices that follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    start: u32,
    end: u32,
}

owns_no_heap!(Span);

/// The transfers with another rank.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Link {
    rank: usize,
    /// The vertices that this rank sends.
    gives: Share,
    /// The vertices that it is sent.
    takes: Share,
}

counts_heap!(Link: gives, takes; without rank);

/// The vertices of a transfer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Share {
    /// The patches that the reader tests, ascending.
    patches: Vec<u32>,
    /// The vertices that the sender owns of all that these read, and those of the reader's halo;
    /// ascending.
    vertices: Vec<u32>,
}

counts_heap!(Share: patches, vertices);

impl Share {
    /// The vertices that are not those of another share.
    fn beyond(&self, other: &Self) -> Vec<u32> {
        let is_new = |v: &&u32| other.vertices.binary_search(v).is_err();
        self.vertices.iter().filter(is_new).copied().collect()
    }
}

/// A transfer that has changed: the vertices that it has and had not before.
struct Changed {
    rank: usize,
    gives: Vec<u32>,
    takes: Vec<u32>,
}

/// The patches that each rank reads which are of interest, from one end of all transfers.
#[derive(Debug, Default)]
struct Readings {
    /// The patches with a vertex that this rank owns, for each other rank.
    gives: BTreeMap<usize, BTreeSet<u32>>,
    /// The patches that this rank reads.
    takes: BTreeSet<u32>,
}

/// The vertices of triangles that have a corner among some vertices, which ascend.
fn grown(world: &World, vertices: &[u32]) -> Vec<u32> {
    let mut all = Vec::with_capacity(2 * vertices.len());
    let triangles = world.model().triangles();
    let is_in = |v: &u32| vertices.binary_search(v).is_ok();
    let mut patches: Vec<usize> = (vertices.iter())
        .map(|&v| world.tree().patch_of(v))
        .collect();
    patches.dedup();
    for patch in patches {
        for triangle in world.patch_triangles().of(patch) {
            let corners = triangles[triangle as usize];
            if corners.iter().any(is_in) {
                all.extend(corners);
            }
        }
    }
    all.extend(vertices);
    all.sort_unstable();
    all.dedup();
    all
}

/// The vertices that tests of a patch read: the corners of its triangles, and of the triangles
/// around these, for features are contacts where they are closest among those beside them.
fn read_by(world: &World, patch: u32) -> Vec<u32> {
    let cloth = world.geometry().cloth;
    grown(world, &cloth.patch_vertices()[patch as usize])
}

/// The part of ascending vertices that lies in a range.
fn part(vertices: &[u32], owned: Range<usize>) -> &[u32] {
    let place = |end: usize| vertices.partition_point(|&v| (v as usize) < end);
    &vertices[place(owned.start)..place(owned.end)]
}

impl Subscriptions {
    /// The subscriptions of a rank before the first substep, when every rank has the whole state.
    pub(crate) fn new(world: &World, domain: &Domain) -> Self {
        let owned = domain.owned();
        let me = domain.plan.rank();
        let own: Vec<u32> = owned.clone().map(|v| v as u32).collect();
        // A patch that reads an owned vertex has a vertex within two edges of it.
        let beside = grown(world, &grown(world, &own));
        let mut around: Vec<u32> = (beside.iter())
            .map(|&v| world.tree().patch_of(v) as u32)
            .collect();
        around.dedup();
        let mut near: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for &[low, high] in world.patches_near_at_rest() {
            for [one, other] in [[low, high], [high, low]] {
                if around.binary_search(&one).is_ok() {
                    near.entry(one).or_default().push(other);
                }
            }
        }
        let vertices = world.model().start().len();
        let mut new = Self {
            me,
            owned,
            around,
            near,
            reads: BTreeMap::new(),
            links: Vec::new(),
            known: vec![false; vertices],
            runs: Vec::new(),
            whole: true,
            received: 0,
            room: Vec::new(),
        };
        new.note_known(domain);
        new
    }

    /// The vertices that tests of a patch read, ascending, for a patch of this rank or one that it
    /// is sent.
    pub(crate) fn read_by(&self, patch: u32) -> &[u32] {
        self.reads.get(&patch).map_or(&[], Vec::as_slice)
    }

    /// The patches that are close at rest to one of this rank's.
    pub(crate) fn near_at_rest(&self, patch: u32) -> &[u32] {
        self.near.get(&patch).map_or(&[], Vec::as_slice)
    }

    /// Whether all vertices are known in the present substep.
    pub(crate) fn is_whole(&self) -> bool {
        self.whole
    }

    /// Takes note that every rank has the whole state.
    pub(crate) fn note_whole(&mut self) {
        self.whole = true;
    }

    /// Runs of vertices whose state is here, ascending.
    pub(crate) fn runs_here(&self) -> Vec<Range<usize>> {
        if self.whole {
            std::iter::once(0..self.known.len()).collect()
        } else {
            self.runs_of_subscriptions().collect()
        }
    }

    /// Runs of vertices of subscriptions and of the rank's own, ascending.
    pub(crate) fn runs_of_subscriptions(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        let runs = self.runs.iter();
        runs.map(|run| run.start as usize..run.end as usize)
    }

    /// Whether the state of each vertex is here; `None` if that of all is.
    pub(crate) fn known(&self) -> Option<&[bool]> {
        (!self.whole).then_some(&self.known)
    }

    /// The number of vertices of other ranks that this one is sent.
    pub(crate) fn ghosts(&self) -> usize {
        (self.links.iter())
            .map(|link| link.takes.vertices.len())
            .sum()
    }

    /// The bytes of states that came from other ranks since this was asked last.
    pub(crate) fn take_received(&mut self) -> u64 {
        std::mem::take(&mut self.received)
    }

    /// Counts vectors, one for a vertex, that came from other ranks by another way.
    pub(crate) fn count_received(&mut self, vectors: usize) {
        self.received += (vectors * size_of::<DVec3>()) as u64;
    }

    /// Derives the transfers of a substep from the patches that meet, and starts those that are new
    /// with positions and velocities. Collective.
    ///
    /// # Errors
    /// Messages failed, or another rank has derived other transfers.
    pub(crate) fn renew(
        &mut self,
        comm: &mut dyn Comm,
        (world, domain): (&World, &Domain),
        meetings: &Meetings,
        [x, v]: [&mut [DVec3]; 2],
    ) -> Result<(), CommError> {
        let readings = self.readings(&domain.ownership, meetings);
        let changed = self.relink(world, domain, readings);
        if !self.whole {
            for Changed { rank, gives, .. } in &changed {
                if !gives.is_empty() {
                    self.send(comm, *rank, gives, [&*x, &*v])?;
                }
            }
            for Changed { rank, takes, .. } in &changed {
                if !takes.is_empty() {
                    self.take(comm, *rank, takes, [x, v])?;
                }
            }
        }
        if !changed.is_empty() {
            self.note_known(domain);
        }
        Ok(())
    }

    /// The patches that each rank reads, of those that concern this one.
    fn readings(&self, ownership: &Ownership, meetings: &Meetings) -> Readings {
        let mut readings = Readings::default();
        let own = ownership.patches(self.me);
        readings.takes.extend(own.clone().map(|patch| patch as u32));
        let mut note = |patch: u32, other: u32| {
            // The owner of the other patch reads this one.
            let reader = ownership.rank_of_patch(other as usize);
            if reader == self.me {
                readings.takes.insert(patch);
            } else if self.around.binary_search(&patch).is_ok() {
                readings.gives.entry(reader).or_default().insert(patch);
            }
        };
        for &[one, other] in &meetings.0 {
            note(one, other);
            note(other, one);
        }
        for (&patch, others) in &self.near {
            for &other in others {
                note(patch, other);
                note(other, patch);
            }
        }
        for &patch in &self.around {
            let owner = ownership.rank_of_patch(patch as usize);
            if owner != self.me {
                readings.gives.entry(owner).or_default().insert(patch);
            }
        }
        readings
    }

    /// Makes the lists of all transfers. Returns those that have changed.
    fn relink(&mut self, world: &World, domain: &Domain, readings: Readings) -> Vec<Changed> {
        let ownership = &domain.ownership;
        let Readings { mut gives, takes } = readings;
        let used: BTreeSet<u32> = (takes.iter())
            .chain(gives.values().flatten())
            .copied()
            .collect();
        for &patch in &used {
            let read = self.reads.entry(patch);
            read.or_insert_with(|| read_by(world, patch));
        }
        if self.reads.len() > 2 * used.len() {
            self.reads.retain(|patch, _| used.contains(patch));
        }
        let reads = &self.reads;
        let mut by_owner: BTreeMap<usize, BTreeSet<u32>> = BTreeMap::new();
        for &patch in &takes {
            let mut read = &reads[&patch][..];
            while let Some(&first) = read.first() {
                let owner = ownership.rank_of_vertex(first as usize);
                if owner != self.me {
                    by_owner.entry(owner).or_default().insert(patch);
                }
                let end = ownership.vertices(owner).end;
                read = &read[read.partition_point(|&v| (v as usize) < end)..];
            }
        }
        for patches in gives.values_mut() {
            patches.retain(|patch| !part(&reads[patch], self.owned.clone()).is_empty());
        }
        gives.retain(|_, patches| !patches.is_empty());
        let neighbours = domain.plan.neighbours();
        let mut before = std::mem::take(&mut self.links);
        let ranks: BTreeSet<usize> = (gives.keys().chain(by_owner.keys()).copied())
            .chain(neighbours.iter().map(|neighbour| neighbour.rank))
            .chain(before.iter().map(|link| link.rank))
            .collect();
        let mut changed = Vec::new();
        for rank in ranks {
            let patches = |of: &BTreeMap<usize, BTreeSet<u32>>| -> Vec<u32> {
                of.get(&rank).into_iter().flatten().copied().collect()
            };
            let [now_gives, now_takes] = [patches(&gives), patches(&by_owner)];
            let old = before.iter_mut().find(|link| link.rank == rank);
            let is_new = old.is_none();
            let old = old.map(std::mem::take).unwrap_or_default();
            if !is_new && old.gives.patches == now_gives && old.takes.patches == now_takes {
                self.links.push(Link { rank, ..old });
                continue;
            }
            let halo = neighbours.iter().find(|neighbour| neighbour.rank == rank);
            let first = self.owned.start as u32;
            let mut sent: Vec<u32> = Vec::new();
            let mut received: Vec<u32> = Vec::new();
            if let Some(halo) = halo {
                sent.extend(halo.send.iter().map(|local| first + local));
                received.extend(&domain.plan.halo()[halo.receive.clone()]);
            }
            let share = |patches: Vec<u32>, halo: Vec<u32>, owned: Range<usize>| {
                let mut vertices = halo;
                for patch in &patches {
                    vertices.extend(part(&reads[patch], owned.clone()));
                }
                vertices.sort_unstable();
                vertices.dedup();
                Share { patches, vertices }
            };
            let link = Link {
                rank,
                gives: share(now_gives, sent, self.owned.clone()),
                takes: share(now_takes, received, ownership.vertices(rank)),
            };
            changed.push(Changed {
                rank,
                gives: link.gives.beyond(&old.gives),
                takes: link.takes.beyond(&old.takes),
            });
            if !(link.gives.vertices.is_empty() && link.takes.vertices.is_empty()) {
                self.links.push(link);
            }
        }
        changed
    }

    /// Sends the values of vertices that this rank owns to their readers. The other half is
    /// [`Self::finish`]. Collective.
    ///
    /// # Errors
    /// The job was ended.
    pub(crate) fn begin(&mut self, comm: &mut dyn Comm, values: &[DVec3]) -> Result<(), CommError> {
        let links = std::mem::take(&mut self.links);
        let mut all = links.iter().filter(|link| !link.gives.vertices.is_empty());
        let outcome =
            all.try_for_each(|link| self.send(comm, link.rank, &link.gives.vertices, [values]));
        self.links = links;
        outcome
    }

    /// Takes the values of vertices that this rank reads.
    ///
    /// # Errors
    /// Messages failed, or another rank has derived other transfers.
    pub(crate) fn finish(
        &mut self,
        comm: &mut dyn Comm,
        values: &mut [DVec3],
    ) -> Result<(), CommError> {
        let links = std::mem::take(&mut self.links);
        let mut all = links.iter().filter(|link| !link.takes.vertices.is_empty());
        let outcome =
            all.try_for_each(|link| self.take(comm, link.rank, &link.takes.vertices, [values]));
        self.links = links;
        outcome
    }

    fn send<const N: usize>(
        &mut self,
        comm: &mut dyn Comm,
        to: usize,
        vertices: &[u32],
        values: [&[DVec3]; N],
    ) -> Result<(), CommError> {
        let mut bytes = std::mem::take(&mut self.room);
        bytes.clear();
        bytes.reserve(N * size_of_val(vertices) / size_of::<u32>() * size_of::<DVec3>());
        for values in values {
            for &vertex in vertices {
                bytes.extend_from_slice(bytemuck::bytes_of(&values[vertex as usize]));
            }
        }
        comm.send(Rank(to as u32), TAG, bytes)
    }

    fn take<const N: usize>(
        &mut self,
        comm: &mut dyn Comm,
        from: usize,
        vertices: &[u32],
        mut values: [&mut [DVec3]; N],
    ) -> Result<(), CommError> {
        const EACH: usize = size_of::<DVec3>();
        let from = Rank(from as u32);
        let bytes = comm.recv_from(from, TAG)?;
        if bytes.len() != N * vertices.len() * EACH {
            let what = format!(
                "{} bytes for the state of {} vertices",
                bytes.len(),
                vertices.len()
            );
            return Err(CommError::Malformed { from, what });
        }
        let mut each = bytes.chunks_exact(EACH);
        for values in &mut values {
            for (&vertex, bytes) in vertices.iter().zip(&mut each) {
                values[vertex as usize] = bytemuck::pod_read_unaligned(bytes);
            }
        }
        self.received += bytes.len() as u64;
        self.room = bytes;
        Ok(())
    }

    /// Finds which vertices are here.
    fn note_known(&mut self, domain: &Domain) {
        self.known.fill(false);
        self.known[domain.owned()].fill(true);
        for link in &self.links {
            for &vertex in &link.takes.vertices {
                self.known[vertex as usize] = true;
            }
        }
        self.runs.clear();
        let mut at = 0;
        for run in self.known.chunk_by(|one, next| one == next) {
            let end = at + run.len() as u32;
            if run[0] {
                self.runs.push(Span { start: at, end });
            }
            at = end;
        }
    }

    /// Has the rank know its own vertices and its halo, and nothing else.
    pub(crate) fn restart(&mut self, domain: &Domain) {
        self.links.clear();
        let first = self.owned.start as u32;
        for neighbour in domain.plan.neighbours() {
            let halo = &domain.plan.halo()[neighbour.receive.clone()];
            let share = |vertices: Vec<u32>| Share {
                patches: Vec::new(),
                vertices,
            };
            self.links.push(Link {
                rank: neighbour.rank,
                gives: share(neighbour.send.iter().map(|local| first + local).collect()),
                takes: share(halo.to_vec()),
            });
        }
        self.whole = false;
        self.note_known(domain);
    }

    /// Ends a substep: only vertices of subscriptions are known from now on. Other values are
    /// made no numbers in builds with debug assertions. Returns whether all were known until now;
    /// then the memory of the others was given back.
    pub(crate) fn end_substep(&mut self, state: [&mut Sparse<DVec3>; 2]) -> bool {
        let was_whole = std::mem::replace(&mut self.whole, false);
        if cfg!(debug_assertions) {
            for values in state {
                let unknown = values
                    .iter_mut()
                    .zip(&self.known)
                    .filter(|(_, known)| !**known);
                unknown.for_each(|(value, _)| *value = DVec3::NAN);
            }
        } else if was_whole {
            for values in state {
                values.keep(self.runs_of_subscriptions());
            }
        }
        was_whole
    }
}

/// Pairs of patches that meet in a substep.
#[derive(Debug, Default)]
pub(crate) struct Meetings(Vec<[u32; 2]>);

#[cfg(test)]
impl Meetings {
    /// These pairs.
    pub(crate) fn of(pairs: Vec<[u32; 2]>) -> Self {
        Self(pairs)
    }
}

impl Subscriptions {
    /// The pairs of patches that meet of which one is read together with a vertex that this rank
    /// owns.
    pub(crate) fn meetings(&self, snapshot: &Snapshot<'_>, self_collision: bool) -> Meetings {
        let mut pairs = Vec::new();
        if self_collision {
            for of in self.around.chunk_by(|one, next| one + 1 == *next) {
                let range = of[0] as usize..of[of.len() - 1] as usize + 1;
                snapshot.meeting_patches(&range, |low, high| {
                    pairs.push([low as u32, high as u32]);
                });
            }
        }
        Meetings(pairs)
    }
}
