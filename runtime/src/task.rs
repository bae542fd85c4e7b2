//! Tasks: what a user writes, and how the runtime handles kinds it does not know.
//!
//! A task is data. It runs in slices, in an environment that its rank provides and that it only reads;
//! what it leaves behind between slices is its own state, so that it can be split, and sent to a thief.

use std::any::{Any, TypeId};
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::block::{BlockError, BlockName, Bytes};
use crate::comm::Rank;
use crate::group::Group;
use crate::parcel::{Badge, Outcome};
use crate::policy::Split;
use crate::scheduler::{Ancestry, Ticket};
use crate::sync::{AtomicBool, Ordering};
use crate::trace::Detail;
use crate::wire;

/// What a task did in a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<O> {
    /// It has finished; this is its last result.
    Done(O),
    /// There is more to do.
    More,
}

/// A piece of work that can run on any rank; `E` is the environment it runs in.
pub trait Task<E: ?Sized>: Serialize + DeserializeOwned + Send + 'static {
    /// Its name in registries, errors and traces. No other kind in the same registry has it.
    const NAME: &'static str;
    /// Its results; a task may give several, see [`Context::emit`].
    type Output: Serialize + DeserializeOwned + Send + 'static;

    /// Works until it is done, or until it has charged about [`Context::budget`] units.
    fn run(&mut self, env: &E, cx: &mut Context<'_, E, Self::Output>) -> Step<Self::Output>;

    /// Gives part of its work away as another task; `None` if it has too little to share. `how` chooses among
    /// entries of a stack ([`Split::take_from`]); a task whose work is one range gives half of it whatever the
    /// rule.
    fn split(&mut self, how: Split) -> Option<Self> {
        let _ = how;
        None
    }

    /// Published blocks that must be here before it runs; it is blocked while others run. See
    /// [`Context::block`].
    fn needs(&self) -> Vec<BlockName> {
        Vec::new()
    }

    /// What a trace tells of it beside its name, when a worker takes it up. Only asked while one is recorded.
    fn detail(&self) -> Detail {
        Detail::default()
    }
}

/// What a running task may ask of its rank.
pub struct Context<'a, E: ?Sized, O> {
    desk: Desk<'a, E>,
    output: PhantomData<fn(O)>,
}

impl<E: ?Sized, O> fmt::Debug for Context<'_, E, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.desk.site)
    }
}

/// What a task finds on the worker it runs on.
pub(crate) struct Desk<'a, E: ?Sized> {
    pub(crate) site: &'a mut Site<E>,
    pub(crate) host: &'a mut dyn Host<E>,
    pub(crate) badge: &'a Badge,
}

/// What a worker does for the task that it runs.
pub(crate) trait Host<E: ?Sized> {
    /// Makes a group for a task.
    fn group(&mut self, parent: &Ticket) -> Arc<Ancestry>;
    /// Hands over what the task has left so far and waits for a result of a group of its own; meanwhile the
    /// worker runs tasks of that group. Unwinds with [`Stopped`] if the scope cannot go on.
    fn next(&mut self, site: &mut Site<E>, badge: &Badge, group: &Arc<Ancestry>)
    -> Option<Outcome>;
    /// Cancels a group.
    fn cancel(&mut self, group: &Arc<Ancestry>);
}

/// What tasks unwind with when their scope ends under them.
#[derive(Debug)]
pub(crate) struct Stopped;

/// A task whose type is not known, and the results of one.
pub(crate) trait Erased<E: ?Sized>: Send {
    /// Runs a slice; true when done.
    fn run(&mut self, env: &E, desk: Desk<'_, E>) -> bool;
    fn split(&mut self, how: Split) -> Option<Box<dyn Erased<E>>>;
    /// Its bytes, on that rank, if there are at most so many.
    fn encode(&self, rank: Rank, longest: usize) -> Result<Vec<u8>, TaskError>;
    fn needs(&self) -> Vec<BlockName>;
    fn detail(&self) -> Detail;
    fn type_of(&self) -> TypeId;
    fn name(&self) -> &'static str;
}

pub(crate) type Value = Box<dyn Any + Send>;

/// A result, or why there is none; small, as most are results.
pub(crate) type Found = Result<Value, Box<TaskError>>;

/// A task that another has forked, into a group that it made or, if there is none, into its own.
pub(crate) type Forked<E> = (Option<Arc<Ancestry>>, Box<dyn Erased<E>>);

/// What a slice leaves for the rank to pick up.
pub(crate) struct Site<E: ?Sized> {
    pub(crate) rank: Rank,
    pub(crate) worker: usize,
    pub(crate) budget: u32,
    pub(crate) charged: u64,
    pub(crate) results: Vec<Found>,
    pub(crate) forked: Vec<Forked<E>>,
    pub(crate) messages: Vec<(Rank, Vec<u8>)>,
    /// Raised while the rank would like running tasks to give something away.
    pub(crate) split_wanted: Arc<AtomicBool>,
}

impl<E: ?Sized> fmt::Debug for Site<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "worker {} of rank {}", self.worker, self.rank.0)
    }
}

impl<E: ?Sized> Site<E> {
    pub(crate) fn new(
        rank: Rank,
        worker: usize,
        budget: u32,
        split_wanted: Arc<AtomicBool>,
    ) -> Self {
        Self {
            rank,
            worker,
            budget,
            charged: 0,
            results: Vec::new(),
            forked: Vec::new(),
            messages: Vec::new(),
            split_wanted,
        }
    }
}

impl<E: ?Sized, O: Send + 'static> Context<'_, E, O> {
    /// Returns a result while the task goes on.
    pub fn emit(&mut self, output: O) {
        self.desk.site.results.push(Ok(Box::new(output)));
    }

    /// Leaves a message for a rank, whoever the home of this task is: it is in that rank's [report](crate::ScopeReport::messages) when the scope has ended.
    /// Small ones travel together, while tasks run, and rarely need a message of their own.
    ///
    /// The scope ends with an error if there is no such rank.
    pub fn post(&mut self, to: Rank, bytes: Vec<u8>) {
        self.desk.site.messages.push((to, bytes));
    }

    /// Puts a child into this task's own group, wherever it runs; results go to the same home.
    pub fn hyperfork<T: Task<E, Output = O>>(&mut self, task: T) {
        self.desk.site.forked.push((None, Box::new(task)));
    }

    /// Makes a group of this task's own, to be joined before the task returns.
    pub fn group<P: Send + 'static>(&mut self) -> Group<P> {
        Group::new(self.desk.host.group(&self.desk.badge.ticket), None)
    }

    /// Panics, which makes it an error of the task, unless this task made the group.
    fn must_own<P>(&self, group: &Group<P>, does: &str) {
        let own = self.desk.badge.ticket.ancestry();
        let parent = group.ancestry.parent();
        assert!(
            parent.is_some_and(|parent| Arc::ptr_eq(parent, own)),
            "a task {does} a group that it did not make: make one with Context::group, or use hyperfork"
        );
    }

    /// Puts a task into a group that this task made.
    ///
    /// # Panics
    /// If it made no such group; its home is told.
    pub fn fork<T: Task<E>>(&mut self, group: &Group<T::Output>, task: T) {
        self.must_own(group, "forks into");
        let ancestry = Some(Arc::clone(&group.ancestry));
        self.desk.site.forked.push((ancestry, Box::new(task)));
    }

    /// The next result of a group that this task made; `None` when all its tasks have finished, wherever they
    /// ran, and all results were taken. While it waits, the worker runs tasks of that group and its
    /// descendants, and no others; the task itself stays where it is and cannot be split.
    ///
    /// Tasks that wait in joins are on the worker's stack, one on top of the other, and take some 2 KiB each
    /// beside what they use themselves (in builds without optimisation several times as much): the 2 MiB of a
    /// thread are good for some 800 levels of groups, the 1 MiB of a virtual rank for 400.
    ///
    /// # Panics
    /// If this task made no such group; its home is told.
    pub fn join<P: Send + 'static>(&mut self, group: &Group<P>) -> Option<Result<P, TaskError>> {
        self.must_own(group, "joins");
        let Desk { site, host, badge } = &mut self.desk;
        let outcome = host.next(site, badge, &group.ancestry)?;
        Some(outcome.typed())
    }

    /// Cancels a group that this task made, with all its descendants.
    ///
    /// # Panics
    /// If it made no such group; its home is told.
    pub fn cancel<P>(&mut self, group: &Group<P>) {
        self.must_own(group, "cancels");
        self.desk.host.cancel(&group.ancestry);
    }

    /// Cancels this task's own group, on all ranks: no task of it that waits in a pool is run any more.
    /// This one goes on until it returns.
    pub fn cancel_own_group(&mut self) {
        self.desk.host.cancel(self.desk.badge.ticket.ancestry());
    }

    /// Whether this task's group was cancelled: what it finds is not wanted any more, and it had better
    /// return. One relaxed load for each group that it descends from.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.desk.badge.ticket.ancestry().is_cancelled()
    }

    /// A published block that this task [needs](Task::needs).
    ///
    /// # Panics
    /// If the task does not say that it needs it; its home is told.
    #[must_use]
    pub fn block(&self, name: &BlockName) -> Bytes {
        let mut blocks = self.desk.badge.blocks.iter();
        let found = blocks.find(|(other, _)| other == name);
        let (_, bytes) =
            found.unwrap_or_else(|| panic!("{name:?} is not among what this task needs"));
        bytes.clone()
    }

    /// Units of work after which to return [`Step::More`]: what is [charged](Self::charge) counts, so a loop
    /// whose turns charge several units each is to take as many fewer turns.
    #[must_use]
    pub fn budget(&self) -> u32 {
        self.desk.site.budget
    }

    /// Reports units of work done: for statistics, and for the clock of virtual ranks.
    pub fn charge(&mut self, units: u64) {
        self.desk.site.charged += units;
        let charged = &self.desk.badge.charged;
        charged.set(charged.get().saturating_add(units));
    }

    /// Whether the rank would like this task to return early so that it can be split: one relaxed load.
    #[must_use]
    pub fn split_wanted(&self) -> bool {
        self.desk.site.split_wanted.load(Ordering::Relaxed)
    }

    /// The rank this runs on.
    #[must_use]
    pub fn rank(&self) -> Rank {
        self.desk.site.rank
    }

    /// The worker of that rank.
    #[must_use]
    pub fn worker(&self) -> usize {
        self.desk.site.worker
    }
}

impl<E: ?Sized, T: Task<E>> Erased<E> for T {
    fn run(&mut self, env: &E, desk: Desk<'_, E>) -> bool {
        let mut context = Context {
            desk,
            output: PhantomData,
        };
        match Task::run(self, env, &mut context) {
            Step::Done(last) => {
                context.emit(last);
                true
            }
            Step::More => false,
        }
    }

    fn split(&mut self, how: Split) -> Option<Box<dyn Erased<E>>> {
        Task::split(self, how).map(|piece| Box::new(piece) as Box<dyn Erased<E>>)
    }

    fn encode(&self, rank: Rank, longest: usize) -> Result<Vec<u8>, TaskError> {
        wire::encode_within(self, longest).map_err(|why| TaskError {
            task: T::NAME.to_owned(),
            rank,
            cause: Failure::Unsendable(why.to_string()),
        })
    }

    fn needs(&self) -> Vec<BlockName> {
        Task::needs(self)
    }

    fn detail(&self) -> Detail {
        Task::detail(self)
    }

    fn type_of(&self) -> TypeId {
        TypeId::of::<T>()
    }

    fn name(&self) -> &'static str {
        T::NAME
    }
}

/// A task failed.
#[derive(Clone, Debug, Error, PartialEq, Eq, Serialize, Deserialize)]
#[error("task `{task}` failed on rank {}: {cause}", rank.0)]
pub struct TaskError {
    /// The task's registered name.
    pub task: String,
    /// The rank on which it failed.
    pub rank: Rank,
    /// Why.
    pub cause: Failure,
}

/// Why a task failed.
#[derive(Clone, Debug, Error, PartialEq, Eq, Serialize, Deserialize)]
pub enum Failure {
    /// It panicked.
    #[error("it panicked: {0}")]
    Panicked(String),
    /// It, or its result, came as bytes that are none of it.
    #[error("its bytes cannot be read: {0}; do its Serialize and Deserialize agree?")]
    Unreadable(String),
    /// It, or its result, could not be made into bytes.
    #[error("it cannot be made into bytes: {0}")]
    Unsendable(String),
    /// A block it needs cannot be had.
    #[error(transparent)]
    Block(#[from] BlockError),
}

/// The kinds of task that a scope knows, the same and in the same order on every rank.
pub struct Registry<E: ?Sized> {
    kinds: Vec<Kind<E>>,
}

/// Makes bytes into a task; the error is a sentence.
type Decode<E> = fn(&[u8]) -> Result<Box<dyn Erased<E>>, String>;

/// How to handle one kind of task.
pub(crate) struct Kind<E: ?Sized> {
    pub(crate) name: &'static str,
    task: TypeId,
    pub(crate) decode: Decode<E>,
    pub(crate) encode_output: fn(&Value, usize) -> Result<Vec<u8>, String>,
    pub(crate) decode_output: fn(&[u8]) -> Result<Value, String>,
}

impl<E: ?Sized> Default for Registry<E> {
    fn default() -> Self {
        Self { kinds: Vec::new() }
    }
}

impl<E: ?Sized> fmt::Debug for Registry<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.kinds.iter().map(|k| k.name))
            .finish()
    }
}

impl<E: ?Sized> Registry<E> {
    /// An empty registry.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a kind of task. A scope refuses a registry in which two kinds have one name
    /// ([`ScopeError::SameName`](crate::ScopeError::SameName)).
    #[must_use]
    pub fn with<T: Task<E>>(mut self) -> Self {
        self.kinds.push(Kind {
            name: T::NAME,
            task: TypeId::of::<T>(),
            decode: |bytes| Ok(Box::new(wire::decode::<T>(bytes)?)),
            encode_output: |value, longest| {
                let value = value.downcast_ref::<T::Output>();
                let value = value.ok_or("a result of another kind of task")?;
                let bytes = wire::encode_within(value, longest);
                bytes.map_err(|why| format!("its result cannot travel: {why}"))
            },
            decode_output: |bytes| Ok(Box::new(wire::decode::<T::Output>(bytes)?)),
        });
        self
    }

    /// Names of the kinds, in order.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.kinds.iter().map(|k| k.name)
    }

    /// The number of the kind a task is of.
    pub(crate) fn kind_of(&self, task: &dyn Erased<E>) -> Option<u16> {
        let kind = task.type_of();
        self.kinds
            .iter()
            .position(|k| k.task == kind)
            .map(|at| at as u16)
    }

    /// A kind by its number; the error is a sentence.
    pub(crate) fn kind(&self, number: u16) -> Result<&Kind<E>, String> {
        let kind = self.kinds.get(usize::from(number));
        kind.ok_or_else(|| format!("no kind of task has number {number}"))
    }

    /// A name that two kinds have, if any do.
    pub(crate) fn ambiguous(&self) -> Option<&'static str> {
        let mut names = self.names().enumerate();
        let twice = names.find(|&(at, name)| self.names().take(at).any(|other| other == name));
        twice.map(|(_, name)| name)
    }

    /// The bytes of a task's result, if there are at most so many; the error is the task's name and a sentence.
    pub(crate) fn encode_output(
        &self,
        kind: u16,
        value: &Value,
        longest: usize,
    ) -> Result<Vec<u8>, (String, String)> {
        let kind = self.kind(kind).map_err(|what| (String::new(), what))?;
        (kind.encode_output)(value, longest).map_err(|what| (kind.name.to_owned(), what))
    }
}
