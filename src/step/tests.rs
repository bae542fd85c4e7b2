//! Physics with known answers, and the promise, on small scenes.

use std::time::Duration;

use glam::DVec3;
use weft_partition::Ownership;
use weft_runtime::comm::solo::Solo;
use weft_runtime::comm::threads::launch;
use weft_runtime::comm::{Comm, all_reduce};
use weft_runtime::{Interval, Policy, ScopeOptions, Split};

use super::detect::detect;
use super::placing::Placing;
use super::{Simulation, StepError, World};
use crate::collide::{Contact, Snapshot, Volumes, brute_force};
use crate::scene::Scene;
use crate::solve::Rows;
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

pub(super) fn run<'w>(
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

fn energy(world: &World, s: &Simulation<'_>) -> f64 {
    let model = world.model();
    let x = s.positions();
    let kinetic: f64 = model
        .masses()
        .iter()
        .zip(s.velocities())
        .map(|(m, v)| 0.5 * m * v.length_squared())
        .sum();
    let stretch: f64 = model
        .triangles()
        .iter()
        .zip(model.membranes())
        .map(|(t, e)| e.energy(&e.deform(t.map(|v| x[v as usize])).unwrap()))
        .sum();
    let bend: f64 = model
        .hinges()
        .iter()
        .map(|h| h.energy(h.vertices.map(|v| x[v as usize])))
        .sum();
    kinetic + stretch + bend
}

/// The matrix times any vector, and the right-hand side, of isotropic and of woven cloth.
#[test]
fn a_system_is_what_its_elements_say_one_by_one() {
    for woven in ["", "shear = \"40 N/m\"\ndamping_mass = \"0.3 1/s\""] {
        let text = sheet(9, "", woven).replace("\"0 s\"", "\"2 ms\"");
        let world = world(&text);
        let (model, h) = (world.model(), 0.005);
        let mut simulation =
            Simulation::new(&world, &Solo::new(), &ScopeOptions::default()).unwrap();
        let wave = |p: &DVec3, by: f64| {
            let (a, b) = ((7.0 * p.x + by).sin(), (5.0 * p.y - by).cos());
            DVec3::new(a * b, a - b, 0.7 * b)
        };
        let (x, v) = simulation.state_mut();
        for (x, v) in x.iter_mut().zip(v) {
            (*x, *v) = (*x + wave(x, 0.3) * 0.05, wave(x, 0.9));
        }
        let (x, v) = (
            simulation.positions().to_vec(),
            simulation.velocities().to_vec(),
        );
        let w: Vec<DVec3> = x.iter().map(|x| wave(x, 2.0)).collect();

        // All but masses.
        let pull = |w: &[DVec3]| {
            let mut pulled = vec![DVec3::ZERO; w.len()];
            for (index, (t, element)) in model.triangles().iter().zip(model.membranes()).enumerate()
            {
                let t = t.map(|v| v as usize);
                let stiffness = element.stiffness(&element.deform(t.map(|v| x[v])).unwrap());
                let [stretch, shear] = model.triangle_damping(index);
                let elastic = stiffness.scaled(h + stretch, h + shear);
                for (i, row) in t.into_iter().enumerate() {
                    for (j, column) in t.into_iter().enumerate() {
                        let block = elastic.elastic(i, j) + stiffness.geometric(i, j) * h;
                        pulled[row] += block * w[column] * h;
                    }
                }
            }
            for hinge in model.hinges() {
                let vertices = hinge.vertices.map(|v| v as usize);
                let bent = hinge.curvature(vertices.map(|v| w[v]));
                for (row, weight) in vertices.into_iter().zip(hinge.weights) {
                    let damping = model.bending_damping(row);
                    pulled[row] += bent * (weight * h * (h + damping));
                }
            }
            pulled
        };
        let (of_w, of_v) = (pull(&w), pull(&v));
        let forces = model.elastic_forces(&x).unwrap();
        let gravity = world.scene().gravity;
        let system = simulation.free_system().unwrap();
        let mut product = vec![DVec3::ZERO; w.len()];
        system.matrix.multiply(&w, &mut product, Rows::All);
        let size = of_w.iter().map(|of_w| of_w.length()).fold(0.0, f64::max);
        for (i, &w) in w.iter().enumerate() {
            let (mass, drag) = (model.masses()[i], model.mass_damping(i));
            let expected = w * (mass * (1.0 + h * drag)) + of_w[i];
            assert!((product[i] - expected).length() < 1e-11 * size, "row {i}");
            let expected = forces[i] * h - of_v[i] + (gravity - v[i] * drag) * (mass * h);
            assert!(
                (system.rhs[i] - expected).length() < 1e-11 * size,
                "row {i}"
            );
        }
    }
}

/// v = g n h and drop = g h² n (n + 1) / 2 for implicit Euler, to rounding.
#[test]
fn free_fall_is_exact() {
    // Ten thousand times the energy of a light sheet, for every solve may leave 1e-12 √J of it.
    let heavy = sheet(9, "", "[solver]\ntolerance = 1e-13")
        .replace("0.15 kg/m2", "1500 kg/m2")
        .replace("1000 N/m", "1e7 N/m")
        .replace("1e-5 N m", "0.1 N m");
    let world = world(&heavy);
    let (g, h, n) = (9.81, 0.005, 100.0);
    let s = run(&world, 100, |_| {});
    for (x, rest) in s.positions().iter().zip(world.model().rest()) {
        let fallen = DVec3::new(0.0, 0.0, -0.5 * g * h * h * n * (n + 1.0));
        assert!((*x - *rest - fallen).length() < 1e-12, "{}", *x - *rest);
    }
    for v in s.velocities() {
        assert!(
            (*v - DVec3::new(0.0, 0.0, -g * h * n)).length() < 1e-11,
            "{}",
            v.z + g * h * n
        );
    }
}

/// A crumpled, spinning sheet on its own for 0.75 s in steps of so many ms: how much of its linear and
/// angular momentum is lost, as shares. Its energy must never grow.
fn losses_of_a_closed_system(step_ms: f64) -> (f64, f64) {
    let text = sheet(
        13,
        "",
        "[solver]\ntolerance = 1e-10\n[contact]\nself_collision = false\n",
    );
    let text = text.replace("time =", "gravity = [0, 0, 0]\ntime =");
    let world = world(&text.replace("5 ms", &format!("{step_ms} ms")));
    let mut comm = Solo::new();
    let mut s = Simulation::new(&world, &comm, &ScopeOptions::default()).unwrap();
    let (x, v) = s.state_mut();
    for (x, v) in x.iter_mut().zip(v) {
        *v = DVec3::new(0.3, 0.1, 0.5 * (5.0 * x.x).sin()) + DVec3::Z.cross(*x) * 2.0;
        x.z += 0.05 * (7.0 * x.x).sin() * (4.0 * x.y).cos();
        x.x *= 1.02;
    }
    let (linear, angular) = momentum(&world, &s);
    let mut last = energy(&world, &s);
    for _ in 0..(750.0 / step_ms) as u32 {
        s.advance(&mut comm).unwrap();
        let now = energy(&world, &s);
        assert!(
            now <= last * (1.0 + 1e-9),
            "energy rose from {last} to {now}"
        );
        last = now;
    }
    let (linear_after, angular_after) = momentum(&world, &s);
    (
        (linear_after - linear).length() / linear.length(),
        (angular_after - angular).length() / angular.length(),
    )
}

/// Linear momentum is kept to the solver's tolerance; angular momentum, which implicit Euler damps, to the
/// order of the step.
#[test]
fn a_closed_system_keeps_momentum_and_never_gains_energy() {
    let (linear, coarse) = losses_of_a_closed_system(5.0);
    assert!(linear < 1e-8, "{linear}");
    let (linear, fine) = losses_of_a_closed_system(1.25);
    assert!(linear < 1e-8, "{linear}");
    assert!(coarse < 0.1 && fine < 0.35 * coarse, "{coarse} {fine}");
}

/// A strip pulled to a strain e: force per width E h e, lateral strain −ν e.
#[test]
fn a_stretched_strip_pulls_and_narrows_as_theory_says() {
    // 4 m long, so that the ends, where it cannot narrow, matter little in the middle.
    let text = r#"
        gravity = [0, 0, 0]
        time = { step = "50 ms", end = "1 s" }
        [[cloth]]
        grid = { size = ["4 m", "0.5 m"], vertices = [65, 9] }
        pins = [{ min = [-2.01, -1, -1], max = [-1.99, 1, 1] }, { min = [1.99, -1, -1], max = [2.01, 1, 1] }]
        [cloth.material]
        density = "0.15 kg/m2"
        stretch = "1000 N/m"
        poisson = 0.3
        bending = "1e-5 N m"
        damping_stiffness = "50 ms"
        [solver]
        tolerance = 1e-10
        [contact]
        self_collision = false
    "#;
    let world = world(text);
    let strain = 0.02;
    let mut comm = Solo::new();
    let mut s = Simulation::new(&world, &comm, &ScopeOptions::default()).unwrap();
    s.state_mut().0.iter_mut().for_each(|x| x.x *= 1.0 + strain);
    for _ in 0..400 {
        s.advance(&mut comm).unwrap();
    }
    let middle: Vec<f64> = world
        .model()
        .rest()
        .iter()
        .zip(s.positions())
        .filter(|(rest, _)| rest.x.abs() < 1e-9)
        .map(|(_, x)| x.y)
        .collect();
    let width = middle.iter().fold(f64::MIN, |a, &b| a.max(b))
        - middle.iter().fold(f64::MAX, |a, &b| a.min(b));
    let lateral = width / 0.5 - 1.0;
    assert!(
        (lateral + 0.3 * strain).abs() < 0.02 * 0.3 * strain,
        "lateral strain {lateral}"
    );
    // Clamped ends stiffen the strip a little; in its middle the law is that of free sides.
    let model = world.model();
    let mut pull = 0.0;
    for (t, e) in model.triangles().iter().zip(model.membranes()) {
        let forces = e.forces(&e.deform(t.map(|v| s.positions()[v as usize])).unwrap());
        for (v, f) in t.iter().zip(forces) {
            if model.rest()[*v as usize].x < -1.99 {
                pull += f.x;
            }
        }
    }
    let expected = 1000.0 * strain * 0.5;
    assert!(
        (pull / expected - 1.0).abs() < 0.03,
        "{pull} N, not {expected} N"
    );
}

/// A sheet hung by its upper edge lengthens by ρ g L² / 2 E h (ν = 0).
#[test]
fn a_hanging_sheet_lengthens_by_its_weight() {
    let text = r#"
        time = { step = "20 ms", end = "1 s" }
        [[cloth]]
        grid = { size = "1 m", vertices = 21 }
        rotation = ["90 deg", 0, 0]
        pins = [{ min = [-1, -1, 0.499], max = [1, 1, 0.501] }]
        [cloth.material]
        density = "0.15 kg/m2"
        stretch = "1000 N/m"
        poisson = 0
        bending = "1e-5 N m"
        damping_stiffness = "20 ms"
        [solver]
        tolerance = 1e-10
        [contact]
        self_collision = false
    "#;
    let world = world(text);
    let s = run(&world, 1500, |_| {});
    let lowest: Vec<f64> = world
        .model()
        .rest()
        .iter()
        .zip(s.positions())
        .filter(|(rest, _)| rest.z < -0.499)
        .map(|(rest, x)| rest.z - x.z)
        .collect();
    let mean = lowest.iter().sum::<f64>() / lowest.len() as f64;
    let expected = 0.15 * 9.81 / (2.0 * 1000.0);
    assert!(
        (mean / expected - 1.0).abs() < 0.01,
        "{mean} m, not {expected} m"
    );
}

/// Pinned vertices do not move by a bit.
#[test]
fn pins_hold_to_the_bit() {
    let pins = "pins = [{ nearest = [-0.5, -0.5, 0] }, { nearest = [0.5, -0.5, 0] }]";
    let world = world(&sheet(9, pins, ""));
    let s = run(&world, 60, |_| {});
    let mut held = 0;
    for (v, &pinned) in world.pinned().iter().enumerate() {
        if pinned {
            held += 1;
            assert_eq!(s.positions()[v], world.model().rest()[v]);
        }
    }
    assert_eq!(held, 2);
    assert!(s.positions().iter().any(|x| x.z < -0.05));
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

#[test]
fn nothing_enters_a_body_and_cloth_does_not_stretch_much() {
    let world = world(&drape());
    let s = run(&world, 120, |s| {
        let deepest = s
            .positions()
            .iter()
            .map(|&x| world.depth(x, s.time()))
            .fold(f64::MIN, f64::max);
        assert!(deepest < 0.0005, "step {}: {deepest} m deep", s.step());
        let (x, model) = (s.positions(), world.model());
        let strains = model
            .triangles()
            .iter()
            .zip(model.membranes())
            .map(|(t, e)| {
                let deformation = e.deform(t.map(|v| x[v as usize]));
                deformation.map_or(f64::INFINITY, |d| d.strain())
            });
        let strain = strains.fold(0.0, f64::max);
        assert!(strain < 0.12, "step {}: {strain}", s.step());
    });
    // It lies: on the floor at the rim, over the ball in the middle.
    let highest = s.positions().iter().map(|x| x.z).fold(f64::MIN, f64::max);
    let lowest = s.positions().iter().map(|x| x.z).fold(f64::MAX, f64::min);
    assert!(
        (0.19..0.22).contains(&highest) && (0.0..0.01).contains(&lowest),
        "{highest} {lowest}"
    );
}

/// The promise: positions and velocities equal to the bit, whatever the ranks, workers and schedule.
#[test]
fn the_state_does_not_depend_on_ranks_workers_or_stealing() {
    the_state_is_the_same_everywhere(&world(&drape()));
}

#[test]
fn the_state_does_not_depend_on_ranks_with_patches_swept_either() {
    let text = drape() + "[solver]\npreconditioner = \"patch-ssor\"\n";
    the_state_is_the_same_everywhere(&world(&text));
}

#[test]
fn the_state_of_woven_cloth_in_wind_does_not_depend_on_ranks_either() {
    let membrane = "stretch = [1000, 600]\nshear = 60\ndamping_shear = \"2 ms\"\ndrag_normal = 1.2\n\
                    drag_tangential = 0.1";
    let text = drape()
        .replace("stretch = \"1000 N/m\"", membrane)
        .replace("bending = \"1e-5 N m\"", "bending = [2e-5, 1e-5]");
    the_state_is_the_same_everywhere(&world(&(text + "[air]\nwind = [1, 0, 0]\n")));
}

#[test]
fn the_state_of_sprung_and_folding_cloth_does_not_depend_on_ranks_either() {
    let text = drape()
        .replace(
            "stretch = \"1000 N/m\"",
            "model = \"springs\"\nstretch = 500",
        )
        .replace("poisson = 0.3", "bending_model = \"dihedral\"");
    the_state_is_the_same_everywhere(&world(&text));
    let text = text.replace("\"dihedral\"", "\"springs\"");
    the_state_is_the_same_everywhere(&world(&text));
}

fn the_state_is_the_same_everywhere(world: &World) {
    let expected = state_after(world, 60, &mut Solo::new(), &ScopeOptions::default());
    for (ranks, workers, steal, seed) in [
        (2, 1, true, 1),
        (3, 2, true, 2),
        (7, 1, true, 3),
        (2, 3, false, 4),
        (1, 3, true, 5),
    ] {
        let options = ScopeOptions {
            workers,
            policy: Policy {
                steal,
                ..Policy::default()
            },
            seed,
            ..ScopeOptions::default()
        };
        for got in launch(ranks, |comm| state_after(world, 60, comm, &options)).unwrap() {
            assert!(
                got == expected,
                "{ranks} ranks, {workers} workers, stealing {steal}"
            );
        }
    }
}

/// On several ranks the next step's system is there when a step ends; whoever changes the state then, or looks at another system, gets
/// what one rank gets, which assembles it later.
#[test]
fn a_system_that_was_assembled_ahead_is_given_up_with_its_state() {
    let world = world(&drape());
    let disturbed = |comm: &mut dyn Comm| {
        let mut s = Simulation::new(&world, &*comm, &ScopeOptions::default()).unwrap();
        take(&mut s, 5, comm);
        let (x, v) = s.state_mut();
        for (i, (x, v)) in x.iter_mut().zip(v).enumerate() {
            x.y += 1e-4 * (i % 5) as f64;
            v.x += 0.1 * (i % 7) as f64;
        }
        take(&mut s, 5, comm);
        s.free_system().unwrap();
        let seen = take(&mut s, 5, comm);
        bits(&s, seen)
    };
    let alone = disturbed(&mut Solo::new());
    for got in launch(3, disturbed).unwrap() {
        assert!(got == alone);
    }
}

/// What is kept from system to system is that of this one's times.
#[test]
fn a_system_does_not_depend_on_the_ones_before() {
    let world = world(&sheet(7, "", ""));
    let rows = world.model().rest().len();
    let x: Vec<DVec3> = (0..rows)
        .map(|i| DVec3::splat(i as f64).map(f64::sin))
        .collect();
    let product = |s: &mut Simulation<'_>| {
        let system = s.free_system().unwrap();
        let mut y = vec![DVec3::ZERO; rows];
        system.matrix.multiply(&x, &mut y, Rows::All);
        (y, system.rhs.to_vec())
    };
    let options = ScopeOptions::default();
    let new = || Simulation::new(&world, &Solo::new(), &options).unwrap();
    let expected = product(&mut new());
    let mut other = new();
    for times in [(2e-3, 2e-3), (2e-3, 5e-3), (5e-3, 2e-3)] {
        other.load_local();
        other.assemble_here(times).unwrap();
        let mut y = vec![DVec3::ZERO; rows];
        other.matrix.multiply(&x, &mut y, Rows::All);
        assert_ne!(y, expected.0);
        assert_eq!(product(&mut other), expected);
    }
}

/// Bits of positions and velocities, and what a test must not miss.
type Bits = (Vec<u64>, Vec<u64>, Seen);

/// How often there was something: what every rank counts alike, whether bodies pushed at all, and rows that pushed on all ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Seen {
    halvings: u32,
    systems: u32,
    constrained: bool,
    pushed: u64,
    limited: u64,
}

fn state_after(world: &World, steps: u32, comm: &mut dyn Comm, options: &ScopeOptions) -> Bits {
    let mut s = Simulation::new(world, &*comm, options).unwrap();
    let seen = take(&mut s, steps, comm);
    bits(&s, seen)
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

/// A way to integrate: what it adds to [`drape`], and so many steps until there is contact of every kind.
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
        world(&format!("{text}[solver]\n{}\n", self.solver))
    }
}

#[test]
fn no_integrator_depends_on_ranks() {
    for way in &WAYS {
        let world = way.world();
        let options = ScopeOptions::default();
        let expected = state_after(&world, way.steps, &mut Solo::new(), &options);
        let seen = expected.2;
        assert!(
            seen.constrained && seen.pushed > 0,
            "{}: no contact",
            way.name
        );
        assert_eq!(
            seen.halvings > 0,
            way.name.contains("cut"),
            "{}: {seen:?}",
            way.name
        );
        match way.name {
            "euler, Newton, cut" => assert!(seen.systems > way.steps, "{seen:?}"),
            "newmark" => assert_eq!(seen.systems, 2 * way.steps),
            "central" | "bdf2" => assert_eq!(seen.systems, way.steps),
            _ => {}
        }
        for (ranks, workers) in [(3, 1), (2, 2)] {
            let options = ScopeOptions {
                workers,
                ..ScopeOptions::default()
            };
            for got in launch(ranks, |comm| state_after(&world, way.steps, comm, &options)).unwrap()
            {
                assert!(got == expected, "{}: {ranks} ranks {:?}", way.name, got.2);
            }
        }
    }
}

/// All that the next step depends on is in the state, whoever goes on from it.
#[test]
fn every_integrator_goes_on_from_its_state_on_other_ranks() {
    for way in &WAYS {
        let world = way.world();
        let options = ScopeOptions::default();
        let half = way.steps / 2 + 3;
        let mut comm = Solo::new();
        let mut s = Simulation::new(&world, &comm, &options).unwrap();
        take(&mut s, half, &mut comm);
        let state = s.gather_state(&mut comm).unwrap().unwrap();
        assert_eq!(state.past.is_some(), way.name.contains("bdf2"));
        take(&mut s, way.steps - half, &mut comm);
        let expected = bits(&s, Seen::default());
        for got in launch(3, |comm| {
            let mut s = Simulation::new(&world, comm, &options).unwrap();
            s.restore(&state).unwrap();
            take(&mut s, way.steps - half, comm);
            let again = s.gather_state(comm).unwrap();
            (bits(&s, Seen::default()), again)
        })
        .unwrap()
        {
            assert!(got.0 == expected, "{}", way.name);
            if let Some(again) = got.1 {
                assert_eq!(
                    again,
                    s.gather_state(&mut comm).unwrap().unwrap(),
                    "{}",
                    way.name
                );
            }
        }
    }
}

#[test]
fn a_step_that_blows_up_names_step_and_vertex() {
    let world = world(&sheet(9, "", ""));
    let mut comm = Solo::new();
    let mut s = Simulation::new(&world, &comm, &ScopeOptions::default()).unwrap();
    s.advance(&mut comm).unwrap();
    s.state_mut().1[7] = DVec3::new(0.0, f64::INFINITY, 0.0);
    let text = s.advance(&mut comm).unwrap_err().to_string();
    assert!(text.contains("step 2") && text.contains("vertex"), "{text}");
}

#[test]
fn more_ranks_than_patches_are_refused() {
    let world = world(&sheet(9, "", ""));
    let errors = launch(3, |comm| {
        Simulation::new(&world, comm, &ScopeOptions::default())
            .unwrap_err()
            .to_string()
    })
    .unwrap();
    assert!(errors[0].contains("patches"), "{}", errors[0]);
}

/// What all ranks find together, through trees, tasks, splits and thieves, is what testing every pair of
/// triangles finds; and each pair of features once.
#[test]
fn ranks_that_steal_find_what_brute_force_finds() {
    let world = world(&sheet(
        24,
        "center = [0, 0, 0.3]",
        "[partition]\npatches = 16\n[[body]]\nshape = \"sphere\"\ncenter = [0, 0, 0]\nradius = 0.2\n\
         edge = \"5 cm\"\n[contact]\nthickness = \"8 mm\"",
    ));
    let rest = world.model().rest();
    // Crumpled into a ball that overlaps the sphere.
    let fold = |p: &DVec3| {
        DVec3::new(
            (9.0 * p.x).sin(),
            (8.0 * p.y).sin(),
            (7.0 * (p.x + p.y)).cos(),
        ) * 0.15
    };
    let x: Vec<DVec3> = rest.iter().map(fold).collect();
    let v: Vec<DVec3> = rest.iter().map(|p| DVec3::new(p.y, -p.x, 0.5)).collect();
    let geometry = world.geometry();
    let mut volumes = Volumes::default();
    let expected = brute_force(&Snapshot::new(&geometry, &mut volumes, &x, &v, 0.0, 0.005));
    assert!(expected.len() > 1000, "{}", expected.len());
    // When threads of ranks get a core is the system's affair: something moves in some of these runs, not in each.
    let (mut splits, mut moved) = (0, 0);
    for (ranks, seed) in [(1, 0), (2, 1), (3, 2), (7, 3), (16, 4)] {
        for split in [
            Split::OLDEST,
            Split::EVERY_OTHER,
            Split::HALF,
            Split::WEIGHT,
        ] {
            let options = ScopeOptions {
                slice: 16,
                policy: Policy {
                    split,
                    low_water: 4,
                    interval: Interval::Fixed(Duration::ZERO),
                    ..Policy::FORECAST
                },
                seed,
                workers: 1 + ranks % 2,
                ..ScopeOptions::default()
            };
            let found = launch(ranks, |comm| {
                let ownership = Ownership::new(world.tree(), ranks).unwrap();
                let me = comm.rank().index();
                let mut volumes = Volumes::default();
                let team = Team::new(options.workers).unwrap();
                let mut placing = Placing::default();
                // First tests are forked by owners, then by what they have cost.
                [(); 2].map(|()| {
                    let mut snapshot = Snapshot::new(&geometry, &mut volumes, &x, &v, 0.0, 0.005);
                    if ranks > 1 {
                        snapshot = snapshot.in_pieces();
                    }
                    let both = (&snapshot, &geometry);
                    let placing = (&ownership, &mut placing);
                    let (contacts, report, _) =
                        detect(comm, both, placing, (&options, &team), None).unwrap();
                    // Contacts go to all owners of their vertices; the first vertex's counts.
                    let counted = contacts
                        .all()
                        .filter(|c| ownership.rank_of_vertex(c.vertices[0] as usize) == me);
                    (
                        counted.copied().collect::<Vec<_>>(),
                        report.splits,
                        report.tasks_in,
                    )
                })
            })
            .unwrap();
            for time in [0, 1] {
                let found = found.iter().map(|both| &both[time]);
                splits += found.clone().map(|f| f.1).sum::<u64>();
                moved += found.clone().map(|f| f.2).sum::<u64>();
                let mut all: Vec<Contact> = found.clone().flat_map(|f| f.0.clone()).collect();
                all.sort_unstable_by_key(|c| c.id);
                assert_eq!(all, expected, "{ranks} ranks, {split:?}");
            }
        }
    }
    assert!(splits > 0 && moved > 0, "{splits} splits, {moved} moved");
}

/// Momentum before and after a step in which a corner is torn away, and the largest strain then.
fn torn(strain_limit: f64) -> (DVec3, DVec3, f64) {
    let limit = format!("bending = \"1e-5 N m\"\nstrain_limit = {strain_limit}");
    let text = sheet(11, "", "[solver]\ntolerance = 1e-10")
        .replace("time =", "gravity = [0, 0, 0]\ntime =");
    let world = world(&text.replace("bending = \"1e-5 N m\"", &limit));
    let mut comm = Solo::new();
    let mut s = Simulation::new(&world, &comm, &ScopeOptions::default()).unwrap();
    let (x, v) = s.state_mut();
    let corner = x.iter().position(|x| x.x + x.y < -0.99).unwrap();
    v[corner] = DVec3::new(-60.0, -40.0, 20.0);
    let before = momentum(&world, &s).0;
    s.advance(&mut comm).unwrap();
    let after = momentum(&world, &s).0;
    (before, after, s.largest_strain())
}

#[test]
fn a_stretched_triangle_is_brought_to_its_limit_and_no_momentum_appears() {
    let (_, _, unlimited) = torn(1e3);
    assert!(unlimited > 0.2, "{unlimited}");
    let (before, after, strain) = torn(0.1);
    assert!(strain < 0.11, "{strain}");
    assert!(
        (after - before).length() < 1e-7 * before.length(),
        "{before} {after}"
    );
}

/// The sheet with a corner that is torn away: how far its edges change their length in one step of 5 ms, as a share, with its momentum
/// before and after.
fn torn_edges(contact: &str) -> (f64, DVec3, DVec3, u64) {
    let text = sheet(
        11,
        "",
        &format!("[solver]\ntolerance = 1e-10\n[contact]\niterations = 1000\n{contact}"),
    )
    .replace("time =", "gravity = [0, 0, 0]\ntime =")
    .replace(
        "bending = \"1e-5 N m\"",
        "bending = \"1e-5 N m\"\nstrain_limit = 10",
    )
    .replace("1000 N/m", "1 N/m");
    let world = world(&text);
    let mut comm = Solo::new();
    let mut s = Simulation::new(&world, &comm, &ScopeOptions::default()).unwrap();
    let (x, v) = s.state_mut();
    let corner = x.iter().position(|x| x.x + x.y < -0.99).unwrap();
    v[corner] = DVec3::new(-6.0, -4.5, 0.0);
    let before = momentum(&world, &s).0;
    let report = s.advance(&mut comm).unwrap();
    let (rest, x) = (world.model().rest(), s.positions());
    let changes = world
        .model()
        .triangles()
        .iter()
        .flat_map(|&[a, b, c]| [[a, b], [b, c], [c, a]]);
    let changes = changes.map(|ends| {
        let [a, b] = ends.map(|end| end as usize);
        ((x[a] - x[b]).length() / (rest[a] - rest[b]).length() - 1.0).abs()
    });
    (
        changes.fold(0.0, f64::max),
        before,
        momentum(&world, &s).0,
        report.rate_limited,
    )
}

#[test]
fn edges_change_no_faster_than_allowed() {
    let (free, _, _, none) = torn_edges("");
    assert!(free > 0.15 && none == 0, "{free}");
    let (held, before, after, pushed) = torn_edges("strain_change = 0.1");
    assert!(held < 0.12 && pushed > 0, "{held}");
    assert!(
        (after - before).length() < 1e-7 * before.length(),
        "{before} {after}"
    );
}

/// A collapsing triangle, and what a step does that may be cut.
#[test]
fn a_step_that_fails_is_cut_and_ends_where_it_would_have_ended() {
    let text = |time: &str| {
        sheet(9, "", "[contact]\nself_collision = false")
            .replace("time =", "gravity = [0, 0, 0]\ntime =")
            .replace("1000 N/m", "1 N/m")
            .replace(r#"step = "5 ms""#, time)
    };
    // Pressed together by a third within a step of 20 ms.
    let press = |world: &World| {
        let mut comm = Solo::new();
        let mut s = Simulation::new(world, &comm, &ScopeOptions::default()).unwrap();
        let (x, v) = s.state_mut();
        for (x, v) in x.iter().zip(v) {
            v.x = -x.x * 15.0;
        }
        let report = s.advance(&mut comm).unwrap();
        (report, s.time(), s.step())
    };
    let (whole, ..) = press(&world(&text(r#"step = "20 ms""#)));
    assert_eq!((whole.parts, whole.halvings), (1, 0));
    let (cut, time, step) = press(&world(&text(
        r#"step = "20 ms", shortest = "1 ms", strain_change = 0.1"#,
    )));
    assert!(
        cut.parts > 1 && cut.halvings > 0 && cut.rough == 0,
        "{cut:?}"
    );
    assert_eq!((time, step), (0.02, 1));
    let why = cut.halved_because.unwrap();
    for word in ["step 1", "vertex", "patch", "cloth0", "time.strain_change"] {
        assert!(why.contains(word), "{why}");
    }
    let (rough, ..) = press(&world(&text(
        r#"step = "20 ms", shortest = "10 ms", strain_change = 0.001"#,
    )));
    assert!(rough.rough > 0 && rough.shortest == 0.01, "{rough:?}");
}

#[test]
fn a_triangle_that_has_collapsed_is_named_alike_on_all_ranks() {
    let text = sheet(24, "", "[contact]\nself_collision = false");
    let world = world(&text);
    let fail = |comm: &mut dyn Comm| {
        let mut s = Simulation::new(&world, &*comm, &ScopeOptions::default()).unwrap();
        let (x, _) = s.state_mut();
        // Two triangles of different ranks, each drawn to a line.
        for t in [7, world.model().triangles().len() - 3] {
            let [a, b, c] = world.model().triangles()[t].map(|v| v as usize);
            x[a] = 0.5 * (x[b] + x[c]);
        }
        s.advance(comm).unwrap_err()
    };
    let alone = fail(&mut Solo::new());
    let StepError::Collapsed { step: 1, ref at } = alone else {
        panic!("{alone}")
    };
    assert!(at.cloth == "cloth0", "{at}");
    // Who is told by another first has no more to say.
    let errors = launch(3, fail).unwrap();
    let named: Vec<_> = errors.iter().filter(|error| !error.is_echo()).collect();
    assert!(!named.is_empty());
    for error in named {
        assert_eq!(error.to_string(), alone.to_string());
    }
}

/// A sheet falls flat on a floor while it drifts. It lands, neither bounces nor sinks, and slides as far as Coulomb's law says: at the impact friction
/// takes its coefficient times the speed of landing, then its coefficient times gravity.
#[test]
fn a_sheet_lands_and_slides_to_rest_whatever_the_integrator() {
    for integrator in ["euler", "bdf2", "newmark", "central"] {
        let text = sheet(
            9,
            "center = [0, 0, 0.024]\nvelocity = [0.3, 0, 0]",
            &format!(
                "[[body]]\nshape = \"plane\"\nsurface = \"analytic\"\nfriction = 0.2\n[contact]\n\
                 thickness = \"4 mm\"\n[solver]\nintegrator = \"{integrator}\"\n"
            ),
        );
        let text = text
            .replace("1000 N/m", "100 N/m")
            .replace(r#"step = "5 ms""#, r#"step = "2 ms""#);
        let world = world(&text);
        let s = run(&world, 200, |s| {
            let lowest = s.positions().iter().map(|x| x.z).fold(f64::MAX, f64::min);
            assert!(lowest > 0.004 - 1e-9, "{integrator}: {lowest}");
        });
        let highest = s.positions().iter().map(|x| x.z).fold(f64::MIN, f64::max);
        assert!(highest < 0.0042, "{integrator}: {highest}");
        let fastest = (s.velocities().iter())
            .map(|v| v.length())
            .fold(0.0, f64::max);
        assert!(fastest < 0.011, "{integrator}: {fastest}");
        let landing = (2.0 * 9.81 * 0.02_f64).sqrt();
        let after = 0.3 - 0.2 * landing;
        let known = 0.3 * landing / 9.81 + after * after / (2.0 * 0.2 * 9.81);
        let rest = world.model().rest();
        let moved = s.positions().iter().zip(rest).map(|(x, rest)| x.x - rest.x);
        let moved = moved.sum::<f64>() / rest.len() as f64;
        assert!(
            (moved / known - 1.0).abs() < 0.05,
            "{integrator}: {moved} not {known}"
        );
    }
}
