//! A chain of cloth between two points: `y = a cosh(x/a)`, sag and horizontal force.
//!
//! Known for length 1 between ends `d` apart: `2a sinh(d/2a) = 1`, sag `a (cosh(d/2a) − 1)`,
//! horizontal force `a` in units of weight per length. Source: Huygens, Leibniz and Johann
//! Bernoulli 1691, e.g. Routh, Analytical Statics I, § 443. Bending and stretching are made
//! negligible.

use glam::DVec3;

use super::curve::{Axis, Curve, Series, percent, worst};
use super::rig::{Rig, forces, mean, settle, vertices};

const SPANS: [f64; 4] = [0.5, 0.8, 0.9, 0.95];
const WIDTH: f64 = 0.05;
const CELLS: usize = 60;

/// The parameter `a` in m by bisection.
fn parameter(span: f64) -> f64 {
    let (mut low, mut high) = (1e-3, 1e3);
    for _ in 0..200 {
        let middle = f64::sqrt(low * high);
        let length = 2.0 * middle * (span / (2.0 * middle)).sinh();
        if length > 1.0 {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

fn known(span: f64) -> [f64; 2] {
    let a = parameter(span);
    [a * ((span / (2.0 * a)).cosh() - 1.0), a]
}

/// Sag in m, horizontal force over weight per length in m, and positions of the middle line.
fn hang(span: f64) -> ([f64; 2], Vec<[f64; 2]>) {
    let cloth = format!(
        "grid = {{ size = [1, {WIDTH}], vertices = [{}, 4] }}\n\
         pins = [{{ min = [-1, -1, -1], max = [-0.4999, 1, 1] }}, {{ min = [0.4999, -1, -1], max = [1, 1, 1] }}]",
        CELLS + 1
    );
    let material = "density = 0.15\nstretch = 1e5\npoisson = 0\nbending = 1e-9";
    let gravity = DVec3::new(0.0, 0.0, -9.81);
    let world = Rig::new(cloth, material).gravity(gravity).step(0.1).world();
    // From the parabola of the known sag, which is too long.
    let [sag, _] = known(span);
    let start = |p: DVec3| DVec3::new(p.x * span, p.y, sag * (4.0 * p.x * p.x - 1.0));
    let x = settle(&world, start, 1e-7);
    let ends = vertices(&world, |p| p.x < -0.4999);
    let middle = vertices(&world, |p| p.x.abs() < 1e-6);
    let found = mean(&ends, |v| x[v].z) - mean(&middle, |v| x[v].z);
    let forces = forces(&world, &x);
    let pull: f64 = ends.iter().map(|&v| forces[v].x).sum();
    let rest = world.model().start();
    let line = vertices(&world, |p| (p.y + 0.5 * WIDTH).abs() < 1e-6);
    let mut line: Vec<usize> = line;
    line.sort_by(|&a, &b| rest[a].x.total_cmp(&rest[b].x));
    let line = line.iter().map(|&v| [x[v].x, x[v].z]).collect();
    ([found, pull / (0.15 * 9.81 * WIDTH)], line)
}

pub fn curves() -> Vec<Curve> {
    let mut series = Vec::new();
    let (mut sags, mut pulls) = (Vec::new(), Vec::new());
    for span in SPANS {
        let (measured, line) = hang(span);
        let (expected, a) = (known(span), parameter(span));
        sags.push((measured[0], expected[0]));
        pulls.push((measured[1], expected[1]));
        let height = |x: f64| a * ((x / a).cosh() - (span / (2.0 * a)).cosh());
        let points = (0..=60).map(|k| span * (f64::from(k) / 60.0 - 0.5));
        series.push(Series::known(
            format!("a cosh x/a, span {span} m"),
            points.map(|x| [x, height(x)]),
        ));
        series.push(Series::measured(
            format!("cloth, span {span} m"),
            line.into_iter().step_by(6),
        ));
    }
    vec![Curve {
        title: "Catenary of length 1 m".into(),
        x: Axis::linear("x, m"),
        y: Axis::linear("z, m"),
        found: format!(
            "sag within {}, horizontal force within {}",
            percent(worst(sags)),
            percent(worst(pulls))
        ),
        series,
    }]
}

#[test]
fn a_strip_between_two_points_hangs_as_a_catenary() {
    // Recomputed elsewhere to nine digits.
    assert!((known(0.8)[0] - 0.265437509).abs() < 1e-8);
    assert!((known(0.8)[1] - 0.338201879).abs() < 1e-8);
    for span in [0.5, 0.9] {
        let ([sag, pull], _) = hang(span);
        let expected = known(span);
        assert!((sag / expected[0] - 1.0).abs() < 2e-3, "{sag} {expected:?}");
        assert!(
            (pull / expected[1] - 1.0).abs() < 1e-2,
            "{pull} {expected:?}"
        );
    }
}
