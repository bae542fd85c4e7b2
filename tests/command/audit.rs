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
