//! Tests that a `tracing` subscriber hears the same of a run as the run's trace has.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use weft_runtime::ScopeOptions;
use weft_runtime::comm::Comm;
use weft_runtime::comm::virtual_time::{VirtualOptions, launch};
use weft_runtime::trace::{Timeline, What};

use super::{TraceSteps, Tracer};
use crate::memory::Limit;
use crate::output::StateHash;
use crate::run::hash_of_replica;
use crate::run::{Begun, Driver, RunOptions, Show, Stop};
use crate::scene::Scene;
use crate::step::{Simulation, World};

#[allow(dead_code, reason = "tests of the runtime use all of it")]
#[path = "../../../runtime/tests/listening/subscriber.rs"]
mod subscriber;

use subscriber::{Ear, Told};

const RANKS: usize = 3;
const STEPS: u64 = 6;

fn world() -> World {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenes/quick.toml");
    World::build(&Scene::load(&path, &[]).unwrap()).unwrap()
}

fn options(trace: Option<TraceSteps>) -> RunOptions {
    RunOptions {
        ranks: RANKS,
        threads: 1,
        progress_thread: false,
        driver: Driver::Solo,
        memory: Limit::Left,
        steps: Some(STEPS),
        out: "nowhere".into(),
        resume: None,
        overwrite: false,
        begun: Begun::default(),
        stop: Stop::default(),
        trace,
        record: None,
        audit: None,
        progress: Show::Nothing,
        command: Vec::new(),
        hosts: Vec::new(),
        mpi: None,
    }
}

/// Takes steps on ranks in virtual time, where a collision test costs some ns and all else nothing.
/// Returns the state that each rank comes to, and what the first has of all traces.
fn run(world: &World, trace: Option<TraceSteps>) -> (Vec<StateHash>, Vec<Timeline>) {
    let options = options(trace);
    let scope = ScopeOptions::from(&world.scene().balance);
    let body = |comm: &mut dyn Comm| {
        let mut simulation = Simulation::new(world, &*comm, &scope).unwrap();
        let mut tracer = Tracer::start(&options, comm).unwrap();
        let mut waited = Duration::ZERO;
        while simulation.step() < STEPS {
            tracer.advance(&mut simulation, comm, &mut waited).unwrap();
        }
        let traces = tracer.finish(comm).unwrap();
        let hash = hash_of_replica(world, &simulation);
        (hash, traces.map(|(_, traces)| traces.timelines))
    };
    let ranks = launch(RANKS, &VirtualOptions::default(), body).unwrap();
    let (hashes, timelines): (Vec<_>, Vec<_>) = ranks.results.into_iter().unzip();
    (hashes, timelines.into_iter().flatten().flatten().collect())
}

/// The ends of spans with this name, or events, that were heard of a rank: what each is about, its
/// times, and a number.
fn heard(told: &[Told], rank: usize, name: &str) -> Vec<(String, u64, u64, u64)> {
    let (about, number) = match name {
        "end phase" => ("phase", "count"),
        "waited" => ("what", "from"),
        _ => ("counter", "value"),
    };
    let of_rank = told
        .iter()
        .filter(|told| told.number("rank") == rank as u64);
    let named = of_rank.filter(|told| told.name == name);
    let one = |told: &Told| {
        let (begin, end) = (told.number("at_ns"), told.fields.get("end_ns"));
        let end = end.map_or(begin, |end| end.parse().unwrap());
        let number = told.fields.get(number).map_or(0, |n| n.parse().unwrap());
        (told.fields[about].clone(), begin, end, number)
    };
    named.map(one).collect()
}

#[test]
fn a_subscriber_hears_the_run_that_is_recorded_and_changes_nothing() {
    let world = world();
    let all = Some(TraceSteps::ALL);
    let (unheard, _) = run(&world, None);
    let ((hashes, timelines), told) = Ear::of("weft").listen(|| run(&world, all));
    assert_eq!(hashes, unheard);
    let (recorded, again) = run(&world, all);
    assert!(
        (&recorded, &again) == (&unheard, &timelines),
        "what is recorded depends on who listens"
    );
    let ((alone, _), untraced) = Ear::of("weft").listen(|| run(&world, None));
    assert_eq!(alone, unheard);
    assert_eq!(timelines.len(), RANKS);
    for (rank, timeline) in timelines.iter().enumerate() {
        assert_eq!(timeline.dropped_in_all(), 0);
        let (mut phases, mut waits) = (Vec::new(), Vec::new());
        for span in &timeline.spans {
            let name = timeline.kinds[usize::from(span.kind)].name.clone();
            let times = (span.begin, span.end, u64::from(span.detail));
            match name.strip_prefix("wait: ") {
                Some(what) => waits.push((what.to_owned(), times.0, times.1, times.2)),
                None => phases.push((name, times.0, times.1, times.2)),
            }
        }
        assert!(phases.len() as u64 >= STEPS * 7 && !waits.is_empty());
        assert_eq!(heard(&told, rank, "end phase"), phases);
        assert_eq!(heard(&told, rank, "waited"), waits);
        let samples = timeline.samples.iter().map(|sample| {
            let name = timeline.counters[usize::from(sample.counter)].clone();
            (name, sample.at, sample.at, sample.value)
        });
        assert!(heard(&told, rank, "counter").into_iter().eq(samples));
        // Tasks, splits and steals: each kind as often, at the same times.
        let mut kept: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
        let scopes = timeline.scopes.iter().flat_map(|(_, trace)| &trace.events);
        for event in scopes {
            let name = match event.what {
                What::TaskBegin { .. } => "begin task",
                What::Split { .. } => "split",
                What::Asked { .. } => "request",
                What::Answered { .. } => "answer",
                What::ScopeBegin => "begin scope",
                _ => continue,
            };
            kept.entry(name).or_default().push(event.at);
        }
        for name in ["begin task", "request", "answer", "begin scope"] {
            assert!(kept.contains_key(name), "no {name} on rank {rank}");
        }
        for (name, times) in kept {
            let of_rank = told.iter().filter(|told| told.name == name);
            let of_rank = of_rank.filter(|told| told.number("rank") == rank as u64);
            let mut heard: Vec<u64> = of_rank.map(|told| told.number("at_ns")).collect();
            heard.sort_unstable();
            assert_eq!(heard, times, "{name} on rank {rank}");
        }
    }
    // A rank that records compares clocks, and tells of that; all else is heard as well without.
    let of_steps = |told: &[Told]| -> Vec<String> {
        let phases = told.iter().filter(|told| told.name == "end phase");
        phases.map(|told| told.fields["phase"].clone()).collect()
    };
    assert_eq!(of_steps(&untraced).len(), of_steps(&told).len());
}
