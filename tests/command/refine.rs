//! `weft refine`: what it writes, that nothing crosses in it, and what it refuses.

use std::fs;

use serde_json::Value;

use crate::place::{Place, hash_of, record};

const RUN: &str = "run small.toml --quiet --ranks 1 --set output.pictures=false --out out";

/// The files of a directory that frames are in.
fn frames(place: &Place, directory: &str) -> Vec<(String, Vec<u8>)> {
    let names = place.names(&format!("{directory}/frames"));
    let read = |name: String| {
        let file = place.path(directory).join("frames").join(&name);
        (name, fs::read(file).unwrap())
    };
    names.into_iter().map(read).collect()
}

#[test]
fn refined_frames_are_a_run_that_is_audited_exported_and_the_same_on_any_number_of_threads() {
    let place = Place::new();
    hash_of(&place.weft(RUN));
    let before = frames(&place, "out");
    let output = place.weft("refine out --out fine --levels 2 --threads 1 --format usd,pc2 --up y");
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.contains("Wrote 5 frames of out into fine"), "{text}");
    assert!(frames(&place, "out") == before, "the run is as it was");

    let [of_run, of_fine] = ["out", "fine"].map(|directory| record(&place.path(directory)));
    assert_eq!(of_fine["exit"], 0);
    let refined = &of_fine["refined"];
    assert_eq!(refined["from"], "out");
    assert_eq!(refined["levels"], 2);
    assert_eq!(refined["frames"], 5);
    // 144 vertices in a grid of 12, which has 11 squares, 22 and 44 a side.
    assert_eq!(of_fine["frames"]["cloths"][0]["vertices"], 45 * 45);
    assert_eq!(refined["new"], 5 * (45 * 45 - 144));
    assert_eq!(of_fine["bodies"], of_run["bodies"]);
    assert!(place.path("fine/exports/small.usda").is_file());
    assert!(place.path("fine/exports/napkin.pc2").is_file());

    let audit = place.weft("audit fine --strict --json");
    assert_eq!(audit.status.code(), Some(0));
    let audit: Value = serde_json::from_slice(&audit.stdout).unwrap();
    assert_eq!(audit["frames"], 5, "{audit}");
    // It can be refined again, and looked at.
    let again = place.weft("refine fine --out finer --frames 1..3 --every 2 --quiet");
    assert_eq!(again.status.code(), Some(0));
    assert_eq!(record(&place.path("finer"))["refined"]["frames"], 2);
    let view = place.weft("view fine --out fine.html");
    assert_eq!(view.status.code(), Some(0));

    let before = frames(&place, "fine");
    let output = place.weft("refine out --out fine --levels 2 --threads 2 --overwrite");
    assert_eq!(output.status.code(), Some(0));
    assert!(frames(&place, "fine") == before);
    assert!(!place.path("fine/exports/small.usda").exists());
}

#[test]
fn runs_that_cannot_be_refined_are_refused_and_nothing_is_replaced() {
    let place = Place::new();
    hash_of(&place.weft(RUN));
    hash_of(&place.weft(&RUN.replace("--out out", "--out other --set output.frames=false")));
    fs::create_dir(place.path("mine")).unwrap();
    fs::write(place.path("mine/notes.txt"), "mine").unwrap();
    let before = frames(&place, "out");
    for (arguments, code, words) in [
        ("refine out --out out --overwrite", 2, "the run itself"),
        ("refine out --out ./out", 2, "the run itself"),
        ("refine out --out other", 5, "holds a run"),
        ("refine out --out mine --overwrite", 5, "is not empty"),
        ("refine other --out fine", 5, "no frames"),
        ("refine none --out fine", 5, "none"),
        ("refine out", 2, "--out"),
        ("refine out --out fine --levels 4", 2, "4"),
        ("refine out --out fine --frames 9..", 2, "5 frames, 0 to 4"),
        ("refine out --out fine --frames 3..1", 2, "10..20"),
        ("refine out --out fine --every 0", 2, "from 1 on"),
        ("refine out --out fine --format vtp", 2, "vtp"),
    ] {
        let (found, message) = place.fails(arguments);
        assert_eq!(found, code, "{arguments}: {message}");
        assert!(message.contains(words), "{arguments}: {message}");
    }
    assert!(!place.path("fine").exists());
    assert!(frames(&place, "out") == before);
    assert_eq!(fs::read(place.path("mine/notes.txt")).unwrap(), b"mine");

    // A frame that is cut off ends it: what was done before is there, and the record says why.
    let cut = place.path("out/frames/cloth.000020.vtp");
    let whole = fs::read(&cut).unwrap();
    fs::write(&cut, &whole[..whole.len() / 2]).unwrap();
    let (code, message) = place.fails("refine out --out fine");
    assert!(
        code == 5 && message.contains("cloth.000020.vtp"),
        "{message}"
    );
    let names = place.names("fine/frames");
    assert!(names.contains("cloth.000010.vtp") && !names.contains("cloth.000020.vtp"));
    let failed = record(&place.path("fine"));
    assert_eq!(failed["exit"], 5);
    assert!(failed["error"].as_str().unwrap().contains("000020"));
    fs::write(&cut, whole).unwrap();
    let output = place.weft("refine out --out fine --overwrite");
    assert_eq!(output.status.code(), Some(0));
}
