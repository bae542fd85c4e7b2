//! `weft prepare`: sets a scene up once, so that no process of a run has to.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use weft_io::{Show as _, open_regular};
use weftwork::output::write_whole;
use weftwork::step::{PREPARED_CUT, PREPARED_WORLD};

use crate::commands::{Room, build, load};
use crate::{Failure, say};

/// Writes the prepared world of a scene, or its cut alone. A file that is something else is left
/// alone.
pub(crate) fn prepare(
    scene: &Path,
    out: Option<PathBuf>,
    cut: bool,
    overrides: &[(String, String)],
) -> Result<(), Failure> {
    let room = Room::to_look(None)?;
    let mut scene = load(scene, overrides, room)?;
    // All is made anew, also if there is a file.
    let named = scene.partition.file.take();
    let ending = if cut { "cut" } else { "world" };
    let default = || PathBuf::from(format!("{}.{ending}", scene.name));
    let file = out.or(named).unwrap_or_else(default);
    if holds_something_else(&file) {
        let message = format!(
            "{} is there and is no prepared scene; remove it, or choose another name with --out",
            file.shown()
        );
        return Err(Failure { code: 2, message });
    }
    let world = build(&scene, room)?;
    let written = write_whole(&file, |to| match cut {
        true => to.write_all(&world.prepared_cut()),
        false => world.write_prepared(to),
    });
    written.map_err(|error| Failure {
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
        "Wrote {}: {}{vertices} vertices in {patches} patches{aggregates}. A scene takes it with `partition.file`.\n",
        file.shown(),
        if cut { "the cut of " } else { "" },
    ))
}

/// Whether a path names something that is there and is neither a prepared cut nor a prepared world.
fn holds_something_else(path: &Path) -> bool {
    let mut first = Vec::new();
    match open_regular(path) {
        Ok(file) => {
            let read = file
                .take(PREPARED_WORLD.len() as u64)
                .read_to_end(&mut first);
            read.is_err() || !(first.starts_with(PREPARED_CUT) || first == PREPARED_WORLD)
        }
        // A place that cannot be read may be written all the same, and is refused there if not.
        Err(_) => false,
    }
}
