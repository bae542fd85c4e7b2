//! The victim that had tasks the last time is likely to have more; else at random.

use super::random::Sequence;
use super::{Place, VictimRule, VictimState};
use crate::comm::Rank;

pub(super) struct Last;

impl VictimRule for Last {
    fn name(&self) -> &'static str {
        "last"
    }

    fn about(&self) -> &'static str {
        "the rank that had tasks the last time, then at random, one at a time"
    }

    fn start(&self, place: &Place<'_>) -> Box<dyn VictimState> {
        Box::new(Favourite {
            had_tasks: None,
            others: Sequence::new(place),
        })
    }
}

#[derive(Clone, Debug)]
struct Favourite {
    /// The rank that had tasks the last time, if it was not asked since.
    had_tasks: Option<Rank>,
    others: Sequence,
}

impl VictimState for Favourite {
    fn next(&mut self, open: &[Rank]) -> Option<Rank> {
        if !open.is_empty() {
            return None;
        }
        // Taken: one that does not answer in time is not asked twice.
        self.had_tasks.take().or_else(|| self.others.next(open))
    }

    fn answered(&mut self, from: Rank, with_tasks: bool) {
        if with_tasks {
            self.had_tasks = Some(from);
        } else if self.had_tasks == Some(from) {
            self.had_tasks = None;
        }
    }
}
