//! Helpers for validation cases of motion: cloth alone in the world, its modes, its energy and
//! momentum.

use glam::DVec3;
use weft_runtime::ScopeOptions;
use weft_runtime::comm::solo::Solo;
use weftwork::scene::Scene;
use weftwork::step::{Simulation, World};

use super::curve::Series;

/// The integrators, with their order.
pub const METHODS: [(&str, f64); 4] = [
    ("euler", 1.0),
    ("bdf2", 2.0),
    ("newmark", 2.0),
    ("central", 2.0),
];

/// A cloth without gravity and collisions. `cloth` are lines of its table, `material` of its
/// material's; `step` is in s.
pub fn world(method: &str, step: f64, cloth: &str, material: &str) -> World {
    let text = format!(
        "gravity = [0, 0, 0]\n\
         time = {{ step = {step:?}, end = 1000 }}\n\
         [contact]\nself_collision = false\n\
         [solver]\nintegrator = \"{method}\"\ntolerance = 1e-13\nmax_iterations = 100000\n\
         [[cloth]]\n{cloth}\n[cloth.material]\nstrain_limit = 10\n{material}\n",
    );
    let scene = Scene::parse(&text, None, &[]).unwrap_or_else(|e| panic!("{e}\n{text}"));
    World::build(&scene).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// Steps from the state that `start` returns for the rest positions: position and velocity of each
/// vertex. `each` sees every step.
pub fn run(
    world: &World,
    steps: usize,
    start: impl Fn(DVec3) -> (DVec3, DVec3),
    mut each: impl FnMut(&Simulation<'_>),
) {
    let mut comm = Solo::new();
    let mut s = Simulation::new(world, &comm, &ScopeOptions::default()).unwrap();
    let (x, v) = s.state_mut();
    for (x, v) in x.iter_mut().zip(v) {
        (*x, *v) = start(*x);
    }
    for _ in 0..steps {
        s.advance(&mut comm).unwrap();
        each(&s);
    }
}

/// How much of a mode, given by the displacement that is one of it, there is in positions and
/// velocities.
pub fn amplitude(world: &World, s: &Simulation<'_>, mode: impl Fn(DVec3) -> DVec3) -> [f64; 2] {
    let model = world.model();
    let (mut x, mut v, mut norm) = (0.0, 0.0, 0.0);
    for (i, rest) in model.start().iter().enumerate() {
        let shape = mode(*rest) * model.masses()[i];
        x += shape.dot(s.positions()[i] - *rest);
        v += shape.dot(s.velocities()[i]);
        norm += shape.dot(mode(*rest));
    }
    [x / norm, v / norm]
}

/// Linear and angular momentum.
pub fn momenta(world: &World, s: &Simulation<'_>) -> [DVec3; 2] {
    let of = world.model().masses().iter().zip(s.positions());
    of.zip(s.velocities())
        .fold([DVec3::ZERO; 2], |[p, l], ((&m, x), v)| {
            [p + *v * m, l + x.cross(*v * m)]
        })
}

/// Kinetic and elastic energy in J.
pub fn energy(world: &World, s: &Simulation<'_>) -> f64 {
    let (model, x) = (world.model(), s.positions());
    let moving = model.masses().iter().zip(s.velocities());
    let kinetic: f64 = moving.map(|(m, v)| 0.5 * m * v.length_squared()).sum();
    let triangles = model.triangles().iter().zip(model.membranes());
    let stretch: f64 = triangles
        .map(|(t, e)| e.energy(&e.deform(t.map(|v| x[v as usize])).unwrap()))
        .sum();
    let at = |v: u32| x[v as usize];
    let bend: f64 = model
        .quadratic()
        .hinges
        .iter()
        .map(|h| h.energy(h.vertices.map(at)))
        .sum();
    kinetic + stretch + bend
}

/// The slope of an error over what is halved each time, from the last two.
pub fn order(errors: &[f64]) -> f64 {
    let [.., coarse, fine] = errors else {
        panic!("two errors make a slope")
    };
    (coarse / fine).log2()
}

/// Orders are held to this.
pub const SLACK: f64 = 0.15;

/// The errors of every method by step, with lines of the orders they should have; and the slopes
/// found.
pub fn orders(errors: impl Fn(&'static str) -> Vec<[f64; 2]>) -> (Vec<Series>, String) {
    let mut series = Vec::new();
    let mut slopes = Vec::new();
    for (method, known) in METHODS {
        let points = errors(method);
        let slope = order(&points.iter().map(|p| p[1]).collect::<Vec<_>>());
        slopes.push(format!("{method} {slope:.2}"));
        let [first, .., last] = points[..] else {
            continue;
        };
        // One line for each order.
        if method == "euler" || method == "bdf2" {
            let line = [first[0], last[0]].map(|h| [h, last[1] * (h / last[0]).powf(known)]);
            series.push(Series::known(format!("order {known}"), line));
        }
        series.push(Series::measured(method, points));
    }
    (series, format!("slopes: {}", slopes.join(", ")))
}
