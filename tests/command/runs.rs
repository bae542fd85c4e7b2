//! Directories of runs: no run destroys another or a person's file, one run at a time, and a run
//! that goes on knows what from.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use sha2::{Digest as _, Sha256};

use crate::place::{Place, SCENE, hash_of, record};
use crate::restart::{checkpoints, wait};

/// Few steps, and no pictures.
const RUN: &str = "run small.toml --quiet --ranks 1 --set output.pictures=false --out";
/// As [`RUN`], with a checkpoint after each step.
const OFTEN: &str = "run small.toml --quiet --ranks 1 --set output.pictures=false \
                     --set output.checkpoint_interval=0 --out";

/// All files below a folder with what is in them, and links with where they lead. The text of a
/// lock file is left out.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let kind = fs::symlink_metadata(&path).unwrap();
        if kind.is_dir() {
            all.extend(contents(&path));
        } else if kind.is_symlink() {
            let to = fs::read_link(&path).unwrap();
            all.insert(path, to.into_os_string().into_encoded_bytes());
        } else if !path.ends_with("run.lock") {
            let bytes = fs::read(&path).unwrap();
            all.insert(path, bytes);
        }
    }
    all
}

/// A command that must be refused with this code, with these words in one message, and without
/// changing anything.
#[track_caller]
fn refused(place: &Place, arguments: &str, expected: i32, words: &[&str]) -> String {
    let before = contents(&place.path("."));
    let (code, message) = place.fails(arguments);
    assert_eq!(code, expected, "{arguments}: {message}");
    for word in words {
        assert!(
            message.contains(word),
            "{arguments}: no {word:?} in {message}"
        );
    }
    assert_eq!(message.matches("error: ").count(), 1, "{message}");
    let after = contents(&place.path("."));
    assert!(before == after, "{arguments} has changed something");
    message
}

fn message(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Columns of `history.csv` that do not depend on ranks and clocks.
fn history(directory: &Path) -> Vec<Vec<String>> {
    let text = fs::read_to_string(directory.join("history.csv")).unwrap();
    let machine = weftwork::output::HistoryRow::OF_THE_MACHINE;
    let header: Vec<&str> = text.lines().next().unwrap().split(',').collect();
    let of = |line: &str| {
        let cells = header.iter().zip(line.split(','));
        let cells = cells.filter(|(name, _)| !machine.contains(name));
        cells.map(|(_, cell)| cell.to_owned()).collect()
    };
    text.lines().map(of).collect()
}

/// Starts a command that goes on until it is killed.
fn start(place: &Place, arguments: &str) -> Child {
    let mut command = place.command(arguments);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap()
}

/// Waits until something is so while a process is alive.
fn wait_for(child: &mut Child, is_so: impl Fn() -> bool) {
    while !is_so() {
        assert_eq!(child.try_wait().unwrap(), None, "it ended before");
        wait();
    }
}

fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_directory_with_a_run_is_refused_and_the_ways_on_are_named() {
    let place = Place::new();
    fs::write(place.path("other.toml"), SCENE).unwrap();
    hash_of(&place.weft(&format!("{RUN} out --steps 10")));
    let ways = [
        "out holds a run",
        "scene `small`",
        "10 steps",
        "--resume",
        "--out",
        "--overwrite",
    ];
    refused(&place, &format!("{RUN} out --steps 10"), 5, &ways);
    refused(
        &place,
        "run other.toml --quiet --steps 2 --out out",
        5,
        &ways,
    );
    // A directory with other files of a run, but without a record, holds a run too.
    fs::remove_file(place.path("out/run.json")).unwrap();
    refused(
        &place,
        &format!("{RUN} out"),
        5,
        &["10 steps", "no run.json"],
    );

    // As the first command of the README, twice in a row.
    let first = "run small.toml --quiet --steps 1";
    hash_of(&place.weft(first));
    refused(
        &place,
        first,
        5,
        &["runs/small holds a run of scene `small`, 1 step of it"],
    );

    for both in [
        "--resume",
        "--resume=auto",
        "--resume=out/state.000010.ckpt",
    ] {
        refused(
            &place,
            &format!("{RUN} out --overwrite {both}"),
            2,
            &["--overwrite", "--resume"],
        );
    }
}

#[test]
fn overwriting_removes_what_the_run_lists_and_nothing_else() {
    let place = Place::new();
    let pictures = "run small.toml --quiet --ranks 1 --out out";
    hash_of(&place.weft(&format!("{pictures} --trace=1..3")));
    place.weft("report out --text");
    place.weft("report out");
    let mine = [
        "out/notes.txt",
        "out/frames/mine.vtp",
        "out/frames/cloth.999999.vtp",
        "out/pictures/000005.png",
        "out/trace/rank-00007.bin",
        "out/A.mtx",
        "out/state.000003.ckpt",
    ];
    for name in mine {
        fs::write(place.path(name), "mine").unwrap();
    }
    let hash = hash_of(&place.weft(&format!("{RUN} out --overwrite --steps 10")));
    for name in mine {
        assert_eq!(fs::read(place.path(name)).unwrap(), b"mine", "{name}");
    }
    let frames = place.names("out/frames");
    assert!(
        frames.contains("cloth.000010.vtp") && !frames.contains("cloth.000020.vtp"),
        "{frames:?}"
    );
    assert_eq!(place.names("out/pictures").len(), 1);
    assert_eq!(place.names("out/trace").len(), 1);
    for gone in ["out/trace.json", "out/report.html", "out/state.000040.ckpt"] {
        assert!(!place.path(gone).exists(), "{gone}");
    }
    // It is a run as in any other directory, and so is the next.
    assert_eq!(record(&place.path("out"))["result"]["hash"], hash.as_str());
    assert_eq!(history(&place.path("out")).len(), 11);
    assert_eq!(
        hash_of(&place.weft(&format!("{RUN} out --overwrite --steps 10"))),
        hash
    );
    hash_of(&place.weft(&format!("{RUN} new --overwrite --steps 1")));
    // A run that would have to write over a stranger's file does not.
    let (code, message) = place
        .fails("run small.toml --quiet --ranks 1 --out out --overwrite --set output.interval=20ms");
    assert_eq!(code, 5, "{message}");
    assert!(message.contains("000005.png is in the way"), "{message}");
    assert_eq!(
        fs::read(place.path("out/pictures/000005.png")).unwrap(),
        b"mine"
    );
}

#[test]
fn a_list_that_cannot_be_trusted_removes_nothing() {
    let place = Place::new();
    fs::write(place.path("thesis.vtp"), "years").unwrap();
    hash_of(&place.weft(&format!("{RUN} out --steps 3")));
    let list = place.path("out/run.files");
    let whole = fs::read_to_string(&list).unwrap();
    let absolute = place.path("thesis.vtp").to_str().unwrap().to_owned();
    fs::create_dir(place.path("out/frames/folder.vtp")).unwrap();
    fs::write(place.path("out/frames/folder.vtp/mine"), "years").unwrap();
    for (name, word) in [
        ("frames/../../thesis.vtp", "run.files"),
        ("../thesis.vtp", "run.files"),
        (&*absolute, "run.files"),
        ("frames", "run.files"),
        ("notes.txt", "run.files"),
        ("frames/folder.vtp", "folder.vtp: it is a directory"),
    ] {
        fs::write(&list, format!("{whole}file {name}\n")).unwrap();
        refused(&place, &format!("{RUN} out --overwrite"), 5, &[word]);
    }
    // A program that kept none: what to do is said, and the run can still be gone on with.
    fs::remove_file(&list).unwrap();
    let old = ["earlier weft", "remove the directory"];
    refused(&place, &format!("{RUN} out --overwrite"), 5, &old);
    refused(
        &place,
        &format!("{RUN} out"),
        5,
        &["--resume", "run.files", old[0], old[1]],
    );
    let output = place.weft(&format!("{RUN} out --resume --steps 5"));
    hash_of(&output);
    assert!(
        message(&output).contains("had no list of its files"),
        "{}",
        message(&output)
    );
    fs::remove_dir_all(place.path("out/frames/folder.vtp")).unwrap();
    hash_of(&place.weft(&format!("{RUN} out --overwrite --steps 3")));
}

#[cfg(unix)]
#[test]
fn no_link_is_followed() {
    use std::os::unix::fs::symlink;

    let place = Place::new();
    hash_of(&place.weft(&format!("{RUN} out --steps 3")));
    fs::rename(place.path("out/frames"), place.path("elsewhere")).unwrap();
    symlink("../elsewhere", place.path("out/frames")).unwrap();
    for options in [
        "--overwrite",
        "--resume --steps 5",
        "--resume=auto --steps 5",
    ] {
        refused(
            &place,
            &format!("{RUN} out {options}"),
            5,
            &["out/frames: it is a link"],
        );
    }
    refused(&place, "audit out", 5, &["out/frames: it is a link"]);
    fs::remove_file(place.path("out/frames")).unwrap();
    for name in ["history.csv", "run.lock", "run.files", "run.json"] {
        let path = place.path("out").join(name);
        let kept = place.path("kept");
        fs::rename(&path, &kept).unwrap();
        symlink("../kept", &path).unwrap();
        let arguments = |options: &str| format!("{RUN} out {options}");
        let words = [name, "it is a link"];
        refused(&place, &arguments("--overwrite"), 5, &words);
        if name == "run.json" {
            // It is not needed, and written anew in the place of the link.
            let before = fs::read(&kept).unwrap();
            hash_of(&place.weft(&arguments("--resume --steps 5")));
            assert!(!path.is_symlink());
            assert_eq!(fs::read(&kept).unwrap(), before);
        } else {
            refused(&place, &arguments("--resume --steps 5"), 5, &words);
            fs::remove_file(&path).unwrap();
            fs::rename(&kept, &path).unwrap();
        }
    }
    // The directory itself may be one: it is what was named.
    symlink("out", place.path("link")).unwrap();
    hash_of(&place.weft(&format!("{RUN} link --overwrite --steps 3")));
    assert!(place.path("link").is_symlink());
    // Pages that somebody names go where a link leads, those beside a run do not.
    symlink("../kept.html", place.path("out/report.html")).unwrap();
    fs::write(place.path("kept.html"), "mine").unwrap();
    refused(&place, "report out", 5, &["report.html is a link", "--out"]);
    assert!(
        place
            .weft("report out --out out/report.html")
            .status
            .success()
    );
    assert!(
        fs::read(place.path("kept.html"))
            .unwrap()
            .starts_with(b"<!")
    );
}

#[test]
fn a_second_run_is_refused_while_the_first_goes_on_and_not_when_it_was_killed() {
    let place = Place::new();
    let long = format!("{OFTEN} out --until 3600 --set output.frames=false");
    let mut first = start(&place, &long);
    wait_for(&mut first, || !checkpoints(&place.path("out")).is_empty());
    let named = format!("process {} on host ", first.id());
    for second in [
        format!("{RUN} out"),
        format!("{RUN} out --overwrite"),
        format!("{RUN} out --resume --set output.frames=false"),
        format!("{RUN} out --resume=auto --set output.frames=false"),
        "audit out".to_owned(),
    ] {
        let (code, message) = place.fails(&second);
        assert_eq!(code, 5, "{second}: {message}");
        assert!(
            message.contains("at work in out") && message.contains(&named),
            "{second}: {message}"
        );
    }
    // A look at it is not in its way.
    assert!(place.weft("report out").status.success());
    assert_eq!(first.try_wait().unwrap(), None);
    kill(first);
    let last = checkpoints(&place.path("out")).pop().unwrap();
    let to = last + 3;
    let resumed = format!("{RUN} out --resume --steps {to} --set output.frames=false");
    hash_of(&place.weft(&resumed));
    assert_eq!(record(&place.path("out"))["result"]["steps"], to);
}

/// Whichever is first, it ends with all that it promises, and the other is refused.
#[test]
fn one_of_two_runs_at_once_in_a_directory_is_refused() {
    let place = Place::new();
    for repeat in 0..20 {
        let arguments = format!("{RUN} out{repeat} --steps 8");
        let children = [(); 2].map(|()| {
            let mut command = place.command(&arguments);
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
            command.spawn().unwrap()
        });
        let outputs = children.map(|child| child.wait_with_output().unwrap());
        let (done, other) = match outputs {
            [a, b] if a.status.success() => (a, b),
            [a, b] => (b, a),
        };
        let hash = hash_of(&done);
        assert_eq!(other.status.code(), Some(5), "{}", message(&other));
        let said = message(&other);
        assert!(
            said.contains("another run is at work") || said.contains("holds a run"),
            "{said}"
        );
        let out = place.path(&format!("out{repeat}"));
        assert_eq!(record(&out)["result"]["hash"], hash.as_str());
        assert_eq!(record(&out)["exit"], 0);
        assert_eq!(history(&out).len(), 9);
        assert_eq!(checkpoints(&out), [8]);
        assert!(out.join("frames/cloth.000008.vtp").exists());
    }
}

#[test]
fn auto_goes_on_if_there_is_something_to_go_on_from_and_else_starts() {
    let place = Place::new();
    let auto = format!("{RUN} out --resume=auto");
    let whole = hash_of(&place.weft(&format!("{RUN} whole")));
    assert_ne!(hash_of(&place.weft(&format!("{auto} --steps 12"))), whole);
    assert_eq!(
        record(&place.path("out"))["resumed_from"],
        serde_json::Value::Null
    );
    for _ in 0..2 {
        assert_eq!(hash_of(&place.weft(&auto)), whole);
    }
    assert_eq!(record(&place.path("out"))["resumed_from"], 40);
    assert_eq!(history(&place.path("out")), history(&place.path("whole")));
    // Also on several ranks that do not know it, and with an empty directory.
    fs::create_dir(place.path("empty")).unwrap();
    let ranks =
        "run small.toml --quiet --ranks 3 --set output.pictures=false --resume=auto --out empty";
    assert_eq!(hash_of(&place.weft(ranks)), whole);
    assert_eq!(hash_of(&place.weft(ranks)), whole);

    // One that was killed before its first checkpoint starts anew, in its own directory only.
    let killed =
        "run small.toml --quiet --ranks 1 --until 3600 --out short --set output.pictures=false";
    let mut child = start(&place, killed);
    let rows = || {
        fs::read_to_string(place.path("short/history.csv")).map_or(0, |text| text.lines().count())
    };
    wait_for(&mut child, || rows() > 3);
    kill(child);
    assert!(checkpoints(&place.path("short")).is_empty());
    let short = format!("{RUN} short --resume=auto");
    let other = "--set time.step=5ms";
    refused(
        &place,
        &format!("{short} {other}"),
        5,
        &["short holds a run", "--overwrite"],
    );
    fs::write(place.path("short/mine.txt"), "mine").unwrap();
    assert_eq!(hash_of(&place.weft(&short)), whole);
    assert_eq!(history(&place.path("short")), history(&place.path("whole")));
    assert!(place.path("short/mine.txt").exists());
    // A run that came to its end and left no checkpoint is not taken for such a one.
    let done = format!("{RUN} done --steps 3 --set output.checkpoints=false");
    hash_of(&place.weft(&done));
    refused(
        &place,
        &format!("{done} --resume=auto"),
        5,
        &["done holds a run", "3 steps"],
    );
    // Nor is a state of another scene gone on from, or a stranger's directory taken.
    refused(&place, &format!("{auto} {other}"), 3, &["another scene"]);
    fs::create_dir(place.path("mine")).unwrap();
    fs::write(place.path("mine/letter.txt"), "dear").unwrap();
    refused(
        &place,
        &format!("{RUN} mine --resume=auto"),
        5,
        &["mine is not empty"],
    );
}

#[test]
fn refusals_of_ranks_and_of_directories_without_a_run_say_what_to_do() {
    let place = Place::new();
    fs::create_dir(place.path("empty")).unwrap();
    let no_run = [
        "empty",
        "name the directory that `weft run --out` was given",
    ];
    for command in [
        "view empty",
        "audit empty",
        "report empty",
        "compare empty empty",
        "export empty --format usd --out film",
    ] {
        refused(&place, command, 5, &no_run);
    }
    for command in ["run small.toml --ranks 0", "certify small.toml --ranks 0"] {
        refused(&place, command, 2, &["'0'", "a whole number from 1 on"]);
    }
    refused(
        &place,
        "run small.toml --out many --ranks 1000",
        3,
        &["run at most", "partition.patches"],
    );
    assert!(!place.path("many").exists());
    // A run that left no checkpoint can only be replaced.
    let run = format!("{RUN} out --steps 2 --set output.checkpoints=false");
    hash_of(&place.weft(&run));
    refused(
        &place,
        &format!("{run} --resume"),
        5,
        &["--overwrite in place of --resume"],
    );
    hash_of(&place.weft(&format!("{run} --overwrite")));
}

#[cfg(unix)]
#[test]
fn a_full_disk_and_a_directory_that_cannot_be_written_end_with_5() {
    let place = Place::new();
    // No file may be longer than some blocks, as if the disk were full then.
    let limited = |blocks: u32, arguments: &str| {
        let weft = env!("CARGO_BIN_EXE_weft");
        let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec {weft} {arguments}");
        let mut command = Command::new("sh");
        let output = command
            .args(["-c", &script])
            .current_dir(place.path("."))
            .output()
            .unwrap();
        (output.status.code(), message(&output))
    };
    let (code, message) = limited(0, &format!("{RUN} out"));
    assert_eq!(code, Some(5), "{message}");
    assert!(message.contains("cannot write out/run."), "{message}");
    assert!(message.contains("make room there"), "{message}");
    assert!(!place.path("out/run.json").exists());
    // It is as good as empty.
    hash_of(&place.weft(&format!("{RUN} out --steps 1")));
    let (code, message) = limited(16, &format!("{RUN} small"));
    assert_eq!(code, Some(5), "{message}");
    let record = record(&place.path("small"));
    assert_eq!(record["exit"], 5, "{record}");
    let left = contents(&place.path("small"));
    assert!(
        !left
            .keys()
            .any(|path| path.to_string_lossy().contains("partial")),
        "{left:?}"
    );
    #[cfg(target_os = "linux")]
    refused(
        &place,
        &format!("{RUN} /proc/weft-run"),
        5,
        &["/proc/weft-run"],
    );
}

#[test]
fn records_and_checkpoints_say_which_build_wrote_them_and_what_the_history_was() {
    let place = Place::new();
    hash_of(&place.weft(&format!("{RUN} out --steps 5")));
    let record = record(&place.path("out"));
    let executable = Sha256::digest(fs::read(env!("CARGO_BIN_EXE_weft")).unwrap());
    let hex = |bytes: &[u8]| {
        bytes
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect::<String>()
    };
    assert_eq!(record["program"]["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(record["program"]["executable"], hex(&executable));
    let text = fs::read(place.path("out/history.csv")).unwrap();
    let mark =
        serde_json::json!({"bytes": text.len(), "sha256": hex(&Sha256::digest(&text)), "after": 0});
    assert_eq!(record["history"], mark);
    let checkpoint = fs::read(place.path("out/state.000005.ckpt")).unwrap();
    let length = u32::from_le_bytes(checkpoint[12..16].try_into().unwrap()) as usize;
    let header: serde_json::Value = serde_json::from_slice(&checkpoint[16..16 + length]).unwrap();
    assert_eq!(header["history"], mark);
    assert_eq!(header["executable"], record["program"]["executable"]);
    assert_eq!(header["commit"], record["program"]["commit"]);
}

#[test]
fn a_history_that_was_damaged_is_put_right_or_told_of() {
    let place = Place::new();
    let whole = hash_of(&place.weft(&format!("{RUN} whole --steps 12")));
    hash_of(&place.weft(&format!("{RUN} out --steps 8")));
    let out = place.path("out");
    let kept = contents(&out);
    let put_back = |kept: &BTreeMap<PathBuf, Vec<u8>>| {
        for path in contents(&out)
            .keys()
            .filter(|path| !kept.contains_key(*path))
        {
            fs::remove_file(path).unwrap();
        }
        for (path, bytes) in kept {
            fs::write(path, bytes).unwrap();
        }
    };
    let text = fs::read_to_string(out.join("history.csv")).unwrap();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let doubled: String = lines[..1]
        .iter()
        .chain(lines[1..].iter().flat_map(|line| [line, line]))
        .copied()
        .collect();
    let longer = format!(
        "{text}9,{}\n10,",
        lines[8].split_once(',').unwrap().1.trim_end()
    );
    for (damaged, told) in [
        (Some(longer), None),
        (Some(text.clone() + &text), None),
        (Some(doubled), Some("they were removed")),
        (Some(lines[..6].concat()), Some("lacks steps 6 to 8")),
        (
            Some(text[..text.len() - 9].to_owned()),
            Some("lacks step 8; a line that cannot be read was dropped"),
        ),
        (Some(String::new()), Some("lacks steps 1 to 8")),
        (None, Some("history.csv is missing, and steps 1 to 8")),
    ] {
        put_back(&kept);
        match &damaged {
            Some(text) => fs::write(out.join("history.csv"), text).unwrap(),
            None => fs::remove_file(out.join("history.csv")).unwrap(),
        }
        let output = place.weft(&format!("{RUN} out --resume --steps 12"));
        assert_eq!(hash_of(&output), whole);
        let said = message(&output);
        assert_eq!(
            said.contains("history.csv"),
            told.is_some(),
            "{damaged:?}: {said}"
        );
        assert!(
            said.contains(told.unwrap_or_default()),
            "{damaged:?}: {said}"
        );
        let warnings = record(&out)["warnings"].to_string();
        assert!(warnings.contains(told.unwrap_or_default()), "{warnings}");
        let now = history(&out);
        if told.is_none_or(|told| told == "they were removed") {
            assert_eq!(now, history(&place.path("whole")), "{damaged:?}");
        } else {
            // The earlier lines, and all since.
            assert_eq!(now.last(), history(&place.path("whole")).last());
            assert!(now.len() < 13, "{now:?}");
        }
    }
    // A history of something else is refused, as nothing of it can be kept.
    put_back(&kept);
    fs::write(out.join("history.csv"), "day,weather\n1,rain\n").unwrap();
    refused(
        &place,
        &format!("{RUN} out --resume"),
        5,
        &["history.csv", "columns"],
    );
}

#[test]
fn frames_that_are_gone_are_named() {
    let place = Place::new();
    let whole = hash_of(&place.weft(&format!("{RUN} whole")));
    hash_of(&place.weft(&format!("{RUN} out --steps 25")));
    fs::remove_file(place.path("out/frames/cloth.000010.vtp")).unwrap();
    let output = place.weft(&format!("{RUN} out --resume"));
    assert_eq!(hash_of(&output), whole);
    let said = message(&output);
    assert!(
        said.contains("gone from out: frames/cloth.000010.vtp\n"),
        "{said}"
    );
    let collection = fs::read_to_string(place.path("out/frames.pvd")).unwrap();
    assert!(
        !collection.contains("cloth.000010") && collection.contains("cloth.000020"),
        "{collection}"
    );
    // Nothing is said of frames that are still to come.
    hash_of(&place.weft(&format!("{RUN} part --steps 25")));
    let output = place.weft(&format!("{RUN} part --resume"));
    assert_eq!((hash_of(&output), message(&output)), (whole, String::new()));
}

/// Writes a header's field anew, with a right sum.
fn forge(path: &Path, from: &str, to: &str) {
    assert_eq!(from.len(), to.len());
    let mut bytes = fs::read(path).unwrap();
    let at = bytes
        .windows(from.len())
        .position(|part| part == from.as_bytes())
        .unwrap();
    bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
    // The sum of the head, behind the table of patches.
    let number = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
    let header = number(12);
    let end = 20 + header + 48 * number(16 + header);
    let sum = Sha256::digest(&bytes[..end]);
    bytes[end..end + 32].copy_from_slice(&sum);
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_damaged_checkpoint_gives_way_to_the_older_one_and_a_record_is_not_needed() {
    let place = Place::new();
    let whole = hash_of(&place.weft(&format!("{RUN} whole")));
    let flip = |path: &Path| {
        let mut bytes = fs::read(path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(path, bytes).unwrap();
    };
    let cut = |path: &Path| fs::write(path, "").unwrap();
    let time = |path: &Path| forge(path, "\"time_s\":0.08,", "\"time_s\":0.07,");
    let step = |path: &Path| {
        let other = path.with_file_name("state.000019.ckpt");
        fs::copy(other, path).unwrap();
    };
    for (kind, word) in [
        "its sum is wrong",
        "not a checkpoint",
        "its step 20 and its time 0.07 s",
        "it is of step 19",
    ]
    .into_iter()
    .enumerate()
    {
        hash_of(&place.weft(&format!("{OFTEN} out --overwrite --steps 20")));
        assert_eq!(checkpoints(&place.path("out")), [19, 20]);
        let newest = place.path("out/state.000020.ckpt");
        match kind {
            0 => flip(&newest),
            1 => cut(&newest),
            2 => time(&newest),
            _ => step(&newest),
        }
        fs::remove_file(place.path("out/run.json")).unwrap();
        let output = place.weft(&format!("{RUN} out --resume"));
        let said = message(&output);
        assert_eq!(hash_of(&output), whole, "{said}");
        for word in [
            word,
            "state.000020.ckpt is damaged",
            "goes on from out/state.000019.ckpt instead",
        ] {
            assert!(said.contains(word), "no {word:?} in {said}");
        }
        assert_eq!(record(&place.path("out"))["resumed_from"], 19);
        assert_eq!(history(&place.path("out")), history(&place.path("whole")));
    }
    // By its name it is refused, and so it is if there is no other.
    for steps in [20, 19] {
        hash_of(&place.weft(&format!("{RUN} bad --overwrite --steps {steps}")));
    }
    forge(
        &place.path("bad/state.000019.ckpt"),
        "\"step\":19,",
        "\"step\":91,",
    );
    let words = ["bad/state.000019.ckpt", "its step 91 and its time 0.076 s"];
    refused(
        &place,
        &format!("{RUN} bad --resume=bad/state.000019.ckpt"),
        5,
        &words,
    );
    refused(&place, &format!("{RUN} bad --resume"), 5, &words);
    refused(&place, &format!("{RUN} bad --resume=auto"), 5, &words);
}

/// A byte more at its end, and it is another build: it runs as the one that was tested.
#[cfg(target_os = "linux")]
#[test]
fn another_build_is_told_with_both() {
    let place = Place::new();
    let mut bytes = fs::read(env!("CARGO_BIN_EXE_weft")).unwrap();
    bytes.push(0);
    let sums = [&bytes[..bytes.len() - 1], &bytes].map(|bytes| {
        let sum = Sha256::digest(bytes);
        sum[..6]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect::<String>()
    });
    let other = place.path("other-weft");
    fs::copy(env!("CARGO_BIN_EXE_weft"), &other).unwrap();
    fs::write(&other, &bytes).unwrap();
    hash_of(&place.weft(&format!("{RUN} out --steps 3")));
    let arguments = format!("{RUN} out --resume --steps 5");
    let output = Command::new(&other)
        .args(arguments.split_whitespace())
        .current_dir(place.path("."))
        .output()
        .unwrap();
    hash_of(&output);
    let said = message(&output);
    let [there, here] =
        sums.map(|sum| format!("weft {}, executable {sum}", env!("CARGO_PKG_VERSION")));
    for word in [
        "another build",
        &format!("there {there}"),
        &format!("here {here}"),
    ] {
        assert!(said.contains(word), "no {word:?} in {said}");
    }
    assert!(
        record(&place.path("out"))["warnings"]
            .to_string()
            .contains("another build")
    );
    // Its own it goes on with, without a word.
    let again = format!("{RUN} own --resume=auto");
    hash_of(&place.weft(&format!("{again} --steps 3")));
    let output = place.weft(&format!("{again} --steps 5"));
    hash_of(&output);
    assert_eq!(message(&output), "");
}

/// A generator of numbers that only has to differ from step to step and be the same in each test.
struct Random(u64);

impl Random {
    fn below(&mut self, most: u64) -> u64 {
        // Constants of Knuth's MMIX.
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

/// Killed sixty times, before and amid its steps and writes, on other ranks each time: at the end
/// nothing tells of it.
#[test]
fn a_run_that_is_killed_over_and_over_ends_as_one_that_was_not() {
    const KILLS: u32 = 60;
    let place = Place::new();
    let often = "--set output.checkpoint_interval=0 --set output.interval=12ms --resume=auto";
    let common = format!("run small.toml --quiet --set output.pictures=false --out out {often}");
    let newest = || checkpoints(&place.path("out")).pop().unwrap_or(0);
    let mut random = Random(2006);
    let mut at_work = 0;
    for _ in 0..KILLS {
        let ranks = 1 + random.below(3);
        let began = newest();
        let mut child = start(&place, &format!("{common} --until 3600 --ranks {ranks}"));
        // This many steps, and then as many looks: within the next one, or within what is written
        // after it.
        let more = random.below(3);
        for _ in 0..2000 {
            if newest() >= began + more {
                break;
            }
            assert_eq!(
                child.try_wait().unwrap(),
                None,
                "it ended before it was killed"
            );
            wait();
        }
        for _ in 0..random.below(400) {
            newest();
        }
        at_work += u32::from(newest() > began);
        kill(child);
    }
    assert!(
        at_work > KILLS / 4,
        "only {at_work} were killed after steps"
    );
    let to = newest() + 4;
    let resumed = hash_of(&place.weft(&format!("{common} --steps {to} --ranks 2")));
    let whole = common
        .replace("--out out", "--out whole")
        .replace("--resume=auto", "");
    assert_eq!(
        hash_of(&place.weft(&format!("{whole} --steps {to} --ranks 1"))),
        resumed
    );
    assert_eq!(history(&place.path("out")), history(&place.path("whole")));
    let collection = |run: &str| fs::read_to_string(place.path(run).join("frames.pvd")).unwrap();
    assert_eq!(collection("out"), collection("whole"));
    let left = contents(&place.path("out"));
    assert!(
        !left
            .keys()
            .any(|path| path.to_string_lossy().contains("partial")),
        "{left:?}"
    );
}
