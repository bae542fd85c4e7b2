//! Drawings as PNG, without fonts and libraries of the system.

use std::io;

use super::drawing::{Anchor, Color, Drawing, Shape};
use super::font::{SIZE, letter};

/// Pixels to a point.
const SCALE: f64 = 2.0;
const INK: Color = [0, 0, 0];

struct Canvas {
    width: usize,
    height: usize,
    pixels: Vec<u8>,
}

impl Canvas {
    /// Mixes a color into a pixel; `cover` of it is covered.
    fn mix(&mut self, x: usize, y: usize, color: Color, cover: f64) {
        if x < self.width && y < self.height {
            let at = 3 * (y * self.width + x);
            for (pixel, color) in self.pixels[at..at + 3].iter_mut().zip(color) {
                let mixed = f64::from(*pixel) * (1.0 - cover) + f64::from(color) * cover;
                *pixel = mixed.round() as u8;
            }
        }
    }

    /// Fills what is nearer than `reach` to a point, given in pixels, by a distance; softly within
    /// a pixel.
    fn fill(
        &mut self,
        low: [f64; 2],
        high: [f64; 2],
        reach: f64,
        color: Color,
        distance: impl Fn([f64; 2]) -> f64,
    ) {
        let from = [0, 1].map(|k| (low[k] - reach - 1.0).max(0.0) as usize);
        let to = [0, 1].map(|k| (high[k] + reach + 2.0).max(0.0) as usize);
        for y in from[1]..to[1].min(self.height) {
            for x in from[0]..to[0].min(self.width) {
                let d = distance([x as f64 + 0.5, y as f64 + 0.5]);
                let cover = (reach + 0.5 - d).clamp(0.0, 1.0);
                if cover > 0.0 {
                    self.mix(x, y, color, cover);
                }
            }
        }
    }

    fn segment(&mut self, a: [f64; 2], b: [f64; 2], width: f64, color: Color) {
        let low = [0, 1].map(|k| a[k].min(b[k]));
        let high = [0, 1].map(|k| a[k].max(b[k]));
        self.fill(low, high, 0.5 * width, color, |p| {
            let (d, e) = ([b[0] - a[0], b[1] - a[1]], [p[0] - a[0], p[1] - a[1]]);
            let length = d[0] * d[0] + d[1] * d[1];
            let t = if length > 0.0 {
                (d[0] * e[0] + d[1] * e[1]) / length
            } else {
                0.0
            };
            let t = t.clamp(0.0, 1.0);
            (e[0] - t * d[0]).hypot(e[1] - t * d[1])
        });
    }

    fn text(&mut self, [x, y]: [f64; 2], anchor: Anchor, size: f64, text: &str) {
        // A letter of seven dots is about as high as a capital of this size.
        let dot = ((0.75 * size * SCALE / SIZE[1] as f64).round() as usize).max(1);
        let step = (SIZE[0] + 1) * dot;
        let length = text.chars().count() * step;
        let left = match anchor {
            Anchor::Start => x,
            Anchor::Middle => x - 0.5 * length as f64,
            Anchor::End => x - length as f64,
        };
        let top = (y - 0.5 * (SIZE[1] * dot) as f64).max(0.0) as usize;
        for (index, of) in text.chars().enumerate() {
            let left = left.max(0.0) as usize + index * step;
            for (column, bits) in letter(of).into_iter().enumerate() {
                for row in (0..8).filter(|row| bits >> row & 1 == 1) {
                    for dy in 0..dot {
                        for dx in 0..dot {
                            self.mix(left + column * dot + dx, top + row * dot + dy, INK, 1.0);
                        }
                    }
                }
            }
        }
    }
}

/// Length of a dash and of the gap behind it, in pixels.
const DASH: [f64; 2] = [8.0, 6.0];

impl Drawing {
    /// Writes the picture as PNG, two pixels to a point.
    ///
    /// # Errors
    /// The encoder's.
    pub fn png(&self) -> io::Result<Vec<u8>> {
        let [width, height] = self.size.map(|length| (length * SCALE).ceil() as usize);
        let mut canvas = Canvas {
            width,
            height,
            pixels: vec![255; 3 * width * height],
        };
        let pixel = |[x, y]: [f64; 2]| [x * SCALE, y * SCALE];
        for shape in &self.shapes {
            match shape {
                Shape::Line {
                    points,
                    color,
                    width,
                    dashed,
                } => {
                    let mut along = 0.0;
                    for pair in points.windows(2) {
                        let (a, b) = (pixel(pair[0]), pixel(pair[1]));
                        if !dashed {
                            canvas.segment(a, b, width * SCALE, *color);
                            continue;
                        }
                        let length = (b[0] - a[0]).hypot(b[1] - a[1]);
                        let at = |t: f64| [0, 1].map(|k| a[k] + (b[k] - a[k]) * t / length);
                        let mut t = 0.0;
                        while t < length {
                            let phase = (along + t) % (DASH[0] + DASH[1]);
                            let (end, ink) = if phase < DASH[0] {
                                (t + DASH[0] - phase, true)
                            } else {
                                (t + DASH[0] + DASH[1] - phase, false)
                            };
                            // Rounding must not stand still.
                            let end = end.min(length).max(t + 0.01);
                            if ink {
                                canvas.segment(at(t), at(end), width * SCALE, *color);
                            }
                            t = end;
                        }
                        along += length;
                    }
                }
                Shape::Disc { at, radius, color } => {
                    let center = pixel(*at);
                    canvas.fill(center, center, radius * SCALE, *color, |p| {
                        (p[0] - center[0]).hypot(p[1] - center[1])
                    });
                }
                Shape::Text {
                    at,
                    anchor,
                    size,
                    text,
                } => {
                    canvas.text(pixel(*at), *anchor, *size, text);
                }
            }
        }
        let mut out = Vec::new();
        let mut encoder = png::Encoder::new(&mut out, width as u32, height as u32);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        let mut writer = encoder.write_header().map_err(io::Error::other)?;
        writer
            .write_image_data(&canvas.pixels)
            .map_err(io::Error::other)?;
        writer.finish().map_err(io::Error::other)?;
        Ok(out)
    }
}
