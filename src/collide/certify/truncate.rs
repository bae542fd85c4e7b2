//! The rounds of truncation: planes for hits, then for what the cuts of the round before may lead
//! to.

use glam::DVec3;

use super::common;
use super::plane::{self, Kind, Motion};
use crate::collide::bvh::kdop::Kdop18;
use crate::collide::bvh::tree::{Bvh, Node};
use crate::collide::surface::Surface;

/// A pair of features that share no vertex.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pair {
    /// A vertex and a face, or two edges.
    pub kind: Kind,
    /// The vertices of the first feature, then of the second.
    pub vertices: [u32; 4],
}

/// A step that is to be truncated.
#[derive(Clone, Copy, Debug)]
pub struct Truncate<'a> {
    /// All triangles: of cloth, and of bodies.
    pub surface: &'a Surface,
    /// A tree over the triangles.
    pub tree: &'a Bvh,
    /// Where each vertex starts, in m.
    pub start: &'a [DVec3],
    /// Where each vertex would go, in m.
    pub goal: &'a [DVec3],
    /// The mass of each vertex in kg: common motion is a mean by mass.
    pub masses: &'a [f64],
    /// Vertices from this number on cannot be stopped: those of bodies. Their features are not
    /// tested against each other.
    pub movable: u32,
    /// The gap that features leave between them, in m, unless they start with less; far above the
    /// rounding of coordinates.
    pub least: f64,
}

/// What truncation has found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Truncated {
    /// The share of its displacement beyond the common displacement that each vertex goes, from 0
    /// to 1.
    pub kept: Vec<f64>,
    /// The displacement in m that each vertex has in common with all that is near; empty where
    /// nothing is cut.
    pub common: Vec<DVec3>,
    /// Pairs that nothing keeps apart, because they have vertices that cannot be stopped;
    /// ascending.
    pub squeezed: Vec<Pair>,
    /// How many rounds it took.
    pub rounds: u32,
    /// How many pairs were tested in all rounds.
    pub tests: u64,
    /// How many times a plane was imposed on a pair.
    pub planes: u64,
}

impl Truncated {
    /// Where a vertex ends, in m. A vertex that goes to its goal has the bits of its goal, and one
    /// that stays those of its start.
    #[must_use]
    #[inline]
    pub fn end(&self, step: &Truncate<'_>, vertex: u32) -> DVec3 {
        let at = vertex as usize;
        let (start, goal, kept) = (step.start[at], step.goal[at], self.kept[at]);
        if kept >= 1.0 {
            return goal;
        }
        let common = self.common[at];
        if kept > 0.0 {
            start + (common + (goal - start - common) * kept)
        } else if common == DVec3::ZERO {
            start
        } else {
            start + common
        }
    }
}

/// A round's view of the tree.
#[derive(Default)]
pub(super) struct Round {
    /// Volumes around the displacements of what is below each node.
    volumes: Vec<Kdop18>,
    /// Whether a vertex below a node was cut in the round before.
    changed: Vec<bool>,
    /// Whether all vertices below a node cannot be stopped.
    fixed: Vec<bool>,
    stack: Vec<(u32, u32)>,
}

impl Truncate<'_> {
    /// Cuts displacements until every pair is certified that is a hit or has a cut vertex.
    ///
    /// # Panics
    /// If arrays have other lengths than the surface has vertices.
    #[must_use]
    pub fn run(&self, hits: &[Pair]) -> Truncated {
        let mut found = Truncated {
            kept: vec![1.0; self.start.len()],
            ..Truncated::default()
        };
        if hits.is_empty() {
            return found;
        }
        found.common = common::displacements(self);
        // Where vertices end, as seen from what moves with the common displacement.
        let mut ends: Vec<DVec3> = self
            .goal
            .iter()
            .zip(&found.common)
            .map(|(x, w)| x - w)
            .collect();
        // Shares that a round's planes allow, apart from those by which it judges.
        let mut next = found.kept.clone();
        let mut cut: Vec<u32> = Vec::new();
        for pair in hits {
            found.tests += 1;
            self.judge(pair, &ends, &mut next, &mut cut, &mut found);
        }
        let mut changed = vec![false; self.start.len()];
        let mut round = Round::default();
        while !cut.is_empty() {
            found.rounds += 1;
            changed.fill(false);
            for &vertex in &cut {
                let at = vertex as usize;
                if next[at] < found.kept[at] {
                    found.kept[at] = next[at];
                    ends[at] = found.end(self, vertex) - found.common[at];
                    changed[at] = true;
                }
            }
            cut.clear();
            self.refit(&ends, &changed, &mut round);
            self.search(&ends, &changed, &mut round, |pair| {
                found.tests += 1;
                self.judge(&pair, &ends, &mut next, &mut cut, &mut found);
            });
        }
        found.squeezed.sort_unstable();
        found.squeezed.dedup();
        found
    }

    /// Tests a pair, and lowers the shares of its vertices unless it is certified.
    fn judge(
        &self,
        pair: &Pair,
        ends: &[DVec3],
        next: &mut [f64],
        cut: &mut Vec<u32>,
        found: &mut Truncated,
    ) {
        let at = pair.vertices.map(|v| v as usize);
        let displacements = Motion {
            start: at.map(|v| self.start[v]),
            end: at.map(|v| ends[v]),
        };
        let mut lower = |k: usize, share: f64| {
            if share < next[at[k]] {
                next[at[k]] = share;
                cut.push(pair.vertices[k]);
            }
        };
        let movable = pair.vertices.map(|v| v < self.movable);
        let Some(plane) = plane::separating(pair.kind, &displacements.start) else {
            // They touch or cross at the start: they stay as they are.
            found.planes += 1;
            for k in (0..4).filter(|&k| movable[k]) {
                lower(k, 0.0);
            }
            return;
        };
        if plane::keeps_apart(pair.kind, &plane, &displacements, self.least) {
            return;
        }
        found.planes += 1;
        let kept = at.map(|v| found.kept[v]);
        let whole = at.map(|v| self.goal[v] - self.start[v] - found.common[v]);
        let margin = displacements.margin();
        let limits = plane::limits(pair.kind, &plane, &whole, movable, self.least, margin);
        if limits.squeezed {
            found.squeezed.push(*pair);
        }
        let mut lowered = false;
        for k in 0..4 {
            lowered |= movable[k] && limits.kept[k] < kept[k];
            lower(k, limits.kept[k]);
        }
        if !lowered && !limits.squeezed {
            // The plane's limits hold already, and rounding leaves a doubt all the same.
            for k in (0..4).filter(|&k| movable[k]) {
                lower(k, 0.0);
            }
        }
    }

    fn corners(&self, triangle: u32) -> [u32; 3] {
        self.surface.triangles()[triangle as usize]
    }

    /// Brings the volumes up to date: all in the first round, and then those that shrink.
    pub(super) fn refit(&self, ends: &[DVec3], changed: &[bool], round: &mut Round) {
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
    pub(super) fn around(&self, vertices: &[u32], ends: &[DVec3]) -> Kdop18 {
        let mut points = [DVec3::ZERO; 6];
        for (room, &v) in points.chunks_exact_mut(2).zip(vertices) {
            room.copy_from_slice(&[self.start[v as usize], ends[v as usize]]);
        }
        Kdop18::around(&points[..2 * vertices.len()], 0.5 * self.least)
    }

    /// Finds the pairs with a changed vertex whose volumes meet, each once.
    pub(super) fn search(
        &self,
        ends: &[DVec3],
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
    fn pairs_of(&self, s: u32, t: u32, ends: &[DVec3], changed: &[bool], f: &mut impl FnMut(Pair)) {
        let mut consider = |kind: Kind, vertices: [u32; 4]| {
            let (first, second) = vertices.split_at(kind.first());
            let any_changed = vertices.iter().any(|&v| changed[v as usize]);
            let all_fixed = vertices.iter().all(|&v| v >= self.movable);
            let shared = first.iter().any(|v| second.contains(v));
            if any_changed
                && !all_fixed
                && !shared
                && self
                    .around(first, ends)
                    .overlaps(&self.around(second, ends))
            {
                f(Pair { kind, vertices });
            }
        };
        for (owner, face) in [(s, t), (t, s)] {
            let [a, b, c] = self.corners(face);
            for v in self.surface.owned_vertices(owner) {
                consider(Kind::VertexFace, [v, a, b, c]);
            }
            if s == t {
                break;
            }
        }
        if s != t {
            for e in self.surface.owned_edges(s) {
                let [a, b] = self.surface.edges()[e as usize];
                for e in self.surface.owned_edges(t) {
                    let [c, d] = self.surface.edges()[e as usize];
                    consider(Kind::EdgeEdge, [a, b, c, d]);
                }
            }
        }
    }
}
