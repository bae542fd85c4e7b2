//! The run whose states are judged: steps and nothing else, with each checked state handed on.

use weft_runtime::ScopeOptions;
use weft_runtime::comm::solo::Solo;
use weft_runtime::comm::threads::{LaunchError, launch};
use weft_runtime::comm::{Comm, Rank};

use crate::memory::Limit;
use crate::output::StateHash;
use crate::run::{RunError, hash_of, hash_of_replica};
use crate::step::{CheckedState, Simulation, StepError, World};

/// The options of a judged run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Certifying {
    /// The number of ranks, each a thread.
    pub ranks: usize,
    /// The workers of each.
    pub threads: usize,
    /// The steps to take, if not as many as the scene says.
    pub steps: Option<u64>,
    /// Whether the second run, without certification, is left out.
    pub once: bool,
    /// The memory that the process may have; a scene that needs more is refused.
    pub memory: Limit,
}

/// The simulator's own account of a run.
#[derive(Debug)]
pub struct Ran {
    /// The hash of the last state, but for friction if the run ended early.
    pub hash: StateHash,
    /// The steps taken.
    pub steps: u64,
    /// The vertices of the cloth.
    pub vertices: u64,
    /// The pairs of features that would have crossed, in all steps together.
    pub hits: u64,
    /// The vertices whose displacements were cut, in all steps together.
    pub cut: u64,
    /// The steps in which some were.
    pub cut_steps: u64,
    /// Whether cloth started through cloth.
    pub began_through: bool,
    /// The reason for which the run ended early, if it did.
    pub failure: Option<RunError>,
}

impl Ran {
    /// Whether certification has changed nothing.
    #[must_use]
    pub(crate) fn is_as_it_was(&self) -> bool {
        self.hits == 0 && self.cut == 0 && !self.began_through
    }
}

/// Takes a scene's steps, and hands on the first state and that after each part of a step.
///
/// # Errors
/// The run could not begin. One that fails later gives what it did so far.
pub(super) fn simulate(
    world: &World,
    options: &Certifying,
    each: &(dyn Fn(CheckedState) + Sync),
) -> Result<Ran, RunError> {
    if options.ranks == 0 {
        return Err(LaunchError::NoRanks.into());
    }
    let body = |comm: &mut dyn Comm| {
        let outcome = take_steps(world, options, each, comm);
        if let Err(error) = &outcome {
            comm.abort(&error.to_string());
        }
        outcome
    };
    let outcomes = if options.ranks == 1 {
        vec![body(&mut Solo::new())]
    } else {
        launch(options.ranks, body)?
    };
    let (mut ran, mut failure): (Option<Ran>, Option<RunError>) = (None, None);
    for (rank, outcome) in outcomes.into_iter().enumerate() {
        let of_rank = match outcome {
            Ok(mut of_rank) => {
                let failed = of_rank.failure.take();
                if rank == 0 {
                    ran = Some(of_rank);
                }
                failed
            }
            Err(error) => return Err(error),
        };
        // The message says why one rank failed, and not that others heard of it.
        if let Some(error) = of_rank
            && failure.as_ref().is_none_or(RunError::is_echo)
        {
            failure = Some(error);
        }
    }
    let mut ran = ran.ok_or(LaunchError::NoRanks)?;
    ran.failure = failure;
    Ok(ran)
}

/// The life of one rank. Rank 0 hands on states.
fn take_steps(
    world: &World,
    options: &Certifying,
    each: &(dyn Fn(CheckedState) + Sync),
    comm: &mut dyn Comm,
) -> Result<Ran, RunError> {
    let scene = world.scene();
    let mut scope = ScopeOptions::from(&scene.balance);
    scope.workers = options.threads;
    let mut simulation = Simulation::new(world, &*comm, &scope)?;
    let began_through = !simulation.kept().is_empty();
    let is_first = comm.rank() == Rank(0);
    // Ranks that know only some vertices complete each other's states.
    simulation.complete(comm)?;
    simulation.keep_checked(is_first || world.subscribes(comm.size()));
    let hand_on = |simulation: &mut Simulation<'_>| {
        let states = simulation.take_checked();
        if is_first {
            states.into_iter().for_each(each);
        }
    };
    hand_on(&mut simulation);
    let steps = options.steps.unwrap_or_else(|| scene.time.steps());
    let (mut hits, mut cut, mut cut_steps, mut failure) = (0, 0, 0, None);
    while simulation.step() < steps {
        let outcome = simulation.advance(comm);
        hand_on(&mut simulation);
        match outcome {
            Ok(report) => {
                hits += report.certified.hits;
                cut += report.certified.cut;
                cut_steps += u64::from(report.certified.cut > 0);
            }
            Err(error) => {
                failure = Some(RunError::from(error));
                break;
            }
        }
    }
    // After a failure ranks may no longer talk to each other.
    let hash = match failure {
        None => hash_of(&simulation, comm).map_err(StepError::from)?,
        // After a failure ranks may no longer talk to each other.
        Some(_) => hash_of_replica(world, &simulation),
    };
    Ok(Ran {
        hash,
        steps: simulation.step(),
        vertices: simulation.positions().len() as u64,
        hits,
        cut,
        cut_steps,
        began_through,
        failure,
    })
}
