//! Displacements that leave every pair of features half of its distance, for subdivision.
//!
//! In: positions where nothing crosses, the positions that vertices would go to, and bodies at
//! rest. Out: for each vertex the share of its displacement that it may go, which is 1 nearly
//! everywhere. It serves to make a smooth surface of a certified one [Bri03, §3.2]: vertices are
//! viewed as moving from the one to the other, and stop before they would collide.
//!
//! **Theorem.** Let [`Halving::run`] return shares t. If vertices go from `start` straight to
//! `start + t (goal - start)`, no two features that share no vertex cross on the way, nor does
//! cloth enter a body, and at the end their distance is at least half of that at the start, less
//! rounding (see `plane`). Features that touch or cross at the start stay where they are.
//!
//! *Proof.* A displacement of length u changes a distance by no more than u. So a pair whose
//! features go u and v at most keeps half of its distance if that is more than 2 (u + v), and all
//! others are found by volumes that are inflated by 2 u. Most of them are dropped for good: the
//! plane between their closest points at the start keeps half of the gap even if only those
//! vertices move that come closer, and that holds for all shares. The rest is watched. In each
//! round a watched pair is certified where its vertices end now: by one plane at both ends, or,
//! where all shares are 1, by continuous collision detection. Or its plane at the start cuts its
//! vertices, and so certifies it for all lesser shares. A pair cuts once, and shares only fall, so
//! the rounds end. Each round judges the shares that the one before left, and a share is the
//! minimum of what planes allow, so that the result does not depend on the order of pairs or on
//! threads.
//!
//! * \[Bri03\] Bridson: Computational aspects of dynamic surfaces, thesis, Stanford 2003.

use glam::DVec3;

use super::bodies::{Form, Mover};
use super::joined::{Positions, Triangles};
use super::meeting::{Meeting, Pair};
use super::plane::{self, Advance, Motion};
use super::search;
use super::truncate::Truncate;
use crate::collide::bvh::kdop::Kdop18;
use crate::collide::bvh::tree::{Bvh, Node};
use crate::collide::tangles::Kept;
use crate::parallel;

/// Displacements that are to be cut.
#[derive(Clone, Copy, Debug)]
pub struct Halving<'a> {
    /// All triangles: of cloth, and after it of bodies.
    pub surface: Triangles<'a>,
    /// A tree over the triangles.
    pub tree: &'a Bvh,
    /// The position at which each vertex starts, in m.
    pub start: Positions<'a>,
    /// The position to which each vertex would go, in m; those of bodies stay.
    pub goal: Positions<'a>,
    /// Vertices from this number on are of bodies. Their features are not tested against each
    /// other.
    pub movable: u32,
    /// The bodies, at rest.
    pub movers: &'a [Mover],
    /// The body of each vertex that is of one.
    pub body_of: &'a [u32],
}

/// The shares of displacements that may be gone.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Halved {
    /// The share of each vertex of cloth, from 0 to 1.
    pub kept: Vec<f64>,
    /// The number of pairs that were looked at.
    pub tests: u64,
    /// The number of rounds after the first look.
    pub rounds: u32,
}

impl Halved {
    /// The number of vertices that go less than all of their displacement.
    #[must_use]
    pub fn cut(&self) -> usize {
        self.kept.iter().filter(|kept| **kept < 1.0).count()
    }
}

/// A pair that the plane between its features at the start certifies only if vertices are cut.
#[derive(Clone, Copy, Debug)]
struct Watched {
    meeting: Meeting,
    /// The shares that the plane allows its vertices, in their order.
    allowed: [f64; 4],
    /// Whether it has cut its vertices.
    has_cut: bool,
}

/// The levels of pairs of nodes that are compared before threads share what is below them.
const SHARED_LEVELS: usize = 8;

/// The number of pairs, faces or vertices that a thread takes at a time.
const PART: usize = 1 << 12;

/// The vertices of a meeting: at most four.
fn vertices_of(meeting: &Meeting) -> ([u32; 4], usize) {
    match *meeting {
        Meeting::Features(pair) => (pair.vertices, 4),
        Meeting::Round {
            face: [a, b, c], ..
        } => ([a, b, c, 0], 3),
        Meeting::Vertex { vertex, .. } => ([vertex, 0, 0, 0], 1),
    }
}

/// The findings of a part of the search.
#[derive(Default)]
struct Found {
    watched: Vec<Watched>,
    tests: u64,
}

/// Finds the pairs that are to be watched.
struct Finder<'a> {
    /// The displacements as truncation sees them, for features of triangles and for bodies.
    step: Truncate<'a>,
    /// Twice the length of each vertex's displacement, in m.
    reach: Vec<f64>,
    /// The volume of each node of the tree, inflated by the reach of what is below it.
    volumes: Vec<Kdop18>,
    /// Whether a vertex below each node has a displacement.
    moves: Vec<bool>,
    /// Whether all below each node is of bodies.
    fixed: Vec<bool>,
}

impl Halving<'_> {
    /// Finds the shares.
    ///
    /// # Panics
    /// If arrays have other lengths than the surface has vertices.
    #[must_use]
    pub fn run(&self) -> Halved {
        let finder = Finder::new(self);
        let mut found = finder.features();
        finder.solids(&mut found);
        let mut halved = Halved {
            kept: vec![1.0; self.movable as usize],
            tests: found.tests,
            rounds: 0,
        };
        finder.cut(&mut found.watched, &mut halved);
        halved
    }
}

impl<'a> Finder<'a> {
    fn new(of: &Halving<'a>) -> Self {
        let tree = of.tree;
        let both = of.start.iter().zip(of.goal.iter());
        // The factor covers the rounding of lengths.
        let reach = both.map(|(start, goal)| 2.0 * (1.0 + 1e-12) * start.distance(*goal));
        let reach: Vec<f64> = reach.collect();
        let corners = |t: u32| of.surface.corners(t);
        let leaf = |t: u32| {
            let corners = corners(t);
            let [a, b, c] = corners.map(|v| reach[v as usize]);
            Kdop18::around(&corners.map(|v| of.start[v as usize]), a.max(b).max(c))
        };
        let mut volumes = Vec::new();
        tree.refit(leaf, &mut volumes);
        let (mut moves, mut fixed) = (vec![false; tree.len()], vec![false; tree.len()]);
        for node in (0..tree.len()).rev() {
            (moves[node], fixed[node]) = match tree.node(node as u32) {
                Node::Inner(child) => {
                    let child = child as usize;
                    (
                        moves[child] | moves[child + 1],
                        fixed[child] & fixed[child + 1],
                    )
                }
                Node::Leaf(t) => (
                    corners(t).iter().any(|&v| reach[v as usize] > 0.0),
                    corners(t)[0] >= of.movable,
                ),
            };
        }
        Self {
            step: Truncate {
                surface: of.surface,
                tree,
                start: of.start,
                goal: of.goal,
                masses: &[],
                movable: of.movable,
                movers: of.movers,
                body_of: of.body_of,
                held: &[],
                suspended: &[],
                kept: Kept::EMPTY,
                self_collision: true,
                least: 0.0,
            },
            reach,
            volumes,
            moves,
            fixed,
        }
    }

    /// Looks at all pairs of features that may come closer than half of their distance.
    fn features(&self) -> Found {
        let mut pairs = Vec::from_iter((!self.step.tree.is_empty()).then_some((0, 0)));
        let mut found = Found::default();
        // Pairs of nodes far up the tree come first; threads share what is below them.
        for _ in 0..SHARED_LEVELS {
            for pair in std::mem::take(&mut pairs) {
                self.descend(pair, &mut pairs, &mut found);
            }
        }
        let below = |k: usize| {
            let (mut stack, mut found) = (vec![pairs[k]], Found::default());
            while let Some(pair) = stack.pop() {
                self.descend(pair, &mut stack, &mut found);
            }
            found
        };
        for part in parallel::map(pairs.len(), below) {
            found.watched.extend(part.watched);
            found.tests += part.tests;
        }
        found
    }

    /// Compares two nodes, or a node with itself: appends the pairs below them that may meet, or
    /// looks at the features of two triangles.
    fn descend(&self, (a, b): (u32, u32), to: &mut Vec<(u32, u32)>, found: &mut Found) {
        let mut push = |a: u32, b: u32| {
            let (i, j) = (a as usize, b as usize);
            let is_idle = !(self.moves[i] | self.moves[j]) || self.fixed[i] & self.fixed[j];
            if !is_idle && (a == b || self.volumes[i].overlaps(&self.volumes[j])) {
                to.push((a, b));
            }
        };
        if let Some([s, t]) = self.step.tree.divide((a, b), &mut push) {
            self.step.features_of(s, t, |pair| {
                if self.may_halve(&pair) {
                    self.look(Meeting::Features(pair), found);
                }
            });
        }
    }

    /// Whether boxes around two features, inflated by their reach, meet, and one of them moves.
    #[inline]
    fn may_halve(&self, pair: &Pair) -> bool {
        let (first, second) = pair.vertices.split_at(pair.kind.first());
        let around = |vertices: &[u32]| {
            let all = [DVec3::INFINITY, DVec3::NEG_INFINITY];
            vertices.iter().fold((all, 0.0), |([low, high], most), &v| {
                let x = self.step.start[v as usize];
                let most = f64::max(most, self.reach[v as usize]);
                ([low.min(x), high.max(x)], most)
            })
        };
        let (([a, b], one), ([c, d], two)) = (around(first), around(second));
        let reach = DVec3::splat(one + two);
        one + two > 0.0 && (c - b).cmple(reach).all() && (a - d).cmple(reach).all()
    }

    /// Watches a pair unless its plane at the start certifies it for all shares.
    fn look(&self, meeting: Meeting, found: &mut Found) {
        found.tests += 1;
        let allowed = self.allowed(&meeting);
        if allowed.iter().any(|share| *share < 1.0) {
            found.watched.push(Watched {
                meeting,
                allowed,
                has_cut: false,
            });
        }
    }

    /// Looks at cloth beside bodies that have no triangles.
    fn solids(&self, found: &mut Found) {
        let step = &self.step;
        let movers = (0..).zip(step.movers);
        for (body, mover) in movers {
            let meet = |k: usize| match mover.form {
                Form::Triangles => None,
                Form::Plane { .. } | Form::Distance(_) => {
                    let vertex = k as u32;
                    (self.reach[k] > 0.0).then_some(Meeting::Vertex { vertex, body })
                }
                Form::Round { .. } => {
                    let face = step.surface.corners(k as u32);
                    let [a, b, c] = face.map(|v| self.reach[v as usize]);
                    let reach = a.max(b).max(c);
                    let (segment, radius) = mover.segment()?;
                    let of_face = Kdop18::around(&face.map(|v| step.start[v as usize]), reach);
                    let of_body = Kdop18::around(&segment[0], radius);
                    (face[0] < step.movable && reach > 0.0 && of_face.overlaps(&of_body))
                        .then_some(Meeting::Round { face, body })
                }
            };
            let count = match mover.form {
                Form::Triangles => 0,
                Form::Plane { .. } | Form::Distance(_) => step.movable as usize,
                Form::Round { .. } => step.surface.count(),
            };
            let parts = parallel::map_ranges(count, PART, |range| {
                let mut found = Found::default();
                for meeting in range.filter_map(meet) {
                    self.look(meeting, &mut found);
                }
                found
            });
            for part in parts {
                found.watched.extend(part.watched);
                found.tests += part.tests;
            }
        }
    }

    /// The shares that the plane of a pair at the start allows its vertices, whatever others do;
    /// none where there is no plane, because they touch or cross.
    fn allowed(&self, meeting: &Meeting) -> [f64; 4] {
        let step = &self.step;
        let displacement = |v: u32| step.goal[v as usize] - step.start[v as usize];
        match *meeting {
            Meeting::Features(Pair { kind, vertices }) => {
                let motion = self.motion(vertices, step.goal);
                let Some(plane) = plane::separating(kind, &motion.start) else {
                    return [0.0; 4];
                };
                let (low, high) = plane::sides(kind, &plane.heights);
                let points: [Advance; 4] = std::array::from_fn(|k| {
                    let first = k < kind.first();
                    let own = plane.normal.dot(displacement(vertices[k]));
                    let (behind, own) = match first {
                        true => (plane.heights[k] - low, -own),
                        false => (high - plane.heights[k], own),
                    };
                    Advance {
                        first,
                        behind,
                        base: 0.0,
                        own,
                    }
                });
                plane::limits(&points, 0.5 * plane.gap, motion.margin()).kept
            }
            Meeting::Round { face, body } => {
                let goal = face.map(|v| step.goal[v as usize]);
                let Some(seen) = step.seen_by_round(face, body, goal) else {
                    return [0.0; 4];
                };
                let points = seen.points(face.map(|v| [DVec3::ZERO, displacement(v)]));
                let [a, b, c, ..] = plane::limits(&points, 0.5 * seen.gap, seen.margin).kept;
                [a, b, c, 1.0]
            }
            Meeting::Vertex { vertex, body } if step.movers[body as usize].field().is_some() => {
                let goal = step.goal[vertex as usize];
                let Some(seen) = step.seen_by_field(vertex, body, goal) else {
                    return [0.0; 4];
                };
                let half = 0.5 * seen.gap;
                let kept = match seen.is_apart(half) {
                    true => 1.0,
                    false => {
                        let start = step.start[vertex as usize];
                        let mover = &step.movers[body as usize];
                        let end = |share: f64| mover.to.undo(along(start, goal, share));
                        seen.share(half, 1.0, end).unwrap_or(0.0)
                    }
                };
                [kept, 1.0, 1.0, 1.0]
            }
            Meeting::Vertex { vertex, body } => {
                let goal = step.goal[vertex as usize];
                let Some(seen) = step.seen_by_plane(vertex, body, goal) else {
                    return [0.0; 4];
                };
                let [start, end] = seen.heights;
                let point = |first, own| Advance {
                    first,
                    behind: 0.0,
                    base: 0.0,
                    own,
                };
                let points = [point(true, start - end), point(false, 0.0)];
                let [kept, _] = plane::limits(&points, 0.5 * start, seen.margin).kept;
                [kept, 1.0, 1.0, 1.0]
            }
        }
    }

    fn motion(&self, vertices: [u32; 4], end: Positions<'_>) -> Motion {
        let at = vertices.map(|v| v as usize);
        Motion {
            start: at.map(|v| self.step.start[v]),
            end: at.map(|v| end[v]),
        }
    }

    /// The place to which a vertex goes with the shares so far, in m.
    fn end(&self, vertex: u32, kept: &[f64]) -> DVec3 {
        let (start, goal) = (
            self.step.start[vertex as usize],
            self.step.goal[vertex as usize],
        );
        (kept.get(vertex as usize)).map_or(start, |&kept| along(start, goal, kept))
    }

    /// Cuts vertices until all watched pairs are certified.
    fn cut(&self, watched: &mut [Watched], halved: &mut Halved) {
        let mut changed: Option<Vec<bool>> = None;
        loop {
            let kept = &halved.kept;
            let is_open = |watched: &Watched| {
                let (vertices, count) = vertices_of(&watched.meeting);
                let anew = |changed: &Vec<bool>| {
                    let mut own = vertices[..count].iter();
                    own.any(|&v| changed.get(v as usize).is_some_and(|changed| *changed))
                };
                !watched.has_cut
                    && changed.as_ref().is_none_or(anew)
                    && !self.is_certified(&watched.meeting, kept)
            };
            let open = parallel::map_ranges(watched.len(), PART, |range| {
                range.filter(|&k| is_open(&watched[k])).collect::<Vec<_>>()
            });
            if open.iter().all(Vec::is_empty) {
                return;
            }
            halved.rounds += 1;
            let mut now = vec![false; halved.kept.len()];
            for k in open.into_iter().flatten() {
                let watched = &mut watched[k];
                watched.has_cut = true;
                let (vertices, count) = vertices_of(&watched.meeting);
                for (&v, &share) in vertices[..count].iter().zip(&watched.allowed) {
                    let Some(kept) = halved.kept.get_mut(v as usize) else {
                        continue;
                    };
                    if share < *kept && self.reach[v as usize] > 0.0 {
                        *kept = share;
                        now[v as usize] = true;
                    }
                }
            }
            changed = Some(now);
        }
    }

    /// Whether a pair is certified where its vertices end with the shares so far.
    fn is_certified(&self, meeting: &Meeting, kept: &[f64]) -> bool {
        match *meeting {
            Meeting::Features(Pair { kind, vertices }) => {
                let start = vertices.map(|v| self.step.start[v as usize]);
                let end = vertices.map(|v| self.end(v, kept));
                let motion = Motion { start, end };
                let Some(plane) = plane::separating(kind, &start) else {
                    return start == end;
                };
                let half = 0.5 * plane.gap;
                let whole = |&v: &u32| kept.get(v as usize).is_none_or(|kept| *kept >= 1.0);
                plane::keeps_apart(kind, &plane, &motion, half)
                    || vertices.iter().all(whole) && search::stays_apart(kind, &motion, half)
            }
            Meeting::Round { face, body } => {
                let end = face.map(|v| self.end(v, kept));
                match self.step.seen_by_round(face, body, end) {
                    Some(seen) => seen.is_apart(0.5 * seen.gap),
                    None => face.map(|v| self.step.start[v as usize]) == end,
                }
            }
            Meeting::Vertex { vertex, body }
                if self.step.movers[body as usize].field().is_some() =>
            {
                let end = self.end(vertex, kept);
                match self.step.seen_by_field(vertex, body, end) {
                    Some(seen) => seen.is_apart(0.5 * seen.gap),
                    None => self.step.start[vertex as usize] == end,
                }
            }
            Meeting::Vertex { vertex, body } => {
                let end = self.end(vertex, kept);
                match self.step.seen_by_plane(vertex, body, end) {
                    Some(seen) => seen.is_apart(0.5 * seen.heights[0]),
                    None => self.step.start[vertex as usize] == end,
                }
            }
        }
    }
}

/// The place that is a share of the way from one to another. All of it ends with the bits of the
/// other.
#[must_use]
pub fn along(start: DVec3, goal: DVec3, share: f64) -> DVec3 {
    if share >= 1.0 {
        goal
    } else if share > 0.0 {
        start + (goal - start) * share
    } else {
        start
    }
}
