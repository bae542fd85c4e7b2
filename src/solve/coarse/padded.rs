//! Products of blocks of six by six numbers in eight lanes: every entry rounds as in plain loops.
//!
//! A column is six numbers and two zeros, so that a processor with lanes for eight takes it at
//! once, and one with lanes for four in two halves. No closure computes with lanes here: one that
//! is not inlined is compiled for any processor. Blocks that are only read are packed, and what
//! stands in the last two lanes then belongs to the next column: lanes do not mix, and nobody looks
//! at these.

use super::six::{Block, Six};
use crate::simd::Lanes;

/// A column.
pub(super) type Eight = [f64; 8];
/// A block, by columns.
pub(super) type Padded = [Eight; 6];
/// A block whose numbers are rounded to f32, packed; four zeros follow.
pub(super) type Short = [f32; 40];

pub(super) const ZERO: Padded = [[0.0; 8]; 6];

#[inline(always)]
pub(super) fn widened([a, b, c, d, e, f]: Six) -> Eight {
    [a, b, c, d, e, f, 0.0, 0.0]
}

#[inline(always)]
pub(super) fn narrowed([a, b, c, d, e, f, _, _]: Eight) -> Six {
    [a, b, c, d, e, f]
}

#[inline(always)]
pub(super) fn padded(block: &Block) -> Padded {
    block.map(widened)
}

/// A block rounded to f32.
#[inline(always)]
pub(super) fn shorten(lanes: impl Lanes, block: &Padded, short: &mut Short) {
    // The next column overwrites the two zeros that this one wrote into it.
    for (c, column) in block.iter().enumerate() {
        if let Some(room) = short[6 * c..].first_chunk_mut() {
            *room = lanes.shorten_eight(lanes.load_eight(column));
        }
    }
}

/// A column in lanes.
#[derive(Clone, Copy)]
pub(super) struct Column<L: Lanes>(L, L::Eight);

impl<L: Lanes> Column<L> {
    #[inline(always)]
    pub(super) fn of(lanes: L, eight: &Eight) -> Self {
        Self(lanes, lanes.load_eight(eight))
    }

    #[inline(always)]
    pub(super) fn eight(self) -> Eight {
        self.0.store_eight(self.1)
    }

    /// The sum self + a y.
    #[inline(always)]
    pub(super) fn with(self, a: &Short, y: &Eight) -> Self {
        self.plus(Self::product(self.0, a, y))
    }

    /// The product a y.
    #[inline(always)]
    pub(super) fn product(lanes: L, a: &Short, y: &Eight) -> Self {
        // Three are added up and the other three, neither waits for the other, and then both.
        let [p, q, r, s, t, u, ..] = *y;
        let first = Self::short(lanes, a, 0).times(p);
        let first = first.with_short(a, 1, q).with_short(a, 2, r);
        let last = Self::short(lanes, a, 3).times(s);
        let last = last.with_short(a, 4, t).with_short(a, 5, u);
        first.plus(last)
    }

    /// A column of a packed block.
    #[inline(always)]
    fn short(lanes: L, a: &Short, c: usize) -> Self {
        let column = a[6 * c..].first_chunk().unwrap_or(&[0.0; 8]);
        Self(lanes, lanes.load_eight_short(column))
    }

    /// The sum self + b times such a column, rounded once.
    #[inline(always)]
    fn with_short(self, a: &Short, c: usize, b: f64) -> Self {
        self.plus_product(Self::short(self.0, a, c), b)
    }

    /// The six of `sums`, with aᵀ y in them, of which [`Column::across`] makes a column.
    #[inline(always)]
    pub(super) fn with_across(sums: [Self; 6], block: &Short, y: Self) -> [Self; 6] {
        let [a, b, c, d, e, f] = sums;
        [
            a.with_times(block, 0, y),
            b.with_times(block, 1, y),
            c.with_times(block, 2, y),
            d.with_times(block, 3, y),
            e.with_times(block, 4, y),
            f.with_times(block, 5, y),
        ]
    }

    /// The sum self + such a column times another, number by number.
    #[inline(always)]
    fn with_times(self, block: &Short, c: usize, y: Self) -> Self {
        let column = Self::short(self.0, block, c);
        Self(self.0, self.0.fused_eight(self.1, column.1, y.1))
    }

    /// The sums of the six numbers of each of six columns.
    #[inline(always)]
    pub(super) fn across(sums: [Self; 6]) -> Self {
        let lanes = sums[0].0;
        let [a, b, c, d, e, f] = sums;
        let [a, b, c] = [lanes.halves(a.1), lanes.halves(b.1), lanes.halves(c.1)];
        let [d, e, f] = [lanes.halves(d.1), lanes.halves(e.1), lanes.halves(f.1)];
        let four = Self::four_across(lanes, [a[0], b[0], c[0], d[0]], [a[1], b[1], c[1], d[1]]);
        let last = Self::four_across(lanes, [e[0], f[0], e[0], f[0]], [e[1], f[1], e[1], f[1]]);
        Self(lanes, lanes.join([four, last]))
    }

    /// The sums of the first four numbers of each of four columns, with those of the next two.
    #[inline(always)]
    fn four_across(lanes: L, first: [L::Four; 4], last: [L::Four; 4]) -> L::Four {
        let [p, q, r, s] = lanes.transposed(first);
        let [t, u, ..] = lanes.transposed(last);
        let sum = lanes.add(lanes.add(p, q), lanes.add(r, s));
        lanes.add(sum, lanes.add(t, u))
    }

    /// Adds a b to self, rounded once.
    #[inline(always)]
    fn add_product(&mut self, a: Self, b: f64) {
        self.1 = self.0.fused_eight(self.1, a.1, self.0.splat_eight(b));
    }

    /// The sum self + a b, rounded once.
    #[inline(always)]
    pub(super) fn plus_product(mut self, a: Self, b: f64) -> Self {
        self.add_product(a, b);
        self
    }

    /// The sum self + other.
    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        Self(self.0, self.0.add_eight(self.1, other.1))
    }

    /// The difference self − other.
    #[inline(always)]
    pub(super) fn minus(self, other: Self) -> Self {
        Self(self.0, self.0.subtract_eight(self.1, other.1))
    }

    /// The product self b.
    #[inline(always)]
    pub(super) fn times(self, b: f64) -> Self {
        let by = self.0.splat_eight(b);
        Self(self.0, self.0.multiply_eight(self.1, by))
    }
}

#[inline(always)]
fn columns<L: Lanes>(lanes: L, block: &Padded) -> [Column<L>; 6] {
    let [a, b, c, d, e, f] = block;
    let (a, b, c) = (
        Column::of(lanes, a),
        Column::of(lanes, b),
        Column::of(lanes, c),
    );
    let (d, e, f) = (
        Column::of(lanes, d),
        Column::of(lanes, e),
        Column::of(lanes, f),
    );
    [a, b, c, d, e, f]
}

/// Subtracts a bᵀ from several targets, columns of both in ascending order.
#[inline(always)]
pub(super) fn subtract_products<const N: usize>(
    lanes: impl Lanes,
    mut targets: [&mut Padded; N],
    a: [&Padded; N],
    b: &Padded,
) {
    let a = a.map(|a| columns(lanes, a));
    for c in 0..6 {
        let mut sums = targets
            .each_ref()
            .map(|target| Column::of(lanes, &target[c]));
        for (k, b) in b.iter().enumerate() {
            for (sum, a) in sums.iter_mut().zip(&a) {
                sum.add_product(a[k], -b[c]);
            }
        }
        for (target, sum) in targets.iter_mut().zip(sums) {
            target[c] = sum.eight();
        }
    }
}

/// Sets block ← block L⁻ᵀ, where L is a factored block on the diagonal, without its pivots, whose
/// inverse is given.
#[inline(always)]
pub(super) fn divide(lanes: impl Lanes, block: &mut Padded, diagonal: &Padded, inverse: &Six) {
    let mut of = columns(lanes, block);
    for c in 0..6 {
        of[c] = of[c].times(inverse[c]);
        for d in c + 1..6 {
            let by = of[c];
            of[d].add_product(by, -diagonal[c][d]);
        }
    }
    for (column, eight) in of.into_iter().zip(block) {
        *eight = column.eight();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::{Kernel, by_each_set};
    use crate::solve::testing::Noise;

    #[derive(Clone, Copy)]
    struct All<'a>([&'a Padded; 3], &'a Six);

    impl Kernel for All<'_> {
        type Output = [Padded; 2];

        #[inline(always)]
        fn run<L: Lanes>(self, lanes: L) -> [Padded; 2] {
            let Self([a, b, c], y) = self;
            let (mut product, mut quotient) = (*a, *b);
            subtract_products(lanes, [&mut product], [b], c);
            divide(lanes, &mut quotient, c, y);
            let mut short = [0.0; 40];
            shorten(lanes, b, &mut short);
            let (of, y) = (Column::of(lanes, &a[0]), widened(*y));
            product[0] = of.with(&short, &y).eight();
            let columns = a.each_ref().map(|column| Column::of(lanes, column));
            let sums = Column::with_across(columns, &short, Column::of(lanes, &y));
            quotient[0] = Column::across(sums).eight();
            product[1] = Column::product(lanes, &short, &a[1]).eight();
            [product, quotient]
        }
    }

    /// The formulas in plain loops, entries in the order in which the lanes take them.
    fn plain([a, b, c]: [&Padded; 3], y: &Six) -> [Padded; 2] {
        let (mut product, mut quotient) = (*a, *b);
        for column in 2..6 {
            for row in 0..6 {
                for k in 0..6 {
                    let before = product[column][row];
                    product[column][row] = b[k][row].mul_add(-c[k][column], before);
                }
            }
        }
        for column in 0..6 {
            let own = quotient[column].map(|entry| entry * y[column]);
            quotient[column] = own;
            for later in column + 1..6 {
                for (entry, own) in quotient[later].iter_mut().zip(own) {
                    *entry = own.mul_add(-c[column][later], *entry);
                }
            }
        }
        let combined = |entry: &dyn Fn(usize) -> f64, y: &[f64]| {
            let three = |c: usize| {
                let first = entry(c + 1).mul_add(y[c + 1], entry(c) * y[c]);
                entry(c + 2).mul_add(y[c + 2], first)
            };
            three(0) + three(3)
        };
        let short = |entry: f64| f64::from(entry as f32);
        for row in 0..6 {
            product[0][row] = a[0][row] + combined(&|k| short(b[k][row]), y);
            product[1][row] = combined(&|k| short(b[k][row]), &a[1]);
            let sum = |k: usize| short(b[row][k]).mul_add(y[k], a[row][k]);
            quotient[0][row] = ((sum(0) + sum(1)) + (sum(2) + sum(3))) + (sum(4) + sum(5));
        }
        [product, quotient]
    }

    #[test]
    fn lanes_of_any_width_have_the_bits_of_plain_loops() {
        let mut noise = Noise::new(7);
        for _ in 0..50 {
            let mut six = || std::array::from_fn(|_| noise.number());
            let [a, b, c]: [Padded; 3] =
                std::array::from_fn(|_| padded(&std::array::from_fn(|_| six())));
            let (of, y) = ([&a, &b, &c], six());
            let expected = plain(of, &y).map(|block| block.map(narrowed));
            for found in by_each_set(All(of, &y)) {
                assert_eq!(found.map(|block| block.map(narrowed)), expected);
            }
        }
    }
}
