//! The exact test of two features whose vertices move along straight ways from one state to the
//! next.
//!
//! A vertex and a face, or two edges, meet at a time t from 0 to 1 if they have a point in common
//! then. At such a time the four vertices lie in a plane: t is a root of a cubic, their
//! determinant. Where it is zero at all times, the four stay in one plane, and the times at which
//! they begin to meet are roots of the polynomials whose signs say whether they do. Numbers of
//! positions are dyadic, so all of these polynomials are whole ones after a scaling, and [`meet`]
//! decides everything by exact signs. [`is_apart`] is the filter before it, in floating-point
//! numbers, with a proven bound of its rounding.

use std::cmp::Ordering;

use num_bigint::BigInt;

use crate::polynomial::{Dyadic, Polynomial, Root};

/// A position in m.
pub type Position = [f64; 3];

/// The two features of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// The first vertex, and the face of the three others.
    VertexFace,
    /// The edge of the first two vertices, and that of the last two.
    EdgeEdge,
}

/// Two features that share no vertex, on their way from one state to the next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Way {
    /// The features.
    pub kind: Kind,
    /// The positions of their vertices at the start.
    pub start: [Position; 4],
    /// The positions of their vertices at the end.
    pub end: [Position; 4],
}

/// A time at which two features meet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Meeting {
    /// The time, as a share of the way, rounded.
    pub time: f64,
    /// Whether one passes through the other there: the sign that the determinant has afterwards.
    /// `None` where they touch with a border of one, at the start or at the end, or turn back.
    pub passes: Option<Ordering>,
}

/// The rounding of a number, relative to it.
const UNIT: f64 = f64::EPSILON / 2.0;

/// Far below all that positions in m can tell apart: covers what is lost where products underflow.
const TINY: f64 = 1e-290;

/// Times of features in one plane that are nearer than this are reported once.
const SAME: f64 = 1e-12;

/// The most directions that [`is_apart`] tries.
const DIRECTIONS: u32 = 48;

impl Kind {
    /// The number of vertices of the first feature.
    fn first(self) -> usize {
        match self {
            Self::VertexFace => 1,
            Self::EdgeEdge => 2,
        }
    }
}

/// Whether two features are shown to have no point in common at any time, in floating-point
/// numbers. `false` says nothing.
///
/// A direction n separates the features from time s to time e if n·(p − q) is above zero at both
/// times for each vertex p of the first and q of the second: in between it is a convex combination
/// of these, and features are hulls of their vertices. Directions are those along the closest
/// points at the middle of a part of the way; a part that none separates is halved.
#[must_use]
pub fn is_apart(way: &Way) -> bool {
    let mut tried = 0;
    let mut parts = vec![];
    let mut part = (0.0, 1.0);
    loop {
        let (from, to) = part;
        let middle = 0.5 * (from + to);
        tried += 1;
        if tried > DIRECTIONS {
            return false;
        }
        let direction = closest(way.kind, &at(way, middle));
        if separates(way, direction, from, to) {
            match parts.pop() {
                Some(next) => part = next,
                None => return true,
            }
        } else {
            parts.push((middle, to));
            part = (from, middle);
        }
    }
}

/// Whether a direction separates the features at two times, whatever the rounding.
///
/// With u = 2⁻⁵³, a difference d of coordinates has a relative error of at most u, its product with
/// a component of n one of 2u + u², and a sum of three of these at most (1 + u)⁴ − 1 < 4.1 u of the
/// sum of their sizes, which is itself computed to within 4 u: 8 u of it is more. A combination
/// (1 − t) a + t b of two such sums adds at most 4 u (|a| + |b|), for t is a multiple of 2⁻⁴⁸ from
/// 0 to 1, so that 1 − t is exact; and each sum's size bounds its |a|. So 16 u times both sizes is
/// more than all of it.
fn separates(way: &Way, n: Position, from: f64, to: f64) -> bool {
    let first = way.kind.first();
    for p in 0..first {
        for q in first..4 {
            let (a, size_a) = along(n, way.start[p], way.start[q]);
            let (b, size_b) = along(n, way.end[p], way.end[q]);
            let error = 16.0 * UNIT * (size_a + size_b) + TINY;
            let apart = |t: f64| (1.0 - t) * a + t * b > error;
            // A NaN separates nothing: every comparison with it is false.
            if !(apart(from) && apart(to)) {
                return false;
            }
        }
    }
    true
}

/// The component of p − q along a direction, and the sum of the sizes of its terms.
fn along(n: Position, p: Position, q: Position) -> (f64, f64) {
    let term = |k: usize| n[k] * (p[k] - q[k]);
    let (x, y, z) = (term(0), term(1), term(2));
    (x + y + z, x.abs() + y.abs() + z.abs())
}

/// Positions at a time, rounded.
fn at(way: &Way, t: f64) -> [Position; 4] {
    std::array::from_fn(|v| {
        std::array::from_fn(|k| way.start[v][k] + t * (way.end[v][k] - way.start[v][k]))
    })
}

fn minus(a: Position, b: Position) -> Position {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}

fn dot(a: Position, b: Position) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

fn cross(a: Position, b: Position) -> Position {
    [
        a[1] * b[2] - a[2] * b[1],
        a[2] * b[0] - a[0] * b[2],
        a[0] * b[1] - a[1] * b[0],
    ]
}

/// The way from the second feature to the first between their closest points, roughly.
fn closest(kind: Kind, x: &[Position; 4]) -> Position {
    match kind {
        Kind::VertexFace => from_triangle(x[0], [x[1], x[2], x[3]]),
        Kind::EdgeEdge => between_segments([x[0], x[1]], [x[2], x[3]]),
    }
}

/// The way from the closest point of a segment to a point.
fn from_segment(p: Position, [a, b]: [Position; 2]) -> Position {
    let (ab, ap) = (minus(b, a), minus(p, a));
    let t = (dot(ap, ab) / dot(ab, ab)).clamp(0.0, 1.0);
    let t = if t.is_nan() { 0.0 } else { t };
    std::array::from_fn(|k| ap[k] - t * ab[k])
}

fn shortest(ways: impl IntoIterator<Item = Position>) -> Position {
    let shorter = |a: Position, b: Position| if dot(b, b) < dot(a, a) { b } else { a };
    ways.into_iter().reduce(shorter).unwrap_or_default()
}

/// The way from the closest point of a triangle to a point.
fn from_triangle(p: Position, [a, b, c]: [Position; 3]) -> Position {
    let normal = cross(minus(b, a), minus(c, a));
    let inside = |s: Position, e: Position| dot(cross(minus(e, s), minus(p, s)), normal) >= 0.0;
    if inside(a, b) && inside(b, c) && inside(c, a) {
        let height = dot(minus(p, a), normal);
        return normal.map(|n| if height < 0.0 { -n } else { n });
    }
    shortest([[a, b], [b, c], [c, a]].map(|side| from_segment(p, side)))
}

/// The way between the closest points of two segments, to the first.
fn between_segments(first: [Position; 2], second: [Position; 2]) -> Position {
    let (d, e) = (minus(first[1], first[0]), minus(second[1], second[0]));
    let r = minus(first[0], second[0]);
    let (dd, de, ee) = (dot(d, d), dot(d, e), dot(e, e));
    let (dr, er) = (dot(d, r), dot(e, r));
    let determinant = dd * ee - de * de;
    let (s, t) = (
        (de * er - ee * dr) / determinant,
        (dd * er - de * dr) / determinant,
    );
    // Where edges are nearly parallel, their ends are as near as any other points.
    let is_across = determinant > 1e-9 * dd * ee;
    if is_across && s > 0.0 && s < 1.0 && t > 0.0 && t < 1.0 {
        let normal = cross(d, e);
        let height = dot(r, normal);
        return normal.map(|n| if height < 0.0 { -n } else { n });
    }
    let back = |way: Position| way.map(|w| -w);
    shortest([
        from_segment(first[0], second),
        from_segment(first[1], second),
        back(from_segment(second[0], first)),
        back(from_segment(second[1], first)),
    ])
}

/// The times at which two features meet, ascending: exact, but that times are rounded. For features
/// that stay in one plane these are times at which they begin or cease to meet, or at which
/// something else happens while they do.
///
/// # Errors
/// A position is not finite.
pub fn meet(way: &Way) -> Result<Vec<Meeting>, NotFinite> {
    let moving = Moving::new(way)?;
    let determinant = moving.determinant();
    let times = if determinant.is_zero() {
        let events = moving.events();
        let mut times = vec![Root::At(Dyadic::whole(0))];
        times.extend(events.iter().flat_map(Polynomial::roots));
        times
    } else {
        determinant.roots()
    };
    let mut meetings = Vec::new();
    for time in times {
        let passes = match moving.meet_at(&time) {
            Met::Not => continue,
            Met::Inside if !determinant.is_zero() && !time.is_end() => determinant.turns_at(&time),
            Met::Inside | Met::Border => None,
        };
        meetings.push(Meeting {
            time: time.time(),
            passes,
        });
    }
    meetings.sort_by(|a, b| a.time.total_cmp(&b.time));
    if determinant.is_zero() {
        // One time may be a root of several polynomials.
        meetings.dedup_by(|b, a| b.time - a.time < SAME);
    }
    Ok(meetings)
}

/// A position that is not finite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotFinite;

/// The meeting of features that are in one plane at a time.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Met {
    Not,
    /// A border of one is on the other.
    Border,
    /// The features meet in their insides.
    Inside,
}

/// A vector of polynomials.
type Vector = [Polynomial; 3];

/// Two features whose coordinates are whole numbers, and move in time.
struct Moving {
    kind: Kind,
    x: [Vector; 4],
}

impl Moving {
    fn new(way: &Way) -> Result<Self, NotFinite> {
        let numbers = || way.start.iter().chain(&way.end).flatten().copied();
        if !numbers().all(f64::is_finite) {
            return Err(NotFinite);
        }
        let lowest = numbers().map(|x| parts(x).1).min().unwrap_or(0);
        let whole = |x: f64| {
            let (mantissa, exponent) = parts(x);
            BigInt::from(mantissa) << (exponent - lowest)
        };
        let line =
            |v: usize, k: usize| Polynomial::line(&whole(way.start[v][k]), &whole(way.end[v][k]));
        Ok(Self {
            kind: way.kind,
            x: std::array::from_fn(|v| std::array::from_fn(|k| line(v, k))),
        })
    }

    /// The way from one vertex to another.
    fn way(&self, a: usize, b: usize) -> Vector {
        std::array::from_fn(|k| self.x[b][k].minus(&self.x[a][k]))
    }

    /// Zero when the four vertices are in one plane.
    fn determinant(&self) -> Polynomial {
        match self.kind {
            // Above the face, where it is seen counterclockwise, it is positive.
            Kind::VertexFace => product(&self.normal(), &self.way(1, 0)),
            Kind::EdgeEdge => product(&self.normal(), &self.way(0, 2)),
        }
    }

    /// The normal of the face, or of both edges.
    fn normal(&self) -> Vector {
        match self.kind {
            Kind::VertexFace => across(&self.way(1, 2), &self.way(1, 3)),
            Kind::EdgeEdge => across(&self.way(0, 1), &self.way(2, 3)),
        }
    }

    /// Polynomials that are all not negative while the features meet in a plane whose normal is not
    /// zero, and positive while their insides do.
    fn conditions(&self) -> Vec<Polynomial> {
        let n = self.normal();
        let side =
            |a: usize, b: usize, p: usize| product(&n, &across(&self.way(a, b), &self.way(a, p)));
        match self.kind {
            Kind::VertexFace => [(1, 2), (2, 3), (3, 1)]
                .map(|(a, b)| side(a, b, 0))
                .to_vec(),
            Kind::EdgeEdge => {
                // Points a + s (b − a) = c + t (d − c), with s and t times n·n.
                let square = product(&n, &n);
                let between = self.way(0, 2);
                let s = product(&n, &across(&between, &self.way(2, 3)));
                let t = product(&n, &across(&between, &self.way(0, 1)));
                let (past_s, past_t) = (square.minus(&s), square.minus(&t));
                vec![s, t, past_s, past_t]
            }
        }
    }

    /// All polynomials whose signs decide whether the features meet, those that are zero everywhere
    /// left out.
    fn events(&self) -> Vec<Polynomial> {
        let n = self.normal();
        let mut all = self.conditions();
        all.push(product(&n, &n));
        let mut of_points = |points: &[usize], segments: &[[usize; 2]]| {
            for &[a, b] in segments {
                let ab = self.way(a, b);
                let square = product(&ab, &ab);
                for &p in points.iter().filter(|p| **p != a && **p != b) {
                    let ap = self.way(a, p);
                    let along = product(&ap, &ab);
                    all.extend(across(&ap, &ab));
                    all.extend(ap);
                    all.extend([square.minus(&along), along]);
                }
                all.push(square);
            }
        };
        match self.kind {
            Kind::VertexFace => of_points(&[0], &[[1, 2], [2, 3], [3, 1]]),
            Kind::EdgeEdge => of_points(&[0, 1, 2, 3], &[[0, 1], [2, 3]]),
        }
        all.retain(|p| !p.is_zero());
        all
    }

    /// Whether, and how, the features meet at a time at which the four vertices are in one plane.
    fn meet_at(&self, time: &Root) -> Met {
        if !self.normal().iter().all(|c| c.sign_at_root(time).is_eq()) {
            let signs = self.conditions();
            let signs = signs.iter().map(|p| p.sign_at_root(time));
            return match signs.min() {
                Some(Ordering::Greater) => Met::Inside,
                Some(Ordering::Equal) => Met::Border,
                _ => Met::Not,
            };
        }
        // The face is a segment or a point, or the edges are parallel: they meet if a vertex is on
        // a segment.
        let on = |p: usize, ends: [usize; 2]| self.is_on_segment(p, ends, time);
        let met = match self.kind {
            Kind::VertexFace => on(0, [1, 2]) || on(0, [2, 3]) || on(0, [3, 1]),
            Kind::EdgeEdge => on(0, [2, 3]) || on(1, [2, 3]) || on(2, [0, 1]) || on(3, [0, 1]),
        };
        if met { Met::Border } else { Met::Not }
    }

    /// Whether a vertex is on the segment between two others at a time.
    fn is_on_segment(&self, p: usize, [a, b]: [usize; 2], time: &Root) -> bool {
        let (ab, ap) = (self.way(a, b), self.way(a, p));
        let is_zero = |v: &Vector| v.iter().all(|c| c.sign_at_root(time).is_eq());
        if is_zero(&ab) {
            return is_zero(&ap);
        }
        let along = product(&ap, &ab);
        let past = product(&ab, &ab).minus(&along);
        is_zero(&across(&ab, &ap))
            && along.sign_at_root(time).is_ge()
            && past.sign_at_root(time).is_ge()
    }
}

/// A finite number as a whole one times a power of two.
fn parts(x: f64) -> (i64, i32) {
    let bits = x.to_bits();
    let exponent = (bits >> 52 & 0x7ff) as i32;
    let fraction = (bits & ((1 << 52) - 1)) as i64;
    let (mantissa, exponent) = match exponent {
        0 => (fraction, -1074),
        _ => (fraction | 1 << 52, exponent - 1075),
    };
    if mantissa == 0 {
        // Any power will do for zero; this one makes no other number longer.
        return (0, 971);
    }
    let zeros = mantissa.trailing_zeros();
    let mantissa = mantissa >> zeros;
    let signed = if x < 0.0 { -mantissa } else { mantissa };
    (signed, exponent + zeros as i32)
}

fn product(a: &Vector, b: &Vector) -> Polynomial {
    let term = |k: usize| a[k].times(&b[k]);
    term(0).plus(&term(1)).plus(&term(2))
}

fn across(a: &Vector, b: &Vector) -> Vector {
    let minor = |i: usize, k: usize| a[i].times(&b[k]).minus(&a[k].times(&b[i]));
    [minor(1, 2), minor(2, 0), minor(0, 1)]
}
