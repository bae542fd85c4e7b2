//! One panel: a line for each policy, or for each number of ranks, over ranks or over patches.

use super::drawing::{Anchor, Color, Drawing};
use super::{AXIS, BOUND, COLORS, GREY, PANEL, Quantity};
use crate::tables::Row;

/// Space for labels: left, top, right, bottom.
const LABELS: [f64; 4] = [38.0, 34.0, 12.0, 30.0];
/// The greatest efficiency that is drawn where it is, in %.
const MOST_EFFICIENT: f64 = 105.0;
const GRID: Color = [235, 235, 235];

/// The quantity of the horizontal axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Over {
    Ranks,
    /// The number of patches, of one scene that is cut in several ways.
    Patches,
}

impl Over {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Ranks => "ranks",
            Self::Patches => "patches",
        }
    }

    fn of(self, row: &Row) -> f64 {
        match self {
            Self::Ranks => row.ranks as f64,
            Self::Patches => row.patches as f64,
        }
    }
}

/// The property in which lines differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    Policy,
    Ranks,
}

impl By {
    /// The name of the line that a row is on.
    pub(super) fn name(self, row: &Row) -> String {
        match (self, row.ranks) {
            (Self::Policy, _) => row.policy.clone(),
            (Self::Ranks, 1) => "1 rank".to_owned(),
            (Self::Ranks, ranks) => format!("{ranks} ranks"),
        }
    }
}

/// The common properties of all panels of a picture.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axes<'a> {
    pub(super) quantity: Quantity,
    pub(super) over: Over,
    pub(super) by: By,
    /// Names of the lines, in the order of colors.
    pub(super) lines: &'a [String],
}

/// A panel's frame: from values to points of the drawing.
struct Frame {
    x: [f64; 2],
    y: [f64; 2],
    /// The least and the greatest value of each axis.
    across: [f64; 2],
    up: [f64; 2],
    quantity: Quantity,
}

impl Frame {
    fn new([left, top]: [f64; 2], axes: &Axes<'_>, rows: &[&Row]) -> Self {
        let values = || rows.iter().map(|row| axes.over.of(row));
        let most = values().fold(1.0, f64::max);
        let across = match axes.over {
            Over::Ranks => [1.0, most.max(2.0)],
            Over::Patches => {
                let least = values().fold(most, f64::min);
                [least, most.max(2.0 * least)]
            }
        };
        // Down to where many take longer than one, by powers of two.
        let speedups = rows.iter().map(|row| row.speedup);
        let slowest = speedups.filter(|&s| s > 0.0).fold(0.5, f64::min);
        Self {
            x: [left + LABELS[0], left + PANEL[0] - LABELS[2]],
            y: [top + PANEL[1] - LABELS[3], top + LABELS[1]],
            across,
            up: match axes.quantity {
                Quantity::Efficiency => [0.0, MOST_EFFICIENT],
                Quantity::Speedup => [slowest.log2().floor().exp2(), across[1]],
            },
            quantity: axes.quantity,
        }
    }

    fn x(&self, value: f64) -> f64 {
        let [least, most] = self.across.map(f64::log2);
        self.x[0] + (self.x[1] - self.x[0]) * (value.log2() - least) / (most - least)
    }

    fn y(&self, value: f64) -> f64 {
        let up = match self.quantity {
            Quantity::Efficiency => value / self.up[1],
            Quantity::Speedup => {
                let [least, most] = self.up.map(f64::log2);
                (value.max(self.up[0]).log2() - least) / (most - least)
            }
        };
        self.y[0] + (self.y[1] - self.y[0]) * up.clamp(0.0, 1.0)
    }

    /// Whether a value is higher than the frame, where rounding is nothing.
    fn is_above(&self, value: f64) -> bool {
        value > self.up[1] * (1.0 + 1e-9)
    }
}

/// Draws a panel of these rows.
pub(super) fn panel(
    drawing: &mut Drawing,
    corner: [f64; 2],
    title: &str,
    rows: &[&Row],
    axes: &Axes<'_>,
) {
    let frame = Frame::new(corner, axes, rows);
    scales(drawing, corner, title, axes, &frame);
    let value = |row: &Row, speedup: f64| match axes.quantity {
        Quantity::Efficiency => 100.0 * speedup / row.ranks as f64,
        Quantity::Speedup => speedup,
    };
    let [least, most] = frame.across;
    let perfect = match axes.quantity {
        Quantity::Efficiency => [100.0; 2],
        Quantity::Speedup => [least, most],
    };
    let ends = [
        [frame.x[0], frame.y(perfect[0])],
        [frame.x[1], frame.y(perfect[1])],
    ];
    drawing.line(&ends, GREY, 1.0, false);
    if axes.by == By::Policy {
        // The bound of the policy that allows most.
        let mut best: Vec<(f64, f64)> = Vec::new();
        let bounded = rows.iter().filter_map(|row| Some((row, row.bound?)));
        for (row, of_row) in bounded {
            let at = axes.over.of(row);
            match best.iter_mut().find(|(other, _)| *other == at) {
                Some((_, bound)) => *bound = bound.max(value(row, of_row)),
                None => best.push((at, value(row, of_row))),
            }
        }
        let line = best.iter().map(|&(at, b)| [frame.x(at), frame.y(b)]);
        drawing.line(&line.collect::<Vec<_>>(), BOUND, 1.2, true);
    }
    for (name, &color) in axes.lines.iter().zip(COLORS.iter().cycle()) {
        let mut of = rows.to_vec();
        of.retain(|row| axes.by.name(row) == *name);
        of.sort_by(|a, b| axes.over.of(a).total_cmp(&axes.over.of(b)));
        let place = |row: &Row| [frame.x(axes.over.of(row)), frame.y(value(row, row.speedup))];
        let line: Vec<[f64; 2]> = of.iter().map(|row| place(row)).collect();
        drawing.line(&line, color, 1.8, false);
        for row in of {
            let [px, py] = place(row);
            drawing.disc([px, py], 2.4, color);
            if frame.is_above(value(row, row.speedup)) {
                clipped(drawing, [px, py], color, value(row, row.speedup));
            }
            if row.confidence_ms > 0.0 && row.confidence_ms < row.time_ms {
                let at = |time: f64| frame.y(value(row, row.speedup * row.time_ms / time));
                let (low, high) = (
                    at(row.time_ms + row.confidence_ms),
                    at(row.time_ms - row.confidence_ms),
                );
                drawing.line(&[[px, low], [px, high]], color, 1.0, false);
            }
        }
    }
}

/// Says of a point at the upper edge that it lies above, and where.
fn clipped(drawing: &mut Drawing, [x, y]: [f64; 2], color: Color, value: f64) {
    let tip = [[x - 3.5, y - 3.0], [x, y - 8.0], [x + 3.5, y - 3.0]];
    drawing.line(&tip, color, 1.5, false);
    let text = format!("{value:.0}");
    drawing.text([x - 5.0, y - 5.0], Anchor::End, 8.0, &text);
}

/// Title, axes, what they are of and in what unit, and the grid.
fn scales(
    drawing: &mut Drawing,
    [left, top]: [f64; 2],
    title: &str,
    axes: &Axes<'_>,
    frame: &Frame,
) {
    let ([x0, x1], [y1, y0]) = (frame.x, frame.y);
    let middle = (x0 + x1) / 2.0;
    drawing.text([middle, top + 9.0], Anchor::Middle, 11.0, title);
    let unit = match axes.quantity {
        Quantity::Efficiency => "efficiency in %",
        Quantity::Speedup => "speed-up, one rank = 1",
    };
    drawing.text([left + 6.0, top + 23.0], Anchor::Start, 9.0, unit);
    let of = format!("number of {}", axes.over.name());
    drawing.text([middle, y1 + 22.0], Anchor::Middle, 9.0, &of);
    let [least, most] = frame.across;
    let factor = if most / least > 256.0 { 4.0 } else { 2.0 };
    let ticks = std::iter::successors(Some(least), |tick| Some(tick * factor));
    let ticks: Vec<f64> = ticks.take_while(|&tick| tick <= most).collect();
    for &tick in &ticks {
        let x = frame.x(tick);
        drawing.line(&[[x, y0], [x, y1]], GRID, 0.7, false);
        let number = format!("{tick:.0}");
        drawing.text([x, y1 + 10.0], Anchor::Middle, 9.0, &number);
    }
    let values: Vec<f64> = match axes.quantity {
        Quantity::Efficiency => vec![0.0, 25.0, 50.0, 75.0, 100.0],
        Quantity::Speedup => {
            let below = std::iter::successors(Some(0.5), |tick| Some(tick / 2.0));
            let below = below.take_while(|&tick| tick >= frame.up[0]);
            ticks.iter().copied().chain(below).collect()
        }
    };
    for value in values {
        let y = frame.y(value);
        drawing.line(&[[x0, y], [x1, y]], GRID, 0.7, false);
        drawing.text([x0 - 4.0, y], Anchor::End, 9.0, &value.to_string());
    }
    drawing.line(&[[x0, y0], [x0, y1], [x1, y1]], AXIS, 1.0, false);
}
