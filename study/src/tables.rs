//! The results of a sweep, as rows: for CSV, JSON, plots and people.

use std::fmt::Write as _;

use serde::Serialize;

use crate::PHASES;
use crate::plan::Plan;
use crate::stats::Summary;
use crate::sweep::{Measured, Results};

/// A row of a table: a phase, or whole steps, at one point of the plan, with means over its
/// repetitions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// The scene of the record.
    pub scene: String,
    /// The name that it shares with the same scene cut in other ways.
    pub family: String,
    /// How many patches it is cut into.
    pub patches: usize,
    /// The network.
    pub network: String,
    /// The policy.
    pub policy: String,
    /// A phase, or `step`.
    pub phase: &'static str,
    /// Ranks.
    pub ranks: usize,
    /// Repetitions.
    pub repeats: usize,
    /// Time of a step in ms: its mean, standard deviation, and half the width of its 95 % interval.
    pub time_ms: f64,
    /// The standard deviation.
    pub deviation_ms: f64,
    /// Half the width of the interval that holds the mean with 95 % probability.
    pub confidence_ms: f64,
    /// The ratio of one rank's time to the time of these.
    pub speedup: f64,
    /// Speed-up over ranks.
    pub efficiency: f64,
    /// Least time in ms that the work, shared evenly, takes. This and what follows: `None` where it
    /// is not known.
    pub work_bound_ms: Option<f64>,
    /// Least time in ms for the longest piece; `None` also where there are no pieces.
    pub longest_bound_ms: Option<f64>,
    /// Least time in ms for the messages that follow each other.
    pub latency_bound_ms: Option<f64>,
    /// The best speed-up that these allow, of steps also those of the collision phase.
    pub bound: Option<f64>,
    /// Share of the ranks' time in which they do not compute: they talk or wait.
    pub not_computing: Option<f64>,
}

/// All rows of a sweep.
#[must_use]
pub fn rows(plan: &Plan, results: &Results) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut at = 0;
    // Repetitions of a point follow each other.
    while let Some(first) = results.points.get(at) {
        let group: Vec<&Measured> = results.points[at..]
            .iter()
            .take_while(|done| {
                let point = &done.point;
                let of = &first.point;
                (point.record, point.ranks) == (of.record, of.ranks)
                    && point.network == of.network
                    && point.policy == of.policy
            })
            .map(|done| &done.measured)
            .collect();
        at += group.len();
        let phases = if plan.collide_only { 1 } else { PHASES.len() };
        for phase in 0..phases {
            rows.push(row(results, &first.point, &group, Some(phase)));
        }
        if !plan.collide_only {
            rows.push(row(results, &first.point, &group, None));
        }
    }
    rows
}

fn row(
    results: &Results,
    point: &crate::plan::Point,
    group: &[&Measured],
    phase: Option<usize>,
) -> Row {
    let ms = |of: &Measured, ns: f64| ns / 1e6 / f64::from(of.steps.max(1));
    let time = |of: &Measured| ms(of, phase.map_or(of.whole, |phase| of.phases[phase]));
    let computed = |of: &[f64; PHASES.len()]| phase.map_or_else(|| of.iter().sum(), |at| of[at]);
    let alone = &results.alone[point.record][..];
    let alone = Summary::of(&alone.iter().map(&time).collect::<Vec<_>>()).mean;
    let times: Vec<f64> = group.iter().map(|of| time(of)).collect();
    let times = Summary::of(&times);
    // All repetitions know something, or none does.
    let mean = |value: &dyn Fn(&Measured) -> Option<f64>| {
        let values: Option<Vec<f64>> = group.iter().map(|of| Some(ms(of, value(of)?))).collect();
        values.map(|values| Summary::of(&values).mean)
    };
    let ranks = point.ranks as f64;
    let in_collide = |at: usize| mean(&|of| Some(of.least?.collide[at]));
    let evenly = mean(&|of| Some(computed(&of.least?.computed))).map(|all| all / ranks);
    let (work, longest, latency) = match phase {
        Some(0) => (in_collide(0), in_collide(1), in_collide(2)),
        _ => (evenly, None, None),
    };
    let least = if phase.is_none() {
        // The collision phase begins and ends with everybody: what else is computed comes on top.
        let collide = (0..3).filter_map(in_collide).fold(0.0, f64::max);
        let others = mean(&|of| Some(of.least?.computed[1..].iter().sum()));
        work.zip(others)
            .map(|(work, others)| work.max(collide + others / ranks))
    } else {
        let bounds = [work, longest, latency].into_iter().flatten();
        bounds.reduce(f64::max)
    };
    let over = |a: f64, b: f64| if b > 0.0 { a / b } else { 0.0 };
    let speedup = over(alone, times.mean);
    Row {
        scene: results.sources[point.record].0.clone(),
        family: results.cuts[point.record].0.clone(),
        patches: results.cuts[point.record].1,
        network: point.network.clone(),
        policy: point.policy.clone(),
        phase: phase.map_or("step", |phase| PHASES[phase]),
        ranks: point.ranks,
        repeats: times.count,
        time_ms: times.mean,
        deviation_ms: times.deviation,
        confidence_ms: times.confidence,
        speedup,
        efficiency: speedup / ranks,
        work_bound_ms: work,
        longest_bound_ms: longest,
        latency_bound_ms: latency,
        bound: (least.filter(|&least| least > 0.0)).map(|least| over(alone, least).min(ranks)),
        not_computing: mean(&|of| of.computed.as_ref().map(computed))
            .filter(|&all| all > 0.0)
            .map(|all| (1.0 - over(all, ranks * times.mean)).clamp(0.0, 1.0)),
    }
}

/// Writes the rows as CSV, with a line of names; a value that is not known is an empty cell.
#[must_use]
pub fn csv(rows: &[Row]) -> String {
    let known = |value: Option<f64>, digits: usize| {
        value.map_or_else(String::new, |value| format!("{value:.digits$}"))
    };
    let mut text = "scene,network,policy,phase,ranks,repeats,time_ms,deviation_ms,confidence_ms,speedup,efficiency,\
                    work_bound_ms,longest_bound_ms,latency_bound_ms,speedup_bound,not_computing,patches\n"
        .to_owned();
    for row in rows {
        let name = |name: &str| {
            if name.contains([',', '"', '\n']) {
                format!("\"{}\"", name.replace('"', "\"\""))
            } else {
                name.to_owned()
            }
        };
        // Strings take all that is written.
        let _ = writeln!(
            text,
            "{},{},{},{},{},{},{:.6},{:.6},{:.6},{:.4},{:.4},{},{},{},{},{},{}",
            name(&row.scene),
            row.network,
            row.policy,
            row.phase,
            row.ranks,
            row.repeats,
            row.time_ms,
            row.deviation_ms,
            row.confidence_ms,
            row.speedup,
            row.efficiency,
            known(row.work_bound_ms, 6),
            known(row.longest_bound_ms, 6),
            known(row.latency_bound_ms, 6),
            known(row.bound, 4),
            known(row.not_computing, 4),
            row.patches,
        );
    }
    text
}

/// Writes the rows for people: efficiencies of one phase, a table for each scene and network,
/// policies side by side.
#[must_use]
pub fn text(rows: &[Row], phase: &str) -> String {
    let mut out = String::new();
    let of_phase: Vec<&Row> = rows.iter().filter(|row| row.phase == phase).collect();
    let mut seen: Vec<(&str, &str)> = Vec::new();
    for row in &of_phase {
        if !seen.contains(&(&row.scene, &row.network)) {
            seen.push((&row.scene, &row.network));
        }
    }
    for (scene, network) in seen {
        let here: Vec<&&Row> = of_phase
            .iter()
            .filter(|r| r.scene == scene && r.network == network)
            .collect();
        let mut policies: Vec<&str> = Vec::new();
        let mut ranks: Vec<usize> = Vec::new();
        for row in &here {
            if !policies.contains(&row.policy.as_str()) {
                policies.push(&row.policy);
            }
            if !ranks.contains(&row.ranks) {
                ranks.push(row.ranks);
            }
        }
        let _ = write!(
            out,
            "{scene}, {network}: efficiency of `{phase}` in %\n  ranks"
        );
        for policy in &policies {
            let _ = write!(out, " | {policy:>12}");
        }
        let _ = writeln!(out, " |   best possible");
        for ranks in ranks {
            let _ = write!(out, "  {ranks:>5}");
            let mut bound = 0.0_f64;
            for policy in &policies {
                let row = here
                    .iter()
                    .find(|r| r.ranks == ranks && r.policy == *policy);
                match row {
                    Some(row) => {
                        if let Some(of_row) = row.bound {
                            bound = bound.max(of_row / row.ranks as f64);
                        }
                        let _ = write!(out, " | {:>12.1}", 100.0 * row.efficiency);
                    }
                    None => out.push_str(" |            -"),
                }
            }
            if bound > 0.0 {
                let _ = writeln!(out, " | {:>15.1}", 100.0 * bound);
            } else {
                let _ = writeln!(out, " | {:>15}", "not known");
            }
        }
        out.push('\n');
    }
    out
}
