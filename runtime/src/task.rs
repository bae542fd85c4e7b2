//! Tasks: what a user writes, and how the runtime handles kinds it does not know.
//!
//! A task is data. It runs in slices, in an environment that its rank provides and that it only reads;
//! what it leaves behind between slices is its own state, so that it can be split, and sent to a thief.

use std::any::{Any, TypeId};
use std::fmt;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::comm::Rank;
use crate::policy::Split;
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
    /// Its name in registries, errors and traces.
    const NAME: &'static str;
    /// Its results; a task may give several, see [`Context::emit`].
    type Output: Serialize + DeserializeOwned + Send + 'static;

    /// Works until it is done, or until it has charged about [`Context::budget`] units.
    fn run(&mut self, env: &E, cx: &mut Context<'_, E, Self::Output>) -> Step<Self::Output>;

    /// Gives part of its work away as another task; `None` if it has too little to share.
    fn split(&mut self, how: Split) -> Option<Self> {
        let _ = how;
        None
    }
}

/// What a running task may ask of its rank.
#[derive(Debug)]
pub struct Context<'a, E: ?Sized, O> {
    site: &'a mut Site<E>,
    output: PhantomData<fn(O)>,
}

/// A task whose type is not known, and the results of one.
pub(crate) trait Erased<E: ?Sized>: Send {
    /// Runs a slice; true when done.
    fn run(&mut self, env: &E, site: &mut Site<E>) -> bool;
    fn split(&mut self, how: Split) -> Option<Box<dyn Erased<E>>>;
    fn encode(&self) -> Result<Vec<u8>, String>;
    fn type_of(&self) -> TypeId;
    fn name(&self) -> &'static str;
}

pub(crate) type Value = Box<dyn Any + Send>;

/// What a slice leaves for the rank to pick up.
pub(crate) struct Site<E: ?Sized> {
    pub(crate) rank: Rank,
    pub(crate) worker: usize,
    pub(crate) budget: u32,
    pub(crate) charged: u64,
    pub(crate) results: Vec<Value>,
    pub(crate) forked: Vec<Box<dyn Erased<E>>>,
    /// Raised while the rank would like running tasks to give something away.
    pub(crate) split_wanted: std::sync::Arc<AtomicBool>,
}

impl<E: ?Sized> fmt::Debug for Site<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "worker {} of rank {}", self.worker, self.rank.0)
    }
}

impl<E: ?Sized, O: Send + 'static> Context<'_, E, O> {
    /// Returns a result while the task goes on.
    pub fn emit(&mut self, output: O) {
        self.site.results.push(Box::new(output));
    }

    /// Puts a child into this task's own group, wherever it runs; results go to the same home.
    pub fn hyperfork<T: Task<E, Output = O>>(&mut self, task: T) {
        self.site.forked.push(Box::new(task));
    }

    /// Units of work after which to return [`Step::More`].
    #[must_use]
    pub fn budget(&self) -> u32 {
        self.site.budget
    }

    /// Reports units of work done, for statistics.
    pub fn charge(&mut self, units: u64) {
        self.site.charged += units;
    }

    /// Whether the rank would like this task to return early so that it can be split: one relaxed load.
    #[must_use]
    pub fn split_wanted(&self) -> bool {
        self.site.split_wanted.load(Ordering::Relaxed)
    }

    /// The rank this runs on.
    #[must_use]
    pub fn rank(&self) -> Rank {
        self.site.rank
    }

    /// The worker of that rank.
    #[must_use]
    pub fn worker(&self) -> usize {
        self.site.worker
    }
}

impl<E: ?Sized, T: Task<E>> Erased<E> for T {
    fn run(&mut self, env: &E, site: &mut Site<E>) -> bool {
        let mut context = Context {
            site,
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

    fn encode(&self) -> Result<Vec<u8>, String> {
        wire::encode(self)
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
#[error("task `{task}` failed on rank {}: {message}", rank.0)]
pub struct TaskError {
    /// The task's registered name.
    pub task: String,
    /// The rank it ran on.
    pub rank: Rank,
    /// What its panic said.
    pub message: String,
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
    pub(crate) encode_output: fn(&Value) -> Result<Vec<u8>, String>,
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

    /// Adds a kind of task.
    #[must_use]
    pub fn with<T: Task<E>>(mut self) -> Self {
        self.kinds.push(Kind {
            name: T::NAME,
            task: TypeId::of::<T>(),
            decode: |bytes| Ok(Box::new(wire::decode::<T>(bytes)?)),
            encode_output: |value| {
                let value = value.downcast_ref::<T::Output>();
                wire::encode(value.ok_or("a result of another kind of task")?)
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

    pub(crate) fn kind(&self, number: u16) -> Option<&Kind<E>> {
        self.kinds.get(usize::from(number))
    }
}
