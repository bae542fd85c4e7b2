//! Rules of the house: comments that people can read, and crates that do not know each other.
//!
//! [`READABLE`] has all folders with Rust files: every comment keeps the rules.

use std::fs;
use std::path::{Path, PathBuf};

use weft_io::Show as _;

/// Files and folders whose comments keep the rules.
const READABLE: &[&str] = &[
    "balance",
    "benches",
    "build.rs",
    "contrib",
    "examples",
    "io",
    "judge",
    "partition",
    "python/src",
    "report",
    "runtime",
    "src",
    "study",
    "tests",
];

/// Words that leave open whom or what they speak of.
const UNCLEAR: [&str; 6] = [
    "are told", "is told", "make of", "makes of", "so many", "whoever",
];

/// Words with which no sentence of a comment begins.
const NO_BEGINNING: [&str; 7] = [
    "All that ",
    "Of ",
    "So many ",
    "The same ",
    "Those ",
    "What ",
    "Who ",
];

/// The most columns of a line with a comment.
const COLUMNS: usize = 100;

/// Words with which no doc comment begins: what follows them says of what, but not what the thing
/// is.
const RIDDLES: [&str; 17] = [
    "All that ",
    "As these",
    "For each ",
    "From which ",
    "Of ",
    "So many ",
    "Such ",
    "That ",
    "The same",
    "Those ",
    "What ",
    "Which ",
    "Who ",
    "Whoever ",
    "Whom ",
    "Whose ",
    "Why ",
];

/// Words with which no name of a test begins: they leave open what is checked.
const NO_TEST: [&str; 9] = [
    "everything",
    "it_",
    "its_",
    "nothing_",
    "of_",
    "the_same_",
    "those_",
    "what_",
    "who_",
];

/// The crates of this workspace that each of them may depend on.
const MAY_USE: [(&str, &[&str]); 7] = [
    ("io", &[]),
    ("judge", &[]),
    ("runtime", &[]),
    ("partition", &[]),
    ("balance", &["weft-partition", "weft-runtime"]),
    (
        "study",
        &["weft-balance", "weft-io", "weft-partition", "weft-runtime"],
    ),
    ("report", &["weft-io", "weft-runtime"]),
];

/// Modules of the simulator that never name the crate of studies.
const WITHOUT_STUDIES: [&str; 4] = ["src/collide", "src/physics", "src/solve", "src/step"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The Rust files in a folder, or the file itself.
fn rust_files(path: &Path) -> Vec<PathBuf> {
    if path.is_file() {
        return vec![path.to_owned()];
    }
    let entries = fs::read_dir(path).unwrap_or_else(|error| panic!("{}: {error}", path.shown()));
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            let is_rust = path.extension().is_some_and(|ending| ending == "rs");
            is_rust || path.is_dir() && !path.ends_with("target")
        })
        .flat_map(|path| rust_files(&path))
        .collect();
    files.sort();
    files
}

/// The text of a line's comment and whether it is a doc comment, if the line is one.
fn comment(line: &str) -> Option<(&str, bool)> {
    let line = line.trim_start();
    let doc = line
        .strip_prefix("///")
        .or_else(|| line.strip_prefix("//!"));
    match doc {
        Some(text) => Some((text.trim(), true)),
        None => line.strip_prefix("//").map(|text| (text.trim(), false)),
    }
}

/// Finds faults in the comments of a file, and describes each in a sentence.
fn faults(text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let mut paragraph: Option<(usize, String)> = None;
    let mut in_block = false;
    let mut check = |paragraph: Option<(usize, String)>| {
        let Some((line, text)) = paragraph else {
            return;
        };
        if let Some(words) = RIDDLES.iter().find(|words| text.starts_with(*words)) {
            faults.push(format!(
                "{line}: a doc comment begins with `{}`: {text}",
                words.trim()
            ));
        }
        let begins = text.starts_with(|c: char| c.is_uppercase() || "`[".contains(c));
        if !begins || !text.ends_with(['.', ':']) {
            faults.push(format!(
                "{line}: the first lines of a doc comment are no sentence: {text}"
            ));
        }
    };
    let mut wide = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let found = comment(line);
        if found.is_some() && line.chars().count() > COLUMNS {
            wide.push(format!("{number}: a comment wider than {COLUMNS} columns"));
        }
        match found {
            Some((text, true)) if !in_block => {
                in_block = true;
                paragraph = Some((number, text.to_owned()));
            }
            Some(("", true)) | None | Some((_, false)) => {
                check(paragraph.take());
                in_block = matches!(found, Some((_, true)));
            }
            Some((text, true)) => {
                if let Some((_, all)) = &mut paragraph {
                    *all = format!("{all} {text}");
                }
            }
        }
    }
    check(paragraph);
    faults.extend(wide);
    faults
}

/// The words and beginnings of sentences in a text that leave open what they speak of.
fn vague(text: &str) -> impl Iterator<Item = &'static str> {
    let lower = text.to_lowercase();
    let words: Vec<&str> = (UNCLEAR.iter().copied())
        .filter(|words| lower.contains(words))
        .collect();
    let starts = NO_BEGINNING.iter().copied().filter(|words| {
        // The last is the end of words in bold.
        let inside = [". ", ": ", "? ", "** "].map(|end| format!("{end}{words}"));
        text.starts_with(words) || inside.iter().any(|inside| text.contains(inside))
    });
    let starts: Vec<&str> = starts.collect();
    words.into_iter().chain(starts).map(str::trim)
}

/// Finds words in the comments of a file that leave open what they speak of.
fn unclear(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut block = String::new();
    let mut begin = 0;
    for (number, line) in (1..).zip(text.lines().chain([""])) {
        // A line without text ends a paragraph.
        if let Some((text, _)) = comment(line).filter(|(text, _)| !text.is_empty()) {
            if block.is_empty() {
                begin = number;
            }
            block += text;
            block.push(' ');
            continue;
        }
        found.extend(
            vague(&block).map(|words| format!("{begin}: a comment has `{words}`: {block}")),
        );
        block.clear();
    }
    found
}

#[test]
fn comments_say_what_they_speak_of() {
    let mut all = Vec::new();
    for file in READABLE
        .iter()
        .flat_map(|path| rust_files(&root().join(path)))
    {
        let name = file.strip_prefix(root()).unwrap();
        // It has such words as examples.
        if !name.ends_with("tests/command/house.rs") {
            let text = fs::read_to_string(&file).unwrap();
            let found = unclear(&text).into_iter();
            all.extend(found.map(|fault| format!("{}:{fault}", name.shown())));
        }
    }
    assert!(all.is_empty(), "\n{}", all.join("\n"));
    for bad in [
        "// Whoever asks.",
        "/// It takes so many bytes.",
        "// One.\n// Of two, the last.",
        "/// A sum. Those of others stay.",
        "/// A sum.\n///\n/// # Errors\n///\n/// Those of others.",
        "/// **A sum.** Those of others stay.",
    ] {
        assert_eq!(unclear(bad).len(), 1, "{bad}");
    }
    let good = "// One of two.\nlet of = 1;\n// All of them.\n/// Most of those that are left.\n";
    assert_eq!(unclear(good), [""; 0]);
}

/// Finds words in the texts of a file that leave open what they speak of: messages are such texts.
fn unclear_texts(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        if comment(line).is_none() {
            let quoted = line.split('"').skip(1).step_by(2);
            let words = quoted.flat_map(vague);
            found.extend(words.map(|words| format!("{number}: a text has `{words}`: {line}")));
        }
    }
    found
}

#[test]
fn messages_say_what_they_speak_of() {
    let mut all = Vec::new();
    for file in READABLE
        .iter()
        .flat_map(|path| rust_files(&root().join(path)))
    {
        let name = file.strip_prefix(root()).unwrap();
        if name.ends_with("tests/command/house.rs") {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap();
        let found = unclear_texts(&text).into_iter();
        all.extend(found.map(|fault| format!("{}:{fault}", name.shown())));
    }
    assert!(all.is_empty(), "\n{}", all.join("\n"));
    assert_eq!(unclear_texts("f(\"Of two\", \"so many\");").len(), 2);
    assert_eq!(unclear_texts("f(\"two\", of, \"many\");"), [""; 0]);
}

/// The prose of a page of Markdown, paragraph by paragraph, without headings. Items of lists and
/// cells of tables are paragraphs of their own.
fn paragraphs(page: &str) -> Vec<String> {
    let mut all = vec![String::new()];
    let mut in_block = false;
    for line in page.lines() {
        if line.trim_start().starts_with("```") {
            in_block = !in_block;
        }
        let line = line.trim();
        let item = line.strip_prefix("- ").or_else(|| line.strip_prefix("* "));
        if in_block || line.is_empty() || line.starts_with('#') {
            all.push(String::new());
        } else if let Some(item) = item {
            all.push(item.to_owned());
        } else if line.starts_with('|') {
            all.extend(line.split('|').map(|cell| cell.trim().to_owned()));
            all.push(String::new());
        } else if let Some(last) = all.last_mut() {
            let between = if last.is_empty() { "" } else { " " };
            *last = format!("{last}{between}{line}");
        }
    }
    all
}

/// Pages of Markdown in a folder and the folders below it.
fn pages(folder: &Path) -> Vec<PathBuf> {
    let mut pages = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            pages.extend(self::pages(&path));
        } else if path.extension().is_some_and(|ending| ending == "md") {
            pages.push(path);
        }
    }
    pages.sort();
    pages
}

#[test]
fn pages_say_what_they_speak_of() {
    let mut all = pages(&root().join("docs"));
    let folders = [
        ".",
        "balance",
        "io",
        "judge",
        "partition",
        "python",
        "report",
        "runtime",
        "study",
    ];
    for folder in folders {
        let entries = fs::read_dir(root().join(folder)).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        all.extend(paths.filter(|path| path.extension().is_some_and(|ending| ending == "md")));
    }
    assert!(all.len() > 60, "{all:?}");
    let mut found = Vec::new();
    for page in all {
        let name = page.strip_prefix(root()).unwrap();
        let text = fs::read_to_string(&page).unwrap();
        for paragraph in paragraphs(&text) {
            let words = vague(&paragraph);
            found.extend(words.map(|words| format!("{}: `{words}`: {paragraph}", name.shown())));
        }
    }
    assert!(found.is_empty(), "\n{}", found.join("\n"));
    let page =
        "# Of a\n\nOne\nof two.\n- Of\n  two\n\n| a | Of b |\n```sh\nOf\n```\nOne. Those too.\n";
    let found: Vec<&str> = paragraphs(page)
        .iter()
        .flat_map(|text| vague(text))
        .collect();
    assert_eq!(found, ["Of", "Of", "Those"]);
}

/// The names of the tests in a file, each with its line.
fn names_of_tests(text: &str) -> Vec<(usize, &str)> {
    let mut names = Vec::new();
    let mut is_test = false;
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim_start();
        is_test |= line.starts_with("#[test]");
        if let Some(rest) = line.strip_prefix("fn ")
            && is_test
        {
            names.extend(rest.split('(').next().map(|name| (number, name)));
            is_test = false;
        }
    }
    names
}

#[test]
fn names_of_tests_say_what_is_checked() {
    let mut all = Vec::new();
    for file in READABLE
        .iter()
        .flat_map(|path| rust_files(&root().join(path)))
    {
        let name = file.strip_prefix(root()).unwrap();
        let text = fs::read_to_string(&file).unwrap();
        for (line, test) in names_of_tests(&text) {
            if NO_TEST.iter().any(|words| test.starts_with(words)) {
                all.push(format!("{}:{line}: a test `{test}`", name.shown()));
            }
        }
    }
    assert!(all.is_empty(), "\n{}", all.join("\n"));
    let text = "fn what_it_does() {}\n#[test]\nfn of_two() {}\n";
    assert_eq!(names_of_tests(text), [(3, "of_two")]);
}

#[test]
fn doc_comments_begin_with_a_sentence() {
    let files = READABLE
        .iter()
        .flat_map(|path| rust_files(&root().join(path)));
    let mut all = Vec::new();
    for file in files {
        let path = file.strip_prefix(root()).unwrap();
        let name = path.shown();
        let text = fs::read_to_string(&file).unwrap();
        all.extend(
            faults(&text)
                .into_iter()
                .map(|fault| format!("{name}:{fault}")),
        );
    }
    assert!(all.is_empty(), "\n{}", all.join("\n"));
}

/// Files in a folder and the folders below it that are not in Rust and have comments: scripts,
/// `.ci/run`, programs in Python, C, C++ and JavaScript, style sheets, scenes and manifests.
fn scripts(folder: &Path) -> Vec<PathBuf> {
    let mut scripts = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let ending = path.extension().unwrap_or_default();
        let is_built = path
            .file_name()
            .is_some_and(|name| name == "target" || name == ".venv");
        let has_comments = ["sh", "py", "pyi", "toml", "c", "cpp", "hpp", "css", "js"];
        if path.is_dir() && !is_built {
            scripts.extend(self::scripts(&path));
        } else if path.ends_with("run") || has_comments.iter().any(|name| ending == *name) {
            scripts.push(path);
        }
    }
    scripts
}

/// The part of a program that a line belongs to.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    Code,
    Comment,
    /// A text of several lines that is no comment.
    Text,
}

/// The comments of a program in the form that Rust gives them, line by line. Lines of code stay
/// lines of code. A text in Python that begins a line is a comment: it describes a module, a class
/// or a function.
fn as_rust(text: &str, ending: &str) -> Vec<String> {
    let is_c = ["c", "cpp", "hpp", "css", "js"].contains(&ending);
    let is_python = ["py", "pyi"].contains(&ending);
    let mut inside = Part::Code;
    let mut line_of = |line: &str| {
        let line = line.trim();
        let quotes = line.matches("\"\"\"").count() % 2 == 1;
        let begins = match inside {
            Part::Code if is_c && line.starts_with("/*") => Part::Comment,
            Part::Code if is_python && line.starts_with("\"\"\"") => Part::Comment,
            Part::Code if is_python && quotes && !line.starts_with('#') => Part::Text,
            before => before,
        };
        let goes_on = match begins {
            Part::Code => false,
            _ if is_c => !line.contains("*/"),
            // One mark begins or ends a text, two do both.
            _ => (inside == Part::Code) == quotes,
        };
        inside = if goes_on { begins } else { Part::Code };
        let one_line = if is_c { "//" } else { "#" };
        let text = match begins {
            Part::Comment => Some(line.trim_start_matches("/*").trim_matches(['*', '/', '"'])),
            Part::Code => line.strip_prefix(one_line),
            Part::Text => None,
        };
        text.map_or_else(|| "code".to_owned(), |text| format!("//{text}"))
    };
    text.lines().map(&mut line_of).collect()
}

/// Wide lines and unclear words in the comments of a program that is not in Rust.
fn faults_of_script(text: &str, ending: &str) -> Vec<String> {
    let as_rust = as_rust(text, ending);
    let wide = (1..)
        .zip(text.lines().zip(&as_rust))
        .filter(|(_, (line, rust))| comment(rust).is_some() && line.chars().count() > COLUMNS);
    wide.map(|(number, _)| format!("{number}: a comment wider than {COLUMNS} columns"))
        .chain(unclear(&as_rust.join("\n")))
        .collect()
}

#[test]
fn comments_of_scripts_are_narrow_and_clear() {
    let folders = [
        ".ci",
        "balance",
        "benches",
        "contrib",
        "io",
        "judge",
        "partition",
        "python",
        "report",
        "runtime",
        "scenes",
        "src",
        "study",
        "tests",
    ];
    let mut all: Vec<PathBuf> = folders
        .iter()
        .flat_map(|folder| scripts(&root().join(folder)))
        .collect();
    all.push(root().join("Cargo.toml"));
    assert!(all.len() > 60, "{all:?}");
    let mut found = Vec::new();
    for script in all {
        let name = script.strip_prefix(root()).unwrap();
        let text = fs::read_to_string(&script).unwrap();
        let ending = script.extension().unwrap_or_default().to_str().unwrap();
        let faults = faults_of_script(&text, ending).into_iter();
        found.extend(faults.map(|fault| format!("{}:{fault}", name.shown())));
    }
    assert!(found.is_empty(), "\n{}", found.join("\n"));
    let bad = format!("# One.\n# Of two.\nOf=3\n  # {}\n", "wide ".repeat(20));
    assert_eq!(faults_of_script(&bad, "sh").len(), 2);
    for (bad, ending) in [
        ("int a; // Of\n/* One.\n * Of two.\n */\nint of;\n", "c"),
        ("// One\n// of two. Of three.\nlet of;\n", "js"),
        (
            "def f():\n    \"\"\"One.\n\n    Of two.\n    \"\"\"\n    Of = 3\n",
            "py",
        ),
        (
            "a = \"\"\"\nOf one.\n\"\"\"\n\"\"\"Of two.\"\"\"\nOf = 3\n",
            "py",
        ),
    ] {
        assert_eq!(faults_of_script(bad, ending).len(), 1, "{bad}");
    }
}

#[test]
fn riddles_and_wide_lines_are_found() {
    let good = "//! A file.\n//!\n//! of anything\n\n/// The sum of\n/// two numbers.\n///\n/// # Errors\nfn f() {}\n";
    assert_eq!(faults(good), [""; 0]);
    for (bad, line) in [
        ("/// Of two numbers the sum.\nfn f() {}", 1),
        ("fn f() {}\n/// The same backwards.\nfn g() {}", 2),
        ("/// Whoever has it.\nfn f() {}", 1),
        ("/// the sum.\nfn f() {}", 1),
        ("/// The sum\n/// of two\nfn f() {}", 1),
        ("/// The sum", 1),
    ] {
        let found = faults(bad);
        assert!(!found.is_empty(), "{bad}");
        assert!(
            found
                .iter()
                .all(|fault| fault.starts_with(&format!("{line}:"))),
            "{found:?}"
        );
    }
    let wide = format!("let a = 1;\n// {}\n", "wide ".repeat(20));
    assert_eq!(faults(&wide).len(), 1);
}

#[test]
fn crates_depend_on_each_other_in_one_direction() {
    let ours = |name: &str| name.starts_with("weft");
    for (folder, allowed) in MAY_USE {
        let path = root().join(folder).join("Cargo.toml");
        let text = fs::read_to_string(&path).unwrap();
        let manifest: toml::Table = text.parse().unwrap();
        for table in ["dependencies", "dev-dependencies", "build-dependencies"] {
            let Some(table) = manifest.get(table) else {
                continue;
            };
            let names = table.as_table().unwrap().keys();
            for name in names.filter(|name| ours(name)) {
                assert!(
                    allowed.contains(&name.as_str()),
                    "{folder} depends on {name}"
                );
            }
        }
        // The names of all of them, as code has them.
        let others = [
            "io",
            "judge",
            "mpi",
            "partition",
            "balance",
            "study",
            "report",
            "runtime",
        ]
        .map(|name| format!("weft_{name}"));
        let others = others.into_iter().chain(["weftwork".to_owned()]);
        let own = format!("weft_{folder}");
        let forbidden: Vec<String> = others
            .filter(|name| *name != own && !allowed.contains(&name.replace('_', "-").as_str()))
            .collect();
        named_nowhere(&root().join(folder).join("src"), &forbidden);
    }
}

#[test]
fn a_time_step_knows_nothing_of_studies() {
    for folder in WITHOUT_STUDIES {
        named_nowhere(&root().join(folder), &["weft_study".to_owned()]);
    }
}

/// A ring and a subscriber hear the same events only if both are told in one place.
#[test]
fn events_of_the_crate_tracing_are_made_in_one_file() {
    let macros = ["event!(", "span!(", "record_all!("];
    let folders = [
        "runtime/src",
        "src",
        "partition/src",
        "balance/src",
        "study/src",
        "report/src",
        "judge/src",
    ];
    let files = folders
        .iter()
        .flat_map(|folder| rust_files(&root().join(folder)));
    let mut makers: Vec<String> = files
        .filter(|file| {
            let text = fs::read_to_string(file).unwrap();
            macros.iter().any(|name| text.contains(name))
        })
        .map(|file| file.strip_prefix(root()).unwrap().shown().to_string())
        .collect();
    makers.sort();
    assert_eq!(makers, ["runtime/src/trace/emit.rs"]);
}

/// Checks that no file in a folder has any of these names in its code.
fn named_nowhere(folder: &Path, names: &[String]) {
    for file in rust_files(folder) {
        let text = fs::read_to_string(&file).unwrap();
        for line in text.lines().filter(|line| comment(line).is_none()) {
            // What stands between quotation marks is no code.
            let code = line.split('"').step_by(2);
            let words =
                code.flat_map(|code| code.split(|c: char| !c.is_alphanumeric() && c != '_'));
            for word in words {
                let path = || file.shown();
                assert!(!names.iter().any(|name| name == word), "{}: {line}", path());
            }
        }
    }
}
