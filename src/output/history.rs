//! `history.csv`: one line per step, written as the step ends.
//!
//! Lines are handed to the system one at a time, so a run that is killed leaves complete lines. Reals
//! are written with as many digits as they need to be read back exactly. Columns may be added at the
//! end; those that are there keep their name, unit and place.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

use weft_io::read_text;

use super::{OutputError, RunDirectory};
use crate::step::Sufficed;

/// Declares the row, its header and its line from one list, so that they cannot drift apart.
macro_rules! history_row {
    ($($(#[$doc:meta])* $name:ident: $kind:ty,)*) => {
        /// What one step looked like; sums and maxima are over all ranks and vertices.
        #[derive(Clone, Copy, Debug, Default, PartialEq)]
        #[allow(non_snake_case, reason = "fields are named as the columns are, with their SI unit")]
        pub struct HistoryRow { $($(#[$doc])* pub $name: $kind,)* }

        impl HistoryRow {
            /// The names of the columns in order.
            pub const COLUMNS: &'static [&'static str] = &[$(stringify!($name)),*];

            fn cells(&self) -> Vec<String> {
                vec![$(self.$name.cell()),*]
            }
        }
    };
}

history_row! {
    /// Steps done, from 1.
    step: u64,
    /// Simulated time at the end of the step in s.
    time_s: f64,
    /// Iterations of the conjugate gradients.
    cg_iterations: u32,
    /// Residual at which they stopped, relative to the right-hand side (where that is negligible, to what is
    /// allowed, times the tolerance).
    cg_residual: f64,
    /// Contacts found.
    contacts: u64,
    /// Contacts with bodies that became constraints of the solve.
    constraints: u64,
    /// Contacts that pushed in the first pass of corrections.
    impulses: u64,
    /// Collision tasks that ran.
    tasks: u64,
    /// Times a running task gave part of its stack away.
    splits: u64,
    /// Tasks that ran on another rank than the one that had them first.
    steals: u64,
    /// Tests (pairs of BVH nodes).
    tests: u64,
    /// Wall time of assembling forces and matrix in s, slowest rank.
    physics_s: f64,
    /// Wall time of collision detection in s, slowest rank.
    collide_s: f64,
    /// Wall time of the linear solve in s, slowest rank.
    solve_s: f64,
    /// Wall time of the collision response in s, slowest rank.
    response_s: f64,
    /// Greatest speed of a vertex in m/s.
    max_speed: f64,
    /// Greatest principal strain of a triangle: elongation relative to its rest length.
    max_strain: f64,
    /// Kinetic energy in J.
    kinetic_J: f64,
    /// Linear systems solved.
    systems: u32,
    /// Parts that the step was taken in; more than 1 if it was cut.
    parts: u32,
    /// Parts that failed and were halved.
    halvings: u32,
    /// Why the last solve of the step went no further: `relative`, `solver.tolerance` was met; `absolute`, the residual
    /// that always suffices was met, which was the larger one; `start`, what it started from was good enough;
    /// `none`, nothing was solved. Empty in steps of earlier programs.
    stop: Sufficed,
    /// Wall time of moving vertices and sharing the new state in s, slowest rank. Empty in steps of earlier programs.
    share_s: f64,
}

/// A value as a cell of the file.
trait Cell {
    fn cell(&self) -> String;
}

impl Cell for u32 {
    fn cell(&self) -> String {
        self.to_string()
    }
}

impl Cell for u64 {
    fn cell(&self) -> String {
        self.to_string()
    }
}

impl Cell for f64 {
    /// As many digits as it takes to read it back exactly.
    fn cell(&self) -> String {
        format!("{self:?}")
    }
}

impl Cell for Sufficed {
    fn cell(&self) -> String {
        self.name().to_owned()
    }
}

impl HistoryRow {
    /// Columns that depend on ranks, schedule and machine; all others do not.
    pub const OF_THE_MACHINE: &'static [&'static str] = &[
        "tasks",
        "splits",
        "steals",
        "physics_s",
        "collide_s",
        "solve_s",
        "response_s",
        "share_s",
    ];

    /// The row as a line of the file, with its end.
    #[must_use]
    pub fn line(&self) -> String {
        self.cells().join(",") + "\n"
    }

    fn header() -> String {
        Self::COLUMNS.join(",") + "\n"
    }
}

/// Appends to `history.csv`.
#[derive(Debug)]
pub struct HistoryWriter {
    file: File,
    path: PathBuf,
    /// Of the whole lines, in bytes.
    length: u64,
}

impl HistoryWriter {
    /// Name of the file.
    pub const FILE: &'static str = "history.csv";

    /// Starts the file with its header.
    ///
    /// # Errors
    /// [`OutputError::Write`].
    pub fn create(run: &RunDirectory) -> Result<Self, OutputError> {
        let path = run.file(Self::FILE);
        let file = File::create(&path).map_err(OutputError::write(&path))?;
        let mut writer = Self {
            file,
            path,
            length: 0,
        };
        writer.append(&HistoryRow::header())?;
        Ok(writer)
    }

    /// Continues the file of an earlier run after `step`: later lines, and a last line that is not
    /// complete, are dropped. Lines of an earlier program, which knew only the first columns, have empty cells
    /// in the others.
    ///
    /// # Errors
    /// [`OutputError::Read`]; [`OutputError::Malformed`] if the columns are others or a line has no
    /// step; [`OutputError::Write`].
    pub fn resume(run: &RunDirectory, step: u64) -> Result<Self, OutputError> {
        let path = run.file(Self::FILE);
        let text = read_text(&path, u64::MAX).map_err(OutputError::read(&path))?;
        let malformed = |what: String| OutputError::Malformed {
            path: path.clone(),
            what,
        };
        let known = text.split_once('\n').and_then(|(header, rows)| {
            let columns: Vec<&str> = header.split(',').collect();
            let missing = HistoryRow::COLUMNS.strip_prefix(&columns[..])?.len();
            Some((rows, missing))
        });
        let Some((rows, missing)) = known else {
            return Err(malformed(
                "its columns are not those of this version".to_owned(),
            ));
        };
        let empty = ",".repeat(missing);
        let mut kept = HistoryRow::header();
        for (number, line) in rows.split_inclusive('\n').enumerate() {
            let Some(line) = line.strip_suffix('\n') else {
                break;
            };
            let first = line.split(',').next().unwrap_or_default();
            let done: u64 = first
                .parse()
                .map_err(|_| malformed(format!("line {} has no step number", number + 2)))?;
            if done <= step {
                kept += line;
                kept += &empty;
                kept.push('\n');
            }
        }
        run.write(Self::FILE, |out| out.write_all(kept.as_bytes()))?;
        let file = File::options()
            .append(true)
            .open(&path)
            .map_err(OutputError::write(&path))?;
        let length = kept.len() as u64;
        Ok(Self { file, path, length })
    }

    /// Appends the line of one step.
    ///
    /// # Errors
    /// [`OutputError::Write`].
    pub fn write(&mut self, row: &HistoryRow) -> Result<(), OutputError> {
        self.append(&row.line())
    }

    fn append(&mut self, line: &str) -> Result<(), OutputError> {
        let written = self.file.write_all(line.as_bytes());
        match written {
            Ok(()) => self.length += line.len() as u64,
            // What there was room for of the line is taken back; if that fails too, the first error says why.
            Err(_) => drop(self.file.set_len(self.length)),
        }
        written.map_err(OutputError::write(&self.path))
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, io};

    use super::*;

    fn row(step: u64) -> HistoryRow {
        HistoryRow {
            step,
            time_s: 0.02,
            cg_residual: 8.25e-7,
            tests: 12,
            ..Default::default()
        }
    }

    #[test]
    fn header_and_lines_are_the_documented_ones() {
        let root = tempfile::tempdir().unwrap();
        let run = RunDirectory::create(root.path()).unwrap();
        let mut history = HistoryWriter::create(&run).unwrap();
        history.write(&row(1)).unwrap();
        // Read while the writer is still open: nothing waits in a buffer.
        assert_eq!(
            fs::read_to_string(run.file("history.csv")).unwrap(),
            "step,time_s,cg_iterations,cg_residual,contacts,constraints,impulses,tasks,splits,\
             steals,tests,physics_s,collide_s,solve_s,response_s,max_speed,max_strain,kinetic_J,\
             systems,parts,halvings,stop,share_s\n\
             1,0.02,0,8.25e-7,0,0,0,0,0,0,12,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0,0,0,none,0.0\n"
        );
    }

    #[test]
    fn resumed_history_has_each_step_once() {
        let root = tempfile::tempdir().unwrap();
        let run = RunDirectory::create(root.path()).unwrap();
        let mut history = HistoryWriter::create(&run).unwrap();
        for step in 1..=5 {
            history.write(&row(step)).unwrap();
        }
        history.append("6,0.0").unwrap();
        drop(history);
        let mut history = HistoryWriter::resume(&run, 3).unwrap();
        history.write(&row(4)).unwrap();
        let text = fs::read_to_string(run.file("history.csv")).unwrap();
        let steps: Vec<&str> = text
            .lines()
            .skip(1)
            .map(|line| line.split(',').next().unwrap())
            .collect();
        assert_eq!(steps, ["1", "2", "3", "4"]);
    }

    #[test]
    fn history_of_a_program_with_fewer_columns_goes_on() {
        let root = tempfile::tempdir().unwrap();
        let run = RunDirectory::create(root.path()).unwrap();
        let columns = HistoryRow::COLUMNS.len() - 1;
        let old = HistoryRow::COLUMNS[..columns].join(",") + "\n1,0.02\n2,0.04\n3,";
        fs::write(run.file("history.csv"), old).unwrap();
        let mut history = HistoryWriter::resume(&run, 1).unwrap();
        history.write(&row(2)).unwrap();
        let text = fs::read_to_string(run.file("history.csv")).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[..2], [HistoryRow::header().trim_end(), "1,0.02,"]);
        assert!(
            lines[2].starts_with("2,") && lines[2].ends_with(",none,0.0"),
            "{text}"
        );
    }

    #[test]
    fn foreign_history_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let run = RunDirectory::create(root.path()).unwrap();
        for text in ["a,b\n1,2\n".to_owned(), HistoryRow::header() + "x,1\n"] {
            fs::write(run.file("history.csv"), text).unwrap();
            let error = HistoryWriter::resume(&run, 3).unwrap_err();
            assert!(matches!(error, OutputError::Malformed { .. }), "{error}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn full_disk_is_an_error_naming_the_file() {
        let root = tempfile::tempdir().unwrap();
        let run = RunDirectory::create(root.path()).unwrap();
        std::os::unix::fs::symlink("/dev/full", run.file("history.csv")).unwrap();
        let error = HistoryWriter::create(&run).unwrap_err();
        let OutputError::Write { path, source } = error else {
            panic!("{error}")
        };
        assert_eq!(
            (path, source.kind()),
            (run.file("history.csv"), io::ErrorKind::StorageFull)
        );
    }
}
