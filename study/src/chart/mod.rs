//! Plots of speed-up and efficiency over the number of ranks, with what is possible at best.
//!
//! Each policy is a line, with bars where repetitions differ; dashed is what the bounds allow, grey
//! what would be perfect. A point above the frame stands at its edge, with an arrow and its value.
//! A picture is a grid of panels: the phases of one network, or two phases on all networks. One
//! picture has all cuts of a scene that was cut in several ways: efficiency over the number of
//! patches.

mod drawing;
mod font;
mod panel;
mod raster;

pub use self::drawing::Drawing;
use self::drawing::{Anchor, Color};
use self::panel::{Axes, By, Over, panel};
use crate::PHASES;
use crate::tables::Row;

/// The quantity that is plotted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// The ratio of the time of one rank to that of many.
    Speedup,
    /// The speed-up over the number of ranks, in %.
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
const PANEL: [f64; 2] = [270.0, 222.0];
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
            let wanted = shown(has_steps);
            let panels = networks
                .iter()
                .flat_map(|&network| wanted.iter().map(move |&phase| Part::of(network, phase)));
            let name = format!("{scene}.{}", quantity.name());
            let panels: Vec<Part<'_>> = panels.collect();
            let about = (scene, Over::Ranks, By::Policy, quantity);
            plots.push((name, figure(&of_scene, about, &panels, wanted.len())));
            for &network in networks.iter().filter(|_| has_steps) {
                let phases = PHASES.iter().copied().chain(["step"]);
                let panels: Vec<Part<'_>> = phases.map(|phase| Part::of(network, phase)).collect();
                let name = format!("{scene}.{network}.{}", quantity.name());
                plots.push((name, figure(&of_scene, about, &panels, 3)));
            }
        }
    }
    plots.extend(over_patches(rows));
    plots
}

/// Efficiency over the number of patches, of each scene that was cut in several ways: a line for
/// each policy and panels for each number of ranks; of one policy alone a line for each number of
/// ranks. One rank, whom all are compared with, is left out.
fn over_patches(rows: &[Row]) -> Vec<(String, Drawing)> {
    let mut plots = Vec::new();
    for family in distinct(rows.iter().map(|row| row.family.as_str())) {
        let of_family: Vec<&Row> = rows.iter().filter(|r| r.family == family).collect();
        let cuts = distinct(of_family.iter().map(|row| row.patches));
        let sources = distinct(of_family.iter().map(|row| row.scene.as_str()));
        let several: Vec<&Row> = (of_family.iter().copied())
            .filter(|row| row.ranks > 1)
            .collect();
        // Two sources cut alike differ in something else.
        if cuts.len() < 2 || sources.len() != cuts.len() || several.is_empty() {
            continue;
        }
        let wanted = shown(several.iter().any(|row| row.phase == "step"));
        let mut ranks = distinct(several.iter().map(|row| row.ranks));
        ranks.sort_unstable();
        let one_policy = distinct(several.iter().map(|row| row.policy.as_str())).len() == 1;
        let (by, panels_of): (By, Vec<Option<usize>>) = match one_policy {
            true => (By::Ranks, vec![None]),
            false => (By::Policy, ranks.into_iter().map(Some).collect()),
        };
        let mut panels = Vec::new();
        for network in distinct(several.iter().map(|row| row.network.as_str())) {
            for &ranks in &panels_of {
                panels.extend(wanted.iter().map(|&phase| Part {
                    ranks,
                    ..Part::of(network, phase)
                }));
            }
        }
        let quantity = Quantity::Efficiency;
        let about = (family, Over::Patches, by, quantity);
        let name = format!("{family}.patches.{}", quantity.name());
        plots.push((name, figure(&several, about, &panels, wanted.len())));
    }
    plots
}

/// Phases that are shown side by side.
fn shown(has_steps: bool) -> &'static [&'static str] {
    if has_steps {
        &["collide", "step"]
    } else {
        &["collide"]
    }
}

fn distinct<T: PartialEq>(names: impl Iterator<Item = T>) -> Vec<T> {
    let mut found = Vec::new();
    for name in names {
        if !found.contains(&name) {
            found.push(name);
        }
    }
    found
}

/// The quantity that a panel shows.
#[derive(Clone, Copy)]
struct Part<'a> {
    network: &'a str,
    phase: &'a str,
    /// The number of ranks, if it shows one only.
    ranks: Option<usize>,
}

impl<'a> Part<'a> {
    fn of(network: &'a str, phase: &'a str) -> Self {
        Self {
            network,
            phase,
            ranks: None,
        }
    }

    fn has(&self, row: &Row) -> bool {
        row.network == self.network
            && row.phase == self.phase
            && self.ranks.is_none_or(|ranks| row.ranks == ranks)
    }

    fn title(&self) -> String {
        let phase = match self.phase {
            "step" => "whole step",
            phase => phase,
        };
        let ranks = self
            .ranks
            .map_or_else(String::new, |n| format!(", {n} ranks"));
        format!("{phase}, {}{ranks}", self.network)
    }
}

/// A grid of panels. `about`: the scene, what the axis across is of, what lines are of, and what is
/// plotted.
fn figure(
    rows: &[&Row],
    (scene, over, by, quantity): (&str, Over, By, Quantity),
    panels: &[Part<'_>],
    columns: usize,
) -> Drawing {
    let names = distinct(rows.iter().map(|row| by.name(row)));
    let grid_lines = panels.len().div_ceil(columns) as f64;
    let width = PANEL[0] * columns as f64;
    let mut known: Vec<&str> = names.iter().map(String::as_str).collect();
    if by == By::Policy && rows.iter().any(|row| row.bound.is_some()) {
        known.push(BEST);
    }
    let (legend, head) = legend(&known, width);
    let mut drawing = Drawing::new([width, head + PANEL[1] * grid_lines]);
    let what = match quantity {
        Quantity::Speedup => "speed-up",
        Quantity::Efficiency => "efficiency in %",
    };
    let title = format!("{scene}: {what} over {}", over.name());
    // As large as fits in.
    let size = (width / (0.68 * title.chars().count() as f64)).min(13.0);
    drawing.text([width / 2.0, HEAD / 2.0], Anchor::Middle, size, &title);
    for (at, (name, [x, y])) in legend.into_iter().enumerate() {
        let best = at >= names.len();
        let of = if best {
            BOUND
        } else {
            COLORS[at % COLORS.len()]
        };
        let width = if best { 1.2 } else { 2.0 };
        drawing.line(&[[x, y], [x + 18.0, y]], of, width, best);
        drawing.text([x + 23.0, y], Anchor::Start, 10.0, name);
    }
    let axes = Axes {
        quantity,
        over,
        by,
        lines: &names,
    };
    for (index, part) in panels.iter().enumerate() {
        let corner = [
            PANEL[0] * (index % columns) as f64,
            head + PANEL[1] * (index / columns) as f64,
        ];
        let mut here: Vec<&Row> = rows.to_vec();
        here.retain(|row| part.has(row));
        panel(&mut drawing, corner, &part.title(), &here, &axes);
    }
    drawing
}

/// The places of the names of lines, in as many lines as they need; and the end of these.
fn legend<'a>(names: &[&'a str], width: f64) -> (Vec<(&'a str, [f64; 2])>, f64) {
    const LEFT: f64 = 12.0;
    let (mut x, mut y) = (LEFT, HEAD + LEGEND / 2.0);
    let mut places = Vec::new();
    for name in names.iter().copied() {
        let needed = 36.0 + 6.5 * name.len() as f64;
        if x > LEFT && x + needed > width {
            (x, y) = (LEFT, y + LEGEND);
        }
        places.push((name, [x, y]));
        x += needed;
    }
    (places, y + LEGEND / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(patches: usize, policy: &str, ranks: usize, speedup: f64) -> Row {
        Row {
            scene: format!("cloth-{patches}"),
            family: "cloth".to_owned(),
            patches,
            network: "gigabit".to_owned(),
            policy: policy.to_owned(),
            phase: "collide",
            ranks,
            repeats: 1,
            time_ms: 1.0,
            deviation_ms: 0.0,
            confidence_ms: 0.0,
            speedup,
            efficiency: speedup / ranks as f64,
            work_bound_ms: None,
            longest_bound_ms: None,
            latency_bound_ms: None,
            bound: None,
            not_computing: None,
        }
    }

    fn rows(policies: &[&str]) -> Vec<Row> {
        let mut rows = Vec::new();
        for patches in [32, 64, 128] {
            for policy in policies {
                rows.extend([1, 2, 8].map(|ranks| row(patches, policy, ranks, ranks as f64)));
            }
        }
        rows
    }

    fn find<'a>(plots: &'a [(String, Drawing)], name: &str) -> Option<&'a Drawing> {
        let found = plots.iter().find(|(other, _)| other == name);
        found.map(|(_, drawing)| drawing)
    }

    #[test]
    fn a_scene_cut_in_several_ways_has_one_picture_of_them_all() {
        let one = plots(&rows(&["paper"]));
        let drawing = find(&one, "cloth.patches.efficiency").unwrap().svg();
        for words in [
            "cloth: efficiency in % over patches",
            ">collide, gigabit<",
            ">2 ranks<",
            ">8 ranks<",
            ">number of patches<",
            ">efficiency in %<",
            ">32<",
            ">128<",
        ] {
            assert!(drawing.contains(words), "no {words:?} in {drawing}");
        }
        assert!(!drawing.contains(">1 rank<") && !drawing.contains(BEST));
        let two = plots(&rows(&["paper", "static"]));
        let drawing = find(&two, "cloth.patches.efficiency").unwrap().svg();
        for words in [
            ">paper<",
            ">static<",
            ">collide, gigabit, 2 ranks<",
            ">collide, gigabit, 8 ranks<",
        ] {
            assert!(drawing.contains(words), "no {words:?} in {drawing}");
        }
        // One cut alone has nothing to compare with, nor have two that are cut alike.
        let single = [row(32, "paper", 2, 1.5)];
        assert!(find(&plots(&single), "cloth.patches.efficiency").is_none());
        let mut alike = rows(&["paper"]);
        alike.extend([1, 2].map(|ranks| Row {
            scene: "cloth-32-again".to_owned(),
            ..row(32, "paper", ranks, 1.0)
        }));
        assert!(find(&plots(&alike), "cloth.patches.efficiency").is_none());
    }

    #[test]
    fn axes_say_what_they_are_of_and_points_above_the_frame_that_they_are() {
        let plain = plots(&[row(32, "paper", 1, 1.0), row(32, "paper", 2, 2.0)]);
        for (name, unit) in [
            ("cloth-32.efficiency", ">efficiency in %<"),
            ("cloth-32.speedup", ">speed-up, one rank = 1<"),
        ] {
            let svg = find(&plain, name).unwrap().svg();
            assert!(
                svg.contains(unit) && svg.contains(">number of ranks<"),
                "{svg}"
            );
        }
        let steep = plots(&[row(32, "paper", 1, 1.0), row(32, "paper", 2, 2.6)]);
        let with = find(&steep, "cloth-32.efficiency").unwrap().svg();
        let without = find(&plain, "cloth-32.efficiency").unwrap().svg();
        assert!(
            with.contains(">130<") && !without.contains(">130<"),
            "{with}"
        );
        // For the speed-up likewise: 2.6 on a scale up to 2.
        let with = find(&steep, "cloth-32.speedup").unwrap().svg();
        assert!(with.contains("font-size=\"8\""), "{with}");
    }
}
