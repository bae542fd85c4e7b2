//! Before a scope begins: its tag, and whether all ranks run the same program.

use super::ScopeError;
use crate::comm::{Comm, CommError, Rank, Tag};
use crate::task::Registry;

/// Messages of scopes: each has a tag of its own, so that a late one cannot meet the next scope.
const FIRST_TAG: u16 = 0x8000;
const TAGS: u16 = 0x4000;
/// What rank 0 says before them.
const PROGRAM: Tag = Tag(FIRST_TAG + TAGS);

/// The tag of the next scope.
pub(super) fn open_tag(comm: &mut dyn Comm) -> Tag {
    let place = (comm.next_epoch() % u32::from(TAGS)) as u16;
    // Half a round ahead: nobody sends with it yet, and nothing of its last use is left.
    comm.reopen(Tag(FIRST_TAG + (place + TAGS / 2) % TAGS));
    Tag(FIRST_TAG + place)
}

/// Makes sure that all ranks run the same program as rank 0, whose word is passed on along a binomial tree.
/// Where deaths are survived, who hears nothing because the one before died passes on its own.
pub(super) fn compare_programs<E: ?Sized>(
    comm: &mut dyn Comm,
    registry: &Registry<E>,
    recover: bool,
) -> Result<(), ScopeError> {
    let ours = registry.names().collect::<Vec<_>>().join(", ");
    let (me, size) = (comm.rank(), comm.size() as u32);
    let mut word = vec![u8::from(recover)];
    word.extend(ours.as_bytes());
    let mut bit = 1;
    while bit < size && me.0 & bit == 0 {
        bit *= 2;
    }
    let mut theirs = word;
    if me.0 > 0 {
        let before = Rank(me.0 - bit);
        match comm.recv_from(before, PROGRAM) {
            Ok(bytes) => theirs = bytes,
            Err(CommError::Died { rank }) if recover && rank == before => {}
            Err(error) => return Err(error.into()),
        }
    }
    while bit > 1 {
        bit /= 2;
        if me.0 + bit < size {
            comm.send(Rank(me.0 + bit), PROGRAM, theirs.clone())?;
        }
    }
    let (rank, other) = (me, Rank(0));
    let error = match theirs.split_first() {
        Some((&flag, names)) if names == ours.as_bytes() => {
            if flag == u8::from(recover) {
                return Ok(());
            }
            let ours = recover;
            ScopeError::Options { rank, other, ours }
        }
        names => ScopeError::Registries {
            rank,
            other,
            ours,
            theirs: names.map_or_else(String::new, |(_, names)| {
                String::from_utf8_lossy(names).into_owned()
            }),
        },
    };
    comm.abort(&error.to_string());
    Err(error)
}
