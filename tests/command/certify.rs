//! Runs that are judged: verdicts, exit codes, records.

use std::fs;

use serde_json::Value;

use crate::place::Place;

/// Two sheets that fly at each other.
const CLASH: &str = r#"
gravity = [0, 0, 0]
time = { step = "2 ms", end = "16 ms" }
partition.patches = 4
[[cloth]]
name = "lower"
grid = { size = "0.2 m", vertices = 8 }
rotation = [0.1, 0.05, 0.2]
velocity = [0, 0, 20]
material = { density = 0.15, stretch = 1000, bending = 1e-5 }
[[cloth]]
name = "upper"
grid = { size = "0.2 m", vertices = 8 }
center = [0.003, 0.002, 0.08]
rotation = [0.1, 0.05, -0.3]
velocity = [0, 0, -20]
material = { density = 0.15, stretch = 1000, bending = 1e-5 }
"#;

#[test]
fn crossing_runs_are_refused_and_certified_ones_accepted() {
    let place = Place::new();
    fs::write(place.path("clash.toml"), CLASH).unwrap();
    // Certified unless asked otherwise, though the scene does not say so.
    let accepted = place.weft("certify clash.toml --ranks 2 --json");
    assert_eq!(accepted.status.code(), Some(0));
    let told: Value = serde_json::from_slice(&accepted.stdout).unwrap();
    assert_eq!(
        (&told["accepted"], &told["certified"]),
        (&true.into(), &true.into())
    );
    assert_eq!(told["verdict"]["states"], 9);
    assert!(told["run"]["hits"].as_u64().unwrap() > 0, "{told}");
    let refused = place.weft("certify clash.toml --set contact.certify=false --keep states");
    assert_eq!(refused.status.code(), Some(7));
    let text = String::from_utf8(refused.stdout).unwrap();
    assert!(
        text.contains("\nrefused: ") && text.contains("of `lower`"),
        "{text}"
    );
    // A record gets the same verdict.
    let again = place.weft("certify states");
    assert_eq!(again.status.code(), Some(7));
    let reasons = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| line.starts_with("refused: "));
        lines.map(str::to_owned).collect()
    };
    assert_eq!(
        reasons(&String::from_utf8(again.stdout).unwrap()),
        reasons(&text)
    );
}

#[test]
fn records_are_not_written_over_nor_read_in_part() {
    let place = Place::new();
    fs::write(place.path("clash.toml"), CLASH).unwrap();
    let code = |line: &str| place.weft(line).status.code();
    assert_eq!(
        code("certify clash.toml --steps 1 --once --keep states"),
        Some(0)
    );
    let file = place.path("states").join("checked.states");
    let bytes = fs::read(&file).unwrap();
    assert_eq!(
        code("certify clash.toml --steps 1 --once --keep states"),
        Some(5)
    );
    assert_eq!(code("certify states --set time.step=1ms"), Some(2));
    assert_eq!(code("certify states"), Some(0));
    fs::write(&file, &bytes[..bytes.len() - 1]).unwrap();
    let cut = place.weft("certify states");
    assert_eq!(cut.status.code(), Some(5));
    assert!(String::from_utf8(cut.stderr).unwrap().contains("cut short"));
    fs::remove_file(&file).unwrap();
    assert_eq!(code("certify states"), Some(5));
    assert_eq!(code("certify nowhere.toml"), Some(3));
}
