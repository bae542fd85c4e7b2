//! The commands that are no run: they look at a scene, at runs that were, or at the program itself.

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use weft_io::Show as _;
use weft_partition::PartitionError;
use weft_report::{Report, Run};
use weft_runtime::ScopeOptions;
use weft_runtime::comm::solo::Solo;
use weftwork::diagnostics::{PartitionComparison, compare, last_frame, partition_picture};
use weftwork::memory::{self, Limit, Ranks, VARIABLE};
use weftwork::mesh::{build_body, build_cloth, check_spacing, check_thickness};
use weftwork::output::{FrameAudit, write_system, write_whole};
use weftwork::run::{FEATURES, RunError, read_state, uneven};
use weftwork::scene::built_in::BUILT_IN;
use weftwork::scene::{Scene, SceneError};
use weftwork::step::{MeshCounts, SavedState, Simulation, StepError, World, is_prepared_world};

use crate::cli::{PartitionArguments, ReportArguments};
use crate::memory_report::MemoryReport;
#[cfg(feature = "mpi")]
use crate::under_mpi;
use crate::{Failure, json_reports, say, tell};

/// The arguments of `weft check`.
pub(crate) struct CheckArguments {
    pub(crate) scene: PathBuf,
    pub(crate) overrides: Vec<(String, String)>,
    pub(crate) ranks: Option<usize>,
    pub(crate) memory: Option<Limit>,
    pub(crate) json: bool,
}

/// The ranks that a process is to have, and the memory that it may have.
#[derive(Clone, Copy)]
pub(crate) struct Room {
    pub(crate) ranks: Ranks,
    pub(crate) limit: Limit,
}

impl Room {
    /// The room of a command that looks at a world, by an option or the environment.
    pub(crate) fn to_look(memory: Option<Limit>) -> Result<Self, Failure> {
        Ok(Self {
            ranks: Ranks::none(),
            limit: memory_limit(memory)?,
        })
    }
}

/// The memory that a process may have: what was asked for, else what the environment says.
pub(crate) fn memory_limit(asked: Option<Limit>) -> Result<Limit, Failure> {
    let limit = asked.map_or_else(Limit::of_environment, Ok);
    limit.map_err(|error| Failure {
        code: 2,
        message: format!("{VARIABLE}: {error}"),
    })
}

pub(crate) fn check_scene(arguments: &CheckArguments) -> Result<(), Failure> {
    let room = Room::to_look(arguments.memory)?;
    if arguments.json {
        return json_reports::check(arguments, room);
    }
    let scene = load(&arguments.scene, &arguments.overrides, room)?;
    let world = build(&scene, room)?;
    let memory = (arguments.ranks)
        .map(|ranks| MemoryReport::new(&world, ranks))
        .transpose()?;
    for warning in scene.idle_keys().into_iter().chain(world.warnings()) {
        tell("warning: ", warning);
    }
    if let Some(note) = scene.time.overshoot() {
        tell("note: ", note);
    }
    let mut text = scene.echo();
    for (index, cloth) in scene.cloths.iter().enumerate() {
        let bends = world.model().bending(index);
        // Writing to a String cannot fail.
        let _ = writeln!(text, "# cloth `{}` {bends}", cloth.name);
    }
    for sizes in world.sizes() {
        let _ = writeln!(text, "# {sizes}");
    }
    if let Some(memory) = memory {
        text += &memory.text();
    }
    say(text)
}

/// Parts that a scene is cut into unless said: the ranks of figure 4 of the 2006 paper.
const PARTS: usize = 12;

pub(crate) fn show_partition(arguments: &PartitionArguments) -> Result<(), Failure> {
    let room = Room::to_look(None)?;
    let world = build(&load(&arguments.scene, &arguments.overrides, room)?, room)?;
    let parts = arguments.parts;
    let parts = parts.unwrap_or_else(|| PARTS.min(world.tree().patch_count()));
    if let Some(file) = &arguments.picture
        && !file
            .extension()
            .is_some_and(|ending| ending.eq_ignore_ascii_case("png"))
    {
        let message = format!("--picture={}: pictures are PNG; call it .png", file.shown());
        return Err(Failure { code: 2, message });
    }
    let state = state_of(&world, arguments.state.as_deref())?;
    let state = state.map(|state| state.positions);
    let uncut = |error: PartitionError| Failure {
        code: 3,
        message: error.to_string(),
    };
    let comparison = PartitionComparison::new(&world, parts, state.as_deref()).map_err(uncut)?;
    let vertices = world.model().masses().len();
    let patches = world.tree().patch_count() as u64;
    let imbalance = comparison.rows()[0].1.imbalance;
    if let Some(note) = uneven(parts as u64, vertices, patches, imbalance) {
        tell("note: ", note);
    }
    let mut text = if arguments.json {
        json_reports::partition(&comparison, arguments.picture.as_deref())
    } else {
        comparison.to_string()
    };
    if let Some(file) = &arguments.picture {
        let positions = state.unwrap_or_else(|| world.original_order(world.model().start()));
        let size = world.scene().output.picture_size;
        let picture = partition_picture(&world, parts, &positions, size);
        let picture = picture.map_err(uncut)?;
        if let Some(folder) = file.parent() {
            make_folder(folder)?;
        }
        picture.write_to(file).map_err(|error| Failure {
            code: 5,
            message: error.to_string(),
        })?;
        if !arguments.json {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "Wrote {}", file.shown());
        }
    }
    say(text)
}

pub(crate) fn write_linear_system(
    scene: &Path,
    state: Option<&Path>,
    out: &Path,
    overrides: &[(String, String)],
) -> Result<(), Failure> {
    let room = Room::to_look(None)?;
    let world = build(&load(scene, overrides, room)?, room)?;
    let state = state_of(&world, state)?;
    let failed = |error: StepError| {
        let error = RunError::from(error);
        Failure {
            code: error.exit_code(),
            message: error.to_string(),
        }
    };
    let mut comm = Solo::new();
    let mut simulation =
        Simulation::new(&world, &comm, &ScopeOptions::default()).map_err(failed)?;
    if let Some(state) = &state {
        simulation.restore(state).map_err(failed)?;
    }
    let system = simulation.free_system(&mut comm).map_err(failed)?;
    let plain = system.prefiltered(world.tree().new_to_old());
    make_folder(out)?;
    let [matrix, rhs] = write_system(out, &plain).map_err(|error| Failure {
        code: 5,
        message: error.to_string(),
    })?;
    say(format_args!(
        "Wrote {} ({} rows, {} entries of the lower triangle) and {}\n",
        matrix.shown(),
        plain.rhs.len(),
        plain.entries.len(),
        rhs.shown(),
    ))
}

/// Makes a folder and those that it lies in, if they are not there.
pub(crate) fn make_folder(folder: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(folder).map_err(|error| Failure {
        code: 5,
        message: format!("{}: {error}", folder.shown()),
    })
}

/// How many patches a scene has.
pub(crate) fn patch_count(scene: &Scene) -> Result<usize, Failure> {
    World::patch_count(scene).map_err(|error| Failure {
        code: 3,
        message: error.to_string(),
    })
}

/// The world of a scene, built on all cores.
pub(crate) fn build(scene: &Scene, room: Room) -> Result<World, Failure> {
    memory::build(scene, usize::MAX, room.ranks, room.limit).map_err(|error| Failure {
        code: error.exit_code(),
        message: error.to_string(),
    })
}

/// The state in a checkpoint, if one is named.
fn state_of(world: &World, checkpoint: Option<&Path>) -> Result<Option<SavedState>, Failure> {
    let Some(path) = checkpoint else {
        return Ok(None);
    };
    match read_state(path, world) {
        Ok(checkpoint) => Ok(Some(checkpoint.state)),
        Err(error) => Err(Failure {
            code: error.exit_code(),
            message: error.to_string(),
        }),
    }
}

/// Loads a scene, and checks what its files hold and that it fits.
pub(crate) fn load(
    path: &Path,
    overrides: &[(String, String)],
    room: Room,
) -> Result<Scene, Failure> {
    let invalid = |message: String| Failure { code: 3, message };
    let scene = Scene::find(path, overrides).map_err(|e| invalid(e.to_string()))?;
    check_files(&scene, room)?;
    Ok(scene)
}

/// Checks what the mesh files of a scene hold, and that a process with its ranks fits. Grids are
/// counted before any mesh is made. A prepared world was checked where it was made, and whether it
/// fits is found when it is taken.
pub(crate) fn check_files(scene: &Scene, room: Room) -> Result<(), Failure> {
    let file = scene.partition.file.as_deref();
    if file.is_some_and(is_prepared_world) {
        return Ok(());
    }
    let invalid = |message: String| Failure { code: 3, message };
    let fits = |counts: MeshCounts| {
        let counts = counts.at_least(MeshCounts::of_grids(scene));
        memory::fits(scene, &counts, room.ranks, room.limit).map_err(invalid)
    };
    let mut counts = MeshCounts::default();
    fits(counts)?;
    for cloth in &scene.cloths {
        let mesh = build_cloth(cloth).map_err(|e| invalid(e.to_string()))?;
        let thickness = scene.thickness(cloth.thickness);
        let spaced = if scene.contact.pushes_all_pairs() && cloth.self_collision {
            check_spacing(&mesh, thickness)
        } else {
            check_thickness(&mesh, thickness)
        };
        spaced.map_err(|e| invalid(format!("cloth `{}`: {e}", cloth.name)))?;
        counts.add_cloth(&mesh);
    }
    for body in &scene.bodies {
        let mesh = build_body(body).map_err(|e| invalid(e.to_string()))?;
        counts.add_body(scene, body, &mesh);
    }
    fits(counts)
}

pub(crate) fn compare_runs(a: &Path, b: &Path, tolerance: Option<f64>) -> Result<(), Failure> {
    let comparison = compare(a, b).map_err(|error| Failure {
        code: 5,
        message: error.to_string(),
    })?;
    say(&comparison)?;
    let (same, verdict) = match (tolerance, comparison.farthest) {
        (None, _) => (comparison.differs.is_empty(), String::new()),
        (Some(most), Some(farthest)) => (
            farthest <= most,
            format!(": positions by up to {farthest:e} m, more than {most:e}"),
        ),
        (Some(_), None) => (
            false,
            ": no frame that both runs have, to compare with --tolerance".to_owned(),
        ),
    };
    if same {
        return Ok(());
    }
    Err(Failure {
        code: 6,
        message: format!("{} and {} differ{verdict}", a.shown(), b.shown()),
    })
}

pub(crate) fn audit_run(run: &Path, strict: bool, json: bool) -> Result<(), Failure> {
    let audit = FrameAudit::of_run(run).map_err(|error| Failure {
        code: 5,
        message: error.to_string(),
    })?;
    let mut text = format!("{audit}\n");
    for frame in &audit.crossing {
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "step {:>6}: {}, {}",
            frame.step,
            frame,
            frame.file.shown()
        );
    }
    if json {
        text = json_reports::audit(&audit);
    }
    say(text)?;
    if strict && !audit.crossing.is_empty() {
        let message = format!(
            "the cloth of {} crosses {}",
            run.shown(),
            if audit.has_crossed_bodies() {
                "bodies"
            } else {
                "itself"
            }
        );
        return Err(Failure { code: 4, message });
    }
    Ok(())
}

pub(crate) fn report_runs(arguments: &ReportArguments) -> Result<(), Failure> {
    let failed = |message: String| Failure { code: 5, message };
    let read = |directory: &PathBuf| {
        let mut run = Run::read(directory).map_err(|error| failed(error.to_string()))?;
        match last_frame(directory) {
            Ok(cloth) => run.cloth = cloth,
            // There is more to tell than that.
            Err(error) => (run.notes).push(format!("Pictures of the cloth are left out: {error}.")),
        }
        Ok(run)
    };
    let runs: Result<Vec<Run>, Failure> = arguments.runs.iter().map(read).collect();
    let report = Report::new(runs?);
    let mut text = report.text();
    if !arguments.text {
        let page = match (&arguments.out, &arguments.runs[..]) {
            (Some(file), _) => file.clone(),
            (None, [run]) => run.join("report.html"),
            (None, _) => PathBuf::from("report.html"),
        };
        if arguments.out.is_none() && page.is_symlink() {
            let page = page.shown();
            let message =
                format!("{page} is a link, which is not followed; name a place with --out");
            return Err(failed(message));
        }
        write_whole(&page, |out| report.write_page(out))
            .map_err(|error| failed(error.to_string()))?;
        // Writing to a String cannot fail.
        let _ = writeln!(text, "\nWrote {}: open it in a browser", page.shown());
    }
    say(text)
}

/// A scene of a list, and its title if it is valid.
pub(crate) struct Listed {
    pub(crate) name: String,
    /// The file, of scenes that are not part of the program.
    pub(crate) file: Option<PathBuf>,
    pub(crate) title: Option<String>,
}

/// Lists the scenes in a folder, or, without one, those that are part of the program.
pub(crate) fn list_scenes(folder: Option<&Path>, json: bool) -> Result<(), Failure> {
    let title = |scene: Result<Scene, SceneError>| scene.ok().map(|scene| scene.title);
    let scenes: Vec<Listed> = match folder {
        None => (BUILT_IN.iter())
            .map(|scene| Listed {
                name: scene.name.to_owned(),
                file: None,
                title: title(Scene::find(Path::new(scene.name), &[])),
            })
            .collect(),
        Some(folder) => (scenes_in(folder)?.into_iter())
            .map(|path| Listed {
                name: path.shown().to_string(),
                title: title(Scene::load(&path, &[])),
                file: Some(path),
            })
            .collect(),
    };
    if json {
        return say(json_reports::scenes(&scenes));
    }
    let mut list = String::new();
    for Listed { name, title, .. } in &scenes {
        let title = title.as_deref().unwrap_or("(not valid; see `weft check`)");
        // Writing to a String cannot fail.
        let _ = writeln!(list, "{name:<28} {title}");
    }
    say(list)
}

/// The scene files in a folder, by name.
fn scenes_in(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let failure = |e: io::Error| Failure {
        code: 5,
        message: format!(
            "cannot list {}: {e}; name a folder with scenes",
            folder.shown()
        ),
    };
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failure)? {
        let path = entry.map_err(failure)?.path();
        if path.extension().is_some_and(|e| e == "toml") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

pub(crate) fn info() -> String {
    let list = |names: &[&str]| match names {
        [] => "none".to_owned(),
        names => names.join(", "),
    };
    format!(
        "weft {version}\ncommit   {commit}\nprofile  {profile}\nfeatures {features}\n\
         ranks    solo, threads, virtual{and_mpi}\nmpi      {mpi}\n",
        version = env!("CARGO_PKG_VERSION"),
        commit = option_env!("WEFT_COMMIT").unwrap_or("not recorded"),
        profile = if cfg!(debug_assertions) {
            "debug"
        } else {
            "release"
        },
        features = list(FEATURES),
        and_mpi = if cfg!(feature = "mpi") { ", mpi" } else { "" },
        mpi = mpi_info(),
    )
}

#[cfg(feature = "mpi")]
pub(crate) fn mpi_info() -> String {
    under_mpi::info()
}

#[cfg(not(feature = "mpi"))]
pub(crate) fn mpi_info() -> String {
    "not built in; for it, build with `--features mpi`".to_owned()
}
