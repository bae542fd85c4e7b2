//! The lock of a run's directory: no second run writes there while one does.
//!
//! The system holds it for the process that has it and lets go of it when that ends, however it
//! ends. So a lock file that a killed process has left does not block. The file says which process
//! holds the lock, and is never removed.

use std::fs::{File, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use weft_io::Show as _;

use super::OutputError;
use super::plain::open_plain;

/// A lock that is held until this is dropped.
#[derive(Debug)]
pub(super) struct Lock {
    file: File,
    path: PathBuf,
    /// Whether the file says that this process holds it.
    signed: bool,
    /// The reason why the file system gave no lock, if it knows none.
    unknown: Option<io::Error>,
}

impl Lock {
    /// Name of its file.
    pub(super) const FILE: &'static str = "run.lock";

    /// Takes the lock of a directory if it has a lock file; nothing is written.
    ///
    /// # Errors
    /// [`OutputError::Busy`] if another process, or another run of this one, holds it;
    /// [`OutputError::Write`].
    pub(super) fn existing(directory: &Path) -> Result<Option<Self>, OutputError> {
        let path = directory.join(Self::FILE);
        match open_plain(File::options().read(true).write(true), &path) {
            Ok(file) => Self::on(file, path).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(OutputError::write(&path)(error)),
        }
    }

    /// Takes the lock of a directory, and makes the lock file if there is none.
    ///
    /// # Errors
    /// As [`Self::existing`].
    pub(super) fn take(directory: &Path) -> Result<Self, OutputError> {
        let path = directory.join(Self::FILE);
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false);
        let file = open_plain(&mut options, &path).map_err(OutputError::write(&path))?;
        Self::on(file, path)
    }

    fn on(file: File, path: PathBuf) -> Result<Self, OutputError> {
        let taken = file.try_lock();
        let holder = || holder(&file);
        let unknown = judge(taken, &path, holder)?;
        Ok(Self {
            file,
            path,
            signed: false,
            unknown,
        })
    }

    /// Says in the file that this process holds the lock.
    ///
    /// # Errors
    /// [`OutputError::Write`].
    pub(super) fn sign(&mut self) -> Result<(), OutputError> {
        let text = format!("host {}\nprocess {}\n", this_host(), std::process::id());
        let mut attempt = || {
            self.file.set_len(0)?;
            self.file.seek(SeekFrom::Start(0))?;
            self.file.write_all(text.as_bytes())
        };
        attempt().map_err(OutputError::write(&self.path))?;
        self.signed = true;
        Ok(())
    }

    /// The warning about a file system that knows no locks.
    pub(super) fn warning(&self) -> Option<String> {
        let why = self.unknown.as_ref()?;
        Some(format!(
            "{} cannot be locked ({why}), so nothing keeps a second run out of this directory; see to it that none is started",
            self.path.shown()
        ))
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if self.signed && self.unknown.is_none() {
            // Nobody holds it from now on. A killed process leaves no more there than a wrong name.
            drop(self.file.set_len(0));
        }
    }
}

/// Judges an attempt to lock a file: `Some` if the file system knows no locks.
fn judge(
    taken: Result<(), TryLockError>,
    path: &Path,
    holder: impl FnOnce() -> String,
) -> Result<Option<io::Error>, OutputError> {
    match taken {
        Ok(()) => Ok(None),
        Err(TryLockError::Error(error)) => Ok(Some(error)),
        Err(TryLockError::WouldBlock) => Err(OutputError::Busy {
            path: path.parent().unwrap_or(path).to_owned(),
            holder: holder(),
        }),
    }
}

/// The holder of a lock, as its file names it.
fn holder(mut file: &File) -> String {
    /// More than any host's name takes.
    const LONGEST: u64 = 1024;
    let mut text = String::new();
    // A file that cannot be read says nothing.
    drop(file.take(LONGEST).read_to_string(&mut text));
    drop(file.seek(SeekFrom::Start(0)));
    let field = |name: &str| {
        let mut lines = text.lines();
        let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
        Some(value.escape_debug().to_string())
    };
    match (field("process"), field("host")) {
        (Some(process), Some(host)) => format!("process {process} on host {host}"),
        _ => "a process that is just starting or ending".to_owned(),
    }
}

/// The name of the host that this process runs on.
pub(crate) fn this_host() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname");
    host.map_or_else(|_| "localhost".to_owned(), |name| name.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_second_lock_is_refused_and_names_the_first_until_that_is_gone() {
        let root = tempfile::tempdir().unwrap();
        assert!(Lock::existing(root.path()).unwrap().is_none());
        let mut first = Lock::take(root.path()).unwrap();
        first.sign().unwrap();
        let refusals = [
            Lock::take(root.path()).map(drop),
            Lock::existing(root.path()).map(drop),
        ];
        for refusal in refusals {
            let error = refusal.unwrap_err();
            assert!(matches!(error, OutputError::Busy { .. }), "{error}");
            let named = format!("process {} on host {}", std::process::id(), this_host());
            assert!(error.to_string().contains(&named), "{error}");
        }
        drop(first);
        assert_eq!(fs::read(root.path().join(Lock::FILE)).unwrap(), b"");
        assert!(Lock::existing(root.path()).unwrap().is_some());
    }

    /// The file is as a killed process leaves it.
    #[test]
    fn the_text_of_an_old_lock_file_does_not_block() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join(Lock::FILE), "host n01\nprocess 1\n").unwrap();
        let lock = Lock::take(root.path()).unwrap();
        assert_eq!(lock.warning(), None);
        drop(lock);
        let text = fs::read_to_string(root.path().join(Lock::FILE)).unwrap();
        assert_eq!(text, "host n01\nprocess 1\n", "looking changes nothing");
    }

    #[test]
    fn a_file_system_without_locks_is_warned_of() {
        let root = tempfile::tempdir().unwrap();
        let unsupported = io::Error::from(io::ErrorKind::Unsupported);
        let taken = Err(TryLockError::Error(unsupported));
        let unknown = judge(taken, root.path(), || unreachable!()).unwrap();
        let mut lock = Lock::take(root.path()).unwrap();
        lock.unknown = unknown;
        let warning = lock.warning().unwrap();
        assert!(warning.contains("run.lock cannot be locked"), "{warning}");
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_not_followed() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("mine"), "mine").unwrap();
        std::os::unix::fs::symlink("mine", root.path().join(Lock::FILE)).unwrap();
        let error = Lock::take(root.path()).unwrap_err();
        assert!(
            error.to_string().contains("run.lock: it is a link"),
            "{error}"
        );
        assert_eq!(fs::read(root.path().join("mine")).unwrap(), b"mine");
    }
}
