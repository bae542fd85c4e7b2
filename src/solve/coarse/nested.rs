//! The factor of the coarse matrix, spread over the ranks along the patch tree, and solves with it.
//!
//! Each node of the tree has a small matrix ([`super::dissection`]). A patch fills it with the rows
//! of its aggregates, any other node with the sums of what its two children kept: their Schur
//! complements, left plus right. A rank does the nodes of its own subtrees, from the leaves up.
//! The Schur complements of the highest of these travel, and every rank does the nodes above, its
//! own copy of them, all alike. This is the multifrontal method \[Liu92\] with subtrees mapped to
//! processors.
//!
//! A solve goes the way of the factor. Each node adds up the right sides that its children left of
//! what they kept, substitutes forward, and leaves the rest. It also adds up the product of right
//! side and solution, left plus right plus its own part. So both are known at the root, from what a
//! rank's highest nodes left, and that is all that travels in an iteration. Substitution backward
//! goes down to the own subtrees only.
//!
//! All sums are functions of the tree. Where numbers travel rounded, each node rounds what it
//! leaves, whether that travels or not. So the bits are those of one rank alone, on any number of
//! them. Rounding what a node leaves is to change the right side a little, of what it kept: product
//! and solution are those of one right side still.
//!
//! * \[Liu92\] Liu: The multifrontal method for sparse matrix solution. SIAM Review 34, 1992.

use std::collections::BTreeSet;
use std::ops::Range;

use weft_partition::{Aggregates, Ownership, Subtree, TreeSum};

use super::cholesky::{Dropped, LowerRows, Workspace, eliminate, place};
use super::dissection::{Dissection, Front, children};
use super::elimination::{Elimination, Target};
use super::six::{Block, Six};
use super::substitution::{Factors, Left, Taken, Takes, Turn};
use crate::heap_bytes::{HeapBytes, counts_heap, owns_no_heap};

/// The nodes that a rank works on.
#[derive(Clone, Debug)]
pub(super) struct Nested {
    /// The nodes of its own subtrees, children first, and then those above all subtrees.
    nodes: Vec<Node>,
    factors: Factors,
    /// The order of the own nodes, and of those above, where highest nodes have their places.
    own: Vec<Turn>,
    top: Vec<Turn>,
    /// The sizes of what travels of each rank.
    kept: Vec<Kept>,
    /// The sums that nodes leave, and those that the highest nodes of all ranks have left.
    left: Left,
    all: Left,
    /// The solutions of what the own highest nodes kept.
    found: Vec<Six>,
    workspace: Workspace,
    /// The work at all nodes, of any rank ([`Dissection::work`]).
    work_of_all: [usize; 2],
}

counts_heap!(Nested:
    nodes, factors, own, top, kept, left, all, found, workspace; without work_of_all
);

/// The number of a rank's highest nodes, of the aggregates that they keep together, and of the
/// numbers of their Schur complements.
#[derive(Clone, Copy, Debug, Default)]
struct Kept {
    nodes: usize,
    aggregates: usize,
    numbers: usize,
}

owns_no_heap!(Kept);

/// A node and the pattern of its matrix.
#[derive(Clone, Debug)]
struct Node {
    elimination: Elimination,
    parts: Parts,
}

counts_heap!(Node: elimination, parts);

/// Where the matrix of a node comes from.
#[derive(Clone, Debug)]
enum Parts {
    /// Rows of the coarse matrix.
    Patch(Box<OfPatch>),
    /// The nodes below.
    Children(Box<[Joint; 2]>),
}

impl HeapBytes for Parts {
    fn heap_bytes(&self) -> usize {
        match self {
            Self::Patch(patch) => patch.heap_bytes(),
            Self::Children(joints) => joints.heap_bytes(),
        }
    }
}

/// The aggregates of a patch among those of the rank, and their steps; the blocks of their rows
/// and the targets of these.
#[derive(Clone, Debug)]
struct OfPatch {
    aggregates: Range<usize>,
    steps: Vec<u32>,
    blocks: Range<usize>,
    targets: Vec<Target>,
}

counts_heap!(OfPatch: steps, targets; without aggregates, blocks);

/// The place of what a node keeps in the matrix above: of its aggregates the steps, and of its
/// blocks below the diagonal the targets.
#[derive(Clone, Debug)]
struct Joint {
    steps: Vec<u32>,
    targets: Vec<Target>,
}

counts_heap!(Joint: steps, targets);

impl Joint {
    fn new(below: &Front, above: &Front) -> Self {
        let Elimination { step_of, .. } = &above.elimination;
        let steps = below.kept().map(|a| step_of[above.local(a) as usize]);
        let local = |(row, column): (u32, u32)| (above.local(row), above.local(column));
        let mut steps: Vec<u32> = steps.collect();
        steps.shrink_to_fit();
        Self {
            steps,
            targets: above.elimination.targets(below.kept_blocks().map(local)),
        }
    }

    /// How many numbers the Schur complement has.
    fn numbers(&self) -> usize {
        numbers(self.steps.len(), self.targets.len())
    }

    /// Adds a Schur complement to the matrix above.
    fn add(&self, mut numbers: &[f64], workspace: &mut Workspace) {
        for &step in &self.steps {
            for (c, column) in workspace.diagonal[step as usize].iter_mut().enumerate() {
                add(&mut column[c..6], take(&mut numbers, 6 - c));
            }
            let limits = take(&mut numbers, 6);
            for (limit, other) in workspace.limits[step as usize].iter_mut().zip(limits) {
                *limit = limit.max(*other);
            }
        }
        for &target in &self.targets {
            let block = take(&mut numbers, 36);
            match target {
                Target::Diagonal(_) => {}
                Target::Below(at) => {
                    let columns = workspace.below[at as usize].iter_mut();
                    for (column, other) in columns.zip(block.chunks_exact(6)) {
                        add(&mut column[..6], other);
                    }
                }
                Target::Transposed(at) => {
                    let block_above = &mut workspace.below[at as usize];
                    for (r, row) in block.chunks_exact(6).enumerate() {
                        for (column, number) in block_above.iter_mut().zip(row) {
                            column[r] += number;
                        }
                    }
                }
            }
        }
    }
}

/// How many numbers a Schur complement has of this many aggregates and blocks below the diagonal:
/// of blocks on the diagonal the lower half, and the limits of their pivots.
fn numbers(aggregates: usize, blocks: usize) -> usize {
    (LOWER + 6) * aggregates + 36 * blocks
}

/// The numbers of the lower half of a block.
const LOWER: usize = 21;

fn take<'a>(numbers: &mut &'a [f64], count: usize) -> &'a [f64] {
    let (first, rest) = numbers.split_at(count);
    *numbers = rest;
    first
}

fn add(sums: &mut [f64], others: &[f64]) {
    for (sum, other) in sums.iter_mut().zip(others) {
        *sum += other;
    }
}

impl Nested {
    /// The nodes of a rank. `lower` are the blocks of the whole coarse matrix.
    pub(super) fn new(
        dissection: &Dissection,
        lower: &LowerRows,
        (aggregates, ownership, rank): (&Aggregates, &Ownership, usize),
    ) -> Self {
        let first = aggregates.owned(ownership, rank).start;
        let first_block = lower.starts[first];
        let highest = TreeSum::new(ownership);
        let (depth, owned) = (ownership.depth(), ownership.patches(rank));
        // Whether there is something of this rank at or below a node.
        let is_wanted = |of: Subtree| {
            let below = of.patches(depth);
            below.start < owned.end && owned.start < below.end
        };
        let (mut nodes, mut factors) = (Vec::new(), Factors::default());
        let mut add = |of: Subtree| {
            let front = dissection.front(of);
            let elimination = front.elimination.clone();
            let parts = if dissection.is_patch(of) {
                let members = aggregates.in_patch(of.index);
                let blocks = lower.starts[members.start]..lower.starts[members.end];
                let local = |(row, column): (u32, u32)| (front.local(row), front.local(column));
                let step = |a: usize| elimination.step_of[front.local(a as u32) as usize];
                let of_patch = OfPatch {
                    targets: elimination.targets(lower.pairs(members.clone()).map(local)),
                    steps: members.clone().map(step).collect(),
                    aggregates: members.start - first..members.end - first,
                    blocks: blocks.start - first_block..blocks.end - first_block,
                };
                let takes = Takes::Patch(of_patch.aggregates.clone());
                factors.push(&elimination, takes, of_patch.steps.iter().copied());
                Parts::Patch(Box::new(of_patch))
            } else {
                let below = children(of);
                let joints = below.map(|below| Joint::new(dissection.front(below), front));
                let counts = [0, 1].map(|k| (joints[k].steps.len(), is_wanted(below[k])));
                let steps = joints.iter().flat_map(|joint| &joint.steps).copied();
                factors.push(&elimination, Takes::Children(counts), steps);
                Parts::Children(Box::new(joints))
            };
            nodes.push(Node { elimination, parts });
            Turn::Node {
                node: nodes.len() - 1,
                is_wanted: is_wanted(of),
            }
        };
        let own = highest.subtrees(rank).iter();
        let own = own.flat_map(|&of| dissection.post_order(of, &|_| false));
        let own = own.map(&mut add).collect();
        let ends = |of: Subtree| {
            let front = dissection.front(of);
            let aggregates = front.kept().count();
            (aggregates, numbers(aggregates, front.kept_blocks().count()))
        };
        let of_rank = |rank: usize| {
            let nodes = highest.subtrees(rank);
            let sums = nodes.iter().map(|&of| ends(of));
            let (aggregates, numbers) = sums.fold((0, 0), |(a, n), (b, m)| (a + b, n + m));
            Kept {
                nodes: nodes.len(),
                aggregates,
                numbers,
            }
        };
        let kept: Vec<Kept> = (0..ownership.ranks()).map(of_rank).collect();
        let taken: BTreeSet<Subtree> = (0..ownership.ranks())
            .flat_map(|rank| highest.subtrees(rank).iter().copied())
            .collect();
        let is_taken = |of: Subtree| taken.contains(&of);
        let mut found = 0;
        let above = |of: Subtree| {
            if !is_taken(of) {
                return add(of);
            }
            let (aggregates, numbers) = ends(of);
            let places = found..found + aggregates;
            Turn::Taken(Taken {
                aggregates,
                numbers,
                found: is_wanted(of).then(|| {
                    found = places.end;
                    places
                }),
            })
        };
        let root = Subtree { level: 0, index: 0 };
        let top = dissection.post_order(root, &is_taken);
        let top = top.into_iter().map(above).collect();
        nodes.shrink_to_fit();
        factors.shrink_to_fit();
        Self {
            nodes,
            factors,
            own,
            top,
            left: Left::default(),
            all: Left {
                sums: vec![[0.0; 6]; kept.iter().map(|kept| kept.aggregates).sum()],
                energies: vec![0.0; kept.iter().map(|kept| kept.nodes).sum()],
            },
            found: vec![[0.0; 6]; kept[rank].aggregates],
            kept,
            workspace: Workspace::default(),
            work_of_all: dissection.work(),
        }
    }

    /// How many numbers of each rank travel when the matrix is factored.
    pub(super) fn factor_counts(&self) -> impl Iterator<Item = usize> {
        self.kept.iter().map(|kept| kept.numbers)
    }

    /// How many bytes of each rank travel in a solve, whose numbers are rounded to f32 if `short`.
    pub(super) fn solve_bytes(&self, short: bool) -> impl Iterator<Item = usize> {
        let size = if short {
            size_of::<f32>()
        } else {
            size_of::<f64>()
        };
        let bytes = move |kept: &Kept| size_of::<f64>() * kept.nodes + 6 * size * kept.aggregates;
        self.kept.iter().map(bytes)
    }

    /// Factors the matrices of the own nodes, without the modes that `dropped` names. `blocks` are
    /// the owned rows of the coarse matrix, and `scales` say for each owned aggregate how large
    /// entries on the diagonal may be. The result is to travel: the Schur complements of the
    /// highest nodes.
    pub(super) fn factor_own(
        &mut self,
        blocks: &[Block],
        scales: &[f64],
        dropped: Dropped,
    ) -> Vec<f64> {
        let mut left = Vec::new();
        let workspace = &mut self.workspace;
        for (at, Node { elimination, parts }) in self.nodes[..self.own.len()].iter().enumerate() {
            match parts {
                Parts::Patch(patch) => {
                    let blocks = &blocks[patch.blocks.clone()];
                    place(elimination, &patch.targets, blocks, workspace);
                    let scales = &scales[patch.aggregates.clone()];
                    for (&step, &scale) in patch.steps.iter().zip(scales) {
                        let block = &workspace.diagonal[step as usize];
                        let entries = std::array::from_fn(|c| block[c][c]);
                        workspace.limits[step as usize] = dropped.limits(&entries, scale);
                    }
                }
                Parts::Children(joints) => take_in(joints, elimination, &mut left, workspace),
            }
            eliminate(elimination, self.factors.of_node(at), workspace);
            leave(elimination, workspace, &mut left);
        }
        left
    }

    /// Factors the matrices of the nodes above, once the Schur complements of all ranks are here.
    pub(super) fn factor_top(&mut self, mut all: &[f64]) {
        let mut left = Vec::new();
        let workspace = &mut self.workspace;
        for turn in &self.top {
            match turn {
                Turn::Taken(taken) => left.extend(take(&mut all, taken.numbers)),
                &Turn::Node { node, .. } => {
                    let Node { elimination, parts } = &self.nodes[node];
                    if let Parts::Children(joints) = parts {
                        take_in(joints, elimination, &mut left, workspace);
                    }
                    eliminate(elimination, self.factors.of_node(node), workspace);
                    leave(elimination, workspace, &mut left);
                }
            }
        }
    }

    /// Substitutes forward at the own nodes, for a right side of the owned aggregates. `bytes`
    /// become what is to travel, rounded to f32 if `short`.
    pub(super) fn forward_own(&mut self, rhs: &[Six], short: bool, bytes: &mut Vec<u8>) {
        let from = (rhs, &Left::default());
        self.factors.forward(&self.own, from, &mut self.left, short);
        bytes.clear();
        bytes.extend_from_slice(bytemuck::cast_slice(&self.left.energies));
        let sums = self.left.sums.as_flattened();
        if short {
            let short = |number: &f64| (*number as f32).to_ne_bytes();
            bytes.extend(sums.iter().flat_map(short));
        } else {
            bytes.extend_from_slice(bytemuck::cast_slice(sums));
        }
    }

    /// Substitutes forward at the nodes above, with what has come from all ranks, and then backward
    /// down to the own subtrees. Writes the solutions of owned aggregates, and answers the product
    /// of right side and solution of all.
    pub(super) fn finish(&mut self, (bytes, short): (&[u8], bool), solution: &mut [Six]) -> f64 {
        self.read(bytes, short);
        let (factors, left, found) = (&mut self.factors, &mut self.left, &mut self.found[..]);
        factors.forward(&self.top, (&[], &self.all), left, short);
        let energy = left.energies.last().copied().unwrap_or_default();
        factors.backward(&self.top, &mut left.sums, (&mut [], found));
        left.sums.extend_from_slice(found);
        factors.backward(&self.own, &mut left.sums, (solution, &mut []));
        energy
    }

    /// Takes in the bytes of all ranks, by rank.
    fn read(&mut self, mut bytes: &[u8], short: bool) {
        let mut sums = self.all.sums.as_flattened_mut();
        let mut energies = &mut self.all.energies[..];
        for kept in &self.kept {
            let (room, rest) = std::mem::take(&mut energies).split_at_mut(kept.nodes);
            energies = rest;
            bytes = read_numbers(bytes, room);
            let (room, rest) = std::mem::take(&mut sums).split_at_mut(6 * kept.aggregates);
            sums = rest;
            if short {
                let (numbers, rest) = bytes.split_at(size_of::<f32>() * room.len());
                for (number, bytes) in room.iter_mut().zip(numbers.as_chunks().0) {
                    *number = f64::from(f32::from_ne_bytes(*bytes));
                }
                bytes = rest;
            } else {
                bytes = read_numbers(bytes, room);
            }
        }
    }

    /// The blocks of the factors of the nodes that this rank works on.
    pub(super) fn block_count(&self) -> usize {
        let nodes = 0..self.nodes.len();
        nodes.map(|node| self.factors.block_count(node)).sum()
    }

    /// The work of factoring and of a solve on this rank, as shares of that on one rank.
    pub(super) fn shares(&self) -> [f64; 2] {
        let (mut products, mut blocks) = (0, 0);
        for turn in self.own.iter().chain(&self.top) {
            if let &Turn::Node { node, is_wanted } = turn {
                products += self.nodes[node].elimination.products();
                blocks += self.factors.block_count(node) * if is_wanted { 2 } else { 1 };
            }
        }
        let [all_products, all_blocks] = self.work_of_all;
        let share = |own: usize, all: usize| own as f64 / all.max(1) as f64;
        [share(products, all_products), share(blocks, 2 * all_blocks)]
    }
}

/// Begins a matrix with the sum of what two nodes have left, which are the last there.
fn take_in(
    joints: &[Joint; 2],
    elimination: &Elimination,
    left: &mut Vec<f64>,
    workspace: &mut Workspace,
) {
    workspace.clear(elimination);
    let [first, second] = joints.each_ref().map(Joint::numbers);
    let start = left.len() - first - second;
    let (of_first, of_second) = left[start..].split_at(first);
    joints[0].add(of_first, workspace);
    joints[1].add(of_second, workspace);
    left.truncate(start);
}

/// Leaves the Schur complement: of each aggregate the lower half of its block on the diagonal and
/// the limits of its pivots, then the blocks below.
fn leave(elimination: &Elimination, workspace: &Workspace, left: &mut Vec<f64>) {
    let steps = elimination.eliminated..elimination.order.len();
    let (diagonal, limits) = (&workspace.diagonal[steps.clone()], &workspace.limits[steps]);
    for (block, limits) in diagonal.iter().zip(limits) {
        for (c, column) in block.iter().enumerate() {
            left.extend_from_slice(&column[c..6]);
        }
        left.extend_from_slice(limits);
    }
    for column in workspace.below[elimination.blocks_eliminated()..].as_flattened() {
        left.extend_from_slice(&column[..6]);
    }
}

fn read_numbers<'a>(bytes: &'a [u8], room: &mut [f64]) -> &'a [u8] {
    let (numbers, rest) = bytes.split_at(size_of_val(room));
    for (number, bytes) in room.iter_mut().zip(numbers.as_chunks().0) {
        *number = f64::from_ne_bytes(*bytes);
    }
    rest
}

#[cfg(test)]
mod tests;
