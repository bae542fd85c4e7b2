//! Four tests of volumes at once, compiled twice: for any processor of its kind, and for those with wider vectors, chosen when they
//! run. Volumes are integers: the answers are the same on every machine.

use super::packed::{Siblings, four};

/// What a traversal does with vectors.
pub(super) trait Width: Copy {
    /// Which of two siblings meet which of two others, bit 2 i + j for the i-th of the first and the j-th of the second.
    fn meets(self, a: &Siblings, b: &Siblings) -> u32;

    /// Of four values those whose bits are set, in their order, and then whatever.
    fn gather(self, values: [u64; 4], of: u32) -> [u64; 4];
}

/// Work that is compiled for a width. What it calls must be inlined into it, or is compiled for any processor.
pub(super) trait Work {
    /// What comes out.
    type Output;

    /// Does it; to be marked `#[inline(always)]`.
    fn run<W: Width>(self, width: W) -> Self::Output;
}

/// Does work with the widest vectors that the processor has.
#[inline]
pub(super) fn widest<J: Work>(work: J) -> J::Output {
    #[cfg(target_arch = "x86_64")]
    if let Some(avx2) = pulp::x86::V3::try_new() {
        return pulp::Simd::vectorize(avx2, wide::With(work, avx2));
    }
    work.run(Plain)
}

/// What the compiler makes vectors of, where it sees any.
#[derive(Clone, Copy)]
pub(super) struct Plain;

impl Width for Plain {
    #[inline(always)]
    fn meets(self, a: &Siblings, b: &Siblings) -> u32 {
        let [p, q, r, s] = four(a, b).map(u32::from);
        p | q << 1 | r << 2 | s << 3
    }

    #[inline(always)]
    fn gather(self, values: [u64; 4], of: u32) -> [u64; 4] {
        let mut all = [0; 4];
        let mut at = 0;
        for (k, value) in values.into_iter().enumerate() {
            all[at & 3] = value;
            at += (of >> k & 1) as usize;
        }
        all
    }
}

#[cfg(target_arch = "x86_64")]
mod wide {
    use pulp::x86::V3;
    use pulp::{Simd, WithSimd, cast};

    use super::super::packed::Siblings;
    use super::{Width, Work};

    /// Work, and the proof that the processor has the instructions.
    pub(super) struct With<J>(pub(super) J, pub(super) V3);

    impl<J: Work> WithSimd for With<J> {
        type Output = J::Output;

        #[inline(always)]
        fn with_simd<S: Simd>(self, _: S) -> J::Output {
            self.0.run(self.1)
        }
    }

    /// For four values of two words each, and those of them that are wanted: the words in their order.
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

    /// Bytes of numbers in 16 bits, by their places.
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

    /// Lower and negated upper lines along the ninth direction: of each of the first twice; of the second both in turn, turned round.
    const FIRST: [u8; 16] = places([0, 1, 0, 1, 2, 3, 2, 3]);
    const SECOND: [u8; 16] = places([1, 0, 3, 2, 1, 0, 3, 2]);

    impl Width for V3 {
        #[inline(always)]
        fn meets(self, a: &Siblings, b: &Siblings) -> u32 {
            let (avx2, zero) = (self.avx2, self.avx._mm256_setzero_si256());
            let (low, high) = (cast(a.low), cast(a.high));
            let both = |one: [i16; 8]| avx2._mm256_broadcastsi128_si256(cast(one));
            // Of both of the first and one of the second, the widest gaps along eight directions.
            let gaps = |j: usize| {
                let below = avx2._mm256_adds_epi16(low, both(b.high[j]));
                let above = avx2._mm256_adds_epi16(high, both(b.low[j]));
                avx2._mm256_max_epi16(below, above)
            };
            // A byte of each, in the order of the answers: saturated, they keep their signs.
            let gaps = avx2._mm256_packs_epi16(gaps(0), gaps(1));
            let last = |of: &Siblings, places: [u8; 16]| {
                let [p, q, r, s] = of.last;
                let last = cast([p, q, r, s, 0, 0, 0, 0]);
                self.ssse3._mm_shuffle_epi8(last, cast(places))
            };
            let ninth = (self.sse2)._mm_adds_epi16(last(a, FIRST), last(b, SECOND));
            let ninth = avx2._mm256_cvtepi16_epi32(ninth);
            let apart = avx2._mm256_or_si256(
                avx2._mm256_cmpgt_epi8(gaps, zero),
                avx2._mm256_cmpgt_epi32(ninth, zero),
            );
            let meet = avx2._mm256_cmpeq_epi64(apart, zero);
            self.avx._mm256_movemask_pd(cast(meet)) as u32
        }

        #[inline(always)]
        fn gather(self, values: [u64; 4], of: u32) -> [u64; 4] {
            let places = WANTED[of as usize & 15];
            cast((self.avx2)._mm256_permutevar8x32_epi32(cast(values), cast(places)))
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::packed::tests::siblings;
    use super::*;

    struct Both<'a>(&'a Siblings, &'a Siblings);

    impl Work for Both<'_> {
        type Output = (u32, [u64; 4]);

        #[inline(always)]
        fn run<W: Width>(self, width: W) -> (u32, [u64; 4]) {
            let meets = width.meets(self.0, self.1);
            (meets, width.gather([5, 6, 7 << 40, 8], meets))
        }
    }

    proptest! {
        #[test]
        fn any_width_has_the_same_answers(a in siblings(), b in siblings()) {
            let (plain, wide) = (Both(&a, &b).run(Plain), widest(Both(&a, &b)));
            prop_assert_eq!(plain.0, wide.0);
            let count = plain.0.count_ones() as usize;
            prop_assert_eq!(&plain.1[..count], &wide.1[..count]);
            let each = |k: u32| a.one(k as usize / 2).overlaps(&b.one(k as usize % 2));
            prop_assert_eq!(plain.0, (0..4).fold(0, |all, k| all | u32::from(each(k)) << k));
        }
    }
}
