//! A folder that somebody has named for exports. Files appear in it complete or not at all, and
//! none that is there is replaced unless that is asked for.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use weft_io::temporary_beside;

use super::OutputError;

/// A folder for files that other programs read.
#[derive(Clone, Debug)]
pub struct ExportFolder {
    path: PathBuf,
    overwrite: bool,
}

impl ExportFolder {
    /// Names a folder, which is made with its parents once there is something to write.
    /// `overwrite` says whether files of the names that are written may be replaced.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>, overwrite: bool) -> Self {
        Self {
            path: path.into(),
            overwrite,
        }
    }

    /// The folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the folder, and makes sure that none of these files would take another's place.
    ///
    /// # Errors
    /// [`OutputError::Exists`], [`OutputError::NotADirectory`], [`OutputError::Write`].
    pub(crate) fn begin(&self, names: &[String]) -> Result<(), OutputError> {
        if fs::metadata(&self.path).is_ok_and(|found| !found.is_dir()) {
            let path = self.path.clone();
            return Err(OutputError::NotADirectory { path });
        }
        let taken = |name: &&String| fs::symlink_metadata(self.path.join(name)).is_ok();
        if let Some(name) = names.iter().find(taken).filter(|_| !self.overwrite) {
            let path = self.path.join(name);
            return Err(OutputError::Exists { path });
        }
        fs::create_dir_all(&self.path).map_err(OutputError::write(&self.path))
    }

    /// Writes a file under a temporary name and renames it into place.
    ///
    /// # Errors
    /// [`OutputError::Exists`]; [`OutputError::Write`] naming the file.
    pub(crate) fn write(
        &self,
        name: &str,
        fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), OutputError> {
        let path = self.path.join(name);
        let attempt = || {
            let temporary = temporary_beside(&path)?;
            let mut out = BufWriter::with_capacity(BUFFER, temporary.as_file());
            fill(&mut out)?;
            out.flush()?;
            drop(out);
            temporary.as_file().sync_all()?;
            let persisted = if self.overwrite {
                temporary.persist(&path)
            } else {
                // Somebody may have been faster.
                temporary.persist_noclobber(&path)
            };
            persisted.map(drop).map_err(|error| error.error)
        };
        attempt().map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => OutputError::Exists { path: path.clone() },
            _ => OutputError::write(&path)(error),
        })
    }
}

/// Bytes that are gathered before they are written.
const BUFFER: usize = 1 << 18;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn existing_files_are_replaced_only_on_request() {
        let root = tempfile::tempdir().unwrap();
        let place = root.path().join("a/b");
        let folder = ExportFolder::new(&place, false);
        let names = ["x.obj".to_owned(), "y.obj".to_owned()];
        folder.begin(&names).unwrap();
        folder.write("x.obj", |out| out.write_all(b"1")).unwrap();
        let error = folder.begin(&names).unwrap_err();
        assert!(matches!(&error, OutputError::Exists { path } if path.ends_with("x.obj")));
        let error = folder
            .write("x.obj", |out| out.write_all(b"2"))
            .unwrap_err();
        assert!(matches!(error, OutputError::Exists { .. }), "{error}");
        let over = ExportFolder::new(&place, true);
        over.begin(&names).unwrap();
        over.write("x.obj", |out| out.write_all(b"3")).unwrap();
        assert_eq!(fs::read(place.join("x.obj")).unwrap(), b"3");
        // A write that fails leaves nothing behind, and the old file as it was.
        let error = over.write("x.obj", |_| Err(io::ErrorKind::StorageFull.into()));
        assert!(matches!(error, Err(OutputError::Write { .. })));
        assert_eq!(fs::read_dir(&place).unwrap().count(), 1);
        assert_eq!(fs::read(place.join("x.obj")).unwrap(), b"3");
        let file = ExportFolder::new(place.join("x.obj"), true);
        let error = file.begin(&names).unwrap_err();
        assert!(
            matches!(error, OutputError::NotADirectory { .. }),
            "{error}"
        );
    }
}
