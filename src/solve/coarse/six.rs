//! Products of blocks of six by six numbers in lanes: every entry rounds as in plain loops.
//!
//! A column is taken as its first four and its last four numbers: the two in the middle are computed twice, and no lane is empty.

use super::{Block, Six};
use crate::simd::Lanes;

/// A block whose numbers are rounded to f32.
pub(super) type Short = [[f32; 6]; 6];

#[inline(always)]
pub(super) fn shortened(block: &Block) -> Short {
    let mut short = [[0.0; 6]; 6];
    for (short, column) in short.iter_mut().zip(block) {
        for (short, entry) in short.iter_mut().zip(column) {
            *short = *entry as f32;
        }
    }
    short
}

/// Six numbers as lanes are kept in memory: what was written so is read again without waiting for it.
pub(super) type Wide = [[f64; 4]; 2];

#[inline(always)]
pub(super) fn widened([a, b, c, d, e, f]: Six) -> Wide {
    [[a, b, c, d], [c, d, e, f]]
}

#[inline(always)]
pub(super) fn narrowed([[a, b, c, d], [_, _, e, f]]: Wide) -> Six {
    [a, b, c, d, e, f]
}

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

    #[inline(always)]
    fn load_short(lanes: L, six: &[f32; 6]) -> Self {
        let [first @ .., _, _] = six;
        let [_, _, last @ ..] = six;
        Self(lanes, [lanes.load_short(first), lanes.load_short(last)])
    }

    #[inline(always)]
    pub(super) fn of(lanes: L, wide: &Wide) -> Self {
        let [first, last] = wide;
        Self(lanes, [lanes.load(first), lanes.load(last)])
    }

    /// The first four of six numbers, and the last four.
    #[inline(always)]
    pub(super) fn of_lanes(lanes: L, fours: [L::Four; 2]) -> Self {
        Self(lanes, fours)
    }

    #[inline(always)]
    pub(super) fn wide(self) -> Wide {
        let [first, last] = self.1;
        [self.0.store(first), self.0.store(last)]
    }

    #[inline(always)]
    fn store(self, six: &mut Six) {
        let [first, last] = self.wide();
        six[..4].copy_from_slice(&first);
        six[2..].copy_from_slice(&last);
    }

    /// self + a y, columns of a in ascending order.
    #[inline(always)]
    pub(super) fn with(mut self, a: &Short, y: &Six) -> Self {
        for (column, &y) in a.iter().zip(y) {
            self.add_product(Self::load_short(self.0, column), y);
        }
        self
    }

    /// a self, columns of a in ascending order.
    #[inline(always)]
    pub(super) fn through(self, a: &Block) -> Self {
        let lanes = self.0;
        let y = narrowed(self.wide());
        let [first, rest @ ..] = a;
        let mut product = Self::load(lanes, first).times(y[0]);
        for (column, &y) in rest.iter().zip(&y[1..]) {
            product.add_product(Self::load(lanes, column), y);
        }
        product
    }

    /// self + a b, rounded once.
    #[inline(always)]
    fn add_product(&mut self, a: Self, b: f64) {
        let (lanes, b) = (self.0, self.0.splat(b));
        for (own, a) in self.1.iter_mut().zip(a.1) {
            *own = lanes.fused(*own, a, b);
        }
    }

    /// self + other.
    #[inline(always)]
    pub(super) fn plus(mut self, other: Self) -> Self {
        for (own, other) in self.1.iter_mut().zip(other.1) {
            *own = self.0.add(*own, other);
        }
        self
    }

    /// self − other.
    #[inline(always)]
    pub(super) fn minus(mut self, other: Self) -> Self {
        for (own, other) in self.1.iter_mut().zip(other.1) {
            *own = self.0.subtract(*own, other);
        }
        self
    }

    /// Adds it to numbers in memory.
    #[inline(always)]
    pub(super) fn add_to(self, six: &mut Six) {
        Self::load(self.0, six).plus(self).store(six);
    }

    /// self b.
    #[inline(always)]
    pub(super) fn times(self, b: f64) -> Self {
        let (lanes, b) = (self.0, self.0.splat(b));
        Self(lanes, self.1.map(|four| lanes.multiply(four, b)))
    }
}

#[inline(always)]
fn columns<L: Lanes>(lanes: L, block: &Block) -> [Column<L>; 6] {
    let [a, b, c, d, e, f] = block;
    let load = |six| Column::load(lanes, six);
    [load(a), load(b), load(c), load(d), load(e), load(f)]
}

/// target ← target − a bᵀ, columns of both in ascending order.
#[inline(always)]
pub(super) fn subtract_product(lanes: impl Lanes, target: &mut Block, a: &Block, b: &Block) {
    let a = columns(lanes, a);
    for (c, target) in target.iter_mut().enumerate() {
        let mut sum = Column::load(lanes, target);
        for (a, b) in a.iter().zip(b) {
            sum.add_product(*a, -b[c]);
        }
        sum.store(target);
    }
}

/// block ← block L⁻ᵀ, where L is a factored block on the diagonal, without its pivots, whose inverse is given.
#[inline(always)]
pub(super) fn divide(lanes: impl Lanes, block: &mut Block, diagonal: &Block, inverse: &Six) {
    let mut of = columns(lanes, block);
    for c in 0..6 {
        of[c] = of[c].times(inverse[c]);
        for d in c + 1..6 {
            let by = of[c];
            of[d].add_product(by, -diagonal[c][d]);
        }
    }
    for (column, six) in of.into_iter().zip(block) {
        column.store(six);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::{Loop, widest};
    use crate::solve::testing::Noise;

    struct All<'a>([&'a Block; 3], &'a Six);

    impl Loop for All<'_> {
        type Output = [Block; 2];

        #[inline(always)]
        fn run<L: Lanes>(self, lanes: L) -> [Block; 2] {
            let Self([a, b, c], y) = self;
            let (mut product, mut quotient) = (*a, *b);
            subtract_product(lanes, &mut product, b, c);
            divide(lanes, &mut quotient, c, y);
            let of = |six: &Six| Column::of(lanes, &widened(*six));
            let short = shortened(b);
            product[0] = narrowed(of(&a[0]).with(&short, y).wide());
            product[1] = narrowed(of(&a[1]).through(a).wide());
            [product, quotient]
        }
    }

    /// The formulas in plain loops, entries in the order in which the lanes take them.
    fn plain([a, b, c]: [&Block; 3], y: &Six) -> [Block; 2] {
        let (mut product, mut quotient) = (*a, *b);
        let short = shortened(b).map(|column| column.map(f64::from));
        for column in 0..6 {
            for row in 0..6 {
                for k in 0..6 {
                    let (factor, by) = match column {
                        0 => (short[k][row], y[k]),
                        1 => (a[k][row], a[1][k]),
                        _ => (b[k][row], -c[k][column]),
                    };
                    let before = match (column, k) {
                        (1, 0) => 0.0,
                        _ => product[column][row],
                    };
                    product[column][row] = factor.mul_add(by, before);
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
        [product, quotient]
    }

    #[test]
    fn lanes_have_the_bits_of_plain_loops() {
        let mut noise = Noise::new(7);
        for _ in 0..50 {
            let mut six = || std::array::from_fn(|_| noise.number());
            let [a, b, c]: [Block; 3] = std::array::from_fn(|_| std::array::from_fn(|_| six()));
            let (of, y) = ([&a, &b, &c], six());
            assert_eq!(widest(All(of, &y)), plain(of, &y));
            let across = transposed(&a);
            assert!((0..36).all(|at| across[at % 6][at / 6] == a[at / 6][at % 6]));
        }
    }
}
