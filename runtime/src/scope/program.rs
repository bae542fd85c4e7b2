//! The tag of a scope, and whether all ranks run the same program.
//!
//! The first that a rank sends to another is what it has registered, and none reads on that has registered something else. Nobody waits for that
//! before its own tasks; and as ranks find the end together, along a tree, none ends a scope with one that differs.

use super::ScopeError;
use crate::comm::{Comm, Rank, Tag};

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

/// What a rank has told others of its program, and heard from them.
pub(super) struct Introductions {
    /// Whether deaths are survived here, and what is registered.
    word: Vec<u8>,
    told: Vec<bool>,
    heard: Vec<bool>,
}

impl Introductions {
    pub(super) fn new(ranks: usize, names: &str, recover: bool) -> Self {
        let mut word = vec![u8::from(recover)];
        word.extend(names.as_bytes());
        Self {
            word,
            told: vec![false; ranks],
            heard: vec![false; ranks],
        }
    }

    /// What is to be sent to a rank before a message, if that is the first.
    pub(super) fn before(&mut self, to: Rank) -> Option<Vec<u8>> {
        let told = self.told.get_mut(to.index())?;
        (!std::mem::replace(told, true)).then(|| self.word.clone())
    }

    /// Whether bytes from a rank are its word, which is the first that it sends.
    pub(super) fn hear(&mut self, me: Rank, from: Rank, bytes: &[u8]) -> Result<bool, ScopeError> {
        let Some(heard) = self.heard.get_mut(from.index()) else {
            return Ok(false);
        };
        if std::mem::replace(heard, true) {
            return Ok(false);
        }
        if bytes == self.word {
            return Ok(true);
        }
        let text = |names: &[u8]| String::from_utf8_lossy(names).into_owned();
        Err(match (self.word.split_first(), bytes.split_first()) {
            (Some((&ours, mine)), Some((_, names))) if names == mine => ScopeError::Options {
                rank: me,
                other: from,
                ours: ours > 0,
            },
            (mine, theirs) => ScopeError::Registries {
                rank: me,
                other: from,
                ours: mine.map_or_else(String::new, |(_, names)| text(names)),
                theirs: theirs.map_or_else(String::new, |(_, names)| text(names)),
            },
        })
    }
}
