//! The identity of the build that runs. The trajectory is promised for one binary, so ranks and
//! checkpoints are compared by the binary itself, and not by a version that a changed source could
//! share.
//!
//! Goes in: nothing but the file of the running executable. Comes out: its SHA-256, beside version
//! and commit, which are for people. Shared libraries that the executable loads are not looked at.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use thiserror::Error;
use weft_io::Show as _;

/// The executable of this process on Linux. It can also be opened after the file was replaced, as
/// by a new build.
const RUNNING: &str = "/proc/self/exe";
/// The file is read in pieces of this many bytes.
const PIECE: usize = 1 << 16;
/// The number of digits of a digest or a commit that are shown.
const SHOWN: usize = 16;

/// A build of the program, as it says of itself or as a file that it wrote says of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BuildIdentity {
    /// Version of the package.
    pub version: String,
    /// Commit of the source tree, which only release builds know.
    #[serde(default)]
    pub commit: Option<String>,
    /// SHA-256 of the executable file, in hexadecimal. It says exactly whether two builds are one.
    #[serde(default)]
    pub executable: Option<String>,
}

/// The running executable cannot be read, so that nobody knows which build it is.
#[derive(Debug, Error)]
#[error(
    "cannot read {}, the running program, to identify its build: {source}; give its users the right to read it",
    path.shown()
)]
pub struct UnknownBuild {
    /// The executable.
    pub path: PathBuf,
    /// The error of the system.
    pub source: io::Error,
}

impl BuildIdentity {
    /// The build that this process runs. The executable is read once in the life of a process.
    ///
    /// # Errors
    /// The executable cannot be read.
    pub fn of_this_process() -> Result<&'static Self, UnknownBuild> {
        static THIS: OnceLock<BuildIdentity> = OnceLock::new();
        if let Some(known) = THIS.get() {
            return Ok(known);
        }
        let path = if Path::new(RUNNING).exists() {
            PathBuf::from(RUNNING)
        } else {
            std::env::current_exe().map_err(|source| UnknownBuild {
                path: PathBuf::from(std::env::args_os().next().unwrap_or_default()),
                source,
            })?
        };
        match File::open(&path).and_then(digest) {
            Ok(sum) => Ok(THIS.get_or_init(|| Self::with(Some(sum)))),
            Err(source) => {
                // People know it by its own name.
                let path = std::env::current_exe().unwrap_or(path);
                Err(UnknownBuild { path, source })
            }
        }
    }

    /// The build that this process runs, without a digest where the executable cannot be read.
    #[must_use]
    pub(crate) fn as_far_as_known() -> Self {
        Self::of_this_process().map_or_else(|_| Self::with(None), Clone::clone)
    }

    fn with(executable: Option<String>) -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit: option_env!("WEFT_COMMIT").map(str::to_owned),
            executable,
        }
    }

    /// Whether this is surely the same build as another.
    #[must_use]
    pub fn is(&self, other: &Self) -> bool {
        self.executable.is_some() && self.executable == other.executable
    }
}

impl fmt::Display for BuildIdentity {
    /// Version, commit where it is known, and the first digits of the digest.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |text: &str| text.chars().take(SHOWN).collect::<String>();
        write!(f, "weft {}", self.version.escape_debug())?;
        if let Some(commit) = &self.commit {
            write!(f, ", commit {}", shown(commit).escape_debug())?;
        }
        match &self.executable {
            Some(sum) => write!(f, ", executable {}", shown(sum).escape_debug()),
            None => f.write_str(", of an unknown executable"),
        }
    }
}

/// SHA-256 of all bytes, in hexadecimal.
fn digest(mut from: impl Read) -> io::Result<String> {
    let mut digest = Sha256::new();
    let mut piece = vec![0; PIECE];
    loop {
        match from.read(&mut piece) {
            Ok(0) => break,
            Ok(length) => digest.update(&piece[..length]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let digest = digest.finalize();
    Ok(digest.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_build_is_the_digest_of_the_executable_file() {
        let this = BuildIdentity::of_this_process().unwrap();
        let file = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        assert_eq!(this.executable, Some(digest(&file[..]).unwrap()));
        assert_eq!(this.version, env!("CARGO_PKG_VERSION"));
        let longer = [&file[..], &[0]].concat();
        assert_ne!(this.executable, Some(digest(&longer[..]).unwrap()));
    }

    #[test]
    fn digests_are_those_of_fips_180() {
        let of = |bytes: &[u8]| digest(bytes).unwrap();
        assert!(of(b"").starts_with("e3b0c44298fc1c14"));
        assert!(of(b"abc").starts_with("ba7816bf8f01cfea"));
        let long = vec![b'a'; 1_000_000];
        assert!(of(&long).starts_with("cdc76e5c9914fb92"));
    }

    #[test]
    fn people_see_version_commit_and_the_first_digits() {
        let mut build = BuildIdentity {
            version: "1.2.3".to_owned(),
            commit: None,
            executable: Some("0123456789abcdef0123".to_owned()),
        };
        assert_eq!(build.to_string(), "weft 1.2.3, executable 0123456789abcdef");
        build.commit = Some("c0ffee".to_owned());
        assert_eq!(
            build.to_string(),
            "weft 1.2.3, commit c0ffee, executable 0123456789abcdef"
        );
    }

    #[test]
    fn builds_that_are_not_known_may_be_others() {
        let this = BuildIdentity::as_far_as_known();
        assert!(this.is(&this));
        let unknown = BuildIdentity {
            executable: None,
            ..this.clone()
        };
        assert!(!unknown.is(&unknown) && !this.is(&unknown));
        assert!(unknown.to_string().contains("unknown executable"));
    }
}
