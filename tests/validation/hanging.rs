//! A sheet hung by its upper edge lengthens by `ρ g L²/2Eh` (ν = 0), and its edge bears its weight.
//!
//! Source: a bar under its own weight, Timoshenko, Strength of Materials I, § 1.5: `u(s) = ρ g (L s
//! − s²/2)/Eh`. The corners carry other masses than the rest, so that the answer is not exact at
//! nodes: second order in the size of cells, or better.

use glam::DVec3;

use super::curve::{Axis, Curve, Series, percent};
use super::rig::{Rig, forces, mean, settle, vertices};

const LENGTHENING: f64 = 0.15 * 9.81 / (2.0 * 1000.0);

/// Relative errors of the lengthening and of the force on the clamp.
fn errors(cells: usize) -> [f64; 2] {
    let cloth = format!(
        "grid = {{ size = 1, vertices = {} }}\nrotation = [\"90 deg\", 0, 0]\n\
         pins = [{{ min = [-1, -1, 0.4999], max = [1, 1, 1] }}]",
        cells + 1
    );
    let material = "density = 0.15\nstretch = 1000\npoisson = 0\nbending = 1e-5";
    let gravity = DVec3::new(0.0, 0.0, -9.81);
    let world = Rig::new(cloth, material).gravity(gravity).world();
    let x = settle(&world, |p| p, 1e-9);
    let rest = world.model().start();
    let lowest = vertices(&world, |p| p.z < -0.4999);
    let longer = mean(&lowest, |v| rest[v].z - x[v].z);
    let forces = forces(&world, &x);
    let held = vertices(&world, |p| p.z > 0.4999);
    let pull: f64 = held.iter().map(|&v| forces[v].z).sum();
    // The clamp bears what its own vertices weigh without cloth.
    let masses = world.model().masses();
    let own: f64 = held.iter().map(|&v| masses[v]).sum();
    let weight = 9.81 * (0.15 - own);
    [longer / LENGTHENING - 1.0, -pull / weight - 1.0].map(f64::abs)
}

pub fn curves() -> Vec<Curve> {
    let points = [10, 20, 40].map(|n| [1.0 / n as f64, errors(n)[0]]);
    let [[h, error], ..] = points;
    let line = [h, h / 4.0].map(|size| [size, error * (size / h).powi(2)]);
    vec![Curve {
        title: "A sheet under its own weight".into(),
        x: Axis::logarithmic("size of cells, m"),
        y: Axis::logarithmic("relative error of the lengthening"),
        found: format!("lengthening within {} at 40 cells", percent(points[2][1])),
        series: vec![
            Series::known("second order", line),
            Series::measured("herringbone grid", points),
        ],
    }]
}

#[test]
fn a_hanging_sheet_lengthens_by_its_weight_to_second_order() {
    let [coarse, fine] = [10, 20].map(errors);
    assert!(fine[0] < 2e-3, "{fine:?}");
    let order = (coarse[0] / fine[0]).log2();
    assert!(order > 1.8, "{order}");
    assert!(coarse[1] < 1e-6 && fine[1] < 1e-6, "{coarse:?} {fine:?}");
}
