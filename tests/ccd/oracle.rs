//! Whether two features come within a separation, exactly.
//!
//! It shares nothing with what it judges. Distances of features are those of a vertex and a vertex,
//! of a vertex and the inside of an edge, of a vertex and the inside of a face, or of the insides
//! of two edges; each squared and compared with the separation is the sign of a polynomial in time,
//! and whether the closest points are inside are signs of others. Features come within the
//! separation either at time 0, or first at a root of one of the polynomials; one that is zero
//! throughout needs no look at its roots, for then the closest points of the first time lay inside
//! before, too, or are not inside. All numbers are whole: coordinates times a power of two.

use std::cmp::Ordering;

use num_bigint::BigInt;
use weftwork::collide::ccd::Motion;

use crate::polynomial::{Bernstein, Polynomial, has_root_where};

/// The kind of a pair of features.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    VertexFace,
    EdgeEdge,
}

type Vector = [Polynomial; 3];

/// Distances of one kind of closest points.
struct Case {
    /// A polynomial that is zero where the distance is the separation.
    gap: Polynomial,
    /// Whether the gap is negative where the distance is less than the separation. Otherwise the
    /// separation is zero, and the gap is a height, whose sign is that of a side.
    squared: bool,
    /// Polynomials of which none is negative where the closest points are inside.
    inside: Vec<Polynomial>,
    /// A polynomial that is positive where there are such points: an edge has a length, a face an
    /// area.
    valid: Polynomial,
}

/// Whether the features come within the separation, or touch if it is zero.
pub(crate) fn touches(kind: Kind, x: &[Motion; 4], separation: f64) -> bool {
    let (x, separation) = whole(x, separation);
    let [a, b, c, d] = &x;
    let (vertices, mut edges) = match kind {
        Kind::VertexFace => (
            vec![(a, b), (a, c), (a, d)],
            vec![(a, b, c), (a, c, d), (a, d, b)],
        ),
        Kind::EdgeEdge => (
            vec![(a, c), (a, d), (b, c), (b, d)],
            vec![(a, c, d), (b, c, d), (c, a, b), (d, a, b)],
        ),
    };
    let square = separation.times(&separation);
    let mut found = vertices.into_iter().any(|(p, q)| {
        let w = minus(p, q);
        happens(&Case {
            gap: dot(&w, &w).minus(&square),
            squared: true,
            inside: Vec::new(),
            valid: one(),
        })
    });
    found = found
        || edges
            .drain(..)
            .any(|(p, q, r)| happens(&at_edge(p, q, r, &square)));
    found
        || happens(&match kind {
            Kind::VertexFace => at_face(&x, &square),
            Kind::EdgeEdge => at_edges(&x, &square),
        })
}

fn at_edge(p: &Vector, q: &Vector, r: &Vector, square: &Polynomial) -> Case {
    let (w, edge) = (minus(p, q), minus(r, q));
    let (across, along, length) = (cross(&w, &edge), dot(&w, &edge), dot(&edge, &edge));
    Case {
        gap: dot(&across, &across).minus(&square.times(&length)),
        squared: true,
        inside: vec![along.clone(), length.minus(&along)],
        valid: length,
    }
}

fn at_face([p, a, b, c]: &[Vector; 4], square: &Polynomial) -> Case {
    let normal = cross(&minus(b, a), &minus(c, a));
    let area = dot(&normal, &normal);
    let side = |q: &Vector, r: &Vector| dot(&normal, &cross(&minus(r, q), &minus(p, q)));
    Case {
        gap: gap(dot(&normal, &minus(p, a)), &area, square),
        squared: !square.is_zero(),
        inside: vec![side(a, b), side(b, c), side(c, a)],
        valid: area,
    }
}

fn at_edges([a, b, c, d]: &[Vector; 4], square: &Polynomial) -> Case {
    let (u, v, r) = (minus(b, a), minus(d, c), minus(c, a));
    let normal = cross(&u, &v);
    let area = dot(&normal, &normal);
    let on_first = dot(&cross(&r, &v), &normal);
    let on_second = dot(&cross(&r, &u), &normal);
    Case {
        gap: gap(dot(&normal, &r), &area, square),
        squared: !square.is_zero(),
        inside: vec![
            area.minus(&on_first),
            area.minus(&on_second),
            on_first,
            on_second,
        ],
        valid: area,
    }
}

/// The height over a plane, times |normal|, less the separation: for none without squares.
fn gap(height: Polynomial, area: &Polynomial, square: &Polynomial) -> Polynomial {
    if square.is_zero() {
        return height;
    }
    height.times(&height).minus(&square.times(area))
}

/// Whether a distance becomes the separation, or is not above it at time 0.
fn happens(case: &Case) -> bool {
    let gap = case.gap.bernstein();
    let inside: Vec<_> = case.inside.iter().map(Polynomial::bernstein).collect();
    let valid = case.valid.bernstein();
    let within = gap.at_start().is_eq() || (case.squared && gap.at_start().is_lt());
    if within && valid.at_start().is_gt() && inside.iter().all(|g| g.at_start().is_ge()) {
        return true;
    }
    !case.gap.is_zero() && !case.valid.is_zero() && search(&gap, &inside, &valid, 48)
}

fn search(gap: &Bernstein, inside: &[Bernstein], valid: &Bernstein, depth: u32) -> bool {
    if gap.is_positive() || gap.is_negative() || inside.iter().any(Bernstein::is_negative) {
        return false;
    }
    let crosses = gap.at_start().reverse() == gap.at_end() && gap.at_start() != Ordering::Equal;
    if crosses && valid.is_positive() && inside.iter().all(Bernstein::is_positive) {
        return true;
    }
    if depth == 0 {
        let inside: Vec<_> = inside.iter().map(Bernstein::polynomial).collect();
        return has_root_where(&gap.polynomial(), &inside, &valid.polynomial());
    }
    let ([g0, g1], [v0, v1]) = (gap.halves(), valid.halves());
    let halves: Vec<_> = inside.iter().map(Bernstein::halves).collect();
    let half = |k: usize| -> Vec<_> { halves.iter().map(|h| h[k].clone()).collect() };
    search(&g0, &half(0), &v0, depth - 1) || search(&g1, &half(1), &v1, depth - 1)
}

fn one() -> Polynomial {
    Polynomial::new(vec![BigInt::from(1)])
}

fn minus(a: &Vector, b: &Vector) -> Vector {
    [0, 1, 2].map(|k| a[k].minus(&b[k]))
}

fn dot(a: &Vector, b: &Vector) -> Polynomial {
    let [x, y, z] = [0, 1, 2].map(|k| a[k].times(&b[k]));
    x.plus(&y).plus(&z)
}

fn cross(a: &Vector, b: &Vector) -> Vector {
    [(1, 2), (2, 0), (0, 1)].map(|(j, k)| a[j].times(&b[k]).minus(&a[k].times(&b[j])))
}

/// Positions as polynomials of time with whole coefficients, and the separation in their units.
fn whole(x: &[Motion; 4], separation: f64) -> ([Vector; 4], Polynomial) {
    let positions = x.iter().flat_map(|x| [x.start, x.end]);
    let numbers = positions.flat_map(|x| x.to_array()).chain([separation]);
    let parts = |number: f64| {
        assert!(number.is_finite());
        let bits = number.to_bits();
        let exponent = ((bits >> 52) & 0x7ff) as i64;
        let fraction = (bits & ((1 << 52) - 1)) as i64;
        let digits = if exponent == 0 {
            fraction
        } else {
            fraction | 1 << 52
        };
        let digits = if number < 0.0 { -digits } else { digits };
        (digits, exponent.max(1))
    };
    let all = numbers.map(parts).filter(|&(digits, _)| digits != 0);
    // Trailing zeros are no digits.
    let lowest = all.map(|(digits, exponent)| exponent + i64::from(digits.trailing_zeros()));
    let least = lowest.min().unwrap_or(0);
    let whole = |number: f64| {
        let (digits, exponent) = parts(number);
        if exponent >= least {
            BigInt::from(digits) << (exponent - least)
        } else {
            BigInt::from(digits >> (least - exponent).min(63))
        }
    };
    let vector = |x: &Motion| {
        [0, 1, 2].map(|k| {
            let (start, end) = (whole(x.start[k]), whole(x.end[k]));
            let change = end - &start;
            Polynomial::new(vec![start, change])
        })
    };
    (
        x.each_ref().map(vector),
        Polynomial::new(vec![whole(separation)]),
    )
}
