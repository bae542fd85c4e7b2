//! The directory of a study: whose it is, said in a file of its own, so that no study takes the
//! place of another or of anything else.
//!
//! `study.of` has a line of its own and then the scenes of the study, one a line, in the order of
//! their points. A study goes on in the directory if those that it finds there are its first ones.

use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use thiserror::Error;
use weft_io::{Show as _, read_regular};

/// The file that says so.
pub(crate) const OF: &str = "study.of";
/// The first line of the note.
const MAGIC: &str = "weft study 1";
/// The largest size of the note in bytes.
const LARGEST_NOTE: u64 = 64 << 20;
/// The folder of points.
pub const POINTS: &str = "points";

/// The reason why a directory is not used.
#[derive(Debug, Error)]
pub enum DirectoryError {
    /// It cannot be read or made.
    #[error("{}: {source}", path.shown())]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A directory that holds something else.
    #[error("{} holds files, but no study; choose another --out", path.shown())]
    Foreign {
        /// The directory.
        path: PathBuf,
    },
    /// Another process makes a study in it at this moment.
    #[error("another study is at work in {}; wait for its end, or choose another --out", path.shown())]
    Busy {
        /// The directory.
        path: PathBuf,
    },
    /// A study of other scenes, whose tables and plots would be lost.
    #[error("{} holds a study of {}, this one is of {here}; choose another --out, or remove that one", path.shown(), there.shown())]
    OtherScenes {
        /// The directory.
        path: PathBuf,
        /// The scenes of the study that is there.
        there: String,
        /// The scenes of the study that was to be made.
        here: String,
    },
}

/// Whether a directory looks like that of a study, also one of an earlier program, which did not
/// say so.
#[must_use]
pub fn is_study(out: &Path) -> bool {
    matches!(scenes(out), Ok(Some(_))) || out.join(POINTS).is_dir()
}

/// Makes the directory of a study of these scenes, or takes that of an earlier one of the same;
/// more may come behind those.
///
/// # Errors
/// [`DirectoryError`]. Nothing has been changed then.
pub fn prepare(out: &Path, of: &[&str]) -> Result<(), DirectoryError> {
    let here = named_once(of);
    judge(out, &here)?;
    let points = out.join(POINTS);
    fs::create_dir_all(&points).map_err(io_error(&points))?;
    let path = out.join(OF);
    // The file that is there is the beginning of this, so that the file is whole at any moment.
    let text = format!("{MAGIC}\n{}\n", here.join("\n"));
    let written = open(&path).and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(io_error(&path))
}

/// Prepares a directory as [`prepare`] does; no other study works in it while the answer is there.
///
/// # Errors
/// As [`prepare`]; [`DirectoryError::Busy`]. A file system that knows no locks claims nothing, and
/// says nothing.
pub fn claim(out: &Path, of: &[&str]) -> Result<Claim, DirectoryError> {
    judge(out, &named_once(of))?;
    fs::create_dir_all(out).map_err(io_error(out))?;
    let path = out.join(OF);
    let file = open(&path).map_err(io_error(&path))?;
    if let Err(TryLockError::WouldBlock) = file.try_lock() {
        let path = out.to_owned();
        return Err(DirectoryError::Busy { path });
    }
    // Another study may have said what it is of, meanwhile.
    prepare(out, of)?;
    Ok(Claim { _locked: file })
}

/// Whether the directory is one for a study of these scenes.
fn judge(out: &Path, here: &[&str]) -> Result<(), DirectoryError> {
    let Some(there) = scenes(out)? else {
        let is_empty = match fs::read_dir(out) {
            Ok(mut entries) => entries.next().is_none(),
            Err(error) if error.kind() == ErrorKind::NotFound => true,
            Err(source) => return Err(io_error(out)(source)),
        };
        // A study that has just made the directory has said nothing yet.
        if is_empty || fs::read(out.join(OF)).is_ok_and(|text| text.is_empty()) {
            return Ok(());
        }
        let path = out.to_owned();
        return Err(DirectoryError::Foreign { path });
    };
    if there.iter().zip(here).any(|(a, b)| a != b) || there.len() > here.len() {
        return Err(DirectoryError::OtherScenes {
            path: out.to_owned(),
            there: there.join(", "),
            here: here.join(", "),
        });
    }
    Ok(())
}

/// The names, with one that is cut in several ways named once.
fn named_once<'s>(of: &[&'s str]) -> Vec<&'s str> {
    let mut names = Vec::new();
    for scene in of {
        if !names.contains(scene) {
            names.push(*scene);
        }
    }
    names
}

/// Opens a file to read it and to write over it; makes it if it is not there.
fn open(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(false);
    options.open(path)
}

/// A directory that no other study works in while this is there.
#[derive(Debug)]
pub struct Claim {
    _locked: File,
}

/// The scenes of the study in a directory; `None` if there is none.
fn scenes(out: &Path) -> Result<Option<Vec<String>>, DirectoryError> {
    let path = out.join(OF);
    let text = match read_regular(&path, LARGEST_NOTE) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(source) => return Err(io_error(&path)(source)),
    };
    let mut lines = text.lines();
    if lines.next() != Some(MAGIC) {
        return Ok(None);
    }
    Ok(Some(lines.map(str::to_owned).collect()))
}

fn io_error(path: &Path) -> impl Fn(io::Error) -> DirectoryError {
    move |source| DirectoryError::Io {
        path: path.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_study_goes_on_where_it_was_and_takes_nobody_else_s_place() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("a/study");
        assert!(!is_study(&out));
        prepare(&out, &["floor", "floor"]).unwrap();
        assert!(is_study(&out) && out.join(POINTS).is_dir());
        prepare(&out, &["floor"]).unwrap();
        prepare(&out, &["floor", "free"]).unwrap();
        // Another one, in another order, and one that would leave a scene out.
        for other in [&["one-sided"][..], &["free", "floor"], &["floor"]] {
            let error = prepare(&out, other).unwrap_err();
            assert!(
                matches!(error, DirectoryError::OtherScenes { .. }),
                "{error}"
            );
            let said = error.to_string();
            assert!(
                said.contains("floor, free; ") || said.contains("of floor, free,"),
                "{said}"
            );
        }
        prepare(&out, &["floor", "free"]).unwrap();
    }

    #[test]
    fn two_studies_at_once_are_one_too_many() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path();
        let first = claim(out, &["floor"]).unwrap();
        // As its sweep does.
        prepare(out, &["floor"]).unwrap();
        for scenes in [&["floor"][..], &["floor", "free"]] {
            let error = claim(out, scenes).unwrap_err();
            assert!(matches!(error, DirectoryError::Busy { .. }), "{error}");
        }
        drop(first);
        claim(out, &["floor", "free"]).unwrap();
    }

    #[test]
    fn a_directory_that_is_no_study_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in [("study.csv", "mine"), ("run.json", "{}"), (OF, "mine")] {
            let out = folder.path().join(name.replace('.', "-"));
            fs::create_dir(&out).unwrap();
            fs::write(out.join(name), text).unwrap();
            let error = prepare(&out, &["floor"]).unwrap_err();
            assert!(matches!(error, DirectoryError::Foreign { .. }), "{error}");
            assert_eq!(fs::read_to_string(out.join(name)).unwrap(), text);
            assert_eq!(fs::read_dir(&out).unwrap().count(), 1);
        }
        let file = folder.path().join("file");
        fs::write(&file, "mine").unwrap();
        let error = prepare(&file, &["floor"]).unwrap_err();
        assert!(matches!(error, DirectoryError::Io { .. }), "{error}");
    }
}
