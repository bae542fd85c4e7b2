//! Makes a checked [`Scene`] from text. The format of scene files is that of the book:
//!
#![doc = include_str!("../../docs/src/scene.md")]

use std::collections::BTreeSet;
use std::io::Read as _;
use std::path::Path;

use sha2::{Digest as _, Sha256};
use weft_runtime::wire::hex;

use super::body::body;
use super::cloth::{cloth, generated_vertices};
use super::detail::Scaled;
use super::document::{Node, Origin};
use super::error::nearest_file;
use super::key::{Changes, Section as _, read_section};
use super::objects::Surroundings;
use super::pin::follow;
use super::reader::{Problems, Table};
use super::seam::{seam, tell_groups};
use super::sections::{LONGEST_NAME, Root, keys_that_change, section, suits_name};
use super::{
    Balance, ContactParameters, Location, Partition, Problem, Scene, SceneError, Seam, Time,
};

impl Scene {
    /// Reads and checks the scene file at `path`, with overrides given as key and value.
    ///
    /// # Errors
    /// [`SceneError`], which lists every problem found.
    pub fn load(path: &Path, overrides: &[(String, String)]) -> Result<Self, SceneError> {
        let unreadable = |reason: std::io::Error| match reason.kind() {
            std::io::ErrorKind::NotFound => SceneError::Missing {
                path: path.to_owned(),
                nearest: nearest_file(path),
            },
            _ => SceneError::Unreadable {
                path: path.to_owned(),
                reason,
            },
        };
        let file = weft_io::open_regular(path).map_err(unreadable)?;
        let mut bytes = Vec::new();
        file.take(LONGEST_TEXT as u64 + 1)
            .read_to_end(&mut bytes)
            .map_err(unreadable)?;
        let text = std::str::from_utf8(&bytes).map_err(|error| {
            let line = 1 + bytes[..error.valid_up_to()]
                .iter()
                .filter(|&&b| b == b'\n')
                .count();
            one_problem(Some(path), line, None, "not a text in UTF-8".to_owned())
        })?;
        Self::parse(text, Some(path), overrides)
    }

    /// Checks a scene given as text; `path` is used in messages, to name the run and to find files.
    ///
    /// # Errors
    /// [`SceneError::Invalid`], which lists every problem found. Mesh files must exist; what is in
    /// them is checked by [`crate::mesh`].
    pub fn parse(
        text: &str,
        path: Option<&Path>,
        overrides: &[(String, String)],
    ) -> Result<Self, SceneError> {
        if text.len() > LONGEST_TEXT {
            let message = format!("too long; a scene has at most {LONGEST_TEXT} bytes");
            return Err(one_problem(path, 1, None, message));
        }
        let mut document = Node::parse(text).map_err(|error| {
            let message = format!("not TOML: {}", error.message);
            one_problem(path, error.line, Some(error.column), message)
        })?;
        let problems = Problems::new(path, overrides);
        if overrides
            .iter()
            .any(|(key, _)| policy_key(key) == Some(POLICY))
        {
            // A policy that is named replaces all keys of the text's policy.
            let keys: Vec<&str> = policy_keys().collect();
            document.forget(Balance::NAME, &keys);
        }
        for (number, (key, value)) in overrides.iter().enumerate() {
            if let Err(message) = document.set(key, value, number) {
                problems.note(Origin::Override(number), "", message);
            }
        }
        let mut scene = read_scene(&document, path, &problems);
        let problems = problems.into_sorted();
        if !problems.is_empty() {
            return Err(SceneError::Invalid(problems));
        }
        scene.sha256 = hex(&Sha256::digest(text));
        Ok(scene)
    }
}

/// The key of a policy in `balance` that the dotted key of an override names: one of the keys that
/// make up a policy, without the table, or all of the table.
#[must_use]
pub fn policy_key(key: &str) -> Option<&'static str> {
    let mut parts = key.split('.').map(str::trim);
    if parts.next() != Some(Balance::NAME) {
        return None;
    }
    let Some(part) = parts.next() else {
        return Some(Balance::NAME);
    };
    policy_keys().find(|&known| known == part)
}

/// The keys that make up a policy: its name, and what changes parts of it.
fn policy_keys() -> impl Iterator<Item = &'static str> {
    keys_that_change::<Balance>(Changes::Policy)
}

fn one_problem(
    path: Option<&Path>,
    line: usize,
    column: Option<usize>,
    message: String,
) -> SceneError {
    let location = Location::Text {
        path: path.map(Path::to_owned),
        line,
        column,
    };
    SceneError::Invalid(vec![Problem {
        location,
        key: String::new(),
        message,
    }])
}

/// Reads everything; what it returns means something only if no problem was noted.
fn read_scene(document: &Node, path: Option<&Path>, problems: &Problems<'_>) -> Scene {
    let root = Table::root(document, problems);
    let above: Root = read_section(&root);
    let time: Time = section(&root);
    let air = section(&root);
    let start = section(&root);
    let mut contact: ContactParameters = section(&root);
    let solver = section(&root);
    let mut partition: Partition = section(&root);
    if let (Some(folder), Some(file)) = (path.and_then(Path::parent), &mut partition.file) {
        *file = folder.join(&file);
    }
    let balance = section(&root);
    let output = section(&root);

    let surroundings = Surroundings {
        folder: path.and_then(Path::parent),
        thickness: contact.pushes_all_pairs().then_some(contact.thickness),
        self_collision: contact.self_collision,
        step: time.step,
        names: BTreeSet::new().into(),
    };
    let mut cloths = root.tables("cloth", MOST_OBJECTS, |index, table| {
        cloth(table, index, &surroundings)
    });
    if cloths.is_empty() && !root.has("cloth") {
        root.note("cloth", "missing; a scene has at least one `[[cloth]]`");
    } else if cloths.is_empty() {
        root.note("cloth", "a scene has at least one `[[cloth]]`");
    }
    let bodies = root.tables("body", MOST_OBJECTS, |index, table| {
        body(table, index, &surroundings)
    });
    let mut bodies: Vec<_> = bodies.into_iter().flatten().collect();
    let scaled = Scaled {
        cloths: &mut cloths,
        bodies: &mut bodies,
        contact: &mut contact,
    };
    scaled.divide(above.detail, &root);
    for cloth in &mut cloths {
        if let Err(message) = follow(cloth, &bodies) {
            root.note("cloth", message);
        }
    }
    let seams = root.tables("seam", MOST_OBJECTS, |index, table| {
        seam(table, index, &cloths, &surroundings)
    });
    let seams: Vec<Seam> = seams.into_iter().flatten().collect();
    tell_groups(&seams, &mut cloths);
    let vertices: Vec<u64> = cloths.iter().map(generated_vertices).collect();
    let total: u64 = vertices.iter().sum();
    // One cloth that is too large alone has been told of.
    let is_new = |&count: &u64| count <= MOST_VERTICES || above.detail > 1;
    if total > MOST_VERTICES && vertices.iter().all(is_new) {
        let message = format!("{total} vertices in all; the most are {MOST_VERTICES}");
        root.note("cloth", message);
    }
    root.finish();
    let mut scene = Scene {
        name: above.name.unwrap_or_else(|| name_of_file(path)),
        title: above.title,
        path: path.map(Path::to_owned),
        sha256: String::new(),
        time,
        gravity: above.gravity,
        air,
        cloths,
        bodies,
        seams,
        start,
        contact,
        solver,
        partition,
        balance,
        output,
        set_in_vain: Vec::new(),
    };
    let set = problems.take_set();
    scene.set_in_vain = scene.set_to_defaults_in_vain(&set);
    scene.set_in_vain.extend(problems.take_idle());
    scene
}

/// The file's stem with unsuitable characters replaced, or `scene`.
fn name_of_file(path: Option<&Path>) -> String {
    let stem = path
        .and_then(Path::file_stem)
        .map(|stem| stem.to_string_lossy());
    let replace = |c: char| if suits_name(c) { c } else { '-' };
    let stem: String = stem
        .iter()
        .flat_map(|stem| stem.chars())
        .take(LONGEST_NAME)
        .map(replace)
        .collect();
    if stem.is_empty() {
        "scene".to_owned()
    } else {
        stem
    }
}

/// Vertices of all cloths together.
pub(super) const MOST_VERTICES: u64 = crate::mesh::MAX_VERTICES as u64;

/// Longest scene text in bytes.
const LONGEST_TEXT: usize = 4 << 20;

/// The key of the balance that names a policy.
const POLICY: &str = "policy";

/// Cloths, and bodies, in a scene.
const MOST_OBJECTS: usize = 10_000;

/// Steps of a run, at most.
pub const MOST_STEPS: u64 = 1_000_000_000;
