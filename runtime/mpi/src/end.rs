//! Ending together: a job has one fate, one message about it, and one exit code.
//!
//! A rank that fails ends the job for all, within a second, wherever the others are: MPI's own
//! abort kills them and hands the code to the launcher. The rest of that second is spent so that
//! only one rank says why. A rank that fails tells rank 0 first, and speaks when rank 0 says so; if
//! rank 0 does not answer, because it computes, or is gone, it speaks after a while, lower ranks
//! sooner than higher ones. Ranks that only learn of the end are silent, and wait to be killed.
//!
//! A panic on any thread ends the job the same way, unless it is one that the runtime turns into an
//! error of a join. Unwinding would not do: the rank would leave, or wait in MPI's finalisation,
//! and the others hang.

use std::cell::RefCell;
use std::io::{self, Write as _};
use std::panic::{self, PanicHookInfo};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use mpi::traits::Communicator as _;
use weft_runtime::comm::Rank;
use weft_runtime::panic_is_caught;

use crate::comm::{Lanes, MpiComm, kind};
use crate::raw::{self, Sending};
use crate::start::Mpi;

/// Exit code of a panic: an error in the program.
pub const INTERNAL: u8 = 101;
/// How long a rank that failed waits for rank 0's leave to say so.
const PATIENCE: Duration = Duration::from_millis(300);
/// How much longer each higher rank waits, up to [`MOST_TURNS`] of them.
const TURN: Duration = Duration::from_millis(10);
const MOST_TURNS: u32 = 30;
/// How long a rank that was told of the end waits to be killed before it ends the job itself.
const GRACE: Duration = Duration::from_secs(3);
/// Longest text about a failure that travels, in bytes.
const LONGEST: usize = 1000;

/// The reason why a rank cannot go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The exit code for the launcher.
    pub code: u8,
    /// A message for people: the fault, and what to do about it.
    pub message: String,
    /// Whether this only says that another rank failed; that one says why.
    pub echo: bool,
}

/// The facts about the rank that a panic hook needs.
struct Place {
    rank: Rank,
    host: String,
    main: ThreadId,
}

static PLACE: OnceLock<Place> = OnceLock::new();
/// Whether a thread other than the main one has panicked, and what it said.
static PANICKED: AtomicBool = AtomicBool::new(false);
static PANIC: Mutex<Option<String>> = Mutex::new(None);

thread_local! {
    /// The lanes of the job that runs, on the main thread.
    static LANES: RefCell<Option<Rc<Lanes>>> = const { RefCell::new(None) };
}

/// Makes panics end the job, from now on.
pub(crate) fn install_hook(rank: Rank, host: &str) {
    let place = Place {
        rank,
        host: host.to_owned(),
        main: thread::current().id(),
    };
    if PLACE.set(place).is_err() {
        return;
    }
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if mpi::is_finalized() {
            usual(info);
        } else if panic_is_caught() {
            // It comes out as an error, with its text; where it was is for who looks for it.
            if std::env::var_os("RUST_BACKTRACE").is_some_and(|value| value != "0") {
                usual(info);
            }
        } else {
            end_in_panic(info);
        }
    }));
}

/// Lets the panic hook of this thread use a job's lanes.
pub(crate) fn watch_over(lanes: &Rc<Lanes>) {
    LANES.with_borrow_mut(|slot| *slot = Some(Rc::clone(lanes)));
}

pub(crate) fn watch_no_more() {
    LANES.with_borrow_mut(|slot| *slot = None);
}

/// Ends the job if a thread of this rank has panicked. Called on the main thread.
pub(crate) fn answer_panics(mpi: &Mpi, lanes: &Lanes) {
    if PANICKED.load(Ordering::Relaxed) {
        let said = PANIC
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
            .unwrap_or_else(|| "a thread panicked".to_owned());
        let failure = Failure {
            code: INTERNAL,
            message: said,
            echo: false,
        };
        if ask_leave(mpi.rank(), lanes, &failure) {
            say(mpi.rank(), mpi.host(), &failure.message);
        }
        raw::end_job(i32::from(failure.code));
    }
}

/// Ends the job for a rank that cannot go on. `record` is called on rank 0 with the failure that
/// counts.
pub(crate) fn end(
    mpi: &Mpi,
    mut comm: MpiComm<'_>,
    own: Failure,
    record: impl FnOnce(&Failure),
) -> ! {
    let rank = mpi.rank();
    if !own.echo {
        // The body may have failed without a word.
        weft_runtime::comm::Comm::abort(&mut comm, &own.message);
    }
    if rank == Rank(0) {
        if !own.echo {
            hush(comm.lanes(), rank);
            record(&own);
            say(rank, mpi.host(), &own.message);
        } else if let Some((speaker, failure)) = first_verdict(mpi, &mut comm) {
            hush(comm.lanes(), speaker);
            record(&failure);
            signal(comm.lanes(), speaker.0 as i32, kind::GO);
            wait_for_the_end(mpi, &mut comm);
            raw::end_job(i32::from(failure.code));
        } else {
            record(&own);
            say(rank, mpi.host(), &own.message);
        }
    } else if own.echo {
        // A launcher of many hosts, or a busy one, may need longer to kill it than it waits.
        if !wait_for_the_end(mpi, &mut comm) {
            say(rank, mpi.host(), &own.message);
        }
    } else if ask_leave(rank, comm.lanes(), &own) {
        say(rank, mpi.host(), &own.message);
    }
    raw::end_job(i32::from(own.code))
}

/// The verdict of another rank, if it comes in time.
fn first_verdict(mpi: &Mpi, comm: &mut MpiComm<'_>) -> Option<(Rank, Failure)> {
    let begin = mpi.now();
    while comm.verdicts.is_empty() && mpi.now() - begin < 2 * PATIENCE {
        comm.look_round();
    }
    comm.verdicts.pop_front()
}

/// Waits until MPI kills this rank, or long enough to know that it does not. Returns whether rank 0
/// has said meanwhile that another rank gives its verdict.
fn wait_for_the_end(mpi: &Mpi, comm: &mut MpiComm<'_>) -> bool {
    let begin = mpi.now();
    let mut hushed = false;
    while mpi.now() - begin < GRACE {
        comm.look_round();
        hushed |= comm.lanes().bulk.take_signal(0, kind::HUSH);
    }
    hushed
}

/// Tells rank 0 why the job ends, and returns when it is this rank's turn to say so; false if
/// another rank has said something, and this one should have been killed by now. Main thread only.
#[expect(
    clippy::disallowed_methods,
    reason = "a driver reads the clock and sleeps"
)]
fn ask_leave(rank: Rank, lanes: &Lanes, failure: &Failure) -> bool {
    if rank == Rank(0) {
        hush(lanes, rank);
        return true;
    }
    let verdict = write_verdict(failure);
    // Whether it is done or not, its bytes are left alone: the process ends.
    std::mem::forget(Sending::start(&lanes.turns, 0, kind::VERDICT, verdict));
    let begin = Instant::now();
    let mut patience = PATIENCE + rank.0.min(MOST_TURNS) * TURN;
    let mut silent = false;
    while begin.elapsed() < patience {
        if lanes.bulk.take_signal(0, kind::GO) {
            return true;
        }
        if lanes.bulk.take_signal(0, kind::HUSH) {
            (silent, patience) = (true, GRACE);
        }
        thread::sleep(Duration::from_micros(200));
    }
    !silent
}

/// Rank 0 tells all ranks but itself and one that they need not speak.
fn hush(lanes: &Lanes, speaker: Rank) {
    for to in 1..lanes.bulk.comm().size() {
        if to != speaker.0 as i32 {
            signal(lanes, to, kind::HUSH);
        }
    }
}

/// Sends a message of no bytes, without looking what becomes of it.
fn signal(lanes: &Lanes, to: i32, kind: i32) {
    std::mem::forget(Sending::start(&lanes.bulk, to, kind, Vec::new()));
}

/// The hook's part for a panic that nobody catches.
#[expect(clippy::disallowed_methods, reason = "a driver sleeps")]
fn end_in_panic(info: &PanicHookInfo<'_>) {
    let Some(place) = PLACE.get() else { return };
    let said = describe(info);
    if thread::current().id() == place.main {
        let lanes = LANES.with(|slot| slot.try_borrow().ok().and_then(|slot| slot.clone()));
        let failure = Failure {
            code: INTERNAL,
            message: said,
            echo: false,
        };
        if lanes.is_none_or(|lanes| ask_leave(place.rank, &lanes, &failure)) {
            say(place.rank, &place.host, &failure.message);
        }
    } else {
        PANIC
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get_or_insert_with(|| said.clone());
        PANICKED.store(true, Ordering::Release);
        // The main thread ends the job when it next looks for messages. If it does not:
        thread::sleep(PATIENCE);
        let taken = PANIC
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
            .is_none();
        if taken {
            thread::sleep(2 * PATIENCE);
        } else {
            say(place.rank, &place.host, &said);
        }
    }
    raw::end_job(i32::from(INTERNAL));
}

/// A panic in a line.
fn describe(info: &PanicHookInfo<'_>) -> String {
    let payload = info.payload();
    let text = payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".to_owned());
    let thread = thread::current();
    let name = thread.name().unwrap_or("unnamed");
    let place = info
        .location()
        .map_or_else(String::new, |place| format!(" at {place}"));
    format!("thread `{name}` panicked{place}: {text}; this is an error in the program")
}

/// Says on standard error what went wrong, and where.
pub(crate) fn say(rank: Rank, host: &str, message: &str) {
    // There is nobody to tell that this could not be told.
    let line = format!("error: rank {} on {host}: {message}\n", rank.0);
    drop(io::stderr().lock().write_all(line.as_bytes()));
}

/// Cuts a text to what travels.
pub(crate) fn shorten(text: &mut String) {
    if text.len() > LONGEST {
        let end = (0..=LONGEST - 4)
            .rev()
            .find(|&at| text.is_char_boundary(at));
        text.truncate(end.unwrap_or(0));
        text.push('…');
    }
}

fn write_verdict(failure: &Failure) -> Vec<u8> {
    let mut text = failure.message.clone();
    shorten(&mut text);
    let mut bytes = vec![failure.code];
    bytes.extend_from_slice(text.as_bytes());
    bytes
}

pub(crate) fn read_verdict(bytes: &[u8]) -> Failure {
    let (code, text) = bytes
        .split_first()
        .map_or((INTERNAL, &[][..]), |(&code, text)| (code, text));
    Failure {
        code,
        message: String::from_utf8_lossy(text).into_owned(),
        echo: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_reads_back_and_is_cut_between_letters() {
        let failure = Failure {
            code: 4,
            message: "step 3: not finite".to_owned(),
            echo: false,
        };
        assert_eq!(read_verdict(&write_verdict(&failure)), failure);
        let long = Failure {
            message: "ä".repeat(LONGEST),
            ..failure
        };
        let back = read_verdict(&write_verdict(&long));
        assert!(back.message.len() <= LONGEST && back.message.ends_with("ä…"));
        assert_eq!(read_verdict(&[]).code, INTERNAL);
    }
}
