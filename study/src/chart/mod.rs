//! Plots of speed-up and efficiency over the number of ranks, with what is possible at best.
//!
//! Each policy is a line, with bars where repetitions differ; dashed is what the bounds allow, grey what would be perfect.
//! A picture is a grid of panels: the phases of one network, or two phases on all networks.

mod drawing;
mod font;
mod raster;

pub use self::drawing::Drawing;
use self::drawing::{Anchor, Color};
use crate::PHASES;
use crate::tables::Row;

/// What is plotted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// What one rank takes over what many take.
    Speedup,
    /// The same over the number of ranks, in %.
    Efficiency,
}

impl Quantity {
    /// Its name in files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Speedup => "speedup",
            Self::Efficiency => "efficiency",
        }
    }
}

/// Size of a panel with its labels.
const PANEL: [f64; 2] = [270.0, 210.0];
/// Space for labels: left, top, right, bottom.
const LABELS: [f64; 4] = [38.0, 22.0, 12.0, 30.0];
/// Height of the title and of a line of the legend.
const HEAD: f64 = 26.0;
const LEGEND: f64 = 18.0;
/// The bound's name.
const BEST: &str = "best possible";
const GREY: Color = [190, 190, 190];
const AXIS: Color = [90, 90, 90];
const BOUND: Color = [110, 110, 110];
/// Colors that people who see few can tell apart [Okabe & Ito 2008].
const COLORS: [Color; 7] = [
    [213, 94, 0],
    [0, 114, 178],
    [0, 158, 115],
    [204, 121, 167],
    [230, 159, 0],
    [86, 180, 233],
    [0, 0, 0],
];

/// The plots of a study: names without endings, and drawings.
#[must_use]
pub fn plots(rows: &[Row]) -> Vec<(String, Drawing)> {
    let scenes = distinct(rows.iter().map(|row| row.scene.as_str()));
    let networks = distinct(rows.iter().map(|row| row.network.as_str()));
    let mut plots = Vec::new();
    for scene in scenes {
        let of_scene: Vec<&Row> = rows.iter().filter(|row| row.scene == scene).collect();
        let has_steps = of_scene.iter().any(|row| row.phase == "step");
        for quantity in [Quantity::Efficiency, Quantity::Speedup] {
            let wanted: &[&str] = if has_steps {
                &["collide", "step"]
            } else {
                &["collide"]
            };
            let panels: Vec<(&str, &str)> = networks
                .iter()
                .flat_map(|&network| wanted.iter().map(move |&phase| (network, phase)))
                .collect();
            let name = format!("{scene}.{}", quantity.name());
            plots.push((
                name,
                figure(&of_scene, scene, &panels, wanted.len(), quantity),
            ));
            for &network in networks.iter().filter(|_| has_steps) {
                let phases = PHASES.iter().copied().chain(["step"]);
                let panels: Vec<(&str, &str)> = phases.map(|phase| (network, phase)).collect();
                let name = format!("{scene}.{network}.{}", quantity.name());
                plots.push((name, figure(&of_scene, scene, &panels, 3, quantity)));
            }
        }
    }
    plots
}

fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut found = Vec::new();
    for name in names {
        if !found.contains(&name) {
            found.push(name);
        }
    }
    found
}

/// A grid of panels, each of a network and a phase.
fn figure(
    rows: &[&Row],
    scene: &str,
    panels: &[(&str, &str)],
    columns: usize,
    quantity: Quantity,
) -> Drawing {
    let policies = distinct(rows.iter().map(|row| row.policy.as_str()));
    let color = |policy: &str| {
        let at = policies
            .iter()
            .position(|&name| name == policy)
            .unwrap_or(0);
        COLORS[at % COLORS.len()]
    };
    let lines = panels.len().div_ceil(columns) as f64;
    let width = PANEL[0] * columns as f64;
    let (legend, head) = legend(&policies, width);
    let mut drawing = Drawing::new([width, head + PANEL[1] * lines]);
    let what = match quantity {
        Quantity::Speedup => "speed-up",
        Quantity::Efficiency => "efficiency in %",
    };
    let title = format!("{scene}: {what} over ranks");
    // As large as fits in.
    let size = (width / (0.68 * title.chars().count() as f64)).min(13.0);
    drawing.text([width / 2.0, HEAD / 2.0], Anchor::Middle, size, &title);
    for (policy, [x, y]) in legend {
        let best = policy == BEST;
        let of = if best { BOUND } else { color(policy) };
        let width = if best { 1.2 } else { 2.0 };
        drawing.line(&[[x, y], [x + 18.0, y]], of, width, best);
        drawing.text([x + 23.0, y], Anchor::Start, 10.0, policy);
    }
    for (index, &(network, phase)) in panels.iter().enumerate() {
        let corner = [
            PANEL[0] * (index % columns) as f64,
            head + PANEL[1] * (index / columns) as f64,
        ];
        let here: Vec<&Row> = rows
            .iter()
            .copied()
            .filter(|row| row.network == network && row.phase == phase)
            .collect();
        let title = match phase {
            "step" => format!("whole step, {network}"),
            phase => format!("{phase}, {network}"),
        };
        panel(&mut drawing, corner, &title, &here, &policies, quantity);
    }
    drawing
}

/// Where the names of policies and of the bound stand, in as many lines as they need; and where these end.
fn legend<'a>(policies: &[&'a str], width: f64) -> (Vec<(&'a str, [f64; 2])>, f64) {
    const LEFT: f64 = 12.0;
    let (mut x, mut y) = (LEFT, HEAD + LEGEND / 2.0);
    let mut places = Vec::new();
    for policy in policies.iter().copied().chain([BEST]) {
        let needed = 36.0 + 6.5 * policy.len() as f64;
        if x > LEFT && x + needed > width {
            (x, y) = (LEFT, y + LEGEND);
        }
        places.push((policy, [x, y]));
        x += needed;
    }
    (places, y + LEGEND / 2.0)
}

fn panel(
    drawing: &mut Drawing,
    [left, top]: [f64; 2],
    title: &str,
    rows: &[&Row],
    policies: &[&str],
    quantity: Quantity,
) {
    let [x0, y0] = [left + LABELS[0], top + LABELS[1]];
    let [x1, y1] = [left + PANEL[0] - LABELS[2], top + PANEL[1] - LABELS[3]];
    let most = rows.iter().map(|row| row.ranks).max().unwrap_or(1).max(2) as f64;
    // Down to where many take longer than one, by powers of two.
    let speedups = rows.iter().map(|row| row.speedup);
    let slowest = speedups.filter(|&s| s > 0.0).fold(0.5, f64::min);
    let lowest = slowest.log2().floor().exp2();
    let x = |ranks: f64| x0 + (x1 - x0) * ranks.log2() / most.log2();
    let y = |value: f64| match quantity {
        Quantity::Efficiency => y1 - (y1 - y0) * (value / 105.0).clamp(0.0, 1.0),
        Quantity::Speedup => {
            let up = (value.max(lowest).log2() - lowest.log2()) / (most.log2() - lowest.log2());
            y1 - (y1 - y0) * up.clamp(0.0, 1.0)
        }
    };
    drawing.text(
        [(x0 + x1) / 2.0, top + LABELS[1] / 2.0],
        Anchor::Middle,
        11.0,
        title,
    );
    let mut ticks = vec![1.0];
    while ticks[ticks.len() - 1] < most {
        ticks.push(ticks[ticks.len() - 1] * if most > 256.0 { 4.0 } else { 2.0 });
    }
    ticks.retain(|&tick| tick <= most);
    for &tick in &ticks {
        drawing.line(&[[x(tick), y0], [x(tick), y1]], [235, 235, 235], 0.7, false);
        drawing.text(
            [x(tick), y1 + 10.0],
            Anchor::Middle,
            9.0,
            &format!("{tick:.0}"),
        );
    }
    let values: Vec<f64> = match quantity {
        Quantity::Efficiency => vec![0.0, 25.0, 50.0, 75.0, 100.0],
        Quantity::Speedup => {
            let below = std::iter::successors(Some(0.5), |tick| Some(tick / 2.0));
            let below = below.take_while(|&tick| tick >= lowest);
            ticks.iter().copied().chain(below).collect()
        }
    };
    for value in values {
        drawing.line(
            &[[x0, y(value)], [x1, y(value)]],
            [235, 235, 235],
            0.7,
            false,
        );
        drawing.text([x0 - 4.0, y(value)], Anchor::End, 9.0, &value.to_string());
    }
    drawing.line(&[[x0, y0], [x0, y1], [x1, y1]], AXIS, 1.0, false);
    drawing.text([(x0 + x1) / 2.0, y1 + 22.0], Anchor::Middle, 9.0, "ranks");
    let value = |row: &Row, speedup: f64| match quantity {
        Quantity::Efficiency => 100.0 * speedup / row.ranks as f64,
        Quantity::Speedup => speedup,
    };
    let perfect = |ranks: f64| {
        if quantity == Quantity::Efficiency {
            100.0
        } else {
            ranks
        }
    };
    drawing.line(
        &[[x(1.0), y(perfect(1.0))], [x(most), y(perfect(most))]],
        GREY,
        1.0,
        false,
    );
    // The bound of the policy that allows most.
    let mut best: Vec<(usize, f64)> = Vec::new();
    for row in rows.iter().filter(|row| row.is_bounded()) {
        match best.iter_mut().find(|(ranks, _)| *ranks == row.ranks) {
            Some((_, bound)) => *bound = bound.max(value(row, row.bound)),
            None => best.push((row.ranks, value(row, row.bound))),
        }
    }
    let line: Vec<[f64; 2]> = best
        .iter()
        .map(|&(ranks, bound)| [x(ranks as f64), y(bound)])
        .collect();
    drawing.line(&line, BOUND, 1.2, true);
    for (at, policy) in policies.iter().enumerate() {
        let color = COLORS[at % COLORS.len()];
        let of: Vec<&&Row> = rows.iter().filter(|row| row.policy == *policy).collect();
        let place = |row: &Row| [x(row.ranks as f64), y(value(row, row.speedup))];
        let line: Vec<[f64; 2]> = of.iter().map(|row| place(row)).collect();
        drawing.line(&line, color, 1.8, false);
        for row in of {
            let [px, py] = place(row);
            drawing.disc([px, py], 2.4, color);
            if row.confidence_ms > 0.0 && row.confidence_ms < row.time_ms {
                let at = |time: f64| y(value(row, row.speedup * row.time_ms / time));
                let (low, high) = (
                    at(row.time_ms + row.confidence_ms),
                    at(row.time_ms - row.confidence_ms),
                );
                drawing.line(&[[px, low], [px, high]], color, 1.0, false);
            }
        }
    }
}
