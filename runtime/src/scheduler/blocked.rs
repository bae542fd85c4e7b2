//! Blocked tasks: a task waits without a worker while blocks that it needs are on their way, and
//! fails if they cannot be had.

use super::block_protocol::{Event, Publisher, Want};
use super::message::{BlockMessage, SchedulerMessage};
use super::{Entry, Scheduler, Work};
use crate::block::{BlockError, BlockName, Bytes};
use crate::comm::Rank;

impl<T: Work<R>, R> Scheduler<T, R> {
    /// Publishes a block of this many bytes.
    ///
    /// # Errors
    /// This version, or a newer one, was published before.
    pub(crate) fn publish(
        &mut self,
        id: u64,
        version: u32,
        bytes: Bytes,
    ) -> Result<BlockName, BlockError> {
        let size = bytes.len();
        let mut out = Vec::new();
        let published = self.blocks.publish(id, version, bytes, size, &mut out);
        self.send_blocks(out);
        let (name, events) = published?;
        self.block_events(&events);
        Ok(name)
    }

    /// A block that is here.
    pub(crate) fn block(&mut self, name: &BlockName) -> Option<Bytes> {
        self.blocks.get(name)
    }

    /// The body goes on, waits, or has ended: that decides which blocks it may still publish.
    pub(super) fn publisher_is(&mut self, body: Publisher) {
        let mut out = Vec::new();
        let events = self.blocks.publisher_is(body, &mut out);
        self.send_blocks(out);
        self.block_events(&events);
    }

    pub(super) fn send_blocks(&mut self, out: Vec<(Rank, BlockMessage<Bytes>)>) {
        let messages = out
            .into_iter()
            .map(|(to, m)| (to, SchedulerMessage::Block(m)));
        self.outgoing.extend(messages);
    }

    /// Gives an entry back if all blocks are here that its task needs. If not, it is blocked, or
    /// has failed.
    pub(super) fn prepare(&mut self, mut entry: Entry<T>) -> Option<Entry<T>> {
        let needs = entry.task.needs().to_vec();
        if !entry.holds {
            self.blocks.hold(&needs);
            entry.holds = true;
        }
        let base = entry.base();
        let mut out = Vec::new();
        let mut missing = false;
        let mut refusal = None;
        for &name in &needs {
            match self.blocks.want(name, base, entry.from, &mut out) {
                Want::Here => {}
                Want::Coming => missing = true,
                Want::Refused(why) => refusal = Some(why),
            }
        }
        self.send_blocks(out);
        if let Some(why) = refusal {
            self.fail(entry, why);
            return None;
        }
        if missing {
            self.blocked.push(entry);
            return None;
        }
        self.taken = needs;
        Some(entry)
    }

    /// A task cannot run.
    fn fail(&mut self, entry: Entry<T>, why: BlockError) {
        if entry.holds {
            self.blocks.release(entry.task.needs());
        }
        self.produced(&entry.membership, entry.task.refused(self.me, why));
        self.gone(&entry.membership);
    }

    /// Blocks came, or will not: tasks that waited for them go on, or fail.
    pub(super) fn block_events(&mut self, events: &[Event]) {
        for event in events {
            let (name, base, why) = match event {
                Event::Arrived(name) => (name, None, None),
                Event::Refused(name, base, why) => (name, Some(*base), Some(why)),
            };
            let (concerned, others) = std::mem::take(&mut self.blocked)
                .into_iter()
                .partition::<Vec<_>, _>(|entry| {
                    base.is_none_or(|base| base == entry.base())
                        && entry.task.needs().contains(name)
                });
            self.blocked = others;
            for mut entry in concerned {
                match why {
                    // It is looked at again before it runs.
                    None => {
                        entry.passed = false;
                        self.enter_pool(entry);
                    }
                    Some(why) => self.fail(entry, *why),
                }
            }
        }
    }
}
