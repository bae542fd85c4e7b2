//! Rest angles: cloth that is curved at rest and bends by dihedral angles stays as it is; pulled on at its end
//! by a small weight, it gives as a curved beam does.
//!
//! Source: [Bridson 2003, §1.4]; Castigliano's theorem for a quarter ring clamped at one end, Timoshenko, Strength
//! of Materials I, § 79: under its own small weight `w` per length along its tangent at the clamp, the tip of a
//! quarter ring of radius `r` moves by `∫ M m/B ds`.

use std::f64::consts::FRAC_PI_2;

use glam::DVec3;
use weftwork::mesh::{TriMesh, grid};

use super::curve::{Axis, Curve, Series, percent, worst};
use super::rig::{Rig, mean, settle, vertices};

const RADIUS: f64 = 0.1;
const CELLS: usize = 40;
const RIGIDITY: f64 = 1e-5;
const DENSITY: f64 = 0.15;

/// A quarter of a ring of width 3 cm from the origin along x, bent upwards, with one more cell before it.
fn quarter() -> TriMesh {
    // The strip is clamped in the middle of its held cell.
    let angle = FRAC_PI_2 / (CELLS as f64 - 0.5);
    let mut mesh = grid(
        [CELLS as f64, 6.0],
        [CELLS + 1, 7],
        DVec3::new(0.5 * CELLS as f64 - 0.5, 0.0, 0.0),
        DVec3::ZERO,
    )
    .unwrap();
    for p in &mut mesh.positions {
        let turn = p.x * angle;
        *p = DVec3::new(
            RADIUS * turn.sin(),
            0.005 * p.y,
            RADIUS * (1.0 - turn.cos()),
        );
    }
    mesh
}

/// How far the tip sinks under a weight that makes `Γ = w r³/B`, over the radius.
fn sag(gamma: f64, model: &str) -> f64 {
    let gravity = gamma * RIGIDITY / (DENSITY * RADIUS.powi(3));
    let angle = FRAC_PI_2 / (CELLS as f64 - 0.5);
    let material = format!(
        "density = {DENSITY}\nstretch = 200\npoisson = 0\nbending = {RIGIDITY}\nbending_model = \"{model}\""
    );
    let pins = format!(
        "pins = [{{ min = [-1, -1, -1], max = [{:?}, 1, 1] }}]",
        1.01 * RADIUS * (0.5 * angle).sin()
    );
    let world = Rig::new(pins, material)
        .gravity(DVec3::new(0.0, 0.0, -gravity))
        .world_of(&quarter());
    let x = settle(&world, |p| p, 1e-8);
    let rest = world.model().rest();
    let tip = vertices(&world, |p| p.z > RADIUS * (1.0 - 1e-6));
    mean(&tip, |v| rest[v].z - x[v].z) / RADIUS
}

/// What Castigliano's theorem says for small weights: `Γ ∫ M m dφ` with the moments of the weight beyond φ and of a
/// unit force at the tip, both about φ, in units of `w r²` and `r`; vertical motion of the tip.
fn known(gamma: f64) -> f64 {
    let n = 2000;
    let h = FRAC_PI_2 / f64::from(n);
    let mut sum = 0.0;
    for k in 0..n {
        let phi = (f64::from(k) + 0.5) * h;
        // Arms along x: the ring is at (sin ψ, 1 − cos ψ).
        let weight = phi.cos() - (FRAC_PI_2 - phi) * phi.sin();
        let unit = 1.0 - phi.sin();
        sum += weight * unit * h;
    }
    gamma * sum
}

const GAMMAS: [f64; 3] = [0.01, 0.02, 0.05];

pub fn curves() -> Vec<Curve> {
    let points = GAMMAS.map(|g| [g, sag(g, "dihedral")]);
    let pairs = points.map(|[g, found]| (found, known(g)));
    vec![Curve {
        title: "A quarter ring with rest angles under its weight".into(),
        x: Axis::linear("Γ = w r³/B"),
        y: Axis::linear("sinking of the tip over radius"),
        found: format!("sinking within {}", percent(worst(pairs))),
        series: vec![
            Series::known("Castigliano", [0.0, 0.05].map(|g| [g, known(g)])),
            Series::measured("dihedral model", points),
        ],
    }]
}

#[test]
fn a_curved_strip_keeps_its_shape_and_gives_as_a_curved_beam() {
    assert!(sag(0.0, "dihedral").abs() < 1e-9);
    for gamma in [0.01, 0.05] {
        let found = sag(gamma, "dihedral");
        assert!(
            (found / known(gamma) - 1.0).abs() < 0.04,
            "{found} {}",
            known(gamma)
        );
    }
}
