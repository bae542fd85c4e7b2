//! The layout of a recorded run on a number of ranks: which rank owns, computes and sends what, by
//! the same rules as in a run.

use std::collections::BTreeMap;

use thiserror::Error;
use weft_balance::assignment::Assignment;
use weft_balance::cost::Against;
use weft_balance::part::Part;
use weft_balance::separation::{SeparationWork, cells_sent, separation_shares};
use weft_partition::{Ownership, PatchTree, TreeSum};

use crate::coarse::{CoarseShare, coarse_shares};
use crate::record::{Border, Header, Step, Task};

/// Bytes of the volumes around a patch.
pub(crate) const ROOT_BYTES: u64 = 80;
/// Bytes of the separation bound of a tile.
const SEPARATION_BYTES: u64 = 85;
/// Bytes of the cells beside a tile that its separation bound needs: 13 numbers for each cell along
/// a side, on four levels, or in a corner.
const BESIDE_BYTES: [u64; 3] = [15 * 52, 15 * 52, 4 * 52];
/// The layout of a record's patches on a number of ranks.
#[derive(Clone, Debug)]
pub struct Layout {
    ownership: Ownership,
    /// The share of each rank.
    pub ranks: Vec<RankShare>,
    /// The vertices that the solve exchanges in an iteration, for each pair of sender and receiver.
    pub halo: Vec<(u32, u32, u64)>,
    /// The bytes that making separation bounds exchanges, for each pair of sender and receiver.
    pub cells: Vec<(u32, u32, u64)>,
    targets_of_patch: u64,
}

/// The share of one rank.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RankShare {
    /// Vertices that it owns.
    pub vertices: u64,
    /// Work of its vertices in the solve.
    pub weight: u64,
    /// Top-level tests that it looks at.
    pub targets: u64,
    /// Partial sums that it sends in a reduction.
    pub partials: u64,
    /// Its share of the coarse level of the solve.
    pub coarse: CoarseShare,
    /// Bytes of the separation bounds that it makes for all.
    pub separation_bytes: u64,
    /// The work of these separation bounds.
    pub separation: SeparationWork,
}

/// The reason why there is no layout.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum LayoutError {
    /// The number of ranks is 0.
    #[error("at least one rank is needed")]
    NoRanks,
    /// A rank would own nothing.
    #[error(
        "{ranks} ranks, but the record has {patches} patches, and a rank owns at least one; study up to {patches} \
         ranks, or record the scene with more patches (--set partition.patches={more})"
    )]
    TooManyRanks {
        /// Ranks that were asked for.
        ranks: usize,
        /// Patches of the record.
        patches: usize,
        /// A number of patches that is enough.
        more: usize,
    },
    /// The patches make no tree.
    #[error("the patches of the record make no tree")]
    NoTree,
}

impl LayoutError {
    /// Checks that each of this many ranks can own one of this many patches.
    ///
    /// # Errors
    /// There are too few patches, or no ranks.
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
    /// Lays out the patches of a record on this many ranks.
    ///
    /// # Errors
    /// There are more ranks than patches, or none.
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
        // Each pair of patches is looked at with one of the two.
        let pairs = if header.self_collision {
            1 + (patches - 1) / 2
        } else {
            0
        };
        let targets_of_patch = pairs + u64::from(header.bodies);
        let triangles: Vec<u32> = header.tiles.iter().map(|tile| tile.triangles).collect();
        let made = separation_shares(&triangles, ranks);
        let coarse = coarse_shares(&header.coarse, &ownership);
        let shares = (0..ranks).map(|rank| {
            let own = &header.patches[ownership.patches(rank)];
            let count = own.len() as u64;
            RankShare {
                vertices: own.iter().map(|p| u64::from(p.vertices)).sum(),
                weight: own.iter().map(|p| p.weight).sum(),
                targets: count * targets_of_patch,
                partials: sums.subtrees(rank).len() as u64,
                coarse: coarse[rank],
                separation_bytes: SEPARATION_BYTES * made[rank].len() as u64,
                separation: SeparationWork::of(&triangles[made[rank].clone()]),
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

    /// The owner of each patch.
    #[must_use]
    pub fn ownership(&self) -> &Ownership {
        &self.ownership
    }

    /// The rank that forks a task if owners do.
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

    /// The tasks, or parts of tasks, that each rank forks under an assignment, in order.
    #[must_use]
    pub fn assigned(&self, step: &Step, assignment: &Assignment) -> Vec<Vec<(u32, Part)>> {
        let mut forks = vec![Vec::new(); self.ranks.len()];
        for (number, task) in (0..).zip(&step.tasks) {
            for rank in assignment.ranks(task.patch, task.against) {
                let part = assignment.part(rank, task.patch, task.against);
                forks[rank].extend(part.map(|part| (number, part)));
            }
        }
        forks
    }

    /// The pairs of patches whose roots meet and of which nothing is to be tested, by the rank that
    /// finds that out: under an assignment, if there is one.
    #[must_use]
    pub fn missed(&self, step: &Step, assignment: Option<&Assignment>) -> Vec<Vec<(usize, usize)>> {
        let mut missed = vec![Vec::new(); self.ranks.len()];
        for &(p, q) in &step.missed {
            let pair = (p as usize, q as usize);
            match assignment {
                Some(assignment) => {
                    let against = Against::Patch(q);
                    let does = |rank: &usize| assignment.part(*rank, p, against).is_some();
                    let ranks = assignment.ranks(p, against).filter(does);
                    ranks.for_each(|rank| missed[rank].push(pair));
                }
                None => missed[self.home_of(p, Against::Patch(q))].push(pair),
            }
        }
        missed
    }

    /// The number of top-level tests that a rank with this many patches looks at.
    #[must_use]
    pub fn targets(&self, patches: u64) -> u64 {
        patches * self.targets_of_patch
    }

    /// The number of a step's contacts that each rank ends up with.
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

    /// Calls `owned` with each rank to which some of these contacts of a task belong, and with
    /// their number. The contacts of a part of a task are divided as evenly as possible.
    pub(crate) fn for_owners(&self, task: &Task, contacts: u64, mut owned: impl FnMut(usize, u64)) {
        let all = task.contacts().max(1);
        let mut before = 0;
        for route in &task.routes {
            let after = before + u64::from(route.contacts);
            let share = contacts * after / all - contacts * before / all;
            before = after;
            let owner = |&patch: &u32| self.ownership.rank_of_patch(patch as usize);
            // Ascending patches belong to ascending ranks.
            let mut owners: Vec<usize> = route.patches.iter().map(owner).collect();
            owners.dedup();
            for owner in owners.into_iter().filter(|_| share > 0) {
                owned(owner, share);
            }
        }
    }

    /// The vertices that ranks send each other in a round of impulses.
    #[must_use]
    pub fn rows(&self, step: &Step) -> Vec<(u32, u32, u64)> {
        exchanged(&step.rows, &self.ownership)
    }
}

/// The vertices that cross borders, for each pair of sender and receiver, ascending.
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

/// The pairs of sender and receiver with their amounts, ascending.
fn listed(sent: BTreeMap<(u32, u32), u64>) -> Vec<(u32, u32, u64)> {
    let triples = sent.into_iter();
    triples
        .map(|((from, to), count)| (from, to, count))
        .collect()
}
