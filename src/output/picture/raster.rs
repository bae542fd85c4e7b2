//! A z-buffer that keeps, for every sample, which triangle was hit and where.
//!
//! It may have some rows of a picture only. A thread that draws all triangles into its rows gets
//! the samples that a buffer with all rows has there.

use std::sync::LazyLock;

use glam::{Vec2, Vec3};

use super::camera::Projection;

/// A corner of a triangle to draw.
#[derive(Clone, Copy, Debug)]
pub(super) struct Vertex {
    pub(super) position: Vec3,
    pub(super) normal: Vec3,
    /// Its place on a checker, in cells.
    pub(super) cell: Vec3,
}

/// The nearest surface at a sample.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hit {
    /// The number it was drawn with.
    triangle: u32,
    /// Weights of its second and third corner.
    weights: [f32; 2],
}

impl Hit {
    const NOTHING: Self = Self {
        triangle: u32::MAX,
        weights: [0.0; 2],
    };

    /// The middle of hits of one triangle, the first of which is this.
    fn mean(self, others: &[Self]) -> Self {
        let count = (1 + others.len()) as f32;
        let mean =
            |k: usize| (self.weights[k] + others.iter().map(|o| o.weights[k]).sum::<f32>()) / count;
        Self {
            triangle: self.triangle,
            weights: [mean(0), mean(1)],
        }
    }

    /// The number that the triangle was drawn with.
    pub(super) fn triangle(&self) -> usize {
        self.triangle as usize
    }

    /// Position, normal and place on a checker, from the triangle's corners.
    pub(super) fn mix(&self, corners: &[Vertex; 3]) -> Vertex {
        let [v, w] = self.weights;
        let mix = |f: fn(&Vertex) -> Vec3| {
            f(&corners[0]) * (1.0 - v - w) + f(&corners[1]) * v + f(&corners[2]) * w
        };
        Vertex {
            position: mix(|c| c.position),
            normal: mix(|c| c.normal),
            cell: mix(|c| c.cell),
        }
    }
}

/// Samples with depth.
#[derive(Clone, Debug)]
pub(super) struct Raster {
    width: usize,
    /// The number among the rows kept here of each row of the picture; [`ELSEWHERE`] if it is not
    /// kept.
    places: Vec<u32>,
    depth: Vec<f32>,
    /// Empty if only depth is wanted.
    hits: Vec<Hit>,
}

/// A row that another raster keeps.
const ELSEWHERE: u32 = u32::MAX;

impl Raster {
    /// One for the rows of a picture that `keeps` is true for.
    pub(super) fn new(width: usize, height: usize, keeps: impl Fn(usize) -> bool) -> Self {
        let mut kept = 0;
        let mut place = |row| {
            let here = keeps(row);
            kept += u32::from(here);
            if here { kept - 1 } else { ELSEWHERE }
        };
        let places = (0..height).map(&mut place).collect();
        let samples = width * kept as usize;
        Self {
            width,
            places,
            depth: vec![f32::INFINITY; samples],
            hits: vec![Hit::NOTHING; samples],
        }
    }

    /// One with all rows that keeps depth, but not what was hit.
    pub(super) fn depth_only(width: usize, height: usize) -> Self {
        Self {
            width,
            places: (0..height as u32).collect(),
            depth: vec![f32::INFINITY; width * height],
            hits: Vec::new(),
        }
    }

    /// The beginning of the samples of a row, if they are kept here.
    #[inline]
    fn row(&self, y: usize) -> Option<usize> {
        let place = *self.places.get(y)?;
        (place != ELSEWHERE).then_some(place as usize * self.width)
    }

    /// Depth at a sample in m; `None` outside or where nothing was hit.
    pub(super) fn depth(&self, x: i64, y: i64) -> Option<f32> {
        let (x, y) = (usize::try_from(x).ok()?, usize::try_from(y).ok()?);
        let row = self.row(y).filter(|_| x < self.width)?;
        Some(self.depth[row + x]).filter(|d| d.is_finite())
    }

    /// Draws a triangle under a number, clipped where it comes too near.
    pub(super) fn triangle(&mut self, corners: [Vec3; 3], number: u32, view: &Projection) {
        let placed = corners.map(|p| view.to_view(p));
        if placed.iter().any(|v| !v.is_finite()) {
            return;
        }
        let near = view.near();
        let whole = [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]];
        if placed.iter().all(|v| v.z >= near) {
            self.fill(placed, whole, number, view);
            return;
        }
        // The part in front of the near plane has three or four corners.
        let mut kept: Vec<(Vec3, [f32; 2])> = Vec::with_capacity(4);
        for k in 0..3 {
            let (a, b) = (placed[k], placed[(k + 1) % 3]);
            let (at_a, at_b) = (whole[k], whole[(k + 1) % 3]);
            if a.z >= near {
                kept.push((a, at_a));
            }
            if (a.z >= near) != (b.z >= near) {
                let t = (near - a.z) / (b.z - a.z);
                let at = [0, 1].map(|i| at_a[i] + t * (at_b[i] - at_a[i]));
                kept.push((a.lerp(b, t).with_z(near), at));
            }
        }
        for k in 2..kept.len() {
            let part = [kept[0], kept[k - 1], kept[k]];
            self.fill(part.map(|c| c.0), part.map(|c| c.1), number, view);
        }
    }

    /// Averages blocks of samples into 8-bit pixels, of the rows that are kept; `shade` gives
    /// linear light of a hit, `behind` that of a row where there is none. The part of a triangle
    /// that a pixel sees is shaded once.
    pub(super) fn resolve(
        &self,
        block: usize,
        behind: impl Fn(usize) -> Vec3,
        shade: impl Fn(Hit) -> Vec3,
    ) -> Vec<u8> {
        let width = self.width / block;
        let mut pixels = Vec::with_capacity(3 * self.hits.len() / (block * block));
        let mut seen: Vec<Hit> = Vec::with_capacity(block * block);
        let srgb = |sum: Vec3| (sum / (block * block) as f32).to_array().map(to_srgb);
        for top in (0..self.places.len()).step_by(block) {
            if self.row(top).is_none() {
                continue;
            }
            let rows = top..top + block;
            let behind: Vec<Vec3> = (rows.clone())
                .map(|row| behind(row).clamp(Vec3::ZERO, Vec3::ONE))
                .collect();
            let nothing = (behind.iter()).flat_map(|light| std::iter::repeat_n(*light, block));
            let nothing = srgb(nothing.fold(Vec3::ZERO, |sum, light| sum + light));
            for x in 0..width {
                seen.clear();
                let mut sum = Vec3::ZERO;
                for (y, behind) in rows.clone().zip(&behind) {
                    let Some(row) = self.row(y) else { continue };
                    for hit in &self.hits[row + x * block..row + (x + 1) * block] {
                        if hit.triangle == Hit::NOTHING.triangle {
                            sum += *behind;
                        } else {
                            seen.push(*hit);
                        }
                    }
                }
                if seen.is_empty() {
                    pixels.extend(nothing);
                    continue;
                }
                seen.sort_by_key(|hit| hit.triangle);
                for same in seen.chunk_by(|a, b| a.triangle == b.triangle) {
                    // Clamped each for itself, so that a bright edge does not bleed.
                    let light = shade(same[0].mean(&same[1..]));
                    sum += light.clamp(Vec3::ZERO, Vec3::ONE) * same.len() as f32;
                }
                pixels.extend(srgb(sum));
            }
        }
        pixels
    }

    /// Draws what lies in front; `at` are the corners' weights in the whole triangle.
    fn fill(&mut self, corners: [Vec3; 3], at: [[f32; 2]; 3], number: u32, view: &Projection) {
        let p = corners.map(|v| view.to_picture(v));
        let side =
            |a: Vec3, b: Vec3, q: Vec2| (b.x - a.x) * (q.y - a.y) - (b.y - a.y) * (q.x - a.x);
        let area = side(p[0], p[1], p[2].truncate());
        if area == 0.0 || !area.is_finite() {
            return;
        }
        let range = |low: f32, high: f32, size: usize| {
            // A saturating conversion: what lies outside is cut off.
            let first = (low - 0.5).ceil().max(0.0) as usize;
            let end = ((high - 0.5).floor() + 1.0).max(0.0) as usize;
            first..end.min(size)
        };
        let xs = range(
            p[0].x.min(p[1].x).min(p[2].x),
            p[0].x.max(p[1].x).max(p[2].x),
            self.width,
        );
        let ys = range(
            p[0].y.min(p[1].y).min(p[2].y),
            p[0].y.max(p[1].y).max(p[2].y),
            self.places.len(),
        );
        let inverse = 1.0 / area;
        for y in ys {
            let Some(row) = self.row(y) else { continue };
            for x in xs.clone() {
                let q = Vec2::new(x as f32 + 0.5, y as f32 + 0.5);
                let mut w = [
                    side(p[1], p[2], q) * inverse,
                    side(p[2], p[0], q) * inverse,
                    side(p[0], p[1], q) * inverse,
                ];
                if w.iter().any(|&w| w < 0.0) {
                    continue;
                }
                if view.perspective() {
                    // Weights in space: those in the picture over depth.
                    for (w, p) in w.iter_mut().zip(&p) {
                        *w /= p.z;
                    }
                    let sum = w[0] + w[1] + w[2];
                    w = w.map(|w| w / sum);
                }
                let depth = w[0] * p[0].z + w[1] * p[1].z + w[2] * p[2].z;
                let sample = row + x;
                if depth < self.depth[sample] {
                    self.depth[sample] = depth;
                    if let Some(hit) = self.hits.get_mut(sample) {
                        let weight = |i: usize| w[0] * at[0][i] + w[1] * at[1][i] + w[2] * at[2][i];
                        *hit = Hit {
                            triangle: number,
                            weights: [weight(0), weight(1)],
                        };
                    }
                }
            }
        }
    }
}

/// Linear light as an 8-bit sRGB value, to the nearest or the next one.
fn to_srgb(linear: f32) -> u8 {
    /// Enough for a fifth of a value where the curve is steepest.
    const STEPS: usize = 1 << 14;
    static TABLE: LazyLock<Vec<u8>> = LazyLock::new(|| {
        let value = |k: usize| {
            let linear = k as f32 / STEPS as f32;
            let encoded = if linear <= 0.003_130_8 {
                12.92 * linear
            } else {
                1.055 * linear.powf(1.0 / 2.4) - 0.055
            };
            (encoded * 255.0 + 0.5) as u8
        };
        (0..=STEPS).map(value).collect()
    });
    TABLE[((linear * STEPS as f32 + 0.5) as usize).min(STEPS)]
}
