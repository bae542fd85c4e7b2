//! Lanes for any processor of its kind.

use super::{Eights, InstructionSet, Lanes};

/// Lanes that the compiler makes vectors of, where it sees any.
#[derive(Clone, Copy)]
pub(crate) struct Plain;

impl InstructionSet for Plain {
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn avx2(self) -> Option<pulp::x86::V3> {
        None
    }

    #[inline(always)]
    fn prefetch<T>(self, _: &T, _: usize) {}

    #[inline(always)]
    fn prefetch_late<T>(self, _: &T, _: usize) {}
}

impl Eights for Plain {
    type Eight = [f64; 8];

    const IS_ONE: bool = false;

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

    #[inline(always)]
    fn divide_eight(self, a: [f64; 8], b: [f64; 8]) -> [f64; 8] {
        std::array::from_fn(|i| a[i] / b[i])
    }

    #[inline(always)]
    fn root_eight(self, a: [f64; 8]) -> [f64; 8] {
        a.map(f64::sqrt)
    }

    #[inline(always)]
    fn positive_eight(self, a: [f64; 8]) -> [f64; 8] {
        a.map(|a| if a > 0.0 { a } else { 0.0 })
    }

    #[inline(always)]
    fn where_less_eight(self, [a, b]: [[f64; 8]; 2], yes: [f64; 8], no: [f64; 8]) -> [f64; 8] {
        std::array::from_fn(|i| if a[i] < b[i] { yes[i] } else { no[i] })
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
    fn join(self, [[a, b, c, d], [e, f, g, h]]: [[f64; 4]; 2]) -> [f64; 8] {
        [a, b, c, d, e, f, g, h]
    }

    #[inline(always)]
    fn halves(self, [a, b, c, d, e, f, g, h]: [f64; 8]) -> [[f64; 4]; 2] {
        [[a, b, c, d], [e, f, g, h]]
    }

    #[inline(always)]
    fn store(self, four: [f64; 4]) -> [f64; 4] {
        four
    }
}
