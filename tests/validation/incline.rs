//! Cloth on an inclined plane, by Coulomb's law: it slides with `v₀ + (sin φ − μ cos φ) g t`, or
//! stops and stays.
//!
//! Source: Selle et al. 2009, section 6, figures 7 and 8: φ = π/5, g = 9.8 m/s²; μ = 0.6 from rest,
//! and μ = 0.9 from 1 m/s. (The time of the stop has the other sign there.)

use std::f64::consts::PI;

use glam::{DQuat, DVec3};
use weft_runtime::ScopeOptions;
use weft_runtime::comm::solo::Solo;
use weftwork::mesh::TriMesh;
use weftwork::step::{Simulation, World};

use super::rig::{Rig, herringbone, mean};

const ANGLE: f64 = PI / 5.0;
const GRAVITY: f64 = 9.8;
const THICKNESS: f64 = 0.004;

/// One of the two experiments.
#[derive(Clone, Copy, Debug)]
struct Slide {
    friction: f64,
    /// The speed at the start in m/s, down the plane.
    start: f64,
}

const FASTER: Slide = Slide {
    friction: 0.6,
    start: 0.0,
};
const SLOWER: Slide = Slide {
    friction: 0.9,
    start: 1.0,
};

impl Slide {
    /// The acceleration in m/s².
    fn acceleration(self) -> f64 {
        (ANGLE.sin() - self.friction * ANGLE.cos()) * GRAVITY
    }
}

/// The cloth that slides: cells along a side, its length in m, and its material.
#[derive(Clone, Copy, Debug)]
struct Sheet {
    cells: usize,
    side: f64,
    material: &'static str,
}

const SHEETS: [Sheet; 3] = [
    // The smallest cloth that there is: four vertices that move as one.
    Sheet {
        cells: 1,
        side: 0.02,
        material: "density = 0.15\nstretch = 1000\nbending = 0\ndamping_stiffness = '2 ms'",
    },
    Sheet {
        cells: 4,
        side: 0.2,
        material: "density = 0.3\nstretch = 1e5\nbending = 1e-2\ndamping_stiffness = '5 ms'",
    },
    Sheet {
        cells: 8,
        side: 0.2,
        material: "density = 0.15\nstretch = 100\nbending = 1e-5\ndamping_stiffness = '2 ms'",
    },
];

/// The direction down the plane, and its normal.
fn axes() -> [DVec3; 2] {
    let (sin, cos) = ANGLE.sin_cos();
    [DVec3::new(cos, 0.0, -sin), DVec3::new(sin, 0.0, cos)]
}

/// The scene, with cloth that lies on the plane.
fn world(sheet: Sheet, slide: Slide, integrator: &str, step: f64) -> World {
    let [down, normal] = axes();
    let flat = herringbone([sheet.side; 2], [sheet.cells; 2]);
    let turn = DQuat::from_rotation_y(ANGLE);
    let place = |p: &DVec3| turn * *p + normal * THICKNESS;
    let mesh = TriMesh {
        positions: flat.positions.iter().map(place).collect(),
        ..flat
    };
    let [vx, vy, vz] = (down * slide.start).to_array();
    let [nx, ny, nz] = normal.to_array();
    let rig = Rig::new(
        format!("velocity = [{vx:?}, {vy:?}, {vz:?}]"),
        sheet.material,
    )
    .gravity(DVec3::new(0.0, 0.0, -GRAVITY))
    .step(step)
    .contact(format!("thickness = {THICKNESS:?}"))
    .solver(format!("integrator = '{integrator}'").replace('\'', "\""))
    .rest(format!(
        "[[body]]\nshape = 'plane'\nsurface = 'analytic'\nnormal = [{nx:?}, {ny:?}, {nz:?}]\n\
             friction = {:?}",
        slide.friction
    ));
    let rig = Rig {
        solver: format!("{}\n", rig.solver),
        ..rig
    };
    rig.world_of(&mesh)
}

/// Mean way (m) and speed (m/s) down the plane after each step.
fn slide(world: &World, steps: usize) -> Vec<[f64; 2]> {
    let [down, _] = axes();
    let mut comm = Solo::new();
    let mut simulation = Simulation::new(world, &comm, &ScopeOptions::default()).unwrap();
    let all: Vec<usize> = (0..world.model().start().len()).collect();
    let look = |simulation: &Simulation<'_>| {
        let (x, v, rest) = (
            simulation.positions(),
            simulation.velocities(),
            world.model().start(),
        );
        [
            mean(&all, |i| (x[i] - rest[i]).dot(down)),
            mean(&all, |i| v[i].dot(down)),
        ]
    };
    let mut seen = vec![look(&simulation)];
    for _ in 0..steps {
        simulation.advance(&mut comm).unwrap();
        seen.push(look(&simulation));
    }
    seen
}

#[test]
fn newmark_slides_with_coulombs_acceleration_in_every_step() {
    let step = 1e-3;
    for sheet in SHEETS {
        for law in [FASTER, SLOWER] {
            let a = law.acceleration();
            let seen = slide(&world(sheet, law, "newmark", step), 500);
            for (n, pair) in seen.windows(2).enumerate() {
                let [[x, v], [next_x, next_v]] = [pair[0], pair[1]];
                let gain = next_v - v - a * step;
                assert!(gain.abs() < 1e-12, "{sheet:?} {law:?} {n}: {gain:e} m/s");
                let way = next_x - x - 0.5 * (v + next_v) * step;
                assert!(way.abs() < 1e-12, "{sheet:?} {law:?} {n}: {way:e} m");
            }
        }
    }
}

#[test]
fn accelerations_and_stop_are_the_papers() {
    assert!((FASTER.acceleration() - 1.003_276).abs() < 5e-7);
    let a = SLOWER.acceleration();
    assert!((-1.0 / a - 0.727_149).abs() < 5e-7 && (-0.5 / a - 0.363_574).abs() < 5e-7);
}

#[test]
fn cloth_that_friction_slows_stops_within_a_step_and_stays() {
    let a = SLOWER.acceleration();
    for (integrator, step, off) in [
        ("newmark", 1e-3, 2e-6),
        ("euler", 1e-3, 5e-4),
        ("bdf2", 1e-3, 5e-4),
    ] {
        for sheet in SHEETS {
            let seen = slide(&world(sheet, SLOWER, integrator, step), 780);
            let stop = (-1.0 / a / step).ceil() as usize;
            for (n, [x, v]) in seen.iter().enumerate().skip(stop + 1) {
                assert!(v.abs() < 1e-9, "{integrator} {sheet:?} {n}: {v:e} m/s");
                let lacks = x + 0.5 / a;
                assert!(lacks.abs() < off, "{integrator} {sheet:?} {n}: {lacks:e} m");
            }
            assert!(seen[stop - 1][1] > 0.0);
        }
    }
}

#[test]
fn euler_is_of_first_order() {
    let a = FASTER.acceleration();
    for sheet in SHEETS {
        let error = |step: f64| {
            let steps = (0.4 / step).round() as usize;
            slide(&world(sheet, FASTER, "euler", step), steps)[steps][0] - 0.5 * a * 0.16
        };
        let errors = [4e-3, 2e-3, 1e-3].map(error);
        for (step, error) in [4e-3, 2e-3, 1e-3].into_iter().zip(errors) {
            // a h t / 2
            let expected = 0.5 * a * step * 0.4;
            assert!(
                (error / expected - 1.0).abs() < 0.01,
                "{sheet:?} {step}: {error:e}"
            );
        }
    }
}

/// A sheet comes down on the plane at an angle and touches it within a step: it slides freely until
/// then, and friction of the whole impact acts after.
#[test]
fn cloth_that_arrives_within_a_step_slides_freely_until_it_touches() {
    let text = |step: f64, height: f64| {
        format!(
            "gravity = [0, 0, -{GRAVITY:?}]
            time = {{ step = {step:?}, end = 1 }}
            contact = {{ thickness = {THICKNESS:?}, self_collision = false }}
            solver = {{ integrator = \"newmark\", tolerance = 1e-12 }}
            [[cloth]]
            grid = {{ size = 0.02, vertices = 2 }}
            center = [0, 0, {height:?}]
            velocity = [2, 0, -1]
            material = {{ density = 0.15, stretch = 1000, bending = 0, damping_stiffness = \"2 ms\" }}
            [[body]]
            shape = \"plane\"
            surface = \"analytic\"
            friction = 0.5"
        )
    };
    let step = 1e-3;
    // Touches after this many steps.
    for touch in [3.1_f64, 3.5, 3.9] {
        let t = touch * step;
        let height = THICKNESS + t + 0.5 * GRAVITY * t * t;
        let scene = weftwork::scene::Scene::parse(&text(step, height), None, &[]).unwrap();
        let world = World::build(&scene).unwrap();
        let mut comm = Solo::new();
        let mut simulation = Simulation::new(&world, &comm, &ScopeOptions::default()).unwrap();
        for _ in 0..10 {
            simulation.advance(&mut comm).unwrap();
        }
        let after = simulation.time() - t;
        // The impact takes μ times what it takes of the fall.
        let speed = 2.0 - 0.5 * (1.0 + GRAVITY * t);
        let slides = speed - 0.5 * GRAVITY * after;
        let way = 2.0 * t + speed * after - 0.25 * GRAVITY * after * after;
        let rest = world.model().start();
        for ((x, v), from) in simulation
            .positions()
            .iter()
            .zip(simulation.velocities())
            .zip(rest)
        {
            assert!((v.x - slides).abs() < 1e-9, "{touch}: {} m/s", v.x - slides);
            let off = x.x - from.x - way;
            assert!(off.abs() < 5e-6, "{touch}: {off:e} m");
            assert!(v.z.abs() < 1e-9 && (x.z - THICKNESS).abs() < 1e-12);
        }
    }
}
