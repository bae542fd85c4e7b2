//! Common motion: what stacks and sheets do as a whole is not truncated.
//!
//! Planes that stand still cut towards the start: of a stack that flies, one cut vertex would stop
//! its neighbours, these theirs, and all would freeze in the air. So planes move with the mean
//! displacement w of what is near: with x(s) = x⁰ + s (w + t (u − w)), where all vertices of a
//! component share one w, displacements are straight as seen from w, and the proof holds there.
//! Components must never meet each other. They are pieces of cloth, united as long as the hulls of
//! {x⁰, x⁰ + w, x⁰ + u} over their vertices meet, which contain every such displacement.
//! Vertices may slide, to the place nearest to x⁰ + u in a convex set with x⁰ + w in it. Such
//! places are in the ball over the line between both, which is within the hull too. A
//! component that meets a body has w = 0: what it touches is at rest there, gives way or is
//! carried. Its hull also contains where the bodies would carry its vertices.

use glam::DVec3;

use super::Truncate;
use super::bodies::{Form, Mover};
use super::solids::VertexAndField;
use crate::collide::bvh::kdop::Kdop18;
use crate::disjoint_sets::DisjointSets;

/// Components that never meet each other, and what the vertices of each have in common.
#[derive(Debug)]
pub(super) struct Components {
    /// The least vertex of each vertex's component.
    pub(super) least: Vec<u32>,
    /// The common displacement of each vertex's component, in m.
    pub(super) common: Vec<DVec3>,
    /// Whether the component of a least vertex meets a body.
    pub(super) grounded: Vec<bool>,
}

/// Finds the components of a step.
pub(super) fn components(step: &Truncate<'_>) -> Components {
    let count = step.start.len();
    let mut sets = DisjointSets::of_triangles(step.surface.cloth().triangles(), count);
    for &[a, b, c] in step.surface.of_bodies() {
        sets.unite(a, b);
        sets.unite(b, c);
    }
    // Whether a vertex is of a component that has met a body.
    let mut grounded: Vec<bool> = (0..count as u32).map(|v| v >= step.movable).collect();
    let moving = step.movers.iter().filter(moves);
    let moving: Vec<_> = moving.map(|mover| (mover, mover.farthest())).collect();
    loop {
        let least: Vec<u32> = (0..count as u32).map(|v| sets.least(v)).collect();
        for (v, &set) in least.iter().enumerate() {
            grounded[set as usize] |= grounded[v];
        }
        let common = means(step, &least, &grounded);
        let mut volumes = vec![Kdop18::EMPTY; count];
        for (v, &set) in least.iter().enumerate() {
            let (start, goal) = (step.start[v], step.goal[v]);
            let around = |points: &[DVec3]| Kdop18::around(points, 0.5 * step.least);
            let volume = &mut volumes[set as usize];
            let stays = start + common[v];
            *volume = volume.union(&around(&[start, stays, goal]));
            if (v as u32) < step.movable {
                let radius = 0.5 * stays.distance(goal) + 0.5 * step.least;
                *volume = volume.union(&Kdop18::around(&[stays.midpoint(goal)], radius));
            }
            if grounded[set as usize] && (v as u32) < step.movable {
                for (mover, farthest) in &moving {
                    let there = match farthest {
                        Some(farthest) => Kdop18::around(&[start], farthest + 0.5 * step.least),
                        None => around(&[start + mover.displacement(start)]),
                    };
                    *volume = volume.union(&there);
                }
            }
        }
        // Few components: pieces of cloth and bodies.
        let mut heads: Vec<u32> = least.clone();
        heads.sort_unstable();
        heads.dedup();
        let mut changed = false;
        for (k, &a) in heads.iter().enumerate() {
            let volume = &volumes[a as usize];
            if !grounded[a as usize]
                && step
                    .movers
                    .iter()
                    .any(|mover| meets_solid(step, mover, volume, (&least, a), common[a as usize]))
            {
                grounded[a as usize] = true;
                changed = true;
            }
            for &b in &heads[k + 1..] {
                if (a < step.movable || b < step.movable) && volume.overlaps(&volumes[b as usize]) {
                    sets.unite(a, b);
                    changed = true;
                }
            }
        }
        if !changed {
            return Components {
                least,
                common,
                grounded,
            };
        }
    }
}

/// Whether a body moves in the substep, as seen from some points of space.
fn moves(mover: &&Mover) -> bool {
    if let Some(farthest) = mover.farthest() {
        return farthest > 0.0;
    }
    if mover.swept.as_ref().is_some_and(|swept| swept.moves()) {
        return true;
    }
    let seen = [DVec3::ZERO, DVec3::X, DVec3::Y, DVec3::Z];
    seen.iter().any(|&x| mover.displacement(x) != DVec3::ZERO)
}

/// Whether the component of a vertex, within a volume, may meet a body without triangles.
fn meets_solid(
    step: &Truncate<'_>,
    mover: &Mover,
    volume: &Kdop18,
    (least, component): (&[u32], u32),
    common: DVec3,
) -> bool {
    match mover.form {
        Form::Triangles => false,
        Form::Round { .. } => mover.segment().is_some_and(|(segment, radius)| {
            volume.overlaps(&Kdop18::around(segment.as_flattened(), radius + step.least))
        }),
        Form::Plane { .. } => {
            let of_component = (0..step.movable as usize).filter(|&v| least[v] == component);
            let mut near = of_component.filter(|&v| {
                let start = step.start[v];
                let mut ends = [step.goal[v], start + common].into_iter();
                ends.any(|end| {
                    let heights = mover.heights([start, end]);
                    heights.is_some_and(|heights| heights.iter().any(|&h| h <= step.least))
                })
            });
            near.next().is_some()
        }
        Form::Distance(_) => {
            let of_component = (0..step.movable as usize).filter(|&v| least[v] == component);
            let mut near = of_component.filter(|&v| {
                let start = step.start[v];
                let mut ends = [step.goal[v], start + common].into_iter();
                ends.any(|end| {
                    let seen = VertexAndField::new(mover, [start, end]);
                    seen.is_none_or(|seen| seen.gap <= step.least || !seen.is_apart(step.least))
                })
            });
            near.next().is_some()
        }
    }
}

/// The mean displacements of sets by mass, zero where a set has met a body.
fn means(step: &Truncate<'_>, least: &[u32], grounded: &[bool]) -> Vec<DVec3> {
    let mut sums = vec![(0.0, DVec3::ZERO); least.len()];
    for (v, &set) in least.iter().enumerate().take(step.movable as usize) {
        let (mass, sum) = &mut sums[set as usize];
        *mass += step.masses[v];
        *sum += (step.goal[v] - step.start[v]) * step.masses[v];
    }
    let mean = |&set: &u32| match sums[set as usize] {
        (mass, sum) if mass > 0.0 && !grounded[set as usize] => sum / mass,
        _ => DVec3::ZERO,
    };
    least.iter().map(mean).collect()
}
