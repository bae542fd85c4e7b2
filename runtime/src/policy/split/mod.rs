//! Split rules: which part of its work a running task gives away.
//!
//! A rule sees how many entries a stack of pending work has, the oldest first, and if it cares what
//! each weighs; it never sees the entries. That keeps it a value that fits every kind of task, and
//! the loop over the entries free of virtual calls.

mod every_other;
mod half;
mod never;
mod oldest;
mod weight;

use std::fmt;

use super::rule::value_of_a_rule;

/// A split rule as a value; two are equal if their names are.
#[derive(Clone, Copy)]
pub struct Split(pub &'static dyn SplitRule);

/// Split rules, and what they are called.
pub const SPLITS: &[Split] = &[
    Split::NEVER,
    Split::OLDEST,
    Split::EVERY_OTHER,
    Split::HALF,
    Split::WEIGHT,
];

/// A rule that chooses the part of a stack of pending work to give away.
pub trait SplitRule: Sync {
    /// Its name, in options and reports.
    fn name(&self) -> &'static str;

    /// A line about it.
    fn about(&self) -> &'static str;

    /// Chooses the entries to give away; there are at least two. Equal entries have equal choices.
    fn choose(&self, entries: &Entries<'_>) -> Choice;

    /// Whether it never gives anything, so that tasks need not be asked.
    fn gives_nothing(&self) -> bool {
        false
    }
}

/// A choice of entries of a stack to give away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// No entry.
    Nothing,
    /// This many of the oldest; one is kept in any case.
    Oldest(usize),
    /// The oldest, and every second after it.
    EveryOther,
    /// The marked ones, beginning with the oldest; entries beyond the marks are kept, and so is
    /// everything if all are marked.
    Marked(Vec<bool>),
}

/// A stack of pending work as a rule sees it; entry 0 is the oldest.
pub struct Entries<'a> {
    count: usize,
    weight: &'a dyn Fn(usize) -> f64,
}

impl Entries<'_> {
    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// The estimated work of an entry, in any unit; 0 where there is none. Never negative, never
    /// NaN.
    #[must_use]
    pub fn weight(&self, entry: usize) -> f64 {
        (self.weight)(entry).max(0.0)
    }
}

impl fmt::Debug for Entries<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries((0..self.count).map(|entry| self.weight(entry)))
            .finish()
    }
}

impl Split {
    /// No entry: tasks are never asked.
    pub const NEVER: Self = Self(&never::Never);
    /// The oldest entry, nearest to the root: the rule of [TB06 §4.2.2].
    pub const OLDEST: Self = Self(&oldest::Oldest);
    /// Every other entry: good on deep narrow trees as well as on shallow wide ones.
    pub const EVERY_OTHER: Self = Self(&every_other::EveryOther);
    /// The older half of the entries: good on deep narrow trees only.
    pub const HALF: Self = Self(&half::Half);
    /// Entries that are about half of the estimated work.
    pub const WEIGHT: Self = Self(&weight::Weight);

    /// Whether it never gives anything, so that tasks need not be asked.
    #[must_use]
    pub fn gives_nothing(self) -> bool {
        self.0.gives_nothing()
    }

    /// The tasks of a pool, the oldest first, that a thief gets. They are those that this rule
    /// gives of as many entries. If it gives none they are the older half, for whole tasks may be
    /// stolen also where none is split. The marks end with the last that goes.
    pub(crate) fn of_pool(self, count: usize) -> Vec<bool> {
        if count < 2 {
            return vec![true; count];
        }
        let half = count.div_ceil(2);
        match self.0.choose(&Entries {
            count,
            weight: &|_| 1.0,
        }) {
            Choice::Nothing | Choice::Oldest(0) => vec![true; half],
            Choice::Oldest(given) => vec![true; given.min(count - 1)],
            Choice::EveryOther => (0..count.next_multiple_of(2) - 1)
                .map(|entry| entry % 2 == 0)
                .collect(),
            Choice::Marked(mut marks) => {
                marks.truncate(count);
                match marks.iter().rposition(|&goes| goes) {
                    None => vec![true; half],
                    Some(last) => {
                        let all = last + 1 == count && !marks.contains(&false);
                        marks.truncate(last + usize::from(!all));
                        marks
                    }
                }
            }
        }
    }

    /// Takes out of a stack of pending work, oldest first, what this rule gives away; `None` if
    /// there are fewer than two entries, or it gives nothing. All entries weigh the same.
    pub fn take_from<T>(self, stack: &mut Vec<T>) -> Option<Vec<T>> {
        self.take_from_weighted(stack, |_| 1.0)
    }

    /// Takes out of a stack what this rule gives away, of entries whose work can be estimated in
    /// any unit.
    ///
    /// Neither what is given nor what is kept is ever empty, and both keep their order.
    pub fn take_from_weighted<T>(
        self,
        stack: &mut Vec<T>,
        weight: impl Fn(&T) -> f64,
    ) -> Option<Vec<T>> {
        let count = stack.len();
        if count < 2 {
            return None;
        }
        let choice = self.0.choose(&Entries {
            count,
            weight: &|entry| stack.get(entry).map_or(0.0, &weight),
        });
        match choice {
            Choice::Nothing | Choice::Oldest(0) => None,
            Choice::Oldest(given) => Some(stack.drain(..given.min(count - 1)).collect()),
            Choice::EveryOther => {
                let mut goes = false;
                Some(extract(stack, count.div_ceil(2), || {
                    goes = !goes;
                    goes
                }))
            }
            Choice::Marked(marks) => {
                let given = marks.iter().take(count).filter(|&&mark| mark).count();
                let mut marks = marks.into_iter();
                (given > 0 && given < count)
                    .then(|| extract(stack, given, || marks.next().unwrap_or(false)))
            }
        }
    }
}

/// Takes out the `given` entries for which `goes` says so, asked for each in turn.
fn extract<T>(stack: &mut Vec<T>, given: usize, mut goes: impl FnMut() -> bool) -> Vec<T> {
    let mut out = Vec::with_capacity(given);
    out.extend(stack.extract_if(.., |_| goes()));
    out
}

/// [`Split::EVERY_OTHER`].
impl Default for Split {
    fn default() -> Self {
        Self::EVERY_OTHER
    }
}

value_of_a_rule!(Split, SPLITS);

#[cfg(test)]
mod tests;
