//! What `--trace` costs: whole steps with and without, by turns, in one run.
//!
//! Sample run:
//!   cargo bench --bench trace
//!
//! Steps that follow each other do nearly the same work. Of four, the second and third are recorded as
//! `weft run --trace` does, the first and last are not; the table has the median, over all fours, of the
//! ratio of the two. The same is done without recording any: what that differs from 1 by is noise.

use std::time::Duration;

use weft_runtime::ScopeOptions;
use weft_runtime::comm::threads::launch;
use weft_runtime::comm::{Comm, Rank, Tag};
use weft_runtime::trace::{Span, SpanKind, Timeline, Watched};
use weftwork::scene::Scene;
use weftwork::step::{Simulation, World};

/// Scene, ranks, steps before those that are measured.
const CASES: [(&str, usize, u64); 4] = [
    ("quick.toml", 1, 100),
    ("quick.toml", 2, 100),
    ("drape-floor.toml", 1, 0),
    ("drape-floor.toml", 2, 0),
];
/// Fours of steps, with and without recording.
const FOURS: u64 = 30;

/// A span of the main thread.
fn span(begin: Duration, end: Duration) -> Span {
    let ns = |time: Duration| time.as_nanos() as u64;
    Span {
        begin: ns(begin),
        end: ns(end),
        kind: 0,
        detail: 0,
    }
}

/// Takes a step and records it, as the command does.
fn traced(simulation: &mut Simulation<'_>, timeline: &mut Timeline, comm: &mut dyn Comm) {
    timeline.owe(6);
    simulation.record(Some(timeline.lend()));
    let mut told = |_: Tag, _: Rank, begin: Duration, end: Duration| {
        if end.saturating_sub(begin) >= Duration::from_micros(5) {
            timeline.span(span(begin, end));
        }
    };
    let mut report = (simulation.advance(&mut Watched::new(comm, &mut told))).expect("a step");
    simulation.record(None);
    if let Some(trace) = report.scope.trace.take() {
        timeline.add_scope(simulation.step(), trace);
    }
    let mut begin = report.began;
    for time in report.times {
        timeline.frame(span(begin, begin + time));
        begin += time;
    }
    timeline.frame(span(report.began, begin));
}

/// The median ratio of recorded to other steps, first without recording any; ms a step; events a step.
fn measure(world: &World, ranks: usize, before: u64) -> ([f64; 2], f64, u64) {
    let body = |comm: &mut dyn Comm| {
        let options = ScopeOptions::from(&world.scene().balance);
        let mut simulation = Simulation::new(world, &*comm, &options).expect("ranks with patches");
        for _ in 0..before {
            simulation.advance(comm).expect("a step");
        }
        let kinds = vec![SpanKind {
            name: "span".to_owned(),
            detail: String::new(),
        }];
        let mut timeline = Timeline::new(comm.rank(), kinds, Vec::new(), 1 << 22);
        let mut all = Vec::new();
        for four in 0..2 * FOURS {
            let times = [false, true, true, false].map(|second| {
                let begin = comm.now();
                if second && four % 2 == 1 {
                    traced(&mut simulation, &mut timeline, comm);
                } else {
                    simulation.advance(comm).expect("a step");
                }
                comm.now().saturating_sub(begin).as_secs_f64()
            });
            all.push(times);
        }
        (all, timeline.events())
    };
    let ranks = launch(ranks, body).expect("threads");
    let events: u64 = ranks.iter().map(|(_, events)| events).sum();
    let fours = &ranks[0].0;
    let ratio = |offset: usize| {
        let fours = fours.iter().skip(offset).step_by(2);
        median(fours.map(|[a, b, c, d]| (b + c) / (a + d)))
    };
    let plain = median(fours.iter().map(|[a, _, _, d]| (a + d) / 2.0));
    ([ratio(0), ratio(1)], plain * 1e3, events / (2 * FOURS))
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}

#[expect(clippy::print_stdout, reason = "the table is what the bench is for")]
fn main() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/scenes/");
    let world = |name: &str| {
        let scene = Scene::load(format!("{folder}{name}").as_ref(), &[]);
        World::build(&scene.expect("the project's scene")).expect("the project's scene")
    };
    // Whether it is started to measure, and not by `cargo test --benches` or to list what it has.
    if std::env::args().any(|argument| argument == "--test" || argument == "--list") {
        return;
    }
    println!(
        "{:<17} ranks  ms/step  traced/not  not/not  events/step",
        "scene"
    );
    for (name, ranks, before) in CASES {
        let ([noise, ratio], plain, events) = measure(&world(name), ranks, before);
        println!("{name:<17} {ranks:<6} {plain:<8.2} {ratio:<11.3} {noise:<8.3} {events}");
    }
}
