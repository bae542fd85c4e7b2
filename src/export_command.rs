//! `weft export`: the frames of a run in formats of other programs.

use std::fmt::Write as _;

use weft_io::Show as _;
use weftwork::export::{ExportOptions, Recorded, Target, export};
use weftwork::output::{ExportFolder, OutputError};
use weftwork::scene::{Format, Units, Up};

use crate::cli::ExportArguments;
use crate::{Failure, say, tell};

pub(crate) fn export_run(arguments: &ExportArguments) -> Result<(), Failure> {
    let failed = |error: OutputError| Failure {
        code: 5,
        message: error.to_string(),
    };
    // The command line takes no other names.
    let named = |name: &String| Format::ALL.into_iter().find(|format| format.name() == name);
    let units = Units::ALL
        .into_iter()
        .find(|units| units.name() == arguments.units);
    let up = Up::ALL.into_iter().find(|up| up.name() == arguments.up);
    let options = ExportOptions {
        formats: arguments.format.iter().filter_map(named).collect(),
        units: units.unwrap_or(Units::Metres),
        up: up.unwrap_or(Up::Z),
        step: arguments.step,
    };
    let run = Recorded::open(&arguments.run).map_err(failed)?;
    let folder = ExportFolder::new(&arguments.out, arguments.overwrite);
    let exported = export(&run, &options, &Target::Folder(folder)).map_err(failed)?;
    for note in &exported.notes {
        tell("note: ", note);
    }
    let mut text = format!(
        "Wrote {} frames of {} into {}:",
        run.frames().len(),
        arguments.run.shown(),
        arguments.out.shown()
    );
    for file in exported.files.iter().take(NAMED) {
        // Writing to a String cannot fail.
        let _ = write!(text, " {}", file.shown());
    }
    match exported.files.len().saturating_sub(NAMED) {
        0 => {}
        more => {
            let _ = write!(text, " and {more} more");
        }
    }
    say(text + "\n")
}

/// Files that are named, at most.
const NAMED: usize = 8;
