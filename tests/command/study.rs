//! `weft study`: a scene is recorded once and replayed often; what cannot be studied is refused
//! before any work.

use std::fs;
use std::process::{Output, Stdio};

use serde_json::Value;

use crate::place::{Place, SCENE, hash_of, record};
use crate::restart::{checkpoints, signal, wait};

const STUDY: &str =
    "study small.toml --quiet --steps 12 --record 10..12 --ranks 1,2 --repeat 2 --out out";

#[test]
fn a_study_leaves_tables_and_plots_and_records_once() {
    let place = Place::new();
    let text = String::from_utf8(place.weft(STUDY).stdout).unwrap();
    assert!(
        text.contains("efficiency of `collide`") && text.contains("every-other"),
        "{text}"
    );
    let csv = fs::read_to_string(place.path("out/study.csv")).unwrap();
    // Two numbers of ranks, four policies, five phases and the whole step, and the names.
    assert_eq!(csv.lines().count(), 1 + 2 * 4 * 6, "{csv}");
    let names = place.names("out");
    for name in [
        "study.json",
        "small.efficiency.svg",
        "small.myrinet-2000.speedup.png",
    ] {
        assert!(names.contains(name), "{names:?}");
    }
    let record = place.path("out/records/small/record.weftrec");
    let written = fs::metadata(&record).unwrap().modified().unwrap();
    // Nothing is done again; the record can be studied without the scene, with the same result.
    place.weft(STUDY);
    assert_eq!(fs::metadata(&record).unwrap().modified().unwrap(), written);
    assert_eq!(
        fs::read_to_string(place.path("out/study.csv")).unwrap(),
        csv
    );
    place.weft("study out/records/small --quiet --ranks 1,2 --repeat 2 --out again");
    assert_eq!(
        fs::read_to_string(place.path("again/study.csv")).unwrap(),
        csv
    );
}

/// Plots of an earlier plan are removed when the next one is drawn, unless they are not, or no
/// longer, the study's own.
#[test]
fn plots_of_an_earlier_plan_are_removed_and_nothing_else() {
    let place = Place::new();
    let study = |plan: &str| {
        let all =
            "--quiet --steps 3 --record 2..3 --ranks 1,2 --repeat 1 --policy static --out out";
        place.weft(&format!("study small.toml {all} {plan}"));
        place.names("out")
    };
    let names = study("--patches 8,16");
    for name in [
        "small-16.speedup.svg",
        "small-16.speedup.png",
        "small.patches.efficiency.svg",
    ] {
        assert!(names.contains(name), "{names:?}");
    }
    fs::write(place.path("out/small-16.mine.svg"), "mine").unwrap();
    fs::write(place.path("out/small-16.efficiency.svg"), "changed").unwrap();
    let names = study("--patches 8");
    let of_16: Vec<_> = names
        .iter()
        .filter(|n| n.starts_with("small-16."))
        .collect();
    assert_eq!(of_16, ["small-16.efficiency.svg", "small-16.mine.svg"]);
    assert!(!names.contains("small.patches.efficiency.png"), "{names:?}");
    assert!(names.contains("small-8.efficiency.svg"), "{names:?}");
}

#[test]
fn a_recorded_run_ends_with_the_same_state() {
    let place = Place::new();
    let run = "run small.toml --quiet --steps 12 --set output.pictures=false";
    let hash = |options: &str| hash_of(&place.weft(&format!("{run} {options}")));
    assert_eq!(
        hash("--record=5..12 --out recorded"),
        hash("--ranks 2 --out plain")
    );
    assert!(place.path("recorded/record.weftrec").exists());
}

/// A recording that goes on from amid its steps says what the record lacks.
#[test]
fn a_record_without_all_of_its_steps_is_told_of() {
    let place = Place::new();
    let run = "run small.toml --quiet --set output.pictures=false";
    place.weft(&format!("{run} --steps 40 --out first"));
    let warnings = |steps: &str| {
        let resumed = format!("{run} --steps 60 --resume=first/state.000040.ckpt --out second");
        let ran = place.weft(&format!("{resumed} --record={steps}"));
        assert!(ran.status.success(), "{ran:?}");
        let there = place.path("second/record.weftrec").exists();
        let record = record(&place.path("second"));
        fs::remove_dir_all(place.path("second")).unwrap();
        (there, record["warnings"].to_string())
    };
    for (steps, there, words) in [
        ("30..50", true, "has only steps 41 to 50 of 30 to 50"),
        ("50..60", true, "lacks steps 34 to 40"),
        ("50..60", true, "from a checkpoint of step 17 or before"),
        (
            "1..35",
            false,
            "the run has taken none of the steps 1 to 35",
        ),
    ] {
        let (found, warnings) = warnings(steps);
        assert_eq!(found, there, "{steps}");
        assert!(warnings.contains(words), "{steps}: {warnings}");
    }
    let (found, warnings) = warnings("57..60");
    assert!(found && !warnings.contains("record"), "{warnings}");
}

#[test]
fn inputs_that_cannot_be_studied_are_refused() {
    let place = Place::new();
    for (command, code, words) in [
        (
            "study small.toml --policy every-othr",
            2,
            "did you mean `every-other`?",
        ),
        (
            "study small.toml --network gigabyte",
            2,
            "did you mean `gigabit`?",
        ),
        ("study small.toml --ranks 0", 2, "`0` is no number of ranks"),
        ("study small.toml --ranks 4..2", 2, "no number of ranks"),
        ("study small.toml --repeat 0", 2, "no repetitions"),
        ("study small.toml --slower 0", 2, "from 0.001 to 1000000"),
        (
            "study small.toml --slower 1e-300",
            2,
            "a machine 1e-300 times slower",
        ),
        (
            "study small.toml --steps 2 --quiet --ranks 64",
            2,
            "partition.patches=64",
        ),
        ("study none.weftrec", 5, "none.weftrec"),
        ("study small.toml --copies 3", 2, "power of two"),
        (
            "study small.toml --copies 2147483648",
            2,
            "at most 131072 fit",
        ),
        (
            "study small.toml --policy every-other+stael=false",
            2,
            "did you mean `steal`?",
        ),
        (
            "study small.toml --set balance.split=half",
            2,
            "every-other+steal=false",
        ),
        ("study none.weftrec --full", 2, "want a scene"),
        ("study small.toml --steps 0", 2, "--steps 0"),
        ("study small.toml --steps 5 --record 6..7", 2, "no step 6"),
        (
            "run small.toml --record --ranks 2",
            2,
            "recorded on one rank",
        ),
        ("run small.toml --record=99999", 2, "no step 99999"),
    ] {
        let (status, message) = place.fails(command);
        assert_eq!(status, code, "{command}: {message}");
        assert!(message.contains(words), "{command}: {message}");
    }
    // Nothing has been recorded or made.
    assert!(!place.path("runs").exists());
    fs::write(place.path("bad.weftrec"), "not a record").unwrap();
    let (status, message) = place.fails("study bad.weftrec");
    assert_eq!(status, 5);
    assert!(message.contains("no record of a run"), "{message}");
}

/// The study that a report suggests has the policy that ran, also one without a name, and is of the
/// steps that were looked at.
#[test]
fn the_study_that_a_report_suggests_compares_what_ran() {
    let place = Place::new();
    let run = "--ranks 4 --comm virtual --steps 14 --quiet --set output.pictures=false --out out --overwrite";
    for (options, name, network) in [
        (
            "--policy every-other --no-steal",
            "every-other+steal=false",
            "gigabit",
        ),
        (
            "--policy static --network hdr-infiniband",
            "static",
            "hdr-infiniband",
        ),
    ] {
        hash_of(&place.weft(&format!("run small.toml {run} {options} --trace=8..12")));
        let text = String::from_utf8(place.weft("report out --text").stdout).unwrap();
        let command = text
            .lines()
            .find_map(|line| line.trim().strip_prefix("weft "));
        let command = command.unwrap_or_else(|| panic!("no command in {text}"));
        for words in ["--record 8..12 --steps 12", network, "forecast-static"] {
            assert!(command.contains(words), "no {words} in {command}");
        }
        let study = place.weft(&format!("{command} --repeat 1 --quiet --out study"));
        assert!(study.status.success(), "{study:?}");
        let csv = fs::read_to_string(place.path("study/study.csv")).unwrap();
        for name in [name, "static", "every-other", "forecast", "forecast-static"] {
            assert!(
                csv.contains(&format!("small,{network},{name},collide,4,")),
                "{csv}"
            );
        }
    }
}

/// A point of a study on this machine runs with the policy that the table names, whatever the scene
/// says of it.
#[test]
fn runs_of_a_study_have_the_policy_of_their_point() {
    let scene = format!("{SCENE}\n[balance]\nsteal = true\nsplit = \"oldest\"\n");
    let place = Place::with(&scene);
    let study = "study small.toml --quiet --real --steps 2 --ranks 2 --repeat 1";
    let output = place.weft(&format!(
        "{study} --policy static,half+steal=false --out out"
    ));
    assert!(output.status.success(), "{output:?}");
    for (point, policy, split) in [
        ("static", "static", "never"),
        ("half+steal=false", "null", "half"),
    ] {
        let sharing =
            &record(&place.path(&format!("out/runs/0.this-machine.{point}.000002.0")))["sharing"];
        assert_eq!(sharing["policy"].as_str().unwrap_or("null"), policy);
        assert_eq!(
            (&sharing["steal"], &sharing["split"]),
            (&false.into(), &split.into())
        );
    }
}

/// A launcher that fails is named with how it ended, whether it says anything or not, and its exit
/// code is the study's.
#[test]
fn a_launcher_that_fails_is_named() {
    let place = Place::new();
    fs::write(place.path("says"), "echo out of nodes >&2; exit 7").unwrap();
    let study = "study small.toml --quiet --real --steps 2 --ranks 1,2 --repeat 1 --policy static";
    for (launch, code, words) in [
        (
            "false {}",
            1,
            "a run on 1 ranks by `false 1` failed, exit status: 1, without a word\n",
        ),
        (
            "sh says {}",
            7,
            "a run on 1 ranks by `sh says 1` failed, exit status: 7: out of nodes\n",
        ),
    ] {
        let mut command = place.command(study);
        let output = command.args(["--launch", launch]).output().unwrap();
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{message}");
        assert!(message.ends_with(words), "{message}");
    }
}

/// Starts a study and stops it as soon as `is_time`, with Ctrl-C; what it said.
fn stopped(place: &Place, study: &str, is_time: &dyn Fn() -> bool) -> String {
    let mut command = place.command(study);
    let mut child = command
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while !is_time() {
        assert_eq!(child.try_wait().unwrap(), None, "it ended before");
        wait();
    }
    signal(&child, "INT");
    let Output { status, stderr, .. } = child.wait_with_output().unwrap();
    let message = String::from_utf8(stderr).unwrap();
    // As of a command that the signal has ended.
    assert_eq!(status.code(), Some(130), "{message}");
    message
}

fn lines(place: &Place, file: &str) -> usize {
    fs::read_to_string(place.path(file)).map_or(0, |text| text.lines().count())
}

fn study_json(place: &Place, out: &str) -> Value {
    serde_json::from_slice(&fs::read(place.path(&format!("{out}/study.json"))).unwrap()).unwrap()
}

#[test]
fn a_recording_that_is_stopped_goes_on_and_its_record_is_of_the_same_tests() {
    let place = Place::new();
    let study = "study small.toml --steps 2000 --record 1990..2000 --ranks 1,2 --repeat 1 --policy static --quiet";
    let first = format!("{study} --out out");
    let history = "out/records/small/history.csv";
    let message = stopped(&place, &first, &|| lines(&place, history) > 50);
    let last = checkpoints(&place.path("out/records/small")).pop().unwrap();
    for words in [
        "stopped by SIGINT after step ".to_owned(),
        format!("the same command goes on from step {last}\n"),
    ] {
        assert!(message.contains(&words), "no {words:?} in {message}");
    }
    assert!(!place.path("out/study.csv").exists());
    let again = place.weft(&first);
    assert!(again.status.success(), "{again:?}");
    assert_eq!(
        record(&place.path("out/records/small"))["resumed_from"],
        last
    );
    // The files that it could go on from are not needed any more.
    assert_eq!(checkpoints(&place.path("out/records/small")), [0; 0]);
    assert!(!place.names("out/records").contains("small.begun"));
    place.weft(&format!("{study} --out whole"));
    let tests = |out: &str| study_json(&place, out)["points"][0]["measured"]["tests"].clone();
    assert!(tests("out").as_u64().unwrap() > 0);
    assert_eq!(tests("out"), tests("whole"));
}

/// A recording that was stopped goes on from before its steps, early enough for forecasts.
#[test]
fn a_recording_that_is_stopped_amid_its_steps_begins_before_them() {
    let place = Place::new();
    let study = "study small.toml --steps 90000 --record 60..90000 --quiet --out out";
    let history = "out/records/small/history.csv";
    let message = stopped(&place, study, &|| lines(&place, history) > 70);
    assert!(message.contains("goes on from step 27\n"), "{message}");
    // And from nowhere if they begin too early.
    let study = "study small.toml --steps 90000 --record 10..90000 --quiet --out early";
    let history = "early/records/small/history.csv";
    let message = stopped(&place, study, &|| lines(&place, history) > 30);
    assert!(message.contains("begins that anew\n"), "{message}");
}

#[test]
fn a_sweep_that_is_stopped_says_so_and_goes_on() {
    let place = Place::new();
    let study = "study small.toml --steps 12 --record 10..12 --ranks 1,2,4,8 --repeat 100 --policy static,every-other --out out";
    let points = place.path("out/points");
    let message = stopped(&place, study, &|| {
        fs::read_dir(&points).is_ok_and(|files| files.count() > 5)
    });
    assert!(
        message.contains("stopped by SIGINT after ")
            && message.contains(" of 800 points; the same command goes on"),
        "{message}"
    );
    assert!(!place.path("out/study.csv").exists());
    let mut files: Vec<_> = fs::read_dir(&points)
        .unwrap()
        .map(|f| f.unwrap().path())
        .collect();
    files.sort();
    files.retain(|file| file.extension().is_some_and(|ending| ending == "json"));
    fs::write(&files[0], "{").unwrap();
    let other = fs::read_to_string(&files[1])
        .unwrap()
        .replace("replay ", "replay of another ");
    fs::write(&files[1], other).unwrap();
    let again = place.weft(study);
    assert!(again.status.success(), "{again:?}");
    let message = String::from_utf8(again.stderr).unwrap();
    let words = format!(
        "{} points had been done before; 1 was of another record or plan, 1 was damaged, and done again",
        files.len() - 2
    );
    assert!(message.contains(&words), "no {words:?} in {message}");
    assert!(place.path("out/study.csv").exists());
}

#[test]
fn a_study_takes_nobody_s_place() {
    let place = Place::new();
    fs::write(place.path("other.toml"), SCENE).unwrap();
    let plan = "--quiet --steps 3 --record 2..3 --ranks 1,2 --repeat 1 --policy static";
    // Each scene has its own directory unless one is named.
    for scene in ["small", "other"] {
        assert!(
            place
                .weft(&format!("study {scene}.toml {plan}"))
                .status
                .success()
        );
        assert!(
            place
                .path(&format!("runs/{scene}-study/study.csv"))
                .exists()
        );
    }
    hash_of(&place.weft("run small.toml --quiet --steps 3 --ranks 1 --record --out runs/small"));
    hash_of(&place.weft("run small.toml --quiet --steps 3 --ranks 1 --out runs/plain"));
    fs::create_dir(place.path("mine")).unwrap();
    fs::write(place.path("mine/study.csv"), "mine").unwrap();
    for (arguments, code, words) in [
        (
            format!("other.toml {plan} --out runs/small-study"),
            5,
            "holds a study of small, this one is of other",
        ),
        (
            format!("small.toml {plan} --out runs/small"),
            5,
            "holds files, but no study",
        ),
        (
            "runs/small --out runs/small".to_owned(),
            5,
            "holds files, but no study",
        ),
        (
            format!("small.toml {plan} --out mine"),
            5,
            "holds files, but no study",
        ),
        (
            "runs/plain".to_owned(),
            5,
            "`weft run SCENE --ranks 1 --record`",
        ),
        (
            "runs/small-study".to_owned(),
            5,
            "records in runs/small-study/records",
        ),
    ] {
        let before = ["runs/small-study", "runs/small", "mine"].map(|folder| place.names(folder));
        let (status, message) = place.fails(&format!("study {arguments}"));
        assert_eq!(status, code, "{arguments}: {message}");
        assert!(message.contains(words), "{arguments}: {message}");
        let after = ["runs/small-study", "runs/small", "mine"].map(|folder| place.names(folder));
        assert_eq!(before, after, "{arguments}");
    }
    // Another record of the same scene is as welcome as ever, and the scene's record where there is
    // no scene.
    let other = plan.replace("2..3", "1..2");
    assert!(
        place
            .weft(&format!("study small.toml {other}"))
            .status
            .success()
    );
    let record = "runs/small-study/records/small";
    assert!(
        place
            .weft(&format!("study {record} --quiet --ranks 1 --repeat 1"))
            .status
            .success()
    );
}

/// Runs on virtual ranks are bounded by what the record says of them.
#[test]
fn whole_runs_of_a_study_have_the_bounds_of_the_record() {
    let place = Place::new();
    let study = "study small.toml --quiet --steps 12 --record 10..12 --ranks 1,2 --repeat 1 --policy static";
    let rows = |options: &str| {
        let output = place.weft(&format!("{study} {options}"));
        assert!(output.status.success(), "{output:?}");
        study_json(&place, "out")["rows"].clone()
    };
    let full = rows("--full --out out");
    let replayed = rows("--out out");
    let (full, replayed) = (full.as_array().unwrap(), replayed.as_array().unwrap());
    assert_eq!((full.len(), replayed.len()), (12, 12));
    for (full, replayed) in full.iter().zip(replayed) {
        assert_eq!(full["work_bound_ms"], replayed["work_bound_ms"]);
        // Work that all ranks do alike takes as long on any number of them.
        assert!(full["bound"].as_f64().unwrap() > 0.9, "{full}");
        assert_eq!(full["not_computing"], Value::Null);
        let idle = replayed["not_computing"].as_f64().unwrap();
        if full["ranks"] == 1 {
            // One rank pays all that the record has of it, and no more.
            let [time, bound] =
                ["time_ms", "work_bound_ms"].map(|name| full[name].as_f64().unwrap());
            assert!(time > 0.999 * bound && idle == 0.0, "{full}");
            assert!(full["bound"].as_f64().unwrap() > 0.999, "{full}");
        } else {
            assert!(idle > 0.0, "{replayed}");
        }
    }
}
