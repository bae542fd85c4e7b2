//! `weft prepare`: cuts the mesh of a scene once, so that no process of a run has to.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use weft_io::{Show as _, open_regular};
use weftwork::output::write_whole;
use weftwork::step::PREPARED_CUT;

use crate::commands::{Room, build, load};
use crate::{Failure, say};

/// Writes the prepared cut of a scene. A file that is something else is left alone.
pub(crate) fn prepare(
    scene: &Path,
    out: Option<PathBuf>,
    overrides: &[(String, String)],
) -> Result<(), Failure> {
    let room = Room::to_look(None)?;
    let mut scene = load(scene, overrides, room)?;
    // The mesh is cut anew, also if there is a file.
    let named = scene.partition.file.take();
    let default = || PathBuf::from(format!("{}.cut", scene.name));
    let file = out.or(named).unwrap_or_else(default);
    if holds_something_else(&file) {
        let message = format!(
            "{} is there and is no prepared cut; remove it, or choose another name with --out",
            file.shown()
        );
        return Err(Failure { code: 2, message });
    }
    let world = build(&scene, room)?;
    let bytes = world.prepared_cut();
    write_whole(&file, |to| to.write_all(&bytes)).map_err(|error| Failure {
        code: 5,
        message: error.to_string(),
    })?;
    let (vertices, patches) = (world.tree().vertex_count(), world.tree().patch_count());
    let aggregates = world
        .graphs()
        .aggregates
        .as_ref()
        .map_or_else(String::new, |aggregates| {
            format!(", {} aggregates", aggregates.count())
        });
    say(format!(
        "Wrote {}: {vertices} vertices in {patches} patches{aggregates}. A scene takes it with `partition.file`.\n",
        file.shown()
    ))
}

/// Whether a path names something that is there and is no prepared cut.
fn holds_something_else(path: &Path) -> bool {
    let mut first = [0; PREPARED_CUT.len()];
    match open_regular(path) {
        Ok(mut file) => file.read_exact(&mut first).is_err() || first != *PREPARED_CUT,
        // A place that cannot be read may be written all the same, and is refused there if not.
        Err(_) => false,
    }
}
