//! The directions in which the sides of tangles come apart.
//!
//! Where a part of a side is through the other, it goes back through the middle of the crossings.
//! Where none is, as in cloth that is pushed together at its borders, sides go where the contours
//! become shorter: each crossing glides along its edge or its face as one side is displaced, and
//! the lengths of segments change with it.

use std::collections::BTreeMap;

use glam::DVec3;

use super::contours::contours;
use super::kept::Kept;
use super::shrink::Tangled;
use crate::collide::audit::Crossing;

/// The most that a crossing glides for a displacement of its side: one whose edge is nearly in the
/// face would go anywhere.
const FARTHEST: f64 = 10.0;

/// The direction, of unit length, in which the first side of each tangle is to go, as seen from its
/// second side. Tangles without crossings, and those whose way out is not found, have none.
#[must_use]
pub fn directions(kept: &Kept, tangled: &Tangled, x: &[DVec3]) -> BTreeMap<u32, DVec3> {
    let found = tangled.crossings.iter().filter_map(|(&tangle, crossings)| {
        let back = way_back(kept, tangled, x, (tangle, crossings));
        let direction = back.or_else(|| shorter(tangled, x, crossings));
        Some((tangle, direction?))
    });
    found.collect()
}

/// The point at which an edge and a face cross, with the direction of the edge and the normal
/// vector of the face.
fn crossing(tangled: &Tangled, x: &[DVec3], (edge, face): Crossing) -> Option<[DVec3; 3]> {
    let [p, q] = edge.map(|v| x[v as usize]);
    let [a, b, c] = tangled.triangles[face as usize].map(|v| x[v as usize]);
    let normal = (b - a).cross(c - a).try_normalize()?;
    let along = (q - p).try_normalize()?;
    let [above, below] = [p, q].map(|end| normal.dot(end - a));
    let share = above / (above - below);
    let place = share
        .is_finite()
        .then(|| p.lerp(q, share.clamp(0.0, 1.0)))?;
    Some([place, along, normal])
}

/// The way back of what is through.
fn way_back(
    kept: &Kept,
    tangled: &Tangled,
    x: &[DVec3],
    (tangle, crossings): (u32, &[(Crossing, bool)]),
) -> Option<DVec3> {
    let mean = |points: &mut dyn Iterator<Item = DVec3>| {
        let (count, sum) = points.fold((0.0, DVec3::ZERO), |(n, sum), p| (n + 1.0, sum + p));
        (count > 0.0).then(|| sum / count)
    };
    let places = crossings.iter();
    let mut places = places.filter_map(|&(at, _)| Some(crossing(tangled, x, at)?[0]));
    let middle = mean(&mut places)?;
    let through = |side: bool| {
        let members = kept.members().iter();
        let of_side = members.filter(|m| m.tangle == tangle && m.side == side && m.through);
        mean(&mut of_side.map(|m| x[m.vertex as usize]))
    };
    let from = |part: Option<DVec3>| part.map_or(DVec3::ZERO, |part| middle - part);
    (from(through(false)) - from(through(true))).try_normalize()
}

/// The displacement of the first side by which contours become shorter.
fn shorter(tangled: &Tangled, x: &[DVec3], crossings: &[(Crossing, bool)]) -> Option<DVec3> {
    let plain: Vec<Crossing> = crossings.iter().map(|(crossing, _)| *crossing).collect();
    let side_of: BTreeMap<Crossing, bool> = crossings.iter().copied().collect();
    let mut gradient = DVec3::ZERO;
    for contour in contours(&plain, &tangled.triangles) {
        for ends in &contour.segments {
            let ends = ends.map(|end| contour.nodes[end].crossing);
            let [Some(from), Some(to)] = ends.map(|end| crossing(tangled, x, end)) else {
                continue;
            };
            let Some(along) = (to[0] - from[0]).try_normalize() else {
                continue;
            };
            for (end, [_, edge, normal], outward) in [(ends[0], from, -along), (ends[1], to, along)]
            {
                let glides = outward.dot(edge) / normal.dot(edge);
                if glides.is_nan() {
                    continue;
                }
                let glides = normal * glides.clamp(-FARTHEST, FARTHEST);
                // An edge of the first side glides along a face of the second, which stands still,
                // and one of the second side through a face that comes along with the first.
                gradient += if side_of[&end] {
                    glides
                } else {
                    outward - glides
                };
            }
        }
    }
    (-gradient).try_normalize()
}
