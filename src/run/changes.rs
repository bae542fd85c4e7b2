//! The changes that a run which goes on makes to its scene, and from which step on they hold.
//!
//! A state belongs to a scene: its meshes, the places of bodies, the length of a step. The forces
//! that act on it, and how exactly equations are solved, may become others. Scenes are compared by
//! their echoes, key by key, and a difference is a [`ChangeRecord`] of `run.json`. A run that goes
//! on again takes these up as if they were on its command line, before what is there.

use std::path::Path;

use super::Resume;
use crate::output::{ChangeRecord, Checkpoint, RunRecord};
use crate::scene::Scene;

/// A key of a scene as its echo has it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Said {
    /// The header of its table.
    table: String,
    /// Its name.
    name: String,
    /// Its dotted name, as `--set` takes it: cloths and bodies are counted from 0.
    key: String,
    /// Its value, with the lines of a list.
    value: String,
}

/// The keys of an echo, in its order.
fn keys_of(echo: &str) -> Vec<Said> {
    let (mut table, mut path) = (String::new(), String::new());
    let (mut cloths, mut bodies) = (0_usize, 0_usize);
    let mut said: Vec<Said> = Vec::new();
    let mut is_in_list = false;
    for line in echo.lines() {
        if is_in_list {
            if let Some(last) = said.last_mut() {
                last.value += line.trim();
            }
            is_in_list = line != "]";
            continue;
        }
        if let Some(name) = line.strip_prefix('[') {
            line.clone_into(&mut table);
            let name = name.trim_end_matches(']').trim_start_matches('[');
            path = match name {
                "cloth" => {
                    cloths += 1;
                    format!("cloth.{}.", cloths - 1)
                }
                "body" => {
                    bodies += 1;
                    format!("body.{}.", bodies - 1)
                }
                "cloth.material" => format!("cloth.{}.material.", cloths.saturating_sub(1)),
                "body.motion" => format!("body.{}.motion.", bodies.saturating_sub(1)),
                name => format!("{name}."),
            };
            continue;
        }
        let Some((name, value)) = line.split_once(" = ") else {
            continue;
        };
        // A list has its unit where it begins.
        is_in_list = value == "[" || value.starts_with("[ #");
        let value = if is_in_list { "[" } else { without_unit(value) };
        said.push(Said {
            table: table.clone(),
            name: name.to_owned(),
            key: format!("{path}{name}"),
            value: value.to_owned(),
        });
    }
    said
}

/// A value without the remark behind it.
fn without_unit(value: &str) -> &str {
    // Texts end with their quotes, and remarks do not.
    match value.rsplit_once(" # ") {
        Some((value, remark)) if !remark.contains(['"', ']', '}']) => value,
        _ => value,
    }
}

/// How a scene differs from the one that a state is of, as their echoes say it.
///
/// # Errors
/// A sentence about a key that differs and must not.
pub(super) fn differences(
    before: &str,
    scene: &Scene,
    step: u64,
) -> Result<Vec<ChangeRecord>, String> {
    let free = scene.keys_of_later();
    let is_free =
        |said: &Said| (free.iter()).any(|(table, name)| *table == said.table && *name == said.name);
    let divided = |echo: &str| -> (Vec<Said>, Vec<Said>) {
        keys_of(echo).into_iter().partition(|said| is_free(said))
    };
    let ((free_before, fixed_before), (free_now, fixed_now)) =
        (divided(before), divided(&scene.echo_of_trajectory()));
    if let Some(why) = first_difference(&fixed_before, &fixed_now) {
        return Err(why);
    }
    let value = |of: &[Said], key: &str| {
        let found = of.iter().find(|said| said.key == key);
        found.map(|said| said.value.clone())
    };
    let mut keys: Vec<&str> = (free_before.iter().chain(&free_now))
        .map(|said| said.key.as_str())
        .collect();
    keys.sort_unstable();
    keys.dedup();
    let changes = keys.into_iter().filter_map(|key| {
        let (before, now) = (value(&free_before, key), value(&free_now, key));
        (before != now).then(|| ChangeRecord {
            step,
            time_s: step as f64 * scene.time.step,
            key: key.to_owned(),
            before,
            now,
        })
    });
    Ok(changes.collect())
}

/// A sentence about the first key that one of two lists has otherwise than the other.
fn first_difference(before: &[Said], now: &[Said]) -> Option<String> {
    let of = |list: &[Said], key: &str| list.iter().find(|said| said.key == key).cloned();
    let first = (before.iter().chain(now)).find(|said| {
        let value = |list: &[Said]| of(list, &said.key).map(|said| said.value);
        value(before) != value(now)
    })?;
    let shown = |list: &[Said]| match of(list, &first.key) {
        Some(said) => format!("`{} = {}`", said.name, said.value),
        None => format!("no `{}`", first.name),
    };
    Some(format!(
        "it has {} where the scene now has {}, and {} may not change in a run that goes on; take that back, or begin \
         another run. Gravity, air, pressure, friction, the resistance, damping and drag of cloth, and the exactness of \
         solves may change",
        shown(before),
        shown(now),
        first.key
    ))
}

/// The changes that a run in a directory has had before the step from which it goes on.
pub(super) fn earlier(directory: &Path, step: u64) -> Vec<ChangeRecord> {
    let record = RunRecord::read(directory);
    let changes = record.map(|record| record.changes).unwrap_or_default();
    (changes.into_iter().filter(|change| change.step < step)).collect()
}

/// The changes that a run of a scene which goes on takes up, as keys and values for
/// [`Scene::load`](crate::scene::Scene::load). `out` is the directory of its outputs.
///
/// A record that cannot be read is left to [`run`](super::run), which has to read it too.
#[must_use]
pub fn remembered(scene: &Scene, out: &Path, resume: Option<&Resume>) -> Vec<(String, String)> {
    let (directory, step) = match resume {
        None => return Vec::new(),
        Some(Resume::Newest | Resume::Auto) => (out.to_owned(), None),
        Some(Resume::From(path)) => {
            let folder = path.parent().unwrap_or_else(|| Path::new(""));
            (folder.to_owned(), Checkpoint::step_in_name(path))
        }
    };
    let record = RunRecord::read(&directory).ok();
    // The directory may have a run of another scene, which is not gone on with.
    let record = record.filter(|record| record.scene.name == scene.name);
    let changes = record.map(|record| record.changes).unwrap_or_default();
    let taken = changes.into_iter().filter(|change| {
        // A state from before a change is gone on from without it.
        step.is_none_or(|step| change.step <= step)
    });
    taken
        .filter_map(|change| Some((change.key, change.now?)))
        .collect()
}

/// Sentences about the changes of a run, one for each step.
pub(super) fn sentences(changes: &[ChangeRecord]) -> impl Iterator<Item = String> + '_ {
    let of_steps = changes.chunk_by(|one, other| one.step == other.step);
    of_steps.map(|changes| {
        let told: Vec<String> = changes.iter().map(ChangeRecord::to_string).collect();
        format!(
            "from step {} on the run had {}: a run with only one of the two does not end in this state",
            changes[0].step,
            told.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCENE: &str = "[[cloth]]\ngrid = { size = 1, vertices = 4 }\npins = [{ nearest = [0, 0, 0] }, { min = [0, 0, 0], max = [1, 1, 1] }]\n\
                         material = { fabric = \"denim\", drag_normal = 1 }\n[[cloth]]\ngrid = { size = 1, vertices = 4 }\ncenter = [0, 0, 1]\n\
                         material = { fabric = \"tablecloth\" }\n[[body]]\nname = \"floor\"\nshape = \"plane\"\npoint = [0, 0, -2]\n";

    fn scene(overrides: &[(&str, &str)]) -> Scene {
        let overrides: Vec<_> = (overrides.iter())
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect();
        let scene = Scene::parse(SCENE, None, &overrides);
        scene.unwrap_or_else(|error| panic!("{error}"))
    }

    fn changed(overrides: &[(&str, &str)]) -> Result<Vec<ChangeRecord>, String> {
        let before = scene(&[]).echo_of_trajectory();
        differences(&before, &scene(overrides), 7)
    }

    /// Each change, put onto the scene as it was, makes the scene as it is.
    #[test]
    fn changes_are_named_so_that_they_can_be_made_again() {
        assert_eq!(changed(&[]).unwrap(), []);
        for overrides in [
            &[("gravity", "[0, 0, -3]")][..],
            &[(
                "air.wind",
                "{ z = [0, 1], velocity = [[0, 0, 0], [1, 0, 0]] }",
            )],
            &[
                ("cloth.1.material.bending", "1e-4"),
                ("cloth.0.friction", "0.1"),
            ],
            &[(
                "cloth.0.material.stretch_factor",
                "{ keyframes = [{ time = 1, value = 1 }, { time = 2, value = 3 }] }",
            )],
            &[("body.0.friction", "0.9"), ("solver.tolerance", "1e-9")],
            &[("contact.iterations", "20"), ("contact.tolerance", "0.02")],
            &[("cloth.1.material.strain_limit", "none")],
        ] {
            let changes = changed(overrides).unwrap();
            assert!(!changes.is_empty(), "{overrides:?}");
            assert!(changes.iter().all(|change| change.step == 7));
            let again: Vec<_> = (changes.iter())
                .filter_map(|change| Some((change.key.as_str(), change.now.as_deref()?)))
                .collect();
            assert_eq!(
                scene(&again).echo_of_trajectory(),
                scene(overrides).echo_of_trajectory(),
                "{changes:?}"
            );
        }
        let change = &changed(&[("gravity", "[0, 0, -3]")]).unwrap()[0];
        assert_eq!(
            change.to_string(),
            "gravity = [0.0, 0.0, -3.0] where it had [0.0, 0.0, -9.81] before"
        );
    }

    #[test]
    fn keys_that_a_state_depends_on_may_not_change() {
        for (key, value) in [
            ("time.step", "1e-3"),
            ("cloth.0.material.density", "0.1"),
            ("cloth.0.pins", "[]"),
            ("cloth.1.center", "[0, 0, 2]"),
            ("cloth.1.thickness", "1e-3"),
            ("body.0.point", "[0, 0, -3]"),
            ("solver.integrator", "bdf2"),
            ("cloth.0.material.bending_model", "dihedral"),
        ] {
            let why = changed(&[(key, value)]).unwrap_err();
            assert!(why.contains(&format!("and {key} may not change")), "{why}");
        }
    }
}
