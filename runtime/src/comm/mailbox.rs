//! Messages that have arrived and were not asked for yet.

use std::collections::{BTreeMap, VecDeque};

use super::{Message, Rank, Tag};

/// Arrived messages by tag, each tag in order of arrival.
#[derive(Debug, Default)]
pub(super) struct Mailbox {
    queues: BTreeMap<Tag, VecDeque<Message>>,
}

impl Mailbox {
    pub(super) fn put(&mut self, tag: Tag, message: Message) {
        self.queues.entry(tag).or_default().push_back(message);
    }

    /// The oldest message of this tag.
    pub(super) fn take(&mut self, tag: Tag) -> Option<Message> {
        self.queues.get_mut(&tag)?.pop_front()
    }

    /// The oldest message of this tag from that rank.
    pub(super) fn take_from(&mut self, from: Rank, tag: Tag) -> Option<Vec<u8>> {
        let queue = self.queues.get_mut(&tag)?;
        let at = queue.iter().position(|m| m.from == from)?;
        queue.remove(at).map(|m| m.bytes)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queues.values().all(VecDeque::is_empty)
    }
}
