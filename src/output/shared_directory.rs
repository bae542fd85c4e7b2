//! The directory of a run as ranks see it that do not hold it: they write their parts where rank 0
//! tells them, on a file system that all hosts share.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf, absolute};

use serde::{Deserialize, Serialize};

use super::manifest::Manifest;
use super::plain::open_plain;
use super::{OutputError, RunDirectory};

/// A run's directory, as rank 0 tells others of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct SharedDirectory {
    /// Its whole path.
    path: OsString,
    /// The path as it was named, for messages.
    shown: OsString,
    /// How names of temporary files begin. Nobody can guess it, so it also tells this run from
    /// others.
    prefix: String,
}

impl SharedDirectory {
    /// The directory that rank 0 holds.
    ///
    /// # Errors
    /// [`OutputError::Write`] if there is no present directory from which its path counts.
    pub(crate) fn of(run: &RunDirectory) -> Result<Self, OutputError> {
        let path = absolute(run.path()).map_err(OutputError::write(run.path()))?;
        Ok(Self {
            path: path.into_os_string(),
            shown: run.path().as_os_str().to_owned(),
            prefix: run.prefix().to_owned(),
        })
    }

    /// Makes sure that the directory which this rank sees is the one that rank 0 holds.
    ///
    /// # Errors
    /// [`OutputError::Write`] if it is not.
    pub(crate) fn check(&self) -> Result<(), OutputError> {
        let (own, shown) = (self.file(Manifest::FILE), self.shown(Manifest::FILE));
        let attempt = || -> io::Result<()> {
            let file = open_plain(File::options().read(true), &own)?;
            // The prefix stands in the second line.
            let mut head = Vec::new();
            file.take(HEAD).read_to_end(&mut head)?;
            let line = format!("temporary {}", self.prefix);
            let is_ours = head
                .split(|&byte| byte == b'\n')
                .any(|of| of == line.as_bytes());
            match is_ours {
                true => Ok(()),
                false => Err(io::Error::other("it is of another run")),
            }
        };
        attempt().map_err(OutputError::write(&shown))
    }

    /// The path of a file of the run, by its name relative to the directory.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        Path::new(&self.path).join(name)
    }

    /// The path of a file of the run, as messages have it.
    pub(super) fn shown(&self, name: &str) -> PathBuf {
        Path::new(&self.shown).join(name)
    }

    /// How names of temporary files begin.
    pub(super) fn prefix(&self) -> &str {
        &self.prefix
    }
}

/// Bytes of the list of files that are read.
const HEAD: u64 = 256;

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn only_the_directory_that_rank_0_holds_will_do() {
        let root = tempfile::tempdir().unwrap();
        let run = |name: &str| RunDirectory::create(root.path().join(name)).unwrap();
        let (one, other) = (run("one"), run("other"));
        let shared = SharedDirectory::of(&one).unwrap();
        shared.check().unwrap();
        let elsewhere = |path: PathBuf| SharedDirectory {
            path: path.into_os_string(),
            ..shared.clone()
        };
        let error = elsewhere(other.path().to_owned()).check().unwrap_err();
        assert!(
            error.to_string().contains("it is of another run"),
            "{error}"
        );
        let error = elsewhere(root.path().join("none")).check().unwrap_err();
        assert!(error.to_string().contains("run.files"), "{error}");
        // However many files a run has.
        one.write("frames/cloth.000001.vtp", |_| Ok(())).unwrap();
        shared.check().unwrap();
        fs::write(one.file("run.files"), "").unwrap();
        assert!(shared.check().is_err());
    }
}
