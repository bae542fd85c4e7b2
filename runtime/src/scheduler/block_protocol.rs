//! Published blocks on one rank: what it published, copies of what others did, and fetches under
//! way.
//!
//! A pure state machine like the scheduler, which owns it: messages go in and out as values, `B`
//! are the bytes, cheap to clone. Blocks need their own protocol because a task must not wait for
//! bytes on a worker: it is blocked, others run, and an event says when to go on.
//!
//! A reader sends [`BlockMessage::Fetch`] to the rank its task was stolen from, which has probably
//! read the block itself, or else to the block's home. A rank with a copy answers; one without
//! passes the fetch on to the home, which answers the reader. So a fetch takes three messages at
//! most, and gets one answer.
//!
//! A home that has not published the block yet keeps the fetch until it does, unless it cannot: a
//! body that waits in the join of a group publishes nothing before all tasks of the group have
//! ended. That is why a fetch names the group of its task. A task of a *later* group is no reason
//! to refuse, for its rank may only have heard sooner that the earlier group is exhausted.
//!
//! Old versions: a home refuses them as soon as it has a newer one; a copy elsewhere may still be
//! handed out, as its bytes are those of the version that was asked for.
//!
//! Fetches have numbers because tasks of several groups may fetch one block: the first delivery
//! serves them all, and the answers that still come must not be taken for those of a newer fetch.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::block::{BlockError, BlockName};
use crate::comm::Rank;

/// The collective group that a task's group is or descends from, by its place; 0 if it does from
/// none.
pub(crate) type Base = u32;

/// A message about blocks. `B` are a block's bytes, as they travel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum BlockMessage<B> {
    /// A reader asks for a block, or a rank without a copy passes that on to the block's home.
    Fetch {
        /// The block.
        name: BlockName,
        /// The group of the task that reads it.
        group: Base,
        /// The rank to answer.
        reader: Rank,
        /// The reader's number for this fetch.
        number: u64,
    },
    /// The answer to a fetch: the bytes.
    Delivery {
        /// The block.
        name: BlockName,
        /// The fetch.
        number: u64,
        /// The bytes that were published under that name.
        bytes: B,
    },
    /// The answer to a fetch: there are none.
    Refusal {
        /// The block.
        name: BlockName,
        /// The fetch.
        number: u64,
        /// The reason why not.
        why: BlockError,
    },
}

/// The fate of a block that tasks wait for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// It is here, for the tasks of all groups.
    Arrived(BlockName),
    /// It will not come for tasks of this group.
    Refused(BlockName, Base, BlockError),
}

/// Where a block is that a task wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Want {
    /// Here: get it.
    Here,
    /// Under way, or about to be published here: an event will say more.
    Coming,
    /// Not to be had.
    Refused(BlockError),
}

/// How far a rank's body is, which decides what it may still publish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Publisher {
    /// It runs.
    Active,
    /// It waits in the join of a group, or has left it and was not heard of since.
    Waits(Base),
    /// It has returned.
    Ended,
}

impl Publisher {
    /// Whether it may publish something while tasks of this group wait for it.
    fn may_publish_for(self, group: Base) -> bool {
        match self {
            Self::Active => true,
            // Groups are joined in the order of their numbers.
            Self::Waits(joined) => group > joined,
            Self::Ended => false,
        }
    }
}

/// Counts of what was done about blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BlockCounts {
    /// Fetches sent.
    pub(crate) fetches: u64,
    /// Wants of what was here already.
    pub(crate) hits: u64,
    /// Deliveries to other ranks.
    pub(crate) served: u64,
    /// Fetches passed on to the block's home.
    pub(crate) forwarded: u64,
    /// Copies dropped to keep the bound.
    pub(crate) dropped: u64,
    /// Bytes of the blocks that came from other ranks.
    pub(crate) bytes_in: u64,
    /// Most bytes of copies at once.
    pub(crate) bytes_held_peak: u64,
}

/// The blocks of one rank in a scope.
#[derive(Clone, Debug)]
pub(crate) struct Blocks<B> {
    me: Rank,
    ranks: u32,
    bound: usize,
    body: Publisher,
    /// Own blocks by id, the newest version of each.
    published: BTreeMap<u64, Published<B>>,
    /// Copies of others' blocks; and of own ones that were replaced while a task held them.
    copies: BTreeMap<BlockName, Cached<B>>,
    /// Their bytes together.
    copied: usize,
    /// The copies nobody holds, the least recently used first.
    idle: BTreeMap<u64, BlockName>,
    /// How many tasks hold a block, whether it is here or not.
    holds: BTreeMap<BlockName, u32>,
    /// The copy that came with the last message: it stays until the next one.
    fresh: Option<BlockName>,
    /// Number of uses so far.
    uses: u64,
    /// Fetches without an answer. Each group has its own, as one may be refused and another served.
    fetching: BTreeMap<(BlockName, Base), Fetching>,
    /// Fetches that were given up, whose answers may still come.
    superseded: BTreeMap<u64, BlockName>,
    next_number: u64,
    /// The fetches, at home, of blocks that may still be published, with the ranks to answer.
    parked: BTreeMap<(BlockName, Base), Vec<Reader>>,
    counts: BlockCounts,
}

#[derive(Clone, Debug)]
struct Published<B> {
    version: u32,
    bytes: B,
    size: usize,
}

#[derive(Clone, Debug)]
struct Cached<B> {
    bytes: B,
    size: usize,
    /// Its key among the idle ones.
    used: u64,
}

#[derive(Clone, Copy, Debug)]
struct Fetching {
    number: u64,
    /// The rank that it was sent to.
    via: Rank,
}

/// A reader that waits for a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reader {
    /// Tasks of this rank.
    Own,
    /// The fetch with this number of another rank.
    Other(Rank, u64),
}

/// The knowledge of a home about one of its blocks.
enum AtHome<B> {
    Has(B),
    Later,
    Never(BlockError),
}

type Out<B> = Vec<(Rank, BlockMessage<B>)>;

impl<B: Clone> Blocks<B> {
    /// No blocks; copies of others' will take `bound` bytes at most, apart from those that are
    /// held.
    ///
    /// Blocks that running tasks read are not counted: they have clones of their own.
    pub(crate) fn new(me: Rank, ranks: u32, bound: usize) -> Self {
        Self {
            me,
            ranks,
            bound,
            body: Publisher::Active,
            published: BTreeMap::new(),
            copies: BTreeMap::new(),
            copied: 0,
            idle: BTreeMap::new(),
            holds: BTreeMap::new(),
            fresh: None,
            uses: 0,
            fetching: BTreeMap::new(),
            superseded: BTreeMap::new(),
            next_number: 0,
            parked: BTreeMap::new(),
            counts: BlockCounts::default(),
        }
    }

    /// The body publishes a block of `size` bytes; those who wait for it are answered.
    ///
    /// # Errors
    /// The version is not newer than the one published before.
    pub(crate) fn publish(
        &mut self,
        id: u64,
        version: u32,
        bytes: B,
        size: usize,
        out: &mut Out<B>,
    ) -> Result<(BlockName, Vec<Event>), BlockError> {
        let name = self.own(id, version);
        if let Some(Published { version, .. }) = self.published.get(&id)
            && *version >= name.version
        {
            let current = *version;
            return Err(BlockError::Republished { name, current });
        }
        let new = Published {
            version,
            bytes,
            size,
        };
        if let Some(old) = self.published.insert(id, new) {
            let replaced = self.own(id, old.version);
            if self.holds.contains_key(&replaced) {
                // Tasks were told that it is here.
                self.keep(replaced, old.bytes, old.size);
            }
        }
        Ok((name, self.answer_parked(out)))
    }

    /// The body goes on, waits or has ended: fetches that it can no longer serve are refused.
    ///
    /// A body that has left a join need not be reported before it waits in the next: tasks of
    /// earlier groups, which alone could be refused wrongly, have ended then. One that took a
    /// result and goes on within the join should be.
    pub(crate) fn publisher_is(&mut self, body: Publisher, out: &mut Out<B>) -> Vec<Event> {
        self.body = body;
        self.answer_parked(out)
    }

    /// The bytes of a block that is here.
    ///
    /// A copy that nobody holds is here from its arrival until the next [`Self::receive`] or
    /// [`Self::trim`] in any case, and as long after as there is room.
    pub(crate) fn get(&mut self, name: &BlockName) -> Option<B> {
        match self.published.get(&name.id) {
            Some(own) if name.home == self.me && own.version == name.version => {
                Some(own.bytes.clone())
            }
            _ => self.copy(name),
        }
    }

    /// A task of this group wants a block; `hint` is the rank it was stolen from.
    ///
    /// Hold it first: else what is here now may be dropped before the task runs. There is one fetch
    /// of a block at a time (for each group), however many tasks want it; one event tells what came
    /// of it.
    pub(crate) fn want(
        &mut self,
        name: BlockName,
        group: Base,
        hint: Option<Rank>,
        out: &mut Out<B>,
    ) -> Want {
        if name.home == self.me {
            return match self.at_home(&name, group) {
                AtHome::Has(_) => {
                    self.counts.hits += 1;
                    Want::Here
                }
                AtHome::Never(why) => Want::Refused(why),
                AtHome::Later => {
                    let readers = self.parked.entry((name, group)).or_default();
                    if !readers.contains(&Reader::Own) {
                        readers.push(Reader::Own);
                    }
                    Want::Coming
                }
            };
        }
        if self.copy(&name).is_some() {
            self.counts.hits += 1;
            return Want::Here;
        }
        if self.fetching.contains_key(&(name, group)) {
            return Want::Coming;
        }
        if name.home.0 >= self.ranks {
            let ranks = self.ranks;
            return Want::Refused(BlockError::Nowhere { name, ranks });
        }
        let via = hint
            .filter(|&hint| hint != self.me && hint.0 < self.ranks)
            .unwrap_or(name.home);
        self.fetch(name, group, via, out);
        Want::Coming
    }

    /// Keeps these blocks from being dropped once they are here, until they are released: while a
    /// task waits for several, none may go before the last has come. Held blocks may exceed the
    /// bound.
    pub(crate) fn hold(&mut self, names: &[BlockName]) {
        for &name in names {
            *self.holds.entry(name).or_default() += 1;
            if let Some(copy) = self.copies.get(&name) {
                self.idle.remove(&copy.used);
            }
        }
        // One larger than the bound, which would have gone with the next message, may stay now.
        self.shrink();
    }

    /// Takes one hold from each of these blocks.
    pub(crate) fn release(&mut self, names: &[BlockName]) {
        for &name in names {
            let Some(holds) = self.holds.get_mut(&name) else {
                debug_assert!(false, "{name} released more often than held");
                continue;
            };
            *holds -= 1;
            if *holds > 0 {
                continue;
            }
            self.holds.remove(&name);
            if name.home == self.me {
                // A replaced block: nobody can ask for it any more.
                self.forget(&name);
            } else if let Some(copy) = self.copies.get(&name) {
                self.idle.insert(copy.used, name);
                self.drop_oversized(&name);
            }
        }
        self.shrink();
    }

    /// Drops copies until the bound is kept, the last arrival among them if need be.
    pub(crate) fn trim(&mut self) {
        if let Some(name) = self.fresh.take() {
            self.drop_oversized(&name);
        }
        self.shrink();
    }

    /// A message came in; `size_of` tells the bytes of a block.
    ///
    /// # Errors
    /// A sentence: what no correct rank would have sent.
    pub(crate) fn receive(
        &mut self,
        from: Rank,
        message: BlockMessage<B>,
        size_of: impl Fn(&B) -> usize,
        out: &mut Out<B>,
    ) -> Result<Vec<Event>, String> {
        self.trim();
        match message {
            BlockMessage::Fetch {
                name,
                group,
                reader,
                number,
            } => {
                self.serve(from, name, group, (reader, number), out)?;
                Ok(Vec::new())
            }
            BlockMessage::Delivery {
                name,
                number,
                bytes,
            } => {
                let waited = self.answered(from, &name, number)?.is_some();
                // The answer to one fetch will do for all, and even that to one which was given up.
                if !(self.give_up(&name) || waited) {
                    return Ok(Vec::new());
                }
                let size = size_of(&bytes);
                self.counts.bytes_in += size as u64;
                self.fresh = Some(name);
                self.keep(name, bytes, size);
                Ok(vec![Event::Arrived(name)])
            }
            BlockMessage::Refusal { name, number, why } => {
                if why.name() != name {
                    return Err(format!("a refusal of {name} that is about {}", why.name()));
                }
                let group = self.answered(from, &name, number)?;
                Ok(group
                    .map(|group| Event::Refused(name, group, why))
                    .into_iter()
                    .collect())
            }
        }
    }

    /// Whether this rank waits for no block and keeps nobody waiting.
    ///
    /// Answers to fetches that were given up may still be on their way to it.
    #[cfg(test)]
    pub(crate) fn is_quiet(&self) -> bool {
        self.fetching.is_empty() && self.parked.is_empty()
    }

    /// Counts so far.
    pub(crate) fn counts(&self) -> BlockCounts {
        self.counts
    }

    fn own(&self, id: u64, version: u32) -> BlockName {
        BlockName {
            home: self.me,
            id,
            version,
        }
    }

    /// Tells the state of an own block to tasks of this group.
    fn at_home(&self, name: &BlockName, group: Base) -> AtHome<B> {
        let name = *name;
        let published = self.published.get(&name.id);
        match published {
            Some(own) if own.version == name.version => AtHome::Has(own.bytes.clone()),
            Some(own) if own.version > name.version => AtHome::Never(BlockError::Stale {
                name,
                current: own.version,
            }),
            _ if self.body.may_publish_for(group) => AtHome::Later,
            Some(own) => AtHome::Never(BlockError::Early {
                name,
                current: own.version,
            }),
            None => AtHome::Never(BlockError::Unpublished { name }),
        }
    }

    /// Answers the parked fetches that can be answered now.
    fn answer_parked(&mut self, out: &mut Out<B>) -> Vec<Event> {
        let mut events = Vec::new();
        for ((name, group), readers) in std::mem::take(&mut self.parked) {
            let answer = self.at_home(&name, group);
            if matches!(answer, AtHome::Later) {
                self.parked.insert((name, group), readers);
                continue;
            }
            for reader in readers {
                match (reader, &answer) {
                    (Reader::Other(rank, number), _) => {
                        self.answer(rank, name, number, &answer, out);
                    }
                    (Reader::Own, AtHome::Never(why)) => {
                        events.push(Event::Refused(name, group, *why));
                    }
                    // Tasks of several groups may wait for it: it arrives once.
                    (Reader::Own, _) => {
                        if events.last() != Some(&Event::Arrived(name)) {
                            events.push(Event::Arrived(name));
                        }
                    }
                }
            }
        }
        events
    }

    fn answer(
        &mut self,
        reader: Rank,
        name: BlockName,
        number: u64,
        answer: &AtHome<B>,
        out: &mut Out<B>,
    ) {
        let message = match answer {
            AtHome::Has(bytes) => {
                self.counts.served += 1;
                BlockMessage::Delivery {
                    name,
                    number,
                    bytes: bytes.clone(),
                }
            }
            AtHome::Never(why) => BlockMessage::Refusal {
                name,
                number,
                why: *why,
            },
            AtHome::Later => return,
        };
        out.push((reader, message));
    }

    /// Answers a fetch, passes it on or keeps it.
    fn serve(
        &mut self,
        from: Rank,
        name: BlockName,
        group: Base,
        (reader, number): (Rank, u64),
        out: &mut Out<B>,
    ) -> Result<(), String> {
        if reader == self.me || reader.0 >= self.ranks || name.home.0 >= self.ranks {
            return Err(format!(
                "a fetch of {name} for rank {} that it cannot be for",
                reader.0
            ));
        }
        if from != reader && name.home != self.me {
            return Err(format!(
                "a fetch of {name} passed on to another than its home"
            ));
        }
        let answer = if name.home == self.me {
            self.at_home(&name, group)
        } else if let Some(bytes) = self.copy(&name) {
            AtHome::Has(bytes)
        } else {
            self.counts.forwarded += 1;
            let fetch = BlockMessage::Fetch {
                name,
                group,
                reader,
                number,
            };
            out.push((name.home, fetch));
            return Ok(());
        };
        if matches!(answer, AtHome::Later) {
            let readers = self.parked.entry((name, group)).or_default();
            readers.push(Reader::Other(reader, number));
        }
        self.answer(reader, name, number, &answer, out);
        Ok(())
    }

    fn fetch(&mut self, name: BlockName, group: Base, via: Rank, out: &mut Out<B>) {
        let number = self.next_number;
        self.next_number += 1;
        self.counts.fetches += 1;
        self.fetching
            .insert((name, group), Fetching { number, via });
        let fetch = BlockMessage::Fetch {
            name,
            group,
            reader: self.me,
            number,
        };
        out.push((via, fetch));
    }

    /// An answer is here: the group whose fetch it ends, or none if that was given up before.
    fn answered(
        &mut self,
        from: Rank,
        name: &BlockName,
        number: u64,
    ) -> Result<Option<Base>, String> {
        if self.superseded.get(&number) == Some(name) {
            self.superseded.remove(&number);
            return Ok(None);
        }
        let fetch = self
            .fetching
            .range((*name, Base::MIN)..=(*name, Base::MAX))
            .find(|(_, fetch)| fetch.number == number)
            .map(|(&key, &fetch)| (key, fetch));
        match fetch {
            Some((key, fetch)) if from == fetch.via || from == name.home => {
                self.fetching.remove(&key);
                Ok(Some(key.1))
            }
            Some(_) => Err(format!(
                "an answer about {name} from a rank that was not asked"
            )),
            None => Err(format!("an answer about {name} nobody asked for")),
        }
    }

    /// Waits for no answer about this block any more; false if it did not anyway.
    fn give_up(&mut self, name: &BlockName) -> bool {
        let keys: Vec<_> = self
            .fetching
            .range((*name, Base::MIN)..=(*name, Base::MAX))
            .map(|(&key, _)| key)
            .collect();
        for key in &keys {
            if let Some(fetch) = self.fetching.remove(key) {
                self.superseded.insert(fetch.number, *name);
            }
        }
        !keys.is_empty()
    }

    /// A copy's bytes; that is a use of it.
    fn copy(&mut self, name: &BlockName) -> Option<B> {
        let copy = self.copies.get_mut(name)?;
        self.uses += 1;
        if self.idle.remove(&copy.used).is_some() {
            self.idle.insert(self.uses, *name);
        }
        copy.used = self.uses;
        Some(copy.bytes.clone())
    }

    /// Adds a copy and makes room for it.
    fn keep(&mut self, name: BlockName, bytes: B, size: usize) {
        self.forget(&name);
        self.uses += 1;
        let used = self.uses;
        if !self.holds.contains_key(&name) {
            self.idle.insert(used, name);
        }
        self.copies.insert(name, Cached { bytes, size, used });
        self.copied += size;
        self.shrink();
        self.counts.bytes_held_peak = self.counts.bytes_held_peak.max(self.copied as u64);
    }

    /// Removes a copy, if there is one.
    fn forget(&mut self, name: &BlockName) {
        if let Some(copy) = self.copies.remove(name) {
            self.copied -= copy.size;
            self.idle.remove(&copy.used);
        }
    }

    /// The size of a copy nobody holds, if it alone is over the bound.
    fn oversized(&self, name: &BlockName) -> Option<usize> {
        let copy = self.copies.get(name)?;
        let idle = self.idle.contains_key(&copy.used);
        (idle && copy.size > self.bound).then_some(copy.size)
    }

    /// Drops the least recently used of the copies nobody holds, until the bound is kept.
    fn shrink(&mut self) {
        // One that will not fit even then is not worth the others.
        let spared = self.fresh.and_then(|name| self.oversized(&name));
        while self.copied - spared.unwrap_or(0) > self.bound {
            let fresh = self.fresh;
            let oldest = self.idle.values().find(|&&name| Some(name) != fresh);
            let Some(&name) = oldest else { return };
            self.forget(&name);
            self.counts.dropped += 1;
        }
    }

    /// A copy that alone is over the bound goes before others have to.
    fn drop_oversized(&mut self, name: &BlockName) {
        if self.fresh != Some(*name) && self.oversized(name).is_some() {
            self.forget(name);
            self.counts.dropped += 1;
        }
    }
}

#[cfg(test)]
mod tests;
