//! The tables of keys in the book's page on scenes, made of the lists of keys that scenes are read
//! with.
//!
//! The page has a mark where each table begins and one where it ends. [`renewed`] replaces what is
//! between them. A test fails if the page is stale; `cargo run --example scene_keys` renews it.

use std::fmt::Write as _;

use thiserror::Error;

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

/// A page that has no place for one of the tables.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "the page has no `{begin}` with a `{END}` after it; add both lines where that table belongs"
)]
pub struct NoPlace {
    /// The mark that is missing, or whose end is missing.
    begin: String,
}

/// Replaces the tables of keys in a page by those of this program.
///
/// # Errors
/// The page lacks the marks of a table.
pub fn renewed(page: &str) -> Result<String, NoPlace> {
    let mut page = page.to_owned();
    for (what, table) in tables() {
        let begin = format!("<!-- keys of {what} -->\n");
        let place = page.find(&begin).and_then(|start| {
            let start = start + begin.len();
            Some((start, start + page[start..].find(END)?))
        });
        let Some((start, end)) = place else {
            let begin = begin.trim_end().to_owned();
            return Err(NoPlace { begin });
        };
        page.replace_range(start..end, &table);
    }
    Ok(page)
}

/// All tables, by what they have the keys of.
fn tables() -> [(&'static str, String); 7] {
    [
        ("a scene", {
            let mut rows = Rows::new();
            rows.section::<Root>();
            rows.section::<AirInTime>();
            rows.section::<Time>();
            rows.section::<Start>();
            rows.section::<ContactParameters>();
            rows.section::<Solver>();
            rows.section::<Partition>();
            rows.section::<Balance>();
            rows.section::<Output>();
            rows.0
        }),
        ("a cloth", {
            let mut rows = Rows::new();
            rows.keys("", cloth::KEYS, &ClothKeys::default());
            rows.keys("grid.", cloth::GRID_KEYS, &GridKeys::default());
            rows.keys("shirt.", cloth::SHIRT_KEYS, &ShirtKeys::default());
            rows.keys("material.", material::KEYS, &Material::COTTON);
            rows.0
        }),
        ("a pin", {
            let mut rows = Rows::new();
            rows.keys("", pin::KEYS, &PinKeys::default());
            rows.0
        }),
        ("a body", {
            let mut rows = Rows::new();
            rows.keys("", body::KEYS, &BodyKeys::default());
            rows.0
        }),
        ("a seam", {
            let mut rows = Rows::new();
            rows.keys("", seam::KEYS, &SeamKeys::default());
            rows.keys("sides.", seam::SIDE_KEYS, &SideKeys::default());
            rows.0
        }),
        ("a motion", {
            let mut rows = Rows::new();
            let unread = Motion::unread(glam::DVec3::ZERO);
            rows.keys("", motion::KEYS, &unread);
            rows.0
        }),
        ("a keyframe", {
            let mut rows = Rows::new();
            rows.keys("", motion::KEYFRAME_KEYS, &KeyframeKeys::default());
            rows.0
        }),
    ]
}

/// A table in Markdown, with a row for each key.
struct Rows(String);

impl Rows {
    fn new() -> Self {
        Self("\n| key | value | default | what it is |\n|---|---|---|---|\n".to_owned())
    }

    fn section<S: Section>(&mut self) {
        let table = match S::NAME {
            "" => String::new(),
            name => format!("{name}."),
        };
        self.keys(&table, S::KEYS, &S::default());
    }

    fn keys<S>(&mut self, table: &str, keys: &[Key<S>], default: &S) {
        for key in keys {
            let star = if key.example.is_some() { "*" } else { "" };
            let only = match &key.only {
                Some(only) => format!(" ({})", only.of),
                None => String::new(),
            };
            let shown = match (key.example, key.unset) {
                (Some(_), _) => String::new(),
                (None, "") => key.field.show(default).unwrap_or_default(),
                (None, unset) => unset.to_owned(),
            };
            // Writing to a String cannot fail.
            let _ = writeln!(
                self.0,
                "| `{table}{}`{star}{only} | {} | {shown} | {} |",
                key.name,
                key.field.describe(),
                key.about
            );
        }
        self.end_with_empty_line();
    }

    /// Makes the table end with an empty line, which Markdown wants before what follows.
    fn end_with_empty_line(&mut self) {
        let length = self.0.trim_end().len();
        self.0.truncate(length);
        self.0.push('\n');
    }
}

/// The mark where a table ends.
const END: &str = "<!-- end of keys -->";

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = include_str!("../../docs/src/scene.md");

    #[test]
    fn the_book_has_the_keys_that_scenes_are_read_with() {
        let renewed = renewed(PAGE).unwrap();
        let stale = PAGE.lines().zip(renewed.lines()).find(|(a, b)| a != b);
        assert!(
            renewed == PAGE,
            "docs/src/scene.md is stale, as in {stale:?}: run `cargo run --example scene_keys`"
        );
    }

    #[test]
    fn every_key_has_a_sentence_and_a_default_or_an_example() {
        for (what, table) in tables() {
            let rows: Vec<&str> = table.lines().filter(|row| row.starts_with("| `")).collect();
            assert!(rows.len() >= 4, "{what}: {table}");
            for row in rows {
                let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
                let [key, value, default, about] = cells[..] else {
                    panic!("{what}: not four cells: {row}");
                };
                assert!(!value.is_empty() && about.ends_with('.'), "{what}: {row}");
                assert_ne!(key.contains("`*"), !default.is_empty(), "{what}: {row}");
            }
        }
    }

    #[test]
    fn a_page_without_a_place_for_a_table_is_told() {
        let page = PAGE.replace("<!-- keys of a pin -->", "");
        let error = renewed(&page).unwrap_err();
        assert!(
            error.to_string().contains("`<!-- keys of a pin -->`"),
            "{error}"
        );
        let changed = PAGE.replacen("| `time.step` |", "| `time.stepp` |", 1);
        assert_ne!(changed, PAGE);
        assert!(
            renewed(&changed) == renewed(PAGE),
            "the change is not mended"
        );
    }
}
