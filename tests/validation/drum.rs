//! A taut square drum: the frequency of its lowest mode, and how fast it converges in space.
//!
//! Source: Rayleigh, Theory of Sound I, §195: `ω² = 2 π² T/(ρ L²)` for a square of side L with
//! tension T per length. Stretched by e, with ν = 0, T = Eh e; in coordinates of the material,
//! tension against motion out of the plane is T/(1+e). On a grid of right triangles the Laplacian
//! is that of five points: `ω² = 8/a² sin²(π/2N) T/((1+e) ρ)` with cells of a.

use glam::DVec3;

use super::curve::{Axis, Curve, Series};
use super::dynamics::{amplitude, order, run, world};

const STRAIN: f64 = 0.04;
const TENSION: f64 = 100.0 * STRAIN / (1.0 + STRAIN) / 0.15;

fn mode(rest: DVec3) -> DVec3 {
    let along = |s: f64| (std::f64::consts::PI * s).cos();
    DVec3::Z * (along(rest.x) * along(rest.y))
}

/// The square ω² in 1/s² of a sheet of 1 m by 1 m, from one step of central differences: `x₁ = x₀
/// (1 − ω²h²/2)`.
fn square(cells: usize) -> f64 {
    let (h, size) = (2e-4, 1e-4);
    let sides = "pins = [{ min = [-1, -1, -1], max = [-0.4999, 1, 1] }, { min = [0.4999, -1, -1], max = [1, 1, 1] }, \
                 { min = [-1, -1, -1], max = [1, -0.4999, 1] }, { min = [-1, 0.4999, -1], max = [1, 1, 1] }]";
    let cloth = format!("grid = {{ size = 1, vertices = {} }}\n{sides}", cells + 1);
    let material = "density = 0.15\nstretch = 100\npoisson = 0\nbending = 0\ndamping_stiffness = 0";
    let world = world("central", h, &cloth, material);
    let start = |rest: DVec3| (rest * (1.0 + STRAIN) + mode(rest) * size, DVec3::ZERO);
    let mut found = 0.0;
    run(&world, 1, start, |s| {
        let [x, _] = amplitude(&world, s, mode);
        found = 2.0 * (1.0 - x / size) / (h * h);
    });
    found
}

const CONTINUOUS: f64 = 2.0 * std::f64::consts::PI * std::f64::consts::PI * TENSION;

fn errors() -> [[f64; 2]; 3] {
    [8, 16, 32].map(|n| [1.0 / n as f64, (square(n) / CONTINUOUS - 1.0).abs()])
}

#[test]
fn a_drum_has_the_frequency_of_its_grid_and_converges_to_that_of_the_drum() {
    let cells = 12;
    let half = std::f64::consts::PI / (2 * cells) as f64;
    let known = 8.0 * ((cells * cells) as f64) * half.sin().powi(2) * TENSION;
    let found = square(cells);
    assert!((found / known - 1.0).abs() < 1e-5, "{found} not {known}");
    let errors = errors().map(|e| e[1]);
    let order = order(&errors);
    assert!(
        (order - 2.0).abs() < super::dynamics::SLACK,
        "order {order}: {errors:?}"
    );
}

pub fn curves() -> Vec<Curve> {
    let points = errors();
    let [[h, error], ..] = points;
    vec![Curve {
        title: "Frequency of a drum".into(),
        x: Axis::logarithmic("size of cells, m"),
        y: Axis::logarithmic("relative error of ω²"),
        found: format!("order {:.2} in space", order(&points.map(|e| e[1]))),
        series: vec![
            Series::known(
                "second order",
                [h, h / 4.0].map(|a| [a, error * (a / h).powi(2)]),
            ),
            Series::measured("herringbone grid", points),
        ],
    }]
}
