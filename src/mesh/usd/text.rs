//! Reads USD as text (`.usda`).
//!
//! Statements are taken one after the other, and brackets that are not read are skipped by counting
//! them: no depth of a file is a depth of the stack, and memory is in proportion to the file. The
//! contents of a value are checked as far as they are used.

use super::super::file_problem::{Problem, short};
use super::layer::{Attribute, Element, Layer, Prim, Value, is_read};

/// Reads a layer.
pub(super) fn read(bytes: &[u8]) -> Result<Layer, Problem> {
    let mut reader = Reader {
        bytes,
        at: 0,
        layer: Layer::default(),
        open: Vec::new(),
    };
    reader.layer().map_err(|mut problem| {
        let before = &bytes[..reader.at.min(bytes.len())];
        let line = 1 + before.iter().filter(|&&byte| byte == b'\n').count();
        problem
            .place
            .get_or_insert(super::super::FilePlace::Line(line));
        problem
    })?;
    Ok(reader.layer)
}

/// Whether a file begins as text does.
pub(super) fn is_text(bytes: &[u8]) -> bool {
    bytes.starts_with(b"#usda")
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    layer: Layer,
    /// The prims that what follows is in.
    open: Vec<usize>,
}

/// A word of the file.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Token<'a> {
    /// A bracket, comma or other sign.
    Sign(u8),
    /// A name, or a number.
    Word(&'a [u8]),
    /// The text between quotes, as it stands there.
    Text(&'a [u8]),
    /// The text between `@`.
    Asset,
    /// The text in `<>`.
    Path,
    End,
}

impl<'a> Reader<'a> {
    fn layer(&mut self) -> Result<(), Problem> {
        // The first line is a comment to all that follows.
        if self.peek()? == Token::Sign(b'(') {
            self.metadata(None)?;
        }
        loop {
            match self.next()? {
                Token::End if self.open.is_empty() => return Ok(()),
                Token::End => return Err(Problem::new("the file ends within a prim")),
                Token::Sign(b'}') => {
                    if self.open.pop().is_none() {
                        return Err(Problem::new("a `}` closes nothing"));
                    }
                }
                Token::Sign(b';') => {}
                Token::Word(word) => self.statement(word)?,
                other => return Err(unexpected(other, "a statement")),
            }
        }
    }

    /// Reads what begins with this word.
    fn statement(&mut self, word: &'a [u8]) -> Result<(), Problem> {
        match word {
            b"def" | b"over" | b"class" => return self.prim(word == b"def"),
            b"variantSet" => {
                self.next()?;
                self.arc("variants");
                self.sign(b'=')?;
                return self.value();
            }
            b"reorder" => {
                self.next()?;
                self.sign(b'=')?;
                return self.value();
            }
            _ => {}
        }
        if self.open.is_empty() {
            return Err(unexpected(Token::Word(word), "`def`, `over` or `class`"));
        }
        self.property(word)
    }

    fn prim(&mut self, is_def: bool) -> Result<(), Problem> {
        let mut token = self.next()?;
        let mut kind = String::new();
        if let Token::Word(word) = token {
            kind = text(word);
            token = self.next()?;
        }
        let Token::Text(name) = token else {
            return Err(unexpected(token, "the name of a prim in quotes"));
        };
        let parent = self.open.last().copied();
        let is_defined = is_def && parent.is_none_or(|parent| self.layer.prims[parent].is_defined);
        let prim = Prim {
            name: text(name),
            parent,
            place: self.layer.prims.len(),
            kind,
            is_defined,
            ..Prim::default()
        };
        let prim = self.layer.add(prim, self.open.len())?;
        self.open.push(prim);
        if self.peek()? == Token::Sign(b'(') {
            self.metadata(Some(prim))?;
        }
        self.sign(b'{')
    }

    /// Reads what stands in parentheses behind the head of a layer or a prim.
    fn metadata(&mut self, prim: Option<usize>) -> Result<(), Problem> {
        self.sign(b'(')?;
        loop {
            let key = match self.next()? {
                Token::Sign(b')') => return Ok(()),
                Token::Sign(b';' | b',') | Token::Text(_) => continue,
                Token::Word(b"prepend" | b"append" | b"add" | b"delete" | b"reorder") => {
                    match self.next()? {
                        Token::Word(key) => key,
                        other => return Err(unexpected(other, "a name of metadata")),
                    }
                }
                Token::Word(key) => key,
                other => return Err(unexpected(other, "a name of metadata")),
            };
            self.sign(b'=')?;
            let value = self.peek()?;
            match (prim, key) {
                (None, b"metersPerUnit") => self.layer.metres = Some(number(value)?),
                (None, b"upAxis") => {
                    if let Token::Text(axis) = value {
                        self.layer.up = Some(text(axis));
                    }
                }
                (None, b"subLayers") => {
                    let start = self.at;
                    self.value()?;
                    let list = &self.bytes[start..self.at];
                    self.layer.has_sublayers = list.contains(&b'@');
                    continue;
                }
                (Some(prim), b"active") if matches!(value, Token::Word(b"false" | b"0")) => {
                    self.layer.prims[prim].is_defined = false;
                }
                (Some(_), b"references") => self.arc("references"),
                (Some(_), b"payload") => self.arc("a payload"),
                (Some(_), b"inherits") => self.arc("inherits"),
                (Some(_), b"specializes") => self.arc("specializes"),
                (Some(_), b"clips") => self.arc("value clips"),
                _ => {}
            }
            self.value()?;
        }
    }

    fn arc(&mut self, what: &'static str) {
        if let Some(&prim) = self.open.last() {
            self.layer.prims[prim].arc.get_or_insert(what);
        }
    }

    /// Reads an attribute or a relationship that begins with this word.
    fn property(&mut self, mut word: &'a [u8]) -> Result<(), Problem> {
        while matches!(
            word,
            b"custom"
                | b"uniform"
                | b"varying"
                | b"config"
                | b"prepend"
                | b"append"
                | b"add"
                | b"delete"
        ) {
            word = match self.next()? {
                Token::Word(word) => word,
                other => return Err(unexpected(other, "a type")),
            };
        }
        let element = Element::of(&text(word));
        if self.peek()? == Token::Sign(b'[') {
            self.next()?;
            self.sign(b']')?;
        }
        let name = match self.next()? {
            Token::Word(name) => text(name),
            other => return Err(unexpected(other, "the name of an attribute")),
        };
        let (name, samples) = match name.split_once('.') {
            Some((name, "timeSamples")) => (name.to_owned(), true),
            // Connections and curves are no values.
            Some(_) => (String::new(), false),
            None => (name, false),
        };
        let wanted = is_read(&name);
        let mut attribute = Attribute::default();
        if self.peek()? == Token::Sign(b'=') {
            self.next()?;
            attribute.value = match (wanted, samples) {
                (false, _) => {
                    self.value()?;
                    Value::None
                }
                (true, false) => self.typed(element)?,
                (true, true) => self.samples(element)?,
            };
        }
        if self.peek()? == Token::Sign(b'(') {
            attribute.interpolation = self.interpolation()?;
        }
        let Some(&prim) = self.open.last() else {
            return Ok(());
        };
        if wanted {
            let kept = &mut self.layer.prims[prim].attributes;
            let kept = kept.entry(name).or_default();
            // A value without a time is the one that stands; it may come before or after.
            if attribute.value != Value::None && (!samples || kept.value == Value::None) {
                kept.value = attribute.value;
            }
            if attribute.interpolation.is_some() {
                kept.interpolation = attribute.interpolation;
            }
        }
        Ok(())
    }

    /// Reads the metadata of an attribute, for its interpolation.
    fn interpolation(&mut self) -> Result<Option<String>, Problem> {
        self.sign(b'(')?;
        let mut found = None;
        loop {
            match self.next()? {
                Token::Sign(b')') => return Ok(found),
                Token::Word(b"interpolation") => {
                    self.sign(b'=')?;
                    if let Token::Text(how) = self.peek()? {
                        found = Some(text(how));
                    }
                    self.value()?;
                }
                Token::Sign(b'=') => self.value()?,
                Token::End => return Err(unexpected(Token::End, "`)`")),
                _ => {}
            }
        }
    }

    /// Reads values by time, and keeps the first one.
    fn samples(&mut self, element: Element) -> Result<Value, Problem> {
        self.sign(b'{')?;
        let mut first: Option<(f64, Value)> = None;
        loop {
            match self.next()? {
                Token::Sign(b'}') => return Ok(first.map_or(Value::None, |(_, value)| value)),
                Token::Sign(b',') => {}
                time @ Token::Word(_) => {
                    let time = number(time)?;
                    self.sign(b':')?;
                    if first.as_ref().is_none_or(|(earliest, _)| time < *earliest) {
                        first = Some((time, self.typed(element)?));
                    } else {
                        self.value()?;
                    }
                }
                other => return Err(unexpected(other, "a time")),
            }
        }
    }

    /// Reads a value of a type.
    fn typed(&mut self, element: Element) -> Result<Value, Problem> {
        match element {
            Element::Other => {
                self.value()?;
                Ok(Value::None)
            }
            Element::Word => {
                let mut words = Vec::new();
                self.each(|token, _| {
                    if let Token::Text(word) = token {
                        words.push(text(word));
                    }
                    Ok(())
                })?;
                Ok(Value::Words(words))
            }
            Element::Whole => {
                let mut whole = Vec::new();
                self.each(|token, _| {
                    if let Token::Word(word) = token {
                        let number = std::str::from_utf8(word).ok();
                        let number = number.and_then(|word| word.parse().ok());
                        let what = || Problem::new(format!("`{}` is no whole number", short(word)));
                        whole.push(number.ok_or_else(what)?);
                    }
                    Ok(())
                })?;
                Ok(Value::Whole(whole))
            }
            Element::Numbers(each) => {
                let mut numbers = Vec::new();
                let mut began = 0;
                self.each(|token, depth| {
                    match token {
                        word @ Token::Word(_) => numbers.push(number(word)?),
                        Token::Sign(b'(') if depth == 1 => began = numbers.len(),
                        Token::Sign(b')') if depth == 0 && numbers.len() - began != each => {
                            return Err(Problem::new(format!(
                                "a value of {} numbers where {each} belong",
                                numbers.len() - began
                            )));
                        }
                        _ => {}
                    }
                    Ok(())
                })?;
                Ok(Value::Numbers { each, numbers })
            }
        }
    }

    /// Goes through a value, with the number of parentheses around each token, behind it for those
    /// that are parentheses.
    fn each(
        &mut self,
        mut token_is: impl FnMut(Token<'a>, usize) -> Result<(), Problem>,
    ) -> Result<(), Problem> {
        let first = self.next()?;
        if first == Token::Word(b"None") {
            return Ok(());
        }
        let (mut brackets, mut parentheses) = (0_usize, 0_usize);
        let mut token = first;
        loop {
            match token {
                Token::Sign(b'[') => brackets += 1,
                Token::Sign(b'(') => parentheses += 1,
                Token::Sign(b']') if brackets > 0 => brackets -= 1,
                Token::Sign(b')') if parentheses > 0 => parentheses -= 1,
                Token::Sign(b',')
                | Token::Word(_)
                | Token::Text(_)
                | Token::Asset
                | Token::Path => {}
                other => return Err(unexpected(other, "a value")),
            }
            token_is(token, parentheses)?;
            if brackets + parentheses == 0 {
                return Ok(());
            }
            token = self.next()?;
        }
    }

    /// Skips a value.
    fn value(&mut self) -> Result<(), Problem> {
        let first = self.next()?;
        let mut open = match first {
            Token::Sign(b'(' | b'[' | b'{') => 1,
            Token::Sign(_) | Token::End => return Err(unexpected(first, "a value")),
            Token::Asset => {
                if self.peek()? == Token::Path {
                    self.next()?;
                }
                return self.offset();
            }
            Token::Path => return self.offset(),
            Token::Word(_) | Token::Text(_) => return Ok(()),
        };
        while open > 0 {
            match self.next()? {
                Token::Sign(b'(' | b'[' | b'{') => open += 1,
                Token::Sign(b')' | b']' | b'}') => open -= 1,
                Token::End => return Err(unexpected(Token::End, "a closing bracket")),
                _ => {}
            }
        }
        Ok(())
    }

    /// Skips the offset in time that may stand behind a reference.
    fn offset(&mut self) -> Result<(), Problem> {
        match self.peek()? {
            Token::Sign(b'(') => self.value(),
            _ => Ok(()),
        }
    }

    fn sign(&mut self, sign: u8) -> Result<(), Problem> {
        match self.next()? {
            Token::Sign(found) if found == sign => Ok(()),
            other => Err(unexpected(other, &format!("`{}`", char::from(sign)))),
        }
    }

    fn peek(&mut self) -> Result<Token<'a>, Problem> {
        let at = self.at;
        let token = self.next();
        self.at = at;
        token
    }

    fn next(&mut self) -> Result<Token<'a>, Problem> {
        loop {
            match self.bytes.get(self.at) {
                Some(byte) if byte.is_ascii_whitespace() => self.at += 1,
                Some(b'#') => {
                    let rest = &self.bytes[self.at..];
                    let end = rest.iter().position(|&byte| byte == b'\n');
                    self.at += end.unwrap_or(rest.len());
                }
                _ => break,
            }
        }
        let rest = &self.bytes[self.at..];
        let Some(&first) = rest.first() else {
            return Ok(Token::End);
        };
        match first {
            b'"' | b'\'' => {
                let three = [first; 3];
                let quote: &[u8] = if rest.starts_with(&three) {
                    &three
                } else {
                    &three[..1]
                };
                let inside = self.until(quote, true)?;
                Ok(Token::Text(inside))
            }
            b'@' => {
                let quote: &[u8] = if rest.starts_with(b"@@@") {
                    b"@@@"
                } else {
                    b"@"
                };
                self.until(quote, false)?;
                Ok(Token::Asset)
            }
            b'<' => {
                let end = rest.iter().position(|&byte| byte == b'>' || byte == b'\n');
                match end.filter(|&end| rest[end] == b'>') {
                    Some(end) => {
                        self.at += end + 1;
                        Ok(Token::Path)
                    }
                    None => Err(Problem::new("a `<` that no `>` closes on its line")),
                }
            }
            b'(' | b')' | b'[' | b']' | b'{' | b'}' | b'=' | b',' | b';' | b':' | b'&' => {
                self.at += 1;
                Ok(Token::Sign(first))
            }
            _ => {
                let is_number = first.is_ascii_digit() || matches!(first, b'-' | b'+');
                let within = |byte: u8| {
                    byte.is_ascii_alphanumeric()
                        || matches!(byte, b'_' | b'.' | b'-' | b'+' | b'|')
                        || byte >= 0x80
                        // Names have `:` in them; behind a number it ends a time.
                        || byte == b':' && !is_number
                };
                let length = rest.iter().position(|&byte| !within(byte));
                let length = length.unwrap_or(rest.len());
                if length == 0 {
                    let what = format!("`{}` is nothing that belongs here", short(&rest[..1]));
                    return Err(Problem::new(what));
                }
                self.at += length;
                Ok(Token::Word(&rest[..length]))
            }
        }
    }

    /// Goes behind what stands between two of these.
    fn until(&mut self, quote: &[u8], escapes: bool) -> Result<&'a [u8], Problem> {
        let inside = self.at + quote.len();
        let mut at = inside;
        while at < self.bytes.len() {
            if escapes && self.bytes[at] == b'\\' {
                at += 2;
            } else if self.bytes[at..].starts_with(quote) {
                self.at = at + quote.len();
                return Ok(&self.bytes[inside..at]);
            } else {
                at += 1;
            }
        }
        Err(Problem::new(format!(
            "a `{}` that is not closed",
            short(quote)
        )))
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn number(token: Token<'_>) -> Result<f64, Problem> {
    let Token::Word(word) = token else {
        return Err(unexpected(token, "a number"));
    };
    let number = std::str::from_utf8(word).ok();
    let number = number.and_then(|word| word.parse::<f64>().ok());
    number.ok_or_else(|| Problem::new(format!("`{}` is no number", short(word))))
}

fn unexpected(token: Token<'_>, wanted: &str) -> Problem {
    let found = match token {
        Token::Sign(sign) => format!("`{}`", char::from(sign)),
        Token::Word(word) => format!("`{}`", short(word)),
        Token::Text(_) => "a text".to_owned(),
        Token::Asset => "the name of a file".to_owned(),
        Token::Path => "a path".to_owned(),
        Token::End => "the end of the file".to_owned(),
    };
    Problem::new(format!("{found} where {wanted} belongs"))
}
