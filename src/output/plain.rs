//! Files that are neither links nor anything else than files: only these are read, written or
//! removed as a run's own.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::Path;

/// Whether a path leads to something other than a file, and to what. `None` also if nothing is
/// there.
pub(super) fn is_other(path: &Path) -> io::Result<Option<&'static str>> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_file() => Ok(None),
        Ok(found) if found.is_symlink() => Ok(Some("it is a link")),
        Ok(found) if found.is_dir() => Ok(Some("it is a directory")),
        Ok(_) => Ok(Some("it is no plain file")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Opens a file. A link is not followed, and a pipe not waited for.
pub(super) fn open_plain(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    if let Some(what) = is_other(path)? {
        return Err(io::Error::other(what));
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;

        // For a link that comes between the look and this.
        let flags = rustix::fs::OFlags::NOFOLLOW.bits();
        options.custom_flags(i32::try_from(flags).unwrap_or_default());
    }
    options.open(path)
}

/// Reads a file; `None` if there is none.
pub(super) fn read_plain(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match open_plain(File::options().read(true), path) {
        Ok(mut file) => {
            let mut bytes = Vec::new();
            io::Read::read_to_end(&mut file, &mut bytes)?;
            Ok(Some(bytes))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
