//! Tests with input from outside that is hostile or damaged, arguments and files, and of what is
//! said about it on a terminal.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::process::{Command, Output};

use super::place::{Place, SCENE, hash_of, record};

const GRID: &str = "grid = { size = \"0.3 m\", vertices = 12 }\ncenter = [0.03, 0.02, 0.165]";

/// A scene whose cloth is in a file, beside it.
fn with_mesh(name: &str, bytes: &[u8]) -> Place {
    let mesh = format!("mesh = \"{name}\"");
    let place = Place::with(
        &SCENE
            .replace(GRID, &mesh)
            .replace("patches = 8", "patches = 1"),
    );
    fs::write(place.path(name), bytes).unwrap();
    place
}

/// Nothing in it moves a cursor, turns the direction of writing or is not seen.
#[track_caller]
pub(crate) fn acts_on_nothing(bytes: &[u8]) -> &str {
    let text = std::str::from_utf8(bytes).unwrap();
    let acts = |c: char| {
        (c.is_control() && c != '\n')
            || matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
            || matches!(c, '\u{2060}'..='\u{206f}' | '\u{feff}')
    };
    assert_eq!(text.find(acts), None, "{text:?}");
    text
}

/// A refusal: its exit code, one message that begins a line, and nothing that acts on a terminal.
#[track_caller]
fn refused(output: &Output, code: i32, words: &[&str]) -> String {
    let message = acts_on_nothing(&output.stderr).to_owned();
    assert_eq!(output.status.code(), Some(code), "{message}");
    let errors = message.lines().filter(|line| line.starts_with("error: "));
    assert_eq!(errors.count(), 1, "{message}");
    assert!(output.stdout.is_empty(), "{message}");
    for word in words {
        assert!(message.contains(word), "no {word:?} in: {message}");
    }
    message
}

/// Bytes that are no UTF-8, characters that act on terminals, dashes and quotes in names: each file
/// opens, and the record is JSON.
#[test]
fn arguments_of_any_bytes_are_taken_and_never_panic() {
    let place = Place::new();
    let none = place.names(".");
    let names: [&[u8]; 4] = [
        b"\xff\xfescene.toml",
        b"a \x1b[2J\n'b'.toml",
        "\u{202e}lmot.toml".as_bytes(),
        b"-x.toml",
    ];
    for (number, name) in names.into_iter().enumerate() {
        let name = OsStr::from_bytes(name);
        let out = OsStr::from_bytes(b"out \xff\x1b[31m");
        fs::copy(
            place.path("small.toml"),
            place.path("x").with_file_name(name),
        )
        .unwrap();
        let mut run = place.command("run --quiet --steps 1 --ranks 2 --out");
        let output = run.arg(out).arg("--").arg(name).output().unwrap();
        acts_on_nothing(&output.stderr);
        hash_of(&output);
        let out = place.path("x").with_file_name(out);
        let record = record(&out);
        let words = record["command"].as_array().unwrap();
        let last = words.last().unwrap().as_str().unwrap();
        assert_eq!(last, name.to_string_lossy(), "{number}");

        let output = place.command("report").arg(&out).output().unwrap();
        let text = acts_on_nothing(&output.stdout);
        assert!(text.contains("out \\xff\\u{1b}[31m"), "{text}");
        let page = fs::read(out.join("report.html")).unwrap();
        assert!(!page.contains(&0x1b) && !String::from_utf8(page).unwrap().contains('\u{202e}'));
        fs::remove_dir_all(&out).unwrap();
    }
    let nowhere = OsStr::from_bytes(b"no\xffwhere\x1b[2J\nerror: x");
    for (arguments, code) in [
        ("run", 3),
        ("check", 3),
        ("partition", 3),
        ("system", 3),
        ("study", 3),
        ("scenes", 5),
        ("audit", 5),
        ("report", 5),
        ("compare small.toml", 5),
        ("run small.toml --comm", 2),
        ("run small.toml --set", 2),
        ("run small.toml --policy", 2),
        ("run small.toml --ranks", 2),
        ("run small.toml", 2),
        ("study small.toml --ranks", 2),
        ("study small.toml --launch", 2),
        ("", 2),
    ] {
        let output = place.command(arguments).arg(nowhere).output().unwrap();
        refused(&output, code, &[]);
    }
    // The file as text, where bytes that are none are refused at once.
    let hostile = "no\u{202e}where\u{1b}[2J\nerror: x";
    for (arguments, code) in [
        ("run small.toml --comm", 2),
        ("run small.toml --policy", 2),
        ("run small.toml --ranks", 2),
        ("run small.toml --until", 2),
        ("run small.toml --max-hours", 2),
        ("run small.toml --trace=", 2),
        ("run small.toml --set time.step=", 3),
        ("run small.toml --set contact.culling=", 3),
        ("run small.toml --set cloth.name=", 3),
        ("run small.toml --set cloth.mesh=", 3),
        ("run small.toml --set cloth.9.", 2),
        ("study small.toml --ranks", 2),
        ("study small.toml --policy", 2),
        ("study small.toml --policy=static+steal=", 2),
        ("study small.toml --network", 2),
        ("study small.toml --set balance.", 2),
        ("compare a b --tolerance", 2),
        ("", 2),
    ] {
        let (before, joined) = match arguments.ends_with(['=', '.']) {
            true => arguments.rsplit_once(' ').unwrap(),
            false => (arguments, ""),
        };
        let mut command = place.command(before);
        let output = command.arg(format!("{joined}{hostile}")).output();
        refused(&output.unwrap(), code, &[]);
    }
    let mut after: Vec<_> = place.names_of_bytes(".");
    after.retain(|name| !names.contains(&name.as_bytes()));
    assert_eq!(after.len(), none.len(), "{after:?}");
}

#[test]
fn a_name_that_deceives_is_shown_as_what_it_is_wherever_it_stands() {
    let place = Place::with(&SCENE.replace("\"small\"", "\"a\u{202e}b\u{200b}c\u{2028}d\""));
    let shown = "a\\u{202e}b\\u{200b}c\\u{2028}d";
    let run = place.weft("run small.toml --steps 1 --out out");
    assert!(acts_on_nothing(&run.stdout).contains(shown));
    fs::write(place.path("x\n\u{1b}[1m.toml"), "title = 1").unwrap();
    let list = place.weft("scenes .");
    let text = acts_on_nothing(&list.stdout);
    assert!(text.contains(shown), "{text}");
    assert!(
        text.contains("x\\n\\u{1b}[1m.toml  ") && text.contains("(not valid"),
        "{text}"
    );
    // The text that is printed as a scene is that scene again.
    let check = place.weft("check small.toml");
    fs::write(place.path("again.toml"), acts_on_nothing(&check.stdout)).unwrap();
    let again = place.weft("check again.toml");
    assert_eq!(check.stdout, again.stdout);
    assert!(again.status.success());
    let keys = "\"\\u001b]0;x\\u0007\" = 1\n\"a\u{202e}\" = 2\n[time]\nstep = \"\u{9b}1 s\"\n";
    fs::write(place.path("keys.toml"), keys).unwrap();
    refused(
        &place.weft("check keys.toml"),
        3,
        &["\\u{1b}]0;x\\u{7}", "a\\u{202e}", "\\u{9b}1"],
    );
    // A record that says such things.
    let path = place.path("out/run.json");
    let text = fs::read_to_string(&path).unwrap();
    let hostile = "\\u001b[2J\\u202e\\nwarning: forged";
    let text = text
        .replace("\"name\": \"small\"", &format!("\"name\": \"{hostile}\""))
        .replace(
            "\"warnings\": []",
            &format!("\"warnings\": [\"{hostile}\"]"),
        )
        .replace("\"error\": null", &format!("\"error\": \"{hostile}\""));
    fs::write(&path, text).unwrap();
    let report = place.weft("report out");
    assert!(report.status.success());
    let text = acts_on_nothing(&report.stdout);
    assert!(
        text.contains("\\u{1b}[2J\\u{202e}\\nwarning: forged"),
        "{text}"
    );
    assert!(
        !text.lines().any(|line| line == "warning: forged"),
        "{text}"
    );
    let page = fs::read_to_string(place.path("out/report.html")).unwrap();
    assert!(!page.contains(['\u{1b}', '\u{202e}']));
}

/// A shell that is given what a report suggests runs the same scene.
#[test]
fn a_command_that_a_report_suggests_does_what_it_says() {
    let place = Place::new();
    let scene = "-it's a\n$HOME \u{1b}[2J.toml";
    fs::rename(place.path("small.toml"), place.path(scene)).unwrap();
    let mut run = place.command("run --quiet --steps 20 --ranks 2 --set title=\"`a`$b\" --out");
    let output = run.args(["runs of 'mine'/", "--", scene]).output().unwrap();
    hash_of(&output);
    let report = place
        .command("report --text")
        .arg("runs of 'mine'")
        .output();
    let text = String::from_utf8(report.unwrap().stdout).unwrap();
    let mut told = text
        .lines()
        .skip_while(|line| !line.contains("Trace some steps"));
    let command = told.nth(1).unwrap().trim();
    let shell = format!("weft() {{ \"$WEFT\" \"$@\"; }}; {command}");
    let output = Command::new("sh")
        .args(["-c", &shell])
        .env("WEFT", env!("CARGO_BIN_EXE_weft"))
        .current_dir(place.path("."))
        .output()
        .unwrap();
    assert!(output.status.success(), "{command}: {output:?}");
    let again = record(&place.path("runs of 'mine'-traced"));
    assert_eq!(again["command"].as_array().unwrap().last().unwrap(), scene);
    assert_eq!(again["machine"]["ranks"], 2);
    assert_eq!(again["trace"]["last_step"], 20);
}

/// A pipe without a writer would be waited for, for ever; of a device there may be no end.
#[test]
fn paths_that_are_no_regular_file_are_refused_wherever_a_file_is_read() {
    let place = Place::new();
    let made = Command::new("mkfifo").arg(place.path("pipe")).status();
    assert!(made.unwrap().success());
    hash_of(&place.weft("run small.toml --quiet --steps 10 --ranks 2 --trace --out out"));
    let mesh = |name: &str| SCENE.replace(GRID, &format!("mesh = \"{name}\""));
    for (name, target) in [
        ("pipe.obj", "pipe"),
        ("zero.ply", "/dev/zero"),
        ("stdin.stl", "/dev/stdin"),
    ] {
        symlink(target, place.path(name)).unwrap();
        fs::write(place.path(name).with_extension("toml"), mesh(name)).unwrap();
    }
    symlink("pipe", place.path("state.ckpt")).unwrap();
    symlink("pipe", place.path("x.weftrec")).unwrap();
    let (pipe, device) = (
        "it is a pipe, not a regular file",
        "it is a device, not a regular file",
    );
    for (arguments, code, words) in [
        ("run pipe", 3, pipe),
        ("check /dev/zero", 3, device),
        ("check pipe.toml", 3, pipe),
        ("check zero.toml", 3, device),
        (
            "run small.toml --quiet --resume=state.ckpt --out new",
            5,
            pipe,
        ),
        ("partition small.toml --state state.ckpt", 5, pipe),
        ("system small.toml --state /dev/zero --out new", 5, device),
        ("study x.weftrec", 5, pipe),
        ("check .", 3, "it is a directory"),
    ] {
        let message = refused(&place.weft(arguments), code, &[words]);
        if words != "it is a directory" {
            assert!(
                message.contains("write what it gives to a file"),
                "{message}"
            );
        }
    }
    // The files of `<(...)` in a shell, and standard input.
    for scene in ["<(cat small.toml)", "/dev/stdin"] {
        let shell = format!("cat small.toml | \"$0\" check {scene}");
        let output = Command::new("bash")
            .args(["-c", &shell, env!("CARGO_BIN_EXE_weft")])
            .current_dir(place.path("."))
            .output()
            .unwrap();
        refused(&output, 3, &[pipe]);
    }
    // Files of a run, each in its turn.
    for (file, commands) in [
        (
            "run.json",
            &["report out", "compare out out", "audit out"][..],
        ),
        ("history.csv", &["report out", "compare out out"]),
        ("trace/rank-00001.bin", &["report out"]),
        ("frames/cloth.000010.vtp", &["compare out out", "audit out"]),
    ] {
        let path = place.path("out").join(file);
        let bytes = fs::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        symlink(place.path("pipe"), &path).unwrap();
        for arguments in commands {
            refused(&place.weft(arguments), 5, &[pipe, file]);
        }
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        for arguments in commands {
            refused(&place.weft(arguments), 5, &["it is a directory", file]);
        }
        fs::remove_dir(&path).unwrap();
        fs::write(&path, bytes).unwrap();
    }
    assert!(place.weft("report out").status.success());
    assert!(!place.path("new").exists());
}

/// Each with its line or byte, by the command.
#[test]
fn faults_of_meshes_are_named_with_line_or_byte() {
    let ply = |format: &str| {
        format!(
            "ply\nformat {format} 1.0\nelement vertex 3\nproperty float x\nproperty float y\nproperty float z\n\
             element face 1\nproperty list uchar int vertex_indices\nend_header\n"
        )
    };
    let mut binary = ply("binary_little_endian").into_bytes();
    let body = binary.len();
    for x in [0_f32, 0.0, 0.0, 1.0, f32::INFINITY, 0.0, 0.0, 1.0, 0.0] {
        binary.extend(x.to_le_bytes());
    }
    binary.extend([3, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0]);
    let byte = format!("m.ply, byte {}: vertex 1: a coordinate is inf", body + 16);
    let facet = "facet normal 0 0 1\nouter loop\nvertex 0 0 0\nvertex 1 0 0\nvertex 0 1e40 0\nendloop\nendfacet\n";
    let mut stl = vec![0; 84];
    stl[80] = 2;
    stl.extend([0; 50]);
    let quad = "v 0 0 0\nv 1 0 0\nv 1 nan 0\nv 0 1 0\nf 1 2 3 4\n";
    for (name, bytes, words) in [
        (
            "m.obj",
            quad.as_bytes(),
            "m.obj:3: `nan` is no finite number",
        ),
        (
            "m.obj",
            b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 \\\n9\n",
            "m.obj:4: `9` names no vertex",
        ),
        (
            "m.obj",
            b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 2\n",
            "m.obj:4: a face that has vertex `2` twice",
        ),
        (
            "m.ply",
            (ply("ascii") + "0 0 0\n1 -inf 0\n0 1 0\n3 0 1 2\n").as_bytes(),
            "m.ply:11: vertex 1: `-inf` is no finite",
        ),
        (
            "m.ply",
            (ply("ascii") + "0 0 0\n1 0 0\n0 1 0\n3 0 1 3\n").as_bytes(),
            "m.ply:13: face 0: it names vertex 3",
        ),
        ("m.ply", &binary, &byte),
        (
            "m.stl",
            format!("solid\n{facet}endsolid\n").as_bytes(),
            "m.stl:6: `1e40` is no finite",
        ),
        (
            "m.stl",
            &stl,
            "m.stl, byte 80: it says that it has 2 triangles",
        ),
        ("m.obj", b"", "m.obj: it is no OBJ"),
        ("m.ply", b"", "it is empty"),
        ("m.stl", b"", "it is empty"),
        (
            "m.obj",
            b"v 0 0 \x1b[2J\n",
            "m.obj:1: `\\u{1b}[2J` is no number",
        ),
    ] {
        let place = with_mesh(name, bytes);
        refused(&place.weft("check small.toml"), 3, &[words]);
        refused(&place.weft("run small.toml --out out"), 3, &[words]);
        assert!(!place.path("out").exists());
    }
    // As the book of the format has it.
    let good = "v 0 0 1\nv 1 0 1 # a corner\nv 1 1 1\nv 0 1 1\nf 1 2 \\\n  3 4 # a square\n";
    let place = with_mesh("m.obj", good.as_bytes());
    assert!(place.weft("check small.toml").status.success());
}

/// Twenty megabytes of what nobody asks for take no more memory than the file: it took 48 times as
/// much.
#[test]
fn unread_parts_of_a_mesh_file_take_no_memory() {
    let rows = 4_000_000;
    let head = format!(
        "ply\nformat binary_little_endian 1.0\nelement other {rows}\nproperty uchar a\nproperty list uchar int b\n\
         element vertex 3\nproperty float x\nproperty float y\nproperty float z\nelement face 1\n\
         property list uchar int vertex_indices\nend_header\n"
    );
    let mut bytes = head.into_bytes();
    for row in 0..rows {
        bytes.extend([7, u8::from(row % 4 > 0)]);
        bytes.extend([1; 4].iter().take(if row % 4 > 0 { 4 } else { 0 }));
    }
    for x in [0_f32, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 1.0, 1.0] {
        bytes.extend(x.to_le_bytes());
    }
    bytes.extend([3, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0]);
    assert!(bytes.len() > 20_000_000);
    let place = with_mesh("m.ply", &bytes);
    // In kB: of address space, which is more than what is used of it.
    let output = Command::new("sh")
        .args([
            "-c",
            "ulimit -v 200000; exec \"$0\" check small.toml",
            env!("CARGO_BIN_EXE_weft"),
        ])
        .current_dir(place.path("."))
        .output()
        .unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{message}");
}

#[test]
fn times_may_be_fractions_in_scenes_and_on_the_command_line() {
    let scene = SCENE.replace("step = \"4 ms\"", "step = \"1/240 s\"");
    let place = Place::with(&scene);
    let run = "run small.toml --quiet --ranks 1 --set output.pictures=false";
    let of_scene = hash_of(&place.weft(&format!("{run} --steps 12 --out a")));
    let steps = |out: &str| record(&place.path(out))["result"]["steps"].clone();
    for (out, option) in [
        ("b", &["--set", "time.step=1/240 s", "--until", "1/20 s"]),
        ("c", &["--set", "time.step=1000/240ms", "--until", "50 ms"]),
        ("d", &["--until", "0.05", "--max-hours", "1/2"]),
        ("e", &["--until", "1/20", "--max-hours", "90 min"]),
    ] {
        let mut command = place.command(&format!("{run} --out {out}"));
        assert_eq!(hash_of(&command.args(option).output().unwrap()), of_scene);
        assert_eq!(steps(out), 12);
    }
    for (option, words) in [
        (["--until", "1/0 s"], "is divided by `0`"),
        (["--until", "2 kg"], "a time is wanted"),
        (["--max-hours", "-1/2"], "above zero"),
        (["--max-hours", "5 m"], "a time is wanted"),
    ] {
        let mut command = place.command("run small.toml --out f");
        let option = [format!("{}={}", option[0], option[1])];
        refused(&command.args(option).output().unwrap(), 2, &[words]);
    }
    let mut check = place.command("check small.toml --set");
    let output = check.arg("time.step=1/0 s").output().unwrap();
    refused(&output, 3, &["time.step", "`1/0 s` is divided by `0`"]);
}

/// A strip whose two halves have a row of vertices each at the seam, with texture coordinates of
/// their own, as programs export them.
const HALVES: &str = "\
v 0 0 0.3\nv 0.1 0 0.3\nv 0 0.1 0.3\nv 0.1 0.1 0.3\n\
v 0.10002 0 0.3\nv 0.2 0 0.3\nv 0.10002 0.1 0.3\nv 0.2 0.1 0.3\n\
vt 0 0\nvt 0.1 0\nvt 0 0.1\nvt 0.1 0.1\nvt 0.5 0\nvt 0.6 0\nvt 0.5 0.1\nvt 0.6 0.1\n\
g left\nf 1/1 2/2 4/4 3/3\ng right\nf 5/5 6/6 8/8 7/7\n";

#[test]
fn a_seam_of_two_rows_is_closed_by_weld_and_exports_have_the_vertices_of_the_file() {
    let mesh = "weld = \"0.1 mm\"\nrest_texture = 1\npins = [{ group = \"left\" }, { vertices = [4, 6] }]\nmesh = \"halves.obj\"";
    let scene = SCENE.replace(GRID, mesh);
    let scene = scene.replace("patches = 8", "patches = 1");
    let place = Place::with(&scene);
    fs::write(place.path("halves.obj"), HALVES).unwrap();
    let output = place.weft("check small.toml");
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.contains("weld = \"0.0001 m\""), "{text}");
    let told = "6 vertices, 4 triangles";
    assert!(text.contains(told), "{text}");
    let told =
        "1 piece, 0 coincident vertices, 2 vertices of its file joined with others by `weld`";
    assert!(text.contains(told), "{text}");
    let run = "run small.toml --quiet --steps 10 --set output.pictures=false";
    let hash = hash_of(&place.weft(&format!("{run} --ranks 1 --out out")));
    assert_eq!(
        hash_of(&place.weft(&format!("{run} --ranks 1 --threads 2 --out two"))),
        hash
    );
    // All eight vertices, those of the seam at one place.
    let exported = place.weft("export out --format obj --out film");
    assert_eq!(exported.status.code(), Some(0));
    let frame = fs::read_to_string(place.path("film/napkin.000000.obj")).unwrap();
    let vertices: Vec<&str> = frame
        .lines()
        .filter(|line| line.starts_with("v "))
        .collect();
    assert_eq!(vertices.len(), 8, "{frame}");
    assert_eq!((vertices[1], vertices[3]), (vertices[4], vertices[6]));
    assert_eq!(frame.matches("vt ").count(), 8);

    for (distance, words) in [
        ("0.2 m", "face 0 has vertices 0 and 1"),
        ("0 m", "weld"),
        ("-1 mm", "weld"),
        ("1e-300 m", "too small"),
    ] {
        fs::write(place.path("small.toml"), scene.replace("0.1 mm", distance)).unwrap();
        let output = place.weft("check small.toml");
        refused(&output, 3, &["weld", words]);
    }
    // A third half on the same seam: one edge of three triangles.
    let third = "v 0.1 0 0.4\nv 0.1 0.1 0.4\nv 0.1 0 0.3\nv 0.1 0.1 0.3\nf 11/1 12/2 10/4 9/3\n";
    fs::write(place.path("halves.obj"), format!("{HALVES}{third}")).unwrap();
    fs::write(place.path("small.toml"), &scene).unwrap();
    let output = place.weft("check small.toml");
    refused(
        &output,
        3,
        &[
            "halves.obj, with vertices nearer than 0.0001 m as one (`weld`)",
            "triangles",
        ],
    );
}
