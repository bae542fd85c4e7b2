//! The directory of a run: made or refused before any work starts, and files that appear whole.
//!
//! What happens to a path that exists:
//!
//! | found | [`RunDirectory::create`] | [`RunDirectory::reopen`] |
//! |---|---|---|
//! | nothing, or an empty directory | made | refused |
//! | a directory with our `run.json` | files of the earlier run are removed, others stay | kept |
//! | another non-empty directory | refused | refused |
//! | a file | refused | refused |
//!
//! Only names that a run writes are ever removed ([`is_own_file`]); nothing is removed recursively.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use weft_io::read_regular;

use super::OutputError;

/// The directory that receives all files of one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunDirectory {
    path: PathBuf,
}

impl RunDirectory {
    /// Name of the run's record, by which the directory of an earlier run is recognised.
    pub const RECORD: &'static str = "run.json";

    /// Makes the directory (and its parents), or takes over the one of an earlier run, and proves by
    /// writing a file that it can be written.
    ///
    /// # Errors
    /// [`OutputError::NotADirectory`], [`OutputError::NotARun`], or [`OutputError::Write`] if the
    /// directory cannot be made or written. An earlier run's files are only removed after the proof.
    pub fn create(path: impl Into<PathBuf>) -> Result<Self, OutputError> {
        let directory = Self { path: path.into() };
        match directory.look()? {
            Found::Nothing | Found::Empty => directory.prove_writable()?,
            Found::EarlierRun => {
                directory.prove_writable()?;
                directory.remove_earlier_run()?;
            }
            Found::Foreign => {
                return Err(OutputError::NotARun {
                    path: directory.path,
                });
            }
        }
        Ok(directory)
    }

    /// Opens the directory of an earlier run to continue it; keeps every file.
    ///
    /// # Errors
    /// [`OutputError::NothingToResume`] if there is no earlier run, otherwise as [`Self::create`].
    pub fn reopen(path: impl Into<PathBuf>) -> Result<Self, OutputError> {
        let directory = Self { path: path.into() };
        match directory.look()? {
            Found::EarlierRun => directory.prove_writable()?,
            _ => {
                return Err(OutputError::NothingToResume {
                    path: directory.path,
                });
            }
        }
        Ok(directory)
    }

    /// The directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of a file of this run; `name` is relative, with `/` between folders.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Writes a file under a temporary name and renames it into place; makes its folder if needed.
    ///
    /// The file is flushed to the disk before it is renamed, so that it is complete or absent also
    /// after a power cut. On failure the temporary file is removed and an older file of the same name
    /// is still there.
    ///
    /// # Errors
    /// [`OutputError::Write`] naming the file, whatever `fill` or the system says.
    pub fn write(
        &self,
        name: &str,
        fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<PathBuf, OutputError> {
        let path = self.file(name);
        if let Some(folder) = path.parent().filter(|folder| *folder != self.path) {
            // One level only: a lost run directory is an error, not something to make again.
            if !folder.is_dir() {
                fs::create_dir(folder).map_err(OutputError::write(&path))?;
            }
        }
        write_whole(&path, fill)?;
        Ok(path)
    }

    fn look(&self) -> Result<Found, OutputError> {
        match fs::metadata(&self.path) {
            Ok(found) if !found.is_dir() => {
                return Err(OutputError::NotADirectory {
                    path: self.path.clone(),
                });
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Nothing),
            Err(error) => return Err(OutputError::write(&self.path)(error)),
        }
        let mut empty = true;
        for entry in fs::read_dir(&self.path).map_err(OutputError::read(&self.path))? {
            let entry = entry.map_err(OutputError::read(&self.path))?;
            empty &= is_partial(&entry.file_name().to_string_lossy());
        }
        Ok(match (empty, self.has_our_record()?) {
            (true, _) => Found::Empty,
            (false, true) => Found::EarlierRun,
            (false, false) => Found::Foreign,
        })
    }

    /// Whether `run.json` says that this program wrote it.
    fn has_our_record(&self) -> Result<bool, OutputError> {
        let path = self.file(Self::RECORD);
        match read_regular(&path, LARGEST_RECORD) {
            Ok(bytes) => Ok(
                serde_json::from_slice::<serde_json::Value>(&bytes).is_ok_and(|record| {
                    record["program"]["name"] == env!("CARGO_PKG_NAME") && record["schema"].is_u64()
                }),
            ),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(OutputError::read(&path)(error)),
        }
    }

    fn prove_writable(&self) -> Result<(), OutputError> {
        let probe = self.path.join(format!(".probe{PARTIAL}"));
        let attempt = || {
            fs::create_dir_all(&self.path)?;
            fs::write(&probe, b"can this directory be written?\n")?;
            fs::remove_file(&probe)
        };
        attempt().map_err(OutputError::write(&self.path))
    }

    /// Removes the record last: if this is interrupted, the directory is still recognised.
    fn remove_earlier_run(&self) -> Result<(), OutputError> {
        for folder in [".", "frames", "pictures", "trace"] {
            let folder_path = if folder == "." {
                self.path.clone()
            } else {
                self.file(folder)
            };
            let entries = match fs::read_dir(&folder_path) {
                Ok(entries) => entries,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(OutputError::read(&folder_path)(error)),
            };
            for entry in entries {
                let entry = entry.map_err(OutputError::read(&folder_path))?;
                let name = entry.file_name();
                let Some(name) = name.to_str() else { continue };
                if name != Self::RECORD && is_own_file(folder, name) && !entry.path().is_dir() {
                    fs::remove_file(entry.path()).map_err(OutputError::write(&entry.path()))?;
                }
            }
        }
        let record = self.file(Self::RECORD);
        fs::remove_file(&record).map_err(OutputError::write(&record))
    }
}

/// Writes a file under a temporary name beside it and renames it into place, see [`RunDirectory::write`]. A link stays one, to what is written; what
/// is no file, as a pipe or `/dev/null`, is written to and stays what it is.
///
/// # Errors
/// [`OutputError::Write`] naming the file.
pub fn write_whole(
    path: &Path,
    fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), OutputError> {
    let place = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let partial = partial_name(&place);
    let attempt = || {
        if fs::metadata(&place).is_ok_and(|there| !there.is_file() && !there.is_dir()) {
            let mut through = BufWriter::new(File::options().write(true).open(&place)?);
            fill(&mut through)?;
            return through.flush();
        }
        let mut file = BufWriter::new(File::create(&partial)?);
        fill(&mut file)?;
        file.into_inner()
            .map_err(io::IntoInnerError::into_error)?
            .sync_all()?;
        fs::rename(&partial, &place)
    };
    attempt().map_err(|source| {
        // The first failure is the one to report; that the rest cannot be cleared adds nothing.
        let _ = fs::remove_file(&partial);
        OutputError::Write {
            path: path.to_owned(),
            source,
        }
    })
}

/// What stands at the path asked for.
enum Found {
    Nothing,
    Empty,
    EarlierRun,
    Foreign,
}

/// Largest `run.json` in bytes that is looked at.
const LARGEST_RECORD: u64 = 256 << 20;

/// Ends the temporary names.
const PARTIAL: &str = ".partial";

fn partial_name(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}{PARTIAL}"))
}

fn is_partial(name: &str) -> bool {
    name.starts_with('.') && name.ends_with(PARTIAL)
}

/// Whether a run writes files of this name; only these are replaced by a later run.
fn is_own_file(folder: &str, name: &str) -> bool {
    is_partial(name)
        || match folder {
            "." => {
                matches!(
                    name,
                    RunDirectory::RECORD
                        | "history.csv"
                        | "frames.pvd"
                        | "trace.json"
                        | "record.weftrec"
                        | "report.html"
                ) || (name.starts_with("state.") && name.ends_with(".ckpt"))
            }
            "frames" => name.ends_with(".vtp"),
            "pictures" => name.ends_with(".png"),
            "trace" => name.starts_with("rank-"),
            _ => false,
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUR_RECORD: &str = r#"{"schema": 1, "program": {"name": "weftwork"}}"#;

    #[test]
    fn directory_and_parents_are_made() {
        let root = tempfile::tempdir().unwrap();
        let run = RunDirectory::create(root.path().join("a/b")).unwrap();
        assert!(run.path().is_dir());
        assert_eq!(
            fs::read_dir(run.path()).unwrap().count(),
            0,
            "the proof left something"
        );
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

    /// A page that is asked for in `/dev/stdout`, or behind a link, is not to take the place of that.
    #[cfg(target_os = "linux")]
    #[test]
    fn what_is_no_file_is_written_to_and_a_link_stays_one() {
        use std::os::fd::AsRawFd as _;

        let root = tempfile::tempdir().unwrap();
        let (target, link) = (root.path().join("target"), root.path().join("link"));
        fs::write(&target, "old").unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        write_whole(&link, |out| out.write_all(b"new")).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&target).unwrap(), "new");
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 2);
        let (mut from, to) = io::pipe().unwrap();
        let pipe = format!("/proc/self/fd/{}", to.as_raw_fd());
        write_whole(pipe.as_ref(), |out| out.write_all(b"new")).unwrap();
        drop(to);
        let mut read = String::new();
        io::Read::read_to_string(&mut from, &mut read).unwrap();
        assert_eq!(read, "new");
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

        // A run.json of another program does not make it ours.
        for record in [
            "{}",
            "not json",
            r#"{"schema": 1, "program": {"name": "other"}}"#,
        ] {
            fs::write(root.path().join("run.json"), record).unwrap();
            let error = RunDirectory::create(root.path()).unwrap_err();
            assert!(
                matches!(error, OutputError::NotARun { .. }),
                "{record}: {error}"
            );
        }
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 2);
    }

    #[test]
    fn earlier_run_is_replaced_and_strangers_stay() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("frames")).unwrap();
        let own = [
            "history.csv",
            "frames.pvd",
            "state.000010.ckpt",
            "frames/cloth.000001.vtp",
        ];
        let strangers = ["notes.txt", "frames/readme.md"];
        for name in own.iter().chain(&strangers) {
            fs::write(root.path().join(name), "x").unwrap();
        }
        fs::write(root.path().join("run.json"), OUR_RECORD).unwrap();

        RunDirectory::create(root.path()).unwrap();
        for name in own.iter().chain(&["run.json"]) {
            assert!(!root.path().join(name).exists(), "{name} is still there");
        }
        for name in strangers {
            assert!(root.path().join(name).exists(), "{name} was removed");
        }
    }

    #[test]
    fn reopening_keeps_everything_and_needs_a_run() {
        let root = tempfile::tempdir().unwrap();
        let error = RunDirectory::reopen(root.path()).unwrap_err();
        assert!(
            matches!(error, OutputError::NothingToResume { .. }),
            "{error}"
        );
        fs::write(root.path().join("run.json"), OUR_RECORD).unwrap();
        fs::write(root.path().join("state.000010.ckpt"), "x").unwrap();
        RunDirectory::reopen(root.path()).unwrap();
        assert!(root.path().join("state.000010.ckpt").exists());
    }

    #[test]
    fn failed_write_leaves_the_older_file_and_no_rest() {
        let root = tempfile::tempdir().unwrap();
        let run = RunDirectory::create(root.path()).unwrap();
        run.write("a.txt", |out| out.write_all(b"old")).unwrap();
        let error = run
            .write("a.txt", |out| {
                out.write_all(b"half")?;
                Err(io::Error::other("interrupted"))
            })
            .unwrap_err();
        assert!(error.to_string().contains("a.txt"), "{error}");
        assert_eq!(fs::read_to_string(run.file("a.txt")).unwrap(), "old");
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 1);
    }

    /// The temporary name is made to lead to a device that is always full.
    #[cfg(target_os = "linux")]
    #[test]
    fn full_disk_is_an_error_naming_the_file() {
        let root = tempfile::tempdir().unwrap();
        let run = RunDirectory::create(root.path()).unwrap();
        std::os::unix::fs::symlink("/dev/full", run.file(".a.bin.partial")).unwrap();
        let error = run
            .write("a.bin", |out| out.write_all(&[0; 100_000]))
            .unwrap_err();
        let OutputError::Write { path, source } = error else {
            panic!("{error}")
        };
        assert_eq!(path, run.file("a.bin"));
        assert_eq!(source.kind(), io::ErrorKind::StorageFull);
        assert!(!run.file("a.bin").exists());
    }

    #[test]
    fn lost_directory_is_an_error_naming_the_file() {
        let root = tempfile::tempdir().unwrap();
        let run = RunDirectory::create(root.path().join("run")).unwrap();
        fs::remove_dir(run.path()).unwrap();
        for name in ["run.json", "frames/a.vtp"] {
            let error = run.write(name, |out| out.write_all(b"x")).unwrap_err();
            assert!(matches!(&error, OutputError::Write { path, .. } if *path == run.file(name)));
        }
        assert!(!run.path().exists());
    }
}
