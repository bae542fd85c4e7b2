//! Directories that are whole, half written, damaged, or somebody else's.

#![allow(clippy::unwrap_used, reason = "a test without its files has failed")]

mod made;

use std::fs;

use tempfile::TempDir;
use weft_report::{Report, Run};
use weft_runtime::trace::Timeline;

fn place() -> TempDir {
    let root = tempfile::tempdir().unwrap();
    made::directory(root.path(), &made::two_ranks(), "0");
    root
}

fn text(root: &TempDir) -> String {
    Report::new(vec![Run::read(root.path()).unwrap()]).text()
}

fn error(root: &TempDir) -> String {
    Run::read(root.path()).unwrap_err().to_string()
}

#[test]
fn a_whole_run_is_told_whole() {
    let text = text(&place());
    for words in [
        "scene made, 2 ranks x 1 worker (threads), policy paper",
        "collide       |   1.00 s   (0) |   1.50 s |   2.00 s   (1) |        33.3 |    75.0",
        "Work in the traced steps, 7 to 7, without waits",
        "load balance 0.85, communication 0.80, parallel 0.68",
        "5.0 % waiting for an answer",
        "2 requests: 1 brought tasks, 2 (100 %) were refused",
        "Ranks sent 100 bytes for that.",
        "the most went from rank 0 to rank 1: 1 task, each answer after 100 ns",
    ] {
        assert!(text.contains(words), "no {words:?} in\n{text}");
    }
    assert!(!text.contains("note:"), "{text}");
}

#[test]
fn without_a_trace_it_says_how_to_get_one() {
    let root = place();
    fs::remove_dir_all(root.path().join("trace")).unwrap();
    let text = text(&root);
    assert!(
        text.contains("note: There is no trace: run again with `--trace`"),
        "{text}"
    );
    assert!(text.contains("not known without a trace"), "{text}");
    assert!(
        text.contains("weft run made.toml --set 'time.end=1 s' --ranks 2 --trace=1..7"),
        "{text}"
    );
}

#[test]
fn a_killed_run_is_told_as_far_as_it_goes() {
    let root = tempfile::tempdir().unwrap();
    made::directory(root.path(), &made::two_ranks(), "null");
    let history = root.path().join("history.csv");
    let torn = fs::read_to_string(&history).unwrap() + "8,1";
    fs::write(&history, torn).unwrap();
    let text = text(&root);
    assert!(text.contains("killed or still goes on"), "{text}");
    assert!(text.contains("history of 1 steps"), "{text}");
    assert!(text.contains("no checkpoint to go on from"), "{text}");
    // Nothing is measured of waits, but how long phases took is.
    let path = root.path().join("run.json");
    let mut record: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    for key in ["balance", "phases", "ranks", "loop_s"] {
        record.as_object_mut().unwrap().remove(key);
    }
    fs::write(&path, record.to_string()).unwrap();
    let text = self::text(&root);
    for words in [
        "phase   respond, by time alone",
        "By history.csv",
        "respond 40 %, solve 30 %, collide 20 %, assemble 10 %",
    ] {
        assert!(text.contains(words), "no {words:?} in\n{text}");
    }
}

#[test]
fn a_trace_that_lacks_a_rank_is_left_out() {
    let root = place();
    fs::remove_file(root.path().join("trace/rank-00001.bin")).unwrap();
    let text = text(&root);
    assert!(text.contains("1 of 2 ranks have none"), "{text}");
}

/// A run that went on in the directory without `--trace` leaves the files of the one before.
#[test]
fn a_trace_of_another_run_is_not_taken_for_this_one() {
    let root = tempfile::tempdir().unwrap();
    made::directory(root.path(), &made::two_ranks(), "null");
    let record = root.path().join("run.json");
    let text_of_record = fs::read_to_string(&record).unwrap();
    fs::write(
        &record,
        text_of_record.replace("\"exit\": null", "\"exit\": 0"),
    )
    .unwrap();
    let text = text(&root);
    assert!(text.contains("one of an earlier run"), "{text}");
    assert!(!text.contains("Work in the traced steps"), "{text}");
}

#[test]
fn events_without_room_are_told() {
    let root = tempfile::tempdir().unwrap();
    let mut timelines = made::two_ranks();
    timelines[1].dropped = 12;
    made::directory(root.path(), &timelines, "0");
    let text = text(&root);
    assert!(text.contains("12 events found no room"), "{text}");
    // Its only step has a gap. The numbers from it are marked, and the only advice is to record
    // less.
    for words in [
        "no step is whole on all ranks",
        "`--trace=7`; if",
        "without waits (incomplete trace)",
        "no wait is useful (incomplete trace))",
        "Idle (incomplete trace): ",
        "By a trace that is incomplete: Ranks spend",
        "In the traced steps (incomplete trace) the most",
    ] {
        assert!(text.contains(words), "no {words:?} in\n{text}");
    }
    // Once, though the run has warned of it as well.
    let path = root.path().join("run.json");
    let warned =
        r#""warnings": ["12 events of the trace found no room, those that came last"], "ranks""#;
    let record = fs::read_to_string(&path).unwrap();
    fs::write(
        &path,
        record.replacen("\"ranks\": [", &format!("{warned}: ["), 1),
    )
    .unwrap();
    let again = Report::new(vec![Run::read(root.path()).unwrap()]).text();
    assert_eq!(again, text);
    let runs = [&root, &place()].map(|root| Run::read(root.path()).unwrap());
    let text = Report::new(runs.into()).text();
    assert!(text.contains("5.0 % (incomplete trace) |"), "{text}");
}

/// The trace of rank 1 has room for only some of twenty steps like that of [`made::two_ranks`].
/// Figures and advice are of the steps that are whole.
#[test]
fn figures_of_a_trace_that_ran_out_of_room_are_of_steps_that_are_whole() {
    let write = |steps: u32| {
        let root = tempfile::tempdir().unwrap();
        let whole = made::two_ranks();
        let rooms = [1 << 20, if steps == 20 { 130 } else { 1 << 20 }];
        let timelines: Vec<Timeline> = whole
            .iter()
            .zip(rooms)
            .map(|(of, room)| {
                let (rank, kinds) = (of.rank, of.kinds.clone());
                let mut timeline = Timeline::new(rank, kinds, Vec::new(), room);
                for step in 1..=steps {
                    let later = u64::from(step) * 1000;
                    let events: Vec<_> = (of.scopes[0].1.events.iter())
                        .map(|event| (event.at + later, event.what))
                        .collect();
                    made::bounded_scope(&mut timeline, step.into(), &events);
                    for span in &of.spans {
                        let number = if span.kind == made::STEP {
                            step
                        } else {
                            span.detail
                        };
                        let (begin, end) = (span.begin + later, span.end + later);
                        made::span(&mut timeline, span.kind, begin, end, number);
                    }
                }
                timeline
            })
            .collect();
        made::directory(root.path(), &timelines, "0");
        (root, timelines)
    };
    let (root, timelines) = write(20);
    let (first, last) = Timeline::whole(&timelines).unwrap();
    assert!(first == 1 && (2..9).contains(&last), "{last}");
    let told = text(&root);
    let note = format!("Steps 1 to {last} are whole on all ranks");
    let fits = format!("`--trace=1..{}` traces", (9 * last / 10).max(1));
    for words in [&*note, &*fits] {
        assert!(told.contains(words), "no {words:?} in\n{told}");
    }
    assert!(!told.contains("incomplete"), "{told}");
    // As if no more had been traced.
    let (short, _) = write(u32::try_from(last).unwrap());
    let from = |text: &str| {
        text.split_once("Work in the traced steps")
            .unwrap()
            .1
            .to_owned()
    };
    assert_eq!(from(&told), from(&text(&short)));
}

/// The row of the table and the sentence below it are of the same time.
#[test]
fn idle_time_is_one_number() {
    let text = text(&place());
    let row = text.lines().find(|line| line.starts_with("idle ")).unwrap();
    let share: f64 = row.rsplit('|').next().unwrap().trim().parse().unwrap();
    let said = text
        .lines()
        .find(|line| line.starts_with("Idle: "))
        .unwrap();
    let (number, _) = said["Idle: ".len()..].split_once(' ').unwrap();
    assert!(
        (share - number.parse::<f64>().unwrap()).abs() < 0.5,
        "{row}\n{said}"
    );
}

#[test]
fn directories_that_are_no_run_are_refused_with_advice() {
    let root = tempfile::tempdir().unwrap();
    assert!(error(&root).contains("weft run --out"));
    fs::write(root.path().join("study.json"), "{}").unwrap();
    assert!(error(&root).contains("directory of a study"));
    fs::remove_file(root.path().join("study.json")).unwrap();
    for (record, words) in [
        ("{", "EOF"),
        ("[]", "weftwork"),
        (r#"{"schema": 1}"#, "weftwork"),
        (
            r#"{"schema": 2, "program": {"name": "weftwork"}}"#,
            "schema 2",
        ),
        (
            r#"{"schema": 1, "program": {"name": "weftwork"}, "machine": 7}"#,
            "invalid type",
        ),
        (
            r#"{"schema": 1, "program": {"name": "weftwork"}}"#,
            "0 ranks",
        ),
    ] {
        fs::write(root.path().join("run.json"), record).unwrap();
        let error = error(&root);
        assert!(
            error.contains(words) && error.contains("run.json"),
            "{error}"
        );
    }
    let file = root.path().join("run.json");
    assert!(
        Run::read(&file)
            .unwrap_err()
            .to_string()
            .contains("no run's directory")
    );
}

#[test]
fn traces_of_other_versions_and_damaged_ones_are_refused() {
    let root = place();
    let path = root.path().join("trace/rank-00001.bin");
    let whole = fs::read(&path).unwrap();
    let other = String::from_utf8_lossy(&whole[..13]).replace('2', "9");
    let damaged: Vec<(Vec<u8>, &str)> = vec![
        ([other.as_bytes(), &whole[13..]].concat(), "weft-trace 2"),
        (whole[..whole.len() / 2].to_vec(), "ended too early"),
        (Vec::new(), "weft-trace 2"),
        (
            fs::read(root.path().join("trace/rank-00000.bin")).unwrap(),
            "rank 0",
        ),
    ];
    for (bytes, words) in damaged {
        fs::write(&path, bytes).unwrap();
        let error = error(&root);
        for word in [words, "rank-00001.bin", "--trace"] {
            assert!(error.contains(word), "no {word} in {error}");
        }
    }
}

/// A single bit, and the files of another run.
#[test]
fn damage_and_traces_of_other_runs_are_refused() {
    let root = place();
    let path = root.path().join("trace/rank-00001.bin");
    let whole = fs::read(&path).unwrap();
    for at in [14, whole.len() / 2, whole.len() - 20, whole.len() - 1] {
        let mut damaged = whole.clone();
        damaged[at] ^= 4;
        fs::write(&path, damaged).unwrap();
        let error = error(&root);
        assert!(
            error.contains("damaged") && error.contains("rank-00001.bin"),
            "{error}"
        );
    }
    fs::write(&path, whole).unwrap();
    let record = root.path().join("run.json");
    let other = fs::read_to_string(&record).unwrap();
    fs::write(
        &record,
        other.replace(r#""run": "made""#, r#""run": "other""#),
    )
    .unwrap();
    let error = error(&root);
    assert!(
        error.contains("of another run") && error.contains("--trace"),
        "{error}"
    );
}

/// A run that came to its end knows how many steps it took.
#[test]
fn a_history_that_was_cut_off_is_told_of() {
    let root = place();
    let record = root.path().join("run.json");
    let result = r#""result": {"hash": "0", "vertices": 9, "steps": 3}, "ranks": ["#;
    let text_of_record = fs::read_to_string(&record).unwrap();
    fs::write(&record, text_of_record.replacen("\"ranks\": [", result, 1)).unwrap();
    let header = "step,tests,steals,physics_s,collide_s,solve_s,response_s\n";
    let row = |step: u32| format!("{step},24,1,0.1,0.2,0.3,0.4\n");
    let history = |rows: &str| {
        fs::write(root.path().join("history.csv"), format!("{header}{rows}")).unwrap();
        text(&root)
    };
    let whole = [1, 2, 3].map(row).concat();
    assert!(!history(&whole).contains("note:"));
    // In the middle of the last line, after one, of the first, and between two.
    assert!(history(&whole[..whole.len() - 3]).contains("history.csv ends with step 2 of 3"));
    assert!(history(&row(1)).contains("history.csv ends with step 1 of 3"));
    assert!(history("").contains("history.csv has none of 3 steps"));
    assert!(history(&[1, 3].map(row).concat()).contains("lacks steps in 1 places"));
    fs::remove_file(root.path().join("history.csv")).unwrap();
    assert!(text(&root).contains("history.csv has none of 3 steps"));
}

/// All is measured, and the trace is being written, or was when the run was killed.
#[test]
fn a_run_that_was_killed_while_it_wrote_its_trace_is_told_whole() {
    let root = place();
    let record = root.path().join("run.json");
    let result = r#""result": {"hash": "0", "vertices": 9, "steps": 7}, "ranks": ["#;
    let text_of_record = fs::read_to_string(&record).unwrap();
    let killed = text_of_record.replacen("\"ranks\": [", result, 1);
    fs::write(&record, killed.replace("\"exit\": 0", "\"exit\": null")).unwrap();
    let whole = text(&root);
    assert!(whole.contains("while it writes its trace"), "{whole}");
    assert!(whole.contains("Work in the traced steps"), "{whole}");
    fs::remove_file(root.path().join("trace/rank-00000.bin")).unwrap();
    let without = text(&root);
    assert!(
        without.contains("1 of 2 ranks have none") && without.contains("collide  "),
        "{without}"
    );
}

#[test]
fn times_beyond_all_clocks_are_refused() {
    let root = tempfile::tempdir().unwrap();
    let mut timelines = made::two_ranks();
    made::span(&mut timelines[1], made::SOLVE, 0, u64::MAX, 0);
    made::directory(root.path(), &timelines, "0");
    assert!(error(&root).contains("no clock"));
}

#[test]
fn a_history_that_is_none_is_refused() {
    let root = place();
    fs::write(root.path().join("history.csv"), "a,b\n1,2\n").unwrap();
    assert!(error(&root).contains("history.csv"));
}

#[test]
fn several_runs_stand_side_by_side() {
    let (a, b) = (place(), place());
    let mut idle: Vec<Timeline> = (0..2).map(made::empty).collect();
    for timeline in &mut idle {
        made::span(timeline, made::SOLVE, 0, 10, 0);
        made::span(timeline, made::STEP, 0, 10, 1);
    }
    made::directory(b.path(), &idle, "0");
    let runs = [&a, &b].map(|root| Run::read(root.path()).unwrap());
    let text = Report::new(runs.into()).text();
    let cells = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name)).unwrap();
        let cells = line.split('|').skip(1);
        cells.map(|cell| cell.trim().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(cells("policy"), ["paper", "not recorded"]);
    assert_eq!(cells("  refused"), ["2", "2"]);
    assert_eq!(cells("waiting for an answer"), ["5.0 %", "0 %"]);
}
