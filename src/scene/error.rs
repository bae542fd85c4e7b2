//! Errors in a scene, told so that they can be put right.

use std::fmt;
use std::path::{Path, PathBuf};

use thiserror::Error;
use weft_io::Show as _;

/// The reason why a scene was refused. The command ends with exit code 3 on any of these.
///
/// Each says all it knows when displayed; there is no chain of sources to print.
#[derive(Debug, Error)]
pub enum SceneError {
    /// There is no such file.
    #[error("no scene file at {}{}", path.shown(), did_you_mean(nearest.as_deref()))]
    Missing {
        /// The path that was tried.
        path: PathBuf,
        /// The file with the nearest name in that folder, if one is near.
        nearest: Option<String>,
    },
    /// The file is there and cannot be read.
    #[error("cannot read {}: {reason}", path.shown())]
    Unreadable {
        /// The path that was tried.
        path: PathBuf,
        /// The error of the system.
        reason: std::io::Error,
    },
    /// The text does not describe a scene; every problem found, sorted by line.
    #[error("{}", Listed(.0))]
    Invalid(Vec<Problem>),
}

impl SceneError {
    /// All problems of an invalid scene, sorted by line; empty if there was no text.
    pub fn problems(&self) -> &[Problem] {
        match self {
            Self::Invalid(problems) => problems,
            Self::Missing { .. } | Self::Unreadable { .. } => &[],
        }
    }
}

/// One thing wrong with a scene.
///
/// Shown as `scenes/x.toml:12: cloth.material.bendng: unknown key; did you mean ...`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The place of the problem.
    pub location: Location,
    /// The dotted key, empty for a syntax error.
    pub key: String,
    /// The fault, and what to do about it.
    pub message: String,
}

/// A place in a scene.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// A place in the text.
    Text {
        /// The file, if the text came from one.
        path: Option<PathBuf>,
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1, for syntax errors.
        column: Option<usize>,
    },
    /// An override given on the command line, as `key=value`.
    Override(String),
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.location)?;
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.message)
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text { path, line, column } => {
                match path {
                    Some(path) => write!(f, "{}:{line}", path.shown())?,
                    None => write!(f, "scene:{line}")?,
                }
                column.map_or(Ok(()), |column| write!(f, ":{column}"))
            }
            Self::Override(text) => write!(f, "--set {text}"),
        }
    }
}

/// One problem a line, at most [`MOST_SHOWN`].
struct Listed<'a>(&'a [Problem]);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.0.iter().take(MOST_SHOWN).enumerate() {
            let newline = if index == 0 { "" } else { "\n" };
            write!(f, "{newline}{problem}")?;
        }
        match self.0.len().saturating_sub(MOST_SHOWN) {
            0 => Ok(()),
            hidden => write!(f, "\n... and {hidden} more"),
        }
    }
}

/// `; did you mean `x`?`, or nothing.
pub(super) fn did_you_mean(name: Option<&str>) -> String {
    name.map_or(String::new(), |name| {
        format!("; did you mean `{}`?", name.shown())
    })
}

/// The name in the folder of `path` that is most like its own name.
///
/// At most [`MOST_FILES`] entries are looked at. An unreadable folder has no near name.
pub(super) fn nearest_file(path: &Path) -> Option<String> {
    let wanted = path.file_name()?.to_str()?;
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .ok()?
        .take(MOST_FILES)
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    names.sort_unstable();
    super::nearest::nearest(wanted, names.iter().map(String::as_str)).map(str::to_owned)
}

/// Problems shown in one message.
const MOST_SHOWN: usize = 20;

/// Entries of a folder that are compared with a missing name.
const MOST_FILES: usize = 10_000;
