//! The keys of `[start]`.

use crate::scene::form::{OneOf, words};
use crate::scene::key::{Key, Section, Value};
use crate::scene::reader::Table;
use crate::scene::{Crossings, Scene, Start};

type Of<F> = Value<Start, F>;

words!(Crossings);

impl Section for Start {
    const NAME: &'static str = "start";

    const KEYS: &'static [Key<Self>] = &[Key::new(
        "crossings",
        &Of {
            form: OneOf::<Crossings>::NEW,
            get: |start| Some(start.crossings),
            set: |start, crossings| start.crossings = crossings,
        },
        "The treatment of cloth that starts through cloth. `\"refuse\"`: the scene is refused, and the crossing cloths are named. `\"keep\"`: it is listed, and [pulled \
         apart](understand/certification.md#starts-that-cross) in certified steps, which let \
         nothing else cross.",
    )
    .idle(uncertified)];

    fn check(&self, _: &Table<'_>) {}
}

/// The reason why these parameters do nothing, if so.
fn uncertified(scene: &Scene) -> Option<&'static str> {
    (!scene.contact.certify).then_some("contact.certify is off: turn it on, or leave this out")
}
