//! Whose threads the workers of a scope are.

use std::io;

use crate::sync;

/// A worker beside the main thread: its name, and what it does until the scope is over.
pub type Hired<'w> = (String, Box<dyn FnOnce() + Send + 'w>);

/// Threads for the workers of a [scope](crate::scope) that are not its main thread.
///
/// Programs that open a scope many times a second give it threads that they have anyway: to start some takes as long as hundreds of
/// small tasks.
pub trait Crew {
    /// Runs all of `workers` at once, each on a thread of its own, and `main` on this one. Returns when all have returned, as
    /// the workers do soon after `main`; a panic in one of them, or in `main`, goes on here.
    ///
    /// # Errors
    /// There are no threads for some of them. `main` has not run then, and is dropped, by which workers end.
    fn work<'w>(&self, workers: Vec<Hired<'w>>, main: Box<dyn FnOnce() + 'w>) -> io::Result<()>;
}

/// Threads that begin and end with the scope.
#[derive(Clone, Copy, Debug, Default)]
pub struct Started;

impl Crew for Started {
    fn work<'w>(&self, workers: Vec<Hired<'w>>, main: Box<dyn FnOnce() + 'w>) -> io::Result<()> {
        sync::scope(move |threads| {
            for (name, work) in workers {
                sync::spawn(threads, name, work)?;
            }
            main();
            Ok(())
        })
    }
}
