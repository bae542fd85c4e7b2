//! Signals that end a run in order: after its step (several ranks: or the next one), with a checkpoint. Ctrl-C twice ends it at once.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGINT, SIGTERM, SIGUSR1};
use signal_hook::flag;
use weftwork::run::Stop;

/// The exit code of a process that Ctrl-C ended, as shells have it.
const INTERRUPTED: i32 = 130;

/// Lets signals ask `stop`: SIGTERM, SIGINT, and SIGUSR1, which MPI launchers pass on.
pub(crate) fn ask(stop: &Stop) -> io::Result<()> {
    let again = Arc::new(AtomicBool::new(false));
    // Handlers run in the order in which they were made: a Ctrl-C is the second one if this is set already.
    flag::register_conditional_shutdown(SIGINT, INTERRUPTED, Arc::clone(&again))?;
    flag::register(SIGINT, again)?;
    for signal in [SIGINT, SIGTERM, SIGUSR1] {
        let number = usize::try_from(signal).unwrap_or_default();
        flag::register_usize(signal, stop.signal(), number)?;
    }
    Ok(())
}
