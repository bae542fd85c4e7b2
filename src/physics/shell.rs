//! Bending of a triangle by the angles at its three edges, with rest angles: what [`super::plate`]
//! is to hinges, this is to folds ([`super::fold`]).
//!
//! A fold tells `J = |e| (θ − θ₀)` of how a sheet is curved more than at rest, and the three of a
//! triangle tell its curvature as three hinges do. The energy is `½ Σ Cₑ Cₑ′ (θₑ − θₑ₀)(θₑ′ −
//! θₑ′₀)` with a constant coupling `C`, symmetric and positive semidefinite, which is found at
//! rest, so that moments are linear in angles. Stiffness is `Σ C u uᵀ` with the motions `u = ∂θ/∂x`
//! of [Bridson 2003, §1.4], positive semidefinite; what is left out is the change of `u`, as for
//! folds.

use std::f64::consts::PI;

use bytemuck::{Pod, Zeroable};
use glam::{DMat3, DVec3};

use super::element::{Corners, Element, Times};
use super::fold::{angle, angle_and_mode};
use super::membrane::outer;
use super::plate::places;

use crate::heap_bytes::owns_no_heap;

/// A triangle and the corners beyond its edges, and how its angles are resisted.
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct Shell {
    /// The triangle's corners, then those beyond its edges from corner `i` to `i + 1`; where such
    /// an edge is at a border, corner `i` again.
    pub vertices: [u32; 6],
    /// The moment at one edge by the angle at another, in N m; zero at a border.
    pub coupling: [[f64; 3]; 3],
    /// Angles at rest in rad.
    pub rest: [f64; 3],
    /// Stiffness-proportional damping in s.
    pub damping: f64,
}

owns_no_heap!(Shell);

/// The response of a shell at some positions: its moments, with derivatives.
#[derive(Clone, Copy, Debug)]
pub struct ShellState {
    /// The derivatives `∂θ/∂xᵢ` of each edge in 1/m: zero for corners that do not turn it.
    pub modes: [[DVec3; 6]; 3],
    /// The force on corner `i` is `−Σ moments[e] · modes[e][i]`, in N m.
    pub moments: [f64; 3],
}

impl Shell {
    /// Takes angles at rest from positions in the order of `vertices`.
    #[must_use]
    pub fn at_rest(mut self, corners: [DVec3; 6]) -> Self {
        self.rest = self.angles(corners);
        self
    }

    /// Whether there is a triangle beyond an edge.
    fn is_inner(&self, edge: usize) -> bool {
        self.vertices[3 + edge] != self.vertices[edge]
    }

    fn angles(&self, x: [DVec3; 6]) -> [f64; 3] {
        std::array::from_fn(|edge| {
            if self.is_inner(edge) {
                angle(places(edge).map(|place| x[place]))
            } else {
                0.0
            }
        })
    }

    /// Bending energy in J, zero at rest.
    #[must_use]
    pub fn energy(&self, x: [DVec3; 6]) -> f64 {
        let angles = self.angles(x);
        let more: [f64; 3] = std::array::from_fn(|edge| turned(angles[edge], self.rest[edge]));
        0.5 * dot(more, self.moments_of(more))
    }

    /// The moments of some angles.
    #[must_use]
    pub(crate) fn moments_of(&self, angles: [f64; 3]) -> [f64; 3] {
        self.coupling.map(|row| dot(row, angles))
    }

    /// Moments and modes at positions in m; an edge beside a triangle without area has no angle and
    /// turns nothing.
    #[must_use]
    pub fn state(&self, x: [DVec3; 6]) -> ShellState {
        let mut modes = [[DVec3::ZERO; 6]; 3];
        let mut more = [0.0; 3];
        for edge in (0..3).filter(|&edge| self.is_inner(edge)) {
            let corners = places(edge).map(|place| x[place]);
            let Some((angle, mode)) = angle_and_mode(corners) else {
                continue;
            };
            for (place, of_corner) in places(edge).into_iter().zip(mode) {
                modes[edge][place] = of_corner;
            }
            more[edge] = turned(angle, self.rest[edge]);
        }
        ShellState {
            modes,
            moments: self.moments_of(more),
        }
    }
}

impl ShellState {
    /// How fast angles turn, in rad/s, if corners move with `v` in m/s.
    #[must_use]
    pub fn rates(&self, v: [DVec3; 6]) -> [f64; 3] {
        (self.modes).map(|mode| mode.iter().zip(v).map(|(u, v)| u.dot(v)).sum())
    }

    /// The pull on a corner against moments.
    #[must_use]
    pub fn pull(&self, moments: [f64; 3], corner: usize) -> DVec3 {
        (self.modes.iter().zip(moments))
            .map(|(mode, moment)| mode[corner] * moment)
            .sum()
    }
}

/// A shell as a system has it.
#[derive(Debug)]
pub(crate) struct LinearisedShell {
    state: ShellState,
    /// The impulses on corners are what pulls at them against these.
    moments: [f64; 3],
    /// The factor of modes in blocks.
    damped: f64,
}

impl Element<6> for Shell {
    type Linearised = LinearisedShell;

    #[inline]
    fn linearise(&self, corners: Corners<6>, times: &Times) -> LinearisedShell {
        let state = self.state(corners.x);
        let begun = state.rates(corners.v);
        let begun = begun.map(|rate| rate * (times.shift + self.damping));
        let more = self.moments_of(begun);
        LinearisedShell {
            moments: [0, 1, 2].map(|edge| (state.moments[edge] + more[edge]) * -times.tau),
            damped: (times.stiff + self.damping) * times.tau,
            state,
        }
    }

    #[inline]
    fn row(&self, at: &LinearisedShell, row: usize, mut add: impl FnMut(usize, DMat3)) -> DVec3 {
        let modes = &at.state.modes;
        // The turns of all edges as this corner moves, as moments.
        let turn = |edge: usize| modes[edge][row] * at.damped;
        let [p, q, r] = self
            .coupling
            .map(|by| turn(0) * by[0] + turn(1) * by[1] + turn(2) * by[2]);
        let columns = modes[0].iter().zip(&modes[1]).zip(&modes[2]);
        for (column, ((&a, &b), &c)) in columns.enumerate() {
            add(column, outer(p, a) + outer(q, b) + outer(r, c));
        }
        at.state.pull(at.moments, row)
    }
}

/// The turn from one angle to another the short way, in rad.
fn turned(angle: f64, rest: f64) -> f64 {
    let more = angle - rest;
    if more > PI {
        more - 2.0 * PI
    } else if more < -PI {
        more + 2.0 * PI
    } else {
        more
    }
}

fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

#[cfg(test)]
mod tests {
    use glam::DVec2;

    use super::super::plate::{Compliance, Unfolded};
    use super::super::rigidity;
    use super::*;
    use crate::scene::Material;

    fn flat() -> [DVec3; 6] {
        [
            [0.0, 0.0],
            [1.0, 0.1],
            [0.4, 0.9],
            [0.5, -0.8],
            [1.5, 0.9],
            [-0.5, 0.8],
        ]
        .map(|[x, y]| DVec3::new(x, y, 0.0))
    }

    fn unfolded(inner: [bool; 3]) -> (Unfolded, Compliance) {
        let material = Material {
            bending: [1.0, 0.2],
            ..Material::COTTON
        };
        let [a, b, c, beyond @ ..] = flat();
        let beyond = [0, 1, 2].map(|edge| inner[edge].then_some(beyond[edge]));
        let of = Unfolded::new([a, b, c], beyond, DVec2::new(0.6, 0.8)).unwrap();
        (of, Compliance::new(rigidity::law(&material)))
    }

    /// Bent a little from flat, it is the plate.
    #[test]
    fn a_shallow_shell_is_a_plate() {
        for (inner, vertices) in [
            ([true; 3], [0, 1, 2, 3, 4, 5]),
            ([true, false, true], [0, 1, 2, 3, 1, 5]),
        ] {
            let (of, compliance) = unfolded(inner);
            let (plate, _) = of.plate(vertices, &compliance);
            let shell = of.shell(vertices, &compliance).at_rest(flat());
            for (a, b, c) in [(1.0, 0.0, 0.0), (0.3, -0.5, 0.7), (0.0, 1.0, 0.2)] {
                let bent = flat().map(|p| {
                    p + DVec3::Z * (1e-4 * (a * p.x * p.x + b * p.y * p.y + c * p.x * p.y))
                });
                let ratio = shell.energy(bent) / plate.energy(bent);
                assert!((ratio - 1.0).abs() < 1e-6, "{ratio}");
            }
        }
    }

    #[test]
    fn forces_are_minus_the_gradient_of_the_energy() {
        for inner in [[true; 3], [false, true, true]] {
            let (of, compliance) = unfolded(inner);
            let vertices = [0, 1, 2, if inner[0] { 3 } else { 0 }, 4, 5];
            let wave = |p: DVec3, size: f64| {
                p + DVec3::new(0.1 * p.y, 0.2 * p.x * p.y, p.x * p.x - p.y) * size
            };
            for (at_rest, size) in [(0.0, 0.3), (0.5, 0.0), (-0.4, 1.0)] {
                let shell = of.shell(vertices, &compliance);
                let shell = shell.at_rest(flat().map(|p| wave(p, at_rest)));
                assert!(shell.energy(flat().map(|p| wave(p, at_rest))) < 1e-25);
                let x = flat().map(|p| wave(p, size));
                let state = shell.state(x);
                let step = 1e-6;
                for corner in 0..6 {
                    for axis in [DVec3::X, DVec3::Y, DVec3::Z] {
                        let energy = |sign: f64| {
                            let mut y = x;
                            y[corner] += axis * (sign * step);
                            shell.energy(y)
                        };
                        let slope = (energy(1.0) - energy(-1.0)) / (2.0 * step);
                        let pull = state.pull(state.moments, corner).dot(axis);
                        assert!((pull - slope).abs() < 1e-8, "{corner}: {pull} {slope}");
                    }
                }
                // No momentum, no angular momentum.
                let pulls: [DVec3; 6] =
                    std::array::from_fn(|corner| state.pull(state.moments, corner));
                let turning: DVec3 = x.iter().zip(pulls).map(|(x, pull)| x.cross(pull)).sum();
                assert!(pulls.iter().sum::<DVec3>().length() < 1e-12 && turning.length() < 1e-12);
            }
        }
    }

    #[test]
    fn a_collapsed_shell_exerts_no_force() {
        let (of, compliance) = unfolded([true; 3]);
        let shell = of.shell([0, 1, 2, 3, 4, 5], &compliance).at_rest(flat());
        assert_eq!(shell.state([DVec3::ONE; 6]).moments, [0.0; 3]);
    }
}
