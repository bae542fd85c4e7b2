//! Even shares of work that any rank can do for all.
//!
//! In: what each item costs, and a number of ranks. Out: a run of items for each rank, the same on every rank; empty for some
//! where there are fewer items than ranks.

use std::ops::Range;

/// Cuts items with these weights into so many runs of about equal weight: an item goes where its middle lies.
#[must_use]
pub fn even_shares(weights: &[u32], parts: usize) -> Vec<Range<usize>> {
    let total: u64 = weights.iter().map(|&weight| u64::from(weight)).sum();
    let (mut at, mut before) = (0, 0);
    let mut shares = Vec::with_capacity(parts);
    for part in 1..=parts {
        let from = at;
        while let Some(&weight) = weights.get(at) {
            let twice_middle = u128::from(2 * before + u64::from(weight));
            if part < parts && twice_middle * parts as u128 > 2 * u128::from(total) * part as u128 {
                break;
            }
            before += u64::from(weight);
            at += 1;
        }
        shares.push(from..at);
    }
    shares
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn items_go_where_their_middles_lie() {
        assert_eq!(even_shares(&[1, 1, 1, 1, 4], 2), [0..4, 4..5]);
        assert_eq!(even_shares(&[3, 3], 4), [0..1, 1..1, 1..2, 2..2]);
        assert_eq!(even_shares(&[], 3), [0..0, 0..0, 0..0]);
        assert_eq!(even_shares(&[0, 0], 2), [0..2, 2..2]);
    }

    proptest! {
        #[test]
        fn every_item_has_one_share_and_none_is_off_by_more_than_an_item(
            weights in prop::collection::vec(0_u32..100, 0..60), parts in 1_usize..20,
        ) {
            let shares = even_shares(&weights, parts);
            let total: u32 = weights.iter().sum();
            let most = weights.iter().copied().max().unwrap_or(0);
            let mut at = 0;
            prop_assert_eq!(shares.len(), parts);
            for share in shares {
                prop_assert_eq!(share.start, at);
                at = share.end;
                let sum: u32 = weights[share].iter().sum();
                let off = f64::from(sum) - f64::from(total) / parts as f64;
                prop_assert!(off.abs() <= f64::from(most), "{}", off);
            }
            prop_assert_eq!(at, weights.len());
        }
    }
}
