//! Every other entry, the oldest among them: both sides get entries of every age, so both get large
//! trees where there are some, and half of the entries where all are alike.

use super::{Choice, Entries, SplitRule};

#[derive(Debug)]
pub(super) struct EveryOther;

impl SplitRule for EveryOther {
    fn name(&self) -> &'static str {
        "every-other"
    }

    fn about(&self) -> &'static str {
        "every other entry, the oldest among them"
    }

    fn choose(&self, _entries: &Entries<'_>) -> Choice {
        Choice::EveryOther
    }
}
