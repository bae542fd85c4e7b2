//! The keys of `pins` of a `[[cloth]]`.

use glam::DVec3;
use serde_json::{Value as Json, json};

use super::error::did_you_mean;
use super::form::{Amount, Bare, Direction, Form, Numbers, Text, Vector, Written, plain};
use super::key::{Key, Nested, Value, read_keys, write_inline};
use super::load::MOST_VERTICES;
use super::motion;
use super::nearest::nearest;
use super::objects::motion_of;
use super::quantity::{Dimension, Short};
use super::reader::{Range, Table};
use super::{Body, Cloth, Held, Keyframe, Motion, Pin, Slide};

/// The values of the keys of a pin.
#[derive(Clone, Debug, Default)]
pub(super) struct PinKeys {
    nearest: Option<DVec3>,
    min: Option<DVec3>,
    max: Option<DVec3>,
    group: Option<String>,
    vertices: Option<Vec<u64>>,
    near: Option<Near>,
    rail: Option<DVec3>,
    plane: Option<DVec3>,
    velocity: Option<DVec3>,
    motion: Option<Motion>,
    follow: Option<String>,
    from: Option<f64>,
    until: Option<f64>,
}

/// The vertices that are near a body.
#[derive(Clone, Debug)]
struct Near {
    /// The name of the body.
    body: String,
    /// The largest distance from its surface in m.
    within: f64,
}

/// A table with the name of a body and a distance.
struct NearBody;

const WITHIN: Bare = Bare(Dimension::LENGTH, Range::Positive);

impl Form for NearBody {
    type Value = Near;

    fn read(&self, table: &Table<'_>, key: &'static str) -> Option<Near> {
        if !table.has(key) {
            return None;
        }
        table.table(key, |table| {
            let (body, within) = (Text.read(table, "body"), WITHIN.read(table, "within"));
            if !table.has("body") {
                table.note_missing("body", "body = \"figure\"");
            }
            if !table.has("within") {
                table.note_missing("within", "within = \"5 mm\"");
            }
            let (body, within) = (body?, within?);
            Some(Near { body, within })
        })
    }

    fn write(&self, Near { body, within }: &Near) -> Written {
        let (body, within) = (Text.write(body).text, WITHIN.write(within).text);
        plain(format!("{{ body = {body}, within = {within} }}"))
    }

    fn describe(&self) -> String {
        format!(
            "a table with `body`, {}, and `within`, {}",
            Text.describe(),
            WITHIN.describe()
        )
    }

    fn schema(&self) -> Json {
        json!({
            "type": "object",
            "additionalProperties": false,
            "properties": { "body": Text.schema(), "within": WITHIN.schema() },
            "required": ["body", "within"],
        })
    }
}

type Of<F> = Value<PinKeys, F>;

const POINT: Vector = Vector(Dimension::LENGTH, Range::Any);

/// The keys of a pin, in the order in which they are read and echoed.
pub(super) const KEYS: &[Key<PinKeys>] = &[
    Key::new(
        "nearest",
        &Of {
            form: POINT,
            get: |pin| pin.nearest,
            set: |pin, point| pin.nearest = Some(point),
        },
        "The vertex nearest to this point of the cloth as it starts is held. A pin has this, `min` \
         and `max`, `group`, `vertices`, or `near`.",
    )
    .unset("none"),
    Key::new(
        "min",
        &Of {
            form: POINT,
            get: |pin| pin.min,
            set: |pin, corner| pin.min = Some(corner),
        },
        "The lower corner of a box. All vertices of the cloth as it starts that are in it are held.",
    )
    .unset("none"),
    Key::new(
        "max",
        &Of {
            form: POINT,
            get: |pin| pin.max,
            set: |pin, corner| pin.max = Some(corner),
        },
        "The upper corner of the box.",
    )
    .unset("none"),
    Key::new(
        "group",
        &Of {
            form: Text,
            get: |pin| pin.group.clone(),
            set: |pin, group| pin.group = Some(group),
        },
        "The name of a [group of vertices](#mesh-files) of the cloth's file. All of them are held.",
    )
    .unset("none"),
    Key::new(
        "vertices",
        &Of {
            form: Numbers(0, MOST_VERTICES - 1),
            get: |pin| pin.vertices.clone(),
            set: |pin, vertices| pin.vertices = Some(vertices),
        },
        "The numbers of vertices, from 0, in the order of the cloth's file, or of its grid: along x \
         first. All of them are held.",
    )
    .unset("none"),
    Key::new(
        "near",
        &Of {
            form: NearBody,
            get: |pin| pin.near.clone(),
            set: |pin, near| pin.near = Some(near),
        },
        "All vertices of the cloth as it starts that are no farther than `within` from the surface of \
         a body as it starts. All of them are held, and follow that body.",
    )
    .unset("none"),
    Key::new(
        "rail",
        &Of {
            form: Direction {
                example: "[1, 0, 0]",
            },
            get: |pin| pin.rail,
            set: |pin, direction| pin.rail = Some(direction),
        },
        "The direction along which the vertices slide, without friction, each on its own rail through \
         where it starts.",
    )
    .unset("they are fixed"),
    Key::new(
        "plane",
        &Of {
            form: Direction {
                example: "[0, 0, 1]",
            },
            get: |pin| pin.plane,
            set: |pin, normal| pin.plane = Some(normal),
        },
        "The normal of the planes in which the vertices slide, instead of `rail`.",
    )
    .unset("they are fixed"),
    Key::new(
        "velocity",
        &Of {
            form: Vector(Dimension::SPEED, Range::Any),
            get: |pin| pin.velocity,
            set: |pin, velocity| pin.velocity = Some(velocity),
        },
        "The velocity of the pin, its rails and planes.",
    )
    .unset("0"),
    Key::new(
        "motion",
        &Nested {
            what: "a table",
            write: |pin: &PinKeys| {
                let motion = pin.motion.as_ref()?;
                Some(plain(write_inline(motion::KEYS, motion)))
            },
        },
        "How the pin moves and turns, instead of `velocity`: [its keys](#motion). The first keyframe \
         is where the cloth starts: it has neither `translation` nor rotation. `center` is the point, \
         or the middle of the box, if it is not given; for a group and for `vertices` that turn it \
         must be.",
    )
    .unset("none"),
    Key::new(
        "follow",
        &Of {
            form: Text,
            get: |pin| pin.follow.clone(),
            set: |pin, body| pin.follow = Some(body),
        },
        "The name of a body that takes the vertices along as it moves and turns, from where they \
         start, instead of `velocity` and `motion`.",
    )
    .unset("none"),
    Key::new(
        "from",
        &Of {
            form: Amount(Dimension::TIME, Range::NonNegative),
            get: |pin| pin.from,
            set: |pin, from| pin.from = Some(from),
        },
        "The time from which the vertices are held. Before it they are free; then they go to where \
         the pin would have had them, at no more than 1 m/s.",
    )
    .unset("the start"),
    Key::new(
        "until",
        &Of {
            form: Amount(Dimension::TIME, Range::Positive),
            get: |pin| pin.until,
            set: |pin, until| pin.until = Some(until),
        },
        "The time at which the vertices are let go. They keep the velocity that they have then.",
    )
    .unset("they never are"),
];

/// Reads a pin, in steps of `step` seconds, of a cloth that has a file or has none.
pub(super) fn pin(table: &Table<'_>, step: f64, has_file: bool) -> Pin {
    let said = read_keys(table, KEYS, PinKeys::default());
    if said.group.is_some() && !has_file {
        table.note("group", "groups are of cloths with a file (`mesh`)");
    }
    let held = held(table, &said);
    let slide = match (said.rail, said.plane) {
        (None, None) => Slide::Nowhere,
        (Some(direction), None) => Slide::Rail(direction),
        (None, Some(normal)) => Slide::Plane(normal),
        (Some(_), Some(_)) => {
            table.note(
                "plane",
                "a pin slides along a `rail` or in a `plane`, not both",
            );
            Slide::Nowhere
        }
    };
    let mut motion = motion_of(table, "pin", said.velocity, held.middle(), step);
    if let (Held::Group(_) | Held::Vertices(_) | Held::Near { .. }, Some(motion)) =
        (&held, &mut motion)
        && motion.center.is_nan()
    {
        if motion.turns() {
            let message =
                "wants a `center`: nothing else says about which point these vertices turn";
            table.note("motion", message);
        }
        motion.center = DVec3::ZERO;
    }
    let first = motion.as_ref().and_then(|motion| motion.keyframes.first());
    if first.is_some_and(Keyframe::is_away) {
        table.note(
            "motion",
            "the first keyframe of a pin is where the cloth starts: it takes neither translation nor \
             rotation nor turn",
        );
    }
    let has_own = said.velocity.is_some() || motion.is_some();
    let near = match &held {
        Held::Near { body, .. } => Some(body.clone()),
        _ => None,
    };
    if near.is_some() && (has_own || said.follow.is_some()) {
        table.note(
            "near",
            "vertices near a body follow that body: leave out `velocity`, `motion` and `follow`",
        );
    } else if said.follow.is_some() && has_own {
        table.note(
            "follow",
            "a pin has one of `velocity`, `motion` and `follow`; a body that it follows has its own",
        );
    }
    if said
        .until
        .is_some_and(|until| until <= said.from.unwrap_or(0.0))
    {
        table.note(
            "until",
            "is not later than `from`; a pin holds vertices from the one time to the other",
        );
    }
    Pin {
        held,
        slide,
        velocity: said.velocity.unwrap_or(DVec3::ZERO),
        motion,
        follow: near.or(said.follow).filter(|_| !has_own),
        from: said.from,
        until: said.until,
    }
}

/// Gives pins that follow bodies the motion of these. An error is a sentence about a pin that
/// follows none.
pub(super) fn follow(cloth: &mut Cloth, bodies: &[Body]) -> Result<(), String> {
    for (index, pin) in cloth.pins.iter_mut().enumerate() {
        let Some(name) = &pin.follow else {
            continue;
        };
        let Some(body) = bodies.iter().find(|body| body.name == *name) else {
            let hint = did_you_mean(nearest(name, bodies.iter().map(|body| body.name.as_str())));
            let key = match pin.held {
                Held::Near { .. } => "near.body",
                _ => "follow",
            };
            return Err(format!(
                "pin {index} of cloth `{}` has {key} = \"{}\", and no body has that name{hint}",
                cloth.name,
                Short(name)
            ));
        };
        pin.velocity = body.velocity;
        pin.motion.clone_from(&body.motion);
    }
    Ok(())
}

fn held(table: &Table<'_>, said: &PinKeys) -> Held {
    match (
        said.nearest,
        said.min,
        said.max,
        &said.group,
        &said.vertices,
        &said.near,
    ) {
        (Some(nearest), None, None, None, None, None) => Held::Nearest(nearest),
        (None, None, None, Some(group), None, None) => Held::Group(group.clone()),
        (None, None, None, None, Some(vertices), None) => Held::Vertices(vertices.clone()),
        (None, None, None, None, None, Some(near)) => Held::Near {
            body: near.body.clone(),
            within: near.within,
        },
        (None, Some(min), Some(max), None, None, None) => {
            if min.cmpgt(max).any() {
                table.note("min", "must not be greater than `max` along any axis");
            }
            Held::Box { min, max }
        }
        _ => {
            let message = "wants one of `nearest = [x, y, z]`, both `min` and `max`, `group = \"NAME\"`, `vertices = [0, 1]`, and \
                           `near = { body = \"NAME\", within = \"5 mm\" }`";
            table.note("", message);
            Held::Nearest(DVec3::NAN)
        }
    }
}

/// Pins as a list, one in a line.
pub(super) fn write_pins(pins: &[Pin]) -> Option<Written> {
    if pins.is_empty() {
        return None;
    }
    let lines: String = pins
        .iter()
        .map(|pin| {
            let line = write_inline(KEYS, &PinKeys::from(pin));
            // The lines of a motion are below that of their pin.
            format!("    {},\n", line.replace('\n', "\n    "))
        })
        .collect();
    Some(Written {
        text: format!("[\n{lines}]"),
        unit: Dimension::LENGTH.si(),
    })
}

impl From<&Pin> for PinKeys {
    fn from(pin: &Pin) -> Self {
        let mut said = Self::default();
        match &pin.held {
            Held::Nearest(point) => said.nearest = Some(*point),
            Held::Box { min, max } => (said.min, said.max) = (Some(*min), Some(*max)),
            Held::Group(name) => said.group = Some(name.clone()),
            Held::Vertices(vertices) => said.vertices = Some(vertices.clone()),
            Held::Near { body, within } => {
                said.near = Some(Near {
                    body: body.clone(),
                    within: *within,
                });
            }
        }
        let (rail, plane) = match pin.slide {
            Slide::Nowhere => (None, None),
            Slide::Rail(direction) => (Some(direction), None),
            Slide::Plane(normal) => (None, Some(normal)),
        };
        // The motion that a body gives it is written at the body.
        let own = pin.follow.is_none();
        let moves = own && pin.motion.is_none() && pin.velocity != DVec3::ZERO;
        Self {
            rail,
            plane,
            velocity: moves.then_some(pin.velocity),
            motion: pin.motion.clone().filter(|_| own),
            follow: pin.follow.clone().filter(|_| said.near.is_none()),
            from: pin.from,
            until: pin.until,
            ..said
        }
    }
}
