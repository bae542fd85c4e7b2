//! The judge's answers about single pairs, where they are known.

use std::cmp::Ordering::{self, Greater, Less};

use proptest::prelude::*;
use weft_judge::Kind::{EdgeEdge, VertexFace};
use weft_judge::{Kind, Position, Way, is_apart, meet};

const FACE: [Position; 3] = [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]];

fn vertex(from: Position, to: Position) -> Way {
    let with = |p: Position| [p, FACE[0], FACE[1], FACE[2]];
    Way {
        kind: VertexFace,
        start: with(from),
        end: with(to),
    }
}

/// Passages and touches of a pair.
fn told(way: &Way) -> (Vec<Ordering>, usize) {
    let meetings = meet(way).unwrap();
    assert!(meetings.is_empty() || !is_apart(way), "{way:?}");
    let passages: Vec<_> = meetings.iter().filter_map(|m| m.passes).collect();
    let touches = meetings.len() - passages.len();
    (passages, touches)
}

#[test]
fn a_vertex_that_tunnels_is_found_with_its_direction() {
    let found = |x: f64, y: f64, from: f64, to: f64| told(&vertex([x, y, from], [x, y, to]));
    assert_eq!(found(0.2, 0.2, 5.0, -7.0), (vec![Less], 0));
    assert_eq!(found(0.2, 0.2, -1.0, 1e-300), (vec![Greater], 0));
    assert_eq!(found(0.2, 0.2, 1.0, f64::MIN_POSITIVE), (vec![], 0));
    // Beside the face, by the last digit, and through its border and its corner.
    assert_eq!(found(0.5 + f64::EPSILON, 0.5, 1.0, -1.0), (vec![], 0));
    assert_eq!(found(0.5, 0.5, 1.0, -1.0), (vec![], 1));
    assert_eq!(found(0.5 - f64::EPSILON, 0.5, 1.0, -1.0), (vec![Less], 0));
    assert_eq!(found(0.0, 0.0, 1.0, -1.0), (vec![], 1));
    // Up to the face, from it, and on it all the time.
    assert_eq!(found(0.2, 0.2, 1.0, 0.0), (vec![], 1));
    assert_eq!(found(0.2, 0.2, 0.0, 1.0), (vec![], 1));
    assert!(found(0.2, 0.2, 0.0, 0.0).1 > 0);
}

/// A vertex and a face that turns so that it is met twice, or just touched.
#[test]
fn a_vertex_that_comes_back_within_a_way_is_found() {
    // The face's plane goes up and its far corner further: the height of the vertex over it is a
    // parabola in t.
    let way = |dip: f64| Way {
        kind: VertexFace,
        start: [
            [0.25, 0.25, 1.0],
            [0.0, 0.0, 0.0],
            [4.0, 0.0, 0.0],
            [0.0, 4.0, 0.0],
        ],
        end: [
            [0.25, 0.25, 1.0],
            [0.0, 0.0, dip],
            [-4.0, 0.0, dip],
            [0.0, 4.0, dip],
        ],
    };
    // At half of the time the face is a segment, x = 0, which the vertex is not on.
    assert_eq!(told(&way(0.5)), (vec![], 0));
    assert_eq!(told(&way(1.5)), (vec![], 0));
    let through = told(&Way {
        start: [
            [0.25, 0.25, 1.0],
            [0.0, 0.0, 0.0],
            [4.0, 0.0, 0.0],
            [0.0, 4.0, 0.0],
        ],
        end: [
            [0.25, 0.25, 1.0],
            [0.0, 0.0, 3.0],
            [4.0, 0.0, 3.0],
            [0.0, 4.0, 3.0],
        ],
        kind: VertexFace,
    });
    assert_eq!(through, (vec![Less], 0));
}

/// A pair of edges that goes there and back within one way: the determinant has two roots.
#[test]
fn edges_that_pass_twice_within_a_way_are_found_twice() {
    // The second edge turns about the axis of the first while it rises: its height over the first
    // at the place where they cross is (2 t − 1/2)(2 t − 3/2) up to a factor.
    let way = Way {
        kind: EdgeEdge,
        start: [
            [-4.0, 0.0, 0.0],
            [4.0, 0.0, 0.0],
            [0.0, -1.0, 3.0],
            [0.0, 3.0, -1.0],
        ],
        end: [
            [-4.0, 0.0, 0.0],
            [4.0, 0.0, 0.0],
            [0.0, -3.0, -1.0],
            [0.0, 1.0, 3.0],
        ],
    };
    let (passages, touches) = told(&way);
    // At the start the point over the first edge has height 2, at the end as well, in the middle
    // 1: nothing happens.
    assert_eq!((passages.len(), touches), (0, 0));
    let lower = Way {
        start: way
            .start
            .map(|[x, y, z]| [x, y, if y == 0.0 { z } else { z - 1.5 }]),
        end: way
            .end
            .map(|[x, y, z]| [x, y, if y == 0.0 { z } else { z - 1.5 }]),
        ..way
    };
    let (passages, touches) = told(&lower);
    assert_eq!((passages.len(), touches), (2, 0));
    assert_ne!(passages[0], passages[1]);
    // And with a height that is just reached.
    let grazing = Way {
        start: way
            .start
            .map(|[x, y, z]| [x, y, if y == 0.0 { z } else { z - 1.0 }]),
        end: way
            .end
            .map(|[x, y, z]| [x, y, if y == 0.0 { z } else { z - 1.0 }]),
        ..way
    };
    assert_eq!(told(&grazing), (vec![], 1));
}

#[test]
fn features_that_stay_in_one_plane_are_decided() {
    // A vertex slides in the plane of the face, over it and beside it.
    let slide = |y: f64| vertex([-1.0, y, 0.0], [2.0, y, 0.0]);
    assert!(told(&slide(0.5)).1 > 0);
    assert!(told(&slide(1.0)).1 > 0, "over a corner");
    assert_eq!(told(&slide(1.0 + f64::EPSILON)), (vec![], 0));
    // Edges in one plane: one passes over the end of the other, or not quite.
    let edges = |x: f64| Way {
        kind: EdgeEdge,
        start: [
            [0.0, 0.0, 0.0],
            [1.0, 0.0, 0.0],
            [x, 1.0, 0.0],
            [x, 2.0, 0.0],
        ],
        end: [
            [0.0, 0.0, 0.0],
            [1.0, 0.0, 0.0],
            [x, -2.0, 0.0],
            [x, -1.0, 0.0],
        ],
    };
    assert!(told(&edges(0.5)).1 > 0);
    assert!(told(&edges(1.0)).1 > 0);
    assert_eq!(told(&edges(1.0 + f64::EPSILON)), (vec![], 0));
}

#[test]
fn parallel_and_degenerate_edges_are_decided() {
    let edges = |second: [Position; 2], down: f64| Way {
        kind: EdgeEdge,
        start: [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], second[0], second[1]],
        end: {
            let fallen = second.map(|[x, y, z]| [x, y, z - down]);
            [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], fallen[0], fallen[1]]
        },
    };
    // Parallel edges that fall through each other, side by side, and end to end.
    assert_eq!(told(&edges([[0.5, 0.0, 1.0], [1.5, 0.0, 1.0]], 2.0)).1, 1);
    assert_eq!(told(&edges([[0.5, 0.1, 1.0], [1.5, 0.1, 1.0]], 2.0)).1, 0);
    assert_eq!(told(&edges([[1.0, 0.0, 1.0], [1.5, 0.0, 1.0]], 2.0)).1, 1);
    assert_eq!(told(&edges([[1.5, 0.0, 1.0], [2.5, 0.0, 1.0]], 2.0)).1, 0);
    // An edge without a length, that falls on another and beside it.
    assert_eq!(told(&edges([[0.5, 0.0, 1.0]; 2], 2.0)).1, 1);
    assert_eq!(told(&edges([[0.5, 0.1, 1.0]; 2], 2.0)).1, 0);
    // Both are points, or a vertex meets a face that is a point.
    let points = |x: f64| Way {
        kind: EdgeEdge,
        start: [[0.0; 3], [0.0; 3], [x, 0.0, 1.0], [x, 0.0, 1.0]],
        end: [[0.0; 3], [0.0; 3], [x, 0.0, -1.0], [x, 0.0, -1.0]],
    };
    assert_eq!((told(&points(0.0)).1, told(&points(0.1)).1), (1, 0));
    let face = |x: f64| Way {
        kind: VertexFace,
        start: [[x, 0.0, 1.0], [0.0; 3], [0.0; 3], [0.0; 3]],
        end: [[x, 0.0, -1.0], [0.0; 3], [0.0; 3], [0.0; 3]],
    };
    assert_eq!((told(&face(0.0)).1, told(&face(0.1)).1), (1, 0));
}

#[test]
fn positions_that_are_none_are_told() {
    assert!(meet(&vertex([0.1, 0.1, f64::NAN], [0.0; 3])).is_err());
    assert!(!is_apart(&vertex([0.1, 0.1, f64::NAN], [9.0; 3])));
    // Numbers of which squares overflow are decided as others are.
    let far = 1e200;
    assert_eq!(
        told(&vertex([0.2, 0.2, far], [0.2, 0.2, -far])),
        (vec![Less], 0)
    );
}

/// Whether features with whole coordinates have a point in common: another formula than the
/// judge's, by the signs of fractions.
fn meet_still(kind: Kind, x: &[[i128; 3]; 4]) -> bool {
    let sub = |a: [i128; 3], b: [i128; 3]| [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
    let dot = |a: [i128; 3], b: [i128; 3]| a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
    let cross = |a: [i128; 3], b: [i128; 3]| {
        [
            a[1] * b[2] - a[2] * b[1],
            a[2] * b[0] - a[0] * b[2],
            a[0] * b[1] - a[1] * b[0],
        ]
    };
    let on = |p: [i128; 3], a: [i128; 3], b: [i128; 3]| {
        cross(sub(p, a), sub(p, b)) == [0; 3] && dot(sub(p, a), sub(p, b)) <= 0
    };
    let [p, a, b, c] = *x;
    match kind {
        VertexFace => {
            // Signed areas about p, seen along the axis along which the face is seen largest.
            let n = cross(sub(b, a), sub(c, a));
            if n == [0; 3] {
                return on(p, a, b) || on(p, b, c) || on(p, c, a);
            }
            if dot(n, sub(p, a)) != 0 {
                return false;
            }
            let k = (0..3).find(|&k| n[k] != 0).unwrap();
            let area = |s: [i128; 3], t: [i128; 3]| cross(sub(s, p), sub(t, p))[k] * n[k].signum();
            area(a, b) >= 0 && area(b, c) >= 0 && area(c, a) >= 0
        }
        EdgeEdge => {
            let n = cross(sub(a, p), sub(c, b));
            if n == [0; 3] {
                return on(p, b, c) || on(a, b, c) || on(b, p, a) || on(c, p, a);
            }
            if dot(n, sub(b, p)) != 0 {
                return false;
            }
            let k = (0..3).find(|&k| n[k] != 0).unwrap();
            let side =
                |s: [i128; 3], t: [i128; 3], q: [i128; 3]| cross(sub(t, s), sub(q, s))[k].signum();
            side(p, a, b) * side(p, a, c) <= 0 && side(b, c, p) * side(b, c, a) <= 0
        }
    }
}

/// The steps of time in which ways are looked at.
const TIMES: i128 = 60;

fn whole() -> impl Strategy<Value = [[i32; 3]; 4]> {
    let number = -3..=3;
    let point = [number.clone(), number.clone(), number];
    [point.clone(), point.clone(), point.clone(), point]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(
        1000 * std::env::var("PROPTEST_TIMES").ok().and_then(|n| n.parse().ok()).unwrap_or(1)
    ))]

    /// A meeting at one of many times, exactly, is found; each finding is near at its time; and a
    /// pair that the filter lets go does not meet.
    #[test]
    fn ways_are_judged_as_brute_force_does(
        start in whole(), end in whole(), is_face: bool, scale in -40i32..40, lies in 0u8..4,
    ) {
        let kind = if is_face { VertexFace } else { EdgeEdge };
        // Some stay in one plane, and some are still but for one vertex.
        let flat = |x: [[i32; 3]; 4]| if lies == 0 { x.map(|[a, b, _]| [a, b, a - b]) } else { x };
        let (start, mut end) = (flat(start), flat(end));
        if lies == 1 {
            end = [end[0], start[1], start[2], start[3]];
        }
        let size = 2.0_f64.powi(scale);
        let real = |x: [[i32; 3]; 4]| x.map(|p| p.map(|c| f64::from(c) * size));
        let way = Way { kind, start: real(start), end: real(end) };
        let meetings = meet(&way).unwrap();
        let at = |t: i128| {
            std::array::from_fn(|v| std::array::from_fn(|k| {
                i128::from(start[v][k]) * (TIMES - t) + i128::from(end[v][k]) * t
            }))
        };
        let seen = (0..=TIMES).filter(|&t| meet_still(kind, &at(t))).count();
        if seen > 0 {
            prop_assert!(!meetings.is_empty(), "{:?}", way);
            prop_assert!(!is_apart(&way));
        }
        for meeting in &meetings {
            let t = meeting.time;
            let x: [Position; 4] = std::array::from_fn(|v| std::array::from_fn(|k| {
                f64::from(start[v][k]) * (1.0 - t) + f64::from(end[v][k]) * t
            }));
            prop_assert!(distance(kind, &x) < 1e-6, "{:?} at {}", way, t);
        }
        if is_apart(&way) {
            prop_assert!(meetings.is_empty());
        }
    }

    /// A vertex of a face passes through at a time and a place that were chosen; numbers of many
    /// digits.
    #[test]
    fn planted_passages_are_found(
        corners in [[-1.0..1.0, -1.0..1.0, -1.0..1.0], [-1.0..1.0, -1.0..1.0, -1.0..1.0], [-1.0..1.0, -1.0..1.0, -1.0..1.0]],
        motions in [[-1.0..1.0, -1.0..1.0, -1.0..1.0], [-1.0..1.0, -1.0..1.0, -1.0..1.0], [-1.0..1.0, -1.0..1.0, -1.0..1.0]],
        (u, v) in (0.05..0.45, 0.05..0.45), time in 0.1..0.9_f64, up in 0.01..1.0,
    ) {
        let corners: [Position; 3] = corners;
        let normal = {
            let e = |k: usize| std::array::from_fn::<f64, 3, _>(|i| corners[k][i] - corners[0][i]);
            let (e, f) = (e(1), e(2));
            [e[1] * f[2] - e[2] * f[1], e[2] * f[0] - e[0] * f[2], e[0] * f[1] - e[1] * f[0]]
        };
        let length = normal.iter().map(|n| n * n).sum::<f64>().sqrt();
        prop_assume!(length > 0.05);
        // All corners move alike, so that the height over the face is a line in time.
        let drift: Position = motions[0];
        let place: Position = std::array::from_fn(|i| {
            corners[0][i] * (1.0 - u - v) + corners[1][i] * u + corners[2][i] * v
        });
        let vertex = |t: f64| std::array::from_fn::<f64, 3, _>(|i| {
            place[i] + drift[i] * t + normal[i] / length * up * (time - t)
        });
        let at = |t: f64| {
            let face = corners.map(|c| std::array::from_fn::<f64, 3, _>(|i| c[i] + drift[i] * t));
            [vertex(t), face[0], face[1], face[2]]
        };
        let way = Way { kind: VertexFace, start: at(0.0), end: at(1.0) };
        prop_assert!(!is_apart(&way));
        let meetings = meet(&way).unwrap();
        prop_assert_eq!(meetings.len(), 1);
        prop_assert_eq!(meetings[0].passes, Some(Less));
        prop_assert!((meetings[0].time - time).abs() < 1e-9);
    }
}

/// The distance of two features, roughly: the least over many points of both.
fn distance(kind: Kind, x: &[Position; 4]) -> f64 {
    let mix = |weights: &[(usize, f64)]| -> Position {
        std::array::from_fn(|k| weights.iter().map(|&(v, w)| w * x[v][k]).sum())
    };
    let gap = |a: Position, b: Position| (0..3).map(|k| (a[k] - b[k]).powi(2)).sum::<f64>();
    // A convex function of two weights: thirds are cut away until nothing is left.
    let least = |f: &dyn Fn(f64) -> f64| {
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..60 {
            let (a, b) = (low + (high - low) / 3.0, high - (high - low) / 3.0);
            if f(a) < f(b) { high = b } else { low = a }
        }
        f(0.5 * (low + high))
    };
    let squared = least(&|s| {
        least(&|t| match kind {
            VertexFace => gap(x[0], mix(&[(1, 1.0 - s), (2, s * (1.0 - t)), (3, s * t)])),
            EdgeEdge => gap(mix(&[(0, 1.0 - s), (1, s)]), mix(&[(2, 1.0 - t), (3, t)])),
        })
    });
    squared.sqrt()
}
