//! Waits for messages outside of scopes, seen from outside: a [`Comm`] that passes everything on and takes
//! down how long [`Comm::recv_from`] took.
//!
//! All collectives and exchanges of a data-parallel phase are built on that one call, so nothing in them
//! has to know of traces, and without one nothing is in between.

use std::time::Duration;

use crate::comm::{Comm, CommError, Message, Rank, Tag};

/// A [`Comm`] that tells of waits for a message of a certain rank.
pub struct Watched<'a> {
    comm: &'a mut dyn Comm,
    /// Tag, rank waited for, begin and end.
    told: &'a mut dyn FnMut(Tag, Rank, Duration, Duration),
}

impl std::fmt::Debug for Watched<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "rank {}, watched", self.comm.rank().0)
    }
}

impl<'a> Watched<'a> {
    /// Tells `told` of every wait: the messages' tag, the rank that was waited for, when it began and ended.
    pub fn new(
        comm: &'a mut dyn Comm,
        told: &'a mut dyn FnMut(Tag, Rank, Duration, Duration),
    ) -> Self {
        Self { comm, told }
    }
}

impl Comm for Watched<'_> {
    fn rank(&self) -> Rank {
        self.comm.rank()
    }

    fn size(&self) -> usize {
        self.comm.size()
    }

    fn now(&self) -> Duration {
        self.comm.now()
    }

    fn send(&mut self, to: Rank, tag: Tag, bytes: Vec<u8>) -> Result<(), CommError> {
        self.comm.send(to, tag, bytes)
    }

    fn try_recv(&mut self, tag: Tag) -> Result<Option<Message>, CommError> {
        self.comm.try_recv(tag)
    }

    fn recv_from(&mut self, from: Rank, tag: Tag) -> Result<Vec<u8>, CommError> {
        let begin = self.comm.now();
        let received = self.comm.recv_from(from, tag);
        (self.told)(tag, from, begin, self.comm.now());
        received
    }

    fn wait(&mut self, at_most: Duration) -> Result<(), CommError> {
        self.comm.wait(at_most)
    }

    fn close(&mut self, tag: Tag) {
        self.comm.close(tag);
    }

    fn reopen(&mut self, tag: Tag) {
        self.comm.reopen(tag);
    }

    fn next_epoch(&mut self) -> u32 {
        self.comm.next_epoch()
    }

    fn node_of(&self, rank: Rank) -> u32 {
        self.comm.node_of(rank)
    }

    fn has_left(&self, rank: Rank) -> bool {
        self.comm.has_left(rank)
    }

    fn compute(&mut self, units: u64, took: Duration) -> Duration {
        self.comm.compute(units, took)
    }

    fn has_threads(&self) -> bool {
        self.comm.has_threads()
    }

    fn abort(&mut self, reason: &str) {
        self.comm.abort(reason);
    }
}
