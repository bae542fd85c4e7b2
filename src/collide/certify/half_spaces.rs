//! The point of an intersection of half spaces that is nearest to a goal.
//!
//! Planes between features bound how far a vertex may go towards each of them. Where it would go
//! beyond, the nearest place within all bounds keeps its motion along the planes, and away from
//! them. That is a quadratic programme in three unknowns. It is solved by the incremental method
//! of Seidel (Small-dimensional linear programming and convex hulls made easy, 1991): half spaces
//! are added one after the other, and where one is violated the solution lies on its plane, which
//! is the problem with an unknown less.

use glam::DVec3;

/// A component of a normal vector within a plane or a line below this length counts as none.
const PARALLEL: f64 = 1e-13;

/// The share of a goal's length by which rounding may make half spaces seem violated.
const ROUNDING: f64 = 1e-14;

/// All displacements u with `toward` · u ≤ `most`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct HalfSpace {
    /// The unit normal vector out of it.
    pub(super) toward: DVec3,
    /// The bound in m, which is not negative: the zero displacement is allowed.
    pub(super) most: f64,
}

/// The displacement in all half spaces that is nearest to a goal, in m; `None` where rounding finds
/// none.
///
/// The result is unique, but its last bits depend on the order of the half spaces.
#[must_use]
pub(super) fn nearest(goal: DVec3, half_spaces: &[HalfSpace]) -> Option<DVec3> {
    let rounding = ROUNDING * goal.length();
    let mut found = goal;
    for (count, added) in half_spaces.iter().enumerate() {
        if added.is_violated(found, rounding) {
            found = on_plane(goal, added, (&half_spaces[..count], rounding))?;
        }
    }
    // No projection on a set with zero in it is longer than the goal.
    let is_one = found.length() <= (1.0 + 1e-9) * goal.length();
    let violated = |half_space: &HalfSpace| half_space.is_violated(found, 4.0 * rounding);
    (is_one && !half_spaces.iter().any(violated)).then_some(found)
}

impl HalfSpace {
    fn is_violated(&self, u: DVec3, rounding: f64) -> bool {
        self.toward.dot(u) > self.most + rounding
    }
}

/// The nearest point on the plane of a half space in others.
fn on_plane(
    goal: DVec3,
    plane: &HalfSpace,
    (others, rounding): (&[HalfSpace], f64),
) -> Option<DVec3> {
    let normal = plane.toward;
    let foot = goal - normal * (normal.dot(goal) - plane.most);
    let mut found = foot;
    for (count, added) in others.iter().enumerate() {
        if !added.is_violated(found, rounding) {
            continue;
        }
        // The plane of the added one meets the plane in a line.
        let across = added.toward - normal * normal.dot(added.toward);
        let length = across.length();
        if length < PARALLEL {
            return None;
        }
        let across = across / length;
        let to_line = (added.most - added.toward.dot(foot)) / length;
        let axis = normal.cross(across);
        found = on_line(foot + across * to_line, axis, (&others[..count], rounding))?;
    }
    Some(found)
}

/// The point of a line through a place in half spaces that is nearest to the place.
fn on_line(place: DVec3, axis: DVec3, (others, rounding): (&[HalfSpace], f64)) -> Option<DVec3> {
    let (mut low, mut high) = (f64::NEG_INFINITY, f64::INFINITY);
    for other in others {
        let (slope, spare) = (other.toward.dot(axis), other.most - other.toward.dot(place));
        if slope > PARALLEL {
            high = high.min(spare / slope);
        } else if slope < -PARALLEL {
            low = low.max(spare / slope);
        }
    }
    if low <= high {
        return Some(place + axis * 0.0f64.clamp(low, high));
    }
    // Without room, bounds may miss each other by rounding.
    let found = place + axis * low.midpoint(high);
    let violated = |other: &HalfSpace| other.is_violated(found, rounding);
    (!others.iter().any(violated)).then_some(found)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn half_space(toward: DVec3, most: f64) -> HalfSpace {
        HalfSpace {
            toward: toward.normalize(),
            most,
        }
    }

    #[test]
    fn a_floor_and_a_corner_keep_what_goes_along_them() {
        let floor = half_space(-DVec3::Z, 0.25);
        let goal = DVec3::new(3.0, 2.0, -5.0);
        let is = |half_spaces: &[HalfSpace], there: [f64; 3]| {
            assert_eq!(nearest(goal, half_spaces), Some(DVec3::from_array(there)));
        };
        is(&[floor], [3.0, 2.0, -0.25]);
        let wall = half_space(DVec3::X, 1.0);
        is(&[floor, wall], [1.0, 2.0, -0.25]);
        is(&[wall, floor], [1.0, 2.0, -0.25]);
        let other = half_space(DVec3::Y, 0.0);
        let corner = [floor, wall, other];
        is(&corner, [1.0, 0.0, -0.25]);
        assert_eq!(nearest(DVec3::Z, &corner), Some(DVec3::Z));
    }

    #[test]
    fn between_two_planes_without_room_motion_goes_along_them() {
        let slab = [half_space(DVec3::Z, 0.0), half_space(-DVec3::Z, 0.0)];
        assert_eq!(
            nearest(DVec3::new(1.0, 2.0, 3.0), &slab),
            Some(DVec3::new(1.0, 2.0, 0.0))
        );
    }

    /// Planes of flat sheets have normal vectors that differ by rounding alone.
    #[test]
    fn normals_that_are_nearly_equal_leave_what_goes_along_them() {
        let goal = DVec3::new(-1.0, 2.0, 1.0);
        for tilt in [1e-6, 1e-8, 1e-10, 1e-12] {
            let slab = [
                half_space(DVec3::Z, 0.0),
                half_space(DVec3::new(-0.8, 0.6, 0.0), 0.0),
                half_space(DVec3::new(tilt, 0.0, 1.0), 0.0),
            ];
            let found = nearest(goal, &slab).unwrap();
            assert!(
                found.distance(DVec3::new(0.6, 0.8, 0.0)) < 2.0 * tilt,
                "{tilt}: {found}"
            );
        }
    }

    fn direction() -> impl Strategy<Value = DVec3> {
        prop::array::uniform3(-1.0..1.0f64)
            .prop_map(DVec3::from_array)
            .prop_filter("a direction", |d| d.length() > 0.1)
    }

    proptest! {
        /// The conditions of Karush, Kuhn and Tucker for a projection p of g on a convex set: p is
        /// in it, and (g − p) · (q − p) ≤ 0 for all q of it.
        #[test]
        fn the_nearest_point_is_within_and_no_other_is_nearer(
            goal in direction(),
            planes in prop::collection::vec((direction(), 0.0..0.5f64), 0..12),
            others in prop::collection::vec((direction(), 0.0..1.0f64), 20),
        ) {
            let half_spaces: Vec<HalfSpace> = planes
                .iter()
                .map(|&(toward, most)| half_space(toward, (most - 0.1).max(0.0)))
                .collect();
            let found = nearest(goal, &half_spaces);
            prop_assert!(found.is_some());
            let found = found.unwrap_or_default();
            for plane in &half_spaces {
                prop_assert!(plane.toward.dot(found) <= plane.most + 1e-13);
            }
            for &(direction, share) in &others {
                // The farthest point of the set in some direction, and a part of the way to it.
                let farthest = half_spaces.iter().fold(2.0f64, |farthest, plane| {
                    let slope = plane.toward.dot(direction);
                    if slope > 0.0 { farthest.min(plane.most / slope) } else { farthest }
                });
                let other = direction * (farthest * share);
                prop_assert!((goal - found).dot(other - found) <= 1e-9, "{found} {other}");
            }
        }
    }
}
