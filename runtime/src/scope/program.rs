//! As a scope begins: its tag, and whether all ranks run the same program.

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

/// Finding out whether all ranks run the same program as rank 0, whose word is passed on along a binomial tree. Nobody waits for it to begin;
/// but no message of the scope is read before, and nobody leaves.
/// Where deaths are survived, who hears nothing because the one before died passes on its own.
pub(super) struct Comparison {
    ours: String,
    recover: bool,
    /// The rank that passes the word on to this one, if it has not yet.
    due: Option<Rank>,
}

impl Comparison {
    /// Begins it: rank 0 sends its word.
    pub(super) fn begin<E: ?Sized>(
        comm: &mut dyn Comm,
        registry: &Registry<E>,
        recover: bool,
    ) -> Result<Self, ScopeError> {
        let me = comm.rank();
        let comparison = Self {
            ours: registry.names().collect::<Vec<_>>().join(", "),
            recover,
            due: (me.0 > 0).then(|| Rank(me.0 - lowest_bit(me.0))),
        };
        if me.0 == 0 {
            comparison.pass_on(comm, &comparison.word())?;
        }
        Ok(comparison)
    }

    /// Looks whether the word has come.
    pub(super) fn look(&mut self, comm: &mut dyn Comm) -> Result<(), ScopeError> {
        if self.due.is_some()
            && let Some(message) = comm.try_recv(PROGRAM)?
        {
            self.compare(comm, &message.bytes)?;
        }
        Ok(())
    }

    /// Waits for it.
    pub(super) fn finish(&mut self, comm: &mut dyn Comm) -> Result<(), ScopeError> {
        let Some(before) = self.due else {
            return Ok(());
        };
        let word = match comm.recv_from(before, PROGRAM) {
            Ok(bytes) => bytes,
            Err(CommError::Died { rank }) if self.recover && rank == before => self.word(),
            Err(error) => return Err(error.into()),
        };
        self.compare(comm, &word)
    }

    fn word(&self) -> Vec<u8> {
        let mut word = vec![u8::from(self.recover)];
        word.extend(self.ours.as_bytes());
        word
    }

    fn pass_on(&self, comm: &mut dyn Comm, word: &[u8]) -> Result<(), ScopeError> {
        let (me, size) = (comm.rank().0, comm.size() as u32);
        let mut bit = if me == 0 {
            size.next_power_of_two()
        } else {
            lowest_bit(me)
        };
        while bit > 1 {
            bit /= 2;
            if me + bit < size {
                comm.send(Rank(me + bit), PROGRAM, word.to_vec())?;
            }
        }
        Ok(())
    }

    fn compare(&mut self, comm: &mut dyn Comm, theirs: &[u8]) -> Result<(), ScopeError> {
        self.due = None;
        self.pass_on(comm, theirs)?;
        let (rank, other) = (comm.rank(), Rank(0));
        let error = match theirs.split_first() {
            Some((&flag, names)) if names == self.ours.as_bytes() => {
                if flag == u8::from(self.recover) {
                    return Ok(());
                }
                let ours = self.recover;
                ScopeError::Options { rank, other, ours }
            }
            names => ScopeError::Registries {
                rank,
                other,
                ours: self.ours.clone(),
                theirs: names.map_or_else(String::new, |(_, names)| {
                    String::from_utf8_lossy(names).into_owned()
                }),
            },
        };
        comm.abort(&error.to_string());
        Err(error)
    }
}

fn lowest_bit(number: u32) -> u32 {
    1 << number.trailing_zeros()
}
