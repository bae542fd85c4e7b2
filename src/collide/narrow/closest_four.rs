//! Closest points of four pairs of segments at once, and whether these come within reach.
//!
//! The formulas are those of [`on_segments`] and [`comes_within`], in the same order and with the
//! same roundings: every lane gets the bits that its pair gets alone. Segments without length are
//! left to these functions.

use glam::DVec3;

use crate::collide::narrow::closest::{comes_within, on_segments};
use crate::simd::{Kernel, Lanes, Numbers, four_at, widest};

/// Four pairs of segments in motion.
#[derive(Clone, Copy, Debug)]
pub(in crate::collide) struct Pairs<'a> {
    /// Positions in m, and velocities in m/s.
    pub(in crate::collide) x: &'a [DVec3],
    pub(in crate::collide) v: &'a [DVec3],
    /// The time for which they move, in s.
    pub(in crate::collide) dt: f64,
    /// The reach of each pair in m.
    pub(in crate::collide) reach: [f64; 4],
    /// The ends of each pair: of the first segment, of the second.
    pub(in crate::collide) ends: [[u32; 4]; 4],
}

/// The closest points of four pairs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::collide) struct Closest {
    /// Parameters of the closest points on the first segment and on the second.
    pub(in crate::collide) s: [f64; 4],
    pub(in crate::collide) t: [f64; 4],
    /// Whether these points come within reach as they move on.
    pub(in crate::collide) within_reach: [bool; 4],
}

impl Pairs<'_> {
    /// Finds the closest points of all four.
    pub(in crate::collide) fn closest(self) -> Closest {
        let closest = widest(self);
        // Nearly all segments have a length.
        closest.unwrap_or_else(|| self.one_by_one())
    }

    /// Finds the closest points of one pair after the other.
    #[cold]
    fn one_by_one(self) -> Closest {
        let mut closest = Closest {
            s: [0.0; 4],
            t: [0.0; 4],
            within_reach: [false; 4],
        };
        for (k, ends) in self.ends.into_iter().enumerate() {
            let [a, b, c, d] = ends.map(|v| self.x[v as usize]);
            let (s, t) = on_segments(a, b, c, d);
            let weights = [1.0 - s, s, t - 1.0, -t];
            let combine = |x: &[DVec3]| -> DVec3 {
                let at = |k: usize| x[ends[k] as usize] * weights[k];
                (at(0) + at(1)) + (at(2) + at(3))
            };
            closest.s[k] = s;
            closest.t[k] = t;
            closest.within_reach[k] =
                comes_within(combine(self.x), combine(self.v) * self.dt, self.reach[k]);
        }
        closest
    }
}

impl Kernel for Pairs<'_> {
    /// None if a segment has no length.
    type Output = Option<Closest>;

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) -> Option<Closest> {
        // There is no `map` here, because what it calls may be compiled for any processor.
        let (x, v, ends) = (self.x, self.v, &self.ends);
        let (a, b) = (corner(lanes, x, ends, 0), corner(lanes, x, ends, 1));
        let (c, d) = (corner(lanes, x, ends, 2), corner(lanes, x, ends, 3));
        let (along, other, r) = (minus(b, a), minus(d, c), minus(a, c));
        let (uu, vv) = (dot(along, along), dot(other, other));
        let (ur, vr) = (dot(along, r), dot(other, r));
        let (lengths, others) = (uu.to_array(), vv.to_array());
        let mut have = true;
        for k in 0..4 {
            have &= (lengths[k] > 0.0) & (others[k] > 0.0);
        }
        if !have {
            return None;
        }
        let (zero, one) = (uu.splat(0.0), uu.splat(1.0));
        let uv = dot(along, other);
        let determinant = uu * vv - uv * uv;
        let least = uu.splat(1e-14) * uu * vv;
        let free = held((uv * vr - ur * vv) / determinant);
        let s = least.where_less(determinant, free, uu.splat(0.5));
        let t = (uv * s + vr) / vv;
        // With s held, the best s for this t may differ.
        let inside = uv * t - ur;
        let after = one.where_less(t, uv - ur, inside);
        // This is not zero less ur, which has another sign where that is zero.
        let before = ur * ur.splat(-1.0);
        let s = held(t.where_less(zero, before, after) / uu);
        let t = held(t);

        let weights = [one - s, s, t - one, t * t.splat(-1.0)];
        let separation = combined([a, b, c, d], weights);
        let (a, b) = (corner(lanes, v, ends, 0), corner(lanes, v, ends, 1));
        let (c, d) = (corner(lanes, v, ends, 2), corner(lanes, v, ends, 3));
        let velocity = combined([a, b, c, d], weights);
        let dt = uu.splat(self.dt);
        let motion = [velocity[0] * dt, velocity[1] * dt, velocity[2] * dt];
        let length = dot(motion, motion);
        let way = held(dot(separation, motion) * length.splat(-1.0) / length);
        let way = zero.where_less(length, way, zero);
        let moved = [
            separation[0] + motion[0] * way,
            separation[1] + motion[1] * way,
            separation[2] + motion[2] * way,
        ];
        let (distances, reach) = (dot(moved, moved).to_array(), self.reach);
        let mut within_reach = [false; 4];
        for k in 0..4 {
            within_reach[k] = distances[k] <= reach[k] * reach[k];
        }
        Some(Closest {
            s: s.to_array(),
            t: t.to_array(),
            within_reach,
        })
    }
}

/// A number held in [0, 1]. One that is no number stays.
#[inline(always)]
fn held<L: Lanes>(n: Numbers<L>) -> Numbers<L> {
    let (zero, one) = (n.splat(0.0), n.splat(1.0));
    let n = n.where_less(zero, zero, n);
    one.where_less(n, one, n)
}

/// The ends of four segments, by coordinates.
#[inline(always)]
fn corner<L: Lanes>(
    lanes: L,
    vectors: &[DVec3],
    ends: &[[u32; 4]; 4],
    k: usize,
) -> [Numbers<L>; 3] {
    let mut rooms = [[0.0; 4]; 4];
    let [p, q, r, s] = &mut rooms;
    let rows = [
        lanes.load(four_at(vectors, ends[0][k] as usize, p)),
        lanes.load(four_at(vectors, ends[1][k] as usize, q)),
        lanes.load(four_at(vectors, ends[2][k] as usize, r)),
        lanes.load(four_at(vectors, ends[3][k] as usize, s)),
    ];
    let [x, y, z, _] = lanes.transposed(rows);
    [Numbers(lanes, x), Numbers(lanes, y), Numbers(lanes, z)]
}

#[inline(always)]
fn minus<L: Lanes>(a: [Numbers<L>; 3], b: [Numbers<L>; 3]) -> [Numbers<L>; 3] {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}

#[inline(always)]
fn dot<L: Lanes>(a: [Numbers<L>; 3], b: [Numbers<L>; 3]) -> Numbers<L> {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

#[inline(always)]
fn combined<L: Lanes>(ends: [[Numbers<L>; 3]; 4], w: [Numbers<L>; 4]) -> [Numbers<L>; 3] {
    let mut all = ends[0];
    for k in 0..3 {
        all[k] = (ends[0][k] * w[0] + ends[1][k] * w[1]) + (ends[2][k] * w[2] + ends[3][k] * w[3]);
    }
    all
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn point() -> impl Strategy<Value = DVec3> {
        // Coarse coordinates: many coincident, collinear and parallel cases; or any.
        let coarse = (-3i32..=3, -3i32..=3, -3i32..=3)
            .prop_map(|(x, y, z)| DVec3::new(x.into(), y.into(), z.into()) / 2.0);
        let any = (-1.0..1.0, -1.0..1.0, -1.0..1.0).prop_map(|(x, y, z)| DVec3::new(x, y, z));
        prop_oneof![coarse, any]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn every_lane_has_the_bits_of_its_pair(
            x in prop::collection::vec(point(), 16),
            v in prop::collection::vec(prop_oneof![2 => point(), 1 => Just(DVec3::ZERO)], 16),
            reach in prop::array::uniform4(0.0..2.0_f64),
        ) {
            let ends = [0, 1, 2, 3].map(|k| [4 * k, 4 * k + 1, 4 * k + 2, 4 * k + 3]);
            let pairs = Pairs { x: &x, v: &v, dt: 0.3, reach, ends };
            let (found, expected) = (pairs.closest(), pairs.one_by_one());
            prop_assert_eq!(found.within_reach, expected.within_reach);
            let bits = |of: [f64; 4]| of.map(f64::to_bits);
            prop_assert_eq!(bits(found.s), bits(expected.s), "{:?} {:?}", found, expected);
            prop_assert_eq!(bits(found.t), bits(expected.t), "{:?} {:?}", found, expected);
        }
    }
}
