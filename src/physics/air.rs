//! Drag and pressure of the air on a triangle.
//!
//! Let `w` be the triangle's velocity relative to the air, at its middle, `n` its normal and `A`
//! its area. The force is `F = −½ ρ A (Cₙ |w·n| (w·n) n + Cₜ |wₜ| wₜ)`. Here `wₜ` is the part of
//! `w` in the triangle's plane. That is the drag of a plate, quadratic in the speed (e.g. Hoerner,
//! Fluid-Dynamic Drag, ch. 3). A third acts on each corner.
//!
//! It is made implicit with the speeds `|w·n|` and `|wₜ|` of the step's beginning: `F = −B w` with
//! `B = ½ ρ A (Cₙ |w·n| n nᵀ + Cₜ |wₜ| (I − n nᵀ))`, symmetric and positive semidefinite. So is
//! what it adds to the system, a ninth of `B` for each pair of corners. Air can then stop cloth
//! within a step and not throw it back, however long the step; at constant speed the force is
//! exact.
//!
//! A pressure `p` behind the triangle pushes with `p A n`, a third at each corner, by the shape at
//! the step's beginning. Over a closed mesh these forces are −p ∂V/∂x of its volume V, so that they
//! neither push nor turn it as a whole.

use glam::{DMat3, DVec3};

use super::element::{Corners, Element, Times};
use super::membrane::outer;
use super::wind::Wind;

/// The air around the cloth.
#[derive(Clone, Debug, PartialEq)]
pub struct Air {
    /// Its velocity.
    pub wind: Wind,
    /// Density in kg/m³.
    pub density: f64,
}

/// Force on a triangle and its derivative.
#[derive(Clone, Copy, Debug)]
pub struct Drag {
    /// Force on the whole triangle in N.
    pub force: DVec3,
    /// `B = −∂F/∂v` in kg/s.
    pub resistance: DMat3,
}

impl Air {
    /// Drag on a triangle with corners at `x` (m) that move with `v` (m/s); `coefficients` are
    /// those of motion along the normal and in the plane.
    #[must_use]
    pub fn drag(&self, x: [DVec3; 3], v: [DVec3; 3], coefficients: [f64; 2]) -> Drag {
        let doubled = (x[1] - x[0]).cross(x[2] - x[0]);
        let normal = doubled.normalize_or_zero();
        let relative = (v[0] + v[1] + v[2]) / 3.0 - self.wind.at((x[0] + x[1] + x[2]) / 3.0);
        let across = relative.dot(normal);
        let along = (relative - normal * across).length();
        let scale = 0.25 * self.density * doubled.length();
        let (face, skin) = (
            scale * coefficients[0] * across.abs(),
            scale * coefficients[1] * along,
        );
        let resistance =
            outer(normal, normal) * (face - skin) + DMat3::from_diagonal(DVec3::splat(skin));
        Drag {
            force: -(resistance * relative),
            resistance,
        }
    }
}

/// A triangle that the air drags at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Panel<'a> {
    pub(crate) air: &'a Air,
    /// The coefficients of motion along the normal and in the plane.
    pub(crate) coefficients: [f64; 2],
    /// The pressure in Pa by which the air behind it exceeds that before it.
    pub(crate) pressure: f64,
}

/// A panel as a system has it.
#[derive(Debug)]
pub(crate) struct LinearisedPanel {
    block: DMat3,
    impulse: DVec3,
}

impl Element<3> for Panel<'_> {
    type Linearised = LinearisedPanel;

    #[inline]
    fn linearise(&self, corners: Corners<3>, times: &Times) -> LinearisedPanel {
        let drag = self.air.drag(corners.x, corners.v, self.coefficients);
        let [a, b, c] = corners.x;
        let pushed = (b - a).cross(c - a) * (0.5 * self.pressure);
        LinearisedPanel {
            block: drag.resistance * (times.tau / 9.0),
            impulse: (drag.force + pushed) * (times.tau / 3.0),
        }
    }

    #[inline]
    fn row(&self, at: &LinearisedPanel, _: usize, mut add: impl FnMut(usize, DMat3)) -> DVec3 {
        for column in 0..3 {
            add(column, at.block);
        }
        at.impulse
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::wind::WindTable;
    use super::*;

    #[test]
    fn drag_is_that_of_a_plate() {
        let air = Air {
            wind: Wind::Uniform(DVec3::X),
            density: 1.2,
        };
        let x = [DVec3::ZERO, DVec3::X * 0.2, DVec3::Y * 0.1];
        let v = DVec3::new(1.0, -3.0, -2.0);
        let drag = air.drag(x, [v; 3], [1.5, 0.1]);
        // Half the density times area, times coefficient, times the square of the speed.
        let half = 0.5 * 1.2 * 0.01;
        assert!((drag.force.z - half * 1.5 * 4.0).abs() < 1e-15);
        assert!((drag.force.y - half * 0.1 * 9.0).abs() < 1e-15);
        assert_eq!(drag.force.x, 0.0);
        for direction in [DVec3::X, DVec3::Z, DVec3::new(0.3, -0.5, 0.8)] {
            assert!(direction.dot(drag.resistance * direction) >= 0.0);
        }
        assert_eq!(drag.resistance, drag.resistance.transpose());
        let still = air.drag(x, [DVec3::X; 3], [1.5, 0.1]);
        assert_eq!(still.force, DVec3::ZERO);
    }

    /// A wall of height H in wind that grows evenly from 0 to W is pushed by ρ C b W² H/6: by the
    /// middles of n rows of triangles, less a part of about 1/n².
    #[test]
    fn a_wall_in_wind_that_grows_with_height_is_pushed_as_the_integral_says() {
        let (density, drag, wind, height, n) = (1.2, 1.1, 8.0, 3.0, 50);
        let table = WindTable {
            lines: [vec![], vec![], vec![0.0, height]],
            velocities: vec![DVec3::ZERO, DVec3::X * wind],
        };
        let air = Air {
            wind: Wind::Table {
                table: Arc::new(table),
                strength: 1.0,
            },
            density,
        };
        let side = height / f64::from(n);
        let mut force = DVec3::ZERO;
        for row in 0..n {
            let at = |y: f64, z: f64| DVec3::new(0.0, y * side, (f64::from(row) + z) * side);
            for corners in [
                [(0.0, 0.0), (1.0, 0.0), (1.0, 1.0)],
                [(0.0, 0.0), (1.0, 1.0), (0.0, 1.0)],
            ] {
                let corners = corners.map(|(y, z)| at(y, z));
                force += air.drag(corners, [DVec3::ZERO; 3], [drag, 0.0]).force;
            }
        }
        let known = density * drag * side * wind * wind * height / 6.0;
        assert!((force.x / known - 1.0).abs() < 1e-3, "{} {known}", force.x);
        assert!(force.y.abs() + force.z.abs() < 1e-12);
    }
}
