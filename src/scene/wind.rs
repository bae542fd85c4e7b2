//! The wind of a scene: a velocity that may change in time, or a table of velocities by place.
//!
//! In: the value of `air.wind`. Out: a [`WindInTime`], a function of time whose values are
//! functions of the place. Only the strength of a table changes in time, and its pattern stays.

use std::sync::Arc;

use glam::DVec3;
use serde_json::{Value as Json, json};

use super::InTime;
use super::form::{Amount, Form, Vector, Written, vector};
use super::in_time::Changing;
use super::quantity::{Dimension, Number};
use super::reader::{Range, Table};
use crate::physics::wind::{Wind, WindTable};

/// The velocity of the air by time, and by place if it has a table.
#[derive(Clone, Debug, PartialEq)]
pub enum WindInTime {
    /// This one in m/s everywhere.
    Uniform(InTime<DVec3>),
    /// The velocities of a table.
    Table {
        /// The velocities.
        table: Arc<WindTable>,
        /// The factor of all of them.
        strength: InTime<f64>,
    },
}

impl WindInTime {
    /// The velocity of the air at a time in s.
    #[must_use]
    pub fn at(&self, time: f64) -> Wind {
        match self {
            Self::Uniform(velocity) => Wind::Uniform(velocity.at(time)),
            Self::Table { table, strength } => Wind::Table {
                table: Arc::clone(table),
                strength: strength.at(time),
            },
        }
    }
}

/// A velocity, keyframes of one, or a table by place.
pub(super) struct ByPlace;

const UNIFORM: Changing<Vector> = Changing(Vector(Dimension::SPEED, Range::Any));
const STRENGTH: Changing<Amount> = Changing(Amount(Dimension::NUMBER, Range::Any));
const LINES: [&str; 3] = ["x", "y", "z"];

/// Points of a table.
const MOST_POINTS: usize = 1_000_000;

/// Shortest distance between lines in m.
const NEAREST: f64 = 1e-9;

impl ByPlace {
    fn read_table(table: &Table<'_>) -> Option<WindInTime> {
        let lines = LINES.map(|axis| {
            let lines = table.quantities(axis, Dimension::LENGTH, MOST_POINTS);
            let lines = lines.unwrap_or_default();
            if table.has(axis) && lines.is_empty() {
                table.note(axis, "wants at least one coordinate");
            }
            let descends = lines.windows(2).find(|pair| pair[1] - pair[0] < NEAREST);
            if let Some(&[before, after]) = descends {
                let message = format!(
                    "{} m is not farther along the axis than the one before, {} m; coordinates ascend",
                    Number(after),
                    Number(before)
                );
                table.note(axis, message);
            }
            lines
        });
        if lines.iter().all(Vec::is_empty) {
            table.note_missing("z", "z = [0, \"10 m\"]");
        }
        if !table.has("velocity") {
            table.note_missing("velocity", "velocity = [[0, 0, 0], [\"5 m/s\", 0, 0]]");
        }
        let strength = STRENGTH.read(table, "strength");
        let velocities = table.vectors("velocity", Dimension::SPEED, MOST_POINTS)?;
        let points = WindTable::points(&lines)?;
        if velocities.len() != points {
            let counts = lines.each_ref().map(|of_axis| of_axis.len().max(1));
            let [x, y, z] = counts;
            let message = format!(
                "has {} velocities, and there are {points} points, {x} by {y} by {z} along x, y and z; give one for each point, along x \
                 first, then along y",
                velocities.len()
            );
            table.note("velocity", message);
            return None;
        }
        Some(WindInTime::Table {
            table: Arc::new(WindTable { lines, velocities }),
            strength: strength.unwrap_or(InTime::constant(1.0)),
        })
    }
}

impl Form for ByPlace {
    type Value = WindInTime;

    fn read(&self, table: &Table<'_>, key: &'static str) -> Option<WindInTime> {
        if !table.is_table(key) {
            return UNIFORM.read(table, key).map(WindInTime::Uniform);
        }
        table.table(key, |table| {
            let is_by_place = ["x", "y", "z", "velocity", "strength"]
                .into_iter()
                .any(|key| table.has(key));
            if is_by_place {
                Self::read_table(table)
            } else {
                UNIFORM.read_keyframes(table).map(WindInTime::Uniform)
            }
        })
    }

    fn write(&self, value: &WindInTime) -> Written {
        let (table, strength) = match value {
            WindInTime::Uniform(velocity) => return UNIFORM.write(velocity),
            WindInTime::Table { table, strength } => (table, strength),
        };
        let mut said: Vec<String> = (LINES.iter().zip(&table.lines))
            .filter(|(_, lines)| !lines.is_empty())
            .map(|(axis, lines)| format!("{axis} = {lines:?}"))
            .collect();
        let velocities: Vec<String> = table.velocities.iter().map(|v| vector(*v)).collect();
        said.push(format!("velocity = [{}]", velocities.join(", ")));
        said.push(format!("strength = {}", STRENGTH.write(strength).text));
        Written {
            text: format!("{{ {} }}", said.join(", ")),
            unit: Dimension::SPEED.si(),
        }
    }

    fn describe(&self) -> String {
        format!(
            "{}, or a table [by place](#wind-by-height-and-place)",
            UNIFORM.describe()
        )
    }

    fn schema(&self) -> Json {
        let lines = json!({ "type": "array", "minItems": 1, "items": Amount(Dimension::LENGTH, Range::Any).schema() });
        let table = json!({
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "x": lines,
                "y": lines,
                "z": lines,
                "velocity": {
                    "type": "array",
                    "minItems": 1,
                    "items": Vector(Dimension::SPEED, Range::Any).schema(),
                },
                "strength": STRENGTH.schema(),
            },
            "required": ["velocity"],
        });
        json!({ "anyOf": [UNIFORM.schema(), table] })
    }

    fn show(&self, value: &WindInTime) -> String {
        match value {
            WindInTime::Uniform(velocity) => UNIFORM.show(velocity),
            WindInTime::Table { .. } => format!("`{}`", self.write(value).text),
        }
    }
}
