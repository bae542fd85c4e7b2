//! The context of running tasks: what a task may ask of its rank, and what its worker keeps for it.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use crate::block::{BlockName, Bytes};
use crate::bound::{Bound, BoundValue, Bounds};
use crate::comm::Rank;
use crate::group::Group;
use crate::payload::TaskResult;
use crate::scheduler::{Ancestry, Membership};
use crate::sync::{AtomicBool, Ordering};
use crate::task::{Erased, Found, Task, TaskError};

/// The context in which a task runs: what it may ask of its rank.
pub struct Context<'a, E: ?Sized, O> {
    worker: &'a mut WorkerContext<E>,
    groups: &'a mut dyn GroupCalls<E>,
    membership: &'a Membership,
    blocks: &'a [(BlockName, Bytes)],
    output: PhantomData<fn(O)>,
}

impl<E: ?Sized, O> fmt::Debug for Context<'_, E, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.worker)
    }
}

/// A context before the type of the task's results is known.
pub(crate) type UntypedContext<'a, E> = Context<'a, E, ()>;

impl<'a, E: ?Sized> UntypedContext<'a, E> {
    /// Makes the context for one slice of a task with this membership and these blocks.
    pub(crate) fn new(
        worker: &'a mut WorkerContext<E>,
        groups: &'a mut dyn GroupCalls<E>,
        membership: &'a Membership,
        blocks: &'a [(BlockName, Bytes)],
    ) -> Self {
        Self {
            worker,
            groups,
            membership,
            blocks,
            output: PhantomData,
        }
    }

    /// Fixes the type of the task's results.
    pub(crate) fn typed<O>(self) -> Context<'a, E, O> {
        Context {
            worker: self.worker,
            groups: self.groups,
            membership: self.membership,
            blocks: self.blocks,
            output: PhantomData,
        }
    }

    /// Leaves an error in place of a result.
    pub(crate) fn fail(&mut self, error: TaskError) {
        self.worker.output.results.push(Err(Box::new(error)));
    }
}

/// The calls of a running task about groups: they go straight to its worker instead of being
/// buffered until the slice ends.
pub(crate) trait GroupCalls<E: ?Sized> {
    /// Makes a group for a task.
    fn group(&mut self, parent: &Membership) -> Arc<Ancestry>;
    /// Hands over what the task has left so far, and waits for a result of a group that it made;
    /// meanwhile the worker runs tasks of that group. Unwinds with [`Stopped`] if the scope cannot
    /// go on.
    fn next(
        &mut self,
        worker: &mut WorkerContext<E>,
        membership: &Membership,
        group: &Arc<Ancestry>,
    ) -> Option<TaskResult>;
    /// Cancels a group.
    fn cancel(&mut self, group: &Arc<Ancestry>);
}

/// The payload with which a task unwinds when its scope ends under it.
#[derive(Debug)]
pub(crate) struct Stopped;

/// A task that another has forked, into a group that it made or, if there is none, into its own.
pub(crate) type Forked<E> = (Option<Arc<Ancestry>>, Box<dyn Erased<E>>);

/// The context of a worker: what it knows of itself, and what the task that it runs has left so
/// far.
///
/// A worker whose task waits in a join needs another one for each task that it runs meanwhile.
pub(crate) struct WorkerContext<E: ?Sized> {
    pub(crate) rank: Rank,
    pub(crate) number: usize,
    pub(crate) budget: u32,
    /// Whether the rank would like running tasks to give something away.
    pub(crate) split_wanted: Arc<AtomicBool>,
    /// The shared bounds as this rank knows them.
    pub(crate) bounds: Arc<Bounds>,
    /// The kind of the task that runs, by its number in the registry.
    pub(crate) kind: u16,
    /// Units that the task has charged since a worker took it up.
    pub(crate) charged_in_all: u64,
    pub(crate) output: SliceOutput<E>,
}

/// The output of a slice of a task, which its rank picks up.
pub(crate) struct SliceOutput<E: ?Sized> {
    pub(crate) results: Vec<Found>,
    pub(crate) forked: Vec<Forked<E>>,
    pub(crate) posted: Vec<(Rank, Vec<u8>)>,
    /// A bit for each bound that it has improved.
    pub(crate) improved: u64,
    /// Units charged since the rank picked up the last output.
    pub(crate) charged: u64,
}

impl<E: ?Sized> Default for SliceOutput<E> {
    fn default() -> Self {
        Self {
            results: Vec::new(),
            forked: Vec::new(),
            posted: Vec::new(),
            improved: 0,
            charged: 0,
        }
    }
}

impl<E: ?Sized> SliceOutput<E> {
    /// Whether there is nothing to pick up but units charged.
    pub(crate) fn is_empty(&self) -> bool {
        self.results.is_empty()
            && self.forked.is_empty()
            && self.posted.is_empty()
            && self.improved == 0
    }
}

impl<E: ?Sized> fmt::Debug for WorkerContext<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "worker {} of rank {}", self.number, self.rank.0)
    }
}

impl<E: ?Sized> WorkerContext<E> {
    pub(crate) fn new(
        rank: Rank,
        number: usize,
        budget: u32,
        split_wanted: Arc<AtomicBool>,
        bounds: Arc<Bounds>,
    ) -> Self {
        Self {
            rank,
            number,
            budget,
            split_wanted,
            bounds,
            kind: 0,
            charged_in_all: 0,
            output: SliceOutput::default(),
        }
    }
}

impl<E: ?Sized, O: Send + 'static> Context<'_, E, O> {
    /// Returns a result while the task goes on.
    pub fn emit(&mut self, output: O) {
        self.worker.output.results.push(Ok(Box::new(output)));
    }

    /// Leaves a message for a rank, whichever rank is the home of this task: it is in that rank's
    /// [report](crate::ScopeReport::messages) when the scope has ended. Small ones travel together,
    /// while tasks run, and rarely need a message of their own.
    ///
    /// The scope ends with an error if there is no such rank.
    pub fn post(&mut self, to: Rank, bytes: Vec<u8>) {
        self.worker.output.posted.push((to, bytes));
    }

    /// Tells all ranks a value of a bound; returns whether it is better than what this rank knew.
    ///
    /// Tasks of this rank know it at once; others know it as soon as their ranks have heard of it,
    /// between two slices. This is news, which may come late, and no result: what nobody may miss
    /// is [emitted](Self::emit).
    ///
    /// # Panics
    /// If the bound is not [registered](crate::Registry::with_bound); its home gets an error.
    pub fn improve<V: BoundValue>(&mut self, bound: Bound<V>, value: V) -> bool {
        let place = self.place_of(bound);
        let better = self.worker.bounds.merge(place, bound.code(value));
        self.worker.output.improved |= u64::from(better) << place;
        better
    }

    /// The best value of a bound that this rank knows; `None` if it knows none. One relaxed load,
    /// and the search for the bound among those that are registered.
    ///
    /// # Panics
    /// If the bound is not [registered](crate::Registry::with_bound); its home gets an error.
    #[must_use]
    pub fn best<V: BoundValue>(&self, bound: Bound<V>) -> Option<V> {
        bound.value(self.worker.bounds.get(self.place_of(bound)))
    }

    fn place_of<V: BoundValue>(&self, bound: Bound<V>) -> u16 {
        let place = self.worker.bounds.place(bound.key());
        place.unwrap_or_else(|| {
            panic!("the bound {bound:?} is not registered; add `.with_bound(…)` to the registry")
        })
    }

    /// Puts a child into this task's own group, wherever it runs; results go to the same home.
    pub fn hyperfork<T: Task<E, Output = O>>(&mut self, task: T) {
        self.worker.output.forked.push((None, Box::new(task)));
    }

    /// Makes a group of this task's own, to be joined before the task returns.
    pub fn group<P: Send + 'static>(&mut self) -> Group<P> {
        Group::new(self.groups.group(self.membership), None)
    }

    /// Panics, which makes it an error of the task, unless this task made the group.
    fn must_own<P>(&self, group: &Group<P>, does: &str) {
        let own = self.membership.ancestry();
        let parent = group.ancestry.parent();
        assert!(
            parent.is_some_and(|parent| Arc::ptr_eq(parent, own)),
            "a task {does} a group that it did not make: make one with Context::group, or use hyperfork"
        );
    }

    /// Puts a task into a group that this task made.
    ///
    /// # Panics
    /// If it made no such group; its home gets an error.
    pub fn fork<T: Task<E>>(&mut self, group: &Group<T::Output>, task: T) {
        self.must_own(group, "forks into");
        let ancestry = Some(Arc::clone(&group.ancestry));
        self.worker.output.forked.push((ancestry, Box::new(task)));
    }

    /// The next result of a group that this task made; `None` when all its tasks have finished,
    /// wherever they ran, and all results were taken. While it waits, the worker runs tasks of that
    /// group and its descendants, and no others; the task itself stays where it is and cannot be
    /// split.
    ///
    /// Tasks that wait in joins are on the worker's stack, one on top of the other, and take some 2
    /// KiB each beside what they use themselves (in builds without optimisation several times as
    /// much): the 2 MiB of a thread are good for some 800 levels of groups, the 1 MiB of a virtual
    /// rank for 400.
    ///
    /// # Panics
    /// If this task made no such group; its home gets an error.
    pub fn join<P: Send + 'static>(&mut self, group: &Group<P>) -> Option<Result<P, TaskError>> {
        self.must_own(group, "joins");
        let result = (self.groups).next(self.worker, self.membership, &group.ancestry)?;
        Some(result.typed())
    }

    /// Cancels a group that this task made, with all its descendants.
    ///
    /// # Panics
    /// If it made no such group; its home gets an error.
    pub fn cancel<P>(&mut self, group: &Group<P>) {
        self.must_own(group, "cancels");
        self.groups.cancel(&group.ancestry);
    }

    /// Cancels this task's own group, on all ranks: no task of it that waits in a pool is run any
    /// more. This one goes on until it returns.
    pub fn cancel_own_group(&mut self) {
        self.groups.cancel(self.membership.ancestry());
    }

    /// Whether this task's group was cancelled: what it finds is not wanted any more, and it had
    /// better return. One relaxed load for each group that it descends from.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.membership.ancestry().is_cancelled()
    }

    /// A published block that this task [needs](Task::needs).
    ///
    /// # Panics
    /// If the task does not say that it needs it; its home gets an error.
    #[must_use]
    pub fn block(&self, name: &BlockName) -> Bytes {
        let mut blocks = self.blocks.iter();
        let found = blocks.find(|(other, _)| other == name);
        let (_, bytes) =
            found.unwrap_or_else(|| panic!("{name:?} is not among what this task needs"));
        bytes.clone()
    }

    /// Units of work after which to return [`Step::More`](crate::Step::More): what is
    /// [charged](Self::charge) counts, so a loop whose turns charge several units each is to take
    /// as many fewer turns.
    #[must_use]
    pub fn budget(&self) -> u32 {
        self.worker.budget
    }

    /// Reports units of work done: for statistics, and for the clock of virtual ranks.
    pub fn charge(&mut self, units: u64) {
        let worker = &mut *self.worker;
        worker.output.charged += units;
        worker.charged_in_all = worker.charged_in_all.saturating_add(units);
    }

    /// Whether the rank would like this task to return early so that it can be split: one relaxed
    /// load.
    #[must_use]
    pub fn split_wanted(&self) -> bool {
        self.worker.split_wanted.load(Ordering::Relaxed)
    }

    /// The rank this runs on.
    #[must_use]
    pub fn rank(&self) -> Rank {
        self.worker.rank
    }

    /// The worker of that rank.
    #[must_use]
    pub fn worker(&self) -> usize {
        self.worker.number
    }
}
