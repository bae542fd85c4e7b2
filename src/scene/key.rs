//! The description of a key of a scene: how it is read, echoed, warned of and told of in the book.
//!
//! Every table of a scene has a list of [`Key`]s, in the order in which they are read and echoed. A
//! key's entry has its name, its [`Form`] (unit and range), where its value goes, and a sentence
//! for the book. Its default is the value that an object has which nothing was read into. Rules on
//! several keys at once are checked by the code of the table after all keys were read.

use std::fmt::Write as _;

use super::Scene;
use super::form::{Form, Written};
use super::reader::Table;

/// A key of a table that is read into an `S`.
pub(super) struct Key<S: 'static> {
    /// Its name in the table.
    pub(super) name: &'static str,
    /// How its value is read and written.
    pub(super) field: &'static dyn Field<S>,
    /// A sentence for the book, in Markdown.
    pub(super) about: &'static str,
    /// The default as the book names it, if the value of the key is absent then.
    pub(super) unset: &'static str,
    /// A line to propose to someone who has forgotten the key; keys with a default have none.
    pub(super) example: Option<&'static str>,
    /// The tables that may have the key, if not all.
    pub(super) only: Option<Only<S>>,
    /// The part of a run that depends on the key.
    pub(super) changes: Changes,
    /// The reason why the key has no effect in a scene, if so.
    pub(super) idle: Option<fn(&Scene) -> Option<&'static str>>,
}

/// The tables that may have a key.
pub(super) struct Only<S> {
    /// These tables in words, for the book.
    pub(super) of: &'static str,
    /// Whether a table may have it, by the keys that stand before it in the list.
    pub(super) holds: fn(&S) -> bool,
}

/// The part of a run that depends on a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Changes {
    /// The trajectory.
    Trajectory,
    /// How exactly the trajectory is computed. A run may go on with another value.
    Exactness,
    /// The forces that act. A run may go on with another value, which acts from there on: the state
    /// is one of the scene all the same.
    Onwards,
    /// How ranks share work. A policy that is named on the command line replaces the key.
    Policy,
    /// The output, or the time that a run takes.
    Output,
}

impl Changes {
    /// Whether states depend on it.
    pub(super) fn is_of_trajectory(self) -> bool {
        match self {
            Self::Trajectory | Self::Exactness | Self::Onwards => true,
            Self::Policy | Self::Output => false,
        }
    }

    /// Whether a run may go on with another value, though states depend on it.
    pub(super) fn may_differ_later(self) -> bool {
        matches!(self, Self::Exactness | Self::Onwards)
    }
}

impl<S> Key<S> {
    /// Describes a key with a default, on which the trajectory depends.
    pub(super) const fn new(
        name: &'static str,
        field: &'static dyn Field<S>,
        about: &'static str,
    ) -> Self {
        Self {
            name,
            field,
            about,
            unset: "",
            example: None,
            only: None,
            changes: Changes::Trajectory,
            idle: None,
        }
    }

    /// Says what holds without the key, where its default is that it has no value.
    pub(super) const fn unset(self, unset: &'static str) -> Self {
        Self { unset, ..self }
    }

    /// Says that the key must be given, and how such a line looks.
    pub(super) const fn required(self, example: &'static str) -> Self {
        Self {
            example: Some(example),
            ..self
        }
    }

    /// Says which tables may have the key.
    pub(super) const fn only(self, of: &'static str, holds: fn(&S) -> bool) -> Self {
        Self {
            only: Some(Only { of, holds }),
            ..self
        }
    }

    /// Says what depends on the key.
    pub(super) const fn changes(self, changes: Changes) -> Self {
        Self { changes, ..self }
    }

    /// Says when the key has no effect, and why.
    pub(super) const fn idle(self, idle: fn(&Scene) -> Option<&'static str>) -> Self {
        Self {
            idle: Some(idle),
            ..self
        }
    }

    /// Whether a table may have the key.
    pub(super) fn suits(&self, section: &S) -> bool {
        self.only.as_ref().is_none_or(|only| (only.holds)(section))
    }

    /// The reason why the key has no effect in a scene, if its value is the one in `default`.
    fn idle_at_default(&self, section: &S, default: &S, scene: &Scene) -> Option<&'static str> {
        let why = self.idle?(scene)?;
        (self.field.write(section) == self.field.write(default)).then_some(why)
    }
}

/// How the value of a key is read into an `S`, and written from it.
pub(super) trait Field<S>: Sync {
    /// Reads the value, if the table has the key.
    fn read(&self, table: &Table<'_>, key: &'static str, section: &mut S);

    /// The value in TOML, or `None` if it is not set.
    fn write(&self, section: &S) -> Option<Written>;

    /// The possible values, for the book.
    fn describe(&self) -> String;

    /// The value for the book, in handy units, or `None` if it is not set.
    fn show(&self, section: &S) -> Option<String>;

    /// The possible values, as a JSON schema; `None` for a table, which has its own keys.
    fn schema(&self) -> Option<serde_json::Value>;
}

/// A value of one form, and where it goes.
pub(super) struct Value<S, F: Form> {
    /// The form of its value.
    pub(super) form: F,
    /// Takes it out of a section; `None` if it is not set.
    pub(super) get: fn(&S) -> Option<F::Value>,
    /// Puts it into a section.
    pub(super) set: fn(&mut S, F::Value),
}

impl<S, F: Form> Field<S> for Value<S, F> {
    fn read(&self, table: &Table<'_>, key: &'static str, section: &mut S) {
        if let Some(value) = self.form.read(table, key) {
            (self.set)(section, value);
        }
    }

    fn write(&self, section: &S) -> Option<Written> {
        (self.get)(section).map(|value| self.form.write(&value))
    }

    fn describe(&self) -> String {
        self.form.describe()
    }

    fn show(&self, section: &S) -> Option<String> {
        (self.get)(section).map(|value| self.form.show(&value))
    }

    fn schema(&self) -> Option<serde_json::Value> {
        Some(self.form.schema())
    }
}

/// A table or an array of tables, which the code around it reads, since it has to know more.
pub(super) struct Nested<S> {
    /// The kind of table, for the book.
    pub(super) what: &'static str,
    /// Writes it in one line, or as a list; `None` if it is absent or has a header of its own.
    pub(super) write: fn(&S) -> Option<Written>,
}

impl<S> Field<S> for Nested<S> {
    fn read(&self, table: &Table<'_>, key: &'static str, _: &mut S) {
        // Looked up so that it is no unknown key.
        table.has(key);
    }

    fn write(&self, section: &S) -> Option<Written> {
        (self.write)(section)
    }

    fn describe(&self) -> String {
        self.what.to_owned()
    }

    fn show(&self, _: &S) -> Option<String> {
        None
    }

    fn schema(&self) -> Option<serde_json::Value> {
        None
    }
}

/// A table of a scene that is there once, such as `[time]`, and may be left out.
pub(super) trait Section: Default + 'static {
    /// Its name; empty for the keys above all tables.
    const NAME: &'static str;

    /// Its keys, in the order in which they are read and echoed.
    const KEYS: &'static [Key<Self>];

    /// Notes what keys say that cannot be together.
    fn check(&self, table: &Table<'_>);
}

/// Does something with each section of a scene, in the order of the echo.
pub(super) trait Visitor {
    /// Visits a section.
    fn section<S: Section>(&mut self, section: &S);

    /// Visits cloths and bodies, whose place is between sections.
    fn objects(&mut self) {}
}

/// Reads a section and checks it.
pub(super) fn read_section<S: Section>(table: &Table<'_>) -> S {
    let section = read_keys(table, S::KEYS, S::default());
    for key in S::KEYS {
        if key.idle.is_some() && table.has(key.name) {
            table.note_set(key.name);
        }
    }
    section.check(table);
    section
}

/// Reads keys into an object that has their defaults.
pub(super) fn read_keys<S>(table: &Table<'_>, keys: &[Key<S>], mut section: S) -> S {
    for key in keys {
        if key.suits(&section) {
            key.field.read(table, key.name, &mut section);
        }
    }
    section
}

/// Notes keys that must be given and are not.
pub(super) fn note_missing<S>(table: &Table<'_>, keys: &[Key<S>], section: &S) {
    for key in keys {
        if let Some(example) = key.example
            && key.suits(section)
            && !table.has(key.name)
        {
            table.note_missing(key.name, example);
        }
    }
}

/// Keys as lines `key = value # unit`.
pub(super) fn write_lines<S>(out: &mut String, keys: &[Key<S>], section: &S) {
    for key in keys {
        write_line(out, key, section);
    }
}

fn write_line<S>(out: &mut String, key: &Key<S>, section: &S) {
    let written = key.suits(section).then(|| key.field.write(section));
    if let Some(Written { text, unit }) = written.flatten() {
        let unit = match unit {
            "" => String::new(),
            unit => format!(" # {unit}"),
        };
        // Writing to a String cannot fail.
        let _ = match text.split_once('\n') {
            // A list has its unit where it begins.
            Some((first, rest)) => writeln!(out, "{} = {first}{unit}\n{rest}", key.name),
            None => writeln!(out, "{} = {text}{unit}", key.name),
        };
    }
}

/// Keys as a table in one line, `{ key = value, key = value }`; only lists in it break the line.
pub(super) fn write_inline<S>(keys: &[Key<S>], section: &S) -> String {
    let said: Vec<String> = keys
        .iter()
        .filter(|key| key.suits(section))
        .filter_map(|key| {
            let Written { text, .. } = key.field.write(section)?;
            Some(format!("{} = {text}", key.name))
        })
        .collect();
    format!("{{ {} }}", said.join(", "))
}

/// Writes sections as an echo has them.
pub(super) struct Echo<'a, O: FnMut(&mut String)> {
    /// The text so far.
    pub(super) out: String,
    /// The scene that the sections are of.
    pub(super) scene: &'a Scene,
    /// Whether only what the trajectory depends on is written.
    pub(super) of_trajectory: bool,
    /// Writes cloths and bodies.
    pub(super) objects: O,
}

impl<O: FnMut(&mut String)> Visitor for Echo<'_, O> {
    fn section<S: Section>(&mut self, section: &S) {
        let default = S::default();
        let of_trajectory = self.of_trajectory;
        // Other keys are left out, not written with neutral values, which may change.
        let is_written = |key: &&Key<S>| {
            if of_trajectory {
                key.changes.is_of_trajectory()
            } else {
                // A reader of the echo is warned of idle keys in it.
                let idle = key.idle_at_default(section, &default, self.scene);
                idle.is_none()
            }
        };
        let bears = !of_trajectory || S::KEYS.iter().any(|key| key.changes.is_of_trajectory());
        if bears && !S::NAME.is_empty() {
            let _ = writeln!(self.out, "\n[{}]", S::NAME);
        }
        for key in S::KEYS.iter().filter(is_written) {
            write_line(&mut self.out, key, section);
        }
    }

    fn objects(&mut self) {
        (self.objects)(&mut self.out);
    }
}

/// Collects sentences about keys that are set and have no effect.
pub(super) struct Idle<'a> {
    /// The scene that the sections are of.
    pub(super) scene: &'a Scene,
    /// The keys that a text sets, by their dotted names, while it is being read: then notices are
    /// about idle keys that are set to their defaults. Without it they are about those that have
    /// other values.
    pub(super) set: Option<&'a [String]>,
    /// The sentences.
    pub(super) told: Vec<String>,
}

impl Visitor for Idle<'_> {
    fn section<S: Section>(&mut self, section: &S) {
        let default = S::default();
        for key in S::KEYS {
            let Some(why) = key.idle.and_then(|idle| idle(self.scene)) else {
                continue;
            };
            let name = format!("{}.{}", S::NAME, key.name);
            let is_default = key.idle_at_default(section, &default, self.scene).is_some();
            let is_told = match self.set {
                Some(set) => is_default && set.contains(&name),
                None => !is_default,
            };
            if is_told {
                self.told.push(format!("{name} has no effect: {why}"));
            }
        }
    }
}
