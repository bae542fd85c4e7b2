//! Channels, flags, a counter and threads, as a rank's main thread and its workers share them.
//!
//! They are crossbeam's and std's. In tests built with `--cfg shuttle` they are shuttle's, which
//! runs the same code in one schedule after another of its own choice; see `schedules.rs`.

pub(crate) use self::kind::{
    AtomicBool, AtomicU64, Mutex, Ordering, Receiver, Sender, let_others, recv_soon, scope, spawn,
    unbounded,
};

#[cfg(not(all(test, shuttle)))]
mod kind {
    use std::io;
    use std::thread::{Builder, Scope};

    pub(crate) use std::sync::Mutex;
    pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    pub(crate) use std::thread::scope;

    pub(crate) use crossbeam_channel::{Receiver, Sender, unbounded};
    use crossbeam_channel::{RecvError, TryRecvError};

    /// How often an empty channel is looked at before the thread lets others have its core between
    /// looks: for some tens of microseconds, about what it takes to be woken.
    const SPINS: u32 = 500;
    /// How often it does that before it sleeps: for some hundreds of microseconds. To wake it costs
    /// the other side as much as a task.
    const YIELDS: u32 = 1000;

    /// Receives the next value, if it comes soon, without sleeping.
    pub(crate) fn recv_soon<T>(receiver: &Receiver<T>) -> Result<T, RecvError> {
        for look in 0..SPINS + YIELDS {
            match receiver.try_recv() {
                Ok(value) => return Ok(value),
                Err(TryRecvError::Empty) if look < SPINS => std::hint::spin_loop(),
                Err(TryRecvError::Empty) => let_others(),
                Err(TryRecvError::Disconnected) => return Err(RecvError),
            }
        }
        receiver.recv()
    }

    /// Lets other threads have this one's core, if any wants it.
    pub(crate) fn let_others() {
        std::thread::yield_now();
    }

    /// Starts a thread with a name.
    pub(crate) fn spawn<'scope>(
        threads: &'scope Scope<'scope, '_>,
        name: String,
        work: impl FnOnce() + Send + 'scope,
    ) -> io::Result<()> {
        let named = Builder::new().name(name);
        named.spawn_scoped(threads, work).map(drop)
    }
}

#[cfg(all(test, shuttle))]
mod kind {
    use std::io;
    use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

    pub(crate) use shuttle::sync::Mutex;
    pub(crate) use shuttle::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    use std::sync::mpsc::RecvError;

    pub(crate) use shuttle::sync::mpsc::{Receiver, Sender, channel as unbounded};
    use shuttle::thread::Scope;

    /// Shuttle has no time, and so no soon.
    pub(crate) fn recv_soon<T>(receiver: &Receiver<T>) -> Result<T, RecvError> {
        receiver.recv()
    }

    /// Lets other threads run.
    pub(crate) fn let_others() {
        shuttle::thread::yield_now();
    }

    /// Shuttle's own does not wait for the threads when `body` panics.
    pub(crate) fn scope<'env, R>(
        body: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> R,
    ) -> R {
        let caught =
            shuttle::thread::scope(|threads| catch_unwind(AssertUnwindSafe(|| body(threads))));
        caught.unwrap_or_else(|payload| resume_unwind(payload))
    }

    pub(crate) fn spawn<'scope>(
        threads: &'scope Scope<'scope, '_>,
        _name: String,
        work: impl FnOnce() + Send + 'scope,
    ) -> io::Result<()> {
        threads.spawn(work);
        Ok(())
    }
}
