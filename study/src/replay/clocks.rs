//! Clocks of ranks that compute and send in a pattern that nobody has to decide: the data-parallel
//! phases.
//!
//! The clocks are those that [`weft_runtime::comm::virtual_time`] would find by running each rank,
//! computed for all at once. A message costs what it costs there: its sender is busy for the
//! overhead, and may send again once its bytes have left and after the gap; it arrives after
//! latency and transfer, and taking it costs the overhead again.

use weft_runtime::comm::virtual_time::{Link, Network};
use weft_runtime::comm::{GATHER_FACTOR, POSTED_UP_TO};

/// The clocks of all ranks, in ns.
#[derive(Clone, Debug)]
pub(super) struct Clocks {
    pub(super) now: Vec<u64>,
    /// The time at which each rank may send again.
    free: Vec<u64>,
    link: Link,
    /// Time in messages so far: what a clock gained beyond computing.
    pub(super) talked: Vec<u64>,
}

/// Bytes of a block's length.
const HEAD: u64 = 8;

impl Clocks {
    pub(super) fn new(now: Vec<u64>, network: &Network) -> Self {
        let ranks = now.len();
        Self {
            free: vec![0; ranks],
            talked: vec![0; ranks],
            link: network.far,
            now,
        }
    }

    fn ns(time: std::time::Duration) -> u64 {
        time.as_nanos() as u64
    }

    /// Every rank computes.
    pub(super) fn compute(&mut self, time: impl Fn(usize) -> u64) {
        for (rank, now) in self.now.iter_mut().enumerate() {
            *now = now.saturating_add(time(rank));
        }
    }

    /// Sends a message; when it arrives.
    fn send(&mut self, from: usize, bytes: u64) -> u64 {
        let now = &mut self.now[from];
        *now = now.saturating_add(Self::ns(self.link.overhead));
        let sent = (*now).max(self.free[from]);
        let transfer = (bytes as f64 * self.link.ns_per_byte) as u64;
        let leaving = (bytes.saturating_sub(1) as f64 * self.link.ns_per_byte) as u64;
        let gap = leaving.saturating_add(Self::ns(self.link.gap));
        self.free[from] = sent.saturating_add(gap);
        let way = Self::ns(self.link.latency).saturating_add(transfer);
        sent.saturating_add(way.max(1))
    }

    fn take(&mut self, rank: usize, arrival: u64) {
        let now = self.now[rank].max(arrival);
        self.now[rank] = now.saturating_add(Self::ns(self.link.overhead));
    }

    /// Runs something that only talks, and books its time as that.
    fn talk(&mut self, run: impl FnOnce(&mut Self)) {
        let before = self.now.clone();
        run(self);
        for ((talked, now), before) in self.talked.iter_mut().zip(&self.now).zip(before) {
            *talked += now - before;
        }
    }

    /// Messages between neighbours, sorted by sender and then receiver: all send, `between` is
    /// computed, all receive.
    pub(super) fn exchange(
        &mut self,
        messages: &[(u32, u32, u64)],
        bytes: u64,
        between: impl Fn(usize) -> u64,
    ) {
        let arrivals = self.send_to_neighbours(messages, bytes);
        self.compute(between);
        self.take_posted(arrivals);
    }

    /// The first half of that; who gets them, and when they arrive.
    pub(super) fn send_to_neighbours(
        &mut self,
        messages: &[(u32, u32, u64)],
        bytes: u64,
    ) -> Vec<(usize, u64)> {
        let sent = messages.iter();
        self.post(sent.map(|&(from, to, count)| (from as usize, to as usize, count * bytes)))
    }

    /// Sends messages; who gets them, and when they arrive.
    fn post(&mut self, messages: impl Iterator<Item = (usize, usize, u64)>) -> Vec<(usize, u64)> {
        let mut arrivals = Vec::new();
        self.talk(|clocks| {
            for (from, to, bytes) in messages {
                arrivals.push((to, clocks.send(from, bytes)));
            }
        });
        arrivals
    }

    /// Takes messages that were sent.
    pub(super) fn take_posted(&mut self, arrivals: Vec<(usize, u64)>) {
        self.talk(|clocks| {
            for (to, arrival) in arrivals {
                clocks.take(to, arrival);
            }
        });
    }

    /// Every rank does one thing after the other, each of which takes so long, as long as messages
    /// are under way to it: how long each computed.
    pub(super) fn compute_until<'a>(
        &mut self,
        arrivals: &[(usize, u64)],
        things: impl Fn(usize) -> &'a [u64],
    ) -> Vec<u64> {
        let mut last = vec![0; self.now.len()];
        for &(to, arrival) in arrivals {
            last[to] = arrival.max(last[to]);
        }
        let ranks = self.now.iter_mut().zip(&last).enumerate();
        let computed = ranks.map(|(rank, (now, &last))| {
            let begin = *now;
            for time in things(rank) {
                if *now >= last {
                    break;
                }
                *now = now.saturating_add(*time);
            }
            *now - begin
        });
        computed.collect()
    }

    /// Begins a gather to all of this many bytes from each rank, which [`Clocks::finish_allgather`]
    /// ends.
    pub(super) fn begin_allgather(&mut self, bytes: impl Fn(usize) -> u64) -> Vec<(usize, u64)> {
        let n = self.now.len();
        if n > POSTED_UP_TO {
            return Vec::new();
        }
        let pairs =
            (1..n).flat_map(|distance| (0..n).map(move |from| (from, (from + distance) % n)));
        self.post(pairs.map(|(from, to)| (from, to, bytes(from))))
    }

    /// Ends a gather with what it was begun with.
    pub(super) fn finish_allgather(
        &mut self,
        under_way: Vec<(usize, u64)>,
        bytes: impl Fn(usize) -> u64,
    ) {
        if self.now.len() > POSTED_UP_TO {
            self.allgather_known(bytes);
        } else {
            self.take_posted(under_way);
        }
    }

    /// Finishes a gather where ranks do not know the lengths of each other's blocks.
    pub(super) fn finish_gather(
        &mut self,
        under_way: Vec<(usize, u64)>,
        bytes: impl Fn(usize) -> u64,
    ) {
        // Blocks that are passed on have their length before them.
        self.finish_allgather(under_way, |rank| HEAD + bytes(rank));
    }

    /// A gather to all, by dissemination, of this many bytes from each rank, each block behind its
    /// length.
    pub(super) fn allgather(&mut self, bytes: impl Fn(usize) -> u64) {
        self.allgather_known(|rank| HEAD + bytes(rank));
    }

    /// A gather to all where every rank knows the lengths.
    pub(super) fn allgather_known(&mut self, bytes: impl Fn(usize) -> u64) {
        let n = self.now.len();
        if n < 2 {
            return;
        }
        // Sums over ranks from 0 on, twice round.
        let mut sums = vec![0; 2 * n + 1];
        for i in 0..2 * n {
            sums[i + 1] = sums[i] + bytes(i % n);
        }
        let mut arrivals = vec![[0; GATHER_FACTOR - 1]; n];
        self.talk(|clocks| {
            let mut held = 1;
            while held < n {
                let steps = (1..GATHER_FACTOR).filter(|step| step * held < n);
                for step in steps.clone() {
                    let count = held.min(n - step * held);
                    for me in 0..n {
                        let to = (me + n - step * held) % n;
                        arrivals[to][step - 1] = clocks.send(me, sums[me + count] - sums[me]);
                    }
                }
                for step in steps {
                    for (me, arrivals) in arrivals.iter().enumerate() {
                        clocks.take(me, arrivals[step - 1]);
                    }
                }
                held = (GATHER_FACTOR * held).min(n);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use weft_runtime::comm::virtual_time::{Computation, VirtualOptions, launch};
    use weft_runtime::comm::{Collectives as _, Tag};

    use super::*;

    /// Pieces of work that can be done while a message is under way: on some networks there is no
    /// time for all of them.
    const THINGS: [u64; 12] = [900; 12];

    fn machine(network: Network) -> VirtualOptions {
        VirtualOptions {
            network,
            computation: Computation::Modelled {
                unit: Duration::from_nanos(1),
            },
            ..VirtualOptions::default()
        }
    }

    /// Computed clocks are those of ranks that really run, to the ns or nearly.
    #[test]
    fn clocks_are_those_of_ranks_that_run() {
        for network in [
            Network::MYRINET_2000,
            Network::GIGABIT,
            Network::HDR_INFINIBAND,
        ] {
            for ranks in [2_usize, 3, 8, 13, 65] {
                let bytes = |rank: usize| 16 + 100 * (rank as u64 % 3);
                let work = |rank: usize| 1000 * (1 + rank as u64 * 7 % 5);
                let outcome = launch(ranks, &machine(network), |comm| {
                    let me = comm.rank().index();
                    for _ in 0..3 {
                        comm.compute(work(me), Duration::ZERO);
                        comm.allgather(vec![0; bytes(me) as usize]).unwrap();
                        let lengths: Vec<usize> = (0..ranks).map(|r| bytes(r) as usize).collect();
                        let mut all = vec![0; lengths.iter().sum()];
                        comm.allgather_into(&lengths, &mut all).unwrap();
                        comm.begin_allgather(&vec![0; bytes(me) as usize]).unwrap();
                        comm.compute(work(me), Duration::ZERO);
                        comm.finish_allgather_into(&lengths, &mut all).unwrap();
                        let own = vec![0; bytes(me) as usize];
                        comm.begin_allgather(&own).unwrap();
                        comm.compute(work(me), Duration::ZERO);
                        comm.finish_allgather(own).unwrap();
                        // A ring.
                        let next = weft_runtime::comm::Rank(((me + 1) % ranks) as u32);
                        let last = weft_runtime::comm::Rank(((me + ranks - 1) % ranks) as u32);
                        comm.send(next, Tag(1), vec![0; 200]).unwrap();
                        comm.recv_from(last, Tag(1)).unwrap();
                        // Sends again, with something to do until the answer comes.
                        comm.send(next, Tag(2), vec![0; 200]).unwrap();
                        let mut left = THINGS.iter();
                        while comm.try_recv(Tag(2)).unwrap().is_none() {
                            match left.next() {
                                Some(&time) => _ = comm.compute(time, Duration::ZERO),
                                None => {
                                    comm.recv_from(last, Tag(2)).unwrap();
                                    break;
                                }
                            }
                        }
                        left.for_each(|&time| _ = comm.compute(time, Duration::ZERO));
                    }
                });
                let outcome = outcome.unwrap();
                let mut clocks = Clocks::new(vec![0; ranks], &network);
                let mut ring: Vec<_> = (0..ranks as u32)
                    .map(|me| (me, (me + 1) % ranks as u32, 1))
                    .collect();
                ring.sort_unstable();
                for _ in 0..3 {
                    clocks.compute(work);
                    clocks.allgather(bytes);
                    clocks.allgather_known(bytes);
                    let under_way = clocks.begin_allgather(bytes);
                    clocks.compute(work);
                    clocks.finish_allgather(under_way, bytes);
                    let under_way = clocks.begin_allgather(bytes);
                    clocks.compute(work);
                    clocks.finish_gather(under_way, bytes);
                    clocks.exchange(&ring, 200, |_| 0);
                    let under_way = clocks.send_to_neighbours(&ring, 200);
                    let done = clocks.compute_until(&under_way, |_| &THINGS);
                    clocks.take_posted(under_way);
                    clocks.compute(|rank| THINGS.iter().sum::<u64>() - done[rank]);
                }
                let truth = outcome.makespan().as_nanos() as f64;
                let found = *clocks.now.iter().max().unwrap() as f64;
                assert!(
                    (found / truth - 1.0).abs() < 0.02,
                    "{ranks} ranks: {found} ns, not {truth} ns"
                );
            }
        }
    }
}
