//! Closest points of vertex and triangle, and of two segments, as weights.
//!
//! Both are safe for degenerate input: slivers, points, parallel segments; weights are always
//! finite for finite input, in [0, 1], and sum to 1 on each feature. The case analysis of the
//! triangle is by Voronoi regions, that of segments clamps one parameter after the other [Ericson
//! 2005, §5.1].
//!
//! * [Ericson 2005] Real-time collision detection.

use glam::DVec3;

/// Weights of the corners of triangle `a b c` whose combination is closest to `p`.
#[must_use]
pub(crate) fn on_triangle(p: DVec3, a: DVec3, b: DVec3, c: DVec3) -> [f64; 3] {
    let (ab, ac, ap) = (b - a, c - a, p - a);
    if ab.cross(ac).length_squared() <= 1e-24 * ab.length_squared() * ac.length_squared() {
        // No area, or none left after rounding: the nearest of the three sides.
        return nearest_side(p, a, b, c);
    }
    let (d1, d2) = (ab.dot(ap), ac.dot(ap));
    if d1 <= 0.0 && d2 <= 0.0 {
        return [1.0, 0.0, 0.0];
    }
    let bp = p - b;
    let (d3, d4) = (ab.dot(bp), ac.dot(bp));
    if d3 >= 0.0 && d4 <= d3 {
        return [0.0, 1.0, 0.0];
    }
    let vc = d1 * d4 - d3 * d2;
    if vc <= 0.0 && d1 >= 0.0 && d3 <= 0.0 {
        let t = ratio(d1, d1 - d3);
        return [1.0 - t, t, 0.0];
    }
    let cp = p - c;
    let (d5, d6) = (ab.dot(cp), ac.dot(cp));
    if d6 >= 0.0 && d5 <= d6 {
        return [0.0, 0.0, 1.0];
    }
    let vb = d5 * d2 - d1 * d6;
    if vb <= 0.0 && d2 >= 0.0 && d6 <= 0.0 {
        let t = ratio(d2, d2 - d6);
        return [1.0 - t, 0.0, t];
    }
    let va = d3 * d6 - d5 * d4;
    if va <= 0.0 && d4 - d3 >= 0.0 && d5 - d6 >= 0.0 {
        let t = ratio(d4 - d3, (d4 - d3) + (d5 - d6));
        return [0.0, 1.0 - t, t];
    }
    let sum = va + vb + vc;
    if sum <= 0.0 {
        return nearest_side(p, a, b, c);
    }
    let (v, w) = (vb / sum, vc / sum);
    [1.0 - v - w, v, w]
}

/// Parameters of the closest points of segments `a b` and `c d`.
#[must_use]
pub(crate) fn on_segments(a: DVec3, b: DVec3, c: DVec3, d: DVec3) -> (f64, f64) {
    let (u, v, r) = (b - a, d - c, a - c);
    let (uu, vv) = (u.length_squared(), v.length_squared());
    let (ur, vr) = (u.dot(r), v.dot(r));
    if uu <= 0.0 {
        return (0.0, ratio(vr, vv));
    }
    if vv <= 0.0 {
        return (ratio(-ur, uu), 0.0);
    }
    let uv = u.dot(v);
    let determinant = uu * vv - uv * uv;
    // They are nearly parallel: any point will do, and the middle is the fairest.
    let s = if determinant > 1e-14 * uu * vv {
        ((uv * vr - ur * vv) / determinant).clamp(0.0, 1.0)
    } else {
        0.5
    };
    let t = (uv * s + vr) / vv;
    if t < 0.0 {
        (ratio(-ur, uu), 0.0)
    } else if t > 1.0 {
        (ratio(uv - ur, uu), 1.0)
    } else {
        // With s clamped, the best s for this t may differ.
        (ratio(uv * t - ur, uu), t)
    }
}

/// Whether a point that moves by `motion` from `start` comes within `reach` of the origin.
pub(in crate::collide) fn comes_within(start: DVec3, motion: DVec3, reach: f64) -> bool {
    let length = motion.length_squared();
    let t = if length > 0.0 {
        (-start.dot(motion) / length).clamp(0.0, 1.0)
    } else {
        0.0
    };
    (start + motion * t).length_squared() <= reach * reach
}

/// `n / d`, held in [0, 1]; 0 if `d` is not positive.
fn ratio(n: f64, d: f64) -> f64 {
    if d > 0.0 {
        (n / d).clamp(0.0, 1.0)
    } else {
        0.0
    }
}

fn nearest_side(p: DVec3, a: DVec3, b: DVec3, c: DVec3) -> [f64; 3] {
    let along = |from: DVec3, to: DVec3| {
        let side = to - from;
        let t = ratio(side.dot(p - from), side.length_squared());
        (t, (from + side * t - p).length_squared())
    };
    let ((t1, d1), (t2, d2), (t3, d3)) = (along(a, b), along(b, c), along(c, a));
    if d1 <= d2 && d1 <= d3 {
        [1.0 - t1, t1, 0.0]
    } else if d2 <= d3 {
        [0.0, 1.0 - t2, t2]
    } else {
        [t3, 0.0, 1.0 - t3]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn point() -> impl Strategy<Value = DVec3> {
        // Coarse coordinates: many coincident, collinear and coplanar cases.
        (-3i32..=3, -3i32..=3, -3i32..=3)
            .prop_map(|(x, y, z)| DVec3::new(x.into(), y.into(), z.into()) / 2.0)
    }

    fn combine(w: [f64; 3], x: [DVec3; 3]) -> DVec3 {
        x[0] * w[0] + x[1] * w[1] + x[2] * w[2]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn no_sample_of_a_triangle_is_closer(p in point(), a in point(), b in point(), c in point()) {
            let w = on_triangle(p, a, b, c);
            prop_assert!(w.iter().all(|w| (-1e-12..=1.0 + 1e-12).contains(w)));
            let best = combine(w, [a, b, c]).distance(p);
            for i in 0..=12 {
                for j in 0..=12 - i {
                    let (u, v) = (f64::from(i) / 12.0, f64::from(j) / 12.0);
                    let sample = combine([1.0 - u - v, u, v], [a, b, c]);
                    prop_assert!(best <= sample.distance(p) + 1e-9);
                }
            }
        }

        #[test]
        fn no_samples_of_segments_are_closer(a in point(), b in point(), c in point(), d in point()) {
            let (s, t) = on_segments(a, b, c, d);
            prop_assert!((0.0..=1.0).contains(&s) && (0.0..=1.0).contains(&t));
            let best = a.lerp(b, s).distance(c.lerp(d, t));
            for i in 0..=12 {
                for j in 0..=12 {
                    let (u, v) = (f64::from(i) / 12.0, f64::from(j) / 12.0);
                    prop_assert!(best <= a.lerp(b, u).distance(c.lerp(d, v)) + 1e-9);
                }
            }
        }
    }
}
