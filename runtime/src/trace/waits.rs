//! Waits for messages outside of scopes, seen from outside: a [`Comm`] that passes everything on
//! and takes down how long [`Comm::recv_from`] took.
//!
//! All collectives and exchanges of a data-parallel phase are built on that one call, so nothing in
//! them has to know of traces, and without one nothing is in between.

use std::time::Duration;

use crate::comm::{Comm, CommError, CommWrapper, Rank, Tag};

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
    /// Tells `told` of every wait: the messages' tag, the rank that was waited for, when it began
    /// and ended.
    pub fn new(
        comm: &'a mut dyn Comm,
        told: &'a mut dyn FnMut(Tag, Rank, Duration, Duration),
    ) -> Self {
        Self { comm, told }
    }
}

impl CommWrapper for Watched<'_> {
    fn inner(&self) -> &dyn Comm {
        self.comm
    }

    fn inner_mut(&mut self) -> &mut dyn Comm {
        self.comm
    }

    fn wrapped_recv_from(&mut self, from: Rank, tag: Tag) -> Result<Vec<u8>, CommError> {
        let begin = self.comm.now();
        let received = self.comm.recv_from(from, tag);
        (self.told)(tag, from, begin, self.comm.now());
        received
    }
}
