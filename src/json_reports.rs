//! The output of commands with `--json`, for scripts and editors.
//!
//! Each report is one object with `"schema": 1`. Fields may be added under the same schema; another
//! meaning of a field is another schema. All text is ASCII, in which JSON escapes the rest, so that
//! nothing in it acts on a terminal and any reader of JSON gets it back as it was.

use std::fmt::Write as _;
use std::path::Path;

use serde::Serialize;
use weft_io::Show as _;
use weftwork::collide::bodies::Sampling;
use weftwork::diagnostics::PartitionComparison;
use weftwork::output::{FrameAudit, ProgramRecord};
use weftwork::run::FEATURES;
use weftwork::scene::{Location, Problem, Scene};
use weftwork::step::{ObjectKind, ObjectSizes};

use crate::commands::{CheckArguments, Listed, Room, build, check_files, mpi_info};
use crate::memory_report::MemoryReport;
use crate::{Failure, say};

/// The version of all these reports.
const SCHEMA: u32 = 1;

/// A report with its version.
#[derive(Serialize)]
struct Versioned<T: Serialize> {
    schema: u32,
    #[serde(flatten)]
    report: T,
}

/// The text of a report, which ends with a line break.
fn report(report: impl Serialize) -> String {
    let schema = SCHEMA;
    text(&Versioned { schema, report })
}

/// JSON in ASCII, which ends with a line break.
pub(crate) fn text(value: &impl Serialize) -> String {
    // Strings are the only keys, and writing to memory cannot fail.
    let json = serde_json::to_string_pretty(value).expect("reports can be written as JSON");
    let mut ascii = String::with_capacity(json.len() + 1);
    for letter in json.chars() {
        if letter == '\n' || (' '..='~').contains(&letter) {
            ascii.push(letter);
        } else {
            for unit in letter.encode_utf16(&mut [0; 2]) {
                // Writing to a String cannot fail.
                let _ = write!(ascii, "\\u{unit:04x}");
            }
        }
    }
    ascii + "\n"
}

/// An error of a command that was asked for JSON, in one line.
pub(crate) fn error(failure: &Failure) -> String {
    #[derive(Serialize)]
    struct Told<'a> {
        code: u8,
        message: &'a str,
    }
    #[derive(Serialize)]
    struct Report<'a> {
        error: Told<'a>,
    }
    let error = Told {
        code: failure.code,
        message: &failure.message,
    };
    let lines = report(Report { error });
    let lines = lines.lines().map(str::trim_start);
    lines.collect::<Vec<_>>().join(" ")
}

/// One thing wrong with a scene.
#[derive(Serialize)]
struct ProblemReport {
    /// The scene file, if the problem is in one.
    file: Option<String>,
    line: Option<usize>,
    column: Option<usize>,
    /// The `--set` that the problem is in, if it is in one.
    set: Option<String>,
    /// The dotted key; absent for a syntax error, and where it is not known.
    key: Option<String>,
    message: String,
}

impl ProblemReport {
    fn new(problem: &Problem) -> Self {
        let mut report = Self::plain(problem.message.clone());
        report.key = Some(problem.key.clone()).filter(|key| !key.is_empty());
        match &problem.location {
            Location::Text { path, line, column } => {
                report.file = path.as_ref().map(|path| path.shown().to_string());
                (report.line, report.column) = (Some(*line), *column);
            }
            Location::Override(text) => report.set = Some(text.clone()),
        }
        report
    }

    fn plain(message: String) -> Self {
        Self {
            file: None,
            line: None,
            column: None,
            set: None,
            key: None,
            message,
        }
    }
}

/// The sizes of a cloth or a body, lengths in m.
#[derive(Serialize)]
struct ObjectReport {
    kind: &'static str,
    name: String,
    extent_m: [f64; 3],
    vertices: usize,
    triangles: usize,
    shortest_edge_m: f64,
    longest_edge_m: f64,
    borders: usize,
    pieces: usize,
    /// Only a cloth has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    mass_kg: Option<f64>,
    /// Only a cloth has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    coincident_vertices: Option<usize>,
    /// Quads of its file that were cut into triangles. Only a cloth has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    quads_cut: Option<usize>,
    /// Faces of its file of more corners that were. Only a cloth has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    polygons_cut: Option<usize>,
    /// Vertices of its file that were joined with others. Only a cloth with `weld` has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    welded_vertices: Option<usize>,
    /// Only a body has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    analytic: Option<bool>,
    /// Only a body that cloth meets by its sampled distance has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    distance: Option<Sampling>,
    /// Only a body that deforms has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    samples: Option<usize>,
    /// Only a body that deforms has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_sample_s: Option<f64>,
}

impl ObjectReport {
    fn new(object: ObjectSizes) -> Self {
        let sizes = object.sizes;
        let mut report = Self {
            kind: "body",
            name: object.name,
            extent_m: sizes.extent.to_array(),
            vertices: sizes.vertices,
            triangles: sizes.triangles,
            shortest_edge_m: sizes.shortest,
            longest_edge_m: sizes.longest,
            borders: sizes.borders,
            pieces: sizes.pieces,
            mass_kg: None,
            coincident_vertices: None,
            quads_cut: None,
            polygons_cut: None,
            welded_vertices: None,
            analytic: None,
            distance: None,
            samples: None,
            last_sample_s: None,
        };
        match object.kind {
            ObjectKind::Cloth {
                mass,
                coincident,
                polygons: [quads, more],
                welded,
            } => {
                report.kind = "cloth";
                report.mass_kg = Some(mass);
                report.coincident_vertices = Some(coincident);
                report.quads_cut = Some(quads);
                report.polygons_cut = Some(more);
                report.welded_vertices = welded;
            }
            ObjectKind::Body {
                analytic,
                distance,
                deforms,
            } => {
                report.analytic = Some(analytic);
                report.distance = distance;
                (report.samples, report.last_sample_s) = deforms.unzip();
            }
        }
        report
    }
}

/// The findings of `weft check`. The fields of a valid scene are absent if it is not valid.
#[derive(Default, Serialize)]
struct CheckReport {
    valid: bool,
    problems: Vec<ProblemReport>,
    warnings: Vec<String>,
    notes: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    steps: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patches: Option<usize>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    objects: Vec<ObjectReport>,
    /// The scene with all keys in force.
    #[serde(skip_serializing_if = "Option::is_none")]
    scene: Option<String>,
    /// The memory of a run on as many ranks as were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    memory: Option<MemoryReport>,
}

/// Checks a scene. The report of an invalid one is printed too, before the command fails.
pub(crate) fn check(arguments: &CheckArguments, room: Room) -> Result<(), Failure> {
    let path = arguments.scene.as_path();
    let refuse = |problems, failure| {
        let problems = CheckReport {
            problems,
            ..CheckReport::default()
        };
        say(report(problems))?;
        Err(failure)
    };
    let scene = match Scene::find(path, &arguments.overrides) {
        Ok(scene) => scene,
        Err(error) => {
            let mut problems: Vec<_> = error.problems().iter().map(ProblemReport::new).collect();
            let message = error.to_string();
            if problems.is_empty() {
                problems.push(ProblemReport {
                    file: Some(path.shown().to_string()),
                    ..ProblemReport::plain(message.clone())
                });
            }
            return refuse(problems, Failure { code: 3, message });
        }
    };
    let world = match check_files(&scene, room).and_then(|()| build(&scene, room)) {
        Ok(world) => world,
        Err(failure) => {
            let problem = ProblemReport::plain(failure.message.clone());
            return refuse(vec![problem], failure);
        }
    };
    let memory = arguments
        .ranks
        .map(|ranks| MemoryReport::new(&world, ranks));
    say(report(CheckReport {
        valid: true,
        problems: Vec::new(),
        warnings: [scene.idle_keys(), world.warnings()].concat(),
        notes: scene.time.overshoot().into_iter().collect(),
        name: Some(scene.name.clone()),
        title: Some(scene.title.clone()),
        steps: Some(scene.time.steps()),
        patches: Some(world.tree().patch_count()),
        objects: world.sizes().into_iter().map(ObjectReport::new).collect(),
        scene: Some(scene.echo()),
        memory: memory.transpose()?,
    }))
}

/// The list of scenes.
pub(crate) fn scenes(scenes: &[Listed]) -> String {
    #[derive(Serialize)]
    struct Row<'a> {
        name: &'a str,
        /// Absent of a scene that is part of the program.
        file: Option<String>,
        valid: bool,
        title: Option<&'a str>,
    }
    #[derive(Serialize)]
    struct Report<'a> {
        scenes: Vec<Row<'a>>,
    }
    let rows = scenes.iter().map(|scene| Row {
        name: &scene.name,
        file: (scene.file.as_deref()).map(|file| file.shown().to_string()),
        valid: scene.title.is_some(),
        title: scene.title.as_deref(),
    });
    report(Report {
        scenes: rows.collect(),
    })
}

/// The program as it was built.
pub(crate) fn info() -> String {
    #[derive(Serialize)]
    struct Report {
        program: ProgramRecord,
        comm: Vec<&'static str>,
        mpi: Option<String>,
    }
    let has_mpi = cfg!(feature = "mpi");
    let mut comm = vec!["solo", "threads", "virtual"];
    comm.extend(has_mpi.then_some("mpi"));
    report(Report {
        program: ProgramRecord::this(FEATURES),
        comm,
        mpi: has_mpi.then(mpi_info),
    })
}

/// The ways to cut a scene, and the picture that was asked for.
pub(crate) fn partition(comparison: &PartitionComparison, picture: Option<&Path>) -> String {
    #[derive(Serialize)]
    struct Cut {
        by: &'static str,
        edge_cut: usize,
        halo: usize,
        largest_halo: usize,
        imbalance: f64,
        most_pieces: usize,
    }
    #[derive(Serialize)]
    struct Report {
        vertices: usize,
        edges: usize,
        patches: usize,
        parts: usize,
        cuts: Vec<Cut>,
        picture: Option<String>,
    }
    let [vertices, edges] = comparison.graph();
    let cuts = comparison.rows().iter().map(|(by, quality)| Cut {
        by,
        edge_cut: quality.edge_cut,
        halo: quality.halo_total(),
        largest_halo: quality.halo_max(),
        imbalance: quality.imbalance,
        most_pieces: quality.components_max(),
    });
    report(Report {
        vertices,
        edges,
        patches: comparison.patches(),
        parts: comparison.parts(),
        cuts: cuts.collect(),
        picture: picture.map(|file| file.shown().to_string()),
    })
}

/// Writes the findings of an audit of frames.
pub(crate) fn audit(audit: &FrameAudit) -> String {
    report(audit)
}
