//! `history.csv`: one line per step, written as the step ends.
//!
//! Lines are handed to the system one at a time, so a run that is killed leaves complete lines.
//! Reals are written with as many digits as they need to be read back exactly. Columns may be added
//! at the end; those that are there keep their name, unit and place.
//!
//! A checkpoint knows what the file was when it was written ([`HistoryMark`]). A run that goes on
//! from it cuts the file to that; of one that has been damaged since it keeps the whole lines and
//! says what is missing.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::plain::read_plain;
use super::{OutputError, RunDirectory};
use crate::step::Sufficed;

/// Declares the row, its header and its line from one list, so that they cannot drift apart.
macro_rules! history_row {
    ($($(#[$doc:meta])* $name:ident: $kind:ty,)*) => {
        /// One line of the history, for one step; sums and maxima are over all ranks and vertices.
        #[derive(Clone, Copy, Debug, Default, PartialEq)]
        #[allow(non_snake_case, reason = "fields are named as the columns are, with their SI unit")]
        pub struct HistoryRow { $($(#[$doc])* pub $name: $kind,)* }

        impl HistoryRow {
            /// The names of the columns in order.
            pub const COLUMNS: &'static [&'static str] = &[$(stringify!($name)),*];

            /// The columns of the row in order, as they stand in the file.
            pub(super) fn cells(&self) -> Vec<String> {
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
    /// Residual at which they stopped, relative to the right-hand side (if that is negligible:
    /// relative to the allowed residual, times the tolerance).
    cg_residual: f64,
    /// Contacts found.
    contacts: u64,
    /// Contacts with bodies that became constraints of the solve.
    constraints: u64,
    /// Contacts that pushed in the first pass of corrections.
    impulses: u64,
    /// Collision tasks that ran.
    tasks: u64,
    /// How often a running task gave part of its stack away.
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
    /// The reason why the last solve of the step went no further. `relative`: `solver.tolerance`
    /// was met. `absolute`: the residual that always suffices was met, which was the larger one.
    /// `start`: the start was good enough. `none`: nothing was solved. Empty in steps of earlier
    /// programs.
    stop: Sufficed,
    /// Wall time of moving vertices and sharing the new state in s, slowest rank. Empty in steps of
    /// earlier programs.
    share_s: f64,
    /// Passes of corrections, in each of which the rows of strain limits are made anew. A part has
    /// 12 at most, and with 12 these rows had not settled.
    passes: u32,
    /// Rounds of impulses in all of them.
    rounds: u32,
    /// Passes that ended after `contact.iterations` rounds with impulses that had not settled.
    unsettled: u32,
    /// The largest change of rate in m/s that a row of those passes still asked for; 0 if all
    /// settled.
    unsettled_rate: f64,
    /// Vertices that had to be kept out of bodies after the corrections.
    clamped: u64,
    /// Parts that were taken although they failed, for none may be shorter.
    rough: u32,
    /// Pairs of features whose displacements had to be cut, for they would have crossed, or could
    /// not be shown not to; 0 without `contact.certify`.
    hits: u64,
    /// Vertices whose displacements were cut because of hits, or that were led out of bodies.
    cut: u64,
    /// Rigid zones in which vertices moved as one body because of hits.
    zones: u64,
    /// Vertices, each with a body, that bodies let through when the step ended.
    squeezed: u64,
    /// Vertices held by pins whose displacements were cut.
    lagging: u64,
    /// Momentum of the cloth at the end of the step along x, in N s.
    momentum_x_Ns: f64,
    /// Momentum of the cloth at the end of the step along y, in N s.
    momentum_y_Ns: f64,
    /// Momentum of the cloth at the end of the step along z, in N s.
    momentum_z_Ns: f64,
    /// Momentum along x that gravity gave, in N s: that of its weight in the time of the step.
    gravity_x_Ns: f64,
    /// Momentum along y that gravity gave, in N s: that of its weight in the time of the step.
    gravity_y_Ns: f64,
    /// Momentum along z that gravity gave, in N s: that of its weight in the time of the step.
    gravity_z_Ns: f64,
    /// Momentum along x that pins gave, in N s.
    pins_x_Ns: f64,
    /// Momentum along y that pins gave, in N s.
    pins_y_Ns: f64,
    /// Momentum along z that pins gave, in N s.
    pins_z_Ns: f64,
    /// Momentum along x that bodies gave, in N s, by pushing and by friction.
    bodies_x_Ns: f64,
    /// Momentum along y that bodies gave, in N s, by pushing and by friction.
    bodies_y_Ns: f64,
    /// Momentum along z that bodies gave, in N s, by pushing and by friction.
    bodies_z_Ns: f64,
    /// Momentum along x that corrections after the solve gave, in N s: within cloth they give none.
    contact_x_Ns: f64,
    /// Momentum along y that corrections after the solve gave, in N s: within cloth they give none.
    contact_y_Ns: f64,
    /// Momentum along z that corrections after the solve gave, in N s: within cloth they give none.
    contact_z_Ns: f64,
    /// Momentum along x that truncation gave, in N s.
    cut_x_Ns: f64,
    /// Momentum along y that truncation gave, in N s.
    cut_y_Ns: f64,
    /// Momentum along z that truncation gave, in N s.
    cut_z_Ns: f64,
    /// Change of momentum along x that no column before explains, in N s.
    rest_x_Ns: f64,
    /// Change of momentum along y that no column before explains, in N s.
    rest_y_Ns: f64,
    /// Change of momentum along z that no column before explains, in N s.
    rest_z_Ns: f64,
    /// Work of gravity in J.
    gravity_J: f64,
    /// Work of pins in J.
    pins_J: f64,
    /// Work of bodies in J.
    bodies_J: f64,
    /// Work of corrections after the solve in J.
    contact_J: f64,
    /// Work of truncation in J.
    cut_J: f64,
    /// Change of the kinetic energy that no column before explains, in J: the energy that cloth
    /// stores or loses to damping and air, and the residual of solves.
    rest_J: f64,
    /// Share of all motion that was cut, by mass: from 0 to 1.
    cut_share: f64,
    /// Vertices of cloth that started through cloth, and were not free when the step ended.
    kept: u64,
    /// Substeps of the parts, with `contact.pipeline = "2009"`; else 0.
    substeps: u32,
    /// Pairs of features of cloth that were kept for these substeps.
    pairs: u64,
    /// How often one of these pairs was looked at in a substep; the others were pruned.
    looked: u64,
    /// How often one of these pairs had its features on the wrong side of each other, and
    /// attracted.
    inverted: u64,
    /// Wall time of looking at pairs and of their pushes in s, slowest rank. Most of it is part of
    /// `response_s`, the rest of `collide_s`.
    repel_s: f64,
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
    /// Writes as many digits as it takes to read the number back exactly.
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
        "repel_s",
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

/// A mark of a history at some moment: its first lines, by their length and checksum.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryMark {
    /// Length in bytes.
    pub bytes: u64,
    /// The SHA-256 of those bytes, in hexadecimal.
    pub sha256: String,
    /// The step after which it begins: 0, unless the run began with a checkpoint from elsewhere.
    pub after: u64,
}

impl HistoryMark {
    fn of(text: &Sha256, bytes: u64, after: u64) -> Self {
        let sum = text.clone().finalize();
        Self {
            bytes,
            sha256: sum.iter().map(|byte| format!("{byte:02x}")).collect(),
            after,
        }
    }

    /// The part of a history that it is of, if that has not been changed.
    fn part<'t>(&self, history: &'t [u8]) -> Option<&'t [u8]> {
        let part = history.get(..usize::try_from(self.bytes).ok()?)?;
        let found = Self::of(&Sha256::new_with_prefix(part), self.bytes, self.after);
        (found == *self).then_some(part)
    }
}

/// Appends to `history.csv`.
#[derive(Debug)]
pub struct HistoryWriter {
    file: File,
    path: PathBuf,
    /// The length of the whole lines, in bytes.
    length: u64,
    /// The whole lines, summed up.
    sum: Sha256,
    /// The step after which it begins.
    after: u64,
}

impl HistoryWriter {
    /// Name of the file.
    pub const FILE: &'static str = "history.csv";

    /// Starts the file of a run that begins after this step with its header.
    ///
    /// # Errors
    /// [`OutputError::Write`], [`OutputError::InTheWay`].
    pub fn create(run: &RunDirectory, after: u64) -> Result<Self, OutputError> {
        Self::with(run, &HistoryRow::header(), after)
    }

    /// Continues the file of an earlier run after `step`, where it was as `mark` says, if that is
    /// known. Later lines are dropped.
    ///
    /// Lines of an earlier program, which knew only the first columns, have empty cells in the
    /// others.
    ///
    /// # Errors
    /// [`OutputError::Read`]; [`OutputError::Malformed`] if the columns are others;
    /// [`OutputError::Write`].
    pub fn resume(
        run: &RunDirectory,
        step: u64,
        mark: Option<&HistoryMark>,
    ) -> Result<Self, OutputError> {
        let kept = Self::kept(run.path(), step, mark)?;
        Self::with(run, &kept.text, kept.after)
    }

    /// Checks the history in a directory before [`Self::resume`]: what it lacks or has too much,
    /// each a sentence. Nothing is changed.
    ///
    /// # Errors
    /// [`OutputError::Read`], [`OutputError::Malformed`] as there.
    pub fn look(
        directory: &Path,
        step: u64,
        mark: Option<&HistoryMark>,
    ) -> Result<Vec<String>, OutputError> {
        Self::kept(directory, step, mark).map(|kept| kept.notices)
    }

    /// The last step that a file has a whole line of.
    pub(super) fn last_step(path: &Path) -> Option<u64> {
        let bytes = read_plain(path).ok()??;
        let text = String::from_utf8_lossy(&bytes);
        let lines = text.split_inclusive('\n').rev();
        let mut steps =
            lines.filter_map(|line| line.strip_suffix('\n')?.split(',').next()?.parse().ok());
        steps.next()
    }

    /// The part of a history that is kept.
    fn kept(directory: &Path, step: u64, mark: Option<&HistoryMark>) -> Result<Kept, OutputError> {
        let path = directory.join(Self::FILE);
        let bytes = read_plain(&path).map_err(OutputError::read(&path))?;
        Kept::of(bytes.as_deref(), step, mark).map_err(|what| OutputError::Malformed { path, what })
    }

    fn with(run: &RunDirectory, text: &str, after: u64) -> Result<Self, OutputError> {
        Ok(Self {
            file: run.replace(Self::FILE, |out| out.write_all(text.as_bytes()))?,
            path: run.file(Self::FILE),
            length: text.len() as u64,
            sum: Sha256::new_with_prefix(text),
            after,
        })
    }

    /// Appends the line of one step.
    ///
    /// # Errors
    /// [`OutputError::Write`].
    pub fn write(&mut self, row: &HistoryRow) -> Result<(), OutputError> {
        self.append(&row.line())
    }

    /// The mark of the file as it is now.
    #[must_use]
    pub fn mark(&self) -> HistoryMark {
        HistoryMark::of(&self.sum, self.length, self.after)
    }

    /// Brings the file to the disk.
    ///
    /// # Errors
    /// [`OutputError::Write`].
    pub fn sync(&self) -> Result<(), OutputError> {
        (self.file.sync_data()).map_err(OutputError::write(&self.path))
    }

    fn append(&mut self, line: &str) -> Result<(), OutputError> {
        let written = self.file.write_all(line.as_bytes());
        match written {
            Ok(()) => {
                self.length += line.len() as u64;
                self.sum.update(line);
            }
            // The written part of the line is taken back; if that fails too, the first error says
            // why.
            Err(_) => drop(self.file.set_len(self.length)),
        }
        written.map_err(OutputError::write(&self.path))
    }
}

/// The part of a history that is kept, up to a step.
struct Kept {
    text: String,
    after: u64,
    notices: Vec<String>,
}

impl Kept {
    /// Reads the bytes of a history, if there is one. The error says why the run cannot go on with
    /// it.
    fn of(bytes: Option<&[u8]>, step: u64, mark: Option<&HistoryMark>) -> Result<Self, String> {
        let known = mark.map(|mark| mark.after);
        let Some(bytes) = bytes else {
            let missing = missing(known.unwrap_or(0) + 1..=step, &BTreeMap::new());
            let told = missing.map(|steps| format!("history.csv is missing, and {steps} with it"));
            return Ok(Self {
                text: HistoryRow::header(),
                after: known.unwrap_or(0),
                notices: told.into_iter().collect(),
            });
        };
        let unchanged = mark.and_then(|mark| mark.part(bytes));
        let text = String::from_utf8_lossy(unchanged.unwrap_or(bytes));
        let mut lines = text.split_inclusive('\n');
        let columns: Vec<&str> = match lines.next().and_then(|line| line.strip_suffix('\n')) {
            Some(header) => header.split(',').collect(),
            // Nothing of it has come to the disk.
            None => HistoryRow::COLUMNS.to_vec(),
        };
        let Some(new) = HistoryRow::COLUMNS.strip_prefix(&columns[..]) else {
            return Err(
                "its columns are not those of this version; restore its first line, or move the file away to go on without it"
                    .to_owned(),
            );
        };
        // Each step once, and in order: also where the lines of a file were doubled.
        let mut rows = BTreeMap::new();
        let mut unreadable = 0;
        for line in lines {
            let line = line
                .strip_suffix('\n')
                .filter(|line| is_row(line, &columns));
            match line.and_then(|line| Some((line.split(',').next()?.parse().ok()?, line))) {
                Some((of, line)) if of <= step => drop(rows.entry(of).or_insert(line)),
                Some(_) => {}
                None => unreadable += 1,
            }
        }
        let before = rows
            .keys()
            .next()
            .map(|first: &u64| first.saturating_sub(1));
        let after = known.or(before).unwrap_or(0);
        let join = |empty: &str, header: &str| {
            let rows = rows.values().flat_map(|row| [row, empty, "\n"]);
            [header].into_iter().chain(rows).collect::<String>()
        };
        let mut kept = Self {
            text: join(&",".repeat(new.len()), &HistoryRow::header()),
            after,
            notices: Vec::new(),
        };
        if unchanged.is_some() {
            return Ok(kept);
        }
        let as_before = join("", &format!("{}\n", columns.join(",")));
        if mark.is_some_and(|mark| mark.part(as_before.as_bytes()).is_some()) {
            let what = "history.csv had lines that do not belong to the run; they were removed";
            kept.notices.push(what.to_owned());
            return Ok(kept);
        }
        let missing = missing(after + 1..=step, &rows);
        // Without a mark, a last line without an end is what a kill leaves.
        if mark.is_some() || missing.is_some() {
            let lines = match unreadable {
                0 => String::new(),
                1 => "; a line that cannot be read was dropped".to_owned(),
                lines => format!("; {lines} lines that cannot be read were dropped"),
            };
            let lacks = missing.map_or_else(
                || "has a line for each step, but not those that were written".to_owned(),
                |steps| format!("lacks {steps}"),
            );
            kept.notices.push(format!(
                "history.csv was damaged or changed since the checkpoint: it {lacks}{lines}"
            ));
        }
        Ok(kept)
    }
}

/// Whether a line has a cell for each of these columns, and numbers where there are numbers.
fn is_row(line: &str, columns: &[&str]) -> bool {
    let cells: Vec<&str> = line.split(',').collect();
    let is_cell = |(cell, column): (&&str, &&str)| {
        cell.is_empty() || *column == "stop" || cell.parse::<f64>().is_ok()
    };
    cells.len() == columns.len() && cells.iter().zip(columns).all(is_cell)
}

/// The steps of a range that have no row, in words; `None` if all have one.
fn missing(steps: RangeInclusive<u64>, rows: &BTreeMap<u64, &str>) -> Option<String> {
    /// The most gaps that are named.
    const TOLD: usize = 3;
    let (mut next, last) = steps.into_inner();
    let mut gaps = Vec::new();
    for &step in rows.keys().chain([&(last + 1)]) {
        if step > next {
            gaps.push((next, step - 1));
        }
        next = next.max(step + 1);
    }
    if gaps.is_empty() {
        return None;
    }
    let told = gaps.iter().take(TOLD).map(|(from, to)| match to - from {
        0 => format!("step {from}"),
        _ => format!("steps {from} to {to}"),
    });
    let more = gaps.len().saturating_sub(TOLD);
    let told = told.collect::<Vec<_>>().join(", ");
    Some(match more {
        0 => told,
        more => format!("{told} and others in {more} more places"),
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

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
        let mut history = HistoryWriter::create(&run, 0).unwrap();
        history.write(&row(1)).unwrap();
        // Read while the writer is still open: nothing waits in a buffer.
        assert_eq!(
            fs::read_to_string(run.file("history.csv")).unwrap(),
            "step,time_s,cg_iterations,cg_residual,contacts,constraints,impulses,tasks,splits,\
             steals,tests,physics_s,collide_s,solve_s,response_s,max_speed,max_strain,kinetic_J,\
             systems,parts,halvings,stop,share_s,passes,rounds,unsettled,unsettled_rate,clamped,rough,hits,cut,\
             zones,squeezed,lagging,momentum_x_Ns,momentum_y_Ns,momentum_z_Ns,gravity_x_Ns,gravity_y_Ns,gravity_z_Ns,\
             pins_x_Ns,pins_y_Ns,pins_z_Ns,bodies_x_Ns,bodies_y_Ns,bodies_z_Ns,\
             contact_x_Ns,contact_y_Ns,contact_z_Ns,cut_x_Ns,cut_y_Ns,cut_z_Ns,\
             rest_x_Ns,rest_y_Ns,rest_z_Ns,gravity_J,pins_J,bodies_J,\
             contact_J,cut_J,rest_J,cut_share,kept,substeps,pairs,looked,inverted,repel_s\n\
             1,0.02,0,8.25e-7,0,0,0,0,0,0,12,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0,0,0,none,0.0,0,0,0,0.0,0,0,0,0,0,0,0\
             ,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0\
             ,0,0,0,0,0.0\n"
        );
    }

    #[test]
    fn resumed_history_has_each_step_once() {
        let root = tempfile::tempdir().unwrap();
        let run = RunDirectory::create(root.path()).unwrap();
        let mut history = HistoryWriter::create(&run, 0).unwrap();
        for step in 1..=5 {
            history.write(&row(step)).unwrap();
        }
        history.append("6,0.0").unwrap();
        drop(history);
        let notices = HistoryWriter::look(run.path(), 3, None).unwrap();
        assert_eq!(notices, [""; 0]);
        let mut history = HistoryWriter::resume(&run, 3, None).unwrap();
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
        let row_of = |step: u64| format!("{step}{}\n", ",0".repeat(columns - 1));
        let old = HistoryRow::COLUMNS[..columns].join(",") + "\n" + &row_of(1) + &row_of(2) + "3,";
        drop(HistoryWriter::create(&run, 0).unwrap());
        fs::write(run.file("history.csv"), old).unwrap();
        let mut history = HistoryWriter::resume(&run, 1, None).unwrap();
        history.write(&row(2)).unwrap();
        let text = fs::read_to_string(run.file("history.csv")).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let first = row_of(1).trim_end().to_owned() + ",";
        assert_eq!(lines[..2], [HistoryRow::header().trim_end(), &first]);
        assert!(
            lines[2].starts_with("2,")
                && lines[2].contains(",none,0.0,0,0,0,0.0,0,0,0,0,0,0,0,0.0,"),
            "{text}"
        );
    }

    /// The page has a table of them, in their order, a line each.
    #[test]
    fn the_book_lists_the_columns_that_are_written() {
        let page = include_str!("../../docs/src/formats.md");
        let (_, table) = page
            .split_once("| column | unit | what |\n|---|---|---|\n")
            .unwrap();
        let lines = table.lines().take_while(|line| line.starts_with('|'));
        let name = |line: &'static str| line.strip_prefix("| `")?.split_once('`');
        let listed: Vec<&str> = lines.map(|line| name(line).unwrap().0).collect();
        assert_eq!(listed, HistoryRow::COLUMNS);
    }

    #[test]
    fn foreign_history_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let run = RunDirectory::create(root.path()).unwrap();
        drop(HistoryWriter::create(&run, 0).unwrap());
        for text in ["a,b\n1,2\n", "step,time\n"] {
            fs::write(run.file("history.csv"), text).unwrap();
            for outcome in [
                HistoryWriter::resume(&run, 3, None).map(drop),
                HistoryWriter::look(run.path(), 3, None).map(drop),
            ] {
                let error = outcome.unwrap_err();
                assert!(matches!(error, OutputError::Malformed { .. }), "{error}");
            }
            assert_eq!(fs::read_to_string(run.file("history.csv")).unwrap(), text);
        }
    }

    /// The file is cut to its checkpoint after step 3, or its gap is reported, whatever has
    /// happened to it since.
    #[test]
    fn a_history_is_cut_to_its_checkpoint_or_what_it_lacks_is_told() {
        let root = tempfile::tempdir().unwrap();
        let run = RunDirectory::create(root.path()).unwrap();
        let mut history = HistoryWriter::create(&run, 0).unwrap();
        for step in 1..=3 {
            history.write(&row(step)).unwrap();
        }
        let mark = history.mark();
        let whole = fs::read_to_string(run.file("history.csv")).unwrap();
        assert_eq!(mark.bytes, whole.len() as u64);
        let header = HistoryRow::header();
        let rows = [1, 2, 3].map(|step| row(step).line());
        let [one, two, three] = &rows;
        let later = row(4).line();
        let half = &three[..three.len() / 2];
        let no_number = three.replace("8.25e-7", "8.25e-x");
        let other = three.replace("8.25e-7", "8.25e-8");
        let lacks = |what: &str| Some(format!("lacks {what}"));
        let right = || Some("they were removed".to_owned());
        let cases = [
            (whole.clone(), &rows[..], None),
            (whole.clone() + &later, &rows, None),
            (whole.clone() + &later + "5,0.", &rows, None),
            (whole.clone() + &whole, &rows, None),
            (
                format!("{header}{one}{one}{two}{two}{three}{three}"),
                &rows,
                right(),
            ),
            (format!("{header}{two}{one}{three}"), &rows, right()),
            (format!("{header}{one}{half}\n{two}{three}"), &rows, right()),
            (format!("{header}{one}{two}"), &rows[..2], lacks("step 3")),
            (
                format!("{header}{one}{two}{half}"),
                &rows[..2],
                lacks("step 3; a line"),
            ),
            (
                format!("{header}{one}{two}{no_number}"),
                &rows[..2],
                lacks("step 3; a line"),
            ),
            (
                format!("{header}{three}{later}"),
                &rows[2..],
                lacks("steps 1 to 2"),
            ),
            (header.clone(), &[], lacks("steps 1 to 3")),
            (String::new(), &[], lacks("steps 1 to 3")),
            (
                format!("{header}{one}{two}{other}"),
                &[one.clone(), two.clone(), other.clone()],
                Some("not those".to_owned()),
            ),
        ];
        for (text, kept, told) in cases {
            fs::write(run.file("history.csv"), &text).unwrap();
            let notices = HistoryWriter::look(run.path(), 3, Some(&mark)).unwrap();
            assert_eq!(fs::read_to_string(run.file("history.csv")).unwrap(), text);
            let history = HistoryWriter::resume(&run, 3, Some(&mark)).unwrap();
            let now = fs::read_to_string(run.file("history.csv")).unwrap();
            assert_eq!(now, header.clone() + &kept.concat(), "{text}");
            assert_eq!(
                notices.len(),
                usize::from(told.is_some()),
                "{text}{notices:?}"
            );
            let told = told.unwrap_or_default();
            assert!(notices.concat().contains(&told), "{text}{notices:?}");
            assert_eq!(history.mark() == mark, now == whole);
        }
        fs::remove_file(run.file("history.csv")).unwrap();
        let notices = HistoryWriter::look(run.path(), 3, Some(&mark)).unwrap();
        assert!(
            notices[0].contains("is missing, and steps 1 to 3"),
            "{notices:?}"
        );
    }

    /// A run that began elsewhere lacks nothing of what was before.
    #[test]
    fn a_history_that_begins_later_is_whole() {
        let root = tempfile::tempdir().unwrap();
        let run = RunDirectory::create(root.path()).unwrap();
        let mut history = HistoryWriter::create(&run, 7).unwrap();
        history.write(&row(8)).unwrap();
        history.write(&row(9)).unwrap();
        let mark = history.mark();
        let doubled = HistoryRow::header() + &row(8).line() + &row(8).line();
        for (mark, told) in [(Some(&mark), "lacks step 9"), (None, "lacks step 9")] {
            fs::write(run.file("history.csv"), &doubled).unwrap();
            let notices = HistoryWriter::look(run.path(), 9, mark).unwrap();
            let history = HistoryWriter::resume(&run, 9, mark).unwrap();
            assert!(notices[0].contains(told), "{notices:?}");
            assert_eq!(history.mark().after, 7);
        }
    }

    #[test]
    fn the_last_step_is_that_of_a_whole_line() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("history.csv");
        assert_eq!(HistoryWriter::last_step(&path), None);
        for (text, last) in [("", None), ("step,\n", None), ("step,\n1,\n2,\n3", Some(2))] {
            fs::write(&path, text).unwrap();
            assert_eq!(HistoryWriter::last_step(&path), last);
        }
    }
}
