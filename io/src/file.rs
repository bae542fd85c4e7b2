//! Regular files: opened without waiting, and read up to a limit.
//!
//! A pipe without a writer keeps a program that opens it waiting for ever, a device may never end,
//! and what either holds is gone once it was read, while scenes, meshes and states are read more
//! than once and by several ranks.

use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Read as _};
use std::path::Path;

use thiserror::Error;

/// The reason why something is not read though it is there: it is no regular file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("it is {what}, not a regular file{hint}", what = .0, hint = hint(.0))]
pub struct NotRegular(&'static str);

fn hint(what: &str) -> &'static str {
    match what {
        DIRECTORY => "",
        _ => "; write what it gives to a file, and name that",
    }
}

const DIRECTORY: &str = "a directory";

/// Opens a regular file for reading. Links are followed; it never waits.
///
/// # Errors
/// What the system says, and [`NotRegular`] in an error of the kind [`ErrorKind::InvalidInput`], or
/// [`ErrorKind::IsADirectory`] of a directory.
pub fn open_regular(path: &Path) -> io::Result<File> {
    // To open some devices has effects: the first look is before that. The second one is at what
    // was opened.
    check(&fs::metadata(path)?)?;
    let mut options = File::options();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        // A pipe that has taken the file's place since does not keep us waiting.
        options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
    }
    let file = options.open(path)?;
    check(&file.metadata()?)?;
    Ok(file)
}

/// Reads a regular file of at most this many bytes.
///
/// # Errors
/// As [`open_regular`]; [`ErrorKind::FileTooLarge`] if it is larger.
pub fn read_regular(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = open_regular(path)?;
    let too_large = || {
        let message = format!("it is larger than {most} bytes");
        io::Error::new(ErrorKind::FileTooLarge, message)
    };
    let size = file.metadata()?.len();
    if size > most {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    bytes.try_reserve(usize::try_from(size).unwrap_or(usize::MAX))?;
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    // It may have grown meanwhile.
    if bytes.len() as u64 > most {
        return Err(too_large());
    }
    Ok(bytes)
}

/// Reads a regular file of at most this many bytes that is text in UTF-8.
///
/// # Errors
/// As [`read_regular`]; [`ErrorKind::InvalidData`] with the line where it is no UTF-8.
pub fn read_text(path: &Path, most: u64) -> io::Result<String> {
    let bytes = read_regular(path, most)?;
    String::from_utf8(bytes).map_err(|error| {
        let whole = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + whole.iter().filter(|&&byte| byte == b'\n').count();
        let message = format!("line {line} is not text in UTF-8");
        io::Error::new(ErrorKind::InvalidData, message)
    })
}

fn check(there: &Metadata) -> io::Result<()> {
    let kind = there.file_type();
    if kind.is_file() {
        return Ok(());
    }
    if kind.is_dir() {
        let error = NotRegular(DIRECTORY);
        return Err(io::Error::new(ErrorKind::IsADirectory, error));
    }
    Err(io::Error::new(
        ErrorKind::InvalidInput,
        NotRegular(name(kind)),
    ))
}

#[cfg(unix)]
fn name(kind: fs::FileType) -> &'static str {
    use std::os::unix::fs::FileTypeExt as _;
    if kind.is_fifo() {
        "a pipe"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "a device"
    }
}

#[cfg(not(unix))]
fn name(_: fs::FileType) -> &'static str {
    "something else"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_up_to_their_limit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, "abc").unwrap();
        assert_eq!(read_regular(&path, 3).unwrap(), b"abc");
        let error = read_regular(&path, 2).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::FileTooLarge);
        assert_eq!(error.to_string(), "it is larger than 2 bytes");
        fs::write(&path, b"a\nb\xff\n").unwrap();
        let error = read_text(&path, 9).unwrap_err();
        assert_eq!(error.to_string(), "line 2 is not text in UTF-8");
        let absent = read_regular(&folder.path().join("b"), 9).unwrap_err();
        assert_eq!(absent.kind(), ErrorKind::NotFound);
        let error = read_regular(folder.path(), 9).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::IsADirectory);
        assert_eq!(error.to_string(), "it is a directory, not a regular file");
    }

    /// Nobody writes to the pipe: a program that opened it as a file would wait for ever.
    #[cfg(unix)]
    #[test]
    fn pipes_sockets_and_devices_are_refused_without_waiting() {
        use rustix::fs::{CWD, FileType, Mode, mknodat};

        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR, 0).unwrap();
        let socket = folder.path().join("socket");
        let _listens = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&pipe, &link).unwrap();
        for (path, word) in [
            (pipe.as_path(), "a pipe"),
            (&link, "a pipe"),
            (&socket, "a socket"),
            (Path::new("/dev/zero"), "a device"),
        ] {
            let error = open_regular(path).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            assert_eq!(
                error.to_string(),
                format!(
                    "it is {word}, not a regular file; write what it gives to a file, and name that"
                )
            );
        }
    }
}
