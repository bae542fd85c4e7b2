//! Draws how long each frame of some runs took: figure 14 of Selle, Su, Irving, Fedkiw: Robust
//! high-resolution cloth using parallelism, history-based collisions, and accurate friction (2009).
//!
//! `cargo run --example outer_loop SVG FRAME [NAME=RUN]…`: FRAME is the time of a frame in s, and
//! each RUN a folder with a `history.csv`.

use std::collections::BTreeMap;
use std::error::Error;
use std::ffi::OsString;
use std::fs;
use std::path::Path;

use plotters::prelude::*;

/// The columns whose sum is the time that a step takes, in s.
const PHASES: [&str; 5] = ["collide_s", "physics_s", "solve_s", "response_s", "share_s"];

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let usage = "outer_loop SVG FRAME [NAME=RUN]…";
    let picture = arguments.next().ok_or(usage)?;
    let frame: f64 = text(arguments.next().ok_or(usage)?)?.parse()?;
    let mut runs = Vec::new();
    for argument in arguments {
        let argument = text(argument)?;
        let (name, run) = argument.rsplit_once('=').ok_or(usage)?;
        runs.push((name.to_owned(), times(Path::new(run), frame)?));
    }
    draw(Path::new(&picture), &runs)
}

fn text(argument: OsString) -> Result<String, Box<dyn Error>> {
    argument
        .into_string()
        .map_err(|_| "an argument is no text".into())
}

/// How long the steps of each frame took, in s, by the number of the frame.
fn times(run: &Path, frame: f64) -> Result<Vec<(f64, f64)>, Box<dyn Error>> {
    let history = fs::read_to_string(run.join("history.csv"))?;
    let mut lines = history.lines();
    let columns: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    let place = |name: &str| {
        let mut places = columns
            .iter()
            .position(|column| *column == name)
            .into_iter();
        places
            .next()
            .ok_or_else(|| format!("history.csv has no {name}"))
    };
    let time = place("time_s")?;
    let phases: Vec<usize> = PHASES.into_iter().map(place).collect::<Result<_, _>>()?;
    let mut sums: BTreeMap<u64, f64> = BTreeMap::new();
    for line in lines {
        let cells: Vec<&str> = line.split(',').collect();
        let number = |place: usize| -> Result<f64, Box<dyn Error>> {
            Ok(cells.get(place).ok_or("a line is cut off")?.parse()?)
        };
        let ended = number(time)?;
        let mut took = 0.0;
        for &phase in &phases {
            took += number(phase)?;
        }
        // A step that ends with a frame is part of it, for all rounding.
        *sums.entry((ended / frame - 1e-6) as u64).or_default() += took;
    }
    Ok(sums
        .into_iter()
        .map(|(frame, took)| (frame as f64, took))
        .collect())
}

fn draw(picture: &Path, runs: &[(String, Vec<(f64, f64)>)]) -> Result<(), Box<dyn Error>> {
    let all = || runs.iter().flat_map(|(_, points)| points);
    let last = all().map(|point| point.0).fold(1.0, f64::max);
    let most = all().map(|point| point.1).fold(1e-3, f64::max);
    let root = SVGBackend::new(picture, (720, 420)).into_drawing_area();
    root.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&root)
        .margin(8)
        .x_label_area_size(38)
        .y_label_area_size(62)
        .build_cartesian_2d(0.0..last, 0.0..1.05 * most)?;
    chart
        .configure_mesh()
        .max_light_lines(0)
        .x_desc("frame")
        .y_desc("time of a frame in s")
        .draw()?;
    for (index, (name, points)) in runs.iter().enumerate() {
        let style = Palette99::pick(index).to_rgba().stroke_width(2);
        chart
            .draw_series(LineSeries::new(points.iter().copied(), style))?
            .label(name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], style));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK.mix(0.3))
        .draw()?;
    root.present()?;
    Ok(())
}
