//! The reason why a scope cannot go on.

use thiserror::Error;

use crate::block::BlockError;
use crate::bound::MOST;
use crate::comm::{CommError, Rank};
use crate::task::TaskError;

/// The reason why a scope could not go on.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ScopeError {
    /// A message could not be sent or received.
    #[error(transparent)]
    Comm(#[from] CommError),
    /// A task failed, and the body passed the error on.
    #[error(transparent)]
    Task(#[from] TaskError),
    /// Ranks know different kinds of tasks: they run different programs.
    #[error(
        "rank {} registered {}, rank {} registered {}; run the same program on every rank",
        other.0, registered(theirs), rank.0, registered(ours)
    )]
    Registries {
        /// The rank that noticed.
        rank: Rank,
        /// The rank that differs.
        other: Rank,
        /// The tasks that this rank registered.
        ours: String,
        /// The tasks that that rank registered.
        theirs: String,
    },
    /// Two kinds of task have one name, and errors and traces could not tell them apart.
    #[error("two kinds of task in the registry are named `{0}`; give each a name of its own")]
    SameName(&'static str),
    /// Two bounds have one name, and a program could not tell them apart.
    #[error("two bounds in the registry are named `{0}`; give each a name of its own")]
    SameBound(&'static str),
    /// A registry has more bounds than a scope shares.
    #[error("the registry has {0} bounds, and a scope shares at most {MOST}")]
    TooManyBounds(usize),
    /// A bound that was not registered, or was registered with another type or direction.
    #[error(
        "the bound `{0}` is not registered as it is used; add `.with_bound(…)` to the registry"
    )]
    UnknownBound(&'static str),
    /// A task of a kind that was not registered.
    #[error(
        "task `{task}`, forked on rank {} by {}, is not registered; add `.with::<…>()` to the registry",
        rank.0, forker(*by)
    )]
    Unregistered {
        /// Its name.
        task: &'static str,
        /// The rank that forked it.
        rank: Rank,
        /// The task that forked it, if it was not the body.
        by: Option<&'static str>,
    },
    /// A block could not be published.
    #[error(transparent)]
    Block(#[from] BlockError),
    /// A scope without workers can do nothing.
    #[error("a rank needs at least one worker")]
    NoWorkers,
    /// The system gives no more threads.
    #[error("a worker could not be started: {0}; take fewer")]
    Workers(String),
    /// A task was forked into a collective group of which every rank knows that nothing will come
    /// any more.
    #[error(
        "task `{0}` was forked into a group that was joined to its end; make another group for it"
    )]
    Exhausted(&'static str),
    /// A task was forked by a body that had closed the scope.
    #[error("task `{0}` was forked after this body had closed the scope: close it later")]
    Closed(&'static str),
    /// A group of another scope, or one that a task made.
    #[error("{0} was not made by this scope's body: make a group in the scope it is used in")]
    Foreign(String),
    /// A rank returned while this one is in a scope: it took no part, or this one takes part in one
    /// more.
    #[error(
        "rank {} returned without taking part in this scope; every rank must call scope equally often",
        rank.0
    )]
    Absent {
        /// The rank that is gone.
        rank: Rank,
    },
    /// Every rank's body waits in a join, or has ended, and nothing is left that could end a wait.
    #[error(
        "no rank can go on: {0}; make and join collective groups in the same order on every rank"
    )]
    Stuck(String),
    /// Ranks in virtual time have no threads.
    #[error(
        "a rank in virtual time has one worker and no thread for messages; take more ranks instead"
    )]
    NoThreads,
    /// The error of the body.
    #[error("{0}")]
    Body(String),
}

/// The names of tasks, for people.
fn registered(names: &str) -> String {
    if names.is_empty() {
        "no tasks".to_owned()
    } else {
        format!("the tasks [{names}]")
    }
}

/// Names the one that forked a task, for people.
fn forker(by: Option<&'static str>) -> String {
    by.map_or_else(|| "the body".to_owned(), |name| format!("task `{name}`"))
}
