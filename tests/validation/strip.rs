//! A strip clamped at one end swings with the frequency of a beam.
//!
//! Source: `ω = 1.875104² √(D/ρ)/L²` for the lowest mode of a cantilever (Rayleigh, Theory of Sound
//! I, §173), with D the bending rigidity per width and ρ mass per area. Two columns of vertices are
//! held: half of what bends at the second belongs to the clamp, so that L counts from half a cell
//! before it. Hinges know nothing of the half triangles at free sides: the strip is softer by a
//! share that falls with its width in cells.

use glam::DVec3;

use super::curve::{Axis, Curve, Series, percent};
use super::dynamics::{run, world};

const LENGTH: f64 = 0.2;
const RIGIDITY: f64 = 1e-2;
const SIZE: f64 = 1e-3;

/// The deflection of the lowest mode at a share of the length, 1 at the tip [Rayleigh, §173].
fn shape(at: f64) -> f64 {
    const BETA: f64 = 1.875_104_068_711_961;
    const SIGMA: f64 = 0.734_095_513_754_9;
    let s = BETA * at.max(0.0);
    0.5 * (s.cosh() - s.cos() - SIGMA * (s.sinh() - s.sin()))
}

fn known(cells: usize) -> f64 {
    let free = LENGTH * (1.0 - 0.5 / cells as f64);
    1.875_104_068_711_961_f64.powi(2) * (RIGIDITY / 0.15_f64).sqrt() / (free * free)
}

/// The tip's deflection after each step of `h` (s).
fn swing(cells: usize, across: usize, h: f64, steps: usize) -> Vec<f64> {
    let cell = LENGTH / cells as f64;
    let held = -0.5 * LENGTH + 1.5 * cell;
    let cloth = format!(
        "grid = {{ size = [{LENGTH}, {:?}], vertices = [{}, {}] }}\npins = [{{ min = [-1, -1, -1], max = [{held:?}, 1, 1] }}]",
        across as f64 * cell,
        cells + 1,
        across + 1
    );
    let material = format!(
        "density = 0.15\nstretch = 1000\npoisson = 0\nbending = {RIGIDITY:?}\ndamping_stiffness = 0"
    );
    let world = world("bdf2", h, &cloth, &material);
    let clamp = -0.5 * LENGTH + 0.5 * cell;
    let start = |rest: DVec3| {
        let at = (rest.x - clamp) / (0.5 * LENGTH - clamp);
        let up = if rest.x < held { 0.0 } else { shape(at) };
        (rest + DVec3::Z * (SIZE * up), DVec3::ZERO)
    };
    let tip: Vec<usize> = (0..world.model().start().len())
        .filter(|&v| world.model().start()[v].x > 0.4999 * LENGTH)
        .collect();
    let mut found = Vec::new();
    run(&world, steps, start, |s| {
        let z = tip.iter().map(|&v| s.positions()[v].z).sum::<f64>();
        found.push(z / tip.len() as f64);
    });
    found
}

/// The frequency in rad/s, from two passages through the middle in the same direction.
fn frequency(tip: &[f64], h: f64) -> f64 {
    let passages: Vec<f64> = (tip.windows(2).enumerate())
        .filter(|(_, z)| z[0] > 0.0 && z[1] <= 0.0)
        .map(|(n, z)| h * (n as f64 + 1.0 + z[0] / (z[0] - z[1])))
        .collect();
    2.0 * std::f64::consts::PI / (passages[1] - passages[0])
}

fn measured(cells: usize, across: usize) -> (f64, Vec<f64>, f64) {
    let period = 2.0 * std::f64::consts::PI / known(cells);
    let h = period / 200.0;
    let tip = swing(cells, across, h, 300);
    (frequency(&tip, h), tip, h)
}

#[test]
fn a_clamped_strip_swings_as_a_beam() {
    let [narrow, wide] = [8, 16].map(|across| measured(10, across).0 / known(10) - 1.0);
    assert!(wide.abs() < 0.02, "{narrow} {wide}");
    assert!(wide.abs() < 0.6 * narrow.abs(), "{narrow} {wide}");
}

pub fn curves() -> Vec<Curve> {
    let (frequency, tip, h) = measured(10, 16);
    let points = tip.iter().enumerate().step_by(6);
    let points = points.map(|(n, z)| [h * (n + 1) as f64, 1e3 * z]);
    let omega = known(10);
    let line = (0..=135).map(|n| {
        let t = 2.0 * h * f64::from(n);
        [t, 1e3 * SIZE * (omega * t).cos()]
    });
    vec![Curve {
        title: "A clamped strip".into(),
        x: Axis::linear("time, s"),
        y: Axis::linear("deflection of the tip, mm"),
        found: format!(
            "frequency within {}",
            percent((frequency / omega - 1.0).abs())
        ),
        series: vec![
            Series::known("beam", line),
            Series::measured("10 by 16 cells, bdf2", points),
        ],
    }]
}
