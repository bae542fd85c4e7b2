//! The nearest right name, for "did you mean".

/// The candidate most like `name`, if one is alike enough to be a slip of the keyboard.
///
/// Case and `-` against `_` do not count. The first of equals wins.
pub(super) fn nearest<'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    if name.len() > LONGEST {
        return None;
    }
    let plain = |text: &str| text.to_lowercase().replace('-', "_");
    let name = plain(name);
    candidates
        .into_iter()
        .filter(|candidate| candidate.len() <= LONGEST)
        .map(|candidate| (strsim::osa_distance(&name, &plain(candidate)), candidate))
        .filter(|&(distance, candidate)| {
            let longer = name.chars().count().max(candidate.chars().count());
            distance * 2 < longer && distance <= MOST_EDITS
        })
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, candidate)| candidate)
}

/// Names longer than this are not compared: the distance takes time in proportion to the product.
const LONGEST: usize = 256;

/// Edits beyond which two names are not alike.
const MOST_EDITS: usize = 3;

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn slips_are_found_and_strangers_are_not() {
        let names = ["bending", "stretch", "density"];
        assert_eq!(nearest("bendng", names), Some("bending"));
        assert_eq!(nearest("Strecth", names), Some("stretch"));
        assert_eq!(nearest("colour", names), None);
        assert_eq!(nearest("s", ["m", "kg"]), None);
        assert_eq!(
            nearest("self-collision", ["self_collision"]),
            Some("self_collision")
        );
        assert_eq!(nearest(&"x".repeat(100_000), names), None);
    }
}
