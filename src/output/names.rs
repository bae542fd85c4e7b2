//! Names of the files of a run that several parts know.

/// The name of the run's record.
pub(super) const RECORD: &str = "run.json";

/// The step of a checkpoint with this file name, if it is that of one.
pub(super) fn step_of(name: &str) -> Option<u64> {
    let digits = name.strip_prefix("state.")?.strip_suffix(".ckpt")?;
    let plain = digits.bytes().all(|digit| digit.is_ascii_digit());
    digits.parse().ok().filter(|_| plain)
}
