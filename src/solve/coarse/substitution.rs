//! Substitution with the factors of nodes of the patch tree, one node after the other.
//!
//! Forward, children come before their parents, and each node takes what the last ones have left on
//! a stack; backward it is the other way round. All factors lie one after the other in the order in
//! which they are read, for a solve takes as long as it takes to read them.

use std::ops::Range;

use super::cholesky::Columns;
use super::elimination::Elimination;
use super::padded::{Eight, Short, narrowed, widened};
use super::six::Six;
use crate::heap_bytes::{counts_heap, owns_no_heap};
use crate::simd::{Kernel, Lanes, widest};

/// The factors of nodes.
#[derive(Clone, Debug, Default)]
pub(super) struct Factors {
    nodes: Vec<Node>,
    /// The starts of the blocks of each column, of all nodes; one more than there are columns.
    starts: Vec<u32>,
    /// The rows of the blocks, as steps of their node.
    rows: Vec<u32>,
    inverses: Vec<Short>,
    blocks: Vec<Short>,
    /// The steps in its matrix of what each node takes.
    steps: Vec<u32>,
    /// The results of the way forth, of each column.
    halfway: Vec<Eight>,
    /// The vector of the node at work: what it eliminates, and what it keeps.
    front: Vec<Eight>,
}

counts_heap!(Factors: nodes, starts, rows, inverses, blocks, steps, halfway, front);

/// The places of a node's columns and steps, how much it keeps, and what it takes.
#[derive(Clone, Debug)]
struct Node {
    columns: Range<usize>,
    kept: usize,
    steps: Range<usize>,
    takes: Takes,
}

owns_no_heap!(Node);

/// The sources of a node's right side.
#[derive(Clone, Debug)]
pub(super) enum Takes {
    /// The right side of aggregates of a patch, given by their places among the owned ones.
    Patch(Range<usize>),
    /// The sums that two nodes have left: how many each, and whether their solutions are wanted.
    Children([(usize, bool); 2]),
}

/// A turn in the order of substitution.
#[derive(Clone, Debug)]
pub(super) enum Turn {
    /// The turn of a node, by its number; its solution may not be wanted.
    Node { node: usize, is_wanted: bool },
    /// The place of a node of which another rank, or this one before, has done the work.
    Taken(Taken),
}

owns_no_heap!(Turn);

/// How many aggregates such a node keeps, and how many numbers its Schur complement has. Where
/// the solutions go, if the node is of this rank.
#[derive(Clone, Debug)]
pub(super) struct Taken {
    pub(super) aggregates: usize,
    pub(super) numbers: usize,
    pub(super) found: Option<Range<usize>>,
}

/// The sums of right sides that nodes have left, and no node has taken yet, and the product of
/// right side and solution of each node. On the way back the sums are solutions.
#[derive(Clone, Debug, Default)]
pub(super) struct Left {
    pub(super) sums: Vec<Six>,
    pub(super) energies: Vec<f64>,
}

counts_heap!(Left: sums, energies);

impl Factors {
    /// Adds a node behind the others, of this elimination. `steps` are those of what it takes.
    pub(super) fn push(
        &mut self,
        elimination: &Elimination,
        takes: Takes,
        steps: impl IntoIterator<Item = u32>,
    ) {
        if self.starts.is_empty() {
            self.starts.push(0);
        }
        let (first, first_step) = (self.inverses.len(), self.steps.len());
        let columns = first..first + elimination.eliminated;
        let before = self.rows.len() as u32;
        let blocks = elimination.blocks_eliminated();
        let ends = &elimination.starts[1..=elimination.eliminated];
        self.starts.extend(ends.iter().map(|end| before + end));
        self.rows.extend_from_slice(&elimination.rows[..blocks]);
        self.inverses.resize(columns.end, [0.0; 40]);
        self.blocks.resize(self.rows.len(), [0.0; 40]);
        self.halfway.resize(columns.end, [0.0; 8]);
        self.steps.extend(steps);
        let size = elimination.order.len();
        if size > self.front.len() {
            self.front.resize(size, [0.0; 8]);
        }
        self.nodes.push(Node {
            columns,
            kept: size - elimination.eliminated,
            steps: first_step..self.steps.len(),
            takes,
        });
    }

    /// Gives back the room that grew for nodes that did not come.
    pub(super) fn shrink_to_fit(&mut self) {
        let Self {
            nodes,
            starts,
            rows,
            inverses,
            blocks,
            steps,
            halfway,
            front,
        } = self;
        nodes.shrink_to_fit();
        for numbers in [starts, rows, steps] {
            numbers.shrink_to_fit();
        }
        for blocks in [inverses, blocks] {
            blocks.shrink_to_fit();
        }
        for vector in [halfway, front] {
            vector.shrink_to_fit();
        }
    }

    /// The blocks of a node.
    fn blocks_of(&self, node: usize) -> Range<usize> {
        let Range { start, end } = self.nodes[node].columns;
        self.starts[start] as usize..self.starts[end] as usize
    }

    /// The room for a node's inverses of blocks on the diagonal, and for the blocks below.
    pub(super) fn of_node(&mut self, node: usize) -> (&mut [Short], &mut [Short]) {
        let (columns, blocks) = (self.nodes[node].columns.clone(), self.blocks_of(node));
        (&mut self.inverses[columns], &mut self.blocks[blocks])
    }

    /// How many blocks the factor of a node has.
    pub(super) fn block_count(&self, node: usize) -> usize {
        self.nodes[node].columns.len() + self.blocks_of(node).len()
    }

    /// The factor of a node, and the vector on which it works.
    #[inline(always)]
    fn columns(&mut self, node: &Node) -> (Columns<'_>, &mut [Eight], &mut [Eight]) {
        let of = node.columns.clone();
        let starts = &self.starts[of.start..=of.end];
        let blocks = starts[0] as usize..starts[of.len()] as usize;
        let columns = Columns {
            starts,
            rows: &self.rows[blocks.clone()],
            inverses: &self.inverses[of.clone()],
            blocks: &self.blocks[blocks],
        };
        let front = &mut self.front[..of.len() + node.kept];
        (columns, front, &mut self.halfway[of])
    }

    /// Substitutes forward. `rhs` is the right side of owned aggregates, `taken` what other nodes
    /// have left. The sums that no node takes are in `left` in the end. Each leaves sums that are
    /// rounded to f32 if `short`.
    pub(super) fn forward(
        &mut self,
        turns: &[Turn],
        (rhs, taken): (&[Six], &Left),
        left: &mut Left,
        short: bool,
    ) {
        left.sums.clear();
        left.energies.clear();
        widest(Forward {
            factors: self,
            turns,
            rhs,
            taken,
            left,
            short,
        });
    }

    /// Substitutes backward, from what `sums` has for the last nodes. The solutions of owned
    /// aggregates go to `solution`, those of what other nodes kept to `found`.
    pub(super) fn backward(
        &mut self,
        turns: &[Turn],
        sums: &mut Vec<Six>,
        (solution, found): (&mut [Six], &mut [Six]),
    ) {
        widest(Backward {
            factors: self,
            turns,
            sums,
            solution,
            found,
        });
    }
}

/// [`Factors::forward`].
struct Forward<'a> {
    factors: &'a mut Factors,
    turns: &'a [Turn],
    rhs: &'a [Six],
    taken: &'a Left,
    left: &'a mut Left,
    short: bool,
}

impl Kernel for Forward<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let Self {
            factors,
            turns,
            rhs,
            taken,
            left: Left { sums, energies },
            short,
        } = self;
        let (mut others, mut energies_of_others) = (&taken.sums[..], taken.energies.iter());
        for turn in turns {
            let node = match turn {
                Turn::Node { node, .. } => factors.nodes[*node].clone(),
                Turn::Taken(taken) => {
                    let (theirs, rest) = others.split_at(taken.aggregates);
                    sums.extend_from_slice(theirs);
                    energies.extend(energies_of_others.next());
                    others = rest;
                    continue;
                }
            };
            let size = node.columns.len() + node.kept;
            let front = &mut factors.front[..size];
            front.fill([0.0; 8]);
            let steps = factors.steps[node.steps.clone()].iter();
            let mut energy = 0.0;
            match &node.takes {
                Takes::Patch(aggregates) => {
                    for (&step, rhs) in steps.zip(&rhs[aggregates.clone()]) {
                        front[step as usize] = widened(*rhs);
                    }
                }
                Takes::Children(_) => {
                    let start = sums.len() - node.steps.len();
                    for (&step, sum) in steps.zip(&sums[start..]) {
                        for (number, sum) in front[step as usize].iter_mut().zip(sum) {
                            *number += sum;
                        }
                    }
                    sums.truncate(start);
                    let right = energies.pop().unwrap_or_default();
                    energy = energies.pop().unwrap_or_default() + right;
                }
            }
            let (columns, front, halfway) = factors.columns(&node);
            energies.push(energy + columns.forward(lanes, front));
            let (eliminated, kept) = front.split_at(halfway.len());
            halfway.copy_from_slice(eliminated);
            for kept in kept {
                let mut left = narrowed(*kept);
                if short {
                    for number in &mut left {
                        *number = f64::from(*number as f32);
                    }
                }
                sums.push(left);
            }
        }
    }
}

/// [`Factors::backward`].
struct Backward<'a> {
    factors: &'a mut Factors,
    turns: &'a [Turn],
    sums: &'a mut Vec<Six>,
    solution: &'a mut [Six],
    found: &'a mut [Six],
}

impl Kernel for Backward<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        let Self {
            factors,
            turns,
            sums,
            solution,
            found,
        } = self;
        for turn in turns.iter().rev() {
            let node = match turn {
                Turn::Node {
                    node,
                    is_wanted: true,
                } => factors.nodes[*node].clone(),
                Turn::Node { .. } => continue,
                Turn::Taken(taken) => {
                    if let Some(places) = taken.found.clone() {
                        let start = sums.len() - taken.aggregates;
                        found[places].copy_from_slice(&sums[start..]);
                        sums.truncate(start);
                    }
                    continue;
                }
            };
            let (columns, front, halfway) = factors.columns(&node);
            let (eliminated, kept) = front.split_at_mut(halfway.len());
            eliminated.copy_from_slice(halfway);
            let start = sums.len() - kept.len();
            for (kept, sum) in kept.iter_mut().zip(&sums[start..]) {
                *kept = widened(*sum);
            }
            sums.truncate(start);
            columns.backward(lanes, front);
            let (front, steps) = (&factors.front[..], &factors.steps[node.steps.clone()]);
            match &node.takes {
                Takes::Patch(aggregates) => {
                    let room = solution[aggregates.clone()].iter_mut();
                    for (room, &step) in room.zip(steps) {
                        *room = narrowed(front[step as usize]);
                    }
                }
                Takes::Children(children) => {
                    let mut rest = steps;
                    for &(count, is_wanted) in children {
                        let (of_child, behind) = rest.split_at(count);
                        rest = behind;
                        if is_wanted {
                            for &step in of_child {
                                sums.push(narrowed(front[step as usize]));
                            }
                        }
                    }
                }
            }
        }
    }
}
