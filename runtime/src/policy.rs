//! Policies as values: what a split gives away, whom a thief asks, how often, how patiently.

use std::time::Duration;

/// What a running task gives away when it is asked to split.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Split {
    /// Nothing: tasks are never asked.
    Never,
    /// The oldest pending test, nearest to the root: the rule of [TB06 §4.2.2].
    Oldest,
    /// Every other pending test: good on deep narrow trees as well as on shallow wide ones.
    #[default]
    EveryOther,
    /// The older half of the pending tests: good on deep narrow trees only.
    Half,
}

impl Split {
    /// Takes out of a stack of pending work, oldest first, what this rule gives away; `None` if there are
    /// fewer than two entries, or it gives nothing.
    pub fn take_from<T>(self, stack: &mut Vec<T>) -> Option<Vec<T>> {
        if stack.len() < 2 {
            return None;
        }
        match self {
            Self::Never => None,
            Self::Oldest => Some(vec![stack.remove(0)]),
            Self::Half => {
                let kept = stack.split_off(stack.len() / 2);
                Some(std::mem::replace(stack, kept))
            }
            Self::EveryOther => {
                let mut given = Vec::with_capacity(stack.len().div_ceil(2));
                let mut index = 0;
                // The oldest is among those given.
                *stack = std::mem::take(stack)
                    .into_iter()
                    .filter_map(|entry| {
                        index += 1;
                        if index % 2 == 0 {
                            return Some(entry);
                        }
                        given.push(entry);
                        None
                    })
                    .collect();
                Some(given)
            }
        }
    }
}

/// How a rank shares its work; the same on every rank.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScopeOptions {
    /// Threads of this rank that run tasks, the one that talks to other ranks included; at least 1.
    pub workers: usize,
    /// Whether idle ranks ask others for tasks.
    pub steal: bool,
    /// What a split gives away.
    pub split: Split,
    /// Running tasks are asked to split while the pool holds fewer tasks than this, or than workers that
    /// have nothing to do;
    /// and, where workers are threads, after a thief was sent away.
    pub low_water: usize,
    /// Whether a running task is split at once for a thief that would otherwise get nothing, if it runs on
    /// the thread that answers. What the 2006 paper does is without this.
    pub split_on_request: bool,
    /// Least time between two splits on a rank. The 2006 paper has 10 ms; a steal takes microseconds.
    pub split_interval: Duration,
    /// Time after which an unanswered request is followed by one to another victim.
    pub steal_timeout: Duration,
    /// Seed of the choice of victims; each rank draws its own sequence from it.
    pub seed: u64,
    /// Units of work (see [`Context::charge`](crate::Context::charge)) after which a task is to return
    /// [`Step::More`](crate::Step::More), so that its rank can look after messages: some microseconds, if
    /// a unit is some tens of nanoseconds.
    pub slice: u32,
}

impl Default for ScopeOptions {
    fn default() -> Self {
        Self {
            workers: 1,
            steal: true,
            split: Split::EveryOther,
            low_water: 0,
            split_on_request: true,
            split_interval: Duration::from_micros(50),
            steal_timeout: Duration::from_millis(1),
            seed: 0,
            slice: 128,
        }
    }
}

/// A sequence of victims, drawn at random ([TB06 §4.2.3]); xorshift64*, so that a seed says it all.
#[derive(Clone, Debug)]
pub(crate) struct Victims {
    state: u64,
    me: u32,
    ranks: u32,
}

impl Victims {
    pub(crate) fn new(seed: u64, me: u32, ranks: u32) -> Self {
        // SplitMix64 spreads neighbouring seeds and ranks; the state must not be zero.
        let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(u64::from(me) + 1));
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Self {
            state: (z ^ (z >> 31)) | 1,
            me,
            ranks,
        }
    }

    /// Another rank; there must be one.
    pub(crate) fn draw(&mut self) -> u32 {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        let random = self.state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32;
        let other = ((random * u64::from(self.ranks - 1)) >> 32) as u32;
        if other < self.me { other } else { other + 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_rules_give_away() {
        let split = |rule: Split, n: u32| {
            let mut stack: Vec<u32> = (0..n).collect();
            let given = rule.take_from(&mut stack);
            (given, stack)
        };
        for rule in [Split::Never, Split::Oldest, Split::EveryOther, Split::Half] {
            assert_eq!(split(rule, 0), (None, vec![]));
            assert_eq!(split(rule, 1), (None, vec![0]));
        }
        assert_eq!(split(Split::Never, 5), (None, vec![0, 1, 2, 3, 4]));
        assert_eq!(split(Split::Oldest, 5), (Some(vec![0]), vec![1, 2, 3, 4]));
        assert_eq!(
            split(Split::EveryOther, 5),
            (Some(vec![0, 2, 4]), vec![1, 3])
        );
        assert_eq!(split(Split::Half, 5), (Some(vec![0, 1]), vec![2, 3, 4]));
    }

    #[test]
    fn victims_are_the_others_and_all_of_them() {
        for ranks in [2, 3, 8] {
            for me in 0..ranks {
                let mut victims = Victims::new(42, me, ranks);
                let mut seen = vec![0; ranks as usize];
                (0..1000).for_each(|_| seen[victims.draw() as usize] += 1);
                assert_eq!(seen[me as usize], 0);
                let fair = 1000 / (ranks - 1);
                let low = seen.iter().enumerate().filter(|&(r, _)| r as u32 != me);
                assert!(low.clone().all(|(_, &n)| n > fair / 2), "{seen:?}");
            }
        }
    }
}
