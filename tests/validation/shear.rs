//! Pure shear `γ`: stress `E h γ/2(1 + ν)`, of woven cloth `G γ` with a modulus of its own.
//!
//! Source: Timoshenko & Goodier, § 6. The corotational law's strain is `U − I`, whose off-diagonal
//! is half of `γ` exactly for the symmetric map used here.

use super::curve::{Axis, Curve, Series, percent, worst};
use super::rig::homogeneous;

const ISOTROPIC: &str = "density = 0.15\nstretch = 1000\npoisson = 0.3\nbending = 0";
const WOVEN: &str = "density = 0.15\nstretch = [2000, 600]\nshear = 50\npoisson = 0.2\nbending = 0";
const ANGLES: [f64; 4] = [0.01, 0.05, 0.1, 0.2];

/// Measured and known stress of isotropic and woven cloth.
fn stresses(shear: f64) -> [[f64; 2]; 2] {
    let stress = |material| homogeneous(material, 0.0, [0.0, 0.0, shear]).0[2];
    [
        [stress(ISOTROPIC), 1000.0 / 2.6 * shear],
        [stress(WOVEN), 50.0 * shear],
    ]
}

pub fn curves() -> Vec<Curve> {
    let mut series = Vec::new();
    let mut pairs = Vec::new();
    for (kind, name) in ["isotropic", "woven"].into_iter().enumerate() {
        let found = ANGLES.map(|g| (g, stresses(g)[kind]));
        series.push(Series::known(name, found.map(|(g, [_, known])| [g, known])));
        series.push(Series::measured(
            name,
            found.map(|(g, [measured, _])| [g, measured]),
        ));
        pairs.extend(found.map(|(_, [measured, known])| (measured, known)));
    }
    vec![Curve {
        title: "Pure shear".into(),
        x: Axis::linear("shear strain"),
        y: Axis::linear("shear stress, N/m"),
        found: format!("stress within {}", percent(worst(pairs))),
        series,
    }]
}

#[test]
fn shear_stress_is_the_modulus_times_the_strain() {
    for [measured, known] in ANGLES.into_iter().flat_map(stresses) {
        assert!((measured / known - 1.0).abs() < 1e-9, "{measured} {known}");
    }
}
