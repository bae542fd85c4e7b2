//! The payloads of the scheduler: tasks and results, as a rank holds them and as they travel.
//!
//! Three types carry a task. A [`Payload`] is the task as a rank holds it, in the pool or on a
//! worker. An [`EncodedTask`] is its bytes in a message, which has its group, home and lease beside
//! it. A [`WorkerContext`] is what it finds on the worker that runs it. The scheduler knows of a
//! task only its [`Membership`]: its group, its home, and the account that is open for it.
//!
//! A task that cannot be made into bytes, or be read by the rank that stole it, or say what it
//! needs, fails like one that panicked: its home gets an error that names it, and everything else
//! goes on.

use serde::{Deserialize, Serialize};

use crate::block::{BlockError, BlockName, Bytes};
use crate::comm::Rank;
use crate::context::{GroupCalls, UntypedContext, WorkerContext};
use crate::registry::Registry;
use crate::scheduler::message::SchedulerMessage;
use crate::scheduler::{Membership, Work};
use crate::task::{Erased, Failure, Found, TaskError};
use crate::trace::Detail;
use crate::wire::guarded;

/// A task as a rank holds it: in its pool, laid out for a worker, or running.
pub(crate) struct Payload<E: ?Sized> {
    /// The number of its kind in the registry.
    pub(crate) kind: u16,
    pub(crate) body: Box<dyn Erased<E>>,
    /// Units that it has charged since a worker took it up.
    pub(crate) charged: u64,
    priority: i64,
    /// The blocks that it said it needs; most tasks need none.
    needs: Option<Box<Needs>>,
}

/// The blocks that a task needs, and their bytes once a worker has taken the task up.
struct Needs {
    names: Vec<BlockName>,
    blocks: Vec<(BlockName, Bytes)>,
}

/// A task that a worker runs or is about to run, with where it belongs.
pub(crate) type Running<E> = (Membership, Payload<E>);

impl<E: ?Sized> Payload<E> {
    /// A task as it comes to the pool of a rank.
    pub(crate) fn new(kind: u16, body: Box<dyn Erased<E>>, rank: Rank) -> Self {
        let mut says = "its priority";
        let said = guarded(|| {
            let priority = body.priority();
            says = "what it needs";
            (priority, body.needs())
        });
        let mut payload = Self {
            kind,
            body,
            charged: 0,
            priority: 0,
            needs: None,
        };
        let needs = said.map(|(priority, names)| {
            payload.priority = priority;
            names
        });
        match needs {
            Ok(names) if names.is_empty() => {}
            Ok(names) => {
                let blocks = Vec::new();
                payload.needs = Some(Box::new(Needs { names, blocks }));
            }
            Err(what) => payload.fail(rank, format!("while saying {says}: {what}")),
        }
        payload
    }

    /// Puts an error in the place of a task that panicked while it did not run.
    pub(crate) fn fail(&mut self, rank: Rank, why: String) {
        self.body = Box::new(Broken(TaskError {
            task: self.body.name().to_owned(),
            rank,
            cause: Failure::Panicked(why),
        }));
    }

    /// Makes it ready for the pool again, in which it may need other blocks than before.
    pub(crate) fn set_down(self, rank: Rank) -> Self {
        Self::new(self.kind, self.body, rank)
    }

    /// Gets the blocks that it needs, all of which are here.
    pub(crate) fn fetch(&mut self, mut get: impl FnMut(&BlockName) -> Option<Bytes>) {
        if let Some(needs) = &mut self.needs {
            let here = |name: &BlockName| get(name).map(|bytes| (*name, bytes));
            needs.blocks = needs.names.iter().filter_map(here).collect();
        }
    }

    /// Runs a slice of it on a worker; true when it is done.
    pub(crate) fn run(
        &mut self,
        env: &E,
        membership: &Membership,
        worker: &mut WorkerContext<E>,
        groups: &mut dyn GroupCalls<E>,
    ) -> bool {
        (worker.kind, worker.charged_in_all) = (self.kind, self.charged);
        let blocks = self.needs.as_ref().map_or(&[][..], |needs| &needs.blocks);
        let context = UntypedContext::new(worker, groups, membership, blocks);
        let done = self.body.run(env, context);
        self.charged = worker.charged_in_all;
        done
    }
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
        self.needs.as_ref().map_or(&[], |needs| &needs.names)
    }

    fn priority(&self) -> i64 {
        self.priority
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
    fn run(&mut self, _env: &E, mut context: UntypedContext<'_, E>) -> bool {
        context.fail(self.0.clone());
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

    fn priority(&self) -> i64 {
        0
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
