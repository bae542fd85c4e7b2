//! Uniaxial tension: a strip between two clamps, pulled along its length.
//!
//! Known: away from the clamps, force per width is `E h · e` and the strip narrows by `ν e`, with
//! engineering strain `e` (exact for the corotational law at any `e`). Source: plane stress, e.g.
//! Timoshenko & Goodier, Theory of Elasticity, §§ 6 and 11.

use glam::DVec3;

use super::curve::{Axis, Curve, Series, percent, worst};
use super::rig::{Rig, forces, mean, settle, vertices};

const STIFFNESS: f64 = 1000.0;
const POISSON: f64 = 0.3;
const STRAINS: [f64; 4] = [0.01, 0.02, 0.05, 0.1];

/// Force per width in N/m and lateral contraction halfway of a strip of 2 m by 0.2 m.
///
/// The mean strain of the strip is a little below that halfway, since the clamps hold its ends
/// wide: it is measured halfway too.
fn pull(strain: f64) -> [f64; 3] {
    let cloth = "grid = { size = [2, 0.2], vertices = [61, 7] }\n\
                 pins = [{ min = [-2, -1, -1], max = [-0.999, 1, 1] }, { min = [0.999, -1, -1], max = [2, 1, 1] }]";
    let material =
        format!("density = 0.15\nstretch = {STIFFNESS}\npoisson = {POISSON}\nbending = 1e-5");
    let world = Rig::new(cloth, material).world();
    let stretched =
        |p: DVec3| DVec3::new(p.x * (1.0 + strain), p.y * (1.0 - POISSON * strain), p.z);
    let x = settle(&world, stretched, 1e-9);
    let forces = forces(&world, &x);
    let held = vertices(&world, |p| p.x < -0.999);
    let pull: f64 = held.iter().map(|&v| forces[v].x).sum();
    let at = |place: DVec3| {
        let found = vertices(&world, |p| p.distance(place) < 1e-3);
        x[found[0]]
    };
    let wide = at(DVec3::new(0.0, 0.1, 0.0)).y - at(DVec3::new(0.0, -0.1, 0.0)).y;
    // The middle third.
    let third = |sign: f64| {
        let line = vertices(&world, |p| (p.x - sign / 3.0).abs() < 1e-3);
        mean(&line, |v| x[v].x)
    };
    let long = (third(1.0) - third(-1.0)) / (2.0 / 3.0);
    [pull / 0.2, 1.0 - wide / 0.2, long - 1.0]
}

pub fn curves() -> Vec<Curve> {
    let measured = STRAINS.map(pull);
    let force = measured.map(|[force, _, strain]| [strain, force]);
    let contraction = measured.map(|[_, contraction, strain]| [strain, contraction]);
    let line = |slope: f64| [0.0, 0.05, 0.11].map(|e| [e, slope * e]);
    let found = |points: &[[f64; 2]], slope: f64| {
        percent(worst(points.iter().map(|&[e, y]| (y, slope * e))))
    };
    let strain = Axis::linear("strain halfway");
    vec![
        Curve {
            title: "Uniaxial tension: force".into(),
            x: strain,
            y: Axis::linear("force per width, N/m"),
            found: format!("force within {}", found(&force, STIFFNESS)),
            series: vec![
                Series::known("E h e", line(STIFFNESS)),
                Series::measured("strip of 60 x 6 cells", force),
            ],
        },
        Curve {
            title: "Uniaxial tension: contraction".into(),
            x: strain,
            y: Axis::linear("lateral contraction"),
            found: format!("contraction within {}", found(&contraction, POISSON)),
            series: vec![
                Series::known("ν e", line(POISSON)),
                Series::measured("strip of 60 x 6 cells", contraction),
            ],
        },
    ]
}

#[test]
fn a_strip_pulls_and_narrows_as_plane_stress_says() {
    for [force, contraction, strain] in [0.02, 0.1].map(pull) {
        let expected = STIFFNESS * strain;
        assert!((force / expected - 1.0).abs() < 1e-3, "{force} {expected}");
        let expected = POISSON * strain;
        assert!(
            (contraction / expected - 1.0).abs() < 5e-3,
            "{contraction} {expected}"
        );
    }
}
