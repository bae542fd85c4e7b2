//! `weft compare`: the same run on other ranks is the same, another is not, and it says where they
//! part.

use std::fs;

use crate::place::{Place, hash_of};

const RUN: &str = "run small.toml --quiet --set output.pictures=false";

#[test]
fn a_run_on_other_ranks_is_the_same() {
    let place = Place::new();
    let hash = hash_of(&place.weft(&format!("{RUN} --ranks 1 --out a")));
    hash_of(&place.weft(&format!(
        "{RUN} --ranks 3 --seed 9 --progress-thread --out b"
    )));
    let output = place.weft("compare a b");
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(
        text.contains(&format!("same     state hash {hash} after 40 steps")),
        "{text}"
    );
    assert!(
        text.contains("same     frames: positions in all 5 of both"),
        "{text}"
    );
    assert!(!text.contains("differs"), "{text}");
}

/// Ranks that know only some vertices leave out fewer tests, and nothing else is different.
#[test]
fn a_run_on_ranks_that_subscribe_is_the_same() {
    let place = Place::new();
    let hash = hash_of(&place.weft(&format!("{RUN} --ranks 1 --out a")));
    hash_of(&place.weft(&format!(
        "{RUN} --ranks 4 --set partition.state=subscribed --out b"
    )));
    let text = String::from_utf8(place.weft("compare a b").stdout).unwrap();
    for same in [
        format!("same     state hash {hash} after 40 steps"),
        "same     frames: positions in all 5 of both".to_owned(),
        "columns that differ: tests)".to_owned(),
    ] {
        assert!(text.contains(&same), "{same} in {text}");
    }
}

/// Earlier programs hash the same state to another number, and do not say by which definition.
#[test]
fn state_hashes_of_different_versions_are_left_out() {
    let place = Place::new();
    for name in ["a", "b"] {
        hash_of(&place.weft(&format!("{RUN} --steps 10 --out {name}")));
    }
    let path = place.path("b/run.json");
    let record = fs::read_to_string(&path).unwrap();
    let (version, hash) = ("\"hash_version\": 2,", "\"hash\": \"");
    assert!(
        record.contains(version) && record.contains(hash),
        "{record}"
    );
    let (before, after) = record.split_once(hash).unwrap();
    let earlier = format!("{before}{hash}0123456789abcdef{}", &after[16..]);
    fs::write(&path, earlier.replace(version, "")).unwrap();
    let output = place.weft("compare a b");
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.contains("state hashes of versions 2 and 1"), "{text}");
    assert!(!text.contains("differs"), "{text}");
}

#[test]
fn a_run_of_another_cloth_parts_and_it_says_where() {
    let place = Place::new();
    hash_of(&place.weft(&format!("{RUN} --ranks 2 --out a")));
    hash_of(&place.weft(&format!(
        "{RUN} --ranks 2 --out b --set cloth.material.bending=2e-5"
    )));
    let output = place.weft("compare a b");
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(6), "{text}");
    assert!(text.contains("differs  state hash: "), "{text}");
    assert!(text.contains("differs  history: from step "), "{text}");
    assert!(
        text.contains("differs  frames: positions from cloth.0000"),
        "{text}"
    );
    assert!(text.contains(" m at vertex "), "{text}");
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.starts_with("error: a and b differ"), "{message}");

    // Cloth of 30 cm is not a metre apart, nor the same to the micrometre.
    let output = place.weft("compare a b --tolerance 1");
    assert_eq!(output.status.code(), Some(0));
    let (code, message) = place.fails("compare a b --tolerance 1e-9");
    assert!(code == 6 && message.contains("more than 1e-9"), "{message}");
}

#[test]
fn runs_that_cannot_be_compared_are_an_error_of_files_or_usage() {
    let place = Place::new();
    hash_of(&place.weft(&format!("{RUN} --ranks 1 --out a")));
    let (code, message) = place.fails("compare a nowhere");
    assert!(code == 5 && message.contains("run.json"), "{message}");
    let (code, message) = place.fails("compare a");
    assert!(code == 2 && message.contains("<B>"), "{message}");
    let (code, _) = place.fails("compare a a --tolerance -1");
    assert_eq!(code, 2);
    let frame = place.path("a/frames/cloth.000020.vtp");
    let whole = fs::read(&frame).unwrap();
    fs::write(&frame, &whole[..whole.len() / 2]).unwrap();
    let (code, message) = place.fails("compare a a");
    assert!(
        code == 5 && message.contains("cloth.000020.vtp"),
        "{message}"
    );
    fs::write(place.path("a/history.csv"), "step,contacts\n1,2\n2\n").unwrap();
    let (code, message) = place.fails("compare a a");
    assert!(code == 5 && message.contains("row 2"), "{message}");
}
