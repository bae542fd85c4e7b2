//! The pairs of features of cloth that hold closest points of the surfaces around them.
//!
//! Where two smooth layers touch, every vertex is within reach of several faces, and every edge of
//! several edges. The contact is nevertheless described by few of these pairs: those whose distance
//! is a local minimum. A face whose closest point lies on its side is left out if the face beyond
//! that side is nearer; a side or a corner that faces share is reported by the first of them. The
//! idea is that of offset geometric contact [C+25]; the regions are the Voronoi regions of the
//! features [E05 §5.1].
//!
//! Two edges are a contact of their own only where both are ridges. If the faces at one of them
//! are flat, to a share of the distance to keep ([`FLAT`]), vertices against faces keep the edges
//! apart as well: along the one edge the distance to a flat surface changes evenly, so that it is
//! no less between the ends of an edge than the interpolated distances of vertices, up to the
//! height by which the faces fall off. So brute force finds no pair nearer than 0.95 of its target
//! where all contacts keep theirs.
//!
//! Neighbours at rest drop out by the same rule. From a point of a bent sheet, the distance to the
//! next faces grows with the way along the sheet, and a contact comes about only where the sheet
//! has turned back. That is why the thickness may be larger than edges are long. Only heights of
//! triangles and opposite sides of two triangles stay, so that triangles are not crushed.
//!
//! * \[C+25\] Chen, Hsu, Liu, Macklin, Yang, Yuksel: Offset geometric contact, 2025.
//! * \[E05\] Ericson: Real-time collision detection, 2005.

use glam::DVec3;

use crate::collide::surface::{NO_FACE, Surface};

/// Faces at an edge count as flat if they fall off from it by no more than this share of the
/// distance to keep.
const FLAT: f64 = 0.05;

/// A share of a length, or the sine of an angle, that rounding may cause.
const ROUNDING: f64 = 1e-9;

/// A vertex and the point of a face that is closest to it.
pub(super) struct OnFace {
    pub(super) face: u32,
    pub(super) vertex: u32,
    /// The weights of the corners at the closest point.
    pub(super) weights: [f64; 3],
    /// From the closest point to the vertex.
    pub(super) separation: DVec3,
}

impl OnFace {
    /// Whether the closest point is on no side of the face.
    pub(super) fn is_inside(&self) -> bool {
        self.weights.iter().all(|&weight| weight > ROUNDING)
    }
}

/// Whether a face's closest point is a local minimum of the distance to the vertex on the surface,
/// and the face is the first with this point.
pub(super) fn is_of_face(surface: &Surface, x: &[DVec3], on: &OnFace) -> bool {
    let zeros = on.weights.map(|weight| weight <= ROUNDING);
    match zeros {
        [false, false, false] => true,
        [true, false, false] => is_of_side(surface, x, on, 1),
        [false, true, false] => is_of_side(surface, x, on, 2),
        [false, false, true] => is_of_side(surface, x, on, 0),
        [false, true, true] => is_of_corner(surface, x, on, 0),
        [true, false, true] => is_of_corner(surface, x, on, 1),
        [true, true, false] => is_of_corner(surface, x, on, 2),
        // Closest points of faces without an area or a number.
        [true, true, true] => true,
    }
}

/// Whether the first part of a way from a closest point leads nearer to the vertex, which lies at
/// `separation` from that point.
fn leads_nearer(separation: DVec3, way: DVec3) -> bool {
    let along = separation.dot(way);
    along > 0.0
        && along * along > ROUNDING * ROUNDING * separation.length_squared() * way.length_squared()
}

/// As [`is_of_face`], for a closest point on the side that begins at corner `k`.
fn is_of_side(surface: &Surface, x: &[DVec3], on: &OnFace, k: usize) -> bool {
    let edge = surface.edges_of(on.face)[k];
    let beyond = surface.beyond(edge, on.face);
    if beyond == NO_FACE {
        return true;
    }
    let apex = surface.apex(beyond, edge);
    if apex == on.vertex {
        // The height of the face beyond: it folds as the vertex comes to its side.
        return true;
    }
    let point = x[on.vertex as usize] - on.separation;
    !leads_nearer(on.separation, x[apex as usize] - point) && on.face < beyond
}

/// As [`is_of_face`], for a closest point at corner `k`.
fn is_of_corner(surface: &Surface, x: &[DVec3], on: &OnFace, k: usize) -> bool {
    let corner = surface.triangles()[on.face as usize][k];
    let at = x[corner as usize];
    // The faces around the corner, one after the other, first in the one direction until the fan
    // ends, then in the other.
    for first in [k, (k + 2) % 3] {
        let (mut face, mut edge) = (on.face, surface.edges_of(on.face)[first]);
        loop {
            let [p, q] = surface.edges()[edge as usize];
            let neighbour = if p == corner { q } else { p };
            if leads_nearer(on.separation, x[neighbour as usize] - at) {
                return false;
            }
            let next = surface.beyond(edge, face);
            if next == NO_FACE {
                break;
            }
            if next == on.face {
                return true;
            }
            if next < on.face {
                return false;
            }
            let mut others = surface.edges_of(next).into_iter();
            let other =
                others.find(|&e| e != edge && surface.edges()[e as usize].contains(&corner));
            let Some(other) = other else { break };
            (face, edge) = (next, other);
        }
    }
    true
}

/// Two edges and their closest points.
pub(super) struct OnEdges {
    /// The edges, and where their closest points are from their first ends (0) to their second (1).
    pub(super) edges: [u32; 2],
    pub(super) parameters: [f64; 2],
    /// The closest points.
    pub(super) points: [DVec3; 2],
    /// The distance to keep, in m.
    pub(super) target: f64,
}

/// Whether two edges are ridges that face each other. Where the closest point is an end of an edge,
/// a vertex is closest, which is tested against faces.
pub(super) fn is_of_edges(surface: &Surface, x: &[DVec3], on: &OnEdges) -> bool {
    if on
        .parameters
        .iter()
        .any(|&t| t <= ROUNDING || t >= 1.0 - ROUNDING)
    {
        return false;
    }
    let [one, two] = on.points;
    let separation = one - two;
    let gap = separation.length();
    if gap <= 0.0 {
        return true;
    }
    let normal = separation / gap;
    let flat = FLAT * on.target;
    // How far the faces at an edge fall off, seen from the other edge. A face that reaches the
    // other edge is none that lies between the two: it folds as they meet.
    let is_ridge = |[edge, other]: [u32; 2], point: DVec3, towards: DVec3| {
        let ends = surface.edges()[other as usize];
        let mut is_flat = true;
        for face in surface.faces_at(edge) {
            if face == NO_FACE {
                // Cloth ends here.
                is_flat = false;
                continue;
            }
            let apex = surface.apex(face, edge);
            if ends.contains(&apex) {
                is_flat = false;
                continue;
            }
            let rise = (x[apex as usize] - point).dot(towards);
            if rise > flat {
                return false;
            }
            is_flat &= rise >= -flat;
        }
        !is_flat
    };
    let [a, b] = on.edges;
    is_ridge([a, b], one, -normal) && is_ridge([b, a], two, normal)
}
