//! The elimination of the coarse system along the patch tree: which aggregates are eliminated at
//! which node, and the pattern of the matrix there.
//!
//! This is nested dissection \[Geo73\] by the cuts that made the patches. At a node stand the
//! aggregates of its patches that the nodes below have left, and those beside them. It eliminates
//! those whose neighbours are all among its patches or lower in number; the others it keeps, for
//! the node above. So of the two sides of a cut only the left one waits for the node that was cut,
//! and separators are as thin as one aggregate. Lower neighbours do not count because the rows of
//! the lower half have the couplings with these: the owners of a node's patches have all that it
//! needs.
//!
//! Among those of a node the order is that of minimum degree ([`super::elimination`]). All of this
//! depends on mesh and patches alone, and not on who does the work of a node ([`super::nested`]).
//!
//! * \[Geo73\] George: Nested dissection of a regular finite element mesh. SIAM Journal on
//!   Numerical Analysis 10, 1973.

use weft_partition::{Aggregates, Graph, Subtree};

use super::elimination::Elimination;

/// The matrices of all nodes of the patch tree.
pub(super) struct Dissection {
    depth: u32,
    /// By [`place`]; no node has place 0.
    fronts: Vec<Front>,
}

/// The matrix of a node: of what it eliminates and what it keeps.
#[derive(Clone, Debug)]
pub(super) struct Front {
    /// The aggregates, ascending.
    pub(super) aggregates: Vec<u32>,
    /// Their elimination, by their places among these.
    pub(super) elimination: Elimination,
}

impl Front {
    /// The place of an aggregate.
    ///
    /// # Panics
    /// If it is not there.
    pub(super) fn local(&self, aggregate: u32) -> u32 {
        let found = self.aggregates.binary_search(&aggregate);
        found.expect("the aggregate is in the front") as u32
    }

    /// The aggregates at the steps from the first that is not eliminated, ascending.
    pub(super) fn kept(&self) -> impl Iterator<Item = u32> {
        self.steps().skip(self.elimination.eliminated)
    }

    /// The aggregates by steps.
    fn steps(&self) -> impl Iterator<Item = u32> {
        let order = self.elimination.order.iter();
        order.map(|&local| self.aggregates[local as usize])
    }

    /// The pairs of aggregates of the blocks that are kept, behind the diagonal, column by column:
    /// row and column.
    pub(super) fn kept_blocks(&self) -> impl Iterator<Item = (u32, u32)> {
        let Elimination {
            eliminated, order, ..
        } = &self.elimination;
        let of_step = |step: usize| self.aggregates[order[step] as usize];
        (*eliminated..order.len()).flat_map(move |column| {
            let rows = self.elimination.column(column).iter();
            rows.map(move |&row| (of_step(row as usize), of_step(column)))
        })
    }
}

/// The place of a node in a list by levels.
fn place(node: Subtree) -> usize {
    (1 << node.level) + node.index
}

impl Dissection {
    /// Dissects the graph of aggregates of a tree of this depth.
    pub(super) fn new(graph: &Graph, aggregates: &Aggregates, depth: u32) -> Self {
        let leaves = 1_usize << depth;
        let patch_of: Vec<usize> = (0..leaves)
            .flat_map(|patch| aggregates.in_patch(patch).map(move |_| patch))
            .collect();
        // The place of the smallest node with an aggregate and its higher neighbours.
        let home = |aggregate: u32| {
            let own = patch_of[aggregate as usize];
            let last = graph.neighbours(aggregate).last().copied();
            let last = patch_of[last.unwrap_or(aggregate).max(aggregate) as usize];
            (leaves + own) >> (usize::BITS - (own ^ last).leading_zeros())
        };
        let homes: Vec<usize> = graph.vertices().map(home).collect();
        let mut fronts: Vec<Front> = Vec::with_capacity(2 * leaves);
        // From the last leaf to the root, and what is at place 0.
        for place in (1..2 * leaves).rev() {
            let children = match place < leaves {
                // The list runs backwards until it is complete.
                true => [2 * place, 2 * place + 1].map(|child| Some(2 * leaves - 1 - child)),
                false => [None; 2],
            };
            let (mut members, mut pairs) = (Vec::new(), Vec::new());
            for child in children.into_iter().flatten().map(|at| &fronts[at]) {
                members.extend(child.kept());
                pairs.extend(child.kept_blocks());
            }
            if place >= leaves {
                for aggregate in aggregates.in_patch(place - leaves) {
                    let aggregate = aggregate as u32;
                    let others = graph.neighbours(aggregate).iter().copied();
                    let lower = others.filter(|&other| other < aggregate);
                    pairs.extend(lower.clone().map(|other| (aggregate, other)));
                    members.extend(lower.chain([aggregate]));
                }
            }
            members.sort_unstable();
            members.dedup();
            let mut front = Front {
                elimination: Elimination::default(),
                aggregates: members,
            };
            // Between pieces of cloth that are not joined nothing is left.
            if !front.aggregates.is_empty() {
                let local = pairs.iter().map(|&(a, b)| (front.local(a), front.local(b)));
                let pattern = Graph::from_edges(front.aggregates.len(), local)
                    .expect("places are those of members");
                let is_kept = |at: u32| homes[front.aggregates[at as usize] as usize] != place;
                front.elimination = Elimination::new(&pattern, is_kept);
            }
            fronts.push(front);
        }
        fronts.push(Front {
            aggregates: Vec::new(),
            elimination: Elimination::default(),
        });
        fronts.reverse();
        Self { depth, fronts }
    }

    /// The matrix of a node.
    pub(super) fn front(&self, node: Subtree) -> &Front {
        &self.fronts[place(node)]
    }

    /// Whether a node is a patch.
    pub(super) fn is_patch(&self, node: Subtree) -> bool {
        node.level == self.depth
    }

    /// The work at all nodes together: products of blocks while factoring, and blocks that a solve
    /// reads once.
    pub(super) fn work(&self) -> [usize; 2] {
        let all = || self.fronts[1..].iter().map(|front| &front.elimination);
        let blocks = |of: &Elimination| of.eliminated + of.blocks_eliminated();
        [
            all().map(Elimination::products).sum(),
            all().map(blocks).sum(),
        ]
    }

    /// The nodes below and with one, children before their parent and left before right. Nodes for
    /// which `is_whole` holds stand for all that is below them.
    pub(super) fn post_order(
        &self,
        of: Subtree,
        is_whole: &impl Fn(Subtree) -> bool,
    ) -> Vec<Subtree> {
        let mut order = Vec::new();
        let mut waiting = vec![of];
        while let Some(node) = waiting.pop() {
            order.push(node);
            if !is_whole(node) && !self.is_patch(node) {
                waiting.extend(children(node));
            }
        }
        order.reverse();
        order
    }

    /// The columns of the factor in the order of elimination: for each the aggregate, and the later
    /// columns that it changes.
    pub(super) fn columns(&self) -> Vec<(u32, Vec<u32>)> {
        let order = self.post_order(Subtree { level: 0, index: 0 }, &|_| false);
        let fronts = || order.iter().map(|&node| self.front(node));
        let eliminated = fronts().flat_map(|front| {
            let steps = front.steps().take(front.elimination.eliminated);
            steps
                .enumerate()
                .map(move |(step, aggregate)| (front, step, aggregate))
        });
        let eliminated: Vec<_> = eliminated.collect();
        let mut step_of = vec![0; eliminated.len()];
        for (step, &(.., aggregate)) in (0..).zip(&eliminated) {
            step_of[aggregate as usize] = step;
        }
        let columns = eliminated.iter().map(|&(front, step, aggregate)| {
            let Elimination { order, .. } = &front.elimination;
            let rows = front.elimination.column(step).iter();
            let row = |&row: &u32| step_of[front.aggregates[order[row as usize] as usize] as usize];
            let mut rows: Vec<u32> = rows.map(row).collect();
            rows.sort_unstable();
            (aggregate, rows)
        });
        columns.collect()
    }
}

/// The two nodes below one.
pub(super) fn children(node: Subtree) -> [Subtree; 2] {
    [0, 1].map(|side| Subtree {
        level: node.level + 1,
        index: 2 * node.index + side,
    })
}
