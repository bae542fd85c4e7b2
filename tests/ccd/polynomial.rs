//! Polynomials with whole coefficients: exact signs, and the sign of one polynomial at the root of
//! another.

use std::cmp::Ordering;

use num_bigint::{BigInt, Sign};
use num_integer::Integer as _;

/// A polynomial over [0, 1], from the coefficient of 1 upwards; without trailing zeros.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Polynomial(Vec<BigInt>);

impl Polynomial {
    pub(crate) fn new(mut coefficients: Vec<BigInt>) -> Self {
        while coefficients.last().is_some_and(is_zero) {
            coefficients.pop();
        }
        Self(coefficients)
    }

    pub(crate) fn is_zero(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn plus(&self, other: &Self) -> Self {
        let at = |of: &Self, k: usize| of.0.get(k).cloned().unwrap_or_default();
        let count = self.0.len().max(other.0.len());
        Self::new((0..count).map(|k| at(self, k) + at(other, k)).collect())
    }

    pub(crate) fn minus(&self, other: &Self) -> Self {
        self.plus(&Self(other.0.iter().map(|c| -c).collect()))
    }

    pub(crate) fn times(&self, other: &Self) -> Self {
        if self.is_zero() || other.is_zero() {
            return Self(Vec::new());
        }
        let mut product = vec![BigInt::default(); self.0.len() + other.0.len() - 1];
        for (i, a) in self.0.iter().enumerate() {
            for (j, b) in other.0.iter().enumerate() {
                product[i + j] += a * b;
            }
        }
        Self::new(product)
    }

    fn derivative(&self) -> Self {
        let terms = self.0.iter().enumerate().skip(1);
        Self::new(terms.map(|(k, c)| c * BigInt::from(k)).collect())
    }

    /// Divided by the greatest common divisor of the coefficients.
    fn primitive(self) -> Self {
        let content = self.0.iter().fold(BigInt::default(), |gcd, c| gcd.gcd(c));
        if is_zero(&content) {
            return self;
        }
        Self(self.0.into_iter().map(|c| c / &content).collect())
    }

    /// The quotient and the remainder of a power of the divisor's leading coefficient times this.
    fn divided(&self, divisor: &Self) -> (Self, Self) {
        let (mut rest, mut quotient) = (self.clone(), Self(Vec::new()));
        let leading = Self(vec![divisor.0[divisor.0.len() - 1].clone()]);
        while rest.0.len() >= divisor.0.len() {
            let mut term = vec![BigInt::default(); rest.0.len() - divisor.0.len()];
            term.push(rest.0[rest.0.len() - 1].clone());
            let term = Self(term);
            quotient = quotient.times(&leading).plus(&term);
            rest = rest.times(&leading).minus(&term.times(divisor));
        }
        (quotient, rest)
    }

    /// A greatest common divisor.
    fn common(&self, other: &Self) -> Self {
        let (mut a, mut b) = (self.clone().primitive(), other.clone().primitive());
        while !b.is_zero() {
            let rest = a.divided(&b).1.primitive();
            (a, b) = (b, rest);
        }
        a
    }

    /// Divides by the repeated roots, so that every root is there once.
    fn with_simple_roots(&self) -> Self {
        let common = self.common(&self.derivative());
        self.divided(&common).0.primitive()
    }

    /// Coefficients in Bernstein's basis over [0, 1], times a positive number.
    pub(crate) fn bernstein(&self) -> Bernstein {
        let degree = self.0.len().saturating_sub(1);
        let binomials: Vec<_> = (0..=degree).map(|k| binomial(degree, k)).collect();
        let common = binomials.iter().fold(1, |lcm: u64, b| lcm.lcm(b));
        let coefficient = |i: usize| {
            let terms = self.0.iter().enumerate().take(i + 1);
            terms
                .map(|(k, c)| c * BigInt::from(binomial(i, k) * (common / binomials[k])))
                .sum()
        };
        Bernstein((0..=degree).map(coefficient).collect())
    }
}

fn binomial(n: usize, k: usize) -> u64 {
    (0..k).fold(1, |product, j| product * (n - j) as u64 / (j + 1) as u64)
}

fn is_zero(x: &BigInt) -> bool {
    x.sign() == Sign::NoSign
}

fn sign(x: &BigInt) -> Ordering {
    x.cmp(&BigInt::default())
}

/// A polynomial over an interval by its coefficients in Bernstein's basis: it lies between the
/// least and the largest, has the first and the last at the ends, and no more roots than they
/// change sign.
#[derive(Clone, Debug)]
pub(crate) struct Bernstein(Vec<BigInt>);

impl Bernstein {
    pub(crate) fn is_positive(&self) -> bool {
        self.0.iter().all(|c| sign(c) == Ordering::Greater)
    }

    pub(crate) fn is_negative(&self) -> bool {
        self.0.iter().all(|c| sign(c) == Ordering::Less)
    }

    pub(crate) fn at_start(&self) -> Ordering {
        sign(&self.0[0])
    }

    pub(crate) fn at_end(&self) -> Ordering {
        sign(&self.0[self.0.len() - 1])
    }

    fn changes(&self) -> usize {
        let signs: Vec<_> = self.0.iter().map(sign).filter(|s| s.is_ne()).collect();
        signs.array_windows().filter(|[a, b]| a != b).count()
    }

    /// Cuts the interval in halves.
    pub(crate) fn halves(&self) -> [Self; 2] {
        let degree = self.0.len() - 1;
        let (mut row, mut left, mut right) = (self.0.clone(), Vec::new(), Vec::new());
        for k in 0..=degree {
            left.push(&row[0] << (degree - k));
            right.push(&row[degree - k] << (degree - k));
            row = row.array_windows().map(|[a, b]| a + b).collect();
        }
        right.reverse();
        [Self(left), Self(right)]
    }

    /// The polynomial in a variable that is 0 and 1 at the ends.
    pub(crate) fn polynomial(&self) -> Polynomial {
        let degree = self.0.len() - 1;
        let mut differences = self.0.clone();
        let mut coefficients = Vec::new();
        for k in 0..=degree {
            coefficients.push(&differences[0] * BigInt::from(binomial(degree, k)));
            differences = differences.array_windows().map(|[a, b]| b - a).collect();
        }
        Polynomial::new(coefficients)
    }
}

/// Whether at some root of `of` in [0, 1] others are not negative, and `valid` is positive.
pub(crate) fn has_root_where(of: &Polynomial, others: &[Polynomial], valid: &Polynomial) -> bool {
    let simple = of.with_simple_roots();
    let others: Vec<_> = others.iter().chain([valid]).collect();
    let commons: Vec<_> = others
        .iter()
        .map(|g| simple.common(g).bernstein())
        .collect();
    let fits = |at: usize, sign: Ordering| match sign {
        Ordering::Less => false,
        Ordering::Equal => at + 1 < others.len(),
        Ordering::Greater => true,
    };
    let mut open = vec![(
        simple.bernstein(),
        others.iter().map(|g| g.bernstein()).collect::<Vec<_>>(),
        commons,
    )];
    while let Some((root, others, commons)) = open.pop() {
        let ends: [fn(&Bernstein) -> Ordering; 2] = [Bernstein::at_start, Bernstein::at_end];
        for end in ends {
            let fit = || others.iter().enumerate().all(|(k, g)| fits(k, end(g)));
            if end(&root).is_eq() && fit() {
                return true;
            }
        }
        let (changes, from, to) = (root.changes(), root.at_start(), root.at_end());
        if changes == 0 {
            continue;
        }
        if changes == 1 && from.is_ne() && to.is_ne() {
            // One root. Others are zero there if the common divisor changes its sign.
            let sign = |g: &Bernstein, common: &Bernstein| {
                let zero = common.at_start() != common.at_end();
                if zero {
                    Some(Ordering::Equal)
                } else if g.is_positive() {
                    Some(Ordering::Greater)
                } else {
                    g.is_negative().then_some(Ordering::Less)
                }
            };
            let signs: Vec<_> = others
                .iter()
                .zip(&commons)
                .map(|(g, c)| sign(g, c))
                .collect();
            let known = |(k, sign): (usize, &Option<Ordering>)| sign.map(|sign| fits(k, sign));
            let fit: Vec<_> = signs.iter().enumerate().map(known).collect();
            if fit.contains(&Some(false)) {
                continue;
            }
            if !fit.contains(&None) {
                return true;
            }
        }
        let halves = |of: &[Bernstein]| -> [Vec<Bernstein>; 2] {
            let all: Vec<_> = of.iter().map(Bernstein::halves).collect();
            [0, 1].map(|half| all.iter().map(|h| h[half].clone()).collect())
        };
        let ([o0, o1], [c0, c1], [r0, r1]) = (halves(&others), halves(&commons), root.halves());
        open.extend([(r0, o0, c0), (r1, o1, c1)]);
    }
    false
}
