//! Tests of memory: what is foreseen, what is counted, and what is refused.

use std::process::{Command, Output};

use serde_json::Value;

use crate::place::{Place, SCENE, record};

fn sum(parts: &Value) -> u64 {
    let parts = parts.as_array().unwrap().iter();
    parts.map(|part| part["bytes"].as_u64().unwrap()).sum()
}

/// A sheet of 40,000 vertices that falls on a sphere, and one that is small, in one step each: the
/// difference is the growth by data, for the program itself and its threads are in both. The peak
/// is larger than what is counted, for the set-up and frames take room that is free again.
#[test]
#[cfg(target_os = "linux")]
fn counted_memory_is_most_of_the_growth_that_the_system_sees() {
    let place = Place::new();
    let peak_and_counted = |vertices: usize, ranks: usize| {
        let thickness = 0.4 / (vertices as f64 - 1.0);
        let out = format!("out{vertices}-{ranks}");
        let ran = place.weft(&format!(
            "run drape-free --steps 1 --ranks {ranks} --out {out} --quiet --set output.pictures=false \
             --set cloth.sheet.grid.vertices={vertices} --set contact.thickness={thickness}"
        ));
        assert!(ran.status.success(), "{ran:?}");
        let record = record(&place.path(&out));
        let ranks = record["ranks"].as_array().unwrap();
        let of_ranks: u64 = ranks.iter().map(|rank| sum(&rank["memory"])).sum();
        let peak = ranks[0]["peak_memory_bytes"].as_u64().unwrap();
        (
            peak as f64,
            (sum(&record["world_memory"]) + of_ranks) as f64,
        )
    };
    for ranks in [1, 3] {
        let small = peak_and_counted(40, ranks);
        let large = peak_and_counted(200, ranks);
        let counted = (large.1 - small.1) / (large.0 - small.0);
        assert!((0.8..1.05).contains(&counted), "{ranks} ranks: {counted}");
    }
}

#[test]
fn the_memory_of_each_rank_is_told_before_a_run() {
    let place = Place::new();
    let text = |output: Output| String::from_utf8(output.stdout).unwrap();
    let told = text(place.weft("check small.toml --ranks 3"));
    assert!(
        told.contains("# memory with 3 ranks, before contacts"),
        "{told}"
    );
    for line in [
        "# world: cloth model ",
        "matrix ",
        "# one process with all 3 ranks ",
    ] {
        assert!(told.contains(line), "{line}: {told}");
    }
    // The whole is still a scene.
    assert!(told.parse::<toml::Table>().is_ok(), "{told}");
    let report: Value =
        serde_json::from_str(&text(place.weft("check small.toml --ranks 3 --json"))).unwrap();
    let memory = &report["memory"];
    let of_ranks = memory["of_ranks"].as_array().unwrap();
    assert_eq!(of_ranks.len(), 3);
    let vertices = of_ranks
        .iter()
        .map(|rank| rank["vertices"].as_u64().unwrap());
    assert_eq!(vertices.sum::<u64>(), 144);
    for rank in of_ranks {
        assert_eq!(sum(&rank["parts"]), rank["bytes"].as_u64().unwrap());
    }
    let all: u64 = of_ranks.iter().map(|rank| sum(&rank["parts"])).sum();
    // A run frees one part of the world when its ranks are set up.
    let of_world = memory["world"].as_array().unwrap();
    let mut freed = of_world
        .iter()
        .filter(|part| part["part"] == "set-up of ranks");
    let freed = freed.next().unwrap()["bytes"].as_u64().unwrap();
    let world = sum(&memory["world"]) - freed;
    assert!(freed > 0);
    assert_eq!(memory["all_ranks_bytes"].as_u64().unwrap(), world + all);
    assert!(memory["process_bytes"].as_u64().unwrap() < world + all);
    assert!(memory["contact_bytes"].as_u64().unwrap() > 0);
    assert_eq!(place.fails("check small.toml --ranks 9").0, 3);
    assert!(
        text(place.weft("check small.toml --json"))
            .find("\"memory\"")
            .is_none()
    );
}

#[test]
fn a_scene_that_will_not_fit_is_refused_before_anything_is_written() {
    let place = Place::new();
    for command in [
        "run small.toml --ranks 2 --out out --memory 10MB",
        "certify small.toml --keep out --memory 10MB",
        "check small.toml --memory 10MB",
    ] {
        let (code, message) = place.fails(command);
        assert_eq!(code, 3, "{command}: {message}");
        for told in ["10 MB: that was asked for", "--memory any"] {
            assert!(message.contains(told), "{command}: {message}");
        }
        assert!(!place.path("out").exists(), "{command}");
    }
    let by_environment = |arguments: &str| {
        let mut command = place.command(arguments);
        command.env("WEFT_MEMORY", "10MB").output().unwrap()
    };
    assert_eq!(
        by_environment("partition small.toml").status.code(),
        Some(3)
    );
    let any = by_environment("run small.toml --steps 1 --out out --memory any");
    assert!(any.status.success(), "{any:?}");
    assert_eq!(place.fails("check small.toml --memory lots").0, 2);
    let mut bad = place.command("check small.toml");
    let bad = bad.env("WEFT_MEMORY", "lots").output().unwrap();
    assert_eq!(bad.status.code(), Some(2));
}

/// The mesh alone would take more than a gigabyte if it was made.
#[test]
fn grids_that_do_not_fit_are_refused_before_they_are_made() {
    let place = Place::with(&SCENE.replace("vertices = 12", "vertices = 4000"));
    let (code, message) = place.fails("check small.toml --memory 1GB");
    assert_eq!(code, 3, "{message}");
    assert!(message.contains("16000000 vertices"), "{message}");
    assert!(message.contains("at most 540000 vertices"), "{message}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_limit_of_the_address_space_is_heeded() {
    let place = Place::with(&SCENE.replace("vertices = 12", "vertices = 2000"));
    let weft = env!("CARGO_BIN_EXE_weft");
    let script = format!("ulimit -v 2000000 && exec {weft} run small.toml --out out");
    let output = Command::new("sh")
        .args(["-c", &script])
        .current_dir(place.path("."))
        .output()
        .unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3), "{message}");
    assert!(message.contains("ulimit -v"), "{message}");
    assert!(!place.path("out").exists());
}
