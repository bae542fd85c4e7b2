//! Physics with known answers, and the promise, on small scenes.

mod answers;
mod compression;
mod contact_forces;
mod corrections;
mod deforming;
mod distance;
mod faces;
mod failures;
mod in_time;
mod ledger;
mod limits;
mod memory;
mod moving;
mod near_pins;
mod news;
mod open_bodies;
mod passing;
mod pins;
mod ranks;
mod rest_shapes;
mod seams;
mod sliding;
mod stiffness_in_time;
mod subscriptions;
mod threads_of_setup;
mod unlike;
mod velocities;
mod wind;

use std::time::Duration;

use glam::DVec3;
use weft_partition::Ownership;
use weft_runtime::comm::solo::Solo;
use weft_runtime::comm::threads::launch;
use weft_runtime::comm::{Comm, all_reduce};
use weft_runtime::{Interval, Policy, ScopeOptions, Split};

use super::{Simulation, StepError, World};
use crate::collide::{Contact, Snapshot, Volumes, brute_force};
use crate::scene::Scene;
use crate::solve::Rows;
use crate::step::contact::balancer::Balancer;
use crate::step::contact::detect::{Search, Searched, detect};
use crate::team::Team;

fn world(text: &str) -> World {
    World::build(&Scene::parse(text, None, &[]).unwrap()).unwrap()
}

/// A sheet of 1 m by 1 m, 0.15 kg/m², with extra lines in the cloth's table and at the end.
fn sheet(vertices: usize, cloth: &str, rest: &str) -> String {
    format!(
        r#"
        time = {{ step = "5 ms", end = "1 s" }}
        [[cloth]]
        grid = {{ size = "1 m", vertices = {vertices} }}
        {cloth}
        [cloth.material]
        density = "0.15 kg/m2"
        stretch = "1000 N/m"
        poisson = 0.3
        bending = "1e-5 N m"
        damping_stiffness = "0 s"
        {rest}
        "#
    )
}

pub(crate) fn run<'w>(
    world: &'w World,
    steps: u32,
    mut each: impl FnMut(&Simulation<'w>),
) -> Simulation<'w> {
    let mut comm = Solo::new();
    let mut simulation = Simulation::new(world, &comm, &ScopeOptions::default()).unwrap();
    for _ in 0..steps {
        simulation.advance(&mut comm).unwrap();
        each(&simulation);
    }
    simulation
}

fn momentum(world: &World, s: &Simulation<'_>) -> (DVec3, DVec3) {
    let terms = world
        .model()
        .masses()
        .iter()
        .zip(s.positions())
        .zip(s.velocities());
    terms.fold((DVec3::ZERO, DVec3::ZERO), |(p, l), ((&m, x), v)| {
        (p + *v * m, l + x.cross(*v * m))
    })
}

/// Small cloth over a sphere on the floor: what everything together does.
fn drape() -> String {
    sheet(
        25,
        "center = [0.05, 0.03, 0.22]",
        r#"
        [[body]]
        name = "ball"
        shape = "sphere"
        center = [0, 0, 0.1]
        radius = "0.1 m"
        surface = "triangles"
        friction = 0.5
        [[body]]
        name = "floor"
        shape = "plane"
        point = [0, 0, 0]
        normal = [0, 0, 1]
        surface = "triangles"
        friction = 0.5
        [contact]
        thickness = "4 mm"
        "#,
    )
    .replace("size = \"1 m\"", "size = \"0.5 m\"")
}

/// Bits of positions and velocities, and what a test must not miss.
type Bits = (Vec<u64>, Vec<u64>, Seen);

/// How often there was something: what every rank counts alike, whether bodies pushed at all, and
/// rows that pushed on all ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Seen {
    halvings: u32,
    systems: u32,
    constrained: bool,
    pushed: u64,
    limited: u64,
}

fn bits(s: &Simulation<'_>, seen: Seen) -> Bits {
    let bits = |v: &[DVec3]| bytemuck::cast_slice::<DVec3, u64>(v).to_vec();
    (bits(s.positions()), bits(s.velocities()), seen)
}

fn take(s: &mut Simulation<'_>, steps: u32, comm: &mut dyn Comm) -> Seen {
    let mut seen = Seen::default();
    for _ in 0..steps {
        let report = s.advance(comm).unwrap();
        let mut all = |count: u64| all_reduce(comm, count as f64, |a, b| a + b).unwrap() as u64;
        seen.constrained |= all(report.constraints) > 0;
        seen.pushed += all(report.impulses);
        seen.limited += all(report.strain_limited + report.rate_limited);
        seen.halvings += report.halvings;
        seen.systems += report.systems;
    }
    seen
}

/// A way to integrate: what it adds to [`drape`], and the number of steps until there is contact of
/// every kind.
struct Way {
    name: &'static str,
    time: &'static str,
    solver: &'static str,
    contact: &'static str,
    steps: u32,
}

const WAYS: [Way; 6] = [
    Way {
        name: "bdf2",
        time: r#"step = "5 ms""#,
        solver: r#"integrator = "bdf2""#,
        contact: "",
        steps: 40,
    },
    Way {
        name: "bdf2, cut",
        time: r#"step = "10 ms", shortest = "0.5 ms", strain_change = 0.02"#,
        solver: r#"integrator = "bdf2""#,
        contact: "",
        steps: 16,
    },
    Way {
        name: "euler, Newton, cut",
        time: r#"step = "5 ms", shortest = "1 ms""#,
        solver: "newton = 20",
        contact: "",
        steps: 30,
    },
    Way {
        name: "euler, damped edges",
        time: r#"step = "5 ms""#,
        solver: "",
        contact: "strain_change = 0.01",
        steps: 40,
    },
    Way {
        name: "newmark",
        time: r#"step = "0.2 ms""#,
        solver: r#"integrator = "newmark""#,
        contact: "",
        steps: 130,
    },
    Way {
        name: "central",
        time: r#"step = "0.2 ms""#,
        solver: r#"integrator = "central""#,
        contact: "",
        steps: 130,
    },
];

impl Way {
    fn world(&self) -> World {
        world(&self.text())
    }

    fn text(&self) -> String {
        let mut text = drape().replace(r#"step = "5 ms""#, self.time).replace(
            "thickness = \"4 mm\"",
            &format!("thickness = \"4 mm\"\n{}", self.contact),
        );
        if self.steps > 100 {
            // Short steps begin near the ball, falling.
            text = text
                .replace("0.22]", "0.208]\nvelocity = [0, 0, -2]")
                .replace("1000 N/m", "200 N/m");
        }
        format!("{text}[solver]\n{}\n", self.solver)
    }
}
