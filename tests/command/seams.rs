//! Seams, as users meet them: check, run, audit, verdict, an open one and the way on, refusals.

use std::fmt::Write as _;
use std::fs;

use crate::place::{Place, hash_of, record};

/// A strip of `columns` times three vertices in the plane z = 0, with one group of all of them.
fn strip(columns: usize) -> String {
    let mut text = String::from("o strip\n");
    for v in 0..3 * columns {
        let (i, j) = (v % columns, v / columns);
        writeln!(text, "v {} {} 0", 0.1 * i as f64, 0.1 * j as f64).unwrap();
    }
    let face = |text: &mut String, corners: [usize; 3]| {
        let [a, b, c] = corners.map(|v| v + 1);
        writeln!(text, "f {a} {b} {c}").unwrap();
    };
    for i in 0..columns - 1 {
        for j in 0..2 {
            let a = j * columns + i;
            face(&mut text, [a, a + 1, a + columns]);
            face(&mut text, [a + 1, a + columns + 1, a + columns]);
        }
    }
    text
}

const SCENE: &str = r#"
time = { step = "2 ms", end = "0.2 s" }
gravity = [0, 0, 0]
contact = { thickness = "1 mm", certify = true }
partition = { patches = 2 }
[[cloth]]
name = "strip"
mesh = "strip.obj"
translation = [0, 0, "8 mm"]
material = { density = 0.15, stretch = 1000, bending = 1e-5 }
[[cloth]]
name = "sheet"
grid = { size = ["0.2 m", "0.2 m"], vertices = [5, 4] }
center = [0.1, 0.1, 0]
material = { density = 0.15, stretch = 1000, bending = 1e-5 }
[[seam]]
name = "edge"
sides = [{ cloth = "strip", vertices = [0, 4, 8] }, { cloth = "sheet", edge = "left" }]
close = "0.15 s"
"#;

const PLATE: &str = r#"
[[body]]
name = "plate"
shape = "box"
center = [0, 0.1, 0.004]
size = [0.06, 0.3, 0.003]
"#;

fn place() -> Place {
    let place = Place::new();
    fs::write(place.path("strip.obj"), strip(4)).unwrap();
    fs::write(place.path("sewn.toml"), SCENE).unwrap();
    fs::write(place.path("held.toml"), format!("{SCENE}{PLATE}")).unwrap();
    place
}

const QUIET: &str = "--quiet --set output.pictures=false --ranks 1";

#[test]
fn a_seam_is_run_audited_and_judged() {
    let place = place();
    let run = place.weft(&format!("run sewn.toml {QUIET} --audit=strict --out whole"));
    let whole = hash_of(&run);
    let sewn = record(&place.path("whole"))["frames"]["sewn"].clone();
    // Four vertices of the sheet on three of the strip: the inner ones hang on two of them each.
    assert_eq!(sewn.as_array().unwrap().len(), 6, "{sewn}");
    place.weft(&format!("run sewn.toml {QUIET} --steps 41 --out part"));
    let resumed = place.weft("run sewn.toml --quiet --ranks 2 --resume --out part");
    assert_eq!(hash_of(&resumed), whole);
    assert_eq!(place.weft("audit whole").status.code(), Some(0));
    assert_eq!(
        place.weft("certify sewn.toml --once").status.code(),
        Some(0)
    );
    let refined = place.weft("refine whole --out fine");
    let told = String::from_utf8(refined.stderr).unwrap();
    assert_eq!(refined.status.code(), Some(2), "{told}");
    assert!(
        told.contains("the run has seams") && !place.path("fine").exists(),
        "{told}"
    );
}

/// With the time of the seam in the middle of a run, and at its end.
#[test]
fn a_run_with_an_open_seam_ends_with_a_checkpoint_and_goes_on_with_a_larger_gap() {
    let place = place();
    for (close, step) in [(0.15, 75), (0.2, 100)] {
        let run =
            format!("run held.toml {QUIET} --set seam.0.close={close} --out held --overwrite");
        let ended = place.weft(&run);
        let told = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(4), "{told}");
        assert!(
            told.contains(&format!("step {step}: seam `edge` is open by")),
            "{told}"
        );
        assert!(
            place.path(&format!("held/state.{step:06}.ckpt")).exists(),
            "{told}"
        );
        let on = format!("run held.toml --quiet --resume --set seam.0.close={close} --out held");
        assert_eq!(place.weft(&on).status.code(), Some(4));
        let larger = place.weft(&format!("{on} --set seam.0.gap=0.02"));
        let told = String::from_utf8(larger.stderr).unwrap();
        assert_eq!(larger.status.code(), Some(0), "{told}");
    }
}

#[test]
fn sides_that_are_not_there_are_refused_by_name() {
    let place = place();
    let refused = |from: &str, to: &str| {
        fs::write(place.path("bad.toml"), SCENE.replacen(from, to, 1)).unwrap();
        let ended = place.weft("run bad.toml --out bad");
        assert_eq!(ended.status.code(), Some(3));
        assert!(!place.path("bad").exists());
        String::from_utf8(ended.stderr).unwrap()
    };
    let told = refused("vertices = [0, 4, 8]", "group = \"hem\"");
    assert!(
        told.contains("seam `edge`: group `hem` is not in the file of cloth `strip`"),
        "{told}"
    );
    let told = refused("vertices = [0, 4, 8]", "group = \"strip\"");
    assert!(
        told.contains("vertex 5 has 0 of them beside it there"),
        "{told}"
    );
    let told = refused("vertices = [0, 4, 8]", "vertices = [0, 4, 12]");
    assert!(
        told.contains("cloth `strip` has no vertex 12; it has 12"),
        "{told}"
    );
}
