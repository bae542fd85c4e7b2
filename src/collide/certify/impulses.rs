//! Inelastic impulses: the first answer to hits, which keeps momentum.
//!
//! A row says that a combination of displacements along a normal vector may fall by no more than
//! the room that is left. Rows are satisfied one after the other, in the manner of Gauss and Seidel
//! [BFA02 §7; SSIF09 §4], each by an impulse that changes displacements in inverse proportion to
//! mass. Their order is that of a hash of their vertices, vertices and faces before edges, so that
//! it is one of the set of hits alone, and not that of neighbours along the cloth.
//!
//! Rows leave the approach that there is room for. With it a vertex that is hit far away comes as
//! near as it may, and is stopped there in the next step.
//!
//! * \[BFA02\] Bridson, Fedkiw, Anderson: Robust treatment of collisions, contact and friction for
//!   cloth animation.
//! * \[SSIF09\] Selle, Su, Irving, Fedkiw: Robust high-resolution cloth using parallelism,
//!   history-based collisions, and accurate friction.

use glam::DVec3;

use super::meeting::{Meeting, Pair};
use super::plane::{self, Kind, Motion};
use super::search::{Features, features};
use super::truncate::Truncate;
use crate::collide::narrow::ccd::{Answer, Separation, edge_edge, vertex_face};
use crate::collide::narrow::closest::{on_segments, on_triangle};

/// The shortest lever that a row may use, as a share of its longest weight. A vertex with less
/// weight would have to go ten times as far as the row lacks, and more: where all but it are
/// held, the row is left to rigid zones and to truncation.
const SHORTEST: f64 = 0.1;

/// The gap that rows leave between features, in units of the gap to be kept: rows are linear, and
/// what they leave out must not bring features back below it.
const AIM: f64 = 4.0;

/// A bound on displacements: n · Σ w u + offset ≥ −room.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Row {
    vertices: [u32; 4],
    weights: [f64; 4],
    /// The inverse masses, zero for what cannot be moved, in 1/kg.
    inverse: [f64; 4],
    normal: DVec3,
    /// The contribution of a body without vertices, in m.
    offset: f64,
    /// How far the features may approach, in m; negative if they must part.
    room: f64,
}

impl Row {
    /// The approach beyond the room, in m; positive if the row is violated.
    fn excess(&self, step: &Truncate<'_>, goal: &[DVec3]) -> f64 {
        let displacement = |k: usize| {
            let v = self.vertices[k] as usize;
            (goal[v] - step.start[v]) * self.weights[k]
        };
        let sum = (displacement(0) + displacement(1)) + (displacement(2) + displacement(3));
        -(self.normal.dot(sum) + self.offset) - self.room
    }

    /// The compliance in 1/kg down to which the row would throw its vertices far for little.
    fn least_compliance(&self) -> f64 {
        let longest = self
            .weights
            .iter()
            .fold(0.0f64, |most, w| most.max(w.abs()));
        let lightest = self.inverse.iter().fold(0.0, |most: f64, &i| most.max(i));
        (SHORTEST * longest).powi(2) * lightest
    }

    /// Satisfies the row, unless its levers are too short. Tells `moved` the vertices whose goals
    /// change. Returns by how much it was violated, in m.
    pub(super) fn satisfy(
        &self,
        step: &Truncate<'_>,
        goal: &mut [DVec3],
        mut moved: impl FnMut(u32),
    ) -> f64 {
        let excess = self.excess(step, goal);
        let compliance: f64 = (0..4)
            .map(|k| self.weights[k] * self.weights[k] * self.inverse[k])
            .sum();
        if !(excess > 0.0 && compliance > self.least_compliance()) {
            return 0.0;
        }
        let impulse = self.normal * (excess / compliance);
        for k in 0..4 {
            let share = self.weights[k] * self.inverse[k];
            if share != 0.0 {
                goal[self.vertices[k] as usize] += impulse * share;
                moved(self.vertices[k]);
            }
        }
        excess
    }
}

/// The row of a meeting, with goals as they are; `None` where no direction separates it.
pub(super) fn row(step: &Truncate<'_>, goal: &[DVec3], meeting: &Meeting) -> Option<Row> {
    match *meeting {
        Meeting::Features(pair) => of_features(step, goal, &pair),
        Meeting::Round { face, body } => of_round(step, face, body),
        Meeting::Vertex { vertex, body } => match step.movers[body as usize].field() {
            None => of_plane(step, vertex, body),
            Some(_) => of_field(step, goal, vertex, body),
        },
    }
}

fn inverse(step: &Truncate<'_>, v: u32) -> f64 {
    if v >= step.movable || step.held[v as usize] {
        0.0
    } else {
        step.masses[v as usize].recip()
    }
}

fn of_features(step: &Truncate<'_>, goal: &[DVec3], pair: &Pair) -> Option<Row> {
    let start = pair.vertices.map(|v| step.start[v as usize]);
    let plane = plane::separating(pair.kind, &start)?;
    let separation = Separation::new(0.5 * step.least.min(plane.gap)).ok()?;
    let displacements = Motion {
        start,
        end: pair.vertices.map(|v| goal[v as usize]),
    };
    let answer = match features(pair.kind, &displacements) {
        Features::VertexFace(query) => vertex_face(&query, separation),
        Features::Edges(query) => edge_edge(&query, separation),
    };
    let (normal, weights) = match answer {
        Ok(Answer::Hit(hit)) => (hit.normal, hit.weights),
        // They only end too close.
        Ok(Answer::Safe) => closest(pair.kind, &displacements.end)?,
        Err(_) => return None,
    };
    let along = |k: usize| normal.dot(start[k] - start[3]) * weights[k];
    let gap = (along(0) + along(1)) + (along(2) + along(3));
    Some(Row {
        vertices: pair.vertices,
        weights,
        inverse: pair.vertices.map(|v| inverse(step, v)),
        normal,
        offset: 0.0,
        room: gap - plane.gap.min(AIM * step.least),
    })
}

/// The normal vector and the weights of the closest points of two features.
fn closest(kind: Kind, points: &[DVec3; 4]) -> Option<(DVec3, [f64; 4])> {
    let (normal, _) = plane::between_closest_points(kind, points)?;
    let [a, b, c, d] = points.map(|p| p - points[3]);
    let weights = match kind {
        Kind::VertexFace => {
            let [u, v, w] = on_triangle(a, b, c, d);
            [1.0, -u, -v, -w]
        }
        Kind::EdgeEdge => {
            let (s, t) = on_segments(a, b, c, d);
            [1.0 - s, s, t - 1.0, -t]
        }
    };
    Some((normal, weights))
}

fn of_round(step: &Truncate<'_>, face: [u32; 3], body: u32) -> Option<Row> {
    let start = face.map(|v| step.start[v as usize]);
    let ([from, to], radius) = step.movers[body as usize].segment()?;
    let (normal, gap) = plane::from_segment(&start, &from)?;
    // The lowest corners carry the impulse: those of the point nearest to the segment's middle.
    let middle = from[0].midpoint(from[1]);
    let weights = on_triangle(middle, start[0], start[1], start[2]);
    let lowest = |ends: [DVec3; 2]| {
        let above = ends.map(|p| normal.dot(p));
        above[0].max(above[1])
    };
    Some(Row {
        vertices: [face[0], face[1], face[2], face[0]],
        weights: [weights[0], weights[1], weights[2], 0.0],
        inverse: [
            inverse(step, face[0]),
            inverse(step, face[1]),
            inverse(step, face[2]),
            0.0,
        ],
        normal,
        offset: lowest(from) - lowest(to),
        room: (gap - radius - step.least).max(0.0),
    })
}

fn of_plane(step: &Truncate<'_>, vertex: u32, body: u32) -> Option<Row> {
    let (start, mover) = (step.start[vertex as usize], &step.movers[body as usize]);
    let [before, after] = mover.heights([start, start])?;
    Some(Row {
        vertices: [vertex; 4],
        weights: [1.0, 0.0, 0.0, 0.0],
        inverse: [inverse(step, vertex), 0.0, 0.0, 0.0],
        normal: mover.plane_normal()?,
        offset: after - before,
        room: (before - step.least).max(0.0),
    })
}

/// The row of the plane through the place where the way of a vertex stops to keep out.
fn of_field(step: &Truncate<'_>, goal: &[DVec3], vertex: u32, body: u32) -> Option<Row> {
    let start = step.start[vertex as usize];
    let seen = step.seen_by_field(vertex, body, goal[vertex as usize])?;
    let (place, distance, normal) = seen.stop(step.least);
    let mover = &step.movers[body as usize];
    let [_, carried] = mover.seen([start; 2]);
    Some(Row {
        vertices: [vertex; 4],
        weights: [1.0, 0.0, 0.0, 0.0],
        inverse: [inverse(step, vertex), 0.0, 0.0, 0.0],
        normal: mover.to.turned(normal),
        offset: normal.dot(carried - place) + distance - step.least.min(seen.gap),
        room: 0.0,
    })
}

/// Orders meetings by a function of each of them alone.
pub(super) fn order(meetings: &mut [Meeting]) {
    meetings.sort_unstable_by_key(|meeting| {
        let (kind, numbers) = match *meeting {
            Meeting::Features(Pair { kind, vertices }) => {
                (u32::from(kind == Kind::EdgeEdge), vertices)
            }
            Meeting::Round {
                face: [a, b, c],
                body,
            } => (2, [a, b, c, body]),
            Meeting::Vertex { vertex, body } => (3, [vertex, body, 0, 0]),
        };
        let hash = numbers
            .iter()
            .fold(0, |hash, &number| mixed(hash ^ u64::from(number)));
        (kind, hash, *meeting)
    });
}

/// The finaliser of SplitMix64.
pub(crate) fn mixed(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
