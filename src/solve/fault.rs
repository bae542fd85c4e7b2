//! Agreement on which fault to name, when ranks have come upon different ones.
//!
//! Every rank offers the worst fault that it has found, or none, and all of them name the same one.
//! So an error is the same on every rank, and leaves no rank waiting. Ranks that agree in every
//! step tell each other then whatever else they have to say.

use weft_runtime::comm::{Collectives, Comm, CommError, Rank};
use weft_runtime::wire;

/// A place at which something is wrong. The least of all is named: by class, then by key, then by
/// vertex.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Fault {
    /// The kind of the fault, where there are several.
    pub(crate) class: u32,
    pub(crate) key: f64,
    /// A vertex or a triangle, as numbered in the patch tree.
    pub(crate) vertex: u32,
}

/// A fault as it travels.
type Encoded = (u32, f64, u32);

impl Fault {
    /// Makes a fault where there is only one kind.
    pub(crate) fn at(vertex: u32, key: f64) -> Self {
        Self {
            class: 0,
            key,
            vertex,
        }
    }

    /// Returns the one of two that is to be named.
    pub(crate) fn worse(self, other: Self) -> Self {
        let order = (self.class.cmp(&other.class))
            .then(self.key.total_cmp(&other.key))
            .then(self.vertex.cmp(&other.vertex));
        if order.is_le() { self } else { other }
    }
}

/// Agrees on the fault to be named of those that ranks have found; `None` if there is none.
/// Collective.
pub(crate) fn agree(comm: &mut dyn Comm, own: Option<Fault>) -> Result<Option<Fault>, CommError> {
    let own = Own {
        fault: own,
        ..Own::default()
    };
    agree_and_hear(comm, own).map(|heard| heard.fault)
}

/// The contribution of a rank to a collective.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Own<'a> {
    /// The worst fault that it has found.
    pub(crate) fault: Option<Fault>,
    /// Something that may be so on some ranks.
    pub(crate) flag: bool,
    /// Its message to all ranks.
    pub(crate) said: &'a [u8],
}

/// The result of a collective on a rank.
#[derive(Clone, Debug)]
pub(crate) struct Heard {
    /// The fault to be named.
    pub(crate) fault: Option<Fault>,
    /// Whether the flag is set on some rank.
    pub(crate) flag: bool,
    /// The message of each rank, by rank.
    pub(crate) said: Vec<Vec<u8>>,
}

/// Agrees on a fault as [`agree`] does, and returns with it what all ranks offer. Collective.
pub(crate) fn agree_and_hear(comm: &mut dyn Comm, own: Own<'_>) -> Result<Heard, CommError> {
    let Own { fault, flag, said } = own;
    if comm.size() == 1 {
        let said = vec![said.to_vec()];
        return Ok(Heard { fault, flag, said });
    }
    let malformed = |from| move |what| CommError::Malformed { from, what };
    let own: Option<Encoded> = fault.map(|fault| (fault.class, fault.key, fault.vertex));
    let own = wire::encode(&(own, flag, said));
    let unsendable = CommError::unsendable(comm.rank(), "what it says in a step");
    let all = comm.allgather(own.map_err(unsendable)?)?;
    let mut heard = Heard {
        fault: None,
        flag: false,
        said: Vec::with_capacity(all.len()),
    };
    for (from, bytes) in (0..).map(Rank).zip(&all) {
        let (fault, flag, said): (Option<Encoded>, bool, Vec<u8>) =
            wire::decode(bytes).map_err(malformed(from))?;
        heard.flag |= flag;
        heard.said.push(said);
        let fault = fault.map(|(class, key, vertex)| Fault { class, key, vertex });
        heard.fault = match (heard.fault, fault) {
            (Some(a), Some(b)) => Some(a.worse(b)),
            (a, b) => a.or(b),
        };
    }
    Ok(heard)
}

#[cfg(test)]
mod tests {
    use weft_runtime::comm::threads;

    use super::*;

    #[test]
    fn ranks_name_the_least_and_some_have_none() {
        let fault = |class, key, vertex| Some(Fault { class, key, vertex });
        for (found, least) in [
            // By key where classes are equal, by vertex where keys are.
            (
                [None, fault(0, -2.0, 9), fault(0, 1.0, 3), fault(0, -2.0, 8)],
                8,
            ),
            // By class before all else.
            (
                [None, fault(1, -5.0, 7), fault(0, 2.0, 9), fault(0, 2.0, 8)],
                8,
            ),
            ([fault(0, 0.0, 4), None, None, fault(0, f64::NAN, 1)], 4),
        ] {
            let named = threads::launch(4, |comm| {
                let own = found[comm.rank().index()];
                agree(comm, own).unwrap().map(|fault| fault.vertex)
            });
            assert_eq!(named.unwrap(), [Some(least); 4]);
        }
        for ranks in [1, 3] {
            let nothing = threads::launch(ranks, |comm| agree(comm, None).unwrap()).unwrap();
            assert!(nothing.iter().all(Option::is_none));
        }
    }

    #[test]
    fn ranks_hear_what_each_of_them_says() {
        let said = [&[][..], &[1, 2], &[3]];
        for ranks in [1, 3] {
            let heard = threads::launch(ranks, |comm| {
                let me = comm.rank().index();
                let own = Own {
                    fault: None,
                    flag: me == 2,
                    said: said[me],
                };
                agree_and_hear(comm, own).unwrap()
            });
            for heard in heard.unwrap() {
                assert_eq!(heard.flag, ranks == 3);
                assert_eq!(heard.said, said[..ranks]);
            }
        }
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
