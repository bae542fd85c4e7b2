//! The partitioned linear solve of an implicit step, with the same bits on any number of ranks.
//!
//! In: rows of a symmetric positive definite matrix, split over ranks as the patch tree says, a
//! right-hand side, and directions in which vertices are constrained. Out: the velocity change of
//! the owned vertices, and the force that the constraints exert. [TB06 §4.1] describes the
//! partitioned solve, [BW98 §5] the constraints inside the conjugate gradients, \[AB03\] why that
//! converges.
//!
//! | module | holds |
//! |---|---|
//! | [`halo`] | [`Halo`], the exchange of border values |
//! | [`reduction`] | [`Reduction`], sums over all vertices in an order that no ownership changes |
//! | [`block_matrix`] | [`BlockMatrix`], rows of 3x3 blocks and scalars, and their product |
//! | `symmetric_copy` | a symmetric single-precision copy of a large matrix, and its product |
//! | [`filter`] | [`Filter`], the constrained directions |
//! | [`block_jacobi`] | [`BlockJacobi`], inverted diagonal blocks |
//! | `single_blocks` | those blocks in single precision, which iterations read |
//! | `vector_kernels` | loops over vectors between two products, in SIMD lanes |
//! | `patch_ssor` | symmetric Gauss-Seidel within patches |
//! | `coarse` | a direct solve for the rigid motions of aggregates |
//! | [`preconditioner`] | [`Preconditioner`], which of them there are |
//! | [`cg`] | [`ModifiedCg`], the solve itself |
//! | `prefiltered` | [`Prefiltered`], the system for solvers that know no constraints |
//! | [`outcome`] | [`System`] and [`Tolerance`] in, [`Outcome`] or [`SolveError`] out |
//!
//! Vectors are of the *owned* vertices, or of those followed by the *halo*, what is read of other
//! ranks: see [`weft_partition::HaloPlan`]. Vertices are numbered as in the patch tree throughout.
//!
//! Not here: what the matrix means (`physics`), who is constrained and why (`step`).
//!
//! * \[AB03\] Ascher, Boxerman: On the modified conjugate gradient method in cloth simulation.
//! * \[BW98\] Baraff, Witkin: Large steps in cloth simulation.
//! * \[TB06\] Thomaszewski, Blochinger: Parallel simulation of cloth on distributed memory
//!   architectures.

pub mod block_jacobi;
pub mod block_matrix;
pub mod cg;
mod coarse;
pub(crate) mod fault;
pub mod filter;
pub mod halo;
pub mod outcome;
mod pages;
mod patch_ssor;
pub mod preconditioner;
mod prefiltered;
pub mod reduction;
mod single_blocks;
mod symmetric_copy;
#[cfg(test)]
mod testing;
mod vector_kernels;

pub use block_jacobi::BlockJacobi;
pub use block_matrix::{
    BlockMatrix, BlockSlot, MatrixRows, Pattern, PatternError, Rows, ScalarSlot,
};
pub use cg::ModifiedCg;
pub use coarse::coarse_columns;
pub use filter::Filter;
pub use halo::Halo;
pub use outcome::{Criterion, End, Outcome, SolveError, System, Tolerance};
pub use preconditioner::{Multilevel, Preconditioner, Smoother, aggregate_options};
pub use prefiltered::Prefiltered;
pub use reduction::Reduction;
pub use symmetric_copy::is_rounded;
