//! The search for hits: what may cross while all vertices go at a common rate.
//!
//! The search of contacts has looked at every pair that may come within reach while vertices go as
//! foreseen. These candidates are tested again with the displacements that the step came to. A
//! vertex that ends elsewhere than foreseen by nearly half the reach or more is an *exceeder*: the
//! pairs that it may cross are searched for anew, in the tree of all triangles.

use std::collections::BTreeSet;

use glam::DVec3;

use super::bodies::{Form, Scenery};
use super::joined::Positions;
use super::meeting::{Meeting, Pair};
use super::near_pairs::Round;
use super::plane::{self, Kind, Motion};
use super::truncate::Truncate;
use crate::collide::audit::Skin;
use crate::collide::narrow::ccd::{
    self, Answer, EdgeEdge, Separation, VertexFace, edge_edge, vertex_face,
};
use crate::collide::narrow::closest::{on_segments, on_triangle};
use crate::collide::query::findings::Candidate;
use crate::collide::tangles::Kept;

/// The outcome of a search.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hits {
    /// The meetings that are not certified, in no order that matters; some may be there twice.
    pub meetings: Vec<Meeting>,
    /// The number of tests that were made.
    pub tests: u64,
}

/// The share of a distance by which a plane between closest points may fall short of it, as normal
/// vectors of short distances are rounded.
const ROUNDING_OF_NORMALS: f64 = 1e-4;

/// Whether a pair stays apart whose vertices go at a common rate: by one plane, or, where features
/// turn about each other, by [continuous collision detection](crate::collide::ccd).
#[must_use]
pub fn is_certified(kind: Kind, displacements: &Motion, least: f64) -> bool {
    let seen = displacements.less_mean();
    plane::separating(kind, &seen.start).is_some_and(|at_start| {
        plane::keeps_apart(kind, &at_start, &seen, least) || turns_apart(kind, displacements, least)
    })
}

/// Whether continuous collision detection shows that a pair keeps half of a distance (m) on its
/// way, at the end of which it has all of it; or half of its distance at the start, if this is
/// less.
///
/// Half is enough on the way, since the distance is whole again when the next substep begins.
fn turns_apart(kind: Kind, displacements: &Motion, least: f64) -> bool {
    let Motion { start, end } = displacements;
    let closest = |points| plane::between_closest_points(kind, points);
    let (Some((_, before)), Some((normal, after))) = (closest(start), closest(end)) else {
        return false;
    };
    after >= plane::needed(before, least, displacements.margin())
        // The points that were found are the closest ones, for a plane between them parts the pair.
        && plane::gap(kind, normal, end) >= (1.0 - ROUNDING_OF_NORMALS) * after
        && stays_apart(kind, displacements, 0.5 * before.min(least))
}

/// Whether the plane between the closest points at the start certifies a pair: the first test of
/// [`is_certified`], with a margin that serves for all pairs.
#[inline]
fn is_surely_certified(kind: Kind, displacements: &Motion, least: f64, margin: f64) -> bool {
    let Motion { start, end } = displacements;
    let [a, b, c] = [0, 1, 2].map(|k| start[k] - start[3]);
    let normal = match kind {
        Kind::VertexFace => {
            let [u, v, _] = on_triangle(a, b, c, DVec3::ZERO);
            a - (b * u + c * v)
        }
        Kind::EdgeEdge => {
            let (s, t) = on_segments(a, b, c, DVec3::ZERO);
            a.lerp(b, s) - c * (1.0 - t)
        }
    };
    // Heights are in units of the normal vector's length.
    let length = normal.length();
    let at_start = [normal.dot(a), normal.dot(b), normal.dot(c), 0.0];
    let at_end = end.map(|x| normal.dot(x - end[3]));
    let gap = |heights: &[f64; 4]| {
        let (low, high) = plane::sides(kind, heights);
        low - high
    };
    let (gap, gap_at_end) = (gap(&at_start) / length, gap(&at_end) / length);
    // No comparison holds of what is no number.
    gap > margin && gap > 0.5 * length && gap_at_end >= plane::needed(gap, least, margin)
}

/// Whether the plane of a body's triangle keeps all of it apart from a triangle of cloth.
#[inline]
fn is_above(step: &Truncate<'_>, cloth: [u32; 3], of_body: [u32; 3], margin: f64) -> bool {
    let at = |x: Positions<'_>, t: [u32; 3]| t.map(|v| x[v as usize]);
    let (start, end) = (at(step.start, of_body), at(step.goal, of_body));
    let normal = (start[1] - start[0]).cross(start[2] - start[0]);
    let length = normal.length();
    let gap = |x: Positions<'_>, of_body: &[DVec3; 3]| {
        let heights = |t: &[DVec3; 3]| t.map(|p| normal.dot(p - of_body[0]));
        let (cloth, body) = (heights(&at(x, cloth)), heights(of_body));
        let low = cloth[0].min(cloth[1]).min(cloth[2]);
        (low - body[0].max(body[1]).max(body[2])) / length
    };
    let gap_at_start = gap(step.start, &start);
    gap_at_start > margin && gap(step.goal, &end) >= plane::needed(gap_at_start, step.least, margin)
}

/// The rounding of heights of all points of a step, in m.
fn margin_of(step: &Truncate<'_>) -> f64 {
    margin_within(farthest_of(step))
}

/// The largest magnitude of a coordinate of any point of a step, in m.
pub(crate) fn farthest_of(step: &Truncate<'_>) -> f64 {
    let all = step.start.iter().chain(step.goal.iter());
    all.map(|x| x.abs().max_element()).fold(0.0, f64::max)
}

/// The rounding of heights of points with coordinates of at most this magnitude (m), in m.
pub(crate) fn margin_within(farthest: f64) -> f64 {
    plane::margin(farthest)
}

/// Whether continuous collision detection shows that a pair keeps a distance.
#[cold]
pub(super) fn stays_apart(kind: Kind, displacements: &Motion, least: f64) -> bool {
    let Ok(separation) = Separation::new(least) else {
        return false;
    };
    let answer = match features(kind, displacements) {
        Features::VertexFace(query) => vertex_face(&query, separation),
        Features::Edges(query) => edge_edge(&query, separation),
    };
    answer == Ok(Answer::Safe)
}

/// Two features on their ways, as continuous collision detection takes them.
pub(super) enum Features {
    VertexFace(VertexFace),
    Edges(EdgeEdge),
}

pub(super) fn features(kind: Kind, displacements: &Motion) -> Features {
    let [a, b, c, d] = std::array::from_fn(|k| ccd::Motion {
        start: displacements.start[k],
        end: displacements.end[k],
    });
    match kind {
        Kind::VertexFace => Features::VertexFace(VertexFace {
            vertex: a,
            face: [b, c, d],
        }),
        Kind::EdgeEdge => Features::Edges(EdgeEdge {
            first: [a, b],
            second: [c, d],
        }),
    }
}

impl Hits {
    /// Tests candidates of the search of contacts, which come in lists. `margin` is the
    /// [rounding](margin_of) of heights of all points, in m.
    pub(crate) fn add_candidates(
        &mut self,
        step: &Truncate<'_>,
        scenery: &Scenery,
        (candidates, margin): (&[Vec<Candidate>], f64),
    ) {
        let cloth = step.surface.cloth();
        let (triangles, edges) = (cloth.triangles(), cloth.edges());
        for candidate in candidates.iter().flatten() {
            let &Candidate { kind, body, a, b } = candidate;
            match kind {
                Candidate::VERTEX_FACE => {
                    let [p, q, r] = triangles[b as usize];
                    self.test_features(step, Pair::vertex_face(a, [p, q, r]), margin);
                }
                Candidate::EDGES => {
                    let pair = Pair::edges(edges[a as usize], edges[b as usize]);
                    self.test_features(step, pair, margin);
                }
                Candidate::TRIANGLES => {
                    let of_body = scenery.triangles_of(body).start + b;
                    self.test_triangles(step, [a, of_body], margin);
                }
                _ => match step.movers[body as usize].form {
                    Form::Triangles => {
                        for t in scenery.triangles_of(body) {
                            self.test_triangles(step, [a, t], margin);
                        }
                    }
                    Form::Round { .. } => {
                        let face = triangles[a as usize];
                        self.test(step, Meeting::Round { face, body }, margin);
                    }
                    Form::Plane { .. } | Form::Distance(_) => {
                        for vertex in cloth.owned_vertices(a) {
                            self.test(step, Meeting::Vertex { vertex, body }, margin);
                        }
                    }
                },
            }
        }
    }

    /// Searches for what some vertices may cross, wherever they go.
    pub(crate) fn add_exceeders(&mut self, step: &Truncate<'_>, exceeders: &[bool]) {
        let mut round = Round::default();
        step.refit(step.goal, exceeders, &mut round);
        self.add_of(step, exceeders, (&mut round, margin_of(step)));
    }

    /// Tests all that some vertices may cross, in a tree that is up to date. The margin is the
    /// [rounding](margin_within) of heights of all points, in m.
    pub(super) fn add_of(
        &mut self,
        step: &Truncate<'_>,
        vertices: &[bool],
        (round, margin): (&mut Round, f64),
    ) {
        step.search(step.goal, vertices, round, |pair| {
            self.test_features(step, pair, margin);
        });
        step.search_solids(step.goal, None, vertices, |meeting| {
            self.test(step, meeting, margin);
        });
    }

    /// Tests the features of a triangle of cloth and one of a body.
    fn test_triangles(&mut self, step: &Truncate<'_>, [s, t]: [u32; 2], margin: f64) {
        let corners = |t: u32| step.surface.corners(t);
        self.tests += 1;
        if !is_above(step, corners(s), corners(t), margin) {
            step.features_of(s, t, |pair| self.test_features(step, pair, margin));
        }
    }

    #[inline]
    fn test_features(&mut self, step: &Truncate<'_>, pair: Pair, margin: f64) {
        let at = pair.vertices.map(|v| v as usize);
        let displacements = Motion {
            start: at.map(|v| step.start[v]),
            end: at.map(|v| step.goal[v]),
        };
        self.tests += 1;
        if !is_surely_certified(pair.kind, &displacements, step.least, margin)
            && !is_certified(pair.kind, &displacements, step.least)
        {
            self.note(step, Meeting::Features(pair));
        }
    }

    pub(super) fn test(&mut self, step: &Truncate<'_>, meeting: Meeting, margin: f64) {
        self.tests += 1;
        let end = |v: u32| step.goal[v as usize];
        let is_certified = match meeting {
            Meeting::Features(pair) => return self.test_features(step, pair, margin),
            Meeting::Round { face, body } => {
                let seen = step.seen_by_round(face, body, face.map(end));
                seen.is_some_and(|seen| seen.is_apart(step.least))
            }
            Meeting::Vertex { vertex, body } => {
                step.is_vertex_apart(vertex, body, end(vertex)) == Some(true)
            }
        };
        if !is_certified {
            self.note(step, meeting);
        }
    }

    /// Notes a hit, unless volumes around the displacements are apart: those are the same whichever
    /// rank came by the pair, and which pairs a search comes by depends on who else tests what.
    #[cold]
    fn note(&mut self, step: &Truncate<'_>, meeting: Meeting) {
        if step.may_meet(&meeting) && !step.is_suspended(&meeting) {
            self.meetings.push(meeting);
        }
    }
}

/// The vertices that end farther than an allowance (m) from where they were foreseen.
#[must_use]
pub fn exceeders(goal: &[DVec3], foreseen: impl Fn(usize) -> DVec3, allowance: f64) -> Vec<u32> {
    let beyond = |&v: &usize| {
        let way = goal[v] - foreseen(v);
        let square = way.length_squared();
        square > allowance * allowance || square.is_nan()
    };
    (0..goal.len()).filter(beyond).map(|v| v as u32).collect()
}

/// The vertices of pairs that a kept set lets pass, and that touch where the step starts: pairs
/// that no plane parts. The step must be one that keeps nothing, or they are not searched for.
#[must_use]
pub fn touching(step: &Truncate<'_>, kept: &Kept) -> BTreeSet<u32> {
    let mut asked = vec![false; step.start.len()];
    for member in kept.members() {
        asked[member.vertex as usize] = true;
    }
    let mut found = BTreeSet::new();
    let mut round = Round::default();
    step.refit(step.start, &asked, &mut round);
    step.search(step.start, &asked, &mut round, |pair| {
        let (first, second) = pair.vertices.split_at(pair.kind.first());
        if kept.lets_pass(first, second) {
            let start = pair.vertices.map(|v| step.start[v as usize]);
            if plane::separating(pair.kind, &start).is_none() {
                found.extend(pair.vertices);
            }
        }
    });
    found
}

/// Whether a feature of each of some vertices, given with a body, touches or crosses the body where
/// the step starts.
///
/// An edge may pass through the middle of a face while each vertex keeps off all faces and each
/// edge off all edges, so pairs of edges and faces are looked at too.
#[must_use]
pub fn is_crossing(step: &Truncate<'_>, vertices: &[[u32; 2]]) -> Vec<bool> {
    let mut asked = vec![false; step.start.len()];
    for &[v, _] in vertices {
        asked[v as usize] = true;
    }
    let mut found = BTreeSet::new();
    let mut note = |of: &[u32], body: u32| found.extend(of.iter().map(|&v| [v, body]));
    let mut round = Round::default();
    step.refit(step.start, &asked, &mut round);
    step.search(step.start, &asked, &mut round, |pair| {
        let start = pair.vertices.map(|v| step.start[v as usize]);
        if plane::separating(pair.kind, &start).is_none()
            && let Some(body) = pair.vertices.iter().find_map(|&v| step.body(v))
        {
            note(&pair.vertices, body);
        }
    });
    pierced(step, &asked, vertices, &mut note);
    let at = |v: u32| step.start[v as usize];
    step.search_solids(step.start, None, &asked, |meeting| match meeting {
        Meeting::Features(_) => {}
        Meeting::Round { face, body } => {
            if step.seen_by_round(face, body, face.map(at)).is_none() {
                note(&face, body);
            }
        }
        Meeting::Vertex { vertex, body } => {
            if step.is_vertex_apart(vertex, body, at(vertex)).is_none() {
                note(&[vertex], body);
            }
        }
    });
    vertices.iter().map(|pair| found.contains(pair)).collect()
}

/// Notes features of which an edge passes through a face, one of cloth with a vertex that is asked
/// for, and one of a body that is given with one.
fn pierced(
    step: &Truncate<'_>,
    asked: &[bool],
    vertices: &[[u32; 2]],
    note: &mut impl FnMut(&[u32], u32),
) {
    let bodies: BTreeSet<u32> = vertices.iter().map(|&[_, body]| body).collect();
    let of = |t: &[u32; 3]| step.body(t[0]);
    let triangles = || step.surface.iter();
    let is_asked = |t: &[u32; 3]| t.iter().any(|&v| asked[v as usize]);
    let cloth: Vec<_> = triangles()
        .filter(|t| of(t).is_none() && is_asked(t))
        .collect();
    let solids: Vec<_> = triangles()
        .filter(|t| of(t).is_some_and(|body| bodies.contains(&body)))
        .collect();
    let start = step.start.to_vec();
    let [skin, solid] = [&cloth, &solids].map(|all| Skin::new(&start, all));
    let between = skin.crossings_with(&solid);
    for (edge, face) in between.through_second {
        if let Some(body) = of(&solids[face as usize]) {
            note(&edge, body);
        }
    }
    for (edge, face) in between.through_first {
        if let Some(body) = step.body(edge[0]) {
            note(&cloth[face as usize], body);
        }
    }
}
