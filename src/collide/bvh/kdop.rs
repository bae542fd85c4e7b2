//! Bounding volumes between pairs of parallel planes: discrete orientation polytopes [KHM*98], of
//! which cloth takes 18 planes [TB06 §3.2].
//!
//! The directions are the three axes, then the six diagonals of coordinate planes. Extents are kept
//! in f32, rounded outwards, so that a volume always contains what it was made from. Lower bounds
//! and negated upper bounds lie in one array: union is a minimum, and two volumes are apart if a
//! sum of a lower bound of one and a negated upper bound of the other is positive.
//!
//! * \[KHM*98\] Klosowski, Held, Mitchell, Sowizral, Zikan: Efficient collision detection using
//!   bounding volume hierarchies of k-DOPs.

use std::f64::consts::SQRT_2;

use glam::DVec3;

use crate::heap_bytes::owns_no_heap;

/// The volume of cloth: 18 planes.
pub type Kdop18 = Kdop<20>;

owns_no_heap!(Kdop18);

/// A volume of `N - 2` planes: lower bounds along its directions, then negated upper bounds, then
/// two numbers that are no planes and make the array a whole number of vector registers.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(align(16))]
pub struct Kdop<const N: usize> {
    planes: [f32; N],
}

/// A volume turned round, to be compared with many.
#[derive(Clone, Copy, Debug)]
pub(in crate::collide) struct Turned<const N: usize> {
    planes: [f32; N],
}

/// The value of numbers that are no planes.
const NONE: f32 = f32::NEG_INFINITY;
/// The number of floats of a vector register that every machine has.
const LANES: usize = 4;

/// A point's coordinate along a direction, and the length of the direction.
#[inline(always)]
pub(in crate::collide) fn along(p: DVec3, direction: usize) -> (f64, f64) {
    match direction {
        0 => (p.x, 1.0),
        1 => (p.y, 1.0),
        2 => (p.z, 1.0),
        3 => (p.x + p.y, SQRT_2),
        4 => (p.x + p.z, SQRT_2),
        5 => (p.y + p.z, SQRT_2),
        6 => (p.x - p.y, SQRT_2),
        7 => (p.x - p.z, SQRT_2),
        _ => (p.y - p.z, SQRT_2),
    }
}

/// An f32 below `d`, by no more than three units in the last place.
#[inline(always)]
pub(in crate::collide) fn below(d: f64) -> f32 {
    outwards(d as f32)
}

/// An f32 below all that round to `nearest`.
#[inline(always)]
pub(in crate::collide) fn outwards(nearest: f32) -> f32 {
    // Too large numbers become the largest, lest infinity less infinity be none.
    let nearest = if nearest < f32::MAX {
        nearest
    } else {
        f32::MAX
    };
    nearest - nearest.abs() * f32::EPSILON - f32::MIN_POSITIVE
}

impl<const N: usize> Kdop<N> {
    /// The number of numbers that make it up.
    pub(crate) const NUMBERS: usize = N;

    /// Its numbers.
    pub(crate) fn numbers(&self) -> &[f32; N] {
        &self.planes
    }

    /// The volume with these numbers.
    pub(crate) fn from_numbers(planes: [f32; N]) -> Self {
        Self { planes }
    }

    /// The number of pairs of planes.
    const PAIRS: usize = {
        assert!(N == 8 || N == 20, "6 or 18 planes and two more");
        N / 2 - 1
    };

    /// Contains nothing; the neutral element of [`Kdop::union`].
    pub const EMPTY: Self = {
        let mut planes = [f32::INFINITY; N];
        planes[N - 1] = NONE;
        planes[N - 2] = NONE;
        Self { planes }
    };

    /// The smallest volume around all points within `radius` (m) of any of `points`.
    #[must_use]
    #[inline]
    pub fn around(points: &[DVec3], radius: f64) -> Self {
        let mut planes = [NONE; N];
        for k in 0..Self::PAIRS {
            let (mut low, mut high, mut length) = (f64::INFINITY, f64::NEG_INFINITY, 1.0);
            for &p in points {
                // Comparisons instead of `min`, which minds NaN: these become single instructions.
                let (d, unit) = along(p, k);
                low = if d < low { d } else { low };
                high = if d > high { d } else { high };
                length = unit;
            }
            planes[k] = (low - radius * length) as f32;
            planes[Self::PAIRS + k] = (-high - radius * length) as f32;
        }
        // On their own, for vector instructions.
        for plane in &mut planes[..2 * Self::PAIRS] {
            *plane = outwards(*plane);
        }
        Self { planes }
    }

    /// The smallest volume that contains both.
    #[must_use]
    #[inline]
    pub fn union(&self, other: &Self) -> Self {
        let mut planes = self.planes;
        for (mine, theirs) in planes.iter_mut().zip(&other.planes) {
            // Not `min`, which minds NaN: this becomes one vector instruction for four planes.
            *mine = if *theirs < *mine { *theirs } else { *mine };
        }
        Self { planes }
    }

    /// The volume to compare others with.
    #[must_use]
    #[inline]
    pub(in crate::collide) fn turned(&self) -> Turned<N> {
        let mut planes = [NONE; N];
        planes[..Self::PAIRS].copy_from_slice(&self.planes[Self::PAIRS..2 * Self::PAIRS]);
        planes[Self::PAIRS..2 * Self::PAIRS].copy_from_slice(&self.planes[..Self::PAIRS]);
        Turned { planes }
    }

    /// Whether no pair of planes separates the two.
    #[must_use]
    #[inline]
    pub fn overlaps(&self, other: &Self) -> bool {
        self.turned().overlaps(other)
    }

    /// Whether the point lies inside all planes.
    #[must_use]
    pub fn contains(&self, p: DVec3) -> bool {
        (0..Self::PAIRS).all(|k| {
            let (d, _) = along(p, k);
            f64::from(self.planes[k]) <= d && d <= -f64::from(self.planes[Self::PAIRS + k])
        })
    }

    /// The sum of the lengths of its box's sides in m, by which the sizes of volumes are compared.
    #[inline]
    pub(in crate::collide) fn size(&self) -> f32 {
        (0..3)
            .map(|k| -self.planes[Self::PAIRS + k] - self.planes[k])
            .sum()
    }

    /// The centre and half the diagonal of its box along the axes, in m.
    #[must_use]
    pub fn ball(&self) -> (DVec3, f64) {
        let at = |k: usize| f64::from(self.planes[k]);
        let low = DVec3::new(at(0), at(1), at(2));
        let high = -DVec3::new(at(Self::PAIRS), at(Self::PAIRS + 1), at(Self::PAIRS + 2));
        (0.5 * (low + high), 0.5 * (high - low).length())
    }
}

impl Kdop18 {
    /// The volume with these planes, rounded outwards.
    pub(in crate::collide) fn from_planes(planes: [f64; 18]) -> Self {
        let mut rounded = [NONE; 20];
        for (to, &plane) in rounded.iter_mut().zip(&planes) {
            *to = below(plane);
        }
        Self { planes: rounded }
    }
}

impl<const N: usize> Turned<N> {
    /// Whether no pair of planes separates the two.
    #[must_use]
    #[inline]
    pub(in crate::collide) fn overlaps(&self, other: &Kdop<N>) -> bool {
        let (mine, _) = self.planes.as_chunks::<LANES>();
        let (theirs, _) = other.planes.as_chunks::<LANES>();
        // The widest gap, of four pairs of planes at once.
        let mut gap = [NONE; LANES];
        for (a, b) in mine.iter().zip(theirs) {
            for i in 0..LANES {
                let sum = a[i] + b[i];
                gap[i] = if sum > gap[i] { sum } else { gap[i] };
            }
        }
        !gap.iter().any(|&gap| gap > 0.0)
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
            let volume = Kdop18::around(&[a, b, c], radius);
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
            let (one, two) = (Kdop18::around(&[a, b], 0.1), Kdop18::around(&[c, d], 0.1));
            let both = one.union(&two);
            for p in [a, b, c, d] {
                prop_assert!(both.contains(p));
            }
            prop_assert_eq!(one.overlaps(&two), two.overlaps(&one));
            prop_assert!(both.overlaps(&one) && both.overlaps(&two));
            // A common point means overlap.
            let shared = Kdop18::around(&[a, c], 0.0);
            prop_assert!(shared.overlaps(&one) && shared.overlaps(&two));
        }
    }

    fn holds<const N: usize>(points: &[DVec3], radius: f64) {
        let volume = Kdop::<N>::around(points, radius);
        for &p in points {
            assert!(volume.contains(p), "{volume:?} {p}");
        }
        let turned = volume.turned();
        assert!(turned.overlaps(&volume));
        assert!(!turned.overlaps(&Kdop::EMPTY));
        assert_eq!(volume.union(&Kdop::EMPTY), volume);
        // The union of those around each point is that around all.
        let each = points.iter().map(|&p| Kdop::around(&[p], radius));
        assert_eq!(each.fold(Kdop::EMPTY, |a, b| a.union(&b)), volume);
    }

    proptest! {
        #[test]
        fn any_number_of_planes_holds_its_points_and_is_the_union_of_its_parts(
            a in point(1e3), b in point(1e-3), c in point(1.0), radius in 0.0..0.1f64,
        ) {
            holds::<8>(&[a, b, c], radius);
            holds::<20>(&[a, b, c], radius);
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
        let one = Kdop18::around(&[DVec3::ZERO, DVec3::new(1.0, 1.0, 0.0)], 0.0);
        let two = Kdop18::around(&[DVec3::new(0.9, 0.1, 0.0)], 0.0);
        assert!(!one.overlaps(&two));
        assert!(!Kdop18::EMPTY.overlaps(&one));
    }
}
