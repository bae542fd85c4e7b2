//! Draws the Mandelbrot set: results that come one by one, and a task that is split by halves.
//!
//! Rows of the picture cost as much as they have points of the set, and nobody knows before. One
//! task has all rows; it emits each as soon as it is done, and gives half of those that are left to
//! a rank that asks. The first rank puts rows into the picture in the order in which they arrive.
//!
//! Sample runs:
//! ```text
//! $ mandelbrot 300 250
//! 300 x 250: 15112 points inside
//! area 1.51
//! $ mandelbrot 300 250 3
//! 300 x 250: 15112 points inside
//! $ mandelbrot 600 500 4 mandelbrot.pgm
//! 600 x 500: 60451 points inside
//! ```

#![allow(clippy::print_stdout, reason = "an example prints")]

use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write as _};

use serde::{Deserialize, Serialize};
use weft_runtime::comm::threads::launch;
use weft_runtime::{Context, Registry, ScopeError, ScopeOptions, Split, Step, Task, scope};

/// A point that is not gone after this many steps is inside.
const STEPS: u32 = 1000;
/// The view of the picture: a corner, and its width and height.
const VIEW: [f64; 4] = [-2.25, -1.25, 3.0, 2.5];
/// Most points in a row or a column.
const LARGEST: u32 = 16384;

/// Width and height in points.
struct Size(u32, u32);

/// Rows still to be drawn.
#[derive(Serialize, Deserialize)]
struct Rows {
    next: u32,
    end: u32,
}

/// A row as it is drawn: points inside are black.
#[derive(Serialize, Deserialize)]
struct Row {
    number: u32,
    shades: Vec<u8>,
    inside: u64,
}

/// The number of steps after which a point is gone, at most [`STEPS`].
fn steps(x: f64, y: f64) -> u32 {
    let (mut a, mut b) = (0.0, 0.0);
    for step in 0..STEPS {
        if a * a + b * b > 4.0 {
            return step;
        }
        (a, b) = (a * a - b * b + x, 2.0 * a * b + y);
    }
    STEPS
}

impl Task<Size> for Rows {
    const NAME: &'static str = "rows";
    type Output = Row;

    fn run(&mut self, &Size(width, height): &Size, cx: &mut Context<'_, Size, Row>) -> Step<Row> {
        let mut row = Row {
            number: self.next,
            shades: Vec::with_capacity(width as usize),
            inside: 0,
        };
        let [left, top, wide, high] = VIEW;
        let y = top + high * (f64::from(row.number) + 0.5) / f64::from(height);
        for column in 0..width {
            let x = left + wide * (f64::from(column) + 0.5) / f64::from(width);
            let steps = steps(x, y);
            row.inside += u64::from(steps == STEPS);
            row.shades.push(255 - steps.min(255) as u8);
            cx.charge(u64::from(steps) / 10);
        }
        self.next += 1;
        if self.next >= self.end {
            return Step::Done(row);
        }
        cx.emit(row);
        Step::More
    }

    fn split(&mut self, _how: Split) -> Option<Self> {
        let left = self.end - self.next;
        (left >= 2).then(|| {
            let end = self.end;
            self.end -= left / 2;
            Self {
                next: self.end,
                end,
            }
        })
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let usage = "mandelbrot WIDTH HEIGHT [RANKS] [FILE.pgm]";
    let mut arguments = std::env::args().skip(1);
    let width: u32 = arguments.next().ok_or(usage)?.parse()?;
    let height: u32 = arguments.next().ok_or(usage)?.parse()?;
    let ranks: usize = arguments.next().map_or(Ok(1), |text| text.parse())?;
    let file = arguments.next();
    if !(1..=LARGEST).contains(&width) || !(1..=LARGEST).contains(&height) {
        return Err(format!("a picture has from 1 to {LARGEST} points in a row or column").into());
    }
    let registry = Registry::new().with::<Rows>();
    let size = Size(width, height);
    let pictures = launch(ranks, |comm| {
        let options = ScopeOptions::default();
        let (picture, _report) = scope(comm, &registry, &size, &options, |s| {
            let group = s.group();
            let mut picture = Vec::new();
            if s.rank().index() == 0 {
                picture.resize(width as usize * height as usize, 0);
                let (next, end) = (0, height);
                s.fork(&group, Rows { next, end })?;
            }
            let mut inside = 0;
            while let Some(row) = s.join(&group)? {
                let row = row?;
                inside += row.inside;
                let start = row.number as usize * row.shades.len();
                picture[start..][..row.shades.len()].copy_from_slice(&row.shades);
            }
            Ok((picture, inside))
        })?;
        Ok::<(Vec<u8>, u64), ScopeError>(picture)
    })?;
    let (picture, inside) = pictures.into_iter().next().ok_or("no ranks")??;
    println!("{width} x {height}: {inside} points inside");
    let area = VIEW[2] * VIEW[3] * inside as f64 / (f64::from(width) * f64::from(height));
    // The set's own is 1.506.
    println!("area {area:.2}");
    if let Some(file) = file {
        let mut out = BufWriter::new(File::create(file)?);
        write!(out, "P5\n{width} {height}\n255\n")?;
        out.write_all(&picture)?;
        out.flush()?;
    }
    Ok(())
}
