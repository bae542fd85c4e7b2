//! Lanes for processors with vectors of four or eight f64.

use pulp::x86::{V3, V4};
use pulp::{Simd, WithSimd, f64x4, f64x8};

use super::{Eights, InstructionSet, Kernel, Lanes};

/// A kernel, and the proof that the processor has the instructions.
pub(super) struct With<K, S>(pub(super) K, pub(super) S);

impl<K: Kernel, L: Lanes> WithSimd for With<K, L> {
    type Output = K::Output;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> K::Output {
        self.0.run(self.1)
    }
}

impl InstructionSet for V3 {
    #[inline(always)]
    fn avx2(self) -> Option<V3> {
        Some(self)
    }

    #[inline(always)]
    fn prefetch<T>(self, value: &T, ahead: usize) {
        /// The hint for all caches.
        const HINT: i32 = 3;
        let at = std::ptr::from_ref(value).cast::<i8>().wrapping_add(ahead);
        self.sse._mm_prefetch::<HINT>(at);
    }

    #[inline(always)]
    fn prefetch_late<T>(self, value: &T, ahead: usize) {
        /// The hint for all caches but the nearest.
        const HINT: i32 = 2;
        let at = std::ptr::from_ref(value).cast::<i8>().wrapping_add(ahead);
        self.sse._mm_prefetch::<HINT>(at);
    }
}

impl InstructionSet for V4 {
    #[inline(always)]
    fn avx2(self) -> Option<V3> {
        Some(*self)
    }

    #[inline(always)]
    fn prefetch<T>(self, value: &T, ahead: usize) {
        (*self).prefetch(value, ahead);
    }

    #[inline(always)]
    fn prefetch_late<T>(self, value: &T, ahead: usize) {
        (*self).prefetch_late(value, ahead);
    }
}

/// A proof that includes that of [`V3`].
trait Three: Eights {
    fn three(self) -> V3;

    fn joined(self, halves: [f64x4; 2]) -> Self::Eight;

    fn cut(self, eight: Self::Eight) -> [f64x4; 2];
}

impl Three for V3 {
    #[inline(always)]
    fn three(self) -> V3 {
        self
    }

    #[inline(always)]
    fn joined(self, halves: [f64x4; 2]) -> [f64x4; 2] {
        halves
    }

    #[inline(always)]
    fn cut(self, eight: [f64x4; 2]) -> [f64x4; 2] {
        eight
    }
}

impl Three for V4 {
    #[inline(always)]
    fn three(self) -> V3 {
        *self
    }

    #[inline(always)]
    fn joined(self, [first, last]: [f64x4; 2]) -> f64x8 {
        let first = self.avx512f._mm512_castpd256_pd512(pulp::cast(first));
        let both = self
            .avx512f
            ._mm512_insertf64x4::<1>(first, pulp::cast(last));
        pulp::cast(both)
    }

    #[inline(always)]
    fn cut(self, eight: f64x8) -> [f64x4; 2] {
        let eight = pulp::cast(eight);
        [
            pulp::cast(self.avx512f._mm512_castpd512_pd256(eight)),
            pulp::cast(self.avx512f._mm512_extractf64x4_pd::<1>(eight)),
        ]
    }
}

impl Eights for V3 {
    type Eight = [f64x4; 2];

    const IS_ONE: bool = false;

    #[inline(always)]
    fn splat_eight(self, value: f64) -> [f64x4; 2] {
        [self.splat_f64s(value); 2]
    }

    #[inline(always)]
    fn load_eight(self, values: &[f64; 8]) -> [f64x4; 2] {
        pulp::cast(*values)
    }

    #[inline(always)]
    fn load_eight_short(self, values: &[f32; 8]) -> [f64x4; 2] {
        let [first @ .., _, _, _, _] = values;
        let [_, _, _, _, last @ ..] = values;
        [first, last].map(|four| self.load_short(four))
    }

    #[inline(always)]
    fn store_eight(self, eight: [f64x4; 2]) -> [f64; 8] {
        pulp::cast(eight)
    }

    #[inline(always)]
    fn shorten_eight(self, eight: [f64x4; 2]) -> [f32; 8] {
        pulp::cast(eight.map(|four| self.avx._mm256_cvtpd_ps(pulp::cast(four))))
    }

    #[inline(always)]
    fn add_eight(self, a: [f64x4; 2], b: [f64x4; 2]) -> [f64x4; 2] {
        [0, 1].map(|i| self.add_f64s(a[i], b[i]))
    }

    #[inline(always)]
    fn fused_eight(self, sum: [f64x4; 2], a: [f64x4; 2], b: [f64x4; 2]) -> [f64x4; 2] {
        [0, 1].map(|i| self.mul_add_f64s(a[i], b[i], sum[i]))
    }

    #[inline(always)]
    fn subtract_eight(self, a: [f64x4; 2], b: [f64x4; 2]) -> [f64x4; 2] {
        [0, 1].map(|i| self.sub_f64s(a[i], b[i]))
    }

    #[inline(always)]
    fn multiply_eight(self, a: [f64x4; 2], b: [f64x4; 2]) -> [f64x4; 2] {
        [0, 1].map(|i| self.mul_f64s(a[i], b[i]))
    }

    #[inline(always)]
    fn divide_eight(self, a: [f64x4; 2], b: [f64x4; 2]) -> [f64x4; 2] {
        [0, 1].map(|i| self.div_f64s(a[i], b[i]))
    }

    #[inline(always)]
    fn root_eight(self, a: [f64x4; 2]) -> [f64x4; 2] {
        a.map(|a| self.root(a))
    }

    #[inline(always)]
    fn positive_eight(self, a: [f64x4; 2]) -> [f64x4; 2] {
        a.map(|a| self.positive(a))
    }

    #[inline(always)]
    fn where_less_eight(
        self,
        [a, b]: [[f64x4; 2]; 2],
        yes: [f64x4; 2],
        no: [f64x4; 2],
    ) -> [f64x4; 2] {
        [0, 1].map(|i| self.where_less([a[i], b[i]], yes[i], no[i]))
    }
}

impl Eights for V4 {
    type Eight = f64x8;

    const IS_ONE: bool = true;

    #[inline(always)]
    fn splat_eight(self, value: f64) -> f64x8 {
        self.splat_f64x8(value)
    }

    #[inline(always)]
    fn load_eight(self, values: &[f64; 8]) -> f64x8 {
        pulp::cast(*values)
    }

    #[inline(always)]
    fn load_eight_short(self, values: &[f32; 8]) -> f64x8 {
        self.convert_f32x8_to_f64x8(pulp::cast(*values))
    }

    #[inline(always)]
    fn store_eight(self, eight: f64x8) -> [f64; 8] {
        pulp::cast(eight)
    }

    #[inline(always)]
    fn shorten_eight(self, eight: f64x8) -> [f32; 8] {
        pulp::cast(self.convert_f64x8_to_f32x8(eight))
    }

    #[inline(always)]
    fn add_eight(self, a: f64x8, b: f64x8) -> f64x8 {
        self.add_f64s(a, b)
    }

    #[inline(always)]
    fn fused_eight(self, sum: f64x8, a: f64x8, b: f64x8) -> f64x8 {
        self.mul_add_f64x8(a, b, sum)
    }

    #[inline(always)]
    fn subtract_eight(self, a: f64x8, b: f64x8) -> f64x8 {
        self.sub_f64s(a, b)
    }

    #[inline(always)]
    fn multiply_eight(self, a: f64x8, b: f64x8) -> f64x8 {
        self.mul_f64s(a, b)
    }

    #[inline(always)]
    fn divide_eight(self, a: f64x8, b: f64x8) -> f64x8 {
        self.div_f64s(a, b)
    }

    #[inline(always)]
    fn root_eight(self, a: f64x8) -> f64x8 {
        self.sqrt_f64s(a)
    }

    #[inline(always)]
    fn positive_eight(self, a: f64x8) -> f64x8 {
        // The second where the first is not above it, or no number.
        let zero = pulp::cast(self.splat_f64x8(0.0));
        pulp::cast(self.avx512f._mm512_max_pd(pulp::cast(a), zero))
    }

    #[inline(always)]
    fn where_less_eight(self, [a, b]: [f64x8; 2], yes: f64x8, no: f64x8) -> f64x8 {
        self.select_f64s(self.less_than_f64s(a, b), yes, no)
    }
}

impl<S: Three> Lanes for S {
    type Four = f64x4;

    #[inline(always)]
    fn splat(self, value: f64) -> f64x4 {
        self.three().splat_f64s(value)
    }

    #[inline(always)]
    fn load(self, values: &[f64; 4]) -> f64x4 {
        pulp::cast(*values)
    }

    #[inline(always)]
    fn load_short(self, values: &[f32; 4]) -> f64x4 {
        pulp::cast(self.three().avx._mm256_cvtps_pd(pulp::cast(*values)))
    }

    #[inline(always)]
    fn shortened(self, a: f64x4) -> [f32; 4] {
        pulp::cast(self.three().avx._mm256_cvtpd_ps(pulp::cast(a)))
    }

    #[inline(always)]
    fn add_product(self, sum: f64x4, a: f64x4, b: f64x4) -> f64x4 {
        self.three().add_f64s(sum, self.three().mul_f64s(a, b))
    }

    #[inline(always)]
    fn fused(self, sum: f64x4, a: f64x4, b: f64x4) -> f64x4 {
        self.three().mul_add_f64s(a, b, sum)
    }

    #[inline(always)]
    fn add(self, a: f64x4, b: f64x4) -> f64x4 {
        self.three().add_f64s(a, b)
    }

    #[inline(always)]
    fn multiply(self, a: f64x4, b: f64x4) -> f64x4 {
        self.three().mul_f64s(a, b)
    }

    #[inline(always)]
    fn subtract(self, a: f64x4, b: f64x4) -> f64x4 {
        self.three().sub_f64s(a, b)
    }

    #[inline(always)]
    fn divide(self, a: f64x4, b: f64x4) -> f64x4 {
        self.three().div_f64s(a, b)
    }

    #[inline(always)]
    fn root(self, a: f64x4) -> f64x4 {
        self.three().sqrt_f64s(a)
    }

    #[inline(always)]
    fn positive(self, a: f64x4) -> f64x4 {
        // The second where the first is not above it, or no number.
        let zero = pulp::cast(self.three().splat_f64s(0.0));
        pulp::cast(self.three().avx._mm256_max_pd(pulp::cast(a), zero))
    }

    #[inline(always)]
    fn where_less(self, [a, b]: [f64x4; 2], yes: f64x4, no: f64x4) -> f64x4 {
        self.three()
            .select_f64s(self.three().less_than_f64s(a, b), yes, no)
    }

    #[inline(always)]
    fn transposed(self, rows: [f64x4; 4]) -> [f64x4; 4] {
        let avx = self.three().avx;
        let [a, b, c, d] = rows;
        let (a, b) = (pulp::cast(a), pulp::cast(b));
        let (c, d) = (pulp::cast(c), pulp::cast(d));
        // a0 b0 a2 b2, a1 b1 a3 b3
        let (ab02, ab13) = (avx._mm256_unpacklo_pd(a, b), avx._mm256_unpackhi_pd(a, b));
        let (cd02, cd13) = (avx._mm256_unpacklo_pd(c, d), avx._mm256_unpackhi_pd(c, d));
        [
            pulp::cast(avx._mm256_permute2f128_pd::<0x20>(ab02, cd02)),
            pulp::cast(avx._mm256_permute2f128_pd::<0x20>(ab13, cd13)),
            pulp::cast(avx._mm256_permute2f128_pd::<0x31>(ab02, cd02)),
            pulp::cast(avx._mm256_permute2f128_pd::<0x31>(ab13, cd13)),
        ]
    }

    #[inline(always)]
    fn coordinates(self, [a, b, c]: [f64x4; 3]) -> [f64x4; 3] {
        let avx = self.three().avx;
        let (a, b, c) = (pulp::cast(a), pulp::cast(b), pulp::cast(c));
        // x0 y0 x2 y2, z0 x1 z2 x3, y1 z1 y3 z3
        let xy = avx._mm256_blend_pd::<0b1100>(a, b);
        let zx = avx._mm256_permute2f128_pd::<0x21>(a, c);
        let yz = avx._mm256_blend_pd::<0b1100>(b, c);
        [
            pulp::cast(avx._mm256_blend_pd::<0b1010>(xy, zx)),
            pulp::cast(avx._mm256_shuffle_pd::<0b0101>(xy, yz)),
            pulp::cast(avx._mm256_blend_pd::<0b1010>(zx, yz)),
        ]
    }

    #[inline(always)]
    fn vectors(self, [x, y, z]: [f64x4; 3]) -> [f64x4; 3] {
        let avx = self.three().avx;
        let (x, y, z) = (pulp::cast(x), pulp::cast(y), pulp::cast(z));
        // As above.
        let xy = avx._mm256_unpacklo_pd(x, y);
        let zx = avx._mm256_blend_pd::<0b1010>(z, x);
        let yz = avx._mm256_unpackhi_pd(y, z);
        [
            pulp::cast(avx._mm256_permute2f128_pd::<0x20>(xy, zx)),
            pulp::cast(avx._mm256_blend_pd::<0b1100>(yz, xy)),
            pulp::cast(avx._mm256_permute2f128_pd::<0x31>(zx, yz)),
        ]
    }

    #[inline(always)]
    fn sums(self, [a, b, c]: [f64x4; 3]) -> f64x4 {
        let (a, b, c) = (pulp::cast(a), pulp::cast(b), pulp::cast(c));
        // a01 b01 a23 b23, c01 c01 c23 c23
        let (ab, cc) = (
            self.three().avx._mm256_hadd_pd(a, b),
            self.three().avx._mm256_hadd_pd(c, c),
        );
        // a01 b01 c23 c23, a23 b23 c01 c01
        let straight: f64x4 = pulp::cast(self.three().avx._mm256_blend_pd::<0b1100>(ab, cc));
        let crossed: f64x4 = pulp::cast(self.three().avx._mm256_permute2f128_pd::<0x21>(ab, cc));
        self.three().add_f64s(straight, crossed)
    }

    #[inline(always)]
    fn join(self, halves: [f64x4; 2]) -> S::Eight {
        self.joined(halves)
    }

    #[inline(always)]
    fn halves(self, eight: S::Eight) -> [f64x4; 2] {
        self.cut(eight)
    }

    #[inline(always)]
    fn store(self, four: f64x4) -> [f64; 4] {
        pulp::cast(four)
    }
}
