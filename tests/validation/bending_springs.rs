//! Bending springs: a flap on one swings the slower the less it is folded, and a sheet of them bent
//! to a cylinder stores energy by the fourth power of its curvature.
//!
//! **A flap.** Two triangles of the height h share an edge e; one is held, the other turns about
//! the edge, its corner of mass `m = ρ A/3` on a circle. The spring across is `2h` long, and `2h
//! cos θ/2` at the fold θ, so that it stores `U = 2 k h² (1 − cos θ/2)²`, about `k h² θ⁴/32`. With
//! `k = 8 q R²/h⁴`, which gives the fold the moment `q θ` of a hinge at the radius R, `q = D
//! e²/2A`:
//!
//! `θ'' = −(q R²/m h⁴) θ³`, `T = 7.4163/(θ₀ √(q R²/m h⁴))`
//!
//! for small folds; `T = 4 ∫ dθ/√(2 (U(θ₀) − U(θ))/m h²)` from 0 to θ₀ for any. A hinge would swing
//! with one period.
//!
//! **A sheet.** On a grid of cells of the size a, bent along its rows, only the edges between
//! columns fold, by `θ = a/r` at the radius r, and there is one for each cell: `k h² θ⁴/32` with h
//! = a is `D R²/4r⁴` per area, `R²/2r²` of a plate's energy.
//!
//! Sources: springs across edges, Selle et al. 2009, § 3; the period of an oscillator by its
//! amplitude, Landau & Lifshitz, Mechanics, § 11; the number is `4 K(1/√2)`, `K` the complete
//! elliptic integral of the first kind.

use std::f64::consts::FRAC_PI_2;

use glam::DVec3;
use weftwork::mesh::{TriMesh, grid};

use super::curve::{Axis, Curve, Series, percent, worst};
use super::dynamics::run;
use super::rig::Rig;

const DENSITY: f64 = 0.15;
const RIGIDITY: f64 = 1e-5;
const RADIUS: f64 = 0.05;

/// Height of the flap, and length of the edge it hangs at, in m.
const HEIGHT: f64 = 0.05;
const EDGE: f64 = 0.06;
/// Folds at which it is let go, in rad.
const FOLDS: [f64; 4] = [0.2, 0.5, 1.0, 1.5];

fn material() -> String {
    format!(
        "density = {DENSITY}\nstretch = 1000\npoisson = 0\nbending = {RIGIDITY:?}\nbending_model = \"springs\"\n\
         bending_fit = false\nbending_radius = {RADIUS:?}\ndamping_stiffness = 0"
    )
}

/// `q R²/m h⁴` in 1/s².
fn cubic() -> f64 {
    let area = 0.5 * EDGE * HEIGHT;
    let moment = RIGIDITY * EDGE * EDGE / (2.0 * area);
    moment * RADIUS * RADIUS / (DENSITY * area / 3.0 * HEIGHT.powi(4))
}

/// The period in s of a flap let go at a fold.
fn period(fold: f64) -> f64 {
    // U/m h², with k/m = 8 q R²/m h⁴.
    let potential = |theta: f64| 16.0 * cubic() * (1.0 - (0.5 * theta).cos()).powi(2);
    // θ = θ₀ sin φ, and the rule of the middle: the integrand is smooth and even at both ends.
    let n = 2000;
    let sum: f64 = (0..n)
        .map(|k| {
            let phi = (f64::from(k) + 0.5) / f64::from(n) * FRAC_PI_2;
            let left = potential(fold) - potential(fold * phi.sin());
            fold * phi.cos() / (2.0 * left).sqrt()
        })
        .sum();
    4.0 * sum * FRAC_PI_2 / f64::from(n)
}

/// The period in s that the program finds.
fn swing(fold: f64) -> f64 {
    let mesh = TriMesh {
        positions: vec![
            DVec3::new(-0.5 * EDGE, 0.0, 0.0),
            DVec3::new(0.5 * EDGE, 0.0, 0.0),
            DVec3::new(0.0, HEIGHT, 0.0),
            DVec3::new(0.0, -HEIGHT, 0.0),
        ],
        triangles: vec![[0, 1, 2], [1, 0, 3]],
    };
    let known = period(fold);
    let step = known / 1000.0;
    let world = Rig::new(
        "pins = [{ min = [-1, -1, -1], max = [1, 1e-3, 1] }]",
        material(),
    )
    .step(step)
    .solver("integrator = \"bdf2\"")
    .world_of(&mesh);
    let free = (world.model().start().iter())
        .position(|p| p.y > 0.5 * HEIGHT)
        .unwrap();
    let start = |p: DVec3| {
        if p.y > 0.5 * HEIGHT {
            let at = DVec3::new(0.0, fold.cos(), fold.sin()) * HEIGHT;
            (at, DVec3::ZERO)
        } else {
            (p, DVec3::ZERO)
        }
    };
    let mut last = fold;
    let mut crossings = Vec::new();
    run(&world, 1100, start, |s| {
        let at = s.positions()[free];
        let now = at.z.atan2(at.y);
        if now * last < 0.0 {
            crossings.push(s.time() - step * now / (now - last));
        }
        last = now;
    });
    let [down, up, ..] = crossings[..] else {
        panic!("it does not swing: {crossings:?}")
    };
    2.0 * (up - down)
}

pub fn curves() -> Vec<Curve> {
    let line = (0..=40).map(|k| 0.15 * 12f64.powf(f64::from(k) / 40.0));
    let points = FOLDS.map(|fold| [fold, swing(fold)]);
    let off = worst(points.map(|[fold, found]| (found, period(fold))));
    vec![Curve {
        title: "A flap on a bending spring".into(),
        x: Axis::logarithmic("fold it is let go at, rad"),
        y: Axis::logarithmic("period, s"),
        found: format!("period within {}", percent(off)),
        series: vec![
            Series::known("oscillator with θ⁴", line.map(|fold| [fold, period(fold)])),
            Series::measured("two triangles", points),
        ],
    }]
}

#[test]
fn a_flap_on_a_bending_spring_swings_with_its_period() {
    let small = 7.416298709 / (1e-3 * cubic().sqrt());
    assert!((period(1e-3) / small - 1.0).abs() < 1e-6);
    for fold in FOLDS {
        let (found, known) = (swing(fold), period(fold));
        assert!(
            (found / known - 1.0).abs() < 5e-4,
            "{fold}: {found} {known}"
        );
    }
}

/// Energy of a sheet with flat columns, its vertices on a cylinder of the radius (m), over `D/2r²`
/// for the area of its folds.
fn cylinder(radius: f64, cells: usize) -> f64 {
    let size = 0.2;
    let cell = size / cells as f64;
    let mesh = grid([size; 2], [cells + 1; 2], DVec3::ZERO, DVec3::ZERO).unwrap();
    let world = Rig::new("", material()).world_of(&mesh);
    // Chords are as long as cells.
    let fold = 2.0 * (0.5 * cell / radius).asin();
    let bend = |p: &DVec3| {
        let angle = fold * p.x / cell;
        DVec3::new(radius * angle.sin(), p.y, radius * (1.0 - angle.cos()))
    };
    let x: Vec<DVec3> = world.model().start().iter().map(bend).collect();
    let area = (cells as f64 - 1.0) * cell * size;
    world.model().elastic_energy(&x).unwrap() / (0.5 * RIGIDITY * area / (radius * radius))
}

#[test]
fn a_sheet_of_bending_springs_stores_energy_by_the_fourth_power_of_curvature() {
    for times in [1.0, 2.0, 10.0] {
        let off = [20, 40].map(|cells| cylinder(times * RADIUS, cells) * 2.0 * times * times - 1.0);
        assert!(off[0].abs() < 1e-2, "r = {times} R: {off:?}");
        let order = (off[0] / off[1]).log2();
        assert!(order > 1.9, "r = {times} R: order {order}, {off:?}");
    }
}
