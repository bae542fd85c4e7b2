//! A z-buffer that keeps, for every sample, what was hit.

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
    pub(super) position: Vec3,
    pub(super) normal: Vec3,
    pub(super) item: u32,
    /// Whether the triangle's front is seen.
    pub(super) front: bool,
}

/// Samples with depth.
#[derive(Clone, Debug)]
pub(super) struct Raster {
    width: usize,
    height: usize,
    depth: Vec<f32>,
    hits: Vec<Option<Hit>>,
}

impl Raster {
    pub(super) fn new(width: usize, height: usize) -> Self {
        let samples = width * height;
        Self {
            width,
            height,
            depth: vec![f32::INFINITY; samples],
            hits: vec![None; samples],
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

    /// Draws a triangle, clipped where it comes too near.
    pub(super) fn triangle(&mut self, corners: [Vertex; 3], item: u32, view: &Projection) {
        let placed = corners.map(|c| (view.to_view(c.position), c));
        if placed.iter().any(|(v, _)| !v.is_finite()) {
            return;
        }
        let near = view.near();
        if placed.iter().all(|(v, _)| v.z >= near) {
            self.fill(placed, item, view);
            return;
        }
        // The part in front of the near plane has three or four corners.
        let mut kept: Vec<(Vec3, Vertex)> = Vec::with_capacity(4);
        for k in 0..3 {
            let ((a, va), (b, vb)) = (placed[k], placed[(k + 1) % 3]);
            if a.z >= near {
                kept.push((a, va));
            }
            if (a.z >= near) != (b.z >= near) {
                let t = (near - a.z) / (b.z - a.z);
                let vertex = Vertex {
                    position: va.position.lerp(vb.position, t),
                    normal: va.normal.lerp(vb.normal, t),
                };
                kept.push((a.lerp(b, t).with_z(near), vertex));
            }
        }
        for k in 2..kept.len() {
            self.fill([kept[0], kept[k - 1], kept[k]], item, view);
        }
    }

    /// Averages blocks of samples into 8-bit pixels; `shade` gives linear light for a sample.
    pub(super) fn resolve(
        &self,
        block: usize,
        shade: impl Fn(Option<&Hit>, usize) -> Vec3,
    ) -> Vec<u8> {
        let (w, h) = (self.width / block, self.height / block);
        let mut pixels = Vec::with_capacity(3 * w * h);
        for y in 0..h {
            for x in 0..w {
                let mut sum = Vec3::ZERO;
                for sy in y * block..(y + 1) * block {
                    for sx in x * block..(x + 1) * block {
                        // Clamped per sample, so that a bright edge does not bleed.
                        let hit = self.hits[sy * self.width + sx].as_ref();
                        sum += shade(hit, sy).clamp(Vec3::ZERO, Vec3::ONE);
                    }
                }
                let mean = sum / (block * block) as f32;
                pixels.extend(mean.to_array().map(to_srgb));
            }
        }
        pixels
    }

    fn fill(&mut self, corners: [(Vec3, Vertex); 3], item: u32, view: &Projection) {
        let p = corners.map(|(v, _)| view.to_picture(v));
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
        for y in ys {
            for x in xs.clone() {
                let q = Vec2::new(x as f32 + 0.5, y as f32 + 0.5);
                let mut w = [
                    side(p[1], p[2], q) / area,
                    side(p[2], p[0], q) / area,
                    side(p[0], p[1], q) / area,
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
                let at = y * self.width + x;
                if depth < self.depth[at] {
                    self.depth[at] = depth;
                    let mix = |f: fn(&Vertex) -> Vec3| {
                        f(&corners[0].1) * w[0] + f(&corners[1].1) * w[1] + f(&corners[2].1) * w[2]
                    };
                    // The picture's y points down: fronts turn clockwise in it.
                    let front = area < 0.0;
                    let (position, normal) = (mix(|v| v.position), mix(|v| v.normal));
                    self.hits[at] = Some(Hit {
                        position,
                        normal,
                        item,
                        front,
                    });
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
