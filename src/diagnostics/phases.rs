//! The phase table: where the time of the ranks went.
//!
//! Imbalance is `max / avg − 1`. The efficiencies are those of the POP project: load balance is the
//! average useful time over the largest, communication the largest useful time over the time of all
//! steps, parallel their product. Useful is the time of steps without waits: those for messages,
//! and for tasks. Activities of ranks between steps, such as writing frames, belong to no step.

use std::fmt;

use weft_report::{EFFICIENCY_OF, Efficiency, OTHER, Phase as PhaseRecord, phase_table};

/// One phase's time on every rank.
#[derive(Clone, Debug, PartialEq)]
pub struct Phase {
    /// Its name.
    pub name: &'static str,
    /// Seconds, by rank.
    pub seconds: Vec<f64>,
}

/// Time of all phases on all ranks.
#[derive(Clone, Debug, PartialEq)]
pub struct PhaseTable {
    phases: Vec<Phase>,
    /// Seconds of useful work in steps, by rank.
    useful: Vec<f64>,
    /// The activities between steps.
    between: Vec<Phase>,
    loop_seconds: f64,
}

impl PhaseTable {
    /// A table of phases measured on the same ranks; `loop_seconds` is the time of the slowest rank
    /// from the first step to the last, with what is done between them, `useful` each rank's time
    /// of work in steps, and `between` what goes by outside of them.
    #[must_use]
    pub fn new(
        phases: Vec<Phase>,
        useful: Vec<f64>,
        between: Vec<Phase>,
        loop_seconds: f64,
    ) -> Self {
        Self {
            phases,
            useful,
            between,
            loop_seconds,
        }
    }

    /// The rows, for the run's record.
    #[must_use]
    pub fn records(&self) -> Vec<PhaseRecord> {
        self.phases.iter().map(record).collect()
    }

    /// The parts of what lies between steps, for the run's record.
    #[must_use]
    pub fn between(&self) -> Vec<PhaseRecord> {
        self.between.iter().map(record).collect()
    }

    /// The POP efficiencies; `None` if nothing was measured.
    #[must_use]
    pub fn efficiency(&self) -> Option<Efficiency> {
        Efficiency::of(&self.useful, self.step_seconds())
    }

    /// Time of the rank that spent most in steps, in s.
    fn step_seconds(&self) -> f64 {
        let of_rank = |rank: usize| -> f64 {
            let phases = self
                .phases
                .iter()
                .filter_map(|phase| phase.seconds.get(rank));
            phases.sum()
        };
        (0..self.useful.len()).map(of_rank).fold(0.0, f64::max)
    }
}

impl fmt::Display for PhaseTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let table = phase_table(&self.records(), self.loop_seconds, OTHER, &self.between());
        f.write_str(table.trim_end())?;
        if let Some(e) = self.efficiency() {
            write!(
                f,
                "\nEfficiency: load balance {:.2}, communication {:.2}, parallel {:.2} ({EFFICIENCY_OF})",
                e.load_balance, e.communication, e.parallel
            )?;
        }
        Ok(())
    }
}

fn record(phase: &Phase) -> PhaseRecord {
    PhaseRecord::of(phase.name, &phase.seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> PhaseTable {
        let phases = vec![
            Phase {
                name: "collide",
                seconds: vec![1.0, 3.0],
            },
            Phase {
                name: "solve",
                seconds: vec![2.0, 2.0],
            },
            Phase {
                name: "share",
                seconds: vec![0.0123, 0.0004],
            },
        ];
        let between = vec![
            Phase {
                name: "pictures",
                seconds: vec![0.0, 0.0],
            },
            Phase {
                name: "frames",
                seconds: vec![3.0, 3.0],
            },
        ];
        PhaseTable::new(phases, vec![2.0, 4.0], between, 8.0)
    }

    #[test]
    fn the_table_says_who_was_slow_and_what_is_missing() {
        let expected = "\
Phase         |     min (rank) |      avg |     max (rank) | imbalance % | share %
collide       |   1.00 s   (0) |   2.00 s |   3.00 s   (1) |        50.0 |    25.0
solve         |   2.00 s   (0) |   2.00 s |   2.00 s   (0) |         0.0 |    25.0
share         |   400 µs   (1) |  6.35 ms |  12.3 ms   (0) |        93.7 |     0.1
other         |                |   3.99 s |                |             |    49.9
  frames      |   3.00 s   (0) |   3.00 s |   3.00 s   (0) |         0.0 |    37.5
Efficiency: load balance 0.75, communication 0.80, parallel 0.60 (POP, steps of the whole run, no wait is useful)";
        assert_eq!(table().to_string(), expected);
    }

    #[test]
    fn parallel_efficiency_is_the_product_of_the_others() {
        let e = table().efficiency().unwrap();
        assert!((e.load_balance * e.communication - e.parallel).abs() < 1e-15);
        assert_eq!(
            PhaseTable::new(vec![], vec![0.0], vec![], 1.0).efficiency(),
            None
        );
    }

    /// A rank alone that spends most of its time on frames loses nothing to communication.
    #[test]
    fn outputs_between_steps_are_not_held_against_communication() {
        let phases = vec![Phase {
            name: "solve",
            seconds: vec![1.0],
        }];
        let e = PhaseTable::new(phases, vec![1.0], vec![], 20.0)
            .efficiency()
            .unwrap();
        assert_eq!(
            (e.load_balance, e.communication, e.parallel),
            (1.0, 1.0, 1.0)
        );
    }
}
