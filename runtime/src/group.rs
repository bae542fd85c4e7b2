//! Thread groups, as handles for those who fork into them and join them.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use crate::scheduler::Ancestry;

/// A thread group: tasks whose results, of type `O`, are joined together.
///
/// *Collective* groups ([`Scope::group`](crate::Scope::group)) are made by every rank in the same
/// order, and joined by all in the same order; each rank gets the results of what it forked.
/// *Rooted* groups ([`Scope::rooted_group`](crate::Scope::rooted_group),
/// [`Context::group`](crate::Context::group)) belong to the rank that made them. Tasks of both run
/// anywhere. Results of a group that was dropped are dropped too; its tasks run all the same.
pub struct Group<O> {
    pub(crate) ancestry: Arc<Ancestry>,
    /// The scope whose body made it, by a number that no other scope of this process has; none for
    /// groups of tasks.
    pub(crate) scope: Option<u64>,
    output: PhantomData<fn() -> O>,
}

impl<O> Group<O> {
    pub(crate) fn new(ancestry: Arc<Ancestry>, scope: Option<u64>) -> Self {
        Self {
            ancestry,
            scope,
            output: PhantomData,
        }
    }
}

impl<O> Drop for Group<O> {
    fn drop(&mut self) {
        self.ancestry.abandon();
    }
}

impl<O> fmt::Debug for Group<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.ancestry)
    }
}
