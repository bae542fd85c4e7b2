//! A sentence on the memory that the processes of a run have had at most.

use crate::format::bytes;
use crate::record::Rank;

/// A sentence on the peaks of ranks that are processes of their own, or threads of one. `None` if
/// a rank does not tell its peak, as in runs of earlier versions.
pub(crate) fn memory(ranks: &[Rank], are_processes: bool) -> Option<String> {
    let peaks: Option<Vec<u64>> = ranks.iter().map(|rank| rank.peak_memory_bytes).collect();
    let peaks = peaks?;
    let (most, peak) = (peaks.iter().copied().enumerate())
        .reduce(|most, next| if next.1 > most.1 { next } else { most })?;
    if !are_processes || peaks.len() == 1 {
        return Some(format!(
            "Memory: the process took {} at its peak.",
            bytes(peak)
        ));
    }
    let all = peaks
        .iter()
        .fold(0u64, |sum, peak| sum.saturating_add(*peak));
    Some(format!(
        "Memory: the process of rank {most} took the most, {} at its peak; the peaks of all {} processes add up to {}.",
        bytes(peak),
        peaks.len(),
        bytes(all)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranks(peaks: &[Option<u64>]) -> Vec<Rank> {
        let rank = |&peak_memory_bytes: &Option<u64>| Rank {
            peak_memory_bytes,
            ..Rank::default()
        };
        peaks.iter().map(rank).collect()
    }

    #[test]
    fn the_largest_peak_is_told_and_the_sum_of_processes() {
        let of = ranks(&[Some(3_000_000), Some(5_000_000), Some(4_000_000)]);
        assert_eq!(
            memory(&of, true).unwrap(),
            "Memory: the process of rank 1 took the most, 5.0 MB at its peak; the peaks of all 3 \
             processes add up to 12.0 MB."
        );
        assert_eq!(
            memory(&of, false).unwrap(),
            "Memory: the process took 5.0 MB at its peak."
        );
        assert_eq!(memory(&ranks(&[Some(1), None]), true), None);
        assert_eq!(memory(&[], true), None);
    }
}
