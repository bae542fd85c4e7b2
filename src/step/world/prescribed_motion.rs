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
//! A pin that follows a body that deforms has each of its vertices go along with the point of the
//! surface that was nearest to it at the start, and turn with the triangle there.
//!
//! A pin may hold its vertices from a time on and until another. In a substep that begins before or
//! after, they are free in all directions, and no vertices of a pin to what else a substep does.
//!
//! These are the constraints with prescribed values of [BW98 §5]. Bodies leave fixed vertices
//! alone, and push sliding ones by the impulses of `corrections` only.
//!
//! * \[BW98\] Baraff, Witkin: Large steps in cloth simulation.

use std::ops::Range;
use std::sync::Arc;

use glam::{DMat3, DVec3};

use crate::collide::bodies::{Attached, BodyMotion, Deforming, Pose};
use crate::heap_bytes::{HeapBytes, counts_heap, owns_no_heap};
use crate::scene::{Pin, Slide};

/// The vertices that are held, and what their pins do.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pins {
    /// The vertices, ascending.
    pinned: Vec<Pinned>,
    pins: Vec<Kind>,
}

counts_heap!(Pins: pinned, pins);

/// A vertex that a pin holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Pinned {
    /// The number of the vertex.
    pub(crate) vertex: u32,
    /// The number of the pin, among those of all cloths.
    pub(crate) pin: u32,
}

owns_no_heap!(Pinned);

#[derive(Clone, Debug)]
struct Kind {
    /// The directions that are free, before the pin turns.
    slide: Slide,
    motion: BodyMotion,
    /// Where the body is at time 0 that it follows, if it follows one.
    start: Option<Pose>,
    /// The body that deforms and that it follows, and where its vertices, ascending, are attached.
    attached: Option<AttachedTo>,
    /// It holds in substeps that begin from the first of these times in s on and before the second.
    holding: [f64; 2],
}

/// A body that deforms is left out: the world counts its motion.
impl HeapBytes for Kind {
    fn heap_bytes(&self) -> usize {
        let Self {
            slide: _,
            motion,
            start: _,
            attached,
            holding: _,
        } = self;
        let attached = attached.as_ref();
        motion.heap_bytes() + attached.map_or(0, |(_, places)| places.heap_bytes())
    }
}

/// A body that deforms, and where vertices, ascending, are attached to it.
type AttachedTo = (Arc<Deforming>, Vec<(u32, Attached)>);

/// The motion that a pin prescribes in a substep.
#[derive(Clone, Debug)]
pub(crate) struct PrescribedMotion {
    /// The projection onto the directions that are free.
    pub(crate) free: DMat3,
    /// The way of what it holds; `None` if that stays where it is.
    way: Option<Way>,
    /// Whether it holds its vertices in the substep.
    pub(crate) holds: bool,
}

counts_heap!(PrescribedMotion: way; without free, holds);

/// The way that a pin takes its vertices in a substep.
#[derive(Clone, Debug)]
enum Way {
    /// From one pose to another.
    Poses([Pose; 2]),
    /// Each vertex, ascending, from one place in m to another.
    Places(Vec<(u32, [DVec3; 2])>),
}

impl HeapBytes for Way {
    fn heap_bytes(&self) -> usize {
        match self {
            Self::Poses(_) => 0,
            Self::Places(places) => places.heap_bytes(),
        }
    }
}

/// The speed in m/s at which vertices catch up that lag behind their pin.
const CATCH_UP: f64 = 1.0;

impl Pins {
    /// The vertices that are held, ascending.
    pub(crate) fn all(&self) -> &[Pinned] {
        &self.pinned
    }

    /// Takes the pins of all cloths, and the vertices that they hold, in any order.
    /// `followed` tells the body that a pin follows, if that deforms; `rest` is where vertices
    /// start, in m.
    pub(crate) fn new<'p>(
        pins: impl Iterator<Item = &'p Pin>,
        mut pinned: Vec<Pinned>,
        followed: impl Fn(&Pin) -> Option<Arc<Deforming>>,
        rest: &[DVec3],
    ) -> Self {
        pinned.sort_unstable();
        let kind = |(number, pin): (u32, &Pin)| {
            let motion = BodyMotion::of(pin.velocity, pin.motion.as_ref());
            Kind {
                slide: pin.slide,
                start: pin.follow.as_ref().map(|_| motion.at(0.0)),
                attached: followed(pin).map(|body| {
                    let shape = body.at(0.0);
                    let own = pinned.iter().filter(|pinned| pinned.pin == number);
                    let attached = own.map(|pinned| {
                        let place = rest[pinned.vertex as usize];
                        (pinned.vertex, Attached::new(place, &shape))
                    });
                    let attached = attached.collect();
                    (body, attached)
                }),
                motion,
                holding: pin.holding(),
            }
        };
        let pins = (0..).zip(pins).map(kind).collect();
        Self { pinned, pins }
    }

    /// The vertices of a range that are held.
    pub(crate) fn of(&self, vertices: &Range<usize>) -> &[Pinned] {
        let before = |end: usize| self.pinned.partition_point(|p| (p.vertex as usize) < end);
        &self.pinned[before(vertices.start)..before(vertices.end)]
    }

    /// Finds the motions of pins in a substep from one time in s to another. `prescribed` is empty,
    /// or has their motions in another substep.
    pub(crate) fn place(&self, times: [f64; 2], prescribed: &mut Vec<PrescribedMotion>) {
        let all_stay = self
            .pins
            .iter()
            .all(|pin| pin.is_fixed() && !pin.is_timed());
        if prescribed.len() == self.pins.len() && all_stay {
            return;
        }
        prescribed.clear();
        prescribed.extend(self.pins.iter().map(|pin| pin.prescribe(times)));
    }

    /// Tells which of all vertices pins hold that prescribe this; `held` stays empty where these
    /// are always the same.
    pub(crate) fn tell_held(
        &self,
        prescribed: &[PrescribedMotion],
        vertices: usize,
        held: &mut Vec<bool>,
    ) {
        if !self.pins.iter().any(Kind::is_timed) {
            return;
        }
        held.clear();
        held.resize(vertices, false);
        for pinned in &self.pinned {
            held[pinned.vertex as usize] = prescribed[pinned.pin as usize].holds;
        }
    }
}

impl Kind {
    fn is_fixed(&self) -> bool {
        self.slide == Slide::Nowhere && self.motion.is_still() && self.attached.is_none()
    }

    /// Whether it holds its vertices at some times only.
    fn is_timed(&self) -> bool {
        self.holding != [f64::NEG_INFINITY, f64::INFINITY]
    }

    fn prescribe(&self, times: [f64; 2]) -> PrescribedMotion {
        let [from, until] = self.holding;
        if !(from <= times[0] && times[0] < until) {
            return PrescribedMotion {
                free: DMat3::IDENTITY,
                way: None,
                holds: false,
            };
        }
        if let Some((body, attached)) = &self.attached {
            let [from, to] = times.map(|time| body.at(time));
            let places = attached.iter().map(|(vertex, held)| {
                let ends = [&from, &to].map(|shape| held.at(&shape.positions));
                (*vertex, ends)
            });
            return PrescribedMotion {
                free: self.slide.free(),
                way: Some(Way::Places(places.collect())),
                holds: true,
            };
        }
        let pose = |time: f64| {
            let pose = self.motion.at(time);
            self.start.map_or(pose, |start| pose.since(&start))
        };
        // Vertices that were free have to be taken to where they are held.
        let comes_later = from > 0.0;
        let poses = (comes_later || !self.is_fixed()).then(|| times.map(pose));
        let turned = |[_, to]: [Pose; 2]| self.slide.turned(|d| to.turned(d));
        PrescribedMotion {
            free: poses.map_or(self.slide, turned).free(),
            way: poses.map(Way::Poses),
            holds: true,
        }
    }
}

impl PrescribedMotion {
    /// Whether vertices stay where they are, in all directions.
    pub(crate) fn is_fixed(&self) -> bool {
        self.way.is_none()
    }

    /// The velocity in m/s, in a substep of `dt` s that begins with the vertex at `x`, of a vertex
    /// that started at `start` (m), in the directions that are held.
    pub(crate) fn velocity(&self, vertex: u32, start: DVec3, x: DVec3, dt: f64) -> DVec3 {
        let [before, after] = match &self.way {
            None => return DVec3::ZERO,
            Some(Way::Poses(poses)) => poses.each_ref().map(|pose| pose.apply(start)),
            Some(Way::Places(places)) => {
                let found = places.binary_search_by_key(&vertex, |(vertex, _)| *vertex);
                found.map_or([x; 2], |found| places[found].1)
            }
        };
        let lag = self.held(before - x);
        let (behind, most) = (lag.length(), CATCH_UP * dt);
        let way = if behind > most {
            (after - before) + lag * (most / behind)
        } else {
            after - x
        };
        self.held(way) / dt
    }

    /// The part of a vector in the directions that are held.
    fn held(&self, way: DVec3) -> DVec3 {
        way - self.free * way
    }
}
