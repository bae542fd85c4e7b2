//! The input and the result of a solve: system, tolerance, outcome, errors.
//!
//! Tolerances and answers are the same on every rank, to the bit. The solver is
//! [`super::ModifiedCg`].

use std::fmt;

use glam::DVec3;
use thiserror::Error;
use weft_runtime::comm::CommError;

use super::{BlockMatrix, Filter};

/// A linear system, the owned part of it.
#[derive(Clone, Copy, Debug)]
pub struct System<'a> {
    /// A: symmetric and positive definite in the free directions, in kg.
    pub matrix: &'a BlockMatrix,
    /// The right-hand side b of the owned vertices, in kg m/s.
    pub rhs: &'a [DVec3],
    /// The directions that are prescribed; changes in m/s.
    pub filter: &'a Filter,
    /// The positions of the owned vertices, in m, about which the coarse level's rigid motions are.
    /// Other preconditioners do not use them.
    pub positions: &'a [DVec3],
}

/// The criterion by which a solve is good enough. It is the same on every rank.
///
/// Residuals are measured in the norm of the [preconditioner](super::Preconditioner), √(r·M r),
/// whose unit is √J. M stands for A⁻¹, and if it were A⁻¹ this would be the energy norm of the
/// error in Δv. With block-Jacobi it is the velocity change that each vertex would make on its own,
/// weighted by mass, so that neither the fineness of a mesh nor a heavy cloth beside a light one
/// distorts it, but what many vertices have wrong together counts little. The stronger the
/// preconditioner, the nearer to the error: the multilevel one also counts what groups and
/// aggregates have wrong as a whole, and the same tolerance asks more of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    /// Residual, as a share of that of Δv = z: what the constraints alone leave.
    pub relative: f64,
    /// Residual in √J below which nothing more is done.
    pub absolute: f64,
    /// Iterations after which the solve is given up.
    pub max_iterations: u32,
}

impl Default for Tolerance {
    fn default() -> Self {
        Self {
            relative: 1e-6,
            absolute: 0.0,
            max_iterations: 10_000,
        }
    }
}

/// The criterion that ended a solve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Criterion {
    /// [`Tolerance::relative`].
    Relative,
    /// [`Tolerance::absolute`], as the larger residual allowed.
    Absolute,
}

/// How a solve went; the same on every rank, to the bit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// Iterations done.
    pub iterations: u32,
    /// Products with the matrix, those for residuals included.
    pub products: u32,
    /// The residual of the result, computed from it, in √J.
    pub residual: f64,
    /// The residual that was allowed, in √J.
    pub allowed: f64,
    /// The criterion that allowed it.
    pub criterion: Criterion,
}

/// How a solve ended that did not converge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Iterations ran out.
    TooFew,
    /// Starting again from the computed residual no longer helped.
    Stagnated,
    /// Iterations ran out, and the residual is larger than at the start.
    Grew,
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooFew => {
                "allow more with solver.max_iterations or solver.tolerance, or take a shorter time.step"
            }
            Self::Stagnated => "rounding lets it fall no further, take a larger solver.tolerance",
            Self::Grew => {
                "it is larger than at the start, rounding may have made the matrix indefinite: take a shorter time.step"
            }
        })
    }
}

/// The reason why there is no solution; the same on every rank.
///
/// Vertices are numbered as in the patch tree.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum SolveError {
    /// Messages failed.
    #[error(transparent)]
    Comm(#[from] CommError),
    /// Arrays do not fit the partition. Known to this rank only.
    #[error("{what}: {found} given, {expected} owned")]
    Length {
        /// The array.
        what: &'static str,
        /// How many entries it must have.
        expected: usize,
        /// How many it has.
        found: usize,
    },
    /// The allowed residual was not reached.
    #[error(
        "no convergence in {iterations} iterations: residual {residual:.3e}, best {best:.3e}, allowed {allowed:.3e}, largest at vertex {vertex} of patch {patch}; {end}"
    )]
    NotConverged {
        /// The vertex with the largest share of the residual.
        vertex: u32,
        /// Its patch.
        patch: usize,
        /// Iterations done.
        iterations: u32,
        /// The last residual, in √J.
        residual: f64,
        /// The smallest on the way.
        best: f64,
        /// The residual that was allowed.
        allowed: f64,
        /// How it ended, and what to do.
        end: End,
    },
    /// The matrix is not positive definite in the free directions.
    #[error(
        "the matrix is not positive definite: curvature {curvature:.3e} in iteration {iteration}, worst at vertex {vertex} of patch {patch}; take a shorter time.step"
    )]
    Indefinite {
        /// The vertex that contributes most to the negative curvature.
        vertex: u32,
        /// Its patch.
        patch: usize,
        /// The iteration; 0 if a block on the diagonal shows it already.
        iteration: u32,
        /// The curvature found; NaN where only a block was looked at.
        curvature: f64,
    },
    /// A number is infinite or none at all.
    #[error("{what} is not finite at vertex {vertex} of patch {patch}, iteration {iteration}")]
    NonFinite {
        /// The first such vertex.
        vertex: u32,
        /// Its patch.
        patch: usize,
        /// The iteration; 0 is before the first.
        iteration: u32,
        /// The value that is not finite there.
        what: &'static str,
    },
}

impl SolveError {
    /// The error with another number for its vertex, if it has one.
    #[must_use]
    pub fn renumbered(mut self, number: impl FnOnce(u32) -> u32) -> Self {
        if let Self::NotConverged { vertex, .. }
        | Self::Indefinite { vertex, .. }
        | Self::NonFinite { vertex, .. } = &mut self
        {
            *vertex = number(*vertex);
        }
        self
    }
}
