//! Limits of messages: one that is longer than others would read is refused where it would be sent,
//! by name and size.

use crate::common::{on_threads, on_virtual, rough, seeded, workers};
use serde::{Deserialize, Serialize};
use weft_runtime::comm::solo::Solo;
use weft_runtime::comm::{CommError, Rank};
use weft_runtime::wire::EncodeError;
use weft_runtime::{
    BlockError, BlockName, Context, Failure, Registry, Scope, ScopeError, ScopeOptions, Step, Task,
    TaskError, scope,
};

/// The longest message, in bytes, and the longest part of one.
const LONGEST: usize = 6400;
const PART: usize = 6300;
/// Tasks that are forked on one rank.
const TASKS: usize = 40;

fn limited(options: ScopeOptions) -> ScopeOptions {
    ScopeOptions {
        longest: LONGEST,
        ..options
    }
}

/// Carries bytes, gives others and posts some to rank 0.
#[derive(Serialize, Deserialize)]
struct Carrier {
    load: String,
    gives: usize,
    posts: usize,
    slices: u32,
}

impl Task<()> for Carrier {
    const NAME: &'static str = "carrier";
    type Output = (String, Rank);

    fn run(&mut self, _env: &(), cx: &mut Context<'_, (), (String, Rank)>) -> Step<(String, Rank)> {
        cx.charge(u64::from(cx.budget()));
        self.slices -= 1;
        if self.slices > 0 {
            return Step::More;
        }
        if self.posts > 0 {
            cx.post(Rank(0), vec![1; self.posts]);
        }
        Step::Done(("x".repeat(self.gives), cx.rank()))
    }
}

fn carrier(load: usize, gives: usize) -> Carrier {
    Carrier {
        load: "x".repeat(load),
        gives,
        posts: 0,
        slices: 20,
    }
}

/// Rank 1 forks tasks that all carry and give as much; what came of each, and whether it had
/// stayed.
fn carry(
    s: &mut Scope<'_, ()>,
    (load, gives): (usize, usize),
) -> Result<Vec<Result<bool, TaskError>>, ScopeError> {
    let group = s.group();
    if s.rank() == Rank(1) {
        for _ in 0..TASKS {
            s.fork(&group, carrier(load, gives))?;
        }
    }
    let mut came = Vec::new();
    while let Some(result) = s.join(&group)? {
        came.push(result.map(|(text, rank)| {
            assert_eq!(text.len(), gives);
            rank == Rank(1)
        }));
    }
    Ok(came)
}

/// The results, at home, of tasks with arguments and results of these sizes, on several drivers.
fn carried(sizes: (usize, usize)) -> Vec<Result<bool, TaskError>> {
    let registry = Registry::new().with::<Carrier>();
    let body = |s: &mut Scope<'_, ()>| carry(s, sizes);
    let mut all = Vec::new();
    for n in [1, 2] {
        let options = limited(workers(n));
        let ended = on_threads(3, &options, &registry, || (), body);
        all.extend(ended.into_iter().map(|end| end.unwrap().0));
    }
    for seed in 0..5 {
        let options = limited(seeded(seed));
        let ended = on_virtual(5, &rough(seed), &options, &registry, || (), body);
        all.extend(ended.results.into_iter().map(|end| end.unwrap().0));
    }
    let all: Vec<_> = all.into_iter().flatten().collect();
    assert_eq!(all.len(), 7 * TASKS);
    all
}

/// The encoded task has four lengths beside its load: of the load, of what it gives and posts, and
/// its slices.
const AROUND_LOAD: usize = 3 * 8 + 4;

#[test]
fn a_task_that_is_too_long_to_be_stolen_is_an_error_of_its_own() {
    // A few at a time, so that the answer with all of them is not too long.
    let fits = carried((LONGEST / 64 - AROUND_LOAD, 0));
    assert!(fits.iter().all(Result::is_ok) && fits.contains(&Ok(false)));
    let load = PART - AROUND_LOAD + 1;
    let too_long = carried((load, 0));
    let told = format!(
        "it is 6.3 kB ({} bytes) long, and ranks read no more than 6.3 kB ({PART} bytes) at once",
        PART + 1
    );
    let mut refused = 0;
    for came in &too_long {
        match came {
            Ok(stayed) => assert!(stayed, "it travelled"),
            Err(error) => {
                let cause = Failure::Unsendable(told.clone());
                assert_eq!((&error.task[..], &error.cause), ("carrier", &cause));
                refused += 1;
            }
        }
    }
    assert!(refused > 0 && refused < too_long.len());
}

#[test]
fn a_result_that_is_too_long_to_come_home_is_an_error_of_its_task() {
    // It says on which rank it ran, with four bytes.
    let gives = PART - 8 - 4 + 1;
    let told = format!(
        "its result cannot travel: it is 6.3 kB ({} bytes) long, and ranks read no more than 6.3 kB ({PART} bytes) at once",
        PART + 1
    );
    let mut refused = 0;
    for came in carried((1, gives)) {
        if let Err(error) = came {
            assert_ne!(error.rank, Rank(1));
            assert_eq!(error.cause, Failure::Unsendable(told.clone()));
            refused += 1;
        }
    }
    assert!(refused > 0);
}

#[test]
fn a_block_that_is_too_long_is_refused_where_it_is_published() {
    let registry = Registry::new().with::<Carrier>();
    let body = |s: &mut Scope<'_, ()>| {
        let last = Rank(s.size() as u32 - 1);
        if s.rank() == last {
            s.publish(4, 0, vec![0; PART])?;
            s.publish(5, 2, vec![0; PART + 1])?;
        }
        Ok(())
    };
    let refused = |home: Rank| {
        ScopeError::Block(BlockError::TooLong {
            name: BlockName {
                home,
                id: 5,
                version: 2,
            },
            bytes: PART as u64 + 1,
            limit: PART as u64,
        })
    };
    let options = limited(ScopeOptions::default());
    let alone = scope(&mut Solo::new(), &registry, &(), &options, body);
    let error = alone.map(|_| ()).unwrap_err();
    assert_eq!(error, refused(Rank(0)));
    assert_eq!(
        error.to_string(),
        "block 5 of rank 0, version 2, cannot be published: it is 6.3 kB (6301 bytes) long, and a block has at most 6.3 kB \
         (6300 bytes); publish it as several blocks"
    );
    let mut ended = on_threads(3, &options, &registry, || (), body);
    ended.extend(on_virtual(3, &rough(1), &options, &registry, || (), body).results);
    for ranks in ended.chunks(3) {
        let error = refused(Rank(2));
        let told = ScopeError::Comm(CommError::Aborted {
            rank: Rank(2),
            reason: error.to_string(),
        });
        let errors: Vec<_> = ranks
            .iter()
            .map(|end| end.as_ref().map(|_| ()).unwrap_err())
            .collect();
        assert_eq!(errors, [&told, &told, &error]);
    }
}

#[test]
fn letters_that_are_too_long_end_the_scope_by_name() {
    let registry = Registry::new().with::<Carrier>();
    let body = |s: &mut Scope<'_, ()>| {
        let group = s.group();
        if s.rank() == Rank(1) {
            let posts = LONGEST;
            s.fork(
                &group,
                Carrier {
                    posts,
                    ..carrier(1, 1)
                },
            )?;
        }
        while s.join(&group)?.is_some() {}
        Ok(())
    };
    let still = ScopeOptions {
        policy: weft_runtime::Policy::STATIC,
        ..ScopeOptions::default()
    };
    let mut ended = on_threads(2, &limited(still), &registry, || (), body);
    ended.extend(on_virtual(2, &rough(2), &limited(still), &registry, || (), body).results);
    for end in ended.chunks(2) {
        let Err(ScopeError::Comm(CommError::Unsendable { rank, what, why })) = &end[1] else {
            panic!("{end:?}")
        };
        assert_eq!((rank, &what[..]), (&Rank(1), "1 posted messages to rank 0"));
        let EncodeError::TooLong { bytes, limit } = why else {
            panic!("{why:?}")
        };
        assert!(*bytes > LONGEST as u64 && *limit == LONGEST as u64);
        assert!(end[0].is_err());
    }
}
