//! Rigid zones: vertices whose hits no impulses could resolve move as one body for a step.
//!
//! A zone keeps momentum and angular momentum. It moves by the affine map u = U + ω × r, with U
//! from the momentum and ω = I⁺ L from the angular momentum; I⁺ is the pseudo-inverse, because the
//! vertices of a zone may lie in a plane, on a line or in one place [BFA02 §7.5; SSIF09 §4]. The
//! map x + t u has a determinant of 1 + t² ω², so nothing within a zone crosses. Displacements are
//! linear, as the proof of certification wants them.
//!
//! A zone with a body takes its motion. One with vertices that pins hold takes the rigid motion
//! that fits theirs, if all of them keep to it within the gap that is certified; they themselves go
//! where their pins say.
//!
//! * \[BFA02\] Bridson, Fedkiw, Anderson: Robust treatment of collisions, contact and friction for
//!   cloth animation.
//! * \[SSIF09\] Selle, Su, Irving, Fedkiw: Robust high-resolution cloth using parallelism,
//!   history-based collisions, and accurate friction.

use glam::{DMat3, DVec3};

use super::truncate::Truncate;

/// Eigenvalues of the inertia below this share of its trace count as zero.
const FLAT: f64 = 1e-12;
/// The sweeps of Jacobi's method for eigenvalues: it converges quadratically, and eight are more
/// than matrices of three rows need.
const SWEEPS: usize = 8;

/// Moves the vertices of a zone, ascending, as one body, if it has one motion.
pub(super) fn move_as_one(step: &Truncate<'_>, zone: &[u32], goal: &mut [DVec3]) {
    let body = |&v: &u32| step.body(v);
    let mut bodies: Vec<u32> = zone.iter().filter_map(body).collect();
    bodies.sort_unstable();
    bodies.dedup();
    let free: Vec<u32> = zone.iter().copied().filter(|&v| v < step.movable).collect();
    let is_held = |v: &u32| step.held[*v as usize];
    let held: Vec<u32> = free.iter().copied().filter(is_held).collect();
    let motion = match (&bodies[..], &held[..]) {
        ([], []) => Motion::Rigid(RigidMotion::of(step, &free, goal)),
        ([body], []) => Motion::Body(*body),
        ([], held) => {
            let rigid = RigidMotion::of(step, held, goal);
            let strays = |&v: &u32| {
                let (start, goal) = (step.start[v as usize], goal[v as usize]);
                (start + rigid.displacement(start)).distance(goal) > step.least
            };
            if held.iter().any(strays) {
                return;
            }
            Motion::Rigid(rigid)
        }
        _ => return,
    };
    for v in free.into_iter().filter(|v| !is_held(v)) {
        let start = step.start[v as usize];
        goal[v as usize] = start
            + match &motion {
                Motion::Rigid(rigid) => rigid.displacement(start),
                Motion::Body(body) => step.movers[*body as usize].displacement(start),
            };
    }
}

enum Motion {
    Rigid(RigidMotion),
    Body(u32),
}

/// The displacement U + ω × (x − X) of points that keep their momenta.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct RigidMotion {
    center: DVec3,
    mean: DVec3,
    turn: DVec3,
}

impl RigidMotion {
    fn of(step: &Truncate<'_>, vertices: &[u32], goal: &[DVec3]) -> Self {
        let points = vertices.iter().map(|&v| {
            let v = v as usize;
            (step.masses[v], step.start[v], goal[v] - step.start[v])
        });
        Self::of_points(points)
    }

    /// The motion of points, each with its mass in kg, its place and its displacement in m.
    pub(super) fn of_points(points: impl Iterator<Item = (f64, DVec3, DVec3)> + Clone) -> Self {
        let (mut mass, mut place, mut momentum) = (0.0, DVec3::ZERO, DVec3::ZERO);
        for (m, x, u) in points.clone() {
            mass += m;
            place += x * m;
            momentum += u * m;
        }
        let (center, mean) = (place / mass, momentum / mass);
        let mut angular = DVec3::ZERO;
        let mut inertia = DMat3::ZERO;
        for (m, x, u) in points {
            let r = x - center;
            angular += r.cross(u) * m;
            let outer = DMat3::from_cols(r * r.x, r * r.y, r * r.z);
            inertia += (DMat3::IDENTITY * r.length_squared() - outer) * m;
        }
        Self {
            center,
            mean,
            turn: pseudo_inverse(&inertia) * angular,
        }
    }

    /// The displacement of what is at a place, in m.
    pub(super) fn displacement(&self, x: DVec3) -> DVec3 {
        self.mean + self.turn.cross(x - self.center)
    }
}

/// The pseudo-inverse of a symmetric matrix, by Jacobi's method.
fn pseudo_inverse(matrix: &DMat3) -> DMat3 {
    let mut a = matrix.to_cols_array_2d();
    let mut vectors = DMat3::IDENTITY.to_cols_array_2d();
    for _ in 0..SWEEPS {
        for (p, q) in [(0, 1), (0, 2), (1, 2)] {
            if a[p][q] == 0.0 {
                continue;
            }
            let theta = (a[q][q] - a[p][p]) / (2.0 * a[p][q]);
            let t = theta.signum() / (theta.abs() + (theta * theta + 1.0).sqrt());
            let t = if t.is_finite() { t } else { 0.0 };
            let cosine = 1.0 / (t * t + 1.0).sqrt();
            let sine = t * cosine;
            for row in &mut a {
                let (x, y) = (row[p], row[q]);
                (row[p], row[q]) = (cosine * x - sine * y, sine * x + cosine * y);
            }
            for k in 0..3 {
                let (x, y) = (a[p][k], a[q][k]);
                (a[p][k], a[q][k]) = (cosine * x - sine * y, sine * x + cosine * y);
                let (x, y) = (vectors[p][k], vectors[q][k]);
                (vectors[p][k], vectors[q][k]) = (cosine * x - sine * y, sine * x + cosine * y);
            }
        }
    }
    let trace = a[0][0] + a[1][1] + a[2][2];
    let mut inverse = DMat3::ZERO;
    for k in 0..3 {
        if a[k][k] > FLAT * trace {
            let v = DVec3::from_array(vectors[k]);
            inverse += DMat3::from_cols(v * v.x, v * v.y, v * v.z) * a[k][k].recip();
        }
    }
    inverse
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A point: its mass, its place and its displacement.
    type Point = (f64, DVec3, DVec3);

    fn sums(points: &[Point]) -> (DVec3, DVec3, f64) {
        let momentum = points.iter().map(|&(m, _, u)| u * m).sum();
        let angular = points.iter().map(|&(m, x, u)| x.cross(u) * m).sum();
        let energy = points.iter().map(|&(m, _, u)| m * u.length_squared()).sum();
        (momentum, angular, energy)
    }

    #[test]
    fn a_velocity_that_all_have_in_common_changes_no_zone() {
        let number = |k: usize| ((k * 7919 + 13) as f64 * 0.618).sin();
        let vector = |k: usize| DVec3::new(number(3 * k), number(3 * k + 1), number(3 * k + 2));
        let points: Vec<Point> = (0..50)
            .map(|k| (1.0 + 0.5 * number(k), vector(k), vector(k + 500)))
            .collect();
        let common = DVec3::new(100.0, -20.0, 3.0);
        let motion = RigidMotion::of_points(points.iter().copied());
        let drifting = points.iter().map(|&(m, x, u)| (m, x, u + common));
        let drifting = RigidMotion::of_points(drifting);
        for (_, x, _) in points {
            let apart = drifting.displacement(x) - motion.displacement(x) - common;
            assert!(apart.length() < 1e-12, "{apart}");
        }
    }

    #[test]
    fn zones_of_any_shape_keep_momenta_and_gain_no_energy() {
        let number = |k: usize| ((k * 7919 + 13) as f64 * 0.618).sin();
        let vector = |k: usize| DVec3::new(number(3 * k), number(3 * k + 1), number(3 * k + 2));
        let point = |k: usize, x: DVec3| (1.0 + 0.5 * number(k), x, vector(k + 500));
        let line: Vec<Point> = (0..5)
            .map(|k| point(k, DVec3::new(1.0, 2.0, 3.0) * k as f64))
            .collect();
        let plane = (0..4).map(|k| {
            let (a, b) = (number(k), number(k + 9));
            point(k, DVec3::X * a + DVec3::new(0.0, 1.0, 1.0) * b)
        });
        let place = (0..2).map(|k| point(k, DVec3::ONE)).collect();
        let random = (0..100).map(|k| point(k, vector(k))).collect();
        let zones: [(Vec<Point>, bool); 4] = [
            (line, false),
            (plane.collect(), true),
            (place, false),
            (random, true),
        ];
        for (points, all_axes) in zones {
            let motion = RigidMotion::of_points(points.iter().copied());
            let moved: Vec<Point> = points
                .iter()
                .map(|&(m, x, _)| (m, x, motion.displacement(x)))
                .collect();
            let (momentum, angular, energy) = sums(&points);
            let (momentum_after, angular_after, energy_after) = sums(&moved);
            assert!((momentum - momentum_after).length() < 1e-12);
            assert!(
                energy_after <= energy * (1.0 + 1e-12),
                "{energy} {energy_after}"
            );
            if all_axes {
                let changed = (angular - angular_after).length();
                assert!(changed < 1e-12 * (1.0 + angular.length()), "{changed}");
            }
        }
    }
}
