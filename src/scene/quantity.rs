//! Numbers with units: `"5 ms"` becomes `0.005` and is known to be a time.
//!
//! In: a text such as `"0.15 kg/m2"`. Out: its value in SI units and its [`Dimension`], the
//! exponents of metre, kilogram, second and radian. The reader compares that with what a key wants.
//!
//! A number may be a fraction: `"1/480 s"` is one division of two numbers that are exact.
//!
//! A unit is a product of factors separated by spaces, `*` or `·`; `/` divides by the one factor
//! after it (`"J/kg/K"`-style chains divide by each); exponents are `m2`, `m^2`, `m²`, `m-2`.
//! Conversions are one multiplication or division by an exact number, so that `"5 ms"` and `0.005`
//! are the same bits.

use std::f64::consts::PI;
use std::fmt;

use weft_io::Show as _;

use super::nearest::nearest;

/// Exponents of m, kg, s and rad.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Dimension {
    metre: i8,
    kilogram: i8,
    second: i8,
    radian: i8,
}

/// A number in SI units with its dimension.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Quantity {
    /// Value in SI units.
    pub(super) value: f64,
    /// The dimension that it measures.
    pub(super) dimension: Dimension,
}

impl Dimension {
    pub(super) const NUMBER: Self = Self::new(0, 0, 0, 0);
    pub(super) const LENGTH: Self = Self::new(1, 0, 0, 0);
    pub(super) const TIME: Self = Self::new(0, 0, 1, 0);
    pub(super) const ANGLE: Self = Self::new(0, 0, 0, 1);
    pub(super) const SPEED: Self = Self::new(1, 0, -1, 0);
    pub(super) const ACCELERATION: Self = Self::new(1, 0, -2, 0);
    pub(super) const AREA_DENSITY: Self = Self::new(-2, 1, 0, 0);
    /// Force per length, in N/m.
    pub(super) const STIFFNESS: Self = Self::new(0, 1, -2, 0);
    /// Bending rigidity of a shell, in N m.
    pub(super) const RIGIDITY: Self = Self::new(2, 1, -2, 0);
    pub(super) const RATE: Self = Self::new(0, 0, -1, 0);

    const MASS: Self = Self::new(0, 1, 0, 0);
    const AREA: Self = Self::new(2, 0, 0, 0);
    const FORCE: Self = Self::new(1, 1, -2, 0);
    pub(super) const PRESSURE: Self = Self::new(-1, 1, -2, 0);
    /// Mass per volume, in kg/m³.
    pub(super) const DENSITY: Self = Self::new(-3, 1, 0, 0);

    const fn new(metre: i8, kilogram: i8, second: i8, radian: i8) -> Self {
        Self {
            metre,
            kilogram,
            second,
            radian,
        }
    }

    /// The unit in which values of this dimension are kept, for messages and
    /// [`super::Scene::echo`].
    pub(super) fn si(self) -> &'static str {
        NAMES.iter().find(|n| n.0 == self).map_or("", |n| n.2)
    }

    /// A value with unit for messages, such as `5 ms`.
    pub(super) fn example(self) -> &'static str {
        NAMES.iter().find(|n| n.0 == self).map_or("1", |n| n.3)
    }

    /// `self * other^power`, or nothing if an exponent leaves its range.
    fn times(self, other: Self, power: i8) -> Option<Self> {
        let add = |a: i8, b: i8| a.checked_add(b.checked_mul(power)?);
        Some(Self::new(
            add(self.metre, other.metre)?,
            add(self.kilogram, other.kilogram)?,
            add(self.second, other.second)?,
            add(self.radian, other.radian)?,
        ))
    }
}

/// `a time`, `an area`, or `something in kg2/m` if it has no name.
impl fmt::Display for Dimension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(name) = NAMES.iter().find(|n| n.0 == *self) {
            return f.write_str(name.1);
        }
        f.write_str("something in")?;
        let powers = [
            ("kg", self.kilogram),
            ("m", self.metre),
            ("s", self.second),
            ("rad", self.radian),
        ];
        for (unit, power) in powers {
            match power {
                0 => {}
                1 => write!(f, " {unit}")?,
                _ => write!(f, " {unit}{power}")?,
            }
        }
        Ok(())
    }
}

impl Quantity {
    /// Reads `"<number> <unit>"`, where the number may be a fraction; without a unit it is a plain
    /// number.
    ///
    /// # Errors
    /// A sentence that says what is wrong, without naming the key.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let (number, unit) = split_number(text);
        let Ok(mut value) = number.parse::<f64>() else {
            return Err(format!("`{}` does not begin with a number", Short(text)));
        };
        let (divisor, unit) = split_divisor(unit).map_err(|divisor| {
            format!(
                "`{}` is divided by `{}`, which is no number above zero",
                Short(text),
                Short(divisor)
            )
        })?;
        let mut dimension = Dimension::NUMBER;
        // Numerator and denominator are kept apart: both are exact for all but angles.
        let (mut numerator, mut denominator) = (1.0, divisor);
        for (sign, factor) in factors(unit, text)? {
            let (symbol, power) = split_power(factor, text)?;
            if symbol == "1" && sign == 1 {
                continue;
            }
            let Some(unit) = UNITS.iter().find(|u| u.symbol == symbol) else {
                let hint = nearest(symbol, UNITS.iter().map(|u| u.symbol))
                    .map_or(String::new(), |near| format!(" (did you mean `{near}`?)"));
                return Err(format!(
                    "`{}` has an unknown unit `{}`{hint}",
                    Short(text),
                    Short(symbol)
                ));
            };
            let power = sign * power;
            for _ in 0..power.unsigned_abs() {
                if power > 0 {
                    numerator *= unit.numerator;
                    denominator *= unit.denominator;
                } else {
                    numerator *= unit.denominator;
                    denominator *= unit.numerator;
                }
            }
            dimension = dimension
                .times(unit.dimension, power)
                .ok_or_else(|| format!("`{}` has an exponent too large", Short(text)))?;
        }
        if numerator != 1.0 {
            value *= numerator;
        }
        if denominator != 1.0 {
            value /= denominator;
        }
        if !value.is_finite() {
            return Err(format!("`{}` is not a finite number", Short(text)));
        }
        Ok(Self { value, dimension })
    }
}

/// Text from outside, safe to show, cut to a length that fits a message.
pub(super) struct Short<'a>(pub(super) &'a str);

impl fmt::Display for Short<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.char_indices().nth(LONGEST_SHOWN) {
            Some((end, _)) => write!(f, "{}…", self.0[..end].shown()),
            None => write!(f, "{}", self.0.shown()),
        }
    }
}

/// A number as a person would write it: `0.15`, `1e300`.
pub(super) struct Number(pub(super) f64);

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0.0 || (1e-4..1e7).contains(&self.0.abs()) {
            write!(f, "{}", self.0)
        } else {
            write!(f, "{:e}", self.0)
        }
    }
}

struct Unit {
    symbol: &'static str,
    numerator: f64,
    denominator: f64,
    dimension: Dimension,
}

/// Divides a text into its leading number and the rest, both trimmed.
fn split_number(text: &str) -> (&str, &str) {
    let bytes = text.as_bytes();
    let mut end = 0;
    let mut digits = false;
    while let Some(&byte) = bytes.get(end) {
        let after_exponent = end > 0 && matches!(bytes[end - 1], b'e' | b'E');
        let taken = match byte {
            b'0'..=b'9' => {
                digits = true;
                true
            }
            b'.' => true,
            b'+' | b'-' => end == 0 || after_exponent,
            // An exponent only if a number follows: `1 eV` and `1e` are not numbers with one.
            b'e' | b'E' => {
                let rest = text[end + 1..].trim_start_matches(['+', '-']);
                digits && rest.starts_with(|c: char| c.is_ascii_digit())
            }
            _ => false,
        };
        if !taken {
            break;
        }
        end += 1;
    }
    if !digits {
        return ("", text);
    }
    (&text[..end], text[end..].trim())
}

/// Finds the number by which another one is divided if that is a fraction, else 1, and the text
/// after it. `/s` is a unit, `/480` makes a fraction.
///
/// # Errors
/// The text that is no number above zero. A sign belongs before the fraction.
fn split_divisor(rest: &str) -> Result<(f64, &str), &str> {
    let after = rest.strip_prefix('/').map(str::trim_start);
    let Some(after) =
        after.filter(|after| after.starts_with(|c: char| c.is_ascii_digit() || c == '.'))
    else {
        return Ok((1.0, rest));
    };
    let (number, unit) = split_number(after);
    match number.parse::<f64>() {
        Ok(divisor) if divisor.is_finite() && divisor > 0.0 => Ok((divisor, unit)),
        _ => Err(if number.is_empty() { after } else { number }),
    }
}

/// A time in s, as in `"5 ms"` or `"1/480 s"`; a number without a unit is one of `plain` s.
///
/// # Errors
/// A sentence that says what is wrong.
pub fn parse_time(text: &str, plain: f64) -> Result<f64, String> {
    let quantity = Quantity::parse(text)?;
    match quantity.dimension {
        Dimension::TIME => Ok(quantity.value),
        Dimension::NUMBER if !text.contains('%') => Ok(quantity.value * plain),
        other => Err(format!(
            "`{}` is {other}, and a time is wanted, such as \"{}\"",
            Short(text),
            Dimension::TIME.example()
        )),
    }
}

/// Divides a unit into factors with the sign of their exponent.
fn factors<'a>(unit: &'a str, text: &str) -> Result<Vec<(i8, &'a str)>, String> {
    let bad = || format!("`{}` has a malformed unit", Short(text));
    let mut factors = Vec::new();
    let mut sign = 1;
    let mut operator = true;
    let mut rest = unit;
    while let Some(first) = rest.chars().next() {
        if first == ' ' {
            rest = rest.trim_start();
            continue;
        }
        if matches!(first, '*' | '·' | '/') {
            // An operator needs a factor on its left, but for `/s`.
            if operator && !(factors.is_empty() && first == '/' && sign == 1) {
                return Err(bad());
            }
            sign = if first == '/' { -1 } else { 1 };
            operator = true;
            rest = &rest[first.len_utf8()..];
            continue;
        }
        let end = rest.find([' ', '*', '·', '/']).unwrap_or(rest.len());
        factors.push((sign, &rest[..end]));
        if factors.len() > MOST_FACTORS {
            return Err(bad());
        }
        sign = 1;
        operator = false;
        rest = &rest[end..];
    }
    if operator && !unit.is_empty() {
        Err(bad())
    } else {
        Ok(factors)
    }
}

/// Divides `m2`, `m^-2` or `m²` into symbol and exponent.
fn split_power<'a>(factor: &'a str, text: &str) -> Result<(&'a str, i8), String> {
    if factor == "1" {
        return Ok((factor, 1));
    }
    for (mark, power) in [("²", 2), ("³", 3)] {
        if let Some(symbol) = factor.strip_suffix(mark) {
            return Ok((symbol, power));
        }
    }
    let Some(start) = factor.find(|c: char| c.is_ascii_digit() || c == '-' || c == '^') else {
        return Ok((factor, 1));
    };
    let (symbol, power) = factor.split_at(start);
    match power.trim_start_matches('^').parse::<i8>() {
        // A number is no unit.
        _ if symbol.is_empty() => Err(format!("`{}` has a malformed unit", Short(text))),
        Ok(power) if (-9..=9).contains(&power) && power != 0 => Ok((symbol, power)),
        _ => Err(format!("`{}` has a malformed unit", Short(text))),
    }
}

/// Characters of a text shown in a message.
const LONGEST_SHOWN: usize = 60;

/// Factors in a unit; more is nonsense.
const MOST_FACTORS: usize = 8;

/// Dimension, its name with article, its SI unit, an example for messages.
const NAMES: &[(Dimension, &str, &str, &str)] = &[
    (Dimension::NUMBER, "a plain number", "", "0.5"),
    (Dimension::LENGTH, "a length", "m", "0.2 m"),
    (Dimension::TIME, "a time", "s", "5 ms"),
    (Dimension::ANGLE, "an angle", "rad", "30 deg"),
    (Dimension::SPEED, "a speed", "m/s", "0.5 m/s"),
    (
        Dimension::ACCELERATION,
        "an acceleration",
        "m/s2",
        "9.81 m/s2",
    ),
    (
        Dimension::AREA_DENSITY,
        "a mass per area",
        "kg/m2",
        "0.15 kg/m2",
    ),
    (
        Dimension::STIFFNESS,
        "a force per length",
        "N/m",
        "1000 N/m",
    ),
    (Dimension::RIGIDITY, "a bending rigidity", "N m", "1e-5 N m"),
    (Dimension::RATE, "a rate", "1/s", "0.1 1/s"),
    (Dimension::MASS, "a mass", "kg", "1 kg"),
    (Dimension::AREA, "an area", "m2", "1 m2"),
    (Dimension::FORCE, "a force", "N", "1 N"),
    (Dimension::PRESSURE, "a pressure", "Pa", "1 Pa"),
    (Dimension::DENSITY, "a mass per volume", "kg/m3", "1 kg/m3"),
];

const fn unit(symbol: &'static str, n: f64, d: f64, dimension: Dimension) -> Unit {
    Unit {
        symbol,
        numerator: n,
        denominator: d,
        dimension,
    }
}

const UNITS: &[Unit] = &[
    unit("m", 1.0, 1.0, Dimension::LENGTH),
    unit("dm", 1.0, 10.0, Dimension::LENGTH),
    unit("cm", 1.0, 100.0, Dimension::LENGTH),
    unit("mm", 1.0, 1e3, Dimension::LENGTH),
    unit("um", 1.0, 1e6, Dimension::LENGTH),
    unit("µm", 1.0, 1e6, Dimension::LENGTH),
    unit("km", 1e3, 1.0, Dimension::LENGTH),
    unit("s", 1.0, 1.0, Dimension::TIME),
    unit("ms", 1.0, 1e3, Dimension::TIME),
    unit("us", 1.0, 1e6, Dimension::TIME),
    unit("µs", 1.0, 1e6, Dimension::TIME),
    unit("ns", 1.0, 1e9, Dimension::TIME),
    unit("min", 60.0, 1.0, Dimension::TIME),
    unit("h", 3600.0, 1.0, Dimension::TIME),
    unit("Hz", 1.0, 1.0, Dimension::RATE),
    unit("kg", 1.0, 1.0, Dimension::MASS),
    unit("g", 1.0, 1e3, Dimension::MASS),
    unit("mg", 1.0, 1e6, Dimension::MASS),
    unit("N", 1.0, 1.0, Dimension::FORCE),
    unit("mN", 1.0, 1e3, Dimension::FORCE),
    unit("uN", 1.0, 1e6, Dimension::FORCE),
    unit("µN", 1.0, 1e6, Dimension::FORCE),
    unit("cN", 1.0, 100.0, Dimension::FORCE),
    unit("kN", 1e3, 1.0, Dimension::FORCE),
    unit("J", 1.0, 1.0, Dimension::RIGIDITY),
    unit("Pa", 1.0, 1.0, Dimension::PRESSURE),
    unit("kPa", 1e3, 1.0, Dimension::PRESSURE),
    unit("MPa", 1e6, 1.0, Dimension::PRESSURE),
    unit("rad", 1.0, 1.0, Dimension::ANGLE),
    unit("deg", PI, 180.0, Dimension::ANGLE),
    unit("°", PI, 180.0, Dimension::ANGLE),
    unit("%", 1.0, 100.0, Dimension::NUMBER),
];

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn reads(text: &str, value: f64, dimension: Dimension) {
        assert_eq!(
            Quantity::parse(text),
            Ok(Quantity { value, dimension }),
            "{text}"
        );
    }

    #[test]
    fn units_convert_to_the_same_bits_as_plain_si_numbers() {
        reads("5 ms", 0.005, Dimension::TIME);
        reads("5ms", 0.005, Dimension::TIME);
        reads("-2 cm", -0.02, Dimension::LENGTH);
        reads("7 um", 7e-6, Dimension::LENGTH);
        reads("0.15 kg/m2", 0.15, Dimension::AREA_DENSITY);
        reads("150 g/m^2", 0.15, Dimension::AREA_DENSITY);
        reads(
            "150 g m⁻²".replace("m⁻²", "m-2").as_str(),
            0.15,
            Dimension::AREA_DENSITY,
        );
        reads("1000 N/m", 1000.0, Dimension::STIFFNESS);
        reads("1e-5 N m", 1e-5, Dimension::RIGIDITY);
        reads("1e-5 N*m", 1e-5, Dimension::RIGIDITY);
        reads("9.81 m/s2", 9.81, Dimension::ACCELERATION);
        reads("9.81 m/s/s", 9.81, Dimension::ACCELERATION);
        reads("9.81 m/s²", 9.81, Dimension::ACCELERATION);
        reads("30 deg", 30.0 * PI / 180.0, Dimension::ANGLE);
        reads("0.1 1/s", 0.1, Dimension::RATE);
        reads("0.1 /s", 0.1, Dimension::RATE);
        reads("50 %", 0.5, Dimension::NUMBER);
        reads("3", 3.0, Dimension::NUMBER);
    }

    /// The nearest number to the fraction, in whatever unit: no step of the way there rounds.
    #[test]
    fn fractions_are_divided_once() {
        for text in [
            "1/480 s",
            "1/480s",
            "1 / 480 s",
            "1000/480 ms",
            "1e3/480 ms",
        ] {
            reads(text, 1.0 / 480.0, Dimension::TIME);
        }
        reads("1/60 min", 1.0, Dimension::TIME);
        reads("1/3 ms", 1.0 / 3000.0, Dimension::TIME);
        reads("-1/3 m", -1.0 / 3.0, Dimension::LENGTH);
        reads("2/3", 2.0 / 3.0, Dimension::NUMBER);
        reads("1/3 %", 1.0 / 300.0, Dimension::NUMBER);
        reads("1/3 1/s", 1.0 / 3.0, Dimension::RATE);
        reads("1/3 /s", 1.0 / 3.0, Dimension::RATE);
        reads("1/3 kg/m2", 1.0 / 3.0, Dimension::AREA_DENSITY);
        reads("1/2.5e1 s", 0.04, Dimension::TIME);
        reads("0.1 1/s", 0.1, Dimension::RATE);
        let error = |text| Quantity::parse(text).unwrap_err();
        let zero = "`1/0 s` is divided by `0`, which is no number above zero";
        assert_eq!(error("1/0 s"), zero);
        assert!(error("1/1e999 s").contains("is divided by `1e999`"));
        assert!(error("1/1.2.3 s").contains("is divided by `1.2.3`"));
        assert!(error("1/. s").contains("is divided by `. s`"));
        assert_eq!(error("1/-480 s"), "`1/-480 s` has a malformed unit");
        assert_eq!(error("1/2/3 s"), "`1/2/3 s` has a malformed unit");
        assert_eq!(error("1/ s/"), "`1/ s/` has a malformed unit");
    }

    #[test]
    fn times_of_the_command_line_have_units_or_are_plain() {
        assert_eq!(parse_time("1/480 s", 1.0), Ok(1.0 / 480.0));
        assert_eq!(parse_time("250ms", 1.0), Ok(0.25));
        assert_eq!(parse_time("0.5", 3600.0), Ok(1800.0));
        assert_eq!(parse_time("1/4", 3600.0), Ok(900.0));
        assert_eq!(parse_time("90 min", 3600.0), Ok(5400.0));
        assert_eq!(parse_time("1.5h", 3600.0), Ok(5400.0));
        let error = parse_time("2 kg", 1.0).unwrap_err();
        assert_eq!(
            error,
            "`2 kg` is a mass, and a time is wanted, such as \"5 ms\""
        );
        assert!(parse_time("50 %", 1.0).is_err() && parse_time("", 1.0).is_err());
    }

    #[test]
    fn control_characters_in_a_quantity_are_escaped_in_its_error() {
        let error = Quantity::parse("\u{1b}[2J\n\u{202e}").unwrap_err();
        assert_eq!(
            error,
            "`\\u{1b}[2J\\n\\u{202e}` does not begin with a number"
        );
        let error = Quantity::parse("5 \u{9b}x").unwrap_err();
        assert!(error.ends_with("unknown unit `\\u{9b}x`"), "{error}");
    }

    #[test]
    fn bad_quantities_are_refused_with_a_reason() {
        let error = |text| Quantity::parse(text).unwrap_err();
        assert_eq!(error("fast"), "`fast` does not begin with a number");
        assert_eq!(error(""), "`` does not begin with a number");
        assert_eq!(
            error("5 Paa"),
            "`5 Paa` has an unknown unit `Paa` (did you mean `Pa`?)"
        );
        assert_eq!(error("5 parsec"), "`5 parsec` has an unknown unit `parsec`");
        assert_eq!(error("5 kg//m"), "`5 kg//m` has a malformed unit");
        assert_eq!(error("5 m^99"), "`5 m^99` has a malformed unit");
        assert_eq!(error("1e999 m"), "`1e999 m` is not a finite number");
        assert_eq!(error("1.2.3 m"), "`1.2.3 m` does not begin with a number");
        assert_eq!(error("inf"), "`inf` does not begin with a number");
    }

    #[test]
    fn dimensions_have_names() {
        assert_eq!(
            Quantity::parse("5 kg").unwrap().dimension.to_string(),
            "a mass"
        );
        assert_eq!(
            Quantity::parse("1 kg2/s").unwrap().dimension.to_string(),
            "something in kg2 s-1"
        );
    }

    proptest! {
        #[test]
        fn parsing_a_quantity_never_panics(text in "\\PC{0,24}") {
            let _ = Quantity::parse(&text);
        }

        #[test]
        fn malformed_units_never_panic(text in "[0-9eE.+-]{1,6}[ */·^²a-zµ°%0-9-]{0,12}") {
            let _ = Quantity::parse(&text);
        }
    }
}
