//! The keys above all tables.

use glam::DVec3;

use crate::scene::form::{Count, Text, Vector};
use crate::scene::in_time::Changing;
use crate::scene::key::{Changes, Key, Section, Value};
use crate::scene::quantity::{Dimension, Short};
use crate::scene::reader::{Range, Table};
use crate::scene::{InTime, Scene, defaults};

/// The values of the keys above all tables.
pub(in crate::scene) struct Root {
    /// One line for people.
    pub(in crate::scene) title: String,
    /// The name of the run, if it is given.
    pub(in crate::scene) name: Option<String>,
    /// Acceleration in m/s².
    pub(in crate::scene) gravity: InTime<DVec3>,
    /// The number of times by which cells and thicknesses are smaller than written.
    pub(in crate::scene) detail: u64,
}

type Of<F> = Value<Root, F>;

impl Section for Root {
    const NAME: &'static str = "";

    const KEYS: &'static [Key<Self>] = &[
        Key::new(
            "title",
            &Of {
                form: Text,
                get: |root| Some(root.title.clone()),
                set: |root, title| root.title = title,
            },
            "A line for people, of at most 200 characters.",
        )
        .changes(Changes::Output),
        Key::new(
            "name",
            &Of {
                form: Text,
                get: |root| root.name.clone(),
                set: |root, name| root.name = Some(name),
            },
            "The name of the run: 1 to 64 letters, digits, `-` or `_`.",
        )
        .unset("the file's stem")
        .changes(Changes::Output),
        Key::new(
            "gravity",
            &Of {
                form: Changing(Vector(Dimension::ACCELERATION, Range::Any)),
                get: |root| Some(root.gravity.clone()),
                set: |root, gravity| root.gravity = gravity,
            },
            "The acceleration of gravity; z points upwards where scenes are shown.",
        )
        .changes(Changes::Onwards),
        Key::new(
            "detail",
            &Of {
                form: Count(1, MOST_DETAIL),
                get: |root| (root.detail != 1).then_some(root.detail),
                set: |root, detail| root.detail = detail,
            },
            "The size of a scene in one key: cells of grids and shirts have sides that are this many times smaller, and so is every \
             thickness. A scene that is written out has the numbers that follow from it.",
        )
        .unset("1"),
    ];

    fn check(&self, table: &Table<'_>) {
        let title = &self.title;
        if title.chars().count() > LONGEST_TITLE || title.chars().any(char::is_control) {
            table.note(
                "title",
                format!("wants one line of at most {LONGEST_TITLE} characters"),
            );
        }
        let Some(name) = &self.name else { return };
        if name.is_empty() || name.len() > LONGEST_NAME || !name.chars().all(suits_name) {
            let message = format!(
                "`{}` is no name; it wants 1 to {LONGEST_NAME} letters, digits, `-` or `_`",
                Short(name)
            );
            table.note("name", message);
        }
    }
}

impl Default for Root {
    fn default() -> Self {
        Self {
            title: String::new(),
            name: None,
            gravity: InTime::constant(defaults::GRAVITY),
            detail: 1,
        }
    }
}

impl Root {
    /// Takes the values of these keys out of a scene.
    pub(in crate::scene) fn of(scene: &Scene) -> Self {
        Self {
            title: scene.title.clone(),
            name: Some(scene.name.clone()),
            gravity: scene.gravity.clone(),
            detail: 1,
        }
    }
}

/// Whether names may have this character.
pub(in crate::scene) fn suits_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '-' || c == '_'
}

/// A sheet of a few thousand triangles has some ten million with it.
const MOST_DETAIL: u64 = 64;

/// Longest title in characters.
const LONGEST_TITLE: usize = 200;

/// Longest name in bytes.
pub(in crate::scene) const LONGEST_NAME: usize = 64;
