//! Loops of the set-up over the threads of the pool that they are called in.
//!
//! A scene is set up before there are ranks, in a pool of as many threads as the run has
//! ([`on_threads`]). Everything here gives the result that one thread would: items are computed on
//! their own and kept in their order, and nothing is added up across them. Outside such a pool, as
//! in the steps of a rank, the same calls run on the thread that makes them.

use std::num::NonZero;
use std::ops::Range;
use std::thread::available_parallelism;

use rayon::prelude::*;
use rayon::{ThreadPoolBuildError, ThreadPoolBuilder};

/// Does something in a pool of this many threads, or of as many as there are cores if these are
/// fewer. With one thread it is done by the caller.
///
/// # Errors
/// The system does not give that many threads.
pub(crate) fn on_threads<R: Send>(
    threads: usize,
    work: impl FnOnce() -> R + Send,
) -> Result<R, ThreadPoolBuildError> {
    let cores = available_parallelism().map_or(1, NonZero::get);
    let threads = threads.min(cores);
    if threads <= 1 {
        return Ok(work());
    }
    let pool = ThreadPoolBuilder::new()
        .num_threads(threads)
        .thread_name(|index| format!("weft-setup-{index}"))
        .build()?;
    Ok(pool.install(work))
}

/// Whether there may be threads to share with.
fn shared() -> bool {
    rayon::current_thread_index().is_some() && rayon::current_num_threads() > 1
}

/// Does two things, at once if there is a thread for the second.
pub(crate) fn join<A: Send, B: Send>(
    one: impl FnOnce() -> A + Send,
    two: impl FnOnce() -> B + Send,
) -> (A, B) {
    if shared() {
        rayon::join(one, two)
    } else {
        (one(), two())
    }
}

/// A value for each number below `count`, in their order.
pub(crate) fn map<R: Send>(count: usize, value: impl Fn(usize) -> R + Sync + Send) -> Vec<R> {
    if shared() {
        (0..count).into_par_iter().map(value).collect()
    } else {
        (0..count).map(value).collect()
    }
}

/// A value for each range of `length` numbers below `count`, the last of which may be shorter, in
/// their order.
pub(crate) fn map_ranges<R: Send>(
    count: usize,
    length: usize,
    value: impl Fn(Range<usize>) -> R + Sync + Send,
) -> Vec<R> {
    map(count.div_ceil(length), |k| {
        value(k * length..count.min((k + 1) * length))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_give_on_any_number_of_threads_what_one_gives() {
        let work = || {
            let rests: Vec<u64> = map(10_000, |k| (k as u64 * 7919) % 1009);
            let sums = map_ranges(1003, 10, |range| range.map(|k| 1.0 / (k + 1) as f64).sum());
            let sums: Vec<f64> = sums;
            let both = join(|| rests.len(), || sums.len());
            (rests, sums, both)
        };
        let alone = work();
        assert_eq!(alone.2, (10_000, 101));
        assert_eq!(alone.0[2], 15_838 % 1009);
        for threads in [1, 2, 5] {
            assert_eq!(on_threads(threads, work).unwrap(), alone);
        }
    }
}
