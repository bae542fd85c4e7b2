//! Text from outside as it may be shown: on a terminal, in a page, in a table.
//!
//! A path, a title or a cell of a file may hold characters that move a terminal's cursor, turn the
//! direction of writing, or are not seen at all. They are shown as escapes, as in `\u{1b}`, so that
//! a reader sees that they are there. There are two ways:
//!
//! - [`Show::shown`] is for a single name or text within a message: line ends are escapes too, so
//!   that it cannot pass for a line of ours. Bytes of paths that are no UTF-8 are shown as `\xff`.
//! - [`Printable`] is for a whole message on its way out of the program: lines of ours stay lines.
//!   It is the last look at everything, whatever was forgotten before.

use std::ffi::OsStr;
use std::fmt::{self, Write as _};
use std::path::Path;

/// A whole message with what is not safe to show as escapes; line ends and tabs stay.
#[derive(Clone, Copy, Debug)]
pub struct Printable<T>(pub T);

impl<T: fmt::Display> fmt::Display for Printable<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut filter = Filter {
            out: f,
            before: ' ',
            lines: true,
        };
        write!(filter, "{}", self.0)
    }
}

/// Text or a path from outside, on one line, with what is not safe to show as escapes. Width and
/// precision of formats count.
#[derive(Clone, Copy, Debug)]
pub struct Shown<'a>(&'a [u8]);

/// A type that can be shown within a message.
pub trait Show {
    /// The value on one line, with unsafe characters as escapes.
    fn shown(&self) -> Shown<'_>;
}

impl Show for str {
    fn shown(&self) -> Shown<'_> {
        Shown(self.as_bytes())
    }
}

impl Show for OsStr {
    fn shown(&self) -> Shown<'_> {
        Shown(self.as_encoded_bytes())
    }
}

impl Show for Path {
    fn shown(&self) -> Shown<'_> {
        self.as_os_str().shown()
    }
}

impl Shown<'_> {
    fn write(&self, out: &mut impl fmt::Write) -> fmt::Result {
        let mut filter = Filter {
            out,
            before: ' ',
            lines: false,
        };
        for chunk in self.0.utf8_chunks() {
            filter.write_str(chunk.valid())?;
            for byte in chunk.invalid() {
                write!(filter.out, "\\x{byte:02x}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if f.width().is_none() && f.precision().is_none() {
            return self.write(f);
        }
        let mut whole = String::new();
        self.write(&mut whole)?;
        f.pad(&whole)
    }
}

/// Passes on what is safe, and escapes of the rest.
struct Filter<'a, W> {
    out: &'a mut W,
    /// The character before.
    before: char,
    /// Whether line ends and tabs may pass.
    lines: bool,
}

impl<W: fmt::Write> fmt::Write for Filter<'_, W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        // Most text passes whole, in long pieces.
        let mut passed = 0;
        for (at, letter) in text.char_indices() {
            let line = self.lines && matches!(letter, '\n' | '\t');
            let safe = line || is_safe(letter, self.before);
            self.before = letter;
            if safe {
                continue;
            }
            self.out.write_str(&text[passed..at])?;
            match letter {
                '\n' => self.out.write_str("\\n")?,
                '\r' => self.out.write_str("\\r")?,
                '\t' => self.out.write_str("\\t")?,
                other => write!(self.out, "{}", other.escape_unicode())?,
            }
            passed = at + letter.len_utf8();
        }
        self.out.write_str(&text[passed..])
    }
}

/// Whether a character is seen, and does nothing to others. `before` is the one before it.
pub(crate) fn is_safe(letter: char, before: char) -> bool {
    match letter {
        ' '..='~' => true,
        // C0 and C1 controls, and DEL.
        _ if letter.is_control() => false,
        // Ends of lines and paragraphs.
        '\u{2028}' | '\u{2029}' => false,
        // Characters that turn the direction of writing, or mark one.
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{206f}' => {
            false
        }
        // Characters that join letters, or choose among the pictures of one: many scripts need
        // them. Beside ASCII it only hides.
        '\u{200c}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}' => {
            !before.is_ascii() && is_seen(before)
        }
        _ => is_seen(letter),
    }
}

/// Whether a character has a picture, or at least takes room.
fn is_seen(letter: char) -> bool {
    !matches!(
        letter,
        '\u{ad}'
            | '\u{34f}'
            | '\u{115f}'
            | '\u{1160}'
            | '\u{17b4}'
            | '\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn unsafe_characters_become_escapes_and_readable_ones_stay() {
        for (text, shown) in [
            ("a b~", "a b~"),
            ("größe µm — 布 مرحبا", "größe µm — 布 مرحبا"),
            ("\u{1b}[31mred", "\\u{1b}[31mred"),
            ("bell\u{7}\u{7f}\u{9b}2J", "bell\\u{7}\\u{7f}\\u{9b}2J"),
            ("a\u{202e}cba\u{2069}", "a\\u{202e}cba\\u{2069}"),
            (
                "a\u{200b}b\u{feff}c\u{ad}d",
                "a\\u{200b}b\\u{feff}c\\u{ad}d",
            ),
            ("line\u{2028}line", "line\\u{2028}line"),
            // Joiners where scripts need them, and where they only hide.
            (
                "می\u{200c}خواهم 👩\u{200d}🚀 ❤\u{fe0f}",
                "می\u{200c}خواهم 👩\u{200d}🚀 ❤\u{fe0f}",
            ),
            ("a\u{200d}b\u{fe0f}", "a\\u{200d}b\\u{fe0f}"),
            ("é\u{200d}\u{200d}", "é\u{200d}\\u{200d}"),
        ] {
            assert_eq!(text.shown().to_string(), shown);
            assert_eq!(Printable(text).to_string(), shown);
        }
        assert_eq!("a\nb\tc\rd".shown().to_string(), "a\\nb\\tc\\rd");
        assert_eq!(Printable("a\nb\tc\rd").to_string(), "a\nb\tc\\rd");
        assert_eq!(format!("{:<4}|{:.1}", "ab".shown(), "ab".shown()), "ab  |a");
    }

    #[cfg(unix)]
    #[test]
    fn bytes_of_a_path_that_are_no_text_are_shown_one_by_one() {
        use std::os::unix::ffi::OsStrExt as _;
        let path = Path::new(OsStr::from_bytes(b"a\xff\xfe/b\n\xc3"));
        assert_eq!(path.shown().to_string(), "a\\xff\\xfe/b\\n\\xc3");
    }

    proptest! {
        #[test]
        fn no_shown_text_has_invisible_characters(text in any::<String>()) {
            let shown = text.shown().to_string();
            prop_assert!(shown.chars().all(|c| !c.is_control()));
            prop_assert_eq!(shown.shown().to_string(), shown);
        }
    }
}
