//! Scenes that are judged: cloth that is thrown, with certification and without.

use super::*;
use crate::memory::Limit;
use crate::output::StateHash;

/// Two sheets that fly at each other; `more` stands at the end of the scene.
fn thrown(speed: f64, certify: bool, more: &str) -> Scene {
    let sheet = |name: &str, height: f64, velocity: f64, turn: f64| {
        format!(
            "[[cloth]]\nname = \"{name}\"\ngrid = {{ size = 0.2, vertices = 10 }}\n\
             center = [0.003, 0.002, {height}]\nrotation = [0.1, 0.05, {turn}]\n\
             velocity = [0, 0, {velocity}]\n\
             material = {{ density = 0.15, stretch = 1000, bending = 1e-5 }}\n"
        )
    };
    let text = format!(
        "time = {{ step = 0.002, end = 0.03 }}\ngravity = [0, 0, 0]\n\
         contact.certify = {certify}\npartition.patches = 4\n{}{}{more}",
        sheet("lower", 0.0, speed, 0.2),
        sheet("upper", 0.08, -speed, -0.3),
    );
    Scene::parse(&text, None, &[]).unwrap()
}

fn outcome(scene: &Scene, ranks: usize) -> Outcome {
    let options = Certifying {
        memory: Limit::Left,
        ranks,
        threads: 1,
        steps: None,
        once: false,
    };
    certify(scene, &options, None).unwrap()
}

#[test]
fn thrown_sheets_are_refused_without_certification_and_accepted_with_it() {
    let free = outcome(&thrown(20.0, false, ""), 1);
    assert!(!free.is_accepted() && free.twin.is_none());
    let told = free.to_string();
    assert!(
        told.contains("refused: ") && told.contains(" of `upper` "),
        "{told}"
    );
    assert!(free.verdict.passages > 0);
    assert_eq!(free.json()["accepted"], false);
    let certified = outcome(&thrown(20.0, true, ""), 1);
    assert!(certified.is_accepted(), "{certified}");
    let ran = certified.ran.as_ref().unwrap();
    assert!(ran.hits > 0 && certified.verdict.states == ran.steps + 1);
    assert!(certified.twin.is_none(), "there is nothing to compare");
    assert_ne!(ran.hash, free.ran.as_ref().unwrap().hash);
    assert!(certified.to_string().ends_with("accepted\n"));
    // Ranks change nothing.
    let three = outcome(&thrown(20.0, true, ""), 3);
    assert_eq!(three.verdict, certified.verdict);
}

/// Where nothing is cut both runs end with one state, and a run that does not is refused.
#[test]
fn a_run_that_certification_changes_for_nothing_is_refused() {
    let mut slow = outcome(&thrown(0.5, true, ""), 1);
    assert!(slow.is_accepted(), "{slow}");
    let (ran, twin) = (slow.ran.as_ref().unwrap(), slow.twin.as_mut().unwrap());
    assert_eq!((ran.cut, ran.hash), (0, twin.hash));
    twin.hash = StateHash(twin.hash.0 ^ 1);
    assert_eq!(slow.reasons().len(), 1, "{slow}");
}

/// A body of triangles that is thrown at a sheet takes part, and an analytic one does not.
#[test]
fn bodies_are_judged_by_their_triangles() {
    let ball = |surface: &str| {
        format!(
            "[[body]]\nname = \"ball\"\nshape = \"sphere\"\nradius = 0.03\ncenter = [0, 0, 0.3]\n\
             surface = \"{surface}\"\nvelocity = [0, 0, -100]\n"
        )
    };
    let found = outcome(&thrown(0.0, false, &ball("triangles")), 1);
    assert!(found.outside.is_empty() && found.pieces.len() == 3);
    assert!(
        found.verdict.passages > found.verdict.cloth_passages,
        "{found}"
    );
    let left_out = outcome(&thrown(0.0, false, &ball("analytic")), 1);
    assert_eq!(left_out.outside, ["ball"]);
    assert_eq!(left_out.pieces.len(), 2);
    assert_eq!(left_out.verdict.passages, left_out.verdict.cloth_passages);
}

/// A record gives the verdict of the run that it is of.
#[test]
fn a_record_is_judged_as_its_run() {
    let scene = thrown(20.0, false, "");
    let options = Certifying {
        memory: Limit::Left,
        ranks: 2,
        threads: 1,
        steps: Some(8),
        once: true,
    };
    let mut bytes = Vec::new();
    let of_run = certify(&scene, &options, Some(&mut bytes)).unwrap();
    let (mut reader, surface) = weft_judge::record::Reader::new(&bytes[..]).unwrap();
    let mut judge = Judge::new(surface);
    while let Some(state) = reader.next_state().unwrap() {
        judge.judge(state).unwrap();
    }
    assert_eq!(judge.verdict(), of_run.verdict);
    assert_eq!(judge.verdict().states, 9);
}
