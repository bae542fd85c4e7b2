//! What `--trace` costs: whole runs with and without, by turns.
//!
//! Sample run:
//!   cargo bench --bench trace
//!
//! The first column is the cost of recording, from pairs of runs of which one is traced: the median of their
//! ratios. Two runs without are compared in the same way: what that differs from 1 by is noise. Comparing
//! clocks and writing the files come after the last step; they stand apart.

use std::time::{Duration, Instant};

use weftwork::run::{Driver, RunOptions, RunSummary, Show, Stop, TraceSteps, run};
use weftwork::scene::Scene;

#[path = "common/timing.rs"]
mod timing;

/// Scene, ranks, steps.
const CASES: [(&str, usize, u64); 3] = [
    ("quick.toml", 1, 250),
    ("quick.toml", 2, 250),
    ("drape-floor.toml", 2, 60),
];
/// Pairs of runs, by turns.
const PAIRS: usize = 15;

/// A run: its time per step, what it took beside the steps, and its summary.
struct Run {
    steps: Duration,
    rest: Duration,
    summary: RunSummary,
}

#[expect(clippy::disallowed_methods, reason = "a bench reads the clock")]
fn measure(scene: &Scene, ranks: usize, steps: u64, trace: Option<TraceSteps>) -> Run {
    let out = tempfile::tempdir().expect("a temporary directory");
    let options = RunOptions {
        ranks,
        threads: 1,
        driver: Driver::Threads,
        steps: Some(steps),
        out: out.path().to_owned(),
        resume: None,
        stop: Stop::default(),
        trace,
        progress: Show::Nothing,
        command: Vec::new(),
        hosts: Vec::new(),
        mpi: None,
    };
    let begin = Instant::now();
    let summary = run(scene, &options).expect("the project's scene");
    Run {
        steps: summary.loop_time,
        rest: begin.elapsed().saturating_sub(summary.loop_time),
        summary,
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}

#[expect(clippy::print_stdout, reason = "the table is what the bench is for")]
fn main() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/scenes/");
    let quiet = [("output.frames", "false"), ("output.pictures", "false")];
    let quiet = quiet.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let scene = |name: &str| {
        Scene::load(format!("{folder}{name}").as_ref(), &quiet).expect("the project's scene")
    };
    if !timing::measures() {
        measure(&scene(CASES[0].0), 2, 1, Some(TraceSteps::ALL));
        return;
    }
    println!(
        "{:<17} ranks  ms/step  traced/not  not/not  best/best  events/step  s to write",
        "scene"
    );
    for (name, ranks, steps) in CASES {
        let scene = scene(name);
        let (mut ratios, mut noise) = (Vec::new(), Vec::new());
        let (mut best, mut best_traced) = (f64::INFINITY, f64::INFINITY);
        let (mut rest, mut rest_traced) = (f64::INFINITY, f64::INFINITY);
        let mut events = 0;
        for pair in 0..PAIRS {
            let plain = || measure(&scene, ranks, steps, None);
            let traced = || measure(&scene, ranks, steps, Some(TraceSteps::ALL));
            let first = plain();
            // Now the one is first, now the other.
            let (with, second) = match pair % 2 {
                0 => {
                    let with = traced();
                    (with, plain())
                }
                _ => {
                    let second = plain();
                    (traced(), second)
                }
            };
            assert_eq!(
                first.summary.hash, with.summary.hash,
                "traces change nothing"
            );
            let seconds = |run: &Run| run.steps.as_secs_f64();
            ratios.push(seconds(&with) / (seconds(&first) * seconds(&second)).sqrt());
            noise.push(seconds(&second) / seconds(&first));
            best = best.min(seconds(&first)).min(seconds(&second));
            best_traced = best_traced.min(seconds(&with));
            rest = rest.min(first.rest.as_secs_f64());
            rest_traced = rest_traced.min(with.rest.as_secs_f64());
            events = with.summary.trace.map_or(0, |trace| trace.events);
        }
        println!(
            "{name:<17} {ranks:<6} {:<8.2} {:<11.3} {:<8.3} {:<10.3} {:<12} {:.2}",
            1e3 * best / steps as f64,
            median(ratios),
            median(noise),
            best_traced / best,
            events / steps,
            rest_traced - rest,
        );
    }
}
