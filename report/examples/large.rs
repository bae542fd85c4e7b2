//! Makes the trace of a run that never was, of many ranks and events, and reports it: how long that
//! takes, and for `tests/report-browser.sh` to see that the page still draws.
//!
//! `cargo run --release -p weft-report --example large -- DIR [RANKS [EVENTS]]` writes a run's
//! directory and, in it, `report.html`.

#![allow(clippy::print_stdout, reason = "it is a program")]

use std::error::Error;
use std::fs::{self, File};
use std::io::BufWriter;
use std::path::Path;
use std::time::Instant;

use weft_report::{Cloth, Report, Run, write_trace_file};
use weft_runtime::comm::Rank;
use weft_runtime::policy::Policy;
use weft_runtime::trace::{Event, Span, SpanKind, Timeline, Trace, What};
use weft_runtime::wire;

const STEPS: u64 = 40;
/// Length of a step in ns.
const STEP: u64 = 20_000_000;
/// Patches of each rank.
const PATCHES: u32 = 4;

#[expect(clippy::disallowed_methods, reason = "it says how long a report takes")]
fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let directory = arguments.next().ok_or("large DIR [RANKS [EVENTS]]")?;
    let directory = Path::new(&directory);
    let mut number = |default| arguments.next().map_or(Ok(default), |text| text.parse());
    let ranks: u64 = number(64)?;
    let events: u64 = number(1_000_000)?;
    fs::create_dir_all(directory.join("trace"))?;
    let owners: Vec<String> = (0..ranks)
        .map(|r| {
            let first = r * u64::from(PATCHES);
            format!(
                r#"{{"first_patch": {first}, "end_patch": {}}}"#,
                first + u64::from(PATCHES)
            )
        })
        .collect();
    let record = format!(
        r#"{{"schema": 1, "program": {{"name": "weftwork"}}, "run": "large", "exit": 0, "loop_s": 1.0, "trace": {{}},
            "machine": {{"ranks": {ranks}, "threads": 1, "comm": "virtual"}},
            "scene": {{"name": "large", "path": "large.toml"}}, "ranks": [{}]}}"#,
        owners.join(",")
    );
    fs::write(directory.join("run.json"), record)?;
    let mut history = "step,collide_s,physics_s,solve_s,response_s,tests,steals\n".to_owned();
    for step in 1..=STEPS {
        history += &format!("{step},0.01,0.003,0.004,0.001,100000,50\n");
    }
    fs::write(directory.join("history.csv"), history)?;
    let mut random = Random(7);
    let mut kept = 0;
    for rank in 0..ranks {
        let timeline = timeline(rank, ranks, events / ranks / STEPS, &mut random);
        kept += timeline.events();
        let mut bytes = Vec::new();
        write_trace_file(&mut bytes, "large", &wire::encode(&timeline)?)?;
        fs::write(directory.join(format!("trace/rank-{rank:05}.bin")), bytes)?;
    }
    let began = Instant::now();
    let mut run = Run::read(directory)?;
    run.cloth = Some(cloth(ranks as u32 * PATCHES));
    let report = Report::new(vec![run]);
    let text = report.text();
    let page = directory.join("report.html");
    report.write_page(&mut BufWriter::new(File::create(&page)?))?;
    println!(
        "{text}\n{kept} events on {ranks} ranks: read, counted and written in {:.2} s, {:.1} MB",
        began.elapsed().as_secs_f64(),
        fs::metadata(&page)?.len() as f64 / 1e6
    );
    Ok(())
}

/// Steps of tasks on one rank, fewer on ranks of higher number, with requests after them and waits
/// in the solve.
fn timeline(rank: u64, ranks: u64, events: u64, random: &mut Random) -> Timeline {
    let kind = |name: &str| SpanKind {
        name: name.to_owned(),
        detail: String::new(),
    };
    let kinds = ["step", "collide", "assemble", "solve", "wait: allgather"].map(kind);
    let id = Rank(rank as u32);
    let mut timeline = Timeline::new(id, kinds.to_vec(), Vec::new(), usize::MAX / 4);
    for step in 1..=STEPS {
        let begin = step * STEP;
        let collide = begin + STEP / 2;
        let mut happened = Vec::new();
        let mut note = |at, what| happened.push(Event { at, what });
        note(begin, What::ScopeBegin);
        note(begin, What::JoinBegin);
        let tasks = events * 4 / 10 + 1;
        let busy = STEP / 2 * (ranks - rank / 2) / ranks;
        let mut at = begin;
        for _ in 0..tasks {
            let length = busy / tasks * (2 + random.below(8)) / 10;
            // Patches of its own, and now and then of another.
            let owner = if random.below(9) == 0 {
                random.below(ranks)
            } else {
                rank
            };
            let patch = (owner as u32) * PATCHES + random.below(u64::from(PATCHES)) as u32;
            let what = What::TaskBegin {
                worker: 0,
                kind: 0,
                depth: random.below(5) as u16,
                of: [patch, patch + u32::from(random.below(2) == 0)],
            };
            note(at, what);
            at += length;
            let units = (length / 40) as u32;
            note(at, What::TaskEnd { worker: 0, units });
            at += busy / tasks / 10;
        }
        while at + 20_000 < collide && random.below(30) > 0 {
            let victim = random.below(ranks) as u32;
            note(at, What::Asked { victim });
            let tasks = u32::from(random.below(3) == 0);
            note(at + 9_000, What::Answered { victim, tasks });
            at += 10_000;
        }
        note(collide, What::ScopeEnd);
        let span = |kind, begin, end, detail| Span {
            begin,
            end,
            kind,
            detail,
        };
        let trace = Trace {
            rank: id,
            workers: 1,
            kinds: vec!["collide".to_owned()],
            events: happened,
            dropped: 0,
            sharing: None,
        };
        timeline.add_scope(step, trace.under(&Policy::EVERY_OTHER));
        let solve = begin + STEP * 3 / 5;
        let waits = events / 5 + 1;
        for k in 0..waits {
            let from = solve + (STEP * 2 / 5) / waits * k;
            timeline.span(span(4, from, from + random.below(STEP / 10 / waits + 1), 0));
        }
        timeline.span(span(1, begin, collide, 0));
        timeline.span(span(2, collide, solve, 0));
        timeline.span(span(3, solve, begin + STEP, 0));
        timeline.span(span(0, begin, begin + STEP, step as u32));
    }
    timeline
}

/// A waved sheet, cut into patches.
fn cloth(patches: u32) -> Cloth {
    const SIDE: u32 = 160;
    let mut cloth = Cloth {
        step: STEPS as u32,
        ..Cloth::default()
    };
    for y in 0..SIDE {
        for x in 0..SIDE {
            let (u, v) = (x as f32 / SIDE as f32, y as f32 / SIDE as f32);
            let z = 0.05 * ((14.0 * u).sin() + (11.0 * v).cos());
            cloth.positions.push([u, v, z]);
        }
    }
    let across = (1..).find(|n| n * n >= patches).unwrap_or(1);
    for y in 0..SIDE - 1 {
        for x in 0..SIDE - 1 {
            let at = y * SIDE + x;
            cloth
                .triangles
                .extend([[at, at + 1, at + SIDE], [at + 1, at + SIDE + 1, at + SIDE]]);
            let patch = (y * across / SIDE * across + x * across / SIDE).min(patches - 1);
            cloth.patches.extend([patch; 2]);
            cloth.owners.extend([patch / PATCHES; 2]);
        }
    }
    cloth
}

/// Numbers that look random and are always the same [Knuth's MMIX].
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}
