//! The time a thread has computed: what it takes, however busy the machine is with something else.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// How long the calling thread has been on a processor. Differences count; asking takes some hundred nanoseconds.
#[must_use]
pub fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    // Neither is negative, for threads begin at zero.
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

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
