//! The common part of cloths and bodies: names, mesh files, motions.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use glam::DVec3;
use weft_io::{Show as _, open_regular};

use super::Motion;
use super::error::{did_you_mean, nearest_file};
use super::motion::motion;
use super::quantity::Short;
use super::reader::Table;
use super::sections::{LONGEST_NAME, suits_name};
use crate::mesh::{READABLE_FORMATS, is_readable_format, is_usd, remedy};

/// The facts about the rest of the scene that the reading of one object needs.
#[derive(Debug)]
pub(super) struct Surroundings<'a> {
    /// Folder that mesh files are relative to.
    pub(super) folder: Option<&'a Path>,
    /// The thickness in m of cloth that has none of its own, if all pairs of cloth push.
    pub(super) thickness: Option<f64>,
    /// Whether cloth collides with cloth.
    pub(super) self_collision: bool,
    /// Length of a step in s.
    pub(super) step: f64,
    /// Names taken so far.
    pub(super) names: RefCell<BTreeSet<String>>,
}

/// A thickness and the key that says it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Thickness {
    pub(super) key: &'static str,
    /// The thickness in m.
    pub(super) thickness: f64,
}

impl Surroundings<'_> {
    /// The thickness of a cloth that may have its own, if all pairs of cloth push.
    pub(super) fn thickness_of(&self, own: Option<f64>) -> Option<Thickness> {
        let (key, thickness) = match (self.thickness?, own) {
            (_, Some(own)) => ("cloth.thickness", own),
            (of_all, None) => ("contact.thickness", of_all),
        };
        Some(Thickness { key, thickness })
    }
}

/// Reads the motion of a body or a pin, if it has one, in steps of `step` seconds. It turns about
/// `middle` (m) unless it says otherwise.
pub(super) fn motion_of(
    table: &Table<'_>,
    what: &str,
    velocity: Option<DVec3>,
    middle: DVec3,
    step: f64,
) -> Option<Motion> {
    table.has("motion").then(|| {
        if velocity.is_some() {
            table.note(
                "motion",
                format!(
                    "a {what} has `velocity` or `motion`, not both; a motion with two keyframes has \
                     a constant velocity between them"
                ),
            );
        }
        table.table("motion", |table| motion(table, middle, step))
    })
}

/// Finds the mesh file that a key names, and notes if there is none that can be read. Its path is
/// resolved against the folder of the scene.
pub(super) fn file(
    table: &Table<'_>,
    key: &'static str,
    text: &str,
    folder: Option<&Path>,
) -> PathBuf {
    // An override is typed on a command line, and yet relative to the scene: one rule for both.
    let path = folder.map_or_else(|| PathBuf::from(text), |folder| folder.join(text));
    if !is_readable_format(&path) {
        table.note(
            key,
            format!(
                "`{}` is none of the files {READABLE_FORMATS}{}",
                Short(text),
                remedy(&path)
            ),
        );
    } else {
        file_that_is_there(table, key, &path);
    }
    path
}

/// Notes if a file that a key names cannot be opened.
pub(super) fn file_that_is_there(table: &Table<'_>, key: &'static str, path: &Path) {
    if path.is_dir() {
        table.note(key, format!("{} is a directory, not a file", path.shown()));
    } else if let Err(error) = open_regular(path) {
        let is_absent = matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory);
        let message = if is_absent {
            let hint = did_you_mean(nearest_file(path).as_deref());
            format!("no file at {}{hint}", path.shown())
        } else {
            format!("cannot read {}: {error}", path.shown())
        };
        table.note(key, message);
    }
}

/// Notes if a part of a file is named whose format has none.
pub(super) fn prim(table: &Table<'_>, mesh: Option<&str>, prim: Option<String>) -> Option<String> {
    if prim.is_some() && !mesh.is_some_and(|mesh| is_usd(Path::new(mesh))) {
        table.note(
            "prim",
            "only files of USD have prims (.usd, .usda, .usdc, .usdz)",
        );
    }
    prim
}

/// Checks the name that was given to an object, or its default; no two objects have the same.
pub(super) fn name(
    table: &Table<'_>,
    given: Option<&str>,
    default: &str,
    surroundings: &Surroundings<'_>,
) -> String {
    let name = given.unwrap_or(default);
    let letter_first = name.starts_with(|c: char| c.is_ascii_alphabetic());
    if !letter_first || name.len() > LONGEST_NAME || !name.chars().all(suits_name) {
        let message = format!(
            "`{}` is no name; it wants 1 to {LONGEST_NAME} letters, digits, `-` or `_`, a letter \
             first",
            Short(name)
        );
        table.note("name", message);
    } else if !surroundings.names.borrow_mut().insert(name.to_owned()) {
        table.note(
            "name",
            format!("`{name}` is the name of another cloth, body or seam"),
        );
    }
    name.to_owned()
}
