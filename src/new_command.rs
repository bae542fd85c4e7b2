//! `weft new`: writes a scene that runs as it is, to be changed from there.
//!
//! Without meshes it is a square of cloth over a ball on the floor. A mesh of cloth takes the place
//! of the square, one of a body that of the ball, and the floor lies below both. The scene is
//! checked, meshes included, before it is written, and nothing that exists is written over.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use weft_io::{Show as _, temporary_beside};
use weftwork::mesh::{Sizes, TriMesh, read_mesh};
use weftwork::scene::Scene;

use crate::cli::NewArguments;
use crate::commands::{build, check_files};
use crate::{Failure, say, tell};

/// The thickness of cloth in m, unless edges are too short for it.
const THICKNESS: f64 = 0.004;
/// The most of the shortest edge that the thickness may be.
const OF_SHORTEST: f64 = 0.5;
/// How far below cloth and body the floor lies, as a share of their height, and at least in m.
const BELOW: [f64; 2] = [0.1, 0.02];

/// A mesh and how the scene names it.
struct Named {
    /// The path from the folder of the scene.
    path: String,
    mesh: TriMesh,
}

pub(crate) fn write_new(arguments: &NewArguments) -> Result<(), Failure> {
    let file = &arguments.scene;
    let exists = || Failure {
        code: 5,
        message: format!(
            "{} is there already, and is left alone; name another file",
            file.shown()
        ),
    };
    if file.symlink_metadata().is_ok() {
        return Err(exists());
    }
    let folder = weft_io::folder_of(file);
    let cloth = named(arguments.cloth.as_deref(), folder, arguments.scale)?;
    let body = named(arguments.body.as_deref(), folder, arguments.scale)?;
    let text = scene(file, cloth.as_ref(), body.as_ref(), arguments.scale);
    let invalid = |message: String| Failure {
        code: 3,
        message: format!("no scene is written, for this one would not run: {message}"),
    };
    let checked =
        Scene::parse(&text, Some(file), &[]).map_err(|error| invalid(error.to_string()))?;
    check_files(&checked).map_err(|failure| invalid(failure.message))?;
    let world = build(&checked).map_err(|failure| invalid(failure.message))?;
    for warning in world.warnings() {
        tell("warning: ", warning);
    }
    let unwritten = |error: std::io::Error| Failure {
        code: 5,
        message: format!("cannot write {}: {error}", file.shown()),
    };
    let mut temporary = temporary_beside(file).map_err(unwritten)?;
    temporary.write_all(text.as_bytes()).map_err(unwritten)?;
    temporary.as_file().sync_all().map_err(unwritten)?;
    temporary.persist_noclobber(file).map_err(|error| {
        if error.error.kind() == std::io::ErrorKind::AlreadyExists {
            exists()
        } else {
            unwritten(error.error)
        }
    })?;
    let mut told = format!("Wrote {}\n", file.shown());
    for object in world.sizes() {
        told += &format!("{object}\n");
    }
    say(told + &format!("Run it: weft run {}\n", weft_io::shell_path(file)))
}

/// Reads a mesh, and finds how a scene in a folder names it.
fn named(mesh: Option<&Path>, folder: &Path, scale: f64) -> Result<Option<Named>, Failure> {
    let Some(file) = mesh else {
        return Ok(None);
    };
    let mut mesh = read_mesh(file).map_err(|error| Failure {
        code: 3,
        message: error.to_string(),
    })?;
    for position in &mut mesh.positions {
        *position *= scale;
    }
    if mesh.triangles.is_empty() {
        let message = format!("{} has no faces", file.shown());
        return Err(Failure { code: 3, message });
    }
    let path = path_from(folder, file).map_err(|error| Failure {
        code: 5,
        message: format!("{}: {error}", file.shown()),
    })?;
    let Some(path) = path.to_str() else {
        let message = format!(
            "{}: a scene is a text in UTF-8, and so are the names of its files; rename it",
            file.shown()
        );
        return Err(Failure { code: 2, message });
    };
    let path = path.to_owned();
    Ok(Some(Named { path, mesh }))
}

/// The path of a file from a folder: the rest of it if the file is below, else the whole path.
fn path_from(folder: &Path, file: &Path) -> std::io::Result<PathBuf> {
    let folder = folder.canonicalize()?;
    let file = file.canonicalize()?;
    Ok(file
        .strip_prefix(&folder)
        .map_or_else(|_| file.clone(), Path::to_owned))
}

/// The text of the scene.
fn scene(file: &Path, cloth: Option<&Named>, body: Option<&Named>, scale: f64) -> String {
    let meshes = || cloth.iter().chain(&body).map(|named| &named.mesh);
    let corners = || meshes().flat_map(|mesh| &mesh.positions);
    let low = corners().map(|p| p.z).fold(f64::INFINITY, f64::min);
    let high = corners().map(|p| p.z).fold(f64::NEG_INFINITY, f64::max);
    let floor = if low.is_finite() {
        let [share, least] = BELOW;
        round(low - (share * (high - low)).max(least))
    } else {
        0.0
    };
    let shortest = cloth.map_or(f64::INFINITY, |cloth| Sizes::of(&cloth.mesh).shortest);
    let thickness = round(THICKNESS.min(OF_SHORTEST * shortest));
    let cloth = match (cloth, body) {
        (Some(Named { path, .. }), _) => {
            format!(
                "mesh = {}\nscale = {scale:?} # the file's unit in m",
                toml(path)
            )
        }
        (None, body) => {
            let high = match body {
                Some(_) => round(high + 0.02),
                None => 0.17,
            };
            format!("grid = {{ size = \"0.4 m\", vertices = 40 }}\ncenter = [0.04, 0.02, {high:?}]")
        }
    };
    let has_mesh = low.is_finite();
    let body = match body {
        Some(Named { path, .. }) => format!(
            "[[body]]\nname = \"body\"\nshape = \"mesh\"\nmesh = {}\nscale = {scale:?}\n\n",
            toml(path)
        ),
        None if has_mesh => String::new(),
        None => "[[body]]\nname = \"ball\"\nshape = \"sphere\"\ncenter = [0, 0, 0.08]\nradius = \"8 cm\"\n\n"
            .to_owned(),
    };
    let name = file.file_stem().unwrap_or_default().to_string_lossy();
    let title: String = name.chars().filter(|c| !c.is_control()).take(100).collect();
    format!(
        "# A scene to start from. `weft check` tells all keys in force and what is wrong; all keys are in the\n\
         # book's page on scenes. z points upwards, numbers without unit are in m, kg, s.\n\
         title = {title}\n\
         \n\
         [time]\n\
         step = \"4 ms\"\n\
         end = \"1 s\"\n\
         \n\
         [[cloth]]\n\
         name = \"cloth\"\n\
         {cloth}\n\
         material = {{ fabric = \"tablecloth\" }}\n\
         \n\
         {body}\
         [[body]]\n\
         name = \"floor\"\n\
         shape = \"plane\"\n\
         point = [0, 0, {floor:?}]\n\
         \n\
         [contact]\n\
         thickness = {thickness:?} # m; edges of cloth must be longer\n\
         \n\
         [output]\n\
         interval = \"40 ms\"\n",
        title = toml(&title),
    )
}

/// Three digits, rounded downwards.
fn round(value: f64) -> f64 {
    if value == 0.0 {
        return 0.0;
    }
    let unit = 10.0_f64.powi(value.abs().log10().floor() as i32 - 2);
    let rounded = (value / unit).floor() * unit;
    // The digits that the multiplication adds are not wanted.
    format!("{rounded:.9e}").parse().unwrap_or(rounded)
}

/// A text of TOML with its quotes.
fn toml(text: &str) -> String {
    toml::Value::from(text).to_string()
}
