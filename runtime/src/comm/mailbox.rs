//! Messages that have arrived and were not asked for yet. For drivers.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::{Message, Rank, Tag};

/// Arrived messages by tag, each tag in order of arrival: what a driver keeps for its rank.
#[derive(Debug, Default)]
pub struct Mailbox {
    queues: BTreeMap<Tag, VecDeque<Message>>,
    /// Messages of these are dropped.
    closed: BTreeSet<Tag>,
    /// Whether one was put in since somebody last asked for news.
    news: bool,
}

impl Mailbox {
    /// Files a message that has arrived, or drops it if its tag is closed.
    pub fn put(&mut self, tag: Tag, message: Message) {
        if !self.closed.contains(&tag) {
            self.queues.entry(tag).or_default().push_back(message);
            self.news = true;
        }
    }

    /// The oldest message of this tag.
    pub fn take(&mut self, tag: Tag) -> Option<Message> {
        self.queues.get_mut(&tag)?.pop_front()
    }

    /// The oldest message of this tag from that rank.
    pub fn take_from(&mut self, from: Rank, tag: Tag) -> Option<Vec<u8>> {
        let queue = self.queues.get_mut(&tag)?;
        let at = queue.iter().position(|m| m.from == from)?;
        queue.remove(at).map(|m| m.bytes)
    }

    /// Drops the messages of this tag, and all that are put in before it is opened again.
    pub fn close(&mut self, tag: Tag) {
        self.queues.remove(&tag);
        self.closed.insert(tag);
    }

    /// Keeps messages of this tag again.
    pub fn reopen(&mut self, tag: Tag) {
        self.closed.remove(&tag);
    }

    /// Whether messages of this tag are dropped.
    #[must_use]
    pub fn is_closed(&self, tag: Tag) -> bool {
        self.closed.contains(&tag)
    }

    /// Whether something is here that came since this was last asked: who waits looks at what it
    /// waits for after each wait, and is not kept awake by what it will not ask for until later.
    pub fn has_news(&mut self) -> bool {
        std::mem::take(&mut self.news) && !self.is_empty()
    }

    /// Whether nothing waits to be asked for.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.queues.values().all(VecDeque::is_empty)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_news_once_and_only_while_it_is_here() {
        let mut mailbox = Mailbox::default();
        let message = || Message {
            from: Rank(0),
            bytes: Vec::new(),
        };
        assert!(!mailbox.has_news());
        mailbox.put(Tag(1), message());
        assert!(mailbox.has_news());
        assert!(!mailbox.has_news());
        mailbox.put(Tag(2), message());
        mailbox.take(Tag(2)).unwrap();
        mailbox.put(Tag(2), message());
        assert!(mailbox.has_news());
        mailbox.take(Tag(1)).unwrap();
        mailbox.take(Tag(2)).unwrap();
        mailbox.put(Tag(3), message());
        mailbox.take(Tag(3)).unwrap();
        assert!(!mailbox.has_news());
    }

    #[test]
    fn a_closed_tag_holds_nothing_and_counts_for_nothing() {
        let mut mailbox = Mailbox::default();
        let message = |byte| Message {
            from: Rank(0),
            bytes: vec![byte],
        };
        mailbox.put(Tag(1), message(1));
        mailbox.close(Tag(1));
        assert!(mailbox.is_empty());
        mailbox.put(Tag(1), message(2));
        assert!(mailbox.is_empty());
        mailbox.put(Tag(2), message(3));
        assert_eq!(mailbox.take_from(Rank(0), Tag(2)), Some(vec![3]));
        mailbox.reopen(Tag(1));
        mailbox.put(Tag(1), message(4));
        assert_eq!(mailbox.take(Tag(1)), Some(message(4)));
        assert!(mailbox.is_empty());
    }
}
