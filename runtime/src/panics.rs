//! Panics that become errors: of tasks, and of what their authors wrote for the wire.

use std::any::Any;
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};

thread_local! {
    /// How many catches this thread is inside of.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// Whether a panic of this thread would become an error of the runtime, as one of a task becomes an
/// error of its join. For panic hooks: any other panic on a rank should end the job.
#[must_use]
pub fn panic_is_caught() -> bool {
    DEPTH.get() > 0
}

/// Runs what a user wrote where a panic must not end the rank; the error is its payload.
pub(crate) fn catch<T>(run: impl FnOnce() -> T) -> Result<T, Box<dyn Any + Send>> {
    DEPTH.set(DEPTH.get() + 1);
    let outcome = panic::catch_unwind(AssertUnwindSafe(run));
    // Coroutines of one thread may come here in another order than they left: counts do not mind.
    DEPTH.set(DEPTH.get() - 1);
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_caught_inside_and_only_there() {
        assert!(!panic_is_caught());
        let inner = catch(|| {
            let deeper = catch(panic_is_caught);
            assert!(panic_is_caught());
            deeper.is_ok_and(|caught| caught)
        });
        assert!(matches!(inner, Ok(true)));
        assert!(catch(|| panic!("on purpose")).is_err());
        assert!(!panic_is_caught());
    }
}
