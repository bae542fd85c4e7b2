//! Limiting strain: constraints for the impulses that keep triangles from being stretched beyond what cloth bears.
//!
//! An implicit step linearises elasticity where it begins. What happens within the step, a border that hits
//! the floor at some metres per second while its neighbours fly on, stretches triangles in ways the linear
//! system knew nothing of. As in [Bridson 2003 §1.3], velocities are corrected before they move anything, by
//! impulses that keep momentum, where the strain they predict is too high. Here the strain is the largest
//! principal one of a triangle rather than that of an edge: an edge says nothing of shear.
//!
//! With predicted positions `y = x + h v`, `F = Σ yᵢ ∇Nᵢᵀ`, its largest stretches `s` with material direction
//! `w` and direction in space `u = F w / s`, the constraint is `Σ (∇Nᵢ·w) h δvᵢ·u ≤ 1 + limit − s`, linear at the
//! prediction. A triangle already beyond the limit is only asked to come back slowly.

use glam::DVec3;

use super::constraint::Constraint;
use crate::physics::ClothModel;
use crate::solve::fault::Fault;
use crate::step::system::assembly::Assembly;

/// Constraints are made from this share of the limit on: those that neighbours' impulses may bring to it.
const WATCHED: f64 = 0.7;
/// The strain beyond the limit that a triangle loses in a second, and the most that it loses in one part of a step.
const PULL_RATE: f64 = 10.0;
const PULL_PER_PART: f64 = 0.02;
/// The strain beyond its limit that a triangle may gain in a part of a step that can be cut.
const GAIN: f64 = 0.01;

/// The triangles of a rank that need constraints.
#[derive(Debug, Default)]
pub(crate) struct Stretched {
    /// As each thread of the rank finds them.
    found: Vec<Found>,
    /// The velocities of vertices when triangles were last looked at, in m/s, and whether a vertex may have other constraints since.
    seen: Vec<DVec3>,
    stale: Vec<bool>,
}

/// Constraints, and the corners of the triangles that they are of.
#[derive(Debug, Default)]
struct Found {
    constraints: Vec<Constraint>,
    corners: Vec<[u32; 3]>,
}

impl Stretched {
    /// Finds the constraints of triangles whose corners are at `x` (m) and move with `v` (m/s) for `dt` (s); both of owned vertices and halo.
    /// `again`: `x` and `dt` are as they were the last time, so that only triangles with constraints and those of vertices that
    /// move differently now are looked at.
    pub(crate) fn find(
        &mut self,
        (model, assembly): (&ClothModel, &Assembly),
        (x, v): (&[DVec3], &[DVec3]),
        dt: f64,
        again: bool,
    ) {
        let Self { found, seen, stale } = self;
        stale.clear();
        if again {
            stale.extend(seen.iter().zip(v).map(|(seen, v)| seen != v));
            let corners = found.iter().flat_map(|found| found.corners.as_flattened());
            corners.for_each(|&corner| stale[corner as usize] = true);
        } else {
            stale.resize(v.len(), true);
        }
        seen.clear();
        seen.extend_from_slice(v);
        for found in &mut *found {
            found.constraints.clear();
            found.corners.clear();
        }
        assembly.collect(found, Found::default, |triangle, corners, found| {
            if !corners.iter().any(|&corner| stale[corner as usize]) {
                return;
            }
            let before = found.constraints.len();
            let [a, b, c] = corners.map(|corner| corner as usize);
            let at = |values: &[DVec3]| [values[a], values[b], values[c]];
            push_constraints(model, triangle, at(x), at(v), dt, &mut found.constraints);
            if found.constraints.len() > before {
                found.corners.push(corners);
            }
        });
    }

    /// The constraints, in the order of the triangles.
    pub(crate) fn constraints(&self) -> impl Iterator<Item = &Constraint> {
        self.found.iter().flat_map(|found| &found.constraints)
    }
}

/// The triangle of a rank that gains most strain beyond its limit from `x` (m) to `x + dt v`, if that is more than a part of a step may that can be
/// cut: its key is minus the gain, its vertex the triangle.
pub(crate) fn most_overstretched(
    (model, assembly): (&ClothModel, &Assembly),
    (x, v): (&[DVec3], &[DVec3]),
    dt: f64,
) -> Option<Fault> {
    let mut found = Vec::new();
    let visit = |triangle: u32, corners: [u32; 3], worst: &mut Option<Fault>| {
        let membrane = &model.membranes()[triangle as usize];
        let [begin, move_on] = [x, v].map(|of| corners.map(|corner| of[corner as usize]));
        let end = [0, 1, 2].map(|k| begin[k] + move_on[k] * dt);
        let limit = model.strain_limit(triangle as usize);
        // Most never come near it.
        let Some(after) = membrane.strain_above(limit + GAIN, end) else {
            return;
        };
        let before = membrane.strain_above(limit, begin).unwrap_or(limit);
        let gain = after - before.max(limit);
        // Where springs are in its place, a triangle may be a line.
        if gain > GAIN && (gain.is_finite() || model.is_element(triangle as usize)) {
            let fault = Fault::at(triangle, -gain);
            *worst = Some(worst.map_or(fault, |worst| worst.worse(fault)));
        }
    };
    assembly.collect(&mut found, || None, visit);
    found.into_iter().flatten().reduce(Fault::worse)
}

/// Appends the constraints of a triangle. `x` and `v` are its corners', at the start of the step (m) and as
/// predicted for its end (m/s); `dt` in s.
#[inline]
fn push_constraints(
    model: &ClothModel,
    triangle: u32,
    x: [DVec3; 3],
    v: [DVec3; 3],
    dt: f64,
    constraints: &mut Vec<Constraint>,
) {
    let index = triangle as usize;
    let membrane = &model.membranes()[index];
    let limit = model.strain_limit(index);
    let end = [x[0] + v[0] * dt, x[1] + v[1] * dt, x[2] + v[2] * dt];
    let watched = 1.0 + WATCHED * limit;
    // As most are at most times.
    if membrane.is_shorter(end, watched) {
        return;
    }
    for axis in membrane.stretched_beyond(end, watched) {
        let begin = (0..3).fold(DVec3::ZERO, |sum, k| sum + x[k] * axis.weights[k]);
        let allowed = (1.0 + limit).max(begin.length() - PULL_PER_PART.min(PULL_RATE * dt));
        // The weights are 1/m; scaled by a length, constraints are rates in m/s as those of contacts are.
        let length = membrane.area().sqrt();
        let weights = axis.weights.map(|w| -w * length);
        let rate: f64 = (0..3).map(|k| v[k].dot(axis.direction) * weights[k]).sum();
        let corners = model.triangles()[index];
        constraints.push(Constraint {
            count: 3,
            vertices: [corners[0], corners[1], corners[2], 0],
            weights: [weights[0], weights[1], weights[2], 0.0],
            normal: axis.direction,
            body_velocity: DVec3::ZERO,
            least_rate: rate + (axis.stretch - allowed) * length / dt,
            friction: 0.0,
        });
    }
}
