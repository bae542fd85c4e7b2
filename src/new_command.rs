//! `weft new`: writes a scene that runs as it is, to be changed from there.
//!
//! Without meshes it is a square of cloth over a ball on the floor. A mesh of cloth takes the place
//! of the square, one of a body that of the ball, and the floor lies below both. The scene is
//! checked, meshes included, before it is written, and nothing that exists is written over.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use weft_io::{Show as _, temporary_beside};
use weftwork::mesh::{MeshError, Sizes, TriMesh, Wanted, build_body, build_cloth, read_mesh_file};
use weftwork::output::OutputError;
use weftwork::scene::Scene;

use crate::cli::NewArguments;
use crate::commands::{Room, build, check_files};
use crate::{Failure, say, tell};

/// The thickness of cloth in m, unless edges are too short for it.
const THICKNESS: f64 = 0.004;
/// The most of the shortest edge that the thickness may be.
const OF_SHORTEST: f64 = 0.5;
/// How far below cloth and body the floor lies, as a share of their height, and at least in m.
const BELOW: [f64; 2] = [0.1, 0.02];

/// The keys with which the scene names meshes of files and puts them in place.
struct Meshes {
    cloth: Option<String>,
    body: Option<String>,
}

/// Lengths of the scene, in m, that follow from its meshes.
struct Lengths {
    /// The height of the floor.
    floor: f64,
    /// The height of a square of cloth, above the ball or the body.
    square: f64,
    thickness: f64,
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
    let keys = |mesh: &Option<PathBuf>| {
        let keys = mesh.as_ref().map(|mesh| keys(mesh, folder, arguments));
        keys.transpose()
    };
    let meshes = Meshes {
        cloth: keys(&arguments.cloth)?,
        body: keys(&arguments.body)?,
    };
    let lengths = lengths(file, &meshes)?;
    let text = scene(file, &meshes, &lengths);
    let checked =
        Scene::parse(&text, Some(file), &[]).map_err(|error| invalid(error.to_string()))?;
    let room = Room::to_look(None)?;
    check_files(&checked, room).map_err(|failure| invalid(failure.message))?;
    let world = build(&checked, room).map_err(|failure| invalid(failure.message))?;
    for warning in world.warnings() {
        tell("warning: ", warning);
    }
    let unwritten = |source: std::io::Error| {
        let path = file.clone();
        Failure {
            code: 5,
            message: OutputError::Write { path, source }.to_string(),
        }
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

/// The keys of a mesh in a scene in a folder.
fn keys(mesh: &Path, folder: &Path, arguments: &NewArguments) -> Result<String, Failure> {
    // The message for a file that is missing or no mesh names the file, and no scene.
    let file = read_mesh_file(mesh, None, &Wanted::default()).map_err(|error| Failure {
        code: 3,
        message: error.to_string(),
    })?;
    let path = path_from(folder, mesh).map_err(|error| Failure {
        code: 5,
        message: format!("{}: {error}", mesh.shown()),
    })?;
    let Some(path) = path.to_str() else {
        let message = format!(
            "{}: a scene is a text in UTF-8, and so are the names of its files; rename it",
            mesh.shown()
        );
        return Err(Failure { code: 2, message });
    };
    let mut keys = format!("mesh = {}\nscale = {:?}", toml(path), arguments.scale);
    if file.axes.metres.is_none() {
        keys += " # the file's unit in m";
    }
    if let Some(up) = &arguments.up {
        keys += &format!("\nup = {} # the file's axis that points upwards", toml(up));
    }
    Ok(keys)
}

/// Measures the meshes where a scene has them: files of some formats have units and axes.
fn lengths(file: &Path, meshes: &Meshes) -> Result<Lengths, Failure> {
    let mut lengths = Lengths {
        floor: 0.0,
        square: 0.17,
        thickness: THICKNESS,
    };
    let draft = Scene::parse(&scene(file, meshes, &lengths), Some(file), &[]);
    let draft = draft.map_err(|error| invalid(error.to_string()))?;
    let cloth = meshes.cloth.as_ref().map(|_| build_cloth(&draft.cloths[0]));
    let body = meshes.body.as_ref().map(|_| build_body(&draft.bodies[0]));
    let unfit = |error: MeshError| invalid(error.to_string());
    let (cloth, body) = (
        cloth.transpose().map_err(unfit)?,
        body.transpose().map_err(unfit)?,
    );
    let bounds = cloth.iter().chain(&body).filter_map(TriMesh::bounds);
    let both = bounds.reduce(|a, b| [a[0].min(b[0]), a[1].max(b[1])]);
    if let Some([low, high]) = both {
        let [share, least] = BELOW;
        lengths.floor = round(low.z - (share * (high.z - low.z)).max(least));
        lengths.square = round(high.z + 0.02);
    }
    let shortest = cloth.map_or(f64::INFINITY, |cloth| Sizes::of(&cloth).shortest);
    lengths.thickness = round(THICKNESS.min(OF_SHORTEST * shortest));
    Ok(lengths)
}

fn invalid(message: String) -> Failure {
    Failure {
        code: 3,
        message: format!("no scene is written, for this one would not run: {message}"),
    }
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
fn scene(file: &Path, meshes: &Meshes, lengths: &Lengths) -> String {
    let Lengths {
        floor,
        square,
        thickness,
    } = lengths;
    let cloth = meshes.cloth.clone().unwrap_or_else(|| {
        format!("grid = {{ size = \"0.4 m\", vertices = 40 }}\ncenter = [0.04, 0.02, {square:?}]")
    });
    let body = match meshes {
        Meshes { body: Some(keys), .. } => {
            format!("[[body]]\nname = \"body\"\nshape = \"mesh\"\n{keys}\n\n")
        }
        Meshes { cloth: Some(_), .. } => String::new(),
        _ => "[[body]]\nname = \"ball\"\nshape = \"sphere\"\ncenter = [0, 0, 0.08]\nradius = \"8 cm\"\n\n"
            .to_owned(),
    };
    let name = file.file_stem().unwrap_or_default().to_string_lossy();
    let title: String = name.chars().filter(|c| !c.is_control()).take(100).collect();
    format!(
        "# A scene to start from. `weft check` prints all keys in force and what is wrong; all keys are in the\n\
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
         thickness = {thickness:?} # m; smaller than the cloth; a thickness of several edges costs time\n\
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
