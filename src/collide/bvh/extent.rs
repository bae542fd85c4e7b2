//! The extent of the cloth as a whole.

use glam::DVec3;

use crate::simd::{Kernel, Lanes, up_to_avx2};

/// The box along the axes around some points, in m.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Extent {
    pub(crate) low: DVec3,
    pub(crate) high: DVec3,
}

/// The number of points whose coordinates are compared side by side.
const SIDE_BY_SIDE: usize = 8;

impl Extent {
    /// The box around no point.
    pub(crate) const EMPTY: Self = Self {
        low: DVec3::INFINITY,
        high: DVec3::NEG_INFINITY,
    };

    /// The box around these points. Coordinates that are no numbers are left out.
    pub(crate) fn of(points: &[DVec3]) -> Self {
        up_to_avx2(Spanning(points))
    }

    /// The box around this one and a point.
    pub(crate) fn with(self, point: DVec3) -> Self {
        Self {
            low: self.low.min(point),
            high: self.high.max(point),
        }
    }

    /// The largest magnitude of a coordinate of a point in it; 0 if there is none.
    pub(crate) fn farthest(self) -> f64 {
        if self == Self::EMPTY {
            return 0.0;
        }
        self.low.abs().max(self.high.abs()).max_element()
    }

    /// The box around both.
    pub(crate) fn union(self, other: Self) -> Self {
        Self {
            low: self.low.min(other.low),
            high: self.high.max(other.high),
        }
    }
}

/// The arguments of [`Extent::of`].
struct Spanning<'a>(&'a [DVec3]);

impl Kernel for Spanning<'_> {
    type Output = Extent;

    #[inline(always)]
    fn run<S: Lanes>(self, _: S) -> Extent {
        const NUMBERS: usize = 3 * SIDE_BY_SIDE;
        let numbers: &[f64] = bytemuck::cast_slice(self.0);
        let (chunks, rest) = numbers.as_chunks::<NUMBERS>();
        let mut low = [f64::INFINITY; NUMBERS];
        let mut high = [f64::NEG_INFINITY; NUMBERS];
        // Comparisons instead of `min`, which minds NaN: these become single instructions.
        for chunk in chunks {
            for k in 0..NUMBERS {
                let at = chunk[k];
                low[k] = if at < low[k] { at } else { low[k] };
                high[k] = if at > high[k] { at } else { high[k] };
            }
        }
        for (k, &at) in rest.iter().enumerate() {
            low[k] = if at < low[k] { at } else { low[k] };
            high[k] = if at > high[k] { at } else { high[k] };
        }
        let mut all = Extent::EMPTY;
        for (low, high) in low.chunks_exact(3).zip(high.chunks_exact(3)) {
            all = all.union(Extent {
                low: DVec3::from_slice(low),
                high: DVec3::from_slice(high),
            });
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_extent_holds_all_points_and_no_more() {
        for count in [0_u32, 1, 7, 8, 9, 100] {
            let at = |i: u32, by: u32| f64::from((i * by) % 101) - 50.0;
            let points: Vec<DVec3> = (0..count)
                .map(|i| DVec3::new(at(i, 7), at(i, 31), at(i, 64)))
                .collect();
            let low = points.iter().fold(DVec3::INFINITY, |a, &b| a.min(b));
            let high = points.iter().fold(DVec3::NEG_INFINITY, |a, &b| a.max(b));
            assert_eq!(Extent::of(&points), Extent { low, high });
            let (some, others) = points.split_at(points.len() / 3);
            let both = Extent::of(some).union(Extent::of(others));
            assert_eq!(both, Extent { low, high });
            let one_by_one = points.iter().fold(Extent::EMPTY, |of, &p| of.with(p));
            assert_eq!(one_by_one, both);
            let coordinates = points.iter().flat_map(|p| p.to_array());
            let farthest = coordinates.map(f64::abs).fold(0.0, f64::max);
            assert_eq!(both.farthest(), farthest);
        }
    }
}
