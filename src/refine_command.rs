//! `weft refine`: finer frames of a run that keep free of crossings.

use std::num::NonZero;
use std::thread::available_parallelism;

use weft_io::Show as _;
use weftwork::export::{ExportOptions, Recorded, Target, export};
use weftwork::output::OutputError;
use weftwork::refine::{LevelCounts, RefineOptions, RefinedFrame, refine};
use weftwork::run::Stop;
use weftwork::scene::{Format, Units, Up};

use crate::cli::RefineArguments;
use crate::{Failure, say, signals, tell};

pub(crate) fn refine_run(arguments: &RefineArguments) -> Result<(), Failure> {
    let failed = |error: OutputError| Failure {
        code: 5,
        message: error.to_string(),
    };
    let stop = Stop::default();
    signals::ask(&stop).map_err(|error| Failure {
        code: 5,
        message: format!("signals cannot be listened to: {error}"),
    })?;
    let cores = || available_parallelism().map_or(1, NonZero::get);
    let options = RefineOptions {
        levels: arguments.levels,
        frames: arguments.frames.clone().unwrap_or(0..=usize::MAX),
        every: arguments.every,
        threads: arguments.threads.map_or_else(cores, usize::from),
        overwrite: arguments.overwrite,
        command: std::env::args().collect(),
        stop,
    };
    let mut see = |frame: &RefinedFrame| {
        if !arguments.quiet {
            // Nobody need watch for the work to go on.
            drop(say(line(frame)));
        }
    };
    let refined = refine(&arguments.run, &arguments.out, &options, &mut see);
    let refined = refined.map_err(|error| Failure {
        code: error.exit_code(),
        message: error.to_string(),
    })?;
    for note in refined.directory.notices().iter().chain(&refined.notes) {
        tell("note: ", note);
    }
    let record = &refined.record;
    let mut text = format!(
        "Wrote {} frames of {} into {}, {} vertices more in all: {} left the triangles, {} of them less far than the smooth surface.\n",
        record.frames,
        arguments.run.shown(),
        arguments.out.shown(),
        record.new,
        record.moved,
        record.cut
    );
    if let Some(cause) = &refined.stopped {
        text += &format!("Stopped by {cause}, before the last frame.\n");
    }
    if !arguments.format.is_empty() && refined.stopped.is_none() {
        // The command line takes no other names.
        let named = |name: &String| Format::ALL.into_iter().find(|format| format.name() == name);
        let units = (Units::ALL.into_iter()).find(|units| units.name() == arguments.units);
        let up = Up::ALL.into_iter().find(|up| up.name() == arguments.up);
        let formats = ExportOptions {
            formats: arguments.format.iter().filter_map(named).collect(),
            units: units.unwrap_or(Units::Metres),
            up: up.unwrap_or(Up::Z),
            step: None,
        };
        let run = Recorded::open(refined.directory.path()).map_err(failed)?;
        let target = Target::Run(refined.directory.clone());
        let exported = export(&run, &formats, &target).map_err(failed)?;
        for note in &exported.notes {
            tell("note: ", note);
        }
        text += &format!(
            "Exported {} files into its folder exports.\n",
            exported.files.len()
        );
    }
    say(text)
}

/// A line on a frame.
fn line(frame: &RefinedFrame) -> String {
    let sum = |of: fn(&LevelCounts) -> u64| frame.levels.iter().map(of).sum::<u64>();
    format!(
        "Refined the frame after step {} ({:.6} s): {} new vertices, {} off the triangles, {} cut.\n",
        frame.step,
        frame.time,
        sum(|level| level.new),
        sum(|level| level.moved),
        sum(|level| level.cut)
    )
}
