//! The parts of `run.json` and `history.csv` that a report reads.
//!
//! Only what it needs, and most of it may be missing: a run that was killed has no phases, one of
//! an earlier version no list of ranks. `docs/src/formats.md` tells what the fields mean.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use weft_io::Show as _;
use weft_runtime::trace::Sharing;

/// The record of a run.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Record {
    /// The identity of the run, which its trace has too; empty for runs of earlier versions.
    #[serde(default)]
    pub run: String,
    /// The command line, program first.
    #[serde(default)]
    pub command: Vec<String>,
    /// The machine that it ran on.
    #[serde(default)]
    pub machine: Machine,
    /// The scene that was simulated.
    #[serde(default)]
    pub scene: Scene,
    /// How the scene is cut.
    pub partition: Option<Partition>,
    /// Time of the loop over steps in s, slowest rank.
    pub loop_s: Option<f64>,
    /// The phases of a step.
    #[serde(default)]
    pub phases: Vec<Phase>,
    /// The activities of ranks between steps; runs of earlier versions do not say.
    #[serde(default)]
    pub between: Vec<Phase>,
    /// How well ranks were used, over all steps.
    pub efficiency: Option<Efficiency>,
    /// How the collision tests were shared.
    pub balance: Option<Balance>,
    /// The work of each rank.
    #[serde(default)]
    pub ranks: Vec<Rank>,
    /// The memory that each process holds for the world, by part; runs of earlier versions do not
    /// say.
    #[serde(default)]
    pub world_memory: Vec<MemoryPart>,
    /// How ranks were to share work.
    #[serde(default)]
    pub sharing: Option<Sharing>,
    /// The result of the run.
    pub result: Option<Outcome>,
    /// The summary of the trace.
    pub trace: Option<TraceRecord>,
    /// The step that it went on from: what is measured is of the time since.
    #[serde(default)]
    pub resumed_from: Option<u64>,
    /// Warnings that a reader of the result must know.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// The error that ended the run.
    pub error: Option<String>,
    /// Exit code; `None` for a run that goes on or was killed.
    pub exit: Option<u8>,
}

impl Record {
    /// Makes all that is shown of it such that it can be. The command and the scene's path stay as
    /// they are: they become words of commands, which are quoted.
    pub(crate) fn make_safe(&mut self) {
        let phases = self.phases.iter_mut().chain(&mut self.between);
        let of_phases = phases.map(|phase| &mut phase.name);
        let texts = [&mut self.scene.name, &mut self.machine.comm];
        let texts = texts.into_iter().chain(&mut self.warnings);
        let texts = texts.chain(&mut self.error).chain(of_phases);
        let of_result = self.result.iter_mut().map(|result| &mut result.hash);
        let of_ranks = self.ranks.iter_mut().flat_map(|rank| &mut rank.memory);
        let of_memory = of_ranks.chain(&mut self.world_memory);
        let of_memory = of_memory.map(|part| &mut part.part);
        for text in texts.chain(of_result).chain(of_memory) {
            *text = text.shown().to_string();
        }
        self.sharing.iter_mut().for_each(make_safe);
    }
}

/// Makes its names such that they can be shown.
pub(crate) fn make_safe(sharing: &mut Sharing) {
    let names = [&mut sharing.split, &mut sharing.victims];
    for name in names.into_iter().chain(&mut sharing.policy) {
        *name = name.shown().to_string();
    }
}

/// The machine that a run ran on.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Machine {
    /// Number of ranks.
    pub ranks: u32,
    /// Workers per rank.
    pub threads: u32,
    /// How ranks talked.
    pub comm: String,
    /// The ranks of each host.
    #[serde(default)]
    pub hosts: BTreeMap<String, Vec<u32>>,
    /// Cores that the first rank's process may use, if the run says so.
    #[serde(default)]
    pub cores: Option<u32>,
}

/// The scene that was simulated.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Scene {
    /// Its name.
    pub name: String,
    /// Its file, as it was given.
    pub path: Option<String>,
    /// SHA-256 of its text.
    #[serde(default)]
    pub sha256: String,
}

/// How the scene is cut.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Partition {
    /// Number of patches.
    pub patches: u64,
}

/// A line of the phase table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// Its name.
    pub name: String,
    /// Least time of a rank in s.
    pub min_s: f64,
    /// The rank that had it.
    pub min_rank: u32,
    /// Mean over ranks in s.
    pub avg_s: f64,
    /// Greatest time of a rank in s.
    pub max_s: f64,
    /// The rank that had it.
    pub max_rank: u32,
}

impl Phase {
    /// The times of a phase from every rank's seconds, by rank. The first rank is named where
    /// several have equal times.
    #[must_use]
    pub fn of(name: &str, seconds: &[f64]) -> Self {
        let mut phase = Self {
            name: name.to_owned(),
            min_s: f64::INFINITY,
            ..Self::default()
        };
        for (rank, &s) in (0..).zip(seconds) {
            if s < phase.min_s {
                (phase.min_s, phase.min_rank) = (s, rank);
            }
            if s > phase.max_s {
                (phase.max_s, phase.max_rank) = (s, rank);
            }
        }
        phase.avg_s = seconds.iter().sum::<f64>() / seconds.len().max(1) as f64;
        phase.min_s = phase.min_s.min(phase.max_s);
        phase
    }

    /// `max / avg - 1`; 0 for a phase that took no time.
    #[must_use]
    pub fn imbalance(&self) -> f64 {
        if self.avg_s > 0.0 {
            // Means of equal numbers may be rounded up.
            (self.max_s / self.avg_s - 1.0).max(0.0)
        } else {
            0.0
        }
    }
}

/// The basis of the efficiencies of a whole run, for people.
pub const EFFICIENCY_OF: &str = "POP, steps of the whole run, no wait is useful";

/// The efficiencies of the POP project, each in [0, 1].
///
/// Here they are of steps: the elapsed time is that of the rank that spent most in them, without
/// outputs and what else goes by between steps, and useful is what is left of a rank's steps
/// without waits, for messages and for tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Efficiency {
    /// Mean useful time over the greatest of a rank.
    pub load_balance: f64,
    /// Greatest useful time of a rank over the time that all took.
    pub communication: f64,
    /// The product of the two.
    pub parallel: f64,
}

impl Efficiency {
    /// Computes efficiencies from every rank's useful time and the time that all took, in one unit;
    /// `None` if nothing was useful.
    #[must_use]
    pub fn of(useful: &[f64], elapsed: f64) -> Option<Self> {
        let greatest = useful.iter().copied().fold(0.0, f64::max);
        if greatest <= 0.0 || elapsed <= 0.0 {
            return None;
        }
        let mean = useful.iter().sum::<f64>() / useful.len() as f64;
        Some(Self {
            load_balance: mean / greatest,
            communication: (greatest / elapsed).min(1.0),
            parallel: (mean / elapsed).min(1.0),
        })
    }
}

/// How the collision tests were shared, all ranks together.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Balance {
    /// Tasks the steps began with.
    #[serde(default)]
    pub top_level: u64,
    /// Tasks that ran.
    #[serde(default)]
    pub tasks: u64,
    /// Tests (pairs of BVH nodes).
    #[serde(default)]
    pub tests: u64,
    /// Times a running task gave part of its stack away.
    #[serde(default)]
    pub splits: u64,
    /// Requests for work.
    #[serde(default)]
    pub steal_requests: u64,
    /// Requests that brought work.
    #[serde(default)]
    pub steals: u64,
    /// Share of the time in collision phases spent without a task.
    #[serde(default)]
    pub idle: f64,
}

/// A part of the memory that a process held.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct MemoryPart {
    /// Its name.
    pub part: String,
    /// Its bytes.
    pub bytes: u64,
}

/// The work of one rank over the whole run.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Rank {
    /// The first patch that it owns.
    pub first_patch: u32,
    /// The patch after the last one that it owns.
    pub end_patch: u32,
    /// Time in each phase in s.
    #[serde(default)]
    pub phases_s: Vec<f64>,
    /// Time that its workers spent in tasks, over their number, in s.
    #[serde(default)]
    pub tasks_s: f64,
    /// Time in which it made patches ready for tests outside of tasks, in s.
    #[serde(default)]
    pub early_s: f64,
    /// Time of its steps in which it was at work, in s; runs of earlier versions do not say.
    #[serde(default)]
    pub useful_s: Option<f64>,
    /// Tasks that finished here.
    #[serde(default)]
    pub tasks: u64,
    /// Tests made here.
    #[serde(default)]
    pub tests: u64,
    /// Pieces that tasks here gave away.
    #[serde(default)]
    pub splits: u64,
    /// Requests sent.
    #[serde(default)]
    pub steal_requests: u64,
    /// Requests that brought work.
    #[serde(default)]
    pub steals: u64,
    /// Requests that brought nothing.
    #[serde(default)]
    pub refused: u64,
    /// Tasks that came from other ranks.
    #[serde(default)]
    pub tasks_in: u64,
    /// Tasks that went to other ranks.
    #[serde(default)]
    pub tasks_out: u64,
    /// Bytes sent for the sharing of tasks.
    #[serde(default)]
    pub bytes: u64,
    /// The most memory that its process has had, in bytes; runs of earlier versions do not say.
    #[serde(default)]
    pub peak_memory_bytes: Option<u64>,
    /// The memory that it held at the end beside the world, by part; runs of earlier versions do
    /// not say.
    #[serde(default)]
    pub memory: Vec<MemoryPart>,
}

/// The outcome of a run.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Outcome {
    /// Hash of the last state.
    pub hash: String,
    /// Cloth vertices.
    pub vertices: u64,
    /// Steps taken.
    pub steps: u64,
}

/// The summary of a trace.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct TraceRecord {
    /// How far clocks of two ranks may be apart in s.
    #[serde(default)]
    pub clock_error_s: f64,
}

/// A step, as `history.csv` has it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Row {
    /// Its number, from 1.
    pub step: u32,
    /// Time of each of [`Row::PHASES`] in s, slowest rank each; 0 where an earlier version did not
    /// say.
    pub phases_s: [f64; 5],
    /// Tests.
    pub tests: u64,
    /// Tasks that ran on another rank than the one that had them first.
    pub steals: u64,
    /// The figures of certification; nothing where an earlier version did not write them.
    pub certified: Certified,
}

/// The figures of certification of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Certified {
    /// Pairs of features that would have crossed.
    pub hits: u64,
    /// Vertices whose displacements were cut.
    pub cut: u64,
    /// Vertices that bodies let through when the step ended.
    pub squeezed: u64,
}

impl Row {
    /// The phases, in the order of [`Row::phases_s`], under the names that `run.json` gives them.
    pub const PHASES: [&'static str; 5] = ["collide", "assemble", "solve", "respond", "share"];
    const COLUMNS: [&'static str; 7] = [
        "step",
        "collide_s",
        "physics_s",
        "solve_s",
        "response_s",
        "tests",
        "steals",
    ];

    /// The whole lines of a history; a killed run may have left a part of one.
    ///
    /// # Errors
    /// A sentence: a column is missing, or a cell is no number.
    pub fn read_all(text: &str) -> Result<Vec<Self>, String> {
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let mut lines = (1..)
            .zip(whole.lines())
            .filter(|(_, line)| !line.starts_with('#'));
        let header: Vec<&str> = lines.next().unwrap_or_default().1.split(',').collect();
        let mut at = [0; Self::COLUMNS.len()];
        for (at, name) in at.iter_mut().zip(Self::COLUMNS) {
            let found = header.iter().position(|column| *column == name);
            *at = found.ok_or_else(|| format!("it has no column `{name}`"))?;
        }
        // Earlier versions did not write these.
        let place = |name: &str| header.iter().position(|column| *column == name);
        let share = place("share_s");
        let certified = ["hits", "cut", "squeezed"].map(place);
        lines
            .map(|(number, line)| {
                let cells: Vec<&str> = line.split(',').collect();
                let cell = |k: usize| -> Result<f64, String> {
                    let cell = cells.get(at[k]).and_then(|cell| cell.parse().ok());
                    cell.ok_or_else(|| {
                        format!(
                            "line {number} has no number in column `{}`",
                            Self::COLUMNS[k]
                        )
                    })
                };
                let share = share.and_then(|at| cells.get(at)?.parse().ok());
                let [hits, cut, squeezed] = certified.map(|at| {
                    at.and_then(|at| cells.get(at)?.parse().ok())
                        .unwrap_or_default()
                });
                Ok(Self {
                    step: cell(0)? as u32,
                    phases_s: [cell(1)?, cell(2)?, cell(3)?, cell(4)?, share.unwrap_or(0.0)],
                    tests: cell(5)? as u64,
                    steals: cell(6)? as u64,
                    certified: Certified {
                        hits,
                        cut,
                        squeezed,
                    },
                })
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_the_ranks_at_both_ends() {
        let phase = Phase::of("collide", &[2.0, 1.0, 3.0, 3.0, 1.0]);
        assert_eq!((phase.min_s, phase.min_rank), (1.0, 1));
        assert_eq!((phase.max_s, phase.max_rank), (3.0, 2));
        assert_eq!(phase.avg_s, 2.0);
        assert_eq!(phase.imbalance(), 0.5);
        assert_eq!(Phase::of("x", &[0.0]).imbalance(), 0.0);
        assert_eq!(Phase::of("x", &[]).min_s, 0.0);
    }

    /// One rank of four works 8 s of 10, the others 2: what POP's definitions say by hand.
    #[test]
    fn efficiencies_are_those_of_the_definition() {
        let e = Efficiency::of(&[8.0, 2.0, 2.0, 4.0], 10.0).unwrap();
        assert_eq!(
            (e.load_balance, e.communication, e.parallel),
            (0.5, 0.8, 0.4)
        );
        assert_eq!(Efficiency::of(&[0.0], 1.0), None);
    }

    #[test]
    fn histories_are_read_by_column_and_a_torn_line_is_none() {
        let text = "step,new,tests,steals,physics_s,collide_s,solve_s,response_s\n\
                    1,x,5,2,0.2,0.1,0.3,0.4\n2,x,6,3,0,0,0,0\n3,x,7";
        let rows = Row::read_all(text).unwrap();
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[0].phases_s, [0.1, 0.2, 0.3, 0.4, 0.0]);
        // A history that went on after an earlier version has cells without a number.
        let text = "step,share_s,tests,steals,physics_s,collide_s,solve_s,response_s\n\
                    1,,5,2,0.2,0.1,0.3,0.4\n2,0.5,6,3,0,0,0,0\n";
        let rows = Row::read_all(text).unwrap();
        assert_eq!((rows[0].phases_s[4], rows[1].phases_s[4]), (0.0, 0.5));
        let text = "1,x,5,2,0.2,0.1,0.3,0.4\n2,x,6,3,0,0,0,0\n3,x,7";
        let rows = Row::read_all(&format!(
            "step,new,tests,steals,physics_s,collide_s,solve_s,response_s\n{text}"
        ))
        .unwrap();
        assert_eq!((rows[1].step, rows[1].tests, rows[1].steals), (2, 6, 3));
        for (text, word) in [
            ("step,tests\n", "collide_s"),
            ("", "step"),
            (
                "step,tests,steals,physics_s,collide_s,solve_s,response_s\n1,2\n",
                "line 2",
            ),
        ] {
            let error = Row::read_all(text).unwrap_err();
            assert!(error.contains(word), "{error}");
        }
    }
}
