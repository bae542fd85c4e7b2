//! Scenes in which cloth must cross neither itself nor bodies, and the list of those in which it
//! does today.
//!
//! Each scene is run in a shortened form with a strict audit. Scenes of `expected_crossings.txt`
//! fail, all others pass: a scene that begins to cross is a fault, and one that no longer does is
//! taken off the list, which only ever gets shorter.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::place::Place;

/// The runs of each scene beside the test, and of each in `scenes/`.
const RUNS: &[(&str, &str)] = &[
    ("corner-folded", "--until 0.2"),
    ("face-sinks", "--until 0.2"),
    ("face-sinks-1-ms", "--until 0.2"),
    ("face-sinks-thin", "--until 0.2"),
    ("sleeve-pinched", "--until 0.6 --set time.step=4ms"),
    ("strip-between-pads", "--until 0.04"),
    ("curtain", "--until 0.3"),
    ("drape-floor", "--until 0.02"),
    ("drape-free", "--until 0.02"),
    ("one-sided", "--until 0.05"),
    ("quick", ""),
    ("sewn-shirt", "--until 0.1"),
    ("shirt", "--until 0.02"),
    ("turntable", "--until 0.3"),
];

/// Scenes that are changed from others.
const CHANGED: &[(&str, &str, &str)] = &[
    ("face-sinks-1-ms", "face-sinks", "--set time.step=1ms"),
    (
        "face-sinks-thin",
        "face-sinks",
        "--set contact.thickness=2mm --set cloth.grid.vertices=8",
    ),
];

/// Scenes on the list: less with each one that is taken off it.
const MOST: usize = 0;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The scene files of a folder, by their stems.
fn scenes(folder: &str) -> BTreeMap<String, PathBuf> {
    let entries = fs::read_dir(root().join(folder)).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let scenes = paths.filter(|path| path.extension().is_some_and(|ending| ending == "toml"));
    let stem = |path: &Path| path.file_stem().unwrap().to_str().unwrap().to_owned();
    scenes.map(|path| (stem(&path), path)).collect()
}

fn expected() -> BTreeSet<String> {
    let text = fs::read_to_string(root().join("tests/command/expected_crossings.txt")).unwrap();
    let lines = text.lines().map(str::trim);
    let names = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    names.map(str::to_owned).collect()
}

#[test]
fn the_list_of_expected_crossings_is_one_of_scenes_that_are_run_and_in_the_book() {
    let expected = expected();
    assert_eq!(expected.len(), MOST, "the list only ever gets shorter");
    let limits = fs::read_to_string(root().join("docs/src/limits.md")).unwrap();
    for name in &expected {
        assert!(RUNS.iter().any(|(run, _)| run == name), "{name} is not run");
        assert!(
            limits.contains(&format!("`{name}`")),
            "{name} is not in docs/src/limits.md"
        );
    }
    let changed: BTreeSet<&str> = CHANGED.iter().map(|(name, _, _)| *name).collect();
    let mut all = scenes("scenes");
    all.extend(scenes("tests/command/crossings"));
    let run: BTreeSet<&str> = RUNS.iter().map(|(name, _)| *name).collect();
    let there = all.keys().map(String::as_str).chain(changed);
    assert_eq!(
        there.collect::<BTreeSet<_>>(),
        run,
        "scenes, and those that are run"
    );
}

/// Two at a time, the longest first.
#[test]
fn scenes_cross_nothing_but_where_that_is_expected() {
    let (place, expected) = (Place::new(), expected());
    let mut files = scenes("scenes");
    files.extend(scenes("tests/command/crossings"));
    let wrong = Mutex::new(Vec::new());
    let left = Mutex::new(RUNS.to_vec());
    let work = || {
        loop {
            let Some((name, shortened)) = left.lock().unwrap().pop() else {
                return;
            };
            let changed = CHANGED.iter().find(|(changed, _, _)| *changed == name);
            let (base, changes) =
                changed.map_or((name, ""), |(_, base, changes)| (*base, *changes));
            let output = place.weft(&format!(
                "run {} {shortened} {changes} --out {name} --ranks 1 --quiet --audit=strict --set output.pictures=false \
                 --set output.checkpoints=false",
                files[base].to_str().unwrap()
            ));
            let message = String::from_utf8(output.stderr).unwrap();
            let (code, wanted) = (output.status.code(), 4 * i32::from(expected.contains(name)));
            if code != Some(wanted) || (wanted == 4 && !message.contains("error: Audit: ")) {
                let what = match code {
                    Some(0) => {
                        "crosses nothing: take it off tests/command/expected_crossings.txt and docs/src/limits.md"
                    }
                    _ => "failed",
                };
                wrong
                    .lock()
                    .unwrap()
                    .push(format!("{name} {what}: {message}"));
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(work);
        scope.spawn(work);
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
