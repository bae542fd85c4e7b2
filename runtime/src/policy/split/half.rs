//! The older half of the entries: nearly all of the work where the oldest stand for whole trees,
//! and half of it where all are alike.

use super::{Choice, Entries, SplitRule};

#[derive(Debug)]
pub(super) struct Half;

impl SplitRule for Half {
    fn name(&self) -> &'static str {
        "half"
    }

    fn about(&self) -> &'static str {
        "the older half of the entries"
    }

    fn choose(&self, entries: &Entries<'_>) -> Choice {
        Choice::Oldest(entries.count() / 2)
    }
}
