//! Values that may change in time: one value, or keyframes, as a scene gives them.
//!
//! In: the value of a key, or a table with `keyframes`, in the form of those of a motion. Out: an
//! [`InTime`], whose times ascend. It is a function of time alone, so that a run which goes on from
//! a checkpoint needs no state of it.

use std::ops::{Add, Mul, Sub};

use serde_json::{Value as Json, json};

use super::Interpolation;
use super::form::{Bare, Flag, Form, OneOf, Written};
use super::quantity::{Dimension, Number};
use super::reader::{Range, Table};

/// A value that may change in time.
#[derive(Clone, Debug, PartialEq)]
pub struct InTime<T> {
    /// How it gets from one keyframe to the next.
    interpolation: Interpolation,
    /// Whether it begins again after the last keyframe, which then has the value of the first.
    repeat: bool,
    /// The time in s of the first keyframe, with its value.
    first: (f64, T),
    /// The times in s of the keyframes after it, ascending, with their values.
    later: Vec<(f64, T)>,
}

impl<T: Copy> InTime<T> {
    /// A value that does not change.
    #[must_use]
    pub const fn constant(value: T) -> Self {
        Self {
            interpolation: Interpolation::Linear,
            repeat: false,
            first: (0.0, value),
            later: Vec::new(),
        }
    }

    /// Whether it never changes.
    #[must_use]
    pub fn is_constant(&self) -> bool {
        self.later.is_empty()
    }

    /// Its keyframes: times in s, ascending, with their values.
    fn keyframes(&self) -> impl Iterator<Item = &(f64, T)> {
        std::iter::once(&self.first).chain(&self.later)
    }

    /// The times of its keyframes in s.
    pub fn times(&self) -> impl Iterator<Item = f64> {
        self.keyframes().map(|(time, _)| *time)
    }

    /// The values of its keyframes, between which it stays.
    pub fn values(&self) -> impl Iterator<Item = T> {
        self.keyframes().map(|(_, value)| *value)
    }
}

impl<T: Copy + Add<Output = T> + Sub<Output = T> + Mul<f64, Output = T>> InTime<T> {
    /// The value at a time in s: that of the first keyframe before it, that of the last one after.
    #[must_use]
    pub fn at(&self, time: f64) -> T {
        let first = self.first;
        let last = self.later.last().copied().unwrap_or(first);
        let time = if self.repeat && time > last.0 {
            // A remainder has no rounding.
            first.0 + (time - first.0) % (last.0 - first.0)
        } else {
            time
        };
        if time < first.0 {
            return first.1;
        }
        let next = self.later.partition_point(|(at, _)| *at <= time);
        let before = next.checked_sub(1).map(|before| self.later[before]);
        let (start, from) = before.unwrap_or(first);
        let Some(&(end, to)) = self.later.get(next) else {
            return from;
        };
        let share = (time - start) / (end - start);
        let share = match self.interpolation {
            Interpolation::Linear => share,
            Interpolation::Smooth => share * share * (3.0 - 2.0 * share),
        };
        from + (to - from) * share
    }
}

/// A value of a form, or a table with keyframes of such values.
pub(super) struct Changing<F>(pub(super) F);

const TIME: Bare = Bare(Dimension::TIME, Range::NonNegative);

impl<F: Form> Changing<F>
where
    F::Value: Copy + PartialEq,
{
    /// Reads a table with keyframes.
    pub(super) fn read_keyframes(&self, table: &Table<'_>) -> Option<InTime<F::Value>> {
        let interpolation = OneOf::<Interpolation>::NEW.read(table, "interpolation");
        let repeat = Flag.read(table, "repeat").unwrap_or(false);
        if !table.has("keyframes") {
            table.note_missing("keyframes", "keyframes = [{ time = 0, value = 1 }]");
        }
        let mut before: Option<f64> = None;
        let keyframes = table.tables("keyframes", MOST_KEYFRAMES, |_, table| {
            let (time, value) = (TIME.read(table, "time"), self.0.read(table, "value"));
            if time.is_none() {
                table.note_missing("time", "time = \"1 s\"");
            }
            if value.is_none() {
                table.note("value", "missing; a keyframe has a `time` and a `value`");
            }
            if let (Some(before), Some(time)) = (before, time)
                && time - before < SHORTEST
            {
                let message = format!(
                    "{} s is not later than the keyframe before, {} s; keyframes want ascending times",
                    Number(time),
                    Number(before)
                );
                table.note("time", message);
            }
            before = time.or(before);
            Some((time?, value?))
        });
        if table.has("keyframes") && keyframes.is_empty() {
            table.note("keyframes", "wants at least one keyframe");
        }
        let keyframes: Vec<_> = keyframes.into_iter().collect::<Option<_>>()?;
        let (first, later) = keyframes.split_first()?;
        let last = later.last().unwrap_or(first);
        if repeat && later.is_empty() {
            table.note("repeat", "one keyframe has nothing to repeat");
        } else if repeat && first.1 != last.1 {
            table.note(
                "repeat",
                "the last keyframe has another value than the first, and values do not jump; add a keyframe with that value",
            );
        }
        Some(InTime {
            interpolation: interpolation.unwrap_or(Interpolation::Linear),
            repeat,
            first: *first,
            later: later.to_vec(),
        })
    }
}

impl<F: Form> Form for Changing<F>
where
    F::Value: Copy + PartialEq,
{
    type Value = InTime<F::Value>;

    fn read(&self, table: &Table<'_>, key: &'static str) -> Option<Self::Value> {
        if table.is_table(key) {
            table.table(key, |table| self.read_keyframes(table))
        } else {
            self.0.read(table, key).map(InTime::constant)
        }
    }

    fn write(&self, value: &Self::Value) -> Written {
        let of_first = self.0.write(&value.first.1);
        if value.is_constant() {
            return of_first;
        }
        let keyframes: Vec<String> = (value.keyframes())
            .map(|(time, value)| {
                let Written { text, .. } = self.0.write(value);
                format!("{{ time = {time:?}, value = {text} }}")
            })
            .collect();
        Written {
            text: format!(
                "{{ interpolation = \"{}\", repeat = {}, keyframes = [{}] }}",
                value.interpolation.name(),
                value.repeat,
                keyframes.join(", ")
            ),
            unit: of_first.unit,
        }
    }

    fn describe(&self) -> String {
        format!("{}, or [keyframes](#values-in-time)", self.0.describe())
    }

    fn schema(&self) -> Json {
        let keyframe = json!({
            "type": "object",
            "additionalProperties": false,
            "properties": { "time": TIME.schema(), "value": self.0.schema() },
            "required": ["time", "value"],
        });
        let table = json!({
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "interpolation": OneOf::<Interpolation>::NEW.schema(),
                "repeat": Flag.schema(),
                "keyframes": { "type": "array", "minItems": 1, "items": keyframe },
            },
            "required": ["keyframes"],
        });
        json!({ "anyOf": [self.0.schema(), table] })
    }

    fn show(&self, value: &Self::Value) -> String {
        if value.is_constant() {
            self.0.show(&value.first.1)
        } else {
            format!("`{}`", self.write(value).text)
        }
    }
}

/// Keyframes of a value.
const MOST_KEYFRAMES: usize = 100_000;

/// Shortest time between keyframes in s.
const SHORTEST: f64 = 1e-9;

#[cfg(test)]
mod tests {
    use super::*;

    fn in_time(interpolation: Interpolation, repeat: bool, last: f64) -> InTime<f64> {
        InTime {
            interpolation,
            repeat,
            first: (1.0, 2.0),
            later: vec![(2.0, 6.0), (4.0, last)],
        }
    }

    #[test]
    fn values_go_from_keyframe_to_keyframe_and_are_held_before_and_after() {
        let linear = in_time(Interpolation::Linear, false, 0.0);
        for (time, known) in [(0.0, 2.0), (1.0, 2.0), (1.25, 3.0), (2.0, 6.0), (3.0, 3.0)] {
            assert_eq!(linear.at(time), known, "{time}");
        }
        assert_eq!((linear.at(4.0), linear.at(77.0)), (0.0, 0.0));
        let smooth = in_time(Interpolation::Smooth, false, 0.0);
        // s² (3 − 2s) is 5/32 at s = 1/4, and 1/2 in the middle.
        assert_eq!(smooth.at(1.25), 2.0 + 4.0 * 5.0 / 32.0);
        assert_eq!(smooth.at(3.0), 3.0);
    }

    #[test]
    fn values_that_repeat_begin_again_at_the_first_keyframe() {
        let again = in_time(Interpolation::Linear, true, 2.0);
        for time in [1.0, 1.5, 2.25, 3.75] {
            assert_eq!(again.at(time), again.at(time + 6.0), "{time}");
        }
        assert_eq!(again.at(0.5), 2.0);
        assert_eq!(InTime::constant(3.0).at(1e9), 3.0);
    }
}
