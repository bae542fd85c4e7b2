//! Equal strain along x and y: stress `E h e/(1 − ν)` in both, of woven cloth `(E₁ + ν₁₂E₂) e/(1 −
//! ν₁₂ν₂₁)` along the warp and `(1 + ν₁₂) E₂ e/(1 − ν₁₂ν₂₁)` along the weft.
//!
//! Source: plane stress, e.g. Timoshenko & Goodier, § 11; Jones, Mechanics of Composite Materials,
//! § 2.5.

use super::curve::{Axis, Curve, Series, percent, worst};
use super::rig::homogeneous;

const ISOTROPIC: &str = "density = 0.15\nstretch = 1000\npoisson = 0.3\nbending = 0";
const WOVEN: &str = "density = 0.15\nstretch = [2000, 600]\nshear = 50\npoisson = 0.2\nbending = 0";
const STRAINS: [f64; 4] = [0.01, 0.03, 0.06, 0.1];

/// Measured and known stress of isotropic cloth, of warp and of weft.
fn stresses(strain: f64) -> [[f64; 2]; 3] {
    let ([isotropic, _, _], _) = homogeneous(ISOTROPIC, 0.0, [strain, strain, 0.0]);
    let ([warp, weft, _], _) = homogeneous(WOVEN, 0.0, [strain, strain, 0.0]);
    let scale = strain / (1.0 - 0.2 * 0.2 * 0.3);
    [
        [isotropic, 1000.0 * strain / (1.0 - 0.3)],
        [warp, (2000.0 + 0.2 * 600.0) * scale],
        [weft, 1.2 * 600.0 * scale],
    ]
}

pub fn curves() -> Vec<Curve> {
    let mut series = Vec::new();
    let mut pairs = Vec::new();
    for (kind, name) in ["isotropic", "warp", "weft"].into_iter().enumerate() {
        let found = STRAINS.map(|e| (e, stresses(e)[kind]));
        series.push(Series::known(name, found.map(|(e, [_, known])| [e, known])));
        series.push(Series::measured(
            name,
            found.map(|(e, [measured, _])| [e, measured]),
        ));
        pairs.extend(found.map(|(_, [measured, known])| (measured, known)));
    }
    vec![Curve {
        title: "Biaxial tension".into(),
        x: Axis::linear("strain along x and y"),
        y: Axis::linear("force per width, N/m"),
        found: format!("stress within {}", percent(worst(pairs))),
        series,
    }]
}

#[test]
fn stress_under_equal_strains_is_that_of_plane_stress() {
    for [measured, known] in STRAINS.into_iter().flat_map(stresses) {
        assert!((measured / known - 1.0).abs() < 1e-9, "{measured} {known}");
    }
}
