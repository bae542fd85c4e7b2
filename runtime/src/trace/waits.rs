//! Waits for messages outside of scopes: a [`Comm`] that passes everything on, and measures how
//! long [`Comm::recv_from`] takes.
//!
//! All collectives and exchanges of a data-parallel phase are built on that call. So none of them
//! has to measure its waits, and a rank that is alone needs no such wrapper.

use std::time::Duration;

use crate::comm::{Comm, CommError, CommWrapper, Rank, Tag};

/// A [`Comm`] that tells of waits for a message of a certain rank.
pub struct Watched<'a> {
    comm: &'a mut dyn Comm,
    /// Hears the tag, the rank that was waited for, the begin and the end.
    told: &'a mut dyn FnMut(Tag, Rank, Duration, Duration),
}

impl std::fmt::Debug for Watched<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "rank {}, watched", self.comm.rank().0)
    }
}

impl<'a> Watched<'a> {
    /// Wraps a [`Comm`]. `told` hears of every wait: the tag of the message, the rank that was
    /// waited for, when the wait began and when it ended.
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
