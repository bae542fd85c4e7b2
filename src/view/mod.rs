//! `weft view`: shows a run in a browser, from a server on loopback or as a page that is one file.

mod frames;
mod http;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use weft_io::Show as _;
use weftwork::output::{OutputError, write_whole};

use self::frames::Known;
use self::http::{Answer, Server};
use crate::cli::ViewArguments;
use crate::{Failure, say};

/// The page, in which two marks stand for what comes from the run.
const PAGE: &str = include_str!("page.html");
/// The script of the page.
const SCRIPT: &str = include_str!("page.js");
/// The mark for the script.
const SCRIPT_MARK: &str = "/* script */";
/// The mark for frames in a page that is one file.
const FRAMES_MARK: &str = "<!-- frames -->";
/// The largest page in one file, in bytes: browsers take no more than this as one text.
const LARGEST_PAGE: usize = 400 << 20;

fn unread(error: OutputError) -> Failure {
    Failure {
        code: 5,
        message: error.to_string(),
    }
}

pub(crate) fn view(arguments: &ViewArguments) -> Result<(), Failure> {
    let run = &arguments.run;
    let known = Known::of(run).map_err(unread)?;
    match &arguments.out {
        Some(file) => write_page(run, &known, file),
        None => serve(run.clone(), known, arguments.port),
    }
}

/// Serves the page until the process is ended.
fn serve(run: PathBuf, known: Known, port: u16) -> Result<(), Failure> {
    let server = Server::listen(port).map_err(|error| Failure {
        code: 5,
        message: format!(
            "cannot listen on port {port} of 127.0.0.1: {error}; choose another --port"
        ),
    })?;
    let port = server.port();
    say(format_args!(
        "Open http://127.0.0.1:{port}/ in a browser; Ctrl-C ends this\n"
    ))?;
    let known = Mutex::new(known);
    let ended = server.serve(move |path| answer(&run, &known, path));
    Err(Failure {
        code: 5,
        message: format!("cannot serve any more: {ended}"),
    })
}

/// Answers a request. Paths are words of a closed list.
fn answer(run: &Path, known: &Mutex<Known>, path: &str) -> Answer {
    let failed =
        |error: OutputError| Answer::refused("500 Internal Server Error", &error.to_string());
    let unlocked = || known.lock().unwrap_or_else(PoisonError::into_inner);
    match path {
        "/" => Answer::ok("text/html; charset=utf-8", page("")),
        "/run" => match Known::of(run) {
            Ok(now) => {
                let told = now.told().to_string();
                *unlocked() = now;
                Answer::ok("application/json", told)
            }
            Err(error) => failed(error),
        },
        _ => {
            let number = path.strip_prefix("/frame/");
            let number = number.filter(|digits| digits.bytes().all(|b| b.is_ascii_digit()));
            let listed = unlocked().clone();
            let block = number.and_then(|digits| digits.parse().ok());
            match block.and_then(|number| listed.block(run, number)) {
                Some(Ok(block)) => Answer::ok("application/octet-stream", block),
                Some(Err(error)) => failed(error),
                None => Answer::refused("404 Not Found", "There is nothing of this name."),
            }
        }
    }
}

/// The page with what is embedded in it.
fn page(embedded: &str) -> String {
    PAGE.replace(SCRIPT_MARK, SCRIPT)
        .replace(FRAMES_MARK, embedded)
}

/// Writes the page with all frames in it.
fn write_page(run: &Path, known: &Known, file: &Path) -> Result<(), Failure> {
    let told = known.told().to_string();
    let mut embedded = format!(
        "<script type=\"application/json\" id=\"run\">{}</script>\n",
        // Nothing in it ends the element.
        told.replace('<', "\\u003c")
    );
    for number in 0..known.frames.len() {
        let Some(block) = known.block(run, number) else {
            break;
        };
        let block = base64(&block.map_err(unread)?);
        // Writing to a String cannot fail.
        let _ = writeln!(
            embedded,
            "<script type=\"application/octet-stream\" id=\"frame-{number}\">{block}</script>"
        );
        if embedded.len() > LARGEST_PAGE {
            let message = format!(
                "{} has too many frames for one page: {number} of {} take {} MiB; leave out --out, and a \
                 server shows all of them",
                run.shown(),
                known.frames.len(),
                embedded.len() >> 20
            );
            return Err(Failure { code: 5, message });
        }
    }
    let page = page(&embedded);
    write_whole(file, |out| out.write_all(page.as_bytes())).map_err(unread)?;
    say(format_args!(
        "Wrote {} ({} frames, {:.1} MiB): open it in a browser\n",
        file.shown(),
        known.frames.len(),
        page.len() as f64 / f64::from(1 << 20)
    ))
}

/// Bytes as text, six bits a letter [RFC 4648].
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let byte = |at: usize| u32::from(three.get(at).copied().unwrap_or_default());
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for at in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * at) & 63) as usize];
            text.push(if at > three.len() {
                '='
            } else {
                char::from(letter)
            });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_as_text_are_those_of_the_standard() {
        for (bytes, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
        assert_eq!(base64(&[0xff, 0xef, 0xbe]), "/+++");
    }

    #[test]
    fn the_page_has_its_marks_once() {
        for mark in [SCRIPT_MARK, FRAMES_MARK] {
            assert_eq!(PAGE.matches(mark).count(), 1, "{mark}");
        }
        assert!(!SCRIPT.contains("</script") && !SCRIPT.contains(FRAMES_MARK));
        assert!(page("<x>").contains("<x>"));
    }
}
