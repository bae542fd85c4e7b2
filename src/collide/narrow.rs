//! The last word on a pair of triangles: which of their features come within reach during the step.
//!
//! A pair of features is a contact if their closest points, moving on with their velocities, come within
//! reach; a vertex and a face of a body also if the vertex comes within reach where it meets the face's
//! plane. Swept volumes inflated by half the reach then overlap, so that trees find just the contacts
//! that testing all pairs would.

pub mod ccd;

use glam::DVec3;

use super::body::{Analytic, BOUNDARY, BodySurface};
use super::body_motion::{Pose, Sweep};
use super::closest::{on_segments, on_triangle};
use super::contact::{Contact, PairId, PairKind};
use super::near::NearPair;
use super::snapshot::Snapshot;

/// Tests all that each of two triangles owns against the other.
pub(super) fn all_of_pair(snap: &Snapshot<'_>, [s, t]: [u32; 2], out: &mut Vec<Contact>) {
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

/// Tests a pair of features that are near at rest.
pub(super) fn near_pair(snap: &Snapshot<'_>, pair: &NearPair, out: &mut Vec<Contact>) {
    near_features(snap, pair, |kind, a, b| {
        cloth_feature(snap, kind, a, b, out);
    });
}

/// Whether the volumes of a pair overlap that is near at rest; where volumes of a neighbour's vertices are not there, whether boxes do.
#[inline(always)]
pub(super) fn near_features(
    snap: &Snapshot<'_>,
    pair: &NearPair,
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
pub(super) fn cloth_feature(
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
pub(super) fn body_pair(
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

/// Tests the vertices that triangle `t` owns against an analytic body.
pub(super) fn analytic(
    snap: &Snapshot<'_>,
    (body, solid): (u32, &Analytic),
    t: u32,
    out: &mut Vec<Contact>,
) {
    let sweep = &snap.sweeps[body as usize];
    for vertex in snap.cloth.surface().owned_vertices(t) {
        let (x, v) = (snap.x[vertex as usize], snap.v[vertex as usize]);
        // As the body sees them, which stands still then.
        let (start, end) = match sweep {
            Sweep::Shift { offset, velocity } => {
                let start = x - *offset;
                (start, start + (v - *velocity) * snap.dt)
            }
            Sweep::Turn { from, to, .. } => (from.undo(x), to.undo(x + v * snap.dt)),
        };
        let (gap, normal) = solid.distance(start);
        let (end_gap, _) = solid.distance(end);
        if gap.min(end_gap) <= snap.reach {
            let velocity = sweep.velocity(start - normal * gap);
            let normal = sweep.turned(normal);
            out.push(single(snap, (body, velocity), vertex, 0, normal, gap));
        }
    }
}

/// The vertex must not be a corner of the face.
pub(super) fn vertex_face(snap: &Snapshot<'_>, vertex: u32, face: u32, out: &mut Vec<Contact>) {
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
    cloth_contact(
        snap,
        id,
        vertices,
        weights,
        || (b - a).cross(c - a),
        rest,
        out,
    );
}

/// The edges must not share a vertex.
fn edge_edge(snap: &Snapshot<'_>, a: u32, b: u32, out: &mut Vec<Contact>) {
    let edges = snap.cloth.surface().edges();
    let ([p, q], [r, s]) = (edges[a as usize], edges[b as usize]);
    let at = |v: u32| snap.x[v as usize];
    let closest = on_segments(at(p), at(q), at(r), at(s));
    edges_at(snap, [a, b], closest, out);
}

/// Reports two edges if what are their closest points by these parameters comes within reach.
pub(super) fn edges_at(
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
    cloth_contact(snap, id, [p, q, r, s], weights, fallback, rest, out);
}

/// Reports a pair of cloth features if it comes within reach.
///
/// Where the features touch, their separation has no direction: the normal is then `fallback`, turned
/// against their approach. Within a piece of cloth the target is no more than their distance at rest.
fn cloth_contact(
    snap: &Snapshot<'_>,
    id: PairId,
    vertices: [u32; 4],
    weights: [f64; 4],
    fallback: impl Fn() -> DVec3,
    rest: impl Fn() -> f64,
    out: &mut Vec<Contact>,
) {
    let combine = |x: &[DVec3]| -> DVec3 {
        let at = |k: usize| x[vertices[k] as usize] * weights[k];
        (at(0) + at(1)) + (at(2) + at(3))
    };
    let separation = combine(snap.x);
    let velocity = combine(snap.v);
    if !comes_within(separation, velocity * snap.dt, snap.reach) {
        return;
    }
    let gap = separation.length();
    let normal = if gap > 1e-9 * snap.thickness {
        separation / gap
    } else {
        let normal = fallback().normalize_or(DVec3::Z);
        if normal.dot(velocity) > 0.0 {
            -normal
        } else {
            normal
        }
    };
    let one_piece = snap.cloth.in_one_piece(vertices[0], vertices[3]);
    let target = if one_piece {
        snap.thickness.min(rest())
    } else {
        snap.thickness
    };
    let body_velocity = DVec3::ZERO;
    out.push(Contact {
        id,
        count: 4,
        vertices,
        weights,
        normal,
        gap,
        target,
        body_velocity,
    });
}

/// Cloth vertex against face of a body, which face outwards: the gap is negative inside.
///
/// A fast vertex may land far from where it was closest when the step began. So it is looked at twice:
/// at the start, and where its motion crosses the face's plane, or ends before.
fn vertex_body(
    snap: &Snapshot<'_>,
    (body, solid): (u32, &BodySurface),
    vertex: u32,
    face: u32,
    out: &mut Vec<Contact>,
) {
    let (offset, velocity) = match &snap.sweeps[body as usize] {
        Sweep::Shift { offset, velocity } => (*offset, *velocity),
        Sweep::Turn { from, to, .. } => {
            return vertex_turning(snap, (body, solid), [from, to], vertex, face, out);
        }
    };
    let corners = solid.surface.triangles()[face as usize];
    let corners = corners.map(|v| solid.positions[v as usize] + offset);
    let face_normal = solid.normals[face as usize];
    let start = snap.x[vertex as usize];
    let motion = (snap.v[vertex as usize] - velocity) * snap.dt;
    let height = (start - corners[0]).dot(face_normal);
    // Deeper than contacts ever get: it is the far side of a thin body that was found.
    if height < -snap.thickness {
        return;
    }
    let sink = -motion.dot(face_normal);
    let meeting = if sink > 0.0 {
        (height / sink).clamp(0.0, 1.0)
    } else {
        0.0
    };
    for time in [0.0, meeting] {
        let p = start + motion * time;
        let w = on_triangle(p, corners[0], corners[1], corners[2]);
        let q = corners[0] * w[0] + corners[1] * w[1] + corners[2] * w[2];
        let nearest = |normal| solid.is_nearest(face, w, normal);
        let Some(normal) = off_face(snap, p - q, w, time, face_normal, nearest) else {
            continue;
        };
        let gap = (start - q).dot(normal);
        out.push(single(snap, (body, velocity), vertex, face, normal, gap));
        return;
    }
}

/// The same for a body that turns, whose corners go straight from where they are at the start of the step to where they will be. Heights over
/// the face's plane are taken to change evenly.
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
    let own_normal = solid.normals[face as usize];
    let face_normal = sweep.turned(own_normal);
    let start = snap.x[vertex as usize];
    let motion = snap.v[vertex as usize] * snap.dt;
    let height = (start - begin[0]).dot(face_normal);
    if height < -snap.thickness {
        return;
    }
    let sink = height - (to.undo(start + motion) - placed[0]).dot(own_normal);
    let meeting = if sink > 0.0 {
        (height / sink).clamp(0.0, 1.0)
    } else {
        0.0
    };
    for time in [0.0, meeting] {
        let p = start + motion * time;
        let [a, b, c] = [0, 1, 2].map(|k| begin[k] + (end[k] - begin[k]) * time);
        let w = on_triangle(p, a, b, c);
        let q = a * w[0] + b * w[1] + c * w[2];
        let nearest = |normal| solid.is_nearest(face, w, from.unturned(normal));
        let Some(normal) = off_face(snap, p - q, w, time, face_normal, nearest) else {
            continue;
        };
        let at = placed[0] * w[0] + placed[1] * w[1] + placed[2] * w[2];
        let gap = (start - from.apply(at)).dot(normal);
        let velocity = sweep.velocity(at);
        out.push(single(snap, (body, velocity), vertex, face, normal, gap));
        return;
    }
}

/// Where a face keeps a vertex off to, which is so far from the point of it with these weights at a time of the step; nowhere if it is out of
/// reach, or another face is nearer.
fn off_face(
    snap: &Snapshot<'_>,
    away: DVec3,
    w: [f64; 3],
    time: f64,
    face_normal: DVec3,
    is_nearest: impl Fn(DVec3) -> bool,
) -> Option<DVec3> {
    let distance = away.length();
    if distance > snap.reach {
        return None;
    }
    let inside = w.iter().all(|&w| w > BOUNDARY);
    if inside || distance <= 1e-9 * snap.thickness {
        return Some(face_normal);
    }
    if time > 0.0 || away.dot(face_normal) < 0.0 {
        // Beside this face, where its plane is met or behind it.
        return None;
    }
    let normal = away / distance;
    is_nearest(normal).then_some(normal)
}

/// Cloth face against a sharp vertex of a body.
fn face_body(
    snap: &Snapshot<'_>,
    (body, solid): (u32, &BodySurface),
    face: u32,
    vertex: u32,
    out: &mut Vec<Contact>,
) {
    let Some(outward) = solid.vertex_normals[vertex as usize] else {
        return;
    };
    let corners = snap.cloth.surface().triangles()[face as usize];
    let sweep = &snap.sweeps[body as usize];
    let placed = solid.positions[vertex as usize];
    let p = sweep.start(placed);
    let [a, b, c] = corners.map(|v| snap.x[v as usize]);
    let w = on_triangle(p, a, b, c);
    let vertices = [corners[0], corners[1], corners[2], 0];
    let weights = [w[0], w[1], w[2], 0.0];
    let id = PairId {
        kind: PairKind::FaceBody,
        body,
        a: face,
        b: vertex,
    };
    let at = (p, sweep.velocity(placed));
    let outward = sweep.turned(outward);
    sharp_contact(snap, id, 3, vertices, weights, at, outward, out);
}

/// Cloth edge against a sharp edge of a body.
fn edge_body(
    snap: &Snapshot<'_>,
    (body, solid): (u32, &BodySurface),
    a: u32,
    b: u32,
    out: &mut Vec<Contact>,
) {
    let Some(outward) = solid.edge_normals[b as usize] else {
        return;
    };
    let sweep = &snap.sweeps[body as usize];
    let [p, q] = snap.cloth.surface().edges()[a as usize];
    let placed = solid.surface.edges()[b as usize].map(|v| solid.positions[v as usize]);
    let [r, s] = placed.map(|p| sweep.start(p));
    let (t, u) = on_segments(snap.x[p as usize], snap.x[q as usize], r, s);
    let id = PairId {
        kind: PairKind::EdgeBody,
        body,
        a,
        b,
    };
    let weights = [1.0 - t, t, 0.0, 0.0];
    let velocity = sweep.velocity(placed[0].lerp(placed[1], u));
    sharp_contact(
        snap,
        id,
        2,
        [p, q, 0, 0],
        weights,
        (r.lerp(s, u), velocity),
        sweep.turned(outward),
        out,
    );
}

/// Reports a cloth feature near a sharp feature of a body, if it is outside.
#[expect(clippy::too_many_arguments, reason = "the parts of one contact")]
fn sharp_contact(
    snap: &Snapshot<'_>,
    id: PairId,
    count: u8,
    vertices: [u32; 4],
    weights: [f64; 4],
    (point, body_velocity): (DVec3, DVec3),
    outward: DVec3,
    out: &mut Vec<Contact>,
) {
    let combine = |x: &[DVec3]| -> DVec3 {
        (0..usize::from(count))
            .map(|k| x[vertices[k] as usize] * weights[k])
            .sum()
    };
    let separation = combine(snap.x) - point;
    let motion = (combine(snap.v) - body_velocity) * snap.dt;
    let gap = separation.length();
    if gap <= 1e-9 * snap.thickness || !comes_within(separation, motion, snap.reach) {
        return;
    }
    let normal = separation / gap;
    if normal.dot(outward) > 0.0 {
        let target = snap.thickness;
        out.push(Contact {
            id,
            count,
            vertices,
            weights,
            normal,
            gap,
            target,
            body_velocity,
        });
    }
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
    Contact {
        id: PairId {
            kind: PairKind::VertexBody,
            body,
            a: vertex,
            b: face,
        },
        count: 1,
        vertices: [vertex, 0, 0, 0],
        weights: [1.0, 0.0, 0.0, 0.0],
        normal,
        gap,
        target: snap.thickness,
        body_velocity,
    }
}

/// Whether a point that moves by `motion` from `start` comes within `reach` of the origin.
pub(super) fn comes_within(start: DVec3, motion: DVec3, reach: f64) -> bool {
    let length = motion.length_squared();
    let t = if length > 0.0 {
        (-start.dot(motion) / length).clamp(0.0, 1.0)
    } else {
        0.0
    };
    (start + motion * t).length_squared() <= reach * reach
}
