//! Errors name rank, task and cause, the scope ends on every rank, and nothing hangs.

use std::sync::Mutex;

use crate::common::{
    Ended, Limited, on_threads, on_virtual, rough, seeded, threaded, values, workers,
};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use weft_runtime::comm::solo::Solo;
use weft_runtime::comm::threads::{self, LaunchError};
use weft_runtime::comm::virtual_time::{self, VirtualOptions};
use weft_runtime::comm::{Comm, CommError, Rank};
use weft_runtime::{
    BlockError, BlockName, Context, Failure, Group, Policy, Registry, Scope, ScopeError,
    ScopeOptions, Split, Step, Task, TaskError, scope,
};

/// The moment at which a task goes wrong, or its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum When {
    Never,
    Runs,
    Splits,
    SaysNeeds,
    Sent,
    SentWithPanic,
    Read,
    ReadWithPanic,
    ResultSent,
    ResultSentWithPanic,
    ResultRead,
    ResultReadWithPanic,
}

/// Bytes that cannot be written or read, if so told.
#[derive(Clone, Copy, Debug)]
struct Seal {
    when: When,
    of_result: bool,
}

impl Seal {
    fn fails(self, of_task: [When; 2], of_result: [When; 2]) -> Result<(), &'static str> {
        let [error, panic] = if self.of_result { of_result } else { of_task };
        assert_ne!(self.when, panic, "wax on the floor");
        if self.when == error {
            Err("no wax")
        } else {
            Ok(())
        }
    }
}

impl Serialize for Seal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use When::{ResultSent, ResultSentWithPanic, Sent, SentWithPanic};
        self.fails([Sent, SentWithPanic], [ResultSent, ResultSentWithPanic])
            .map_err(serde::ser::Error::custom)?;
        (self.when, self.of_result).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Seal {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use When::{Read, ReadWithPanic, ResultRead, ResultReadWithPanic};
        let (when, of_result) = Deserialize::deserialize(deserializer)?;
        let seal = Self { when, of_result };
        seal.fails([Read, ReadWithPanic], [ResultRead, ResultReadWithPanic])
            .map_err(serde::de::Error::custom)?;
        Ok(seal)
    }
}

#[derive(Serialize, Deserialize)]
struct Sealed {
    seal: Seal,
    slices: u32,
}

fn sealed(when: When) -> Sealed {
    let of_result = false;
    let seal = Seal { when, of_result };
    Sealed { seal, slices: 20 }
}

impl Task<()> for Sealed {
    const NAME: &'static str = "sealed";
    type Output = Seal;

    fn run(&mut self, _env: &(), cx: &mut Context<'_, (), Seal>) -> Step<Seal> {
        let when = self.seal.when;
        assert!(when != When::Runs, "torn on rank {}", cx.rank().0);
        cx.charge(u64::from(cx.budget()));
        self.slices -= 1;
        if self.slices > 0 {
            return Step::More;
        }
        let of_result = true;
        Step::Done(Seal { when, of_result })
    }

    fn split(&mut self, _how: Split) -> Option<Self> {
        assert_ne!(self.seal.when, When::Splits, "torn");
        None
    }

    fn needs(&self) -> Vec<BlockName> {
        assert_ne!(self.seal.when, When::SaysNeeds, "torn");
        Vec::new()
    }
}

const SEALED: usize = 30;

/// Rank 1 forks some, one after the other through nested tasks if so told; what became of them.
fn post(s: &mut Scope<'_, ()>, when: When) -> Result<Vec<Result<Rank, TaskError>>, ScopeError> {
    let group = s.group();
    if s.rank() == Rank(1) {
        (0..SEALED).try_for_each(|_| s.fork(&group, sealed(when)))?;
    }
    let mut all = Vec::new();
    while let Some(result) = s.join(&group)? {
        all.push(result.map(|_| s.rank()));
    }
    Ok(all)
}

fn check(when: When, ended: Vec<Ended<Vec<Result<Rank, TaskError>>>>, case: &str) {
    let mut all = values(ended).into_iter();
    assert!(all.next().unwrap().is_empty());
    let all = all.next().unwrap();
    assert_eq!(all.len(), SEALED, "{when:?} {case}");
    let cause = match when {
        When::Never => None,
        When::Runs => Some(Failure::Panicked("torn on rank".to_owned())),
        When::Splits => Some(Failure::Panicked("while splitting: ".to_owned())),
        When::SaysNeeds => Some(Failure::Panicked("while saying what it needs: ".to_owned())),
        When::Sent | When::ResultSent => Some(Failure::Unsendable("no wax".to_owned())),
        When::SentWithPanic | When::ResultSentWithPanic => {
            Some(Failure::Unsendable("wax on the floor".to_owned()))
        }
        When::Read | When::ResultRead => Some(Failure::Unreadable("no wax".to_owned())),
        When::ReadWithPanic | When::ResultReadWithPanic => {
            Some(Failure::Unreadable("wax on the floor".to_owned()))
        }
    };
    let errors: Vec<TaskError> = all.into_iter().filter_map(Result::err).collect();
    let Some(cause) = cause else {
        assert_eq!(errors, []);
        return;
    };
    assert!(!errors.is_empty(), "{when:?} {case}");
    for error in errors {
        let told = error.to_string();
        assert_eq!(error.task, "sealed");
        let (same, text, want) = match (&error.cause, &cause) {
            (Failure::Panicked(a), Failure::Panicked(b))
            | (Failure::Unsendable(a), Failure::Unsendable(b))
            | (Failure::Unreadable(a), Failure::Unreadable(b)) => (true, a, b),
            _ => (false, &told, &told),
        };
        assert!(
            same && text.contains(want.as_str()),
            "{when:?} {case}: {told}"
        );
        let rank = format!("on rank {}", error.rank.0);
        assert!(
            told.contains(&rank) && (when != When::Runs || text.ends_with(&rank)),
            "{told}"
        );
        match when {
            When::Read | When::ReadWithPanic => assert_ne!(error.rank, Rank(1), "{told}"),
            _ => {}
        }
    }
}

#[test]
fn a_task_that_goes_wrong_is_an_error_of_its_join() {
    use When::*;
    let registry = Registry::new().with::<Sealed>();
    for when in [
        Never,
        Runs,
        Splits,
        SaysNeeds,
        Sent,
        SentWithPanic,
        Read,
        ReadWithPanic,
        ResultSent,
        ResultSentWithPanic,
        ResultRead,
        ResultReadWithPanic,
    ] {
        for seed in 0..4 {
            let options = seeded(seed);
            let ranks = [3, 4, 9, 32][seed as usize];
            let body = |s: &mut Scope<'_, ()>| post(s, when);
            let ended = on_virtual(ranks, &rough(seed), &options, &registry, || (), body);
            check(when, ended.results, &format!("{ranks} ranks"));
        }
    }
    for when in [Never, Runs, SaysNeeds] {
        for (ranks, options) in threaded([
            (2, 1, false),
            (4, 1, false),
            (2, 3, false),
            (2, 1, true),
            (3, 1, true),
            (2, 2, true),
        ]) {
            let body = |s: &mut Scope<'_, ()>| post(s, when);
            check(
                when,
                on_threads(ranks, &options, &registry, || (), body),
                "threads",
            );
        }
    }
}

/// A task that is in no registry.
#[derive(Serialize, Deserialize)]
struct Stranger;

impl Task<()> for Stranger {
    const NAME: &'static str = "stranger";
    type Output = u32;

    fn run(&mut self, _env: &(), _cx: &mut Context<'_, (), u32>) -> Step<u32> {
        Step::Done(0)
    }
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Host {
    Hyperforks,
    Forks,
    ForksAndJoins,
    Works,
}

impl Task<()> for Host {
    const NAME: &'static str = "host";
    type Output = u32;

    fn run(&mut self, _env: &(), cx: &mut Context<'_, (), u32>) -> Step<u32> {
        let group = cx.group();
        match self {
            Self::Hyperforks => cx.hyperfork(Stranger),
            Self::Forks => cx.fork(&group, Stranger),
            Self::ForksAndJoins => {
                cx.fork(&group, Stranger);
                drop(cx.join(&group));
            }
            Self::Works => cx.charge(100),
        }
        Step::Done(0)
    }
}

/// One rank, any one, says what is wrong, all others that it did.
fn only_one_knows<R: std::fmt::Debug>(
    ended: &[Ended<R>],
    is_it: impl Fn(Rank, &ScopeError) -> bool,
) {
    let knows = |(rank, e): (usize, &Ended<R>)| {
        e.as_ref()
            .err()
            .is_some_and(|e| is_it(Rank(rank as u32), e))
    };
    let who = ended.iter().enumerate().position(knows);
    let who = who.unwrap_or_else(|| panic!("{ended:?}"));
    let error = ended[who].as_ref().err().unwrap();
    for (rank, one) in ended.iter().enumerate() {
        let told = ScopeError::Comm(CommError::Aborted {
            rank: Rank(who as u32),
            reason: error.to_string(),
        });
        let expected = if rank == who { error } else { &told };
        assert_eq!(one.as_ref().err(), Some(expected), "rank {rank}");
    }
}

#[test]
fn a_task_that_forks_an_unknown_kind_ends_the_scope() {
    let registry = Registry::new().with::<Host>();
    let is_it = |rank: Rank, error: &ScopeError| {
        *error
            == ScopeError::Unregistered {
                task: "stranger",
                rank,
                by: Some("host"),
            }
    };
    for how in [Host::Hyperforks, Host::Forks, Host::ForksAndJoins] {
        let body = |s: &mut Scope<'_, ()>| {
            let group = s.group();
            (0..10).try_for_each(|_| s.fork(&group, Host::Works))?;
            if s.rank() == Rank(0) {
                s.fork(&group, how)?;
            }
            while s.join(&group)?.is_some() {}
            Ok(())
        };
        for (ranks, options) in threaded([
            (1, 1, false),
            (1, 3, false),
            (3, 2, false),
            (1, 1, true),
            (3, 1, true),
            (2, 2, true),
        ]) {
            only_one_knows(&on_threads(ranks, &options, &registry, || (), body), is_it);
        }
        for seed in 0..10 {
            let ended = on_virtual(8, &rough(seed), &seeded(seed), &registry, || (), body);
            only_one_knows(&ended.results, is_it);
        }
    }
}

/// Runs as long as anybody waits for it.
#[derive(Serialize, Deserialize)]
struct Endless;

impl Task<()> for Endless {
    const NAME: &'static str = "endless";
    type Output = ();

    fn run(&mut self, _env: &(), cx: &mut Context<'_, (), ()>) -> Step<()> {
        cx.charge(u64::from(cx.budget()));
        Step::More
    }
}

/// Has others wait for it.
#[derive(Serialize, Deserialize)]
struct Waits;

impl Task<()> for Waits {
    const NAME: &'static str = "waits";
    type Output = ();

    fn run(&mut self, _env: &(), cx: &mut Context<'_, (), ()>) -> Step<()> {
        let group = cx.group();
        cx.fork(&group, Endless);
        while cx.join(&group).is_some() {}
        Step::Done(())
    }
}

/// Every rank has what never ends, and rank 1 something to say.
fn bad_end(s: &mut Scope<'_, ()>, panics: bool) -> Result<(), ScopeError> {
    let (group, other) = (s.group(), s.group());
    for _ in 0..3 {
        s.fork(&group, Waits)?;
        s.fork(&group, Endless)?;
        s.fork(&other, sealed(When::Never))?;
    }
    let first = s.join(&other)?;
    assert!(first.is_some());
    if s.rank() == Rank(1) {
        assert!(!panics, "the roof fell in");
        return Err(ScopeError::Body("no ink".to_owned()));
    }
    while s.join(&group)?.is_some() {}
    Ok(())
}

#[test]
fn an_error_of_a_body_stops_all_tasks() {
    let registry = Registry::new()
        .with::<Waits>()
        .with::<Endless>()
        .with::<Sealed>();
    let is_it = |_, error: &ScopeError| *error == ScopeError::Body("no ink".to_owned());
    let body = |s: &mut Scope<'_, ()>| bad_end(s, false);
    for (ranks, n) in [(2, 1), (2, 3), (4, 2)] {
        only_one_knows(
            &on_threads(ranks, &workers(n), &registry, || (), body),
            is_it,
        );
    }
    for seed in 0..5 {
        let ended = on_virtual(9, &rough(seed), &seeded(seed), &registry, || (), body);
        only_one_knows(&ended.results, is_it);
    }
}

/// Rank 1 joins two groups the other way round than all others; results lie where nobody joins.
#[test]
fn groups_joined_in_different_orders_are_an_error() {
    let registry = Registry::new().with::<Sealed>();
    let body = |s: &mut Scope<'_, ()>| {
        let (first, second) = (s.group(), s.group());
        for group in [&first, &second] {
            (0..5).try_for_each(|_| s.fork(group, sealed(When::Never)))?;
        }
        let order = if s.rank() == Rank(1) {
            [&second, &first]
        } else {
            [&first, &second]
        };
        for group in order {
            while s.join(group)?.is_some() {}
        }
        Ok(())
    };
    let told = |ranks: usize| {
        let who = format!(
            "of {ranks} ranks that wait in joins, {} in that of group 0, 1 in that of group 1",
            ranks - 1
        );
        move |rank: Rank, error: &ScopeError| {
            rank == Rank(0) && *error == ScopeError::Stuck(who.clone())
        }
    };
    for (ranks, n) in [(2, 1), (3, 2)] {
        let ended = on_threads(ranks, &workers(n), &registry, || (), body);
        only_one_knows(&ended, told(ranks));
    }
    for seed in 0..10 {
        let ranks = 2 + seed as usize;
        let ended = on_virtual(ranks, &rough(seed), &seeded(seed), &registry, || (), body);
        only_one_knows(&ended.results, told(ranks));
    }
}

/// Rank 0 joins a group; the others' bodies end before they have made one.
#[test]
fn a_group_that_others_never_make_is_an_error_that_says_so() {
    let registry = Registry::new().with::<Sealed>();
    let body = |s: &mut Scope<'_, ()>| {
        if s.rank() == Rank(0) {
            let group = s.group::<()>();
            while s.join(&group)?.is_some() {}
        }
        Ok(())
    };
    let told = |ranks: usize| {
        let who = format!(
            "1 of {ranks} ranks wait in joins, of groups among 0, and the bodies of {} have ended, some of which had not made \
             these groups",
            ranks - 1
        );
        move |rank: Rank, error: &ScopeError| {
            rank == Rank(0) && *error == ScopeError::Stuck(who.clone())
        }
    };
    for (ranks, n) in [(2, 1), (3, 2), (6, 1)] {
        let ended = on_threads(ranks, &workers(n), &registry, || (), body);
        only_one_knows(&ended, told(ranks));
    }
    for seed in 0..5 {
        let ended = on_virtual(7, &rough(seed), &seeded(seed), &registry, || (), body);
        only_one_knows(&ended.results, told(7));
    }
}

/// Where no task goes from rank to rank, each may find out by itself.
#[test]
fn ranks_whose_tasks_stay_find_out_that_nobody_can_go_on() {
    let registry = Registry::new().with::<Sealed>();
    let still = ScopeOptions {
        policy: Policy::STATIC,
        ..ScopeOptions::default()
    };
    let crossed = |s: &mut Scope<'_, ()>| {
        let (first, second) = (s.group::<()>(), s.group::<()>());
        let last = s.rank() == Rank(s.size() as u32 - 1);
        for group in if last {
            [&second, &first]
        } else {
            [&first, &second]
        } {
            while s.join(group)?.is_some() {}
        }
        Ok(())
    };
    for ranks in [2, 3, 20] {
        let ended = on_virtual(ranks, &rough(1), &still, &registry, || (), crossed).results;
        let found = ended
            .iter()
            .any(|end| matches!(end, Err(ScopeError::Stuck(_))));
        assert!(found && ended.iter().all(Result::is_err), "{ended:?}");
    }
    // The last one takes no part.
    let ended = threads::launch(3, |comm| {
        if comm.rank() == Rank(2) {
            return None;
        }
        let body = |s: &mut Scope<'_, ()>| {
            let group = s.group::<()>();
            while s.join(&group)?.is_some() {}
            Ok(())
        };
        Some(scope(comm, &registry, &(), &still, body).map(|_| ()))
    });
    let ended: Vec<_> = ended.unwrap().into_iter().flatten().collect();
    let absent = ScopeError::Absent { rank: Rank(2) };
    assert!(ended.contains(&Err(absent)), "{ended:?}");
    assert!(ended.iter().all(Result::is_err), "{ended:?}");
}

#[test]
fn a_panic_of_a_body_stops_all_tasks() {
    let registry = Registry::new()
        .with::<Waits>()
        .with::<Endless>()
        .with::<Sealed>();
    let error = LaunchError::Panicked {
        rank: Rank(1),
        message: "the roof fell in".to_owned(),
    };
    for (ranks, n) in [(2, 1), (2, 3), (4, 2)] {
        let outcome = threads::launch(ranks, |comm| {
            let (me, mut comm) = (comm.rank(), Limited::new(comm));
            let ended = scope(&mut comm, &registry, &(), &workers(n), |s| bad_end(s, true));
            let told = "rank 1 ended the job: it panicked: the roof fell in";
            assert!(me != Rank(1) && ended.unwrap_err().to_string() == told);
        });
        assert_eq!(outcome.unwrap_err(), error);
    }
    let outcome = virtual_time::launch(5, &VirtualOptions::default(), |comm| {
        let mut comm = Limited::short(comm);
        let options = ScopeOptions::default();
        let ended = scope(&mut comm, &registry, &(), &options, |s| bad_end(s, true));
        let told = "rank 1 ended the job: it panicked: the roof fell in";
        assert_eq!(ended.unwrap_err().to_string(), told);
    });
    assert_eq!(outcome.unwrap_err(), error);
}

#[test]
fn ranks_that_know_other_kinds_say_which() {
    let outcome = virtual_time::launch(6, &rough(1), |comm| {
        let mut registry = Registry::new().with::<Host>();
        if comm.rank().0 >= 4 {
            registry = registry.with::<Stranger>();
        }
        scope(comm, &registry, &(), &seeded(0), |_| Ok(())).map(|_| ())
    });
    let mut noticed = 0;
    let names = |rank: Rank| ["host", "host, stranger"][usize::from(rank.0 >= 4)];
    for (rank, one) in outcome.unwrap().results.into_iter().enumerate() {
        match one.unwrap_err() {
            ScopeError::Registries {
                rank: me,
                other,
                ours,
                theirs,
            } => {
                assert_eq!(me, Rank(rank as u32));
                assert_eq!((&*ours, &*theirs), (names(me), names(other)));
                assert_ne!(ours, theirs);
                noticed += 1;
            }
            ScopeError::Comm(CommError::Aborted { reason, .. }) => {
                assert!(
                    reason.contains("[host, stranger]") && reason.contains("[host]"),
                    "{reason}"
                );
            }
            other => panic!("{other}"),
        }
    }
    assert!(noticed > 0);
}

#[derive(Serialize, Deserialize)]
struct Reader(Vec<BlockName>);

impl Task<()> for Reader {
    const NAME: &'static str = "reader";
    type Output = usize;

    fn run(&mut self, _env: &(), cx: &mut Context<'_, (), usize>) -> Step<usize> {
        cx.charge(1000);
        // The last is not among what it needs.
        let needs = self.needs();
        let read = self.0.iter().take(needs.len() + 1);
        Step::Done(read.map(|name| cx.block(name).len()).sum())
    }

    fn needs(&self) -> Vec<BlockName> {
        let mut needs = self.0.clone();
        needs.retain(|name| name.id < 100);
        needs
    }
}

fn read(s: &mut Scope<'_, ()>) -> Result<Vec<TaskError>, ScopeError> {
    let group = s.group();
    let home = Rank(s.size() as u32 - 1);
    if s.rank() == home {
        s.publish(1, 3, vec![0; 10])?;
        s.publish(2, 1, vec![0; 10])?;
        s.publish(2, 2, vec![0; 10])?;
        let error = s.publish(2, 2, vec![]).unwrap_err();
        assert!(error.to_string().contains("version 2 already"), "{error}");
    }
    let block = |id, version| BlockName { home, id, version };
    if s.rank() == Rank(0) {
        let far = BlockName {
            home: Rank(99),
            ..block(1, 3)
        };
        for wrong in [block(9, 1), block(2, 1), block(1, 4), far, block(100, 1)] {
            s.fork(&group, Reader(vec![block(1, 3), wrong, block(2, 2)]))?;
        }
    }
    let mut errors = Vec::new();
    while let Some(result) = s.join(&group)? {
        errors.push(result.unwrap_err());
    }
    Ok(errors)
}

#[test]
fn a_block_that_cannot_be_had_is_named() {
    let registry = Registry::new().with::<Reader>();
    let check = |ended: Vec<Ended<Vec<TaskError>>>| {
        let ranks = ended.len() as u32;
        let mut errors = values(ended).swap_remove(0);
        assert_eq!(errors.len(), 5);
        errors.sort_by_key(|e| match &e.cause {
            Failure::Block(why) => (why.name().home.0, why.name().id, why.name().version),
            _ => (1000, 0, 0),
        });
        let causes: Vec<String> = errors.iter().map(|e| e.cause.to_string()).collect();
        assert!(
            errors
                .iter()
                .all(|e| e.task == "reader" && e.rank.0 < ranks)
        );
        let kinds: Vec<_> = errors.iter().map(|e| &e.cause).collect();
        assert!(matches!(
            kinds[0],
            Failure::Block(BlockError::Early { current: 3, .. })
        ));
        assert!(matches!(
            kinds[1],
            Failure::Block(BlockError::Stale { current: 2, .. })
        ));
        assert!(matches!(
            kinds[2],
            Failure::Block(BlockError::Unpublished { .. })
        ));
        assert!(matches!(
            kinds[3],
            Failure::Block(BlockError::Nowhere { .. })
        ));
        assert!(
            causes[4].contains("not among what this task needs"),
            "{}",
            causes[4]
        );
    };
    for (ranks, n) in [(1, 1), (3, 1), (3, 2)] {
        check(on_threads(ranks, &workers(n), &registry, || (), read));
    }
    for seed in 0..10 {
        let ranks = 1 + 2 * seed as usize;
        let options = seeded(seed);
        check(on_virtual(ranks, &rough(seed), &options, &registry, || (), read).results);
    }
}

/// Whether this rank enters a scope, and with what.
fn enters(comm: &mut dyn Comm, options: &ScopeOptions) -> Result<(), ScopeError> {
    let registry = Registry::new().with::<Sealed>();
    let ((), _) = scope(comm, &registry, &(), options, |s| {
        let group = s.group();
        s.fork(&group, sealed(When::Never))?;
        while let Some(result) = s.join(&group)? {
            result?;
        }
        Ok(())
    })?;
    Ok(())
}

/// Both drivers; ranks by what their bodies gave.
fn everywhere<R: Send>(ranks: usize, body: impl Fn(&mut dyn Comm) -> R + Sync) -> [Vec<R>; 2] {
    let machine = VirtualOptions::default();
    let on_virtual = virtual_time::launch(ranks, &machine, &body).unwrap();
    [threads::launch(ranks, &body).unwrap(), on_virtual.results]
}

#[test]
fn ranks_that_take_part_differently_end_the_job() {
    let usual = ScopeOptions::default();
    // One without workers.
    let none = ScopeOptions {
        workers: 0,
        ..usual
    };
    for ended in everywhere(3, |comm| {
        let options = [&usual, &none, &usual][comm.rank().index()];
        enters(comm, options)
    }) {
        assert_eq!(ended[1], Err(ScopeError::NoWorkers));
        assert!(ended.iter().all(Result::is_err), "{ended:?}");
    }
}

#[test]
fn ranks_that_take_part_less_often_end_the_job() {
    for ranks in [2, 3, 7, 30] {
        for who in [0, 1, ranks - 1] {
            for often in [0, 1] {
                for ended in everywhere(ranks, |comm| {
                    let times = often + usize::from(comm.rank().index() != who);
                    (0..times).try_for_each(|_| enters(comm, &ScopeOptions::default()))
                }) {
                    for (rank, ended) in ended.iter().enumerate() {
                        assert_eq!(ended.is_err(), rank != who, "{rank} of {ranks}: {ended:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_group_is_of_no_use_in_another_scope() {
    let registry = Registry::new().with::<Sealed>();
    for ended in everywhere(2, |comm| {
        let options = ScopeOptions::default();
        let (old, _) = scope(comm, &registry, &(), &options, |s| Ok(s.group()))?;
        let mut seen = Vec::new();
        let (joined, _) = scope(comm, &registry, &(), &options, |s| {
            let new = s.group();
            s.fork(&new, sealed(When::Never))?;
            seen.extend(s.fork(&old, sealed(When::Never)).err());
            seen.extend(s.join(&old).err());
            seen.extend(s.cancel(&old).err());
            let mut joined = 0;
            while let Some(result) = s.join(&new)? {
                result?;
                joined += 1;
            }
            Ok(joined)
        })?;
        Ok::<_, ScopeError>((seen, joined))
    }) {
        for ended in ended {
            let foreign = ScopeError::Foreign("group 0".to_owned());
            assert_eq!(ended, Ok((vec![foreign; 3], 1)));
        }
    }
}

/// The call that a task makes with a group that it did not make.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum Meddler {
    Forks,
    Joins,
    Cancels,
}

impl Task<Mutex<Option<Group<u32>>>> for Meddler {
    const NAME: &'static str = "meddler";
    type Output = u32;

    fn run(
        &mut self,
        env: &Mutex<Option<Group<u32>>>,
        cx: &mut Context<'_, Mutex<Option<Group<u32>>>, u32>,
    ) -> Step<u32> {
        if let Some(group) = env.lock().unwrap().take() {
            match self {
                Self::Forks => cx.fork(&group, Self::Forks),
                Self::Joins => drop(cx.join(&group)),
                Self::Cancels => cx.cancel(&group),
            }
        }
        Step::Done(0)
    }
}

#[test]
fn a_task_that_meddles_with_a_group_of_the_body_fails() {
    let registry = Registry::new().with::<Meddler>();
    for how in [Meddler::Forks, Meddler::Joins, Meddler::Cancels] {
        let env = Mutex::new(None);
        let options = ScopeOptions::default();
        let ((), _) = scope(&mut Solo::new(), &registry, &env, &options, |s| {
            let (group, other) = (s.group(), s.group());
            *env.lock().unwrap() = Some(other);
            s.fork(&group, how)?;
            let error = s.join(&group)?.unwrap().unwrap_err();
            assert!(error.to_string().contains("did not make"), "{error}");
            Ok(())
        })
        .unwrap();
    }
}

#[test]
fn ranks_that_return_beside_a_panic_keep_their_results() {
    let body = |comm: &mut dyn Comm| {
        assert!(comm.rank() != Rank(1), "the roof fell in");
        comm.rank().index()
    };
    let machine = VirtualOptions::default();
    let ended = virtual_time::launch_each(3, &machine, body)
        .unwrap()
        .results;
    for ended in [threads::launch_each(3, body).unwrap(), ended] {
        let died = LaunchError::Panicked {
            rank: Rank(1),
            message: "the roof fell in".to_owned(),
        };
        assert_eq!(ended, [Ok(0), Err(died), Ok(2)]);
    }
}
