//! The reason why a step could not be taken, and whether a shorter one might.

use std::fmt;

use rayon::ThreadPoolBuildError;
use thiserror::Error;
use weft_partition::PartitionError;
use weft_runtime::ScopeError;
use weft_runtime::comm::CommError;

use crate::solve::{PatternError, SolveError};

/// A vertex for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// Its number in the order of the scene's vertices.
    pub vertex: u32,
    /// Its patch.
    pub patch: usize,
    /// The name of its cloth.
    pub cloth: String,
    /// Its number in that cloth.
    pub of_cloth: u32,
}

impl Named {
    /// The place of the vertex in its cloth.
    fn of(&self) -> String {
        format!("vertex {} of cloth `{}`", self.of_cloth, self.cloth)
    }

    /// The words that are added to a message that has told the vertex and its patch.
    fn of_its_cloth(&self) -> String {
        let Self { vertex, cloth, .. } = self;
        if self.of_cloth == *vertex {
            format!("; vertex {vertex} is of cloth `{cloth}`")
        } else {
            format!("; vertex {vertex} is {}", self.of())
        }
    }
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { vertex, patch, .. } = self;
        if self.of_cloth == *vertex {
            let cloth = &self.cloth;
            write!(f, "vertex {vertex} of patch {patch} (cloth `{cloth}`)")
        } else {
            write!(f, "vertex {vertex} of patch {patch} ({})", self.of())
        }
    }
}

/// The reason why Newton's method was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GaveUp {
    /// The equations were not met after `solver.newton` linear systems.
    Limit,
    /// No share of the last step made the residual smaller.
    Stalled,
}

impl fmt::Display for GaveUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Limit => "allow more with solver.newton",
            Self::Stalled => "no share of the last step makes it smaller",
        })
    }
}

/// The reason why a step could not be taken; the same on every rank but for those of messages.
#[derive(Debug, Error)]
pub enum StepError {
    /// The data for setting up ranks is gone.
    #[error("the world has given back what ranks are set up from (World::release): build it anew")]
    Released,
    /// The linear solve failed.
    #[error(
        "step {step}: {source}{}",
        at.as_ref().map_or_else(String::new, Named::of_its_cloth)
    )]
    Solve {
        /// The step, from 1.
        step: u64,
        /// The error of the solver; its vertex in the order of the scene's vertices.
        source: SolveError,
        /// The vertex at which the solve failed, if the solver names one.
        at: Option<Named>,
    },
    /// Newton's method did not meet the equations of motion.
    #[error(
        "step {step}: no convergence of Newton's method after {systems} linear systems: residual \
         {residual:.3e}, allowed {allowed:.3e}, largest at {at}; {why}, take a larger \
         solver.newton_tolerance or a shorter time.step"
    )]
    Newton {
        /// The step, from 1.
        step: u64,
        /// Linear systems solved.
        systems: u32,
        /// The last residual, in √J.
        residual: f64,
        /// The residual that was allowed.
        allowed: f64,
        /// The vertex with the largest share of it.
        at: Named,
        /// The reason why it was not tried further.
        why: GaveUp,
    },
    /// Collision tasks failed.
    #[error("step {step}: {source}")]
    Detect {
        /// The step, from 1.
        step: u64,
        /// The error of the runtime.
        source: ScopeError,
    },
    /// A triangle has no area any more.
    #[error("step {step}: a triangle collapsed at {at}; take a shorter time.step")]
    Collapsed {
        /// The step, from 1.
        step: u64,
        /// A corner.
        at: Named,
    },
    /// An edge changed its length by more than `time.strain_change`. Only where steps are halved.
    #[error(
        "step {step}: an edge at {at} changed its length by {:.1} %, more than time.strain_change",
        100.0 * .change
    )]
    StrainChange {
        /// The step, from 1.
        step: u64,
        /// An end of it.
        at: Named,
        /// The share by which it changed.
        change: f64,
    },
    /// A triangle was stretched far beyond its strain limit at one go. Only where steps are halved.
    #[error(
        "step {step}: a triangle at {at} was stretched by {:.1} % beyond material.strain_limit at one go",
        100.0 * .gain
    )]
    Overstretched {
        /// The step, from 1.
        step: u64,
        /// A corner.
        at: Named,
        /// The strain that it gained.
        gain: f64,
    },
    /// A state to go on from that is not of this scene.
    #[error("the state to go on from does not have {vertices} vertices and the scene's bodies")]
    OtherState {
        /// Vertices of the scene.
        vertices: usize,
    },
    /// A body that deforms has lost a sample.
    #[error(
        "step {step}: body `{body}`: {why}; bring the file back, and go on with --resume from the last checkpoint"
    )]
    Body {
        /// The step, from 1.
        step: u64,
        /// The name of the body.
        body: String,
        /// The reason why it cannot be read.
        why: String,
    },
    /// A position or velocity is not finite.
    #[error("step {step}: {at} is no longer at a finite position; take a shorter time.step")]
    NonFinite {
        /// The step, from 1.
        step: u64,
        /// The vertex.
        at: Named,
    },
    /// A vertex moves as no cloth does.
    #[error(
        "step {step}: {at} moves at {speed:.1e} m/s, for the cloth flies apart; take a shorter time.step{}",
        if *explicit { ", with this integrator below the shortest edge times the root of density over stretch" } else { "" }
    )]
    FlewApart {
        /// The step, from 1.
        step: u64,
        /// The vertex.
        at: Named,
        /// The speed in m/s.
        speed: f64,
        /// Whether elasticity is explicit, which bounds the step.
        explicit: bool,
    },
    /// Cloth would have crossed something, and impulses alone could not keep it from that. Only
    /// where steps are halved.
    #[error(
        "step {step}: cloth at {at} would cross something, and impulses do not keep it from that"
    )]
    Crowded {
        /// The step, from 1.
        step: u64,
        /// A vertex of it.
        at: Named,
    },
    /// Bodies leave cloth no room, and `contact.squeezed` is `"stop"`.
    #[error(
        "step {step}, {time:.6} s: {at} has no room between {between}; give it room, or let the \
         body through with contact.squeezed = \"give\""
    )]
    Squeezed {
        /// The step, from 1.
        step: u64,
        /// The simulated time in s at the end of the step.
        time: f64,
        /// The first of the vertices.
        at: Named,
        /// The two that leave no room, for people.
        between: String,
    },
    /// A seam is open when its time has come.
    #[error(
        "step {step}: seam `{seam}` is open by {apart:.3e} m at {at} when its time comes, {close} s, and {gap:.3e} m are allowed; give \
         the scene a later seam.close or take away what is between, or go on from the last checkpoint with --resume and a larger seam.gap"
    )]
    OpenSeam {
        /// The last step, from 1.
        step: u64,
        /// The seam's name.
        seam: String,
        /// The vertex of the stitch that is open farthest.
        at: Named,
        /// How far it is open in m.
        apart: f64,
        /// How far it may be, in m.
        gap: f64,
        /// The time by which it was to be closed, in s.
        close: f64,
    },
    /// A step failed although it had been halved.
    #[error(
        "{source}; the same after {halvings} halvings, in parts of {length} s: a smaller time.shortest allows more"
    )]
    Halved {
        /// The error that remained.
        source: Box<Self>,
        /// How often.
        halvings: u32,
        /// The length of the substep that failed, in s.
        length: f64,
    },
    /// Messages failed.
    #[error(transparent)]
    Comm(#[from] CommError),
    /// The system does not give as many threads as were asked for.
    #[error("cannot start the threads of a rank: {0}")]
    Threads(#[from] ThreadPoolBuildError),
    /// The run has more ranks than patches, or none.
    #[error(transparent)]
    Partition(#[from] PartitionError),
    /// The matrix is too large for its numbering.
    #[error(transparent)]
    Pattern(#[from] PatternError),
}

impl StepError {
    /// Whether this only says that another rank ended the job.
    #[must_use]
    pub fn is_echo(&self) -> bool {
        let echo =
            |error: &CommError| matches!(error, CommError::Aborted { .. } | CommError::Left { .. });
        match self {
            Self::Comm(error)
            | Self::Solve {
                source: SolveError::Comm(error),
                ..
            }
            | Self::Detect {
                source: ScopeError::Comm(error),
                ..
            } => echo(error),
            _ => false,
        }
    }

    /// Whether a shorter step might not fail so. Such errors are the same on every rank.
    #[must_use]
    pub fn is_of_length(&self) -> bool {
        match self {
            Self::Solve { source, .. } => matches!(
                source,
                SolveError::NotConverged { .. }
                    | SolveError::Indefinite { .. }
                    | SolveError::NonFinite { .. }
            ),
            Self::Newton { .. }
            | Self::Collapsed { .. }
            | Self::StrainChange { .. }
            | Self::Overstretched { .. }
            | Self::Crowded { .. }
            | Self::FlewApart { .. }
            | Self::Halved { .. }
            | Self::NonFinite { .. } => true,
            _ => false,
        }
    }

    /// Whether it is the same on every rank, and the state that it leaves is worth to be kept.
    #[must_use]
    pub(crate) fn leaves_state(&self) -> bool {
        self.is_of_length() || matches!(self, Self::OpenSeam { .. })
    }

    /// The error of a step that had been halved so often, to substeps of `length` s.
    pub(super) fn after_halving(self, halvings: u32, length: f64) -> Self {
        match halvings {
            0 => self,
            halvings => Self::Halved {
                source: Box::new(self),
                halvings,
                length,
            },
        }
    }
}
