//! Volumes of 18 planes in 16 bits each: what the trees of a step are made of.
//!
//! A step has one grid for all its volumes, laid over all of the cloth as it is when the step begins; planes are rounded outwards to its lines,
//! so that what a volume holds it holds still. A volume is less than half as many bytes as in f32, and
//! vector instructions take eight planes at once. Of contacts nothing is lost, for the last word on a pair of features is not
//! said by volumes. What lies off the grid is held by its border: it is told from what lies on it, not from what lies off it too.
//!
//! The grid is a function of positions, which all ranks know. Its lines lie at multiples of a power of
//! two, so that it stays for many steps, and so do volumes of bodies at rest.

use glam::DVec3;

use crate::collide::bvh::extent::Extent;
use crate::collide::bvh::kdop::{Kdop18, along};
use crate::collide::bvh::traversal::Bounds;
use crate::collide::bvh::tree::{Below, Bvh};
use crate::collide::width::{Width, Work, widest};

/// Directions.
pub(in crate::collide) const PAIRS: usize = 9;
/// Those that fill a register.
pub(in crate::collide) const WIDE: usize = 8;
/// Points that are measured at once.
pub(in crate::collide) const LANES: usize = 8;
/// Lines that the cloth lies between, in all directions: between this and half of it.
const LINES: f64 = 45_000.0;
/// The grid is moved by so many lines at once.
const MOVED: f64 = 8192.0;
/// The outermost lines.
pub(in crate::collide) const BORDER: f32 = 32_000.0;
/// More than half a line, for rounding to the nearest to round downwards, and more than what f32 loses before.
pub(in crate::collide) const DOWN: f32 = 0.75;
/// Added to a number, it leaves the nearest integer in its last bits.
const TO_INTEGER: f32 = 12_582_912.0;

/// The grid of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::collide) struct Grid {
    origin: DVec3,
    /// Lines per m along the axes; 0 if nothing can be told apart.
    lines: f64,
    /// For each direction: the same, and the line at the origin.
    scale: [f32; PAIRS],
    first: [f32; PAIRS],
}

/// A volume on the grid: lower lines along eight directions, negated upper lines, then both along the ninth, and zeros, so that what is
/// done to all is done to registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(align(16))]
pub(in crate::collide) struct Packed {
    pub(in crate::collide) low: [i16; WIDE],
    pub(in crate::collide) high: [i16; WIDE],
    pub(in crate::collide) last: [i16; WIDE],
}

/// The volumes of two siblings, side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(align(16))]
pub(in crate::collide) struct Siblings {
    pub(in crate::collide) low: [[i16; WIDE]; 2],
    pub(in crate::collide) high: [[i16; WIDE]; 2],
    /// Of the first twice, of the second twice.
    pub(in crate::collide) last: [i16; 4],
    /// What stands below each: there is room, and whoever tests them asks for it next.
    pub(in crate::collide) below: [Below; 2],
}

/// Coordinates of eight points along the nine directions.
#[inline(always)]
fn nine([x, y, z]: &[[f32; LANES]; 3]) -> [[f32; LANES]; PAIRS] {
    let both = |a: &[f32; LANES], b: &[f32; LANES]| std::array::from_fn(|i| a[i] + b[i]);
    let less = |a: &[f32; LANES], b: &[f32; LANES]| std::array::from_fn(|i| a[i] - b[i]);
    [
        *x,
        *y,
        *z,
        both(x, y),
        both(x, z),
        both(y, z),
        less(x, y),
        less(x, z),
        less(y, z),
    ]
}

#[inline(always)]
fn narrow(p: DVec3) -> [f32; 3] {
    [p.x as f32, p.y as f32, p.z as f32]
}

/// The lesser, and the second if there is none: what one vector instruction does.
#[inline(always)]
pub(in crate::collide) fn lesser(a: f32, b: f32) -> f32 {
    if a < b { a } else { b }
}

/// The greater, and the second if there is none.
#[inline(always)]
pub(in crate::collide) fn greater(a: f32, b: f32) -> f32 {
    if a > b { a } else { b }
}

/// The line below. What is no number lies on the lowest: there it is told from nothing.
#[inline(always)]
fn line(at: f32) -> i16 {
    rounded(at - DOWN)
}

/// The nearest line; the border itself, of what lies beyond.
#[inline(always)]
fn rounded(at: f32) -> i16 {
    let held = lesser(greater(at, -BORDER), BORDER);
    (held + TO_INTEGER).to_bits() as i16
}

/// Where eight points are at the start of a step and at its end, seen from an anchor, in m, by coordinates.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
pub(in crate::collide) struct Ways {
    pub(in crate::collide) start: [[f32; LANES]; 3],
    pub(in crate::collide) end: [[f32; LANES]; 3],
}

impl Ways {
    /// Of any number of points, eight by eight.
    pub(in crate::collide) fn of<P>(
        points: &[P],
        ends: impl Fn(&P) -> [DVec3; 2],
        anchor: DVec3,
        out: &mut Vec<Self>,
    ) {
        out.clear();
        out.reserve(points.len().div_ceil(LANES));
        widest(Seeing {
            points,
            ends,
            anchor,
            out,
        });
    }
}

/// Where eight points are, seen from an anchor.
#[inline(always)]
pub(in crate::collide) fn seen(points: &[[DVec3; 2]; LANES], anchor: DVec3) -> Ways {
    let mut ways = Ways {
        start: [[0.0; LANES]; 3],
        end: [[0.0; LANES]; 3],
    };
    for (lane, &[start, end]) in points.iter().enumerate() {
        let (start, end) = (narrow(start - anchor), narrow(end - anchor));
        for k in 0..3 {
            ways.start[k][lane] = start[k];
            ways.end[k][lane] = end[k];
        }
    }
    ways
}

/// The arguments of [`Ways::of`].
struct Seeing<'a, P, F> {
    points: &'a [P],
    ends: F,
    anchor: DVec3,
    out: &'a mut Vec<Ways>,
}

impl<P, F: Fn(&P) -> [DVec3; 2]> Work for Seeing<'_, P, F> {
    type Output = ();

    #[inline(always)]
    fn run<W: Width>(self, width: W) {
        // Not `extend` or `map`: what they call may be compiled for any processor.
        let (eights, rest) = self.points.as_chunks::<LANES>();
        let mut points = [[DVec3::ZERO; 2]; LANES];
        for eight in eights {
            for (point, of) in points.iter_mut().zip(eight) {
                *point = (self.ends)(of);
            }
            self.out.push(width.ways(points, self.anchor));
        }
        if let Some(last) = rest.last() {
            // The last one stands for those that are missing.
            for (i, point) in points.iter_mut().enumerate() {
                *point = (self.ends)(rest.get(i).unwrap_or(last));
            }
            self.out.push(width.ways(points, self.anchor));
        }
    }
}

/// The volume around all points within `radius` (m) of some ways, seen from that anchor.
pub(in crate::collide) fn around(ways: &[Ways], anchor: DVec3, radius: f64) -> Kdop18 {
    if ways.is_empty() {
        return Kdop18::EMPTY;
    }
    let (low, high) = widest(Around(ways));
    let farthest = (0..PAIRS).fold(0.0, |far: f32, k| far.max(-low[k]).max(high[k]));
    // Three roundings of numbers no larger.
    let lost = 4.0 * f64::from(f32::EPSILON) * f64::from(farthest);
    let mut planes = [0.0; 2 * PAIRS];
    for k in 0..PAIRS {
        let (at, length) = along(anchor, k);
        let out = lost + radius * length;
        planes[k] = at + f64::from(low[k]) - out;
        planes[PAIRS + k] = -at - f64::from(high[k]) - out;
    }
    Kdop18::from_planes(planes)
}

/// The least and the greatest coordinates of ways.
struct Around<'a>(&'a [Ways]);

impl Work for Around<'_> {
    type Output = ([f32; PAIRS], [f32; PAIRS]);

    #[inline(always)]
    fn run<W: Width>(self, _: W) -> ([f32; PAIRS], [f32; PAIRS]) {
        let mut low = [[f32::INFINITY; LANES]; PAIRS];
        let mut high = [[f32::NEG_INFINITY; LANES]; PAIRS];
        for ways in self.0 {
            let (a, b) = (nine(&ways.start), nine(&ways.end));
            for k in 0..PAIRS {
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

/// How coordinates along the nine directions become lines, rounded down by [`DOWN`].
#[derive(Clone, Copy, Debug)]
pub(in crate::collide) struct Lines {
    pub(in crate::collide) scale: [f32; PAIRS],
    /// Of the volume around the anchor, the lower lines, and the negated upper ones.
    pub(in crate::collide) low: [f32; PAIRS],
    pub(in crate::collide) high: [f32; PAIRS],
}

impl Lines {
    /// Lines `first` go through the anchor; volumes hold what is within `radius` lines.
    pub(in crate::collide) fn new(scale: [f32; PAIRS], first: [f64; PAIRS], radius: f64) -> Self {
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
pub(in crate::collide) fn eight(lines: &Lines, ways: &Ways) -> [Packed; LANES] {
    let (a, b) = (nine(&ways.start), nine(&ways.end));
    std::array::from_fn(|i| {
        let ends = |k: usize| {
            let scale = lines.scale[k];
            let (least, most) = (lesser(a[k][i], b[k][i]), greater(a[k][i], b[k][i]));
            let low = rounded(least * scale + lines.low[k]);
            (low, rounded(lines.high[k] - most * scale))
        };
        let (low, high) = ends(WIDE);
        Packed {
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
    out: &'a mut [Packed],
}

impl<F: Fn(u32) -> [DVec3; 2]> Work for MeasuringSome<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run<W: Width>(self, width: W) {
        let mut points = [[DVec3::ZERO; 2]; LANES];
        for places in self.places.chunks(LANES) {
            // Of the last few, what was there before stands for those that are missing.
            for (point, &place) in points.iter_mut().zip(places) {
                *point = (self.ends)(place);
            }
            let ways = width.ways(points, self.anchor);
            let volumes = width.volumes(&self.lines, &ways);
            for (&place, volume) in places.iter().zip(&volumes) {
                self.out[place as usize] = *volume;
            }
        }
    }
}

/// The arguments of [`Grid::measure`].
struct Measuring<'a> {
    ways: &'a [Ways],
    lines: Lines,
    out: &'a mut [[Packed; LANES]],
}

impl Work for Measuring<'_> {
    type Output = ();

    #[inline(always)]
    fn run<W: Width>(self, width: W) {
        for (ways, out) in self.ways.iter().zip(self.out) {
            *out = width.volumes(&self.lines, ways);
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
                scale: [0.0; PAIRS],
                first: [0.0; PAIRS],
            };
        }
        let lines = (LINES / widest).log2().floor().exp2();
        let snapped = |at: f64| (at * lines / MOVED).round() * MOVED / lines;
        let origin = center.map(snapped);
        let mut grid = Self {
            origin,
            lines,
            scale: [0.0; PAIRS],
            first: [0.0; PAIRS],
        };
        for k in 0..PAIRS {
            let (_, length) = along(DVec3::ZERO, k);
            let scale = lines / length;
            let first = (along_of(origin, k) - middle(k)) * scale;
            grid.scale[k] = scale as f32;
            grid.first[k] = ((first / MOVED).round() * MOVED) as f32;
        }
        grid
    }

    /// Volumes of what is within `radius` (m) of ways seen from an anchor, which is to be as near to the points as the cloth is large,
    /// or the [origin](Self::origin). There are eight for each eight ways.
    pub(in crate::collide) fn measure(
        &self,
        ways: &[Ways],
        anchor: DVec3,
        radius: f64,
        out: &mut Vec<Packed>,
    ) {
        out.resize(LANES * ways.len(), Packed::NOTHING);
        let (out, _) = out.as_chunks_mut();
        let lines = self.lines_from(anchor, radius);
        widest(Measuring { ways, lines, out });
    }

    /// The same volumes, of the points of some places only, which go from one end to the other; those of others stay as they are.
    ///
    /// # Panics
    /// If there is no room for one of the places.
    pub(in crate::collide) fn measure_some(
        &self,
        (places, ends): (&[u32], impl Fn(u32) -> [DVec3; 2]),
        anchor: DVec3,
        radius: f64,
        out: &mut [Packed],
    ) {
        let lines = self.lines_from(anchor, radius);
        widest(MeasuringSome {
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
    pub(in crate::collide) fn enclosing(&self, volume: &Kdop18) -> Packed {
        let mut planes = [0; 2 * PAIRS];
        for k in 0..PAIRS {
            let (at, _) = along(self.origin, k);
            let (first, scale) = (f64::from(self.first[k]), f64::from(self.scale[k]));
            let [low, high] = [volume.numbers()[k], volume.numbers()[PAIRS + k]].map(f64::from);
            planes[k] = line(((low - at) * scale + first) as f32);
            planes[PAIRS + k] = line(((high + at) * scale - first) as f32);
        }
        Packed {
            low: std::array::from_fn(|k| planes[k]),
            high: std::array::from_fn(|k| planes[PAIRS + k]),
            last: ninth(planes[WIDE], planes[PAIRS + WIDE]),
        }
    }

    /// Centre and half diagonal of a volume's box along the axes, in m; of one that reaches the border, beyond which nobody knows how far it goes, all there is.
    pub(in crate::collide) fn ball(&self, volume: &Packed) -> (DVec3, f64) {
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

/// Both lines along the ninth direction.
#[inline(always)]
pub(in crate::collide) fn ninth(low: i16, high: i16) -> [i16; WIDE] {
    [low, high, 0, 0, 0, 0, 0, 0]
}

/// The lesser of each.
#[inline(always)]
fn least(mut a: [i16; WIDE], b: [i16; WIDE]) -> [i16; WIDE] {
    for k in 0..WIDE {
        a[k] = a[k].min(b[k]);
    }
    a
}

/// The widest gaps of eight pairs of planes, both ways round.
#[inline(always)]
fn gaps(
    (low, high): (&[i16; WIDE], &[i16; WIDE]),
    (others_low, others_high): (&[i16; WIDE], &[i16; WIDE]),
) -> [i16; WIDE] {
    let mut gaps = [0; WIDE];
    for k in 0..WIDE {
        let below = low[k].saturating_add(others_high[k]);
        let above = high[k].saturating_add(others_low[k]);
        gaps[k] = below.max(above);
    }
    gaps
}

#[inline(always)]
fn any_positive(gaps: &[i16; WIDE]) -> bool {
    gaps.iter().fold(false, |any, &gap| any | (gap > 0))
}

impl Packed {
    /// Before it is known.
    pub(in crate::collide) const NOTHING: Self = Self {
        low: [0; WIDE],
        high: [0; WIDE],
        last: [0; WIDE],
    };

    /// The smallest volume that contains both.
    #[inline(always)]
    pub(in crate::collide) fn union(&self, other: &Self) -> Self {
        Self {
            low: least(self.low, other.low),
            high: least(self.high, other.high),
            last: least(self.last, other.last),
        }
    }

    /// Whether no pair of planes separates the two.
    #[inline(always)]
    pub(in crate::collide) fn overlaps(&self, other: &Self) -> bool {
        let mut gaps = gaps((&self.low, &self.high), (&other.low, &other.high));
        // Both ways round along the ninth direction; behind, zeros are no gaps.
        let [low, high, ..] = other.last;
        let turned = ninth(high, low);
        for k in 0..WIDE {
            gaps[k] = gaps[k].max(self.last[k].saturating_add(turned[k]));
        }
        !any_positive(&gaps)
    }

    /// Sum of the lengths of its box's sides in lines.
    #[inline]
    fn size(&self) -> i32 {
        (0..3)
            .map(|k| -i32::from(self.high[k]) - i32::from(self.low[k]))
            .sum()
    }
}

impl Siblings {
    /// Before they are known.
    pub(in crate::collide) const NOTHING: Self = Self {
        low: [[0; WIDE]; 2],
        high: [[0; WIDE]; 2],
        last: [0; 4],
        below: [Below::NOTHING; 2],
    };

    /// Puts a volume in the place of one of the two.
    #[inline(always)]
    pub(in crate::collide) fn put(&mut self, side: usize, volume: &Packed) {
        self.low[side] = volume.low;
        self.high[side] = volume.high;
        let [low, high, ..] = volume.last;
        self.last[2 * side] = low;
        self.last[2 * side + 1] = high;
    }

    /// One of the two.
    #[inline(always)]
    pub(in crate::collide) fn one(&self, side: usize) -> Packed {
        Packed {
            low: self.low[side],
            high: self.high[side],
            last: ninth(self.last[2 * side], self.last[2 * side + 1]),
        }
    }

    /// What contains both.
    #[inline(always)]
    pub(in crate::collide) fn union(&self) -> Packed {
        self.one(0).union(&self.one(1))
    }
}

/// The volumes of a tree: at (n + 1) / 2 those of nodes n, odd, and n + 1, which are siblings; at 0 the root's, twice.
#[derive(Clone, Copy, Debug)]
pub(in crate::collide) struct Nodes<'a>(pub(in crate::collide) &'a [Siblings]);

impl<'a> Nodes<'a> {
    /// The volume of a node.
    #[inline(always)]
    pub(in crate::collide) fn of(self, node: u32) -> Packed {
        let at = node as usize + 1;
        self.0[at / 2].one(at % 2)
    }

    /// How many nodes there are.
    pub(in crate::collide) fn count(self) -> usize {
        (2 * self.0.len()).saturating_sub(1)
    }

    /// The volume of the root, if there is one.
    pub(in crate::collide) fn root(self) -> Option<Packed> {
        self.0.first().map(|both| both.one(0))
    }
}

/// Whether each of two siblings meets each of two others: the first the first, the first the second, and so on.
#[inline(always)]
pub(in crate::collide) fn four(a: &Siblings, b: &Siblings) -> [bool; 4] {
    let [l0, h0, l1, h1] = a.last;
    let mine = [l0, h0, l1, h1, l0, h0, l1, h1];
    let [l0, h0, l1, h1] = b.last;
    let theirs = [h0, l0, h1, l1, h1, l1, h0, l0];
    // Of all four along the ninth direction at once.
    let mut ninth = [0; WIDE];
    for k in 0..WIDE {
        ninth[k] = mine[k].saturating_add(theirs[k]);
    }
    let meet = |i: usize, j: usize, at: usize| {
        let mut gaps = gaps((&a.low[i], &a.high[i]), (&b.low[j], &b.high[j]));
        for k in 0..WIDE {
            gaps[k] = gaps[k].max(ninth[2 * at + k % 2]);
        }
        !any_positive(&gaps)
    };
    [meet(0, 0, 0), meet(0, 1, 2), meet(1, 0, 3), meet(1, 1, 1)]
}

impl Bounds for Nodes<'_> {
    #[inline(always)]
    fn meets(self, width: impl Width, siblings: u32, other: Self, others: u32) -> u32 {
        width.meets(&self.0[siblings as usize], &other.0[others as usize])
    }

    #[inline(always)]
    fn below(self, _: &Bvh, node: u32) -> Below {
        let at = node as usize + 1;
        self.0[at / 2].below[at % 2]
    }

    #[inline(always)]
    fn prefetch(self, width: impl Width, siblings: u32) {
        width.prefetch(&self.0[siblings as usize]);
    }

    #[inline(always)]
    fn between(self, siblings: u32) -> bool {
        let both = &self.0[siblings as usize];
        both.one(0).overlaps(&both.one(1))
    }

    #[inline(always)]
    fn size(self, node: u32) -> f32 {
        self.of(node).size() as f32
    }
}

#[cfg(test)]
pub(in crate::collide) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Any two volumes, near each other or anywhere.
    pub(in crate::collide) fn siblings() -> impl Strategy<Value = Siblings> {
        let lines = || prop_oneof![-3..4i16, -32_000..32_001i16];
        prop::array::uniform(lines()).prop_map(|all: [i16; 36]| {
            let eight = |at: usize| std::array::from_fn(|k| all[at + k]);
            Siblings {
                low: [eight(0), eight(8)],
                high: [eight(16), eight(24)],
                last: [all[32], all[33], all[34], all[35]],
                below: [Below::NOTHING; 2],
            }
        })
    }

    fn point(scale: f64) -> impl Strategy<Value = DVec3> {
        (-scale..scale, -scale..scale, -scale..scale).prop_map(|(x, y, z)| DVec3::new(x, y, z))
    }

    /// Whether a volume's planes, read back exactly, hold a point.
    fn holds(grid: &Grid, volume: &Packed, p: DVec3) -> bool {
        (0..PAIRS).all(|k| {
            let (scale, first) = (f64::from(grid.scale[k]), f64::from(grid.first[k]));
            let at = along(p - grid.origin, k).0 * scale + first;
            let (low, high) = if k < WIDE {
                (volume.low[k], volume.high[k])
            } else {
                (volume.last[0], volume.last[1])
            };
            f64::from(low) <= at && at <= -f64::from(high)
        })
    }

    /// What is within `radius` of points that rest.
    fn whole(points: &[DVec3], radius: f64) -> Kdop18 {
        let (mut ways, anchor) = (Vec::new(), points[0]);
        Ways::of(points, |&p| [p, p], anchor, &mut ways);
        around(&ways, anchor, radius)
    }

    fn both(a: &Packed, b: &Packed) -> Siblings {
        let mut both = Siblings::NOTHING;
        both.put(0, a);
        both.put(1, b);
        both
    }

    fn swept(grid: &Grid, way: [DVec3; 2], radius: f64) -> Packed {
        seen_from(grid.origin(), grid, way, radius)
    }

    fn seen_from(anchor: DVec3, grid: &Grid, way: [DVec3; 2], radius: f64) -> Packed {
        let (mut ways, mut out) = (Vec::new(), Vec::new());
        Ways::of(&[way], |&way| way, anchor, &mut ways);
        grid.measure(&ways, anchor, radius, &mut out);
        out[0]
    }

    proptest! {
        #[test]
        fn volumes_hold_what_they_are_made_from_and_hardly_more(
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
            for t in [0.0, 0.3, 1.0] {
                let p = points[0].lerp(points[1], t);
                for d in [DVec3::ZERO, DVec3::X, -DVec3::Y, DVec3::ONE.normalize()] {
                    let p = p + d * (radius * (1.0 - 1e-9));
                    prop_assert!(holds(&grid, &volume, p));
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
        fn what_overlaps_exactly_overlaps_on_the_grid_however_it_is_asked(
            points in prop::collection::vec(point(1.0), 8),
        ) {
            let grid = Grid::over(Extent::of(&points));
            let one = |k: usize| swept(&grid, [points[2 * k], points[2 * k + 1]], 0.02);
            let exact = |k: usize| Kdop18::around(&points[2 * k..2 * k + 2], 0.02);
            let nodes = [both(&one(0), &one(1)), both(&one(2), &one(3))];
            let found = four(&nodes[0], &nodes[1]);
            for (at, (i, j)) in [(0, 2), (0, 3), (1, 2), (1, 3)].into_iter().enumerate() {
                let overlaps = one(i).overlaps(&one(j));
                prop_assert_eq!(found[at], overlaps);
                prop_assert_eq!(one(j).overlaps(&one(i)), overlaps);
                prop_assert!(overlaps || !exact(i).overlaps(&exact(j)));
                prop_assert!(one(i).union(&one(j)).overlaps(&one(j)));
            }
        }
    }

    #[test]
    fn off_the_grid_nothing_is_lost() {
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
