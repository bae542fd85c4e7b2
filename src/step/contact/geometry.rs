//! The geometry that the tests of all ranks read, made in parts and shared.
//!
//! Every rank needs the volumes around all patches and the separation bounds of all tiles. It makes
//! those of the patches whose [bound owner](BoundOwners) it is, and of an even share of the tiles,
//! with all its threads. Which rank makes what does not change a bit of them.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use weft_balance::bound_owner::BoundOwners;
use weft_balance::cost_model::{CostModel, Work};
use weft_balance::preparation::EarlyPreparation;
use weft_balance::separation::{SeparationWork, Tile, cells_sent, separation_shares};
use weft_runtime::ScopeError;
use weft_runtime::comm::{Collectives, Comm, CommError, Rank, Tag};

use crate::collide::{Geometry, Kdop18, Snapshot, TileWork};
use crate::team::Team;

pub(crate) const TAG: Tag = Tag(0x38);

/// The tiles, for each other rank, that one of the two makes with cells of the other, and the
/// number of the tile beside it that has the cells.
type Beside = BTreeMap<usize, Vec<(usize, usize)>>;

/// The tiles whose separation bounds tests ask for, in the order in which ranks share them.
pub(crate) fn tiles(geometry: &Geometry<'_>) -> Vec<Tile> {
    let tile = |work: &TileWork| Tile {
        triangles: work.triangles,
        beside: work.beside.clone(),
    };
    used_tiles(geometry).iter().map(tile).collect()
}

fn used_tiles<'a>(geometry: &Geometry<'a>) -> &'a [TileWork] {
    if geometry.self_collision {
        geometry.cloth.tiles()
    } else {
        &[]
    }
}

/// A range of things of one kind, and the function that makes one of them.
type Things<'a> = (Range<usize>, &'a (dyn Fn(usize) + Sync));

/// The arguments of [`share_geometry`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sharing<'a> {
    pub(crate) snapshot: &'a Snapshot<'a>,
    pub(crate) geometry: &'a Geometry<'a>,
    pub(crate) bound_owners: &'a BoundOwners,
    pub(crate) team: &'a Team,
    pub(crate) cost_model: &'a CostModel,
    /// The news of this rank for all others.
    pub(crate) news: &'a [u8],
    /// The patches that this rank prepares while messages are under way.
    pub(crate) early: &'a EarlyPreparation,
}

/// Gives every rank the volumes around all patches, the separation bounds of all tiles, and the
/// news of all ranks. The second result is the time of early preparation. Collective.
///
/// On one rank with one thread, tests make all of this when they ask for it. On one rank with
/// several threads these make it at once, and one of them calls `first`, which does what comes
/// first with the volumes around patches: otherwise one thread would do it alone between two loops.
/// The volumes within a patch's tree are made by the first test that asks for them, because its
/// thread then has them in its cache. On several ranks those of the patches in `early` are made
/// while messages are under way.
///
/// A separation bound needs cells beside a rank's own tiles. The rank that has made them sends
/// them, and while they travel volumes are made. Every rank could also make the separation bounds
/// that it needs, with the same bits, and does so on more ranks than share them with profit
/// ([`weft_balance::separation::SEPARATION_SHARED_UP_TO`]).
pub(crate) fn share_geometry(
    comm: &mut dyn Comm,
    sharing: &Sharing<'_>,
    first: &(dyn Fn() + Sync),
) -> Result<(Vec<Vec<u8>>, Duration), ScopeError> {
    let &Sharing {
        snapshot,
        geometry,
        bound_owners,
        team,
        cost_model,
        news,
        early,
    } = sharing;
    let me = comm.rank().index();
    let seen = bound_owners.patches(me);
    let tiles = used_tiles(geometry);
    let triangles: Vec<u32> = tiles.iter().map(|tile| tile.triangles).collect();
    let shares = separation_shares(&triangles, comm.size());
    let share = shares[me].clone();
    let SeparationWork {
        triangles,
        tiles: count,
    } = SeparationWork::of(&triangles[share.clone()]);
    let gradients = Work::Gradients { triangles };
    let bounds = Work::SeparationBounds { tiles: count };
    let around = (seen.iter()).map(|&patch| geometry.cloth.patch_vertices()[patch].len() as u64);
    let volumes = Work::BoundingVolumes {
        vertices: around.sum(),
    };
    if comm.size() == 1 {
        for work in [gradients, volumes, bounds] {
            cost_model.charge(comm, work);
        }
        if team.threads() > 1 {
            // A rank that is alone owns all patches, in order.
            let boxed = if geometry.self_collision {
                seen.len()
            } else {
                0
            };
            let made = MadeAlone {
                patches: 0..seen.len(),
                boxed: 0..boxed,
                tiles: share,
            };
            make_alone(snapshot, &made, team, first);
        }
        return Ok((Vec::new(), Duration::ZERO));
    }
    let make =
        |comm: &mut dyn Comm, work: Work, all: &Range<usize>, make: &(dyn Fn(usize) + Sync)| {
            cost_model.charge(comm, work);
            share_out(team, &[(all.clone(), make)]);
        };
    make(comm, gradients, &share, &|tile| {
        snapshot.make_gradients(tile..tile + 1)
    });
    let [give, take] = beside(tiles, &shares, me);
    for (&to, cells) in &give {
        let numbers = snapshot.cells_beside(cells.iter().copied());
        comm.send(
            Rank(to as u32),
            TAG,
            bytemuck::cast_slice(&numbers).to_vec(),
        )?;
    }
    make(comm, volumes, &(0..seen.len()), &|at| {
        snapshot.make_root(seen[at]);
    });
    let mut early = Making::new(early, snapshot, team);
    let mut came = BTreeMap::new();
    while came.len() < take.len() {
        // A rank that has nothing left to make waits for a message that is missing.
        let (from, bytes) = match comm.try_recv(TAG)? {
            Some(message) => (message.from.index(), message.bytes),
            None if early.make(comm, team.threads()) => continue,
            None => {
                let missing = take.keys().find(|from| !came.contains_key(*from));
                let Some(&from) = missing else { break };
                (from, comm.recv_from(Rank(from as u32), TAG)?)
            }
        };
        if !take.contains_key(&from) || came.insert(from, bytes).is_some() {
            let what = "cells beside tiles that nobody has asked for".to_owned();
            let from = Rank(from as u32);
            return Err(CommError::Malformed { from, what }.into());
        }
    }
    for (from, bytes) in &came {
        let cells = &take[from];
        let (numbers, rest) = bytes.as_chunks();
        let numbers: Vec<f32> = numbers.iter().copied().map(f32::from_ne_bytes).collect();
        let all = cells.iter().copied();
        if !rest.is_empty() || !snapshot.take_cells_beside(all, &numbers) {
            let what = format!(
                "{} bytes for cells beside {} tiles",
                bytes.len(),
                cells.len()
            );
            let from = Rank(*from as u32);
            return Err(CommError::Malformed { from, what }.into());
        }
    }
    make(comm, bounds, &share, &|tile| {
        snapshot.make_separation_bounds(tile..tile + 1)
    });
    let mut bytes = bytemuck::cast_slice(snapshot.roots(seen).as_flattened()).to_vec();
    bytes.extend(snapshot.separation_bounds_of(share));
    bytes.extend(news);
    comm.begin_allgather(&bytes)?;
    early.make(comm, usize::MAX);
    let mut told_by_all = Vec::new();
    for (rank, bytes) in comm.finish_allgather(bytes)?.iter().enumerate() {
        let theirs = bound_owners.patches(rank);
        let malformed = |what: String| CommError::Malformed {
            from: Rank(rank as u32),
            what,
        };
        let (roots, bytes) = bytes
            .split_at_checked(theirs.len() * size_of::<[f32; Kdop18::NUMBERS]>())
            .unwrap_or_default();
        let roots: Vec<[f32; Kdop18::NUMBERS]> = roots
            .chunks_exact(size_of::<[f32; Kdop18::NUMBERS]>())
            .map(bytemuck::pod_read_unaligned)
            .collect();
        let (bounds, told) = bytes
            .split_at_checked(snapshot.separation_bound_bytes(shares[rank].clone()))
            .unwrap_or_default();
        if roots.len() != theirs.len()
            || !snapshot.take_separation_bounds(shares[rank].clone(), bounds)
        {
            return Err(malformed(format!(
                "{} bytes for the volumes of {} patches and the separation bounds of {} tiles",
                bytes.len(),
                theirs.len(),
                shares[rank].len()
            ))
            .into());
        }
        snapshot.take_roots(theirs, &roots);
        told_by_all.push(told.to_vec());
    }
    Ok((told_by_all, early.took))
}

/// The preparation of patches while messages are under way.
struct Making<'a> {
    early: &'a EarlyPreparation,
    /// The number of patches that are prepared.
    done: usize,
    snapshot: &'a Snapshot<'a>,
    team: &'a Team,
    took: Duration,
}

impl<'a> Making<'a> {
    fn new(early: &'a EarlyPreparation, snapshot: &'a Snapshot<'a>, team: &'a Team) -> Self {
        Self {
            early,
            done: 0,
            snapshot,
            team,
            took: Duration::ZERO,
        }
    }

    /// Prepares this many more patches, or all that are left. Returns whether there were any.
    fn make(&mut self, comm: &mut dyn Comm, count: usize) -> bool {
        let rest = self.early.patches.len() - self.done;
        if rest == 0 {
            return false;
        }
        let began = comm.now();
        let which = self.done..self.done + count.min(rest);
        self.early.charge(comm, which.clone());
        let (snapshot, now) = (self.snapshot, &self.early.patches[which.clone()]);
        share_out(
            self.team,
            &[(0..now.len(), &|at| snapshot.make_whole(now[at]))],
        );
        self.done = which.end;
        self.took += comm.now().saturating_sub(began);
        true
    }
}

/// The data that an only rank makes for its tests.
struct MadeAlone {
    /// The patches of which it makes the volumes.
    patches: Range<usize>,
    /// The patches of which it makes boxes.
    boxed: Range<usize>,
    /// The tiles of which it makes separation bounds.
    tiles: Range<usize>,
}

/// Makes what all tests read, on the only rank, and calls `first`. No thread waits for the others
/// in between: what is missing is made by the thread that asks for it.
fn make_alone(snapshot: &Snapshot<'_>, made: &MadeAlone, team: &Team, first: &(dyn Fn() + Sync)) {
    share_out(
        team,
        &[
            (made.patches.clone(), &|patch| snapshot.make_root(patch)),
            (made.boxed.clone(), &|patch| snapshot.make_boxes(patch)),
            (made.tiles.clone(), &|tile| {
                snapshot.make_separation_bounds(tile..tile + 1)
            }),
            // The calling thread does this.
            (0..1, &|_| first()),
        ],
    );
}

/// The cells that a rank gives to others, and takes from them, for separation bounds.
fn beside(tiles: &[TileWork], shares: &[Range<usize>], me: usize) -> [Beside; 2] {
    let mut both = [Beside::new(), Beside::new()];
    for cells in cells_sent(|tile| &tiles[tile].beside, shares) {
        for (all, here, other) in [(0, cells.from, cells.to), (1, cells.to, cells.from)] {
            if here == me {
                let of = both[all].entry(other).or_default();
                of.push((cells.tile, cells.which));
            }
        }
    }
    both
}

/// Makes things of several kinds, one kind after the other. Every thread makes its own run of each
/// kind, and then what the others have left of theirs, one by one: threads that ask for the same at
/// once would wait for each other. The calling thread's runs are the last ones, as it takes the
/// last tests first and others take the first. So each finds more of what its tests read in its
/// cache.
fn share_out(team: &Team, kinds: &[Things<'_>]) {
    let threads = team.threads();
    let runs: Vec<Vec<(AtomicUsize, usize)>> = (kinds.iter())
        .map(|(things, _)| {
            let cut = |thread: usize| things.start + things.len() * thread / threads;
            (0..threads)
                .map(|thread| (AtomicUsize::new(cut(thread)), cut(thread + 1)))
                .collect()
        })
        .collect();
    team.run(0..threads, |thread| {
        for (runs, (_, make)) in runs.iter().zip(kinds) {
            for (next, end) in runs[thread..].iter().chain(&runs[..thread]) {
                loop {
                    let thing = next.fetch_add(1, Ordering::Relaxed);
                    if thing >= *end {
                        break;
                    }
                    make(thing);
                }
            }
        }
    });
}
