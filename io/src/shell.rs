//! Words of commands that a report suggests, quoted so that any POSIX shell takes each as one word
//! and as what it was.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::path::Path;

use crate::printable::is_safe;

/// A word as a POSIX shell takes it.
///
/// A word that is safe to show stands between single quotes where it has to. A word with other
/// characters, which must reach no terminal as they are, is made by `printf` when the command runs:
/// `"$(printf 'a\033b')"`.
#[must_use]
pub fn shell_word(word: &OsStr) -> String {
    let bytes = word.as_encoded_bytes();
    let text = std::str::from_utf8(bytes).ok();
    let mut before = ' ';
    let is_shown = text.is_some_and(|text| {
        text.chars()
            .all(|c| is_safe(c, std::mem::replace(&mut before, c)))
    });
    match text {
        Some(text) if is_shown => {
            let plain = |c: char| c.is_alphanumeric() || "-_=.,:/+@%".contains(c);
            if !text.is_empty() && text.chars().all(plain) {
                text.to_owned()
            } else {
                format!("'{}'", text.replace('\'', "'\\''"))
            }
        }
        _ => printed(bytes),
    }
}

/// A path as a word: one that begins with a dash is not taken for an option.
#[must_use]
pub fn shell_path(path: &Path) -> String {
    if path.as_os_str().as_encoded_bytes().starts_with(b"-") {
        shell_word(Path::new(".").join(path).as_os_str())
    } else {
        shell_word(path.as_os_str())
    }
}

/// A word that `printf` makes. Shells take line ends at the end of what a command prints away:
/// these follow in quotes.
fn printed(bytes: &[u8]) -> String {
    let ends = bytes
        .iter()
        .rev()
        .take_while(|&&byte| byte == b'\n')
        .count();
    let (bytes, ends) = bytes.split_at(bytes.len() - ends);
    let mut text = String::from("\"$(printf '");
    // A dash at the beginning would be an option of `printf`.
    let bytes = match bytes {
        [b'-', rest @ ..] => {
            text.push_str("\\055");
            rest
        }
        bytes => bytes,
    };
    let mut before = ' ';
    // Writing to a String cannot fail.
    for chunk in bytes.utf8_chunks() {
        for letter in chunk.valid().chars() {
            match letter {
                '%' => text.push_str("%%"),
                '\\' => text.push_str("\\\\"),
                '\'' => text.push_str("'\\''"),
                // Between double quotes an interactive shell looks for it in its history.
                '!' => text.push_str("\\041"),
                letter if is_safe(letter, before) => text.push(letter),
                letter => {
                    for byte in letter.encode_utf8(&mut [0; 4]).bytes() {
                        let _ = write!(text, "\\{byte:03o}");
                    }
                }
            }
            before = letter;
        }
        for byte in chunk.invalid() {
            let _ = write!(text, "\\{byte:03o}");
        }
    }
    text.push_str("')\"");
    if !ends.is_empty() {
        let _ = write!(text, "'{}'", "\n".repeat(ends.len()));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stay_as_they_are_where_they_can() {
        for (word, quoted) in [
            ("scenes/a-b.toml", "scenes/a-b.toml"),
            ("--set=time.step=2ms", "--set=time.step=2ms"),
            ("größe", "größe"),
            ("", "''"),
            ("a b", "'a b'"),
            ("it's", "'it'\\''s'"),
            ("$(rm -rf /)", "'$(rm -rf /)'"),
            ("~/a", "'~/a'"),
            ("\u{1b}[31m%", "\"$(printf '\\033[31m%%')\""),
            ("a\u{202e}b", "\"$(printf 'a\\342\\200\\256b')\""),
        ] {
            assert_eq!(shell_word(OsStr::new(word)), quoted);
        }
        assert_eq!(shell_path(Path::new("-x y")), "'./-x y'");
        assert_eq!(shell_path(Path::new("x/-y")), "x/-y");
    }

    /// A shell takes each as one word, with the bytes that it had.
    #[cfg(unix)]
    #[test]
    fn a_shell_reads_each_word_as_it_was() {
        use std::os::unix::ffi::OsStrExt as _;
        let all: Vec<u8> = (1..=255).collect();
        let words: [&[u8]; 13] = [
            b"plain",
            b"",
            b" ",
            b"a  b\tc",
            b"it's $HOME `id` \"x\" \\ !1 * ? [a] {b} #c & ; | < > ~",
            b"line\nline",
            b"end\n\n",
            b"\n",
            b"%s %% \\n 'q'\x1b",
            "\u{202e}\u{feff}a\u{200b}9".as_bytes(),
            b"\xff\xfe1\xc3",
            b"-n \x1b!\n-n",
            &all,
        ];
        for word in words {
            let quoted = shell_word(OsStr::from_bytes(word));
            let output = std::process::Command::new("sh")
                .args(["-c", &format!("printf '%s.' {quoted}")])
                .output()
                .unwrap();
            assert_eq!(output.stdout, [word, b"."].concat(), "{quoted}");
        }
    }
}
