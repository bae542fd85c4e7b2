//! Vertices that a scene prescribed: in which directions, and where they are taken.
//!
//! A pin takes away all directions of its vertices, or the two across a rail, or the one across a plane; rails and planes turn with the pin. In the directions
//! that it prescribed a vertex ends each part of a step where the pin has taken the place at which it started. Its velocity is the way there over the length of
//! the part: nothing adds up, and neither cut steps nor runs that go on from a checkpoint need to know of earlier parts. What is fixed for good keeps its place
//! by having no velocity.
//!
//! These are the constraints with prescribed values of [BW98 §5]. Bodies leave fixed vertices alone, and push sliding ones by the impulses of `corrections` only.

use std::ops::Range;

use glam::{DMat3, DVec3};

use crate::collide::body_motion::{BodyMotion, Pose};
use crate::scene::{Pin, Slide};

/// Which vertices are held, and what their pins do.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pins {
    /// Ascending, each with the number of its pin.
    held: Vec<(u32, u32)>,
    pins: Vec<Kind>,
}

#[derive(Clone, Debug)]
struct Kind {
    /// Before the pin turns.
    slide: Slide,
    motion: BodyMotion,
}

/// What a pin does in a part of a step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PrescribedMotion {
    /// The projection onto the directions that are free.
    pub(crate) free: DMat3,
    /// Where it takes what it prescribed; `None` if that stays where it is.
    to: Option<Pose>,
}

impl Pins {
    /// Pins of all cloths, and the vertices that they hold, in any order.
    pub(crate) fn new<'p>(pins: impl Iterator<Item = &'p Pin>, mut held: Vec<(u32, u32)>) -> Self {
        held.sort_unstable();
        let kind = |pin: &Pin| Kind {
            slide: pin.slide,
            motion: BodyMotion::of(pin.velocity, pin.motion.as_ref()),
        };
        Self {
            held,
            pins: pins.map(kind).collect(),
        }
    }

    /// The vertices that are held, of some, each with the number of its pin.
    pub(crate) fn of(&self, vertices: &Range<usize>) -> &[(u32, u32)] {
        let before = |end: usize| self.held.partition_point(|&(v, _)| (v as usize) < end);
        &self.held[before(vertices.start)..before(vertices.end)]
    }

    /// What they do in a part that ends at this time in s: into `prescribed`, which is empty or what they did in another part.
    pub(crate) fn place(&self, end: f64, prescribed: &mut Vec<PrescribedMotion>) {
        if prescribed.len() == self.pins.len() && self.pins.iter().all(Kind::is_fixed) {
            return;
        }
        prescribed.clear();
        prescribed.extend(self.pins.iter().map(|pin| pin.hold(end)));
    }
}

impl Kind {
    fn is_fixed(&self) -> bool {
        self.slide == Slide::Nowhere && self.motion.is_still()
    }

    fn hold(&self, end: f64) -> PrescribedMotion {
        let to = (!self.is_fixed()).then(|| self.motion.at(end));
        let slide = to.map_or(self.slide, |to| self.slide.turned(|d| to.turned(d)));
        PrescribedMotion {
            free: slide.free(),
            to,
        }
    }
}

impl PrescribedMotion {
    /// Whether vertices stay where they are, in all directions.
    pub(crate) fn is_fixed(&self) -> bool {
        self.to.is_none()
    }

    /// The velocity in m/s, in a part of `dt` s that begins with the vertex at `x`, of a vertex that started at `start` (m): in the directions that
    /// are held.
    pub(crate) fn velocity(&self, start: DVec3, x: DVec3, dt: f64) -> DVec3 {
        self.to.map_or(DVec3::ZERO, |to| {
            let way = to.apply(start) - x;
            (way - self.free * way) / dt
        })
    }
}
