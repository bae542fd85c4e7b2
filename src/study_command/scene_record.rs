//! Recording a scene for a study, in the study's directory: once, and from where it was if it was
//! stopped.
//!
//! | file | says |
//! |---|---|
//! | `records/NAME.begun` | of what the recording is that was begun; gone when it is done |
//! | `records/NAME/` | the run, with checkpoints until it is done |
//! | `records/NAME/record.of` | of what `record.weftrec` beside it is; written last |

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use weft_io::{Show as _, read_text};
use weftwork::output::{Checkpoint, write_whole};
use weftwork::run::{Begun, Driver, RECORD_FILE, Resume, RunOptions, Show, run};

use super::Study;
use super::input::SceneInput;
use crate::commands::memory_limit;
use crate::{Failure, command_line, tell};

/// The record of a scene in the study's directory; made, unless it is there and of the same run.
///
/// # Errors
/// What goes wrong in the run. If it is stopped that has been said.
pub(super) fn record(study: &Study<'_>, of: &SceneInput) -> Result<PathBuf, Failure> {
    let arguments = study.arguments;
    let (records, name) = (study.out.join("records"), &of.name);
    let folder = records.join(name);
    let path = folder.join(RECORD_FILE);
    let what = format!(
        "{}steps {:?} record {:?} resume {:?}\n",
        of.scene.echo_of_trajectory(),
        arguments.steps,
        arguments.record,
        arguments.resume
    );
    let write =
        |note: &Path| write_whole(note, |out| out.write_all(what.as_bytes())).map_err(io_failure);
    let is_of = |note: &Path| read_text(note, u64::MAX).is_ok_and(|text| text == what);
    let (note, begun) = (
        folder.join("record.of"),
        records.join(format!("{name}.begun")),
    );
    if path.is_file() && is_of(&note) {
        return Ok(path);
    }
    let stopped_at = || Checkpoint::newest_until(&folder, of.restart).map_err(io_failure);
    let goes_on = if is_of(&begun) { stopped_at()? } else { None };
    if !arguments.quiet {
        let on = if goes_on.is_some() { ", going on" } else { "" };
        tell("recording ", format_args!("{name}{on}"));
    }
    fs::create_dir_all(&records).map_err(io_error(&records))?;
    write(&begun)?;
    remove(&note)?;
    let mut scene = of.scene.clone();
    // For users who stop it, and for what stops without a message.
    scene.output.checkpoints = true;
    let options = RunOptions {
        ranks: 1,
        threads: 1,
        progress_thread: false,
        driver: Driver::Solo,
        memory: memory_limit(None)?,
        steps: arguments.steps,
        out: folder.clone(),
        resume: goes_on
            .or_else(|| arguments.resume.clone())
            .map(Resume::From),
        // An earlier recording here was the study's own, and is of no use to it.
        overwrite: true,
        stop: study.stop.clone(),
        trace: None,
        record: Some(arguments.record),
        audit: None,
        progress: if arguments.quiet {
            Show::Nothing
        } else {
            Show::Lines
        },
        command: command_line(),
        hosts: Vec::new(),
        mpi: None,
        begun: Begun::default(),
    };
    let summary = run(&scene, &options).map_err(|error| Failure {
        code: error.exit_code(),
        message: error.to_string(),
    })?;
    if summary.stopped.is_some() {
        let goes_on = stopped_at()?.as_deref().map(step_of);
        let from = match goes_on.transpose().map_err(io_failure)? {
            Some(step) => format!("goes on from step {step}"),
            None => "begins that anew".to_owned(),
        };
        let step = summary.steps;
        return Err(study.stopped(&format!("after step {step}, recording {name}"), &from));
    }
    Checkpoint::remove_all(&folder).map_err(io_failure)?;
    write(&note)?;
    remove(&begun)?;
    Ok(path)
}

fn step_of(checkpoint: &Path) -> Result<u64, weftwork::output::OutputError> {
    Ok(Checkpoint::read(checkpoint)?.header.step)
}

fn remove(path: &Path) -> Result<(), Failure> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(io_error(path)(error)),
        _ => Ok(()),
    }
}

fn io_error(path: &Path) -> impl Fn(io::Error) -> Failure {
    move |source| io_failure(format_args!("{}: {source}", path.shown()))
}

fn io_failure(error: impl std::fmt::Display) -> Failure {
    Failure {
        code: 5,
        message: error.to_string(),
    }
}
