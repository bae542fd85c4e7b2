//! `weft export` and `output.formats`: what they write, what they refuse, and with which exit code.

use std::fs;

use crate::place::{Place, hash_of, record};

const RUN: &str = "run small.toml --quiet --steps 20 --set output.pictures=false";

#[test]
fn formats_do_not_change_a_run_and_the_command_writes_the_same_later() {
    let place = Place::new();
    let plain = hash_of(&place.weft(&format!("{RUN} --ranks 1 --out plain")));
    let formats = r#"--set output.formats=["usd","pc2","glb","apng"]"#;
    let hash = hash_of(&place.weft(&format!("{RUN} --ranks 2 {formats} --out out")));
    assert_eq!(hash, plain);
    let files = [
        "napkin.obj",
        "napkin.pc2",
        "small.glb",
        "small.png",
        "small.usda",
    ];
    assert_eq!(place.names("out/exports"), files.map(str::to_owned).into());
    assert_eq!(
        place.names("out/meshes"),
        ["0-napkin.obj".to_owned()].into()
    );
    let frames = &record(&place.path("out"))["frames"];
    assert_eq!(frames["cloths"][0]["name"], "napkin");
    assert_eq!(frames["cloths"][0]["vertices"], 144);

    let output = place.weft("export out --format usd,pc2,glb,apng --out film/a");
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(
        text.starts_with("Wrote 3 frames of out into film/a: "),
        "{text}"
    );
    for file in files {
        let read = |folder: &str| fs::read(place.path(folder).join(file)).unwrap();
        assert!(read("film/a") == read("out/exports"), "{file}");
    }
    // The directory can be replaced, exports and meshes included, and another one is untouched.
    fs::write(place.path("out/exports/mine.usda"), "mine").unwrap();
    hash_of(&place.weft(&format!("{RUN} --ranks 1 --out out --overwrite")));
    assert_eq!(place.names("out/exports"), ["mine.usda".to_owned()].into());
}

#[test]
fn frames_that_cannot_be_exported_are_refused_and_no_file_is_written() {
    let place = Place::new();
    hash_of(&place.weft(&format!("{RUN} --ranks 1 --out out")));
    for (arguments, code, words) in [
        (
            "export out --format usd --out out/run.json",
            5,
            "is not a directory",
        ),
        ("export none --format usd --out film", 5, "none"),
        ("export out --format fbx --out film", 2, "fbx"),
        ("export out --format vtp --out film", 2, "vtp"),
        (
            "export out --format usd --out film --units yards",
            2,
            "yards",
        ),
        ("export out --out film", 2, "--format"),
        (
            "export out --format glb --out film --step 7",
            5,
            "no frame of step 7",
        ),
        (
            "export out --format pc2 --out /dev/full/film",
            5,
            "/dev/full",
        ),
    ] {
        let (found, message) = place.fails(arguments);
        assert_eq!(found, code, "{arguments}: {message}");
        assert!(message.contains(words), "{arguments}: {message}");
    }
    let none = place.names("film");
    assert!(none.is_empty(), "{none:?}");
    place.weft("export out --format usd --out film");
    let before = fs::read(place.path("film/small.usda")).unwrap();
    fs::write(place.path("film/small.usda"), "mine").unwrap();
    let (code, message) = place.fails("export out --format pc2,usd --out film");
    assert!(
        code == 5 && message.contains("small.usda is there already"),
        "{message}"
    );
    assert_eq!(place.names("film"), ["small.usda".to_owned()].into());
    let output = place.weft("export out --format usd --out film --overwrite");
    assert_eq!(output.status.code(), Some(0));
    assert!(fs::read(place.path("film/small.usda")).unwrap() == before);
}

#[test]
fn formats_that_are_none_are_told_with_their_line() {
    let place = Place::new();
    for (formats, words) in [
        (r#"["usd","usd"]"#, "has \"usd\" twice"),
        (r#"["uds"]"#, "did you mean `usd`"),
        (r#""usd""#, "an array of texts"),
    ] {
        let arguments = format!("check small.toml --set output.formats={formats}");
        let (code, message) = place.fails(&arguments);
        assert!(code == 3 && message.contains(words), "{message}");
    }
}

#[test]
fn a_group_that_a_file_does_not_have_is_told_with_those_that_it_has() {
    let place = Place::new();
    let sheet = "o sheet\nv 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\ng hem\nf 1 2 3\ng rest\nf 1 3 4\n";
    fs::write(place.path("sheet.obj"), sheet).unwrap();
    let scene = |group: &str| {
        format!(
            "partition.patches = 1\n[[cloth]]\nmesh = \"sheet.obj\"\npins = [{{ group = \"{group}\" }}]\n\
             material = {{ density = 0.15, stretch = 1000, bending = 1e-5 }}\n"
        )
    };
    fs::write(place.path("good.toml"), scene("hem")).unwrap();
    let output = place.weft("check good.toml");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("group = \"hem\""), "{text}");
    fs::write(place.path("bad.toml"), scene("ham")).unwrap();
    let (code, message) = place.fails("check bad.toml");
    let words =
        "pin 0 of cloth `cloth0` holds group `ham`, and its file has these: `sheet`, `hem`, `rest`";
    assert!(code == 3 && message.contains(words), "{message}");
    let grid = scene("hem").replace("mesh = \"sheet.obj\"", "grid = { size = 1, vertices = 9 }");
    fs::write(place.path("grid.toml"), grid).unwrap();
    let (code, message) = place.fails("check grid.toml");
    assert!(
        code == 3 && message.contains("groups are of cloths with a file"),
        "{message}"
    );
}
