//! Whole steps of the two scenes of the 2006 paper: falling, and draped with contacts of all kinds.
//!
//! Sample run:
//!   cargo bench --bench step [-- SCENE...]
//!
//! The table shows where the time of a step goes, on one rank, on two and on two threads of one,
//! and how much faster two are. Sets of steps take turns, and the best of each counts: on shared
//! machines a core may be slow for minutes.
//!
//! Two figures are set against their limits. The solve: its products with the matrix at the speed
//! of a plain read of as many bytes. Two ranks: a program of two threads of which each only reads
//! its half of those bytes, and waits for the other as often as ranks do in an iteration of the
//! solve. The gain of that program is the most that the two cores give to anything that waits as
//! often. And of the collision phase it is said how much faster two ranks and two threads have it,
//! and what share of it the runtime takes on one core: the time between its tasks, in which they
//! are forked and joined. At the end it is said of all windows that were measured, beside what two
//! cores give to a program that reads and never waits; and how long a line of a cache takes from
//! core to core and back. Hosts of virtual machines move cores: where two share no cache that is
//! several times as long, and two threads of a rank, which read what each other wrote, gain less
//! than two ranks. To be draped takes each sheet some hundred steps, so the table needs two
//! minutes.

use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use weft_runtime::ScopeOptions;
use weft_runtime::comm::Comm;
use weft_runtime::comm::threads::launch;
use weftwork::scene::Scene;
use weftwork::step::{PHASES, Simulation, World};

#[path = "common/paper_scenes.rs"]
mod paper_scenes;
#[path = "common/states.rs"]
mod states;
#[path = "common/timing.rs"]
mod timing;

use states::{DRAPED, State};
use timing::best;

/// Steps that are measured at once.
const STEPS: u32 = 20;
/// How often each has its turn.
const ROUNDS: usize = 3;
/// Ranks and workers of each.
const TEAMS: [(usize, usize); 3] = [(1, 1), (2, 1), (1, 2)];
/// How often the machine's two cores read and wait at once.
const READS: usize = 2000;
/// How often ranks wait for each other in an iteration: for the halo, and for the scalar products.
const WAITS: usize = 2;

/// The cost of some steps: the time of each phase on its slowest rank, and the work done.
#[derive(Default)]
struct Taken {
    phases: [Duration; PHASES.len()],
    whole: Duration,
    /// The time that workers were not in tasks, in the scopes in which collisions are found.
    between: Duration,
    iterations: u32,
    contacts: u64,
}

/// Steps from a state, on this many ranks of this many workers.
fn steps(
    world: &World,
    (ranks, workers): (usize, usize),
    from: &State,
    count: u32,
) -> (Taken, State) {
    let body = |comm: &mut dyn Comm| {
        let mut options = ScopeOptions::from(&world.scene().balance);
        options.workers = workers;
        let mut simulation = Simulation::new(world, &*comm, &options).expect("ranks with patches");
        from.enter(&mut simulation);
        let begin = comm.now();
        let mut taken = Taken::default();
        for _ in 0..count {
            let report = simulation.advance(comm).expect("a step");
            for (sum, time) in taken.phases.iter_mut().zip(report.times) {
                *sum += time;
            }
            let busy = report.scope.busy.iter().sum();
            taken.between += (report.scope.elapsed * workers as u32).saturating_sub(busy);
            taken.iterations += report.iterations;
            taken.contacts += report.contacts;
        }
        taken.whole = comm.now().saturating_sub(begin);
        (taken, State::reached(&simulation))
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

/// Adds up all numbers, as fast as they come.
fn read(numbers: &[f64]) {
    let mut lanes = [0.0; 32];
    for chunk in black_box(numbers).as_chunks::<32>().0 {
        for (lane, number) in lanes.iter_mut().zip(chunk) {
            *lane += number;
        }
    }
    black_box(lanes);
}

/// Time to read `bytes` again and again, on this many cores; one reading. They wait for each other
/// so often in each and have a part each, or never do and have as many bytes each, so that what
/// fits into a core's cache is of no matter.
fn reading(bytes: usize, cores: usize, waits: usize) -> Duration {
    let parts = waits.max(1);
    let shares = if waits == 0 { 1 } else { cores };
    let waiting = AtomicUsize::new(0);
    let core = || {
        let numbers = vec![1.0_f64; bytes / 8 / shares];
        let part = numbers.len() / parts;
        for wait in 1..=READS * parts {
            read(&numbers[wait % parts * part..][..part]);
            if waits == 0 {
                continue;
            }
            waiting.fetch_add(1, Ordering::AcqRel);
            while waiting.load(Ordering::Acquire) < wait * cores {
                spin_loop();
            }
        }
    };
    let all = best(1, || {
        thread::scope(|scope| {
            for _ in 1..cores {
                scope.spawn(core);
            }
            core();
        });
    });
    all / (READS * cores / shares) as u32
}

/// Bytes of the matrix: 72 for the block and 4 for the column of each pair of neighbours and each
/// vertex, 12 for each pair in the second ring.
fn matrix_bytes(world: &World) -> usize {
    let graphs = world.graphs();
    let (near, far) = (graphs.near.edge_count(), graphs.far.edge_count());
    76 * (2 * near + world.model().masses().len()) + 12 * 2 * far
}

#[expect(clippy::print_stdout, reason = "the table is what the bench is for")]
fn main() {
    let wanted = paper_scenes::wanted();
    println!(
        "scene        state    ranks x workers  ms/step  {}  CG/step  contacts",
        PHASES.join("  ")
    );
    let mut sums = Sums::default();
    for name in wanted {
        scene(name, &mut sums);
    }
    if timing::measures() {
        let [one, two, threads] = sums.collisions;
        println!(
            "collisions of all these: two ranks have them {:.2} times as fast as one, two threads {:.2}; two cores that only read are {:.2} times as fast",
            ratio(one, two),
            ratio(one, threads),
            ratio(sums.reading[0], sums.reading[1]),
        );
    }
}

/// Time in which a line of a cache goes from one core to another and back.
fn there_and_back() -> Duration {
    const BATCHES: usize = 20;
    const TIMES: usize = 2000;
    let turn = AtomicUsize::new(0);
    let wait = |until: usize| {
        while turn.load(Ordering::Acquire) != until {
            spin_loop();
        }
    };
    let mut at = 0;
    let mut batch = || {
        for _ in 0..TIMES {
            turn.store(at + 1, Ordering::Release);
            wait(at + 2);
            at += 2;
        }
    };
    let least = thread::scope(|scope| {
        scope.spawn(|| {
            for at in 0..BATCHES * TIMES {
                wait(2 * at + 1);
                turn.store(2 * at + 2, Ordering::Release);
            }
        });
        // For some milliseconds both may be on one core.
        best(BATCHES as u32, &mut batch)
    });
    least / TIMES as u32
}

/// The cost of all windows.
#[derive(Default)]
struct Sums {
    /// The collision phase of each team.
    collisions: [Duration; TEAMS.len()],
    /// Readings without waiting, of one core and of two.
    reading: [Duration; 2],
}

fn ratio(a: Duration, b: Duration) -> f64 {
    a.as_secs_f64() / b.as_secs_f64()
}

/// The rows of a scene.
#[expect(clippy::print_stdout, reason = "the table is what the bench is for")]
fn scene(name: &str, sums: &mut Sums) {
    let scene = Scene::load(&paper_scenes::file(name), &[]).expect("the project's scene");
    let world = World::build(&scene).expect("the project's scene");
    let start = State::start(&world);
    if !timing::measures() {
        steps(&world, (2, 1), &start, 1);
        reading(1 << 12, 2, WAITS);
        reading(1 << 12, 2, 0);
        there_and_back();
        return;
    }
    let draped = steps(&world, (2, 1), &start, (DRAPED / scene.time.step) as u32).1;
    let bytes = matrix_bytes(&world);
    for (state_name, state) in [("falling", &start), ("draped", &draped)] {
        let mut taken: [Taken; TEAMS.len()] = Default::default();
        let mut cores = [Duration::MAX; 2];
        let mut apart = [Duration::MAX; 2];
        let mut lines = Vec::new();
        for _ in 0..ROUNDS {
            for (best, team) in taken.iter_mut().zip(TEAMS) {
                let now = steps(&world, team, state, STEPS).0;
                if best.whole.is_zero() || now.whole < best.whole {
                    *best = now;
                }
            }
            lines.push(there_and_back().as_nanos().to_string());
            for ((waits, none), count) in cores.iter_mut().zip(&mut apart).zip([1, 2]) {
                *waits = (*waits).min(reading(bytes, count, WAITS));
                *none = (*none).min(reading(bytes, count, 0));
            }
        }
        for (sum, taken) in sums.collisions.iter_mut().zip(&taken) {
            *sum += taken.phases[0];
        }
        for (sum, apart) in sums.reading.iter_mut().zip(apart) {
            *sum += apart;
        }
        for (taken, (ranks, workers)) in taken.iter().zip(TEAMS) {
            let each = |time: Duration| time.as_secs_f64() * 1e3 / f64::from(STEPS);
            let phases: Vec<String> = PHASES
                .iter()
                .zip(taken.phases)
                .map(|(name, time)| format!("{:<w$.2}", each(time), w = name.len()))
                .collect();
            println!(
                "{name:<12} {state_name:<8} {ranks} x {workers:<13} {:<8.2} {}  {:<8.1} {}",
                each(taken.whole),
                phases.join("  "),
                f64::from(taken.iterations) / f64::from(STEPS),
                taken.contacts / u64::from(STEPS),
            );
        }
        let [one, two, threads] = &taken;
        println!(
            "    the solve takes {:.1} times as long as reading its matrix in every iteration",
            ratio(one.phases[2], cores[0] * one.iterations.max(1)),
        );
        let (gain, limit) = (ratio(one.whole, two.whole), ratio(cores[0], cores[1]));
        println!(
            "    two ranks are {gain:.2} times as fast as one, two threads {:.2}; reading and waiting {limit:.2}",
            ratio(one.whole, threads.whole),
        );
        println!(
            "    collisions: {:.2} and {:.2} times as fast, the runtime takes {:.1} % of them on one core",
            ratio(one.phases[0], two.phases[0]),
            ratio(one.phases[0], threads.phases[0]),
            100.0 * ratio(one.between, one.phases[0]),
        );
        println!(
            "    in these rounds a line went from core to core and back in {} ns",
            lines.join(", ")
        );
    }
}
