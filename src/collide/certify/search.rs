//! The search for hits: what may cross while all vertices go at a common rate.
//!
//! The search of contacts has looked at every pair that may come within reach while vertices go as
//! foreseen. These candidates are tested again with the displacements that the step came to. A
//! vertex that ends elsewhere than foreseen by nearly half the reach or more is an *exceeder*: the
//! pairs that it may cross are searched for anew, in the tree of all triangles.

use std::collections::BTreeSet;

use glam::DVec3;

use super::bodies::{Form, Scenery};
use super::plane::{self, Kind, Motion};
use super::truncate::{Meeting, Pair, Round, Truncate};
use crate::collide::narrow::ccd::{
    self, Answer, EdgeEdge, Separation, VertexFace, edge_edge, vertex_face,
};
use crate::collide::query::findings::Candidate;

/// The outcome of a search.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hits {
    /// What is not certified, in no order that matters; some may be there twice.
    pub meetings: Vec<Meeting>,
    /// The number of tests that were made.
    pub tests: u64,
}

/// Whether a pair stays apart whose vertices go at a common rate: by one plane, or, where features
/// turn about each other, by [continuous collision detection](crate::collide::ccd).
#[must_use]
pub fn is_certified(kind: Kind, displacements: &Motion, least: f64) -> bool {
    let seen = displacements.less_mean();
    plane::separating(kind, &seen.start).is_some_and(|at_start| {
        plane::keeps_apart(kind, &at_start, &seen, least)
            || at_start.gap > least && stays_apart(kind, displacements, least)
    })
}

/// Whether continuous collision detection shows that a pair keeps a distance.
#[cold]
fn stays_apart(kind: Kind, displacements: &Motion, least: f64) -> bool {
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
    /// Tests candidates of the search of contacts.
    pub(crate) fn add_candidates(
        &mut self,
        step: &Truncate<'_>,
        scenery: &Scenery,
        candidates: &[Candidate],
    ) {
        // Cloth comes first among triangles, and so among edges.
        let (triangles, edges) = (step.surface.triangles(), step.surface.edges());
        for candidate in candidates {
            let &Candidate { kind, body, a, b } = candidate;
            match kind {
                Candidate::VERTEX_FACE => {
                    let [p, q, r] = triangles[b as usize];
                    self.test_features(step, Pair::vertex_face(a, [p, q, r]));
                }
                Candidate::EDGES => {
                    let pair = Pair::edges(edges[a as usize], edges[b as usize]);
                    self.test_features(step, pair);
                }
                Candidate::TRIANGLES => {
                    let of_body = scenery.triangles_of(body).start + b;
                    step.features_of(a, of_body, |pair| self.test_features(step, pair));
                }
                _ => match step.movers[body as usize].form {
                    Form::Triangles => {
                        for t in scenery.triangles_of(body) {
                            step.features_of(a, t, |pair| self.test_features(step, pair));
                        }
                    }
                    Form::Round { .. } => {
                        let face = triangles[a as usize];
                        self.test(step, Meeting::Round { face, body });
                    }
                    Form::Plane { .. } => {
                        for vertex in step.surface.owned_vertices(a) {
                            self.test(step, Meeting::Plane { vertex, body });
                        }
                    }
                },
            }
        }
    }

    /// Searches for what some vertices may cross, wherever they go.
    pub fn add_exceeders(&mut self, step: &Truncate<'_>, exceeders: &[bool]) {
        let mut round = Round::default();
        step.refit(step.goal, exceeders, &mut round);
        self.add_of(step, exceeders, &mut round);
    }

    /// Tests all that some vertices may cross, in a tree that is up to date.
    pub(super) fn add_of(&mut self, step: &Truncate<'_>, vertices: &[bool], round: &mut Round) {
        step.search(step.goal, vertices, round, |pair| {
            self.test_features(step, pair);
        });
        step.search_solids(step.goal, None, vertices, |meeting| {
            self.test(step, meeting);
        });
    }

    #[inline]
    fn test_features(&mut self, step: &Truncate<'_>, pair: Pair) {
        let at = pair.vertices.map(|v| v as usize);
        let displacements = Motion {
            start: at.map(|v| step.start[v]),
            end: at.map(|v| step.goal[v]),
        };
        self.tests += 1;
        if !is_certified(pair.kind, &displacements, step.least) {
            self.note(step, Meeting::Features(pair));
        }
    }

    pub(super) fn test(&mut self, step: &Truncate<'_>, meeting: Meeting) {
        self.tests += 1;
        let end = |v: u32| step.goal[v as usize];
        let is_certified = match meeting {
            Meeting::Features(pair) => return self.test_features(step, pair),
            Meeting::Round { face, body } => {
                let seen = step.seen_by_round(face, body, face.map(end));
                seen.is_some_and(|seen| seen.is_apart(step.least))
            }
            Meeting::Plane { vertex, body } => {
                let seen = step.seen_by_plane(vertex, body, end(vertex));
                seen.is_some_and(|seen| seen.is_apart(step.least))
            }
        };
        if !is_certified {
            self.note(step, meeting);
        }
    }

    /// Notes a hit, unless volumes around the displacements are apart: those are the same whoever
    /// came by the pair, and which pairs a search comes by depends on who else tests what.
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
        // What is no number exceeds any allowance.
        !(way.length_squared() <= allowance * allowance)
    };
    (0..goal.len()).filter(beyond).map(|v| v as u32).collect()
}

/// Whether a feature of each of some vertices, given with a body, touches or crosses the body where
/// the step starts.
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
    let at = |v: u32| step.start[v as usize];
    step.search_solids(step.start, None, &asked, |meeting| match meeting {
        Meeting::Features(_) => {}
        Meeting::Round { face, body } => {
            if step.seen_by_round(face, body, face.map(at)).is_none() {
                note(&face, body);
            }
        }
        Meeting::Plane { vertex, body } => {
            if step.seen_by_plane(vertex, body, at(vertex)).is_none() {
                note(&[vertex], body);
            }
        }
    });
    vertices.iter().map(|pair| found.contains(pair)).collect()
}
