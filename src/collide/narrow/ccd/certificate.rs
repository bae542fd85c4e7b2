//! The condition by which a direction proves that two features stay apart, with the bound on all
//! rounding.
//!
//! # Lemma
//!
//! Let n be any vector and let aᵢ(t), bⱼ(t) be the vertices of two features, each on a straight way
//! over t in [0, 1]. If n·(aᵢ(t) − bⱼ(t)) > |n| δ for every pair of vertices, the features are more
//! than δ apart at time t: points of the features are convex combinations of vertices, so
//! n·(p − q) > |n| δ for all their points p and q, and n·(p − q) ≤ |n| |p − q|.
//!
//! The left side is linear in t. If it holds at two times, it holds between them, and if it is
//! known at 0 and 1, it is known in all of [0, 1]: a common motion of both features cancels, and no
//! error is made in between.
//!
//! The direction may turn, too: if n goes linearly from n₀ to n₁ while the difference of two
//! vertices goes linearly from z₀ to z₁, then n·z is a quadratic polynomial, nowhere less than the
//! least of n₀·z₀, (n₀·z₁ + n₁·z₀)/2 and n₁·z₁, its coefficients in Bernstein's basis; and |n| is
//! nowhere more than the larger of |n₀| and |n₁|.
//!
//! # Rounding
//!
//! U = 2⁻⁵³ is the unit roundoff, z the computed difference aᵢ − bⱼ, and R the root of the sum of
//! the squares of all differences at both ends, so that no difference is longer.
//!
//! 1. Every coordinate of z is the exact one times (1 + ε), |ε| ≤ U. That holds far from the origin
//!    too, since what is given are the rounded positions themselves; and it holds near zero, where
//!    differences are exact.
//! 2. The computed n·z has three products and two sums, each with a relative error of U at most, so
//!    it differs by less than (3 U + U + O(U²)) Σ|nₖ zₖ| ≤ 5 U |n| R from the exact n·(aᵢ − bⱼ),
//!    and by another 6 · 2⁻¹⁰⁷⁵ where products underflow.
//! 3. Between the ends, z (1 − t) + z' t has rounded 1 − t, both products and their sum, an error
//!    of less than 4 U R for the vector. With it, n·z is within 9 U |n| R, and the mean of two such
//!    products within 11 U |n| R.
//! 4. The *level* is ℓ = (√(n·n) + F) (δ (1 + 128 U) + 32 U √Σz²) with F = 2⁻⁵⁰⁰. The factors
//!    are at least |n| (1 − 8 U) and R (1 − 32 U): what underflows in squares of n is below 2⁻⁵³⁶
//!    in the root, much less than F. All further roundings together are below 8 U. Hence
//!    ℓ ≥ |n| δ (1 + 128 U)(1 − 32 U) + 32 U |n| R (1 − 64 U) > |n| δ + 30 U |n| R,
//!    and the second summand is also above 2⁻⁷⁰⁰ (from F and R), more than what underflows in 2.
//! 5. So a product above ℓ, both as computed, implies that the exact one is above |n| δ.
//! 6. Nothing is certified unless Σz² is between 2⁻²⁰⁰ and 2²⁰⁰, and n·n below 2⁷⁰⁰: then nothing
//!    overflows. A value that is not finite is not between. Queries of other sizes are multiplied
//!    by a power of two first (see [`super::advance`]); what is lost by that is below 2⁻¹⁰⁷³.

use super::number::{Number, Vector, dot};

/// The differences of P pairs of vertices when their motion starts and when it ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ways<N, const P: usize> {
    /// The positions at time 0.
    pub(super) start: [Vector<N>; P],
    /// The positions at time 1.
    pub(super) end: [Vector<N>; P],
}

/// The constants of the proof above.
const FLOOR: f64 = 1.0 / power(500);
const LARGEST_DIRECTION: f64 = power(700);
const SMALLEST: f64 = 1.0 / power(200);
const LARGEST: f64 = power(200);
const ROUNDING: f64 = 1.0 / power(48);
const WIDENED: f64 = 1.0 + 1.0 / power(46);

/// Factors that round times down and up, and the least time that is distinguished from zero.
const EARLIER: f64 = 1.0 - 1.0 / power(49);
const LATER: f64 = 1.0 + 1.0 / power(49);
const INSTANT: f64 = 1.0 / power(1000);

/// The power 2ᵏ.
const fn power(k: u64) -> f64 {
    f64::from_bits((1023 + k) << 52)
}

/// The bound on rounding for a query and a separation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bound<N> {
    /// Whether the differences are of a size for which the bound holds, by 1 or 0.
    fits: N,
    /// The distance to prove, and the bound on the rounding of a unit direction.
    level: N,
}

impl<N: Number> Bound<N> {
    /// The bound for a separation δ.
    #[inline(always)]
    pub(super) fn new<const P: usize>(ways: &Ways<N, P>, separation: f64) -> Self {
        let mut squares = dot(ways.start[0], ways.start[0]) + dot(ways.end[0], ways.end[0]);
        for j in 1..P {
            let of_start = dot(ways.start[j], ways.start[j]);
            squares = squares + (of_start + dot(ways.end[j], ways.end[j]));
        }
        let radius = squares.square_root();
        let (zero, one) = (squares.alike(0.0), squares.alike(1.0));
        let small = squares.if_less(squares.alike(LARGEST), one, zero);
        let widened = squares.alike(separation * WIDENED);
        Self {
            fits: squares.alike(SMALLEST).if_less(squares, small, zero),
            level: widened + radius * squares.alike(ROUNDING),
        }
    }

    /// The level that products with a direction must exceed, and whether nothing overflows (1 or
    /// 0).
    #[inline(always)]
    fn of(self, direction: Vector<N>) -> (N, N) {
        let square = dot(direction, direction);
        let level = (square.square_root() + square.alike(FLOOR)) * self.level;
        let fits = square.if_less(
            square.alike(LARGEST_DIRECTION),
            self.fits,
            square.alike(0.0),
        );
        (level, fits)
    }

    /// Tells whether a direction proves the separation for the whole motion, by 1 or 0.
    #[inline(always)]
    pub(super) fn separates<const P: usize>(self, ways: &Ways<N, P>, direction: Vector<N>) -> N {
        let (level, mut proven) = self.of(direction);
        let zero = level.alike(0.0);
        for j in 0..P {
            proven = level.if_less(dot(direction, ways.start[j]), proven, zero);
            proven = level.if_less(dot(direction, ways.end[j]), proven, zero);
        }
        proven
    }

    /// Tells by 1 or 0 whether a direction that turns proves the separation between two times: from
    /// one direction at the first to another at the second, linearly. The differences are those at
    /// the two times.
    #[inline(always)]
    pub(super) fn follows<const P: usize>(
        self,
        differences: [&[Vector<N>; P]; 2],
        directions: [Vector<N>; 2],
    ) -> N {
        let [first, second] = differences;
        let [from, to] = directions;
        let ((one_level, fits), (other, both_fit)) = (self.of(from), self.of(to));
        let level = one_level.if_less(other, other, one_level);
        let (zero, half) = (level.alike(0.0), level.alike(0.5));
        let mut proven = zero.if_less(fits, both_fit, zero);
        for j in 0..P {
            let middle = (dot(from, second[j]) + dot(to, first[j])) * half;
            proven = level.if_less(dot(from, first[j]), proven, zero);
            proven = level.if_less(middle, proven, zero);
            proven = level.if_less(dot(to, second[j]), proven, zero);
        }
        proven
    }
}

/// Times from `from` to `to`, both included, for which the separation is proven.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Proven {
    /// The beginning; at most 0 if the start is among them.
    pub(super) from: f64,
    /// Infinite if the end is among them.
    pub(super) to: f64,
}

impl Bound<f64> {
    /// The times for which a direction proves the separation, if there are any.
    ///
    /// For each pair of vertices, a and b are what the products exceed the level by at both ends.
    /// Where their signs differ, the linear function between them is zero at a / (a − b). There, a
    /// and b are known to U each, and sum, quotient and the product with `EARLIER` or `LATER` are
    /// rounded once each: 6 U together, less than the 16 U that these add or take away.
    pub(super) fn proven<const P: usize>(
        self,
        ways: &Ways<f64, P>,
        direction: Vector<f64>,
    ) -> Option<Proven> {
        let (level, fits) = self.of(direction);
        if fits == 0.0 {
            return None;
        }
        let mut proven = Proven {
            from: f64::NEG_INFINITY,
            to: f64::INFINITY,
        };
        for j in 0..P {
            let a = dot(direction, ways.start[j]) - level;
            let b = dot(direction, ways.end[j]) - level;
            match (a > 0.0, b > 0.0) {
                (true, true) => {}
                (true, false) => {
                    let to = a / (a - b) * EARLIER;
                    // A time so short could have been rounded up.
                    proven.to = proven.to.min(if to < INSTANT { 0.0 } else { to });
                }
                (false, true) => {
                    let from = (a / (a - b) * LATER).max(INSTANT);
                    proven.from = proven.from.max(from);
                }
                (false, false) => return None,
            }
        }
        (proven.from <= proven.to).then_some(proven)
    }
}
