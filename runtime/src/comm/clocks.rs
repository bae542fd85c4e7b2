//! How far the clocks of ranks are apart, so that times of different ranks can be compared.
//!
//! Ranks on different machines, or started at different times, have clocks that differ by an
//! *offset*, which *drifts* by some millionths. [`read_clocks`] measures the offset by ping-pong,
//! as Cristian's method does: a rank asks rank 0 for its time, which was read at some moment
//! between question and answer. Taken to be the middle, it is wrong by at most half the round trip;
//! of several exchanges the quickest counts. Two such readings, one at the start and one at the
//! end, give a line from the rank's clock to that of rank 0: a [`ClockMap`].
//!
//! * [Cristian 1989] F. Cristian: Probabilistic clock synchronization. Distributed Computing 3.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Comm, CommError, Rank, Tag};

const TAG: Tag = Tag(0xff10);
/// Exchanges of which the quickest counts: enough that one of them is not disturbed.
const EXCHANGES: u32 = 16;

/// The relation of a rank's clock to that of rank 0, as the rank knows it at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockReading {
    /// When, in ns on the rank's clock.
    pub at: u64,
    /// The lead of rank 0's clock then, in ns.
    pub offset: i64,
    /// How wrong that may be, in ns: half the quickest round trip.
    pub error: u64,
}

/// Measures how far this rank's clock is from that of rank 0. Collective; rank 0, whose clock is
/// the one that others are compared with, talks to one rank after the other.
///
/// # Errors
/// The job was ended, a rank left, or one sent what is no time.
pub fn read_clocks(comm: &mut dyn Comm) -> Result<ClockReading, CommError> {
    if comm.rank() != Rank(0) {
        // The turn of this rank: until then rank 0 would let it wait.
        comm.recv_from(Rank(0), TAG)?;
        let mut best = exchange(comm)?;
        for _ in 1..EXCHANGES {
            let reading = exchange(comm)?;
            if reading.error < best.error {
                best = reading;
            }
        }
        return Ok(best);
    }
    for rank in (1..comm.size() as u32).map(Rank) {
        comm.send(rank, TAG, Vec::new())?;
        for _ in 0..EXCHANGES {
            comm.recv_from(rank, TAG)?;
            let now = nanos(comm.now());
            comm.send(rank, TAG, now.to_le_bytes().to_vec())?;
        }
    }
    Ok(ClockReading {
        at: nanos(comm.now()),
        ..ClockReading::default()
    })
}

/// Asks rank 0 for its time.
fn exchange(comm: &mut dyn Comm) -> Result<ClockReading, CommError> {
    let asked = nanos(comm.now());
    comm.send(Rank(0), TAG, Vec::new())?;
    let answer = comm.recv_from(Rank(0), TAG)?;
    let answered = nanos(comm.now());
    let theirs = <[u8; 8]>::try_from(&answer[..]).map_err(|_| CommError::Malformed {
        from: Rank(0),
        what: "not a time of 8 bytes".to_owned(),
    })?;
    let at = asked.midpoint(answered);
    let offset = i128::from(u64::from_le_bytes(theirs)) - i128::from(at);
    Ok(ClockReading {
        at,
        offset: clamp(offset),
        error: (answered - asked).div_ceil(2),
    })
}

/// A map from a rank's clock to that of rank 0: a line through two readings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockMap {
    /// The reading at the start.
    pub begin: ClockReading,
    /// The reading at the end.
    pub end: ClockReading,
}

impl ClockMap {
    /// The line through these readings. Clocks that may be one, for neither reading sees a
    /// difference beyond its error, are left alone: ranks of one process share a clock, and a line
    /// would only add noise.
    #[must_use]
    pub fn new(begin: ClockReading, end: ClockReading) -> Self {
        let same = |reading: &ClockReading| reading.offset.unsigned_abs() <= reading.error;
        if same(&begin) && same(&end) {
            let alone = |reading: ClockReading| ClockReading {
                offset: 0,
                error: reading.error + reading.offset.unsigned_abs(),
                ..reading
            };
            return Self {
                begin: alone(begin),
                end: alone(end),
            };
        }
        Self { begin, end }
    }

    /// The time on rank 0's clock when this one shows `at` (ns); times before its start become 0.
    #[must_use]
    pub(crate) fn to_first(self, at: u64) -> u64 {
        let (begin, end) = (self.begin, self.end);
        let gained = i128::from(end.offset) - i128::from(begin.offset);
        let span = i128::from(end.at) - i128::from(begin.at);
        let since = i128::from(at) - i128::from(begin.at);
        // Rounded down everywhere: order is kept.
        let drifted = if span > 0 {
            (gained * since).div_euclid(span)
        } else {
            0
        };
        let mapped = i128::from(at) + i128::from(begin.offset) + drifted;
        u64::try_from(mapped.max(0)).unwrap_or(u64::MAX)
    }

    /// How much faster rank 0's clock runs, as a share: 10⁻⁶ is a microsecond in a second.
    #[must_use]
    pub fn drift(&self) -> f64 {
        let span = self.end.at.saturating_sub(self.begin.at);
        if span == 0 {
            return 0.0;
        }
        (self.end.offset - self.begin.offset) as f64 / span as f64
    }

    /// How wrong a mapped time may be between the readings, if the drift was steady.
    #[must_use]
    pub fn error(&self) -> Duration {
        // One more for rounding.
        Duration::from_nanos(self.begin.error.max(self.end.error) + 1)
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn clamp(ns: i128) -> i64 {
    // Half of the range, so that differences of two fit.
    const MOST: i128 = i64::MAX as i128 / 2;
    ns.clamp(-MOST, MOST) as i64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::comm::virtual_time::{self, Link, Network, VirtualOptions};
    use crate::comm::{Collectives as _, CommWrapper, threads};

    /// A rank whose clock is not that of the others: it began at another time and runs faster.
    struct Skewed<'a> {
        inner: &'a mut dyn Comm,
        ahead: Duration,
        /// The difference in speed, in millionths.
        faster: i64,
    }

    impl Skewed<'_> {
        fn show(&self, truth: Duration) -> Duration {
            let truth = truth.as_nanos() as i128;
            let gained = truth * i128::from(self.faster) / 1_000_000;
            self.ahead + Duration::from_nanos((truth + gained) as u64)
        }
    }

    impl CommWrapper for Skewed<'_> {
        fn inner(&self) -> &dyn Comm {
            self.inner
        }

        fn inner_mut(&mut self) -> &mut dyn Comm {
            self.inner
        }

        fn wrapped_now(&self) -> Duration {
            self.show(self.inner.now())
        }
    }

    /// A message as its ends saw it.
    struct Seen {
        from: usize,
        to: usize,
        sent: u64,
        received: u64,
    }

    /// The observations of a rank: its map, (its clock, the truth) in ns now and then, and the
    /// messages that came to it.
    type Session = (ClockMap, Vec<(u64, u64)>, Vec<Seen>);

    /// Reads clocks at both ends of a stretch in which every rank writes to every other, and takes
    /// down the true time now and then.
    fn session(inner: &mut dyn Comm, ahead: Duration, faster: i64) -> Session {
        const MESSAGE: Tag = Tag(5);
        let mut comm = Skewed {
            inner,
            ahead,
            faster,
        };
        let begin = read_clocks(&mut comm).unwrap();
        let (mut truths, mut seen) = (Vec::new(), Vec::new());
        let (me, size) = (comm.rank(), comm.size() as u32);
        for _ in 0..20 {
            let truth = comm.inner.now();
            truths.push((nanos(comm.show(truth)), nanos(truth)));
            for to in (0..size).map(Rank).filter(|&to| to != me) {
                let sent = nanos(comm.now());
                comm.send(to, MESSAGE, sent.to_le_bytes().to_vec()).unwrap();
            }
            for from in (0..size).map(Rank).filter(|&from| from != me) {
                let bytes = comm.recv_from(from, MESSAGE).unwrap();
                seen.push(Seen {
                    from: from.index(),
                    to: me.index(),
                    sent: u64::from_le_bytes(bytes.try_into().unwrap()),
                    received: nanos(comm.now()),
                });
            }
            // Time goes on, by another amount on every rank.
            comm.inner
                .compute(40_000 + 7_000 * u64::from(me.0), Duration::ZERO);
        }
        comm.barrier().unwrap();
        let end = read_clocks(&mut comm).unwrap();
        (ClockMap::new(begin, end), truths, seen)
    }

    /// Checks that maps give the time of rank 0's clock within what they promise, and that nothing
    /// is received before it was sent, beyond that.
    fn check(sessions: &[Session], first: impl Fn(u64) -> u64, slack: u64) {
        for (rank, (map, truths, seen)) in sessions.iter().enumerate() {
            let error = map.error().as_nanos() as u64 + slack;
            for &(own, truth) in truths {
                let off = map.to_first(own).abs_diff(first(truth));
                assert!(off <= error, "rank {rank}: {off} ns off, {error} promised");
            }
            for message in seen {
                let theirs = &sessions[message.from].0;
                let sent = theirs.to_first(message.sent);
                let received = sessions[message.to].0.to_first(message.received);
                let error = error + theirs.error().as_nanos() as u64 + slack;
                assert!(
                    received + error >= sent,
                    "{received} before {sent} by more than {error}"
                );
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn offset_and_drift_of_clocks_are_recovered(
            skews in prop::collection::vec((0..5_000_000_000_u64, -200..200_i64), 4),
            late in 0..60_u64,
        ) {
            let machine = VirtualOptions {
                network: Network {
                    far: Link::new(Duration::from_micros(1 + late), Duration::from_nanos(700), 0.1),
                    ..Network::GIGABIT
                },
                // Answers take longer than questions, or the other way round.
                jitter: 2.0,
                seed: late,
                ..VirtualOptions::default()
            };
            let skew = |rank: usize| (Duration::from_nanos(skews[rank].0), skews[rank].1);
            let outcome = virtual_time::launch(4, &machine, |comm| {
                let (ahead, faster) = skew(comm.rank().index());
                session(comm, ahead, faster)
            });
            let (ahead, faster) = skew(0);
            let first = |truth: u64| {
                let gained = i128::from(truth) * i128::from(faster) / 1_000_000;
                (ahead.as_nanos() as i128 + i128::from(truth) + gained) as u64
            };
            let sessions = outcome.unwrap().results;
            // The clocks drift by a few ns while a message is under way.
            check(&sessions, first, 100);
            for (rank, (map, ..)) in sessions.iter().enumerate() {
                // Both clocks run by their own measure: 10⁻⁶ of 10⁻⁴ is left out.
                let expected = (faster - skews[rank].1) as f64 * 1e-6;
                let span = (map.end.at - map.begin.at) as f64;
                let most = (map.begin.error + map.end.error) as f64 / span + 1e-6;
                prop_assert!((map.drift() - expected).abs() <= most, "{} {expected}", map.drift());
            }
        }
    }

    #[test]
    fn threads_with_other_clocks_agree_within_the_error() {
        let skew = |rank: u32| {
            (
                Duration::from_millis(u64::from(7 * rank)),
                50 * i64::from(rank),
            )
        };
        let sessions = threads::launch(3, |comm| {
            let (ahead, faster) = skew(comm.rank().0);
            session(comm, ahead, faster)
        });
        check(&sessions.unwrap(), |truth| truth, 1000);
    }

    #[test]
    fn clocks_that_may_be_one_are_left_alone() {
        let maps = threads::launch(3, |comm| {
            let begin = read_clocks(comm).unwrap();
            ClockMap::new(begin, read_clocks(comm).unwrap())
        });
        for map in maps.unwrap() {
            assert_eq!((map.to_first(12_345), map.drift()), (12_345, 0.0));
        }
        let reading = |at, offset| ClockReading {
            at,
            offset,
            error: 9,
        };
        assert_eq!(
            ClockMap::new(reading(0, 9), reading(50, -9)).to_first(30),
            30
        );
        assert_eq!(
            ClockMap::new(reading(0, 9), reading(50, -10)).to_first(25),
            24
        );
    }

    #[test]
    fn maps_keep_order_whatever_the_readings() {
        let reading = |at, offset| ClockReading {
            at,
            offset,
            error: 0,
        };
        let map = ClockMap::new(reading(1000, -5000), reading(3_000_000, 7777));
        let mapped: Vec<u64> = (0..4_000_000)
            .step_by(997)
            .map(|at| map.to_first(at))
            .collect();
        assert!(mapped.is_sorted());
        assert_eq!(mapped[0], 0, "before the start of rank 0");
        // Readings at one moment say nothing of drift.
        let still = ClockMap::new(reading(1000, -500), reading(1000, 700));
        assert_eq!((still.to_first(2000), still.drift()), (1500, 0.0));
    }

    #[test]
    fn one_rank_has_nobody_to_ask() {
        let mut solo = crate::comm::solo::Solo::new();
        let reading = read_clocks(&mut solo).unwrap();
        assert_eq!((reading.offset, reading.error), (0, 0));
    }

    #[test]
    fn an_answer_that_is_no_time_names_its_sender() {
        let outcomes = threads::launch(2, |comm| {
            if comm.rank() == Rank(1) {
                return read_clocks(comm).err();
            }
            comm.send(Rank(1), TAG, Vec::new()).unwrap();
            comm.recv_from(Rank(1), TAG).unwrap();
            comm.send(Rank(1), TAG, vec![1, 2, 3]).unwrap();
            None
        });
        let outcomes = outcomes.unwrap();
        assert!(
            matches!(
                outcomes[1],
                Some(CommError::Malformed { from: Rank(0), .. })
            ),
            "{outcomes:?}"
        );
    }
}
