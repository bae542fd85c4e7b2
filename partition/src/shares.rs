//! Even shares of work that any rank can do for all.
//!
//! In: what each item costs, and a number of ranks. Out: a run of items for each rank, the same on
//! every rank; empty for some where there are fewer items than ranks. No other runs have a cheaper
//! costliest one: it is found by bisection, and whether runs that cost at most so much are enough
//! by filling one after the other [Pinar, Aykanat 2004, §3].
//!
//! * [Pinar, Aykanat 2004] Fast optimal load balancing algorithms for 1D partitioning.

use std::ops::Range;

/// Cuts items with these weights into this many runs, the heaviest of which is as light as can be.
#[must_use]
pub fn even_shares(weights: &[u32], parts: usize) -> Vec<Range<usize>> {
    let total: u64 = weights.iter().map(|&weight| u64::from(weight)).sum();
    let heaviest = u64::from(weights.iter().copied().max().unwrap_or(0));
    // Runs that are filled up to the average and an item more are enough.
    let mut least = total.div_ceil(parts.max(1) as u64).max(heaviest);
    let mut most = least + heaviest;
    while least < most {
        let middle = least.midpoint(most);
        if filled(weights, parts, middle)
            .last()
            .is_none_or(|last| last.end == weights.len())
        {
            most = middle;
        } else {
            least = middle + 1;
        }
    }
    filled(weights, parts, most).collect()
}

/// Runs that weigh no more than this, each as long as can be.
fn filled(weights: &[u32], parts: usize, most: u64) -> impl Iterator<Item = Range<usize>> {
    let mut at = 0;
    (0..parts).map(move |_| {
        let (from, mut sum) = (at, 0);
        while let Some(&weight) = weights.get(at) {
            sum += u64::from(weight);
            if sum > most {
                break;
            }
            at += 1;
        }
        from..at
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_heaviest_run_is_as_light_as_can_be() {
        assert_eq!(even_shares(&[1, 1, 1, 1, 4], 2), [0..4, 4..5]);
        assert_eq!(even_shares(&[3, 3], 4), [0..1, 1..2, 2..2, 2..2]);
        assert_eq!(even_shares(&[], 3), [0..0, 0..0, 0..0]);
        assert_eq!(even_shares(&[0, 0], 2), [0..2, 2..2]);
        assert_eq!(even_shares(&[3, 3, 2, 3, 3, 2], 3), [0..2, 2..4, 4..6]);
    }

    /// The weight of the heaviest run, by trying all ends of the last one.
    fn bottleneck(weights: &[u32], parts: usize) -> u32 {
        if parts == 1 {
            return weights.iter().sum();
        }
        let last_from = |at: usize| {
            let last: u32 = weights[at..].iter().sum();
            bottleneck(&weights[..at], parts - 1).max(last)
        };
        (0..=weights.len()).map(last_from).min().unwrap_or(0)
    }

    proptest! {
        #[test]
        fn every_item_has_one_share_and_no_cut_is_better(
            weights in prop::collection::vec(0_u32..100, 0..12), parts in 1_usize..5,
        ) {
            let shares = even_shares(&weights, parts);
            let mut at = 0;
            prop_assert_eq!(shares.len(), parts);
            let mut heaviest = 0;
            for share in shares {
                prop_assert_eq!(share.start, at);
                at = share.end;
                heaviest = heaviest.max(weights[share].iter().sum());
            }
            prop_assert_eq!(at, weights.len());
            prop_assert_eq!(heaviest, bottleneck(&weights, parts));
        }
    }
}
