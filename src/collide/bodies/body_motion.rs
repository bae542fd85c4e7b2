//! Where a body is at any time, and what its points do in a step.
//!
//! Position is a function of time alone: a run that goes on from a checkpoint, or cuts a step,
//! needs no state of bodies. In a step a point of the body goes straight from where it is at the
//! start to where it is at the end. Its velocity is that displacement over the length of the step,
//! so cloth that moves with the body stays on it, to rounding, however the body turns.
//!
//! Turns between keyframes are about one axis, with orientations every few degrees, which come from
//! sines when the scene is loaded. Steps take products and a root: quaternions between two of the
//! orientations are linear in time, and scaled to length 1.

use std::ops::Range;
use std::sync::Arc;

use glam::{DMat3, DQuat, DVec3, DVec4};

use super::deforming::Deforming;
use crate::heap_bytes::{HeapBytes, counts_heap, owns_no_heap};
use crate::mesh::turn;
use crate::scene::{self, Interpolation};

/// How a body moves.
#[derive(Clone, Debug)]
pub struct BodyMotion(Kind);

#[derive(Clone, Debug)]
enum Kind {
    /// A constant velocity in m/s.
    Constant(DVec3),
    Scripted(Box<Script>),
    /// Each of its vertices by itself.
    Deforming(Arc<Deforming>),
    /// Each of its vertices by itself, as its own axes see it, which move as the whole.
    Within(Arc<Deforming>),
}

impl HeapBytes for BodyMotion {
    fn heap_bytes(&self) -> usize {
        match &self.0 {
            Kind::Constant(_) => 0,
            Kind::Scripted(script) => script.heap_bytes(),
            Kind::Deforming(deforming) | Kind::Within(deforming) => deforming.heap_bytes(),
        }
    }
}

#[derive(Clone, Debug)]
struct Script {
    center: DVec3,
    interpolation: Interpolation,
    repeat: bool,
    /// The first and the last keyframe: time, translation.
    ends: [(f64, DVec3); 2],
    segments: Vec<Segment>,
    /// The orientations, at least one.
    orientations: Vec<DQuat>,
    /// Whether there is any orientation but that in which the body was placed.
    turns: bool,
}

counts_heap!(Script: segments, orientations; without center, interpolation, repeat, ends, turns);

/// The motion from one keyframe to the next.
#[derive(Clone, Debug)]
struct Segment {
    start: f64,
    end: f64,
    from: DVec3,
    change: DVec3,
    /// Change over time, in m/s.
    velocity: DVec3,
    /// First and last orientation, with those between.
    orientations: Range<usize>,
}

owns_no_heap!(Segment);

/// Where a body is: `x = R p + d`, for points `p` of the body where it was placed.
#[derive(Clone, Copy, Debug)]
pub struct Pose {
    /// Nothing for a body that does not turn.
    rotation: Option<DMat3>,
    /// The offset in m.
    offset: DVec3,
}

owns_no_heap!(Pose);

/// The motion of a body in a step.
#[derive(Clone, Copy, Debug)]
pub(in crate::collide) enum Sweep {
    /// All of it is this far (m) from where it was placed, and moves with one velocity (m/s).
    Shift { offset: DVec3, velocity: DVec3 },
    /// A motion from one pose to another, in `dt` (s).
    Turn { from: Pose, to: Pose, dt: f64 },
}

impl BodyMotion {
    /// The motion of a body of the scene.
    #[must_use]
    pub fn new(body: &scene::Body) -> Self {
        Self::of(body.velocity, body.motion.as_ref())
    }

    /// Makes a motion by keyframes, if there are any, else with a velocity in m/s.
    pub(crate) fn of(velocity: DVec3, motion: Option<&scene::Motion>) -> Self {
        motion.map_or_else(|| Self::constant(velocity), Self::scripted)
    }

    /// Makes a motion from keyframe to keyframe; without any the body stays.
    #[must_use]
    pub fn scripted(motion: &scene::Motion) -> Self {
        Script::new(motion).map_or_else(
            || Self::constant(DVec3::ZERO),
            |script| Self(Kind::Scripted(Box::new(script))),
        )
    }

    /// Makes a motion with one velocity in m/s.
    #[must_use]
    pub fn constant(velocity: DVec3) -> Self {
        Self(Kind::Constant(velocity))
    }

    /// The motion of a body that deforms: its vertices tell also how the whole of it moves.
    #[must_use]
    pub fn deformed(deforming: Arc<Deforming>) -> Self {
        Self(Kind::Deforming(deforming))
    }

    /// The motion of the axes of a body that deforms and is seen from them.
    #[must_use]
    pub fn deformed_within(deforming: Arc<Deforming>) -> Self {
        Self(Kind::Within(deforming))
    }

    /// How its vertices move, if they do so each by itself.
    #[must_use]
    pub fn deforming(&self) -> Option<&Arc<Deforming>> {
        match &self.0 {
            Kind::Deforming(deforming) | Kind::Within(deforming) => Some(deforming),
            Kind::Constant(_) | Kind::Scripted(_) => None,
        }
    }

    /// Whether the body stays where it was placed.
    pub(crate) fn is_still(&self) -> bool {
        matches!(self.0, Kind::Constant(velocity) if velocity == DVec3::ZERO)
    }

    /// Where the body is at a time in s. One that deforms is where its vertices are, unless it is
    /// seen from its own axes.
    #[must_use]
    pub fn at(&self, time: f64) -> Pose {
        match &self.0 {
            Kind::Constant(velocity) => Pose {
                rotation: None,
                offset: *velocity * time,
            },
            Kind::Scripted(script) => script.at(time),
            Kind::Deforming(_) => Pose::STILL,
            Kind::Within(deforming) => deforming.whole().at(time),
        }
    }

    /// The motion in a step, apart from what vertices do by themselves.
    pub(in crate::collide) fn sweep(&self, time: f64, dt: f64) -> Sweep {
        let script = match &self.0 {
            Kind::Constant(velocity) => {
                return Sweep::Shift {
                    offset: *velocity * time,
                    velocity: *velocity,
                };
            }
            Kind::Scripted(script) => script,
            Kind::Within(deforming) => return deforming.whole().sweep(time, dt),
            Kind::Deforming(_) => {
                return Sweep::Shift {
                    offset: DVec3::ZERO,
                    velocity: DVec3::ZERO,
                };
            }
        };
        let (from, to) = (script.at(time), script.at(time + dt));
        if script.turns {
            return Sweep::Turn { from, to, dt };
        }
        let velocity = script.constant_velocity(time, dt);
        Sweep::Shift {
            offset: from.offset,
            velocity: velocity.unwrap_or_else(|| (to.offset - from.offset) / dt),
        }
    }
}

impl Script {
    /// `None` without keyframes.
    fn new(motion: &scene::Motion) -> Option<Self> {
        let (first, last) = (motion.keyframes.first()?, motion.keyframes.last()?);
        let mut orientations = vec![turn(first.turn.vector(DQuat::IDENTITY))];
        let mut turns = orientations[0] != DQuat::IDENTITY;
        let mut segments = Vec::new();
        for [from, to] in motion.keyframes.array_windows() {
            let begin = orientations.len() - 1;
            let before = orientations[begin];
            let vector = to.turn.vector(before);
            turns |= vector != DVec3::ZERO;
            let parts = (vector.length() / SPACING).ceil();
            let mut part = 1.0;
            while part <= parts {
                orientations.push(turn(vector * (part / parts)) * before);
                part += 1.0;
            }
            let change = to.translation - from.translation;
            segments.push(Segment {
                start: from.time,
                end: to.time,
                from: from.translation,
                change,
                velocity: change / (to.time - from.time),
                orientations: begin..orientations.len() - 1,
            });
        }
        Some(Self {
            center: motion.center,
            interpolation: motion.interpolation,
            repeat: motion.repeat,
            ends: [first, last].map(|keyframe| (keyframe.time, keyframe.translation)),
            segments,
            orientations,
            turns,
        })
    }

    /// The time within the keyframes that stands for a time.
    fn wrapped(&self, time: f64) -> f64 {
        let [start, end] = self.ends.map(|(time, _)| time);
        if self.repeat && time > end {
            // A remainder has no rounding.
            start + (time - start) % (end - start)
        } else {
            time
        }
    }

    /// The segment that a time is in, between its keyframes or at its first.
    fn segment(&self, time: f64) -> Option<&Segment> {
        let next = self
            .segments
            .partition_point(|segment| segment.start <= time);
        let segment = &self.segments[next.checked_sub(1)?];
        (time < segment.end).then_some(segment)
    }

    fn at(&self, time: f64) -> Pose {
        let time = self.wrapped(time);
        let (translation, orientation) = match self.segment(time) {
            Some(segment) => {
                let share = (time - segment.start) / (segment.end - segment.start);
                let (share, translation) = match self.interpolation {
                    Interpolation::Linear => {
                        let moved = segment.velocity * (time - segment.start);
                        (share, segment.from + moved)
                    }
                    Interpolation::Smooth => {
                        let share = share * share * (3.0 - 2.0 * share);
                        (share, segment.from + segment.change * share)
                    }
                };
                (translation, self.orientation(segment, share))
            }
            None => {
                let [first, last] = self.ends;
                if time < first.0 {
                    (first.1, self.orientations[0])
                } else {
                    (last.1, self.orientations[self.orientations.len() - 1])
                }
            }
        };
        if !self.turns {
            return Pose {
                rotation: None,
                offset: translation,
            };
        }
        let rotation = DMat3::from_quat(orientation);
        Pose {
            rotation: Some(rotation),
            offset: self.center + translation - rotation * self.center,
        }
    }

    /// The orientation a share of the way through a segment.
    fn orientation(&self, segment: &Segment, share: f64) -> DQuat {
        let Range { start, end } = segment.orientations;
        if start == end {
            return self.orientations[start];
        }
        let way = share * (end - start) as f64;
        let at = (way as usize).min(end - start - 1);
        let [from, to] = [start + at, start + at + 1].map(|at| DVec4::from(self.orientations[at]));
        let mixed = from + (to - from) * (way - at as f64);
        DQuat::from_vec4(mixed / mixed.length())
    }

    /// The velocity of a step in which it does not change.
    fn constant_velocity(&self, time: f64, dt: f64) -> Option<DVec3> {
        let time = self.wrapped(time);
        let segment = self.segment(time)?;
        let constant = self.interpolation == Interpolation::Linear && time + dt <= segment.end;
        constant.then_some(segment.velocity)
    }
}

impl Pose {
    /// Where the body was placed.
    pub(crate) const STILL: Self = Self {
        rotation: None,
        offset: DVec3::ZERO,
    };

    /// Where a point of the body is, in m.
    #[must_use]
    pub fn apply(&self, p: DVec3) -> DVec3 {
        self.turned(p) + self.offset
    }

    /// The point of the body that is there.
    #[must_use]
    pub(crate) fn undo(&self, x: DVec3) -> DVec3 {
        self.unturned(x - self.offset)
    }

    /// The way from another pose of the body to this one: it takes points from where they are there
    /// to where they are here.
    pub(crate) fn since(&self, start: &Self) -> Self {
        let rotation = match (self.rotation, start.rotation) {
            (own, None) => own,
            (own, Some(start)) => Some(own.unwrap_or(DMat3::IDENTITY) * start.transpose()),
        };
        let turned = Self {
            rotation,
            offset: DVec3::ZERO,
        };
        Self {
            rotation,
            offset: self.offset - turned.apply(start.offset),
        }
    }

    /// A direction as the body sees it.
    pub(in crate::collide) fn unturned(&self, direction: DVec3) -> DVec3 {
        let along = |m: DMat3| {
            let axes = [m.x_axis, m.y_axis, m.z_axis];
            DVec3::from_array(axes.map(|axis| axis.dot(direction)))
        };
        self.rotation.map_or(direction, along)
    }

    /// A direction of the body, turned as it is.
    pub(crate) fn turned(&self, direction: DVec3) -> DVec3 {
        self.rotation.map_or(direction, |matrix| matrix * direction)
    }
}

impl Sweep {
    /// Where a point of the body is at the start of the step.
    #[inline]
    pub(in crate::collide) fn start(&self, p: DVec3) -> DVec3 {
        match self {
            Self::Shift { offset, .. } => p + *offset,
            Self::Turn { from, .. } => from.apply(p),
        }
    }

    /// A direction of the body as it is then.
    #[inline]
    pub(in crate::collide) fn turned(&self, direction: DVec3) -> DVec3 {
        match self {
            Self::Shift { .. } => direction,
            Self::Turn { from, .. } => from.turned(direction),
        }
    }

    /// The velocity of a point of the body in the step.
    #[inline]
    pub(in crate::collide) fn velocity(&self, p: DVec3) -> DVec3 {
        match self {
            Self::Shift { velocity, .. } => *velocity,
            Self::Turn { from, to, dt } => (to.apply(p) - from.apply(p)) / *dt,
        }
    }

    /// The velocity of a point that goes from one place to another in the step of `dt` s, as the
    /// body sees it.
    #[inline]
    pub(in crate::collide) fn velocity_within(&self, [from, to]: [DVec3; 2], dt: f64) -> DVec3 {
        match self {
            Self::Shift { velocity, .. } => *velocity + (to - from) / dt,
            Self::Turn {
                from: start,
                to: end,
                ..
            } => (end.apply(to) - start.apply(from)) / dt,
        }
    }

    /// Where a point of the body is at the start of the step and at its end, `dt` later.
    #[inline]
    pub(in crate::collide) fn ends(&self, p: DVec3, dt: f64) -> [DVec3; 2] {
        match self {
            Self::Shift { offset, velocity } => [p + *offset, p + *offset + *velocity * dt],
            Self::Turn { from, to, .. } => [from.apply(p), to.apply(p)],
        }
    }
}

/// Orientations are at most this far apart, in rad: in between, the speed of a turn varies by half
/// a thousandth.
const SPACING: f64 = 5.0 * std::f64::consts::PI / 180.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scene::Scene;

    fn motion(text: &str) -> BodyMotion {
        let scene = format!(
            "time = {{ step = \"1 ms\" }}\n[[cloth]]\ngrid = {{ size = 1, vertices = 9 }}\nmaterial = {{ density = 0.15, \
             stretch = 1000, bending = 1e-5 }}\n[[body]]\nshape = \"sphere\"\ncenter = [1, 0, 0]\nradius = 1\n{text}"
        );
        BodyMotion::new(&Scene::parse(&scene, None, &[]).unwrap().bodies[0])
    }

    #[test]
    fn a_turn_is_about_the_centre_at_an_even_pace_and_is_held_before_and_after() {
        let motion = motion(
            "motion = { keyframes = [{ time = 1 }, { time = 3, turn = [0, 0, \"450 deg\"], translation = [0, 0, 2] }] }",
        );
        let tip = DVec3::new(2.0, 0.0, 0.0);
        assert_eq!(motion.at(0.5).apply(tip), tip);
        for k in 0..=200 {
            let t = f64::from(k) / 200.0;
            let (sine, cosine) = (450.0 * t).to_radians().sin_cos();
            let pose = motion.at(1.0 + 2.0 * t);
            let (x, known) = (pose.apply(tip), DVec3::new(1.0 + cosine, sine, 2.0 * t));
            // A table of 5 degrees, with straight lines between.
            assert!((x - known).length() < 2e-5, "{t}: {x} not {known}");
            assert!((x - pose.apply(DVec3::X)).length() - 1.0 < 1e-14);
            assert!((pose.undo(x) - tip).length() < 1e-14);
        }
        let end = motion.at(3.0).apply(tip);
        assert!((end - DVec3::new(1.0, 1.0, 2.0)).length() < 1e-14);
        assert_eq!(motion.at(77.0).apply(tip), end);
    }

    #[test]
    fn rotations_take_the_shortest_way() {
        let motion = motion(
            "motion = { center = [0, 0, 0], keyframes = [{ time = 0, rotation = [0, 0, \"170 deg\"] }, { time = 1, \
             rotation = [0, 0, \"-20 deg\"], turn = [0, 0, 0] }] }"
                .replace(", turn = [0, 0, 0]", "")
                .replace("-20", "340")
                .as_str(),
        );
        let half = motion.at(0.5).apply(DVec3::X);
        let (sine, cosine) = 255f64.to_radians().sin_cos();
        assert!(
            (half - DVec3::new(cosine, sine, 0.0)).length() < 1e-14,
            "{half}"
        );
    }

    #[test]
    fn a_smooth_motion_rests_at_its_keyframes_and_a_repeated_one_begins_again() {
        let motion = motion(
            "motion = { interpolation = \"smooth\", repeat = true, keyframes = [{ time = 1 }, { time = 2, translation = \
             [1, 0, 0] }, { time = 3, translation = [0, 0, 0] }] }",
        );
        let x = |time: f64| motion.at(time).apply(DVec3::ZERO).x;
        assert_eq!((x(0.3), x(1.5), x(2.0), x(3.0)), (0.0, 0.5, 1.0, 0.0));
        assert!(x(1.01) < 4e-4 && 1.0 - x(1.99) < 4e-4);
        assert_eq!((x(3.5), x(5.25), x(1001.5)), (0.5, x(1.25), 0.5));
    }

    /// Between two keyframes a translation is that of a body with a velocity, to the bit.
    #[test]
    fn points_go_in_a_step_from_where_the_body_is_to_where_it_will_be() {
        let straight = motion(
            "motion = { keyframes = [{ time = 0 }, { time = 4, translation = [1, 0.5, 0] }] }",
        );
        let same = BodyMotion::constant(DVec3::new(0.25, 0.125, 0.0));
        let p = DVec3::new(0.3, 0.7, 0.1);
        for step in 0..3000 {
            let time = f64::from(step) * 0.001;
            let [one, two] = [&straight, &same].map(|motion| motion.sweep(time, 0.001));
            assert_eq!(one.ends(p, 0.001), two.ends(p, 0.001));
            assert_eq!(one.velocity(p), two.velocity(p));
        }
        let turning =
            motion("motion = { keyframes = [{ time = 0 }, { time = 1, turn = [1, 2, 3] }] }");
        let sweep = turning.sweep(0.4, 0.01);
        let [start, end] = sweep.ends(p, 0.01);
        assert_eq!(
            (start, end),
            (turning.at(0.4).apply(p), turning.at(0.4 + 0.01).apply(p))
        );
        assert!((start + sweep.velocity(p) * 0.01 - end).length() < 1e-15);
    }
}
