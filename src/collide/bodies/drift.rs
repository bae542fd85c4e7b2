//! How far the surface of a body goes between two samples of its shape, as a function of space.
//!
//! The distance at a time between two samples is taken from both, at places that are moved along
//! with the surface \[Sel08, §7.5.1\]. So it asks, at any place, for the displacement of the
//! surface near it, which is here the mean over both samples: points of the mesh, where they are
//! half-way, give their displacements to the corners of the cells that they are in, by area. A
//! corner has the value there of the linear function that fits these best, but none beyond them.
//! Corners without any take the mean of their neighbours, layer by layer. Between corners it is
//! trilinear, and so continuous, and has a known slope.
//!
//! **Spread.** For the error of interpolation one must know by how much the displacement at a place
//! differs from that of the points of the mesh that are nearest to it, in either sample or between
//! them. Where the distance is r or less these are within r + M of the place, for displacements up
//! to M, in whichever sample: so the box around the displacements of all triangles that come within
//! that many cells, and of the corners of the cell, is wide enough.
//!
//! * \[Sel08\] Selle: Hybrid techniques for high-fidelity physical simulation of solids and fluids.

use glam::{DMat3, DVec3};

use super::enclosed::Enclosed;
use crate::heap_bytes::counts_heap;

/// The displacement of the surface between two samples, near it.
#[derive(Debug)]
pub(super) struct Drift {
    /// The corner of the grid, in m, and the side of a cell.
    low: DVec3,
    side: f64,
    /// The cells along each axis.
    cells: [usize; 3],
    /// The displacement at the corners of cells, in m, x first.
    corners: Vec<DVec3>,
    /// The most by which it differs in each cell from that of the mesh nearby, in m.
    spread: Vec<f32>,
    /// The most by which the displacement changes over a length, as a share of that.
    pub(super) slope: f64,
    /// The length in m that no displacement exceeds.
    pub(super) most: f64,
    /// The length in m by which no two displacements differ more.
    pub(super) widest: f64,
}

counts_heap!(Drift: corners, spread; without low, side, cells, slope, most, widest);

/// The most cells; there are larger ones where there would be more.
const MOST_CELLS: f64 = 2e5;
/// The most points along a side of a triangle.
const MOST_POINTS: f64 = 128.0;
/// The most cells to each side over which the spread is looked up.
const WIDEST: usize = 6;
/// The square of a length in sides of a cell over which a fit is damped: points that lie closer
/// together than that do not tell how the displacement changes between them.
const DAMPED: f64 = 0.02;
/// The factor that rounding adds to a bound.
const ROUNDED: f64 = 1.0 + 1e-9;

impl Drift {
    /// The displacements from one sample of a mesh to the next, in cells of this side (m), for
    /// places where the distance is no more than a reach (m).
    pub(super) fn new([from, to]: [&Enclosed; 2], side: f64, reach: f64) -> Self {
        let bounds = [from.bounds(), to.bounds()];
        let low = bounds[0][0].min(bounds[1][0]);
        let size = bounds[0][1].max(bounds[1][1]) - low;
        let mut side = side;
        let count = |side: f64| (size / side).floor() + DVec3::ONE;
        while count(side).element_product() > MOST_CELLS {
            side *= 1.25;
        }
        let cells = count(side).to_array().map(|count| count as usize);
        let mut ways = from.positions().iter().zip(to.positions());
        let all = ways.clone().map(|(from, to)| *to - *from);
        let around = all
            .clone()
            .fold(NONE, |of, way| [of[0].min(way), of[1].max(way)]);
        let most = all.map(DVec3::length).fold(0.0, f64::max);
        let first = ways.next().map_or(DVec3::ZERO, |(from, to)| *to - *from);
        let mut drift = Self {
            low,
            side,
            cells,
            corners: Vec::new(),
            spread: Vec::new(),
            slope: 0.0,
            most: most * ROUNDED,
            widest: width(around) * ROUNDED,
        };
        let nodes: usize = cells.map(|count| count + 1).iter().product();
        let mut sums = vec![Fit::NOTHING; nodes];
        let mut boxes = vec![NONE; cells.iter().product()];
        for t in 0..from.triangle_count() {
            drift.add(
                [from.corners(t), to.corners(t)],
                first,
                &mut sums,
                &mut boxes,
            );
        }
        drift.corners = drift.filled(sums, first);
        drift.slope = drift.steepest() * ROUNDED;
        let within = ((reach + most) / side).ceil() as usize + 1;
        drift.spread = drift.spreads(boxes, within);
        drift
    }

    /// Adds the points of a triangle to the corners of their cells, less a displacement that all
    /// may have, and its displacements to the boxes of the cells that it comes through.
    fn add(
        &self,
        [from, to]: [[DVec3; 3]; 2],
        first: DVec3,
        sums: &mut [Fit],
        boxes: &mut [[DVec3; 2]],
    ) {
        let ways = [0, 1, 2].map(|k| to[k] - from[k]);
        let [a, b, c] = [0, 1, 2].map(|k| from[k].midpoint(to[k]));
        let longest = (b - a).length().max((c - b).length()).max((a - c).length());
        let parts = (longest / (0.5 * self.side)).ceil().clamp(1.0, MOST_POINTS);
        let weight = (b - a).cross(c - a).length() / (parts * (parts + 1.0));
        // A triangle without area has a surface nowhere.
        let weight = weight.max(1e-200);
        for i in 0..parts as u32 {
            for j in 0..parts as u32 - i {
                let [u, v] = [i, j].map(|k| (f64::from(k) + 1.0 / 3.0) / parts);
                let mix = |[a, b, c]: [DVec3; 3]| a + (b - a) * u + (c - a) * v;
                let (point, way) = (mix([a, b, c]), mix(ways) - first);
                let [x, y, z] = self.cell(point);
                for k in 0..8 {
                    let at = [x + (k & 1), y + (k >> 1 & 1), z + (k >> 2)];
                    let corner = self.low + DVec3::from_array(at.map(|at| at as f64)) * self.side;
                    sums[self.node(at)].add(point - corner, way, weight);
                }
            }
        }
        let hull = |points: [DVec3; 3]| {
            let [a, b, c] = points;
            [a.min(b).min(c), a.max(b).max(c)]
        };
        let ([low, high], [other_low, other_high]) = (hull(from), hull(to));
        let (low, high) = (
            self.cell(low.min(other_low)),
            self.cell(high.max(other_high)),
        );
        let of_ways = hull(ways);
        for z in low[2]..=high[2] {
            for y in low[1]..=high[1] {
                let row = (z * self.cells[1] + y) * self.cells[0];
                for own in &mut boxes[row + low[0]..=row + high[0]] {
                    *own = [own[0].min(of_ways[0]), own[1].max(of_ways[1])];
                }
            }
        }
    }

    /// The cell of a place, or the nearest one.
    fn cell(&self, p: DVec3) -> [usize; 3] {
        let q = (p - self.low) / self.side;
        // Negative numbers saturate.
        [0, 1, 2].map(|k| (q[k] as usize).min(self.cells[k] - 1))
    }

    fn node(&self, [x, y, z]: [usize; 3]) -> usize {
        (z * (self.cells[1] + 1) + y) * (self.cells[0] + 1) + x
    }

    /// The means at corners, and those of neighbours where there are none.
    fn filled(&self, sums: Vec<Fit>, first: DVec3) -> Vec<DVec3> {
        const UNKNOWN: u32 = u32::MAX;
        let mut layer: Vec<u32> = (sums.iter())
            .map(|fit| if fit.weight > 0.0 { 0 } else { UNKNOWN })
            .collect();
        let damped = DAMPED * self.side * self.side;
        let value = |fit: Fit| first + fit.value(damped);
        let mut corners: Vec<DVec3> = sums.into_iter().map(value).collect();
        let counts = self.cells.map(|count| count + 1);
        let beside = |node: usize| {
            let [across, deep, _] = counts;
            let at = [node % across, node / across % deep, node / (across * deep)];
            let strides = [1, across, across * deep];
            (0..3).flat_map(move |k| {
                let before = (at[k] > 0).then(|| node - strides[k]);
                let after = (at[k] + 1 < counts[k]).then(|| node + strides[k]);
                [before, after].into_iter().flatten()
            })
        };
        let mut front: Vec<usize> = (0..layer.len()).filter(|&node| layer[node] == 0).collect();
        let mut number = 0;
        while !front.is_empty() {
            number += 1;
            let mut next = Vec::new();
            for other in front.iter().flat_map(|&node| beside(node)) {
                if layer[other] == UNKNOWN {
                    layer[other] = number;
                    next.push(other);
                }
            }
            next.sort_unstable();
            for &node in &next {
                let (mut count, mut sum) = (0.0, DVec3::ZERO);
                for other in beside(node).filter(|&other| layer[other] < number) {
                    count += 1.0;
                    sum += corners[other] - first;
                }
                corners[node] = first + sum / count;
            }
            front = next;
        }
        corners
    }

    /// The largest change of the displacement over a length, as a share of it: that along each
    /// axis is a mean of differences between corners.
    fn steepest(&self) -> f64 {
        let counts = self.cells.map(|count| count + 1);
        let strides = [1, counts[0], counts[0] * counts[1]];
        let mut squares = [0.0_f64; 3];
        for node in 0..self.corners.len() {
            for k in 0..3 {
                if node / strides[k] % counts[k] + 1 < counts[k] {
                    let way = self.corners[node + strides[k]] - self.corners[node];
                    squares[k] = squares[k].max(way.length_squared());
                }
            }
        }
        squares.iter().sum::<f64>().sqrt() / self.side
    }

    /// The widths of the boxes around displacements within some cells of each.
    fn spreads(&self, mut boxes: Vec<[DVec3; 2]>, within: usize) -> Vec<f32> {
        let up = |width: f64| (width * (1.0 + 1e-6)) as f32;
        if within > WIDEST {
            return vec![up(self.widest); boxes.len()];
        }
        let mut line = Vec::new();
        for (axis, &length) in self.cells.iter().enumerate() {
            let stride: usize = self.cells[..axis].iter().product();
            for first in (0..boxes.len()).filter(|first| (first / stride).is_multiple_of(length)) {
                line.clear();
                line.extend((0..length).map(|k| boxes[first + k * stride]));
                for at in 0..length {
                    let range = at.saturating_sub(within)..(at + within + 1).min(length);
                    let near = line[range].iter();
                    boxes[first + at * stride] =
                        near.fold(NONE, |of, own| [of[0].min(own[0]), of[1].max(own[1])]);
                }
            }
        }
        let of_cell = |(number, own): (usize, &[DVec3; 2])| {
            let [across, deep, _] = self.cells;
            let [x, y, z] = [
                number % across,
                number / across % deep,
                number / (across * deep),
            ];
            let corners = (0..8)
                .map(|k| self.corners[self.node([x + (k & 1), y + (k >> 1 & 1), z + (k >> 2)])]);
            up(width(
                corners.fold(*own, |of, way| [of[0].min(way), of[1].max(way)]),
            ))
        };
        boxes.iter().enumerate().map(of_cell).collect()
    }

    /// The displacement at a place, in m. Beyond the grid it is that of the nearest place in it.
    #[inline]
    pub(super) fn at(&self, p: DVec3) -> DVec3 {
        let most = DVec3::from_array(self.cells.map(|count| count as f64));
        let q = ((p - self.low) / self.side).clamp(DVec3::ZERO, most);
        let cell = [0, 1, 2].map(|k| (q[k] as usize).min(self.cells[k] - 1));
        let t = q - DVec3::from_array(cell.map(|at| at as f64));
        let (row, first) = (self.cells[0] + 1, self.node(cell));
        let layer = row * (self.cells[1] + 1);
        let along = |at: usize| self.corners[at] + (self.corners[at + 1] - self.corners[at]) * t.x;
        let over = |at: usize| {
            let (one, two) = (along(at), along(at + row));
            one + (two - one) * t.y
        };
        let (one, two) = (over(first), over(first + layer));
        one + (two - one) * t.z
    }

    /// The most by which the displacement at a place near the surface differs from that of the
    /// points of the mesh that are nearest to it, in m.
    pub(super) fn spread(&self, p: DVec3) -> f64 {
        let [x, y, z] = self.cell(p);
        f64::from(self.spread[(z * self.cells[1] + y) * self.cells[0] + x])
    }

    /// The largest spread, in m.
    pub(super) fn largest_spread(&self) -> f64 {
        f64::from(self.spread.iter().copied().fold(0.0, f32::max))
    }
}

/// The linear function that fits the displacements of points around a corner.
#[derive(Clone, Copy, Debug)]
struct Fit {
    weight: f64,
    /// The sums, by weight, of places, of displacements, and of their products with places.
    places: DVec3,
    ways: DVec3,
    squares: DMat3,
    products: DMat3,
    /// The box around the displacements.
    around: [DVec3; 2],
}

impl Fit {
    const NOTHING: Self = Self {
        weight: 0.0,
        places: DVec3::ZERO,
        ways: DVec3::ZERO,
        squares: DMat3::ZERO,
        products: DMat3::ZERO,
        around: NONE,
    };

    fn add(&mut self, place: DVec3, way: DVec3, weight: f64) {
        let by = |v: DVec3| DMat3::from_cols(v * place.x, v * place.y, v * place.z);
        self.weight += weight;
        self.places += place * weight;
        self.ways += way * weight;
        self.squares += by(place * weight);
        self.products += by(way * weight);
        self.around = [self.around[0].min(way), self.around[1].max(way)];
    }

    /// The value at the corner; none of the points has more or less.
    fn value(&self, damped: f64) -> DVec3 {
        if self.weight <= 0.0 {
            return DVec3::ZERO;
        }
        let (place, way) = (self.places / self.weight, self.ways / self.weight);
        let by = |v: DVec3| DMat3::from_cols(v * place.x, v * place.y, v * place.z);
        let squares = self.squares * self.weight.recip() - by(place);
        let products = self.products * self.weight.recip() - by(way);
        let slope = products * (squares + DMat3::from_diagonal(DVec3::splat(damped))).inverse();
        let value = way - slope * place;
        if value.is_finite() {
            value.max(self.around[0]).min(self.around[1])
        } else {
            way
        }
    }
}

/// The box around nothing.
const NONE: [DVec3; 2] = [DVec3::INFINITY, DVec3::NEG_INFINITY];

/// The length of the diagonal of a box.
fn width([low, high]: [DVec3; 2]) -> f64 {
    (high - low).max(DVec3::ZERO).length()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::{cuboid, icosphere};

    fn between(place: impl Fn(DVec3) -> DVec3) -> Drift {
        let ball = icosphere(DVec3::X, 0.2, 0.03).unwrap();
        let mut moved = ball.clone();
        moved.positions.iter_mut().for_each(|p| *p = place(*p));
        let [from, to] = [&ball, &moved].map(Enclosed::new);
        Drift::new([&from, &to], 0.03, 0.02)
    }

    #[test]
    fn a_translated_body_has_one_displacement_everywhere() {
        let way = DVec3::new(0.3, -0.2, 0.15);
        let drift = between(|p| p + way);
        for k in 0..200 {
            let t = f64::from(k);
            let p = DVec3::new((1.3 * t).sin(), (0.7 * t).sin(), (2.1 * t).sin());
            assert!(drift.at(p).distance(way) < 1e-14, "{p}");
            assert!(drift.spread(p) < 1e-13);
        }
        assert!(drift.slope < 1e-11 && drift.widest < 1e-14);
    }

    /// The spread covers the points of the mesh nearby, and the slope the change from place to
    /// place.
    #[test]
    fn bounds_are_above_what_they_bound() {
        let turned = |p: DVec3| {
            let r = p - DVec3::X;
            DVec3::X + 1.1 * DVec3::new(0.98 * r.x - 0.2 * r.y, 0.2 * r.x + 0.98 * r.y, r.z)
        };
        let drift = between(turned);
        let mut before: Option<DVec3> = None;
        for k in 0..5000 {
            let t = f64::from(k);
            let out = DVec3::new((1.3 * t).sin(), (0.7 * t).cos(), (2.1 * t).sin()).normalize();
            let material = DVec3::X + 0.2 * out;
            let way = turned(material) - material;
            let p = material + way * 0.5 + out * (0.02 * (0.3 * t).sin());
            // Facets go otherwise than the ball by a hundredth of a triangle's height.
            assert!(drift.at(p).distance(way) <= drift.spread(p) + 1e-3, "{p}");
            if let Some(before) = before {
                let change = drift.at(p).distance(drift.at(before));
                assert!(change <= drift.slope * p.distance(before) && change <= drift.widest);
            }
            before = Some(p);
        }
        assert!(drift.at(DVec3::X + DVec3::X * 0.22).length() <= drift.most);
    }

    /// Triangles much longer than cells give their displacement along all of their way.
    #[test]
    fn long_triangles_tell_all_along_them() {
        let center = DVec3::new(0.0, 0.0, -0.05);
        let plate = cuboid(center, DVec3::new(0.6, 0.6, 0.1), 10.0).unwrap();
        let mut moved = plate.clone();
        let lifted = |p: DVec3| p + DVec3::Z * (0.1 * (p.x + 0.3));
        moved.positions.iter_mut().for_each(|p| *p = lifted(*p));
        let [from, to] = [&plate, &moved].map(Enclosed::new);
        let drift = Drift::new([&from, &to], 0.02, 0.01);
        for k in -14..15 {
            let p = DVec3::new(
                0.02 * f64::from(k),
                0.0,
                0.5 * 0.1 * (0.3 + 0.02 * f64::from(k)),
            );
            assert!((drift.at(p).z - 0.1 * (p.x + 0.3)).abs() < 2e-4, "{p}");
            assert!((1e-4..0.061).contains(&drift.spread(p)));
        }
    }
}
