//! The kinds of task that a scope knows, by number, and its shared bounds.

use std::any::TypeId;
use std::fmt;

use crate::bound::{Bound, BoundValue, Key};
use crate::task::{Erased, Task, Value};
use crate::wire;

/// The kinds of task that a scope knows, and its shared bounds, the same and in the same order on
/// every rank.
pub struct Registry<E: ?Sized> {
    kinds: Vec<Kind<E>>,
    bounds: Vec<Key>,
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
        Self {
            kinds: Vec::new(),
            bounds: Vec::new(),
        }
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

    /// Adds a bound, which tasks may then [improve](crate::Context::improve). A scope refuses a
    /// registry in which two bounds have one name
    /// ([`ScopeError::SameBound`](crate::ScopeError::SameBound)), or that has more than 64.
    #[must_use]
    pub fn with_bound<V: BoundValue>(mut self, bound: Bound<V>) -> Self {
        self.bounds.push(bound.key());
        self
    }

    /// The bounds, in order.
    pub(crate) fn bounds(&self) -> &[Key] {
        &self.bounds
    }

    /// The contents of the registry, for people and for the comparison of ranks.
    pub(crate) fn contents(&self) -> String {
        let kinds = self.names().map(str::to_owned);
        let bounds = self.bounds.iter().map(|key| format!("the bound {key}"));
        kinds.chain(bounds).collect::<Vec<_>>().join(", ")
    }

    /// A name that two bounds have, if any do.
    pub(crate) fn ambiguous_bound(&self) -> Option<&'static str> {
        let mut bounds = self.bounds.iter().enumerate();
        let twice = bounds.find(|&(at, key)| {
            let before = self.bounds[..at].iter();
            before.into_iter().any(|other| other.name == key.name)
        });
        twice.map(|(_, key)| key.name)
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

    /// The bytes of a task's result, if there are at most this many; the error is the task's name
    /// and a sentence.
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
