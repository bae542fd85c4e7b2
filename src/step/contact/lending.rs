//! The state that stolen tests read, where ranks know only some vertices.
//!
//! Owners publish the positions and velocities of what tests of their patches read, as blocks of
//! the runtime: a task that is stolen needs the blocks of its patches, and waits on the thief until
//! they are there. The thief puts them into arrays beside those of its own state, and makes volumes
//! from them, with the bits that the patches' owners would make. A patch is lent once in a search,
//! however many of its tests are stolen.
//!
//! Certification later needs the ends of the vertices of a pair, and the thief is not sent these.
//! So the pairs that a stolen test looked at go back to the owner of its first patch, which knows
//! both.

use std::sync::{Mutex, PoisonError};

use glam::DVec3;
use weft_runtime::comm::Rank;
use weft_runtime::{BlockName, Bytes};

use super::detection::Volume;
use crate::collide::{Extent, Geometry, Snapshot, Target, Volumes};
use crate::heap_bytes::counts_heap;
use crate::sparse::Sparse;
use crate::step::certify::LetThrough;
use crate::step::domain::Domain;
use crate::step::exchange::subscriptions::Subscriptions;

/// A patch whose state a test reads, and the rank that owns it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) struct Read {
    pub(super) patch: u32,
    pub(super) owner: u32,
}

impl Read {
    /// The name of the block with the patch's state.
    pub(super) fn block(self) -> BlockName {
        BlockName {
            home: Rank(self.owner),
            id: u64::from(self.patch),
            version: VERSION,
        }
    }
}

/// The version of all blocks: they last as long as one search.
pub(super) const VERSION: u32 = 0;

/// The bytes of a vertex in a block: its number, its position and its velocity.
const EACH: usize = size_of::<u32>() + 2 * size_of::<DVec3>();

/// The state that was lent to a rank in a search, in arrays that it keeps.
#[derive(Debug, Default)]
pub(crate) struct Lent {
    x: Sparse<DVec3>,
    v: Sparse<DVec3>,
    /// Whether each vertex was lent.
    known: Vec<bool>,
    /// The patches that were lent, in no order that matters.
    patches: Vec<u32>,
    volumes: Volumes,
    /// Whether anything was lent in the search.
    begun: bool,
}

counts_heap!(Lent: x, v, known, patches, volumes; without begun);

impl Lent {
    /// Ends a search.
    pub(super) fn end(&mut self) {
        if std::mem::take(&mut self.begun) {
            self.x.keep(std::iter::empty());
            self.v.keep(std::iter::empty());
        }
    }
}

/// The state that ranks lend each other in a search.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lending<'a> {
    pub(super) subscriptions: &'a Subscriptions,
    pub(super) domain: &'a Domain,
    pub(super) geometry: &'a Geometry<'a>,
    /// Positions and foreseen velocities.
    pub(super) state: [&'a [DVec3]; 2],
    /// The volumes around all patches.
    pub(super) roots: &'a [Volume],
    /// The box around the positions of all vertices.
    pub(super) extent: Extent,
    pub(super) through: LetThrough<'a>,
    /// The time at which the search begins, and how long it looks ahead, in s.
    pub(super) times: [f64; 2],
    pub(super) room: &'a Mutex<Lent>,
}

impl Lending<'_> {
    /// The blocks of this rank's patches, each with its number.
    pub(super) fn blocks(&self) -> impl Iterator<Item = (u64, Vec<u8>)> + '_ {
        let [x, v] = self.state;
        self.domain.patches().map(move |patch| {
            let read = self.subscriptions.read_by(patch as u32);
            let mut bytes = Vec::with_capacity(read.len() * EACH);
            for &vertex in read {
                bytes.extend_from_slice(&vertex.to_ne_bytes());
                let at = vertex as usize;
                bytes.extend_from_slice(bytemuck::bytes_of(&[x[at], v[at]]));
            }
            (patch as u64, bytes)
        })
    }

    /// The patches whose state a test reads. The first of them is the first of the test.
    pub(super) fn reads(&self, target: Target) -> Vec<Read> {
        let (first, second) = match target {
            Target::Patch(p) | Target::PatchBody(p, _) => (p, None),
            Target::Patches(p, q) => (p, Some(q)),
        };
        let near = match target {
            Target::Patch(p) => self.subscriptions.near_at_rest(p),
            Target::Patches(..) | Target::PatchBody(..) => &[],
        };
        let patches = [first]
            .into_iter()
            .chain(second)
            .chain(near.iter().copied());
        let owner = |patch: u32| self.domain.ownership.rank_of_patch(patch as usize) as u32;
        patches
            .map(|patch| Read {
                patch,
                owner: owner(patch),
            })
            .collect()
    }

    /// Runs something with a snapshot that knows the vertices of these blocks, one for each patch.
    ///
    /// # Panics
    /// A block is not one that the owner of the patch would publish.
    pub(super) fn with<T>(
        &self,
        blocks: &[(u32, Bytes)],
        run: impl FnOnce(&Snapshot<'_>) -> T,
    ) -> T {
        let mut room = self.room.lock().unwrap_or_else(PoisonError::into_inner);
        let vertices = self.state[0].len();
        let lent = &mut *room;
        let begins = !std::mem::replace(&mut lent.begun, true);
        if begins {
            if lent.x.len() != vertices {
                lent.x = Sparse::zeros(vertices);
                lent.v = Sparse::zeros(vertices);
            }
            lent.known.clear();
            lent.known.resize(vertices, false);
            lent.patches.clear();
        }
        for (patch, bytes) in blocks {
            if !lent.patches.contains(patch) {
                lent.take(bytes);
                lent.patches.push(*patch);
            }
        }
        let Lent {
            x,
            v,
            known,
            volumes,
            ..
        } = lent;
        let [time, dt] = self.times;
        if begins {
            // This forgets the volumes of the search before.
            let snapshot = Snapshot::new(self.geometry, volumes, x, v, time, dt);
            let all: Vec<usize> = (0..self.roots.len()).collect();
            snapshot.take_roots(&all, self.roots);
        }
        let snapshot = Snapshot::over(self.geometry, volumes, [x, v], [time, dt])
            .suspending(self.through.suspended)
            .keeping(self.through.kept)
            .knowing(Some(known))
            .by_subtrees()
            .within(self.extent);
        run(&snapshot)
    }
}

impl Lent {
    fn take(&mut self, bytes: &[u8]) {
        assert!(bytes.len().is_multiple_of(EACH), "a block of another kind");
        for bytes in bytes.chunks_exact(EACH) {
            let (vertex, values) = bytes.split_at(size_of::<u32>());
            let vertex = bytemuck::pod_read_unaligned::<u32>(vertex) as usize;
            assert!(vertex < self.x.len(), "a vertex that does not exist");
            let [x, v]: [DVec3; 2] = bytemuck::pod_read_unaligned(values);
            (self.x[vertex], self.v[vertex]) = (x, v);
            self.known[vertex] = true;
        }
    }
}
