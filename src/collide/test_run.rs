//! Testing hierarchies against each other, as a value: it can be stopped, split and sent.
//!
//! The recursion of a bounding volume test is kept on an explicit stack of untried *tests*, pairs of nodes
//! [TB06 §4.2.2, Fig. 5]. The owner takes the newest; what is given away is the oldest, nearest to the root
//! and so likely the largest, or every other test, which shares evenly whatever the tree's shape. A test is
//! only pushed if its volumes overlap.
//!
//! Not here: who gives to whom and when.

use serde::{Deserialize, Serialize};

use super::body::Body;
use super::bvh::Node;
use super::contact::Contact;
use super::kdop::Kdop;
use super::narrow;
use super::snapshot::Snapshot;

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

/// A test under way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestRun {
    target: Target,
    /// Untried tests, oldest first: a node of each tree (for a patch against itself, equal nodes stand for
    /// all pairs below; for an analytic body the second is 0).
    stack: Vec<(u32, u32)>,
}

impl TestRun {
    /// The whole test of a target; `None` if its roots are apart.
    #[must_use]
    pub fn new(target: Target, snap: &Snapshot<'_>) -> Option<Self> {
        let tree = Trees::of(target, snap);
        let exists = !tree.first.is_empty() && (tree.analytic() || !tree.second.is_empty());
        (exists && tree.meet(0, 0)).then(|| Self {
            target,
            stack: vec![(0, 0)],
        })
    }

    /// What is tested.
    #[must_use]
    pub fn target(&self) -> Target {
        self.target
    }

    /// Tests until done or until `budget` tests were made; returns how many were, and whether it is done.
    ///
    /// Contacts are appended in no order that matters.
    pub fn advance(
        &mut self,
        snap: &Snapshot<'_>,
        budget: u32,
        out: &mut Vec<Contact>,
    ) -> (u32, bool) {
        let tree = Trees::of(self.target, snap);
        let mut tests = 0;
        while tests < budget {
            let Some((a, b)) = self.stack.pop() else {
                return (tests, true);
            };
            tests += tree.expand(a, b, &mut self.stack, out);
        }
        (tests, self.stack.is_empty())
    }

    /// Gives pending tests away, as another run of the same target: those that `take` takes out of the
    /// stack, oldest first.
    pub fn split(
        &mut self,
        take: impl FnOnce(&mut Vec<(u32, u32)>) -> Option<Vec<(u32, u32)>>,
    ) -> Option<Self> {
        let stack = take(&mut self.stack)?;
        Some(Self {
            target: self.target,
            stack,
        })
    }

    /// Whether all it names exists: to be asked of a run that came from elsewhere.
    #[must_use]
    pub fn is_valid(&self, snap: &Snapshot<'_>) -> bool {
        let patches = snap.cloth.patches();
        let nodes = |p: u32| patches.get(p as usize).map(|tree| tree.nodes().len());
        let (first, second) = match self.target {
            Target::Patch(p) => (nodes(p), nodes(p)),
            Target::Patches(p, q) if p < q => (nodes(p), nodes(q)),
            Target::Patches(..) => return false,
            Target::PatchBody(p, b) => {
                let body = snap.bodies.get(b as usize).map(|body| match body {
                    Body::Triangles(surface) => surface.tree.nodes().len(),
                    Body::Analytic(_) => 1,
                });
                (nodes(p), body)
            }
        };
        let (Some(first), Some(second)) = (first, second) else {
            return false;
        };
        self.stack
            .iter()
            .all(|&(a, b)| (a as usize) < first && (b as usize) < second)
    }
}

/// The two hierarchies of a target.
struct Trees<'a, 'b> {
    snap: &'a Snapshot<'b>,
    target: Target,
    first: &'a [Node],
    second: &'a [Node],
    first_volumes: &'a [Kdop],
    second_volumes: &'a [Kdop],
}

impl<'a, 'b> Trees<'a, 'b> {
    fn of(target: Target, snap: &'a Snapshot<'b>) -> Self {
        let patch = |p: u32| {
            (
                snap.cloth.patches()[p as usize].nodes(),
                snap.patch_volumes(p),
            )
        };
        let (first, second) = match target {
            Target::Patch(p) => (patch(p), patch(p)),
            Target::Patches(p, q) => (patch(p), patch(q)),
            Target::PatchBody(p, b) => {
                let body = match &snap.bodies[b as usize] {
                    Body::Triangles(surface) => (surface.tree.nodes(), snap.body_volumes(b)),
                    Body::Analytic(_) => (&[][..], &[][..]),
                };
                (patch(p), body)
            }
        };
        Self {
            snap,
            target,
            first: first.0,
            second: second.0,
            first_volumes: first.1,
            second_volumes: second.1,
        }
    }

    /// Whether the second object is given by a distance and not by a tree.
    fn analytic(&self) -> bool {
        matches!(self.target, Target::PatchBody(_, b)
            if matches!(self.snap.bodies[b as usize], Body::Analytic(_)))
    }

    /// Whether the volumes of two nodes overlap.
    fn meet(&self, a: u32, b: u32) -> bool {
        let volume = &self.first_volumes[a as usize];
        match self.target {
            Target::PatchBody(_, body) => match &self.snap.bodies[body as usize] {
                Body::Triangles(_) => volume.overlaps(&self.second_volumes[b as usize]),
                Body::Analytic(solid) => {
                    let velocity = self.snap.body_velocities[body as usize];
                    let (center, radius) = volume.ball();
                    let (gap, _) = solid.distance(center - self.snap.body_offset(body));
                    gap <= radius + self.snap.reach + velocity.length() * self.snap.dt
                }
            },
            _ => volume.overlaps(&self.second_volumes[b as usize]),
        }
    }

    /// Expands one test: pushes the tests below it that overlap, or tests two triangles. Returns the
    /// number of tests made.
    fn expand(&self, a: u32, b: u32, stack: &mut Vec<(u32, u32)>, out: &mut Vec<Contact>) -> u32 {
        if self.analytic() {
            return self.expand_analytic(a, stack, out);
        }
        if matches!(self.target, Target::Patch(_)) && a == b {
            // All pairs below one node: those below each child, and those between the children.
            if let Node::Inner(left, right) = self.first[a as usize] {
                if self.meet(left, right) {
                    stack.push((left, right));
                }
                stack.push((left, left));
                stack.push((right, right));
            }
            return 1;
        }
        let mut push = |a: u32, b: u32| {
            if self.meet(a, b) {
                stack.push((a, b));
            }
        };
        match (self.first[a as usize], self.second[b as usize]) {
            (Node::Leaf(s), Node::Leaf(t)) => {
                let volumes = [
                    &self.first_volumes[a as usize],
                    &self.second_volumes[b as usize],
                ];
                self.leaves([s, t], volumes, out);
                1
            }
            (Node::Leaf(_), Node::Inner(left, right)) => {
                push(a, left);
                push(a, right);
                2
            }
            (Node::Inner(left, right), Node::Leaf(_)) => {
                push(left, b);
                push(right, b);
                2
            }
            (Node::Inner(left, right), Node::Inner(low, high)) => {
                push(left, low);
                push(left, high);
                push(right, low);
                push(right, high);
                4
            }
        }
    }

    fn expand_analytic(&self, a: u32, stack: &mut Vec<(u32, u32)>, out: &mut Vec<Contact>) -> u32 {
        match self.first[a as usize] {
            Node::Inner(left, right) => {
                for child in [left, right] {
                    if self.meet(child, 0) {
                        stack.push((child, 0));
                    }
                }
                2
            }
            Node::Leaf(t) => {
                if let Target::PatchBody(_, body) = self.target
                    && let Body::Analytic(solid) = &self.snap.bodies[body as usize]
                {
                    narrow::analytic(self.snap, (body, solid), t, out);
                }
                1
            }
        }
    }

    fn leaves(&self, [s, t]: [u32; 2], volumes: [&Kdop; 2], out: &mut Vec<Contact>) {
        match self.target {
            Target::PatchBody(_, body) => {
                if let Body::Triangles(solid) = &self.snap.bodies[body as usize] {
                    narrow::body_pair(self.snap, (body, solid), s, t, out);
                }
            }
            _ => narrow::cloth_pair(self.snap, [s, t], Some(volumes), out),
        }
    }
}

/// All contacts of a step by testing every pair of triangles: slow, simple, the reference.
#[must_use]
pub fn brute_force(snap: &Snapshot<'_>) -> Vec<Contact> {
    let mut out = Vec::new();
    let cloth = snap.cloth.surface().triangles().len() as u32;
    if snap
        .targets()
        .any(|target| matches!(target, Target::Patch(_)))
    {
        for s in 0..cloth {
            for t in s + 1..cloth {
                narrow::cloth_pair(snap, [s, t], None, &mut out);
            }
        }
    }
    for (b, body) in (0..).zip(snap.bodies) {
        for t in 0..cloth {
            match body {
                Body::Triangles(solid) => {
                    for f in 0..solid.surface.triangles().len() as u32 {
                        narrow::body_pair(snap, (b, solid), t, f, &mut out);
                    }
                }
                Body::Analytic(solid) => narrow::analytic(snap, (b, solid), t, &mut out),
            }
        }
    }
    out.sort_unstable_by_key(|c| c.id);
    out
}
