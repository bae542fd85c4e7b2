//! Four tests of volumes at once, compiled twice: for any processor of its kind, and for those with wider vectors, chosen when they
//! run. Volumes are integers: the answers are the same on every machine.

use glam::DVec3;

use crate::collide::bvh::quantised::{LANES, Lines, Packed, Siblings, Ways, eight, four, seen};
use crate::collide::cull::separation_bound::{self, Ends, Slack};

/// What a traversal does with vectors.
pub(in crate::collide) trait Width: Copy {
    /// Which of two siblings meet which of two others, bit 2 i + j for the i-th of the first and the j-th of the second.
    fn meets(self, a: &Siblings, b: &Siblings) -> u32;

    /// Of two pairs of siblings, whose second nodes are given, the pairs of one of the first and one of the others, which are in the upper
    /// half: in the order of [`Self::meets`].
    fn pairs(self, second: u32, others_second: u32) -> [u64; 4];

    /// Of four values those whose bits are set, in their order, and then whatever.
    fn gather(self, values: [u64; 4], of: u32) -> [u64; 4];

    /// Asks for a value, for it to be near when it is read.
    fn prefetch<T>(self, value: &T);

    /// Where eight points are at the start and at the end, seen from an anchor.
    fn ways(self, points: [[DVec3; 2]; LANES], anchor: DVec3) -> Ways;

    /// The volumes of eight points that go these ways.
    fn volumes(self, lines: &Lines, ways: &Ways) -> [Packed; LANES];

    /// The bounds of a triangle's gradients, see [`separation_bound::bounds`].
    fn gradients(self, corners: [&Ends; 3], inverse: &[f32; 4], slack: Slack) -> [f32; 16];

    /// The squared firmness that bounds prove, see [`separation_bound::square_of`].
    fn square(self, bounds: &[f32; 16]) -> f32;
}

/// Work that is compiled for a width. What it calls must be inlined into it, or is compiled for any processor.
pub(in crate::collide) trait Work {
    /// What comes out.
    type Output;

    /// Does it; to be marked `#[inline(always)]`.
    fn run<W: Width>(self, width: W) -> Self::Output;
}

/// Does work with the widest vectors that the processor has.
#[inline]
pub(in crate::collide) fn widest<J: Work>(work: J) -> J::Output {
    #[cfg(target_arch = "x86_64")]
    if let Some(avx2) = pulp::x86::V3::try_new() {
        return pulp::Simd::vectorize(avx2, wide::With(work, avx2));
    }
    work.run(Plain)
}

/// What the compiler makes vectors of, where it sees any.
#[derive(Clone, Copy)]
pub(in crate::collide) struct Plain;

impl Width for Plain {
    #[inline(always)]
    fn meets(self, a: &Siblings, b: &Siblings) -> u32 {
        let [p, q, r, s] = four(a, b).map(u32::from);
        p | q << 1 | r << 2 | s << 3
    }

    #[inline(always)]
    fn pairs(self, second: u32, others_second: u32) -> [u64; 4] {
        let [p, q] = [second.wrapping_sub(1), second].map(u64::from);
        let [r, s] = [others_second.wrapping_sub(1), others_second].map(u64::from);
        [p | r << 32, p | s << 32, q | r << 32, q | s << 32]
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

    #[inline(always)]
    fn prefetch<T>(self, _: &T) {}

    #[inline(always)]
    fn ways(self, points: [[DVec3; 2]; LANES], anchor: DVec3) -> Ways {
        seen(&points, anchor)
    }

    #[inline(always)]
    fn volumes(self, lines: &Lines, ways: &Ways) -> [Packed; LANES] {
        eight(lines, ways)
    }

    #[inline(always)]
    fn gradients(self, corners: [&Ends; 3], inverse: &[f32; 4], slack: Slack) -> [f32; 16] {
        separation_bound::bounds(corners, inverse, slack)
    }

    #[inline(always)]
    fn square(self, bounds: &[f32; 16]) -> f32 {
        separation_bound::square_of(bounds)
    }
}

#[cfg(target_arch = "x86_64")]
mod wide {
    use std::arch::x86_64::{__m128, __m128i, __m256, __m256d, __m256i};

    use glam::DVec3;
    use pulp::x86::V3;
    use pulp::{Simd, WithSimd, cast};

    use super::{Ends, Slack, Width, Work, separation_bound};
    use crate::collide::bvh::quantised::{
        BORDER, LANES, Lines, PAIRS, Packed, Siblings, WIDE, Ways,
    };

    /// Work, and the proof that the processor has the instructions.
    pub(in crate::collide) struct With<J>(pub(in crate::collide) J, pub(in crate::collide) V3);

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
        fn pairs(self, second: u32, others_second: u32) -> [u64; 4] {
            /// From the second of siblings to each of a pair.
            const BACK: [i32; 8] = [-1, -1, -1, 0, 0, -1, 0, 0];
            let seconds = u64::from(second) | u64::from(others_second) << 32;
            let four = self.avx._mm256_set1_epi64x(seconds as i64);
            cast(self.avx2._mm256_add_epi32(four, cast(BACK)))
        }

        #[inline(always)]
        fn gather(self, values: [u64; 4], of: u32) -> [u64; 4] {
            let places = WANTED[of as usize & 15];
            cast((self.avx2)._mm256_permutevar8x32_epi32(cast(values), cast(places)))
        }

        #[inline(always)]
        fn prefetch<T>(self, value: &T) {
            /// Into all caches.
            const HINT: i32 = 3;
            let start = std::ptr::from_ref(value).cast::<i8>();
            self.sse._mm_prefetch::<HINT>(start);
            // It may begin in one line and end in the next.
            if size_of::<T>() > align_of::<T>() {
                let last = start.wrapping_add(size_of::<T>() - 1);
                self.sse._mm_prefetch::<HINT>(last);
            }
        }

        #[inline(always)]
        fn ways(self, points: [[DVec3; 2]; LANES], anchor: DVec3) -> Ways {
            let anchor = self.four(anchor);
            let (mut start, mut end) = ([[0.0; 4]; LANES], [[0.0; 4]; LANES]);
            for i in 0..LANES {
                start[i] = self.narrow(points[i][0], anchor);
                end[i] = self.narrow(points[i][1], anchor);
            }
            Ways {
                start: self.by_coordinates(start),
                end: self.by_coordinates(end),
            }
        }

        #[inline(always)]
        fn volumes(self, lines: &Lines, ways: &Ways) -> [Packed; LANES] {
            let (starts, ends) = (self.nine(&ways.start), self.nine(&ways.end));
            let (mut low, mut high) = ([[0; LANES]; PAIRS], [[0; LANES]; PAIRS]);
            for k in 0..PAIRS {
                [low[k], high[k]] = self.lines((starts[k], ends[k]), lines, k);
            }
            let ([low @ .., low9], [high @ .., high9]) = (low, high);
            let (low, high) = (self.transposed(low), self.transposed(high));
            let mut ninth = [[0; LANES]; WIDE];
            (ninth[0], ninth[1]) = (low9, high9);
            let last = self.transposed(ninth);
            let mut volumes = [Packed::NOTHING; LANES];
            for i in 0..LANES {
                volumes[i] = Packed {
                    low: low[i],
                    high: high[i],
                    last: last[i],
                };
            }
            volumes
        }

        #[inline(always)]
        fn gradients(
            self,
            [a, b, c]: [&Ends; 3],
            &[ux, uy, vx, vy]: &[f32; 4],
            slack: Slack,
        ) -> [f32; 16] {
            let avx = self.avx;
            let [entry, share] = slack.shares();
            let (entry, share) = (avx._mm256_set1_ps(entry), avx._mm256_set1_ps(share));
            let a = cast(a.0);
            let (e, f) = (
                avx._mm256_sub_ps(cast(b.0), a),
                avx._mm256_sub_ps(cast(c.0), a),
            );
            let u = avx._mm256_add_ps(
                avx._mm256_mul_ps(e, avx._mm256_set1_ps(ux)),
                avx._mm256_mul_ps(f, avx._mm256_set1_ps(uy)),
            );
            let v = avx._mm256_add_ps(
                avx._mm256_mul_ps(e, avx._mm256_set1_ps(vx)),
                avx._mm256_mul_ps(f, avx._mm256_set1_ps(vy)),
            );
            // Of the first three of each half, in turn.
            let (uu, vv) = (avx._mm256_mul_ps(u, u), avx._mm256_mul_ps(v, v));
            let (first, third) = (
                avx._mm256_unpacklo_ps(uu, vv),
                avx._mm256_unpackhi_ps(uu, vv),
            );
            let two = avx._mm256_add_ps(first, avx._mm256_permute_ps::<0b01_00_11_10>(first));
            let squares = avx._mm256_add_ps(two, avx._mm256_permute_ps::<0b01_00_01_00>(third));
            let turned = avx._mm256_permute_ps::<0b10_11_00_01>(squares);
            let uv = avx._mm256_mul_ps(u, v);
            let two = avx._mm256_add_ps(
                avx._mm256_permute_ps::<0b00_00_00_00>(uv),
                avx._mm256_permute_ps::<0b01_01_01_01>(uv),
            );
            let uv = avx._mm256_add_ps(two, avx._mm256_permute_ps::<0b10_10_10_10>(uv));
            let uv = avx._mm256_andnot_ps(avx._mm256_set1_ps(-0.0), uv);
            let stretch = avx._mm256_sub_ps(avx._mm256_min_ps(turned, squares), uv);
            let both = avx._mm256_add_ps(turned, squares);
            let size = avx._mm256_add_ps(both, avx._mm256_set1_ps(1.0));
            let stretch = avx._mm256_sub_ps(stretch, avx._mm256_mul_ps(share, size));
            let u = avx._mm256_blend_ps::<0b1000_1000>(u, stretch);
            let starts = avx._mm256_permute2f128_ps::<0x20>(u, v);
            let ends = avx._mm256_permute2f128_ps::<0x31>(u, v);
            let low = avx._mm256_sub_ps(avx._mm256_min_ps(starts, ends), entry);
            let less = avx._mm256_sub_ps(avx._mm256_setzero_ps(), entry);
            let high = avx._mm256_sub_ps(less, avx._mm256_max_ps(starts, ends));
            cast([low, high])
        }

        #[inline(always)]
        fn square(self, bounds: &[f32; 16]) -> f32 {
            let avx = self.avx;
            let [low, high]: [__m256; 2] = cast(*bounds);
            let half = avx._mm256_mul_ps(avx._mm256_add_ps(low, high), avx._mm256_set1_ps(-0.5));
            let other = avx._mm256_permute2f128_ps::<0x01>(half, half);
            let squares: [f32; 8] = cast(avx._mm256_dp_ps::<0x7f>(half, half));
            let across: [f32; 8] = cast(avx._mm256_dp_ps::<0x7f>(half, other));
            separation_bound::deviating(bounds[3], squares[0], squares[4], across[0])
        }
    }

    /// Not closures, which would be compiled for any processor wherever they are not inlined.
    trait Eight {
        /// Coordinates of eight points along the nine directions.
        fn nine(self, points: &[[f32; LANES]; 3]) -> [__m256; PAIRS];

        /// The nearest lines.
        fn rounded(self, at: __m256) -> __m256i;

        /// Along a direction the lower lines of all, and the negated upper ones.
        fn lines(self, ends: (__m256, __m256), lines: &Lines, k: usize) -> [[i16; LANES]; 2];

        /// The coordinates, and nothing.
        fn four(self, point: DVec3) -> __m256d;

        /// A point seen from an anchor, and nothing.
        fn narrow(self, point: DVec3, anchor: __m256d) -> [f32; 4];

        /// The first three of each, side by side.
        fn by_coordinates(self, points: [[f32; 4]; LANES]) -> [[f32; LANES]; 3];

        /// Rows for columns.
        fn transposed(self, rows: [[i16; LANES]; WIDE]) -> [[i16; WIDE]; LANES];
    }

    impl Eight for V3 {
        #[inline(always)]
        fn four(self, point: DVec3) -> __m256d {
            self.avx._mm256_set_pd(0.0, point.z, point.y, point.x)
        }

        #[inline(always)]
        fn narrow(self, point: DVec3, anchor: __m256d) -> [f32; 4] {
            let seen = self.avx._mm256_sub_pd(self.four(point), anchor);
            cast(self.avx._mm256_cvtpd_ps(seen))
        }

        #[inline(always)]
        fn by_coordinates(self, points: [[f32; 4]; LANES]) -> [[f32; LANES]; 3] {
            let avx = self.avx;
            let [a, b, c, d, e, f, g, h]: [__m128; LANES] = cast(points);
            // Two in each, four lanes apart.
            let (ae, bf) = (avx._mm256_set_m128(e, a), avx._mm256_set_m128(f, b));
            let (cg, dh) = (avx._mm256_set_m128(g, c), avx._mm256_set_m128(h, d));
            let (xy, zw) = (
                avx._mm256_unpacklo_ps(ae, bf),
                avx._mm256_unpackhi_ps(ae, bf),
            );
            let (xy2, zw2) = (
                avx._mm256_unpacklo_ps(cg, dh),
                avx._mm256_unpackhi_ps(cg, dh),
            );
            [
                cast(avx._mm256_shuffle_ps::<0b01_00_01_00>(xy, xy2)),
                cast(avx._mm256_shuffle_ps::<0b11_10_11_10>(xy, xy2)),
                cast(avx._mm256_shuffle_ps::<0b01_00_01_00>(zw, zw2)),
            ]
        }

        #[inline(always)]
        fn nine(self, &[x, y, z]: &[[f32; LANES]; 3]) -> [__m256; PAIRS] {
            let avx = self.avx;
            let (x, y, z) = (cast(x), cast(y), cast(z));
            [
                x,
                y,
                z,
                avx._mm256_add_ps(x, y),
                avx._mm256_add_ps(x, z),
                avx._mm256_add_ps(y, z),
                avx._mm256_sub_ps(x, y),
                avx._mm256_sub_ps(x, z),
                avx._mm256_sub_ps(y, z),
            ]
        }

        #[inline(always)]
        fn rounded(self, at: __m256) -> __m256i {
            let avx = self.avx;
            let at = avx._mm256_max_ps(at, avx._mm256_set1_ps(-BORDER));
            let held = avx._mm256_min_ps(at, avx._mm256_set1_ps(BORDER));
            // To the nearest, and of two as near to the even one.
            avx._mm256_cvtps_epi32(held)
        }

        #[inline(always)]
        fn lines(self, (a, b): (__m256, __m256), lines: &Lines, k: usize) -> [[i16; LANES]; 2] {
            let (avx, avx2) = (self.avx, self.avx2);
            let scale = avx._mm256_set1_ps(lines.scale[k]);
            let least = avx._mm256_mul_ps(avx._mm256_min_ps(a, b), scale);
            let most = avx._mm256_mul_ps(avx._mm256_max_ps(a, b), scale);
            let low = avx._mm256_add_ps(least, avx._mm256_set1_ps(lines.low[k]));
            let high = avx._mm256_sub_ps(avx._mm256_set1_ps(lines.high[k]), most);
            let fours = avx2._mm256_packs_epi32(self.rounded(low), self.rounded(high));
            cast(avx2._mm256_permute4x64_epi64::<0b11_01_10_00>(fours))
        }

        #[inline(always)]
        fn transposed(self, rows: [[i16; LANES]; WIDE]) -> [[i16; WIDE]; LANES] {
            let sse2 = self.sse2;
            let [a, b, c, d, e, f, g, h]: [__m128i; WIDE] = cast(rows);
            // Of two rows, of four, of all.
            let (ab, ab2) = (sse2._mm_unpacklo_epi16(a, b), sse2._mm_unpackhi_epi16(a, b));
            let (cd, cd2) = (sse2._mm_unpacklo_epi16(c, d), sse2._mm_unpackhi_epi16(c, d));
            let (ef, ef2) = (sse2._mm_unpacklo_epi16(e, f), sse2._mm_unpackhi_epi16(e, f));
            let (gh, gh2) = (sse2._mm_unpacklo_epi16(g, h), sse2._mm_unpackhi_epi16(g, h));
            let (p, q) = (
                sse2._mm_unpacklo_epi32(ab, cd),
                sse2._mm_unpackhi_epi32(ab, cd),
            );
            let (r, s) = (
                sse2._mm_unpacklo_epi32(ab2, cd2),
                sse2._mm_unpackhi_epi32(ab2, cd2),
            );
            let (t, u) = (
                sse2._mm_unpacklo_epi32(ef, gh),
                sse2._mm_unpackhi_epi32(ef, gh),
            );
            let (v, w) = (
                sse2._mm_unpacklo_epi32(ef2, gh2),
                sse2._mm_unpackhi_epi32(ef2, gh2),
            );
            cast([
                sse2._mm_unpacklo_epi64(p, t),
                sse2._mm_unpackhi_epi64(p, t),
                sse2._mm_unpacklo_epi64(q, u),
                sse2._mm_unpackhi_epi64(q, u),
                sse2._mm_unpacklo_epi64(r, v),
                sse2._mm_unpackhi_epi64(r, v),
                sse2._mm_unpacklo_epi64(s, w),
                sse2._mm_unpackhi_epi64(s, w),
            ])
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::collide::bvh::quantised::PAIRS;
    use crate::collide::bvh::quantised::tests::siblings;

    struct Both<'a>(&'a Siblings, &'a Siblings);

    impl Work for Both<'_> {
        type Output = (u32, [u64; 4]);

        #[inline(always)]
        fn run<W: Width>(self, width: W) -> (u32, [u64; 4]) {
            let meets = width.meets(self.0, self.1);
            (meets, width.gather([5, 6, 7 << 40, 8], meets))
        }
    }

    struct Pairing(u32, u32);

    impl Work for Pairing {
        type Output = [u64; 4];

        #[inline(always)]
        fn run<W: Width>(self, width: W) -> [u64; 4] {
            width.pairs(self.0, self.1)
        }
    }

    struct Seeing([[DVec3; 2]; LANES], DVec3);

    impl Work for Seeing {
        type Output = Ways;

        #[inline(always)]
        fn run<W: Width>(self, width: W) -> Ways {
            width.ways(self.0, self.1)
        }
    }

    struct Eight<'a>(&'a Lines, &'a Ways);

    impl Work for Eight<'_> {
        type Output = [Packed; LANES];

        #[inline(always)]
        fn run<W: Width>(self, width: W) -> [Packed; LANES] {
            width.volumes(self.0, self.1)
        }
    }

    struct Bounding<'a>([&'a Ends; 3], &'a [f32; 4], Slack);

    impl Work for Bounding<'_> {
        type Output = ([f32; 16], f32);

        #[inline(always)]
        fn run<W: Width>(self, width: W) -> ([f32; 16], f32) {
            let bounds = width.gradients(self.0, self.1, self.2);
            (bounds, width.square(&bounds))
        }
    }

    /// A point, some of whose coordinates are no numbers, or none that are short.
    fn place() -> impl Strategy<Value = DVec3> {
        let number = prop_oneof![
            20 => -1.0..1.0_f64,
            1 => prop::num::f64::ANY,
        ];
        prop::array::uniform3(number).prop_map(DVec3::from)
    }

    /// Three coordinates of eight points, some of them no numbers.
    fn points() -> impl Strategy<Value = [[f32; LANES]; 3]> {
        let number = prop_oneof![
            20 => -1.0..1.0_f32,
            1 => prop::num::f32::ANY,
        ];
        prop::array::uniform3(prop::array::uniform8(number))
    }

    proptest! {
        #[test]
        fn any_width_has_the_same_volumes(
            start in points(), end in points(), radius in 0.0..9.0_f32,
            scale in 1e-3..1e5_f32, first in prop::array::uniform9(-4e4..4e4_f32),
        ) {
            let lines = Lines::new([scale; PAIRS], first.map(f64::from), f64::from(radius));
            let ways = Ways { start, end };
            let plain = Eight(&lines, &ways).run(Plain);
            prop_assert_eq!(plain, widest(Eight(&lines, &ways)));
        }

        #[test]
        fn any_width_sees_the_same_ways(
            points in prop::array::uniform8(prop::array::uniform2(place())), anchor in place(),
        ) {
            let of = || Seeing(points, anchor);
            let (plain, wide) = (of().run(Plain), widest(of()));
            for (a, b) in [(plain.start, wide.start), (plain.end, wide.end)] {
                for (a, b) in a.as_flattened().iter().zip(b.as_flattened()) {
                    prop_assert!(a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan());
                }
            }
        }

        #[test]
        fn any_width_has_the_same_gradients(
            corners in prop::array::uniform3(prop::array::uniform8(-9.0..9.0_f32)),
            inverse in prop::array::uniform4(-9.0..9.0_f32),
            farthest in 1.0..1e3_f64,
        ) {
            // The last of each end is zero.
            let corners = corners.map(|[a, b, c, _, d, e, f, _]| Ends([a, b, c, 0.0, d, e, f, 0.0]));
            let [a, b, c] = &corners;
            let slack = Slack::new(farthest, 18.0).unwrap();
            let of = || Bounding([a, b, c], &inverse, slack);
            let ((plain, square), (wide, wide_square)) = (of().run(Plain), widest(of()));
            for k in (0..16).filter(|k| *k != 7 && *k != 11 && *k != 15) {
                prop_assert_eq!(plain[k].to_bits(), wide[k].to_bits(), "{}", k);
            }
            prop_assert_eq!(square.to_bits(), wide_square.to_bits());
        }

        #[test]
        fn any_width_has_the_same_pairs(second in 0..5_u32, other in 0..5_u32, mark in 0..4_u32) {
            let (second, other) = (2 * second, (2 * other) | (mark << 30));
            let plain = Pairing(second, other).run(Plain);
            prop_assert_eq!(plain, widest(Pairing(second, other)));
            for (k, pair) in (0..).zip(plain) {
                prop_assert_eq!(pair as u32, second.wrapping_sub(1 - k / 2));
                prop_assert_eq!((pair >> 32) as u32, other.wrapping_sub(1 - k % 2));
            }
        }

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
