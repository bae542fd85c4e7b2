//! How a distance is sampled: block by block, from the triangles near each block alone.
//!
//! A search of the tree for each sample would spend most of its time on the way down to the few
//! triangles around it. Here a block gathers them once. Its samples, a few at a time, then look at
//! them in the order of bounds below their distances, up to the first bound that is above the
//! least distance so far. So each sample is the least of the distances of all triangles as they are
//! computed, to the bit, in whatever order blocks are made.
//!
//! Blocks near the surface are found from the surface too: each triangle marks those that its box
//! is near, after it was cut into pieces no longer than half a block, for boxes of long triangles
//! are much larger than they. The distance of all other blocks is bounded by a transform of the
//! grid of blocks, one axis after the other: the square of a gap between boxes is a sum over axes.

use glam::DVec3;

use super::{Enclosed, LEAST_SHARE_OF_FAR, Layout, all_below, largest_error, trilinear};
use crate::parallel;

/// The nodes of a block along each axis that look at its triangles together.
const TOGETHER: u32 = 3;
/// The share of a length by which bounds are kept apart from what they bound, for rounding.
const ROUNDING: f64 = 1e-10;
/// The rounding of the sides of cells when it is asked whether two places can be on two sides.
const BETWEEN: f64 = 1.001;

/// The samples of a block, and the largest error that was found in the middle of its cells at the
/// surface, in m.
pub(super) struct Block {
    pub(super) samples: Vec<f32>,
    pub(super) error: f64,
}

/// Bounds below the distances from all blocks, in m with their signs, and the numbers of those that
/// want samples, ascending.
pub(super) fn blocks(of: &Enclosed, layout: &Layout) -> (Vec<f32>, Vec<u32>) {
    let Marks { near, touched } = mark(of, layout);
    let least = gaps(&touched, layout);
    let across = layout.blocks[0] as usize;
    let row = |number: usize| {
        let mut before: Option<f64> = None;
        let of_block = |number: usize| {
            if near[number] {
                before = None;
                return 0.0;
            }
            // There is no surface in this block nor in the one before: they are on one side.
            let sign = before.unwrap_or_else(|| {
                let middle =
                    layout.node(layout.first_cell(number)) + DVec3::splat(0.5 * layout.block());
                if of.contains(middle) { -1.0 } else { 1.0 }
            });
            before = Some(sign);
            let away = (f64::from(least[number]) * layout.block()).max(layout.band);
            (sign * away * LEAST_SHARE_OF_FAR) as f32
        };
        let row = number * across..(number + 1) * across;
        row.map(of_block).collect::<Vec<f32>>()
    };
    let far = parallel::map(layout.count() / across, row).concat();
    let numbers = (0..).zip(near).filter(|(_, near)| *near);
    (far, numbers.map(|(number, _)| number).collect())
}

/// The blocks that the surface is near.
struct Marks {
    /// Whether anything of it may be within the band of a block.
    near: Vec<bool>,
    /// Whether anything of it may be in a block.
    touched: Vec<bool>,
}

fn mark(of: &Enclosed, layout: &Layout) -> Marks {
    let count = layout.count();
    let mut marks = Marks {
        near: vec![false; count],
        touched: vec![false; count],
    };
    let longest = 0.5 * layout.block();
    let mut stack: Vec<[DVec3; 3]> = Vec::new();
    for t in 0..of.triangle_count() {
        stack.push(of.corners(t));
        while let Some([a, b, c]) = stack.pop() {
            let [low, high] = [a.min(b).min(c), a.max(b).max(c)];
            if (high - low).max_element() <= longest {
                mark_box(layout, [low, high], &mut marks);
                continue;
            }
            // Cut in the middle of its longest side.
            let lengths = [(b - a), (c - b), (a - c)].map(DVec3::length_squared);
            let [a, b, c] = if lengths[0] >= lengths[1].max(lengths[2]) {
                [a, b, c]
            } else if lengths[1] >= lengths[2] {
                [b, c, a]
            } else {
                [c, a, b]
            };
            let middle = a.midpoint(b);
            stack.extend([[a, middle, c], [middle, b, c]]);
        }
    }
    marks
}

/// Marks the blocks that a box is near.
fn mark_box(layout: &Layout, [low, high]: [DVec3; 2], marks: &mut Marks) {
    let block = layout.block();
    let slack = DVec3::splat(ROUNDING * (layout.largest() + block));
    let (low, high) = (low - slack - layout.low, high + slack - layout.low);
    let band = layout.band;
    let index = |x: f64, k: usize| {
        let last = layout.blocks[k] as usize - 1;
        // Places outside of the grid saturate.
        ((x / block).floor() as usize).min(last)
    };
    let range = |k: usize, more: f64| index(low[k] - more, k)..=index(high[k] + more, k);
    let gap = |k: usize, at: usize| {
        let first = at as f64 * block;
        (first - high[k]).max(low[k] - (first + block)).max(0.0)
    };
    let [across, deep, _] = layout.blocks.map(|count| count as usize);
    for z in range(2, band) {
        let of_z = gap(2, z).powi(2);
        for y in range(1, band) {
            let of_y = of_z + gap(1, y).powi(2);
            let row = (z * deep + y) * across;
            for x in range(0, band) {
                let square = of_y + gap(0, x).powi(2);
                if square <= band * band {
                    marks.near[row + x] = true;
                    marks.touched[row + x] |= square == 0.0;
                }
            }
        }
    }
}

/// The gaps between each block and the nearest one that is touched, in sides of a block.
fn gaps(touched: &[bool], layout: &Layout) -> Vec<f32> {
    let none = |touched: &bool| if *touched { 0.0 } else { f32::INFINITY };
    let mut squares: Vec<f32> = touched.iter().map(none).collect();
    let counts = layout.blocks.map(|count| count as usize);
    let mut line = Vec::new();
    for (axis, &length) in counts.iter().enumerate() {
        let stride: usize = counts[..axis].iter().product();
        for first in 0..squares.len() {
            if !(first / stride).is_multiple_of(length) {
                continue;
            }
            line.clear();
            line.extend((0..length).map(|k| squares[first + k * stride]));
            if line.iter().all(|square| square.is_infinite()) {
                continue;
            }
            for at in 0..length {
                let mut least = f32::INFINITY;
                for away in 0..length {
                    let gap = away.saturating_sub(1) as f32;
                    if gap * gap >= least {
                        break;
                    }
                    for other in [at.checked_sub(away), Some(at + away)] {
                        if let Some(square) = other.and_then(|other| line.get(other)) {
                            least = least.min(gap * gap + square);
                        }
                    }
                }
                squares[first + at * stride] = least;
            }
        }
    }
    // A grid is around a surface, and so some block is touched.
    let root = |square: f32| {
        if square.is_finite() {
            square.sqrt()
        } else {
            0.0
        }
    };
    squares.into_iter().map(root).collect()
}

/// The triangles near a block.
struct Around<'m> {
    of: &'m Enclosed,
    discs: Vec<Disc>,
    /// The length in m by which bounds are kept apart from what they bound.
    slack: f64,
}

/// A disc in the plane of a triangle, with the triangle in it.
struct Disc {
    triangle: u32,
    center: DVec3,
    /// The unit normal vector, or none of a triangle without area: its disc counts as a ball.
    normal: DVec3,
    radius: f64,
}

impl Disc {
    fn new(triangle: u32, [a, b, c]: [DVec3; 3]) -> Self {
        let center = (a + b + c) / 3.0;
        let away = [a, b, c].map(|p| p.distance_squared(center));
        Self {
            triangle,
            center,
            normal: (b - a).cross(c - a).normalize_or_zero(),
            radius: away.into_iter().fold(0.0, f64::max).sqrt(),
        }
    }

    /// A bound below the square of its distance from a place, unless it is beyond a distance by the
    /// ball around it.
    #[inline]
    fn square_from(&self, p: DVec3, most: f64) -> Option<f64> {
        let from = p - self.center;
        let (square, reach) = (from.length_squared(), most + self.radius);
        if square > reach * reach {
            return None;
        }
        let height = from.dot(self.normal);
        let aside = (square - height * height).max(0.0).sqrt();
        let beyond = (aside - self.radius).max(0.0);
        Some(height * height + beyond * beyond)
    }
}

impl<'m> Around<'m> {
    fn new(of: &'m Enclosed, layout: &Layout, number: usize) -> Self {
        let low = layout.node(layout.first_cell(number));
        let high = low + DVec3::splat(layout.block());
        let slack = ROUNDING * (layout.largest() + layout.block());
        let mut triangles = Vec::new();
        of.triangles_within([low, high], layout.most + slack, &mut triangles);
        let discs = triangles.into_iter().map(|t| Disc::new(t, of.corners(t)));
        Self {
            of,
            discs: discs.collect(),
            slack,
        }
    }

    /// Lowers a distance to that of a triangle, given by its place. Tells whether it was more.
    #[inline]
    fn lower(&self, p: DVec3, place: usize, least: &mut f64) -> bool {
        let (disc, most) = (&self.discs[place], *least + self.slack);
        if disc
            .square_from(p, most)
            .is_none_or(|square| square > most * most)
        {
            return false;
        }
        let distance = self.of.distance_of(disc.triangle, p);
        let is_less = distance < *least;
        if is_less {
            *least = distance;
        }
        is_less
    }

    /// The distances of the nodes of a block, up to the most that samples hold.
    fn distances(&self, layout: &Layout, number: usize) -> Vec<f64> {
        let (first, row) = (layout.first_cell(number), layout.side + 1);
        let mut distances = vec![layout.most; layout.per_block()];
        let parts = row.div_ceil(TOGETHER);
        let mut near: Vec<(f64, usize)> = Vec::new();
        for part in all_below(parts) {
            let from = part.map(|k| k * TOGETHER);
            let to = part.map(|k| ((k + 1) * TOGETHER).min(row) - 1);
            let node = |at: [u32; 3]| layout.node(std::array::from_fn(|k| first[k] + at[k]));
            let middle = node(from).midpoint(node(to));
            let radius = middle.distance(node(from));
            let mut of_middle = layout.most + radius + self.slack;
            let (far, mut guess) = (of_middle, None);
            for place in 0..self.discs.len() {
                if self.lower(middle, place, &mut of_middle) {
                    guess = Some(place);
                }
            }
            if of_middle >= far {
                continue;
            }
            // The triangles that can be nearest to a node are within that of the middle.
            let within = far.min(of_middle + 2.0 * radius) + self.slack;
            near.clear();
            for (place, disc) in self.discs.iter().enumerate() {
                if let Some(square) = disc.square_from(middle, within)
                    && square <= within * within
                {
                    near.push((square.sqrt(), place));
                }
            }
            near.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            for z in from[2]..=to[2] {
                for y in from[1]..=to[1] {
                    for x in from[0]..=to[0] {
                        let p = node([x, y, z]);
                        let beside = p.distance(middle) + self.slack;
                        let mut least = layout.most;
                        if let Some(guess) = guess {
                            self.lower(p, guess, &mut least);
                        }
                        for &(bound, place) in &near {
                            if bound > least + beside {
                                break;
                            }
                            if self.lower(p, place, &mut least) {
                                guess = Some(place);
                            }
                        }
                        distances[((z * row + y) * row + x) as usize] = least;
                    }
                }
            }
        }
        distances
    }
}

/// The samples of a block.
pub(super) fn block(of: &Enclosed, layout: &Layout, number: usize) -> Vec<f32> {
    signed(&Around::new(of, layout, number), layout, number)
}

/// The samples of a block, with their error.
pub(super) fn block_with_error(of: &Enclosed, layout: &Layout, number: usize) -> Block {
    let around = Around::new(of, layout, number);
    let samples = signed(&around, layout, number);
    let error = largest_found(&around, layout, number, &samples);
    Block { samples, error }
}

fn signed(around: &Around<'_>, layout: &Layout, number: usize) -> Vec<f32> {
    let (first, row) = (layout.first_cell(number), layout.side as usize + 1);
    let mut found = around.distances(layout, number);
    let steps = [1, row, row * row];
    for (place, at) in all_below(layout.side + 1).enumerate() {
        let distance = found[place];
        // Where two neighbours are too far for a surface between them they are on one side.
        let before = (0..3).filter(|&k| at[k] > 0);
        let mut before = before.map(|k| found[place - steps[k]]);
        let known = before.find(|before| before.abs() + distance > BETWEEN * layout.cell);
        let inside = known.map_or_else(
            || {
                let p = layout.node(std::array::from_fn(|k| first[k] + at[k]));
                around.of.contains(p)
            },
            |known| known < 0.0,
        );
        if inside {
            found[place] = -distance;
        }
    }
    found.into_iter().map(|distance| distance as f32).collect()
}

/// The largest error in the middle of the cells of a block at the surface, in m.
fn largest_found(around: &Around<'_>, layout: &Layout, number: usize, samples: &[f32]) -> f64 {
    let (first, row) = (layout.first_cell(number), layout.side as usize + 1);
    let most = largest_error(layout.cell);
    let mut largest = 0.0_f64;
    for cell in all_below(layout.side) {
        let [x, y, z] = cell.map(|at| at as usize);
        let place = (z * row + y) * row + x;
        let corners = std::array::from_fn(|k| {
            let at = place + (k & 1) + (k >> 1 & 1) * row + (k >> 2) * row * row;
            f64::from(samples[at])
        });
        let found = trilinear(&corners, DVec3::splat(0.5));
        if found.abs() > layout.cell {
            continue;
        }
        let at: [u32; 3] = std::array::from_fn(|k| first[k] + cell[k]);
        let middle = layout.node(at) + DVec3::splat(0.5 * layout.cell);
        let mut distance = found.abs() + 1.01 * most;
        for near in 0..around.discs.len() {
            around.lower(middle, near, &mut distance);
        }
        // The other side is too far from what was found to err that much.
        let inside = match found.abs() + distance > 1.01 * most {
            true => found < 0.0,
            false => around.of.contains(middle),
        };
        let exact = if inside { -distance } else { distance };
        largest = largest.max((found - exact).abs());
    }
    largest
}
