//! How the steps of a run were cut, for the record and for warnings.

use serde::{Deserialize, Serialize};

use crate::step::StepReport;

/// Steps that were taken in parts; the same on every rank.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cuts {
    /// Parts that failed and were halved.
    pub halvings: u64,
    /// Steps in which that happened.
    pub steps: u64,
    /// The reason in the first of them.
    pub first: Option<String>,
    /// The shortest part in s, if any step was taken in parts.
    pub shortest: Option<f64>,
    /// Parts that could not be halved any more and were accepted, though edges changed by more than
    /// `time.strain_change`, or triangles were stretched far beyond their limit.
    pub rough: u64,
}

impl Cuts {
    /// Adds a step.
    pub(super) fn add(&mut self, report: &StepReport) {
        self.rough += u64::from(report.rough);
        if report.substeps > 1 {
            let shortest = self.shortest.unwrap_or(f64::INFINITY);
            self.shortest = Some(shortest.min(report.shortest));
        }
        if report.halvings > 0 {
            self.halvings += u64::from(report.halvings);
            self.steps += 1;
            if self.first.is_none() {
                self.first.clone_from(&report.halved_because);
            }
        }
    }

    /// Warnings that a reader of the result must know.
    pub(super) fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if let (Some(why), Some(shortest)) = (&self.first, self.shortest) {
            warnings.push(format!(
                "{} cut (halvings: {}), the shortest part {:.3} ms; the first: {why}",
                match self.steps {
                    1 => "1 step was".to_owned(),
                    steps => format!("{steps} steps were"),
                },
                self.halvings,
                1e3 * shortest,
            ));
        }
        if self.rough > 0 {
            warnings.push(format!(
                "in {} {} of steps an edge changed its length by more than time.strain_change, or a triangle was stretched \
                 beyond its limit at one go, and time.shortest allows no shorter ones",
                self.rough,
                if self.rough == 1 { "part" } else { "parts" }
            ));
        }
        warnings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_are_counted_and_told() {
        let mut cuts = Cuts::default();
        let whole = StepReport {
            substeps: 1,
            shortest: 0.01,
            ..StepReport::default()
        };
        cuts.add(&whole);
        assert_eq!((cuts.clone(), cuts.warnings()), (Cuts::default(), vec![]));
        let cut = |because: &str, rough| StepReport {
            substeps: 3,
            halvings: 2,
            shortest: 0.0025,
            halved_because: Some(because.to_owned()),
            rough,
            ..StepReport::default()
        };
        cuts.add(&cut("step 2: it fell", 0));
        cuts.add(&cut("it fell again", 4));
        assert_eq!(
            (cuts.halvings, cuts.steps, cuts.shortest),
            (4, 2, Some(0.0025))
        );
        let [told, rough] = &cuts.warnings()[..] else {
            panic!("two warnings")
        };
        assert!(
            told.contains("step 2: it fell") && told.contains("2.500 ms"),
            "{told}"
        );
        assert!(rough.contains("in 4 parts"), "{rough}");
    }
}
