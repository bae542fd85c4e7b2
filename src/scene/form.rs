//! Forms of values of keys: a quantity in a range, a count, a word out of several.
//!
//! Each [`Form`] reads a value, writes one that is read as the same bits, and tells the book what
//! it may be.

use std::marker::PhantomData;

use glam::DVec3;
use serde_json::{Value as Json, json};
use weft_io::Show as _;

use super::quantity::{Dimension, Number};
use super::reader::{Range, Table};

/// A value in TOML.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Written {
    /// The value.
    pub(super) text: String,
    /// Its unit for a remark beside it; empty if there is none, or if it stands in the value.
    pub(super) unit: &'static str,
}

/// A form that the value of a key may have.
pub(super) trait Form: Sync {
    /// The value in a program.
    type Value;

    /// Reads the value of a key, and notes what is wrong with it.
    fn read(&self, table: &Table<'_>, key: &'static str) -> Option<Self::Value>;

    /// Writes a value so that it is read as the same bits.
    fn write(&self, value: &Self::Value) -> Written;

    /// Says what the value may be, for the book.
    fn describe(&self) -> String;

    /// Says what the value may be, as a JSON schema.
    fn schema(&self) -> Json;

    /// A value for the book.
    fn show(&self, value: &Self::Value) -> String {
        format!("`{}`", self.write(value).text)
    }
}

/// A number with a unit.
pub(super) struct Amount(pub(super) Dimension, pub(super) Range);

/// A number with a unit, which is written without it.
pub(super) struct Bare(pub(super) Dimension, pub(super) Range);

/// Three numbers with a unit.
pub(super) struct Vector(pub(super) Dimension, pub(super) Range);

/// Two numbers with a unit, along warp and weft, or one that stands for both.
pub(super) struct AlongWarpAndWeft(pub(super) Dimension, pub(super) Range);

/// Two numbers with a unit, along x and y, or one that stands for both.
pub(super) struct AlongXAndY(pub(super) Dimension, pub(super) Range);

/// A whole number from the first to the second.
pub(super) struct Count(pub(super) u64, pub(super) u64);

/// Two whole numbers from the first to the second, or one that stands for both.
pub(super) struct Counts(pub(super) u64, pub(super) u64);

/// An array of whole numbers from the first to the second.
pub(super) struct Numbers(pub(super) u64, pub(super) u64);

/// `true` or `false`.
pub(super) struct Flag;

/// A text.
pub(super) struct Text;

/// A vector whose length does not matter; a unit vector is made of it.
pub(super) struct Direction {
    /// One to propose to someone who gave a vector without length.
    pub(super) example: &'static str,
}

/// A word out of several.
pub(super) struct OneOf<T>(PhantomData<fn() -> T>);

/// Some words out of several, each at most once.
pub(super) struct SomeOf<T>(PhantomData<fn() -> T>);

/// A whole number within bounds, or one word that stands for none of them.
pub(super) struct CountOr(pub(super) u64, pub(super) u64, pub(super) &'static str);

/// A number with a dimension, or one word that stands for an infinite one.
pub(super) struct AmountOr(
    pub(super) Dimension,
    pub(super) Range,
    pub(super) &'static str,
);

/// Values with names in scenes.
pub(super) trait Word: Copy + 'static {
    /// All values of the type.
    fn all() -> Vec<Self>;

    /// The name in scenes.
    fn name(self) -> &'static str;
}

/// Makes words of types that have a list `ALL` and a method `name`.
macro_rules! words {
    ($($name:ty),* $(,)?) => {
        $(impl crate::scene::form::Word for $name {
            fn all() -> Vec<Self> {
                Self::ALL.to_vec()
            }

            fn name(self) -> &'static str {
                self.name()
            }
        })*
    };
}
pub(super) use words;

impl<T> SomeOf<T> {
    /// The only value.
    pub(super) const NEW: Self = Self(PhantomData);
}

impl<T> OneOf<T> {
    /// The only value.
    pub(super) const NEW: Self = Self(PhantomData);
}

impl Form for Amount {
    type Value = f64;

    fn read(&self, table: &Table<'_>, key: &'static str) -> Option<f64> {
        table.quantity(key, self.0, self.1)
    }

    fn write(&self, value: &f64) -> Written {
        plain(with_unit(*value, self.0))
    }

    fn describe(&self) -> String {
        join(&[&measured(self.0), &self.1.describe()])
    }

    fn schema(&self) -> Json {
        quantity(self.1)
    }

    fn show(&self, value: &f64) -> String {
        handy(*value, self.0)
    }
}

impl Form for Bare {
    type Value = f64;

    fn read(&self, table: &Table<'_>, key: &'static str) -> Option<f64> {
        table.quantity(key, self.0, self.1)
    }

    fn write(&self, value: &f64) -> Written {
        Written {
            text: format!("{value:?}"),
            unit: self.0.si(),
        }
    }

    fn describe(&self) -> String {
        Amount(self.0, self.1).describe()
    }

    fn schema(&self) -> Json {
        quantity(self.1)
    }
}

impl Form for Vector {
    type Value = DVec3;

    fn read(&self, table: &Table<'_>, key: &'static str) -> Option<DVec3> {
        table.vector(key, self.0, self.1)
    }

    fn write(&self, value: &DVec3) -> Written {
        Written {
            text: vector(*value),
            unit: self.0.si(),
        }
    }

    fn describe(&self) -> String {
        let each = format!("an array of three, each {}", measured(self.0));
        join(&[&each, &self.1.describe()])
    }

    fn schema(&self) -> Json {
        array(&quantity(self.1), 3)
    }

    fn show(&self, value: &DVec3) -> String {
        if *value == DVec3::ZERO {
            return "0".to_owned();
        }
        let [x, y, z] = value.to_array().map(Number);
        let unit = match self.0.si() {
            "" => String::new(),
            unit => format!(" {unit}"),
        };
        format!("`[{x}, {y}, {z}]`{unit}")
    }
}

impl Form for AlongWarpAndWeft {
    type Value = [f64; 2];

    fn read(&self, table: &Table<'_>, key: &'static str) -> Option<[f64; 2]> {
        table.pair(key, self.0, self.1)
    }

    fn write(&self, &[warp, weft]: &[f64; 2]) -> Written {
        if warp == weft {
            plain(with_unit(warp, self.0))
        } else {
            AlongXAndY(self.0, self.1).write(&[warp, weft])
        }
    }

    fn describe(&self) -> String {
        let one = format!("{}, or `[warp, weft]`", measured(self.0));
        join(&[&one, &self.1.describe()])
    }

    fn schema(&self) -> Json {
        one_or_two(&quantity(self.1))
    }
}

impl Form for AlongXAndY {
    type Value = [f64; 2];

    fn read(&self, table: &Table<'_>, key: &'static str) -> Option<[f64; 2]> {
        table.pair(key, self.0, self.1)
    }

    fn write(&self, &[x, y]: &[f64; 2]) -> Written {
        plain(format!(
            "[{}, {}]",
            with_unit(x, self.0),
            with_unit(y, self.0)
        ))
    }

    fn describe(&self) -> String {
        let one = format!("{}, or `[x, y]`", measured(self.0));
        join(&[&one, &self.1.describe()])
    }

    fn schema(&self) -> Json {
        one_or_two(&quantity(self.1))
    }
}

impl Form for Count {
    type Value = u64;

    fn read(&self, table: &Table<'_>, key: &'static str) -> Option<u64> {
        table.count(key, self.0, self.1)
    }

    fn write(&self, value: &u64) -> Written {
        plain(value.to_string())
    }

    fn describe(&self) -> String {
        format!("a whole number {}", from_to(self.0, self.1))
    }

    fn schema(&self) -> Json {
        whole(self.0, self.1)
    }

    fn show(&self, value: &u64) -> String {
        value.to_string()
    }
}

impl Form for AmountOr {
    type Value = f64;

    fn read(&self, table: &Table<'_>, key: &'static str) -> Option<f64> {
        // A text is a number with a unit, or the word.
        if table.is_text(key) && table.text(key).is_some_and(|text| text == self.2) {
            Some(f64::INFINITY)
        } else {
            table.quantity(key, self.0, self.1)
        }
    }

    fn write(&self, value: &f64) -> Written {
        plain(if value.is_infinite() {
            format!("\"{}\"", self.2)
        } else {
            with_unit(*value, self.0)
        })
    }

    fn describe(&self) -> String {
        let number = join(&[&measured(self.0), &self.1.describe()]);
        format!("{number}, or `\"{}\"`", self.2)
    }

    fn schema(&self) -> Json {
        let word = json!({ "type": "string", "enum": [self.2] });
        json!({ "anyOf": [quantity(self.1), word] })
    }

    fn show(&self, value: &f64) -> String {
        if value.is_infinite() {
            format!("\"{}\"", self.2)
        } else {
            handy(*value, self.0)
        }
    }
}

impl Form for CountOr {
    /// `None` for the word.
    type Value = Option<u64>;

    fn read(&self, table: &Table<'_>, key: &'static str) -> Option<Option<u64>> {
        if table.is_text(key) {
            table.choice(key, &[(self.2, None)])
        } else {
            table.count(key, self.0, self.1).map(Some)
        }
    }

    fn write(&self, value: &Option<u64>) -> Written {
        plain(value.map_or_else(|| format!("\"{}\"", self.2), |value| value.to_string()))
    }

    fn describe(&self) -> String {
        format!(
            "a whole number {}, or `\"{}\"`",
            from_to(self.0, self.1),
            self.2
        )
    }

    fn schema(&self) -> Json {
        let word = json!({ "type": "string", "enum": [self.2] });
        json!({ "anyOf": [whole(self.0, self.1), word] })
    }
}

impl Form for Counts {
    type Value = [u64; 2];

    fn read(&self, table: &Table<'_>, key: &'static str) -> Option<[u64; 2]> {
        table.count_pair(key, self.0, self.1)
    }

    fn write(&self, value: &[u64; 2]) -> Written {
        plain(format!("{value:?}"))
    }

    fn describe(&self) -> String {
        format!("a whole number or `[x, y]`, {}", from_to(self.0, self.1))
    }

    fn schema(&self) -> Json {
        one_or_two(&whole(self.0, self.1))
    }
}

impl Form for Numbers {
    type Value = Vec<u64>;

    fn read(&self, table: &Table<'_>, key: &'static str) -> Option<Vec<u64>> {
        table.counts(key, self.0, self.1)
    }

    fn write(&self, value: &Vec<u64>) -> Written {
        plain(format!("{value:?}"))
    }

    fn describe(&self) -> String {
        format!("an array of whole numbers {}", from_to(self.0, self.1))
    }

    fn schema(&self) -> Json {
        json!({ "type": "array", "items": whole(self.0, self.1) })
    }
}

impl Form for Flag {
    type Value = bool;

    fn read(&self, table: &Table<'_>, key: &'static str) -> Option<bool> {
        table.boolean(key)
    }

    fn write(&self, value: &bool) -> Written {
        plain(value.to_string())
    }

    fn describe(&self) -> String {
        "`true` or `false`".to_owned()
    }

    fn schema(&self) -> Json {
        json!({ "type": "boolean" })
    }
}

impl Form for Text {
    type Value = String;

    fn read(&self, table: &Table<'_>, key: &'static str) -> Option<String> {
        table.text(key).map(str::to_owned)
    }

    fn write(&self, value: &String) -> Written {
        plain(quoted(value))
    }

    fn describe(&self) -> String {
        "a text".to_owned()
    }

    fn schema(&self) -> Json {
        json!({ "type": "string" })
    }
}

impl Form for Direction {
    type Value = DVec3;

    /// One that is a unit vector already keeps its bits.
    fn read(&self, table: &Table<'_>, key: &'static str) -> Option<DVec3> {
        let vector = table.vector(key, Dimension::NUMBER, Range::Any)?;
        let length = vector.length();
        if length < LEAST_LENGTH {
            let message = format!(
                "has no direction; it wants a vector such as {}",
                self.example
            );
            table.note(key, message);
        }
        Some(if (length - 1.0).abs() <= 4.0 * f64::EPSILON {
            vector
        } else {
            vector / length
        })
    }

    fn write(&self, value: &DVec3) -> Written {
        plain(vector(*value))
    }

    fn describe(&self) -> String {
        "a vector of any length".to_owned()
    }

    fn schema(&self) -> Json {
        array(&quantity(Range::Any), 3)
    }

    fn show(&self, value: &DVec3) -> String {
        let [x, y, z] = value.to_array().map(Number);
        format!("`[{x}, {y}, {z}]`")
    }
}

impl<T: Word> Form for OneOf<T> {
    type Value = T;

    fn read(&self, table: &Table<'_>, key: &'static str) -> Option<T> {
        let words: Vec<_> = T::all()
            .into_iter()
            .map(|word| (word.name(), word))
            .collect();
        table.choice(key, &words)
    }

    fn write(&self, value: &T) -> Written {
        plain(format!("\"{}\"", value.name()))
    }

    fn describe(&self) -> String {
        let names: Vec<_> = T::all()
            .into_iter()
            .map(|word| format!("`\"{}\"`", word.name()))
            .collect();
        names.join(", ")
    }

    fn schema(&self) -> Json {
        let names: Vec<_> = T::all().into_iter().map(Word::name).collect();
        json!({ "type": "string", "enum": names })
    }
}

impl<T: Word> Form for SomeOf<T> {
    type Value = Vec<T>;

    fn read(&self, table: &Table<'_>, key: &'static str) -> Option<Vec<T>> {
        let words: Vec<_> = T::all()
            .into_iter()
            .map(|word| (word.name(), word))
            .collect();
        table.choices(key, &words)
    }

    fn write(&self, value: &Vec<T>) -> Written {
        let names: Vec<_> = value
            .iter()
            .map(|word| format!("\"{}\"", word.name()))
            .collect();
        plain(format!("[{}]", names.join(", ")))
    }

    fn describe(&self) -> String {
        format!("an array of {}", OneOf::<T>::NEW.describe())
    }

    fn schema(&self) -> Json {
        let words = OneOf::<T>::NEW.schema();
        json!({ "type": "array", "items": words, "uniqueItems": true })
    }
}

/// A value that has its unit in it, or none.
pub(super) fn plain(text: String) -> Written {
    Written { text, unit: "" }
}

/// A number as a TOML text with its unit, or as a TOML number if it has none. `{:?}` writes the
/// shortest digits that are read as the same bits.
fn with_unit(value: f64, dimension: Dimension) -> String {
    match dimension.si() {
        "" => format!("{value:?}"),
        unit => format!("\"{value:?} {unit}\""),
    }
}

/// A vector as a TOML array.
pub(super) fn vector(v: DVec3) -> String {
    format!("[{:?}, {:?}, {:?}]", v.x, v.y, v.z)
}

/// A TOML text with its quotes. Characters that are not safe to show are written in ASCII with
/// TOML's own escapes, so that the text is read as it was.
pub(super) fn quoted(text: &str) -> String {
    if text.shown().to_string() == text {
        return toml::Value::from(text).to_string();
    }
    let letters = text.chars().map(|letter| match letter {
        '"' | '\\' => format!("\\{letter}"),
        ' '..='~' => letter.to_string(),
        _ => format!("\\U{:08X}", u32::from(letter)),
    });
    format!("\"{}\"", letters.collect::<String>())
}

/// A number for people, in milli or micro if that makes it at least one.
fn handy(value: f64, dimension: Dimension) -> String {
    let unit = dimension.si();
    let has_prefixes = [Dimension::LENGTH, Dimension::TIME].contains(&dimension);
    let factors = [("", 1.0), ("m", 1e3), ("µ", 1e6)];
    let found = factors
        .into_iter()
        .find(|(_, factor)| has_prefixes && value * factor >= 1.0 - 1e-9);
    let (prefix, factor) = found.unwrap_or(("", 1.0));
    // The rounding of the multiplication is not shown.
    let scaled = format!("{:.9e}", value * factor).parse().unwrap_or(value);
    match unit {
        "" => Number(scaled).to_string(),
        _ => format!("{} {prefix}{unit}", Number(scaled)),
    }
}

/// A dimension with the unit of numbers that are given without one, such as `a length in m`.
fn measured(dimension: Dimension) -> String {
    match dimension.si() {
        "" => dimension.to_string(),
        unit => format!("{dimension} in {unit}"),
    }
}

/// The range of whole numbers in words.
fn from_to(least: u64, most: u64) -> String {
    if most >= i64::MAX.unsigned_abs() {
        format!("from {least}")
    } else {
        format!("from {least} to {most}")
    }
}

/// Parts that are not empty, with commas.
fn join(parts: &[&str]) -> String {
    let parts: Vec<&str> = parts.iter().copied().filter(|p| !p.is_empty()).collect();
    parts.join(", ")
}

/// The schema of a number in a range, or of a text that begins with a number and goes on with a
/// unit.
fn quantity(range: Range) -> Json {
    let number = match range {
        Range::Any => json!({ "type": "number" }),
        Range::Positive => json!({ "type": "number", "exclusiveMinimum": 0 }),
        Range::NonNegative => json!({ "type": "number", "minimum": 0 }),
        Range::HalfOpen(low, high) => {
            json!({ "type": "number", "minimum": low, "exclusiveMaximum": high })
        }
    };
    json!({ "anyOf": [number, { "type": "string", "pattern": BEGINS_WITH_NUMBER }] })
}

/// The schema of a whole number.
fn whole(least: u64, most: u64) -> Json {
    json!({ "type": "integer", "minimum": least, "maximum": most.min(i64::MAX.unsigned_abs()) })
}

/// The schema of an array.
fn array(of: &Json, length: usize) -> Json {
    json!({ "type": "array", "items": of, "minItems": length, "maxItems": length })
}

/// The schema of two values, or of one that stands for both.
fn one_or_two(of: &Json) -> Json {
    json!({ "anyOf": [of, array(of, 2)] })
}

/// The beginning of a quantity in a text, as a regular expression.
const BEGINS_WITH_NUMBER: &str = r"^\s*[+-]?(\d+\.?\d*|\.\d+)";

/// Length of a vector that still has a direction.
const LEAST_LENGTH: f64 = 1e-9;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_shown_in_handy_units() {
        for (value, dimension, shown) in [
            (0.005, Dimension::TIME, "5 ms"),
            (50e-6, Dimension::TIME, "50 µs"),
            (600.0, Dimension::TIME, "600 s"),
            (0.0, Dimension::TIME, "0 s"),
            (0.05, Dimension::LENGTH, "50 mm"),
            (1.204, Dimension::DENSITY, "1.204 kg/m3"),
            (1e-4, Dimension::NUMBER, "0.0001"),
            (1e-6, Dimension::NUMBER, "1e-6"),
        ] {
            assert_eq!(handy(value, dimension), shown);
        }
    }
}
