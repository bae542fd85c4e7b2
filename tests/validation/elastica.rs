//! The heavy elastica: a strip clamped horizontally that bends under its own weight.
//!
//! `θ'' = −Γ (1 − s) cos θ` over the length 1, `θ(0) = 0`, `θ'(1) = 0`, with `Γ = w L³/B` [Bickley
//! 1934; the master curve of Romero et al. 2021]. Solved by shooting.

/// Positions and slope along the strip, in units of its length.
pub struct Elastica {
    /// `[x, drop, θ]` at `s = k/(len − 1)`.
    points: Vec<[f64; 3]>,
}

impl Elastica {
    pub fn new(gamma: f64) -> Self {
        // The curvature at the clamp with which the end is straight.
        let (mut low, mut high) = (0.0, gamma.max((2.0 * gamma).sqrt()) + 1.0);
        for _ in 0..100 {
            let middle = 0.5 * (low + high);
            if Self::shoot(gamma, middle, None) > 0.0 {
                high = middle;
            } else {
                low = middle;
            }
        }
        let mut points = Vec::new();
        Self::shoot(gamma, low, Some(&mut points));
        Self { points }
    }

    /// The curvature at the end; where the strip went is noted.
    fn shoot(gamma: f64, curvature: f64, mut points: Option<&mut Vec<[f64; 3]>>) -> f64 {
        let slope = |s: f64, [theta, bend, ..]: [f64; 4]| {
            [
                bend,
                -gamma * (1.0 - s) * theta.cos(),
                theta.cos(),
                theta.sin(),
            ]
        };
        let mut y = [0.0, curvature, 0.0, 0.0];
        let h = 1.0 / STEPS as f64;
        for step in 0..=STEPS {
            if let Some(points) = &mut points {
                points.push([y[2], y[3], y[0]]);
            }
            if step == STEPS {
                break;
            }
            let s = step as f64 * h;
            let add = |k: [f64; 4], f: f64| std::array::from_fn(|i| y[i] + f * k[i]);
            let k1 = slope(s, y);
            let k2 = slope(s + 0.5 * h, add(k1, 0.5 * h));
            let k3 = slope(s + 0.5 * h, add(k2, 0.5 * h));
            let k4 = slope(s + h, add(k3, h));
            y = std::array::from_fn(|i| {
                y[i] + h / 6.0 * (k1[i] + 2.0 * k2[i] + 2.0 * k3[i] + k4[i])
            });
        }
        y[1]
    }

    /// `[x, drop]` at `s`, straight on before the clamp and after the end.
    pub fn at(&self, s: f64) -> [f64; 2] {
        let last = self.points.len() - 1;
        let place = s * last as f64;
        let k = (place.max(0.0) as usize).min(last - 1);
        let (f, here, next) = (place - k as f64, self.points[k], self.points[k + 1]);
        if s < 0.0 {
            return [s, 0.0];
        }
        [0, 1].map(|i| here[i] + f * (next[i] - here[i]))
    }
}

const STEPS: usize = 2000;

#[test]
fn shooting_finds_the_master_curve() {
    // Γ, drop and x of the tip, recomputed elsewhere as a boundary value problem to 1e-10.
    for (gamma, drop, x) in [
        (1.0, 0.123471402, 0.991246395),
        (10.0, 0.700199716, 0.656353761),
        (100.0, 0.937523935, 0.159223383),
    ] {
        let [found_x, found_drop] = Elastica::new(gamma).at(1.0);
        assert!((found_drop - drop).abs() < 1e-6, "{gamma}: {found_drop}");
        assert!((found_x - x).abs() < 1e-6, "{gamma}: {found_x}");
    }
}
