//! Small programs on virtual ranks that do not scale for one known reason: the advice must name it.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::*;
use crate::comm::threads;
use crate::comm::virtual_time::{self, VirtualOptions};
use crate::comm::{Comm, CommError, Message, Tag};
use crate::{
    Context, Group, Interval, Policy, Registry, Scope, ScopeError, ScopeOptions, ScopeReport,
    Split, Step, Task, Victims, scope,
};

const RANKS: usize = 16;
/// The time of a unit of work.
const UNIT: Duration = Duration::from_nanos(50);

/// A task of some units of work, which can be split in halves or not at all.
#[derive(Serialize, Deserialize)]
struct Work {
    units: u64,
    splittable: bool,
}

impl Task<()> for Work {
    const NAME: &'static str = "work";
    type Output = u64;

    fn run(&mut self, _: &(), cx: &mut Context<'_, (), u64>) -> Step<u64> {
        let slice = self.units.min(u64::from(cx.budget()));
        cx.charge(slice);
        self.units -= slice;
        match self.units {
            0 => Step::Done(slice),
            _ => Step::More,
        }
    }

    fn split(&mut self, how: Split) -> Option<Self> {
        if !self.splittable || self.units < 1000 || how.gives_nothing() {
            return None;
        }
        let units = self.units / 2;
        self.units -= units;
        Some(Self { units, ..*self })
    }
}

/// A task of some units of work, which does all of them at once, whatever its budget.
#[derive(Serialize, Deserialize)]
struct Unheeding(u64);

impl Task<()> for Unheeding {
    const NAME: &'static str = "unheeding";
    type Output = u64;

    fn run(&mut self, _: &(), cx: &mut Context<'_, (), u64>) -> Step<u64> {
        cx.charge(self.0);
        Step::Done(self.0)
    }

    fn detail(&self) -> Detail {
        Detail {
            depth: 3,
            of: [7, 8],
        }
    }
}

/// A chain of nodes with a leaf at each: deep, narrow, and never more than a few entries on the
/// stack.
#[derive(Serialize, Deserialize)]
struct Chain {
    /// The nodes that are left below each entry, the oldest entry first.
    stack: Vec<u64>,
}

impl Task<()> for Chain {
    const NAME: &'static str = "chain";
    type Output = u64;

    fn run(&mut self, _: &(), cx: &mut Context<'_, (), u64>) -> Step<u64> {
        for _ in 0..cx.budget().div_ceil(10) {
            cx.charge(10);
            match self.stack.pop() {
                None => return Step::Done(0),
                Some(0) => {}
                Some(below) => self.stack.extend([below / 8, below - 1 - below / 8]),
            }
        }
        Step::More
    }

    fn split(&mut self, how: Split) -> Option<Self> {
        let stack = how.take_from(&mut self.stack)?;
        Some(Self { stack })
    }
}

/// A tree of tasks by fork and join, or by hyperforks, with the work in its leaves.
#[derive(Serialize, Deserialize)]
struct Tree {
    depth: u32,
    leaf: u64,
    nested: bool,
}

impl Task<()> for Tree {
    const NAME: &'static str = "tree";
    type Output = u64;

    fn run(&mut self, _: &(), cx: &mut Context<'_, (), u64>) -> Step<u64> {
        if self.depth == 0 {
            cx.charge(self.leaf);
            return Step::Done(1);
        }
        cx.charge(20);
        // Unbalanced: one child is deeper.
        let depths = [self.depth - 1, self.depth.saturating_sub(2)];
        let children = depths.map(|depth| Self { depth, ..*self });
        if !self.nested {
            children.into_iter().for_each(|child| cx.hyperfork(child));
            return Step::Done(0);
        }
        let group = cx.group();
        children
            .into_iter()
            .for_each(|child| cx.fork(&group, child));
        let mut leaves = 0;
        while let Some(Ok(below)) = cx.join(&group) {
            leaves += below;
            // Work after a join, too.
            cx.charge(20);
        }
        Step::Done(leaves)
    }
}

/// A rank whose body takes time: the time that it owes is put on the clock before anything else
/// happens.
struct Debtor<'a> {
    comm: RefCell<&'a mut dyn Comm>,
    rank: Rank,
    size: usize,
    owed: &'a Cell<u64>,
}

impl Debtor<'_> {
    fn comm(&mut self) -> &mut dyn Comm {
        *self.comm.get_mut()
    }
}

impl Comm for Debtor<'_> {
    fn rank(&self) -> Rank {
        self.rank
    }
    fn size(&self) -> usize {
        self.size
    }
    fn now(&self) -> Duration {
        let mut comm = self.comm.borrow_mut();
        comm.compute(self.owed.take(), Duration::ZERO);
        comm.now()
    }
    fn send(&mut self, to: Rank, tag: Tag, bytes: Vec<u8>) -> Result<(), CommError> {
        self.comm().send(to, tag, bytes)
    }
    fn try_recv(&mut self, tag: Tag) -> Result<Option<Message>, CommError> {
        self.comm().try_recv(tag)
    }
    fn recv_from(&mut self, from: Rank, tag: Tag) -> Result<Vec<u8>, CommError> {
        self.comm().recv_from(from, tag)
    }
    fn wait(&mut self, at_most: Duration) -> Result<(), CommError> {
        self.comm().wait(at_most)
    }
    fn close(&mut self, tag: Tag) {
        self.comm().close(tag);
    }
    fn reopen(&mut self, tag: Tag) {
        self.comm().reopen(tag);
    }
    fn next_epoch(&mut self) -> u32 {
        self.comm().next_epoch()
    }
    fn compute(&mut self, units: u64, took: Duration) -> Duration {
        self.comm().compute(units, took)
    }
    fn has_threads(&self) -> bool {
        false
    }
    fn abort(&mut self, reason: &str) {
        self.comm().abort(reason);
    }
}

/// The scope of a body, with a way to spend time in the body.
struct Body<'a, 'b> {
    scope: &'a mut Scope<'b, ()>,
    owed: &'a Cell<u64>,
}

impl Body<'_, '_> {
    fn is_first(&self) -> bool {
        self.scope.rank() == Rank(0)
    }

    /// Lets the body work for this many units.
    fn work(&self, units: u64) {
        self.owed.set(self.owed.get() + units);
    }

    fn fork(
        &mut self,
        group: &Group<u64>,
        task: impl Task<(), Output = u64>,
    ) -> Result<(), ScopeError> {
        self.scope.fork(group, task)
    }

    fn join_all(&mut self, group: &Group<u64>) -> Result<(), ScopeError> {
        while let Some(result) = self.scope.join(group)? {
            result?;
        }
        Ok(())
    }
}

fn reports(
    ranks: usize,
    policy: Policy,
    body: impl Fn(&mut Body<'_, '_>, &Group<u64>) -> Result<(), ScopeError> + Sync,
) -> Vec<ScopeReport> {
    reports_of(ranks, policy, Some(100_000), body)
}

/// Runs a program on virtual ranks, traced or not, and returns their reports.
fn reports_of(
    ranks: usize,
    policy: Policy,
    trace: Option<usize>,
    body: impl Fn(&mut Body<'_, '_>, &Group<u64>) -> Result<(), ScopeError> + Sync,
) -> Vec<ScopeReport> {
    let options = ScopeOptions {
        policy,
        trace,
        ..ScopeOptions::default()
    };
    let registry = Registry::new()
        .with::<Work>()
        .with::<Unheeding>()
        .with::<Chain>()
        .with::<Tree>();
    let outcome = virtual_time::launch(ranks, &VirtualOptions::default(), |comm| {
        let owed = Cell::new(0);
        let mut comm = Debtor {
            rank: comm.rank(),
            size: comm.size(),
            comm: RefCell::new(comm),
            owed: &owed,
        };
        let ran = scope(&mut comm, &registry, &(), &options, |s| {
            let group = s.group();
            let mut s = Body {
                scope: s,
                owed: &owed,
            };
            body(&mut s, &group)?;
            s.join_all(&group)
        });
        ran.map(|((), report)| report)
    });
    let results = outcome.expect("ranks run").results;
    let results: Result<_, _> = results.into_iter().collect();
    results.expect("the scope ends")
}

fn traces(reports: &[ScopeReport]) -> Vec<Trace> {
    reports.iter().filter_map(|r| r.trace.clone()).collect()
}

fn analysis(
    policy: Policy,
    body: impl Fn(&mut Body<'_, '_>, &Group<u64>) -> Result<(), ScopeError> + Sync,
) -> Analysis {
    Analysis::of(&traces(&reports(RANKS, policy, body)))
}

/// The group of tasks that rank 0 forks.
fn first<T: Task<(), Output = u64>>(
    make: impl Fn(u64) -> T + Sync,
    tasks: u64,
) -> impl Fn(&mut Body<'_, '_>, &Group<u64>) -> Result<(), ScopeError> + Sync {
    move |s, group| {
        let tasks = if s.is_first() { tasks } else { 0 };
        (0..tasks).try_for_each(|number| s.fork(group, make(number)))
    }
}

/// Checks the hint, and that its words are among the advice.
#[track_caller]
fn blames(analysis: &Analysis, hint: Hint, words: &[&str]) {
    assert_eq!(analysis.hint(), Some(hint), "{analysis}");
    let text = analysis.to_string();
    for word in words {
        assert!(text.contains(word), "{word}: {text}");
    }
}

#[test]
fn a_policy_that_shares_nothing_is_blamed() {
    let body = first(
        |_| Work {
            units: 1_000_000,
            splittable: true,
        },
        1,
    );
    let analysis = analysis(Policy::STATIC, body);
    let words = [
        "`static`",
        "`Policy::default()`",
        "`every-other`",
        "unless it is split",
    ];
    blames(&analysis, Hint::PolicyStealsNothing, &words);
    assert!(!analysis.to_string().contains("Task::split"), "{analysis}");
}

#[test]
fn a_policy_that_splits_nothing_is_blamed() {
    let body = first(
        |_| Work {
            units: 1_000_000,
            splittable: true,
        },
        1,
    );
    let policy = Policy {
        split: Split::NEVER,
        ..Policy::default()
    };
    blames(
        &analysis(policy, body),
        Hint::PolicySplitsNothing,
        &["--split", "long"],
    );
}

#[test]
fn a_policy_that_splits_seldom_is_blamed() {
    let body = first(
        |_| Chain {
            stack: vec![200_000],
        },
        1,
    );
    let paper = analysis(Policy::PAPER, &body);
    let words = [
        "`paper`",
        "at most every 10.0 ms",
        "one entry",
        "`every-other`",
        "is no bound",
    ];
    blames(&paper, Hint::PolicyGivesTooLittle, &words);
    // A rule without a name is described by its parts, and only by those that are to blame.
    let policy = Policy {
        interval: Interval::Fixed(Duration::from_millis(10)),
        split_on_request: false,
        low_water: 2,
        ..Policy::default()
    };
    let slow = analysis(policy, &body);
    let words = [
        "at most every 10.0 ms",
        "Policy::interval",
        "Policy::split_on_request",
    ];
    blames(&slow, Hint::PolicyGivesTooLittle, &words);
    assert!(!slow.to_string().contains("`every-other`"), "{slow}");
    // With a policy that fits it is fast.
    let quick = analysis(Policy::default(), &body);
    assert!(
        quick.efficiency() > 2.0 * paper.efficiency(),
        "{quick}\n{paper}"
    );
}

#[test]
fn one_long_task_is_blamed_whatever_the_policy() {
    let body = first(
        |number| Work {
            units: if number == 0 { 1_000_000 } else { 2000 },
            splittable: false,
        },
        200,
    );
    for policy in [Policy::default(), Policy::LIFELINES, Policy::PAPER] {
        let words = ["implement Task::split", "unless it is split"];
        blames(&analysis(policy, &body), Hint::LongTask, &words);
    }
}

#[test]
fn too_few_tasks_are_blamed() {
    let body = first(
        |_| Work {
            units: 100_000,
            splittable: false,
        },
        20,
    );
    let words = ["in 20 intervals on 16 workers"];
    blames(
        &analysis(Policy::default(), body),
        Hint::TooFewTasks,
        &words,
    );
}

#[test]
fn the_policy_is_the_suspect_when_there_are_tasks() {
    // Tasks that do not return keep their rank from answering: thieves wait, and ask the wrong
    // ones.
    let body = first(
        |_| Tree {
            depth: 14,
            leaf: 20_000,
            nested: false,
        },
        1,
    );
    let on_64 = |policy| Analysis::of(&traces(&reports(64, policy, &body)));
    let lifelines = on_64(Policy::LIFELINES);
    for policy in [Policy::EVERY_OTHER, Policy::HALF] {
        let analysis = on_64(policy);
        blames(&analysis, Hint::OtherPolicy, &["try `lifelines`"]);
        assert!(!analysis.to_string().contains("too few"), "{analysis}");
        assert!(lifelines.efficiency() > 1.2 * analysis.efficiency());
    }
}

#[test]
fn tasks_that_are_forked_late_are_noticed() {
    let body = |s: &mut Body<'_, '_>, group: &Group<u64>| {
        if !s.is_first() {
            return Ok(());
        }
        s.work(1_000_000);
        for _ in 0..200 {
            let units = 2000;
            s.fork(
                group,
                Work {
                    units,
                    splittable: false,
                },
            )?;
        }
        Ok(())
    };
    let words = ["fork tasks before anything else"];
    blames(&analysis(Policy::default(), body), Hint::SlowStart, &words);
}

#[test]
fn bodies_that_work_are_noticed() {
    let body = |s: &mut Body<'_, '_>, group: &Group<u64>| {
        for _ in 0..5 {
            let units = 10_000;
            s.fork(
                group,
                Work {
                    units,
                    splittable: false,
                },
            )?;
            // The first to come: the group goes on.
            if let Some(result) = s.scope.join(group)? {
                result?;
            }
            s.work(30_000);
        }
        Ok(())
    };
    let words = ["put that work into tasks"];
    blames(&analysis(Policy::default(), body), Hint::BodyWorks, &words);
}

/// The busy time of a trace is what tasks charged, whether they waited in joins or not.
#[test]
fn nested_joins_are_not_busy() {
    for policy in [Policy::EVERY_OTHER, Policy::LIFELINES, Policy::STATIC] {
        for leaf in [500, 20_000] {
            let body = first(
                move |_| Tree {
                    depth: 12,
                    leaf,
                    nested: true,
                },
                1,
            );
            let reports = reports(RANKS, policy, body);
            let charged: u64 = reports.iter().map(|report| report.work).sum();
            let busy: Duration = reports.iter().flat_map(|report| &report.busy).sum();
            assert_eq!(busy, UNIT * charged as u32);
            assert_eq!(units_of_tasks(&traces(&reports)), charged);
            let analysis = Analysis::of(&traces(&reports));
            let time = analysis.makespan.as_secs_f64() * RANKS as f64;
            let truth = busy.as_secs_f64() / time;
            assert!(
                (analysis.efficiency() - truth).abs() < 0.01,
                "{truth} {analysis}"
            );
            for (rank, report) in analysis.ranks.iter().zip(&reports) {
                let busy = report.busy[0].as_secs_f64() / analysis.makespan.as_secs_f64();
                let said = rank.busy.as_secs_f64() / analysis.makespan.as_secs_f64();
                assert!((busy - said).abs() < 0.01, "{busy} {said} {analysis}");
            }
            // Leaves are the longest: no task is blamed for the time it waited.
            let longest = analysis.longest.as_ref().expect("tasks ran");
            assert!(longest.own < UNIT * (leaf as u32 + 200), "{analysis}");
            let text = analysis.to_string();
            assert!(!text.contains("the longest task"), "{text}");
        }
    }
}

/// A trace shows the run that there would be without it: sharing work reads no clock more, and
/// takes no other turn.
#[test]
fn a_traced_run_is_the_run_without_a_trace() {
    for policy in [Policy::EVERY_OTHER, Policy::LIFELINES, Policy::STATIC] {
        for nested in [false, true] {
            let body = first(
                move |_| Tree {
                    depth: 12,
                    leaf: 700,
                    nested,
                },
                1,
            );
            let run = |trace| {
                let mut reports = reports_of(RANKS, policy, trace, &body);
                for report in &mut reports {
                    assert_eq!(report.trace.take().is_some(), trace.is_some());
                }
                format!("{reports:?}")
            };
            assert_eq!(run(Some(100_000)), run(None), "{policy:?}");
        }
    }
}

/// The units that tasks charged, as traces have them.
fn units_of_tasks(traces: &[Trace]) -> u64 {
    let events = traces.iter().flat_map(|trace| &trace.events);
    let of = |event: &Event| match event.what {
        What::TaskEnd { units, .. } => u64::from(units),
        _ => 0,
    };
    events.map(of).sum()
}

/// Every wait ends on workers that are threads, and only tasks wait.
#[test]
fn waits_of_threads_are_pairs() {
    let options = ScopeOptions {
        workers: 3,
        trace: Some(100_000),
        ..ScopeOptions::default()
    };
    let registry = Registry::new().with::<Tree>();
    let reports = threads::launch(1, |comm| {
        let ran = scope(comm, &registry, &(), &options, |s| {
            let group = s.group();
            for _ in 0..20 {
                let tree = Tree {
                    depth: 6,
                    leaf: 1,
                    nested: true,
                };
                s.fork(&group, tree)?;
            }
            while let Some(leaves) = s.join(&group)? {
                leaves?;
            }
            Ok(())
        });
        ran.map(|((), report)| report)
    });
    let reports: Result<Vec<_>, _> = reports.expect("ranks run").into_iter().collect();
    let reports = reports.expect("the scope ends");
    let traces = traces(&reports);
    assert_eq!(units_of_tasks(&traces), reports[0].work);
    let mut waits = 0;
    for worker in 0..3 {
        let mut open = Vec::new();
        for event in &traces[0].events {
            match event.what {
                What::TaskBegin { worker: w, .. } if w == worker => open.push("task"),
                What::TaskEnd { worker: w, .. } if w == worker => {
                    assert_eq!(open.pop(), Some("task"));
                }
                What::WaitBegin { worker: w } if w == worker => {
                    assert_eq!(open.last(), Some(&"task"));
                    open.push("wait");
                    waits += 1;
                }
                What::WaitEnd { worker: w } if w == worker => {
                    assert_eq!(open.pop(), Some("wait"));
                }
                _ => {}
            }
        }
        assert!(open.is_empty(), "{open:?}");
    }
    assert!(waits > 0);
    check(&picture(&traces));
}

/// A task that does not return keeps its rank from answering, but not for ever; the trace names it.
#[test]
fn a_task_that_does_not_poll_is_seen_and_named() {
    let reports = reports(4, Policy::default(), |s, group| {
        if s.scope.rank() == Rank(0) {
            for _ in 0..30 {
                let work = Work {
                    units: 100_000,
                    splittable: true,
                };
                s.scope.fork(group, work)?;
            }
            // 20 ms; the newest is run first.
            s.scope.fork(group, Unheeding(400_000))?;
        }
        Ok(())
    });
    let traces = traces(&reports);
    let analysis = Analysis::of(&traces);
    let deaf = analysis.deafness.as_ref().expect("it was deaf");
    assert_eq!(
        (deaf.rank, deaf.kind.as_str(), deaf.times),
        (Rank(0), "unheeding", 1)
    );
    assert!(deaf.time >= ms(20) && deaf.time < ms(21), "{deaf:?}");
    assert!(deaf.requests > 0, "{deaf:?}");
    // The ranks that asked got their tasks in the end.
    assert!(
        analysis.ranks.iter().all(|rank| rank.intervals > 0),
        "{analysis}"
    );
    assert!(
        analysis.to_string().contains("while it ran `unheeding`"),
        "{analysis}"
    );
    let events = picture(&traces);
    check(&events);
    let named = |name: &'static str| events.iter().filter(move |e| e["name"] == name);
    let slice = named("reads no messages").next().expect("it is drawn");
    assert_eq!(slice["args"]["because of"], "unheeding");
    assert!(slice["dur"].as_f64() >= Some(20_000.0), "{slice}");
    let task = named("unheeding").next().expect("it ran");
    assert_eq!(
        (&task["args"]["depth"], &task["args"]["of"]),
        (&3.into(), &serde_json::json!([7, 8]))
    );
    assert!(named("tasks in the pool").count() > 1);
}

#[test]
fn nobody_is_told_what_is_set_already() {
    let body = first(
        |_| Tree {
            depth: 11,
            leaf: 20_000,
            nested: true,
        },
        1,
    );
    for policy in POLICIES_THAT_STEAL {
        let analysis = analysis(policy, &body);
        let Some(advice) = analysis.advice() else {
            continue;
        };
        let name = analysis.sharing.as_ref().and_then(|s| s.policy.clone());
        let name = name.expect("it has a name");
        let advised = advice.split("try ").nth(1).unwrap_or("");
        assert!(!advised.contains(&format!("`{name}`")), "{advice}");
    }
}

const POLICIES_THAT_STEAL: [Policy; 5] = [
    Policy::PAPER,
    Policy::EVERY_OTHER,
    Policy::HALF,
    Policy::LAST_VICTIM,
    Policy::LIFELINES,
];

#[test]
fn traces_know_their_policy() {
    let sharing = Sharing::from(&Policy::PAPER);
    assert_eq!(sharing.policy.as_deref(), Some("paper"));
    assert_eq!(sharing.split, "oldest");
    assert_eq!(sharing.interval, Some(Duration::from_millis(10)));
    let own = Policy {
        victims: Victims::LIFELINES,
        ..Policy::HALF
    };
    let sharing = Sharing::from(&own);
    assert_eq!(
        (sharing.policy, sharing.victims.as_str()),
        (None, "lifelines")
    );
    // A trace from before the policy was recorded can be read.
    let mut old = serde_json::to_value(trace(0, 1, &[])).expect("it has a form");
    old.as_object_mut()
        .expect("it is a struct")
        .remove("sharing");
    let old: Trace = serde_json::from_value(old).expect("the old form");
    assert_eq!(old.sharing, None);
}
