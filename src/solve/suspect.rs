//! Which vertex is to blame, when numbers that all ranks share say that something is wrong.
//!
//! Every rank offers the worst vertex it owns, or none, and all of them name the same one: an error
//! is the same on every rank and leaves nobody waiting.

use weft_runtime::comm::{Collectives, Comm, CommError, Rank};

/// A vertex that may be at fault; the least of all ranks' is named.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Suspect {
    pub(super) class: u32,
    pub(super) key: f64,
    pub(super) vertex: u32,
}

impl Suspect {
    pub(super) fn order(a: &Self, b: &Self) -> std::cmp::Ordering {
        (a.class.cmp(&b.class))
            .then(a.key.total_cmp(&b.key))
            .then(a.vertex.cmp(&b.vertex))
    }

    fn to_bytes(self) -> Vec<u8> {
        let mut bytes = self.class.to_le_bytes().to_vec();
        bytes.extend(self.key.to_le_bytes());
        bytes.extend(self.vertex.to_le_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (class, rest) = bytes.split_first_chunk()?;
        let (key, rest) = rest.split_first_chunk()?;
        Some(Self {
            class: u32::from_le_bytes(*class),
            key: f64::from_le_bytes(*key),
            vertex: u32::from_le_bytes(rest.try_into().ok()?),
        })
    }
}

/// The least suspect of all ranks, the same everywhere; `None` if there is none. Collective.
pub(super) fn agree(
    comm: &mut dyn Comm,
    own: Option<Suspect>,
) -> Result<Option<Suspect>, CommError> {
    let all = comm.allgather(own.map(Suspect::to_bytes).unwrap_or_default())?;
    let mut least: Option<Suspect> = None;
    for (from, bytes) in (0..)
        .map(Rank)
        .zip(&all)
        .filter(|(_, bytes)| !bytes.is_empty())
    {
        let suspect = Suspect::from_bytes(bytes).ok_or_else(|| CommError::Malformed {
            from,
            what: "not a suspect vertex".to_owned(),
        })?;
        if least.is_none_or(|least| Suspect::order(&suspect, &least).is_lt()) {
            least = Some(suspect);
        }
    }
    Ok(least)
}

#[cfg(test)]
mod tests {
    use weft_runtime::comm::threads;

    use super::*;

    #[test]
    fn ranks_agree_on_the_least_and_some_may_have_none() {
        let offers = [
            None,
            Some((1, -5.0, 7)),
            Some((0, 2.0, 9)),
            Some((0, 2.0, 8)),
        ];
        let named = threads::launch(4, |comm| {
            let own = offers[comm.rank().index()];
            let own = own.map(|(class, key, vertex)| Suspect { class, key, vertex });
            agree(comm, own).unwrap().map(|suspect| suspect.vertex)
        });
        assert_eq!(named.unwrap(), [Some(8); 4]);
        let nobody = threads::launch(3, |comm| agree(comm, None).unwrap().is_none());
        assert_eq!(nobody.unwrap(), [true; 3]);
    }

    #[test]
    fn an_offer_that_cannot_be_read_names_its_sender() {
        let errors = threads::launch(2, |comm| {
            if comm.rank() == Rank(1) {
                comm.allgather(vec![0; 15]).unwrap();
                return None;
            }
            agree(comm, None).err()
        });
        let error = errors.unwrap().swap_remove(0);
        assert!(
            matches!(error, Some(CommError::Malformed { from: Rank(1), .. })),
            "{error:?}"
        );
    }
}
