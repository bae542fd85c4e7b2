//! Helpers for tests of scopes: scopes on threads and in virtual time that end, if need be with an
//! error.

#![allow(dead_code, reason = "no test uses all of it")]

use std::time::Duration;

use weft_runtime::comm::virtual_time::{self, Fault, Outcome, VirtualOptions};
use weft_runtime::comm::{Comm, CommError, CommWrapper, threads};
use weft_runtime::{Registry, Scope, ScopeError, ScopeOptions, ScopeReport, scope};

pub(crate) type Ended<R> = Result<(R, ScopeReport), ScopeError>;

/// Ends the job if it takes that long, so that a scope that hangs is an error.
pub(crate) struct Limited<'a> {
    comm: &'a mut dyn Comm,
    until: Duration,
}

impl<'a> Limited<'a> {
    pub(crate) fn new(comm: &'a mut dyn Comm) -> Self {
        let until = comm.now() + Duration::from_secs(60);
        Self { comm, until }
    }

    /// Little time, but much for ranks in virtual time.
    pub(crate) fn short(comm: &'a mut dyn Comm) -> Self {
        let until = comm.now() + Duration::from_secs(2);
        Self { comm, until }
    }
}

impl CommWrapper for Limited<'_> {
    fn inner(&self) -> &dyn Comm {
        self.comm
    }

    fn inner_mut(&mut self) -> &mut dyn Comm {
        self.comm
    }

    fn wrapped_wait(&mut self, at_most: Duration) -> Result<(), CommError> {
        if self.comm.now() > self.until {
            self.comm.abort("it hangs");
        }
        self.comm.wait(at_most)
    }
}

/// A scope on ranks that are threads; what each gave.
pub(crate) fn on_threads<E: Sync, R: Send>(
    ranks: usize,
    options: &ScopeOptions,
    registry: &Registry<E>,
    env: impl Fn() -> E + Sync,
    body: impl Fn(&mut Scope<'_, E>) -> Result<R, ScopeError> + Sync,
) -> Vec<Ended<R>> {
    threads::launch(ranks, |comm| {
        let (mut comm, env) = (Limited::new(comm), env());
        scope(&mut comm, registry, &env, options, |s| body(s))
    })
    .unwrap()
}

/// A scope on ranks in virtual time; what each gave.
pub(crate) fn on_virtual<E: Sync, R: Send>(
    ranks: usize,
    virtually: &VirtualOptions,
    options: &ScopeOptions,
    registry: &Registry<E>,
    env: impl Fn() -> E + Sync,
    body: impl Fn(&mut Scope<'_, E>) -> Result<R, ScopeError> + Sync,
) -> Outcome<Ended<R>> {
    virtual_time::launch(ranks, virtually, |comm| {
        let (mut comm, env) = (Limited::short(comm), env());
        scope(&mut comm, registry, &env, options, |s| body(s))
    })
    .unwrap()
}

/// A network on which messages are now and then much later than they should.
pub(crate) fn rough(seed: u64) -> VirtualOptions {
    VirtualOptions {
        jitter: 0.5,
        seed,
        faults: vec![Fault::Late {
            probability: 0.2,
            delay: Duration::from_micros(100),
        }],
        ..VirtualOptions::default()
    }
}

pub(crate) fn seeded(seed: u64) -> ScopeOptions {
    ScopeOptions {
        seed,
        ..ScopeOptions::default()
    }
}

pub(crate) fn workers(workers: usize) -> ScopeOptions {
    ScopeOptions {
        workers,
        ..ScopeOptions::default()
    }
}

/// One count of all reports together.
pub(crate) fn total<R>(ended: &[Ended<R>], count: impl Fn(&ScopeReport) -> u64) -> u64 {
    let reports = ended.iter().filter_map(|e| e.as_ref().ok());
    reports.map(|(_, report)| count(report)).sum()
}

/// The values of the bodies.
pub(crate) fn values<R: std::fmt::Debug>(ended: Vec<Ended<R>>) -> Vec<R> {
    ended.into_iter().map(|e| e.unwrap().0).collect()
}

/// Options for ranks that are threads, each with this many ranks: (ranks, workers of each, whether
/// it has a progress thread beside them).
pub(crate) fn threaded<const N: usize>(
    cases: [(usize, usize, bool); N],
) -> impl Iterator<Item = (usize, ScopeOptions)> {
    cases.into_iter().map(|(ranks, workers, progress_thread)| {
        let options = ScopeOptions {
            workers,
            progress_thread,
            ..ScopeOptions::default()
        };
        (ranks, options)
    })
}
