//! The scripted motion of a body or a pin: keyframes, as a scene gives them.
//!
//! In: the table `motion` of one. Out: a [`Motion`] whose times ascend and whose turns are slow
//! enough to be followed in steps. [`crate::collide::bodies::body_motion`] tells where it is at a
//! time. Everything said of bodies here holds for pins.

use std::f64::consts::{PI, TAU};

use glam::{DQuat, DVec3};
use serde::{Deserialize, Serialize};

use super::form::{Bare, Flag, OneOf, Vector, Written, words};
use super::key::{Key, Nested, Value, note_missing, read_keys, write_inline};
use super::quantity::{Dimension, Number};
use super::reader::{Range, Table};
use crate::mesh::{orientation, turn};

/// The path of a body.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Motion {
    /// The point in m, of the body where it is placed, about which it turns.
    pub center: DVec3,
    /// How it gets from one keyframe to the next.
    pub interpolation: Interpolation,
    /// Whether it begins again after the last keyframe, which then is where the first is.
    pub repeat: bool,
    /// The keyframes, at least one, in the order of their times.
    pub keyframes: Vec<Keyframe>,
}

/// The placement of a body at a time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Keyframe {
    /// The time in s, from 0.
    pub time: f64,
    /// How far its centre has moved from where it was placed, in m.
    pub translation: DVec3,
    /// How it has turned.
    pub turn: Turn,
}

/// How a body comes to be turned as it is at a keyframe.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Turn {
    /// A turn to angles about x, y, z in rad, in this order, from how the body was placed, on the
    /// shortest way from the keyframe before.
    To(DVec3),
    /// A turn from the keyframe before, about an axis by any angle in rad: their product.
    By(DVec3),
}

/// How a body gets from one keyframe to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Interpolation {
    /// The body moves with constant velocity.
    Linear,
    /// The body moves from rest to rest: where it would be `s` of the way, it is `s² (3 − 2s)` of
    /// it.
    Smooth,
}

impl Motion {
    /// A motion about a point whose keyframes are not read yet.
    pub(super) fn unread(center: DVec3) -> Self {
        Self {
            center,
            interpolation: Interpolation::Linear,
            repeat: false,
            keyframes: Vec::new(),
        }
    }

    /// Whether any keyframe is turned.
    pub(super) fn turns(&self) -> bool {
        self.keyframes.iter().any(Keyframe::is_turned)
    }

    /// Whether it is the same as another one: the centre matters if there are turns about it.
    pub(super) fn moves_as(&self, other: &Self) -> bool {
        (self.interpolation, self.repeat) == (other.interpolation, other.repeat)
            && self.keyframes == other.keyframes
            && (!self.turns() || self.center == other.center)
    }
}

impl Keyframe {
    fn is_turned(&self) -> bool {
        let (Turn::To(angles) | Turn::By(angles)) = self.turn;
        angles != DVec3::ZERO
    }

    /// Whether it is elsewhere than where the body was placed, or turned; not if it is nowhere.
    pub(super) fn is_away(&self) -> bool {
        self.translation.is_finite() && (self.translation != DVec3::ZERO || self.is_turned())
    }
}

impl Interpolation {
    /// All values of the type.
    pub const ALL: [Self; 2] = [Self::Linear, Self::Smooth];

    /// The name in scenes.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Linear => "linear",
            Self::Smooth => "smooth",
        }
    }

    /// The greatest speed, as a multiple of the mean one.
    fn peak(self) -> f64 {
        match self {
            Self::Linear => 1.0,
            Self::Smooth => 1.5,
        }
    }
}

impl Turn {
    /// Axis times angle (rad) of the turn from an orientation.
    pub(crate) fn vector(self, from: DQuat) -> DVec3 {
        match self {
            Self::By(vector) => vector,
            Self::To(angles) => {
                let way = orientation(angles) * from.conjugate();
                let way = if way.w < 0.0 { -way } else { way };
                let (axis, sine) = (way.xyz(), way.xyz().length());
                if sine == 0.0 {
                    return DVec3::ZERO;
                }
                axis * (2.0 * libm::atan2(sine, way.w) / sine)
            }
        }
    }
}

/// The keyframe with which the next one is compared.
struct Before {
    keyframe: Keyframe,
    orientation: DQuat,
    /// The angles that it names, if it does.
    angles: Option<DVec3>,
}

type Of<F> = Value<Motion, F>;

words!(Interpolation);

/// The keys of a motion, in the order in which they are read and echoed.
pub(super) const KEYS: &[Key<Motion>] = &[
    Key::new(
        "center",
        &Of {
            form: Vector(Dimension::LENGTH, Range::Any),
            get: |motion| Some(motion.center),
            set: |motion, center| motion.center = center,
        },
        "The point about which the body turns, where it is placed; it moves along.",
    )
    .unset(
        "`center` of the shape, `point` of a plane, middle of a capsule, `translation` of a mesh",
    ),
    Key::new(
        "interpolation",
        &Of {
            form: OneOf::<Interpolation>::NEW,
            get: |motion| Some(motion.interpolation),
            set: |motion, interpolation| motion.interpolation = interpolation,
        },
        "`\"linear\"`: evenly from keyframe to keyframe; `\"smooth\"`: from rest to rest, s² (3 − 2s) \
         of the way where `\"linear\"` is s of it.",
    ),
    Key::new(
        "repeat",
        &Of {
            form: Flag,
            get: |motion| Some(motion.repeat),
            set: |motion, repeat| motion.repeat = repeat,
        },
        "After the last keyframe, which must be where the first is, it begins again at the first.",
    ),
    Key::new(
        "keyframes",
        &Nested {
            what: "an array of tables",
            write: |motion: &Motion| {
                let lines: String = motion
                    .keyframes
                    .iter()
                    .map(|keyframe| {
                        let keyframe = write_inline(KEYFRAME_KEYS, &KeyframeKeys::from(keyframe));
                        format!("    {keyframe},\n")
                    })
                    .collect();
                Some(Written {
                    text: format!("[\n{lines}]"),
                    unit: "s, m, rad",
                })
            },
        },
        "Where it is at certain times, in the order of the times; at least one.",
    )
    .required("keyframes = [{ time = 0 }, { time = \"1 s\", translation = [0, 0, 0.1] }]"),
];

/// The values of the keys of a keyframe.
pub(super) struct KeyframeKeys {
    time: f64,
    translation: Option<DVec3>,
    rotation: Option<DVec3>,
    turn: Option<DVec3>,
}

impl Default for KeyframeKeys {
    fn default() -> Self {
        Self {
            time: f64::NAN,
            translation: None,
            rotation: None,
            turn: None,
        }
    }
}

impl From<&Keyframe> for KeyframeKeys {
    fn from(keyframe: &Keyframe) -> Self {
        let (rotation, turn) = match keyframe.turn {
            Turn::To(angles) => (Some(angles), None),
            Turn::By(angles) => (None, Some(angles)),
        };
        Self {
            time: keyframe.time,
            translation: Some(keyframe.translation),
            rotation,
            turn,
        }
    }
}

/// The keys of a keyframe, in the order in which they are read and echoed.
pub(super) const KEYFRAME_KEYS: &[Key<KeyframeKeys>] = &[
    Key::new(
        "time",
        &Value {
            form: Bare(Dimension::TIME, Range::NonNegative),
            get: |keyframe: &KeyframeKeys| Some(keyframe.time),
            set: |keyframe, time| keyframe.time = time,
        },
        "The time from the start; times ascend.",
    )
    .required("time = \"1 s\""),
    Key::new(
        "translation",
        &Value {
            form: Vector(Dimension::LENGTH, Range::Any),
            get: |keyframe: &KeyframeKeys| keyframe.translation,
            set: |keyframe, translation| keyframe.translation = Some(translation),
        },
        "The vector from where the body was placed to where it is then.",
    )
    .unset("that of the keyframe before, at first 0"),
    Key::new(
        "rotation",
        &Value {
            form: Vector(Dimension::ANGLE, Range::Any),
            get: |keyframe: &KeyframeKeys| keyframe.rotation,
            set: |keyframe, rotation| keyframe.rotation = Some(rotation),
        },
        "How it is turned then: angles about x, y, z, in this order, counted from how it was placed. \
         It gets there on the shortest way, of less than 180°.",
    )
    .unset("that of the keyframe before, at first 0"),
    Key::new(
        "turn",
        &Value {
            form: Vector(Dimension::ANGLE, Range::Any),
            get: |keyframe: &KeyframeKeys| keyframe.turn,
            set: |keyframe, turn| keyframe.turn = Some(turn),
        },
        "How it turns from the keyframe before, instead of `rotation`: axis times angle, which may be \
         several full turns.",
    )
    .unset("0"),
];

/// Reads the motion of a body that turns about `middle` (m) unless it says otherwise, in steps of
/// `step` seconds.
pub(super) fn motion(table: &Table<'_>, middle: DVec3, step: f64) -> Motion {
    let said = read_keys(table, KEYS, Motion::unread(middle));
    note_missing(table, KEYS, &said);
    let Motion {
        center,
        interpolation,
        repeat,
        ..
    } = said;
    let (mut first, mut before, mut turned) = (None, None, 0.0);
    let keyframes = table.tables("keyframes", MOST_KEYFRAMES, |_, table| {
        let next = keyframe(table, before.as_ref());
        if let Some(before) = &before {
            let angle = next.keyframe.turn.vector(before.orientation).length();
            check_pace(
                table,
                before.keyframe,
                next.keyframe,
                angle * interpolation.peak(),
                step,
            );
            turned += angle;
        }
        let all = next.keyframe;
        first.get_or_insert((all.translation, next.orientation));
        before = Some(next);
        all
    });
    if table.has("keyframes") && keyframes.is_empty() {
        table.note("keyframes", "wants at least one keyframe");
    }
    if turned > MOST_ROUNDS * TAU {
        let message = format!(
            "turns round {:.0} times in all; the most are {MOST_ROUNDS}; a motion with repeat = true goes on for ever",
            turned / TAU
        );
        table.note("keyframes", message);
    }
    if let (true, Some((translation, orientation)), Some(last)) = (repeat, first, before) {
        let apart = translation.distance(last.keyframe.translation);
        let alike = orientation.dot(last.orientation).abs();
        if keyframes.len() < 2 {
            table.note("repeat", "one keyframe has no motion to repeat");
        } else if apart > SAME || alike < 1.0 - SAME {
            table.note(
                "repeat",
                "the last keyframe is not at the place of the first, and motions do not jump; add a keyframe at that place",
            );
        }
    }
    Motion {
        center,
        interpolation,
        repeat,
        keyframes,
    }
}

fn keyframe(table: &Table<'_>, before: Option<&Before>) -> Before {
    let said = read_keys(table, KEYFRAME_KEYS, KeyframeKeys::default());
    note_missing(table, KEYFRAME_KEYS, &said);
    let (to, by) = (said.rotation, said.turn);
    if to.is_some() && by.is_some() {
        table.note("turn", "a keyframe has `rotation` or `turn`, not both");
    }
    let from = before.map_or(DQuat::IDENTITY, |before| before.orientation);
    let turned = match to {
        Some(angles) => Turn::To(angles),
        None => Turn::By(by.unwrap_or(DVec3::ZERO)),
    };
    let vector = turned.vector(from);
    if let (Some(angles), Some(before)) = (to, before) {
        let named = before.angles.is_some_and(|named| {
            let change = (angles - named).abs().max_element();
            change > PI + SAME
        });
        if named || vector.length() > PI - AMBIGUOUS {
            let message = "turns by 180 deg or more, and `rotation` takes the shortest way; put a keyframe between, or \
                           give `turn`, axis times angle from the keyframe before, such as turn = [0, 0, \"360 deg\"]";
            table.note("rotation", message);
        }
    }
    let placed = (DVec3::ZERO, Some(DVec3::ZERO));
    let (stays, named) = before.map_or(placed, |before| {
        (before.keyframe.translation, before.angles)
    });
    Before {
        keyframe: Keyframe {
            time: said.time,
            translation: said.translation.unwrap_or(stays),
            turn: turned,
        },
        orientation: turn(vector) * from,
        angles: match turned {
            Turn::To(angles) => Some(angles),
            Turn::By(vector) => named.filter(|_| vector == DVec3::ZERO),
        },
    }
}

/// Notes times that do not ascend, and a turn by `angle` (rad, at its fastest) that steps cannot
/// follow.
fn check_pace(table: &Table<'_>, before: Keyframe, next: Keyframe, angle: f64, step: f64) {
    let lasts = next.time - before.time;
    if lasts < SHORTEST {
        let message = format!(
            "{} s is not later than the keyframe before, {} s; keyframes want ascending times",
            Number(next.time),
            Number(before.time)
        );
        table.note("time", message);
        return;
    }
    // Numbers that are not finite have been refused already.
    if !(lasts.is_finite() && step.is_finite()) {
        return;
    }
    let in_step = (angle * (step / lasts).min(1.0)).to_degrees();
    if in_step > MOST_IN_A_STEP {
        let message = format!(
            "this turns by {in_step:.1} deg in a step of {} s, and the most is {MOST_IN_A_STEP} deg; take a later \
             time, or a shorter time.step",
            Number(step)
        );
        table.note("time", message);
    }
}

/// Keyframes of a body.
const MOST_KEYFRAMES: usize = 100_000;

/// Full turns in a motion: each is kept as a table of orientations.
const MOST_ROUNDS: f64 = 1000.0;

/// Degrees by which a body may turn in a step, in which its points move along straight lines.
const MOST_IN_A_STEP: f64 = 10.0;

/// Shortest time between keyframes in s.
const SHORTEST: f64 = 1e-9;

/// Lengths (m) and angles (rad) that count as none.
const SAME: f64 = 1e-9;

/// Angles in rad this close to half a turn could go either way.
const AMBIGUOUS: f64 = 1e-6;
