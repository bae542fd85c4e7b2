//! Files that all ranks make together: rank 0 begins, each rank writes its part, and rank 0
//! completes them when all parts are there. All ranks learn alike how it ended.

use serde::Serialize;
use serde::de::DeserializeOwned;
use weft_runtime::comm::{Collectives as _, Comm, CommError, Rank};
use weft_runtime::wire;

use super::RunError;
use super::error::malformed;
use crate::output::OutputError;

/// Has all ranks write their parts, as rank 0 plans it.
///
/// `begun` is what rank 0 keeps meanwhile, and its plan for the others, which have none. `part`
/// writes the part of a rank by that plan, and `complete` makes the whole of what all ranks have
/// returned, by rank. Rank 0 gets the result. Collective.
///
/// # Errors
/// The error of the first rank that had one, on all ranks; what rank 0 keeps is dropped then.
/// Messages failed.
pub(super) fn write_together<K, P, T, R>(
    comm: &mut dyn Comm,
    begun: Option<Result<(K, P), OutputError>>,
    part: impl FnOnce(&P) -> Result<T, OutputError>,
    complete: impl FnOnce(K, Vec<T>) -> Result<R, OutputError>,
) -> Result<Option<R>, RunError>
where
    P: Serialize + DeserializeOwned,
    T: Serialize + DeserializeOwned,
{
    let me = comm.rank();
    let (mut kept, mut plan, mut error) = (None, None, None);
    match begun {
        Some(Ok((of_first, for_all))) => (kept, plan) = (Some(of_first), Some(for_all)),
        Some(Err(failed)) => error = Some(failed),
        None => {}
    }
    let plan: Option<P> = broadcast(comm, Some(&plan))?;
    let said = match plan.as_ref().map(part) {
        Some(Ok(part)) => Ok(Some(part)),
        None => Ok(None),
        Some(Err(failed)) => {
            let said = failed.to_string();
            error = Some(failed);
            Err(said)
        }
    };
    let said: Result<Option<T>, String> = said;
    let mut result = None;
    let mut failure: Option<(u32, String)> = None;
    if let Some(all) = gather(comm, &said)? {
        let mut parts = Vec::with_capacity(all.len());
        for (rank, said) in (0..).zip(all) {
            match said {
                Ok(part) => parts.extend(part),
                Err(what) => failure = failure.or(Some((rank, what))),
            }
        }
        if let (Some(kept), None) = (kept, &failure) {
            match complete(kept, parts) {
                Ok(whole) => result = Some(whole),
                Err(failed) => error = Some(failed),
            }
        }
        if let (Some(failed), None) = (&error, &failure) {
            failure = Some((me.0, failed.to_string()));
        }
    }
    let failure: Option<(u32, String)> = broadcast(comm, Some(&failure))?;
    match failure {
        None => Ok(result),
        Some((rank, what)) => Err(of_rank(me, error, Rank(rank), what).into()),
    }
}

/// Makes sure that all ranks have what they wanted, as from reading their parts of a file.
/// Collective.
///
/// # Errors
/// The error of the first rank that had one, on all ranks, or messages failed.
pub(super) fn agree<T>(comm: &mut dyn Comm, own: Result<T, OutputError>) -> Result<T, RunError> {
    let me = comm.rank();
    let said = own.as_ref().err().map(ToString::to_string);
    let bytes = wire::encode(&said);
    let bytes = bytes.map_err(CommError::unsendable(me, "how its part went"))?;
    for (from, bytes) in (0..).map(Rank).zip(comm.allgather(bytes)?) {
        let said: Option<String> = wire::decode(&bytes).map_err(malformed(from))?;
        if let Some(what) = said {
            return Err(of_rank(me, own.err(), from, what).into());
        }
    }
    Ok(own?)
}

/// The error of a rank, as this one tells it.
fn of_rank(me: Rank, own: Option<OutputError>, rank: Rank, what: String) -> OutputError {
    match own {
        // The first rank is the one that has the directory.
        Some(own) if me == rank && me == Rank(0) => own,
        _ => OutputError::OnRank { rank: rank.0, what },
    }
}

/// One value of each rank, on rank 0. Collective.
pub(super) fn gather<T: Serialize + DeserializeOwned>(
    comm: &mut dyn Comm,
    own: &T,
) -> Result<Option<Vec<T>>, CommError> {
    let own = wire::encode(own);
    let own = own.map_err(CommError::unsendable(comm.rank(), "what it did in the run"))?;
    let Some(gathered) = comm.gather(Rank(0), own)? else {
        return Ok(None);
    };
    let decode = |(from, bytes): (Rank, &Vec<u8>)| wire::decode(bytes).map_err(malformed(from));
    let all: Result<Vec<T>, _> = (0..).map(Rank).zip(&gathered).map(decode).collect();
    all.map(Some)
}

/// Rank 0's value, on all. Collective; only rank 0 has one.
pub(super) fn broadcast<T: DeserializeOwned>(
    comm: &mut dyn Comm,
    own: Option<impl Serialize>,
) -> Result<T, CommError> {
    let own = own.map_or_else(|| Ok(Vec::new()), |own| wire::encode(&own));
    let own = own.map_err(CommError::unsendable(
        comm.rank(),
        "what all ranks are to know",
    ))?;
    let bytes = comm.broadcast(Rank(0), own)?;
    wire::decode(&bytes).map_err(malformed(Rank(0)))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use weft_runtime::comm::threads::launch;

    use super::*;

    fn failed(what: &str) -> OutputError {
        OutputError::Inconsistent {
            path: "file".into(),
            what: what.to_owned(),
        }
    }

    /// Counts itself out when it goes.
    struct Kept<'a>(&'a AtomicUsize);

    impl Drop for Kept<'_> {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn all_ranks_learn_alike_how_it_ended() {
        for (begins, fails, completes) in [
            (true, None, true),
            (false, None, true),
            (true, Some(2), true),
            (true, Some(0), true),
            (true, None, false),
        ] {
            let dropped = AtomicUsize::new(0);
            let outcomes = launch(4, |comm| {
                let me = comm.rank().0;
                let begun = (me == 0).then(|| match begins {
                    true => Ok((Kept(&dropped), 7_u32)),
                    false => Err(failed("begin")),
                });
                let part = |plan: &u32| match fails {
                    Some(rank) if rank == me => Err(failed("part")),
                    _ => Ok(plan + me),
                };
                let complete = |_: Kept<'_>, parts: Vec<u32>| match completes {
                    true => Ok(parts),
                    false => Err(failed("complete")),
                };
                write_together(comm, begun, part, complete)
            });
            let case = format!("{begins} {fails:?} {completes}");
            assert_eq!(dropped.into_inner(), usize::from(begins), "{case}");
            let good = begins && fails.is_none() && completes;
            for (rank, outcome) in outcomes.unwrap().into_iter().enumerate() {
                if good {
                    let expected = (rank == 0).then(|| vec![7, 8, 9, 10]);
                    assert_eq!(outcome.unwrap(), expected);
                    continue;
                }
                let error = outcome.unwrap_err();
                assert_eq!(error.exit_code(), 5, "{case}: {error}");
                let said = error.to_string();
                let what = match (begins, fails) {
                    (false, _) => "begin",
                    (true, Some(_)) => "part",
                    (true, None) => "complete",
                };
                assert!(said.contains(what), "{case}: {said}");
                let first = fails.unwrap_or(0);
                let named = format!("rank {first}: ");
                assert_eq!(
                    said.contains(&named),
                    (rank, first) != (0, 0),
                    "{case}: {said}"
                );
            }
        }
    }

    #[test]
    fn an_error_of_one_rank_is_one_of_all() {
        let outcomes = launch(3, |comm| {
            let own = match comm.rank() {
                Rank(1) => Err(failed("read")),
                Rank(rank) => Ok(rank),
            };
            agree(comm, own).unwrap_err().to_string()
        });
        for said in outcomes.unwrap() {
            assert!(said.starts_with("rank 1: file"), "{said}");
        }
        let outcomes = launch(3, |comm| {
            let own = Ok(comm.rank().0);
            agree(comm, own).unwrap()
        });
        assert_eq!(outcomes.unwrap(), [0, 1, 2]);
    }
}
