//! Whole steps of the first scene of the 2006 paper: falling, and draped with contacts of all kinds.
//!
//! Sample run:
//!   cargo bench --bench step
//!
//! The table shows where the time of a step goes, on one rank and on two, and how much faster two are. The
//! solve is set against its limit: its products with the matrix at the speed of a plain read of as many bytes.
//! To be draped takes the sheet some hundred steps, so the table needs half a minute.

use std::hint::black_box;
use std::time::Duration;

use glam::DVec3;
use weft_runtime::ScopeOptions;
use weft_runtime::comm::Comm;
use weft_runtime::comm::threads::launch;
use weftwork::scene::Scene;
use weftwork::step::{PHASES, Simulation, World};

#[path = "common/timing.rs"]
mod timing;

use timing::best;

const SCENE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/scenes/drape-floor.toml");
/// Simulated time in s at which the sheet lies on sphere and floor.
const DRAPED: f64 = 0.4;
/// Steps that are measured.
const STEPS: u32 = 20;

type State = (Vec<DVec3>, Vec<DVec3>);

/// What some steps took: their phases, slowest rank each, and what was done.
#[derive(Default)]
struct Taken {
    phases: [Duration; PHASES.len()],
    whole: Duration,
    iterations: u32,
    contacts: u64,
}

/// Steps from a state, on so many ranks.
fn steps(world: &World, ranks: usize, from: &State, count: u32) -> (Taken, State) {
    let body = |comm: &mut dyn Comm| {
        let options = ScopeOptions::from(&world.scene().balance);
        let mut simulation = Simulation::new(world, &*comm, &options).expect("ranks with patches");
        let (x, v) = simulation.state_mut();
        x.copy_from_slice(&from.0);
        v.copy_from_slice(&from.1);
        let begin = comm.now();
        let mut taken = Taken::default();
        for _ in 0..count {
            let report = simulation.advance(comm).expect("a step");
            for (sum, time) in taken.phases.iter_mut().zip(report.times) {
                *sum += time;
            }
            taken.iterations += report.iterations;
            taken.contacts += report.contacts;
        }
        taken.whole = comm.now().saturating_sub(begin);
        let state = (
            simulation.positions().to_vec(),
            simulation.velocities().to_vec(),
        );
        (taken, state)
    };
    let mut all = launch(ranks, body).expect("threads").into_iter();
    let (mut slowest, state) = all.next().expect("a rank");
    for (taken, _) in all {
        slowest.whole = slowest.whole.max(taken.whole);
        slowest.contacts += taken.contacts;
        for (most, time) in slowest.phases.iter_mut().zip(taken.phases) {
            *most = (*most).max(time);
        }
    }
    (slowest, state)
}

/// Time to read `bytes` once.
fn plain_read(bytes: usize) -> Duration {
    let numbers = vec![1.0_f64; bytes / 8];
    best(20, || {
        let mut lanes = [0.0; 32];
        for chunk in black_box(&numbers).as_chunks::<32>().0 {
            for (lane, number) in lanes.iter_mut().zip(chunk) {
                *lane += number;
            }
        }
        black_box(lanes);
    })
}

/// Bytes of the matrix: 72 for the block and 4 for the column of each pair of neighbours and each vertex,
/// 12 for each pair in the second ring.
fn matrix_bytes(world: &World) -> usize {
    let (near, far) = world.couplings();
    76 * (2 * near.edge_count() + world.model().masses().len()) + 12 * 2 * far.edge_count()
}

#[expect(clippy::print_stdout, reason = "the table is what the bench is for")]
fn main() {
    let scene = Scene::load(std::path::Path::new(SCENE), &[]).expect("the project's scene");
    let world = World::build(&scene).expect("the project's scene");
    let start = (
        world.model().rest().to_vec(),
        world.start_velocities().to_vec(),
    );
    if !timing::measures() {
        steps(&world, 1, &start, 1);
        return;
    }
    let draped = steps(&world, 2, &start, (DRAPED / scene.time.step) as u32).1;
    let product = plain_read(matrix_bytes(&world));
    println!(
        "state    ranks  ms/step  {}  CG/step  contacts",
        PHASES.join("  ")
    );
    for (name, state) in [("falling", &start), ("draped", &draped)] {
        let mut alone = Duration::ZERO;
        for ranks in [1, 2] {
            let (taken, _) = steps(&world, ranks, state, STEPS);
            let each = |time: Duration| time.as_secs_f64() * 1e3 / f64::from(STEPS);
            let phases: Vec<String> = PHASES
                .iter()
                .zip(taken.phases)
                .map(|(name, time)| format!("{:<w$.2}", each(time), w = name.len()))
                .collect();
            println!(
                "{name:<8} {ranks:<6} {:<8.2} {}  {:<8.1} {}",
                each(taken.whole),
                phases.join("  "),
                f64::from(taken.iterations) / f64::from(STEPS),
                taken.contacts / u64::from(STEPS),
            );
            if ranks == 1 {
                alone = taken.whole;
                let limit = product.as_secs_f64() * f64::from(taken.iterations.max(1));
                println!(
                    "         the solve takes {:.1} times as long as reading its matrix in every iteration",
                    taken.phases[2].as_secs_f64() / limit,
                );
            } else {
                println!(
                    "         two ranks are {:.2} times as fast as one",
                    alone.as_secs_f64() / taken.whole.as_secs_f64(),
                );
            }
        }
    }
}
