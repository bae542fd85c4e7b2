//! `weft study`: a scene is recorded once and replayed often; what cannot be studied is refused before any work.

use std::fs;

use crate::place::{Place, SCENE, hash_of, record};

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

/// What an earlier plan has drawn is not left beside the plots of the next, but for what is not the study's or not any more.
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

#[test]
fn what_cannot_be_studied_is_refused() {
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
        ("study small.toml --slower 0", 2, "above 0"),
        (
            "study small.toml --steps 2 --quiet --ranks 64",
            2,
            "partition.patches=64",
        ),
        ("study none.weftrec", 5, "none.weftrec"),
        ("study small.toml --copies 3", 2, "power of two"),
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
    fs::write(place.path("bad.weftrec"), "not a record").unwrap();
    let (status, message) = place.fails("study bad.weftrec");
    assert_eq!(status, 5);
    assert!(message.contains("no record of a run"), "{message}");
}

/// The study that a report suggests has the policy that ran, also one without a name, and is of the steps that were looked at.
#[test]
fn the_study_that_a_report_suggests_compares_what_ran() {
    let place = Place::new();
    let run = "--ranks 4 --comm virtual --steps 14 --quiet --set output.pictures=false --out out";
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
        for words in [
            "--record 8..12 --steps 12",
            network,
            "--ranks 4 ",
            "forecast-static",
        ] {
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

/// What a point of a study on this machine runs is the policy that the table names, whatever the scene says of it.
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
