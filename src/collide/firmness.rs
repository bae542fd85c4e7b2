//! How firmly a piece of cloth keeps its points apart: the bound by which self-collision tests are left out.
//!
//! Take a block of a chart ([`super::charts`]) that is whole, `f` the motion of its points, piecewise linear with
//! gradients `F`, and a linear map `A`. If at the start and at the end of the step, in every triangle and for every
//! unit vector `u`, `|F u|² ≥ s` and `|F u − A u|² ≤ e`, then for any two points of the block, at any time of the
//! step,
//!
//! ```text
//! |f(p) − f(q)| ≥ √(s − e) |p − q|
//! ```
//!
//! with `|p − q|` their distance in the chart. For `2 F u·A u = |F u|² + |A u|² − |F u − A u|² ≥ s − e + |A u|²`, which is at
//! least `2 √(s − e) |A u|`; this holds for gradients between start and end too, as they are in between and it is
//! linear in `F`; and `f(p) − f(q)` is the integral of `F (p − q)` along the segment from `q` to `p`, which lies in the
//! block. So points come no closer than `√(s − e)`, the *firmness*, times their distance at rest.
//!
//! This stands for the normal cones and the contour condition of [VM94] and [Pro97]: where normals differ by up to α
//! and nothing else happens, `s − e` is about cos² α. But it also bounds distances, which contacts within reach need and
//! cones do not; it bounds all that lies between the start and the end of the step; and where the rest shape is convex
//! there is no contour to test.
//!
//! `A` is the middle of a box around all gradients, which is refitted like a volume: boxes of cells, then of the larger
//! cells above them, a tile at a time.
//!
//! Blocks reach beyond their tile by one cell of their level, the largest by a whole tile. So the firmness of a tile takes the gradients of
//! its own triangles and, of those of the tiles beside it, what bounds cells along the border: 67 cells, which whoever has made them
//! sends to whoever needs them.
//!
//! Ranks send each other the firmness of tiles, so it has to be short: a byte for each block, rounded down. It is as short on
//! one rank, for the same tests to be made on any number of them.
//!
//! * \[VM94\] Volino, Magnenat-Thalmann: Efficient self-collision detection on smoothly discretized surface animations
//!   using geometrical shape regularity.
//! * \[Pro97\] Provot: Collision and self-collision handling in cloth model dedicated to design garments.

use glam::{DVec2, DVec3};

use super::charts::{BLOCKS, LEVELS, TILE, Tile, first_of_level};
use super::kdop::outwards;
use super::width::{Width, Work, widest};

/// A squared firmness in units of 1/200, or less: up to 1.275, that of cloth that is stretched by an eighth.
pub(super) type Firmness = u8;

/// Firmness of what is not whole: points there may be anywhere.
const NOT_FIRM: Firmness = 0;
/// Units of a squared firmness of 1.
const UNITS: f64 = 200.0;

/// The squared firmness that a number of units stands for.
#[inline]
pub(super) fn square(firmness: Firmness) -> f64 {
    f64::from(firmness) / UNITS
}

/// The largest firmness that is not above a square from 0 to 1.
pub(super) fn not_above(square: f64) -> Firmness {
    (square * UNITS) as Firmness
}

/// Tiles beside one that its firmness looks at: to the right, above, and right above.
pub(super) const SIDES: usize = 3;
/// How many of their cells it looks at, of all levels: a column, a row, a corner.
pub(super) const BESIDE: [usize; SIDES] = [LINE, LINE, LEVELS as usize];
/// Cells along a side of a tile, of all levels.
const LINE: usize = 2 * TILE as usize - 1;

/// Where the cells of a level begin among those along a side of a tile.
fn first_of_line(level: u32) -> usize {
    2 * (TILE - (TILE >> level)) as usize
}

/// Where the least squared stretch is kept.
const STRETCH: usize = 3;
/// What is kept nowhere among the least entries, and among all.
const UNUSED: usize = 7;

/// Bounds of gradients: the least of each entry, of the two columns in turn, and of the squared stretch, which stands behind the first
/// column; then the negated greatest of each entry at the same places. All are f32 rounded downwards, so that joining is a minimum.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(super) struct Gradients {
    bounds: [f32; 16],
}

/// What a loop over four numbers is done for, in one vector.
#[inline(always)]
fn each<T: Copy + Default, A: Copy, B: Copy>(
    a: [A; 4],
    b: [B; 4],
    of: impl Fn(A, B) -> T,
) -> [T; 4] {
    let mut all = [T::default(); 4];
    for k in 0..4 {
        all[k] = of(a[k], b[k]);
    }
    all
}

impl Gradients {
    const NONE: Self = Self {
        bounds: [f32::INFINITY; 16],
    };
    /// Numbers that make up bounds.
    pub(super) const NUMBERS: usize = 13;

    /// Where they are kept.
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
    pub(super) fn numbers(&self) -> [f32; Self::NUMBERS] {
        Self::PLACES.map(|at| self.bounds[at])
    }

    /// Those that are made up of these numbers.
    pub(super) fn from_numbers(numbers: [f32; Self::NUMBERS]) -> Self {
        let mut bounds = Self::NONE.bounds;
        for (at, number) in Self::PLACES.into_iter().zip(numbers) {
            bounds[at] = number;
        }
        Self { bounds }
    }

    /// Those of a triangle at the start and at the end of a step.
    #[inline(always)]
    fn of(inverse: [DVec2; 2], start: [DVec3; 3], end: [DVec3; 3]) -> Self {
        let columns = |corners: [DVec3; 3]| {
            // No `map`: what it calls may be compiled for any processor.
            let four = |p: DVec3| [p.x, p.y, p.z, 0.0];
            let [a, b, c] = [four(corners[0]), four(corners[1]), four(corners[2])];
            let (e, f) = (each(b, a, |b, a| b - a), each(c, a, |c, a| c - a));
            let column = |of: DVec2| each(e, f, |e, f| e * of.x + f * of.y);
            let [mut u, v] = [column(inverse[0]), column(inverse[1])];
            let dot = |a: [f64; 4], b: [f64; 4]| a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
            // Gershgorin's bound of the smaller eigenvalue of FᵀF.
            let stretch = dot(u, u).min(dot(v, v)) - dot(u, v).abs();
            // Where that overflows nothing is known.
            u[STRETCH] = if stretch.is_finite() {
                stretch
            } else {
                f64::NEG_INFINITY
            };
            [u, v]
        };
        let (start, end) = (columns(start), columns(end));
        let mut bounds = [0.0; 16];
        for column in 0..2 {
            // Comparisons instead of `min`, which minds NaN; where there is any, the stretch is not known.
            let low = each(start[column], end[column], |s, e| if e < s { e } else { s });
            let high = each(start[column], end[column], |s, e| if e > s { e } else { s });
            for k in 0..4 {
                bounds[4 * column + k] = low[k] as f32;
                bounds[8 + 4 * column + k] = -high[k] as f32;
            }
        }
        for bound in &mut bounds {
            *bound = outwards(*bound);
        }
        Self { bounds }
    }

    #[inline(always)]
    fn join(&mut self, other: &Self) {
        for (mine, theirs) in self.bounds.iter_mut().zip(&other.bounds) {
            *mine = if *theirs < *mine { *theirs } else { *mine };
        }
    }

    /// The square of the firmness, or less; negative or no number if there is none.
    #[inline(always)]
    fn square(&self) -> f64 {
        let at = |k: usize| f64::from(self.bounds[k]);
        let half = |k: usize| -0.5 * (at(k) + at(k + 8));
        let (mut uu, mut vv, mut uv) = (0.0, 0.0, 0.0);
        for k in 0..3 {
            let (u, v) = (half(k), half(k + 4));
            uu += u * u;
            vv += v * v;
            uv += u * v;
        }
        // What is within the box deviates from its middle by no more than the matrix of its half widths stretches.
        let deviation = 0.5 * (uu + vv + ((uu - vv) * (uu - vv) + 4.0 * uv * uv).sqrt());
        at(STRETCH) - deviation
    }

    /// The firmness.
    #[inline(always)]
    fn firmness(&self) -> Firmness {
        // The conversion rounds towards zero and makes zero of what is below it or no number. Infinite bounds give either.
        (self.square() * (1.0 - f64::from(f32::EPSILON)) * UNITS) as Firmness
    }
}

/// Bounds of the gradients in each cell of a tile, level by level, for a step of `dt`.
pub(super) fn gradients(
    tile: &Tile,
    inverse: impl Fn(u32) -> [DVec2; 2],
    corners: impl Fn(u32) -> [u32; 3],
    motion: (&[DVec3], &[DVec3], f64),
    out: &mut Vec<Gradients>,
) {
    widest(Making {
        tile,
        inverse,
        corners,
        motion,
        out,
    });
}

/// The arguments of [`gradients`].
struct Making<'a, I, C> {
    tile: &'a Tile,
    inverse: I,
    corners: C,
    motion: (&'a [DVec3], &'a [DVec3], f64),
    out: &'a mut Vec<Gradients>,
}

impl<I: Fn(u32) -> [DVec2; 2], C: Fn(u32) -> [u32; 3]> Work for Making<'_, I, C> {
    type Output = ();

    #[inline(always)]
    fn run<W: Width>(self, _: W) {
        let (out, (x, v, dt)) = (self.out, self.motion);
        out.clear();
        out.resize(BLOCKS, Gradients::NONE);
        for &(triangle, [x0, y0, x1, y1]) in &self.tile.triangles {
            let [a, b, c] = (self.corners)(triangle);
            let way = |i: u32| (x[i as usize], x[i as usize] + v[i as usize] * dt);
            let [a, b, c] = [way(a), way(b), way(c)];
            let (start, end) = ([a.0, b.0, c.0], [a.1, b.1, c.1]);
            let bounds = Gradients::of((self.inverse)(triangle), start, end);
            for y in y0..=y1 {
                let row = usize::from(y) * TILE as usize;
                for cell in &mut out[row + usize::from(x0)..=row + usize::from(x1)] {
                    cell.join(&bounds);
                }
            }
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

/// Of the gradients in the cells of a tile, those that the firmness of another looks at, on that side of which this one lies.
pub(super) fn beside(side: usize, cells: &[Gradients], out: &mut Vec<Gradients>) {
    out.clear();
    for level in 0..LEVELS {
        let (row, first) = ((TILE >> level) as usize, first_of_level(level));
        match side {
            0 => out.extend((0..row).map(|y| cells[first + y * row])),
            1 => out.extend_from_slice(&cells[first..first + row]),
            _ => out.push(cells[first]),
        }
    }
}

/// The squared firmness of each block of a tile, from the gradients of its cells and of those [`beside`] it, on the sides on which there
/// are any.
pub(super) fn firmness(
    tile: &Tile,
    own: &[Gradients],
    next: [Option<&[Gradients]>; SIDES],
    out: &mut Vec<Firmness>,
) {
    widest(Joining {
        tile,
        own,
        next,
        out,
    });
}

/// The arguments of [`firmness`].
struct Joining<'a> {
    tile: &'a Tile,
    own: &'a [Gradients],
    next: [Option<&'a [Gradients]>; SIDES],
    out: &'a mut Vec<Firmness>,
}

impl Work for Joining<'_> {
    type Output = ();

    #[inline(always)]
    fn run<W: Width>(self, _: W) {
        let (own, next, out) = (self.own, self.next, self.out);
        out.clear();
        for level in 0..LEVELS {
            let (side, first) = ((TILE >> level) as usize, first_of_level(level));
            let line = first_of_line(level);
            for block in 0..side * side {
                if !self.tile.whole[first + block] {
                    out.push(NOT_FIRM);
                    continue;
                }
                let (x, y) = (block % side, block / side);
                let mut bounds = own[first + block];
                for (right, above) in [(1, 0), (0, 1), (1, 1)] {
                    let (i, j) = (x + right, y + above);
                    let cell = match (i == side, j == side) {
                        (false, false) => Some(&own[first + j * side + i]),
                        (true, false) => next[0].map(|cells| &cells[line + j]),
                        (false, true) => next[1].map(|cells| &cells[line + i]),
                        (true, true) => next[2].map(|cells| &cells[level as usize]),
                    };
                    if let Some(cell) = cell {
                        bounds.join(cell);
                    }
                }
                out.push(bounds.firmness());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            all.join(&Gradients::of([DVec2::X, DVec2::Y], corners, corners));
        }
        all
    }

    #[test]
    fn a_rigid_sheet_is_firm_and_a_bent_one_about_as_the_cosine() {
        assert!((bent(0.0, DVec2::X).square() - 1.0).abs() < 1e-5);
        for angle in [0.1f64, 0.3, 0.5, 0.8] {
            for axis in [DVec2::X, DVec2::Y, DVec2::new(1.0, 2.0)] {
                let (found, cosine) = (bent(angle, axis).square(), angle.cos());
                let kept = square(bent(angle, axis).firmness());
                assert!(kept <= found.max(0.0) && kept > found - 1.1 / UNITS);
                assert!(found <= cosine * cosine + 1e-5, "{angle}: {found}");
                assert!(
                    found >= cosine * cosine - 0.35 * angle * angle,
                    "{angle}: {found}"
                );
            }
        }
        assert_eq!(bent(1.6, DVec2::X).firmness(), NOT_FIRM);
    }

    #[test]
    fn nothing_is_not_firm() {
        assert_eq!(Gradients::NONE.firmness(), NOT_FIRM);
        let at = |x: f64| [DVec3::ZERO, DVec3::X * x, DVec3::Y];
        for x in [f64::NAN, f64::INFINITY, 1e200] {
            let bounds = Gradients::of([DVec2::X, DVec2::Y], at(1.0), at(x));
            assert_eq!(bounds.firmness(), NOT_FIRM, "{x}");
        }
    }
}
