//! The tests of pairs of features: which of those of two triangles come within reach during the
//! step.
//!
//! A pair of features is a contact if their closest points, moving on with their velocities, come
//! within reach; a vertex and a face of a body also if the vertex comes within reach where it meets
//! the face's plane. Swept volumes inflated by half the reach then overlap, so that trees find just
//! the contacts that testing all pairs would.

use glam::DVec3;

use crate::collide::bodies::body_motion::{Pose, Sweep};
use crate::collide::bodies::collider::{
    AnalyticBody, BOUNDARY, BodyFeature, BodySurface, FLAT, Implicit,
};
use crate::collide::bodies::distance_field::DistanceField;
use crate::collide::bodies::distance_in_time::{Met, SweptDistance};
use crate::collide::cull::rest_adjacent::RestAdjacentPair;
use crate::collide::narrow::closest::{comes_within, on_segments, on_triangle};
use crate::collide::narrow::contact::{Contact, PairId, PairKind, Separation};
use crate::collide::narrow::local_minimum::{OnEdges, OnFace, is_of_edges, is_of_face};
use crate::collide::narrow::on_ball;
use crate::collide::query::snapshot::Snapshot;

/// A pair of features moves fast if its separation changes by more than this share of its target in
/// a step.
const FAST: f64 = 0.25;

/// The share of its target from which on a pair slides rather than closes in a step.
const NEARLY: f64 = 0.95;

/// Tests all features that each of two triangles owns against the other.
pub(in crate::collide) fn all_of_pair(
    snap: &Snapshot<'_>,
    [s, t]: [u32; 2],
    out: &mut Vec<Contact>,
) {
    let surface = snap.cloth.surface();
    let faces = [surface.face(s), surface.face(t)];
    for (owner, other, face) in [(0, 1, t), (1, 0, s)] {
        for vertex in faces[owner].owned_corners() {
            if !faces[other].corners.contains(&vertex) {
                vertex_face(snap, vertex, face, out);
            }
        }
    }
    for (i, [p, q]) in faces[0].owned_edges() {
        for (j, ends) in faces[1].owned_edges() {
            if !(ends.contains(&p) || ends.contains(&q)) {
                let (a, b) = (surface.edges_of(s)[i], surface.edges_of(t)[j]);
                edge_edge(snap, a.min(b), a.max(b), out);
            }
        }
    }
}

/// Tells `found` a rest-adjacent pair if its volumes overlap, or if boxes do where the volumes of a
/// neighbour's vertices are not there.
#[inline(always)]
pub(in crate::collide) fn rest_adjacent_features(
    snap: &Snapshot<'_>,
    pair: &RestAdjacentPair,
    mut found: impl FnMut(PairKind, u32, u32),
) {
    let surface = snap.cloth.surface();
    let of = |vertex: u32| snap.vertex_volume(vertex);
    if pair.edges {
        let [one, two] = [pair.a, pair.b].map(|e| surface.edges()[e as usize]);
        let overlap = match (one.map(of), two.map(of)) {
            ([Some(a), Some(b)], [Some(c), Some(d)]) => a.union(b).overlaps(&c.union(d)),
            _ => snap.may_reach(&one, &two),
        };
        if overlap {
            found(PairKind::EdgeEdge, pair.a, pair.b);
        }
    } else {
        let corners = surface.face(pair.b).corners;
        let overlap = match (corners.map(of), of(pair.a)) {
            ([Some(a), Some(b), Some(c)], Some(vertex)) => a.union(b).union(c).overlaps(vertex),
            _ => snap.may_reach(&[pair.a], &corners),
        };
        if overlap {
            found(PairKind::VertexFace, pair.a, pair.b);
        }
    }
}

/// Tests a pair of features of cloth.
pub(in crate::collide) fn cloth_feature(
    snap: &Snapshot<'_>,
    kind: PairKind,
    a: u32,
    b: u32,
    out: &mut Vec<Contact>,
) {
    if kind == PairKind::VertexFace {
        vertex_face(snap, a, b, out);
    } else {
        edge_edge(snap, a, b, out);
    }
}

/// Tests cloth triangle `t` against triangle `f` of a body.
pub(in crate::collide) fn body_pair(
    snap: &Snapshot<'_>,
    (body, solid): (u32, &BodySurface),
    t: u32,
    f: u32,
    out: &mut Vec<Contact>,
) {
    let surface = snap.cloth.surface();
    for vertex in surface.owned_vertices(t) {
        vertex_body(snap, (body, solid), vertex, f, out);
    }
    for vertex in solid.surface.owned_vertices(f) {
        face_body(snap, (body, solid), t, vertex, out);
    }
    for a in surface.owned_edges(t) {
        for b in solid.surface.owned_edges(f) {
            edge_body(snap, (body, solid), a, b, out);
        }
    }
}

/// Tests what triangle `t` owns against a body that is given by its signed distance.
pub(in crate::collide) fn implicit(
    snap: &Snapshot<'_>,
    (body, solid): (u32, Implicit<'_>),
    t: u32,
    out: &mut Vec<Contact>,
) {
    match solid {
        Implicit::Formula(solid) => analytic(snap, (body, solid), t, out),
        Implicit::Sampled(field) => sampled(snap, (body, field), t, out),
        Implicit::Swept(swept) => deforming(snap, (body, swept), t, out),
    }
}

/// Tests the vertices that triangle `t` owns against a sampled distance.
///
/// A vertex is seen from the plane where it first comes within reach on its straight way, as the
/// body sees that: from where it starts if that is near, and else from where it would get.
fn sampled(
    snap: &Snapshot<'_>,
    (body, field): (u32, &DistanceField),
    t: u32,
    out: &mut Vec<Contact>,
) {
    let distances = snap.distances;
    for vertex in snap.cloth.surface().owned_vertices(t) {
        let way = seen_from(snap, body, vertex);
        let reach = distances.reach(distances.from_body(vertex, body));
        if let Some(near) = field.first_within(way, reach) {
            let sweep = &snap.sweeps[body as usize];
            let velocity = sweep.velocity(near.point - near.normal * near.distance);
            let gap = near.distance + near.normal.dot(way[0] - near.point);
            let normal = sweep.turned(near.normal);
            out.push(single(snap, (body, velocity), vertex, 0, normal, gap));
        }
    }
}

/// Tests the vertices that triangle `t` owns against the sampled distance of a body that deforms.
///
/// A vertex is seen from the plane where it first comes within reach, when it does: the plane goes
/// with the surface there, from where that is when the step begins.
fn deforming(
    snap: &Snapshot<'_>,
    (body, swept): (u32, &SweptDistance),
    t: u32,
    out: &mut Vec<Contact>,
) {
    let distances = snap.distances;
    for vertex in snap.cloth.surface().owned_vertices(t) {
        let way = seen_from(snap, body, vertex);
        let reach = distances.reach(distances.from_body(vertex, body));
        if let Some(Met { near, surface }) = swept.first_within(way, reach) {
            let sweep = &snap.sweeps[body as usize];
            let velocity = sweep.velocity_within(surface, snap.dt);
            let gap = near.normal.dot(way[0] - surface[0]);
            let normal = sweep.turned(near.normal);
            out.push(single(snap, (body, velocity), vertex, 0, normal, gap));
        }
    }
}

/// Tests the vertices that triangle `t` owns against an analytic body, and where that is a ball
/// which coarse cloth would cut, its face and the edges that it owns.
fn analytic(
    snap: &Snapshot<'_>,
    (body, solid): (u32, &AnalyticBody),
    t: u32,
    out: &mut Vec<Contact>,
) {
    let (shape, distances) = (&solid.shape, snap.distances);
    for vertex in snap.cloth.surface().owned_vertices(t) {
        let [start, end] = seen_from(snap, body, vertex);
        let (gap, normal) = shape.distance(start);
        let (end_gap, _) = shape.distance(end);
        if gap.min(end_gap) <= distances.reach(distances.from_body(vertex, body)) {
            let sweep = &snap.sweeps[body as usize];
            let velocity = sweep.velocity(start - normal * gap);
            let normal = sweep.turned(normal);
            out.push(single(snap, (body, velocity), vertex, 0, normal, gap));
        }
    }
    if let Some(ball) = &solid.ball {
        on_ball::of_triangle(snap, (body, ball), t, out);
    }
}

/// The places of a vertex at the start and at the end of the step as a body sees it, which then
/// stands still where it was placed.
pub(super) fn seen_from(snap: &Snapshot<'_>, body: u32, vertex: u32) -> [DVec3; 2] {
    let (x, v) = (snap.x[vertex as usize], snap.v[vertex as usize]);
    match &snap.sweeps[body as usize] {
        Sweep::Shift { offset, velocity } => {
            let start = x - *offset;
            [start, start + (v - *velocity) * snap.dt]
        }
        Sweep::Turn { from, to, .. } => [from.undo(x), to.undo(x + v * snap.dt)],
    }
}

/// Tests a vertex against a face, of which it must not be a corner.
pub(in crate::collide) fn vertex_face(
    snap: &Snapshot<'_>,
    vertex: u32,
    face: u32,
    out: &mut Vec<Contact>,
) {
    let corners = snap.cloth.surface().triangles()[face as usize];
    let [a, b, c] = corners.map(|v| snap.x[v as usize]);
    let w = on_triangle(snap.x[vertex as usize], a, b, c);
    let vertices = [vertex, corners[0], corners[1], corners[2]];
    let weights = [1.0, -w[0], -w[1], -w[2]];
    let rest = || {
        let x = snap.cloth.rest();
        let [a, b, c] = corners.map(|v| x[v as usize]);
        let p = x[vertex as usize];
        let w = on_triangle(p, a, b, c);
        p.distance(a * w[0] + b * w[1] + c * w[2])
    };
    let id = PairId {
        kind: PairKind::VertexFace,
        body: 0,
        a: vertex,
        b: face,
    };
    let along = |separation: DVec3, target: f64| {
        let on = OnFace {
            face,
            vertex,
            weights: w,
            separation,
        };
        let surface = snap.cloth.surface();
        if on.is_inside() {
            return Some(separation);
        }
        let [p, a, b, c] = vertices.map(|v| end(snap, v));
        let w = on_triangle(p, a, b, c);
        let end = p - (a * w[0] + b * w[1] + c * w[2]);
        apart_along([separation, end], target, || {
            is_of_face(surface, snap.x, &on)
        })
    };
    let pair = FeaturePair {
        id,
        vertices,
        weights,
    };
    let fallback = || (b - a).cross(c - a);
    cloth_contact(snap, pair, (fallback, rest, along), out);
}

/// Tests two edges, which must not share a vertex.
fn edge_edge(snap: &Snapshot<'_>, a: u32, b: u32, out: &mut Vec<Contact>) {
    let edges = snap.cloth.surface().edges();
    let ([p, q], [r, s]) = (edges[a as usize], edges[b as usize]);
    let at = |v: u32| snap.x[v as usize];
    let closest = on_segments(at(p), at(q), at(r), at(s));
    edges_at(snap, [a, b], closest, out);
}

/// Reports two edges if their closest points, given by these parameters, come within reach.
pub(in crate::collide) fn edges_at(
    snap: &Snapshot<'_>,
    [a, b]: [u32; 2],
    (t, u): (f64, f64),
    out: &mut Vec<Contact>,
) {
    let edges = snap.cloth.surface().edges();
    let ([p, q], [r, s]) = (edges[a as usize], edges[b as usize]);
    let at = |v: u32| snap.x[v as usize];
    let weights = [1.0 - t, t, u - 1.0, -u];
    let rest = || {
        let x = |v: u32| snap.cloth.rest()[v as usize];
        let (t, u) = on_segments(x(p), x(q), x(r), x(s));
        x(p).lerp(x(q), t).distance(x(r).lerp(x(s), u))
    };
    let id = PairId {
        kind: PairKind::EdgeEdge,
        body: 0,
        a,
        b,
    };
    let fallback = || (at(q) - at(p)).cross(at(s) - at(r));
    let along = |_: DVec3, target: f64| {
        let points = [at(p).lerp(at(q), t), at(r).lerp(at(s), u)];
        let on = OnEdges {
            edges: [a, b],
            parameters: [t, u],
            points,
            target,
        };
        let [one, two] = points;
        let surface = snap.cloth.surface();
        let [p, q, r, s] = [p, q, r, s].map(|v| end(snap, v));
        let (t, u) = on_segments(p, q, r, s);
        let end = p.lerp(q, t) - r.lerp(s, u);
        apart_along([one - two, end], target, || {
            is_of_edges(surface, snap.x, &on)
        })
    };
    let pair = FeaturePair {
        id,
        vertices: [p, q, r, s],
        weights,
    };
    cloth_contact(snap, pair, (fallback, rest, along), out);
}

/// The position of a vertex at the end of the step, as far as it is foreseen.
fn end(snap: &Snapshot<'_>, vertex: u32) -> DVec3 {
    snap.x[vertex as usize] + snap.v[vertex as usize] * snap.dt
}

/// The direction along which features are held apart whose separations at the start and at the
/// foreseen end of a step are given, where the pair is not a vertex over a face: features at a
/// border or at a ridge, or those that others stand for. `None` if they are no contact.
///
/// The direction of such a pair changes as its features slide past each other, and a constraint
/// along the first one would stop them. So it is the last one if they are about as far apart then
/// as they are to be. Pairs that are not at a [local minimum](super::local_minimum) of the distance
/// are contacts if they move by more than a quarter of the target, or pass through each other: in
/// so long a step others do not stand for them.
fn apart_along(
    [start, end]: [DVec3; 2],
    target: f64,
    is_least: impl FnOnce() -> bool,
) -> Option<DVec3> {
    let passes = start.dot(end) <= 0.0;
    let is_fast = passes || (end - start).length_squared() > (FAST * target).powi(2);
    let is_contact = is_fast || is_least();
    let turned = !passes && end.length_squared() >= (NEARLY * target).powi(2);
    is_contact.then_some(if turned { end } else { start })
}

/// Two features of cloth and their closest points.
struct FeaturePair {
    id: PairId,
    vertices: [u32; 4],
    weights: [f64; 4],
}

/// Reports a pair of cloth features if it comes within reach, and is the one of those around it
/// that stands for the contact, unless all are asked for.
///
/// Where the features touch, their separation has no direction: the normal is then `fallback`,
/// turned against their approach. Within a piece of cloth the target is no more than their distance
/// at rest, `rest`. `along` tells for a separation and a target along which direction the features
/// are held apart, if the pair is at a [local minimum](super::local_minimum) of the distance.
fn cloth_contact(
    snap: &Snapshot<'_>,
    pair: FeaturePair,
    (fallback, rest, along): (
        impl Fn() -> DVec3,
        impl Fn() -> f64,
        impl Fn(DVec3, f64) -> Option<DVec3>,
    ),
    out: &mut Vec<Contact>,
) {
    let FeaturePair {
        id,
        vertices,
        weights,
    } = pair;
    let (first, second) = vertices.split_at(match id.kind {
        PairKind::VertexFace => 1,
        _ => 2,
    });
    if snap.cloth.surface().passing().lets(first, second) {
        return;
    }
    let combine = |x: &[DVec3]| -> DVec3 {
        let at = |k: usize| x[vertices[k] as usize] * weights[k];
        (at(0) + at(1)) + (at(2) + at(3))
    };
    let separation = combine(snap.x);
    let velocity = combine(snap.v);
    let distance = snap.distances.between(vertices[0], vertices[3]);
    if !comes_within(
        separation,
        velocity * snap.dt,
        snap.distances.reach(distance),
    ) {
        return;
    }
    let one_component = snap.cloth.in_one_component(vertices[0], vertices[3]);
    let target = if one_component {
        distance.min(rest() * snap.cloth.shortening(vertices))
    } else {
        distance
    };
    let direction = if snap.all_pairs {
        separation
    } else if let Some(direction) = along(separation, target) {
        direction
    } else {
        return;
    };
    let length = direction.length();
    let normal = if length > 1e-9 * distance {
        direction / length
    } else {
        let normal = fallback().normalize_or(DVec3::Z);
        if normal.dot(velocity) > 0.0 {
            -normal
        } else {
            normal
        }
    };
    let gap = if snap.all_pairs {
        length
    } else {
        separation.dot(normal)
    };
    let separation = Separation {
        normal,
        gap,
        target,
        body_velocity: DVec3::ZERO,
    };
    out.push(Contact::new(id, vertices, weights, separation));
}

/// Tests a cloth vertex against a face of a body. Faces look outwards: the gap is negative inside.
///
/// A fast vertex may land far from where it was closest when the step began. So it is tested twice:
/// at the start, and where its motion crosses the face's plane, or ends before.
fn vertex_body(
    snap: &Snapshot<'_>,
    (body, solid): (u32, &BodySurface),
    vertex: u32,
    face: u32,
    out: &mut Vec<Contact>,
) {
    if let Some((end, _)) = &solid.deforms {
        return vertex_deforming(snap, (body, solid), &end.positions, vertex, face, out);
    }
    let (offset, velocity) = match &snap.sweeps[body as usize] {
        Sweep::Shift { offset, velocity } => (*offset, *velocity),
        Sweep::Turn { from, to, .. } => {
            return vertex_turning(snap, (body, solid), [from, to], vertex, face, out);
        }
    };
    let corners = solid.surface.triangles()[face as usize];
    let corners = corners.map(|v| solid.positions[v as usize] + offset);
    let face_normal = solid.normal(face);
    let start = snap.x[vertex as usize];
    let motion = (snap.v[vertex as usize] - velocity) * snap.dt;
    let height = (start - corners[0]).dot(face_normal);
    // This is deeper than contacts ever get: it is the far side of a thin body that was found.
    let kept = snap.distances.from_body(vertex, body);
    if height < -kept || is_behind(solid, face, height) {
        return;
    }
    let sink = -motion.dot(face_normal);
    for time in [0.0, meeting(height, sink)] {
        let p = start + motion * time;
        let w = on_triangle(p, corners[0], corners[1], corners[2]);
        let q = corners[0] * w[0] + corners[1] * w[1] + corners[2] * w[2];
        let nearest = |normal| solid.is_nearest(face, w, normal);
        let Some(normal) = off_face(snap, (p - q, kept), w, time, face_normal, nearest) else {
            continue;
        };
        let gap = (start - q).dot(normal);
        out.push(single(snap, (body, velocity), vertex, face, normal, gap));
        return;
    }
}

/// Tests a cloth vertex against a face of a body that turns. Its corners go straight from where
/// they are at the start of the step to where they will be, and heights over the face's plane are
/// taken to change evenly.
fn vertex_turning(
    snap: &Snapshot<'_>,
    (body, solid): (u32, &BodySurface),
    [from, to]: [&Pose; 2],
    vertex: u32,
    face: u32,
    out: &mut Vec<Contact>,
) {
    let sweep = &snap.sweeps[body as usize];
    let placed = solid.surface.triangles()[face as usize].map(|v| solid.positions[v as usize]);
    let [begin, end] = [from, to].map(|pose| placed.map(|p| pose.apply(p)));
    let own_normal = solid.normal(face);
    let face_normal = sweep.turned(own_normal);
    let start = snap.x[vertex as usize];
    let motion = snap.v[vertex as usize] * snap.dt;
    let height = (start - begin[0]).dot(face_normal);
    let kept = snap.distances.from_body(vertex, body);
    if height < -kept || is_behind(solid, face, height) {
        return;
    }
    let sink = height - (to.undo(start + motion) - placed[0]).dot(own_normal);
    for time in [0.0, meeting(height, sink)] {
        let p = start + motion * time;
        let [a, b, c] = [0, 1, 2].map(|k| begin[k] + (end[k] - begin[k]) * time);
        let w = on_triangle(p, a, b, c);
        let q = a * w[0] + b * w[1] + c * w[2];
        let nearest = |normal| solid.is_nearest(face, w, from.unturned(normal));
        let Some(normal) = off_face(snap, (p - q, kept), w, time, face_normal, nearest) else {
            continue;
        };
        let at = placed[0] * w[0] + placed[1] * w[1] + placed[2] * w[2];
        let gap = (start - from.apply(at)).dot(normal);
        let velocity = sweep.velocity(at);
        out.push(single(snap, (body, velocity), vertex, face, normal, gap));
        return;
    }
}

/// Tests a cloth vertex against a face of a body that deforms, whose corners go straight from where
/// they are to these places (m). Heights over the face's plane are taken to change evenly.
///
/// All is seen from the first corner, so that a face which keeps its shape is one of a rigid body,
/// to the last bit.
fn vertex_deforming(
    snap: &Snapshot<'_>,
    (body, solid): (u32, &BodySurface),
    ends: &[DVec3],
    vertex: u32,
    face: u32,
    out: &mut Vec<Contact>,
) {
    let corners = solid.surface.triangles()[face as usize];
    let begin = corners.map(|v| solid.positions[v as usize]);
    let way = [0, 1, 2].map(|k| ends[corners[k] as usize] - begin[k]);
    let face_normal = solid.normal(face);
    let start = snap.x[vertex as usize];
    let motion = (snap.v[vertex as usize] - way[0] / snap.dt) * snap.dt;
    let height = (start - begin[0]).dot(face_normal);
    let kept = snap.distances.from_body(vertex, body);
    if height < -kept || is_behind(solid, face, height) {
        return;
    }
    let end = [0, 1, 2].map(|k| begin[k] + (way[k] - way[0]));
    let end_normal = (end[1] - end[0]).cross(end[2] - end[0]).normalize_or_zero();
    let sink = (start - begin[0]).dot(face_normal - end_normal) - motion.dot(end_normal);
    for time in [0.0, meeting(height, sink)] {
        let p = start + motion * time;
        let [a, b, c] = [0, 1, 2].map(|k| begin[k] + (way[k] - way[0]) * time);
        let w = on_triangle(p, a, b, c);
        let q = a * w[0] + b * w[1] + c * w[2];
        let nearest = |normal| solid.is_nearest(face, w, normal);
        let Some(normal) = off_face(snap, (p - q, kept), w, time, face_normal, nearest) else {
            continue;
        };
        let at = begin[0] * w[0] + begin[1] * w[1] + begin[2] * w[2];
        let gap = (start - at).dot(normal);
        let velocity = solid.velocity(&snap.sweeps[body as usize], corners, w);
        out.push(single(snap, (body, velocity), vertex, face, normal, gap));
        return;
    }
}

/// Whether a vertex at this height over a face is in front of another face, which lies back to back
/// with it.
fn is_behind(solid: &BodySurface, face: u32, height: f64) -> bool {
    face >= solid.two_sided && height < 0.0
}

/// The share of the step after which a vertex at this height over a face, which sinks by `sink` in
/// the step, meets its plane; 0 or 1 if it does not.
fn meeting(height: f64, sink: f64) -> f64 {
    if sink > 0.0 {
        (height / sink).clamp(0.0, 1.0)
    } else {
        0.0
    }
}

/// The direction in which a face keeps a vertex off, by `kept`. `away` leads to the vertex from the
/// point of the face with these weights, at a time of the step. There is none if the vertex is out
/// of reach, or another face is nearer.
fn off_face(
    snap: &Snapshot<'_>,
    (away, kept): (DVec3, f64),
    w: [f64; 3],
    time: f64,
    face_normal: DVec3,
    is_nearest: impl Fn(DVec3) -> bool,
) -> Option<DVec3> {
    let distance = away.length();
    if distance > snap.distances.reach(kept) {
        return None;
    }
    let inside = w.iter().all(|&w| w > BOUNDARY);
    if inside || distance <= 1e-9 * kept {
        return Some(face_normal);
    }
    if time > 0.0 || away.dot(face_normal) < 0.0 {
        // The vertex is beside this face where it meets its plane, or it is behind it.
        return None;
    }
    let normal = away / distance;
    is_nearest(normal).then_some(normal)
}

/// Tests a cloth face against a vertex of a body that is a feature.
fn face_body(
    snap: &Snapshot<'_>,
    (body, solid): (u32, &BodySurface),
    face: u32,
    vertex: u32,
    out: &mut Vec<Contact>,
) {
    let Some(feature) = solid.vertex_feature(vertex) else {
        return;
    };
    let corners = snap.cloth.surface().triangles()[face as usize];
    let sweep = &snap.sweeps[body as usize];
    let placed = solid.positions[vertex as usize];
    let p = sweep.start(placed);
    let [a, b, c] = corners.map(|v| snap.x[v as usize]);
    let w = on_triangle(p, a, b, c);
    // A corner is tested against the faces at the body's vertex, which are nearly one.
    if feature.blunt && w.iter().filter(|&&w| w <= BOUNDARY).count() == 2 {
        return;
    }
    let id = PairId {
        kind: PairKind::FaceBody,
        body,
        a: face,
        b: vertex,
    };
    let met = MetFeature {
        point: p,
        velocity: solid.velocity(sweep, [vertex], [1.0]),
        outward: sweep.turned(feature.outward),
        feature,
    };
    out.extend(feature_contact(snap, id, corners, w, met));
}

/// Tests a cloth edge against an edge of a body that is a feature.
fn edge_body(
    snap: &Snapshot<'_>,
    (body, solid): (u32, &BodySurface),
    a: u32,
    b: u32,
    out: &mut Vec<Contact>,
) {
    let Some(feature) = solid.edge_feature(b) else {
        return;
    };
    let sweep = &snap.sweeps[body as usize];
    let [p, q] = snap.cloth.surface().edges()[a as usize];
    let ends = solid.surface.edges()[b as usize];
    let placed = ends.map(|v| solid.positions[v as usize]);
    let velocity = |u: f64| match &solid.deforms {
        None => sweep.velocity(placed[0].lerp(placed[1], u)),
        Some(_) => solid.velocity(sweep, ends, [1.0 - u, u]),
    };
    let [r, s] = placed.map(|p| sweep.start(p));
    let (t, u) = on_segments(snap.x[p as usize], snap.x[q as usize], r, s);
    // Ends of a cloth edge are tested against faces, those of a blunt edge against faces of cloth.
    let is_end = |t: f64| t <= BOUNDARY || t >= 1.0 - BOUNDARY;
    if feature.blunt && (is_end(t) || is_end(u)) {
        return;
    }
    let id = PairId {
        kind: PairKind::EdgeBody,
        body,
        a,
        b,
    };
    let met = MetFeature {
        point: r.lerp(s, u),
        velocity: velocity(u),
        outward: sweep.turned(feature.outward),
        feature,
    };
    out.extend(feature_contact(snap, id, [p, q], [1.0 - t, t], met));
}

/// The point of a feature of a body that is nearest to a feature of cloth.
#[derive(Clone, Copy, Debug)]
struct MetFeature {
    /// Its position in m.
    point: DVec3,
    /// Its velocity in m/s.
    velocity: DVec3,
    /// The mean normal of the faces that meet at the feature.
    outward: DVec3,
    /// The feature where the body was placed.
    feature: BodyFeature,
}

impl MetFeature {
    /// The direction in which the feature keeps cloth off that is `away` from it, and how far it is
    /// in that direction; none if another feature is nearer, or the cloth is inside the body.
    ///
    /// A blunt feature keeps off what is inside too, down to `thickness`: its own normal tells on
    /// which side cloth is.
    fn separation(&self, away: DVec3, thickness: f64) -> Option<(DVec3, f64)> {
        let distance = away.length();
        let touches = distance <= 1e-9 * thickness;
        if !self.feature.blunt {
            let normal = away / distance;
            let is_outside = normal.dot(self.outward) > 0.0 || self.feature.is_border();
            return (!touches && is_outside).then_some((normal, distance));
        }
        if touches {
            return Some((self.outward, 0.0));
        }
        let normal = away / distance;
        let height = normal.dot(self.outward);
        if height >= FLAT {
            Some((normal, distance))
        } else if self.feature.two_sided {
            None
        } else {
            (-height >= FLAT && distance <= thickness).then_some((-normal, -distance))
        }
    }
}

/// The contact of a cloth feature with a feature of a body, if it comes within reach.
fn feature_contact<const N: usize>(
    snap: &Snapshot<'_>,
    id: PairId,
    vertices: [u32; N],
    weights: [f64; N],
    met: MetFeature,
) -> Option<Contact> {
    let combine =
        |x: &[DVec3]| -> DVec3 { (0..N).map(|k| x[vertices[k] as usize] * weights[k]).sum() };
    let away = combine(snap.x) - met.point;
    let motion = (combine(snap.v) - met.velocity) * snap.dt;
    let kept = snap.distances.from_body(vertices[0], id.body);
    if !comes_within(away, motion, snap.distances.reach(kept)) {
        return None;
    }
    let (normal, gap) = met.separation(away, kept)?;
    let separation = Separation {
        normal,
        gap,
        target: kept,
        body_velocity: met.velocity,
    };
    Some(Contact::new(id, vertices, weights, separation))
}

/// A contact of one cloth vertex with a body.
fn single(
    snap: &Snapshot<'_>,
    (body, body_velocity): (u32, DVec3),
    vertex: u32,
    face: u32,
    normal: DVec3,
    gap: f64,
) -> Contact {
    let id = PairId {
        kind: PairKind::VertexBody,
        body,
        a: vertex,
        b: face,
    };
    let separation = Separation {
        normal,
        gap,
        target: snap.distances.from_body(vertex, body),
        body_velocity,
    };
    Contact::new(id, [vertex], [1.0], separation)
}
