//! From text to a checked [`Scene`], and the format of scene files, which is that of the book:
//!
#![doc = include_str!("../../docs/src/scene.md")]

use std::collections::BTreeSet;
use std::io::Read as _;
use std::path::Path;
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use weft_runtime::policy::{SPLITS, VICTIMS};
use weft_runtime::wire::hex;
use weft_runtime::{Interval, POLICIES, Policy};

use super::document::{Node, Origin};
use super::error::nearest_file;
use super::idle::NEVER_CUT;
use super::objects::{Surroundings, body, cloth, generated_vertices};
use super::quantity::{Dimension, Number, Short};
use super::reader::{Problems, Range, Table};
use super::{
    Balance, ContactParameters, Culling, Integrator, Output, Partition, Place, Preconditioner,
    Problem, Scene, SceneError, Solver, Time, defaults,
};
use crate::physics::air::Air;

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
            // Who names a policy means that one, and not the text's with another name.
            document.forget(BALANCE, &POLICY_KEYS);
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

/// The key of a policy in `balance` that the dotted key of an override names: `POLICY_KEYS` without the table, or all of the table.
#[must_use]
pub fn policy_key(key: &str) -> Option<&'static str> {
    let mut parts = key.split('.').map(str::trim);
    if parts.next() != Some(BALANCE) {
        return None;
    }
    let Some(part) = parts.next() else {
        return Some(BALANCE);
    };
    POLICY_KEYS.into_iter().find(|&known| known == part)
}

fn one_problem(
    path: Option<&Path>,
    line: usize,
    column: Option<usize>,
    message: String,
) -> SceneError {
    let place = Place::Text {
        path: path.map(Path::to_owned),
        line,
        column,
    };
    SceneError::Invalid(vec![Problem {
        place,
        key: String::new(),
        message,
    }])
}

/// Reads everything; what it returns means something only if no problem was noted.
fn read_scene(document: &Node, path: Option<&Path>, problems: &Problems<'_>) -> Scene {
    let root = Table::root(document, problems);
    let title = title(&root);
    let name = name(&root, path);
    let time = root.table("time", read_time);
    let gravity = root.vector("gravity", Dimension::ACCELERATION, Range::Any);
    let air = root.table("air", read_air);
    let contact = root.table("contact", read_contact);
    let solver = root.table("solver", read_solver);
    let partition = root.table("partition", read_partition);
    let balance = root.table(BALANCE, read_balance);
    let output = root.table("output", read_output);

    let surroundings = Surroundings {
        folder: path.and_then(Path::parent),
        thickness: contact.self_collision.then_some(contact.thickness),
        step: time.step,
        names: BTreeSet::new().into(),
    };
    let cloths = root.tables("cloth", MOST_OBJECTS, |index, table| {
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
    let vertices: Vec<u64> = cloths.iter().map(generated_vertices).collect();
    let total: u64 = vertices.iter().sum();
    // One cloth that is too large alone has been told of.
    if total > MOST_VERTICES && vertices.iter().all(|&count| count <= MOST_VERTICES) {
        let message = format!("{total} vertices in all; the most are {MOST_VERTICES}");
        root.note("cloth", message);
    }
    root.finish();
    Scene {
        name,
        title,
        path: path.map(Path::to_owned),
        sha256: String::new(),
        time,
        gravity: gravity.unwrap_or(defaults::GRAVITY),
        air,
        cloths,
        bodies: bodies.into_iter().flatten().collect(),
        contact,
        solver,
        partition,
        balance,
        output,
        set_in_vain: problems.take_idle(),
    }
}

fn title(root: &Table<'_>) -> String {
    let title = root.text("title").unwrap_or("");
    if title.chars().count() > LONGEST_TITLE || title.chars().any(char::is_control) {
        root.note(
            "title",
            format!("wants one line of at most {LONGEST_TITLE} characters"),
        );
    }
    title.to_owned()
}

/// The key `name`, or the file's stem with unsuitable characters replaced, or `scene`.
fn name(root: &Table<'_>, path: Option<&Path>) -> String {
    let suits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if let Some(name) = root.text("name") {
        if name.is_empty() || name.len() > LONGEST_NAME || !name.chars().all(suits) {
            let message = format!(
                "`{}` is no name; it wants 1 to {LONGEST_NAME} letters, digits, `-` or `_`",
                Short(name)
            );
            root.note("name", message);
        }
        return name.to_owned();
    }
    let stem = path
        .and_then(Path::file_stem)
        .map(|stem| stem.to_string_lossy());
    let replace = |c: char| if suits(c) { c } else { '-' };
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

fn read_time(table: &Table<'_>) -> Time {
    let default = Time::default();
    let step = table
        .quantity("step", Dimension::TIME, Range::Positive)
        .unwrap_or(default.step);
    let end = table
        .quantity("end", Dimension::TIME, Range::Positive)
        .unwrap_or(default.end);
    let (shown_step, shown_end) = (Number(step), Number(end));
    if step > end {
        let message = format!("a step of {shown_step} s is longer than `time.end`, {shown_end} s");
        table.note("step", message);
    } else if end / step > MOST_STEPS as f64 {
        let message = format!(
            "{shown_end} s in steps of {shown_step} s are {} steps; the most are {}",
            Number(end / step),
            Number(MOST_STEPS as f64)
        );
        table.note("step", message);
    }
    let shortest = table.quantity("shortest", Dimension::TIME, Range::Positive);
    if let Some(shortest) = shortest.filter(|&shortest| shortest > step) {
        let message = format!(
            "parts of {} s are longer than the steps, {shown_step} s, that they are cut from",
            Number(shortest)
        );
        table.note("shortest", message);
    } else if let Some(shortest) =
        shortest.filter(|&shortest| shortest > 0.5 * step * (1.0 + ROUNDING))
    {
        let message = format!(
            "steps of {shown_step} s are halved, to {} s first, and parts of {} s are longer: nothing would be cut; give half a step \
             or less",
            Number(0.5 * step),
            Number(shortest)
        );
        table.note("shortest", message);
    }
    let strain_change = table.quantity("strain_change", Dimension::NUMBER, Range::Positive);
    // Another value shows in the scene.
    if shortest.is_none() && strain_change == Some(default.strain_change) {
        table.note_idle("strain_change", NEVER_CUT);
    }
    Time {
        step,
        end,
        shortest,
        strain_change: strain_change.unwrap_or(default.strain_change),
    }
}

fn read_air(table: &Table<'_>) -> Air {
    let default = Air::default();
    Air {
        wind: table
            .vector("wind", Dimension::SPEED, Range::Any)
            .unwrap_or(default.wind),
        density: table
            .quantity("density", Dimension::DENSITY, Range::NonNegative)
            .unwrap_or(default.density),
    }
}

fn read_contact(table: &Table<'_>) -> ContactParameters {
    let default = ContactParameters::default();
    ContactParameters {
        thickness: table
            .quantity("thickness", Dimension::LENGTH, Range::Positive)
            .unwrap_or(default.thickness),
        self_collision: table
            .boolean("self_collision")
            .unwrap_or(default.self_collision),
        self_friction: table
            .quantity("self_friction", Dimension::NUMBER, Range::NonNegative)
            .unwrap_or(default.self_friction),
        culling: table
            .choice(
                "culling",
                &Culling::ALL.map(|choice| (choice.name(), choice)),
            )
            .unwrap_or(default.culling),
        iterations: count_u32(table, "iterations", 1000).unwrap_or(default.iterations),
        strain_change: table.quantity("strain_change", Dimension::NUMBER, Range::Positive),
    }
}

fn read_solver(table: &Table<'_>) -> Solver {
    let default = Solver::default();
    let preconditioners = Preconditioner::ALL.map(|choice| (choice.name(), choice));
    let integrators = Integrator::ALL.map(|choice| (choice.name(), choice));
    let integrator = table
        .choice("integrator", &integrators)
        .unwrap_or(default.integrator);
    let newton = count_u32(table, "newton", 1000).unwrap_or(default.newton);
    if newton > 1 && !integrator.is_implicit() {
        let message = format!(
            "the equations of \"{}\" are linear: there is nothing to iterate; leave it out, or take \
             integrator = \"euler\" or \"bdf2\"",
            integrator.name()
        );
        table.note("newton", message);
    }
    Solver {
        tolerance: table
            .quantity("tolerance", Dimension::NUMBER, Range::HalfOpen(1e-15, 1.0))
            .unwrap_or(default.tolerance),
        max_iterations: count_u32(table, "max_iterations", 1_000_000)
            .unwrap_or(default.max_iterations),
        preconditioner: table
            .choice("preconditioner", &preconditioners)
            .unwrap_or(default.preconditioner),
        integrator,
        newton,
        newton_tolerance: table
            .quantity(
                "newton_tolerance",
                Dimension::NUMBER,
                Range::HalfOpen(1e-15, 1.0),
            )
            .unwrap_or(default.newton_tolerance),
    }
}

fn read_partition(table: &Table<'_>) -> Partition {
    let patches = table.count("patches", 1, MOST_PATCHES);
    if let Some(patches) = patches.filter(|patches| !patches.is_power_of_two()) {
        let above = patches.next_power_of_two();
        let message = format!(
            "must be a power of two, such as {} or {above}, not {patches}",
            above / 2
        );
        table.note("patches", message);
    }
    Partition {
        patches: patches.and_then(|patches| usize::try_from(patches).ok()),
    }
}

fn read_balance(table: &Table<'_>) -> Balance {
    let default = Balance::default();
    let policies: Vec<_> = POLICIES.iter().map(|&(name, p, _)| (name, p)).collect();
    let splits: Vec<_> = SPLITS.iter().map(|&split| (split.name(), split)).collect();
    let victims: Vec<_> = VICTIMS.iter().map(|&rule| (rule.name(), rule)).collect();
    // A policy by its name, then what the scene says otherwise.
    let base = table.choice(POLICY, &policies).unwrap_or(default.policy);
    let time = |key, range| {
        let time = table.quantity(key, Dimension::TIME, range);
        time.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
    };
    let count = |key, least, most| {
        table
            .count(key, least, most)
            .and_then(|count| usize::try_from(count).ok())
    };
    Balance {
        ranks: count("ranks", 1, MOST_RANKS),
        // TOML's whole numbers end at i64::MAX.
        seed: table
            .count("seed", 0, i64::MAX.unsigned_abs())
            .unwrap_or(default.seed),
        policy: Policy {
            steal: table.boolean("steal").unwrap_or(base.steal),
            split: table.choice("split", &splits).unwrap_or(base.split),
            victims: table.choice("victims", &victims).unwrap_or(base.victims),
            interval: time("split_interval", Range::NonNegative)
                .map_or(base.interval, Interval::Fixed),
            low_water: count("low_water", 0, 1_000_000).unwrap_or(base.low_water),
            split_on_request: table
                .boolean("split_on_request")
                .unwrap_or(base.split_on_request),
            steal_timeout: time("steal_timeout", Range::Positive).unwrap_or(base.steal_timeout),
            forecast: table.boolean("forecast").unwrap_or(base.forecast),
        },
    }
}

fn read_output(table: &Table<'_>) -> Output {
    let default = Output::default();
    let size = table.count_pair("size", 16, 8192);
    let camera = table.vector("camera", Dimension::LENGTH, Range::Any);
    let look_at = table.vector("look_at", Dimension::LENGTH, Range::Any);
    if camera.is_some() && camera == look_at {
        table.note(
            "look_at",
            "the camera cannot look at the point where it stands",
        );
    }
    Output {
        interval: table
            .quantity("interval", Dimension::TIME, Range::Positive)
            .unwrap_or(default.interval),
        frames: table.boolean("frames").unwrap_or(default.frames),
        checkpoints: table.boolean("checkpoints").unwrap_or(default.checkpoints),
        checkpoint_interval: table
            .quantity("checkpoint_interval", Dimension::TIME, Range::NonNegative)
            .unwrap_or(default.checkpoint_interval),
        pictures: table.boolean("pictures").unwrap_or(default.pictures),
        picture_size: size.map_or(default.picture_size, |size| {
            size.map(|side| u32::try_from(side).unwrap_or(u32::MAX))
        }),
        camera,
        look_at,
    }
}

fn count_u32(table: &Table<'_>, key: &'static str, most: u32) -> Option<u32> {
    table
        .count(key, 1, u64::from(most))
        .and_then(|count| u32::try_from(count).ok())
}

/// By this share a shortest part may exceed half a step that it was meant to be.
const ROUNDING: f64 = 1e-9;

/// Vertices of all cloths together.
pub(super) const MOST_VERTICES: u64 = crate::mesh::MAX_VERTICES as u64;

/// Longest scene text in bytes.
const LONGEST_TEXT: usize = 4 << 20;

/// The table of how ranks share work.
const BALANCE: &str = "balance";

/// Its key that names a policy.
const POLICY: &str = "policy";

/// Its keys that make up the policy: the name, and what changes parts of it.
const POLICY_KEYS: [&str; 9] = [
    POLICY,
    "steal",
    "split",
    "victims",
    "split_interval",
    "low_water",
    "split_on_request",
    "steal_timeout",
    "forecast",
];

/// Longest title in characters.
const LONGEST_TITLE: usize = 200;

/// Longest name in bytes.
pub(super) const LONGEST_NAME: usize = 64;

/// Cloths, and bodies, in a scene.
const MOST_OBJECTS: usize = 10_000;

/// Steps of a run, at most.
pub const MOST_STEPS: u64 = 1_000_000_000;

/// Patches of a partition.
const MOST_PATCHES: u64 = 1 << 20;

/// Ranks of a run.
const MOST_RANKS: u64 = 65_536;
