//! Springs: the mass-spring model, an alternative to finite elements and hinges.
//!
//! A spring along each edge of the mesh resists stretching, one between the corners opposite to an
//! inner edge resists bending [SSIF09, §3]. Stiffness follows from the mesh so that the sheet is as
//! stiff whatever its cells: `k = E (A₁ + A₂)/l²`, with the areas beside the edge ([Bridson 2003,
//! §1.2] after Van Gelder 1998). On equilateral triangles that is the sheet of Young's modulus `E`
//! (times thickness) and Poisson's ratio 1/3 exactly; on others, it depends on the direction.
//!
//! Forces are made implicit as in [Selle 2008, §5.5.1]: the direction is that of the step's
//! beginning, so that the stiffness `k d dᵀ` is positive semidefinite whatever the length. To it is
//! added what tension gives against sideways motion, `k (1 − l₀/l)(I − d dᵀ)` where that is
//! positive: without it a taut sheet is unstable at long steps.

use bytemuck::{Pod, Zeroable};
use glam::{DMat3, DVec2, DVec3};

use super::element::{Corners, Element, Times};
use super::membrane::outer;

use crate::heap_bytes::owns_no_heap;

/// A spring between two vertices.
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct Spring {
    /// Its ends.
    pub vertices: [u32; 2],
    /// Length without force, in m.
    pub rest: f64,
    /// Force per lengthening in N/m.
    pub stiffness: f64,
    /// Stiffness-proportional damping in s.
    pub damping: f64,
    /// [`Self::ALONG`] or [`Self::ACROSS`] an edge.
    pub lies: u64,
}

owns_no_heap!(Spring);

/// The response of a spring at some positions: its force, with derivatives.
#[derive(Clone, Copy, Debug)]
pub struct SpringState {
    /// Force on the first end in N; the second has the opposite.
    pub force: DVec3,
    /// `−∂f/∂x` along the spring, in N/m; used for elasticity and for damping.
    pub elastic: DMat3,
    /// The part of it that tension gives sideways, in N/m.
    pub geometric: DMat3,
}

impl Spring {
    /// It lies along an edge and resists stretching.
    pub const ALONG: u64 = 0;
    /// It lies across an edge and resists bending.
    pub const ACROSS: u64 = 1;

    /// Whether it lies across an edge and resists bending.
    #[must_use]
    pub fn bends(&self) -> bool {
        self.lies == Self::ACROSS
    }

    /// The spring of an edge between `ends` in m, for a sheet of Young's modulus times thickness
    /// `stretch` in N/m; `areas` in m² are those of the triangles beside it, together.
    #[must_use]
    pub fn edge(vertices: [u32; 2], ends: [DVec3; 2], areas: f64, stretch: f64) -> Self {
        let rest = ends[0].distance(ends[1]);
        Self {
            vertices,
            rest,
            stiffness: stretch * areas / (rest * rest),
            damping: 0.0,
            lies: Self::ALONG,
        }
    }

    /// The spring between the corners opposite to an inner edge.
    ///
    /// A fold by `θ` shortens it by `h₁ h₂ θ²/2l₀` only, `h` being the heights over the edge: flat
    /// cloth resists bending not at all, and the moment grows as `θ³`. So it can have the rigidity
    /// of a sheet at one radius of curvature alone. With `prefactor` `q` in N m, the moment of a
    /// fold being `q θ`, it has it at `radius` in m: `k = 2 q l₀²/(h₁ h₂ θ)²` with `θ = (h₁ +
    /// h₂)/2r`.
    #[must_use]
    pub fn across(hinge: [u32; 4], corners: [DVec3; 4], prefactor: f64, radius: f64) -> Self {
        let [x0, x1, x2, x3] = corners;
        let edge = x1 - x0;
        let height = |p: DVec3| edge.cross(p - x0).length() / edge.length();
        let (h1, h2) = (height(x2), height(x3));
        // Unfolded: what the mesh has of folds at rest is flattened, as by hinges.
        let foot = |p: DVec3| edge.dot(p - x0) / edge.length();
        let rest = DVec2::new(foot(x2) - foot(x3), h1 + h2).length();
        let angle = (h1 + h2) / (2.0 * radius);
        let lever = h1 * h2 * angle / rest;
        Self {
            vertices: [hinge[2], hinge[3]],
            rest,
            stiffness: 2.0 * prefactor / (lever * lever),
            damping: 0.0,
            lies: Self::ACROSS,
        }
    }

    /// The spring with stiffness-proportional damping in s.
    #[must_use]
    pub fn damped(self, damping: f64) -> Self {
        Self { damping, ..self }
    }

    /// `k l²`: twice the energy in J of stretching it, over the square of the strain.
    pub(super) fn stretching(&self) -> f64 {
        self.stiffness * self.rest * self.rest
    }

    /// Elastic energy in J.
    #[must_use]
    pub fn energy(&self, x: [DVec3; 2]) -> f64 {
        let longer = x[0].distance(x[1]) - self.rest;
        0.5 * self.stiffness * longer * longer
    }

    /// Force and stiffness at positions in m; nothing for a spring of no length, which has no
    /// direction.
    #[must_use]
    pub fn state(&self, x: [DVec3; 2]) -> SpringState {
        let between = x[1] - x[0];
        let length = between.length();
        if length <= f64::MIN_POSITIVE {
            return SpringState {
                force: DVec3::ZERO,
                elastic: DMat3::ZERO,
                geometric: DMat3::ZERO,
            };
        }
        let direction = between / length;
        let along = outer(direction, direction);
        let taut = (self.stiffness * (1.0 - self.rest / length)).max(0.0);
        SpringState {
            force: direction * (self.stiffness * (length - self.rest)),
            elastic: along * self.stiffness,
            geometric: (DMat3::IDENTITY - along) * taut,
        }
    }
}

/// A spring as a system has it.
#[derive(Debug)]
pub(crate) struct LinearisedSpring {
    /// The force on the first end in N.
    force: DVec3,
    block: DMat3,
    tau: f64,
}

impl Element<2> for Spring {
    type Linearised = LinearisedSpring;

    #[inline]
    fn linearise(&self, corners: Corners<2>, times: &Times) -> LinearisedSpring {
        let state = self.state(corners.x);
        let after = |time: f64| state.elastic * (time + self.damping) + state.geometric * time;
        let (block, begun) = (after(times.stiff), after(times.shift));
        let [v0, v1] = corners.v;
        LinearisedSpring {
            force: state.force + begun * (v1 - v0),
            block,
            tau: times.tau,
        }
    }

    #[inline]
    fn row(&self, at: &LinearisedSpring, row: usize, mut add: impl FnMut(usize, DMat3)) -> DVec3 {
        for column in 0..2 {
            let share = if row == column { at.tau } else { -at.tau };
            add(column, at.block * share);
        }
        let sign = if row == 0 { 1.0 } else { -1.0 };
        at.force * (sign * at.tau)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPRING: Spring = Spring {
        vertices: [0, 1],
        rest: 0.5,
        stiffness: 30.0,
        damping: 0.0,
        lies: Spring::ALONG,
    };

    /// Stretched, the stiffness is the exact derivative; pressed, what is left out is what would be
    /// negative.
    #[test]
    fn forces_and_stiffness_are_derivatives_of_the_energy() {
        let x = [DVec3::new(0.1, 0.2, -0.1), DVec3::new(0.5, 0.6, 0.3)];
        assert!(x[0].distance(x[1]) > SPRING.rest);
        let step = 1e-6;
        let state = SPRING.state(x);
        for axis in [DVec3::X, DVec3::Y, DVec3::Z] {
            let moved = |sign: f64| [x[0] + axis * (sign * step), x[1]];
            let slope = (SPRING.energy(moved(1.0)) - SPRING.energy(moved(-1.0))) / (2.0 * step);
            assert!((state.force.dot(axis) + slope).abs() < 1e-7);
            let forces = [1.0, -1.0].map(|sign| SPRING.state(moved(sign)).force);
            let slope = (forces[0] - forces[1]) / (2.0 * step);
            assert!((slope + (state.elastic + state.geometric) * axis).length() < 1e-6);
        }
        assert_eq!(SPRING.state(x.map(|x| x * 0.5)).geometric, DMat3::ZERO);
        assert_eq!(SPRING.state([x[0]; 2]).force, DVec3::ZERO);
    }

    /// Folded about its edge like a cylinder of the radius it is made for, the spring's moment is
    /// `q θ`.
    #[test]
    fn a_bending_spring_has_its_rigidity_at_its_radius() {
        let (q, radius, h) = (2e-5, 0.5, 0.01);
        let fold = |angle: f64| {
            let half = 0.5 * angle;
            let side = |sign: f64| DVec3::new(0.003, sign * h * half.cos(), h * half.sin());
            [DVec3::ZERO, DVec3::X * 0.01, side(1.0), side(-1.0)]
        };
        let spring = Spring::across([0, 1, 2, 3], fold(0.0), q, radius);
        let energy = |angle: f64| {
            let x = fold(angle);
            spring.energy([x[2], x[3]])
        };
        let angle = h / radius;
        let step = 1e-4 * angle;
        let moment = (energy(angle + step) - energy(angle - step)) / (2.0 * step);
        assert!((moment / (q * angle) - 1.0).abs() < 1e-3, "{moment}");
    }
}
