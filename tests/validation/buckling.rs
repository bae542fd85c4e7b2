//! Lateral buckling: a strip clamped at one end and set on its edge stays in its plane under its
//! own weight up to `q L³ = 12.85 √(EI · GJ)`, and beyond bends and twists out of it.
//!
//! Source: Timoshenko & Gere, Theory of Elastic Stability, § 6.3 (after Prandtl 1899), for a load
//! at the middle of the section. With the plate's `EI = B b` and `GJ = 2 B b` (ν = 0) that is `Γ =
//! ρ g L³/B = 12.85 √2 = 18.17` for a narrow strip; here its width is an eighth of its length.
//! Torsion tells whether bending on the bias is right: with plain prefactors on a herringbone grid
//! GJ is 2.5 times too large, and the threshold 28.7.

use glam::DVec3;
use weft_runtime::ScopeOptions;
use weft_runtime::comm::solo::Solo;
use weftwork::step::Simulation;

use super::curve::{Axis, Curve, Series, percent};
use super::rig::Rig;

const LENGTH: f64 = 0.4;
const WIDTH: f64 = LENGTH / 8.0;
const CELLS: [usize; 2] = [48, 6];
const DENSITY: f64 = 0.15;
const RIGIDITY: f64 = 1e-5;
const THRESHOLD: f64 = 12.85 * std::f64::consts::SQRT_2;

/// The factor by which a small deflection of the tip grows in a step of 2 s.
fn growth(gamma: f64, bending: &str) -> f64 {
    let cell = LENGTH / (CELLS[0] as f64 - 0.5);
    let long = cell * CELLS[0] as f64;
    // The strip's length counts from the middle of its held cell.
    let gravity = gamma * RIGIDITY / (DENSITY * LENGTH.powi(3));
    let cloth = format!(
        "grid = {{ size = [{long:?}, {WIDTH}], vertices = [{}, {}] }}\nrotation = [\"90 deg\", 0, 0]\n\
         pins = [{{ min = [-1, -1, -1], max = [{:?}, 1, 1] }}]",
        CELLS[0] + 1,
        CELLS[1] + 1,
        1.01 * cell - 0.5 * long
    );
    let material = format!("density = {DENSITY}\nstretch = 50\npoisson = 0\n{bending}");
    let world = Rig::new(cloth, material)
        .gravity(DVec3::new(0.0, 0.0, -gravity))
        .step(2.0)
        .world();
    let mut comm = Solo::new();
    let mut s = Simulation::new(&world, &comm, &ScopeOptions::default()).unwrap();
    for x in s.state_mut().0 {
        let along = (x.x + 0.5 * long - cell).max(0.0) / LENGTH;
        x.y += 1e-5 * LENGTH * along * along;
    }
    let rest = world.model().start();
    let tip = (0..rest.len()).max_by(|&a, &b| {
        let key = |v: usize| rest[v].x - rest[v].z;
        key(a).total_cmp(&key(b))
    });
    let tip = tip.unwrap();
    let mut out = Vec::new();
    for _ in 0..STEPS {
        s.advance(&mut comm).unwrap();
        out.push(s.positions()[tip].y);
    }
    // Other modes die out or oscillate: the mean over the last steps.
    let sum = |values: &[f64]| values.iter().map(|y| y.abs()).sum::<f64>();
    let half = STEPS / 3;
    (sum(&out[STEPS - half..]) / sum(&out[STEPS - 2 * half..STEPS - half])).powf(1.0 / half as f64)
}

const STEPS: usize = 45;

const FITTED: &str = "bending = 1e-5";

/// The Γ at which growth is 1, between two with growth below and above.
fn threshold(bending: &str, [mut low, mut high]: [f64; 2]) -> f64 {
    for _ in 0..5 {
        let middle = 0.5 * (low + high);
        if growth(middle, bending) > 1.0 {
            high = middle;
        } else {
            low = middle;
        }
    }
    0.5 * (low + high)
}

pub fn curves() -> Vec<Curve> {
    let points = [8.0, 12.0, 15.0, 17.0, 19.0, 21.0, 25.0].map(|g| [g, growth(g, FITTED)]);
    let (low, high) = points
        .iter()
        .fold((f64::INFINITY, 0.0_f64), |(low, high), p| {
            (low.min(p[1]), high.max(p[1]))
        });
    let found = threshold(FITTED, [12.0, 28.0]);
    vec![Curve {
        title: "Lateral buckling of a strip on its edge".into(),
        x: Axis::linear("Γ = ρ g L³/B"),
        y: Axis::linear("growth of a small deflection in 2 s"),
        found: format!(
            "threshold Γ = {found:.2}, known {THRESHOLD:.2}: {}",
            percent((found / THRESHOLD - 1.0).abs())
        ),
        series: vec![
            Series::known("12.85 √(EI GJ)", [[THRESHOLD, low], [THRESHOLD, high]]),
            Series::known("neither grows nor decays", [[8.0, 1.0], [25.0, 1.0]]),
            Series::measured("strip of 48 x 6 cells", points),
        ],
    }]
}

#[test]
fn a_strip_on_its_edge_buckles_at_prandtls_load() {
    assert!(growth(0.95 * THRESHOLD, FITTED) < 1.0);
    assert!(growth(1.05 * THRESHOLD, FITTED) > 1.0);
    // With plain prefactors it would stand more.
    assert!(growth(1.2 * THRESHOLD, "bending = 1e-5\nbending_fit = false") < 1.0);
}
