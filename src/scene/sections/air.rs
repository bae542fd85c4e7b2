//! The keys of `[air]`.

use crate::physics::air::Air;
use crate::scene::Scene;
use crate::scene::form::{Amount, Vector};
use crate::scene::key::{Key, Section, Value};
use crate::scene::quantity::Dimension;
use crate::scene::reader::{Range, Table};

type Of<F> = Value<Air, F>;

impl Section for Air {
    const NAME: &'static str = "air";

    const KEYS: &'static [Key<Self>] = &[
        Key::new(
            "wind",
            &Of {
                form: Vector(Dimension::SPEED, Range::Any),
                get: |air| Some(air.wind),
                set: |air, wind| air.wind = wind,
            },
            "The velocity of the air, for cloths with drag.",
        )
        .idle(without_drag),
        Key::new(
            "density",
            &Of {
                form: Amount(Dimension::DENSITY, Range::NonNegative),
                get: |air| Some(air.density),
                set: |air, density| air.density = density,
            },
            "The density of the air, for cloths with drag.",
        )
        .idle(without_drag),
    ];

    fn check(&self, _: &Table<'_>) {}
}

/// The reason why the air does nothing, if so.
fn without_drag(scene: &Scene) -> Option<&'static str> {
    let mut cloths = scene.cloths.iter();
    let has_drag = cloths.any(|cloth| cloth.material.drag != [0.0; 2]);
    (!has_drag).then_some(
        "no cloth has drag: give a material drag_normal or drag_tangential, or leave it out",
    )
}
