//! Drawing ranks at random: a sequence that its seed determines, and the ranks that it draws from.

use std::ops::Range;

use crate::comm::Rank;

/// Random numbers, xorshift64*: a seed says it all.
#[derive(Clone, Debug)]
pub(super) struct Generator(u64);

impl Generator {
    /// The sequence of one rank.
    pub(super) fn new(seed: u64, me: Rank) -> Self {
        // SplitMix64 spreads neighbouring seeds and ranks; the state must not be zero.
        let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(u64::from(me.0) + 1));
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Self((z ^ (z >> 31)) | 1)
    }

    /// A number below `bound`.
    fn below(&mut self, bound: u32) -> u32 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let random = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32;
        ((random * u64::from(bound)) >> 32) as u32
    }
}

/// Ranks to draw from, as runs of numbers: a few of them say what thousands are.
#[derive(Clone, Debug, Default)]
pub(super) struct Crowd {
    /// The runs of ranks, ascending, none empty.
    runs: Vec<Range<u32>>,
}

impl Crowd {
    /// All ranks but this one.
    pub(super) fn all_but(me: Rank, ranks: u32) -> Self {
        let runs = [0..me.0, me.0 + 1..ranks];
        Self {
            runs: runs.into_iter().filter(|run| !run.is_empty()).collect(),
        }
    }

    /// Adds a rank above all that are in it.
    pub(super) fn push(&mut self, rank: Rank) {
        match self.runs.last_mut() {
            Some(run) if run.end == rank.0 => run.end += 1,
            _ => self.runs.push(rank.0..rank.0 + 1),
        }
    }

    pub(super) fn contains(&self, rank: Rank) -> bool {
        self.runs.iter().any(|run| run.contains(&rank.0))
    }

    /// One of them, if there are any; if not, the sequence stays where it is.
    pub(super) fn draw(&self, generator: &mut Generator) -> Option<Rank> {
        let all: u32 = self.runs.iter().map(|run| run.len() as u32).sum();
        if all == 0 {
            return None;
        }
        let mut place = generator.below(all);
        for run in &self.runs {
            let length = run.len() as u32;
            if place < length {
                return Some(Rank(run.start + place));
            }
            place -= length;
        }
        None
    }
}
