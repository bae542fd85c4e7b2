//! Common motion: what stacks and sheets do as a whole is not truncated.
//!
//! Planes that stand still cut towards the start: of a stack that flies, one cut vertex would stop
//! its neighbours, these theirs, and all would freeze in the air. So planes move with the mean
//! displacement w of what is near: with x(s) = x⁰ + s (w + t (u − w)), where all vertices of a
//! component share one w, displacements are straight as seen from w, and the proof holds there.
//! Components must never meet each other. They are pieces of cloth, united as long as the hulls of
//! {x⁰, x⁰ + w, x⁰ + u} over their vertices meet, which contain every such displacement. A
//! component with a vertex that cannot be stopped has w = 0: what it touches is at rest there or
//! gives way.

use glam::DVec3;

use super::Truncate;
use crate::collide::bvh::kdop::Kdop18;
use crate::disjoint_sets::DisjointSets;

/// The common displacement of each vertex's component, in m.
pub(super) fn displacements(step: &Truncate<'_>) -> Vec<DVec3> {
    let count = step.start.len();
    let mut sets = DisjointSets::of_triangles(step.surface.triangles(), count);
    let movable = |v: u32| v < step.movable;
    loop {
        let least: Vec<u32> = (0..count as u32).map(|v| sets.least(v)).collect();
        let common = means(step, &least, movable);
        let mut volumes = vec![Kdop18::EMPTY; count];
        for (v, &set) in least.iter().enumerate() {
            let (start, goal) = (step.start[v], step.goal[v]);
            let around = Kdop18::around(&[start, start + common[v], goal], 0.5 * step.least);
            volumes[set as usize] = volumes[set as usize].union(&around);
        }
        // Few components: pieces of cloth and bodies.
        let mut heads: Vec<u32> = least.clone();
        heads.sort_unstable();
        heads.dedup();
        let mut united = false;
        for (k, &a) in heads.iter().enumerate() {
            for &b in &heads[k + 1..] {
                if (movable(a) || movable(b)) && volumes[a as usize].overlaps(&volumes[b as usize])
                {
                    sets.unite(a, b);
                    united = true;
                }
            }
        }
        if !united {
            return common;
        }
    }
}

/// The mean displacements of sets by mass, zero where a vertex of the set cannot be stopped.
fn means(step: &Truncate<'_>, least: &[u32], movable: impl Fn(u32) -> bool) -> Vec<DVec3> {
    let mut sums = vec![(0.0, DVec3::ZERO, true); least.len()];
    for (v, &set) in (0..).zip(least) {
        let (mass, sum, free) = &mut sums[set as usize];
        let at = v as usize;
        *mass += step.masses[at];
        *sum += (step.goal[at] - step.start[at]) * step.masses[at];
        *free &= movable(v);
    }
    let mean = |&set: &u32| match sums[set as usize] {
        (mass, sum, true) if mass > 0.0 => sum / mass,
        _ => DVec3::ZERO,
    };
    least.iter().map(mean).collect()
}
