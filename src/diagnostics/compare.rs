//! Two runs side by side: whether they are the same, and where they part if not.
//!
//! The promise is that ranks, workers and schedule do not touch the trajectory; here a user sees it
//! kept, or that a changed scene, machine or version parts two runs, and at which step. In: two run
//! directories. Out: what agrees and what differs, in sentences.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::Path;

use glam::DVec3;
use weft_io::{Show as _, read_text};

use crate::output::{
    HistoryRow, HistoryWriter, OutputError, RunRecord, path_of_cloth, read_points, step_of_cloth,
};

/// The common points and the differences of two runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Comparison {
    /// The common points, a sentence each.
    pub agrees: Vec<String>,
    /// The differences, a sentence each.
    pub differs: Vec<String>,
    /// The largest distance between positions of a vertex in any frame that both have, in m; `None`
    /// without such frames.
    pub farthest: Option<f64>,
}

/// All lines, differences first.
impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.differs {
            writeln!(f, "differs  {line}")?;
        }
        for line in &self.agrees {
            writeln!(f, "same     {line}")?;
        }
        Ok(())
    }
}

/// Compares the runs in two directories: state hash, history, frames.
///
/// # Errors
/// [`OutputError`] if one is no run's directory, or a file there cannot be read or understood.
pub fn compare(a: &Path, b: &Path) -> Result<Comparison, OutputError> {
    let mut comparison = Comparison::default();
    comparison.records(&read_record(a)?, &read_record(b)?);
    comparison.histories(&read_history(a)?, &read_history(b)?);
    comparison.frames(a, b)?;
    Ok(comparison)
}

fn read_record(run: &Path) -> Result<RunRecord, OutputError> {
    RunRecord::read(run)
}

/// `history.csv` as it is.
struct History {
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
}

fn read_history(run: &Path) -> Result<History, OutputError> {
    let path = run.join(HistoryWriter::FILE);
    let text = read_text(&path, u64::MAX).map_err(OutputError::read(&path))?;
    // The differences are shown.
    let cells = |line: &str| {
        let cells = line.split(',').map(|cell| cell.shown().to_string());
        cells.collect::<Vec<_>>()
    };
    // A killed run may leave a part of a line.
    let complete = text.rfind('\n').map_or("", |end| &text[..end]);
    let mut lines = complete.lines().filter(|line| !line.starts_with('#'));
    let columns = cells(lines.next().unwrap_or_default());
    let rows: Vec<_> = lines.map(cells).collect();
    match rows.iter().position(|row| row.len() != columns.len()) {
        None if columns.iter().any(|name| name == "step") => Ok(History { columns, rows }),
        short => Err(OutputError::Malformed {
            path,
            what: short.map_or_else(
                || "it has no column `step`".to_owned(),
                |row| format!("row {} has not one cell for each column", row + 1),
            ),
        }),
    }
}

impl Comparison {
    fn records(&mut self, a: &RunRecord, b: &RunRecord) {
        if a.scene.sha256 != b.scene.sha256 {
            self.differs.push(format!(
                "scene: {} and {}",
                a.scene.name.shown(),
                b.scene.name.shown()
            ));
        }
        match (&a.result, &b.result) {
            (Some(a), Some(b)) => {
                if a.vertices != b.vertices {
                    self.differs
                        .push(format!("vertices: {} and {}", a.vertices, b.vertices));
                }
                if a.steps != b.steps {
                    self.differs
                        .push(format!("steps: {} and {}", a.steps, b.steps));
                }
                if a.hash_version != b.hash_version {
                    self.agrees.push(format!(
                        "(nothing to compare in state hashes of versions {} and {}, by programs that define them in different ways)",
                        a.hash_version, b.hash_version
                    ));
                } else if a.hash == b.hash {
                    self.agrees
                        .push(format!("state hash {} after {} steps", a.hash, a.steps));
                } else {
                    self.differs
                        .push(format!("state hash: {} and {}", a.hash, b.hash));
                }
            }
            (None, None) => self
                .differs
                .push("result: neither run came to its end".to_owned()),
            (first, _) => {
                let which = if first.is_none() { "first" } else { "second" };
                self.differs
                    .push(format!("result: the {which} run did not come to its end"));
            }
        }
    }

    /// Columns that do not depend on the machine, which both have, over the steps that both have.
    fn histories(&mut self, a: &History, b: &History) {
        if a.rows.len() != b.rows.len() {
            self.differs.push(format!(
                "history: {} and {} steps",
                a.rows.len(),
                b.rows.len()
            ));
        }
        let columns: Vec<(usize, usize)> = (a.columns.iter().enumerate())
            .filter(|(_, name)| !HistoryRow::OF_THE_MACHINE.contains(&name.as_str()))
            .filter_map(|(at, name)| Some((at, b.columns.iter().position(|other| other == name)?)))
            .collect();
        let pairs = a.rows.iter().zip(&b.rows);
        let mut first = None;
        let mut parted = BTreeSet::new();
        for (row_a, row_b) in pairs.clone() {
            for &(i, j) in columns.iter().filter(|&&(i, j)| row_a[i] != row_b[j]) {
                parted.insert(i);
                first.get_or_insert_with(|| {
                    let step = a.columns.iter().position(|name| name == "step");
                    let step = step.map_or("?", |at| row_a[at].as_str());
                    format!(
                        "history: from step {step} on, first in {}: {} and {}",
                        a.columns[i], row_a[i], row_b[j]
                    )
                });
            }
        }
        match first {
            Some(first) => {
                let names: Vec<&str> = parted.iter().map(|&i| a.columns[i].as_str()).collect();
                self.differs.push(format!(
                    "{first} (columns that differ: {})",
                    names.join(", ")
                ));
            }
            None => self.agrees.push(format!(
                "history: {} columns of {} steps",
                columns.len(),
                pairs.len()
            )),
        }
    }

    /// Frames of the cloth that both have.
    fn frames(&mut self, a: &Path, b: &Path) -> Result<(), OutputError> {
        let (of_a, of_b) = (frames_of(a)?, frames_of(b)?);
        let only = of_a.symmetric_difference(&of_b).count();
        let common: Vec<u64> = of_a.intersection(&of_b).copied().collect();
        let mut first = None;
        let mut farthest: Option<(f64, usize, String)> = None;
        for &step in &common {
            // One of them may be in pieces.
            let paths = [a, b].map(|run| path_of_cloth(run, step));
            let (at_a, at_b) = (read_points(&paths[0])?, read_points(&paths[1])?);
            let name = format!("cloth.{step:06}.vtp");
            if at_a.len() != at_b.len() {
                self.differs.push(format!(
                    "frames: {name} has {} and {} vertices",
                    at_a.len(),
                    at_b.len()
                ));
                return Ok(());
            }
            let bits = |p: &DVec3| p.to_array().map(f64::to_bits);
            let distances = at_a.iter().zip(&at_b).map(|(p, q)| {
                let same = bits(p) == bits(q);
                (same, if same { 0.0 } else { p.distance(*q) })
            });
            for (vertex, (same, distance)) in distances.enumerate() {
                // Where one is no number nothing is farther.
                let more = |(most, _, _): &(f64, usize, String)| distance.total_cmp(most).is_gt();
                if farthest.as_ref().is_none_or(more) {
                    farthest = Some((distance, vertex, name.clone()));
                }
                if !same {
                    first.get_or_insert_with(|| name.clone());
                }
            }
        }
        self.farthest = farthest.as_ref().map(|(distance, _, _)| *distance);
        match (first, farthest) {
            (Some(first), Some((distance, vertex, frame))) => self.differs.push(format!(
                "frames: positions from {first} on, most by {distance:e} m at vertex {vertex} in {frame}"
            )),
            _ if common.is_empty() => {}
            _ => self
                .agrees
                .push(format!("frames: positions in all {} of both", common.len())),
        }
        if only > 0 {
            self.agrees.push(format!(
                "(nothing to compare {only} frames with that one run has)"
            ));
        }
        Ok(())
    }
}

/// The steps of the frames of a run; none if it wrote none.
fn frames_of(run: &Path) -> Result<BTreeSet<u64>, OutputError> {
    let folder = run.join("frames");
    if !folder.exists() {
        return Ok(BTreeSet::new());
    }
    let mut steps = BTreeSet::new();
    for entry in fs::read_dir(&folder).map_err(OutputError::read(&folder))? {
        let name = entry.map_err(OutputError::read(&folder))?.file_name();
        steps.extend(name.to_str().and_then(step_of_cloth));
    }
    Ok(steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(columns: &str, rows: &[&str]) -> History {
        let cells = |line: &str| line.split(',').map(str::to_owned).collect::<Vec<_>>();
        History {
            columns: cells(columns),
            rows: rows.iter().map(|row| cells(row)).collect(),
        }
    }

    #[test]
    fn histories_part_at_the_first_step_that_differs_and_times_do_not_count() {
        let a = history(
            "step,contacts,steals,solve_s",
            &["1,5,0,0.1", "2,6,3,0.2", "3,8,3,0.2"],
        );
        let same = history(
            "step,contacts,solve_s,new",
            &["1,5,0.4,x", "2,6,0.5,x", "3,8,0.7,x"],
        );
        let mut comparison = Comparison::default();
        comparison.histories(&a, &same);
        assert_eq!(comparison.differs, [""; 0]);
        assert!(comparison.agrees[0].contains("2 columns of 3 steps"));
        let other = history("step,contacts,steals,solve_s", &["1,5,0,0.1", "2,7,0,0.3"]);
        let mut comparison = Comparison::default();
        comparison.histories(&a, &other);
        assert!(comparison.differs[0].contains("3 and 2 steps"));
        let parts = &comparison.differs[1];
        assert!(
            parts.contains("from step 2 on, first in contacts: 6 and 7"),
            "{parts}"
        );
    }
}
