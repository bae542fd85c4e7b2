//! Temporary files beside the files that they are to become.
//!
//! They are made exclusively and under names that nobody can predict. So nothing that is there is
//! written to, and no link that somebody has put there is followed.

use std::fs::File;
use std::io;
use std::path::Path;

use tempfile::{Builder, NamedTempFile};

/// Ends the names of temporary files.
pub const PARTIAL: &str = ".partial";

/// Makes a temporary file beside a file that it is to become, with the name of that in its own. It
/// is removed when it is dropped.
///
/// # Errors
/// The system cannot make a file there, or has no random bytes.
pub fn temporary_beside(path: &Path) -> io::Result<NamedTempFile> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let prefix = format!(".{name}.{}-", unpredictable()?);
    temporary(folder_of(path), &prefix)
}

/// Makes a temporary file in a folder whose name begins so. It is removed when it is dropped.
///
/// # Errors
/// The system cannot make a file there.
pub fn temporary(folder: &Path, prefix: &str) -> io::Result<NamedTempFile> {
    let mut builder = Builder::new();
    builder.prefix(prefix).suffix(PARTIAL);
    // Appending, so that a file which has been cut to its whole lines goes on behind them.
    builder.make_in(folder, |path| {
        File::options().append(true).create_new(true).open(path)
    })
}

/// Makes sixteen hexadecimal digits from the system's source of randomness.
///
/// # Errors
/// The system has no random bytes.
pub fn unpredictable() -> io::Result<String> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(io::Error::from)?;
    Ok(format!("{:016x}", u64::from_le_bytes(bytes)))
}

/// Finds the folder of a file, also of one that is named without one.
#[must_use]
pub fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write as _;

    use super::*;

    #[test]
    fn a_temporary_file_is_beside_the_other_one_and_goes_when_it_is_dropped() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("a.csv");
        let (mut first, second) = (
            temporary_beside(&path).unwrap(),
            temporary_beside(&path).unwrap(),
        );
        for file in [&first, &second] {
            assert_eq!(file.path().parent(), Some(root.path()));
            let name = file.path().file_name().unwrap().to_str().unwrap();
            assert!(
                name.starts_with(".a.csv.") && name.ends_with(PARTIAL),
                "{name}"
            );
        }
        assert_ne!(first.path(), second.path());
        first.write_all(b"new").unwrap();
        first.persist(&path).unwrap();
        drop(second);
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_file_without_a_folder_is_in_this_one() {
        assert_eq!(folder_of(Path::new("a")), Path::new("."));
        assert_eq!(folder_of(Path::new("a/b")), Path::new("a"));
    }
}
