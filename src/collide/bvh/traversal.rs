//! The traversal of two hierarchies: pairs of nodes whose volumes meet, down to pairs of leaves.
//!
//! In: two trees with the volumes of their nodes, and a stack of tests to begin with. Out: pairs of
//! leaves, as nodes. A processor cannot foresee whether a test succeeds, nor which of two nodes is
//! a leaf, so that nothing branches on either. Four tests are made at once, of siblings that lie
//! side by side in memory. Where one of two nodes is not descended, its sibling is tested in vain.
//!
//! Culling is asked only where it may have an answer. Nodes that do not touch at rest have no
//! answer, nor has any pair below them: they are marked once, and most tests are of these. Culling
//! is not asked of leaves either, nor of two generations in a row, because an answer costs as much
//! as a few tests.

use crate::collide::bvh::kdop::Kdop;
use crate::collide::bvh::tree::{Below, Bvh};
use crate::simd::{InstructionSet, Kernel, Lanes, up_to_avx2};

/// The mark, in the second node of a test, of a pair of which culling knows nothing, nor of any
/// pair below it.
const FAR: u32 = 1 << 31;
/// The mark of a pair of which culling was asked. It is not asked again of the pairs right below,
/// which lie in hardly smaller blocks, but of those below them.
const ASKED: u32 = 1 << 30;

/// The second node of a test.
#[inline(always)]
pub(in crate::collide) fn second_of(test: (u32, u32)) -> u32 {
    test.1 & !(FAR | ASKED)
}

/// Asks culling of tests of two nodes. `left` is given those that it does not know to be apart, as
/// they stand on a stack, each with its place among all.
pub(in crate::collide) fn ask_all(
    cull: &impl Cull,
    tests: impl Iterator<Item = (u32, u32)> + Clone,
    left: impl FnMut(usize, (u32, u32)),
) {
    up_to_avx2(Asking { cull, tests, left });
}

/// The arguments of [`ask_all`].
struct Asking<'a, C, I, L> {
    cull: &'a C,
    tests: I,
    left: L,
}

impl<C: Cull, I, L> Kernel for Asking<'_, C, I, L>
where
    I: Iterator<Item = (u32, u32)> + Clone,
    L: FnMut(usize, (u32, u32)),
{
    type Output = ();

    #[inline(always)]
    fn run<S: Lanes>(mut self, set: S) {
        for (a, b) in self.tests.clone() {
            self.cull.prefetch(set, a, b);
        }
        for (at, (a, b)) in self.tests.enumerate() {
            let Asked { far, apart } = self.cull.ask(a, b);
            if !apart {
                (self.left)(at, marked((a, b), far));
            }
        }
    }
}

/// Marks a test of which culling was asked, and which knows nothing of pairs below it if it is
/// `far`.
#[inline(always)]
fn marked((a, b): (u32, u32), far: bool) -> (u32, u32) {
    (a, b | (u32::from(far) * FAR) | (u32::from(a != b) * ASKED))
}

/// Culling: it leaves out pairs of nodes that it knows to be apart.
pub(in crate::collide) trait Cull {
    /// Whether it leaves nothing out.
    const NEVER: bool = false;

    /// Asks memory for what it reads to answer for two nodes.
    fn prefetch(&self, set: impl InstructionSet, a: u32, b: u32);

    /// Its answer for two nodes.
    fn ask(&self, a: u32, b: u32) -> Asked;
}

/// The answer of culling for two nodes.
#[derive(Clone, Copy, Debug)]
pub(in crate::collide) struct Asked {
    /// It knows nothing of them, nor of any pair below them.
    pub(in crate::collide) far: bool,
    /// It knows that they are apart.
    pub(in crate::collide) apart: bool,
}

/// The culling that knows nothing.
pub(in crate::collide) struct Never;

impl Cull for Never {
    const NEVER: bool = true;

    fn prefetch(&self, _: impl InstructionSet, _: u32, _: u32) {}

    fn ask(&self, _: u32, _: u32) -> Asked {
        Asked {
            far: true,
            apart: false,
        }
    }
}

/// No culling.
pub(in crate::collide) const EVERY: Option<Never> = None;

/// A hierarchy with the volumes of its nodes.
pub(in crate::collide) type Tree<'a, V> = (&'a Bvh, V);

/// The volumes of a tree's nodes, as tests ask for them. Siblings have a number: k is that of nodes
/// 2 k - 1 and 2 k, and 0 that of the root, which stands for both.
pub(in crate::collide) trait NodeVolumes: Copy {
    /// Tells which of two siblings meet which of two others: bit 2 i + j is for the i-th of the
    /// first two and the j-th of the others.
    fn meets(self, set: impl InstructionSet, siblings: u32, other: Self, others: u32) -> u32;

    /// The nodes below a node of their tree.
    fn below(self, tree: &Bvh, node: u32) -> Below;

    /// Asks memory for two siblings that are tested next.
    fn prefetch(self, set: impl InstructionSet, siblings: u32);

    /// Whether two siblings overlap.
    fn between(self, siblings: u32) -> bool;

    /// How large a node is, in whatever unit.
    fn size(self, node: u32) -> f32;
}

impl<const N: usize> NodeVolumes for &[Kdop<N>] {
    #[inline(always)]
    fn meets(self, _: impl InstructionSet, siblings: u32, other: Self, others: u32) -> u32 {
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
    fn below(self, tree: &Bvh, node: u32) -> Below {
        tree.below(node)
    }

    #[inline(always)]
    fn prefetch(self, set: impl InstructionSet, siblings: u32) {
        set.prefetch_value(&self[2 * siblings as usize]);
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

/// The number of pending tests that are taken at once. While one of them waits (for the nodes,
/// their volumes, the number of its tests that succeed), the next can begin. The end of a batch is
/// not foreseen, so a batch is not short. Its data, which in a large cloth are far away in memory,
/// are asked for at its start: the longer the batch, the less it waits.
const BATCH: usize = 128;
/// The number of tests that are made at once.
const FOUR: usize = 4;

/// The room for the tests that a batch leads to, and for what is written behind them.
const ROOM: usize = FOUR * (BATCH + 1);

/// A stack of tests. More are put onto it than stay: those that fail are overwritten.
struct Pending<'s> {
    stack: &'s mut Vec<(u32, u32)>,
    /// The number of entries of `stack` that are tests.
    len: usize,
    /// The pairs of leaves that a batch has led to, and their number.
    leaves: [(u32, u32); ROOM],
    found: usize,
    /// The tests of which culling is to be asked, and their number.
    doubts: [(u32, u32); ROOM],
    doubtful: usize,
}

/// The four pairs of one of two siblings and one of two others, as tests, in the order in which
/// [`NodeVolumes::meets`] answers. Both siblings are given by the second of them; the second node
/// of a test is in the upper half of its number.
#[inline(always)]
fn pairs(set: impl InstructionSet, second: u32, others_second: u32) -> [u64; FOUR] {
    #[cfg(target_arch = "x86_64")]
    if let Some(avx2) = set.avx2() {
        return avx2::pairs(avx2, second, others_second);
    }
    let _ = set;
    let [p, q] = [second.wrapping_sub(1), second].map(u64::from);
    let [r, s] = [others_second.wrapping_sub(1), others_second].map(u64::from);
    [p | r << 32, p | s << 32, q | r << 32, q | s << 32]
}

/// Moves the values whose bits are set, of four, to the front in their order. The entries behind
/// them have no meaning.
#[inline(always)]
fn gather(set: impl InstructionSet, values: [u64; FOUR], of: u32) -> [u64; FOUR] {
    #[cfg(target_arch = "x86_64")]
    if let Some(avx2) = set.avx2() {
        return avx2::gather(avx2, values, of);
    }
    let _ = set;
    let mut all = [0; FOUR];
    let mut at = 0;
    for (k, value) in values.into_iter().enumerate() {
        all[at & 3] = value;
        at += (of >> k & 1) as usize;
    }
    all
}

/// Puts the tests whose bits are set, of four, behind others. The entries behind them have no
/// meaning.
#[inline(always)]
fn put(
    set: impl InstructionSet,
    to: &mut [(u32, u32)],
    at: &mut usize,
    tests: [u64; FOUR],
    which: u32,
) {
    let room = to[*at..].first_chunk_mut().expect("room for four");
    *room = gather(set, tests, which).map(|test| (test as u32, (test >> 32) as u32));
    *at += which.count_ones() as usize;
}

impl<'s> Pending<'s> {
    fn new(stack: &'s mut Vec<(u32, u32)>) -> Self {
        Self {
            len: stack.len(),
            stack,
            leaves: [(0, 0); ROOM],
            found: 0,
            doubts: [(0, 0); ROOM],
            doubtful: 0,
        }
    }

    /// Takes the newest tests, as many as there is room for, and makes room for what they may lead
    /// to.
    #[inline(always)]
    fn pop<'b, T>(
        &mut self,
        batch: &'b mut [((u32, u32), T)],
        of: impl Fn((u32, u32)) -> T,
    ) -> &'b mut [((u32, u32), T)] {
        let count = batch.len().min(self.len);
        let batch = &mut batch[..count];
        // They are read one by one, because what was just written by fours is not there yet for
        // wider reads.
        for (test, newest) in batch.iter_mut().zip(self.stack[..self.len].iter().rev()) {
            *test = (*newest, of((newest.0, second_of(*newest))));
        }
        self.len -= count;
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

    /// Puts those of four tests that succeed on the stack, or beside it if they are of leaves.
    #[inline(always)]
    fn push_four(
        &mut self,
        set: impl InstructionSet,
        tests: [u64; FOUR],
        succeed: u32,
        leaves: u32,
    ) {
        put(set, self.stack, &mut self.len, tests, succeed & !leaves);
        put(
            set,
            &mut self.leaves,
            &mut self.found,
            tests,
            succeed & leaves,
        );
    }

    /// Puts a test whose volumes overlap on the list of those of which culling is asked.
    #[inline(always)]
    fn doubt(&mut self, test: (u32, u32), succeeds: bool) {
        self.doubts[self.doubtful] = test;
        self.doubtful += usize::from(succeeds);
    }

    /// Asks culling of the tests on its list, and puts on the stack those that it does not leave
    /// out.
    #[inline(always)]
    fn settle(&mut self, set: impl InstructionSet, cull: &impl Cull) {
        let doubtful = std::mem::take(&mut self.doubtful);
        for &(a, b) in &self.doubts[..doubtful] {
            cull.prefetch(set, a, b);
        }
        for at in 0..doubtful {
            let (a, b) = self.doubts[at];
            let Asked { far, apart } = cull.ask(a, b);
            self.stack[self.len] = marked((a, b), far);
            self.len += usize::from(!apart);
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

/// The relation of two hierarchies.
pub(in crate::collide) trait Kin {
    /// Whether they are one hierarchy: equal nodes stand for all pairs below.
    const SAME: bool = false;
    /// Whether their nodes differ in size: of two, the larger is descended alone.
    const UNLIKE: bool = false;
}

/// One hierarchy and itself.
pub(in crate::collide) enum Same {}
/// Two hierarchies whose nodes are alike from the root to the leaves.
pub(in crate::collide) enum Alike {}
/// Two hierarchies whose nodes differ in size.
pub(in crate::collide) enum Unlike {}

impl Kin for Same {
    const SAME: bool = true;
}

impl Kin for Alike {}

impl Kin for Unlike {
    const UNLIKE: bool = true;
}

/// The ratio of sizes from which on a node is descended alone.
const LARGER: f32 = 2.0;

/// The tests that the bits of the first node's [`Below`] leave of four, and, four bits higher,
/// those with leaves.
const FIRST: [u8; 16] = masks([0, 0b0011, 0b1100, 0b1111]);
/// The tests that those of the second node leave.
const SECOND: [u8; 16] = masks([0, 0b0101, 0b1010, 0b1111]);

/// Makes masks of two bits for each sibling from those of none, one or both of the siblings.
const fn masks(of: [u8; 4]) -> [u8; 16] {
    let mut masks = [0; 16];
    let mut bits = 0;
    while bits < 16 {
        masks[bits] = of[bits >> 2] | of[bits & 3] << 4;
        bits += 1;
    }
    masks
}

/// Tests two hierarchies, until nothing is left or until `budget` tests were made; returns how many
/// were.
///
/// Their relation says how they are descended. `leaf` is given pairs of leaves, as nodes, whose
/// volumes overlap; pairs of nodes that `cull` knows to be apart are left out.
pub(in crate::collide) fn advance<K: Kin, V: NodeVolumes>(
    trees: [Tree<'_, V>; 2],
    stack: &mut Vec<(u32, u32)>,
    budget: u32,
    leaf: impl FnMut(&[(u32, u32)]),
    cull: Option<impl Cull>,
) -> u32 {
    match cull {
        Some(cull) => up_to_avx2(Descent::<K, V, _, _>::new(trees, stack, budget, leaf, cull)),
        None => up_to_avx2(Descent::<K, V, _, _>::new(
            trees, stack, budget, leaf, Never,
        )),
    }
}

/// The arguments of [`advance`].
struct Descent<'a, K, V, L, C> {
    trees: [Tree<'a, V>; 2],
    stack: &'a mut Vec<(u32, u32)>,
    budget: u32,
    leaf: L,
    cull: C,
    kin: std::marker::PhantomData<K>,
}

impl<'a, K, V, L, C> Descent<'a, K, V, L, C> {
    fn new(
        trees: [Tree<'a, V>; 2],
        stack: &'a mut Vec<(u32, u32)>,
        budget: u32,
        leaf: L,
        cull: C,
    ) -> Self {
        Self {
            trees,
            stack,
            budget,
            leaf,
            cull,
            kin: std::marker::PhantomData,
        }
    }
}

impl<K: Kin, V: NodeVolumes, L, C> Kernel for Descent<'_, K, V, L, C>
where
    L: FnMut(&[(u32, u32)]),
    C: Cull,
{
    type Output = u32;

    #[inline(always)]
    fn run<S: Lanes>(mut self, set: S) -> u32 {
        let ([first, second], budget) = (self.trees, self.budget);
        let mut pending = Pending::new(self.stack);
        let mut batch = [((0, 0), [Below::default(); 2]); BATCH];
        let mut tests = 0;
        while tests < budget && pending.len > 0 {
            // Each of them leads to four tests at most.
            let wanted = ((budget - tests).div_ceil(4) as usize).min(BATCH);
            let batch = pending.pop(&mut batch[..wanted], |(a, b)| {
                let (one, two) = (first.1.below(first.0, a), second.1.below(second.0, b));
                first.1.prefetch(set, one.siblings());
                second.1.prefetch(set, two.siblings());
                [one, two]
            });
            for &mut (test, [mut one, mut two]) in batch {
                let (a, b, far) = (test.0, second_of(test), test.1 & FAR);
                if K::SAME && a == b {
                    // All pairs below one node: those below each child, and those between the
                    // children.
                    if one.is_both() {
                        let [child, next] = one.nodes();
                        let [first_is, next_is] = [one.bits() & 1 != 0, one.bits() & 2 != 0];
                        let between = first.1.between(one.siblings());
                        if C::NEVER | (first_is & next_is) {
                            pending.push((child, next), between, first_is & next_is);
                        } else {
                            pending.doubt((child, next), between);
                        }
                        for (child, is_leaf) in [(child, first_is), (next, next_is)] {
                            if C::NEVER {
                                pending.push((child, child), !is_leaf, false);
                            } else {
                                pending.doubt((child, child), !is_leaf);
                            }
                        }
                    }
                    tests += 1;
                    continue;
                }
                match (one.is_both(), two.is_both()) {
                    (false, false) => {
                        (self.leaf)(&[(a, b)]);
                        tests += 1;
                        continue;
                    }
                    // The larger of two nodes is descended.
                    (true, true) if K::UNLIKE => {
                        let (size, other) = (first.1.size(a), second.1.size(b));
                        if other > LARGER * size {
                            one = Below::itself(a);
                        }
                        if size > LARGER * other {
                            two = Below::itself(b);
                        }
                    }
                    _ => {}
                }
                let masks = u32::from(FIRST[one.bits()] & SECOND[two.bits()]);
                let (counts, both_leaves) = (masks & 15, masks >> 4);
                let meets = (first.1).meets(set, one.siblings(), second.1, two.siblings());
                let meets = meets & counts;
                let four = pairs(set, one.nodes()[1], two.nodes()[1] | far);
                if C::NEVER {
                    pending.push_four(set, four, meets, both_leaves);
                } else {
                    // All bits are set if culling is not asked.
                    let marked = u32::from(test.1 != b).wrapping_neg();
                    let settled = marked | both_leaves;
                    pending.push_four(set, four, meets & settled, both_leaves);
                    let (doubts, doubtful) = (&mut pending.doubts, &mut pending.doubtful);
                    put(set, doubts, doubtful, four, meets & !settled);
                }
                tests += counts.count_ones();
            }
            pending.settle(set, &self.cull);
            if tests < budget {
                tests += pending.found as u32;
                let leaves = &mut pending.leaves[..pending.found];
                for (s, t) in &mut *leaves {
                    *t = second_of((*s, *t));
                    first.0.prefetch(set, *s);
                    second.0.prefetch(set, *t);
                }
                (self.leaf)(leaves);
            } else {
                // Not now.
                pending.keep_leaves();
            }
            pending.found = 0;
        }
        tests
    }
}

/// The functions of this file in instructions of AVX2.
#[cfg(target_arch = "x86_64")]
mod avx2 {
    use pulp::cast;
    use pulp::x86::V3;

    /// The places of the words of four values of two words each, for each set of wanted values:
    /// those of the wanted ones come first, in their order.
    const WANTED: [[u32; 8]; 16] = {
        let mut wanted = [[0; 8]; 16];
        let mut of = 0;
        while of < 16 {
            let (mut at, mut k) = (0, 0);
            while k < 4 {
                if of >> k & 1 != 0 {
                    wanted[of][at] = 2 * k;
                    wanted[of][at + 1] = 2 * k + 1;
                    at += 2;
                }
                k += 1;
            }
            of += 1;
        }
        wanted
    };

    #[inline(always)]
    pub(super) fn pairs(set: V3, second: u32, others_second: u32) -> [u64; 4] {
        /// The steps from the second of siblings to each of a pair.
        const BACK: [i32; 8] = [-1, -1, -1, 0, 0, -1, 0, 0];
        let seconds = u64::from(second) | u64::from(others_second) << 32;
        let four = set.avx._mm256_set1_epi64x(seconds as i64);
        cast(set.avx2._mm256_add_epi32(four, cast(BACK)))
    }

    #[inline(always)]
    pub(super) fn gather(set: V3, values: [u64; 4], of: u32) -> [u64; 4] {
        let places = WANTED[of as usize & 15];
        cast((set.avx2)._mm256_permutevar8x32_epi32(cast(values), cast(places)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::simd::by_each_set;

    #[derive(Clone, Copy)]
    struct Pairing(u32, u32);

    impl Kernel for Pairing {
        type Output = [u64; FOUR];

        #[inline(always)]
        fn run<S: Lanes>(self, set: S) -> [u64; FOUR] {
            pairs(set, self.0, self.1)
        }
    }

    #[derive(Clone, Copy)]
    struct Gathering([u64; FOUR], u32);

    impl Kernel for Gathering {
        type Output = [u64; FOUR];

        #[inline(always)]
        fn run<S: Lanes>(self, set: S) -> [u64; FOUR] {
            gather(set, self.0, self.1)
        }
    }

    proptest! {
        #[test]
        fn each_instruction_set_makes_the_same_pairs(
            second in 0..5_u32, other in 0..5_u32, mark in 0..4_u32,
        ) {
            let (second, other) = (2 * second, (2 * other) | (mark << 30));
            for found in by_each_set(Pairing(second, other)) {
                for (k, pair) in (0..).zip(found) {
                    prop_assert_eq!(pair as u32, second.wrapping_sub(1 - k / 2));
                    prop_assert_eq!((pair >> 32) as u32, other.wrapping_sub(1 - k % 2));
                }
            }
        }
    }

    #[test]
    fn each_instruction_set_gathers_what_is_wanted_in_its_order() {
        let values = [5, 6, 7 << 40, 8];
        for of in 0..16_u32 {
            let wanted = (0..4).filter(|k| of >> k & 1 != 0).map(|k| values[k]);
            let wanted: Vec<u64> = wanted.collect();
            for found in by_each_set(Gathering(values, of)) {
                assert_eq!(found[..wanted.len()], wanted, "{of:b}");
            }
        }
    }
}
