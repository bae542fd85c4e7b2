//! Separation bounds: how far apart a part of cloth keeps its points. By them tests of cloth
//! against itself are left out.
//!
//! Take a block of a chart ([`charts`](crate::collide::cull::charts)) that is whole, `f` the motion
//! of its points, piecewise linear with gradients `F`, and a linear map `A`. If at the start and at
//! the end of the step, in every triangle and for every unit vector `u`, `|F u|² ≥ s` and `|F u − A
//! u|² ≤ e`, then for any two points of the block, at any time of the step,
//!
//! ```text
//! |f(p) − f(q)| ≥ √(s − e) |p − q|
//! ```
//!
//! with `|p − q|` their distance in the chart. For `2 F u·A u = |F u|² + |A u|² − |F u − A u|² ≥ s
//! − e + |A u|²`, which is at least `2 √(s − e) |A u|`; this holds for gradients between start and
//! end too, as they are in between and it is linear in `F`; and `f(p) − f(q)` is the integral of `F
//! (p − q)` along the segment from `q` to `p`, which lies in the block. So points come no closer
//! than `√(s − e)`, the *separation bound*, times their distance at rest.
//!
//! This stands for the normal cones and the contour condition of [VM94] and [Pro97]: where normals
//! differ by up to α and nothing else happens, `s − e` is about cos² α. But it also bounds
//! distances, which contacts within reach need and cones do not; it bounds all that lies between
//! the start and the end of the step; and where the rest shape is convex there is no contour to
//! test.
//!
//! `A` is the middle of a box around all gradients, which is refitted like a volume: boxes of
//! cells, then of the larger cells above them, a tile at a time.
//!
//! Blocks reach beyond their tile by one cell of their level, the largest by a whole tile. So the
//! bounds of a tile take the gradients of its own triangles and, from the tiles beside it, those of
//! cells along the border: 34 cells, which the rank that has made them sends to the ranks that need
//! them.
//!
//! Ranks send each other the bounds of tiles, so these are short: a byte for the square of each
//! block's bound, rounded down. It is as short on one rank, so that the same tests are made on any
//! number of ranks.
//!
//! * \[VM94\] Volino, Magnenat-Thalmann: Efficient self-collision detection on smoothly discretized
//!   surface animations using geometrical shape regularity.
//! * \[Pro97\] Provot: Collision and self-collision handling in cloth model dedicated to design
//!   garments.

use bytemuck::Pod;
use glam::DVec3;

use crate::collide::cull::charts::{
    BLOCKS, LEVELS, TILE, Tile, TileTriangle, TileTriangles, first_of_level,
};
use crate::heap_bytes::owns_no_heap;
use crate::simd::{InstructionSet, Kernel, Lanes, up_to_avx2};
use crate::simd::{greater, lesser};

/// A squared separation bound in units of 1/200, or less: up to 1.275, that of cloth that is
/// stretched by an eighth.
pub(in crate::collide) type SeparationBound = u8;

/// The bound of a block that is not whole: its points may be anywhere.
pub(in crate::collide) const NO_BOUND: SeparationBound = 0;
/// The units of a squared bound of 1.
const UNITS: f64 = 200.0;

/// The squared bound that a number of units stands for.
#[inline]
pub(in crate::collide) fn square(bound: SeparationBound) -> f64 {
    f64::from(bound) / UNITS
}

/// The largest bound that is not above a square from 0 to 1.
pub(in crate::collide) fn not_above(square: f64) -> SeparationBound {
    (square * UNITS) as SeparationBound
}

/// The number of tiles beside one that its bounds look at: to the right, above, and right above.
pub(in crate::collide) const SIDES: usize = 3;
/// The number of their cells that they look at, of all levels: a column, a row, a corner.
pub(in crate::collide) const BESIDE: [usize; SIDES] = [LINE, LINE, LEVELS as usize];
/// The number of cells along a side of a tile, of all levels.
const LINE: usize = 2 * TILE as usize - 1;

/// The place at which the cells of a level begin among those along a side of a tile.
fn first_of_line(level: u32) -> usize {
    2 * (TILE - (TILE >> level)) as usize
}

/// The place of the least squared stretch.
const STRETCH: usize = 3;
/// The places that hold nothing: this one among the least entries, and the same among all.
const UNUSED: usize = 7;

/// Bounds of gradients: the least of each entry, of the two columns in turn, and of the squared
/// stretch, which stands behind the first column; then the negated greatest of each entry at the
/// same places. All are less than what they bound by [`Slack`] or more, so that joining is a
/// minimum.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(in crate::collide) struct Gradients {
    bounds: [f32; 16],
}

owns_no_heap!(Gradients);

/// The number of vertices by which memory is asked for one before it is read.
const AHEAD: usize = 12;

/// The ends of a vertex's displacement, seen from some point near by: x, y, z, and zero, of both.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
pub(in crate::collide) struct Ends(pub(in crate::collide) [f32; 8]);

/// The most by which gradients in f32 may be wrong.
///
/// Coordinates of at most D are wrong by δ = 2⁻²⁴ D, edges, of at most 2 D, by 4 δ; and entries of
/// gradients, sums of two products of edges with entries of an inverse whose sum is at most G, by
/// (4 + 6) δ G after two roundings each and that of the sum. Bounds of them lose another 2 δ G when
/// this is taken off them. `entry` is 16 δ G, and at least 2⁻²⁰. A squared length of a column, u·u,
/// is then wrong by no more than √3 (1 + u·u) `entry` and what squares and four roundings do, u·v
/// by no more than √3 / 2 (2 + u·u + v·v) `entry` and as much: 8 (1 + u·u + v·v) `entry` bounds
/// what both do to the stretch.
#[derive(Clone, Copy, Debug)]
pub(in crate::collide) struct Slack {
    entry: f32,
}

impl Slack {
    /// The most that may be wrong for anything to be known.
    const MOST: f64 = 0.05;

    /// The slack for coordinates (m) and sums of entries of inverses (1/m); `None` if they are too
    /// large or no numbers.
    pub(in crate::collide) fn new(farthest: f64, steepest: f64) -> Option<Self> {
        let entry = (farthest * steepest).max(1.0) * f64::from(f32::EPSILON) * 8.0;
        // A value that is no number is not less, but `max` leaves it out.
        let known = entry < Self::MOST && (farthest * steepest).is_finite();
        known.then_some(Self {
            entry: entry as f32,
        })
    }

    /// The slack of every entry, and that of the stretch as a share of 1 + u·u + v·v.
    #[inline(always)]
    pub(in crate::collide) fn shares(self) -> [f32; 2] {
        [self.entry, 8.0 * self.entry]
    }
}

/// The bounds of a triangle's gradients.
#[inline(always)]
fn bounds(
    set: impl InstructionSet,
    corners: [&Ends; 3],
    inverse: &[f32; 4],
    slack: Slack,
) -> [f32; 16] {
    #[cfg(target_arch = "x86_64")]
    if let Some(avx2) = set.avx2() {
        return avx2::bounds(avx2, corners, inverse, slack);
    }
    let _ = set;
    let [a, b, c] = corners;
    let [entry, share] = slack.shares();
    let mut bounds = [0.0; 16];
    let (mut u, mut v) = ([0.0; 8], [0.0; 8]);
    for k in 0..8 {
        let (e, f) = (b.0[k] - a.0[k], c.0[k] - a.0[k]);
        u[k] = e * inverse[0] + f * inverse[1];
        v[k] = e * inverse[2] + f * inverse[3];
    }
    for half in [0, 4] {
        let dot = |a: &[f32; 8], b: &[f32; 8]| {
            (a[half] * b[half] + a[half + 1] * b[half + 1]) + a[half + 2] * b[half + 2]
        };
        let (uu, vv, uv) = (dot(&u, &u), dot(&v, &v), dot(&u, &v));
        // Gershgorin's bound of the smaller eigenvalue of FᵀF.
        let stretch = lesser(uu, vv) - uv.abs();
        u[half + STRETCH] = stretch - share * ((uu + vv) + 1.0);
    }
    for k in 0..4 {
        for (at, of) in [(k, &u), (k + 4, &v)] {
            bounds[at] = lesser(of[k], of[k + 4]) - entry;
            bounds[at + 8] = -entry - greater(of[k], of[k + 4]);
        }
    }
    bounds
}

/// The square of a separation bound that bounds of gradients prove, or less; negative or no number
/// if there is none.
#[inline(always)]
fn square_of(set: impl InstructionSet, bounds: &[f32; 16]) -> f32 {
    #[cfg(target_arch = "x86_64")]
    if let Some(avx2) = set.avx2() {
        return avx2::square_of(avx2, bounds);
    }
    let _ = set;
    let half = |k: usize| (bounds[k] + bounds[k + 8]) * -0.5;
    let h = [half(0), half(1), half(2), half(4), half(5), half(6)];
    let dot = |a: usize, b: usize| (h[a] * h[b] + h[a + 1] * h[b + 1]) + h[a + 2] * h[b + 2];
    deviating(bounds[STRETCH], dot(0, 0), dot(3, 3), dot(0, 3))
}

/// The part that is left of a squared stretch where gradients deviate from their middle by no more
/// than half widths with these products.
#[inline(always)]
fn deviating(stretch: f32, uu: f32, vv: f32, uv: f32) -> f32 {
    // Gradients in the box deviate from its middle by no more than the matrix of its half widths
    // stretches.
    let apart = uu - vv;
    let deviation = (uu + vv + (apart * apart + 4.0 * (uv * uv)).sqrt()) * 0.5;
    // The slack is for some ten roundings.
    stretch - deviation * (1.0 + 16.0 * f32::EPSILON) - 4.0 * f32::EPSILON
}

impl Gradients {
    /// The bounds of gradients that are not known.
    const UNKNOWN: Self = Self {
        bounds: [f32::NEG_INFINITY; 16],
    };
    const NONE: Self = Self {
        bounds: [f32::INFINITY; 16],
    };
    /// The number of numbers that make up bounds.
    pub(in crate::collide) const NUMBERS: usize = 13;

    /// The places of these numbers.
    const PLACES: [usize; Self::NUMBERS] = {
        let mut places = [0; Self::NUMBERS];
        let (mut k, mut at) = (0, 0);
        while k < Self::NUMBERS {
            if at == UNUSED || at == 8 + STRETCH {
                at += 1;
            }
            places[k] = at;
            k += 1;
            at += 1;
        }
        places
    };

    /// The numbers that make them up.
    pub(in crate::collide) fn numbers(&self) -> [f32; Self::NUMBERS] {
        Self::PLACES.map(|at| self.bounds[at])
    }

    /// The bounds that are made up of these numbers.
    pub(in crate::collide) fn from_numbers(numbers: [f32; Self::NUMBERS]) -> Self {
        let mut bounds = Self::NONE.bounds;
        for (at, number) in Self::PLACES.into_iter().zip(numbers) {
            bounds[at] = number;
        }
        Self { bounds }
    }

    #[inline(always)]
    fn join(&mut self, other: &Self) {
        for (mine, theirs) in self.bounds.iter_mut().zip(&other.bounds) {
            *mine = if *theirs < *mine { *theirs } else { *mine };
        }
    }

    /// The separation bound that they prove.
    #[inline(always)]
    fn bound(&self, set: impl InstructionSet) -> SeparationBound {
        // The conversion rounds towards zero and makes zero of what is below it or no number.
        // Infinite bounds give either.
        (square_of(set, &self.bounds) * (UNITS as f32 * (1.0 - f32::EPSILON))) as SeparationBound
    }
}

/// Computes the bounds of the gradients in each cell of a tile, level by level, for a step of `dt`;
/// `ends` is room.
pub(in crate::collide) fn gradients(
    tile: &Tile,
    motion: (&[DVec3], &[DVec3], f64),
    ends: &mut Vec<Ends>,
    out: &mut Vec<Gradients>,
) {
    up_to_avx2(Making {
        tile,
        motion,
        ends,
        out,
    });
}

/// The arguments of [`gradients`].
struct Making<'a> {
    tile: &'a Tile,
    motion: (&'a [DVec3], &'a [DVec3], f64),
    ends: &'a mut Vec<Ends>,
    out: &'a mut Vec<Gradients>,
}

impl Kernel for Making<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Lanes>(self, set: S) {
        let Self {
            tile,
            motion: (x, v, dt),
            ends,
            out,
        } = self;
        out.clear();
        ends.clear();
        let anchor = tile
            .vertices
            .first()
            .map_or(DVec3::ZERO, |&v| x[v as usize]);
        let mut farthest = [0.0_f32; 8];
        // This is zero, or no number once there was one that is not finite.
        let mut sound = [0.0_f32; 8];
        for (at, &vertex) in tile.vertices.iter().enumerate() {
            // Vertices stand in rows: those behind the next ones are far away in memory.
            if let Some(&later) = tile.vertices.get(at + AHEAD) {
                set.prefetch_value(&x[later as usize]);
                set.prefetch_value(&v[later as usize]);
            }
            let (start, velocity) = (x[vertex as usize], v[vertex as usize]);
            let (p, q) = (start - anchor, start + velocity * dt - anchor);
            let both = [p.x, p.y, p.z, 0.0, q.x, q.y, q.z, 0.0];
            let mut short = [0.0; 8];
            for k in 0..8 {
                short[k] = both[k] as f32;
                farthest[k] = greater(short[k].abs(), farthest[k]);
                sound[k] += short[k] * 0.0;
            }
            ends.push(Ends(short));
        }
        let (mut most, mut all_sound) = (0.0, 0.0);
        for k in 0..8 {
            most = greater(farthest[k], most);
            all_sound += sound[k];
        }
        let Some(slack) = Slack::new(f64::from(most + all_sound), tile.steepest) else {
            out.resize(BLOCKS, Gradients::UNKNOWN);
            return;
        };
        out.resize(BLOCKS, Gradients::NONE);
        match &tile.triangles {
            TileTriangles::Few(all) => join_triangles(set, all, ends, slack, out),
            TileTriangles::Many(all) => join_triangles(set, all, ends, slack, out),
        }
        for level in 1..LEVELS {
            let (side, below) = (TILE >> level, first_of_level(level - 1));
            let row = 2 * side as usize;
            for cell in 0..(side * side) as usize {
                let (x, y) = (cell % side as usize, cell / side as usize);
                let first = below + 2 * y * row + 2 * x;
                let mut bounds = out[first];
                for other in [first + 1, first + row, first + row + 1] {
                    bounds.join(&{ out[other] });
                }
                out[first_of_level(level) + cell] = bounds;
            }
        }
    }
}

/// Joins the bounds of triangles to those of the cells that they touch.
#[inline(always)]
fn join_triangles<V: Pod + Into<u32>>(
    set: impl InstructionSet,
    triangles: &[TileTriangle<V>],
    ends: &[Ends],
    slack: Slack,
    cells: &mut [Gradients],
) {
    let mut all = Gradients::NONE;
    let mut parts = triangles.iter().peekable();
    while let Some(part) = parts.next() {
        let [a, b, c] = part.corners;
        let [a, b, c] = [a.into() as usize, b.into() as usize, c.into() as usize];
        all.join(&Gradients {
            bounds: bounds(
                set,
                [&ends[a], &ends[b], &ends[c]],
                &{ part.inverse },
                slack,
            ),
        });
        if parts
            .peek()
            .is_some_and(|next| { next.cells } == { part.cells })
        {
            continue;
        }
        let [x0, y0, x1, y1] = { part.cells }.ends();
        for y in y0..=y1 {
            let row = y * TILE as usize;
            for cell in &mut cells[row + x0..=row + x1] {
                cell.join(&all);
            }
        }
        all = Gradients::NONE;
    }
}

/// The gradients of cells beside a tile, on one of its sides.
#[derive(Clone, Copy, Debug)]
pub(in crate::collide) enum Beside<'a> {
    /// All cells of the tile there.
    Tile(&'a [Gradients]),
    /// The cells that are read, as [`picked`](Self::picked).
    Picked(&'a [Gradients]),
}

impl<'a> Beside<'a> {
    /// The gradients that the bounds of a tile read on a side of it; `room` is for them.
    pub(in crate::collide) fn picked<'b>(
        self,
        side: usize,
        room: &'b mut Vec<Gradients>,
    ) -> &'b [Gradients]
    where
        'a: 'b,
    {
        let cells = match self {
            Self::Picked(cells) => return cells,
            Self::Tile(cells) => cells,
        };
        room.clear();
        for level in 0..LEVELS {
            let (row, first) = ((TILE >> level) as usize, first_of_level(level));
            match side {
                0 => room.extend((0..row).map(|y| cells[first + y * row])),
                1 => room.extend_from_slice(&cells[first..first + row]),
                _ => room.push(cells[first]),
            }
        }
        room
    }

    /// The gradients of the cell at a place among those of a level on that side.
    #[inline(always)]
    fn cell(self, side: usize, level: u32, place: usize) -> &'a Gradients {
        match self {
            Self::Picked(cells) if side < 2 => &cells[first_of_line(level) + place],
            Self::Picked(cells) => &cells[level as usize],
            Self::Tile(cells) => {
                let step = if side == 0 {
                    (TILE >> level) as usize
                } else {
                    1
                };
                &cells[first_of_level(level) + place * step]
            }
        }
    }
}

/// Computes the separation bound of each block of a tile, from the gradients of its cells and of
/// those [`beside`] it, on the sides on which there are any.
pub(in crate::collide) fn bounds_of_tile(
    tile: &Tile,
    own: &[Gradients],
    next: [Option<Beside<'_>>; SIDES],
    out: &mut Vec<SeparationBound>,
) {
    up_to_avx2(Joining {
        tile,
        own,
        next,
        out,
    });
}

/// The arguments of [`bounds_of_tile`].
struct Joining<'a> {
    tile: &'a Tile,
    own: &'a [Gradients],
    next: [Option<Beside<'a>>; SIDES],
    out: &'a mut Vec<SeparationBound>,
}

impl Kernel for Joining<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Lanes>(self, set: S) {
        let (own, next, out) = (self.own, self.next, self.out);
        out.clear();
        for level in 0..LEVELS {
            let (side, first) = ((TILE >> level) as usize, first_of_level(level));
            for block in 0..side * side {
                if !self.tile.whole[first + block] {
                    out.push(NO_BOUND);
                    continue;
                }
                let (x, y) = (block % side, block / side);
                let mut bounds = own[first + block];
                for (right, above) in [(1, 0), (0, 1), (1, 1)] {
                    let (i, j) = (x + right, y + above);
                    let cell = match (i == side, j == side) {
                        (false, false) => Some(&own[first + j * side + i]),
                        (true, false) => next[0].map(|cells| cells.cell(0, level, j)),
                        (false, true) => next[1].map(|cells| cells.cell(1, level, i)),
                        (true, true) => next[2].map(|cells| cells.cell(2, level, 0)),
                    };
                    if let Some(cell) = cell {
                        bounds.join(cell);
                    }
                }
                out.push(bounds.bound(set));
            }
        }
    }
}

/// The functions of this file in instructions of AVX2.
#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::__m256;

    use pulp::cast;
    use pulp::x86::V3;

    use super::{Ends, STRETCH, Slack, deviating};

    #[inline(always)]
    pub(super) fn bounds(
        set: V3,
        [a, b, c]: [&Ends; 3],
        &[ux, uy, vx, vy]: &[f32; 4],
        slack: Slack,
    ) -> [f32; 16] {
        let avx = set.avx;
        let [entry, share] = slack.shares();
        let (entry, share) = (avx._mm256_set1_ps(entry), avx._mm256_set1_ps(share));
        let a = cast(a.0);
        let (e, f) = (
            avx._mm256_sub_ps(cast(b.0), a),
            avx._mm256_sub_ps(cast(c.0), a),
        );
        let u = avx._mm256_add_ps(
            avx._mm256_mul_ps(e, avx._mm256_set1_ps(ux)),
            avx._mm256_mul_ps(f, avx._mm256_set1_ps(uy)),
        );
        let v = avx._mm256_add_ps(
            avx._mm256_mul_ps(e, avx._mm256_set1_ps(vx)),
            avx._mm256_mul_ps(f, avx._mm256_set1_ps(vy)),
        );
        // The products of the first three of each half, in turn.
        let (uu, vv) = (avx._mm256_mul_ps(u, u), avx._mm256_mul_ps(v, v));
        let (first, third) = (
            avx._mm256_unpacklo_ps(uu, vv),
            avx._mm256_unpackhi_ps(uu, vv),
        );
        let two = avx._mm256_add_ps(first, avx._mm256_permute_ps::<0b01_00_11_10>(first));
        let squares = avx._mm256_add_ps(two, avx._mm256_permute_ps::<0b01_00_01_00>(third));
        let turned = avx._mm256_permute_ps::<0b10_11_00_01>(squares);
        let uv = avx._mm256_mul_ps(u, v);
        let two = avx._mm256_add_ps(
            avx._mm256_permute_ps::<0b00_00_00_00>(uv),
            avx._mm256_permute_ps::<0b01_01_01_01>(uv),
        );
        let uv = avx._mm256_add_ps(two, avx._mm256_permute_ps::<0b10_10_10_10>(uv));
        let uv = avx._mm256_andnot_ps(avx._mm256_set1_ps(-0.0), uv);
        let stretch = avx._mm256_sub_ps(avx._mm256_min_ps(turned, squares), uv);
        let both = avx._mm256_add_ps(turned, squares);
        let size = avx._mm256_add_ps(both, avx._mm256_set1_ps(1.0));
        let stretch = avx._mm256_sub_ps(stretch, avx._mm256_mul_ps(share, size));
        let u = avx._mm256_blend_ps::<0b1000_1000>(u, stretch);
        let starts = avx._mm256_permute2f128_ps::<0x20>(u, v);
        let ends = avx._mm256_permute2f128_ps::<0x31>(u, v);
        let low = avx._mm256_sub_ps(avx._mm256_min_ps(starts, ends), entry);
        let less = avx._mm256_sub_ps(avx._mm256_setzero_ps(), entry);
        let high = avx._mm256_sub_ps(less, avx._mm256_max_ps(starts, ends));
        cast([low, high])
    }

    #[inline(always)]
    pub(super) fn square_of(set: V3, bounds: &[f32; 16]) -> f32 {
        let avx = set.avx;
        let [low, high]: [__m256; 2] = cast(*bounds);
        let half = avx._mm256_mul_ps(avx._mm256_add_ps(low, high), avx._mm256_set1_ps(-0.5));
        let other = avx._mm256_permute2f128_ps::<0x01>(half, half);
        let squares: [f32; 8] = cast(avx._mm256_dp_ps::<0x7f>(half, half));
        let across: [f32; 8] = cast(avx._mm256_dp_ps::<0x7f>(half, other));
        deviating(bounds[STRETCH], squares[0], squares[4], across[0])
    }
}

#[cfg(test)]
mod tests {
    use glam::DVec2;
    use proptest::prelude::*;

    use super::*;
    use crate::collide::cull::charts::{CellRange, NONE};
    use crate::simd::{Plain, by_each_set};

    /// The gradients of a triangle that is half of a unit square at rest.
    fn of_half_square(corners: [DVec3; 3]) -> Gradients {
        let ends = corners.map(|p| {
            let [x, y, z] = p.as_vec3().to_array();
            Ends([x, y, z, 0.0, x, y, z, 0.0])
        });
        let slack = Slack::new(2.0, 1.0).unwrap();
        let [a, b, c] = &ends;
        Gradients {
            bounds: bounds(Plain, [a, b, c], &[1.0, 0.0, 0.0, 1.0], slack),
        }
    }

    /// Gradients of a sheet that bends by up to `angle` either way about an axis in its plane.
    fn bent(angle: f64, axis: DVec2) -> Gradients {
        let mut all = Gradients::NONE;
        for k in -20..=20 {
            let turned = glam::DQuat::from_axis_angle(
                DVec3::new(axis.x, axis.y, 0.0).normalize(),
                angle * f64::from(k) / 20.0,
            );
            let tilted = glam::DQuat::from_euler(glam::EulerRot::XYZ, 0.7, -0.4, 1.1);
            let corners = [DVec3::ZERO, DVec3::X, DVec3::Y].map(|p| tilted * (turned * p));
            all.join(&of_half_square(corners));
        }
        all
    }

    #[test]
    fn a_rigid_sheet_has_a_bound_of_1_and_a_bent_one_about_the_cosine() {
        let found = |angle, axis| f64::from(square_of(Plain, &bent(angle, axis).bounds));
        assert!((found(0.0, DVec2::X) - 1.0).abs() < 1e-4);
        for angle in [0.1f64, 0.3, 0.5, 0.8] {
            for axis in [DVec2::X, DVec2::Y, DVec2::new(1.0, 2.0)] {
                let (found, cosine) = (found(angle, axis), angle.cos());
                let kept = square(bent(angle, axis).bound(Plain));
                assert!(kept <= found.max(0.0) && kept > found - 1.1 / UNITS);
                assert!(found <= cosine * cosine + 1e-5, "{angle}: {found}");
                assert!(
                    found >= cosine * cosine - 0.35 * angle * angle,
                    "{angle}: {found}"
                );
            }
        }
        assert_eq!(bent(1.6, DVec2::X).bound(Plain), NO_BOUND);
    }

    /// A tile that is one triangle, half of a unit square at rest, in its first cell.
    fn tile() -> Tile {
        let part = TileTriangle {
            corners: [0, 1, 2],
            cells: CellRange::new([0; 4]),
            inverse: [1.0, 0.0, 0.0, 1.0],
        };
        Tile {
            vertices: vec![0, 1, 2].into(),
            triangles: TileTriangles::Few(vec![part].into()),
            steepest: 1.0,
            whole: vec![true; BLOCKS],
            next: [NONE; 3],
        }
    }

    fn separation_bounds_of(x: &[DVec3], v: &[DVec3]) -> Vec<SeparationBound> {
        let (mut ends, mut cells, mut out) = (Vec::new(), Vec::new(), Vec::new());
        gradients(&tile(), (x, v, 1.0), &mut ends, &mut cells);
        bounds_of_tile(&tile(), &cells, [None; SIDES], &mut out);
        out
    }

    #[test]
    fn an_empty_block_has_no_bound() {
        let rest = [DVec3::ZERO, DVec3::X, DVec3::Y];
        let still = [DVec3::ZERO; 3];
        let found = separation_bounds_of(&rest, &still);
        // Less than 1 by no more than a unit; where there is no triangle nothing is known.
        assert!(found[0] > 198 && found[1] == NO_BOUND, "{found:?}");
        assert_eq!(Gradients::NONE.bound(Plain), NO_BOUND);
        for far in [f64::NAN, f64::INFINITY, 1e200, 1e30, 1e6] {
            for corner in 0..3 {
                let mut moved = rest;
                moved[corner] = DVec3::X * far;
                let all = [
                    separation_bounds_of(&moved, &still),
                    separation_bounds_of(&rest, &moved),
                ];
                assert!(all.concat().iter().all(|&f| f == NO_BOUND), "{far}");
            }
        }
    }

    fn point(scale: f64) -> impl Strategy<Value = DVec3> {
        (-scale..scale, -scale..scale, -scale..scale).prop_map(|(x, y, z)| DVec3::new(x, y, z))
    }

    #[derive(Clone, Copy)]
    struct Bounding<'a>([&'a Ends; 3], &'a [f32; 4], Slack);

    impl Kernel for Bounding<'_> {
        type Output = ([f32; 16], f32);

        #[inline(always)]
        fn run<S: Lanes>(self, set: S) -> ([f32; 16], f32) {
            let bounds = bounds(set, self.0, self.1, self.2);
            (bounds, square_of(set, &bounds))
        }
    }

    proptest! {
        #[test]
        fn each_instruction_set_has_the_same_gradients(
            corners in prop::array::uniform3(prop::array::uniform8(-9.0..9.0_f32)),
            inverse in prop::array::uniform4(-9.0..9.0_f32),
            farthest in 1.0..1e3_f64,
        ) {
            // The last of each end is zero.
            let corners = corners.map(|[a, b, c, _, d, e, f, _]| Ends([a, b, c, 0.0, d, e, f, 0.0]));
            let [a, b, c] = &corners;
            let slack = Slack::new(farthest, 18.0).unwrap();
            let all = by_each_set(Bounding([a, b, c], &inverse, slack));
            let (plain, square) = all[0];
            for (found, found_square) in all {
                for k in (0..16).filter(|k| *k != 7 && *k != 11 && *k != 15) {
                    prop_assert_eq!(plain[k].to_bits(), found[k].to_bits(), "{}", k);
                }
                prop_assert_eq!(square.to_bits(), found_square.to_bits());
            }
        }

        /// The bounds against gradients in f64, of triangles of any shape anywhere in a tile.
        #[test]
        fn bounds_hold_what_they_bound(
            at in point(20.0), moved in point(1.0),
            corners in prop::array::uniform3(point(2.0)),
            end in prop::array::uniform3(point(2.0)),
            columns in prop::array::uniform4(-3.0..3.0_f64),
            size in -4..4_i32,
        ) {
            let size = 10f64.powi(size);
            let (start, end) = (corners.map(|p| (at + p) * size), end.map(|p| (at + moved + p) * size));
            let columns = columns.map(|entry| entry / size);
            let all = start.iter().chain(&end);
            let farthest = all.fold(0.0_f64, |far, p| far.max(p.abs().max_element()));
            let sum = |k: usize| columns[k].abs() + columns[k + 1].abs();
            let slack = Slack::new(farthest, sum(0).max(sum(2))).unwrap();
            let ends = [0, 1, 2].map(|k| {
                let [p, q] = [start[k], end[k]].map(|p| p.as_vec3());
                Ends([p.x, p.y, p.z, 0.0, q.x, q.y, q.z, 0.0])
            });
            let [a, b, c] = &ends;
            let found = bounds(Plain, [a, b, c], &columns.map(|entry| entry as f32), slack);
            for [a, b, c] in [start, end] {
                let (e, f) = (b - a, c - a);
                let [u, v] = [0, 2].map(|k| e * columns[k] + f * columns[k + 1]);
                for k in 0..3 {
                    for (entry, at) in [(u[k], k), (v[k], 4 + k)] {
                        prop_assert!(f64::from(found[at]) <= entry);
                        prop_assert!(f64::from(found[at + 8]) <= -entry);
                    }
                }
                let stretch = u.dot(u).min(v.dot(v)) - u.dot(v).abs();
                prop_assert!(f64::from(found[STRETCH]) <= stretch);
            }
        }

        /// The proven square against one computed in f64.
        #[test]
        fn a_proven_bound_is_no_more_than_the_exact_one(bounds in prop::array::uniform16(-2.0..2.0_f32)) {
            let half = |k: usize| -0.5 * (f64::from(bounds[k]) + f64::from(bounds[k + 8]));
            let [u, v] = [0, 4].map(|k| DVec3::new(half(k), half(k + 1), half(k + 2)));
            let (uu, vv, uv) = (u.dot(u), v.dot(v), u.dot(v));
            let deviation = 0.5 * (uu + vv + ((uu - vv) * (uu - vv) + 4.0 * uv * uv).sqrt());
            let exact = f64::from(bounds[STRETCH]) - deviation;
            let found = f64::from(square_of(Plain, &bounds));
            prop_assert!(found <= exact && found > exact - 1e-4, "{found} {exact}");
        }
    }
}
