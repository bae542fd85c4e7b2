//! A share of a top-level test that several ranks make together.

use serde::{Deserialize, Serialize};

/// A share of what the first tests of a top-level test lead to: from one 2³²th up to and with another, among so many ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    pub(crate) from: u32,
    pub(crate) last: u32,
    pub(crate) among: u32,
}

impl Part {
    /// All.
    pub const WHOLE: Self = Self {
        from: 0,
        last: u32::MAX,
        among: 1,
    };

    /// From one place to before another, in 2³²ths, if that is anything; so many ranks have a part of the test.
    pub(crate) fn between(from: u64, to: u64, among: usize) -> Option<Self> {
        (from < to).then(|| Self {
            from: from as u32,
            last: (to - 1) as u32,
            among: among as u32,
        })
    }

    /// Whether it is all.
    #[must_use]
    pub fn is_whole(self) -> bool {
        self.from == 0 && self.last == u32::MAX
    }

    /// Whether it is the first: what all who have a part do counts as this one's.
    #[must_use]
    pub fn is_first(self) -> bool {
        self.from == 0
    }

    /// How much of the whole it is.
    #[must_use]
    pub fn share(self) -> f64 {
        (f64::from(self.last) - f64::from(self.from) + 1.0) / 2.0_f64.powi(32)
    }

    /// Whether the one of this number belongs to it. Of those that follow each other, which are alike, each share has its part: multiples of the
    /// golden ratio fill a circle evenly.
    #[must_use]
    pub fn has(self, number: usize) -> bool {
        /// 2³² over the golden ratio.
        const TURN: u32 = 0x9E37_79B9;
        let at = (number as u32).wrapping_mul(TURN);
        (self.from..=self.last).contains(&at)
    }

    /// Of a stack of untried tests, those that belong to it, once `expand` has replaced each by what it leads to often enough
    /// for a part to be about what it should be. `expand` puts that on the stack it is given; what it answers `false` to stays as it is.
    pub fn deal<T: Copy>(self, stack: &mut Vec<T>, mut expand: impl FnMut(T, &mut Vec<T>) -> bool) {
        if self.is_whole() {
            return;
        }
        let enough = EACH.saturating_mul(self.among as usize);
        let mut next = Vec::new();
        for _ in 0..GENERATIONS {
            if stack.len() >= enough {
                break;
            }
            next.clear();
            let mut grown = false;
            for &test in &*stack {
                if expand(test, &mut next) {
                    grown = true;
                } else {
                    next.push(test);
                }
            }
            std::mem::swap(stack, &mut next);
            if !grown {
                break;
            }
        }
        let mut number = 0;
        stack.retain(|_| {
            number += 1;
            self.has(number)
        });
    }
}

/// Tests among which shares are dealt out, for each rank that has one.
const EACH: usize = 16;
/// And how often they are sought at most.
const GENERATIONS: usize = 24;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Dealt out among parts that are all of it, every test that a tree leads to is reached by exactly one.
        #[test]
        fn what_is_dealt_out_is_dealt_once(
            boundaries in prop::collection::btree_set(1_u32..u32::MAX, 0..5),
            fan in 2_u64..5,
            leaves in 1_u64..5_000,
        ) {
            let cuts_in_all = boundaries.len() as u32 + 1;
            let from: Vec<u32> = std::iter::once(0).chain(boundaries).collect();
            let last = from[1..].iter().map(|next| next - 1).chain([u32::MAX]);
            let mut reached = vec![0; leaves as usize];
            // A test is a range of leaves.
            let split = |(begin, end): (u64, u64), stack: &mut Vec<(u64, u64)>| {
                let boundary = |k: u64| begin + (end - begin) * k / fan;
                let wide = end - begin > 1;
                if wide {
                    stack.extend((0..fan).map(|k| (boundary(k), boundary(k + 1))).filter(|(a, b)| a < b));
                }
                wide
            };
            for (&from, last) in from.iter().zip(last) {
                let mut stack = vec![(0, leaves)];
                let part = Part {
                    from,
                    last,
                    among: cuts_in_all,
                };
                part.deal(&mut stack, split);
                for (begin, end) in stack {
                    (begin..end).for_each(|leaf| reached[leaf as usize] += 1);
                }
            }
            prop_assert!(reached.iter().all(|&times| times == 1));
        }
    }

    #[test]
    fn a_part_has_about_its_share_of_anything_in_order() {
        for (from, last) in [(0, u32::MAX / 3), (u32::MAX / 3 + 1, u32::MAX)] {
            let part = Part {
                from,
                last,
                among: 2,
            };
            let share = f64::from(last - from) / 2.0_f64.powi(32);
            for stretch in [0..96, 40..90, 1000..1050] {
                let all = stretch.len() as f64;
                let has = stretch.filter(|&number| part.has(number)).count() as f64;
                assert!((has - share * all).abs() <= 2.0, "{has} of {all}");
            }
        }
    }
}
