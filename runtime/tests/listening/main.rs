//! Tests that a `tracing` subscriber hears of a scope exactly what the ring of `--trace` keeps.

mod program;
mod subscriber;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use weft_runtime::comm::solo::Solo;
use weft_runtime::comm::virtual_time::{self, VirtualOptions};
use weft_runtime::comm::{Collectives, Comm, Rank, threads};
use weft_runtime::trace::{Detail, Event, MainTrack, Mark, Trace, What, is_listened};
use weft_runtime::{POLICIES, ScopeOptions, ScopeReport};

use program::share;
use subscriber::{Ear, Fields, Told};

const RANKS: usize = 5;
const ROOM: usize = 1 << 16;

/// The values and reports of all ranks in virtual time, and their clocks.
fn in_virtual_time(options: &ScopeOptions) -> (Vec<(u64, ScopeReport)>, Vec<Duration>) {
    let machine = VirtualOptions::default();
    let outcome = virtual_time::launch(RANKS, &machine, |comm| share(comm, options).unwrap());
    let outcome = outcome.unwrap();
    (outcome.results, outcome.clocks)
}

/// The name and fields (beside rank and time) that a subscriber must hear of an event of the ring.
fn expected(trace: &Trace, event: &Event) -> (String, Fields) {
    let kind = |kind: u16| ("kind", trace.kinds[usize::from(kind)].clone());
    let number = |name, value: u32| (name, value.to_string());
    let (name, fields): (&str, Vec<(&'static str, String)>) = match event.what {
        What::TaskBegin {
            worker,
            kind: of_kind,
            depth,
            of,
        } => {
            let mut fields = vec![
                number("worker", worker.into()),
                kind(of_kind),
                number("depth", depth.into()),
            ];
            if of != Detail::NOTHING {
                fields.extend([number("first", of[0]), number("second", of[1])]);
            }
            ("begin task", fields)
        }
        What::TaskEnd { worker, units } => (
            "end task",
            vec![number("worker", worker.into()), number("units", units)],
        ),
        What::WaitBegin { worker } => ("begin wait", vec![number("worker", worker.into())]),
        What::WaitEnd { worker } => ("end wait", vec![number("worker", worker.into())]),
        What::Split { worker } => ("split", vec![number("worker", worker.into())]),
        What::Asked { victim } => ("request", vec![number("victim", victim)]),
        What::Answered { victim, tasks } => (
            "answer",
            vec![number("victim", victim), number("tasks", tasks)],
        ),
        What::Gave { thief, tasks } => {
            ("give", vec![number("thief", thief), number("tasks", tasks)])
        }
        What::Gifted { thief, tasks } => {
            ("gift", vec![number("thief", thief), number("tasks", tasks)])
        }
        What::Got { victim, tasks } => (
            "receive",
            vec![number("victim", victim), number("tasks", tasks)],
        ),
        What::Deaf {
            kind: of_kind,
            requests,
            us,
        } => (
            "unresponsive",
            vec![
                kind(of_kind),
                number("requests", requests.into()),
                number("us", us),
            ],
        ),
        What::Pool { tasks } => ("pool", vec![number("tasks", tasks)]),
        What::Results { to, count } => ("results", vec![number("to", to), number("count", count)]),
        What::Fetch { from } => ("fetch", vec![number("from", from)]),
        What::Fetched { bytes } => ("fetched", vec![number("bytes", bytes)]),
        What::Cancelled => ("cancel", vec![]),
        What::JoinBegin => ("begin join", vec![]),
        What::JoinEnd => ("end join", vec![]),
        What::ScopeBegin => ("begin scope", vec![]),
        What::ScopeEnd => ("end scope", vec![]),
        What::Dry => ("exhausted", vec![]),
    };
    (name.to_owned(), fields.into_iter().collect())
}

/// The messages heard of a rank, with times, in the order of time; the end of a span comes without
/// the fields of its begin.
fn of_rank(told: &[Told], rank: usize) -> Vec<(u64, String, Fields)> {
    let of_rank = told
        .iter()
        .filter(|told| told.number("rank") == rank as u64);
    let mut all: Vec<_> = of_rank
        .map(|told| {
            let mut fields = told.fields.clone();
            let at = told.number(if told.name.starts_with("end ") {
                for begun in ["kind", "depth", "first", "second", "at_ns"] {
                    fields.remove(begun);
                }
                "end_ns"
            } else {
                "at_ns"
            });
            for field in ["rank", "at_ns", "end_ns"] {
                fields.remove(field);
            }
            (at, told.name.clone(), fields)
        })
        .collect();
    all.sort_by_key(|(at, ..)| *at);
    all
}

#[test]
fn a_subscriber_hears_what_the_ring_keeps_with_virtual_times() {
    let mut names = BTreeSet::new();
    for (policy_name, policy, _) in POLICIES {
        let options = ScopeOptions {
            policy: *policy,
            trace: Some(ROOM),
            ..ScopeOptions::default()
        };
        let silent = in_virtual_time(&options);
        let ((ranks, clocks), told) = Ear::default().listen(|| in_virtual_time(&options));
        // Nothing depends on who listens, neither values nor counts nor virtual times.
        assert_eq!((&ranks, &clocks), (&silent.0, &silent.1), "{policy_name}");
        let of_scopes: Vec<Told> = told
            .iter()
            .filter(|t| t.target != "weft::comm")
            .cloned()
            .collect();
        for (rank, (_, report)) in ranks.iter().enumerate() {
            let trace = report.trace.as_ref().unwrap();
            assert_eq!(trace.dropped, 0);
            let kept: Vec<_> = (trace.events.iter())
                .map(|event| {
                    let (name, fields) = expected(trace, event);
                    (event.at, name, fields)
                })
                .collect();
            let heard = of_rank(&of_scopes, rank);
            assert!(
                heard == kept,
                "{policy_name}, rank {rank}:\n{heard:#?}\n{kept:#?}"
            );
        }
        let again = Ear::default().listen(|| in_virtual_time(&options));
        assert!(again.1 == told, "{policy_name}: another order");
        names.extend(told.into_iter().map(|told| told.name));
        // Events that are not recorded are heard all the same.
        let untraced = ScopeOptions {
            trace: None,
            ..options
        };
        let ((unrecorded, _), alone) = Ear::default().listen(|| in_virtual_time(&untraced));
        assert!(
            alone == again.1,
            "{policy_name}: what is heard depends on the ring"
        );
        let values = |ranks: &[(u64, ScopeReport)]| -> Vec<u64> {
            ranks.iter().map(|(value, _)| *value).collect()
        };
        let (unheard, _) = in_virtual_time(&untraced);
        assert_eq!(values(&unrecorded), values(&ranks));
        assert_eq!(values(&unheard), values(&ranks));
    }
    let all = [
        "answer",
        "begin collective",
        "begin join",
        "begin scope",
        "begin task",
        "begin wait",
        "cancel",
        "end collective",
        "end join",
        "end scope",
        "end task",
        "end wait",
        "exhausted",
        "fetch",
        "fetched",
        "gift",
        "give",
        "pool",
        "receive",
        "request",
        "results",
        "split",
        "unresponsive",
    ];
    assert_eq!(names, all.map(str::to_owned).into());
}

#[test]
fn spans_lie_in_each_other_as_tasks_do() {
    let (_, told) = Ear::default().listen(|| in_virtual_time(&ScopeOptions::default()));
    let mut within: BTreeMap<&str, BTreeSet<Option<&str>>> = BTreeMap::new();
    for told in &told {
        within.entry(&told.name).or_default().insert(told.within);
    }
    let expect = |name: &str, parents: &[Option<&'static str>]| {
        assert_eq!(within[name], parents.iter().copied().collect(), "{name}");
    };
    expect("begin scope", &[None]);
    expect("begin join", &[Some("scope")]);
    expect("begin task", &[Some("scope"), Some("wait")]);
    expect("begin wait", &[Some("task")]);
    expect("split", &[Some("task")]);
    expect("request", &[Some("scope")]);
}

#[test]
fn a_subscriber_hears_only_the_targets_that_it_wants() {
    assert!(!is_listened());
    let (ranks, told) = Ear::of("weft::steal").listen(|| {
        assert!(is_listened());
        in_virtual_time(&ScopeOptions::default()).0
    });
    let requests: u64 = ranks.iter().map(|(_, report)| report.requests).sum();
    let heard = told.iter().filter(|told| told.name == "request").count();
    assert_eq!(heard as u64, requests);
    assert!(told.iter().all(|told| told.target == "weft::steal"));
    // Nor is a scope slowed down for the sake of somebody who listens to something else.
    let ((), told) = Ear::of("another").listen(|| assert!(!is_listened()));
    assert_eq!(told, []);
}

#[test]
fn ranks_that_are_threads_are_heard_where_they_are_launched() {
    let options = ScopeOptions::default();
    let (ranks, told) = Ear::default().listen(|| {
        let launched = threads::launch(3, |comm| share(comm, &options).unwrap());
        launched.unwrap()
    });
    let tasks: u64 = ranks.iter().map(|(_, report)| report.tasks).sum();
    for name in ["begin task", "end task"] {
        let heard = told.iter().filter(|told| told.name == name);
        // A task that its worker puts back is taken up again.
        assert!(heard.count() as u64 >= tasks);
    }
    let of: BTreeSet<u64> = told.iter().map(|told| told.number("rank")).collect();
    assert_eq!(of, (0..3).collect());
}

/// A step of two phases, in the second of which a scope lies.
fn step(comm: &mut dyn Comm, keeps: bool) -> Vec<Mark> {
    let mut track = MainTrack::new(&*comm, keeps);
    track.begin("step", comm.now());
    track.begin("first", comm.now());
    comm.barrier().unwrap();
    track.end(comm.now(), Some(("things", 7)));
    track.begin("second", comm.now());
    share(comm, &ScopeOptions::default()).unwrap();
    track.wait(
        "halo",
        Rank(0),
        Duration::from_nanos(3),
        Duration::from_nanos(5),
    );
    track.count("tests", comm.now(), 11);
    track.end_down_to(0, comm.now());
    track.take_marks()
}

/// The phases and what else a main thread tells, with what they lie in.
fn of_main(told: &[Told]) -> Vec<(String, Option<&'static str>)> {
    let of_main = told.iter().filter(|told| {
        let targets = ["weft::phase", "weft::comm"];
        targets.contains(&told.target) || told.name == "begin scope"
    });
    of_main
        .map(|told| {
            let phase = told.fields.get("phase").map(String::as_str);
            let name = format!("{} {}", told.name, phase.unwrap_or_default());
            (name.trim_end().to_owned(), told.within)
        })
        .collect()
}

#[test]
fn phases_are_entered_where_a_rank_has_its_thread_to_itself() {
    let (marks, told) = Ear::default().listen(|| step(&mut Solo::new(), true));
    let phase = Some("phase");
    let expected = [
        ("begin phase step", None),
        ("begin phase first", phase),
        ("begin collective", phase),
        ("end collective", phase),
        ("end phase first", phase),
        ("begin phase second", phase),
        ("begin collective", phase),
        ("end collective", phase),
        ("begin scope", phase),
        ("waited", phase),
        ("counter", phase),
        ("end phase second", phase),
        ("end phase step", None),
    ];
    let expected = expected.map(|(name, within)| (name.to_owned(), within));
    assert_eq!(of_main(&told), expected);
    let first = told.iter().find(|t| t.name == "end phase").unwrap();
    assert_eq!(first.fields["counted"], "things");
    assert_eq!(first.number("count"), 7);
    let counter = told.iter().find(|t| t.name == "counter").unwrap();
    assert_eq!(
        (counter.fields["counter"].as_str(), counter.number("value")),
        ("tests", 11)
    );
    let names: Vec<&str> = marks
        .iter()
        .map(|mark| match mark {
            Mark::Phase { name, .. } | Mark::Counter { name, .. } => name,
            Mark::Wait { what, .. } => what,
        })
        .copied()
        .collect();
    assert_eq!(names, ["first", "halo", "tests", "second", "step"]);
    assert_eq!(step(&mut Solo::new(), false), []);
}

#[test]
fn phases_of_ranks_in_virtual_time_do_not_lie_in_each_other() {
    let machine = VirtualOptions::default();
    let run = || {
        let outcome = virtual_time::launch(3, &machine, |comm| step(comm, true));
        outcome.unwrap().results
    };
    let (marks, told) = Ear::default().listen(run);
    assert_eq!(marks, run());
    let heard = of_main(&told);
    for (name, within) in &heard {
        let expected = match name.as_str() {
            "begin phase step" | "end phase step" | "begin scope" => None,
            "begin collective" | "end collective" | "waited" => None,
            _ => Some("phase"),
        };
        assert_eq!(*within, expected, "{name}");
    }
    // Times are those of the marks.
    for (rank, marks) in marks.iter().enumerate() {
        let ended = told
            .iter()
            .filter(|told| told.name == "end phase" && told.number("rank") == rank as u64);
        let heard: Vec<(&str, u64, u64)> = ended
            .map(|t| {
                (
                    t.fields["phase"].as_str(),
                    t.number("at_ns"),
                    t.number("end_ns"),
                )
            })
            .collect();
        let kept: Vec<(&str, u64, u64)> = marks
            .iter()
            .filter_map(|mark| match *mark {
                Mark::Phase {
                    name, begin, end, ..
                } => Some((name, begin, end)),
                _ => None,
            })
            .collect();
        assert_eq!(heard, kept);
        assert!(heard.iter().any(|(_, begin, end)| begin < end));
    }
}
