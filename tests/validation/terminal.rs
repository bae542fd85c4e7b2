//! Drag: a level sheet that falls, `v = u tanh(g t/u)` with `u = √(2 ρ g/ρₐ Cₙ)`; and one that wind
//! along its plane takes along, `v = W k W t/(1 + k W t)` with `k = ρₐ Cₜ/2ρ`.
//!
//! Source: quadratic drag, e.g. Taylor, Classical Mechanics, § 2.4. ρ is the mass per area of the
//! sheet, ρₐ the density of the air.

use glam::DVec3;
use weft_runtime::ScopeOptions;
use weft_runtime::comm::solo::Solo;
use weftwork::step::Simulation;

use super::curve::{Axis, Curve, Series, percent};
use super::rig::Rig;

const DENSITY: f64 = 0.15;
const AIR: f64 = 1.2;
const FACE: f64 = 1.28;
const SKIN: f64 = 0.05;
const WIND: f64 = 8.0;

/// Velocity of a vertex along `axis` after each step of `step` for 1 s.
fn run(rig: &Rig, axis: DVec3) -> Vec<[f64; 2]> {
    let world = rig.world();
    let mut comm = Solo::new();
    let mut s = Simulation::new(&world, &comm, &ScopeOptions::default()).unwrap();
    let mut found = Vec::new();
    while s.time() < 1.0 - 1e-9 {
        s.advance(&mut comm).unwrap();
        found.push([s.time(), s.velocities()[0].dot(axis)]);
    }
    found
}

fn rig(step: f64) -> Rig {
    let material = format!(
        "density = {DENSITY}\nstretch = 1000\nbending = 1e-5\ndrag_normal = {FACE}\ndrag_tangential = {SKIN}"
    );
    Rig::new("grid = { size = 0.2, vertices = 5 }", material).step(step)
}

fn fall(step: f64) -> Vec<[f64; 2]> {
    let air = format!("[air]\ndensity = {AIR}");
    run(
        &rig(step).gravity(DVec3::new(0.0, 0.0, -9.81)).rest(air),
        -DVec3::Z,
    )
}

fn blow(step: f64) -> Vec<[f64; 2]> {
    let air = format!("[air]\ndensity = {AIR}\nwind = [{WIND}, 0, 0]");
    run(&rig(step).rest(air), DVec3::X)
}

fn terminal() -> f64 {
    (2.0 * DENSITY * 9.81 / (AIR * FACE)).sqrt()
}

fn falling(t: f64) -> f64 {
    terminal() * (9.81 * t / terminal()).tanh()
}

fn blown(t: f64) -> f64 {
    let k = AIR * SKIN / (2.0 * DENSITY) * WIND;
    WIND * k * t / (1.0 + k * t)
}

/// The largest difference from the known velocity, over the largest velocity.
fn error(found: &[[f64; 2]], known: fn(f64) -> f64) -> f64 {
    let off = found.iter().map(|&[t, v]| (v - known(t)).abs());
    off.fold(0.0, f64::max) / known(1.0)
}

pub fn curves() -> Vec<Curve> {
    let curve = |title: &str, name: &str, run: fn(f64) -> Vec<[f64; 2]>, known: fn(f64) -> f64| {
        let found = run(0.005);
        let line = (0..=50).map(|k| [f64::from(k) / 50.0, known(f64::from(k) / 50.0)]);
        let every = found.iter().copied().skip(9).step_by(10);
        Curve {
            title: title.into(),
            x: Axis::linear("time, s"),
            y: Axis::linear("velocity, m/s"),
            found: format!(
                "at all times within {} in steps of 5 ms, at the end {}",
                percent(error(&found, known)),
                percent((found[found.len() - 1][1] / known(1.0) - 1.0).abs())
            ),
            series: vec![Series::known(name, line), Series::measured("cloth", every)],
        }
    };
    vec![
        curve("A level sheet falls in air", "u tanh(g t/u)", fall, falling),
        curve("Wind along a sheet", "W k W t/(1 + k W t)", blow, blown),
    ]
}

#[test]
fn a_falling_sheet_reaches_its_terminal_velocity() {
    let found = fall(0.005);
    assert!(error(&found, falling) < 0.02);
    // After a second it is there; what is left is not of the step.
    assert!((found[found.len() - 1][1] / terminal() - 1.0).abs() < 1e-4);
    // First order in time, or better.
    let order = (error(&found, falling) / error(&fall(0.0025), falling)).log2();
    assert!(order > 0.9, "{order}");
    // Long steps do not throw it about.
    let long = fall(0.1);
    assert!(
        long.windows(2).all(|w| w[1][1] >= w[0][1] - 1e-9),
        "{long:?}"
    );
}

#[test]
fn wind_takes_a_sheet_along() {
    assert!(error(&blow(0.005), blown) < 0.02);
}
