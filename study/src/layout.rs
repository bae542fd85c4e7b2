//! Who owns, computes and sends what, on a number of ranks: by the same rules as in a run.

use std::collections::BTreeMap;
use std::ops::Range;

use thiserror::Error;
use weft_partition::{Ownership, PatchTree, TreeSum, even_shares};

use crate::forecast::{Part, Placement};
use crate::prices::Prices;
use crate::record::{Against, Border, Column, Header, Step, Task, Tile};

/// Bytes of the volumes around a patch.
pub(crate) const ROOT_BYTES: u64 = 80;
/// Bytes of the firmness of a tile.
const FIRMNESS_BYTES: u64 = 85;
/// Bytes of the cells beside a tile that its firmness needs: 13 numbers for each of those along a side, on four levels, or in a corner.
const BESIDE_BYTES: [u64; 3] = [15 * 52, 15 * 52, 4 * 52];
/// Most ranks that share the firmness of tiles. Every rank takes all of it, a third of a byte for each vertex of the cloth, 1.3 ns of
/// myrinet-2000. Making it takes some 40 ns for each vertex, and without sharing a rank makes its own part of the cloth and
/// about as much again, or twice as much, around it: from some 60 ranks on that is less than taking all.
pub const FIRMNESS_SHARED_UP_TO: usize = 64;

/// A header's patches on a number of ranks.
#[derive(Clone, Debug)]
pub struct Layout {
    ownership: Ownership,
    /// Of each rank.
    pub ranks: Vec<RankShare>,
    /// What the solve exchanges in an iteration: vertices, for each pair of sender and receiver.
    pub halo: Vec<(u32, u32, u64)>,
    /// What making firmness exchanges: bytes, for each pair of sender and receiver.
    pub cells: Vec<(u32, u32, u64)>,
    targets_of_patch: u64,
}

/// What is a rank's.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RankShare {
    /// Vertices.
    pub vertices: u64,
    /// Work of its vertices in the solve.
    pub weight: u64,
    /// Top-level tests that it looks at.
    pub targets: u64,
    /// Partial sums that it sends in a reduction.
    pub partials: u64,
    /// Unknowns of the coarse level of the solve.
    pub aggregates: u64,
    /// The share of a solve with the coarse matrix that it does.
    pub coarse: f64,
    /// Bytes of the firmness that it makes for all.
    pub firmness_bytes: u64,
    /// The firmness that it makes for all.
    pub firmness: FirmnessWork,
}

/// What some tiles' firmness takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FirmnessWork {
    /// Triangles; one that touches two tiles counts twice.
    pub triangles: u64,
    /// Tiles.
    pub tiles: u64,
}

impl FirmnessWork {
    /// That of tiles with so many triangles each.
    #[must_use]
    pub fn of(triangles: &[u32]) -> Self {
        Self {
            triangles: triangles.iter().map(|&count| u64::from(count)).sum(),
            tiles: triangles.len() as u64,
        }
    }

    /// That of all tiles of a record.
    #[must_use]
    pub fn of_all(tiles: &[Tile]) -> Self {
        Self::of(&tiles.iter().map(|tile| tile.triangles).collect::<Vec<_>>())
    }

    /// Of both parts, in ns: gradients, then, with cells of tiles beside these, firmness.
    #[must_use]
    pub fn parts(&self, prices: &Prices) -> [f64; 2] {
        [
            prices.gradient * self.triangles as f64,
            prices.firmness * self.tiles as f64,
        ]
    }

    /// In ns.
    #[must_use]
    pub fn cost(&self, prices: &Prices) -> f64 {
        self.parts(prices).iter().sum()
    }
}

/// Cells that a rank needs to make firmness and another has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beside {
    /// The rank that has them.
    pub from: usize,
    /// The rank that needs them.
    pub to: usize,
    /// The tile whose firmness it makes.
    pub tile: usize,
    /// Which of the tiles beside that one they are of.
    pub which: usize,
}

/// The cells that ranks send each other, by receiver and tile, from the tiles beside each and [`firmness_shares`].
pub fn cells_sent<'a>(
    beside: impl Fn(usize) -> &'a [u32],
    shares: &[Range<usize>],
) -> impl Iterator<Item = Beside> {
    let owner = |tile: u32| shares.partition_point(|share| share.end <= tile as usize);
    let tiles = (0..)
        .zip(shares)
        .flat_map(|(to, share)| share.clone().map(move |tile| (to, tile)));
    tiles.flat_map(move |(to, tile)| {
        let others = beside(tile).iter().enumerate();
        let needed = others.map(move |(which, &other)| Beside {
            from: owner(other),
            to,
            tile,
            which,
        });
        needed.filter(|cells| cells.from != cells.to)
    })
}

/// The share of a solve with the coarse matrix that a rank does: all of the way forth, and of the way back what leads to
/// unknowns of its own.
fn coarse_share(columns: &[Column], own: &Range<usize>) -> f64 {
    let mut needed = vec![false; columns.len()];
    let (mut forth, mut back) = (0, 0);
    for (at, column) in columns.iter().enumerate() {
        let blocks = 1 + column.rows.len();
        forth += blocks;
        if needed[at] || own.contains(&(column.patch as usize)) {
            back += blocks;
            for &row in &column.rows {
                needed[row as usize] = true;
            }
        }
    }
    if forth == 0 {
        return 1.0;
    }
    (forth + back) as f64 / (2 * forth) as f64
}

/// The tiles that each rank makes for all, from how many triangles each has; none if every rank makes what it needs.
#[must_use]
pub fn firmness_shares(triangles: &[u32], ranks: usize) -> Vec<Range<usize>> {
    /// What a tile costs besides its triangles, as so many of these.
    const TILE: u32 = 110;
    let shared = ranks <= FIRMNESS_SHARED_UP_TO;
    let costs = triangles
        .iter()
        .map(|&triangles| triangles.saturating_add(TILE));
    let costs: Vec<u32> = if shared { costs.collect() } else { Vec::new() };
    even_shares(&costs, ranks)
}

/// Prices on so many ranks: where firmness is not shared, each pays for that of the patches that it tests, by
/// their vertices, of which there are so many `around` all patches.
#[must_use]
pub fn prices_on(tiles: &[Tile], around: u64, prices: &Prices, ranks: usize) -> Prices {
    let mut prices = *prices;
    if ranks > FIRMNESS_SHARED_UP_TO && around > 0 {
        let all = FirmnessWork::of_all(tiles);
        prices.touched += all.cost(&prices) / around as f64;
    }
    prices
}

/// Why there is no layout.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum LayoutError {
    /// No ranks.
    #[error("at least one rank is needed")]
    NoRanks,
    /// A rank would own nothing.
    #[error(
        "{ranks} ranks, but the record has {patches} patches, and a rank owns at least one; study up to {patches} \
         ranks, or record the scene with more patches (--set partition.patches={more})"
    )]
    TooManyRanks {
        /// Ranks asked for.
        ranks: usize,
        /// Patches of the record.
        patches: usize,
        /// Patches that would do.
        more: usize,
    },
    /// The patches make no tree.
    #[error("the patches of the record make no tree")]
    NoTree,
}

impl LayoutError {
    /// Whether so many patches are too few for so many ranks, each of which owns at least one.
    ///
    /// # Errors
    /// They are, or there are no ranks.
    pub fn check(patches: usize, ranks: usize) -> Result<(), Self> {
        if ranks == 0 {
            return Err(Self::NoRanks);
        }
        if ranks > patches {
            return Err(Self::TooManyRanks {
                ranks,
                patches,
                more: ranks.next_power_of_two(),
            });
        }
        Ok(())
    }
}

impl Layout {
    /// The patches of a record on so many ranks.
    ///
    /// # Errors
    /// More ranks than patches, or none.
    pub fn new(header: &Header, ranks: usize) -> Result<Self, LayoutError> {
        let sizes: Vec<u32> = header.patches.iter().map(|patch| patch.vertices).collect();
        let weights = header.patches.iter().map(|patch| patch.weight).collect();
        let vertices = u32::try_from(header.vertices()).map_err(|_| LayoutError::NoTree)?;
        let tree = PatchTree::from_numbering((0..vertices).collect(), &sizes, weights)
            .map_err(|_| LayoutError::NoTree)?;
        LayoutError::check(sizes.len(), ranks)?;
        let ownership = Ownership::new(&tree, ranks).map_err(|_| LayoutError::NoTree)?;
        let sums = TreeSum::new(&ownership);
        let patches = header.patches.len() as u64;
        // Of the tests of a patch with others, it looks at every second.
        let pairs = if header.self_collision {
            1 + (patches - 1) / 2
        } else {
            0
        };
        let targets_of_patch = pairs + u64::from(header.bodies);
        let triangles: Vec<u32> = header.tiles.iter().map(|tile| tile.triangles).collect();
        let made = firmness_shares(&triangles, ranks);
        let shares = (0..ranks).map(|rank| {
            let own = &header.patches[ownership.patches(rank)];
            let count = own.len() as u64;
            RankShare {
                vertices: own.iter().map(|p| u64::from(p.vertices)).sum(),
                weight: own.iter().map(|p| p.weight).sum(),
                targets: count * targets_of_patch,
                partials: sums.subtrees(rank).len() as u64,
                aggregates: u64::from(header.aggregates) * count / patches,
                coarse: coarse_share(&header.coarse, &ownership.patches(rank)),
                firmness_bytes: FIRMNESS_BYTES * made[rank].len() as u64,
                firmness: FirmnessWork::of(&triangles[made[rank].clone()]),
            }
        });
        let ranks = shares.collect();
        let halo = exchanged(&header.borders, &ownership);
        let mut cells = BTreeMap::new();
        for beside in cells_sent(|tile| &header.tiles[tile].beside, &made) {
            let pair = (beside.from as u32, beside.to as u32);
            // A record may say what no run does.
            *cells.entry(pair).or_default() += BESIDE_BYTES.get(beside.which).unwrap_or(&0);
        }
        Ok(Self {
            ownership,
            ranks,
            halo,
            cells: listed(cells),
            targets_of_patch,
        })
    }

    /// Who owns which patch.
    #[must_use]
    pub fn ownership(&self) -> &Ownership {
        &self.ownership
    }

    /// The rank that forks a task.
    #[must_use]
    pub fn home(&self, task: &Task) -> usize {
        self.home_of(task.patch, task.against)
    }

    fn home_of(&self, patch: u32, against: Against) -> usize {
        let patch = patch as usize;
        match against {
            Against::Patch(other) => self.ownership.rank_of_pair(patch, other as usize),
            Against::Itself | Against::Body(_) => self.ownership.rank_of_patch(patch),
        }
    }

    /// The tasks that each rank forks, in order, if owners do.
    #[must_use]
    pub fn forks(&self, step: &Step) -> Vec<Vec<(u32, Part)>> {
        let mut forks = vec![Vec::new(); self.ranks.len()];
        for (number, task) in (0..).zip(&step.tasks) {
            forks[self.home(task)].push((number, Part::WHOLE));
        }
        forks
    }

    /// The same if a forecast decides.
    #[must_use]
    pub fn placed(&self, step: &Step, placement: &Placement) -> Vec<Vec<(u32, Part)>> {
        let mut forks = vec![Vec::new(); self.ranks.len()];
        for (number, task) in (0..).zip(&step.tasks) {
            for rank in placement.ranks(task.patch, task.against) {
                let part = placement.part(rank, task.patch, task.against);
                forks[rank].extend(part.map(|part| (number, part)));
            }
        }
        forks
    }

    /// The pairs of patches of which each rank finds that nothing is to be tested, though their roots meet; where a forecast decides, by that.
    #[must_use]
    pub fn missed(&self, step: &Step, placement: Option<&Placement>) -> Vec<Vec<(usize, usize)>> {
        let mut missed = vec![Vec::new(); self.ranks.len()];
        for &(p, q) in &step.missed {
            let pair = (p as usize, q as usize);
            match placement {
                Some(placement) => {
                    let against = Against::Patch(q);
                    let does = |rank: &usize| placement.part(*rank, p, against).is_some();
                    let ranks = placement.ranks(p, against).filter(does);
                    ranks.for_each(|rank| missed[rank].push(pair));
                }
                None => missed[self.home_of(p, Against::Patch(q))].push(pair),
            }
        }
        missed
    }

    /// How many top-level tests somebody looks at who has so many patches.
    #[must_use]
    pub fn targets(&self, patches: u64) -> u64 {
        patches * self.targets_of_patch
    }

    /// How many of a step's contacts each rank ends up with.
    #[must_use]
    pub fn contacts(&self, step: &Step) -> Vec<u64> {
        let mut held = vec![0; self.ranks.len()];
        for task in &step.tasks {
            self.for_owners(task, task.contacts(), |owner, contacts| {
                held[owner] += contacts
            });
        }
        held
    }

    /// Calls with each rank that some of a task's contacts concern, and how many do; of those of a part of a task, as evenly as can be.
    pub fn for_owners(&self, task: &Task, contacts: u64, mut owned: impl FnMut(usize, u64)) {
        let all = task.contacts().max(1);
        let mut before = 0;
        for route in &task.routes {
            let after = before + u64::from(route.contacts);
            let share = contacts * after / all - contacts * before / all;
            before = after;
            let owner = |&patch: &u32| self.ownership.rank_of_patch(patch as usize);
            // Ascending patches are of ascending ranks.
            let mut owners: Vec<usize> = route.patches.iter().map(owner).collect();
            owners.dedup();
            for owner in owners.into_iter().filter(|_| share > 0) {
                owned(owner, share);
            }
        }
    }

    /// Vertices that ranks send each other in a round of impulses.
    #[must_use]
    pub fn rows(&self, step: &Step) -> Vec<(u32, u32, u64)> {
        exchanged(&step.rows, &self.ownership)
    }
}

/// Vertices that cross borders, for each pair of sender and receiver, ascending.
fn exchanged(borders: &[Border], ownership: &Ownership) -> Vec<(u32, u32, u64)> {
    let mut sent = BTreeMap::new();
    for border in borders {
        let owner = ownership.rank_of_patch(border.owner as usize);
        let reader = |&patch: &u32| ownership.rank_of_patch(patch as usize);
        let mut readers: Vec<usize> = border.readers.iter().map(reader).collect();
        readers.dedup();
        for reader in readers.into_iter().filter(|&reader| reader != owner) {
            *sent.entry((owner as u32, reader as u32)).or_default() += u64::from(border.vertices);
        }
    }
    listed(sent)
}

/// Sender, receiver and how much, ascending.
fn listed(sent: BTreeMap<(u32, u32), u64>) -> Vec<(u32, u32, u64)> {
    let triples = sent.into_iter();
    triples
        .map(|((from, to), count)| (from, to, count))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_come_from_whoever_makes_the_tile_beside() {
        // Two by two tiles and one by itself; a rank without any.
        let beside: [&[u32]; 5] = [&[1, 2, 3], &[3], &[3], &[], &[]];
        let shares = [0..1, 1..1, 1..3, 3..5];
        let sent: Vec<[usize; 4]> = cells_sent(|tile| beside[tile], &shares)
            .map(|cells| [cells.from, cells.to, cells.tile, cells.which])
            .collect();
        let expected = [
            [2, 0, 0, 0],
            [2, 0, 0, 1],
            [3, 0, 0, 2],
            [3, 2, 1, 0],
            [3, 2, 2, 0],
        ];
        assert_eq!(sent, expected);
        // Nobody sends what nobody makes for others.
        let unshared = firmness_shares(&[7; 5], FIRMNESS_SHARED_UP_TO + 1);
        assert_eq!(cells_sent(|tile| beside[tile], &unshared).count(), 0);
    }
}
