//! The cost of an order: steps whose sums have the same bits on any number of ranks, beside steps
//! that add as it comes.
//!
//! Sample run:
//!   cargo bench --bench order [-- SCENE...]
//!
//! Without the order, each rank adds up what it owns and then come the ranks, instead of the patch
//! tree; and contacts stay as they were found, but for those with bodies, which corrections want by
//! vertex anyway. The layouts that are made once for a run stay as they are: the order of columns
//! in a row and of elements in an assembly costs no step anything that another order would save.
//!
//! Both take the same steps from the same draped state, in turns, a round after the other. The
//! figure is the median of the rounds' ratios, with the range in which the middle half of them
//! lies: a share of a percent is less than what two rounds of one program differ by on a shared
//! machine. One rank is timed by what its thread had of a core, which others at work disturb
//! little; two ranks wait for each other, and are timed by the clock. The second figure is that of
//! the ordered program with itself, the same way: what the first one could be by chance.

use std::time::Duration;

use weft_runtime::comm::Comm;
use weft_runtime::comm::threads::launch;
use weft_runtime::{ScopeOptions, thread_time};
use weftwork::scene::Scene;
use weftwork::step::{Simulation, World};

#[path = "common/measures.rs"]
mod measures;
#[path = "common/paper_scenes.rs"]
mod paper_scenes;
#[path = "common/states.rs"]
mod states;

use states::{DRAPED, State};

/// Steps of a round, and rounds.
const STEPS: u32 = 10;
const ROUNDS: usize = 60;
/// Ranks and workers of each.
const TEAMS: [(usize, usize); 2] = [(1, 1), (2, 1)];

/// The time of the slowest rank for some steps, and their iterations.
#[derive(Clone, Copy, Default)]
struct Taken {
    time: Duration,
    iterations: u32,
}

/// Steps from a state.
fn steps(
    world: &World,
    (ranks, workers): (usize, usize),
    from: &State,
    ordered: bool,
    count: u32,
) -> (Taken, State) {
    let body = |comm: &mut dyn Comm| {
        let mut options = ScopeOptions::from(&world.scene().balance);
        options.workers = workers;
        let mut simulation = Simulation::new(world, &*comm, &options).expect("ranks with patches");
        if !ordered {
            simulation.forget_order();
        }
        from.enter(&mut simulation);
        // The first prepares what all others only renew.
        simulation.advance(comm).expect("a step");
        let clock = |comm: &dyn Comm| {
            if ranks == 1 {
                thread_time()
            } else {
                comm.now()
            }
        };
        let begin = clock(comm);
        let mut taken = Taken::default();
        for _ in 1..count {
            taken.iterations += simulation.advance(comm).expect("a step").iterations;
        }
        taken.time = clock(comm).saturating_sub(begin);
        (taken, State::reached(&simulation))
    };
    let all = launch(ranks, body).expect("threads");
    let longest = all.iter().map(|(taken, _)| taken.time).max();
    let (mut first, state) = all.into_iter().next().expect("a rank");
    first.time = longest.unwrap_or_default();
    (first, state)
}

/// The quarter, the middle and the three quarters of some numbers.
fn quartiles(mut numbers: Vec<f64>) -> [f64; 3] {
    numbers.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| numbers[quarter * (numbers.len() - 1) / 4])
}

fn ratio(a: Duration, b: Duration) -> f64 {
    a.as_secs_f64() / b.as_secs_f64()
}

fn percent([low, middle, high]: [f64; 3]) -> String {
    let percent = |share: f64| 100.0 * (share - 1.0);
    format!(
        "{:+.2} % ({:+.2} to {:+.2})",
        percent(middle),
        percent(low),
        percent(high)
    )
}

#[expect(clippy::print_stdout, reason = "the table is what the bench is for")]
fn scene(name: &str) {
    let scene = Scene::load(&paper_scenes::file(name), &[]).expect("a scene");
    let world = World::build(&scene).expect("a world");
    let start = State::start(&world);
    let measures = measures::measures();
    let rounds = if measures { ROUNDS } else { 1 };
    let count = if measures {
        (DRAPED / scene.time.step) as u32
    } else {
        2
    };
    let (_, draped) = steps(&world, (1, 1), &start, true, count);
    for team in TEAMS {
        let (mut cost, mut chance) = (Vec::new(), Vec::new());
        let (mut ordered, mut free) = (Taken::default(), Taken::default());
        for _ in 0..rounds {
            let run = |ordered| steps(&world, team, &draped, ordered, STEPS).0;
            let (first, other, second) = (run(true), run(false), run(true));
            // The runs before and after it had the machine as it had it.
            cost.push(ratio(first.time + second.time, 2 * other.time));
            chance.push(ratio(first.time, second.time));
            (ordered, free) = (first, other);
        }
        println!(
            "| `{name}`, {} | {} | {} | {}, {} |",
            if team.0 == 1 { "one rank" } else { "two ranks" },
            percent(quartiles(cost)),
            percent(quartiles(chance)),
            ordered.iterations,
            free.iterations,
        );
    }
}

#[expect(clippy::print_stdout, reason = "the table is what the bench is for")]
fn main() {
    println!("| scene | cost of the order | by chance | iterations with it, without |");
    println!("|---|---|---|---|");
    for name in paper_scenes::wanted() {
        scene(name);
    }
}
