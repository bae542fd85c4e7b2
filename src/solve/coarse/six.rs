//! Columns of blocks of six by six numbers in lanes, as they come out of products of smaller ones:
//! every entry rounds as in plain loops.
//!
//! A column is taken as its first four and its last four numbers: the two in the middle are
//! computed twice, and no lane is empty.

use crate::simd::Lanes;

/// The amplitudes of the modes of an aggregate: translation, then rotation.
pub(super) type Six = [f64; 6];
/// A coupling of two aggregates, by columns.
pub(super) type Block = [Six; 6];

/// A column in lanes.
#[derive(Clone, Copy)]
pub(super) struct Column<L: Lanes>(L, [L::Four; 2]);

impl<L: Lanes> Column<L> {
    #[inline(always)]
    fn load(lanes: L, six: &Six) -> Self {
        let [first @ .., _, _] = six;
        let [_, _, last @ ..] = six;
        Self(lanes, [lanes.load(first), lanes.load(last)])
    }

    /// The first four of six numbers, and the last four.
    #[inline(always)]
    pub(super) fn of_lanes(lanes: L, fours: [L::Four; 2]) -> Self {
        Self(lanes, fours)
    }

    #[inline(always)]
    fn store(self, six: &mut Six) {
        let [first, last] = self.1;
        let (first, last) = (self.0.store(first), self.0.store(last));
        six[..4].copy_from_slice(&first);
        six[2..].copy_from_slice(&last);
    }

    /// The sum self + other.
    #[inline(always)]
    pub(super) fn plus(self, other: Self) -> Self {
        let ([a, b], [c, d]) = (self.1, other.1);
        Self(self.0, [self.0.add(a, c), self.0.add(b, d)])
    }

    /// The difference self − other.
    #[inline(always)]
    pub(super) fn minus(self, other: Self) -> Self {
        let ([a, b], [c, d]) = (self.1, other.1);
        Self(self.0, [self.0.subtract(a, c), self.0.subtract(b, d)])
    }

    /// Adds it to numbers in memory.
    #[inline(always)]
    pub(super) fn add_to(self, six: &mut Six) {
        Self::load(self.0, six).plus(self).store(six);
    }

    /// The product self b.
    #[inline(always)]
    pub(super) fn times(self, b: f64) -> Self {
        let (lanes, [p, q]) = (self.0, self.1);
        let b = lanes.splat(b);
        Self(lanes, [lanes.multiply(p, b), lanes.multiply(q, b)])
    }
}

/// Rows become columns.
#[inline(always)]
pub(super) fn transposed(block: &Block) -> Block {
    let mut across = [[0.0; 6]; 6];
    for c in 0..6 {
        for r in 0..6 {
            across[r][c] = block[c][r];
        }
    }
    across
}
