//! Targets: the top-level tests of a step [TB06 §4.2.1].

use std::ops::Range;

use glam::DVec3;
use serde::{Deserialize, Serialize};

use crate::collide::bodies::body_motion::Sweep;
use crate::collide::bodies::collider::{Analytic, Body};
use crate::collide::query::snapshot::Snapshot;

/// What is tested against what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Target {
    /// A patch against itself.
    Patch(u32),
    /// Two patches, the lower number first.
    Patches(u32, u32),
    /// A patch against a body.
    PatchBody(u32, u32),
}

impl Target {
    /// Whether the roots of the two meet; otherwise there is no test.
    pub(crate) fn meets(self, snap: &Snapshot<'_>) -> bool {
        let root = |p: u32| snap.patch_root(p);
        match self {
            Self::Patch(p) => !snap.cloth.patches()[p as usize].is_empty(),
            Self::Patches(p, q) => root(p).overlaps(root(q)),
            Self::PatchBody(p, b) => match &snap.bodies[b as usize] {
                Body::Triangles(_) => {
                    let root_of_body = snap.body_volumes(b).root();
                    let root = snap.grid().enclosing(root(p));
                    root_of_body.is_some_and(|body| root.overlaps(&body))
                }
                Body::Analytic(solid) => {
                    !snap.cloth.patches()[p as usize].is_empty()
                        && near_solid(snap, (b, solid), root(p).ball())
                }
            },
        }
    }
}

impl Snapshot<'_> {
    /// All top-level tests of the step, in a fixed order, before any volume is looked at: every patch
    /// against itself, against every other, and against every body [TB06 §4.2.1].
    pub fn targets(&self) -> impl Iterator<Item = Target> + use<> {
        let patches = self.cloth.patches().len() as u32;
        let bodies = self.bodies.len() as u32;
        let with_cloth = if self.self_collision { patches } else { 0 };
        (0..patches).flat_map(move |p| {
            let itself = (with_cloth > 0).then_some(Target::Patch(p));
            let others = (p + 1..with_cloth).map(move |q| Target::Patches(p, q));
            let against = (0..bodies).map(move |b| Target::PatchBody(p, b));
            itself.into_iter().chain(others).chain(against)
        })
    }

    /// Those of the targets that are done at these patches, in the same order; of two patches, `home` says at which.
    pub(crate) fn targets_at(
        &self,
        own: Range<usize>,
        home: impl Fn(usize, usize) -> usize,
    ) -> Vec<Target> {
        let patches = self.cloth.patches().len();
        let mut targets = Vec::new();
        for p in own {
            if self.self_collision {
                targets.push(Target::Patch(p as u32));
                let pairs = (0..p)
                    .map(|q| (q, p))
                    .chain((p + 1..patches).map(|q| (p, q)));
                let here = pairs.filter(|&(low, high)| home(low, high) == p);
                targets.extend(here.map(|(low, high)| Target::Patches(low as u32, high as u32)));
            }
            let bodies = 0..self.bodies.len() as u32;
            targets.extend(bodies.map(|body| Target::PatchBody(p as u32, body)));
        }
        targets.sort_unstable_by_key(|target| match *target {
            Target::Patch(p) => (p, 0, 0),
            Target::Patches(p, q) => (p, 1, q),
            Target::PatchBody(p, b) => (p, 2, b),
        });
        targets
    }
}

/// Whether what a ball holds, given by its centre and its radius (m), may come within reach of a solid.
pub(in crate::collide) fn near_solid(
    snap: &Snapshot<'_>,
    (body, solid): (u32, &Analytic),
    (center, radius): (DVec3, f64),
) -> bool {
    match &snap.sweeps[body as usize] {
        Sweep::Shift { offset, velocity } => {
            let (gap, _) = solid.distance(center - *offset);
            gap <= radius + snap.reach + velocity.length() * snap.dt
        }
        // The ball holds both ends of every way, and contacts are looked for there.
        Sweep::Turn { from, to, .. } => [from, to].into_iter().any(|pose| {
            let (gap, _) = solid.distance(pose.undo(center));
            gap <= radius + snap.reach
        }),
    }
}
