//! Tests with traces made by hand, whose pictures and answers are known, and with random ones, on
//! which nothing may fail.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use proptest::prelude::*;
use serde_json::Value;

use super::*;

mod programs;

/// A trace whose kinds are `a "leaf"` and `root`.
fn trace(rank: u32, workers: usize, events: &[(u64, What)]) -> Trace {
    let events = events.iter();
    Trace {
        rank: Rank(rank),
        workers,
        kinds: vec!["a \"leaf\"".to_owned(), "root".to_owned()],
        events: events.map(|&(at, what)| Event { at, what }).collect(),
        dropped: 0,
        sharing: None,
    }
}

fn begin(kind: u16) -> What {
    begin_on(0, kind)
}

fn begin_on(worker: u16, kind: u16) -> What {
    What::TaskBegin {
        worker,
        kind,
        depth: 0,
        of: Detail::NOTHING,
    }
}

fn end() -> What {
    end_on(0)
}

fn end_on(worker: u16) -> What {
    What::TaskEnd { worker, units: 7 }
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn ns(ns: u64) -> Duration {
    Duration::from_nanos(ns)
}

/// Rank 0 works from 100 to 1000 but for a pause; rank 1 gets a task from it after a refusal.
fn two_ranks() -> Vec<Trace> {
    let asked = |victim| What::Asked { victim };
    let answered = |victim, tasks| What::Answered { victim, tasks };
    let gave = |thief, tasks| What::Gave { thief, tasks };
    vec![
        trace(
            0,
            1,
            &[
                (0, What::ScopeBegin),
                (80, What::JoinBegin),
                (100, begin(1)),
                (250, gave(1, 0)),
                (300, What::Split { worker: 0 }),
                (350, gave(1, 1)),
                (600, end()),
                (620, begin(0)),
                (700, gave(1, 2)),
                (1000, end()),
                (1040, What::JoinEnd),
                (1050, What::Dry),
                (1080, What::ScopeEnd),
            ],
        ),
        trace(
            1,
            1,
            &[
                (20, What::ScopeBegin),
                (20, What::JoinBegin),
                (200, asked(0)),
                (300, answered(0, 0)),
                (310, asked(0)),
                (400, answered(0, 1)),
                (400, begin(0)),
                (500, end()),
                (510, asked(0)),
                (560, answered(0, 0)),
                (600, asked(0)),
                (750, answered(0, 2)),
                (760, begin(0)),
                (800, end()),
                (1100, What::ScopeEnd),
            ],
        ),
    ]
}

#[test]
fn every_moment_has_a_cause() {
    let analysis = Analysis::of(&two_ranks());
    assert_eq!(analysis.makespan, ns(1100));
    let zero = &analysis.ranks[0];
    assert_eq!(zero.busy, ns(880));
    let expected = Idle {
        waiting_first: ns(20),
        unforked: ns(20),
        body: ns(80),
        switching: ns(20),
        end: ns(100),
        detection: ns(100),
        ..Idle::default()
    };
    assert_eq!(zero.idle, expected);
    let one = &analysis.ranks[1];
    assert_eq!(one.busy, ns(140));
    let expected = Idle {
        waiting_first: ns(400),
        unforked: ns(100),
        switching: ns(10),
        starving: ns(100),
        answer: ns(150),
        end: ns(300),
        detection: ns(100),
        ..Idle::default()
    };
    assert_eq!(one.idle, expected);
    let steals = Steals {
        asked: 4,
        served: 2,
        refused: 2,
        tasks_in: 3,
        tasks_out: 3,
        splits: 1,
        latency: ns(240),
    };
    assert_eq!(analysis.steals, steals);
    assert_eq!(analysis.steals.mean_latency(), ns(120));
    assert_eq!(analysis.intervals, 4);
    assert_eq!(analysis.mean_interval(), ns(255));
    let longest = analysis.longest.as_ref().expect("tasks ran");
    assert_eq!((longest.rank, longest.own), (Rank(0), ns(500)));
    assert_eq!((longest.kind.as_str(), longest.splits), ("root", 1));
    let last = analysis.last.as_ref().expect("tasks ran");
    assert_eq!((last.rank, last.end, last.splits), (Rank(0), ns(1000), 0));
    assert_eq!(analysis.work_bound(), ns(510));
    assert!((analysis.efficiency() - 1020.0 / 2200.0).abs() < 1e-12);
}

#[test]
fn a_long_task_is_blamed() {
    let scope = |rank: u32, ms: u64| {
        let events = [
            (0, What::ScopeBegin),
            (0, What::JoinBegin),
            (1_000_000, begin(0)),
            (ms * 1_000_000, end()),
            (20_000_000, What::JoinEnd),
            (20_000_000, What::ScopeEnd),
        ];
        trace(rank, 1, &events)
    };
    let traces = [scope(0, 9), scope(1, 19), scope(2, 9), scope(3, 9)];
    let analysis = Analysis::of(&traces);
    assert_eq!(analysis.longest_bound(), ms(18));
    assert_eq!(analysis.hint(), Some(Hint::LongTask));
    let expected = "\
Efficiency 52 % on 4 ranks in 20.0 ms: 5 % of the time went before ranks had their first task, 38 % at \
the end while rank 1 finished one task of 18.0 ms that was never split; detection 5 %.
Tasks ran in 4 intervals of 10.5 ms on average; the longest, `a \"leaf\"` on rank 1 worker 0, took 18.0 ms.
Spread evenly, all work takes 10.5 ms on 4 workers; no schedule takes less than the longest task, 18.0 ms, \
unless it is split.
Hint: the longest task takes more than half of the whole time, and none like it was ever split: make it \
splittable (implement Task::split, and return from Task::run often, so that it can be asked), hyperfork \
parts of it, or fork smaller tasks.";
    assert_eq!(analysis.to_string(), expected);
}

/// Rank 0 has ten tasks of 1 ms, one after the other, and the other ranks one each: it is not the
/// last task that they wait for.
#[test]
fn the_last_of_many_tasks_is_not_blamed_for_all_of_them() {
    let scope = |rank: u32, tasks: u64| {
        let mut events = vec![(0, What::ScopeBegin), (0, What::JoinBegin)];
        for task in 0..tasks {
            events.push((task * 1_000_000, begin(0)));
            events.push(((task + 1) * 1_000_000, end()));
        }
        events.push((10_000_000, What::JoinEnd));
        events.push((10_000_000, What::ScopeEnd));
        trace(rank, 1, &events)
    };
    let story = |tasks: u64| {
        let traces = [scope(0, tasks), scope(1, 1), scope(2, 1), scope(3, 1)];
        Analysis::of(&traces).story().to_string()
    };
    let text = story(10);
    let words = "68 % at the end, while others still had tasks, rank 0 the last of them";
    assert!(
        text.contains(words) && !text.contains("one task of"),
        "{text}"
    );
    // Two tasks, one after the other, explain this; the last one explains half of it.
    let text = story(2);
    assert!(
        text.contains("while rank 0 finished one task of 1.0 ms that was never split"),
        "{text}"
    );
}

#[test]
fn a_mean_victim_is_blamed() {
    // Rank 0 has all the work, in short tasks; rank 1 asks again and again.
    let mut giver = vec![(0, What::ScopeBegin), (0, What::JoinBegin)];
    let mut thief = vec![
        (0, What::ScopeBegin),
        (0, What::JoinBegin),
        (0, begin(0)),
        (10, end()),
    ];
    for at in (0..1000).step_by(10) {
        giver.extend([(at, begin(0)), (at + 10, end())]);
        if at >= 10 {
            let tasks = 0;
            thief.extend([
                (at, What::Asked { victim: 0 }),
                (at + 9, What::Answered { victim: 0, tasks }),
            ]);
        }
    }
    thief.extend([(990, begin(0)), (1000, end())]);
    thief.sort_by_key(|&(at, _)| at);
    let analysis = Analysis::of(&[trace(0, 1, &giver), trace(1, 1, &thief)]);
    assert_eq!(analysis.idle.starving, ns(980));
    assert_eq!(analysis.hint(), Some(Hint::GivesTooLittle));
    let text = analysis.to_string();
    let sentence =
        "49 % idle while those that were asked had nothing to give (99 of 99 requests refused).";
    assert!(text.contains(sentence), "{text}");
    assert!(text.contains("Policy::split (--split)"), "{text}");
}

#[test]
fn workers_without_tasks_starve() {
    let events = [
        (0, What::ScopeBegin),
        (0, begin(0)),
        (40, end()),
        (40, begin(0)),
        (80, end()),
        (100, What::ScopeEnd),
    ];
    let analysis = Analysis::of(&[trace(0, 2, &events), trace(1, 1, &[])]);
    assert_eq!(analysis.workers, 3);
    assert_eq!(analysis.idle.starving, ns(160));
    assert_eq!(analysis.idle.end, ns(60));
    assert_eq!(analysis.idle.detection, ns(60));
    assert_eq!(analysis.hint(), Some(Hint::NobodyAsks));
}

#[test]
fn tasks_within_tasks_count_once() {
    let events = [
        (0, begin(1)),
        (100, What::Split { worker: 0 }),
        (200, begin(0)),
        (200, What::Split { worker: 0 }),
        (200, What::Split { worker: 0 }),
        (800, end()),
        (1000, end()),
    ];
    let analysis = Analysis::of(&[trace(0, 1, &events)]);
    assert_eq!(analysis.busy, ns(1000));
    assert_eq!(analysis.idle.total(), Duration::ZERO);
    let longest = analysis.longest.as_ref().expect("tasks ran");
    assert_eq!((longest.own, longest.splits), (ns(600), 2));
    let last = analysis.last.as_ref().expect("tasks ran");
    assert_eq!((last.own, last.splits), (ns(400), 1));
    assert_eq!(analysis.hint(), None);
}

#[test]
fn waiting_in_a_join_is_idle_but_for_tasks() {
    let waits = |worker| What::WaitBegin { worker };
    let goes_on = |worker| What::WaitEnd { worker };
    let events = [
        (0, begin(1)),
        (100, waits(0)),
        (200, begin(0)),
        (300, waits(0)),
        (300, begin(0)),
        (350, end()),
        (400, goes_on(0)),
        (450, end()),
        (600, goes_on(0)),
        // The join answered at once, because its results were there.
        (600, end()),
        (600, begin(0)),
        (600, waits(0)),
        (800, goes_on(0)),
        (1000, end()),
    ];
    let traces = [trace(0, 1, &events)];
    let analysis = Analysis::of(&traces);
    assert_eq!(analysis.busy, ns(500));
    let expected = Idle {
        joins: ns(500),
        ..Idle::default()
    };
    assert_eq!(analysis.idle, expected);
    let longest = analysis.longest.as_ref().expect("tasks ran");
    assert_eq!((longest.begin, longest.own), (ns(600), ns(200)));
    assert_eq!(longest.waited(), ns(200));
    let pictures = picture(&traces);
    check(&pictures);
    let joins = pictures.iter().filter(|e| e["name"] == "join");
    assert_eq!(joins.count(), 3);
    let counter = pictures.iter().filter(|e| e["ph"] == "C");
    let busy: Vec<_> = counter.map(|e| e["args"]["busy"].as_u64()).collect();
    assert_eq!(busy, [1, 0, 1, 0, 1, 0, 1, 0].map(Some));
}

#[test]
fn a_body_at_work_is_blamed() {
    let body = [
        (0, What::ScopeBegin),
        (0, What::JoinBegin),
        (0, begin(0)),
        (100, end()),
        (110, What::JoinEnd),
        (990, What::JoinBegin),
        (995, What::JoinEnd),
        (1000, What::ScopeEnd),
    ];
    let other = [
        (0, What::ScopeBegin),
        (0, begin(0)),
        (100, end()),
        (1000, What::ScopeEnd),
    ];
    let analysis = Analysis::of(&[trace(0, 1, &body), trace(1, 1, &other)]);
    assert_eq!(analysis.idle.body, ns(880));
    assert_eq!(analysis.idle.detection, ns(20));
    assert_eq!(analysis.last_body, Some((Rank(0), ns(890))));
    assert_eq!(analysis.hint(), Some(Hint::BodyWorks));
    let text = analysis.to_string();
    assert!(
        text.contains("and then while the body of rank 0 was at work for 890 ns"),
        "{text}"
    );
}

#[test]
fn a_task_that_keeps_its_rank_from_answering_is_named() {
    let us = 14_000;
    let deaf = What::Deaf {
        kind: 1,
        requests: 2,
        us,
    };
    let giver = [
        (0, What::ScopeBegin),
        (0, What::JoinBegin),
        (0, begin(1)),
        (14_000_000, deaf),
        (14_000_000, What::Gave { thief: 1, tasks: 1 }),
        (16_000_000, end()),
        (30_000_000, begin(0)),
        (31_000_000, end()),
        (31_000_000, What::ScopeEnd),
    ];
    let tasks = 1;
    let thief = [
        (0, What::ScopeBegin),
        (0, What::JoinBegin),
        (0, begin(0)),
        (10, end()),
        (10, What::Asked { victim: 0 }),
        (30_000_000, What::Answered { victim: 0, tasks }),
        (30_000_000, begin(0)),
        (31_000_000, end()),
        (31_000_000, What::ScopeEnd),
    ];
    let traces = [trace(0, 1, &giver), trace(1, 1, &thief)];
    let analysis = Analysis::of(&traces);
    let found = analysis.deafness.as_ref().expect("there was one");
    assert_eq!((found.rank, found.kind.as_str()), (Rank(0), "root"));
    assert_eq!((found.time, found.end), (ms(14), ms(14)));
    assert_eq!((found.times, found.requests_in_all), (1, 2));
    let text = analysis.to_string();
    assert!(
        text.contains(
            "Rank 0 read no messages for 14.0 ms while it ran `root`: 2 requests waited for that."
        ),
        "{text}"
    );
    assert_eq!(analysis.hint(), Some(Hint::DeafTask));
    assert!(
        text.contains("`root` runs for long without returning"),
        "{text}"
    );
    let events = picture(&traces);
    check(&events);
    let slice = events.iter().find(|e| e["name"] == "reads no messages");
    let slice = slice.expect("it is drawn");
    assert_eq!(
        (&slice["ts"], &slice["dur"]),
        (&0.0.into(), &14_000.0.into())
    );
    assert_eq!(slice["args"]["because of"], "root");
}

#[test]
fn gifts_are_arrows_of_their_own() {
    let giver = [
        (0, What::ScopeBegin),
        (5, What::Gifted { thief: 1, tasks: 2 }),
        (9, What::Gave { thief: 1, tasks: 0 }),
    ];
    let thief = [
        (0, What::ScopeBegin),
        (2, What::Asked { victim: 0 }),
        (
            7,
            What::Got {
                victim: 0,
                tasks: 2,
            },
        ),
        (
            12,
            What::Answered {
                victim: 0,
                tasks: 0,
            },
        ),
    ];
    let traces = [trace(0, 1, &giver), trace(1, 1, &thief)];
    let events = picture(&traces);
    check(&events);
    let names = |phase: &'static str| {
        let ends = events.iter().filter(move |e| e["ph"] == phase);
        ends.map(|e| e["name"].as_str().expect("a name"))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        (names("s"), names("f")),
        (vec!["gift", "request"], vec!["request", "gift"])
    );
    let steals = Analysis::of(&traces).steals;
    assert_eq!((steals.asked, steals.refused, steals.tasks_in), (1, 1, 2));
}

#[test]
fn events_take_what_the_documentation_says() {
    assert_eq!(size_of::<Event>(), 24);
    assert_eq!((size_of::<Span>(), size_of::<Sample>()), (24, 24));
}

#[test]
fn timelines_frame_their_scopes() {
    let kinds = [("step", "number"), ("halo", "rank")].map(|(name, detail)| SpanKind {
        name: name.to_owned(),
        detail: detail.to_owned(),
    });
    let timelines: Vec<Timeline> = (0..)
        .zip(two_ranks())
        .map(|(rank, trace)| {
            let counters = vec!["tests".to_owned()];
            let mut line = Timeline::new(Rank(rank), kinds.to_vec(), counters, 1000);
            line.host = "a \"host\"".to_owned();
            line.add_scope(1, trace.clone());
            let later = trace.events.iter().map(|e| Event {
                at: e.at + 5000,
                ..*e
            });
            let events = later.collect();
            line.add_scope(2, Trace { events, ..trace });
            for (begin, end, kind, detail) in [
                (1200, 1300, 1, 7),
                (0, 1500, 0, 1),
                // By somebody's error it outlasts its step.
                (6200, 6900, 1, 7),
                (4900, 6800, 0, 2),
            ] {
                line.span(Span {
                    begin,
                    end,
                    kind,
                    detail,
                });
            }
            line.sample(Sample {
                at: 1500,
                counter: 0,
                value: 9,
            });
            line
        })
        .collect();
    let mut bytes = Vec::new();
    write_timelines(&timelines, &mut bytes).expect("a Vec takes all");
    let json: Value = serde_json::from_slice(&bytes).expect("it is JSON");
    assert_eq!(json["otherData"]["ranks"][1]["events"], 35);
    let events = json["traceEvents"].as_array().expect("events");
    check(events);
    let arrows = events.iter().filter(|e| e["ph"] == "f").count();
    assert_eq!(arrows, 10, "as in one scope, twice");
    let main: Vec<String> = events
        .iter()
        .filter(|e| e["tid"] == 1 && e["pid"] == 1 && e["ph"] != "M")
        .map(|e| match e["ph"].as_str() {
            Some("B") => format!("{} {}", e["name"].as_str().unwrap_or("?"), e["ts"]),
            _ => format!("end {}", e["ts"]),
        })
        .collect();
    let expected = [
        "step 0.0",
        "scope 0.0",
        "join 0.08",
        "end 1.04",
        "end 1.08",
        "halo 1.2",
        "end 1.3",
        "end 1.5",
        "step 4.9",
        "scope 5.0",
        "join 5.08",
        "end 6.04",
        "end 6.08",
        "halo 6.2",
        "end 6.8",
        "end 6.8",
    ];
    assert_eq!(main, expected);
    let name = &events[0]["args"]["name"];
    assert_eq!(name, "rank 0 on a \"host\"");
}

#[test]
fn a_trace_says_how_many_events_were_lost() {
    let mut lossy = trace(0, 1, &[(0, begin(0)), (9, What::Dry)]);
    lossy.dropped = 12_345;
    let text = Analysis::of(&[lossy]).to_string();
    assert!(text.starts_with("12,345 events found no room"), "{text}");
    assert!(text.contains("\nEfficiency 100 %"), "{text}");
    assert_eq!(Analysis::of(&[]).to_string(), "Nothing happened.");
    assert_eq!(Analysis::of(&[trace(0, 1, &[])]).efficiency(), 1.0);
}

fn picture(traces: &[Trace]) -> Vec<Value> {
    let mut bytes = Vec::new();
    write_perfetto(traces, &mut bytes).expect("a Vec takes all");
    let mut json: Value = serde_json::from_slice(&bytes).expect("it is JSON");
    match json["traceEvents"].take() {
        Value::Array(events) => events,
        other => panic!("{other}"),
    }
}

/// Checks what viewers rely on: ends follow begins on every track, arrows have two ends, time goes
/// on.
fn check(events: &[Value]) {
    let mut depth: HashMap<(u64, u64), u64> = HashMap::new();
    let mut clock: HashMap<(u64, u64, Option<&str>), f64> = HashMap::new();
    let mut arrows: BTreeMap<u64, Vec<&str>> = BTreeMap::new();
    for event in events {
        let phase = event["ph"].as_str().expect("every event has a phase");
        let pid = event["pid"].as_u64().expect("every event has a process");
        assert!(pid > 0);
        if phase == "M" {
            continue;
        }
        let at = event["ts"].as_f64().expect("every event has a time");
        let track = (pid, event["tid"].as_u64().unwrap_or(0));
        let counter = event["name"].as_str().filter(|_| phase == "C");
        let last = clock.insert((track.0, track.1, counter), at).unwrap_or(0.0);
        assert!(last <= at, "{last} {event}");
        let depth = depth.entry(track).or_default();
        match phase {
            "B" => *depth += 1,
            "E" => *depth = depth.checked_sub(1).expect("an end has a begin"),
            "s" | "f" => {
                let id = event["id"].as_u64().expect("arrows have numbers");
                arrows.entry(id).or_default().push(phase);
                assert_eq!(event["bp"], "e");
            }
            "C" | "i" | "X" => {}
            other => panic!("{other}"),
        }
    }
    assert!(depth.values().all(|&depth| depth == 0), "{depth:?}");
    for (id, mut ends) in arrows {
        ends.sort_unstable();
        assert_eq!(ends, ["f", "s"], "arrow {id}");
    }
}

#[test]
fn pictures_hold_what_happened() {
    let traces = two_ranks();
    let events = picture(&traces);
    check(&events);
    let of = |phase: &'static str| events.iter().filter(move |e| e["ph"] == phase);
    let names = of("B").map(|e| e["name"].as_str().expect("a name"));
    let leaves = names.filter(|&name| name == "a \"leaf\"");
    assert_eq!(leaves.count(), 3);
    // Requests lead from rank 1 to rank 0, tasks from rank 0 to rank 1, in order.
    let arrows = |phase, name: &str| {
        let ends = of(phase).filter(|e| e["name"] == name);
        let ends = ends.map(|e| format!("{} {} {}", e["pid"], e["id"], e["ts"]));
        ends.collect::<Vec<_>>()
    };
    assert_eq!(arrows("s", "request"), ["2 1 0.2", "2 2 0.31", "2 3 0.51"]);
    assert_eq!(arrows("f", "request"), ["1 1 0.25", "1 2 0.35", "1 3 0.7"]);
    assert_eq!(arrows("s", "steal"), ["1 4 0.35", "1 5 0.7"]);
    assert_eq!(arrows("f", "steal"), ["2 4 0.4", "2 5 0.75"]);
    let marks = of("i").filter(|e| e["name"] == "refused by rank 0");
    assert_eq!(marks.count(), 2);
    let counter = of("C").filter(|e| e["pid"] == 2);
    let busy: Vec<_> = counter.map(|e| e["args"]["busy"].as_u64()).collect();
    assert_eq!(busy, [0, 1, 0, 1, 0].map(Some));
}

#[test]
fn pictures_of_nothing_are_valid() {
    assert!(picture(&[]).is_empty());
    check(&picture(&[trace(0, 3, &[])]));
}

#[test]
fn pictures_close_what_is_open() {
    let events = [
        (0, What::ScopeBegin),
        (1, begin_on(1, 9)),
        (2, begin_on(5, 0)),
        (u64::MAX, What::Cancelled),
    ];
    let rank = trace(0, 2, &events);
    assert!(Analysis::of(std::slice::from_ref(&rank)).efficiency() < 1.0);
    let events = picture(&[rank]);
    check(&events);
    assert!(events.iter().any(|e| e["name"] == "kind 9"));
}

#[test]
fn equal_traces_make_equal_bytes() {
    let bytes = || {
        let mut bytes = Vec::new();
        write_perfetto(&two_ranks(), &mut bytes).expect("a Vec takes all");
        bytes
    };
    assert_eq!(bytes(), bytes());
}

#[test]
fn traces_can_be_sent_as_messages() {
    let traces = two_ranks();
    let json = serde_json::to_string(&traces).expect("it has a form");
    let back: Vec<Trace> = serde_json::from_str(&json).expect("its own form");
    assert_eq!(back, traces);
}

fn any_what() -> impl Strategy<Value = What> {
    let rank = 0..3_u32;
    prop_oneof![
        4 => (0..3_u16, 0..3_u16).prop_map(|(worker, kind)| begin_on(worker, kind)),
        4 => (0..4_u16).prop_map(end_on),
        1 => (0..4_u16).prop_map(|worker| What::Split { worker }),
        2 => rank.clone().prop_map(|victim| What::Asked { victim }),
        2 => (rank.clone(), 0..2_u32).prop_map(|(victim, tasks)| What::Answered { victim, tasks }),
        2 => (rank.clone(), 0..2_u32).prop_map(|(thief, tasks)| What::Gave { thief, tasks }),
        1 => (rank.clone(), 1..3_u32).prop_map(|(thief, tasks)| What::Gifted { thief, tasks }),
        1 => (rank, 1..3_u32).prop_map(|(victim, tasks)| What::Got { victim, tasks }),
        1 => (0..3_u16, 0..2_u16, 0..90_u32)
            .prop_map(|(kind, requests, us)| What::Deaf { kind, requests, us }),
        1 => (0..9_u32).prop_map(|tasks| What::Pool { tasks }),
        3 => (0..4_u16).prop_map(|worker| What::WaitBegin { worker }),
        3 => (0..4_u16).prop_map(|worker| What::WaitEnd { worker }),
        1 => Just(What::JoinBegin),
        1 => Just(What::JoinEnd),
        1 => Just(What::ScopeBegin),
        1 => Just(What::ScopeEnd),
        1 => Just(What::Dry),
    ]
}

proptest! {
    /// Parts add up and pictures are valid whatever a file holds.
    #[test]
    fn any_trace_adds_up(
        ranks in prop::collection::vec(prop::collection::vec((0..50_u64, any_what()), 0..60), 0..4)
    ) {
        let traces: Vec<Trace> = (0..)
            .zip(&ranks)
            .map(|(rank, events)| trace(rank, 2, events))
            .collect();
        let analysis = Analysis::of(&traces);
        for rank in &analysis.ranks {
            let time = analysis.makespan * rank.workers as u32;
            prop_assert_eq!(rank.busy + rank.idle.total(), time);
            prop_assert!(rank.idle.detection <= rank.idle.end);
        }
        prop_assert!(!analysis.to_string().is_empty());
        check(&picture(&traces));
    }

    /// A recorder keeps begins and ends in pairs, and within its room, also when it is full.
    #[test]
    fn recorders_keep_the_beginning_and_the_end_of_each_span(
        capacity in 1..40_usize,
        whats in prop::collection::vec(any_what(), 0..60),
    ) {
        let mut recorder = Recorder::with_capacity(capacity);
        // Every begin has its end in the end.
        let open = |what: &What| match *what {
            What::TaskBegin { worker, .. } => Some(end_on(worker)),
            What::WaitBegin { worker } => Some(What::WaitEnd { worker }),
            What::JoinBegin => Some(What::JoinEnd),
            What::ScopeBegin => Some(What::ScopeEnd),
            _ => None,
        };
        let ends: Vec<What> = whats.iter().filter_map(open).collect();
        let all = whats.iter().chain(&ends);
        let count = all.clone().count();
        for (at, &what) in (0..).zip(all) {
            recorder.record(ns(at), what);
        }
        let trace = recorder.into_trace(Rank(0), 4, vec![]);
        prop_assert!(trace.events.len() <= capacity);
        prop_assert_eq!(trace.events.len() as u64 + trace.dropped, count as u64);
        let mut depth: HashMap<String, i32> = HashMap::new();
        for event in &trace.events {
            let (track, step) = match event.what {
                What::TaskBegin { worker, .. } => (format!("{worker}"), 1),
                What::TaskEnd { worker, .. } => (format!("{worker}"), -1),
                What::WaitBegin { worker } => (format!("{worker}"), 1),
                What::WaitEnd { worker } => (format!("{worker}"), -1),
                What::JoinBegin => ("join".to_owned(), 1),
                What::JoinEnd => ("join".to_owned(), -1),
                What::ScopeBegin => ("scope".to_owned(), 1),
                What::ScopeEnd => ("scope".to_owned(), -1),
                _ => continue,
            };
            let depth = depth.entry(track).or_default();
            *depth += step;
            prop_assert!(*depth >= 0);
        }
        prop_assert!(depth.values().all(|&depth| depth == 0));
    }
}
