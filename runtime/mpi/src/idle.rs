//! The ways in which a rank waits: spin, let others run, sleep.
//!
//! A blocking MPI call is never how a rank waits: it would keep the processor busy and leave other
//! messages lying. A waiting rank polls, and between polls does what its [`Idle`] says, longer the
//! longer it waits.

use std::fmt;
use std::hint;
use std::str::FromStr;
use std::thread;
use std::time::{Duration, Instant};

/// How a rank waits: first it spins, then it yields, then it sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Idle {
    /// Polls before it first lets others run.
    pub spins: u32,
    /// How long it then lets others run between polls.
    pub yields: Duration,
    /// Longest sleep between polls after that; with zero it never sleeps.
    pub sleep: Duration,
}

impl Idle {
    /// Polls all the time: for machines where every rank has its cores to itself, and nobody pays
    /// for power.
    pub const SPIN: Self = Self {
        spins: u32::MAX,
        yields: Duration::ZERO,
        sleep: Duration::ZERO,
    };
    /// Spins briefly, then lets others run between polls.
    pub const YIELD: Self = Self {
        spins: 64,
        yields: Duration::MAX,
        sleep: Duration::ZERO,
    };
    /// Spins briefly, yields for as long as most answers take, then sleeps: also right with more
    /// ranks than cores.
    pub const SLEEP: Self = Self {
        spins: 64,
        yields: Duration::from_micros(200),
        sleep: Duration::from_micros(200),
    };
    /// The strategies that have a name.
    pub const NAMED: [(&str, Self); 3] = [
        ("spin", Self::SPIN),
        ("yield", Self::YIELD),
        ("sleep", Self::SLEEP),
    ];
}

impl Default for Idle {
    /// [`Idle::SLEEP`].
    fn default() -> Self {
        Self::SLEEP
    }
}

/// The error for a word that names no way to wait.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no way to wait; take spin, yield or sleep")]
pub struct UnknownIdle(String);

impl FromStr for Idle {
    type Err = UnknownIdle;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let named = Self::NAMED.iter().find(|(n, _)| *n == name);
        named
            .map(|&(_, idle)| idle)
            .ok_or_else(|| UnknownIdle(name.to_owned()))
    }
}

impl fmt::Display for Idle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Self::NAMED.iter().find(|(_, idle)| idle == self) {
            Some((name, _)) => f.write_str(name),
            None => write!(f, "{self:?}"),
        }
    }
}

/// How long a rank has waited since anything came.
#[derive(Debug)]
pub(crate) struct Backoff {
    idle: Idle,
    polls: u32,
    since: Option<Instant>,
    sleep: Duration,
}

/// How much longer it yields for each byte of long messages under way: at 1 GB/s they are here
/// before it sleeps, for moving them takes both ranks.
const NANOS_PER_BYTE: u64 = 1;
/// The first sleep.
const SHORTEST_SLEEP: Duration = Duration::from_micros(20);

impl Backoff {
    pub(crate) fn new(idle: Idle) -> Self {
        Self {
            idle,
            polls: 0,
            since: None,
            sleep: SHORTEST_SLEEP,
        }
    }

    /// Something came: the next wait starts afresh.
    pub(crate) fn reset(&mut self) {
        *self = Self::new(self.idle);
    }

    /// Waits between two polls, at most this long, while this many bytes are under way.
    #[expect(
        clippy::disallowed_methods,
        reason = "a driver reads the clock and sleeps"
    )]
    pub(crate) fn pause(&mut self, at_most: Duration, under_way: usize) {
        if self.polls < self.idle.spins {
            self.polls = self.polls.saturating_add(1);
            hint::spin_loop();
            return;
        }
        let now = Instant::now();
        let since = *self.since.get_or_insert(now);
        let under_way = Duration::from_nanos(NANOS_PER_BYTE.saturating_mul(under_way as u64));
        let yields = self.idle.yields.saturating_add(under_way);
        if self.idle.sleep.is_zero() || now - since < yields {
            thread::yield_now();
        } else {
            thread::sleep(self.sleep.min(self.idle.sleep).min(at_most));
            self.sleep = (2 * self.sleep).min(self.idle.sleep.max(SHORTEST_SLEEP));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_to_wait_have_names_that_read_back() {
        for (name, idle) in Idle::NAMED {
            assert_eq!(name.parse(), Ok(idle));
            assert_eq!(idle.to_string(), name);
        }
        let error = "nap".parse::<Idle>().unwrap_err();
        assert!(error.to_string().contains("spin, yield or sleep"));
    }
}
