//! The cost of `--trace`: whole steps with and without, by turns, in one run.
//!
//! Sample run:
//!   cargo bench --bench trace
//!
//! Steps that follow each other do nearly the same work. The first and last of eight are bare; the
//! second and seventh time waits for other ranks, as `weft run` always does; the third and sixth
//! are recorded as with `--trace` on top of that; the fourth and fifth are heard instead by a
//! subscriber of the crate `tracing` that keeps all events with their fields. The table has the
//! medians, over all eights, of the ratios of the second pair to the first (`off`), and of the
//! third (`on`) and the fourth (`heard`) to the second, with the standard error of each median,
//! estimated from quartiles.

use std::hint::black_box;
use std::time::Duration;

use weft_runtime::ScopeOptions;
use weft_runtime::comm::threads::launch;
use weft_runtime::comm::{Comm, Rank, Tag};
use weft_runtime::trace::{Mark, Span, SpanKind, Timeline, Watched};
use weftwork::scene::Scene;
use weftwork::step::{Simulation, StepReport, World};

#[allow(dead_code, reason = "the runtime's bench uses all of it")]
#[path = "../runtime/benches/listening/subscribers.rs"]
mod subscribers;

use subscribers::{Listener, Subscriber};

/// Scene, ranks, workers of each, steps before those that are measured, eights.
const CASES: [(&str, usize, usize, u64, u64); 6] = [
    ("quick.toml", 1, 1, 100, 200),
    ("quick.toml", 2, 1, 100, 200),
    ("quick.toml", 1, 2, 100, 200),
    ("drape-floor.toml", 1, 1, 0, 30),
    ("drape-floor.toml", 2, 1, 0, 30),
    ("drape-floor.toml", 1, 2, 0, 30),
];

/// How a step is taken.
#[derive(Clone, Copy)]
enum Way {
    Bare,
    Watched,
    Traced,
    Heard,
}

/// A span of the main thread.
fn span(begin: u64, end: u64) -> Span {
    Span {
        begin,
        end,
        kind: 0,
        detail: 0,
    }
}

/// Waits that are noted.
const SHORTEST: Duration = Duration::from_micros(5);

/// Takes a step, as the command does.
fn step(
    way: Way,
    simulation: &mut Simulation<'_>,
    timeline: &mut Timeline,
    listener: &Listener,
    comm: &mut dyn Comm,
) {
    match way {
        Way::Heard => {
            let watched = || step(Way::Watched, simulation, timeline, listener, comm);
            black_box(listener.hears(watched));
        }
        Way::Bare => drop(simulation.advance(comm).expect("a step")),
        Way::Watched => {
            let mut waited = Duration::ZERO;
            watched(simulation, comm, &mut |begin, end| waited += end - begin);
            black_box(waited);
        }
        Way::Traced => {
            timeline.owe(7);
            simulation.record(Some(timeline.lend()));
            let ns = |time: Duration| time.as_nanos() as u64;
            let mut told = |begin, end| timeline.span(span(ns(begin), ns(end)));
            let mut report = watched(simulation, comm, &mut told);
            simulation.record(None);
            if let Some(trace) = report.scope.trace.take() {
                timeline.add_scope(simulation.step(), trace);
            }
            for mark in black_box(&report.marks) {
                if let Mark::Phase { begin, end, .. } = *mark {
                    timeline.frame(span(begin, end));
                }
            }
        }
    }
}

/// Takes a step, and tells of waits in it; a rank that is alone waits for nobody.
fn watched(
    simulation: &mut Simulation<'_>,
    comm: &mut dyn Comm,
    told: &mut dyn FnMut(Duration, Duration),
) -> StepReport {
    let mut told = |_: Tag, _: Rank, begin: Duration, end: Duration| {
        if end.saturating_sub(begin) >= SHORTEST {
            told(begin, end);
        }
    };
    let report = if comm.size() == 1 {
        simulation.advance(comm)
    } else {
        simulation.advance(&mut Watched::new(comm, &mut told))
    };
    report.expect("a step")
}

/// Measures the costs of `off`, `on` and `heard` as ratios, each with its error; also ms a bare
/// step, and events a step.
fn measure(
    world: &World,
    (ranks, workers): (usize, usize),
    (before, eights): (u64, u64),
) -> ([[f64; 2]; 3], f64, u64) {
    use Way::{Bare, Heard, Traced, Watched};
    let body = |comm: &mut dyn Comm| {
        let options = ScopeOptions {
            workers,
            ..ScopeOptions::from(&world.scene().balance)
        };
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
        let listener = Listener::new(Subscriber::Keeps);
        for _ in 0..eights {
            let ways = [Bare, Watched, Traced, Heard, Heard, Traced, Watched, Bare];
            let times = ways.map(|way| {
                let begin = comm.now();
                step(way, &mut simulation, &mut timeline, &listener, comm);
                comm.now().saturating_sub(begin).as_secs_f64()
            });
            all.push(times);
        }
        (all, timeline.events())
    };
    let ranks = launch(ranks, body).expect("threads");
    let events: u64 = ranks.iter().map(|(_, events)| events).sum();
    let eights = &ranks[0].0;
    let pair = |times: &[f64; 8], first: usize| times[first] + times[7 - first];
    let ratio = |over: usize, under: usize| {
        median((eights.iter()).map(|times| pair(times, over) / pair(times, under)))
    };
    let [bare, _] = median(eights.iter().map(|times| pair(times, 0) / 2.0));
    let each = events / (2 * eights.len() as u64);
    ([ratio(1, 0), ratio(2, 1), ratio(3, 1)], bare * 1e3, each)
}

/// The median and its standard error.
fn median(values: impl Iterator<Item = f64>) -> [f64; 2] {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    let count = values.len();
    // Quartiles of a normal distribution are 1.35 deviations apart, and a median is off by 1.25 of
    // them over the root of the count.
    let apart = values[count * 3 / 4] - values[count / 4];
    [
        values[count / 2],
        apart / 1.35 * 1.25 / (count as f64).sqrt(),
    ]
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
        "{:<17} ranks x workers  ms/step  off             on              heard           events/step",
        "scene"
    );
    for (name, ranks, workers, before, eights) in CASES {
        let ([off, on, heard], bare, events) =
            measure(&world(name), (ranks, workers), (before, eights));
        let ratio = |[median, error]: [f64; 2]| format!("{median:.3} +- {error:.3}");
        println!(
            "{name:<17} {ranks} x {workers:<11} {bare:<8.2} {:<15} {:<15} {:<15} {events}",
            ratio(off),
            ratio(on),
            ratio(heard)
        );
    }
}
