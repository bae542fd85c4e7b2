//! Pairs that are plainly apart, by plain arithmetic with margins far above any rounding.
//!
//! It spares the oracle most of its work, and shares nothing with what it judges either: the motion
//! is cut into pieces, and in each piece features must be apart along one of thirteen fixed
//! directions, or never in one plane by Bernstein's coefficients.

use weftwork::collide::ccd::Motion;

use crate::oracle::Kind;

type Vector = [f64; 3];

/// Roundings make errors of some 1e-15, where the largest difference is 1.
const MARGIN: f64 = 1e-11;

const DIRECTIONS: [Vector; 13] = [
    [1.0, 0.0, 0.0],
    [0.0, 1.0, 0.0],
    [0.0, 0.0, 1.0],
    [1.0, 1.0, 0.0],
    [1.0, -1.0, 0.0],
    [1.0, 0.0, 1.0],
    [1.0, 0.0, -1.0],
    [0.0, 1.0, 1.0],
    [0.0, 1.0, -1.0],
    [1.0, 1.0, 1.0],
    [1.0, 1.0, -1.0],
    [1.0, -1.0, 1.0],
    [-1.0, 1.0, 1.0],
];

/// Whether the features are plainly farther apart than the separation.
pub(crate) fn apart(kind: Kind, x: &[Motion; 4], separation: f64) -> bool {
    // The last vertex stands still at the origin.
    let at = |k: usize, end: bool| -> Vector {
        let of = |x: &Motion| if end { x.end } else { x.start };
        (of(&x[k]) - of(&x[3])).to_array()
    };
    let ends = [false, true].map(|end| [at(0, end), at(1, end), at(2, end), at(3, end)]);
    let size = ends
        .iter()
        .flatten()
        .flatten()
        .fold(0.0, |most, c| f64::max(most, c.abs()));
    if !(f64::MIN_POSITIVE..1e300).contains(&size) {
        return false;
    }
    // Cubes of lengths must not overflow, nor underflow.
    let scale = |c: f64| c / size;
    let ends = ends.map(|x| x.map(|x| x.map(scale)));
    piece(kind, ends, scale(separation), 6)
}

fn piece(kind: Kind, ends: [[Vector; 4]; 2], separation: f64, depth: u32) -> bool {
    let firsts = match kind {
        Kind::VertexFace => 1,
        Kind::EdgeEdge => 2,
    };
    for n in DIRECTIONS {
        let least = 2.0 * (separation + MARGIN);
        let [mut above, mut below] = [f64::INFINITY; 2];
        for x in &ends {
            for p in &x[..firsts] {
                for q in &x[firsts..] {
                    let gap = dot(n, minus(*p, *q));
                    (above, below) = (above.min(gap), below.min(-gap));
                }
            }
        }
        if above > least || below > least {
            return true;
        }
    }
    if never_in_a_plane(kind, &ends, separation) {
        return true;
    }
    if depth == 0 {
        return false;
    }
    let mut middle = ends[0];
    for (m, end) in middle.iter_mut().zip(ends[1]) {
        for (m, end) in m.iter_mut().zip(end) {
            *m = 0.5 * *m + 0.5 * end;
        }
    }
    piece(kind, [ends[0], middle], separation, depth - 1)
        && piece(kind, [middle, ends[1]], separation, depth - 1)
}

/// Whether the volume of the four vertices keeps its sign, and is too large for a distance from the
/// plane of the face, or of the lines of the edges, that is not above the separation.
fn never_in_a_plane(kind: Kind, ends: &[[Vector; 4]; 2], separation: f64) -> bool {
    let edges = ends
        .each_ref()
        .map(|x| [1, 2, 3].map(|k| minus(x[k], x[0])));
    let volume = |i: usize, j: usize, k: usize| dot(edges[i][0], cross(edges[j][1], edges[k][2]));
    // The volume is the distance times an area of at most the product of two lengths.
    let length = |j: usize, k: usize| {
        let [start, end] = ends.each_ref().map(|x| minus(x[j], x[k]));
        dot(start, start).max(dot(end, end)).sqrt()
    };
    let area = match kind {
        Kind::VertexFace => length(1, 2) * length(1, 3),
        Kind::EdgeEdge => length(0, 1) * length(2, 3),
    };
    let least = 3.0 * (1.01 * separation * area + MARGIN);
    let volumes = [
        3.0 * volume(0, 0, 0),
        volume(0, 0, 1) + volume(0, 1, 0) + volume(1, 0, 0),
        volume(0, 1, 1) + volume(1, 0, 1) + volume(1, 1, 0),
        3.0 * volume(1, 1, 1),
    ];
    volumes.iter().all(|v| *v > least) || volumes.iter().all(|v| *v < -least)
}

fn minus(a: Vector, b: Vector) -> Vector {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}

fn dot(a: Vector, b: Vector) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

fn cross(a: Vector, b: Vector) -> Vector {
    [
        a[1] * b[2] - a[2] * b[1],
        a[2] * b[0] - a[0] * b[2],
        a[0] * b[1] - a[1] * b[0],
    ]
}
