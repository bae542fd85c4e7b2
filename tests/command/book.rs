//! What the book and the README say of this repository, held against it.

use std::fs;
use std::path::{Path, PathBuf};

use super::place::{Place, hash_of};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The texts of all Rust files of the project.
fn sources() -> String {
    let mut folders: Vec<PathBuf> = ["src", "runtime", "partition", "study", "report", "tests"]
        .iter()
        .map(|name| root().join(name))
        .collect();
    let mut text = String::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                text.push_str(&fs::read_to_string(path).unwrap());
            }
        }
    }
    text
}

/// What stands between backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[test]
fn what_the_paper_map_names_is_there() {
    let page = fs::read_to_string(root().join("docs/src/paper-map.md")).unwrap();
    let sources = sources();
    let rows: Vec<Vec<&str>> = page
        .lines()
        .filter(|line| line.starts_with("| [") && line.contains('§') || line.contains("Fig."))
        .map(|line| line.trim_matches('|').split('|').collect())
        .collect();
    assert!(rows.len() > 20, "{page}");
    for row in rows {
        let [_, files, tests] = &row[..] else {
            panic!("not three columns: {row:?}");
        };
        assert!(
            quoted(files).count() > 0 && quoted(tests).count() > 0,
            "{row:?}"
        );
        for file in quoted(files) {
            assert!(root().join(file).exists(), "no {file}: {row:?}");
        }
        for test in quoted(tests) {
            let found = if test.contains('/') {
                root().join(test).exists()
            } else {
                sources.contains(&format!("fn {test}("))
            };
            assert!(found, "no {test}: {row:?}");
        }
    }
}

/// A link of a page to a page, file or picture of the book.
#[test]
fn links_between_pages_lead_somewhere() {
    let folder = root().join("docs/src");
    let mut links = 0;
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|ending| ending != "md") {
            continue;
        }
        let page = fs::read_to_string(&path).unwrap();
        for target in page.split("](").skip(1) {
            let target = target.split(')').next().unwrap();
            let file = target.split('#').next().unwrap();
            if file.is_empty() || target.contains("://") {
                continue;
            }
            assert!(
                folder.join(file).exists(),
                "{}: no {target}",
                path.to_str().unwrap()
            );
            links += 1;
        }
    }
    assert!(links > 30, "{links}");
}

#[test]
fn scenes_of_the_program_run_by_name_from_any_folder() {
    let place = Place::new();
    let list = String::from_utf8(place.weft("scenes").stdout).unwrap();
    let names: Vec<&str> = list
        .lines()
        .filter_map(|l| l.split_whitespace().next())
        .collect();
    assert!(
        names.contains(&"quick") && names.contains(&"drape-floor"),
        "{list}"
    );
    assert!(!list.contains("not valid"), "{list}");
    let run = |scene: &str, out: &str| {
        let run = format!("run {scene} --steps 5 --ranks 1 --quiet --out {out}");
        hash_of(&place.weft(&run))
    };
    let file = root().join("scenes/quick.toml");
    assert_eq!(
        run("quick", "by-name"),
        run(file.to_str().unwrap(), "by-file")
    );
    let (code, message) = place.fails("run quik");
    assert!(
        code == 3 && message.contains("did you mean `quick`?"),
        "{message}"
    );
    // A file in the folder is what is meant by its name.
    fs::copy(place.path("small.toml"), place.path("quick")).unwrap();
    let said = String::from_utf8(place.weft("check quick").stdout).unwrap();
    assert!(said.contains("title = \"small\""), "{said}");
}
