//! Frames looked at for cloth that crosses itself.

use std::fs;

use crate::place::{Place, hash_of, record};

/// A sheet that falls upright through one that lies, since nothing keeps them apart.
const CROSSING: &str = r#"
gravity = [0, 0, 0]
[time]
step = "5 ms"
end = "0.1 s"
[contact]
self_collision = false
[[cloth]]
grid = { size = "0.2 m", vertices = 8 }
material = { density = "0.15 kg/m2", stretch = "1000 N/m", bending = "1e-4 N m" }
[[cloth]]
grid = { size = "0.1 m", vertices = 5 }
center = [0.013, 0.017, 0.08]
rotation = ["90 deg", 0, "0.3 rad"]
velocity = [0, 0, "-1 m/s"]
material = { density = "0.15 kg/m2", stretch = "1000 N/m", bending = "1e-4 N m" }
[partition]
patches = 4
[output]
interval = "20 ms"
pictures = false
"#;

#[test]
fn crossings_are_counted_written_and_failures_if_strict() {
    let place = Place::new();
    fs::write(place.path("crossing.toml"), CROSSING).unwrap();
    let told = place.weft("run crossing.toml --ranks 2 --out a --audit");
    hash_of(&told);
    let text = String::from_utf8(told.stdout).unwrap();
    assert!(
        text.contains("Audit: ") && text.contains("frames, most after step"),
        "{text}"
    );
    let audit = &record(&place.path("a"))["audit"];
    assert_eq!(audit["frames"], 6);
    let crossing = audit["crossing"].as_array().unwrap();
    assert!(!crossing.is_empty() && crossing.len() < 6, "{audit}");
    for frame in crossing {
        assert!(frame["pairs"].as_u64().unwrap() > 0);
        assert!(
            place
                .path("a")
                .join(frame["file"].as_str().unwrap())
                .exists()
        );
    }

    let strict = place.weft("run crossing.toml --ranks 1 --out b --quiet --audit=strict");
    assert_eq!(strict.status.code(), Some(4));
    let record = record(&place.path("b"));
    assert_eq!((&record["exit"], &record["audit"]), (&4.into(), audit));

    // Afterwards the same is found.
    let found = place.weft("audit a");
    let text = String::from_utf8(found.stdout).unwrap();
    assert!(found.status.success() && text.contains("Audit: "), "{text}");
    assert_eq!(text.matches("\nstep ").count(), crossing.len(), "{text}");
    assert_eq!(place.weft("audit a --strict").status.code(), Some(4));
    assert_eq!(place.weft("audit nowhere").status.code(), Some(5));

    let clean = place.weft("run small.toml --out c --steps 10 --quiet --audit=strict");
    hash_of(&clean);
    assert!(place.weft("audit c --strict").status.success());
}

/// A sheet that lies still, a block that is driven up through it, one that rests below, and a ball
/// with a formula that comes along.
const DRIVEN: &str = r#"
gravity = [0, 0, 0]
[time]
step = "2 ms"
end = "40 ms"
[contact]
thickness = "1 mm"
[[cloth]]
grid = { size = "0.2 m", vertices = 9 }
pins = [{ min = [-1, -1, -1], max = [1, 1, 1] }]
material = { density = "0.15 kg/m2", stretch = "1000 N/m", bending = "1e-4 N m" }
[[body]]
name = "rock"
shape = "box"
center = [0.011, 0.013, -0.3]
size = [0.1, 0.1, 0.1]
[[body]]
name = "ball"
shape = "sphere"
center = [-0.07, -0.07, -0.053]
radius = "3 cm"
surface = "analytic"
velocity = [0, 0, 1]
[[body]]
name = "block"
shape = "box"
center = [0.033, 0.031, -0.048]
size = [0.05, 0.05, 0.05]
velocity = [0, 0, 1]
[partition]
patches = 4
[output]
interval = "10 ms"
pictures = false
"#;

/// All vertices are held: whatever comes is let through, and where bodies were in a frame the
/// frames know.
#[test]
fn cloth_that_bodies_go_through_is_told_by_body_where_they_are_in_each_frame() {
    let place = Place::new();
    fs::write(place.path("driven.toml"), DRIVEN).unwrap();
    let told = place.weft("run driven.toml --ranks 2 --out a --audit");
    hash_of(&told);
    let text = String::from_utf8(told.stdout).unwrap();
    assert!(text.contains(" of cloth and cloth, "), "{text}");
    assert!(text.contains(" pairs of cloth and body `block`"), "{text}");
    let audit = &record(&place.path("a"))["audit"];
    assert_eq!((&audit["frames"], &audit["bodies"]), (&5.into(), &3.into()));
    let crossing = audit["crossing"].as_array().unwrap();
    // The tops of block and ball are 23 mm below at first, and come after 23 ms.
    let steps: Vec<u64> = crossing
        .iter()
        .map(|f| f["step"].as_u64().unwrap())
        .collect();
    assert_eq!(steps, [15, 20]);
    for frame in crossing {
        assert_eq!(frame["pairs"], 0, "{frame}");
        let bodies = frame["bodies"].as_array().unwrap();
        let names: Vec<&str> = bodies.iter().map(|b| b["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["ball", "block"]);
        let [ball, block] = &bodies[..] else {
            panic!("{frame}")
        };
        assert!(
            ball["pairs"] == 0 && ball["inside"].as_u64() > Some(0),
            "{frame}"
        );
        assert!(
            block["pairs"].as_u64() > Some(0) && block["inside"] == 0,
            "{frame}"
        );
    }

    let strict = place.weft("run driven.toml --ranks 1 --out b --quiet --audit=strict");
    assert_eq!(strict.status.code(), Some(4));
    let message = String::from_utf8(strict.stderr).unwrap();
    assert!(message.contains("more room between bodies"), "{message}");
    let of_strict = record(&place.path("b"));
    assert_eq!(
        (&of_strict["exit"], &of_strict["audit"]),
        (&4.into(), audit)
    );

    // Afterwards the same is found, from the frames and what the record says of bodies.
    let before = fs::read(place.path("a/frames/crossings.000020.vtp")).unwrap();
    fs::remove_file(place.path("a/frames/crossings.000020.vtp")).unwrap();
    let found = place.weft("audit a --strict");
    assert_eq!(found.status.code(), Some(4));
    let text = String::from_utf8(found.stdout).unwrap();
    let line = crossing[1]["bodies"][1]["pairs"].as_u64().unwrap();
    assert!(
        text.contains(&format!("{line} pairs of cloth and body `block`")),
        "{text}"
    );
    assert!(
        String::from_utf8(found.stderr)
            .unwrap()
            .contains("the cloth of a crosses bodies")
    );
    assert_eq!(
        fs::read(place.path("a/frames/crossings.000020.vtp")).unwrap(),
        before
    );

    // Missing frames are named, and nothing is changed.
    fs::remove_file(place.path("a/frames/moving-1-block.000020.vtp")).unwrap();
    fs::write(place.path("a/frames/crossings.000020.vtp"), "kept").unwrap();
    let (code, message) = place.fails("audit a");
    assert_eq!(code, 5);
    assert!(message.contains("moving-1-block.000020.vtp"), "{message}");
    let kept = fs::read_to_string(place.path("a/frames/crossings.000020.vtp")).unwrap();
    assert_eq!(kept, "kept");
}
