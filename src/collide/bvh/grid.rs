//! The grid of a step, on which all its volumes lie.
//!
//! A step has one grid, laid over all of the cloth as it is when the step begins. Planes of volumes
//! are rounded outwards to its lines, so that a rounded volume holds what the exact one holds.
//! Points off the grid are held by its border. They are distinguished from points on the grid, but
//! not from others off it.
//!
//! The grid is a function of positions, which all ranks know. Its lines lie at multiples of a power
//! of two, so that it stays for many steps, and so do volumes of bodies at rest.

use glam::DVec3;

use crate::collide::bvh::displacements::{
    DIRECTIONS, Displacements, LANES, along_directions, seen_from,
};
use crate::collide::bvh::extent::Extent;
use crate::collide::bvh::kdop::{Kdop18, along};
use crate::collide::bvh::quantised::{Quantised, WIDE, ninth};
use crate::heap_bytes::owns_no_heap;
use crate::simd::{InstructionSet, Kernel, Lanes, greater, lesser, up_to_avx2};

/// The most lines that the cloth lies between, along any direction; the fewest are half as many.
const LINES: f64 = 45_000.0;
/// The number of lines by which the grid is moved at once.
const MOVED: f64 = 8192.0;
/// The outermost lines.
const BORDER: f32 = 32_000.0;
/// The part of a line that is taken off a number before it is rounded to the nearest, so that it is
/// rounded down: a half, and more than what f32 has lost before.
const DOWN: f32 = 0.75;
/// A number that, added to another, leaves the nearest integer in its last bits.
const TO_INTEGER: f32 = 12_582_912.0;

/// The grid of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::collide) struct Grid {
    origin: DVec3,
    /// Lines per m along the axes; 0 if nothing can be told apart.
    lines: f64,
    /// Lines per unit of the coordinate along each direction, and the line at the origin.
    scale: [f32; DIRECTIONS],
    first: [f32; DIRECTIONS],
}

owns_no_heap!(Grid);

/// The line below a coordinate. A coordinate that is no number lies on the lowest line, with
/// whatever else lies there.
#[inline(always)]
fn line(at: f32) -> i16 {
    rounded(at - DOWN)
}

/// The nearest line, and the border for what lies beyond it.
#[inline(always)]
fn rounded(at: f32) -> i16 {
    let held = lesser(greater(at, -BORDER), BORDER);
    (held + TO_INTEGER).to_bits() as i16
}

/// How coordinates along the nine directions become lines, rounded down by [`DOWN`].
#[derive(Clone, Copy, Debug)]
struct Lines {
    scale: [f32; DIRECTIONS],
    /// The lower lines of the volume around the anchor, and the negated upper ones.
    low: [f32; DIRECTIONS],
    high: [f32; DIRECTIONS],
}

impl Lines {
    /// Lines `first` go through the anchor; volumes hold what is within `radius` lines.
    fn new(scale: [f32; DIRECTIONS], first: [f64; DIRECTIONS], radius: f64) -> Self {
        let out = radius + f64::from(DOWN);
        Self {
            scale,
            low: first.map(|first| (first - out) as f32),
            high: first.map(|first| (-first - out) as f32),
        }
    }
}

/// The volumes of eight points.
#[inline(always)]
fn volumes_of(
    set: impl InstructionSet,
    lines: &Lines,
    displacements: &Displacements,
) -> [Quantised; LANES] {
    #[cfg(target_arch = "x86_64")]
    if let Some(avx2) = set.avx2() {
        return avx2::volumes_of(avx2, lines, displacements);
    }
    let _ = set;
    let start = along_directions(&displacements.start);
    let end = along_directions(&displacements.end);
    std::array::from_fn(|i| {
        let ends = |k: usize| {
            let scale = lines.scale[k];
            let least = lesser(start[k][i], end[k][i]);
            let most = greater(start[k][i], end[k][i]);
            let low = rounded(least * scale + lines.low[k]);
            (low, rounded(lines.high[k] - most * scale))
        };
        let (low, high) = ends(WIDE);
        Quantised {
            low: std::array::from_fn(|k| ends(k).0),
            high: std::array::from_fn(|k| ends(k).1),
            last: ninth(low, high),
        }
    })
}

/// The arguments of [`Grid::measure_some`].
struct MeasuringSome<'a, F> {
    places: &'a [u32],
    ends: F,
    anchor: DVec3,
    lines: Lines,
    out: &'a mut [Quantised],
}

impl<F: Fn(u32) -> [DVec3; 2]> Kernel for MeasuringSome<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run<S: Lanes>(self, set: S) {
        let mut points = [[DVec3::ZERO; 2]; LANES];
        for places in self.places.chunks(LANES) {
            // Among the last few, what was there before stands for those that are missing.
            for (point, &place) in points.iter_mut().zip(places) {
                *point = (self.ends)(place);
            }
            let displacements = seen_from(set, &points, self.anchor);
            let volumes = volumes_of(set, &self.lines, &displacements);
            for (&place, volume) in places.iter().zip(&volumes) {
                self.out[place as usize] = *volume;
            }
        }
    }
}

/// The arguments of [`Grid::measure`].
struct Measuring<'a> {
    displacements: &'a [Displacements],
    lines: Lines,
    out: &'a mut [[Quantised; LANES]],
}

impl Kernel for Measuring<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Lanes>(self, set: S) {
        for (eight, out) in self.displacements.iter().zip(self.out) {
            *out = volumes_of(set, &self.lines, eight);
        }
    }
}

impl Grid {
    /// The grid over the points of a box.
    pub(in crate::collide) fn over(cloth: Extent) -> Self {
        let Extent { low, high } = cloth;
        let along_of = |p: DVec3, k: usize| along(p, k).0;
        let center = low.midpoint(high);
        let middle = |k: usize| along_of(center, k);
        let size = high - low;
        // Along a diagonal a box is as wide as along the other one of the same side.
        let widths = [0, 1, 2, 3, 4, 5].map(|k| along_of(size, k) / along(size, k).1);
        // Not `max`, which leaves out what is no number.
        let widest = (widths.into_iter()).fold(1e-30, |a, b| if b <= a { a } else { b });
        if widest.is_nan() || widest >= 1e30 || !center.is_finite() {
            return Self {
                origin: DVec3::ZERO,
                lines: 0.0,
                scale: [0.0; DIRECTIONS],
                first: [0.0; DIRECTIONS],
            };
        }
        let lines = (LINES / widest).log2().floor().exp2();
        let snapped = |at: f64| (at * lines / MOVED).round() * MOVED / lines;
        let origin = center.map(snapped);
        let mut grid = Self {
            origin,
            lines,
            scale: [0.0; DIRECTIONS],
            first: [0.0; DIRECTIONS],
        };
        for k in 0..DIRECTIONS {
            let (_, length) = along(DVec3::ZERO, k);
            let scale = lines / length;
            let first = (along_of(origin, k) - middle(k)) * scale;
            grid.scale[k] = scale as f32;
            grid.first[k] = ((first / MOVED).round() * MOVED) as f32;
        }
        grid
    }

    /// The volumes of what is within `radius` (m) of displacements seen from an anchor. The anchor
    /// is as near to the points as the cloth is large, or the [origin](Self::origin). There are
    /// eight volumes for each eight displacements.
    pub(in crate::collide) fn measure(
        &self,
        displacements: &[Displacements],
        anchor: DVec3,
        radius: f64,
        out: &mut Vec<Quantised>,
    ) {
        out.resize(LANES * displacements.len(), Quantised::NOTHING);
        let (out, _) = out.as_chunks_mut();
        let lines = self.lines_from(anchor, radius);
        up_to_avx2(Measuring {
            displacements,
            lines,
            out,
        });
    }

    /// The volumes of the points of some places only, as [`Self::measure`]; those of other places
    /// stay as they are. `ends` are those of the displacement of the point of a place.
    ///
    /// # Panics
    /// If there is no room for one of the places.
    pub(in crate::collide) fn measure_some(
        &self,
        places: &[u32],
        ends: impl Fn(u32) -> [DVec3; 2],
        anchor: DVec3,
        radius: f64,
        out: &mut [Quantised],
    ) {
        let lines = self.lines_from(anchor, radius);
        up_to_avx2(MeasuringSome {
            places,
            ends,
            anchor,
            lines,
            out,
        });
    }

    fn lines_from(&self, anchor: DVec3, radius: f64) -> Lines {
        let mut first = self.first.map(f64::from);
        for (k, first) in first.iter_mut().enumerate() {
            let (at, _) = along(anchor - self.origin, k);
            *first += at * f64::from(self.scale[k]);
        }
        Lines::new(self.scale, first, radius * self.lines)
    }

    /// A point near the middle of the cloth as it is when the step begins.
    pub(in crate::collide) fn origin(&self) -> DVec3 {
        self.origin
    }

    /// A volume that holds another.
    pub(in crate::collide) fn enclosing(&self, volume: &Kdop18) -> Quantised {
        let mut planes = [0; 2 * DIRECTIONS];
        for k in 0..DIRECTIONS {
            let (at, _) = along(self.origin, k);
            let (first, scale) = (f64::from(self.first[k]), f64::from(self.scale[k]));
            let [low, high] =
                [volume.numbers()[k], volume.numbers()[DIRECTIONS + k]].map(f64::from);
            planes[k] = line(((low - at) * scale + first) as f32);
            planes[DIRECTIONS + k] = line(((high + at) * scale - first) as f32);
        }
        Quantised {
            low: std::array::from_fn(|k| planes[k]),
            high: std::array::from_fn(|k| planes[DIRECTIONS + k]),
            last: ninth(planes[WIDE], planes[DIRECTIONS + WIDE]),
        }
    }

    /// The centre and half the diagonal of a volume's box along the axes, in m. A volume that
    /// reaches the border goes on beyond it: its ball holds everything.
    pub(in crate::collide) fn ball(&self, volume: &Quantised) -> (DVec3, f64) {
        let outermost = -BORDER as i16;
        let planes = volume.low[..3].iter().chain(&volume.high[..3]);
        if self.lines <= 0.0 || planes.into_iter().any(|&line| line <= outermost) {
            return (DVec3::ZERO, f64::INFINITY);
        }
        let at =
            |line: f64, k: usize| self.origin[k] + (line - f64::from(self.first[k])) / self.lines;
        let low: [f64; 3] = std::array::from_fn(|k| at(f64::from(volume.low[k]), k));
        let high: [f64; 3] = std::array::from_fn(|k| at(-f64::from(volume.high[k]), k));
        let (low, high) = (DVec3::from(low), DVec3::from(high));
        (0.5 * (low + high), 0.5 * (high - low).length())
    }
}

/// The functions of this file in instructions of AVX2.
///
/// There are no closures here: they would be compiled for any processor wherever they are not
/// inlined.
#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::{__m128i, __m256, __m256i};

    use pulp::cast;
    use pulp::x86::V3;

    use super::{BORDER, DIRECTIONS, Displacements, LANES, Lines, Quantised, WIDE};

    #[inline(always)]
    pub(super) fn volumes_of(
        set: V3,
        lines: &Lines,
        displacements: &Displacements,
    ) -> [Quantised; LANES] {
        let starts = along_directions(set, &displacements.start);
        let ends = along_directions(set, &displacements.end);
        let mut low = [[0; LANES]; DIRECTIONS];
        let mut high = [[0; LANES]; DIRECTIONS];
        for k in 0..DIRECTIONS {
            [low[k], high[k]] = lines_along(set, (starts[k], ends[k]), lines, k);
        }
        let ([low @ .., low9], [high @ .., high9]) = (low, high);
        let (low, high) = (transposed(set, low), transposed(set, high));
        let mut ninth = [[0; LANES]; WIDE];
        (ninth[0], ninth[1]) = (low9, high9);
        let last = transposed(set, ninth);
        let mut volumes = [Quantised::NOTHING; LANES];
        for i in 0..LANES {
            volumes[i] = Quantised {
                low: low[i],
                high: high[i],
                last: last[i],
            };
        }
        volumes
    }

    /// The coordinates of eight points along the nine directions.
    #[inline(always)]
    fn along_directions(set: V3, &[x, y, z]: &[[f32; LANES]; 3]) -> [__m256; DIRECTIONS] {
        let avx = set.avx;
        let (x, y, z) = (cast(x), cast(y), cast(z));
        [
            x,
            y,
            z,
            avx._mm256_add_ps(x, y),
            avx._mm256_add_ps(x, z),
            avx._mm256_add_ps(y, z),
            avx._mm256_sub_ps(x, y),
            avx._mm256_sub_ps(x, z),
            avx._mm256_sub_ps(y, z),
        ]
    }

    /// The nearest lines.
    #[inline(always)]
    fn rounded(set: V3, at: __m256) -> __m256i {
        let avx = set.avx;
        let at = avx._mm256_max_ps(at, avx._mm256_set1_ps(-BORDER));
        let held = avx._mm256_min_ps(at, avx._mm256_set1_ps(BORDER));
        // To the nearest, and of two as near to the even one.
        avx._mm256_cvtps_epi32(held)
    }

    /// The lower lines of all points along a direction, and the negated upper ones.
    #[inline(always)]
    fn lines_along(
        set: V3,
        (a, b): (__m256, __m256),
        lines: &Lines,
        k: usize,
    ) -> [[i16; LANES]; 2] {
        let (avx, avx2) = (set.avx, set.avx2);
        let scale = avx._mm256_set1_ps(lines.scale[k]);
        let least = avx._mm256_mul_ps(avx._mm256_min_ps(a, b), scale);
        let most = avx._mm256_mul_ps(avx._mm256_max_ps(a, b), scale);
        let low = avx._mm256_add_ps(least, avx._mm256_set1_ps(lines.low[k]));
        let high = avx._mm256_sub_ps(avx._mm256_set1_ps(lines.high[k]), most);
        let fours = avx2._mm256_packs_epi32(rounded(set, low), rounded(set, high));
        cast(avx2._mm256_permute4x64_epi64::<0b11_01_10_00>(fours))
    }

    /// Rows for columns.
    #[inline(always)]
    fn transposed(set: V3, rows: [[i16; LANES]; WIDE]) -> [[i16; WIDE]; LANES] {
        let sse2 = set.sse2;
        let [a, b, c, d, e, f, g, h]: [__m128i; WIDE] = cast(rows);
        // Rows are joined by twos, by fours, and all.
        let (ab, ab2) = (sse2._mm_unpacklo_epi16(a, b), sse2._mm_unpackhi_epi16(a, b));
        let (cd, cd2) = (sse2._mm_unpacklo_epi16(c, d), sse2._mm_unpackhi_epi16(c, d));
        let (ef, ef2) = (sse2._mm_unpacklo_epi16(e, f), sse2._mm_unpackhi_epi16(e, f));
        let (gh, gh2) = (sse2._mm_unpacklo_epi16(g, h), sse2._mm_unpackhi_epi16(g, h));
        let (p, q) = (
            sse2._mm_unpacklo_epi32(ab, cd),
            sse2._mm_unpackhi_epi32(ab, cd),
        );
        let (r, s) = (
            sse2._mm_unpacklo_epi32(ab2, cd2),
            sse2._mm_unpackhi_epi32(ab2, cd2),
        );
        let (t, u) = (
            sse2._mm_unpacklo_epi32(ef, gh),
            sse2._mm_unpackhi_epi32(ef, gh),
        );
        let (v, w) = (
            sse2._mm_unpacklo_epi32(ef2, gh2),
            sse2._mm_unpackhi_epi32(ef2, gh2),
        );
        cast([
            sse2._mm_unpacklo_epi64(p, t),
            sse2._mm_unpackhi_epi64(p, t),
            sse2._mm_unpacklo_epi64(q, u),
            sse2._mm_unpackhi_epi64(q, u),
            sse2._mm_unpacklo_epi64(r, v),
            sse2._mm_unpackhi_epi64(r, v),
            sse2._mm_unpacklo_epi64(s, w),
            sse2._mm_unpackhi_epi64(s, w),
        ])
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::collide::bvh::displacements::around;
    use crate::collide::bvh::quantised::{Siblings, meets};
    use crate::simd::{Plain, by_each_set};

    #[derive(Clone, Copy)]
    struct Volumes<'a>(&'a Lines, &'a Displacements);

    impl Kernel for Volumes<'_> {
        type Output = [Quantised; LANES];

        #[inline(always)]
        fn run<S: Lanes>(self, set: S) -> [Quantised; LANES] {
            volumes_of(set, self.0, self.1)
        }
    }

    /// Three coordinates of eight points, some of them no numbers.
    fn points() -> impl Strategy<Value = [[f32; LANES]; 3]> {
        let number = prop_oneof![
            20 => -1.0..1.0_f32,
            1 => prop::num::f32::ANY,
        ];
        prop::array::uniform3(prop::array::uniform8(number))
    }

    proptest! {
        #[test]
        fn each_instruction_set_has_the_same_volumes(
            start in points(), end in points(), radius in 0.0..9.0_f32,
            scale in 1e-3..1e5_f32, first in prop::array::uniform9(-4e4..4e4_f32),
        ) {
            let radius = f64::from(radius);
            let lines = Lines::new([scale; DIRECTIONS], first.map(f64::from), radius);
            let displacements = Displacements { start, end };
            let all = by_each_set(Volumes(&lines, &displacements));
            prop_assert!(all.iter().all(|found| *found == all[0]), "{:?}", all);
        }
    }

    fn point(scale: f64) -> impl Strategy<Value = DVec3> {
        (-scale..scale, -scale..scale, -scale..scale).prop_map(|(x, y, z)| DVec3::new(x, y, z))
    }

    /// Whether a volume's planes, read back exactly, hold a point that is known to `error` m.
    fn holds(grid: &Grid, volume: &Quantised, p: DVec3, error: f64) -> bool {
        (0..DIRECTIONS).all(|k| {
            let (scale, first) = (f64::from(grid.scale[k]), f64::from(grid.first[k]));
            let at = along(p - grid.origin, k).0 * scale + first;
            let error = error * scale * along(p, k).1;
            let (low, high) = if k < WIDE {
                (volume.low[k], volume.high[k])
            } else {
                (volume.last[0], volume.last[1])
            };
            f64::from(low) <= at + error && at - error <= -f64::from(high)
        })
    }

    /// The volume around points that rest.
    fn whole(points: &[DVec3], radius: f64) -> Kdop18 {
        let (mut all, anchor) = (Vec::new(), points[0]);
        Displacements::of(points, |&p| [p, p], anchor, &mut all);
        around(&all, anchor, radius)
    }

    fn both(a: &Quantised, b: &Quantised) -> Siblings {
        let mut both = Siblings::NOTHING;
        both.put(0, a);
        both.put(1, b);
        both
    }

    fn swept(grid: &Grid, ends: [DVec3; 2], radius: f64) -> Quantised {
        seen_from(grid.origin(), grid, ends, radius)
    }

    fn seen_from(anchor: DVec3, grid: &Grid, ends: [DVec3; 2], radius: f64) -> Quantised {
        let (mut all, mut out) = (Vec::new(), Vec::new());
        Displacements::of(&[ends], |&ends| ends, anchor, &mut all);
        grid.measure(&all, anchor, radius, &mut out);
        out[0]
    }

    proptest! {
        #[test]
        fn volumes_hold_their_points_and_hardly_more(
            far in point(1e6), points in prop::collection::vec(point(1.0), 4..9),
            radius in 0.0..0.1f64, size in -6..6i32, from in 0..5_usize,
        ) {
            let size = 10f64.powi(size);
            let radius = radius * size;
            let points: Vec<DVec3> = points.iter().map(|&p| far + p * size).collect();
            let whole = whole(&points, radius);
            for &p in &points {
                prop_assert!(whole.contains(p));
            }
            let grid = Grid::over(Extent::of(&points));
            // From the origin, or from anywhere on the cloth.
            let anchor = points.get(from.wrapping_sub(1)).copied();
            let anchor = anchor.unwrap_or_else(|| grid.origin());
            let volume = seen_from(anchor, &grid, [points[0], points[1]], radius);
            let exact = Kdop18::around(&points[..2], radius);
            for &p in &points[..2] {
                prop_assert!(holds(&grid, &volume, p, 0.0));
            }
            // Far from the origin a small cloth's lines lie closer than numbers of f64 do, so that
            // points within the radius are rounded across lines.
            let rounding = 4.0 * f64::EPSILON * (far.length() + size);
            for t in [0.0, 0.3, 1.0] {
                let p = points[0].lerp(points[1], t);
                for d in [DVec3::ZERO, DVec3::X, -DVec3::Y, DVec3::ONE.normalize()] {
                    let p = p + d * (radius * (1.0 - 1e-9));
                    prop_assert!(holds(&grid, &volume, p, rounding));
                }
            }
            prop_assert!(volume.overlaps(&grid.enclosing(&exact)));
            // To two lines, and what f32 does to the volume around all.
            let (center, half) = grid.ball(&volume);
            let (expected, expected_half) = exact.ball();
            let slack = 5.0 / grid.lines + 4e-7 * (far.length() + size);
            prop_assert!((center - expected).length() < slack && half < expected_half + slack);
            prop_assert!(grid.lines * half < LINES);
        }

        #[test]
        fn volumes_that_overlap_exactly_overlap_on_the_grid_by_every_test(
            points in prop::collection::vec(point(1.0), 8),
        ) {
            let grid = Grid::over(Extent::of(&points));
            let one = |k: usize| swept(&grid, [points[2 * k], points[2 * k + 1]], 0.02);
            let exact = |k: usize| Kdop18::around(&points[2 * k..2 * k + 2], 0.02);
            let nodes = [both(&one(0), &one(1)), both(&one(2), &one(3))];
            let found = meets(Plain, &nodes[0], &nodes[1]);
            for (at, (i, j)) in [(0, 2), (0, 3), (1, 2), (1, 3)].into_iter().enumerate() {
                let overlaps = one(i).overlaps(&one(j));
                prop_assert_eq!(found >> at & 1 != 0, overlaps);
                prop_assert_eq!(one(j).overlaps(&one(i)), overlaps);
                prop_assert!(overlaps || !exact(i).overlaps(&exact(j)));
                prop_assert!(one(i).union(&one(j)).overlaps(&one(j)));
            }
        }
    }

    #[test]
    fn volumes_far_from_the_grid_lose_no_overlap() {
        let grid = Grid::over(Extent::of(&[DVec3::ZERO, DVec3::ONE]));
        let at = |p: DVec3| swept(&grid, [p, p], 0.01);
        let inside = at(DVec3::splat(0.5));
        for far in [1e3, 1e30, 1e200] {
            assert!(!at(DVec3::X * far).overlaps(&inside), "{far}");
            assert!(at(DVec3::X * far).overlaps(&at(DVec3::X * far)), "{far}");
        }
        for nowhere in [f64::NAN, f64::INFINITY] {
            assert!(at(DVec3::splat(nowhere)).overlaps(&at(DVec3::splat(nowhere))));
        }
        assert!(at(DVec3::splat(f64::NAN)).overlaps(&inside));
    }

    #[test]
    fn any_cloth_has_a_grid() {
        for size in [0.0, 1e-300, 1e-30, 1e30, 1e300, f64::INFINITY, f64::NAN] {
            let points = [DVec3::ZERO, DVec3::splat(size)];
            let grid = Grid::over(Extent::of(&points));
            let all = points.map(|p| swept(&grid, [p, p], 0.0));
            let both = all[0].union(&all[1]);
            assert!(both.overlaps(&all[0]) && both.overlaps(&all[1]), "{size}");
            assert!(all[1].overlaps(&all[1]), "{size}");
        }
    }

    #[test]
    fn the_grid_stays_while_cloth_moves_a_little() {
        let grid = |shift: f64| {
            let points = [DVec3::splat(shift), DVec3::ONE + shift];
            Grid::over(Extent::of(&points))
        };
        let mut grids: Vec<Grid> = (0..100).map(|step| grid(0.001 * f64::from(step))).collect();
        grids.dedup();
        assert!(grids.len() <= 3, "{}", grids.len());
    }
}
