//! Runs that are judged: every checked state of a scene is looked at by code that shares nothing
//! with what made it ([`weft_judge`]).
//!
//! The state after each part of a step is checked. A judge on a thread of its own takes these
//! states in full precision, with the triangles of bodies where they are then, and looks for
//! crossings in them and on the straight ways between them. If nothing was cut, the scene is then
//! run once more without `contact.certify`, and both runs must end with one state.
//!
//! | file | what |
//! |---|---|
//! | `judged` | a scene as plain arrays |
//! | `running` | the run whose states are judged |
//! | `outcome` | what came of it: accepted, or refused for reasons |

mod judged;
mod outcome;
mod running;

use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;

use thiserror::Error;
use weft_judge::record::Writer;
use weft_judge::{Judge, State, StateError, SurfaceError};

pub use self::judged::Judged;
pub use self::outcome::{Outcome, Twin};
use self::running::simulate;
pub use self::running::{Certifying, Ran};
use crate::memory::{self, Ranks};
use crate::run::RunError;
use crate::scene::Scene;
use crate::step::World;

/// States that wait for the judge, at most.
const WAITING: usize = 4;

/// A reason for which a run cannot be judged.
#[derive(Debug, Error)]
pub enum CertifyError {
    /// The scene cannot be run.
    #[error(transparent)]
    Run(#[from] RunError),
    /// It has meshes that cannot be judged.
    #[error("the scene cannot be judged: {0}")]
    Surface(#[from] SurfaceError),
    /// The record of its states could not be written.
    #[error("the states cannot be recorded: {0}")]
    Record(#[source] io::Error),
}

impl CertifyError {
    /// The exit code of the command.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Run(error) => error.exit_code(),
            Self::Surface(_) => 3,
            Self::Record(_) => 5,
        }
    }
}

/// Runs a scene, judges its checked states, and writes them to a record if there is one.
///
/// # Errors
/// The run could not begin, or the record not be written. A run that fails on its way is judged as
/// far as it went ([`Outcome::failure`]).
pub fn certify(
    scene: &Scene,
    options: &Certifying,
    record: Option<&mut (dyn Write + Send)>,
) -> Result<Outcome, CertifyError> {
    let world = world(scene, options)?;
    let judged = Judged::new(&world)?;
    let record = record.map(|to| Writer::new(to, judged.surface()));
    let mut record = record.transpose().map_err(CertifyError::Record)?;
    let mut judge = Judge::new(judged.surface().clone());
    let inside = AtomicU64::new(0);
    let (states, waiting) = sync_channel::<State>(WAITING);
    // The simulation has the process's other threads: judging must not keep it waiting.
    let (ran, refused) = std::thread::scope(|scope| {
        let judging = scope.spawn(|| -> Result<Option<StateError>, io::Error> {
            for state in waiting {
                if let Some(record) = &mut record {
                    record.write(&state)?;
                }
                if let Err(error) = judge.judge(state) {
                    return Ok(Some(error));
                }
            }
            Ok(None)
        });
        let ran = simulate(&world, options, &|checked| {
            inside.fetch_add(judged.inside(&checked), Ordering::Relaxed);
            // A judge that has ended says why below.
            drop(states.send(judged.state(&checked)));
        });
        drop(states);
        let refused = judging.join();
        (ran, refused)
    });
    let refused = match refused {
        Ok(refused) => refused.map_err(CertifyError::Record)?,
        Err(panic) => std::panic::resume_unwind(panic),
    };
    if let Some(record) = record {
        record.finish().map_err(CertifyError::Record)?;
    }
    let ran = ran?;
    // Where something was hit the other run ends elsewhere, and perhaps in a tangle.
    let is_comparable = scene.contact.certify && ran.is_as_it_was() && ran.failure.is_none();
    let twin = (is_comparable && !options.once).then(|| run_without(scene, options));
    let twin = twin.transpose()?;
    Ok(Outcome {
        scene: scene.name.clone(),
        pieces: judged.surface().pieces().to_vec(),
        outside: judged.outside().to_vec(),
        sampled: judged.sampled().map(str::to_owned).collect(),
        inside: inside.into_inner(),
        certified: scene.contact.certify,
        verdict: judge.verdict(),
        bad_state: refused.map(|error| error.to_string()),
        failure: ran.failure.as_ref().map(ToString::to_string),
        ran: Some(ran),
        twin,
    })
}

/// The world of a scene, if it fits.
fn world(scene: &Scene, options: &Certifying) -> Result<World, RunError> {
    let ranks = Ranks {
        drawing: 0,
        ..Ranks::threads(options.ranks)
    };
    Ok(memory::build(scene, 1, ranks, options.memory)?)
}

/// Runs the scene without the certification of steps.
fn run_without(scene: &Scene, options: &Certifying) -> Result<Twin, CertifyError> {
    let mut scene = scene.clone();
    scene.contact.certify = false;
    let world = world(&scene, options)?;
    let ran = simulate(&world, options, &drop)?;
    Ok(Twin {
        hash: ran.hash,
        steps: ran.steps,
        failure: ran.failure.map(|error| error.to_string()),
    })
}

#[cfg(test)]
mod tests;
