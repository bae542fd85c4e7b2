//! How the collision tests were shared, in a sentence and as a record.

use std::fmt;

use weft_runtime::ScopeReport;

use crate::output::BalanceRecord;

/// Sums over all ranks of what their workers did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Balance {
    total: ScopeReport,
    workers: usize,
}

impl Balance {
    /// Sums up the ranks' reports; each rank had `workers` workers.
    #[must_use]
    pub fn new(ranks: &[ScopeReport], workers: usize) -> Self {
        let mut total = ScopeReport::default();
        for report in ranks {
            total.add(report);
        }
        Self { total, workers }
    }

    /// Share of the workers' time in collision phases that was not spent in tasks, in [0, 1].
    #[must_use]
    pub fn idle(&self) -> f64 {
        let busy: f64 = self
            .total
            .busy
            .iter()
            .map(std::time::Duration::as_secs_f64)
            .sum();
        let all = self.total.elapsed.as_secs_f64() * self.workers as f64;
        if all > 0.0 {
            (1.0 - busy / all).clamp(0.0, 1.0)
        } else {
            0.0
        }
    }

    /// The balance for the run's record.
    #[must_use]
    pub fn record(&self) -> BalanceRecord {
        let t = &self.total;
        BalanceRecord {
            top_level: t.tasks - t.hyperforks - t.splits,
            tasks: t.tasks,
            tests: t.work,
            splits: t.splits,
            steal_requests: t.requests,
            steals: t.served,
            idle: self.idle(),
        }
    }
}

impl fmt::Display for Balance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let r = self.record();
        write!(
            f,
            "Balance: {} tasks from {} top-level tests and {} splits, {} tests; ",
            r.tasks, r.top_level, r.splits, r.tests
        )?;
        if r.steal_requests == 0 {
            write!(f, "no rank asked another for work; ")?;
        } else {
            write!(
                f,
                "{} steal requests, {:.0} % served, {} tasks moved; ",
                r.steal_requests,
                100.0 * r.steals as f64 / r.steal_requests as f64,
                self.total.tasks_in
            )?;
        }
        write!(
            f,
            "{:.1} % of the collision phase was spent without a task.",
            100.0 * r.idle
        )
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_sentence_counts_tasks_and_idle_time() {
        let rank = |tasks, busy| ScopeReport {
            tasks,
            splits: 2,
            work: 100,
            requests: 4,
            served: 1,
            tasks_in: 3,
            busy: vec![Duration::from_secs(busy)],
            elapsed: Duration::from_secs(10),
            ..ScopeReport::default()
        };
        let balance = Balance::new(&[rank(10, 10), rank(6, 5)], 1);
        assert_eq!(
            balance.to_string(),
            "Balance: 16 tasks from 12 top-level tests and 4 splits, 200 tests; 8 steal requests, \
             25 % served, 6 tasks moved; 25.0 % of the collision phase was spent without a task."
        );
    }
}
