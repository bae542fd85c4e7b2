//! How much memory a user lets a process have.

use std::env;
use std::fmt;
use std::str::FromStr;

/// The environment variable that says it where there is no option: for Python, and for commands
/// without one.
pub const VARIABLE: &str = "WEFT_MEMORY";

/// How much memory a process may have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Limit {
    /// As much as the system has left for it, if it tells.
    #[default]
    Left,
    /// As much as it takes: nothing is refused.
    Any,
    /// This number of bytes.
    Bytes(u64),
}

/// Words for a limit that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadLimit(String);

impl fmt::Display for BadLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} is no amount of memory: give a number with MB, GB, MiB or GiB such as 500MB, or `any`, or `left`",
            self.0
        )
    }
}

impl std::error::Error for BadLimit {}

/// Units of memory, each with its bytes.
const UNITS: [(&str, f64); 8] = [
    ("KB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
    ("TB", 1e12),
    ("KIB", 1024.0),
    ("MIB", 1_048_576.0),
    ("GIB", 1_073_741_824.0),
    ("TIB", 1_099_511_627_776.0),
];

impl FromStr for Limit {
    type Err = BadLimit;

    fn from_str(text: &str) -> Result<Self, BadLimit> {
        let bad = || BadLimit(text.to_owned());
        match text.trim() {
            "any" => return Ok(Self::Any),
            "left" => return Ok(Self::Left),
            _ => {}
        }
        let upper = text.trim().to_ascii_uppercase();
        let unit = UNITS.iter().find_map(|(unit, bytes)| {
            let number = upper.strip_suffix(unit)?;
            Some((number.trim(), *bytes))
        });
        let (number, bytes) = unit.ok_or_else(bad)?;
        let plain = number.chars().all(|c| c.is_ascii_digit() || c == '.');
        let number: f64 = number.parse().map_err(|_| bad())?;
        let bytes = number * bytes;
        if plain && bytes >= 1.0 && bytes < u64::MAX as f64 {
            Ok(Self::Bytes(bytes as u64))
        } else {
            Err(bad())
        }
    }
}

impl Limit {
    /// The limit that the environment says; what is left, if it says none.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn of_environment() -> Result<Self, BadLimit> {
        match env::var(VARIABLE) {
            Ok(text) => text.parse(),
            Err(env::VarError::NotPresent) => Ok(Self::Left),
            Err(env::VarError::NotUnicode(text)) => {
                Err(BadLimit(text.to_string_lossy().into_owned()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_with_their_units_and_nothing_else_is() {
        for (text, limit) in [
            ("any", Limit::Any),
            ("left", Limit::Left),
            ("100MB", Limit::Bytes(100_000_000)),
            (" 1.5 GiB ", Limit::Bytes(3 << 29)),
            ("2tb", Limit::Bytes(2_000_000_000_000)),
        ] {
            assert_eq!(text.parse(), Ok(limit), "{text}");
        }
        for text in [
            "",
            "MB",
            "100",
            "-1MB",
            "0MB",
            "1e3MB",
            "infMB",
            "nanGB",
            "99999999999999TB",
            "1 XB",
        ] {
            let told = text.parse::<Limit>().unwrap_err().to_string();
            assert!(told.contains("500MB"), "{text}: {told}");
        }
    }
}
