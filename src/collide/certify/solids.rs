//! Cloth beside bodies that have no triangles: faces and round bodies, vertices and half spaces.
//!
//! The argument is that of planes between features. A face that lies above a plane which goes with
//! the segment of a round body, and is the radius away from it, is apart from the body at the start
//! and at the end, and so on the way. A vertex is seen from the half space, which then stands
//! still.
//!
//! A vertex is likewise seen from a body that is given by a sampled distance. The distance, which
//! is a polynomial of degree three in each cell on the way, must not fall below the gap to be kept
//! anywhere on it ([`is_clear`](crate::collide::bodies::DistanceField::is_clear)). So no vertex
//! enters the body nor passes through it, but faces may sag into it between their corners. The
//! shape is not convex, so no one plane says how far the vertex may go: the share is found by
//! halving, each candidate being tested. The distance from a body that deforms changes in time as
//! well, and is followed with [steps that cannot pass a
//! bound](crate::collide::bodies::distance_in_time).

use glam::DVec3;

use super::bodies::{Field, Mover};
use super::plane::{self, Advance};
use crate::collide::bodies::distance_in_time::Met;

/// A face of cloth and a round body.
#[derive(Clone, Copy, Debug)]
pub(super) struct FaceAndRound {
    /// The corners at the start and at the end, in m.
    pub(super) face: [[DVec3; 3]; 2],
    /// The ends of the segment at the start and at the end, in m.
    pub(super) segment: [[DVec3; 2]; 2],
    /// The radius in m.
    pub(super) radius: f64,
    /// The unit vector from the body to the face at the start.
    pub(super) normal: DVec3,
    /// The gap at the start along it, in m.
    pub(super) gap: f64,
    /// The rounding of gaps in m.
    pub(super) margin: f64,
}

impl FaceAndRound {
    /// `None` if they touch or cross at the start, or the body is not round.
    pub(super) fn new(mover: &Mover, face: [[DVec3; 3]; 2]) -> Option<Self> {
        let (segment, radius) = mover.segment()?;
        let (normal, gap) = plane::from_segment(&face[0], &segment[0])?;
        let numbers = face.as_flattened().iter().chain(segment.as_flattened());
        let largest = numbers
            .map(|x| x.abs().max_element())
            .fold(radius, f64::max);
        let seen = Self {
            face,
            segment,
            radius,
            normal,
            gap: gap - radius,
            margin: plane::margin(largest),
        };
        (seen.gap > seen.margin).then_some(seen)
    }

    /// Whether one plane keeps them apart at both ends.
    pub(super) fn is_apart(&self, least: f64) -> bool {
        let needed = plane::needed(self.gap, least, self.margin) + self.radius;
        let [start, end] = &self.face;
        let [from, to] = &self.segment;
        plane::segment_gap(self.normal, end, to) >= needed
            || plane::from_segment(end, to).is_some_and(|(normal, gap)| {
                gap >= needed && plane::segment_gap(normal, start, from) >= needed
            })
    }

    /// The points as they are seen along the normal vector. `own` tells for each corner the
    /// displacements that it goes in any case and beyond that.
    pub(super) fn points(&self, displacements: [[DVec3; 2]; 3]) -> [Advance; 5] {
        let [from, to] = &self.segment;
        let above = |x: DVec3| self.normal.dot(x - from[0]);
        let heights = self.face[0].map(above);
        let low = heights.into_iter().fold(f64::INFINITY, f64::min);
        let high = above(from[1]).max(0.0);
        std::array::from_fn(|k| match displacements.get(k) {
            Some(displacement) => {
                let [base, own] = displacement.map(|d| -self.normal.dot(d));
                Advance {
                    first: true,
                    behind: heights[k] - low,
                    base,
                    own,
                }
            }
            None => Advance {
                first: false,
                behind: high - above(from[k - 3]),
                base: self.normal.dot(to[k - 3] - from[k - 3]),
                own: 0.0,
            },
        })
    }
}

/// A vertex of cloth and a half space.
#[derive(Clone, Copy, Debug)]
pub(super) struct VertexAndPlane {
    /// The heights at the start and at the end, in m.
    pub(super) heights: [f64; 2],
    /// The rounding of heights in m.
    pub(super) margin: f64,
}

impl VertexAndPlane {
    /// `None` if the vertex is not above the plane at the start, or the body has another shape.
    pub(super) fn new(mover: &Mover, ends: [DVec3; 2]) -> Option<Self> {
        let heights = mover.heights(ends)?;
        let largest = ends.iter().map(|x| x.abs().max_element());
        let offset = mover.from.apply(DVec3::ZERO).abs().max_element();
        let margin = plane::margin(largest.fold(offset, f64::max));
        (heights[0] > margin).then_some(Self { heights, margin })
    }

    /// Whether the vertex keeps above the plane.
    pub(super) fn is_apart(&self, least: f64) -> bool {
        self.heights[1] >= plane::needed(self.heights[0], least, self.margin)
    }
}

/// How often the share that a vertex may go is halved.
const HALVINGS: u32 = 20;

/// A vertex of cloth and a body that is given by a sampled distance.
#[derive(Clone, Copy, Debug)]
pub(super) struct VertexAndField<'a> {
    field: Field<'a>,
    /// The places of the vertex at the start and at the end as the body sees it, in m.
    way: [DVec3; 2],
    /// The distance at the start, in m.
    pub(super) gap: f64,
    /// The rounding of distances in m.
    margin: f64,
}

impl<'a> VertexAndField<'a> {
    /// `None` if the vertex is not outside at the start, or the body has another shape.
    pub(super) fn new(mover: &'a Mover, ends: [DVec3; 2]) -> Option<Self> {
        let field = mover.field()?;
        let way = mover.seen(ends);
        let gap = field.distance_at_start(way[0]);
        let largest = ends.iter().chain(&way).map(|x| x.abs().max_element());
        let margin = plane::margin(largest.fold(0.0, f64::max)) + field.margin();
        (gap > margin).then_some(Self {
            field,
            way,
            gap,
            margin,
        })
    }

    /// Whether the vertex keeps out of the body on all of its way.
    pub(super) fn is_apart(&self, least: f64) -> bool {
        let needed = plane::needed(self.gap, least, self.margin);
        self.field.is_clear(self.way, needed)
    }

    /// The largest share up to `whole` that was found for which a way keeps out. The body sees the
    /// way end at a place (m) by that share. `None` if not even no share does.
    pub(super) fn share(&self, least: f64, whole: f64, end: impl Fn(f64) -> DVec3) -> Option<f64> {
        let is_apart = |share: f64| {
            let way = [self.way[0], end(share)];
            Self { way, ..*self }.is_apart(least)
        };
        let (mut low, mut high) = (0.0, whole);
        if !is_apart(low) {
            return None;
        }
        for _ in 0..HALVINGS {
            let middle = 0.5 * (low + high);
            if is_apart(middle) {
                low = middle;
            } else {
                high = middle;
            }
        }
        Some(low)
    }

    /// The place up to which the way is known to keep out, in m, the distance there, and the unit
    /// vector out of the body, as it sees them.
    pub(super) fn stop(&self, least: f64) -> (DVec3, f64, DVec3) {
        let needed = plane::needed(self.gap, least, self.margin);
        self.field.stop(self.way, needed)
    }
}

impl Field<'_> {
    fn distance_at_start(self, x: DVec3) -> f64 {
        match self {
            Self::Still(field) => field.distance(x),
            Self::Swept(swept) => swept.distance_at_start(x),
        }
    }

    fn margin(self) -> f64 {
        match self {
            Self::Still(field) => field.margin(),
            Self::Swept(swept) => swept.margin(),
        }
    }

    fn is_clear(self, way: [DVec3; 2], least: f64) -> bool {
        match self {
            Self::Still(field) => field.is_clear(way, least),
            Self::Swept(swept) => swept.is_clear(way, least),
        }
    }

    /// The place up to which a way is known to keep out, as it goes on with the surface to the end,
    /// the distance there, and the unit vector out of the body.
    fn stop(self, way: [DVec3; 2], least: f64) -> (DVec3, f64, DVec3) {
        match self {
            Self::Still(field) => {
                let share = field.clear(way, least);
                let place = way[0] + (way[1] - way[0]) * share;
                (place, field.distance(place), field.normal(place))
            }
            Self::Swept(swept) => {
                let Met { near, surface } = swept.stop(way, least);
                let place = surface[1] + near.normal * near.distance;
                (place, near.distance, near.normal)
            }
        }
    }
}
