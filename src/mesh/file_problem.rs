//! Problems of mesh files, with their lines or bytes, and the numbers and words of these files.

use weft_io::Show as _;

use super::FilePlace;

/// A problem with the bytes of a file.
#[derive(Debug, PartialEq)]
pub(super) struct Problem {
    pub(super) place: Option<FilePlace>,
    pub(super) message: String,
}

impl Problem {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self {
            place: None,
            message: message.into(),
        }
    }

    pub(super) fn at(line: usize, message: impl Into<String>) -> Self {
        Self {
            place: Some(FilePlace::Line(line)),
            message: message.into(),
        }
    }

    pub(super) fn at_byte(byte: usize, message: impl Into<String>) -> Self {
        Self {
            place: Some(FilePlace::Byte(byte)),
            message: message.into(),
        }
    }
}

/// Text from a file on one line, safe to show, and cut to a length that fits a message.
pub(super) fn short(text: &[u8]) -> String {
    let text = text.trim_ascii();
    let head = &text[..text.len().min(LONGEST_SHOWN)];
    let head = String::from_utf8_lossy(head);
    if text.len() > LONGEST_SHOWN {
        // The cut may have gone through a letter.
        format!("{}...", head.trim_end_matches('\u{fffd}').shown())
    } else {
        head.shown().to_string()
    }
}

/// A number of a file as a coordinate.
///
/// # Errors
/// A sentence: it is no number, or no finite one.
pub(super) fn coordinate(token: &[u8]) -> Result<f64, String> {
    let number = std::str::from_utf8(token)
        .ok()
        .and_then(|token| token.parse::<f64>().ok());
    finite(number, token)
}

/// A number of a file that is kept in 32 bits, as a coordinate.
///
/// # Errors
/// As [`coordinate`].
pub(super) fn short_coordinate(token: &[u8]) -> Result<f64, String> {
    let number = std::str::from_utf8(token)
        .ok()
        .and_then(|token| token.parse::<f32>().ok());
    finite(number.map(f64::from), token)
}

fn finite(number: Option<f64>, token: &[u8]) -> Result<f64, String> {
    match number {
        Some(number) if number.is_finite() => Ok(number),
        Some(_) => Err(format!("`{}` is no finite number", short(token))),
        None => Err(format!("`{}` is no number", short(token))),
    }
}

/// The bytes that some editors put before the text of a file.
pub(super) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The number of bytes of foreign text that a message shows.
const LONGEST_SHOWN: usize = 160;
