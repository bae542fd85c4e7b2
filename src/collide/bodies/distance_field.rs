//! The signed distance from a closed mesh, sampled on a sparse grid of blocks \[Bri03, §6.1\].
//!
//! A figure of many triangles has a surface that is dense for the cloth on it. Its signed distance
//! on a grid answers how far a vertex is from it, and in which direction, by eight numbers,
//! whatever the number of triangles. A whole grid of n³ samples takes too much memory, and only
//! those near the surface are asked for. So the grid is cut into blocks of f³ cells, with f =
//! n^¼, and of the c³ = n^(9/4) blocks those near the surface hold samples. A block elsewhere
//! holds one number: a bound below the distance of all of it, with its sign.
//!
//! Samples are distances from the nearest triangle, negative where the mesh winds around them
//! ([`Enclosed`]), rounded to single precision, and no more than some cells beyond what is within
//! reach. A block has the samples on all of its sides, so that a cell has its eight corners in one
//! block; neighbours have the same bits on the side that they share, and the interpolant is
//! continuous. `sampling` says how they are found. The samples of a mesh that keeps its shape are
//! found before a run, and those of one that deforms when they are asked for.
//!
//! **Error.** Signed distance is a function of slope 1 at most. The trilinear interpolant has
//! weights wᵢ with Σ wᵢ xᵢ = x, so it errs by at most Σ wᵢ |xᵢ − x| ≤ √(Σ wᵢ
//! |xᵢ − x|²) = h √(Σ tₖ (1 − tₖ)) ≤ (√3 / 2) h, for cells of side h and t in the
//! cell, by Jensen's inequality. That is [`DistanceField::bound`], to which rounding to single
//! precision adds 2⁻²⁴ of a sample. Where the surface is smooth, with curvature κ, it errs by
//! some κ h² / 4; the largest error that was found in the middle of cells at the surface is
//! [`DistanceField::error`].
//!
//! **Slope.** A derivative of the interpolant along an axis is a mean of differences of neighbours,
//! which are h at most: the slope is √3 or less. Along a straight way through a cell the
//! interpolant is a polynomial of degree three. It is linear in each coordinate, so its Bernstein
//! coefficients are means of its values at points whose coordinates are those of the beginning or
//! of the end: none of these coefficients below a bound means that all of the way is above it.
//!
//! **Normal.** The gradient of the interpolant jumps between cells. The normal is the direction of
//! its central difference over half a cell to each side, which is the mean of the gradient over a
//! cell's length, and continuous.
//!
//! * \[Bri03\] Bridson: Computational aspects of dynamic surfaces.

use std::sync::{Arc, OnceLock};

use glam::DVec3;
use serde::{Deserialize, Serialize};

use super::enclosed::Enclosed;
use crate::heap_bytes::{HeapBytes, counts_heap};
use crate::mesh::TriMesh;
use crate::parallel;

mod sampling;

/// The signed distance from a mesh where it was placed.
#[derive(Clone, Debug)]
pub struct DistanceField {
    layout: Layout,
    /// A bound below the distance from each block without samples, in m, with the sign of the
    /// distance there.
    far: Vec<f32>,
    /// The number of each block among those with samples, or [`NONE`].
    places: Vec<u32>,
    samples: Samples,
    error: f64,
}

counts_heap!(DistanceField: far, places, samples; without layout, error);

/// The samples of blocks that have them, in m, x first.
#[derive(Clone, Debug)]
enum Samples {
    /// The samples of all, one block after the other.
    All(Vec<f32>),
    /// The samples of each block that was asked for.
    Asked {
        of: Arc<Enclosed>,
        /// The numbers of the blocks.
        numbers: Vec<u32>,
        blocks: Vec<OnceLock<Vec<f32>>>,
    },
}

impl HeapBytes for Samples {
    fn heap_bytes(&self) -> usize {
        match self {
            Self::All(samples) => samples.heap_bytes(),
            Self::Asked {
                of,
                numbers,
                blocks,
            } => of.own_bytes() + numbers.heap_bytes() + blocks.heap_bytes(),
        }
    }
}

/// How a distance is sampled.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sampling {
    /// The side of a cell in m.
    pub cell_m: f64,
    /// The largest error in the middle of cells at the surface, in m.
    pub error_m: f64,
    /// The length in m by which the interpolant errs nowhere.
    pub bound_m: f64,
    /// The blocks of the grid.
    pub blocks: usize,
    /// The blocks that have samples.
    pub sampled_blocks: usize,
    /// The bytes of blocks and samples.
    pub bytes: usize,
    /// The length in m by which interpolation in time may err besides, between the samples of a
    /// body that deforms which were come by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_time_m: Option<f64>,
}

impl Sampling {
    /// The length in m by which the distance errs nowhere, at no time that was come by.
    #[must_use]
    pub fn largest_m(&self) -> f64 {
        self.bound_m + self.in_time_m.unwrap_or(0.0)
    }
}

/// A grid of blocks around a mesh.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Layout {
    /// The corner of the grid, in m.
    low: DVec3,
    /// The side of a cell, in m.
    cell: f64,
    /// The cells of a block along each axis.
    side: u32,
    /// The blocks along each axis.
    blocks: [u32; 3],
    /// The least coordinates of the mesh and the greatest, in m.
    mesh: [DVec3; 2],
    /// The distance in m from the surface up to which blocks have samples.
    band: f64,
    /// The most that a sample says, in m: those that are farther say this.
    most: f64,
    /// The most that [`DistanceField::held`] says, in m.
    held: f64,
}

/// The interpolant as it is continuous everywhere.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Held {
    /// The interpolant in m, but no more than a bound on either side, which blocks without samples
    /// say.
    pub(super) value: f64,
    /// The radius in m around the place in which it has that bound, outside of the body.
    pub(super) free: f64,
}

/// The size of a grid, before its samples are computed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Expected {
    /// All blocks.
    pub blocks: f64,
    /// The bytes of them and of the samples, from the area of the surface.
    pub bytes: f64,
}

impl Expected {
    /// Whether the blocks and the samples of such a grid can be numbered.
    #[must_use]
    pub fn can_be_numbered(&self) -> bool {
        self.blocks < MOST && self.bytes < 4.0 * MOST
    }
}

/// The distance at a point.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Reading {
    /// The interpolant, in m.
    Sampled(f64),
    /// No sample is near: the distance from the mesh is more than this, in m, on the side of its
    /// sign.
    Beyond(f64),
}

/// The place where a straight way comes within reach of the surface.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::collide) struct Near {
    /// The place, in m.
    pub(in crate::collide) point: DVec3,
    /// The distance there, in m.
    pub(in crate::collide) distance: f64,
    /// The unit vector out of the body there.
    pub(in crate::collide) normal: DVec3,
}

/// The mark of a block without samples.
const NONE: u32 = u32::MAX;
/// The most blocks of a grid, and the most samples.
const MOST: f64 = 4e9;
/// A block has this many cells along each axis or more: with fewer, samples on the sides, which
/// neighbours have too, would be most of them.
const LEAST_SIDE: u32 = 4;
/// And no more than this, which is for more cells than can be numbered.
const MOST_SIDE: u32 = 1000;
/// The largest slope of the interpolant: √3, and what rounding adds.
pub(super) const SLOPE: f64 = 1.7321;
/// The largest error of the interpolant in sides of a cell: √3 / 2, and what rounding adds.
const BOUND: f64 = 0.8661;
/// The sides of a cell by which samples go beyond what is within reach. A way that comes out of a
/// block without samples gets on by one, and normals ask half a cell away.
const BEYOND: f64 = 1.01;
/// The sides of a cell beyond what is within reach up to which samples are distances: a normal
/// within reach asks for no others.
const TOLD: f64 = 3.2;
/// The share of the bound of a block that is kept, for rounding.
const LEAST_SHARE_OF_FAR: f64 = 1.0 - 1e-6;
/// The length in sides of a cell over which a way may be looked at in the wrong one of two
/// neighbouring cells.
const SLIVER: f64 = 1e-9;
/// How often the way through a cell is halved until its coefficients tell.
const HALVINGS: u32 = 10;
/// The most steps along one way.
const STEPS: u32 = 1 << 16;

impl Layout {
    /// The grid for a mesh between these corners, for contacts within a reach.
    fn new(mesh: [DVec3; 2], cell: f64, reach: f64) -> Self {
        let band = reach + (BOUND + BEYOND) * cell;
        let size = mesh[1] - mesh[0] + DVec3::splat(2.0 * band);
        let cells = (size.max_element() / cell).ceil();
        let mut side = LEAST_SIDE;
        while side < MOST_SIDE && (u64::from(side).pow(4) as f64) < cells {
            side += 1;
        }
        let block = f64::from(side) * cell;
        // Too many saturate, and are refused.
        let blocks = (size / block).ceil().max(DVec3::ONE).to_array();
        Self {
            low: mesh[0] - DVec3::splat(band),
            cell,
            side,
            blocks: blocks.map(|count| count as u32),
            mesh,
            band,
            most: reach + TOLD * cell,
            // Samples beside blocks without any are more than that.
            held: reach + cell,
        }
    }

    /// The largest coordinate of the grid, in m.
    fn largest(&self) -> f64 {
        self.mesh
            .map(|p| p.abs().max_element())
            .into_iter()
            .fold(self.band, f64::max)
    }

    fn expected(&self, area: f64) -> Expected {
        let [x, y, z] = self.blocks.map(f64::from);
        let blocks = x * y * z;
        let block = f64::from(self.side) * self.cell;
        // Blocks whose middle is near enough, on both sides of the surface.
        let near = 2.0 * area * (self.band + BOUND * block) / block.powi(3);
        let samples = f64::from(self.side + 1).powi(3) * near.min(blocks);
        Expected {
            blocks,
            bytes: 8.0 * blocks + 4.0 * samples,
        }
    }

    fn count(&self) -> usize {
        self.blocks.iter().map(|&count| count as usize).product()
    }

    fn per_block(&self) -> usize {
        (self.side as usize + 1).pow(3)
    }

    /// The side of a block, in m.
    fn block(&self) -> f64 {
        f64::from(self.side) * self.cell
    }

    /// The first cell of a block along each axis.
    fn first_cell(&self, number: usize) -> [u32; 3] {
        let [x, y, _] = self.blocks.map(|count| count as usize);
        [number % x, number / x % y, number / (x * y)].map(|at| at as u32 * self.side)
    }

    /// The place of a sample, in m.
    fn node(&self, at: [u32; 3]) -> DVec3 {
        self.low + DVec3::from_array(at.map(f64::from)) * self.cell
    }

    /// A place in cells from the corner of the grid.
    fn in_cells(&self, p: DVec3) -> DVec3 {
        (p - self.low) / self.cell
    }

    /// The distance of a place outside of the grid from the box around the mesh, in m.
    fn box_distance(&self, p: DVec3) -> f64 {
        let [low, high] = self.mesh;
        (low - p).max(p - high).max(DVec3::ZERO).length()
    }

    /// The cell of a place, given in cells; `None` outside of the grid.
    #[inline]
    fn cell_at(&self, q: DVec3) -> Option<[u32; 3]> {
        let most = DVec3::from_array(self.blocks.map(|count| f64::from(count * self.side)));
        // No comparison holds of what is no number.
        let is_in = q.cmpge(DVec3::ZERO).all() && q.cmple(most).all();
        let last = most - DVec3::ONE;
        is_in.then(|| q.floor().min(last).to_array().map(|at| at as u32))
    }
}

impl DistanceField {
    /// The size of the grid for a mesh, for cells of a side (m) and contacts within a reach (m).
    #[must_use]
    pub fn expected(of: &TriMesh, cell: f64, reach: f64) -> Expected {
        let areas = of.triangles.iter().map(|&corners| {
            let [a, b, c] = of.corners(corners);
            0.5 * (b - a).cross(c - a).length()
        });
        let bounds = of.bounds().unwrap_or_default();
        Layout::new(bounds, cell, reach).expected(areas.sum())
    }

    /// How many blocks the grid of a mesh has, for such cells and such a reach.
    pub(super) fn blocks_for(of: &Enclosed, cell: f64, reach: f64) -> f64 {
        let counts = Layout::new(of.bounds(), cell, reach).blocks;
        counts.map(f64::from).iter().product()
    }

    /// Samples the distance from a mesh on a grid with cells of this side, in m. Contacts may ask
    /// for what is within `reach` (m). The grid must be of a size that [can be
    /// numbered](Expected::can_be_numbered).
    #[must_use]
    pub fn new(of: &Enclosed, cell: f64, reach: f64) -> Self {
        let layout = Layout::new(of.bounds(), cell, reach);
        let (far, near) = sampling::blocks(of, &layout);
        let of_block = |k: usize| sampling::block_with_error(of, &layout, near[k] as usize);
        let blocks = parallel::map(near.len(), of_block);
        let mut samples = Vec::with_capacity(near.len() * layout.per_block());
        let mut error = 0.0_f64;
        for block in blocks {
            samples.extend(block.samples);
            error = error.max(block.error);
        }
        Self {
            places: places(far.len(), &near),
            layout,
            far,
            samples: Samples::All(samples),
            error,
        }
    }

    /// Does as [`Self::new`], with the same bits, but finds the samples of a block when they are
    /// first asked for, and no error.
    #[must_use]
    pub(super) fn when_asked(of: Arc<Enclosed>, cell: f64, reach: f64) -> Self {
        let layout = Layout::new(of.bounds(), cell, reach);
        let (far, numbers) = sampling::blocks(&of, &layout);
        let mut blocks = Vec::new();
        blocks.resize_with(numbers.len(), OnceLock::new);
        Self {
            places: places(far.len(), &numbers),
            layout,
            far,
            samples: Samples::Asked {
                of,
                numbers,
                blocks,
            },
            error: 0.0,
        }
    }

    /// The samples of a block, by its place among those that have any.
    #[inline]
    fn block(&self, place: usize) -> &[f32] {
        match &self.samples {
            Samples::All(samples) => {
                let count = self.layout.per_block();
                &samples[place * count..(place + 1) * count]
            }
            Samples::Asked {
                of,
                numbers,
                blocks,
            } => blocks[place]
                .get_or_init(|| sampling::block(of, &self.layout, numbers[place] as usize)),
        }
    }

    /// How many blocks have samples.
    fn sampled_blocks(&self) -> usize {
        match &self.samples {
            Samples::All(samples) => samples.len() / self.layout.per_block(),
            Samples::Asked { numbers, .. } => numbers.len(),
        }
    }

    /// How it is sampled.
    #[must_use]
    pub fn sampling(&self) -> Sampling {
        Sampling {
            cell_m: self.layout.cell,
            error_m: self.error(),
            bound_m: self.bound(),
            blocks: self.places.len(),
            sampled_blocks: self.sampled_blocks(),
            bytes: self.heap_bytes(),
            in_time_m: None,
        }
    }

    /// The largest difference, in m, between the interpolant and the distance from the mesh that
    /// was found in the middle of cells within a cell's side of the surface.
    #[must_use]
    pub fn error(&self) -> f64 {
        self.error
    }

    /// The length in m by which the interpolant errs nowhere.
    #[must_use]
    pub fn bound(&self) -> f64 {
        largest_error(self.layout.cell)
    }

    /// The length in m by which the interpolant may fall below a bound between the places where it
    /// is looked at, through rounding.
    #[must_use]
    pub(in crate::collide) fn margin(&self) -> f64 {
        10.0 * SLIVER * self.layout.cell
    }

    /// The distance of a place from the surface, in m, negative inside: the interpolant near it,
    /// and elsewhere a bound below it.
    #[must_use]
    pub fn distance(&self, p: DVec3) -> f64 {
        match self.read(p) {
            Reading::Sampled(distance) | Reading::Beyond(distance) => distance,
        }
    }

    /// The unit vector out of the body at a place.
    #[must_use]
    pub fn normal(&self, p: DVec3) -> DVec3 {
        let across = |step: f64| {
            let mut sampled = true;
            let differences = DVec3::AXES.map(|axis| {
                let [after, before] = [p + axis * step, p - axis * step].map(|q| self.read(q));
                match (after, before) {
                    (Reading::Sampled(after), Reading::Sampled(before)) => after - before,
                    (
                        Reading::Sampled(after) | Reading::Beyond(after),
                        Reading::Sampled(before) | Reading::Beyond(before),
                    ) => {
                        sampled = false;
                        after - before
                    }
                }
            });
            (sampled, DVec3::from_array(differences))
        };
        let (sampled, near) = across(0.5 * self.layout.cell);
        let near = near.try_normalize().filter(|_| sampled);
        // Bounds of blocks differ by the way between these.
        near.or_else(|| across(self.layout.block()).1.try_normalize())
            .unwrap_or(DVec3::Z)
    }

    /// The distance of a place from the surface, as a function of slope √3 or less everywhere.
    #[inline]
    pub(super) fn held(&self, p: DVec3) -> Held {
        let most = self.layout.held;
        match self.read(p) {
            Reading::Sampled(distance) => Held {
                value: distance.clamp(-most, most),
                free: 0.0,
            },
            Reading::Beyond(distance) => Held {
                value: most.copysign(distance),
                // All of that ball is as far from the mesh that no sample in it says less.
                free: (distance - self.bound() - most).max(0.0),
            },
        }
    }

    /// The side of a block, in m.
    pub(super) fn block_side(&self) -> f64 {
        self.layout.block()
    }

    /// The side of a cell, in m.
    pub(super) fn cell(&self) -> f64 {
        self.layout.cell
    }

    /// The most that [`Self::held`] says, in m.
    pub(super) fn most_held(&self) -> f64 {
        self.layout.held
    }

    /// A bound below the interpolant in all of a ball with this middle and this radius, in m.
    pub(in crate::collide) fn least_within(&self, center: DVec3, radius: f64) -> f64 {
        let of_mesh = match self.read(center) {
            Reading::Sampled(distance) => distance - self.bound(),
            Reading::Beyond(distance) => distance,
        };
        of_mesh - radius - self.bound()
    }

    /// The place where a straight way first comes within a reach (m) of the surface, as far as it
    /// can be told; `None` if it does not.
    pub(in crate::collide) fn first_within(
        &self,
        [from, to]: [DVec3; 2],
        reach: f64,
    ) -> Option<Near> {
        let share = self.clear([from, to], reach);
        (share < 1.0).then(|| {
            let point = along([from, to], share);
            Near {
                point,
                distance: self.distance(point),
                normal: self.normal(point),
            }
        })
    }

    /// Whether a straight way keeps at least this distance (m) from the surface: as its end is
    /// computed, and on the way but for [`Self::margin`].
    pub(in crate::collide) fn is_clear(&self, way: [DVec3; 2], least: f64) -> bool {
        self.distance(way[1]) >= least && self.clear(way, least) >= 1.0
    }

    /// A share of a straight way, from its beginning on, that keeps at least this distance (m) from
    /// the surface; 1 if all of it does.
    pub(in crate::collide) fn clear(&self, way: [DVec3; 2], least: f64) -> f64 {
        let length = way[0].distance(way[1]);
        let cell = self.layout.cell;
        if !length.is_finite() {
            return 0.0;
        }
        let sliver = SLIVER * cell / length;
        let mut share = 0.0;
        for _ in 0..STEPS {
            let at = along(way, share);
            let safe = match self.read(at) {
                // The end of the way is looked at, too.
                Reading::Sampled(distance) | Reading::Beyond(distance)
                    if !keeps(distance, least) =>
                {
                    return share;
                }
                Reading::Sampled(distance) => (distance - least) / SLOPE,
                Reading::Beyond(distance) => distance - self.bound() - least,
            };
            if share >= 1.0 {
                return 1.0;
            }
            if safe >= cell {
                share = (share + safe / length).min(1.0);
                continue;
            }
            // To the side of the cell, all of which is judged by coefficients.
            let ends = way.map(|p| self.layout.in_cells(p));
            let next = leaves_cell(ends, share).max(share + sliver).min(1.0);
            let middle = along(ends, 0.5 * (share + next));
            let Some((corners, cell_at)) = self.corners(middle) else {
                // A block without samples is the whole band away.
                let safe = self.layout.band - self.bound() - least;
                if !keeps(safe, cell) {
                    return share;
                }
                share = (share + safe / length).min(1.0);
                continue;
            };
            let local = [share, next].map(|s| along(ends, s) - cell_at);
            let part = clear_of(coefficients(&corners, local), least, HALVINGS);
            if part < 1.0 {
                return share + part * (next - share);
            }
            share = next;
        }
        share
    }

    fn read(&self, p: DVec3) -> Reading {
        let q = self.layout.in_cells(p);
        if self.layout.cell_at(q).is_none() {
            return Reading::Beyond(self.layout.box_distance(p));
        }
        match self.corners(q) {
            Some((corners, cell)) => Reading::Sampled(trilinear(&corners, q - cell)),
            None => Reading::Beyond(self.far_at(q)),
        }
    }

    /// The number of the block of a cell.
    #[inline]
    fn block_of(&self, cell: [u32; 3]) -> usize {
        let [x, y, z] = cell.map(|at| (at / self.layout.side) as usize);
        let [across, deep, _] = self.layout.blocks.map(|count| count as usize);
        (z * deep + y) * across + x
    }

    fn far_at(&self, q: DVec3) -> f64 {
        let cell = self.layout.cell_at(q);
        cell.map_or(0.0, |cell| f64::from(self.far[self.block_of(cell)]))
    }

    /// The samples at the corners of the cell of a place, given in cells, x first, and the place of
    /// the first; `None` where there are none.
    #[inline]
    fn corners(&self, q: DVec3) -> Option<([f64; 8], DVec3)> {
        let cell = self.layout.cell_at(q)?;
        let place = self.places[self.block_of(cell)];
        if place == NONE {
            return None;
        }
        let [x, y, z] = cell.map(|at| (at % self.layout.side) as usize);
        let row = self.layout.side as usize + 1;
        let (first, samples) = ((z * row + y) * row + x, self.block(place as usize));
        let sample = |k: usize| {
            let at = first + (k & 1) + (k >> 1 & 1) * row + (k >> 2) * row * row;
            f64::from(samples[at])
        };
        Some((
            std::array::from_fn(sample),
            DVec3::from_array(cell.map(f64::from)),
        ))
    }
}

/// The length in m by which the interpolant errs nowhere, for cells of this side.
pub(super) fn largest_error(cell: f64) -> f64 {
    BOUND * cell
}

/// All triples of numbers below a count, the first running fastest.
fn all_below(count: u32) -> impl Iterator<Item = [u32; 3]> {
    let pairs = (0..count).flat_map(move |z| (0..count).map(move |y| (y, z)));
    pairs.flat_map(move |(y, z)| (0..count).map(move |x| [x, y, z]))
}

/// The place of each of `count` blocks among those that have samples.
fn places(count: usize, near: &[u32]) -> Vec<u32> {
    let mut places = vec![NONE; count];
    for (place, &number) in (0..).zip(near) {
        places[number as usize] = place;
    }
    places
}

/// Whether a length is at least this, which no length is that is no number.
#[inline]
pub(super) fn keeps(length: f64, least: f64) -> bool {
    length >= least
}

/// The place a share of the way from one to another.
#[inline]
pub(super) fn along([from, to]: [DVec3; 2], share: f64) -> DVec3 {
    // The end has its own bits, by which it is looked at again.
    if share >= 1.0 {
        to
    } else {
        from + (to - from) * share
    }
}

/// The share of a way, given in cells, at which it comes to a side of a cell after `share`.
fn leaves_cell([from, to]: [DVec3; 2], share: f64) -> f64 {
    let (at, way) = (along([from, to], share), to - from);
    let mut next = 1.0_f64;
    for k in 0..3 {
        if way[k] != 0.0 {
            let side = match way[k] > 0.0 {
                true => at[k].floor() + 1.0,
                false => at[k].ceil() - 1.0,
            };
            next = next.min((side - from[k]) / way[k]);
        }
    }
    next
}

/// The value of a function that is linear in each coordinate.
#[inline]
fn trilinear(corners: &[f64; 8], t: DVec3) -> f64 {
    let mix = |a: f64, b: f64, t: f64| a + (b - a) * t;
    let [a, b, c, d] = [0, 2, 4, 6].map(|k| mix(corners[k], corners[k + 1], t.x));
    mix(mix(a, b, t.y), mix(c, d, t.y), t.z)
}

/// The Bernstein coefficients of it on a straight way.
fn coefficients(corners: &[f64; 8], [from, to]: [DVec3; 2]) -> [f64; 4] {
    let at = |x: DVec3, y: DVec3, z: DVec3| trilinear(corners, DVec3::new(x.x, y.y, z.z));
    let one = at(to, from, from) + at(from, to, from) + at(from, from, to);
    let two = at(from, to, to) + at(to, from, to) + at(to, to, from);
    [at(from, from, from), one / 3.0, two / 3.0, at(to, to, to)]
}

/// A share of a way from its beginning on, along which a polynomial with these coefficients keeps
/// at or above a bound.
fn clear_of(b: [f64; 4], least: f64, halvings: u32) -> f64 {
    if b.iter().all(|b| keeps(*b, least)) {
        return 1.0;
    }
    if !keeps(b[0], least) || halvings == 0 {
        return 0.0;
    }
    // De Casteljau's construction in the middle.
    let mean = |a: f64, b: f64| 0.5 * (a + b);
    let [p, q, r] = [mean(b[0], b[1]), mean(b[1], b[2]), mean(b[2], b[3])];
    let (s, t) = (mean(p, q), mean(q, r));
    let middle = mean(s, t);
    match clear_of([b[0], p, s, middle], least, halvings - 1) {
        whole if whole >= 1.0 => 0.5 + 0.5 * clear_of([middle, t, r, b[3]], least, halvings - 1),
        part => 0.5 * part,
    }
}

#[cfg(test)]
mod tests;
