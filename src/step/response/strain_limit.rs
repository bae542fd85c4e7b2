//! The limits of strain: constraints for the impulses that keep triangles from being stretched, or
//! compressed in their plane, beyond what cloth bears.
//!
//! An implicit step linearises elasticity where it begins. Events within the step stretch triangles
//! in ways that the linear system did not know, such as a border that hits the floor at some metres
//! per second while its neighbours fly on. As in [Bridson 2003 §1.3], velocities are corrected
//! before they move anything, by impulses that keep momentum, where the strain they predict is too
//! high. Here the strain is the largest principal one of a triangle rather than that of an edge: an
//! edge says nothing of shear.
//!
//! With predicted positions `y = x + h v`, `F = Σ yᵢ ∇Nᵢᵀ`, its largest stretches `s` with material
//! direction `w` and direction in space `u = F w / s`, the constraint is `Σ (∇Nᵢ·w) h δvᵢ·u ≤ 1 +
//! limit − s`, linear at the prediction. A triangle already beyond the limit is only asked to come
//! back slowly.
//!
//! Cloth resists compression far more than bending, so that it buckles instead; impulses against
//! compression have it do so, also where the mesh is coarse [Bridson 2003 §1.3, where 10 % of
//! extension and no compression are borne]. Where `s` is a principal stretch below `1 − limit`,
//! the constraint is the one above with both sides negative. Cloth that pins press together in its
//! plane, exactly flat, has nowhere to go, and is compressed all the same.

use glam::DVec3;

use super::constraint::Constraint;
use crate::heap_bytes::counts_heap;
use crate::physics::ClothModel;
use crate::physics::membrane::PrincipalStretch;
use crate::solve::fault::Fault;
use crate::step::state::StateView;
use crate::step::system::assembly::{Assembly, LocalTriangle};

/// The share of the limit from which on triangles have constraints: impulses of neighbours may
/// bring them to it.
const WATCHED: f64 = 0.7;
/// The strain beyond the limit that a triangle loses in a second.
const PULL_RATE: f64 = 10.0;
/// The most strain beyond the limit that a triangle loses in one substep.
const PULL_PER_SUBSTEP: f64 = 0.02;
/// The strain beyond its limit that a triangle may gain in a substep that can be cut.
const GAIN: f64 = 0.01;

/// The triangles of a rank that need constraints.
#[derive(Debug, Default)]
pub(crate) struct Stretched {
    /// The triangles that each thread of the rank has found.
    found: Vec<Found>,
    /// The velocities of vertices when triangles were last looked at, in m/s.
    seen: Vec<DVec3>,
    /// Whether triangles at a vertex may have other constraints since.
    stale: Vec<bool>,
}

counts_heap!(Stretched: found, seen, stale);

/// Constraints, and the corners of the triangles that they are of.
#[derive(Debug, Default)]
struct Found {
    constraints: Vec<Constraint>,
    corners: Vec<[u32; 3]>,
}

counts_heap!(Found: constraints, corners);

impl Stretched {
    /// Finds the constraints of triangles for a local state and a substep of `dt` (s). `again` says
    /// that `x` and `dt` are as they were the last time, so that only triangles with constraints
    /// and those of vertices that move differently now are looked at.
    pub(crate) fn find(
        &mut self,
        model: &ClothModel,
        assembly: &Assembly,
        state: StateView<'_>,
        dt: f64,
        again: bool,
    ) {
        let v = state.v;
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
        assembly.collect(found, Found::default, |triangle, found| {
            let corners = triangle.corners;
            if !corners.iter().any(|&corner| stale[corner as usize]) {
                return;
            }
            let before = found.constraints.len();
            push_constraints(model, triangle, state, dt, &mut found.constraints);
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

/// Finds the triangle of a rank that gains most strain beyond its limit within `dt` (s), if that is
/// more than it may in a substep that can be cut: its key is minus the gain, its vertex the
/// triangle.
pub(crate) fn most_overstretched(
    model: &ClothModel,
    assembly: &Assembly,
    state: StateView<'_>,
    dt: f64,
) -> Option<Fault> {
    let mut found = Vec::new();
    let visit = |of: &LocalTriangle, worst: &mut Option<Fault>| {
        let triangle = of.number;
        let membrane = of.membrane(model);
        let (begin, velocities) = (of.of(state.x), of.of(state.v));
        let end = [0, 1, 2].map(|k| begin[k] + velocities[k] * dt);
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

/// Appends the constraints of a triangle. The local state is that of the start of the substep, with
/// velocities as predicted for its end; `dt` in s.
#[inline]
fn push_constraints(
    model: &ClothModel,
    triangle: &LocalTriangle,
    state: StateView<'_>,
    dt: f64,
    constraints: &mut Vec<Constraint>,
) {
    let (x, v) = (triangle.of(state.x), triangle.of(state.v));
    let index = triangle.number as usize;
    let membrane = triangle.membrane(model);
    let limit = model.strain_limit(index);
    let end = [x[0] + v[0] * dt, x[1] + v[1] * dt, x[2] + v[2] * dt];
    let watched = 1.0 + WATCHED * limit;
    let pull = PULL_PER_SUBSTEP.min(PULL_RATE * dt);
    let begins = |axis: &PrincipalStretch| {
        let begin = (0..3).fold(DVec3::ZERO, |sum, k| sum + x[k] * axis.weights[k]);
        begin.length()
    };
    let mut push = |axis: &PrincipalStretch, sign: f64, lacks: f64| {
        // The weights are 1/m; scaled by a length, constraints are rates in m/s as those of
        // contacts are.
        let length = membrane.area().sqrt();
        let weights = axis.weights.map(|w| sign * w * length);
        let rate: f64 = (0..3).map(|k| v[k].dot(axis.direction) * weights[k]).sum();
        let corners = model.triangles()[index];
        constraints.push(Constraint {
            count: 3,
            vertices: [corners[0], corners[1], corners[2], 0],
            weights: [weights[0], weights[1], weights[2], 0.0],
            normal: axis.direction,
            body_velocity: DVec3::ZERO,
            least_rate: rate + lacks * length / dt,
            friction: 0.0,
        });
    };
    // Most triangles are, at most times.
    if !membrane.is_shorter(end, watched) {
        for axis in membrane.stretched_beyond(end, watched) {
            let allowed = (1.0 + limit).max(begins(&axis) - pull);
            push(&axis, -1.0, axis.stretch - allowed);
        }
    }
    let limit = model.compression_limit(index);
    let watched = 1.0 - WATCHED * limit;
    if limit.is_finite() && !membrane.is_longer(end, watched) {
        for axis in membrane.pressed_below(end, watched) {
            let allowed = (1.0 - limit).min(begins(&axis) + pull);
            push(&axis, 1.0, allowed - axis.stretch);
        }
    }
}
