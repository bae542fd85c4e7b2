//! Which place to name, when ranks have come upon different ones: an error is the same on all of them.
//!
//! Ranks agree on that in every step, and so hear of each other then whatever else they have to say.

use weft_runtime::comm::{Collectives, Comm, CommError, Rank};
use weft_runtime::wire;

/// A place at which something is wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Fault {
    /// The least of all is named.
    pub(super) key: f64,
    /// A vertex or a triangle, as numbered in the patch tree; decides between equal keys.
    pub(super) vertex: u32,
}

impl Fault {
    /// The one to be named.
    pub(super) fn worse(self, other: Self) -> Self {
        let order = (self.key.total_cmp(&other.key)).then(self.vertex.cmp(&other.vertex));
        if order.is_le() { self } else { other }
    }
}

/// The fault to be named of those that ranks have found, the same on all; `None` if there is none. Collective.
pub(super) fn agree(comm: &mut dyn Comm, own: Option<Fault>) -> Result<Option<Fault>, CommError> {
    agree_and_hear(comm, own, &[]).map(|(fault, _)| fault)
}

/// The same, and what each rank says, by rank. Collective.
pub(super) fn agree_and_hear(
    comm: &mut dyn Comm,
    own: Option<Fault>,
    said: &[u8],
) -> Result<(Option<Fault>, Vec<Vec<u8>>), CommError> {
    if comm.size() == 1 {
        return Ok((own, vec![said.to_vec()]));
    }
    let malformed = |from| move |what| CommError::Malformed { from, what };
    let own = wire::encode(&(own.map(|fault| (fault.key, fault.vertex)), said));
    let unsendable = CommError::unsendable(comm.rank(), "what it says in a step");
    let all = comm.allgather(own.map_err(unsendable)?)?;
    let mut named: Option<Fault> = None;
    let mut heard = Vec::with_capacity(all.len());
    for (from, bytes) in (0..).map(Rank).zip(&all) {
        let (fault, said): (Option<(f64, u32)>, Vec<u8>) =
            wire::decode(bytes).map_err(malformed(from))?;
        heard.push(said);
        let fault = fault.map(|(key, vertex)| Fault { key, vertex });
        named = match (named, fault) {
            (Some(a), Some(b)) => Some(a.worse(b)),
            (a, b) => a.or(b),
        };
    }
    Ok((named, heard))
}

#[cfg(test)]
mod tests {
    use weft_runtime::comm::threads;

    use super::*;

    #[test]
    fn ranks_name_the_least_and_some_have_none() {
        let found = [None, Some((-2.0, 9)), Some((1.0, 3)), Some((-2.0, 8))];
        let named = threads::launch(4, |comm| {
            let own = found[comm.rank().index()].map(|(key, vertex)| Fault { key, vertex });
            agree(comm, own).unwrap().map(|fault| fault.vertex)
        });
        assert_eq!(named.unwrap(), [Some(8); 4]);
        let nothing = threads::launch(2, |comm| agree(comm, None).unwrap()).unwrap();
        assert_eq!(nothing, [None, None]);
    }

    #[test]
    fn ranks_hear_what_each_of_them_says() {
        let said = [&[][..], &[1, 2], &[3]];
        for ranks in [1, 3] {
            let heard = threads::launch(ranks, |comm| {
                let said = said[comm.rank().index()];
                agree_and_hear(comm, None, said).unwrap().1
            });
            assert!(heard.unwrap().iter().all(|heard| *heard == said[..ranks]));
        }
    }
}
