//! Displacements: where points are at the start of a step and where they are at its end, in f32.
//!
//! Eight points stand side by side, by coordinates, so that vector instructions take all of them.
//! They are seen from an anchor near by, from which f32 tells them apart. A bound of both ends of a
//! displacement is one of all points between.

use glam::DVec3;

use crate::collide::bvh::kdop::{Kdop18, along};
use crate::heap_bytes::owns_no_heap;
use crate::simd::{InstructionSet, Kernel, Lanes, greater, lesser, up_to_avx2};

/// The number of directions along which volumes are bounded.
pub(in crate::collide) const DIRECTIONS: usize = 9;
/// The number of points that stand side by side.
pub(in crate::collide) const LANES: usize = 8;

/// The places of eight points at the start of a step and at its end, seen from an anchor, in m, by
/// coordinates.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
pub(in crate::collide) struct Displacements {
    pub(in crate::collide) start: [[f32; LANES]; 3],
    pub(in crate::collide) end: [[f32; LANES]; 3],
}

owns_no_heap!(Displacements);

impl Displacements {
    /// The displacements of any number of points, eight by eight.
    pub(in crate::collide) fn of<P>(
        points: &[P],
        ends: impl Fn(&P) -> [DVec3; 2],
        anchor: DVec3,
        out: &mut Vec<Self>,
    ) {
        out.clear();
        out.reserve(points.len().div_ceil(LANES));
        up_to_avx2(Seeing {
            points,
            ends,
            anchor,
            out,
        });
    }
}

/// The arguments of [`Displacements::of`].
struct Seeing<'a, P, F> {
    points: &'a [P],
    ends: F,
    anchor: DVec3,
    out: &'a mut Vec<Displacements>,
}

impl<P, F: Fn(&P) -> [DVec3; 2]> Kernel for Seeing<'_, P, F> {
    type Output = ();

    #[inline(always)]
    fn run<S: Lanes>(self, set: S) {
        // Not `extend` or `map`: what they call may be compiled for any processor.
        let (eights, rest) = self.points.as_chunks::<LANES>();
        let mut points = [[DVec3::ZERO; 2]; LANES];
        for eight in eights {
            for (point, of) in points.iter_mut().zip(eight) {
                *point = (self.ends)(of);
            }
            self.out.push(seen_from(set, &points, self.anchor));
        }
        if let Some(last) = rest.last() {
            // The last one stands for those that are missing.
            for (i, point) in points.iter_mut().enumerate() {
                *point = (self.ends)(rest.get(i).unwrap_or(last));
            }
            self.out.push(seen_from(set, &points, self.anchor));
        }
    }
}

/// The displacements of eight points, given by their ends, as seen from an anchor.
#[inline(always)]
pub(in crate::collide) fn seen_from(
    set: impl InstructionSet,
    points: &[[DVec3; 2]; LANES],
    anchor: DVec3,
) -> Displacements {
    #[cfg(target_arch = "x86_64")]
    if let Some(avx2) = set.avx2() {
        return avx2::seen_from(avx2, points, anchor);
    }
    let _ = set;
    let mut seen = Displacements {
        start: [[0.0; LANES]; 3],
        end: [[0.0; LANES]; 3],
    };
    for (lane, &[start, end]) in points.iter().enumerate() {
        let (start, end) = (short(start - anchor), short(end - anchor));
        for k in 0..3 {
            seen.start[k][lane] = start[k];
            seen.end[k][lane] = end[k];
        }
    }
    seen
}

#[inline(always)]
fn short(p: DVec3) -> [f32; 3] {
    [p.x as f32, p.y as f32, p.z as f32]
}

/// The coordinates of eight points along the nine directions.
#[inline(always)]
pub(in crate::collide) fn along_directions(
    [x, y, z]: &[[f32; LANES]; 3],
) -> [[f32; LANES]; DIRECTIONS] {
    let sum = |a: &[f32; LANES], b: &[f32; LANES]| std::array::from_fn(|i| a[i] + b[i]);
    let difference = |a: &[f32; LANES], b: &[f32; LANES]| std::array::from_fn(|i| a[i] - b[i]);
    [
        *x,
        *y,
        *z,
        sum(x, y),
        sum(x, z),
        sum(y, z),
        difference(x, y),
        difference(x, z),
        difference(y, z),
    ]
}

/// The volume around all points within `radius` (m) of some displacements, seen from that anchor.
pub(in crate::collide) fn around(
    displacements: &[Displacements],
    anchor: DVec3,
    radius: f64,
) -> Kdop18 {
    if displacements.is_empty() {
        return Kdop18::EMPTY;
    }
    let (low, high) = up_to_avx2(Extremes(displacements));
    let farthest = (0..DIRECTIONS).fold(0.0, |far: f32, k| far.max(-low[k]).max(high[k]));
    // Three roundings of numbers no larger.
    let lost = 4.0 * f64::from(f32::EPSILON) * f64::from(farthest);
    let mut planes = [0.0; 2 * DIRECTIONS];
    for k in 0..DIRECTIONS {
        let (at, length) = along(anchor, k);
        let out = lost + radius * length;
        planes[k] = at + f64::from(low[k]) - out;
        planes[DIRECTIONS + k] = -at - f64::from(high[k]) - out;
    }
    Kdop18::from_planes(planes)
}

/// The kernel of [`around`]: the least and the greatest coordinates of displacements.
struct Extremes<'a>(&'a [Displacements]);

impl Kernel for Extremes<'_> {
    type Output = ([f32; DIRECTIONS], [f32; DIRECTIONS]);

    #[inline(always)]
    fn run<S: Lanes>(self, _: S) -> ([f32; DIRECTIONS], [f32; DIRECTIONS]) {
        let mut low = [[f32::INFINITY; LANES]; DIRECTIONS];
        let mut high = [[f32::NEG_INFINITY; LANES]; DIRECTIONS];
        for eight in self.0 {
            let (a, b) = (along_directions(&eight.start), along_directions(&eight.end));
            for k in 0..DIRECTIONS {
                for i in 0..LANES {
                    low[k][i] = lesser(lesser(a[k][i], b[k][i]), low[k][i]);
                    high[k][i] = greater(greater(a[k][i], b[k][i]), high[k][i]);
                }
            }
        }
        let low = low.map(|low| low.into_iter().fold(f32::INFINITY, lesser));
        let high = high.map(|high| high.into_iter().fold(f32::NEG_INFINITY, greater));
        (low, high)
    }
}

/// The functions of this file in instructions of AVX2.
#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::{__m128, __m256d};

    use glam::DVec3;
    use pulp::cast;
    use pulp::x86::V3;

    use super::{Displacements, LANES};

    #[inline(always)]
    pub(super) fn seen_from(set: V3, points: &[[DVec3; 2]; LANES], anchor: DVec3) -> Displacements {
        let anchor = four(set, anchor);
        let (mut start, mut end) = ([[0.0; 4]; LANES], [[0.0; 4]; LANES]);
        for i in 0..LANES {
            start[i] = short(set, points[i][0], anchor);
            end[i] = short(set, points[i][1], anchor);
        }
        Displacements {
            start: by_coordinates(set, start),
            end: by_coordinates(set, end),
        }
    }

    /// The coordinates, and zero.
    #[inline(always)]
    fn four(set: V3, point: DVec3) -> __m256d {
        set.avx._mm256_set_pd(0.0, point.z, point.y, point.x)
    }

    /// A point seen from an anchor, and zero.
    #[inline(always)]
    fn short(set: V3, point: DVec3, anchor: __m256d) -> [f32; 4] {
        let seen = set.avx._mm256_sub_pd(four(set, point), anchor);
        cast(set.avx._mm256_cvtpd_ps(seen))
    }

    /// The first three coordinates of each point, side by side.
    #[inline(always)]
    fn by_coordinates(set: V3, points: [[f32; 4]; LANES]) -> [[f32; LANES]; 3] {
        let avx = set.avx;
        let [a, b, c, d, e, f, g, h]: [__m128; LANES] = cast(points);
        // Two in each, four lanes apart.
        let (ae, bf) = (avx._mm256_set_m128(e, a), avx._mm256_set_m128(f, b));
        let (cg, dh) = (avx._mm256_set_m128(g, c), avx._mm256_set_m128(h, d));
        let (xy, zw) = (
            avx._mm256_unpacklo_ps(ae, bf),
            avx._mm256_unpackhi_ps(ae, bf),
        );
        let (xy2, zw2) = (
            avx._mm256_unpacklo_ps(cg, dh),
            avx._mm256_unpackhi_ps(cg, dh),
        );
        [
            cast(avx._mm256_shuffle_ps::<0b01_00_01_00>(xy, xy2)),
            cast(avx._mm256_shuffle_ps::<0b11_10_11_10>(xy, xy2)),
            cast(avx._mm256_shuffle_ps::<0b01_00_01_00>(zw, zw2)),
        ]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::simd::by_each_set;

    #[derive(Clone, Copy)]
    struct Seen([[DVec3; 2]; LANES], DVec3);

    impl Kernel for Seen {
        type Output = Displacements;

        #[inline(always)]
        fn run<S: Lanes>(self, set: S) -> Displacements {
            seen_from(set, &self.0, self.1)
        }
    }

    /// A point, some of whose coordinates are no numbers, or none that are short.
    fn place() -> impl Strategy<Value = DVec3> {
        let number = prop_oneof![
            20 => -1.0..1.0_f64,
            1 => prop::num::f64::ANY,
        ];
        prop::array::uniform3(number).prop_map(DVec3::from)
    }

    proptest! {
        #[test]
        fn each_instruction_set_sees_the_same_displacements(
            points in prop::array::uniform8(prop::array::uniform2(place())), anchor in place(),
        ) {
            let all = by_each_set(Seen(points, anchor));
            for found in &all[1..] {
                for (a, b) in [(all[0].start, found.start), (all[0].end, found.end)] {
                    for (a, b) in a.as_flattened().iter().zip(b.as_flattened()) {
                        prop_assert!(a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan());
                    }
                }
            }
        }
    }
}
