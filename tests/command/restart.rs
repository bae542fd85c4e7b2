//! Runs that stop or are killed, and go on: with the hash of the run that was never interrupted.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use crate::place::{Place, SCENE, hash_of, record};

const RUN: &str = "run small.toml --quiet --set output.pictures=false --out";

/// The steps of the checkpoints in a directory, ascending.
pub(crate) fn checkpoints(directory: &Path) -> Vec<u64> {
    let Ok(entries) = fs::read_dir(directory) else {
        return Vec::new();
    };
    let step = |name: String| {
        let digits = name.strip_prefix("state.")?.strip_suffix(".ckpt")?;
        digits.parse().ok()
    };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut steps: Vec<u64> = names.filter_map(step).collect();
    steps.sort_unstable();
    steps
}

fn message(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Lines of `history.csv` up to the columns that depend on ranks and clocks.
fn history(directory: &Path) -> Vec<String> {
    let text = fs::read_to_string(directory.join("history.csv")).unwrap();
    let trajectory = |line: &str| line.splitn(8, ',').take(7).collect::<Vec<_>>().join(",");
    text.lines().map(trajectory).collect()
}

/// A run of an hour that writes a checkpoint after each step, a few steps in. `through`: what
/// starts it.
fn long_run(place: &Place, through: &[&str]) -> Child {
    let long =
        "long --ranks 2 --until 3600 --set output.checkpoint_interval=0 --set output.frames=false";
    let direct = place.command(&format!("{RUN} {long}"));
    let mut command = match through {
        [] => direct,
        [starter, arguments @ ..] => {
            let mut command = Command::new(starter);
            command.args(arguments).arg(direct.get_program());
            command.args(direct.get_args()).current_dir(place.path(""));
            for (name, value) in direct.get_envs() {
                assert_eq!(value, None, "it is only removed");
                command.env_remove(name);
            }
            command
        }
    };
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    reaches(place, &mut child, 5);
    child
}

/// Waits until the long run has taken this many steps.
fn reaches(place: &Place, child: &mut Child, steps: u64) {
    while checkpoints(&place.path("long"))
        .last()
        .is_none_or(|&step| step < steps)
    {
        assert_eq!(
            child.try_wait().unwrap(),
            None,
            "it ended before it was stopped"
        );
        wait();
    }
}

#[expect(clippy::disallowed_methods, reason = "another process is waited for")]
pub(crate) fn wait() {
    thread::sleep(Duration::from_millis(5));
}

pub(crate) fn signal(child: &Child, name: &str) {
    let status = Command::new("kill")
        .args([&format!("-{name}"), &child.id().to_string()])
        .status();
    assert!(status.unwrap().success());
}

/// Takes the long run some steps on and compares it with one that was never interrupted.
fn goes_on(place: &Place, options: &str) {
    let last = checkpoints(&place.path("long")).pop().unwrap();
    let to_the_end = format!("--steps {} --set output.frames=false", last + 20);
    let whole = hash_of(&place.weft(&format!("{RUN} whole --overwrite {to_the_end}")));
    let resumed = hash_of(&place.weft(&format!("{RUN} long {to_the_end} --resume {options}")));
    assert_eq!(resumed, whole);
    assert_eq!(history(&place.path("long")), history(&place.path("whole")));
}

/// The napkin lies on the ball then: held, sliding and sticking contacts, warm starts.
#[test]
fn a_run_goes_on_to_the_same_state_from_any_step_on_any_ranks() {
    let place = Place::new();
    let whole = hash_of(&place.weft(&format!("{RUN} whole")));
    for (steps, before, after) in [
        (1, "--ranks 1", "--ranks 7 --threads 2"),
        (17, "--ranks 3", "--ranks 1"),
        (26, "--ranks 8", "--ranks 2 --seed 9"),
        (39, "--ranks 2 --threads 2", "--comm virtual --ranks 5"),
    ] {
        let part = place.weft(&format!("{RUN} part --overwrite {before} --steps {steps}"));
        assert_ne!(hash_of(&part), whole);
        let resumed = hash_of(&place.weft(&format!("{RUN} part {after} --resume")));
        assert_eq!(resumed, whole, "after {steps} steps");
        let record = record(&place.path("part"));
        assert_eq!(record["resumed_from"], steps);
        assert_eq!(history(&place.path("part")), history(&place.path("whole")));
        // Nothing is left to do; the state is the same.
        assert_eq!(hash_of(&place.weft(&format!("{RUN} part --resume"))), whole);
    }
}

/// A ball that turns and rises under the napkin, and where it is in frames: its place is a function
/// of time, so nothing of it is in a checkpoint.
#[test]
fn a_run_goes_on_amid_the_motion_of_a_body() {
    let motion = "edge = \"3 cm\"\nmotion = { keyframes = [{ time = 0 }, { time = 0.1, turn = [0, 0, \"90 deg\"] }, \
                  { time = 0.16, translation = [0, 0, \"1 cm\"] }] }";
    let place = Place::with(&SCENE.replace("edge = \"3 cm\"", motion));
    let whole = hash_of(&place.weft(&format!("{RUN} whole --ranks 1")));
    assert_ne!(whole, hash_of(&Place::new().weft(&format!("{RUN} out"))));
    for (steps, before, after) in [
        (13, "--ranks 1", "--ranks 5"),
        (29, "--ranks 3", "--ranks 1"),
    ] {
        place.weft(&format!("{RUN} part --overwrite {before} --steps {steps}"));
        let resumed = hash_of(&place.weft(&format!("{RUN} part {after} --resume")));
        assert_eq!(resumed, whole, "after {steps} steps");
    }
    let frame = |directory: &str, step: u32| {
        fs::read(place.path(&format!("{directory}/frames/moving-0-ball.{step:06}.vtp"))).unwrap()
    };
    assert_eq!(frame("part", 40), frame("whole", 40));
    assert!(frame("whole", 10) != frame("whole", 20) && frame("whole", 30) != frame("whole", 40));
}

/// The frames of a run that was interrupted are those of one that was not, each once.
#[test]
fn a_continued_run_goes_on_with_its_frames() {
    let place = Place::new();
    let whole = hash_of(&place.weft(&format!("{RUN} whole --ranks 1")));
    let to = |steps| format!("{RUN} part --ranks 1 --steps {steps} --resume");
    place.weft(&to(10).replace(" --resume", ""));
    place.weft(&to(20));
    // It takes the same steps again, from the older checkpoint.
    let older = "--resume=part/state.000010.ckpt";
    place.weft(&to(30).replace("--resume", older));
    assert_eq!(hash_of(&place.weft(&to(40))), whole);
    let collection = |run: &str| fs::read_to_string(place.path(run).join("frames.pvd")).unwrap();
    assert_eq!(collection("part"), collection("whole"));
    for name in place.names("whole/frames") {
        let file = |run: &str| fs::read(place.path(run).join("frames").join(&name)).unwrap();
        assert!(file("part") == file("whole"), "{name}");
    }
}

#[test]
fn a_signal_stops_in_order() {
    // The process that runs these tests may have been set to outlive a terminal.
    let listens: &[&str] = &["env", "--default-signal=HUP"];
    for (name, through) in [
        ("TERM", &[][..]),
        ("INT", &[]),
        ("USR1", &[]),
        ("HUP", listens),
    ] {
        let place = Place::new();
        let child = long_run(&place, through);
        signal(&child, name);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", message(&output));
        assert!(message(&output).contains(&format!("stopped by SIG{name}")));
        let record = record(&place.path("long"));
        assert_eq!(record["stopped"], format!("SIG{name}"));
        assert_eq!(record["result"]["hash"], hash_of(&output));
        let last = checkpoints(&place.path("long")).pop();
        assert_eq!(record["result"]["steps"].as_u64(), last);
        goes_on(&place, "--ranks 3");
    }
}

/// A run that `nohup` starts goes on when the terminal is closed.
#[test]
fn a_run_that_is_to_outlive_its_terminal_does() {
    let place = Place::new();
    let ignoring = ["sh", "-c", "trap '' HUP; exec \"$0\" \"$@\""];
    let mut child = long_run(&place, &ignoring);
    signal(&child, "HUP");
    let last = checkpoints(&place.path("long")).pop().unwrap();
    reaches(&place, &mut child, last + 5);
    signal(&child, "TERM");
    let output = child.wait_with_output().unwrap();
    let said = message(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("stopped by SIGTERM"), "{said}");
}

#[test]
fn a_killed_run_goes_on() {
    let place = Place::new();
    let mut child = long_run(&place, &[]);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(checkpoints(&place.path("long")).len() <= 3);
    goes_on(&place, "--ranks 4");
}

#[test]
fn the_hours_allowed_are_kept() {
    let place = Place::new();
    let short = "--max-hours 0.0001 --until 3600 --set output.frames=false";
    let output = place.weft(&format!("{RUN} long {short}"));
    assert!(
        message(&output).contains("the time limit"),
        "{}",
        message(&output)
    );
    assert_eq!(record(&place.path("long"))["stopped"], "the time limit");
    assert_eq!(checkpoints(&place.path("long")).len(), 1);
    for hours in ["0", "-1", "nan", "inf", "soon"] {
        let (code, message) = place.fails(&format!("{RUN} long --max-hours={hours}"));
        assert_eq!(code, 2, "{message}");
    }
}

#[test]
fn a_checkpoint_begins_another_run_elsewhere() {
    let place = Place::new();
    let whole = hash_of(&place.weft(&format!("{RUN} whole")));
    place.weft(&format!("{RUN} part --steps 20"));
    let from = "--resume=part/state.000020.ckpt";
    assert_eq!(hash_of(&place.weft(&format!("{RUN} other {from}"))), whole);
    assert_eq!(history(&place.path("other")).len(), 21);
    assert_eq!(checkpoints(&place.path("part")), [20]);
}

#[test]
fn checkpoints_can_be_left_out() {
    let place = Place::new();
    hash_of(&place.weft(&format!("{RUN} out --set output.checkpoints=false")));
    assert!(checkpoints(&place.path("out")).is_empty());
}

#[test]
fn runs_that_cannot_be_continued_are_refused_and_left_alone() {
    let place = Place::new();
    place.weft(&format!("{RUN} part --steps 5"));
    let refused = |options: &str, expected: i32, words: &[&str]| {
        let (code, message) = place.fails(&format!("{RUN} {options}"));
        assert_eq!(code, expected, "{options}: {message}");
        for word in words {
            assert!(message.contains(word), "{options}: {message}");
        }
    };
    refused("none --resume", 5, &["none", "no checkpoint"]);
    refused("part --resume=none.ckpt", 5, &["none.ckpt"]);
    refused(
        "part --resume=small.toml",
        5,
        &["small.toml", "not a checkpoint"],
    );
    let other = "--set time.step=5ms";
    refused(
        &format!("part --resume {other}"),
        3,
        &["another scene", "0.004", "0.005"],
    );
    let patches = "--set partition.patches=4";
    refused(
        &format!("part --resume {patches}"),
        3,
        &["patches = 8", "patches = 4"],
    );
    for (change, key) in [
        ("cloth.napkin.center=[0,0,0.2]", "cloth.0.center"),
        (
            "cloth.napkin.material.density=0.2",
            "cloth.0.material.density",
        ),
        ("body.ball.radius=0.07", "body.0.radius"),
        ("contact.thickness=3mm", "contact.thickness"),
    ] {
        let may_not = format!("{key} may not change in a run that goes on");
        refused(&format!("part --resume --set {change}"), 3, &[&may_not]);
    }
    assert_eq!(history(&place.path("part")).len(), 6);

    let path: PathBuf = place.path("part/state.000005.ckpt");
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&path, bytes).unwrap();
    refused("part --resume", 5, &["state.000005.ckpt", "damaged"]);
    assert_eq!(record(&place.path("part"))["exit"], 0);
}

/// The forces that act may change from a step on. The run says so, remembers it, and goes on with
/// it.
#[test]
fn a_run_that_goes_on_may_change_the_forces_that_act() {
    let place = Place::new();
    let whole = hash_of(&place.weft(&format!("{RUN} whole")));
    let change = "--set gravity=[0,0,-3] --set cloth.napkin.material.bending=1e-4";
    for (folder, ranks) in [("part", 2), ("once", 3)] {
        place.weft(&format!("{RUN} {folder} --ranks {ranks} --steps 17"));
    }
    let at_once = hash_of(&place.weft(&format!("{RUN} once --ranks 1 --resume {change}")));
    assert_ne!(at_once, whole);
    // Interrupted again, twice, and gone on with as it is.
    let first = place.weft(&format!(
        "{RUN} part --ranks 3 --steps 26 --resume {change}"
    ));
    let said = message(&first);
    let known = "from step 17 on the run had cloth.0.material.bending = \"0.0001 N m\" where it had \"1e-5 N m\" before, gravity = [0.0, 0.0, -3.0] where it had [0.0, 0.0, -9.81] before";
    assert!(said.contains(known), "{said}");
    let changes = record(&place.path("part"))["changes"].clone();
    assert_eq!(changes.as_array().unwrap().len(), 2);
    assert_eq!(changes[1]["key"], "gravity");
    assert_eq!(
        (&changes[1]["step"], &changes[1]["now"]),
        (&17.into(), &"[0.0, 0.0, -3.0]".into())
    );
    assert_eq!(changes[1]["time_s"], 0.068);
    for options in ["--ranks 1 --steps 30", "--ranks 2"] {
        let resumed = place.weft(&format!("{RUN} part --resume {options}"));
        let of_record = record(&place.path("part"));
        assert_eq!(of_record["changes"], changes);
        assert!(message(&resumed).contains("from step 17 on"));
        if options == "--ranks 2" {
            assert_eq!(hash_of(&resumed), at_once);
        }
    }
    assert_eq!(history(&place.path("part")), history(&place.path("once")));
    // It is changed once more, and back.
    place.weft(&format!(
        "{RUN} part --resume --until 0.18 --set gravity=[0,0,-9.81]"
    ));
    let changes = record(&place.path("part"))["changes"].clone();
    assert_eq!(changes[2]["before"], "[0.0, 0.0, -3.0]");
    assert_eq!(
        (changes.as_array().unwrap().len(), &changes[2]["step"]),
        (3, &40.into())
    );
}

/// The limit is met in a few steps, and the state before the one that failed is kept.
#[test]
fn a_run_that_failed_goes_on_with_what_it_lacked() {
    let place = Place::new();
    let few = "--set solver.max_iterations=9";
    let (code, message) = place.fails(&format!("{RUN} part --ranks 2 {few}"));
    assert_eq!(code, 4, "{message}");
    let [kept] = checkpoints(&place.path("part"))[..] else {
        panic!("one checkpoint")
    };
    assert!(message.contains(&format!("step {}", kept + 1)), "{message}");
    let more = "--set solver.max_iterations=900";
    let whole = place.weft(&format!("{RUN} whole {more}"));
    let helped = place.weft(&format!("{RUN} part --ranks 3 {more} --resume"));
    // Only the limit differs, which the steps before did not meet.
    assert_eq!(hash_of(&whole), hash_of(&helped));
    let warnings = record(&place.path("part"))["warnings"].to_string();
    assert!(warnings.contains("max_iterations = 900"), "{warnings}");
}

/// The mesh has other vertices than it had; its name is the same.
#[test]
fn a_state_of_another_mesh_is_refused() {
    let mesh = |height: f64| {
        format!("v 0 0 {height}\nv 0.1 0 {height}\nv 0.1 0.1 0.2\nv 0 0.1 0.2\nf 1 2 3\nf 1 3 4\n")
    };
    let place = Place::with(
        "[[cloth]]\nmesh = \"square.obj\"\n\
         material = { density = 0.15, stretch = 300, bending = 1e-5 }\n[time]\nstep = 0.001\n",
    );
    fs::write(place.path("square.obj"), mesh(0.2)).unwrap();
    hash_of(&place.weft("run small.toml --quiet --ranks 1 --steps 2 --out part"));
    fs::write(place.path("square.obj"), mesh(0.201)).unwrap();
    let (code, message) = place.fails("run small.toml --quiet --ranks 1 --resume --out part");
    assert_eq!(code, 3, "{message}");
    assert!(message.contains("meshes"), "{message}");
}
