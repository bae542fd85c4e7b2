//! The directory of a run: looked at before anything in it is changed, and then held by one run
//! alone.
//!
//! | found | [`Place::create`] | [`Place::overwrite`] | [`Place::reopen`] |
//! |---|---|---|---|
//! | nothing, or an empty directory | made | made | refused |
//! | a run | refused | its files are removed, others stay | kept |
//! | the run of a program that kept no list of its files | refused | refused | kept |
//! | another non-empty directory, or a file | refused | refused | refused |
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
use weft_io::{PARTIAL, Show as _, temporary};

use super::lock::Lock;
use super::manifest::{FOLDERS, Listed, Manifest, is_own, names};
use super::plain::{is_other, read_plain};
use super::whole::{replace, sync_folder};
use super::{Checkpoint, HistoryWriter, OutputError};

/// A directory that is to receive a run, before anything in it is changed.
#[derive(Debug)]
pub struct Place {
    path: PathBuf,
    lock: Option<Lock>,
    found: Found,
}

/// What stands at the path asked for.
#[derive(Debug)]
enum Found {
    /// Nothing that anybody would miss.
    Nothing,
    /// A run, and the list of its files if it kept one.
    Run(Option<Listed>),
    /// Files of somebody else.
    Foreign,
}

impl Place {
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

    /// Takes the directory for a new run, and removes what an earlier one lists as its own. Nothing
    /// is removed unless all of that can be told from what is somebody else's.
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
        // Which also proves that the directory can be written.
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
            run.notices.push(format!(
                "{} had no list of its files ({}), as runs of an earlier weft: those with names that a run gives are listed now",
                path.shown(),
                Manifest::FILE
            ));
        }
        Ok(run)
    }

    /// That there is a run which nobody has asked to replace.
    #[must_use]
    pub fn occupied(&self) -> OutputError {
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
        let prefix = manifest.prefix().to_owned();
        Ok(RunDirectory {
            path: self.path,
            prefix,
            notices: lock.warning().into_iter().collect(),
            held: Arc::new(Held {
                manifest: Mutex::new(manifest),
                _lock: lock,
            }),
        })
    }
}

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
    pub const RECORD: &'static str = "run.json";

    /// Takes a directory for a new run, see [`Place::create`].
    ///
    /// # Errors
    /// As [`Place::look`] and [`Place::create`].
    pub fn create(path: impl Into<PathBuf>) -> Result<Self, OutputError> {
        Place::look(path)?.create()
    }

    /// Takes the directory of a run to go on with it, see [`Place::reopen`].
    ///
    /// # Errors
    /// As [`Place::look`] and [`Place::reopen`].
    pub fn reopen(path: impl Into<PathBuf>) -> Result<Self, OutputError> {
        Place::look(path)?.reopen()
    }

    /// The directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What its user must know of it, each a sentence.
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
    /// after a power cut. On failure the temporary file is removed and an older file of the same name
    /// is still there.
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

    /// As [`Self::write`]; answers the file, open to append to it.
    pub(super) fn replace(
        &self,
        name: &str,
        fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<File, OutputError> {
        let path = self.claim(name)?;
        replace(&path, &self.prefix, fill).map_err(OutputError::write(&path))
    }

    /// A temporary file beside a file of this run, which it is to become, with the path of that.
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

    /// Lists a file as the run's own, before it is made, and makes its folder.
    fn claim(&self, name: &str) -> Result<PathBuf, OutputError> {
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
        let mut manifest = self.manifest();
        if !manifest.listed().files.contains(name) {
            if fs::symlink_metadata(&path).is_ok() {
                return Err(OutputError::InTheWay { path });
            }
            manifest.add(name).map_err(OutputError::write(&path))?;
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
        // A list is whole whoever has panicked.
        let manifest = self.held.manifest.lock();
        manifest.unwrap_or_else(PoisonError::into_inner)
    }
}

/// Looks what there is in a directory.
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

/// Makes sure that what has the names of a run's folders is no link.
fn check_folders(directory: &Path) -> Result<(), OutputError> {
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

#[cfg(test)]
mod tests {
    use super::*;

    const OUR_RECORD: &str =
        r#"{"schema": 1, "program": {"name": "weftwork"}, "scene": {"name": "floor"}}"#;

    fn overwrite(path: &Path) -> Result<RunDirectory, OutputError> {
        Place::look(path)?.overwrite()
    }

    /// All files below a directory, with what is in them, but for the lock.
    fn contents(path: &Path) -> Vec<(PathBuf, Vec<u8>)> {
        let mut all = Vec::new();
        for entry in fs::read_dir(path).unwrap() {
            let path = entry.unwrap().path();
            if fs::symlink_metadata(&path).unwrap().is_dir() {
                all.extend(contents(&path));
            } else if !path.ends_with(Lock::FILE) {
                let bytes = fs::read(&path).unwrap();
                all.push((path, bytes));
            }
        }
        all.sort();
        all
    }

    /// What a run leaves: a record, a frame and a checkpoint.
    fn earlier_run(path: &Path) {
        let run = RunDirectory::create(path).unwrap();
        for (name, text) in [
            ("run.json", OUR_RECORD),
            ("history.csv", "step\n1\n2\n"),
            ("state.000002.ckpt", "x"),
            ("frames/cloth.000001.vtp", "x"),
            ("pictures/000001.png", "x"),
        ] {
            run.write(name, |out| out.write_all(text.as_bytes()))
                .unwrap();
        }
    }

    #[test]
    fn directory_and_parents_are_made() {
        let root = tempfile::tempdir().unwrap();
        let run = RunDirectory::create(root.path().join("a/b")).unwrap();
        assert!(run.path().is_dir());
        let names = names(run.path(), None).unwrap();
        let own = [Lock::FILE, Manifest::FILE].map(str::to_owned);
        assert_eq!(BTreeSet::from_iter(names), own.into());
        assert_eq!(run.notices(), [""; 0]);
    }

    #[test]
    fn file_in_the_way_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("run");
        fs::write(&path, "mine").unwrap();
        let error = RunDirectory::create(&path).unwrap_err();
        assert!(
            matches!(error, OutputError::NotADirectory { .. }),
            "{error}"
        );
        let error = RunDirectory::create(path.join("below")).unwrap_err();
        assert!(matches!(error, OutputError::Write { .. }), "{error}");
        assert_eq!(fs::read_to_string(path).unwrap(), "mine");
    }

    /// `/proc` refuses new entries to everybody, also to root, whom permission bits do not stop.
    #[cfg(target_os = "linux")]
    #[test]
    fn unwritable_parent_is_refused() {
        let error = RunDirectory::create("/proc/weft-run").unwrap_err();
        assert!(matches!(error, OutputError::Write { .. }), "{error}");
        assert!(error.to_string().contains("/proc/weft-run"), "{error}");
    }

    #[test]
    fn foreign_directory_is_refused_and_left_alone() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("thesis.tex"), "years of work").unwrap();
        let error = RunDirectory::create(root.path()).unwrap_err();
        assert!(matches!(error, OutputError::NotARun { .. }), "{error}");

        // Neither a run.json of another program makes it ours, nor a file with a checkpoint's name.
        fs::write(root.path().join("state.000001.ckpt"), "mine").unwrap();
        for record in [
            "{}",
            "not json",
            r#"{"schema": 1, "program": {"name": "other"}}"#,
        ] {
            fs::write(root.path().join("run.json"), record).unwrap();
            for refusal in [RunDirectory::create(root.path()), overwrite(root.path())] {
                let error = refusal.unwrap_err();
                assert!(
                    matches!(error, OutputError::NotARun { .. }),
                    "{record}: {error}"
                );
            }
        }
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 3);
    }

    #[test]
    fn a_run_is_refused_and_replaced_only_when_asked_and_strangers_stay() {
        let root = tempfile::tempdir().unwrap();
        earlier_run(root.path());
        let strangers = [
            "notes.txt",
            "frames/cloth.000009.vtp",
            "pictures/mine.png",
            "state.000009.ckpt",
            ".notes.swp.partial",
        ];
        for name in strangers {
            fs::write(root.path().join(name), "mine").unwrap();
        }
        let before = contents(root.path());
        let error = RunDirectory::create(root.path()).unwrap_err();
        assert!(matches!(error, OutputError::Occupied { .. }), "{error}");
        let said = error.to_string();
        for words in [
            "scene `floor`",
            "--resume",
            "--out",
            "--overwrite",
            "9 steps",
        ] {
            assert!(said.contains(words), "no {words:?} in {said}");
        }
        assert_eq!(contents(root.path()), before);

        let run = overwrite(root.path()).unwrap();
        let mut left: Vec<PathBuf> = contents(root.path()).into_iter().map(|of| of.0).collect();
        left.retain(|path| !path.ends_with(Manifest::FILE));
        let mut expected = strangers.map(|name| root.path().join(name));
        expected.sort();
        assert_eq!(left, expected);
        // Nor is a stranger's file written to by the run that comes next.
        let error = run.write("frames/cloth.000009.vtp", |out| out.write_all(b"x"));
        assert!(
            matches!(error, Err(OutputError::InTheWay { .. })),
            "{error:?}"
        );
        run.write("frames/cloth.000001.vtp", |out| out.write_all(b"x"))
            .unwrap();
    }

    /// As a program left it that kept no list.
    #[test]
    fn a_run_without_a_list_is_continued_but_not_replaced() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("frames")).unwrap();
        for (name, text) in [
            ("run.json", OUR_RECORD),
            ("frames/cloth.000001.vtp", "x"),
            ("notes.txt", "mine"),
        ] {
            fs::write(root.path().join(name), text).unwrap();
        }
        let before = contents(root.path());
        let error = overwrite(root.path()).unwrap_err();
        assert!(matches!(error, OutputError::NoList { .. }), "{error}");
        let error = RunDirectory::create(root.path()).unwrap_err();
        assert!(error.to_string().contains("no list"), "{error}");
        assert_eq!(contents(root.path()), before);
        assert!(!root.path().join(Lock::FILE).exists());

        let run = RunDirectory::reopen(root.path()).unwrap();
        assert!(run.notices()[0].contains("no list"), "{:?}", run.notices());
        let listed = ["frames/cloth.000001.vtp", "report.html", "run.json"].map(str::to_owned);
        assert_eq!(run.listed(), listed.into());
        drop(run);
        overwrite(root.path()).unwrap();
        assert!(root.path().join("notes.txt").exists() && !root.path().join("run.json").exists());
    }

    #[test]
    fn a_list_that_was_tampered_with_removes_nothing() {
        let root = tempfile::tempdir().unwrap();
        let out = root.path().join("out");
        earlier_run(&out);
        fs::write(root.path().join("mine.vtp"), "mine").unwrap();
        fs::create_dir(out.join("frames/dir.vtp")).unwrap();
        let list = fs::read_to_string(out.join(Manifest::FILE)).unwrap();
        for line in [
            "frames/../../mine.vtp".to_owned(),
            root.path().join("mine.vtp").to_str().unwrap().to_owned(),
            "frames/dir.vtp".to_owned(),
        ] {
            fs::write(out.join(Manifest::FILE), format!("{list}file {line}\n")).unwrap();
            let before = contents(root.path());
            let error = overwrite(&out).unwrap_err();
            let name = if line.contains("dir") {
                "dir.vtp"
            } else {
                "run.files"
            };
            assert!(error.to_string().contains(name), "{error}");
            assert_eq!(contents(root.path()), before);
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_that_is_a_link_loses_nothing() {
        let root = tempfile::tempdir().unwrap();
        let (out, other) = (root.path().join("out"), root.path().join("other"));
        earlier_run(&out);
        fs::rename(out.join("frames"), &other).unwrap();
        std::os::unix::fs::symlink(&other, out.join("frames")).unwrap();
        let before = contents(&other);
        for refusal in [overwrite(&out), RunDirectory::reopen(&out)] {
            let error = refusal.unwrap_err();
            assert!(matches!(error, OutputError::NotPlain { .. }), "{error}");
            assert!(error.to_string().contains("out/frames"), "{error}");
        }
        assert_eq!(contents(&other), before);
        assert!(out.join("run.json").exists());
        // Nor is written through a link that comes later.
        fs::remove_file(out.join("frames")).unwrap();
        let run = overwrite(&out).unwrap();
        std::os::unix::fs::symlink(&other, out.join("frames")).unwrap();
        let error = run.write("frames/cloth.000001.vtp", |out| out.write_all(b"new"));
        assert!(
            matches!(error, Err(OutputError::NotPlain { .. })),
            "{error:?}"
        );
        assert_eq!(contents(&other), before);
    }

    /// A link in the place of a file is replaced, not what it leads to.
    #[cfg(unix)]
    #[test]
    fn a_file_that_is_a_link_is_not_followed() {
        let root = tempfile::tempdir().unwrap();
        let out = root.path().join("out");
        let run = RunDirectory::create(&out).unwrap();
        run.write("history.csv", |out| out.write_all(b"x")).unwrap();
        fs::write(root.path().join("mine"), "mine").unwrap();
        fs::remove_file(out.join("history.csv")).unwrap();
        std::os::unix::fs::symlink("../mine", out.join("history.csv")).unwrap();
        run.remove("history.csv").unwrap();
        run.write("history.csv", |out| out.write_all(b"new"))
            .unwrap();
        assert_eq!(fs::read(root.path().join("mine")).unwrap(), b"mine");
        assert!(
            fs::symlink_metadata(out.join("history.csv"))
                .unwrap()
                .is_file()
        );
    }

    #[test]
    fn reopening_keeps_everything_but_what_a_kill_left_and_needs_a_run() {
        let root = tempfile::tempdir().unwrap();
        let error = RunDirectory::reopen(root.path()).unwrap_err();
        assert!(
            matches!(error, OutputError::NothingToResume { .. }),
            "{error}"
        );
        earlier_run(root.path());
        let files = fs::read_to_string(root.path().join(Manifest::FILE)).unwrap();
        let prefix = files
            .lines()
            .find_map(|line| line.strip_prefix("temporary "));
        let left = format!("frames/{}abc{PARTIAL}", prefix.unwrap());
        fs::write(root.path().join(&left), "half").unwrap();
        let run = RunDirectory::reopen(root.path()).unwrap();
        assert!(!root.path().join(&left).exists());
        assert!(root.path().join("state.000002.ckpt").exists());
        assert!(run.listed().contains("state.000002.ckpt"));
    }

    #[test]
    fn one_run_at_a_time() {
        let root = tempfile::tempdir().unwrap();
        let out = root.path().join("out");
        let run = RunDirectory::create(&out).unwrap();
        run.write("run.json", |file| file.write_all(OUR_RECORD.as_bytes()))
            .unwrap();
        for refusal in [
            RunDirectory::create(&out),
            RunDirectory::reopen(&out),
            overwrite(&out),
        ] {
            let error = refusal.unwrap_err();
            assert!(matches!(error, OutputError::Busy { .. }), "{error}");
        }
        let clone = run.clone();
        drop(run);
        assert!(matches!(overwrite(&out), Err(OutputError::Busy { .. })));
        drop(clone);
        overwrite(&out).unwrap();
    }

    #[test]
    fn failed_write_leaves_the_older_file_and_no_rest() {
        let root = tempfile::tempdir().unwrap();
        let run = RunDirectory::create(root.path()).unwrap();
        run.write("trace.json", |out| out.write_all(b"old"))
            .unwrap();
        let before = contents(root.path());
        let error = run
            .write("trace.json", |out| {
                out.write_all(b"half")?;
                Err(io::ErrorKind::StorageFull.into())
            })
            .unwrap_err();
        let OutputError::Write { path, source } = error else {
            panic!("{error}")
        };
        assert_eq!(path, run.file("trace.json"));
        assert_eq!(source.kind(), io::ErrorKind::StorageFull);
        assert_eq!(contents(root.path()), before);
    }

    #[test]
    fn lost_directory_is_an_error_naming_the_file() {
        let root = tempfile::tempdir().unwrap();
        let run = RunDirectory::create(root.path().join("run")).unwrap();
        fs::remove_dir_all(run.path()).unwrap();
        for name in ["run.json", "frames/a.vtp"] {
            let error = run.write(name, |out| out.write_all(b"x")).unwrap_err();
            assert!(matches!(&error, OutputError::Write { path, .. } if *path == run.file(name)));
        }
        assert!(!run.path().exists());
    }

    #[test]
    fn names_that_no_run_gives_are_not_written() {
        let root = tempfile::tempdir().unwrap();
        let run = RunDirectory::create(root.path()).unwrap();
        for name in ["../a.vtp", "thesis.tex", "frames/a/b.vtp", "/a.vtp"] {
            let error = run.write(name, |out| out.write_all(b"x")).unwrap_err();
            assert!(matches!(error, OutputError::Inconsistent { .. }), "{error}");
        }
    }
}
