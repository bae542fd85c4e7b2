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

/// Takes steps, and counts crossings in the states between them, and hits.
fn steps(world: &World, comm: &mut dyn Comm, count: u32) -> (usize, u64, Vec<[DVec3; 2]>) {
    let mut simulation = Simulation::new(world, comm, &ScopeOptions::default()).unwrap();
    let (mut crossed, mut hits) = (0, 0);
    for _ in 0..count {
        hits += simulation.advance(comm).unwrap().certified.hits;
        let triangles = world.model().triangles();
        crossed += crossings(simulation.positions(), triangles).len();
    }
    let state = simulation.positions().iter().zip(simulation.velocities());
    (crossed, hits, state.map(|(x, v)| [*x, *v]).collect())
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
        let (crossed, hits, state) = steps(&certified, &mut Solo::new(), 12);
        assert_eq!(crossed, 0, "{solver}");
        assert!(hits > 0, "{solver}: nothing was hit");
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
    let (crossed, hits, expected) = steps(&world, &mut Solo::new(), 6);
    assert!(crossed == 0 && hits > 0);
    for ranks in [2, 3, 5] {
        for found in launch(ranks, |comm| steps(&world, comm, 6)).unwrap() {
            assert!(found == (crossed, hits, expected.clone()), "{ranks} ranks");
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
    let (crossed, hits, with) = state(true);
    assert_eq!((crossed, hits), (0, 0));
    assert!(with == state(false).2);
}

/// A free sheet over bodies, at steps of 2 ms.
fn sheet_and(bodies: &str, more: &str) -> World {
    world(&format!(
        "time = {{ step = 0.002, end = 1 }}\ncontact.certify = true\npartition.patches = 4\n{more}\n\
         [[cloth]]\nname = \"sheet\"\ngrid = {{ size = 0.2, vertices = 12 }}\ncenter = [0.003, 0.002, 0]\n\
         material = {{ density = 0.15, stretch = 1000, bending = 1e-5, damping_stiffness = 0.002 }}\n{bodies}"
    ))
}

/// The results of steps.
#[derive(Clone, Debug, Default, PartialEq)]
struct Ran {
    hits: u64,
    crossed: usize,
    /// The pairs of cloth and triangles of bodies that crossed, in the step with most of them.
    pierced: usize,
    /// The most vertices that were squeezed, and those that were at the end.
    squeezed: [u64; 2],
    /// Whether certification changed a velocity in the last part of some step.
    is_cut: bool,
    state: Vec<[DVec3; 2]>,
    /// How far the lowest vertex was from each body, in any step.
    gaps: Vec<f64>,
}

fn run(world: &World, comm: &mut dyn Comm, count: u32) -> Ran {
    let mut simulation = Simulation::new(world, comm, &ScopeOptions::default()).unwrap();
    let mut ran = Ran {
        gaps: vec![f64::INFINITY; world.scene().bodies.len()],
        ..Ran::default()
    };
    for _ in 0..count {
        let certified = simulation.advance(comm).unwrap().certified;
        ran.hits += certified.hits;
        ran.squeezed = [ran.squeezed[0].max(certified.squeezed), certified.squeezed];
        let cuts = simulation.cuts();
        let is_cut = cuts.iter().any(|cut| *cut > 0.0);
        assert!(!is_cut || certified.hits > 0 || certified.cut > 0);
        ran.is_cut |= is_cut;
        let (x, time) = (simulation.positions(), simulation.time());
        ran.crossed += crossings(x, world.model().triangles()).len();
        ran.pierced = ran.pierced.max(world.crossings_with_bodies(x, time));
        for &p in x {
            for (least, gap) in ran.gaps.iter_mut().zip(world.gaps(p, time)) {
                *least = least.min(gap);
            }
        }
    }
    let state = simulation.positions().iter().zip(simulation.velocities());
    ran.state = state.map(|(x, v)| [*x, *v]).collect();
    ran
}

const BODIES: [&str; 5] = [
    "shape = \"sphere\"\ncenter = [0, 0, -0.2]\nradius = 0.05\nsurface = \"triangles\"\nedge = 0.02",
    "shape = \"sphere\"\ncenter = [0, 0, -0.2]\nradius = 0.05",
    "shape = \"box\"\ncenter = [0, 0, -0.2]\nsize = [0.1, 0.1, 0.1]\nrotation = [0.4, 0.3, 0.2]",
    "shape = \"capsule\"\nfrom = [-0.03, 0, -0.2]\nto = [0.04, 0.01, -0.19]\nradius = 0.04",
    "shape = \"plane\"\npoint = [0, 0, -0.2]\nnormal = [0, 0, 1]",
];

#[test]
fn bodies_that_fly_at_cloth_do_not_come_through() {
    for body in BODIES {
        // 60 mm in a step, which is six cells of the cloth; gravity is nothing beside it.
        let world = sheet_and(
            &format!("[[body]]\nname = \"bullet\"\n{body}\nvelocity = [0, 0, 30]"),
            "",
        );
        let ran = run(&world, &mut Solo::new(), 12);
        assert_eq!((ran.crossed, ran.pierced), (0, 0), "{body}");
        assert_eq!(ran.squeezed, [0, 0], "{body}");
        assert!(ran.is_cut || ran.hits == 0, "{body}");
        assert!(ran.gaps[0] > 0.0, "{body}: {:?}", ran.gaps);
        // It has taken the sheet along.
        let ends = run(&world, &mut Solo::new(), 12).state;
        let middle = ends.iter().map(|[x, _]| x.z).sum::<f64>() / ends.len() as f64;
        assert!(middle > 0.3, "{body}: {middle}");
    }
}

/// Two plates that close on a sheet, to less than nothing, stay so, and open again.
fn press(surface: &str, motion: &str) -> String {
    let plate = |name: &str, z: f64, way: f64| {
        format!(
            "[[body]]\nname = \"{name}\"\nshape = \"box\"\ncenter = [0, 0, {z}]\nsize = [0.12, 0.12, 0.02]\n\
             surface = \"{surface}\"\n{motion}\nmotion = {{ keyframes = [{{ time = 0 }}, {{ time = 0.05, \
             translation = [0, 0, {way}] }}, {{ time = 0.06, translation = [0, 0, {way}] }}, {{ time = 0.11, translation = [0, 0, 0] }}] }}\n"
        )
    };
    plate("lower", -0.03, 0.021) + &plate("upper", 0.03, -0.021)
}

#[test]
fn cloth_between_plates_is_squeezed_through_one_and_comes_out_again() {
    for surface in ["triangles", "analytic"] {
        let edge = if surface == "triangles" {
            "edge = 0.05"
        } else {
            ""
        };
        let world = sheet_and(&press(surface, edge), "gravity = [0, 0, 0]");
        let ran = run(&world, &mut Solo::new(), 120);
        assert_eq!(ran.crossed, 0, "{surface}");
        assert!(ran.squeezed[0] > 0, "{surface}: {:?}", ran.squeezed);
        assert!(ran.is_cut, "{surface}");
        assert_eq!(ran.squeezed[1], 0, "{surface}: {:?}", ran.squeezed);
        for ranks in [2, 3] {
            for found in launch(ranks, |comm| run(&world, comm, 120)).unwrap() {
                assert!(found == ran, "{surface}: {ranks} ranks");
            }
        }
    }
}

#[test]
fn a_run_that_goes_on_knows_what_is_squeezed() {
    let world = sheet_and(&press("triangles", "edge = 0.05"), "gravity = [0, 0, 0]");
    let mut comm = Solo::new();
    let begin = || Simulation::new(&world, &Solo::new(), &ScopeOptions::default()).unwrap();
    let mut whole = begin();
    while whole.squeezed().is_empty() {
        whole.advance(&mut comm).unwrap();
        assert!(whole.step() < 60, "nothing was squeezed");
    }
    let saved = whole.gather_state(&mut comm).unwrap().unwrap();
    assert_eq!(saved.squeezed, whole.squeezed());
    let mut again = begin();
    again.restore(&saved).unwrap();
    assert_eq!(again.squeezed(), whole.squeezed());
    for _ in 0..60 {
        whole.advance(&mut comm).unwrap();
        again.advance(&mut comm).unwrap();
        assert!(whole.positions() == again.positions() && whole.squeezed() == again.squeezed());
    }
    // A state that names a body which the scene has not is another scene's.
    let mut foreign = saved;
    foreign.squeezed = vec![[0, 7]];
    assert!(again.restore(&foreign).is_err());
}

#[test]
fn cloth_without_room_stops_the_run_if_the_scene_says_so() {
    let world = sheet_and(
        &press("triangles", "edge = 0.05"),
        "gravity = [0, 0, 0]\ncontact.squeezed = \"stop\"",
    );
    let mut comm = Solo::new();
    let mut simulation = Simulation::new(&world, &comm, &ScopeOptions::default()).unwrap();
    let mut last = simulation.positions().to_vec();
    let error = loop {
        match simulation.advance(&mut comm) {
            Ok(_) => last = simulation.positions().to_vec(),
            Err(error) => break error,
        }
        assert!(simulation.step() < 60, "nothing was squeezed");
    };
    let told = error.to_string();
    assert!(
        told.contains("body `upper`") && told.contains("body `lower`"),
        "{told}"
    );
    // The last checked state is there still.
    assert!(simulation.positions() == last);
}

#[test]
fn absurd_velocities_cross_nothing_and_the_run_goes_on() {
    let world = world(&clash(0.0, true, ""));
    let mut comm = Solo::new();
    let mut simulation = Simulation::new(&world, &comm, &ScopeOptions::default()).unwrap();
    let (_, v) = simulation.state_mut();
    for (k, v) in v.iter_mut().enumerate() {
        let number = |j: usize| (((7 * k + j) as f64) * 12.9898).sin() * 1e4;
        *v = DVec3::new(number(1), number(2), number(3));
    }
    let mut curbed = 0;
    for _ in 0..5 {
        curbed += simulation.advance(&mut comm).unwrap().certified.cut;
        let triangles = world.model().triangles();
        assert_eq!(crossings(simulation.positions(), triangles).len(), 0);
    }
    assert!(curbed > 0);
}

#[test]
fn pins_give_way_and_catch_up() {
    // A pinned border is pulled through a fixed plate, which stops it; then it is pulled back.
    let world = world(
        "time = { step = 0.002, end = 1 }\ngravity = [0, 0, 0]\ncontact.certify = true\npartition.patches = 4\n\
         [[cloth]]\nname = \"sheet\"\ngrid = { size = 0.2, vertices = 12 }\n\
         material = { density = 0.15, stretch = 1000, bending = 1e-5, damping_stiffness = 0.002 }\n\
         pins = [{ min = [-9, -9, -9], max = [9, 9, 9], motion = { keyframes = [{ time = 0 }, { time = 0.04, translation = [0, 0, -0.08] }, \
         { time = 0.08, translation = [0, 0, 0] }] } }]\n\
         [[body]]\nname = \"plate\"\nshape = \"box\"\ncenter = [0, 0, -0.05]\nsize = [0.5, 0.5, 0.02]",
    );
    let ran = run(&world, &mut Solo::new(), 60);
    assert_eq!((ran.crossed, ran.squeezed[0]), (0, 0));
    assert!(ran.gaps[0] > 0.0, "{:?}", ran.gaps);
    for (k, [x, _]) in ran.state.iter().enumerate() {
        assert!(x.z.abs() < 1e-9, "vertex {k} is still behind: {x}");
    }
}

/// Layers that fly onto a layer that pins hold, all of it with a velocity in common besides.
fn stopped_layers(drift: f64) -> String {
    let layer = |k: u32| {
        let (height, turn) = (0.012 * f64::from(k), 9 * k);
        let (speed, pins) = if k == 0 {
            let pins = format!(
                "pins = [{{ min = [-1, -1, -1], max = [1, 1, 1], velocity = [{drift}, 0, 0] }}]"
            );
            (0.0, pins)
        } else {
            (-20.0, String::new())
        };
        format!(
            r#"
            [[cloth]]
            name = "layer{k}"
            grid = {{ size = 0.2, vertices = 12 }}
            center = [0, 0, {height}]
            rotation = [0, 0, "{turn} deg"]
            velocity = [{drift}, 0, {speed}]
            material = {{ density = 0.15, stretch = 1000, bending = 1e-5, damping_stiffness = 0.002 }}
            {pins}
            "#
        )
    };
    let layers: String = (0..6).map(layer).collect();
    format!("time = {{ step = 0.005, end = 1 }}\ngravity = [0, 0, 0]\n{layers}")
}

#[test]
fn a_velocity_that_all_have_in_common_changes_nothing() {
    let run = |drift| {
        let world = world(&stopped_layers(drift));
        let mut comm = Solo::new();
        let mut simulation = Simulation::new(&world, &comm, &ScopeOptions::default()).unwrap();
        let mut all = Certified::default();
        for _ in 0..2 {
            all.add(&simulation.advance(&mut comm).unwrap().certified);
        }
        (all, simulation.positions().to_vec())
    };
    let (still, at_rest) = run(0.0);
    assert!(still.hits > 1_000 && still.cut == 0, "{still:?}");
    let (moving, with_drift) = run(10.0);
    assert!(moving.hits > 1_000 && moving.cut == 0, "{moving:?}");
    let way = DVec3::X * (10.0 * 0.01);
    for (x, y) in at_rest.iter().zip(&with_drift) {
        let apart = (*x + way).distance(*y);
        // A tenth of the thickness: some hundred hits are resolved in another order.
        assert!(apart < 4e-4, "{apart} m");
    }
}
