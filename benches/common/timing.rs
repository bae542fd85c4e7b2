//! Time as benches take it: the shortest of several runs, which disturbances only lengthen.

use std::hint::black_box;
use std::time::{Duration, Instant};

#[path = "measures.rs"]
mod measured;

pub(crate) use measured::measures;

/// The shortest of several runs; what they return is kept from being optimised away, and dropped.
#[expect(clippy::disallowed_methods, reason = "a bench reads the clock")]
pub(crate) fn best<R>(runs: u32, mut run: impl FnMut() -> R) -> Duration {
    let timed = |_| {
        let start = Instant::now();
        let result = black_box(run());
        let time = start.elapsed();
        drop(result);
        time
    };
    (0..runs).map(timed).min().unwrap_or_default()
}
