//! A TOML text as a tree whose every value knows where it was said.
//!
//! In: the text of a scene and the overrides of the command line. Out: a [`Node`] tree in which an
//! override's values carry the override as their place. The meaning of keys is not known here.

use std::collections::BTreeMap;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::duplicate::duplicate;
use super::error::did_you_mean;
use super::nearest::nearest;
use super::quantity::Short;

/// A value and its place.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) value: Value,
    pub(super) origin: Origin,
}

/// A value in TOML, without dates' details.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Text(String),
    Integer(i128),
    Float(f64),
    Boolean(bool),
    Date,
    Array(Vec<Node>),
    Table(BTreeMap<String, Entry>),
}

/// A key of a table with its value.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// The place of the key.
    pub(super) origin: Origin,
    pub(super) node: Node,
}

/// The origin of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Origin {
    /// This line of the text, from 1.
    Line(usize),
    /// This override, from 0.
    Override(usize),
}

/// A text that is not TOML.
#[derive(Debug)]
pub(super) struct SyntaxError {
    pub(super) line: usize,
    pub(super) column: usize,
    pub(super) message: String,
}

impl Node {
    /// Reads a TOML text.
    pub(super) fn parse(text: &str) -> Result<Self, SyntaxError> {
        let lines = Lines::new(text);
        let table = DeTable::parse(text).map_err(|error| {
            let start = error.span().map_or(0, |span| span.start);
            let line = lines.line(start);
            SyntaxError {
                line,
                column: lines.column(start),
                message: said_twice(text, &error, &|offset| lines.line(offset))
                    .unwrap_or_else(|| error.message().to_owned()),
            }
        })?;
        let line = |span: std::ops::Range<usize>| Origin::Line(lines.line(span.start));
        Ok(Self {
            value: table_value(table.into_inner(), &line),
            origin: Origin::Line(1),
        })
    }

    /// Reads the right side of an override: a TOML value, or else a text without its quotes.
    fn parse_override(text: &str, origin: Origin) -> Result<Self, String> {
        let text = text.trim();
        match DeValue::parse(text) {
            Ok(value) => Ok(from_toml(value, &|_| origin)),
            // A text that begins like TOML was meant as TOML.
            Err(error) if text.starts_with(['[', '{', '"', '\'']) => {
                let twice = said_twice(text, &error, &|_| 1);
                let message = twice.unwrap_or_else(|| error.message().to_owned());
                Err(format!("not a TOML value: {message}"))
            }
            Err(_) => Ok(Self {
                value: Value::Text(text.to_owned()),
                origin,
            }),
        }
    }

    /// Sets `key` (dotted; array elements by index from 0, or by their `name`) to `text`.
    ///
    /// Tables on the way that are absent are made; the index of an array of one may be left out.
    pub(super) fn set(&mut self, key: &str, text: &str, number: usize) -> Result<(), String> {
        let origin = Origin::Override(number);
        let value = Self::parse_override(text, origin)?;
        let parts: Vec<&str> = key.split('.').map(str::trim).collect();
        if parts.iter().any(|part| part.is_empty()) || parts.len() > DEEPEST {
            return Err("wants `key.key=value` with no empty key".to_owned());
        }
        let mut place = self;
        let mut path = String::new();
        for (index, part) in parts.iter().enumerate() {
            place = place.step_into(part, &path, origin)?;
            if index > 0 {
                path.push('.');
            }
            path.push_str(part);
        }
        *place = value;
        Ok(())
    }

    /// Takes these keys out of a table of the root, as if the text had not said them.
    pub(super) fn forget(&mut self, table: &str, keys: &[&str]) {
        let Value::Table(root) = &mut self.value else {
            return;
        };
        if let Some(entry) = root.get_mut(table)
            && let Value::Table(entries) = &mut entry.node.value
        {
            entries.retain(|key, _| !keys.contains(&key.as_str()));
        }
    }

    /// The child called `part`, made as an empty table if there is none.
    fn step_into(&mut self, part: &str, path: &str, origin: Origin) -> Result<&mut Self, String> {
        match &mut self.value {
            Value::Array(elements) => match element_index(elements, part, path)? {
                Some(index) => Ok(&mut elements[index]),
                // `cloth.material` for the only `[[cloth]]`.
                None => elements[0].step_into(part, path, origin),
            },
            Value::Table(entries) => {
                let empty = Self {
                    value: Value::Table(BTreeMap::new()),
                    origin,
                };
                let entry = entries.entry(part.to_owned());
                Ok(&mut entry
                    .or_insert(Entry {
                        origin,
                        node: empty,
                    })
                    .node)
            }
            other => Err(format!(
                "`{}` is {}, it has no keys",
                Short(path),
                other.kind()
            )),
        }
    }

    /// The `name` of a table.
    fn name(&self) -> Option<&str> {
        let Value::Table(entries) = &self.value else {
            return None;
        };
        match &entries.get("name")?.node.value {
            Value::Text(name) => Some(name),
            _ => None,
        }
    }
}

impl Value {
    /// The kind of value, with article, for messages.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "a text",
            Self::Integer(_) => "a whole number",
            Self::Float(_) => "a number",
            Self::Boolean(_) => "a boolean",
            Self::Date => "a date",
            Self::Array(_) => "an array",
            Self::Table(_) => "a table",
        }
    }
}

/// The index of the element that `part` names, or `None` if it is a key of the only element.
fn element_index(elements: &[Node], part: &str, path: &str) -> Result<Option<usize>, String> {
    let count = elements.len();
    if let Ok(index) = part.parse::<usize>() {
        if index < count {
            return Ok(Some(index));
        }
        let range = match count {
            0 => "it is empty".to_owned(),
            1 => "it has only element 0".to_owned(),
            _ => format!("its elements are 0 to {}", count - 1),
        };
        let (path, part) = (Short(path), Short(part));
        return Err(format!("`{path}` has no element {part}; {range}"));
    }
    if let Some(index) = elements
        .iter()
        .position(|element| element.name() == Some(part))
    {
        return Ok(Some(index));
    }
    if count == 1 {
        return Ok(None);
    }
    let hint = did_you_mean(nearest(part, elements.iter().filter_map(Node::name)));
    let (path, part) = (Short(path), Short(part));
    Err(format!(
        "`{path}` has {count} elements; name one by index or name, not `{part}`{hint}"
    ))
}

/// The problem with a key that stands twice; `None` if something else is wrong.
fn said_twice(
    text: &str,
    error: &toml::de::Error,
    line: &dyn Fn(usize) -> usize,
) -> Option<String> {
    if error.message() != "duplicate key" {
        return None;
    }
    let found = duplicate(text, error.span()?)?;
    let key = Short(&found.key);
    Some(match found.first {
        Some(first) => {
            let line = line(first);
            format!("duplicate key `{key}`, which line {line} has already; leave one of them out")
        }
        None => format!("duplicate key `{key}`; leave one of them out"),
    })
}

type Locate<'a> = dyn Fn(std::ops::Range<usize>) -> Origin + 'a;

fn table_value(table: DeTable<'_>, locate: &Locate<'_>) -> Value {
    let entries = table.into_iter().map(|(key, value)| {
        let origin = locate(key.span());
        (
            key.into_inner().into_owned(),
            Entry {
                origin,
                node: from_toml(value, locate),
            },
        )
    });
    Value::Table(entries.collect())
}

/// Recursion is bounded by the parser's limit on nesting.
fn from_toml(value: Spanned<DeValue<'_>>, locate: &Locate<'_>) -> Node {
    let origin = locate(value.span());
    let value = match value.into_inner() {
        DeValue::String(text) => Value::Text(text.into_owned()),
        DeValue::Integer(integer) => i128::from_str_radix(integer.as_str(), integer.radix())
            .map_or(Value::Float(f64::INFINITY), Value::Integer),
        // The parser has checked the form; an unreadable float becomes one that every check
        // refuses.
        DeValue::Float(float) => Value::Float(float.as_str().parse().unwrap_or(f64::NAN)),
        DeValue::Boolean(boolean) => Value::Boolean(boolean),
        DeValue::Datetime(_) => Value::Date,
        DeValue::Array(array) => Value::Array(
            array
                .into_iter()
                .map(|element| from_toml(element, locate))
                .collect(),
        ),
        DeValue::Table(table) => table_value(table, locate),
    };
    Node { value, origin }
}

/// Byte offsets to lines and columns.
pub(super) struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let newlines = text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n');
        let starts = std::iter::once(0)
            .chain(newlines.map(|(index, _)| index + 1))
            .collect();
        Self { text, starts }
    }

    /// Line of a byte, from 1.
    pub(super) fn line(&self, offset: usize) -> usize {
        self.starts.partition_point(|&start| start <= offset)
    }

    /// Column of a byte in characters, from 1.
    pub(super) fn column(&self, offset: usize) -> usize {
        let start = self
            .starts
            .get(self.line(offset).saturating_sub(1))
            .copied()
            .unwrap_or(0);
        self.text
            .get(start..offset)
            .map_or(1, |before| before.chars().count() + 1)
    }
}

/// Parts in the key of an override.
const DEEPEST: usize = 16;
