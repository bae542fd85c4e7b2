//! Draws the validation cases of `tests/validation` for the book: one small SVG for each curve, and
//! a table of errors found.
//!
//! `cargo run --release --example validation [FOLDER]`; the folder is `docs/src/validation` unless
//! said.

use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use plotters::prelude::*;

use validation::curve::{Curve, Series};

#[path = "../tests/validation/main.rs"]
mod validation;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args_os().nth(1);
    let folder = folder.map_or_else(|| PathBuf::from("docs/src/validation"), PathBuf::from);
    std::fs::create_dir_all(&folder)?;
    let mut table = "| picture | error found |\n|---|---|\n".to_owned();
    for (name, curves) in validation::all() {
        for (index, curve) in (1..).zip(curves()) {
            let file = format!("{name}-{index}.svg");
            draw(&curve, &folder.join(&file))?;
            writeln!(
                table,
                "| [{}](validation/{file}) | {} |",
                curve.title, curve.found
            )?;
        }
    }
    std::fs::write(folder.join("found.md"), table)?;
    Ok(())
}

fn draw(curve: &Curve, path: &Path) -> Result<(), Box<dyn Error>> {
    // Logarithms are plotted, and undone in the labels: one kind of chart serves all.
    let place = |[x, y]: [f64; 2]| {
        let scaled = |value: f64, logarithmic| {
            if logarithmic {
                f64::log10(value)
            } else {
                value
            }
        };
        (
            scaled(x, curve.x.logarithmic),
            scaled(y, curve.y.logarithmic),
        )
    };
    let points = curve
        .series
        .iter()
        .flat_map(|s| s.points.iter().map(|&p| place(p)));
    let mut range = [
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::INFINITY,
        f64::NEG_INFINITY,
    ];
    for (x, y) in points {
        range = [
            range[0].min(x),
            range[1].max(x),
            range[2].min(y),
            range[3].max(y),
        ];
    }
    let wide = |low: f64, high: f64| {
        let margin = 0.05 * (high - low).max(1e-3 * high.abs()).max(1e-12);
        low - margin..high + margin
    };
    let root = SVGBackend::new(path, (560, 380)).into_drawing_area();
    root.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&root)
        .margin(8)
        .caption(&curve.title, ("sans-serif", 16))
        .x_label_area_size(38)
        .y_label_area_size(62)
        .build_cartesian_2d(wide(range[0], range[1]), wide(range[2], range[3]))?;
    let label = |logarithmic: bool| {
        move |value: &f64| {
            let value = if logarithmic {
                10f64.powf(*value)
            } else {
                *value
            };
            let digits = if value.abs() < 1e-9 { 0.0 } else { value };
            if digits != 0.0 && !(1e-3..1e5).contains(&digits.abs()) {
                format!("{digits:.1e}")
            } else {
                let text = format!("{digits:.4}");
                text.trim_end_matches('0').trim_end_matches('.').to_owned()
            }
        }
    };
    chart
        .configure_mesh()
        .max_light_lines(0)
        .x_desc(curve.x.name)
        .y_desc(curve.y.name)
        .x_label_formatter(&label(curve.x.logarithmic))
        .y_label_formatter(&label(curve.y.logarithmic))
        .draw()?;
    for (
        index,
        Series {
            name,
            known,
            points,
        },
    ) in curve.series.iter().enumerate()
    {
        let color = Palette99::pick(index).to_rgba();
        let points = points.iter().map(|&p| place(p));
        if *known {
            chart
                .draw_series(LineSeries::new(points, color.stroke_width(2)))?
                .label(name)
                .legend(move |(x, y)| {
                    PathElement::new([(x, y), (x + 16, y)], color.stroke_width(2))
                });
        } else {
            chart
                .draw_series(points.map(|p| Circle::new(p, 4, color.stroke_width(2))))?
                .label(name)
                .legend(move |(x, y)| Circle::new((x + 8, y), 4, color.stroke_width(2)));
        }
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
