//! The keys of `[output]`.

use crate::scene::form::{Amount, Counts, Flag, OneOf, SomeOf, Vector, words};
use crate::scene::key::{Changes, Key, Section, Value};
use crate::scene::quantity::Dimension;
use crate::scene::reader::{Range, Table};
use crate::scene::{Colours, Format, Output, Pieces, Scene};

words!(Format, Colours, Pieces);

type Of<F> = Value<Output, F>;

/// A point of a picture's scene.
const POINT: Vector = Vector(Dimension::LENGTH, Range::Any);

impl Section for Output {
    const NAME: &'static str = "output";

    const KEYS: &'static [Key<Self>] = &[
        Key::new(
            "interval",
            &Of {
                form: Amount(Dimension::TIME, Range::Positive),
                get: |output| Some(output.interval),
                set: |output, interval| output.interval = interval,
            },
            "The time between frames.",
        )
        .changes(Changes::Output),
        Key::new(
            "frames",
            &Of {
                form: Flag,
                get: |output| Some(output.frames),
                set: |output, frames| output.frames = frames,
            },
            "Whether frames are written as `.vtp` files.",
        )
        .changes(Changes::Output),
        Key::new(
            "pieces",
            &Of {
                form: OneOf::<Pieces>::NEW,
                get: |output| Some(output.pieces),
                set: |output, pieces| output.pieces = pieces,
            },
            "The files of the cloth in a frame. `\"one\"`: rank 0 gathers and writes all of it. `\"rank\"`: each rank \
             writes [a piece](formats.md#frames-in-pieces), for cloth that is too large for one rank.",
        )
        .changes(Changes::Output)
        .idle(|scene| {
            (!scene.output.frames).then_some("it acts only with output.frames, which is false")
        }),
        Key::new(
            "formats",
            &Of {
                form: SomeOf::<Format>::NEW,
                get: |output| Some(output.formats.clone()),
                set: |output, formats| output.formats = formats,
            },
            "The formats that the frames have when the run ends, in `exports` of its directory: \
             [from garment to film](film.md). Frames are written as `.vtp` too, for the other formats are made from them.",
        )
        .changes(Changes::Output)
        .idle(|scene| {
            (!scene.output.frames).then_some("it acts only with output.frames, which is false")
        }),
        Key::new(
            "pictures",
            &Of {
                form: Flag,
                get: |output| Some(output.pictures),
                set: |output, pictures| output.pictures = pictures,
            },
            "Whether a picture of each frame is written.",
        )
        .changes(Changes::Output),
        Key::new(
            "checkpoints",
            &Of {
                form: Flag,
                get: |output| Some(output.checkpoints),
                set: |output, checkpoints| output.checkpoints = checkpoints,
            },
            "Whether checkpoints are written, from which a run can go on.",
        )
        .changes(Changes::Output),
        Key::new(
            "checkpoint_interval",
            &Of {
                form: Amount(Dimension::TIME, Range::NonNegative),
                get: |output| Some(output.checkpoint_interval),
                set: |output, interval| output.checkpoint_interval = interval,
            },
            "The wall time between checkpoints; with 0 there is one after each step.",
        )
        .changes(Changes::Output),
        Key::new(
            "size",
            &Of {
                form: Counts(16, 8192),
                get: |output| Some(output.picture_size.map(u64::from)),
                set: |output, size| {
                    output.picture_size = size.map(|side| u32::try_from(side).unwrap_or(u32::MAX));
                },
            },
            "The size of pictures in pixels.",
        )
        .changes(Changes::Output),
        Key::new(
            "camera",
            &Of {
                form: POINT,
                get: |output| output.camera,
                set: |output, camera| output.camera = Some(camera),
            },
            "The point from which pictures are taken.",
        )
        .unset("from the scene")
        .changes(Changes::Output),
        Key::new(
            "look_at",
            &Of {
                form: POINT,
                get: |output| output.look_at,
                set: |output, look_at| output.look_at = Some(look_at),
            },
            "The point in the middle of pictures.",
        )
        .unset("from the scene")
        .changes(Changes::Output),
        Key::new(
            "camera_follows",
            &Of {
                form: Flag,
                get: |output| Some(output.camera_follows),
                set: |output, follows| output.camera_follows = follows,
            },
            "Whether the camera of pictures and animations goes along with the mean of all cloth.",
        )
        .changes(Changes::Output)
        .idle(without_pictures),
        Key::new(
            "colours",
            &Of {
                form: OneOf::<Colours>::NEW,
                get: |output| Some(output.colours),
                set: |output, colours| output.colours = colours,
            },
            "The colours of cloth in pictures and animations. `\"plain\"`: all cloth has one. `\"cloths\"`: \
             each cloth has its own. `\"checker\"`: each has its own and a checker, whose cells are cubes in \
             the shape with which it starts, so that they show how it is stretched.",
        )
        .changes(Changes::Output)
        .idle(without_pictures),
    ];

    fn check(&self, table: &Table<'_>) {
        if self.camera.is_some() && self.camera == self.look_at {
            table.note(
                "look_at",
                "the camera cannot look at the point where it stands",
            );
        }
    }
}

/// The reason why keys of pictures do nothing, if so.
fn without_pictures(scene: &Scene) -> Option<&'static str> {
    let animated = scene.output.frames && scene.output.formats.contains(&Format::Apng);
    (!scene.output.pictures && !animated)
        .then_some("it acts only with output.pictures, or with \"apng\" among output.formats")
}
