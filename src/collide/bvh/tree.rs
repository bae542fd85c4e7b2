//! Binary trees of bounding volumes over triangles: topology built once, volumes refitted each
//! step.
//!
//! The topology comes from the rest shape, top down, by halving along the longest side [TB06
//! §4.2.1], so that subtrees stay compact parts of cloth however it is folded. Nodes are numbered
//! so that children follow their parent, side by side: one sweep backwards refits the whole tree,
//! and a test of a node reads both children's volumes together.

use glam::DVec3;

use crate::archive::{Array, archives};
use crate::collide::bvh::kdop::Kdop;
use crate::heap_bytes::{counts_heap, owns_no_heap};
use crate::parallel;
use crate::simd::InstructionSet;

/// A node's two children, or the triangle of a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Node {
    /// The first of two children, the second being next; both have larger numbers than the node.
    Inner(u32),
    /// One triangle.
    Leaf(u32),
}

/// A tree; node 0 is the root. Without triangles it has no nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bvh {
    /// First children, and triangles with [`LEAF`].
    nodes: Array<u32>,
}

counts_heap!(Bvh: nodes);
archives!(Bvh: nodes);

/// The nodes below a node: two siblings, or, for a leaf, itself as one of two.
///
/// Siblings have a number: k is that of nodes 2 k - 1 and 2 k, and 0 that of the root, as the
/// second of two. Two further bits say which of the siblings are below the node, and two which of
/// them are leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::collide) struct Below(u32);

owns_no_heap!(Below);

impl Below {
    /// The value before it is known.
    pub(in crate::collide) const NOTHING: Self = Self(0);

    /// The description for a leaf.
    #[inline(always)]
    pub(in crate::collide) fn leaf(node: u32) -> Self {
        Self(Self::itself(node).0 | (2 - node % 2))
    }

    /// The description of a node itself, as one of two siblings, if it is no leaf.
    #[inline(always)]
    pub(in crate::collide) fn itself(node: u32) -> Self {
        Self((node.div_ceil(2) << 4) | ((2 - node % 2) << 2))
    }

    /// The description for an inner node, from what [`as_inner`](Self::as_inner) made of it.
    #[inline(always)]
    pub(in crate::collide) fn of_inner(short: u32) -> Self {
        Self((short >> 2) << 4 | 0b1100 | short & 3)
    }

    /// A short form of the description for an inner node: no more than twice the number of nodes
    /// and 1.
    #[inline(always)]
    pub(in crate::collide) fn as_inner(self) -> u32 {
        self.siblings() << 2 | self.0 & 3
    }

    /// The number of the siblings.
    #[inline(always)]
    pub(in crate::collide) fn siblings(self) -> u32 {
        self.0 >> 4
    }

    /// The siblings as nodes.
    #[inline(always)]
    pub(in crate::collide) fn nodes(self) -> [u32; 2] {
        let second = 2 * self.siblings();
        [second.wrapping_sub(1), second]
    }

    /// The bits: two for the siblings that are leaves, then two for those that are below the node.
    #[inline(always)]
    pub(in crate::collide) fn bits(self) -> usize {
        (self.0 & 15) as usize
    }

    /// Whether both siblings are below the node, so that it is no leaf.
    #[inline(always)]
    pub(in crate::collide) fn is_both(self) -> bool {
        !self.0 & 0b1100 == 0
    }
}

/// The bit that is set for leaves.
const LEAF: u32 = 1 << 31;
/// The most triangles of a tree: numbers of siblings have 28 bits.
const MOST: usize = 1 << 27;

impl Bvh {
    /// Builds a tree over triangles, given by number (below 2^31) and centre.
    ///
    /// # Panics
    /// If there are more than 2^27.
    #[must_use]
    pub fn build(mut items: Vec<(u32, DVec3)>) -> Self {
        assert!(
            items.len() <= MOST,
            "a tree of no more than {MOST} triangles"
        );
        let mut nodes = vec![0; (2 * items.len()).saturating_sub(1)];
        if let [root, below @ ..] = &mut nodes[..] {
            *root = split(&mut items, below, 1);
        }
        Self {
            nodes: nodes.into(),
        }
    }

    /// The tree over some of its triangles, in which they are below each other as here.
    pub(in crate::collide) fn pruned(&self, keeps: impl Fn(u32) -> bool) -> Self {
        let mut kept = vec![false; self.len()];
        for node in (0..self.len()).rev() {
            kept[node] = match self.node(node as u32) {
                Node::Inner(child) => kept[child as usize] | kept[child as usize + 1],
                Node::Leaf(triangle) => keeps(triangle),
            };
        }
        let mut nodes = Vec::new();
        let mut stack = Vec::new();
        if kept.first() == Some(&true) {
            nodes.push(0);
            stack.push((0, 0));
        }
        while let Some((mut from, to)) = stack.pop() {
            // Nodes of which one child is kept are left out.
            nodes[to] = loop {
                let child = match self.node(from) {
                    Node::Leaf(triangle) => break triangle | LEAF,
                    Node::Inner(child) => child,
                };
                match [0, 1].map(|k| kept[(child + k) as usize]) {
                    [true, true] => {
                        let first = nodes.len();
                        stack.extend([(child, first), (child + 1, first + 1)]);
                        nodes.extend([0, 0]);
                        break first as u32;
                    }
                    [true, false] => from = child,
                    _ => from = child + 1,
                }
            };
        }
        Self {
            nodes: nodes.into(),
        }
    }

    /// The number of nodes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether it has no triangles.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// A node.
    ///
    /// # Panics
    /// If there are fewer.
    #[must_use]
    #[inline]
    pub fn node(&self, index: u32) -> Node {
        let word = self.nodes[index as usize];
        if word & LEAF == 0 {
            Node::Inner(word)
        } else {
            Node::Leaf(word & !LEAF)
        }
    }

    /// Hands out the pairs of nodes below a pair, or below a node and itself. A pair of two leaves
    /// has none: its triangles are the result.
    #[inline]
    pub(in crate::collide) fn divide(
        &self,
        (a, b): (u32, u32),
        push: &mut impl FnMut(u32, u32),
    ) -> Option<[u32; 2]> {
        match (self.node(a), self.node(b)) {
            (Node::Inner(first), _) if a == b => {
                push(first, first);
                push(first + 1, first + 1);
                push(first, first + 1);
            }
            (Node::Inner(first), _) => {
                push(first, b);
                push(first + 1, b);
            }
            (Node::Leaf(_), Node::Inner(first)) => {
                push(a, first);
                push(a, first + 1);
            }
            (Node::Leaf(s), Node::Leaf(t)) if s != t => return Some([s, t]),
            _ => {}
        }
        None
    }

    /// The triangle of a leaf.
    #[inline]
    pub(in crate::collide) fn triangle(&self, leaf: u32) -> u32 {
        self.nodes[leaf as usize] & !LEAF
    }

    /// Asks memory for the triangle of a leaf, which is soon to be looked up.
    #[inline(always)]
    pub(in crate::collide) fn prefetch(&self, set: impl InstructionSet, leaf: u32) {
        set.prefetch_value(&self.nodes[leaf as usize]);
    }

    /// The description of the nodes below a node.
    #[inline]
    pub(in crate::collide) fn below(&self, node: u32) -> Below {
        let word = self.nodes[node as usize];
        if word & LEAF != 0 {
            return Below::leaf(node);
        }
        let leaf = |node: u32| u32::from(self.nodes[node as usize] & LEAF != 0);
        Below((word.div_ceil(2) << 4) | 0b1100 | (leaf(word + 1) << 1) | leaf(word))
    }

    /// Computes all volumes, in the order of the nodes, from those of the triangles.
    pub fn refit<const N: usize>(
        &self,
        leaf: impl Fn(u32) -> Kdop<N> + Sync,
        volumes: &mut Vec<Kdop<N>>,
    ) {
        volumes.resize(self.nodes.len(), Kdop::EMPTY);
        self.refit_nodes(0, &leaf, volumes);
    }

    /// Computes the volumes of the root, or of two siblings, and of all nodes below. `first` is the
    /// number of the first of these nodes, which all follow it.
    fn refit_nodes<const N: usize>(
        &self,
        first: usize,
        leaf: &(impl Fn(u32) -> Kdop<N> + Sync),
        volumes: &mut [Kdop<N>],
    ) {
        /// The fewest nodes that are worth another thread.
        const FEWEST: usize = 1 << 13;
        // The nodes before this one are computed last: those below them are done by then.
        let mut left = volumes.len();
        if left >= FEWEST {
            let siblings = 2 - usize::from(first == 0);
            let mut starts = (first..first + siblings).map(|node| match self.node(node as u32) {
                Node::Inner(start) => start as usize - first,
                Node::Leaf(_) => volumes.len(),
            });
            // The nodes below the first sibling come before those below the second.
            let last = starts.next_back().unwrap_or(siblings);
            let (own, below) = volumes.split_at_mut(siblings);
            let (one, two) = below.split_at_mut(last - siblings);
            parallel::join(
                || self.refit_nodes(first + siblings, leaf, one),
                || self.refit_nodes(first + last, leaf, two),
            );
            left = own.len();
        }
        for index in (0..left).rev() {
            volumes[index] = match self.node((first + index) as u32) {
                Node::Inner(child) => {
                    let child = child as usize - first;
                    volumes[child].union(&volumes[child + 1])
                }
                Node::Leaf(triangle) => leaf(triangle),
            };
        }
    }
}

/// The tree of some items: fills the nodes below its root, of which the first has this number, and
/// returns the root.
fn split(items: &mut [(u32, DVec3)], below: &mut [u32], first: u32) -> u32 {
    /// The fewest items that are worth another thread.
    const FEWEST: usize = 1 << 12;
    if let [(triangle, _)] = items {
        return *triangle | LEAF;
    }
    let (mut low, mut high) = (DVec3::INFINITY, DVec3::NEG_INFINITY);
    for (_, center) in items.iter() {
        low = low.min(*center);
        high = high.max(*center);
    }
    let extent = high - low;
    let axis = (1..3).fold(0, |best, k| if extent[k] > extent[best] { k } else { best });
    let middle = items.len() / 2;
    // Ties by number: which items are on which side is a function of the mesh, also if their order
    // there is not.
    items.select_nth_unstable_by(middle, |a, b| {
        a.1[axis].total_cmp(&b.1[axis]).then(a.0.cmp(&b.0))
    });
    let (left, right) = items.split_at_mut(middle);
    // First come the two children, then all nodes below the left one, then all below the other.
    let (children, below) = below.split_at_mut(2);
    let (of_left, of_right) = below.split_at_mut(2 * middle - 2);
    let second = first + 2 * middle as u32;
    let mut build_left = || split(left, of_left, first + 2);
    let mut build_right = || split(right, of_right, second);
    let both = if middle < FEWEST {
        (build_left(), build_right())
    } else {
        parallel::join(build_left, build_right)
    };
    children.copy_from_slice(&[both.0, both.1]);
    first
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collide::bvh::kdop::Kdop18;

    #[test]
    fn a_pruned_tree_holds_what_is_kept_in_its_order() {
        let tree = Bvh::build((0..1000).map(|i| (i, DVec3::X * f64::from(i))).collect());
        let in_order = |tree: &Bvh| {
            let (mut leaves, mut stack) = (Vec::new(), Vec::new());
            stack.extend((!tree.is_empty()).then_some(0));
            while let Some(node) = stack.pop() {
                match tree.node(node) {
                    Node::Leaf(triangle) => leaves.push(triangle),
                    Node::Inner(first) => {
                        // Siblings have an odd and an even number.
                        assert!(first > node && first % 2 == 1);
                        stack.extend([first + 1, first]);
                    }
                }
            }
            leaves
        };
        let all = in_order(&tree);
        let some: [fn(&u32) -> bool; 5] = [
            |_| true,
            |_| false,
            |t| *t == 17,
            |t| t % 3 == 0,
            |t| (100..117).contains(t),
        ];
        for keeps in some {
            let pruned = tree.pruned(|triangle| keeps(&triangle));
            let left: Vec<u32> = all.iter().copied().filter(keeps).collect();
            assert_eq!(pruned.len(), (2 * left.len()).saturating_sub(1));
            assert_eq!(in_order(&pruned), left);
        }
        assert_eq!(tree.pruned(|_| true).len(), tree.len());
    }

    #[test]
    fn a_tree_holds_every_triangle_once_and_children_follow_parents() {
        for n in [0u32, 1, 2, 3, 17, 1000, 20_001] {
            let center = |i: u32| DVec3::new(f64::from(i * 7919 % 101), f64::from(i % 13), 0.0);
            let tree = Bvh::build((0..n).map(|i| (i, center(i))).collect());
            let mut seen: Vec<u32> = Vec::new();
            for index in 0..tree.len() as u32 {
                match tree.node(index) {
                    Node::Leaf(t) => seen.push(t),
                    Node::Inner(first) => assert!(first > index),
                }
            }
            seen.sort_unstable();
            assert!(seen.into_iter().eq(0..n));
            let mut volumes = Vec::new();
            tree.refit(|t| Kdop18::around(&[center(t)], 0.0), &mut volumes);
            for (index, volume) in (0..).zip(&volumes) {
                assert_eq!(
                    *volume,
                    match tree.node(index) {
                        Node::Inner(first) => {
                            volumes[first as usize].union(&volumes[first as usize + 1])
                        }
                        Node::Leaf(t) => Kdop18::around(&[center(t)], 0.0),
                    }
                );
            }
            if let Some(root) = volumes.first() {
                assert!((0..n).all(|i| root.contains(center(i))));
            }
        }
    }

    #[test]
    fn threads_build_the_tree_that_one_builds() {
        let center = |i: u32| DVec3::new(f64::from(i * 7919 % 10_007), f64::from(i % 131), 0.0);
        let build = || {
            let tree = Bvh::build((0..50_000).map(|i| (i, center(i))).collect());
            let mut volumes = Vec::new();
            tree.refit(|t| Kdop18::around(&[center(t)], 0.1), &mut volumes);
            (tree, volumes)
        };
        let alone = build();
        for threads in [2, 3] {
            let shared = parallel::on_threads(threads, build);
            assert_eq!(shared.unwrap(), alone);
        }
    }

    #[test]
    fn coincident_triangles_are_split_all_the_same() {
        let tree = Bvh::build((0..64).map(|i| (i, DVec3::ONE)).collect());
        assert_eq!(tree.len(), 127);
    }
}
