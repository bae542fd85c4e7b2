//! Cloth that never crosses cloth, in whole simulations.

use weft_runtime::ScopeOptions;
use weft_runtime::comm::solo::Solo;
use weft_runtime::comm::threads::launch;

use super::*;
use crate::collide::audit::crossings;
use crate::scene::Scene;
use crate::step::Simulation;

fn world(text: &str) -> World {
    World::build(&Scene::parse(text, None, &[]).unwrap()).unwrap()
}

/// Two sheets that fly at each other, by far more than their thickness in a step.
fn clash(speed: f64, certify: bool, solver: &str) -> String {
    let sheet = |name: &str, height: f64, velocity: f64, turn: f64| {
        format!(
            r#"
            [[cloth]]
            name = "{name}"
            grid = {{ size = 0.2, vertices = 12 }}
            center = [0.003, 0.002, {height}]
            rotation = [0.1, 0.05, {turn}]
            velocity = [0, 0, {velocity}]
            material = {{ density = 0.15, stretch = 1000, bending = 1e-5, damping_stiffness = 0.002 }}
            "#
        )
    };
    let (one, two) = (
        sheet("lower", 0.0, speed, 0.2),
        sheet("upper", 0.08, -speed, -0.3),
    );
    format!(
        "time = {{ step = 0.002, end = 1 }}\ngravity = [0, 0, 0]\ncontact.certify = {certify}\n\
         partition.patches = 8\n{solver}\n{one}\n{two}"
    )
}

/// Takes steps, and counts crossings in the states between them.
fn steps(world: &World, comm: &mut dyn Comm, count: u32) -> (usize, u64, Vec<[DVec3; 2]>) {
    let mut simulation = Simulation::new(world, comm, &ScopeOptions::default()).unwrap();
    let (mut crossed, mut cut) = (0, 0);
    for _ in 0..count {
        cut += simulation.advance(comm).unwrap().certified.cut;
        let triangles = world.model().triangles();
        crossed += crossings(simulation.positions(), triangles).len();
    }
    let state = simulation.positions().iter().zip(simulation.velocities());
    (crossed, cut, state.map(|(x, v)| [*x, *v]).collect())
}

/// The mean heights of both sheets.
fn heights(world: &World, state: &[[DVec3; 2]]) -> [f64; 2] {
    [0, 1].map(|cloth| {
        let of = world.model().cloth_of_vertex();
        let own = (of.iter().zip(state)).filter(|(of, _)| **of as usize == cloth);
        let (count, sum) = own.fold((0, 0.0), |(n, sum), (_, [x, _])| (n + 1, sum + x.z));
        sum / f64::from(count)
    })
}

#[test]
fn sheets_that_clash_do_not_cross_nor_pass_each_other() {
    for solver in [
        "solver.integrator = \"euler\"",
        "solver.integrator = \"newmark\"",
        "solver.integrator = \"bdf2\"",
        "solver = { tolerance = 0.9, max_iterations = 5 }",
    ] {
        let certified = world(&clash(20.0, true, solver));
        let (crossed, cut, state) = steps(&certified, &mut Solo::new(), 12);
        assert_eq!(crossed, 0, "{solver}");
        assert!(cut > 0, "{solver}: nothing was cut");
        let [lower, upper] = heights(&certified, &state);
        assert!(lower < upper, "{solver}: {lower} {upper}");
    }
    // Without, they do.
    let free = world(&clash(20.0, false, ""));
    let (crossed, _, state) = steps(&free, &mut Solo::new(), 12);
    let [lower, upper] = heights(&free, &state);
    assert!(crossed > 0 || lower > upper);
}

#[test]
fn ranks_cut_alike() {
    let world = world(&clash(20.0, true, ""));
    let (crossed, cut, expected) = steps(&world, &mut Solo::new(), 6);
    assert!(crossed == 0 && cut > 0);
    for ranks in [2, 3, 5] {
        for found in launch(ranks, |comm| steps(&world, comm, 6)).unwrap() {
            assert!(found == (crossed, cut, expected.clone()), "{ranks} ranks");
        }
    }
}

/// Slow sheets touch, and are kept apart by impulses alone.
#[test]
fn where_nothing_would_cross_the_state_is_that_without() {
    let state = |certify| {
        let world = world(&clash(0.5, certify, ""));
        steps(&world, &mut Solo::new(), 60)
    };
    let (crossed, cut, with) = state(true);
    assert_eq!((crossed, cut), (0, 0));
    assert!(with == state(false).2);
}
