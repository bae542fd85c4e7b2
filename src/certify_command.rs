//! `weft certify`: runs a scene, or takes recorded states, and has all of it judged.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write};
use std::path::Path;

use weft_io::{Show as _, open_regular};
use weft_judge::Judge;
use weft_judge::record::{Reader, RecordError};
use weftwork::certify::{Certifying, Outcome, certify};
use weftwork::memory::Ranks;
use weftwork::scene::load::MOST_STEPS;

use crate::cli::CertifyArguments;
use crate::commands::{Room, load, memory_limit};
use crate::{Failure, ending, say};

/// The name of the file of recorded states.
const RECORD: &str = "checked.states";

/// The key that says whether steps are certified.
const KEY: &str = "contact.certify";

/// The exit code of a run that was refused.
const REFUSED: u8 = 7;

pub(crate) fn certify_scene(arguments: &CertifyArguments) -> Result<(), Failure> {
    let outcome = if arguments.scene.is_dir() {
        judge_record(arguments)?
    } else {
        judge_run(arguments)?
    };
    if arguments.json {
        say(crate::json_reports::text(&outcome.json()))?;
    } else {
        say(&outcome)?;
    }
    let scene = outcome.scene.shown();
    if !outcome.is_accepted() {
        let message = format!("{scene} is refused: {}", outcome.reasons().join("; "));
        let code = REFUSED;
        return Err(Failure { code, message });
    }
    outcome.failure.as_ref().map_or(Ok(()), |failure| {
        let message = format!("{scene} failed, accepted as far as it went: {failure}");
        Err(Failure { code: 4, message })
    })
}

/// Runs a scene that is judged.
fn judge_run(arguments: &CertifyArguments) -> Result<Outcome, Failure> {
    if arguments.steps.is_some_and(|steps| steps > MOST_STEPS) {
        return Err(Failure {
            code: 2,
            message: "--steps: a run has at most 10⁹ steps".to_owned(),
        });
    }
    let mut overrides = vec![(KEY.to_owned(), "true".to_owned())];
    overrides.extend_from_slice(&arguments.overrides);
    if arguments.overrides.iter().any(|(key, _)| key == KEY) {
        overrides.remove(0);
    }
    let limit = memory_limit(arguments.memory)?;
    let ranks = Ranks {
        drawing: 0,
        ..Ranks::threads(arguments.ranks)
    };
    let mut scene = load(&arguments.scene, &overrides, Room { ranks, limit })?;
    if let Some(end) = arguments.until {
        scene.time.end = ending(end, scene.time.step)?;
    }
    let options = Certifying {
        ranks: arguments.ranks,
        threads: usize::from(arguments.threads),
        steps: arguments.steps,
        once: arguments.once,
        memory: limit,
    };
    let record = arguments.keep.as_deref().map(begin_record).transpose()?;
    let mut record = record.map(BufWriter::new);
    let to = record.as_mut().map(|to| to as &mut (dyn Write + Send));
    certify(&scene, &options, to).map_err(|error| Failure {
        code: error.exit_code(),
        message: error.to_string(),
    })
}

/// Makes the file of recorded states, which must not be there yet.
fn begin_record(directory: &Path) -> Result<File, Failure> {
    let path = directory.join(RECORD);
    let begun = std::fs::create_dir_all(directory).and_then(|()| File::create_new(&path));
    begun.map_err(|error| {
        let path = path.shown();
        let message = match error.kind() {
            io::ErrorKind::AlreadyExists => {
                format!("{path} is there already; remove it, or name another directory with --keep")
            }
            _ => format!("{path}: {error}"),
        };
        Failure { code: 5, message }
    })
}

/// Judges the states that were recorded into a directory.
fn judge_record(arguments: &CertifyArguments) -> Result<Outcome, Failure> {
    let runs = !arguments.overrides.is_empty()
        || arguments.steps.is_some()
        || arguments.until.is_some()
        || arguments.keep.is_some();
    if runs {
        let message = "recorded states are judged as they are: leave out --set, --steps, --until and --keep, or name a scene";
        return Err(Failure {
            code: 2,
            message: message.to_owned(),
        });
    }
    let path = arguments.scene.join(RECORD);
    let failed = |error: RecordError| Failure {
        code: 5,
        message: format!("{}: {error}", path.shown()),
    };
    let file = open_regular(&path).map_err(|error| failed(error.into()))?;
    let (mut reader, surface) = Reader::new(BufReader::new(file)).map_err(failed)?;
    let pieces = surface.pieces().to_vec();
    let mut judge = Judge::new(surface);
    let mut bad_state = None;
    while let Some(state) = reader.next_state().map_err(failed)? {
        if let Err(error) = judge.judge(state) {
            bad_state = Some(error.to_string());
            break;
        }
    }
    Ok(Outcome {
        scene: arguments.scene.shown().to_string(),
        pieces,
        outside: Vec::new(),
        sampled: Vec::new(),
        inside: 0,
        certified: false,
        verdict: judge.verdict(),
        bad_state,
        failure: None,
        ran: None,
        twin: None,
    })
}
