//! A part of a top-level test that several ranks make together.

use serde::{Deserialize, Serialize};

/// A part of what the first tests below a top-level test lead to.
///
/// The top-level test is the interval from 0 to 2³², and the part is the interval from `from` to
/// `last`, both included. All ranks that have a part make the first tests alike and then keep those
/// that [belong](Self::has) to their part, so that no message is needed to divide a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    pub(crate) from: u32,
    pub(crate) last: u32,
    pub(crate) among: u32,
}

impl Part {
    /// The whole test.
    pub const WHOLE: Self = Self {
        from: 0,
        last: u32::MAX,
        among: 1,
    };

    /// The part from one place up to another, in units of 2⁻³² of the test, or `None` if that is
    /// empty; `among` is the number of ranks that have a part.
    pub(crate) fn between(from: u64, to: u64, among: usize) -> Option<Self> {
        (from < to).then(|| Self {
            from: from as u32,
            last: (to - 1) as u32,
            among: among as u32,
        })
    }

    /// Whether it is the whole test.
    #[must_use]
    pub fn is_whole(self) -> bool {
        self.from == 0 && self.last == u32::MAX
    }

    /// Whether it is the first part. The tests that all parts make alike are counted with it.
    #[must_use]
    pub fn is_first(self) -> bool {
        self.from == 0
    }

    /// The fraction of the test that it is.
    #[must_use]
    pub fn share(self) -> f64 {
        (f64::from(self.last) - f64::from(self.from) + 1.0) / 2.0_f64.powi(32)
    }

    /// Whether the test with this number belongs to the part. Tests that follow each other are
    /// alike, so that each part shall have its share of any sequence of them: multiples of the
    /// golden ratio fill a circle evenly.
    #[must_use]
    pub fn has(self, number: usize) -> bool {
        /// The golden ratio's inverse times 2³².
        const TURN: u32 = 0x9E37_79B9;
        let at = (number as u32).wrapping_mul(TURN);
        (self.from..=self.last).contains(&at)
    }

    /// Reduces a stack of untried tests to those that belong to the part.
    ///
    /// Before that `expand` replaces tests by what they lead to, until there are enough of them for
    /// every part to have about its fraction. `expand` pushes onto the stack that it is given; a
    /// test for which it returns `false` stays as it is.
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

/// The number of tests that are dealt out, for each rank that has a part.
const EACH: usize = 16;
/// The most generations of tests that are expanded.
const GENERATIONS: usize = 24;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// If parts cover a whole test, each test below it is reached by exactly one of them.
        #[test]
        fn each_test_of_a_part_is_dealt_out_once(
            boundaries in prop::collection::btree_set(1_u32..u32::MAX, 0..5),
            fan in 2_u64..5,
            leaves in 1_u64..5_000,
        ) {
            let cuts_in_all = boundaries.len() as u32 + 1;
            let from: Vec<u32> = std::iter::once(0).chain(boundaries).collect();
            let last = from[1..].iter().map(|next| next - 1).chain([u32::MAX]);
            let mut reached = vec![0; leaves as usize];
            // A test is a range of leaves here.
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
