//! The command as its users meet it: a process with arguments, files, messages and an exit code.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot start a process has failed"
)]

mod audit;
mod book;
mod certify;
mod compare;
mod crossings;
mod deforming;
mod export;
mod failures;
mod house;
mod inputs;
mod memory;
mod mutated;
mod pieces;
mod place;
mod prepare;
mod refine;
mod report;
mod restart;
mod runs;
mod scripts;
mod seams;
mod sizes;
mod study;
mod trace;

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::Value;

use self::place::{Place, SCENE, hash_of, record};

#[test]
fn a_run_leaves_all_it_promises() {
    let place = Place::new();
    let hash = hash_of(&place.weft("run small.toml --ranks 3 --out out"));
    let steps = [0, 10, 20, 30, 40];
    let pictures = steps.map(|s| format!("{s:06}.png"));
    assert_eq!(place.names("out/pictures"), pictures.into());
    let frames: BTreeSet<_> = place.names("out/frames");
    for step in steps {
        assert!(
            frames.contains(&format!("cloth.{step:06}.vtp")),
            "{frames:?}"
        );
    }
    let rows = fs::read_to_string(place.path("out/history.csv")).unwrap();
    assert_eq!(rows.lines().filter(|l| !l.starts_with('#')).count(), 41);
    let collection = fs::read_to_string(place.path("out/frames.pvd")).unwrap();
    assert_eq!(collection.matches("cloth.").count(), 5);
    let record = record(&place.path("out"));
    assert_eq!(record["exit"], 0);
    assert_eq!(record["result"]["hash"], hash.as_str());
    assert_eq!(record["result"]["steps"], 40);
    let solves = &record["solves"];
    let solved: u64 = ["start", "relative", "absolute"]
        .iter()
        .map(|why| solves[why].as_u64().unwrap())
        .sum();
    let header = rows.lines().next().unwrap();
    let systems = header.split(',').position(|name| name == "systems");
    let systems = (rows.lines().skip(1)).map(|l| l.split(',').nth(systems.unwrap()).unwrap());
    let systems: u64 = systems.map(|s| s.parse::<u64>().unwrap()).sum();
    assert!(systems >= 40);
    assert_eq!(solved, systems, "{solves}");
    let stop = header.split(',').position(|name| name == "stop").unwrap();
    let of_steps = (rows.lines().skip(1)).map(|l| l.split(',').nth(stop).unwrap());
    // The column tells of the last system of a step.
    let relative = of_steps.filter(|&stop| stop == "relative").count() as u64;
    let of_all = solves["relative"].as_u64().unwrap();
    let further = systems - 40;
    assert!((relative..=relative + further).contains(&of_all), "{rows}");
    let strain = record["result"]["max_strain"].as_f64().unwrap();
    assert!(strain > 0.0 && strain < 0.15, "{strain}");
    assert_eq!(record["result"]["max_penetration_m"].as_f64(), Some(0.0));
}

#[test]
fn ranks_workers_seeds_and_policies_leave_the_same_hash() {
    let place = Place::new();
    let hash = |options: &str| {
        let options = format!(
            "run small.toml --quiet --out out --overwrite --set output.pictures=false {options}"
        );
        hash_of(&place.weft(&options))
    };
    let first = hash("--ranks 1");
    for options in [
        "--ranks 1 --threads 2",
        "--ranks 2 --seed 5",
        "--ranks 3 --threads 2 --split oldest",
        "--ranks 7 --no-steal",
        "--ranks 8 --seed 6 --split every-other",
        "--comm threads --ranks 1",
        "--comm virtual --ranks 8 --seed 7",
        "--comm virtual --ranks 5 --network hdr-infiniband",
        "--ranks 2 --set contact.culling=none",
    ] {
        assert_eq!(hash(options), first, "{options}");
    }
    assert_ne!(hash("--ranks 2 --steps 39"), first);
}

/// `--policy` means the policy of that name, not the scene's with another name; flags beside it
/// change parts.
#[test]
fn a_policy_on_the_command_line_is_the_one_that_runs() {
    let scene = format!("{SCENE}\n[balance]\nsteal = true\nsplit = \"oldest\"\n");
    let place = Place::with(&scene);
    for (options, policy, steal) in [
        ("--policy static", "static", false),
        ("--policy every-other", "every-other", true),
        ("--policy every-other --split half", "half", true),
        ("--no-steal", "null", false),
    ] {
        let run =
            format!("run small.toml --quiet --ranks 2 --steps 1 --out out --overwrite {options}");
        hash_of(&place.weft(&run));
        let sharing = &record(&place.path("out"))["sharing"];
        let name = sharing["policy"].as_str().unwrap_or("null");
        assert_eq!(
            (name, &sharing["steal"]),
            (policy, &steal.into()),
            "{options}"
        );
    }
}

#[test]
fn a_scene_printed_by_check_is_the_same_scene() {
    let place = Place::new();
    let checked = place.weft("check small.toml --set time.step=2ms");
    assert!(checked.status.success());
    fs::write(place.path("again.toml"), checked.stdout).unwrap();
    let end = "--steps 30 --quiet --ranks 2";
    let first = place.weft(&format!("run small.toml {end} --set time.step=2ms --out a"));
    let second = place.weft(&format!("run again.toml {end} --out b"));
    assert_eq!(hash_of(&first), hash_of(&second));
}

/// Wrong usage is 2, a bad scene 3, bad files 5; each message names the place, and nothing is
/// written.
#[test]
fn bad_input_is_named_and_leaves_nothing_behind() {
    let place = Place::new();
    fs::write(place.path("file"), "").unwrap();
    fs::write(place.path("text.obj"), "v 0 0 zero\n").unwrap();
    let fold = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 -1 0\nv 0 0 1\nf 1 2 3\nf 2 1 4\nf 1 2 5\n";
    fs::write(place.path("fold.obj"), fold).unwrap();
    fs::write(
        place.path("flat.obj"),
        "v 0 0 0\nv 1 0 0\nv 2 0 0\nf 1 2 3\n",
    )
    .unwrap();
    let mesh = |name: &str| {
        SCENE.replace(
            "grid = { size = \"0.3 m\", vertices = 12 }\ncenter = [0.03, 0.02, 0.165]",
            &format!("mesh = \"{name}\""),
        )
    };
    fs::write(place.path("page.obj"), "<html>\n").unwrap();
    for name in ["text", "fold", "flat", "absent", "page"] {
        let scene = mesh(&format!("{name}.obj"));
        fs::write(place.path(&format!("{name}.toml")), scene).unwrap();
    }
    fs::write(place.path("broken.toml"), "[time]\nstep = \n").unwrap();
    fs::write(place.path("bytes.toml"), [0xff, 0xfe, 0x00]).unwrap();
    fs::write(place.path("empty.toml"), "").unwrap();
    let before = place.names(".");

    let cases: &[(&str, i32, &[&str])] = &[
        ("run small.toml --ranks 0", 2, &["ranks", "0"]),
        ("run small.toml --ranks -1", 2, &["-1"]),
        ("run small.toml --threads 0", 2, &["threads", "0"]),
        ("run small.toml --comm solo --ranks 2", 2, &["--ranks"]),
        ("run small.toml --until nan", 2, &["--until"]),
        ("run small.toml --until 0", 2, &["--until 0:", "above zero"]),
        (
            "run small.toml --until=-1",
            2,
            &["--until -1:", "above zero"],
        ),
        (
            "run small.toml --until 0.001",
            2,
            &["--until 0.001:", "0.004 s"],
        ),
        ("run small.toml --until 1e300", 2, &["--until", "10⁹"]),
        ("run small.toml --set time.step", 2, &["KEY=VALUE"]),
        ("run small.toml --colour", 2, &["--colour"]),
        ("run", 2, &["SCENE"]),
        ("run small.toml --ranks 17", 3, &["17 ranks", "8 patches"]),
        ("run nowhere.toml", 3, &["nowhere.toml"]),
        ("run broken.toml", 3, &["broken.toml:2"]),
        ("run bytes.toml", 3, &["bytes.toml"]),
        ("run empty.toml", 3, &["empty.toml:1", "cloth"]),
        (
            "run small.toml --set time.stp=1ms",
            3,
            &["time.stp", "`step`"],
        ),
        (
            "run small.toml --set time.step=5kg",
            3,
            &["time.step", "kg"],
        ),
        ("run small.toml --set time.step=0", 3, &["time.step", "0"]),
        (
            "run small.toml --set time.end=nan",
            3,
            &["time.end", "finite"],
        ),
        (
            "run small.toml --set cloth.grid.size=-1",
            3,
            &["cloth.grid.size", "-1"],
        ),
        (
            "run small.toml --set cloth.grid.vertices=1",
            3,
            &["cloth.grid.vertices"],
        ),
        ("run small.toml --set gravity=[0,0,inf]", 3, &["gravity"]),
        (
            "run small.toml --set partition.patches=7",
            3,
            &["partition.patches", "7"],
        ),
        ("run text.toml", 3, &["text.obj:1"]),
        ("run fold.toml", 3, &["fold.obj", "edge"]),
        ("run flat.toml", 3, &["flat.obj", "area"]),
        ("run absent.toml", 3, &["absent.obj"]),
        (
            "run page.toml",
            3,
            &["page.obj: ", "OBJ", "first line is `<html>`"],
        ),
        (
            "check small.toml --set contact.thickness=1",
            3,
            &["thickness"],
        ),
        ("run small.toml --out file", 5, &["file"]),
        ("run small.toml --out file/deeper", 5, &["file/deeper"]),
        ("scenes nowhere", 5, &["nowhere"]),
    ];
    for (arguments, code, words) in cases {
        let (status, message) = place.fails(arguments);
        assert_eq!(status, *code, "{arguments}: {message}");
        for word in *words {
            assert!(
                message.contains(word),
                "{arguments}: no {word:?} in: {message}"
            );
        }
    }
    assert_eq!(place.names("."), before);
}

#[test]
fn a_stranger_s_directory_is_not_touched() {
    let place = Place::new();
    fs::create_dir(place.path("mine")).unwrap();
    fs::write(place.path("mine/letter.txt"), "dear").unwrap();
    let (status, message) = place.fails("run small.toml --steps 1 --out mine");
    assert_eq!((status, message.contains("mine")), (5, true), "{message}");
    assert_eq!(
        place.names("mine"),
        BTreeSet::from(["letter.txt".to_owned()])
    );
}

#[test]
fn a_run_that_fails_says_where_and_records_it() {
    let place = Place::new();
    let few = "--set solver.max_iterations=1 --set solver.tolerance=1e-12";
    let mut first = None;
    for ranks in [1, 3] {
        let run = format!("run small.toml --quiet --ranks {ranks} --out out --overwrite {few}");
        let (status, message) = place.fails(&run);
        assert_eq!(status, 4, "{message}");
        for word in ["step 1:", "vertex ", "patch ", " is of cloth `napkin`"] {
            assert!(message.contains(word), "no {word:?} in: {message}");
        }
        assert_eq!(&message, first.get_or_insert_with(|| message.clone()));
        let record = record(&place.path("out"));
        assert_eq!(record["exit"], 4);
        let said = record["error"].as_str().unwrap();
        assert_eq!(message.trim_end(), format!("error: {said}"));
    }
}

/// A killed run leaves whole files only: all that the collection lists is there and ends as it
/// should.
#[test]
fn a_killed_run_leaves_whole_files_and_its_directory_can_be_used_again() {
    let place = Place::new();
    let arguments = "run small.toml --ranks 2 --out out --set time.end=8 --set output.interval=4ms";
    let mut child = place
        .command(arguments)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    // Once there is progress, steps have been taken and frames written.
    let progress = |line: &std::io::Result<String>| line.as_ref().unwrap().starts_with("step 100 ");
    assert!(lines.into_iter().any(|line| progress(&line)));
    child.kill().unwrap();
    child.wait().unwrap();

    assert_eq!(record(&place.path("out"))["exit"], Value::Null);
    let collection = fs::read_to_string(place.path("out/frames.pvd")).unwrap();
    assert!(collection.trim_end().ends_with("</VTKFile>"));
    let listed = collection.split("file=\"").skip(1);
    let mut count = 0;
    for file in listed.map(|rest| rest.split('"').next().unwrap()) {
        let bytes = fs::read(place.path("out").join(file)).unwrap();
        assert!(bytes.trim_ascii_end().ends_with(b"</VTKFile>"), "{file}");
        count += 1;
    }
    assert!(count > 1, "{count}");
    for name in place.names("out/pictures") {
        if name.ends_with(".png") {
            let bytes = fs::read(place.path("out/pictures").join(&name)).unwrap();
            assert!(bytes.windows(4).any(|w| w == b"IEND"), "{name}");
        }
    }
    hash_of(&place.weft("run small.toml --quiet --out out --steps 10 --overwrite"));
    assert_eq!(place.names("out/pictures").len(), 2);
}

#[test]
fn a_run_is_not_lost_when_its_words_cannot_be_written() {
    let place = Place::new();
    let full = fs::OpenOptions::new().write(true).open("/dev/full");
    let arguments = "run small.toml --steps 10 --out out --overwrite";
    let output = place
        .command(arguments)
        .stdout(full.unwrap())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(5));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("standard output"), "{message}");
    assert_eq!(record(&place.path("out"))["exit"], 0);

    let mut child = place
        .command(arguments)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    assert!(child.wait().unwrap().success());
    assert_eq!(record(&place.path("out"))["exit"], 0);
}

/// The last state is always written, and what is wrong with it is said.
#[test]
fn a_result_that_breaks_limits_is_warned_of() {
    let place = Place::new();
    let coarse = "--set time.step=40ms --set time.end=2 --set contact.thickness=0.1mm";
    let output = place.weft(&format!(
        "run small.toml --out out {coarse} --set output.interval=10"
    ));
    assert!(output.status.success());
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(
        message.contains("warning: ") && message.contains("contact thickness"),
        "{message}"
    );
    let warnings = record(&place.path("out"))["warnings"].clone();
    assert!(!warnings.as_array().unwrap().is_empty());
    let pictures = ["000000.png", "000050.png"].map(str::to_owned);
    assert_eq!(place.names("out/pictures"), pictures.into());
}

/// Strain limits hide that an explicit integrator blows up: its steps are judged before they are
/// taken.
#[test]
fn steps_too_long_for_an_explicit_integrator_are_warned_of() {
    let place = Place::new();
    let long = "--set solver.integrator=central";
    let told = |output: std::process::Output| String::from_utf8(output.stderr).unwrap();
    let run = told(place.weft(&format!("run small.toml --steps 1 --out out {long}")));
    assert_eq!(run.matches("`napkin` stably").count(), 2, "{run}");
    let warnings = record(&place.path("out"))["warnings"].to_string();
    assert!(warnings.contains("`napkin` stably"), "{warnings}");
    assert!(told(place.weft(&format!("check small.toml {long}"))).contains("`napkin` stably"));
    assert_eq!(told(place.weft("check small.toml")), "");
}

/// Two squares edge to edge, with the vertices of the seam doubled.
#[test]
fn pieces_that_are_not_sewn_are_told() {
    let seam = "v 0 0 1\nv 1 0 1\nv 0 1 1\nv 1 1 1\nv 1 0 1\nv 2 0 1\nv 1 1 1\nv 2 1 1\n\
                f 1 2 4\nf 1 4 3\nf 5 6 8\nf 5 8 7\n";
    let grid = "grid = { size = \"0.3 m\", vertices = 12 }\ncenter = [0.03, 0.02, 0.165]";
    let scene = SCENE.replace(grid, "mesh = \"seam.obj\"");
    let place = Place::with(&scene.replace("patches = 8", "patches = 2"));
    fs::write(place.path("seam.obj"), seam).unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let check = place.weft("check small.toml");
    let told = text(check.stdout);
    let sizes = "# cloth `napkin`: 2 x 1 x 0 m, 8 vertices, 4 triangles, edges of 1 to 1.414 m, 2 borders, 2 pieces, 4 coincident \
                 vertices, 300 g\n";
    assert!(told.contains(sizes), "{told}");
    assert!(text(check.stderr).contains("`napkin` has 2 pieces, and 4 vertices"));
    let run = text(
        place
            .weft("run small.toml --steps 1 --out out --set contact.self_collision=false")
            .stderr,
    );
    assert_eq!(
        run.matches("`napkin` has 2 pieces, and 4 vertices").count(),
        2,
        "{run}"
    );
    let sewn = text(Place::new().weft("check small.toml").stdout);
    let bends =
        "# cloth `napkin` bends by hinges, 1.00 to 1.00 times as stiff as its material says";
    assert!(sewn.contains(bends), "{sewn}");
    assert!(
        sewn.contains(" 1 border, 1 piece, 0 coincident vertices, 13.5 g\n"),
        "{sewn}"
    );
}

/// The last step is a whole one.
#[test]
fn an_end_between_steps_is_told() {
    let place = Place::new();
    let told = |arguments: &str| String::from_utf8(place.weft(arguments).stderr).unwrap();
    let words =
        "0.007 s, is no multiple of time.step, 0.004 s: the last of 2 steps ends at 0.008 s";
    let end = "--set time.end=7ms";
    assert!(told(&format!("check small.toml {end}")).contains(words));
    assert!(told(&format!("run small.toml --out out --overwrite {end}")).contains(words));
    assert!(told("run small.toml --out out --overwrite --until 0.007").contains(words));
    assert!(!told("run small.toml --out out --overwrite --set time.end=8ms").contains("multiple"));
    assert!(
        !told(&format!(
            "run small.toml --steps 1 --out out --overwrite {end}"
        ))
        .contains("multiple")
    );
}

/// Cloth inside a mesh, or through other cloth, is refused by `run` and by `check`.
#[test]
fn starts_that_overlap_are_refused() {
    let cube = "v -1 -1 -1\nv 1 -1 -1\nv 1 1 -1\nv -1 1 -1\nv -1 -1 1\nv 1 -1 1\nv 1 1 1\nv -1 1 1\n\
                f 1 3 2\nf 1 4 3\nf 5 6 7\nf 5 7 8\nf 1 2 6\nf 1 6 5\nf 2 3 7\nf 2 7 6\n\
                f 3 4 8\nf 3 8 7\nf 4 1 5\nf 4 5 8\n";
    let body = "[[body]]\nname = \"cube\"\nshape = \"mesh\"\nmesh = \"cube.obj\"\nscale = 0.05\n";
    let other = "[[cloth]]\nname = \"other\"\nrotation = [\"90 deg\", 0, 0]\ncenter = [0.03, 0.02, 0.165]\n\
                 grid = { size = \"0.1 m\", vertices = 5 }\nmaterial = { density = 0.15, stretch = 300, \
                 bending = 1e-5 }\n";
    let inside = format!("{SCENE}\n{body}translation = [0, 0, 0.165]\n");
    let beside = format!("{SCENE}\n{body}translation = [0.4, 0, 0.05]\n");
    let crossing = format!("{SCENE}\n{other}");
    for (scene, word) in [
        (inside, Some("cube")),
        (crossing, Some("other")),
        (beside, None),
    ] {
        let place = Place::with(&scene);
        fs::write(place.path("cube.obj"), cube).unwrap();
        let Some(word) = word else {
            let hash = hash_of(&place.weft("run small.toml --quiet --steps 2 --out out"));
            assert!(!hash.is_empty());
            assert_eq!(
                record(&place.path("out"))["result"]["max_penetration_m"],
                0.0
            );
            continue;
        };
        for command in ["check small.toml", "run small.toml --out out"] {
            let (status, message) = place.fails(command);
            assert_eq!(status, 3, "{message}");
            assert!(message.contains(word), "{message}");
        }
        assert!(!place.path("out").exists());
    }
}

/// A build with MPI is tested under a real launcher, see `tests/mpi.sh`.
#[cfg(not(feature = "mpi"))]
#[test]
fn a_build_without_mpi_refuses_its_launchers_and_says_how_to_rebuild() {
    let place = Place::new();
    for (variable, value) in [("OMPI_COMM_WORLD_SIZE", "4"), ("SLURM_STEP_NUM_TASKS", "2")] {
        let output = place
            .command("run small.toml --out out")
            .env(variable, value)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2));
        let message = String::from_utf8(output.stderr).unwrap();
        for word in [variable, "--features mpi", "--ranks"] {
            assert!(message.contains(word), "{message}");
        }
        assert!(!place.path("out").exists());
    }
    let (code, message) = place.fails("run small.toml --comm mpi");
    assert_eq!(code, 2);
    assert!(message.contains("--features mpi"), "{message}");
}

#[test]
fn only_one_of_several_processes_prints() {
    let place = Place::new();
    for (rank, speaks) in [("0", true), ("3", false)] {
        let output = place
            .command("run small.toml --no-such-option")
            .env("OMPI_COMM_WORLD_SIZE", "4")
            .env("OMPI_COMM_WORLD_RANK", rank)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert_eq!(!output.stderr.is_empty(), speaks);
    }
}

/// The table compares what it says, for as many parts as are asked for, and the picture shows them.
#[test]
fn a_partition_is_shown_beside_others() {
    let place = Place::new();
    place.weft("run small.toml --quiet --steps 30 --out out");
    let uneven = place.weft("partition small.toml --parts 7").stderr;
    let uneven = String::from_utf8(uneven).unwrap();
    assert!(
        uneven.starts_with("note: ranks share 8 patches"),
        "{uneven}"
    );
    let state = "--state out/state.000030.ckpt --picture=new/folder/parts.png";
    let output = place.weft(&format!("partition small.toml --parts 5 {state}"));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    assert!(
        text.starts_with("144 vertices, ") && text.contains("8 patches; 5 parts"),
        "{text}"
    );
    assert!(text.ends_with("Wrote new/folder/parts.png\n"), "{text}");
    for name in [
        "patch tree",
        "METIS k-way",
        "coordinates, at the start",
        "coordinates, in that state",
        "coordinates, folded",
    ] {
        let row = text.lines().find(|line| line.starts_with(name)).unwrap();
        let cells: Vec<f64> = row
            .split('|')
            .skip(1)
            .map(|c| c.trim().parse().unwrap())
            .collect();
        let [cut, _, halo, largest, imbalance, pieces] = cells[..] else {
            panic!("{row}")
        };
        assert!(
            cut > 0.0 && largest <= halo && imbalance >= 1.0 && pieces >= 1.0,
            "{row}"
        );
    }
    assert!(
        fs::read(place.path("new/folder/parts.png"))
            .unwrap()
            .starts_with(b"\x89PNG")
    );

    for (arguments, code, word) in [
        ("--parts 9", 3, "8 patches"),
        ("--parts 0", 2, "--parts"),
        ("--parts 5 --state none.ckpt", 5, "none.ckpt"),
        ("--parts 5 --picture=small.toml/parts.png", 5, "small.toml"),
        (
            "--parts 5 --set time.step=1ms --state out/state.000030.ckpt",
            3,
            "another scene",
        ),
    ] {
        let (found, message) = place.fails(&format!("partition small.toml {arguments}"));
        assert_eq!(found, code, "{arguments}: {message}");
        assert!(message.contains(word), "{arguments}: {message}");
    }
}

/// The system for other solvers has all rows of one step, with the pins in it.
#[test]
fn a_system_is_written_for_other_solvers() {
    let place = Place::new();
    place.weft("run small.toml --quiet --steps 3 --out out");
    let state = "--state out/state.000003.ckpt --out out";
    let output = place.weft(&format!("system small.toml {state}"));
    assert!(output.status.success());
    let matrix = fs::read_to_string(place.path("out/A.mtx")).unwrap();
    let mut lines = matrix.lines().filter(|line| !line.starts_with('%'));
    let sizes: Vec<usize> = (lines.next().unwrap().split(' '))
        .map(|n| n.parse().unwrap())
        .collect();
    assert_eq!(sizes[..2], [432, 432]);
    assert_eq!(lines.count(), sizes[2]);
    let rhs = fs::read_to_string(place.path("out/b.mtx")).unwrap();
    assert_eq!(
        rhs.lines().filter(|line| !line.starts_with('%')).count(),
        433
    );
    let (code, message) = place.fails("system small.toml --out small.toml/none");
    assert_eq!(code, 5, "{message}");
}
