//! 18-DOPs: bounding volumes between nine pairs of parallel planes [TB06 §3.2].
//!
//! The directions are the three axes and the six diagonals of coordinate planes. Extents are kept in f32,
//! rounded outwards, so that a volume always contains what it was made from. Lower bounds and negated upper
//! bounds lie in one array: union is a minimum, and two volumes overlap if no sum of a lower bound of one
//! and a negated upper bound of the other is positive.

use glam::DVec3;

/// Pairs of planes.
const PAIRS: usize = 9;

/// A volume: nine lower bounds, then nine negated upper bounds, along the nine directions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Kdop {
    planes: [f32; 2 * PAIRS],
}

/// A point's coordinates along the nine directions (the diagonals have length √2).
fn directions(p: DVec3) -> [f64; PAIRS] {
    [
        p.x,
        p.y,
        p.z,
        p.x + p.y,
        p.x + p.z,
        p.y + p.z,
        p.x - p.y,
        p.x - p.z,
        p.y - p.z,
    ]
}

/// An f32 below `d`, by no more than three units in the last place.
fn below(d: f64) -> f32 {
    // Too large numbers become the largest, lest infinity less infinity be none.
    let nearest = (d as f32).min(f32::MAX);
    nearest - nearest.abs() * f32::EPSILON - f32::MIN_POSITIVE
}

impl Kdop {
    /// Contains nothing; the neutral element of [`Kdop::union`].
    pub const EMPTY: Self = Self {
        planes: [f32::INFINITY; 2 * PAIRS],
    };

    /// The smallest volume around all points within `radius` (m) of any of `points`.
    #[must_use]
    pub fn around(points: &[DVec3], radius: f64) -> Self {
        let mut low = [f64::INFINITY; PAIRS];
        let mut high = [f64::NEG_INFINITY; PAIRS];
        for &p in points {
            // Comparisons instead of `min`, which minds NaN: these become vector instructions.
            for (k, d) in directions(p).into_iter().enumerate() {
                low[k] = if d < low[k] { d } else { low[k] };
                high[k] = if d > high[k] { d } else { high[k] };
            }
        }
        let mut planes = [0.0; 2 * PAIRS];
        for k in 0..PAIRS {
            let inflate = if k < 3 {
                radius
            } else {
                radius * std::f64::consts::SQRT_2
            };
            planes[k] = below(low[k] - inflate);
            planes[PAIRS + k] = below(-high[k] - inflate);
        }
        Self { planes }
    }

    /// The smallest volume that contains both.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let mut planes = self.planes;
        for (mine, theirs) in planes.iter_mut().zip(&other.planes) {
            // Not `min`, which minds NaN: this becomes one vector instruction for four planes.
            *mine = if *theirs < *mine { *theirs } else { *mine };
        }
        Self { planes }
    }

    /// Whether no pair of planes separates the two.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        let (a, b) = (&self.planes, &other.planes);
        let mut apart = false;
        for k in 0..PAIRS {
            apart |= (a[k] + b[PAIRS + k] > 0.0) | (b[k] + a[PAIRS + k] > 0.0);
        }
        !apart
    }

    /// Whether the point lies inside all planes.
    #[must_use]
    pub fn contains(&self, p: DVec3) -> bool {
        directions(p)
            .into_iter()
            .enumerate()
            .all(|(k, d)| f64::from(self.planes[k]) <= d && d <= -f64::from(self.planes[PAIRS + k]))
    }

    /// Centre and half diagonal of its box along the axes, in m.
    #[must_use]
    pub fn ball(&self) -> (DVec3, f64) {
        let at = |k: usize| f64::from(self.planes[k]);
        let low = DVec3::new(at(0), at(1), at(2));
        let high = -DVec3::new(at(PAIRS), at(PAIRS + 1), at(PAIRS + 2));
        (0.5 * (low + high), 0.5 * (high - low).length())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn point(scale: f64) -> impl Strategy<Value = DVec3> {
        (-scale..scale, -scale..scale, -scale..scale).prop_map(|(x, y, z)| DVec3::new(x, y, z))
    }

    proptest! {
        #[test]
        fn a_volume_contains_what_it_was_made_from(
            a in point(1e6), b in point(1e-6), c in point(1.0), radius in 0.0..0.1f64,
        ) {
            let volume = Kdop::around(&[a, b, c], radius);
            for p in [a, b, c, (a + b + c) / 3.0] {
                prop_assert!(volume.contains(p));
                for d in [DVec3::X, DVec3::Y, DVec3::Z, DVec3::ONE.normalize()] {
                    prop_assert!(volume.contains(p + d * radius * (1.0 - 1e-9)));
                }
            }
        }

        #[test]
        fn unions_contain_both_and_overlap_is_symmetric(
            a in point(1.0), b in point(1.0), c in point(1.0), d in point(1.0),
        ) {
            let (one, two) = (Kdop::around(&[a, b], 0.1), Kdop::around(&[c, d], 0.1));
            let both = one.union(&two);
            for p in [a, b, c, d] {
                prop_assert!(both.contains(p));
            }
            prop_assert_eq!(one.overlaps(&two), two.overlaps(&one));
            prop_assert!(both.overlaps(&one) && both.overlaps(&two));
            // A common point means overlap.
            let shared = Kdop::around(&[a, c], 0.0);
            prop_assert!(shared.overlaps(&one) && shared.overlaps(&two));
        }
    }

    #[test]
    fn bounds_are_below_and_hardly_so() {
        for d in [
            0.0,
            1e-50,
            -1e-50,
            1.0,
            -1.0,
            0.1,
            -0.1,
            1e30,
            -1e30,
            1.0 + 1e-9,
        ] {
            assert!(f64::from(below(d)) < d, "{d}");
            assert!(d - f64::from(below(d)) <= 4e-7 * d.abs() + 2e-38, "{d}");
        }
        assert!(below(1e300) <= f32::MAX && below(1e300) > 3.4e38);
        assert_eq!(below(-1e300), f32::NEG_INFINITY);
    }

    #[test]
    fn diagonals_separate_what_boxes_cannot() {
        let one = Kdop::around(&[DVec3::ZERO, DVec3::new(1.0, 1.0, 0.0)], 0.0);
        let two = Kdop::around(&[DVec3::new(0.9, 0.1, 0.0)], 0.0);
        assert!(!one.overlaps(&two));
        assert!(!Kdop::EMPTY.overlaps(&one));
    }
}
