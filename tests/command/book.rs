//! Tests of what the book and the README say about this repository.

use std::fs;
use std::path::{Path, PathBuf};

use weft_io::Show as _;

use super::place::{Place, hash_of};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The texts of all Rust files of the project.
fn sources() -> String {
    let mut folders: Vec<PathBuf> = [
        "src",
        "runtime",
        "partition",
        "balance",
        "study",
        "report",
        "judge",
        "io",
        "tests",
    ]
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

/// The texts between backticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[test]
fn files_and_tests_named_by_the_paper_map_exist() {
    let page = fs::read_to_string(root().join("docs/src/paper-map.md")).unwrap();
    let sources = sources();
    let rows: Vec<Vec<&str>> = page
        .lines()
        .filter(|line| line.starts_with("| ["))
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

/// All pages of Markdown in a folder and the folders below it.
fn pages_in(folder: &Path) -> Vec<PathBuf> {
    let mut pages = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            pages.extend(pages_in(&path));
        } else if path.extension().is_some_and(|ending| ending == "md") {
            pages.push(path);
        }
    }
    pages.sort();
    pages
}

/// The lines of a page outside of its blocks of code.
fn prose(page: &str) -> impl Iterator<Item = &str> {
    let mut in_block = false;
    page.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        in_block ^= is_fence;
        !is_fence && !in_block
    })
}

/// The anchors of a page's headings, as mdBook and others make them.
fn anchors(page: &str) -> Vec<String> {
    let headings = prose(page).filter_map(|line| {
        let text = line.trim_start_matches('#');
        (text.len() < line.len()).then(|| text.strip_prefix(' '))?
    });
    let anchor = |heading: &str| {
        let kept = heading.trim().chars().filter_map(|c| match c {
            ' ' => Some('-'),
            '-' | '_' => Some(c),
            _ => c.is_alphanumeric().then(|| c.to_ascii_lowercase()),
        });
        kept.collect()
    };
    headings.map(anchor).collect()
}

/// The targets of a page's links and pictures.
fn targets(page: &str) -> Vec<&str> {
    let of_line = |line| {
        let line: &str = line;
        let links = line.split("](").skip(1);
        links.filter_map(|rest| rest.split(')').next())
    };
    prose(page).flat_map(of_line).collect()
}

/// Checks a link of a page, and describes what is wrong with it, if anything is.
fn broken(page: &Path, target: &str) -> Option<String> {
    let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
    let path = match file {
        "" => page.to_owned(),
        file => page.parent().unwrap().join(file),
    };
    if !path.exists() {
        return Some(format!("{}: no {target}", page.shown()));
    }
    if anchor.is_empty() {
        return None;
    }
    let text = fs::read_to_string(&path).unwrap();
    let found = anchors(&text).iter().any(|found| found == anchor);
    (!found).then(|| format!("{}: no heading for {target}", page.shown()))
}

#[test]
fn links_and_anchors_of_all_pages_lead_somewhere() {
    let mut all = pages_in(&root().join("docs"));
    let others = [
        "README.md",
        "CONTRIBUTING.md",
        "RELEASING.md",
        "SECURITY.md",
        "runtime/README.md",
        "runtime/PROTOCOL.md",
    ];
    all.extend(others.map(|name| root().join(name)));
    let mut links = 0;
    let mut wrong = Vec::new();
    for page in &all {
        // Its links are relative to the page that includes it.
        if page.ends_with("validation/found.md") {
            continue;
        }
        let text = fs::read_to_string(page).unwrap();
        for target in targets(&text) {
            if !target.contains("://") {
                links += 1;
                wrong.extend(broken(page, target));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    assert!(links > 200, "{links}");
}

#[test]
fn links_that_lead_nowhere_are_found() {
    let page = root().join("docs/src/introduction.md");
    for (target, good) in [
        ("install.md", true),
        ("install.md#with-mpi", true),
        ("../../README.md", true),
        ("instal.md", false),
        ("install.md#with-mp", false),
        ("#use", false),
    ] {
        assert_eq!(broken(&page, target).is_none(), good, "{target}");
    }
    let text = "# A `b` c, d\n[x](y.md#z)\n```sh\n# no [a](b.md)\n```\n## Two words\n";
    assert_eq!(anchors(text), ["a-b-c-d", "two-words"]);
    assert_eq!(targets(text), ["y.md#z"]);
}

/// A page that the summary does not name is no page of the book.
#[test]
fn the_summary_names_all_pages() {
    let folder = root().join("docs/src");
    let summary = fs::read_to_string(folder.join("SUMMARY.md")).unwrap();
    let mut named: Vec<PathBuf> = targets(&summary)
        .into_iter()
        .map(|target| folder.join(target))
        .collect();
    named.sort();
    let mut all = pages_in(&folder);
    all.retain(|page| !page.ends_with("SUMMARY.md") && !page.ends_with("validation/found.md"));
    assert_eq!(named, all);
}

/// A page opens with its title and a sentence that says what it is for.
#[test]
fn pages_open_with_what_they_are_for() {
    for page in pages_in(&root().join("docs/src")) {
        if page.ends_with("SUMMARY.md") || page.ends_with("validation/found.md") {
            continue;
        }
        let text = fs::read_to_string(&page).unwrap();
        let mut lines = text.lines().filter(|line| !line.is_empty());
        let title = lines.next().unwrap_or_default();
        let first = lines.next().unwrap_or_default();
        assert!(title.starts_with("# "), "{}: {title}", page.shown());
        assert!(
            first.starts_with(|c: char| c.is_uppercase() || "`*[".contains(c))
                && !first.starts_with("```"),
            "{}: {first}",
            page.shown()
        );
    }
}

/// A path of this repository that a page of the book names between backticks is there.
#[test]
fn paths_that_pages_name_are_there() {
    let places = [
        ".ci/",
        "balance/",
        "benches/",
        "contrib/",
        "docs/",
        "examples/",
        "io/",
        "judge/",
        "partition/",
        "python/",
        "report/",
        "runtime/",
        "scenes/",
        "src/",
        "study/",
        "tests/",
    ];
    let mut paths = 0;
    let mut missing = Vec::new();
    for page in pages_in(&root().join("docs/src")) {
        let text = fs::read_to_string(&page).unwrap();
        for word in prose(&text).flat_map(quoted) {
            // Not commands, patterns and names that stand for others.
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-".contains(c);
            let begins = places.iter().any(|place| word.starts_with(place));
            if begins && word.chars().all(is_plain) {
                paths += 1;
                if !root().join(word).exists() {
                    missing.push(format!("{}: no {word}", page.shown()));
                }
            }
        }
    }
    assert!(missing.is_empty(), "\n{}", missing.join("\n"));
    assert!(paths > 150, "{paths}");
}

/// The functions of the page on a step are in the files that stand beside them.
#[test]
fn the_page_on_a_step_names_functions_that_are_there() {
    let page = fs::read_to_string(root().join("docs/src/understand/step.md")).unwrap();
    let mut functions = 0;
    for row in page.lines().filter(|line| line.starts_with("| ")) {
        let columns: Vec<&str> = row.trim_matches('|').split('|').collect();
        let [_, _, _, names, files] = &columns[..] else {
            panic!("not five columns: {row}");
        };
        // The second file is in the folder of the first.
        let mut folder = root().to_owned();
        let mut text = String::new();
        for file in quoted(files) {
            let path = folder.join(file);
            text += &fs::read_to_string(&path).unwrap_or_else(|error| panic!("{file}: {error}"));
            path.parent().unwrap().clone_into(&mut folder);
        }
        for name in quoted(names) {
            let function = name.rsplit([':', '.']).next().unwrap();
            functions += 1;
            let is_there = ['(', '<'].map(|next| text.contains(&format!("fn {function}{next}")));
            assert!(is_there[0] || is_there[1], "{name}: {row}");
        }
    }
    assert!(functions > 12, "{functions}");
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
