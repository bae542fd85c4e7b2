//! Tests of the output for scripts, shells and editors: JSON, completions, man pages, the schema of
//! scenes, and scenes to start from.

use std::fs;

use serde_json::Value;

use super::place::{Place, hash_of};

/// The JSON that a command that succeeds prints.
fn json(place: &Place, arguments: &str) -> Value {
    let said = place.weft(arguments).stdout;
    assert!(said.is_ascii(), "{arguments}");
    serde_json::from_slice(&said).unwrap_or_else(|error| panic!("{arguments}: {error}"))
}

/// The JSON that a command that fails prints to both outputs, with its exit code.
fn refused(place: &Place, arguments: &str) -> (i32, Option<Value>, Value) {
    let output = place.command(arguments).output().unwrap();
    let out = (!output.stdout.is_empty()).then(|| serde_json::from_slice(&output.stdout).unwrap());
    let told = serde_json::from_slice(&output.stderr).unwrap();
    (output.status.code().unwrap(), out, told)
}

#[test]
fn a_check_is_told_as_json_with_the_place_of_each_problem() {
    let place = Place::new();
    let report = json(&place, "check small.toml --json");
    assert_eq!(report["schema"], 1);
    assert_eq!(report["valid"], true);
    assert_eq!(report["steps"], 40);
    assert_eq!(report["objects"][0]["kind"], "cloth");
    assert_eq!(report["objects"][0]["vertices"], 144);
    assert_eq!(report["objects"][1]["name"], "ball");
    // The scene in the report is a scene.
    fs::write(place.path("again.toml"), report["scene"].as_str().unwrap()).unwrap();
    let again = json(&place, "check again.toml --json");
    assert_eq!(again["scene"], report["scene"]);

    let scene = fs::read_to_string(place.path("small.toml")).unwrap();
    let bad = scene.replace("radius = \"8 cm\"", "radius = \"8 kg\"");
    fs::write(place.path("bad.toml"), &bad).unwrap();
    let (code, report, error) = refused(&place, "check bad.toml --json --set time.stepp=1");
    let report = report.unwrap();
    assert_eq!((code, &report["valid"]), (3, &Value::Bool(false)));
    let problems = report["problems"].as_array().unwrap();
    let [in_text, in_override] = &problems[..] else {
        panic!("{report}");
    };
    let line = 1 + bad.lines().position(|line| line.contains("8 kg")).unwrap();
    assert_eq!(in_text["file"], "bad.toml");
    assert_eq!(in_text["line"], line);
    assert_eq!(in_text["key"], "body.0.radius");
    assert_eq!(in_override["set"], "time.stepp=1");
    assert_eq!(error["error"]["code"], 3);
    assert_eq!(error["schema"], 1);

    // Cloth that starts in the ball is in no line.
    let (code, report, error) = refused(
        &place,
        "check small.toml --json --set cloth.center=[0,0,0.1]",
    );
    let problem = &report.unwrap()["problems"][0];
    assert_eq!((code, &problem["message"]), (3, &error["error"]["message"]));
    assert!(problem["message"].as_str().unwrap().contains("ball"));
    let (code, report, _) = refused(&place, "check none.toml --json");
    assert_eq!(
        (code, &report.unwrap()["problems"][0]["file"]),
        (3, &"none.toml".into())
    );
}

#[test]
fn lists_partitions_audits_and_the_program_are_told_as_json() {
    let place = Place::new();
    fs::write(place.path("bad.toml"), "x").unwrap();
    let list = json(&place, "scenes . --json");
    let scenes = list["scenes"].as_array().unwrap();
    assert_eq!(scenes.len(), 2);
    assert_eq!(
        (&scenes[0]["valid"], &scenes[1]["title"]),
        (&Value::Bool(false), &"small".into())
    );
    let built_in = json(&place, "scenes --json");
    let quick = built_in["scenes"].as_array().unwrap();
    assert!(quick.iter().any(|scene| scene["name"] == "quick"));

    let info = json(&place, "info --json");
    assert_eq!(info["program"]["version"], env!("CARGO_PKG_VERSION"));
    let features = info["program"]["features"].as_array().unwrap();
    assert_eq!(
        features.contains(&"tracing".into()),
        cfg!(feature = "tracing")
    );
    assert_eq!(features.contains(&"mpi".into()), cfg!(feature = "mpi"));

    let cuts = json(
        &place,
        "partition small.toml --parts 4 --json --picture=p.png",
    );
    assert_eq!((&cuts["parts"], &cuts["patches"]), (&4.into(), &8.into()));
    assert_eq!(cuts["cuts"][0]["by"], "patch tree");
    assert!(cuts["cuts"][0]["edge_cut"].as_u64().unwrap() > 0);
    assert_eq!(cuts["picture"], "p.png");
    assert!(place.path("p.png").is_file());
    let (code, out, error) = refused(&place, "partition small.toml --parts 9 --json");
    assert_eq!((code, out, &error["error"]["code"]), (3, None, &3.into()));

    hash_of(&place.weft("run small.toml --ranks 1 --quiet --out out"));
    let audit = json(&place, "audit out --json");
    assert_eq!((&audit["schema"], &audit["frames"]), (&1.into(), &5.into()));
    assert_eq!(audit["crossing"], Value::Array(Vec::new()));
    let record = super::place::record(&place.path("out"));
    assert_eq!(record["program"]["features"], info["program"]["features"]);
    let (code, _, error) = refused(&place, "audit nowhere --json");
    assert_eq!((code, &error["error"]["code"]), (5, &5.into()));
}

#[test]
fn text_of_scenes_reaches_json_unchanged_and_no_terminal() {
    let place = Place::new();
    let scene = fs::read_to_string(place.path("small.toml")).unwrap();
    let title = "Mo\u{2019}s \u{1f455} \u{202e}x";
    fs::write(
        place.path("small.toml"),
        scene.replace("\"small\"", &format!("\"{title}\"")),
    )
    .unwrap();
    assert_eq!(json(&place, "check small.toml --json")["title"], title);
    assert_eq!(json(&place, "scenes . --json")["scenes"][0]["title"], title);
}

#[test]
fn the_schema_of_scenes_is_the_file_of_the_repository() {
    let place = Place::new();
    let said = place.weft("scenes --schema").stdout;
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/contrib/scene.schema.json");
    assert!(said == fs::read(file).unwrap());
}

#[test]
fn shells_and_man_know_every_command() {
    let place = Place::new();
    let help = String::from_utf8(place.weft("--help").stdout).unwrap();
    let (_, commands) = help.split_once("Commands:\n").unwrap();
    let commands = commands.lines().take_while(|line| !line.is_empty());
    let names: Vec<&str> = commands
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect();
    assert!(names.len() >= 12 && names.contains(&"run"), "{names:?}");
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = place.weft(&format!("completions {shell}")).stdout;
        let script = String::from_utf8(script).unwrap();
        for name in &names {
            assert!(script.contains(name), "{shell}: {name}");
        }
        assert!(script.contains("--max-hours") || script.contains("max-hours"));
    }
    place.weft("completions --man pages/man1");
    for name in &names {
        let page = fs::read_to_string(place.path(&format!("pages/man1/weft-{name}.1"))).unwrap();
        assert!(
            page.contains(".TH weft-") && page.contains(".SH SYNOPSIS"),
            "{page}"
        );
    }
    let page = fs::read_to_string(place.path("pages/man1/weft.1")).unwrap();
    assert!(page.contains("Exit codes"), "{page}");
    let (code, _) = place.fails("completions");
    assert_eq!(code, 2);
}

#[test]
fn a_new_scene_runs_as_it_is_and_nothing_is_written_over() {
    let place = Place::new();
    place.weft("new first.toml");
    hash_of(&place.weft("run first.toml --ranks 2 --steps 60 --quiet --out first"));
    let before = fs::read(place.path("first.toml")).unwrap();
    let (code, message) = place.fails("new first.toml");
    assert!(code == 5 && message.contains("is left alone"), "{message}");
    assert_eq!(fs::read(place.path("first.toml")).unwrap(), before);

    // A square of 60 cm in a file in cm, whose name wants escapes.
    let mut obj = String::new();
    for y in 0..31 {
        for x in 0..31 {
            obj += &format!("v {} {} 5\n", 2 * x, 2 * y);
        }
    }
    for y in 0..30 {
        for x in 1..31 {
            let a = 31 * y + x;
            obj += &format!("f {a} {} {} {}\n", a + 1, a + 32, a + 31);
        }
    }
    fs::create_dir(place.path("meshes")).unwrap();
    fs::write(place.path("meshes/a \"b\".obj"), &obj).unwrap();
    // The file of one that has y upwards.
    let turned: Vec<String> = (obj.lines())
        .map(|line| match line.split(' ').collect::<Vec<_>>()[..] {
            ["v", x, y, z] => format!("v {x} {z} -{y}"),
            _ => line.to_owned(),
        })
        .collect();
    fs::write(place.path("meshes/on-edge.obj"), turned.join("\n")).unwrap();
    let mut new = place.command("new second.toml --scale 0.01 --cloth");
    let output = new.arg("meshes/a \"b\".obj").output().unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(told.contains("0.6 x 0.6 x 0 m"), "{told}");
    hash_of(&place.weft("run second.toml --ranks 2 --steps 10 --quiet --out second"));

    // Units and axes are those of the file, or said: the floor lies below the lowest point.
    let usd = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/formats/usd/garment.usda"
    );
    place.weft(&format!("new garment.toml --cloth {usd}"));
    let text = fs::read_to_string(place.path("garment.toml")).unwrap();
    assert!(!text.contains("the file's unit"), "{text}");
    let turned = place.weft("new turned.toml --scale 0.01 --up y --cloth meshes/on-edge.obj");
    let told = String::from_utf8(turned.stdout).unwrap();
    assert!(told.contains("0.6 x 0.6 x 0 m"), "{told}");
    let text = fs::read_to_string(place.path("turned.toml")).unwrap();
    assert!(
        text.contains("up = \"y\"") && text.contains("point = [0, 0, 0.03]"),
        "{text}"
    );
    // A sheet on edge is warned of.
    let on_edge = place.weft("new on-edge.toml --scale 0.01 --cloth meshes/on-edge.obj");
    let warning = String::from_utf8(on_edge.stderr).unwrap();
    assert!(warning.contains("stands on edge"), "{warning}");

    for (arguments, code) in [
        ("new third.toml --cloth meshes/none.obj", 3),
        ("new third.toml --cloth small.toml", 3),
        ("new third.toml --scale 0", 2),
        ("new nowhere/third.toml", 5),
    ] {
        assert_eq!(place.fails(arguments).0, code, "{arguments}");
    }
    fs::write(place.path("empty.obj"), "").unwrap();
    assert_eq!(place.fails("new third.toml --cloth empty.obj").0, 3);
    assert!(!place.path("third.toml").exists());
}

/// The lines that a command prints, as JSON.
fn events(said: &[u8]) -> Vec<Value> {
    assert!(said.is_ascii());
    let lines = std::str::from_utf8(said).unwrap().lines();
    let read =
        lines.map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}")));
    read.collect()
}

/// The events of one kind.
fn of_kind<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events
        .iter()
        .filter(|event| event["event"] == kind)
        .collect()
}

#[test]
fn a_run_is_told_line_by_line_as_json() {
    let place = Place::new();
    let plain = hash_of(&place.weft("run small.toml --ranks 2 --quiet --out plain"));
    let output = place.weft("run small.toml --ranks 2 --out out --json");
    let all = events(&output.stdout);
    assert_eq!(all[0]["event"], "start");
    assert_eq!(
        (
            &all[0]["schema"],
            &all[0]["scene"],
            &all[0]["steps"],
            &all[0]["ranks"],
            &all[0]["out"]
        ),
        (
            &1.into(),
            &"small".into(),
            &40.into(),
            &2.into(),
            &"out".into()
        )
    );
    let steps = of_kind(&all, "step");
    let numbers: Vec<u64> = steps
        .iter()
        .map(|step| step["step"].as_u64().unwrap())
        .collect();
    assert_eq!(numbers, (1..=40).collect::<Vec<_>>());
    // Each line agrees with the history.
    let history = fs::read_to_string(place.path("out/history.csv")).unwrap();
    let header: Vec<&str> = history.lines().next().unwrap().split(',').collect();
    let last: Vec<&str> = history.lines().last().unwrap().split(',').collect();
    for (name, cell) in header.iter().zip(last) {
        let told = &steps[39][*name];
        match cell.parse::<f64>() {
            Ok(number) => assert_eq!(told.as_f64(), Some(number), "{name}"),
            Err(_) if cell.is_empty() => assert!(told.is_null(), "{name}"),
            Err(_) => assert_eq!(told, cell, "{name}"),
        }
    }
    assert!(steps[39]["wall_s"].as_f64().unwrap() > 0.0);
    assert_eq!(steps[39]["left_s"].as_f64(), Some(0.0));
    let frames = of_kind(&all, "frame");
    assert_eq!(frames.len(), 5);
    for frame in frames {
        let file = frame["file"].as_str().unwrap();
        assert!(place.path("out").join(file).is_file(), "{file}");
    }
    assert!(!of_kind(&all, "note").is_empty());
    let [summary] = of_kind(&all, "summary")[..] else {
        panic!("no summary");
    };
    assert_eq!(Some(summary), all.last());
    assert_eq!(summary["hash"], plain);
    assert_eq!(
        (&summary["steps"], &summary["stopped"]),
        (&40.into(), &Value::Null)
    );
    assert_eq!(
        (&summary["vertices"], &summary["frames"]),
        (&144.into(), &5.into())
    );
}

#[test]
fn errors_of_a_run_are_reported_as_json() {
    let place = Place::new();
    let (code, out, error) = refused(&place, "run small.toml --json --out o --set time.stepp=1");
    assert_eq!((code, out, &error["error"]["code"]), (3, None, &3.into()));
    assert!(
        error["error"]["message"]
            .as_str()
            .unwrap()
            .contains("time.stepp")
    );
    let output = place
        .command("run small.toml --json --out small.toml --ranks 1")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(5));
    let error: Value = serde_json::from_slice(&output.stderr).unwrap();
    assert_eq!(error["error"]["code"], 5);
    assert_eq!(of_kind(&events(&output.stdout), "summary").len(), 0);
    // A run that stops early says so, and goes on.
    let all = events(
        &place
            .weft("run small.toml --ranks 1 --out out --json --steps 10")
            .stdout,
    );
    assert_eq!(of_kind(&all, "summary")[0]["steps"], 10);
    let all = events(
        &place
            .weft("run small.toml --ranks 1 --out out --json --resume")
            .stdout,
    );
    assert_eq!(of_kind(&all, "summary")[0]["resumed_from"], 10);
    assert_eq!(of_kind(&all, "step")[0]["step"], 11);
}
