//! Tasks: what users write, and how the runtime handles tasks whose type it does not know.
//!
//! A task is data. It runs in slices, in an environment that its rank provides and that it only
//! reads. Between slices all that it has is its own state, so that it can be split, and sent to a
//! thief.

use std::any::{Any, TypeId};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::block::{BlockError, BlockName};
use crate::comm::Rank;
use crate::context::{Context, UntypedContext};
use crate::policy::Split;
use crate::trace::Detail;
use crate::wire;

/// The outcome of one slice of a task.
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

    /// Gives part of its work away as another task; `None` if it has too little to share. `how`
    /// chooses among entries of a stack ([`Split::take_from`]); a task whose work is one range
    /// gives half of it whatever the rule.
    fn split(&mut self, how: Split) -> Option<Self> {
        let _ = how;
        None
    }

    /// Where it stands in the pool of its rank: tasks of higher priority run first, and of equal
    /// ones the newest does. It is asked when the task enters a pool. A thief gets tasks of all
    /// priorities.
    fn priority(&self) -> i64 {
        0
    }

    /// Published blocks that must be here before it runs; it is blocked while others run. See
    /// [`Context::block`].
    fn needs(&self) -> Vec<BlockName> {
        Vec::new()
    }

    /// The task's details for a trace, beside its name, when a worker takes it up. Only asked while
    /// a trace is recorded.
    fn detail(&self) -> Detail {
        Detail::default()
    }
}

/// A task whose type is not known, and the results of one.
pub(crate) trait Erased<E: ?Sized>: Send {
    /// Runs a slice; true when done.
    fn run(&mut self, env: &E, context: UntypedContext<'_, E>) -> bool;
    fn split(&mut self, how: Split) -> Option<Box<dyn Erased<E>>>;
    /// Its bytes, on that rank, if there are at most this many.
    fn encode(&self, rank: Rank, longest: usize) -> Result<Vec<u8>, TaskError>;
    fn needs(&self) -> Vec<BlockName>;
    fn priority(&self) -> i64;
    fn detail(&self) -> Detail;
    fn type_of(&self) -> TypeId;
    fn name(&self) -> &'static str;
}

pub(crate) type Value = Box<dyn Any + Send>;

/// A result, or why there is none; small, as most are results.
pub(crate) type Found = Result<Value, Box<TaskError>>;

impl<E: ?Sized, T: Task<E>> Erased<E> for T {
    fn run(&mut self, env: &E, context: UntypedContext<'_, E>) -> bool {
        let mut context = context.typed();
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

    fn priority(&self) -> i64 {
        Task::priority(self)
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
    /// The reason.
    pub cause: Failure,
}

/// The reason why a task failed.
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
