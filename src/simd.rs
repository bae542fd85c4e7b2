//! Loops compiled for every width: for any processor of its kind, and for those with vectors of four or eight f64, chosen when they run.
//!
//! Four lanes stand side by side, or eight where a loop can use them. Nothing is fused unless asked for and no lanes are added up: each lane rounds every
//! product and every sum as plain code does, and the bits are the same on every machine.

use std::ops::{Add, Div, Mul, Sub};

use glam::DVec3;

/// Arithmetic of eight lanes: one vector where there are such, otherwise two.
pub(crate) trait Eights: Copy {
    /// Eight numbers.
    type Eight: Copy;

    /// All lanes alike.
    fn splat_eight(self, value: f64) -> Self::Eight;
    /// Eight numbers that follow each other.
    fn load_eight(self, values: &[f64; 8]) -> Self::Eight;
    /// Eight short numbers that follow each other, exactly.
    fn load_eight_short(self, values: &[f32; 8]) -> Self::Eight;
    /// The numbers.
    fn store_eight(self, eight: Self::Eight) -> [f64; 8];
    /// The nearest short numbers.
    fn shorten_eight(self, eight: Self::Eight) -> [f32; 8];
    /// a + b.
    fn add_eight(self, a: Self::Eight, b: Self::Eight) -> Self::Eight;
    /// sum + a b, rounded once.
    fn fused_eight(self, sum: Self::Eight, a: Self::Eight, b: Self::Eight) -> Self::Eight;
    /// a − b.
    fn subtract_eight(self, a: Self::Eight, b: Self::Eight) -> Self::Eight;
    /// a b.
    fn multiply_eight(self, a: Self::Eight, b: Self::Eight) -> Self::Eight;
}

/// Arithmetic of four lanes.
pub(crate) trait Lanes: Eights {
    /// Four numbers.
    type Four: Copy;

    /// All lanes alike.
    fn splat(self, value: f64) -> Self::Four;
    /// Four numbers that follow each other.
    fn load(self, values: &[f64; 4]) -> Self::Four;
    /// Four short numbers that follow each other, exactly.
    fn load_short(self, values: &[f32; 4]) -> Self::Four;
    /// The nearest short numbers.
    fn shortened(self, a: Self::Four) -> [f32; 4];
    /// sum + a b, rounded twice.
    fn add_product(self, sum: Self::Four, a: Self::Four, b: Self::Four) -> Self::Four;
    /// sum + a b, rounded once: faster where the processor has an instruction for it, and slow where it has none.
    fn fused(self, sum: Self::Four, a: Self::Four, b: Self::Four) -> Self::Four;
    /// a + b.
    fn add(self, a: Self::Four, b: Self::Four) -> Self::Four;
    /// a b.
    fn multiply(self, a: Self::Four, b: Self::Four) -> Self::Four;
    /// a − b.
    fn subtract(self, a: Self::Four, b: Self::Four) -> Self::Four;
    /// a / b.
    fn divide(self, a: Self::Four, b: Self::Four) -> Self::Four;
    /// √a.
    fn root(self, a: Self::Four) -> Self::Four;
    /// a where it is above zero, otherwise zero.
    fn positive(self, a: Self::Four) -> Self::Four;
    /// `yes` in lanes where the first of two is less than the second, and `no` elsewhere and where one is no number.
    fn where_less(self, of: [Self::Four; 2], yes: Self::Four, no: Self::Four) -> Self::Four;
    /// Four by four numbers, with rows and columns exchanged.
    fn transposed(self, rows: [Self::Four; 4]) -> [Self::Four; 4];
    /// Of four vectors that follow each other the x, the y and the z.
    fn coordinates(self, vectors: [Self::Four; 3]) -> [Self::Four; 3];
    /// Four vectors that follow each other, from their x, y and z.
    fn vectors(self, coordinates: [Self::Four; 3]) -> [Self::Four; 3];
    /// The sums (f0 + f1) + (f2 + f3) of the lanes of each of three; the fourth lane is of no use.
    fn sums(self, of: [Self::Four; 3]) -> Self::Four;
    /// The numbers.
    fn store(self, four: Self::Four) -> [f64; 4];
    /// Asks for what stands so many bytes behind a value in memory, if there is anything.
    fn prefetch<T>(self, value: &T, ahead: usize);
}

/// A loop over lanes. What it calls must be inlined into it, or is compiled for any processor.
pub(crate) trait Loop {
    /// What comes out.
    type Output;

    /// Runs it; to be marked `#[inline(always)]`.
    fn run<L: Lanes>(self, lanes: L) -> Self::Output;
}

/// Runs a loop with the widest vectors that the processor has.
#[inline]
pub(crate) fn widest<W: Loop>(work: W) -> W::Output {
    #[cfg(target_arch = "x86_64")]
    if let Some(avx512) = pulp::x86::V4::try_new() {
        return pulp::Simd::vectorize(avx512, wide::With(work, avx512));
    }
    #[cfg(target_arch = "x86_64")]
    if let Some(avx2) = pulp::x86::V3::try_new() {
        return pulp::Simd::vectorize(avx2, wide::With(work, avx2));
    }
    work.run(Plain)
}

/// Runs a loop as it is compiled for any processor.
#[cfg(test)]
pub(crate) fn plain<W: Loop>(work: W) -> W::Output {
    work.run(Plain)
}

/// What comes out of a loop by every width that the processor has.
#[cfg(test)]
pub(crate) fn widths<W: Loop + Copy>(work: W) -> Vec<W::Output> {
    let mut all = vec![work.run(Plain)];
    #[cfg(target_arch = "x86_64")]
    {
        let four = pulp::x86::V3::try_new();
        all.extend(four.map(|four| pulp::Simd::vectorize(four, wide::With(work, four))));
        let eight = pulp::x86::V4::try_new();
        all.extend(eight.map(|eight| pulp::Simd::vectorize(eight, wide::With(work, eight))));
    }
    all
}

/// A vector, and a fourth number that is of no use: what stands behind it. Behind the last one there is nothing, and it is copied.
///
/// # Panics
/// If there is no such vector.
#[inline(always)]
pub(crate) fn four_at<'a>(vectors: &'a [DVec3], at: usize, room: &'a mut [f64; 4]) -> &'a [f64; 4] {
    let numbers: &[f64] = bytemuck::cast_slice(vectors);
    if let Some(four) = numbers.get(3 * at..).and_then(|rest| rest.first_chunk()) {
        return four;
    }
    room[..3].copy_from_slice(&vectors[at].to_array());
    room
}

/// Four numbers with their arithmetic, for formulas.
#[derive(Clone, Copy)]
pub(crate) struct Numbers<L: Lanes>(pub(crate) L, pub(crate) L::Four);

impl<L: Lanes> Numbers<L> {
    /// All four alike.
    #[inline(always)]
    pub(crate) fn splat(self, value: f64) -> Self {
        Self(self.0, self.0.splat(value))
    }

    /// This and a b, rounded once.
    #[inline(always)]
    pub(crate) fn fused(self, a: Self, b: Self) -> Self {
        Self(self.0, self.0.fused(self.1, a.1, b.1))
    }

    /// √a.
    #[inline(always)]
    pub(crate) fn root(self) -> Self {
        Self(self.0, self.0.root(self.1))
    }

    /// a where it is above zero, otherwise zero.
    #[inline(always)]
    pub(crate) fn positive(self) -> Self {
        Self(self.0, self.0.positive(self.1))
    }

    /// `yes` in lanes where this is less than another, and `no` elsewhere.
    #[inline(always)]
    pub(crate) fn where_less(self, than: Self, yes: Self, no: Self) -> Self {
        Self(self.0, self.0.where_less([self.1, than.1], yes.1, no.1))
    }

    /// One after the other.
    #[inline(always)]
    pub(crate) fn to_array(self) -> [f64; 4] {
        self.0.store(self.1)
    }
}

impl<L: Lanes> Add for Numbers<L> {
    type Output = Self;

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Self(self.0, self.0.add(self.1, other.1))
    }
}

impl<L: Lanes> Sub for Numbers<L> {
    type Output = Self;

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        Self(self.0, self.0.subtract(self.1, other.1))
    }
}

impl<L: Lanes> Mul for Numbers<L> {
    type Output = Self;

    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        Self(self.0, self.0.multiply(self.1, other.1))
    }
}

impl<L: Lanes> Div for Numbers<L> {
    type Output = Self;

    #[inline(always)]
    fn div(self, other: Self) -> Self {
        Self(self.0, self.0.divide(self.1, other.1))
    }
}

/// Lanes that the compiler makes vectors of, where it sees any.
#[derive(Clone, Copy)]
struct Plain;

impl Eights for Plain {
    type Eight = [f64; 8];

    #[inline(always)]
    fn splat_eight(self, value: f64) -> [f64; 8] {
        [value; 8]
    }

    #[inline(always)]
    fn load_eight(self, values: &[f64; 8]) -> [f64; 8] {
        *values
    }

    #[inline(always)]
    fn load_eight_short(self, values: &[f32; 8]) -> [f64; 8] {
        values.map(f64::from)
    }

    #[inline(always)]
    fn store_eight(self, eight: [f64; 8]) -> [f64; 8] {
        eight
    }

    #[inline(always)]
    fn shorten_eight(self, eight: [f64; 8]) -> [f32; 8] {
        eight.map(|number| number as f32)
    }

    #[inline(always)]
    fn add_eight(self, a: [f64; 8], b: [f64; 8]) -> [f64; 8] {
        std::array::from_fn(|i| a[i] + b[i])
    }

    #[inline(always)]
    fn fused_eight(self, mut sum: [f64; 8], a: [f64; 8], b: [f64; 8]) -> [f64; 8] {
        for i in 0..8 {
            sum[i] = a[i].mul_add(b[i], sum[i]);
        }
        sum
    }

    #[inline(always)]
    fn subtract_eight(self, a: [f64; 8], b: [f64; 8]) -> [f64; 8] {
        std::array::from_fn(|i| a[i] - b[i])
    }

    #[inline(always)]
    fn multiply_eight(self, a: [f64; 8], b: [f64; 8]) -> [f64; 8] {
        std::array::from_fn(|i| a[i] * b[i])
    }
}

impl Lanes for Plain {
    type Four = [f64; 4];

    #[inline(always)]
    fn splat(self, value: f64) -> [f64; 4] {
        [value; 4]
    }

    #[inline(always)]
    fn load(self, values: &[f64; 4]) -> [f64; 4] {
        *values
    }

    #[inline(always)]
    fn load_short(self, values: &[f32; 4]) -> [f64; 4] {
        values.map(f64::from)
    }

    #[inline(always)]
    fn shortened(self, a: [f64; 4]) -> [f32; 4] {
        a.map(|a| a as f32)
    }

    #[inline(always)]
    fn add_product(self, mut sum: [f64; 4], a: [f64; 4], b: [f64; 4]) -> [f64; 4] {
        for i in 0..4 {
            sum[i] += a[i] * b[i];
        }
        sum
    }

    #[inline(always)]
    fn fused(self, mut sum: [f64; 4], a: [f64; 4], b: [f64; 4]) -> [f64; 4] {
        for i in 0..4 {
            sum[i] = a[i].mul_add(b[i], sum[i]);
        }
        sum
    }

    #[inline(always)]
    fn add(self, a: [f64; 4], b: [f64; 4]) -> [f64; 4] {
        std::array::from_fn(|i| a[i] + b[i])
    }

    #[inline(always)]
    fn multiply(self, a: [f64; 4], b: [f64; 4]) -> [f64; 4] {
        std::array::from_fn(|i| a[i] * b[i])
    }

    #[inline(always)]
    fn subtract(self, a: [f64; 4], b: [f64; 4]) -> [f64; 4] {
        std::array::from_fn(|i| a[i] - b[i])
    }

    #[inline(always)]
    fn divide(self, a: [f64; 4], b: [f64; 4]) -> [f64; 4] {
        std::array::from_fn(|i| a[i] / b[i])
    }

    #[inline(always)]
    fn root(self, a: [f64; 4]) -> [f64; 4] {
        a.map(f64::sqrt)
    }

    #[inline(always)]
    fn positive(self, a: [f64; 4]) -> [f64; 4] {
        a.map(|a| if a > 0.0 { a } else { 0.0 })
    }

    #[inline(always)]
    fn where_less(self, [a, b]: [[f64; 4]; 2], yes: [f64; 4], no: [f64; 4]) -> [f64; 4] {
        std::array::from_fn(|i| if a[i] < b[i] { yes[i] } else { no[i] })
    }

    #[inline(always)]
    fn transposed(self, rows: [[f64; 4]; 4]) -> [[f64; 4]; 4] {
        std::array::from_fn(|i| rows.map(|row| row[i]))
    }

    #[inline(always)]
    fn coordinates(self, [a, b, c]: [[f64; 4]; 3]) -> [[f64; 4]; 3] {
        [
            [a[0], a[3], b[2], c[1]],
            [a[1], b[0], b[3], c[2]],
            [a[2], b[1], c[0], c[3]],
        ]
    }

    #[inline(always)]
    fn vectors(self, [x, y, z]: [[f64; 4]; 3]) -> [[f64; 4]; 3] {
        [
            [x[0], y[0], z[0], x[1]],
            [y[1], z[1], x[2], y[2]],
            [z[2], x[3], y[3], z[3]],
        ]
    }

    #[inline(always)]
    fn sums(self, of: [[f64; 4]; 3]) -> [f64; 4] {
        let sum = |f: [f64; 4]| (f[0] + f[1]) + (f[2] + f[3]);
        [sum(of[0]), sum(of[1]), sum(of[2]), 0.0]
    }

    #[inline(always)]
    fn store(self, four: [f64; 4]) -> [f64; 4] {
        four
    }

    #[inline(always)]
    fn prefetch<T>(self, _: &T, _: usize) {}
}

#[cfg(target_arch = "x86_64")]
mod wide {
    use pulp::x86::{V3, V4};
    use pulp::{Simd, WithSimd, f64x4, f64x8};

    use super::{Eights, Lanes, Loop};

    /// A loop, and the proof that the processor has the instructions.
    pub(super) struct With<W, S>(pub(super) W, pub(super) S);

    impl<W: Loop, L: Lanes> WithSimd for With<W, L> {
        type Output = W::Output;

        #[inline(always)]
        fn with_simd<S: Simd>(self, _: S) -> W::Output {
            self.0.run(self.1)
        }
    }

    /// A proof that includes that of [`V3`].
    trait Three: Copy {
        fn three(self) -> V3;
    }

    impl Three for V3 {
        #[inline(always)]
        fn three(self) -> V3 {
            self
        }
    }

    impl Three for V4 {
        #[inline(always)]
        fn three(self) -> V3 {
            *self
        }
    }

    impl Eights for V3 {
        type Eight = [f64x4; 2];

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
    }

    impl Eights for V4 {
        type Eight = f64x8;

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
    }

    impl<S: Three + Eights> Lanes for S {
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
            let crossed: f64x4 =
                pulp::cast(self.three().avx._mm256_permute2f128_pd::<0x21>(ab, cc));
            self.three().add_f64s(straight, crossed)
        }

        #[inline(always)]
        fn store(self, four: f64x4) -> [f64; 4] {
            pulp::cast(four)
        }

        #[inline(always)]
        fn prefetch<T>(self, value: &T, ahead: usize) {
            /// Into all caches.
            const HINT: i32 = 3;
            let at = std::ptr::from_ref(value).cast::<i8>().wrapping_add(ahead);
            self.three().sse._mm_prefetch::<HINT>(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy)]
    struct Across<'a>(&'a [[f64; 4]]);

    impl Loop for Across<'_> {
        type Output = Vec<[f64; 3]>;

        #[inline(always)]
        fn run<L: Lanes>(self, lanes: L) -> Vec<[f64; 3]> {
            let of = |fours: &[[f64; 4]; 3]| {
                let [x, y, z, _] = lanes.store(lanes.sums(fours.each_ref().map(|f| lanes.load(f))));
                [x, y, z]
            };
            self.0.array_windows().map(of).collect()
        }
    }

    #[test]
    fn sums_across_lanes_have_the_same_bits_too() {
        let fours: Vec<[f64; 4]> = (1..500)
            .map(|i| [1.0, -0.7, 1e-9, 1e9].map(|x| x / f64::from(i)))
            .collect();
        let bits = |sums: Vec<[f64; 3]>| -> Vec<[u64; 3]> {
            sums.into_iter().map(|s| s.map(f64::to_bits)).collect()
        };
        let expected = bits(Across(&fours).run(Plain));
        for found in widths(Across(&fours)) {
            assert_eq!(bits(found), expected);
        }
    }

    #[derive(Clone, Copy)]
    struct Apart<'a>(&'a [[f64; 4]; 3]);

    impl Loop for Apart<'_> {
        type Output = [[[f64; 4]; 3]; 2];

        #[inline(always)]
        fn run<L: Lanes>(self, lanes: L) -> [[[f64; 4]; 3]; 2] {
            let apart = lanes.coordinates(self.0.each_ref().map(|four| lanes.load(four)));
            [apart, lanes.vectors(apart)].map(|fours| fours.map(|four| lanes.store(four)))
        }
    }

    #[test]
    fn vectors_are_taken_apart_and_put_together_by_any_width() {
        let vectors = [0.0, 4.0, 8.0].map(|first| [first, first + 1.0, first + 2.0, first + 3.0]);
        for found in widths(Apart(&vectors)) {
            let [x, y, z] = found[0];
            assert_eq!((x, y), ([0.0, 3.0, 6.0, 9.0], [1.0, 4.0, 7.0, 10.0]));
            assert_eq!((z, found[1]), ([2.0, 5.0, 8.0, 11.0], vectors));
        }
    }

    #[derive(Clone, Copy)]
    struct Exchange<'a>(&'a [[f64; 4]; 4]);

    impl Loop for Exchange<'_> {
        type Output = [[f64; 4]; 4];

        #[inline(always)]
        fn run<L: Lanes>(self, lanes: L) -> [[f64; 4]; 4] {
            let rows = self.0.each_ref().map(|row| lanes.load(row));
            lanes.transposed(rows).map(|four| lanes.store(four))
        }
    }

    #[test]
    fn rows_and_columns_are_exchanged_by_any_width() {
        let rows =
            [0.0, 4.0, 8.0, 12.0].map(|first| [first, first + 1.0, first + 2.0, first + 3.0]);
        for found in widths(Exchange(&rows)) {
            assert_eq!(found, Exchange(&rows).run(Plain));
            assert_eq!(found[1], [1.0, 5.0, 9.0, 13.0]);
        }
    }

    #[test]
    fn the_last_vector_has_four_numbers_too() {
        let vectors = [DVec3::ONE, DVec3::new(2.0, 3.0, 4.0)];
        assert_eq!(four_at(&vectors, 0, &mut [0.0; 4]), &[1.0, 1.0, 1.0, 2.0]);
        assert_eq!(four_at(&vectors, 1, &mut [0.0; 4]), &[2.0, 3.0, 4.0, 0.0]);
    }

    #[derive(Clone, Copy)]
    struct Short([f64; 4]);

    impl Loop for Short {
        type Output = [u32; 4];

        #[inline(always)]
        fn run<L: Lanes>(self, lanes: L) -> [u32; 4] {
            lanes.shortened(lanes.load(&self.0)).map(f32::to_bits)
        }
    }

    #[test]
    fn numbers_are_shortened_to_the_nearest_by_any_width() {
        for four in [
            [1.0, -1.0 / 3.0, 1e-40, 1e39],
            [
                1.0 + f64::from(f32::EPSILON) / 2.0,
                -0.0,
                1e-60,
                f64::NEG_INFINITY,
            ],
        ] {
            let expected = four.map(|a| (a as f32).to_bits());
            assert!(widths(Short(four)).iter().all(|found| *found == expected));
        }
    }

    #[derive(Clone, Copy)]
    struct Positive([f64; 4]);

    impl Loop for Positive {
        type Output = [u64; 4];

        #[inline(always)]
        fn run<L: Lanes>(self, lanes: L) -> [u64; 4] {
            let four = lanes.store(lanes.positive(lanes.load(&self.0)));
            four.map(f64::to_bits)
        }
    }

    #[test]
    fn what_is_not_above_zero_is_zero_by_any_width() {
        for four in [
            [1.0, -1.0, 0.0, -0.0],
            [f64::NAN, -f64::NAN, 1e-320, f64::INFINITY],
        ] {
            let expected = four.map(|a| if a > 0.0 { a } else { 0.0 }.to_bits());
            let found = widths(Positive(four));
            assert!(found.iter().all(|found| *found == expected));
        }
    }

    #[derive(Clone, Copy)]
    struct Less([f64; 4], [f64; 4]);

    impl Loop for Less {
        type Output = [f64; 4];

        #[inline(always)]
        fn run<L: Lanes>(self, lanes: L) -> [f64; 4] {
            let [a, b] = [self.0, self.1].map(|four| Numbers(lanes, lanes.load(&four)));
            a.where_less(b, a.splat(1.0), a.splat(2.0)).to_array()
        }
    }

    #[test]
    fn any_width_tells_what_is_less() {
        let (a, b) = ([1.0, f64::NAN, 0.0, -1.0], [2.0, 1.0, -0.0, f64::NAN]);
        for found in widths(Less(a, b)) {
            assert_eq!(found, [1.0, 2.0, 2.0, 2.0]);
        }
    }

    #[derive(Clone, Copy)]
    struct Sums<'a>(&'a [[f64; 4]]);

    impl Loop for Sums<'_> {
        type Output = [f64; 4];

        #[inline(always)]
        fn run<L: Lanes>(self, lanes: L) -> [f64; 4] {
            let first = lanes.splat(1.0 / 3.0);
            let mut sum = first;
            for four in self.0 {
                let four = lanes.load(four);
                sum = lanes.fused(lanes.add_product(sum, four, first), sum, four);
            }
            lanes.store(sum)
        }
    }

    #[test]
    fn any_width_has_the_same_bits() {
        let fours: Vec<[f64; 4]> = (1..500)
            .map(|i| [1.0, -0.7, 1e-9, 1e9].map(|x| x / f64::from(i)))
            .collect();
        let bits = |sums: [f64; 4]| sums.map(f64::to_bits);
        let expected = bits(Sums(&fours).run(Plain));
        for found in widths(Sums(&fours)) {
            assert_eq!(bits(found), expected);
        }
    }
}
