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
}

impl CertifiedTotals {
    /// Adds a step, after which the simulation is as given.
    pub(super) fn add(&mut self, step: &Certified, simulation: &Simulation<'_>, world: &World) {
        self.hits += step.hits;
        self.steps += u64::from(step.hits > 0);
        self.cut += step.cut;
        self.squeezed = self.squeezed.max(step.squeezed);
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

    /// A line for the summary, if anything was done.
    #[must_use]
    pub fn line(&self) -> Option<String> {
        (self.hits > 0 || self.squeezed > 0).then(|| {
            format!(
                "Certified: {} would have crossed, in {}; {} cut, at most {} squeezed after a step.",
                counted(self.hits, "pair"),
                counted(self.steps, "step"),
                counted(self.cut, "displacement"),
                counted(self.squeezed, "vertex"),
            )
        })
    }

    /// What a reader of the result must know.
    pub(super) fn warnings(&self) -> Option<String> {
        self.first_squeezed.as_ref().map(|first| {
            format!(
                "bodies left cloth no room, so that {} went through one of them, the first: {first}; \
                 give it more room, or see `squeezed` in history.csv",
                counted(self.squeezed, "vertex")
            )
        })
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
    fn what_was_done_is_told_and_nothing_is_not() {
        let mut totals = CertifiedTotals::default();
        assert_eq!((totals.line(), totals.warnings()), (None, None));
        (totals.hits, totals.steps, totals.cut) = (12, 1, 3);
        let line = totals.line().unwrap();
        assert!(
            line.starts_with(
                "Certified: 12 pairs would have crossed, in 1 step; 3 displacements cut"
            ),
            "{line}"
        );
        assert_eq!(totals.warnings(), None);
        totals.squeezed = 1;
        totals.first_squeezed = Some("vertex 7 and body `plate` at 0.100000 s".to_owned());
        let warning = totals.warnings().unwrap();
        assert!(
            warning.contains("1 vertex went through one of them"),
            "{warning}"
        );
        assert!(warning.contains("vertex 7 and body `plate`"), "{warning}");
    }
}
