//! Tests of `weft prepare` and of scenes that take their world, or their cut, from a file.

use std::fs;

use crate::place::Place;

/// The state hash in what a run prints at its end.
fn hash(output: &std::process::Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("state hash "));
    line.unwrap_or_else(|| panic!("{text}{told}")).to_owned()
}

#[test]
fn a_run_of_a_prepared_cut_ends_with_the_same_hash_and_goes_on_without_it() {
    let place = Place::new();
    let expected = hash(&place.weft("run small.toml --steps 4 --out plain"));
    let prepared = place.weft("prepare small.toml --cut");
    let told = String::from_utf8(prepared.stdout).unwrap();
    assert!(
        told.contains("Wrote small.cut: the cut of 144 vertices in 8 patches"),
        "{told}"
    );
    let set = "--set partition.file=small.cut";
    let one = place.weft(&format!("run small.toml --steps 4 --out cut {set}"));
    assert_eq!(hash(&one), expected);
    // A run goes on with the file or without it, and where the file is another's.
    let half = place.weft(&format!(
        "run small.toml --steps 2 --ranks 2 --out half {set}"
    ));
    assert_eq!(half.status.code(), Some(0));
    let rest = place.weft("run small.toml --steps 4 --out half --resume");
    assert_eq!(hash(&rest), expected);
    // Once more, over the file that is there.
    assert_eq!(
        place.weft("prepare small.toml --cut").status.code(),
        Some(0)
    );
}

#[test]
fn a_run_of_a_prepared_world_ends_with_the_same_hash_on_any_ranks() {
    let place = Place::new();
    let expected = hash(&place.weft("run small.toml --steps 4 --out plain"));
    let prepared = place.weft("prepare small.toml");
    let told = String::from_utf8(prepared.stdout).unwrap();
    assert!(
        told.contains("Wrote small.world: 144 vertices in 8 patches"),
        "{told}"
    );
    let set = "--set partition.file=small.world";
    for ranks in [1, 3] {
        let run = format!("run small.toml --steps 4 --ranks {ranks} --out of{ranks} {set}");
        assert_eq!(hash(&place.weft(&run)), expected);
    }
    // A run goes on without the file, and steps may be others than those it was made with.
    let half = format!("run small.toml --steps 2 --ranks 2 --out half {set}");
    assert_eq!(place.weft(&half).status.code(), Some(0));
    let rest = place.weft("run small.toml --steps 4 --out half --resume");
    assert_eq!(hash(&rest), expected);
    let other = format!("run small.toml --steps 1 --out other {set} --set time.step=1ms");
    assert_eq!(place.weft(&other).status.code(), Some(0));
    let told = place.weft(&format!("check small.toml --ranks 2 {set}"));
    let told = String::from_utf8(told.stdout).unwrap();
    assert!(
        told.contains("an MPI process that maps the world"),
        "{told}"
    );
    // It is refused for another scene, and nothing is written.
    let other = format!("run small.toml --out no {set} --set contact.thickness=0.003");
    let refused = place.weft(&other);
    let told = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(3), "{told}");
    assert!(
        told.contains("small.world") && told.contains("thickness"),
        "{told}"
    );
    assert!(!place.path("no").exists());
}

#[test]
fn files_that_are_no_cut_of_the_scene_are_refused_and_left_alone() {
    let place = Place::new();
    let fails = |line: &str, code: i32| {
        let output = place.weft(line);
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{line}: {told}");
        told
    };
    let told = fails("run small.toml --out out --set partition.file=none.cut", 3);
    assert!(
        told.contains("none.cut") && told.contains("weft prepare"),
        "{told}"
    );
    fs::write(place.path("notes.txt"), "my notes, and no cut").unwrap();
    let told = fails("prepare small.toml --out notes.txt", 2);
    assert!(
        told.contains("notes.txt is there and is no prepared scene"),
        "{told}"
    );
    assert_eq!(
        fs::read_to_string(place.path("notes.txt")).unwrap(),
        "my notes, and no cut"
    );
    let told = fails("run small.toml --out out --set partition.file=notes.txt", 3);
    assert!(told.contains("notes.txt is no prepared cut"), "{told}");
    place.weft("prepare small.toml --cut --out a.cut");
    let other = "run small.toml --out out --set partition.file=a.cut --set cloth.grid.vertices=14";
    let told = fails(other, 3);
    assert!(told.contains("was made of another mesh"), "{told}");
    assert!(!place.path("out").exists());
    let told = fails("prepare small.toml --out none/a.cut", 5);
    assert!(told.contains("a.cut"), "{told}");
}
