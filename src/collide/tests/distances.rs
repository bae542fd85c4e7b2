//! Distances of triangles by all pairs of their features, with formulas that share nothing with the
//! narrow phase.

use glam::DVec3;

/// The distance of two triangles that do not cross.
pub(crate) fn between_triangles(one: &[DVec3; 3], two: &[DVec3; 3]) -> f64 {
    let mut least = f64::INFINITY;
    for k in 0..3 {
        least = least.min(from_triangle(one[k], *two));
        least = least.min(from_triangle(two[k], *one));
        for j in 0..3 {
            let side = |t: &[DVec3; 3], k: usize| [t[k], t[(k + 1) % 3]];
            least = least.min(between(side(one, k), side(two, j)));
        }
    }
    least
}

/// The distance of two segments.
fn between([a, b]: [DVec3; 2], [c, d]: [DVec3; 2]) -> f64 {
    let (u, v, r) = (b - a, d - c, a - c);
    let (uu, vv, uv, ur, vr) = (u.dot(u), v.dot(v), u.dot(v), u.dot(r), v.dot(r));
    let ends = [
        from_segment(a, [c, d]),
        from_segment(b, [c, d]),
        from_segment(c, [a, b]),
        from_segment(d, [a, b]),
    ];
    let ends = ends.into_iter().fold(f64::INFINITY, f64::min);
    let det = uu * vv - uv * uv;
    let (s, t) = ((uv * vr - ur * vv) / det, (uu * vr - uv * ur) / det);
    if (0.0..=1.0).contains(&s) && (0.0..=1.0).contains(&t) {
        ends.min((a + u * s).distance(c + v * t))
    } else {
        ends
    }
}

/// The distance of a point from a segment.
fn from_segment(p: DVec3, [a, b]: [DVec3; 2]) -> f64 {
    let along = b - a;
    let t = (along.dot(p - a) / along.dot(along)).clamp(0.0, 1.0);
    p.distance(a + along * t)
}

/// The distance of a point from a triangle.
pub(crate) fn from_triangle(p: DVec3, [a, b, c]: [DVec3; 3]) -> f64 {
    let n = (b - a).cross(c - a);
    let inside = |from: DVec3, to: DVec3| (to - from).cross(p - from).dot(n) >= 0.0;
    if inside(a, b) && inside(b, c) && inside(c, a) {
        return (p - a).dot(n).abs() / n.length();
    }
    let sides = [[a, b], [b, c], [c, a]].map(|side| from_segment(p, side));
    sides.into_iter().fold(f64::INFINITY, f64::min)
}
