//! Bending by the angle between two triangles, with a rest angle [Bridson 2003, §1.4].
//!
//! Forces act along `u = ∂θ/∂x`, the one motion of four corners that bends and neither stretches
//! nor moves them: `Fᵢ = −2q (sin(θ/2) − sin(θ₀/2)) uᵢ`, Bridson's with `kᵉ = 4D`, for a rigidity
//! `D` and the prefactor `q = D |e|²/(A₁ + A₂)` of the quadratic model ([`super::bending`]) or one
//! found from the mesh ([`super::rigidity`]). The energy whose gradient that is has the curvature
//! `q cos(θ/2)` in `θ`, which no fold makes negative: stiffness is `q cos(θ/2) u uᵀ`, positive
//! semidefinite. The change of `u` is left out, which is proportional to the moment and of either
//! sign.

use bytemuck::{Pod, Zeroable};
use glam::{DMat3, DVec3};

use super::element::{Corners, Element, Times};
use super::membrane::outer;

use crate::heap_bytes::owns_no_heap;

/// An inner edge with the corners opposite to it.
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct Fold {
    /// The edge's ends, then the corners opposite to it.
    pub vertices: [u32; 4],
    /// Moment per angle of a shallow fold, `q` in N m.
    pub stiffness: f64,
    /// `sin(θ₀/2)` of the angle at rest.
    pub rest: f64,
    /// Stiffness-proportional damping in s.
    pub damping: f64,
}

owns_no_heap!(Fold);

/// The response of a fold at some positions: its moment, with derivatives.
#[derive(Clone, Copy, Debug)]
pub struct FoldState {
    /// `∂θ/∂xᵢ` in 1/m.
    pub mode: [DVec3; 4],
    /// The force on corner `i` is `−moment · mode[i]`, in N m.
    pub moment: f64,
    /// Its derivative by the angle, not negative, in N m.
    pub stiffness: f64,
}

impl Fold {
    /// Takes the angle at rest from `corners` in m, in the order of `vertices`; `q` in N m,
    /// `damping` in s.
    #[must_use]
    pub fn new(vertices: [u32; 4], corners: [DVec3; 4], q: f64, damping: f64) -> Self {
        Self {
            vertices,
            stiffness: q,
            rest: half_angle(normals(corners), corners[1] - corners[0])[0],
            damping,
        }
    }

    /// Bending energy in J, zero at rest.
    #[must_use]
    pub fn energy(&self, x: [DVec3; 4]) -> f64 {
        // The integral of 2q (sin(θ/2) − sin(θ₀/2)) from θ₀ on.
        let (angle, rest) = (angle(x), 2.0 * libm::asin(self.rest));
        let cosines = libm::cos(0.5 * rest) - libm::cos(0.5 * angle);
        2.0 * self.stiffness * (2.0 * cosines - self.rest * (angle - rest))
    }

    /// Moment, mode and stiffness at positions in m; a triangle without area has no angle and does
    /// nothing.
    #[must_use]
    pub fn state(&self, x: [DVec3; 4]) -> FoldState {
        let sides = normals(x);
        let Some(mode) = bending_mode(x, sides) else {
            return FoldState {
                mode: [DVec3::ZERO; 4],
                moment: 0.0,
                stiffness: 0.0,
            };
        };
        let [sine, cosine] = half_angle(sides, x[1] - x[0]);
        FoldState {
            mode,
            moment: 2.0 * self.stiffness * (sine - self.rest),
            stiffness: self.stiffness * cosine,
        }
    }
}

/// A fold as a system has it.
#[derive(Debug)]
pub(crate) struct LinearisedFold {
    mode: [DVec3; 4],
    /// The impulse on corner `i` is `mode[i]` times this.
    impulse: f64,
    /// The block of corners `i` and `j` is `mode[i] mode[j]ᵀ` times this.
    stiffness: f64,
}

impl Element<4> for Fold {
    type Linearised = LinearisedFold;

    #[inline]
    fn linearise(&self, corners: Corners<4>, times: &Times) -> LinearisedFold {
        let state = self.state(corners.x);
        let damped = (times.stiff + self.damping) * state.stiffness;
        let begun = (times.shift + self.damping) * state.stiffness;
        let rate: f64 = (state.mode.iter().zip(corners.v))
            .map(|(mode, v)| mode.dot(v))
            .sum();
        let moment = state.moment + begun * rate;
        LinearisedFold {
            mode: state.mode,
            impulse: -moment * times.tau,
            stiffness: damped * times.tau,
        }
    }

    #[inline]
    fn row(&self, at: &LinearisedFold, row: usize, mut add: impl FnMut(usize, DMat3)) -> DVec3 {
        for (column, mode) in at.mode.into_iter().enumerate() {
            add(column, outer(at.mode[row], mode) * at.stiffness);
        }
        at.mode[row] * at.impulse
    }
}

/// `∂θ/∂x` of the angle between the triangles beside the edge `x₀x₁`, in 1/m, from their
/// [`normals`] too; `None` if there is none.
fn bending_mode(x: [DVec3; 4], [n1, n2]: [DVec3; 2]) -> Option<[DVec3; 4]> {
    let [x0, x1, x2, x3] = x;
    let edge = x1 - x0;
    let length = edge.length();
    // [Bridson 2003, §1.4] with his corners 1 to 4 being ours 2, 3, 0, 1.
    let (s1, s2) = (n1.length_squared(), n2.length_squared());
    if s1.min(s2) <= f64::MIN_POSITIVE || length <= f64::MIN_POSITIVE {
        return None;
    }
    let (m1, m2) = (n1 / s1, n2 / s2);
    let along = edge / length;
    Some([
        m1 * (x2 - x1).dot(along) + m2 * (x3 - x1).dot(along),
        -(m1 * (x2 - x0).dot(along) + m2 * (x3 - x0).dot(along)),
        m1 * length,
        m2 * length,
    ])
}

/// Normals of the triangles beside the edge `x₀x₁`, of twice their areas.
fn normals([x0, x1, x2, x3]: [DVec3; 4]) -> [DVec3; 2] {
    [(x2 - x0).cross(x2 - x1), (x3 - x1).cross(x3 - x0)]
}

/// Sine and cosine of half the angle between two normals around an edge: roots only, which are the
/// same on every machine.
fn half_angle([n1, n2]: [DVec3; 2], edge: DVec3) -> [f64; 2] {
    let (a, b) = (n1.normalize_or_zero(), n2.normalize_or_zero());
    let (sine, cosine) = (0.5 * (a - b).length(), 0.5 * (a + b).length());
    let backwards = n2.cross(n1).dot(edge) < 0.0;
    [if backwards { -sine } else { sine }, cosine]
}

/// The angle between the normals of two triangles beside the edge `x₀x₁`, in rad; zero if flat.
pub(super) fn angle(x: [DVec3; 4]) -> f64 {
    let [n1, n2] = normals(x);
    let along = (x[1] - x[0]).normalize_or_zero();
    libm::atan2(n2.cross(n1).dot(along), n1.dot(n2))
}

/// The angle between the triangles, and `∂θ/∂x`; `None` if there is none.
pub(super) fn angle_and_mode(x: [DVec3; 4]) -> Option<(f64, [DVec3; 4])> {
    Some((angle(x), bending_mode(x, normals(x))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bent(angle: f64) -> [DVec3; 4] {
        let turn = glam::DQuat::from_axis_angle(DVec3::new(0.2, 0.9, -0.3).normalize(), 0.7);
        [
            DVec3::ZERO,
            DVec3::X,
            DVec3::new(0.3, 0.8, 0.0),
            DVec3::new(0.6, -0.7 * angle.cos(), 0.7 * angle.sin()),
        ]
        .map(|p| turn * p + DVec3::ONE)
    }

    #[test]
    fn forces_are_minus_the_gradient_of_the_energy() {
        for rest in [0.0, 0.4, -1.0] {
            let fold = Fold::new([0, 1, 2, 3], bent(rest), 1e-2, 0.0);
            assert!(fold.energy(bent(rest)).abs() < 1e-15);
            for now in [-2.0, -0.5, 0.0, 0.3, 1.5, 3.0] {
                let x = bent(now);
                let state = fold.state(x);
                let step = 1e-6;
                for corner in 0..4 {
                    for axis in [DVec3::X, DVec3::Y, DVec3::Z] {
                        let energy = |sign: f64| {
                            let mut y = x;
                            y[corner] += axis * (sign * step);
                            fold.energy(y)
                        };
                        let slope = (energy(1.0) - energy(-1.0)) / (2.0 * step);
                        let force = -state.moment * state.mode[corner].dot(axis);
                        assert!(
                            (force + slope).abs() < 1e-8,
                            "{rest} {now} {corner}: {force} {slope}"
                        );
                    }
                }
                assert!(state.stiffness >= 0.0);
                // No momentum, no angular momentum.
                let sum: DVec3 = state.mode.iter().sum();
                let turning: DVec3 = (0..4).map(|i| x[i].cross(state.mode[i])).sum();
                assert!(sum.length() < 1e-13 && turning.length() < 1e-13);
            }
        }
    }

    #[test]
    fn a_collapsed_fold_exerts_no_force() {
        let fold = Fold::new([0, 1, 2, 3], bent(0.2), 1.0, 0.0);
        assert_eq!(fold.state([DVec3::ONE; 4]).moment, 0.0);
    }
}
