//! The time a thread has computed: what it takes, however busy the machine is with something else.

use std::sync::OnceLock;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// How long the calling thread has been on a processor. Differences count; asking takes some
/// hundred nanoseconds.
#[must_use]
pub fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    // Neither is negative, for threads begin at zero.
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// The usual cost of asking for the time on this machine, measured once.
fn asking() -> Duration {
    static ASKING: OnceLock<Duration> = OnceLock::new();
    *ASKING.get_or_init(|| {
        let mut times = [(); 101].map(|()| {
            let began = thread_time();
            thread_time().saturating_sub(began)
        });
        times.sort_unstable();
        times[times.len() / 2]
    })
}

/// Measures what the calling thread computes, without what it takes to ask for that.
#[derive(Debug)]
pub(crate) struct Stopwatch {
    began: Duration,
    /// How often it was read since then, and what it said last.
    read: u32,
    said: Duration,
    asking: Duration,
}

impl Stopwatch {
    /// A stopwatch that runs from now on.
    pub(crate) fn start() -> Self {
        Self::from(asking(), thread_time())
    }

    fn from(asking: Duration, began: Duration) -> Self {
        Self {
            began,
            read: 0,
            said: Duration::ZERO,
            asking,
        }
    }

    /// The time since it was started; not less than it said before.
    pub(crate) fn read(&mut self) -> Duration {
        self.read_at(thread_time())
    }

    fn read_at(&mut self, now: Duration) -> Duration {
        self.read += 1;
        let computed = now.saturating_sub(self.began + self.asking * self.read);
        self.said = self.said.max(computed);
        self.said
    }

    /// Reads the time since the start, and starts anew.
    pub(crate) fn lap(&mut self) -> Duration {
        let now = thread_time();
        let computed = self.read_at(now);
        *self = Self::from(self.asking, now);
        computed
    }

    /// Starts anew.
    pub(crate) fn restart(&mut self) {
        *self = Self::from(self.asking, thread_time());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread that does nothing but ask has computed nearly nothing, and time never goes back.
    #[test]
    fn a_stopwatch_leaves_out_what_reading_it_takes() {
        const TIMES: u32 = 10_000;
        // The best of some: another process may take caches away.
        let shares = (0..10).map(|_| {
            let (began, mut watch) = (thread_time(), Stopwatch::start());
            let mut last = Duration::ZERO;
            for _ in 0..TIMES {
                let now = watch.read();
                assert!(now >= last);
                last = now;
            }
            last.as_secs_f64() / (thread_time() - began).as_secs_f64()
        });
        let share = shares.fold(f64::INFINITY, f64::min);
        assert!(share < 0.5, "{share}");
    }

    #[test]
    fn waiting_takes_no_time_and_computing_does() {
        let began = thread_time();
        let (send, wait) = std::sync::mpsc::channel();
        let other = std::thread::spawn(move || {
            let began = thread_time();
            let mut sum = 0u64;
            while thread_time() - began < Duration::from_millis(50) {
                sum = sum.wrapping_add(1);
            }
            send.send(sum).unwrap();
        });
        assert!(wait.recv().unwrap() > 0);
        other.join().unwrap();
        assert!(thread_time() - began < Duration::from_millis(25));
    }
}
