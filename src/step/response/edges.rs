//! How fast edges of the cloth change their lengths: they are damped by impulses, or the step is
//! cut.
//!
//! Deformations of more than a tenth in one step are better avoided: by shorter steps, or, where
//! accuracy is lost already, by impulses along edges that reduce the strain rate to what is
//! allowed, just as those that reduce strain [Bridson 2003, §1.3]. The three edges of a triangle
//! together miss no deformation of it.

use glam::DVec3;

use super::constraint::Constraint;
use crate::heap_bytes::{HeapBytes, owns_no_heap};
use crate::solve::fault::Fault;
use crate::step::domain::Domain;
use crate::step::neighbourhood::Neighbourhood;
use crate::step::state::StateView;

/// The share of the limit from which on edges have constraints: impulses of neighbours may bring
/// them to it.
const WATCHED: f64 = 0.5;

/// The edges that touch a rank's vertices, ascending.
#[derive(Debug)]
pub(crate) struct Edges(Vec<Edge>);

impl HeapBytes for Edges {
    fn heap_bytes(&self) -> usize {
        self.0.heap_bytes()
    }
}

/// An edge by its ends.
#[derive(Clone, Copy, Debug)]
struct Edge {
    /// The global numbers of its ends.
    ends: [u32; 2],
    /// The local indices of its ends.
    local: [u32; 2],
}

owns_no_heap!(Edge);

impl Edges {
    /// Finds the edges of a rank.
    pub(crate) fn new(domain: &Domain, neighbourhood: &impl Neighbourhood) -> Self {
        let owned = domain.owned();
        let mine = |v: &u32| owned.contains(&(*v as usize));
        let triangles = neighbourhood.triangles_of(domain.patches()).into_iter();
        let sides = triangles.flat_map(|triangle| {
            let [a, b, c] = triangle.corners;
            [[a, b], [b, c], [c, a]]
        });
        let mut edges: Vec<[u32; 2]> = sides
            .filter(|ends| ends.iter().any(mine))
            .map(|[a, b]| [a.min(b), a.max(b)])
            .collect();
        edges.sort_unstable();
        edges.dedup();
        let local = |v: u32| {
            let index = domain.plan.local_index(v);
            index.expect("triangles couple only what the matrix graph does") as u32
        };
        let edges = edges.into_iter().map(|ends| Edge {
            ends,
            local: ends.map(local),
        });
        Self(edges.collect())
    }

    /// Appends constraints for edges whose length would change by about `limit` of it, or more,
    /// within `dt` (s). The state is local.
    ///
    /// Constraints are linear in velocities where these are now: an edge that turns gets longer,
    /// which the direction that it had does not see.
    pub(crate) fn push_constraints(
        &self,
        limit: f64,
        StateView { x, v }: StateView<'_>,
        dt: f64,
        constraints: &mut Vec<Constraint>,
    ) {
        for Edge { ends, local } in &self.0 {
            let [a, b] = local.map(|end| end as usize);
            let along = x[b] - x[a];
            let length = along.length();
            let after = along + (v[b] - v[a]) * dt;
            let change = after.length() - length;
            if length <= 0.0 || change.abs() < WATCHED * limit * length {
                continue;
            }
            let normal = after.try_normalize().unwrap_or(along / length);
            // Lengthening: n·(along + dt u) ≤ (1 + limit) length; shortening: ≥ (1 − limit) length.
            let sign = if change > 0.0 { 1.0 } else { -1.0 };
            let allowed = sign * ((1.0 + sign * limit) * length - normal.dot(along)) / dt;
            constraints.push(Constraint {
                count: 2,
                vertices: [ends[0], ends[1], 0, 0],
                weights: [sign, -sign, 0.0, 0.0],
                normal,
                body_velocity: DVec3::ZERO,
                least_rate: -allowed,
                friction: 0.0,
            });
        }
    }

    /// Finds the edge whose length changes by the largest share within `dt` (s), if that is more
    /// than `limit`: its key is minus the share, its vertex an end.
    pub(crate) fn most_changed(
        &self,
        limit: f64,
        StateView { x, v }: StateView<'_>,
        dt: f64,
    ) -> Option<Fault> {
        let changed = self.0.iter().filter_map(|Edge { ends, local }| {
            let [a, b] = local.map(|end| end as usize);
            let before = x[b] - x[a];
            let after = before + (v[b] - v[a]) * dt;
            let (before, after) = (before.length(), after.length());
            let change = (after - before).abs() / before;
            // A change that is no number is too large.
            let within = change <= limit;
            let key = if change.is_nan() {
                f64::NEG_INFINITY
            } else {
                -change
            };
            (!within).then(|| Fault::at(ends[0], key))
        });
        changed.reduce(Fault::worse)
    }
}
