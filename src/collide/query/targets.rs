//! Targets: the top-level tests of a step [TB06 §4.2.1].
//!
//! A patch is tested against itself, against the patches whose volumes overlap its own, and against
//! the bodies that are near it. Which these are is found by walking the patch tree from its root,
//! before anything within a patch is looked at. Their order depends on their numbers alone.

use std::ops::Range;

use glam::DVec3;
use serde::{Deserialize, Serialize};

use crate::collide::bodies::body_motion::Sweep;
use crate::collide::bodies::collider::{Collider, Implicit};
use crate::collide::query::snapshot::Snapshot;

/// A top-level test: two things that are tested against each other.
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
        let is_empty = |p: u32| snap.cloth.patches()[p as usize].is_empty();
        match self {
            Self::Patch(p) => !is_empty(p),
            Self::Patches(p, q) => root(p).overlaps(root(q)),
            Self::PatchBody(p, b) => match snap.body(b) {
                Collider::Triangles(surface) if snap.is_in_patches(b, surface) => {
                    snap.body_patches_near(b, surface, root(p)) != 0
                }
                Collider::Triangles(_) => {
                    let body = snap.body_volumes(b).root();
                    let root = snap.grid().enclosing(root(p));
                    body.is_some_and(|body| root.overlaps(&body))
                }
                solid @ (Collider::Analytic(_) | Collider::Distance(_)) => {
                    let near = |solid| near_solid(snap, (b, solid), root(p).ball());
                    !is_empty(p) && solid.implicit().is_some_and(near)
                }
            },
        }
    }

    /// The place of a target in the order of all.
    fn order(self) -> (u32, u32, u32) {
        match self {
            Self::Patch(p) => (p, 0, 0),
            Self::Patches(p, q) => (p, 1, q),
            Self::PatchBody(p, b) => (p, 2, b),
        }
    }
}

impl Snapshot<'_> {
    /// All top-level tests of the step whose roots meet, in a fixed order: every patch against
    /// itself, against others, and against bodies [TB06 §4.2.1].
    pub fn targets(&self) -> impl Iterator<Item = Target> + use<> {
        let all = self.targets_at(0..self.cloth.patches().len(), |low, _| low);
        all.into_iter()
    }

    /// The targets whose home is one of some patches, in the same order. `home` says of two patches
    /// which of them it is.
    pub(crate) fn targets_at(
        &self,
        own: Range<usize>,
        home: impl Fn(usize, usize) -> usize,
    ) -> Vec<Target> {
        let mut targets = Vec::new();
        if self.self_collision {
            let lets = |one, other| self.cloth.lets(one, other);
            let itself = own.clone().filter(|&p| !lets(p, p));
            let itself = itself.map(|p| Target::Patch(p as u32));
            targets.extend(itself.filter(|target| target.meets(self)));
            self.patch_tree().pairs(&own, |low, high| {
                if own.contains(&home(low, high)) && !lets(low, high) {
                    targets.push(Target::Patches(low as u32, high as u32));
                }
            });
        }
        for (b, body) in (0..).zip(self.bodies()) {
            let mut found = |p: usize| targets.push(Target::PatchBody(p as u32, b));
            let tree = self.patch_tree();
            match body {
                Collider::Triangles(surface) if self.is_in_patches(b, surface) => {
                    let near = |volume: &_| self.body_patches_near(b, surface, volume);
                    let mut all = 0;
                    tree.meeting(
                        &own,
                        |_, volume| near(volume) != 0,
                        |p| {
                            found(p);
                            all |= near(self.patch_root(p as u32));
                        },
                    );
                    // The patches that all of them look into are made at once.
                    if all != 0 {
                        drop(self.some_body_volumes((b, surface), all));
                    }
                }
                Collider::Triangles(_) => {
                    let Some(body) = self.body_volumes(b).root() else {
                        continue;
                    };
                    let meets = |_, volume: &_| self.grid().enclosing(volume).overlaps(&body);
                    tree.meeting(&own, meets, found);
                }
                solid @ (Collider::Analytic(_) | Collider::Distance(_)) => {
                    let Some(solid) = solid.implicit() else {
                        continue;
                    };
                    let balls = self.patch_balls();
                    let near = |ball| near_solid(self, (b, solid), ball);
                    tree.meeting(&own, |node, _| balls[node].is_some_and(near), found);
                }
            }
        }
        targets.sort_unstable_by_key(|target| target.order());
        targets
    }

    /// The number of targets whose home is one of some patches, with those whose roots do not meet.
    /// `pairs` gives the number of pairs of patches whose home a patch is, among this many patches.
    pub(crate) fn count_targets(
        &self,
        own: Range<usize>,
        pairs: impl Fn(usize, usize) -> usize,
    ) -> usize {
        let patches = self.cloth.patches().len();
        let with_cloth = |p: usize| {
            if self.self_collision {
                1 + pairs(p, patches)
            } else {
                0
            }
        };
        own.map(|p| with_cloth(p) + self.body_count()).sum()
    }
}

/// Whether anything in a ball, given by its centre and its radius (m), may come within reach of a
/// solid.
pub(in crate::collide) fn near_solid(
    snap: &Snapshot<'_>,
    (body, solid): (u32, Implicit<'_>),
    (center, radius): (DVec3, f64),
) -> bool {
    let reach = snap.distances.body_reach(body);
    match (&snap.sweeps[body as usize], solid) {
        (Sweep::Shift { offset, velocity }, Implicit::Formula(solid)) => {
            let (gap, _) = solid.shape.distance(center - *offset);
            gap <= radius + reach + velocity.length() * snap.dt
        }
        // The ball holds both ends of every displacement, and contacts are looked for there.
        (Sweep::Turn { from, to, .. }, Implicit::Formula(solid)) => {
            [from, to].into_iter().any(|pose| {
                let (gap, _) = solid.shape.distance(pose.undo(center));
                gap <= radius + reach
            })
        }
        // And here also on the straight way between these, as the body sees it.
        (Sweep::Shift { offset, velocity }, Implicit::Sampled(field)) => {
            let radius = radius + velocity.length() * snap.dt;
            field.least_within(center - *offset, radius) <= reach
        }
        (Sweep::Turn { from, to, .. }, Implicit::Sampled(field)) => {
            let [start, end] = [from, to].map(|pose| pose.undo(center));
            field.least_within(start, radius + start.distance(end)) <= reach
        }
        (Sweep::Shift { offset, velocity }, Implicit::Swept(swept)) => {
            let radius = radius + velocity.length() * snap.dt;
            swept.least_within(center - *offset, radius) <= reach
        }
        (Sweep::Turn { from, to, .. }, Implicit::Swept(swept)) => {
            let [start, end] = [from, to].map(|pose| pose.undo(center));
            swept.least_within(start, radius + start.distance(end)) <= reach
        }
    }
}
