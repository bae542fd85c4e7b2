//! A crumpled sheet that tumbles freely: orders of the integrators where nothing is linear, and
//! their budgets of momentum and energy.
//!
//! Sources: forces between vertices sum to zero, so that linear momentum is kept to the tolerance
//! of the solve by every method here; the order of a method is the slope of its error against a
//! solution with much shorter steps (Hairer, Nørsett & Wanner, Solving Ordinary Differential
//! Equations I, §II.4). Angular momentum is kept to the order of the method only, and never grows
//! by more.

use glam::DVec3;

use super::curve::{Axis, Curve};
use super::dynamics::{energy, momenta, orders, run, world};

const END: f64 = 0.048;

fn start(rest: DVec3) -> (DVec3, DVec3) {
    let (x, y) = (rest.x, rest.y);
    let v = DVec3::new(0.3, 0.1, 0.5 * (5.0 * x).sin()) + DVec3::Z.cross(rest) * 2.0;
    let lifted = rest + DVec3::Z * (0.05 * (7.0 * x).sin() * (4.0 * y).cos());
    (lifted * DVec3::new(1.02, 1.0, 1.0), v)
}

/// Positions at the end; and of energy, linear and angular momentum the largest changes on the way,
/// as shares.
fn tumble(method: &str, steps: usize) -> (Vec<DVec3>, [f64; 3]) {
    let cloth = "grid = { size = 1, vertices = 9 }";
    let material =
        "density = 0.15\nstretch = 20\npoisson = 0.3\nbending = 1e-3\ndamping_stiffness = 0";
    let world = world(method, END / steps as f64, cloth, material);
    let mut begin = None;
    let mut end = Vec::new();
    let mut worst = [0.0_f64; 3];
    run(&world, steps, start, |s| {
        let now = (energy(&world, s), momenta(&world, s));
        let (e, [p, l]) = *begin.get_or_insert(now);
        let (now_e, [now_p, now_l]) = now;
        let changes = [
            (now_e - e).abs() / e,
            (now_p - p).length() / p.length(),
            (now_l - l).length() / l.length(),
        ];
        for (worst, change) in worst.iter_mut().zip(changes) {
            *worst = worst.max(change);
        }
        if s.step() == steps as u64 {
            end = s.positions().to_vec();
        }
    });
    (end, worst)
}

/// Root mean square distances from the finest solution, for steps that are halved.
fn errors(method: &str, exact: &[DVec3]) -> Vec<[f64; 2]> {
    let error = |n: usize| {
        let (x, _) = tumble(method, n);
        let sum: f64 = x
            .iter()
            .zip(exact)
            .map(|(a, b)| a.distance_squared(*b))
            .sum();
        [END / n as f64, (sum / x.len() as f64).sqrt()]
    };
    [96, 192, 384].map(error).to_vec()
}

fn exact() -> Vec<DVec3> {
    tumble("central", 3072).0
}

#[test]
fn integrators_are_of_their_orders_where_nothing_is_linear() {
    let exact = exact();
    for (method, known) in super::dynamics::METHODS {
        let errors: Vec<f64> = errors(method, &exact).iter().map(|e| e[1]).collect();
        let order = super::dynamics::order(&errors);
        assert!(
            (order - known).abs() < super::dynamics::SLACK,
            "{method}: order {order}, {errors:?}"
        );
    }
}

/// Linear momentum is kept; energy and angular momentum are to the order of the method, the latter
/// to rounding by central differences, whose forces act at the positions between which velocities
/// change.
#[test]
fn budgets_of_momentum_and_energy_are_kept() {
    for (method, known) in super::dynamics::METHODS {
        let (_, coarse) = tumble(method, 192);
        let (_, fine) = tumble(method, 384);
        let [energy, _, angular] = [0, 1, 2].map(|k| super::dynamics::order(&[coarse[k], fine[k]]));
        assert!(fine[1] < 1e-8, "{method}: {}", fine[1]);
        // Not only their order: an integrator that lost a hundred times as much would have that
        // too.
        let most = match method {
            "euler" => [0.015, 5e-5],
            "bdf2" => [2.5e-5, 6e-7],
            _ => [1e-5, 3e-7],
        };
        assert!(
            fine[0] < most[0] && fine[2] < most[1],
            "{method}: {fine:?} of energy and angular momentum"
        );
        // The energy that numerical damping takes is of a higher order than the method where motion
        // is smooth.
        assert!(
            energy > known - super::dynamics::SLACK,
            "{method}: {energy}"
        );
        if method == "central" {
            assert!(fine[2] < 1e-13, "{}", fine[2]);
        } else {
            assert!(
                (angular - known).abs() < super::dynamics::SLACK,
                "{method}: {angular}"
            );
        }
    }
}

pub fn curves() -> Vec<Curve> {
    let exact = exact();
    let (series, found) = orders(|method| errors(method, &exact));
    vec![Curve {
        title: "Orders in time of a sheet that tumbles".into(),
        x: Axis::logarithmic("step, s"),
        y: Axis::logarithmic("error of positions, m"),
        found,
        series,
    }]
}
