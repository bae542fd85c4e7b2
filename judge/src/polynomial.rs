//! Polynomials with whole coefficients, their real roots between 0 and 1, and signs at these.
//!
//! All of it is exact: a root is an interval with dyadic ends in which its polynomial has no other
//! root, and the sign of another polynomial there is found by Sturm's theorem and by greatest
//! common divisors. Degrees are small (4 at most, where the judge uses them).

use std::cmp::Ordering;

use num_bigint::{BigInt, Sign};
use num_integer::Integer as _;
use num_traits::{One as _, Signed as _, Zero as _};

/// The halvings by which a root is found for people.
const DIGITS: u32 = 50;

/// A polynomial in t: its coefficients, that of the constant first. The last one is not zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Polynomial(Vec<BigInt>);

/// A time: a whole number over a power of two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dyadic {
    numerator: BigInt,
    /// The denominator is 2 to the power of this.
    shift: u32,
}

/// A root of a polynomial, between 0 and 1.
#[derive(Clone, Debug)]
pub(crate) enum Root {
    /// A root that is a dyadic number.
    At(Dyadic),
    /// The only root between two numbers of a polynomial without multiple roots, which is zero at
    /// neither of them.
    Between {
        /// The polynomial.
        of: Polynomial,
        /// The lower number.
        low: Dyadic,
        /// The upper number.
        high: Dyadic,
    },
}

impl Dyadic {
    /// A whole number.
    pub(crate) fn whole(number: u32) -> Self {
        Self {
            numerator: number.into(),
            shift: 0,
        }
    }

    /// The number halfway between two.
    fn middle(low: &Self, high: &Self) -> Self {
        let shift = low.shift.max(high.shift);
        let of = |d: &Self| &d.numerator << (shift - d.shift);
        Self {
            numerator: of(low) + of(high),
            shift: shift + 1,
        }
    }

    /// The number, rounded.
    pub(crate) fn value(&self) -> f64 {
        // 53 bits suffice, and more would overflow.
        let bits = self.numerator.bits();
        let cut = bits.saturating_sub(64);
        let leading = i128::try_from(&self.numerator >> cut).unwrap_or(0) as f64;
        leading * 2.0_f64.powi(cut as i32 - self.shift as i32)
    }
}

impl Polynomial {
    /// The polynomial with these coefficients, that of the constant first.
    pub(crate) fn new(mut coefficients: Vec<BigInt>) -> Self {
        while coefficients.last().is_some_and(BigInt::is_zero) {
            coefficients.pop();
        }
        Self(coefficients)
    }

    /// The line that is `start` at 0 and `end` at 1.
    pub(crate) fn line(start: &BigInt, end: &BigInt) -> Self {
        Self::new(vec![start.clone(), end - start])
    }

    /// Whether it is zero everywhere.
    pub(crate) fn is_zero(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether it is a constant.
    fn is_constant(&self) -> bool {
        self.0.len() <= 1
    }

    pub(crate) fn plus(&self, other: &Self) -> Self {
        let zero = BigInt::zero();
        let of = |p: &Self, k: usize| p.0.get(k).unwrap_or(&zero).clone();
        let length = self.0.len().max(other.0.len());
        Self::new((0..length).map(|k| of(self, k) + of(other, k)).collect())
    }

    pub(crate) fn minus(&self, other: &Self) -> Self {
        self.plus(&other.negated())
    }

    fn negated(&self) -> Self {
        Self(self.0.iter().map(|c| -c).collect())
    }

    pub(crate) fn times(&self, other: &Self) -> Self {
        if self.is_zero() || other.is_zero() {
            return Self(Vec::new());
        }
        let mut product = vec![BigInt::zero(); self.0.len() + other.0.len() - 1];
        for (i, a) in self.0.iter().enumerate() {
            for (k, b) in other.0.iter().enumerate() {
                product[i + k] += a * b;
            }
        }
        Self::new(product)
    }

    fn derivative(&self) -> Self {
        let terms = self.0.iter().enumerate().skip(1);
        Self(terms.map(|(k, c)| c * BigInt::from(k)).collect())
    }

    /// The polynomial over the greatest common divisor of its coefficients, with its signs.
    fn primitive(self) -> Self {
        let divisor = self.0.iter().fold(BigInt::zero(), |a, b| a.gcd(b));
        if divisor.is_zero() || divisor.is_one() {
            return self;
        }
        Self(self.0.into_iter().map(|c| c / &divisor).collect())
    }

    /// A positive multiple of the remainder of a division, and of the quotient.
    fn divided(&self, by: &Self) -> (Self, Self) {
        let lead = by.0.last().expect("the divisor is not zero");
        let mut rest = self.0.clone();
        let mut quotient = vec![BigInt::zero(); self.0.len().saturating_sub(by.0.len() - 1)];
        while rest.len() >= by.0.len() {
            let place = rest.len() - by.0.len();
            let top = rest
                .last()
                .expect("it is not shorter than the divisor")
                .clone();
            let top = if lead.is_negative() { -top } else { top };
            let scale = lead.abs();
            for c in rest.iter_mut().chain(&mut quotient) {
                *c *= &scale;
            }
            quotient[place] += &top;
            for (k, c) in by.0.iter().enumerate() {
                rest[place + k] -= &top * c;
            }
            rest.pop();
            while rest.last().is_some_and(BigInt::is_zero) {
                rest.pop();
            }
        }
        (Self::new(quotient), Self(rest).primitive())
    }

    /// The greatest common divisor, but for a factor.
    fn gcd(&self, other: &Self) -> Self {
        let (mut a, mut b) = (self.clone(), other.clone());
        while !b.is_zero() {
            let rest = a.divided(&b).1;
            (a, b) = (b, rest);
        }
        a.primitive()
    }

    /// A polynomial with the same roots, each of them once.
    fn without_multiple_roots(&self) -> Self {
        let shared = self.gcd(&self.derivative());
        if shared.is_constant() {
            return self.clone().primitive();
        }
        self.divided(&shared).0.primitive()
    }

    /// The sign at a number.
    pub(crate) fn sign_at(&self, t: &Dyadic) -> Ordering {
        // Horner's rule, with all terms over the same power of two.
        let mut sum = BigInt::zero();
        let mut shift = 0;
        for c in self.0.iter().rev() {
            sum = sum * &t.numerator + (c << shift);
            shift += t.shift;
        }
        match sum.sign() {
            Sign::Minus => Ordering::Less,
            Sign::NoSign => Ordering::Equal,
            Sign::Plus => Ordering::Greater,
        }
    }

    /// The roots from 0 to 1, both included, ascending. There must be a coefficient.
    pub(crate) fn roots(&self) -> Vec<Root> {
        debug_assert!(!self.is_zero());
        let simple = self.without_multiple_roots();
        let (zero, one) = (Dyadic::whole(0), Dyadic::whole(1));
        let mut found = Vec::new();
        if simple.sign_at(&zero).is_eq() {
            found.push(Root::At(zero.clone()));
        }
        let ends_in_root = simple.sign_at(&one).is_eq();
        Sturm::new(&simple).isolate(zero, one.clone(), &mut found);
        if ends_in_root {
            found.push(Root::At(one));
        }
        found
    }

    /// The sign at a root of another polynomial.
    pub(crate) fn sign_at_root(&self, root: &Root) -> Ordering {
        let (of, low, high) = match root {
            Root::At(t) => return self.sign_at(t),
            Root::Between { of, low, high } => (of, low, high),
        };
        if self.is_constant() {
            return self.sign_at(low);
        }
        let shared = of.gcd(self);
        // It divides `of`, which has one simple root there.
        if !shared.is_constant() && shared.sign_at(low) != shared.sign_at(high) {
            return Ordering::Equal;
        }
        // The two roots differ, so that a short enough interval has one of them only.
        let own = Sturm::new(&self.without_multiple_roots());
        let (mut low, mut high) = (low.clone(), high.clone());
        let below = of.sign_at(&low);
        loop {
            let (a, b) = (self.sign_at(&low), self.sign_at(&high));
            if a.is_ne() && a == b && own.count(&low, &high) == 0 {
                return a;
            }
            let middle = Dyadic::middle(&low, &high);
            let there = of.sign_at(&middle);
            if there.is_eq() {
                return self.sign_at(&middle);
            }
            if there == below {
                low = middle;
            } else {
                high = middle;
            }
        }
    }

    /// Whether it changes its sign at a root of its own that is inside of (0, 1), and to which.
    pub(crate) fn turns_at(&self, root: &Root) -> Option<Ordering> {
        match root {
            Root::Between { low, high, .. } => {
                let (before, after) = (self.sign_at(low), self.sign_at(high));
                (before != after).then_some(after)
            }
            Root::At(t) => {
                // The first derivative that is not zero decides.
                let mut derivative = self.derivative();
                let mut odd = true;
                while derivative.sign_at(t).is_eq() {
                    derivative = derivative.derivative();
                    odd = !odd;
                }
                odd.then(|| derivative.sign_at(t))
            }
        }
    }
}

impl Root {
    /// The time of it, to some 50 binary digits.
    pub(crate) fn time(&self) -> f64 {
        let (of, mut low, mut high) = match self {
            Self::At(t) => return t.value(),
            Self::Between { of, low, high } => (of, low.clone(), high.clone()),
        };
        let below = of.sign_at(&low);
        for _ in 0..DIGITS {
            let middle = Dyadic::middle(&low, &high);
            if of.sign_at(&middle) == below {
                low = middle;
            } else {
                high = middle;
            }
        }
        0.5 * (low.value() + high.value())
    }

    /// Whether it is 0 or 1.
    pub(crate) fn is_end(&self) -> bool {
        match self {
            Self::At(t) => *t == Dyadic::whole(0) || *t == Dyadic::whole(1),
            Self::Between { .. } => false,
        }
    }
}

/// The sequence of Sturm of a polynomial without multiple roots.
struct Sturm(Vec<Polynomial>);

impl Sturm {
    fn new(of: &Polynomial) -> Self {
        let mut sequence = vec![of.clone(), of.derivative().primitive()];
        while let [.., before, last] = &sequence[..]
            && !last.is_zero()
        {
            let next = before.divided(last).1.negated();
            sequence.push(next);
        }
        sequence.pop();
        Self(sequence)
    }

    /// The changes of sign in the sequence at a number.
    fn changes(&self, t: &Dyadic) -> usize {
        let signs = self.0.iter().map(|p| p.sign_at(t));
        let signs: Vec<Ordering> = signs.filter(|sign| sign.is_ne()).collect();
        signs.windows(2).filter(|pair| pair[0] != pair[1]).count()
    }

    /// The number of roots above `low`, up to and with `high`.
    fn count(&self, low: &Dyadic, high: &Dyadic) -> usize {
        self.changes(low).saturating_sub(self.changes(high))
    }

    /// Appends the roots between two numbers, ascending, the numbers themselves left out.
    fn isolate(&self, low: Dyadic, high: Dyadic, found: &mut Vec<Root>) {
        let of = &self.0[0];
        let (at_low, at_high) = (of.sign_at(&low), of.sign_at(&high));
        let inside = self.count(&low, &high) - usize::from(at_high.is_eq());
        if inside == 0 {
            return;
        }
        if inside == 1 && at_low.is_ne() && at_high.is_ne() {
            let of = of.clone();
            found.push(Root::Between { of, low, high });
            return;
        }
        let middle = Dyadic::middle(&low, &high);
        self.isolate(low, middle.clone(), found);
        if of.sign_at(&middle).is_eq() {
            found.push(Root::At(middle.clone()));
        }
        self.isolate(middle, high, found);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(coefficients: &[i64]) -> Polynomial {
        Polynomial::new(coefficients.iter().map(|&c| c.into()).collect())
    }

    /// The product of `den t − num`.
    fn with_roots(roots: &[(i64, i64)]) -> Polynomial {
        let factors = roots.iter().map(|&(num, den)| of(&[-num, den]));
        factors.fold(of(&[1]), |product, factor| product.times(&factor))
    }

    #[test]
    fn roots_are_found_once_each_and_in_order() {
        let p = with_roots(&[(1, 3), (1, 3), (1, 2), (2, 1), (0, 1), (1, 1)]);
        let roots: Vec<f64> = p.roots().iter().map(Root::time).collect();
        assert_eq!(roots.len(), 4, "{roots:?}");
        assert_eq!((roots[0], roots[2], roots[3]), (0.0, 0.5, 1.0));
        assert!(roots[1] > 0.0 && roots[1] < 0.5);
        // No real root at all, and one that is double.
        assert!(of(&[1, 0, 1]).roots().is_empty());
        let double = with_roots(&[(1, 3), (1, 3)]);
        assert_eq!(double.roots().len(), 1);
        assert_eq!(double.turns_at(&double.roots()[0]), None);
        let triple = with_roots(&[(1, 2), (1, 2), (1, 2)]);
        assert_eq!(triple.turns_at(&triple.roots()[0]), Some(Ordering::Greater));
    }

    #[test]
    fn signs_at_roots_are_exact() {
        // The root of 2 t² = 1 is irrational.
        let half = of(&[-1, 0, 2]);
        let [root] = &half.roots()[..] else {
            panic!("one root")
        };
        assert_eq!(half.sign_at_root(root), Ordering::Equal);
        assert_eq!(
            of(&[-1, 0, 2]).times(&of(&[5, 3])).sign_at_root(root),
            Ordering::Equal
        );
        // 0.70710678118654752440 is the root.
        let near = |digits: i64| of(&[-digits, 1_000_000_000_000_000_000]);
        assert_eq!(
            near(707_106_781_186_547_524).sign_at_root(root),
            Ordering::Greater
        );
        assert_eq!(
            near(707_106_781_186_547_525).sign_at_root(root),
            Ordering::Less
        );
        // A square that is nearly zero there is still positive.
        let near = near(707_106_781_186_547_524);
        assert_eq!(near.times(&near).sign_at_root(root), Ordering::Greater);
    }

    proptest! {
        /// Signs of products of linear factors at rational roots are those of the fractions.
        #[test]
        fn signs_agree_with_fractions(
            roots in prop::collection::vec((0i64..=24, 1i64..=24), 1..4),
            others in prop::collection::vec((0i64..=24, 1i64..=24), 1..4),
        ) {
            let (p, q) = (with_roots(&roots), with_roots(&others));
            let mut known: Vec<(i64, i64)> = roots.iter().copied().filter(|(n, d)| n <= d).collect();
            known.sort_by(|a, b| (a.0 * b.1).cmp(&(b.0 * a.1)));
            known.dedup_by(|a, b| a.0 * b.1 == b.0 * a.1);
            let found = p.roots();
            prop_assert_eq!(found.len(), known.len());
            for (root, &(n, d)) in found.iter().zip(&known) {
                let sign = others.iter().fold(1, |sign, &(num, den)| sign * (den * n - num * d).signum());
                prop_assert_eq!(q.sign_at_root(root), sign.cmp(&0));
                let times = roots.iter().filter(|r| r.0 * d == n * r.1).count();
                if !root.is_end() {
                    prop_assert_eq!(p.turns_at(root).is_some(), times % 2 == 1);
                }
            }
        }
    }
}
