//! Animations: pictures one after the other in one file, as APNG (PNG, third edition, section
//! 11.3.6). Browsers and pages play it, and programs that know PNG only show its first picture.
//!
//! For every picture but the first the file holds the rectangle in which it differs from the one
//! before.

use std::io::{self, Write};

use super::Picture;

/// How an animation plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Playing {
    /// How many pictures it has; at least one.
    pub pictures: u32,
    /// How long each is shown, in ms.
    pub delay: u16,
    /// Its size in pixels.
    pub size: [u32; 2],
}

/// An animation that is being written.
pub struct Animation<W: Write> {
    writer: png::Writer<W>,
    last: Option<Picture>,
}

impl<W: Write> std::fmt::Debug for Animation<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Animation").finish_non_exhaustive()
    }
}

/// The columns and rows of a picture from the first to behind the last that differ.
struct Changed {
    x: [usize; 2],
    y: [usize; 2],
}

impl<W: Write> Animation<W> {
    /// Begins a file. The animation plays over and over.
    ///
    /// # Errors
    /// The file cannot be written, or has no pictures.
    pub fn begin(out: W, playing: Playing) -> io::Result<Self> {
        let [width, height] = playing.size;
        let mut encoder = png::Encoder::new(out, width, height);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        encoder.set_compression(png::Compression::Balanced);
        encoder.validate_sequence(true);
        encoder.set_animated(playing.pictures, 0)?;
        encoder.set_frame_delay(playing.delay, 1000)?;
        encoder.set_blend_op(png::BlendOp::Source)?;
        encoder.set_dispose_op(png::DisposeOp::None)?;
        Ok(Self {
            writer: encoder.write_header()?,
            last: None,
        })
    }

    /// Adds a picture, of the size of the animation.
    ///
    /// # Errors
    /// The file cannot be written, or has all its pictures.
    pub fn add(&mut self, picture: Picture) -> io::Result<()> {
        let width = picture.width as usize;
        let Some(last) = &self.last else {
            self.writer.write_image_data(&picture.pixels)?;
            self.last = Some(picture);
            return Ok(());
        };
        let Changed { x, y } = changed(&last.pixels, &picture.pixels, width);
        self.writer.reset_frame_position()?;
        (self.writer).set_frame_dimension((x[1] - x[0]) as u32, (y[1] - y[0]) as u32)?;
        self.writer.set_frame_position(x[0] as u32, y[0] as u32)?;
        let rows = picture.pixels.chunks_exact(3 * width);
        let rows = rows.skip(y[0]).take(y[1] - y[0]);
        let part: Vec<u8> = rows
            .flat_map(|row| &row[3 * x[0]..3 * x[1]])
            .copied()
            .collect();
        self.writer.write_image_data(&part)?;
        self.last = Some(picture);
        Ok(())
    }

    /// Ends the file.
    ///
    /// # Errors
    /// It cannot be written, or lacks pictures.
    pub fn finish(self) -> io::Result<()> {
        self.writer.finish()?;
        Ok(())
    }
}

/// The rectangle outside of which pictures of this width are equal: at least one pixel, for APNG
/// has no empty ones.
fn changed(before: &[u8], after: &[u8], width: usize) -> Changed {
    let rows = before
        .chunks_exact(3 * width)
        .zip(after.chunks_exact(3 * width));
    let (mut x, mut y) = ([width, 0], [usize::MAX, 0]);
    for (at, (one, other)) in rows.enumerate() {
        if one == other {
            continue;
        }
        y = [y[0].min(at), at + 1];
        let differs = |k: &usize| one[3 * k..3 * k + 3] != other[3 * k..3 * k + 3];
        let first = (0..width).find(differs).unwrap_or(0);
        let last = (0..width).rev().find(differs).unwrap_or(0);
        x = [x[0].min(first), x[1].max(last + 1)];
    }
    if y[0] >= y[1] {
        return Changed {
            x: [0, 1],
            y: [0, 1],
        };
    }
    Changed { x, y }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(paint: impl Fn(u32, u32) -> [u8; 3]) -> Picture {
        let pixels = (0..8).flat_map(|y| (0..10).flat_map(move |x| [x, y]).collect::<Vec<_>>());
        let places: Vec<u32> = pixels.collect();
        Picture {
            width: 10,
            height: 8,
            pixels: (places.chunks_exact(2))
                .flat_map(|at| paint(at[0], at[1]))
                .collect(),
        }
    }

    /// Reads an animation: all pictures as they are seen, and the areas that the file holds.
    fn read(bytes: &[u8]) -> (Vec<Picture>, Vec<usize>) {
        let mut reader = png::Decoder::new(io::Cursor::new(bytes))
            .read_info()
            .unwrap();
        let count = reader.info().animation_control().unwrap().num_frames;
        let mut seen = picture(|_, _| [0; 3]);
        let (mut pictures, mut areas) = (Vec::new(), Vec::new());
        for _ in 0..count {
            let mut part = vec![0; 3 * 80];
            reader.next_frame(&mut part).unwrap();
            let control = *reader.info().frame_control().unwrap();
            let (w, h) = (control.width as usize, control.height as usize);
            for y in 0..h {
                let to = 3 * (10 * (y + control.y_offset as usize) + control.x_offset as usize);
                seen.pixels[to..to + 3 * w].copy_from_slice(&part[3 * w * y..3 * w * (y + 1)]);
            }
            pictures.push(seen.clone());
            areas.push(w * h);
        }
        (pictures, areas)
    }

    /// Begins an animation with this number of pictures.
    fn begin(bytes: &mut Vec<u8>, pictures: u32) -> Animation<&mut Vec<u8>> {
        let playing = Playing {
            pictures,
            delay: 40,
            size: [10, 8],
        };
        Animation::begin(bytes, playing).unwrap()
    }

    #[test]
    fn an_animation_is_read_again_and_holds_only_the_parts_that_change() {
        let still = picture(|x, y| [x as u8, y as u8, 9]);
        let dot = picture(|x, y| {
            if (x, y) == (4, 5) {
                [255; 3]
            } else {
                [x as u8, y as u8, 9]
            }
        });
        let bar = picture(|x, y| {
            if y == 2 && x > 6 {
                [1; 3]
            } else {
                [x as u8, y as u8, 9]
            }
        });
        let all = [still.clone(), dot, bar, still.clone(), still];
        let mut bytes = Vec::new();
        let mut animation = begin(&mut bytes, 5);
        all.iter()
            .for_each(|picture| animation.add(picture.clone()).unwrap());
        animation.finish().unwrap();
        let (pictures, areas) = read(&bytes);
        assert_eq!(pictures, all);
        // From the dot to the bar is a box around both.
        assert_eq!(areas, [80, 1, 6 * 4, 3, 1]);
    }

    #[test]
    fn an_animation_that_lacks_pictures_is_an_error() {
        let mut bytes = Vec::new();
        let mut animation = begin(&mut bytes, 2);
        animation.add(picture(|_, _| [7; 3])).unwrap();
        assert!(animation.finish().is_err());
    }
}
