//! Finds which key a TOML text says twice, and where it said it first. The parser tells only where
//! the second one is.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A key that is said twice.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Duplicate {
    /// The key with the tables around it, or itself alone if these are not known.
    pub(super) key: String,
    /// Offset of the first one in bytes, unless the text has other faults too.
    pub(super) first: Option<usize>,
}

/// Finds the key whose second mention stands at `span`; `None` if no key is there.
///
/// The second one is given a name that nothing else has. The key beside it that has its old name is
/// then the first one.
pub(super) fn duplicate(text: &str, span: std::ops::Range<usize>) -> Option<Duplicate> {
    let key = bare(text.get(span.clone())?)?;
    let mut stand_in = "x".to_owned();
    while text.contains(&stand_in) {
        if stand_in.len() > MOST_TRIES {
            return Some(Duplicate { key, first: None });
        }
        stand_in.push('x');
    }
    let renamed = [&text[..span.start], &stand_in, &text[span.end..]].concat();
    let place = DeTable::parse(&renamed)
        .ok()
        .and_then(|table| beside(table.get_ref(), &stand_in, &key));
    Some(match place {
        Some((path, first)) => Duplicate {
            key: path,
            // Before the second one nothing has moved.
            first: first.filter(|&first| first < span.start),
        },
        None => Duplicate { key, first: None },
    })
}

/// The key that a text of one key means, without its quotes.
fn bare(key: &str) -> Option<String> {
    let line = format!("{key} = 0");
    let table = DeTable::parse(&line).ok()?;
    let (only, value) = table.get_ref().iter().next()?;
    matches!(value.get_ref(), DeValue::Integer(_)).then(|| only.get_ref().to_string())
}

/// The dotted path of `key` in the table that has `stand_in`, and its offset if it is there.
///
/// Recursion is bounded by the parser's limit on nesting.
fn beside(table: &DeTable<'_>, stand_in: &str, key: &str) -> Option<(String, Option<usize>)> {
    if table.keys().any(|other| other.get_ref() == stand_in) {
        let first = table.keys().find(|other| other.get_ref() == key);
        return Some((key.to_owned(), first.map(|first| first.span().start)));
    }
    table.iter().find_map(|(name, value)| {
        let (path, first) = below(value, stand_in, key)?;
        Some((format!("{}.{path}", name.get_ref()), first))
    })
}

fn below(
    value: &Spanned<DeValue<'_>>,
    stand_in: &str,
    key: &str,
) -> Option<(String, Option<usize>)> {
    match value.get_ref() {
        DeValue::Table(table) => beside(table, stand_in, key),
        DeValue::Array(array) => array.iter().find_map(|value| below(value, stand_in, key)),
        _ => None,
    }
}

/// Longest stand-in that is tried.
const MOST_TRIES: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Option<(String, Option<usize>)> {
        let error = DeTable::parse(text).unwrap_err();
        let found = duplicate(text, error.span().unwrap())?;
        Some((found.key, found.first))
    }

    #[test]
    fn key_and_first_place_are_found() {
        let cases = [
            ("a = 1\na = 2", "a", Some(0)),
            (
                "x = 1\n[time]\nstep = 1\n\"step\" = 2",
                "time.step",
                Some(13),
            ),
            (
                "[[cloth]]\nname = 1\n[[cloth]]\nm = { e = 1, e = 2 }",
                "cloth.m.e",
                Some(35),
            ),
            ("[a]\nb = 1\n[c]\n[a]\n", "a", Some(1)),
            ("a.b = 1\na.b = 2", "a.b", Some(2)),
            // A second fault hides what is around.
            ("[t]\na = 1\na = 2\nc = 1\nc = 2", "a", None),
        ];
        for (text, key, first) in cases {
            assert_eq!(told(text), Some((key.to_owned(), first)), "{text}");
        }
    }

    #[test]
    fn no_span_is_a_panic() {
        let text = "µ = 1\nµ = 2";
        for start in 0..=text.len() + 1 {
            for end in start..=text.len() + 1 {
                drop(duplicate(text, start..end));
            }
        }
    }
}
