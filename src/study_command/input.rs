//! The inputs of a study, before anything is recorded or written: inputs as the command line names
//! them, each with each number of patches, and what is wrong with them.

use std::path::{Path, PathBuf};

use weft_io::Show as _;
use weft_study::directory::is_study;
use weft_study::layout::LayoutError;
use weft_study::plan::Plan;
use weft_study::sweep::{Replayed, Source as _};
use weft_study::synthetic::CopiesError;
use weftwork::run::{RECORD_FILE, last_restart};
use weftwork::scene::Scene;

use super::too_many;
use crate::Failure;
use crate::cli::StudyArguments;
use crate::commands::{Room, load, patch_count};

/// Keys of runs that are only measured.
const NO_OUTPUT: [(&str, &str); 3] = [
    ("output.frames", "false"),
    ("output.pictures", "false"),
    ("output.checkpoints", "false"),
];

/// Something to study.
pub(super) enum StudyInput {
    /// A record that is there.
    Record(Replayed),
    /// A scene, recorded if it has to be.
    Scene(Box<SceneInput>),
}

/// A scene to study.
pub(super) struct SceneInput {
    pub(super) path: PathBuf,
    pub(super) scene: Scene,
    /// The name in tables.
    pub(super) name: String,
    /// The overrides of the command line, and those that turn off output that nobody looks at.
    pub(super) overrides: Vec<(String, String)>,
    pub(super) patches: usize,
    /// The last step from which its recording can go on.
    pub(super) restart: u64,
}

impl StudyInput {
    fn name(&self) -> &str {
        match self {
            Self::Record(source) => &source.label().name,
            Self::Scene(of) => &of.name,
        }
    }

    /// The name that it shares with the same scene cut in other ways.
    pub(super) fn family(&self, copies: u32) -> String {
        match self {
            Self::Record(source) => source.label().family.clone(),
            Self::Scene(of) if copies > 1 => format!("{}-x{copies}", of.scene.name),
            Self::Scene(of) => of.scene.name.clone(),
        }
    }
}

/// The inputs that are studied.
pub(super) fn study_inputs(
    arguments: &StudyArguments,
    plan: &Plan,
) -> Result<Vec<StudyInput>, Failure> {
    let mut inputs: Vec<StudyInput> = Vec::new();
    let taken = |inputs: &[StudyInput], name: &str| inputs.iter().any(|s| s.name() == name);
    for named in &arguments.inputs {
        if let Some(path) = record_of(arguments, named)? {
            let source = Replayed::open(&path).map_err(|error| Failure {
                code: 5,
                message: error.to_string(),
            })?;
            let mut source = source.copied(arguments.copies).map_err(too_many)?;
            // Two records of one scene: tables and plots tell them apart.
            let name = source.label().name.clone();
            let mut nth = 1;
            while taken(&inputs, &source.label().name) {
                nth += 1;
                source = source.named(&format!("{name}-{nth}"));
            }
            inputs.push(StudyInput::Record(source));
            continue;
        }
        let counts: Vec<Option<usize>> = match &arguments.patches[..] {
            [] => vec![None],
            counts => counts.iter().copied().map(Some).collect(),
        };
        for patches in counts {
            let of = of_scene(arguments, plan, named, patches)?;
            if taken(&inputs, &of.name) {
                let message = format!(
                    "{}: there is another `{}` in this study; call the file something else, or study them one after the other",
                    named.shown(),
                    of.name
                );
                return Err(Failure { code: 2, message });
            }
            inputs.push(StudyInput::Scene(Box::new(of)));
        }
    }
    Ok(inputs)
}

/// The record that an input names, or `None` if it is a scene.
fn record_of(arguments: &StudyArguments, input: &Path) -> Result<Option<PathBuf>, Failure> {
    let path = match input {
        _ if input.is_dir() => input.join(RECORD_FILE),
        _ if input.extension().is_some_and(|ending| ending == "weftrec") => input.to_owned(),
        _ => return Ok(None),
    };
    let of_scenes = arguments.full
        || arguments.real
        || !arguments.patches.is_empty()
        || !arguments.overrides.is_empty()
        || arguments.steps.is_some()
        || arguments.record.is_some()
        || arguments.resume.is_some();
    if of_scenes {
        let message = format!(
            "{}: --full, --real, --patches, --set, --steps, --record and --resume want a scene: a record knows neither \
             physics nor mesh",
            input.shown()
        );
        return Err(Failure { code: 2, message });
    }
    if input.is_dir() && !path.is_file() {
        let shown = input.shown();
        let message = if is_study(input) {
            format!(
                "{shown} is the directory of a study; name its scene again, or one of the records in {shown}/records"
            )
        } else {
            format!(
                "{shown} has no {RECORD_FILE}: name a scene, or the directory of a run that was recorded, as `weft run SCENE \
                 --ranks 1 --record` does"
            )
        };
        return Err(Failure { code: 5, message });
    }
    Ok(Some(path))
}

/// A scene with this many patches.
fn of_scene(
    arguments: &StudyArguments,
    plan: &Plan,
    path: &Path,
    patches: Option<usize>,
) -> Result<SceneInput, Failure> {
    let mut overrides = arguments.overrides.clone();
    overrides.extend(NO_OUTPUT.map(|(key, value)| (key.to_owned(), value.to_owned())));
    if let Some(patches) = patches {
        overrides.push(("partition.patches".to_owned(), patches.to_string()));
    }
    let scene = load(path, &overrides, Room::to_look(None)?)?;
    let name = match patches {
        Some(patches) => format!("{}-{patches}", scene.name),
        None => scene.name.clone(),
    };
    let restart = last_restart(&scene, arguments.steps, arguments.record);
    let restart = restart.map_err(|error| Failure {
        code: error.exit_code(),
        message: error.to_string(),
    })?;
    let patches = patch_count(&scene)?;
    CopiesError::check(patches, arguments.copies).map_err(too_many)?;
    if arguments.ranks.is_some() {
        // Before anything is recorded.
        for &ranks in &plan.ranks {
            LayoutError::check(patches, ranks).map_err(|error| Failure {
                code: 2,
                message: error.to_string(),
            })?;
        }
    }
    Ok(SceneInput {
        path: path.to_owned(),
        scene,
        name,
        overrides,
        patches,
        restart,
    })
}
