//! Newton's method meets the equations of a step however far that goes, as one linear solve does
//! not: a flap swings by up to 0.8 rad in a step, and a sheet falls about its clamp in long steps.
//!
//! **The flap** is one triangle held by two corners, of height H, with ν = 0, so that its third
//! corner is a mass `m` on a spring that turns freely: a pull `(A E/H)(r/H − 1)` at the distance r.
//! A step of implicit Euler minimises `½ m |x − y|² + τ² U(x)` with `y = x̂ + τ v̂ + τ² g`, so that
//! x lies in the direction of y and, the pull being linear,
//!
//! `r = (|y| + c H)/(1 + c)`, `c = τ² A E/(m H²) = 3 τ² E/(ρ H²)`.
//!
//! Backward differences are the same with their τ, x̂ and v̂. Linearised once, the flap goes along
//! its tangent and gets longer.
//!
//! **The sheet** begins each step at rest, so that the first residual is that of forces where it
//! is; the residual at the end is summed from forces alone, without any matrix.
//!
//! Sources: implicit Euler as a minimum, Liu, Bargteil, O'Brien & Kavan 2013, Fast simulation of
//! mass-spring systems; backward differences, Hairer, Nørsett & Wanner, Solving Ordinary
//! Differential Equations I, § III.1.

use glam::DVec3;
use weft_runtime::ScopeOptions;
use weft_runtime::comm::solo::Solo;
use weftwork::mesh::TriMesh;
use weftwork::step::{Simulation, World};

use super::curve::{Axis, Curve, Series, percent};
use super::rig::{Rig, forces, vertices};

const DENSITY: f64 = 0.15;
const STIFFNESS: f64 = 1000.0;
const HEIGHT: f64 = 0.1;
const STEP: f64 = 0.05;
const STEPS: usize = 40;
/// Steps that are drawn.
const DRAWN: usize = 8;
const GRAVITY: DVec3 = DVec3::new(0.0, 0.0, -9.81);
/// The speed with which the flap is thrown down from level, in m/s: through half a radian in the
/// first step.
const SPEED: f64 = 1.5;

/// Settings of the solver. A residual of 10⁻¹⁰ of the first, which is that of a stiff flap about to
/// be stretched, leaves the corner off by less than 10⁻⁸ of the height.
const TIGHT: &str = "newton = 100\nnewton_tolerance = 1e-10";
const ONCE: &str = "newton = 1";

/// The sheet: a step in s, and damping of its mass in 1/s.
const SHEET_STEP: f64 = 0.05;
const DAMPING: f64 = 2.0;

/// The state of the step before that an implicit step uses.
#[derive(Clone, Copy)]
struct State {
    x: DVec3,
    v: DVec3,
}

/// The flap after a step, from its states now and, for backward differences, a step before.
fn known(now: State, before: Option<State>) -> State {
    // x̂ and v̂, see docs/src/understand/time.md: r = 1 makes b a third.
    let (tau, ahead) = match before {
        None => (STEP, now),
        Some(before) => (
            STEP * 2.0 / 3.0,
            State {
                x: now.x + (now.x - before.x) / 3.0,
                v: now.v + (now.v - before.v) / 3.0,
            },
        ),
    };
    let y = ahead.x + ahead.v * tau + GRAVITY * (tau * tau);
    let c = 3.0 * tau * tau * STIFFNESS / (DENSITY * HEIGHT * HEIGHT);
    let x = y * ((1.0 + c * HEIGHT / y.length()) / (1.0 + c));
    State {
        x,
        v: (x - ahead.x) / tau,
    }
}

/// The corner of the flap after each step as the program has it, and as each step should have taken
/// it from where it was.
fn swing(integrator: &str, newton: &str) -> Vec<[State; 2]> {
    let mesh = TriMesh {
        positions: vec![
            DVec3::new(-0.04, 0.0, 0.0),
            DVec3::new(0.04, 0.0, 0.0),
            DVec3::new(0.0, HEIGHT, 0.0),
        ],
        triangles: vec![[0, 1, 2]],
    };
    let pins = "pins = [{ min = [-1, -1, -1], max = [1, 1e-3, 1] }]";
    let material = format!(
        "density = {DENSITY}\nstretch = {STIFFNESS}\npoisson = 0\nbending = 0\ndamping_stiffness = 0"
    );
    let world = Rig::new(pins, material)
        .gravity(GRAVITY)
        .step(STEP)
        .solver(format!("integrator = \"{integrator}\"\n{newton}"))
        .world_of(&mesh);
    let [corner] = vertices(&world, |p| p.y > 0.5 * HEIGHT)[..] else {
        panic!("one corner is free")
    };
    let mut comm = Solo::new();
    let mut s = Simulation::new(&world, &comm, &ScopeOptions::default()).unwrap();
    s.state_mut().1[corner] = DVec3::NEG_Z * SPEED;
    let mut before = None;
    (0..STEPS)
        .map(|_| {
            let [x, v] = [s.positions()[corner], s.velocities()[corner]];
            let now = State { x, v };
            s.advance(&mut comm).unwrap();
            let found = State {
                x: s.positions()[corner],
                v: s.velocities()[corner],
            };
            let expected = known(now, before);
            before = (integrator == "bdf2").then_some(now);
            [found, expected]
        })
        .collect()
}

/// The largest distance from where a step should have ended, over the height.
fn worst(steps: &[[State; 2]]) -> f64 {
    let off = steps
        .iter()
        .map(|[found, known]| found.x.distance(known.x) / HEIGHT);
    off.fold(0.0, f64::max)
}

/// The largest residual of `M u = h (f(x + h u) − d M u + M g)` in steps of a clamped sheet, each
/// begun at rest. It is a share of the residual for u = 0, or of gravity's if that is larger, and
/// is measured by `√Σ |r|²/m` over free vertices.
fn residuals(newton: &str) -> f64 {
    let cloth = "grid = { size = 0.3, vertices = 10 }\npins = [{ min = [-1, -1, -1], max = [-0.1499, 1, 1] }]";
    let material = format!(
        "density = {DENSITY}\nstretch = {STIFFNESS}\npoisson = 0.3\nbending = 1e-5\ndamping_stiffness = 0\ndamping_mass = {DAMPING}"
    );
    let world = Rig::new(cloth, material)
        .gravity(GRAVITY)
        .step(SHEET_STEP)
        .solver(newton)
        .world();
    let mut comm = Solo::new();
    let mut s = Simulation::new(&world, &comm, &ScopeOptions::default()).unwrap();
    let mut worst = 0.0_f64;
    for _ in 0..10 {
        s.state_mut().1.fill(DVec3::ZERO);
        let begin = s.positions().to_vec();
        s.advance(&mut comm).unwrap();
        let still = vec![DVec3::ZERO; begin.len()];
        let first = residual(&world, &begin, &still);
        let mass: f64 = world.model().masses().iter().sum();
        let gravity = SHEET_STEP * GRAVITY.length() * mass.sqrt();
        let left = residual(&world, &begin, s.velocities());
        worst = worst.max(left / first.max(gravity));
    }
    worst
}

fn residual(world: &World, begin: &[DVec3], u: &[DVec3]) -> f64 {
    let end: Vec<DVec3> = (begin.iter().zip(u))
        .map(|(x, u)| *x + *u * SHEET_STEP)
        .collect();
    let forces = forces(world, &end);
    let masses = world.model().masses();
    let squares = vertices(world, |p| p.x > -0.1499).into_iter().map(|v| {
        let force = forces[v] + (GRAVITY - u[v] * DAMPING) * masses[v];
        (force * SHEET_STEP - u[v] * masses[v]).length_squared() / masses[v]
    });
    squares.sum::<f64>().sqrt()
}

pub fn curves() -> Vec<Curve> {
    let place = |state: State| [state.x.y / HEIGHT, state.x.z / HEIGHT];
    let mut now = State {
        x: DVec3::Y * HEIGHT,
        v: DVec3::NEG_Z * SPEED,
    };
    let mut line = vec![place(now)];
    for _ in 0..DRAWN {
        now = known(now, None);
        line.push(place(now));
    }
    let [newton, once] = [TIGHT, ONCE].map(|newton| swing("euler", newton));
    let path = |steps: &[[State; 2]]| -> Vec<[f64; 2]> {
        let drawn = steps.iter().take(DRAWN);
        drawn.map(|[found, _]| place(*found)).collect()
    };
    vec![Curve {
        title: "A flap swings in steps of 50 ms".into(),
        x: Axis::linear("y over height"),
        y: Axis::linear("z over height"),
        found: format!(
            "a step ends within {} of the height; linearised once {}",
            percent(worst(&newton)),
            percent(worst(&once))
        ),
        series: vec![
            Series::known("implicit Euler in closed form", line),
            Series::measured("Newton's method", path(&newton)),
            Series::measured("linearised once", path(&once)),
        ],
    }]
}

#[test]
fn every_step_of_a_flap_is_that_of_the_method_in_closed_form() {
    for integrator in ["euler", "bdf2"] {
        let off = worst(&swing(integrator, TIGHT));
        assert!(off < 2e-8, "{integrator}: {off}");
        let once = worst(&swing(integrator, ONCE));
        assert!(once > 0.02, "{integrator}: {once}");
    }
}

#[test]
fn the_equations_of_a_step_are_met_to_the_tolerance() {
    let once = residuals(ONCE);
    assert!(once > 1.0, "{once}");
    for tolerance in [1e-2, 1e-4, 1e-8] {
        let left = residuals(&format!("newton = 1000\nnewton_tolerance = {tolerance:?}"));
        assert!(left <= tolerance, "{left} of {tolerance}");
    }
}
