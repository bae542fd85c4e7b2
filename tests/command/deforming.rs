//! Bodies that deform, as users meet them: check, run, frames, exports, audit, restart, verdict.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::place::{Place, hash_of, record};

/// The project's scene of such a body with its files, in a folder of its own.
fn place() -> Place {
    place_of("scenes/breathing")
}

/// A folder of the project's scenes, copied.
fn place_of(folder: &str) -> Place {
    let place = Place::new();
    let scenes = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    for entry in fs::read_dir(scenes).unwrap() {
        let file = entry.unwrap();
        fs::copy(file.path(), place.path("").join(file.file_name())).unwrap();
    }
    place
}

const RUN: &str = "run breathing.toml --quiet --set time.end=0.4 --set output.pictures=false --audit=strict --out";

#[test]
fn a_body_that_deforms_is_run_written_judged_and_gone_on_with() {
    let place = place();
    let told = place.weft("check breathing.toml --json");
    let told: Value = serde_json::from_slice(&told.stdout).unwrap();
    let body = &told["objects"][1];
    assert_eq!(
        (&body["samples"], &body["last_sample_s"]),
        (&9.into(), &1.0.into())
    );
    let text = String::from_utf8(place.weft("check breathing.toml").stdout).unwrap();
    assert!(
        text.contains("deforms by 9 samples, the last at 1 s"),
        "{text}"
    );

    let whole = hash_of(&place.weft(&format!("{RUN} whole --ranks 1")));
    for ranks in [2, 3] {
        let run = format!("{RUN} out --overwrite --ranks {ranks}");
        assert_eq!(hash_of(&place.weft(&run)), whole, "{ranks}");
    }
    place.weft(&format!("{RUN} part --ranks 1 --steps 43"));
    let resumed = format!("{RUN} part --ranks 3 --resume");
    assert_eq!(hash_of(&place.weft(&resumed)), whole);
    assert_eq!(record(&place.path("part"))["resumed_from"], 43);

    // Its triangles are written with each frame, in other shapes.
    let frame = |directory: &str, step: u32| {
        fs::read(place.path(&format!("{directory}/frames/moving-0-ball.{step:06}.vtp"))).unwrap()
    };
    assert_eq!(frame("part", 80), frame("whole", 80));
    assert!(frame("whole", 0) != frame("whole", 20) && frame("whole", 20) != frame("whole", 60));
    assert_eq!(record(&place.path("whole"))["bodies"][0]["deforms"], true);
    let export = place.weft("export whole --format usd,glb --out film");
    assert_eq!(export.status.code(), Some(0));
    let usd = fs::read_to_string(place.path("film/breathing.usda")).unwrap();
    let ball = usd.split("\"ball\"").nth(1).unwrap();
    assert!(
        ball.split("def ")
            .next()
            .unwrap()
            .contains("points.timeSamples")
    );

    let verdict = place.weft("certify breathing.toml --steps 60 --ranks 2 --json");
    assert_eq!(verdict.status.code(), Some(0));
    let verdict: Value = serde_json::from_slice(&verdict.stdout).unwrap();
    assert_eq!(verdict["accepted"], true);
}

/// A run is of its samples: another file of the sequence is another scene, and a file that is
/// gone ends it before the first step.
#[test]
fn a_run_goes_on_only_with_the_files_that_it_began_with() {
    let place = place();
    place.weft(&format!("{RUN} out --ranks 1 --steps 10"));
    let file = place.path("ball.004.obj");
    let text = fs::read_to_string(&file).unwrap();
    let moved = text.replacen("\nv ", "\nv 0.07 0.07 0.15\n# ", 1);
    fs::write(&file, moved).unwrap();
    let (code, told) = place.fails(&format!("{RUN} out --ranks 1 --resume"));
    assert!(code == 3 || code == 5, "{code} {told}");
    fs::remove_file(&file).unwrap();
    let (code, told) = place.fails(&format!("{RUN} new --ranks 1"));
    assert!(code == 3 && told.contains("no file of number 4"), "{told}");
    // From some file on the ball is cut in another way.
    fs::write(&file, text.replacen("f 1 13 15\n", "f 13 15 1\n", 1)).unwrap();
    let (code, told) = place.fails(&format!("{RUN} new --ranks 1"));
    assert!(
        code == 3 && told.contains("ball.004.obj") && told.contains("triangle 0"),
        "{told}"
    );
    let short = &text[..text.len() / 3];
    fs::write(&file, short).unwrap();
    let (code, told) = place.fails(&format!("{RUN} new --ranks 1"));
    assert!(code == 3 && told.contains("ball.004.obj"), "{told}");
    assert!(!place.path("new").exists());
}

/// A figure of glTF: whole, on several ranks and gone on with, without its file being read again.
#[test]
fn a_figure_in_a_dress_is_run_and_gone_on_with() {
    let place = place_of("scenes/gallery");
    let text = String::from_utf8(place.weft("check dress-on-figure.toml").stdout).unwrap();
    assert!(text.contains("deforms by 193 samples"), "{text}");
    let run = "run dress-on-figure.toml --quiet --set time.end=0.04 --set output.pictures=false --audit=strict --out";
    let whole = hash_of(&place.weft(&format!("{run} whole --ranks 1")));
    let three = format!("{run} three --ranks 3");
    assert_eq!(hash_of(&place.weft(&three)), whole);
    place.weft(&format!("{run} part --ranks 2 --steps 9"));
    let resumed = format!("{run} part --ranks 1 --resume");
    assert_eq!(hash_of(&place.weft(&resumed)), whole);
    let (code, told) = place.fails(&format!("{run} other --set body.figure.animation=walk"));
    assert!(
        code == 3 && told.contains("figure.glb") && told.contains("`turn`"),
        "{told}"
    );
}
