//! Planes that separate two features, and how far each vertex may go towards one.
//!
//! A vertex and a face, or two edges, that lie on different sides of a plane do not cross, and a
//! straight displacement that begins and ends on one side of it stays there. So a pair of features
//! is safe for a step if one plane separates its four vertices at the start and at the end,
//! whatever each vertex does in between and however far each of them goes.
//!
//! **Rounding.** Heights over a plane are computed as n · (x − o) from an origin o among the four
//! vertices. With U = 2⁻⁵³ and D the largest absolute component of the four differences, a
//! subtraction errs by at most U D in each component and the sum of three products by at most 3 U
//! Σ |nₖ| |yₖ| more, to first order; with |n| ≤ 1 + 4 U both together stay below 4.1 U √3 D < 8 U
//! D. A difference of two heights therefore errs by less than 16 U D, and D is at most twice the
//! largest absolute coordinate X of the pair. [`margin`] is 64 U X, twice as much: a gap beyond it
//! is one, and so a normal vector may come from any computation, since its signs alone count.

use glam::DVec3;

use crate::collide::narrow::closest::{on_segments, on_triangle};

/// The unit roundoff of f64.
const UNIT: f64 = f64::EPSILON / 2.0;

/// Two kinds of pairs that can cross.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A vertex and a face: the first vertex, and the other three.
    VertexFace,
    /// Two edges: the first two vertices, and the other two.
    EdgeEdge,
}

impl Kind {
    /// How many of the four vertices belong to the first feature.
    #[must_use]
    pub fn first(self) -> usize {
        match self {
            Self::VertexFace => 1,
            Self::EdgeEdge => 2,
        }
    }
}

/// A plane between two features, as it is seen from them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plane {
    /// The unit normal vector, which points from the second feature to the first.
    pub normal: DVec3,
    /// The heights of the four vertices along the normal vector, in m, from the last vertex.
    pub heights: [f64; 4],
    /// The width of the empty slab between the features, in m.
    pub gap: f64,
}

/// The largest error of two differences of heights of points, for points with coordinates up to
/// `largest` (m).
#[must_use]
#[inline]
pub fn margin(largest: f64) -> f64 {
    64.0 * UNIT * largest
}

/// The largest absolute coordinate of four points.
#[must_use]
#[inline]
pub fn largest(points: &[DVec3; 4]) -> f64 {
    points
        .iter()
        .map(|p| p.abs().max_element())
        .fold(0.0, f64::max)
}

/// The heights of four points along a direction, from the last of them.
#[must_use]
#[inline]
pub fn heights(normal: DVec3, points: &[DVec3; 4]) -> [f64; 4] {
    points.map(|p| normal.dot(p - points[3]))
}

/// The lowest of the first feature's heights and the highest of the second's.
#[must_use]
#[inline]
pub fn sides(kind: Kind, heights: &[f64; 4]) -> (f64, f64) {
    let [a, b, c, d] = *heights;
    match kind {
        Kind::VertexFace => (a, b.max(c).max(d)),
        Kind::EdgeEdge => (a.min(b), c.max(d)),
    }
}

/// The gap between two features along a direction, in m; negative where that does not separate
/// them.
#[must_use]
#[inline]
pub fn gap(kind: Kind, normal: DVec3, points: &[DVec3; 4]) -> f64 {
    let (low, high) = sides(kind, &heights(normal, points));
    low - high
}

/// The direction between the closest points of two features, from the second to the first, and
/// their distance in m. `None` where they touch.
#[must_use]
pub(crate) fn between_closest_points(kind: Kind, points: &[DVec3; 4]) -> Option<(DVec3, f64)> {
    // Seen from one of them, so that coordinates far from the origin lose no digits.
    let [a, b, c, d] = points.map(|p| p - points[3]);
    let displacement = match kind {
        Kind::VertexFace => {
            let [u, v, w] = on_triangle(a, b, c, d);
            a - (b * u + c * v + d * w)
        }
        Kind::EdgeEdge => {
            let (s, t) = on_segments(a, b, c, d);
            a.lerp(b, s) - c.lerp(d, t)
        }
    };
    let distance = displacement.length();
    (distance > 0.0 && distance.is_finite()).then(|| (displacement / distance, distance))
}

/// A plane between two features that do not touch: the one across the line between their closest
/// points, or, where rounding spoils that, the one with the widest gap among those of the
/// separating-axis test.
///
/// `None` if no plane is found whose gap is beyond rounding: the features touch or cross, or come
/// so close that f64 cannot tell.
#[must_use]
pub fn separating(kind: Kind, points: &[DVec3; 4]) -> Option<Plane> {
    let margin = margin(largest(points));
    let direction = between_closest_points(kind, points);
    if let Some((normal, distance)) = direction {
        let plane = across(kind, normal, points);
        if plane.gap > margin && plane.gap > 0.5 * distance {
            return Some(plane);
        }
    }
    let mut best: Option<Plane> = None;
    for_each_axis(kind, points, |axis| {
        let Some(normal) = axis.try_normalize() else {
            return;
        };
        for normal in [normal, -normal] {
            let plane = across(kind, normal, points);
            if plane.gap > best.map_or(margin, |best| best.gap) {
                best = Some(plane);
            }
        }
    });
    best
}

/// The plane across a direction.
fn across(kind: Kind, normal: DVec3, points: &[DVec3; 4]) -> Plane {
    let heights = heights(normal, points);
    let (low, high) = sides(kind, &heights);
    Plane {
        normal,
        heights,
        gap: low - high,
    }
}

/// Calls a function with each direction in which two separate convex features of four points can
/// be apart, those of degenerate features included.
fn for_each_axis(kind: Kind, points: &[DVec3; 4], mut f: impl FnMut(DVec3)) {
    let y = points.map(|p| p - points[3]);
    let (first, second) = y.split_at(kind.first());
    for axis in DVec3::AXES {
        f(axis);
    }
    let sides = |of: &[DVec3]| -> [DVec3; 3] {
        match *of {
            [a, b, c] => [b - a, c - b, a - c],
            [a, b] => [b - a, DVec3::ZERO, DVec3::ZERO],
            _ => [DVec3::ZERO; 3],
        }
    };
    let (along_first, along_second) = (sides(first), sides(second));
    // Normal vectors of faces, and across pairs of edges.
    f(along_second[0].cross(along_second[1]));
    for u in along_first {
        for v in along_second {
            f(u.cross(v));
        }
    }
    // Between vertices, and from a vertex across an edge.
    for &a in first {
        for &b in second {
            let displacement = a - b;
            f(displacement);
            for side in along_first.into_iter().chain(along_second) {
                f(side.cross(displacement.cross(side)));
            }
        }
    }
    // In the plane of a face, across its sides.
    let face = along_second[0].cross(along_second[1]);
    for side in along_second {
        f(face.cross(side));
    }
}

/// The start and the end of a pair's four vertices on straight displacements, in m.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Motion {
    /// The positions at the start.
    pub start: [DVec3; 4],
    /// The positions at the end.
    pub end: [DVec3; 4],
}

impl Motion {
    /// The rounding of heights at the start and at the end, in m; see [`margin`].
    #[must_use]
    pub fn margin(&self) -> f64 {
        margin(largest(&self.start).max(largest(&self.end)))
    }

    /// The motion as seen from a frame that moves with the mean displacement.
    #[must_use]
    pub(crate) fn less_mean(&self) -> Self {
        let displacements: [DVec3; 4] = std::array::from_fn(|k| self.end[k] - self.start[k]);
        let mean =
            (displacements[0] + displacements[1] + displacements[2] + displacements[3]) / 4.0;
        Self {
            start: self.start,
            end: std::array::from_fn(|k| self.start[k] + (displacements[k] - mean)),
        }
    }
}

/// Whether one plane keeps two features apart at both ends of their displacements, and so on the
/// displacements. `at_start` is the plane between them at the start. The gap at the end must be
/// `least` (m), or that of the start if this is less.
///
/// Two planes are tried: that of the start, and that between the closest points at the end.
#[must_use]
pub(crate) fn keeps_apart(
    kind: Kind,
    at_start: &Plane,
    displacements: &Motion,
    least: f64,
) -> bool {
    let needed = needed(at_start.gap, least, displacements.margin());
    if gap(kind, at_start.normal, &displacements.end) >= needed {
        return true;
    }
    between_closest_points(kind, &displacements.end).is_some_and(|(normal, _)| {
        gap(kind, normal, &displacements.end) >= needed
            && gap(kind, normal, &displacements.start) >= needed
    })
}

/// A point of one of two features, as it is seen along the normal vector of the plane between them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Advance {
    /// Whether it belongs to the first feature.
    pub first: bool,
    /// How far it is behind the foremost point of its feature, in m.
    pub behind: f64,
    /// How far it comes towards the other feature in any case, in m.
    pub base: f64,
    /// How far it would come beyond that, in m.
    pub own: f64,
}

/// How far the points of a pair may go towards its plane.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits<const N: usize> {
    /// The share of its own displacement that each point may go, from 0 to 1.
    pub kept: [f64; N],
    /// How far each point may come towards the other feature beyond its base, in m, from 0.
    pub allowed: [f64; N],
    /// The points come closer than there is room in any case: no shares keep the features apart.
    pub squeezed: bool,
}

/// Divides the room between two features among them, and finds how far each point may go on its
/// own displacement.
///
/// The room is what the gap has beyond the gap to be kept, in m. Each feature first gets what its
/// points need in any case, which is negative where all of them recede. The rest is divided in
/// proportion to how far the features would advance beyond that. Features with no room may part and
/// slide, but not approach.
#[must_use]
pub fn limits<const N: usize>(points: &[Advance; N], room: f64, margin: f64) -> Limits<N> {
    let (mut forced, mut wanted) = ([f64::NEG_INFINITY; 2], [f64::NEG_INFINITY; 2]);
    for point in points {
        let side = usize::from(!point.first);
        let base = point.base - point.behind;
        forced[side] = forced[side].max(base);
        wanted[side] = wanted[side].max(base + point.own.max(0.0));
    }
    let room = room.max(0.0);
    let squeezed = forced[0] + forced[1] > room + margin;
    let spare = (room - forced[0] - forced[1]).max(0.0);
    let more = [wanted[0] - forced[0], wanted[1] - forced[1]];
    let all = more[0] + more[1];
    let part = if all > 0.0 { more[0] / all } else { 0.5 };
    let shares = [forced[0] + part * spare, forced[1] + (1.0 - part) * spare];
    let allowed = points.map(|point| {
        let share = shares[usize::from(!point.first)];
        (share + point.behind - point.base - margin).max(0.0)
    });
    let kept = std::array::from_fn(|k| {
        if points[k].own > allowed[k] {
            // Rounded downwards: one part in 2^52 is the most that a division errs by.
            (allowed[k] / points[k].own * (1.0 - 4.0 * UNIT)).clamp(0.0, 1.0)
        } else {
            1.0
        }
    });
    Limits {
        kept,
        allowed,
        squeezed,
    }
}

/// The gap that must be left at the end between features that start with `gap`, where features are
/// to keep `least`, all in m.
///
/// Features that are closer than many margins must not come closer by even one margin, because
/// margins would add up in many steps.
#[must_use]
#[inline]
pub fn needed(gap: f64, least: f64, margin: f64) -> f64 {
    const MARGINS: f64 = 1024.0;
    let kept = gap.min(least);
    if kept > MARGINS * margin {
        kept - 2.0 * margin
    } else {
        kept
    }
}

/// A plane between a face and the segment of a round body: the face's corners, and the segment's
/// ends, in m. The gap is that to the segment.
#[must_use]
pub fn from_segment(face: &[DVec3; 3], segment: &[DVec3; 2]) -> Option<(DVec3, f64)> {
    let ([a, b, c], [p, q]) = (*face, *segment);
    let mut nearest: Option<(DVec3, f64)> = None;
    let mut look = |kind: Kind, points: [DVec3; 4], sign: f64| -> Option<()> {
        let (normal, distance) = between_closest_points(kind, &points)?;
        if nearest.is_none_or(|(_, least)| distance < least) {
            nearest = Some((normal * sign, distance));
        }
        Some(())
    };
    look(Kind::VertexFace, [p, a, b, c], -1.0)?;
    if p != q {
        look(Kind::VertexFace, [q, a, b, c], -1.0)?;
        for [r, s] in [[a, b], [b, c], [c, a]] {
            look(Kind::EdgeEdge, [r, s, p, q], 1.0)?;
        }
    }
    let (normal, _) = nearest?;
    let gap = segment_gap(normal, face, segment);
    (gap > 0.0).then_some((normal, gap))
}

/// The gap between a face and a segment along a direction, in m.
#[must_use]
pub(crate) fn segment_gap(normal: DVec3, face: &[DVec3; 3], segment: &[DVec3; 2]) -> f64 {
    let above = |x: DVec3| normal.dot(x - segment[0]);
    let low = face.map(above).into_iter().fold(f64::INFINITY, f64::min);
    low - above(segment[1]).max(0.0)
}
