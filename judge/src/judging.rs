//! The judge: it is given states one after the other, and keeps what it finds.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use serde::Serialize;
use thiserror::Error;

use crate::state::pierces;
use crate::surface::Surface;
use crate::tree::{Box3, Tree};
use crate::way::{Kind, Meeting, Position, Way, is_apart, meet};

/// The findings that are kept one by one.
const KEPT: usize = 20;

/// The ways after which the tree is made anew.
const FRESH: usize = 16;

/// A state that is judged.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    /// The simulated time in s.
    pub time: f64,
    /// The positions of all vertices in m.
    pub positions: Vec<Position>,
    /// The vertices of cloth that are marked as squeezed, each with the number of the piece that it
    /// may cross: not held against a run, on the way to this state and on the way from it.
    pub squeezed: Vec<(u32, u32)>,
    /// The vertices of cloth that are listed because it started through cloth, each with the number
    /// of its group. Groups 2 k and 2 k + 1 may cross each other. The list may only become shorter.
    pub kept: Vec<(u32, u32)>,
}

/// Judges states, and the straight ways between them.
#[derive(Debug)]
pub struct Judge {
    surface: Surface,
    trees: [Tree; 2],
    last: Option<State>,
    verdict: Verdict,
    /// How often each vertex passed through faces of each piece, up less down.
    passed: BTreeMap<(u32, u32), i64>,
}

/// A thing that was found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// The number of the state, from 0; of a way that of the state at its end.
    pub state: u64,
    /// The simulated time in s.
    pub time: f64,
    /// The kind of the finding.
    pub what: What,
    /// The vertices of the first feature.
    pub first: Vec<u32>,
    /// The vertices of the second.
    pub second: Vec<u32>,
}

/// The kinds of findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum What {
    /// An edge passes through a face in a state.
    Crossing,
    /// One feature passes through another on a way.
    Passage,
    /// Features touch on a way, or pass where one of them ends.
    Touch,
    /// Nothing can be said of the pair.
    Undecided,
}

/// The passages of one piece through another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Passages {
    /// The number of the piece whose vertices passed.
    pub of: u32,
    /// The number of the piece through whose faces they did.
    pub through: u32,
    /// The vertices of the pair that ended on another side than they began on.
    pub ended_beyond: u64,
}

/// The findings in all states so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Verdict {
    /// States.
    pub states: u64,
    /// States with crossings.
    pub crossing_states: u64,
    /// The crossings of an edge and a face, in all states together.
    pub crossings: u64,
    /// The most of them in one state.
    pub most_crossings: u64,
    /// The number of that state.
    pub most_in: u64,
    /// Crossings of cloth and cloth among them, in all states together.
    pub cloth_crossings: u64,
    /// Passages on ways.
    pub passages: u64,
    /// Passages of cloth through cloth among them.
    pub cloth_passages: u64,
    /// Touches on ways.
    pub touches: u64,
    /// Touches of cloth and cloth among them.
    pub cloth_touches: u64,
    /// Pairs of which nothing can be said.
    pub undecided: u64,
    /// Crossings and ways that met, but were marked as squeezed.
    pub excused: u64,
    /// Crossings and ways that met, but were of listed vertices of cloth that started through
    /// cloth.
    pub kept: u64,
    /// The vertices that were listed so in the first state, and in the last.
    pub kept_vertices: [u64; 2],
    /// The simulated time in s of the first state from which on none was listed, if some were.
    pub free_since: Option<f64>,
    /// The entries of lists that were not in the list before, and pairs of groups of the first list
    /// of which nothing crosses in the first state.
    pub grown: u64,
    /// The vertices that ended on another side of a piece than they began on.
    pub ended_beyond: Vec<Passages>,
    /// Pairs on ways whose boxes met.
    pub pairs: u64,
    /// Pairs that were decided by exact arithmetic.
    pub exact: u64,
    /// The first findings.
    pub findings: Vec<Finding>,
}

impl Verdict {
    /// Whether nothing is held against the run.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        let found = self.crossings + self.passages + self.touches + self.undecided;
        found + self.grown == 0
    }

    /// Whether nothing is held against cloth and cloth.
    #[must_use]
    pub fn is_clean_within_cloth(&self) -> bool {
        let found = self.cloth_crossings + self.cloth_passages + self.cloth_touches;
        found == 0 && self.undecided == 0 && self.grown == 0
    }
}

/// A state that cannot be judged.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum StateError {
    /// It has another number of vertices than the surface.
    #[error("the state at {time} s has {found} vertices, where the triangles have {wanted}")]
    Vertices {
        /// The time in s.
        time: f64,
        /// The vertices that it has.
        found: usize,
        /// The vertices that it should have.
        wanted: usize,
    },
    /// A position is not finite.
    #[error("vertex {vertex} of the state at {time} s has no finite position")]
    NotFinite {
        /// The time in s.
        time: f64,
        /// The vertex.
        vertex: usize,
    },
}

impl Judge {
    /// A judge of such triangles.
    #[must_use]
    pub fn new(surface: Surface) -> Self {
        Self {
            surface,
            trees: [Tree::default(), Tree::default()],
            last: None,
            verdict: Verdict::default(),
            passed: BTreeMap::new(),
        }
    }

    /// The triangles.
    #[must_use]
    pub fn surface(&self) -> &Surface {
        &self.surface
    }

    /// Judges the next state, and the way to it from the last one.
    ///
    /// # Errors
    /// [`StateError`]; nothing of the state is then judged.
    pub fn judge(&mut self, state: State) -> Result<(), StateError> {
        let time = state.time;
        let (found, wanted) = (state.positions.len(), self.surface.vertices());
        if found != wanted {
            return Err(StateError::Vertices {
                time,
                found,
                wanted,
            });
        }
        let is_bad = |p: &Position| !p.iter().all(|x| x.is_finite());
        if let Some(vertex) = state.positions.iter().position(is_bad) {
            return Err(StateError::NotFinite { time, vertex });
        }
        let last = self.last.take();
        // The first state is judged as one that stood still before.
        let before = last.as_ref().unwrap_or(&state);
        if self.verdict.states.is_multiple_of(FRESH as u64) {
            self.plant(&state.positions);
        }
        let start = &before.positions[..];
        let end = &state.positions[..];
        let triangles = self.surface.triangles();
        let around = |t: &[u32; 3]| {
            let points = t.iter().flat_map(|&v| [start[v as usize], end[v as usize]]);
            Box3::around(points)
        };
        let boxes: Vec<Box3> = triangles.iter().map(around).collect();
        self.trees.iter_mut().for_each(|tree| tree.fit(&boxes));
        let mut look = Look {
            surface: &self.surface,
            start,
            end,
            time,
            squeezed: before
                .squeezed
                .iter()
                .chain(&state.squeezed)
                .copied()
                .collect(),
            kept: [before, &state].map(|state| Lists::new(&state.kept)),
            verdict: &mut self.verdict,
            passed: &mut self.passed,
            crossings: 0,
            crossed: BTreeSet::new(),
        };
        let [cloth, bodies] = &self.trees;
        cloth.pairs_within(&boxes, |a, b| look.at_triangles(a, b));
        cloth.pairs_with(bodies, &boxes, |a, b| look.at_triangles(a, b));
        let (crossings, crossed) = (look.crossings, look.crossed);
        let verdict = &mut self.verdict;
        if verdict.states == 0 {
            let pairs: BTreeSet<u32> = state.kept.iter().map(|(_, group)| group / 2).collect();
            verdict.grown += pairs.difference(&crossed).count() as u64;
        } else if !state.kept.is_empty() {
            let known: HashSet<(u32, u32)> = before.kept.iter().copied().collect();
            let new = state.kept.iter().filter(|entry| !known.contains(entry));
            verdict.grown += new.count() as u64;
        }
        let listed: HashSet<u32> = state.kept.iter().map(|(vertex, _)| *vertex).collect();
        let listed = listed.len() as u64;
        match verdict.kept_vertices {
            _ if verdict.states == 0 => verdict.kept_vertices = [listed; 2],
            [_, last] => {
                if last > 0 && listed == 0 {
                    verdict.free_since = Some(time);
                }
                verdict.kept_vertices[1] = listed;
            }
        }
        verdict.crossings += crossings;
        verdict.crossing_states += u64::from(crossings > 0);
        if crossings > verdict.most_crossings {
            (verdict.most_crossings, verdict.most_in) = (crossings, verdict.states);
        }
        verdict.states += 1;
        self.last = Some(state);
        Ok(())
    }

    /// The findings so far.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        let mut beyond: BTreeMap<(u32, u32), u64> = BTreeMap::new();
        for (&(vertex, through), _) in self.passed.iter().filter(|(_, net)| **net != 0) {
            let of = self.surface.piece_of(vertex) as u32;
            *beyond.entry((of, through)).or_default() += 1;
        }
        let passages = |((of, through), ended_beyond)| Passages {
            of,
            through,
            ended_beyond,
        };
        Verdict {
            ended_beyond: beyond.into_iter().map(passages).collect(),
            ..self.verdict.clone()
        }
    }

    /// Makes the trees for such positions.
    fn plant(&mut self, positions: &[Position]) {
        let triangles = self.surface.triangles();
        let centre = |t: &[u32; 3]| {
            std::array::from_fn(|k| t.iter().map(|&v| positions[v as usize][k] / 3.0).sum())
        };
        let centres: Vec<Position> = triangles.iter().map(centre).collect();
        let surface = &self.surface;
        self.trees = [surface.of_cloth(), surface.of_bodies()].map(|of| Tree::new(of, &centres));
    }
}

/// A look at one way.
struct Look<'a> {
    surface: &'a Surface,
    start: &'a [Position],
    end: &'a [Position],
    /// The time of the state at its end.
    time: f64,
    squeezed: HashSet<(u32, u32)>,
    /// The lists at the start of the way and at its end.
    kept: [Lists; 2],
    verdict: &'a mut Verdict,
    passed: &'a mut BTreeMap<(u32, u32), i64>,
    crossings: u64,
    /// The pairs of groups that cross at the end of the way.
    crossed: BTreeSet<u32>,
}

/// The groups of listed vertices.
#[derive(Debug, Default)]
struct Lists(HashMap<u32, Vec<u32>>);

impl Lists {
    fn new(listed: &[(u32, u32)]) -> Self {
        let mut groups: HashMap<u32, Vec<u32>> = HashMap::new();
        for &(vertex, group) in listed {
            groups.entry(vertex).or_default().push(group);
        }
        Self(groups)
    }

    fn of(&self, vertex: u32) -> &[u32] {
        self.0.get(&vertex).map_or(&[], Vec::as_slice)
    }

    /// Whether all vertices of one feature are of a group, and all of the other of the group that
    /// may cross it.
    fn may_pass(&self, first: &[u32], second: &[u32]) -> bool {
        if self.0.is_empty() {
            return false;
        }
        let are_of =
            |vertices: &[u32], group: u32| vertices.iter().all(|&v| self.of(v).contains(&group));
        let mut groups = self.of(first[0]).iter();
        groups.any(|&group| are_of(first, group) && are_of(second, group ^ 1))
    }

    /// The pairs of groups of which a vertex of one feature is of one group, and a vertex of the
    /// other feature of the other group.
    fn between(&self, first: &[u32], second: &[u32]) -> Vec<u32> {
        let has = |group: u32| second.iter().any(|&v| self.of(v).contains(&(group ^ 1)));
        let groups = first.iter().flat_map(|&v| self.of(v));
        let mut pairs: Vec<u32> = groups.filter(|g| has(**g)).map(|group| group / 2).collect();
        pairs.dedup();
        pairs
    }
}

impl Look<'_> {
    /// Looks at the features of two triangles whose boxes meet.
    fn at_triangles(&mut self, a: u32, b: u32) {
        let surface = self.surface;
        let corners = |t: u32| surface.triangles()[t as usize];
        let piece = |t: u32| surface.piece_of(corners(t)[0]);
        if piece(a) == piece(b) && surface.pieces()[piece(a)].passes_itself {
            return;
        }
        for (one, other) in [(a, b), (b, a)] {
            let face = corners(other);
            let apart = |v: &u32| !surface.are_neighbours(&[*v], &face);
            for vertex in surface.vertices_at(one).filter(apart) {
                let [x, y, z] = face;
                self.at_pair(Kind::VertexFace, [vertex, x, y, z]);
            }
            for edge in surface.edges_at(one) {
                if !surface.are_neighbours(&edge, &face) {
                    self.at_edge_and_face(edge, face);
                }
            }
        }
        for [p, q] in surface.edges_at(a) {
            for edge in surface.edges_at(b) {
                if !surface.are_neighbours(&[p, q], &edge) {
                    self.at_pair(Kind::EdgeEdge, [p, q, edge[0], edge[1]]);
                }
            }
        }
    }

    /// Looks at an edge and a face at the end of the way.
    fn at_edge_and_face(&mut self, edge: [u32; 2], face: [u32; 3]) {
        let edge_at = edge.map(|v| self.end[v as usize]);
        let face_at = face.map(|v| self.end[v as usize]);
        if !Box3::around(edge_at).meets(&Box3::around(face_at)) || !pierces(edge_at, face_at) {
            return;
        }
        if self.is_excused(&edge, &face) {
            self.verdict.excused += 1;
            return;
        }
        let listed = self.kept[1].between(&edge, &face);
        if !listed.is_empty() {
            self.verdict.kept += 1;
            self.crossed.extend(listed);
            return;
        }
        self.crossings += 1;
        self.verdict.cloth_crossings += u64::from(self.is_within_cloth(edge[0], face[0]));
        self.keep(What::Crossing, &edge, &face);
    }

    /// Looks at a pair of features on the way.
    fn at_pair(&mut self, kind: Kind, vertices: [u32; 4]) {
        let way = Way {
            kind,
            start: vertices.map(|v| self.start[v as usize]),
            end: vertices.map(|v| self.end[v as usize]),
        };
        let cut = match kind {
            Kind::VertexFace => 1,
            Kind::EdgeEdge => 2,
        };
        let hull = |range: std::ops::Range<usize>| {
            Box3::around(range.flat_map(|k| [way.start[k], way.end[k]]))
        };
        if !hull(0..cut).meets(&hull(cut..4)) {
            return;
        }
        self.verdict.pairs += 1;
        if is_apart(&way) {
            return;
        }
        self.verdict.exact += 1;
        let (first, second) = vertices.split_at(cut);
        match meet(&way) {
            Ok(meetings) if meetings.is_empty() => {}
            Ok(_) if self.is_excused(first, second) => self.verdict.excused += 1,
            Ok(_) if self.kept[0].may_pass(first, second) => self.verdict.kept += 1,
            Ok(meetings) => self.take(&meetings, first, second),
            Err(_) => {
                self.verdict.undecided += 1;
                self.keep(What::Undecided, first, second);
            }
        }
    }

    /// Takes note of the meetings of a pair.
    fn take(&mut self, meetings: &[Meeting], first: &[u32], second: &[u32]) {
        let within = u64::from(self.is_within_cloth(first[0], second[0]));
        // A pair that passes at one time and touches at another shows by the passage.
        let passages: Vec<Ordering> = meetings.iter().filter_map(|m| m.passes).collect();
        if passages.is_empty() {
            self.verdict.touches += 1;
            self.verdict.cloth_touches += within;
            self.keep(What::Touch, first, second);
            return;
        }
        self.verdict.passages += passages.len() as u64;
        self.verdict.cloth_passages += within * passages.len() as u64;
        for to in passages {
            self.keep(What::Passage, first, second);
            if let [vertex] = first {
                let through = self.surface.piece_of(second[0]) as u32;
                *self.passed.entry((*vertex, through)).or_default() += to as i64;
            }
        }
    }

    /// Whether a vertex of one feature is marked as squeezed against the piece of the other.
    fn is_excused(&self, first: &[u32], second: &[u32]) -> bool {
        if self.squeezed.is_empty() {
            return false;
        }
        let marked = |vertices: &[u32], other: &[u32]| {
            let piece = self.surface.piece_of(other[0]) as u32;
            vertices
                .iter()
                .any(|&v| self.squeezed.contains(&(v, piece)))
        };
        marked(first, second) || marked(second, first)
    }

    fn is_within_cloth(&self, a: u32, b: u32) -> bool {
        let is_cloth = |v: u32| !self.surface.pieces()[self.surface.piece_of(v)].is_body;
        is_cloth(a) && is_cloth(b)
    }

    /// Keeps a finding, if there are few so far.
    fn keep(&mut self, what: What, first: &[u32], second: &[u32]) {
        if self.verdict.findings.len() < KEPT {
            self.verdict.findings.push(Finding {
                state: self.verdict.states,
                time: self.time,
                what,
                first: first.to_vec(),
                second: second.to_vec(),
            });
        }
    }
}
