//! Which build of the program this is: the promise of equal states is one about a single binary.

use std::fmt;
use std::fs::File;
use std::io;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// Digits of a commit or a checksum that are told to people.
const TOLD: usize = 12;

/// A build of the program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BuildId {
    /// Its version.
    pub version: String,
    /// The commit that it was built from; only release builds know theirs.
    #[serde(default)]
    pub commit: Option<String>,
    /// SHA-256 of the executable file, in hexadecimal. It says exactly whether two builds are the
    /// same.
    #[serde(default)]
    pub executable: Option<String>,
}

impl BuildId {
    /// The build that is running. Its executable is read once in a process.
    #[must_use]
    pub fn this() -> &'static Self {
        static THIS: OnceLock<BuildId> = OnceLock::new();
        THIS.get_or_init(|| Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit: option_env!("WEFT_COMMIT").map(str::to_owned),
            executable: executable().ok(),
        })
    }

    /// Whether this is surely the same build as another.
    #[must_use]
    pub fn is(&self, other: &Self) -> bool {
        self.executable.is_some() && self.executable == other.executable
    }
}

impl fmt::Display for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let told = |text: &str| text.chars().take(TOLD).collect::<String>();
        write!(f, "weft {}", self.version.escape_debug())?;
        if let Some(commit) = &self.commit {
            write!(f, ", commit {}", told(commit).escape_debug())?;
        }
        match &self.executable {
            Some(sum) => write!(f, ", executable {}", told(sum).escape_debug()),
            None => f.write_str(", of an executable that is not known"),
        }
    }
}

/// The checksum of the file that this process runs, also if another one has its name by now.
fn executable() -> io::Result<String> {
    let file = File::open("/proc/self/exe").or_else(|_| File::open(std::env::current_exe()?))?;
    let mut hasher = Sha256::new();
    io::copy(
        &mut io::BufReader::with_capacity(1 << 16, file),
        &mut Summing(&mut hasher),
    )?;
    let digest = hasher.finalize();
    Ok(digest.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Sums up what is written to it.
struct Summing<'h>(&'h mut Sha256);

impl io::Write for Summing<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_is_told_by_its_executable() {
        let this = BuildId::this();
        assert!(this.is(this) && this.executable.as_ref().unwrap().len() == 64);
        let other = BuildId {
            executable: Some("0".repeat(64)),
            ..this.clone()
        };
        assert!(!this.is(&other));
        // What is not known may be another.
        let unknown = BuildId {
            executable: None,
            ..this.clone()
        };
        assert!(!unknown.is(&unknown) && unknown.to_string().contains("not known"));
        let told = BuildId {
            commit: Some("0123456789abcdef".to_owned()),
            ..other
        };
        let version = env!("CARGO_PKG_VERSION");
        assert_eq!(
            told.to_string(),
            format!("weft {version}, commit 0123456789ab, executable 000000000000")
        );
    }
}
