//! The tests of edges and faces of cloth against an analytic ball.
//!
//! A feature of coarse cloth touches a ball at one point, and rolls over it. A contact keeps a
//! single point of the feature off. So there are several: at the point that is nearest to the
//! centre when the step begins, at the one that would be nearest when it ends, and at points around
//! the first. These are so dense that between two of them a feature that rolls comes nearer by no
//! more than a fiftieth of the distance to keep.

use glam::DVec3;

use super::closest::{on_segments, on_triangle};
use super::contact::{Contact, PairId, PairKind, Separation};
use super::features::seen_from;
use crate::collide::bodies::collider::{BOUNDARY, Ball};
use crate::collide::query::snapshot::Snapshot;

/// The angle between two points around the nearest as seen from the centre, as a share of the root
/// of distance to keep over radius: half of it squared, halved, is a fiftieth.
const SPACING: f64 = 0.4;
/// Directions in a plane, evenly around.
const AROUND: [[f64; 2]; 6] = [
    [1.0, 0.0],
    [0.5, HALF_ROOT_3],
    [-0.5, HALF_ROOT_3],
    [-1.0, 0.0],
    [-0.5, -HALF_ROOT_3],
    [0.5, -HALF_ROOT_3],
];
const HALF_ROOT_3: f64 = 0.866_025_403_784_438_6;

/// A feature of cloth, by the corners that it has of a triangle.
struct Feature<const N: usize> {
    kind: PairKind,
    number: u32,
    vertices: [u32; N],
    /// The places of the vertices at the start and at the end of the step, as the ball sees them.
    ends: [[DVec3; 2]; N],
}

/// Tests the face of triangle `t`, and the edges that it owns, against a ball. Corners of the face
/// and ends of edges are left out, for vertices are tested alone; so are sides of the face.
pub(super) fn of_triangle(
    snap: &Snapshot<'_>,
    (body, ball): (u32, &Ball),
    t: u32,
    out: &mut Vec<Contact>,
) {
    let surface = snap.cloth.surface();
    let vertices = surface.triangles()[t as usize];
    let face = Feature {
        kind: PairKind::FaceBody,
        number: t,
        vertices,
        ends: vertices.map(|v| seen_from(snap, body, v)),
    };
    face.test(snap, (body, ball), out);
    for number in surface.owned_edges(t) {
        let vertices = surface.edges()[number as usize];
        let edge = Feature {
            kind: PairKind::EdgeBody,
            number,
            vertices,
            ends: vertices.map(|v| seen_from(snap, body, v)),
        };
        edge.test(snap, (body, ball), out);
    }
}

/// The parts in which an edge and a face differ.
trait Spans<const N: usize> {
    /// The weights of the point of the feature, with its vertices at these places, that is nearest
    /// to a point.
    fn nearest(x: [DVec3; N], to: DVec3) -> [f64; N];
    /// Unit vectors along the feature, evenly around a point of it.
    fn directions(x: [DVec3; N]) -> impl Iterator<Item = DVec3>;
}

impl Spans<2> for Feature<2> {
    fn nearest([p, q]: [DVec3; 2], to: DVec3) -> [f64; 2] {
        let (t, _) = on_segments(p, q, to, to);
        [1.0 - t, t]
    }

    fn directions([p, q]: [DVec3; 2]) -> impl Iterator<Item = DVec3> {
        let along = (q - p).normalize_or_zero();
        [along, -along].into_iter()
    }
}

impl Spans<3> for Feature<3> {
    fn nearest([a, b, c]: [DVec3; 3], to: DVec3) -> [f64; 3] {
        on_triangle(to, a, b, c)
    }

    fn directions([a, b, c]: [DVec3; 3]) -> impl Iterator<Item = DVec3> {
        let along = (b - a).normalize_or_zero();
        let across = (b - a).cross(c - a).normalize_or_zero().cross(along);
        AROUND.into_iter().map(move |[x, y]| along * x + across * y)
    }
}

impl<const N: usize> Feature<N>
where
    Self: Spans<N>,
{
    /// Tests its points against a ball. Contacts are distinguished by the number of the point: 0
    /// for the nearest at the start, 1 for the nearest at the end, others around the first.
    fn test(&self, snap: &Snapshot<'_>, (body, ball): (u32, &Ball), out: &mut Vec<Contact>) {
        let [start, end] = [0, 1].map(|at| self.ends.map(|ends| ends[at]));
        let mut add = |point: u32, weights: [f64; N]| {
            if weights.iter().all(|&w| w > BOUNDARY) {
                out.extend(self.contact(snap, (body, ball), (point, weights)));
            }
        };
        let nearest = Self::nearest(start, ball.center);
        add(0, nearest);
        add(1, Self::nearest(end, ball.center));
        let middle = combine(start, nearest);
        let kept = snap.distances.from_body(self.vertices[0], body);
        let spacing = SPACING * (kept * (ball.radius + kept)).sqrt();
        let mut point = 2;
        for direction in Self::directions(start) {
            for far in [spacing, 2.0 * spacing] {
                add(point, Self::nearest(start, middle + direction * far));
                point += 1;
            }
        }
    }

    /// The contact at the point with these weights, if it is within reach when the step begins or
    /// would be when it ends.
    fn contact(
        &self,
        snap: &Snapshot<'_>,
        (body, ball): (u32, &Ball),
        (point, weights): (u32, [f64; N]),
    ) -> Option<Contact> {
        let [start, end] = [0, 1].map(|at| combine(self.ends.map(|ends| ends[at]), weights));
        let away = start - ball.center;
        let gap = away.length() - ball.radius;
        let kept = snap.distances.from_body(self.vertices[0], body);
        let end_gap = end.distance(ball.center) - ball.radius;
        if gap.min(end_gap) > snap.distances.reach(kept) {
            return None;
        }
        let sweep = &snap.sweeps[body as usize];
        let normal = away.try_normalize().unwrap_or(DVec3::Z);
        let id = PairId {
            kind: self.kind,
            body,
            a: self.number,
            b: point,
        };
        let separation = Separation {
            normal: sweep.turned(normal),
            gap,
            target: kept,
            body_velocity: sweep.velocity(start - normal * gap),
        };
        Some(Contact::new(id, self.vertices, weights, separation))
    }
}

fn combine<const N: usize>(x: [DVec3; N], weights: [f64; N]) -> DVec3 {
    (x.iter().zip(weights)).fold(DVec3::ZERO, |sum, (x, w)| sum + *x * w)
}
