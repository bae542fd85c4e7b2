//! Ranks that pass everything on to another [`Comm`] but for a few calls.

use std::time::Duration;

use super::{Comm, CommError, Message, Rank, Tag};

/// A wrapper of a [`Comm`] that changes some of its calls, for tests and for those who watch a
/// program.
///
/// It says what it wraps, and overrides the calls that it changes; all others go to what it wraps.
pub trait CommWrapper {
    /// Returns the wrapped [`Comm`].
    fn inner(&self) -> &dyn Comm;
    /// Returns the wrapped [`Comm`], to be changed.
    fn inner_mut(&mut self) -> &mut dyn Comm;
    /// Answers [`Comm::now`].
    fn wrapped_now(&self) -> Duration {
        self.inner().now()
    }
    /// Answers [`Comm::recv_from`].
    ///
    /// # Errors
    /// As there.
    fn wrapped_recv_from(&mut self, from: Rank, tag: Tag) -> Result<Vec<u8>, CommError> {
        self.inner_mut().recv_from(from, tag)
    }
    /// Answers [`Comm::wait`].
    ///
    /// # Errors
    /// As there.
    fn wrapped_wait(&mut self, at_most: Duration) -> Result<(), CommError> {
        self.inner_mut().wait(at_most)
    }
}

impl<W: CommWrapper> Comm for W {
    fn rank(&self) -> Rank {
        self.inner().rank()
    }

    fn size(&self) -> usize {
        self.inner().size()
    }

    fn now(&self) -> Duration {
        self.wrapped_now()
    }

    fn send(&mut self, to: Rank, tag: Tag, bytes: Vec<u8>) -> Result<(), CommError> {
        self.inner_mut().send(to, tag, bytes)
    }

    fn try_recv(&mut self, tag: Tag) -> Result<Option<Message>, CommError> {
        self.inner_mut().try_recv(tag)
    }

    fn recv_from(&mut self, from: Rank, tag: Tag) -> Result<Vec<u8>, CommError> {
        self.wrapped_recv_from(from, tag)
    }

    fn wait(&mut self, at_most: Duration) -> Result<(), CommError> {
        self.wrapped_wait(at_most)
    }

    fn close(&mut self, tag: Tag) {
        self.inner_mut().close(tag);
    }

    fn reopen(&mut self, tag: Tag) {
        self.inner_mut().reopen(tag);
    }

    fn next_epoch(&mut self) -> u32 {
        self.inner_mut().next_epoch()
    }

    fn node_of(&self, rank: Rank) -> u32 {
        self.inner().node_of(rank)
    }

    fn has_left(&self, rank: Rank) -> bool {
        self.inner().has_left(rank)
    }

    fn compute(&mut self, units: u64, took: Duration) -> Duration {
        self.inner_mut().compute(units, took)
    }

    fn has_threads(&self) -> bool {
        self.inner().has_threads()
    }

    fn abort(&mut self, reason: &str) {
        self.inner_mut().abort(reason);
    }
}
