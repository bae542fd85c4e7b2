//! Signals that end a run in order: after its step (several ranks: or the next one), with a
//! checkpoint. Ctrl-C twice ends it at once.

use std::fs;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::flag;
use weftwork::run::Stop;

/// The exit code of a process that Ctrl-C ended, as shells have it.
const INTERRUPTED: i32 = 130;

/// Lets signals ask `stop`: SIGTERM, SIGINT, SIGUSR1, which MPI launchers pass on, and SIGHUP,
/// which a terminal sends that is closed, unless the process was started to outlive that, as
/// `nohup` does.
pub(crate) fn ask(stop: &Stop) -> io::Result<()> {
    let again = Arc::new(AtomicBool::new(false));
    // Handlers run in the order in which they were made: a Ctrl-C is the second one if this is set
    // already.
    flag::register_conditional_shutdown(SIGINT, INTERRUPTED, Arc::clone(&again))?;
    flag::register(SIGINT, again)?;
    let hangup = (!is_ignored(SIGHUP)).then_some(SIGHUP);
    for signal in [SIGINT, SIGTERM, SIGUSR1].into_iter().chain(hangup) {
        let number = usize::try_from(signal).unwrap_or_default();
        flag::register_usize(signal, stop.signal(), number)?;
    }
    Ok(())
}

/// Whether this process ignores a signal, where the system tells, which Linux does.
fn is_ignored(signal: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    ignores(&status, signal)
}

/// Whether a process with this status ignores a signal.
fn ignores(status: &str, signal: i32) -> bool {
    let mut lines = status.lines();
    let mask = lines.find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.unwrap_or(0) >> (signal - 1) & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_is_ignored_if_its_bit_is_set() {
        let status = "Name:\tweft\nSigBlk:\tffffffffffffffff\nSigIgn:\t0000000000001001\nSigCgt:\tffffffffffffffff\n";
        assert!(ignores(status, SIGHUP));
        assert!(!ignores(status, SIGTERM) && !ignores(status, SIGINT));
        assert!(!ignores("", SIGHUP) && !ignores("SigIgn:\tnone", SIGHUP));
    }
}
