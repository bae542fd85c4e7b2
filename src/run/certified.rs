//! The work of certification in a run, for the summary and for warnings.

use serde::{Deserialize, Serialize};

use crate::step::{Certified, Simulation, World};

/// Sums over the steps of a run; the same on every rank.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CertifiedTotals {
    /// Pairs that would have crossed.
    pub hits: u64,
    /// Steps in which there were some.
    pub steps: u64,
    /// Vertices whose displacements were cut, each once a step.
    pub cut: u64,
    /// The most vertices that bodies let through after a step, because there was no room.
    pub squeezed: u64,
    /// The first of them, with its body and the time, for people.
    pub first_squeezed: Option<String>,
    /// Pairs of an edge and a face of cloth that crossed at the start.
    pub started_crossing: u64,
    /// Vertices of cloth that started through cloth, and are not free yet.
    pub kept: u64,
    /// The simulated time in s after which all of them were free, if that was in this run.
    pub free_after: Option<f64>,
}

impl CertifiedTotals {
    /// Adds a step, after which the simulation is as given.
    pub(super) fn add(&mut self, step: &Certified, simulation: &Simulation<'_>, world: &World) {
        self.hits += step.hits;
        self.steps += u64::from(step.hits > 0);
        self.cut += step.cut;
        self.squeezed = self.squeezed.max(step.squeezed);
        self.started_crossing = world.start_crossings().len() as u64;
        self.kept = step.kept;
        if step.pulled > 0 && step.kept == 0 {
            self.free_after = Some(simulation.time());
        }
        if step.squeezed > 0 && self.first_squeezed.is_none() {
            let first = simulation.squeezed().first().copied();
            self.first_squeezed = first.map(|[vertex, body]| {
                format!(
                    "vertex {vertex} and body `{}` at {:.6} s",
                    world.scene().bodies[body as usize].name,
                    simulation.time()
                )
            });
        }
    }

    /// Lines for the summary, if anything was done.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let certified = (self.hits > 0 || self.squeezed > 0).then(|| {
            format!(
                "Certified: {} would have crossed, in {}; {} cut, at most {} squeezed after a step.",
                counted(self.hits, "pair"),
                counted(self.steps, "step"),
                counted(self.cut, "displacement"),
                counted(self.squeezed, "vertex"),
            )
        });
        let started = (self.started_crossing > 0).then(|| {
            let free = match (self.kept, self.free_after) {
                (0, Some(time)) => format!("all free after {time:.3} s"),
                (0, None) => "all free".to_owned(),
                (kept, _) => format!("{} not free yet", counted(kept, "vertex")),
            };
            let pairs = counted(self.started_crossing, "pair");
            format!("Start: {pairs} of an edge and a face of cloth crossed, {free}.")
        });
        certified.into_iter().chain(started).collect()
    }

    /// Warnings that a reader of the result must know.
    pub(super) fn warnings(&self) -> Vec<String> {
        let squeezed = self.first_squeezed.as_ref().map(|first| {
            format!(
                "bodies left cloth no room, so that {} went through one of them, the first: {first}; \
                 give it more room, or see `squeezed` in history.csv",
                counted(self.squeezed, "vertex")
            )
        });
        let kept = (self.kept > 0).then(|| {
            format!(
                "{} of cloth that started through cloth are not free at the end: run longer, or move \
                 the cloths apart; see `kept` in history.csv",
                counted(self.kept, "vertex")
            )
        });
        squeezed.into_iter().chain(kept).collect()
    }
}

/// A number with its noun.
fn counted(number: u64, noun: &str) -> String {
    match (number, noun) {
        (1, noun) => format!("1 {noun}"),
        (number, "vertex") => format!("{number} vertices"),
        (number, noun) => format!("{number} {noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certified_steps_are_reported_only_if_something_was_cut() {
        let mut totals = CertifiedTotals::default();
        assert!(totals.lines().is_empty() && totals.warnings().is_empty());
        (totals.hits, totals.steps, totals.cut) = (12, 1, 3);
        let line = totals.lines().join("\n");
        assert!(
            line.starts_with(
                "Certified: 12 pairs would have crossed, in 1 step; 3 displacements cut"
            ),
            "{line}"
        );
        assert!(totals.warnings().is_empty());
        totals.squeezed = 1;
        totals.first_squeezed = Some("vertex 7 and body `plate` at 0.100000 s".to_owned());
        let warning = totals.warnings().join("\n");
        assert!(
            warning.contains("1 vertex went through one of them"),
            "{warning}"
        );
        assert!(warning.contains("vertex 7 and body `plate`"), "{warning}");
    }

    #[test]
    fn cloth_that_crossed_at_the_start_is_reported_until_it_is_free_and_after() {
        let mut totals = CertifiedTotals {
            started_crossing: 12,
            kept: 40,
            ..CertifiedTotals::default()
        };
        let start = "Start: 12 pairs of an edge and a face of cloth crossed, ";
        assert_eq!(
            totals.lines(),
            [format!("{start}40 vertices not free yet.")]
        );
        assert!(totals.warnings()[0].starts_with("40 vertices of cloth that started through"));
        (totals.kept, totals.free_after) = (0, Some(0.34));
        assert_eq!(totals.lines(), [format!("{start}all free after 0.340 s.")]);
        totals.free_after = None;
        assert_eq!(totals.lines(), [format!("{start}all free.")]);
        assert!(totals.warnings().is_empty());
    }
}
