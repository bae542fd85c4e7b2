//! The coarse level of the solve on a number of ranks: what of its factor each rank makes and
//! reads, and what it sends.
//!
//! The columns of the factor are eliminated along the patch tree. The record has for each the patch
//! of the unknown and the later columns that it changes, which say at which node of the tree it is
//! eliminated: the smallest one that has the unknown, all that is eliminated before on its way, and
//! the later columns of higher patches. A rank does those nodes that are its own as a whole, and
//! every rank does the nodes above.

use std::collections::BTreeSet;
use std::ops::Range;

use weft_partition::{Ownership, TreeSum};

use crate::record::Column;

/// The share of one rank.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CoarseShare {
    /// The part of the work of one rank that it does where the matrix is factored.
    pub factor: f64,
    /// And in a solve: forward at its own nodes and all above, backward on the way to its own.
    pub solve: f64,
    /// The unknowns that its highest nodes leave to those above, whose sums travel in a solve.
    pub sums: u64,
    /// How many numbers travel when the matrix is factored.
    pub numbers: u64,
}

/// A node of the patch tree, by one of its patches and the number of levels above that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Home {
    patch: usize,
    height: u32,
}

impl Home {
    fn patches(self) -> Range<usize> {
        let first = self.patch >> self.height;
        first << self.height..(first + 1) << self.height
    }
}

/// How far above two patches the node is that has both.
fn height(a: usize, b: usize) -> u32 {
    usize::BITS - (a ^ b).leading_zeros()
}

/// The node at which each column is eliminated.
fn homes(columns: &[Column]) -> Vec<Home> {
    let mut homes: Vec<Home> = (columns.iter())
        .map(|column| Home {
            patch: column.patch as usize,
            height: 0,
        })
        .collect();
    for (at, column) in columns.iter().enumerate() {
        let patches = column
            .rows
            .iter()
            .map(|&row| columns[row as usize].patch as usize);
        let own = homes[at].patch;
        let higher = patches.filter(|&patch| patch > own);
        let least = homes[at].height;
        homes[at].height = higher.fold(least, |most, patch| most.max(height(own, patch)));
        // The first column that it changes comes above it, or at the same node.
        if let Some(&next) = column.rows.first() {
            let below = homes[at];
            let next = &mut homes[next as usize];
            let least = below.height.max(height(below.patch, next.patch));
            next.height = next.height.max(least);
        }
    }
    homes
}

/// The shares of all ranks.
pub(crate) fn coarse_shares(columns: &[Column], ownership: &Ownership) -> Vec<CoarseShare> {
    let homes = homes(columns);
    let nodes = TreeSum::new(ownership);
    let products = |column: &Column| {
        let rows = column.rows.len() as f64;
        0.5 * (rows + 1.0) * (rows + 2.0)
    };
    let blocks = |column: &Column| 1.0 + column.rows.len() as f64;
    // The rank that eliminates a column, unless all do.
    let owner = |home: Home| {
        let patches = home.patches();
        let first = ownership.rank_of_patch(patches.start);
        (first == ownership.rank_of_patch(patches.end - 1)).then_some(first)
    };
    let owners: Vec<Option<usize>> = homes.iter().map(|&home| owner(home)).collect();
    let share = |rank: usize| {
        let own = ownership.patches(rank);
        let leads_here = |home: Home| {
            let patches = home.patches();
            patches.start < own.end && own.start < patches.end
        };
        let (mut all, mut factor, mut solve) = ([0.0; 2], 0.0, 0.0);
        for ((column, &home), owner) in columns.iter().zip(&homes).zip(&owners) {
            all = [all[0] + products(column), all[1] + 2.0 * blocks(column)];
            if owner.is_none_or(|owner| owner == rank) {
                factor += products(column);
                solve += blocks(column);
                solve += if leads_here(home) {
                    blocks(column)
                } else {
                    0.0
                };
            }
        }
        let (mut sums, mut numbers) = (0, 0);
        for &node in nodes.subtrees(rank) {
            let [unknowns, blocks] = left(columns, &homes, node.patches(ownership.depth()));
            sums += unknowns;
            numbers += (LOWER + PIVOTS) * unknowns + BLOCK * blocks;
        }
        let part = |own: f64, all: f64| if all > 0.0 { own / all } else { 1.0 };
        CoarseShare {
            factor: part(factor, all[0]),
            solve: part(solve, all[1]),
            sums,
            numbers,
        }
    };
    (0..ownership.ranks()).map(share).collect()
}

/// The unknowns that a node with these patches leaves to the one above, and their blocks behind the
/// diagonal.
fn left(columns: &[Column], homes: &[Home], patches: Range<usize>) -> [u64; 2] {
    let is_inside = |at: usize| {
        let home = homes[at].patches();
        patches.start <= home.start && home.end <= patches.end
    };
    let is_here = |at: usize| patches.contains(&homes[at].patch);
    let (mut unknowns, mut blocks) = (BTreeSet::new(), BTreeSet::new());
    for (at, column) in columns.iter().enumerate() {
        let rows = || column.rows.iter().map(|&row| row as usize);
        if is_inside(at) {
            // The rows of others are among those of the first column that they change.
            if rows().next().is_some_and(|next| !is_inside(next)) {
                unknowns.extend(rows());
                blocks.extend(rows().flat_map(|row| {
                    let behind = rows().filter(move |&other| other > row);
                    behind.map(move |other| (row, other))
                }));
            }
        } else if is_here(at) {
            unknowns.insert(at);
            let others = rows().filter(|&row| is_here(row));
            blocks.extend(others.map(|row| (at, row)));
        }
    }
    [unknowns.len() as u64, blocks.len() as u64]
}

/// Numbers of a block, of the lower half of one on the diagonal, and of what is known of its
/// pivots.
const BLOCK: u64 = 36;
const LOWER: u64 = 21;
const PIVOTS: u64 = 6;

#[cfg(test)]
mod tests {
    use weft_partition::PatchTree;

    use super::*;

    /// A chain of unknowns, one in each patch: each waits for the node that has the next one too.
    #[test]
    fn columns_are_eliminated_where_their_higher_neighbours_are() {
        // By nodes: 0 and 2 with their right siblings, 1 at the root, and patch 3 last of its node.
        let column = |patch, rows: &[u32]| Column {
            patch,
            rows: rows.to_vec(),
        };
        let columns = [
            column(3, &[2]),
            column(0, &[3]),
            column(2, &[3]),
            column(1, &[]),
        ];
        let found: Vec<u32> = homes(&columns).iter().map(|home| home.height).collect();
        assert_eq!(found, [0, 1, 1, 2]);
        let tree = PatchTree::from_numbering((0..4).collect(), &[1; 4], vec![1; 4]).unwrap();
        let shares = |ranks: usize| coarse_shares(&columns, &Ownership::new(&tree, ranks).unwrap());
        let alone = shares(1)[0];
        assert_eq!((alone.factor, alone.solve), (1.0, 1.0));
        assert_eq!((alone.sums, alone.numbers), (0, 0));
        let [left, right] = shares(2)[..] else {
            panic!("two ranks");
        };
        // The one on the left keeps its border, to which the other one's lower neighbour belongs.
        assert_eq!((left.sums, right.sums), (1, 1));
        assert_eq!((left.solve, right.solve), (6.0 / 14.0, 10.0 / 14.0));
    }
}
