//! A simulation on a thread of its own, which owns all of it and does what it is sent.
//!
//! A simulation borrows its world, and a Python object can borrow nothing. So the world lives on
//! the stack of a thread as long as the object does, and each use of it is a closure that the
//! thread is sent. Python's lock is never held there.

use std::sync::Mutex;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use pyo3::prelude::*;
use weft_runtime::ScopeOptions;
use weft_runtime::comm::solo::Solo;
use weftwork::memory::{self, Ranks};
use weftwork::scene::Scene;
use weftwork::step::{Simulation, StepError, World, WorldError};

use crate::errors;

/// How long Python waits before it looks for Ctrl-C again.
const PATIENCE: Duration = Duration::from_millis(50);

/// The stack of the thread in bytes, as large as that of a program's main thread. Only the used
/// part takes memory; builds that are not optimised use more than threads have by default.
const STACK: usize = 8 << 20;

/// The state that a job works with.
pub(crate) struct Stage<'w> {
    pub(crate) world: &'w World,
    pub(crate) simulation: Simulation<'w>,
    pub(crate) comm: Solo,
    /// Whether a step has failed, after which the state is not one between steps.
    pub(crate) failed: bool,
}

type Job = Box<dyn FnOnce(&mut Stage<'_>) + Send>;

/// A simulation on its thread.
#[derive(Debug)]
pub(crate) struct Session {
    /// Empty only while it is dropped.
    jobs: Mutex<Option<Sender<Job>>>,
    thread: Option<JoinHandle<()>>,
}

/// The reason why there is no simulation.
pub(crate) enum Unfit {
    /// The scene cannot be simulated.
    World(WorldError),
    /// The simulation cannot begin.
    Step(StepError),
    /// The thread for it could not be started.
    Thread(std::io::Error),
}

impl Session {
    /// Builds the world of a scene and a simulation of it, with this many threads.
    pub(crate) fn begin(scene: Scene, threads: usize) -> Result<Self, Unfit> {
        let (jobs, queue) = channel::<Job>();
        let (ready, begun) = channel();
        let thread = std::thread::Builder::new()
            .name("weft simulation".to_owned())
            .stack_size(STACK)
            .spawn(move || serve(&scene, threads, &ready, &queue))
            .map_err(Unfit::Thread)?;
        match begun.recv() {
            Ok(Ok(())) => Ok(Self {
                jobs: Mutex::new(Some(jobs)),
                thread: Some(thread),
            }),
            Ok(Err(unfit)) => Err(unfit),
            Err(_) => Err(Unfit::Thread(std::io::Error::other(
                "the simulation ended with an internal fault",
            ))),
        }
    }

    /// Does something on the thread of the simulation. While it lasts other threads of Python run,
    /// and `interrupt` is called when Ctrl-C was pressed; the job is waited for all the same.
    pub(crate) fn ask<T: Send + 'static>(
        &self,
        py: Python<'_>,
        interrupt: impl Fn(),
        job: impl FnOnce(&mut Stage<'_>) -> T + Send + 'static,
    ) -> PyResult<T> {
        let (reply, answer) = channel();
        let job: Job = Box::new(move |stage| drop(reply.send(job(stage))));
        let sent = match self.jobs.lock() {
            Ok(jobs) => jobs.as_ref().is_some_and(|jobs| jobs.send(job).is_ok()),
            Err(_) => false,
        };
        if !sent {
            return Err(errors::internal(py));
        }
        let answer = Mutex::new(answer);
        let mut interrupted = Ok(());
        loop {
            let waited = py.detach(|| wait(&answer));
            match waited {
                Ok(value) => return interrupted.map(|()| value),
                Err(RecvTimeoutError::Disconnected) => return Err(errors::internal(py)),
                Err(RecvTimeoutError::Timeout) => {
                    if interrupted.is_ok() {
                        interrupted = py.check_signals();
                        if interrupted.is_err() {
                            interrupt();
                        }
                    }
                }
            }
        }
    }
}

fn wait<T>(answer: &Mutex<Receiver<T>>) -> Result<T, RecvTimeoutError> {
    match answer.lock() {
        Ok(answer) => answer.recv_timeout(PATIENCE),
        Err(_) => Err(RecvTimeoutError::Disconnected),
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if let Ok(jobs) = self.jobs.get_mut() {
            jobs.take();
        }
        if let Some(thread) = self.thread.take() {
            // It ended with a fault that was told, if it did.
            drop(thread.join());
        }
    }
}

/// The life of the thread.
fn serve(scene: &Scene, threads: usize, ready: &Sender<Result<(), Unfit>>, queue: &Receiver<Job>) {
    let ranks = Ranks {
        drawing: 0,
        ..Ranks::threads(1)
    };
    let world = match memory::build_as_environment(scene, 1, ranks) {
        Ok(world) => world,
        Err(error) => return drop(ready.send(Err(Unfit::World(error)))),
    };
    let comm = Solo::new();
    let mut scope = ScopeOptions::from(&scene.balance);
    scope.workers = threads;
    let simulation = match Simulation::new(&world, &comm, &scope) {
        Ok(simulation) => simulation,
        Err(error) => return drop(ready.send(Err(Unfit::Step(error)))),
    };
    let mut stage = Stage {
        world: &world,
        simulation,
        comm,
        failed: false,
    };
    if ready.send(Ok(())).is_err() {
        return;
    }
    for job in queue {
        job(&mut stage);
    }
}
