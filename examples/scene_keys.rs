//! Renews the tables of keys in the book's page on scenes, and the schema of scenes for editors.
//!
//! `cargo run --example scene_keys [PAGE [SCHEMA]]`; the page is `docs/src/scene.md` and the schema
//! `contrib/scene.schema.json` unless said.

use std::error::Error;
use std::path::PathBuf;

use weftwork::scene::reference::renewed;
use weftwork::scene::schema::scene_schema;

fn main() -> Result<(), Box<dyn Error>> {
    let mut files = std::env::args_os().skip(1).map(PathBuf::from);
    let mut file = |unless_said| files.next().unwrap_or_else(|| PathBuf::from(unless_said));
    let page = file("docs/src/scene.md");
    let schema = file("contrib/scene.schema.json");
    let text = std::fs::read_to_string(&page)?;
    std::fs::write(&page, renewed(&text)?)?;
    std::fs::write(&schema, scene_schema())?;
    Ok(())
}
