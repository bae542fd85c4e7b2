//! Numbers in lanes as formulas have them: with operators, four or eight at once.

use std::ops::{Add, Div, Mul, Sub};

use super::Lanes;

/// The number of lanes and their arithmetic: lanes themselves stand for four, [`ByEight`] for
/// eight.
pub(crate) trait Arithmetic: Copy {
    /// The lanes that fours come from.
    type Of: Lanes;
    /// A number of each lane.
    type Vector: Copy;

    /// The number of fours that make a vector.
    const FOURS: usize;

    /// The source of fours.
    fn lanes(self) -> Self::Of;
    /// A vector made of the first fours, or of both.
    fn join(self, of: [<Self::Of as Lanes>::Four; 2]) -> Self::Vector;
    /// The four at a place.
    fn four(self, of: Self::Vector, at: usize) -> <Self::Of as Lanes>::Four;

    /// All lanes alike, as [`Lanes::splat`]; and so on.
    fn splat_all(self, value: f64) -> Self::Vector;
    /// The sums a + b.
    fn add_all(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// The differences a − b.
    fn subtract_all(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// The products a b.
    fn multiply_all(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// The quotients a / b.
    fn divide_all(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// The sums of `sum` and a b, rounded once.
    fn fused_all(self, sum: Self::Vector, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// The roots √a.
    fn root_all(self, a: Self::Vector) -> Self::Vector;
    /// The numbers where they are above zero, otherwise zero.
    fn positive_all(self, a: Self::Vector) -> Self::Vector;
    /// A choice in each lane, as [`Lanes::where_less`].
    fn where_less_all(
        self,
        of: [Self::Vector; 2],
        yes: Self::Vector,
        no: Self::Vector,
    ) -> Self::Vector;
}

impl<L: Lanes> Arithmetic for L {
    type Of = L;
    type Vector = L::Four;

    const FOURS: usize = 1;

    #[inline(always)]
    fn lanes(self) -> L {
        self
    }

    #[inline(always)]
    fn join(self, [first, _]: [L::Four; 2]) -> L::Four {
        first
    }

    #[inline(always)]
    fn four(self, of: L::Four, _: usize) -> L::Four {
        of
    }

    #[inline(always)]
    fn splat_all(self, value: f64) -> L::Four {
        self.splat(value)
    }

    #[inline(always)]
    fn add_all(self, a: L::Four, b: L::Four) -> L::Four {
        self.add(a, b)
    }

    #[inline(always)]
    fn subtract_all(self, a: L::Four, b: L::Four) -> L::Four {
        self.subtract(a, b)
    }

    #[inline(always)]
    fn multiply_all(self, a: L::Four, b: L::Four) -> L::Four {
        self.multiply(a, b)
    }

    #[inline(always)]
    fn divide_all(self, a: L::Four, b: L::Four) -> L::Four {
        self.divide(a, b)
    }

    #[inline(always)]
    fn fused_all(self, sum: L::Four, a: L::Four, b: L::Four) -> L::Four {
        self.fused(sum, a, b)
    }

    #[inline(always)]
    fn root_all(self, a: L::Four) -> L::Four {
        self.root(a)
    }

    #[inline(always)]
    fn positive_all(self, a: L::Four) -> L::Four {
        self.positive(a)
    }

    #[inline(always)]
    fn where_less_all(self, of: [L::Four; 2], yes: L::Four, no: L::Four) -> L::Four {
        self.where_less(of, yes, no)
    }
}

/// Eight at once.
#[derive(Clone, Copy)]
pub(crate) struct ByEight<L>(pub(crate) L);

impl<L: Lanes> Arithmetic for ByEight<L> {
    type Of = L;
    type Vector = L::Eight;

    const FOURS: usize = 2;

    #[inline(always)]
    fn lanes(self) -> L {
        self.0
    }

    #[inline(always)]
    fn join(self, of: [L::Four; 2]) -> L::Eight {
        self.0.join(of)
    }

    #[inline(always)]
    fn four(self, of: L::Eight, at: usize) -> L::Four {
        self.0.halves(of)[at]
    }

    #[inline(always)]
    fn splat_all(self, value: f64) -> L::Eight {
        self.0.splat_eight(value)
    }

    #[inline(always)]
    fn add_all(self, a: L::Eight, b: L::Eight) -> L::Eight {
        self.0.add_eight(a, b)
    }

    #[inline(always)]
    fn subtract_all(self, a: L::Eight, b: L::Eight) -> L::Eight {
        self.0.subtract_eight(a, b)
    }

    #[inline(always)]
    fn multiply_all(self, a: L::Eight, b: L::Eight) -> L::Eight {
        self.0.multiply_eight(a, b)
    }

    #[inline(always)]
    fn divide_all(self, a: L::Eight, b: L::Eight) -> L::Eight {
        self.0.divide_eight(a, b)
    }

    #[inline(always)]
    fn fused_all(self, sum: L::Eight, a: L::Eight, b: L::Eight) -> L::Eight {
        self.0.fused_eight(sum, a, b)
    }

    #[inline(always)]
    fn root_all(self, a: L::Eight) -> L::Eight {
        self.0.root_eight(a)
    }

    #[inline(always)]
    fn positive_all(self, a: L::Eight) -> L::Eight {
        self.0.positive_eight(a)
    }

    #[inline(always)]
    fn where_less_all(self, of: [L::Eight; 2], yes: L::Eight, no: L::Eight) -> L::Eight {
        self.0.where_less_eight(of, yes, no)
    }
}

/// A number of each lane with their arithmetic, for formulas.
#[derive(Clone, Copy)]
pub(crate) struct Numbers<A: Arithmetic>(pub(crate) A, pub(crate) A::Vector);

impl<A: Arithmetic> Numbers<A> {
    /// The numbers of the first fours, or of both.
    #[inline(always)]
    pub(crate) fn of(arithmetic: A, fours: [<A::Of as Lanes>::Four; 2]) -> Self {
        Self(arithmetic, arithmetic.join(fours))
    }

    /// All alike.
    #[inline(always)]
    pub(crate) fn splat(self, value: f64) -> Self {
        Self(self.0, self.0.splat_all(value))
    }

    /// The sums of these and a b, rounded once.
    #[inline(always)]
    pub(crate) fn fused(self, a: Self, b: Self) -> Self {
        Self(self.0, self.0.fused_all(self.1, a.1, b.1))
    }

    /// The roots √a.
    #[inline(always)]
    pub(crate) fn root(self) -> Self {
        Self(self.0, self.0.root_all(self.1))
    }

    /// The numbers where they are above zero, otherwise zero.
    #[inline(always)]
    pub(crate) fn positive(self) -> Self {
        Self(self.0, self.0.positive_all(self.1))
    }

    /// `yes` in lanes where this is less than another, and `no` elsewhere.
    #[inline(always)]
    pub(crate) fn where_less(self, than: Self, yes: Self, no: Self) -> Self {
        let of = [self.1, than.1];
        Self(self.0, self.0.where_less_all(of, yes.1, no.1))
    }

    /// The four at a place.
    #[inline(always)]
    pub(crate) fn four(self, at: usize) -> <A::Of as Lanes>::Four {
        self.0.four(self.1, at)
    }
}

impl<L: Lanes> Numbers<L> {
    /// One after the other.
    #[inline(always)]
    pub(crate) fn to_array(self) -> [f64; 4] {
        self.0.store(self.1)
    }
}

impl<A: Arithmetic> Add for Numbers<A> {
    type Output = Self;

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Self(self.0, self.0.add_all(self.1, other.1))
    }
}

impl<A: Arithmetic> Sub for Numbers<A> {
    type Output = Self;

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        Self(self.0, self.0.subtract_all(self.1, other.1))
    }
}

impl<A: Arithmetic> Mul for Numbers<A> {
    type Output = Self;

    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        Self(self.0, self.0.multiply_all(self.1, other.1))
    }
}

impl<A: Arithmetic> Div for Numbers<A> {
    type Output = Self;

    #[inline(always)]
    fn div(self, other: Self) -> Self {
        Self(self.0, self.0.divide_all(self.1, other.1))
    }
}
