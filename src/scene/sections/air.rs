//! The keys of `[air]`.

use crate::scene::form::Amount;
use crate::scene::in_time::Changing;
use crate::scene::key::{Changes, Key, Section, Value};
use crate::scene::quantity::Dimension;
use crate::scene::reader::{Range, Table};
use crate::scene::wind::ByPlace;
use crate::scene::{AirInTime, Scene};

type Of<F> = Value<AirInTime, F>;

impl Section for AirInTime {
    const NAME: &'static str = "air";

    const KEYS: &'static [Key<Self>] = &[
        Key::new(
            "wind",
            &Of {
                form: ByPlace,
                get: |air| Some(air.wind.clone()),
                set: |air, wind| air.wind = wind,
            },
            "The velocity of the air, for cloths with drag.",
        )
        .changes(Changes::Onwards)
        .idle(without_drag),
        Key::new(
            "density",
            &Of {
                form: Changing(Amount(Dimension::DENSITY, Range::NonNegative)),
                get: |air| Some(air.density.clone()),
                set: |air, density| air.density = density,
            },
            "The density of the air, for cloths with drag.",
        )
        .changes(Changes::Onwards)
        .idle(without_drag),
    ];

    fn check(&self, _: &Table<'_>) {}
}

/// The reason why the air does nothing, if so.
fn without_drag(scene: &Scene) -> Option<&'static str> {
    let mut cloths = scene.cloths.iter();
    let has_drag = cloths.any(|cloth| cloth.material.has_drag());
    (!has_drag).then_some(
        "no cloth has drag: give a material drag_normal or drag_tangential, or leave it out",
    )
}
