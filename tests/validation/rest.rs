//! Cloth that lies on bodies comes to rest, without any damping, and stays there.
//!
//! Where Coulomb's law holds, contacts take energy or none: once it lies, cloth comes to rest as
//! fast as if what touches were pinned, and then nothing moves. Source: the contact conditions of
//! Signorini and Coulomb, e.g. Wriggers, Computational Contact Mechanics, chapters 2 and 5.

use glam::DVec3;
use weft_runtime::ScopeOptions;
use weft_runtime::comm::solo::Solo;
use weftwork::scene::Scene;
use weftwork::step::{SavedState, Simulation, World};

const EPSILON: f64 = 1e-5;

/// A small cloth that falls on a low dome on the floor, and lies over its border. The dome is so
/// flat for the cloth's cells that vertices keep faces off.
#[derive(Clone, Copy, Debug)]
struct Lying {
    integrator: &'static str,
    surface: &'static str,
    friction: f64,
    /// The time step in s.
    step: f64,
}

const USUAL: Lying = Lying {
    integrator: "euler",
    surface: "analytic",
    friction: 0.5,
    step: 2e-3,
};

impl Lying {
    fn text(self, pins: &str) -> String {
        let Self {
            integrator,
            surface,
            friction,
            step,
        } = self;
        let edge = if surface == "triangles" {
            "edge = '4 cm'"
        } else {
            ""
        };
        format!(
            r#"
            time = {{ step = {step:?}, end = "1000 s" }}
            [[cloth]]
            grid = {{ size = "0.2 m", vertices = 5 }}
            center = [0.01, 0.005, 0.05]
            material = {{ density = 0.15, stretch = 1000, bending = 1e-5 }}
            {pins}
            [[body]]
            shape = "sphere"
            surface = "{surface}"
            center = [0, 0, -0.49]
            radius = "50 cm"
            {edge}
            friction = {friction:?}
            [[body]]
            name = "floor"
            shape = "plane"
            surface = "{surface}"
            extent = "1 m"
            friction = {friction:?}
            [contact]
            thickness = "6 mm"
            [solver]
            integrator = "{integrator}"
            "#
        )
        .replace(
            "extent = \"1 m\"",
            if surface == "analytic" {
                ""
            } else {
                "extent = \"1 m\""
            },
        )
    }

    fn world(self) -> World {
        World::build(&Scene::parse(&self.text(""), None, &[]).unwrap()).unwrap()
    }
}

/// Kinetic energy in J.
fn kinetic(world: &World, simulation: &Simulation<'_>) -> f64 {
    let masses = world.model().masses().iter();
    let moving = masses.zip(simulation.velocities());
    moving.map(|(m, v)| 0.5 * m * v.length_squared()).sum()
}

/// All energy in J: of motion, of height and of deformation.
fn energy(world: &World, simulation: &Simulation<'_>) -> f64 {
    let masses = world.model().masses().iter();
    let height = masses.zip(simulation.positions());
    let height: f64 = height.map(|(m, x)| 9.81 * m * x.z).sum();
    let elastic = world
        .model()
        .elastic_energy(simulation.positions())
        .unwrap();
    kinetic(world, simulation) + height + elastic
}

fn fastest(simulation: &Simulation<'_>) -> f64 {
    let speeds = simulation.velocities().iter().map(|v| v.length());
    speeds.fold(0.0, f64::max)
}

fn begin<'w>(world: &'w World, comm: &Solo) -> Simulation<'w> {
    Simulation::new(world, comm, &ScopeOptions::default()).unwrap()
}

/// Falls for so long (s), and then lies still for a thousand steps.
fn comes_to_rest(lying: Lying, falls: f64) {
    let world = lying.world();
    let mut comm = Solo::new();
    let mut simulation = begin(&world, &comm);
    while simulation.time() < falls {
        simulation.advance(&mut comm).unwrap();
    }
    let rests = kinetic(&world, &simulation);
    assert!(rests < 1e-12, "{lying:?}: {rests:e} J");
    for _ in 0..1000 {
        simulation.advance(&mut comm).unwrap();
        let fastest = fastest(&simulation);
        assert!(fastest < EPSILON, "{lying:?}: {fastest:e} m/s");
    }
    let rests = kinetic(&world, &simulation);
    assert!(rests < 1e-12, "{lying:?}: {rests:e} J");
}

#[test]
fn cloth_on_bodies_comes_to_rest_with_euler() {
    for surface in ["analytic", "triangles"] {
        for (friction, step) in [(0.2, 2e-3), (0.5, 1e-3), (0.5, 4e-3), (1.0, 2e-3)] {
            let lying = Lying {
                surface,
                friction,
                step,
                ..USUAL
            };
            comes_to_rest(lying, 3.5);
        }
    }
}

#[test]
fn cloth_on_bodies_comes_to_rest_with_every_integrator() {
    for (surface, integrator, step) in [
        ("analytic", "bdf2", 2e-3),
        ("triangles", "bdf2", 2e-3),
        ("analytic", "newmark", 1e-3),
        ("triangles", "newmark", 1e-3),
        ("analytic", "central", 3e-4),
    ] {
        let lying = Lying {
            integrator,
            surface,
            step,
            ..USUAL
        };
        comes_to_rest(lying, 3.5);
    }
}

/// Energy may rise a little at impacts, which push out what has come too close, and stop what
/// arrives along bodies with its own mass. It must not once the cloth lies.
#[test]
fn energy_never_rises_while_cloth_comes_to_rest() {
    for surface in ["analytic", "triangles"] {
        let world = Lying { surface, ..USUAL }.world();
        let mut comm = Solo::new();
        let mut simulation = begin(&world, &comm);
        let first = energy(&world, &simulation);
        let mut last = first;
        while simulation.time() < 2.0 {
            simulation.advance(&mut comm).unwrap();
            let now = energy(&world, &simulation);
            assert!(now < first);
            let (time, rise) = (simulation.time(), now - last);
            // The residual of the solves, 10⁻¹² √J a step, explains less than a speed of mm/s.
            let allowed = if time < 0.3 { 0.02 * first } else { 1e-12 };
            assert!(rise < allowed, "{surface} {time}: {rise:e} J");
            last = now;
        }
    }
}

/// Steps until the kinetic energy stays below this (J) for good, of at most 200.
fn dies(world: &World, simulation: &mut Simulation<'_>, below: f64) -> usize {
    let mut comm = Solo::new();
    let mut last = 0;
    for step in 1..=200 {
        simulation.advance(&mut comm).unwrap();
        if kinetic(world, simulation) >= below {
            last = step;
        }
    }
    last
}

/// The comparison is with cloth whose touching vertices are pinned where they lie.
#[test]
fn motion_dies_as_fast_as_with_what_touches_pinned() {
    let world = USUAL.world();
    let mut comm = Solo::new();
    let mut simulation = begin(&world, &comm);
    while simulation.time() < 2.0 {
        simulation.advance(&mut comm).unwrap();
    }
    let rest: SavedState = simulation.gather_state(&mut comm).unwrap().unwrap();
    let pin = |(i, contact): (usize, &weftwork::step::VertexState)| {
        let side = |k: usize| -0.1 + 0.05 * k as f64;
        let from = DVec3::new(0.01 + side(i % 5), 0.005 + side(i / 5), 0.05);
        let by = rest.positions[i] - from;
        contact.held.then(|| {
            format!(
                "{{ nearest = [{:?}, {:?}, {:?}], motion = {{ keyframes = [{{ time = 0 }}, {{ time = \"1 ms\", translation = [{:?}, {:?}, {:?}] }}] }} }}",
                from.x, from.y, from.z, by.x, by.y, by.z
            )
        })
    };
    let pins: Vec<String> = rest.contacts.iter().enumerate().filter_map(pin).collect();
    assert!(pins.len() >= 4, "{}", pins.len());
    let text = USUAL.text(&format!("pins = [{}]", pins.join(", ")));
    let pinned = World::build(&Scene::parse(&text, None, &[]).unwrap()).unwrap();
    // The hanging part is kicked, too gently for the touching part to slide.
    let kick = |world: &World, simulation: &mut Simulation<'_>| {
        simulation.restore(&rest).unwrap();
        let touching = world.original_order(&(0..25).collect::<Vec<usize>>());
        for (i, &new) in touching.iter().enumerate() {
            if !rest.contacts[i].held {
                simulation.state_mut().1[new] += DVec3::new(1e-4, 2e-4, -1e-4);
            }
        }
    };
    let mut by_pins = begin(&pinned, &comm);
    kick(&pinned, &mut by_pins);
    kick(&world, &mut simulation);
    for below in [1e-14, 1e-16, 1e-18] {
        let free = dies(&world, &mut simulation, below);
        let held = dies(&pinned, &mut by_pins, below);
        assert!(held > 3, "{held}");
        assert!(free <= 2 * held, "{below:e} J: {free} and {held} steps");
        kick(&pinned, &mut by_pins);
        kick(&world, &mut simulation);
    }
}
