//! The keys of `[time]`.

use crate::scene::form::Amount;
use crate::scene::key::{Changes, Key, Section, Value};
use crate::scene::load::MOST_STEPS;
use crate::scene::quantity::{Dimension, Number};
use crate::scene::reader::{Range, Table};
use crate::scene::{Scene, Time};

type Of<F> = Value<Time, F>;

impl Section for Time {
    const NAME: &'static str = "time";

    const KEYS: &'static [Key<Self>] = &[
        Key::new(
            "step",
            &Of {
                form: Amount(Dimension::TIME, Range::Positive),
                get: |time| Some(time.step),
                set: |time, step| time.step = step,
            },
            "The length of a step; `end / step` is at most 10⁹.",
        ),
        Key::new(
            "end",
            &Of {
                form: Amount(Dimension::TIME, Range::Positive),
                get: |time| Some(time.end),
                set: |time, end| time.end = end,
            },
            "The end of the run. A run ends with the first step that reaches it, and says so if that \
             is later.",
        )
        .changes(Changes::Output),
        Key::new(
            "shortest",
            &Of {
                form: Amount(Dimension::TIME, Range::Positive),
                get: |time| time.shortest,
                set: |time, shortest| time.shortest = Some(shortest),
            },
            "A step that fails is halved, and so are its halves, down to this, which is half a step \
             at most; [what fails](understand/time.md#steps-that-fail).",
        )
        .unset("none: the run ends")
        .changes(Changes::Exactness),
        Key::new(
            "strain_change",
            &Of {
                form: Amount(Dimension::NUMBER, Range::Positive),
                get: |time| Some(time.strain_change),
                set: |time, change| time.strain_change = change,
            },
            "The share of its length by which an edge may change in a part of a step, with `time.shortest`.",
        )
        .changes(Changes::Exactness)
        .idle(never_cut),
    ];

    fn check(&self, table: &Table<'_>) {
        let Self { step, end, .. } = *self;
        let (shown_step, shown_end) = (Number(step), Number(end));
        if step > end {
            let message =
                format!("a step of {shown_step} s is longer than `time.end`, {shown_end} s");
            table.note("step", message);
        } else if end / step > MOST_STEPS as f64 {
            let message = format!(
                "{shown_end} s in steps of {shown_step} s are {} steps; the most are {}",
                Number(end / step),
                Number(MOST_STEPS as f64)
            );
            table.note("step", message);
        }
        let Some(shortest) = self.shortest else {
            return;
        };
        if shortest > step {
            let message = format!(
                "parts of {} s are longer than the steps, {shown_step} s, that they are cut from",
                Number(shortest)
            );
            table.note("shortest", message);
        } else if shortest > 0.5 * step * (1.0 + ROUNDING) {
            let message = format!(
                "steps of {shown_step} s are halved, to {} s first, and parts of {} s are longer: \
                 nothing would be cut; give half a step or less",
                Number(0.5 * step),
                Number(shortest)
            );
            table.note("shortest", message);
        }
    }
}

/// The reason why a limit for parts of steps does nothing, if so.
fn never_cut(scene: &Scene) -> Option<&'static str> {
    scene
        .time
        .shortest
        .is_none()
        .then_some("steps are cut only with time.shortest: give it, or leave this out")
}

/// The share by which a shortest part may exceed the half of a step that it was meant to be.
const ROUNDING: f64 = 1e-9;
