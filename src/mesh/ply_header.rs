//! The header of a PLY file: which elements come in which order, and which properties each has.
//!
//! Lines end as the first one does: with `\n`, `\r\n` or, in old files, `\r`.

use super::file_problem::{Problem, short};
use super::looks::no_ply;

/// The header of a file.
#[derive(Debug)]
pub(super) struct Header<'a> {
    pub(super) format: Format,
    pub(super) elements: Vec<Element<'a>>,
    pub(super) ending: Ending,
    /// The beginning of the data behind the header: its first byte and line.
    pub(super) body: (usize, usize),
}

/// How numbers are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Text,
    Binary { big_endian: bool },
}

/// How lines end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// Lines end with `\n`, before which there may be `\r`.
    Newline,
    /// Lines end with `\r`.
    Return,
}

/// A kind of thing of which there are some.
#[derive(Debug)]
pub(super) struct Element<'a> {
    pub(super) name: &'a [u8],
    pub(super) count: usize,
    pub(super) properties: Vec<Property<'a>>,
}

/// A number, or a list of numbers, that each thing of a kind has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Property<'a> {
    pub(super) name: &'a [u8],
    /// The type of a list's length.
    pub(super) list: Option<Number>,
    pub(super) number: Number,
}

/// The type of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Number {
    Int8,
    Uint8,
    Int16,
    Uint16,
    Int32,
    Uint32,
    Float32,
    Float64,
}

impl Number {
    /// All names that types have.
    const NAMED: [(&'static [u8], Self); 16] = [
        (b"char", Self::Int8),
        (b"uchar", Self::Uint8),
        (b"short", Self::Int16),
        (b"ushort", Self::Uint16),
        (b"int", Self::Int32),
        (b"uint", Self::Uint32),
        (b"float", Self::Float32),
        (b"double", Self::Float64),
        (b"int8", Self::Int8),
        (b"uint8", Self::Uint8),
        (b"int16", Self::Int16),
        (b"uint16", Self::Uint16),
        (b"int32", Self::Int32),
        (b"uint32", Self::Uint32),
        (b"float32", Self::Float32),
        (b"float64", Self::Float64),
    ];

    fn named(name: &[u8]) -> Option<Self> {
        let found = Self::NAMED.iter().find(|(known, _)| *known == name);
        found.map(|(_, number)| *number)
    }

    /// Its bytes in a binary file.
    pub(super) fn size(self) -> usize {
        match self {
            Self::Int8 | Self::Uint8 => 1,
            Self::Int16 | Self::Uint16 => 2,
            Self::Int32 | Self::Uint32 | Self::Float32 => 4,
            Self::Float64 => 8,
        }
    }

    pub(super) fn is_whole(self) -> bool {
        !matches!(self, Self::Float32 | Self::Float64)
    }
}

impl Property<'_> {
    /// Bytes that it takes at least in a binary file: a list may be empty.
    pub(super) fn least_size(&self) -> usize {
        self.list.unwrap_or(self.number).size()
    }
}

impl Element<'_> {
    /// Bytes that one takes at least in a binary file.
    pub(super) fn least_size(&self) -> usize {
        self.properties.iter().map(Property::least_size).sum()
    }

    pub(super) fn position(&self, name: &[u8]) -> Option<usize> {
        self.properties.iter().position(|p| p.name == name)
    }
}

impl<'a> Header<'a> {
    /// Reads the header that a file begins with.
    pub(super) fn read(bytes: &'a [u8]) -> Result<Self, Problem> {
        let ending = match bytes {
            [b'p', b'l', b'y', b'\n', ..] | [b'p', b'l', b'y', b'\r', b'\n', ..] => Ending::Newline,
            [b'p', b'l', b'y', b'\r', ..] => Ending::Return,
            _ => return Err(no_ply(bytes)),
        };
        let mut lines = Lines {
            bytes,
            at: 0,
            line: 0,
            ending,
        };
        lines.next();
        let mut format = None;
        let mut elements: Vec<Element<'a>> = Vec::new();
        let mut properties = 0;
        while let Some(text) = lines.next() {
            let line = lines.line;
            let bad = |message: String| Problem::at(line, message);
            let mut words = text
                .split(u8::is_ascii_whitespace)
                .filter(|word| !word.is_empty());
            let keyword = words.next().unwrap_or_default();
            match keyword {
                b"" | b"comment" | b"obj_info" => continue,
                b"end_header" => {
                    let Some(format) = format else {
                        return Err(bad("the header has no line `format`".to_owned()));
                    };
                    return Ok(Self {
                        format,
                        elements,
                        ending,
                        body: (lines.at, lines.line + 1),
                    });
                }
                b"format" if format.is_none() => {
                    format = Some(read_format(&mut words, text).map_err(bad)?);
                }
                b"element" => {
                    let element = read_element(&mut words, text).map_err(bad)?;
                    if elements.iter().any(|other| other.name == element.name) {
                        let name = short(element.name);
                        return Err(bad(format!("there is another element `{name}`")));
                    }
                    elements.push(element);
                }
                b"property" => {
                    let property = read_property(&mut words, text).map_err(bad)?;
                    let Some(element) = elements.last_mut() else {
                        return Err(bad("a property of no element".to_owned()));
                    };
                    if element.position(property.name).is_some() {
                        let name = short(property.name);
                        return Err(bad(format!("there is another property `{name}`")));
                    }
                    properties += 1;
                    element.properties.push(property);
                }
                _ => {
                    return Err(bad(format!(
                        "`{}` is no line of a header, which ends with `end_header`",
                        short(text)
                    )));
                }
            }
            if words.next().is_some() {
                return Err(bad(format!("`{}` has a word too many", short(text))));
            }
            // Each is looked at for the name of each.
            if elements.len() > MOST || properties > MOST {
                return Err(bad(format!("more than {MOST} elements or properties")));
            }
        }
        Err(Problem::at(
            lines.line,
            "the header has no end: there is no line `end_header`",
        ))
    }
}

fn read_format<'a>(
    words: &mut impl Iterator<Item = &'a [u8]>,
    line: &[u8],
) -> Result<Format, String> {
    let format = match words.next() {
        Some(b"ascii") => Some(Format::Text),
        Some(b"binary_little_endian") => Some(Format::Binary { big_endian: false }),
        Some(b"binary_big_endian") => Some(Format::Binary { big_endian: true }),
        _ => None,
    };
    format.filter(|_| words.next() == Some(b"1.0")).ok_or_else(|| {
        format!(
            "`{}` is none of `format ascii 1.0`, `format binary_little_endian 1.0` and `format binary_big_endian 1.0`",
            short(line)
        )
    })
}

fn read_element<'a>(
    words: &mut impl Iterator<Item = &'a [u8]>,
    line: &[u8],
) -> Result<Element<'a>, String> {
    let bad = || format!("`{}` is not as `element NAME COUNT`", short(line));
    let name = words.next().ok_or_else(bad)?;
    let count = words.next().and_then(|w| std::str::from_utf8(w).ok());
    let count = count.and_then(|count| count.parse().ok()).ok_or_else(bad)?;
    Ok(Element {
        name,
        count,
        properties: Vec::new(),
    })
}

fn read_property<'a>(
    words: &mut impl Iterator<Item = &'a [u8]>,
    line: &[u8],
) -> Result<Property<'a>, String> {
    let number = |word: Option<&[u8]>| {
        let word = word.unwrap_or_default();
        Number::named(word).ok_or_else(|| {
            format!(
                "`{}` in `{}` is none of the types char, uchar, short, ushort, int, uint, float, double",
                short(word),
                short(line)
            )
        })
    };
    let first = words.next();
    let (list, number) = match first {
        Some(b"list") => {
            let list = number(words.next())?;
            if !list.is_whole() {
                return Err(format!(
                    "`{}`: the length of a list is a whole number",
                    short(line)
                ));
            }
            (Some(list), number(words.next())?)
        }
        word => (None, number(word)?),
    };
    let name = words.next().ok_or_else(|| {
        format!(
            "`{}` is neither as `property TYPE NAME` nor as `property list TYPE TYPE NAME`",
            short(line)
        )
    })?;
    Ok(Property { name, list, number })
}

/// Lines one after the other.
#[derive(Debug)]
pub(super) struct Lines<'a> {
    pub(super) bytes: &'a [u8],
    /// The first byte of the next.
    pub(super) at: usize,
    /// The number of the last one, from 1.
    pub(super) line: usize,
    pub(super) ending: Ending,
}

impl<'a> Lines<'a> {
    pub(super) fn next(&mut self) -> Option<&'a [u8]> {
        let rest = &self.bytes[self.at..];
        if rest.is_empty() {
            return None;
        }
        let mark = match self.ending {
            Ending::Newline => b'\n',
            Ending::Return => b'\r',
        };
        let end = rest.iter().position(|&byte| byte == mark);
        let line = &rest[..end.unwrap_or(rest.len())];
        self.at += end.map_or(rest.len(), |end| end + 1);
        self.line += 1;
        Some(line.strip_suffix(b"\r").unwrap_or(line))
    }
}

/// Elements and properties of a header.
const MOST: usize = 1000;
