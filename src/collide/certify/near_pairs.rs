//! The search for what vertices may cross, in the tree of all triangles.
//!
//! Volumes are around the displacements of what is below a node, so the search is complete whatever
//! vertices do. It descends only where a vertex of interest is below one of two nodes, and it makes
//! volumes anew only above vertices that have changed.

use glam::DVec3;

use super::bodies::Form;
use super::joined::Positions;
use super::meeting::{Meeting, Pair};
use super::truncate::Truncate;
use crate::collide::bvh::kdop::Kdop18;
use crate::collide::bvh::tree::Node;

/// A round's view of the tree.
#[derive(Default)]
pub(super) struct Round {
    /// Volumes around the displacements of what is below each node.
    volumes: Vec<Kdop18>,
    /// Whether a vertex below a node ends elsewhere than in the round before.
    changed: Vec<bool>,
    /// Whether all vertices below a node cannot be stopped.
    fixed: Vec<bool>,
    stack: Vec<(u32, u32)>,
}

impl Truncate<'_> {
    /// Whether volumes around displacements to the goals meet, half of the gap wider.
    pub(super) fn may_meet(&self, meeting: &Meeting) -> bool {
        match meeting {
            Meeting::Features(pair) => {
                let (first, second) = pair.vertices.split_at(pair.kind.first());
                let around = |vertices: &[u32]| self.around(vertices, self.goal);
                around(first).overlaps(&around(second))
            }
            Meeting::Round { face, body } => {
                let segment = self.movers[*body as usize].segment();
                segment.is_some_and(|(segment, radius)| {
                    let radius = radius + 0.5 * self.least;
                    let around = Kdop18::around(segment.as_flattened(), radius);
                    self.around(face, self.goal).overlaps(&around)
                })
            }
            Meeting::Vertex { .. } => true,
        }
    }

    /// Finds the meetings of changed vertices with bodies that have no triangles, for vertices that
    /// end at these places, in m, beyond the displacement that is common to all.
    pub(super) fn search_solids(
        &self,
        ends: Positions<'_>,
        common: Option<&[DVec3]>,
        changed: &[bool],
        mut f: impl FnMut(Meeting),
    ) {
        let beyond = |at: usize| common.map_or(DVec3::ZERO, |common| common[at]);
        for (body, mover) in (0..).zip(self.movers) {
            match mover.form {
                Form::Triangles => {}
                Form::Plane { .. } | Form::Distance(_) => {
                    let vertices = (0..self.movable).filter(|&v| changed[v as usize]);
                    vertices.for_each(|vertex| f(Meeting::Vertex { vertex, body }));
                }
                Form::Round { .. } => {
                    let Some((segment, radius)) = mover.segment() else {
                        continue;
                    };
                    let around = Kdop18::around(segment.as_flattened(), radius + self.least);
                    for &face in self.surface.cloth().triangles() {
                        let is_cloth = face.iter().all(|&v| v < self.movable);
                        if is_cloth && face.iter().any(|&v| changed[v as usize]) {
                            let mut points = [DVec3::ZERO; 6];
                            for (room, &v) in points.chunks_exact_mut(2).zip(&face) {
                                let at = v as usize;
                                room.copy_from_slice(&[self.start[at], ends[at] + beyond(at)]);
                            }
                            if Kdop18::around(&points, 0.0).overlaps(&around) {
                                f(Meeting::Round { face, body });
                            }
                        }
                    }
                }
            }
        }
    }

    fn corners(&self, triangle: u32) -> [u32; 3] {
        self.surface.corners(triangle)
    }

    /// Brings the volumes up to date: all in the first round, and then those with changed vertices.
    pub(super) fn refit(&self, ends: Positions<'_>, changed: &[bool], round: &mut Round) {
        let Round {
            volumes,
            changed: below,
            fixed,
            ..
        } = round;
        let nodes = self.tree.len();
        let first = volumes.is_empty();
        volumes.resize(nodes, Kdop18::EMPTY);
        below.resize(nodes, false);
        fixed.resize(nodes, false);
        for node in (0..nodes).rev() {
            match self.tree.node(node as u32) {
                Node::Inner(child) => {
                    let child = child as usize;
                    below[node] = below[child] | below[child + 1];
                    fixed[node] = fixed[child] & fixed[child + 1];
                    if first || below[node] {
                        volumes[node] = volumes[child].union(&volumes[child + 1]);
                    }
                }
                Node::Leaf(triangle) => {
                    let corners = self.corners(triangle);
                    below[node] = corners.iter().any(|&v| changed[v as usize]);
                    fixed[node] = corners.iter().all(|&v| v >= self.movable);
                    if first || below[node] {
                        volumes[node] = self.around(&corners, ends);
                    }
                }
            }
        }
    }

    /// A volume around the displacements of vertices: half of the gap wider, so that pairs outside
    /// each other's keep the gap.
    pub(super) fn around(&self, vertices: &[u32], ends: Positions<'_>) -> Kdop18 {
        let mut points = [DVec3::ZERO; 6];
        for (room, &v) in points.chunks_exact_mut(2).zip(vertices) {
            room.copy_from_slice(&[self.start[v as usize], ends[v as usize]]);
        }
        Kdop18::around(&points[..2 * vertices.len()], 0.5 * self.least)
    }

    /// Finds the pairs with a changed vertex whose volumes meet, each once.
    pub(super) fn search(
        &self,
        ends: Positions<'_>,
        changed: &[bool],
        round: &mut Round,
        mut f: impl FnMut(Pair),
    ) {
        let Round {
            volumes,
            changed: below,
            fixed,
            stack,
        } = round;
        stack.clear();
        stack.extend((!self.tree.is_empty()).then_some((0, 0)));
        while let Some((a, b)) = stack.pop() {
            let (i, j) = (a as usize, b as usize);
            if !(below[i] | below[j])
                || fixed[i] & fixed[j]
                || a != b && !volumes[i].overlaps(&volumes[j])
            {
                continue;
            }
            match (self.tree.node(a), self.tree.node(b)) {
                (Node::Inner(first), _) if a == b => {
                    stack.extend([(first, first), (first + 1, first + 1), (first, first + 1)]);
                }
                (Node::Inner(first), Node::Inner(second)) => {
                    let pairs = [(0, 0), (0, 1), (1, 0), (1, 1)];
                    stack.extend(pairs.map(|(i, j)| (first + i, second + j)));
                }
                (Node::Inner(first), Node::Leaf(_)) => stack.extend([(first, b), (first + 1, b)]),
                (Node::Leaf(_), Node::Inner(second)) => {
                    stack.extend([(a, second), (a, second + 1)])
                }
                (Node::Leaf(s), Node::Leaf(t)) => self.pairs_of(s, t, ends, changed, &mut f),
            }
        }
    }

    /// Finds the pairs of features of two triangles that these own, have a changed vertex, and
    /// whose volumes meet.
    fn pairs_of(
        &self,
        s: u32,
        t: u32,
        ends: Positions<'_>,
        changed: &[bool],
        f: &mut impl FnMut(Pair),
    ) {
        // A volume around several vertices is the union of theirs, to the bit.
        let corners = [self.corners(s), self.corners(t)];
        let mut volumes = [None; 6];
        let mut around = |vertices: &[u32]| {
            let mut all = Kdop18::EMPTY;
            for &v in vertices {
                let at = corners
                    .as_flattened()
                    .iter()
                    .position(|&corner| corner == v);
                let make = || self.around(&[v], ends);
                all = all.union(&match at {
                    Some(at) => *volumes[at].get_or_insert_with(make),
                    None => make(),
                });
            }
            all
        };
        self.features_of(s, t, |pair| {
            let (first, second) = pair.vertices.split_at(pair.kind.first());
            let any_changed = pair.vertices.iter().any(|&v| changed[v as usize]);
            if any_changed && around(first).overlaps(&around(second)) {
                f(pair);
            }
        });
    }

    /// Finds the pairs of features of two triangles that these own, that share no vertex, and that
    /// are to be kept apart.
    pub(super) fn features_of(&self, s: u32, t: u32, mut f: impl FnMut(Pair)) {
        let mut consider = |pair: Pair| {
            let Pair { kind, vertices } = pair;
            let (first, second) = vertices.split_at(kind.first());
            let fixed = vertices.iter().filter(|&&v| v >= self.movable).count();
            let of_interest = fixed < 4 && (fixed > 0 || self.self_collision);
            let shared = first.iter().any(|v| second.contains(v));
            let passes = self.surface.passing().lets(first, second);
            if of_interest && !shared && !passes && !self.lets_pass(&pair) {
                f(pair);
            }
        };
        for (owner, face) in [(s, t), (t, s)] {
            let corners = self.corners(face);
            for v in self.surface.face(owner).owned_corners() {
                consider(Pair::vertex_face(v, corners));
            }
            if s == t {
                break;
            }
        }
        if s != t {
            let edges = |t: u32| self.surface.face(t).owned_edges();
            for (_, one) in edges(s) {
                for (_, other) in edges(t) {
                    consider(Pair::edges(one, other));
                }
            }
        }
    }
}
