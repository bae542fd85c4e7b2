//! Runs made by hand: timelines whose every nanosecond is known, and directories that hold them.

#![allow(dead_code, reason = "not every test uses all of it")]

use std::fs;
use std::path::Path;
use std::time::Duration;

use weft_runtime::comm::Rank;
use weft_runtime::policy::Policy;
use weft_runtime::trace::{Event, Recorder, Span, SpanKind, Timeline, Trace, What};
use weft_runtime::wire;

pub(crate) const STEP: u16 = 0;
pub(crate) const COLLIDE: u16 = 1;
pub(crate) const SOLVE: u16 = 2;
pub(crate) const ALLGATHER: u16 = 3;
pub(crate) const EXCHANGE: u16 = 4;

pub(crate) fn empty(rank: u32) -> Timeline {
    let names = [
        "step",
        "collide",
        "solve",
        "wait: allgather",
        "wait: exchange",
    ];
    let kind = |name: &str| SpanKind {
        name: name.to_owned(),
        detail: String::new(),
    };
    Timeline::new(Rank(rank), names.map(kind).to_vec(), Vec::new(), 1 << 20)
}

pub(crate) fn span(timeline: &mut Timeline, kind: u16, begin: u64, end: u64, detail: u32) {
    timeline.span(Span {
        begin,
        end,
        kind,
        detail,
    });
}

pub(crate) fn scope(timeline: &mut Timeline, step: u64, events: &[(u64, What)]) {
    let events = events
        .iter()
        .map(|&(at, what)| Event { at, what })
        .collect();
    let trace = Trace {
        rank: timeline.rank,
        workers: 1,
        kinds: vec!["collide".to_owned()],
        events,
        dropped: 0,
        sharing: None,
    };
    timeline.lend();
    timeline.add_scope(step, trace.under(&Policy::PAPER));
}

/// Adds a scope with as many events as the timeline has room for.
pub(crate) fn bounded_scope(timeline: &mut Timeline, step: u64, events: &[(u64, What)]) {
    let mut recorder = Recorder::with_capacity(timeline.lend());
    for &(at, what) in events {
        recorder.record(Duration::from_nanos(at), what);
    }
    let kinds = vec!["collide".to_owned()];
    let trace = recorder.into_trace(timeline.rank, 1, kinds);
    timeline.add_scope(step, trace.under(&Policy::PAPER));
}

pub(crate) fn task(of: [u32; 2]) -> What {
    What::TaskBegin {
        worker: 0,
        kind: 0,
        depth: 0,
        of,
    }
}

pub(crate) fn end(units: u32) -> What {
    What::TaskEnd { worker: 0, units }
}

/// A step of 1000 ns on two ranks. Rank 0 has two tasks, and one more that rank 1 steals.
///
/// | ns | rank 0 | rank 1 |
/// |---|---|---|
/// | 0 | task of patch 0, another task in its pool | nothing, and asks nobody |
/// | 100 | | asks rank 2, which is not there, and rank 0 |
/// | 200 | task of patches 0 and 1; the pool is empty | stolen task of patch 0 and a body |
/// | 300 | | nothing; refused |
/// | 400 | nothing | |
/// | 500 | rest of `collide` | the same; waits from 520 to 560 |
/// | 600 | `solve` | `solve` |
/// | 900 | waits in a reduction | |
pub(crate) fn two_ranks() -> Vec<Timeline> {
    let mut first = empty(0);
    let mut second = empty(1);
    for timeline in [&mut first, &mut second] {
        span(timeline, COLLIDE, 0, 600, 0);
        span(timeline, SOLVE, 600, 1000, 0);
        span(timeline, STEP, 0, 1000, 7);
    }
    span(&mut first, ALLGATHER, 900, 1000, 1);
    span(&mut second, EXCHANGE, 520, 560, 0);
    scope(
        &mut first,
        7,
        &[
            (0, What::ScopeBegin),
            (0, What::JoinBegin),
            (0, What::Pool { tasks: 1 }),
            (0, task([0, 0])),
            (200, end(10)),
            (200, What::Pool { tasks: 0 }),
            (200, task([0, 1])),
            (400, end(6)),
            (500, What::JoinEnd),
            (500, What::ScopeEnd),
        ],
    );
    scope(
        &mut second,
        7,
        &[
            (0, What::ScopeBegin),
            (0, What::JoinBegin),
            (100, What::Asked { victim: 0 }),
            (
                200,
                What::Answered {
                    victim: 0,
                    tasks: 1,
                },
            ),
            (200, task([0, 1_000_000])),
            (300, end(8)),
            (310, What::Asked { victim: 0 }),
            (
                350,
                What::Answered {
                    victim: 0,
                    tasks: 0,
                },
            ),
            (500, What::JoinEnd),
            (500, What::ScopeEnd),
        ],
    );
    vec![first, second]
}

/// The directory of a run with these traces; each rank owns one patch.
pub(crate) fn directory(path: &Path, timelines: &[Timeline], exit: &str) {
    let ranks: Vec<String> = (0..timelines.len())
        .map(|rank| {
            format!(
                r#"{{"first_patch": {rank}, "end_patch": {}, "tasks_s": 1.0, "tests": 9, "refused": 1, "bytes": 50}}"#,
                rank + 1
            )
        })
        .collect();
    // It is named at the end.
    let trace = match exit {
        "null" => "null",
        _ => r#"{"clock_error_s": 0.0}"#,
    };
    let record = format!(
        r#"{{"schema": 1, "program": {{"name": "weftwork"}}, "run": "made", "command": ["weft", "run", "made.toml", "--set", "time.end=1 s"],
            "machine": {{"ranks": {}, "threads": 1, "comm": "threads"}},
            "scene": {{"name": "made", "path": "made.toml"}}, "loop_s": 2.0, "exit": {exit}, "trace": {trace},
            "phases": [{{"name": "collide", "min_s": 1.0, "min_rank": 0, "avg_s": 1.5, "max_s": 2.0, "max_rank": 1}}],
            "balance": {{"top_level": 3, "tasks": 3, "tests": 24, "steal_requests": 2, "steals": 1}},
            "ranks": [{}]}}"#,
        timelines.len(),
        ranks.join(",")
    );
    fs::create_dir_all(path.join("trace")).unwrap();
    fs::write(path.join("run.json"), record).unwrap();
    fs::write(
        path.join("history.csv"),
        "step,tests,steals,physics_s,collide_s,solve_s,response_s\n7,24,1,0.1,0.2,0.3,0.4\n",
    )
    .unwrap();
    for (rank, timeline) in timelines.iter().enumerate() {
        let mut bytes = Vec::new();
        let timeline = wire::encode(timeline).unwrap();
        weft_report::write_trace_file(&mut bytes, "made", &timeline).unwrap();
        fs::write(path.join(format!("trace/rank-{rank:05}.bin")), bytes).unwrap();
    }
}
