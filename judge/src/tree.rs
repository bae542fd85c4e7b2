//! Boxes, and a tree of boxes over triangles: which pairs of triangles may meet on a way.
//!
//! The tree is made of the triangles' centres, in halves along the longest side. It may be of
//! another state than the boxes, which are found anew for each way: it is then slower, but misses
//! nothing.

use std::ops::Range;

use crate::way::Position;

/// Triangles in a leaf, at most.
const LEAF: usize = 4;

/// A box: its lowest and its highest coordinates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Box3 {
    low: Position,
    high: Position,
}

impl Box3 {
    const EMPTY: Self = Self {
        low: [f64::INFINITY; 3],
        high: [f64::NEG_INFINITY; 3],
    };

    /// The box around some points.
    pub(crate) fn around(points: impl IntoIterator<Item = Position>) -> Self {
        let points = points.into_iter();
        points.fold(Self::EMPTY, |all, p| all.with(&Self { low: p, high: p }))
    }

    /// The box around two others.
    pub(crate) fn with(&self, other: &Self) -> Self {
        Self {
            low: std::array::from_fn(|k| self.low[k].min(other.low[k])),
            high: std::array::from_fn(|k| self.high[k].max(other.high[k])),
        }
    }

    /// Whether two boxes have a point in common.
    pub(crate) fn meets(&self, other: &Self) -> bool {
        (0..3).all(|k| self.low[k] <= other.high[k] && other.low[k] <= self.high[k])
    }
}

/// A node: an inner one has its first child next to it in the list.
#[derive(Clone, Copy, Debug)]
enum Node {
    Inner { second: usize },
    Leaf { first: usize, count: usize },
}

/// A tree over triangles.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    nodes: Vec<Node>,
    /// Triangles in the order of the leaves.
    order: Vec<u32>,
    /// The box of each node.
    boxes: Vec<Box3>,
}

impl Tree {
    /// The tree over triangles with these numbers, whose centres are in a list of all.
    pub(crate) fn new(triangles: Range<u32>, centres: &[Position]) -> Self {
        let mut tree = Self {
            order: triangles.collect(),
            ..Self::default()
        };
        if !tree.order.is_empty() {
            let mut order = std::mem::take(&mut tree.order);
            tree.divide(&mut order, 0, centres);
            tree.order = order;
        }
        tree
    }

    /// Makes the nodes over some triangles, which begin at a place of the order.
    fn divide(&mut self, order: &mut [u32], first: usize, centres: &[Position]) {
        let count = order.len();
        if count <= LEAF {
            self.nodes.push(Node::Leaf { first, count });
            return;
        }
        let around = Box3::around(order.iter().map(|&t| centres[t as usize]));
        let length = |k: &usize| around.high[*k] - around.low[*k];
        let axis = (0..3).max_by(|a, b| length(a).total_cmp(&length(b)));
        let key = |t: u32| centres[t as usize][axis.unwrap_or(0)];
        let half = count / 2;
        order.select_nth_unstable_by(half, |&a, &b| key(a).total_cmp(&key(b)).then(a.cmp(&b)));
        let own = self.nodes.len();
        self.nodes.push(Node::Inner { second: 0 });
        let (low, high) = order.split_at_mut(half);
        self.divide(low, first, centres);
        let second = self.nodes.len();
        self.nodes[own] = Node::Inner { second };
        self.divide(high, first + half, centres);
    }

    /// Finds the boxes of all nodes, from those of all triangles.
    pub(crate) fn fit(&mut self, of_triangles: &[Box3]) {
        self.boxes.resize(self.nodes.len(), Box3::EMPTY);
        // Children come after their parents.
        for at in (0..self.nodes.len()).rev() {
            self.boxes[at] = match self.nodes[at] {
                Node::Inner { second } => self.boxes[at + 1].with(&self.boxes[second]),
                Node::Leaf { first, count } => {
                    let triangles = self.order[first..first + count].iter();
                    triangles.fold(Box3::EMPTY, |all, &t| all.with(&of_triangles[t as usize]))
                }
            };
        }
    }

    /// Calls a function with each pair of two triangles whose boxes meet, once.
    pub(crate) fn pairs_within(&self, of_triangles: &[Box3], mut found: impl FnMut(u32, u32)) {
        self.descend(self, of_triangles, &mut found);
    }

    /// Calls a function with each pair of a triangle here and one of another tree whose boxes meet.
    pub(crate) fn pairs_with(
        &self,
        other: &Self,
        of_triangles: &[Box3],
        mut found: impl FnMut(u32, u32),
    ) {
        self.descend(other, of_triangles, &mut found);
    }

    fn descend(&self, other: &Self, of_triangles: &[Box3], found: &mut impl FnMut(u32, u32)) {
        let same = std::ptr::eq(self, other);
        if self.nodes.is_empty() || other.nodes.is_empty() {
            return;
        }
        let mut stack = vec![(0, 0)];
        while let Some((a, b)) = stack.pop() {
            if !self.boxes[a].meets(&other.boxes[b]) {
                continue;
            }
            match (self.nodes[a], other.nodes[b]) {
                (Node::Inner { second }, _) if same && a == b => {
                    stack.extend([(a + 1, a + 1), (second, second), (a + 1, second)]);
                }
                (
                    Node::Leaf { first, count },
                    Node::Leaf {
                        first: of,
                        count: many,
                    },
                ) => {
                    let (ours, theirs) = (
                        &self.order[first..first + count],
                        &other.order[of..of + many],
                    );
                    for (i, &s) in ours.iter().enumerate() {
                        let skipped = if same && a == b { i + 1 } else { 0 };
                        for &t in theirs.iter().skip(skipped) {
                            if of_triangles[s as usize].meets(&of_triangles[t as usize]) {
                                found(s, t);
                            }
                        }
                    }
                }
                (Node::Inner { second }, Node::Leaf { .. }) => {
                    stack.extend([(a + 1, b), (second, b)]);
                }
                (Node::Leaf { .. }, Node::Inner { second }) => {
                    stack.extend([(a, b + 1), (a, second)]);
                }
                (Node::Inner { second }, Node::Inner { second: of }) => {
                    stack.extend([(a + 1, b + 1), (a + 1, of), (second, b + 1), (second, of)]);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The tree finds the pairs that a look at all pairs finds, each once.
        #[test]
        fn pairs_are_those_of_brute_force(
            corners in prop::collection::vec([[0.0..1.0, 0.0..1.0, 0.0..1.0], [0.0..0.3, 0.0..0.3, 0.0..0.3]], 0..60),
            moved in prop::collection::vec([0.0..1.0, 0.0..1.0, 0.0..1.0], 60),
            cut in 0usize..60,
        ) {
            let cut = cut.min(corners.len());
            let centres: Vec<Position> = corners.iter().map(|c| c[0]).collect();
            let boxes: Vec<Box3> = corners
                .iter()
                .zip(&moved)
                .map(|(c, m)| Box3::around([*m, std::array::from_fn(|k| m[k] + c[1][k])]))
                .collect();
            let mut trees = [0..cut as u32, cut as u32..corners.len() as u32].map(|range| Tree::new(range, &centres));
            trees.iter_mut().for_each(|tree| tree.fit(&boxes));
            let mut found = Vec::new();
            trees[0].pairs_within(&boxes, |a, b| found.push((a.min(b), a.max(b))));
            trees[0].pairs_with(&trees[1], &boxes, |a, b| found.push((a, b)));
            let once: BTreeSet<(u32, u32)> = found.iter().copied().collect();
            prop_assert_eq!(once.len(), found.len());
            let all = (0..cut as u32).flat_map(|a| (a + 1..corners.len() as u32).map(move |b| (a, b)));
            let expected: BTreeSet<_> = all.filter(|&(a, b)| boxes[a as usize].meets(&boxes[b as usize])).collect();
            prop_assert_eq!(once, expected);
        }
    }
}
