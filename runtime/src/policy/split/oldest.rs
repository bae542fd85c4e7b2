//! The oldest entry: it is nearest to the root, so it stands for the largest tree [TB06 §4.2.2].

use super::{Choice, Entries, SplitRule};

#[derive(Debug)]
pub(super) struct Oldest;

impl SplitRule for Oldest {
    fn name(&self) -> &'static str {
        "oldest"
    }

    fn about(&self) -> &'static str {
        "the oldest entry, nearest to the root: the rule of the 2006 paper"
    }

    fn choose(&self, _entries: &Entries<'_>) -> Choice {
        Choice::Oldest(1)
    }
}
