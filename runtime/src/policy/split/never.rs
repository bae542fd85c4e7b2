//! The rule that gives nothing away, which shows what stealing alone is worth.

use super::{Choice, Entries, SplitRule};

#[derive(Debug)]
pub(super) struct Never;

impl SplitRule for Never {
    fn name(&self) -> &'static str {
        "never"
    }

    fn about(&self) -> &'static str {
        "nothing: tasks are never split"
    }

    fn choose(&self, _entries: &Entries<'_>) -> Choice {
        Choice::Nothing
    }

    fn gives_nothing(&self) -> bool {
        true
    }
}
