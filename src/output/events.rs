//! The events of a run, as lines of JSON on standard output (`weft run --json`), for scripts that
//! start runs and watch them.
//!
//! A line is one object, whose `event` says what it is. All is ASCII, in which JSON escapes the
//! rest. Numbers that are not finite are `null`. Fields may be added; those that are there keep
//! their meaning, or `schema` in the first line changes.

use std::fmt::Write as _;
use std::io::{self, Write as _};

use serde::Serialize;

use super::HistoryRow;

/// Something that has happened, beside steps.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "event", rename_all = "lowercase")]
pub enum Event {
    /// A run begins.
    Start {
        /// The version of these lines.
        schema: u32,
        /// The version of the program.
        version: &'static str,
        /// The name of the scene.
        scene: String,
        /// The directory of the outputs.
        out: String,
        /// The step that it is to end with.
        steps: u64,
        /// The time step in s.
        step_s: f64,
        /// Ranks.
        ranks: usize,
        /// Workers of each.
        threads: usize,
        /// How ranks are run.
        comm: &'static str,
    },
    /// Something that one should know.
    Note {
        /// A sentence.
        message: String,
    },
    /// Something that may be wrong.
    Warning {
        /// A sentence.
        message: String,
    },
    /// A frame was written.
    Frame {
        /// Steps done.
        step: u64,
        /// The time of the frame in s.
        time_s: f64,
        /// Its file, in the directory of the outputs.
        file: String,
    },
    /// A checkpoint was written.
    Checkpoint {
        /// Steps done.
        step: u64,
        /// The time of its state in s.
        time_s: f64,
    },
    /// The run has ended, and all that it writes is there.
    Summary {
        /// The hash of the last state.
        hash: String,
        /// Steps done.
        steps: u64,
        /// Vertices of the cloth.
        vertices: usize,
        /// The time in s that the steps took.
        loop_s: f64,
        /// Frames written.
        frames: usize,
        /// Files of other formats, in `exports`.
        exports: Vec<String>,
        /// The step that it went on from.
        resumed_from: Option<u64>,
        /// The reason why it ended early: what goes on from there is the command with `--resume`.
        stopped: Option<String>,
        /// The largest principal strain of any step.
        max_strain: f64,
        /// How far a vertex was in a body in any frame, in m; `null` without bodies.
        deepest_m: Option<f64>,
        /// Pairs of cloth that cross in the last state.
        crossings: usize,
        /// Pairs of cloth and bodies that do.
        pierced: usize,
    },
}

/// The version of these lines.
pub const EVENTS_SCHEMA: u32 = 1;

impl Event {
    /// The event as a line, which ends with a line break.
    #[must_use]
    pub fn line(&self) -> String {
        // Writing to memory cannot fail.
        let json = serde_json::to_string(self).unwrap_or_default();
        ascii(&json) + "\n"
    }

    /// Prints the line on standard output. A reader that has gone hears nothing.
    pub fn print(&self) {
        let mut out = io::stdout().lock();
        drop(
            out.write_all(self.line().as_bytes())
                .and_then(|()| out.flush()),
        );
    }
}

/// The line of a step: the columns of the history, and the times in s that have passed and are
/// left.
pub(super) fn step_line(row: &HistoryRow, wall: f64, left: f64) -> String {
    let mut line = "{\"event\":\"step\"".to_owned();
    let times = [("wall_s", wall), ("left_s", left)];
    let times = times.map(|(name, value)| (name, value.to_string()));
    let columns = HistoryRow::COLUMNS.iter().copied().zip(row.cells());
    for (name, cell) in columns.chain(times) {
        // Cells are numbers, words or nothing.
        let value = match serde_json::from_str::<serde_json::Number>(&cell) {
            Ok(_) => cell,
            Err(_) if cell.is_empty() || cell.parse::<f64>().is_ok() => "null".to_owned(),
            Err(_) => format!("\"{}\"", cell.escape_default()),
        };
        // Writing to a String cannot fail.
        let _ = write!(line, ",\"{name}\":{value}");
    }
    line + "}\n"
}

/// JSON in ASCII.
fn ascii(json: &str) -> String {
    let mut ascii = String::with_capacity(json.len());
    for letter in json.chars() {
        if (' '..='~').contains(&letter) {
            ascii.push(letter);
        } else {
            for unit in letter.encode_utf16(&mut [0; 2]) {
                // Writing to a String cannot fail.
                let _ = write!(ascii, "\\u{unit:04x}");
            }
        }
    }
    ascii
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn a_step_has_the_columns_of_the_history_as_json() {
        let row = HistoryRow {
            step: 3,
            time_s: 0.1,
            cg_residual: f64::NAN,
            max_speed: 1e-300,
            ..HistoryRow::default()
        };
        let line = step_line(&row, 1.5, f64::INFINITY);
        assert!(line.ends_with("}\n") && line.lines().count() == 1, "{line}");
        let value: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(value["event"], "step");
        for name in HistoryRow::COLUMNS {
            assert!(value.get(name).is_some(), "{name}");
        }
        assert_eq!(value["step"], 3);
        assert_eq!(value["time_s"].as_f64(), Some(0.1));
        assert_eq!(value["max_speed"].as_f64(), Some(1e-300));
        assert_eq!(value["cg_residual"], Value::Null);
        assert_eq!(value["wall_s"].as_f64(), Some(1.5));
        assert_eq!(value["left_s"], Value::Null);
    }

    #[test]
    fn lines_are_ascii_and_are_read_back_as_they_were() {
        let message = "a\u{1b}[31m µ\n\"end\" \u{1f455}".to_owned();
        let line = Event::Warning {
            message: message.clone(),
        }
        .line();
        assert!(
            line.trim_end()
                .bytes()
                .all(|byte| (b' '..=b'~').contains(&byte)),
            "{line}"
        );
        let value: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(value["event"], "warning");
        assert_eq!(value["message"], message);
    }
}
