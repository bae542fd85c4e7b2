//! About half of the estimated work, for tasks that know what their entries weigh.
//!
//! From the oldest to the newest, each entry goes to the side that has less so far. The sides
//! differ by the weight of one entry at most. Where all weigh the same, that is every other entry.

use super::{Choice, Entries, SplitRule};

#[derive(Debug)]
pub(super) struct Weight;

impl SplitRule for Weight {
    fn name(&self) -> &'static str {
        "weight"
    }

    fn about(&self) -> &'static str {
        "entries that are about half of the estimated work"
    }

    fn choose(&self, entries: &Entries<'_>) -> Choice {
        // Weight and number of what is given and what is kept. Numbers decide where weights do not,
        // or entries that weigh nothing would all go to one side.
        let (mut given, mut kept) = ((0.0, 0_usize), (0.0, 0_usize));
        let marks = (0..entries.count()).map(|entry| {
            let goes = given <= kept;
            let side = if goes { &mut given } else { &mut kept };
            side.0 += entries.weight(entry);
            side.1 += 1;
            goes
        });
        Choice::Marked(marks.collect())
    }
}
