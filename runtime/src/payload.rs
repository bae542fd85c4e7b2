//! Tasks and results: as a rank handles them, and as they travel.
//!
//! A task that cannot be made into bytes, or be read by the rank that stole it, or say what it needs, fails
//! like one that panicked: its home gets an error that names it, and everything else goes on.

use std::cell::Cell;

use serde::{Deserialize, Serialize};

use crate::block::{BlockError, BlockName, Bytes};
use crate::comm::Rank;
use crate::context::Desk;
use crate::registry::Registry;
use crate::scheduler::message::SchedulerMessage;
use crate::scheduler::{Membership, Work};
use crate::task::{Erased, Failure, Found, TaskError};
use crate::trace::Detail;
use crate::wire::guarded;

/// A task in a pool.
pub(crate) struct Payload<E: ?Sized> {
    /// Its kind's number in the registry.
    pub(crate) kind: u16,
    pub(crate) body: Box<dyn Erased<E>>,
    /// What it said that it needs; most need nothing.
    needs: Option<Box<[BlockName]>>,
}

impl<E: ?Sized> Payload<E> {
    /// A task as it comes to the pool of a rank.
    pub(crate) fn new(kind: u16, body: Box<dyn Erased<E>>, rank: Rank) -> Self {
        match guarded(|| body.needs()) {
            Ok(needs) => Self {
                kind,
                body,
                needs: (!needs.is_empty()).then(|| needs.into()),
            },
            Err(what) => {
                let why = format!("while saying what it needs: {what}");
                Self::failed(kind, body.name(), rank, why)
            }
        }
    }

    /// In place of a task that panicked before it could run: its error.
    pub(crate) fn failed(kind: u16, task: &str, rank: Rank, why: String) -> Self {
        let error = TaskError {
            task: task.to_owned(),
            rank,
            cause: Failure::Panicked(why),
        };
        Self {
            kind,
            body: Box::new(Broken(error)),
            needs: None,
        }
    }
}

/// What a running task's rank knows of it.
pub(crate) struct Badge {
    pub(crate) membership: Membership,
    pub(crate) kind: u16,
    pub(crate) blocks: Vec<(BlockName, Bytes)>,
    /// Units that it charged here, in all its slices.
    pub(crate) charged: Cell<u64>,
    /// What a split panicked with.
    pub(crate) failed: Option<String>,
}

/// A task that runs.
pub(crate) struct Job<E: ?Sized> {
    pub(crate) badge: Badge,
    pub(crate) body: Box<dyn Erased<E>>,
}

/// A result on its home rank or on its way there.
pub(crate) struct TaskResult {
    pub(crate) kind: u16,
    pub(crate) value: Found,
}

impl TaskResult {
    /// The result as its joiner wants it.
    pub(crate) fn typed<O: Send + 'static>(self) -> Result<O, TaskError> {
        let value = self.value.map_err(|error| *error)?.downcast::<O>();
        Ok(*value.expect("fork takes only tasks with the results of the group"))
    }
}

impl<E: ?Sized> Work<TaskResult> for Payload<E> {
    fn needs(&self) -> &[BlockName] {
        self.needs.as_deref().unwrap_or_default()
    }

    fn refused(&self, rank: Rank, why: BlockError) -> TaskResult {
        TaskResult {
            kind: self.kind,
            value: Err(Box::new(TaskError {
                task: self.body.name().to_owned(),
                rank,
                cause: Failure::Block(why),
            })),
        }
    }
}

/// A task as it travels.
#[derive(Serialize, Deserialize)]
pub(crate) struct EncodedTask {
    kind: u16,
    body: Result<Bytes, TaskError>,
}

/// A result as it travels.
#[derive(Serialize, Deserialize)]
pub(crate) struct EncodedResult {
    kind: u16,
    value: Result<Bytes, Box<TaskError>>,
}

/// A task that failed on its way.
struct Broken(TaskError);

impl<E: ?Sized> Erased<E> for Broken {
    fn run(&mut self, _env: &E, desk: Desk<'_, E>) -> bool {
        desk.site.results.push(Err(Box::new(self.0.clone())));
        true
    }

    fn split(&mut self, _how: crate::Split) -> Option<Box<dyn Erased<E>>> {
        None
    }

    fn encode(&self, _rank: Rank, _longest: usize) -> Result<Vec<u8>, TaskError> {
        Err(self.0.clone())
    }

    fn needs(&self) -> Vec<BlockName> {
        Vec::new()
    }

    fn detail(&self) -> Detail {
        Detail::default()
    }

    fn type_of(&self) -> std::any::TypeId {
        std::any::TypeId::of::<Self>()
    }

    fn name(&self) -> &'static str {
        "broken"
    }
}

/// Makes the tasks and results of a message into bytes, of which each may have at most `longest`.
pub(crate) fn pack<E: ?Sized>(
    message: SchedulerMessage<Payload<E>, TaskResult>,
    registry: &Registry<E>,
    rank: Rank,
    longest: usize,
) -> SchedulerMessage<EncodedTask, EncodedResult> {
    let task = |payload: Payload<E>| {
        let body = payload.body.encode(rank, longest).map(Bytes::from);
        let kind = payload.kind;
        Ok::<_, std::convert::Infallible>(EncodedTask { kind, body })
    };
    let result = |outcome: TaskResult| {
        let value = outcome.value.and_then(|value| {
            let bytes = registry.encode_output(outcome.kind, &value, longest);
            bytes.map(Bytes::from).map_err(|(task, what)| {
                let cause = Failure::Unsendable(what);
                Box::new(TaskError { task, rank, cause })
            })
        });
        let kind = outcome.kind;
        Ok(EncodedResult { kind, value })
    };
    match message.convert(task, result) {
        Ok(message) => message,
        Err(never) => match never {},
    }
}

/// Makes the bytes of a message into tasks and results; the error is a sentence.
pub(crate) fn unpack<E: ?Sized>(
    message: SchedulerMessage<EncodedTask, EncodedResult>,
    registry: &Registry<E>,
    rank: Rank,
) -> Result<SchedulerMessage<Payload<E>, TaskResult>, String> {
    message.convert(
        |encoded| open(encoded, registry, rank),
        |encoded| {
            let kind = registry.kind(encoded.kind)?;
            let unreadable = |what| {
                Box::new(TaskError {
                    task: kind.name.to_owned(),
                    rank,
                    cause: Failure::Unreadable(what),
                })
            };
            let value = encoded
                .value
                .and_then(|bytes| (kind.decode_output)(&bytes).map_err(unreadable));
            let kind = encoded.kind;
            Ok(TaskResult { kind, value })
        },
    )
}

/// Makes one task of its bytes.
fn open<E: ?Sized>(
    encoded: EncodedTask,
    registry: &Registry<E>,
    rank: Rank,
) -> Result<Payload<E>, String> {
    let kind = registry.kind(encoded.kind)?;
    let unreadable = |what| TaskError {
        task: kind.name.to_owned(),
        rank,
        cause: Failure::Unreadable(what),
    };
    let body = encoded
        .body
        .and_then(|bytes| (kind.decode)(&bytes).map_err(unreadable));
    let body = body.unwrap_or_else(|error| Box::new(Broken(error)));
    Ok(Payload::new(encoded.kind, body, rank))
}
