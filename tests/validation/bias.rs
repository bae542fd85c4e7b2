//! Woven cloth pulled at an angle to its warp: `1/E(θ) = c⁴/E₁ + s⁴/E₂ + c²s² (1/G − 2ν₁₂/E₁)`.
//!
//! Source: Jones, Mechanics of Composite Materials, § 2.6; for fabrics, Kilby 1963. The sheet is
//! strained as that law says a free strip would be, and must answer with stress along the pull
//! only.

use std::f64::consts::FRAC_PI_2;

use super::curve::{Axis, Curve, Series, percent, worst};
use super::rig::homogeneous;

const WARP: f64 = 2000.0;
const WEFT: f64 = 600.0;
const SHEAR: f64 = 50.0;
const POISSON: f64 = 0.2;
const STRAIN: f64 = 1e-4;

/// Strain `[ε_xx, ε_yy, γ_xy]` under unit stress along x, with the warp at `angle` to x.
fn compliance(angle: f64) -> [f64; 3] {
    let (s, c) = angle.sin_cos();
    let (along, across) = (1.0 / WARP, 1.0 / WEFT);
    let mixed = -POISSON / WARP;
    let shear = 1.0 / SHEAR;
    // Stress in the axes of the weave, strain there, and back.
    let stress = [c * c, s * s, -s * c];
    let strain = [
        along * stress[0] + mixed * stress[1],
        mixed * stress[0] + across * stress[1],
        shear * stress[2],
    ];
    [
        c * c * strain[0] + s * s * strain[1] - s * c * strain[2],
        s * s * strain[0] + c * c * strain[1] + s * c * strain[2],
        2.0 * s * c * (strain[0] - strain[1]) + (c * c - s * s) * strain[2],
    ]
}

fn known(angle: f64) -> f64 {
    let (s, c) = angle.sin_cos();
    let between = 1.0 / SHEAR - 2.0 * POISSON / WARP;
    1.0 / (c.powi(4) / WARP + s.powi(4) / WEFT + (c * s).powi(2) * between)
}

/// Measured modulus, and the largest other stress as a share of that along the pull.
fn measured(angle: f64) -> [f64; 2] {
    let material = format!(
        "density = 0.15\nstretch = [{WARP}, {WEFT}]\nshear = {SHEAR}\npoisson = {POISSON}\nbending = 0"
    );
    let unit = compliance(angle);
    let (stress, _) = homogeneous(&material, angle, unit.map(|e| e * STRAIN / unit[0]));
    [
        stress[0] / STRAIN,
        stress[1].abs().max(stress[2].abs()) / stress[0],
    ]
}

fn angles() -> impl Iterator<Item = f64> {
    (0..=12).map(|k| FRAC_PI_2 * f64::from(k) / 12.0)
}

pub fn curves() -> Vec<Curve> {
    let points: Vec<[f64; 2]> = angles().map(|a| [a.to_degrees(), measured(a)[0]]).collect();
    let line = (0..=90).map(|d| [f64::from(d), known(f64::from(d).to_radians())]);
    let pairs = points.iter().map(|&[d, e]| (e, known(d.to_radians())));
    vec![Curve {
        title: "Woven cloth pulled at an angle to the warp".into(),
        x: Axis::linear("angle, degrees"),
        y: Axis::logarithmic("stiffness, N/m"),
        found: format!("stiffness within {}", percent(worst(pairs))),
        series: vec![
            Series::known("orthotropic sheet", line),
            Series::measured("irregular mesh", points),
        ],
    }]
}

#[test]
fn stiffness_off_the_warp_is_that_of_an_orthotropic_sheet() {
    for angle in angles() {
        let [modulus, other] = measured(angle);
        assert!(
            (modulus / known(angle) - 1.0).abs() < 1e-3,
            "{angle}: {modulus}"
        );
        assert!(other < 1e-3, "{angle}: {other}");
    }
}
