//! The destination of a run: a directory that is looked at before anything in it is changed.
//!
//! | found | [`Destination::create`] | [`Destination::overwrite`] | [`Destination::reopen`] |
//! |---|---|---|---|
//! | nothing, or an empty directory | made | made | refused |
//! | a run | refused | its files are removed, others stay | kept |
//! | the run of a program that kept no list of its files | refused | refused | kept |
//! | another non-empty directory, or a file | refused | refused | refused |
//!
//! The result is a [`RunDirectory`], which one run holds alone.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use weft_io::{PARTIAL, Show as _};

use super::directory::{RunDirectory, check_folders};
use super::lock::Lock;
use super::manifest::{FOLDERS, Listed, Manifest, names};
use super::plain::{is_other, read_plain};
use super::whole::sync_folder;
use super::{Checkpoint, HistoryWriter, OutputError};

/// A directory that is to receive a run, before anything in it is changed.
#[derive(Debug)]
pub struct Destination {
    path: PathBuf,
    lock: Option<Lock>,
    found: Found,
}

/// The kinds of things that may stand at the path.
#[derive(Debug)]
enum Found {
    /// Nothing that anybody would miss.
    Nothing,
    /// A run, and the list of its files if it kept one.
    Run(Option<Listed>),
    /// Files of somebody else.
    Foreign,
}

impl RunDirectory {
    /// Takes a directory for a new run, see [`Destination::create`].
    ///
    /// # Errors
    /// As [`Destination::look`] and [`Destination::create`].
    pub fn create(path: impl Into<PathBuf>) -> Result<Self, OutputError> {
        Destination::look(path)?.create()
    }

    /// Takes the directory of a run to go on with it, see [`Destination::reopen`].
    ///
    /// # Errors
    /// As [`Destination::look`] and [`Destination::reopen`].
    pub fn reopen(path: impl Into<PathBuf>) -> Result<Self, OutputError> {
        Destination::look(path)?.reopen()
    }
}

impl Destination {
    /// Looks at a directory. If there is a run in it, it is locked from now on.
    ///
    /// # Errors
    /// [`OutputError::NotADirectory`]; [`OutputError::Busy`] if another run is at work in it;
    /// [`OutputError::Malformed`] if its list of files is none; [`OutputError::Read`],
    /// [`OutputError::Write`].
    pub fn look(path: impl Into<PathBuf>) -> Result<Self, OutputError> {
        let path = path.into();
        match fs::metadata(&path) {
            Ok(found) if !found.is_dir() => return Err(OutputError::NotADirectory { path }),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Self {
                    path,
                    lock: None,
                    found: Found::Nothing,
                });
            }
            Err(error) => return Err(OutputError::write(&path)(error)),
        }
        let lock = Lock::existing(&path)?;
        let found = find(&path)?;
        Ok(Self { path, lock, found })
    }

    /// Whether there is nothing in it that anybody would miss.
    #[must_use]
    pub fn is_free(&self) -> bool {
        matches!(self.found, Found::Nothing)
    }

    /// Whether there is a run in it.
    #[must_use]
    pub fn holds_run(&self) -> bool {
        matches!(self.found, Found::Run(_))
    }

    /// Takes the directory for a new run; makes it, with its parents, if it is not there.
    ///
    /// # Errors
    /// [`OutputError::Occupied`], [`OutputError::NotARun`]; [`OutputError::Busy`],
    /// [`OutputError::Write`].
    pub fn create(self) -> Result<RunDirectory, OutputError> {
        self.refuse_what_is_there()?;
        let place = self.held()?;
        // Somebody may have been faster.
        place.refuse_what_is_there()?;
        place.begin(BTreeSet::new())
    }

    /// Takes the directory for a new run, and removes the files that an earlier one lists as its
    /// own. Nothing is removed unless all of these can be told from files of others.
    ///
    /// # Errors
    /// [`OutputError::NoList`], [`OutputError::NotPlain`]; as [`Self::create`].
    pub fn overwrite(self) -> Result<RunDirectory, OutputError> {
        match self.found {
            Found::Nothing | Found::Foreign => return self.create(),
            Found::Run(None) => return Err(OutputError::NoList { path: self.path }),
            Found::Run(Some(_)) => {}
        }
        let mut place = self.held()?;
        let Found::Run(Some(listed)) = &place.found else {
            return place.create();
        };
        let gone = removable(&place.path, listed)?;
        let lock = place.lock.as_mut();
        // This also proves that the directory can be written.
        lock.map_or(Ok(()), Lock::sign)?;
        for path in gone {
            fs::remove_file(&path).map_err(OutputError::write(&path))?;
        }
        place.begin(BTreeSet::new())
    }

    /// Takes the directory of a run to go on with it; keeps what is there.
    ///
    /// # Errors
    /// [`OutputError::NothingToResume`] if there is no run; [`OutputError::NotPlain`] if links are
    /// where its folders were; as [`Self::create`].
    pub fn reopen(self) -> Result<RunDirectory, OutputError> {
        if !self.holds_run() {
            return Err(OutputError::NothingToResume { path: self.path });
        }
        let place = self.held()?;
        let Found::Run(listed) = &place.found else {
            return Err(OutputError::NothingToResume { path: place.path });
        };
        check_folders(&place.path)?;
        let (files, adopted) = match listed {
            Some(listed) => (listed.files.clone(), false),
            None => (Listed::by_name(&place.path)?.files, true),
        };
        if let Some(listed) = listed {
            for path in leftovers(&place.path, listed)? {
                fs::remove_file(&path).map_err(OutputError::write(&path))?;
            }
        }
        let path = place.path.clone();
        let mut run = place.begin(files)?;
        if adopted {
            run.notice(format!(
                "{} had no list of its files ({}), as runs of an earlier weft have none: files with names that a run gives are listed now",
                path.shown(),
                Manifest::FILE
            ));
        }
        Ok(run)
    }

    /// Makes the error that there is a run which nobody has asked to replace.
    #[must_use]
    pub(crate) fn occupied(&self) -> OutputError {
        let record = read_plain(&self.path.join(RunDirectory::RECORD));
        let record = record.ok().flatten().unwrap_or_default();
        let record: serde_json::Value = serde_json::from_slice(&record).unwrap_or_default();
        let result = record["result"]["steps"].as_u64();
        let steps = result.unwrap_or_else(|| {
            let all = Checkpoint::all(&self.path).unwrap_or_default();
            let newest = all.first().map(|(step, _)| *step);
            let history = HistoryWriter::last_step(&self.path.join(HistoryWriter::FILE));
            newest.max(history).unwrap_or_default()
        });
        OutputError::Occupied {
            path: self.path.clone(),
            scene: match record["scene"]["name"].as_str() {
                Some(name) => format!("scene `{}`", name.escape_debug()),
                None => "a scene that it does not name, for it has no run.json".to_owned(),
            },
            steps,
            listed: matches!(self.found, Found::Run(Some(_))),
        }
    }

    fn refuse_what_is_there(&self) -> Result<(), OutputError> {
        match self.found {
            Found::Nothing => Ok(()),
            Found::Run(_) => Err(self.occupied()),
            Found::Foreign => Err(OutputError::NotARun {
                path: self.path.clone(),
            }),
        }
    }

    /// Makes the directory if it is not there, and locks it if that has not been done; then it is
    /// looked at again.
    fn held(mut self) -> Result<Self, OutputError> {
        if self.lock.is_none() {
            fs::create_dir_all(&self.path).map_err(OutputError::write(&self.path))?;
            self.lock = Some(Lock::take(&self.path)?);
            self.found = find(&self.path)?;
        }
        Ok(self)
    }

    /// The directory, with these files as the run's own.
    fn begin(mut self, files: BTreeSet<String>) -> Result<RunDirectory, OutputError> {
        check_folders(&self.path)?;
        let mut lock = match self.lock.take() {
            Some(lock) => lock,
            None => Lock::take(&self.path)?,
        };
        lock.sign()?;
        let manifest = Manifest::start(&self.path, files)?;
        sync_folder(&self.path).map_err(OutputError::write(&self.path))?;
        Ok(RunDirectory::held_by(self.path, manifest, lock))
    }
}

/// Finds out what a directory holds.
fn find(path: &Path) -> Result<Found, OutputError> {
    let listed = Listed::read(path)?;
    let there = |name: &String| fs::symlink_metadata(path.join(name)).is_ok();
    if listed
        .as_ref()
        .is_some_and(|listed| listed.files.iter().any(there))
        || has_our_record(path)?
        || Checkpoint::any(path)?
    {
        return Ok(Found::Run(listed));
    }
    let mut names = names(path, None)?.into_iter();
    let is_nothing =
        |name: &str| name == Lock::FILE || name.starts_with('.') && name.ends_with(PARTIAL);
    Ok(if listed.is_some() || names.all(|name| is_nothing(&name)) {
        Found::Nothing
    } else {
        Found::Foreign
    })
}

/// Whether `run.json` says that this program wrote it.
fn has_our_record(directory: &Path) -> Result<bool, OutputError> {
    let path = directory.join(RunDirectory::RECORD);
    let bytes = read_plain(&path).map_err(OutputError::read(&path))?;
    let record = bytes.and_then(|bytes| serde_json::from_slice::<serde_json::Value>(&bytes).ok());
    Ok(record.is_some_and(|record| {
        record["program"]["name"] == env!("CARGO_PKG_NAME") && record["schema"].is_u64()
    }))
}

/// The files of a list that are there, the record last, and the temporary files that were left: all
/// that a run has made.
fn removable(directory: &Path, listed: &Listed) -> Result<Vec<PathBuf>, OutputError> {
    check_folders(directory)?;
    let mut gone = leftovers(directory, listed)?;
    let record = RunDirectory::RECORD;
    let others = listed.files.iter().filter(|name| *name != record);
    // If this is interrupted, the directory is still one with a run.
    let last = listed.files.get(record);
    for path in others.chain(last).map(|name| directory.join(name)) {
        if let Some(what) = is_other(&path).map_err(OutputError::read(&path))? {
            return Err(OutputError::NotPlain { path, what });
        }
        if path.exists() {
            gone.push(path);
        }
    }
    Ok(gone)
}

/// The temporary files that a killed process has left.
fn leftovers(directory: &Path, listed: &Listed) -> Result<Vec<PathBuf>, OutputError> {
    let mut left = Vec::new();
    for folder in [None].into_iter().chain(FOLDERS.map(Some)) {
        for name in names(directory, folder)? {
            let path = folder.map_or_else(|| directory.to_owned(), |folder| directory.join(folder));
            let path = path.join(&name);
            let plain = fs::symlink_metadata(&path).is_ok_and(|found| found.is_file());
            if listed.is_temporary(&name) && plain {
                left.push(path);
            }
        }
    }
    Ok(left)
}
