//! The report as text: what stands out, the tables, the paragraph on balance.

use std::fmt::Write as _;

use crate::certification::certification;
use crate::digest::{Digest, Traced};
use crate::division::Use;
use crate::findings::Findings;
use crate::format::{bytes, count, many, percent, seconds, total};
use crate::memory::LargestParts;
use crate::record::{EFFICIENCY_OF, Efficiency};
use crate::run::Run;
use crate::table::{OTHER, phase_table};

/// The explanation of the line `other`.
pub(crate) const ABOUT_OTHER: &str = "other: between steps. Pictures are drawn and written, frames and checkpoints written; history: \
                                      ranks report to the first, which writes a line for the step before.";

/// Everything about one run.
pub(crate) fn one(run: &Run, digest: &Digest, findings: &Findings) -> String {
    let mut text = heading(run, digest) + "\n";
    for note in &run.notes {
        let _ = writeln!(text, "note: {note}");
    }
    for warning in &run.record.warnings {
        let _ = writeln!(text, "warning: {warning}");
    }
    text += "\nWhere to look\n";
    for (what, finding) in [
        ("phase", &findings.phase),
        ("patch", &findings.patch),
        ("policy", &findings.policy),
    ] {
        let _ = writeln!(text, "  {what:<7} {}. {}", finding.answer, finding.why);
    }
    for next in &findings.next {
        let _ = writeln!(text, "  next    {}", next.say);
        if let Some(command) = &next.command {
            let _ = writeln!(text, "          {command}");
        }
    }
    if !digest.phases.is_empty() {
        text.push('\n');
        text += &phase_table(&digest.phases, digest.loop_s, OTHER, &digest.between);
        let _ = writeln!(text, "{ABOUT_OTHER}");
        text += &efficiency(digest.efficiency, EFFICIENCY_OF);
    }
    if let Some(traced) = &digest.traced {
        let _ = writeln!(
            text,
            "\nWork in the traced steps, {} to {}, without waits{}",
            traced.steps.0,
            traced.steps.1,
            traced.mark()
        );
        text += &phase_table(&traced.work, traced.mean_s, "idle", &[]);
        text += &efficiency(traced.efficiency, &efficiency_of_traced(traced));
        text += &causes(traced);
    }
    text.push('\n');
    text += &balance(digest);
    text.push('\n');
    if let Some(certification) = certification(&run.history) {
        let _ = writeln!(text, "\n{certification}");
    }
    if let Some(memory) = run.memory() {
        let _ = writeln!(text, "\n{memory}");
    }
    if let Some(held) = LargestParts::of(&run.record) {
        let _ = writeln!(text, "\n{}", held.heading());
        for (name, size) in &held.parts {
            let share = percent(held.share(*size));
            let _ = writeln!(text, "  {name:<32} {:>10} {share:>7}", bytes(*size));
        }
    }
    text
}

/// The heading: the run, and the machine that it ran on.
pub(crate) fn heading(run: &Run, digest: &Digest) -> String {
    let record = &run.record;
    let mut text = format!(
        "{}: scene {}, {} x {} ({}), policy {}",
        digest.name,
        record.scene.name,
        many(run.ranks() as u64, "rank"),
        many(run.workers() as u64, "worker"),
        record.machine.comm,
        digest.policy()
    );
    if let Some(result) = &record.result {
        let since = match record.resumed_from {
            Some(step) => format!(" after {step} in an earlier run"),
            None => String::new(),
        };
        let taken = result
            .steps
            .saturating_sub(record.resumed_from.unwrap_or(0));
        let _ = write!(
            text,
            ", {}{since} of {} vertices in {}, state {}",
            many(taken, "step"),
            count(result.vertices),
            seconds(digest.loop_s),
            result.hash
        );
    }
    text
}

/// A line with efficiencies, and what they are `of`; nothing if they are not known.
pub(crate) fn efficiency(efficiency: Option<Efficiency>, of: &str) -> String {
    efficiency.map_or_else(String::new, |e| {
        format!(
            "Efficiency: load balance {:.2}, communication {:.2}, parallel {:.2} ({of})\n",
            e.load_balance, e.communication, e.parallel
        )
    })
}

/// The basis of the efficiencies of traced steps.
pub(crate) fn efficiency_of_traced(traced: &Traced) -> String {
    format!("POP, traced steps, no wait is useful{}", traced.mark())
}

/// The causes of idle time, largest first.
fn causes(traced: &Traced) -> String {
    let all = traced.division.all();
    let mut text = format!(
        "Idle{}: {} of the time of all ranks in these steps",
        traced.mark(),
        percent(all.idle() as f64 / all.total().max(1) as f64)
    );
    let mut causes: Vec<Use> = Use::ALL.into_iter().filter(|u| !u.is_useful()).collect();
    causes.sort_by_key(|&cause| std::cmp::Reverse(all.of(cause)));
    let told: Vec<String> = (causes.into_iter().filter(|&cause| all.of(cause) > 0))
        .map(|cause| format!("{} {}", percent(traced.share(cause)), cause.name()))
        .collect();
    if !told.is_empty() {
        let _ = write!(text, ": {}", told.join(", "));
    }
    text + ".\n"
}

/// How the collision tests were shared, in sentences.
pub(crate) fn balance(digest: &Digest) -> String {
    let c = &digest.counts;
    if !digest.has_times {
        return "Balance: the run ended before it counted its tests.".to_owned();
    }
    let mut text = format!(
        "Balance: {} made {} and {} of them, {} tests; a task made {} on average.",
        many(c.top_level, "top-level test"),
        many(c.tasks, "task"),
        many(c.splits, "split"),
        count(c.tests),
        count(c.tests / c.tasks.max(1)),
    );
    if c.requests == 0 {
        text += " No rank asked another for work.";
    } else {
        let _ = write!(
            text,
            " Idle ranks sent {}: {} brought tasks, {} ({}) were refused{}; {} moved to another rank, {} of all.",
            many(c.requests, "request"),
            count(c.served),
            count(c.refused),
            percent(c.refused as f64 / c.requests as f64),
            match c
                .requests
                .saturating_sub(total([c.served, c.refused].into_iter()))
            {
                0 => String::new(),
                rest => format!(", {} had no answer yet when a phase ended", count(rest)),
            },
            many(c.moved, "task"),
            percent(c.moved as f64 / c.tasks.max(1) as f64),
        );
    }
    if let Some(sent) = c.bytes {
        let _ = write!(text, " Ranks sent {} for that.", bytes(sent));
    }
    if let Some(traced) = &digest.traced {
        let most = traced
            .steals
            .iter()
            .max_by_key(|(pair, s)| (s.tasks, std::cmp::Reverse(*pair)));
        if let Some(((thief, victim), stolen)) = most.filter(|(_, s)| s.tasks > 0) {
            let _ = write!(
                text,
                " In the traced steps{} the most went from rank {victim} to rank {thief}: {}",
                traced.mark(),
                many(stolen.tasks, "task")
            );
            if stolen.served > 0 {
                let _ = write!(
                    text,
                    ", each answer after {} on average",
                    seconds(stolen.latency as f64 * 1e-9 / stolen.served as f64)
                );
            }
            text.push('.');
        }
    }
    text
}

/// Several runs side by side: names of the rows, and a cell for each run.
pub(crate) fn comparison(runs: &[(&Run, &Digest)]) -> Vec<(&'static str, Vec<String>)> {
    let row = |name, cell: &dyn Fn(&Run, &Digest) -> String| {
        let cells = runs.iter().map(|(run, digest)| cell(run, digest));
        (name, cells.collect::<Vec<String>>())
    };
    let phase = |digest: &Digest, name: &str| {
        let found = digest.phases.iter().find(|phase| phase.name.trim() == name);
        found.map_or_else(
            || "-".to_owned(),
            |p| format!("{} ({})", seconds(p.max_s), p.max_rank),
        )
    };
    let pop = |e: Option<Efficiency>, part: fn(&Efficiency) -> f64| {
        e.map_or_else(|| "-".to_owned(), |e| format!("{:.2}", part(&e)))
    };
    let share = |digest: &Digest, what| match &digest.traced {
        Some(traced) => percent(traced.share(what)) + traced.mark(),
        None => "-".to_owned(),
    };
    let mut rows = vec![
        row("scene", &|run, _| run.record.scene.name.clone()),
        row("ranks", &|run, _| run.ranks().to_string()),
        row("policy", &|_, digest| digest.policy()),
        row("loop", &|_, digest| seconds(digest.loop_s)),
        row("collide, max (rank)", &|_, digest| phase(digest, "collide")),
        row("  in tasks, max (rank)", &|_, digest| {
            phase(digest, "in tasks")
        }),
        row("  in tasks, imbalance", &|_, digest| {
            let tasks = digest.phases.iter().find(|p| p.name.trim() == "in tasks");
            tasks.map_or_else(|| "-".to_owned(), |tasks| percent(tasks.imbalance()))
        }),
        row("solve, max (rank)", &|_, digest| phase(digest, "solve")),
        row("load balance, all steps", &|_, d| {
            pop(d.efficiency, |e| e.load_balance)
        }),
        row("communication, all steps", &|_, d| {
            pop(d.efficiency, |e| e.communication)
        }),
        row("parallel, all steps", &|_, d| {
            pop(d.efficiency, |e| e.parallel)
        }),
        row("tests", &|_, d| count(d.counts.tests)),
        row("requests", &|_, d| count(d.counts.requests)),
        row("  refused", &|_, d| count(d.counts.refused)),
        row("tasks moved", &|_, d| count(d.counts.moved)),
        row("bytes for that", &|_, d| {
            d.counts.bytes.map_or_else(|| "-".to_owned(), bytes)
        }),
    ];
    if runs.iter().any(|(_, digest)| digest.traced.is_some()) {
        for what in Use::ALL {
            rows.push(row(what.name(), &|_, digest| share(digest, what)));
        }
    }
    rows.push(row("state", &|run, _| {
        let hash = run.record.result.as_ref().map(|r| r.hash.clone());
        hash.unwrap_or_else(|| "-".to_owned())
    }));
    rows
}

/// The comparison of several runs as a table.
pub(crate) fn side_by_side(runs: &[(&Run, &Digest)]) -> String {
    let rows = comparison(runs);
    let names: Vec<&str> = runs
        .iter()
        .map(|(_, digest)| digest.name.as_str())
        .collect();
    let first = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let width = |k: usize| {
        let cells = rows.iter().map(|(_, cells)| cells[k].chars().count());
        cells.max().unwrap_or(0).max(names[k].chars().count())
    };
    let widths: Vec<usize> = (0..runs.len()).map(width).collect();
    let mut text = format!("{:first$}", "");
    for (name, width) in names.iter().zip(&widths) {
        let _ = write!(text, " | {name:>width$}");
    }
    text.push('\n');
    for (name, cells) in &rows {
        let _ = write!(text, "{name:first$}");
        for (cell, width) in cells.iter().zip(&widths) {
            let _ = write!(text, " | {cell:>width$}");
        }
        text.push('\n');
    }
    text
}
