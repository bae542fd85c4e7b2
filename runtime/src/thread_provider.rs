//! The source of the threads of a scope's workers.

use std::io;

use crate::sync;

/// A worker beside the main thread of a scope, for a [`ThreadProvider`] to run.
pub struct WorkerThread<'w> {
    /// The name for the thread, such as `worker 1 of rank 0`.
    pub name: String,
    /// The function that the thread runs until the scope is over.
    pub run: Box<dyn FnOnce() + Send + 'w>,
}

impl std::fmt::Debug for WorkerThread<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.name)
    }
}

/// A source of threads for the workers of a [scope](crate::scope) that are not its main thread.
///
/// To start a thread takes as long as hundreds of small tasks. A program that opens a scope many
/// times a second therefore implements this trait for threads that it keeps, and calls
/// [`scope_on`](crate::scope_on).
pub trait ThreadProvider {
    /// Runs all of `workers` at once, each on a thread of its own, and `main` on the calling
    /// thread.
    ///
    /// It returns when all have returned, as the workers do soon after `main`. A panic in one of
    /// them, or in `main`, is resumed on the calling thread.
    ///
    /// # Errors
    /// There are no threads for some of the workers. `main` has not run then, and is dropped, which
    /// ends the workers that were started.
    fn run<'w>(
        &self,
        workers: Vec<WorkerThread<'w>>,
        main: Box<dyn FnOnce() + 'w>,
    ) -> io::Result<()>;
}

/// The provider that starts threads with the scope and ends them with it.
#[derive(Clone, Copy, Debug, Default)]
pub struct ScopedThreads;

impl ThreadProvider for ScopedThreads {
    fn run<'w>(
        &self,
        workers: Vec<WorkerThread<'w>>,
        main: Box<dyn FnOnce() + 'w>,
    ) -> io::Result<()> {
        sync::scope(move |threads| {
            for worker in workers {
                sync::spawn(threads, worker.name, worker.run)?;
            }
            main();
            Ok(())
        })
    }
}
