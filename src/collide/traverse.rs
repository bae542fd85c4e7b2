//! How two hierarchies are descended together: pairs of nodes whose volumes meet, down to pairs of leaves.
//!
//! In: two trees with the volumes of their nodes, and a stack of tests to begin with. Out: pairs of leaves, as nodes. Whether a test
//! succeeds is hard to foresee, and so is which of two nodes is a leaf: nothing branches on either. Four tests are made at once, of what
//! lies side by side in memory; where one of two nodes is not descended, its sibling is tested in vain.

use super::bvh::{Bvh, Node};
use super::kdop::Kdop;
use super::width::{Width, Work, widest};

/// What leaves out pairs of nodes that it knows to be apart.
pub(super) trait Cull {
    /// Whether it surely does not know: a quick answer for most.
    fn cannot(&self, a: u32, b: u32) -> bool;

    /// Whether it leaves out a pair.
    fn culls(&self, a: u32, b: u32) -> bool;
}

/// What knows of none.
pub(super) enum Never {}

impl Cull for Never {
    fn cannot(&self, _: u32, _: u32) -> bool {
        true
    }

    fn culls(&self, _: u32, _: u32) -> bool {
        false
    }
}

/// Leaves nothing out.
pub(super) const EVERY: Option<Never> = None;

/// A hierarchy with the volumes of its nodes.
pub(super) type Tree<'a, V> = (&'a Bvh, V);

/// Volumes of a tree's nodes, as tests ask for them. Siblings have a number: k those of nodes 2 k - 1 and 2 k, and 0 the root,
/// which stands for both.
pub(super) trait Bounds: Copy {
    /// Which of two siblings meet which of two others, bit 2 i + j for the i-th of the first and the j-th of the others.
    fn meets(self, width: impl Width, siblings: u32, other: Self, others: u32) -> u32;

    /// Whether two siblings overlap.
    fn between(self, siblings: u32) -> bool;

    /// How large a node is, in whatever unit.
    fn size(self, node: u32) -> f32;
}

impl<const N: usize> Bounds for &[Kdop<N>] {
    #[inline(always)]
    fn meets(self, _: impl Width, siblings: u32, other: Self, others: u32) -> u32 {
        let both = |at: u32| [(2 * at as usize).saturating_sub(1), 2 * at as usize];
        let (mut meets, others) = (0, both(others));
        for (i, node) in both(siblings).into_iter().enumerate() {
            let turned = self[node].turned();
            for (j, &node) in others.iter().enumerate() {
                meets |= u32::from(turned.overlaps(&other[node])) << (2 * i + j);
            }
        }
        meets
    }

    #[inline(always)]
    fn between(self, siblings: u32) -> bool {
        let second = 2 * siblings as usize;
        self[second - 1].overlaps(&self[second])
    }

    #[inline(always)]
    fn size(self, node: u32) -> f32 {
        self[node as usize].size()
    }
}

/// Pending tests are taken in batches of this many: what one waits for (the nodes, their volumes, how many of its tests
/// succeed) does not keep the next from beginning.
const BATCH: usize = 8;
/// Tests that are made at once.
const FOUR: usize = 4;

/// A stack of tests onto which more are put than stay: those that fail are overwritten.
struct Pending<'s> {
    stack: &'s mut Vec<(u32, u32)>,
    /// How many of `stack` are tests.
    len: usize,
    /// Pairs of leaves that a batch has led to, and how many.
    leaves: [(u32, u32); FOUR * (BATCH + 1)],
    found: usize,
}

/// Puts those of four tests whose bits are set in the place of others, and whatever behind them.
#[inline(always)]
fn put(width: impl Width, to: &mut [(u32, u32)], at: &mut usize, tests: [u64; FOUR], which: u32) {
    let room = to[*at..].first_chunk_mut().expect("room for four");
    *room = width
        .gather(tests, which)
        .map(|test| (test as u32, (test >> 32) as u32));
    *at += which.count_ones() as usize;
}

impl Pending<'_> {
    /// Takes the newest, as many as there is room for.
    #[inline(always)]
    fn pop<'b>(&mut self, batch: &'b mut [(u32, u32)]) -> &'b [(u32, u32)] {
        let count = batch.len().min(self.len);
        let batch = &mut batch[..count];
        for (test, newest) in batch.iter_mut().zip(self.stack[..self.len].iter().rev()) {
            *test = *newest;
        }
        self.len -= count;
        // What each may lead to, and what is written behind it.
        let most = self.len + FOUR * (count + 1);
        if self.stack.len() < most {
            self.stack.resize(2 * most, (0, 0));
        }
        batch
    }

    /// Puts a test on the stack, or a pair of leaves beside it.
    #[inline(always)]
    fn push(&mut self, test: (u32, u32), succeeds: bool, leaves: bool) {
        self.stack[self.len] = test;
        self.len += usize::from(succeeds & !leaves);
        self.leaves[self.found] = test;
        self.found += usize::from(succeeds & leaves);
    }

    /// The same for four.
    #[inline(always)]
    fn push_four(&mut self, width: impl Width, tests: [u64; FOUR], succeed: u32, leaves: u32) {
        put(width, self.stack, &mut self.len, tests, succeed & !leaves);
        put(
            width,
            &mut self.leaves,
            &mut self.found,
            tests,
            succeed & leaves,
        );
    }

    /// Leaves out tests from `first` on, and pairs of leaves.
    #[inline(always)]
    fn leave_out(&mut self, first: usize, cull: &impl Cull) {
        let keep = |a, b| cull.cannot(a, b) || !cull.culls(a, b);
        let end = std::mem::replace(&mut self.len, first);
        for at in first..end {
            let (a, b) = self.stack[at];
            self.stack[self.len] = (a, b);
            self.len += usize::from(keep(a, b));
        }
        let end = std::mem::take(&mut self.found);
        for at in 0..end {
            let (a, b) = self.leaves[at];
            self.leaves[self.found] = (a, b);
            self.found += usize::from(keep(a, b));
        }
    }

    /// Puts the pairs of leaves on the stack too.
    fn keep_leaves(&mut self) {
        for &test in &self.leaves[..self.found] {
            self.stack[self.len] = test;
            self.len += 1;
        }
    }
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        self.stack.truncate(self.len);
    }
}

/// What two hierarchies are to each other.
pub(super) trait Kin {
    /// They are one: equal nodes stand for all pairs below.
    const SAME: bool = false;
    /// Their nodes differ in size: of two, the larger is descended alone.
    const UNLIKE: bool = false;
}

/// One hierarchy and itself.
pub(super) enum Same {}
/// Two, whose nodes are alike from the root to the leaves.
pub(super) enum Alike {}
/// Two, whose nodes are not.
pub(super) enum Unlike {}

impl Kin for Same {
    const SAME: bool = true;
}

impl Kin for Alike {}

impl Kin for Unlike {
    const UNLIKE: bool = true;
}

/// How many times as large as another a node is descended alone.
const LARGER: f32 = 2.0;

/// Of four tests those of one or both of two siblings, given by two bits, with both others; and the other way round.
const FIRST: [u32; 4] = [0, 0b0011, 0b1100, 0b1111];
const SECOND: [u32; 4] = [0, 0b0101, 0b1010, 0b1111];

/// Tests two hierarchies, until nothing is left or until `budget` tests were made; returns how many were.
///
/// What they are to each other says how they are descended. `leaf` is given pairs of leaves, as nodes, whose volumes
/// overlap; pairs of nodes that `cull` knows to be apart are left out.
pub(super) fn advance<K: Kin, V: Bounds>(
    trees: [Tree<'_, V>; 2],
    stack: &mut Vec<(u32, u32)>,
    budget: u32,
    leaf: impl FnMut(u32, u32),
    cull: Option<impl Cull>,
) -> u32 {
    widest(Descent::<K, V, _, _> {
        trees,
        stack,
        budget,
        leaf,
        cull,
        kin: std::marker::PhantomData,
    })
}

/// The arguments of [`advance`].
struct Descent<'a, K, V, L, C> {
    trees: [Tree<'a, V>; 2],
    stack: &'a mut Vec<(u32, u32)>,
    budget: u32,
    leaf: L,
    cull: Option<C>,
    kin: std::marker::PhantomData<K>,
}

/// A node, or what is below it.
struct Side {
    /// The number of the siblings to be tested.
    siblings: u32,
    /// Which of them count, a bit each, and which are leaves.
    count: u32,
    leaves: u32,
}

impl Side {
    /// The children of a node, or, if it is a leaf or kept, the node itself.
    #[inline(always)]
    fn new((words, leaves): (&[u32], &[u8]), node: u32, kept: bool) -> Self {
        let word = words[node as usize];
        // All bits if the node itself is meant. Arithmetic, for what is written as a choice is made a branch.
        let itself = ((word as i32 >> 31) as u32) | u32::from(kept).wrapping_neg();
        let one = (word & !itself) | (node & itself);
        let siblings = one.div_ceil(2);
        Self {
            siblings,
            count: 3 - (itself & (1 + node % 2)),
            leaves: u32::from(leaves[siblings as usize]),
        }
    }

    /// Both, as nodes.
    #[inline(always)]
    fn nodes(&self) -> [u32; 2] {
        let second = 2 * self.siblings;
        [second.wrapping_sub(1), second]
    }
}

impl<K: Kin, V: Bounds, L, C> Work for Descent<'_, K, V, L, C>
where
    L: FnMut(u32, u32),
    C: Cull,
{
    type Output = u32;

    #[inline(always)]
    fn run<W: Width>(mut self, width: W) -> u32 {
        let ([first, second], budget) = (self.trees, self.budget);
        let words = [first.0.words(), second.0.words()];
        let len = self.stack.len();
        let mut pending = Pending {
            stack: self.stack,
            len,
            leaves: [(0, 0); FOUR * (BATCH + 1)],
            found: 0,
        };
        let mut batch = [(0, 0); BATCH];
        let mut tests = 0;
        while tests < budget && pending.len > 0 {
            // No more than must be taken: each leads to four tests at most.
            let wanted = ((budget - tests).div_ceil(4) as usize).min(BATCH);
            let taken = pending.pop(&mut batch[..wanted]);
            let before = pending.len;
            for &(a, b) in taken {
                if K::SAME && a == b {
                    // All pairs below one node: those below each child, and those between the children.
                    if let Node::Inner(child) = first.0.node(a) {
                        let siblings = child.div_ceil(2);
                        let leaves = first.0.leaves(siblings);
                        let [one, two] = [leaves & 1 != 0, leaves & 2 != 0];
                        let between = first.1.between(siblings);
                        pending.push((child, child + 1), between, one & two);
                        pending.push((child, child), !one, false);
                        pending.push((child + 1, child + 1), !two, false);
                    }
                    tests += 1;
                    continue;
                }
                if first.0.is_leaf(a) & second.0.is_leaf(b) {
                    (self.leaf)(a, b);
                    tests += 1;
                    continue;
                }
                // Of nodes that differ in size the larger is descended, of a leaf and another node the other.
                let (mut kept, mut others_kept) = (false, false);
                if K::UNLIKE && !(first.0.is_leaf(a) | second.0.is_leaf(b)) {
                    let (one, two) = (first.1.size(a), second.1.size(b));
                    (kept, others_kept) = (two > LARGER * one, one > LARGER * two);
                }
                let one = Side::new(words[0], a, kept);
                let two = Side::new(words[1], b, others_kept);
                let counts = FIRST[one.count as usize & 3] & SECOND[two.count as usize & 3];
                let leaves = FIRST[one.leaves as usize & 3] & SECOND[two.leaves as usize & 3];
                let meets = first.1.meets(width, one.siblings, second.1, two.siblings);
                let ([p, q], [r, s]) = (one.nodes().map(u64::from), two.nodes().map(u64::from));
                let four = [p | r << 32, p | s << 32, q | r << 32, q | s << 32];
                pending.push_four(width, four, meets & counts, leaves);
                tests += counts.count_ones();
            }
            if let Some(cull) = &self.cull {
                pending.leave_out(before, cull);
            }
            if tests < budget {
                tests += pending.found as u32;
                for &(a, b) in &pending.leaves[..pending.found] {
                    (self.leaf)(a, b);
                }
            } else {
                // Not now.
                pending.keep_leaves();
            }
            pending.found = 0;
        }
        tests
    }
}
