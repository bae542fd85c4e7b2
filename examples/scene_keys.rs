//! Renews the tables of keys in the book's page on scenes.
//!
//! `cargo run --example scene_keys [PAGE]`; the page is `docs/src/scene.md` unless said.

use std::error::Error;
use std::path::PathBuf;

use weftwork::scene::reference::renewed;

fn main() -> Result<(), Box<dyn Error>> {
    let page = std::env::args_os().nth(1);
    let page = page.map_or_else(|| PathBuf::from("docs/src/scene.md"), PathBuf::from);
    let text = std::fs::read_to_string(&page)?;
    std::fs::write(&page, renewed(&text)?)?;
    Ok(())
}
