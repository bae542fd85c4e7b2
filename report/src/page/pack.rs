//! Arrays on their way into a page: one after the other, deflated, in base64; the page finds them
//! by name.

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::ZlibEncoder;
use serde_json::{Map, Value, json};

/// Arrays of numbers under names.
#[derive(Default)]
pub(super) struct Pack {
    bytes: Vec<u8>,
    index: Map<String, Value>,
}

impl Pack {
    /// Adds numbers of 32 bits.
    pub(super) fn u32(&mut self, name: &str, numbers: &[u32]) {
        let bytes = numbers.iter().flat_map(|number| number.to_le_bytes());
        self.add(name, "u32", numbers.len(), bytes);
    }

    /// Adds numbers of 16 bits.
    pub(super) fn u16(&mut self, name: &str, numbers: &[u16]) {
        let bytes = numbers.iter().flat_map(|number| number.to_le_bytes());
        self.add(name, "u16", numbers.len(), bytes);
    }

    /// Adds numbers of 8 bits.
    pub(super) fn u8(&mut self, name: &str, numbers: &[u8]) {
        self.add(name, "u8", numbers.len(), numbers.iter().copied());
    }

    /// Adds reals.
    pub(super) fn f32(&mut self, name: &str, numbers: &[f32]) {
        let bytes = numbers.iter().flat_map(|number| number.to_le_bytes());
        self.add(name, "f32", numbers.len(), bytes);
    }

    fn add(&mut self, name: &str, kind: &str, len: usize, bytes: impl Iterator<Item = u8>) {
        // Views of a buffer begin at multiples of their numbers' size.
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
        let at = self.bytes.len();
        self.index.insert(name.to_owned(), json!([kind, at, len]));
        self.bytes.extend(bytes);
    }

    /// The index of the arrays: by name the kind, the first byte and the length.
    pub(super) fn index(&self) -> Value {
        Value::Object(self.index.clone())
    }

    /// All arrays, as the page reads them.
    pub(super) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut encoder = ZlibEncoder::new(Base64::new(out), Compression::fast());
        encoder.write_all(&self.bytes)?;
        encoder.finish()?.finish()
    }
}

/// Writes what it is given as base64 (RFC 4648).
struct Base64<'a> {
    out: &'a mut dyn Write,
    rest: Vec<u8>,
}

impl<'a> Base64<'a> {
    fn new(out: &'a mut dyn Write) -> Self {
        Self {
            out,
            rest: Vec::new(),
        }
    }

    fn finish(mut self) -> io::Result<()> {
        let rest = std::mem::take(&mut self.rest);
        self.out.write_all(&encode(&rest))
    }
}

impl Write for Base64<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.rest.extend_from_slice(bytes);
        let whole = self.rest.len() / 3 * 3;
        let text = encode(&self.rest[..whole]);
        self.rest.drain(..whole);
        self.out.write_all(&text)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

fn encode(bytes: &[u8]) -> Vec<u8> {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = Vec::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |k: usize| u32::from(chunk.get(k).copied().unwrap_or(0));
        let all = byte(0) << 16 | byte(1) << 8 | byte(2);
        for k in 0..4 {
            let letter = LETTERS[(all >> (18 - 6 * k)) as usize & 63];
            text.push(if k <= chunk.len() { letter } else { b'=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_the_rfc() {
        for (plain, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(encode(plain.as_bytes()), text.as_bytes());
            let mut bits = Vec::new();
            let mut writer = Base64::new(&mut bits);
            for byte in plain.as_bytes() {
                writer.write_all(&[*byte]).unwrap();
            }
            writer.finish().unwrap();
            assert_eq!(bits, text.as_bytes());
        }
    }

    #[test]
    fn arrays_are_found_where_the_index_says() {
        let mut pack = Pack::default();
        pack.u8("a", &[1, 2, 3]);
        pack.u32("b", &[7]);
        pack.u16("c", &[9]);
        assert_eq!(
            pack.index(),
            json!({"a": ["u8", 0, 3], "b": ["u32", 4, 1], "c": ["u16", 8, 1]})
        );
        assert_eq!(pack.bytes, [1, 2, 3, 0, 7, 0, 0, 0, 9, 0]);
    }
}
