//! Reads keys out of a table, keeps what is wrong, and knows which keys were asked for.
//!
//! Every getter asks for one key. If the key holds something else, a problem is noted and a
//! stand-in is returned, so that one pass finds all problems. The caller looks at
//! [`Problems::into_sorted`] before it uses anything. [`Table::finish`] turns keys nobody asked for
//! into problems with the nearest right name.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use glam::DVec3;

use super::document::{Entry, Node, Origin, Value};
use super::error::{Location, Problem, did_you_mean};
use super::nearest::nearest;
use super::quantity::{Dimension, Number, Quantity, Short};

/// Problems found so far, and what is needed to name their places.
#[derive(Debug)]
pub(super) struct Problems<'a> {
    path: Option<&'a Path>,
    overrides: &'a [(String, String)],
    found: RefCell<Vec<(Origin, String, String)>>,
    idle: RefCell<Vec<String>>,
    set: RefCell<Vec<String>>,
}

impl<'a> Problems<'a> {
    pub(super) fn new(path: Option<&'a Path>, overrides: &'a [(String, String)]) -> Self {
        Self {
            path,
            overrides,
            found: RefCell::default(),
            idle: RefCell::default(),
            set: RefCell::default(),
        }
    }

    /// Notes a problem.
    pub(super) fn note(&self, origin: Origin, key: impl Into<String>, message: impl Into<String>) {
        let mut found = self.found.borrow_mut();
        if found.len() < MOST_NOTED {
            found.push((origin, key.into(), message.into()));
        }
    }

    /// Takes the dotted names of keys that were noted as set.
    pub(super) fn take_set(&self) -> Vec<String> {
        self.set.take()
    }

    /// Takes what was noted of keys without effect.
    pub(super) fn take_idle(&self) -> Vec<String> {
        self.idle.take()
    }

    /// All problems: those of the text by line, then those of overrides.
    pub(super) fn into_sorted(self) -> Vec<Problem> {
        let mut found = self.found.into_inner();
        found.sort_by_key(|problem| problem.0);
        let location = |origin| match origin {
            Origin::Line(line) => Location::Text {
                path: self.path.map(PathBuf::from),
                line,
                column: None,
            },
            Origin::Override(number) => Location::Override(
                self.overrides
                    .get(number)
                    .map_or(String::new(), |(key, value)| {
                        format!("{}={}", Short(key), Short(value))
                    }),
            ),
        };
        found
            .into_iter()
            .map(|(origin, key, message)| Problem {
                location: location(origin),
                key,
                message,
            })
            .collect()
    }
}

/// The range of a quantity.
#[derive(Clone, Copy, Debug)]
pub(super) enum Range {
    /// Any finite number of sensible size.
    Any,
    /// Greater than zero.
    Positive,
    /// Zero or more.
    NonNegative,
    /// Numbers from the first on that are less than the second.
    HalfOpen(f64, f64),
}

impl Range {
    /// The range in words; empty if any number will do.
    pub(super) fn describe(self) -> String {
        match self {
            Self::Any => String::new(),
            Self::Positive => "greater than 0".to_owned(),
            Self::NonNegative => "not negative".to_owned(),
            Self::HalfOpen(low, high) => {
                format!("at least {} and less than {}", Number(low), Number(high))
            }
        }
    }
}

/// A table and the keys that were asked for.
#[derive(Debug)]
pub(super) struct Table<'a> {
    problems: &'a Problems<'a>,
    entries: &'a BTreeMap<String, Entry>,
    path: String,
    origin: Origin,
    asked: RefCell<Vec<&'static str>>,
    ignore_rest: std::cell::Cell<bool>,
}

impl<'a> Table<'a> {
    /// The top of a document.
    pub(super) fn root(node: &'a Node, problems: &'a Problems<'a>) -> Self {
        Self::over(node, String::new(), node.origin, problems)
    }

    fn over(node: &'a Node, path: String, origin: Origin, problems: &'a Problems<'a>) -> Self {
        let entries = match &node.value {
            Value::Table(entries) => entries,
            other => {
                problems.note(origin, path.as_str(), wants("a table", other));
                &EMPTY
            }
        };
        Self {
            problems,
            entries,
            path,
            origin,
            asked: RefCell::default(),
            ignore_rest: false.into(),
        }
    }

    /// Keys not asked for will not be called unknown.
    pub(super) fn ignore_rest(&self) {
        self.ignore_rest.set(true);
    }

    /// Dotted key of `key` in this table.
    pub(super) fn key(&self, key: &str) -> String {
        match (self.path.as_str(), key) {
            ("", key) => key.to_owned(),
            (path, "") => path.to_owned(),
            (path, key) => format!("{path}.{key}"),
        }
    }

    /// Whether the key is there.
    pub(super) fn has(&self, key: &'static str) -> bool {
        self.entry(key).is_some()
    }

    /// Notes a problem with `key`, at its value if it is there and at the table if not.
    pub(super) fn note(&self, key: &str, message: impl Into<String>) {
        let origin = self
            .entries
            .get(key)
            .map_or(self.origin, |entry| entry.node.origin);
        self.problems.note(origin, self.key(key), message);
    }

    /// Notes that a key is set and has no effect, which is no problem.
    pub(super) fn note_idle(&self, key: &str, why: &str) {
        let note = format!("{} has no effect: {why}", self.key(key));
        self.problems.idle.borrow_mut().push(note);
    }

    /// Notes that a key is set, whatever its value.
    pub(super) fn note_set(&self, key: &str) {
        let key = self.key(key);
        self.problems.set.borrow_mut().push(key);
    }

    /// Notes that a key is missing.
    pub(super) fn note_missing(&self, key: &str, example: &str) {
        self.note(key, format!("missing; it wants a line such as `{example}`"));
    }

    /// Notes every key that was never asked for. Must be the last use of a table.
    pub(super) fn finish(self) {
        if self.ignore_rest.get() {
            return;
        }
        let asked = self.asked.into_inner();
        for (key, entry) in self.entries {
            if asked.contains(&key.as_str()) {
                continue;
            }
            let hint = match nearest(key, asked.iter().copied()) {
                Some(name) => did_you_mean(Some(name)),
                None => {
                    let mut names: Vec<_> = asked.iter().map(|name| format!("`{name}`")).collect();
                    names.sort();
                    names.dedup();
                    format!("; here can be {}", names.join(", "))
                }
            };
            let shown = Short(key).to_string();
            let path = if self.path.is_empty() {
                shown
            } else {
                format!("{}.{shown}", self.path)
            };
            self.problems
                .note(entry.origin, path, format!("unknown key{hint}"));
        }
    }

    /// A table under `key`, empty if absent.
    pub(super) fn table<T>(&self, key: &'static str, read: impl FnOnce(&Table<'_>) -> T) -> T {
        let absent = Node {
            value: Value::Table(BTreeMap::new()),
            origin: self.origin,
        };
        let (node, origin) = self
            .entry(key)
            .map_or((&absent, self.origin), |entry| (&entry.node, entry.origin));
        let table = Table::over(node, self.key(key), origin, self.problems);
        let result = read(&table);
        table.finish();
        result
    }

    /// The tables of an array under `key`; its elements are numbered if there are several.
    pub(super) fn tables<T>(
        &self,
        key: &'static str,
        most: usize,
        mut read: impl FnMut(usize, &Table<'_>) -> T,
    ) -> Vec<T> {
        let Some(entry) = self.entry(key) else {
            return Vec::new();
        };
        let Value::Array(nodes) = &entry.node.value else {
            let message = format!(
                "wants tables, as in `[[{key}]]`, not {}",
                entry.node.value.kind()
            );
            self.note(key, message);
            return Vec::new();
        };
        if nodes.len() > most {
            self.note(
                key,
                format!("has {} elements, the most are {most}", nodes.len()),
            );
            return Vec::new();
        }
        let several = nodes.len() > 1;
        let read_one = |(index, node): (usize, &Node)| {
            let path = if several {
                self.key(&format!("{key}.{index}"))
            } else {
                self.key(key)
            };
            let table = Table::over(node, path, node.origin, self.problems);
            let result = read(index, &table);
            table.finish();
            result
        };
        nodes.iter().enumerate().map(read_one).collect()
    }

    /// A quantity, or `None` if absent.
    pub(super) fn quantity(
        &self,
        key: &'static str,
        dimension: Dimension,
        range: Range,
    ) -> Option<f64> {
        let entry = self.entry(key)?;
        Some(self.quantity_of(&entry.node, &self.key(key), dimension, range))
    }

    /// A vector of quantities, or `None` if absent.
    pub(super) fn vector(
        &self,
        key: &'static str,
        dimension: Dimension,
        range: Range,
    ) -> Option<DVec3> {
        let entry = self.entry(key)?;
        Some(DVec3::from_array(self.array_of(
            &entry.node,
            &self.key(key),
            dimension,
            range,
        )))
    }

    /// An array of quantities, or `None` if absent or wrong.
    pub(super) fn quantities(
        &self,
        key: &'static str,
        dimension: Dimension,
        most: usize,
    ) -> Option<Vec<f64>> {
        let quantity =
            |node: &Node, path: &str| self.quantity_of(node, path, dimension, Range::Any);
        self.elements(key, most, quantity)
    }

    /// An array of vectors of quantities, or `None` if absent or wrong.
    pub(super) fn vectors(
        &self,
        key: &'static str,
        dimension: Dimension,
        most: usize,
    ) -> Option<Vec<DVec3>> {
        let vector = |node: &Node, path: &str| {
            DVec3::from_array(self.array_of(node, path, dimension, Range::Any))
        };
        self.elements(key, most, vector)
    }

    /// The elements of an array, or `None` if absent or wrong.
    fn elements<T>(
        &self,
        key: &'static str,
        most: usize,
        read: impl Fn(&Node, &str) -> T,
    ) -> Option<Vec<T>> {
        let entry = self.entry(key)?;
        let Value::Array(nodes) = &entry.node.value else {
            self.note(key, wants("an array", &entry.node.value));
            return None;
        };
        if nodes.len() > most {
            let message = format!("has {} elements, the most are {most}", nodes.len());
            self.note(key, message);
            return None;
        }
        let nodes = nodes.iter().enumerate();
        Some(
            nodes
                .map(|(index, node)| read(node, &self.key(&format!("{key}.{index}"))))
                .collect(),
        )
    }

    /// Two quantities, or one that stands for both; `None` if absent.
    pub(super) fn pair(
        &self,
        key: &'static str,
        dimension: Dimension,
        range: Range,
    ) -> Option<[f64; 2]> {
        let entry = self.entry(key)?;
        let path = self.key(key);
        Some(match &entry.node.value {
            Value::Array(_) => self.array_of(&entry.node, &path, dimension, range),
            _ => [self.quantity_of(&entry.node, &path, dimension, range); 2],
        })
    }

    /// A whole number from `least` to `most`, or `None` if absent.
    pub(super) fn count(&self, key: &'static str, least: u64, most: u64) -> Option<u64> {
        let entry = self.entry(key)?;
        Some(self.count_of(&entry.node, &self.key(key), least, most))
    }

    /// Two whole numbers, or one that stands for both; `None` if absent.
    pub(super) fn count_pair(&self, key: &'static str, least: u64, most: u64) -> Option<[u64; 2]> {
        let entry = self.entry(key)?;
        let path = self.key(key);
        let Value::Array(nodes) = &entry.node.value else {
            return Some([self.count_of(&entry.node, &path, least, most); 2]);
        };
        let [first, second] = nodes.as_slice() else {
            self.note(key, format!("wants two numbers, not {}", nodes.len()));
            return Some([least; 2]);
        };
        Some([first, second].map(|node| self.count_of(node, &path, least, most)))
    }

    /// An array of whole numbers, or `None` if absent.
    pub(super) fn counts(&self, key: &'static str, least: u64, most: u64) -> Option<Vec<u64>> {
        let entry = self.entry(key)?;
        let path = self.key(key);
        let Value::Array(nodes) = &entry.node.value else {
            self.note(key, wants("an array of whole numbers", &entry.node.value));
            return None;
        };
        let numbers = nodes.iter();
        Some(
            numbers
                .map(|node| self.count_of(node, &path, least, most))
                .collect(),
        )
    }

    /// Whether there is a text.
    pub(super) fn is_text(&self, key: &'static str) -> bool {
        (self.entry(key)).is_some_and(|entry| matches!(entry.node.value, Value::Text(_)))
    }

    /// Whether the value of a key is a table.
    pub(super) fn is_table(&self, key: &'static str) -> bool {
        (self.entry(key)).is_some_and(|entry| matches!(entry.node.value, Value::Table(_)))
    }

    /// A boolean, or `None` if absent.
    pub(super) fn boolean(&self, key: &'static str) -> Option<bool> {
        let entry = self.entry(key)?;
        match &entry.node.value {
            Value::Boolean(value) => Some(*value),
            other => {
                self.note(key, wants("`true` or `false`", other));
                None
            }
        }
    }

    /// A text, or `None` if absent.
    pub(super) fn text(&self, key: &'static str) -> Option<&'a str> {
        let entry = self.entry(key)?;
        match &entry.node.value {
            Value::Text(text) => Some(text),
            other => {
                self.note(key, wants("a text", other));
                None
            }
        }
    }

    /// One of some words, or `None` if absent or wrong.
    pub(super) fn choice<T: Copy>(&self, key: &'static str, words: &[(&str, T)]) -> Option<T> {
        self.word(key, self.text(key)?, words)
    }

    /// An array of some words, each at most once, or `None` if absent or wrong.
    pub(super) fn choices<T: Copy>(
        &self,
        key: &'static str,
        words: &[(&str, T)],
    ) -> Option<Vec<T>> {
        let entry = self.entry(key)?;
        let Value::Array(nodes) = &entry.node.value else {
            self.note(key, wants("an array of texts", &entry.node.value));
            return None;
        };
        let mut said = Vec::new();
        let mut chosen = Vec::new();
        for node in nodes {
            let Value::Text(text) = &node.value else {
                self.note(key, wants("an array of texts", &node.value));
                return None;
            };
            if said.contains(&text.as_str()) {
                self.note(key, format!("has \"{}\" twice", Short(text)));
                return None;
            }
            said.push(text);
            chosen.push(self.word(key, text, words)?);
        }
        Some(chosen)
    }

    /// The value that a word stands for, or `None` if the word is not in the list.
    fn word<T: Copy>(&self, key: &'static str, text: &str, words: &[(&str, T)]) -> Option<T> {
        let found = words
            .iter()
            .find(|(word, _)| *word == text)
            .map(|&(_, value)| value);
        if found.is_none() {
            let hint = did_you_mean(nearest(text, words.iter().map(|&(word, _)| word)));
            let all: Vec<_> = words
                .iter()
                .map(|(word, _)| format!("\"{word}\""))
                .collect();
            let message = format!("\"{}\" is none of {}{hint}", Short(text), all.join(", "));
            self.note(key, message);
        }
        found
    }

    fn entry(&self, key: &'static str) -> Option<&'a Entry> {
        self.asked.borrow_mut().push(key);
        self.entries.get(key)
    }

    fn quantity_of(&self, node: &Node, path: &str, dimension: Dimension, range: Range) -> f64 {
        let bad = |message: String| {
            self.problems.note(node.origin, path, message);
            f64::NAN
        };
        let example = dimension.example();
        let value = match &node.value {
            Value::Float(value) => *value,
            #[expect(clippy::cast_precision_loss, reason = "range is checked below")]
            Value::Integer(value) => *value as f64,
            Value::Text(text) => match Quantity::parse(text) {
                Ok(quantity) if quantity.dimension == dimension => quantity.value,
                // `"5"` is as good as `5`.
                Ok(quantity) if quantity.dimension == Dimension::NUMBER && !text.contains('%') => {
                    quantity.value
                }
                Ok(quantity) => {
                    return bad(format!(
                        "`{}` is {}; `{path}` wants {dimension}, such as \"{example}\"",
                        Short(text),
                        quantity.dimension,
                    ));
                }
                Err(why) => {
                    return bad(format!(
                        "{why}; `{path}` wants {dimension}, such as \"{example}\""
                    ));
                }
            },
            other => {
                return bad(wants(&format!("{dimension}, such as \"{example}\""), other));
            }
        };
        let unit = dimension.si();
        let space = if unit.is_empty() { "" } else { " " };
        let shown = format!("{}{space}{unit}", Number(value));
        if !value.is_finite() {
            return bad(format!("must be finite, not {value}"));
        }
        match range {
            Range::Positive if value <= 0.0 => bad(format!("must be greater than 0, not {shown}")),
            Range::Positive if value < SMALLEST => {
                bad(format!("{shown} is too small; the least is {SMALLEST:e}"))
            }
            Range::NonNegative if value < 0.0 => bad(format!("must not be negative, not {shown}")),
            Range::HalfOpen(low, high) if !(low..high).contains(&value) => {
                let (low, high) = (Number(low), Number(high));
                bad(format!(
                    "must be at least {low} and less than {high}, not {shown}"
                ))
            }
            _ if value.abs() > LARGEST => {
                bad(format!("{shown} is too large; the most is {LARGEST:e}"))
            }
            _ => value,
        }
    }

    fn array_of<const N: usize>(
        &self,
        node: &Node,
        path: &str,
        dimension: Dimension,
        range: Range,
    ) -> [f64; N] {
        let example = dimension.example();
        let Value::Array(nodes) = &node.value else {
            let what = format!("an array of {N}, each {dimension} such as \"{example}\"");
            self.problems
                .note(node.origin, path, wants(&what, &node.value));
            return [f64::NAN; N];
        };
        let Ok(nodes) = <&[Node; N]>::try_from(nodes.as_slice()) else {
            self.problems.note(
                node.origin,
                path,
                format!("wants {N} numbers, not {}", nodes.len()),
            );
            return [f64::NAN; N];
        };
        nodes
            .each_ref()
            .map(|node| self.quantity_of(node, path, dimension, range))
    }

    fn count_of(&self, node: &Node, path: &str, least: u64, most: u64) -> u64 {
        let value = match &node.value {
            Value::Integer(value) => *value,
            other => {
                self.problems
                    .note(node.origin, path, wants("a whole number", other));
                return least;
            }
        };
        match u64::try_from(value) {
            Ok(value) if (least..=most).contains(&value) => value,
            _ => {
                let message = format!("must be from {least} to {most}, not {value}");
                self.problems.note(node.origin, path, message);
                least
            }
        }
    }
}

fn wants(what: &str, found: &Value) -> String {
    format!("wants {what}, not {}", found.kind())
}

static EMPTY: BTreeMap<String, Entry> = BTreeMap::new();

/// Largest magnitude of any quantity: squares and products of a few stay finite.
const LARGEST: f64 = 1e12;

/// Least quantity that must be greater than zero.
const SMALLEST: f64 = 1e-12;

/// Problems kept; a text with more is no scene.
const MOST_NOTED: usize = 1000;
