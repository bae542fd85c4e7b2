//! Messages that tasks post to ranks which need not be their home. They are delivered by the end of
//! the scope.
//!
//! Messages for one rank wait until together they are worth a message of the protocol, or this rank
//! has nothing to do. No rank leaves the scope before all that was posted to it has come; how much
//! that is, ranks find out together with the end ([`super::end`]).

use std::collections::BTreeMap;

use crate::comm::Rank;

/// Bytes that are worth a message: on networks of some µs, and some ns for each byte, they take
/// longer than a message without any.
const WORTH: usize = 1024;

/// The items that were posted to one rank and wait here.
#[derive(Clone, Debug, Default)]
struct Waiting {
    items: Vec<Vec<u8>>,
    bytes: usize,
}

/// A rank's messages, out and in.
#[derive(Clone, Debug, Default)]
pub(super) struct PostedMessages {
    waiting: BTreeMap<Rank, Waiting>,
    /// How many items were posted here to each other rank.
    posted: BTreeMap<Rank, u64>,
    /// The messages posted to this rank, as they came, and how many of them came from others.
    received: Vec<(Rank, Vec<u8>)>,
    arrived: u64,
}

impl PostedMessages {
    /// An item for another rank; gives back what is to be sent there now.
    pub(super) fn post(&mut self, to: Rank, item: Vec<u8>) -> Option<Vec<Vec<u8>>> {
        *self.posted.entry(to).or_default() += 1;
        let waiting = self.waiting.entry(to).or_default();
        waiting.bytes += item.len();
        waiting.items.push(item);
        (waiting.bytes >= WORTH).then(|| self.enclosed(to))
    }

    /// Takes the messages that wait for a rank.
    pub(super) fn enclosed(&mut self, to: Rank) -> Vec<Vec<u8>> {
        self.waiting.remove(&to).unwrap_or_default().items
    }

    /// Takes all items that wait.
    pub(super) fn rest(&mut self) -> impl Iterator<Item = (Rank, Vec<Vec<u8>>)> {
        let waiting = std::mem::take(&mut self.waiting).into_iter();
        waiting.map(|(to, waiting)| (to, waiting.items))
    }

    /// How many items were posted to another rank.
    pub(super) fn posted_to(&self, to: Rank) -> u64 {
        self.posted.get(&to).copied().unwrap_or_default()
    }

    /// Returns how many messages were posted to each rank to which any were.
    pub(super) fn posted(&self) -> Vec<(u32, u64)> {
        let posted = self.posted.iter();
        posted.map(|(to, &count)| (to.0, count)).collect()
    }

    /// An item that was posted on this rank to itself.
    pub(super) fn keep(&mut self, me: Rank, item: Vec<u8>) {
        self.received.push((me, item));
    }

    /// Receives messages from another rank.
    pub(super) fn receive(&mut self, from: Rank, items: Vec<Vec<u8>>) {
        self.arrived += items.len() as u64;
        (self.received).extend(items.into_iter().map(|item| (from, item)));
    }

    /// How many items came from others.
    pub(super) fn arrived(&self) -> u64 {
        self.arrived
    }

    /// Takes the items that were posted to this rank, sorted by sender, and of each in order.
    pub(super) fn take(&mut self) -> Vec<(Rank, Vec<u8>)> {
        let mut received = std::mem::take(&mut self.received);
        received.sort_by_key(|(from, _)| *from);
        received
    }

    /// Returns everything that decides how it goes on.
    #[cfg(test)]
    pub(super) fn essence(&self) -> impl std::fmt::Debug {
        let mut received = self.received.clone();
        received.sort();
        (&self.waiting, &self.posted, received)
    }
}
