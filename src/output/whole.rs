//! Files that appear whole: written under a temporary name beside their place, synced, then renamed
//! into it.
//!
//! Temporary files are those of [`weft_io::temporary`]: nothing that is there is written to, and no
//! link that somebody has put there is followed.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use tempfile::NamedTempFile;
use weft_io::{folder_of, temporary, temporary_beside};

use super::OutputError;

/// Writes a file that somebody has named: under a temporary name beside it, which is then renamed
/// into place.
///
/// A link stays one, and what it leads to is replaced. A pipe, `/dev/null` or another place that is
/// no file is written to and stays what it is.
///
/// # Errors
/// [`OutputError::Write`] naming the file. An older file of that name is still there then.
pub fn write_whole(
    path: &Path,
    fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), OutputError> {
    let place = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let attempt = || {
        if fs::metadata(&place).is_ok_and(|there| !there.is_file() && !there.is_dir()) {
            let mut through = BufWriter::new(File::options().write(true).open(&place)?);
            fill(&mut through)?;
            return through.flush();
        }
        fill_and_rename(temporary_beside(&place)?, &place, fill).map(drop)
    };
    attempt().map_err(OutputError::write(path))
}

/// Writes a temporary file whose name begins so and renames it to `place`, where it takes the place
/// of a file or a link. The result is the file, open at its end. On failure the temporary file is
/// removed.
pub(super) fn replace(
    place: &Path,
    prefix: &str,
    fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<File> {
    fill_and_rename(temporary(folder_of(place), prefix)?, place, fill)
}

fn fill_and_rename(
    temporary: NamedTempFile,
    place: &Path,
    fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<File> {
    let mut out = BufWriter::new(temporary.as_file());
    fill(&mut out)?;
    out.flush()?;
    drop(out);
    temporary.as_file().sync_all()?;
    temporary.persist(place).map_err(|error| error.error)
}

/// Brings the names in a folder to the disk. A file system that does not sync folders is no error.
pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    match File::open(folder)?.sync_all() {
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported
            ) =>
        {
            Ok(())
        }
        synced => synced,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A page that is asked for in `/dev/stdout`, or behind a link, is not to take the place of
    /// that.
    #[cfg(target_os = "linux")]
    #[test]
    fn pipes_and_devices_are_written_to_and_a_link_stays_one() {
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

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_an_error_naming_the_file() {
        let error = write_whole("/dev/full".as_ref(), |out| out.write_all(&[0; 9])).unwrap_err();
        let OutputError::Write { path, source } = error else {
            panic!("{error}")
        };
        assert_eq!(path, Path::new("/dev/full"));
        assert_eq!(source.kind(), io::ErrorKind::StorageFull);
    }

    /// The temporary name of an earlier program, made to lead elsewhere, is not used any more.
    #[cfg(unix)]
    #[test]
    fn a_temporary_file_is_new_and_has_another_name_each_time() {
        let root = tempfile::tempdir().unwrap();
        let victim = root.path().join("victim");
        fs::write(&victim, "mine").unwrap();
        std::os::unix::fs::symlink(&victim, root.path().join(".page.html.partial")).unwrap();
        let mut names = Vec::new();
        for _ in 0..2 {
            write_whole(&root.path().join("page.html"), |out| {
                let entries = fs::read_dir(root.path())?;
                for entry in entries {
                    let name = entry?.file_name().into_string().unwrap();
                    if name.starts_with(".page.html.") && name != ".page.html.partial" {
                        names.push(name);
                    }
                }
                out.write_all(b"new")
            })
            .unwrap();
        }
        assert_eq!(names.len(), 2, "{names:?}");
        assert_ne!(names[0], names[1]);
        assert_eq!(fs::read_to_string(victim).unwrap(), "mine");
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 3);
    }

    /// Others may read what is written, as far as the process allows it.
    #[cfg(unix)]
    #[test]
    fn a_file_has_the_permissions_of_any_new_one() {
        use std::os::unix::fs::MetadataExt as _;

        let root = tempfile::tempdir().unwrap();
        let (whole, plain) = (root.path().join("whole"), root.path().join("plain"));
        write_whole(&whole, |out| out.write_all(b"x")).unwrap();
        fs::write(&plain, "x").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().mode();
        assert_eq!(mode(&whole), mode(&plain));
    }
}
