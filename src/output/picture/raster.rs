//! A z-buffer that keeps, for every sample, which triangle was hit and where.

use glam::{Vec2, Vec3};

use super::camera::Projection;

/// A corner of a triangle to draw.
#[derive(Clone, Copy, Debug)]
pub(super) struct Vertex {
    pub(super) position: Vec3,
    pub(super) normal: Vec3,
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

    /// The number that the triangle was drawn with.
    pub(super) fn triangle(&self) -> usize {
        self.triangle as usize
    }

    /// Position and normal, from the triangle's corners.
    pub(super) fn mix(&self, corners: &[Vertex; 3]) -> Vertex {
        let [v, w] = self.weights;
        let mix = |f: fn(&Vertex) -> Vec3| {
            f(&corners[0]) * (1.0 - v - w) + f(&corners[1]) * v + f(&corners[2]) * w
        };
        Vertex {
            position: mix(|c| c.position),
            normal: mix(|c| c.normal),
        }
    }
}

/// Samples with depth.
#[derive(Clone, Debug)]
pub(super) struct Raster {
    width: usize,
    height: usize,
    depth: Vec<f32>,
    /// Empty if only depth is wanted.
    hits: Vec<Hit>,
}

impl Raster {
    pub(super) fn new(width: usize, height: usize) -> Self {
        Self {
            hits: vec![Hit::NOTHING; width * height],
            ..Self::depth_only(width, height)
        }
    }

    /// One that keeps depth, but not what was hit.
    pub(super) fn depth_only(width: usize, height: usize) -> Self {
        Self {
            width,
            height,
            depth: vec![f32::INFINITY; width * height],
            hits: Vec::new(),
        }
    }

    /// Depth at a sample in m; `None` outside or where nothing was hit.
    pub(super) fn depth(&self, x: i64, y: i64) -> Option<f32> {
        let (x, y) = (usize::try_from(x).ok()?, usize::try_from(y).ok()?);
        let inside = x < self.width && y < self.height;
        inside
            .then(|| self.depth[y * self.width + x])
            .filter(|d| d.is_finite())
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

    /// Averages blocks of samples into 8-bit pixels; `shade` gives linear light for a sample.
    pub(super) fn resolve(
        &self,
        block: usize,
        shade: impl Fn(Option<Hit>, usize) -> Vec3,
    ) -> Vec<u8> {
        let (w, h) = (self.width / block, self.height / block);
        let mut pixels = Vec::with_capacity(3 * w * h);
        for y in 0..h {
            for x in 0..w {
                let mut sum = Vec3::ZERO;
                for sy in y * block..(y + 1) * block {
                    for sx in x * block..(x + 1) * block {
                        // Clamped per sample, so that a bright edge does not bleed.
                        let hit = self.hits[sy * self.width + sx];
                        let hit = (hit.triangle != u32::MAX).then_some(hit);
                        sum += shade(hit, sy).clamp(Vec3::ZERO, Vec3::ONE);
                    }
                }
                let mean = sum / (block * block) as f32;
                pixels.extend(mean.to_array().map(to_srgb));
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
            self.height,
        );
        let inverse = 1.0 / area;
        for y in ys {
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
                let sample = y * self.width + x;
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

/// Linear light as an 8-bit sRGB value.
fn to_srgb(linear: f32) -> u8 {
    let encoded = if linear <= 0.003_130_8 {
        12.92 * linear
    } else {
        1.055 * linear.powf(1.0 / 2.4) - 0.055
    };
    (encoded * 255.0 + 0.5) as u8
}
