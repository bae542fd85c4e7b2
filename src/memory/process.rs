//! The memory that a process has had and has, so that users can see what a run needs and what more
//! ranks save.
//!
//! Linux tells it in `/proc/self/status` (proc(5)). It counts all of the process: ranks that are
//! threads share one.

/// The largest resident set of this process so far, in bytes; `None` where the system does not
/// tell.
#[must_use]
pub fn peak() -> Option<u64> {
    in_status(&status()?, "VmHWM:")
}

/// The resident set of this process now, in bytes; `None` where the system does not tell.
#[must_use]
pub fn resident() -> Option<u64> {
    in_status(&status()?, "VmRSS:")
}

fn status() -> Option<String> {
    std::fs::read_to_string("/proc/self/status").ok()
}

/// A number of bytes that the text of a file `status` tells.
pub(super) fn in_status(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kilobytes = line.trim().strip_suffix(" kB")?;
    kilobytes.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_is_read_from_the_line_of_linux() {
        let status = "Name:\tweft\nVmPeak:\t  9999 kB\nVmHWM:\t   165488 kB\nVmRSS:\t 1 kB\n";
        assert_eq!(in_status(status, "VmHWM:"), Some(165_488 * 1024));
        assert_eq!(in_status(status, "VmRSS:"), Some(1024));
        for other in [
            "",
            "VmHWM: 1 MB",
            "VmHWM: x kB",
            "VmHWM: 99999999999999999999 kB",
        ] {
            assert_eq!(in_status(other, "VmHWM:"), None, "{other}");
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn memory_that_is_used_raises_the_peak() {
        let before = peak().unwrap();
        let used = vec![1u8; 64 << 20];
        let sum: u64 = used.iter().map(|&byte| u64::from(byte)).sum();
        assert_eq!(sum, 64 << 20);
        assert!(peak().unwrap() >= before.max(64 << 20));
        assert!(resident().unwrap() >= 64 << 20);
    }
}
