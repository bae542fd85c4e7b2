//! A shirt: front and back sewn together at shoulders, sides and sleeves, open at neck, hem and
//! cuffs.
//!
//! ```text
//!   +----+--neck--+----+      both panels are herringbone grids of square cells in this outline;
//! cuff   |        |   cuff    along the full lines they share their vertices
//!   +--+          +----+
//!      |          |
//!      +---hem----+
//! ```
//!
//! A garment is what partitions are shown on: it is no rectangle, its graph closes around the body,
//! and the distance of two vertices in space says little about that along the cloth.

use std::f64::consts::FRAC_PI_2;

use glam::DVec3;

use super::grid::cell;
use super::{MeshError, TriMesh, bounded, rotation_matrix};
use crate::scene::defaults::LEAST_SHIRT;

/// A shirt of `height` in m with `vertices` from hem to shoulder, at least [`LEAST_SHIRT`].
///
/// It hangs upright in the plane y = 0, its front towards -y, 1.45 times as wide over its sleeves
/// as it is high, before `rotation` (about x, y, z in rad, in this order) around the middle of that
/// plane, and is then moved to `center` in m.
///
/// # Errors
/// [`MeshError::TooLarge`] for more than [`super::MAX_VERTICES`] vertices.
pub fn shirt(
    height: f64,
    vertices: usize,
    center: DVec3,
    rotation: DVec3,
) -> Result<TriMesh, MeshError> {
    let vertices = vertices.max(LEAST_SHIRT);
    // Both panels fill less than their bounding rectangles.
    let square = (vertices as u64).saturating_mul(vertices as u64);
    bounded("the shirt", square.saturating_mul(3))?;
    let outline = Outline::new(vertices - 1);
    let edge = height / outline.height as f64;
    let depths = outline.depths();
    let middle = [0.5 * outline.width() as f64, 0.5 * outline.height as f64];
    let matrix = rotation_matrix(rotation);
    let mut mesh = TriMesh::default();
    let mut numbers = [
        vec![u32::MAX; outline.points()],
        vec![u32::MAX; outline.points()],
    ];
    for j in 0..=outline.height {
        for i in 0..=outline.width() {
            if !outline.touches(i, j) {
                continue;
            }
            let point = outline.point(i, j);
            for (panel, side) in [-1.0, 1.0].into_iter().enumerate() {
                if panel == 1 && outline.is_sewn(i, j) {
                    numbers[1][point] = numbers[0][point];
                    continue;
                }
                numbers[panel][point] = mesh.positions.len() as u32;
                let upright = DVec3::new(
                    i as f64 - middle[0],
                    side * depths[point],
                    j as f64 - middle[1],
                );
                mesh.positions.push(center + matrix * (upright * edge));
            }
        }
    }
    for j in 0..outline.height {
        for i in 0..outline.width() {
            if !outline.is_cloth(i, j) {
                continue;
            }
            let corners = [(i, j), (i + 1, j), (i, j + 1), (i + 1, j + 1)];
            for (panel, numbers) in numbers.iter().enumerate() {
                let cell = cell(
                    corners.map(|(i, j)| numbers[outline.point(i, j)]),
                    i % 2 == 0,
                );
                // Seen from behind, what is counterclockwise from the front is clockwise.
                let turn = |[a, b, c]: [u32; 3]| if panel == 0 { [a, b, c] } else { [a, c, b] };
                mesh.triangles.extend(cell.map(turn));
            }
        }
    }
    Ok(mesh)
}

/// The outline in cells.
struct Outline {
    height: usize,
    body: usize,
    /// Length and width of a sleeve.
    sleeve: [usize; 2],
    neck: usize,
}

impl Outline {
    fn new(height: usize) -> Self {
        let part = |share: f64| (share * height as f64).round() as usize;
        let body = part(0.75);
        // As even or odd as the body, to be in its middle.
        let neck = part(0.3);
        Self {
            height,
            body,
            sleeve: [part(0.35), part(0.35)],
            neck: neck + (body + neck) % 2,
        }
    }

    fn width(&self) -> usize {
        self.body + 2 * self.sleeve[0]
    }

    /// Points of the grid around the outline.
    fn points(&self) -> usize {
        (self.width() + 1) * (self.height + 1)
    }

    fn point(&self, i: usize, j: usize) -> usize {
        j * (self.width() + 1) + i
    }

    /// Whether the cell with this lower left corner is cloth.
    fn is_cloth(&self, i: usize, j: usize) -> bool {
        let [length, width] = self.sleeve;
        let in_body = i >= length && i < length + self.body;
        j < self.height && i < self.width() && (in_body || j + width >= self.height)
    }

    /// The cells around a point that are cloth: lower left, lower right, upper left, upper right.
    fn around(&self, i: usize, j: usize) -> [bool; 4] {
        [(1, 1), (0, 1), (1, 0), (0, 0)].map(|(left, down)| {
            let (i, j) = (i.checked_sub(left), j.checked_sub(down));
            matches!((i, j), (Some(i), Some(j)) if self.is_cloth(i, j))
        })
    }

    fn touches(&self, i: usize, j: usize) -> bool {
        self.around(i, j).contains(&true)
    }

    /// Whether front and back share this point: it is on the outline, and not within an opening.
    fn is_sewn(&self, i: usize, j: usize) -> bool {
        let around = self.around(i, j);
        if around == [true; 4] || around == [false; 4] {
            return false;
        }
        let [length, width] = self.sleeve;
        let within = |at: usize, from: usize, to: usize| at > from && at < to;
        let hem = j == 0 && within(i, length, length + self.body);
        let cuff = (i == 0 || i == self.width()) && within(j, self.height - width, self.height);
        let left = (self.width() - self.neck) / 2;
        let neck = j == self.height && within(i, left, left + self.neck);
        !(hem || cuff || neck)
    }

    /// How far from the middle plane each point of a panel is, in cells: a quarter of a sine wave
    /// from the seams up, with the roundness of a sleeve.
    fn depths(&self) -> Vec<f64> {
        let radius = 0.5 * self.sleeve[1] as f64;
        let mut distance = vec![f64::INFINITY; self.points()];
        for j in 0..=self.height {
            for i in 0..=self.width() {
                if self.is_sewn(i, j) {
                    distance[self.point(i, j)] = 0.0;
                }
            }
        }
        self.sweep(&mut distance, |i, j| (i, j));
        let (last_i, last_j) = (self.width(), self.height);
        self.sweep(&mut distance, |i, j| (last_i - i, last_j - j));
        let depth = |d: f64| 0.5 * radius * libm::sin(FRAC_PI_2 * (d / radius).min(1.0));
        distance.into_iter().map(depth).collect()
    }

    /// Half of a chamfer distance transform [Borgefors 1986]: steps of 1 and √2 from what came
    /// before.
    fn sweep(&self, distance: &mut [f64], place: impl Fn(usize, usize) -> (usize, usize)) {
        let at = |i: usize, j: usize| {
            let (i, j) = place(i, j);
            self.point(i, j)
        };
        for j in 0..=self.height {
            for i in 0..=self.width() {
                let mut best = distance[at(i, j)];
                if i > 0 {
                    best = best.min(distance[at(i - 1, j)] + 1.0);
                }
                if j > 0 {
                    best = best.min(distance[at(i, j - 1)] + 1.0);
                    if i > 0 {
                        best = best.min(distance[at(i - 1, j - 1)] + std::f64::consts::SQRT_2);
                    }
                    if i < self.width() {
                        best = best.min(distance[at(i + 1, j - 1)] + std::f64::consts::SQRT_2);
                    }
                }
                distance[at(i, j)] = best;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::check_cloth;
    use super::*;

    fn upright(vertices: usize) -> TriMesh {
        shirt(0.7, vertices, DVec3::ZERO, DVec3::ZERO).unwrap()
    }

    /// A sphere with a hole for each opening: V - E + F = 2 - 4.
    #[test]
    fn a_shirt_has_four_openings_and_no_other_fault() {
        for vertices in [12, 13, 30, 61] {
            let mesh = upright(vertices);
            check_cloth(&mesh).unwrap();
            let edges = mesh.edges().len() as i64;
            let euler = mesh.positions.len() as i64 - edges + mesh.triangles.len() as i64;
            assert_eq!(euler, -2, "{vertices}");
        }
    }

    #[test]
    fn both_panels_face_outwards_and_no_edge_is_much_longer_than_a_cell() {
        let mesh = upright(40);
        let [low, high] = mesh.bounds().unwrap();
        let size = high - low;
        assert!(
            (size.z - 0.7).abs() < 1e-12 && (size.x - 1.45 * 0.7).abs() < 0.04,
            "{size}"
        );
        for t in &mesh.triangles {
            let [a, b, c] = mesh.corners(*t);
            let normal = (b - a).cross(c - a);
            let y = (a.y + b.y + c.y) / 3.0;
            assert!(normal.y * y > 0.0, "{normal} at {y}");
        }
        let cell = 0.7 / 39.0;
        let lengths = mesh
            .edges()
            .into_iter()
            .map(|[a, b]| mesh.positions[a as usize].distance(mesh.positions[b as usize]));
        let longest = lengths.fold(0.0, f64::max);
        assert!(longest < 1.9 * cell, "{}", longest / cell);
    }

    #[test]
    fn too_large_is_refused() {
        let refused = shirt(1.0, 1 << 40, DVec3::ZERO, DVec3::ZERO);
        assert!(matches!(refused, Err(MeshError::TooLarge { .. })));
    }
}
