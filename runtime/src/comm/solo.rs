//! One rank: its messages go to itself.

use std::time::{Duration, Instant};

use super::mailbox::Mailbox;
use super::{Comm, CommError, Message, Rank, Tag, count_up};

/// The only rank of a job.
#[derive(Debug)]
pub struct Solo {
    start: Instant,
    mailbox: Mailbox,
    epochs: u32,
    aborted: Option<String>,
}

impl Solo {
    /// Starts the clock.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "a driver reads the clock")]
    pub fn new() -> Self {
        Self {
            start: Instant::now(),
            mailbox: Mailbox::default(),
            epochs: 0,
            aborted: None,
        }
    }

    fn check(&self, peer: Rank) -> Result<(), CommError> {
        if let Some(reason) = &self.aborted {
            return Err(CommError::Aborted {
                rank: Rank(0),
                reason: reason.clone(),
            });
        }
        if peer != Rank(0) {
            return Err(CommError::NoSuchRank { to: peer, size: 1 });
        }
        Ok(())
    }
}

impl Default for Solo {
    fn default() -> Self {
        Self::new()
    }
}

impl Comm for Solo {
    fn rank(&self) -> Rank {
        Rank(0)
    }

    fn size(&self) -> usize {
        1
    }

    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn send(&mut self, to: Rank, tag: Tag, bytes: Vec<u8>) -> Result<(), CommError> {
        self.check(to)?;
        self.mailbox.put(
            tag,
            Message {
                from: Rank(0),
                bytes,
            },
        );
        Ok(())
    }

    fn try_recv(&mut self, tag: Tag) -> Result<Option<Message>, CommError> {
        self.check(Rank(0))?;
        Ok(self.mailbox.take(tag))
    }

    fn recv_from(&mut self, from: Rank, tag: Tag) -> Result<Vec<u8>, CommError> {
        self.check(from)?;
        // Nobody else can send it: waiting would be for ever.
        self.mailbox.take_from(from, tag).ok_or(CommError::Left {
            rank: Rank(0),
            waiting: Rank(0),
        })
    }

    fn wait(&mut self, _at_most: Duration) -> Result<(), CommError> {
        self.check(Rank(0))
    }

    fn close(&mut self, tag: Tag) {
        self.mailbox.close(tag);
    }

    fn reopen(&mut self, tag: Tag) {
        self.mailbox.reopen(tag);
    }

    fn next_epoch(&mut self) -> u32 {
        count_up(&mut self.epochs)
    }

    fn abort(&mut self, reason: &str) {
        self.aborted.get_or_insert_with(|| reason.to_owned());
    }
}
