//! Vertices that a scene holds: in which directions, and where they are taken.
//!
//! A pin takes away all directions of its vertices, or the two across a rail, or the one across a
//! plane; rails and planes turn with the pin. In the directions that it holds, a vertex ends each
//! substep where the pin has taken the place at which it started. Its velocity is the way there
//! over the length of the substep. So nothing adds up, and neither cut steps nor runs that go on
//! from a checkpoint need to know of earlier substeps. A vertex that is fixed for good keeps its
//! place by having no velocity.
//!
//! Certification may have stopped a vertex on its way. Then it lags behind its pin, and catches up
//! at no more than [`CATCH_UP`] beside the pin's own velocity.
//!
//! These are the constraints with prescribed values of [BW98 §5]. Bodies leave fixed vertices
//! alone, and push sliding ones by the impulses of `corrections` only.
//!
//! * \[BW98\] Baraff, Witkin: Large steps in cloth simulation.

use std::ops::Range;

use glam::{DMat3, DVec3};

use crate::collide::bodies::{BodyMotion, Pose};
use crate::scene::{Pin, Slide};

/// The vertices that are held, and what their pins do.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pins {
    /// The vertices, ascending.
    pinned: Vec<Pinned>,
    pins: Vec<Kind>,
}

/// A vertex that a pin holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Pinned {
    /// The number of the vertex.
    pub(crate) vertex: u32,
    /// The number of the pin, among those of all cloths.
    pub(crate) pin: u32,
}

#[derive(Clone, Debug)]
struct Kind {
    /// The directions that are free, before the pin turns.
    slide: Slide,
    motion: BodyMotion,
    /// Where the body is at time 0 that it follows, if it follows one.
    start: Option<Pose>,
}

/// The motion that a pin prescribes in a substep.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PrescribedMotion {
    /// The projection onto the directions that are free.
    pub(crate) free: DMat3,
    /// The poses from and to which it takes what it holds; `None` if that stays where it is.
    poses: Option<[Pose; 2]>,
}

/// The speed in m/s at which vertices catch up that lag behind their pin.
const CATCH_UP: f64 = 1.0;

impl Pins {
    /// Takes the pins of all cloths, and the vertices that they hold, in any order.
    pub(crate) fn new<'p>(pins: impl Iterator<Item = &'p Pin>, mut pinned: Vec<Pinned>) -> Self {
        pinned.sort_unstable();
        let kind = |pin: &Pin| {
            let motion = BodyMotion::of(pin.velocity, pin.motion.as_ref());
            Kind {
                slide: pin.slide,
                start: pin.follow.as_ref().map(|_| motion.at(0.0)),
                motion,
            }
        };
        Self {
            pinned,
            pins: pins.map(kind).collect(),
        }
    }

    /// The vertices of a range that are held.
    pub(crate) fn of(&self, vertices: &Range<usize>) -> &[Pinned] {
        let before = |end: usize| self.pinned.partition_point(|p| (p.vertex as usize) < end);
        &self.pinned[before(vertices.start)..before(vertices.end)]
    }

    /// Finds the motions of pins in a substep from one time in s to another. `prescribed` is empty,
    /// or has their motions in another substep.
    pub(crate) fn place(&self, times: [f64; 2], prescribed: &mut Vec<PrescribedMotion>) {
        if prescribed.len() == self.pins.len() && self.pins.iter().all(Kind::is_fixed) {
            return;
        }
        prescribed.clear();
        prescribed.extend(self.pins.iter().map(|pin| pin.prescribe(times)));
    }
}

impl Kind {
    fn is_fixed(&self) -> bool {
        self.slide == Slide::Nowhere && self.motion.is_still()
    }

    fn prescribe(&self, times: [f64; 2]) -> PrescribedMotion {
        let pose = |time: f64| {
            let pose = self.motion.at(time);
            self.start.map_or(pose, |start| pose.since(&start))
        };
        let poses = (!self.is_fixed()).then(|| times.map(pose));
        let turned = |[_, to]: [Pose; 2]| self.slide.turned(|d| to.turned(d));
        PrescribedMotion {
            free: poses.map_or(self.slide, turned).free(),
            poses,
        }
    }
}

impl PrescribedMotion {
    /// Whether vertices stay where they are, in all directions.
    pub(crate) fn is_fixed(&self) -> bool {
        self.poses.is_none()
    }

    /// The velocity in m/s, in a substep of `dt` s that begins with the vertex at `x`, of a vertex
    /// that started at `start` (m), in the directions that are held.
    pub(crate) fn velocity(&self, start: DVec3, x: DVec3, dt: f64) -> DVec3 {
        self.poses.map_or(DVec3::ZERO, |[from, to]| {
            let (before, after) = (from.apply(start), to.apply(start));
            let lag = self.held(before - x);
            let (behind, most) = (lag.length(), CATCH_UP * dt);
            let way = if behind > most {
                (after - before) + lag * (most / behind)
            } else {
                after - x
            };
            self.held(way) / dt
        })
    }

    /// The part of a vector in the directions that are held.
    fn held(&self, way: DVec3) -> DVec3 {
        way - self.free * way
    }
}
