//! Numbers and lists for people.

/// A number with its thousands apart: 12,345.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A share in percent, with a digit behind the point where it is small.
pub(crate) fn percent(share: f64) -> String {
    // No negative zero.
    let percent = 100.0 * share + 0.0;
    let digits = usize::from(percent.abs() < 9.95 && percent != 0.0);
    format!("{percent:.digits$} %")
}

/// A time in a unit that fits.
pub(crate) fn seconds(s: f64) -> String {
    let (scale, unit) = match s.abs() {
        s if s >= 1.0 => (1.0, "s"),
        s if s >= 1e-3 => (1e3, "ms"),
        s if s >= 1e-6 => (1e6, "µs"),
        s if s > 0.0 => (1e9, "ns"),
        _ => return "0 s".to_owned(),
    };
    let number = s * scale;
    let digits = if number >= 99.95 {
        0
    } else if number >= 9.995 {
        1
    } else {
        2
    };
    format!("{number:.digits$} {unit}")
}

/// The sum of counts of a file, which may be any numbers: one beyond all numbers is the largest.
pub(crate) fn total(counts: impl Iterator<Item = u64>) -> u64 {
    counts.fold(0, u64::saturating_add)
}

/// Bytes in a unit that fits.
pub(crate) fn bytes(number: u64) -> String {
    let units = [(1e9, "GB"), (1e6, "MB"), (1e3, "kB")];
    let found = units.into_iter().find(|(unit, _)| number as f64 >= *unit);
    match found {
        Some((unit, name)) => format!("{:.1} {name}", number as f64 / unit),
        None => format!("{number} bytes"),
    }
}

/// A number with the word for the things that it counts.
pub(crate) fn many(number: u64, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {what}{plural}", count(number))
}

/// The words with commas and `and`, as in "a", "a and b", "a, b and c".
pub(crate) fn list(words: &[String]) -> String {
    match words {
        [] => "none".to_owned(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_with_separators_and_units() {
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(count(999), "999");
        assert_eq!(
            (percent(0.5), percent(0.012)),
            ("50 %".into(), "1.2 %".into())
        );
        assert_eq!(percent(0.0), "0 %");
        assert_eq!(
            (seconds(0.0123), seconds(1.5)),
            ("12.3 ms".into(), "1.50 s".into())
        );
        assert_eq!(
            (seconds(0.0), seconds(2.5e-7)),
            ("0 s".into(), "250 ns".into())
        );
        assert_eq!(
            (bytes(12), bytes(2_500_000)),
            ("12 bytes".into(), "2.5 MB".into())
        );
        assert_eq!(list(&["a".into(), "b".into(), "c".into()]), "a, b and c");
        assert_eq!(
            (many(1, "rank"), many(2, "rank")),
            ("1 rank".into(), "2 ranks".into())
        );
    }
}
