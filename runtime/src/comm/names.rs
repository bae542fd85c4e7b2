//! Ranks, for people.

use super::Rank;

/// The most runs of ranks that are named.
const MOST_RUNS: usize = 4;

/// Names ranks in a few words, as in `ranks 0, 2 to 4 and 17 more`; they are given in ascending
/// order.
#[must_use]
pub fn name_ranks(ranks: &[Rank]) -> String {
    let mut runs: Vec<String> = Vec::new();
    let mut named = 0;
    for run in ranks.chunk_by(|a, b| a.0.checked_add(1) == Some(b.0)) {
        let texts = match run {
            [] => continue,
            [first, _, .., last] => vec![format!("{} to {}", first.0, last.0)],
            // Two neighbours are no run for people.
            few => few.iter().map(|rank| rank.0.to_string()).collect(),
        };
        if runs.len() + texts.len() > MOST_RUNS {
            break;
        }
        runs.extend(texts);
        named += run.len();
    }
    if named < ranks.len() {
        runs.push(format!("{} more", ranks.len() - named));
    }
    let plural = if ranks.len() == 1 { "" } else { "s" };
    match &runs[..] {
        [] => "no ranks".to_owned(),
        [one] => format!("rank{plural} {one}"),
        [several @ .., last] => format!("rank{plural} {} and {last}", several.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_named_in_runs() {
        for (ranks, text) in [
            (&[][..], "no ranks"),
            (&[3], "rank 3"),
            (&[1, 2], "ranks 1 and 2"),
            (&[1, 2, 3], "ranks 1 to 3"),
            (&[0, 2, 3, 4, 9], "ranks 0, 2 to 4 and 9"),
            (&[0, 2, 4, 6, 8, 10, 11, 12], "ranks 0, 2, 4, 6 and 4 more"),
        ] {
            let ranks: Vec<Rank> = ranks.iter().copied().map(Rank).collect();
            assert_eq!(name_ranks(&ranks), text);
        }
    }
}
