//! The directory of a run, which one run holds alone.
//!
//! A process that writes there holds the lock ([`Lock`]). Which files are a run's own is listed
//! ([`Manifest`]): no other is ever replaced or removed, nothing is removed recursively, and no
//! link is followed below the directory.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tempfile::NamedTempFile;
use weft_io::temporary;

use super::OutputError;
use super::lock::Lock;
use super::manifest::{FOLDERS, Manifest, is_own};
use super::names;
use super::whole::{replace, sync_folder};

/// The directory that receives all files of one run, and no other's while this or a clone is there.
#[derive(Clone, Debug)]
pub struct RunDirectory {
    path: PathBuf,
    /// How names of temporary files begin.
    prefix: String,
    notices: Vec<String>,
    held: Arc<Held>,
}

#[derive(Debug)]
struct Held {
    manifest: Mutex<Manifest>,
    _lock: Lock,
}

impl RunDirectory {
    /// Name of the run's record.
    pub const RECORD: &'static str = names::RECORD;

    /// Makes the directory of a run that is locked, and whose files are listed.
    pub(super) fn held_by(path: PathBuf, manifest: Manifest, lock: Lock) -> Self {
        Self {
            path,
            prefix: manifest.prefix().to_owned(),
            notices: lock.warning().into_iter().collect(),
            held: Arc::new(Held {
                manifest: Mutex::new(manifest),
                _lock: lock,
            }),
        }
    }

    /// Adds a sentence to what its user must know of it.
    pub(super) fn notice(&mut self, sentence: String) {
        self.notices.push(sentence);
    }

    /// The directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Sentences that its user must know of it.
    #[must_use]
    pub fn notices(&self) -> &[String] {
        &self.notices
    }

    /// The path of a file of this run; `name` is relative, with `/` between folders.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// The names of all files that are the run's own, whether or not they are there.
    #[must_use]
    pub fn listed(&self) -> BTreeSet<String> {
        self.manifest().listed().files.clone()
    }

    /// Writes a file under a temporary name and renames it into place; makes its folder if needed.
    ///
    /// The file is brought to the disk before it is renamed, so that it is complete or absent also
    /// after a power cut. On failure the temporary file is removed and an older file of the same
    /// name is still there.
    ///
    /// # Errors
    /// [`OutputError::Write`] naming the file, whatever `fill` or the system says;
    /// [`OutputError::InTheWay`].
    pub fn write(
        &self,
        name: &str,
        fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<PathBuf, OutputError> {
        self.replace(name, fill)?;
        Ok(self.file(name))
    }

    /// Does as [`Self::write`]; the result is the file, open to append to it.
    pub(super) fn replace(
        &self,
        name: &str,
        fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<File, OutputError> {
        let path = self.claim(name)?;
        replace(&path, &self.prefix, fill).map_err(OutputError::write(&path))
    }

    /// Makes a temporary file beside a file of this run, which it is to become. The path is that of
    /// the latter.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn temporary(&self, name: &str) -> Result<(NamedTempFile, PathBuf), OutputError> {
        let path = self.claim(name)?;
        let folder = path.parent().unwrap_or(&self.path);
        let file = temporary(folder, &self.prefix).map_err(OutputError::write(&path))?;
        Ok((file, path))
    }

    /// Removes a file of this run, if it is there and a file.
    ///
    /// # Errors
    /// [`OutputError::Write`].
    pub fn remove(&self, name: &str) -> Result<(), OutputError> {
        let path = self.file(name);
        let ours = self.manifest().listed().files.contains(name);
        let plain = fs::symlink_metadata(&path).is_ok_and(|found| found.is_file());
        if ours && plain && self.folder_of(name)?.is_some() {
            fs::remove_file(&path).map_err(OutputError::write(&path))?;
        }
        Ok(())
    }

    /// Brings the names of the run's files to the disk.
    ///
    /// # Errors
    /// [`OutputError::Write`].
    pub fn sync(&self) -> Result<(), OutputError> {
        let folders = FOLDERS.map(|folder| self.file(folder));
        let there = folders.iter().filter(|folder| folder.is_dir());
        for folder in there.chain([&self.path]) {
            sync_folder(folder).map_err(OutputError::write(folder))?;
        }
        Ok(())
    }

    /// How the names of its temporary files begin.
    pub(super) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Lists files as the run's own, before other ranks make them, and makes their folders.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub(super) fn list(&self, names: &[String]) -> Result<(), OutputError> {
        for name in names {
            self.prepare(name)?;
        }
        let mut manifest = self.manifest();
        let new: Vec<&str> = names
            .iter()
            .map(String::as_str)
            .filter(|name| !manifest.listed().files.contains(*name))
            .collect();
        for name in &new {
            let path = self.file(name);
            if fs::symlink_metadata(&path).is_ok() {
                return Err(OutputError::InTheWay { path });
            }
        }
        let path = self.file(names.first().map_or("", String::as_str));
        manifest.add_all(&new).map_err(OutputError::write(&path))
    }

    /// Lists a file as the run's own, before it is made, and makes its folder.
    fn claim(&self, name: &str) -> Result<PathBuf, OutputError> {
        let path = self.prepare(name)?;
        let mut manifest = self.manifest();
        if !manifest.listed().files.contains(name) {
            if fs::symlink_metadata(&path).is_ok() {
                return Err(OutputError::InTheWay { path });
            }
            manifest.add(name).map_err(OutputError::write(&path))?;
        }
        Ok(path)
    }

    /// Makes the folder of a file, if a run writes one of that name.
    fn prepare(&self, name: &str) -> Result<PathBuf, OutputError> {
        let path = self.file(name);
        if !is_own(name) {
            let what = "a run writes no file of that name".to_owned();
            return Err(OutputError::Inconsistent { path, what });
        }
        if self.folder_of(name)?.is_none()
            && let Some(folder) = path.parent()
        {
            // One level only: a lost run directory is an error, not something to make again.
            fs::create_dir(folder).map_err(OutputError::write(&path))?;
        }
        Ok(path)
    }

    /// The folder that a file of the run lies in, if it is there.
    fn folder_of(&self, name: &str) -> Result<Option<PathBuf>, OutputError> {
        let Some((folder, _)) = name.split_once('/') else {
            return Ok(Some(self.path.clone()));
        };
        let path = self.file(folder);
        match fs::symlink_metadata(&path) {
            Ok(found) if found.is_dir() => Ok(Some(path)),
            Ok(_) => Err(no_folder(path)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(OutputError::write(&self.file(name))(error)),
        }
    }

    fn manifest(&self) -> MutexGuard<'_, Manifest> {
        // The list is whole even if a thread has panicked.
        let manifest = self.held.manifest.lock();
        manifest.unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes sure that no link or file has the name of a folder of runs.
pub(super) fn check_folders(directory: &Path) -> Result<(), OutputError> {
    for folder in FOLDERS.map(|folder| directory.join(folder)) {
        if fs::symlink_metadata(&folder).is_ok_and(|found| !found.is_dir()) {
            return Err(no_folder(folder));
        }
    }
    Ok(())
}

fn no_folder(path: PathBuf) -> OutputError {
    let what = "it is a link or a file, where a run has a folder";
    OutputError::NotPlain { path, what }
}
