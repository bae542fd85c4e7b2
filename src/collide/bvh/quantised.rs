//! Quantised volumes: 18 planes of 16 bits each, on the lines of a step's
//! [grid](crate::collide::bvh::grid).
//!
//! A volume takes less than half the bytes that it takes in f32, and vector instructions test eight
//! pairs of planes at once. No contact is lost, because volumes only sort out pairs of features:
//! positions decide which of the rest are contacts. Volumes are integers, so tests of them have the
//! same results on every machine.

use crate::collide::bvh::traversal::NodeVolumes;
use crate::collide::bvh::tree::{Below, Bvh};
use crate::heap_bytes::owns_no_heap;
use crate::simd::InstructionSet;

/// The number of directions whose lines fill a register.
pub(in crate::collide) const WIDE: usize = 8;

/// A volume: lower lines along eight directions, negated upper lines, and both along the ninth
/// direction with zeros behind them, so that all operations are on registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(align(16))]
pub(in crate::collide) struct Quantised {
    pub(in crate::collide) low: [i16; WIDE],
    pub(in crate::collide) high: [i16; WIDE],
    pub(in crate::collide) last: [i16; WIDE],
}

owns_no_heap!(Quantised);

/// The volumes of two siblings, side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(align(16))]
pub(in crate::collide) struct Siblings {
    low: [[i16; WIDE]; 2],
    high: [[i16; WIDE]; 2],
    /// The lines along the ninth direction: two of the first sibling, two of the second.
    last: [i16; 4],
    /// The nodes or leaves below each sibling. They lie here because there is room, and a test of
    /// the two reads them next.
    pub(in crate::collide) below: [Below; 2],
}

owns_no_heap!(Siblings);

/// Both lines along the ninth direction.
#[inline(always)]
pub(in crate::collide) fn ninth(low: i16, high: i16) -> [i16; WIDE] {
    [low, high, 0, 0, 0, 0, 0, 0]
}

/// The lesser of each two numbers.
#[inline(always)]
fn least(mut a: [i16; WIDE], b: [i16; WIDE]) -> [i16; WIDE] {
    for k in 0..WIDE {
        a[k] = a[k].min(b[k]);
    }
    a
}

/// The widest gaps of eight pairs of planes, both ways round.
#[inline(always)]
fn gaps(
    (low, high): (&[i16; WIDE], &[i16; WIDE]),
    (others_low, others_high): (&[i16; WIDE], &[i16; WIDE]),
) -> [i16; WIDE] {
    let mut gaps = [0; WIDE];
    for k in 0..WIDE {
        let below = low[k].saturating_add(others_high[k]);
        let above = high[k].saturating_add(others_low[k]);
        gaps[k] = below.max(above);
    }
    gaps
}

#[inline(always)]
fn any_positive(gaps: &[i16; WIDE]) -> bool {
    gaps.iter().fold(false, |any, &gap| any | (gap > 0))
}

impl Quantised {
    /// The value before it is known.
    pub(in crate::collide) const NOTHING: Self = Self {
        low: [0; WIDE],
        high: [0; WIDE],
        last: [0; WIDE],
    };

    /// The smallest volume that contains both.
    #[inline(always)]
    pub(in crate::collide) fn union(&self, other: &Self) -> Self {
        Self {
            low: least(self.low, other.low),
            high: least(self.high, other.high),
            last: least(self.last, other.last),
        }
    }

    /// Whether no pair of planes separates the two.
    #[inline(always)]
    pub(in crate::collide) fn overlaps(&self, other: &Self) -> bool {
        let mut gaps = gaps((&self.low, &self.high), (&other.low, &other.high));
        // Both ways round along the ninth direction; behind, zeros are no gaps.
        let [low, high, ..] = other.last;
        let turned = ninth(high, low);
        for k in 0..WIDE {
            gaps[k] = gaps[k].max(self.last[k].saturating_add(turned[k]));
        }
        !any_positive(&gaps)
    }

    /// The sum of the lengths of its box's sides in lines.
    #[inline]
    fn size(&self) -> i32 {
        (0..3)
            .map(|k| -i32::from(self.high[k]) - i32::from(self.low[k]))
            .sum()
    }
}

impl Siblings {
    /// The value before they are known.
    pub(in crate::collide) const NOTHING: Self = Self {
        low: [[0; WIDE]; 2],
        high: [[0; WIDE]; 2],
        last: [0; 4],
        below: [Below::NOTHING; 2],
    };

    /// Puts a volume in the place of one of the two.
    #[inline(always)]
    pub(in crate::collide) fn put(&mut self, side: usize, volume: &Quantised) {
        self.low[side] = volume.low;
        self.high[side] = volume.high;
        let [low, high, ..] = volume.last;
        self.last[2 * side] = low;
        self.last[2 * side + 1] = high;
    }

    /// One of the two.
    #[inline(always)]
    pub(in crate::collide) fn one(&self, side: usize) -> Quantised {
        Quantised {
            low: self.low[side],
            high: self.high[side],
            last: ninth(self.last[2 * side], self.last[2 * side + 1]),
        }
    }

    /// The smallest volume that contains both.
    #[inline(always)]
    pub(in crate::collide) fn union(&self) -> Quantised {
        self.one(0).union(&self.one(1))
    }
}

/// The volumes of a tree. Volumes of siblings stand together: nodes n, odd, and n + 1 at (n + 1) /
/// 2, and at 0 the root's, twice.
#[derive(Clone, Copy, Debug)]
pub(in crate::collide) struct Nodes<'a>(pub(in crate::collide) &'a [Siblings]);

impl<'a> Nodes<'a> {
    /// The volume of a node.
    #[inline(always)]
    pub(in crate::collide) fn of(self, node: u32) -> Quantised {
        let at = node as usize + 1;
        self.0[at / 2].one(at % 2)
    }

    /// The number of nodes.
    pub(in crate::collide) fn count(self) -> usize {
        (2 * self.0.len()).saturating_sub(1)
    }

    /// The volume of the root, if there is one.
    pub(in crate::collide) fn root(self) -> Option<Quantised> {
        self.0.first().map(|both| both.one(0))
    }
}

/// Tells which of two siblings meet which of two others: bit 2 i + j is for the i-th of the first
/// two and the j-th of the others.
#[inline(always)]
pub(in crate::collide) fn meets(set: impl InstructionSet, a: &Siblings, b: &Siblings) -> u32 {
    #[cfg(target_arch = "x86_64")]
    if let Some(avx2) = set.avx2() {
        return avx2::meets(avx2, a, b);
    }
    let _ = set;
    let [l0, h0, l1, h1] = a.last;
    let mine = [l0, h0, l1, h1, l0, h0, l1, h1];
    let [l0, h0, l1, h1] = b.last;
    let theirs = [h0, l0, h1, l1, h1, l1, h0, l0];
    // The gaps of all four along the ninth direction at once.
    let mut ninth = [0; WIDE];
    for k in 0..WIDE {
        ninth[k] = mine[k].saturating_add(theirs[k]);
    }
    let meet = |i: usize, j: usize, at: usize| {
        let mut gaps = gaps((&a.low[i], &a.high[i]), (&b.low[j], &b.high[j]));
        for k in 0..WIDE {
            gaps[k] = gaps[k].max(ninth[2 * at + k % 2]);
        }
        u32::from(!any_positive(&gaps))
    };
    meet(0, 0, 0) | meet(0, 1, 2) << 1 | meet(1, 0, 3) << 2 | meet(1, 1, 1) << 3
}

impl NodeVolumes for Nodes<'_> {
    #[inline(always)]
    fn meets(self, set: impl InstructionSet, siblings: u32, other: Self, others: u32) -> u32 {
        meets(set, &self.0[siblings as usize], &other.0[others as usize])
    }

    #[inline(always)]
    fn below(self, _: &Bvh, node: u32) -> Below {
        let at = node as usize + 1;
        self.0[at / 2].below[at % 2]
    }

    #[inline(always)]
    fn prefetch(self, set: impl InstructionSet, siblings: u32) {
        set.prefetch_value(&self.0[siblings as usize]);
    }

    #[inline(always)]
    fn between(self, siblings: u32) -> bool {
        let both = &self.0[siblings as usize];
        both.one(0).overlaps(&both.one(1))
    }

    #[inline(always)]
    fn size(self, node: u32) -> f32 {
        self.of(node).size() as f32
    }
}

/// The functions of this file in instructions of AVX2.
#[cfg(target_arch = "x86_64")]
mod avx2 {
    use pulp::cast;
    use pulp::x86::V3;

    use super::Siblings;

    /// The bytes of numbers of 16 bits, by the places of the numbers.
    const fn places(of: [u8; 8]) -> [u8; 16] {
        let mut bytes = [0; 16];
        let mut k = 0;
        while k < 8 {
            bytes[2 * k] = 2 * of[k];
            bytes[2 * k + 1] = 2 * of[k] + 1;
            k += 1;
        }
        bytes
    }

    /// The order of lower and negated upper lines along the ninth direction: those of each of the
    /// first two twice; those of both others in turn, the upper before the lower.
    const FIRST: [u8; 16] = places([0, 1, 0, 1, 2, 3, 2, 3]);
    const SECOND: [u8; 16] = places([1, 0, 3, 2, 1, 0, 3, 2]);

    #[inline(always)]
    pub(super) fn meets(set: V3, a: &Siblings, b: &Siblings) -> u32 {
        let (avx2, zero) = (set.avx2, set.avx._mm256_setzero_si256());
        let (low, high) = (cast(a.low), cast(a.high));
        let both = |one: [i16; 8]| avx2._mm256_broadcastsi128_si256(cast(one));
        // The widest gaps of both of the first and one of the others along eight directions.
        let gaps = |j: usize| {
            let below = avx2._mm256_adds_epi16(low, both(b.high[j]));
            let above = avx2._mm256_adds_epi16(high, both(b.low[j]));
            avx2._mm256_max_epi16(below, above)
        };
        // One byte of each gap, in the order of the answers: saturated, they keep their signs.
        let gaps = avx2._mm256_packs_epi16(gaps(0), gaps(1));
        let last = |of: &Siblings, places: [u8; 16]| {
            let [p, q, r, s] = of.last;
            let last = cast([p, q, r, s, 0, 0, 0, 0]);
            set.ssse3._mm_shuffle_epi8(last, cast(places))
        };
        let ninth = (set.sse2)._mm_adds_epi16(last(a, FIRST), last(b, SECOND));
        let ninth = avx2._mm256_cvtepi16_epi32(ninth);
        let apart = avx2._mm256_or_si256(
            avx2._mm256_cmpgt_epi8(gaps, zero),
            avx2._mm256_cmpgt_epi32(ninth, zero),
        );
        let meet = avx2._mm256_cmpeq_epi64(apart, zero);
        set.avx._mm256_movemask_pd(cast(meet)) as u32
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::simd::{Kernel, Lanes, by_each_set};

    #[derive(Clone, Copy)]
    struct Meet<'a>(&'a Siblings, &'a Siblings);

    impl Kernel for Meet<'_> {
        type Output = u32;

        #[inline(always)]
        fn run<S: Lanes>(self, set: S) -> u32 {
            meets(set, self.0, self.1)
        }
    }

    /// Two volumes, near each other or anywhere.
    fn siblings() -> impl Strategy<Value = Siblings> {
        let lines = || prop_oneof![-3..4i16, -32_000..32_001i16];
        prop::array::uniform(lines()).prop_map(|all: [i16; 36]| {
            let eight = |at: usize| std::array::from_fn(|k| all[at + k]);
            Siblings {
                low: [eight(0), eight(8)],
                high: [eight(16), eight(24)],
                last: [all[32], all[33], all[34], all[35]],
                below: [Below::NOTHING; 2],
            }
        })
    }

    proptest! {
        #[test]
        fn each_instruction_set_tests_four_pairs_as_they_are_tested_alone(
            a in siblings(), b in siblings(),
        ) {
            let each = |k: u32| a.one(k as usize / 2).overlaps(&b.one(k as usize % 2));
            let expected = (0..4).fold(0, |all, k| all | u32::from(each(k)) << k);
            for found in by_each_set(Meet(&a, &b)) {
                prop_assert_eq!(found, expected);
            }
        }
    }
}
