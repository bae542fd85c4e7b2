//! The services that a rank may ask of the machine: messages, collectives and a clock.
//!
//! A *driver* implements [`Comm`]; everything else in this crate, and all that use it, sees only
//! that trait and cannot tell which driver it runs on:
//!
//! * [`solo`]: one rank, nothing to send;
//! * [`threads`]: every rank a thread of this process, in real time, bytes as between machines;
//! * [`virtual_time`]: thousands of ranks in one thread, on a modelled network, in computed time;
//! * the crate `weft-mpi`: every rank an MPI process.
//!
//! One suite of tests (`tests/conformance`) runs on all of them.

mod clocks;
mod collectives;
mod mailbox;
mod names;
mod results;
pub mod solo;
pub mod threads;
pub mod virtual_time;
mod wrapper;

pub use clocks::{ClockMap, ClockReading, read_clocks};
pub use collectives::{Collectives, GATHER_FACTOR, POSTED_UP_TO, all_reduce, collective_name};
pub use mailbox::Mailbox;
pub use names::name_ranks;
pub use wrapper::CommWrapper;

use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::wire::EncodeError;

/// A rank: an MPI process, a thread that plays one, or the only one there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Rank(pub u32);

impl Rank {
    /// The rank as an index into per-rank arrays.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Separates streams of messages; messages of one tag between two ranks keep their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(pub u16);

/// A message as it arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The sender.
    pub from: Rank,
    /// The payload, as the sender gave it.
    pub bytes: Vec<u8>,
}

/// The reason why a message could not be sent or received.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum CommError {
    /// Another rank ended the job; every rank hears of it, so that nobody waits for it.
    #[error("rank {} ended the job: {reason}", rank.0)]
    Aborted {
        /// The rank that ended it.
        rank: Rank,
        /// The reason that it gave.
        reason: String,
    },
    /// The destination does not exist.
    #[error("there is no rank {} among {size}", to.0)]
    NoSuchRank {
        /// The rank asked for.
        to: Rank,
        /// How many there are.
        size: usize,
    },
    /// Another rank has left; what this one waits for will never come.
    #[error("rank {} ended while rank {} waits for a message from it", rank.0, waiting.0)]
    Left {
        /// The rank that is gone.
        rank: Rank,
        /// The rank that waits.
        waiting: Rank,
    },
    /// A rank died. Drivers that know of it answer so to every call from then on.
    #[error("rank {} died", rank.0)]
    Died {
        /// The rank that is gone.
        rank: Rank,
    },
    /// Every rank waits for a message and none is under way: this job would never end.
    #[error("every rank waits for a message of another, and none is under way")]
    Stuck,
    /// Something that this rank was to send cannot be sent.
    #[error("rank {} cannot send {what}: {why}", rank.0)]
    Unsendable {
        /// The rank that was to send it.
        rank: Rank,
        /// The message, with its size where that matters.
        what: String,
        /// The reason why it cannot be sent.
        why: EncodeError,
    },
    /// A message arrived that its receiver cannot read.
    #[error("rank {} sent a message that cannot be read: {what}", from.0)]
    Malformed {
        /// The sender.
        from: Rank,
        /// The fault in the message.
        what: String,
    },
}

impl CommError {
    /// Makes the error of a rank that cannot send something.
    pub fn unsendable(rank: Rank, what: impl Into<String>) -> impl FnOnce(EncodeError) -> Self {
        move |why| Self::Unsendable {
            rank,
            what: what.into(),
            why,
        }
    }
}

/// Point-to-point messages and a clock: all that a driver must provide.
///
/// The collectives are built on these, see [`Collectives`].
pub trait Comm {
    /// This rank.
    fn rank(&self) -> Rank;
    /// How many ranks there are, at least one.
    fn size(&self) -> usize;
    /// Time since the ranks started, on this rank's clock.
    fn now(&self) -> Duration;
    /// Sends without blocking; a rank may send to itself.
    ///
    /// # Errors
    /// The job was ended, or there is no such rank.
    fn send(&mut self, to: Rank, tag: Tag, bytes: Vec<u8>) -> Result<(), CommError>;
    /// The oldest message of this tag from anyone, if one has arrived.
    ///
    /// # Errors
    /// The job was ended.
    fn try_recv(&mut self, tag: Tag) -> Result<Option<Message>, CommError>;
    /// Waits for the next message of this tag from that rank.
    ///
    /// # Errors
    /// The job was ended, there is no such rank, or it has left or died and sent nothing.
    fn recv_from(&mut self, from: Rank, tag: Tag) -> Result<Vec<u8>, CommError>;
    /// Gives the processor away until a message may have arrived since the last wait, at most so
    /// long. A rank that waits looks for what it waits for first, and after each wait: what it
    /// leaves where it is does not keep it awake.
    ///
    /// # Errors
    /// The job was ended.
    fn wait(&mut self, at_most: Duration) -> Result<(), CommError>;
    /// Drops every message of this tag, those that are here and those still to come: late answers
    /// to a question that no longer matters. Nobody can receive one until the tag is opened again.
    fn close(&mut self, tag: Tag);
    /// Keeps messages of this tag again, those that arrive from now on; it need not have been
    /// closed.
    fn reopen(&mut self, tag: Tag);
    /// How often this was called on this rank before, from 0. Ranks that call it together get the
    /// same number: a name for what they do next, such as a scope.
    fn next_epoch(&mut self) -> u32;
    /// The number of the node on which that rank runs. Ranks with equal numbers share a node.
    fn node_of(&self, rank: Rank) -> u32 {
        rank.0
    }
    /// Whether it is known here that a rank has returned and that nothing it sent is still under
    /// way. Drivers that cannot know say no.
    fn has_left(&self, rank: Rank) -> bool {
        let _ = rank;
        false
    }
    /// Says that this rank has done this many units of work, which took this long by [`Comm::now`];
    /// returns what they took on that clock afterwards. Only ranks in virtual time, whose clocks
    /// may go by units, need to know.
    fn compute(&mut self, units: u64, took: Duration) -> Duration {
        let _ = units;
        took
    }
    /// Whether workers of a rank may be threads.
    fn has_threads(&self) -> bool {
        true
    }
    /// Ends the job on every rank: their next call answers [`CommError::Aborted`].
    fn abort(&mut self, reason: &str);
}

/// Counts, and gives the count before; drivers number epochs with it.
fn count_up(count: &mut u32) -> u32 {
    let number = *count;
    *count = number.wrapping_add(1);
    number
}
