//! A JSON schema of scenes, for editors that complete and check TOML; made of the lists of keys
//! that scenes are read with.
//!
//! The schema knows names, kinds of values and ranges of plain numbers. It does not know units, or
//! keys that exclude each other; `weft check` does. Every scene that is read satisfies it.
//! `contrib/scene.schema.json` is this schema as a file; a test fails if the file is stale, and
//! `cargo run --example scene_keys` renews it.

use serde_json::{Map, Value, json};

use super::body::{self, BodyKeys};
use super::cloth::{self, ClothKeys, GridKeys, ShirtKeys};
use super::key::{Key, Section};
use super::material;
use super::motion::{self, KeyframeKeys};
use super::pin::{self, PinKeys};
use super::seam::{self, SeamKeys, SideKeys};
use super::sections::Root;
use super::{
    AirInTime, Balance, ContactParameters, Material, Motion, Output, Partition, Solver, Start, Time,
};

/// The dialect, which every editor knows.
const DIALECT: &str = "http://json-schema.org/draft-07/schema#";

/// The schema of scenes as a text, which ends with a line break.
#[must_use]
pub fn scene_schema() -> String {
    format!("{:#}\n", scene())
}

fn scene() -> Value {
    let mut scene = object(Root::KEYS, &Root::default(), &[]);
    let properties = &mut scene["properties"];
    let mut section = |name: &str, schema: Value| properties[name] = schema;
    section(AirInTime::NAME, section_schema::<AirInTime>());
    section(Time::NAME, section_schema::<Time>());
    section(Start::NAME, section_schema::<Start>());
    section(
        ContactParameters::NAME,
        section_schema::<ContactParameters>(),
    );
    section(Solver::NAME, section_schema::<Solver>());
    section(Partition::NAME, section_schema::<Partition>());
    section(Balance::NAME, section_schema::<Balance>());
    section(Output::NAME, section_schema::<Output>());
    section(
        "cloth",
        json!({ "type": "array", "minItems": 1, "items": cloth_schema() }),
    );
    section("body", json!({ "type": "array", "items": body_schema() }));
    section("seam", json!({ "type": "array", "items": seam_schema() }));
    scene["required"] = json!(["cloth"]);
    scene["$schema"] = json!(DIALECT);
    scene["title"] = json!("A scene of weftwork");
    scene
}

fn section_schema<S: Section>() -> Value {
    object(S::KEYS, &S::default(), &[])
}

fn cloth_schema() -> Value {
    let grid = required(
        object(cloth::GRID_KEYS, &GridKeys::default(), &[]),
        cloth::GRID_KEYS,
    );
    let shirt = required(
        object(cloth::SHIRT_KEYS, &ShirtKeys::default(), &[]),
        cloth::SHIRT_KEYS,
    );
    let nested = [
        ("grid", grid),
        ("shirt", shirt),
        ("pins", json!({ "type": "array", "items": pin_schema() })),
        ("material", material_schema()),
    ];
    let mut cloth = object(cloth::KEYS, &ClothKeys::default(), &nested);
    // A key that has an example must be given, and a mesh has one of several sources.
    cloth["anyOf"] = json!([
        { "required": ["grid"] },
        { "required": ["shirt"] },
        { "required": ["mesh"] },
    ]);
    cloth["required"] = json!(["material"]);
    cloth
}

fn material_schema() -> Value {
    let mut schema = object(material::KEYS, &Material::COTTON, &[]);
    let all = json!({ "required": names(material::KEYS, |key| key.example.is_some()) });
    schema["anyOf"] = json!([{ "required": ["fabric"] }, all]);
    schema
}

fn pin_schema() -> Value {
    object(
        pin::KEYS,
        &PinKeys::default(),
        &[("motion", motion_schema())],
    )
}

fn body_schema() -> Value {
    let nested = [("motion", motion_schema())];
    required(
        object(body::KEYS, &BodyKeys::default(), &nested),
        body::KEYS,
    )
}

fn seam_schema() -> Value {
    let side = required(
        object(seam::SIDE_KEYS, &SideKeys::default(), &[]),
        seam::SIDE_KEYS,
    );
    let sides = json!({ "type": "array", "minItems": 2, "maxItems": 2, "items": side });
    let schema = object(seam::KEYS, &SeamKeys::default(), &[("sides", sides)]);
    required(schema, seam::KEYS)
}

fn motion_schema() -> Value {
    let keyframe = required(
        object(motion::KEYFRAME_KEYS, &KeyframeKeys::default(), &[]),
        motion::KEYFRAME_KEYS,
    );
    let frames = json!({ "type": "array", "minItems": 1, "items": keyframe });
    let unread = Motion::unread(glam::DVec3::ZERO);
    let schema = object(motion::KEYS, &unread, &[("keyframes", frames)]);
    required(schema, motion::KEYS)
}

/// The schema of a table with these keys; `nested` has the schemas of the tables in it.
fn object<S>(keys: &[Key<S>], default: &S, nested: &[(&str, Value)]) -> Value {
    let mut properties = Map::new();
    for key in keys {
        let nested = nested.iter().find(|(name, _)| *name == key.name);
        let mut schema = key.field.schema().unwrap_or_else(|| {
            let (_, schema) = nested.expect("every table has a schema, which a test looks at");
            schema.clone()
        });
        schema["description"] = json!(description(key));
        if let Some(value) = default_of(key, default) {
            schema["default"] = value;
        }
        properties.insert(key.name.to_owned(), schema);
    }
    json!({ "type": "object", "additionalProperties": false, "properties": properties })
}

/// Makes the keys of a table required that every such table must have.
fn required<S>(mut schema: Value, keys: &[Key<S>]) -> Value {
    let names = names(keys, |key| key.example.is_some() && key.only.is_none());
    schema["required"] = json!(names);
    schema
}

fn names<S>(keys: &[Key<S>], are: impl Fn(&Key<S>) -> bool) -> Vec<&'static str> {
    let keys = keys.iter().filter(|key| are(key));
    keys.map(|key| key.name).collect()
}

/// The sentence of the book, what the value may be, and what holds without the key.
fn description<S>(key: &Key<S>) -> String {
    let only = match &key.only {
        Some(only) => format!("\nOnly {}.", only.of),
        None => String::new(),
    };
    let unset = match key.unset {
        "" => String::new(),
        unset => format!("\nWithout it: {unset}."),
    };
    let (about, value) = (key.about, key.field.describe());
    without_links(&format!("{about}\nValue: {value}.{only}{unset}"))
}

/// A text of the book without the targets of its links, which lead nowhere outside of it.
fn without_links(text: &str) -> String {
    let mut pieces = text.split("](");
    let mut plain = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        if let Some(at) = plain.rfind('[') {
            plain.remove(at);
        }
        plain += piece.split_once(')').map_or(piece, |(_, rest)| rest);
    }
    plain
}

/// The default of a key, if it has one, as a value of the schema.
fn default_of<S>(key: &Key<S>, default: &S) -> Option<Value> {
    if key.example.is_some() || !key.unset.is_empty() {
        return None;
    }
    let written = key.field.write(default)?;
    let line = format!("value = {}", written.text);
    let table: toml::Table = line.parse().ok()?;
    serde_json::to_value(table.get("value")?).ok()
}

#[cfg(test)]
mod tests {
    use super::super::built_in::BUILT_IN;
    use super::*;

    const FILE: &str = include_str!("../../contrib/scene.schema.json");

    #[test]
    fn the_file_for_editors_is_the_schema_of_the_keys_that_scenes_are_read_with() {
        let schema = scene_schema();
        let stale = FILE.lines().zip(schema.lines()).find(|(a, b)| a != b);
        assert!(
            schema == FILE,
            "contrib/scene.schema.json is stale, as in {stale:?}: run `cargo run --example scene_keys`"
        );
    }

    /// Finds keys of a document that a schema does not have, by their dotted names.
    fn unknown(value: &Value, schema: &Value, name: &str, found: &mut Vec<String>) {
        match value {
            Value::Object(table) if schema["type"] == "object" => {
                for (key, value) in table {
                    let name = format!("{name}.{key}");
                    match &schema["properties"][key] {
                        Value::Null => found.push(name),
                        schema => unknown(value, schema, &name, found),
                    }
                }
                let required = schema["required"].as_array();
                let lacks = required.into_iter().flatten();
                let lacks = lacks.filter(|key| !table.contains_key(key.as_str().unwrap()));
                found.extend(lacks.map(|key| format!("{name} without {key}")));
            }
            Value::Array(elements) if schema["items"]["type"] == "object" => {
                for element in elements {
                    unknown(element, &schema["items"], name, found);
                }
            }
            _ => {}
        }
    }

    /// `tests/python.sh` holds all scenes against the whole schema.
    #[test]
    fn scenes_of_the_program_have_no_key_that_the_schema_lacks() {
        let schema = scene();
        for built_in in &BUILT_IN {
            let table: toml::Table = built_in.text.parse().unwrap();
            let mut document = serde_json::to_value(table).unwrap();
            let mut found = Vec::new();
            unknown(&document, &schema, built_in.name, &mut found);
            assert_eq!(found, [""; 0]);
            document["time"] = json!({ "stepp": 1 });
            unknown(&document, &schema, "scene", &mut found);
            assert_eq!(found, ["scene.time.stepp"]);
        }
    }

    #[test]
    fn links_of_the_book_are_their_texts() {
        let text = "see [`a`](x.md#b), [c](d).";
        assert_eq!(without_links(text), "see `a`, c.");
        let schema = scene_schema();
        assert!(!schema.contains(".md#") && !schema.contains("]("));
    }

    #[test]
    fn defaults_ranges_and_words_are_in_the_schema() {
        let schema = scene();
        let of = |path: &str| schema.pointer(path).unwrap();
        let integrator = of("/properties/solver/properties/integrator");
        assert_eq!(integrator["default"], "euler");
        assert!(integrator["enum"].as_array().unwrap().len() > 2);
        let step = of("/properties/time/properties/step");
        assert_eq!(step["anyOf"][0]["exclusiveMinimum"], 0);
        assert!(
            step["description"]
                .as_str()
                .unwrap()
                .contains("a time in s")
        );
        let material = of("/properties/cloth/items/properties/material");
        let all = &material["anyOf"][1]["required"];
        assert!(all.as_array().unwrap().contains(&json!("density")), "{all}");
    }
}
