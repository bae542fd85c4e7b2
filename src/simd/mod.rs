//! Kernels: loops that are compiled for several instruction sets, of which the widest that the
//! processor has is chosen when they run.
//!
//! A [`Kernel`] is generic in the set. On numbers it works in [`Lanes`]: four stand side by side,
//! or eight where a loop can use them. Nothing is fused unless asked for and no lanes are added up:
//! each lane rounds every product and every sum as plain code does, and the bits are the same on
//! every machine. A function that needs other instructions stands beside its version for any
//! processor, and asks the set which of the two it is to be ([`InstructionSet::avx2`]).

mod numbers;
mod plain;
#[cfg(test)]
mod tests;
#[cfg(target_arch = "x86_64")]
mod wide;

use glam::DVec3;

pub(crate) use self::numbers::{Arithmetic, ByEight, Numbers};
pub(crate) use self::plain::Plain;

/// An instruction set that kernels are compiled for.
pub(crate) trait InstructionSet: Copy {
    /// The proof that the processor has AVX2 and what comes with it, if kernels are compiled for
    /// that.
    #[cfg(target_arch = "x86_64")]
    fn avx2(self) -> Option<pulp::x86::V3>;

    /// Asks for what stands this many bytes behind a value in memory, if there is anything.
    fn prefetch<T>(self, value: &T, ahead: usize);

    /// Asks for what is used later than what the nearest cache has room for, as
    /// [`Self::prefetch`].
    fn prefetch_late<T>(self, value: &T, ahead: usize);

    /// Asks for a value, which may begin in one cache line and end in the next.
    #[inline(always)]
    fn prefetch_value<T>(self, value: &T) {
        self.prefetch(value, 0);
        if size_of::<T>() > align_of::<T>() {
            self.prefetch(value, size_of::<T>() - 1);
        }
    }
}

/// Arithmetic of eight lanes: one vector where there are such, otherwise two.
pub(crate) trait Eights: InstructionSet {
    /// Eight numbers.
    type Eight: Copy;

    /// Whether they are one vector.
    const IS_ONE: bool;

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
    /// The sums a + b.
    fn add_eight(self, a: Self::Eight, b: Self::Eight) -> Self::Eight;
    /// The sums of `sum` and a b, rounded once.
    fn fused_eight(self, sum: Self::Eight, a: Self::Eight, b: Self::Eight) -> Self::Eight;
    /// The differences a − b.
    fn subtract_eight(self, a: Self::Eight, b: Self::Eight) -> Self::Eight;
    /// The products a b.
    fn multiply_eight(self, a: Self::Eight, b: Self::Eight) -> Self::Eight;
    /// The quotients a / b.
    fn divide_eight(self, a: Self::Eight, b: Self::Eight) -> Self::Eight;
    /// The roots √a.
    fn root_eight(self, a: Self::Eight) -> Self::Eight;
    /// The numbers where they are above zero, otherwise zero.
    fn positive_eight(self, a: Self::Eight) -> Self::Eight;
    /// A choice in each lane, as [`Lanes::where_less`].
    fn where_less_eight(
        self,
        of: [Self::Eight; 2],
        yes: Self::Eight,
        no: Self::Eight,
    ) -> Self::Eight;
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
    /// The sums of `sum` and a b, rounded twice.
    fn add_product(self, sum: Self::Four, a: Self::Four, b: Self::Four) -> Self::Four;
    /// The sums of `sum` and a b, rounded once: faster where the processor has an instruction for
    /// it, and slow where it has none.
    fn fused(self, sum: Self::Four, a: Self::Four, b: Self::Four) -> Self::Four;
    /// The sums a + b.
    fn add(self, a: Self::Four, b: Self::Four) -> Self::Four;
    /// The products a b.
    fn multiply(self, a: Self::Four, b: Self::Four) -> Self::Four;
    /// The differences a − b.
    fn subtract(self, a: Self::Four, b: Self::Four) -> Self::Four;
    /// The quotients a / b.
    fn divide(self, a: Self::Four, b: Self::Four) -> Self::Four;
    /// The roots √a.
    fn root(self, a: Self::Four) -> Self::Four;
    /// The numbers where they are above zero, otherwise zero.
    fn positive(self, a: Self::Four) -> Self::Four;
    /// `yes` in lanes where the first of two is less than the second, and `no` elsewhere and where
    /// one is no number.
    fn where_less(self, of: [Self::Four; 2], yes: Self::Four, no: Self::Four) -> Self::Four;
    /// Four by four numbers, with rows and columns exchanged.
    fn transposed(self, rows: [Self::Four; 4]) -> [Self::Four; 4];
    /// The x, the y and the z of four vectors that follow each other.
    fn coordinates(self, vectors: [Self::Four; 3]) -> [Self::Four; 3];
    /// Four vectors that follow each other, from their x, y and z.
    fn vectors(self, coordinates: [Self::Four; 3]) -> [Self::Four; 3];
    /// The sums (f0 + f1) + (f2 + f3) of the lanes of each of three; the fourth lane is of no use.
    fn sums(self, of: [Self::Four; 3]) -> Self::Four;
    /// Four numbers, and four more.
    fn join(self, halves: [Self::Four; 2]) -> Self::Eight;
    /// Eight numbers, four by four.
    fn halves(self, eight: Self::Eight) -> [Self::Four; 2];
    /// The numbers.
    fn store(self, four: Self::Four) -> [f64; 4];
}

/// A loop that is compiled for each instruction set. Functions that it calls must be inlined into
/// it, or they are compiled for any processor. That also holds for functions that closures call
/// which are given to `map` and the like.
pub(crate) trait Kernel {
    /// The type of the result.
    type Output;

    /// Runs it; to be marked `#[inline(always)]`.
    fn run<L: Lanes>(self, lanes: L) -> Self::Output;
}

/// Runs a kernel with the widest vectors that the processor has.
#[inline]
pub(crate) fn widest<K: Kernel>(kernel: K) -> K::Output {
    #[cfg(target_arch = "x86_64")]
    if let Some(avx512) = pulp::x86::V4::try_new() {
        return pulp::Simd::vectorize(avx512, wide::With(kernel, avx512));
    }
    up_to_avx2(kernel)
}

/// Runs a kernel with vectors of 256 bits, if the processor has them: for kernels whose values are
/// short, which gain nothing from wider ones.
#[inline]
pub(crate) fn up_to_avx2<K: Kernel>(kernel: K) -> K::Output {
    #[cfg(target_arch = "x86_64")]
    if let Some(avx2) = pulp::x86::V3::try_new() {
        return pulp::Simd::vectorize(avx2, wide::With(kernel, avx2));
    }
    kernel.run(Plain)
}

/// The results of a kernel with each instruction set that the processor has, plain code first.
#[cfg(test)]
pub(crate) fn by_each_set<K: Kernel + Copy>(kernel: K) -> Vec<K::Output> {
    let mut all = vec![kernel.run(Plain)];
    #[cfg(target_arch = "x86_64")]
    {
        let four = pulp::x86::V3::try_new();
        all.extend(four.map(|four| pulp::Simd::vectorize(four, wide::With(kernel, four))));
        let eight = pulp::x86::V4::try_new();
        all.extend(eight.map(|eight| pulp::Simd::vectorize(eight, wide::With(kernel, eight))));
    }
    all
}

/// The lesser of two numbers, and the second if one is no number: one vector instruction.
#[inline(always)]
pub(crate) fn lesser(a: f32, b: f32) -> f32 {
    if a < b { a } else { b }
}

/// The greater of two numbers, and the second if one is no number.
#[inline(always)]
pub(crate) fn greater(a: f32, b: f32) -> f32 {
    if a > b { a } else { b }
}

/// A vector, and a fourth number that is of no use: what stands behind it. Behind the last one
/// there is nothing, and it is copied.
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
