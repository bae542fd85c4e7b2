//! The memory that the processes of a run have had at most, and what the largest of them held.

use crate::format::bytes;
use crate::record::{MemoryPart, Rank, Record};

/// The number of parts that have a line of their own, at most.
const TOLD: usize = 10;

/// The largest parts of the memory of a rank, as counted at the end of the run.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LargestParts {
    /// The rank with the largest peak; of ranks that share a process, the one that holds most.
    pub(crate) rank: usize,
    /// Its parts with their bytes, the largest first. The world is part of it; what all others hold
    /// together is the last.
    pub(crate) parts: Vec<(String, u64)>,
    /// The bytes of all of them.
    pub(crate) all: u64,
}

impl LargestParts {
    /// The parts of a run; `None` if it does not tell them, as runs of earlier versions do not.
    pub(crate) fn of(record: &Record) -> Option<Self> {
        let sum = |parts: &[MemoryPart]| {
            let bytes = parts.iter().map(|part| part.bytes);
            bytes.fold(0u64, u64::saturating_add)
        };
        let size = |(_, rank): &(usize, &Rank)| (rank.peak_memory_bytes, sum(&rank.memory));
        let told = record.ranks.iter().enumerate();
        let told = told.filter(|(_, rank)| !rank.memory.is_empty());
        let (rank, own) = told.reduce(|most, next| {
            if size(&next) > size(&most) {
                next
            } else {
                most
            }
        })?;
        let world = record.world_memory.iter();
        let world = world.map(|part| (format!("world: {}", part.part), part.bytes));
        let own_parts = own
            .memory
            .iter()
            .map(|part| (part.part.clone(), part.bytes));
        let mut parts: Vec<(String, u64)> = world.chain(own_parts).collect();
        parts.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
        let all = sum(&record.world_memory).saturating_add(sum(&own.memory));
        if parts.len() > TOLD {
            let others = parts.split_off(TOLD - 1);
            let others = others.iter().map(|(_, bytes)| *bytes);
            parts.push(("all others".to_owned(), others.fold(0, u64::saturating_add)));
        }
        Some(Self { rank, parts, all })
    }

    /// The share of some bytes in all.
    pub(crate) fn share(&self, bytes: u64) -> f64 {
        bytes as f64 / self.all.max(1) as f64
    }

    /// The heading of a table of them.
    pub(crate) fn heading(&self) -> String {
        format!(
            "Memory that rank {} held at the end, as counted: {} with the world, which ranks of a process share",
            self.rank,
            bytes(self.all)
        )
    }
}

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

    fn part(part: &str, bytes: u64) -> MemoryPart {
        MemoryPart {
            part: part.to_owned(),
            bytes,
        }
    }

    #[test]
    fn the_parts_of_the_rank_with_the_largest_peak_are_told_largest_first() {
        let mut record = Record {
            ranks: ranks(&[Some(3), Some(5), Some(5)]),
            ..Record::default()
        };
        assert_eq!(LargestParts::of(&record), None);
        record.ranks[0].memory = vec![part("matrix", 900)];
        record.ranks[1].memory = vec![part("matrix", 10), part("state", 30)];
        record.ranks[2].memory = vec![part("matrix", 15), part("state", 20)];
        record.world_memory = vec![part("bodies", 20)];
        let of = LargestParts::of(&record).unwrap();
        let named = |(name, bytes): (&str, u64)| (name.to_owned(), bytes);
        let parts = [("state", 30), ("world: bodies", 20), ("matrix", 10)];
        assert_eq!((of.rank, of.all), (1, 60));
        assert_eq!(of.parts, parts.map(named));
        assert!((of.share(30) - 0.5).abs() < 1e-12);
        record.ranks[1].memory = (0..20).map(|size| part("x", size)).collect();
        let of = LargestParts::of(&record).unwrap();
        assert_eq!(of.parts.len(), TOLD);
        let told: u64 = of.parts.iter().map(|(_, bytes)| bytes).sum();
        assert_eq!(told, of.all);
        assert_eq!(of.parts[TOLD - 1].0, "all others");
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
