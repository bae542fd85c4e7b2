//! Tests of what the command reports about sizes, and about strain that something forces beyond its
//! limit.

use std::fs;

use crate::place::{Place, SCENE, record};

/// A line for each cloth and body, by `check` as comments of the scene and by `run` where it
/// starts.
#[test]
fn sizes_are_told_in_a_line_for_each_cloth_and_body() {
    let place = Place::new();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let cloth = "cloth `napkin`: 0.3 x 0.3 x 0 m, 144 vertices, 242 triangles, edges of 27.27 to 38.57 mm, 1 border, 1 piece, \
                 0 coincident vertices, 13.5 g\n";
    let ball = "body `ball`: 0.16 x 0.16 x 0.16 m, 162 vertices, 320 triangles, edges of ";
    let floor = "body `floor`: 1 x 1 x 0 m, 1089 vertices, 2048 triangles, edges of 31.25 to 44.19 mm, 1 border, 1 piece, without mass\n";
    let checked = place.weft("check small.toml");
    let (told, warned) = (text(checked.stdout), text(checked.stderr));
    assert_eq!(warned, "");
    for line in [cloth, ball, floor] {
        assert_eq!(
            told.matches(&format!("\n# {line}")).count(),
            1,
            "{line}: {told}"
        );
    }
    let ran = place.weft("run small.toml --ranks 2 --steps 1 --out out");
    let told = text(ran.stderr);
    for line in [cloth, ball, floor] {
        assert_eq!(
            told.matches(&format!("note: {line}")).count(),
            1,
            "{line}: {told}"
        );
    }
    let quiet = place.weft("run small.toml --ranks 2 --steps 1 --out out --overwrite --quiet");
    assert_eq!(text(quiet.stderr), "");
}

#[test]
fn cloth_in_other_units_and_pins_beside_it_are_warned_of_with_a_remedy() {
    let grid = "grid = { size = \"0.3 m\", vertices = 12 }\ncenter = [0.03, 0.02, 0.165]";
    let place = Place::with(&SCENE.replace(
        grid,
        "mesh = \"square.obj\"\ntranslation = [0, 0, 0.2]\npins = [{ nearest = [0, 0, 3] }]",
    ));
    // Thirty centimetres, in millimetres.
    let mut obj = String::new();
    for i in 0..49 {
        obj += &format!("v {} {} 0\n", 50 * (i % 7) - 150, 50 * (i / 7) - 150);
    }
    for i in (0..41).filter(|i| i % 7 < 6) {
        let [a, b, c, d] = [i + 1, i + 2, i + 9, i + 8];
        obj += &format!("f {a} {b} {c}\nf {a} {c} {d}\n");
    }
    fs::write(place.path("square.obj"), obj).unwrap();
    let warned = |options: &str| {
        let output = place.weft(&format!(
            "check small.toml --set partition.patches=2 {options}"
        ));
        assert!(output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    let told = warned("");
    assert!(
        told.contains("warning: cloth `napkin` is 3.000e2 m long, more than 10 m: "),
        "{told}"
    );
    assert!(
        told.contains(r#"set units = "cm" if it is 3 m long, units = "mm" if it is 0.3 m long"#),
        "{told}"
    );
    assert_eq!(
        warned("--set cloth.scale=0.001"),
        warned("--set cloth.units=mm")
    );
    let told = warned("--set cloth.scale=0.001");
    let pin = "warning: pin 0 of cloth `napkin` is 2800.0 mm from the nearest vertex, 24, farther than edges are long there (70.7 mm): give \
               it a point of the cloth as it starts, as [0, 0, 0.2]\n";
    assert_eq!(told, pin);
}

/// A sheet between two pins that go apart: told when it happens, once, and at the end; the record
/// has it too.
#[test]
fn pins_that_tear_cloth_are_named_with_vertex_and_time() {
    let place = Place::with(
        "partition.patches = 4\ntime = { step = \"4 ms\", end = \"80 ms\" }\n[[cloth]]\nname = \"sheet\"\n\
         grid = { size = [0.4, 0.2], vertices = [17, 9] }\npins = [{ min = [-0.21, -1, -1], max = [-0.19, 1, 1] }, \
         { min = [0.19, -1, -1], max = [0.21, 1, 1], velocity = [1, 0, 0] }]\n\
         material = { density = 0.15, stretch = 1000, bending = 1e-5 }\n[output]\npictures = false\n",
    );
    let mut told = Vec::new();
    for ranks in [1, 3] {
        let output = place.weft(&format!("run small.toml --ranks {ranks} --out out{ranks}"));
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{text}");
        let happens = "warning: strain goes beyond its limit, first at 0.0";
        assert_eq!(text.matches(happens).count(), 1, "{text}");
        assert_eq!(text.matches("first at 0.0").count(), 2, "{text}");
        let warnings = record(&place.path(&format!("out{ranks}")))["warnings"].to_string();
        assert!(warnings.contains("of cloth `sheet`"), "{warnings}");
        assert!(
            warnings.contains("pins 0 and 1 of the cloth are 0.4"),
            "{warnings}"
        );
        assert!(!warnings.contains("shorter"), "{warnings}");
        told.push(warnings);
    }
    assert_eq!(told[0], told[1]);
}
