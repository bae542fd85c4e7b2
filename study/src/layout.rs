//! Who owns, computes and sends what, on a number of ranks: by the same rules as in a run.

use std::collections::BTreeMap;

use thiserror::Error;
use weft_partition::{Ownership, PartitionError, PatchTree, TreeSum};

use crate::record::{Against, Border, Header, Step, Task};

/// Bytes of the volumes around a patch.
const ROOT_BYTES: u64 = 80;

/// A header's patches on a number of ranks.
#[derive(Clone, Debug)]
pub struct Layout {
    ownership: Ownership,
    /// Of each rank.
    pub ranks: Vec<RankShare>,
    /// What the solve exchanges in an iteration: vertices, for each pair of sender and receiver.
    pub halo: Vec<(u32, u32, u64)>,
}

/// What is a rank's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RankShare {
    /// Vertices.
    pub vertices: u64,
    /// Vertices of the triangles of its patches.
    pub around: u64,
    /// Work of its vertices in the solve.
    pub weight: u64,
    /// Top-level tests that it looks at.
    pub targets: u64,
    /// Partial sums that it sends in a reduction.
    pub partials: u64,
    /// Unknowns of the coarse level of the solve.
    pub aggregates: u64,
    /// Bytes of the volumes around its patches.
    pub roots: u64,
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
        let ownership = Ownership::new(&tree, ranks).map_err(|error| match error {
            PartitionError::NoRanks => LayoutError::NoRanks,
            _ => LayoutError::TooManyRanks {
                ranks,
                patches: sizes.len(),
                more: ranks.next_power_of_two(),
            },
        })?;
        let sums = TreeSum::new(&ownership);
        let patches = header.patches.len() as u64;
        // Of the tests of a patch with others, it looks at every second.
        let pairs = if header.self_collision {
            1 + (patches - 1) / 2
        } else {
            0
        };
        let shares = (0..ranks).map(|rank| {
            let own = &header.patches[ownership.patches(rank)];
            let count = own.len() as u64;
            RankShare {
                vertices: own.iter().map(|p| u64::from(p.vertices)).sum(),
                around: own.iter().map(|p| u64::from(p.around)).sum(),
                weight: own.iter().map(|p| p.weight).sum(),
                targets: count * (pairs + u64::from(header.bodies)),
                partials: sums.subtrees(rank).len() as u64,
                aggregates: u64::from(header.aggregates) * count / patches,
                roots: ROOT_BYTES * count,
            }
        });
        let ranks = shares.collect();
        let halo = exchanged(&header.borders, &ownership);
        Ok(Self {
            ownership,
            ranks,
            halo,
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
        let patch = task.patch as usize;
        match task.against {
            Against::Patch(other) => self.ownership.rank_of_pair(patch, other as usize),
            Against::Itself | Against::Body(_) => self.ownership.rank_of_patch(patch),
        }
    }

    /// The tasks that each rank forks, in order.
    #[must_use]
    pub fn forks(&self, step: &Step) -> Vec<Vec<u32>> {
        let mut forks = vec![Vec::new(); self.ranks.len()];
        for (number, task) in (0..).zip(&step.tasks) {
            forks[self.home(task)].push(number);
        }
        forks
    }

    /// What comes of a step's contacts: who sends how many to whom, and how many each rank ends up with.
    #[must_use]
    pub fn contacts(&self, step: &Step) -> (Vec<(u32, u32, u64)>, Vec<u64>) {
        let mut sent = BTreeMap::new();
        let mut held = vec![0; self.ranks.len()];
        for task in &step.tasks {
            let home = self.home(task);
            for route in &task.routes {
                let owner = |&patch: &u32| self.ownership.rank_of_patch(patch as usize);
                // Ascending patches are of ascending ranks.
                let mut owners: Vec<usize> = route.patches.iter().map(owner).collect();
                owners.dedup();
                for owner in owners {
                    let contacts = u64::from(route.contacts);
                    held[owner] += contacts;
                    if owner != home {
                        *sent.entry((home as u32, owner as u32)).or_default() += contacts;
                    }
                }
            }
        }
        let sent = sent
            .into_iter()
            .map(|((from, to), count)| (from, to, count));
        (sent.collect(), held)
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
    let sent = sent
        .into_iter()
        .map(|((from, to), count)| (from, to, count));
    sent.collect()
}
