//! A wave that stands in a sheet held at two ends, along its length: every step of every integrator
//! is that of one oscillator.
//!
//! Sources: the sheet is a chain of N lumped masses, `ω² = 4 Eh/(ρ a²) sin²(π/2N)` with cells of a
//! (Rayleigh, Theory of Sound I, §120); on a herringbone grid the wave must run along the columns,
//! where masses at the border are equal. ν = 0 and one direction make the corotational law linear.
//! [`Oscillator`] has the effect of each integrator on an oscillator with damping `α + β ω²`, from
//! the formulas of the method; implicit Euler takes `1/(1 + ω²h²)` of its energy in each step
//! without damping.

use glam::DVec3;

use super::curve::{Axis, Curve, Series};
use super::dynamics::{METHODS, amplitude, orders, run, world};

const LENGTH: f64 = 0.4;
const CELLS: usize = 16;
const SIZE: f64 = 1e-3;

fn omega() -> f64 {
    let cell = LENGTH / CELLS as f64;
    let half = std::f64::consts::PI / (2 * CELLS) as f64;
    2.0 * (100.0_f64 / 0.15).sqrt() / cell * half.sin()
}

fn mode(rest: DVec3) -> DVec3 {
    DVec3::Y * (std::f64::consts::PI * (rest.y / LENGTH + 0.5)).sin()
}

/// Amplitudes and their rates after each step.
fn measured(method: &str, h: f64, steps: usize, damping: [f64; 2]) -> Vec<[f64; 2]> {
    let ends = "pins = [{ min = [-1, -1, -1], max = [1, -0.1999, 1] }, { min = [-1, 0.1999, -1], max = [1, 1, 1] }]";
    let cloth = format!(
        "grid = {{ size = [0.1, {LENGTH}], vertices = [5, {}] }}\n{ends}",
        CELLS + 1
    );
    let [alpha, beta] = damping;
    let material = format!(
        "density = 0.15\nstretch = 100\npoisson = 0\nbending = 0\ndamping_mass = {alpha:?}\ndamping_stiffness = {beta:?}"
    );
    let world = world(method, h, &cloth, &material);
    let mut found = Vec::new();
    let start = |rest| (rest + mode(rest) * SIZE, DVec3::ZERO);
    run(&world, steps, start, |s| {
        found.push(amplitude(&world, s, mode))
    });
    found
}

/// One degree of freedom, `x'' = −ω² x − d x'`, from rest.
struct Oscillator {
    square: f64,
    damping: f64,
    x: f64,
    v: f64,
    past: Option<[f64; 2]>,
}

impl Oscillator {
    fn new([alpha, beta]: [f64; 2]) -> Self {
        let square = omega() * omega();
        Self {
            square,
            damping: alpha + beta * square,
            x: SIZE,
            v: 0.0,
            past: None,
        }
    }

    fn step(&mut self, method: &str, h: f64) -> [f64; 2] {
        let Self {
            square: w,
            damping: d,
            x,
            v,
            ..
        } = *self;
        let half = 0.5 * h;
        match method {
            "euler" => {
                self.v = (v - h * w * x) / (1.0 + h * d + h * h * w);
                self.x = x + h * self.v;
            }
            "bdf2" => {
                // x' = 4/3 x − 1/3 x₋ + 2/3 h v', and the same of v; the first step is Euler's.
                let (tau, ahead_x, ahead_v) = match self.past {
                    None => (h, x, v),
                    Some([px, pv]) => (h / 1.5, (4.0 * x - px) / 3.0, (4.0 * v - pv) / 3.0),
                };
                self.v = (ahead_v - tau * w * ahead_x) / (1.0 + tau * d + tau * tau * w);
                self.x = ahead_x + tau * self.v;
            }
            "newmark" => {
                let u = (v - half * w * x) / (1.0 + half * d);
                self.x = x + h * u;
                let middle = (v - half * w * 0.5 * (x + self.x)) / (1.0 + half * d);
                self.v = 2.0 * middle - v;
            }
            _ => {
                let u = v - half * (w * x + d * v);
                self.x = x + h * u;
                self.v = (u - half * w * self.x) / (1.0 + half * d);
            }
        }
        self.past = Some([x, v]);
        [self.x, self.v]
    }

    fn energy([x, v]: [f64; 2]) -> f64 {
        let w = omega();
        v * v + w * w * x * x
    }
}

#[test]
fn every_step_is_that_of_the_oscillator() {
    let h = 2e-4;
    for (method, _) in METHODS {
        for damping in [[0.0, 0.0], [8.0, 4e-4]] {
            let mut known = Oscillator::new(damping);
            for [x, v] in measured(method, h, 60, damping) {
                let [known_x, known_v] = known.step(method, h);
                let error = (x - known_x).abs().max((v - known_v).abs() / omega());
                assert!(
                    error < 1e-9 * SIZE,
                    "{method}, {damping:?}: {x} not {known_x}"
                );
            }
        }
    }
}

/// Without damping: Euler takes `1/(1 + ω²h²)`, backward differences about `ω⁴h⁴/2`, the others
/// nothing in the long run.
#[test]
fn energy_falls_as_theory_says() {
    let h = 4e-4;
    let square = (omega() * h).powi(2);
    let start = Oscillator::energy([SIZE, 0.0]);
    let energies = |method| {
        let found = measured(method, h, 800, [0.0; 2]);
        found
            .into_iter()
            .map(Oscillator::energy)
            .collect::<Vec<_>>()
    };
    let mut known = start;
    for energy in energies("euler") {
        known /= 1.0 + square;
        assert!((energy / known - 1.0).abs() < 1e-6, "{energy} not {known}");
    }
    // Over whole oscillations, from the second step on: the first is Euler's.
    let backward = energies("bdf2");
    let lost = (backward[100] / backward[799]).ln() / 699.0;
    assert!(
        (lost / (0.5 * square * square) - 1.0).abs() < 0.05,
        "{lost}"
    );
    for method in ["newmark", "central"] {
        for energy in energies(method) {
            assert!(
                (energy / start - 1.0).abs() < 0.3 * square,
                "{method}: {energy}"
            );
        }
    }
}

/// Errors at one time with steps that are halved.
fn errors(method: &str) -> Vec<[f64; 2]> {
    let end = 1.3 / omega();
    let halved = [16, 32, 64, 128].map(|n| (end / n as f64, n));
    let error = |(h, n): (f64, usize)| {
        let [x, v] = measured(method, h, n, [0.0; 2])[n - 1];
        let (sin, cos) = 1.3_f64.sin_cos();
        let error = (x / SIZE - cos).hypot(v / (SIZE * omega()) + sin);
        [h * omega(), error]
    };
    halved.map(error).to_vec()
}

#[test]
fn integrators_are_of_their_orders() {
    for (method, known) in METHODS {
        let errors: Vec<f64> = errors(method).iter().map(|e| e[1]).collect();
        let order = super::dynamics::order(&errors);
        assert!(
            (order - known).abs() < super::dynamics::SLACK,
            "{method}: order {order}, {errors:?}"
        );
    }
}

pub fn curves() -> Vec<Curve> {
    let h = 4e-4;
    let mut decay = Vec::new();
    for (method, _) in METHODS {
        let found = measured(method, h, 400, [0.0; 2]);
        let start = Oscillator::energy([SIZE, 0.0]);
        let at = |n: usize| [n as f64, Oscillator::energy(found[n - 1]) / start];
        decay.push(Series::measured(method, (1..=20).map(|k| at(20 * k))));
    }
    let square = (omega() * h).powi(2);
    let theory = (0..=20).map(|k| [20.0 * f64::from(k), (1.0 + square).powi(-20 * k)]);
    decay.push(Series::known("1/(1 + ω²h²) a step", theory));
    let (series, found) = orders(errors);
    vec![
        Curve {
            title: "Energy of a standing wave".into(),
            x: Axis::linear("steps"),
            y: Axis::linear("energy, share of the first"),
            found: format!(
                "held to the oscillator within 1e-9 of the amplitude in every step; ωh = {:.3}",
                square.sqrt()
            ),
            series: decay,
        },
        Curve {
            title: "Orders in time".into(),
            x: Axis::logarithmic("ωh"),
            y: Axis::logarithmic("error at ωt = 1.3"),
            found,
            series,
        },
    ]
}
