//! A hoop of stiff cloth rolls down a slope that holds it, and slides down one that does not.
//!
//! A thin hoop that rolls without slipping turns as fast as it moves, and so comes down with half
//! of what pulls it, a = g sin θ / 2. Friction has to be the other half: it holds where
//! μ ≥ tan θ / 2. Where it does not hold, the hoop slips with a = g (sin θ - μ cos θ). Only
//! friction turns it then, with R dω/dt = μ g cos θ. Sources: Newton's and Euler's laws for a body
//! with the moment m R²; Coulomb's law. Selle et al. 2009 roll a sheet in their figure 10 for this
//! law.

use std::f64::consts::TAU;

use glam::DVec3;
use weft_runtime::ScopeOptions;
use weft_runtime::comm::solo::Solo;
use weftwork::scene::Scene;
use weftwork::step::{Simulation, World};

const RADIUS: f64 = 0.1;
/// Facets of the hoop: at fewer, each that comes down takes noticeable energy.
const AROUND: usize = 96;
const ALONG: usize = 3;
const THICKNESS: f64 = 0.002;
/// The time in s that is looked at.
const TIME: f64 = 0.4;

/// The hoop as an OBJ file, on a floor at z = 0.
fn hoop() -> String {
    let mut text = String::new();
    for i in 0..AROUND {
        let (sine, cosine) = (TAU * i as f64 / AROUND as f64).sin_cos();
        for j in 0..ALONG {
            let (x, z) = (RADIUS * sine, RADIUS + THICKNESS - RADIUS * cosine);
            text += &format!("v {x:?} {:?} {z:?}\n", 0.02 * j as f64);
        }
    }
    for i in 0..AROUND {
        for j in 0..ALONG - 1 {
            let vertex = |i: usize, j: usize| i % AROUND * ALONG + j + 1;
            let [a, b] = [vertex(i, j), vertex(i + 1, j)];
            text += &format!("f {a} {b} {}\nf {a} {} {}\n", b + 1, b + 1, a + 1);
        }
    }
    text
}

/// The way in m that the hoop comes down a slope of an angle, and the velocity in m/s at its end
/// by which the lowest vertices go along the slope.
fn comes_down(angle: f64, friction: f64) -> (f64, f64) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("hoop.obj"), hoop()).unwrap();
    let gravity = [9.81 * angle.sin(), 0.0, -9.81 * angle.cos()];
    let text = format!(
        "time = {{ step = \"1 ms\", end = 1 }}\ngravity = {gravity:?}\ncontact.thickness = {THICKNESS}\n\
         [[cloth]]\nmesh = \"hoop.obj\"\n\
         material = {{ density = 0.15, stretch = 20000, bending = 0.05, bending_model = \"dihedral\" }}\n\
         [[body]]\nshape = \"plane\"\nfriction = {friction}\nextent = 10\n"
    );
    let scene = Scene::parse(&text, Some(&folder.path().join("scene.toml")), &[]).unwrap();
    let world = World::build(&scene).unwrap();
    let mut solo = Solo::new();
    let mut simulation = Simulation::new(&world, &solo, &ScopeOptions::default()).unwrap();
    for _ in 0..(TIME / 1e-3).round() as usize {
        simulation.advance(&mut solo).unwrap();
    }
    let mean = |x: &[DVec3]| x.iter().map(|p| p.x).sum::<f64>() / x.len() as f64;
    let low = simulation.positions().iter().zip(simulation.velocities());
    let low: Vec<f64> = low
        .filter(|(p, _)| p.z < THICKNESS + 2e-4)
        .map(|(_, v)| v.x)
        .collect();
    let slips = low.iter().sum::<f64>() / low.len() as f64;
    (
        mean(simulation.positions()) - mean(world.model().start()),
        slips,
    )
}

#[test]
fn a_hoop_rolls_where_friction_holds_it_and_else_slips() {
    let angle = 10f64.to_radians();
    let (sine, cosine) = angle.sin_cos();
    let way = |a: f64| 0.5 * a * TIME * TIME;
    // tan θ / 2 is 0.088.
    for friction in [0.12, 0.5] {
        let (rolled, slips) = comes_down(angle, friction);
        let expected = way(0.5 * 9.81 * sine);
        assert!(
            (rolled / expected - 1.0).abs() < 0.03,
            "{friction}: {rolled} m, not {expected}"
        );
        assert!(slips.abs() < 0.02, "{friction}: {slips} m/s");
    }
    let friction = 0.03;
    let (slid, slips) = comes_down(angle, friction);
    let expected = way(9.81 * (sine - friction * cosine));
    assert!(
        (slid / expected - 1.0).abs() < 0.03,
        "{slid} m, not {expected}"
    );
    // The centre goes on with a t, and the rim turns back by μ g t cos θ.
    let expected = 9.81 * (sine - 2.0 * friction * cosine) * TIME;
    assert!(
        (slips / expected - 1.0).abs() < 0.05,
        "{slips} m/s, not {expected}"
    );
}
