//! The phase table as text: at the end of a run, and in reports.

use std::fmt::Write as _;

use crate::format::seconds;
use crate::record::Phase;

/// The name for the rest of the loop, which belongs to no phase.
pub const OTHER: &str = "other";

/// Lines of a table, under a head: the phases, of which names that begin with blanks are parts of
/// the one before; what is left of `whole` s without them, called `rest`; and the `parts` of that
/// which are known.
#[must_use]
pub fn phase_table(phases: &[Phase], whole: f64, rest: &str, parts: &[Phase]) -> String {
    let mut text = format!(
        "{:<13} | {:>14} | {:>8} | {:>14} | {:>11} | {:>7}\n",
        "Phase", "min (rank)", "avg", "max (rank)", "imbalance %", "share %"
    );
    let share = |s: f64| 100.0 * s / whole.max(f64::MIN_POSITIVE);
    let line = |text: &mut String, name: &str, phase: &Phase| {
        let _ = writeln!(
            text,
            "{name:<13} | {:>8} {:>5} | {:>8} | {:>8} {:>5} | {:>11.1} | {:>7.1}",
            seconds(phase.min_s),
            format!("({})", phase.min_rank),
            seconds(phase.avg_s),
            seconds(phase.max_s),
            format!("({})", phase.max_rank),
            100.0 * phase.imbalance(),
            share(phase.avg_s)
        );
    };
    for phase in phases {
        line(&mut text, &phase.name, phase);
    }
    let left = left(phases, whole);
    let _ = writeln!(
        text,
        "{rest:<13} | {:>14} | {:>8} | {:>14} | {:>11} | {:>7.1}",
        "",
        seconds(left),
        "",
        "",
        share(left)
    );
    for part in parts.iter().filter(|part| part.max_s > 0.0) {
        line(&mut text, &format!("  {}", part.name), part);
    }
    text
}

/// The time in s, on average, that no phase accounts for.
pub(crate) fn left(phases: &[Phase], whole: f64) -> f64 {
    let whole_phases = phases.iter().filter(|phase| !phase.name.starts_with(' '));
    (whole - whole_phases.map(|phase| phase.avg_s).sum::<f64>()).max(0.0)
}
