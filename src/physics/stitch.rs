//! Stitches: springs by which seams pull two borders of cloth together, and hold them.
//!
//! A stitch is between a vertex and a point on an edge. Its energy is `k (|d| − L)²/2` of the
//! vector `d` between them. Its length at rest `L` falls from the distance at the start to nothing,
//! as `1 − 3 s² + 2 s³` of the share `s` of the time that has passed: it begins and ends without
//! a jerk. From then on it is the spring `k d` in all directions alike, which is linear and has no
//! direction to lose where the ends meet.
//!
//! Forces are implicit as those of other springs are ([`super::spring`]): along `d` by `k`, and
//! sideways by the part of `k (1 − L/|d|)` that is not negative.

use bytemuck::{Pod, Zeroable};
use glam::{DMat3, DVec3};

use super::element::{Corners, Element, Times};
use super::membrane::outer;
use crate::heap_bytes::owns_no_heap;

/// The share of a seam's time after which its stitches have no length left. The rest is for the
/// cloth to follow.
const PULLED: f64 = 0.8;

/// A spring between a vertex and a point on an edge.
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub struct Stitch {
    /// The vertex, and the ends of the edge.
    pub vertices: [u32; 3],
    /// The seam that it is of, by its number in the scene.
    pub seam: u32,
    /// The place of the point on the edge: 0 is the first end, 1 the second.
    pub share: f64,
    /// Its length at the start in m.
    pub start: f64,
    /// Force per lengthening in N/m.
    pub stiffness: f64,
    /// Stiffness-proportional damping in s.
    pub damping: f64,
    /// The time in s by which it is closed.
    pub close: f64,
}

owns_no_heap!(Stitch);

impl Stitch {
    /// The vertices of the edge that the point hangs on, one or two.
    pub fn held(&self) -> impl Iterator<Item = u32> + use<> {
        let [_, a, b] = self.vertices;
        let first = (self.share < 1.0).then_some(a);
        first.into_iter().chain((self.share > 0.0).then_some(b))
    }

    /// The pairs of vertices that are neighbours by it.
    pub fn neighbours(&self) -> impl Iterator<Item = [u32; 2]> + use<> {
        let vertex = self.vertices[0];
        self.held().map(move |held| [vertex, held])
    }

    /// The weights of the corners in the vector between the ends.
    fn weights(&self) -> [f64; 3] {
        [-1.0, 1.0 - self.share, self.share]
    }

    /// The vector in m from the vertex to the point, with the corners at `x` (m).
    #[must_use]
    pub fn between(&self, x: [DVec3; 3]) -> DVec3 {
        let [v, a, b] = x;
        (a * (1.0 - self.share) + b * self.share) - v
    }

    /// Its length at rest in m at a time in s.
    #[must_use]
    pub fn rest(&self, time: f64) -> f64 {
        let passed = (time / (PULLED * self.close)).clamp(0.0, 1.0);
        let closed = passed * passed * (3.0 - 2.0 * passed);
        self.start * (1.0 - closed)
    }

    /// The energy in J at a time in s.
    #[must_use]
    pub fn energy(&self, x: [DVec3; 3], time: f64) -> f64 {
        let longer = self.between(x).length() - self.rest(time);
        0.5 * self.stiffness * longer * longer
    }
}

/// A stitch at a time in s.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pulled<'a> {
    pub(crate) of: &'a Stitch,
    pub(crate) time: f64,
}

/// A stitch as a system has it.
#[derive(Debug)]
pub(crate) struct LinearisedStitch {
    /// The force on the point in N.
    force: DVec3,
    block: DMat3,
    weights: [f64; 3],
    tau: f64,
}

impl Pulled<'_> {
    /// The force on the point in N, and `−∂f/∂x` along and across the stitch in N/m.
    fn state(&self, between: DVec3) -> (DVec3, DMat3, DMat3) {
        let (k, rest) = (self.of.stiffness, self.of.rest(self.time));
        let length = between.length();
        if rest <= 0.0 {
            return (
                between * -k,
                DMat3::from_diagonal(DVec3::splat(k)),
                DMat3::ZERO,
            );
        }
        if length <= f64::MIN_POSITIVE {
            return (DVec3::ZERO, DMat3::ZERO, DMat3::ZERO);
        }
        let direction = between / length;
        let along = outer(direction, direction);
        let taut = (k * (1.0 - rest / length)).max(0.0);
        let force = direction * (-k * (length - rest));
        (force, along * k, (DMat3::IDENTITY - along) * taut)
    }
}

impl Element<3> for Pulled<'_> {
    type Linearised = LinearisedStitch;

    fn linearise(&self, corners: Corners<3>, times: &Times) -> LinearisedStitch {
        let (force, elastic, geometric) = self.state(self.of.between(corners.x));
        let after = |time: f64| elastic * (time + self.of.damping) + geometric * time;
        let (block, begun) = (after(times.stiff), after(times.shift));
        LinearisedStitch {
            force: force - begun * self.of.between(corners.v),
            block,
            weights: self.of.weights(),
            tau: times.tau,
        }
    }

    fn row(&self, at: &LinearisedStitch, row: usize, mut add: impl FnMut(usize, DMat3)) -> DVec3 {
        let own = at.weights[row] * at.tau;
        for (column, weight) in at.weights.iter().enumerate() {
            add(column, at.block * (own * weight));
        }
        at.force * own
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STITCH: Stitch = Stitch {
        vertices: [0, 1, 2],
        share: 0.25,
        start: 0.4,
        stiffness: 50.0,
        damping: 0.0,
        close: 1.0,
        seam: 0,
    };

    fn corners() -> [DVec3; 3] {
        [
            DVec3::new(0.1, 0.2, -0.1),
            DVec3::new(0.5, 0.6, 0.3),
            DVec3::new(0.4, 0.7, 0.5),
        ]
    }

    fn system(pulled: &Pulled<'_>, x: [DVec3; 3]) -> ([DVec3; 3], [[DMat3; 3]; 3]) {
        let times = Times {
            tau: 1.0,
            stiff: 1.0,
            shift: 0.0,
        };
        let v = [DVec3::ZERO; 3];
        let at = pulled.linearise(Corners { x, v }, &times);
        let mut blocks = [[DMat3::ZERO; 3]; 3];
        let forces =
            std::array::from_fn(|row| pulled.row(&at, row, |column, b| blocks[row][column] += b));
        (forces, blocks)
    }

    #[test]
    fn a_stitch_has_its_length_at_the_start_and_none_when_it_is_pulled() {
        assert_eq!(STITCH.rest(0.0), 0.4);
        assert!((STITCH.rest(0.4) - 0.2).abs() < 1e-15);
        assert_eq!([0.8, 0.9, 7.0].map(|time| STITCH.rest(time)), [0.0; 3]);
        assert!(
            (0..80)
                .all(|k| STITCH.rest(f64::from(k) / 100.0) > STITCH.rest(f64::from(k + 1) / 100.0))
        );
    }

    #[test]
    fn forces_and_stiffness_are_derivatives_of_the_energy() {
        let (x, step) = (corners(), 1e-6);
        // Stretched at both times; the length at rest is 0.2 m and 0.
        for time in [0.4, 1.0] {
            let pulled = Pulled { of: &STITCH, time };
            let (forces, blocks) = system(&pulled, x);
            assert!(forces.iter().sum::<DVec3>().length() < 1e-12);
            for (corner, axis) in (0..9).map(|k| (k / 3, DVec3::AXES[k % 3])) {
                let moved = |sign: f64| {
                    let mut moved = x;
                    moved[corner] += axis * (sign * step);
                    moved
                };
                let slope = STITCH.energy(moved(1.0), time) - STITCH.energy(moved(-1.0), time);
                assert!((forces[corner].dot(axis) + slope / (2.0 * step)).abs() < 1e-6);
                let ends = [1.0, -1.0].map(|sign| system(&pulled, moved(sign)).0);
                for row in 0..3 {
                    let slope = (ends[0][row] - ends[1][row]) / (2.0 * step);
                    assert!(
                        (slope + blocks[row][corner] * axis).length() < 1e-5,
                        "{row} {corner}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_stitch_whose_ends_meet_pulls_nothing_and_is_stiff_in_all_directions() {
        let [_, a, b] = corners();
        let x = [a * 0.75 + b * 0.25, a, b];
        let (forces, blocks) = system(
            &Pulled {
                of: &STITCH,
                time: 1.0,
            },
            x,
        );
        assert!(forces.iter().all(|f| f.length() < 1e-12));
        assert_eq!(blocks[0][0], DMat3::IDENTITY * 50.0);
        let held = |share| Stitch { share, ..STITCH }.held().collect::<Vec<_>>();
        assert_eq!(
            [held(0.0), held(0.5), held(1.0)],
            [vec![1], vec![1, 2], vec![2]]
        );
    }
}
