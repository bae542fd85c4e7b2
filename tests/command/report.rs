//! `weft report`: what it says of runs, the page it writes, and what it refuses.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use super::place::{Place, hash_of, record};

const RUN: &str = "run small.toml --quiet --set output.pictures=false";

fn report(place: &Place, arguments: &str) -> String {
    let output = place.weft(&format!("report {arguments}"));
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{message}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_traced_run_is_told_whole_and_its_page_needs_nothing_else() {
    let place = Place::new();
    hash_of(&place.weft(&format!(
        "{RUN} --ranks 3 --trace --policy static --out out"
    )));
    let text = report(&place, "out");
    for words in [
        "scene small, 3 ranks x 1 worker (threads), policy static",
        "  policy  static.",
        "  in tasks    |",
        "\nother         |",
        "\n  frames      |",
        "\n  history     |",
        "Work in the traced steps, 1 to 40, without waits",
        "(POP, traced steps, no wait is useful)",
        "No rank asked another for work.",
        "Wrote out/report.html",
    ] {
        assert!(text.contains(words), "no {words:?} in\n{text}");
    }
    let page = fs::read_to_string(place.path("out/report.html")).unwrap();
    for id in [
        "summary",
        "phases",
        "timeline",
        "utilisation",
        "idle",
        "steals",
        "sizes",
        "steps",
        "patches",
        "meta",
        "blob",
    ] {
        assert!(page.contains(&format!("id=\"{id}-0\"")), "no {id}");
    }
    assert!(page.trim_end().ends_with("</html>"));
    assert!(page.contains(r#""history_phases":["collide","assemble","solve","respond","share"]"#));
    for outside in ["src=", "@import", "http://", "https://"] {
        assert!(!page.contains(outside), "the page names {outside}");
    }
    let meta = page.split("id=\"meta-0\">").nth(1).unwrap();
    let meta: Value = serde_json::from_str(meta.split("</script>").next().unwrap()).unwrap();
    // The last frame is there to be drawn, with the owner of every patch.
    assert_eq!(meta["cloth"]["step"], 40);
    assert_eq!(meta["owners"].as_array().unwrap().len(), 8);
    assert_eq!(meta["arrays"]["cloth_patches"][2], 2 * 11 * 11);
}

#[test]
fn the_record_says_what_every_rank_did() {
    let place = Place::new();
    hash_of(&place.weft(&format!("{RUN} --ranks 3 --steps 20 --out out")));
    let record = record(&place.path("out"));
    let ranks = record["ranks"].as_array().unwrap();
    let sum = |key: &str| {
        ranks
            .iter()
            .map(|rank| rank[key].as_u64().unwrap())
            .sum::<u64>()
    };
    let balance = &record["balance"];
    assert_eq!(ranks.len(), 3);
    assert_eq!(balance["tests"], sum("tests"));
    assert_eq!(balance["tasks"], sum("tasks"));
    assert_eq!(balance["steals"], sum("steals"));
    assert_eq!(balance["steal_requests"], sum("steal_requests"));
    assert_eq!(sum("tasks_in"), sum("tasks_out"));
    // Patches of ranks follow each other, and are all there are.
    let mut next = 0;
    for rank in ranks {
        assert_eq!(rank["first_patch"], next);
        next = rank["end_patch"].as_u64().unwrap();
        assert_eq!(rank["phases_s"].as_array().unwrap().len(), 5);
    }
    assert_eq!(record["partition"]["patches"], next);
    assert_eq!(record["sharing"]["steal"], true);
}

/// The number behind a word in a line.
fn after(line: &str, word: &str) -> f64 {
    let rest = line.split(word).nth(1).unwrap().trim_start();
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.');
    rest[..end.unwrap_or(rest.len())].parse().unwrap()
}

/// The end of a run, its record, reports and pages show the same efficiencies of steps.
#[test]
fn efficiencies_are_the_same_everywhere_and_outputs_are_no_part_of_them() {
    let place = Place::new();
    for ranks in [1, 3] {
        // All steps are traced: what otherwise only a trace tells stands there without one too.
        let run = format!("run small.toml --ranks {ranks} --trace --out out --overwrite");
        let said = String::from_utf8(place.weft(&run).stdout).unwrap();
        let record = record(&place.path("out"));
        let number = |value: &Value| value.as_f64().unwrap();
        let of_ranks = record["ranks"].as_array().unwrap();
        let steps = of_ranks.iter().map(|rank| {
            let phases = rank["phases_s"].as_array().unwrap();
            phases.iter().map(number).sum::<f64>()
        });
        let steps = steps.fold(0.0, f64::max);
        let useful: Vec<f64> = of_ranks.iter().map(|r| number(&r["useful_s"])).collect();
        let most = useful.iter().copied().fold(0.0, f64::max);
        assert!(most > 0.0 && most <= steps && steps < number(&record["loop_s"]));
        let e = &record["efficiency"];
        let mean = useful.iter().sum::<f64>() / useful.len() as f64;
        assert!(
            (number(&e["communication"]) - most / steps).abs() < 1e-9,
            "{e}"
        );
        assert!((number(&e["parallel"]) - mean / steps).abs() < 1e-9, "{e}");
        for rank in of_ranks {
            // One rank waits for nobody, and makes patches ready where tests ask for them.
            assert_eq!(number(&rank["waited_s"]) > 0.0, ranks > 1, "{rank}");
            assert_eq!(number(&rank["early_s"]) > 0.0, ranks > 1, "{rank}");
        }
        let text = report(&place, "out");
        let page = fs::read_to_string(place.path("out/report.html")).unwrap();
        let line = |text: &str| {
            let lines = text
                .lines()
                .filter(|line| line.contains("steps of the whole run"));
            lines.map(str::to_owned).collect::<Vec<_>>()
        };
        let [one] = &line(&said)[..] else {
            panic!("{said}")
        };
        assert_eq!(line(&text), std::slice::from_ref(one));
        assert!(page.contains(one));
        for name in ["load_balance", "communication", "parallel"] {
            let shown = name.replace('_', " ");
            let tile = format!(
                "<span class=\"value\">{:.2}</span> <span class=\"name\">{shown}, all steps<",
                number(&e[name])
            );
            assert!(page.contains(&tile), "no {tile}");
            assert!(
                (after(one, &shown) - number(&e[name])).abs() <= 0.005 + 1e-9,
                "{one}"
            );
        }
        // As the whole run was traced, its steps are the traced ones.
        let traced = text
            .lines()
            .find(|line| line.contains("(POP, traced steps"))
            .unwrap();
        let apart = after(traced, "parallel") - number(&e["parallel"]);
        assert!(apart.abs() < 0.1, "{traced}\n{one}");
    }
}

#[test]
fn runs_stand_side_by_side_and_text_alone_writes_nothing() {
    let place = Place::new();
    hash_of(&place.weft(&format!("{RUN} --ranks 2 --trace=1..5 --out a")));
    hash_of(&place.weft(&format!("{RUN} --ranks 3 --policy half --steps 10 --out b")));
    let before = place.names("a");
    let text = report(&place, "a b --text");
    assert_eq!(
        (place.names("a"), place.names(".").contains("report.html")),
        (before, false)
    );
    let ranks = text.lines().find(|line| line.starts_with("ranks")).unwrap();
    let cells: Vec<&str> = ranks.split('|').map(str::trim).collect();
    assert_eq!(cells, ["ranks", "2", "3"]);
    assert!(text.contains("note: There is no trace"), "{text}");
    report(&place, "a b --out both.html");
    let page = fs::read_to_string(place.path("both.html")).unwrap();
    assert!(page.contains("id=\"compare\"") && page.contains("id=\"run-1\""));
    report(&place, "a b");
    assert!(place.path("report.html").exists());
}

/// The trace cannot be written: all that was measured is written and printed, and what is on the
/// disk of the trace is used.
#[test]
fn a_failed_write_at_the_end_loses_no_measurement() {
    for (in_the_way, has_trace) in [("trace.json", true), ("trace/rank-00001.bin", false)] {
        let place = Place::new();
        let out = place.path("out");
        hash_of(&place.weft("run small.toml --quiet --steps 1 --ranks 2 --out out"));
        // A run that goes on keeps what is there.
        fs::create_dir_all(out.join(in_the_way)).unwrap();
        let output = place.weft("run small.toml --ranks 2 --trace --resume --steps 20 --out out");
        let message = String::from_utf8_lossy(&output.stderr);
        let said = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(5), "{message}");
        assert!(
            message.contains("error: ") && message.contains("out/trace"),
            "{message}"
        );
        for words in [
            "collide       |",
            "Balance: ",
            "not all of it could be written",
            "state hash ",
        ] {
            assert!(said.contains(words), "no {words:?} in {said}");
        }
        let record = record(&out);
        assert_eq!(record["exit"], 5);
        assert_eq!(record["result"]["steps"], 20);
        assert_eq!(record["phases"].as_array().unwrap().len(), 5);
        assert!(!out.join("trace.json").is_file());
        fs::remove_dir(out.join(in_the_way)).unwrap();
        let text = report(&place, "out --text");
        assert!(text.contains("note: The run failed: "), "{text}");
        assert!(
            text.contains("other         |") && !text.contains("did not live"),
            "{text}"
        );
        assert_eq!(
            text.contains("Work in the traced steps, 2 to 20"),
            has_trace,
            "{text}"
        );
        assert_eq!(
            text.contains("1 of 2 ranks have none"),
            !has_trace,
            "{text}"
        );
    }
}

/// Files that are damaged, cut off, or of another run: refused, or left out with a note.
#[test]
fn damaged_files_of_a_run_are_reported() {
    let place = Place::new();
    for out in ["a", "b"] {
        hash_of(&place.weft(&format!(
            "{RUN} --ranks 2 --trace=1..3 --steps 10 --out {out}"
        )));
    }
    let path = place.path("a/trace/rank-00001.bin");
    let whole = fs::read(&path).unwrap();
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 1;
    let foreign = fs::read(place.path("b/trace/rank-00001.bin")).unwrap();
    for (bytes, words) in [(flipped, "damaged"), (foreign, "of another run")] {
        fs::write(&path, bytes).unwrap();
        let (status, message) = place.fails("report a --text");
        assert_eq!(status, 5, "{message}");
        assert!(
            message.contains(words) && message.contains("rank-00001.bin"),
            "{message}"
        );
    }
    fs::write(&path, whole).unwrap();
    let history = place.path("a/history.csv");
    let rows = fs::read_to_string(&history).unwrap();
    fs::write(&history, &rows[..rows.len() - 5]).unwrap();
    let frame = place.path("a/frames/cloth.000010.vtp");
    let bytes = fs::read(&frame).unwrap();
    fs::write(&frame, &bytes[..bytes.len() / 2]).unwrap();
    let text = report(&place, "a");
    assert!(
        text.contains("note: history.csv ends with step 9 of 10"),
        "{text}"
    );
    assert!(
        text.contains("note: Pictures of the cloth are left out: "),
        "{text}"
    );
    assert!(text.contains("Work in the traced steps, 1 to 3"), "{text}");
    let page = fs::read_to_string(place.path("a/report.html")).unwrap();
    assert!(
        page.contains("Pictures of the cloth are left out")
            && !page.contains("data-draws=\"cloth\"")
    );
}

#[test]
fn a_later_run_takes_the_page_of_the_earlier_one_away() {
    let place = Place::new();
    let run = format!("{RUN} --steps 3 --out out --overwrite");
    hash_of(&place.weft(&run));
    report(&place, "out");
    assert!(place.path("out/report.html").exists());
    hash_of(&place.weft(&run));
    assert!(!place.path("out/report.html").exists());
}

#[test]
fn directories_that_cannot_be_reported_are_refused_with_the_right_code() {
    let place = Place::new();
    hash_of(&place.weft(&format!("{RUN} --ranks 2 --trace=1..2 --steps 2 --out out")));
    fs::create_dir(place.path("empty")).unwrap();
    fs::create_dir_all(place.path("foreign")).unwrap();
    fs::write(place.path("foreign/run.json"), "{}").unwrap();
    let whole = place.names(".");
    for (arguments, code, words) in [
        ("report", 2, "DIR"),
        ("report out --text --out x.html", 2, "--text"),
        ("report nowhere", 5, "run.json"),
        ("report empty", 5, "weft run --out"),
        ("report foreign", 5, "weftwork"),
        ("report out small.toml", 5, "small.toml"),
        ("report out --out nowhere/x.html", 5, "nowhere/x.html"),
        ("report out --out empty", 5, "name another place"),
    ] {
        let (status, message) = place.fails(arguments);
        assert_eq!(status, code, "{arguments}: {message}");
        assert!(message.contains(words), "{arguments}: {message}");
    }
    assert_eq!(place.names("."), whole);
    assert_eq!(place.names("empty"), BTreeSet::new());
    fs::write(place.path("out/trace/rank-00001.bin"), "weft-trace 9\n").unwrap();
    let (status, message) = place.fails("report out");
    assert_eq!(status, 5);
    assert!(
        message.contains("rank-00001.bin") && message.contains("--trace"),
        "{message}"
    );
}
