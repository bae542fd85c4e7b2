//! Directories that are taken for runs, refused, replaced, and gone on with.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use weft_io::PARTIAL;

use super::lock::Lock;
use super::manifest::{Manifest, names};
use super::{Destination, OutputError, RunDirectory};

const OUR_RECORD: &str =
    r#"{"schema": 1, "program": {"name": "weftwork"}, "scene": {"name": "floor"}}"#;

fn overwrite(path: &Path) -> Result<RunDirectory, OutputError> {
    Destination::look(path)?.overwrite()
}

/// All files below a directory, with what is in them, but for the lock.
fn contents(path: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut all = Vec::new();
    for entry in fs::read_dir(path).unwrap() {
        let path = entry.unwrap().path();
        if fs::symlink_metadata(&path).unwrap().is_dir() {
            all.extend(contents(&path));
        } else if !path.ends_with(Lock::FILE) {
            let bytes = fs::read(&path).unwrap();
            all.push((path, bytes));
        }
    }
    all.sort();
    all
}

/// The files that a run leaves: a record, a frame and a checkpoint.
fn earlier_run(path: &Path) {
    let run = RunDirectory::create(path).unwrap();
    for (name, text) in [
        ("run.json", OUR_RECORD),
        ("history.csv", "step\n1\n2\n"),
        ("state.000002.ckpt", "x"),
        ("frames/cloth.000001.vtp", "x"),
        ("pictures/000001.png", "x"),
    ] {
        run.write(name, |out| out.write_all(text.as_bytes()))
            .unwrap();
    }
}

#[test]
fn directory_and_parents_are_made() {
    let root = tempfile::tempdir().unwrap();
    let run = RunDirectory::create(root.path().join("a/b")).unwrap();
    assert!(run.path().is_dir());
    let names = names(run.path(), None).unwrap();
    let own = [Lock::FILE, Manifest::FILE].map(str::to_owned);
    assert_eq!(BTreeSet::from_iter(names), own.into());
    assert_eq!(run.notices(), [""; 0]);
}

#[test]
fn file_in_the_way_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("run");
    fs::write(&path, "mine").unwrap();
    let error = RunDirectory::create(&path).unwrap_err();
    assert!(
        matches!(error, OutputError::NotADirectory { .. }),
        "{error}"
    );
    let error = RunDirectory::create(path.join("below")).unwrap_err();
    assert!(matches!(error, OutputError::Write { .. }), "{error}");
    assert_eq!(fs::read_to_string(path).unwrap(), "mine");
}

/// `/proc` refuses new entries to everybody, also to root, whom permission bits do not stop.
#[cfg(target_os = "linux")]
#[test]
fn unwritable_parent_is_refused() {
    let error = RunDirectory::create("/proc/weft-run").unwrap_err();
    assert!(matches!(error, OutputError::Write { .. }), "{error}");
    assert!(error.to_string().contains("/proc/weft-run"), "{error}");
}

#[test]
fn foreign_directory_is_refused_and_left_alone() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("thesis.tex"), "years of work").unwrap();
    let error = RunDirectory::create(root.path()).unwrap_err();
    assert!(matches!(error, OutputError::NotARun { .. }), "{error}");

    // Neither a run.json of another program makes it ours, nor a file with a checkpoint's name.
    fs::write(root.path().join("state.000001.ckpt"), "mine").unwrap();
    for record in [
        "{}",
        "not json",
        r#"{"schema": 1, "program": {"name": "other"}}"#,
    ] {
        fs::write(root.path().join("run.json"), record).unwrap();
        for refusal in [RunDirectory::create(root.path()), overwrite(root.path())] {
            let error = refusal.unwrap_err();
            assert!(
                matches!(error, OutputError::NotARun { .. }),
                "{record}: {error}"
            );
        }
    }
    assert_eq!(fs::read_dir(root.path()).unwrap().count(), 3);
}

#[test]
fn a_run_is_refused_and_replaced_only_when_asked_and_strangers_stay() {
    let root = tempfile::tempdir().unwrap();
    earlier_run(root.path());
    let strangers = [
        "notes.txt",
        "frames/cloth.000009.vtp",
        "pictures/mine.png",
        "state.000009.ckpt",
        ".notes.swp.partial",
    ];
    for name in strangers {
        fs::write(root.path().join(name), "mine").unwrap();
    }
    let before = contents(root.path());
    let error = RunDirectory::create(root.path()).unwrap_err();
    assert!(matches!(error, OutputError::Occupied { .. }), "{error}");
    let said = error.to_string();
    for words in [
        "scene `floor`",
        "--resume",
        "--out",
        "--overwrite",
        "9 steps",
    ] {
        assert!(said.contains(words), "no {words:?} in {said}");
    }
    assert_eq!(contents(root.path()), before);

    let run = overwrite(root.path()).unwrap();
    let mut left: Vec<PathBuf> = contents(root.path()).into_iter().map(|of| of.0).collect();
    left.retain(|path| !path.ends_with(Manifest::FILE));
    let mut expected = strangers.map(|name| root.path().join(name));
    expected.sort();
    assert_eq!(left, expected);
    // Nor is a stranger's file written to by the run that comes next.
    let error = run.write("frames/cloth.000009.vtp", |out| out.write_all(b"x"));
    assert!(
        matches!(error, Err(OutputError::InTheWay { .. })),
        "{error:?}"
    );
    run.write("frames/cloth.000001.vtp", |out| out.write_all(b"x"))
        .unwrap();
}

/// The directory is as a program left it that kept no list.
#[test]
fn a_run_without_a_list_is_continued_but_not_replaced() {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir(root.path().join("frames")).unwrap();
    for (name, text) in [
        ("run.json", OUR_RECORD),
        ("frames/cloth.000001.vtp", "x"),
        ("notes.txt", "mine"),
    ] {
        fs::write(root.path().join(name), text).unwrap();
    }
    let before = contents(root.path());
    let error = overwrite(root.path()).unwrap_err();
    assert!(matches!(error, OutputError::NoList { .. }), "{error}");
    let error = RunDirectory::create(root.path()).unwrap_err();
    assert!(error.to_string().contains("no list"), "{error}");
    assert_eq!(contents(root.path()), before);
    assert!(!root.path().join(Lock::FILE).exists());

    let run = RunDirectory::reopen(root.path()).unwrap();
    assert!(run.notices()[0].contains("no list"), "{:?}", run.notices());
    let listed = ["frames/cloth.000001.vtp", "report.html", "run.json"].map(str::to_owned);
    assert_eq!(run.listed(), listed.into());
    drop(run);
    overwrite(root.path()).unwrap();
    assert!(root.path().join("notes.txt").exists() && !root.path().join("run.json").exists());
}

#[test]
fn a_list_that_was_tampered_with_removes_nothing() {
    let root = tempfile::tempdir().unwrap();
    let out = root.path().join("out");
    earlier_run(&out);
    fs::write(root.path().join("mine.vtp"), "mine").unwrap();
    fs::create_dir(out.join("frames/dir.vtp")).unwrap();
    let list = fs::read_to_string(out.join(Manifest::FILE)).unwrap();
    for line in [
        "frames/../../mine.vtp".to_owned(),
        root.path().join("mine.vtp").to_str().unwrap().to_owned(),
        "frames/dir.vtp".to_owned(),
    ] {
        fs::write(out.join(Manifest::FILE), format!("{list}file {line}\n")).unwrap();
        let before = contents(root.path());
        let error = overwrite(&out).unwrap_err();
        let name = if line.contains("dir") {
            "dir.vtp"
        } else {
            "run.files"
        };
        assert!(error.to_string().contains(name), "{error}");
        assert_eq!(contents(root.path()), before);
    }
}

#[cfg(unix)]
#[test]
fn a_folder_that_is_a_link_loses_nothing() {
    let root = tempfile::tempdir().unwrap();
    let (out, other) = (root.path().join("out"), root.path().join("other"));
    earlier_run(&out);
    fs::rename(out.join("frames"), &other).unwrap();
    std::os::unix::fs::symlink(&other, out.join("frames")).unwrap();
    let before = contents(&other);
    for refusal in [overwrite(&out), RunDirectory::reopen(&out)] {
        let error = refusal.unwrap_err();
        assert!(matches!(error, OutputError::NotPlain { .. }), "{error}");
        assert!(error.to_string().contains("out/frames"), "{error}");
    }
    assert_eq!(contents(&other), before);
    assert!(out.join("run.json").exists());
    // Nor is written through a link that comes later.
    fs::remove_file(out.join("frames")).unwrap();
    let run = overwrite(&out).unwrap();
    std::os::unix::fs::symlink(&other, out.join("frames")).unwrap();
    let error = run.write("frames/cloth.000001.vtp", |out| out.write_all(b"new"));
    assert!(
        matches!(error, Err(OutputError::NotPlain { .. })),
        "{error:?}"
    );
    assert_eq!(contents(&other), before);
}

/// A link in the place of a file is replaced, not what it leads to.
#[cfg(unix)]
#[test]
fn a_file_that_is_a_link_is_not_followed() {
    let root = tempfile::tempdir().unwrap();
    let out = root.path().join("out");
    let run = RunDirectory::create(&out).unwrap();
    run.write("history.csv", |out| out.write_all(b"x")).unwrap();
    fs::write(root.path().join("mine"), "mine").unwrap();
    fs::remove_file(out.join("history.csv")).unwrap();
    std::os::unix::fs::symlink("../mine", out.join("history.csv")).unwrap();
    run.remove("history.csv").unwrap();
    run.write("history.csv", |out| out.write_all(b"new"))
        .unwrap();
    assert_eq!(fs::read(root.path().join("mine")).unwrap(), b"mine");
    assert!(
        fs::symlink_metadata(out.join("history.csv"))
            .unwrap()
            .is_file()
    );
}

#[test]
fn reopening_keeps_everything_but_what_a_kill_left_and_needs_a_run() {
    let root = tempfile::tempdir().unwrap();
    let error = RunDirectory::reopen(root.path()).unwrap_err();
    assert!(
        matches!(error, OutputError::NothingToResume { .. }),
        "{error}"
    );
    earlier_run(root.path());
    let files = fs::read_to_string(root.path().join(Manifest::FILE)).unwrap();
    let prefix = files
        .lines()
        .find_map(|line| line.strip_prefix("temporary "));
    let left = format!("frames/{}abc{PARTIAL}", prefix.unwrap());
    fs::write(root.path().join(&left), "half").unwrap();
    let run = RunDirectory::reopen(root.path()).unwrap();
    assert!(!root.path().join(&left).exists());
    assert!(root.path().join("state.000002.ckpt").exists());
    assert!(run.listed().contains("state.000002.ckpt"));
}

#[test]
fn one_run_at_a_time() {
    let root = tempfile::tempdir().unwrap();
    let out = root.path().join("out");
    let run = RunDirectory::create(&out).unwrap();
    run.write("run.json", |file| file.write_all(OUR_RECORD.as_bytes()))
        .unwrap();
    for refusal in [
        RunDirectory::create(&out),
        RunDirectory::reopen(&out),
        overwrite(&out),
    ] {
        let error = refusal.unwrap_err();
        assert!(matches!(error, OutputError::Busy { .. }), "{error}");
    }
    let clone = run.clone();
    drop(run);
    assert!(matches!(overwrite(&out), Err(OutputError::Busy { .. })));
    drop(clone);
    overwrite(&out).unwrap();
}

#[test]
fn failed_write_leaves_the_older_file_and_no_rest() {
    let root = tempfile::tempdir().unwrap();
    let run = RunDirectory::create(root.path()).unwrap();
    run.write("trace.json", |out| out.write_all(b"old"))
        .unwrap();
    let before = contents(root.path());
    let error = run
        .write("trace.json", |out| {
            out.write_all(b"half")?;
            Err(io::ErrorKind::StorageFull.into())
        })
        .unwrap_err();
    let OutputError::Write { path, source } = error else {
        panic!("{error}")
    };
    assert_eq!(path, run.file("trace.json"));
    assert_eq!(source.kind(), io::ErrorKind::StorageFull);
    assert_eq!(contents(root.path()), before);
}

#[test]
fn lost_directory_is_an_error_naming_the_file() {
    let root = tempfile::tempdir().unwrap();
    let run = RunDirectory::create(root.path().join("run")).unwrap();
    fs::remove_dir_all(run.path()).unwrap();
    for name in ["run.json", "frames/a.vtp"] {
        let error = run.write(name, |out| out.write_all(b"x")).unwrap_err();
        assert!(matches!(&error, OutputError::Write { path, .. } if *path == run.file(name)));
    }
    assert!(!run.path().exists());
}

#[test]
fn names_that_no_run_gives_are_not_written() {
    let root = tempfile::tempdir().unwrap();
    let run = RunDirectory::create(root.path()).unwrap();
    for name in ["../a.vtp", "thesis.tex", "frames/a/b.vtp", "/a.vtp"] {
        let error = run.write(name, |out| out.write_all(b"x")).unwrap_err();
        assert!(matches!(error, OutputError::Inconsistent { .. }), "{error}");
    }
}
