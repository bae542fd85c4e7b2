//! Numbers and vectors of formulas that are written once and run for one, four or eight queries.
//!
//! Every operation rounds as IEEE 754 says and nothing is fused, so a lane of four or eight gets
//! the bits that the query gets alone.

use std::ops::{Add, Div, Mul, Sub};

use crate::simd::{Arithmetic, Numbers};

/// A number of one query, or a number for each of several queries.
pub(super) trait Number:
    Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self>
{
    /// A value that is alike for all queries.
    fn alike(self, value: f64) -> Self;

    /// The square root.
    fn square_root(self) -> Self;

    /// `yes` where this is less than another number, `no` elsewhere and where either is NaN.
    fn if_less(self, than: Self, yes: Self, no: Self) -> Self;
}

impl Number for f64 {
    #[inline(always)]
    fn alike(self, value: f64) -> Self {
        value
    }

    #[inline(always)]
    fn square_root(self) -> Self {
        self.sqrt()
    }

    #[inline(always)]
    fn if_less(self, than: Self, yes: Self, no: Self) -> Self {
        if self < than { yes } else { no }
    }
}

impl<A: Arithmetic> Number for Numbers<A> {
    #[inline(always)]
    fn alike(self, value: f64) -> Self {
        self.splat(value)
    }

    #[inline(always)]
    fn square_root(self) -> Self {
        self.root()
    }

    #[inline(always)]
    fn if_less(self, than: Self, yes: Self, no: Self) -> Self {
        self.where_less(than, yes, no)
    }
}

/// A vector by its coordinates.
pub(super) type Vector<N> = [N; 3];

/// The difference a − b.
#[inline(always)]
pub(super) fn minus<N: Number>(a: Vector<N>, b: Vector<N>) -> Vector<N> {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}

/// The sum a + b f.
#[inline(always)]
pub(super) fn plus<N: Number>(a: Vector<N>, b: Vector<N>, f: N) -> Vector<N> {
    [a[0] + b[0] * f, a[1] + b[1] * f, a[2] + b[2] * f]
}

/// The inner product, its terms added from the first to the last.
#[inline(always)]
pub(super) fn dot<N: Number>(a: Vector<N>, b: Vector<N>) -> N {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

/// The cross product.
#[inline(always)]
pub(super) fn cross<N: Number>(a: Vector<N>, b: Vector<N>) -> Vector<N> {
    [
        a[1] * b[2] - a[2] * b[1],
        a[2] * b[0] - a[0] * b[2],
        a[0] * b[1] - a[1] * b[0],
    ]
}

/// Vector `yes` where a number is less than another, and `no` elsewhere.
#[inline(always)]
pub(super) fn select<N: Number>([a, b]: [N; 2], yes: Vector<N>, no: Vector<N>) -> Vector<N> {
    [
        a.if_less(b, yes[0], no[0]),
        a.if_less(b, yes[1], no[1]),
        a.if_less(b, yes[2], no[2]),
    ]
}

/// The number held in [0, 1]; NaN becomes 0.
#[inline(always)]
pub(super) fn held<N: Number>(x: N) -> N {
    let (zero, one) = (x.alike(0.0), x.alike(1.0));
    let x = zero.if_less(x, x, zero);
    x.if_less(one, x, one)
}

/// The vector over its length; not finite if it has none.
#[inline(always)]
pub(super) fn unit<N: Number>(a: Vector<N>) -> Vector<N> {
    let inverse = a[0].alike(1.0) / dot(a, a).square_root();
    [a[0] * inverse, a[1] * inverse, a[2] * inverse]
}
