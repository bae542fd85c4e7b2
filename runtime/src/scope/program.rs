//! The tag of a scope, and whether all ranks run the same program.
//!
//! Before the first message from one rank to another stands what it has registered, and none reads
//! on that has registered something else. Nobody waits for that before its own tasks; and as ranks
//! find the end together, along a tree, none ends a scope with one that differs.

use super::ScopeError;
use crate::comm::{Comm, CommError, Rank, Tag};
use crate::wire;

/// Messages of scopes: each has a tag of its own, so that a late one cannot meet the next scope.
const FIRST_TAG: u16 = 0x8000;
const TAGS: u16 = 0x4000;

/// The tag of the next scope.
pub(super) fn open_tag(comm: &mut dyn Comm) -> Tag {
    let place = (comm.next_epoch() % u32::from(TAGS)) as u16;
    // Half a round ahead: nobody sends with it yet, and nothing of its last use is left.
    comm.reopen(Tag(FIRST_TAG + (place + TAGS / 2) % TAGS));
    Tag(FIRST_TAG + place)
}

/// The introductions of a rank's program to others, and of theirs to it.
pub(super) struct Introductions {
    /// The registered kinds of task, encoded.
    word: Vec<u8>,
    told: Vec<bool>,
    heard: Vec<bool>,
}

impl Introductions {
    pub(super) fn new((me, ranks): (Rank, usize), names: &str) -> Result<Self, ScopeError> {
        let word = wire::encode(&names);
        let word = word.map_err(CommError::unsendable(me, "which tasks it has registered"))?;
        Ok(Self {
            word,
            told: vec![false; ranks],
            heard: vec![false; ranks],
        })
    }

    /// The introduction that stands before a message to a rank, if that is the first.
    pub(super) fn before(&mut self, to: Rank) -> Option<Vec<u8>> {
        let told = self.told.get_mut(to.index())?;
        (!std::mem::replace(told, true)).then(|| {
            let mut all = (self.word.len() as u32).to_le_bytes().to_vec();
            all.extend(&self.word);
            all
        })
    }

    /// The message in what a rank has sent, behind its word if that stands before it.
    pub(super) fn hear<'a>(
        &mut self,
        me: Rank,
        from: Rank,
        bytes: &'a [u8],
    ) -> Result<&'a [u8], ScopeError> {
        let heard = self.heard.get_mut(from.index());
        if heard.is_none_or(|heard| std::mem::replace(heard, true)) {
            return Ok(bytes);
        }
        let split = bytes.split_at_checked(4).and_then(|(length, rest)| {
            let length = u32::from_le_bytes(length.try_into().ok()?);
            rest.split_at_checked(length as usize)
        });
        let Some((word, message)) = split else {
            let what = "no word of which tasks it knows".to_owned();
            return Err(CommError::Malformed { from, what }.into());
        };
        self.compare(me, from, word)?;
        Ok(message)
    }

    /// Whether a rank says the same as this one.
    fn compare(&self, me: Rank, from: Rank, bytes: &[u8]) -> Result<(), ScopeError> {
        if bytes == self.word {
            return Ok(());
        }
        let read = |bytes: &[u8]| {
            wire::decode::<String>(bytes).map_err(|what| CommError::Malformed { from, what })
        };
        Err(ScopeError::Registries {
            rank: me,
            other: from,
            ours: read(&self.word)?,
            theirs: read(bytes)?,
        })
    }
}
